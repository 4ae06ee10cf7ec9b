/* Shared by compiler/tensor*.c only. Builders work on nodes; a node of 0 means an error that the ir has
 * recorded. */
#ifndef BW_COMPILER_TENSOR_INTERNAL_H
#define BW_COMPILER_TENSOR_INTERNAL_H

#include "compiler/tensor_graph.h"

static inline bw_tensor bw_tensor_of(bw_node node)
{
    return (bw_tensor){node};
}

/* Records an error and gives the failed tensor. */
#define bw_tensor_fail(graph, code, ...) bw_tensor_of(bw_ir_fail((graph)->ir, code, __VA_ARGS__))

/* Shape that NumPy broadcasting gives; false when the two do not fit. */
bool bw_shape_broadcast(const struct bw_shape *a, const struct bw_shape *b, struct bw_shape *result);
/* x broadcast to shape, as RESHAPE and EXPAND. */
bw_node bw_tensor_broadcast_node(struct bw_tensor_graph *g, bw_node x, const struct bw_shape *shape);
/* The rank-0 node whose value all elements of x have, or 0 when that is not evident (movement over CONST). */
bw_node bw_tensor_uniform_node(const struct bw_tensor_graph *g, bw_node x);
/* A scalar node expanded to a shape. */
bw_node bw_tensor_full_node(struct bw_tensor_graph *g, bw_node scalar, const struct bw_shape *shape);
/* Broadcasting application of any elementwise op. */
bw_node bw_tensor_unary_node(struct bw_tensor_graph *g, enum bw_op op, bw_node x);
bw_node bw_tensor_binary_node(struct bw_tensor_graph *g, enum bw_op op, bw_node a, bw_node b);
bw_node bw_tensor_where_node(struct bw_tensor_graph *g, bw_node condition, bw_node a, bw_node b);
/* Reduction whose result has no reduced axes when !keep; empty axes give the identity. */
bw_node bw_tensor_reduce_node(struct bw_tensor_graph *g, enum bw_op op, bw_node x, uint32_t axes_mask,
                              bool keep);

static inline int64_t bw_shape_elements(const struct bw_shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

#endif
