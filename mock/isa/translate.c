/* The translator's common part: appending uops, operands, constants. */
#include "mock/isa/translate.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct bw_uop *append(struct bw_translator *t, unsigned kind)
{
    if (t->count == t->capacity) {
        struct bw_uop *uops = realloc(t->uops, 2 * t->capacity * sizeof *uops);
        if (uops) {
            t->uops = uops;
            t->capacity *= 2;
        } else {
            t->failed = true; /* the translation is given up: overwrite what there is */
            t->count = 0;
        }
    }
    struct bw_uop *uop = &t->uops[t->count++];
    memset(uop, 0, sizeof *uop);
    uop->run = t->handlers[kind];
    uop->pc = (int32_t)(t->pc - t->code->entry_va);
    uop->ordinal = t->ordinal;
    uop->x = t->exec_offset ? t->exec_offset : BW_OFFSET_SGPR(BW_SREG_EXEC_LO + t->half);
    return uop;
}

struct bw_uop *bw_emit(struct bw_translator *t, unsigned kind)
{
    assert(kind < BW_UOP_COUNT);
    if (!t->handlers[kind])
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERATION);
    return append(t, kind);
}

void bw_refuse(struct bw_translator *t, enum bw_isa_status status, enum bw_fault_reason reason)
{
    if (!t->refused) {
        t->refused = true;
        t->refusal = status;
        t->reason = (uint8_t)reason;
    }
}

int32_t bw_temp(struct bw_translator *t, unsigned count)
{
    if (t->temps_used + count > BW_WAVE_TEMPS) {
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
        return BW_OFFSET_TEMP(0);
    }
    t->temps_used += count;
    return BW_OFFSET_TEMP(t->temps_used - count);
}

static bool has_room(struct bw_translator *t, uint32_t count)
{
    struct bw_code *code = t->code;
    uint32_t used = code->constants_count;
    if (code->constants_limit && used + count > code->constants_limit)
        return false;
    if (used + count > code->constants_capacity) {
        uint32_t capacity = code->constants_capacity ? 2 * code->constants_capacity : 64;
        uint64_t *constants = realloc(code->constants, capacity * sizeof *constants);
        if (!constants) {
            t->failed = true;
            return false;
        }
        code->constants = constants;
        code->constants_capacity = capacity;
    }
    return true;
}

/* Index of a run of slots that hold these patterns, or -1 when there is no room. */
static int64_t constant_slots(struct bw_translator *t, const uint64_t *patterns, uint32_t count)
{
    struct bw_code *code = t->code;
    uint32_t used = code->constants_count;
    for (uint32_t i = 0; i + count <= used; i++) {
        if (memcmp(&code->constants[i], patterns, count * sizeof *patterns) == 0)
            return i;
    }
    if (!has_room(t, count))
        return -1;
    memcpy(&code->constants[used], patterns, count * sizeof *patterns);
    code->constants_count = used + count;
    return used;
}

static uint64_t splat_pattern(uint32_t value)
{
    return (uint64_t)value << 32 | value;
}

/* One or two vectors of constants. */
static int32_t constant_vectors(struct bw_translator *t, uint64_t value, uint32_t count)
{
    uint64_t patterns[2] = {splat_pattern((uint32_t)value), splat_pattern((uint32_t)(value >> 32))};
    int64_t slot = constant_slots(t, patterns, count);
    if (slot >= 0)
        return bw_code_constant_offset(t->code, (uint32_t)slot);
    int32_t temp = bw_temp(t, count);
    for (uint32_t i = 0; i < count; i++) {
        struct bw_uop *uop = bw_emit(t, BW_UOP_SPLAT_IMMEDIATE);
        uop->d = temp + (int32_t)i * BW_VREG_BYTES;
        uop->imm = (uint32_t)patterns[i];
    }
    return temp;
}

int32_t bw_constant_vector(struct bw_translator *t, uint32_t value)
{
    return constant_vectors(t, value, 1);
}

int32_t bw_constant_scalar64(struct bw_translator *t, uint64_t value)
{
    int64_t slot = constant_slots(t, &value, 1);
    if (slot >= 0)
        return bw_code_constant_offset(t->code, (uint32_t)slot);
    int32_t temp = bw_temp(t, 1);
    struct bw_uop *uop = bw_emit(t, BW_UOP_IMMEDIATE64);
    uop->d = temp;
    uop->imm = value;
    return temp;
}

static bool is_constant(const struct bw_operand *operand)
{
    return operand->kind == BW_OPERAND_INT || operand->kind == BW_OPERAND_FLOAT ||
           operand->kind == BW_OPERAND_LITERAL || operand->kind == BW_OPERAND_IMM;
}

static bool is_wide(const struct bw_operand *operand)
{
    return bw_gfx11_type_dwords((enum bw_gfx11_type)operand->type) == 2;
}

/* The slot of a special operand. */
static int32_t special_slot(struct bw_translator *t, unsigned index)
{
    switch (index) {
    case BW_SPECIAL_SHARED_BASE:
        return BW_OFFSET_SGPR(BW_SLOT_SHARED_BASE);
    case BW_SPECIAL_SHARED_LIMIT:
        return BW_OFFSET_SGPR(BW_SLOT_SHARED_LIMIT);
    case BW_SPECIAL_PRIVATE_BASE:
        return BW_OFFSET_SGPR(BW_SLOT_PRIVATE_BASE);
    case BW_SPECIAL_PRIVATE_LIMIT:
        return BW_OFFSET_SGPR(BW_SLOT_PRIVATE_LIMIT);
    case BW_SPECIAL_SCC:
        return BW_OFFSET_SGPR(BW_SLOT_SCC);
    default:
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERAND);
        return BW_OFFSET_SGPR(BW_SLOT_TEMP);
    }
}

static void use_sgprs(struct bw_translator *t, uint32_t end)
{
    if (end <= BW_SREG_VCC_LO && end > t->code->sgprs_used)
        t->code->sgprs_used = end;
}

int32_t bw_scalar_source(struct bw_translator *t, const struct bw_operand *operand)
{
    if (is_constant(operand)) {
        uint64_t value = bw_gfx11_constant(t->inst, operand);
        return is_wide(operand) ? bw_constant_scalar64(t, value) : bw_constant_vector(t, (uint32_t)value);
    }
    if (operand->kind == BW_OPERAND_SPECIAL)
        return special_slot(t, operand->index);
    assert(operand->kind == BW_OPERAND_SREG);
    if (operand->index == BW_SREG_NULL)
        return is_wide(operand) ? bw_constant_scalar64(t, 0) : bw_constant_vector(t, 0);
    use_sgprs(t, operand->index + operand->dwords);
    return BW_OFFSET_SGPR(operand->index);
}

int32_t bw_scalar_destination(struct bw_translator *t, const struct bw_operand *operand)
{
    assert(operand->kind == BW_OPERAND_SREG);
    if (operand->index == BW_SREG_NULL)
        return BW_OFFSET_SGPR(BW_SLOT_SINK);
    use_sgprs(t, operand->index + operand->dwords);
    return BW_OFFSET_SGPR(operand->index);
}

int32_t bw_mask_operand(struct bw_translator *t, const struct bw_operand *operand, bool is_destination)
{
    if (operand->kind != BW_OPERAND_SREG)
        return bw_constant_scalar64(t, (uint64_t)(int64_t)(int32_t)bw_gfx11_constant(t->inst, operand)) +
               4 * (int32_t)t->half;
    if (operand->index == BW_SREG_NULL)
        return is_destination ? BW_OFFSET_SGPR(BW_SLOT_SINK) : bw_constant_vector(t, 0);
    use_sgprs(t, operand->index + t->code->wave_size / BW_LANES);
    return BW_OFFSET_SGPR(operand->index + t->half);
}

static int32_t vgpr_offset(struct bw_translator *t, const struct bw_operand *operand)
{
    uint32_t end = operand->index + (operand->dwords ? operand->dwords : 1u);
    if (end > t->code->vgpr_count)
        bw_refuse(t, BW_ISA_ILLEGAL_INSTRUCTION, BW_REASON_VGPR_COUNT);
    else if (end > t->code->vgprs_used)
        t->code->vgprs_used = end;
    return BW_OFFSET_VGPR(operand->index + t->half * t->code->vgpr_count);
}

int32_t bw_vector_source(struct bw_translator *t, const struct bw_operand *operand)
{
    unsigned count = is_wide(operand) ? 2 : 1;
    if (operand->kind == BW_OPERAND_VGPR)
        return vgpr_offset(t, operand);
    if (is_constant(operand))
        return constant_vectors(t, bw_gfx11_constant(t->inst, operand), count);
    if (operand->kind == BW_OPERAND_SREG && operand->index == BW_SREG_NULL)
        return constant_vectors(t, 0, count);
    if (operand->kind == BW_OPERAND_SREG) {
        use_sgprs(t, operand->index + operand->dwords);
        return BW_OFFSET_SHADOW(operand->index);
    }
    int32_t slot = special_slot(t, operand->index), temp = bw_temp(t, count);
    for (unsigned i = 0; i < count; i++) {
        struct bw_uop *uop = bw_emit(t, BW_UOP_SPLAT);
        uop->d = temp + (int32_t)i * BW_VREG_BYTES;
        uop->a = slot + 4 * (int32_t)i;
    }
    return temp;
}

int32_t bw_vector_destination(struct bw_translator *t, const struct bw_operand *operand)
{
    assert(operand->kind == BW_OPERAND_VGPR);
    return vgpr_offset(t, operand);
}

static bool is_uncounted(unsigned op)
{
    return op == BW_GFX11_S_NOP || op == BW_GFX11_S_DELAY_ALU || op == BW_GFX11_S_CLAUSE;
}

/* Memory is in order here, so waits and cache maintenance have nothing to do; they count, but become no uop
 * unless control arrives at them (whose count would then miss them). */
static bool does_nothing(unsigned op)
{
    switch (op) {
    case BW_GFX11_S_WAITCNT:
    case BW_GFX11_S_WAITCNT_VSCNT:
    case BW_GFX11_S_WAITCNT_VMCNT:
    case BW_GFX11_S_WAITCNT_EXPCNT:
    case BW_GFX11_S_WAITCNT_LGKMCNT:
    case BW_GFX11_S_WAITCNT_DEPCTR:
    case BW_GFX11_S_WAIT_IDLE:
    case BW_GFX11_S_SET_INST_PREFETCH_DISTANCE:
    case BW_GFX11_S_SENDMSG:
    case BW_GFX11_BUFFER_GL0_INV:
    case BW_GFX11_BUFFER_GL1_INV:
        return true;
    default:
        return false;
    }
}

static void translate_format(struct bw_translator *t)
{
    switch (t->inst->format) {
    case BW_GFX11_SOP1:
    case BW_GFX11_SOP2:
    case BW_GFX11_SOPC:
    case BW_GFX11_SOPK:
    case BW_GFX11_SOPP:
        bw_translate_scalar(t);
        break;
    case BW_GFX11_VOPD:
        bw_translate_vopd(t);
        break;
    case BW_GFX11_SMEM:
    case BW_GFX11_DS:
    case BW_GFX11_FLAT:
    case BW_GFX11_MUBUF:
    case BW_GFX11_MTBUF:
        bw_translate_memory(t);
        break;
    case BW_GFX11_LDSDIR: /* of pixel waves */
        bw_refuse(t, BW_ISA_UNSUPPORTED, BW_REASON_OPERATION);
        break;
    default:
        bw_translate_vector(t);
    }
}

void bw_translate(struct bw_translator *t)
{
    size_t start = t->count;
    t->refused = false;
    t->temps_used = 0;
    t->half = 0;
    t->exec_offset = 0;
    if (is_uncounted(t->inst->op))
        return;
    if (does_nothing(t->inst->op) && !t->is_target) {
        t->ordinal++;
        return;
    }
    translate_format(t);
    t->half = 0;
    if (t->refused) {
        t->count = t->failed ? 0 : start;
        struct bw_uop *uop = append(t, BW_UOP_FAULT);
        uop->a = (int32_t)t->refusal;
        uop->b = t->reason;
        uop->imm = t->pc;
    }
    t->ordinal++;
}
