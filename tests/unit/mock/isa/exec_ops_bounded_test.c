/* Goal: operations whose result the RDNA3 ISA document only bounds keep that bound: error in units of the
 * last place of the right result, on every half, and on corner cases and random singles and doubles. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"

static long double reciprocal(long double x)
{
    return 1 / x;
}

static long double reciprocal_root(long double x)
{
    return 1 / sqrtl(x);
}

#define TURN 6.283185307179586476925286766559005768L

/* Of revolutions; exact where the document says so. */
static long double sine(long double x)
{
    long double turn = x - roundl(x), m = fabsl(turn);
    long double s = m > 0.25L ? sinl(TURN * (0.5L - m)) : sinl(TURN * m);
    return isinf(x) ? (long double)NAN : x == 0 ? x : copysignl(s, turn);
}

static long double cosine(long double x)
{
    return isinf(x) ? (long double)NAN : sinl(TURN * (0.25L - fabsl(x - roundl(x))));
}

/* Fixed point of [-1, 1] and [0, 1]: the unit is one step of the result. */
static long double signed_fixed(long double x)
{
    return isnan(x) ? 0 : fminl(fmaxl(x, -1), 1) * 32767;
}

static long double unsigned_fixed(long double x)
{
    return isnan(x) ? 0 : fminl(fmaxl(x, 0), 1) * 65535;
}

static const struct bounded {
    uint16_t op;
    long double (*exact)(long double);
    double ulps;
    bool flushes; /* denormals, on both sides (notes of V_EXP_F32 and its like) */
    bool fixed, is_signed;
} bounded[] = {
    {BW_GFX11_V_EXP_F32, exp2l, 1, true, false, false},
    {BW_GFX11_V_LOG_F32, log2l, 1, true, false, false},
    {BW_GFX11_V_SQRT_F32, sqrtl, 1, true, false, false},
    {BW_GFX11_V_RCP_F32, reciprocal, 1, true, false, false},
    {BW_GFX11_V_RCP_IFLAG_F32, reciprocal, 1, true, false, false},
    {BW_GFX11_V_RSQ_F32, reciprocal_root, 1, true, false, false},
    {BW_GFX11_V_SIN_F32, sine, 1, false, false, false},
    {BW_GFX11_V_COS_F32, cosine, 1, false, false, false},
    {BW_GFX11_V_EXP_F16, exp2l, 0.51, false, false, false},
    {BW_GFX11_V_LOG_F16, log2l, 0.51, false, false, false},
    {BW_GFX11_V_SQRT_F16, sqrtl, 0.51, false, false, false},
    {BW_GFX11_V_RCP_F16, reciprocal, 0.51, false, false, false},
    {BW_GFX11_V_RSQ_F16, reciprocal_root, 0.51, false, false, false},
    {BW_GFX11_V_SIN_F16, sine, 1, false, false, false},
    {BW_GFX11_V_COS_F16, cosine, 1, false, false, false},
    {BW_GFX11_V_RCP_F64, reciprocal, 1, false, false, false},
    {BW_GFX11_V_RSQ_F64, reciprocal_root, 1.5, false, false, false},
    {BW_GFX11_V_SQRT_F64, sqrtl, 1, false, false, false},
    {BW_GFX11_V_CVT_NORM_I16_F16, signed_fixed, 0.5, false, true, true},
    {BW_GFX11_V_CVT_NORM_U16_F16, unsigned_fixed, 0.5, false, true, false},
    {BW_GFX11_V_CVT_PK_NORM_I16_F16, signed_fixed, 0.5, false, true, true},
    {BW_GFX11_V_CVT_PK_NORM_U16_F16, unsigned_fixed, 0.5, false, true, false},
    {BW_GFX11_V_CVT_PK_NORM_I16_F32, signed_fixed, 0.5, false, true, true},
    {BW_GFX11_V_CVT_PK_NORM_U16_F32, unsigned_fixed, 0.5, false, true, false},
};

static long double number(uint64_t bits, unsigned type)
{
    return type == BW_T_F64   ? (long double)f64_of(bits)
           : type == BW_T_F32 ? (long double)f32_of(bits)
                              : f16_of(bits);
}

struct format {
    int lowest, fraction; /* least exponent of a normal number, bits behind the point */
    long double highest;
};

static struct format format_of(unsigned type)
{
    static const struct format f16 = {-14, 10, 65504}, f32 = {-126, 23, 0x1.fffffep127L},
                               f64 = {-1022, 52, 0x1.fffffffffffffp1023L};
    return type == BW_T_F64 ? f64 : type == BW_T_F32 ? f32 : f16;
}

/* Distance in units of the exact result; infinite where NaN, infinity or a sign is missed. */
static double error_of(const struct bounded *b, uint64_t operand, uint64_t result)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[b->op];
    unsigned type = row->src[0].type;
    struct format format = format_of(type);
    long double x = number(operand, type);
    if (b->fixed) {
        long double r = b->is_signed ? (int16_t)result : (uint16_t)result;
        return (double)fabsl(r - b->exact(x));
    }
    if (b->flushes && fabsl(x) < ldexpl(1, format.lowest))
        x = copysignl(0, x);
    long double exact = b->exact(x), observed = number(result, row->dst.type);
    if (isnan(exact) || isnan(observed))
        return isnan(exact) && isnan(observed) ? 0 : INFINITY;
    if (isinf(exact) || isinf(observed)) {
        bool right =
            isinf(observed) && !signbit(observed) == !signbit(exact) && fabsl(exact) >= format.highest;
        return right ? 0 : INFINITY;
    }
    if (exact == 0) { /* the sign of a sine's zero is documented for zeros only */
        bool any_sign = isfinite(x) && x != 0;
        return observed == 0 && (any_sign || signbit(exact) == signbit(observed)) ? 0 : INFINITY;
    }
    int exponent = ilogbl(exact) < format.lowest ? format.lowest : ilogbl(exact);
    if (b->flushes && fabsl(exact) < ldexpl(1, format.lowest))
        return fabsl(observed) <= ldexpl(1, format.lowest) ? 0 : INFINITY;
    return (double)(fabsl(observed - exact) / ldexpl(1, exponent - format.fraction));
}

static uint64_t operand_of(struct bw_rng *rng, unsigned type, unsigned round, unsigned lane)
{
    if (type == BW_T_F16) /* every one of them */
        return (round * OPS_LANES + lane) % 65536;
    if (type == BW_T_F64)
        return round & 1 ? bits_of_f64(bw_rng_unit(rng) * 300 - 150) : ops_value(rng, "f64");
    if (round % 4 == 3)
        return bits_of_f32((float)(1 + (bw_rng_unit(rng) - 0.5) * 0.01));
    if (round % 4 == 1)
        return bits_of_f32((float)(bw_rng_unit(rng) * 300 - 150));
    return round % 8 == 2 ? bits_of_f32((float)(bw_rng_unit(rng) * 4 - 2)) : ops_value(rng, "f32");
}

static bool check_lane(const struct exec_machine *machine, const struct bounded *b, unsigned lane,
                       double *worst)
{
    const uint8_t *at = machine->memory + EXEC_DATA + lane * OPS_LANE_BYTES;
    unsigned halves = bw_gfx11_ops[b->op].dst.type == BW_T_V2B16 ? 2 : 1;
    uint64_t operands[2], result;
    memcpy(operands, at, sizeof operands);
    memcpy(&result, at + 48, sizeof result);
    for (unsigned i = 0; i < halves; i++) {
        double error = error_of(b, operands[i], result >> (16 * i));
        *worst = fmax(*worst, error);
        if (error > b->ulps) {
            printf("\n    %s(%llx): observed %llx, off by %g", bw_gfx11_ops[b->op].name,
                   (unsigned long long)operands[i], (unsigned long long)(result >> (16 * i)), error);
            return false;
        }
    }
    return true;
}

static bool check_bounded(struct exec_machine *machine, const struct bounded *b)
{
    enum { ROUNDS = 64 };
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[b->op];
    uint32_t words[3];
    struct bw_rng rng = {.state = b->op};
    double worst = 0;
    ops_put_code(machine, words, ops_encode(row, words));
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            uint64_t operands[2] = {operand_of(&rng, row->src[0].type, round, lane),
                                    operand_of(&rng, row->src[0].type, round, lane)};
            memcpy(machine->memory + EXEC_DATA + lane * OPS_LANE_BYTES, operands, sizeof operands);
        }
        if (exec_run(machine) != BW_ISA_DONE)
            return false;
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            if (!check_lane(machine, b, lane, &worst))
                return false;
        }
    }
    ops_bound(b->op, b->ulps, worst);
    return true;
}

static bool run_bounded(struct exec_machine *machine)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof bounded / sizeof bounded[0]; i++)
        ok = check_bounded(machine, &bounded[i]) && ok;
    return ok;
}

static void test_bounded(void)
{
    BW_TRUE(each_level(run_bounded));
}

/* The document's functional examples: operand, result; a NaN stands for any. */
static const struct example {
    uint16_t op;
    uint32_t operand, result;
} examples[] = {
    {BW_GFX11_V_EXP_F32, 0xff800000, 0x00000000},  {BW_GFX11_V_EXP_F32, 0x80000000, 0x3f800000},
    {BW_GFX11_V_EXP_F32, 0x7f800000, 0x7f800000},  {BW_GFX11_V_LOG_F32, 0xff800000, 0xffc00000},
    {BW_GFX11_V_LOG_F32, 0xbf800000, 0xffc00000},  {BW_GFX11_V_LOG_F32, 0x80000000, 0xff800000},
    {BW_GFX11_V_LOG_F32, 0x00000000, 0xff800000},  {BW_GFX11_V_LOG_F32, 0x3f800000, 0x00000000},
    {BW_GFX11_V_LOG_F32, 0x7f800000, 0x7f800000},  {BW_GFX11_V_RCP_F32, 0xff800000, 0x80000000},
    {BW_GFX11_V_RCP_F32, 0xc0000000, 0xbf000000},  {BW_GFX11_V_RCP_F32, 0x80000000, 0xff800000},
    {BW_GFX11_V_RCP_F32, 0x00000000, 0x7f800000},  {BW_GFX11_V_RCP_F32, 0x7f800000, 0x00000000},
    {BW_GFX11_V_RSQ_F32, 0xff800000, 0xffc00000},  {BW_GFX11_V_RSQ_F32, 0x80000000, 0xff800000},
    {BW_GFX11_V_RSQ_F32, 0x00000000, 0x7f800000},  {BW_GFX11_V_RSQ_F32, 0x40800000, 0x3f000000},
    {BW_GFX11_V_RSQ_F32, 0x7f800000, 0x00000000},  {BW_GFX11_V_SQRT_F32, 0xff800000, 0xffc00000},
    {BW_GFX11_V_SQRT_F32, 0x80000000, 0x80000000}, {BW_GFX11_V_SQRT_F32, 0x40800000, 0x40000000},
    {BW_GFX11_V_SIN_F32, 0xff800000, 0xffc00000},  {BW_GFX11_V_SIN_F32, 0xff7fffff, 0x00000000},
    {BW_GFX11_V_SIN_F32, 0x80000000, 0x80000000},  {BW_GFX11_V_SIN_F32, 0x3e800000, 0x3f800000},
    {BW_GFX11_V_COS_F32, 0xff7fffff, 0x3f800000},  {BW_GFX11_V_COS_F32, 0x80000000, 0x3f800000},
    {BW_GFX11_V_COS_F32, 0x3e800000, 0x00000000},  {BW_GFX11_V_COS_F32, 0x7f800000, 0xffc00000},
    {BW_GFX11_V_RCP_F16, 0xfc00, 0x8000},          {BW_GFX11_V_RCP_F16, 0xc000, 0xb800},
    {BW_GFX11_V_RCP_F16, 0x8000, 0xfc00},          {BW_GFX11_V_RCP_F16, 0x0000, 0x7c00},
    {BW_GFX11_V_SQRT_F16, 0xfc00, 0xfe00},         {BW_GFX11_V_SQRT_F16, 0x8000, 0x8000},
    {BW_GFX11_V_SQRT_F16, 0x4400, 0x4000},         {BW_GFX11_V_RSQ_F16, 0x8000, 0xfc00},
    {BW_GFX11_V_RSQ_F16, 0x4400, 0x3800},          {BW_GFX11_V_LOG_F16, 0xbc00, 0xfe00},
    {BW_GFX11_V_LOG_F16, 0x8000, 0xfc00},          {BW_GFX11_V_LOG_F16, 0x3c00, 0x0000},
    {BW_GFX11_V_EXP_F16, 0xfc00, 0x0000},          {BW_GFX11_V_EXP_F16, 0x8000, 0x3c00},
    {BW_GFX11_V_EXP_F16, 0x7c00, 0x7c00},          {BW_GFX11_V_SIN_F16, 0xfbff, 0x0000},
    {BW_GFX11_V_SIN_F16, 0x8000, 0x8000},          {BW_GFX11_V_SIN_F16, 0x3400, 0x3c00},
    {BW_GFX11_V_COS_F16, 0xfbff, 0x3c00},          {BW_GFX11_V_COS_F16, 0x3400, 0x0000},
    {BW_GFX11_V_COS_F16, 0x7bff, 0x3c00},          {BW_GFX11_V_COS_F16, 0x7c00, 0xfe00},
};

static bool run_examples(struct exec_machine *machine)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        const struct example *e = &examples[i];
        const struct bw_gfx11_op_row *row = &bw_gfx11_ops[e->op];
        uint32_t words[3], observed;
        uint64_t operand = e->operand;
        ops_put_code(machine, words, ops_encode(row, words));
        memcpy(machine->memory + EXEC_DATA, &operand, sizeof operand);
        ok = exec_run(machine) == BW_ISA_DONE && ok;
        memcpy(&observed, machine->memory + EXEC_DATA + 48, sizeof observed);
        observed &= row->dst.type == BW_T_F16 ? 0xffff : ~0u;
        if (!ops_same_float(observed, e->result, row->dst.type)) {
            printf("\n    %s(%x): expected %x, observed %x", row->name, e->operand, e->result, observed);
            ok = false;
        }
    }
    return ok;
}

static void test_examples(void)
{
    BW_TRUE(each_level(run_examples));
}

OPS_TEST_MAIN("isa exec bounded", {"bounded operations keep their ULPs", test_bounded},
              {"the document's examples", test_examples})
