/* Hash map from 64-bit key to 64-bit value; open addressing, linear probing. Not thread safe.
 * For keys that are structures, hash them (xxhash) and chain by comparing in the caller, or use the value as
 * an index. */
#ifndef BW_BASE_MAP_H
#define BW_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_map_slot {
    uint64_t key, value;
    uint8_t state; /* 0 empty, 1 used, 2 deleted */
};

/* A zeroed struct is a valid empty map. */
struct bw_map {
    struct bw_map_slot *slots;
    size_t capacity; /* 0 or a power of two */
    size_t count;    /* used */
    size_t filled;   /* used + deleted */
};

/* Inserts or replaces: 0 or -ENOMEM. */
int bw_map_set(struct bw_map *map, uint64_t key, uint64_t value);
bool bw_map_get(const struct bw_map *map, uint64_t key, uint64_t *value);
/* True when the key was there. */
bool bw_map_remove(struct bw_map *map, uint64_t key);
void bw_map_free(struct bw_map *map);
/* Iterates: start with *cursor = 0; false at the end. Do not insert meanwhile. */
bool bw_map_next(const struct bw_map *map, size_t *cursor, uint64_t *key, uint64_t *value);

/* A good 64-bit mix (splitmix64's finaliser, public domain constants). */
static inline uint64_t bw_hash64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

#endif
