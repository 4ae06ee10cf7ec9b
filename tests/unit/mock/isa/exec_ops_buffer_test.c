/* Goal: every untyped buffer operation does what the RDNA3 ISA document says of it (chapters 9, 13,
 * section 16.16): index, offset, scalar offset and lane number, linear and swizzled, all four ways of range
 * checking, unbound and foreign descriptors, lanes off, both wave sizes. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory_ops.h"

#define OP(name) BW_GFX11_##name

/* The buffer lies somewhere in the middle of what is watched, so that a place outside of it is still memory.
 */
enum { BUFFER_AT = 0x1800, DATA_BYTES = 0x4000 };

static struct mem_rig rig;
static uint8_t expected_data[DATA_BYTES];
static struct mem_lane before[MEM_LANES];
static uint32_t expected[MEM_LANES][4];

/* Table 47 "Buffer resource descriptor", and what the instruction adds. */
struct buffer {
    uint64_t base;
    uint32_t stride, records, soffset, offset; /* the immediate one */
    unsigned element_bytes, index_stride;      /* swizzled when there are elements */
    unsigned oob, format, type;
    bool adds_lane, has_index, has_offset;
};
static struct buffer buffer;
static uint32_t indices[MEM_LANES], offsets[MEM_LANES];

static void put_descriptor(void)
{
    static const uint32_t index_stride_codes[] = {[8] = 0, [16] = 1, [32] = 2, [64] = 3};
    uint32_t *words = rig.arguments->descriptor;
    uint32_t swizzle = buffer.element_bytes == 4 ? 1 : buffer.element_bytes == 16 ? 3 : 0;
    words[0] = (uint32_t)buffer.base;
    words[1] = (uint32_t)(buffer.base >> 32) | buffer.stride << 16 | swizzle << 30;
    words[2] = buffer.records;
    words[3] = 0x00000fac | buffer.format << 12 | index_stride_codes[buffer.index_stride] << 21 |
               (uint32_t)buffer.adds_lane << 23 | buffer.oob << 28 | buffer.type << 30;
    rig.arguments->soffset = buffer.soffset;
}

static uint64_t index_of(unsigned lane)
{
    return (buffer.has_index ? indices[lane] : 0) + (uint64_t)(buffer.adds_lane ? lane : 0);
}

static uint64_t offset_of(unsigned lane)
{
    return (uint64_t)buffer.offset + (buffer.has_offset ? offsets[lane] : 0);
}

/* Table 46 "Buffer out of bounds selection"; at: how far into the element. */
static bool is_inside(unsigned lane, unsigned at, unsigned payload)
{
    uint64_t index = index_of(lane), offset = offset_of(lane) + at;
    int64_t records = (int64_t)buffer.records;
    switch (buffer.oob) {
    case 0:
        return index < buffer.records && offset + payload <= buffer.stride;
    case 1:
        return index < buffer.records;
    case 2:
        return buffer.records != 0;
    default:
        records -= buffer.soffset;
        if (buffer.element_bytes && buffer.stride)
            return (int64_t)index < records && offset + payload <= buffer.stride;
        return (int64_t)(offset + payload) <= records;
    }
}

/* Sections 9.4.1.1 and 9.4.2; the memory that byte `at` of the lane's element lies in. */
static uint64_t address_of(unsigned lane, unsigned at)
{
    uint64_t index = index_of(lane), offset = offset_of(lane) + at;
    uint64_t within = offset + index * buffer.stride;
    if (buffer.element_bytes) {
        uint64_t index_msb = index / buffer.index_stride, index_lsb = index % buffer.index_stride;
        uint64_t offset_msb = offset / buffer.element_bytes, offset_lsb = offset % buffer.element_bytes;
        within = (index_msb * buffer.stride + offset_msb * buffer.element_bytes) * buffer.index_stride +
                 index_lsb * buffer.element_bytes + offset_lsb;
    }
    return buffer.base + buffer.soffset + within;
}

static uint8_t *byte_of(unsigned lane, unsigned at, uint8_t *data)
{
    uint64_t place = address_of(lane, at) - EXEC_BASE - MEM_IMAGE_AT;
    return place < DATA_BYTES ? data + place : NULL;
}

static bool is_unbound(void)
{
    return buffer.format == 0 && !buffer.adds_lane;
}

static void perform(const struct mem_op *op, unsigned lane, uint32_t *d)
{
    uint8_t element[16] = {0};
    const uint32_t *data2 = op->bytes == 8 ? before[lane].data + 2 : before[lane].data + 1;
    bool is_add = op->atomic == mem_atomic_ADD_F32, inside[16], any = false;
    struct mem_flush flush = {is_add || !(rig.denormal & 1), false};
    unsigned part = op->kind == MEM_ATOMIC || op->bytes < 4 ? op->bytes : 4; /* what is checked at once */
    for (unsigned at = 0; at < op->bytes; at++) {
        inside[at] = !is_unbound() && is_inside(lane, at / part * part, part);
        any = any || inside[at];
        if (inside[at])
            element[at] = *byte_of(lane, at, expected_data);
    }
    if (op->kind == MEM_ATOMIC && !any) {
        memset(d, 0, op->bytes);
        return;
    }
    mem_perform(op, element, before[lane].data, data2, flush, d);
    for (unsigned at = 0; op->kind != MEM_LOAD && at < op->bytes; at++) {
        if (inside[at])
            *byte_of(lane, at, expected_data) = element[at];
    }
}

/* RDNA3 ISA document, section 15.8. */
static void encode(uint32_t *words, unsigned row, bool returns)
{
    enum { NO_SOFFSET = 128 /* the inline constant 0 */ };
    words[0] =
        0xe0000000u | (uint32_t)bw_gfx11_ops[row].opcode << 18 | (returns ? 1u << 14 : 0) | buffer.offset;
    words[1] = (uint32_t)(buffer.soffset ? MEM_S_SOFFSET : NO_SOFFSET) << 24 |
               (uint32_t)buffer.has_index << 23 | (uint32_t)buffer.has_offset << 22 |
               MEM_S_DESCRIPTOR / 4 << 16 | MEM_V_DATA << 8 | MEM_V_ADDRESS;
}

static void fill(const struct mem_op *op)
{
    mem_fill(&rig, op);
    for (unsigned i = MEM_IMAGE_BYTES; i < DATA_BYTES; i += 8) {
        uint64_t value = mem_value(&rig.rng, op->values);
        memcpy(rig.image + i, &value, 8);
    }
}

static void choose_buffer(const struct mem_op *op)
{
    static const uint32_t strides[] = {0, 4, 16, 32, 48, 64};
    buffer = (struct buffer){
        .base = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT,
        .stride = strides[bw_rng_below(&rig.rng, 6)],
        .records = (uint32_t)bw_rng_below(&rig.rng, 2) ? (uint32_t)bw_rng_below(&rig.rng, 90)
                                                       : (uint32_t)bw_rng_below(&rig.rng, 2048),
        .soffset = bw_rng_below(&rig.rng, 2) ? (uint32_t)bw_rng_below(&rig.rng, 16) * 16 : 0,
        .offset = bw_rng_below(&rig.rng, 2) ? (uint32_t)bw_rng_below(&rig.rng, 4) * 8 : 0,
        .index_stride = 8u << bw_rng_below(&rig.rng, 4),
        .oob = (unsigned)bw_rng_below(&rig.rng, 4),
        .format = bw_rng_below(&rig.rng, 16) ? 20 : 0,
        .adds_lane = bw_rng_below(&rig.rng, 4) == 0,
        .has_index = bw_rng_below(&rig.rng, 2),
        .has_offset = bw_rng_below(&rig.rng, 2),
    };
    if (op->kind == MEM_ATOMIC && buffer.stride % op->bytes)
        buffer.stride = op->bytes;
    if (bw_rng_below(&rig.rng, 3) == 0 && buffer.stride >= 16)
        buffer.element_bytes = op->bytes <= 4 && bw_rng_below(&rig.rng, 2) ? 4 : 16;
    if (buffer.element_bytes && buffer.offset % buffer.element_bytes + op->bytes > buffer.element_bytes)
        buffer.offset = buffer.offset / buffer.element_bytes * buffer.element_bytes;
}

/* Registers of each lane; no two active lanes of a store or an atomic on one byte, which turns lanes off. */
static void choose_lanes(const struct mem_op *op)
{
    static bool taken[DATA_BYTES];
    memset(taken, 0, sizeof taken);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        unsigned align = op->kind == MEM_ATOMIC ? op->bytes : buffer.element_bytes ? buffer.element_bytes : 1;
        indices[lane] = bw_rng_below(&rig.rng, 8) ? (uint32_t)bw_rng_below(&rig.rng, 40)
                                                  : (uint32_t)bw_rng_next(&rig.rng) % 100;
        offsets[lane] = (uint32_t)bw_rng_below(&rig.rng, 128) / align * align;
        if (bw_rng_below(&rig.rng, 8) == 0)
            offsets[lane] = (uint32_t)bw_rng_below(&rig.rng, 2400) / align * align;
        if (bw_rng_below(&rig.rng, 16) == 0 && buffer.oob != 1 && buffer.oob != 2)
            offsets[lane] = 0xfffffff0; /* with the immediate it must not wrap around */
        if (buffer.has_index)
            rig.lanes[lane].address[0] = indices[lane];
        if (buffer.has_offset)
            rig.lanes[lane].address[buffer.has_index] = offsets[lane];
        for (unsigned at = 0; at < op->bytes; at++) {
            uint64_t place = address_of(lane, at) - EXEC_BASE - MEM_IMAGE_AT;
            bool is_bad = place >= DATA_BYTES && is_inside(lane, at, 1);
            bool is_shared = op->kind != MEM_LOAD && place < DATA_BYTES && taken[place];
            if (is_bad || is_shared)
                rig.arguments->exec &= ~(1ull << lane);
        }
        for (unsigned at = 0; at < op->bytes && mem_is_active(&rig, lane); at++) {
            uint64_t place = address_of(lane, at) - EXEC_BASE - MEM_IMAGE_AT;
            if (place < DATA_BYTES)
                taken[place] = true;
        }
    }
}

static bool compare(const uint32_t *words)
{
    for (unsigned i = 0; i < DATA_BYTES; i++) {
        if (rig.image[i] != expected_data[i])
            return mem_differs(&rig, words, 2, "byte", i, expected_data[i], rig.image[i]);
    }
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            if (rig.lanes[lane].data_after[i] != expected[lane][i])
                return mem_differs(&rig, words, 2, i ? "lane, second dword or later" : "lane", lane,
                                   expected[lane][i], rig.lanes[lane].data_after[i]);
        }
    }
    return true;
}

static bool run(const struct mem_op *op, bool returns)
{
    uint32_t words[2], ignored[4];
    put_descriptor();
    memcpy(before, rig.lanes, sizeof before);
    memcpy(expected_data, rig.image, DATA_BYTES);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        memcpy(expected[lane], before[lane].data, sizeof expected[lane]);
        if (mem_is_active(&rig, lane) && buffer.type == 0)
            perform(op, lane, op->kind == MEM_LOAD || returns ? expected[lane] : ignored);
    }
    encode(words, op->buffer, returns);
    if (mem_run(&rig, words, 2) != BW_ISA_DONE)
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, BW_ISA_DONE,
                           rig.machine.result.status);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        uint8_t *e = byte_of(lane, 0, expected_data), *o = byte_of(lane, 0, rig.image);
        if (mem_is_active(&rig, lane) && is_inside(lane, 0, op->bytes) && e && o)
            mem_forgive_nans(op, e, o);
    }
    return compare(words);
}

static bool check(const struct mem_op *op, bool returns, unsigned round)
{
    rig.piece_bytes = round % 3 == 2 ? 24 : 0;
    rig.machine.generation++;
    rig.denormal = round < 3 ? 0xf : (uint32_t)bw_rng_below(&rig.rng, 16);
    rig.arguments->exec = mem_exec(&rig, round);
    choose_buffer(op);
    fill(op);
    choose_lanes(op);
    return run(op, returns);
}

static void test_operations(void)
{
    enum { ROUNDS = 60 };
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < MEM_OPS; i++) {
            bool ok = mem_ops[i].buffer;
            for (unsigned round = 0; round < ROUNDS && ok; round++)
                ok = check(&mem_ops[i], false, round) &&
                     (mem_ops[i].kind != MEM_ATOMIC || check(&mem_ops[i], true, round));
            if (mem_ops[i].buffer && BW_TRUE(ok))
                ops_prove(mem_ops[i].buffer);
        }
    }
}

/* A descriptor of an image, and one that is all zeros: nothing is touched. */
static void test_no_buffer(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < MEM_OPS; i++) {
            for (unsigned type = 0; type < 4 && mem_ops[i].buffer; type++) {
                rig.arguments->exec = mem_exec(&rig, 1);
                buffer = (struct buffer){.base = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT,
                                         .records = 64,
                                         .index_stride = 8,
                                         .format = 20,
                                         .type = type};
                if (type == 0)
                    buffer = (struct buffer){.index_stride = 8};
                fill(&mem_ops[i]);
                BW_TRUE(run(&mem_ops[i], mem_ops[i].kind == MEM_ATOMIC));
            }
        }
    }
}

/* TFE: what is not missing leaves the status register alone. */
static void test_status_of_missing_textures(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        uint32_t words[2];
        buffer = (struct buffer){.base = EXEC_BASE + MEM_IMAGE_AT + BUFFER_AT,
                                 .records = 64,
                                 .index_stride = 8,
                                 .oob = 3,
                                 .format = 20,
                                 .has_offset = true};
        rig.arguments->exec = mem_exec(&rig, 0);
        fill(&mem_ops[0]);
        put_descriptor();
        for (unsigned lane = 0; lane < rig.wave_size; lane++)
            rig.lanes[lane].address[0] = 4 * lane;
        encode(words, OP(BUFFER_LOAD_B32), false);
        words[1] |= 1u << 21;
        BW_EQ(mem_run(&rig, words, 2), BW_ISA_DONE);
        for (unsigned lane = 0; lane < rig.wave_size; lane++) {
            BW_EQ(rig.lanes[lane].data_after[0], lane < 16 ? mem_32(rig.image + BUFFER_AT + 4 * lane) : 0);
            BW_EQ(rig.lanes[lane].data_after[1], rig.lanes[lane].data[1]);
        }
    }
}

struct wrong {
    struct buffer buffer;
    enum bw_isa_status status;
    uint64_t va;
    const char *text;
};

static void goes_wrong(const struct mem_op *op, const struct wrong *wrong)
{
    uint32_t words[2];
    buffer = wrong->buffer;
    fill(op);
    put_descriptor();
    rig.arguments->exec = 1ull << 7;
    rig.lanes[7].address[0] = 0;
    encode(words, op->buffer, false);
    if (!BW_EQ(mem_run(&rig, words, 2), wrong->status) || !BW_EQ(rig.machine.result.va, wrong->va))
        mem_differs(&rig, words, 2, rig.machine.result.text, 0, wrong->va, rig.machine.result.va);
    BW_TRUE(strncmp(rig.machine.result.text, wrong->text, strlen(wrong->text)) == 0);
}

static void test_faults(void)
{
    uint64_t end = EXEC_BASE + EXEC_BYTES, data = EXEC_BASE + MEM_IMAGE_AT;
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < MEM_OPS; i++) {
            const struct mem_op *op = &mem_ops[i];
            struct wrong wrong = {
                {.base = end, .records = 64, .index_stride = 8, .oob = 3, .format = 20, .has_offset = true},
                BW_ISA_MEMORY_FAULT,
                end,
                "buffer_"};
            if (!op->buffer)
                continue;
            goes_wrong(op, &wrong);
            wrong.buffer.base = data + 2;
            wrong.va = data + 2;
            wrong.status = BW_ISA_MISALIGNED;
            if (op->kind == MEM_ATOMIC)
                goes_wrong(op, &wrong);
            wrong.buffer.base = wrong.va = data;
            wrong.buffer.element_bytes = 4;
            wrong.status = BW_ISA_UNSUPPORTED;
            wrong.text = "more than an element of 4 bytes of a swizzled buffer: buffer_";
            if (op->bytes > 4)
                goes_wrong(op, &wrong);
        }
    }
}

OPS_TEST_MAIN("isa exec buffer", {"loads, stores and atomics", test_operations},
              {"a descriptor of no buffer", test_no_buffer},
              {"the status of missing textures", test_status_of_missing_textures},
              {"faults are named", test_faults})
