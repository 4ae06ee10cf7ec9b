/* Movement of sharded tensors, on each rank and between ranks. */
#include <errno.h>
#include <string.h>

#include "compiler/sharded.h"
#include "compiler/tensor_internal.h"

#define FAILED(g) ((bw_sharded){(g), 0})

static struct bw_tensor_graph *tensors_of(const struct bw_sharded_graph *g, uint32_t stage, uint32_t rank)
{
    return g->stages.data[stage].graphs[rank];
}

static bool value_take(struct bw_sharded_graph *g, bw_sharded x, const char *op,
                       struct bw_sharded_value *value)
{
    const struct bw_sharded_value *found = bw_sharded_value_of(g, x, op);
    if (found)
        *value = *found;
    value->source = 0;
    return found != NULL;
}

/* The shape of the whole, from what rank 0 has of it. */
static bw_sharded value_give(struct bw_sharded_graph *g, struct bw_sharded_value *value, int64_t length)
{
    struct bw_tensor_graph *tensors = tensors_of(g, value->stage, 0);
    if (value->locals.of[0].id)
        value->shape = *bw_ir_shape(tensors->ir, value->locals.of[0].id);
    if (value->axis >= 0)
        value->shape.dims[value->axis] = length;
    return bw_sharded_value_add(g, value);
}

static bw_sharded axis_refuse(struct bw_sharded_graph *g, const char *op, int32_t axis)
{
    return bw_sharded_fail(g, -ENOTSUP, "%s of axis %d, which is sharded: reshard it", op, axis);
}

/* ---- on each rank ---- */

/* The axis of the new shape that is the sharded one: as long, and after as many elements. */
static int32_t axis_follow(const struct bw_sharded_value *value, uint32_t rank, const int64_t *dims)
{
    int64_t before = 1, reached = 1;
    for (int32_t i = 0; i < value->axis; i++)
        before *= value->shape.dims[i];
    for (uint32_t i = 0; i < rank; reached *= dims[i++])
        if (reached == before && dims[i] == value->shape.dims[value->axis])
            return (int32_t)i;
    return BW_SHARDED_REPLICATED;
}

bw_sharded bw_sharded_reshape(struct bw_sharded_graph *g, bw_sharded x, uint32_t rank, const int64_t *dims)
{
    struct bw_sharded_value value = {0};
    int64_t elements = 1, local[BW_RANK_MAX], length = 0;
    if (!value_take(g, x, "reshape", &value))
        return FAILED(g);
    if (rank > BW_RANK_MAX)
        return bw_sharded_fail(g, -E2BIG, "reshape to rank %u (at most %d)", rank, BW_RANK_MAX);
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 1 || __builtin_mul_overflow(elements, dims[i], &elements))
            return bw_sharded_fail(g, -EINVAL, "reshape to dimension %lld", (long long)dims[i]);
    if (elements != bw_shape_elements(&value.shape))
        return bw_sharded_fail(g, -EINVAL, "reshape of %lld elements to %lld",
                               (long long)bw_shape_elements(&value.shape), (long long)elements);
    if (rank)
        memcpy(local, dims, rank * sizeof *dims);
    if (value.axis >= 0) {
        int32_t axis = axis_follow(&value, rank, dims);
        if (axis < 0)
            return axis_refuse(g, "reshape", value.axis);
        value.axis = axis;
        length = dims[axis];
    }
    for (uint32_t i = 0; i < g->device_count; i++) {
        if (value.axis >= 0)
            local[value.axis] = bw_sharded_count(length, i, g->device_count);
        value.locals.of[i] =
            bw_tensor_reshape(tensors_of(g, value.stage, i), value.locals.of[i], rank, local);
    }
    return value_give(g, &value, length);
}

bw_sharded bw_sharded_permute(struct bw_sharded_graph *g, bw_sharded x, const uint32_t *axes)
{
    struct bw_sharded_value value = {0};
    if (!value_take(g, x, "permute", &value))
        return FAILED(g);
    int64_t length = value.axis >= 0 ? value.shape.dims[value.axis] : 0;
    for (uint32_t i = 0; i < g->device_count; i++)
        value.locals.of[i] = bw_tensor_permute(tensors_of(g, value.stage, i), value.locals.of[i], axes);
    for (uint32_t i = 0; i < value.shape.rank && value.axis >= 0; i++)
        if (axes[i] == (uint32_t)value.axis) {
            value.axis = (int32_t)i;
            break;
        }
    return value_give(g, &value, length);
}

bw_sharded bw_sharded_pad(struct bw_sharded_graph *g, bw_sharded x, const int64_t *low, const int64_t *high,
                          double fill)
{
    struct bw_sharded_value value = {0};
    if (!value_take(g, x, "pad", &value))
        return FAILED(g);
    if (value.axis >= 0 && (low[value.axis] || high[value.axis]))
        return axis_refuse(g, "pad", value.axis);
    int64_t length = value.axis >= 0 ? value.shape.dims[value.axis] : 0;
    for (uint32_t i = 0; i < g->device_count; i++)
        value.locals.of[i] =
            bw_tensor_pad(tensors_of(g, value.stage, i), value.locals.of[i], low, high, fill);
    return value_give(g, &value, length);
}

bw_sharded bw_sharded_slice(struct bw_sharded_graph *g, bw_sharded x, const int64_t *start,
                            const int64_t *stop, const int64_t *step)
{
    struct bw_sharded_value value = {0};
    int64_t local_stop[BW_RANK_MAX];
    if (!value_take(g, x, "slice", &value))
        return FAILED(g);
    int32_t axis = value.axis;
    int64_t length = axis >= 0 ? value.shape.dims[axis] : 0;
    if (axis >= 0 && (start[axis] || stop[axis] != length || step[axis] != 1))
        return axis_refuse(g, "slice", axis);
    if (value.shape.rank)
        memcpy(local_stop, stop, value.shape.rank * sizeof *stop);
    for (uint32_t i = 0; i < g->device_count; i++) {
        if (axis >= 0)
            local_stop[axis] = bw_sharded_count(length, i, g->device_count);
        value.locals.of[i] =
            bw_tensor_slice(tensors_of(g, value.stage, i), value.locals.of[i], start, local_stop, step);
    }
    return value_give(g, &value, length);
}

bw_sharded bw_sharded_flip(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask)
{
    struct bw_sharded_value value = {0};
    if (!value_take(g, x, "flip", &value))
        return FAILED(g);
    if (value.axis >= 0 && axes_mask >> value.axis & 1)
        return axis_refuse(g, "flip", value.axis);
    int64_t length = value.axis >= 0 ? value.shape.dims[value.axis] : 0;
    for (uint32_t i = 0; i < g->device_count; i++)
        value.locals.of[i] = bw_tensor_flip(tensors_of(g, value.stage, i), value.locals.of[i], axes_mask);
    return value_give(g, &value, length);
}

/* ---- between ranks ---- */

/* Parts travel all equally long: shorter ones are filled up. */
static bw_tensor fill_up(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, int64_t length)
{
    int64_t low[BW_RANK_MAX] = {0}, high[BW_RANK_MAX] = {0};
    if (!x.id || bw_tensor_dims(g, x)[axis] == length)
        return x;
    high[axis] = length - bw_tensor_dims(g, x)[axis];
    return bw_tensor_pad(g, x, low, high, 0);
}

/* All parts along an axis, one after the other, each filled up: a new first axis. */
static bw_tensor stack(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, uint32_t rank_count)
{
    bw_tensor parts[BW_SHARDED_RANKS_MAX];
    int64_t dims[BW_RANK_MAX + 1] = {1}, length;
    if (!x.id)
        return x;
    uint32_t rank = bw_tensor_rank(g, x);
    memcpy(dims + 1, bw_tensor_dims(g, x), rank * sizeof *dims);
    length = dims[axis + 1];
    dims[axis + 1] = bw_sharded_count_max(length, rank_count);
    for (uint32_t i = 0; i < rank_count; i++) {
        bw_tensor part = bw_sharded_part(g, x, axis, bw_sharded_begin(length, i, rank_count),
                                         bw_sharded_count(length, i, rank_count));
        parts[i] = bw_tensor_reshape(g, fill_up(g, part, axis, dims[axis + 1]), rank + 1, dims);
    }
    return bw_tensor_concat(g, parts, rank_count, 0);
}

/* The other way: the whole along an axis, of `length` elements. */
static bw_tensor unstack(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, int64_t length,
                         uint32_t rank_count)
{
    bw_tensor parts[BW_SHARDED_RANKS_MAX];
    int64_t dims[BW_RANK_MAX];
    if (!x.id)
        return x;
    uint32_t rank = bw_tensor_rank(g, x) - 1;
    memcpy(dims, bw_tensor_dims(g, x) + 1, rank * sizeof *dims);
    for (uint32_t i = 0; i < rank_count; i++) {
        bw_tensor part = bw_tensor_reshape(g, bw_sharded_part(g, x, 0, i, 1), rank, dims);
        parts[i] = bw_sharded_part(g, part, axis, 0, bw_sharded_count(length, i, rank_count));
    }
    return bw_tensor_concat(g, parts, rank_count, axis);
}

static struct bw_sharded_link link_of(const struct bw_sharded_value *value, enum bw_collective_kind kind)
{
    struct bw_sharded_link link = {.from_stage = value->stage, .to_stage = value->stage + 1};
    link.options =
        (struct bw_collective_options){.size = sizeof link.options, .kind = kind, .dtype = value->dtype};
    return link;
}

/* What arrives on each rank: one of these from each. */
static bool exchange(struct bw_sharded_graph *g, struct bw_sharded_link *link, const struct bw_shape *one,
                     struct bw_locals *locals)
{
    struct bw_shape received = {.rank = one->rank + 1, .dims = {g->device_count}};
    if (received.rank > BW_RANK_MAX) {
        (void)bw_sharded_fail(g, -E2BIG, "reshard of %u axes (at most %d)", one->rank, BW_RANK_MAX - 1);
        return false;
    }
    memcpy(received.dims + 1, one->dims, one->rank * sizeof *one->dims);
    link->options.count = (uint64_t)bw_shape_elements(one);
    return bw_sharded_link_add(g, *link, &received, locals);
}

static bw_sharded gather(struct bw_sharded_graph *g, struct bw_sharded_value value)
{
    struct bw_sharded_link link = link_of(&value, BW_ALL_GATHER);
    uint32_t axis = (uint32_t)value.axis;
    struct bw_shape one = value.shape;
    one.dims[axis] = bw_sharded_count_max(one.dims[axis], g->device_count);
    for (uint32_t i = 0; i < g->device_count; i++)
        link.sent.of[i] = fill_up(tensors_of(g, value.stage, i), value.locals.of[i], axis, one.dims[axis]);
    if (!exchange(g, &link, &one, &value.locals))
        return FAILED(g);
    value.stage++;
    value.axis = BW_SHARDED_REPLICATED;
    for (uint32_t i = 0; i < g->device_count; i++)
        value.locals.of[i] = unstack(tensors_of(g, value.stage, i), value.locals.of[i], axis,
                                     value.shape.dims[axis], g->device_count);
    return bw_sharded_value_add(g, &value);
}

static bw_sharded turn(struct bw_sharded_graph *g, struct bw_sharded_value value, uint32_t to)
{
    struct bw_sharded_link link = link_of(&value, BW_ALL_TO_ALL);
    uint32_t from = (uint32_t)value.axis, count = g->device_count;
    struct bw_shape one = value.shape;
    one.dims[from] = bw_sharded_count_max(one.dims[from], count);
    one.dims[to] = bw_sharded_count_max(one.dims[to], count);
    if (one.rank == BW_RANK_MAX)
        return bw_sharded_fail(g, -E2BIG, "reshard of %u axes (at most %d)", one.rank, BW_RANK_MAX - 1);
    for (uint32_t i = 0; i < count; i++) {
        struct bw_tensor_graph *tensors = tensors_of(g, value.stage, i);
        link.sent.of[i] =
            stack(tensors, fill_up(tensors, value.locals.of[i], from, one.dims[from]), to, count);
    }
    if (!exchange(g, &link, &one, &value.locals))
        return FAILED(g);
    value.stage++;
    value.axis = (int32_t)to;
    for (uint32_t i = 0; i < count; i++) {
        struct bw_tensor_graph *tensors = tensors_of(g, value.stage, i);
        bw_tensor whole = unstack(tensors, value.locals.of[i], from, value.shape.dims[from], count);
        value.locals.of[i] =
            bw_sharded_part(tensors, whole, to, 0, bw_sharded_count(value.shape.dims[to], i, count));
    }
    return bw_sharded_value_add(g, &value);
}

bw_sharded bw_sharded_reshard(struct bw_sharded_graph *g, bw_sharded x, int32_t axis)
{
    struct bw_sharded_value value = {0};
    if (!value_take(g, x, "reshard", &value) || !bw_sharded_axis_check(g, &value.shape, &axis, "reshard"))
        return FAILED(g);
    if (axis == value.axis)
        return x;
    if (axis < 0)
        return gather(g, value);
    if (value.axis >= 0)
        return turn(g, value, (uint32_t)axis);
    int64_t length = value.shape.dims[axis];
    value.axis = axis;
    for (uint32_t i = 0; i < g->device_count; i++)
        value.locals.of[i] = bw_sharded_part(tensors_of(g, value.stage, i), value.locals.of[i],
                                             (uint32_t)axis, bw_sharded_begin(length, i, g->device_count),
                                             bw_sharded_count(length, i, g->device_count));
    return bw_sharded_value_add(g, &value);
}
