/* Transcendental and division-helper operations in single precision. Documented precision: RDNA3 Shader ISA
 * document, notes of V_EXP_F32 and its neighbours (1 ULP, denormals flushed); V_SIN_F32 and V_COS_F32 take
 * revolutions. */
#include "mock/isa/division.h"
#include "mock/isa/exec_round.h"
#include "mock/isa/exec_vec.h"

typedef float vf_half __attribute__((vector_size(BW_VECTOR_BYTES / 2)));

#define SIGN_BIT 0x80000000u

static inline vf flushed(vf a)
{
    vi tiny = ((vu)a & 0x7f800000u) == 0;
    return (vf)select_u(tiny, (vu)a & SIGN_BIT, (vu)a);
}

/* 2^a. The reduced argument is exact; the polynomial is the exponential series to the 7th power of f ln 2,
 * |f| <= 1/2, whose remainder is 5e-9; with the roundings of the last steps the result stays within 1 ULP. */
static inline vf exp2_f32(vf a)
{
    static const float c[] = {0x1.62e430p-1f,  0x1.ebfbe0p-3f,  0x1.c6b08ep-5f, 0x1.3b2ab6p-7f,
                              0x1.5d87fep-10f, 0x1.430912p-13f, 0x1.ffcbfcp-17f};
    vf n = rounded_even(a), f = a - n;
    vf p = splat_f(c[6]);
    UNROLL for (int k = 5; k >= 0; k--) p = fma_f(p, f, splat_f(c[k]));
    p = fma_f(p, f, splat_f(1.0f));
    vi in_range = (a >= -126.0f) & (a < 128.0f);
    vi power = __builtin_convertvector(select_f(in_range, n, splat_f(0)), vi);
    vf r = (vf)((vu)p + ((vu)power << 23));
    r = select_f(a < -126.0f, splat_f(0), r);
    r = select_f(a >= 128.0f, splat_f(INFINITY), r);
    return select_f(a != a, (vf)((vu)a | 0x400000u), r);
}

/* The two halves of a chunk as doubles, and back with one rounding. */
static inline void widen(vf a, vd *out)
{
    vf_half halves[2];
    memcpy(halves, &a, sizeof a);
    out[0] = __builtin_convertvector(halves[0], vd);
    out[1] = __builtin_convertvector(halves[1], vd);
}

static inline vf narrow(const vd *a)
{
    vf_half halves[2] = {__builtin_convertvector(a[0], vf_half), __builtin_convertvector(a[1], vf_half)};
    vf r;
    memcpy(&r, halves, sizeof r);
    return r;
}

static inline vd square_root(vd a)
{
#if BW_VECTOR_BYTES == 64
    return (vd)_mm512_sqrt_pd((__m512d)a);
#elif BW_VECTOR_BYTES == 32
    return (vd)_mm256_sqrt_pd((__m256d)a);
#else
    vd r;
    for (int lane = 0; lane < BW_CHUNK_LANES / 2; lane++)
        r[lane] = sqrt(a[lane]);
    return r;
#endif
}

/* In double precision: two roundings to single would exceed the ULP. */
static inline vf reciprocal_root(vf a)
{
    vd wide[2];
    widen(a, wide);
    for (int k = 0; k < 2; k++)
        wide[k] = 1.0 / square_root(wide[k]);
    return narrow(wide);
}

/* log2 of m in [sqrt(1/2), sqrt(2)): 2/ln2 * artanh((m-1)/(m+1)), |t| < 0.172; what the series leaves out is
 * below 1e-13. */
static inline vd log2_mantissa(vd m)
{
    static const double c[] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0, 1.0 / 9.0,
                               1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0};
    vd t = (m - 1.0) / (m + 1.0), t2 = t * t;
    vd p = (vd){0} + c[8];
    UNROLL for (int k = 7; k >= 0; k--) p = p * t2 + c[k];
    return p * t * 2.88539008177792681472;
}

static inline vf log2_f32(vf a)
{
    vu bits = (vu)a;
    /* Exponent so that the mantissa lies in [sqrt(1/2), sqrt(2)): 0x3f3504f3 is sqrt(1/2). */
    vi exponent = (vi)(bits - 0x3f3504f3u) >> 23;
    vf mantissa = (vf)(bits - ((vu)exponent << 23));
    vd m[2], e[2];
    widen(mantissa, m);
    widen(__builtin_convertvector(exponent, vf), e);
    vd sum[2] = {e[0] + log2_mantissa(m[0]), e[1] + log2_mantissa(m[1])};
    vf r = narrow(sum);
    vi zero = (bits & 0x7fffffffu) == 0, negative = ((vi)bits < 0) & ~zero;
    r = select_f(zero, splat_f(-INFINITY), r);
    r = select_f(negative, (vf)splat(0xffc00000u), r);
    r = select_f((vi)(bits == 0x7f800000u), a, r);
    return select_f(a != a, (vf)(bits | 0x400000u), r);
}

/* sin(2 pi r) for |r| <= 1/4: the series to the 17th power, whose remainder is below 1e-13. */
static inline vd sin_quarter(vd r)
{
    static const double c[] = {1.0,
                               -0x1.5555555555555p-3,
                               0x1.1111111111111p-7,
                               -0x1.a01a01a01a01ap-13,
                               0x1.71de3a556c734p-19,
                               -0x1.ae64567f544e4p-26,
                               0x1.6124613a86d09p-33,
                               -0x1.ae7f3e733b81fp-41,
                               0x1.952c77030ad4ap-49};
    vd y = r * 6.28318530717958647693, y2 = y * y;
    vd p = (vd){0} + c[8];
    UNROLL for (int k = 7; k >= 0; k--) p = p * y2 + c[k];
    return p * y;
}

static inline vd magnitude(vd a)
{
    return (vd)((vq)a & 0x7fffffffffffffffull);
}

/* Revolutions: reduced exactly in single precision to |r| <= 1/2. */
static inline vf sin_f32(vf a)
{
    vd r[2];
    widen(a - rounded_even(a), r);
    for (int k = 0; k < 2; k++) {
        vq sign = (vq)r[k] & 0x8000000000000000ull;
        vd m = magnitude(r[k]);
        vq beyond = (vq)(m > 0.25);
        m = (vd)(((vq)(0.5 - m) & beyond) | ((vq)m & ~beyond));
        r[k] = sin_quarter((vd)((vq)m | sign));
    }
    vf s = narrow(r);
    return select_f(((vu)a & 0x7fffffffu) == 0, a, s); /* keeps the sign of zero */
}

static inline vf cos_f32(vf a)
{
    vd r[2];
    widen(a - rounded_even(a), r);
    for (int k = 0; k < 2; k++)
        r[k] = sin_quarter(0.25 - magnitude(r[k]));
    return narrow(r);
}

#define TRANSCENDENTAL(_)                              \
    _(V_EXP_F32, exp2_f32(flushed(a)))                 \
    _(V_LOG_F32, log2_f32(flushed(a)))                 \
    _(V_RSQ_F32, flushed(reciprocal_root(flushed(a)))) \
    _(V_SIN_F32, sin_f32(a))                           \
    _(V_COS_F32, cos_f32(a))

#define DEFINE_1(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        const vf *A = BW_AT(const vf, wave, uop->a);      \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vf a = A[i];                                  \
            r[i] = (vu)(__VA_ARGS__);                     \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
TRANSCENDENTAL(DEFINE_1)

#define EACH_LANE for (int lane = 0; lane < BW_LANES; lane++)

static inline uint32_t bits_f32(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, 4);
    return bits;
}

static inline float from_bits(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, 4);
    return a;
}

/* 2^n for -1022 <= n <= 1023. */
static inline double power_of_two(int n)
{
    uint64_t bits = (uint64_t)(1023 + n) << 52;
    double r;
    memcpy(&r, &bits, 8);
    return r;
}

/* a * 2^n with one rounding: exact in double for the n that matter. */
static inline float ldexp_f32(float a, int32_t n)
{
    n = n > 300 ? 300 : n < -300 ? -300 : n;
    return (float)((double)a * power_of_two(n));
}

static inline int exponent_field(uint32_t bits)
{
    return (int)(bits >> 23 & 255);
}

/* Unbiased exponent of a number that is not zero, denormals included. */
static inline int exponent_of(uint32_t bits)
{
    uint32_t fraction = bits & 0x7fffff;
    int field = exponent_field(bits);
    return field ? field - 127 : -126 - (__builtin_clz(fraction | 1) - 8);
}

static inline float frexp_mantissa(float a)
{
    uint32_t bits = bits_f32(a);
    if ((bits & 0x7fffffff) == 0 || exponent_field(bits) == 255)
        return a;
    return ldexp_f32(a, -(exponent_of(bits) + 1));
}

static inline int32_t frexp_exponent(float a)
{
    uint32_t bits = bits_f32(a);
    if ((bits & 0x7fffffff) == 0 || exponent_field(bits) == 255)
        return 0;
    return exponent_of(bits) + 1;
}

/* V_DIV_SCALE_F32: s0 is the denominator s1 or the numerator s2. */
static inline float div_scale(float s0, float s1, float s2, bool *vcc)
{
    uint32_t bits = bits_f32(s0);
    int n = bw_division_scale(&bw_division_single, bits, bits_f32(s1), bits_f32(s2), vcc);
    if (s1 == 0 || s2 == 0)
        return from_bits(0xffc00000);
    if (s0 != s0)
        return from_bits(bits | 0x400000);
    return ldexp_f32(s0, n);
}

static inline bool is_finite(float a)
{
    return exponent_field(bits_f32(a)) != 255;
}

static inline float div_fmas(float a, float b, float c, bool scale, unsigned rounding)
{
    if (!scale || !is_finite(a) || !is_finite(b) || !is_finite(c))
        return fmaf(a, b, c);
    return from_bits(
        (uint32_t)bw_division_fma(&bw_division_single, bits_f32(a), bits_f32(b), bits_f32(c), rounding));
}

/* q = s0 is the quotient s2 / s1; the special cases are settled here. */
static inline float div_fixup(float s0, float s1, float s2, unsigned rounding)
{
    return from_bits(
        (uint32_t)bw_division_fixup(&bw_division_single, bits_f32(s0), bits_f32(s1), bits_f32(s2), rounding));
}

#define FLOAT_LANES(name, offset) const float *name = BW_AT(const float, wave, offset)

#define DEFINE_LANES(op, type, ...)                                                 \
    HANDLER(x_##op)                                                                 \
    {                                                                               \
        FLOAT_LANES(A, uop->a);                                                     \
        FLOAT_LANES(B, uop->b);                                                     \
        FLOAT_LANES(C, uop->c);                                                     \
        type r[BW_LANES] __attribute__((aligned(64)));                              \
        (void)B;                                                                    \
        (void)C;                                                                    \
        EACH_LANE r[lane] = (__VA_ARGS__);                                          \
        write_lanes(wave, uop->d, exec_of(wave, uop), (const vu *)(const void *)r); \
        NEXT;                                                                       \
    }
DEFINE_LANES(V_LDEXP_F32, float, ldexp_f32(A[lane], (int32_t)bits_f32(B[lane])))
DEFINE_LANES(V_FREXP_MANT_F32, float, frexp_mantissa(A[lane]))
DEFINE_LANES(V_FREXP_EXP_I32_F32, int32_t, frexp_exponent(A[lane]))
DEFINE_LANES(V_DIV_FIXUP_F32, float, div_fixup(A[lane], B[lane], C[lane], wave->mode & 3))

/* The scale bit of each lane comes from VCC, at uop->e. */
HANDLER(x_V_DIV_FMAS_F32)
{
    FLOAT_LANES(A, uop->a);
    FLOAT_LANES(B, uop->b);
    FLOAT_LANES(C, uop->c);
    uint32_t vcc = scalar(wave, uop->e);
    if (__builtin_expect(vcc == 0, 1)) {
        vu plain[BW_CHUNKS];
        EACH_CHUNK plain[i] = (vu)fma_f(((const vf *)(const void *)A)[i], ((const vf *)(const void *)B)[i],
                                        ((const vf *)(const void *)C)[i]);
        write_lanes(wave, uop->d, exec_of(wave, uop), plain);
        NEXT;
    }
    float r[BW_LANES] __attribute__((aligned(64)));
    EACH_LANE r[lane] = div_fmas(A[lane], B[lane], C[lane], vcc >> lane & 1, wave->mode & 3);
    write_lanes(wave, uop->d, exec_of(wave, uop), (const vu *)(const void *)r);
    NEXT;
}

HANDLER(x_V_DIV_SCALE_F32)
{
    FLOAT_LANES(A, uop->a);
    FLOAT_LANES(B, uop->b);
    FLOAT_LANES(C, uop->c);
    uint32_t exec = exec_of(wave, uop), mask = 0;
    float r[BW_LANES] __attribute__((aligned(64)));
    EACH_LANE
    {
        bool vcc;
        r[lane] = div_scale(A[lane], B[lane], C[lane], &vcc);
        mask |= (uint32_t)vcc << lane;
    }
    write_lanes(wave, uop->d, exec, (const vu *)(const void *)r);
    write_scalar(wave, uop->e, mask & exec);
    NEXT;
}

#define R(op, ...) {BW_GFX11_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    TRANSCENDENTAL(R) R(V_LDEXP_F32) R(V_FREXP_MANT_F32) R(V_FREXP_EXP_I32_F32)
    R(V_DIV_FIXUP_F32) R(V_DIV_FMAS_F32) R(V_DIV_SCALE_F32)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_trans) = {rows, sizeof rows / sizeof rows[0]};
