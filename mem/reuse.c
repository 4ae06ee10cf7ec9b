/* Reuse of freed buffers: see reuse.h. Entries live in one array, linked by index + 1 in two lists: by age,
 * and by key. */
#include "mem/reuse.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { SIZE_STEP_BYTES = 4096, SIZES_PER_DOUBLING = 8 };

struct bw_reuse_entry {
    void *buffer;
    uint64_t size_bytes;
    uint32_t flags;
    uint32_t older, newer;         /* by age */
    uint32_t key_older, key_newer; /* of the same key; key_older also chains spare entries */
};

uint64_t bw_reuse_round(uint64_t size_bytes)
{
    if (!size_bytes || size_bytes > UINT64_MAX / 2)
        return size_bytes;
    uint64_t step = ((uint64_t)1 << bw_log2(size_bytes)) / SIZES_PER_DOUBLING;
    return bw_align_up(size_bytes, step > SIZE_STEP_BYTES ? step : SIZE_STEP_BYTES);
}

static struct bw_reuse_entry *entry_at(const struct bw_reuse *cache, uint32_t link)
{
    assert(link && link <= cache->used);
    return &cache->entries[link - 1];
}

static uint64_t key_of(uint64_t size_bytes, uint32_t flags)
{
    return bw_hash64(size_bytes) ^ bw_hash64(~(uint64_t)flags);
}

static bool same_key(const struct bw_reuse_entry *entry, uint64_t size_bytes, uint32_t flags)
{
    return entry->size_bytes == size_bytes && entry->flags == flags;
}

static int reserve_entry(struct bw_reuse *cache)
{
    if (cache->spare || cache->used < cache->capacity)
        return 0;
    uint64_t wanted = cache->capacity ? (uint64_t)cache->capacity * 2 : 16;
    if (wanted > UINT32_MAX)
        return -ENOMEM;
    struct bw_reuse_entry *grown = realloc(cache->entries, (size_t)wanted * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    cache->entries = grown;
    cache->capacity = (uint32_t)wanted;
    return 0;
}

static void unlink_key(struct bw_reuse *cache, const struct bw_reuse_entry *entry)
{
    if (entry->key_older)
        entry_at(cache, entry->key_older)->key_newer = entry->key_newer;
    if (entry->key_newer) {
        entry_at(cache, entry->key_newer)->key_older = entry->key_older;
        return;
    }
    uint64_t key = key_of(entry->size_bytes, entry->flags);
    if (!entry->key_older) {
        bw_map_remove(&cache->by_key, key);
        return;
    }
    int rc = bw_map_set(&cache->by_key, key, entry->key_older);
    assert(!rc); /* the key is there: replaced in place */
    (void)rc;
}

static void *unlink_entry(struct bw_reuse *cache, uint32_t link)
{
    struct bw_reuse_entry *entry = entry_at(cache, link);
    void *buffer = entry->buffer;
    assert(cache->count && cache->kept_bytes >= entry->size_bytes);
    unlink_key(cache, entry);
    if (entry->older)
        entry_at(cache, entry->older)->newer = entry->newer;
    else
        cache->oldest = entry->newer;
    if (entry->newer)
        entry_at(cache, entry->newer)->older = entry->older;
    else
        cache->newest = entry->older;
    cache->kept_bytes -= entry->size_bytes;
    cache->count--;
    *entry = (struct bw_reuse_entry){.key_older = cache->spare};
    cache->spare = link;
    return buffer;
}

/* The newest entry of that key, 0 none. Two keys with one hash share a list only in a 2^-64 accident: then
 * the younger key misses. */
static uint32_t find(const struct bw_reuse *cache, uint64_t size_bytes, uint32_t flags)
{
    uint64_t link = 0;
    if (!bw_map_get(&cache->by_key, key_of(size_bytes, flags), &link))
        return 0;
    return same_key(entry_at(cache, (uint32_t)link), size_bytes, flags) ? (uint32_t)link : 0;
}

void bw_reuse_put(struct bw_reuse *cache, uint64_t size_bytes, uint32_t flags, void *buffer)
{
    assert(buffer && size_bytes);
    uint64_t key = key_of(size_bytes, flags), other = 0;
    bool taken = bw_map_get(&cache->by_key, key, &other) &&
                 !same_key(entry_at(cache, (uint32_t)other), size_bytes, flags);
    uint32_t below = find(cache, size_bytes, flags);
    if (size_bytes > cache->limit_bytes || taken || reserve_entry(cache)) {
        cache->release(cache->user, buffer);
        return;
    }
    uint32_t link = cache->spare ? cache->spare : cache->used + 1;
    if (bw_map_set(&cache->by_key, key, link)) {
        cache->release(cache->user, buffer);
        return;
    }
    if (link == cache->spare)
        cache->spare = entry_at(cache, link)->key_older;
    else
        cache->used++;
    *entry_at(cache, link) = (struct bw_reuse_entry){.buffer = buffer,
                                                     .size_bytes = size_bytes,
                                                     .flags = flags,
                                                     .older = cache->newest,
                                                     .key_older = below};
    if (below)
        entry_at(cache, below)->key_newer = link;
    if (cache->newest)
        entry_at(cache, cache->newest)->newer = link;
    else
        cache->oldest = link;
    cache->newest = link;
    cache->kept_bytes += size_bytes;
    cache->count++;
    bw_reuse_trim(cache, cache->limit_bytes);
}

void *bw_reuse_take(struct bw_reuse *cache, uint64_t size_bytes, uint32_t flags)
{
    uint32_t link = find(cache, size_bytes, flags);
    return link ? unlink_entry(cache, link) : NULL;
}

uint64_t bw_reuse_trim(struct bw_reuse *cache, uint64_t keep_bytes)
{
    uint64_t before = cache->kept_bytes;
    while (cache->kept_bytes > keep_bytes) {
        assert(cache->oldest);
        cache->release(cache->user, unlink_entry(cache, cache->oldest));
    }
    return before - cache->kept_bytes;
}

void bw_reuse_free(struct bw_reuse *cache)
{
    bw_reuse_trim(cache, 0);
    free(cache->entries);
    bw_map_free(&cache->by_key);
    cache->entries = NULL;
    cache->capacity = cache->used = cache->spare = 0;
}
