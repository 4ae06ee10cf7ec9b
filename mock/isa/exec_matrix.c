/* Dot products and WMMA: RDNA3 Shader ISA document, section 7.9 "Wave matrix multiply accumulate" and
 * section 16.10; how floating-point products add up: dot2.h. */
#include "mock/isa/dot2.h"
#include "mock/isa/exec_half.h"
#include "mock/isa/program.h"

#define EACH_LANE for (int lane = 0; lane < BW_LANES; lane++)

static inline vu field(vu a, unsigned shift, unsigned bits, bool is_signed)
{
    vu up = a << (32 - bits - shift);
    return is_signed ? (vu)((vi)up >> (int)(32 - bits)) : up >> (32 - bits);
}

/* how: bit 0, 1: source a, b signed; bit 2: the sum saturates, as signed when is_signed. */
static inline vu dot_integer(vu a, vu b, vu c, unsigned bits, uint32_t how, bool is_signed)
{
    vu dot = splat(0);
    for (unsigned shift = 0; shift < 32; shift += bits)
        dot += field(a, shift, bits, how & 1) * field(b, shift, bits, how >> 1 & 1);
    vu sum = c + dot;
    if (!(how & 4))
        return sum;
    vu bound = splat(ALL_LANES);
    vi overflow = (vi)(sum < c);
    if (is_signed) {
        bound = (vu)((vi)c >> 31) ^ 0x7fffffffu;
        overflow = (vi)((c ^ sum) & (dot ^ sum)) < 0;
    }
    return select_u(overflow, bound, sum);
}

#define DOTS(_)                                                            \
    _(V_DOT4_I32_IU8, dot_integer(a, b, c, 8, (uint32_t)uop->f, true))     \
    _(V_DOT4_U32_U8, dot_integer(a, b, c, 8, (uint32_t)uop->f & 4, false)) \
    _(V_DOT8_I32_IU4, dot_integer(a, b, c, 4, (uint32_t)uop->f, true))     \
    _(V_DOT8_U32_U4, dot_integer(a, b, c, 4, (uint32_t)uop->f & 4, false))

/* Lane by lane. Of 16-bit results the other half of d stays; they are taken to be what a step of WMMA is. */
#define FLOAT_DOTS(_)                                                                                     \
    _(V_DOT2_F32_F16, bw_dot2(a, b, c, false))                                                            \
    _(V_DOT2ACC_F32_F16, bw_dot2(a, b, c, false))                                                         \
    _(V_DOT2_F32_BF16, bw_dot2(a, b, c, true))                                                            \
    _(V_DOT2_F16_F16, (d & 0xffff0000u) | bw_dot2_narrow(a, b, c, false, wave->mode & BW_MODE_FP16_OVFL)) \
    _(V_DOT2_BF16_BF16, (d & 0xffff0000u) | bw_dot2_narrow(a, b, c, true, false))

#define DEFINE(op, ...)                                   \
    HANDLER(x_##op)                                       \
    {                                                     \
        const vu *A = BW_AT(const vu, wave, uop->a);      \
        const vu *B = BW_AT(const vu, wave, uop->b);      \
        const vu *C = BW_AT(const vu, wave, uop->c);      \
        vu r[BW_CHUNKS];                                  \
        EACH_CHUNK                                        \
        {                                                 \
            vu a = A[i], b = B[i], c = C[i];              \
            r[i] = (__VA_ARGS__);                         \
        }                                                 \
        write_lanes(wave, uop->d, exec_of(wave, uop), r); \
        NEXT;                                             \
    }
DOTS(DEFINE)

#define DEFINE_LANES(op, ...)                                                       \
    HANDLER(x_##op)                                                                 \
    {                                                                               \
        const uint32_t *A = BW_AT(const uint32_t, wave, uop->a);                    \
        const uint32_t *B = BW_AT(const uint32_t, wave, uop->b);                    \
        const uint32_t *C = BW_AT(const uint32_t, wave, uop->c);                    \
        const uint32_t *D = BW_AT(const uint32_t, wave, uop->d);                    \
        uint32_t r[BW_LANES] __attribute__((aligned(64)));                          \
        EACH_LANE                                                                   \
        {                                                                           \
            uint32_t a = A[lane], b = B[lane], c = C[lane], d = D[lane];            \
            (void)d;                                                                \
            r[lane] = (__VA_ARGS__);                                                \
        }                                                                           \
        write_lanes(wave, uop->d, exec_of(wave, uop), (const vu *)(const void *)r); \
        NEXT;                                                                       \
    }
FLOAT_DOTS(DEFINE_LANES)

/* WMMA, 16x16x16. A: row = lane mod 16, k = 2 * register + half (or 4, 8 elements per register). B: column
 * likewise. C and D: column = lane mod 16; in wave32 register i of lanes 0..15 holds row 2i, of lanes 16..31
 * row 2i + 1; in wave64 register i holds rows 4i..4i + 3 in the four quarters of the wave. EXEC is ignored.
 * uop->g: distance of the halves, 0 in wave32. uop->f: bit 0, 1: a, b signed (integers); bit 2: C and D in
 * the high halves; bit 3: saturate; bit 4: C is one constant for all elements, at c. uop->e: signs flipped of
 * a and b in low halves (bits 0, 1) and high ones (2, 3); of C the sign cleared (4), then flipped (5). */
enum {
    SIZE = 16,
    HOW_A_SIGNED = 1,
    HOW_B_SIGNED = 2,
    HOW_HIGH = 4,
    HOW_SATURATE = 8,
    HOW_CONSTANT_C = 16,
    FLIP_LOW = 1,
    FLIP_HIGH = 4,
    CLEAR_C = 16,
    FLIP_C = 32,
};

static inline const uint32_t *matrix_register(const struct bw_wave *wave, int32_t offset, unsigned index)
{
    return BW_AT(const uint32_t, wave, offset + (int32_t)index * BW_VREG_BYTES);
}

/* Where element (row, column) of C or D lies. */
static inline uint32_t *accumulator(struct bw_wave *wave, int32_t offset, int32_t half_bytes, unsigned row,
                                    unsigned column)
{
    unsigned rows = half_bytes ? 4 : 2, lane = row % rows * SIZE + column;
    int32_t at = offset + (int32_t)(row / rows) * BW_VREG_BYTES + (lane >= BW_LANES ? half_bytes : 0);
    return BW_AT(uint32_t, wave, at) + lane % BW_LANES;
}

/* The bits of element (row, column) of C. */
static inline uint32_t accumulator_bits(struct bw_wave *wave, const struct bw_uop *uop, unsigned row,
                                        unsigned column)
{
    return uop->f & HOW_CONSTANT_C ? *BW_AT(const uint32_t, wave, uop->c)
                                   : *accumulator(wave, uop->c, uop->g, row, column);
}

/* Pairs of a[row][k], or b[column][k]. */
static inline void read_pairs(const struct bw_wave *wave, int32_t offset, uint32_t flips,
                              uint32_t out[SIZE][SIZE / 2])
{
    uint32_t sign = (flips & FLIP_LOW ? 0x8000u : 0) | (flips & FLIP_HIGH ? 0x80000000u : 0);
    for (unsigned i = 0; i < SIZE / 2; i++) {
        const uint32_t *words = matrix_register(wave, offset, i);
        for (unsigned lane = 0; lane < SIZE; lane++)
            out[lane][i] = words[lane] ^ sign;
    }
}

/* An element of C, in the low bits. */
static inline uint32_t accumulator_value(uint32_t bits, bool is_narrow, unsigned shift, uint32_t flips)
{
    uint32_t sign = is_narrow ? 0x8000u : 0x80000000u;
    bits = is_narrow ? bits >> shift & 0xffff : bits;
    return (flips & CLEAR_C ? bits & ~sign : bits) ^ (flips & FLIP_C ? sign : 0);
}

/* is_narrow: C and D have 16 bits, in the half of the register that uop->f says. Pairs of products are added
 * one after the other, each sum rounded to the type of C. */
static void multiply_halves(struct bw_wave *wave, const struct bw_uop *uop, bool is_bfloat, bool is_narrow)
{
    uint32_t a[SIZE][SIZE / 2], b[SIZE][SIZE / 2], d[SIZE][SIZE];
    unsigned shift = uop->f & HOW_HIGH ? 16 : 0;
    uint32_t flips = (uint32_t)uop->e;
    bool keep_finite = wave->mode & BW_MODE_FP16_OVFL;
    read_pairs(wave, uop->a, flips, a);
    read_pairs(wave, uop->b, flips >> 1, b);
    for (unsigned row = 0; row < SIZE; row++) {
        for (unsigned column = 0; column < SIZE; column++) {
            uint32_t sum =
                accumulator_value(accumulator_bits(wave, uop, row, column), is_narrow, shift, flips);
            for (unsigned k = 0; k < SIZE / 2; k++)
                sum = is_narrow ? bw_dot2_narrow(a[row][k], b[column][k], sum, is_bfloat, keep_finite)
                                : bw_dot2(a[row][k], b[column][k], sum, is_bfloat);
            d[row][column] = sum;
        }
    }
    for (unsigned row = 0; row < SIZE; row++) {
        for (unsigned column = 0; column < SIZE; column++) {
            uint32_t *at = accumulator(wave, uop->d, uop->g, row, column), sum = d[row][column];
            *at = is_narrow ? (*at & ~(0xffffu << shift)) | sum << shift : sum;
        }
    }
}

static inline int32_t integer_element(const struct bw_wave *wave, int32_t offset, unsigned bits,
                                      unsigned lane, unsigned k, bool is_signed)
{
    unsigned per_word = 32 / bits;
    uint32_t word = matrix_register(wave, offset, k / per_word)[lane];
    uint32_t up = word << (32 - bits - k % per_word * bits);
    return is_signed ? (int32_t)up >> (32 - bits) : (int32_t)(up >> (32 - bits));
}

static void multiply_integers(struct bw_wave *wave, const struct bw_uop *uop, unsigned bits)
{
    int32_t d[SIZE][SIZE];
    for (unsigned row = 0; row < SIZE; row++) {
        for (unsigned column = 0; column < SIZE; column++) {
            int64_t sum = (int32_t)accumulator_bits(wave, uop, row, column);
            for (unsigned k = 0; k < SIZE; k++)
                sum += (int64_t)integer_element(wave, uop->a, bits, row, k, uop->f & HOW_A_SIGNED) *
                       integer_element(wave, uop->b, bits, column, k, uop->f & HOW_B_SIGNED);
            if (uop->f & HOW_SATURATE)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            d[row][column] = (int32_t)sum;
        }
    }
    for (unsigned row = 0; row < SIZE; row++)
        for (unsigned column = 0; column < SIZE; column++)
            *accumulator(wave, uop->d, uop->g, row, column) = (uint32_t)d[row][column];
}

#define WMMA(op, call) \
    HANDLER(x_##op)    \
    {                  \
        call;          \
        STEP;          \
    }
WMMA(V_WMMA_F32_16X16X16_F16, multiply_halves(wave, uop, false, false))
WMMA(V_WMMA_F32_16X16X16_BF16, multiply_halves(wave, uop, true, false))
WMMA(V_WMMA_F16_16X16X16_F16, multiply_halves(wave, uop, false, true))
WMMA(V_WMMA_BF16_16X16X16_BF16, multiply_halves(wave, uop, true, true))
WMMA(V_WMMA_I32_16X16X16_IU8, multiply_integers(wave, uop, 8))
WMMA(V_WMMA_I32_16X16X16_IU4, multiply_integers(wave, uop, 4))

#define R(op, ...) {BW_GFX11_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    DOTS(R) FLOAT_DOTS(R) R(V_WMMA_F32_16X16X16_F16) R(V_WMMA_F32_16X16X16_BF16) R(V_WMMA_F16_16X16X16_F16)
    R(V_WMMA_BF16_16X16X16_BF16) R(V_WMMA_I32_16X16X16_IU8) R(V_WMMA_I32_16X16X16_IU4)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_matrix) = {rows, sizeof rows / sizeof rows[0]};
