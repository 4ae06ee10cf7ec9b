/* VALU instructions: one uop per half of the wave, with helpers before it for modified sources and behind it
 * for modified results. RDNA3 Shader ISA document, section 7 "Vector ALU operations". */
#include "mock/isa/translate.h"

#include <string.h>

enum { SOURCES = 3 };

struct vector_operands {
    int32_t source[SOURCES];
    int32_t d;    /* vector destination, or mask */
    int32_t sdst; /* second destination: a mask */
};

static bool is_f16(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16;
}

static bool is_16_bit(unsigned type)
{
    return is_f16(type) || type == BW_T_B16;
}

/* temp = (vector & and) ^ xor, per 32-bit lane. */
static int32_t modified(struct bw_translator *t, int32_t source, uint32_t and_mask, uint32_t xor_mask)
{
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, BW_UOP_MODIFY);
    uop->d = temp;
    uop->a = source;
    uop->e = (int32_t)and_mask;
    uop->f = (int32_t)xor_mask;
    return temp;
}

/* Both dwords of a 64-bit source, the high one modified. */
static int32_t modified_wide(struct bw_translator *t, int32_t source, uint32_t and_mask, uint32_t xor_mask)
{
    int32_t temp = bw_temp(t, 2);
    for (int i = 0; i < 2; i++) {
        struct bw_uop *uop = bw_emit(t, BW_UOP_MODIFY);
        uop->d = temp + i * BW_VREG_BYTES;
        uop->a = source + i * BW_VREG_BYTES;
        uop->e = (int32_t)(i ? and_mask : ~0u);
        uop->f = (int32_t)(i ? xor_mask : 0u);
    }
    return temp;
}

/* temp = one half of the source in its low half. */
static int32_t high_half(struct bw_translator *t, int32_t source)
{
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, BW_UOP_HIGH_HALF);
    uop->d = temp;
    uop->a = source;
    return temp;
}

/* abs, then neg (RDNA3 ISA document, section 7.2.2 "Input modifiers"); op_sel picks the half first. */
static int32_t with_modifiers(struct bw_translator *t, int32_t source, unsigned index, unsigned type)
{
    const struct bw_inst *inst = t->inst;
    bool neg = inst->neg >> index & 1, abs = inst->abs >> index & 1, high = inst->op_sel >> index & 1;
    if (high && is_16_bit(type))
        source = high_half(t, source);
    else if (high)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    if (!neg && !abs)
        return source;
    if (type == BW_T_F64)
        return modified_wide(t, source, abs ? 0x7fffffffu : ~0u, neg ? 0x80000000u : 0);
    uint32_t sign = is_f16(type) ? 0x8000u : 0x80000000u;
    return modified(t, source, abs ? ~sign : ~0u, neg ? sign : 0);
}

static int32_t source_offset(struct bw_translator *t, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_operand *operand = &inst->src[index];
    if (operand->kind == BW_OPERAND_NONE)
        return 0;
    if (operand->type == BW_T_MASK)
        return bw_mask_operand(t, operand, false);
    int32_t source = bw_vector_source(t, operand);
    if ((inst->neg | inst->abs | inst->op_sel) >> index & 1)
        source = with_modifiers(t, source, index, operand->type);
    return source;
}

/* Where the result goes when helpers still have to finish it. */
struct finish {
    bool needed;
    unsigned kind;
    uint32_t how;
};

static struct finish finish_of(const struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    uint32_t mode = t->program->mode;
    struct finish finish = {0};
    unsigned type = row->dst.type;
    /* Output modifiers count only without IEEE mode and without denormal results (section 7.2.3). */
    uint32_t denorm = type == BW_T_F32 ? mode & BW_MODE_DENORM_32 : mode & BW_MODE_DENORM_16_64;
    bool omod = inst->omod && !(mode & BW_MODE_IEEE) && !(denorm & (2 << 4 | 2 << 6)) &&
                (row->flags & BW_GFX11_F_OMOD);
    bool clamp = inst->clamp && (type == BW_T_F32 || type == BW_T_F64 || type == BW_T_F16);
    if (omod || clamp) {
        finish.needed = true;
        finish.kind = type == BW_T_F64   ? BW_UOP_FINISH_F64
                      : type == BW_T_F16 ? BW_UOP_FINISH_F16
                                         : BW_UOP_FINISH_F32;
        finish.how = (omod ? inst->omod : 0u) | (clamp ? 4u : 0u) | (mode & BW_MODE_DX10_CLAMP ? 8u : 0u);
    }
    return finish;
}

/* The saturating twin of an integer operation, for the clamp bit. */
static unsigned clamped_kind(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_ADD_NC_U32:
        return BW_UOP_V_ADD_NC_U32_CLAMP;
    case BW_GFX11_V_SUB_NC_U32:
        return BW_UOP_V_SUB_NC_U32_CLAMP;
    case BW_GFX11_V_SUBREV_NC_U32:
        return BW_UOP_V_SUBREV_NC_U32_CLAMP;
    case BW_GFX11_V_ADD_NC_I32:
        return BW_UOP_V_ADD_NC_I32_CLAMP;
    case BW_GFX11_V_SUB_NC_I32:
        return BW_UOP_V_SUB_NC_I32_CLAMP;
    default:
        return BW_UOP_COUNT;
    }
}

static bool is_float_type(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16 || type == BW_T_F32 || type == BW_T_F64 ||
           type == BW_T_V2F16 || type == BW_T_V2BF16 || type == BW_T_MIX;
}

static unsigned kind_of(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    unsigned kind = inst->op;
    if (inst->clamp && !is_float_type(bw_gfx11_ops[inst->op].dst.type) && inst->format != BW_GFX11_VOPC) {
        kind = clamped_kind(inst->op);
        if (kind == BW_UOP_COUNT)
            bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    }
    return kind < BW_UOP_COUNT ? kind : inst->op;
}

static void emit_half(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    struct vector_operands operands = {0};
    struct finish finish = finish_of(t);
    unsigned kind = kind_of(t);
    for (unsigned i = 0; i < SOURCES; i++)
        operands.source[i] = source_offset(t, i);
    if (inst->dst.kind == BW_OPERAND_VGPR)
        operands.d = bw_vector_destination(t, &inst->dst);
    else if (inst->dst.kind == BW_OPERAND_SREG && inst->dst.type == BW_T_MASK)
        operands.d = bw_mask_operand(t, &inst->dst, true);
    if (inst->sdst.kind == BW_OPERAND_SREG)
        operands.sdst = bw_mask_operand(t, &inst->sdst, true);
    int32_t result = operands.d;
    if (finish.needed)
        result = bw_temp(t, row->dst.type == BW_T_F64 ? 2 : 1);
    /* Accumulators read their destination as the source that the encoding has no field for. */
    if ((row->flags & BW_GFX11_F_RMW) && inst->src[2].kind == BW_OPERAND_NONE)
        operands.source[2] = operands.d;
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = result;
    uop->a = operands.source[0];
    uop->b = operands.source[1];
    uop->c = operands.source[2];
    uop->e = operands.sdst;
    if (finish.needed) {
        uop = bw_emit(t, finish.kind);
        uop->d = operands.d;
        uop->a = result;
        uop->imm = finish.how;
    }
}

/* The bits of MODE under which the plain handlers are right. */
static bool is_plain_mode(uint32_t mode)
{
    return (mode & (BW_MODE_KEY & ~(uint32_t)BW_MODE_DX10_CLAMP)) ==
           (BW_MODE_DENORM_32 | BW_MODE_DENORM_16_64 | BW_MODE_IEEE);
}

void bw_translate_vector(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    if (inst->dpp != BW_DPP_NONE)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    if (!is_plain_mode(t->program->mode))
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++)
        emit_half(t);
}

/* The two halves of VOPD read before either writes (RDNA3 ISA document, section 7.6 "Dual issue VALU"). */
struct dual {
    unsigned op;
    const struct bw_operand *dst, *src;
};

static bool reads(const struct dual *half, unsigned vgpr)
{
    bool accumulates = bw_gfx11_ops[half->op].flags & BW_GFX11_F_RMW;
    for (unsigned i = 0; i < SOURCES; i++) {
        if (half->src[i].kind == BW_OPERAND_VGPR && half->src[i].index == vgpr)
            return true;
    }
    return accumulates && half->dst->index == vgpr;
}

static void emit_dual(struct bw_translator *t, const struct dual *half, int32_t result)
{
    int32_t source[SOURCES] = {0};
    for (unsigned i = 0; i < SOURCES; i++) {
        const struct bw_operand *operand = &half->src[i];
        if (operand->kind == BW_OPERAND_NONE)
            continue;
        source[i] =
            operand->type == BW_T_MASK ? bw_mask_operand(t, operand, false) : bw_vector_source(t, operand);
    }
    if ((bw_gfx11_ops[half->op].flags & BW_GFX11_F_RMW) && half->src[2].kind == BW_OPERAND_NONE)
        source[2] = bw_vector_destination(t, half->dst);
    struct bw_uop *uop = bw_emit(t, half->op);
    uop->d = result;
    uop->a = source[0];
    uop->b = source[1];
    uop->c = source[2];
}

void bw_translate_vopd(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct dual first = {inst->op, &inst->dst, inst->src}, second = {inst->y.op, &inst->y.dst, inst->y.src};
    if (!is_plain_mode(t->program->mode))
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    if (reads(&second, first.dst->index)) {
        struct dual other = first;
        first = second;
        second = other;
    }
    int32_t d = bw_vector_destination(t, first.dst);
    if (!reads(&second, first.dst->index)) {
        emit_dual(t, &first, d);
        emit_dual(t, &second, bw_vector_destination(t, second.dst));
        return;
    }
    /* Each reads what the other writes: the first result waits. */
    int32_t temp = bw_temp(t, 1);
    emit_dual(t, &first, temp);
    emit_dual(t, &second, bw_vector_destination(t, second.dst));
    struct bw_uop *uop = bw_emit(t, BW_GFX11_V_MOV_B32);
    uop->d = d;
    uop->a = temp;
}
