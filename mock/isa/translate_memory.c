/* SMEM, FLAT, DS, MUBUF, MTBUF. */
#include "base/bits.h"
#include "mock/isa/atomic.h"
#include "mock/isa/format.h"
#include "mock/isa/memory.h"
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

/* What an atomic row does; BW_ATOMIC_WIDE where the element has 64 bits. */
static const struct atomic_row {
    uint16_t flat, buffer, ds, ds_return; /* operation rows; 0: none */
    int32_t code;
} atomics[] = {
#define ROW(f, d, r, c)                                                                         \
    {                                                                                           \
        BW_GFX11_FLAT_ATOMIC_##f, BW_GFX11_BUFFER_ATOMIC_##f, BW_GFX11_DS_##d, BW_GFX11_DS_##r, \
            BW_ATOMIC_##c                                                                       \
    }
#define ROW_WIDE(f, d, r, c)                                                                    \
    {                                                                                           \
        BW_GFX11_FLAT_ATOMIC_##f, BW_GFX11_BUFFER_ATOMIC_##f, BW_GFX11_DS_##d, BW_GFX11_DS_##r, \
            BW_ATOMIC_##c | BW_ATOMIC_WIDE                                                      \
    }
#define MEMORY_ONLY(f, c)                                             \
    {                                                                 \
        BW_GFX11_FLAT_ATOMIC_##f, BW_GFX11_BUFFER_ATOMIC_##f, 0, 0, c \
    }
#define DS_ONLY(d, r, c)            \
    {                               \
        0, 0, d, BW_GFX11_DS_##r, c \
    }
    MEMORY_ONLY(SWAP_B32, BW_ATOMIC_SWAP),
    MEMORY_ONLY(SWAP_B64, BW_ATOMIC_SWAP | BW_ATOMIC_WIDE),
    DS_ONLY(0, STOREXCHG_RTN_B32, BW_ATOMIC_SWAP),
    DS_ONLY(0, STOREXCHG_RTN_B64, BW_ATOMIC_SWAP | BW_ATOMIC_WIDE),
    ROW(CMPSWAP_B32, CMPSTORE_B32, CMPSTORE_RTN_B32, CMPSWAP),
    ROW_WIDE(CMPSWAP_B64, CMPSTORE_B64, CMPSTORE_RTN_B64, CMPSWAP),
    ROW(ADD_U32, ADD_U32, ADD_RTN_U32, ADD),
    ROW_WIDE(ADD_U64, ADD_U64, ADD_RTN_U64, ADD),
    ROW(SUB_U32, SUB_U32, SUB_RTN_U32, SUB),
    ROW_WIDE(SUB_U64, SUB_U64, SUB_RTN_U64, SUB),
    MEMORY_ONLY(CSUB_U32, BW_ATOMIC_CSUB),
    ROW(MIN_I32, MIN_I32, MIN_RTN_I32, MIN_I),
    ROW_WIDE(MIN_I64, MIN_I64, MIN_RTN_I64, MIN_I),
    ROW(MIN_U32, MIN_U32, MIN_RTN_U32, MIN_U),
    ROW_WIDE(MIN_U64, MIN_U64, MIN_RTN_U64, MIN_U),
    ROW(MAX_I32, MAX_I32, MAX_RTN_I32, MAX_I),
    ROW_WIDE(MAX_I64, MAX_I64, MAX_RTN_I64, MAX_I),
    ROW(MAX_U32, MAX_U32, MAX_RTN_U32, MAX_U),
    ROW_WIDE(MAX_U64, MAX_U64, MAX_RTN_U64, MAX_U),
    ROW(AND_B32, AND_B32, AND_RTN_B32, AND),
    ROW_WIDE(AND_B64, AND_B64, AND_RTN_B64, AND),
    ROW(OR_B32, OR_B32, OR_RTN_B32, OR),
    ROW_WIDE(OR_B64, OR_B64, OR_RTN_B64, OR),
    ROW(XOR_B32, XOR_B32, XOR_RTN_B32, XOR),
    ROW_WIDE(XOR_B64, XOR_B64, XOR_RTN_B64, XOR),
    ROW(INC_U32, INC_U32, INC_RTN_U32, INC),
    ROW_WIDE(INC_U64, INC_U64, INC_RTN_U64, INC),
    ROW(DEC_U32, DEC_U32, DEC_RTN_U32, DEC),
    ROW_WIDE(DEC_U64, DEC_U64, DEC_RTN_U64, DEC),
    ROW(CMPSWAP_F32, CMPSTORE_F32, CMPSTORE_RTN_F32, CMPSWAP_F),
    ROW(MIN_F32, MIN_F32, MIN_RTN_F32, MIN_F),
    ROW(MAX_F32, MAX_F32, MAX_RTN_F32, MAX_F),
    ROW(ADD_F32, ADD_F32, ADD_RTN_F32, ADD_F),
    DS_ONLY(BW_GFX11_DS_CMPSTORE_F64, CMPSTORE_RTN_F64, BW_ATOMIC_CMPSWAP_F | BW_ATOMIC_WIDE),
    DS_ONLY(BW_GFX11_DS_MIN_F64, MIN_RTN_F64, BW_ATOMIC_MIN_F | BW_ATOMIC_WIDE),
    DS_ONLY(BW_GFX11_DS_MAX_F64, MAX_RTN_F64, BW_ATOMIC_MAX_F | BW_ATOMIC_WIDE),
    DS_ONLY(BW_GFX11_DS_RSUB_U32, RSUB_RTN_U32, BW_ATOMIC_RSUB),
    DS_ONLY(BW_GFX11_DS_RSUB_U64, RSUB_RTN_U64, BW_ATOMIC_RSUB | BW_ATOMIC_WIDE),
    DS_ONLY(BW_GFX11_DS_MSKOR_B32, MSKOR_RTN_B32, BW_ATOMIC_MSKOR),
    DS_ONLY(BW_GFX11_DS_MSKOR_B64, MSKOR_RTN_B64, BW_ATOMIC_MSKOR | BW_ATOMIC_WIDE),
    DS_ONLY(0, WRAP_RTN_B32, BW_ATOMIC_WRAP),
#undef ROW
#undef ROW_WIDE
#undef MEMORY_ONLY
#undef DS_ONLY
};

static const struct atomic_row *atomic_row(unsigned op)
{
    for (size_t i = 0; op && i < BW_COUNT_OF(atomics); i++) {
        const struct atomic_row *row = &atomics[i];
        if (row->flat == op || row->buffer == op || row->ds == op || row->ds_return == op)
            return &atomics[i];
    }
    return NULL;
}

static void put_operands(struct bw_translator *t, unsigned kind, const struct bw_uop *operands)
{
    struct bw_uop *uop = bw_emit(t, kind);
    uop->d = operands->d;
    uop->a = operands->a;
    uop->b = operands->b;
    uop->c = operands->c;
    uop->g = operands->g;
    uop->e = operands->e;
    uop->f = operands->f;
}

static enum bw_address_form flat_form(const struct bw_inst *inst)
{
    return inst->segment == BW_SEGMENT_FLAT       ? BW_ADDRESS_FLAT
           : inst->segment == BW_SEGMENT_SCRATCH  ? BW_ADDRESS_SCRATCH
           : inst->src[2].kind == BW_OPERAND_NONE ? BW_ADDRESS_GLOBAL_VECTOR
                                                  : BW_ADDRESS_GLOBAL_SCALAR;
}

/* GLOBAL_LOAD_ADDTID and its twin: the lane's number is the offset, put into a temporary. */
static int32_t lane_offsets(struct bw_translator *t)
{
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, BW_UOP_LANE_OFFSETS);
    uop->d = temp;
    uop->e = (int32_t)(t->half * BW_LANES);
    return temp;
}

static void translate_flat(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct atomic_row *atomic = atomic_row(inst->op);
    unsigned kind = atomic ? BW_UOP_ATOMIC : flat_kind(inst);
    bool by_lane = inst->op == BW_GFX11_FLAT_LOAD_ADDTID_B32 || inst->op == BW_GFX11_FLAT_STORE_ADDTID_B32;
    if (by_lane)
        kind = inst->op == BW_GFX11_FLAT_LOAD_ADDTID_B32 ? BW_GFX11_FLAT_LOAD_B32 : BW_GFX11_FLAT_STORE_B32;
    if (by_lane && inst->src[2].kind == BW_OPERAND_NONE)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        struct bw_uop operands = {.g = inst->offset};
        operands.e = (int32_t)next_range(t);
        if (by_lane)
            operands.a = lane_offsets(t);
        else if (inst->src[0].kind == BW_OPERAND_VGPR)
            operands.a = bw_vector_source(t, &inst->src[0]);
        if (inst->src[1].kind == BW_OPERAND_VGPR)
            operands.b = bw_vector_source(t, &inst->src[1]);
        if (inst->src[2].kind == BW_OPERAND_SREG)
            operands.c = bw_scalar_source(t, &inst->src[2]);
        if (inst->dst.kind == BW_OPERAND_VGPR)
            operands.d = bw_vector_destination(t, &inst->dst);
        if (atomic)
            operands.f = BW_ATOMIC_CODE(atomic->code, (int32_t)flat_form(inst)) |
                         (inst->dst.kind == BW_OPERAND_VGPR ? BW_ATOMIC_RETURN : 0);
        put_operands(t, kind, &operands);
    }
}

/* Two elements at two offsets, each in units of its size, or 64 times that. */
struct ds_pair {
    uint16_t op, single;
    uint8_t element_bytes;
    bool is_stride64;
};

static const struct ds_pair *ds_pair(unsigned op)
{
    static const struct ds_pair pairs[] = {
        {BW_GFX11_DS_LOAD_2ADDR_B32, BW_GFX11_DS_LOAD_B32, 4, false},
        {BW_GFX11_DS_LOAD_2ADDR_STRIDE64_B32, BW_GFX11_DS_LOAD_B32, 4, true},
        {BW_GFX11_DS_LOAD_2ADDR_B64, BW_GFX11_DS_LOAD_B64, 8, false},
        {BW_GFX11_DS_LOAD_2ADDR_STRIDE64_B64, BW_GFX11_DS_LOAD_B64, 8, true},
        {BW_GFX11_DS_STORE_2ADDR_B32, BW_GFX11_DS_STORE_B32, 4, false},
        {BW_GFX11_DS_STORE_2ADDR_STRIDE64_B32, BW_GFX11_DS_STORE_B32, 4, true},
        {BW_GFX11_DS_STORE_2ADDR_B64, BW_GFX11_DS_STORE_B64, 8, false},
        {BW_GFX11_DS_STORE_2ADDR_STRIDE64_B64, BW_GFX11_DS_STORE_B64, 8, true},
        {BW_GFX11_DS_STOREXCHG_2ADDR_RTN_B32, BW_UOP_ATOMIC, 4, false},
        {BW_GFX11_DS_STOREXCHG_2ADDR_STRIDE64_RTN_B32, BW_UOP_ATOMIC, 4, true},
        {BW_GFX11_DS_STOREXCHG_2ADDR_RTN_B64, BW_UOP_ATOMIC, 8, false},
        {BW_GFX11_DS_STOREXCHG_2ADDR_STRIDE64_RTN_B64, BW_UOP_ATOMIC, 8, true},
    };
    for (size_t i = 0; i < BW_COUNT_OF(pairs); i++) {
        if (pairs[i].op == op)
            return &pairs[i];
    }
    return NULL;
}

/* Loads and exchanges are one uop, which reads all that it needs before it writes a register; stores are two.
 */
static void emit_pair(struct bw_translator *t, const struct ds_pair *pair, const struct bw_uop *operands)
{
    const struct bw_inst *inst = t->inst;
    int32_t unit = pair->element_bytes * (pair->is_stride64 ? 64 : 1);
    bool wide = pair->element_bytes == 8;
    struct bw_uop first = *operands, second = *operands;
    first.g = (inst->offset & 255) * unit;
    second.g = (inst->offset >> 8 & 255) * unit;
    if (pair->single == BW_UOP_ATOMIC) {
        first.e = second.g;
        first.f = wide ? BW_ATOMIC_WIDE : 0;
        put_operands(t, BW_UOP_LDS_EXCHANGE_PAIR, &first);
    } else if (pair->single == BW_GFX11_DS_LOAD_B32 || pair->single == BW_GFX11_DS_LOAD_B64) {
        bool is_adjacent = second.g == first.g + pair->element_bytes;
        first.e = second.g;
        put_operands(t,
                     is_adjacent ? (wide ? BW_UOP_LDS_LOAD_PAIR_B64 : BW_UOP_LDS_LOAD_PAIR_B32)
                                 : (wide ? BW_UOP_LDS_LOAD_2ADDR_B64 : BW_UOP_LDS_LOAD_2ADDR_B32),
                     &first);
    } else {
        second.b = operands->c;
        put_operands(t, pair->single, &first);
        put_operands(t, pair->single, &second);
    }
}

static void translate_append(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {.g = inst->offset, .a = inst->op == BW_GFX11_DS_APPEND ? 1 : -1};
    operands.d = bw_vector_destination(t, &inst->dst);
    operands.c = t->code->wave_size == 64 ? (int32_t)t->code->vgpr_count * BW_VREG_BYTES : 0;
    put_operands(t, BW_UOP_LDS_APPEND, &operands);
}

static unsigned ds_kind(struct bw_translator *t, struct bw_uop *operands)
{
    const struct bw_inst *inst = t->inst;
    const struct atomic_row *atomic = atomic_row(inst->op);
    if (atomic) {
        operands->f = BW_ATOMIC_CODE(atomic->code, BW_ADDRESS_LDS) | BW_ATOMIC_DATA2_SEPARATE |
                      (inst->dst.kind == BW_OPERAND_VGPR ? BW_ATOMIC_RETURN : 0);
        if (inst->src[2].kind == BW_OPERAND_NONE)
            operands->c = operands->b;
        return BW_UOP_ATOMIC;
    }
    if (inst->op == BW_GFX11_DS_LOAD_ADDTID_B32 || inst->op == BW_GFX11_DS_STORE_ADDTID_B32) {
        operands->a = bw_temp(t, 1);
        operands->c = (int32_t)(t->half * BW_LANES);
    }
    return inst->op;
}

static void translate_ds(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct ds_pair *pair = ds_pair(inst->op);
    if (inst->gds)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERATION);
    if (inst->op == BW_GFX11_DS_APPEND || inst->op == BW_GFX11_DS_CONSUME) {
        translate_append(t);
        return;
    }
    if (inst->op == BW_GFX11_DS_NOP)
        return;
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES; t->half++) {
        struct bw_uop operands = {.g = inst->offset};
        if (inst->src[0].kind == BW_OPERAND_VGPR)
            operands.a = bw_vector_source(t, &inst->src[0]);
        if (inst->src[1].kind == BW_OPERAND_VGPR)
            operands.b = bw_vector_source(t, &inst->src[1]);
        if (inst->src[2].kind == BW_OPERAND_VGPR)
            operands.c = bw_vector_source(t, &inst->src[2]);
        if (inst->dst.kind == BW_OPERAND_VGPR)
            operands.d = bw_vector_destination(t, &inst->dst);
        if (pair)
            emit_pair(t, pair, &operands);
        else
            put_operands(t, ds_kind(t, &operands), &operands);
    }
}

static const struct {
    uint16_t op;
    uint8_t element; /* enum bw_element */
} buffer_rows[] = {
    {BW_GFX11_BUFFER_LOAD_U8, BW_ELEMENT_U8},
    {BW_GFX11_BUFFER_LOAD_I8, BW_ELEMENT_I8},
    {BW_GFX11_BUFFER_LOAD_U16, BW_ELEMENT_U16},
    {BW_GFX11_BUFFER_LOAD_I16, BW_ELEMENT_I16},
    {BW_GFX11_BUFFER_LOAD_B32, BW_ELEMENT_B32},
    {BW_GFX11_BUFFER_LOAD_B64, BW_ELEMENT_B64},
    {BW_GFX11_BUFFER_LOAD_B96, BW_ELEMENT_B96},
    {BW_GFX11_BUFFER_LOAD_B128, BW_ELEMENT_B128},
    {BW_GFX11_BUFFER_LOAD_D16_U8, BW_ELEMENT_D16_U8},
    {BW_GFX11_BUFFER_LOAD_D16_I8, BW_ELEMENT_D16_I8},
    {BW_GFX11_BUFFER_LOAD_D16_B16, BW_ELEMENT_D16_B16},
    {BW_GFX11_BUFFER_LOAD_D16_HI_U8, BW_ELEMENT_D16_HI_U8},
    {BW_GFX11_BUFFER_LOAD_D16_HI_I8, BW_ELEMENT_D16_HI_I8},
    {BW_GFX11_BUFFER_LOAD_D16_HI_B16, BW_ELEMENT_D16_HI_B16},
    {BW_GFX11_BUFFER_STORE_B8, BW_ELEMENT_U8},
    {BW_GFX11_BUFFER_STORE_B16, BW_ELEMENT_U16},
    {BW_GFX11_BUFFER_STORE_B32, BW_ELEMENT_B32},
    {BW_GFX11_BUFFER_STORE_B64, BW_ELEMENT_B64},
    {BW_GFX11_BUFFER_STORE_B96, BW_ELEMENT_B96},
    {BW_GFX11_BUFFER_STORE_B128, BW_ELEMENT_B128},
    {BW_GFX11_BUFFER_STORE_D16_HI_B8, BW_ELEMENT_D16_HI_U8},
    {BW_GFX11_BUFFER_STORE_D16_HI_B16, BW_ELEMENT_D16_HI_B16},
};

static int32_t buffer_element(unsigned op)
{
    for (size_t i = 0; i < BW_COUNT_OF(buffer_rows); i++) {
        if (buffer_rows[i].op == op)
            return buffer_rows[i].element;
    }
    return -1;
}

/* The typed ones stand in runs of X, XY, XYZ, XYZW. uop->f of those and of the two for high halves; 0: not
 * typed. */
static int32_t typed_code(const struct bw_inst *inst)
{
    static const struct {
        uint16_t first;
        int32_t kind;
    } runs[] = {
        {BW_GFX11_BUFFER_LOAD_FORMAT_X, 0},
        {BW_GFX11_BUFFER_STORE_FORMAT_X, 0},
        {BW_GFX11_BUFFER_LOAD_D16_FORMAT_X, BW_BUFFER_D16},
        {BW_GFX11_BUFFER_STORE_D16_FORMAT_X, BW_BUFFER_D16},
        {BW_GFX11_TBUFFER_LOAD_FORMAT_X, 0},
        {BW_GFX11_TBUFFER_STORE_FORMAT_X, 0},
        {BW_GFX11_TBUFFER_LOAD_D16_FORMAT_X, BW_BUFFER_D16},
        {BW_GFX11_TBUFFER_STORE_D16_FORMAT_X, BW_BUFFER_D16},
    };
    if (inst->op == BW_GFX11_BUFFER_LOAD_D16_HI_FORMAT_X || inst->op == BW_GFX11_BUFFER_STORE_D16_HI_FORMAT_X)
        return BW_BUFFER_FORMAT_CODE(1, 0) | BW_BUFFER_D16_HI;
    for (size_t i = 0; i < BW_COUNT_OF(runs); i++) {
        if (inst->op >= runs[i].first && inst->op < runs[i].first + BW_FORMAT_COMPONENTS)
            return BW_BUFFER_FORMAT_CODE(inst->op - runs[i].first + 1, inst->data_format) | runs[i].kind;
    }
    return 0;
}

/* Where the operands stand: buffer.c. */
static void emit_buffer_half(struct bw_translator *t, const struct atomic_row *atomic)
{
    const struct bw_inst *inst = t->inst;
    struct bw_uop operands = {.c = bw_scalar_source(t, &inst->src[2]), .g = inst->offset};
    int32_t soffset = bw_scalar_source(t, &inst->src[3]), typed = typed_code(inst);
    bool is_load = !atomic && inst->dst.kind == BW_OPERAND_VGPR;
    if (inst->src[0].kind == BW_OPERAND_VGPR)
        operands.a = bw_vector_source(t, &inst->src[0]);
    operands.b = is_load ? soffset : bw_vector_source(t, &inst->src[1]);
    operands.d = is_load ? bw_vector_destination(t, &inst->dst) : soffset;
    operands.e = (int32_t)next_range(t);
    operands.f = (inst->idxen ? BW_BUFFER_INDEX : 0) | (inst->offen ? BW_BUFFER_OFFSET : 0);
    if (atomic) {
        operands.f |= BW_ATOMIC_CODE(atomic->code, BW_ADDRESS_BUFFER) |
                      (inst->dst.kind == BW_OPERAND_VGPR ? BW_ATOMIC_RETURN : 0);
        put_operands(t, BW_UOP_BUFFER_ATOMIC, &operands);
    } else if (typed) {
        operands.f |= typed;
        put_operands(t, is_load ? BW_UOP_BUFFER_LOAD_FORMAT : BW_UOP_BUFFER_STORE_FORMAT, &operands);
    } else {
        operands.f |= buffer_element(inst->op);
        put_operands(t, is_load ? BW_UOP_BUFFER_LOAD : BW_UOP_BUFFER_STORE, &operands);
    }
}

/* TFE is about textures of which a part may be missing: where nothing is, the status register keeps what it
 * held. */
static void translate_buffer(struct bw_translator *t)
{
    const struct bw_inst *inst = t->inst;
    const struct atomic_row *atomic = atomic_row(inst->op);
    if (inst->op == BW_GFX11_BUFFER_GL0_INV || inst->op == BW_GFX11_BUFFER_GL1_INV) {
        bw_emit(t, inst->op);
        return;
    }
    if (!atomic && !typed_code(inst) && buffer_element(inst->op) < 0)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERATION);
    else if (inst->tfe && inst->dst.kind != BW_OPERAND_VGPR)
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_MODIFIER);
    else if (inst->format == BW_GFX11_MTBUF && (inst->data_format == 0 || inst->data_format >= BW_FORMATS))
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
    for (t->half = 0; t->half < t->code->wave_size / BW_LANES && !t->refused; t->half++)
        emit_buffer_half(t, atomic);
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
    case BW_GFX11_DS:
        translate_ds(t);
        break;
    default:
        translate_buffer(t);
    }
}
