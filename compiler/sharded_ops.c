/* What can be done with sharded tensors: how each op's result lies, and what each rank computes. */
#include <errno.h>
#include <string.h>

#include "compiler/sharded.h"
#include "compiler/tensor_internal.h"

enum { OPERANDS_MAX = 3 };

#define FAILED(g) ((bw_sharded){(g), 0})

static struct bw_tensor_graph *tensors_of(const struct bw_sharded_graph *g, uint32_t stage, uint32_t rank)
{
    return g->stages.data[stage].graphs[rank];
}

bw_tensor bw_sharded_part(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, int64_t begin, int64_t count)
{
    int64_t start[BW_RANK_MAX] = {0}, stop[BW_RANK_MAX], step[BW_RANK_MAX];
    if (!x.id)
        return x;
    for (uint32_t i = 0; i < bw_tensor_rank(g, x); i++) {
        start[i] = i == axis ? begin : 0;
        stop[i] = i == axis ? begin + count : bw_tensor_dims(g, x)[i];
        step[i] = 1;
    }
    return bw_tensor_slice(g, x, start, stop, step);
}

/* A rank's part of what it has whole. */
static bw_tensor own_part(const struct bw_sharded_graph *g, struct bw_tensor_graph *tensors, bw_tensor x,
                          uint32_t axis, uint32_t rank)
{
    int64_t length = x.id ? bw_tensor_dims(tensors, x)[axis] : 1;
    return bw_sharded_part(tensors, x, axis, bw_sharded_begin(length, rank, g->device_count),
                           bw_sharded_count(length, rank, g->device_count));
}

/* ---- operands ---- */

/* Operands of one op, in the stage of the latest. */
struct operands {
    const char *op;
    uint32_t count, ids[OPERANDS_MAX], stage;
    struct bw_sharded_value values[OPERANDS_MAX]; /* copies: vectors move */
    struct bw_locals locals[OPERANDS_MAX];
};

static bool operands_take(struct bw_sharded_graph *g, const char *op, const bw_sharded *x, uint32_t count,
                          struct operands *operands)
{
    *operands = (struct operands){.op = op, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_sharded_value *value = bw_sharded_value_of(g, x[i], op);
        if (!value)
            return false;
        operands->values[i] = *value;
        operands->ids[i] = x[i].id;
        operands->stage = value->stage > operands->stage ? value->stage : operands->stage;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!bw_sharded_locals(g, x[i].id, operands->stage, &operands->locals[i]))
            return false;
    return true;
}

/* Cuts a replicated operand on each rank. */
static void operand_cut(struct bw_sharded_graph *g, struct operands *operands, uint32_t number, uint32_t axis)
{
    for (uint32_t rank = 0; rank < g->device_count; rank++)
        operands->locals[number].of[rank] =
            own_part(g, tensors_of(g, operands->stage, rank), operands->locals[number].of[rank], axis, rank);
}

/* ---- elementwise ---- */

typedef bw_tensor local_fn(struct bw_tensor_graph *g, const bw_tensor *x, enum bw_dtype dtype);

static bool axes_refuse(struct bw_sharded_graph *g, const char *op, int32_t a, int32_t b)
{
    (void)bw_sharded_fail(
        g, -EINVAL, "%s of tensors sharded along axis %d and axis %d of the result: reshard one", op, a, b);
    return false;
}

/* Which axis of the result is sharded. */
static bool layout_find(struct bw_sharded_graph *g, const struct operands *operands, struct bw_shape *shape,
                        int32_t *axis)
{
    *axis = BW_SHARDED_REPLICATED;
    *shape = operands->values[0].shape;
    for (uint32_t i = 1; i < operands->count; i++)
        if (!bw_shape_broadcast(shape, &operands->values[i].shape, shape)) {
            (void)bw_sharded_fail(g, -EINVAL, "%s: shapes do not fit", operands->op);
            return false;
        }
    for (uint32_t i = 0; i < operands->count; i++) {
        const struct bw_sharded_value *value = &operands->values[i];
        int32_t here = value->axis + (int32_t)(shape->rank - value->shape.rank);
        if (value->axis < 0)
            continue;
        if (*axis >= 0 && *axis != here)
            return axes_refuse(g, operands->op, *axis, here);
        *axis = here;
    }
    return true;
}

static void replicated_cut(struct bw_sharded_graph *g, struct operands *operands, uint32_t rank, int32_t axis)
{
    for (uint32_t i = 0; i < operands->count && axis >= 0; i++) {
        const struct bw_sharded_value *value = &operands->values[i];
        int32_t here = axis - (int32_t)(rank - value->shape.rank);
        if (value->axis < 0 && here >= 0 && value->shape.dims[here] > 1)
            operand_cut(g, operands, i, (uint32_t)here);
    }
}

static bw_sharded elementwise(struct bw_sharded_graph *g, const char *op, local_fn *local,
                              const bw_sharded *x, uint32_t count, enum bw_dtype dtype)
{
    struct operands operands;
    struct bw_sharded_value value = {0};
    if (!operands_take(g, op, x, count, &operands) || !layout_find(g, &operands, &value.shape, &value.axis))
        return FAILED(g);
    value.stage = operands.stage;
    replicated_cut(g, &operands, value.shape.rank, value.axis);
    for (uint32_t rank = 0; rank < g->device_count; rank++) {
        struct bw_tensor_graph *tensors = tensors_of(g, value.stage, rank);
        bw_tensor locals[OPERANDS_MAX];
        for (uint32_t i = 0; i < count; i++)
            locals[i] = operands.locals[i].of[rank];
        value.locals.of[rank] = local(tensors, locals, dtype);
    }
    value.dtype = bw_tensor_dtype(tensors_of(g, value.stage, 0), value.locals.of[0]);
    return bw_sharded_value_add(g, &value);
}

#define DEFINE(name)                                                                                  \
    static bw_tensor local_##name(struct bw_tensor_graph *g, const bw_tensor *x, enum bw_dtype dtype) \
    {                                                                                                 \
        (void)dtype;                                                                                  \
        return bw_tensor_##name(g, x[0]);                                                             \
    }                                                                                                 \
    bw_sharded bw_sharded_##name(struct bw_sharded_graph *g, bw_sharded x)                            \
    {                                                                                                 \
        return elementwise(g, #name, local_##name, &x, 1, BW_VOID);                                   \
    }
BW_TENSOR_UNARY(DEFINE)
#undef DEFINE

#define DEFINE(name)                                                                                  \
    static bw_tensor local_##name(struct bw_tensor_graph *g, const bw_tensor *x, enum bw_dtype dtype) \
    {                                                                                                 \
        (void)dtype;                                                                                  \
        return bw_tensor_##name(g, x[0], x[1]);                                                       \
    }                                                                                                 \
    bw_sharded bw_sharded_##name(struct bw_sharded_graph *g, bw_sharded a, bw_sharded b)              \
    {                                                                                                 \
        return elementwise(g, #name, local_##name, (bw_sharded[]){a, b}, 2, BW_VOID);                 \
    }
BW_TENSOR_BINARY(DEFINE)
#undef DEFINE

static bw_tensor local_where(struct bw_tensor_graph *g, const bw_tensor *x, enum bw_dtype dtype)
{
    (void)dtype;
    return bw_tensor_where(g, x[0], x[1], x[2]);
}

bw_sharded bw_sharded_where(struct bw_sharded_graph *g, bw_sharded condition, bw_sharded a, bw_sharded b)
{
    return elementwise(g, "where", local_where, (bw_sharded[]){condition, a, b}, 3, BW_VOID);
}

static bw_tensor local_cast(struct bw_tensor_graph *g, const bw_tensor *x, enum bw_dtype dtype)
{
    return bw_tensor_cast(g, dtype, x[0]);
}

bw_sharded bw_sharded_cast(struct bw_sharded_graph *g, enum bw_dtype dtype, bw_sharded x)
{
    return elementwise(g, "cast", local_cast, &x, 1, dtype);
}

/* ---- reductions ---- */

static uint64_t shape_elements(const struct bw_shape *shape)
{
    return (uint64_t)bw_shape_elements(shape);
}

/* Each rank has its share of every element: the sum (or another) of all ranks', in the next stage. */
static bw_sharded shares_reduce(struct bw_sharded_graph *g, struct bw_sharded_value value,
                                enum bw_reduction reduction)
{
    struct bw_sharded_link link = {.from_stage = value.stage,
                                   .to_stage = value.stage + 1,
                                   .sent = value.locals,
                                   .options = {.size = sizeof link.options,
                                               .kind = BW_ALL_REDUCE,
                                               .reduction = reduction,
                                               .dtype = value.dtype,
                                               .count = shape_elements(&value.shape)}};
    value.axis = BW_SHARDED_REPLICATED;
    if (!bw_sharded_link_add(g, link, &value.shape, &value.locals))
        return FAILED(g);
    value.stage++;
    return bw_sharded_value_add(g, &value);
}

struct reducer {
    const char *op;
    bw_tensor (*local)(struct bw_tensor_graph *g, bw_tensor x, uint32_t axes_mask, bool keep);
    enum bw_reduction reduction;
};

/* Shape and axis without the reduced axes. */
static void axes_drop(struct bw_sharded_value *value, uint32_t axes_mask, bool keep)
{
    struct bw_shape from = value->shape;
    int32_t axis = value->axis;
    value->shape.rank = 0;
    value->axis = BW_SHARDED_REPLICATED;
    for (uint32_t i = 0; i < from.rank; i++) {
        bool reduced = axes_mask >> i & 1;
        if (reduced && !keep)
            continue;
        if ((int32_t)i == axis && !reduced)
            value->axis = (int32_t)value->shape.rank;
        value->shape.dims[value->shape.rank++] = reduced ? 1 : from.dims[i];
    }
}

static bw_sharded reduce(struct bw_sharded_graph *g, const struct reducer *reducer, bw_sharded x,
                         uint32_t axes_mask, bool keep)
{
    struct operands operands;
    if (!operands_take(g, reducer->op, &x, 1, &operands))
        return FAILED(g);
    struct bw_sharded_value value = operands.values[0];
    if (axes_mask >> value.shape.rank)
        return bw_sharded_fail(g, -EINVAL, "%s over axes 0x%x of a tensor of %u axes", reducer->op, axes_mask,
                               value.shape.rank);
    bool shares = value.axis >= 0 && axes_mask >> value.axis & 1;
    value.source = 0;
    axes_drop(&value, axes_mask, keep);
    for (uint32_t rank = 0; rank < g->device_count; rank++)
        value.locals.of[rank] =
            reducer->local(tensors_of(g, value.stage, rank), operands.locals[0].of[rank], axes_mask, keep);
    value.dtype = bw_tensor_dtype(tensors_of(g, value.stage, 0), value.locals.of[0]);
    return shares ? shares_reduce(g, value, reducer->reduction) : bw_sharded_value_add(g, &value);
}

#define DEFINE(name, reduction)                                                                           \
    bw_sharded bw_sharded_##name(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep) \
    {                                                                                                     \
        return reduce(g, &(struct reducer){#name, bw_tensor_##name, reduction}, x, axes_mask, keep);      \
    }
DEFINE(sum, BW_REDUCE_SUM)
DEFINE(prod, BW_REDUCE_PROD)
DEFINE(reduce_max, BW_REDUCE_MAX)
DEFINE(reduce_min, BW_REDUCE_MIN)
#undef DEFINE

bw_sharded bw_sharded_mean(struct bw_sharded_graph *g, bw_sharded x, uint32_t axes_mask, bool keep)
{
    const struct bw_sharded_value *value = bw_sharded_value_of(g, x, "mean");
    double count = 1;
    if (!value)
        return FAILED(g);
    if (!bw_dtype_is_float(value->dtype))
        return bw_sharded_fail(g, -ENOTSUP, "mean of %s: of floats only", bw_dtype_name(value->dtype));
    enum bw_dtype dtype = value->dtype;
    for (uint32_t i = 0; i < value->shape.rank; i++)
        count *= axes_mask >> i & 1 ? (double)value->shape.dims[i] : 1;
    bw_sharded sum = bw_sharded_sum(g, x, axes_mask, keep);
    return bw_sharded_div(g, sum, bw_sharded_scalar(g, dtype, count));
}

/* ---- matmul ---- */

/* What a matmul does with the axes of its operands: k is summed, and each other one is an axis of the result.
 */
static int32_t result_axis(const struct operands *operands, uint32_t number, uint32_t rank)
{
    const struct bw_sharded_value *value = &operands->values[number];
    return value->axis + (int32_t)(rank - value->shape.rank);
}

static bool is_summed(const struct operands *operands, uint32_t number)
{
    const struct bw_sharded_value *value = &operands->values[number];
    return value->axis >= 0 && (uint32_t)value->axis == value->shape.rank - (number ? 2 : 1);
}

static bool matmul_shape(struct bw_sharded_graph *g, const struct operands *operands, struct bw_shape *shape)
{
    struct bw_shape a = operands->values[0].shape, b = operands->values[1].shape;
    if (a.rank < 2 || b.rank < 2) {
        (void)bw_sharded_fail(g, -ENOTSUP, "matmul of %u and %u axes: of two or more", a.rank, b.rank);
        return false;
    }
    int64_t columns = b.dims[b.rank - 1], rows = a.dims[a.rank - 2];
    bool fits = a.dims[a.rank - 1] == b.dims[b.rank - 2];
    a.dims[a.rank - 1] = a.dims[a.rank - 2] = b.dims[b.rank - 1] = b.dims[b.rank - 2] = 1;
    if (!fits || !bw_shape_broadcast(&a, &b, shape)) {
        (void)bw_sharded_fail(g, -EINVAL, "matmul: shapes do not fit");
        return false;
    }
    shape->dims[shape->rank - 2] = rows;
    shape->dims[shape->rank - 1] = columns;
    return true;
}

/* Cuts the other operand where a leading axis is sharded. */
static void leading_cut(struct bw_sharded_graph *g, struct operands *operands, uint32_t rank, int32_t axis)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct bw_sharded_value *value = &operands->values[i];
        int32_t here = axis - (int32_t)(rank - value->shape.rank);
        if (value->axis < 0 && axis < (int32_t)rank - 2 && here >= 0 && value->shape.dims[here] > 1)
            operand_cut(g, operands, i, (uint32_t)here);
    }
}

static bool matmul_layout(struct bw_sharded_graph *g, struct operands *operands,
                          struct bw_sharded_value *value, bool *shares)
{
    value->axis = BW_SHARDED_REPLICATED;
    *shares = is_summed(operands, 0) || is_summed(operands, 1);
    for (uint32_t i = 0; i < 2; i++) {
        if (operands->values[i].axis < 0) {
            if (*shares)
                operand_cut(g, operands, i, operands->values[i].shape.rank - (i ? 2 : 1));
            continue;
        }
        if (*shares && !is_summed(operands, i)) {
            (void)bw_sharded_fail(g, -EINVAL,
                                  "matmul: one operand is sharded along what is summed, the other along "
                                  "axis %d: reshard one",
                                  operands->values[i].axis);
            return false;
        }
        int32_t here = *shares ? BW_SHARDED_REPLICATED : result_axis(operands, i, value->shape.rank);
        if (value->axis >= 0 && value->axis != here)
            return axes_refuse(g, "matmul", value->axis, here);
        value->axis = here;
    }
    if (value->axis >= 0)
        leading_cut(g, operands, value->shape.rank, value->axis);
    return true;
}

bw_sharded bw_sharded_matmul(struct bw_sharded_graph *g, bw_sharded a, bw_sharded b)
{
    struct operands operands;
    struct bw_sharded_value value = {0};
    bool shares;
    if (!operands_take(g, "matmul", (bw_sharded[]){a, b}, 2, &operands) ||
        !matmul_shape(g, &operands, &value.shape) || !matmul_layout(g, &operands, &value, &shares))
        return FAILED(g);
    value.stage = operands.stage;
    for (uint32_t rank = 0; rank < g->device_count; rank++)
        value.locals.of[rank] = bw_tensor_matmul(tensors_of(g, value.stage, rank),
                                                 operands.locals[0].of[rank], operands.locals[1].of[rank]);
    value.dtype = bw_tensor_dtype(tensors_of(g, value.stage, 0), value.locals.of[0]);
    return shares ? shares_reduce(g, value, BW_REDUCE_SUM) : bw_sharded_value_add(g, &value);
}
