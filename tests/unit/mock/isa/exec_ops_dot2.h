/* The reference of dot products of halves and bfloats, in doubles. What it follows, and where that was
 * measured: mock/isa/dot2.h's source, AMD's rocjitsu (rocm-systems, shared/gfx11_dot2.h and issue 12056). */
#ifndef BW_TESTS_EXEC_OPS_DOT2_H
#define BW_TESTS_EXEC_OPS_DOT2_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum dot2_kind { DOT2_SINGLE, DOT2_HALF, DOT2_BFLOAT };

/* A half, or a bfloat without denormals. */
static inline double dot2_number(uint32_t bits, bool is_bfloat)
{
    int fraction_bits = is_bfloat ? 7 : 10, bias = is_bfloat ? 127 : 15;
    int field = (int)(bits & 0x7fff) >> fraction_bits, fraction = (int)bits & ((1 << fraction_bits) - 1);
    double magnitude =
        ldexp(fraction + (field ? 1 << fraction_bits : 0), (field ? field : 1) - bias - fraction_bits);
    if (field == 2 * bias + 1)
        magnitude = fraction ? NAN : INFINITY;
    else if (field == 0 && is_bfloat)
        magnitude = 0;
    return bits & 0x8000 ? -magnitude : magnitude;
}

static inline double dot2_single(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return fpclassify(value) == FP_SUBNORMAL ? copysign(0, value) : value;
}

/* The exponent of a factor where it is normal, the least one where it is not. */
static inline int dot2_exponent(double factor, bool is_bfloat)
{
    int least = is_bfloat ? -126 : -14;
    return factor != 0 && ilogb(factor) > least ? ilogb(factor) : least;
}

/* Single precision without denormals: 24 bits, then the range. */
static inline uint32_t dot2_to_single(double value)
{
    int exponent;
    double fraction = frexp(value, &exponent), digits = nearbyint(ldexp(fraction, 24));
    float r = ilogb(digits) + exponent - 24 < -126 ? 0 : (float)ldexp(digits, exponent - 24);
    uint32_t bits;
    memcpy(&bits, &r, 4);
    return bits;
}

static inline uint32_t dot2_to_half(double value, bool keep_finite)
{
    double magnitude = fabs(value);
    int exponent = ilogb(magnitude) < -14 ? -14 : ilogb(magnitude);
    double digits = nearbyint(ldexp(magnitude, 10 - exponent));
    if (digits == 0)
        return 0;
    magnitude = ldexp(digits, exponent - 10);
    uint32_t sign = value < 0 ? 0x8000 : 0;
    if (magnitude > 65504)
        return sign | (keep_finite ? 0x7bff : 0x7c00);
    if (magnitude < 0x1p-14)
        return sign | (uint32_t)ldexp(magnitude, 24);
    exponent = ilogb(magnitude);
    return sign | ((uint32_t)(exponent + 15) << 10) | ((uint32_t)ldexp(magnitude, 10 - exponent) & 0x3ff);
}

/* What is neither a number nor has to be added; 0: nothing of that kind. */
static inline uint32_t dot2_special(const double f[4], uint32_t c, double c_value)
{
    double products[2] = {f[0] * f[1], f[2] * f[3]};
    if (isnan(f[0]) || isnan(f[1]) || isnan(f[2]) || isnan(f[3]))
        return 0xffc00a3d;
    if (isnan(products[0] + products[1]))
        return 0xffc00000;
    if (isnan(c_value))
        return c | 0x400000;
    double sum = products[0] + products[1] + c_value;
    return isnan(sum) ? 0xffc00000 : isinf(sum) ? (sum < 0 ? 0xff800000 : 0x7f800000) : 0;
}

/* a, b: two factors each; c: what is added, as a single. */
static inline uint32_t dot2_of(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat, enum dot2_kind kind,
                               bool keep_finite)
{
    const double f[4] = {dot2_number(a & 0xffff, is_bfloat), dot2_number(b & 0xffff, is_bfloat),
                         dot2_number(a >> 16, is_bfloat), dot2_number(b >> 16, is_bfloat)};
    double terms[3] = {dot2_single(c), f[0] * f[1], f[2] * f[3]}, total = 0;
    uint32_t special = dot2_special(f, c, terms[0]);
    int unit = kind == DOT2_HALF ? -14 - 26 : -10000;
    if (special)
        return special;
    for (unsigned i = 0; i < 3; i++) {
        if (terms[i] != 0)
            unit = fmax(unit, ilogb(terms[i]) - 26);
        if (terms[i] != 0 && i)
            unit = fmax(unit,
                        dot2_exponent(f[2 * i - 2], is_bfloat) + dot2_exponent(f[2 * i - 1], is_bfloat) - 24);
    }
    if (terms[0] == 0 && terms[1] == 0 && terms[2] == 0)
        return 0;
    for (unsigned i = 0; i < 3; i++) {
        double units = floor(ldexp(fabs(terms[i]), -unit));
        total += !signbit(terms[i]) == !signbit(terms[0]) ? units : -units - 1;
    }
    if (total == 0)
        return 0;
    total = ldexp(signbit(terms[0]) ? -total : total, unit);
    return kind == DOT2_HALF ? dot2_to_half(total, keep_finite) : dot2_to_single(total);
}

/* With c and the result in 16 bits. */
static inline uint32_t dot2_narrow(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat, bool keep_finite)
{
    float wide = (float)dot2_number(c, false);
    uint32_t bits = c << 16;
    if (!is_bfloat) {
        memcpy(&bits, &wide, 4);
        bits = isnan(wide) ? (c & 0x8000) << 16 | 0x7f800000 | (c & 0x3ff) << 13 : bits;
    }
    uint32_t r = dot2_of(a, b, bits, is_bfloat, is_bfloat ? DOT2_BFLOAT : DOT2_HALF, keep_finite);
    if (r == 0xffc00a3d)
        return is_bfloat ? 0xfffd : 0xfe3d;
    if (is_bfloat)
        return r >> 16;
    /* specials come as singles, sums as halves */
    return r > 0xffff ? (r >> 16 & 0x8000) | 0x7c00 | (r >> 13 & 0x3ff) : r;
}

#endif
