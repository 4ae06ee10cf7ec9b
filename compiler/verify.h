/* The specification of each stage, checked at its boundary. A violation is a bug of ours; it is reported,
 * with the node, and never compiled. */
#ifndef BW_COMPILER_VERIFY_H
#define BW_COMPILER_VERIFY_H

#include "compiler/linear.h"

/* A SINK of STOREs; every value a scalar of ranges; every range bound by a FOLD or an output. */
int bw_verify_kernel(const struct bw_ir *ir, bw_node sink, struct bw_err *err);
/* Every value is in the list before its users, in a loop that is still open; loops nest; accumulators are
 * declared before they are written. */
int bw_verify_linear(const struct bw_linear *linear, struct bw_err *err);

#endif
