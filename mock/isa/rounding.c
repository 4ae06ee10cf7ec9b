/* MODE's rounding where it is not to nearest even: the host's own rounding mode for single and double
 * precision, and half precision in software (the host's mode reaches no half). RDNA3 Shader ISA document,
 * section 3.4.2 "MODE". */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "mock/isa/uops.h"

#define HANDLER(name) static const struct bw_uop *name(struct bw_wave *wave, const struct bw_uop *uop)

/* Numbered as in MODE. */
enum rounding { ROUND_EVEN, ROUND_UP, ROUND_DOWN, ROUND_ZERO };

/* For the uops between two of these. The handlers of other files do not know, nor does the compiler there: it
 * has no constant operands to fold. */
HANDLER(x_SET_ROUNDING)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    fesetround(modes[uop->a & 3]);
    return uop + 1;
}

static double half_value(uint32_t half)
{
    int exponent = (int)(half >> 10 & 31);
    double magnitude = half & 0x3ff;
    if (exponent == 31)
        magnitude = magnitude != 0 ? NAN : INFINITY;
    else
        magnitude = exponent ? ldexp(magnitude + 1024, exponent - 25) : ldexp(magnitude, -24);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* value + error is exact, error small beside value: rounded once. */
static uint32_t rounded_half(double value, double error, enum rounding rounding)
{
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value), left = sign ? -error : error;
    if (value != value)
        return 0x7e00;
    if (magnitude == INFINITY)
        return sign | 0x7c00;
    bool grows = rounding == ROUND_UP ? !sign : rounding == ROUND_DOWN ? sign != 0 : false;
    int exponent = magnitude > 0 ? ilogb(magnitude) : -24;
    double step = ldexp(1, (exponent < -14 ? -14 : exponent) - 10);
    double units = floor(magnitude / step),
           rest = magnitude / step - units; /* exact: step is a power of two */
    if (rest == 0 && left < 0) {
        units -= 1;
        rest = 1; /* as good as: just below the next unit */
    }
    bool inexact = rest != 0 || left != 0;
    if (rounding == ROUND_EVEN) {
        bool above = rest > 0.5 || (rest == 0.5 && left > 0), tie = rest == 0.5 && left == 0;
        grows = above || (tie && fmod(units, 2) != 0);
    } else {
        grows = grows && inexact;
    }
    magnitude = (units + (grows ? 1 : 0)) * step;
    if (magnitude >= 65536) {
        bool to_infinity =
            rounding == ROUND_EVEN || (rounding == ROUND_UP && !sign) || (rounding == ROUND_DOWN && sign);
        return sign | (to_infinity ? 0x7c00 : 0x7bff);
    }
    if (magnitude < 0x1p-14)
        return sign | (uint32_t)ldexp(magnitude, 24);
    exponent = ilogb(magnitude);
    return sign | (uint32_t)(exponent + 15) << 10 | ((uint32_t)ldexp(magnitude, 10 - exponent) & 0x3ff);
}

/* a * b + c of halves: the product is exact in double precision, the sum has an exact error. */
static uint32_t fused_half(double a, double b, double c, enum rounding rounding)
{
    double product = a * b, sum = product + c, back = sum - product;
    double error = isfinite(sum) ? (product - (sum - back)) + (c - back) : 0;
    if (sum == 0 && error == 0 && (product != 0 || signbit(product) != signbit(c)))
        sum = rounding == ROUND_DOWN ? -0.0 : 0.0; /* a sum of opposites */
    return rounded_half(sum, error, rounding);
}

/* a * 2^n; beyond 60 it overflows or vanishes all the same. */
static double scaled_half(double a, int n)
{
    return ldexp(a, n > 60 ? 60 : n < -60 ? -60 : n);
}

/* x - floor(x), below 1 (V_FRACT_F16). */
static uint32_t fraction_half(double a, enum rounding rounding)
{
    uint32_t r = fused_half(a, 1, -floor(a), rounding);
    return r == 0x3c00 ? 0x3bff : r;
}

static double packed_value(const struct bw_wave *wave, int32_t offset, unsigned lane, unsigned shift)
{
    return offset ? half_value(BW_AT(const uint32_t, wave, offset)[lane] >> shift & 0xffff) : 0;
}

#define HALVES(op, expression)                                                                      \
    HANDLER(x_##op)                                                                                 \
    {                                                                                               \
        enum rounding rounding = (enum rounding)(uop->g & 3);                                       \
        uint32_t exec = *BW_AT(const uint32_t, wave, uop->x);                                       \
        for (unsigned lane = 0; lane < BW_LANES; lane++) {                                          \
            double a = half_value(BW_AT(const uint32_t, wave, uop->a)[lane] & 0xffff);              \
            double b = uop->b ? half_value(BW_AT(const uint32_t, wave, uop->b)[lane] & 0xffff) : 0; \
            double c = uop->c ? half_value(BW_AT(const uint32_t, wave, uop->c)[lane] & 0xffff) : 0; \
            uint32_t r = (expression), *d = BW_AT(uint32_t, wave, uop->d) + lane;                   \
            (void)a, (void)b, (void)c;                                                              \
            if (exec >> lane & 1)                                                                   \
                *d = (*d & 0xffff0000u) | r;                                                        \
        }                                                                                           \
        return uop + 1;                                                                             \
    }
HALVES(ROUNDED_ADD_F16, fused_half(a, 1, b, rounding))
HALVES(ROUNDED_SUB_F16, fused_half(a, 1, -b, rounding))
HALVES(ROUNDED_SUBREV_F16, fused_half(b, 1, -a, rounding))
HALVES(ROUNDED_MUL_F16, rounded_half(a *b, 0, rounding))
HALVES(ROUNDED_FMA_F16, fused_half(a, b, c, rounding))
HALVES(ROUNDED_CVT_F16_F32, rounded_half((double)BW_AT(const float, wave, uop->a)[lane], 0, rounding))
HALVES(ROUNDED_LDEXP_F16,
       rounded_half(scaled_half(a, (int16_t)BW_AT(const uint32_t, wave, uop->b)[lane]), 0, rounding))
HALVES(ROUNDED_CVT_F16_U16, rounded_half((uint16_t)BW_AT(const uint32_t, wave, uop->a)[lane], 0, rounding))
HALVES(ROUNDED_CVT_F16_I16, rounded_half((int16_t)BW_AT(const uint32_t, wave, uop->a)[lane], 0, rounding))
HALVES(ROUNDED_FRACT_F16, fraction_half(a, rounding))

/* Both halves of packed sources. */
#define PACKED(op, expression)                                      \
    HANDLER(x_##op)                                                 \
    {                                                               \
        enum rounding rounding = (enum rounding)(uop->g & 3);       \
        uint32_t exec = *BW_AT(const uint32_t, wave, uop->x);       \
        for (unsigned lane = 0; lane < BW_LANES; lane++) {          \
            uint32_t r = 0;                                         \
            for (unsigned shift = 0; shift < 32; shift += 16) {     \
                double a = packed_value(wave, uop->a, lane, shift); \
                double b = packed_value(wave, uop->b, lane, shift); \
                double c = packed_value(wave, uop->c, lane, shift); \
                (void)c;                                            \
                r |= (expression) << shift;                         \
            }                                                       \
            if (exec >> lane & 1)                                   \
                BW_AT(uint32_t, wave, uop->d)[lane] = r;            \
        }                                                           \
        return uop + 1;                                             \
    }
PACKED(ROUNDED_PK_ADD_F16, fused_half(a, 1, b, rounding))
PACKED(ROUNDED_PK_MUL_F16, rounded_half(a *b, 0, rounding))
PACKED(ROUNDED_PK_FMA_F16, fused_half(a, b, c, rounding))

#define R(op)               \
    {                       \
        BW_UOP_##op, x_##op \
    }
static const struct bw_uop_row rows[] = {
    R(SET_ROUNDING),        R(ROUNDED_ADD_F16),     R(ROUNDED_SUB_F16),     R(ROUNDED_SUBREV_F16),
    R(ROUNDED_MUL_F16),     R(ROUNDED_FMA_F16),     R(ROUNDED_CVT_F16_F32), R(ROUNDED_LDEXP_F16),
    R(ROUNDED_CVT_F16_U16), R(ROUNDED_CVT_F16_I16), R(ROUNDED_FRACT_F16),   R(ROUNDED_PK_ADD_F16),
    R(ROUNDED_PK_MUL_F16),  R(ROUNDED_PK_FMA_F16),
};
const struct bw_uop_table bw_plain_rounding = {rows, sizeof rows / sizeof rows[0]};
