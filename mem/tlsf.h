/* Two-level segregated fit over an abstract range of offsets (Masmano et al., "TLSF: a new dynamic memory
 * allocator for real-time systems", 2004). It never touches the memory that it manages, so the range may be
 * VRAM, address space or a file. Allocating and freeing are O(1); only when the quick search finds nothing
 * are all free blocks looked at, so that an allocation is refused only if it fits nowhere. Not thread safe:
 * the owner locks. */
#ifndef BW_MEM_TLSF_H
#define BW_MEM_TLSF_H

#include <stdint.h>

struct bw_tlsf;

struct bw_tlsf_stats {
    uint64_t total_bytes, used_bytes, largest_free_bytes;
    uint32_t used_blocks, free_blocks;
};

/* granule_bytes: a power of two; every block starts at and measures a multiple of it. The range is empty
 * until bw_tlsf_add. 0 or -ENOMEM. */
int bw_tlsf_create(uint64_t granule_bytes, struct bw_tlsf **tlsf);
void bw_tlsf_destroy(struct bw_tlsf *tlsf);

/* Hands [start, start + size_bytes) over; both must be multiples of the granule, the range must not overlap
 * an earlier one, nor wrap. Blocks never span two added ranges. 0 or -ENOMEM. */
int bw_tlsf_add(struct bw_tlsf *tlsf, uint64_t start, uint64_t size_bytes);

/* Sizes are rounded up to the granule. alignment: a power of two, 0 or 1 for the granule's. 0; -EINVAL:
 * size_bytes is 0 or cannot be rounded up; -ENOMEM: fits nowhere (or no memory for bookkeeping). */
int bw_tlsf_alloc(struct bw_tlsf *tlsf, uint64_t size_bytes, uint64_t alignment, uint64_t *start);

/* start: what bw_tlsf_alloc gave (asserted). Returns the block's size. */
uint64_t bw_tlsf_free(struct bw_tlsf *tlsf, uint64_t start);
/* The size of the used block at start, 0 when none starts there. */
uint64_t bw_tlsf_size(const struct bw_tlsf *tlsf, uint64_t start);

void bw_tlsf_stats(const struct bw_tlsf *tlsf, struct bw_tlsf_stats *stats);

/* For tests: asserts lists, bitmaps, neighbours and sums. */
void bw_tlsf_check(const struct bw_tlsf *tlsf);

#endif
