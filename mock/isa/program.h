/* Machine code turned into uops, kept over dispatches.
 *
 * Code is found by following control flow from an entry; indirect jumps into code not seen yet extend it.
 * What was read is remembered byte for byte, that there was nothing to read too, and compared at the start of
 * each dispatch (and at s_icache_inv), so that code which the host has rewritten is never run stale. One
 * struct bw_code per entry and wave shape, with one struct bw_program per value of the MODE bits that decide
 * which handlers are right. */
#ifndef BW_MOCK_ISA_PROGRAM_H
#define BW_MOCK_ISA_PROGRAM_H

#include <pthread.h>

#include "base/arena.h"
#include "base/map.h"
#include "mock/isa/uops.h"
#include "mock/isa/wave.h"

/* MODE register fields (RDNA3 ISA document, section 3.4.2). */
enum {
    BW_MODE_ROUND_32 = 0x3,
    BW_MODE_ROUND_16_64 = 0xc,
    BW_MODE_DENORM_32 = 0x30,
    BW_MODE_DENORM_16_64 = 0xc0,
    BW_MODE_DX10_CLAMP = 1 << 8,
    BW_MODE_IEEE = 1 << 9,
    BW_MODE_FP16_OVFL = 1 << 23,
    BW_MODE_KEY = BW_MODE_ROUND_32 | BW_MODE_ROUND_16_64 | BW_MODE_DENORM_32 | BW_MODE_DENORM_16_64 |
                  BW_MODE_DX10_CLAMP | BW_MODE_IEEE | BW_MODE_FP16_OVFL,
};

enum {
    /* Room for constants of code that is found only while the dispatch runs; beyond it they are loaded one by
       one. */
    BW_CODE_CONSTANTS_SLACK = 64,
    /* Instructions in one piece of code: 64 MiB of uops, far beyond any real kernel. */
    BW_CODE_INSTRUCTIONS_MAX = 1 << 20,
    /* Pieces of code kept by a pool; the oldest is dropped. A model has a few hundred kernels. */
    BW_POOL_CODES_MAX = 1024,
};

struct bw_code_bytes {
    struct bw_code_bytes *next;
    uint64_t va;
    uint64_t wanted_bytes; /* were looked at; ... */
    uint64_t size_bytes;   /* ... so many of them could be read: the rest was not mapped */
    uint8_t bytes[];
};

struct bw_block { /* uops of one translation run */
    struct bw_block *next;
    size_t count;
    struct bw_uop uops[];
};

struct bw_program {
    struct bw_program *next;
    struct bw_code *code;
    uint32_t mode; /* BW_MODE_KEY bits */
    uint32_t ordinal_next;
    struct bw_map uops; /* pc -> const struct bw_uop * */
    struct bw_block *blocks;
};

struct bw_code {
    struct bw_code *next;
    uint64_t id; /* never reused by a pool */
    uint64_t entry_va;
    uint32_t wave_size, vgpr_count;
    struct bw_program *programs;
    struct bw_code_bytes *bytes;
    struct bw_map known_bytes; /* va -> wanted_bytes of what is remembered in bytes */
    struct bw_arena arena;     /* lane selections */
    uint64_t *constants;       /* the two dwords that alternate in the slot */
    _Atomic uint32_t constants_count;
    uint32_t constants_capacity; /* allocated */
    uint32_t constants_limit;    /* slots that waves have now */
    uint32_t range_next;         /* next range entry to give to a memory instruction */
    uint32_t vgprs_used, sgprs_used;
    bool stale; /* replaced while a dispatch ran; freed at the next one */
};

struct bw_isa_pool;

/* The entry's code, translated now or before and checked against memory; *uop where it starts. 0, -ENOMEM,
 * -EFAULT when the entry itself cannot be executed. Only between dispatches. */
int bw_code_get(struct bw_isa_pool *pool, struct bw_worker *worker, uint64_t entry_va, uint32_t wave_size,
                uint32_t vgpr_count, uint32_t mode, struct bw_program **program, const struct bw_uop **uop);

/* The uop at pc in the program for these MODE bits, translating it if need be. During dispatches; takes the
 * pool's lock. NULL when out of memory. */
const struct bw_uop *bw_code_find(struct bw_isa_pool *pool, struct bw_worker *worker, struct bw_code *code,
                                  uint32_t mode, uint64_t pc, struct bw_program **program);

/* False when memory no longer holds what was translated. */
bool bw_code_is_current(struct bw_worker *worker, const struct bw_code *code);

void bw_code_free(struct bw_code *code);

/* Fills the constants that the wave's block lacks. The first holds the pool's code lock already; the second
 * takes it when there is something to do, for another thread may be extending the table. */
void bw_wave_fill_constants(struct bw_wave *wave, struct bw_code *code);
void bw_wave_sync_constants(struct bw_wave *wave, struct bw_code *code);

static inline int32_t bw_code_constant_offset(const struct bw_code *code, uint32_t index)
{
    return BW_OFFSET_VGPR(code->vgpr_count * (code->wave_size / BW_LANES) + index);
}

#endif
