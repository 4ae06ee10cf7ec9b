/* Element types and exact conversions: see include/bellwire/dtype.h. */
#include <bellwire/dtype.h>

#include <string.h>

struct dtype_row {
    const char *name;
    uint8_t bytes;
    bool is_float, is_int, is_signed;
};

static const struct dtype_row dtype_rows[BW_DTYPE_COUNT] = {
    [BW_VOID] = {"void", 0, false, false, false}, [BW_BOOL] = {"bool", 1, false, false, false},
    [BW_I8] = {"i8", 1, false, true, true},       [BW_U8] = {"u8", 1, false, true, false},
    [BW_I16] = {"i16", 2, false, true, true},     [BW_U16] = {"u16", 2, false, true, false},
    [BW_I32] = {"i32", 4, false, true, true},     [BW_U32] = {"u32", 4, false, true, false},
    [BW_I64] = {"i64", 8, false, true, true},     [BW_U64] = {"u64", 8, false, true, false},
    [BW_F16] = {"f16", 2, true, false, true},     [BW_BF16] = {"bf16", 2, true, false, true},
    [BW_F32] = {"f32", 4, true, false, true},     [BW_F64] = {"f64", 8, true, false, true},
};

static const struct dtype_row *row(enum bw_dtype dtype)
{
    return &dtype_rows[(unsigned)dtype < BW_DTYPE_COUNT ? dtype : BW_VOID];
}

uint32_t bw_dtype_bytes(enum bw_dtype dtype)
{
    return row(dtype)->bytes;
}

const char *bw_dtype_name(enum bw_dtype dtype)
{
    return row(dtype)->name;
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
    return INT64_MIN >> (64 - 8 * row(dtype)->bytes);
}

int64_t bw_dtype_int_max(enum bw_dtype dtype)
{
    if (dtype == BW_BOOL)
        return 1;
    if (!row(dtype)->is_int)
        return 0;
    unsigned bits = 8u * row(dtype)->bytes;
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
