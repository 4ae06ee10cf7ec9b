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

static int32_t through(struct bw_translator *t, unsigned kind, int32_t source)
{
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = temp;
    uop->a = source;
    return temp;
}

/* Which half of a packed source feeds which half of the result, and the signs of both. */
static int32_t packed_source(struct bw_translator *t, int32_t source, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    bool low_from_high = inst->op_sel >> index & 1, high_from_high = inst->op_sel_hi >> index & 1;
    uint32_t flip = (inst->neg >> index & 1 ? 0x8000u : 0) | (inst->abs >> index & 1 ? 0x80000000u : 0);
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

/* abs, then neg (RDNA3 ISA document, section 7.2.2 "Input modifiers"); op_sel picks the half first. */
static int32_t with_modifiers(struct bw_translator *t, int32_t source, unsigned index, unsigned type)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    bool neg = inst->neg >> index & 1, abs = inst->abs >> index & 1;
    if (is_packed(type))
        return packed_source(t, source, index);
    if (inst->format ==
        BW_GFX11_VOP3P) /* scalar third operands and integer dot products have no signs to flip */
        return source;
    if ((inst->op_sel >> index & 1) && (row->flags & BW_GFX11_F_OPSEL) && is_16_bit(type))
        source = through(t, BW_UOP_HIGH_HALF, source);
    if (!neg && !abs)
        return source;
    if (type == BW_T_F64)
        return modified_wide(t, source, abs ? 0x7fffffffu : ~0u, neg ? 0x80000000u : 0);
    uint32_t sign = is_f16(type) ? 0x8000u : 0x80000000u;
    return modified(t, source, abs ? ~sign : ~0u, neg ? sign : 0);
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
    if (kind == BW_UOP_COUNT || (denormals_kept(t, type) & 1) || is_class(t->inst->op))
        return source;
    int32_t temp = bw_temp(t, type == BW_T_F64 ? 2 : 1);
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = temp;
    uop->a = source;
    return temp;
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

static int32_t source_offset(struct bw_translator *t, unsigned index)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_operand *operand = &inst->src[index];
    if (operand->kind == BW_OPERAND_NONE)
        return 0;
    if (operand->type == BW_T_MASK)
        return bw_mask_operand(t, operand, false);
    int32_t source = t->kept_source[index] ? t->kept_source[index] : bw_vector_source(t, operand);
    if (index == 0 && inst->dpp != BW_DPP_NONE)
        source = permuted(t, source);
    source = with_modifiers(t, source, index, operand->type);
    return without_denormals(t, source, operand->type);
}

/* Where the result goes when helpers still have to finish it. */
struct finish {
    unsigned kind; /* 0: nothing */
    uint32_t how;  /* bits of FINISH_F32 and its like */
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
    bool omod = inst->omod && !(mode & BW_MODE_IEEE) && !denorm && (row->flags & BW_GFX11_F_OMOD);
    bool clamp =
        inst->clamp && (type == BW_T_F32 || type == BW_T_F64 || type == BW_T_F16 || type == BW_T_V2F16);
    bool flush = flush_kind(type) != BW_UOP_COUNT && !(denormals_kept(t, type) & 2);
    if (omod || clamp || flush) {
        finish.kind = type == BW_T_F64     ? BW_UOP_FINISH_F64
                      : type == BW_T_F16   ? BW_UOP_FINISH_F16
                      : type == BW_T_V2F16 ? BW_UOP_FINISH_V2F16
                                           : BW_UOP_FINISH_F32;
        finish.how = (omod ? inst->omod : 0u) | (clamp ? 4u : 0u) | (mode & BW_MODE_DX10_CLAMP ? 8u : 0u) |
                     (flush ? 16u : 0u);
    }
    return finish;
}

/* The saturating twin of an integer operation, for the clamp bit. */
static unsigned clamped_kind(unsigned op)
{
    static const struct {
        uint16_t op, kind;
    } kinds[] = {
#define KIND(name) {BW_GFX11_##name, BW_UOP_##name##_CLAMP}
        KIND(V_ADD_NC_U32), KIND(V_SUB_NC_U32), KIND(V_SUBREV_NC_U32), KIND(V_ADD_NC_I32), KIND(V_SUB_NC_I32),
        KIND(V_ADD_NC_U16), KIND(V_SUB_NC_U16), KIND(V_ADD_NC_I16),    KIND(V_SUB_NC_I16), KIND(V_PK_ADD_U16),
        KIND(V_PK_SUB_U16), KIND(V_PK_ADD_I16), KIND(V_PK_SUB_I16),
#undef KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].op == op)
            return kinds[i].kind;
    }
    return BW_UOP_COUNT;
}

static bool is_float_type(unsigned type)
{
    return type == BW_T_F16 || type == BW_T_BF16 || type == BW_T_F32 || type == BW_T_F64 ||
           type == BW_T_V2F16 || type == BW_T_V2BF16;
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

static unsigned kind_of(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    if (is_cmpx(inst->op))
        return inst->op - BW_GFX11_V_CMPX_F_F16 + BW_GFX11_V_CMP_F_F16;
    if (!inst->clamp || is_compare(inst->op) || saturates_itself(inst->op) ||
        is_float_type(bw_gfx11_ops[inst->op].dst.type))
        return inst->op;
    unsigned kind = clamped_kind(inst->op);
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

static void emit_finish(struct bw_translator *t, const struct finish *finish, int32_t d, int32_t result)
{
    struct bw_uop *uop = bw_emit(t, finish->kind);
    uop->d = d;
    uop->a = result;
    uop->imm = finish->how;
}

/* Operations whose result MODE's rounding decides. */
static bool is_rounded(unsigned op)
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
    case BW_GFX11_V_DIV_FMAS_F32:
    case BW_GFX11_V_ADD_F64:
    case BW_GFX11_V_MUL_F64:
    case BW_GFX11_V_FMA_F64:
    case BW_GFX11_V_LDEXP_F64:
    case BW_GFX11_V_DIV_FMAS_F64:
        return true;
    default:
        return false;
    }
}

/* The half-precision ones, with the kind that rounds as told; the host's rounding mode does not reach them.
 */
static unsigned rounded_half_kind(unsigned op)
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
    case BW_GFX11_V_CVT_F16_U16:
    case BW_GFX11_V_CVT_F16_I16:
    case BW_GFX11_V_PK_ADD_F16:
    case BW_GFX11_V_PK_MUL_F16:
    case BW_GFX11_V_PK_FMA_F16:
    case BW_GFX11_V_PK_FMAC_F16:
    case BW_GFX11_V_FMA_MIXLO_F16:
    case BW_GFX11_V_FMA_MIXHI_F16:
        return BW_UOP_COUNT; /* refused in such modes */
    default:
        return 0;
    }
}

/* 0 nearest even, 1 up, 2 down, 3 toward zero. */
static uint32_t rounding_of(const struct bw_translator *t)
{
    unsigned type = bw_gfx11_ops[t->inst->op].dst.type;
    return type == BW_T_F32 ? t->program->mode & 3 : t->program->mode >> 2 & 3;
}

static void set_rounding(struct bw_translator *t, uint32_t rounding)
{
    struct bw_uop *uop = bw_emit(t, BW_UOP_SET_ROUNDING);
    uop->a = (int32_t)rounding;
}

/* Without IEEE mode, minimum and maximum do not quiet NaNs. */
static unsigned without_ieee(unsigned op)
{
    static const struct {
        uint16_t op, kind;
    } kinds[] = {
#define KIND(name) {BW_GFX11_##name, BW_UOP_##name##_DX}
        KIND(V_MIN_F32), KIND(V_MAX_F32), KIND(V_MIN_F16), KIND(V_MAX_F16), KIND(V_MIN_F64), KIND(V_MAX_F64),
#undef KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].op == op)
            return kinds[i].kind;
    }
    return op;
}

/* The kind for this MODE; *rounding is set when the host has to be told. */
static unsigned kind_for_mode(struct bw_translator *t, unsigned kind, uint32_t *rounding)
{
    unsigned op = t->inst->op, half_kind = rounded_half_kind(op);
    uint32_t wanted = rounding_of(t);
    *rounding = 0;
    if (!(t->program->mode & BW_MODE_IEEE))
        kind = without_ieee(kind);
    if ((t->program->mode & BW_MODE_FP16_OVFL) && (half_kind || is_packed(bw_gfx11_ops[op].dst.type)))
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    if (!wanted)
        return kind;
    if (is_rounded(op))
        *rounding = wanted;
    else if (half_kind == BW_UOP_COUNT)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    else if (half_kind)
        kind = half_kind;
    return kind;
}

static void emit_half(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[inst->op];
    struct finish finish = finish_of(t);
    unsigned kind = kind_of(t);
    int32_t source[BW_VECTOR_SOURCES];
    t->exec_offset = 0;
    for (unsigned i = 0; i < BW_VECTOR_SOURCES; i++)
        source[i] = source_offset(t, i);
    int32_t d = t->result_offset ? t->result_offset : vector_or_mask(t), e = second_mask(t), result = d;
    bool to_high = (inst->op_sel & 8) && (row->flags & BW_GFX11_F_OPSEL) && is_16_bit(row->dst.type);
    if (finish.kind || to_high)
        result = bw_temp(t, row->dst.type == BW_T_F64 ? 2 : 1);
    /* Accumulators read their destination as the source that the encoding has no field for. */
    if ((row->flags & BW_GFX11_F_RMW) && inst->src[2].kind == BW_OPERAND_NONE)
        source[2] = without_denormals(t, to_high ? through(t, BW_UOP_HIGH_HALF, d) : accumulator(t, d),
                                      row->dst.type);
    uint32_t rounding;
    kind = kind_for_mode(t, kind, &rounding);
    if (rounding)
        set_rounding(t, rounding);
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = result;
    uop->a = source[0];
    uop->b = source[1];
    uop->c = source[2];
    uop->e = e;
    uop->f = inst->neg | (inst->clamp ? 4 : 0);
    uop->g = (int32_t)rounding_of(t);
    if (rounding)
        set_rounding(t, 0);
    if (finish.kind)
        emit_finish(t, &finish, to_high ? result : d, result);
    if (to_high) {
        uop = bw_emit(t, BW_UOP_MERGE_HIGH);
        uop->d = d;
        uop->a = result;
    }
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
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++)
        emit_half(t);
}

void bw_translate_lanes(struct bw_translator *t)
{
    memset(t->kept_source, 0, sizeof t->kept_source);
    emit_half(t);
}
