/* The steps of a division that floating-point operations of the host do not give: V_DIV_SCALE, V_DIV_FMAS and
 * V_DIV_FIXUP, on bits, with MODE's rounding (0 nearest even, 1 up, 2 down, 3 toward zero).
 *
 * The ISA document's pseudo-code contradicts itself (which constant scales, and which way) and leaves two
 * constants undefined. What is done here is what AMD's rocjitsu (rocm-systems, shared/division.h) reports of
 * gfx1100: thresholds are those of encoded exponents; V_DIV_FMAS scales by 2^64 (2^128 in double precision),
 * up or down as its addend is large or small, and rounds once; V_DIV_FIXUP overflows and underflows as MODE
 * rounds. */
#ifndef BW_MOCK_ISA_DIVISION_H
#define BW_MOCK_ISA_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

struct bw_division_format {
    int fraction_bits, bias;
    int far_apart; /* difference of exponents that brings the quotient near the end of the range */
    int scale;     /* powers of two that numbers are moved by */
    int small;     /* numerators up to this exponent field are moved up */
    uint64_t sign;
};

static const struct bw_division_format bw_division_single = {23, 127, 96, 64, 24, 1ull << 31};
static const struct bw_division_format bw_division_double = {52, 1023, 768, 128, 53, 1ull << 63};

static inline uint64_t bw_division_infinity(const struct bw_division_format *f)
{
    return (uint64_t)(2 * f->bias + 1) << f->fraction_bits;
}

static inline int bw_division_field(const struct bw_division_format *f, uint64_t bits)
{
    return (int)((bits & bw_division_infinity(f)) >> f->fraction_bits);
}

/* How many powers of two V_DIV_SCALE moves s0 by; *vcc: whether V_DIV_FMAS is to scale back. */
static inline int bw_division_scale(const struct bw_division_format *f, uint64_t s0, uint64_t denominator,
                                    uint64_t numerator, bool *vcc)
{
    int below = bw_division_field(f, denominator), above = bw_division_field(f, numerator),
        apart = above - below;
    bool is_denominator = s0 == denominator;
    *vcc = apart >= f->far_apart || (below && apart <= -f->far_apart);
    if (apart >= f->far_apart)
        return is_denominator ? f->scale : 0;
    if (below == 0)
        return f->scale;
    if (below >= 2 * f->bias - 1) /* its reciprocal is denormal */
        return *vcc && !is_denominator ? 0 : -f->scale;
    if (*vcc)
        return is_denominator ? 0 : f->scale;
    return above <= f->small ? f->scale : 0;
}

static inline bool bw_division_grows(bool negative, unsigned rounding)
{
    return rounding == 1 ? !negative : rounding == 2 && negative;
}

static inline uint64_t bw_division_overflow(const struct bw_division_format *f, bool negative,
                                            unsigned rounding)
{
    bool grows = rounding == 0 || bw_division_grows(negative, rounding);
    return (negative ? f->sign : 0) | (bw_division_infinity(f) - !grows);
}

static inline uint64_t bw_division_fixup(const struct bw_division_format *f, uint64_t quotient,
                                         uint64_t denominator, uint64_t numerator, unsigned rounding)
{
    uint64_t sign = (denominator ^ numerator) & f->sign, infinity = bw_division_infinity(f),
             quiet = 1ull << (f->fraction_bits - 1);
    uint64_t below = denominator & ~f->sign, above = numerator & ~f->sign;
    if (above > infinity)
        return numerator | quiet;
    if (below > infinity)
        return denominator | quiet;
    if (below == above && (below == 0 || below == infinity))
        return f->sign | infinity | quiet;
    if (below == 0 || above == infinity)
        return sign | infinity;
    if (above == 0 || below == infinity)
        return sign;
    int apart = bw_division_field(f, numerator) - bw_division_field(f, denominator);
    if (apart < -(f->bias + f->fraction_bits)) /* less than half of the smallest denormal */
        return sign | bw_division_grows(sign, rounding);
    if ((quotient & ~f->sign) >= infinity)
        return bw_division_overflow(f, sign, rounding);
    return sign | (quotient & ~f->sign);
}

/* a * b + c, times 2^scale or 2^-scale, rounded once. All finite. */
uint64_t bw_division_fma(const struct bw_division_format *f, uint64_t a, uint64_t b, uint64_t c,
                         unsigned rounding);

#endif
