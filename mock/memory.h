/* Physical memory of a mock machine: one sparse memfd, addressed by offset. Each pool (system memory, the
 * VRAM of each GPU) is a window of it, mapped once for the engines; clients map the same pages through their
 * own mmap. */
#ifndef BW_MOCK_MEMORY_H
#define BW_MOCK_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum { BW_MOCK_PAGE = 4096 };

struct bw_mock_extent {
    uint64_t offset, size;
};

/* Not thread safe: the machine's lock guards it. */
struct bw_mock_pool {
    int fd;
    uint64_t base;        /* offset of the pool in the memfd */
    uint64_t span;        /* bytes of offset space; more than limit, so that fragmentation does not look like
                             exhaustion */
    uint64_t limit, used; /* bytes */
    uint8_t *host;        /* the engines' mapping of the whole span */
    BW_VEC(struct bw_mock_extent) free; /* sorted by offset, neighbours merged */
};

/* 0, -ENOMEM or what mmap says. The memfd must be at least base + span long. */
int bw_mock_pool_open(struct bw_mock_pool *pool, int fd, uint64_t base, uint64_t span, uint64_t limit);
void bw_mock_pool_close(struct bw_mock_pool *pool);

/* Takes size bytes (a multiple of a page); the offset is in the memfd. -ENOMEM: the limit, or no extent that
 * large. */
int bw_mock_pool_take(struct bw_mock_pool *pool, uint64_t size, uint64_t *offset);
/* Gives them back and their pages to the system. */
void bw_mock_pool_give(struct bw_mock_pool *pool, uint64_t offset, uint64_t size);

/* No page backs [host, host + size), memory of the pool: it reads as zeros. Any thread. */
bool bw_mock_pool_is_hole(const struct bw_mock_pool *pool, const uint8_t *host, uint64_t size);
/* Makes [host, host + size), memory of the pool, zero, and gives its whole pages to the system. Any thread.
 */
void bw_mock_pool_clear(const struct bw_mock_pool *pool, uint8_t *host, uint64_t size);

static inline uint8_t *bw_mock_pool_host(const struct bw_mock_pool *pool, uint64_t offset)
{
    return pool->host + (offset - pool->base);
}

#endif
