/* Symbolic simplification of index arithmetic.
 *
 * Movement operations become arithmetic on ranges; what makes that cheap is that (r * 8 + s) / 8 is r and
 * that r / 8 * 8 + r % 8 is r. Builders here keep sums of i64 nodes in one canonical form (constant last,
 * terms in a fixed order), divide and compare by interval analysis, and otherwise fall through to the
 * builders of ir.h. Every rule is exact for every value that the bounds admit (fuzzed by evaluation in
 * tests/unit/compiler/symbolic_test.c). */
#ifndef BW_COMPILER_SYMBOLIC_H
#define BW_COMPILER_SYMBOLIC_H

#include "compiler/ir.h"

bw_node bw_sym_binary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b);
bw_node bw_sym_cast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x);
bw_node bw_sym_not(struct bw_ir *ir, bw_node x);

/* Shorthands for i64 index arithmetic. */
bw_node bw_sym_const(struct bw_ir *ir, int64_t value);
bw_node bw_sym_add(struct bw_ir *ir, bw_node a, bw_node b);
bw_node bw_sym_mul(struct bw_ir *ir, bw_node a, int64_t factor);
bw_node bw_sym_div(struct bw_ir *ir, bw_node a, int64_t divisor);
bw_node bw_sym_mod(struct bw_ir *ir, bw_node a, int64_t divisor);
bw_node bw_sym_less(struct bw_ir *ir, bw_node a, bw_node b);
bw_node bw_sym_and(struct bw_ir *ir, bw_node a, bw_node b);

/* A sum of products with constants: constant + factor[i] * atom[i]. Atoms are i64 nodes that are no sums. */
enum { BW_SUM_TERMS_MAX = 32 };
struct bw_sum {
    int64_t constant;
    uint32_t count;
    struct bw_sum_term {
        bw_node atom;
        int64_t factor;
    } terms[BW_SUM_TERMS_MAX];
};
/* False when node has too many terms or a factor overflows; *sum is then of no use. */
bool bw_sum_from(struct bw_ir *ir, bw_node node, struct bw_sum *sum);
bw_node bw_sum_build(struct bw_ir *ir, const struct bw_sum *sum);

#endif
