#include "mem/page_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mem/page_node.h"

#define SUBSYSTEM "page table"

static int broken(struct bw_err *err)
{
    return bw_fail(err, -EIO, SUBSYSTEM, "an earlier change did not reach the GPU");
}

static unsigned long long printed(uint64_t value)
{
    return value;
}

int bw_page_table_create(const struct bw_page_codec *codec, const struct bw_page_table_ops *ops, void *user,
                         struct bw_page_table **table, struct bw_err *err)
{
    struct bw_page_table *made = calloc(1, sizeof *made);
    if (!made)
        return bw_fail(err, -ENOMEM, SUBSYSTEM, "create");
    *made = (struct bw_page_table){.codec = codec, .ops = ops, .user = user};
    int rc = bw_page_node_create(made, 0, &made->root, err);
    if (!rc)
        rc = bw_page_table_commit(made, err);
    if (rc) {
        bw_page_table_destroy(made);
        return rc;
    }
    *table = made;
    return 0;
}

void bw_page_table_destroy(struct bw_page_table *table)
{
    if (!table)
        return;
    bw_page_table_bury(table);
    if (table->root)
        bw_page_node_destroy(table, table->root);
    free(table);
}

uint64_t bw_page_table_root(const struct bw_page_table *table)
{
    return table->root->address;
}

/* Of the whole address space. */
static uint64_t space_bytes(const struct bw_page_table *table)
{
    const struct bw_page_level *root = &table->codec->levels[0];
    return (uint64_t)1 << (root->shift + root->index_bits);
}

static int range_check(const struct bw_page_table *table, const char *call, uint64_t va, uint64_t size_bytes,
                       struct bw_err *err)
{
    if (table->broken)
        return broken(err);
    if (size_bytes == 0 || (va | size_bytes) % BW_PAGE_BYTES) {
        bw_fail(err, -EINVAL, SUBSYSTEM, "%s 0x%llx, 0x%llx bytes", call, printed(va), printed(size_bytes));
        bw_err_expected(err, "multiples of 0x%llx", printed(BW_PAGE_BYTES));
        return -EINVAL;
    }
    uint64_t space = space_bytes(table);
    if (va >= space || size_bytes > space - va) {
        bw_fail(err, -ERANGE, SUBSYSTEM, "%s 0x%llx, 0x%llx bytes", call, printed(va), printed(size_bytes));
        bw_err_expected(err, "below 0x%llx", printed(space));
        return -ERANGE;
    }
    return 0;
}

static int attributes_check(const struct bw_page_table *table, const struct bw_page_attributes *attributes,
                            struct bw_err *err)
{
    if (table->codec->memories >> attributes->memory & 1)
        return 0;
    return bw_fail(err, -EINVAL, SUBSYSTEM, "memory type %d: %s has none such", (int)attributes->memory,
                   table->codec->name);
}

static int extents_check(const struct bw_page_table *table, const struct bw_page_extent *extents,
                         uint32_t count, uint64_t *size_bytes, struct bw_err *err)
{
    uint64_t reach = (uint64_t)1 << table->codec->physical_bits;
    *size_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t address = extents[i].address, bytes = extents[i].size_bytes;
        if (bytes == 0 || (address | bytes) % BW_PAGE_BYTES) {
            bw_fail(err, -EINVAL, SUBSYSTEM, "extent %u at 0x%llx, 0x%llx bytes", i, printed(address),
                    printed(bytes));
            bw_err_expected(err, "multiples of 0x%llx", printed(BW_PAGE_BYTES));
            return -EINVAL;
        }
        if (address >= reach || bytes > reach - address || bytes > space_bytes(table) - *size_bytes) {
            bw_fail(err, -ERANGE, SUBSYSTEM, "extent %u at 0x%llx, 0x%llx bytes", i, printed(address),
                    printed(bytes));
            bw_err_expected(err, "below 0x%llx", printed(reach));
            return -ERANGE;
        }
        *size_bytes += bytes;
    }
    return 0;
}

/* Where a map has come to. */
struct map {
    struct bw_page_table *table;
    uint64_t va, end;
    uint64_t address, run_bytes; /* physical, in one piece from here on */
    const struct bw_page_extent *extents;
    uint32_t extent, extent_count; /* not begun yet */
    const struct bw_page_attributes *attributes;
};

/* Begins the next piece, neighbours merged. */
static void run_begin(struct map *map)
{
    map->address = map->extents[map->extent].address;
    do
        map->run_bytes += map->extents[map->extent++].size_bytes;
    while (map->extent < map->extent_count &&
           map->extents[map->extent].address == map->address + map->run_bytes);
}

/* Maps as many entries of this table as are leaves of the run in a row, at least one. */
static void map_leaves(struct map *map, struct bw_page_node *node)
{
    const struct bw_page_level *level = bw_page_node_level(map->table, node);
    uint32_t index = bw_page_node_index(map->table, node, map->va);
    uint64_t count = map->run_bytes >> level->shift, room = ((uint64_t)1 << level->index_bits) - index;
    if (count > room)
        count = room;
    bw_page_node_leaves(map->table, node, index, (uint32_t)count, map->address, map->attributes);
    node->used += (uint32_t)count;
    map->table->leaves += count;
    uint64_t bytes = count << level->shift;
    map->va += bytes;
    map->address += bytes;
    map->run_bytes -= bytes;
}

static bool leaf_fits(const struct map *map, const struct bw_page_level *level)
{
    uint64_t bytes = (uint64_t)1 << level->shift;
    return level->leaf && (map->va | map->address) % bytes == 0 && map->run_bytes >= bytes;
}

static int map_node(struct map *map, struct bw_page_node *node, struct bw_err *err)
{
    const struct bw_page_level *level = bw_page_node_level(map->table, node);
    uint64_t node_end = bw_page_node_end(map->table, node, map->va);
    while (map->va < map->end && map->va < node_end) {
        if (map->run_bytes == 0)
            run_begin(map);
        if (leaf_fits(map, level)) {
            map_leaves(map, node);
            continue;
        }
        struct bw_page_node *child = NULL;
        int rc =
            bw_page_node_child(map->table, node, bw_page_node_index(map->table, node, map->va), &child, err);
        if (!rc)
            rc = map_node(map, child, err);
        if (rc)
            return rc;
    }
    return 0;
}

int bw_page_table_map(struct bw_page_table *table, uint64_t va, const struct bw_page_extent *extents,
                      uint32_t extent_count, const struct bw_page_attributes *attributes, struct bw_err *err)
{
    uint64_t size_bytes;
    int rc = extents_check(table, extents, extent_count, &size_bytes, err);
    if (!rc)
        rc = range_check(table, "map", va, size_bytes, err);
    if (!rc)
        rc = attributes_check(table, attributes, err);
    if (rc)
        return rc;
    uint64_t at;
    if (bw_page_node_any(table, table->root, va, va + size_bytes, &at))
        return bw_fail(err, -EEXIST, SUBSYSTEM, "map 0x%llx, 0x%llx bytes: 0x%llx is mapped", printed(va),
                       printed(size_bytes), printed(at));
    struct map map = {.table = table,
                      .va = va,
                      .end = va + size_bytes,
                      .extents = extents,
                      .extent_count = extent_count,
                      .attributes = attributes};
    rc = map_node(&map, table->root, err);
    if (rc) {
        bw_page_node_clear(table, table->root, va, va + size_bytes);
        bw_page_table_rollback(table);
        return rc;
    }
    table->mapped_bytes += size_bytes;
    return bw_page_table_finish(table, va, size_bytes, err);
}

/* All of [va, end) is mapped, and no leaf reaches over its ends afterwards. */
static int range_isolate(struct bw_page_table *table, const char *call, uint64_t va, uint64_t size_bytes,
                         struct bw_err *err)
{
    uint64_t end = va + size_bytes, hole;
    if (!bw_page_node_all(table, table->root, va, end, &hole))
        return bw_fail(err, -ENOENT, SUBSYSTEM, "%s 0x%llx, 0x%llx bytes: 0x%llx is not mapped", call,
                       printed(va), printed(size_bytes), printed(hole));
    int rc = bw_page_node_split(table, table->root, va, err);
    if (!rc && end < space_bytes(table))
        rc = bw_page_node_split(table, table->root, end, err);
    if (!rc)
        return 0;
    /* The tables that were made say the same as the leaves that they are for: they may stay. */
    int written = bw_page_table_commit(table, NULL);
    return written ? broken(err) : rc;
}

int bw_page_table_unmap(struct bw_page_table *table, uint64_t va, uint64_t size_bytes, struct bw_err *err)
{
    int rc = range_check(table, "unmap", va, size_bytes, err);
    if (!rc)
        rc = range_isolate(table, "unmap", va, size_bytes, err);
    if (rc)
        return rc;
    bw_page_node_clear(table, table->root, va, va + size_bytes);
    table->mapped_bytes -= size_bytes;
    return bw_page_table_finish(table, va, size_bytes, err);
}

int bw_page_table_protect(struct bw_page_table *table, uint64_t va, uint64_t size_bytes,
                          const struct bw_page_attributes *attributes, struct bw_err *err)
{
    int rc = range_check(table, "protect", va, size_bytes, err);
    if (!rc)
        rc = attributes_check(table, attributes, err);
    if (!rc)
        rc = range_isolate(table, "protect", va, size_bytes, err);
    if (rc)
        return rc;
    bw_page_node_protect(table, table->root, va, va + size_bytes, attributes);
    return bw_page_table_finish(table, va, size_bytes, err);
}

bool bw_page_table_find(const struct bw_page_table *table, uint64_t va, struct bw_page_mapping *mapping)
{
    if (va >= space_bytes(table))
        return false;
    const struct bw_page_node *node = table->root;
    for (;;) {
        uint32_t index = bw_page_node_index(table, node, va);
        if (node->children && node->children[index]) {
            node = node->children[index];
            continue;
        }
        struct bw_page_entry entry;
        table->codec->decode(table->codec, node->level, node->words[index], &entry);
        if (!entry.valid)
            return false;
        uint64_t bytes = (uint64_t)1 << bw_page_node_level(table, node)->shift;
        *mapping = (struct bw_page_mapping){.va = bw_align_down(va, bytes),
                                            .size_bytes = bytes,
                                            .address = entry.address,
                                            .attributes = entry.attributes,
                                            .fragment = entry.fragment};
        return true;
    }
}

void bw_page_table_stats(const struct bw_page_table *table, struct bw_page_table_stats *stats)
{
    *stats = (struct bw_page_table_stats){
        .mapped_bytes = table->mapped_bytes, .leaves = table->leaves, .tables = table->tables};
}
