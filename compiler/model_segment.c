/* Pieces of imports that were cut because values were needed in the midst: their plans are kept by what they
 * compute, so that the next run, or the next iteration of a loop, compiles nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/model_internal.h"
#include "compiler/plan.h"

struct segment {
    struct bw_tensor_graph *graph;
    BW_VEC(bw_node) nodes;   /* reachable, ascending */
    struct bw_map places;    /* node -> index in nodes */
    BW_VEC(uint32_t) inputs; /* input numbers of the graph, in the order in which nodes name them */
};

static void segment_free(struct segment *s)
{
    bw_vec_free(&s->nodes);
    bw_map_free(&s->places);
    bw_vec_free(&s->inputs);
}

static int node_order(const void *a, const void *b)
{
    bw_node x = *(const bw_node *)a, y = *(const bw_node *)b;
    return (x > y) - (x < y);
}

static int visit(struct segment *s, bw_node node)
{
    uint64_t ignored;
    if (bw_map_get(&s->places, node, &ignored))
        return 0;
    return bw_map_set(&s->places, node, 0) || bw_vec_push(&s->nodes, node) ? -ENOMEM : 0;
}

static int collect(struct segment *s, const bw_tensor *outputs, uint32_t count)
{
    const struct bw_ir *ir = s->graph->ir;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < count; i++)
        rc = visit(s, outputs[i].id);
    for (size_t i = 0; !rc && i < s->nodes.count; i++)
        for (uint32_t k = 0; !rc && k < bw_ir_source_count(ir, s->nodes.data[i]); k++)
            rc = visit(s, bw_ir_source(ir, s->nodes.data[i], k));
    if (rc)
        return rc;
    qsort(s->nodes.data, s->nodes.count, sizeof *s->nodes.data, node_order);
    for (size_t i = 0; !rc && i < s->nodes.count; i++)
        rc = bw_map_set(&s->places, s->nodes.data[i], i);
    return rc;
}

static void mix(uint64_t *key, uint64_t value)
{
    key[0] = bw_hash64(key[0] ^ value);
    key[1] = bw_hash64(key[1] + value * 0x9e3779b97f4a7c15ull);
}

static void mix_bytes(uint64_t *key, const void *data, uint64_t size_bytes)
{
    uint64_t word;
    const uint8_t *at = data;
    for (; size_bytes >= sizeof word; size_bytes -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        mix(key, word);
    }
    word = size_bytes;
    memcpy(&word, at, size_bytes);
    mix(key, word);
}

/* What a buffer is, whatever its number: an input, mapped weights, or bytes. */
static int mix_buffer(struct segment *s, bw_node node, uint64_t *key)
{
    const struct bw_tensor_buffer *buffer = &s->graph->buffers.data[bw_ir_buffer_number(s->graph->ir, node)];
    mix(key, buffer->kind);
    if (buffer->kind == BW_TENSOR_INPUT)
        return bw_vec_push(&s->inputs, buffer->input_index);
    if (buffer->file) { /* each import has a handle of its own for the same range */
        mix(key, (uint64_t)(uintptr_t)bw_buffer_device(buffer->file));
        mix(key, bw_buffer_address(buffer->file));
    } else if (buffer->owned)
        mix_bytes(key, buffer->data, buffer->size_bytes);
    else
        mix(key, (uint64_t)(uintptr_t)buffer->data);
    return 0;
}

static int mix_node(struct segment *s, bw_node node, uint64_t *key)
{
    const struct bw_ir *ir = s->graph->ir;
    const struct bw_shape *shape = bw_ir_shape(ir, node);
    enum bw_op op = bw_ir_op(ir, node);
    uint64_t arg = bw_ir_arg(ir, node);
    mix(key, op);
    mix(key, bw_ir_dtype(ir, node));
    mix(key, shape->rank);
    for (uint32_t i = 0; i < shape->rank; i++)
        mix(key, (uint64_t)shape->dims[i]);
    for (uint32_t i = 0; i < bw_ir_source_count(ir, node); i++) {
        uint64_t place = 0;
        bw_map_get(&s->places, bw_ir_source(ir, node, i), &place);
        mix(key, place);
    }
    switch (op) {
    case BW_OP_BUFFER:
        return mix_buffer(s, node, key);
    case BW_OP_INDEXES:
        mix(key, bw_ir_indexes_axis(ir, node));
        return 0;
    case BW_OP_PERMUTE:
        mix_bytes(key, bw_ir_blob_data(ir, arg), sizeof(struct bw_axes));
        return 0;
    case BW_OP_PAD:
    case BW_OP_SHRINK:
        mix_bytes(key, bw_ir_blob_data(ir, arg), sizeof(struct bw_bounds));
        return 0;
    case BW_OP_CONST:
    case BW_OP_FLIP:
    case BW_OP_REDUCE:
        mix(key, arg);
        return 0;
    default: /* the shape says it all */
        return 0;
    }
}

static int segment_key(struct segment *s, const bw_tensor *outputs, uint32_t count, uint64_t *key)
{
    int rc = collect(s, outputs, count);
    key[0] = 1;
    key[1] = 2;
    for (size_t i = 0; !rc && i < s->nodes.count; i++)
        rc = mix_node(s, s->nodes.data[i], key);
    for (uint32_t i = 0; !rc && i < count; i++) {
        uint64_t place = 0;
        bw_map_get(&s->places, outputs[i].id, &place);
        mix(key, place);
    }
    return rc;
}

void bw_model_segment_free(struct bw_model *model, struct bw_model_segment *segment)
{
    bw_plan_destroy(segment->plan);
    free(segment->inputs);
    *segment = (struct bw_model_segment){0};
}

/* The row of this key, or a row to fill: a free one, or the one that was not used for longest. */
static struct bw_model_segment *segment_find(struct bw_model *model, struct bw_device *device,
                                             const uint64_t *key)
{
    struct bw_model_segment *oldest = &model->segments[0];
    for (uint32_t i = 0; i < BW_MODEL_SEGMENTS_MAX; i++) {
        struct bw_model_segment *row = &model->segments[i];
        if (row->plan && row->device == device && row->key[0] == key[0] && row->key[1] == key[1])
            return row;
        if (oldest->plan && (!row->plan || row->last_used < oldest->last_used))
            oldest = row;
    }
    bw_model_segment_free(model, oldest);
    oldest->device = device;
    memcpy(oldest->key, key, sizeof oldest->key);
    return oldest;
}

static int segment_compile(struct bw_model *model, struct segment *s, const bw_tensor *outputs,
                           uint32_t count, struct bw_model_segment *row, struct bw_err *err)
{
    row->inputs = calloc(s->inputs.count + 1, sizeof *row->inputs);
    if (!row->inputs)
        return bw_fail(err, -ENOMEM, "model", "inputs of a plan");
    row->input_count = (uint32_t)s->graph->inputs.count;
    if (s->inputs.count)
        memcpy(row->inputs, s->inputs.data, s->inputs.count * sizeof *row->inputs);
    int rc = bw_model_plan_create(model, row->device, s->graph, outputs, count, &row->plan, err);
    if (rc)
        bw_model_segment_free(model, row);
    return rc;
}

int bw_model_outputs_alloc(const struct bw_tensor_graph *graph, const bw_tensor *outputs, uint32_t count,
                           void **data, struct bw_err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size_bytes = (uint64_t)bw_tensor_elements(graph, outputs[i]) *
                              bw_dtype_bytes(bw_tensor_dtype(graph, outputs[i]));
        data[i] = malloc(size_bytes ? size_bytes : 1);
        if (data[i])
            continue;
        while (i-- > 0) {
            free(data[i]);
            data[i] = NULL;
        }
        return bw_fail(err, -ENOMEM, "model", "an output of %llu bytes", (unsigned long long)size_bytes);
    }
    return 0;
}

int bw_model_plan_create(struct bw_model *model, struct bw_device *device, struct bw_tensor_graph *graph,
                         const bw_tensor *outputs, uint32_t count, struct bw_plan **plan, struct bw_err *err)
{
    struct bw_plan_options options = {.size = sizeof options, .profile = model->profile};
    int rc = bw_plan_create(graph, device, outputs, count, &options, plan, err);
    model->stats.plans += !rc;
    return rc;
}

void bw_model_profiles_drop(struct bw_model *model)
{
    for (size_t i = 0; i < model->profiles.count; i++)
        bw_profile_destroy(model->profiles.data[i]);
    model->profiles.count = 0;
}

static int profile_keep(struct bw_model *model, struct bw_plan *plan, struct bw_err *err)
{
    struct bw_profile *profile;
    if (model->profiles.count >= BW_MODEL_PROFILES_MAX)
        return 0;
    int rc = bw_linked_graph_profile_take(bw_plan_linked(plan), 0, &profile, err);
    if (rc)
        return rc == -ENOTSUP ? 0 : rc; /* made before bw_model_profile was said */
    if (bw_vec_push(&model->profiles, profile) == 0)
        return 0;
    bw_profile_destroy(profile);
    return bw_fail(err, -ENOMEM, "model", "profile");
}

int bw_model_plan_ran(struct bw_model *model, struct bw_plan *plan, struct bw_err *err)
{
    struct bw_plan_stats one, *sum = &model->stats.plan;
    bw_plan_stats(plan, &one);
    sum->kernels += one.kernels;
    sum->copies += one.copies;
    sum->compiled += one.compiled;
    sum->cache_hits += one.cache_hits;
    sum->buffer_bytes += one.buffer_bytes;
    sum->constant_bytes += one.constant_bytes;
    sum->schedule_seconds += one.schedule_seconds;
    sum->compile_seconds += one.compile_seconds;
    sum->link_seconds += one.link_seconds;
    sum->run_seconds += one.run_seconds;
    return model->profile ? profile_keep(model, plan, err) : 0;
}

int bw_model_segment_run(struct bw_model *model, struct bw_device *device, struct bw_tensor_graph *graph,
                         const bw_tensor *outputs, uint32_t count, const void *const *inputs, void **data,
                         struct bw_err *err)
{
    struct segment s = {.graph = graph};
    uint64_t key[2];
    const void **pointers = NULL;
    int rc = segment_key(&s, outputs, count, key) ? bw_fail(err, -ENOMEM, "model", "key of a plan") : 0;
    struct bw_model_segment *row = rc ? NULL : segment_find(model, device, key);
    if (!rc && !row->plan)
        rc = segment_compile(model, &s, outputs, count, row, err);
    if (!rc && !(pointers = calloc((size_t)row->input_count + 1, sizeof *pointers)))
        rc = bw_fail(err, -ENOMEM, "model", "inputs of a plan");
    for (size_t i = 0; !rc && i < s.inputs.count; i++)
        pointers[row->inputs[i]] = inputs[s.inputs.data[i]];
    if (!rc)
        rc = bw_model_outputs_alloc(graph, outputs, count, data, err);
    if (!rc) {
        row->last_used = ++model->segment_clock;
        rc = bw_plan_run(row->plan, pointers, data, err);
        if (!rc)
            rc = bw_model_plan_ran(model, row->plan, err);
        for (uint32_t i = 0; rc && i < count; i++)
            free(data[i]);
    }
    free(pointers);
    segment_free(&s);
    return rc;
}
