/* Goal: every flat, global and scratch operation does what the RDNA3 ISA document says of it (chapters 11,
 * 13, section 16.18), in every form of address, both wave sizes, at any alignment, across mappings, with
 * lanes off and denormals flushed or not; and what goes wrong is named with its address. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory_ops.h"

#define OP(name) BW_GFX11_##name

/* Global memory lies behind the image that goes to LDS and back; each lane has LANE_BYTES of scratch. */
enum {
    GLOBAL_AT = MEM_IMAGE_AT + 0x2000,
    GLOBAL_BYTES = 2048,
    DATA_BYTES = 0x4000, /* of memory from the image on that are watched, ... */
    LANE_BYTES = 208,
    SCRATCH_BYTES = LANE_BYTES * MEM_LANES + 0x1000, /* ... and of scratch */
    PIECE_BYTES = 24,                                /* no aligned element of an atomic straddles two */
};

static struct mem_rig rig;
static uint8_t expected_data[DATA_BYTES], expected_scratch[SCRATCH_BYTES];
static struct mem_lane before[MEM_LANES];
static uint32_t expected[MEM_LANES][4];

enum space { GLOBAL, LDS, SCRATCH };
static struct {
    enum space space;
    uint32_t offset; /* in that space */
} places[MEM_LANES];

static uint8_t *byte_of(unsigned lane, unsigned i, uint8_t *data, uint8_t *scratch)
{
    uint32_t offset = places[lane].offset + i;
    switch (places[lane].space) {
    case GLOBAL:
        return data + (GLOBAL_AT - MEM_IMAGE_AT) + offset;
    case LDS:
        return data + offset;
    default: /* dwords of all lanes next to each other (section 11.2, "Scratch addressing equation") */
        return scratch + offset / 4 * 4 * rig.wave_size + offset % 4 + 4 * lane;
    }
}

/* Section 13.2: memory's adder flushes its inputs whatever MODE says; else the inputs' bit counts, and never
 * that of the outputs. */
static struct mem_flush flush_of(const struct mem_op *op, enum space space)
{
    bool is_add = op->atomic == mem_atomic_ADD_F32;
    return (struct mem_flush){(is_add && space != LDS) || !(rig.denormal & 1), false};
}

static void perform(const struct mem_op *op, unsigned lane, uint32_t *d)
{
    uint8_t element[16];
    const uint32_t *data2 = op->bytes == 8 ? before[lane].data + 2 : before[lane].data + 1;
    for (unsigned i = 0; i < op->bytes; i++)
        element[i] = *byte_of(lane, i, expected_data, expected_scratch);
    mem_perform(op, element, before[lane].data, data2, flush_of(op, places[lane].space), d);
    for (unsigned i = 0; op->kind != MEM_LOAD && i < op->bytes; i++)
        *byte_of(lane, i, expected_data, expected_scratch) = element[i];
}

static bool compare(const uint32_t *words)
{
    const uint8_t *scratch = rig.machine.memory + EXEC_SCRATCH;
    for (unsigned i = 0; i < DATA_BYTES; i++) {
        bool is_lds_end = rig.in_lds && i >= MEM_LDS_BYTES && i < MEM_IMAGE_BYTES + 128;
        if (!is_lds_end && rig.image[i] != expected_data[i])
            return mem_differs(&rig, words, 2, "byte", i, expected_data[i], rig.image[i]);
    }
    for (unsigned i = 0; i < SCRATCH_BYTES; i++) {
        if (scratch[i] != expected_scratch[i])
            return mem_differs(&rig, words, 2, "byte of scratch", i, expected_scratch[i], scratch[i]);
    }
    return mem_lanes_are(&rig, words, expected, before);
}

/* The forms of an address. */
enum form { VECTOR, SCALAR, FLAT, SCRATCH_V, SCRATCH_S, SCRATCH_VS, SCRATCH_NONE, FORMS };
enum { SEGMENT_FLAT, SEGMENT_SCRATCH, SEGMENT_GLOBAL };

/* RDNA3 ISA document, section 15.7. */
static void encode(uint32_t *words, unsigned row, enum form form, int32_t offset, bool returns)
{
    enum { NO_SADDR = 124, SVE = 1 << 23 };
    uint32_t segment = form == FLAT ? SEGMENT_FLAT : form >= SCRATCH_V ? SEGMENT_SCRATCH : SEGMENT_GLOBAL;
    uint32_t saddr = form == SCALAR                            ? MEM_S_ADDRESS
                     : form == SCRATCH_S || form == SCRATCH_VS ? MEM_S_OFFSET32
                                                               : NO_SADDR;
    const struct bw_gfx11_op_row *r = &bw_gfx11_ops[row];
    words[0] = 0xdc000000u | (uint32_t)r->opcode << 18 | segment << 16 | (returns ? 1u << 14 : 0) |
               ((uint32_t)offset & 0x1fff);
    words[1] = saddr << 16;
    if (form != SCRATCH_S && form != SCRATCH_NONE)
        words[1] |= MEM_V_ADDRESS;
    if (form == SCRATCH_V || form == SCRATCH_VS)
        words[1] |= SVE;
    if (r->src[1].type != BW_T_NONE)
        words[1] |= MEM_V_DATA << 8;
    if (r->dst.type != BW_T_NONE && (!(r->flags & BW_GFX11_F_ATOMIC) || returns))
        words[1] |= (uint32_t)MEM_V_OLD << 24;
}

static int32_t choose_offset(enum form form)
{
    static const int32_t offsets[] = {0, 1, 4, 12, 64, 4095, -1, -4, -16, -4096};
    if (form == SCRATCH_NONE)
        return (int32_t)bw_rng_below(&rig.rng, LANE_BYTES - 16) & ~15;
    if (form == FLAT)
        return offsets[bw_rng_below(&rig.rng, 6)];
    if (form > FLAT) /* a multiple of the payload, below a lane's bytes; or negative */
        return (int32_t)bw_rng_below(&rig.rng, 8) * (bw_rng_below(&rig.rng, 2) ? 16 : -512);
    return bw_rng_below(&rig.rng, 3) ? offsets[bw_rng_below(&rig.rng, 10)]
                                     : (int32_t)bw_rng_below(&rig.rng, 8192) - 4096;
}

static enum space choose_space(const struct mem_op *op, enum form form)
{
    if (form >= SCRATCH_V)
        return SCRATCH;
    if (form != FLAT)
        return GLOBAL;
    return op->kind == MEM_ATOMIC ? (enum space)bw_rng_below(&rig.rng, 2)
                                  : (enum space)bw_rng_below(&rig.rng, 3);
}

/* Loads: anywhere. Else no two lanes on one byte. What a register must reach alone, before a positive offset
 * is added, begins behind it. */
static void choose_places(const struct mem_op *op, enum form form, int32_t offset)
{
    unsigned stride = op->kind == MEM_ATOMIC ? op->bytes : op->bytes + 3u;
    unsigned turn = (unsigned)bw_rng_below(&rig.rng, rig.wave_size) | 1;
    bool is_run = bw_rng_below(&rig.rng, 3) == 0; /* what the fast paths are for */
    uint32_t least = offset > 0 ? (uint32_t)offset : 0;
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        enum space space = choose_space(op, form);
        uint32_t place = is_run ? lane * op->bytes : (lane * turn % rig.wave_size) * stride;
        if (op->kind == MEM_LOAD && !is_run)
            place = (uint32_t)bw_rng_below(&rig.rng, GLOBAL_BYTES - 16 - op->bytes);
        else if (op->kind != MEM_ATOMIC && !is_run)
            place += (uint32_t)bw_rng_below(&rig.rng, 4);
        if (space == SCRATCH && least + op->bytes <= LANE_BYTES)
            place = least + (uint32_t)bw_rng_below(&rig.rng, LANE_BYTES - op->bytes + 1 - least);
        if (form == FLAT && (place < least || (space == SCRATCH && least + op->bytes > LANE_BYTES)))
            space = GLOBAL;
        if (form == SCRATCH_S)
            place = lane ? places[0].offset : place & ~15u;
        if (form == SCRATCH_NONE)
            place = (uint32_t)offset;
        places[lane].space = space;
        places[lane].offset = place;
    }
}

/* Registers that make the form's sum come out at the lane's place. */
static void put_addresses(enum form form, int32_t offset)
{
    uint64_t global = EXEC_BASE + GLOBAL_AT;
    uint32_t back = (uint32_t)bw_rng_below(&rig.rng, 1 << 20) + 4096;
    uint32_t part =
        offset < 0 ? (uint32_t)-offset : 0; /* the sum of registers and offset is never negative */
    rig.arguments->saddr = global - back;
    rig.arguments->soffset32 = form == SCRATCH_S ? places[0].offset - (uint32_t)offset : part;
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        uint64_t base = places[lane].space == GLOBAL ? global
                        : places[lane].space == LDS  ? rig.machine.dispatch.shared_aperture
                                                     : rig.machine.dispatch.private_aperture;
        uint64_t address = base + places[lane].offset - (uint64_t)(int64_t)offset;
        if (form == SCALAR)
            address = back + places[lane].offset - (uint32_t)offset;
        else if (form == SCRATCH_V)
            address = places[lane].offset - (uint32_t)offset;
        else if (form == SCRATCH_VS)
            address = places[lane].offset - (uint32_t)offset - part;
        rig.lanes[lane].address[0] = (uint32_t)address;
        if (form == VECTOR || form == FLAT)
            rig.lanes[lane].address[1] = (uint32_t)(address >> 32);
    }
}

static void fill(const struct mem_op *op)
{
    uint8_t *scratch = rig.machine.memory + EXEC_SCRATCH;
    mem_fill(&rig, op);
    for (unsigned i = MEM_IMAGE_BYTES; i < DATA_BYTES; i += 8) {
        uint64_t value = mem_value(&rig.rng, op->values);
        memcpy(rig.image + i, &value, 8);
    }
    for (unsigned i = 0; i < SCRATCH_BYTES; i += 8) {
        uint64_t value = bw_rng_next(&rig.rng);
        memcpy(scratch + i, &value, 8);
    }
}

static void prepare(enum form form, unsigned round)
{
    struct bw_isa_dispatch *dispatch = &rig.machine.dispatch;
    rig.in_lds = form == FLAT;
    rig.piece_bytes = round % 3 == 2 ? PIECE_BYTES : 0;
    rig.machine.generation++;
    rig.arguments->exec = mem_exec(&rig, round);
    rig.denormal = round < 3 ? 0xf : (uint32_t)bw_rng_below(&rig.rng, 16);
    dispatch->rsrc2 |= 1; /* SCRATCH_EN */
    dispatch->scratch_base = EXEC_BASE + EXEC_SCRATCH;
    dispatch->scratch_wave_bytes = LANE_BYTES * rig.wave_size;
    dispatch->scratch_wave_slots = 1;
}

static bool check(const struct mem_op *op, enum form form, bool returns, unsigned round)
{
    uint32_t words[2], ignored[4];
    int32_t offset = choose_offset(form);
    prepare(form, round);
    fill(op);
    choose_places(op, form, offset);
    put_addresses(form, offset);
    memcpy(before, rig.lanes, sizeof before);
    memcpy(expected_data, rig.image, DATA_BYTES);
    memcpy(expected_scratch, rig.machine.memory + EXEC_SCRATCH, SCRATCH_BYTES);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        memcpy(expected[lane], before[lane].old, sizeof expected[lane]);
        if (mem_is_active(&rig, lane))
            perform(op, lane, op->kind == MEM_LOAD || returns ? expected[lane] : ignored);
    }
    encode(words, op->flat, form, offset, returns);
    if (mem_run(&rig, words, 2) != BW_ISA_DONE)
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, BW_ISA_DONE,
                           rig.machine.result.status);
    for (unsigned lane = 0; lane < rig.wave_size; lane++)
        mem_forgive_nans(op, byte_of(lane, 0, expected_data, expected_scratch),
                         byte_of(lane, 0, rig.image, rig.machine.memory + EXEC_SCRATCH));
    return compare(words);
}

static bool has_form(const struct mem_op *op, enum form form)
{
    static const uint32_t flags[FORMS] = {
        BW_GFX11_F_SEG_GLOBAL,  BW_GFX11_F_SEG_GLOBAL,  BW_GFX11_F_SEG_FLAT,   BW_GFX11_F_SEG_SCRATCH,
        BW_GFX11_F_SEG_SCRATCH, BW_GFX11_F_SEG_SCRATCH, BW_GFX11_F_SEG_SCRATCH};
    return op->flat && (bw_gfx11_ops[op->flat].flags & flags[form]);
}

static void test_operations(void)
{
    enum { ROUNDS = 12 };
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < MEM_OPS; i++) {
            bool ok = mem_ops[i].flat;
            for (unsigned form = 0; form < FORMS && ok; form++) {
                for (unsigned round = 0; round < ROUNDS && ok && has_form(&mem_ops[i], (enum form)form);
                     round++)
                    ok = check(&mem_ops[i], (enum form)form, false, round) &&
                         (mem_ops[i].kind != MEM_ATOMIC || check(&mem_ops[i], (enum form)form, true, round));
            }
            if (mem_ops[i].flat && BW_TRUE(ok))
                ops_prove(mem_ops[i].flat);
        }
    }
}

/* Scalar base + offset + 4 * lane of the wave. */
static void test_by_lane_number(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned round = 0; round < 60; round++) {
            uint32_t words[2];
            int32_t offset = choose_offset(SCALAR);
            bool is_load = round % 2, ok = true;
            prepare(SCALAR, round / 2);
            fill(&mem_ops[0]);
            uint32_t start = (uint32_t)bw_rng_below(&rig.rng, 1024);
            rig.arguments->saddr = EXEC_BASE + GLOBAL_AT + start - (uint64_t)(int64_t)offset;
            memcpy(before, rig.lanes, sizeof before);
            memcpy(expected_data, rig.image, DATA_BYTES);
            memcpy(expected_scratch, rig.machine.memory + EXEC_SCRATCH, SCRATCH_BYTES);
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                uint8_t *memory = expected_data + (GLOBAL_AT - MEM_IMAGE_AT) + start + 4 * lane;
                memcpy(expected[lane], before[lane].old, sizeof expected[lane]);
                if (mem_is_active(&rig, lane) && is_load)
                    expected[lane][0] = mem_32(memory);
                else if (mem_is_active(&rig, lane))
                    memcpy(memory, before[lane].data, 4);
            }
            encode(words, is_load ? OP(FLAT_LOAD_ADDTID_B32) : OP(FLAT_STORE_ADDTID_B32), SCALAR, offset,
                   false);
            words[1] &= ~(uint32_t)MEM_V_ADDRESS;
            ok = mem_run(&rig, words, 2) == BW_ISA_DONE && compare(words);
            if (!BW_TRUE(ok))
                return;
        }
    }
    ops_prove(OP(FLAT_LOAD_ADDTID_B32));
    ops_prove(OP(FLAT_STORE_ADDTID_B32));
}

/* Waves of many groups on several threads add to, and count in, the same places: nothing is lost. */
static void test_one_address(void)
{
    static const struct {
        uint16_t row;
        uint8_t bytes;
        bool is_float;
    } ops[] = {{OP(FLAT_ATOMIC_ADD_U32), 4, false},
               {OP(FLAT_ATOMIC_ADD_U64), 8, false},
               {OP(FLAT_ATOMIC_INC_U32), 4, false},
               {OP(FLAT_ATOMIC_INC_U64), 8, false},
               {OP(FLAT_ATOMIC_ADD_F32), 4, true}};
    enum { GROUPS = 500 };
    MEM_FOR_EACH_RIG(rig)
    {
        bw_isa_pool_destroy(rig.machine.pool);
        if (!BW_EQ(bw_isa_pool_create_level(3, (enum bw_isa_level)level_, &rig.machine.pool), 0))
            return;
        for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++) {
            uint32_t words[2];
            uint64_t total = 0, wanted;
            prepare(VECTOR, 0);
            fill(&mem_ops[0]);
            memset(rig.machine.memory + GLOBAL_AT, 0, 16);
            bool is_increment =
                ops[i].row == OP(FLAT_ATOMIC_INC_U32) || ops[i].row == OP(FLAT_ATOMIC_INC_U64);
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                rig.lanes[lane].address[0] = (uint32_t)(EXEC_BASE + GLOBAL_AT);
                rig.lanes[lane].address[1] = (uint32_t)((EXEC_BASE + GLOBAL_AT) >> 32);
                rig.lanes[lane].data[0] = ops[i].is_float ? 0x3f800000 : is_increment ? 999 : 1;
                rig.lanes[lane].data[1] = 0;
            }
            rig.machine.dispatch.rsrc2 &= ~1u;
            rig.machine.dispatch.group_count[0] = GROUPS;
            encode(words, ops[i].row, VECTOR, 0, false);
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_DONE);
            memcpy(&total, rig.machine.memory + GLOBAL_AT, ops[i].bytes);
            wanted = (uint64_t)GROUPS * rig.wave_size;
            BW_EQ(ops[i].is_float ? (uint64_t)mem_f32(total) : total, is_increment ? wanted % 1000 : wanted);
            rig.machine.dispatch.group_count[0] = 1;
        }
    }
}

/* One lane goes wrong: status, address and lane are told. */
struct wrong {
    enum form form;
    uint64_t address; /* of the bad lane, with the offset */
    enum bw_isa_status status;
    const char *text; /* how the fault's text begins */
};

static bool goes_wrong(const struct mem_op *op, const struct wrong *wrong, uint64_t va)
{
    uint32_t words[2];
    unsigned bad = rig.wave_size - 5;
    uint32_t access = op->kind == MEM_LOAD    ? BW_ISA_READ
                      : op->kind == MEM_STORE ? BW_ISA_WRITE
                                              : BW_ISA_ATOMIC;
    prepare(wrong->form, 0);
    fill(op);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        places[lane].space = wrong->form >= SCRATCH_V ? SCRATCH : GLOBAL;
        places[lane].offset = 16 * (lane % 8) + 64;
    }
    put_addresses(wrong->form, 8);
    uint64_t address = wrong->address - 8;
    if (wrong->form == SCALAR) { /* a base below all that is tried */
        uint32_t moved = (uint32_t)(rig.arguments->saddr - EXEC_BASE);
        rig.arguments->saddr = EXEC_BASE;
        for (unsigned lane = 0; lane < rig.wave_size; lane++)
            rig.lanes[lane].address[0] += moved;
        address -= EXEC_BASE;
    }
    rig.lanes[bad].address[0] = (uint32_t)address;
    if (wrong->form == VECTOR || wrong->form == FLAT)
        rig.lanes[bad].address[1] = (uint32_t)(address >> 32);
    encode(words, op->flat, wrong->form, 8, false);
    if (!BW_EQ(mem_run(&rig, words, 2), wrong->status) || !BW_EQ(rig.machine.result.va, va) ||
        !BW_EQ(rig.machine.result.lane, bad) || !BW_EQ(rig.machine.result.access, access))
        return mem_differs(&rig, words, 2, rig.machine.result.text, 0, va, rig.machine.result.va);
    if (wrong->text && strncmp(rig.machine.result.text, wrong->text, strlen(wrong->text)) != 0)
        return BW_STR(rig.machine.result.text, wrong->text);
    return true;
}

static void test_faults(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        uint64_t end = EXEC_BASE + EXEC_BYTES, lds = rig.machine.dispatch.shared_aperture,
                 scratch = rig.machine.dispatch.private_aperture, code = EXEC_BASE + 0x100000;
        for (unsigned i = 0; i < MEM_OPS; i++) {
            const struct mem_op *op = &mem_ops[i];
            for (unsigned form = VECTOR; form <= FLAT && op->flat; form++) {
                struct wrong wrong = {.form = (enum form)form, .status = BW_ISA_MEMORY_FAULT};
                if (!has_form(op, wrong.form))
                    continue;
                wrong.address =
                    op->kind == MEM_ATOMIC ? end : end - op->bytes + 1; /* its last byte is missing */
                BW_TRUE(goes_wrong(op, &wrong, end)); /* that one is named */
                wrong.address = code; /* which nobody may write */
                if (op->kind != MEM_LOAD)
                    BW_TRUE(goes_wrong(op, &wrong, wrong.address));
                wrong.address = EXEC_BASE + GLOBAL_AT + op->bytes / 2u;
                wrong.status = BW_ISA_MISALIGNED;
                if (op->kind == MEM_ATOMIC)
                    BW_TRUE(goes_wrong(op, &wrong, wrong.address));
            }
            if (has_form(op, FLAT)) {
                struct wrong wrong = {FLAT, lds + MEM_LDS_BYTES - op->bytes / 2u, BW_ISA_LDS_OUT_OF_RANGE,
                                      NULL};
                wrong.address += op->bytes == 1 ? 0 : op->kind == MEM_ATOMIC ? op->bytes / 2u : 0;
                BW_TRUE(goes_wrong(op, &wrong, wrong.address));
                wrong = (struct wrong){FLAT, scratch + LANE_BYTES - op->bytes + 1, BW_ISA_MEMORY_FAULT,
                                       "beyond the wave's scratch of 208 bytes a lane: flat_"};
                if (op->kind != MEM_ATOMIC)
                    BW_TRUE(goes_wrong(op, &wrong, wrong.address));
                wrong = (struct wrong){FLAT, scratch + 64, BW_ISA_UNSUPPORTED, "an atomic of scratch: flat_"};
                if (op->kind == MEM_ATOMIC && op->bytes == 8)
                    BW_TRUE(goes_wrong(op, &wrong, wrong.address));
            }
            for (unsigned form = SCRATCH_V; form <= SCRATCH_VS; form += 2) {
                struct wrong wrong = {(enum form)form, LANE_BYTES - op->bytes + 1u, BW_ISA_MEMORY_FAULT,
                                      "beyond the wave's scratch of 208 bytes a lane: scratch_"};
                if (!has_form(op, wrong.form))
                    continue;
                BW_TRUE(goes_wrong(op, &wrong, scratch + wrong.address));
                wrong.address = 4; /* 32 bits do not wrap around: -4 + 8 is far away */
                BW_TRUE(goes_wrong(op, &wrong, scratch + 0x100000004ull));
            }
        }
    }
}

OPS_TEST_MAIN("isa exec flat", {"loads, stores and atomics", test_operations},
              {"addresses by lane number", test_by_lane_number},
              {"all lanes at one address", test_one_address}, {"faults name address and lane", test_faults})
