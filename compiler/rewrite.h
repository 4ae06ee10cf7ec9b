/* Rebuilding of graphs: every pass of the compiler is one walk from sources to users. */
#ifndef BW_COMPILER_REWRITE_H
#define BW_COMPILER_REWRITE_H

#include "compiler/ir.h"

/* The same node over other sources, through the simplifying builders. `to` may be `from`. */
bw_node bw_ir_rebuild(struct bw_ir *to, const struct bw_ir *from, bw_node node, const bw_node *sources);

/* The new node for `node`, whose sources have become `sources` (in `to`). Returning bw_ir_rebuild(...) keeps
 * it. */
typedef bw_node (*bw_rewrite_fn)(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                                 const bw_node *sources);

/* Rewrites roots in place: roots[i] becomes its new node. fn NULL: plain copy. Costs what the roots reach,
 * not what the ir holds. -ENOMEM or the error recorded in `to`. */
int bw_ir_rewrite(struct bw_ir *to, const struct bw_ir *from, bw_node *roots, uint32_t count,
                  bw_rewrite_fn fn, void *user);

/* Replaces nodes by nodes of the same ir. A FOLD whose range becomes an expression folds over the ranges in
 * that expression. */
bw_node bw_ir_substitute(struct bw_ir *ir, bw_node root, const bw_node *from, const bw_node *to,
                         uint32_t count);

/* Which nodes root reaches, as a malloced array of bw_ir_count entries; NULL when out of memory. */
bool *bw_ir_reachable(const struct bw_ir *ir, const bw_node *roots, uint32_t count);

#endif
