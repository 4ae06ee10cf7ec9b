/* The page tables of one GPU address space: one walker for every generation of MMU (mem/page_codec.h).
 *
 * The tables lie in memory that the host reaches only through a window, slowly or not at all for reads, so
 * all of them are kept in host memory, too: nothing is ever read back, and a dead GPU's tables can still be
 * looked at. A call changes that copy first, then writes what changed: new tables before the entries that
 * point to them, memory given back only after the flush that ends its use. Leaves are as large as virtual
 * and physical addresses allow, and fragments never say more than is true: what is left of a fragment or a
 * large leaf when a part of it goes away is written anew.
 *
 * Not thread safe: the owner locks. */
#ifndef BW_MEM_PAGE_TABLE_H
#define BW_MEM_PAGE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>

#include "mem/page_codec.h"

/* How the walker reaches memory and MMU. Each returns 0 or -errno with *err filled; err may be NULL. */
struct bw_page_table_ops {
    /* BW_PAGE_BYTES of VRAM aligned to its size, contents undefined; physical address as the GPU counts. */
    int (*table_alloc)(void *user, uint64_t *address, struct bw_err *err);
    void (*table_free)(void *user, uint64_t address);
    int (*write)(void *user, uint64_t address, const uint64_t *words, uint32_t count, struct bw_err *err);
    /* What was written before is in memory before anything that is written later. */
    int (*order)(void *user, struct bw_err *err);
    /* All writes are in memory and nothing uses older translations of the range any more, accesses under way
     * included. */
    int (*flush)(void *user, uint64_t va, uint64_t size_bytes, struct bw_err *err);
};

/* Physical memory in one piece. */
struct bw_page_extent {
    uint64_t address, size_bytes;
};

/* What an address is mapped to: the whole leaf. */
struct bw_page_mapping {
    uint64_t va, size_bytes, address;
    struct bw_page_attributes attributes;
    uint32_t fragment;
};

struct bw_page_table_stats {
    uint64_t mapped_bytes, leaves;
    uint32_t tables; /* the root included */
};

struct bw_page_table;

/* Makes an empty root, written and ordered. codec, ops and user stay the caller's and must outlive it. 0,
 * -ENOMEM, or what ops returned. */
int bw_page_table_create(const struct bw_page_codec *codec, const struct bw_page_table_ops *ops, void *user,
                         struct bw_page_table **table, struct bw_err *err);

/* Gives all tables back. Nothing may walk them any more. */
void bw_page_table_destroy(struct bw_page_table *table);

/* Physical address of the root. */
uint64_t bw_page_table_root(const struct bw_page_table *table);

/* Maps extents one after the other from va on. Addresses and sizes are multiples of BW_PAGE_BYTES. 0;
 * -EINVAL: not so, or a kind of memory that this MMU lacks; -ERANGE: beyond the address space or the physical
 * one; -EEXIST: some of it is mapped; -ENOMEM and what table_alloc returned: no table. After these nothing
 * has changed. What write, order or flush return leaves the tables broken: every later call but destroy and
 * find returns -EIO, since what the GPU sees is not known any more. */
int bw_page_table_map(struct bw_page_table *table, uint64_t va, const struct bw_page_extent *extents,
                      uint32_t extent_count, const struct bw_page_attributes *attributes, struct bw_err *err);

/* Any part of what is mapped, all of which must be: -ENOENT names the first hole. After 0 the memory behind
 * may be used for something else. Otherwise as bw_page_table_map; -ENOMEM only where a large leaf is to be
 * split. */
int bw_page_table_unmap(struct bw_page_table *table, uint64_t va, uint64_t size_bytes, struct bw_err *err);

/* Gives a range, all of it mapped, other attributes. Errors as of map and unmap. */
int bw_page_table_protect(struct bw_page_table *table, uint64_t va, uint64_t size_bytes,
                          const struct bw_page_attributes *attributes, struct bw_err *err);

/* False: not mapped. */
bool bw_page_table_find(const struct bw_page_table *table, uint64_t va, struct bw_page_mapping *mapping);

void bw_page_table_stats(const struct bw_page_table *table, struct bw_page_table_stats *stats);

/* For tests: asserts counts, links, and that every fragment is true. */
void bw_page_table_check(const struct bw_page_table *table);

#endif
