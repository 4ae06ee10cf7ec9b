/* VOP1, VOP2, VOPC, VOP3, VOP3P and VOPD of gfx11, with DPP. RDNA3 Shader ISA document, section 15.3. */
#include "mock/isa/decode.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

/* A VGPR field of the 32-bit encodings. Bit 7 of a 16-bit operand would select the high half of v0..v127:
 * LLVM 19 does not emit that for gfx1100 (no real-true16), so it is refused. */
static void vgpr_e32(struct bw_decode_cursor *c, const struct bw_gfx11_op_row *row,
                     struct bw_operand *operand, uint8_t type, unsigned index)
{
    bw_decode_vgpr(c, operand, type, index);
    bool half = bw_gfx11_type_bits(type) == 16 || row->format == BW_GFX11_VOPC;
    if ((row->flags & BW_GFX11_F_LO128) && half && index >= 128)
        bw_decode_refuse(c);
}

static bool is_dpp_ctrl(unsigned ctrl)
{
    unsigned group = ctrl & ~15u;
    if (group == BW_DPP_ROW_SHL || group == BW_DPP_ROW_SHR || group == BW_DPP_ROW_ROR)
        return ctrl != group; /* a shift by 0 is reserved */
    return ctrl < BW_DPP_ROW_SHL || ctrl == BW_DPP_ROW_MIRROR || ctrl == BW_DPP_ROW_HALF_MIRROR ||
           group == BW_DPP_ROW_SHARE || group == BW_DPP_ROW_XMASK;
}

static void decode_dpp(struct bw_decode_cursor *c, struct bw_inst *inst, unsigned src0_code, unsigned *vgpr,
                       bool e64)
{
    uint32_t dword = bw_decode_take_dword(c);
    *vgpr = bw_field(dword, 0, 7);
    if (src0_code == SRC_DPP16) {
        inst->dpp = BW_DPP_16;
        inst->dpp_ctrl = (uint16_t)bw_field(dword, 8, 16);
        inst->fetch_inactive = bw_field(dword, 18, 18);
        inst->bound_ctrl = bw_field(dword, 19, 19);
        inst->bank_mask = (uint8_t)bw_field(dword, 24, 27);
        inst->row_mask = (uint8_t)bw_field(dword, 28, 31);
        if (!is_dpp_ctrl(inst->dpp_ctrl))
            bw_decode_refuse(c);
        if (!e64) { /* VOP3 has modifiers of its own, these are ignored */
            uint32_t modifiers = bw_field(dword, 20, 23);
            inst->neg = (uint8_t)((modifiers & 1) | (modifiers >> 1 & 2));
            inst->abs = (uint8_t)((modifiers >> 1 & 1) | (modifiers >> 2 & 2));
        }
    } else {
        inst->dpp = BW_DPP_8;
        inst->fetch_inactive = src0_code == SRC_DPP8_FI;
        inst->dpp8_sel = dword >> 8;
    }
}

static bool is_dpp(unsigned code)
{
    return code == SRC_DPP16 || code == SRC_DPP8 || code == SRC_DPP8_FI;
}

static unsigned mod_count(const struct bw_gfx11_op_row *row)
{
    return row->flags & BW_GFX11_F_MOD3   ? 3
           : row->flags & BW_GFX11_F_MOD2 ? 2
           : row->flags & BW_GFX11_F_MOD1 ? 1
                                          : 0;
}

/* neg and abs only where the operation takes them. */
static void check_mods(struct bw_decode_cursor *c, const struct bw_inst *inst,
                       const struct bw_gfx11_op_row *row)
{
    bw_decode_expect_zero(c, (uint32_t)(inst->neg | inst->abs) >> mod_count(row));
}

/* Source 0 of a 32-bit encoding, with its DPP forms. */
static void source0_e32(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                        unsigned code)
{
    struct bw_gfx11_operand_row source = row->src[0];
    if (source.type == BW_T_NONE) /* v_nop: ignored */
        return;
    if (is_dpp(code)) {
        unsigned vgpr;
        if (!(row->flags & BW_GFX11_F_DPP)) {
            bw_decode_refuse(c);
            return;
        }
        decode_dpp(c, inst, code, &vgpr, false);
        check_mods(c, inst, row);
        vgpr_e32(c, row, &inst->src[0], source.type, vgpr);
    } else if (code >= SRC_VGPR0) {
        vgpr_e32(c, row, &inst->src[0], source.type, code - SRC_VGPR0);
    } else if (source.operand_class == BW_CLASS_VGPR) {
        bw_decode_refuse(c);
    } else {
        bw_decode_scalar_source(c, inst, &inst->src[0], source.type, code);
    }
}

static void vector_dst(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                       unsigned code, bool e32)
{
    if (row->dst.type == BW_T_NONE)
        bw_decode_expect_zero(c, code);
    else if (row->dst.operand_class == BW_CLASS_SCALAR) {
        bw_decode_sreg(c, &inst->dst, row->dst.type, code);
        if (row->src[0].operand_class == BW_CLASS_SCALAR && code >= BW_SREG_EXEC_LO)
            bw_decode_refuse(c); /* v_s_exp_f32 and its like */
    } else if (e32)
        vgpr_e32(c, row, &inst->dst, row->dst.type, code);
    else
        bw_decode_vgpr(c, &inst->dst, row->dst.type, code);
}

bool bw_decode_vop1(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row = bw_decode_begin(inst, AT_VOP1 + bw_field(word, 9, 16), BW_GFX11_VOP1);
    if (!row)
        return false;
    vector_dst(c, inst, row, bw_field(word, 17, 24), true);
    source0_e32(c, inst, row, bw_field(word, 0, 8));
    return !c->failed;
}

bool bw_decode_vopc(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_VOPC + bw_field(word, 17, 24), BW_GFX11_VOPC);
    if (!row)
        return false;
    bw_decode_sreg(c, &inst->dst, BW_T_MASK, row->flags & BW_GFX11_F_CMPX ? BW_SREG_EXEC_LO : BW_SREG_VCC_LO);
    source0_e32(c, inst, row, bw_field(word, 0, 8));
    vgpr_e32(c, row, &inst->src[1], row->src[1].type, bw_field(word, 9, 16));
    return !c->failed;
}

/* The sources after source 0 of a VOP2 operation, in its own encoding or in VOPD. */
static void vop2_sources(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                         unsigned vsrc1, struct bw_operand *src)
{
    bool vsrc1_used = false;
    for (unsigned i = 1; i < 3; i++) {
        struct bw_gfx11_operand_row source = row->src[i];
        if (source.operand_class == BW_CLASS_K) {
            src[i] = bw_decode_operand(BW_OPERAND_LITERAL, source.type, 0);
            bw_decode_take_literal(c, inst);
        } else if (source.type == BW_T_MASK) { /* the implied condition or carry */
            bw_decode_sreg(c, &src[i], BW_T_MASK, BW_SREG_VCC_LO);
        } else if (source.type != BW_T_NONE) {
            vgpr_e32(c, row, &src[i], source.type, vsrc1);
            vsrc1_used = true;
        }
    }
    if (!vsrc1_used)
        bw_decode_expect_zero(c, vsrc1);
}

bool bw_decode_vop2(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_VOP2 + bw_field(word, 25, 30), BW_GFX11_VOP2);
    if (!row)
        return false;
    vector_dst(c, inst, row, bw_field(word, 17, 24), true);
    if (row->flags & BW_GFX11_F_SDST)
        bw_decode_sreg(c, &inst->sdst, BW_T_MASK, BW_SREG_VCC_LO);
    source0_e32(c, inst, row, bw_field(word, 0, 8));
    vop2_sources(c, inst, row, bw_field(word, 9, 16), inst->src);
    return !c->failed;
}

static bool has_16_bit_operand(const struct bw_gfx11_op_row *row)
{
    const uint8_t types[] = {row->dst.type, row->src[0].type, row->src[1].type, row->src[2].type};
    for (unsigned i = 0; i < BW_COUNT_OF(types); i++) {
        if (types[i] != BW_T_NONE && bw_gfx11_type_bits((enum bw_gfx11_type)types[i]) == 16)
            return true;
    }
    return false;
}

/* Modifier bits of VOP3 that the operation does not take are refused. op_sel picks halves of 16-bit operands
 * (section 7.2.2.4), also where LLVM 19 does not print it; it is ignored, as LLVM does, where there are
 * none. */
static void vop3_modifiers(struct bw_decode_cursor *c, struct bw_inst *inst,
                           const struct bw_gfx11_op_row *row, uint32_t word, uint32_t high, bool has_sdst)
{
    uint32_t abs = has_sdst ? 0 : bw_field(word, 8, 10), op_sel = has_sdst ? 0 : bw_field(word, 11, 14);
    inst->neg = (uint8_t)bw_field(high, 29, 31);
    inst->abs = (uint8_t)abs;
    check_mods(c, inst, row);
    inst->clamp = bw_field(word, 15, 15);
    inst->omod = (uint8_t)bw_field(high, 27, 28);
    if (inst->clamp && !(row->flags & BW_GFX11_F_CLAMP))
        bw_decode_refuse(c);
    if (inst->omod && !(row->flags & BW_GFX11_F_OMOD))
        bw_decode_refuse(c);
    if (row->flags & BW_GFX11_F_OPSEL) {
        inst->op_sel = (uint8_t)op_sel;
        if (row->src[2].type == BW_T_NONE)
            bw_decode_expect_zero(c, op_sel & (row->src[1].type == BW_T_NONE ? 6 : 4));
    } else if (row->flags & BW_GFX11_F_BYTESEL) { /* of the source, or of the result */
        inst->op_sel = (uint8_t)op_sel;
        bw_decode_expect_zero(c, op_sel & (row->format == BW_GFX11_VOP1 ? 0xc : 3));
    } else if (has_16_bit_operand(row)) {
        inst->op_sel = (uint8_t)op_sel;
    }
}

/* The condition or carry that a 64-bit encoding names; EXEC is none. */
static void lane_mask_source(struct bw_decode_cursor *c, struct bw_operand *operand, unsigned code)
{
    bw_decode_sreg(c, operand, BW_T_MASK, code);
    if (code >= BW_SREG_EXEC_LO)
        bw_decode_refuse(c);
}

/* Constants and scalars beside DPP: source 2 only, before gfx11.5 and in V_FMA_MIX; none in V_DOT4 of fp8. */
static bool takes_scalar_beside_dpp(const struct bw_inst *inst, const struct bw_gfx11_op_row *row, unsigned i)
{
    bool is_fixed = row->flags & BW_GFX11_F_FIXED_SEL, is_mix = row->src[0].type == BW_T_MIX;
    return i == 0 || (i == 1 ? inst->generation->is_gfx12 && !is_mix && !is_fixed : !is_fixed);
}

/* Source i of a 64-bit vector encoding. */
static void source_e64(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                       unsigned i, unsigned code)
{
    struct bw_gfx11_operand_row source = row->src[i];
    if (source.type == BW_T_NONE) {
        bw_decode_expect_zero(c, code);
        return;
    }
    if (i == 0 && is_dpp(code)) {
        unsigned vgpr;
        if (!(row->flags & BW_GFX11_F_DPP64)) {
            bw_decode_refuse(c);
            return;
        }
        decode_dpp(c, inst, code, &vgpr, true);
        bw_decode_vgpr(c, &inst->src[0], source.type, vgpr);
        return;
    }
    if (inst->dpp != BW_DPP_NONE && code < SRC_VGPR0 && !takes_scalar_beside_dpp(inst, row, i)) {
        bw_decode_refuse(c);
        return;
    }
    bool is_vgpr = code >= SRC_VGPR0, is_constant = code >= 128 && !is_vgpr;
    if (source.operand_class == BW_CLASS_VGPR && !is_vgpr)
        bw_decode_refuse(c);
    else if (source.operand_class == BW_CLASS_REGISTER)
        lane_mask_source(c, &inst->src[i], code);
    else if (source.operand_class == BW_CLASS_SCALAR && is_vgpr)
        bw_decode_refuse(c);
    else if (source.operand_class == BW_CLASS_VGPR_OR_INLINE && !is_vgpr && !is_constant)
        bw_decode_refuse(c);
    else if (source.operand_class == BW_CLASS_VGPR_OR_INLINE && code == SRC_LITERAL)
        bw_decode_refuse(c);
    else
        bw_decode_vector_source(c, inst, &inst->src[i], source.type, code);
}

/* The operation behind a VOP3 opcode: VOPC, VOP2 and VOP1 operations come first, each at its offset. */
static const struct bw_gfx11_op_row *vop3_begin(struct bw_inst *inst, unsigned opcode)
{
    enum { VOP2_AT = 0x100, VOP1_AT = 0x180, VOP3_AT = 0x200 };
    unsigned at = opcode < VOP2_AT   ? AT_VOPC + opcode
                  : opcode < VOP1_AT ? (opcode - VOP2_AT < 64 ? AT_VOP2 + opcode - VOP2_AT : AT_VOP3 + opcode)
                  : opcode < VOP3_AT ? AT_VOP1 + opcode - VOP1_AT
                                     : AT_VOP3 + opcode;
    const struct bw_gfx11_op_row *row = bw_decode_begin(inst, at, BW_GFX11_VOP3);
    if (!row || (opcode < VOP3_AT && !(row->flags & BW_GFX11_F_E64)))
        return NULL;
    if (row->flags & BW_GFX11_F_SDST)
        inst->format = BW_GFX11_VOP3SD;
    return row;
}

bool bw_decode_vop3(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row = vop3_begin(inst, bw_field(word, 16, 25));
    if (!row)
        return false;
    uint32_t high = bw_decode_take_dword(c);
    bool has_sdst = inst->format == BW_GFX11_VOP3SD;
    c->allow_literal = true;
    if (row->flags & BW_GFX11_F_CMPX)
        bw_decode_sreg(c, &inst->dst, BW_T_MASK, BW_SREG_EXEC_LO);
    else
        vector_dst(c, inst, row, bw_field(word, 0, 7), false);
    if (has_sdst)
        bw_decode_sreg(c, &inst->sdst, BW_T_MASK, bw_field(word, 8, 14));
    vop3_modifiers(c, inst, row, word, high, has_sdst);
    source_e64(c, inst, row, 0, bw_field(high, 0, 8));
    source_e64(c, inst, row, 1, bw_field(high, 9, 17));
    source_e64(c, inst, row, 2, bw_field(high, 18, 26));
    return !c->failed;
}

static void check_fixed_selects(struct bw_decode_cursor *c, const struct bw_inst *inst, uint32_t flags)
{
    unsigned signs = (flags & BW_GFX11_F_NEG01 ? 3 : 0) | (flags & BW_GFX11_F_NEG2 ? 4 : 0);
    bw_decode_expect_zero(c, inst->op_sel & (flags & BW_GFX11_F_KEY ? ~1u : ~0u));
    bw_decode_expect_zero(c, inst->op_sel_hi ^ 7u);
    bw_decode_expect_zero(c, inst->abs & ~signs);
    bw_decode_expect_zero(c, inst->neg & ~(signs | (flags & BW_GFX11_F_SIGNED01 ? 3 : 0)));
}

bool bw_decode_vop3p(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_VOP3P + bw_field(word, 16, 22), BW_GFX11_VOP3P);
    if (!row)
        return false;
    uint32_t high = bw_decode_take_dword(c);
    vector_dst(c, inst, row, bw_field(word, 0, 7), false);
    inst->abs = (uint8_t)bw_field(word, 8, 10);
    inst->neg = (uint8_t)bw_field(high, 29, 31);
    inst->op_sel = (uint8_t)bw_field(word, 11, 13);
    inst->op_sel_hi = (uint8_t)(bw_field(high, 27, 28) | bw_field(word, 14, 14) << 2);
    if (row->src[2].type == BW_T_NONE)
        bw_decode_expect_zero(c, (uint32_t)(inst->abs | inst->neg | inst->op_sel) & 4);
    if (row->dst.type == BW_T_B256 && !(row->flags & (BW_GFX11_F_OPSEL | BW_GFX11_F_FIXED_SEL)))
        bw_decode_expect_zero(c, inst->op_sel);
    if (row->flags & BW_GFX11_F_FIXED_SEL)
        check_fixed_selects(c, inst, row->flags);
    inst->clamp = bw_field(word, 15, 15);
    if (inst->clamp && !(row->flags & BW_GFX11_F_CLAMP))
        bw_decode_refuse(c);
    source_e64(c, inst, row, 0, bw_field(high, 0, 8));
    source_e64(c, inst, row, 1, bw_field(high, 9, 17));
    source_e64(c, inst, row, 2, bw_field(high, 18, 26));
    return !c->failed;
}

static void vopd_half(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                      unsigned src0, unsigned vsrc1, struct bw_operand *src)
{
    bw_decode_vector_source(c, inst, &src[0], row->src[0].type, src0);
    vop2_sources(c, inst, row, vsrc1, src);
}

bool bw_decode_vopd(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    unsigned x = bw_field(word, 22, 25), y = bw_field(word, 17, 21);
    const uint16_t *ops = inst->generation->vopd;
    if (x >= BW_VOPD_X_OPS || y >= BW_VOPD_OPS || ops[x] == BW_NO_OP || ops[y] == BW_NO_OP)
        return false;
    inst->format = BW_GFX11_VOPD;
    inst->op = ops[x];
    inst->y.op = ops[y];
    uint32_t high = bw_decode_take_dword(c);
    const struct bw_gfx11_op_row *row_x = &inst->generation->ops[inst->op],
                                 *row_y = &inst->generation->ops[inst->y.op];
    unsigned dst_x = bw_field(high, 24, 31);
    /* The two destinations differ in their lowest bit, so only one of them is encoded. */
    unsigned dst_y = bw_field(high, 17, 23) << 1 | (~dst_x & 1);
    bw_decode_vgpr(c, &inst->dst, row_x->dst.type, dst_x);
    bw_decode_vgpr(c, &inst->y.dst, row_y->dst.type, dst_y);
    vopd_half(c, inst, row_x, bw_field(word, 0, 8), bw_field(word, 9, 16), inst->src);
    vopd_half(c, inst, row_y, bw_field(high, 0, 8), bw_field(high, 9, 16), inst->y.src);
    return !c->failed;
}
