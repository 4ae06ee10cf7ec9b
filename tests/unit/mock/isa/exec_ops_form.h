/* The forms that one vector operation comes in: encoding, lane selection, modifiers, MODE, EXEC and wave
 * size; and what the RDNA3 ISA document says that each makes of operands and results. Section 7.2.2 (input
 * modifiers), 7.2.3 (output modifiers), 7.2.4 (rounding and denormals), 7.4 (16-bit operands), 7.5 (packed),
 * 7.7 (DPP). */
#ifndef BW_TESTS_EXEC_OPS_FORM_H
#define BW_TESTS_EXEC_OPS_FORM_H

#include "base/rng.h"
#include "mock/isa/inst.h"

/* MODE register, section 3.4.2. */
enum {
    OPS_MODE_DENORM_IN_32 = 0x10,
    OPS_MODE_DENORM_OUT_32 = 0x20,
    OPS_MODE_DENORM_IN_16_64 = 0x40,
    OPS_MODE_DENORM_OUT_16_64 = 0x80,
    OPS_MODE_DX10_CLAMP = 1 << 8,
    OPS_MODE_IEEE = 1 << 9,
    OPS_MODE_FP16_OVFL = 1 << 23,
    OPS_MODE_DEFAULT = 0xf0 | OPS_MODE_DX10_CLAMP | OPS_MODE_IEEE,
};

struct ops_form {
    bool e32;
    uint8_t dpp; /* enum bw_gfx11_dpp */
    uint8_t row_mask, bank_mask;
    bool bound_ctrl, fetch_inactive;
    uint16_t dpp_ctrl;
    uint32_t dpp8;
    uint8_t neg, abs, omod; /* VOP3P: neg_lo and neg_hi */
    uint8_t op_sel, op_sel_hi;
    bool clamp;
    uint32_t mode;
    uint64_t exec;
    unsigned wave_size;
    uint16_t
        source[3]; /* the field of a source that is no VGPR: a scalar register or a constant; 0: a VGPR */
};

enum { OPS_SGPR = 6, OPS_INLINE_INT = 128, OPS_INLINE_FLOAT = 240, OPS_LITERAL_CODE = 255 };
#define OPS_SGPR_VALUE    0xc1a3f00d3f9d3c05ull /* s[6:7] */
#define OPS_LITERAL_VALUE 0xbfb33d33u

/* What a case says about its operation beyond its row. */
enum {
    OPS_SELECTS = 1,         /* returns one of its sources: MODE's denormals of results do not apply */
    OPS_DEFAULT_MODE = 2,    /* what other rounding and denormals do is not documented */
    OPS_NEAREST_ONLY = 4,    /* what other rounding does is not documented */
    OPS_DIVIDES = 8,         /* a source 0 of zero gives a true infinity */
    OPS_CLAMP_NOTHING = 16,  /* an integer result that cannot leave its range, whatever the clamp bit */
    OPS_KEEPS_SOURCES = 32,  /* MODE's denormals of sources do not apply */
    OPS_KEEPS_SOURCE_0 = 64, /* nor here, of the first one */
    OPS_REPEATS_SOURCE = 128 /* source 0 is source 1 or source 2 */
};

static inline bool ops_is_vop3p(const struct bw_gfx11_op_row *row)
{
    return row->format == BW_GFX11_VOP3P;
}

static inline bool ops_is_16_bit(unsigned type)
{
    return type == BW_T_B16 || type == BW_T_F16 || type == BW_T_BF16;
}

static inline bool ops_is_packed(unsigned type)
{
    return type == BW_T_V2B16 || type == BW_T_V2F16 || type == BW_T_V2BF16;
}

static inline bool ops_is_float(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16 || type == BW_T_F32 || type == BW_T_F64 ||
           type == BW_T_V2F16;
}

static inline unsigned ops_mod_count(const struct bw_gfx11_op_row *row)
{
    return row->flags & BW_GFX11_F_MOD3   ? 3
           : row->flags & BW_GFX11_F_MOD2 ? 2
           : row->flags & BW_GFX11_F_MOD1 ? 1
                                          : 0;
}

/* Which lane of the wave feeds this one; -1: outside its row. */
static inline int ops_source_lane(const struct ops_form *form, int lane)
{
    int n = form->dpp_ctrl & 15, at = lane & 15;
    if (form->dpp == BW_DPP_NONE)
        return lane;
    if (form->dpp == BW_DPP_8)
        return (lane & ~7) + (int)(form->dpp8 >> (3 * (lane & 7)) & 7);
    switch (form->dpp_ctrl >> 4) {
    case 0x10: /* row_shl */
        at += n;
        break;
    case 0x11: /* row_shr */
        at -= n;
        break;
    case 0x12: /* row_ror */
        at = (at + 16 - n) % 16;
        break;
    case 0x14: /* row_mirror, row_half_mirror */
        at ^= n ? 7 : 15;
        break;
    case 0x15: /* row_share */
        at = n;
        break;
    case 0x16: /* row_xmask */
        at ^= n;
        break;
    default: /* quad_perm */
        at = (at & ~3) + (form->dpp_ctrl >> (2 * (at & 3)) & 3);
    }
    return at < 0 || at > 15 ? -1 : (lane & ~15) + at;
}

/* Whether a lane takes part at all, and what it reads: a lane, or -1 for zero. The text of BC and FI, not
 * table 31, which contradicts it for lanes out of range. */
static inline bool ops_takes_part(const struct ops_form *form, int lane, int *source)
{
    *source = lane;
    if (!(form->exec >> lane & 1))
        return false;
    if (form->dpp == BW_DPP_NONE)
        return true;
    if (form->dpp == BW_DPP_16 &&
        (!(form->row_mask >> (lane / 16) & 1) || !(form->bank_mask >> (lane % 16 / 4) & 1)))
        return false;
    *source = ops_source_lane(form, lane);
    bool valid = *source >= 0 && (form->fetch_inactive || (form->exec >> *source & 1));
    if (!valid)
        *source = -1;
    return valid || form->dpp == BW_DPP_8 || form->bound_ctrl;
}

static inline bool ops_denormals(const struct ops_form *form, unsigned type, bool in)
{
    if (type == BW_T_F32)
        return form->mode & (in ? OPS_MODE_DENORM_IN_32 : OPS_MODE_DENORM_OUT_32);
    return form->mode & (in ? OPS_MODE_DENORM_IN_16_64 : OPS_MODE_DENORM_OUT_16_64);
}

/* Exponent and sign bits of a float type's representation, repeated for packed ones. */
static inline uint64_t ops_exponent_bits(unsigned type)
{
    return type == BW_T_F64 ? 0x7ff0000000000000ull : type == BW_T_F32 ? 0x7f800000 : 0x7c00;
}

static inline uint64_t ops_sign_bit(unsigned type)
{
    return type == BW_T_F64 ? 1ull << 63 : ops_is_16_bit(type) || ops_is_packed(type) ? 0x8000 : 0x80000000u;
}

static inline uint64_t ops_flushed(uint64_t value, unsigned type)
{
    if (type == BW_T_V2F16)
        return ops_flushed(value & 0xffff, BW_T_F16) | ops_flushed(value >> 16 & 0xffff, BW_T_F16) << 16;
    return value & ops_exponent_bits(type) ? value : value & ops_sign_bit(type);
}

/* The exact single of a half. */
static inline uint32_t ops_widened(uint32_t half)
{
    unsigned exponent = half >> 10 & 31, fraction = half & 0x3ff;
    float magnitude =
        exponent ? ldexpf((float)(fraction | 1024), (int)exponent - 25) : ldexpf((float)fraction, -24);
    uint32_t bits;
    memcpy(&bits, &magnitude, 4);
    if (exponent == 31)
        bits = 0x7f800000u | fraction << 13;
    return bits | (half & 0x8000) << 16;
}

/* Inline floats 240..247: +-0.5, +-1, +-2, +-4; 248: 1 / (2 pi) (section 7.2, table 26). */
static inline uint64_t ops_inline_float(unsigned code, unsigned type)
{
    static const uint64_t inverse[] = {0x3118, 0x3e22f983, 0x3fc45f306dc9c882ull};
    unsigned width = type == BW_T_F64 || type == BW_T_B64 || type == BW_T_I64 ? 2
                     : ops_is_16_bit(type) || ops_is_packed(type)             ? 0
                                                                              : 1;
    static const unsigned bias[] = {15, 127, 1023}, fraction_bits[] = {10, 23, 52};
    if (type == BW_T_BF16)
        return ops_inline_float(code, BW_T_F32) >> 16;
    if (code == 248)
        return inverse[width];
    unsigned step = (code - OPS_INLINE_FLOAT) / 2, sign = code & 1;
    return (uint64_t)(bias[width] - 1 + step) << fraction_bits[width] | (uint64_t)sign << (width == 2 ? 63
                                                                                           : width    ? 31
                                                                                                      : 15);
}

/* A source that is no VGPR, as the operation reads it before modifiers (sections 4.1 and 7.2.2.2). */
static inline uint64_t ops_scalar_value(unsigned code, unsigned type)
{
    if (code < OPS_INLINE_INT)
        return OPS_SGPR_VALUE;
    if (code == OPS_LITERAL_CODE)
        return type == BW_T_F64   ? (uint64_t)OPS_LITERAL_VALUE << 32
               : type == BW_T_I64 ? (uint64_t)(int64_t)(int32_t)OPS_LITERAL_VALUE
                                  : OPS_LITERAL_VALUE;
    uint64_t integer = code <= 192 ? code - 128 : (uint64_t)(int64_t)(192 - (int)code);
    if (type == BW_T_V2BF16) /* the upper half of 32 bits, twice */
        return (uint32_t)(code >= OPS_INLINE_FLOAT ? ops_inline_float(code, BW_T_F32) : integer) / 0x10000u *
               0x10001u;
    if (code >= OPS_INLINE_FLOAT)
        return ops_inline_float(code, type);
    return ops_is_packed(type) ? integer & 0xffff : integer;
}

/* Source 2, or an accumulator, as the operation sees it. */
static inline uint64_t ops_modified(const struct ops_form *form, const struct bw_gfx11_op_row *row,
                                    unsigned index, unsigned type, uint64_t raw)
{
    bool neg = form->neg >> index & 1, abs = form->abs >> index & 1, high = form->op_sel >> index & 1;
    if (type == BW_T_MIX) {
        bool half = form->op_sel_hi >> index & 1;
        uint64_t value = half ? raw >> (high ? 16 : 0) & 0xffff : raw & 0xffffffff;
        if (!ops_denormals(form, half ? BW_T_F16 : BW_T_F32, true))
            value = ops_flushed(value, half ? BW_T_F16 : BW_T_F32);
        value = half ? ops_widened((uint32_t)value) : value;
        value = abs ? value & 0x7fffffff : value;
        return neg ? value ^ 0x80000000u : value;
    }
    if (ops_is_vop3p(row) && ops_is_packed(type)) {
        uint64_t low = raw >> (high ? 16 : 0) & 0xffff,
                 upper = raw >> (form->op_sel_hi >> index & 1 ? 16 : 0) & 0xffff;
        raw = (low ^ (neg ? 0x8000 : 0)) | (upper ^ (abs ? 0x8000 : 0)) << 16;
    } else if (ops_is_vop3p(row)) {
        raw = neg && type == BW_T_F32 ? raw ^ 0x80000000u : raw;
    } else {
        if (ops_is_16_bit(type))
            raw = raw >> (high ? 16 : 0) & 0xffff;
        raw = abs ? raw & ~ops_sign_bit(type) : raw;
        raw = neg ? raw ^ ops_sign_bit(type) : raw;
    }
    bool flushes = type == BW_T_F32 || type == BW_T_F64 || type == BW_T_F16 || type == BW_T_V2F16;
    return flushes && !ops_denormals(form, type, true) ? ops_flushed(raw, type) : raw;
}

static inline bool ops_is_infinite(uint64_t value, unsigned type)
{
    if (type == BW_T_V2F16)
        return ops_is_infinite(value & 0xffff, BW_T_F16);
    return ops_is_float(type) && (value & ~ops_sign_bit(type)) == ops_exponent_bits(type);
}

static inline uint64_t ops_one(unsigned type)
{
    return type == BW_T_F64 ? 0x3ff0000000000000ull : type == BW_T_F32 ? 0x3f800000 : 0x3c00;
}

/* The clamp bit on a float: to [0, 1]; -0 becomes +0, NaN becomes 0 with DX10_CLAMP and stays otherwise. The
 * magnitudes of floats order like their bits. */
static inline uint64_t ops_clamped(const struct ops_form *form, uint64_t value, unsigned type)
{
    uint64_t magnitude = value & ~ops_sign_bit(type);
    if (magnitude > ops_exponent_bits(type))
        return form->mode & OPS_MODE_DX10_CLAMP ? 0 : value;
    if (value & ops_sign_bit(type))
        return 0;
    return magnitude > ops_one(type) ? ops_one(type) : value;
}

/* Times 2, times 4 or divided by 2: a step of the exponent (section 7.2.3.1). What becomes of denormals and
 * of overflow was measured (rocm-systems, rocjitsu, shared/output_modifier.h): the former become +0, halving
 * the smallest normal number gives a zero of its sign, and MODE rounds. */
static inline uint64_t ops_scaled(const struct ops_form *form, uint64_t value, unsigned type)
{
    uint64_t exponent_bits = ops_exponent_bits(type), sign = value & ops_sign_bit(type);
    uint64_t unit = exponent_bits & -exponent_bits, magnitude = value & ~ops_sign_bit(type);
    unsigned rounding = type == BW_T_F32 ? form->mode & 3 : form->mode >> 2 & 3;
    if (magnitude < unit)
        return 0;
    if (magnitude >= exponent_bits)
        return value;
    if (form->omod == 3)
        return magnitude < 2 * unit ? sign : value - unit;
    magnitude += form->omod * unit;
    if (magnitude < exponent_bits)
        return sign | magnitude;
    bool grows = rounding == 0 || rounding == (sign ? 2 : 1);
    if (type == BW_T_F16 && (form->mode & OPS_MODE_FP16_OVFL))
        grows = false;
    return sign | (exponent_bits - !grows);
}

/* One float result, or half of a packed one. */
static inline uint64_t ops_finished(const struct ops_form *form, const struct bw_gfx11_op_row *row,
                                    unsigned type, unsigned flags, uint64_t value)
{
    bool keeps = ops_denormals(form, type, false);
    if (form->omod && (row->flags & BW_GFX11_F_OMOD) && !(form->mode & OPS_MODE_IEEE) && !keeps)
        value = ops_scaled(form, value, type);
    else if (!keeps && !(flags & OPS_SELECTS))
        value = ops_flushed(value, type);
    return form->clamp ? ops_clamped(form, value, type) : value;
}

#endif
