/* EXP2, LOG2 and SIN by range reduction and polynomials: see decompose.h.
 *
 * Textbook methods: J.-M. Muller, Elementary Functions (range reduction after Cody and Waite, and after Payne
 * and Hanek for large arguments). */
#include "compiler/decompose.h"

#include <assert.h>
#include <math.h>

#include "compiler/rewrite.h"

/* What f32 and f64 differ in. */
struct format {
    enum bw_dtype real, bits;
    int fraction_bits, bias;
    double rounder; /* 1.5 * 2^fraction_bits: adding it rounds to an integer and leaves that integer in the
                       low bits */
};

static struct format format_of(enum bw_dtype dtype)
{
    if (dtype == BW_F32)
        return (struct format){BW_F32, BW_I32, 23, 127, 0x1.8p23};
    assert(dtype == BW_F64);
    return (struct format){BW_F64, BW_I64, 52, 1023, 0x1.8p52};
}

struct builder {
    struct bw_ir *ir;
    struct format f;
};

static bw_node real(struct builder *b, double value)
{
    return bw_ir_const_float(b->ir, b->f.real, value);
}
static bw_node integer(struct builder *b, int64_t value)
{
    return bw_ir_const_int(b->ir, b->f.bits, value);
}
static bw_node op2(struct builder *b, enum bw_op op, bw_node x, bw_node y)
{
    return bw_ir_binary(b->ir, op, x, y);
}
static bw_node add(struct builder *b, bw_node x, bw_node y)
{
    return op2(b, BW_OP_ADD, x, y);
}
static bw_node sub(struct builder *b, bw_node x, bw_node y)
{
    return op2(b, BW_OP_SUB, x, y);
}
static bw_node mul(struct builder *b, bw_node x, bw_node y)
{
    return op2(b, BW_OP_MUL, x, y);
}
static bw_node multiply_add(struct builder *b, bw_node x, bw_node y, bw_node z)
{
    return bw_ir_ternary(b->ir, BW_OP_MULTIPLY_ADD, x, y, z);
}
static bw_node where(struct builder *b, bw_node condition, bw_node x, bw_node y)
{
    return bw_ir_ternary(b->ir, BW_OP_WHERE, condition, x, y);
}

/* coefficients[0] + x * (coefficients[1] + ...) */
static bw_node polynomial(struct builder *b, bw_node x, const double *coefficients, uint32_t count)
{
    bw_node value = real(b, coefficients[count - 1]);
    for (uint32_t i = count - 1; i-- > 0;)
        value = multiply_add(b, value, x, real(b, coefficients[i]));
    return value;
}

/* 2^n for an integer n inside the exponent range. */
static bw_node power_of_two(struct builder *b, bw_node n)
{
    bw_node biased = add(b, n, integer(b, b->f.bias));
    return bw_ir_bitcast(b->ir, b->f.real, op2(b, BW_OP_SHL, biased, integer(b, b->f.fraction_bits)));
}

/* Always an integer (or infinite, or NaN), however it was made. */
static bool is_integral(const struct bw_ir *ir, bw_node x, int depth)
{
    double value;
    if (depth > 8)
        return false;
    switch (bw_ir_op(ir, x)) {
    case BW_OP_ROUND_EVEN:
    case BW_OP_TRUNC:
    case BW_OP_FLOOR:
    case BW_OP_CEIL:
        return true;
    case BW_OP_CONST:
        return bw_ir_const_value_float(ir, x, &value) && value == rint(value);
    case BW_OP_CAST:
        return bw_dtype_is_int(bw_ir_dtype(ir, bw_ir_source(ir, x, 0)));
    case BW_OP_MIN:
    case BW_OP_MAX:
        return is_integral(ir, bw_ir_source(ir, x, 0), depth + 1) &&
               is_integral(ir, bw_ir_source(ir, x, 1), depth + 1);
    case BW_OP_WHERE:
        return is_integral(ir, bw_ir_source(ir, x, 1), depth + 1) &&
               is_integral(ir, bw_ir_source(ir, x, 2), depth + 1);
    default:
        return false;
    }
}

/* x = n + f with |f| <= 1/2; 2^f by its Taylor series (8 terms are within 6e-9, 14 within 4e-18), times 2^n
 * in two steps, so that results below the normal range are rounded once. The clamp keeps n's halves in range;
 * NaN goes through f. */
static bw_node build_exp2(struct builder *b, bw_node x)
{
    enum { TERMS_MAX = 14 };
    double limit = b->f.bias + 2, coefficients[TERMS_MAX], term = 1;
    uint32_t count = b->f.real == BW_F32 ? 8 : TERMS_MAX;
    for (uint32_t k = 0; k < count; k++) {
        coefficients[k] = term;
        term *= M_LN2 / (k + 1);
    }
    double low = -(b->f.bias + b->f.fraction_bits + 3);
    bw_node clamped = where(b, op2(b, BW_OP_LESS, x, real(b, low)), real(b, low), x);
    clamped = where(b, op2(b, BW_OP_LESS, real(b, limit), clamped), real(b, limit), clamped);
    bw_node shifted = add(b, clamped, real(b, b->f.rounder));
    bw_node n = sub(b, bw_ir_bitcast(b->ir, b->f.bits, shifted),
                    bw_ir_bitcast(b->ir, b->f.bits, real(b, b->f.rounder)));
    bw_node f = sub(b, clamped, sub(b, shifted, real(b, b->f.rounder)));
    bw_node half = op2(b, BW_OP_SHR, n, integer(b, 1));
    /* Where f is known to be 0 the series is 1 + f: exponentials are built from such powers, and NaN still
     * comes through. */
    bool whole = is_integral(b->ir, x, 0);
    bw_node value = mul(b, polynomial(b, f, coefficients, whole ? 2 : count), power_of_two(b, half));
    return mul(b, value, power_of_two(b, sub(b, n, half)));
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f): ln(1 + f) = f - s * (f - r) with r
 * = 2 (s^2 / 3 + s^4 / 5 + ..), so that the leading term f is exact; |s| < 0.172. */
static bw_node build_log2(struct builder *b, bw_node x)
{
    enum { TERMS_MAX = 11 };
    double coefficients[TERMS_MAX];
    uint32_t count = b->f.real == BW_F32 ? 5 : TERMS_MAX;
    for (uint32_t k = 0; k < count; k++)
        coefficients[k] = 2.0 / (2 * k + 3);
    double smallest_normal = ldexp(1, 1 - b->f.bias);
    bw_node tiny = op2(b, BW_OP_LESS, x, real(b, smallest_normal));
    bw_node scaled = where(b, tiny, mul(b, x, real(b, ldexp(1, b->f.fraction_bits + 1))), x);
    bw_node bits = bw_ir_bitcast(b->ir, b->f.bits, scaled);
    bw_node root = bw_ir_bitcast(b->ir, b->f.bits, real(b, M_SQRT1_2));
    bw_node fraction = integer(b, b->f.fraction_bits);
    bw_node e = op2(b, BW_OP_SHR, sub(b, bits, root), fraction);
    bw_node m = bw_ir_bitcast(b->ir, b->f.real, sub(b, bits, op2(b, BW_OP_SHL, e, fraction)));
    bw_node exponent = bw_ir_cast(b->ir, b->f.real, e);
    exponent = where(b, tiny, sub(b, exponent, real(b, b->f.fraction_bits + 1)), exponent);
    bw_node f = sub(b, m, real(b, 1));
    bw_node s = op2(b, BW_OP_DIV, f, add(b, f, real(b, 2)));
    bw_node squared = mul(b, s, s);
    bw_node r = mul(b, squared, polynomial(b, squared, coefficients, count));
    double high = b->f.real == BW_F32 ? (double)(float)M_LOG2E : M_LOG2E; /* 1 / ln 2 in two parts */
    double low = b->f.real == BW_F32 ? M_LOG2E - high : 0x1.777d0ffda0d24p-56;
    bw_node tail = mul(b, mul(b, s, sub(b, r, f)), real(b, high));
    tail = multiply_add(b, f, real(b, low), tail);
    bw_node value = add(b, multiply_add(b, f, real(b, high), tail), exponent);
    bw_node infinite = op2(b, BW_OP_EQUAL, x, real(b, INFINITY));
    value = where(b, infinite, x, value);
    value = where(b, op2(b, BW_OP_EQUAL, x, real(b, 0)), real(b, -INFINITY), value);
    bw_node valid = op2(b, BW_OP_LESS, x, real(b, 0)); /* NaN itself goes through to the end */
    value = where(b, valid, real(b, NAN), value);
    return where(b, op2(b, BW_OP_NOT_EQUAL, x, x), x, value);
}

/* sin(r + quarter * pi/2) for |r| <= pi/4, in f64. */
static bw_node sine_of_reduced(struct builder *b, bw_node r, bw_node quarter)
{
    enum { TERMS = 9 };
    double sine[TERMS], cosine[TERMS + 1], term = 1;
    for (uint32_t k = 0; k < TERMS; k++) { /* of sin(r) / r and cos(r) in r^2 */
        cosine[k] = term;
        sine[k] = term / (2 * k + 1);
        term /= -(double)((2 * k + 1) * (2 * k + 2));
    }
    cosine[TERMS] = term;
    bw_node squared = mul(b, r, r);
    /* r + r * (r^2 * p): the leading term is exact */
    bw_node s = multiply_add(b, mul(b, r, squared), polynomial(b, squared, sine + 1, TERMS - 1), r);
    bw_node c = multiply_add(b, squared, polynomial(b, squared, cosine + 1, TERMS), real(b, 1));
    bw_node odd = op2(b, BW_OP_EQUAL, op2(b, BW_OP_AND, quarter, integer(b, 1)), integer(b, 1));
    bw_node low = op2(b, BW_OP_LESS, op2(b, BW_OP_AND, quarter, integer(b, 3)), integer(b, 2));
    bw_node value = where(b, odd, c, s);
    return where(b, low, value, bw_ir_unary(b->ir, BW_OP_NEG, value));
}

/* Cody and Waite in f64: x - n * pi/2 with pi/2 in three parts; exact enough for |x| <= 2^30. */
static bw_node reduce_small(struct builder *b, bw_node x, bw_node *quarter)
{
    bw_node shifted = multiply_add(b, x, real(b, M_2_PI), real(b, b->f.rounder));
    *quarter = bw_ir_bitcast(b->ir, b->f.bits, shifted);
    bw_node n = sub(b, shifted, real(b, b->f.rounder));
    bw_node r = multiply_add(b, n, real(b, -0x1.921fb54442d18p+0), x);
    r = multiply_add(b, n, real(b, -0x1.1a62633145c07p-54), r);
    return multiply_add(b, n, real(b, 0x1.f1976b7ed8fbcp-110), r);
}

/* Payne and Hanek for an f32 x with |x| >= 2^30: x * 2/pi modulo 4 by integers. x = mantissa * 2^e with a
 * 24-bit mantissa and 7 <= e <= 104. Bits of 2/pi in front of the window give multiples of 4. */
static bw_node reduce_large(struct builder *b, bw_node x, bw_node *quarter)
{
    static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                           0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
    struct bw_ir *ir = b->ir;
    bw_node bits = bw_ir_cast(ir, BW_U64, bw_ir_bitcast(ir, BW_U32, x));
#define U(value)    bw_ir_const_int(ir, BW_U64, (int64_t)(value))
#define B(op, x, y) bw_ir_binary(ir, BW_OP_##op, x, y)
    bw_node exponent = B(AND, B(SHR, bits, U(23)), U(255)); /* e + 150 */
    bw_node mantissa = B(OR, B(AND, bits, U(0x7fffff)), U(0x800000));
    /* The product shall have 2 bits before its point and 62 behind: 2/pi is needed from the bit of weight
     * 2^(1-e) on, which is place e + 30 in the table (32 zero bits come first), so that words 1 to 4 are
     * where it starts. */
    bw_node place = B(SUB, exponent, U(150 - 30));
    bw_node word = B(SHR, place, U(5)), shift = B(AND, place, U(31));
    bw_node words[4];
    for (uint32_t k = 0; k < 4; k++) {
        words[k] = U(two_over_pi[1 + k]);
        for (uint32_t w = 2; w <= 4; w++)
            words[k] = where(b, B(EQUAL, word, U(w)), U(two_over_pi[w + k]), words[k]);
    }
    bw_node high = B(OR, B(SHL, words[0], U(32)), words[1]), low = B(OR, B(SHL, words[2], U(32)), words[3]);
    bw_node window = B(OR, B(SHL, high, shift), B(SHR, words[2], B(SUB, U(32), shift)));
    /* 32 bits more, because the fraction may start with 30 zeros */
    bw_node below = B(SHR, B(MUL, mantissa, B(SHR, B(SHL, low, shift), U(32))), U(32));
    bw_node product = B(ADD, B(MUL, mantissa, window), below);
#undef B
#undef U
    bw_node sign = op2(b, BW_OP_LESS, x, bw_ir_const_float(ir, BW_F32, 0));
    bw_node turned = bw_ir_bitcast(ir, BW_I64, product);
    bw_node rounded = add(b, turned, integer(b, (int64_t)1 << 61));
    bw_node q = op2(b, BW_OP_SHR, rounded, integer(b, 62));
    bw_node fraction = sub(b, turned, op2(b, BW_OP_SHL, q, integer(b, 62))); /* in [-1/2, 1/2) of a quarter */
    bw_node r = mul(b, bw_ir_cast(ir, BW_F64, fraction), real(b, M_PI_2 * 0x1p-62));
    *quarter = where(b, sign, bw_ir_unary(ir, BW_OP_NEG, q), q);
    return where(b, sign, bw_ir_unary(ir, BW_OP_NEG, r), r);
}

static bw_node build_sin(struct builder *b, bw_node x)
{
    bw_node quarter, wide = bw_ir_cast(b->ir, BW_F64, x), r;
    bool single = b->f.real == BW_F32;
    struct builder f64 = {b->ir, format_of(BW_F64)};
    r = reduce_small(&f64, wide, &quarter);
    if (single) {
        bw_node quarter_large, large = reduce_large(&f64, x, &quarter_large);
        bw_node magnitude = bw_ir_unary(b->ir, BW_OP_ABS, x);
        bw_node small = bw_ir_binary(b->ir, BW_OP_LESS, magnitude, bw_ir_const_float(b->ir, BW_F32, 0x1p30));
        r = where(b, small, r, large);
        quarter = where(b, small, quarter, quarter_large);
    }
    bw_node value = sine_of_reduced(&f64, r, quarter);
    if (single) /* -0 and tiny values as they are; infinity and NaN give NaN */
        value = bw_ir_cast(b->ir, BW_F32, value);
    bw_node zero = bw_ir_binary(b->ir, BW_OP_EQUAL, x, real(b, 0));
    value = where(b, zero, x, value);
    bw_node finite = bw_ir_binary(b->ir, BW_OP_LESS, bw_ir_unary(b->ir, BW_OP_ABS, x), real(b, INFINITY));
    return where(b, finite, value, real(b, NAN));
}

static bw_node decompose_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                              const bw_node *sources)
{
    const struct bw_decompose_options *options = user;
    enum bw_op op = bw_ir_op(from, node);
    enum bw_dtype dtype = bw_ir_dtype(from, node);
    if (op != BW_OP_EXP2 && op != BW_OP_LOG2 && op != BW_OP_SIN)
        return bw_ir_rebuild(to, from, node, sources);
    bw_node x = sources[0];
    bool narrow = dtype == BW_F16 || dtype == BW_BF16;
    if (narrow)
        x = bw_ir_cast(to, BW_F32, x);
    struct builder b = {to, format_of(narrow ? BW_F32 : dtype)};
    bool keep = op == BW_OP_SIN ? options->keep_sin_f64 && b.f.real == BW_F64
                                : options->keep_exp2_log2_f32 && b.f.real == BW_F32;
    bw_node value = keep               ? bw_ir_unary(to, op, x)
                    : op == BW_OP_EXP2 ? build_exp2(&b, x)
                    : op == BW_OP_LOG2 ? build_log2(&b, x)
                                       : build_sin(&b, x);
    return bw_ir_cast(to, dtype, value);
}

bw_node bw_decompose(struct bw_ir *ir, bw_node sink, const struct bw_decompose_options *options)
{
    struct bw_decompose_options copy = *options;
    return sink && !bw_ir_rewrite(ir, ir, &sink, 1, decompose_node, &copy) ? sink : 0;
}
