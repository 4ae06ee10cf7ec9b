/* Vector comparisons on 32-bit lanes: a mask bit per lane, 0 where EXEC is off; V_CMPX writes EXEC.
 * RDNA3 Shader ISA document, section 16.9 (VOPC). */
#include "mock/isa/exec_half.h"

/* Each condition in C, and as the host's comparison predicate. */
#define FLOAT_CONDITIONS(_, type)                  \
    _(LT, type, a < b, _CMP_LT_OQ)                 \
    _(EQ, type, a == b, _CMP_EQ_OQ)                \
    _(LE, type, a <= b, _CMP_LE_OQ)                \
    _(GT, type, a > b, _CMP_GT_OQ)                 \
    _(LG, type, (a < b) | (a > b), _CMP_NEQ_OQ)    \
    _(GE, type, a >= b, _CMP_GE_OQ)                \
    _(O, type, (a == a) & (b == b), _CMP_ORD_Q)    \
    _(U, type, (a != a) | (b != b), _CMP_UNORD_Q)  \
    _(NGE, type, ~(a >= b), _CMP_NGE_UQ)           \
    _(NLG, type, ~((a < b) | (a > b)), _CMP_EQ_UQ) \
    _(NGT, type, ~(a > b), _CMP_NGT_UQ)            \
    _(NLE, type, ~(a <= b), _CMP_NLE_UQ)           \
    _(NEQ, type, a != b, _CMP_NEQ_UQ)              \
    _(NLT, type, ~(a < b), _CMP_NLT_UQ)
#define INT_CONDITIONS(_, type)        \
    _(LT, type, a < b, _MM_CMPINT_LT)  \
    _(EQ, type, a == b, _MM_CMPINT_EQ) \
    _(LE, type, a <= b, _MM_CMPINT_LE) \
    _(GT, type, a > b, _MM_CMPINT_NLE) \
    _(NE, type, a != b, _MM_CMPINT_NE) \
    _(GE, type, a >= b, _MM_CMPINT_NLT)

#if BW_VECTOR_BYTES == 64
#define COMPARE_F(plain, predicate) _mm512_cmp_ps_mask((__m512)a, (__m512)b, predicate)
#define COMPARE_I(plain, predicate) _mm512_cmp_epi32_mask((__m512i)a, (__m512i)b, predicate)
#define COMPARE_U(plain, predicate) _mm512_cmp_epu32_mask((__m512i)a, (__m512i)b, predicate)
#else
#define COMPARE_F(plain, predicate) bits_of((vi)(plain))
#define COMPARE_I(plain, predicate) bits_of((vi)(plain))
#define COMPARE_U(plain, predicate) bits_of((vi)(plain))
#endif

static inline vi class_f32(vu a, vu mask)
{
    vu magnitude = a & 0x7fffffffu, negative = (vu)((vi)a >> 31);
    vu exponent = a & 0x7f800000u;
    vu normal = (vu)(exponent != 0) & (vu)(exponent != 0x7f800000u);
    vu bit = (vu)(magnitude > 0x7f800000u) & select_u((vi)((a & 0x400000) != 0), splat(2), splat(1));
    bit |= (vu)(magnitude == 0x7f800000u) & select_u((vi)negative, splat(1 << 2), splat(1 << 9));
    bit |= normal & select_u((vi)negative, splat(1 << 3), splat(1 << 8));
    bit |= (vu)(exponent == 0) & (vu)(magnitude != 0) & select_u((vi)negative, splat(1 << 4), splat(1 << 7));
    bit |= (vu)(magnitude == 0) & select_u((vi)negative, splat(1 << 5), splat(1 << 6));
    return (vi)((bit & mask) != 0);
}

static inline vi class_f16(vu a, vu mask)
{
    vu magnitude = a & 0x7fff, negative = (vu)((vi)(a << 16) >> 31), exponent = a & 0x7c00;
    vu normal = (vu)(exponent != 0) & (vu)(exponent != 0x7c00);
    vu bit = (vu)(magnitude > 0x7c00) & select_u((vi)((a & 0x200) != 0), splat(2), splat(1));
    bit |= (vu)(magnitude == 0x7c00) & select_u((vi)negative, splat(1 << 2), splat(1 << 9));
    bit |= normal & select_u((vi)negative, splat(1 << 3), splat(1 << 8));
    bit |= (vu)(exponent == 0) & (vu)(magnitude != 0) & select_u((vi)negative, splat(1 << 4), splat(1 << 7));
    bit |= (vu)(magnitude == 0) & select_u((vi)negative, splat(1 << 5), splat(1 << 6));
    return (vi)((bit & mask) != 0);
}

/* V_CMPX is the same with EXEC as destination: the translator knows. */
#define DEFINE(condition, type, vector, read, bits)           \
    HANDLER(x_V_CMP_##condition##_##type)                     \
    {                                                         \
        const vu *A = BW_AT(const vu, wave, uop->a);          \
        const vu *B = BW_AT(const vu, wave, uop->b);          \
        uint32_t mask = 0;                                    \
        EACH_CHUNK                                            \
        {                                                     \
            vector a = read(A[i]), b = read(B[i]);            \
            mask |= (uint32_t)(bits) << (BW_CHUNK_LANES * i); \
        }                                                     \
        write_scalar(wave, uop->d, mask &exec_of(wave, uop)); \
        NEXT;                                                 \
    }
#define AS_F32(v)                        ((vf)(v))
#define AS_I32(v)                        ((vi)(v))
#define AS_U32(v)                        (v)
#define AS_F16(v)                        half_to_float(v)
#define AS_I16(v)                        ((vi)((v) << 16) >> 16)
#define AS_U16(v)                        ((v)&0xffff)
#define DEFINE_F32(condition, type, ...) DEFINE(condition, type, vf, AS_F32, COMPARE_F(__VA_ARGS__))
#define DEFINE_I32(condition, type, ...) DEFINE(condition, type, vi, AS_I32, COMPARE_I(__VA_ARGS__))
#define DEFINE_U32(condition, type, ...) DEFINE(condition, type, vu, AS_U32, COMPARE_U(__VA_ARGS__))
#define DEFINE_F16(condition, type, ...) DEFINE(condition, type, vf, AS_F16, COMPARE_F(__VA_ARGS__))
#define DEFINE_I16(condition, type, ...) DEFINE(condition, type, vi, AS_I16, COMPARE_I(__VA_ARGS__))
#define DEFINE_U16(condition, type, ...) DEFINE(condition, type, vu, AS_U16, COMPARE_U(__VA_ARGS__))

FLOAT_CONDITIONS(DEFINE_F32, F32)
FLOAT_CONDITIONS(DEFINE_F16, F16)
INT_CONDITIONS(DEFINE_I32, I32)
INT_CONDITIONS(DEFINE_U32, U32)
INT_CONDITIONS(DEFINE_I16, I16)
INT_CONDITIONS(DEFINE_U16, U16)
DEFINE(CLASS, F32, vu, AS_U32, bits_of(class_f32(a, b)))
DEFINE(CLASS, F16, vu, AS_U32, bits_of(class_f16(a, b)))

HANDLER(x_never)
{
    write_scalar(wave, uop->d, 0);
    NEXT;
}

HANDLER(x_always)
{
    write_scalar(wave, uop->d, exec_of(wave, uop));
    NEXT;
}

#define R(condition, type, ...) {BW_GFX11_V_CMP_##condition##_##type, x_V_CMP_##condition##_##type},
#define CONSTANT(type)          {BW_GFX11_V_CMP_F_##type, x_never}, {BW_GFX11_V_CMP_T_##type, x_always},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    FLOAT_CONDITIONS(R, F32) FLOAT_CONDITIONS(R, F16) INT_CONDITIONS(R, I32) INT_CONDITIONS(R, U32)
    INT_CONDITIONS(R, I16) INT_CONDITIONS(R, U16) R(CLASS, F32) R(CLASS, F16)
    CONSTANT(F16) CONSTANT(F32) CONSTANT(F64) CONSTANT(I32) CONSTANT(U32) CONSTANT(I64) CONSTANT(U64)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_compare) = {rows, sizeof rows / sizeof rows[0]};
