/* Branches, barriers, waits, hardware registers, messages, scalar loads: RDNA3 Shader ISA document,
 * sections 4.1, 16.5 and 16.6, "Hardware registers" in section 3.4. */
#include "mock/isa/exec_vec.h"

#define SCC wave->sgpr[BW_SLOT_SCC]

/* Branches. uop->target is the taken path, uop->g how many instructions taking it adds to the count (negative
 * forward): the budget then always holds what has been executed, with nothing to do on the straight path. */
#define TAKE_BRANCH                                                      \
    do {                                                                 \
        wave->budget -= uop->g;                                          \
        if (__builtin_expect(wave->budget < 0 && uop->g > 0, 0)) {       \
            const struct bw_uop *next = bw_wave_poll(wave, uop->target); \
            return next;                                                 \
        }                                                                \
        GO(uop->target);                                                 \
    } while (0)
#define BRANCH(op, condition) \
    HANDLER(x_##op)           \
    {                         \
        if (condition)        \
            TAKE_BRANCH;      \
        NEXT;                 \
    }

/* uop->a: the mask register, one or two dwords by wave size (uop->b). */
static inline uint64_t mask_register(const struct bw_wave *wave, const struct bw_uop *uop)
{
    return uop->b ? bw_sgpr64(wave, uop->a) : scalar(wave, uop->a);
}

BRANCH(S_BRANCH, true)
BRANCH(S_CBRANCH_SCC0, SCC == 0)
BRANCH(S_CBRANCH_SCC1, SCC != 0)
BRANCH(S_CBRANCH_VCCZ, mask_register(wave, uop) == 0)
BRANCH(S_CBRANCH_VCCNZ, mask_register(wave, uop) != 0)
BRANCH(S_CBRANCH_EXECZ, mask_register(wave, uop) == 0)
BRANCH(S_CBRANCH_EXECNZ, mask_register(wave, uop) != 0)

HANDLER(x_S_CALL_B64)
{
    write_scalar64(wave, uop->d, wave->code_va + (uint64_t)(int64_t)uop->pc + 4);
    TAKE_BRANCH;
}

HANDLER(x_S_GETPC_B64)
{
    write_scalar64(wave, uop->d, wave->code_va + (uint64_t)(int64_t)uop->pc + 4);
    NEXT;
}

HANDLER(x_S_SETPC_B64)
{
    return bw_wave_jump(wave, uop, bw_sgpr64(wave, uop->a));
}

HANDLER(x_S_SWAPPC_B64)
{
    uint64_t target = bw_sgpr64(wave, uop->a);
    write_scalar64(wave, uop->d, wave->code_va + (uint64_t)(int64_t)uop->pc + 4);
    return bw_wave_jump(wave, uop, target);
}

static const struct bw_uop *stop_at(struct bw_wave *wave, const struct bw_uop *resume, enum bw_wave_stop stop)
{
    wave->resume = resume;
    wave->stop = stop;
    return NULL;
}

HANDLER(x_S_ENDPGM)
{
    wave->budget -= uop->ordinal + 1;
    return stop_at(wave, uop, BW_WAVE_ENDED);
}

HANDLER(x_S_BARRIER)
{
    return stop_at(wave, uop + 1, BW_WAVE_BARRIER);
}

HANDLER(x_S_SLEEP)
{
    return stop_at(wave, uop + 1, BW_WAVE_YIELD);
}

HANDLER(x_S_ICACHE_INV)
{
    return bw_wave_check_code(wave, uop);
}

HANDLER(x_nothing)
{
    NEXT;
}

HANDLER(x_S_SENDMSG)
{
    NEXT;
}

HANDLER(x_S_SETREG_B32)
{
    return bw_wave_set_register(wave, uop, scalar(wave, uop->a));
}

HANDLER(x_S_GETREG_B32)
{
    uint32_t value;
    if (!bw_wave_get_register(wave, uop, &value))
        return NULL;
    *BW_AT(uint32_t, wave, uop->d) = value;
    write_scalar(wave, uop->d, value);
    STEP;
}

HANDLER(x_S_SENDMSG_RTN_B32)
{
    uint64_t value;
    if (!bw_wave_message(wave, uop, &value))
        return NULL;
    write_scalar(wave, uop->d, (uint32_t)value);
    STEP;
}

HANDLER(x_S_SENDMSG_RTN_B64)
{
    uint64_t value;
    if (!bw_wave_message(wave, uop, &value))
        return NULL;
    write_scalar64(wave, uop->d, value);
    STEP;
}

/* uop->a: status, b: reason, imm: pc, d: how much behind it could be fetched. */
HANDLER(x_FAULT)
{
    bool is_fetch = uop->a == BW_ISA_MEMORY_FAULT;
    return bw_wave_fault(wave, uop, (enum bw_isa_status)uop->a, is_fetch ? uop->imm + (uint64_t)uop->d : 0,
                         is_fetch ? BW_ISA_EXECUTE : 0, 0);
}

/* Falls into code that was translated before: like a branch that costs no instruction. */
HANDLER(x_LINK)
{
    wave->budget -= uop->g;
    GO(uop->target);
}

/* SCC, VCCZ and EXECZ as operands of vector operations: a dword into every lane of uop->d. */
HANDLER(x_SPLAT)
{
    uint32_t value = scalar(wave, uop->a);
    vu *d = BW_AT(vu, wave, uop->d);
    EACH_CHUNK d[i] = splat(value);
    NEXT;
}

/* Puts uop->imm into the two dwords at uop->d. */
HANDLER(x_IMMEDIATE64)
{
    memcpy((char *)wave + uop->d, &uop->imm, 8);
    NEXT;
}

/* uop->imm in every lane of uop->d: constants for which the wave has no room. */
HANDLER(x_SPLAT_IMMEDIATE)
{
    vu *d = BW_AT(vu, wave, uop->d);
    EACH_CHUNK d[i] = splat((uint32_t)uop->imm);
    NEXT;
}

/* Scalar loads: address = base + offset register + immediate, of each of which the two low bits are ignored
 * (RDNA3 ISA document, section 8.1.1). */
static inline uint64_t scalar_address(const struct bw_wave *wave, const struct bw_uop *uop)
{
    return (bw_sgpr64(wave, uop->a) & ~3ull) + (scalar(wave, uop->b) & ~3u) +
           ((uint64_t)(int64_t)uop->g & ~3ull);
}

static inline const uint8_t *scalar_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va,
                                           uint32_t bytes)
{
    struct bw_range *range = &wave->worker->read[uop->e];
    uint64_t offset = va - range->start_va;
    if (__builtin_expect(offset < range->size_bytes && range->size_bytes - offset >= bytes, 1))
        return range->host + offset;
    return bw_worker_resolve(wave->worker, range, va, bytes, BW_ISA_READ);
}

/* Dword by dword: from two mappings next to each other, or to a fault. */
static __attribute__((noinline)) const struct bw_uop *scalar_load_dwords(struct bw_wave *wave,
                                                                         const struct bw_uop *uop, int count)
{
    uint64_t va = scalar_address(wave, uop);
    for (int i = 0; i < count; i++) {
        const uint8_t *memory = scalar_memory(wave, uop, va + 4 * (uint64_t)i, 4);
        uint32_t value;
        if (!memory)
            return bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, va + 4 * (uint64_t)i, BW_ISA_READ, 0);
        memcpy(&value, memory, 4);
        write_scalar(wave, uop->d + 4 * i, value);
    }
    STEP;
}

#define SCALAR_LOAD(op, count)                                                                    \
    HANDLER(x_##op)                                                                               \
    {                                                                                             \
        const uint8_t *memory = scalar_memory(wave, uop, scalar_address(wave, uop), 4 * (count)); \
        if (__builtin_expect(!memory, 0))                                                         \
            return scalar_load_dwords(wave, uop, count);                                          \
        UNROLL for (int i = 0; i < (count); i++)                                                  \
        {                                                                                         \
            uint32_t value;                                                                       \
            memcpy(&value, memory + 4 * i, 4);                                                    \
            write_scalar(wave, uop->d + 4 * i, value);                                            \
        }                                                                                         \
        NEXT;                                                                                     \
    }
SCALAR_LOAD(S_LOAD_B32, 1)
SCALAR_LOAD(S_LOAD_B64, 2)
SCALAR_LOAD(S_LOAD_B128, 4)
SCALAR_LOAD(S_LOAD_B256, 8)
SCALAR_LOAD(S_LOAD_B512, 16)

/* Through a buffer descriptor: dwords beyond its size read 0, a negative immediate is a violation (RDNA3 ISA
 * document, section 8.1.2 "Loads using buffer constant"). */
static const struct bw_uop *scalar_buffer_load(struct bw_wave *wave, const struct bw_uop *uop, uint32_t count)
{
    const uint32_t *descriptor = BW_AT(const uint32_t, wave, uop->a);
    uint64_t base = ((uint64_t)(descriptor[1] & 0xffff) << 32 | descriptor[0]) & ~3ull;
    uint64_t stride = descriptor[1] >> 16 & 0x3fff;
    uint64_t limit = (uint64_t)descriptor[2] * (stride ? stride : 1);
    uint64_t offset = (uint64_t)scalar(wave, uop->b) + (uint64_t)(int64_t)uop->g;
    if (uop->g < 0)
        return bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, base + offset, BW_ISA_READ, 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = 0;
        uint64_t at = offset + 4 * i;
        if (at < limit) {
            const uint8_t *memory = scalar_memory(wave, uop, base + (at & ~3ull), 4);
            if (!memory)
                return bw_wave_fault(wave, uop, BW_ISA_MEMORY_FAULT, base + (at & ~3ull), BW_ISA_READ, 0);
            memcpy(&value, memory, 4);
        }
        write_scalar(wave, uop->d + 4 * (int32_t)i, value);
    }
    STEP;
}

#define SCALAR_BUFFER_LOAD(op, count)                \
    HANDLER(x_##op)                                  \
    {                                                \
        return scalar_buffer_load(wave, uop, count); \
    }
SCALAR_BUFFER_LOAD(S_BUFFER_LOAD_B32, 1)
SCALAR_BUFFER_LOAD(S_BUFFER_LOAD_B64, 2)
SCALAR_BUFFER_LOAD(S_BUFFER_LOAD_B128, 4)
SCALAR_BUFFER_LOAD(S_BUFFER_LOAD_B256, 8)
SCALAR_BUFFER_LOAD(S_BUFFER_LOAD_B512, 16)

#define R(op)       {BW_GFX11_##op, x_##op},
#define NOTHING(op) {BW_GFX11_##op, x_nothing},
#define H(op)       {BW_UOP_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    R(S_BRANCH) R(S_CBRANCH_SCC0) R(S_CBRANCH_SCC1) R(S_CBRANCH_VCCZ) R(S_CBRANCH_VCCNZ) R(S_CBRANCH_EXECZ)
    R(S_CBRANCH_EXECNZ) R(S_CALL_B64) R(S_GETPC_B64) R(S_SETPC_B64) R(S_SWAPPC_B64) R(S_ENDPGM) R(S_BARRIER)
    R(S_SLEEP) R(S_SENDMSG) R(S_SETREG_B32) R(S_GETREG_B32) R(S_SENDMSG_RTN_B32) R(S_SENDMSG_RTN_B64)
    R(S_LOAD_B32) R(S_LOAD_B64) R(S_LOAD_B128) R(S_LOAD_B256) R(S_LOAD_B512) R(S_BUFFER_LOAD_B32)
    R(S_BUFFER_LOAD_B64) R(S_BUFFER_LOAD_B128) R(S_BUFFER_LOAD_B256) R(S_BUFFER_LOAD_B512) H(FAULT) H(LINK)
    H(SPLAT) H(IMMEDIATE64) H(SPLAT_IMMEDIATE) R(S_ICACHE_INV)
    /* Memory is in order here, so waiting and cache maintenance have nothing to do. */
    NOTHING(S_WAITCNT) NOTHING(S_WAITCNT_VSCNT) NOTHING(S_WAITCNT_VMCNT)
    NOTHING(S_WAITCNT_EXPCNT) NOTHING(S_WAITCNT_LGKMCNT) NOTHING(S_WAITCNT_DEPCTR) NOTHING(S_WAIT_IDLE)
    NOTHING(S_VERSION) NOTHING(S_SET_INST_PREFETCH_DISTANCE) NOTHING(S_SETPRIO) NOTHING(S_INCPERFLEVEL)
    NOTHING(S_DECPERFLEVEL) NOTHING(S_TTRACEDATA) NOTHING(S_TTRACEDATA_IMM) NOTHING(S_GL1_INV)
    NOTHING(S_DCACHE_INV) NOTHING(S_WAKEUP) NOTHING(V_NOP) NOTHING(V_PIPEFLUSH) NOTHING(BUFFER_GL0_INV)
    NOTHING(BUFFER_GL1_INV) NOTHING(DS_NOP)
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_control) = {rows, sizeof rows / sizeof rows[0]};
