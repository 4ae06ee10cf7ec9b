/* Integer operations whose clamp bit is set and that no faster kind covers: the exact value, brought into the
 * range of the result. Plain loops over the lanes, one table for all levels of the host. RDNA3 Shader ISA
 * document, section 7.2.3.1 "Output operand modifiers". */
#include <stdbool.h>

#include "mock/isa/uops.h"

typedef __int128 wide;

/* One lane's operands, and the carry in. */
struct lane {
    uint64_t a, b, c;
    unsigned carry;
};

static uint64_t bounded(wide exact, wide low, wide high)
{
    return (uint64_t)(exact < low ? low : exact > high ? high : exact);
}

static uint64_t bounded_u32(wide exact)
{
    return bounded(exact, 0, UINT32_MAX);
}

static uint64_t bounded_i32(wide exact)
{
    return bounded(exact, INT32_MIN, INT32_MAX);
}

static int32_t signed24(uint64_t value)
{
    return (int32_t)((uint32_t)value << 8) >> 8;
}

static uint32_t distance(uint32_t x, uint32_t y)
{
    return x > y ? x - y : y - x;
}

/* Absolute differences of four bytes; masked: a byte of b that is 0 does not count. */
static uint64_t sum_of_bytes(uint32_t a, uint32_t b, bool masked)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        if (!masked || (b >> shift & 255))
            sum += distance(a >> shift & 255, b >> shift & 255);
    }
    return sum;
}

static uint64_t quad_sums(const struct lane *l, bool masked)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t sum = sum_of_bytes((uint32_t)(l->a >> (8 * i)), (uint32_t)l->b, masked);
        r |= bounded((wide)(sum + (l->c >> (16 * i) & 0xffff)), 0, UINT16_MAX) << (16 * i);
    }
    return r;
}

/* One half of a packed multiplication. */
static uint64_t packed_half(unsigned op, const struct lane *l, unsigned shift)
{
    uint16_t a = (uint16_t)(l->a >> shift), b = (uint16_t)(l->b >> shift), c = (uint16_t)(l->c >> shift);
    switch (op) {
    case BW_GFX11_V_PK_MAD_I16:
        return bounded((wide)(int16_t)a * (int16_t)b + (int16_t)c, INT16_MIN, INT16_MAX) & 0xffff;
    case BW_GFX11_V_PK_MAD_U16:
        return bounded((wide)a * b + c, 0, UINT16_MAX);
    default:
        return bounded((wide)a * b, 0, UINT16_MAX);
    }
}

static uint64_t with_carry(unsigned op, const struct lane *l)
{
    wide a = (uint32_t)l->a, b = (uint32_t)l->b;
    switch (op) {
    case BW_GFX11_V_ADD_CO_U32:
    case BW_GFX11_V_ADD_CO_CI_U32:
        return bounded_u32(a + b + l->carry);
    case BW_GFX11_V_SUB_CO_U32:
    case BW_GFX11_V_SUB_CO_CI_U32:
        return bounded_u32(a - b - l->carry);
    default:
        return bounded_u32(b - a - l->carry);
    }
}

static uint64_t sum_of_differences(unsigned op, const struct lane *l)
{
    uint32_t a = (uint32_t)l->a, b = (uint32_t)l->b, c = (uint32_t)l->c;
    switch (op) {
    case BW_GFX11_V_SAD_U8:
        return bounded_u32((wide)sum_of_bytes(a, b, false) + c);
    case BW_GFX11_V_SAD_HI_U8:
        return bounded_u32(((wide)sum_of_bytes(a, b, false) << 16) + c);
    case BW_GFX11_V_SAD_U16:
        return bounded_u32((wide)distance(a & 0xffff, b & 0xffff) + distance(a >> 16, b >> 16) + c);
    case BW_GFX11_V_SAD_U32:
        return bounded_u32((wide)distance(a, b) + c);
    default:
        return bounded_u32((wide)sum_of_bytes(a, b, true) + c);
    }
}

static uint64_t saturated(unsigned op, const struct lane *l)
{
    uint32_t a = (uint32_t)l->a, b = (uint32_t)l->b, c = (uint32_t)l->c;
    switch (op) {
    case BW_GFX11_V_MUL_I32_I24:
        return bounded_i32((wide)signed24(a) * signed24(b));
    case BW_GFX11_V_MUL_U32_U24:
        return bounded_u32((wide)(a & 0xffffff) * (b & 0xffffff));
    case BW_GFX11_V_MAD_I32_I24:
        return bounded_i32((wide)signed24(a) * signed24(b) + (int32_t)c);
    case BW_GFX11_V_MAD_U32_U24:
        return bounded_u32((wide)(a & 0xffffff) * (b & 0xffffff) + c);
    case BW_GFX11_V_MAD_I32_I16:
        return bounded_i32((wide)(int16_t)a * (int16_t)b + (int32_t)c);
    case BW_GFX11_V_MAD_U32_U16:
        return bounded_u32((wide)(a & 0xffff) * (b & 0xffff) + c);
    case BW_GFX11_V_MAD_I16:
        return bounded((wide)(int16_t)a * (int16_t)b + (int16_t)c, INT16_MIN, INT16_MAX);
    case BW_GFX11_V_MAD_U16:
        return bounded((wide)(a & 0xffff) * (b & 0xffff) + (c & 0xffff), 0, UINT16_MAX);
    case BW_GFX11_V_MAD_U64_U32:
        return bounded((wide)a * b + l->c, 0, UINT64_MAX);
    case BW_GFX11_V_MAD_I64_I32:
        return bounded((wide)(int32_t)a * (int32_t)b + (int64_t)l->c, INT64_MIN, INT64_MAX);
    case BW_GFX11_V_PK_MAD_I16:
    case BW_GFX11_V_PK_MAD_U16:
    case BW_GFX11_V_PK_MUL_LO_U16:
        return packed_half(op, l, 0) | packed_half(op, l, 16) << 16;
    case BW_GFX11_V_QSAD_PK_U16_U8:
        return quad_sums(l, false);
    case BW_GFX11_V_MQSAD_PK_U16_U8:
        return quad_sums(l, true);
    case BW_GFX11_V_SAD_U8:
    case BW_GFX11_V_SAD_HI_U8:
    case BW_GFX11_V_SAD_U16:
    case BW_GFX11_V_SAD_U32:
    case BW_GFX11_V_MSAD_U8:
        return sum_of_differences(op, l);
    default:
        return with_carry(op, l);
    }
}

static uint64_t read_lane(const struct bw_wave *wave, int32_t offset, unsigned lane, unsigned type)
{
    const uint32_t *words = BW_AT(const uint32_t, wave, offset) + lane;
    return bw_gfx11_type_dwords((enum bw_gfx11_type)type) < 2 ? *words
                                                              : *words | (uint64_t)words[BW_LANES] << 32;
}

static void write_lane(struct bw_wave *wave, int32_t offset, unsigned lane, unsigned type, uint64_t value)
{
    uint32_t *words = BW_AT(uint32_t, wave, offset) + lane;
    if (bw_gfx11_type_bits((enum bw_gfx11_type)type) == 16)
        *words = (*words & 0xffff0000u) | (value & 0xffff);
    else
        *words = (uint32_t)value;
    if (bw_gfx11_type_dwords((enum bw_gfx11_type)type) == 2)
        words[BW_LANES] = (uint32_t)(value >> 32);
}

/* uop->g is the operation. It only computes the value: the mask that goes out, if any, is that of the
 * operation without the clamp bit, which runs before. */
static const struct bw_uop *x_SATURATED(struct bw_wave *wave, const struct bw_uop *uop)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[uop->g];
    bool has_carry = row->src[2].type == BW_T_MASK;
    uint32_t exec = *BW_AT(const uint32_t, wave, uop->x);
    uint32_t carry = has_carry ? *BW_AT(const uint32_t, wave, uop->c) : 0;
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        struct lane l = {
            .a = read_lane(wave, uop->a, lane, row->src[0].type),
            .b = read_lane(wave, uop->b, lane, row->src[1].type),
            .c = uop->c && !has_carry ? read_lane(wave, uop->c, lane, row->src[2].type) : 0,
            .carry = carry >> lane & 1,
        };
        if (exec >> lane & 1)
            write_lane(wave, uop->d, lane, row->dst.type, saturated((unsigned)uop->g, &l));
    }
    return uop + 1;
}

/* V_MQSAD_U32_U8: four sums of 32 bits. */
static const struct bw_uop *x_SATURATED_QUAD(struct bw_wave *wave, const struct bw_uop *uop)
{
    uint32_t exec = *BW_AT(const uint32_t, wave, uop->x);
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        uint64_t a = read_lane(wave, uop->a, lane, BW_T_B64);
        uint32_t b = BW_AT(const uint32_t, wave, uop->b)[lane], r[4];
        const uint32_t *c = BW_AT(const uint32_t, wave, uop->c) + lane;
        for (unsigned i = 0; i < 4; i++)
            r[i] = (uint32_t)bounded_u32((wide)sum_of_bytes((uint32_t)(a >> (8 * i)), b, true) +
                                         c[i * BW_LANES]);
        for (unsigned i = 0; (exec >> lane & 1) && i < 4; i++)
            BW_AT(uint32_t, wave, uop->d)[lane + i * BW_LANES] = r[i];
    }
    return uop + 1;
}

static const struct bw_uop_row rows[] = {
    {BW_UOP_SATURATED, x_SATURATED},
    {BW_UOP_SATURATED_QUAD, x_SATURATED_QUAD},
};
const struct bw_uop_table bw_plain_saturate = {rows, sizeof rows / sizeof rows[0]};
