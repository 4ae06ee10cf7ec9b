/* Vector instructions that are more, or other, than one operation on each lane: lane exchange, registers
 * named at run time, mixed precision, matrices, dual issue. */
#include "mock/isa/translate.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* Distance between the halves of a register in wave64, else 0. */
static int32_t half_distance(const struct bw_translator *t)
{
    return t->code->wave_size == 64 ? (int32_t)t->code->vgpr_count * BW_VREG_BYTES : 0;
}

/* Where lane i of a row of 16 reads (RDNA3 ISA document, table "DPP_CTRL enumeration"); -1: outside the row.
 */
static int row_source(unsigned ctrl, int lane)
{
    unsigned group = ctrl & ~15u;
    int n = (int)(ctrl & 15), source;
    if (ctrl < BW_DPP_ROW_SHL)
        return (lane & ~3) | (int)(ctrl >> (2 * (lane & 3)) & 3);
    if (ctrl == BW_DPP_ROW_MIRROR)
        return 15 - lane;
    if (ctrl == BW_DPP_ROW_HALF_MIRROR)
        return (lane & 8) | (7 - (lane & 7));
    if (group == BW_DPP_ROW_SHARE)
        return n;
    if (group == BW_DPP_ROW_XMASK)
        return lane ^ n;
    if (group == BW_DPP_ROW_ROR)
        return (lane - n) & 15;
    source = group == BW_DPP_ROW_SHL ? lane + n : lane - n;
    return source < 0 || source > 15 ? -1 : source;
}

struct bw_lane_select *bw_lane_select_of(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_lane_select *select = bw_arena_alloc(&t->code->arena, sizeof *select);
    if (!select) {
        t->failed = true;
        return &t->spare;
    }
    for (int lane = 0; lane < BW_LANES; lane++) {
        int row = lane / 16, source = inst->dpp == BW_DPP_8
                                          ? (lane & 8) | (int)(inst->dpp8_sel >> (3 * (lane & 7)) & 7)
                                          : row_source(inst->dpp_ctrl, lane & 15);
        unsigned wave_row = (unsigned)row + 2 * t->half;
        bool enabled = inst->dpp == BW_DPP_8 ||
                       ((inst->row_mask >> wave_row & 1) && (inst->bank_mask >> (lane / 4 % 4) & 1));
        select->lane[lane] = source < 0 ? 0 : (uint8_t)(row * 16 + source);
        select->in_range |= (uint32_t)(source >= 0) << lane;
        select->enabled |= (uint32_t)enabled << lane;
    }
    select->fetch_inactive = inst->fetch_inactive;
    select->zero_invalid = inst->bound_ctrl || inst->dpp == BW_DPP_8;
    return select;
}

static void translate_lane_access(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {.g = half_distance(t)};
    if (inst->op == BW_GFX11_V_WRITELANE_B32) {
        operands.d = bw_vector_destination(t, &inst->dst);
        operands.a = bw_scalar_source(t, &inst->src[0]);
    } else {
        operands.d = bw_scalar_destination(t, &inst->dst);
        operands.a = bw_vector_source(t, &inst->src[0]);
        if (inst->src[0].kind != BW_OPERAND_VGPR)
            operands.g = 0;
    }
    if (inst->src[1].kind != BW_OPERAND_NONE)
        operands.b = bw_scalar_source(t, &inst->src[1]);
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->d = operands.d;
    uop->a = operands.a;
    uop->b = operands.b;
    uop->g = operands.g;
}

/* One uop for each half, scalar operands in b and c. */
static void translate_permlane(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        int32_t d = bw_vector_destination(t, &inst->dst), a = bw_vector_source(t, &inst->src[0]);
        int32_t b = bw_scalar_source(t, &inst->src[1]), c = bw_scalar_source(t, &inst->src[2]);
        struct bw_uop *uop = bw_emit(t, inst->op);
        uop->d = d;
        uop->a = a;
        uop->b = b;
        uop->c = c;
        uop->e = inst->op_sel & 3;
    }
}

static void translate_permlane64(struct bw_translator *t)
{
    if (t->code->wave_size == 32)
        return; /* does nothing there */
    int32_t d = bw_vector_destination(t, &t->inst->dst), a = bw_vector_source(t, &t->inst->src[0]);
    struct bw_uop *uop = bw_emit(t, t->inst->op);
    uop->d = d;
    uop->a = a;
    uop->g = half_distance(t);
}

static void translate_swap(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        int32_t d = bw_vector_destination(t, &inst->dst), a = bw_vector_destination(t, &inst->src[0]);
        struct bw_uop *uop = bw_emit(t, BW_GFX11_V_SWAP_B32);
        uop->d = d;
        uop->a = a;
    }
}

static void translate_swaprel(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    t->code->vgprs_used = t->code->vgpr_count;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        struct bw_uop *uop = bw_emit(t, BW_UOP_SWAPREL);
        uop->c = (int32_t)t->code->vgpr_count;
        uop->e = inst->dst.index;
        uop->f = inst->src[0].index;
        uop->g = BW_OFFSET_VGPR(t->half * t->code->vgpr_count);
    }
}

/* How M0 is added: 0 not, 1 whole, 2 its field for this side. */
static void translate_movrel(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    int32_t to = 0, from = 0;
    const struct bw_operand *d = &inst->dst, *a = &inst->src[0];
    switch (inst->op) {
    case BW_GFX11_V_MOVRELS_B32:
        from = 1;
        break;
    case BW_GFX11_V_MOVRELD_B32:
        to = 1;
        break;
    case BW_GFX11_V_MOVRELSD_B32:
        from = to = 1;
        break;
    default:
        from = to = 2;
    }
    if (inst->dpp != BW_DPP_NONE || (from && a->kind != BW_OPERAND_VGPR))
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    t->code->vgprs_used = t->code->vgpr_count;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        int32_t plain = a->kind == BW_OPERAND_VGPR ? 0 : bw_vector_source(t, a);
        struct bw_uop *uop = bw_emit(t, BW_UOP_MOVREL);
        uop->a = from;
        uop->b = to;
        uop->c = (int32_t)t->code->vgpr_count;
        uop->d = plain;
        uop->e = a->index;
        uop->f = d->index;
        uop->g = BW_OFFSET_VGPR(t->half * t->code->vgpr_count);
    }
}

static void emit_1(struct bw_translator *t, unsigned kind, int32_t d, int32_t a)
{
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = d;
    uop->a = a;
}

/* Element type of C, for its constants: a 16-bit one is taken from the constant's low half (section 7.5.1).
 */
static uint8_t matrix_constant_type(unsigned op)
{
    return op == BW_GFX11_V_WMMA_F16_16X16X16_F16     ? BW_T_F16
           : op == BW_GFX11_V_WMMA_BF16_16X16X16_BF16 ? BW_T_BF16
                                                      : BW_T_F32;
}

/* uop->f and uop->e: exec_matrix.c. */
static void translate_wmma(struct bw_translator *t)
{
    enum { HOW_SATURATE = 8, HOW_CONSTANT_C = 16, C_MODIFIERS = 4 };
    const struct bw_inst *inst = t->inst;
    int32_t d = bw_vector_destination(t, &inst->dst), a = bw_vector_source(t, &inst->src[0]);
    int32_t b = bw_vector_source(t, &inst->src[1]), c, how = inst->op_sel & 4;
    bool is_integer =
        inst->op == BW_GFX11_V_WMMA_I32_16X16X16_IU8 || inst->op == BW_GFX11_V_WMMA_I32_16X16X16_IU4;
    if (is_integer && ((inst->neg & 4) || inst->abs)) /* must be zero (section 7.9) */
        bw_refuse(t, BW_ISA_ILLEGAL_INSTRUCTION, BW_REASON_MODIFIER);
    if (inst->src[2].kind == BW_OPERAND_VGPR) {
        c = bw_vector_source(t, &inst->src[2]);
    } else {
        struct bw_operand constant = inst->src[2];
        constant.type = matrix_constant_type(inst->op);
        uint32_t value = (uint32_t)bw_gfx11_constant(inst, &constant);
        c = bw_constant_vector(t, constant.type == BW_T_F32 ? value : value * 0x10001u);
        how |= HOW_CONSTANT_C;
    }
    if (is_integer)
        how |= (inst->neg & 3) | (inst->clamp ? HOW_SATURATE : 0);
    struct bw_uop *uop = bw_emit(t, inst->op);
    uop->d = d;
    uop->a = a;
    uop->b = b;
    uop->c = c;
    uop->e = is_integer ? 0
                        : (inst->neg & 3) | (inst->abs & 3) << 2 | (inst->abs >> 2) << C_MODIFIERS |
                              (inst->neg >> 2) << (C_MODIFIERS + 1);
    uop->f = how;
    uop->g = half_distance(t);
}

bool bw_translate_special(struct bw_translator *t)
{
    switch (t->inst->op) {
    case BW_GFX11_V_NOP:
    case BW_GFX11_V_PIPEFLUSH:
        return true;
    case BW_GFX11_V_READFIRSTLANE_B32:
    case BW_GFX11_V_READLANE_B32:
    case BW_GFX11_V_WRITELANE_B32:
        translate_lane_access(t);
        return true;
    case BW_GFX11_V_PERMLANE16_B32:
    case BW_GFX11_V_PERMLANEX16_B32:
        translate_permlane(t);
        return true;
    case BW_GFX11_V_PERMLANE64_B32:
        translate_permlane64(t);
        return true;
    case BW_GFX11_V_SWAP_B32:
        translate_swap(t);
        return true;
    case BW_GFX11_V_SWAPREL_B32:
        translate_swaprel(t);
        return true;
    case BW_GFX11_V_MOVRELS_B32:
    case BW_GFX11_V_MOVRELD_B32:
    case BW_GFX11_V_MOVRELSD_B32:
    case BW_GFX11_V_MOVRELSD_2_B32:
        translate_movrel(t);
        return true;
    case BW_GFX11_V_WMMA_F32_16X16X16_F16:
    case BW_GFX11_V_WMMA_F32_16X16X16_BF16:
    case BW_GFX11_V_WMMA_F16_16X16X16_F16:
    case BW_GFX11_V_WMMA_BF16_16X16X16_BF16:
    case BW_GFX11_V_WMMA_I32_16X16X16_IU8:
    case BW_GFX11_V_WMMA_I32_16X16X16_IU4:
        translate_wmma(t);
        return true;
    default:
        return false;
    }
}

/* The two halves of VOPD read before either writes (RDNA3 ISA document, section 7.6 "Dual issue VALU"). */
struct dual {
    unsigned op;
    const struct bw_operand *dst, *src;
};

static bool reads(const struct dual *half, unsigned vgpr)
{
    bool accumulates = bw_gfx11_ops[half->op].flags & BW_GFX11_F_RMW;
    for (unsigned i = 0; i < BW_VECTOR_SOURCES; i++) {
        if (half->src[i].kind == BW_OPERAND_VGPR && half->src[i].index == vgpr)
            return true;
    }
    return accumulates && half->dst->index == vgpr;
}

/* One of the two, as the plain operation that it is. */
static void emit_dual(struct bw_translator *t, const struct dual *half, int32_t result)
{
    const struct bw_inst *whole = t->inst;
    struct bw_inst plain = {
        .op = (uint16_t)half->op, .format = BW_GFX11_VOPD, .dst = *half->dst, .literal = whole->literal};
    memcpy(plain.src, half->src, BW_VECTOR_SOURCES * sizeof plain.src[0]);
    t->inst = &plain;
    t->result_offset = result;
    bw_translate_lanes(t);
    t->result_offset = 0;
    t->inst = whole;
}

/* The kind that performs both at once, or BW_UOP_COUNT. */
static unsigned pair_kind(const struct bw_translator *t, unsigned first, unsigned second)
{
    static const uint16_t ops[] = {
        BW_GFX11_V_FMAC_F32,   BW_GFX11_V_MUL_F32,     BW_GFX11_V_ADD_F32,
        BW_GFX11_V_SUB_F32,    BW_GFX11_V_SUBREV_F32,  BW_GFX11_V_MOV_B32,
        BW_GFX11_V_ADD_NC_U32, BW_GFX11_V_LSHLREV_B32, BW_GFX11_V_AND_B32,
    };
    enum { FIRSTS = 6, SECONDS = 9, PLAIN = BW_MODE_DENORM_32 };
    unsigned x = 0, y = 0;
    while (x < FIRSTS && ops[x] != first)
        x++;
    while (y < SECONDS && ops[y] != second)
        y++;
    if (x == FIRSTS || y == SECONDS || (t->program->mode & (BW_MODE_DENORM_32 | BW_MODE_ROUND_32)) != PLAIN)
        return BW_UOP_COUNT;
    return BW_UOP_DUAL_FMAC_FMAC + x * SECONDS + y;
}

static int32_t pair_source(struct bw_translator *t, const struct bw_operand *operand)
{
    return operand->kind == BW_OPERAND_NONE ? BW_OFFSET_TEMP(0) : bw_vector_source(t, operand);
}

static void emit_pair(struct bw_translator *t, unsigned kind)
{
    const struct bw_inst *inst = t->inst;
    int32_t d = bw_vector_destination(t, &inst->dst), e = bw_vector_destination(t, &inst->y.dst);
    int32_t a = pair_source(t, &inst->src[0]), b = pair_source(t, &inst->src[1]);
    int32_t f = pair_source(t, &inst->y.src[0]), g = pair_source(t, &inst->y.src[1]);
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = d;
    uop->a = a;
    uop->b = b;
    uop->e = e;
    uop->f = f;
    uop->g = g;
}

/* The register that an operation reads through the port for third sources: its accumulator, or what
 * V_FMAMK_F32 adds; -1: none. */
static int third_source(const struct dual *half)
{
    if (bw_gfx11_ops[half->op].flags & BW_GFX11_F_RMW)
        return half->dst->index;
    return half->op == BW_GFX11_V_FMAMK_F32 ? half->src[2].index : -1;
}

static bool share_bank(const struct bw_operand *x, const struct bw_operand *y)
{
    enum { BANKS = 4 };
    return x->kind == BW_OPERAND_VGPR && y->kind == BW_OPERAND_VGPR && x->index % BANKS == y->index % BANKS;
}

/* Wave32 only; sources 0 from two banks of registers, sources 1 too, third sources one even and one odd
 * (section 7.6, "Restrictions": hard rules). */
static bool is_legal_pair(const struct bw_translator *t, const struct dual *x, const struct dual *y)
{
    int third_x = third_source(x), third_y = third_source(y);
    return t->code->wave_size == 32 && !share_bank(&x->src[0], &y->src[0]) &&
           !share_bank(&x->src[1], &y->src[1]) && (third_x < 0 || third_y < 0 || third_x % 2 != third_y % 2);
}

void bw_translate_vopd(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct dual x = {inst->op, &inst->dst, inst->src}, y = {inst->y.op, &inst->y.dst, inst->y.src};
    if (!is_legal_pair(t, &x, &y)) {
        bw_refuse(t, BW_ISA_ILLEGAL_INSTRUCTION, BW_REASON_PAIR);
        return;
    }
    unsigned kind = pair_kind(t, inst->op, inst->y.op);
    if (kind != BW_UOP_COUNT) {
        emit_pair(t, kind);
        return;
    }
    struct dual first = x, second = y;
    if (reads(&second, first.dst->index)) {
        first = y;
        second = x;
    }
    if (!reads(&second, first.dst->index)) {
        emit_dual(t, &first, 0);
        emit_dual(t, &second, 0);
        return;
    }
    /* Each reads what the other writes: the first result waits. */
    int32_t d = bw_vector_destination(t, first.dst), temp = bw_temp(t, 1);
    emit_dual(t, &first, temp);
    emit_dual(t, &second, 0);
    emit_1(t, BW_GFX11_V_MOV_B32, d, temp);
}
