#include "mock/isa/dot2.h"

#include <assert.h>

enum {
    NOTHING = -1024, /* the exponent of what is zero: below that of any term */
    TERM_BITS = 26,
    PRODUCT_BITS = 24,
    HALF_LEAST = -14, /* what the exponent of a third number is at least where it is a half */
};

static const uint32_t factor_nan = 0xffc00a3d, invalid_nan = 0xffc00000, infinity = 0x7f800000,
                      sign_bit = 1u << 31;

/* m * 2^exponent. */
struct term {
    uint64_t m;
    int exponent;
    bool negative;
};

struct factor {
    struct term value;
    int announced; /* its exponent field's worth */
    bool is_nan, is_infinite;
};

static struct factor factor_of(uint32_t bits, bool is_bfloat)
{
    int fraction_bits = is_bfloat ? 7 : 10, bias = is_bfloat ? 127 : 15;
    uint32_t fraction = bits & ((1u << fraction_bits) - 1), field = (bits & 0x7fff) >> fraction_bits;
    bool is_special = field == 2u * (unsigned)bias + 1;
    struct factor r = {.announced = (int)(field ? field : 1) - bias,
                       .is_nan = is_special && fraction,
                       .is_infinite = is_special && !fraction};
    r.value.m = field ? fraction | 1u << fraction_bits : is_bfloat ? 0 : fraction;
    r.value.exponent = r.announced - fraction_bits;
    r.value.negative = bits >> 15 & 1;
    return r;
}

static struct term single_of(uint32_t bits)
{
    int field = (int)(bits >> 23 & 255);
    return (struct term){field ? (bits & 0x7fffff) | 0x800000 : 0, field - 127 - 23, bits >> 31};
}

static int top_bit(uint64_t m)
{
    return 63 - __builtin_clzll(m);
}

static int top_exponent(const struct term *term)
{
    return term->m ? term->exponent + top_bit(term->m) : NOTHING;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* The term in whole units, cut; as the sum counts it. */
static int64_t in_units(const struct term *term, int unit, bool sum_negative)
{
    int shift = term->exponent - unit;
    uint64_t m = term->m == 0 || shift <= -64 ? 0 : shift >= 0 ? term->m << shift : term->m >> -shift;
    assert(term->m == 0 || shift < 64 - PRODUCT_BITS); /* the unit is at most so far below the largest term */
    return term->negative == sum_negative ? (int64_t)m : -(int64_t)m - 1;
}

static uint64_t rounded(uint64_t m, int shift)
{
    if (shift <= 0)
        return m << -shift;
    if (shift >= 64)
        return 0;
    uint64_t kept = m >> shift, rest = m - (kept << shift), half = 1ull << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint32_t to_single(uint64_t m, int exponent, bool negative)
{
    int top = top_bit(m), unit = exponent + top - 23;
    uint64_t kept = rounded(m, top - 23);
    unit += (int)(kept >> 24);
    int field = unit + 23 + 127;
    if (field <= 0)
        return 0;
    uint32_t bits =
        field >= 255 ? infinity : (uint32_t)field << 23 | (kept >> 24 ? 0 : (uint32_t)kept & 0x7fffff);
    return bits | (negative ? sign_bit : 0);
}

static uint32_t to_half(uint64_t m, int exponent, bool negative, bool keep_finite)
{
    enum { LEAST = -24, INFINITE = 0x7c00 };
    int unit = larger(exponent + top_bit(m) - 10, LEAST);
    uint64_t bits = rounded(m, unit - exponent) + ((uint64_t)(unit - LEAST) << 10);
    if (bits == 0)
        return 0;
    if (bits >= INFINITE)
        bits = keep_finite ? INFINITE - 1 : INFINITE;
    return (uint32_t)bits | (negative ? 0x8000 : 0);
}

/* Whether the result is settled without adding. */
static bool is_special_sum(const struct factor f[4], uint32_t c, uint32_t *result)
{
    bool positive = false, negative = false, invalid = false;
    for (unsigned i = 0; i < 4; i += 2) {
        const struct factor *x = &f[i], *y = &f[i + 1];
        if (x->is_nan || y->is_nan || f[i ^ 2].is_nan || f[(i ^ 2) + 1].is_nan) {
            *result = factor_nan;
            return true;
        }
        if (!x->is_infinite && !y->is_infinite)
            continue;
        invalid |= (!x->is_infinite && !x->value.m) || (!y->is_infinite && !y->value.m);
        *(x->value.negative == y->value.negative ? &positive : &negative) = true;
    }
    invalid |= positive && negative;
    bool c_is_nan = (c & ~sign_bit) > infinity;
    if (!invalid && c_is_nan) {
        *result = c | 0x400000;
        return true;
    }
    positive |= c == infinity;
    negative |= c == (infinity | sign_bit);
    *result = invalid || (positive && negative) ? invalid_nan : negative ? infinity | sign_bit : infinity;
    return invalid || positive || negative;
}

enum result { SINGLE, HALF, HALF_FINITE };

static uint32_t sum_of(const struct factor f[4], uint32_t c_bits, enum result result)
{
    struct term c = single_of(c_bits), products[2];
    int announced = NOTHING, top = top_exponent(&c);
    if (result != SINGLE)
        top = larger(top, HALF_LEAST);
    bool any = c.m != 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct factor *x = &f[2 * i], *y = &f[2 * i + 1];
        products[i] = (struct term){x->value.m * y->value.m, x->value.exponent + y->value.exponent,
                                    x->value.negative != y->value.negative};
        top = larger(top, top_exponent(&products[i]));
        announced = larger(announced, products[i].m ? x->announced + y->announced : NOTHING);
        any |= products[i].m != 0;
    }
    if (!any)
        return 0;
    int unit = larger(announced - PRODUCT_BITS, top - TERM_BITS);
    int64_t total = in_units(&c, unit, c.negative);
    for (unsigned i = 0; i < 2; i++)
        total += in_units(&products[i], unit, c.negative);
    if (total == 0)
        return 0;
    bool negative = (total < 0) != c.negative;
    uint64_t m = (uint64_t)(total < 0 ? -total : total);
    return result == SINGLE ? to_single(m, unit, negative)
                            : to_half(m, unit, negative, result == HALF_FINITE);
}

static void factors_of(uint32_t a, uint32_t b, bool is_bfloat, struct factor f[4])
{
    f[0] = factor_of(a, is_bfloat);
    f[1] = factor_of(b, is_bfloat);
    f[2] = factor_of(a >> 16, is_bfloat);
    f[3] = factor_of(b >> 16, is_bfloat);
}

uint32_t bw_dot2(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat)
{
    struct factor f[4];
    uint32_t r;
    factors_of(a, b, is_bfloat, f);
    return is_special_sum(f, c, &r) ? r : sum_of(f, c, SINGLE);
}

/* Exact; a NaN keeps its payload. */
static uint32_t widened_half(uint32_t half)
{
    uint32_t fraction = half & 0x3ff, field = half >> 10 & 31, sign = (half & 0x8000) << 16;
    if (field == 31)
        return sign | infinity | fraction << 13;
    if (field)
        return sign | (field + 112) << 23 | fraction << 13;
    if (!fraction)
        return sign;
    unsigned up = (unsigned)__builtin_clz(fraction) - 21;
    return sign | (113 - up) << 23 | ((fraction << up) & 0x3ff) << 13;
}

static uint32_t narrowed_special(uint32_t single, bool is_bfloat)
{
    if (single == factor_nan)
        return is_bfloat ? 0xfffd : 0xfe3d;
    return is_bfloat ? single >> 16 : (single >> 16 & 0x8000) | 0x7c00 | (single >> 13 & 0x3ff);
}

uint32_t bw_dot2_narrow(uint32_t a, uint32_t b, uint32_t c, bool is_bfloat, bool keep_finite)
{
    struct factor f[4];
    uint32_t r, wide_c = is_bfloat ? c << 16 : widened_half(c & 0xffff);
    factors_of(a, b, is_bfloat, f);
    if (is_special_sum(f, wide_c, &r))
        return narrowed_special(r, is_bfloat);
    if (is_bfloat)
        return sum_of(f, wide_c, SINGLE) >> 16;
    return sum_of(f, wide_c, keep_finite ? HALF_FINITE : HALF);
}
