/* Goal: WMMA agrees with the RDNA3 ISA document, section 7.9: where each element of A, B, C and D lies in
 * both wave sizes, EXEC that does not count, signs and modifiers, constants. Integers are compared bit for
 * bit. For halves the document gives no order of the sum and no roundings: small whole numbers, whose sums
 * are exact in any order, show all the rest. */
#include "tests/check.h"

#include "base/rng.h"
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
    bool clamp;
    int constant; /* inline constant's code for C, or 0: registers */
};

static uint32_t small_bits(int value, enum element element)
{
    uint32_t single = bits_of_f32((float)value), magnitude = single & 0x7fffffff;
    if (element == BF16)
        return single >> 16;
    if (element == F32)
        return single;
    return value == 0 ? 0 : (single >> 31) << 15 | ((magnitude >> 13) - (112u << 10));
}

/* The lane's registers, as dwords: A at 0, B at 8, C at 16, D at 24. */
typedef uint32_t lanes[64][32];

static void fill(struct bw_rng *rng, const struct matrix_case *c, unsigned wave_size, lanes words)
{
    for (unsigned lane = 0; lane < wave_size; lane++) {
        for (unsigned i = 0; i < 32; i++) {
            enum element element = i < 16 ? c->factor : c->sum;
            int low = (int)bw_rng_below(rng, 5) - 2, high = (int)bw_rng_below(rng, 5) - 2;
            uint32_t random = (uint32_t)bw_rng_next(rng);
            words[lane][i] = element == F32 ? small_bits(low, F32)
                             : element == F16 || element == BF16
                                 ? small_bits(low, element) | small_bits(high, element) << 16
                             : i >= 16 && bw_rng_below(rng, 3) ? (random & 0x80000000u) ^ 0x7fffff00u
                                                               : random;
            if (i < 16 && lane >= N) /* A and B are repeated every 16 lanes */
                words[lane][i] = words[lane % N][i];
        }
    }
}

/* Element k of a row of A or a column of B. */
static double factor(const struct matrix_case *c, const struct form *form, lanes words, unsigned lane,
                     unsigned k, bool is_b)
{
    const uint32_t *registers = &words[lane][is_b ? 8 : 0];
    unsigned bits = c->factor == IU8 ? 8 : c->factor == IU4 ? 4 : 16, at = k * bits;
    uint32_t field = registers[at / 32] >> (at % 32) & ((1u << bits) - 1);
    bool is_signed = form->neg >> is_b & 1;
    if (bits == 16) {
        bool flips = (k & 1 ? form->neg_hi : form->neg) >> is_b & 1;
        double value = c->factor == F16 ? (double)f16_of(field) : (double)f32_of((uint64_t)field << 16);
        return flips ? -value : value;
    }
    return is_signed && field >> (bits - 1) ? (double)field - (double)(1u << bits) : (double)field;
}

/* Where element (row, column) of C and D lies: the lane, and which of its registers. */
static void place(unsigned wave_size, unsigned row, unsigned column, unsigned *lane, unsigned *reg)
{
    unsigned rows_in_register = wave_size / N;
    *reg = row / rows_in_register;
    *lane = row % rows_in_register * N + column;
}

static double addend(const struct matrix_case *c, const struct form *form, uint32_t word)
{
    unsigned shift = form->op_sel & 4 ? 16 : 0;
    if (form->constant) { /* 1.0 or 2 */
        double value = form->constant == 242 ? (c->sum == I32 ? (double)0x3f800000 : 1.0) : 2.0;
        if (form->constant == 130 && c->sum != I32) /* an integer constant is that bit pattern */
            value = 0;
        return c->sum != I32 && form->neg & 4 ? -value : value;
    }
    if (c->sum == I32)
        return (int32_t)word;
    double value = c->sum == F32   ? (double)f32_of(word)
                   : c->sum == F16 ? (double)f16_of(word >> shift & 0xffff)
                                   : (double)f32_of((uint64_t)(word >> shift & 0xffff) << 16);
    value = form->neg_hi & 4 ? fabs(value) : value;
    return form->neg & 4 ? -value : value;
}

static uint32_t expected_word(const struct matrix_case *c, const struct form *form, lanes words, unsigned row,
                              unsigned column)
{
    unsigned lane, reg;
    place(form->wave_size, row, column, &lane, &reg);
    double sum = addend(c, form, words[lane][16 + reg]);
    uint32_t was = words[lane][24 + reg];
    for (unsigned k = 0; k < N; k++)
        sum += factor(c, form, words, row, k, false) * factor(c, form, words, column, k, true);
    if (c->sum == I32) {
        if (form->clamp)
            sum = fmin(fmax(sum, -0x1p31), 0x1p31 - 1);
        return (uint32_t)(int64_t)sum;
    }
    uint32_t bits = small_bits((int)sum, c->sum);
    if (c->sum == F32)
        return bits;
    return form->op_sel & 4 ? (was & 0xffff) | bits << 16 : (was & 0xffff0000u) | bits;
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
    machine->dispatch.rsrc1 |= 15; /* 128 registers, or 64 in wave64 */
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
        unsigned constant = round % 4 == 3 ? (unsigned)bw_rng_below(&rng, 2) : 2;
        struct form form = {
            .wave_size = round & 1 ? 64 : 32,
            .exec = round < 4 ? ~0ull : bw_rng_next(&rng),
            .neg = (uint8_t)bw_rng_below(&rng, is_integer ? 4 : 8),
            .neg_hi = (uint8_t)bw_rng_below(&rng, is_integer ? 1 : 8),
            .op_sel = is_half ? (uint8_t)(bw_rng_below(&rng, 2) << 2) : 0,
            .clamp = clamps,
            .constant = constant == 0                 ? 242
                        : constant == 1 && is_integer ? 130
                                                      : 0,
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
        if (right && cases[i].sum == I32)
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
