/* Goal: WMMA agrees with the RDNA3 ISA document, section 7.9: where each element of A, B, C and D lies in
 * both wave sizes, EXEC that does not count, signs and modifiers, constants; and, of halves, with the order
 * of the sum and its roundings that were measured (exec_ops_dot2.h). */
#include "tests/check.h"

#include "base/rng.h"
#include "tests/unit/mock/isa/exec_ops_dot2.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"
#include "tests/unit/mock/isa/exec_proof.h"

enum {
    N = 16,
    LANE_BYTES = 256, /* A, B, C, what D held: 32 bytes each; D at 128 */
    RESULT_AT = 128,
    EXEC_LO_AT = 23,
    EXEC_HI_AT = 25,
    WMMA_AT = 26,
    ROUNDS = 40,
};

static const uint32_t code[] = {
    0xf4040100, 0xf8000000, /* s_load_b64 s[4:5], s[0:1], null */
    0x30500088,             /* v_lshlrev_b32_e32 v40, 8, v0 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xdc5e0000, 0x00040028, /* global_load_b128 v[0:3], v40, s[4:5] */
    0xdc5e0010, 0x04040028, /* v[4:7], offset:16 */
    0xdc5e0020, 0x08040028, /* v[8:11], offset:32 */
    0xdc5e0030, 0x0c040028, /* v[12:15], offset:48 */
    0xdc5e0040, 0x10040028, /* v[16:19], offset:64 */
    0xdc5e0050, 0x14040028, /* v[20:23], offset:80 */
    0xdc5e0060, 0x18040028, /* v[24:27], offset:96 */
    0xdc5e0070, 0x1c040028, /* v[28:31], offset:112 */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0xbf800000,             /* s_nop 0 */
    0xbefe00ff, 0,          /* s_mov_b32 exec_lo, EXEC */
    0xbeff00ff, 0,          /* s_mov_b32 exec_hi, EXEC >> 32 */
    0,          0,          /* the operation: v[24:31], v[0:7], v[8:15], v[16:23] */
    0xbefe00c1,             /* s_mov_b32 exec_lo, -1 */
    0xbeff00c1,             /* s_mov_b32 exec_hi, -1 */
    0xdc760080, 0x00041828, /* global_store_b128 v40, v[24:27], s[4:5] offset:128 */
    0xdc760090, 0x00041c28, /* v[28:31], offset:144 */
    0xbfb00000,             /* s_endpgm */
};

/* An operation in one form: what A and B hold, what C and D. */
enum element { F16, BF16, F32, I32, IU8, IU4 };
struct matrix_case {
    uint16_t op;
    enum element factor, sum;
};
static const struct matrix_case cases[] = {
    {BW_GFX11_V_WMMA_F32_16X16X16_F16, F16, F32}, {BW_GFX11_V_WMMA_F32_16X16X16_BF16, BF16, F32},
    {BW_GFX11_V_WMMA_F16_16X16X16_F16, F16, F16}, {BW_GFX11_V_WMMA_BF16_16X16X16_BF16, BF16, BF16},
    {BW_GFX11_V_WMMA_I32_16X16X16_IU8, IU8, I32}, {BW_GFX11_V_WMMA_I32_16X16X16_IU4, IU4, I32},
};

struct form {
    unsigned wave_size;
    uint64_t exec;
    uint8_t neg, neg_hi, op_sel;
    bool clamp, keep_finite;
    int constant; /* inline constant's code for C, or 0: registers */
};

static uint32_t small_bits(int value, enum element element)
{
    uint32_t single = bits_of_f32((float)value), magnitude = single & 0x7fffffff;
    if (element == BF16)
        return single >> 16;
    return value == 0 ? 0 : (single >> 31) << 15 | ((magnitude >> 13) - (112u << 10));
}

/* 16 bits: small whole numbers, numbers near one, what is at the ends of the range, rarely more than that. */
static uint32_t half_bits(struct bw_rng *rng, enum element element)
{
    static const uint16_t ends[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff,
                                    0xfbff, 0x0080, 0x007f, 0x7f7f, 0x8080, 0x3c00, 0xbf80};
    static const uint16_t specials[] = {0x7c00, 0xfc00, 0x7c01, 0x7e00, 0x7f80, 0xff80, 0x7f81, 0xffc0};
    uint32_t random = (uint32_t)bw_rng_next(rng);
    switch (bw_rng_below(rng, 64)) {
    case 0:
        return specials[random % 8];
    case 1:
    case 2:
        return ends[random % 14];
    case 3:
        return random & 0xffff;
    default:
        if (random & 0x10000)
            return small_bits((int)bw_rng_below(rng, 5) - 2, element);
        return element == BF16 ? (random & 0x81ff) | 0x3e00 : (random & 0x8fff) | 0x3000;
    }
}

static uint32_t single_bits(struct bw_rng *rng)
{
    static const uint32_t ends[] = {0,          0x80000000, 1,          0x007fffff, 0x00800000,
                                    0x7f7fffff, 0x7f800000, 0xff800000, 0x7f812345, 0xffc00001};
    uint32_t random = (uint32_t)bw_rng_next(rng);
    unsigned choice = (unsigned)bw_rng_below(rng, 16);
    return choice == 0 ? ends[random % 10] : choice == 1 ? random : (random & 0x83ffffff) | 0x3c000000;
}

/* The lane's registers, as dwords: A at 0, B at 8, C at 16, D at 24. */
typedef uint32_t lanes[64][32];

static void fill(struct bw_rng *rng, const struct matrix_case *c, unsigned wave_size, lanes words)
{
    for (unsigned lane = 0; lane < wave_size; lane++) {
        for (unsigned i = 0; i < 32; i++) {
            enum element element = i < 16 ? c->factor : c->sum;
            uint32_t random = (uint32_t)bw_rng_next(rng);
            words[lane][i] = element == F32 ? single_bits(rng)
                             : element == F16 || element == BF16
                                 ? half_bits(rng, element) | half_bits(rng, element) << 16
                             : i >= 16 && bw_rng_below(rng, 3) ? (random & 0x80000000u) ^ 0x7fffff00u
                                                               : random;
            if (i < 16 && lane >= N) /* A and B are repeated every 16 lanes */
                words[lane][i] = words[lane % N][i];
        }
    }
}

/* Element k of a row of A or a column of B, an integer. */
static int64_t factor(const struct matrix_case *c, const struct form *form, lanes words, unsigned lane,
                      unsigned k, bool is_b)
{
    const uint32_t *registers = &words[lane][is_b ? 8 : 0];
    unsigned bits = c->factor == IU8 ? 8 : 4, at = k * bits;
    int64_t field = registers[at / 32] >> (at % 32) & ((1u << bits) - 1);
    bool is_signed = form->neg >> is_b & 1;
    return is_signed && field >> (bits - 1) ? field - (1 << bits) : field;
}

/* Elements 2 * i and 2 * i + 1, halves, with their signs. */
static uint32_t pair(const struct form *form, lanes words, unsigned lane, unsigned i, bool is_b)
{
    uint32_t low = form->neg >> is_b & 1 ? 0x8000 : 0, high = form->neg_hi >> is_b & 1 ? 0x80000000 : 0;
    return words[lane][i + (is_b ? 8 : 0)] ^ low ^ high;
}

/* Where element (row, column) of C and D lies: the lane, and which of its registers. */
static void place(unsigned wave_size, unsigned row, unsigned column, unsigned *lane, unsigned *reg)
{
    unsigned rows_in_register = wave_size / N;
    *reg = row / rows_in_register;
    *lane = row % rows_in_register * N + column;
}

/* The bits of C's element: an inline constant is one of its type, an integer one its bits. */
static uint32_t addend(const struct matrix_case *c, const struct form *form, uint32_t word)
{
    bool is_narrow = c->sum == F16 || c->sum == BF16;
    uint32_t sign = is_narrow ? 0x8000 : 0x80000000,
             bits = is_narrow ? word >> (form->op_sel & 4 ? 16 : 0) & 0xffff : word;
    if (form->constant == 242)
        bits = c->sum == F16 ? 0x3c00 : c->sum == BF16 ? 0x3f80 : 0x3f800000;
    else if (form->constant)
        bits = (uint32_t)form->constant - 128;
    if (c->sum == I32)
        return bits;
    bits = form->neg_hi & 4 ? bits & ~sign : bits;
    return form->neg & 4 ? bits ^ sign : bits;
}

static uint32_t integer_sum(const struct matrix_case *c, const struct form *form, lanes words, unsigned row,
                            unsigned column, uint32_t addend_bits)
{
    int64_t sum = (int32_t)addend_bits;
    for (unsigned k = 0; k < N; k++)
        sum += factor(c, form, words, row, k, false) * factor(c, form, words, column, k, true);
    if (form->clamp)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static uint32_t expected_word(const struct matrix_case *c, const struct form *form, lanes words, unsigned row,
                              unsigned column)
{
    unsigned lane, reg;
    place(form->wave_size, row, column, &lane, &reg);
    uint32_t sum = addend(c, form, words[lane][16 + reg]), was = words[lane][24 + reg];
    if (c->sum == I32)
        return integer_sum(c, form, words, row, column, sum);
    for (unsigned i = 0; i < N / 2; i++) {
        uint32_t a = pair(form, words, row, i, false), b = pair(form, words, column, i, true);
        sum = c->sum == F32 ? dot2_of(a, b, sum, c->factor == BF16, DOT2_SINGLE, false)
                            : dot2_narrow(a, b, sum, c->factor == BF16, form->keep_finite);
    }
    if (c->sum == F32)
        return sum;
    return form->op_sel & 4 ? (was & 0xffff) | sum << 16 : (was & 0xffff0000u) | sum;
}

static void put(struct exec_machine *machine, const struct matrix_case *c, const struct form *form,
                lanes words)
{
    uint32_t copy[sizeof code / 4];
    uint64_t array = EXEC_BASE + EXEC_DATA;
    memcpy(copy, code, sizeof code);
    copy[EXEC_LO_AT] = (uint32_t)form->exec;
    copy[EXEC_HI_AT] = (uint32_t)(form->exec >> 32);
    uint32_t c_source = form->constant ? (uint32_t)form->constant : 256 + 16;
    copy[WMMA_AT] = 0xcc000000u | (uint32_t)bw_gfx11_ops[c->op].opcode << 16 | 1u << 14 |
                    (uint32_t)form->clamp << 15 | (uint32_t)form->op_sel << 11 | (uint32_t)form->neg_hi << 8 |
                    24;
    copy[WMMA_AT + 1] = 256 | (256 + 8) << 9 | c_source << 18 | 3u << 27 | (uint32_t)form->neg << 29;
    memcpy(machine->memory + EXEC_CODE, copy, sizeof copy);
    memcpy(machine->memory + EXEC_ARGS, &array, sizeof array);
    for (unsigned lane = 0; lane < form->wave_size; lane++)
        memcpy(machine->memory + EXEC_DATA + lane * LANE_BYTES, words[lane], sizeof words[lane]);
    machine->dispatch.group_size[0] = machine->dispatch.wave_size = form->wave_size;
    /* 128 registers, or 64 in wave64; FP16_OVFL */
    machine->dispatch.rsrc1 =
        (machine->dispatch.rsrc1 & ~(1u << 26)) | 15 | (uint32_t)form->keep_finite << 26;
}

static bool check_round(struct exec_machine *machine, const struct matrix_case *c, const struct form *form,
                        uint64_t seed)
{
    static lanes words;
    struct bw_rng rng = {.state = seed};
    fill(&rng, c, form->wave_size, words);
    put(machine, c, form, words);
    if (exec_run(machine) != BW_ISA_DONE) {
        printf("\n    %s: status %d, %s", bw_gfx11_ops[c->op].name, machine->result.status,
               machine->result.text);
        return false;
    }
    for (unsigned row = 0; row < N; row++) {
        for (unsigned column = 0; column < N; column++) {
            unsigned lane, reg;
            uint32_t observed, expected = expected_word(c, form, words, row, column);
            place(form->wave_size, row, column, &lane, &reg);
            memcpy(&observed, machine->memory + EXEC_DATA + lane * LANE_BYTES + RESULT_AT + 4 * reg, 4);
            if (observed != expected) {
                printf("\n    %s wave%u neg %u %u op_sel %u constant %d: row %u column %u: expected %x, "
                       "observed %x",
                       bw_gfx11_ops[c->op].name, form->wave_size, form->neg, form->neg_hi, form->op_sel,
                       form->constant, row, column, expected, observed);
                return false;
            }
        }
    }
    return true;
}

static bool check_case(struct exec_machine *machine, const struct matrix_case *c, bool clamps)
{
    struct bw_rng rng = {.state = c->op};
    bool is_integer = c->sum == I32, is_half = c->sum == F16 || c->sum == BF16;
    for (unsigned round = 0; round < ROUNDS; round++) {
        int constant = round % 4 != 3 ? 0 : bw_rng_below(&rng, 2) ? 242 : 130;
        struct form form = {
            .wave_size = round & 1 ? 64 : 32,
            .exec = round < 4 ? ~0ull : bw_rng_next(&rng),
            .neg = (uint8_t)bw_rng_below(&rng, is_integer ? 4 : 8),
            .neg_hi = (uint8_t)bw_rng_below(&rng, is_integer ? 1 : 8),
            .op_sel = is_half ? (uint8_t)(bw_rng_below(&rng, 2) << 2) : 0,
            .clamp = clamps,
            .keep_finite = bw_rng_below(&rng, 2),
            .constant = constant,
        };
        if (!check_round(machine, c, &form, round))
            return false;
    }
    return true;
}

static bool run_matrices(struct exec_machine *machine)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool right = check_case(machine, &cases[i], false);
        if (right)
            ops_prove(cases[i].op);
        ok = right && ok;
    }
    return ok;
}

static void test_matrices(void)
{
    BW_TRUE(each_level(run_matrices));
}

/* The clamp bit of integer WMMA, which LLVM and AMD's article on WMMA give it; section 7.2.3.1 says that it
 * is ignored. */
static bool run_saturation(struct exec_machine *machine)
{
    return check_case(machine, &cases[4], true) && check_case(machine, &cases[5], true);
}

static void test_saturation(void)
{
    BW_TRUE(each_level(run_saturation));
}

OPS_TEST_MAIN("isa exec matrix", {"elements lie where the document says", test_matrices},
              {"integer sums saturate", test_saturation})
