/* Reductions, and what is made of them: means, argmax, softmax, running sums, matrix products. */
#include <errno.h>

#include "compiler/tensor_internal.h"

static bool is_narrow_float(enum bw_dtype dtype)
{
    return dtype == BW_F16 || dtype == BW_BF16;
}

static bw_node drop_axes(struct bw_tensor_graph *g, bw_node x, uint32_t axes_mask)
{
    struct bw_shape shape = *bw_ir_shape(g->ir, x), kept = {0};
    for (uint32_t i = 0; i < shape.rank; i++)
        if (!(axes_mask >> i & 1))
            kept.dims[kept.rank++] = shape.dims[i];
    return bw_ir_reshape(g->ir, x, &kept);
}

bw_node bw_tensor_reduce_node(struct bw_tensor_graph *g, enum bw_op op, bw_node x, uint32_t axes_mask,
                              bool keep)
{
    if (!x)
        return 0;
    struct bw_shape shape = *bw_ir_shape(g->ir, x), result = shape;
    if (axes_mask >> shape.rank)
        return bw_ir_fail(g->ir, -ERANGE, "reduction over axes 0x%x of rank %u", axes_mask, shape.rank);
    uint32_t real_axes = 0; /* those of size 1 need no reduction */
    bool empty = false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (!(axes_mask >> i & 1))
            continue;
        empty |= shape.dims[i] == 0;
        real_axes |= shape.dims[i] != 1 ? 1u << i : 0;
        result.dims[i] = 1;
    }
    if (empty)
        x = bw_tensor_full_node(g, bw_ir_reduce_identity(g->ir, op, bw_ir_dtype(g->ir, x)), &result);
    else if (bw_shape_elements(&shape) && real_axes)
        x = bw_ir_reduce(g->ir, op, x, real_axes);
    else if (!bw_shape_elements(&shape))
        x = bw_tensor_full_node(g, bw_ir_reduce_identity(g->ir, op, bw_ir_dtype(g->ir, x)), &result);
    return keep || !x ? x : drop_axes(g, x, axes_mask);
}

/* Sums and products of f16 and bf16 accumulate in f32. */
static bw_tensor accumulate(struct bw_tensor_graph *g, enum bw_op op, bw_tensor x, uint32_t axes_mask,
                            bool keep)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (!is_narrow_float(dtype))
        return bw_tensor_of(bw_tensor_reduce_node(g, op, x.id, axes_mask, keep));
    bw_tensor wide = bw_tensor_cast(g, BW_F32, x);
    return bw_tensor_cast(g, dtype, bw_tensor_of(bw_tensor_reduce_node(g, op, wide.id, axes_mask, keep)));
}

bw_tensor bw_tensor_sum(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep)
{
    return accumulate(g, BW_OP_ADD, x, axes_mask, keep);
}

bw_tensor bw_tensor_prod(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep)
{
    return accumulate(g, BW_OP_MUL, x, axes_mask, keep);
}

bw_tensor bw_tensor_reduce_max(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep)
{
    return bw_tensor_of(bw_tensor_reduce_node(g, BW_OP_MAX, x.id, axes_mask, keep));
}

bw_tensor bw_tensor_reduce_min(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep)
{
    return bw_tensor_of(bw_tensor_reduce_node(g, BW_OP_MIN, x.id, axes_mask, keep));
}

static int64_t axes_elements(const struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < bw_tensor_rank(g, x); i++)
        elements *= axes_mask >> i & 1 ? bw_tensor_dims(g, x)[i] : 1;
    return elements;
}

bw_tensor bw_tensor_mean(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    int64_t count = axes_elements(g, x, axes_mask);
    if (!is_narrow_float(dtype))
        return bw_tensor_div(g, bw_tensor_sum(g, x, axes_mask, keep),
                             bw_tensor_scalar(g, dtype, (double)count));
    bw_tensor sum = bw_tensor_sum(g, bw_tensor_cast(g, BW_F32, x), axes_mask, keep);
    return bw_tensor_cast(g, dtype, bw_tensor_div(g, sum, bw_tensor_scalar(g, BW_F32, (double)count)));
}

bw_tensor bw_tensor_argmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool keep, bool last_index)
{
    if (!x.id)
        return x;
    struct bw_shape shape = *bw_ir_shape(g->ir, x.id);
    if (axis >= shape.rank || !shape.dims[axis])
        return bw_tensor_fail(g, -ERANGE, "argmax along axis %u of rank %u", axis, shape.rank);
    uint32_t mask = 1u << axis;
    bw_tensor chosen = bw_tensor_equal(g, x, bw_tensor_reduce_max(g, x, mask, true));
    if (bw_dtype_is_float(bw_tensor_dtype(g, x))) /* a NaN counts as the largest */
        chosen = bw_tensor_or(g, chosen, bw_tensor_is_nan(g, x));
    bw_tensor index = bw_tensor_indexes(g, BW_I64, shape.rank, shape.dims, axis);
    int64_t never = last_index ? -1 : shape.dims[axis];
    index = bw_tensor_where(g, chosen, index, bw_tensor_scalar_int(g, BW_I64, never));
    return last_index ? bw_tensor_reduce_max(g, index, mask, keep)
                      : bw_tensor_reduce_min(g, index, mask, keep);
}

bw_tensor bw_tensor_softmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (is_narrow_float(dtype))
        return bw_tensor_cast(g, dtype, bw_tensor_softmax(g, bw_tensor_cast(g, BW_F32, x), axes_mask));
    bw_tensor e = bw_tensor_exp(g, bw_tensor_sub(g, x, bw_tensor_reduce_max(g, x, axes_mask, true)));
    return bw_tensor_div(g, e, bw_tensor_sum(g, e, axes_mask, true));
}

bw_tensor bw_tensor_log_softmax(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (is_narrow_float(dtype))
        return bw_tensor_cast(g, dtype, bw_tensor_log_softmax(g, bw_tensor_cast(g, BW_F32, x), axes_mask));
    bw_tensor shifted = bw_tensor_sub(g, x, bw_tensor_reduce_max(g, x, axes_mask, true));
    bw_tensor sum = bw_tensor_sum(g, bw_tensor_exp(g, shifted), axes_mask, true);
    return bw_tensor_sub(g, shifted, bw_tensor_log(g, sum));
}

/* out[i] = sum of x[j], j <= i (j < i): a masked reduction, n^2 / 2 additions for n elements along the axis.
 */
static bw_tensor cumsum_masked(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool exclusive)
{
    struct bw_shape shape = *bw_ir_shape(g->ir, x.id), square = shape;
    if (shape.rank >= BW_RANK_MAX)
        return bw_tensor_fail(g, -E2BIG, "running sum of rank %u", shape.rank);
    /* [.., out, in, ..] */
    square.rank++;
    for (uint32_t i = square.rank - 1; i > axis; i--)
        square.dims[i] = shape.dims[i - 1];
    struct bw_shape column = square;
    column.dims[axis] = 1;
    bw_tensor spread = bw_tensor_reshape(g, x, column.rank, column.dims);
    bw_tensor out = bw_tensor_indexes(g, BW_I64, square.rank, square.dims, axis);
    bw_tensor in = bw_tensor_indexes(g, BW_I64, square.rank, square.dims, axis + 1);
    bw_tensor counted = exclusive ? bw_tensor_less(g, in, out) : bw_tensor_less_equal(g, in, out);
    bw_tensor zero = bw_tensor_scalar(g, bw_tensor_dtype(g, x), 0);
    return bw_tensor_sum(g, bw_tensor_where(g, counted, spread, zero), 1u << (axis + 1), false);
}

/* Long axes in two levels: running sums within blocks, plus the running sum of the blocks' totals. */
static bw_tensor cumsum_forward(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool exclusive)
{
    enum { MASKED_MAX = 128, BLOCK = 64 };
    if (!x.id)
        return x;
    struct bw_shape shape = *bw_ir_shape(g->ir, x.id), blocks = shape;
    int64_t size = shape.dims[axis], zero[BW_RANK_MAX] = {0}, tail[BW_RANK_MAX] = {0};
    if (size <= MASKED_MAX || shape.rank + 2 > BW_RANK_MAX)
        return cumsum_masked(g, x, axis, exclusive);
    int64_t block_count = (size + BLOCK - 1) / BLOCK;
    tail[axis] = block_count * BLOCK - size;
    blocks.rank++;
    for (uint32_t i = blocks.rank - 1; i > axis; i--)
        blocks.dims[i] = shape.dims[i - 1];
    blocks.dims[axis] = block_count;
    blocks.dims[axis + 1] = BLOCK;
    bw_tensor split = bw_tensor_reshape(g, bw_tensor_pad(g, x, zero, tail, 0), blocks.rank, blocks.dims);
    bw_tensor within = cumsum_masked(g, split, axis + 1, exclusive);
    bw_tensor before = cumsum_forward(g, bw_tensor_sum(g, split, 1u << (axis + 1), true), axis, true);
    shape.dims[axis] = block_count * BLOCK;
    bw_tensor joined = bw_tensor_reshape(g, bw_tensor_add(g, within, before), shape.rank, shape.dims);
    tail[axis] = -tail[axis];
    return bw_tensor_pad(g, joined, zero, tail, 0);
}

bw_tensor bw_tensor_cumsum(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, bool exclusive,
                           bool reverse)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (!x.id)
        return x;
    if (axis >= bw_tensor_rank(g, x))
        return bw_tensor_fail(g, -ERANGE, "running sum along axis %u of rank %u", axis, bw_tensor_rank(g, x));
    bw_tensor wide = is_narrow_float(dtype) ? bw_tensor_cast(g, BW_F32, x) : x;
    uint32_t mask = 1u << axis;
    if (reverse)
        wide = bw_tensor_flip(g, wide, mask);
    wide = cumsum_forward(g, wide, axis, exclusive);
    return bw_tensor_cast(g, dtype, reverse ? bw_tensor_flip(g, wide, mask) : wide);
}

/* a [.., m, k] and b [.., k, n]: [.., m, 1, k] times [.., 1, n, k], summed over k. */
static bw_tensor matmul_matrices(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    struct bw_shape left = *bw_ir_shape(g->ir, a.id), right = *bw_ir_shape(g->ir, b.id);
    if (left.rank >= BW_RANK_MAX || right.rank >= BW_RANK_MAX)
        return bw_tensor_fail(g, -E2BIG, "matrix product of rank %u and %u", left.rank, right.rank);
    if (left.dims[left.rank - 1] != right.dims[right.rank - 2])
        return bw_tensor_fail(g, -EINVAL, "matrix product over %lld and %lld",
                              (long long)left.dims[left.rank - 1], (long long)right.dims[right.rank - 2]);
    uint32_t swapped[BW_RANK_MAX];
    for (uint32_t i = 0; i < right.rank; i++)
        swapped[i] = i;
    swapped[right.rank - 2] = right.rank - 1;
    swapped[right.rank - 1] = right.rank - 2;
    b = bw_tensor_permute(g, b, swapped);
    int64_t k = left.dims[left.rank - 1], n = right.dims[right.rank - 1];
    left.dims[left.rank - 1] = 1;
    left.dims[left.rank++] = k;
    right.dims[right.rank - 2] = 1;
    right.dims[right.rank - 1] = n;
    right.dims[right.rank++] = k;
    bw_tensor product = bw_tensor_mul(g, bw_tensor_reshape(g, a, left.rank, left.dims),
                                      bw_tensor_reshape(g, b, right.rank, right.dims));
    if (!product.id)
        return product;
    return bw_tensor_sum(g, product, 1u << (bw_tensor_rank(g, product) - 1), false);
}

static bw_tensor with_axis(struct bw_tensor_graph *g, bw_tensor x, bool first)
{
    int64_t size = bw_tensor_dims(g, x)[0], row[] = {1, size}, column[] = {size, 1};
    return bw_tensor_reshape(g, x, 2, first ? row : column);
}

bw_tensor bw_tensor_matmul(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, a);
    uint32_t left_rank = bw_tensor_rank(g, a), right_rank = bw_tensor_rank(g, b);
    if (!a.id || !b.id)
        return bw_tensor_of(0);
    if (!left_rank || !right_rank || dtype != bw_tensor_dtype(g, b))
        return bw_tensor_fail(g, -EINVAL, "matrix product of %s rank %u and %s rank %u", bw_dtype_name(dtype),
                              left_rank, bw_dtype_name(bw_tensor_dtype(g, b)), right_rank);
    if (is_narrow_float(dtype)) /* products and sums in f32, rounded once */
        return bw_tensor_cast(
            g, dtype, bw_tensor_matmul(g, bw_tensor_cast(g, BW_F32, a), bw_tensor_cast(g, BW_F32, b)));
    bw_tensor product = matmul_matrices(g, left_rank == 1 ? with_axis(g, a, true) : a,
                                        right_rank == 1 ? with_axis(g, b, false) : b);
    uint32_t rank = bw_tensor_rank(g, product), dropped = 0;
    if (!product.id)
        return product;
    if (left_rank == 1)
        dropped |= 1u << (rank - 2);
    if (right_rank == 1)
        dropped |= 1u << (rank - 1);
    return dropped ? bw_tensor_of(drop_axes(g, product.id, dropped)) : product;
}
