/* Interval map: byte ranges, which may overlap, each with a 64-bit value. Balanced (AVL) and augmented with
 * the furthest byte of each subtree, so that inserting, removing and finding cost O(log n), listing k
 * overlaps O(k log n) at worst. Not thread safe: the owner locks.
 *
 *   struct bw_interval_map writes = {0};
 *   BW_INTERVAL_EACH(&writes, handle, start, size_bytes)
 *       depends_on(bw_interval_at(&writes, handle)->value);
 *   rc = bw_interval_assign(&writes, start, size_bytes, this_call);    (what was there is cut away)
 *   bw_interval_map_free(&writes); */
#ifndef BW_MEM_INTERVAL_H
#define BW_MEM_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BW_INTERVAL_NONE = 0xffffffff };

/* Bytes [start, last], both inclusive, so that a range may end at the top of the address space. */
struct bw_interval {
    uint64_t start, last;
    uint64_t value;
};

struct bw_interval_node;

/* A zeroed struct is a valid empty map. Handles are indices of nodes: stable until that interval is removed
 * or cut. */
struct bw_interval_map {
    struct bw_interval_node *nodes;
    uint32_t capacity, used;  /* nodes allocated / ever handed out */
    uint32_t root, free_node; /* index + 1; 0: none */
    uint32_t count;
};

/* size_bytes > 0, start + size_bytes <= 2^64. handle may be NULL. 0 or -ENOMEM (map unchanged). Equal starts
 * stay in insertion order. */
int bw_interval_insert(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes, uint64_t value,
                       uint32_t *handle);
void bw_interval_remove(struct bw_interval_map *map, uint32_t handle);

/* Takes the bytes of the range away from every interval: shortens, splits or removes them. 0 or -ENOMEM (map
 * unchanged). */
int bw_interval_cut(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes);
/* Cut, then insert: afterwards the range belongs to value alone. 0 or -ENOMEM (map unchanged). */
int bw_interval_assign(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes, uint64_t value);

/* The first interval, by start, that shares a byte with the range, then the next one; BW_INTERVAL_NONE at the
 * end. */
uint32_t bw_interval_first(const struct bw_interval_map *map, uint64_t start, uint64_t size_bytes);
uint32_t bw_interval_next(const struct bw_interval_map *map, uint32_t handle, uint64_t start,
                          uint64_t size_bytes);
/* size_bytes is evaluated at each step. Do not insert or remove inside. */
#define BW_INTERVAL_EACH(map, handle, start, size_bytes)                                          \
    for (uint32_t handle = bw_interval_first(map, start, size_bytes); handle != BW_INTERVAL_NONE; \
         handle = bw_interval_next(map, handle, start, size_bytes))

/* Of the intervals that start at or before address the one that reaches furthest: it holds the address if any
 * does, else it is the nearest one below. BW_INTERVAL_NONE: none starts there or below. */
uint32_t bw_interval_below(const struct bw_interval_map *map, uint64_t address);
/* The first interval that starts after address. */
uint32_t bw_interval_above(const struct bw_interval_map *map, uint64_t address);
/* The interval that holds address, else the nearer of the two neighbours (the lower one of equally near
 * ones). */
uint32_t bw_interval_nearest(const struct bw_interval_map *map, uint64_t address);

/* Valid until the next insert, cut or assign. */
const struct bw_interval *bw_interval_at(const struct bw_interval_map *map, uint32_t handle);

/* Empties the map and keeps its memory. */
void bw_interval_map_clear(struct bw_interval_map *map);
void bw_interval_map_free(struct bw_interval_map *map);

/* For tests: asserts order, balance, furthest bytes and counts of the whole tree; returns its height. */
uint32_t bw_interval_map_check(const struct bw_interval_map *map);

#endif
