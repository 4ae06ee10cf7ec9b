/* What stands behind struct bw_tensor_graph: an ir at the tensor stage, and what its BUFFER nodes are.
 *
 * A bw_tensor's id is its bw_node. The number of a BUFFER node (bw_ir_buffer_number) is an index into
 * `buffers`. */
#ifndef BW_COMPILER_TENSOR_GRAPH_H
#define BW_COMPILER_TENSOR_GRAPH_H

#include <bellwire/tensor.h>

#include "base/vec.h"
#include "compiler/ir.h"

enum bw_tensor_buffer_kind {
    BW_TENSOR_INPUT,    /* data comes with each run */
    BW_TENSOR_CONSTANT, /* data is known */
};

struct bw_tensor_buffer {
    enum bw_tensor_buffer_kind kind;
    enum bw_dtype dtype;
    bool owned; /* data is freed with the graph; borrowed data outlives graph and plans */
    struct bw_buffer
        *file;        /* a constant's bytes in a file, held; data is NULL until somebody needs it here */
    const void *data; /* row-major elements of a constant; NULL for inputs, and where size_bytes is 0. May be
                       * aligned to one byte only: mapped weights lie anywhere in their file */
    uint64_t size_bytes;
    struct bw_shape shape;
    uint32_t input_index; /* inputs only: place among the inputs, in order of creation */
    bw_node node;
};

/* What a stretch of nodes was made for, for errors: "node 'conv1' (Conv)". The bytes outlive the graph. */
struct bw_tensor_label {
    bw_node end; /* the first node that is not of it */
    const void *name, *op_type;
    uint64_t name_bytes, op_type_bytes;
};

struct bw_tensor_graph {
    struct bw_ir *ir;
    BW_VEC(struct bw_tensor_buffer) buffers; /* index = number of the BUFFER node */
    BW_VEC(uint32_t) inputs;                 /* input_index -> index in buffers */
    BW_VEC(uint8_t) depends_on_input;        /* by node; grown on demand, see bw_tensor_is_constant */
    BW_VEC(uint32_t) slots;                  /* scratch of the evaluator, by node: zero between evaluations */
    BW_VEC(struct bw_tensor_label) labels;   /* in the order of nodes; of those that nobody named, none */
};

/* Names all nodes that were made since the last label. Where there is no memory they have none. */
void bw_tensor_graph_label(struct bw_tensor_graph *g, struct bw_tensor_label label);
/* The label of a node, or NULL. */
const struct bw_tensor_label *bw_tensor_graph_label_of(const struct bw_tensor_graph *g, bw_node node);

/* What the scheduler may count on, beyond the comments of ir.h:
 *  - Windows (convolution, pooling) are GATHERs whose indexes are affine in INDEXES (o * stride + k *
 * dilation), read no memory, and are in bounds by construction. Such a GATHER is index arithmetic like any
 * movement op: fuse through it.
 *  - Matmul and convolution are REDUCE(ADD) over MUL of two views (EXPAND, PERMUTE, RESHAPE, GATHER as
 * above).
 *  - No node that an output needs has zero elements: reductions, pads and concatenations of empty tensors are
 * made constants.
 *  - Constants whose elements are all equal are an expanded CONST, never a buffer.
 *  - Concatenation is WHEREs over PADs, so a gate of INDEXES decides which source is read. */

/* The elements of a constant, read from its file when that was not done before. NULL where there are none. */
int bw_tensor_buffer_data(struct bw_tensor_graph *graph, uint32_t buffer, const void **data,
                          struct bw_err *err);

static inline bw_node bw_tensor_node(bw_tensor x)
{
    return x.id;
}

/* True when evaluation of x reads an input. */
bool bw_tensor_depends_on_input(struct bw_tensor_graph *graph, bw_node node);

/* The derivative of the sum of y's elements by each x (inputs, or what y is made of): one tensor of x's shape
 * each. -ENOTSUP names an op without a rule (gathers among them: windows and convolutions cannot be
 * differentiated yet). */
int bw_tensor_gradient(struct bw_tensor_graph *graph, bw_tensor y, const bw_tensor *x, uint32_t count,
                       bw_tensor *gradients, struct bw_err *err);

#endif
