/* Functions that the IR has no op for, from EXP2, LOG2, SIN, SQRT and polynomials.
 *
 * f16 and bf16 are computed in f32 and rounded once. The polynomials were fitted for this file (interpolation
 * at Chebyshev nodes in 60-digit arithmetic); the comment at each gives its relative error, beside
 * f32's 6.0e-8 and f64's 1.1e-16. */
#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "compiler/tensor_internal.h"

typedef struct bw_tensor_graph graph;

static bw_tensor constant(graph *g, bw_tensor like, double value)
{
    return bw_tensor_scalar(g, bw_tensor_dtype(g, like), value);
}

static bw_tensor scale(graph *g, bw_tensor x, double factor)
{
    return bw_tensor_mul(g, x, constant(g, x, factor));
}

static bw_tensor offset(graph *g, bw_tensor x, double value)
{
    return bw_tensor_add(g, x, constant(g, x, value));
}

static bw_tensor square(graph *g, bw_tensor x)
{
    return bw_tensor_mul(g, x, x);
}

static bool is_double(const graph *g, bw_tensor x)
{
    return bw_tensor_dtype(g, x) == BW_F64;
}

/* Horner's scheme, coefficients from the constant upward. */
static bw_tensor polynomial(graph *g, bw_tensor x, const double *coefficients, size_t count)
{
    bw_tensor sum = constant(g, x, coefficients[count - 1]);
    for (size_t i = count - 1; i-- > 0;)
        sum = offset(g, bw_tensor_mul(g, sum, x), coefficients[i]);
    return sum;
}

#define POLYNOMIAL(g, x, f32_table, f64_table)                             \
    (is_double(g, x) ? polynomial(g, x, f64_table, BW_COUNT_OF(f64_table)) \
                     : polynomial(g, x, f32_table, BW_COUNT_OF(f32_table)))

/* sign of `sign_of` on the magnitude of x: also for zeros, so that odd functions keep -0. */
static bw_tensor odd(graph *g, bw_tensor magnitude, bw_tensor x)
{
    bw_tensor negative = bw_tensor_less(g, x, constant(g, x, 0));
    return bw_tensor_where(g, negative, bw_tensor_neg(g, magnitude), magnitude);
}

/* Applies a function in f32 to what is narrower; refuses what is no float. */
static bw_tensor widened(graph *g, bw_tensor x, bw_tensor (*function)(graph *, bw_tensor), const char *name)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (!x.id)
        return x;
    if (!bw_dtype_is_float(dtype))
        return bw_tensor_fail(g, -EINVAL, "%s of %s", name, bw_dtype_name(dtype));
    if (dtype == BW_F32 || dtype == BW_F64)
        return function(g, x);
    return bw_tensor_cast(g, dtype, function(g, bw_tensor_cast(g, BW_F32, x)));
}

/* x = n ln2 + rest with n an integer, |rest| <= ln2/2 where n is not clamped. ln2 is split so that n *
 * LN2_HIGH is exact. */
static bw_tensor reduce_by_ln2(graph *g, bw_tensor x, double n_max, bw_tensor *rest)
{
    const double high = is_double(g, x) ? 0.69314718036912381649 : 0.693115234375;
    const double low = is_double(g, x) ? 1.9082149292705878161e-10 : 3.1946184945309417232e-5;
    bw_tensor n = bw_tensor_round_even(g, scale(g, x, M_LOG2E));
    n = bw_tensor_min(g, n, constant(g, x, n_max));
    *rest = bw_tensor_sub(g, bw_tensor_sub(g, x, scale(g, n, high)), scale(g, n, low));
    return n;
}

/* exp2(x * log2(e)) alone would lose as many bits as x has before the point. x is clamped to where the result
 * is infinite or zero anyway, so that infinities pass; n is clamped so that 2^n stays finite. */
static bw_tensor exp_wide(graph *g, bw_tensor x)
{
    bool wide = is_double(g, x);
    bw_tensor clamped = bw_tensor_max(g, bw_tensor_min(g, x, constant(g, x, wide ? 711 : 90)),
                                      constant(g, x, wide ? -750 : -110));
    bw_tensor rest, n = reduce_by_ln2(g, clamped, wide ? 1023 : 127, &rest);
    return bw_tensor_mul(g, bw_tensor_exp2(g, scale(g, rest, M_LOG2E)), bw_tensor_exp2(g, n));
}

/* exp(x) - 1 without cancellation; x <= 88 (709): callers clamp. */
static bw_tensor expm1_wide(graph *g, bw_tensor x)
{
    static const double f32_table[] = {/* (e^r - 1) / r on |r| <= 0.35: 2.9e-10 */
                                       1.0,
                                       0.50000000500187971,
                                       0.16666666722219043,
                                       0.041666340142225576,
                                       0.0083332970674287185,
                                       0.0013942159833661436,
                                       0.00019900441465296743};
    static const double f64_table[] = {/* 3.9e-21 */
                                       1.0,
                                       0.5,
                                       0.16666666666666667,
                                       0.041666666666666695,
                                       0.0083333333333333352,
                                       0.0013888888888870479,
                                       0.0001984126984125757,
                                       2.4801587353097501e-5,
                                       2.7557319258319923e-6,
                                       2.7557249168853017e-7,
                                       2.5052061689452824e-8,
                                       2.0922481826949527e-9,
                                       1.6089523400634992e-10};
    bw_tensor rest, n = reduce_by_ln2(g, x, is_double(g, x) ? 1023 : 127, &rest);
    bw_tensor power = bw_tensor_exp2(g, n),
              small = bw_tensor_mul(g, rest, POLYNOMIAL(g, rest, f32_table, f64_table));
    return bw_tensor_add(g, bw_tensor_mul(g, power, small), offset(g, power, -1));
}

static bw_tensor log_wide(graph *g, bw_tensor x)
{
    return scale(g, bw_tensor_log2(g, x), M_LN2);
}

/* log(1 + x): the rounding of 1 + x is undone by the ratio x / ((1 + x) - 1). */
static bw_tensor log1p_wide(graph *g, bw_tensor x)
{
    bw_tensor sum = offset(g, x, 1), rounded = offset(g, sum, -1), zero = constant(g, x, 0);
    bw_tensor corrected = bw_tensor_mul(g, log_wide(g, sum), bw_tensor_div(g, x, rounded));
    bw_tensor plain = bw_tensor_or(g, bw_tensor_is_inf(g, sum), bw_tensor_equal(g, rounded, zero));
    return bw_tensor_where(
        g, plain, bw_tensor_where(g, bw_tensor_equal(g, rounded, zero), x, log_wide(g, sum)), corrected);
}

/* 1 - 2 sin^2(x/2): x/2 is exact however large x is, x + pi/2 is not. */
static bw_tensor cos_wide(graph *g, bw_tensor x)
{
    bw_tensor half = bw_tensor_sin(g, scale(g, x, 0.5));
    return bw_tensor_sub(g, constant(g, x, 1), scale(g, square(g, half), 2));
}

static bw_tensor tan_wide(graph *g, bw_tensor x)
{
    return bw_tensor_div(g, bw_tensor_sin(g, x), cos_wide(g, x));
}

/* |x| > 1 is turned to 1/|x|, what is above tan(pi/8) to (t-1)/(t+1); then a polynomial. */
static bw_tensor atan_wide(graph *g, bw_tensor x)
{
    static const double f32_table[] = {/* atan(u)/u in u^2, u <= tan(pi/8): 6.3e-10 */
                                       0.99999999936769799,  -0.33333306771110682, 0.19998176466108396,
                                       -0.14239410856830652, 0.10568920783713333,  -0.060239631775997364};
    static const double f64_table[] = {/* 4.7e-20 */
                                       1.0,
                                       -0.33333333333333324,
                                       0.19999999999996984,
                                       -0.14285714285326201,
                                       0.11111111085112751,
                                       -0.09090908051683606,
                                       0.076922809369842616,
                                       -0.066662028877461991,
                                       0.058768110261210218,
                                       -0.052171658995952996,
                                       0.044989082467814506,
                                       -0.033374102242899617,
                                       0.015099884864821964};
    bw_tensor magnitude = bw_tensor_abs(g, x), one = constant(g, x, 1), zero = constant(g, x, 0);
    bw_tensor outside = bw_tensor_greater(g, magnitude, one);
    bw_tensor t = bw_tensor_where(g, outside, bw_tensor_reciprocal(g, magnitude), magnitude);
    bw_tensor upper = bw_tensor_greater(g, t, constant(g, x, 0.41421356237309503));
    bw_tensor u =
        bw_tensor_where(g, upper, bw_tensor_div(g, bw_tensor_sub(g, t, one), bw_tensor_add(g, t, one)), t);
    bw_tensor z = square(g, u), result = bw_tensor_mul(g, u, POLYNOMIAL(g, z, f32_table, f64_table));
    result = bw_tensor_add(g, result, bw_tensor_where(g, upper, constant(g, x, M_PI_4), zero));
    result = bw_tensor_where(g, outside, bw_tensor_sub(g, constant(g, x, M_PI_2), result), result);
    return odd(g, result, x);
}

/* (1-x)(1+x) does not cancel near 1 as 1 - x^2 does; beyond 1 the root is NaN, as it should be. */
static bw_tensor asin_wide(graph *g, bw_tensor x)
{
    bw_tensor one = constant(g, x, 1);
    bw_tensor root = bw_tensor_sqrt(g, bw_tensor_mul(g, bw_tensor_sub(g, one, x), bw_tensor_add(g, one, x)));
    return atan_wide(g, bw_tensor_div(g, x, root));
}

static bw_tensor acos_wide(graph *g, bw_tensor x)
{
    bw_tensor one = constant(g, x, 1);
    bw_tensor ratio = bw_tensor_div(g, bw_tensor_sub(g, one, x), bw_tensor_add(g, one, x));
    return scale(g, atan_wide(g, bw_tensor_sqrt(g, ratio)), 2);
}

/* Below 1 through expm1, which does not cancel; above through exp(|x|/2)^2 / 2, which overflows only where
 * the result does. */
static bw_tensor sinh_wide(graph *g, bw_tensor x)
{
    bw_tensor magnitude = bw_tensor_abs(g, x), one = constant(g, x, 1);
    bw_tensor small = expm1_wide(g, bw_tensor_min(g, magnitude, one));
    small = scale(g, bw_tensor_add(g, small, bw_tensor_div(g, small, offset(g, small, 1))), 0.5);
    bw_tensor half = exp_wide(g, scale(g, magnitude, 0.5));
    bw_tensor large = bw_tensor_sub(g, bw_tensor_mul(g, scale(g, half, 0.5), half),
                                    bw_tensor_div(g, constant(g, x, 0.5), square(g, half)));
    return odd(g, bw_tensor_where(g, bw_tensor_greater(g, magnitude, one), large, small), x);
}

static bw_tensor cosh_wide(graph *g, bw_tensor x)
{
    bw_tensor half = exp_wide(g, scale(g, bw_tensor_abs(g, x), 0.5));
    return bw_tensor_add(g, bw_tensor_mul(g, scale(g, half, 0.5), half),
                         bw_tensor_div(g, constant(g, x, 0.5), square(g, half)));
}

/* e / (e + 2) with e = exp(2|x|) - 1; beyond 20 it is 1 in both precisions. MIN passes NaN on. */
static bw_tensor tanh_wide(graph *g, bw_tensor x)
{
    bw_tensor magnitude = bw_tensor_min(g, bw_tensor_abs(g, x), constant(g, x, 20));
    bw_tensor e = expm1_wide(g, scale(g, magnitude, 2));
    return odd(g, bw_tensor_div(g, e, offset(g, e, 2)), x);
}

/* log(|x| + sqrt(x^2 + 1)) as log1p; where x^2 would overflow, log(2|x|). */
static bw_tensor asinh_wide(graph *g, bw_tensor x)
{
    bw_tensor magnitude = bw_tensor_abs(g, x), limit = constant(g, x, is_double(g, x) ? 1e150 : 1e18);
    bw_tensor z = bw_tensor_min(g, magnitude, limit), z2 = square(g, z);
    bw_tensor near = log1p_wide(
        g, bw_tensor_add(g, z, bw_tensor_div(g, z2, offset(g, bw_tensor_sqrt(g, offset(g, z2, 1)), 1))));
    bw_tensor far = offset(g, log_wide(g, magnitude), M_LN2);
    return odd(g, bw_tensor_where(g, bw_tensor_greater(g, magnitude, limit), far, near), x);
}

/* log1p(t + sqrt(t(t + 2))) with t = x - 1: NaN below 1 through the root. */
static bw_tensor acosh_wide(graph *g, bw_tensor x)
{
    bw_tensor limit = constant(g, x, is_double(g, x) ? 1e150 : 1e18);
    bw_tensor t = offset(g, bw_tensor_min(g, x, limit), -1);
    bw_tensor near =
        log1p_wide(g, bw_tensor_add(g, t, bw_tensor_sqrt(g, bw_tensor_mul(g, t, offset(g, t, 2)))));
    return bw_tensor_where(g, bw_tensor_greater(g, x, limit), offset(g, log_wide(g, x), M_LN2), near);
}

static bw_tensor atanh_wide(graph *g, bw_tensor x)
{
    bw_tensor magnitude = bw_tensor_abs(g, x);
    bw_tensor ratio =
        bw_tensor_div(g, scale(g, magnitude, 2), bw_tensor_sub(g, constant(g, x, 1), magnitude));
    return odd(g, scale(g, log1p_wide(g, ratio), 0.5), x);
}

static bw_tensor sigmoid_wide(graph *g, bw_tensor x)
{
    return bw_tensor_reciprocal(g, offset(g, exp_wide(g, bw_tensor_neg(g, x)), 1));
}

/* log2(erfc(x)), x at least 1. */
static bw_tensor erfc_log2(graph *g, bw_tensor x)
{
    static const double f32_table[] = {/* on [1, 4] about 2.5: 4.5e-9 */
                                       -11.262853684908356,    -7.7222859722932082,    -1.3617506801244885,
                                       -0.015664945685980174,  0.0031236798361864998,  -0.0006070740276048771,
                                       0.00011164671198855773, -1.8647837330046077e-5, 2.330790909714759e-6,
                                       -1.093949767436081e-7};
    static const double low_table[] = {/* on [1, 2.5] about 1.75: 1.9e-16 */
                                       -6.2293602953778469,    -5.7125110104534035,    -1.3127661657105169,
                                       -0.029631283163674071,  0.006672364295009266,   -0.0013909003499953846,
                                       0.00025178356315030819, -3.4251604949858512e-5, 1.1938293143864565e-6,
                                       1.2848640694262269e-6,  -5.7973584698539544e-7, 1.6405618981073862e-7,
                                       -3.3581667485869461e-8, 3.0857420673370117e-9,  6.857962778653782e-10};
    static const double high_table[] = {
        /* on [2.5, 6] about 4.25: 2.5e-15 */
        -29.009379920186687,    -12.585747962611063,     -1.4081923778568201,     -0.0047085876863147762,
        0.00069325645963499223, -0.00010442203011701977, 1.5695427629160009e-5,   -2.3180212643446896e-6,
        3.3212300839437193e-7,  -4.5513040881012943e-8,  5.8316164620733033e-9,   -6.7498783405315583e-10,
        6.92068885025122e-11,   -4.1058659065468367e-12, -1.4387884097060276e-12, 4.0209186868017326e-13};
    if (!is_double(g, x))
        return polynomial(g, offset(g, x, -2.5), f32_table, BW_COUNT_OF(f32_table));
    bw_tensor low = polynomial(g, offset(g, x, -1.75), low_table, BW_COUNT_OF(low_table));
    bw_tensor high = polynomial(g, offset(g, x, -4.25), high_table, BW_COUNT_OF(high_table));
    return bw_tensor_where(g, bw_tensor_less(g, x, constant(g, x, 2.5)), low, high);
}

/* x P(x^2) up to 1, above it 1 - erfc(x); beyond 4 (6) erf is 1 to the last bit. */
static bw_tensor erf_wide(graph *g, bw_tensor x)
{
    static const double f32_table[] = {/* erf(x)/x in x^2 on [0, 1]: 1.3e-9 */
                                       1.1283791658483509,    -0.37612626666720331, 0.11283594715160218,
                                       -0.026854212010626412, 0.005189087423433974, -0.00080168642871658695,
                                       7.8758750626854883e-5};
    static const double f64_table[] = {
        /* 2.4e-21 */
        1.1283791670955126,     -0.37612638903183752,    0.1128379167095512,     -0.026866170645129841,
        0.0052239776254232983,  -0.00085483270219348296, 0.00012055332902888735, -1.4925647567519332e-5,
        1.6462045441468419e-6,  -1.6364642158167615e-7,  1.4792401209404813e-8,  -1.216456005728345e-9,
        8.7090451290531067e-11, -4.2309458242953378e-12};
    bw_tensor one = constant(g, x, 1), magnitude = bw_tensor_abs(g, x);
    bw_tensor inner = bw_tensor_min(g, magnitude, one), z = square(g, inner);
    bw_tensor small = bw_tensor_mul(g, inner, POLYNOMIAL(g, z, f32_table, f64_table));
    bw_tensor outer =
        bw_tensor_max(g, bw_tensor_min(g, magnitude, constant(g, x, is_double(g, x) ? 6 : 4)), one);
    bw_tensor large = bw_tensor_sub(g, one, bw_tensor_exp2(g, erfc_log2(g, outer)));
    return odd(g, bw_tensor_where(g, bw_tensor_greater(g, magnitude, one), large, small), x);
}

#define WIDENED(name)                                                  \
    bw_tensor bw_tensor_##name(struct bw_tensor_graph *g, bw_tensor x) \
    {                                                                  \
        return widened(g, x, name##_wide, #name);                      \
    }
WIDENED(exp)
WIDENED(log)
WIDENED(cos)
WIDENED(tan)
WIDENED(asin)
WIDENED(acos)
WIDENED(atan)
WIDENED(sinh)
WIDENED(cosh)
WIDENED(tanh)
WIDENED(asinh)
WIDENED(acosh)
WIDENED(atanh)
WIDENED(sigmoid)
WIDENED(erf)

/* Squaring over the six low bits of the exponent: higher ones only matter for bases 0 and 1 in magnitude,
 * whose powers repeat with the exponent's parity. A negative exponent leaves something only of 1 and -1. */
static bw_tensor pow_int(graph *g, bw_tensor base, bw_tensor exponent)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, base);
    bw_tensor zero = constant(g, base, 0), one = constant(g, base, 1);
    bw_tensor parity = bw_tensor_and(g, exponent, one);
    bw_tensor folded = bw_tensor_where(g, bw_tensor_greater(g, exponent, constant(g, base, 63)),
                                       bw_tensor_add(g, parity, constant(g, base, 62)), exponent);
    bw_tensor power = base, result = one;
    for (int bit = 0; bit < 6; bit++) {
        bw_tensor set = bw_tensor_not_equal(g, bw_tensor_and(g, folded, constant(g, base, 1 << bit)), zero);
        result = bw_tensor_where(g, set, bw_tensor_mul(g, result, power), result);
        power = square(g, power);
    }
    if (!bw_dtype_is_signed(dtype))
        return result;
    bw_tensor odd_exponent = bw_tensor_not_equal(g, parity, zero), minus_one = constant(g, base, -1);
    bw_tensor of_minus_one = bw_tensor_where(g, odd_exponent, minus_one, one);
    bw_tensor inverse =
        bw_tensor_where(g, bw_tensor_equal(g, base, one), one,
                        bw_tensor_where(g, bw_tensor_equal(g, base, minus_one), of_minus_one, zero));
    return bw_tensor_where(g, bw_tensor_less(g, exponent, zero), inverse, result);
}

/* C's pow for the special cases (C17 F.10.4.4). The error grows with the result's exponent: about 1e-5
 * relative at f32's extremes. */
static bw_tensor pow_float(graph *g, bw_tensor base, bw_tensor exponent)
{
    bw_tensor zero = constant(g, base, 0), one = constant(g, base, 1), magnitude = bw_tensor_abs(g, base);
    bw_tensor result = bw_tensor_exp2(g, bw_tensor_mul(g, exponent, bw_tensor_log2(g, magnitude)));
    bw_tensor integral = bw_tensor_equal(g, bw_tensor_floor(g, exponent), exponent);
    bw_tensor half = scale(g, exponent, 0.5);
    bw_tensor odd_exponent =
        bw_tensor_and(g, integral, bw_tensor_not_equal(g, bw_tensor_floor(g, half), half));
    /* -0 has a sign too: 1/x tells. */
    bw_tensor negative = bw_tensor_less(g, base, zero);
    bw_tensor minus_zero = bw_tensor_and(g, bw_tensor_equal(g, base, zero),
                                         bw_tensor_less(g, bw_tensor_reciprocal(g, base), zero));
    bw_tensor infinite_base = bw_tensor_is_inf(g, base);
    bw_tensor flips = bw_tensor_and(g, odd_exponent, bw_tensor_or(g, negative, minus_zero));
    result = bw_tensor_where(g, flips, bw_tensor_neg(g, result), result);
    bw_tensor undefined =
        bw_tensor_and(g, negative, bw_tensor_not(g, bw_tensor_or(g, integral, infinite_base)));
    undefined = bw_tensor_and(g, undefined, bw_tensor_not(g, bw_tensor_is_nan(g, exponent)));
    result = bw_tensor_where(g, undefined, constant(g, base, NAN), result);
    bw_tensor unit = bw_tensor_and(g, bw_tensor_equal(g, magnitude, one), bw_tensor_is_inf(g, exponent));
    unit = bw_tensor_or(g, unit,
                        bw_tensor_or(g, bw_tensor_equal(g, exponent, zero), bw_tensor_equal(g, base, one)));
    return bw_tensor_where(g, unit, one, result);
}

/* Small constant exponents are exact products and roots. false when the exponent is not one of them. */
static bool pow_simple(graph *g, bw_tensor base, bw_tensor exponent, bw_tensor *result)
{
    double value;
    bw_node uniform = bw_tensor_uniform_node(g, exponent.id);
    if (!uniform || !bw_ir_const_value_float(g->ir, uniform, &value))
        return false;
    if (value == 1)
        *result = base;
    else if (value == 2)
        *result = square(g, base);
    else if (value == 3)
        *result = bw_tensor_mul(g, square(g, base), base);
    else if (value == -1)
        *result = bw_tensor_reciprocal(g, base);
    else
        return false;
    struct bw_shape shape;
    if (base.id && bw_shape_broadcast(bw_ir_shape(g->ir, base.id), bw_ir_shape(g->ir, exponent.id), &shape))
        *result = bw_tensor_of(bw_tensor_broadcast_node(g, result->id, &shape));
    return true;
}

bw_tensor bw_tensor_pow(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, a);
    bw_tensor result;
    if (!a.id || !b.id)
        return bw_tensor_of(0);
    if (dtype != bw_tensor_dtype(g, b))
        return bw_tensor_fail(g, -EINVAL, "pow of %s and %s", bw_dtype_name(dtype),
                              bw_dtype_name(bw_tensor_dtype(g, b)));
    if (bw_dtype_is_int(dtype))
        return pow_int(g, a, b);
    if (!bw_dtype_is_float(dtype))
        return bw_tensor_fail(g, -EINVAL, "pow of %s", bw_dtype_name(dtype));
    if (pow_simple(g, a, b, &result))
        return result;
    if (dtype == BW_F32 || dtype == BW_F64)
        return pow_float(g, a, b);
    return bw_tensor_cast(g, dtype, pow_float(g, bw_tensor_cast(g, BW_F32, a), bw_tensor_cast(g, BW_F32, b)));
}
