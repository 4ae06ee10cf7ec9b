#include "mock/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"

enum {
    HUGE_PAGE = 2 << 20
}; /* the kernel aligns buffers of this size and up to it, so that they get large pages */

int bw_mock_pool_open(struct bw_mock_pool *pool, int fd, uint64_t base, uint64_t span, uint64_t limit)
{
    assert(base % BW_MOCK_PAGE == 0 && span % BW_MOCK_PAGE == 0 && limit <= span);
    *pool = (struct bw_mock_pool){.fd = fd, .base = base, .span = span, .limit = limit};
    void *host = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)base);
    if (host == MAP_FAILED)
        return -errno;
    pool->host = host;
    if (bw_vec_push(&pool->free, (struct bw_mock_extent){base, span}))
        return -ENOMEM;
    return 0;
}

void bw_mock_pool_close(struct bw_mock_pool *pool)
{
    if (pool->host)
        munmap(pool->host, pool->span);
    bw_vec_free(&pool->free);
    pool->host = NULL;
}

int bw_mock_pool_take(struct bw_mock_pool *pool, uint64_t size, uint64_t *offset)
{
    assert(size && size % BW_MOCK_PAGE == 0);
    if (size > pool->limit - pool->used)
        return -ENOMEM;
    /* Room for the piece that a taken middle leaves behind, so that nothing below can fail. */
    if (bw_vec_reserve(&pool->free, 2))
        return -ENOMEM;
    uint64_t alignment = size >= HUGE_PAGE ? HUGE_PAGE : BW_MOCK_PAGE;
    for (size_t i = 0; i < pool->free.count; i++) {
        struct bw_mock_extent extent = pool->free.data[i];
        uint64_t start = bw_align_up(extent.offset, alignment), skipped = start - extent.offset;
        if (extent.size < skipped || extent.size - skipped < size)
            continue;
        struct bw_mock_extent after = {start + size, extent.size - skipped - size};
        struct bw_mock_extent left[2];
        size_t left_count = 0;
        if (skipped)
            left[left_count++] = (struct bw_mock_extent){extent.offset, skipped};
        if (after.size)
            left[left_count++] = after;
        struct bw_mock_extent *at = &pool->free.data[i];
        memmove(at + left_count, at + 1, (pool->free.count - i - 1) * sizeof *at);
        memcpy(at, left, left_count * sizeof *at);
        pool->free.count = pool->free.count - 1 + left_count;
        pool->used += size;
        *offset = start;
        return 0;
    }
    return -ENOMEM;
}

static void punch(const struct bw_mock_pool *pool, uint64_t offset, uint64_t size)
{
    while (fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size) &&
           errno == EINTR)
        ;
}

static uint64_t offset_of(const struct bw_mock_pool *pool, const uint8_t *host)
{
    assert(host >= pool->host && host < pool->host + pool->span);
    return pool->base + (uint64_t)(host - pool->host);
}

bool bw_mock_pool_is_hole(const struct bw_mock_pool *pool, const uint8_t *host, uint64_t size)
{
    uint64_t offset = offset_of(pool, host);
    off_t data = lseek(pool->fd, (off_t)offset, SEEK_DATA); /* nobody uses the position that this sets */
    return data < 0 ? errno == ENXIO : (uint64_t)data >= offset + size;
}

void bw_mock_pool_clear(const struct bw_mock_pool *pool, uint8_t *host, uint64_t size)
{
    uint64_t offset = offset_of(pool, host), end = offset + size;
    uint64_t first = bw_align_up(offset, BW_MOCK_PAGE), last = bw_align_down(end, BW_MOCK_PAGE);
    if (first >= last) {
        memset(host, 0, size);
        return;
    }
    memset(host, 0, first - offset);
    punch(pool, first, last - first);
    memset(host + (last - offset), 0, end - last);
}

void bw_mock_pool_give(struct bw_mock_pool *pool, uint64_t offset, uint64_t size)
{
    assert(offset >= pool->base && offset + size <= pool->base + pool->span && size <= pool->used);
    pool->used -= size;
    /* System memory must come back zeroed, as the kernel gives it out. */
    punch(pool, offset, size);
    size_t i = 0;
    while (i < pool->free.count && pool->free.data[i].offset < offset)
        i++;
    struct bw_mock_extent *before = i ? &pool->free.data[i - 1] : NULL;
    struct bw_mock_extent *after = i < pool->free.count ? &pool->free.data[i] : NULL;
    bool joins_before = before && before->offset + before->size == offset;
    bool joins_after = after && offset + size == after->offset;
    if (joins_before && joins_after) {
        before->size += size + after->size;
        memmove(after, after + 1, (pool->free.count - i - 1) * sizeof *after);
        pool->free.count--;
    } else if (joins_before) {
        before->size += size;
    } else if (joins_after) {
        after->offset = offset;
        after->size += size;
    } else if (!bw_vec_reserve(&pool->free, 1)) {
        after = &pool->free.data[i];
        memmove(after + 1, after, (pool->free.count - i) * sizeof *after);
        *after = (struct bw_mock_extent){offset, size};
        pool->free.count++;
    } /* else: out of memory; this much offset space is lost until the machine ends */
}
