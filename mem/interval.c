/* Interval map: see interval.h. Nodes live in one array and link by index + 1 (0: none), so that a million of
 * them are one allocation and a zeroed map is empty. */
#include "mem/interval.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

struct bw_interval_node {
    struct bw_interval interval;
    uint64_t furthest; /* greatest last of the subtree */
    uint32_t child[2], parent;
    uint8_t height; /* 0: not in the tree */
};

/* Node numbers are 32-bit with one value for none on either side (index + 1 == 0, BW_INTERVAL_NONE). */
#define NODES_MAX 0xfffffffeu
/* An AVL tree of 2^32 nodes is at most 1.4405 * 32 + 1 high; recursion in the checker is bounded by it. */
#define HEIGHT_MAX 47u

static struct bw_interval_node *node_at(const struct bw_interval_map *map, uint32_t link)
{
    assert(link && link <= map->used);
    return &map->nodes[link - 1];
}

static unsigned height_of(const struct bw_interval_map *map, uint32_t link)
{
    return link ? node_at(map, link)->height : 0;
}

static void refresh(struct bw_interval_map *map, uint32_t link)
{
    struct bw_interval_node *node = node_at(map, link);
    unsigned height = 0;
    node->furthest = node->interval.last;
    for (int side = 0; side < 2; side++) {
        if (!node->child[side])
            continue;
        const struct bw_interval_node *child = node_at(map, node->child[side]);
        if (child->height > height)
            height = child->height;
        if (child->furthest > node->furthest)
            node->furthest = child->furthest;
    }
    node->height = (uint8_t)(height + 1);
}

/* Puts `to` (may be 0) where `from` hangs below its parent. */
static void replace_child(struct bw_interval_map *map, uint32_t parent, uint32_t from, uint32_t to)
{
    if (!parent) {
        assert(map->root == from);
        map->root = to;
    } else {
        struct bw_interval_node *node = node_at(map, parent);
        int side = node->child[1] == from;
        assert(node->child[side] == from);
        node->child[side] = to;
    }
    if (to)
        node_at(map, to)->parent = parent;
}

/* Lifts the child on `side` over link; returns the new top of the subtree. */
static uint32_t rotate(struct bw_interval_map *map, uint32_t link, int side)
{
    struct bw_interval_node *node = node_at(map, link);
    uint32_t top = node->child[side];
    struct bw_interval_node *lifted = node_at(map, top);
    uint32_t middle = lifted->child[!side];
    replace_child(map, node->parent, link, top);
    node->child[side] = middle;
    if (middle)
        node_at(map, middle)->parent = link;
    lifted->child[!side] = link;
    node->parent = top;
    refresh(map, link);
    refresh(map, top);
    return top;
}

static uint32_t balance(struct bw_interval_map *map, uint32_t link)
{
    const struct bw_interval_node *node = node_at(map, link);
    int lean = (int)height_of(map, node->child[1]) - (int)height_of(map, node->child[0]);
    assert(lean >= -2 && lean <= 2);
    if (lean > -2 && lean < 2)
        return link;
    int side = lean > 0;
    uint32_t tall = node->child[side];
    const struct bw_interval_node *child = node_at(map, tall);
    if (height_of(map, child->child[!side]) > height_of(map, child->child[side]))
        rotate(map, tall, !side);
    return rotate(map, link, side);
}

/* Restores heights, furthest bytes and balance from link up to the root. */
static void fix_up(struct bw_interval_map *map, uint32_t link)
{
    while (link) {
        refresh(map, link);
        link = balance(map, link);
        link = node_at(map, link)->parent;
    }
}

static int reserve_nodes(struct bw_interval_map *map, uint32_t extra)
{
    uint32_t fresh = map->capacity - map->used;
    for (uint32_t link = map->free_node; link && fresh < extra; link = node_at(map, link)->child[0])
        fresh++;
    if (fresh >= extra)
        return 0;
    uint64_t wanted = map->capacity ? (uint64_t)map->capacity * 2 : 16;
    if (wanted < (uint64_t)map->used + extra)
        wanted = (uint64_t)map->used + extra;
    if (wanted > NODES_MAX)
        return -ENOMEM;
    struct bw_interval_node *grown = realloc(map->nodes, (size_t)wanted * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    map->nodes = grown;
    map->capacity = (uint32_t)wanted;
    return 0;
}

static uint32_t take_node(struct bw_interval_map *map)
{
    uint32_t link = map->free_node;
    if (link) {
        map->free_node = node_at(map, link)->child[0];
    } else {
        assert(map->used < map->capacity);
        link = ++map->used;
    }
    memset(node_at(map, link), 0, sizeof(struct bw_interval_node));
    return link;
}

static uint64_t last_byte(uint64_t start, uint64_t size_bytes)
{
    assert(size_bytes && size_bytes - 1 <= UINT64_MAX - start);
    return start + (size_bytes - 1);
}

/* Room for the node must have been reserved. */
static uint32_t insert_reserved(struct bw_interval_map *map, struct bw_interval interval)
{
    uint32_t parent = 0, at = map->root;
    int side = 0;
    while (at) {
        parent = at;
        side = interval.start >= node_at(map, at)->interval.start;
        at = node_at(map, at)->child[side];
    }
    uint32_t link = take_node(map);
    struct bw_interval_node *node = node_at(map, link);
    node->interval = interval;
    node->parent = parent;
    if (parent)
        node_at(map, parent)->child[side] = link;
    else
        map->root = link;
    map->count++;
    fix_up(map, link);
    return link;
}

int bw_interval_insert(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes, uint64_t value,
                       uint32_t *handle)
{
    uint64_t last = last_byte(start, size_bytes);
    int rc = reserve_nodes(map, 1);
    if (rc)
        return rc;
    uint32_t link = insert_reserved(map, (struct bw_interval){start, last, value});
    if (handle)
        *handle = link - 1;
    return 0;
}

static uint32_t leftmost(const struct bw_interval_map *map, uint32_t link)
{
    while (node_at(map, link)->child[0])
        link = node_at(map, link)->child[0];
    return link;
}

void bw_interval_remove(struct bw_interval_map *map, uint32_t handle)
{
    assert(handle < map->used);
    uint32_t link = handle + 1;
    struct bw_interval_node *node = node_at(map, link);
    assert(node->height && map->count);
    uint32_t fix_from;
    if (node->child[0] && node->child[1]) {
        /* The successor takes this node's place: other handles must stay what they are. */
        uint32_t next = leftmost(map, node->child[1]);
        struct bw_interval_node *successor = node_at(map, next);
        fix_from = successor->parent == link ? next : successor->parent;
        replace_child(map, successor->parent, next, successor->child[1]);
        replace_child(map, node->parent, link, next);
        for (int side = 0; side < 2; side++) {
            successor->child[side] = node->child[side];
            if (successor->child[side])
                node_at(map, successor->child[side])->parent = next;
        }
    } else {
        fix_from = node->parent;
        replace_child(map, node->parent, link, node->child[0] ? node->child[0] : node->child[1]);
    }
    memset(node, 0, sizeof *node);
    node->child[0] = map->free_node;
    map->free_node = link;
    map->count--;
    fix_up(map, fix_from);
}

/* The first node by start in the subtree of link that shares a byte with [start, last]. */
static uint32_t first_in(const struct bw_interval_map *map, uint32_t link, uint64_t start, uint64_t last)
{
    while (link) {
        const struct bw_interval_node *node = node_at(map, link);
        uint32_t left = node->child[0];
        if (left && node_at(map, left)->furthest >= start) {
            /* Something on the left reaches the range; if it starts too late, so does everything to the right
             * of it. */
            link = left;
            continue;
        }
        if (node->interval.start > last)
            return 0;
        if (node->interval.last >= start)
            return link;
        link = node->child[1];
    }
    return 0;
}

uint32_t bw_interval_first(const struct bw_interval_map *map, uint64_t start, uint64_t size_bytes)
{
    return first_in(map, map->root, start, last_byte(start, size_bytes)) - 1;
}

uint32_t bw_interval_next(const struct bw_interval_map *map, uint32_t handle, uint64_t start,
                          uint64_t size_bytes)
{
    uint64_t last = last_byte(start, size_bytes);
    uint32_t link = handle + 1;
    for (;;) {
        const struct bw_interval_node *node = node_at(map, link);
        assert(node->height);
        uint32_t right = node->child[1];
        if (right && node_at(map, right)->furthest >= start)
            return first_in(map, right, start, last) - 1;
        uint32_t from;
        do {
            from = link;
            link = node_at(map, link)->parent;
            if (!link)
                return BW_INTERVAL_NONE;
        } while (node_at(map, link)->child[1] == from);
        node = node_at(map, link);
        if (node->interval.start > last)
            return BW_INTERVAL_NONE;
        if (node->interval.last >= start)
            return link - 1;
    }
}

uint32_t bw_interval_below(const struct bw_interval_map *map, uint64_t address)
{
    /* All nodes left of the path start at or before address: their subtrees' furthest bytes are final
     * answers. */
    uint32_t best = 0;
    uint64_t reach = 0;
    bool in_subtree = false;
    for (uint32_t link = map->root; link;) {
        const struct bw_interval_node *node = node_at(map, link);
        if (node->interval.start > address) {
            link = node->child[0];
            continue;
        }
        if (!best || node->interval.last > reach) {
            best = link;
            reach = node->interval.last;
            in_subtree = false;
        }
        uint32_t left = node->child[0];
        if (left && node_at(map, left)->furthest > reach) {
            best = left;
            reach = node_at(map, left)->furthest;
            in_subtree = true;
        }
        link = node->child[1];
    }
    while (in_subtree && node_at(map, best)->interval.last != reach) {
        const struct bw_interval_node *node = node_at(map, best);
        bool right = node->child[1] && node_at(map, node->child[1])->furthest == reach;
        best = node->child[right];
    }
    return best - 1;
}

uint32_t bw_interval_above(const struct bw_interval_map *map, uint64_t address)
{
    uint32_t best = 0;
    for (uint32_t link = map->root; link;) {
        const struct bw_interval_node *node = node_at(map, link);
        bool above = node->interval.start > address;
        if (above)
            best = link;
        link = node->child[!above];
    }
    return best - 1;
}

uint32_t bw_interval_nearest(const struct bw_interval_map *map, uint64_t address)
{
    uint32_t below = bw_interval_below(map, address), above = bw_interval_above(map, address);
    if (below == BW_INTERVAL_NONE || above == BW_INTERVAL_NONE)
        return below == BW_INTERVAL_NONE ? above : below;
    const struct bw_interval *low = bw_interval_at(map, below), *high = bw_interval_at(map, above);
    if (low->last >= address)
        return below;
    return address - low->last <= high->start - address ? below : above;
}

/* Takes [start, last] out of the interval, which shares bytes with it. Room for one node must have been
 * reserved. */
static void cut_one(struct bw_interval_map *map, uint32_t handle, uint64_t start, uint64_t last)
{
    struct bw_interval_node *node = node_at(map, handle + 1);
    struct bw_interval old = node->interval;
    assert(old.start <= last && old.last >= start);
    if (old.start < start) {
        node->interval.last = start - 1;
        for (uint32_t link = handle + 1; link; link = node_at(map, link)->parent)
            refresh(map, link);
    } else {
        bw_interval_remove(map, handle);
    }
    if (old.last > last)
        insert_reserved(map, (struct bw_interval){last + 1, old.last, old.value});
}

int bw_interval_cut(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes)
{
    uint64_t last = last_byte(start, size_bytes);
    /* Only intervals that stick out on both sides need a second node. */
    uint32_t splits = 0;
    BW_INTERVAL_EACH(map, handle, start, size_bytes)
    {
        const struct bw_interval *interval = bw_interval_at(map, handle);
        splits += interval->start < start && interval->last > last;
    }
    int rc = reserve_nodes(map, splits);
    if (rc)
        return rc;
    for (uint32_t handle = bw_interval_first(map, start, size_bytes), next; handle != BW_INTERVAL_NONE;
         handle = next) {
        next = bw_interval_next(map, handle, start, size_bytes);
        cut_one(map, handle, start, last);
    }
    return 0;
}

int bw_interval_assign(struct bw_interval_map *map, uint64_t start, uint64_t size_bytes, uint64_t value)
{
    uint64_t last = last_byte(start, size_bytes);
    uint32_t overlaps = 1;
    BW_INTERVAL_EACH(map, handle, start, size_bytes)
    overlaps++;
    int rc = reserve_nodes(map, overlaps);
    if (!rc)
        rc = bw_interval_cut(map, start, size_bytes);
    if (!rc)
        insert_reserved(map, (struct bw_interval){start, last, value});
    return rc;
}

const struct bw_interval *bw_interval_at(const struct bw_interval_map *map, uint32_t handle)
{
    assert(handle < map->used && map->nodes[handle].height);
    return &map->nodes[handle].interval;
}

void bw_interval_map_clear(struct bw_interval_map *map)
{
    map->used = map->root = map->free_node = map->count = 0;
}

void bw_interval_map_free(struct bw_interval_map *map)
{
    free(map->nodes);
    memset(map, 0, sizeof *map);
}

static uint32_t check_subtree(const struct bw_interval_map *map, uint32_t link, uint32_t parent,
                              uint32_t *count)
{
    if (!link)
        return 0;
    const struct bw_interval_node *node = node_at(map, link);
    assert(node->parent == parent && node->height <= HEIGHT_MAX);
    assert(node->interval.start <= node->interval.last);
    uint32_t height[2];
    uint64_t furthest = node->interval.last;
    for (int side = 0; side < 2; side++) {
        height[side] = check_subtree(map, node->child[side], link, count);
        if (!node->child[side])
            continue;
        const struct bw_interval_node *child = node_at(map, node->child[side]);
        assert(side ? child->interval.start >= node->interval.start
                    : child->interval.start <= node->interval.start);
        furthest = child->furthest > furthest ? child->furthest : furthest;
    }
    assert(furthest == node->furthest);
    assert(height[0] <= height[1] + 1 && height[1] <= height[0] + 1);
    uint32_t tallest = height[0] > height[1] ? height[0] : height[1];
    assert(node->height == tallest + 1);
    (*count)++;
    return tallest + 1;
}

uint32_t bw_interval_map_check(const struct bw_interval_map *map)
{
    uint32_t count = 0;
    uint32_t height = check_subtree(map, map->root, 0, &count);
    assert(count == map->count);
    return height;
}
