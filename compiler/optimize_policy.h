/* Policies of compiler/optimize*.c. */
#ifndef BW_COMPILER_OPTIMIZE_POLICY_H
#define BW_COMPILER_OPTIMIZE_POLICY_H

#include "compiler/optimize_internal.h"

static inline int64_t bw_div_up_i64(int64_t value, int64_t divisor)
{
    return (value + divisor - 1) / divisor;
}

/* The tile of a range of that size, at most `most`, that wastes little in its last block. */
int64_t best_block(int64_t size, int64_t most);
/* The output range along which most loads inside FOLDs stay the same; -1 when there is none. */
int find_reuse_range(const struct kernel_view *view, uint64_t exclude);
/* The output range whose steps are neighbours in memory; -1 when there is none. */
int find_contiguous_output(const struct kernel_view *view);
/* Unrolls reduction loops from the innermost outwards, until the body has grown by `budget`. */
bw_node unroll_reductions(struct bw_ir *ir, bw_node sink, int64_t budget);

bw_node optimize_gpu(const struct kernel_view *view, const struct bw_target *target);
bw_node optimize_host(const struct kernel_view *view, const struct bw_target *target);

#endif
