/* Two-level segregated fit: see tlsf.h. Blocks live in one array and link by index + 1 (0: none). */
#include "mem/tlsf.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"

enum {
    /* Second level: 32 lists per doubling keep the rounding of the quick search below 1/32 of the size. */
    SECOND_BITS = 5,
    SECOND_COUNT = 1 << SECOND_BITS,
    /* First level: list 0 holds sizes below SECOND_COUNT granules one by one, then one row per doubling of
       64-bit sizes. */
    FIRST_COUNT = 64 - SECOND_BITS + 1,
    /* Most blocks that one allocation makes: what is cut off in front and behind. */
    BLOCKS_PER_ALLOC = 2,
};

struct block {
    uint64_t start, size;    /* in granules; size 0: not in use */
    uint32_t before, after;  /* neighbours in the range */
    uint32_t previous, next; /* in the free list; next also chains spare blocks */
    bool used;
};

struct bw_tlsf {
    uint64_t granule_bytes;
    unsigned granule_shift;
    struct block *blocks;
    uint32_t block_capacity, block_count, spare;
    struct bw_map used;        /* start in granules -> link */
    uint64_t total, used_size; /* granules */
    uint32_t free_blocks;
    uint64_t first_map;
    uint32_t second_map[FIRST_COUNT];
    uint32_t heads[FIRST_COUNT][SECOND_COUNT];
};

struct list {
    unsigned first, second;
};

_Static_assert(FIRST_COUNT <= 64, "one bit per row in first_map");
_Static_assert(SECOND_COUNT <= 32, "one bit per list in second_map");

static struct block *block_at(const struct bw_tlsf *tlsf, uint32_t link)
{
    assert(link && link <= tlsf->block_count);
    return &tlsf->blocks[link - 1];
}

/* The list that a free block of this size belongs to. */
static struct list list_of(uint64_t size)
{
    assert(size);
    unsigned log = bw_log2(size);
    if (log < SECOND_BITS)
        return (struct list){0, (unsigned)size};
    unsigned second = (unsigned)(size >> (log - SECOND_BITS)) & (SECOND_COUNT - 1);
    return (struct list){log - SECOND_BITS + 1, second};
}

/* The first list whose blocks are all at least this big. */
static struct list list_that_fits(uint64_t size)
{
    unsigned log = bw_log2(size);
    if (log >= SECOND_BITS) {
        uint64_t round = ((uint64_t)1 << (log - SECOND_BITS)) - 1;
        size = size > UINT64_MAX - round ? UINT64_MAX : size + round;
    }
    return list_of(size);
}

static void list_insert(struct bw_tlsf *tlsf, uint32_t link)
{
    struct block *block = block_at(tlsf, link);
    struct list list = list_of(block->size);
    uint32_t *head = &tlsf->heads[list.first][list.second];
    assert(!block->used);
    block->previous = 0;
    block->next = *head;
    if (*head)
        block_at(tlsf, *head)->previous = link;
    *head = link;
    tlsf->first_map |= (uint64_t)1 << list.first;
    tlsf->second_map[list.first] |= 1u << list.second;
    tlsf->free_blocks++;
}

static void list_remove(struct bw_tlsf *tlsf, uint32_t link)
{
    struct block *block = block_at(tlsf, link);
    struct list list = list_of(block->size);
    uint32_t *head = &tlsf->heads[list.first][list.second];
    if (block->next)
        block_at(tlsf, block->next)->previous = block->previous;
    if (block->previous)
        block_at(tlsf, block->previous)->next = block->next;
    else
        *head = block->next;
    if (!*head) {
        tlsf->second_map[list.first] &= ~(1u << list.second);
        if (!tlsf->second_map[list.first])
            tlsf->first_map &= ~((uint64_t)1 << list.first);
    }
    assert(tlsf->free_blocks);
    tlsf->free_blocks--;
}

static int reserve_blocks(struct bw_tlsf *tlsf, uint32_t extra)
{
    uint64_t wanted = (uint64_t)tlsf->block_count + extra;
    if (wanted <= tlsf->block_capacity)
        return 0;
    wanted = wanted < 16 ? 16 : wanted * 2;
    if (wanted > UINT32_MAX)
        return -ENOMEM;
    struct block *grown = realloc(tlsf->blocks, (size_t)wanted * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    tlsf->blocks = grown;
    tlsf->block_capacity = (uint32_t)wanted;
    return 0;
}

/* Room must have been reserved. */
static uint32_t new_block(struct bw_tlsf *tlsf, uint64_t start, uint64_t size)
{
    uint32_t link = tlsf->spare;
    if (link) {
        tlsf->spare = block_at(tlsf, link)->next;
    } else {
        assert(tlsf->block_count < tlsf->block_capacity);
        link = ++tlsf->block_count;
    }
    *block_at(tlsf, link) = (struct block){.start = start, .size = size};
    return link;
}

static void drop_block(struct bw_tlsf *tlsf, uint32_t link)
{
    *block_at(tlsf, link) = (struct block){.next = tlsf->spare};
    tlsf->spare = link;
}

int bw_tlsf_create(uint64_t granule_bytes, struct bw_tlsf **tlsf)
{
    assert(bw_is_pow2(granule_bytes));
    *tlsf = calloc(1, sizeof **tlsf);
    if (!*tlsf)
        return -ENOMEM;
    (*tlsf)->granule_bytes = granule_bytes;
    (*tlsf)->granule_shift = bw_log2(granule_bytes);
    return 0;
}

void bw_tlsf_destroy(struct bw_tlsf *tlsf)
{
    if (!tlsf)
        return;
    bw_map_free(&tlsf->used);
    free(tlsf->blocks);
    free(tlsf);
}

int bw_tlsf_add(struct bw_tlsf *tlsf, uint64_t start, uint64_t size_bytes)
{
    assert(size_bytes && start % tlsf->granule_bytes == 0 && size_bytes % tlsf->granule_bytes == 0);
    assert(size_bytes - 1 <= UINT64_MAX - start);
    int rc = reserve_blocks(tlsf, 1);
    if (rc)
        return rc;
    uint64_t size = size_bytes >> tlsf->granule_shift;
    list_insert(tlsf, new_block(tlsf, start >> tlsf->granule_shift, size));
    tlsf->total += size;
    return 0;
}

/* Granules to leave in front so that the rest of a block at `start` is aligned. */
static uint64_t padding_of(uint64_t start, uint64_t alignment)
{
    return (alignment - start % alignment) % alignment;
}

static bool fits(const struct block *block, uint64_t size, uint64_t alignment)
{
    uint64_t padding = padding_of(block->start, alignment);
    return block->size >= padding && block->size - padding >= size;
}

/* The first block of the first non-empty list from `list` on; 0: none. */
static uint32_t first_from(const struct bw_tlsf *tlsf, struct list list)
{
    uint32_t second = tlsf->second_map[list.first] & (UINT32_MAX << list.second);
    if (!second) {
        uint64_t rows = list.first + 1 < 64 ? tlsf->first_map & (UINT64_MAX << (list.first + 1)) : 0;
        if (!rows)
            return 0;
        list.first = (unsigned)__builtin_ctzll(rows);
        second = tlsf->second_map[list.first];
    }
    return tlsf->heads[list.first][__builtin_ctz(second)];
}

/* Looks at every free block that is big enough at all. */
static uint32_t search_all(const struct bw_tlsf *tlsf, uint64_t size, uint64_t alignment)
{
    struct list from = list_of(size);
    for (unsigned first = from.first; first < FIRST_COUNT; first++) {
        for (unsigned second = first == from.first ? from.second : 0; second < SECOND_COUNT; second++)
            for (uint32_t link = tlsf->heads[first][second]; link; link = block_at(tlsf, link)->next)
                if (fits(block_at(tlsf, link), size, alignment))
                    return link;
    }
    return 0;
}

static uint32_t search(const struct bw_tlsf *tlsf, uint64_t size, uint64_t alignment)
{
    /* Any block of this many granules fits, wherever it starts. */
    uint64_t worst = size + (alignment - 1);
    uint32_t link = worst < size ? 0 : first_from(tlsf, list_that_fits(worst));
    /* list_that_fits saturates at the top list, whose blocks need not fit. */
    if (link && fits(block_at(tlsf, link), size, alignment))
        return link;
    return search_all(tlsf, size, alignment);
}

/* Cuts `size` granules off the front of an unlisted free block; returns the front, lists the rest. */
static uint32_t split(struct bw_tlsf *tlsf, uint32_t link, uint64_t size)
{
    struct block *block = block_at(tlsf, link);
    assert(block->size > size && size);
    uint32_t rest = new_block(tlsf, block->start + size, block->size - size);
    struct block *behind = block_at(tlsf, rest);
    behind->before = link;
    behind->after = block->after;
    if (behind->after)
        block_at(tlsf, behind->after)->before = rest;
    block->after = rest;
    block->size = size;
    return rest;
}

int bw_tlsf_alloc(struct bw_tlsf *tlsf, uint64_t size_bytes, uint64_t alignment, uint64_t *start)
{
    assert(alignment == 0 || bw_is_pow2(alignment));
    if (!size_bytes || size_bytes > UINT64_MAX - (tlsf->granule_bytes - 1))
        return -EINVAL;
    uint64_t size = bw_align_up(size_bytes, tlsf->granule_bytes) >> tlsf->granule_shift;
    uint64_t step = alignment > tlsf->granule_bytes ? alignment >> tlsf->granule_shift : 1;
    uint32_t link = search(tlsf, size, step);
    if (!link || reserve_blocks(tlsf, BLOCKS_PER_ALLOC))
        return -ENOMEM;
    uint64_t at = block_at(tlsf, link)->start, padding = padding_of(at, step);
    if (bw_map_set(&tlsf->used, at + padding, link))
        return -ENOMEM;
    list_remove(tlsf, link);
    if (padding) {
        uint32_t aligned = split(tlsf, link, padding);
        list_insert(tlsf, link);
        link = aligned;
        int rc = bw_map_set(&tlsf->used, at + padding, link);
        assert(!rc); /* the key is there already */
        (void)rc;
    }
    if (block_at(tlsf, link)->size > size)
        list_insert(tlsf, split(tlsf, link, size));
    block_at(tlsf, link)->used = true;
    tlsf->used_size += size;
    *start = block_at(tlsf, link)->start << tlsf->granule_shift;
    return 0;
}

/* Joins a free, unlisted block with the one behind it when that is free; drops the latter. */
static void join_after(struct bw_tlsf *tlsf, uint32_t link)
{
    struct block *block = block_at(tlsf, link);
    uint32_t after = block->after;
    if (!after || block_at(tlsf, after)->used)
        return;
    struct block *behind = block_at(tlsf, after);
    assert(block->start + block->size == behind->start);
    list_remove(tlsf, after);
    block->size += behind->size;
    block->after = behind->after;
    if (block->after)
        block_at(tlsf, block->after)->before = link;
    drop_block(tlsf, after);
}

uint64_t bw_tlsf_free(struct bw_tlsf *tlsf, uint64_t start)
{
    uint64_t found = 0;
    bool known = bw_map_get(&tlsf->used, start >> tlsf->granule_shift, &found);
    assert(known && start % tlsf->granule_bytes == 0);
    (void)known;
    uint32_t link = (uint32_t)found;
    struct block *block = block_at(tlsf, link);
    uint64_t size = block->size;
    assert(block->used && tlsf->used_size >= size);
    bw_map_remove(&tlsf->used, block->start);
    block->used = false;
    tlsf->used_size -= size;
    join_after(tlsf, link);
    uint32_t before = block_at(tlsf, link)->before;
    if (before && !block_at(tlsf, before)->used) {
        /* Listed again with the joined size: the one in front swallows this one. */
        list_insert(tlsf, link);
        list_remove(tlsf, before);
        join_after(tlsf, before);
        link = before;
    }
    list_insert(tlsf, link);
    return size << tlsf->granule_shift;
}

uint64_t bw_tlsf_size(const struct bw_tlsf *tlsf, uint64_t start)
{
    uint64_t link = 0;
    if (start % tlsf->granule_bytes || !bw_map_get(&tlsf->used, start >> tlsf->granule_shift, &link))
        return 0;
    return block_at(tlsf, (uint32_t)link)->size << tlsf->granule_shift;
}

void bw_tlsf_stats(const struct bw_tlsf *tlsf, struct bw_tlsf_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->total_bytes = tlsf->total << tlsf->granule_shift;
    stats->used_bytes = tlsf->used_size << tlsf->granule_shift;
    stats->used_blocks = (uint32_t)tlsf->used.count;
    stats->free_blocks = tlsf->free_blocks;
    if (!tlsf->first_map)
        return;
    /* Within the topmost list sizes differ by less than 1/32. */
    unsigned first = bw_log2(tlsf->first_map);
    uint64_t largest = 0;
    for (uint32_t link = tlsf->heads[first][bw_log2(tlsf->second_map[first])]; link;
         link = block_at(tlsf, link)->next)
        largest = block_at(tlsf, link)->size > largest ? block_at(tlsf, link)->size : largest;
    stats->largest_free_bytes = largest << tlsf->granule_shift;
}

void bw_tlsf_check(const struct bw_tlsf *tlsf)
{
    uint64_t used = 0, total = 0;
    uint32_t listed = 0, used_blocks = 0;
    for (unsigned first = 0; first < FIRST_COUNT; first++) {
        assert(!(tlsf->first_map >> first & 1) == !tlsf->second_map[first]);
        for (unsigned second = 0; second < SECOND_COUNT; second++) {
            uint32_t previous = 0;
            assert(!(tlsf->second_map[first] >> second & 1) == !tlsf->heads[first][second]);
            for (uint32_t link = tlsf->heads[first][second]; link; link = block_at(tlsf, link)->next) {
                const struct block *block = block_at(tlsf, link);
                struct list list = list_of(block->size);
                assert(!block->used && block->previous == previous && list.first == first &&
                       list.second == second);
                previous = link;
                listed++;
            }
        }
    }
    assert(listed == tlsf->free_blocks);
    for (uint32_t link = 1; link <= tlsf->block_count; link++) {
        const struct block *block = block_at(tlsf, link);
        if (!block->size)
            continue;
        total += block->size;
        used += block->used ? block->size : 0;
        used_blocks += block->used;
        listed -= !block->used;
        if (!block->after)
            continue;
        const struct block *behind = block_at(tlsf, block->after);
        assert(behind->before == link && behind->start == block->start + block->size);
        assert(block->used || behind->used); /* free neighbours are joined */
    }
    assert(total == tlsf->total && used == tlsf->used_size && used_blocks == tlsf->used.count && listed == 0);
}
