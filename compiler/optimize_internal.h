/* Shared by compiler/optimize*.c. */
#ifndef BW_COMPILER_OPTIMIZE_INTERNAL_H
#define BW_COMPILER_OPTIMIZE_INTERNAL_H

#include "base/vec.h"
#include "compiler/kernel.h"
#include "compiler/optimize.h"

/* A LOAD or STORE, and how its index moves with each range (by place in kernel_view.ranges). */
struct access {
    bw_node node;
    uint64_t depends;   /* ranges that index, gate or alternative contain */
    uint64_t irregular; /* ranges that the index is not linear in */
    int64_t stride[BW_KERNEL_RANGES_MAX];
    bool in_fold;
};

struct kernel_view {
    struct bw_ir *ir;
    bw_node sink;
    struct bw_kernel_ranges ranges;
    uint64_t outputs, reduces; /* sets of ranges */
    BW_VEC(struct access) loads;
    struct access store;
    uint32_t fold_count;
    int64_t reduce_points; /* of the FOLD that runs most often */
    uint32_t arithmetic;   /* elementwise nodes, a measure of the body */
};

int kernel_view_create(struct kernel_view *view, struct bw_ir *ir, bw_node sink);
void kernel_view_free(struct kernel_view *view);

/* The new kernel in the making: what each range becomes. */
struct tiling {
    struct bw_ir *ir;
    const struct kernel_view *view;
    bw_node to[BW_KERNEL_RANGES_MAX];
    uint32_t next_number;
};

void tiling_start(struct tiling *tiling, const struct kernel_view *view);
bw_node tiling_range(struct tiling *tiling, enum bw_range_kind kind, int64_t size);
/* outer * factor for `count` blocks of `factor` over `size` elements; the last block is moved down so that it
 * ends at the end, and what it shares with its neighbour is computed twice. size >= factor. */
bw_node tiling_block(struct tiling *tiling, bw_node block, int64_t factor, int64_t size);
bw_node tiling_finish(struct tiling *tiling);

/* FOLDs over range become FOLDs over (range / factor, range % factor) and, when factor does not divide its
 * size, over the rest. */
bw_node split_reduce(struct bw_ir *ir, bw_node sink, bw_node range, int64_t factor,
                     enum bw_range_kind inner_kind);
/* UNROLL and UPCAST ranges become copies with constants. */
bw_node expand_ranges(struct bw_ir *ir, bw_node sink);

#endif
