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
#define OP16(name, ...)                                                         \
    static uint64_t ref_##name(struct ops_values *v)                            \
    {                                                                           \
        uint16_t a = (uint16_t)v->a, b = (uint16_t)v->b, c = (uint16_t)v->c, r; \
        int16_t ia = (int16_t)a, ib = (int16_t)b, ic = (int16_t)c;              \
        (void)a, (void)b, (void)c, (void)ia, (void)ib, (void)ic;                \
        r = (uint16_t)(__VA_ARGS__);                                            \
        return r;                                                               \
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
OP(V_MAD_I32_I16, return (uint32_t)((int16_t)a * (int16_t)b) + (uint32_t)ic;)
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

#define COMPARE_NOTHING(type)                     \
    OP(V_CMP_F_##type, v->out = false; return 0;) \
    OP(V_CMP_T_##type, v->out = true; return 0;)
COMPARE_NOTHING(I32)
COMPARE_NOTHING(U32)
COMPARE_NOTHING(I64)
COMPARE_NOTHING(U64)

/* Packed: the same on both halves. */
static uint32_t low_half(uint64_t v)
{
    return (uint32_t)v & 0xffff;
}
#define EACH_HALF(function, ...)                                                                   \
    static uint64_t function(struct ops_values *v)                                                 \
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
#define PACKED(name, ...) EACH_HALF(ref_##name, __VA_ARGS__)
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

/* Signed where neg says so, when the operation looks at it. */
static __int128 dot_exact(const struct ops_values *v, unsigned bits, bool by_neg)
{
    __int128 sum = by_neg ? (__int128)(int32_t)v->c : (__int128)(uint32_t)v->c;
    for (unsigned shift = 0; shift < 32; shift += bits) {
        uint32_t a = bits_between((uint32_t)v->a, shift, bits), b = bits_between((uint32_t)v->b, shift, bits);
        int64_t x = by_neg && (v->neg & 1) ? sign_extend(a, bits) : (int64_t)a;
        int64_t y = by_neg && (v->neg & 2) ? sign_extend(b, bits) : (int64_t)b;
        sum += x * y;
    }
    return sum;
}
#define DOT(name, bits, by_neg)                                \
    static uint64_t ref_##name(struct ops_values *v)           \
    {                                                          \
        return (uint32_t)(uint64_t)dot_exact(v, bits, by_neg); \
    }
DOT(V_DOT4_U32_U8, 8, false)
DOT(V_DOT8_U32_U4, 4, false)
DOT(V_DOT4_I32_IU8, 8, true)
DOT(V_DOT8_I32_IU4, 4, true)

/* v->lane counts in the wave. */
static uint32_t bits_below(uint32_t mask, int lane)
{
    return lane <= 0 ? 0 : count_bits(lane >= 32 ? mask : mask & ((1u << lane) - 1));
}
OP(V_MBCNT_LO_U32_B32, return b + bits_below(a, (int)v->lane);)
OP(V_MBCNT_HI_U32_B32, return b + bits_below(a, (int)v->lane - 32);)

static __int128 sad_u8(uint32_t a, uint32_t b, bool masked)
{
    __int128 sum = 0;
    for (unsigned s = 0; s < 32; s += 8)
        sum += masked && !(b >> s & 255) ? 0 : difference(a >> s & 255, b >> s & 255);
    return sum;
}

/* Four windows of eight bytes against the same four. */
static uint64_t quad_sad(const struct ops_values *v, bool masked, bool saturates)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        __int128 sum =
            sad_u8((uint32_t)(v->a >> (8 * i)), (uint32_t)v->b, masked) + (v->c >> (16 * i) & 0xffff);
        r |= (uint64_t)(uint16_t)(saturates && sum > 0xffff ? 0xffff : (uint64_t)sum) << (16 * i);
    }
    return r;
}

static uint64_t quad_sad_u32(struct ops_values *v, bool saturates)
{
    uint64_t halves[2] = {0}, sums[2] = {v->c, v->c_high};
    for (unsigned i = 0; i < 4; i++) {
        __int128 sum = sad_u8((uint32_t)(v->a >> (8 * i)), (uint32_t)v->b, true) +
                       (uint32_t)(sums[i / 2] >> (32 * (i % 2)));
        halves[i / 2] |= (uint64_t)(uint32_t)(saturates && sum > UINT32_MAX ? UINT32_MAX : (uint64_t)sum)
                         << (32 * (i % 2));
    }
    v->high = halves[1];
    return halves[0];
}
OP64(V_QSAD_PK_U16_U8, return quad_sad(v, false, false);)
OP64(V_MQSAD_PK_U16_U8, return quad_sad(v, true, false);)
OP64(V_MQSAD_U32_U8, return quad_sad_u32(v, false);)

static uint64_t sat_V_QSAD_PK_U16_U8(struct ops_values *v)
{
    return quad_sad(v, false, true);
}

static uint64_t sat_V_MQSAD_PK_U16_U8(struct ops_values *v)
{
    return quad_sad(v, true, true);
}

static uint64_t sat_V_MQSAD_U32_U8(struct ops_values *v)
{
    return quad_sad_u32(v, true);
}

/* The same with the clamp bit: the exact value, brought into the range of the result (section 7.2.3.1). */
static uint64_t bounded(__int128 exact, __int128 low, __int128 high)
{
    return (uint64_t)(exact < low ? low : exact > high ? high : exact);
}
#define SATURATED(name, low, high, ...)                                      \
    static uint64_t sat_##name(struct ops_values *v)                         \
    {                                                                        \
        uint32_t a = (uint32_t)v->a, b = (uint32_t)v->b, c = (uint32_t)v->c; \
        int32_t ia = (int32_t)a, ib = (int32_t)b, ic = (int32_t)c;           \
        (void)a, (void)b, (void)c, (void)ia, (void)ib, (void)ic;             \
        (void)ref_##name(v); /* for the mask */                              \
        return bounded(__VA_ARGS__, low, high);                              \
    }
#define SATURATED_U32(name, ...) SATURATED(name, 0, UINT32_MAX, __VA_ARGS__)
#define SATURATED_I32(name, ...) SATURATED(name, INT32_MIN, INT32_MAX, __VA_ARGS__)
#define WIDE(x)                  ((__int128)(x))
SATURATED_U32(V_ADD_NC_U32, WIDE(a) + b)
SATURATED_U32(V_SUB_NC_U32, WIDE(a) - b)
SATURATED_U32(V_SUBREV_NC_U32, WIDE(b) - a)
SATURATED_I32(V_ADD_NC_I32, WIDE(ia) + ib)
SATURATED_I32(V_SUB_NC_I32, WIDE(ia) - ib)
SATURATED_I32(V_MUL_I32_I24, WIDE(sign_extend(a & 0xffffff, 24)) * sign_extend(b & 0xffffff, 24))
SATURATED_U32(V_MUL_U32_U24, WIDE(a & 0xffffff) * (b & 0xffffff))
SATURATED_U32(V_ADD_CO_U32, WIDE(a) + b)
SATURATED_U32(V_SUB_CO_U32, WIDE(a) - b)
SATURATED_U32(V_SUBREV_CO_U32, WIDE(b) - a)
SATURATED_U32(V_ADD_CO_CI_U32, WIDE(a) + b + v->in)
SATURATED_U32(V_SUB_CO_CI_U32, WIDE(a) - b - v->in)
SATURATED_U32(V_SUBREV_CO_CI_U32, WIDE(b) - a - v->in)
SATURATED_I32(V_MAD_I32_I24, WIDE(sign_extend(a & 0xffffff, 24)) * sign_extend(b & 0xffffff, 24) + ic)
SATURATED_U32(V_MAD_U32_U24, WIDE(a & 0xffffff) * (b & 0xffffff) + c)
SATURATED_U32(V_MAD_U32_U16, WIDE(a & 0xffff) * (b & 0xffff) + c)
SATURATED_I32(V_MAD_I32_I16, WIDE((int16_t)a) * (int16_t)b + ic)
SATURATED_U32(V_SAD_U8, sad_u8(a, b, false) + c)
SATURATED_U32(V_SAD_HI_U8, (sad_u8(a, b, false) << 16) + c)
SATURATED_U32(V_SAD_U16, WIDE(c) + difference(a & 0xffff, b & 0xffff) + difference(a >> 16, b >> 16))
SATURATED_U32(V_SAD_U32, WIDE(c) + difference(a, b))
SATURATED_U32(V_MSAD_U8, sad_u8(a, b, true) + c)
SATURATED(V_MAD_U64_U32, 0, UINT64_MAX, WIDE((uint64_t)a *b) + v->c)
SATURATED(V_MAD_I64_I32, INT64_MIN, INT64_MAX, WIDE((int64_t)ia *ib) + (int64_t)v->c)
SATURATED(V_ADD_NC_U16, 0, UINT16_MAX, WIDE((uint16_t)a) + (uint16_t)b)
SATURATED(V_SUB_NC_U16, 0, UINT16_MAX, WIDE((uint16_t)a) - (uint16_t)b)
SATURATED(V_ADD_NC_I16, INT16_MIN, INT16_MAX, WIDE((int16_t)a) + (int16_t)b)
SATURATED(V_SUB_NC_I16, INT16_MIN, INT16_MAX, WIDE((int16_t)a) - (int16_t)b)
SATURATED(V_MAD_U16, 0, UINT16_MAX, WIDE((uint16_t)a) * (uint16_t)b + (uint16_t)c)
SATURATED(V_MAD_I16, INT16_MIN, INT16_MAX, WIDE((int16_t)a) * (int16_t)b + (int16_t)c)
SATURATED_U32(V_DOT4_U32_U8, dot_exact(v, 8, false))
SATURATED_U32(V_DOT8_U32_U4, dot_exact(v, 4, false))
SATURATED_I32(V_DOT4_I32_IU8, dot_exact(v, 8, true))
SATURATED_I32(V_DOT8_I32_IU4, dot_exact(v, 4, true))
#define SATURATED_PACKED(name, low, high, ...) EACH_HALF(sat_##name, bounded(WIDE(__VA_ARGS__), low, high))
#define SATURATED_PACKED_U(name, ...)          SATURATED_PACKED(name, 0, UINT16_MAX, __VA_ARGS__)
#define SATURATED_PACKED_I(name, ...)          SATURATED_PACKED(name, INT16_MIN, INT16_MAX, __VA_ARGS__)
SATURATED_PACKED_U(V_PK_ADD_U16, a + b)
SATURATED_PACKED_U(V_PK_SUB_U16, a - b)
SATURATED_PACKED_I(V_PK_ADD_I16, ia + ib)
SATURATED_PACKED_I(V_PK_SUB_I16, ia - ib)
SATURATED_PACKED_U(V_PK_MAD_U16, (int64_t)a *b + c)
SATURATED_PACKED_I(V_PK_MAD_I16, (int64_t)ia *ib + ic)
SATURATED_PACKED_U(V_PK_MUL_LO_U16, (int64_t)a *b)

#define CASE(name, result_kind, ...) \
    {.op = BW_GFX11_##name, .reference = ref_##name, .result = result_kind, .values = "int", __VA_ARGS__},
#define BITS(name)           CASE(name, OPS_BITS)
#define CARRY(name)          CASE(name, OPS_BITS_AND_MASK)
#define SATURATES(name)      CASE(name, OPS_BITS, .saturated = sat_##name)
#define SATURATES_MASK(name) CASE(name, OPS_BITS_AND_MASK, .saturated = sat_##name)
#define IN_RANGE(name)       CASE(name, OPS_BITS, .flags = OPS_CLAMP_NOTHING)
#define MASK(name)           CASE(name, OPS_MASK)
#define CMPX(name) \
    {.op = BW_GFX11_V_CMPX_##name, .reference = ref_V_CMP_##name, .result = OPS_MASK, .values = "int"},
#define MASKS(name)          \
    MASK(V_CMP_##name##_I32) \
    MASK(V_CMP_##name##_U32) \
    MASK(V_CMP_##name##_I16) \
    MASK(V_CMP_##name##_U16) \
    MASK(V_CMP_##name##_I64) \
    MASK(V_CMP_##name##_U64) \
    CMPX(name##_I32) CMPX(name##_U32) CMPX(name##_I16) CMPX(name##_U16) CMPX(name##_I64) CMPX(name##_U64)
#define CONSTANTS(type) MASK(V_CMP_F_##type) MASK(V_CMP_T_##type) CMPX(F_##type) CMPX(T_##type)
/* clang-format off */
static const struct ops_case cases[] = {
    BITS(V_MOV_B32) BITS(V_NOT_B32) BITS(V_BFREV_B32) BITS(V_CLZ_I32_U32) BITS(V_CTZ_I32_B32) BITS(V_CLS_I32)
    BITS(V_CVT_I32_I16) BITS(V_CVT_U32_U16) SATURATES(V_MUL_I32_I24) BITS(V_MUL_HI_I32_I24) SATURATES(V_MUL_U32_U24)
    BITS(V_MUL_HI_U32_U24) BITS(V_MIN_I32) BITS(V_MAX_I32) BITS(V_MIN_U32) BITS(V_MAX_U32) BITS(V_LSHLREV_B32)
    BITS(V_LSHRREV_B32) BITS(V_ASHRREV_I32) BITS(V_AND_B32) BITS(V_OR_B32) BITS(V_XOR_B32) BITS(V_XNOR_B32)
    SATURATES(V_ADD_NC_U32) SATURATES(V_SUB_NC_U32) SATURATES(V_SUBREV_NC_U32) SATURATES(V_ADD_NC_I32) SATURATES(V_SUB_NC_I32) BITS(V_BFM_B32)
    BITS(V_BCNT_U32_B32) BITS(V_MUL_LO_U32) BITS(V_MUL_HI_U32) BITS(V_MUL_HI_I32) BITS(V_CVT_PK_U16_U32)
    BITS(V_CVT_PK_I16_I32) SATURATES(V_MAD_I32_I24) SATURATES(V_MAD_U32_U24) BITS(V_BFE_U32) BITS(V_BFE_I32) BITS(V_BFI_B32)
    BITS(V_LERP_U8) BITS(V_ALIGNBIT_B32) BITS(V_ALIGNBYTE_B32) BITS(V_MIN3_I32) BITS(V_MIN3_U32) BITS(V_MAX3_I32)
    BITS(V_MAX3_U32) BITS(V_MED3_I32) BITS(V_MED3_U32) SATURATES(V_SAD_U8) SATURATES(V_SAD_HI_U8) SATURATES(V_SAD_U16) SATURATES(V_SAD_U32)
    SATURATES(V_MSAD_U8) BITS(V_XOR3_B32) BITS(V_PERM_B32) BITS(V_XAD_U32) BITS(V_LSHL_ADD_U32) BITS(V_ADD_LSHL_U32)
    BITS(V_ADD3_U32) BITS(V_LSHL_OR_B32) BITS(V_AND_OR_B32) BITS(V_OR3_B32) SATURATES(V_MAD_U32_U16) SATURATES(V_MAD_I32_I16)
    BITS(V_MAXMIN_U32) BITS(V_MINMAX_U32) BITS(V_MAXMIN_I32) BITS(V_MINMAX_I32) BITS(V_CNDMASK_B32) SATURATES_MASK(V_ADD_CO_U32)
    SATURATES_MASK(V_SUB_CO_U32) SATURATES_MASK(V_SUBREV_CO_U32) SATURATES_MASK(V_ADD_CO_CI_U32) SATURATES_MASK(V_SUB_CO_CI_U32) SATURATES_MASK(V_SUBREV_CO_CI_U32)
    SATURATES_MASK(V_MAD_U64_U32) SATURATES_MASK(V_MAD_I64_I32) BITS(V_LSHLREV_B64) BITS(V_LSHRREV_B64) BITS(V_ASHRREV_I64)
    BITS(V_NOT_B16) SATURATES(V_ADD_NC_U16) SATURATES(V_SUB_NC_U16) SATURATES(V_ADD_NC_I16) SATURATES(V_SUB_NC_I16) BITS(V_MUL_LO_U16)
    BITS(V_MAX_U16) BITS(V_MAX_I16) BITS(V_MIN_U16) BITS(V_MIN_I16) BITS(V_LSHLREV_B16) BITS(V_LSHRREV_B16)
    BITS(V_ASHRREV_I16) BITS(V_AND_B16) BITS(V_OR_B16) BITS(V_XOR_B16) SATURATES(V_MAD_U16) SATURATES(V_MAD_I16) IN_RANGE(V_MIN3_I16)
    IN_RANGE(V_MAX3_I16) IN_RANGE(V_MED3_I16) IN_RANGE(V_MIN3_U16) IN_RANGE(V_MAX3_U16) IN_RANGE(V_MED3_U16) BITS(V_CNDMASK_B16)
    BITS(V_SAT_PK_U8_I16) SATURATES(V_PK_MAD_I16) SATURATES(V_PK_MAD_U16) SATURATES(V_PK_MUL_LO_U16) SATURATES(V_PK_ADD_I16)
    SATURATES(V_PK_ADD_U16) SATURATES(V_PK_SUB_I16) SATURATES(V_PK_SUB_U16) BITS(V_PK_LSHLREV_B16) BITS(V_PK_LSHRREV_B16)
    BITS(V_PK_ASHRREV_I16) IN_RANGE(V_PK_MAX_I16) IN_RANGE(V_PK_MIN_I16) IN_RANGE(V_PK_MAX_U16) IN_RANGE(V_PK_MIN_U16)
    SATURATES(V_DOT4_U32_U8) SATURATES(V_DOT8_U32_U4) SATURATES(V_DOT4_I32_IU8) SATURATES(V_DOT8_I32_IU4)
    MASKS(LT) MASKS(EQ) MASKS(LE) MASKS(GT) MASKS(NE) MASKS(GE) CONSTANTS(I32)
    CONSTANTS(U32) CONSTANTS(I64) CONSTANTS(U64) BITS(V_MBCNT_LO_U32_B32) BITS(V_MBCNT_HI_U32_B32) SATURATES(V_QSAD_PK_U16_U8)
    SATURATES(V_MQSAD_PK_U16_U8) SATURATES(V_MQSAD_U32_U8)
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
