/* Reserved address space: see va_space.h. */
#include "mem/va_space.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "mem/tlsf.h"

int bw_va_space_init(struct bw_va_space *space, struct bw_sys *sys, uint64_t lowest, uint64_t highest)
{
    assert(lowest <= highest);
    memset(space, 0, sizeof *space);
    space->sys = sys;
    space->lowest = lowest;
    space->highest = highest;
    return bw_tlsf_create(BW_VA_PAGE_BYTES, &space->tlsf);
}

uint64_t bw_va_space_fini(struct bw_va_space *space)
{
    struct bw_tlsf_stats stats = {0};
    if (space->tlsf)
        bw_tlsf_stats(space->tlsf, &stats);
    for (size_t i = 0; i < space->pieces.count; i++)
        space->sys->ops->unmap(space->sys, &space->pieces.data[i]);
    bw_vec_free(&space->pieces);
    bw_tlsf_destroy(space->tlsf);
    space->tlsf = NULL;
    return stats.used_bytes;
}

void bw_va_space_forget(struct bw_va_space *space)
{
    space->pieces.count = 0;
}

/* Reserves one piece of exactly size_bytes and hands it to the allocator. */
static int add_piece(struct bw_va_space *space, uint64_t size_bytes)
{
    struct bw_map_request request = {.fd = -1, .size_bytes = size_bytes, .reserve = true, .dont_fork = true};
    struct bw_region piece;
    if (bw_vec_reserve(&space->pieces, 1))
        return -ENOMEM;
    int rc = space->sys->ops->map(space->sys, &request, &piece);
    if (rc)
        return rc;
    uint64_t start = (uint64_t)(uintptr_t)piece.base;
    assert(start % BW_VA_PAGE_BYTES == 0);
    if (start < space->lowest || start + (size_bytes - 1) > space->highest)
        rc = -ERANGE;
    else
        rc = bw_tlsf_add(space->tlsf, start, size_bytes);
    if (rc) {
        space->sys->ops->unmap(space->sys, &piece);
        return rc;
    }
    space->pieces.data[space->pieces.count++] = piece;
    return 0;
}

/* The largest piece that the system gives and that is sure to hold the allocation. */
static int grow(struct bw_va_space *space, uint64_t size_bytes, uint64_t alignment)
{
    uint64_t padding = alignment > BW_VA_PAGE_BYTES ? alignment - BW_VA_PAGE_BYTES : 0;
    if (size_bytes > UINT64_MAX / 2 || padding > UINT64_MAX / 2)
        return -EINVAL;
    uint64_t needed = bw_align_up(size_bytes + padding, BW_VA_PAGE_BYTES);
    uint64_t floor = needed > BW_VA_PIECE_BYTES_MIN ? needed : BW_VA_PIECE_BYTES_MIN;
    uint64_t size = needed > BW_VA_PIECE_BYTES_MAX ? needed : BW_VA_PIECE_BYTES_MAX;
    for (;;) {
        int rc = add_piece(space, size);
        if (!rc || size == floor)
            return rc;
        size = size / 2 > floor ? bw_align_down(size / 2, BW_VA_PAGE_BYTES) : floor;
    }
}

int bw_va_space_alloc(struct bw_va_space *space, uint64_t size_bytes, uint64_t alignment, uint64_t *address)
{
    int rc = bw_tlsf_alloc(space->tlsf, size_bytes, alignment, address);
    if (rc != -ENOMEM)
        return rc;
    rc = grow(space, size_bytes, alignment);
    return rc ? rc : bw_tlsf_alloc(space->tlsf, size_bytes, alignment, address);
}

uint64_t bw_va_space_free(struct bw_va_space *space, uint64_t address)
{
    return bw_tlsf_free(space->tlsf, address);
}
