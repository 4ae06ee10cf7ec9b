#include "mock/isa/division.h"

typedef unsigned __int128 wide;

static int top_bit(wide m)
{
    uint64_t high = (uint64_t)(m >> 64), low = (uint64_t)m;
    return high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low | 1);
}

/* m * 2^exponent, rounded. The number of the units of the last place and the exponent field add up to the
 * bits, whether the rounding carries or the number is denormal. */
static uint64_t rounded(const struct bw_division_format *f, bool negative, wide m, int exponent,
                        unsigned rounding)
{
    int least = 1 - f->bias - f->fraction_bits, unit = top_bit(m) + exponent - f->fraction_bits;
    if (m == 0)
        return negative ? f->sign : 0;
    unit = unit > least ? unit : least;
    int shift = unit - exponent;
    wide kept = shift <= 0 ? m << -shift : shift > 127 ? 0 : m >> shift;
    if (shift > 0) {
        wide rest = shift > 127 ? m : m - (kept << shift),
             half = shift > 127 ? ~(wide)0 : (wide)1 << (shift - 1);
        kept += rounding == 0 ? rest > half || (rest == half && (kept & 1))
                              : rest && bw_division_grows(negative, rounding);
    }
    uint64_t bits = (uint64_t)kept + ((uint64_t)(unit - least) << f->fraction_bits);
    return bits >= bw_division_infinity(f) ? bw_division_overflow(f, negative, rounding)
                                           : bits | (negative ? f->sign : 0);
}

struct number {
    wide m; /* its top bit at TOP, or 0 */
    int exponent;
    bool negative;
};
enum { TOP = 124 };

static struct number normalised(wide m, int exponent, bool negative)
{
    int up = m ? TOP - top_bit(m) : 0;
    return (struct number){m << up, exponent - up, negative};
}

static uint64_t digits_of(const struct bw_division_format *f, uint64_t bits, int *exponent)
{
    int field = bw_division_field(f, bits);
    *exponent = (field ? field : 1) - f->bias - f->fraction_bits;
    return (bits & ((1ull << f->fraction_bits) - 1)) | (field ? 1ull << f->fraction_bits : 0);
}

/* The smaller one at the larger one's exponent; what falls off stays as a bit below all that counts. */
static wide aligned(const struct number *n, int exponent)
{
    int down = exponent - n->exponent;
    if (down == 0 || n->m == 0)
        return n->m;
    return down > 127 ? 1 : n->m >> down | ((n->m << (128 - down)) != 0);
}

uint64_t bw_division_fma(const struct bw_division_format *f, uint64_t a, uint64_t b, uint64_t c,
                         unsigned rounding)
{
    int exponent_a, exponent_b, exponent_c;
    uint64_t sa = digits_of(f, a, &exponent_a), sb = digits_of(f, b, &exponent_b),
             sc = digits_of(f, c, &exponent_c);
    struct number product = normalised((wide)sa * sb, exponent_a + exponent_b, (a ^ b) & f->sign);
    struct number addend = normalised(sc, exponent_c, c & f->sign);
    int exponent = addend.m == 0 || (product.m && product.exponent > addend.exponent) ? product.exponent
                                                                                      : addend.exponent;
    wide x = aligned(&product, exponent), y = aligned(&addend, exponent), sum;
    bool negative = product.negative;
    if (product.negative == addend.negative) {
        sum = x + y;
    } else {
        sum = x > y ? x - y : y - x;
        negative = x == y ? rounding == 2 : x > y ? product.negative : addend.negative;
    }
    exponent += bw_division_field(f, c) > f->bias ? f->scale : -f->scale;
    return rounded(f, negative, sum, exponent, rounding);
}
