/* What a wave does outside of its handlers: memory look-up, faults, polls, indirect jumps, hardware
 * registers. */
#include "mock/isa/wave.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "mock/isa/memory.h"
#include "mock/isa/pool.h"
#include "mock/isa/translate.h"

uint8_t *bw_worker_resolve(struct bw_worker *worker, struct bw_range *range, uint64_t va, uint64_t size_bytes,
                           enum bw_isa_access access)
{
    uint64_t start = va, bytes = 0;
    uint8_t *host = worker->memory.resolve(worker->memory.user, va, access, &start, &bytes);
    if (!host || bytes < size_bytes)
        return NULL;
    assert(start <= va);
    range->start_va = start;
    range->size_bytes = va - start + bytes;
    range->host = host - (va - start);
    return host;
}

static const char *reason_text(unsigned reason)
{
    switch (reason) {
    case BW_REASON_OPERATION:
        return "operation not emulated: ";
    case BW_REASON_MODIFIER:
        return "modifier or mode not emulated: ";
    case BW_REASON_OPERAND:
        return "operand not emulated: ";
    case BW_REASON_PAIR:
        return "no pair that can be issued together: ";
    case BW_REASON_DISTANCE:
        return "code too far from the kernel's entry: ";
    case BW_REASON_VGPR_COUNT:
        return "VGPR beyond those allocated: ";
    case BW_REASON_CUT:
        return "the rest of an instruction is not there: ";
    default:
        return "";
    }
}

/* The instruction at pc as text; empty when it cannot be read. */
static void describe(struct bw_worker *worker, uint64_t pc, unsigned reason, char *text, size_t text_bytes)
{
    uint64_t start, valid;
    const void *code = worker->memory.resolve(worker->memory.user, pc, BW_ISA_EXECUTE, &start, &valid);
    struct bw_text line = {0};
    struct bw_inst inst;
    if (!code)
        bw_text_add(&line, "no code here");
    else if (bw_gfx11_decode(code, valid, &inst))
        bw_inst_print(&inst, pc, &line);
    else if (valid >= 4) {
        uint32_t word;
        memcpy(&word, code, 4);
        bw_text_add(&line, "%s0x%08x", reason == BW_REASON_CUT ? "" : "no instruction: ", word);
    }
    bw_text_fit(text, text_bytes, "%s%s", reason_text(reason), bw_text_string(&line));
    bw_text_free(&line);
}

const struct bw_uop *bw_wave_fault(struct bw_wave *wave, const struct bw_uop *uop, enum bw_isa_status status,
                                   uint64_t va, uint32_t access, uint32_t lane)
{
    struct bw_fault *fault = &wave->worker->fault;
    struct bw_isa_pool *pool = wave->worker->pool;
    fault->status = status;
    bool is_fault_uop = uop->run == pool->handlers[BW_UOP_FAULT];
    fault->pc = is_fault_uop ? uop->imm : wave->code_va + (uint64_t)(int64_t)uop->pc;
    fault->va = va;
    fault->access = access;
    fault->lane = lane;
    describe(wave->worker, fault->pc, is_fault_uop ? (unsigned)uop->b : BW_REASON_NONE, fault->text,
             sizeof fault->text);
    wave->resume = uop;
    wave->stop = BW_WAVE_FAULT;
    return NULL;
}

void bw_wave_explain(struct bw_wave *wave, const char *format, ...)
{
    struct bw_fault *fault = &wave->worker->fault;
    char text[sizeof fault->text];
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = strlen(text);
    if (length + sizeof "..." < sizeof text)
        bw_text_fit(text + length, sizeof text - length, "%s", fault->text);
    memcpy(fault->text, text, sizeof text);
}

/* Adds what the wave has executed since the last time to the worker's count; `next` is where it goes on. */
static void count_instructions(struct bw_wave *wave, uint32_t ordinal)
{
    uint64_t total = (uint64_t)(wave->granted - wave->budget) + ordinal;
    wave->worker->instructions += total - wave->counted;
    wave->counted = total;
}

void bw_wave_finish_count(struct bw_wave *wave)
{
    count_instructions(wave, wave->stop == BW_WAVE_ENDED ? 0 : wave->resume->ordinal);
}

const struct bw_uop *bw_wave_poll(struct bw_wave *wave, const struct bw_uop *target)
{
    struct bw_worker *worker = wave->worker;
    count_instructions(wave, target->ordinal);
    wave->granted += BW_WAVE_BUDGET;
    wave->budget += BW_WAVE_BUDGET;
    atomic_fetch_add_explicit(&worker->control->instructions, worker->instructions - worker->reported,
                              memory_order_relaxed);
    worker->reported = worker->instructions;
    /* A wave that runs alone has nobody to yield to in its group, but other groups may have to come on. */
    enum { POLLS_ALONE = 64 };
    worker->polls++;
    if (!worker->alone || worker->polls >= POLLS_ALONE ||
        atomic_load_explicit(&worker->control->stop, memory_order_relaxed)) {
        wave->resume = target;
        wave->stop = BW_WAVE_YIELD;
        return NULL;
    }
    return target;
}

void bw_wave_sync_constants(struct bw_wave *wave, struct bw_code *code)
{
    if (wave->code_id == code->id && wave->constants_filled == code->constants_count)
        return;
    pthread_mutex_lock(&wave->worker->pool->code_lock);
    bw_wave_fill_constants(wave, code);
    pthread_mutex_unlock(&wave->worker->pool->code_lock);
}

static const struct bw_uop *find_target(struct bw_wave *wave, const struct bw_uop *uop, uint64_t pc)
{
    struct bw_worker *worker = wave->worker;
    struct bw_program *program;
    const struct bw_uop *target =
        bw_code_find(worker->pool, worker, wave->program->code, wave->mode & BW_MODE_KEY, pc, &program);
    if (!target) {
        bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, 0, 0, 0);
        snprintf(worker->fault.text, sizeof worker->fault.text,
                 "out of memory while translating code at 0x%llx", (unsigned long long)pc);
        return NULL;
    }
    wave->program = program;
    bw_wave_sync_constants(wave, program->code);
    return target;
}

const struct bw_uop *bw_wave_jump(struct bw_wave *wave, const struct bw_uop *uop, uint64_t pc)
{
    struct bw_worker *worker = wave->worker;
    pc &= ~3ull;
    unsigned entry = (unsigned)(pc >> 2) % BW_JUMP_ENTRIES;
    const struct bw_uop *target = worker->jump[entry].uop;
    if (worker->jump[entry].pc != pc || worker->jump[entry].program != wave->program || !target) {
        target = find_target(wave, uop, pc);
        if (!target)
            return NULL;
        worker->jump[entry].pc = pc;
        worker->jump[entry].program = wave->program;
        worker->jump[entry].uop = target;
    }
    bw_wave_sync_constants(wave, wave->program->code);
    int64_t taken = (int64_t)uop->ordinal + 1 - (int64_t)target->ordinal;
    wave->budget -= taken;
    return wave->budget < 0 ? bw_wave_poll(wave, target) : target;
}

const struct bw_uop *bw_wave_change_mode(struct bw_wave *wave, const struct bw_uop *uop)
{
    if ((wave->mode & BW_MODE_KEY) == wave->program->mode)
        return uop + 1;
    uint64_t next = wave->code_va + (uint64_t)(int64_t)uop->pc + (uint64_t)uop->b;
    return bw_wave_jump(wave, uop, next);
}

const struct bw_uop *bw_wave_check_code(struct bw_wave *wave, const struct bw_uop *uop)
{
    struct bw_worker *worker = wave->worker;
    pthread_mutex_lock(&worker->pool->code_lock);
    bool is_current = bw_code_is_current(worker, wave->program->code);
    pthread_mutex_unlock(&worker->pool->code_lock);
    if (is_current)
        return uop + 1;
    bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, 0, 0, 0);
    snprintf(worker->fault.text, sizeof worker->fault.text, "the running kernel's code was changed");
    return NULL;
}

/* Hardware registers (RDNA3 ISA document, section 3.4; numbers as LLVM 19 names them for gfx11). */
enum {
    HWREG_MODE = 1,
    HWREG_STATUS = 2,
    HWREG_TRAPSTS = 3,
    HWREG_GPR_ALLOC = 5,
    HWREG_LDS_ALLOC = 6,
    HWREG_IB_STS = 7,
    HWREG_SH_MEM_BASES = 15,
    HWREG_FLAT_SCR_LO = 20,
    HWREG_FLAT_SCR_HI = 21,
    HWREG_HW_ID1 = 23,
    HWREG_HW_ID2 = 24,
    HWREG_SHADER_CYCLES = 29,
};

static uint64_t clock_of(const struct bw_wave *wave)
{
    const struct bw_isa_dispatch *dispatch = wave->dispatch;
    return dispatch->clock ? dispatch->clock(dispatch->clock_user) : 0;
}

static bool read_register(struct bw_wave *wave, unsigned id, uint32_t *value)
{
    switch (id) {
    case HWREG_MODE:
        *value = wave->mode;
        return true;
    case HWREG_STATUS: /* SCC, EXECZ, VCCZ as far as a kernel can use them */
        *value = wave->sgpr[BW_SLOT_SCC];
        return true;
    case HWREG_TRAPSTS:
        *value = wave->trap_status;
        return true;
    case HWREG_GPR_ALLOC: /* VGPR_SIZE [17:12] in units of 8 (wave32) or 4 */
        *value = (wave->program->code->vgpr_count / (wave->wave_size == 32 ? 8 : 4) - 1) << 12;
        return true;
    case HWREG_LDS_ALLOC: /* LDS_SIZE [20:12] in units of 128 dwords */
        *value = (uint32_t)((wave->lds_bytes + 511) / 512) << 12;
        return true;
    case HWREG_IB_STS:
        *value = 0;
        return true;
    case HWREG_SH_MEM_BASES: /* PRIVATE_BASE [15:0], SHARED_BASE [31:16]: address bits 63:48 */
        *value = (uint32_t)(wave->private_aperture >> 48) | (uint32_t)(wave->shared_aperture >> 48) << 16;
        return true;
    case HWREG_FLAT_SCR_LO:
        *value = (uint32_t)wave->scratch_va;
        return true;
    case HWREG_FLAT_SCR_HI:
        *value = (uint32_t)(wave->scratch_va >> 32);
        return true;
    case HWREG_HW_ID1: /* WAVE_ID [4:0], SIMD_ID [9:8], WGP_ID [13:10]: one place per worker */
        *value = (wave->index & 15) | (wave->index / 16 & 3) << 8 | (wave->worker->index & 15) << 10;
        return true;
    case HWREG_HW_ID2:
        *value = 0;
        return true;
    case HWREG_SHADER_CYCLES:
        *value = (uint32_t)clock_of(wave) & 0xfffff; /* 20 bits on gfx11 */
        return true;
    default:
        return false;
    }
}

static bool unknown_register(struct bw_wave *wave, const struct bw_uop *uop, unsigned id)
{
    bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, 0, 0, 0);
    bw_wave_explain(wave, "hardware register %u not emulated: ", id);
    return false;
}

bool bw_wave_get_register(struct bw_wave *wave, const struct bw_uop *uop, uint32_t *value)
{
    unsigned id = (unsigned)uop->e & 63, offset = (unsigned)uop->e >> 6 & 31,
             size = ((unsigned)uop->e >> 11 & 31) + 1;
    uint32_t whole;
    if (!read_register(wave, id, &whole))
        return unknown_register(wave, uop, id);
    *value = whole >> offset & (uint32_t)((1ull << size) - 1);
    return true;
}

const struct bw_uop *bw_wave_set_register(struct bw_wave *wave, const struct bw_uop *uop, uint32_t value)
{
    unsigned id = (unsigned)uop->e & 63, offset = (unsigned)uop->e >> 6 & 31,
             size = ((unsigned)uop->e >> 11 & 31) + 1;
    uint32_t mask = (uint32_t)(((1ull << size) - 1) << offset);
    switch (id) {
    case HWREG_MODE:
        wave->mode = (wave->mode & ~mask) | (value << offset & mask);
        return bw_wave_change_mode(wave, uop);
    case HWREG_STATUS: /* nothing that user code may write matters here */
    case HWREG_TRAPSTS:
        if (id == HWREG_TRAPSTS)
            wave->trap_status = (wave->trap_status & ~mask) | (value << offset & mask);
        return uop + 1;
    default:
        unknown_register(wave, uop, id);
        return NULL;
    }
}

/* S_SENDMSG_RTN: message numbers as LLVM 19 names them for gfx11. */
bool bw_wave_message(struct bw_wave *wave, const struct bw_uop *uop, uint64_t *value)
{
    enum {
        MSG_RTN_GET_DOORBELL = 128,
        MSG_RTN_GET_DDID = 129,
        MSG_RTN_GET_TMA = 130,
        MSG_RTN_GET_REALTIME = 131
    };
    switch (uop->imm & 0xff) {
    case MSG_RTN_GET_REALTIME:
        *value = clock_of(wave);
        return true;
    default:
        bw_wave_fault(wave, uop, BW_ISA_UNSUPPORTED, 0, 0, 0);
        return false;
    }
}
