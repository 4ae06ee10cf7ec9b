/* What each elementwise op does to elements: see the comments in ir.h. Floats narrower than f32 are computed
 * in f32 and rounded after each op; for + - * / and square roots that equals rounding once, since f32 has
 * more than 2p + 2 bits. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compiler/evaluate.h"

/* Ops that mean the same on every integer, as unsigned arithmetic so that wrapping is defined. */
#define EACH(expression)                     \
    for (int64_t i = 0; i < n; i++)          \
        o[i] = (__typeof__(*o))(expression); \
    return

#define INT_RUN(T, name)                                                                       \
    static T name##_divide(T a, T b)                                                           \
    {                                                                                          \
        return b == 0 ? 0 : (T)-1 < 0 && b == (T)-1 ? (T)(0 - (uint64_t)a) : (T)(a / b);       \
    }                                                                                          \
    static T name##_remainder(T a, T b)                                                        \
    {                                                                                          \
        return b == 0 || ((T)-1 < 0 && b == (T)-1) ? 0 : (T)(a % b);                           \
    }                                                                                          \
    static T name##_floor_divide(T a, T b)                                                     \
    {                                                                                          \
        return (T)(name##_divide(a, b) - (name##_remainder(a, b) != 0 && (a < 0) != (b < 0))); \
    }                                                                                          \
    static T name##_floor_remainder(T a, T b)                                                  \
    {                                                                                          \
        T rest = name##_remainder(a, b);                                                       \
        return (T)(rest != 0 && (a < 0) != (b < 0) ? rest + b : rest);                         \
    }                                                                                          \
    static T name##_shift_left(T a, int64_t count)                                             \
    {                                                                                          \
        return count < 0 || count >= 8 * (int64_t)sizeof(T) ? 0 : (T)((uint64_t)a << count);   \
    }                                                                                          \
    static T name##_shift_right(T a, int64_t count)                                            \
    {                                                                                          \
        int64_t width = 8 * (int64_t)sizeof(T);                                                \
        if (count < 0 || count >= width)                                                       \
            return (T)(a < 0 ? -1 : 0);                                                        \
        return (T)(a >> count);                                                                \
    }                                                                                          \
    static void name##_run(enum bw_op op, int64_t n, T *restrict o, const void *const *in)     \
    {                                                                                          \
        const T *a = in[0], *b = in[1];                                                        \
        const int64_t *count = in[1];                                                          \
        switch (op) {                                                                          \
        case BW_OP_NEG:                                                                        \
            EACH(0 - (uint64_t)a[i]);                                                          \
        case BW_OP_NOT:                                                                        \
            EACH(~a[i]);                                                                       \
        case BW_OP_ABS:                                                                        \
            EACH(a[i] < 0 ? 0 - (uint64_t)a[i] : (uint64_t)a[i]);                              \
        case BW_OP_TRUNC:                                                                      \
        case BW_OP_FLOOR:                                                                      \
        case BW_OP_CEIL:                                                                       \
        case BW_OP_ROUND_EVEN:                                                                 \
            EACH(a[i]);                                                                        \
        case BW_OP_ADD:                                                                        \
            EACH((uint64_t)a[i] + (uint64_t)b[i]);                                             \
        case BW_OP_SUB:                                                                        \
            EACH((uint64_t)a[i] - (uint64_t)b[i]);                                             \
        case BW_OP_MUL:                                                                        \
            EACH((uint64_t)a[i] * (uint64_t)b[i]);                                             \
        case BW_OP_DIV:                                                                        \
            EACH(name##_divide(a[i], b[i]));                                                   \
        case BW_OP_FLOOR_DIV:                                                                  \
            EACH(name##_floor_divide(a[i], b[i]));                                             \
        case BW_OP_FLOOR_MOD:                                                                  \
            EACH(name##_floor_remainder(a[i], b[i]));                                          \
        case BW_OP_TRUNC_MOD:                                                                  \
            EACH(name##_remainder(a[i], b[i]));                                                \
        case BW_OP_MAX:                                                                        \
            EACH(a[i] > b[i] ? a[i] : b[i]);                                                   \
        case BW_OP_MIN:                                                                        \
            EACH(a[i] < b[i] ? a[i] : b[i]);                                                   \
        case BW_OP_AND:                                                                        \
            EACH(a[i] & b[i]);                                                                 \
        case BW_OP_OR:                                                                         \
            EACH(a[i] | b[i]);                                                                 \
        case BW_OP_XOR:                                                                        \
            EACH(a[i] ^ b[i]);                                                                 \
        case BW_OP_SHL:                                                                        \
            EACH(name##_shift_left(a[i], count[i]));                                           \
        case BW_OP_SHR:                                                                        \
            EACH(name##_shift_right(a[i], count[i]));                                          \
        case BW_OP_MULTIPLY_ADD: {                                                             \
            const T *c = in[2];                                                                \
            EACH((uint64_t)a[i] * (uint64_t)b[i] + (uint64_t)c[i]);                            \
        }                                                                                      \
        default:                                                                               \
            assert(!"no integer op");                                                          \
        }                                                                                      \
    }                                                                                          \
    COMPARE_RUN(T, name)

#define COMPARE_RUN(T, name)                                                                         \
    static void name##_compare(enum bw_op op, int64_t n, uint8_t *restrict o, const void *const *in) \
    {                                                                                                \
        const T *a = in[0], *b = in[1];                                                              \
        switch (op) {                                                                                \
        case BW_OP_LESS:                                                                             \
            EACH(a[i] < b[i]);                                                                       \
        case BW_OP_EQUAL:                                                                            \
            EACH(a[i] == b[i]);                                                                      \
        default:                                                                                     \
            assert(op == BW_OP_NOT_EQUAL);                                                           \
            EACH(a[i] != b[i]);                                                                      \
        }                                                                                            \
    }

INT_RUN(int8_t, i8)
INT_RUN(int16_t, i16)
INT_RUN(int32_t, i32)
INT_RUN(int64_t, i64)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* a < 0 is never true of unsigned: the macro serves both */
INT_RUN(uint8_t, u8)
INT_RUN(uint16_t, u16)
INT_RUN(uint32_t, u32)
INT_RUN(uint64_t, u64)
#pragma GCC diagnostic pop

/* NaN wins; of two zeros MAX takes +0 and MIN -0. */
#define FLOAT_RUN(T, name, suffix, WIDE)                                                   \
    static T name##_max(T a, T b)                                                          \
    {                                                                                      \
        if (isnan(a) || isnan(b))                                                          \
            return a + b;                                                                  \
        return a > b ? a : a < b ? b : signbit(a) ? b : a;                                 \
    }                                                                                      \
    static T name##_min(T a, T b)                                                          \
    {                                                                                      \
        if (isnan(a) || isnan(b))                                                          \
            return a + b;                                                                  \
        return a < b ? a : a > b ? b : signbit(a) ? a : b;                                 \
    }                                                                                      \
    static void name##_run(enum bw_op op, int64_t n, T *restrict o, const void *const *in) \
    {                                                                                      \
        const T *a = in[0], *b = in[1];                                                    \
        switch (op) {                                                                      \
        case BW_OP_NEG:                                                                    \
            EACH(-a[i]);                                                                   \
        case BW_OP_RECIPROCAL:                                                             \
            EACH(1 / a[i]);                                                                \
        case BW_OP_SQRT:                                                                   \
            EACH(sqrt##suffix(a[i]));                                                      \
        case BW_OP_EXP2:                                                                   \
            EACH(exp2((WIDE)a[i]));                                                        \
        case BW_OP_LOG2:                                                                   \
            EACH(log2((WIDE)a[i]));                                                        \
        case BW_OP_SIN:                                                                    \
            EACH(sin((WIDE)a[i]));                                                         \
        case BW_OP_TRUNC:                                                                  \
            EACH(trunc##suffix(a[i]));                                                     \
        case BW_OP_FLOOR:                                                                  \
            EACH(floor##suffix(a[i]));                                                     \
        case BW_OP_CEIL:                                                                   \
            EACH(ceil##suffix(a[i]));                                                      \
        case BW_OP_ROUND_EVEN:                                                             \
            EACH(rint##suffix(a[i]));                                                      \
        case BW_OP_ABS:                                                                    \
            EACH(fabs##suffix(a[i]));                                                      \
        case BW_OP_ADD:                                                                    \
            EACH(a[i] + b[i]);                                                             \
        case BW_OP_SUB:                                                                    \
            EACH(a[i] - b[i]);                                                             \
        case BW_OP_MUL:                                                                    \
            EACH(a[i] * b[i]);                                                             \
        case BW_OP_DIV:                                                                    \
            EACH(a[i] / b[i]);                                                             \
        case BW_OP_TRUNC_MOD:                                                              \
            EACH(fmod##suffix(a[i], b[i]));                                                \
        case BW_OP_MAX:                                                                    \
            EACH(name##_max(a[i], b[i]));                                                  \
        case BW_OP_MIN:                                                                    \
            EACH(name##_min(a[i], b[i]));                                                  \
        case BW_OP_MULTIPLY_ADD: {                                                         \
            const T *c = in[2];                                                            \
            EACH(fma##suffix(a[i], b[i], c[i]));                                           \
        }                                                                                  \
        default:                                                                           \
            assert(!"no float op");                                                        \
        }                                                                                  \
    }                                                                                      \
    COMPARE_RUN(T, name)

FLOAT_RUN(float, f32, f, double)
FLOAT_RUN(double, f64, , double)

static void bool_run(enum bw_op op, int64_t n, uint8_t *restrict o, const void *const *in)
{
    const uint8_t *a = in[0], *b = in[1];
    switch (op) {
    case BW_OP_NOT:
        EACH(!a[i]);
    case BW_OP_AND:
    case BW_OP_MIN:
        EACH(a[i] & b[i]);
    case BW_OP_OR:
    case BW_OP_MAX:
        EACH(a[i] | b[i]);
    case BW_OP_XOR:
        EACH(a[i] ^ b[i]);
    default:
        assert(!"no bool op");
    }
}

static void narrow_load(enum bw_dtype dtype, int64_t n, float *out, const uint16_t *x)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dtype == BW_F16 ? bw_f16_to_f32(x[i]) : bw_bf16_to_f32(x[i]);
}

static void narrow_store(enum bw_dtype dtype, int64_t n, uint16_t *out, const float *x)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = dtype == BW_F16 ? bw_f16_from_f32(x[i]) : bw_bf16_from_f32(x[i]);
}

static void narrow_run(enum bw_op op, enum bw_dtype dtype, int64_t n, void *out, const void *const *in,
                       uint32_t operands, bool compares)
{
    float wide[3][BW_BLOCK], result[BW_BLOCK];
    const void *wides[3] = {wide[0], wide[1], wide[2]};
    for (uint32_t k = 0; k < operands; k++)
        narrow_load(dtype, n, wide[k], in[k]);
    if (compares) {
        f32_compare(op, n, out, wides);
        return;
    }
    f32_run(op, n, result, wides);
    narrow_store(dtype, n, out, result);
}

/* An integer as a double whose last bit is sticky: rounding it once more to a narrower format is rounding the
 * integer once. */
static double sticky_double(uint64_t magnitude, bool negative)
{
    int shift = 0;
    while (magnitude >> shift > (1ull << 53) - 1)
        shift++;
    uint64_t kept = magnitude >> shift;
    if (shift && magnitude & ((1ull << shift) - 1))
        kept |= 1;
    double value = ldexp((double)kept, shift);
    return negative ? -value : value;
}

union number {
    int64_t i;
    uint64_t u;
    double f;
};

#define LOAD_AS(field, T)                                                   \
    for (int64_t i = 0; i < n; i++)                                         \
        numbers[i].field = (__typeof__(numbers[i].field))((const T *)x)[i]; \
    return

/* Elements as int64 (uint64 for BW_U64), or double for floats: exact. */
static void numbers_load(enum bw_dtype dtype, int64_t n, union number *numbers, const void *x)
{
    switch (dtype) {
    case BW_BOOL:
    case BW_U8:
        LOAD_AS(i, uint8_t);
    case BW_I8:
        LOAD_AS(i, int8_t);
    case BW_I16:
        LOAD_AS(i, int16_t);
    case BW_U16:
        LOAD_AS(i, uint16_t);
    case BW_I32:
        LOAD_AS(i, int32_t);
    case BW_U32:
        LOAD_AS(i, uint32_t);
    case BW_I64:
        LOAD_AS(i, int64_t);
    case BW_U64:
        LOAD_AS(u, uint64_t);
    case BW_F32:
        LOAD_AS(f, float);
    case BW_F64:
        LOAD_AS(f, double);
    case BW_F16:
        for (int64_t i = 0; i < n; i++)
            numbers[i].f = (double)bw_f16_to_f32(((const uint16_t *)x)[i]);
        return;
    case BW_BF16:
        for (int64_t i = 0; i < n; i++)
            numbers[i].f = (double)bw_bf16_to_f32(((const uint16_t *)x)[i]);
        return;
    default:
        assert(!"no element dtype");
    }
}

#define STORE_AS(T, expression)          \
    for (int64_t i = 0; i < n; i++)      \
        ((T *)out)[i] = (T)(expression); \
    return

static void ints_store(enum bw_dtype to, int64_t n, void *out, const union number *numbers)
{
    switch (bw_dtype_bytes(to)) {
    case 1:
        STORE_AS(uint8_t, numbers[i].u);
    case 2:
        STORE_AS(uint16_t, numbers[i].u);
    case 4:
        STORE_AS(uint32_t, numbers[i].u);
    default:
        STORE_AS(uint64_t, numbers[i].u);
    }
}

static void doubles_store(enum bw_dtype to, int64_t n, void *out, const union number *numbers)
{
    switch (to) {
    case BW_F16:
        STORE_AS(uint16_t, bw_f16_from_f64(numbers[i].f));
    case BW_BF16:
        STORE_AS(uint16_t, bw_bf16_from_f64(numbers[i].f));
    case BW_F32:
        STORE_AS(float, numbers[i].f);
    default:
        STORE_AS(double, numbers[i].f);
    }
}

static void cast_run(enum bw_dtype from, enum bw_dtype to, int64_t n, void *out, const void *x)
{
    union number numbers[BW_BLOCK];
    bool from_float = bw_dtype_is_float(from);
    numbers_load(from, n, numbers, x);
    if (to == BW_BOOL) {
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = from_float ? numbers[i].f != 0 : numbers[i].u != 0;
        return;
    }
    if (!bw_dtype_is_float(to)) {
        for (int64_t i = 0; from_float && i < n; i++)
            numbers[i].i = bw_dtype_int_from(to, numbers[i].f);
        ints_store(to, n, out, numbers);
        return;
    }
    for (int64_t i = 0; !from_float && i < n; i++) {
        bool negative = from != BW_U64 && numbers[i].i < 0;
        uint64_t magnitude = negative ? 0 - numbers[i].u : numbers[i].u;
        if (to == BW_F64)
            numbers[i].f = negative ? -(double)magnitude : (double)magnitude;
        else
            numbers[i].f = sticky_double(magnitude, negative);
    }
    doubles_store(to, n, out, numbers);
}

static void where_run(uint32_t element_bytes, int64_t n, void *out, const void *const *in)
{
    const uint8_t *condition = in[0];
    switch (element_bytes) {
    case 1:
        STORE_AS(uint8_t, condition[i] ? ((const uint8_t *)in[1])[i] : ((const uint8_t *)in[2])[i]);
    case 2:
        STORE_AS(uint16_t, condition[i] ? ((const uint16_t *)in[1])[i] : ((const uint16_t *)in[2])[i]);
    case 4:
        STORE_AS(uint32_t, condition[i] ? ((const uint32_t *)in[1])[i] : ((const uint32_t *)in[2])[i]);
    default:
        STORE_AS(uint64_t, condition[i] ? ((const uint64_t *)in[1])[i] : ((const uint64_t *)in[2])[i]);
    }
}

#define DISPATCH(dtype, call)        \
    switch (dtype) {                 \
    case BW_I8:                      \
        i8_##call;                   \
        break;                       \
    case BW_U8:                      \
        u8_##call;                   \
        break;                       \
    case BW_I16:                     \
        i16_##call;                  \
        break;                       \
    case BW_U16:                     \
        u16_##call;                  \
        break;                       \
    case BW_I32:                     \
        i32_##call;                  \
        break;                       \
    case BW_U32:                     \
        u32_##call;                  \
        break;                       \
    case BW_I64:                     \
        i64_##call;                  \
        break;                       \
    case BW_U64:                     \
        u64_##call;                  \
        break;                       \
    case BW_F32:                     \
        f32_##call;                  \
        break;                       \
    case BW_F64:                     \
        f64_##call;                  \
        break;                       \
    default:                         \
        assert(!"no element dtype"); \
    }

void bw_evaluate_run(enum bw_op op, enum bw_dtype from, enum bw_dtype to, int64_t n, void *out,
                     const void *const *in)
{
    assert(n <= BW_BLOCK);
    bool compares = op == BW_OP_LESS || op == BW_OP_EQUAL || op == BW_OP_NOT_EQUAL;
    uint32_t operands = bw_op_class(op) == BW_OP_UNARY ? 1 : bw_op_class(op) == BW_OP_BINARY ? 2 : 3;
    if (op == BW_OP_CAST)
        cast_run(from, to, n, out, in[0]);
    else if (op == BW_OP_BITCAST)
        memcpy(out, in[0], (size_t)n * bw_dtype_bytes(to));
    else if (op == BW_OP_WHERE)
        where_run(bw_dtype_bytes(to), n, out, in);
    else if (from == BW_F16 || from == BW_BF16)
        narrow_run(op, from, n, out, in, operands, compares);
    else if (compares && from == BW_BOOL)
        u8_compare(op, n, out, in);
    else if (compares)
        DISPATCH(from, compare(op, n, out, in))
    else if (from == BW_BOOL)
        bool_run(op, n, out, in);
    else
        DISPATCH(from, run(op, n, out, in))
}

void bw_evaluate_fold(enum bw_op op, enum bw_dtype dtype, int64_t n, void *accumulator, const void *x)
{
    uint32_t element_bytes = bw_dtype_bytes(dtype);
    uint64_t sum = 0, result = 0;
    if (op == BW_OP_ADD && dtype == BW_F32) { /* the common one, without a call per element */
        float total = *(float *)accumulator;
        for (int64_t i = 0; i < n; i++)
            total += ((const float *)x)[i];
        *(float *)accumulator = total;
        return;
    }
    memcpy(&sum, accumulator, element_bytes);
    for (int64_t i = 0; i < n; i++) {
        const void *in[3] = {&sum, (const uint8_t *)x + i * element_bytes, NULL};
        bw_evaluate_run(op, dtype, dtype, 1, &result, in);
        sum = result;
    }
    memcpy(accumulator, &sum, element_bytes);
}

void bw_evaluate_identity(enum bw_op op, enum bw_dtype dtype, void *element)
{
    bool is_float = bw_dtype_is_float(dtype);
    union number value = {0};
    switch (op) {
    case BW_OP_MUL:
        value.i = 1;
        break;
    case BW_OP_MAX:
        value.i = bw_dtype_int_min(dtype);
        break;
    case BW_OP_MIN:
        value.i = dtype == BW_U64 ? -1 : bw_dtype_int_max(dtype);
        break;
    case BW_OP_AND:
        value.i = dtype == BW_BOOL ? 1 : -1;
        break;
    default: /* ADD, OR, XOR */
        break;
    }
    if (!is_float) {
        ints_store(dtype, 1, element, &value);
        return;
    }
    value.f = op == BW_OP_MUL ? 1 : op == BW_OP_MAX ? -INFINITY : op == BW_OP_MIN ? INFINITY : 0;
    doubles_store(dtype, 1, element, &value);
}

void bw_evaluate_multiply_add_f32(float *restrict accumulator, const float *a, int64_t a_stride,
                                  const float *b, int64_t b_stride, int64_t n)
{
    if (a_stride == 0 && b_stride == 1) {
        for (int64_t i = 0; i < n; i++)
            accumulator[i] += *a * b[i];
    } else if (a_stride == 1 && b_stride == 0) {
        for (int64_t i = 0; i < n; i++)
            accumulator[i] += a[i] * *b;
    } else if (a_stride == 1 && b_stride == 1) {
        for (int64_t i = 0; i < n; i++)
            accumulator[i] += a[i] * b[i];
    } else {
        for (int64_t i = 0; i < n; i++)
            accumulator[i] += a[i * a_stride] * b[i * b_stride];
    }
}
