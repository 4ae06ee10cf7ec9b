/* Vector integer operations on 32-bit lanes: RDNA3 Shader ISA document, sections 16.7 (VOP1), 16.8
 * (VOP2), 16.12 (VOP3). */
#include "mock/isa/exec_vec.h"

static inline vu absolute_difference(vu a, vu b)
{
    return select_u((vi)(a > b), a - b, b - a);
}

static inline vu min_u(vu a, vu b)
{
    return select_u((vi)(a < b), a, b);
}

static inline vu max_u(vu a, vu b)
{
    return select_u((vi)(a >= b), a, b);
}

static inline vu min_i(vu a, vu b)
{
    return select_u((vi)a < (vi)b, a, b);
}

static inline vu max_i(vu a, vu b)
{
    return select_u((vi)a >= (vi)b, a, b);
}

static inline vu med3_i(vu a, vu b, vu c)
{
    return max_i(min_i(a, b), min_i(max_i(a, b), c));
}

static inline vu med3_u(vu a, vu b, vu c)
{
    return max_u(min_u(a, b), min_u(max_u(a, b), c));
}

/* Sign-extended low 24 bits. */
static inline vu extend24(vu a)
{
    return (vu)((vi)(a << 8) >> 8);
}

static inline vu extend16(vu a)
{
    return (vu)((vi)(a << 16) >> 16);
}

/* High dword of the product; the even and the odd lanes are multiplied as 64-bit ones. */
static inline vu high_product_u(vu a, vu b)
{
    vq even = ((vq)a & 0xffffffffu) * ((vq)b & 0xffffffffu);
    vq odd = ((vq)a >> 32) * ((vq)b >> 32);
    return (vu)(even >> 32) | (vu)(odd & ~(uint64_t)ALL_LANES);
}

static inline vu high_product_i(vu a, vu b)
{
    vu high = high_product_u(a, b);
    return high - ((vu)((vi)a >> 31) & b) - ((vu)((vi)b >> 31) & a);
}

static inline vu population(vu v)
{
    v = v - (v >> 1 & 0x55555555u);
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0fu;
    return (v * 0x01010101u) >> 24;
}

static inline vu reverse_bits(vu v)
{
    v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
    v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
    v = (v >> 8 & 0x00ff00ffu) | (v & 0x00ff00ffu) << 8;
    return v >> 16 | v << 16;
}

/* Leading zeros; all ones when there is no bit. Smear the highest bit down, count what is above. */
static inline vu leading_zeros(vu v)
{
    vu smeared = v;
    smeared |= smeared >> 1;
    smeared |= smeared >> 2;
    smeared |= smeared >> 4;
    smeared |= smeared >> 8;
    smeared |= smeared >> 16;
    return population(~smeared) | (vu)(v == 0);
}

static inline vu trailing_zeros(vu v)
{
    return population((v & (0u - v)) - 1) | (vu)(v == 0);
}

static inline vu leading_signs(vu v)
{
    return leading_zeros(v ^ (vu)((vi)v >> 31));
}

/* width is 0..31 here: the field holds five bits. */
static inline vu field_u(vu a, vu offset, vu width)
{
    return a >> (offset & 31) & ((splat(1) << (width & 31)) - 1);
}

static inline vu field_i(vu a, vu offset, vu width)
{
    vu bits = width & 31;
    vu up = (32 - bits) & 31;
    vu value = (vu)((vi)a >> (vi)(offset & 31)) << up;
    return (vu)((vi)value >> (vi)up) & (vu)(bits != 0);
}

static inline vu align_bits(vu high, vu low, vu shift)
{
    vu s = shift & 31;
    return low >> s | (high << 1) << (31 - s);
}

static inline vu byte_of(vu v, unsigned n)
{
    return v >> (8 * n) & 255;
}

static inline vu sad_u8(vu a, vu b, vu c)
{
    for (unsigned n = 0; n < 4; n++)
        c += absolute_difference(byte_of(a, n), byte_of(b, n));
    return c;
}

static inline vu msad_u8(vu a, vu b, vu c)
{
    for (unsigned n = 0; n < 4; n++)
        c += absolute_difference(byte_of(a, n), byte_of(b, n)) & (vu)(byte_of(b, n) != 0);
    return c;
}

static inline vu sad_u16(vu a, vu b, vu c)
{
    return c + absolute_difference(a & 0xffff, b & 0xffff) + absolute_difference(a >> 16, b >> 16);
}

static inline vu lerp_u8(vu a, vu b, vu c)
{
    vu r = splat(0);
    for (unsigned n = 0; n < 4; n++)
        r |= (byte_of(a, n) + byte_of(b, n) + (c >> (8 * n) & 1)) >> 1 << (8 * n);
    return r;
}

/* One byte of V_PERM_B32: data is {a, b} with b low. */
static inline vu permuted_byte(vu a, vu b, vu select)
{
    vu word = select_u((vi)((select & 4) != 0), a, b);
    vu plain = word >> ((select & 3) * 8) & 255;
    vu sign_word = select_u((vi)(select >= 10), a, b);
    vu sign = (vu)((vi)(sign_word << select_u((vi)((select & 1) != 0), splat(0), splat(16))) >> 31) & 255;
    vu r = select_u((vi)(select >= 8), sign, plain);
    r &= (vu)(select != 12);
    return r | ((vu)(select >= 13) & 255);
}

static inline vu permute_bytes(vu a, vu b, vu c)
{
    vu r = splat(0);
    for (unsigned n = 0; n < 4; n++)
        r |= permuted_byte(a, b, byte_of(c, n)) << (8 * n);
    return r;
}

static inline vu add_saturated_i(vu a, vu b)
{
    vu sum = a + b;
    vi overflow = (vi)((a ^ sum) & (b ^ sum)) < 0;
    return select_u(overflow, (vu)((vi)a >> 31) ^ 0x7fffffffu, sum);
}

static inline vu sub_saturated_i(vu a, vu b)
{
    vu difference = a - b;
    vi overflow = (vi)((a ^ b) & (a ^ difference)) < 0;
    return select_u(overflow, (vu)((vi)a >> 31) ^ 0x7fffffffu, difference);
}

#define VECTOR_1(_)                     \
    _(V_MOV_B32, a)                     \
    _(V_NOT_B32, ~a)                    \
    _(V_BFREV_B32, reverse_bits(a))     \
    _(V_CLZ_I32_U32, leading_zeros(a))  \
    _(V_CTZ_I32_B32, trailing_zeros(a)) \
    _(V_CLS_I32, leading_signs(a))      \
    _(V_CVT_I32_I16, extend16(a))       \
    _(V_CVT_U32_U16, a & 0xffff)

#define VECTOR_2(_)                                                               \
    _(V_MUL_I32_I24, extend24(a) * extend24(b))                                   \
    _(V_MUL_HI_I32_I24, high_product_i(extend24(a), extend24(b)))                 \
    _(V_MUL_U32_U24, (a & 0xffffff) * (b & 0xffffff))                             \
    _(V_MUL_HI_U32_U24, high_product_u(a & 0xffffff, b & 0xffffff))               \
    _(V_MIN_I32, min_i(a, b))                                                     \
    _(V_MAX_I32, max_i(a, b))                                                     \
    _(V_MIN_U32, min_u(a, b))                                                     \
    _(V_MAX_U32, max_u(a, b))                                                     \
    _(V_LSHLREV_B32, b << (a & 31))                                               \
    _(V_LSHRREV_B32, b >> (a & 31))                                               \
    _(V_ASHRREV_I32, (vu)((vi)b >> (vi)(a & 31)))                                 \
    _(V_AND_B32, a &b)                                                            \
    _(V_OR_B32, a | b)                                                            \
    _(V_XOR_B32, a ^ b)                                                           \
    _(V_XNOR_B32, ~(a ^ b))                                                       \
    _(V_ADD_NC_U32, a + b)                                                        \
    _(V_SUB_NC_U32, a - b)                                                        \
    _(V_SUBREV_NC_U32, b - a)                                                     \
    _(V_ADD_NC_I32, a + b)                                                        \
    _(V_SUB_NC_I32, a - b)                                                        \
    _(V_BFM_B32, ((splat(1) << (a & 31)) - 1) << (b & 31))                        \
    _(V_BCNT_U32_B32, population(a) + b)                                          \
    _(V_MUL_LO_U32, a *b)                                                         \
    _(V_MUL_HI_U32, high_product_u(a, b))                                         \
    _(V_MUL_HI_I32, high_product_i(a, b))                                         \
    _(V_CVT_PK_U16_U32, min_u(a, splat(0xffff)) | min_u(b, splat(0xffff)) << 16)  \
    _(V_CVT_PK_I16_I32, (med3_i(a, splat(0xffff8000u), splat(0x7fff)) & 0xffff) | \
                            med3_i(b, splat(0xffff8000u), splat(0x7fff)) << 16)

/* With the clamp bit: unsigned and signed saturation (RDNA3 ISA document, section 7.2.3 "Clamp"). */
#define VECTOR_2_CLAMP(_)                                       \
    _(V_ADD_NC_U32_CLAMP, a + b, max_u(a + b, (vu)(a + b < a))) \
    _(V_SUB_NC_U32_CLAMP, a - b, (a - b) & (vu)(a >= b))        \
    _(V_SUBREV_NC_U32_CLAMP, b - a, (b - a) & (vu)(b >= a))     \
    _(V_ADD_NC_I32_CLAMP, a + b, add_saturated_i(a, b))         \
    _(V_SUB_NC_I32_CLAMP, a - b, sub_saturated_i(a, b))

#define VECTOR_3(_)                                       \
    _(V_MAD_I32_I24, extend24(a) * extend24(b) + c)       \
    _(V_MAD_U32_U24, (a & 0xffffff) * (b & 0xffffff) + c) \
    _(V_BFE_U32, field_u(a, b, c))                        \
    _(V_BFE_I32, field_i(a, b, c))                        \
    _(V_BFI_B32, (a & b) | (~a & c))                      \
    _(V_LERP_U8, lerp_u8(a, b, c))                        \
    _(V_ALIGNBIT_B32, align_bits(a, b, c))                \
    _(V_ALIGNBYTE_B32, align_bits(a, b, (c & 3) * 8))     \
    _(V_MIN3_I32, min_i(min_i(a, b), c))                  \
    _(V_MIN3_U32, min_u(min_u(a, b), c))                  \
    _(V_MAX3_I32, max_i(max_i(a, b), c))                  \
    _(V_MAX3_U32, max_u(max_u(a, b), c))                  \
    _(V_MED3_I32, med3_i(a, b, c))                        \
    _(V_MED3_U32, med3_u(a, b, c))                        \
    _(V_SAD_U8, sad_u8(a, b, c))                          \
    _(V_SAD_HI_U8, (sad_u8(a, b, splat(0)) << 16) + c)    \
    _(V_SAD_U16, sad_u16(a, b, c))                        \
    _(V_SAD_U32, absolute_difference(a, b) + c)           \
    _(V_MSAD_U8, msad_u8(a, b, c))                        \
    _(V_XOR3_B32, a ^ b ^ c)                              \
    _(V_PERM_B32, permute_bytes(a, b, c))                 \
    _(V_XAD_U32, (a ^ b) + c)                             \
    _(V_LSHL_ADD_U32, (a << (b & 31)) + c)                \
    _(V_ADD_LSHL_U32, (a + b) << (c & 31))                \
    _(V_ADD3_U32, a + b + c)                              \
    _(V_LSHL_OR_B32, a << (b & 31) | c)                   \
    _(V_AND_OR_B32, (a & b) | c)                          \
    _(V_OR3_B32, a | b | c)                               \
    _(V_MAD_U32_U16, (a & 0xffff) * (b & 0xffff) + c)     \
    _(V_MAD_I32_I16, extend16(a) * extend16(b) + c)       \
    _(V_MAXMIN_U32, min_u(max_u(a, b), c))                \
    _(V_MINMAX_U32, max_u(min_u(a, b), c))                \
    _(V_MAXMIN_I32, min_i(max_i(a, b), c))                \
    _(V_MINMAX_I32, max_i(min_i(a, b), c))

#define DEFINE_1(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        const vu *A = BW_AT(const vu, wave, uop->a);      \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vu a = A[i];                                  \
            r[i] = __VA_ARGS__;                           \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
#define DEFINE_2(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        const vu *A = BW_AT(const vu, wave, uop->a);      \
        const vu *B = BW_AT(const vu, wave, uop->b);      \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vu a = A[i], b = B[i];                        \
            r[i] = __VA_ARGS__;                           \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
#define DEFINE_2_CLAMP(op, plain, ...) DEFINE_2(op, __VA_ARGS__)
#define DEFINE_3(op, ...)                                 \
    HANDLER(x_##op)                                       \
    {                                                     \
        const vu *A = BW_AT(const vu, wave, uop->a);      \
        const vu *B = BW_AT(const vu, wave, uop->b);      \
        const vu *C = BW_AT(const vu, wave, uop->c);      \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vu a = A[i], b = B[i], c = C[i];              \
            r[i] = __VA_ARGS__;                           \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }

VECTOR_1(DEFINE_1)
VECTOR_2(DEFINE_2)
VECTOR_2_CLAMP(DEFINE_2_CLAMP)
VECTOR_3(DEFINE_3)

/* d = c's bit ? b : a. */
HANDLER(x_V_CNDMASK_B32)
{
    const vu *A = BW_AT(const vu, wave, uop->a);
    const vu *B = BW_AT(const vu, wave, uop->b);
    uint32_t mask = scalar(wave, uop->c);
    vu r[BW_CHUNKS];
    EACH_CHUNK r[i] = blend(mask, i, B[i], A[i]);
    write_lanes(wave, uop->d, exec_of(wave, uop), r);
    NEXT;
}

/* Carries: in from the mask at c, out to the mask at e; lanes that are off put 0 (RDNA3 ISA document,
 * section 7.4). left and right are the operands in the order of the subtraction. */
#define CARRY(op, sum, carry)                        \
    HANDLER(x_##op)                                  \
    {                                                \
        const vu *A = BW_AT(const vu, wave, uop->a); \
        const vu *B = BW_AT(const vu, wave, uop->b); \
        uint32_t exec = exec_of(wave, uop), out = 0; \
        vu r[BW_CHUNKS];                             \
        EACH_CHUNK                                   \
        {                                            \
            vu a = A[i], b = B[i];                   \
            r[i] = (sum);                            \
            out |= (carry) << (BW_CHUNK_LANES * i);  \
        }                                            \
        write_lanes(wave, uop->d, exec, r);          \
        write_scalar(wave, uop->e, out &exec);       \
        NEXT;                                        \
    }
#define CARRY_IN(op, sum, carry)                                                \
    HANDLER(x_##op)                                                             \
    {                                                                           \
        const vu *A = BW_AT(const vu, wave, uop->a);                            \
        const vu *B = BW_AT(const vu, wave, uop->b);                            \
        uint32_t exec = exec_of(wave, uop), in = scalar(wave, uop->c), out = 0; \
        vu r[BW_CHUNKS];                                                        \
        EACH_CHUNK                                                              \
        {                                                                       \
            vu a = A[i], b = B[i];                                              \
            uint32_t bits = chunk_bits(in, i);                                  \
            r[i] = (sum);                                                       \
            out |= (carry) << (BW_CHUNK_LANES * i);                             \
        }                                                                       \
        write_lanes(wave, uop->d, exec, r);                                     \
        write_scalar(wave, uop->e, out &exec);                                  \
        NEXT;                                                                   \
    }
CARRY(V_ADD_CO_U32, a + b, below_bits(r[i], a))
CARRY(V_SUB_CO_U32, a - b, below_bits(a, b))
CARRY(V_SUBREV_CO_U32, b - a, below_bits(b, a))
CARRY_IN(V_ADD_CO_CI_U32, add_bits(a + b, in, i), below_bits(r[i], a) | (equal_bits(r[i], a) & bits))
CARRY_IN(V_SUB_CO_CI_U32, ~add_bits(b + ~a, in, i), below_bits(a, b) | (equal_bits(a, b) & bits))
CARRY_IN(V_SUBREV_CO_CI_U32, ~add_bits(a + ~b, in, i), below_bits(b, a) | (equal_bits(a, b) & bits))

/* Helpers of the translator work on all lanes: their results are temporaries. */
HANDLER(x_MODIFY)
{
    const vu *A = BW_AT(const vu, wave, uop->a);
    vu *d = BW_AT(vu, wave, uop->d);
    vu and_mask = splat((uint32_t)uop->e), xor_mask = splat((uint32_t)uop->f);
    EACH_CHUNK d[i] = (A[i] & and_mask) ^ xor_mask;
    NEXT;
}

/* Four bytes for each lane, counted from lane uop->e. */
HANDLER(x_LANE_OFFSETS)
{
    vu *d = BW_AT(vu, wave, uop->d);
    EACH_CHUNK d[i] = (VU_IOTA + (uint32_t)(uop->e + BW_CHUNK_LANES * i)) * 4;
    NEXT;
}

HANDLER(x_HIGH_HALF)
{
    const vu *A = BW_AT(const vu, wave, uop->a);
    vu *d = BW_AT(vu, wave, uop->d);
    EACH_CHUNK d[i] = A[i] >> 16;
    NEXT;
}

#define R(op, ...)       {BW_GFX11_##op, x_##op},
#define R_CLAMP(op, ...) {BW_UOP_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    VECTOR_1(R) VECTOR_2(R) VECTOR_3(R) VECTOR_2_CLAMP(R_CLAMP)
    R_CLAMP(MODIFY) R_CLAMP(HIGH_HALF) R_CLAMP(LANE_OFFSETS)
    R(V_CNDMASK_B32) R(V_ADD_CO_U32) R(V_SUB_CO_U32) R(V_SUBREV_CO_U32)
    R(V_ADD_CO_CI_U32) R(V_SUB_CO_CI_U32) R(V_SUBREV_CO_CI_U32)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_int) = {rows, sizeof rows / sizeof rows[0]};
