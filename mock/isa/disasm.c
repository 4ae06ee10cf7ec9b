/* struct bw_inst as text, in the words of LLVM 19's disassembler for gfx1100 (AMDGPU operand and modifier
 * syntax: LLVM's AMDGPUOperandSyntax and AMDGPUModifierSyntax documents). Lane masks print as in wave32,
 * which is gfx1100's default. */
#include "mock/isa/disasm.h"

#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "mock/isa/format.h"

static void print_tuple(const char *file, unsigned index, unsigned dwords, struct bw_text *text)
{
    if (dwords <= 1)
        bw_text_add(text, "%s%u", file, index);
    else
        bw_text_add(text, "%s[%u:%u]", file, index, index + dwords - 1);
}

static void print_sreg(unsigned index, unsigned dwords, struct bw_text *text)
{
    static const char *const single[] = {[0] = "null", "m0", "exec_lo", "exec_hi"};
    if (index < BW_SREG_VCC_LO)
        print_tuple("s", index, dwords, text);
    else if (index >= BW_SREG_TTMP0 && index < BW_SREG_NULL)
        print_tuple("ttmp", index - BW_SREG_TTMP0, dwords, text);
    else if (index == BW_SREG_VCC_LO)
        bw_text_add(text, dwords == 2 ? "vcc" : "vcc_lo");
    else if (index == BW_SREG_VCC_HI)
        bw_text_add(text, "vcc_hi");
    else if (index == BW_SREG_EXEC_LO && dwords == 2)
        bw_text_add(text, "exec");
    else
        bw_text_add(text, "%s", single[index - BW_SREG_NULL]);
}

static void print_special(unsigned code, struct bw_text *text)
{
    static const char *const names[] = {
        [BW_SPECIAL_SHARED_BASE] = "src_shared_base",
        [BW_SPECIAL_SHARED_LIMIT] = "src_shared_limit",
        [BW_SPECIAL_PRIVATE_BASE] = "src_private_base",
        [BW_SPECIAL_PRIVATE_LIMIT] = "src_private_limit",
        [BW_SPECIAL_POPS_EXITING_WAVE_ID] = "src_pops_exiting_wave_id",
        [BW_SPECIAL_SCC] = "src_scc",
    };
    assert(code < BW_COUNT_OF(names) && names[code]);
    bw_text_add(text, "%s", names[code]);
}

/* LLVM's name for the value as an inline constant of this type; a literal of the same value prints in the
 * same way. */
static bool print_inline(uint8_t type, int64_t value, struct bw_text *text)
{
    static const char *const names[] = {"0.5",  "-0.5", "1.0",  "-1.0",      "2.0",
                                        "-2.0", "4.0",  "-4.0", "0.15915494"};
    enum { FIRST = 240, INVERSE_2PI = 248 };
    if (value >= -16 && value <= 64) {
        bw_text_add(text, "%d", (int)value);
        return true;
    }
    unsigned bits = bw_gfx11_type_bits(type);
    bool wide = bits > 32; /* LLVM names 1/(2 pi) in double precision, for WMMA accumulators too */
    uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << (bits == 16 ? 16 : 32)) - 1;
    for (unsigned code = FIRST; code <= INVERSE_2PI; code++) {
        struct bw_operand constant = {.kind = BW_OPERAND_FLOAT, .type = type, .index = (uint16_t)code};
        if (((uint64_t)value & mask) != bw_gfx11_constant(NULL, &constant))
            continue;
        bw_text_add(text, "%s", wide && code == INVERSE_2PI ? "0.15915494309189532" : names[code - FIRST]);
        return true;
    }
    return false;
}

static bool has_k(const struct bw_inst *inst, unsigned op)
{
    const struct bw_gfx11_op_row *row = &inst->generation->ops[op];
    return row->src[1].operand_class == BW_CLASS_K || row->src[2].operand_class == BW_CLASS_K;
}

static bool pair_has_k(const struct bw_inst *inst)
{
    return inst->format == BW_GFX11_VOPD && (has_k(inst, inst->op) || has_k(inst, inst->y.op));
}

static void print_constant(const struct bw_inst *inst, const struct bw_operand *operand, struct bw_text *text)
{
    uint64_t value = bw_gfx11_constant(inst, operand);
    bool literal = operand->kind == BW_OPERAND_LITERAL, done;
    uint8_t type = operand->type;
    if (literal && pair_has_k(inst)) /* shared with v_dual_fmamk or v_dual_fmaak: printed as they take it */
        type = BW_T_F32;
    if (inst->generation->ops[inst->op].flags & BW_GFX11_F_FIXED_SEL) /* elements of a matrix */
        type = BW_T_F32;
    switch (type) {
    case BW_T_MIX: /* LLVM takes its constants for halves */
        value = bw_gfx11_constant(inst, &(struct bw_operand){operand->kind, BW_T_F16, 1, operand->index});
        done = print_inline(BW_T_F16, (int16_t)value, text);
        break;
    case BW_T_F16:
        if (inst->format == BW_GFX11_SOP1 && literal) { /* as if it were 32 bits wide */
            value = inst->literal;
            done = print_inline(BW_T_B32, (int32_t)value, text);
        } else if (inst->format == BW_GFX11_SOPC) {
            done = print_inline(BW_T_B32, literal ? (int32_t)inst->literal : (int16_t)value, text);
        } else {
            done = print_inline(BW_T_F16, (int16_t)value, text);
        }
        break;
    case BW_T_BF16: /* the other way around */
        done = print_inline(BW_T_BF16, (int16_t)value, text);
        value = literal ? inst->literal : value;
        break;
    case BW_T_B16: /* looked at as 32 bits, printed as 16 */
        done = print_inline(BW_T_B32, literal ? (int32_t)inst->literal : (int16_t)value, text);
        break;
    case BW_T_F64:
        done = print_inline(BW_T_F64, (int64_t)value, text);
        value >>= 32;
        break;
    case BW_T_B64:
    case BW_T_I64:
        done = print_inline(BW_T_B64, literal ? (int64_t)inst->literal : (int64_t)value, text);
        break;
    default:
        done = print_inline(type, (int32_t)value, text);
    }
    if (!done)
        bw_text_add(text, "0x%x", (unsigned)value);
}

void bw_gfx11_print_operand(const struct bw_inst *inst, const struct bw_operand *operand, uint64_t pc,
                            struct bw_text *text)
{
    switch (operand->kind) {
    case BW_OPERAND_NONE:
        bw_text_add(text, "off");
        break;
    case BW_OPERAND_SREG:
        print_sreg(operand->index, operand->dwords, text);
        break;
    case BW_OPERAND_VGPR:
        print_tuple("v", operand->index, operand->dwords, text);
        break;
    case BW_OPERAND_SPECIAL:
        print_special(operand->index, text);
        break;
    case BW_OPERAND_IMM:
        bw_gfx11_print_imm(inst->generation, operand, text);
        break;
    default:
        print_constant(inst, operand, text);
    }
}

struct printer {
    const struct bw_inst *inst;
    uint64_t pc;
    struct bw_text *text;
    unsigned operands; /* printed so far */
};

static void separate(struct printer *p)
{
    bw_text_add(p->text, p->operands++ ? ", " : " ");
}

static void print_next(struct printer *p, const struct bw_operand *operand)
{
    separate(p);
    bw_gfx11_print_operand(p->inst, operand, p->pc, p->text);
}

/* A literal that always follows (v_fmamk, s_setreg_imm32) prints as a bare number. */
static void print_k(struct printer *p)
{
    separate(p);
    bw_text_add(p->text, "0x%x", p->inst->literal);
}

static void print_modified(struct printer *p, const struct bw_operand *operand, bool neg, bool abs)
{
    bool constant = operand->kind == BW_OPERAND_INT || operand->kind == BW_OPERAND_FLOAT ||
                    operand->kind == BW_OPERAND_LITERAL;
    bool call = neg && !abs && constant; /* "-1" would be a number */
    separate(p);
    bw_text_add(p->text, "%s%s", call ? "neg(" : neg ? "-" : "", abs ? "|" : "");
    bw_gfx11_print_operand(p->inst, operand, p->pc, p->text);
    bw_text_add(p->text, "%s%s", abs ? "|" : "", call ? ")" : "");
}

static void print_valu_sources(struct printer *p, const struct bw_gfx11_op_row *row, unsigned neg,
                               unsigned abs)
{
    for (unsigned i = 0; i < 3; i++) {
        const struct bw_operand *operand = &p->inst->src[i];
        if (row->src[i].operand_class == BW_CLASS_K)
            print_k(p);
        else if (operand->kind != BW_OPERAND_NONE)
            print_modified(p, operand, neg >> i & 1, abs >> i & 1);
    }
}

static bool is_vop3_only(const struct bw_gfx11_op_row *row)
{
    return row->format == BW_GFX11_VOP3 || row->format == BW_GFX11_VOP3SD || row->format == BW_GFX11_VOP3P;
}

static const char *valu_suffix(const struct bw_inst *inst, const struct bw_gfx11_op_row *row)
{
    bool e32 =
        inst->format == BW_GFX11_VOP1 || inst->format == BW_GFX11_VOP2 || inst->format == BW_GFX11_VOPC;
    if (inst->dpp != BW_DPP_NONE)
        return !e32 ? "_e64_dpp" : inst->format == BW_GFX11_VOPC ? "" : "_dpp";
    if (row->flags & BW_GFX11_F_BARE || is_vop3_only(row))
        return "";
    return e32 ? "_e32" : "_e64";
}

static void print_dpp(const struct bw_inst *inst, struct bw_text *text)
{
    unsigned ctrl = inst->dpp_ctrl, lane = ctrl & 15;
    if (inst->dpp == BW_DPP_8) {
        bw_text_add(text, " dpp8:[");
        for (unsigned i = 0; i < 8; i++)
            bw_text_add(text, "%s%u", i ? "," : "", inst->dpp8_sel >> (3 * i) & 7);
        bw_text_add(text, "]");
    } else if (ctrl < BW_DPP_ROW_SHL) {
        bw_text_add(text, " quad_perm:[%u,%u,%u,%u]", ctrl & 3, ctrl >> 2 & 3, ctrl >> 4 & 3, ctrl >> 6 & 3);
    } else if (ctrl < BW_DPP_ROW_MIRROR) {
        static const char *const names[] = {"row_shl", "row_shr", "row_ror"};
        bw_text_add(text, " %s:%u", names[(ctrl - BW_DPP_ROW_SHL) >> 4], lane);
    } else if (ctrl < BW_DPP_ROW_SHARE) {
        bw_text_add(text, ctrl == BW_DPP_ROW_MIRROR ? " row_mirror" : " row_half_mirror");
    } else {
        bw_text_add(text, " %s:%u", ctrl < BW_DPP_ROW_XMASK ? "row_share" : "row_xmask", lane);
    }
    if (inst->dpp == BW_DPP_16)
        bw_text_add(text, " row_mask:0x%x bank_mask:0x%x%s", inst->row_mask, inst->bank_mask,
                    inst->bound_ctrl ? " bound_ctrl:1" : "");
    if (inst->fetch_inactive)
        bw_text_add(text, " fi:1");
}

/* " name:[a,b,c]" from the low bits of value. */
static void print_bits(const char *name, unsigned value, unsigned count, struct bw_text *text)
{
    bw_text_add(text, " %s:[", name);
    for (unsigned i = 0; i < count; i++)
        bw_text_add(text, "%s%u", i ? "," : "", value >> i & 1);
    bw_text_add(text, "]");
}

static unsigned source_count(const struct bw_gfx11_op_row *row)
{
    unsigned count = 0;
    while (count < 3 && row->src[count].type != BW_T_NONE)
        count++;
    return count;
}

static void print_vop3_modifiers(const struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                                 struct bw_text *text)
{
    static const char *const omod[] = {"", " mul:2", " mul:4", " div:2"};
    unsigned count = row->flags & BW_GFX11_F_RMW ? 3 : source_count(row), sources = (1u << count) - 1;
    unsigned op_sel = row->flags & BW_GFX11_F_OPSEL ? inst->op_sel : 0;
    bool lanes = row->flags & BW_GFX11_F_LANES;
    if (row->src[0].type == BW_T_V2F16 || row->src[0].type == BW_T_V2BF16)
        op_sel &= 0xc; /* sources 0 and 1 are pairs */
    if (row->flags & BW_GFX11_F_BYTESEL && inst->op_sel)
        bw_text_add(text, " byte_sel:%u",
                    row->format == BW_GFX11_VOP1 ? (inst->op_sel & 1u) << 1 | inst->op_sel >> 1
                                                 : inst->op_sel >> 2u);
    if (lanes && op_sel & 3) /* fetch inactive, bound control */
        print_bits("op_sel", op_sel, 2, text);
    else if (!lanes && op_sel)
        print_bits("op_sel", (op_sel & sources) | (op_sel >> 3) << count, count + 1, text);
    bw_text_add(text, "%s%s", inst->clamp ? " clamp" : "", omod[inst->omod]);
}

static void print_vop3p_modifiers(const struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                                  struct bw_text *text)
{
    unsigned count = source_count(row), all = (1u << count) - 1;
    bool mix = row->src[0].type == BW_T_MIX, is_fixed = row->flags & BW_GFX11_F_FIXED_SEL;
    if (is_fixed && inst->op_sel)
        bw_text_add(text, " index_key:%u", inst->op_sel);
    else if (inst->op_sel & all)
        print_bits("op_sel", inst->op_sel, count, text);
    /* WMMA mostly has none. */
    bool has_op_sel = !is_fixed && (row->dst.type != BW_T_B256 || row->flags & BW_GFX11_F_OPSEL);
    if (has_op_sel && (inst->op_sel_hi & all) != (mix ? 0 : all))
        print_bits("op_sel_hi", inst->op_sel_hi, count, text);
    if (!mix && inst->neg & all)
        print_bits("neg_lo", inst->neg, count, text);
    if (!mix && inst->abs & all)
        print_bits("neg_hi", inst->abs, count, text);
    if (inst->clamp)
        bw_text_add(text, " clamp");
}

static void print_valu(struct printer *p, const struct bw_gfx11_op_row *row)
{
    const struct bw_inst *inst = p->inst;
    bool packed = inst->format == BW_GFX11_VOP3P, plain = packed && row->src[0].type != BW_T_MIX;
    bw_text_add(p->text, "%s%s", row->name, valu_suffix(inst, row));
    if (inst->dst.kind != BW_OPERAND_NONE && !(row->flags & BW_GFX11_F_CMPX))
        print_next(p, &inst->dst);
    if (inst->sdst.kind != BW_OPERAND_NONE)
        print_next(p, &inst->sdst);
    print_valu_sources(p, row, plain ? 0 : inst->neg, plain ? 0 : inst->abs);
    if (packed)
        print_vop3p_modifiers(inst, row, p->text);
    else
        print_vop3_modifiers(inst, row, p->text);
    if (inst->dpp != BW_DPP_NONE)
        print_dpp(inst, p->text);
}

static void print_vopd_half(struct printer *p, unsigned op, const struct bw_operand *dst,
                            const struct bw_operand *src)
{
    const struct bw_gfx11_op_row *row = &p->inst->generation->ops[op];
    p->operands = 0;
    bw_text_add(p->text, "v_dual_%s", row->name + strlen("v_"));
    print_next(p, dst);
    for (unsigned i = 0; i < 3; i++) {
        if (row->src[i].operand_class == BW_CLASS_K)
            print_k(p);
        else if (src[i].kind != BW_OPERAND_NONE && row->src[i].type != BW_T_MASK)
            print_next(p, &src[i]);
    }
}

static void print_vopd(struct printer *p)
{
    print_vopd_half(p, p->inst->op, &p->inst->dst, p->inst->src);
    bw_text_add(p->text, " :: ");
    print_vopd_half(p, p->inst->y.op, &p->inst->y.dst, p->inst->y.src);
}

static void print_scalar(struct printer *p, const struct bw_gfx11_op_row *row)
{
    bw_text_add(p->text, "%s", row->name);
    if (row->src[0].type == BW_T_ENDPGM && p->inst->src[0].index == 0)
        return;
    if (p->inst->dst.kind != BW_OPERAND_NONE)
        print_next(p, &p->inst->dst);
    /* The SOPK operations that test or wait name their register before the number; s_setreg after it: as in
     * the row. */
    for (unsigned i = 0; i < 3; i++) {
        if (row->format == BW_GFX11_SOP2 && row->src[i].operand_class == BW_CLASS_K)
            print_k(p);
        else if (p->inst->src[i].kind != BW_OPERAND_NONE)
            print_next(p, &p->inst->src[i]);
    }
}

/* Temporal hints: of loads, stores and atomics; some depend on the scope. */
static void print_hint(const struct bw_inst *inst, const struct bw_gfx11_op_row *row, struct bw_text *text)
{
    static const char *const loads[] = {"", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT"};
    static const char *const stores[] = {"", "NT", "HT", "RT_WB", "NT_RT", "RT_NT", "NT_HT", "NT_WB"};
    enum { RETURN = 1, NT = 2, CASCADE = 4, BYPASS = 3, RESERVED = 7, SCOPE_DEV = 2, SCOPE_SYS = 3 };
    bool is_store = row->dst.type == BW_T_NONE && inst->src[1].kind == BW_OPERAND_VGPR;
    unsigned th = inst->th;
    if (!th)
        return;
    if (row->flags & BW_GFX11_F_ATOMIC) {
        if (th & CASCADE && inst->scope < SCOPE_DEV)
            bw_text_add(text, " th:TH_ATOMIC_0x%x", th);
        else
            bw_text_add(text, " th:TH_ATOMIC_%s%s", th & CASCADE ? "CASCADE_" : "",
                        th & CASCADE ? (th & NT ? "NT" : "RT")
                        : th & NT    ? (th & RETURN ? "NT_RETURN" : "NT")
                                     : "RETURN");
    } else if (!is_store && th == RESERVED) {
        bw_text_add(text, " th:0x%x", th);
    } else {
        const char *name = th == BYPASS && inst->scope == SCOPE_SYS ? "BYPASS"
                           : is_store                               ? stores[th]
                                                                    : loads[th];
        bw_text_add(text, " th:TH_%s_%s", is_store ? "STORE" : "LOAD", name);
    }
}

static void print_cache_bits(const struct bw_inst *inst, struct bw_text *text)
{
    static const char *const scopes[] = {"", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"};
    if (inst->generation->is_gfx12) {
        print_hint(inst, &inst->generation->ops[inst->op], text);
        bw_text_add(text, "%s", scopes[inst->scope]);
        return;
    }
    bw_text_add(text, "%s%s%s", inst->glc ? " glc" : "", inst->slc ? " slc" : "", inst->dlc ? " dlc" : "");
}

static void print_signed_hex(int32_t value, struct bw_text *text)
{
    bw_text_add(text, "%s0x%x", value < 0 ? "-" : "", value < 0 ? -(unsigned)value : (unsigned)value);
}

static void print_prefetch(struct printer *p)
{
    const struct bw_inst *inst = p->inst;
    if (inst->src[0].kind != BW_OPERAND_NONE)
        print_next(p, &inst->src[0]);
    separate(p);
    print_signed_hex(inst->offset, p->text);
    print_next(p, &inst->src[1]);
    print_next(p, &inst->src[2]);
}

static void print_smem(struct printer *p, const struct bw_gfx11_op_row *row)
{
    const struct bw_inst *inst = p->inst;
    bw_text_add(p->text, "%s", row->name);
    if (row->flags & BW_GFX11_F_PREFETCH) {
        print_prefetch(p);
        return;
    }
    if (inst->dst.kind != BW_OPERAND_NONE)
        print_next(p, &inst->dst);
    unsigned base = inst->src[0].kind == BW_OPERAND_IMM;
    if (base)
        print_next(p, &inst->src[0]);
    const struct bw_operand *soffset = &inst->src[base + 1];
    if (soffset->kind == BW_OPERAND_NONE)
        return;
    print_next(p, &inst->src[base]);
    bool no_register = soffset->index == BW_SREG_NULL, is_gfx12 = inst->generation->is_gfx12;
    if (!no_register || (inst->offset == 0 && !is_gfx12))
        print_next(p, soffset);
    if (inst->offset || is_gfx12) {
        bw_text_add(p->text, no_register ? ", " : " offset:");
        print_signed_hex(inst->offset, p->text);
    }
    if (!base) /* not of s_atc_probe */
        print_cache_bits(inst, p->text);
}

static void print_ds(struct printer *p, const struct bw_gfx11_op_row *row)
{
    const struct bw_inst *inst = p->inst;
    unsigned offset = (unsigned)inst->offset;
    bw_text_add(p->text, "%s", row->name);
    if (inst->dst.kind != BW_OPERAND_NONE)
        print_next(p, &inst->dst);
    for (unsigned i = 0; i < 3; i++) {
        if (inst->src[i].kind != BW_OPERAND_NONE)
            print_next(p, &inst->src[i]);
    }
    if (row->flags & BW_GFX11_F_TWO_OFFSETS) {
        if (offset & 0xff)
            bw_text_add(p->text, " offset0:%u", offset & 0xff);
        if (offset >> 8)
            bw_text_add(p->text, " offset1:%u", offset >> 8);
    } else if (row->flags & BW_GFX11_F_SWIZZLE) {
        bw_gfx11_print_swizzle(offset, p->text);
    } else if (offset) {
        bw_text_add(p->text, " offset:%u", offset);
    }
    if (inst->gds)
        bw_text_add(p->text, " gds");
}

static void print_flat(struct printer *p, const struct bw_gfx11_op_row *row)
{
    static const char *const prefixes[] = {"flat_", "scratch_", "global_"};
    const struct bw_inst *inst = p->inst;
    bw_text_add(p->text, "%s%s", prefixes[inst->segment], row->name);
    if (inst->dst.kind != BW_OPERAND_NONE)
        print_next(p, &inst->dst);
    if (row->src[0].type != BW_T_NONE)
        print_next(p, &inst->src[0]);
    if (inst->src[1].kind != BW_OPERAND_NONE)
        print_next(p, &inst->src[1]);
    bool is_bare =
        row->dst.type == BW_T_NONE && row->src[0].type == BW_T_NONE && row->src[1].type == BW_T_NONE;
    if (inst->segment != BW_SEGMENT_FLAT && !is_bare)
        print_next(p, &inst->src[2]);
    if (inst->offset)
        bw_text_add(p->text, " offset:%d", inst->offset);
    print_cache_bits(inst, p->text);
}

/* LLVM leaves its own default out. */
static void print_data_format(const struct bw_inst *inst, struct bw_text *text)
{
    enum { LLVM_DEFAULT = 1 };
    if (inst->data_format >= BW_FORMATS)
        bw_text_add(text, " format:%u", inst->data_format);
    else if (inst->data_format != LLVM_DEFAULT)
        bw_text_add(text, " format:[BUF_FMT_%s]", bw_formats[inst->data_format].name);
}

static void print_buffer(struct printer *p, const struct bw_gfx11_op_row *row)
{
    const struct bw_inst *inst = p->inst;
    bw_text_add(p->text, "%s", row->name);
    if (row->src[2].type == BW_T_NONE)
        return;
    if (inst->src[1].kind != BW_OPERAND_NONE)
        print_next(p, &inst->src[1]);
    else if (inst->dst.kind != BW_OPERAND_NONE)
        print_next(p, &inst->dst);
    print_next(p, &inst->src[0]);
    print_next(p, &inst->src[2]);
    print_next(p, &inst->src[3]);
    if (inst->format == BW_GFX11_MTBUF)
        print_data_format(inst, p->text);
    bw_text_add(p->text, "%s%s", inst->idxen ? " idxen" : "", inst->offen ? " offen" : "");
    if (inst->offset)
        bw_text_add(p->text, " offset:%d", inst->offset);
    print_cache_bits(inst, p->text);
    if (inst->tfe)
        bw_text_add(p->text, " tfe");
}

static void print_ldsdir(struct printer *p, const struct bw_gfx11_op_row *row)
{
    bw_text_add(p->text, "%s", row->name);
    print_next(p, &p->inst->dst);
    if (p->inst->src[0].kind != BW_OPERAND_NONE)
        print_next(p, &p->inst->src[0]);
    bw_text_add(p->text, " wait_vdst:%u", p->inst->wait_vdst);
}

void bw_inst_print(const struct bw_inst *inst, uint64_t pc, struct bw_text *text)
{
    const struct bw_gfx11_op_row *row = &inst->generation->ops[inst->op];
    struct printer p = {.inst = inst, .pc = pc, .text = text};
    switch (inst->format) {
    case BW_GFX11_SMEM:
        print_smem(&p, row);
        break;
    case BW_GFX11_VOP1:
    case BW_GFX11_VOP2:
    case BW_GFX11_VOPC:
    case BW_GFX11_VOP3:
    case BW_GFX11_VOP3SD:
    case BW_GFX11_VOP3P:
        print_valu(&p, row);
        break;
    case BW_GFX11_VOPD:
        print_vopd(&p);
        break;
    case BW_GFX11_DS:
        print_ds(&p, row);
        break;
    case BW_GFX11_FLAT:
        print_flat(&p, row);
        break;
    case BW_GFX11_MUBUF:
    case BW_GFX11_MTBUF:
        print_buffer(&p, row);
        break;
    case BW_GFX11_LDSDIR:
        print_ldsdir(&p, row);
        break;
    default:
        print_scalar(&p, row);
    }
}
