/* VALU instructions: one uop per half of the wave, with helpers before it for modified sources and behind it
 * for modified results. RDNA3 Shader ISA document, section 7 "Vector ALU operations". */
#include "mock/isa/translate.h"

#include <string.h>

static bool is_f16(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16;
}

static bool is_16_bit(unsigned type)
{
    return is_f16(type) || type == BW_T_B16;
}

static bool is_packed(unsigned type)
{
    return type == BW_T_V2B16 || type == BW_T_V2F16 || type == BW_T_V2BF16;
}

static bool is_float_type(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16 || type == BW_T_F32 || type == BW_T_F64 ||
           type == BW_T_V2F16 || type == BW_T_V2BF16;
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

/* What the operation makes of the source, in that many registers. */
static int32_t through_wide(struct bw_translator *t, unsigned kind, int32_t source, unsigned registers)
{
    int32_t temp = bw_temp(t, registers);
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = temp;
    uop->a = source;
    return temp;
}

static int32_t through(struct bw_translator *t, unsigned kind, int32_t source)
{
    return through_wide(t, kind, source, 1);
}

/* Which half of a packed source feeds which half of the result, and the signs of both. */
static int32_t packed_source(struct bw_translator *t, int32_t source, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    bool low_from_high = inst->op_sel >> index & 1, high_from_high = inst->op_sel_hi >> index & 1;
    uint32_t flip = (inst->neg >> index & 1 ? 0x8000u : 0) | (inst->abs >> index & 1 ? 0x80000000u : 0);
    if (inst->format != BW_GFX11_VOP3P && flip) /* which half a DPP modifier means: not documented */
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    if (inst->format != BW_GFX11_VOP3P || (!low_from_high && high_from_high && !flip))
        return source;
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, BW_UOP_HALVES);
    uop->d = temp;
    uop->a = source;
    uop->e = (low_from_high ? 1 : 0) | (high_from_high ? 2 : 0);
    uop->f = (int32_t)flip;
    return temp;
}

/* What MODE keeps of denormals of a type: bit 0 in sources, bit 1 in results. */
static uint32_t denormals_kept(const struct bw_translator *t, unsigned type)
{
    uint32_t mode = t->program->mode;
    return type == BW_T_F32 ? mode >> 4 & 3 : mode >> 6 & 3;
}

static unsigned flush_kind(unsigned type)
{
    switch (type) {
    case BW_T_F32:
        return BW_UOP_FLUSH_F32;
    case BW_T_F64:
        return BW_UOP_FLUSH_F64;
    case BW_T_F16:
        return BW_UOP_FLUSH_F16;
    case BW_T_V2F16:
        return BW_UOP_FLUSH_V2F16;
    default:
        return BW_UOP_COUNT;
    }
}

static bool is_class(unsigned op)
{
    return op == BW_GFX11_V_CMP_CLASS_F16 || op == BW_GFX11_V_CMP_CLASS_F32 ||
           op == BW_GFX11_V_CMP_CLASS_F64 || op == BW_GFX11_V_CMPX_CLASS_F16 ||
           op == BW_GFX11_V_CMPX_CLASS_F32 || op == BW_GFX11_V_CMPX_CLASS_F64;
}

/* The source with its denormals made zero, where MODE says so. */
static int32_t without_denormals(struct bw_translator *t, int32_t source, unsigned type)
{
    unsigned kind = flush_kind(type);
    if (kind == BW_UOP_COUNT || (denormals_kept(t, type) & 1) || is_class(t->inst->op) ||
        bw_op_is_dot2(t->inst->op))
        return source;
    return through_wide(t, kind, source, type == BW_T_F64 ? 2 : 1);
}

/* V_FMA_MIX: a single, or the half of it that op_sel says where op_sel_hi asks for one; abs, then neg. */
static int32_t mixed_source(struct bw_translator *t, int32_t source, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    uint32_t and_mask = inst->abs >> index & 1 ? 0x7fffffffu : ~0u,
             xor_mask = inst->neg >> index & 1 ? 0x80000000u : 0;
    if (inst->op_sel_hi >> index & 1) {
        unsigned kind = inst->src[index].kind;
        if (kind != BW_OPERAND_VGPR && kind != BW_OPERAND_SREG) /* which number an inline constant is here */
            bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
        if (inst->op_sel >> index & 1)
            source = through(t, BW_UOP_HIGH_HALF, source);
        source = through(t, BW_UOP_WIDEN_HALF, without_denormals(t, source, BW_T_F16));
    } else {
        source = without_denormals(t, source, BW_T_F32);
    }
    return and_mask == ~0u && !xor_mask ? source : modified(t, source, and_mask, xor_mask);
}

/* abs, then neg (RDNA3 ISA document, section 7.2.2 "Input modifiers"); op_sel picks the half first. */
static int32_t with_modifiers(struct bw_translator *t, int32_t source, unsigned index, unsigned type)
{
    const struct bw_inst *inst = t->inst;
    bool neg = inst->neg >> index & 1, abs = inst->abs >> index & 1;
    if (is_packed(type))
        return packed_source(t, source, index);
    if (type == BW_T_MIX)
        return mixed_source(t, source, index);
    if (inst->format == BW_GFX11_VOP3P) { /* integer dot products have no signs to flip */
        if (abs && type == BW_T_F32)      /* what neg_hi does to a single is not documented */
            bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
        return neg && type == BW_T_F32 ? modified(t, source, ~0u, 0x80000000u) : source;
    }
    if ((inst->op_sel >> index & 1) && is_16_bit(type))
        source = through(t, BW_UOP_HIGH_HALF, source);
    if (!neg && !abs)
        return source;
    if (type == BW_T_F64)
        return modified_wide(t, source, abs ? 0x7fffffffu : ~0u, neg ? 0x80000000u : 0);
    uint32_t sign = is_16_bit(type) ? 0x8000u : 0x80000000u;
    return modified(t, source, abs ? ~sign : ~0u, neg ? sign : 0);
}

/* The lanes of source 0 permuted, and the lanes for which the operation runs in a mask of its own. */
static int32_t permuted(struct bw_translator *t, int32_t source)
{
    struct bw_lane_select *select = bw_lane_select_of(t);
    int32_t temp = bw_temp(t, 1), enabled = BW_OFFSET_SGPR(BW_SLOT_TEMP + t->half);
    struct bw_uop *uop = bw_emit(t, BW_UOP_DPP);
    uop->d = temp;
    uop->a = source;
    uop->b = enabled;
    uop->imm = (uintptr_t)select;
    t->exec_offset = enabled;
    return temp;
}

/* An inline constant where a pair is asked for and its low half is not all there is to it. V_DOT2_F32_BF16
 * takes the upper half of the constant's 32 bits, twice (as measured on gfx1100: rocm-systems,
 * rocjitsu/tests/gfx11_dot2_test.cpp); halves of VOPD and the 16-bit dot products have the constant twice
 * (section 7.5.1). 0: nothing special. */
static int32_t paired_constant(struct bw_translator *t, const struct bw_operand *operand)
{
    if (!is_packed(operand->type) || (operand->kind != BW_OPERAND_INT && operand->kind != BW_OPERAND_FLOAT))
        return 0;
    uint32_t value = (uint32_t)bw_gfx11_constant(t->inst, operand) & 0xffff;
    switch (t->inst->op) {
    case BW_GFX11_V_DOT2ACC_F32_F16:
        return t->inst->format == BW_GFX11_VOPD ? bw_constant_vector(t, value * 0x10001u) : 0;
    case BW_GFX11_V_DOT2_F32_BF16:
        if (operand->kind == BW_OPERAND_INT)
            value = value >> 15 ? 0xffff : 0;
        return bw_constant_vector(t, value * 0x10001u);
    case BW_GFX11_V_DOT2_F16_F16:
    case BW_GFX11_V_DOT2_BF16_BF16:
        return bw_constant_vector(t, value * 0x10001u);
    case BW_GFX11_V_PK_FMAC_F16: /* documents contradict each other (section 7.5.1, and what LLVM assumes) */
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
        return 0;
    default:
        return 0;
    }
}

static int32_t source_offset(struct bw_translator *t, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_operand *operand = &inst->src[index];
    if (operand->kind == BW_OPERAND_NONE)
        return 0;
    if (operand->type == BW_T_MASK)
        return bw_mask_operand(t, operand, false);
    int32_t source = paired_constant(t, operand);
    if (!source)
        source = t->kept_source[index] ? t->kept_source[index] : bw_vector_source(t, operand);
    if (index == 0 && inst->dpp != BW_DPP_NONE)
        source = permuted(t, source);
    source = with_modifiers(t, source, index, operand->type);
    return bw_op_keeps_source(inst->op, index) ? source : without_denormals(t, source, operand->type);
}

/* Where the result goes when helpers still have to finish it. */
struct finish {
    unsigned kind; /* 0: nothing */
    uint32_t how;  /* bits of FINISH_F32 and its like */
    uint32_t omod; /* before that; 0: none */
};

static struct finish finish_of(const struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    uint32_t mode = t->program->mode;
    struct finish finish = {0};
    unsigned type = row->dst.type;
    /* Output modifiers count only without IEEE mode and without denormal results (section 7.2.3). */
    uint32_t denorm = type == BW_T_F32 ? mode & 0x20 : mode & 0x80;
    bool omod = inst->omod && !(mode & BW_MODE_IEEE) && !denorm && is_float_type(type) && !is_packed(type);
    bool clamp =
        inst->clamp && (type == BW_T_F32 || type == BW_T_F64 || type == BW_T_F16 || type == BW_T_V2F16);
    bool flush = flush_kind(type) != BW_UOP_COUNT && !(denormals_kept(t, type) & 2) &&
                 !bw_op_selects(inst->op) && !bw_op_is_dot2(inst->op);
    if (omod || clamp || flush) {
        finish.kind = type == BW_T_F64     ? BW_UOP_FINISH_F64
                      : type == BW_T_F16   ? BW_UOP_FINISH_F16
                      : type == BW_T_V2F16 ? BW_UOP_FINISH_V2F16
                                           : BW_UOP_FINISH_F32;
        finish.omod = omod ? inst->omod : 0u;
        finish.how = (clamp ? 4u : 0u) | (mode & BW_MODE_DX10_CLAMP ? 8u : 0u) | (flush ? 16u : 0u);
    }
    return finish;
}

_Static_assert(BW_GFX11_V_CMPX_CLASS_F64 - BW_GFX11_V_CMPX_F_F16 ==
                   BW_GFX11_V_CMP_CLASS_F64 - BW_GFX11_V_CMP_F_F16,
               "each V_CMPX has its V_CMP at the same distance");

static bool is_cmpx(unsigned op)
{
    return op >= BW_GFX11_V_CMPX_F_F16 && op <= BW_GFX11_V_CMPX_CLASS_F64;
}

static bool is_compare(unsigned op)
{
    return op >= BW_GFX11_V_CMP_F_F16 && op <= BW_GFX11_V_CMPX_CLASS_F64;
}

/* Handlers that look at the clamp bit themselves. */
static bool saturates_itself(unsigned op)
{
    return op == BW_GFX11_V_DOT4_I32_IU8 || op == BW_GFX11_V_DOT4_U32_U8 || op == BW_GFX11_V_DOT8_I32_IU4 ||
           op == BW_GFX11_V_DOT8_U32_U4;
}

static bool is_mbcnt(unsigned op)
{
    return op == BW_GFX11_V_MBCNT_LO_U32_B32 || op == BW_GFX11_V_MBCNT_HI_U32_B32;
}

static unsigned kind_of(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    if (is_cmpx(inst->op))
        return inst->op - BW_GFX11_V_CMPX_F_F16 + BW_GFX11_V_CMP_F_F16;
    if (is_mbcnt(inst->op))
        return BW_UOP_MBCNT;
    if (!inst->clamp || is_compare(inst->op) || saturates_itself(inst->op) ||
        bw_op_stays_in_range(inst->op) || is_float_type(bw_gfx11_ops[inst->op].dst.type))
        return inst->op;
    unsigned kind = bw_kind_clamped(inst->op);
    if (kind == BW_UOP_COUNT) {
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
        return inst->op;
    }
    return kind;
}

static int32_t vector_or_mask(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    if (is_cmpx(inst->op))
        return BW_OFFSET_SGPR(BW_SREG_EXEC_LO + t->half);
    if (inst->dst.kind == BW_OPERAND_VGPR)
        return bw_vector_destination(t, &inst->dst);
    return inst->dst.kind == BW_OPERAND_SREG ? bw_mask_operand(t, &inst->dst, true) : 0;
}

/* A second mask operand: the carry or the scale bits that go out, or VCC that V_DIV_FMAS reads. */
static int32_t second_mask(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    if (inst->op == BW_GFX11_V_DIV_FMAS_F32 || inst->op == BW_GFX11_V_DIV_FMAS_F64)
        return BW_OFFSET_SGPR(BW_SREG_VCC_LO + t->half);
    return inst->sdst.kind == BW_OPERAND_SREG ? bw_mask_operand(t, &inst->sdst, true) : 0;
}

/* What an accumulating operation adds to: its own destination, wherever the result goes first. */
static int32_t accumulator(struct bw_translator *t, int32_t d)
{
    return t->result_offset ? bw_vector_destination(t, &t->inst->dst) : d;
}

/* 0 nearest even, 1 up, 2 down, 3 toward zero. */
static uint32_t rounding_of(const struct bw_translator *t)
{
    unsigned type = bw_gfx11_ops[t->inst->op].dst.type;
    return type == BW_T_F32 ? t->program->mode & 3 : t->program->mode >> 2 & 3;
}

static void emit_finish(struct bw_translator *t, const struct finish *finish, int32_t d, int32_t result)
{
    if (finish->omod) {
        struct bw_uop *scale = bw_emit(t, BW_UOP_SCALE_RESULT);
        scale->d = scale->a = result;
        scale->e = (int32_t)finish->omod;
        scale->f = bw_gfx11_ops[t->inst->op].dst.type;
        scale->g = (int32_t)rounding_of(t);
    }
    struct bw_uop *uop = bw_emit(t, finish->kind);
    uop->d = d;
    uop->a = result;
    uop->imm = finish->how;
}

static void set_rounding(struct bw_translator *t, uint32_t rounding)
{
    struct bw_uop *uop = bw_emit(t, BW_UOP_SET_ROUNDING);
    uop->a = (int32_t)rounding;
}

/* The kind for this MODE; *rounding is set when the host has to be told. */
static unsigned kind_for_mode(struct bw_translator *t, unsigned kind, uint32_t *rounding)
{
    unsigned op = t->inst->op, half_kind = bw_kind_rounded_half(op);
    uint32_t wanted = rounding_of(t);
    *rounding = 0;
    if (!(t->program->mode & BW_MODE_IEEE))
        kind = bw_kind_without_ieee(kind);
    if (!wanted)
        return kind;
    if (bw_op_is_rounded(op))
        *rounding = wanted;
    else if (half_kind == BW_UOP_COUNT)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    else if (half_kind)
        kind = half_kind;
    return kind;
}

/* An operation with its operands in place. */
struct operation {
    unsigned kind;
    int32_t source[BW_VECTOR_SOURCES];
    int32_t mask; /* a second mask operand */
};

/* uop->g of the kinds that look at it: the operation, the distance of halves of the wave, or the rounding. */
static int32_t parameter_of(const struct bw_translator *t, unsigned kind)
{
    unsigned op = t->inst->op;
    if (kind == BW_UOP_SATURATED)
        return (int32_t)op;
    if (kind == BW_UOP_MBCNT)
        return (int32_t)(op == BW_GFX11_V_MBCNT_HI_U32_B32) - (int32_t)t->half;
    return (int32_t)rounding_of(t);
}

static void emit_kind(struct bw_translator *t, const struct operation *o, unsigned kind, int32_t result)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = result;
    uop->a = o->source[0];
    uop->b = o->source[1];
    uop->c = o->source[2];
    uop->e = o->mask;
    uop->f = inst->neg | (inst->clamp ? 4 : 0);
    uop->g = parameter_of(t, kind);
}

static void emit_1(struct bw_translator *t, unsigned kind, int32_t d, int32_t a)
{
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = d;
    uop->a = a;
}

/* A single becomes a half, rounded as MODE says. */
static void emit_narrowing(struct bw_translator *t, int32_t result, int32_t single)
{
    uint32_t rounding = t->program->mode >> 2 & 3;
    struct bw_uop *uop = bw_emit(t, rounding ? BW_UOP_ROUNDED_CVT_F16_F32 : BW_GFX11_V_CVT_F16_F32);
    uop->d = result;
    uop->a = single;
    uop->g = (int32_t)rounding;
}

/* V_FMA_MIX: a fused multiply-add in single precision, which becomes a half in two of the three. */
static void emit_mixed(struct bw_translator *t, const struct operation *o, int32_t result)
{
    bool is_single = t->inst->op == BW_GFX11_V_FMA_MIX_F32;
    uint32_t rounding = t->program->mode & 3;
    int32_t sum = is_single ? result : bw_temp(t, 1);
    if (rounding)
        set_rounding(t, rounding);
    emit_kind(t, o, BW_GFX11_V_FMA_F32, sum);
    if (rounding)
        set_rounding(t, 0);
    if (!is_single)
        emit_narrowing(t, result, sum);
}

/* Functions of halves that are computed in single precision; 0 for all other operations. */
static unsigned single_function(unsigned op)
{
    switch (op) {
    case BW_GFX11_V_EXP_F16:
        return BW_GFX11_V_EXP_F32;
    case BW_GFX11_V_LOG_F16:
        return BW_GFX11_V_LOG_F32;
    case BW_GFX11_V_SIN_F16:
        return BW_GFX11_V_SIN_F32;
    case BW_GFX11_V_COS_F16:
        return BW_GFX11_V_COS_F32;
    default:
        return 0;
    }
}

/* With the clamp bit the value saturates and the carry is that of the sum as it was. The carry may go where
 * it comes from, so the value comes first. */
static void emit_saturated_carry(struct bw_translator *t, const struct operation *o, int32_t result)
{
    unsigned dwords = bw_gfx11_type_dwords((enum bw_gfx11_type)bw_gfx11_ops[t->inst->op].dst.type);
    int32_t value = bw_temp(t, dwords), unused = bw_temp(t, dwords);
    emit_kind(t, o, BW_UOP_SATURATED, value);
    emit_kind(t, o, t->inst->op, unused);
    for (unsigned i = 0; i < dwords; i++)
        emit_1(t, BW_GFX11_V_MOV_B32, result + (int32_t)i * BW_VREG_BYTES,
               value + (int32_t)i * BW_VREG_BYTES);
}

static bool is_mix(unsigned op)
{
    return op == BW_GFX11_V_FMA_MIX_F32 || op == BW_GFX11_V_FMA_MIXLO_F16 || op == BW_GFX11_V_FMA_MIXHI_F16;
}

static void emit_operation(struct bw_translator *t, struct operation *o, int32_t result)
{
    unsigned op = t->inst->op, single = single_function(op);
    if (is_mix(op)) {
        emit_mixed(t, o, result);
        return;
    }
    if (single) {
        int32_t wide = through(t, BW_UOP_WIDEN_HALF, o->source[0]);
        emit_1(t, single, wide, wide);
        emit_1(t, BW_GFX11_V_CVT_F16_F32, result, wide);
        return;
    }
    if (o->kind == BW_UOP_SATURATED && (bw_gfx11_ops[op].flags & BW_GFX11_F_SDST)) {
        emit_saturated_carry(t, o, result);
        return;
    }
    uint32_t rounding;
    unsigned kind = kind_for_mode(t, o->kind, &rounding);
    if (rounding)
        set_rounding(t, rounding);
    emit_kind(t, o, kind, result);
    if (rounding)
        set_rounding(t, 0);
}

/* How KEEP_FINITE has to look at a source of this type. */
static uint32_t infinity_of(unsigned type)
{
    return type == BW_T_F16 ? 1 : type == BW_T_F32 || type == BW_T_MIX ? 2 : type == BW_T_V2F16 ? 3 : 0;
}

/* MODE.FP16_OVFL counts for results of half precision. */
static bool keeps_finite(const struct bw_translator *t)
{
    unsigned op = t->inst->op, type = bw_gfx11_ops[op].dst.type;
    return (t->program->mode & BW_MODE_FP16_OVFL) && (type == BW_T_F16 || type == BW_T_V2F16) &&
           !bw_op_is_dot2(op);
}

static void emit_keep_finite(struct bw_translator *t, const struct operation *o, int32_t d, int32_t result)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[t->inst->op];
    bool accumulates = (row->flags & BW_GFX11_F_RMW) && row->src[2].type == BW_T_NONE;
    bool divides = t->inst->op == BW_GFX11_V_RCP_F16 || t->inst->op == BW_GFX11_V_RSQ_F16 ||
                   t->inst->op == BW_GFX11_V_LOG_F16;
    uint32_t how = row->dst.type == BW_T_V2F16 ? 64 : 0;
    for (unsigned i = 0; i < BW_VECTOR_SOURCES; i++)
        how |= infinity_of(i == 2 && accumulates ? row->dst.type : row->src[i].type) << (2 * i);
    struct bw_uop *uop = bw_emit(t, BW_UOP_KEEP_FINITE);
    uop->d = d;
    uop->a = result;
    uop->b = o->source[0];
    uop->c = o->source[1];
    uop->e = o->source[2];
    uop->g = (int32_t)(how | (divides ? 128 : 0));
}

static bool goes_high(const struct bw_inst *inst)
{
    return inst->op == BW_GFX11_V_FMA_MIXHI_F16 ||
           ((inst->op_sel & 8) && is_16_bit(bw_gfx11_ops[inst->op].dst.type));
}

static void emit_half(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    struct finish finish = finish_of(t);
    struct operation operation = {.kind = kind_of(t)};
    t->exec_offset = 0;
    for (unsigned i = 0; i < BW_VECTOR_SOURCES; i++)
        operation.source[i] = source_offset(t, i);
    int32_t d = t->result_offset ? t->result_offset : vector_or_mask(t), result = d;
    operation.mask = second_mask(t);
    bool to_high = goes_high(inst), finite = keeps_finite(t);
    if (finish.kind || to_high || finite)
        result = bw_temp(t, row->dst.type == BW_T_F64 ? 2 : 1);
    /* Accumulators read their destination as the source that the encoding has no field for. */
    if ((row->flags & BW_GFX11_F_RMW) && inst->src[2].kind == BW_OPERAND_NONE)
        operation.source[2] = without_denormals(
            t, to_high ? through(t, BW_UOP_HIGH_HALF, d) : accumulator(t, d), row->dst.type);
    emit_operation(t, &operation, result);
    if (finite)
        emit_keep_finite(t, &operation, finish.kind || to_high ? result : d, result);
    if (finish.kind)
        emit_finish(t, &finish, to_high ? result : d, result);
    if (to_high)
        emit_1(t, BW_UOP_MERGE_HIGH, d, result);
    t->exec_offset = 0;
}

/* In wave64 the first half must not overwrite a scalar register that the second still reads as data. */
static void keep_scalar_sources(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    memset(t->kept_source, 0, sizeof t->kept_source);
    if (t->code->wave_size != 64)
        return;
    const struct bw_operand *masks[] = {&inst->dst, &inst->sdst};
    for (unsigned i = 0; i < BW_VECTOR_SOURCES; i++) {
        const struct bw_operand *source = &inst->src[i];
        for (unsigned m = 0; m < 2; m++) {
            bool overlaps = source->kind == BW_OPERAND_SREG && source->type != BW_T_MASK &&
                            masks[m]->kind == BW_OPERAND_SREG &&
                            masks[m]->index < source->index + source->dwords &&
                            source->index <= masks[m]->index + 1;
            if (!overlaps || t->kept_source[i])
                continue;
            unsigned dwords = source->dwords > 1 ? 2 : 1;
            int32_t from = bw_vector_source(t, source), temp = bw_temp(t, dwords);
            for (unsigned k = 0; k < dwords; k++) {
                struct bw_uop *uop = bw_emit(t, BW_UOP_MODIFY);
                uop->d = temp + (int32_t)k * BW_VREG_BYTES;
                uop->a = from + (int32_t)k * BW_VREG_BYTES;
                uop->e = -1;
            }
            t->kept_source[i] = temp;
        }
    }
}

void bw_translate_vector(struct bw_translator *t)
{
    if (bw_translate_special(t))
        return;
    keep_scalar_sources(t);
    unsigned kept = t->temps_used;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        t->temps_used = kept;
        emit_half(t);
    }
}

void bw_translate_lanes(struct bw_translator *t)
{
    memset(t->kept_source, 0, sizeof t->kept_source);
    emit_half(t);
}
