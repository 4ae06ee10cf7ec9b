/* Shape of a kernel for its target: which ranges become workgroups, work-items, register tiles, loops. */
#ifndef BW_COMPILER_OPTIMIZE_H
#define BW_COMPILER_OPTIMIZE_H

#include "compiler/codegen.h"

/* A kernel with LOOP and REDUCE ranges becomes one with GLOBAL, ITEM, LOOP and REDUCE ranges, tiles expanded.
 * Never changes a value but by the order of floating-point sums. 0 after an error recorded in ir. */
bw_node bw_optimize(struct bw_ir *ir, bw_node sink, const struct bw_target *target);

#endif
