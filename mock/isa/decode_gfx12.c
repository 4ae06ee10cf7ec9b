/* SMEM, VFLAT, VGLOBAL, VSCRATCH and VBUFFER of gfx12; the other formats are those of gfx11. RDNA4 Shader ISA
 * document (AMD, 2025), chapter "Microcode formats". */
#include "mock/isa/decode.h"

#include "base/bits.h"

bool bw_decode_smem12(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SMEM + bw_field(word, 13, 18), BW_GFX11_SMEM);
    if (!row)
        return false;
    uint32_t high = bw_decode_take_dword(c);
    unsigned base = bw_field(word, 0, 5) * 2, sdata = bw_field(word, 6, 12);
    unsigned first = row->src[0].operand_class == BW_CLASS_IMM; /* s_atc_probe: the data field is a number */
    bool has_base = row->src[first].type != BW_T_NONE, is_prefetch = row->flags & BW_GFX11_F_PREFETCH;
    inst->scope = (uint8_t)bw_field(word, 21, 22);
    inst->th = (uint8_t)bw_field(word, 23, 24);
    inst->offset = bw_decode_sign_extend(bw_field(high, 0, 23), 24);
    bw_decode_expect_zero(c, bw_field(word, 19, 20) | bw_field(word, 25, 25) | bw_field(high, 24, 24));
    if (first || is_prefetch) /* a number of five bits */
        bw_decode_expect_zero(c, sdata >> 5);
    if (row->dst.type != BW_T_NONE && (sdata == BW_SREG_M0 || sdata >= BW_SREG_EXEC_LO))
        bw_decode_refuse(c);
    bw_decode_scalar_dst(c, inst, row, sdata);
    if (first)
        bw_decode_imm(&inst->src[0], row->src[0].type, sdata);
    if (is_prefetch)
        bw_decode_imm(&inst->src[2], BW_T_DEC, sdata);
    if (has_base)
        bw_decode_sreg(c, &inst->src[first], row->src[first].type, base);
    if (has_base || is_prefetch)
        bw_decode_sreg(c, &inst->src[first + 1], BW_T_B32, bw_field(high, 25, 31));
    return !c->failed;
}

/* Of caches: no operands, no offset. */
static bool is_maintenance(const struct bw_gfx11_op_row *row)
{
    return row->src[0].type == BW_T_NONE && row->src[1].type == BW_T_NONE && row->dst.type == BW_T_NONE;
}

static void flat_address(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                         unsigned vaddr, unsigned saddr, bool scratch_vaddr)
{
    bool has_saddr = saddr != BW_SREG_NULL;
    if (inst->segment == BW_SEGMENT_SCRATCH) {
        if (scratch_vaddr)
            bw_decode_vgpr(c, &inst->src[0], BW_T_B32, vaddr);
        if (has_saddr)
            bw_decode_sreg(c, &inst->src[2], BW_T_B32, saddr);
        return;
    }
    if (has_saddr && (inst->segment == BW_SEGMENT_FLAT || is_maintenance(row)))
        bw_decode_refuse(c);
    if (row->src[0].type != BW_T_NONE)
        bw_decode_vgpr(c, &inst->src[0], has_saddr ? BW_T_B32 : BW_T_B64, vaddr);
    if (has_saddr)
        bw_decode_sreg(c, &inst->src[2], BW_T_B64, saddr);
}

/* The second and third dword as VFLAT and VBUFFER share them. */
static bool takes_return(const struct bw_gfx11_op_row *row, const struct bw_inst *inst)
{
    return row->dst.type != BW_T_NONE && (!(row->flags & BW_GFX11_F_ATOMIC) || inst->th & 1);
}

bool bw_decode_vflat(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    static const struct {
        uint32_t flag;
        enum bw_gfx11_segment segment;
    } segments[] = {{BW_GFX11_F_SEG_FLAT, BW_SEGMENT_FLAT},
                    {BW_GFX11_F_SEG_SCRATCH, BW_SEGMENT_SCRATCH},
                    {BW_GFX11_F_SEG_GLOBAL, BW_SEGMENT_GLOBAL}};
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_FLAT + bw_field(word, 14, 21), BW_GFX11_FLAT);
    unsigned segment = bw_field(word, 24, 25);
    if (!row || !(row->flags & segments[segment].flag))
        return false;
    uint32_t data = bw_decode_take_dword(c), address = bw_decode_take_dword(c);
    inst->segment = (uint8_t)segments[segment].segment;
    inst->scope = (uint8_t)bw_field(data, 18, 19);
    inst->th = (uint8_t)bw_field(data, 20, 22);
    inst->offset = bw_decode_sign_extend(bw_field(address, 8, 31), 24);
    bw_decode_expect_zero(c, bw_field(word, 7, 13) | bw_field(word, 22, 23) | bw_field(data, 8, 16) |
                                 bw_field(data, 31, 31));
    if (is_maintenance(row))
        inst->offset = 0;
    flat_address(c, inst, row, bw_field(address, 0, 7), bw_field(word, 0, 6), bw_field(data, 17, 17));
    if (row->src[1].type != BW_T_NONE)
        bw_decode_vgpr(c, &inst->src[1], row->src[1].type, bw_field(data, 23, 30));
    if (takes_return(row, inst))
        bw_decode_vgpr(c, &inst->dst, row->dst.type, bw_field(data, 0, 7));
    return !c->failed;
}

bool bw_decode_vbuffer(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    enum { TYPED = 8 }; /* in the upper half of the opcode */
    bool is_typed = bw_field(word, 18, 21) == TYPED;
    const struct bw_gfx11_op_row *row =
        is_typed ? bw_decode_begin(inst, AT_MTBUF + bw_field(word, 14, 17), BW_GFX11_MTBUF)
                 : bw_decode_begin(inst, AT_MUBUF + bw_field(word, 14, 21), BW_GFX11_MUBUF);
    if (!row)
        return false;
    uint32_t data = bw_decode_take_dword(c), address = bw_decode_take_dword(c);
    inst->tfe = bw_field(word, 22, 22);
    inst->scope = (uint8_t)bw_field(data, 18, 19);
    inst->th = (uint8_t)bw_field(data, 20, 22);
    inst->data_format = is_typed ? (uint8_t)bw_field(data, 23, 29) : 0;
    inst->offen = bw_field(data, 30, 30);
    inst->idxen = bw_field(data, 31, 31);
    inst->offset = bw_decode_sign_extend(bw_field(address, 8, 31), 24);
    unsigned vaddr = bw_field(address, 0, 7);
    bw_decode_expect_zero(c, bw_field(word, 7, 13) | bw_field(word, 23, 23) | bw_field(data, 8, 8));
    if (inst->idxen || inst->offen)
        bw_decode_vgpr(c, &inst->src[0], inst->idxen && inst->offen ? BW_T_B64 : BW_T_B32, vaddr);
    bw_decode_sreg(c, &inst->src[2], BW_T_B128, bw_field(data, 9, 17));
    bw_decode_sreg(c, &inst->src[3], BW_T_B32, bw_field(word, 0, 6));
    if (is_typed || row->flags & BW_GFX11_F_ATOMIC)
        bw_decode_expect_zero(c, inst->tfe);
    return bw_decode_buffer_data(c, inst, row, bw_field(data, 0, 7), takes_return(row, inst));
}
