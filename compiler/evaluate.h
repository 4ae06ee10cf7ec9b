/* The tensor evaluator: what each tensor-stage node means, computed on the host by one thread. It is the
 * oracle that code from the scheduler is checked against, so it shares nothing with it, and it folds
 * constants for the importers.
 *
 * A value is a strided view of a storage: movement copies nothing, axes along which a value does not change
 * have stride 0 and are computed once. Elementwise chains are computed in blocks (a "cone": ops on registers
 * of BW_BLOCK elements), so that the product beneath a matrix product or convolution is never stored. */
#ifndef BW_COMPILER_EVALUATE_H
#define BW_COMPILER_EVALUATE_H

#include "compiler/tensor_graph.h"

enum {
    BW_BLOCK = 512,           /* elements per register: a few registers fit the first-level cache */
    BW_CONE_OPS_MAX = 64,     /* ops of one cone */
    BW_CONE_LEAVES_MAX = 132, /* stored values that they can read: two or three per op */
};

struct bw_storage {
    uint32_t references;
    bool owned;
    uint8_t *data;
};

struct bw_view {
    struct bw_storage *storage;
    const uint8_t *data; /* the element at index 0, ..; its alignment may be less than its size */
    enum bw_dtype dtype;
    struct bw_shape shape;
    int64_t strides[BW_RANK_MAX]; /* in elements; 0 where the value does not change, negative after FLIP */
};

/* evaluate_scalar.c: op on n elements that lie one after another; n <= BW_BLOCK. `from` is the dtype of the
 * operands (of a and b for WHERE), shift counts are BW_I64, conditions one byte. CAST and BITCAST convert
 * from `from` to `to`. */
void bw_evaluate_run(enum bw_op op, enum bw_dtype from, enum bw_dtype to, int64_t n, void *out,
                     const void *const *in);
/* Folds x[0], x[1], .. into *accumulator in this order. */
void bw_evaluate_fold(enum bw_op op, enum bw_dtype dtype, int64_t n, void *accumulator, const void *x);
/* The value that starts a reduction, as one element. */
void bw_evaluate_identity(enum bw_op op, enum bw_dtype dtype, void *element);
/* accumulator[i] += a[i * a_stride] * b[i * b_stride], product and sum rounded separately. */
void bw_evaluate_multiply_add_f32(float *accumulator, const float *a, int64_t a_stride, const float *b,
                                  int64_t b_stride, int64_t n);

/* evaluate_view.c */
void bw_view_release(struct bw_view *view);
/* A row-major view of fresh storage; dims of axes in `collapsed` are stored once. -ENOMEM names the size. */
int bw_view_create(struct bw_view *view, enum bw_dtype dtype, const struct bw_shape *shape,
                   uint32_t collapsed, struct bw_err *err);
/* Axes along which the value does not change (stride 0 or size 1). */
uint32_t bw_view_collapsed(const struct bw_view *view);
int64_t bw_view_stored_elements(const struct bw_shape *shape, uint32_t collapsed);
/* The same elements with another shape, copied only where strides cannot say it. */
int bw_view_reshape(struct bw_view *result, const struct bw_view *x, const struct bw_shape *shape,
                    struct bw_err *err);
/* Row-major copy of all elements to `out`. */
void bw_view_copy(const struct bw_view *view, void *out);
/* Copies x into the box of `target` (row-major strides) that starts at `low`. */
void bw_view_copy_into(const struct bw_view *target, const int64_t *low, const struct bw_view *x);

/* Walks the elements of a view in row-major order, by blocks. */
struct bw_cursor {
    const uint8_t *at;
    uint32_t rank, element_bytes;
    int64_t dims[BW_RANK_MAX], strides[BW_RANK_MAX], index[BW_RANK_MAX]; /* strides in bytes */
};
void bw_cursor_start(struct bw_cursor *cursor, const struct bw_view *view);
/* The next n elements, one after another: in place where they lie so, else copied to `temporary` (n
 * elements). */
const void *bw_cursor_next(struct bw_cursor *cursor, int64_t n, void *temporary);
/* n elements `stride` elements apart, copied to out. */
void bw_evaluate_load(void *out, const uint8_t *data, int64_t stride, int64_t n, uint32_t element_bytes);

/* evaluate_cone.c */
struct bw_cone_op {
    enum bw_op op;
    enum bw_dtype from, to;
    uint32_t sources[3]; /* registers: leaves first, then ops */
    bool shift;          /* source 1 is a count: cast to BW_I64 first */
};
struct bw_cone {
    struct bw_shape shape;
    uint32_t leaf_count, op_count;
    const struct bw_view *leaves[BW_CONE_LEAVES_MAX];
    struct bw_cone_op ops[BW_CONE_OPS_MAX];
    enum bw_dtype dtype; /* of the last register */
    uint8_t *registers;  /* (leaf_count + op_count + 1) blocks of 8-byte elements */
};
int bw_cone_prepare(struct bw_cone *cone, struct bw_err *err);
void bw_cone_finish(struct bw_cone *cone);
/* All elements, row-major in `shape`, which has size 1 where the cone collapses. */
void bw_cone_store(struct bw_cone *cone, const struct bw_shape *stored, void *out);
/* The cone reduced over axes: out is row-major over the axes that stay and are not collapsed. */
void bw_cone_reduce(struct bw_cone *cone, enum bw_op op, uint32_t axes_mask, uint32_t collapsed, void *out);

#endif
