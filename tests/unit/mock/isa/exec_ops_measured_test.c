/* Goal: operations that the RDNA3 ISA document leaves open, or contradicts itself about, agree with what was
 * measured on gfx1100 and published: AMD's rocjitsu (rocm-systems, emulation/rocjitsu, shared/gfx11_dot2.h,
 * division.h, trig_preop.h). Written here once more, by other means than the emulator's: doubles and quads.
 */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"
#include "tests/unit/mock/isa/exec_ops_dot2.h"
#include "tests/unit/mock/isa/exec_ops_numbers.h"

/* Dot products round to nearest, whatever MODE and so the host. */
static uint32_t dot2(struct ops_values *v, uint64_t c, bool is_bfloat, enum dot2_kind kind)
{
    fesetround(FE_TONEAREST);
    if (kind == DOT2_SINGLE)
        return dot2_of((uint32_t)v->a, (uint32_t)v->b, (uint32_t)c, is_bfloat, kind, false);
    return dot2_narrow((uint32_t)v->a, (uint32_t)v->b, (uint32_t)c & 0xffff, is_bfloat, false);
}

static uint64_t ref_V_DOT2_F32_F16(struct ops_values *v)
{
    return dot2(v, v->c, false, DOT2_SINGLE);
}

static uint64_t ref_V_DOT2ACC_F32_F16(struct ops_values *v)
{
    return dot2(v, v->d, false, DOT2_SINGLE);
}

static uint64_t ref_V_DOT2_F32_BF16(struct ops_values *v)
{
    return dot2(v, v->c, true, DOT2_SINGLE);
}

static uint64_t ref_V_DOT2_F16_F16(struct ops_values *v)
{
    return dot2(v, v->c, false, DOT2_HALF);
}

static uint64_t ref_V_DOT2_BF16_BF16(struct ops_values *v)
{
    return dot2(v, v->c, true, DOT2_BFLOAT);
}

/* Division, in both precisions. */
struct division {
    int bias, digits, far_apart, scale, small;
    double least; /* normal number */
};
static const struct division single = {127, 24, 96, 64, 24, 0x1p-126},
                             twice = {1023, 53, 768, 128, 53, 0x1p-1022};

/* What the exponent field says; denormals and zero: 0. */
static int field(const struct division *d, double a)
{
    if (!isfinite(a))
        return 2 * d->bias + 1;
    return fabs(a) < d->least ? 0 : ilogb(a) + d->bias;
}

/* V_DIV_SCALE; s0 is one of the others. The factor goes by how far the exponents are apart: where the
 * quotient nears either end of the range, or its terms are denormal, one or both of them move. */
static double div_scale(const struct division *d, struct ops_values *v, double s0, double s1, double s2,
                        bool is_denominator)
{
    int below = field(d, s1), apart = field(d, s2) - below, n = 0;
    bool large = apart >= d->far_apart, small = !large && below && apart <= -d->far_apart;
    v->out = large || small;
    if (large)
        n = is_denominator ? d->scale : 0;
    else if (below >= 2 * d->bias - 1)
        n = small && !is_denominator ? 0 : -d->scale;
    else if (small)
        n = is_denominator ? 0 : d->scale;
    else if (below == 0 || field(d, s2) <= d->small)
        n = d->scale;
    return s1 == 0 || s2 == 0 ? copysign(NAN, -1) : ldexp(s0, n);
}

static uint64_t ref_V_DIV_SCALE_F32(struct ops_values *v)
{
    uint32_t a = (uint32_t)v->a, b = (uint32_t)v->b, c = (uint32_t)v->c;
    v->unsettled = a != b && a != c;
    return bits_of_f32((float)div_scale(&single, v, f32_of(a), f32_of(b), f32_of(c), a == b));
}

static uint64_t ref_V_DIV_SCALE_F64(struct ops_values *v)
{
    v->unsettled = v->a != v->b && v->a != v->c;
    return bits_of_f64(div_scale(&twice, v, f64_of(v->a), f64_of(v->b), f64_of(v->c), v->a == v->b));
}

/* a * b + c in a quad, which holds the product; where it does not hold the sum, made odd, so that rounding
 * it once more is right. */
__extension__ typedef __float128 quad;

static quad odd_sum(double a, double b, double c)
{
    int rounding = fegetround();
    fesetround(FE_TONEAREST);
    volatile quad product = (quad)a * (quad)b, sum = product + (quad)c;
    volatile quad back = sum - product, rest = (product - (sum - back)) + ((quad)c - back);
    fesetround(rounding);
    quad r = sum;
    unsigned char bytes[sizeof r];
    memcpy(bytes, &r, sizeof r);
    if (rest == 0 || (bytes[0] & 1))
        return r;
    if ((rest > 0) == (r > 0)) {
        bytes[0] |= 1;
    } else {
        /* one unit toward zero: what was even becomes odd */
        for (unsigned i = 0; i < sizeof r && bytes[i]-- == 0; i++) {
        }
    }
    memcpy(&r, bytes, sizeof r);
    return r;
}

static quad power(int n)
{
    return n < 0 ? 1 / (quad)ldexp(1, -n) : (quad)ldexp(1, n);
}

static quad div_fmas(const struct division *d, double a, double b, double c, bool scales)
{
    int n = !scales ? 0 : field(d, c) > d->bias ? d->scale : -d->scale;
    return odd_sum(a, b, c) * power(n);
}

/* The sum of opposite numbers is -0 only where MODE rounds down: the quad's sum was one to nearest. */
static double zero_of(double a, double b, double c)
{
    volatile double product = signbit(a) != signbit(b) ? -1.0 : 1.0, addend = signbit(c) ? -1.0 : 1.0;
    if (product == addend)
        return product < 0 ? -0.0 : 0.0;
    return ops_rounding == 2 ? -0.0 : 0.0;
}

static uint64_t ref_V_DIV_FMAS_F32(struct ops_values *v)
{
    float a = f32_of(v->a), b = f32_of(v->b), c = f32_of(v->c);
    if (!isfinite(a) || !isfinite(b) || !isfinite(c))
        return bits_of_f32(fmaf(a, b, c));
    quad sum = div_fmas(&single, a, b, c, v->in);
    return bits_of_f32(sum == 0 ? (float)zero_of(a, b, c) : (float)sum);
}

static uint64_t ref_V_DIV_FMAS_F64(struct ops_values *v)
{
    double a = f64_of(v->a), b = f64_of(v->b), c = f64_of(v->c);
    if (!isfinite(a) || !isfinite(b) || !isfinite(c))
        return bits_of_f64(fma(a, b, c));
    quad sum = div_fmas(&twice, a, b, c, v->in);
    return bits_of_f64(sum == 0 ? zero_of(a, b, c) : (double)sum);
}

/* V_DIV_FIXUP: the quotient is s0, of s2 by s1. */
static double div_fixup(const struct division *d, struct ops_values *v, double s0, double s1, double s2)
{
    double sign = signbit(s1) != signbit(s2) ? -1 : 1;
    if (isnan(s1) || isnan(s2) || (s1 == 0 && s2 == 0) || (isinf(s1) && isinf(s2)))
        return NAN;
    if (s1 == 0 || isinf(s2))
        return sign * INFINITY;
    if (s2 == 0 || isinf(s1))
        return sign * 0;
    bool grows = ops_rounding == 1 ? sign > 0 : ops_rounding == 2 && sign < 0;
    /* whether MODE flushes what comes out denormal is not said */
    if (field(d, s2) - field(d, s1) < 1 - d->bias - d->digits) {
        v->unsettled = grows && !ops_keeps_denormals;
        return sign * (grows ? ldexp(1, 2 - d->bias - d->digits) : 0);
    }
    if (!isfinite(s0))
        return sign * (grows || ops_rounding == 0 ? INFINITY : ldexp(2 - ldexp(1, 1 - d->digits), d->bias));
    v->unsettled = fabs(s0) < d->least && !ops_keeps_denormals;
    return sign * fabs(s0);
}

static uint64_t ref_V_DIV_FIXUP_F32(struct ops_values *v)
{
    return bits_of_f32((float)div_fixup(&single, v, f32_of(v->a), f32_of(v->b), f32_of(v->c)));
}

static uint64_t ref_V_DIV_FIXUP_F64(struct ops_values *v)
{
    return bits_of_f64(div_fixup(&twice, v, f64_of(v->a), f64_of(v->b), f64_of(v->c)));
}

/* 2 / pi, bit by bit: pi by Machin's formula, 16 atan(1/5) - 4 atan(1/239), in fixed point. */
enum { PI_WORDS = 42, PI_BITS = 1184 };
typedef uint32_t fixed[PI_WORDS]; /* most significant word first; that one is the whole part */

static void divide(fixed x, uint32_t by)
{
    uint64_t rest = 0;
    for (unsigned i = 0; i < PI_WORDS; i++) {
        rest = rest << 32 | x[i];
        x[i] = (uint32_t)(rest / by);
        rest %= by;
    }
}

static void add(fixed x, const fixed y, bool subtract)
{
    int64_t carry = 0;
    for (unsigned i = PI_WORDS; i-- > 0;) {
        carry += (int64_t)x[i] + (subtract ? -(int64_t)y[i] : (int64_t)y[i]);
        x[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void add_arctangent(fixed sum, uint32_t times, uint32_t n, bool subtract)
{
    fixed power_of = {times}, term;
    divide(power_of, n);
    for (uint32_t k = 1; k < 32 * PI_WORDS; k += 2) {
        memcpy(term, power_of, sizeof term);
        divide(term, k);
        add(sum, term, subtract != (k % 4 == 3));
        divide(power_of, n);
        divide(power_of, n);
    }
}

static bool at_least(const fixed x, const fixed y)
{
    unsigned i = 0;
    while (i < PI_WORDS - 1 && x[i] == y[i])
        i++;
    return x[i] >= y[i];
}

/* bits[i]: the i-th behind the point. */
static void two_over_pi(bool bits[PI_BITS])
{
    fixed pi = {0}, rest = {2}; /* long division: twice the rest, less pi where it holds it */
    add_arctangent(pi, 16, 5, false);
    add_arctangent(pi, 4, 239, true);
    for (unsigned i = 0; i < PI_BITS; i++) {
        add(rest, rest, false);
        bits[i] = at_least(rest, pi);
        if (bits[i])
            add(rest, pi, true);
    }
}

static uint64_t ref_V_TRIG_PREOP_F64(struct ops_values *v)
{
    static bool bits[PI_BITS], filled;
    int exponent = (int)(v->a >> 52 & 2047),
        first = (int)(v->b & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    double r = 0;
    if (!filled)
        two_over_pi(bits);
    filled = true;
    for (int i = first; i < first + 53 && i < PI_BITS; i++) {
        int weight = -1 - i + (exponent >= 1968 ? 128 : 0);
        r += bits[i] && weight >= -1074 ? ldexp(1, weight) : 0; /* what is less than a denormal is cut */
    }
    return bits_of_f64(r);
}

#define CASE(name, kind, operands, how) \
    {.op = BW_GFX11_##name, .reference = ref_##name, .result = kind, .values = operands, .flags = how},
enum { DOT = OPS_KEEPS_SOURCES | OPS_SELECTS };
/* clang-format off */
static const struct ops_case cases[] = {
    CASE(V_DOT2_F32_F16, OPS_BITS, "f16", DOT) CASE(V_DOT2ACC_F32_F16, OPS_BITS, "f16", DOT)
    CASE(V_DOT2_F32_BF16, OPS_BITS, "bf16", DOT)
    CASE(V_DIV_SCALE_F32, OPS_BITS_AND_MASK, "f32", OPS_REPEATS_SOURCE) CASE(V_DIV_SCALE_F64, OPS_BITS_AND_MASK, "f64", OPS_REPEATS_SOURCE)
    CASE(V_DIV_FMAS_F32, OPS_FLOAT, "f32", OPS_KEEPS_SOURCES) CASE(V_DIV_FMAS_F64, OPS_FLOAT, "f64", OPS_KEEPS_SOURCES)
    CASE(V_DIV_FIXUP_F32, OPS_FLOAT, "f32", OPS_KEEPS_SOURCE_0) CASE(V_DIV_FIXUP_F64, OPS_FLOAT, "f64", OPS_KEEPS_SOURCE_0)
    CASE(V_TRIG_PREOP_F64, OPS_BITS, "f64", 0)
};
/* Taken to be what a step of WMMA is, which was measured: it proves nothing. */
static const struct ops_case chosen[] = {
    CASE(V_DOT2_F16_F16, OPS_BITS, "f16", DOT | OPS_DEFAULT_MODE)
    CASE(V_DOT2_BF16_BF16, OPS_BITS, "bf16", DOT | OPS_DEFAULT_MODE)
};
/* clang-format on */

static bool run_cases(struct exec_machine *machine)
{
    return ops_check_all(machine, cases, sizeof cases / sizeof cases[0]) +
               ops_check_chosen(machine, chosen, sizeof chosen / sizeof chosen[0]) ==
           0;
}

static void test_operations(void)
{
    BW_TRUE(each_level(run_cases));
}

OPS_TEST_MAIN("isa exec measured", {"what was measured on gfx1100", test_operations})
