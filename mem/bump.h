/* Bump allocator over an abstract range: hands out rising offsets and takes all of them back at once. Not
 * thread safe.
 *
 *   struct bw_bump bump = {.base = address, .size_bytes = 65536};
 *   rc = bw_bump_alloc(&bump, 100, 16, &at);
 *   bw_bump_reset(&bump); */
#ifndef BW_MEM_BUMP_H
#define BW_MEM_BUMP_H

#include <assert.h>
#include <errno.h>
#include <stdint.h>

#include "base/bits.h"

/* base + size_bytes must not exceed 2^64 - 1. */
struct bw_bump {
    uint64_t base, size_bytes;
    uint64_t used_bytes; /* padding included */
};

/* alignment: a power of two, of the address base + offset, not of the offset. size_bytes 0 is fine and takes
 * nothing but padding. 0, or -ENOMEM: does not fit, nothing taken. */
static inline int bw_bump_alloc(struct bw_bump *bump, uint64_t size_bytes, uint64_t alignment,
                                uint64_t *address)
{
    assert(bw_is_pow2(alignment) && bump->used_bytes <= bump->size_bytes &&
           bump->size_bytes <= UINT64_MAX - bump->base);
    uint64_t at = bump->base + bump->used_bytes, left = bump->size_bytes - bump->used_bytes;
    uint64_t padding = (alignment - (at & (alignment - 1))) & (alignment - 1);
    if (padding > left || size_bytes > left - padding)
        return -ENOMEM;
    bump->used_bytes += padding + size_bytes;
    *address = at + padding;
    return 0;
}

static inline void bw_bump_reset(struct bw_bump *bump)
{
    bump->used_bytes = 0;
}

#endif
