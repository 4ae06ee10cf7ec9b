/* Vector comparisons on 32-bit lanes: a mask bit per lane, 0 where EXEC is off; V_CMPX writes EXEC.
 * RDNA3 Shader ISA document, section 16.9 (VOPC). */
#include "mock/isa/exec_vec.h"

#define FLOAT_CONDITIONS(_, type)                                                             \
    _(LT, type, a < b)                                                                        \
    _(EQ, type, a == b) _(LE, type, a <= b) _(GT, type, a > b) _(LG, type, (a < b) | (a > b)) \
        _(GE, type, a >= b) _(O, type, (a == a) & (b == b)) _(U, type, (a != a) | (b != b))   \
            _(NGE, type, ~(a >= b)) _(NLG, type, ~((a < b) | (a > b))) _(NGT, type, ~(a > b)) \
                _(NLE, type, ~(a <= b)) _(NEQ, type, a != b) _(NLT, type, ~(a < b))
#define INT_CONDITIONS(_, type) \
    _(LT, type, a < b)          \
    _(EQ, type, a == b) _(LE, type, a <= b) _(GT, type, a > b) _(NE, type, a != b) _(GE, type, a >= b)

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

#define DEFINE(name, vector, destination, ...)                          \
    HANDLER(x_##name)                                                   \
    {                                                                   \
        const vector *A = BW_AT(const vector, wave, uop->a);            \
        const vector *B = BW_AT(const vector, wave, uop->b);            \
        uint32_t mask = 0;                                              \
        EACH_CHUNK                                                      \
        {                                                               \
            vector a = A[i], b = B[i];                                  \
            mask |= bits_of((vi)(__VA_ARGS__)) << (BW_CHUNK_LANES * i); \
        }                                                               \
        write_scalar(wave, destination, mask &exec_of(wave, uop));      \
        NEXT;                                                           \
    }
#define BOTH(condition, type, vector, ...)                          \
    DEFINE(V_CMP_##condition##_##type, vector, uop->d, __VA_ARGS__) \
    DEFINE(V_CMPX_##condition##_##type, vector, uop->x, __VA_ARGS__)
#define DEFINE_F32(condition, type, ...) BOTH(condition, type, vf, __VA_ARGS__)
#define DEFINE_I32(condition, type, ...) BOTH(condition, type, vi, __VA_ARGS__)
#define DEFINE_U32(condition, type, ...) BOTH(condition, type, vu, __VA_ARGS__)

FLOAT_CONDITIONS(DEFINE_F32, F32)
INT_CONDITIONS(DEFINE_I32, I32)
INT_CONDITIONS(DEFINE_U32, U32)
BOTH(CLASS, F32, vu, class_f32(a, b))

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

HANDLER(x_never_exec)
{
    write_scalar(wave, uop->x, 0);
    NEXT;
}

HANDLER(x_always_exec)
{
    NEXT;
}

#define R(condition, type, ...)                                          \
    {BW_GFX11_V_CMP_##condition##_##type, x_V_CMP_##condition##_##type}, \
        {BW_GFX11_V_CMPX_##condition##_##type, x_V_CMPX_##condition##_##type},
#define CONSTANT(type)                                                       \
    {BW_GFX11_V_CMP_F_##type, x_never}, {BW_GFX11_V_CMP_T_##type, x_always}, \
        {BW_GFX11_V_CMPX_F_##type, x_never_exec}, {BW_GFX11_V_CMPX_T_##type, x_always_exec},
static const struct bw_uop_row rows[] = {
    FLOAT_CONDITIONS(R, F32) INT_CONDITIONS(R, I32) INT_CONDITIONS(R, U32) R(CLASS, F32) CONSTANT(F16)
        CONSTANT(F32) CONSTANT(F64) CONSTANT(I32) CONSTANT(U32) CONSTANT(I64) CONSTANT(U64)};
const struct bw_uop_table BW_LEVEL(bw_exec_compare) = {rows, sizeof rows / sizeof rows[0]};
