#include "mem/page_node.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static uint32_t entry_count(const struct bw_page_table *table, const struct bw_page_node *node)
{
    return (uint32_t)1 << bw_page_node_level(table, node)->index_bits;
}

static void touch(struct bw_page_table *table, struct bw_page_node *node, uint32_t first, uint32_t end)
{
    if (!node->touched) {
        node->touched = true;
        node->next_touched = table->touched;
        table->touched = node;
        node->dirty_first = first;
        node->dirty_end = end;
        return;
    }
    if (first < node->dirty_first)
        node->dirty_first = first;
    if (end > node->dirty_end)
        node->dirty_end = end;
}

int bw_page_node_create(struct bw_page_table *table, uint32_t level, struct bw_page_node **node,
                        struct bw_err *err)
{
    bool last = level + 1 == table->codec->level_count;
    struct bw_page_node *made = calloc(1, sizeof *made);
    if (made && !last)
        made->children = calloc((size_t)1 << table->codec->levels[level].index_bits, sizeof *made->children);
    if (!made || (!last && !made->children)) {
        free(made);
        return bw_fail(err, -ENOMEM, "page table", "a table");
    }
    int rc = table->ops->table_alloc(table->user, &made->address, err);
    if (rc) {
        free(made->children);
        free(made);
        return rc;
    }
    made->level = level;
    made->fresh = true;
    table->tables++;
    for (uint32_t i = 0; i < entry_count(table, made); i++)
        made->words[i] = table->codec->encode_empty(table->codec, level);
    touch(table, made, 0, entry_count(table, made));
    *node = made;
    return 0;
}

static void node_free(struct bw_page_table *table, struct bw_page_node *node)
{
    table->ops->table_free(table->user, node->address);
    table->tables--;
    free(node->children);
    free(node);
}

void bw_page_node_destroy(struct bw_page_table *table, struct bw_page_node *node)
{
    for (uint32_t i = 0; node->children && i < entry_count(table, node); i++)
        if (node->children[i])
            bw_page_node_destroy(table, node->children[i]);
    node_free(table, node);
}

static void child_link(struct bw_page_table *table, struct bw_page_node *node, uint32_t index,
                       struct bw_page_node *child)
{
    child->parent = node;
    child->parent_index = index;
    node->children[index] = child;
    node->words[index] = table->codec->encode_table(table->codec, node->level, child->address);
    touch(table, node, index, index + 1);
}

int bw_page_node_child(struct bw_page_table *table, struct bw_page_node *node, uint32_t index,
                       struct bw_page_node **child, struct bw_err *err)
{
    *child = node->children[index];
    if (*child)
        return 0;
    int rc = bw_page_node_create(table, node->level + 1, child, err);
    if (rc)
        return rc;
    child_link(table, node, index, *child);
    node->used++;
    return 0;
}

/* The largest fragment that begins at these addresses and ends within count entries: log2 of its entries. */
static unsigned fragment_order(const struct bw_page_table *table, unsigned shift, uint32_t index,
                               uint64_t address, uint32_t count)
{
    if (!table->codec->fragments)
        return 0;
    uint64_t alignment = index | address >> shift;
    unsigned order = bw_log2(count);
    if (alignment && (unsigned)__builtin_ctzll(alignment) < order)
        order = (unsigned)__builtin_ctzll(alignment);
    return order;
}

void bw_page_node_leaves(struct bw_page_table *table, struct bw_page_node *node, uint32_t index,
                         uint32_t count, uint64_t address, const struct bw_page_attributes *attributes)
{
    const struct bw_page_codec *codec = table->codec;
    unsigned shift = codec->levels[node->level].shift;
    touch(table, node, index, index + count);
    while (count) {
        unsigned order = fragment_order(table, shift, index, address, count);
        uint32_t fragment = codec->fragments ? order + shift - BW_PAGE_SHIFT : 0;
        for (uint32_t i = 0; i < (uint32_t)1 << order; i++) {
            node->words[index + i] = codec->encode_leaf(codec, node->level, address, attributes, fragment);
            address += (uint64_t)1 << shift;
        }
        index += (uint32_t)1 << order;
        count -= (uint32_t)1 << order;
    }
}

/* Of one node: the entries that [va, end) reaches, and what of it lies in each. */
struct span {
    uint64_t va, end; /* within the node */
    unsigned shift;
};

static struct span span_of(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                           uint64_t end)
{
    uint64_t node_end = bw_page_node_end(table, node, va);
    return (struct span){va, end < node_end ? end : node_end, bw_page_node_level(table, node)->shift};
}

/* The end of what one entry covers, cut at the span's. */
static uint64_t entry_end(const struct span *span, uint64_t va)
{
    uint64_t end = ((va >> span->shift) + 1) << span->shift;
    return end < span->end ? end : span->end;
}

static bool entry_valid(const struct bw_page_table *table, const struct bw_page_node *node, uint32_t index)
{
    struct bw_page_entry entry;
    table->codec->decode(table->codec, node->level, node->words[index], &entry);
    return entry.valid;
}

/* The first page of the range that is mapped, or with `holes` that is not. */
static bool search(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                   uint64_t end, bool holes, uint64_t *at)
{
    struct span span = span_of(table, node, va, end);
    for (; va < span.end; va = entry_end(&span, va)) {
        uint32_t index = bw_page_node_index(table, node, va);
        const struct bw_page_node *child = node->children ? node->children[index] : NULL;
        if (child ? search(table, child, va, entry_end(&span, va), holes, at)
                  : entry_valid(table, node, index) != holes) {
            if (!child)
                *at = va;
            return true;
        }
    }
    return false;
}

bool bw_page_node_any(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                      uint64_t end, uint64_t *at)
{
    return search(table, node, va, end, false, at);
}

bool bw_page_node_all(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                      uint64_t end, uint64_t *at)
{
    return !search(table, node, va, end, true, at);
}

static bool attributes_equal(const struct bw_page_attributes *a, const struct bw_page_attributes *b)
{
    return a->system == b->system && a->snooped == b->snooped && a->read == b->read && a->write == b->write &&
           a->execute == b->execute && a->memory == b->memory;
}

/* Leaves from index on, before end, that map memory in one piece with the same attributes; 0: no leaf. */
static uint32_t run_length(const struct bw_page_table *table, const struct bw_page_node *node, uint32_t index,
                           uint32_t end, struct bw_page_entry *first)
{
    const struct bw_page_codec *codec = table->codec;
    codec->decode(codec, node->level, node->words[index], first);
    if (!first->valid || !first->leaf)
        return 0;
    uint64_t address = first->address;
    uint32_t count = 1;
    for (; index + count < end; count++) {
        struct bw_page_entry next;
        codec->decode(codec, node->level, node->words[index + count], &next);
        address += (uint64_t)1 << codec->levels[node->level].shift;
        if (!next.valid || !next.leaf || next.address != address ||
            !attributes_equal(&next.attributes, &first->attributes))
            break;
    }
    return count;
}

/* Gives the leaves [index, end) the fragments that are true of them alone, and attributes unless NULL. */
static void refragment(struct bw_page_table *table, struct bw_page_node *node, uint32_t index, uint32_t end,
                       const struct bw_page_attributes *attributes)
{
    while (index < end) {
        struct bw_page_entry first;
        uint32_t count = run_length(table, node, index, end, &first);
        if (count)
            bw_page_node_leaves(table, node, index, count, first.address,
                                attributes ? attributes : &first.attributes);
        index += count ? count : 1;
    }
}

/* Entries of the fragment that a leaf says it belongs to; 1: none. */
static uint32_t fragment_entries(const struct bw_page_table *table, const struct bw_page_node *node,
                                 uint32_t index)
{
    struct bw_page_entry entry;
    table->codec->decode(table->codec, node->level, node->words[index], &entry);
    unsigned own = bw_page_node_level(table, node)->shift - BW_PAGE_SHIFT;
    return entry.valid && entry.leaf && entry.fragment > own ? (uint32_t)1 << (entry.fragment - own) : 1;
}

/* The entries [first, end) will not be what they were: the rest of fragments that reach into them must not
 * say so any more. */
static void fragments_cut(struct bw_page_table *table, struct bw_page_node *node, uint32_t first,
                          uint32_t end)
{
    uint32_t before = fragment_entries(table, node, first), after = fragment_entries(table, node, end - 1);
    refragment(table, node, first & ~(before - 1), first, NULL);
    refragment(table, node, end, ((end - 1) | (after - 1)) + 1, NULL);
}

int bw_page_node_split(struct bw_page_table *table, struct bw_page_node *node, uint64_t va,
                       struct bw_err *err)
{
    while (va & (((uint64_t)1 << bw_page_node_level(table, node)->shift) - 1)) {
        uint32_t index = bw_page_node_index(table, node, va);
        struct bw_page_node *child = node->children[index];
        if (!child) {
            struct bw_page_entry leaf;
            table->codec->decode(table->codec, node->level, node->words[index], &leaf);
            if (!leaf.valid)
                return 0;
            int rc = bw_page_node_create(table, node->level + 1, &child, err);
            if (rc)
                return rc;
            fragments_cut(table, node, index, index + 1);
            child->used = entry_count(table, child);
            bw_page_node_leaves(table, child, 0, child->used, leaf.address, &leaf.attributes);
            child_link(table, node, index, child);
            table->leaves += child->used - 1;
        }
        node = child;
    }
    return 0;
}

/* Takes a table out of the tree if it is empty. */
static void prune(struct bw_page_table *table, struct bw_page_node *node)
{
    struct bw_page_node *parent = node->parent;
    if (node->used || !parent)
        return;
    uint32_t index = node->parent_index;
    node->dead = true;
    node->next_dead = table->dead;
    table->dead = node;
    parent->children[index] = NULL;
    parent->words[index] = table->codec->encode_empty(table->codec, parent->level);
    parent->used--;
    touch(table, parent, index, index + 1);
}

/* Empties the leaves [first, end). */
static void leaves_clear(struct bw_page_table *table, struct bw_page_node *node, uint32_t first, uint32_t end)
{
    fragments_cut(table, node, first, end);
    for (uint32_t i = first; i < end; i++) {
        if (!entry_valid(table, node, i))
            continue;
        node->words[i] = table->codec->encode_empty(table->codec, node->level);
        node->used--;
        table->leaves--;
    }
    touch(table, node, first, end);
}

/* How many entries from va on have no table below them, up to the span's end. */
static uint32_t leaves_ahead(const struct bw_page_table *table, const struct bw_page_node *node,
                             const struct span *span, uint64_t va)
{
    uint32_t first = bw_page_node_index(table, node, va), count = 0;
    uint64_t limit =
        bw_div_up(span->end - bw_align_down(va, (uint64_t)1 << span->shift), (uint64_t)1 << span->shift);
    while (count < limit && !(node->children && node->children[first + count]))
        count++;
    return count;
}

/* What is done to leaves [first, end) of a node. */
typedef void leaf_visit(struct bw_page_table *table, struct bw_page_node *node, uint32_t first, uint32_t end,
                        const struct bw_page_attributes *attributes);

static void visit(struct bw_page_table *table, struct bw_page_node *node, uint64_t va, uint64_t end,
                  leaf_visit *leaves, const struct bw_page_attributes *attributes)
{
    struct span span = span_of(table, node, va, end);
    while (va < span.end) {
        uint32_t index = bw_page_node_index(table, node, va);
        uint32_t count = leaves_ahead(table, node, &span, va);
        if (count) {
            leaves(table, node, index, index + count, attributes);
            va = bw_align_down(va, (uint64_t)1 << span.shift) + ((uint64_t)count << span.shift);
            continue;
        }
        uint64_t next = entry_end(&span, va);
        visit(table, node->children[index], va, next, leaves, attributes);
        va = next;
    }
    prune(table, node);
}

static void clear_leaves(struct bw_page_table *table, struct bw_page_node *node, uint32_t first, uint32_t end,
                         const struct bw_page_attributes *attributes)
{
    (void)attributes;
    leaves_clear(table, node, first, end);
}

static void protect_leaves(struct bw_page_table *table, struct bw_page_node *node, uint32_t first,
                           uint32_t end, const struct bw_page_attributes *attributes)
{
    fragments_cut(table, node, first, end);
    refragment(table, node, first, end, attributes);
}

void bw_page_node_clear(struct bw_page_table *table, struct bw_page_node *node, uint64_t va, uint64_t end)
{
    visit(table, node, va, end, clear_leaves, NULL);
}

void bw_page_node_protect(struct bw_page_table *table, struct bw_page_node *node, uint64_t va, uint64_t end,
                          const struct bw_page_attributes *attributes)
{
    visit(table, node, va, end, protect_leaves, attributes);
}

/* Writes the touched tables that are (are not) fresh. */
static int write_touched(struct bw_page_table *table, bool fresh, bool *any, struct bw_err *err)
{
    for (struct bw_page_node *node = table->touched; node; node = node->next_touched) {
        if (node->dead || node->fresh != fresh)
            continue;
        *any = true;
        int rc = table->ops->write(table->user, node->address + node->dirty_first * sizeof node->words[0],
                                   node->words + node->dirty_first, node->dirty_end - node->dirty_first, err);
        if (rc)
            return rc;
    }
    return 0;
}

static void touched_forget(struct bw_page_table *table)
{
    while (table->touched) {
        struct bw_page_node *node = table->touched;
        table->touched = node->next_touched;
        node->touched = node->fresh = false;
    }
}

int bw_page_table_commit(struct bw_page_table *table, struct bw_err *err)
{
    bool any = false;
    int rc = write_touched(table, true, &any, err);
    if (!rc && any)
        rc = table->ops->order(table->user, err);
    if (!rc)
        rc = write_touched(table, false, &any, err);
    touched_forget(table);
    table->broken = rc != 0;
    return rc;
}

int bw_page_table_finish(struct bw_page_table *table, uint64_t va, uint64_t size_bytes, struct bw_err *err)
{
    int rc = bw_page_table_commit(table, err);
    if (!rc) {
        rc = table->ops->flush(table->user, va, size_bytes, err);
        table->broken = rc != 0;
    }
    if (!rc)
        bw_page_table_bury(table);
    return rc;
}

void bw_page_table_rollback(struct bw_page_table *table)
{
    touched_forget(table);
    bw_page_table_bury(table);
}

void bw_page_table_bury(struct bw_page_table *table)
{
    while (table->dead) {
        struct bw_page_node *node = table->dead;
        table->dead = node->next_dead;
        node_free(table, node);
    }
}

/* The leaf at index says that its fragment is mapped in one piece: is it? */
static void fragment_check(const struct bw_page_table *table, const struct bw_page_node *node, uint32_t index)
{
    struct bw_page_entry entry, first;
    table->codec->decode(table->codec, node->level, node->words[index], &entry);
    uint32_t count = fragment_entries(table, node, index), start = index & ~(count - 1);
    uint64_t bytes = (uint64_t)1 << bw_page_node_level(table, node)->shift;
    assert(entry.fragment + BW_PAGE_SHIFT >= bw_log2(bytes));
    assert(start + count <= entry_count(table, node));
    assert(run_length(table, node, start, start + count, &first) == count);
    assert((first.address & (count * bytes - 1)) == 0);
    (void)first, (void)bytes, (void)start;
}

static void node_check(const struct bw_page_table *table, const struct bw_page_node *node,
                       struct bw_page_table_stats *stats)
{
    uint32_t used = 0;
    stats->tables++;
    assert(!node->touched && !node->fresh && !node->dead);
    for (uint32_t i = 0; i < entry_count(table, node); i++) {
        struct bw_page_entry entry;
        table->codec->decode(table->codec, node->level, node->words[i], &entry);
        const struct bw_page_node *child = node->children ? node->children[i] : NULL;
        used += entry.valid;
        assert((child != NULL) == (entry.valid && !entry.leaf));
        if (child) {
            assert(child->address == entry.address && child->parent == node && child->parent_index == i);
            assert(child->level == node->level + 1 && child->used);
            node_check(table, child, stats);
        } else if (entry.valid) {
            stats->leaves++;
            stats->mapped_bytes += (uint64_t)1 << bw_page_node_level(table, node)->shift;
            fragment_check(table, node, i);
        }
    }
    assert(used == node->used);
    (void)used;
}

void bw_page_table_check(const struct bw_page_table *table)
{
    struct bw_page_table_stats stats = {0};
    node_check(table, table->root, &stats);
    assert(!table->touched && !table->dead);
    assert(stats.tables == table->tables && stats.leaves == table->leaves);
    assert(stats.mapped_bytes == table->mapped_bytes);
    (void)stats;
}
