/* Goal: both operations of a VOPD pair do what they do alone, on the registers as they were before either,
 * for every pair that the encoding names (RDNA3 ISA document, section 7.6); pairs that break its rules are
 * refused.
 */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"
#include "tests/unit/mock/isa/exec_ops_dot2.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"

enum { REGISTERS = 14, LITERAL = OPS_LITERAL_F32, X_OPS = 13, Y_OPS = 19, SGPR = 6 };

/* One side of a pair: src0's field, a register for the second source, the destination. */
struct side {
    unsigned op, src0, vsrc1, dst;
};

/* What a lane holds: v0..v13, and the bit of VCC. */
struct lane {
    uint32_t v[REGISTERS];
    uint32_t sgpr;
    bool vcc;
};

static float dx9_product(float a, float b)
{
    return a == 0 || b == 0 ? 0 : a * b;
}

/* As V_MIN_F32 with MODE.IEEE: signalling NaNs come out quiet, quiet ones lose, -0 < +0. */
static uint32_t extreme(uint32_t a, uint32_t b, bool minimum)
{
    float x = f32_of(a), y = f32_of(b);
    const uint32_t quiet = 0x400000;
    if (isnan(x) && !(a & quiet))
        return a | quiet;
    if (isnan(y) && !(b & quiet))
        return b | quiet;
    if (isnan(x) || isnan(y))
        return isnan(y) ? a : b;
    if (x == y)
        return minimum ? a | b : a & b;
    return (x < y) == minimum ? a : b;
}

static uint32_t source0(const struct side *side, const struct lane *lane)
{
    if (side->src0 >= 256)
        return lane->v[side->src0 - 256];
    if (side->src0 == 242) /* of halves the constant is one, and stands in both (section 7.5.1) */
        return side->op == 12 ? 0x3c003c00 : 0x3f800000;
    return side->src0 == 255 ? LITERAL : lane->sgpr;
}

static uint32_t result_of(const struct side *side, const struct lane *lane)
{
    uint32_t a = source0(side, lane), b = lane->v[side->vsrc1], d = lane->v[side->dst];
    volatile float x = f32_of(a), y = f32_of(b), z = f32_of(d), k = f32_of(LITERAL);
    switch (side->op) {
    case 0:
        return bits_of_f32(fmaf(x, y, z));
    case 1:
        return bits_of_f32(fmaf(x, y, k));
    case 2:
        return bits_of_f32(fmaf(x, k, y));
    case 3:
        return bits_of_f32(x * y);
    case 4:
        return bits_of_f32(x + y);
    case 5:
        return bits_of_f32(x - y);
    case 6:
        return bits_of_f32(y - x);
    case 7:
        return bits_of_f32(dx9_product(x, y));
    case 8:
        return a;
    case 9:
        return lane->vcc ? b : a;
    case 10:
        return extreme(a, b, false);
    case 11:
        return extreme(a, b, true);
    case 12:
        return dot2_of(a, b, d, false, DOT2_SINGLE, false);
    case 16:
        return a + b;
    case 17:
        return b << (a & 31);
    default:
        return a & b;
    }
}

static bool is_float(const struct side *side)
{
    return side->op < 8 || (side->op >= 10 && side->op <= 12);
}

/* The read port for a third source: the accumulator, or the register of FMAMK. */
static int third_source(const struct side *side)
{
    return side->op == 0 || side->op == 12 ? (int)side->dst : side->op == 2 ? (int)side->vsrc1 : -1;
}

static bool has_second_source(const struct side *side)
{
    return side->op != 2 && side->op != 8;
}

/* Register banks and read ports (section 7.6, "Restrictions"). */
static bool is_legal(const struct side *x, const struct side *y)
{
    int third_x = third_source(x), third_y = third_source(y);
    if (x->src0 >= 256 && y->src0 >= 256 && x->src0 % 4 == y->src0 % 4)
        return false;
    if (has_second_source(x) && has_second_source(y) && x->vsrc1 % 4 == y->vsrc1 % 4)
        return false;
    return third_x < 0 || third_y < 0 || third_x % 2 != third_y % 2;
}

static void encode(const struct side *x, const struct side *y, uint32_t *words)
{
    words[0] = 0xc8000000u | x->op << 22 | y->op << 17 | (x->op == 8 ? 0 : x->vsrc1) << 9 | x->src0;
    words[1] = x->dst << 24 | (y->dst >> 1) << 17 | (y->op == 8 ? 0 : y->vsrc1) << 9 | y->src0;
    words[2] = LITERAL;
}

static bool has_literal(const struct side *side)
{
    return side->src0 == 255 || side->op == 1 || side->op == 2;
}

static struct side drawn(struct bw_rng *rng, unsigned op, unsigned dst)
{
    static const unsigned registers[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13};
    unsigned choice = (unsigned)bw_rng_below(rng, 6);
    return (struct side){
        .op = op,
        .src0 = choice == 0   ? SGPR
                : choice == 1 ? 242 /* 1.0 */
                : choice == 2 ? 255 /* the literal */
                              : 256 + registers[bw_rng_below(rng, 12)],
        .vsrc1 = registers[bw_rng_below(rng, 12)],
        .dst = dst,
    };
}

static void draw_legal(struct bw_rng *rng, unsigned op_x, unsigned op_y, struct side *x, struct side *y)
{
    do {
        unsigned dst = 10 + (unsigned)bw_rng_below(rng, 4);
        *x = drawn(rng, op_x, dst);
        *y = drawn(
            rng, op_y,
            10 + ((dst & 1) ? 2 * (unsigned)bw_rng_below(rng, 2) : 1 + 2 * (unsigned)bw_rng_below(rng, 2)));
    } while (!is_legal(x, y));
}

/* s6 from the literal's neighbour, then the pair. */
static unsigned put_pair(struct exec_machine *machine, const struct side *x, const struct side *y,
                         const struct ops_form *form, uint32_t sgpr)
{
    uint32_t words[8] = {0xbe8000ffu | SGPR << 16, sgpr};
    unsigned count = 4;
    encode(x, y, words + 2);
    if (has_literal(x) || has_literal(y))
        count++;
    ops_put_form(machine, words, count, form);
    return count;
}

static struct lane lane_of(const struct ops_values *v, unsigned index, uint32_t sgpr)
{
    struct lane lane = {.sgpr = sgpr, .vcc = OPS_VCC >> (index % 32) & 1};
    memcpy(&lane.v[1], &v->a, 8);
    memcpy(&lane.v[3], &v->b, 8);
    memcpy(&lane.v[5], &v->c, 8);
    memcpy(&lane.v[7], &v->c_high, 8);
    memcpy(&lane.v[10], &v->d, 8);
    memcpy(&lane.v[12], &v->d_high, 8);
    return lane;
}

static bool same_value(const struct side *side, uint32_t observed, uint32_t expected)
{
    return is_float(side) ? ops_same_float(observed, expected, BW_T_F32) : observed == expected;
}

static bool check_lanes(const struct exec_machine *machine, const struct side *x, const struct side *y,
                        const struct ops_form *form, const struct ops_values *values, uint32_t sgpr)
{
    for (unsigned i = 0; i < OPS_LANES; i++) {
        struct lane before = lane_of(&values[i], i, sgpr);
        uint32_t observed[4], expected[4];
        memcpy(observed, machine->memory + EXEC_DATA + i * OPS_LANE_BYTES + 48, sizeof observed);
        memcpy(expected, &before.v[10], sizeof expected);
        if (form->exec >> (i % 32) & 1) {
            expected[x->dst - 10] = result_of(x, &before);
            expected[y->dst - 10] = result_of(y, &before);
        }
        for (unsigned r = 0; r < 4; r++) {
            const struct side *side = r + 10 == x->dst ? x : y;
            bool ok = r + 10 == x->dst || r + 10 == y->dst ? same_value(side, observed[r], expected[r])
                                                           : observed[r] == expected[r];
            if (!ok) {
                printf("\n    X %u: src0 %u, v%u, v%u; Y %u: src0 %u, v%u, v%u; lane %u: v%u expected %x, "
                       "observed %x",
                       x->op, x->src0, x->vsrc1, x->dst, y->op, y->src0, y->vsrc1, y->dst, i, r + 10,
                       expected[r], observed[r]);
                return false;
            }
        }
    }
    return true;
}

static bool check_pair(struct exec_machine *machine, struct bw_rng *rng, unsigned op_x, unsigned op_y)
{
    static struct ops_values values[OPS_LANES];
    static const struct ops_case singles = {.values = "f32"};
    struct side x, y;
    struct ops_form form = ops_plain;
    uint32_t sgpr = (uint32_t)ops_value(rng, "f32");
    draw_legal(rng, op_x, op_y, &x, &y);
    form.exec = bw_rng_below(rng, 2) ? ~0ull : bw_rng_next(rng);
    put_pair(machine, &x, &y, &form, sgpr);
    ops_fill(machine, &singles, values, bw_rng_next(rng));
    for (unsigned i = 0; i < OPS_LANES; i++) { /* the high halves are registers of their own here */
        struct ops_values *v = &values[i];
        uint64_t *all[] = {&v->a, &v->b, &v->c, &v->c_high, &v->d, &v->d_high};
        for (unsigned k = 0; k < 6; k++)
            *all[k] = (uint32_t)ops_value(rng, "f32") | ops_value(rng, "f32") << 32;
        const uint64_t stored[6] = {v->a, v->b, v->c, v->c_high, v->d, v->d_high};
        memcpy(machine->memory + EXEC_DATA + i * OPS_LANE_BYTES, stored, sizeof stored);
    }
    if (exec_run(machine) != BW_ISA_DONE) {
        printf("\n    X %u, Y %u: status %d, %s", op_x, op_y, machine->result.status, machine->result.text);
        return false;
    }
    return check_lanes(machine, &x, &y, &form, values, sgpr);
}

static bool run_pairs(struct exec_machine *machine)
{
    struct bw_rng rng = {.state = 40};
    bool ok = true;
    for (unsigned x = 0; x < X_OPS; x++) {
        for (unsigned y = 0; y < Y_OPS; y++) {
            if (y < X_OPS || y >= 16)
                ok = check_pair(machine, &rng, x, y) && check_pair(machine, &rng, x, y) && ok;
        }
    }
    return ok;
}

static void test_pairs(void)
{
    BW_TRUE(each_level(run_pairs));
}

/* Two sources of one bank, and pairs in wave64: the hardware does not do what the pair says. */
static void test_refused(void)
{
    struct exec_machine machine;
    struct bw_rng rng = {.state = 41};
    unsigned illegal = 0;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    for (unsigned i = 0; i < 200; i++) {
        struct side x = drawn(&rng, (unsigned)bw_rng_below(&rng, X_OPS), 10),
                    y = drawn(&rng, (unsigned)bw_rng_below(&rng, X_OPS), 11);
        if (is_legal(&x, &y))
            continue;
        put_pair(&machine, &x, &y, &ops_plain, 0);
        BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
        illegal++;
    }
    BW_TRUE(illegal > 20);
    struct side x, y;
    struct ops_form form = ops_plain;
    form.wave_size = 64;
    draw_legal(&rng, 3, 4, &x, &y);
    put_pair(&machine, &x, &y, &form, 0);
    BW_EQ(exec_run(&machine), BW_ISA_ILLEGAL_INSTRUCTION);
    exec_machine_free(&machine);
}

OPS_TEST_MAIN("isa exec dual", {"every pair reads before it writes", test_pairs},
              {"pairs that break the rules are refused", test_refused})
