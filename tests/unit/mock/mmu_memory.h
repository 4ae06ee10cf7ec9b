/* Memory in which tests lay page tables out by hand, and a context over it. */
#ifndef BW_TESTS_MMU_MEMORY_H
#define BW_TESTS_MMU_MEMORY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mock/mmu/walk.h"
#include "tests/check.h"

enum {
    VRAM_BYTES = 1 << 20,
    SYSTEM_BASE = 0x40000000, /* where the bus leads to memory */
    SYSTEM_BYTES = 64 << 10,
    PEER = 5, /* the other segment of the hive that has memory */
    PEER_BYTES = 64 << 10,
};

struct memory {
    struct bw_mock_mmu_hub hub;
    struct bw_mock_mmu_context context;
    struct bw_mock_mmu_result result;
    uint64_t reads;
    uint8_t vram[VRAM_BYTES], system[SYSTEM_BYTES], peer[PEER_BYTES];
};

static inline uint8_t *memory_at(struct memory *m, const struct bw_mock_mmu_place *place)
{
    uint64_t at = place->address;
    switch (place->aperture) {
    case BW_MOCK_MMU_VRAM:
        return at < VRAM_BYTES ? m->vram + at : NULL;
    case BW_MOCK_MMU_SYSTEM:
        return at >= SYSTEM_BASE && at - SYSTEM_BASE < SYSTEM_BYTES ? m->system + (at - SYSTEM_BASE) : NULL;
    case BW_MOCK_MMU_PEER:
        return place->region == PEER && at < PEER_BYTES ? m->peer + at : NULL;
    default:
        return NULL;
    }
}

static inline int memory_read(void *user, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    struct memory *m = user;
    const uint8_t *at = memory_at(m, place);
    m->reads++;
    if (!at)
        return -EIO;
    memcpy(word, at, sizeof *word);
    return 0;
}

static inline void put(struct memory *m, uint64_t address, uint64_t word)
{
    memcpy(m->vram + address, &word, sizeof word);
}

/* VMID 1, four levels, tables from 0x1000 on, no table yet. */
static inline struct memory *memory_create(enum bw_mock_mmu_generation generation)
{
    struct memory *m = calloc(1, sizeof *m);
    if (!BW_TRUE(m != NULL))
        exit(1);
    m->hub = (struct bw_mock_mmu_hub){.generation = generation, .read = memory_read, .user = m};
    m->context = (struct bw_mock_mmu_context){
        .hub = &m->hub, .vmid = 1, .enable = true, .depth = 3, .base = 0x1001, .end = (1ull << 48) - 1};
    return m;
}

/* An address, and where its entries lie in tables at 0x1000, 0x2000, 0x3000 and 0x4000: the bits 47:39 of it
 * are 0x24, 38:30 are 0xd1, 29:21 are 0xb3 and 20:12 are 0x189. */
#define VA 0x123456789abcull
enum { AT_PDE2 = 0x1120, AT_PDE1 = 0x2688, AT_PDE0 = 0x3598, AT_PTE = 0x4c48 };

static inline void put_directories(struct memory *m)
{
    put(m, AT_PDE2, 0x2001);
    put(m, AT_PDE1, 0x3001);
    put(m, AT_PDE0, 0x4001);
}

static inline int walk(struct memory *m, uint64_t va, enum bw_mock_mmu_op op)
{
    return bw_mock_mmu_walk(&m->context, va, op, &m->result);
}

/* Where va leads: the place in VRAM, or all ones. */
static inline uint64_t vram_of(struct memory *m, uint64_t va)
{
    int rc = walk(m, va, BW_MOCK_MMU_READ);
    return rc == 0 && m->result.place.aperture == BW_MOCK_MMU_VRAM ? m->result.place.address : UINT64_MAX;
}

#endif
