/* Goal: each integer operation of the VALU agrees with what the RDNA3 ISA document says of it, written here
 * once more in plain C, on corner cases and random operands. */
#include "tests/check.h"

#include "mock/isa/pool.h"
#include "tests/unit/mock/isa/exec_ops.h"

#define OP(name, ...)                                                        \
    static uint64_t ref_##name(struct ops_values *v)                         \
    {                                                                        \
        uint32_t a = (uint32_t)v->a, b = (uint32_t)v->b, c = (uint32_t)v->c; \
        int32_t ia = (int32_t)a, ib = (int32_t)b, ic = (int32_t)c;           \
        (void)a, (void)b, (void)c, (void)ia, (void)ib, (void)ic;             \
        __VA_ARGS__                                                          \
    }
/* 16-bit results leave the high half of the destination. */
#define OP16(name, ...)                                                         \
    static uint64_t ref_##name(struct ops_values *v)                            \
    {                                                                           \
        uint16_t a = (uint16_t)v->a, b = (uint16_t)v->b, c = (uint16_t)v->c, r; \
        int16_t ia = (int16_t)a, ib = (int16_t)b, ic = (int16_t)c;              \
        (void)a, (void)b, (void)c, (void)ia, (void)ib, (void)ic;                \
        r = (uint16_t)(__VA_ARGS__);                                            \
        return (v->d & 0xffff0000u) | r;                                        \
    }
#define OP64(name, ...)                              \
    static uint64_t ref_##name(struct ops_values *v) \
    {                                                \
        uint64_t a = v->a, b = v->b, c = v->c;       \
        (void)a, (void)b, (void)c;                   \
        __VA_ARGS__                                  \
    }

static uint32_t bits_between(uint32_t value, unsigned low, unsigned count)
{
    uint32_t r = 0;
    for (unsigned i = 0; i < count && low + i < 32; i++)
        r |= (value >> (low + i) & 1) << i;
    return r;
}

static int32_t sign_extend(uint32_t value, unsigned bits)
{
    if (bits == 0)
        return 0;
    return bits < 32 && (value >> (bits - 1) & 1) ? (int32_t)(value | ~0u << bits) : (int32_t)value;
}

static uint32_t difference(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

static int64_t median(int64_t a, int64_t b, int64_t c)
{
    if ((a <= b && b <= c) || (c <= b && b <= a))
        return b;
    return (b <= a && a <= c) || (c <= a && a <= b) ? a : c;
}

static uint32_t count_bits(uint32_t v)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < 32; i++)
        n += v >> i & 1;
    return n;
}

static uint8_t permute(uint64_t data, uint32_t select)
{
    if (select >= 13)
        return 0xff;
    if (select == 12)
        return 0;
    if (select >= 8)
        return data >> (16 * (select - 8) + 15) & 1 ? 0xff : 0;
    return (uint8_t)(data >> (8 * select));
}

OP(V_MOV_B32, return a;)
OP(V_NOT_B32, return ~a;)
OP(V_BFREV_B32, uint32_t r = 0; for (unsigned i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i); return r;)
OP(V_CLZ_I32_U32, for (unsigned i = 0; i < 32; i++) if (a >> (31 - i) & 1) return i; return ~0u;)
OP(V_CTZ_I32_B32, for (unsigned i = 0; i < 32; i++) if (a >> i & 1) return i; return ~0u;)
OP(V_CLS_I32, for (unsigned i = 1; i < 32; i++) if ((a >> (31 - i) & 1) != a >> 31) return i; return ~0u;)
OP(V_CVT_I32_I16, return (uint32_t)(int16_t)a;)
OP(V_CVT_U32_U16, return a & 0xffff;)
OP(V_MUL_I32_I24, return (uint32_t)(sign_extend(a & 0xffffff, 24) * (int64_t)sign_extend(b & 0xffffff, 24));)
OP(V_MUL_HI_I32_I24,
   return (uint32_t)(sign_extend(a & 0xffffff, 24) * (int64_t)sign_extend(b & 0xffffff, 24) >> 32);)
OP(V_MUL_U32_U24, return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff));)
OP(V_MUL_HI_U32_U24, return (uint64_t)(a & 0xffffff) * (b & 0xffffff) >> 32;)
OP(V_MIN_I32, return (uint32_t)(ia < ib ? ia : ib);)
OP(V_MAX_I32, return (uint32_t)(ia > ib ? ia : ib);)
OP(V_MIN_U32, return a < b ? a : b;)
OP(V_MAX_U32, return a > b ? a : b;)
OP(V_LSHLREV_B32, return (uint32_t)(b << (a % 32));)
OP(V_LSHRREV_B32, return b >> (a % 32);)
OP(V_ASHRREV_I32, return (uint32_t)(ib >> (a % 32));)
OP(V_AND_B32, return a & b;)
OP(V_OR_B32, return a | b;)
OP(V_XOR_B32, return a ^ b;)
OP(V_XNOR_B32, return (uint32_t) ~(a ^ b);)
OP(V_ADD_NC_U32, return (uint32_t)(a + b);)
OP(V_SUB_NC_U32, return (uint32_t)(a - b);)
OP(V_SUBREV_NC_U32, return (uint32_t)(b - a);)
OP(V_ADD_NC_I32, return (uint32_t)(a + b);)
OP(V_SUB_NC_I32, return (uint32_t)(a - b);)
OP(V_BFM_B32, return (uint32_t)(((1ull << (a % 32)) - 1) << (b % 32));)
OP(V_BCNT_U32_B32, return (uint32_t)(count_bits(a) + b);)
OP(V_MUL_LO_U32, return (uint32_t)((uint64_t)a * b);)
OP(V_MUL_HI_U32, return (uint64_t)a * b >> 32;)
OP(V_MUL_HI_I32, return (uint32_t)((int64_t)ia * ib >> 32);)
OP(V_CVT_PK_U16_U32, return (a > 0xffff ? 0xffff : a) | (b > 0xffff ? 0xffffu : b) << 16;)
OP(V_CVT_PK_I16_I32, return (uint32_t)((uint16_t)(ia > 32767    ? 32767
                                                  : ia < -32768 ? -32768
                                                                : ia) |
                                       (uint32_t)(uint16_t)(ib > 32767    ? 32767
                                                            : ib < -32768 ? -32768
                                                                          : ib)
                                           << 16);)
OP(V_MAD_I32_I24,
   return (uint32_t)(sign_extend(a & 0xffffff, 24) * (int64_t)sign_extend(b & 0xffffff, 24) + ic);)
OP(V_MAD_U32_U24, return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff) + c);)
OP(V_BFE_U32, return bits_between(a, b % 32, c % 32);)
OP(V_BFE_I32, return (uint32_t)sign_extend(bits_between((uint32_t)(ia >> (b % 32)), 0, c % 32), c % 32);)
OP(V_BFI_B32, return (a & b) | (~a & c);)
OP(V_LERP_U8, uint32_t r = 0;
   for (unsigned s = 0; s < 32; s += 8) r |= (((a >> s & 255) + (b >> s & 255) + (c >> s & 1)) >> 1) << s;
   return r;)
OP(V_ALIGNBIT_B32, return (uint32_t)(((uint64_t)a << 32 | b) >> (c % 32));)
OP(V_ALIGNBYTE_B32, return (uint32_t)(((uint64_t)a << 32 | b) >> (8 * (c % 4)));)
OP(V_MIN3_I32, int32_t m = ia < ib ? ia : ib; return (uint32_t)(m < ic ? m : ic);)
OP(V_MIN3_U32, uint32_t m = a < b ? a : b; return m < c ? m : c;)
OP(V_MAX3_I32, int32_t m = ia > ib ? ia : ib; return (uint32_t)(m > ic ? m : ic);)
OP(V_MAX3_U32, uint32_t m = a > b ? a : b; return m > c ? m : c;)
OP(V_MED3_I32, return (uint32_t)median(ia, ib, ic);)
OP(V_MED3_U32, return (uint32_t)median(a, b, c);)
OP(V_SAD_U8, for (unsigned s = 0; s < 32; s += 8) c += difference(a >> s & 255, b >> s & 255); return c;)
OP(V_SAD_HI_U8, uint32_t r = 0;
   for (unsigned s = 0; s < 32; s += 8) r += difference(a >> s & 255, b >> s & 255);
   return (uint32_t)((r << 16) + c);)
OP(V_SAD_U16, return (uint32_t)(c + difference(a & 0xffff, b & 0xffff) + difference(a >> 16, b >> 16));)
OP(V_SAD_U32, return (uint32_t)(c + difference(a, b));)
OP(V_MSAD_U8,
   for (unsigned s = 0; s < 32; s += 8) if (b >> s & 255) c += difference(a >> s & 255, b >> s & 255);
   return c;)
OP(V_XOR3_B32, return a ^ b ^ c;)
OP(V_PERM_B32, uint32_t r = 0;
   for (unsigned s = 0; s < 32; s += 8) r |= (uint32_t)permute((uint64_t)a << 32 | b, c >> s & 255) << s;
   return r;)
OP(V_XAD_U32, return (uint32_t)((a ^ b) + c);)
OP(V_LSHL_ADD_U32, return (uint32_t)((a << (b % 32)) + c);)
OP(V_ADD_LSHL_U32, return (uint32_t)((a + b) << (c % 32));)
OP(V_ADD3_U32, return (uint32_t)(a + b + c);)
OP(V_LSHL_OR_B32, return (uint32_t)(a << (b % 32)) | c;)
OP(V_AND_OR_B32, return (a & b) | c;)
OP(V_OR3_B32, return a | b | c;)
OP(V_MAD_U32_U16, return (uint32_t)((a & 0xffff) * (b & 0xffff) + c);)
OP(V_MAD_I32_I16, return (uint32_t)((int16_t)a * (int16_t)b + ic + 0u);)
OP(V_MAXMIN_U32, uint32_t m = a > b ? a : b; return m < c ? m : c;)
OP(V_MINMAX_U32, uint32_t m = a < b ? a : b; return m > c ? m : c;)
OP(V_MAXMIN_I32, int32_t m = ia > ib ? ia : ib; return (uint32_t)(m < ic ? m : ic);)
OP(V_MINMAX_I32, int32_t m = ia < ib ? ia : ib; return (uint32_t)(m > ic ? m : ic);)
OP(V_CNDMASK_B32, return v->in ? b : a;)
OP(V_ADD_CO_U32, v->out = (uint64_t)a + b > 0xffffffffu; return (uint32_t)(a + b);)
OP(V_SUB_CO_U32, v->out = b > a; return (uint32_t)(a - b);)
OP(V_SUBREV_CO_U32, v->out = a > b; return (uint32_t)(b - a);)
OP(V_ADD_CO_CI_U32, v->out = (uint64_t)a + b + v->in > 0xffffffffu; return (uint32_t)(a + b + v->in);)
OP(V_SUB_CO_CI_U32, v->out = (uint64_t)b + v->in > a; return (uint32_t)(a - b - v->in);)
OP(V_SUBREV_CO_CI_U32, v->out = (uint64_t)a + v->in > b; return (uint32_t)(b - a - v->in);)
OP(V_MAD_U64_U32, unsigned __int128 s = (unsigned __int128)((uint64_t)a * b) + v->c; v->out = s >> 64 & 1;
   return (uint64_t)s;)
OP(V_MAD_I64_I32, __int128 s = (__int128)((int64_t)ia * ib) + (int64_t)v->c; v->out = (uint64_t)(s >> 64) & 1;
   return (uint64_t)s;)
OP64(V_LSHLREV_B64, return b << (a % 64);)
OP64(V_LSHRREV_B64, return b >> (a % 64);)
OP64(V_ASHRREV_I64, return (uint64_t)((int64_t)b >> (a % 64));)
OP16(V_NOT_B16, ~a)
OP16(V_ADD_NC_U16, a + b)
OP16(V_SUB_NC_U16, a - b)
OP16(V_ADD_NC_I16, a + b)
OP16(V_SUB_NC_I16, a - b)
OP16(V_MUL_LO_U16, (uint32_t)a *b)
OP16(V_MAX_U16, a > b ? a : b)
OP16(V_MAX_I16, ia > ib ? ia : ib)
OP16(V_MIN_U16, a < b ? a : b)
OP16(V_MIN_I16, ia < ib ? ia : ib)
OP16(V_LSHLREV_B16, b << (a % 16))
OP16(V_LSHRREV_B16, b >> (a % 16))
OP16(V_ASHRREV_I16, ib >> (a % 16))
OP16(V_AND_B16, a &b)
OP16(V_OR_B16, a | b)
OP16(V_XOR_B16, a ^ b)
OP16(V_MAD_U16, (uint32_t)a *b + c)
OP16(V_MAD_I16, ia *ib + ic)
OP16(V_MIN3_I16, ia < ib ? (ia < ic ? ia : ic) : (ib < ic ? ib : ic))
OP16(V_MAX3_I16, ia > ib ? (ia > ic ? ia : ic) : (ib > ic ? ib : ic))
OP16(V_MED3_I16, median(ia, ib, ic))
OP16(V_MIN3_U16, a < b ? (a < c ? a : c) : (b < c ? b : c))
OP16(V_MAX3_U16, a > b ? (a > c ? a : c) : (b > c ? b : c))
OP16(V_MED3_U16, median(a, b, c))
OP16(V_CNDMASK_B16, v->in ? b : a)
OP16(V_SAT_PK_U8_I16, (ia < 0     ? 0
                       : ia > 255 ? 255
                                  : ia) |
                          ((int16_t)(v->a >> 16) < 0     ? 0
                           : (int16_t)(v->a >> 16) > 255 ? 255
                                                         : (int16_t)(v->a >> 16))
                              << 8)

#define COMPARE(name, condition)                                                  \
    OP(V_CMP_##name##_I32, v->out = ia condition ib; return 0;)                   \
    OP(V_CMP_##name##_U32, v->out = a condition b; return 0;)                     \
    OP(V_CMP_##name##_I16, v->out = (int16_t)a condition(int16_t) b; return 0;)   \
    OP(V_CMP_##name##_U16, v->out = (uint16_t)a condition(uint16_t) b; return 0;) \
    OP64(V_CMP_##name##_I64, v->out = (int64_t)a condition(int64_t) b; return 0;) \
    OP64(V_CMP_##name##_U64, v->out = a condition b; return 0;)
COMPARE(LT, <)
COMPARE(EQ, ==)
COMPARE(LE, <=)
COMPARE(GT, >)
COMPARE(NE, !=)
COMPARE(GE, >=)

/* Packed: the same on both halves. */
static uint32_t low_half(uint64_t v)
{
    return (uint32_t)v & 0xffff;
}
#define PACKED(name, ...)                                                                          \
    static uint64_t ref_##name(struct ops_values *v)                                               \
    {                                                                                              \
        uint32_t r = 0;                                                                            \
        for (unsigned shift = 0; shift < 32; shift += 16) {                                        \
            uint16_t a = (uint16_t)low_half(v->a >> shift), b = (uint16_t)low_half(v->b >> shift); \
            uint16_t c = (uint16_t)low_half(v->c >> shift);                                        \
            int16_t ia = (int16_t)a, ib = (int16_t)b, ic = (int16_t)c;                             \
            (void)a, (void)b, (void)c, (void)ia, (void)ib, (void)ic;                               \
            r |= (uint32_t)(uint16_t)(__VA_ARGS__) << shift;                                       \
        }                                                                                          \
        return r;                                                                                  \
    }
PACKED(V_PK_MAD_I16, ia *ib + ic)
PACKED(V_PK_MAD_U16, (uint32_t)a *b + c)
PACKED(V_PK_MUL_LO_U16, (uint32_t)a *b)
PACKED(V_PK_ADD_I16, ia + ib)
PACKED(V_PK_ADD_U16, a + b)
PACKED(V_PK_SUB_I16, ia - ib)
PACKED(V_PK_SUB_U16, a - b)
PACKED(V_PK_LSHLREV_B16, b << (a % 16))
PACKED(V_PK_LSHRREV_B16, b >> (a % 16))
PACKED(V_PK_ASHRREV_I16, ib >> (a % 16))
PACKED(V_PK_MAX_I16, ia > ib ? ia : ib)
PACKED(V_PK_MIN_I16, ia < ib ? ia : ib)
PACKED(V_PK_MAX_U16, a > b ? a : b)
PACKED(V_PK_MIN_U16, a < b ? a : b)

static uint32_t dot(uint32_t a, uint32_t b, uint32_t c, unsigned bits)
{
    uint32_t mask = (1u << bits) - 1;
    for (unsigned shift = 0; shift < 32; shift += bits)
        c += (a >> shift & mask) * (b >> shift & mask);
    return c;
}
OP(V_DOT4_U32_U8, return dot(a, b, c, 8);)
OP(V_DOT8_U32_U4, return dot(a, b, c, 4);)
OP(V_DOT4_I32_IU8, return dot(a, b, c, 8);) /* unsigned without neg */
OP(V_DOT8_I32_IU4, return dot(a, b, c, 4);)

#define BITS(name)  {BW_GFX11_##name, ref_##name, OPS_BITS, "int"},
#define MASK(name)  {BW_GFX11_##name, ref_##name, OPS_MASK, "int"},
#define CARRY(name) {BW_GFX11_##name, ref_##name, OPS_BITS_AND_MASK, "int"},
#define MASKS(name)          \
    MASK(V_CMP_##name##_I32) \
    MASK(V_CMP_##name##_U32) \
    MASK(V_CMP_##name##_I16) MASK(V_CMP_##name##_U16) MASK(V_CMP_##name##_I64) MASK(V_CMP_##name##_U64)
/* clang-format off */
static const struct ops_case cases[] = {
    BITS(V_MOV_B32) BITS(V_NOT_B32) BITS(V_BFREV_B32) BITS(V_CLZ_I32_U32) BITS(V_CTZ_I32_B32) BITS(V_CLS_I32)
    BITS(V_CVT_I32_I16) BITS(V_CVT_U32_U16) BITS(V_MUL_I32_I24) BITS(V_MUL_HI_I32_I24) BITS(V_MUL_U32_U24)
    BITS(V_MUL_HI_U32_U24) BITS(V_MIN_I32) BITS(V_MAX_I32) BITS(V_MIN_U32) BITS(V_MAX_U32) BITS(V_LSHLREV_B32)
    BITS(V_LSHRREV_B32) BITS(V_ASHRREV_I32) BITS(V_AND_B32) BITS(V_OR_B32) BITS(V_XOR_B32) BITS(V_XNOR_B32)
    BITS(V_ADD_NC_U32) BITS(V_SUB_NC_U32) BITS(V_SUBREV_NC_U32) BITS(V_ADD_NC_I32) BITS(V_SUB_NC_I32) BITS(V_BFM_B32)
    BITS(V_BCNT_U32_B32) BITS(V_MUL_LO_U32) BITS(V_MUL_HI_U32) BITS(V_MUL_HI_I32) BITS(V_CVT_PK_U16_U32)
    BITS(V_CVT_PK_I16_I32) BITS(V_MAD_I32_I24) BITS(V_MAD_U32_U24) BITS(V_BFE_U32) BITS(V_BFE_I32) BITS(V_BFI_B32)
    BITS(V_LERP_U8) BITS(V_ALIGNBIT_B32) BITS(V_ALIGNBYTE_B32) BITS(V_MIN3_I32) BITS(V_MIN3_U32) BITS(V_MAX3_I32)
    BITS(V_MAX3_U32) BITS(V_MED3_I32) BITS(V_MED3_U32) BITS(V_SAD_U8) BITS(V_SAD_HI_U8) BITS(V_SAD_U16) BITS(V_SAD_U32)
    BITS(V_MSAD_U8) BITS(V_XOR3_B32) BITS(V_PERM_B32) BITS(V_XAD_U32) BITS(V_LSHL_ADD_U32) BITS(V_ADD_LSHL_U32)
    BITS(V_ADD3_U32) BITS(V_LSHL_OR_B32) BITS(V_AND_OR_B32) BITS(V_OR3_B32) BITS(V_MAD_U32_U16) BITS(V_MAD_I32_I16)
    BITS(V_MAXMIN_U32) BITS(V_MINMAX_U32) BITS(V_MAXMIN_I32) BITS(V_MINMAX_I32) BITS(V_CNDMASK_B32) CARRY(V_ADD_CO_U32)
    CARRY(V_SUB_CO_U32) CARRY(V_SUBREV_CO_U32) CARRY(V_ADD_CO_CI_U32) CARRY(V_SUB_CO_CI_U32) CARRY(V_SUBREV_CO_CI_U32)
    CARRY(V_MAD_U64_U32) CARRY(V_MAD_I64_I32) BITS(V_LSHLREV_B64) BITS(V_LSHRREV_B64) BITS(V_ASHRREV_I64)
    BITS(V_NOT_B16) BITS(V_ADD_NC_U16) BITS(V_SUB_NC_U16) BITS(V_ADD_NC_I16) BITS(V_SUB_NC_I16) BITS(V_MUL_LO_U16)
    BITS(V_MAX_U16) BITS(V_MAX_I16) BITS(V_MIN_U16) BITS(V_MIN_I16) BITS(V_LSHLREV_B16) BITS(V_LSHRREV_B16)
    BITS(V_ASHRREV_I16) BITS(V_AND_B16) BITS(V_OR_B16) BITS(V_XOR_B16) BITS(V_MAD_U16) BITS(V_MAD_I16) BITS(V_MIN3_I16)
    BITS(V_MAX3_I16) BITS(V_MED3_I16) BITS(V_MIN3_U16) BITS(V_MAX3_U16) BITS(V_MED3_U16) BITS(V_CNDMASK_B16)
    BITS(V_SAT_PK_U8_I16) BITS(V_PK_MAD_I16) BITS(V_PK_MAD_U16) BITS(V_PK_MUL_LO_U16) BITS(V_PK_ADD_I16)
    BITS(V_PK_ADD_U16) BITS(V_PK_SUB_I16) BITS(V_PK_SUB_U16) BITS(V_PK_LSHLREV_B16) BITS(V_PK_LSHRREV_B16)
    BITS(V_PK_ASHRREV_I16) BITS(V_PK_MAX_I16) BITS(V_PK_MIN_I16) BITS(V_PK_MAX_U16) BITS(V_PK_MIN_U16)
    BITS(V_DOT4_U32_U8) BITS(V_DOT8_U32_U4) BITS(V_DOT4_I32_IU8) BITS(V_DOT8_I32_IU4)
    MASKS(LT) MASKS(EQ) MASKS(LE) MASKS(GT) MASKS(NE) MASKS(GE)
};
/* clang-format on */

static void test_operations(void)
{
    for (int level = (int)bw_isa_host_level(); level >= BW_ISA_LEVEL_BASE; level--) {
        struct exec_machine machine;
        if (!BW_EQ(exec_machine_init(&machine, 1), 0))
            return;
        bw_isa_pool_destroy(machine.pool);
        if (BW_EQ(bw_isa_pool_create_level(1, (enum bw_isa_level)level, &machine.pool), 0))
            BW_EQ(ops_check_all(&machine, cases, sizeof cases / sizeof cases[0]), 0);
        exec_machine_free(&machine);
    }
}

OPS_TEST_MAIN("isa exec int", {"integer operations agree with the ISA document", test_operations})
