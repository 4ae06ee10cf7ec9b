/* Kernels: graphs that end in a SINK, on scalars of ranges. */
#ifndef BW_COMPILER_KERNEL_H
#define BW_COMPILER_KERNEL_H

#include "compiler/ir.h"

enum {
    BW_KERNEL_RANGES_MAX = 64
}; /* of one kernel; a deep chain of fused reductions has a few per reduction */

struct bw_kernel_ranges {
    bw_node list[BW_KERNEL_RANGES_MAX]; /* by number */
    int64_t sizes[BW_KERNEL_RANGES_MAX];
    uint32_t count;
};

/* The ranges of a kernel in order of their numbers; false when there are too many or one has no constant
 * size. */
bool bw_kernel_ranges(const struct bw_ir *ir, bw_node sink, struct bw_kernel_ranges *ranges);

/* A PARAM that says how many elements its buffer has at least (kept in its arg, saturating), for bounds. */
bw_node bw_kernel_param(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, bool written,
                        int64_t elements);
int64_t bw_kernel_param_elements(const struct bw_ir *ir, bw_node param); /* 0: not known */

/* Splits ranges that are divided by a factor of their size, joins ranges that are always used as one, and
 * numbers what is left densely: outputs first. Returns the new sink, or 0 after an error. */
bw_node bw_kernel_simplify(struct bw_ir *ir, bw_node sink);

/* Arithmetic operations on elements, floating point and integer alike, that the kernel's meaning takes: one
 * for each sum, product, quotient, maximum, root, power, logarithm, sine and step of a FOLD, two for a fused
 * multiply-add, none for indexes, comparisons and conversions; a value is counted once for each combination
 * of the ranges that it changes with. 2 m n k for a product of matrices, whatever the kernel does about it.
 * 0: not known (a range without a constant size, or no memory). */
double bw_kernel_flops(const struct bw_ir *ir, bw_node sink);

#endif
