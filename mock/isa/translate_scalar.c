/* SOP1, SOP2, SOPC, SOPK, SOPP. */
#include "mock/isa/translate.h"

static int32_t sign_extended(struct bw_translator *t, uint16_t imm)
{
    return bw_constant_vector(t, (uint32_t)(int16_t)imm);
}

/* SOPK: the immediate is the second source; it is sign-extended except in unsigned comparisons. */
static void translate_sopk(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {0};
    switch (inst->op) {
    case BW_GFX11_S_MOVK_I32:
        operands.a = sign_extended(t, inst->src[0].index);
        operands.d = bw_scalar_destination(t, &inst->dst);
        break;
    case BW_GFX11_S_CMOVK_I32:
        operands.a = sign_extended(t, inst->src[0].index);
        operands.b = operands.d = bw_scalar_destination(t, &inst->dst);
        break;
    case BW_GFX11_S_ADDK_I32:
    case BW_GFX11_S_MULK_I32:
        operands.b = sign_extended(t, inst->src[0].index);
        operands.a = operands.d = bw_scalar_destination(t, &inst->dst);
        break;
    case BW_GFX11_S_CMPK_EQ_U32:
    case BW_GFX11_S_CMPK_LG_U32:
    case BW_GFX11_S_CMPK_GT_U32:
    case BW_GFX11_S_CMPK_GE_U32:
    case BW_GFX11_S_CMPK_LT_U32:
    case BW_GFX11_S_CMPK_LE_U32:
        operands.a = bw_scalar_source(t, &inst->src[0]);
        operands.b = bw_constant_vector(t, inst->src[1].index);
        break;
    default:
        operands.a = bw_scalar_source(t, &inst->src[0]);
        operands.b = sign_extended(t, inst->src[1].index);
    }
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->d = operands.d;
    uop->a = operands.a;
    uop->b = operands.b;
}

/* Registers named through M0: their numbers go into the uop, the source of S_MOVRELD is any. */
static void translate_movrel(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    bool to = inst->op == BW_GFX11_S_MOVRELD_B32 || inst->op == BW_GFX11_S_MOVRELD_B64;
    int32_t source = to ? bw_scalar_source(t, &inst->src[0]) : 0;
    if (inst->dst.kind != BW_OPERAND_SREG || (!to && inst->src[0].kind != BW_OPERAND_SREG)) {
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
        return;
    }
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->a = source;
    uop->e = inst->src[0].index;
    uop->f = inst->dst.index;
    t->code->sgprs_used = BW_SREG_VCC_LO;
}

/* Registers written by S_SETREG, S_ROUND_MODE and S_DENORM_MODE: d is the hwreg field, b the instruction's
 * length. */
static void translate_hwreg(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {0};
    unsigned kind = BW_GFX11_S_SETREG_B32;
    switch (inst->op) {
    case BW_GFX11_S_GETREG_B32:
        kind = BW_GFX11_S_GETREG_B32;
        operands.d = bw_scalar_destination(t, &inst->dst);
        operands.e = inst->src[0].index;
        break;
    case BW_GFX11_S_ROUND_MODE: /* MODE[3:0] = simm16[3:0] */
        operands.a = bw_constant_vector(t, inst->src[0].index & 15);
        operands.e = 1 | 0 << 6 | 3 << 11;
        break;
    case BW_GFX11_S_DENORM_MODE: /* MODE[7:4] = simm16[3:0] */
        operands.a = bw_constant_vector(t, inst->src[0].index & 15);
        operands.e = 1 | 4 << 6 | 3 << 11;
        break;
    default:
        operands.a = bw_scalar_source(t, &inst->src[1]);
        operands.e = inst->src[0].index;
    }
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = operands.d;
    uop->a = operands.a;
    uop->b = inst->bytes;
    uop->e = operands.e;
}

/* Operations that keep, or change part of, what their destination holds. */
static bool reads_destination(unsigned op)
{
    switch (op) {
    case BW_GFX11_S_CMOV_B32:
    case BW_GFX11_S_CMOV_B64:
    case BW_GFX11_S_BITSET0_B32:
    case BW_GFX11_S_BITSET0_B64:
    case BW_GFX11_S_BITSET1_B32:
    case BW_GFX11_S_BITSET1_B64:
        return true;
    default:
        return false;
    }
}

static void translate_plain(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {0};
    bool has_sources = inst->format != BW_GFX11_SOPP;
    if (has_sources && inst->src[0].kind != BW_OPERAND_NONE)
        operands.a = bw_scalar_source(t, &inst->src[0]);
    if (has_sources && inst->src[1].kind != BW_OPERAND_NONE)
        operands.b = bw_scalar_source(t, &inst->src[1]);
    if (inst->dst.kind == BW_OPERAND_SREG)
        operands.d = bw_scalar_destination(t, &inst->dst);
    if (reads_destination(inst->op))
        operands.b = operands.d;
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->d = operands.d;
    uop->a = operands.a;
    uop->b = operands.b;
}

static void translate_branch(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop *uop = bw_emit(t, inst->op);
    bool vcc = inst->op == BW_GFX11_S_CBRANCH_VCCZ || inst->op == BW_GFX11_S_CBRANCH_VCCNZ;
    uop->a = BW_OFFSET_SGPR(vcc ? BW_SREG_VCC_LO : BW_SREG_EXEC_LO);
    uop->b = t->code->wave_size == 64;
    if (inst->op == BW_GFX11_S_CALL_B64)
        uop->d = bw_scalar_destination(t, &inst->dst);
}

void bw_translate_scalar(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    switch (inst->op) {
    case BW_GFX11_S_MOVRELS_B32:
    case BW_GFX11_S_MOVRELS_B64:
    case BW_GFX11_S_MOVRELD_B32:
    case BW_GFX11_S_MOVRELD_B64:
    case BW_GFX11_S_MOVRELSD_2_B32:
        translate_movrel(t);
        break;
    case BW_GFX11_S_GETREG_B32:
    case BW_GFX11_S_SETREG_B32:
    case BW_GFX11_S_SETREG_IMM32_B32:
    case BW_GFX11_S_ROUND_MODE:
    case BW_GFX11_S_DENORM_MODE:
        translate_hwreg(t);
        break;
    case BW_GFX11_S_BRANCH:
    case BW_GFX11_S_CBRANCH_SCC0:
    case BW_GFX11_S_CBRANCH_SCC1:
    case BW_GFX11_S_CBRANCH_VCCZ:
    case BW_GFX11_S_CBRANCH_VCCNZ:
    case BW_GFX11_S_CBRANCH_EXECZ:
    case BW_GFX11_S_CBRANCH_EXECNZ:
    case BW_GFX11_S_CALL_B64:
        translate_branch(t);
        break;
    case BW_GFX11_S_TRAP:
    case BW_GFX11_S_SETHALT:
        bw_refuse(t, BW_ISA_TRAP, BW_REASON_NONE);
        break;
    case BW_GFX11_S_CODE_END: /* pads after the end of code: running into it is a fault */
        bw_refuse(t, BW_ISA_ILLEGAL_INSTRUCTION, BW_REASON_ENCODING);
        break;
    case BW_GFX11_S_SENDMSG:
    case BW_GFX11_S_SENDMSG_RTN_B32:
    case BW_GFX11_S_SENDMSG_RTN_B64: {
        struct bw_uop operands = {0};
        if (inst->dst.kind == BW_OPERAND_SREG)
            operands.d = bw_scalar_destination(t, &inst->dst);
        struct bw_uop *uop = bw_emit(t, inst->op);
        uop->d = operands.d;
        uop->imm = inst->src[0].index;
        break;
    }
    default:
        if (inst->format == BW_GFX11_SOPK)
            translate_sopk(t);
        else
            translate_plain(t);
    }
}
