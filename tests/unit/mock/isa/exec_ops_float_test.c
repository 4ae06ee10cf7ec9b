/* Goal: each floating-point operation of the VALU agrees with the RDNA3 ISA document, written here once more
 * in plain C: exactly where rounding settles the result, within the documented ULPs where it does not. */
#include "tests/check.h"

#include "mock/isa/pool.h"
#include "tests/unit/mock/isa/exec_ops.h"

static float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, 4);
    return f;
}

static uint32_t bits_of_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static double f64_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

static uint64_t bits_of_f64(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

static long double f16_of(uint64_t bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    long double m = exponent == 31 ? (fraction ? NAN : INFINITY)
                    : exponent     ? ldexpl(1024 + fraction, (int)exponent - 25)
                                   : ldexpl(fraction, -24);
    return bits & 0x8000 ? -m : m;
}

/* To nearest even, from a value that is exact. */
static uint32_t f16_bits(long double value)
{
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    long double m = fabsl(value);
    if (isnan(value))
        return sign | 0x7e00;
    if (m >= 65520)
        return sign | 0x7c00;
    int exponent = m > 0 ? ilogbl(m) : -14;
    exponent = exponent < -14 ? -14 : exponent;
    long double units = m / ldexpl(1, exponent - 10);
    uint32_t whole = (uint32_t)floorl(units);
    long double rest = units - whole;
    whole += rest > 0.5L || (rest == 0.5L && (whole & 1));
    if (whole == 2048) {
        whole = 1024;
        exponent++;
    }
    return sign | (whole < 1024 ? whole : (uint32_t)(exponent + 15) << 10 | (whole & 0x3ff));
}

static bool is_snan_f32(uint32_t b)
{
    return (b & 0x7fffffff) > 0x7f800000 && !(b & 0x400000);
}

static bool is_nan_f32(uint32_t b)
{
    return (b & 0x7fffffff) > 0x7f800000;
}

/* V_MIN_F32 and V_MAX_F32 in IEEE mode, as the pseudo-code has them; sign 1 is the minimum. */
static uint32_t extreme_f32(uint32_t a, uint32_t b, bool minimum)
{
    float x = f32_of(a), y = f32_of(b);
    if (is_snan_f32(a))
        return a | 0x400000;
    if (is_snan_f32(b))
        return b | 0x400000;
    if (is_nan_f32(b))
        return a;
    if (is_nan_f32(a))
        return b;
    bool both_zero = x == 0 && y == 0;
    bool first = minimum ? x < y || (both_zero && signbit(x) && !signbit(y))
                         : x > y || (both_zero && !signbit(x) && signbit(y));
    return first ? a : b;
}

static uint32_t extreme_f16(uint32_t a, uint32_t b, bool minimum)
{
    long double x = f16_of(a), y = f16_of(b);
    if (isnan(x) && !(a & 0x200))
        return a | 0x200;
    if (isnan(y) && !(b & 0x200))
        return b | 0x200;
    if (isnan(y))
        return a;
    if (isnan(x))
        return b;
    bool both_zero = x == 0 && y == 0;
    bool first = minimum ? x < y || (both_zero && signbit(x) && !signbit(y))
                         : x > y || (both_zero && !signbit(x) && signbit(y));
    return first ? a : b;
}

static uint64_t extreme_f64(uint64_t a, uint64_t b, bool minimum)
{
    double x = f64_of(a), y = f64_of(b);
    if (isnan(x) && !(a >> 51 & 1))
        return a | 1ull << 51;
    if (isnan(y) && !(b >> 51 & 1))
        return b | 1ull << 51;
    if (isnan(y))
        return a;
    if (isnan(x))
        return b;
    bool both_zero = x == 0 && y == 0;
    bool first = minimum ? x < y || (both_zero && signbit(x) && !signbit(y))
                         : x > y || (both_zero && !signbit(x) && signbit(y));
    return first ? a : b;
}

static uint32_t median_f32(uint32_t a, uint32_t b, uint32_t c)
{
    if (is_nan_f32(a) || is_nan_f32(b) || is_nan_f32(c))
        return extreme_f32(extreme_f32(a, b, true), c, true);
    uint32_t top = extreme_f32(extreme_f32(a, b, false), c, false);
    if (f32_of(top) == f32_of(a))
        return extreme_f32(b, c, false);
    return f32_of(top) == f32_of(b) ? extreme_f32(a, c, false) : extreme_f32(a, b, false);
}

static int32_t i32_of(double x)
{
    return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}

static uint32_t u32_of(double x)
{
    return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : (uint32_t)x;
}

#define F32(name, ...)                                                                         \
    static uint64_t ref_##name(struct ops_values *v)                                           \
    {                                                                                          \
        volatile float a = f32_of(v->a), b = f32_of(v->b), c = f32_of(v->c), d = f32_of(v->d); \
        (void)a, (void)b, (void)c, (void)d;                                                    \
        return bits_of_f32((float)(__VA_ARGS__));                                              \
    }
#define F32_BITS(name, ...)                                                  \
    static uint64_t ref_##name(struct ops_values *v)                         \
    {                                                                        \
        uint32_t a = (uint32_t)v->a, b = (uint32_t)v->b, c = (uint32_t)v->c; \
        (void)a, (void)b, (void)c;                                           \
        return (uint32_t)(__VA_ARGS__);                                      \
    }
#define F64(name, ...)                                                        \
    static uint64_t ref_##name(struct ops_values *v)                          \
    {                                                                         \
        volatile double a = f64_of(v->a), b = f64_of(v->b), c = f64_of(v->c); \
        (void)a, (void)b, (void)c;                                            \
        return bits_of_f64(__VA_ARGS__);                                      \
    }
#define F64_BITS(name, ...)                          \
    static uint64_t ref_##name(struct ops_values *v) \
    {                                                \
        uint64_t a = v->a, b = v->b, c = v->c;       \
        (void)a, (void)b, (void)c;                   \
        return (__VA_ARGS__);                        \
    }
#define F16(name, ...)                                                                      \
    static uint64_t ref_##name(struct ops_values *v)                                        \
    {                                                                                       \
        long double a = f16_of(v->a), b = f16_of(v->b), c = f16_of(v->c), d = f16_of(v->d); \
        (void)a, (void)b, (void)c, (void)d;                                                 \
        return (v->d & 0xffff0000u) | f16_bits(__VA_ARGS__);                                \
    }
#define F16_BITS(name, ...)                                               \
    static uint64_t ref_##name(struct ops_values *v)                      \
    {                                                                     \
        uint32_t a = v->a & 0xffff, b = v->b & 0xffff, c = v->c & 0xffff; \
        (void)a, (void)b, (void)c;                                        \
        return (v->d & 0xffff0000u) | ((__VA_ARGS__)&0xffff);             \
    }

F32(V_ADD_F32, a + b)
F32(V_SUB_F32, a - b)
F32(V_SUBREV_F32, b - a)
F32(V_MUL_F32, a *b)
F32(V_MUL_DX9_ZERO_F32, a == 0 || b == 0 ? 0.0f : a * b)
F32(V_FMA_F32, fmaf(a, b, c))
F32(V_FMAC_F32, fmaf(a, b, d))
F32(V_FMA_DX9_ZERO_F32, a == 0 || b == 0 ? c : fmaf(a, b, c))
F32_BITS(V_MIN_F32, extreme_f32(a, b, true))
F32_BITS(V_MAX_F32, extreme_f32(a, b, false))
F32_BITS(V_MIN3_F32, extreme_f32(extreme_f32(a, b, true), c, true))
F32_BITS(V_MAX3_F32, extreme_f32(extreme_f32(a, b, false), c, false))
F32_BITS(V_MED3_F32, median_f32(a, b, c))
F32_BITS(V_MAXMIN_F32, extreme_f32(extreme_f32(a, b, false), c, true))
F32_BITS(V_MINMAX_F32, extreme_f32(extreme_f32(a, b, true), c, false))
F32(V_TRUNC_F32, truncf(a))
F32(V_CEIL_F32, ceilf(a))
F32(V_FLOOR_F32, floorf(a))
F32(V_RNDNE_F32, rintf(a))
F32(V_FRACT_F32, a - floorf(a) >= 1 ? 0x1.fffffep-1f : a - floorf(a))
F32(V_LDEXP_F32, ldexpf(a, (int32_t)v->b > 1000 ? 1000 : (int32_t)v->b < -1000 ? -1000 : (int32_t)v->b))
F32_BITS(V_CVT_I32_F32, i32_of(truncf(f32_of(a))))
F32_BITS(V_CVT_U32_F32, u32_of(truncf(f32_of(a))))
F32_BITS(V_CVT_FLOOR_I32_F32, i32_of(floorf(f32_of(a))))
F32_BITS(V_CVT_NEAREST_I32_F32, i32_of(floorf(f32_of(a) + 0.5f)))
F32_BITS(V_CVT_F32_I32, bits_of_f32((float)(int32_t)a))
F32_BITS(V_CVT_F32_U32, bits_of_f32((float)a))
F32_BITS(V_CVT_F32_UBYTE0, bits_of_f32((float)(a & 255)))
F32_BITS(V_CVT_F32_UBYTE1, bits_of_f32((float)(a >> 8 & 255)))
F32_BITS(V_CVT_F32_UBYTE2, bits_of_f32((float)(a >> 16 & 255)))
F32_BITS(V_CVT_F32_UBYTE3, bits_of_f32((float)(a >> 24)))
F32_BITS(V_CVT_OFF_F32_I4, bits_of_f32((float)((int32_t)(a << 28) >> 28) / 16))

static int frexp_exponent(double x)
{
    int exponent = 0;
    if (x != 0 && !isinf(x) && !isnan(x))
        (void)frexp(x, &exponent);
    return exponent;
}

static double frexp_mantissa(double x)
{
    int ignored;
    return x == 0 || isinf(x) || isnan(x) ? x : frexp(x, &ignored);
}
F32_BITS(V_FREXP_EXP_I32_F32, frexp_exponent((double)f32_of(a)))
F32(V_FREXP_MANT_F32, (float)frexp_mantissa((double)a))
F32_BITS(V_FREXP_EXP_I32_F64, frexp_exponent(f64_of(v->a)))
F64(V_FREXP_MANT_F64, frexp_mantissa(a))
F64(V_ADD_F64, a + b)
F64(V_MUL_F64, a *b)
F64(V_FMA_F64, fma(a, b, c))
F64_BITS(V_MIN_F64, extreme_f64(a, b, true))
F64_BITS(V_MAX_F64, extreme_f64(a, b, false))
F64(V_TRUNC_F64, trunc(a))
F64(V_CEIL_F64, ceil(a))
F64(V_FLOOR_F64, floor(a))
F64(V_RNDNE_F64, rint(a))
F64(V_FRACT_F64, a - floor(a) >= 1 ? 0x1.fffffffffffffp-1 : a - floor(a))
F64(V_LDEXP_F64, ldexp(a, (int32_t)v->b > 5000 ? 5000 : (int32_t)v->b < -5000 ? -5000 : (int32_t)v->b))
F32_BITS(V_CVT_I32_F64, i32_of(trunc(f64_of(v->a))))
F32_BITS(V_CVT_U32_F64, u32_of(trunc(f64_of(v->a))))
F32_BITS(V_CVT_F32_F64, bits_of_f32((float)f64_of(v->a)))
F64(V_CVT_F64_I32, (double)(int32_t)v->a)
F64(V_CVT_F64_U32, (double)(uint32_t)v->a)
F64(V_CVT_F64_F32, (double)f32_of(v->a))
F16(V_ADD_F16, a + b)
F16(V_SUB_F16, a - b)
F16(V_SUBREV_F16, b - a)
F16(V_MUL_F16, a *b)
F16(V_FMA_F16, a *b + c)
F16(V_FMAC_F16, a *b + d)
F16_BITS(V_MIN_F16, extreme_f16(a, b, true))
F16_BITS(V_MAX_F16, extreme_f16(a, b, false))
F16_BITS(V_MIN3_F16, extreme_f16(extreme_f16(a, b, true), c, true))
F16_BITS(V_MAX3_F16, extreme_f16(extreme_f16(a, b, false), c, false))
F16_BITS(V_MAXMIN_F16, extreme_f16(extreme_f16(a, b, false), c, true))
F16_BITS(V_MINMAX_F16, extreme_f16(extreme_f16(a, b, true), c, false))
F16(V_TRUNC_F16, truncl(a))
F16(V_CEIL_F16, ceill(a))
F16(V_FLOOR_F16, floorl(a))
F16(V_RNDNE_F16, rintl(a))
F16(V_SQRT_F16, sqrtl(a))
F16(V_LDEXP_F16, ldexpl(a, (int16_t)v->b > 100 ? 100 : (int16_t)v->b < -100 ? -100 : (int16_t)v->b))
F16(V_CVT_F16_F32, f32_of(v->a))
F16(V_CVT_F16_U16, (long double)(uint16_t)v->a)
F16(V_CVT_F16_I16, (long double)(int16_t)v->a)
F16_BITS(V_CVT_U16_F16, !(f16_of(a) > 0) ? 0 : f16_of(a) >= 65535 ? 65535 : (uint32_t)f16_of(a))
F16_BITS(V_CVT_I16_F16, isnan(f16_of(a))      ? 0
                        : f16_of(a) >= 32767  ? 32767u
                        : f16_of(a) <= -32768 ? 32768u
                                              : (uint32_t)(int32_t)f16_of(a))
F32(V_CVT_F32_F16, (float)f16_of(v->a))

static uint64_t ref_V_PK_ADD_F16(struct ops_values *v)
{
    return f16_bits(f16_of(v->a) + f16_of(v->b)) | f16_bits(f16_of(v->a >> 16) + f16_of(v->b >> 16)) << 16;
}

static uint64_t ref_V_PK_MUL_F16(struct ops_values *v)
{
    return f16_bits(f16_of(v->a) * f16_of(v->b)) | f16_bits(f16_of(v->a >> 16) * f16_of(v->b >> 16)) << 16;
}

static uint64_t ref_V_PK_FMA_F16(struct ops_values *v)
{
    return f16_bits(f16_of(v->a) * f16_of(v->b) + f16_of(v->c)) |
           f16_bits(f16_of(v->a >> 16) * f16_of(v->b >> 16) + f16_of(v->c >> 16)) << 16;
}

#define CONDITIONS(_)                                                                                     \
    _(LT, a < b)                                                                                          \
    _(EQ, a == b)                                                                                         \
    _(LE, a <= b)                                                                                         \
    _(GT, a > b) _(LG, a<b || a> b) _(GE, a >= b) _(O, !isnan(a) && !isnan(b)) _(U, isnan(a) || isnan(b)) \
        _(NGE, !(a >= b)) _(NLG, !(a < b || a > b)) _(NGT, !(a > b)) _(NLE, !(a <= b)) _(NEQ, !(a == b))  \
            _(NLT, !(a < b))
#define COMPARE_AS(name, type, read, ...)                           \
    static uint64_t ref_V_CMP_##name##_##type(struct ops_values *v) \
    {                                                               \
        long double a = read(v->a), b = read(v->b);                 \
        v->out = (__VA_ARGS__);                                     \
        return 0;                                                   \
    }
#define COMPARE(name, ...)                     \
    COMPARE_AS(name, F32, f32_of, __VA_ARGS__) \
    COMPARE_AS(name, F64, f64_of, __VA_ARGS__) COMPARE_AS(name, F16, f16_of, __VA_ARGS__)
CONDITIONS(COMPARE)

/* Bit of V_CMP_CLASS: signalling, quiet, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf. */
static unsigned class_bit(bool nan, bool quiet, bool inf, bool zero, bool denormal, bool negative)
{
    if (nan)
        return quiet ? 1 : 0;
    unsigned distance = inf ? 0 : zero ? 3 : denormal ? 2 : 1;
    return negative ? 2 + distance : 9 - distance;
}

static uint64_t ref_V_CMP_CLASS_F32(struct ops_values *v)
{
    uint32_t a = (uint32_t)v->a, m = a & 0x7fffffff;
    v->out =
        v->b >> class_bit(m > 0x7f800000, a >> 22 & 1, m == 0x7f800000, m == 0, m < 0x800000, a >> 31) & 1;
    return 0;
}

static uint64_t ref_V_CMP_CLASS_F64(struct ops_values *v)
{
    uint64_t a = v->a, m = a & ~(1ull << 63), inf = 0x7ff0000000000000ull;
    v->out = v->b >> class_bit(m > inf, a >> 51 & 1, m == inf, m == 0, m < 1ull << 52, a >> 63) & 1;
    return 0;
}

static uint64_t ref_V_CMP_CLASS_F16(struct ops_values *v)
{
    uint32_t a = (uint32_t)v->a & 0xffff, m = a & 0x7fff;
    v->out = v->b >> class_bit(m > 0x7c00, a >> 9 & 1, m == 0x7c00, m == 0, m < 0x400, a >> 15) & 1;
    return 0;
}

#define AS(name, result, values) {BW_GFX11_##name, ref_##name, result, values},
#define S32(name)                AS(name, OPS_FLOAT, "f32")
#define I32(name)                AS(name, OPS_BITS, "f32")
#define S64(name)                AS(name, OPS_DOUBLE, "f64")
#define S16(name)                AS(name, OPS_HALF, "f16")
#define COMPARES(name, ...)                 \
    AS(V_CMP_##name##_F32, OPS_MASK, "f32") \
    AS(V_CMP_##name##_F64, OPS_MASK, "f64") AS(V_CMP_##name##_F16, OPS_MASK, "f16")
/* clang-format off */
static const struct ops_case cases[] = {
    S32(V_ADD_F32) S32(V_SUB_F32) S32(V_SUBREV_F32) S32(V_MUL_F32) S32(V_MUL_DX9_ZERO_F32) S32(V_FMA_F32) S32(V_FMAC_F32)
    S32(V_FMA_DX9_ZERO_F32) I32(V_MIN_F32) I32(V_MAX_F32) I32(V_MIN3_F32) I32(V_MAX3_F32) I32(V_MED3_F32)
    I32(V_MAXMIN_F32) I32(V_MINMAX_F32) S32(V_TRUNC_F32) S32(V_CEIL_F32) S32(V_FLOOR_F32) S32(V_RNDNE_F32)
    S32(V_FRACT_F32) S32(V_LDEXP_F32) AS(V_LDEXP_F32, OPS_FLOAT, "int") I32(V_CVT_I32_F32) I32(V_CVT_U32_F32)
    I32(V_CVT_FLOOR_I32_F32) I32(V_CVT_NEAREST_I32_F32) AS(V_CVT_F32_I32, OPS_BITS, "int")
    AS(V_CVT_F32_U32, OPS_BITS, "int") I32(V_CVT_F32_UBYTE0) I32(V_CVT_F32_UBYTE1) I32(V_CVT_F32_UBYTE2)
    I32(V_CVT_F32_UBYTE3) I32(V_CVT_OFF_F32_I4) I32(V_FREXP_EXP_I32_F32) S32(V_FREXP_MANT_F32)
    AS(V_FREXP_EXP_I32_F64, OPS_BITS, "f64") S64(V_FREXP_MANT_F64) S64(V_ADD_F64) S64(V_MUL_F64) S64(V_FMA_F64)
    AS(V_MIN_F64, OPS_BITS, "f64") AS(V_MAX_F64, OPS_BITS, "f64") S64(V_TRUNC_F64) S64(V_CEIL_F64) S64(V_FLOOR_F64)
    S64(V_RNDNE_F64) S64(V_FRACT_F64) S64(V_LDEXP_F64) AS(V_LDEXP_F64, OPS_DOUBLE, "int")
    AS(V_CVT_I32_F64, OPS_BITS, "f64") AS(V_CVT_U32_F64, OPS_BITS, "f64") AS(V_CVT_F32_F64, OPS_FLOAT, "f64")
    AS(V_CVT_F64_I32, OPS_BITS, "int") AS(V_CVT_F64_U32, OPS_BITS, "int") AS(V_CVT_F64_F32, OPS_DOUBLE, "f32")
    S16(V_ADD_F16) S16(V_SUB_F16) S16(V_SUBREV_F16) S16(V_MUL_F16) S16(V_FMA_F16) S16(V_FMAC_F16)
    AS(V_MIN_F16, OPS_BITS, "f16") AS(V_MAX_F16, OPS_BITS, "f16") AS(V_MIN3_F16, OPS_BITS, "f16")
    AS(V_MAX3_F16, OPS_BITS, "f16") AS(V_MAXMIN_F16, OPS_BITS, "f16") AS(V_MINMAX_F16, OPS_BITS, "f16")
    S16(V_TRUNC_F16) S16(V_CEIL_F16) S16(V_FLOOR_F16) S16(V_RNDNE_F16) S16(V_SQRT_F16) S16(V_LDEXP_F16)
    AS(V_CVT_F16_F32, OPS_HALF, "f32") AS(V_CVT_F16_U16, OPS_BITS, "int") AS(V_CVT_F16_I16, OPS_BITS, "int")
    AS(V_CVT_U16_F16, OPS_BITS, "f16") AS(V_CVT_I16_F16, OPS_BITS, "f16") AS(V_CVT_F32_F16, OPS_FLOAT, "f16")
    CONDITIONS(COMPARES) AS(V_CMP_CLASS_F32, OPS_MASK, "f32") AS(V_CMP_CLASS_F64, OPS_MASK, "f64")
    AS(V_CMP_CLASS_F16, OPS_MASK, "f16")
};
/* Both halves may be NaN: compared by hand below. */
static const struct ops_case packed[] = {
    AS(V_PK_ADD_F16, OPS_BITS, "f16") AS(V_PK_MUL_F16, OPS_BITS, "f16") AS(V_PK_FMA_F16, OPS_BITS, "f16")
};
/* clang-format on */

static bool each_level(bool (*run)(struct exec_machine *machine))
{
    bool ok = true;
    for (int level = (int)bw_isa_host_level(); level >= BW_ISA_LEVEL_BASE; level--) {
        struct exec_machine machine;
        if (exec_machine_init(&machine, 1))
            return false;
        bw_isa_pool_destroy(machine.pool);
        ok = bw_isa_pool_create_level(1, (enum bw_isa_level)level, &machine.pool) == 0 && run(&machine) && ok;
        exec_machine_free(&machine);
    }
    return ok;
}

static bool run_cases(struct exec_machine *machine)
{
    return ops_check_all(machine, cases, sizeof cases / sizeof cases[0]) == 0;
}

static void test_operations(void)
{
    BW_TRUE(each_level(run_cases));
}

static uint32_t canonical_halves(uint32_t bits)
{
    for (unsigned shift = 0; shift < 32; shift += 16) {
        if ((bits >> shift & 0x7fff) > 0x7c00)
            bits = (bits & ~(0xffffu << shift)) | 0x7e00u << shift;
    }
    return bits;
}

static bool run_packed(struct exec_machine *machine)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        uint32_t words[2];
        struct bw_rng rng = {.state = 5 + i};
        uint8_t *array = machine->memory + EXEC_DATA;
        ops_put_code(machine, words, ops_encode(&bw_gfx11_ops[packed[i].op], words));
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            uint64_t stored[3];
            for (unsigned k = 0; k < 3; k++)
                stored[k] = (ops_value(&rng, "f16") & 0xffff) | (ops_value(&rng, "f16") & 0xffff) << 16;
            memcpy(array + lane * OPS_LANE_BYTES, stored, sizeof stored);
        }
        ok = exec_run(machine) == BW_ISA_DONE && ok;
        for (unsigned lane = 0; lane < OPS_LANES && ok; lane++) {
            struct ops_values v = {0};
            uint32_t observed;
            memcpy(&v, array + lane * OPS_LANE_BYTES, 24);
            memcpy(&observed, array + lane * OPS_LANE_BYTES + 48, 4);
            ok = BW_EQ(canonical_halves(observed), canonical_halves((uint32_t)packed[i].reference(&v)));
        }
        if (ok)
            ops_prove(packed[i].op);
    }
    return ok;
}

static void test_packed(void)
{
    BW_TRUE(each_level(run_packed));
}

static double reciprocal(double x)
{
    return 1 / x;
}

static double reciprocal_root(double x)
{
    return 1 / sqrt(x);
}

/* Operations whose result the document bounds: error in units of the last place of the right result.
 * Denormals are flushed on both sides. */
static const struct bounded {
    uint16_t op;
    double (*exact)(double);
    double ulps;
} bounded[] = {
    {BW_GFX11_V_EXP_F32, exp2, 1},
    {BW_GFX11_V_LOG_F32, log2, 1},
    {BW_GFX11_V_SQRT_F32, sqrt, 1},
    {BW_GFX11_V_RCP_F32, reciprocal, 1},
    {BW_GFX11_V_RCP_IFLAG_F32, reciprocal, 1},
    {BW_GFX11_V_RSQ_F32, reciprocal_root, 1},
};

static double flushed(double x)
{
    return fabs(x) < 0x1p-126 ? copysign(0, x) : x;
}

/* Distance in ULPs of the exact result; 0 where the document names the result, infinite where that is missed.
 */
static double error_ulps(const struct bounded *b, float x, float observed)
{
    double exact = b->exact(flushed((double)x));
    if (isnan(exact))
        return isnan(observed) ? 0 : INFINITY;
    if (fabs(exact) < 0x1p-126)
        return fabsf(observed) <= 0x1p-126f ? 0 : INFINITY;
    if (fabs(exact) > 0x1.fffffep127)
        return isinf(observed) && !signbit(observed) == !signbit(exact) ? 0 : INFINITY;
    double ulp = ldexp(1, ilogb(exact) - 23);
    return fabs((double)observed - exact) / ulp;
}

static void put_bounded_operands(uint8_t *array, struct bw_rng *rng, unsigned round)
{
    for (unsigned lane = 0; lane < OPS_LANES; lane++) {
        uint64_t a = round & 1 ? bits_of_f32((float)(bw_rng_unit(rng) * 300 - 150)) : ops_value(rng, "f32");
        if (round % 4 == 3)
            a = bits_of_f32((float)(1 + (bw_rng_unit(rng) - 0.5) * 0.01));
        memcpy(array + lane * OPS_LANE_BYTES, &a, 8);
    }
}

static bool run_bounded_case(struct exec_machine *machine, const struct bounded *b)
{
    uint32_t words[2];
    uint8_t *array = machine->memory + EXEC_DATA;
    struct bw_rng rng = {.state = b->op};
    double worst = 0;
    ops_put_code(machine, words, ops_encode(&bw_gfx11_ops[b->op], words));
    for (unsigned round = 0; round < 60; round++) {
        put_bounded_operands(array, &rng, round);
        if (exec_run(machine) != BW_ISA_DONE)
            return false;
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            float x, observed;
            memcpy(&x, array + lane * OPS_LANE_BYTES, 4);
            memcpy(&observed, array + lane * OPS_LANE_BYTES + 48, 4);
            double error = error_ulps(b, x, observed);
            worst = fmax(worst, error);
            if (error > b->ulps) {
                printf("\n    %s(%a): observed %a, exact %a", bw_gfx11_ops[b->op].name, (double)x,
                       (double)observed, b->exact((double)x));
                return false;
            }
        }
    }
    ops_bound(b->op, b->ulps, worst);
    return true;
}

static bool run_bounded(struct exec_machine *machine)
{
    bool ok = true;
    for (size_t i = 0; i < sizeof bounded / sizeof bounded[0]; i++)
        ok = run_bounded_case(machine, &bounded[i]) && ok;
    return ok;
}

static void test_bounded(void)
{
    BW_TRUE(each_level(run_bounded));
}

/* Sine and cosine of revolutions: absolute error, and the exact points. */
static bool run_angles(struct exec_machine *machine)
{
    static const uint16_t ops[] = {BW_GFX11_V_SIN_F32, BW_GFX11_V_COS_F32};
    uint8_t *array = machine->memory + EXEC_DATA;
    double worst = 0;
    for (unsigned k = 0; k < 2; k++) {
        uint32_t words[2];
        ops_put_code(machine, words, ops_encode(&bw_gfx11_ops[ops[k]], words));
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            uint64_t a = bits_of_f32(((float)lane - 512) * 0.03125f + (lane & 1 ? 0.001f : 0));
            memcpy(array + lane * OPS_LANE_BYTES, &a, 8);
        }
        if (exec_run(machine) != BW_ISA_DONE)
            return false;
        for (unsigned lane = 0; lane < OPS_LANES; lane++) {
            float x, observed;
            memcpy(&x, array + lane * OPS_LANE_BYTES, 4);
            memcpy(&observed, array + lane * OPS_LANE_BYTES + 48, 4);
            double turn = (double)x - rint((double)x), angle = 2 * 3.14159265358979323846 * turn;
            worst = fmax(worst, fabs((double)observed - (k ? cos(angle) : sin(angle))));
            if ((k ? fabs(turn) == 0.25 : turn == 0 || fabs(turn) == 0.5) && observed != 0)
                return false;
        }
    }
    return worst < 1e-7;
}

static void test_angles(void)
{
    BW_TRUE(each_level(run_angles));
}

OPS_TEST_MAIN("isa exec float", {"operations that rounding settles are exact", test_operations},
              {"packed halves are exact", test_packed}, {"bounded operations keep their ULPs", test_bounded},
              {"sine and cosine", test_angles})
