/* Single precision, for the MODE that LLVM gives compute kernels: round to nearest even, denormals kept
 * (what other modes change: translate_vector.c). RDNA3 Shader ISA document, sections 16.7, 16.8, 16.12; min
 * and max: the pseudo-code of V_MIN_F32. */
#include "mock/isa/exec_round.h"
#include "mock/isa/exec_vec.h"

#define QUIET_BIT 0x00400000u
#define SIGN_BIT  0x80000000u

static inline vi is_nan(vf a)
{
    return a != a;
}

static inline vi is_signalling(vf a)
{
    return is_nan(a) & (((vu)a & QUIET_BIT) == 0);
}

static inline vf quieted(vf a)
{
    return (vf)((vu)a | QUIET_BIT);
}

/* What is left once neither operand is a NaN: -0 < +0, unlike IEEE. Equal operands differ in the sign of zero
 * only. */
static inline vf min_ordered(vf a, vf b)
{
    vf equal = (vf)((vu)a | (vu)b);
    return select_f(a < b, a, select_f(a == b, equal, b));
}

static inline vf max_ordered(vf a, vf b)
{
    vf equal = (vf)((vu)a & (vu)b);
    return select_f(a > b, a, select_f(a == b, equal, b));
}

/* MODE.IEEE = 1: a signalling NaN is returned quieted; a quiet NaN loses against a number. */
static inline vf with_nans_ieee(vf a, vf b, vf ordered)
{
    vf r = select_f(is_nan(a), b, ordered);
    r = select_f(is_nan(b), a, r);
    r = select_f(is_signalling(b), quieted(b), r);
    return select_f(is_signalling(a), quieted(a), r);
}

static inline bool has_nan(vf a, vf b)
{
    return unordered_bits(a, b) != 0;
}

static inline vf min_ieee(vf a, vf b)
{
    vf ordered = min_ordered(a, b);
    return __builtin_expect(has_nan(a, b), 0) ? with_nans_ieee(a, b, ordered) : ordered;
}

static inline vf max_ieee(vf a, vf b)
{
    vf ordered = max_ordered(a, b);
    return __builtin_expect(has_nan(a, b), 0) ? with_nans_ieee(a, b, ordered) : ordered;
}

/* MODE.IEEE = 0: no quieting. */
static inline vf without_ieee(vf a, vf b, vf ordered)
{
    return select_f(is_nan(b), a, select_f(is_nan(a), b, ordered));
}

static inline vf min_dx(vf a, vf b)
{
    return without_ieee(a, b, min_ordered(a, b));
}

static inline vf max_dx(vf a, vf b)
{
    return without_ieee(a, b, max_ordered(a, b));
}

/* The pseudo-code of V_MED3_F32. */
static inline vf med3_ieee(vf a, vf b, vf c)
{
    vf top = max_ieee(max_ieee(a, b), c);
    vf r = select_f(top == a, max_ieee(b, c), select_f(top == b, max_ieee(a, c), max_ieee(a, b)));
    return select_f(is_nan(a) | is_nan(b) | is_nan(c), min_ieee(min_ieee(a, b), c), r);
}

static inline vf med3_dx(vf a, vf b, vf c)
{
    vf top = max_dx(max_dx(a, b), c);
    vf r = select_f(top == a, max_dx(b, c), select_f(top == b, max_dx(a, c), max_dx(a, b)));
    return select_f(is_nan(a) | is_nan(b) | is_nan(c), min_dx(min_dx(a, b), c), r);
}

/* Conversions to integer truncate and saturate; NaN gives 0 (RDNA3 ISA document, V_CVT_I32_F32). */
static inline vu to_signed(vf a)
{
    vu r = (vu) __builtin_convertvector(a, vi);
    r = select_u(a >= 0x1p31f, splat(0x7fffffffu), r);
    r = select_u(a < -0x1p31f, splat(SIGN_BIT), r);
    return r & ~(vu)is_nan(a);
}

static inline vu to_unsigned(vf a)
{
    vi big = a >= 0x1p31f;
    vu r = (vu) __builtin_convertvector(select_f(big, a - 0x1p31f, a), vi) ^ ((vu)big & SIGN_BIT);
    r = select_u(a >= 0x1p32f, splat(ALL_LANES), r);
    return r & (vu)(a > 0);
}

static inline vf from_unsigned(vu a)
{
    /* Two exact halves, one rounding. */
    vf high = __builtin_convertvector((vi)(a >> 16), vf) * 65536.0f;
    vf low = __builtin_convertvector((vi)(a & 0xffff), vf);
    return high + low;
}

/* Transcendental operations flush denormals on both sides whatever MODE says (same document, their notes). */
static inline vf flushed(vf a)
{
    vi tiny = ((vu)a & 0x7f800000u) == 0;
    return (vf)select_u(tiny, (vu)a & SIGN_BIT, (vu)a);
}

static inline vf square_root(vf a)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined(__SSE2__)
    return (vf)_mm_sqrt_ps((__m128)a);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = sqrtf(a[lane]);
    return r;
#endif
}

static inline vf mul_dx9(vf a, vf b)
{
    return (vf)((vu)(a * b) & (vu)((a != 0) & (b != 0)));
}

static inline vf fma_dx9(vf a, vf b, vf c)
{
    return select_f((a == 0) | (b == 0), c, fma_f(a, b, c));
}

/* V_FRACT_F32: x - floor(x), below 1 even for tiny negative x. */
static inline vf fraction(vf a)
{
    vf f = a - floored(a);
    return select_f(f >= 1.0f, splat_f(0x1.fffffep-1f), f);
}

#define FLOAT_1(_)                                                                      \
    _(V_CVT_F32_I32, __builtin_convertvector((vi)a, vf))                                \
    _(V_CVT_F32_U32, from_unsigned((vu)a))                                              \
    _(V_CVT_U32_F32, (vf)to_unsigned(a))                                                \
    _(V_CVT_I32_F32, (vf)to_signed(a))                                                  \
    _(V_CVT_NEAREST_I32_F32, (vf)to_signed(floored(a + 0.5f)))                          \
    _(V_CVT_FLOOR_I32_F32, (vf)to_signed(floored(a)))                                   \
    _(V_CVT_F32_UBYTE0, __builtin_convertvector((vi)((vu)a & 255), vf))                 \
    _(V_CVT_F32_UBYTE1, __builtin_convertvector((vi)((vu)a >> 8 & 255), vf))            \
    _(V_CVT_F32_UBYTE2, __builtin_convertvector((vi)((vu)a >> 16 & 255), vf))           \
    _(V_CVT_F32_UBYTE3, __builtin_convertvector((vi)((vu)a >> 24), vf))                 \
    _(V_CVT_OFF_F32_I4, __builtin_convertvector((vi)((vu)a << 28) >> 28, vf) * 0.0625f) \
    _(V_FRACT_F32, fraction(a))                                                         \
    _(V_TRUNC_F32, truncated(a))                                                        \
    _(V_CEIL_F32, ceiled(a))                                                            \
    _(V_RNDNE_F32, rounded_even(a))                                                     \
    _(V_FLOOR_F32, floored(a))                                                          \
    _(V_RCP_F32, flushed(1.0f / flushed(a)))                                            \
    _(V_RCP_IFLAG_F32, flushed(1.0f / flushed(a)))                                      \
    _(V_SQRT_F32, square_root(flushed(a)))

#define FLOAT_2(_)                       \
    _(V_ADD_F32, a + b)                  \
    _(V_SUB_F32, a - b)                  \
    _(V_SUBREV_F32, b - a)               \
    _(V_MUL_F32, a *b)                   \
    _(V_MUL_DX9_ZERO_F32, mul_dx9(a, b)) \
    _(V_MIN_F32, min_ieee(a, b))         \
    _(V_MAX_F32, max_ieee(a, b))

#define FLOAT_3(_)                               \
    _(V_FMAC_F32, fma_f(a, b, c))                \
    _(V_FMA_F32, fma_f(a, b, c))                 \
    _(V_FMAMK_F32, fma_f(a, b, c))               \
    _(V_FMAAK_F32, fma_f(a, b, c))               \
    _(V_FMAC_DX9_ZERO_F32, fma_dx9(a, b, c))     \
    _(V_FMA_DX9_ZERO_F32, fma_dx9(a, b, c))      \
    _(V_MIN3_F32, min_ieee(min_ieee(a, b), c))   \
    _(V_MAX3_F32, max_ieee(max_ieee(a, b), c))   \
    _(V_MED3_F32, med3_ieee(a, b, c))            \
    _(V_MAXMIN_F32, min_ieee(max_ieee(a, b), c)) \
    _(V_MINMAX_F32, max_ieee(min_ieee(a, b), c))

#define LANE_OPERANDS_1 const vf *A = BW_AT(const vf, wave, uop->a)
#define LANE_OPERANDS_2 LANE_OPERANDS_1, *B = BW_AT(const vf, wave, uop->b)
#define LANE_OPERANDS_3 LANE_OPERANDS_2, *C = BW_AT(const vf, wave, uop->c)
#define DEFINE_1(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        LANE_OPERANDS_1;                                  \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vf a = A[i];                                  \
            r[i] = (vu)(__VA_ARGS__);                     \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
#define DEFINE_2(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        LANE_OPERANDS_2;                                  \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vf a = A[i], b = B[i];                        \
            r[i] = (vu)(__VA_ARGS__);                     \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
#define DEFINE_3(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        LANE_OPERANDS_3;                                  \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vf a = A[i], b = B[i], c = C[i];              \
            r[i] = (vu)(__VA_ARGS__);                     \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
FLOAT_1(DEFINE_1)
FLOAT_2(DEFINE_2)
FLOAT_3(DEFINE_3)
DEFINE_2(V_MIN_F32_DX, min_dx(a, b))
DEFINE_2(V_MAX_F32_DX, max_dx(a, b))
DEFINE_3(V_MIN3_F32_DX, min_dx(min_dx(a, b), c))
DEFINE_3(V_MAX3_F32_DX, max_dx(max_dx(a, b), c))
DEFINE_3(V_MED3_F32_DX, med3_dx(a, b, c))
DEFINE_3(V_MAXMIN_F32_DX, min_dx(max_dx(a, b), c))
DEFINE_3(V_MINMAX_F32_DX, max_dx(min_dx(a, b), c))

#define R(op, ...) {BW_GFX11_##op, x_##op},
#define H(op)      {BW_UOP_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    FLOAT_1(R) FLOAT_2(R) FLOAT_3(R)
    H(V_MIN_F32_DX) H(V_MAX_F32_DX) H(V_MIN3_F32_DX) H(V_MAX3_F32_DX) H(V_MED3_F32_DX) H(V_MAXMIN_F32_DX)
    H(V_MINMAX_F32_DX)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_float) = {rows, sizeof rows / sizeof rows[0]};
