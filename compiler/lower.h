/* Steps between a kernel graph with typed ranges and its linear form. */
#ifndef BW_COMPILER_LOWER_H
#define BW_COMPILER_LOWER_H

#include "compiler/linear.h"

/* GLOBAL and ITEM ranges become SPECIALs of the launch; sets group_count and item_count. 0 after an error. */
bw_node bw_lower_launch(struct bw_ir *ir, bw_node sink, struct bw_linear *linear);
/* Orders index sums so that what changes least is added first, and computes in i32 whatever fits. */
bw_node bw_lower_indexes(struct bw_ir *ir, bw_node sink);

#endif
