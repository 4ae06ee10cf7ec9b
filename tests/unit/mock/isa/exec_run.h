/* A small machine for tests of the emulator: one flat piece of memory, kernels as words, one call to run. */
#ifndef BW_TESTS_EXEC_RUN_H
#define BW_TESTS_EXEC_RUN_H

#include <stdlib.h>
#include <string.h>

#include "mock/isa/isa.h"

enum {
    EXEC_CODE = 0x0, /* where things lie in the machine's memory, bytes */
    EXEC_ARGS = 0x200000,
    EXEC_PACKET = 0x220000, /* an AQL dispatch packet */
    EXEC_DATA = 0x240000,
    EXEC_SCRATCH = 0x600000,
    EXEC_BYTES = 0xc00000,
};
#define EXEC_BASE 0x7f0000000000ull

struct exec_machine {
    uint8_t *memory;
    _Atomic uint64_t generation;
    struct bw_isa_pool *pool;
    const struct bw_isa *isa;
    struct bw_isa_dispatch dispatch;
    struct bw_isa_control control;
    struct bw_isa_result result;
};

static inline void *exec_resolve(void *user, uint64_t va, enum bw_isa_access access, uint64_t *start,
                                 uint64_t *bytes)
{
    struct exec_machine *machine = user;
    /* The code page cannot be written, the rest cannot be executed. */
    if (va < EXEC_BASE || va >= EXEC_BASE + EXEC_BYTES)
        return NULL;
    bool is_code = va - EXEC_BASE < EXEC_ARGS;
    if (is_code ? (access & (BW_ISA_WRITE | BW_ISA_ATOMIC)) : (access & BW_ISA_EXECUTE))
        return NULL;
    *start = EXEC_BASE + (is_code ? 0 : EXEC_ARGS);
    *bytes = EXEC_BASE + (is_code ? EXEC_ARGS : EXEC_BYTES) - va;
    return machine->memory + (va - EXEC_BASE);
}

/* rsrc1 of LLVM's kernels: denormals kept, IEEE and DX10_CLAMP on, 64 VGPRs; rsrc2: two user SGPRs with the
 * address of the arguments, group ids x, y, z behind them, work-item ids x, y, z. */
static inline int exec_machine_init(struct exec_machine *machine, unsigned threads)
{
    memset(machine, 0, sizeof *machine);
    machine->memory = aligned_alloc(4096, EXEC_BYTES);
    if (!machine->memory || bw_isa_pool_create(threads, &machine->pool) ||
        bw_isa_find("gfx1100", &machine->isa))
        return -1;
    memset(machine->memory, 0, EXEC_BYTES);
    machine->dispatch = (struct bw_isa_dispatch){
        .entry_va = EXEC_BASE + EXEC_CODE,
        .rsrc1 = 7 | 0xf0u << 12 | 1u << 21 | 1u << 23,
        .rsrc2 = 2 << 1 | 7 << 7 | 2 << 11,
        .wave_size = 32,
        .group_count = {1, 1, 1},
        .group_size = {32, 1, 1},
        .user_sgpr = {(uint32_t)(EXEC_BASE + EXEC_ARGS), (uint32_t)((EXEC_BASE + EXEC_ARGS) >> 32)},
        .shared_aperture = 0x1000000000000ull,
        .private_aperture = 0x2000000000000ull,
        .memory = {exec_resolve, machine, &machine->generation},
        .clock_hz = 100000000,
    };
    return 0;
}

static inline void exec_machine_free(struct exec_machine *machine)
{
    bw_isa_pool_destroy(machine->pool);
    free(machine->memory);
}

static inline void exec_put_code(struct exec_machine *machine, const uint32_t *words, size_t size_bytes)
{
    memset(machine->memory + EXEC_CODE, 0, EXEC_ARGS);
    memcpy(machine->memory + EXEC_CODE, words, size_bytes);
}

static inline enum bw_isa_status exec_run(struct exec_machine *machine)
{
    memset(&machine->control, 0, sizeof machine->control);
    bw_isa_run(machine->isa, machine->pool, &machine->dispatch, &machine->control, &machine->result);
    return machine->result.status;
}

#endif
