/* Machine code to struct bw_inst: operands, scalar formats, and which format a word is of.
 * Field positions: RDNA3 Shader ISA document, section 15 "Microcode formats". */
#include "mock/isa/decode.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"

uint32_t bw_decode_take_dword(struct bw_decode_cursor *c)
{
    uint32_t word = 0;
    if (c->bytes + sizeof word > c->code_bytes) {
        c->failed = true;
        return 0;
    }
    memcpy(&word, c->code + c->bytes, sizeof word);
    c->bytes += (unsigned)sizeof word;
    return word;
}

void bw_decode_take_literal(struct bw_decode_cursor *c, struct bw_inst *inst)
{
    if (!c->literal_read)
        inst->literal = bw_decode_take_dword(c);
    c->literal_read = true;
}

bool bw_decode_refuse(struct bw_decode_cursor *c)
{
    c->failed = true;
    return false;
}

struct bw_operand bw_decode_operand(enum bw_operand_kind kind, uint8_t type, unsigned index)
{
    return (struct bw_operand){.kind = (uint8_t)kind,
                               .type = type,
                               .dwords = (uint8_t)bw_gfx11_type_dwords(type),
                               .index = (uint16_t)index};
}

void bw_decode_vgpr(struct bw_decode_cursor *c, struct bw_operand *operand, uint8_t type, unsigned index)
{
    *operand = bw_decode_operand(BW_OPERAND_VGPR, type, index);
    if (index + operand->dwords > VGPR_COUNT)
        bw_decode_refuse(c);
}

/* Tuples are aligned (pairs to 2, longer ones to 4) and stay inside the SGPRs or inside the TTMPs. */
void bw_decode_sreg(struct bw_decode_cursor *c, struct bw_operand *operand, uint8_t type, unsigned index)
{
    *operand = bw_decode_operand(BW_OPERAND_SREG, type, index);
    unsigned dwords = operand->dwords, alignment = dwords >= 3 ? 4 : dwords;
    if (index >= 128) {
        bw_decode_refuse(c);
        return;
    }
    if (dwords <= 1 || index == BW_SREG_NULL)
        return;
    if (index < SGPR_COUNT) {
        if (index % alignment || index + dwords > SGPR_COUNT)
            bw_decode_refuse(c);
    } else if (index >= BW_SREG_TTMP0 && index < BW_SREG_TTMP0 + TTMP_COUNT) {
        if (dwords == 3 || /* LLVM has none of those */
            (index - BW_SREG_TTMP0) % alignment || index + dwords > BW_SREG_TTMP0 + TTMP_COUNT)
            bw_decode_refuse(c);
    } else if (dwords != 2 || (index != BW_SREG_VCC_LO && index != BW_SREG_EXEC_LO)) {
        bw_decode_refuse(c);
    }
}

/* An 8-bit scalar source, or the scalar half of a 9-bit vector source. */
void bw_decode_scalar_source(struct bw_decode_cursor *c, struct bw_inst *inst, struct bw_operand *operand,
                             uint8_t type, unsigned code)
{
    if (code < 128) {
        bw_decode_sreg(c, operand, type, code);
    } else if (code <= 192) {
        *operand = bw_decode_operand(BW_OPERAND_INT, type, code - 128);
    } else if (code <= 208) {
        *operand = bw_decode_operand(BW_OPERAND_INT, type, (uint16_t)(192 - (int)code));
    } else if (code >= 240 && code <= 248) {
        *operand = bw_decode_operand(BW_OPERAND_FLOAT, type, code);
    } else if (code == SRC_LITERAL) {
        if (!c->allow_literal) {
            bw_decode_refuse(c);
            return;
        }
        *operand = bw_decode_operand(BW_OPERAND_LITERAL, type, 0);
        bw_decode_take_literal(c, inst);
    } else if ((code >= BW_SPECIAL_SHARED_BASE && code <= BW_SPECIAL_POPS_EXITING_WAVE_ID) ||
               code == BW_SPECIAL_SCC) {
        *operand = bw_decode_operand(BW_OPERAND_SPECIAL, type, code);
    } else {
        bw_decode_refuse(c);
    }
}

void bw_decode_vector_source(struct bw_decode_cursor *c, struct bw_inst *inst, struct bw_operand *operand,
                             uint8_t type, unsigned code)
{
    if (code >= SRC_VGPR0)
        bw_decode_vgpr(c, operand, type, code - SRC_VGPR0);
    else
        bw_decode_scalar_source(c, inst, operand, type, code);
}

void bw_decode_imm(struct bw_operand *operand, uint8_t type, unsigned value)
{
    *operand = bw_decode_operand(BW_OPERAND_IMM, type, value);
}

const struct bw_gfx11_op_row *bw_decode_begin(struct bw_inst *inst, unsigned at, enum bw_gfx11_format format)
{
    assert(at < AT_END);
    unsigned found = inst->generation->lookup[at];
    if (!found)
        return NULL;
    inst->op = (uint16_t)(found - 1);
    inst->format = (uint8_t)format;
    return &inst->generation->ops[inst->op];
}

/* A field that the operation does not use has to be 0. */
void bw_decode_expect_zero(struct bw_decode_cursor *c, uint32_t field)
{
    if (field)
        bw_decode_refuse(c);
}

void bw_decode_scalar_dst(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                          unsigned code)
{
    if (row->dst.type != BW_T_NONE)
        bw_decode_sreg(c, &inst->dst, row->dst.type, code);
}

void bw_decode_scalar_src(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                          unsigned source, unsigned code)
{
    if (row->src[source].operand_class == BW_CLASS_IMM)
        bw_decode_imm(&inst->src[source], row->src[source].type, code);
    else if (row->src[source].operand_class == BW_CLASS_REGISTER)
        bw_decode_sreg(c, &inst->src[source], row->src[source].type, code);
    else if (row->src[source].type != BW_T_NONE)
        bw_decode_scalar_source(c, inst, &inst->src[source], row->src[source].type, code);
}

static bool decode_sop1(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row = bw_decode_begin(inst, AT_SOP1 + bw_field(word, 8, 15), BW_GFX11_SOP1);
    if (!row)
        return false;
    bw_decode_scalar_dst(c, inst, row, bw_field(word, 16, 22));
    bw_decode_scalar_src(c, inst, row, 0, bw_field(word, 0, 7));
    return !c->failed;
}

static bool decode_sop2(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SOP2 + bw_field(word, 23, 29), BW_GFX11_SOP2);
    if (!row)
        return false;
    bw_decode_scalar_dst(c, inst, row, bw_field(word, 16, 22));
    bw_decode_scalar_src(c, inst, row, 0, bw_field(word, 0, 7));
    unsigned second =
        row->src[1].operand_class == BW_CLASS_K ? 2 : 1; /* s_fmamk: the constant stands between */
    bw_decode_scalar_src(c, inst, row, second, bw_field(word, 8, 15));
    for (unsigned i = 1; i < 3; i++) {
        if (row->src[i].operand_class != BW_CLASS_K)
            continue;
        inst->src[i] = bw_decode_operand(BW_OPERAND_LITERAL, row->src[i].type, 0);
        bw_decode_take_literal(c, inst);
    }
    return !c->failed;
}

static bool decode_sopc(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SOPC + bw_field(word, 16, 22), BW_GFX11_SOPC);
    if (!row)
        return false;
    bw_decode_scalar_src(c, inst, row, 0, bw_field(word, 0, 7));
    bw_decode_scalar_src(c, inst, row, 1, bw_field(word, 8, 15));
    return !c->failed;
}

static bool decode_sopk(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SOPK + bw_field(word, 23, 27), BW_GFX11_SOPK);
    if (!row)
        return false;
    unsigned sdst = bw_field(word, 16, 22), imm = bw_field(word, 0, 15);
    if (row->dst.type != BW_T_NONE)
        bw_decode_sreg(c, &inst->dst, row->dst.type, sdst);
    for (unsigned i = 0; i < 2; i++) {
        struct bw_gfx11_operand_row source = row->src[i];
        if (source.operand_class == BW_CLASS_IMM) {
            bw_decode_imm(&inst->src[i], source.type, imm);
        } else if (source.operand_class == BW_CLASS_K) {
            inst->src[i] = bw_decode_operand(BW_OPERAND_LITERAL, source.type, 0);
            bw_decode_take_literal(c, inst);
        } else if (source.type != BW_T_NONE) { /* a source in the destination's field */
            bw_decode_sreg(c, &inst->src[i], source.type, sdst);
        }
    }
    return !c->failed;
}

static bool decode_sopp(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    const struct bw_gfx11_op_row *row =
        bw_decode_begin(inst, AT_SOPP + bw_field(word, 16, 22), BW_GFX11_SOPP);
    if (!row)
        return false;
    if (row->src[0].type != BW_T_NONE)
        bw_decode_imm(&inst->src[0], row->src[0].type, bw_field(word, 0, 15));
    else
        bw_decode_expect_zero(c, bw_field(word, 0, 15));
    return !c->failed;
}

/* --- which format --- */

static bool decode_scalar(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    if (bw_field(word, 23, 31) == 0x17d)
        return decode_sop1(c, word, inst);
    if (bw_field(word, 23, 31) == 0x17e)
        return decode_sopc(c, word, inst);
    if (bw_field(word, 23, 31) == 0x17f)
        return decode_sopp(c, word, inst);
    if (bw_field(word, 28, 31) == 0xb)
        return decode_sopk(c, word, inst);
    return decode_sop2(c, word, inst);
}

static bool decode_long12(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    switch (bw_field(word, 24, 31)) {
    case 0xc4:
        return bw_decode_vbuffer(c, word, inst);
    case 0xec:
    case 0xed:
    case 0xee:
        return bw_decode_vflat(c, word, inst);
    case 0xcc:
        return !bw_field(word, 23, 23) && bw_decode_vop3p(c, word, inst);
    default:
        break;
    }
    switch (bw_field(word, 26, 31)) {
    case 0x32:
        return bw_decode_vopd(c, word, inst);
    case 0x35:
        return bw_decode_vop3(c, word, inst);
    case 0x36:
        return bw_decode_ds(c, word, inst);
    case 0x3d:
        return bw_decode_smem12(c, word, inst);
    default:
        return false;
    }
}

static bool decode_long(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    switch (bw_field(word, 26, 31)) {
    case 0x32:
        return bw_decode_vopd(c, word, inst);
    case 0x33:
        if (bw_field(word, 24, 25) == 2)
            return bw_decode_ldsdir(c, word, inst);
        return bw_field(word, 23, 25) == 0 && bw_decode_vop3p(c, word, inst);
    case 0x35:
        return bw_decode_vop3(c, word, inst);
    case 0x36:
        return bw_decode_ds(c, word, inst);
    case 0x37:
        return bw_decode_flat(c, word, inst);
    case 0x38:
        return bw_decode_mubuf(c, word, inst);
    case 0x3a:
        return bw_decode_mtbuf(c, word, inst);
    case 0x3d:
        return bw_decode_smem(c, word, inst);
    default:
        return false;
    }
}

static bool decode_any(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst)
{
    if (bw_field(word, 30, 31) == 2)
        return decode_scalar(c, word, inst);
    if (bw_field(word, 30, 31) == 3)
        return inst->generation->is_gfx12 ? decode_long12(c, word, inst) : decode_long(c, word, inst);
    if (bw_field(word, 25, 31) == 0x3f)
        return bw_decode_vop1(c, word, inst);
    if (bw_field(word, 25, 31) == 0x3e)
        return bw_decode_vopc(c, word, inst);
    return bw_decode_vop2(c, word, inst);
}

unsigned bw_inst_decode(const struct bw_generation *generation, const void *code, uint64_t code_bytes,
                        struct bw_inst *inst)
{
    assert(generation && code && inst);
    struct bw_decode_cursor c = {.code = code, .code_bytes = code_bytes, .allow_literal = true};
    memset(inst, 0, sizeof *inst);
    inst->generation = generation;
    uint32_t word = bw_decode_take_dword(&c);
    if (c.failed || !decode_any(&c, word, inst) || c.failed)
        return 0;
    inst->bytes = (uint8_t)c.bytes;
    return c.bytes;
}

unsigned bw_gfx11_decode(const void *code, uint64_t code_bytes, struct bw_inst *inst)
{
    return bw_inst_decode(&bw_gfx11, code, code_bytes, inst);
}
