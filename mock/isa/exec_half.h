/* Half precision on vectors of 32-bit lanes, of which the low 16 bits hold the value. Included by execution
 * files only. */
#ifndef BW_MOCK_ISA_EXEC_HALF_H
#define BW_MOCK_ISA_EXEC_HALF_H

#include "mock/isa/exec_vec.h"

/* Exact; a signalling NaN becomes quiet. Denormals: the exponent is made too large by one and corrected by a
 * subtraction. */
static inline vf half_to_float(vu h)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)h));
#else
    vu magnitude = (h & 0x7fff) << 13, exponent = magnitude & 0x0f800000u;
    vu rebased = magnitude + 0x38000000u;
    vu special = rebased + 0x38000000u;
    vu denormal = (vu)((vf)(rebased + 0x00800000u) - 0x1p-14f);
    vu r = select_u((vi)(exponent == 0x0f800000u), special, rebased);
    r = select_u((vi)(exponent == 0), denormal, r);
    r |= (vu)((h & 0x7fff) > 0x7c00) & 0x00400000u;
    return (vf)(r | (h & 0x8000) << 16);
#endif
}

/* Round to nearest even. */
static inline vu float_to_half(vf f)
{
#if BW_VECTOR_BYTES == 64
    return (vu)_mm512_cvtepu16_epi32(
        _mm512_cvtps_ph((__m512)f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
    vu sign = (vu)f >> 16 & 0x8000, magnitude = (vu)f & 0x7fffffffu;
    vu normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1)) >> 13;
    vu denormal = (vu)((vf)magnitude + 0.5f) - 0x3f000000u;
    vu r = select_u((vi)(magnitude < 0x38800000u), denormal, normal);
    r = select_u((vi)(magnitude >= 0x477ff000u), splat(0x7c00), r);
    r = select_u((vi)(magnitude > 0x7f800000u), (magnitude >> 13 & 0x3ff) | 0x7e00, r);
    return r | sign;
#endif
}

/* Towards zero: what does not fit becomes the largest number. */
static inline vu float_to_half_toward_zero(vf f)
{
    vu sign = (vu)f >> 16 & 0x8000, magnitude = (vu)f & 0x7fffffffu;
    vu normal = (magnitude - 0x38000000u) >> 13;
    /* Below 2^-14 the result counts units of 2^-24. */
    vf scaled = (vf)magnitude * 0x1p24f;
    vu denormal =
        (vu) __builtin_convertvector(select_f((vi)(magnitude < 0x38800000u), scaled, splat_f(0)), vi);
    vu r = select_u((vi)(magnitude < 0x38800000u), denormal, normal);
    r = select_u((vi)(magnitude >= 0x47800000u), splat(0x7bff), r);
    r = select_u((vi)(magnitude == 0x7f800000u), splat(0x7c00), r);
    r = select_u((vi)(magnitude > 0x7f800000u), (magnitude >> 13 & 0x3ff) | 0x7e00, r);
    return r | sign;
}

/* Sum rounded to odd: a later rounding to at most 22 bits is then as good as a single one. */
static inline vf add_to_odd(vf a, vf b)
{
    vf sum = a + b, back = sum - a;
    vf error = (a - (sum - back)) + (b - back);
    vi inexact = (error != 0) & (((vu)sum & 1) == 0) & (((vu)sum & 0x7f800000u) != 0x7f800000u);
    vi away = (error > 0) == (sum > 0); /* the exact sum is larger in magnitude */
    vu odd = (vu)sum + select_u(away, splat(1), splat(ALL_LANES));
    return (vf)select_u(inexact, odd, (vu)sum);
}

/* The product of two halves is exact in single precision. */
static inline vu fma_half(vu a, vu b, vu c)
{
    vf product = half_to_float(a) * half_to_float(b);
    return float_to_half(add_to_odd(product, half_to_float(c)));
}

static inline vi half_is_nan(vu a)
{
    return (vi)((a & 0x7fff) > 0x7c00);
}

static inline vi half_is_signalling(vu a)
{
    return half_is_nan(a) & (vi)((a & 0x200) == 0);
}

static inline vu half_with_nans_ieee(vu a, vu b, vu ordered)
{
    vu r = select_u(half_is_nan(a), b, ordered);
    r = select_u(half_is_nan(b), a, r);
    r = select_u(half_is_signalling(b), b | 0x200, r);
    return select_u(half_is_signalling(a), a | 0x200, r);
}

/* As V_MIN_F32: -0 < +0; MODE.IEEE = 1. */
static inline vu min_half(vu a, vu b)
{
    vf x = half_to_float(a), y = half_to_float(b);
    vu ordered = select_u(x < y, a, select_u(x == y, a | b, b));
    return half_with_nans_ieee(a, b, ordered);
}

static inline vu max_half(vu a, vu b)
{
    vf x = half_to_float(a), y = half_to_float(b);
    vu ordered = select_u(x > y, a, select_u(x == y, a & b, b));
    return half_with_nans_ieee(a, b, ordered);
}

#endif
