/* Inside of struct bw_ir, for compiler/ir*.c only. */
#ifndef BW_COMPILER_IR_INTERNAL_H
#define BW_COMPILER_IR_INTERNAL_H

#include "base/arena.h"
#include "base/vec.h"
#include "compiler/ir.h"

struct bw_ir_node {
    uint8_t op, dtype;
    uint16_t source_count;
    uint32_t source_offset; /* into sources */
    uint64_t arg;
    uint32_t shape;   /* blob of a struct bw_shape cut to its rank */
    int64_t min, max; /* bounds of an integer node, set when it is made; see ir_bounds.c */
};

struct bw_ir_blob_row {
    void *data;
    uint32_t size_bytes;
};

struct bw_ir {
    struct bw_arena arena;
    BW_VEC(struct bw_ir_node) nodes;
    BW_VEC(bw_node) sources;
    BW_VEC(struct bw_ir_blob_row) blobs;
    BW_VEC(const struct bw_shape *)
    shapes;                            /* by blob number, full-size copies; NULL when that blob is no shape */
    BW_VEC(struct bw_key) keys;        /* by node, computed on demand */
    uint32_t *node_table, *blob_table; /* open addressing; 0 = empty */
    uint32_t node_table_size, blob_table_size;
    struct bw_err err;
};

/* Shape of the node about to be made: 0 and *shape, or a recorded error. compiler/ir_shape.c */
int bw_ir_shape_derive(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, uint64_t arg,
                       const bw_node *sources, uint32_t source_count, struct bw_shape *shape);
/* Constant folding and identities for elementwise nodes; 0 when nothing applies. compiler/ir_fold.c */
bw_node bw_ir_fold_elementwise(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, const bw_node *sources,
                               uint32_t source_count);
/* Bounds of the node at hand from those of its sources, so that no analysis ever walks a graph.
 * compiler/ir_bounds.c */
void bw_ir_bounds_derive(struct bw_ir *ir, bw_node node);
uint64_t bw_ir_shape_blob(struct bw_ir *ir, const struct bw_shape *shape);

#endif
