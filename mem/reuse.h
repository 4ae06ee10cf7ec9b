/* Freed buffers kept for reuse: the least recently freed ones go when the byte limit is passed. A buffer is
 * found again by its exact size and flags, so sizes should come from bw_reuse_round, which makes them few.
 * What a buffer is, and that the device is done with it, is the owner's business. Not thread safe: the owner
 * locks. */
#ifndef BW_MEM_REUSE_H
#define BW_MEM_REUSE_H

#include <stdint.h>

#include "base/map.h"

struct bw_reuse_entry;

struct bw_reuse {
    uint64_t limit_bytes;                      /* 0: keep nothing */
    void (*release)(void *user, void *buffer); /* really frees; must not call back into the cache */
    void *user;
    /* Inside. */
    uint64_t kept_bytes;
    uint32_t count;
    struct bw_reuse_entry *entries;
    uint32_t capacity, used, spare; /* spare, newest, oldest: index + 1, 0 none */
    uint32_t newest, oldest;
    struct bw_map by_key; /* hash of size and flags -> newest entry of that key */
};

/* The next size that is 1, 1.125, 1.25, ... 1.875 times a power of two and a multiple of 4096: at most 1/8 is
 * wasted above 32 KiB, and there are 8 sizes per doubling. 0 and sizes too big to round stay as they are. */
uint64_t bw_reuse_round(uint64_t size_bytes);

/* Takes the buffer over; what no longer fits is released, oldest first (perhaps this very one). */
void bw_reuse_put(struct bw_reuse *cache, uint64_t size_bytes, uint32_t flags, void *buffer);

/* The most recently freed buffer of that size and flags, or NULL. */
void *bw_reuse_take(struct bw_reuse *cache, uint64_t size_bytes, uint32_t flags);

/* Releases the oldest until at most keep_bytes are kept. Returns the bytes released: what to try when memory
 * runs out. */
uint64_t bw_reuse_trim(struct bw_reuse *cache, uint64_t keep_bytes);

/* Releases everything and frees the cache's own memory; usable again afterwards. */
void bw_reuse_free(struct bw_reuse *cache);

#endif
