/* 16-bit operations, float and integer, plain and packed. The product and sum of two halves are exact or
 * safely rounded in single precision (24 >= 2 * 11 + 2 bits), so rounding that result again is right. A
 * 16-bit result leaves the other half of its register alone. RDNA3 Shader ISA document,
 * sections 16.7, 16.8, 16.10, 16.12; "16-bit operands" in section 7.2. */
#include "mock/isa/exec_half.h"
#include "mock/isa/exec_round.h"

#define SIGNED(a) ((vu)((vi)((a) << 16) >> 16))
#define LOW(a)    ((a)&0xffff)

static inline vu fraction(vu a)
{
    vf x = half_to_float(a);
    vu r = float_to_half(x - floored(x));
    return select_u((vi)(r == 0x3c00), splat(0x3bff), r);
}

static inline vf square_root(vf a)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_sqrt_ps((__m512)a);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_sqrt_ps((__m256)a);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = sqrtf(a[lane]);
    return r;
#endif
}

static inline vu min_s(vu a, vu b)
{
    return select_u((vi)a < (vi)b, a, b);
}

static inline vu max_s(vu a, vu b)
{
    return select_u((vi)a >= (vi)b, a, b);
}

static inline vu clamp_s(vu a, int low, int high)
{
    return min_s(max_s(a, splat((uint32_t)low)), splat((uint32_t)high));
}

static inline vu to_signed16(vf a)
{
    vf bounded = select_f(a >= 32767.0f, splat_f(32767.0f), select_f(a <= -32768.0f, splat_f(-32768.0f), a));
    return (vu) __builtin_convertvector(select_f(a != a, splat_f(0), bounded), vi);
}

static inline vu to_unsigned16(vf a)
{
    vf bounded = select_f(a >= 65535.0f, splat_f(65535.0f), select_f(a > 0, a, splat_f(0)));
    return (vu) __builtin_convertvector(bounded, vi);
}

/* a * scale rounded to the nearest even integer, once: a product that single precision rounded to half way
 * between two integers is told from one that lies there. */
static inline vf scaled_to_integer(vf a, float scale)
{
    vf product = a * scale, error = fma_f(a, splat_f(scale), -product), r = rounded_even(product);
    vf rest = product - r;
    r += select_f((rest == 0.5f) & (error > 0), splat_f(1), splat_f(0));
    return r - select_f((rest == -0.5f) & (error < 0), splat_f(1), splat_f(0));
}

/* Fixed point of [-1, 1] and [0, 1]; rounded to nearest even. */
static inline vu to_snorm16(vf a)
{
    return to_signed16(
        scaled_to_integer(select_f(a > 1, splat_f(1), select_f(a < -1, splat_f(-1), a)), 32767));
}

static inline vu to_unorm16(vf a)
{
    return to_unsigned16(
        scaled_to_integer(select_f(a > 1, splat_f(1), select_f(a > 0, a, splat_f(0))), 65535));
}

/* a * 2^n, n a 16-bit integer: a product with one power of two is exact in single precision. */
static inline vu ldexp_half(vu a, vu n)
{
    vu power = clamp_s(SIGNED(n), -60, 60);
    return float_to_half(half_to_float(a) * (vf)((power + 127) << 23));
}

/* Exponent so that the mantissa lies in [0.5, 1); 0 for zero, infinity and NaN. */
static inline vu frexp_exponent(vu a)
{
    vu bits = (vu)half_to_float(a) & 0x7fffffffu; /* normal in single precision */
    return ((bits >> 23) - 126) & (vu)(bits != 0) & (vu)((a & 0x7c00) != 0x7c00);
}

static inline vu frexp_mantissa(vu a)
{
    vu bits = (vu)half_to_float(a);
    vu scaled = (bits & 0x807fffffu) | 0x3f000000u;
    vu r = float_to_half((vf)scaled);
    r = select_u((vi)((a & 0x7c00) == 0x7c00), a, r);
    return select_u((vi)((a & 0x7fff) == 0), a, r);
}

static inline vu div_fixup_half(vu q, vu b, vu a)
{
    vu sign = (a ^ b) & 0x8000, mb = b & 0x7fff, ma = a & 0x7fff;
    vu r = sign | (q & 0x7fff);
    r = select_u((vi)((vu)(mb == 0x7c00) | (vu)(ma == 0)), sign, r);
    r = select_u((vi)((vu)(mb == 0) | (vu)(ma == 0x7c00)), sign | 0x7c00, r);
    r = select_u((vi)(((vu)(mb == 0) & (vu)(ma == 0)) | ((vu)(mb == 0x7c00) & (vu)(ma == 0x7c00))),
                 splat(0xfe00), r);
    r = select_u(half_is_nan(b), b | 0x200, r);
    return select_u(half_is_nan(a), a | 0x200, r);
}

static inline vu med3_half(vu a, vu b, vu c)
{
    vi nan = half_is_nan(a) | half_is_nan(b) | half_is_nan(c);
    vf x = half_to_float(a), y = half_to_float(b), top = half_to_float(max_half(max_half(a, b), c));
    vu r = select_u(top == x, max_half(b, c), select_u(top == y, max_half(a, c), max_half(a, b)));
    return select_u(nan, min_half(min_half(a, b), c), r);
}

#define MED3(min, max, a, b, c) max(min(a, b), min(max(a, b), c))

/* Results of 16 bits. */
#define HALF_1(_)                                                                            \
    _(V_CVT_F16_F32, float_to_half((vf)a))                                                   \
    _(V_CVT_F16_U16, float_to_half(__builtin_convertvector((vi)LOW(a), vf)))                 \
    _(V_CVT_F16_I16, float_to_half(__builtin_convertvector((vi)SIGNED(a), vf)))              \
    _(V_CVT_U16_F16, to_unsigned16(half_to_float(a)))                                        \
    _(V_CVT_I16_F16, to_signed16(half_to_float(a)))                                          \
    _(V_RCP_F16, float_to_half(1.0f / half_to_float(a)))                                     \
    _(V_SQRT_F16, float_to_half(square_root(half_to_float(a))))                              \
    _(V_RSQ_F16, float_to_half(1.0f / square_root(half_to_float(a))))                        \
    _(V_FREXP_MANT_F16, frexp_mantissa(a))                                                   \
    _(V_FREXP_EXP_I16_F16, frexp_exponent(a))                                                \
    _(V_FLOOR_F16, float_to_half(floored(half_to_float(a))))                                 \
    _(V_CEIL_F16, float_to_half(ceiled(half_to_float(a))))                                   \
    _(V_TRUNC_F16, float_to_half(truncated(half_to_float(a))))                               \
    _(V_RNDNE_F16, float_to_half(rounded_even(half_to_float(a))))                            \
    _(V_FRACT_F16, fraction(a))                                                              \
    _(V_SAT_PK_U8_I16, clamp_s(SIGNED(a), 0, 255) | clamp_s((vu)((vi)a >> 16), 0, 255) << 8) \
    _(V_CVT_NORM_I16_F16, to_snorm16(half_to_float(a)))                                      \
    _(V_CVT_NORM_U16_F16, to_unorm16(half_to_float(a)))                                      \
    _(V_NOT_B16, ~a)

#define HALF_2(_)                                                       \
    _(V_ADD_F16, float_to_half(half_to_float(a) + half_to_float(b)))    \
    _(V_SUB_F16, float_to_half(half_to_float(a) - half_to_float(b)))    \
    _(V_SUBREV_F16, float_to_half(half_to_float(b) - half_to_float(a))) \
    _(V_MUL_F16, float_to_half(half_to_float(a) * half_to_float(b)))    \
    _(V_MAX_F16, max_half(a, b))                                        \
    _(V_MIN_F16, min_half(a, b))                                        \
    _(V_LDEXP_F16, ldexp_half(a, b))                                    \
    _(V_ADD_NC_U16, a + b)                                              \
    _(V_SUB_NC_U16, a - b)                                              \
    _(V_ADD_NC_I16, a + b)                                              \
    _(V_SUB_NC_I16, a - b)                                              \
    _(V_MUL_LO_U16, a *b)                                               \
    _(V_MAX_U16, max_s(LOW(a), LOW(b)))                                 \
    _(V_MAX_I16, max_s(SIGNED(a), SIGNED(b)))                           \
    _(V_MIN_U16, min_s(LOW(a), LOW(b)))                                 \
    _(V_MIN_I16, min_s(SIGNED(a), SIGNED(b)))                           \
    _(V_LSHLREV_B16, b << (a & 15))                                     \
    _(V_LSHRREV_B16, LOW(b) >> (a & 15))                                \
    _(V_ASHRREV_I16, (vu)((vi)SIGNED(b) >> (vi)(a & 15)))               \
    _(V_AND_B16, a &b)                                                  \
    _(V_OR_B16, a | b)                                                  \
    _(V_XOR_B16, a ^ b)

#define HALF_2_CLAMP(_)                                                  \
    _(V_ADD_NC_U16_CLAMP, min_s(LOW(a) + LOW(b), splat(0xffff)))         \
    _(V_SUB_NC_U16_CLAMP, max_s(LOW(a) - LOW(b), splat(0)))              \
    _(V_ADD_NC_I16_CLAMP, clamp_s(SIGNED(a) + SIGNED(b), -32768, 32767)) \
    _(V_SUB_NC_I16_CLAMP, clamp_s(SIGNED(a) - SIGNED(b), -32768, 32767))

#define HALF_3(_)                                                      \
    _(V_FMAC_F16, fma_half(a, b, c))                                   \
    _(V_FMA_F16, fma_half(a, b, c))                                    \
    _(V_FMAMK_F16, fma_half(a, b, c))                                  \
    _(V_FMAAK_F16, fma_half(a, b, c))                                  \
    _(V_MAD_U16, a *b + c)                                             \
    _(V_MAD_I16, a *b + c)                                             \
    _(V_MIN3_F16, min_half(min_half(a, b), c))                         \
    _(V_MAX3_F16, max_half(max_half(a, b), c))                         \
    _(V_MED3_F16, med3_half(a, b, c))                                  \
    _(V_MAXMIN_F16, min_half(max_half(a, b), c))                       \
    _(V_MINMAX_F16, max_half(min_half(a, b), c))                       \
    _(V_MIN3_I16, min_s(min_s(SIGNED(a), SIGNED(b)), SIGNED(c)))       \
    _(V_MAX3_I16, max_s(max_s(SIGNED(a), SIGNED(b)), SIGNED(c)))       \
    _(V_MED3_I16, MED3(min_s, max_s, SIGNED(a), SIGNED(b), SIGNED(c))) \
    _(V_MIN3_U16, min_s(min_s(LOW(a), LOW(b)), LOW(c)))                \
    _(V_MAX3_U16, max_s(max_s(LOW(a), LOW(b)), LOW(c)))                \
    _(V_MED3_U16, MED3(min_s, max_s, LOW(a), LOW(b), LOW(c)))          \
    _(V_DIV_FIXUP_F16, div_fixup_half(a, b, c))

/* Results of 32 bits from halves. */
#define WORD_1(_) _(V_CVT_F32_F16, (vu)half_to_float(a))
#define WORD_2(_)                                                                                      \
    _(V_PACK_B32_F16, LOW(a) | b << 16)                                                                \
    _(V_CVT_PK_RTZ_F16_F32, float_to_half_toward_zero((vf)a) | float_to_half_toward_zero((vf)b) << 16) \
    _(V_CVT_PK_I16_F32, LOW(to_signed16((vf)a)) | to_signed16((vf)b) << 16)                            \
    _(V_CVT_PK_U16_F32, to_unsigned16((vf)a) | to_unsigned16((vf)b) << 16)                             \
    _(V_CVT_PK_NORM_I16_F32, LOW(to_snorm16((vf)a)) | to_snorm16((vf)b) << 16)                         \
    _(V_CVT_PK_NORM_U16_F32, to_unorm16((vf)a) | to_unorm16((vf)b) << 16)                              \
    _(V_CVT_PK_NORM_I16_F16, LOW(to_snorm16(half_to_float(a))) | to_snorm16(half_to_float(b)) << 16)   \
    _(V_CVT_PK_NORM_U16_F16, to_unorm16(half_to_float(a)) | to_unorm16(half_to_float(b)) << 16)

/* Both halves: x, y, z are the low half and then the high half of the sources, in the low 16 bits. */
#define PACKED(_)                                                       \
    _(V_PK_MAD_I16, x *y + z)                                           \
    _(V_PK_MAD_U16, x *y + z)                                           \
    _(V_PK_MUL_LO_U16, x *y)                                            \
    _(V_PK_ADD_I16, x + y)                                              \
    _(V_PK_ADD_U16, x + y)                                              \
    _(V_PK_SUB_I16, x - y)                                              \
    _(V_PK_SUB_U16, x - y)                                              \
    _(V_PK_LSHLREV_B16, y << (x & 15))                                  \
    _(V_PK_LSHRREV_B16, LOW(y) >> (x & 15))                             \
    _(V_PK_ASHRREV_I16, (vu)((vi)SIGNED(y) >> (vi)(x & 15)))            \
    _(V_PK_MAX_I16, max_s(SIGNED(x), SIGNED(y)))                        \
    _(V_PK_MIN_I16, min_s(SIGNED(x), SIGNED(y)))                        \
    _(V_PK_MAX_U16, max_s(LOW(x), LOW(y)))                              \
    _(V_PK_MIN_U16, min_s(LOW(x), LOW(y)))                              \
    _(V_PK_FMA_F16, fma_half(x, y, z))                                  \
    _(V_PK_FMAC_F16, fma_half(x, y, z))                                 \
    _(V_PK_ADD_F16, float_to_half(half_to_float(x) + half_to_float(y))) \
    _(V_PK_MUL_F16, float_to_half(half_to_float(x) * half_to_float(y))) \
    _(V_PK_MIN_F16, min_half(x, y))                                     \
    _(V_PK_MAX_F16, max_half(x, y))

#define PACKED_CLAMP(_)                                                  \
    _(V_PK_ADD_U16_CLAMP, min_s(LOW(x) + LOW(y), splat(0xffff)))         \
    _(V_PK_SUB_U16_CLAMP, max_s(LOW(x) - LOW(y), splat(0)))              \
    _(V_PK_ADD_I16_CLAMP, clamp_s(SIGNED(x) + SIGNED(y), -32768, 32767)) \
    _(V_PK_SUB_I16_CLAMP, clamp_s(SIGNED(x) - SIGNED(y), -32768, 32767))

#define A_OPERAND const vu *A = BW_AT(const vu, wave, uop->a)
#define B_OPERAND const vu *B = BW_AT(const vu, wave, uop->b)
#define C_OPERAND const vu *C = BW_AT(const vu, wave, uop->c)
/* Keeps what the register holds in its high half. */
#define MERGED(value) ((LOW(value)) | (D[i] & 0xffff0000u))
#define D_OPERAND     const vu *D = BW_AT(const vu, wave, uop->d)

#define HANDLER_OF(op, operands, lanes, result)           \
    HANDLER(x_##op)                                       \
    {                                                     \
        operands;                                         \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            lanes;                                        \
            r[i] = result;                                \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
#define LANES_1 vu a = A[i]
#define LANES_2 \
    LANES_1;    \
    vu b = B[i]
#define LANES_3 \
    LANES_2;    \
    vu c = C[i]
#define DEFINE_HALF_1(op, ...) \
    HANDLER_OF(op, A_OPERAND; D_OPERAND, LANES_1; vu v = (vu)(__VA_ARGS__), MERGED(v))
#define DEFINE_HALF_2(op, ...) \
    HANDLER_OF(op, A_OPERAND; B_OPERAND; D_OPERAND, LANES_2; vu v = (vu)(__VA_ARGS__), MERGED(v))
#define DEFINE_HALF_3(op, ...) \
    HANDLER_OF(op, A_OPERAND; B_OPERAND; C_OPERAND; D_OPERAND, LANES_3; vu v = (vu)(__VA_ARGS__), MERGED(v))
#define DEFINE_WORD_1(op, ...) HANDLER_OF(op, A_OPERAND, LANES_1, (vu)(__VA_ARGS__))
#define DEFINE_WORD_2(op, ...) HANDLER_OF(op, A_OPERAND; B_OPERAND, LANES_2, (vu)(__VA_ARGS__))
#define DEFINE_PACKED(op, ...)                     \
    static inline vu packed_##op(vu x, vu y, vu z) \
    {                                              \
        (void)z;                                   \
        return (vu)(__VA_ARGS__);                  \
    }                                              \
    HANDLER_OF(op, A_OPERAND; B_OPERAND;           \
               C_OPERAND, LANES_3,                 \
               (LOW(packed_##op(a, b, c)) | packed_##op(a >> 16, b >> 16, c >> 16) << 16))

HALF_1(DEFINE_HALF_1)
HALF_2(DEFINE_HALF_2)
HALF_2_CLAMP(DEFINE_HALF_2)
HALF_3(DEFINE_HALF_3)
WORD_1(DEFINE_WORD_1)
WORD_2(DEFINE_WORD_2)
PACKED(DEFINE_PACKED)
PACKED_CLAMP(DEFINE_PACKED)

HANDLER(x_V_CNDMASK_B16)
{
    A_OPERAND;
    B_OPERAND;
    D_OPERAND;
    uint32_t mask = scalar(wave, uop->c);
    vu r[BW_CHUNKS];
    EACH_CHUNK r[i] = MERGED(blend(mask, i, B[i], A[i]));
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* The low halves of a become the high halves of d. */
HANDLER(x_MERGE_HIGH)
{
    A_OPERAND;
    D_OPERAND;
    vu r[BW_CHUNKS];
    EACH_CHUNK r[i] = A[i] << 16 | LOW(D[i]);
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* A packed source: which half goes where (uop->e: bit 0 the low result takes the high half, bit 1 the high
 * result does; bit 2: clear the sign bits of both), then the sign bits of uop->f are flipped. A temporary:
 * all lanes. */
HANDLER(x_HALVES)
{
    A_OPERAND;
    vu *d = BW_AT(vu, wave, uop->d);
    unsigned low_shift = uop->e & 1 ? 16 : 0, high_shift = uop->e & 2 ? 0 : 16;
    vu flip = splat((uint32_t)uop->f);
    EACH_CHUNK d[i] = ((A[i] >> low_shift & 0xffff) | (A[i] << high_shift & 0xffff0000u)) ^ flip;
    NEXT;
}

/* Output modifiers: times 2, times 4, divided by 2 (imm 1, 2, 3), then clamp to [0, 1] (imm 4; 8: NaN becomes
 * 0). */
static inline vf finished(vf a, uint32_t how)
{
    if (how & 4) {
        vf r = select_f(a > 0, a, splat_f(0));
        r = select_f(a > 1, splat_f(1), r);
        a = how & 8 ? r : select_f(a != a, a, r);
    }
    return a;
}

/* imm 16: denormals of the result become zero of their sign. */
static inline vu flushed(vu a, uint32_t exponent_mask, uint32_t sign_mask)
{
    return select_u((vi)((a & exponent_mask) == 0), a & sign_mask, a);
}

static inline vu flushed_halves(vu a)
{
    vu low = flushed(a & 0xffff, 0x7c00, 0x8000), high = flushed(a & 0xffff0000u, 0x7c000000u, 0x80000000u);
    return low | high;
}

HANDLER(x_FINISH_F32)
{
    A_OPERAND;
    vu r[BW_CHUNKS];
    EACH_CHUNK r[i] = (vu)finished((vf)A[i], (uint32_t)uop->imm);
    if (uop->imm & 16)
        EACH_CHUNK r[i] = flushed(r[i], 0x7f800000u, 0x80000000u);
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

HANDLER(x_FINISH_F16)
{
    A_OPERAND;
    D_OPERAND;
    vu r[BW_CHUNKS];
    EACH_CHUNK
    {
        vu v = LOW(A[i]);
        if (uop->imm & 7)
            v = float_to_half(finished(half_to_float(v), (uint32_t)uop->imm));
        if (uop->imm & 16)
            v = flushed(v, 0x7c00, 0x8000);
        r[i] = MERGED(v);
    }
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

HANDLER(x_FINISH_V2F16)
{
    A_OPERAND;
    uint32_t how = (uint32_t)uop->imm;
    vu r[BW_CHUNKS];
    EACH_CHUNK
    {
        vu v = A[i];
        if (how & 7)
            v = float_to_half(finished(half_to_float(v), how)) |
                float_to_half(finished(half_to_float(v >> 16), how)) << 16;
        if (how & 16)
            v = flushed_halves(v);
        r[i] = v;
    }
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* Sources without their denormals: temporaries, all lanes. */
#define FLUSH(name, flush)               \
    HANDLER(x_##name)                    \
    {                                    \
        A_OPERAND;                       \
        vu *d = BW_AT(vu, wave, uop->d); \
        EACH_CHUNK d[i] = flush;         \
        NEXT;                            \
    }
FLUSH(FLUSH_F32, flushed(A[i], 0x7f800000u, 0x80000000u))
FLUSH(FLUSH_F16, flushed(LOW(A[i]), 0x7c00, 0x8000))
FLUSH(FLUSH_V2F16, flushed_halves(A[i]))

HANDLER(x_FLUSH_F64)
{
    const vu *low = BW_AT(const vu, wave, uop->a), *high = BW_AT(const vu, wave, uop->a + BW_VREG_BYTES);
    vu *d = BW_AT(vu, wave, uop->d), *d_high = BW_AT(vu, wave, uop->d + BW_VREG_BYTES);
    EACH_CHUNK
    {
        vi tiny = (vi)((high[i] & 0x7ff00000u) == 0);
        d[i] = select_u(tiny, splat(0), low[i]);
        d_high[i] = select_u(tiny, high[i] & 0x80000000u, high[i]);
    }
    NEXT;
}

/* MODE.IEEE = 0: minimum and maximum of what is no NaN, without quieting. */
static inline vu half_without_ieee(vu a, vu b, vu ordered)
{
    vu r = select_u(half_is_nan(a), b, ordered);
    return select_u(half_is_nan(b), a, r);
}

static inline vu min_half_dx(vu a, vu b)
{
    vf x = half_to_float(a), y = half_to_float(b);
    return half_without_ieee(a, b, select_u(x < y, a, select_u(x == y, a | b, b)));
}

static inline vu max_half_dx(vu a, vu b)
{
    vf x = half_to_float(a), y = half_to_float(b);
    return half_without_ieee(a, b, select_u(x > y, a, select_u(x == y, a & b, b)));
}

static inline vu med3_half_dx(vu a, vu b, vu c)
{
    vi nan = half_is_nan(a) | half_is_nan(b) | half_is_nan(c);
    vf x = half_to_float(a), y = half_to_float(b), top = half_to_float(max_half_dx(max_half_dx(a, b), c));
    vu r = select_u(top == x, max_half_dx(b, c), select_u(top == y, max_half_dx(a, c), max_half_dx(a, b)));
    return select_u(nan, min_half_dx(min_half_dx(a, b), c), r);
}

DEFINE_HALF_2(V_MIN_F16_DX, min_half_dx(a, b))
DEFINE_HALF_2(V_MAX_F16_DX, max_half_dx(a, b))
DEFINE_HALF_3(V_MIN3_F16_DX, min_half_dx(min_half_dx(a, b), c))
DEFINE_HALF_3(V_MAX3_F16_DX, max_half_dx(max_half_dx(a, b), c))
DEFINE_HALF_3(V_MED3_F16_DX, med3_half_dx(a, b, c))
DEFINE_HALF_3(V_MAXMIN_F16_DX, min_half_dx(max_half_dx(a, b), c))
DEFINE_HALF_3(V_MINMAX_F16_DX, max_half_dx(min_half_dx(a, b), c))
DEFINE_PACKED(V_PK_MIN_F16_DX, min_half_dx(LOW(x), LOW(y)))
DEFINE_PACKED(V_PK_MAX_F16_DX, max_half_dx(LOW(x), LOW(y)))

/* Lanes of a source that are infinite: kind 1 a half, 2 a single, 3 two halves of which shift picks one. */
static inline vi source_is_infinite(const struct bw_wave *wave, int32_t offset, unsigned kind, int i,
                                    unsigned shift)
{
    if (kind == 0)
        return (vi)splat(0);
    vu a = BW_AT(const vu, wave, offset)[i];
    if (kind == 2)
        return (vi)((a & 0x7fffffffu) == 0x7f800000u);
    return (vi)((a >> (kind == 3 ? shift : 0) & 0x7fff) == 0x7c00);
}

/* MODE.FP16_OVFL: an infinite result that no infinite source and no division by zero explains becomes the
 * largest number (section 3.4.2). a: the result; b, c, e: the sources, of the kinds in uop->g, two bits each;
 * bit 6: the result is packed; bit 7: source b divides. */
HANDLER(x_KEEP_FINITE)
{
    A_OPERAND;
    D_OPERAND;
    uint32_t how = (uint32_t)uop->g;
    vu r[BW_CHUNKS];
    EACH_CHUNK
    {
        vu v = splat(0);
        for (unsigned shift = 0; shift < (how & 64 ? 32 : 16); shift += 16) {
            vu half = A[i] >> shift & 0xffff;
            vi exempt = source_is_infinite(wave, uop->b, how & 3, i, shift) |
                        source_is_infinite(wave, uop->c, how >> 2 & 3, i, shift) |
                        source_is_infinite(wave, uop->e, how >> 4 & 3, i, shift);
            if (how & 128)
                exempt |= ((vi)(BW_AT(const vu, wave, uop->b)[i] & 0x7fff) == 0);
            vi overflowed = (vi)((half & 0x7fff) == 0x7c00) & ~exempt;
            v |= select_u(overflowed, (half & 0x8000) | 0x7bff, half) << shift;
        }
        r[i] = MERGED(v);
        if (how & 64)
            r[i] = v;
    }
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* V_SIN_F16 and the like go through single precision: the halves of a as floats into a temporary. */
HANDLER(x_WIDEN_HALF)
{
    A_OPERAND;
    vu *d = BW_AT(vu, wave, uop->d);
    EACH_CHUNK d[i] = (vu)half_to_float(A[i]);
    NEXT;
}

#define R(op, ...) {BW_GFX11_##op, x_##op},
#define H(op, ...) {BW_UOP_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    HALF_1(R) HALF_2(R) HALF_2_CLAMP(H) HALF_3(R) WORD_1(R) WORD_2(R) PACKED(R) PACKED_CLAMP(H) R(V_CNDMASK_B16)
    H(MERGE_HIGH) H(HALVES) H(FINISH_F32) H(FINISH_F16) H(FINISH_V2F16) H(WIDEN_HALF)
    H(FLUSH_F32) H(FLUSH_F16) H(FLUSH_V2F16) H(FLUSH_F64) H(V_MIN_F16_DX) H(V_MAX_F16_DX)
    H(V_MIN3_F16_DX) H(V_MAX3_F16_DX) H(V_MED3_F16_DX) H(V_MAXMIN_F16_DX) H(V_MINMAX_F16_DX) H(V_PK_MIN_F16_DX)
    H(V_PK_MAX_F16_DX) H(KEEP_FINITE)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_half) = {rows, sizeof rows / sizeof rows[0]};
