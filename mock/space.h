/* The address space of one process on one GPU: which virtual addresses the GPU may touch, and what lies
 * behind them. Stands for the page tables and the TLB: an access outside of it, or without the right, is a
 * fault. */
#ifndef BW_MOCK_SPACE_H
#define BW_MOCK_SPACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct bw_mock_buffer;
struct bw_mock_pool;

/* Same values as the emulator's enum bw_isa_access. */
enum bw_mock_access {
    BW_MOCK_READ = 1,
    BW_MOCK_WRITE = 2,
    BW_MOCK_ATOMIC = 4,
    BW_MOCK_EXECUTE = 8,
};

struct bw_mock_mapping {
    uint64_t va, size;
    uint8_t *host;
    uint32_t access; /* enum bw_mock_access bits */
    uint32_t queues; /* how many queues hold their ring, pointers or save area here */
    struct bw_mock_buffer *buffer;
    const struct bw_mock_pool *pool; /* whose memory host is; NULL: memory of the client's, or a mirror */
    uint32_t peer;                   /* VRAM of another GPU: its index plus 1 */
    uint8_t *mirror; /* of a window that leads nowhere: what is there instead; owned by the mapping */
};

struct bw_mock_space {
    pthread_rwlock_t lock;
    BW_VEC(struct bw_mock_mapping) maps; /* sorted by va, never overlapping */
    _Atomic uint64_t generation; /* changes whenever a mapping goes away; no other space ever has the same, not
                                    even one that comes to lie where this one was */
};

/* Where an access failed and why. */
struct bw_mock_violation {
    uint64_t va;
    uint32_t access;
    bool mapped; /* mapped, but not with this right */
};

/* serial: another for each space that engines reach, below 2^32. */
int bw_mock_space_init(struct bw_mock_space *space, uint64_t serial);
void bw_mock_space_fini(struct bw_mock_space *space);

/* -EINVAL: overlaps a mapping. -ENOMEM. */
int bw_mock_space_map(struct bw_mock_space *space, const struct bw_mock_mapping *mapping);
/* Removes the mapping that starts at va. -ENOENT: none. -EBUSY: a queue uses it. */
int bw_mock_space_unmap(struct bw_mock_space *space, uint64_t va);
/* The mapping that holds va, copied. */
bool bw_mock_space_find(struct bw_mock_space *space, uint64_t va, struct bw_mock_mapping *found);
/* Counts a queue in (+1) or out (-1) of the mapping that starts at va. */
void bw_mock_space_hold(struct bw_mock_space *space, uint64_t va, int by);
/* The mapping with the greatest start below or at va, else the first above it: for error texts. */
bool bw_mock_space_nearest(struct bw_mock_space *space, uint64_t va, struct bw_mock_mapping *found);

/* Host address of va, valid from *start to va + *bytes as long as generation stands still; NULL when not
 * mapped so. */
void *bw_mock_space_resolve(struct bw_mock_space *space, uint64_t va, uint32_t access, uint64_t *start,
                            uint64_t *bytes);

/* Accesses of engines; any size and alignment, over neighbouring mappings. Words of 4 and 8 bytes that are
 * aligned are one atomic access. 0, or -EFAULT with *violation filled and nothing past the violating address
 * touched. */
int bw_mock_space_read(struct bw_mock_space *space, uint64_t va, void *data, uint64_t size,
                       struct bw_mock_violation *violation);
int bw_mock_space_write(struct bw_mock_space *space, uint64_t va, const void *data, uint64_t size,
                        struct bw_mock_violation *violation);
/* Memory of a pool that was never written stays without pages on both sides. */
int bw_mock_space_copy(struct bw_mock_space *space, uint64_t dst, uint64_t src, uint64_t size,
                       struct bw_mock_violation *violation);
/* Repeats the low unit bytes (1, 2 or 4) of value; size is a multiple of unit. */
int bw_mock_space_fill(struct bw_mock_space *space, uint64_t dst, uint32_t value, uint32_t unit,
                       uint64_t size, struct bw_mock_violation *violation);
/* Applies change to the aligned word of 4 or 8 bytes at va, atomically; *before gets the old value. change
 * gives the new value from the old one and may run more than once. */
int bw_mock_space_atomic(struct bw_mock_space *space, uint64_t va, uint32_t size,
                         uint64_t (*change)(uint64_t value, void *user), void *user, uint64_t *before,
                         struct bw_mock_violation *violation);

#endif
