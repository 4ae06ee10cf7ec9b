/* Movement: every one is index arithmetic, nothing is copied. */
#include <errno.h>
#include <string.h>

#include "compiler/small_float.h"
#include "compiler/tensor_internal.h"

enum { BYTE_VALUES = 256 };

static const struct bw_shape *shape_of(const struct bw_tensor_graph *g, bw_tensor x)
{
    return bw_ir_shape(g->ir, x.id);
}

bw_tensor bw_tensor_reshape(struct bw_tensor_graph *g, bw_tensor x, uint32_t rank, const int64_t *dims)
{
    if (!x.id)
        return x;
    if (rank > BW_RANK_MAX)
        return bw_tensor_fail(g, -E2BIG, "reshape to rank %u (at most %d)", rank, BW_RANK_MAX);
    struct bw_shape shape = {.rank = rank};
    int64_t known = 1, elements = bw_tensor_elements(g, x);
    int inferred = -1;
    for (uint32_t i = 0; i < rank; i++) {
        shape.dims[i] = dims[i];
        if (dims[i] == -1 && inferred < 0)
            inferred = (int)i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
            return bw_tensor_fail(g, -EINVAL, "reshape to dimension %lld", (long long)dims[i]);
    }
    if (inferred >= 0) {
        if (!known || elements % known)
            return bw_tensor_fail(g, -EINVAL, "reshape of %lld elements to multiples of %lld",
                                  (long long)elements, (long long)known);
        shape.dims[inferred] = elements / known;
    }
    return bw_tensor_of(bw_ir_reshape(g->ir, x.id, &shape));
}

bw_tensor bw_tensor_permute(struct bw_tensor_graph *g, bw_tensor x, const uint32_t *axes)
{
    return bw_tensor_of(bw_ir_permute(g->ir, x.id, axes));
}

bool bw_shape_broadcast(const struct bw_shape *a, const struct bw_shape *b, struct bw_shape *result)
{
    uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
    struct bw_shape shape = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        int64_t x = i < rank - a->rank ? 1 : a->dims[i - (rank - a->rank)];
        int64_t y = i < rank - b->rank ? 1 : b->dims[i - (rank - b->rank)];
        if (x != y && x != 1 && y != 1)
            return false;
        shape.dims[i] = x == 1 ? y : x;
    }
    *result = shape;
    return true;
}

bw_node bw_tensor_broadcast_node(struct bw_tensor_graph *g, bw_node x, const struct bw_shape *shape)
{
    if (!x)
        return 0;
    const struct bw_shape *from = bw_ir_shape(g->ir, x);
    if (from->rank > shape->rank)
        return bw_ir_fail(g->ir, -EINVAL, "broadcast of rank %u to rank %u", from->rank, shape->rank);
    struct bw_shape padded = {.rank = shape->rank};
    uint32_t extra = shape->rank - from->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        padded.dims[i] = i < extra ? 1 : from->dims[i - extra];
    return bw_ir_expand(g->ir, bw_ir_reshape(g->ir, x, &padded), shape);
}

bw_tensor bw_tensor_expand(struct bw_tensor_graph *g, bw_tensor x, uint32_t rank, const int64_t *dims)
{
    struct bw_shape wanted = {.rank = rank}, result;
    if (!x.id)
        return x;
    if (rank > BW_RANK_MAX)
        return bw_tensor_fail(g, -E2BIG, "expand to rank %u (at most %d)", rank, BW_RANK_MAX);
    if (rank)
        memcpy(wanted.dims, dims, rank * sizeof *dims);
    if (!bw_shape_broadcast(shape_of(g, x), &wanted, &result))
        return bw_tensor_fail(g, -EINVAL, "expand: shapes do not fit");
    return bw_tensor_of(bw_tensor_broadcast_node(g, x.id, &result));
}

bw_tensor bw_tensor_pad(struct bw_tensor_graph *g, bw_tensor x, const int64_t *low, const int64_t *high,
                        double value)
{
    if (!x.id)
        return x;
    struct bw_shape shape = *shape_of(g, x), padded = shape;
    struct bw_bounds crop = {{0}, {0}}, bounds = {{0}, {0}};
    bool empty = false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        const int64_t far = 1ll << 44; /* beyond any axis: what follows cannot overflow */
        if (low[i] < -far || low[i] > far || high[i] < -far || high[i] > far)
            return bw_tensor_fail(g, -ERANGE, "pad of axis %u by %lld, %lld", i, (long long)low[i],
                                  (long long)high[i]);
        int64_t from = low[i] < 0 ? -low[i] : 0, to = shape.dims[i] + (high[i] < 0 ? high[i] : 0);
        bounds.low[i] = low[i] > 0 ? low[i] : 0;
        bounds.high[i] = high[i] > 0 ? high[i] : 0;
        padded.dims[i] = shape.dims[i] + low[i] + high[i];
        if (padded.dims[i] < 0)
            return bw_tensor_fail(g, -ERANGE, "pad of axis %u by %lld, %lld leaves less than nothing", i,
                                  (long long)low[i], (long long)high[i]);
        /* A crop that takes more than there is eats into the other side's padding. */
        crop.low[i] = from < shape.dims[i] ? from : shape.dims[i];
        crop.high[i] = to > crop.low[i] ? to : crop.low[i];
        empty |= crop.high[i] == crop.low[i];
    }
    bw_node fill = bw_tensor_scalar(g, bw_tensor_dtype(g, x), value).id;
    if (empty)
        return bw_tensor_of(bw_tensor_full_node(g, fill, &padded));
    return bw_tensor_of(bw_ir_pad(g->ir, bw_ir_shrink(g->ir, x.id, &crop), fill, &bounds));
}

/* Elements start, start + step, .. of each axis, as a GATHER by affine indexes. */
static bw_node stride_node(struct bw_tensor_graph *g, bw_node x, const struct bw_shape *result,
                           const int64_t *start, const int64_t *step)
{
    bw_node indexes[BW_RANK_MAX];
    for (uint32_t i = 0; i < result->rank; i++) {
        bw_node index = bw_ir_indexes(g->ir, BW_I64, result, i);
        index = bw_tensor_binary_node(g, BW_OP_MUL, index, bw_ir_const_int(g->ir, BW_I64, step[i]));
        indexes[i] = bw_tensor_binary_node(g, BW_OP_ADD, index, bw_ir_const_int(g->ir, BW_I64, start[i]));
    }
    return bw_ir_gather(g->ir, x, indexes);
}

bw_tensor bw_tensor_slice(struct bw_tensor_graph *g, bw_tensor x, const int64_t *start, const int64_t *stop,
                          const int64_t *step)
{
    if (!x.id)
        return x;
    struct bw_shape shape = *shape_of(g, x), result = shape;
    struct bw_bounds bounds = {{0}, {0}};
    uint32_t flipped = 0;
    bool strided = false, empty = false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        int64_t distance = stop[i] - start[i], unit = step[i];
        if (!unit)
            return bw_tensor_fail(g, -EINVAL, "slice of axis %u with step 0", i);
        int64_t count =
            (unit > 0) == (distance > 0) && distance ? (distance + unit + (unit > 0 ? -1 : 1)) / unit : 0;
        int64_t last = start[i] + (count - 1) * unit;
        if (count && (start[i] < 0 || start[i] >= shape.dims[i] || last < 0 || last >= shape.dims[i]))
            return bw_tensor_fail(g, -ERANGE, "slice of axis %u (size %lld) from %lld to %lld", i,
                                  (long long)shape.dims[i], (long long)start[i], (long long)last);
        result.dims[i] = count;
        empty |= !count;
        strided |= unit != 1 && unit != -1 && count > 1;
        bool backward = unit < 0 && count > 1;
        flipped |= (uint32_t)backward << i;
        bounds.low[i] = count ? (backward ? last : start[i]) : 0;
        bounds.high[i] = bounds.low[i] + count;
    }
    if (empty)
        return bw_tensor_of(
            bw_tensor_full_node(g, bw_tensor_scalar(g, bw_tensor_dtype(g, x), 0).id, &result));
    if (strided)
        return bw_tensor_of(stride_node(g, x.id, &result, start, step));
    return bw_tensor_of(bw_ir_flip(g->ir, bw_ir_shrink(g->ir, x.id, &bounds), flipped));
}

bw_tensor bw_tensor_flip(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask)
{
    for (uint32_t i = 0; x.id && i < bw_tensor_rank(g, x); i++)
        if (bw_tensor_dims(g, x)[i] <= 1)
            axes_mask &= ~(1u << i);
    return bw_tensor_of(bw_ir_flip(g->ir, x.id, axes_mask));
}

/* Two tensors along an axis: an index decides which of the two, each padded to the whole, is read. */
static bw_node concat_two(struct bw_tensor_graph *g, bw_node a, bw_node b, uint32_t axis)
{
    if (!a || !b)
        return 0;
    struct bw_shape first = *bw_ir_shape(g->ir, a), second = *bw_ir_shape(g->ir, b), whole = first;
    bool fits =
        first.rank == second.rank && axis < first.rank && bw_ir_dtype(g->ir, a) == bw_ir_dtype(g->ir, b);
    for (uint32_t i = 0; fits && i < first.rank; i++)
        fits = i == axis || first.dims[i] == second.dims[i];
    if (!fits)
        return bw_ir_fail(g->ir, -EINVAL, "concat along axis %u: dtypes or shapes do not fit", axis);
    if (!bw_shape_elements(&first) || !bw_shape_elements(&second))
        return bw_shape_elements(&first) ? a : b;
    struct bw_bounds after = {{0}, {0}}, before = {{0}, {0}};
    after.high[axis] = second.dims[axis];
    before.low[axis] = first.dims[axis];
    whole.dims[axis] += second.dims[axis];
    enum bw_dtype dtype = bw_ir_dtype(g->ir, a);
    bw_node zero =
        bw_dtype_is_float(dtype) ? bw_ir_const_float(g->ir, dtype, 0) : bw_ir_const_int(g->ir, dtype, 0);
    bw_node boundary = bw_ir_const_int(g->ir, BW_I64, first.dims[axis]);
    bw_node in_first =
        bw_tensor_binary_node(g, BW_OP_LESS, bw_ir_indexes(g->ir, BW_I64, &whole, axis), boundary);
    return bw_tensor_where_node(g, in_first, bw_ir_pad(g->ir, a, zero, &after),
                                bw_ir_pad(g->ir, b, zero, &before));
}

bw_tensor bw_tensor_concat(struct bw_tensor_graph *g, const bw_tensor *x, uint32_t count, uint32_t axis)
{
    if (!count)
        return bw_tensor_fail(g, -EINVAL, "concat of nothing");
    if (count == 1)
        return x[0];
    /* A balanced tree: an element passes through log2(count) choices. */
    bw_tensor low = bw_tensor_concat(g, x, count / 2, axis);
    bw_tensor high = bw_tensor_concat(g, x + count / 2, count - count / 2, axis);
    return bw_tensor_of(concat_two(g, low.id, high.id, axis));
}

bw_tensor bw_tensor_contiguous(struct bw_tensor_graph *g, bw_tensor x)
{
    return bw_tensor_of(bw_ir_contiguous(g->ir, x.id));
}

/* An index made non-negative and brought into [0, size), with no more arithmetic than its bounds ask for. */
static bw_node index_normalize(struct bw_tensor_graph *g, bw_node index, int64_t size)
{
    if (!index)
        return 0;
    if (!bw_dtype_is_int(bw_ir_dtype(g->ir, index)))
        return bw_ir_fail(g->ir, -EINVAL, "gather by indexes of %s",
                          bw_dtype_name(bw_ir_dtype(g->ir, index)));
    index = bw_ir_cast(g->ir, BW_I64, index);
    int64_t min, max;
    bw_ir_bounds(g->ir, index, &min, &max);
    bw_node zero = bw_ir_const_int(g->ir, BW_I64, 0);
    if (min < 0) {
        bw_node wrapped = bw_tensor_binary_node(g, BW_OP_ADD, index, bw_ir_const_int(g->ir, BW_I64, size));
        index = bw_tensor_where_node(g, bw_tensor_binary_node(g, BW_OP_LESS, index, zero), wrapped, index);
        index = bw_tensor_binary_node(g, BW_OP_MAX, index, zero);
    }
    return max < size ? index
                      : bw_tensor_binary_node(g, BW_OP_MIN, index, bw_ir_const_int(g->ir, BW_I64, size - 1));
}

bw_tensor bw_tensor_gather_nd(struct bw_tensor_graph *g, bw_tensor data, const bw_tensor *indexes)
{
    if (!data.id)
        return data;
    struct bw_shape from = *shape_of(g, data), result = {0};
    bw_node normalized[BW_RANK_MAX];
    if (!from.rank)
        return data;
    for (uint32_t i = 0; i < from.rank; i++) {
        if (!indexes[i].id)
            return indexes[i];
        if (!bw_shape_broadcast(&result, shape_of(g, indexes[i]), &result))
            return bw_tensor_fail(g, -EINVAL, "gather: shapes of the indexes do not fit");
    }
    if (!bw_shape_elements(&result))
        return bw_tensor_of(
            bw_tensor_full_node(g, bw_tensor_scalar(g, bw_tensor_dtype(g, data), 0).id, &result));
    if (!bw_shape_elements(&from))
        return bw_tensor_fail(g, -ERANGE, "gather from an empty tensor");
    for (uint32_t i = 0; i < from.rank; i++)
        normalized[i] = bw_tensor_broadcast_node(g, index_normalize(g, indexes[i].id, from.dims[i]), &result);
    return bw_tensor_of(bw_ir_gather(g->ir, data.id, normalized));
}

bw_tensor bw_tensor_decode(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor bytes)
{
    float values[BYTE_VALUES];
    int64_t dims[] = {BYTE_VALUES};
    if (!bw_small_float(dtype) || !bytes.id) /* the bytes of integers are integers already */
        return bytes;
    for (unsigned i = 0; i < BYTE_VALUES; i++)
        values[i] = (float)bw_dtype_storage_value(dtype, (uint8_t)i);
    bw_tensor index = bw_tensor_cast(g, BW_I64, bytes);
    return bw_tensor_gather_nd(g, bw_tensor_constant(g, BW_F32, 1, dims, values), &index);
}
