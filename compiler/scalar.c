/* Elementwise operations on one element: see scalar.h. */
#include "compiler/scalar.h"

#include <assert.h>
#include <math.h>
#include <string.h>

union bw_scalar bw_scalar_load(enum bw_dtype dtype, const void *at)
{
    union bw_scalar value = {.i = 0};
#define LOAD(type, field)             \
    {                                 \
        type raw;                     \
        memcpy(&raw, at, sizeof raw); \
        value.field = raw;            \
        break;                        \
    }
    switch (dtype) {
    case BW_BOOL:
    case BW_U8:
        LOAD(uint8_t, i)
    case BW_I8:
        LOAD(int8_t, i)
    case BW_I16:
        LOAD(int16_t, i)
    case BW_U16:
        LOAD(uint16_t, i)
    case BW_I32:
        LOAD(int32_t, i)
    case BW_U32:
        LOAD(uint32_t, i)
    case BW_I64:
    case BW_U64:
        LOAD(int64_t, i)
    case BW_F32:
        LOAD(float, d)
    case BW_F64:
        LOAD(double, d)
    case BW_F16:
    case BW_BF16: {
        uint16_t raw;
        memcpy(&raw, at, sizeof raw);
        value.d = (double)(dtype == BW_F16 ? bw_f16_to_f32(raw) : bw_bf16_to_f32(raw));
        break;
    }
    default:
        assert(!"a dtype with elements");
    }
#undef LOAD
    return value;
}

void bw_scalar_store(enum bw_dtype dtype, void *at, union bw_scalar value)
{
    uint16_t half;
    float single;
    switch (dtype) {
    case BW_F16:
    case BW_BF16:
        half = dtype == BW_F16 ? bw_f16_from_f64(value.d) : bw_bf16_from_f64(value.d);
        memcpy(at, &half, sizeof half);
        break;
    case BW_F32:
        single = (float)value.d;
        memcpy(at, &single, sizeof single);
        break;
    default:
        memcpy(at, &value, bw_dtype_bytes(dtype)); /* little endian */
    }
}

union bw_scalar bw_scalar_fit(enum bw_dtype dtype, union bw_scalar value)
{
    unsigned bits = 8 * bw_dtype_bytes(dtype);
    switch (dtype) {
    case BW_F16:
        return (union bw_scalar){.d = (double)bw_f16_to_f32(bw_f16_from_f64(value.d))};
    case BW_BF16:
        return (union bw_scalar){.d = (double)bw_bf16_to_f32(bw_bf16_from_f64(value.d))};
    case BW_F32:
        return (union bw_scalar){.d = (double)(float)value.d};
    case BW_F64:
    case BW_I64:
    case BW_U64:
        return value;
    case BW_BOOL:
        return (union bw_scalar){.i = value.i & 1};
    default:
        if (bw_dtype_is_signed(dtype))
            return (union bw_scalar){.i = (int64_t)((uint64_t)value.i << (64 - bits)) >> (64 - bits)};
        return (union bw_scalar){.i = (int64_t)((uint64_t)value.i & ((1ull << bits) - 1))};
    }
}

union bw_scalar bw_scalar_cast(enum bw_dtype to, enum bw_dtype from, union bw_scalar value)
{
    if (bw_dtype_is_float(from)) {
        if (to == BW_BOOL)
            return (union bw_scalar){.i = value.d != 0};
        return bw_dtype_is_float(to) ? bw_scalar_fit(to, value)
                                     : (union bw_scalar){.i = bw_dtype_int_from(to, value.d)};
    }
    if (to == BW_BOOL)
        return (union bw_scalar){.i = value.i != 0};
    if (!bw_dtype_is_float(to))
        return bw_scalar_fit(to, value);
    if (to == BW_F32) /* one rounding, from the integer itself */
        return (union bw_scalar){.d = (double)(from == BW_U64 ? (float)(uint64_t)value.i : (float)value.i)};
    double wide = from == BW_U64 ? (double)(uint64_t)value.i : (double)value.i;
    return bw_scalar_fit(to, (union bw_scalar){.d = wide});
}

union bw_scalar bw_scalar_bitcast(enum bw_dtype to, enum bw_dtype from, union bw_scalar value)
{
    unsigned char bytes[8] = {0};
    assert(bw_dtype_bytes(to) == bw_dtype_bytes(from));
    bw_scalar_store(from, bytes, value);
    if (to == BW_BOOL)
        bytes[0] &= 1;
    return bw_scalar_load(to, bytes);
}

static double unary_float(enum bw_op op, double a)
{
    switch (op) {
    case BW_OP_NEG:
        return -a;
    case BW_OP_ABS:
        return fabs(a);
    case BW_OP_RECIPROCAL:
        return 1 / a;
    case BW_OP_SQRT:
        return sqrt(a);
    case BW_OP_EXP2:
        return exp2(a);
    case BW_OP_LOG2:
        return log2(a);
    case BW_OP_SIN:
        return sin(a);
    case BW_OP_TRUNC:
        return trunc(a);
    case BW_OP_FLOOR:
        return floor(a);
    case BW_OP_CEIL:
        return ceil(a);
    case BW_OP_ROUND_EVEN:
        return rint(a);
    default:
        assert(!"a unary operation on floats");
        return 0;
    }
}

union bw_scalar bw_scalar_unary(enum bw_op op, enum bw_dtype dtype, union bw_scalar a)
{
    if (bw_dtype_is_float(dtype))
        return bw_scalar_fit(dtype, (union bw_scalar){.d = unary_float(op, a.d)});
    switch (op) {
    case BW_OP_NEG:
        a.i = (int64_t)(0 - (uint64_t)a.i);
        break;
    case BW_OP_NOT:
        a.i = dtype == BW_BOOL ? !a.i : ~a.i;
        break;
    case BW_OP_ABS:
        if (bw_dtype_is_signed(dtype) && a.i < 0)
            a.i = (int64_t)(0 - (uint64_t)a.i);
        break;
    default:
        assert(op == BW_OP_TRUNC || op == BW_OP_FLOOR || op == BW_OP_CEIL || op == BW_OP_ROUND_EVEN);
    }
    return bw_scalar_fit(dtype, a);
}

static union bw_scalar binary_float(enum bw_op op, enum bw_dtype dtype, double a, double b)
{
    union bw_scalar value;
    switch (op) {
    case BW_OP_LESS:
        return (union bw_scalar){.i = a < b};
    case BW_OP_EQUAL:
        return (union bw_scalar){.i = a == b};
    case BW_OP_NOT_EQUAL:
        return (union bw_scalar){.i = a != b};
    case BW_OP_ADD:
        value.d = a + b;
        break;
    case BW_OP_SUB:
        value.d = a - b;
        break;
    case BW_OP_MUL:
        value.d = a * b;
        break;
    case BW_OP_DIV:
        value.d = a / b;
        break;
    case BW_OP_TRUNC_MOD:
        value.d = fmod(a, b);
        break;
    case BW_OP_MAX:
        value.d = isnan(a) || isnan(b) ? NAN : a > b ? a : b;
        break;
    case BW_OP_MIN:
        value.d = isnan(a) || isnan(b) ? NAN : a < b ? a : b;
        break;
    default:
        assert(!"a binary operation on floats");
        value.d = 0;
    }
    return bw_scalar_fit(dtype, value);
}

static int64_t division(enum bw_op op, enum bw_dtype dtype, int64_t a, int64_t b)
{
    bool quotient = op == BW_OP_DIV || op == BW_OP_FLOOR_DIV;
    if (b == 0)
        return 0;
    if (!bw_dtype_is_signed(dtype))
        return (int64_t)(quotient ? (uint64_t)a / (uint64_t)b : (uint64_t)a % (uint64_t)b);
    if (b == -1) /* the lowest value wraps */
        return quotient ? (int64_t)(0 - (uint64_t)a) : 0;
    int64_t truncated = a / b, floored = truncated - (a % b != 0 && (a < 0) != (b < 0));
    switch (op) {
    case BW_OP_DIV:
        return truncated;
    case BW_OP_FLOOR_DIV:
        return floored;
    case BW_OP_TRUNC_MOD:
        return a % b;
    default:
        return a - floored * b;
    }
}

static int64_t shift(enum bw_op op, enum bw_dtype dtype, int64_t a, int64_t count)
{
    int64_t width = 8 * bw_dtype_bytes(dtype);
    bool over = count < 0 || count >= width;
    if (op == BW_OP_SHL)
        return over ? 0 : (int64_t)((uint64_t)a << count);
    if (bw_dtype_is_signed(dtype))
        return a >> (over ? 63 : count);
    return over ? 0 : (int64_t)((uint64_t)a >> count);
}

union bw_scalar bw_scalar_binary(enum bw_op op, enum bw_dtype dtype, union bw_scalar a, union bw_scalar b)
{
    if (bw_dtype_is_float(dtype))
        return binary_float(op, dtype, a.d, b.d);
    bool less = bw_dtype_is_signed(dtype) ? a.i < b.i : (uint64_t)a.i < (uint64_t)b.i;
    int64_t value;
    switch (op) {
    case BW_OP_LESS:
        return (union bw_scalar){.i = less};
    case BW_OP_EQUAL:
        return (union bw_scalar){.i = a.i == b.i};
    case BW_OP_NOT_EQUAL:
        return (union bw_scalar){.i = a.i != b.i};
    case BW_OP_ADD:
        value = (int64_t)((uint64_t)a.i + (uint64_t)b.i);
        break;
    case BW_OP_SUB:
        value = (int64_t)((uint64_t)a.i - (uint64_t)b.i);
        break;
    case BW_OP_MUL:
        value = (int64_t)((uint64_t)a.i * (uint64_t)b.i);
        break;
    case BW_OP_MAX:
        return less ? b : a;
    case BW_OP_MIN:
        return less ? a : b;
    case BW_OP_AND:
        return (union bw_scalar){.i = a.i & b.i};
    case BW_OP_OR:
        return (union bw_scalar){.i = a.i | b.i};
    case BW_OP_XOR:
        return (union bw_scalar){.i = a.i ^ b.i};
    case BW_OP_SHL:
    case BW_OP_SHR:
        value = shift(op, dtype, a.i, b.i);
        break;
    default:
        value = division(op, dtype, a.i, b.i);
    }
    return bw_scalar_fit(dtype, (union bw_scalar){.i = value});
}

union bw_scalar bw_scalar_multiply_add(enum bw_dtype dtype, union bw_scalar a, union bw_scalar b,
                                       union bw_scalar c)
{
    if (dtype == BW_F32)
        return (union bw_scalar){.d = (double)fmaf((float)a.d, (float)b.d, (float)c.d)};
    if (bw_dtype_is_float(dtype))
        return bw_scalar_fit(dtype, (union bw_scalar){.d = fma(a.d, b.d, c.d)});
    return bw_scalar_binary(BW_OP_ADD, dtype, bw_scalar_binary(BW_OP_MUL, dtype, a, b), c);
}
