/* VOPD pairs as one uop, for the operations that fill inner loops: both read before either writes. The first
 * half has d, a, b, the second e, f, g; accumulators add to their destination. RDNA3 Shader ISA document,
 * section 7.6. */
#include "mock/isa/exec_vec.h"

#define COMPUTE_FMAC(a, b, c)        fma_f(a, b, c)
#define COMPUTE_MUL(a, b, c)         ((a) * (b))
#define COMPUTE_ADD(a, b, c)         ((a) + (b))
#define COMPUTE_SUB(a, b, c)         ((a) - (b))
#define COMPUTE_SUBREV(a, b, c)      ((b) - (a))
#define COMPUTE_MOV(a, b, c)         (a)
#define COMPUTE_ADD_NC_U32(a, b, c)  ((vf)((vu)(a) + (vu)(b)))
#define COMPUTE_LSHLREV_B32(a, b, c) ((vf)((vu)(b) << ((vu)(a)&31)))
#define COMPUTE_AND_B32(a, b, c)     ((vf)((vu)(a) & (vu)(b)))

#define DEFINE(x, y)                                                                       \
    HANDLER(x_DUAL_##x##_##y)                                                              \
    {                                                                                      \
        const vf *A = BW_AT(const vf, wave, uop->a), *B = BW_AT(const vf, wave, uop->b);   \
        const vf *C = BW_AT(const vf, wave, uop->d), *A2 = BW_AT(const vf, wave, uop->f);  \
        const vf *B2 = BW_AT(const vf, wave, uop->g), *C2 = BW_AT(const vf, wave, uop->e); \
        uint32_t exec = exec_of(wave, uop);                                                \
        vu r[BW_CHUNKS], r2[BW_CHUNKS];                                                    \
        (void)B, (void)C, (void)B2, (void)C2;                                              \
        EACH_CHUNK                                                                         \
        {                                                                                  \
            r[i] = (vu)COMPUTE_##x(A[i], B[i], C[i]);                                      \
            r2[i] = (vu)COMPUTE_##y(A2[i], B2[i], C2[i]);                                  \
        }                                                                                  \
        write_lanes(wave, uop->d, exec, r);                                                \
        write_lanes(wave, uop->e, exec, r2);                                               \
        NEXT;                                                                              \
    }
#define EACH_SECOND(_, x) \
    _(x, FMAC)            \
    _(x, MUL) _(x, ADD) _(x, SUB) _(x, SUBREV) _(x, MOV) _(x, ADD_NC_U32) _(x, LSHLREV_B32) _(x, AND_B32)
#define EACH_PAIR(_)     \
    EACH_SECOND(_, FMAC) \
    EACH_SECOND(_, MUL) EACH_SECOND(_, ADD) EACH_SECOND(_, SUB) EACH_SECOND(_, SUBREV) EACH_SECOND(_, MOV)
EACH_PAIR(DEFINE)

#define H(x, y) {BW_UOP_DUAL_##x##_##y, x_DUAL_##x##_##y},
static const struct bw_uop_row rows[] = {EACH_PAIR(H)};
const struct bw_uop_table BW_LEVEL(bw_exec_dual) = {rows, sizeof rows / sizeof rows[0]};
