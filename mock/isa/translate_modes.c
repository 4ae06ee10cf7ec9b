/* What MODE and the clamp bit make of vector operations: which kind performs them. RDNA3 Shader ISA document,
 * sections 3.4.2 "Mode register", 7.2.3.1 "Output operand modifiers", 7.2.4 "Denormalized and rounding
 * modes". */
#include "mock/isa/translate.h"

#include <stddef.h>

/* Integer arithmetic that saturates lane by lane (saturate.c). */
static unsigned bw_kind_saturated(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_MUL_I32_I24:
    case BW_GFX11_V_MUL_U32_U24:
    case BW_GFX11_V_MAD_I32_I24:
    case BW_GFX11_V_MAD_U32_U24:
    case BW_GFX11_V_MAD_I32_I16:
    case BW_GFX11_V_MAD_U32_U16:
    case BW_GFX11_V_MAD_I16:
    case BW_GFX11_V_MAD_U16:
    case BW_GFX11_V_MAD_U64_U32:
    case BW_GFX11_V_MAD_I64_I32:
    case BW_GFX11_V_PK_MAD_I16:
    case BW_GFX11_V_PK_MAD_U16:
    case BW_GFX11_V_PK_MUL_LO_U16:
    case BW_GFX11_V_QSAD_PK_U16_U8:
    case BW_GFX11_V_MQSAD_PK_U16_U8:
    case BW_GFX11_V_SAD_U8:
    case BW_GFX11_V_SAD_HI_U8:
    case BW_GFX11_V_SAD_U16:
    case BW_GFX11_V_SAD_U32:
    case BW_GFX11_V_MSAD_U8:
    case BW_GFX11_V_ADD_CO_U32:
    case BW_GFX11_V_SUB_CO_U32:
    case BW_GFX11_V_SUBREV_CO_U32:
    case BW_GFX11_V_ADD_CO_CI_U32:
    case BW_GFX11_V_SUB_CO_CI_U32:
    case BW_GFX11_V_SUBREV_CO_CI_U32:
        return BW_UOP_SATURATED;
    case BW_GFX11_V_MQSAD_U32_U8:
        return BW_UOP_SATURATED_QUAD;
    default:
        return BW_UOP_COUNT;
    }
}

struct op_kind {
    uint16_t op, kind;
};

static unsigned kind_find(const struct op_kind *kinds, size_t count, unsigned op, unsigned otherwise)
{
    for (size_t i = 0; i < count; i++) {
        if (kinds[i].op == op)
            return kinds[i].kind;
    }
    return otherwise;
}

/* The saturating twin of an integer operation, for the clamp bit. */
unsigned bw_kind_clamped(unsigned op)
{
    static const struct op_kind kinds[] = {
#define KIND(name) {BW_GFX11_##name, BW_UOP_##name##_CLAMP}
        KIND(V_ADD_NC_U32), KIND(V_SUB_NC_U32), KIND(V_SUBREV_NC_U32), KIND(V_ADD_NC_I32), KIND(V_SUB_NC_I32),
        KIND(V_ADD_NC_U16), KIND(V_SUB_NC_U16), KIND(V_ADD_NC_I16),    KIND(V_SUB_NC_I16), KIND(V_PK_ADD_U16),
        KIND(V_PK_SUB_U16), KIND(V_PK_ADD_I16), KIND(V_PK_SUB_I16),
#undef KIND
    };
    return kind_find(kinds, sizeof kinds / sizeof kinds[0], op, bw_kind_saturated(op));
}

/* Integer results that the operation brings into their range by itself: conversions (where the bit controls
 * exceptions only), minima and maxima. */
bool bw_op_stays_in_range(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_CVT_I32_F32:
    case BW_GFX11_V_CVT_U32_F32:
    case BW_GFX11_V_CVT_I32_F64:
    case BW_GFX11_V_CVT_U32_F64:
    case BW_GFX11_V_CVT_I16_F16:
    case BW_GFX11_V_CVT_U16_F16:
    case BW_GFX11_V_CVT_NEAREST_I32_F32:
    case BW_GFX11_V_CVT_FLOOR_I32_F32:
    case BW_GFX11_V_CVT_NORM_I16_F16:
    case BW_GFX11_V_CVT_NORM_U16_F16:
    case BW_GFX11_V_CVT_PK_NORM_I16_F16:
    case BW_GFX11_V_CVT_PK_NORM_U16_F16:
    case BW_GFX11_V_CVT_PK_NORM_I16_F32:
    case BW_GFX11_V_CVT_PK_NORM_U16_F32:
    case BW_GFX11_V_CVT_PK_I16_F32:
    case BW_GFX11_V_CVT_PK_U16_F32:
    case BW_GFX11_V_CVT_PK_U8_F32:
    case BW_GFX11_V_FREXP_EXP_I32_F32:
    case BW_GFX11_V_FREXP_EXP_I32_F64:
    case BW_GFX11_V_FREXP_EXP_I16_F16:
    case BW_GFX11_V_MIN3_I16:
    case BW_GFX11_V_MAX3_I16:
    case BW_GFX11_V_MED3_I16:
    case BW_GFX11_V_MIN3_U16:
    case BW_GFX11_V_MAX3_U16:
    case BW_GFX11_V_MED3_U16:
    case BW_GFX11_V_PK_MIN_I16:
    case BW_GFX11_V_PK_MAX_I16:
    case BW_GFX11_V_PK_MIN_U16:
    case BW_GFX11_V_PK_MAX_U16:
        return true;
    default:
        return false;
    }
}

/* Floating-point dot products: MODE says nothing about their denormals, rounding or overflow (dot2.h). */
bool bw_op_is_dot2(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_DOT2_F32_F16:
    case BW_GFX11_V_DOT2ACC_F32_F16:
    case BW_GFX11_V_DOT2_F32_BF16:
    case BW_GFX11_V_DOT2_F16_F16:
    case BW_GFX11_V_DOT2_BF16_BF16:
        return true;
    default:
        return false;
    }
}

/* Steps of a division whose source is a quotient under way, denormal or not (division.h). */
bool bw_op_keeps_source(unsigned op, unsigned index)
{
    switch (op) {
    case BW_GFX11_V_DIV_FMAS_F32:
    case BW_GFX11_V_DIV_FMAS_F64:
        return true;
    case BW_GFX11_V_DIV_FIXUP_F32:
    case BW_GFX11_V_DIV_FIXUP_F64:
        return index == 0;
    default:
        return false;
    }
}

/* Operations whose result MODE's rounding decides. */
bool bw_op_is_rounded(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_ADD_F32:
    case BW_GFX11_V_SUB_F32:
    case BW_GFX11_V_SUBREV_F32:
    case BW_GFX11_V_MUL_F32:
    case BW_GFX11_V_MUL_DX9_ZERO_F32:
    case BW_GFX11_V_FMA_F32:
    case BW_GFX11_V_FMAC_F32:
    case BW_GFX11_V_FMAMK_F32:
    case BW_GFX11_V_FMAAK_F32:
    case BW_GFX11_V_FMA_DX9_ZERO_F32:
    case BW_GFX11_V_FMAC_DX9_ZERO_F32:
    case BW_GFX11_V_CVT_F32_I32:
    case BW_GFX11_V_CVT_F32_U32:
    case BW_GFX11_V_CVT_F32_F64:
    case BW_GFX11_V_LDEXP_F32:
    case BW_GFX11_V_DIV_SCALE_F32:
    case BW_GFX11_V_DIV_FMAS_F32:
    case BW_GFX11_V_FRACT_F32:
    case BW_GFX11_V_FRACT_F64:
    case BW_GFX11_V_CUBEMA_F32:
    case BW_GFX11_V_MULLIT_F32:
    case BW_GFX11_V_ADD_F64:
    case BW_GFX11_V_MUL_F64:
    case BW_GFX11_V_FMA_F64:
    case BW_GFX11_V_LDEXP_F64:
    case BW_GFX11_V_DIV_SCALE_F64:
    case BW_GFX11_V_DIV_FMAS_F64:
        return true;
    default:
        return false;
    }
}

/* The half-precision ones, with the kind that rounds as told; the host's rounding mode does not reach them.
 */
unsigned bw_kind_rounded_half(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_ADD_F16:
        return BW_UOP_ROUNDED_ADD_F16;
    case BW_GFX11_V_SUB_F16:
        return BW_UOP_ROUNDED_SUB_F16;
    case BW_GFX11_V_SUBREV_F16:
        return BW_UOP_ROUNDED_SUBREV_F16;
    case BW_GFX11_V_MUL_F16:
        return BW_UOP_ROUNDED_MUL_F16;
    case BW_GFX11_V_FMA_F16:
    case BW_GFX11_V_FMAC_F16:
    case BW_GFX11_V_FMAMK_F16:
    case BW_GFX11_V_FMAAK_F16:
        return BW_UOP_ROUNDED_FMA_F16;
    case BW_GFX11_V_CVT_F16_F32:
        return BW_UOP_ROUNDED_CVT_F16_F32;
    case BW_GFX11_V_LDEXP_F16:
        return BW_UOP_ROUNDED_LDEXP_F16;
    case BW_GFX11_V_CVT_F16_U16:
        return BW_UOP_ROUNDED_CVT_F16_U16;
    case BW_GFX11_V_CVT_F16_I16:
        return BW_UOP_ROUNDED_CVT_F16_I16;
    case BW_GFX11_V_FRACT_F16:
        return BW_UOP_ROUNDED_FRACT_F16;
    case BW_GFX11_V_PK_ADD_F16:
        return BW_UOP_ROUNDED_PK_ADD_F16;
    case BW_GFX11_V_PK_MUL_F16:
        return BW_UOP_ROUNDED_PK_MUL_F16;
    case BW_GFX11_V_PK_FMA_F16:
    case BW_GFX11_V_PK_FMAC_F16:
        return BW_UOP_ROUNDED_PK_FMA_F16;
    case BW_GFX11_V_CVT_NORM_I16_F16:
    case BW_GFX11_V_CVT_NORM_U16_F16:
    case BW_GFX11_V_CVT_PK_NORM_I16_F16:
    case BW_GFX11_V_CVT_PK_NORM_U16_F16:
    case BW_GFX11_V_CVT_PK_NORM_I16_F32:
    case BW_GFX11_V_CVT_PK_NORM_U16_F32:
        return BW_UOP_COUNT; /* refused in such modes: whether they follow MODE is not documented */
    default:
        return 0;
    }
}

/* Without IEEE mode, minimum and maximum do not quiet NaNs. */
unsigned bw_kind_without_ieee(unsigned op)
{
    static const struct op_kind kinds[] = {
#define KIND(name) {BW_GFX11_##name, BW_UOP_##name##_DX}
        KIND(V_MIN_F32),    KIND(V_MAX_F32),    KIND(V_MIN_F16),    KIND(V_MAX_F16),  KIND(V_MIN_F64),
        KIND(V_MAX_F64),    KIND(V_MIN3_F32),   KIND(V_MAX3_F32),   KIND(V_MED3_F32), KIND(V_MAXMIN_F32),
        KIND(V_MINMAX_F32), KIND(V_MIN3_F16),   KIND(V_MAX3_F16),   KIND(V_MED3_F16), KIND(V_MAXMIN_F16),
        KIND(V_MINMAX_F16), KIND(V_PK_MIN_F16), KIND(V_PK_MAX_F16),
#undef KIND
    };
    return kind_find(kinds, sizeof kinds / sizeof kinds[0], op, op);
}

/* Minima and maxima return one of their sources: MODE's denormals of results do not apply (notes of
 * V_MIN_F32). These are the ones whose kind depends on MODE.IEEE. */
bool bw_op_selects(unsigned op)
{
    return bw_kind_without_ieee(op) != op;
}
