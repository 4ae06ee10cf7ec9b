/* Hash map: see map.h. */
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_EMPTY, SLOT_USED, SLOT_DELETED, CAPACITY_MIN = 16 };

static struct bw_map_slot *slot_find(const struct bw_map *map, uint64_t key)
{
    size_t mask = map->capacity - 1;
    for (size_t i = bw_hash64(key) & mask;; i = (i + 1) & mask) {
        struct bw_map_slot *slot = &map->slots[i];
        if (slot->state == SLOT_EMPTY)
            return NULL;
        if (slot->state == SLOT_USED && slot->key == key)
            return slot;
    }
}

static void slot_insert(struct bw_map *map, uint64_t key, uint64_t value)
{
    size_t mask = map->capacity - 1;
    size_t i = bw_hash64(key) & mask;
    while (map->slots[i].state == SLOT_USED)
        i = (i + 1) & mask;
    map->filled += map->slots[i].state == SLOT_EMPTY;
    map->slots[i] = (struct bw_map_slot){key, value, SLOT_USED};
    map->count++;
}

static int map_rehash(struct bw_map *map)
{
    size_t capacity = CAPACITY_MIN;
    while (capacity < (map->count + 1) * 2)
        capacity *= 2;
    struct bw_map grown = {.slots = calloc(capacity, sizeof *grown.slots), .capacity = capacity};
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->slots[i].state == SLOT_USED)
            slot_insert(&grown, map->slots[i].key, map->slots[i].value);
    free(map->slots);
    *map = grown;
    return 0;
}

int bw_map_set(struct bw_map *map, uint64_t key, uint64_t value)
{
    struct bw_map_slot *slot = map->capacity ? slot_find(map, key) : NULL;
    if (slot) {
        slot->value = value;
        return 0;
    }
    /* At most 3/4 filled, so that probing always meets an empty slot. */
    if ((map->filled + 1) * 4 > map->capacity * 3 && map_rehash(map))
        return -ENOMEM;
    slot_insert(map, key, value);
    assert(map->filled < map->capacity);
    return 0;
}

bool bw_map_get(const struct bw_map *map, uint64_t key, uint64_t *value)
{
    const struct bw_map_slot *slot = map->capacity ? slot_find(map, key) : NULL;
    if (slot && value)
        *value = slot->value;
    return slot != NULL;
}

bool bw_map_remove(struct bw_map *map, uint64_t key)
{
    struct bw_map_slot *slot = map->capacity ? slot_find(map, key) : NULL;
    if (!slot)
        return false;
    slot->state = SLOT_DELETED;
    map->count--;
    return true;
}

void bw_map_free(struct bw_map *map)
{
    free(map->slots);
    memset(map, 0, sizeof *map);
}

bool bw_map_next(const struct bw_map *map, size_t *cursor, uint64_t *key, uint64_t *value)
{
    for (; *cursor < map->capacity; (*cursor)++) {
        const struct bw_map_slot *slot = &map->slots[*cursor];
        if (slot->state != SLOT_USED)
            continue;
        if (key)
            *key = slot->key;
        if (value)
            *value = slot->value;
        (*cursor)++;
        return true;
    }
    return false;
}
