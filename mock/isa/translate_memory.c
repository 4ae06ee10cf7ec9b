/* SMEM, FLAT, DS, MUBUF. */
#include "mock/isa/translate.h"

static uint32_t next_range(struct bw_translator *t)
{
    return t->code->range_next++ % BW_RANGE_ENTRIES;
}

static void translate_smem(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {0};
    if (inst->dst.kind == BW_OPERAND_NONE) { /* cache maintenance */
        bw_emit(t, inst->op);
        return;
    }
    operands.a = bw_scalar_source(t, &inst->src[0]);
    operands.b =
        inst->src[1].kind == BW_OPERAND_NONE ? bw_constant_vector(t, 0) : bw_scalar_source(t, &inst->src[1]);
    operands.d = bw_scalar_destination(t, &inst->dst);
    if (inst->dst.index == BW_SREG_NULL && inst->dst.dwords > 2)
        bw_refuse(t, BW_ISA_ILLEGAL_INSTRUCTION, BW_REASON_OPERAND);
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->d = operands.d;
    uop->a = operands.a;
    uop->b = operands.b;
    uop->g = inst->offset;
    uop->e = (int32_t)next_range(t);
}

/* The FLAT rows' helpers stand in the order vector, flat, scratch, three for each row in the order of the
 * rows. */
static unsigned flat_kind(const struct bw_inst *inst)
{
    static const struct {
        uint16_t op, vector;
    } kinds[] = {
#define KIND(name) {BW_GFX11_##name, BW_UOP_##name##_VECTOR}
        KIND(FLAT_LOAD_U8),          KIND(FLAT_LOAD_I8),         KIND(FLAT_LOAD_U16),
        KIND(FLAT_LOAD_I16),         KIND(FLAT_LOAD_B32),        KIND(FLAT_LOAD_B64),
        KIND(FLAT_LOAD_B96),         KIND(FLAT_LOAD_B128),       KIND(FLAT_STORE_B8),
        KIND(FLAT_STORE_B16),        KIND(FLAT_STORE_B32),       KIND(FLAT_STORE_B64),
        KIND(FLAT_STORE_B96),        KIND(FLAT_STORE_B128),      KIND(FLAT_LOAD_D16_U8),
        KIND(FLAT_LOAD_D16_I8),      KIND(FLAT_LOAD_D16_B16),    KIND(FLAT_LOAD_D16_HI_U8),
        KIND(FLAT_LOAD_D16_HI_I8),   KIND(FLAT_LOAD_D16_HI_B16), KIND(FLAT_STORE_D16_HI_B8),
        KIND(FLAT_STORE_D16_HI_B16),
#undef KIND
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (kinds[i].op != inst->op)
            continue;
        if (inst->segment == BW_SEGMENT_FLAT)
            return kinds[i].vector + 1u;
        if (inst->segment == BW_SEGMENT_SCRATCH)
            return kinds[i].vector + 2u;
        return inst->src[2].kind == BW_OPERAND_NONE ? kinds[i].vector : inst->op;
    }
    return inst->op;
}

static void translate_flat(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    unsigned kind = flat_kind(inst);
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        struct bw_uop operands = {0};
        if (inst->src[0].kind == BW_OPERAND_VGPR)
            operands.a = bw_vector_source(t, &inst->src[0]);
        if (inst->src[1].kind == BW_OPERAND_VGPR)
            operands.b = bw_vector_source(t, &inst->src[1]);
        if (inst->src[2].kind == BW_OPERAND_SREG)
            operands.c = bw_scalar_source(t, &inst->src[2]);
        if (inst->dst.kind == BW_OPERAND_VGPR)
            operands.d = bw_vector_destination(t, &inst->dst);
        struct bw_uop *uop = bw_emit(t, kind);
        uop->d = operands.d;
        uop->a = operands.a;
        uop->b = operands.b;
        uop->c = operands.c;
        uop->g = inst->offset;
        uop->e = (int32_t)next_range(t);
    }
}

void bw_translate_memory(struct bw_translator *t)
{
    switch (t->inst->format) {
    case BW_GFX11_SMEM:
        translate_smem(t);
        break;
    case BW_GFX11_FLAT:
        translate_flat(t);
        break;
    default:
        bw_emit(t, t->inst->op);
    }
}
