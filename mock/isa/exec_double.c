/* Double precision: RDNA3 Shader ISA document, sections 16.7, 16.9, 16.12. Lanes are pairs of registers;
 * plain loops over the lanes, which the compiler makes into vectors. */
#include "mock/isa/division.h"
#include "mock/isa/exec_vec.h"

#define EACH_LANE for (int lane = 0; lane < BW_LANES; lane++)
#define ALIGNED   __attribute__((aligned(64)))

static inline double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

static inline uint64_t as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

static inline void read_double(const struct bw_wave *wave, int32_t offset, double *value)
{
    const uint32_t *low = BW_AT(const uint32_t, wave, offset), *high = low + BW_LANES;
    EACH_LANE value[lane] = as_double((uint64_t)high[lane] << 32 | low[lane]);
}

static inline void write_double(struct bw_wave *wave, int32_t offset, uint32_t exec, const double *value)
{
    uint32_t low[BW_LANES] ALIGNED, high[BW_LANES] ALIGNED;
    EACH_LANE low[lane] = (uint32_t)as_bits(value[lane]);
    EACH_LANE high[lane] = (uint32_t)(as_bits(value[lane]) >> 32);
    write_lanes(wave, offset, exec, (const vu *)(const void *)low);
    write_lanes(wave, offset + BW_VREG_BYTES, exec, (const vu *)(const void *)high);
}

static inline bool is_signalling(double a)
{
    return a != a && !(as_bits(a) >> 51 & 1);
}

static inline double quieted(double a)
{
    return as_double(as_bits(a) | 1ull << 51);
}

/* As V_MIN_F32, MODE.IEEE = 1: a signalling NaN is returned quieted, a quiet one loses, -0 < +0. */
static inline double with_nans(double a, double b, double ordered)
{
    if (is_signalling(a))
        return quieted(a);
    if (is_signalling(b))
        return quieted(b);
    return b != b ? a : a != a ? b : ordered;
}

static inline double min_ieee(double a, double b)
{
    double ordered = a < b ? a : a == b ? as_double(as_bits(a) | as_bits(b)) : b;
    return with_nans(a, b, ordered);
}

static inline double max_ieee(double a, double b)
{
    double ordered = a > b ? a : a == b ? as_double(as_bits(a) & as_bits(b)) : b;
    return with_nans(a, b, ordered);
}

/* MODE.IEEE = 0: no quieting. */
static inline double min_dx(double a, double b)
{
    double ordered = a < b ? a : a == b ? as_double(as_bits(a) | as_bits(b)) : b;
    return b != b ? a : a != a ? b : ordered;
}

static inline double max_dx(double a, double b)
{
    double ordered = a > b ? a : a == b ? as_double(as_bits(a) & as_bits(b)) : b;
    return b != b ? a : a != a ? b : ordered;
}

static inline double fraction(double a)
{
    double f = a - copysign(floor(a), a); /* what the compiler makes of floor may lose a sign */
    return f >= 1 ? 0x1.fffffffffffffp-1 : f;
}

static inline double flushed(double a)
{
    return as_bits(a) & 0x7ff0000000000000ull ? a : as_double(as_bits(a) & 1ull << 63);
}

static inline int exponent_field(double a)
{
    return (int)(as_bits(a) >> 52 & 2047);
}

/* Unbiased exponent of a finite number that is not zero. */
static inline int exponent_of(double a)
{
    int field = exponent_field(a);
    uint64_t fraction_bits = as_bits(a) & 0xfffffffffffffull;
    return field ? field - 1023 : -1022 - (__builtin_clzll(fraction_bits | 1) - 11);
}

static inline bool is_special(double a)
{
    return a == 0 || exponent_field(a) == 2047;
}

static inline int32_t frexp_exponent(double a)
{
    return is_special(a) ? 0 : exponent_of(a) + 1;
}

static inline double frexp_mantissa(double a)
{
    return is_special(a) ? a : scalbn(a, -(exponent_of(a) + 1));
}

static inline uint32_t to_signed(double a)
{
    if (a != a)
        return 0;
    return a >= 0x1p31 ? 0x7fffffffu : a <= -0x1p31 ? 0x80000000u : (uint32_t)(int32_t)a;
}

static inline uint32_t to_unsigned(double a)
{
    return !(a > 0) ? 0 : a >= 0x1p32 ? ALL_LANES : (uint32_t)a;
}

/* V_DIV_SCALE_F64: s0 is the denominator s1 or the numerator s2. */
static inline double div_scale(double s0, double s1, double s2, bool *vcc)
{
    int n = bw_division_scale(&bw_division_double, as_bits(s0), as_bits(s1), as_bits(s2), vcc);
    if (s1 == 0 || s2 == 0)
        return as_double(0xfff8000000000000ull);
    return s0 != s0 ? quieted(s0) : scalbn(s0, n);
}

static inline double div_fmas(double a, double b, double c, bool scale, unsigned rounding)
{
    if (!scale || !isfinite(a) || !isfinite(b) || !isfinite(c))
        return fma(a, b, c);
    return as_double(bw_division_fma(&bw_division_double, as_bits(a), as_bits(b), as_bits(c), rounding));
}

static inline double div_fixup(double s0, double s1, double s2, unsigned rounding)
{
    return as_double(bw_division_fixup(&bw_division_double, as_bits(s0), as_bits(s1), as_bits(s2), rounding));
}

#define CLASS_BIT(n) (mask >> (n)&1)
static inline bool class_f64(double a, uint32_t mask)
{
    bool negative = as_bits(a) >> 63;
    if (a != a)
        return is_signalling(a) ? CLASS_BIT(0) : CLASS_BIT(1);
    if (exponent_field(a) == 2047)
        return CLASS_BIT(negative ? 2 : 9);
    if (exponent_field(a))
        return CLASS_BIT(negative ? 3 : 8);
    if (a != 0)
        return CLASS_BIT(negative ? 4 : 7);
    return CLASS_BIT(negative ? 5 : 6);
}

#define DOUBLE_1(_)                        \
    _(V_TRUNC_F64, trunc(a))               \
    _(V_CEIL_F64, ceil(a))                 \
    _(V_RNDNE_F64, __builtin_roundeven(a)) \
    _(V_FLOOR_F64, floor(a))               \
    _(V_FRACT_F64, fraction(a))            \
    _(V_RCP_F64, 1.0 / a)                  \
    _(V_RSQ_F64, 1.0 / sqrt(a))            \
    _(V_SQRT_F64, sqrt(a))                 \
    _(V_FREXP_MANT_F64, frexp_mantissa(a))

#define DOUBLE_2(_)              \
    _(V_ADD_F64, a + b)          \
    _(V_MUL_F64, a *b)           \
    _(V_MIN_F64, min_ieee(a, b)) \
    _(V_MAX_F64, max_ieee(a, b))

#define DOUBLE_3(_)            \
    _(V_FMA_F64, fma(a, b, c)) \
    _(V_DIV_FIXUP_F64, div_fixup(a, b, c, wave->mode >> 2 & 3))

#define DEFINE_1(op, ...)                                  \
    HANDLER(x_##op)                                        \
    {                                                      \
        double A[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED;   \
        read_double(wave, uop->a, A);                      \
        EACH_LANE                                          \
        {                                                  \
            double a = A[lane];                            \
            r[lane] = (__VA_ARGS__);                       \
        }                                                  \
        write_double(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                              \
    }
#define DEFINE_2(op, ...)                                                     \
    HANDLER(x_##op)                                                           \
    {                                                                         \
        double A[BW_LANES] ALIGNED, B[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED; \
        read_double(wave, uop->a, A);                                         \
        read_double(wave, uop->b, B);                                         \
        EACH_LANE                                                             \
        {                                                                     \
            double a = A[lane], b = B[lane];                                  \
            r[lane] = (__VA_ARGS__);                                          \
        }                                                                     \
        write_double(wave, uop->d, exec_of(wave, uop), r);                    \
        NEXT;                                                                 \
    }
#define DEFINE_3(op, ...)                                                                          \
    HANDLER(x_##op)                                                                                \
    {                                                                                              \
        double A[BW_LANES] ALIGNED, B[BW_LANES] ALIGNED, C[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED; \
        read_double(wave, uop->a, A);                                                              \
        read_double(wave, uop->b, B);                                                              \
        read_double(wave, uop->c, C);                                                              \
        EACH_LANE                                                                                  \
        {                                                                                          \
            double a = A[lane], b = B[lane], c = C[lane];                                          \
            r[lane] = (__VA_ARGS__);                                                               \
        }                                                                                          \
        write_double(wave, uop->d, exec_of(wave, uop), r);                                         \
        NEXT;                                                                                      \
    }
DOUBLE_1(DEFINE_1)
DOUBLE_2(DEFINE_2)
DOUBLE_3(DEFINE_3)
DEFINE_2(V_MIN_F64_DX, min_dx(a, b))
DEFINE_2(V_MAX_F64_DX, max_dx(a, b))

/* From doubles to 32 bits. */
#define TO_WORD(_)                                   \
    _(V_CVT_I32_F64, int32_t, (int32_t)to_signed(a)) \
    _(V_CVT_U32_F64, uint32_t, to_unsigned(a))       \
    _(V_CVT_F32_F64, float, (float)a)                \
    _(V_FREXP_EXP_I32_F64, int32_t, frexp_exponent(a))
#define DEFINE_TO_WORD(op, type, ...)                                               \
    HANDLER(x_##op)                                                                 \
    {                                                                               \
        double A[BW_LANES] ALIGNED;                                                 \
        type r[BW_LANES] ALIGNED;                                                   \
        read_double(wave, uop->a, A);                                               \
        EACH_LANE                                                                   \
        {                                                                           \
            double a = A[lane];                                                     \
            r[lane] = (__VA_ARGS__);                                                \
        }                                                                           \
        write_lanes(wave, uop->d, exec_of(wave, uop), (const vu *)(const void *)r); \
        NEXT;                                                                       \
    }
TO_WORD(DEFINE_TO_WORD)

/* And back. */
#define FROM_WORD(_) _(V_CVT_F64_I32, int32_t) _(V_CVT_F64_U32, uint32_t) _(V_CVT_F64_F32, float)
#define DEFINE_FROM_WORD(op, type)                         \
    HANDLER(x_##op)                                        \
    {                                                      \
        const type *A = BW_AT(const type, wave, uop->a);   \
        double r[BW_LANES] ALIGNED;                        \
        EACH_LANE r[lane] = A[lane];                       \
        write_double(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                              \
    }
FROM_WORD(DEFINE_FROM_WORD)

HANDLER(x_V_LDEXP_F64)
{
    double A[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED;
    const int32_t *N = BW_AT(const int32_t, wave, uop->b);
    read_double(wave, uop->a, A);
    EACH_LANE r[lane] = scalbn(A[lane], N[lane]);
    write_double(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

HANDLER(x_V_DIV_SCALE_F64)
{
    double A[BW_LANES] ALIGNED, B[BW_LANES] ALIGNED, C[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED;
    uint32_t exec = exec_of(wave, uop), mask = 0;
    read_double(wave, uop->a, A);
    read_double(wave, uop->b, B);
    read_double(wave, uop->c, C);
    EACH_LANE
    {
        bool vcc;
        r[lane] = div_scale(A[lane], B[lane], C[lane], &vcc);
        mask |= (uint32_t)vcc << lane;
    }
    write_double(wave, uop->d, exec, r);
    write_scalar(wave, uop->e, mask & exec);
    NEXT;
}

HANDLER(x_V_DIV_FMAS_F64)
{
    double A[BW_LANES] ALIGNED, B[BW_LANES] ALIGNED, C[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED;
    uint32_t vcc = scalar(wave, uop->e);
    read_double(wave, uop->a, A);
    read_double(wave, uop->b, B);
    read_double(wave, uop->c, C);
    EACH_LANE r[lane] = div_fmas(A[lane], B[lane], C[lane], vcc >> lane & 1, wave->mode >> 2 & 3);
    write_double(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* Output modifiers: as FINISH_F32 in exec_half.c. */
HANDLER(x_FINISH_F64)
{
    double A[BW_LANES] ALIGNED, r[BW_LANES] ALIGNED;
    uint32_t how = (uint32_t)uop->imm;
    read_double(wave, uop->a, A);
    EACH_LANE
    {
        double a = A[lane];
        double bounded = a > 0 ? (a > 1 ? 1 : a) : 0;
        double v = how & 4 ? (a != a && !(how & 8) ? a : bounded) : a;
        r[lane] = how & 16 ? flushed(v) : v;
    }
    write_double(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

#define CONDITIONS(_)                                                                                       \
    _(LT, a < b)                                                                                            \
    _(EQ, a == b)                                                                                           \
    _(LE, a <= b)                                                                                           \
    _(GT, a > b)                                                                                            \
    _(LG, a<b || a> b)                                                                                      \
    _(GE, a >= b) _(O, a == a && b == b) _(U, a != a || b != b) _(NGE, !(a >= b)) _(NLG, !(a < b || a > b)) \
        _(NGT, !(a > b)) _(NLE, !(a <= b)) _(NEQ, a != b) _(NLT, !(a < b))
#define DEFINE_COMPARE(condition, ...)                        \
    HANDLER(x_V_CMP_##condition##_F64)                        \
    {                                                         \
        double A[BW_LANES] ALIGNED, B[BW_LANES] ALIGNED;      \
        uint32_t mask = 0;                                    \
        read_double(wave, uop->a, A);                         \
        read_double(wave, uop->b, B);                         \
        EACH_LANE                                             \
        {                                                     \
            double a = A[lane], b = B[lane];                  \
            mask |= (uint32_t)(__VA_ARGS__) << lane;          \
        }                                                     \
        write_scalar(wave, uop->d, mask &exec_of(wave, uop)); \
        NEXT;                                                 \
    }
CONDITIONS(DEFINE_COMPARE)

HANDLER(x_V_CMP_CLASS_F64)
{
    double A[BW_LANES] ALIGNED;
    const uint32_t *B = BW_AT(const uint32_t, wave, uop->b);
    uint32_t mask = 0;
    read_double(wave, uop->a, A);
    EACH_LANE mask |= (uint32_t)class_f64(A[lane], B[lane]) << lane;
    write_scalar(wave, uop->d, mask & exec_of(wave, uop));
    NEXT;
}

#define R(op, ...)        {BW_GFX11_##op, x_##op},
#define C(condition, ...) R(V_CMP_##condition##_F64)
/* clang-format off */
static const struct bw_uop_row rows[] = {
    DOUBLE_1(R) DOUBLE_2(R) DOUBLE_3(R) TO_WORD(R) FROM_WORD(R) CONDITIONS(C) R(V_CMP_CLASS_F64)
    R(V_LDEXP_F64) R(V_DIV_SCALE_F64) R(V_DIV_FMAS_F64) {BW_UOP_FINISH_F64, x_FINISH_F64},
    {BW_UOP_V_MIN_F64_DX, x_V_MIN_F64_DX}, {BW_UOP_V_MAX_F64_DX, x_V_MAX_F64_DX},
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_double) = {rows, sizeof rows / sizeof rows[0]};
