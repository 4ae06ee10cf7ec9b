/* Scalar operations: SOP1, SOP2, SOPC, SOPK. Semantics: RDNA3 Shader ISA document, sections 16.1 to 16.4. */
#include "mock/isa/exec_vec.h"

#define SCC      wave->sgpr[BW_SLOT_SCC]
#define EXEC_LO  wave->sgpr[BW_SREG_EXEC_LO]
#define EXEC64() bw_sgpr64(wave, BW_OFFSET_SGPR(BW_SREG_EXEC_LO))

static inline uint32_t count_leading(uint32_t value)
{
    return value ? (uint32_t)__builtin_clz(value) : ALL_LANES;
}

static inline uint32_t count_leading64(uint64_t value)
{
    return value ? (uint32_t)__builtin_clzll(value) : ALL_LANES;
}

/* Bits of the same value as the sign bit, from the top; -1 when all are. */
static inline uint32_t count_sign(uint32_t value)
{
    uint32_t folded = value ^ (uint32_t)((int32_t)value >> 31);
    return folded ? (uint32_t)__builtin_clz(folded) : ALL_LANES;
}

static inline uint32_t count_sign64(uint64_t value)
{
    uint64_t folded = value ^ (uint64_t)((int64_t)value >> 63);
    return folded ? (uint32_t)__builtin_clzll(folded) : ALL_LANES;
}

static inline uint32_t reverse32(uint32_t v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(v);
}

static inline uint64_t reverse64(uint64_t v)
{
    return (uint64_t)reverse32((uint32_t)v) << 32 | reverse32((uint32_t)(v >> 32));
}

static inline uint64_t low_bits(uint32_t count)
{
    return count >= 64 ? ~0ull : (1ull << count) - 1;
}

static inline uint64_t extend_from_bit(uint64_t value, uint32_t bits)
{
    if (bits == 0)
        return 0;
    if (bits >= 64)
        return value;
    return (uint64_t)((int64_t)(value << (64 - bits)) >> (64 - bits));
}

/* One bit for each group of four bits of value that is not zero. */
static inline uint64_t quad_mask(uint64_t value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 16; i++)
        result |= (uint64_t)((value >> (4 * i) & 15) != 0) << i;
    return result;
}

static inline uint64_t whole_quads(uint64_t value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 16; i++)
        result |= (value >> (4 * i) & 15) ? 15ull << (4 * i) : 0;
    return result;
}

static inline uint64_t replicate_bits(uint32_t value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 32; i++)
        result |= (uint64_t)(value >> i & 1) * 3 << (2 * i);
    return result;
}

/* Each list: operation, then how d (and scc) come from a and b. */
#define SCALAR_32_32(_)                                                    \
    _(S_MOV_B32, d = a)                                                    \
    _(S_BREV_B32, d = reverse32(a))                                        \
    _(S_CTZ_I32_B32, d = a ? (uint32_t)__builtin_ctz(a) : ALL_LANES)       \
    _(S_CLZ_I32_U32, d = count_leading(a))                                 \
    _(S_CLS_I32, d = count_sign(a))                                        \
    _(S_SEXT_I32_I8, d = (uint32_t)(int8_t)a)                              \
    _(S_SEXT_I32_I16, d = (uint32_t)(int16_t)a)                            \
    _(S_ABS_I32, d = (int32_t)a < 0 ? 0u - a : a; scc = d != 0)            \
    _(S_BCNT0_I32_B32, d = (uint32_t)__builtin_popcount(~a); scc = d != 0) \
    _(S_BCNT1_I32_B32, d = (uint32_t)__builtin_popcount(a); scc = d != 0)  \
    _(S_QUADMASK_B32, d = (uint32_t)quad_mask(a); scc = d != 0)            \
    _(S_WQM_B32, d = (uint32_t)whole_quads(a); scc = d != 0)               \
    _(S_NOT_B32, d = ~a; scc = d != 0)                                     \
    _(S_MOVK_I32, d = a)

#define SCALAR_32_64(_)                                                      \
    _(S_CTZ_I32_B64, d = a ? (uint32_t)__builtin_ctzll(a) : ALL_LANES)       \
    _(S_CLZ_I32_U64, d = count_leading64(a))                                 \
    _(S_CLS_I32_I64, d = count_sign64(a))                                    \
    _(S_BCNT0_I32_B64, d = (uint32_t)__builtin_popcountll(~a); scc = d != 0) \
    _(S_BCNT1_I32_B64, d = (uint32_t)__builtin_popcountll(a); scc = d != 0)

#define SCALAR_64_64(_)                               \
    _(S_MOV_B64, d = a)                               \
    _(S_BREV_B64, d = reverse64(a))                   \
    _(S_QUADMASK_B64, d = quad_mask(a); scc = d != 0) \
    _(S_WQM_B64, d = whole_quads(a); scc = d != 0)    \
    _(S_NOT_B64, d = ~a; scc = d != 0)

#define SCALAR_32_32_32(_)                                                                                  \
    _(S_ADD_U32, d = a + b; scc = d < a)                                                                    \
    _(S_SUB_U32, d = a - b; scc = b > a)                                                                    \
    _(S_ADD_I32, d = a + b; scc = ((a ^ d) & (b ^ d)) >> 31)                                                \
    _(S_SUB_I32, d = a - b; scc = ((a ^ b) & (a ^ d)) >> 31)                                                \
    _(S_ADDC_U32, uint64_t t = (uint64_t)a + b + scc; d = (uint32_t)t; scc = t >> 32 != 0)                  \
    _(S_SUBB_U32, d = a - b - scc; scc = (uint64_t)b + scc > a)                                             \
    _(S_ABSDIFF_I32, d = a - b; d = (int32_t)d < 0 ? 0u - d : d; scc = d != 0)                              \
    _(S_LSHL_B32, d = a << (b & 31); scc = d != 0)                                                          \
    _(S_LSHR_B32, d = a >> (b & 31); scc = d != 0)                                                          \
    _(S_ASHR_I32, d = (uint32_t)((int32_t)a >> (b & 31)); scc = d != 0)                                     \
    _(S_LSHL1_ADD_U32, uint64_t t = ((uint64_t)a << 1) + b; d = (uint32_t)t; scc = t >> 32 != 0)            \
    _(S_LSHL2_ADD_U32, uint64_t t = ((uint64_t)a << 2) + b; d = (uint32_t)t; scc = t >> 32 != 0)            \
    _(S_LSHL3_ADD_U32, uint64_t t = ((uint64_t)a << 3) + b; d = (uint32_t)t; scc = t >> 32 != 0)            \
    _(S_LSHL4_ADD_U32, uint64_t t = ((uint64_t)a << 4) + b; d = (uint32_t)t; scc = t >> 32 != 0)            \
    _(S_MIN_I32, scc = (int32_t)a < (int32_t)b; d = scc ? a : b)                                            \
    _(S_MIN_U32, scc = a < b; d = scc ? a : b)                                                              \
    _(S_MAX_I32, scc = (int32_t)a >= (int32_t)b; d = scc ? a : b)                                           \
    _(S_MAX_U32, scc = a >= b; d = scc ? a : b)                                                             \
    _(S_AND_B32, d = a & b; scc = d != 0)                                                                   \
    _(S_OR_B32, d = a | b; scc = d != 0)                                                                    \
    _(S_XOR_B32, d = a ^ b; scc = d != 0)                                                                   \
    _(S_NAND_B32, d = ~(a & b); scc = d != 0)                                                               \
    _(S_NOR_B32, d = ~(a | b); scc = d != 0)                                                                \
    _(S_XNOR_B32, d = ~(a ^ b); scc = d != 0)                                                               \
    _(S_AND_NOT1_B32, d = a & ~b; scc = d != 0)                                                             \
    _(S_OR_NOT1_B32, d = a | ~b; scc = d != 0)                                                              \
    _(S_BFE_U32, d = a >> (b & 31) & (uint32_t)low_bits(b >> 16 & 127); scc = d != 0)                       \
    _(S_BFE_I32, d = (uint32_t)extend_from_bit((uint64_t)(int64_t)((int32_t)a >> (b & 31)), b >> 16 & 127); \
      scc = d != 0)                                                                                         \
    _(S_BFM_B32, d = (uint32_t)low_bits(a & 31) << (b & 31))                                                \
    _(S_MUL_I32, d = a * b)                                                                                 \
    _(S_MUL_HI_U32, d = (uint32_t)((uint64_t)a * b >> 32))                                                  \
    _(S_MUL_HI_I32, d = (uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32))                                 \
    _(S_CSELECT_B32, d = scc ? a : b)                                                                       \
    _(S_CMOV_B32, d = scc ? a : b)                                                                          \
    _(S_CMOVK_I32, d = scc ? a : b)                                                                         \
    _(S_BITSET0_B32, d = b & ~(1u << (a & 31)))                                                             \
    _(S_BITSET1_B32, d = b | 1u << (a & 31))                                                                \
    _(S_PACK_LL_B32_B16, d = b << 16 | (a & 0xffff))                                                        \
    _(S_PACK_LH_B32_B16, d = (b & 0xffff0000u) | (a & 0xffff))                                              \
    _(S_PACK_HH_B32_B16, d = (b & 0xffff0000u) | a >> 16)                                                   \
    _(S_PACK_HL_B32_B16, d = b << 16 | a >> 16)                                                             \
    _(S_ADDK_I32, d = a + b; scc = ((a ^ d) & (b ^ d)) >> 31)                                               \
    _(S_MULK_I32, d = a * b)

#define SCALAR_64_64_64(_)                      \
    _(S_AND_B64, d = a & b; scc = d != 0)       \
    _(S_OR_B64, d = a | b; scc = d != 0)        \
    _(S_XOR_B64, d = a ^ b; scc = d != 0)       \
    _(S_NAND_B64, d = ~(a & b); scc = d != 0)   \
    _(S_NOR_B64, d = ~(a | b); scc = d != 0)    \
    _(S_XNOR_B64, d = ~(a ^ b); scc = d != 0)   \
    _(S_AND_NOT1_B64, d = a & ~b; scc = d != 0) \
    _(S_OR_NOT1_B64, d = a | ~b; scc = d != 0)  \
    _(S_CSELECT_B64, d = scc ? a : b)           \
    _(S_CMOV_B64, d = scc ? a : b)

#define SCALAR_64_64_32(_)                                                  \
    _(S_LSHL_B64, d = a << (b & 63); scc = d != 0)                          \
    _(S_LSHR_B64, d = a >> (b & 63); scc = d != 0)                          \
    _(S_ASHR_I64, d = (uint64_t)((int64_t)a >> (b & 63)); scc = d != 0)     \
    _(S_BFE_U64, d = a >> (b & 63) & low_bits(b >> 16 & 127); scc = d != 0) \
    _(S_BFE_I64, d = extend_from_bit((uint64_t)((int64_t)a >> (b & 63)), b >> 16 & 127); scc = d != 0)

#define SCALAR_64_32_64(_)                        \
    _(S_BITSET0_B64, d = b & ~(1ull << (a & 63))) \
    _(S_BITSET1_B64, d = b | 1ull << (a & 63))

#define SCALAR_64_32_32(_)                         \
    _(S_BFM_B64, d = low_bits(a & 63) << (b & 63)) \
    _(S_BITREPLICATE_B64_B32, d = replicate_bits(a))

#define SCALAR_COMPARE_32(_)                                                                                 \
    _(S_CMP_EQ_I32, a == b)                                                                                  \
    _(S_CMP_LG_I32, a != b)                                                                                  \
    _(S_CMP_GT_I32, (int32_t)a > (int32_t)b)                                                                 \
    _(S_CMP_GE_I32, (int32_t)a >= (int32_t)b)                                                                \
    _(S_CMP_LT_I32, (int32_t)a < (int32_t)b) _(S_CMP_LE_I32, (int32_t)a <= (int32_t)b)                       \
        _(S_CMP_EQ_U32, a == b) _(S_CMP_LG_U32, a != b) _(S_CMP_GT_U32, a > b) _(S_CMP_GE_U32, a >= b)       \
            _(S_CMP_LT_U32, a < b) _(S_CMP_LE_U32, a <= b) _(S_CMPK_EQ_I32, a == b) _(S_CMPK_LG_I32, a != b) \
                _(S_CMPK_GT_I32, (int32_t)a > (int32_t)b) _(S_CMPK_GE_I32, (int32_t)a >= (int32_t)b)         \
                    _(S_CMPK_LT_I32, (int32_t)a < (int32_t)b) _(S_CMPK_LE_I32, (int32_t)a <= (int32_t)b)     \
                        _(S_CMPK_EQ_U32, a == b) _(S_CMPK_LG_U32, a != b) _(S_CMPK_GT_U32, a > b)            \
                            _(S_CMPK_GE_U32, a >= b) _(S_CMPK_LT_U32, a < b) _(S_CMPK_LE_U32, a <= b)        \
                                _(S_BITCMP0_B32, !(a >> (b & 31) & 1)) _(S_BITCMP1_B32, a >> (b & 31) & 1)

#define SCALAR_COMPARE_64(_)    _(S_CMP_EQ_U64, a == b) _(S_CMP_LG_U64, a != b)
#define SCALAR_COMPARE_64_32(_) _(S_BITCMP0_B64, !(a >> (b & 63) & 1)) _(S_BITCMP1_B64, a >> (b & 63) & 1)

/* s is the source, e what EXEC was; the result is the new EXEC. */
#define SCALAR_SAVEEXEC(_)                                                                 \
    _(S_AND_SAVEEXEC, s &e)                                                                \
    _(S_OR_SAVEEXEC, s | e)                                                                \
    _(S_XOR_SAVEEXEC, s ^ e)                                                               \
    _(S_NAND_SAVEEXEC, ~(s & e))                                                           \
    _(S_NOR_SAVEEXEC, ~(s | e)) _(S_XNOR_SAVEEXEC, ~(s ^ e)) _(S_AND_NOT0_SAVEEXEC, ~s &e) \
        _(S_OR_NOT0_SAVEEXEC, ~s | e) _(S_AND_NOT1_SAVEEXEC, s & ~e) _(S_OR_NOT1_SAVEEXEC, s | ~e)

#define SCALAR_WREXEC(_) _(S_AND_NOT0_WREXEC, ~s &e) _(S_AND_NOT1_WREXEC, s & ~e)

#define DEFINE_1(op, d_type, a_type, read_a, write_d, ...) \
    HANDLER(x_##op)                                        \
    {                                                      \
        a_type a = read_a(wave, uop->a);                   \
        d_type d;                                          \
        uint32_t scc = SCC;                                \
        __VA_ARGS__;                                       \
        write_d(wave, uop->d, d);                          \
        SCC = scc;                                         \
        NEXT;                                              \
    }
#define DEFINE_2(op, d_type, a_type, read_a, b_type, read_b, write_d, ...) \
    HANDLER(x_##op)                                                        \
    {                                                                      \
        a_type a = read_a(wave, uop->a);                                   \
        b_type b = read_b(wave, uop->b);                                   \
        d_type d;                                                          \
        uint32_t scc = SCC;                                                \
        (void)b;                                                           \
        __VA_ARGS__;                                                       \
        write_d(wave, uop->d, d);                                          \
        SCC = scc;                                                         \
        NEXT;                                                              \
    }
#define DEFINE_COMPARE(op, a_type, read_a, b_type, read_b, ...) \
    HANDLER(x_##op)                                             \
    {                                                           \
        a_type a = read_a(wave, uop->a);                        \
        b_type b = read_b(wave, uop->b);                        \
        SCC = (__VA_ARGS__) ? 1 : 0;                            \
        NEXT;                                                   \
    }

#define D_32_32(op, ...) DEFINE_1(op, uint32_t, uint32_t, scalar, write_scalar, __VA_ARGS__)
#define D_32_64(op, ...) DEFINE_1(op, uint32_t, uint64_t, bw_sgpr64, write_scalar, __VA_ARGS__)
#define D_64_64(op, ...) DEFINE_1(op, uint64_t, uint64_t, bw_sgpr64, write_scalar64, __VA_ARGS__)
#define D_32_32_32(op, ...) \
    DEFINE_2(op, uint32_t, uint32_t, scalar, uint32_t, scalar, write_scalar, __VA_ARGS__)
#define D_64_64_64(op, ...) \
    DEFINE_2(op, uint64_t, uint64_t, bw_sgpr64, uint64_t, bw_sgpr64, write_scalar64, __VA_ARGS__)
#define D_64_64_32(op, ...) \
    DEFINE_2(op, uint64_t, uint64_t, bw_sgpr64, uint32_t, scalar, write_scalar64, __VA_ARGS__)
#define D_64_32_64(op, ...) \
    DEFINE_2(op, uint64_t, uint32_t, scalar, uint64_t, bw_sgpr64, write_scalar64, __VA_ARGS__)
#define D_64_32_32(op, ...) \
    DEFINE_2(op, uint64_t, uint32_t, scalar, uint32_t, scalar, write_scalar64, __VA_ARGS__)
#define D_C32(op, ...)    DEFINE_COMPARE(op, uint32_t, scalar, uint32_t, scalar, __VA_ARGS__)
#define D_C64(op, ...)    DEFINE_COMPARE(op, uint64_t, bw_sgpr64, uint64_t, bw_sgpr64, __VA_ARGS__)
#define D_C64_32(op, ...) DEFINE_COMPARE(op, uint64_t, bw_sgpr64, uint32_t, scalar, __VA_ARGS__)

#define DEFINE_EXEC(op, width, type, read_s, write, saved, ...) \
    HANDLER(x_##op##_B##width)                                  \
    {                                                           \
        type s = read_s(wave, uop->a);                          \
        type e = read_s(wave, BW_OFFSET_SGPR(BW_SREG_EXEC_LO)); \
        type n = (__VA_ARGS__);                                 \
        write(wave, uop->d, saved);                             \
        write(wave, BW_OFFSET_SGPR(BW_SREG_EXEC_LO), n);        \
        SCC = n != 0;                                           \
        NEXT;                                                   \
    }
#define D_SAVEEXEC(op, ...)                                             \
    DEFINE_EXEC(op, 32, uint32_t, scalar, write_scalar, e, __VA_ARGS__) \
    DEFINE_EXEC(op, 64, uint64_t, bw_sgpr64, write_scalar64, e, __VA_ARGS__)
#define D_WREXEC(op, ...)                                               \
    DEFINE_EXEC(op, 32, uint32_t, scalar, write_scalar, n, __VA_ARGS__) \
    DEFINE_EXEC(op, 64, uint64_t, bw_sgpr64, write_scalar64, n, __VA_ARGS__)

SCALAR_32_32(D_32_32)
SCALAR_32_64(D_32_64)
SCALAR_64_64(D_64_64)
SCALAR_32_32_32(D_32_32_32)
SCALAR_64_64_64(D_64_64_64)
SCALAR_64_64_32(D_64_64_32)
SCALAR_64_32_64(D_64_32_64)
SCALAR_64_32_32(D_64_32_32)
SCALAR_COMPARE_32(D_C32)
SCALAR_COMPARE_64(D_C64)
SCALAR_COMPARE_64_32(D_C64_32)
SCALAR_SAVEEXEC(D_SAVEEXEC)
SCALAR_WREXEC(D_WREXEC)

/* Scalar registers named through M0. The index stays in the SGPRs and VCC: beyond is an illegal access. */
static inline bool relative_ok(uint64_t index, unsigned count)
{
    return index + count <= BW_SREG_VCC_HI + 1u;
}

/* From register e + from to f + to; of 64-bit ones the lowest bit of the index does not count (section 3.3.1.3).
 */
#define DEFINE_MOVREL(op, count, from, to)                                                       \
    HANDLER(x_##op)                                                                              \
    {                                                                                            \
        uint32_t m0 = wave->sgpr[BW_SREG_M0] & ~((count) - 1u);                                  \
        uint64_t a = (uint64_t)(uint32_t)uop->e + (from), d = (uint64_t)(uint32_t)uop->f + (to); \
        (void)m0;                                                                                \
        if (!relative_ok(a, count) || !relative_ok(d, count))                                    \
            return bw_wave_fault(wave, uop, BW_ISA_ILLEGAL_INSTRUCTION, 0, 0, 0);                \
        for (unsigned i = 0; i < (count); i++)                                                   \
            wave->sgpr[BW_SLOT_TEMP + i] = wave->sgpr[a + i];                                    \
        for (unsigned i = 0; i < (count); i++)                                                   \
            write_scalar(wave, BW_OFFSET_SGPR(d + i), wave->sgpr[BW_SLOT_TEMP + i]);             \
        NEXT;                                                                                    \
    }
DEFINE_MOVREL(S_MOVRELS_B32, 1, m0, 0)
DEFINE_MOVREL(S_MOVRELS_B64, 2, m0, 0)
DEFINE_MOVREL(S_MOVRELSD_2_B32, 1, m0 & 0x3ff, m0 >> 16 & 0x3ff)

/* From any scalar source, at a. */
#define DEFINE_MOVRELD(op, count)                                                                \
    HANDLER(x_##op)                                                                              \
    {                                                                                            \
        uint32_t m0 = wave->sgpr[BW_SREG_M0] & ~((count) - 1u), value[count];                    \
        uint64_t d = (uint64_t)(uint32_t)uop->f + m0;                                            \
        if (!relative_ok(d, count))                                                              \
            return bw_wave_fault(wave, uop, BW_ISA_ILLEGAL_INSTRUCTION, 0, 0, 0);                \
        for (unsigned i = 0; i < (count); i++)                                                   \
            value[i] = scalar(wave, uop->a + 4 * (int32_t)i);                                    \
        for (unsigned i = 0; i < (count); i++)                                                   \
            write_scalar(wave, BW_OFFSET_SGPR(d + i), value[i]);                                 \
        STEP;                                                                                    \
    }
DEFINE_MOVRELD(S_MOVRELD_B32, 1)
DEFINE_MOVRELD(S_MOVRELD_B64, 2)

#define R(op, ...)      {BW_GFX11_##op, x_##op},
#define R_EXEC(op, ...) {BW_GFX11_##op##_B32, x_##op##_B32}, {BW_GFX11_##op##_B64, x_##op##_B64},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    SCALAR_32_32(R) SCALAR_32_64(R) SCALAR_64_64(R) SCALAR_32_32_32(R) SCALAR_64_64_64(R) SCALAR_64_64_32(R)
        SCALAR_64_32_64(R) SCALAR_64_32_32(R) SCALAR_COMPARE_32(R) SCALAR_COMPARE_64(R)
            SCALAR_COMPARE_64_32(R) SCALAR_SAVEEXEC(R_EXEC) SCALAR_WREXEC(R_EXEC) R(S_MOVRELS_B32)
                R(S_MOVRELS_B64) R(S_MOVRELD_B32) R(S_MOVRELD_B64) R(S_MOVRELSD_2_B32)};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_salu) = {rows, sizeof rows / sizeof rows[0]};
