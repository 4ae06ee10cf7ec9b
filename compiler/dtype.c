/* Element types and exact conversions: see include/bellwire/dtype.h. */
#include <bellwire/dtype.h>

#include <math.h>
#include <string.h>

#include "compiler/small_float.h"

struct dtype_row {
    const char *name;
    uint8_t bytes, bits;
    bool is_float, is_int, is_signed;
};

static const struct dtype_row dtype_rows[BW_DTYPE_ALL_COUNT] = {
    [BW_VOID] = {"void", 0, 0, false, false, false},
    [BW_BOOL] = {"bool", 1, 1, false, false, false},
    [BW_I8] = {"i8", 1, 8, false, true, true},
    [BW_U8] = {"u8", 1, 8, false, true, false},
    [BW_I16] = {"i16", 2, 16, false, true, true},
    [BW_U16] = {"u16", 2, 16, false, true, false},
    [BW_I32] = {"i32", 4, 32, false, true, true},
    [BW_U32] = {"u32", 4, 32, false, true, false},
    [BW_I64] = {"i64", 8, 64, false, true, true},
    [BW_U64] = {"u64", 8, 64, false, true, false},
    [BW_F16] = {"f16", 2, 16, true, false, true},
    [BW_BF16] = {"bf16", 2, 16, true, false, true},
    [BW_F32] = {"f32", 4, 32, true, false, true},
    [BW_F64] = {"f64", 8, 64, true, false, true},
    [BW_I2] = {"i2", 1, 2, false, true, true},
    [BW_U2] = {"u2", 1, 2, false, true, false},
    [BW_I4] = {"i4", 1, 4, false, true, true},
    [BW_U4] = {"u4", 1, 4, false, true, false},
    [BW_F4E2M1] = {"f4e2m1", 1, 4, true, false, true},
    [BW_F8E4M3FN] = {"f8e4m3fn", 1, 8, true, false, true},
    [BW_F8E4M3FNUZ] = {"f8e4m3fnuz", 1, 8, true, false, true},
    [BW_F8E5M2] = {"f8e5m2", 1, 8, true, false, true},
    [BW_F8E5M2FNUZ] = {"f8e5m2fnuz", 1, 8, true, false, true},
    [BW_F8E8M0] = {"f8e8m0", 1, 8, true, false, false},
};

static const struct dtype_row *row(enum bw_dtype dtype)
{
    return &dtype_rows[(unsigned)dtype < BW_DTYPE_ALL_COUNT ? dtype : BW_VOID];
}

uint32_t bw_dtype_bytes(enum bw_dtype dtype)
{
    return row(dtype)->bytes;
}

const char *bw_dtype_name(enum bw_dtype dtype)
{
    return row(dtype)->name;
}

bool bw_dtype_is_storage(enum bw_dtype dtype)
{
    return dtype >= BW_DTYPE_COUNT && dtype < BW_DTYPE_ALL_COUNT;
}

enum bw_dtype bw_dtype_carrier(enum bw_dtype dtype)
{
    if (!bw_dtype_is_storage(dtype))
        return dtype;
    return row(dtype)->is_int && row(dtype)->is_signed ? BW_I8 : BW_U8;
}

bool bw_dtype_is_float(enum bw_dtype dtype)
{
    return row(dtype)->is_float;
}

bool bw_dtype_is_int(enum bw_dtype dtype)
{
    return row(dtype)->is_int;
}

bool bw_dtype_is_signed(enum bw_dtype dtype)
{
    return row(dtype)->is_signed;
}

int64_t bw_dtype_int_min(enum bw_dtype dtype)
{
    if (!row(dtype)->is_int || !row(dtype)->is_signed)
        return 0;
    return INT64_MIN >> (64 - row(dtype)->bits);
}

int64_t bw_dtype_int_max(enum bw_dtype dtype)
{
    if (dtype == BW_BOOL)
        return 1;
    if (!row(dtype)->is_int)
        return 0;
    unsigned bits = row(dtype)->bits;
    if (row(dtype)->is_signed)
        return INT64_MAX >> (64 - bits);
    return bits == 64 ? INT64_MAX : (int64_t)((1ull << bits) - 1);
}

int64_t bw_dtype_int_from(enum bw_dtype dtype, double value)
{
    if (value != value)
        return 0;
    if (dtype == BW_U64)
        return value <= 0 ? 0 : value >= 0x1p64 ? -1 : (int64_t)(uint64_t)value;
    /* As doubles the limits of up to 32 bits are exact; INT64_MAX rounds up to 2^63, which saturates too. */
    if (value <= (double)bw_dtype_int_min(dtype))
        return bw_dtype_int_min(dtype);
    return value >= (double)bw_dtype_int_max(dtype) ? bw_dtype_int_max(dtype) : (int64_t)value;
}

/* Rounds a double to a binary format with `mantissa_bits` stored bits and the given exponent bias, ties to
 * even. Working from double avoids the double rounding that float would bring. */
static uint16_t narrow_from_f64(double value, unsigned mantissa_bits, int bias)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    unsigned exponent_bits = 15 - mantissa_bits;
    uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << mantissa_bits);
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((1ull << 52) - 1);
    if (exponent == 0x7ff) {
        if (!mantissa)
            return sign | infinity;
        return (uint16_t)(sign | infinity | 1u << (mantissa_bits - 1) | mantissa >> (52 - mantissa_bits));
    }
    if (exponent == 0)
        return sign; /* a double's denormals are far below half of the smallest narrow denormal */
    mantissa |= 1ull << 52;
    int narrow_exponent = exponent - 1023 + bias;
    int shift = 52 - (int)mantissa_bits;
    if (narrow_exponent <= 0) { /* denormal result: more bits fall off */
        shift += 1 - narrow_exponent;
        narrow_exponent = 0;
        if (shift > 54)
            return sign;
    }
    uint64_t kept = mantissa >> shift, rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
    /* For normals `kept` still holds the hidden bit, worth one exponent step; a carry out of the mantissa
     * adds another. */
    uint64_t encoded = narrow_exponent ? ((uint64_t)(narrow_exponent - 1) << mantissa_bits) + kept : kept;
    return (uint16_t)(sign | (encoded >= infinity ? infinity : encoded));
}

uint16_t bw_f16_from_f64(double value)
{
    return narrow_from_f64(value, 10, 15);
}

uint16_t bw_bf16_from_f64(double value)
{
    return narrow_from_f64(value, 7, 127);
}

uint16_t bw_f16_from_f32(float value)
{
    return narrow_from_f64(value, 10, 15);
}

float bw_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        uint32_t word;
        memcpy(&word, &value, sizeof word);
        word |= sign;
        memcpy(&value, &word, sizeof value);
        return value;
    }
    uint32_t word =
        sign | (exponent == 0x1f ? 0x7f800000 | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13);
    if (exponent == 0x1f && mantissa)
        word |= 0x400000;
    memcpy(&value, &word, sizeof value);
    return value;
}

uint16_t bw_bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float bw_bf16_to_f32(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

/* ---- storage types ---- */

const struct bw_small_float *bw_small_float(enum bw_dtype dtype)
{
    static const struct bw_small_float rows[BW_DTYPE_ALL_COUNT] = {
        [BW_F4E2M1] = {.mantissa_bits = 1, .bias = 1, .sign = 0x8, .finite_max = 0x7},
        [BW_F8E4M3FN] = {.mantissa_bits = 3, .bias = 7, .sign = 0x80, .finite_max = 0x7e, .has_nan = true},
        [BW_F8E4M3FNUZ] = {.mantissa_bits = 3,
                           .bias = 8,
                           .sign = 0x80,
                           .finite_max = 0x7f,
                           .has_nan = true,
                           .unsigned_zero = true},
        [BW_F8E5M2] = {.mantissa_bits = 2,
                       .bias = 15,
                       .sign = 0x80,
                       .finite_max = 0x7b,
                       .infinity = 0x7c,
                       .has_nan = true},
        [BW_F8E5M2FNUZ] = {.mantissa_bits = 2,
                           .bias = 16,
                           .sign = 0x80,
                           .finite_max = 0x7f,
                           .has_nan = true,
                           .unsigned_zero = true},
        [BW_F8E8M0] = {.bias = 127, .sign = 0x100, .finite_max = 0xfe, .has_nan = true},
    };
    return (unsigned)dtype < BW_DTYPE_ALL_COUNT && rows[dtype].sign ? &rows[dtype] : NULL;
}

bool bw_dtype_storage_fits(enum bw_dtype dtype, uint8_t byte)
{
    if (row(dtype)->bits == 8)
        return true;
    int number = bw_dtype_carrier(dtype) == BW_I8 ? (int8_t)byte : byte;
    return bw_small_float(dtype) ? byte >> row(dtype)->bits == 0
                                 : number >= bw_dtype_int_min(dtype) && number <= bw_dtype_int_max(dtype);
}

double bw_dtype_storage_value(enum bw_dtype dtype, uint8_t byte)
{
    const struct bw_small_float *f = bw_small_float(dtype);
    if (!f)
        return bw_dtype_carrier(dtype) == BW_I8 ? (double)(int8_t)byte : (double)byte;
    unsigned magnitude = byte & (f->sign - 1u), last = f->infinity ? f->infinity : f->finite_max;
    double sign = byte & f->sign ? -1 : 1;
    if (f->unsigned_zero ? byte == f->sign : magnitude > last)
        return NAN;
    if (f->infinity && magnitude == f->infinity)
        return sign * INFINITY;
    unsigned exponent = magnitude >> f->mantissa_bits, one = 1u << f->mantissa_bits;
    unsigned mantissa = magnitude & (one - 1);
    bool normal = exponent || dtype == BW_F8E8M0; /* whose exponent 0 is one like the others */
    return sign * ldexp(normal ? one + mantissa : mantissa,
                        (normal ? (int)exponent : 1) - f->bias - f->mantissa_bits);
}
