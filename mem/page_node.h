/* Inside of the page-table walker: one table of the tree, in host memory, and what is done to a range of it.
 * Every function here changes the host's copy only and notes what is to be written; bw_page_table_finish,
 * _commit or _rollback end a change. Addresses are virtual; [va, end) lies in the address space. */
#ifndef BW_MEM_PAGE_NODE_H
#define BW_MEM_PAGE_NODE_H

#include "mem/page_table.h"

/* One table. No table but the root is ever empty between two calls. */
struct bw_page_node {
    uint64_t address; /* physical */
    struct bw_page_node *parent;
    struct bw_page_node **children; /* per entry, NULL: none; the last level has no array */
    struct bw_page_node *next_touched, *next_dead;
    uint32_t level;
    uint32_t parent_index; /* in the parent */
    uint32_t used;         /* entries that are leaves or tables */
    uint32_t dirty_first, dirty_end;
    bool touched; /* on the table's list */
    bool fresh;   /* nothing of it was written yet */
    bool dead;    /* unlinked, to be given back after the flush */
    uint64_t words[BW_PAGE_TABLE_ENTRIES_MAX];
};

struct bw_page_table {
    const struct bw_page_codec *codec;
    const struct bw_page_table_ops *ops;
    void *user;
    struct bw_page_node *root;
    struct bw_page_node *touched; /* to be written */
    struct bw_page_node *dead;    /* to be given back */
    uint64_t mapped_bytes, leaves;
    uint32_t tables;
    bool broken;
};

static inline const struct bw_page_level *bw_page_node_level(const struct bw_page_table *table,
                                                             const struct bw_page_node *node)
{
    return &table->codec->levels[node->level];
}

static inline uint32_t bw_page_node_index(const struct bw_page_table *table, const struct bw_page_node *node,
                                          uint64_t va)
{
    const struct bw_page_level *level = bw_page_node_level(table, node);
    return (uint32_t)(va >> level->shift & (((uint64_t)1 << level->index_bits) - 1));
}

/* The end of what the node that holds va covers. */
static inline uint64_t bw_page_node_end(const struct bw_page_table *table, const struct bw_page_node *node,
                                        uint64_t va)
{
    const struct bw_page_level *level = bw_page_node_level(table, node);
    unsigned shift = level->shift + level->index_bits;
    return ((va >> shift) + 1) << shift;
}

/* An empty table that nothing points to. */
int bw_page_node_create(struct bw_page_table *table, uint32_t level, struct bw_page_node **node,
                        struct bw_err *err);
/* With all below; the memory is given back at once. */
void bw_page_node_destroy(struct bw_page_table *table, struct bw_page_node *node);
/* The table that an entry points to; made when the entry is empty. */
int bw_page_node_child(struct bw_page_table *table, struct bw_page_node *node, uint32_t index,
                       struct bw_page_node **child, struct bw_err *err);

/* Writes count leaves that map memory in one piece, with the fragments that are true of it. Counts nothing.
 */
void bw_page_node_leaves(struct bw_page_table *table, struct bw_page_node *node, uint32_t index,
                         uint32_t count, uint64_t address, const struct bw_page_attributes *attributes);

/* Is any (all) of the range mapped? *at: the first page that is (is not). */
bool bw_page_node_any(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                      uint64_t end, uint64_t *at);
bool bw_page_node_all(const struct bw_page_table *table, const struct bw_page_node *node, uint64_t va,
                      uint64_t end, uint64_t *at);

/* A leaf that has va inside becomes a table of leaves that say the same, down to where one begins at va. */
int bw_page_node_split(struct bw_page_table *table, struct bw_page_node *node, uint64_t va,
                       struct bw_err *err);
/* Empties what is mapped of the range; no leaf reaches over its ends. */
void bw_page_node_clear(struct bw_page_table *table, struct bw_page_node *node, uint64_t va, uint64_t end);
/* Other attributes for the range, all of it mapped; no leaf reaches over its ends. */
void bw_page_node_protect(struct bw_page_table *table, struct bw_page_node *node, uint64_t va, uint64_t end,
                          const struct bw_page_attributes *attributes);

/* Writes what was touched, new tables first. A failure breaks the tables. */
int bw_page_table_commit(struct bw_page_table *table, struct bw_err *err);
/* Commit, flush, and give back what is dead. */
int bw_page_table_finish(struct bw_page_table *table, uint64_t va, uint64_t size_bytes, struct bw_err *err);
/* Forgets what was touched: the words are again what was written before. */
void bw_page_table_rollback(struct bw_page_table *table);
/* Gives back what is dead. */
void bw_page_table_bury(struct bw_page_table *table);

#endif
