/* Values of storage types: bytes to numbers and back, as expressions of the tensor graph, so that no back end
 * has these types. What rounds is done on the bits of f64, which holds every number that can matter: integers
 * that it rounds lie far beyond the greatest float of 8 bits. */
#include <math.h>

#include "compiler/onnx/ops.h"
#include "compiler/small_float.h"

enum {
    F64_MANTISSA_BITS = 52,
    F64_BIAS = 1023,
    F64_EXPONENT_MAX = 2047,
};

static bw_tensor number(struct bw_onnx_call *c, int64_t value)
{
    return bw_tensor_scalar_int(c->g, BW_I64, value);
}

static bw_tensor clamp(struct bw_onnx_call *c, bw_tensor x, bw_tensor low, bw_tensor high)
{
    return bw_tensor_min(c->g, bw_tensor_max(c->g, x, low), high);
}

bw_tensor bw_onnx_decode(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor bytes)
{
    return bw_tensor_decode(c->g, dtype, bytes);
}

/* ---- integers ---- */

/* The low bits of an integer; of a float, the nearest integer within the type's range. */
static bw_tensor encode_int(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor x)
{
    enum bw_dtype carrier = bw_dtype_carrier(dtype), from = bw_tensor_dtype(c->g, x);
    if (bw_dtype_is_float(from)) {
        x = clamp(c, bw_tensor_round_even(c->g, x),
                  bw_onnx_scalar_like(c, x, (double)bw_dtype_int_min(dtype)),
                  bw_onnx_scalar_like(c, x, (double)bw_dtype_int_max(dtype)));
        return bw_tensor_cast(c->g, carrier, x);
    }
    x = bw_tensor_cast(c->g, carrier, x);
    int64_t span = bw_dtype_int_max(dtype) - bw_dtype_int_min(dtype) + 1, shift = 8 - __builtin_ctzll(span);
    bw_tensor by = bw_tensor_scalar_int(c->g, carrier, shift);
    return bw_tensor_shr(c->g, bw_tensor_shl(c->g, x, by), by);
}

/* ---- floats ---- */

/* A number as its parts, all i64; is_nan and is_negative are bool. */
struct parts {
    bw_tensor exponent, fraction, is_nan, is_infinite, is_negative;
};

static struct parts parts_of(struct bw_onnx_call *c, bw_tensor x)
{
    struct parts p;
    bw_tensor bits = bw_tensor_bitcast(c->g, BW_I64, bw_tensor_cast(c->g, BW_F64, x));
    bw_tensor magnitude = bw_tensor_and(c->g, bits, number(c, INT64_MAX));
    p.exponent = bw_tensor_shr(c->g, magnitude, number(c, F64_MANTISSA_BITS));
    p.fraction = bw_tensor_and(c->g, bits, number(c, (1ll << F64_MANTISSA_BITS) - 1));
    bw_tensor is_last = bw_tensor_equal(c->g, p.exponent, number(c, F64_EXPONENT_MAX)),
              is_whole = bw_tensor_equal(c->g, p.fraction, number(c, 0));
    p.is_nan = bw_tensor_and(c->g, is_last, bw_tensor_not(c->g, is_whole));
    p.is_infinite = bw_tensor_and(c->g, is_last, is_whole);
    p.is_negative = bw_tensor_less(c->g, bits, number(c, 0));
    return p;
}

/* The bits of the magnitude, rounded to nearest even, as if the exponent had no end. Exponents count from
 * that of the smallest normal number; what is below loses bits of its mantissa. */
static bw_tensor rounded(struct bw_onnx_call *c, const struct bw_small_float *f, const struct parts *p)
{
    bw_tensor zero = number(c, 0), one = number(c, 1);
    bw_tensor above = bw_tensor_sub(c->g, p->exponent, number(c, F64_BIAS + 1 - f->bias));
    /* mantissa_bits + 2 more bits leave less than half of the last one */
    bw_tensor lost = clamp(c, bw_tensor_neg(c->g, above), zero, number(c, f->mantissa_bits + 2));
    bw_tensor shift = bw_tensor_add(c->g, lost, number(c, F64_MANTISSA_BITS - f->mantissa_bits));
    bw_tensor significand = bw_tensor_add(c->g, p->fraction, number(c, 1ll << F64_MANTISSA_BITS));
    bw_tensor odd = bw_tensor_and(c->g, bw_tensor_shr(c->g, significand, shift), one);
    bw_tensor half = bw_tensor_shl(c->g, one, bw_tensor_sub(c->g, shift, one));
    bw_tensor up = bw_tensor_add(c->g, bw_tensor_sub(c->g, half, one), odd);
    bw_tensor mantissa = bw_tensor_shr(c->g, bw_tensor_add(c->g, significand, up), shift);
    bw_tensor exponent = bw_tensor_max(c->g, above, zero);
    return bw_tensor_add(c->g, bw_tensor_shl(c->g, exponent, number(c, f->mantissa_bits)), mantissa);
}

static bw_tensor encode_float(struct bw_onnx_call *c, const struct bw_small_float *f, bw_tensor x,
                              const struct bw_onnx_rounding *rounding)
{
    struct parts p = parts_of(c, x);
    bw_tensor bits = rounded(c, f, &p), zero = number(c, 0);
    bool saturates = rounding->saturate || !f->has_nan;
    int64_t nan = f->unsigned_zero ? f->sign : f->sign - 1, beyond = f->infinity ? f->infinity : nan;
    bits = bw_tensor_where(c->g, bw_tensor_greater(c->g, bits, number(c, f->finite_max)),
                           number(c, saturates ? f->finite_max : beyond), bits);
    if (f->unsigned_zero && rounding->infinity_is_nan)
        bits = bw_tensor_where(c->g, p.is_infinite, number(c, nan), bits);
    bits = bw_tensor_where(c->g, p.is_nan, number(c, nan), bits);
    bw_tensor has_sign = p.is_negative;
    if (f->unsigned_zero)
        has_sign = bw_tensor_and(c->g, has_sign, bw_tensor_not_equal(c->g, bits, zero));
    if (!f->has_nan) /* what stands for NaN is positive */
        has_sign = bw_tensor_and(c->g, has_sign, bw_tensor_not(c->g, p.is_nan));
    bits = bw_tensor_or(c->g, bits, bw_tensor_where(c->g, has_sign, number(c, f->sign), zero));
    return bw_tensor_cast(c->g, BW_U8, bits);
}

/* Powers of two. Negative numbers, of which ONNX says nothing, are NaN; -0 is 0. */
static bw_tensor encode_power(struct bw_onnx_call *c, const struct bw_small_float *f, bw_tensor x,
                              const struct bw_onnx_rounding *rounding)
{
    struct parts p = parts_of(c, x);
    const int64_t nan = f->sign - 1, half = 1ll << (F64_MANTISSA_BITS - 1);
    bw_tensor zero = number(c, 0), last = number(c, f->finite_max),
              no = bw_tensor_scalar_int(c->g, BW_BOOL, 0);
    bw_tensor below = bw_tensor_sub(c->g, p.exponent, number(c, F64_BIAS - f->bias));
    bw_tensor is_whole = bw_tensor_equal(c->g, p.fraction, zero);
    bw_tensor is_up = rounding->power == BW_ONNX_POWER_UP ? bw_tensor_not(c->g, is_whole)
                      : rounding->power == BW_ONNX_POWER_NEAREST
                          ? bw_tensor_greater_equal(c->g, p.fraction, number(c, half))
                          : no;
    bw_tensor bits = clamp(c, bw_tensor_add(c->g, below, bw_tensor_cast(c->g, BW_I64, is_up)), zero, last);
    bw_tensor is_zero = bw_tensor_and(c->g, bw_tensor_equal(c->g, p.exponent, zero), is_whole);
    bw_tensor is_nan =
        bw_tensor_or(c->g, p.is_nan, bw_tensor_and(c->g, p.is_negative, bw_tensor_not(c->g, is_zero)));
    if (!rounding->saturate) {
        bw_tensor too_great =
            bw_tensor_and(c->g, bw_tensor_equal(c->g, below, last), bw_tensor_not(c->g, is_whole));
        too_great = bw_tensor_or(c->g, too_great, bw_tensor_greater(c->g, below, last));
        is_nan = bw_tensor_or(c->g, is_nan, bw_tensor_or(c->g, too_great, bw_tensor_less(c->g, below, zero)));
    }
    return bw_tensor_cast(c->g, BW_U8, bw_tensor_where(c->g, is_nan, number(c, nan), bits));
}

bw_tensor bw_onnx_encode(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor x,
                         const struct bw_onnx_rounding *rounding)
{
    const struct bw_small_float *f = bw_small_float(dtype);
    if (!x.id)
        return x;
    if (!f)
        return encode_int(c, dtype, x);
    return f->mantissa_bits ? encode_float(c, f, x, rounding) : encode_power(c, f, x, rounding);
}
