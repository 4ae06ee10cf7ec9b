/* The tensor evaluator: walks the nodes that the outputs need, in order, and keeps each value as long as
 * someone needs it. */
#include "compiler/evaluate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FUSED_OPS_MAX = 16, /* ops of a deferred chain, so that three of them and one more fit a cone */
    RECOMPUTED_ELEMENTS_MIN =
        1 << 22, /* a chain with several users is computed again only when storing it would be large */
};

struct value {
    struct bw_view view; /* of a deferred node: dtype and shape only */
    uint32_t users;      /* that have not been computed yet, outputs included */
    uint32_t collapsed;  /* axes along which the value does not change */
    uint32_t fused_ops;  /* of a deferred chain */
    bool deferred, stored_wanted;
};

struct evaluation {
    struct bw_tensor_graph *graph;
    const struct bw_ir *ir;
    const void *const *inputs;
    uint32_t input_count;
    BW_VEC(bw_node) nodes; /* those that the outputs need, ascending: sources before users */
    struct value *values;  /* one for each of them */
    struct bw_err *err;
};

/* The graph's slot table says where a node's value is: evaluation costs what the outputs need, however large
 * the graph is. */
static struct value *value_of(const struct evaluation *e, bw_node node)
{
    assert(e->graph->slots.data[node]);
    return &e->values[e->graph->slots.data[node] - 1];
}

static bool reads_elementwise(enum bw_op op)
{
    return bw_op_is_elementwise(op) || op == BW_OP_REDUCE;
}

static int node_order(const void *a, const void *b)
{
    bw_node x = *(const bw_node *)a, y = *(const bw_node *)b;
    return (x > y) - (x < y);
}

static int node_visit(struct evaluation *e, bw_node node)
{
    if (e->graph->slots.data[node])
        return 0;
    e->graph->slots.data[node] = 1; /* visited; the place comes when all are known */
    return bw_vec_push(&e->nodes, node) ? bw_fail(e->err, -ENOMEM, "evaluate", "%zu nodes", e->nodes.count)
                                        : 0;
}

static int slots_grow(struct bw_tensor_graph *g, struct bw_err *err)
{
    size_t wanted = bw_ir_count(g->ir), known = g->slots.count;
    if (bw_vec_reserve(&g->slots, wanted - known))
        return bw_fail(err, -ENOMEM, "evaluate", "%zu nodes", wanted);
    memset(g->slots.data + known, 0, (wanted - known) * sizeof *g->slots.data);
    g->slots.count = wanted;
    return 0;
}

/* Fills nodes and values with what the outputs need. */
static int collect_needed(struct evaluation *e, const bw_tensor *outputs, uint32_t count)
{
    int rc = slots_grow(e->graph, e->err);
    for (uint32_t i = 0; !rc && i < count; i++)
        rc = node_visit(e, outputs[i].id);
    for (size_t i = 0; !rc && i < e->nodes.count; i++)
        for (uint32_t s = 0; !rc && s < bw_ir_source_count(e->ir, e->nodes.data[i]); s++)
            rc = node_visit(e, bw_ir_source(e->ir, e->nodes.data[i], s));
    if (rc)
        return rc;
    qsort(e->nodes.data, e->nodes.count, sizeof *e->nodes.data, node_order);
    e->values = calloc(e->nodes.count, sizeof *e->values);
    if (!e->values)
        return bw_fail(e->err, -ENOMEM, "evaluate", "%zu nodes", e->nodes.count);
    for (size_t i = 0; i < e->nodes.count; i++)
        e->graph->slots.data[e->nodes.data[i]] = (uint32_t)i + 1;
    return 0;
}

/* By how many users each node is needed, and whether by someone who needs it stored. */
static void count_users(struct evaluation *e, const bw_tensor *outputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        value_of(e, outputs[i].id)->stored_wanted = true;
        value_of(e, outputs[i].id)->users++;
    }
    for (size_t i = 0; i < e->nodes.count; i++) {
        bw_node node = e->nodes.data[i];
        for (uint32_t s = 0; s < bw_ir_source_count(e->ir, node); s++) {
            struct value *source = value_of(e, bw_ir_source(e->ir, node, s));
            source->users++;
            source->stored_wanted |= !reads_elementwise(bw_ir_op(e->ir, node));
        }
    }
}

static void release(struct evaluation *e, bw_node node)
{
    struct value *value = value_of(e, node);
    assert(value->users);
    if (--value->users)
        return;
    if (value->deferred) /* its sources were kept for it; chains are short */
        for (uint32_t s = 0; s < bw_ir_source_count(e->ir, node); s++)
            release(e, bw_ir_source(e->ir, node, s));
    bw_view_release(&value->view);
}

/* A view of memory that is not ours. */
static int borrowed_view(struct evaluation *e, struct bw_view *view, bw_node node, const void *data)
{
    struct bw_storage *storage = calloc(1, sizeof *storage);
    if (!storage)
        return bw_fail(e->err, -ENOMEM, "evaluate", "view");
    *storage = (struct bw_storage){.references = 1, .data = (uint8_t *)(uintptr_t)data};
    *view = (struct bw_view){.storage = storage,
                             .data = data,
                             .dtype = bw_ir_dtype(e->ir, node),
                             .shape = *bw_ir_shape(e->ir, node)};
    int64_t stride = 1;
    for (uint32_t i = view->shape.rank; i-- > 0;) {
        view->strides[i] = stride;
        stride *= view->shape.dims[i];
    }
    return 0;
}

static int evaluate_buffer(struct evaluation *e, bw_node node, struct bw_view *view)
{
    uint32_t number = bw_ir_buffer_number(e->ir, node);
    if (number >= e->graph->buffers.count)
        return bw_fail(e->err, -EINVAL, "evaluate", "buffer %u does not exist", number);
    const struct bw_tensor_buffer *buffer = &e->graph->buffers.data[number];
    if (buffer->kind == BW_TENSOR_CONSTANT) {
        const void *data;
        int rc = bw_tensor_buffer_data(e->graph, number, &data, e->err);
        return rc ? rc : borrowed_view(e, view, node, data);
    }
    bool given = buffer->input_index < e->input_count && e->inputs[buffer->input_index];
    if (!given && buffer->size_bytes)
        return bw_fail(e->err, -EINVAL, "evaluate", "input %u is not given", buffer->input_index);
    return borrowed_view(e, view, node, given ? e->inputs[buffer->input_index] : NULL);
}

static int evaluate_const(struct evaluation *e, bw_node node, struct bw_view *view)
{
    struct bw_shape scalar = {0};
    int rc = bw_view_create(view, bw_ir_dtype(e->ir, node), &scalar, 0, e->err);
    if (rc)
        return rc;
    double real;
    int64_t integer;
    const void *in[3] = {&real};
    enum bw_dtype from = BW_F64;
    if (bw_ir_const_value_int(e->ir, node, &integer)) {
        in[0] = &integer;
        from = BW_I64;
    } else if (!bw_ir_const_value_float(e->ir, node, &real)) {
        return bw_fail(e->err, -EINVAL, "evaluate", "constant of %s", bw_dtype_name(view->dtype));
    }
    bw_evaluate_run(BW_OP_CAST, from, view->dtype, 1, view->storage->data, in);
    return 0;
}

static int evaluate_indexes(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    uint32_t axis = bw_ir_indexes_axis(e->ir, node), others = ((1u << shape->rank) - 1) & ~(1u << axis);
    int rc = bw_view_create(view, bw_ir_dtype(e->ir, node), shape, others, e->err);
    if (rc)
        return rc;
    for (int64_t i = 0; i < shape->dims[axis]; i++) {
        const void *in[3] = {&i};
        bw_evaluate_run(BW_OP_CAST, BW_I64, view->dtype, 1,
                        view->storage->data + i * bw_dtype_bytes(view->dtype), in);
    }
    return 0;
}

static void share(struct bw_view *view, const struct bw_view *x)
{
    *view = *x;
    if (x->storage)
        x->storage->references++;
}

static void view_permute(struct bw_view *view, const struct bw_view *x, const struct bw_axes *axes)
{
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        view->shape.dims[i] = x->shape.dims[axes->axes[i]];
        view->strides[i] = x->strides[axes->axes[i]];
    }
}

static void view_flip(struct bw_view *view, uint32_t axes_mask)
{
    for (uint32_t i = 0; i < view->shape.rank; i++) {
        if (!(axes_mask >> i & 1) || !view->shape.dims[i])
            continue;
        view->data += (view->shape.dims[i] - 1) * view->strides[i] * bw_dtype_bytes(view->dtype);
        view->strides[i] = -view->strides[i];
    }
}

static int evaluate_pad(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_view *x = &value_of(e, bw_ir_source(e->ir, node, 0))->view;
    const struct bw_view *value = &value_of(e, bw_ir_source(e->ir, node, 1))->view;
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    const struct bw_bounds *bounds = bw_ir_blob_data(e->ir, bw_ir_arg(e->ir, node));
    int rc = bw_view_create(view, x->dtype, shape, 0, e->err);
    if (rc)
        return rc;
    bw_evaluate_load(view->storage->data, value->data, 0, bw_view_stored_elements(shape, 0),
                     bw_dtype_bytes(x->dtype));
    bw_view_copy_into(view, bounds->low, x);
    return 0;
}

static int evaluate_movement(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_view *x = &value_of(e, bw_ir_source(e->ir, node, 0))->view;
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    uint64_t arg = bw_ir_arg(e->ir, node);
    enum bw_op op = bw_ir_op(e->ir, node);
    if (op == BW_OP_PAD)
        return evaluate_pad(e, node, view);
    if (op == BW_OP_RESHAPE)
        return bw_view_reshape(view, x, shape, e->err);
    share(view, x);
    if (op == BW_OP_PERMUTE) {
        view_permute(view, x, bw_ir_blob_data(e->ir, arg));
    } else if (op == BW_OP_EXPAND) {
        view->shape = *shape;
        for (uint32_t i = 0; i < shape->rank; i++)
            if (x->shape.dims[i] != shape->dims[i])
                view->strides[i] = 0;
    } else if (op == BW_OP_SHRINK) {
        const struct bw_bounds *bounds = bw_ir_blob_data(e->ir, arg);
        view->shape = *shape;
        for (uint32_t i = 0; i < shape->rank; i++)
            view->data += bounds->low[i] * view->strides[i] * bw_dtype_bytes(view->dtype);
    } else if (op == BW_OP_FLIP) {
        view_flip(view, (uint32_t)arg);
    }
    return 0;
}

/* If the index is base + sum of coefficient * position along each axis, says so. */
static bool index_is_affine(const struct bw_view *index, int64_t *base, int64_t *coefficients)
{
    struct bw_view stored = *index;
    uint32_t collapsed = bw_view_collapsed(index);
    int64_t elements = bw_view_stored_elements(&index->shape, collapsed);
    if (index->dtype != BW_I64)
        return false;
    memcpy(base, index->data, sizeof *base);
    for (uint32_t i = 0; i < index->shape.rank; i++) {
        coefficients[i] = 0;
        if (collapsed >> i & 1) {
            stored.shape.dims[i] = 1;
            continue;
        }
        int64_t second;
        memcpy(&second, index->data + index->strides[i] * 8, sizeof second);
        coefficients[i] = second - *base;
    }
    struct bw_cursor cursor;
    int64_t position[BW_RANK_MAX] = {0}, expected = *base, value, temporary;
    bw_cursor_start(&cursor, &stored);
    for (int64_t k = 0; k < elements; k++) {
        memcpy(&value, bw_cursor_next(&cursor, 1, &temporary), sizeof value);
        if (value != expected)
            return false;
        for (uint32_t i = stored.shape.rank; i-- > 0;) {
            expected += coefficients[i];
            if (++position[i] < stored.shape.dims[i])
                break;
            expected -= coefficients[i] * position[i];
            position[i] = 0;
        }
    }
    return true;
}

/* A gather whose indexes are affine is a view. */
static bool gather_as_view(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_view *data = &value_of(e, bw_ir_source(e->ir, node, 0))->view;
    struct bw_view result = *data;
    result.shape = *bw_ir_shape(e->ir, node);
    memset(result.strides, 0, sizeof result.strides);
    for (uint32_t axis = 0; axis < data->shape.rank; axis++) {
        int64_t base, coefficients[BW_RANK_MAX];
        if (!index_is_affine(&value_of(e, bw_ir_source(e->ir, node, 1 + axis))->view, &base, coefficients))
            return false;
        result.data += base * data->strides[axis] * bw_dtype_bytes(data->dtype);
        for (uint32_t i = 0; i < result.shape.rank; i++)
            result.strides[i] += coefficients[i] * data->strides[axis];
    }
    result.storage->references++;
    *view = result;
    return true;
}

static int gather_check(struct evaluation *e, bw_node node, int64_t index, int64_t size)
{
    if (index >= 0 && index < size)
        return 0;
    return bw_fail(e->err, -ERANGE, "evaluate", "node %u: gather index %lld of %lld", node, (long long)index,
                   (long long)size);
}

static int evaluate_gather(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_view *data = &value_of(e, bw_ir_source(e->ir, node, 0))->view;
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    if (bw_view_stored_elements(shape, 0) && gather_as_view(e, node, view))
        return 0;
    uint32_t collapsed = (1u << shape->rank) - 1, rank = data->shape.rank,
             bytes = bw_dtype_bytes(data->dtype);
    for (uint32_t axis = 0; axis < rank; axis++)
        collapsed &= bw_view_collapsed(&value_of(e, bw_ir_source(e->ir, node, 1 + axis))->view);
    int rc = bw_view_create(view, data->dtype, shape, collapsed, e->err);
    if (rc)
        return rc;
    struct bw_cursor cursors[BW_RANK_MAX];
    for (uint32_t axis = 0; axis < rank; axis++) {
        struct bw_view index = value_of(e, bw_ir_source(e->ir, node, 1 + axis))->view;
        for (uint32_t i = 0; i < shape->rank; i++)
            index.shape.dims[i] = collapsed >> i & 1 ? 1 : shape->dims[i];
        bw_cursor_start(&cursors[axis], &index);
    }
    int64_t elements = bw_view_stored_elements(shape, collapsed), temporary, index;
    for (int64_t k = 0; k < elements; k++) {
        const uint8_t *from = data->data;
        for (uint32_t axis = 0; axis < rank; axis++) {
            const void *in[3] = {bw_cursor_next(&cursors[axis], 1, &temporary)};
            bw_evaluate_run(BW_OP_CAST, bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, 1 + axis)), BW_I64, 1,
                            &index, in);
            rc = gather_check(e, node, index, data->shape.dims[axis]);
            if (rc)
                return rc;
            from += index * data->strides[axis] * bytes;
        }
        memcpy(view->storage->data + k * bytes, from, bytes);
    }
    return 0;
}

/* The register of a source in the cone: a leaf when it is stored, else its ops are added. */
static uint32_t cone_add(struct evaluation *e, struct bw_cone *cone, bw_node node, bw_node *leaves,
                         bw_node *ops)
{
    struct value *value = value_of(e, node);
    for (uint32_t i = 0; i < cone->leaf_count; i++)
        if (leaves[i] == node)
            return i;
    for (uint32_t i = 0; i < cone->op_count; i++)
        if (ops[i] == node)
            return BW_CONE_LEAVES_MAX + i; /* renumbered when the leaves are counted */
    if (!value->deferred) {
        leaves[cone->leaf_count] = node;
        cone->leaves[cone->leaf_count] = &value->view;
        return cone->leaf_count++;
    }
    struct bw_cone_op op = {.op = bw_ir_op(e->ir, node), .to = bw_ir_dtype(e->ir, node)};
    uint32_t count = bw_ir_source_count(e->ir, node);
    for (uint32_t s = 0; s < count; s++)
        op.sources[s] = cone_add(e, cone, bw_ir_source(e->ir, node, s), leaves, ops);
    op.from = bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, op.op == BW_OP_WHERE ? 1 : 0));
    op.shift = op.op == BW_OP_SHL || op.op == BW_OP_SHR;
    assert(cone->op_count < BW_CONE_OPS_MAX);
    ops[cone->op_count] = node;
    cone->ops[cone->op_count] = op;
    return BW_CONE_LEAVES_MAX + cone->op_count++;
}

/* The cone of a node that is treated as deferred (its value is marked so by the caller), or the one leaf that
 * it is. */
static int cone_build(struct evaluation *e, struct bw_cone *cone, bw_node node)
{
    bw_node leaves[BW_CONE_LEAVES_MAX], ops[BW_CONE_OPS_MAX];
    memset(cone, 0, sizeof *cone);
    cone->shape = *bw_ir_shape(e->ir, node);
    cone->dtype = bw_ir_dtype(e->ir, node);
    cone_add(e, cone, node, leaves, ops);
    for (uint32_t i = 0; i < cone->op_count; i++)
        for (uint32_t s = 0; s < 3; s++)
            if (cone->ops[i].sources[s] >= BW_CONE_LEAVES_MAX)
                cone->ops[i].sources[s] += cone->leaf_count - BW_CONE_LEAVES_MAX;
    return bw_cone_prepare(cone, e->err);
}

/* May the node stay a chain of ops that its users compute? */
static bool may_defer(const struct evaluation *e, bw_node node, uint32_t fused_ops)
{
    const struct value *value = value_of(e, node);
    if (value->stored_wanted || fused_ops > FUSED_OPS_MAX)
        return false;
    return value->users == 1 ||
           bw_view_stored_elements(bw_ir_shape(e->ir, node), value->collapsed) >= RECOMPUTED_ELEMENTS_MIN;
}

static int evaluate_elementwise(struct evaluation *e, bw_node node, struct bw_view *view)
{
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    struct value *value = value_of(e, node);
    uint32_t collapsed = (1u << shape->rank) - 1, fused_ops = 1;
    for (uint32_t s = 0; s < bw_ir_source_count(e->ir, node); s++) {
        const struct value *source = value_of(e, bw_ir_source(e->ir, node, s));
        collapsed &= source->deferred ? source->collapsed : bw_view_collapsed(&source->view);
        fused_ops += source->deferred ? source->fused_ops : 0;
    }
    value->collapsed = collapsed;
    value->fused_ops = fused_ops;
    value->deferred = true; /* also while its cone is built */
    if (may_defer(e, node, fused_ops))
        return 0;
    struct bw_cone *cone = malloc(sizeof *cone);
    if (!cone)
        return bw_fail(e->err, -ENOMEM, "evaluate", "cone");
    int rc = cone_build(e, cone, node);
    value->deferred = false;
    if (!rc)
        rc = bw_view_create(view, cone->dtype, shape, collapsed, e->err);
    if (!rc) {
        struct bw_shape stored = *shape;
        for (uint32_t i = 0; i < shape->rank; i++)
            stored.dims[i] = collapsed >> i & 1 ? 1 : shape->dims[i];
        /* An empty axis that collapses is still empty. */
        if (bw_view_stored_elements(shape, 0))
            bw_cone_store(cone, &stored, view->storage->data);
    }
    bw_cone_finish(cone);
    free(cone);
    return rc;
}

static int evaluate_reduce(struct evaluation *e, bw_node node, struct bw_view *view)
{
    bw_node x = bw_ir_source(e->ir, node, 0);
    const struct bw_shape *shape = bw_ir_shape(e->ir, node);
    const struct value *source = value_of(e, x);
    uint32_t axes = bw_ir_reduce_axes(e->ir, node);
    uint32_t collapsed = (source->deferred ? source->collapsed : bw_view_collapsed(&source->view)) & ~axes;
    struct bw_cone *cone = malloc(sizeof *cone);
    if (!cone)
        return bw_fail(e->err, -ENOMEM, "evaluate", "cone");
    int rc = cone_build(e, cone, x);
    if (!rc)
        rc = bw_view_create(view, cone->dtype, shape, collapsed | axes, e->err);
    if (!rc && bw_view_stored_elements(&cone->shape, 0))
        bw_cone_reduce(cone, bw_ir_reduce_op(e->ir, node), axes, collapsed, view->storage->data);
    else if (!rc && bw_view_stored_elements(shape, collapsed | axes)) {
        uint8_t identity[8];
        bw_evaluate_identity(bw_ir_reduce_op(e->ir, node), cone->dtype, identity);
        bw_evaluate_load(view->storage->data, identity, 0, bw_view_stored_elements(shape, collapsed | axes),
                         bw_dtype_bytes(cone->dtype));
    }
    bw_cone_finish(cone);
    free(cone);
    return rc;
}

static int evaluate_node(struct evaluation *e, bw_node node, struct bw_view *view)
{
    enum bw_op op = bw_ir_op(e->ir, node);
    if (bw_op_is_elementwise(op))
        return evaluate_elementwise(e, node, view);
    if (bw_op_class(op) == BW_OP_MOVEMENT)
        return evaluate_movement(e, node, view);
    switch (op) {
    case BW_OP_CONST:
        return evaluate_const(e, node, view);
    case BW_OP_BUFFER:
        return evaluate_buffer(e, node, view);
    case BW_OP_INDEXES:
        return evaluate_indexes(e, node, view);
    case BW_OP_GATHER:
        return evaluate_gather(e, node, view);
    case BW_OP_REDUCE:
        return evaluate_reduce(e, node, view);
    case BW_OP_CONTIGUOUS:
        share(view, &value_of(e, bw_ir_source(e->ir, node, 0))->view);
        return 0;
    default:
        return bw_fail(e->err, -EINVAL, "evaluate", "node %u: %s is no tensor op", node, bw_op_name(op));
    }
}

static int evaluate_all(struct evaluation *e)
{
    for (size_t i = 0; i < e->nodes.count; i++) {
        bw_node node = e->nodes.data[i];
        int rc = evaluate_node(e, node, &e->values[i].view);
        if (rc)
            return rc;
        for (uint32_t s = 0; !e->values[i].deferred && s < bw_ir_source_count(e->ir, node); s++)
            release(e, bw_ir_source(e->ir, node, s));
    }
    return 0;
}

static int outputs_copy(struct evaluation *e, const bw_tensor *x, uint32_t count, void **data)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_view *view = &value_of(e, x[i].id)->view;
        uint64_t size_bytes =
            (uint64_t)bw_view_stored_elements(&view->shape, 0) * bw_dtype_bytes(view->dtype);
        data[i] = malloc(size_bytes ? size_bytes : 1);
        if (!data[i]) {
            while (i-- > 0)
                free(data[i]);
            return bw_fail(e->err, -ENOMEM, "evaluate", "an output of %llu bytes",
                           (unsigned long long)size_bytes);
        }
        bw_view_copy(view, data[i]);
    }
    return 0;
}

int bw_tensor_evaluate_with(struct bw_tensor_graph *g, const bw_tensor *x, uint32_t count,
                            const void *const *inputs, uint32_t input_count, void **data, struct bw_err *err)
{
    struct evaluation e = {.graph = g, .ir = g->ir, .inputs = inputs, .input_count = input_count, .err = err};
    for (uint32_t i = 0; i < count; i++) {
        if (!x[i].id || x[i].id >= bw_ir_count(g->ir))
            return bw_tensor_graph_error(g, err)
                       ? bw_tensor_graph_error(g, err)
                       : bw_fail(err, -EINVAL, "evaluate", "output %u is no tensor of this graph", i);
    }
    int rc = collect_needed(&e, x, count);
    if (!rc) {
        count_users(&e, x, count);
        rc = evaluate_all(&e);
    }
    if (!rc)
        rc = outputs_copy(&e, x, count, data);
    for (size_t i = 0; i < e.nodes.count; i++) {
        g->slots.data[e.nodes.data[i]] = 0;
        if (e.values)
            bw_view_release(&e.values[i].view);
    }
    bw_vec_free(&e.nodes);
    free(e.values);
    return rc;
}

int bw_tensor_evaluate(struct bw_tensor_graph *g, bw_tensor x, void **data, struct bw_err *err)
{
    int rc = bw_tensor_graph_error(g, err);
    if (rc)
        return rc;
    if (!bw_tensor_is_constant(g, x))
        return bw_fail(err, -EINVAL, "evaluate", "node %u depends on an input", x.id);
    return bw_tensor_evaluate_with(g, &x, 1, NULL, 0, data, err);
}
