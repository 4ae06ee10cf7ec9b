/* Rings: see ring.h. */
#include "drivers/amd/ring.h"

#include <assert.h>

#include "base/bits.h"

uint64_t bw_amd_load64(const struct bw_region *region, uint64_t offset)
{
    if (region->ops)
        return bw_rd64(region, offset);
    assert(offset % 8 == 0 && region->size_bytes >= 8 && offset <= region->size_bytes - 8);
    return __atomic_load_n((const volatile uint64_t *)((const volatile char *)region->base + offset),
                           __ATOMIC_ACQUIRE);
}

static void shared_store(const struct bw_region *region, uint64_t offset, uint64_t value)
{
    if (region->ops) {
        bw_wr64(region, offset, value);
        return;
    }
    assert(offset % 8 == 0 && region->size_bytes >= 8 && offset <= region->size_bytes - 8);
    __atomic_store_n((volatile uint64_t *)((volatile char *)region->base + offset), value, __ATOMIC_RELEASE);
}

void bw_amd_ring_start(struct bw_amd_ring *ring)
{
    assert(bw_is_pow2(ring->size_words) && ring->words.size_bytes >= (uint64_t)ring->size_words * 4);
    assert(ring->pointer_scale == 1 || ring->pointer_scale == 4);
    uint64_t pointer = bw_amd_load64(&ring->pointers, ring->write_offset);
    assert(pointer % ring->pointer_scale == 0);
    ring->put = pointer / ring->pointer_scale;
}

uint64_t bw_amd_ring_read_pointer(const struct bw_amd_ring *ring)
{
    return bw_amd_load64(&ring->pointers, ring->read_offset);
}

uint32_t bw_amd_ring_space(const struct bw_amd_ring *ring)
{
    /* Some engines report a pointer that wraps with the ring, some one that never wraps: modulo the ring both
     * are the same. */
    uint64_t get = bw_amd_ring_read_pointer(ring) / ring->pointer_scale;
    uint32_t used = (uint32_t)((ring->put - get) & (ring->size_words - 1));
    return ring->size_words - 1 - used;
}

uint32_t bw_amd_ring_position(const struct bw_amd_ring *ring)
{
    return (uint32_t)(ring->put & (ring->size_words - 1));
}

void bw_amd_ring_write(struct bw_amd_ring *ring, const uint32_t *words, uint32_t count)
{
    assert(count <= bw_amd_ring_space(ring));
    for (uint32_t i = 0; i < count; i++, ring->put++)
        bw_wr32(&ring->words, (uint64_t)bw_amd_ring_position(ring) * 4, words[i]);
}

void bw_amd_ring_announce(struct bw_amd_ring *ring)
{
    uint64_t pointer = ring->put * ring->pointer_scale;
    /* The packets, and the command buffers and arguments that they point to, before the pointer that covers
     * them: an engine that polls the pointer must not fetch old words. */
    bw_store_fence();
    shared_store(&ring->pointers, ring->write_offset, pointer);
    /* The pointer before the doorbell: an engine woken by the doorbell may read the pointer from memory. Also
     * pushes write-combined stores out before the uncached doorbell store overtakes them. */
    bw_store_fence();
    bw_wr64(&ring->doorbell, 0, pointer);
}
