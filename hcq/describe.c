/* What lies at an address, in words, for drivers' fault texts. */
#include <stdio.h>

#include "hcq/hcq.h"

enum { NEAR_BYTES = 64 << 20 }; /* further away than this says nothing about the fault */

struct place {
    uint64_t distance_bytes; /* 0: inside */
    uint64_t address, size_bytes;
    bool freed, before; /* before: the address lies before the buffer */
};

static void place_consider(struct place *best, uint64_t address, uint64_t start, uint64_t size_bytes,
                           bool freed)
{
    struct place place = {0, start, size_bytes, freed, false};
    if (address < start) {
        place.before = true;
        place.distance_bytes = start - address;
    } else if (address - start >= size_bytes) {
        place.distance_bytes = address - start - size_bytes + 1; /* 1: the first byte past the end */
    }
    if (place.distance_bytes < best->distance_bytes)
        *best = place;
}

static void place_print(const struct place *best, uint64_t address, char *text, uint32_t text_size)
{
    const char *freed = best->freed ? "freed " : "";
    unsigned long long size = best->size_bytes, start = best->address;
    if (best->distance_bytes == 0)
        snprintf(text, text_size, "%llu bytes into a %s%llu-byte buffer at 0x%llx",
                 (unsigned long long)(address - best->address), freed, size, start);
    else if (best->before)
        snprintf(text, text_size, "%llu bytes before a %s%llu-byte buffer at 0x%llx",
                 (unsigned long long)best->distance_bytes, freed, size, start);
    else
        snprintf(text, text_size, "%llu bytes past the end of a %s%llu-byte buffer at 0x%llx",
                 (unsigned long long)(best->distance_bytes - 1), freed, size, start);
}

void bw_hcq_describe(void *user, uint64_t address, char *text, uint32_t text_size)
{
    struct bw_hcq_device *device = user;
    struct place best = {.distance_bytes = NEAR_BYTES};
    pthread_mutex_lock(&device->lock);
    uint32_t handle = bw_interval_nearest(&device->live, address);
    if (handle != BW_INTERVAL_NONE) {
        const struct bw_interval *interval = bw_interval_at(&device->live, handle);
        place_consider(&best, address, interval->start, interval->last - interval->start + 1, false);
    }
    uint64_t kept = device->freed_count < BW_HCQ_FREED_COUNT ? device->freed_count : BW_HCQ_FREED_COUNT;
    for (uint64_t i = 0; i < kept; i++) { /* newest first: of equally near ones the last that was there */
        const struct bw_hcq_freed *freed = &device->freed[(device->freed_count - 1 - i) % BW_HCQ_FREED_COUNT];
        place_consider(&best, address, freed->address, freed->size_bytes, true);
    }
    pthread_mutex_unlock(&device->lock);
    if (best.distance_bytes < NEAR_BYTES)
        place_print(&best, address, text, text_size);
    else
        snprintf(text, text_size, address == 0 ? "the null address" : "no buffer is near");
}
