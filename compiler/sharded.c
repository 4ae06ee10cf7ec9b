/* Graphs of sharded tensors: values, where they begin, and what they become in later stages. Contract in
 * include/bellwire/sharded.h. */
#include "compiler/sharded.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "compiler/tensor_internal.h"

int64_t bw_sharded_begin(int64_t length, uint32_t rank, uint32_t rank_count)
{
    int64_t longer = length % rank_count;
    return length / rank_count * rank + (rank < longer ? rank : longer);
}

int64_t bw_sharded_count(int64_t length, uint32_t rank, uint32_t rank_count)
{
    return length / rank_count + (rank < length % rank_count);
}

int64_t bw_sharded_count_max(int64_t length, uint32_t rank_count)
{
    return bw_sharded_count(length, 0, rank_count);
}

/* ---- graphs ---- */

int bw_sharded_graph_create(struct bw_device *const *devices, uint32_t device_count,
                            struct bw_sharded_graph **out, struct bw_err *err)
{
    int rc = bw_collective_tuple_check(devices, device_count, err);
    if (rc)
        return rc;
    struct bw_sharded_graph *g = calloc(1, sizeof *g);
    if (!g)
        return bw_fail(err, -ENOMEM, "sharded", "new graph");
    memcpy(g->devices, devices, device_count * sizeof *devices);
    g->device_count = device_count;
    *out = g;
    return 0;
}

void bw_sharded_graph_destroy(struct bw_sharded_graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->stages.count; i++)
        for (uint32_t rank = 0; rank < g->device_count; rank++)
            bw_tensor_graph_destroy(g->stages.data[i].graphs[rank]);
    for (size_t i = 0; i < g->sources.count; i++)
        free(g->sources.data[i].data);
    bw_vec_free(&g->stages);
    bw_vec_free(&g->values);
    bw_vec_free(&g->sources);
    bw_vec_free(&g->imports);
    bw_vec_free(&g->feeds);
    bw_vec_free(&g->links);
    free(g);
}

int bw_sharded_graph_error(const struct bw_sharded_graph *g, struct bw_err *err)
{
    if (g->rc && err)
        *err = g->err;
    return g->rc;
}

static bool no_memory(struct bw_sharded_graph *g)
{
    (void)bw_sharded_fail(g, -ENOMEM, "graph of %zu tensors", g->values.count);
    return false;
}

static bool stage_add(struct bw_sharded_graph *g)
{
    struct bw_sharded_stage stage = {{0}};
    if (bw_vec_push(&g->stages, stage))
        return no_memory(g);
    for (uint32_t rank = 0; rank < g->device_count && !g->rc; rank++)
        g->rc = bw_tensor_graph_create(&g->stages.data[g->stages.count - 1].graphs[rank], &g->err);
    return !g->rc;
}

static bool stage_reach(struct bw_sharded_graph *g, uint32_t stage)
{
    bool ok = !g->rc;
    while (ok && g->stages.count <= stage)
        ok = stage_add(g);
    return ok;
}

static bool locals_check(struct bw_sharded_graph *g, uint32_t stage, const struct bw_locals *locals)
{
    for (uint32_t rank = 0; rank < g->device_count && !g->rc; rank++)
        if (!locals->of[rank].id) {
            g->rc = bw_tensor_graph_error(g->stages.data[stage].graphs[rank], &g->err);
            assert(g->rc);
            bw_err_prefix(&g->err, "rank %u: ", rank);
        }
    return !g->rc;
}

/* ---- values ---- */

const struct bw_sharded_value *bw_sharded_value_of(struct bw_sharded_graph *g, bw_sharded x, const char *op)
{
    if (!g->rc && x.graph != g)
        (void)bw_sharded_fail(g, -EINVAL, "%s of a tensor of another graph, over a tuple of its own", op);
    else if (!g->rc && (!x.id || x.id > g->values.count))
        (void)bw_sharded_fail(g, -EINVAL, "%s of tensor %u, which does not exist", op, x.id);
    return g->rc ? NULL : &g->values.data[x.id - 1];
}

static const struct bw_sharded_value *value_seen(const struct bw_sharded_graph *g, bw_sharded x)
{
    return x.graph == g && x.id && x.id <= g->values.count ? &g->values.data[x.id - 1] : NULL;
}

uint32_t bw_sharded_rank(const struct bw_sharded_graph *g, bw_sharded x)
{
    const struct bw_sharded_value *value = value_seen(g, x);
    return value ? value->shape.rank : 0;
}

const int64_t *bw_sharded_dims(const struct bw_sharded_graph *g, bw_sharded x)
{
    static const int64_t none[BW_TENSOR_RANK_MAX] = {0};
    const struct bw_sharded_value *value = value_seen(g, x);
    return value ? value->shape.dims : none;
}

enum bw_dtype bw_sharded_dtype(const struct bw_sharded_graph *g, bw_sharded x)
{
    const struct bw_sharded_value *value = value_seen(g, x);
    return value ? value->dtype : BW_VOID;
}

int32_t bw_sharded_axis(const struct bw_sharded_graph *g, bw_sharded x)
{
    const struct bw_sharded_value *value = value_seen(g, x);
    return value ? value->axis : BW_SHARDED_REPLICATED;
}

bool bw_sharded_axis_check(struct bw_sharded_graph *g, const struct bw_shape *shape, int32_t *axis,
                           const char *op)
{
    if (*axis == BW_SHARDED_REPLICATED)
        return true;
    if (*axis < 0 || (uint32_t)*axis >= shape->rank)
        (void)bw_sharded_fail(g, -EINVAL, "%s: axis %d of a tensor of %u axes", op, *axis, shape->rank);
    else if (shape->dims[*axis] < g->device_count)
        (void)bw_sharded_fail(g, -EINVAL, "%s: axis %d has %lld elements, fewer than the %u devices", op,
                              *axis, (long long)shape->dims[*axis], g->device_count);
    if (g->device_count == 1)
        *axis = BW_SHARDED_REPLICATED;
    return !g->rc;
}

bw_sharded bw_sharded_value_add(struct bw_sharded_graph *g, const struct bw_sharded_value *value)
{
    if (!g->rc && locals_check(g, value->stage, &value->locals) && bw_vec_push(&g->values, *value))
        (void)no_memory(g);
    return (bw_sharded){g, g->rc ? 0 : (uint32_t)g->values.count};
}

/* ---- sources ---- */

struct bw_sharded_rows bw_sharded_rows_of(const struct bw_sharded_value *value, uint32_t rank,
                                          uint32_t rank_count)
{
    struct bw_sharded_rows rows = {.count = 1};
    uint64_t unit_bytes = bw_dtype_bytes(value->dtype);
    uint32_t first = value->axis < 0 ? 0 : (uint32_t)value->axis;
    for (uint32_t i = first + (value->axis >= 0); i < value->shape.rank; i++)
        unit_bytes *= (uint64_t)value->shape.dims[i];
    rows.whole_bytes = rows.part_bytes = unit_bytes;
    if (value->axis < 0)
        return rows;
    int64_t length = value->shape.dims[first];
    for (uint32_t i = 0; i < first; i++)
        rows.count *= (uint64_t)value->shape.dims[i];
    rows.whole_bytes = unit_bytes * (uint64_t)length;
    rows.part_bytes = unit_bytes * (uint64_t)bw_sharded_count(length, rank, rank_count);
    rows.offset = unit_bytes * (uint64_t)bw_sharded_begin(length, rank, rank_count);
    return rows;
}

static struct bw_shape local_shape(const struct bw_sharded_graph *g, const struct bw_sharded_value *value,
                                   uint32_t rank)
{
    struct bw_shape shape = value->shape;
    if (value->axis >= 0)
        shape.dims[value->axis] = bw_sharded_count(shape.dims[value->axis], rank, g->device_count);
    return shape;
}

static bw_tensor constant_make(struct bw_sharded_graph *g, const struct bw_sharded_value *value,
                               const struct bw_sharded_source *source, uint32_t stage, uint32_t rank)
{
    struct bw_tensor_graph *tensors = g->stages.data[stage].graphs[rank];
    struct bw_shape shape = local_shape(g, value, rank);
    if (!source->data)
        return bw_tensor_full(tensors, value->dtype, shape.rank, shape.dims, source->number);
    struct bw_sharded_rows rows = bw_sharded_rows_of(value, rank, g->device_count);
    char *part = malloc(rows.count * rows.part_bytes + 1);
    if (!part)
        return bw_tensor_fail(tensors, -ENOMEM, "constant");
    for (uint64_t i = 0; i < rows.count; i++)
        memcpy(part + i * rows.part_bytes, (char *)source->data + i * rows.whole_bytes + rows.offset,
               rows.part_bytes);
    bw_tensor constant = bw_tensor_constant(tensors, value->dtype, shape.rank, shape.dims, part);
    free(part);
    return constant;
}

static bool source_make(struct bw_sharded_graph *g, const struct bw_sharded_value *value, uint32_t number,
                        uint32_t stage, struct bw_locals *locals)
{
    const struct bw_sharded_source *source = &g->sources.data[number];
    if (!stage_reach(g, stage))
        return false;
    struct bw_sharded_feed feed = {number, stage, (uint32_t)g->stages.data[stage].graphs[0]->inputs.count};
    for (uint32_t rank = 0; rank < g->device_count; rank++) {
        struct bw_shape shape = local_shape(g, value, rank);
        locals->of[rank] = source->is_input ? bw_tensor_input(g->stages.data[stage].graphs[rank],
                                                              value->dtype, shape.rank, shape.dims)
                                            : constant_make(g, value, source, stage, rank);
    }
    if (source->is_input && bw_vec_push(&g->feeds, feed))
        return no_memory(g);
    return locals_check(g, stage, locals);
}

static bw_sharded source_add(struct bw_sharded_graph *g, struct bw_sharded_source source, enum bw_dtype dtype,
                             uint32_t rank, const int64_t *dims, int32_t axis, const char *op)
{
    struct bw_sharded_value value = {.dtype = dtype, .axis = axis, .shape = {.rank = rank}};
    if (!g->rc && rank > BW_RANK_MAX)
        return bw_sharded_fail(g, -E2BIG, "%s of %u axes (at most %d)", op, rank, BW_RANK_MAX);
    for (uint32_t i = 0; i < rank && !g->rc; i++) {
        value.shape.dims[i] = dims[i];
        if (dims[i] < 1)
            return bw_sharded_fail(g, -EINVAL, "%s: axis %u has %lld elements", op, i, (long long)dims[i]);
    }
    if (g->rc || !bw_sharded_axis_check(g, &value.shape, &value.axis, op))
        return (bw_sharded){g, 0};
    source.value = (uint32_t)g->values.count;
    if (bw_vec_push(&g->sources, source)) {
        (void)no_memory(g);
        return (bw_sharded){g, 0};
    }
    value.source = (uint32_t)g->sources.count;
    if (!source_make(g, &value, value.source - 1, 0, &value.locals))
        return (bw_sharded){g, 0};
    return bw_sharded_value_add(g, &value);
}

bw_sharded bw_sharded_input(struct bw_sharded_graph *g, enum bw_dtype dtype, uint32_t rank,
                            const int64_t *dims, int32_t axis)
{
    struct bw_sharded_source source = {.is_input = true, .input = g->input_count++};
    return source_add(g, source, dtype, rank, dims, axis, "input");
}

bw_sharded bw_sharded_constant(struct bw_sharded_graph *g, enum bw_dtype dtype, uint32_t rank,
                               const int64_t *dims, int32_t axis, const void *data)
{
    struct bw_sharded_source source = {0};
    uint64_t size_bytes = bw_dtype_bytes(dtype);
    for (uint32_t i = 0; i < rank && !g->rc; i++) {
        if (dims[i] < 1 || __builtin_mul_overflow(size_bytes, (uint64_t)dims[i], &size_bytes))
            return bw_sharded_fail(g, -EINVAL, "constant: axis %u has %lld elements", i, (long long)dims[i]);
    }
    source.data = g->rc ? NULL : malloc(size_bytes + 1);
    if (!source.data) {
        (void)no_memory(g);
        return (bw_sharded){g, 0};
    }
    memcpy(source.data, data, size_bytes);
    size_t before = g->sources.count;
    bw_sharded constant = source_add(g, source, dtype, rank, dims, axis, "constant");
    if (g->sources.count == before)
        free(source.data);
    return constant;
}

bw_sharded bw_sharded_scalar(struct bw_sharded_graph *g, enum bw_dtype dtype, double value)
{
    return source_add(g, (struct bw_sharded_source){.number = value}, dtype, 0, NULL, BW_SHARDED_REPLICATED,
                      "scalar");
}

/* ---- from stage to stage ---- */

bool bw_sharded_link_add(struct bw_sharded_graph *g, struct bw_sharded_link link,
                         const struct bw_shape *received, struct bw_locals *locals)
{
    if (!locals_check(g, link.from_stage, &link.sent) || !stage_reach(g, link.to_stage))
        return false;
    link.number = (uint32_t)g->stages.data[link.to_stage].graphs[0]->inputs.count;
    for (uint32_t rank = 0; rank < g->device_count; rank++) {
        const struct bw_ir *sent = g->stages.data[link.from_stage].graphs[rank]->ir;
        const struct bw_shape *shape = received ? received : bw_ir_shape(sent, link.sent.of[rank].id);
        locals->of[rank] =
            bw_tensor_input(g->stages.data[link.to_stage].graphs[rank],
                            bw_ir_dtype(sent, link.sent.of[rank].id), shape->rank, shape->dims);
    }
    if (bw_vec_push(&g->links, link))
        return no_memory(g);
    return locals_check(g, link.to_stage, locals);
}

bool bw_sharded_locals(struct bw_sharded_graph *g, uint32_t id, uint32_t stage, struct bw_locals *locals)
{
    struct bw_sharded_value value = g->values.data[id - 1];
    assert(value.source || stage >= value.stage);
    if (stage == value.stage) {
        *locals = value.locals;
        return !g->rc;
    }
    for (size_t i = 0; i < g->imports.count; i++)
        if (g->imports.data[i].value == id && g->imports.data[i].stage == stage) {
            *locals = g->imports.data[i].locals;
            return !g->rc;
        }
    struct bw_sharded_link link = {
        .copies = true, .from_stage = value.stage, .to_stage = stage, .sent = value.locals};
    bool ok = value.source ? source_make(g, &value, value.source - 1, stage, locals)
                           : bw_sharded_link_add(g, link, NULL, locals);
    struct bw_sharded_import import = {id, stage, *locals};
    if (ok && bw_vec_push(&g->imports, import))
        ok = no_memory(g);
    return ok;
}
