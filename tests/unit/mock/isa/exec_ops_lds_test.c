/* Goal: every LDS operation does what the RDNA3 ISA document says of it (sections 12.5, 13, 16.15), in both
 * wave sizes, at any alignment, with lanes off, out of range and wrapping around, denormals flushed or not.
 */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_memory_ops.h"

#define OP(name) BW_GFX11_##name

static struct mem_rig rig;
static int64_t places[MEM_LANES]; /* the byte of LDS that a lane means; may lie outside */

static bool is_inside(int64_t place, unsigned bytes)
{
    return place >= 0 && place + bytes <= MEM_LDS_BYTES;
}

/* Somewhere outside, or half outside, aligned like the operation wants it. */
static int64_t outside(unsigned bytes, bool is_aligned)
{
    static const uint32_t far[] = {0x800, 0x1000, 0xfff8, 0x10000, 0x7ffffff8, 0x80000000, 0xfffff000};
    int64_t place = bw_rng_below(&rig.rng, 2) ? far[bw_rng_below(&rig.rng, sizeof far / sizeof far[0])]
                                              : (int64_t)(MEM_LDS_BYTES + bw_rng_below(&rig.rng, 16));
    return is_aligned ? place & ~(int64_t)(bytes - 1) : place;
}

/* Loads: anywhere. Stores and atomics: no two lanes on one byte. One lane in eight is outside. */
static void choose_places(const struct mem_op *op)
{
    unsigned stride = op->kind == MEM_ATOMIC ? op->bytes : op->bytes + 3u;
    unsigned turn = (unsigned)bw_rng_below(&rig.rng, rig.wave_size) | 1;
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        if (bw_rng_below(&rig.rng, 8) == 0)
            places[lane] = outside(op->bytes, op->kind == MEM_ATOMIC);
        else if (op->kind == MEM_LOAD)
            places[lane] = (int64_t)bw_rng_below(&rig.rng, MEM_LDS_BYTES - op->bytes + 1);
        else
            places[lane] = (lane * turn % rig.wave_size) * stride +
                           (op->kind == MEM_STORE ? bw_rng_below(&rig.rng, 4) : 0);
    }
}

static uint32_t choose_offset(void)
{
    static const uint32_t offsets[] = {0, 1, 4, 8, 255, 256, 2048, 65535};
    uint64_t choice = bw_rng_below(&rig.rng, 12);
    return choice < 8 ? offsets[choice] : (uint32_t)bw_rng_below(&rig.rng, 65536);
}

/* Single precision by bits 5:4 of MODE, double by 7:6; the lower allows denormal inputs, the upper outputs.
 */
static struct mem_flush flush_of(const struct mem_op *op)
{
    uint32_t bits = op->bytes == 8 ? rig.denormal >> 2 : rig.denormal;
    return (struct mem_flush){!(bits & 1), !(bits & 2)};
}

static uint8_t expected_image[MEM_IMAGE_BYTES];

/* After the run: image, results, and that the data registers are as they were. */
static bool compare(const struct mem_lane *before, uint32_t expected[MEM_LANES][4], const uint32_t *words)
{
    memset(expected_image + MEM_LDS_BYTES, 0, MEM_IMAGE_BYTES - MEM_LDS_BYTES); /* LDS reads 0 there */
    for (unsigned i = 0; i < MEM_LDS_BYTES; i++) {
        if (rig.image[i] != expected_image[i])
            return mem_differs(&rig, words, 2, "byte", i, expected_image[i], rig.image[i]);
    }
    return mem_lanes_are(&rig, words, expected, before);
}

static struct mem_lane before[MEM_LANES];
static uint32_t expected[MEM_LANES][4];

static void remember(void)
{
    memcpy(before, rig.lanes, sizeof before);
    memcpy(expected_image, rig.image, sizeof expected_image);
    for (unsigned lane = 0; lane < MEM_LANES; lane++)
        memcpy(expected[lane], before[lane].old, sizeof expected[lane]);
}

static bool run_and_compare(const uint32_t *words)
{
    if (mem_run(&rig, words, 2) != BW_ISA_DONE)
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, BW_ISA_DONE,
                           rig.machine.result.status);
    return compare(before, expected, words);
}

static bool check_single(const struct mem_op *op, unsigned row, unsigned round)
{
    uint32_t words[2], offset = choose_offset(), ignored[4];
    bool returns = bw_gfx11_ops[row].dst.type != BW_T_NONE;
    mem_fill(&rig, op);
    choose_places(op);
    rig.arguments->exec = mem_exec(&rig, round);
    rig.denormal = round < 3 ? 0xf : (uint32_t)bw_rng_below(&rig.rng, 16);
    for (unsigned lane = 0; lane < rig.wave_size; lane++)
        rig.lanes[lane].address[0] = (uint32_t)places[lane] - offset;
    remember();
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        uint8_t *memory = is_inside(places[lane], op->bytes) ? expected_image + places[lane] : NULL;
        if (mem_is_active(&rig, lane))
            mem_perform(op, memory, before[lane].data, before[lane].data2, flush_of(op),
                        returns ? expected[lane] : ignored);
    }
    mem_encode_ds(words, row, offset);
    if (mem_run(&rig, words, 2) != BW_ISA_DONE)
        return mem_differs(&rig, words, 2, rig.machine.result.text, rig.machine.result.va, BW_ISA_DONE,
                           rig.machine.result.status);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        if (op->kind == MEM_ATOMIC && is_inside(places[lane], op->bytes))
            mem_forgive_nans(op, expected_image + places[lane], rig.image + places[lane]);
    }
    return compare(before, expected, words);
}

static void prove(uint16_t row, uint16_t other)
{
    if (row)
        ops_prove(row);
    if (other)
        ops_prove(other);
}

static void test_single_address(void)
{
    enum { ROUNDS = 12 };
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned i = 0; i < MEM_OPS; i++) {
            bool ok = true;
            for (unsigned round = 0; round < ROUNDS && ok; round++)
                ok = (!mem_ops[i].ds || check_single(&mem_ops[i], mem_ops[i].ds, round)) &&
                     (!mem_ops[i].ds_return || check_single(&mem_ops[i], mem_ops[i].ds_return, round));
            if (BW_TRUE(ok))
                prove(mem_ops[i].ds, mem_ops[i].ds_return);
        }
    }
}

/* Two addresses: units of the element, or 64 of them. */
struct pair_op {
    uint16_t row;
    uint8_t kind, bytes; /* enum mem_kind; ATOMIC: an exchange */
    uint16_t unit;
};
static const struct pair_op pair_ops[] = {
    {OP(DS_LOAD_2ADDR_B32), MEM_LOAD, 4, 4},
    {OP(DS_LOAD_2ADDR_STRIDE64_B32), MEM_LOAD, 4, 256},
    {OP(DS_LOAD_2ADDR_B64), MEM_LOAD, 8, 8},
    {OP(DS_LOAD_2ADDR_STRIDE64_B64), MEM_LOAD, 8, 512},
    {OP(DS_STORE_2ADDR_B32), MEM_STORE, 4, 4},
    {OP(DS_STORE_2ADDR_STRIDE64_B32), MEM_STORE, 4, 256},
    {OP(DS_STORE_2ADDR_B64), MEM_STORE, 8, 8},
    {OP(DS_STORE_2ADDR_STRIDE64_B64), MEM_STORE, 8, 512},
    {OP(DS_STOREXCHG_2ADDR_RTN_B32), MEM_ATOMIC, 4, 4},
    {OP(DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32), MEM_ATOMIC, 4, 256},
    {OP(DS_STOREXCHG_2ADDR_RTN_B64), MEM_ATOMIC, 8, 8},
    {OP(DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64), MEM_ATOMIC, 8, 512},
};

/* Both loads happen before both stores; a load of which some part is outside reads 0 whole ("if any part of
 * the LDS-address is out of range, the entire instruction returns zero", section 3.3.4.1). */
static void perform_pair(const struct pair_op *op, const int64_t at[2], const struct mem_lane *lane,
                         uint32_t *d)
{
    bool inside[2] = {is_inside(at[0], op->bytes), is_inside(at[1], op->bytes)};
    unsigned dwords = op->bytes / 4;
    if (op->kind != MEM_STORE)
        memset(d, 0, 2 * op->bytes);
    for (unsigned i = 0; i < 2 && op->kind != MEM_STORE; i++) {
        if (inside[i] && (op->kind == MEM_ATOMIC || inside[1 - i]))
            memcpy(d + i * dwords, expected_image + at[i], op->bytes);
    }
    for (unsigned i = 0; i < 2 && op->kind != MEM_LOAD; i++) {
        if (inside[i])
            memcpy(expected_image + at[i], i ? lane->data2 : lane->data, op->bytes);
    }
}

/* No two lanes share a byte: their pairs lie next to each other, or the second elements in a region of their
 * own. */
static bool check_pair(const struct pair_op *op, unsigned round)
{
    static const struct mem_op plain = {"pair", MEM_LOAD, 8, false, "int", NULL, NULL, 0, 0, 0, 0};
    uint32_t words[2];
    bool is_adjacent = round % 2 && op->unit < 64;
    int delta = is_adjacent ? 1 : 64 * op->bytes / op->unit;
    if (round % 5 == 4)
        delta = (int)bw_rng_below(&rig.rng, 3) * (op->kind == MEM_LOAD);
    unsigned low = (unsigned)bw_rng_below(&rig.rng, 256 - (unsigned)delta);
    unsigned offsets[2] = {low, low + (unsigned)delta};
    bool is_swapped = bw_rng_below(&rig.rng, 2);
    mem_fill(&rig, &plain);
    rig.arguments->exec = mem_exec(&rig, round);
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        unsigned stride = is_adjacent ? 2u * op->bytes : op->bytes;
        int64_t place = (int64_t)lane * stride;
        if (op->kind == MEM_LOAD)
            place = (int64_t)bw_rng_below(&rig.rng, MEM_LDS_BYTES + 64);
        else if (bw_rng_below(&rig.rng, 8) == 0)
            place = outside(op->bytes, true);
        places[lane] = place;
        rig.lanes[lane].address[0] = (uint32_t)place - low * op->unit;
    }
    remember();
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        int64_t second = (int64_t)(uint32_t)(places[lane] + (int64_t)(delta * op->unit));
        int64_t at[2] = {is_swapped ? second : places[lane], is_swapped ? places[lane] : second};
        if (mem_is_active(&rig, lane))
            perform_pair(op, at, &before[lane], expected[lane]);
    }
    mem_encode_ds(words, op->row, offsets[is_swapped] | offsets[!is_swapped] << 8);
    return run_and_compare(words);
}

static void test_two_addresses(void)
{
    enum { ROUNDS = 24 };
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned i = 0; i < sizeof pair_ops / sizeof pair_ops[0]; i++) {
            bool ok = true;
            for (unsigned round = 0; round < ROUNDS && ok; round++)
                ok = check_pair(&pair_ops[i], round);
            if (BW_TRUE(ok))
                prove(pair_ops[i].row, 0);
        }
    }
}

/* An exchange of one place with itself: both results are what was there, the second datum stays. */
static void test_exchange_with_itself(void)
{
    uint32_t words[2];
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        mem_fill(&rig, &mem_ops[0]);
        rig.arguments->exec = mem_exec(&rig, 0);
        for (unsigned lane = 0; lane < rig.wave_size; lane++)
            rig.lanes[lane].address[0] = 4 * lane;
        remember();
        for (unsigned lane = 0; lane < rig.wave_size; lane++) {
            memcpy(&expected[lane][0], expected_image + 4 * lane, 4);
            memcpy(&expected[lane][1], expected_image + 4 * lane, 4);
        }
        for (unsigned lane = 0; lane < rig.wave_size; lane++)
            memcpy(expected_image + 4 * lane, before[lane].data2, 4);
        mem_encode_ds(words, OP(DS_STOREXCHG_2ADDR_RTN_B32), 0);
        BW_TRUE(run_and_compare(words));
    }
}

/* The destination may be the address or the data: what a lane needs is read before anything is written. */
static void test_registers_overlap(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned i = 0; i < sizeof pair_ops / sizeof pair_ops[0]; i++) {
            const struct pair_op *op = &pair_ops[i];
            uint32_t words[2];
            if (op->kind == MEM_STORE)
                continue;
            for (unsigned round = 0; round < 2; round++) {
                mem_fill(&rig, &mem_ops[0]);
                rig.arguments->exec = mem_exec(&rig, 2);
                /* the destination v[5:8] holds the address (v5) or all data (v[5:6], v[7:8]) */
                for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                    rig.lanes[lane].address[0] = op->bytes * lane;
                    if (round == 0)
                        rig.lanes[lane].data[0] = op->bytes * lane;
                }
                remember();
                for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                    struct mem_lane operands = before[lane];
                    int64_t at[2] = {op->bytes * lane,
                                     op->bytes * lane + (op->unit > 64 ? op->unit : 64 * op->unit)};
                    memcpy(operands.data2, before[lane].data + 2, 8);
                    if (mem_is_active(&rig, lane))
                        perform_pair(op, at, &operands, before[lane].data);
                }
                mem_encode_ds(words, op->row, (op->unit > 64 ? 1u : 64u) << 8);
                words[1] = (words[1] & 0x0000ff00) | (uint32_t)MEM_V_DATA << 24 |
                           (op->kind == MEM_ATOMIC ? (MEM_V_DATA + 2) << 16 : 0) |
                           (round == 0 ? MEM_V_DATA : MEM_V_ADDRESS);
                BW_TRUE(run_and_compare(words));
            }
        }
    }
}

/* All lanes on one place: whatever their order, each addition is done whole and sees another value. */
static void test_one_address(void)
{
    static const struct {
        uint16_t row;
        uint8_t bytes;
        int64_t step; /* what one lane with data 1 does */
    } ops[] = {{OP(DS_ADD_RTN_U32), 4, 1},
               {OP(DS_SUB_RTN_U32), 4, -1},
               {OP(DS_ADD_RTN_U64), 8, 1},
               {OP(DS_SUB_RTN_U64), 8, -1},
               {OP(DS_ADD_RTN_F32), 4, 1}};
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned i = 0; i < sizeof ops / sizeof ops[0]; i++) {
            bool is_float = ops[i].row == OP(DS_ADD_RTN_F32), seen[MEM_LANES] = {false};
            uint32_t words[2], one = is_float ? 0x3f800000 : 1;
            uint64_t start = is_float ? 0 : 0xffffffe0u;
            unsigned active = 0;
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, 1);
            memcpy(rig.image + 16, &start, 8);
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                rig.lanes[lane].address[0] = 16;
                rig.lanes[lane].data[0] = one;
                rig.lanes[lane].data[1] = 0;
                active += mem_is_active(&rig, lane);
            }
            mem_encode_ds(words, ops[i].row, 0);
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_DONE);
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                uint64_t result =
                    ops[i].bytes == 8 ? mem_wide(rig.lanes[lane].result) : rig.lanes[lane].result[0];
                if (!mem_is_active(&rig, lane))
                    continue;
                uint64_t steps = is_float          ? (uint64_t)mem_f32(result)
                                 : ops[i].step > 0 ? result - start
                                                   : start - result;
                if (ops[i].bytes == 4)
                    steps = (uint32_t)steps;
                if (BW_TRUE(steps < active))
                    BW_TRUE(!seen[steps]);
                seen[steps % MEM_LANES] = true;
            }
            uint64_t total = 0, wanted = start + (uint64_t)(ops[i].step * (int64_t)active);
            memcpy(&total, rig.image + 16, ops[i].bytes);
            if (is_float)
                BW_EQ((uint64_t)mem_f32(total), active);
            else
                BW_EQ(total, ops[i].bytes == 4 ? (uint32_t)wanted : wanted);
        }
    }
}

/* A misaligned atomic is a violation that names its address. */
static void test_misaligned(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned i = 0; i < MEM_OPS; i++) {
            uint32_t words[2];
            unsigned row = mem_ops[i].ds_return;
            if (mem_ops[i].kind != MEM_ATOMIC || !row)
                continue;
            mem_fill(&rig, &mem_ops[i]);
            rig.arguments->exec = rig.wave_size == 64 ? ~0ull : 0xffffffff;
            for (unsigned lane = 0; lane < rig.wave_size; lane++)
                rig.lanes[lane].address[0] =
                    8 * lane + (lane == rig.wave_size - 3 ? mem_ops[i].bytes / 2 : 0);
            mem_encode_ds(words, row, 24);
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_LDS_MISALIGNED);
            BW_EQ(rig.machine.result.va, 8 * (rig.wave_size - 3) + mem_ops[i].bytes / 2 + 24);
            BW_EQ(rig.machine.result.lane, rig.wave_size - 3);
            BW_EQ(rig.machine.result.access, BW_ISA_ATOMIC);
        }
    }
}

static unsigned reversed(unsigned lane)
{
    unsigned r = 0;
    for (unsigned bit = 0; bit < 5; bit++)
        r |= (lane >> bit & 1) << (4 - bit);
    return r;
}

/* The lane that DS_SWIZZLE_B32 reads; rotations only with a mask of 0, for the document's examples with
 * others contradict its pseudocode. */
static unsigned swizzle_from(unsigned offset, unsigned i)
{
    unsigned j;
    if (offset >= 0xe000)
        j = reversed(i & 31) >> __builtin_popcount(offset & 31) | (i & offset & 31);
    else if (offset >= 0xc000)
        j = (i + (offset >> 10 & 1 ? 32 - (offset >> 5 & 31) : offset >> 5 & 31)) & 31;
    else if (offset & 0x8000)
        j = (i & ~3u) + (offset >> (2 * (i & 3)) & 3);
    else
        j = (((i & 31) & (offset & 31)) | (offset >> 5 & 31)) ^ (offset >> 10 & 31);
    return (j & 31) | (i & 32);
}

static void test_swizzle(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned round = 0; round < 400; round++) {
            uint32_t words[2], offset = (uint32_t)bw_rng_below(&rig.rng, 65536);
            if (round % 4 == 0)
                offset = 0xe000 | (offset & 31);
            else if (round % 4 == 1)
                offset = 0xc000 | (offset & 0x7e0);
            else if (offset >= 0xc000)
                offset &= 0xbfff;
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, round);
            remember();
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                unsigned from = swizzle_from(offset, lane);
                if (mem_is_active(&rig, lane))
                    expected[lane][0] = mem_is_active(&rig, from) ? before[from].address[0] : 0;
            }
            mem_encode_ds(words, OP(DS_SWIZZLE_B32), offset);
            if (!BW_TRUE(run_and_compare(words)))
                return;
        }
    }
}

/* The document's own examples: the input of lane i is i + 1. */
static void test_swizzle_examples(void)
{
    static const struct {
        uint16_t offset;
        uint8_t from[32];
    } examples[] = {
        {0xe000,
         {0x01, 0x11, 0x09, 0x19, 0x05, 0x15, 0x0d, 0x1d, 0x03, 0x13, 0x0b, 0x1b, 0x07, 0x17, 0x0f, 0x1f,
          0x02, 0x12, 0x0a, 0x1a, 0x06, 0x16, 0x0e, 0x1e, 0x04, 0x14, 0x0c, 0x1c, 0x08, 0x18, 0x10, 0x20}},
        {0xe010,
         {0x01, 0x09, 0x05, 0x0d, 0x03, 0x0b, 0x07, 0x0f, 0x02, 0x0a, 0x06, 0x0e, 0x04, 0x0c, 0x08, 0x10,
          0x11, 0x19, 0x15, 0x1d, 0x13, 0x1b, 0x17, 0x1f, 0x12, 0x1a, 0x16, 0x1e, 0x14, 0x1c, 0x18, 0x20}},
        {0xe01f,
         {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10,
          0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20}},
        {0xc020,
         {0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11,
          0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x01}},
        {0xc420,
         {0x20, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
          0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f}},
    };
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned i = 0; i < sizeof examples / sizeof examples[0]; i++) {
            uint32_t words[2];
            rig.arguments->exec = mem_exec(&rig, 0);
            for (unsigned lane = 0; lane < rig.wave_size; lane++)
                rig.lanes[lane].address[0] = lane + 1;
            mem_encode_ds(words, OP(DS_SWIZZLE_B32), examples[i].offset);
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_DONE);
            for (unsigned lane = 0; lane < rig.wave_size; lane++)
                BW_EQ(rig.lanes[lane].result[0], examples[i].from[lane % 32] + lane / 32 * 32u);
        }
    }
}

/* Each half of 32 lanes on its own; the highest lane that sends somewhere wins there. */
static void perform_permute(uint32_t offset, bool is_backward)
{
    uint32_t sent[MEM_LANES] = {0};
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        unsigned other = ((before[lane].address[0] + offset) >> 2 & 31) | (lane & 32);
        if (!is_backward && mem_is_active(&rig, lane))
            sent[other] = before[lane].data[0];
        if (is_backward && mem_is_active(&rig, other))
            sent[lane] = before[other].data[0];
    }
    for (unsigned lane = 0; lane < rig.wave_size; lane++) {
        if (mem_is_active(&rig, lane))
            expected[lane][0] = sent[lane];
    }
}

static void test_permute(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        for (unsigned round = 0; round < 100; round++) {
            uint32_t words[2], offset = choose_offset();
            bool is_backward = round % 2;
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, round / 2);
            for (unsigned lane = 0; lane < rig.wave_size; lane++)
                rig.lanes[lane].address[0] = (uint32_t)bw_rng_next(&rig.rng);
            remember();
            perform_permute(offset, is_backward);
            mem_encode_ds(words, is_backward ? OP(DS_BPERMUTE_B32) : OP(DS_PERMUTE_B32), offset);
            if (!BW_TRUE(run_and_compare(words)))
                return;
        }
    }
    ops_prove(OP(DS_PERMUTE_B32));
    ops_prove(OP(DS_BPERMUTE_B32));
}

/* The address is M0[15:0] + offset + 4 * lane of the wave. */
static void test_by_lane_number(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned round = 0; round < 60; round++) {
            uint32_t words[2], offset = (uint32_t)bw_rng_below(&rig.rng, 1024) * 4;
            bool is_load = round % 2;
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, round / 2);
            rig.arguments->m0 =
                (uint32_t)bw_rng_next(&rig.rng) << 16 | (uint32_t)bw_rng_below(&rig.rng, 512) * 4;
            remember();
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                int64_t place = (int64_t)((rig.arguments->m0 & 0xffff) + offset + 4 * lane);
                if (mem_is_active(&rig, lane) && is_load)
                    expected[lane][0] = is_inside(place, 4) ? mem_32(expected_image + place) : 0;
                if (mem_is_active(&rig, lane) && !is_load && is_inside(place, 4))
                    memcpy(expected_image + place, before[lane].data, 4);
            }
            mem_encode_ds(words, is_load ? OP(DS_LOAD_ADDTID_B32) : OP(DS_STORE_ADDTID_B32), offset);
            if (!BW_TRUE(run_and_compare(words)))
                return;
        }
    }
    ops_prove(OP(DS_LOAD_ADDTID_B32));
    ops_prove(OP(DS_STORE_ADDTID_B32));
}

/* The number of active lanes is added to, or taken from, one dword at M0[15:0] + offset, once for the wave.
 */
static void test_append_and_consume(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned round = 0; round < 48; round++) {
            uint32_t words[2], offset = (uint32_t)bw_rng_below(&rig.rng, 600) * 4, value = 0, changed;
            bool is_append = round % 2;
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, round / 2);
            rig.arguments->m0 = (uint32_t)bw_rng_below(&rig.rng, 40) * 4;
            remember();
            int64_t place = rig.arguments->m0 + offset;
            uint32_t count = (uint32_t)__builtin_popcountll(rig.arguments->exec);
            if (is_inside(place, 4)) {
                value = mem_32(expected_image + place);
                changed = is_append ? value + count : value - count;
                memcpy(expected_image + place, &changed, 4);
            }
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                if (mem_is_active(&rig, lane))
                    expected[lane][0] = value;
            }
            mem_encode_ds(words, is_append ? OP(DS_APPEND) : OP(DS_CONSUME), offset);
            if (!BW_TRUE(run_and_compare(words)))
                return;
            mem_encode_ds(words, is_append ? OP(DS_APPEND) : OP(DS_CONSUME), (uint32_t)(2 - (place & 2)));
            rig.arguments->m0 = 0;
            rig.arguments->exec = 1;
            BW_EQ(mem_run(&rig, words, 2), BW_ISA_LDS_MISALIGNED);
            BW_EQ(rig.machine.result.va, 2 - (place & 2));
        }
    }
    ops_prove(OP(DS_APPEND));
    ops_prove(OP(DS_CONSUME));
}

/* Each dword is exchanged where its datum's sign bit asks for it, which is not stored; the address loses its
 * low three bits. */
static void test_conditional_exchange(void)
{
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        for (unsigned round = 0; round < 48; round++) {
            uint32_t words[2], offset = (uint32_t)bw_rng_below(&rig.rng, 512);
            mem_fill(&rig, &mem_ops[0]);
            rig.arguments->exec = mem_exec(&rig, round);
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                places[lane] = 8 * lane + bw_rng_below(&rig.rng, 8);
                rig.lanes[lane].address[0] = (uint32_t)places[lane] - offset;
            }
            remember();
            for (unsigned lane = 0; lane < rig.wave_size; lane++) {
                uint8_t *memory = expected_image + (places[lane] & ~7ll);
                for (unsigned i = 0; i < 2 && mem_is_active(&rig, lane); i++) {
                    uint32_t datum = before[lane].data[i], low = datum & 0x7fffffff;
                    expected[lane][i] = mem_32(memory + 4 * i);
                    if (datum >> 31)
                        memcpy(memory + 4 * i, &low, 4);
                }
            }
            mem_encode_ds(words, OP(DS_CONDXCHG32_RTN_B64), offset);
            if (!BW_TRUE(run_and_compare(words)))
                return;
        }
    }
    ops_prove(OP(DS_CONDXCHG32_RTN_B64));
}

static void test_nothing(void)
{
    uint32_t words[2];
    MEM_FOR_EACH_RIG(rig)
    {
        rig.in_lds = true;
        mem_fill(&rig, &mem_ops[0]);
        rig.arguments->exec = mem_exec(&rig, 0);
        remember();
        mem_encode_ds(words, OP(DS_NOP), 0);
        BW_TRUE(run_and_compare(words));
    }
    ops_prove(OP(DS_NOP));
}

OPS_TEST_MAIN("isa exec lds", {"loads, stores and atomics of one address", test_single_address},
              {"two addresses", test_two_addresses}, {"an exchange with itself", test_exchange_with_itself},
              {"registers that overlap", test_registers_overlap},
              {"all lanes at one address", test_one_address},
              {"a misaligned atomic names its address", test_misaligned}, {"swizzle", test_swizzle},
              {"the document's examples of swizzle", test_swizzle_examples}, {"permutations", test_permute},
              {"addresses by lane number", test_by_lane_number},
              {"append and consume", test_append_and_consume},
              {"conditional exchange", test_conditional_exchange}, {"nothing", test_nothing})
