/* SMEM, DS, FLAT, MUBUF, MTBUF and LDSDIR of gfx11. RDNA3 Shader ISA document, sections 15.2, 15.4 to 15.8.
 */
#include "mock/isa/decode.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

int32_t bw_decode_sign_extend(uint32_t value, unsigned bits)
{
    return (int32_t)(value << (32 - bits)) >> (32 - bits);
}

bool bw_decode_smem(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SMEM + bw_field(word, 18, 25), BW_GFX11_SMEM);
    if (!row)
        return false;
    uint32_t high = bw_decode_take_dword(c);
    unsigned base = bw_field(word, 0, 5) * 2, sdata = bw_field(word, 6, 12), base_source = 0;
    inst->dlc = bw_field(word, 13, 13);
    inst->glc = bw_field(word, 14, 14);
    inst->offset = bw_decode_sign_extend(bw_field(high, 0, 20), 21);
    if (row->dst.type != BW_T_NONE && (sdata == BW_SREG_M0 || sdata >= BW_SREG_EXEC_LO))
        bw_decode_refuse(c);
    if (row->src[0].operand_class == BW_CLASS_IMM) { /* s_atc_probe: the data field is a number */
        bw_decode_imm(&inst->src[0], row->src[0].type, sdata);
        base_source = 1;
        bw_decode_expect_zero(c, inst->glc | inst->dlc);
    } else {
        bw_decode_scalar_dst(c, inst, row, sdata);
    }
    if (row->src[base_source].type != BW_T_NONE)
        bw_decode_sreg(c, &inst->src[base_source], row->src[base_source].type, base);
    else
        bw_decode_expect_zero(c, inst->glc | inst->dlc); /* cache invalidation */
    if (row->src[base_source].type != BW_T_NONE)
        bw_decode_sreg(c, &inst->src[base_source + 1], BW_T_B32, bw_field(high, 25, 31));
    return !c->failed;
}

static void data_vgpr(struct bw_decode_cursor *c, struct bw_operand *operand, struct bw_gfx11_operand_row row,
                      unsigned code)
{
    if (row.type != BW_T_NONE)
        bw_decode_vgpr(c, operand, row.type, code);
    else
        bw_decode_expect_zero(c, code);
}

bool bw_decode_ds(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row = bw_decode_begin(inst, AT_DS + bw_field(word, 18, 25), BW_GFX11_DS);
    if (!row)
        return false;
    uint32_t high = bw_decode_take_dword(c);
    inst->offset = (int32_t)bw_field(word, 0, 15);
    inst->gds = bw_field(word, 17, 17);
    if ((row->flags & BW_GFX11_F_GDS) && !inst->gds)
        bw_decode_refuse(c);
    bool is_nop = row->dst.type == BW_T_NONE && row->src[0].type == BW_T_NONE &&
                  row->src[1].type == BW_T_NONE && !(row->flags & BW_GFX11_F_GDS);
    if (is_nop)
        bw_decode_expect_zero(c, word & 0x2ffff);
    if (inst->gds && (row->flags & BW_GFX11_F_NO_GDS || inst->generation->is_gfx12))
        bw_decode_refuse(c);
    data_vgpr(c, &inst->src[0], row->src[0], bw_field(high, 0, 7));
    data_vgpr(c, &inst->src[1], row->src[1], bw_field(high, 8, 15));
    data_vgpr(c, &inst->src[2], row->src[2], bw_field(high, 16, 23));
    data_vgpr(c, &inst->dst, row->dst, bw_field(high, 24, 31));
    return !c->failed;
}

static void flat_address(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                         uint32_t high)
{
    unsigned vaddr = bw_field(high, 0, 7), saddr = bw_field(high, 16, 22);
    bool scratch_vaddr = bw_field(high, 23, 23), has_saddr = saddr != BW_SREG_NULL;
    if (inst->segment == BW_SEGMENT_SCRATCH) {
        if (scratch_vaddr)
            bw_decode_vgpr(c, &inst->src[0], BW_T_B32, vaddr);
        if (has_saddr)
            bw_decode_sreg(c, &inst->src[2], BW_T_B32, saddr);
        if (saddr == BW_SREG_EXEC_HI)
            bw_decode_refuse(c); /* the one scalar register that is no address */
        return;
    }
    bw_decode_expect_zero(c, scratch_vaddr);
    /* Flat has no scalar base, and no negative offset: an address must not leave its aperture. */
    if (inst->segment == BW_SEGMENT_FLAT && (has_saddr || inst->offset < 0))
        bw_decode_refuse(c);
    if (row->src[0].type != BW_T_NONE)
        bw_decode_vgpr(c, &inst->src[0],
                       has_saddr && inst->segment == BW_SEGMENT_GLOBAL ? BW_T_B32 : BW_T_B64, vaddr);
    if (has_saddr && inst->segment == BW_SEGMENT_GLOBAL)
        bw_decode_sreg(c, &inst->src[2], BW_T_B64, saddr);
}

bool bw_decode_flat(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    static const uint32_t segment_flags[] = {BW_GFX11_F_SEG_FLAT, BW_GFX11_F_SEG_SCRATCH,
                                             BW_GFX11_F_SEG_GLOBAL, 0};
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_FLAT + bw_field(word, 18, 24), BW_GFX11_FLAT);
    unsigned segment = bw_field(word, 16, 17);
    if (!row || !(row->flags & segment_flags[segment]))
        return false;
    uint32_t high = bw_decode_take_dword(c);
    inst->segment = (uint8_t)segment;
    inst->slc = bw_field(word, 15, 15);
    inst->glc = bw_field(word, 14, 14);
    inst->dlc = bw_field(word, 13, 13);
    inst->offset = bw_decode_sign_extend(bw_field(word, 0, 12), 13);
    flat_address(c, inst, row, high);
    if (row->src[1].type != BW_T_NONE)
        data_vgpr(c, &inst->src[1], row->src[1], bw_field(high, 8, 15));
    if (row->dst.type != BW_T_NONE && (!(row->flags & BW_GFX11_F_ATOMIC) || inst->glc))
        data_vgpr(c, &inst->dst, row->dst, bw_field(high, 24, 31));
    return !c->failed;
}

static void buffer_address(struct bw_decode_cursor *c, struct bw_inst *inst, uint32_t high)
{
    unsigned vaddr = bw_field(high, 0, 7);
    if (inst->idxen && inst->offen)
        bw_decode_vgpr(c, &inst->src[0], BW_T_B64, vaddr);
    else if (inst->idxen || inst->offen)
        bw_decode_vgpr(c, &inst->src[0], BW_T_B32, vaddr);
    bw_decode_sreg(c, &inst->src[2], BW_T_B128, bw_field(high, 16, 20) * 4);
    bw_decode_scalar_source(c, inst, &inst->src[3], BW_T_B32, bw_field(high, 24, 31));
}

/* What MUBUF and MTBUF have in common. */
static uint32_t buffer_fields(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    uint32_t high = bw_decode_take_dword(c);
    c->allow_literal = false;
    inst->offset = (int32_t)bw_field(word, 0, 11);
    inst->slc = bw_field(word, 12, 12);
    inst->dlc = bw_field(word, 13, 13);
    inst->glc = bw_field(word, 14, 14);
    inst->tfe = bw_field(high, 21, 21);
    inst->offen = bw_field(high, 22, 22);
    inst->idxen = bw_field(high, 23, 23);
    return high;
}

bool bw_decode_buffer_data(struct bw_decode_cursor *c, struct bw_inst *inst,
                           const struct bw_gfx11_op_row *row, unsigned vdata, bool returns)
{
    if (row->src[1].type != BW_T_NONE)
        bw_decode_vgpr(c, &inst->src[1], row->src[1].type, vdata);
    if (row->dst.type != BW_T_NONE && returns)
        bw_decode_vgpr(c, &inst->dst, row->dst.type, vdata);
    if (inst->tfe) { /* one more dword: the status of the fault */
        struct bw_operand *data = row->src[1].type != BW_T_NONE ? &inst->src[1] : &inst->dst;
        if (data->index + ++data->dwords > VGPR_COUNT)
            bw_decode_refuse(c);
    }
    return !c->failed;
}

static bool buffer_data(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                        uint32_t high)
{
    return bw_decode_buffer_data(c, inst, row, bw_field(high, 8, 15),
                                 !(row->flags & BW_GFX11_F_ATOMIC) || inst->glc);
}

bool bw_decode_mubuf(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_MUBUF + bw_field(word, 18, 25), BW_GFX11_MUBUF);
    if (!row)
        return false;
    uint32_t high = buffer_fields(c, word, inst);
    if (row->src[2].type == BW_T_NONE) { /* cache invalidation: no operands, fields ignored */
        bw_decode_expect_zero(c, inst->dlc | inst->glc | inst->tfe | inst->offen | inst->idxen);
        return !c->failed;
    }
    buffer_address(c, inst, high);
    bool lds = row->dst.type == BW_T_NONE && row->src[1].type == BW_T_NONE;
    if (row->flags & BW_GFX11_F_ATOMIC || lds)
        bw_decode_expect_zero(c, inst->tfe);
    return buffer_data(c, inst, row, high);
}

bool bw_decode_mtbuf(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_MTBUF + bw_field(word, 15, 18), BW_GFX11_MTBUF);
    if (!row)
        return false;
    uint32_t high = buffer_fields(c, word, inst);
    inst->data_format = (uint8_t)bw_field(word, 19, 25);
    bw_decode_expect_zero(c, inst->tfe); /* LLVM knows none */
    buffer_address(c, inst, high);
    return buffer_data(c, inst, row, high);
}

bool bw_decode_ldsdir(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_LDSDIR + bw_field(word, 20, 21), BW_GFX11_LDSDIR);
    if (!row || bw_field(word, 22, 23))
        return false;
    bw_decode_vgpr(c, &inst->dst, row->dst.type, bw_field(word, 0, 7));
    if (row->src[0].type != BW_T_NONE)
        bw_decode_imm(&inst->src[0], row->src[0].type, bw_field(word, 8, 15));
    inst->wait_vdst = (uint8_t)bw_field(word, 16, 19);
    return !c->failed;
}
