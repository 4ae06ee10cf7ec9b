/* Values of an import, and the two ways to learn what they are: see import.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/onnx/import.h"

static const char empty_host[8]; /* elements of a tensor that has none */

int bw_onnx_session_start(struct bw_onnx_session *session, struct bw_err *err)
{
    session->err = err;
    return bw_tensor_graph_create(&session->graph, err);
}

void bw_onnx_session_finish(struct bw_onnx_session *session)
{
    bw_tensor_graph_destroy(session->graph);
    for (size_t i = 0; i < session->owned.count; i++)
        free(session->owned.data[i]);
    bw_vec_free(&session->owned);
    bw_vec_free(&session->inputs);
    bw_vec_free(&session->pinned);
    bw_vec_free(&session->index_checks);
    bw_arena_free(&session->arena);
}

static struct bw_onnx_value *value_new(struct bw_onnx_session *session)
{
    struct bw_onnx_value *value = bw_arena_alloc(&session->arena, sizeof *value);
    if (!value)
        bw_fail(session->err, -ENOMEM, "onnx", "value");
    return value;
}

static void value_shape(struct bw_onnx_value *value, enum bw_dtype dtype, uint32_t rank, const int64_t *dims)
{
    value->dtype = dtype;
    value->rank = rank;
    value->elements = 1;
    for (uint32_t i = 0; i < rank; i++) {
        value->dims[i] = dims[i];
        value->elements *= dims[i];
    }
}

struct bw_onnx_value *bw_onnx_value_none(struct bw_onnx_session *session)
{
    return value_new(session);
}

struct bw_onnx_value *bw_onnx_value_tensor(struct bw_onnx_session *session, bw_tensor tensor)
{
    return bw_onnx_value_typed(session, tensor, BW_VOID);
}

struct bw_onnx_value *bw_onnx_value_typed(struct bw_onnx_session *session, bw_tensor tensor,
                                          enum bw_dtype dtype)
{
    struct bw_onnx_value *value = value_new(session);
    if (!value || !tensor.id)
        return NULL;
    if (!bw_dtype_is_storage(dtype))
        dtype = bw_tensor_dtype(session->graph, tensor);
    assert(bw_tensor_dtype(session->graph, tensor) == bw_dtype_carrier(dtype));
    value->kind = BW_VALUE_ARRAY;
    value->tensor = tensor;
    value_shape(value, dtype, bw_tensor_rank(session->graph, tensor), bw_tensor_dims(session->graph, tensor));
    if (!value->elements) { /* nothing that could depend on an input */
        value->host = empty_host;
        value->fixed = true;
    }
    return value;
}

struct bw_onnx_value *bw_onnx_value_sequence(struct bw_onnx_session *session,
                                             struct bw_onnx_value *const *items, uint32_t count)
{
    struct bw_onnx_value *value = value_new(session);
    if (!value)
        return NULL;
    value->kind = BW_VALUE_SEQUENCE;
    value->items = bw_arena_copy(&session->arena, items, count * sizeof *items);
    value->item_count = count;
    value->nesting = 1;
    for (uint32_t i = 0; i < count; i++)
        if (items[i]->nesting >= value->nesting)
            value->nesting = items[i]->nesting + 1;
    if (!value->items || value->nesting > BW_ONNX_NESTING_MAX) { /* what walks them is recursive */
        bw_fail(session->err, value->items ? -E2BIG : -ENOMEM, "onnx", "a sequence of %u, %u deep", count,
                value->nesting);
        return NULL;
    }
    return value;
}

static int own(struct bw_onnx_session *session, void *data)
{
    if (!bw_vec_push(&session->owned, data))
        return 0;
    free(data);
    return bw_fail(session->err, -ENOMEM, "onnx", "host data");
}

/* ---- what was decided by which input ---- */

/* Marks the model inputs that an input of the session stands for, or was computed from. */
static void sources_mark(const struct bw_onnx_session *session, uint32_t index, bool *marks)
{
    const struct bw_onnx_session_input *input = &session->inputs.data[index];
    if (input->model_input != UINT32_MAX)
        marks[input->model_input] = true;
    for (uint32_t i = 0; input->sources && i < session->model_input_count; i++)
        marks[i] |= input->sources[i];
}

/* By model input: which of them a tensor is computed from. In the session's memory; NULL: none to be had. */
static const bool *sources_of(struct bw_onnx_session *session, bw_tensor tensor)
{
    const struct bw_ir *ir = session->graph->ir;
    bool *marks = bw_arena_alloc(&session->arena, session->model_input_count * sizeof *marks);
    BW_VEC(bw_node) stack = {0};
    struct bw_map seen = {0};
    int rc = marks ? bw_vec_push(&stack, tensor.id) : -ENOMEM;
    while (!rc && stack.count) {
        bw_node node = stack.data[--stack.count];
        uint64_t ignored;
        if (!bw_tensor_depends_on_input(session->graph, node) || bw_map_get(&seen, node, &ignored))
            continue;
        rc = bw_map_set(&seen, node, 1);
        if (bw_ir_op(ir, node) == BW_OP_BUFFER)
            sources_mark(session, session->graph->buffers.data[bw_ir_buffer_number(ir, node)].input_index,
                         marks);
        for (uint32_t s = 0; !rc && s < bw_ir_source_count(ir, node); s++)
            rc = bw_vec_push(&stack, bw_ir_source(ir, node, s));
    }
    bw_vec_free(&stack);
    bw_map_free(&seen);
    return rc ? NULL : marks; /* it costs a hint, and nothing else */
}

void bw_onnx_value_decided(struct bw_onnx_session *session, const struct bw_onnx_value *value)
{
    if (value->input)
        sources_mark(session, value->input - 1, session->decided);
}

/* An array that is known now and differs from run to run is one more input of what follows. */
static int value_becomes_input(struct bw_onnx_session *session, struct bw_onnx_value *value,
                               uint32_t model_input)
{
    value->tensor = bw_tensor_input(session->graph, bw_dtype_carrier(value->dtype), value->rank, value->dims);
    struct bw_onnx_session_input row = {.value = value, .data = value->host, .model_input = model_input};
    if (!value->tensor.id)
        return bw_tensor_graph_error(session->graph, session->err);
    if (bw_vec_push(&session->inputs, row))
        return bw_fail(session->err, -ENOMEM, "onnx", "inputs");
    value->input = (uint32_t)session->inputs.count;
    return 0;
}

struct bw_onnx_value *bw_onnx_value_host(struct bw_onnx_session *session, enum bw_dtype dtype, uint32_t rank,
                                         const int64_t *dims, void *data, bool fixed)
{
    struct bw_onnx_value *value = value_new(session);
    if (!data || own(session, data) || !value)
        return NULL;
    value->kind = BW_VALUE_ARRAY;
    value_shape(value, dtype, rank, dims);
    value->host = data;
    value->fixed = fixed;
    if (!fixed && value_becomes_input(session, value, UINT32_MAX))
        return NULL;
    return value;
}

struct bw_onnx_value *bw_onnx_value_strings(struct bw_onnx_session *session, uint32_t rank,
                                            const int64_t *dims, struct bw_bytes *strings, bool fixed)
{
    struct bw_onnx_value *value = value_new(session);
    if (!strings || own(session, strings) || !value)
        return NULL;
    value->kind = BW_VALUE_STRINGS;
    value_shape(value, BW_VOID, rank, dims);
    value->host = strings;
    value->fixed = fixed;
    return value;
}

struct bw_onnx_value *bw_onnx_value_proto(struct bw_onnx_session *session, struct bw_onnx_tensor *tensor)
{
    struct bw_onnx_value *value = value_new(session);
    const void *data = NULL;
    if (!value || session->tensor_data(session->user, tensor, &data, session->err))
        return NULL;
    value->kind = tensor->dtype == BW_ONNX_STRING ? BW_VALUE_STRINGS : BW_VALUE_ARRAY;
    value_shape(value, bw_onnx_dtype_of(tensor->dtype), tensor->rank, tensor->dims);
    value->host = data ? data : empty_host;
    value->fixed = value->mapped = true;
    return value;
}

_Static_assert(sizeof(struct bw_string) == sizeof(struct bw_bytes), "strings of the API are read as bytes");

int bw_onnx_session_input(struct bw_onnx_session *session, const struct bw_value *given, uint32_t model_input,
                          struct bw_onnx_value **result)
{
    struct bw_onnx_value *value = value_new(session);
    *result = value;
    if (!value)
        return -ENOMEM;
    value->kind = given->kind;
    if (given->kind == BW_VALUE_SEQUENCE) {
        value->items = bw_arena_alloc(&session->arena, given->item_count * sizeof *value->items);
        if (!value->items)
            return bw_fail(session->err, -ENOMEM, "onnx", "a sequence");
        int rc = 0;
        for (; !rc && value->item_count < given->item_count; value->item_count++)
            rc = bw_dtype_is_storage(given->items[value->item_count].array.dtype)
                     ? bw_fail(session->err, -ENOTSUP, "onnx", "a sequence of %s",
                               bw_dtype_name(given->items[value->item_count].array.dtype))
                     : bw_onnx_session_input(session, &given->items[value->item_count], UINT32_MAX,
                                             &value->items[value->item_count]);
        session->dynamic = true;
        return rc;
    }
    if (given->kind == BW_VALUE_NONE)
        return 0;
    value_shape(value, given->array.dtype, given->array.rank, given->array.dims);
    value->host = given->array.data ? given->array.data : empty_host;
    if (given->kind == BW_VALUE_STRINGS)
        session->dynamic = true;
    value->fixed = !value->elements;
    return given->kind == BW_VALUE_ARRAY ? value_becomes_input(session, value, model_input) : 0;
}

/* Elements that stay where they are: in their file, or in the mapping of it. */
static bw_tensor mapped_tensor(struct bw_onnx_session *session, const struct bw_onnx_value *value)
{
    struct bw_tensor_graph *g = session->graph;
    enum bw_dtype dtype = bw_dtype_carrier(value->dtype);
    uint64_t size_bytes = (uint64_t)value->elements * bw_dtype_bytes(dtype);
    struct bw_buffer *range = dtype != BW_BOOL /* of a mapping they are 0 and 1 already */
                                  ? session->tensor_range(session->user, value->host, size_bytes)
                                  : NULL;
    if (!range)
        return bw_tensor_constant_borrowed(g, dtype, value->rank, value->dims, value->host);
    bw_tensor tensor = bw_tensor_file(g, dtype, value->rank, value->dims, range);
    bw_buffer_destroy(range);
    return tensor;
}

bw_tensor bw_onnx_tensor_of(struct bw_onnx_session *session, struct bw_onnx_value *value)
{
    assert(value->kind == BW_VALUE_ARRAY);
    enum bw_dtype dtype = bw_dtype_carrier(value->dtype);
    if (!value->tensor.id && value->mapped)
        value->tensor = mapped_tensor(session, value);
    else if (!value->tensor.id)
        value->tensor = bw_tensor_constant(session->graph, dtype, value->rank, value->dims, value->host);
    return value->tensor;
}

/* ---- realising ---- */

struct wanted {
    BW_VEC(struct bw_onnx_value *) values;
    BW_VEC(bw_tensor) tensors; /* without repetition */
    struct bw_map places;      /* tensor id -> 1 + place in tensors */
};

static bool is_unknown(const struct bw_onnx_value *value)
{
    return value->kind == BW_VALUE_ARRAY && !value->host;
}

static int want(struct bw_onnx_session *session, struct wanted *list, struct bw_onnx_value *value,
                bool constants)
{
    uint64_t place;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < value->item_count; i++)
        rc = want(session, list, value->items[i], constants);
    if (rc || !is_unknown(value) || (!constants && bw_tensor_is_constant(session->graph, value->tensor)))
        return rc;
    if (bw_vec_push(&list->values, value))
        return bw_fail(session->err, -ENOMEM, "onnx", "list of values");
    if (bw_map_get(&list->places, value->tensor.id, &place))
        return 0;
    if (bw_vec_push(&list->tensors, value->tensor) ||
        bw_map_set(&list->places, value->tensor.id, list->tensors.count))
        return bw_fail(session->err, -ENOMEM, "onnx", "list of values");
    return 0;
}

/* Whatever a later node of this graph, or of the graphs around it, still reads. */
static int want_live(struct bw_onnx_session *session, struct wanted *list)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < session->pinned.count; i++)
        rc = want(session, list, session->pinned.data[i], false);
    for (struct bw_onnx_scope *scope = session->scope; !rc && scope; scope = scope->caller) {
        size_t cursor = 0;
        uint64_t symbol, address, last_use;
        while (!rc && bw_map_next(&scope->values, &cursor, &symbol, &address))
            if (bw_map_get(&scope->graph->last_use, symbol, &last_use) && last_use >= scope->position)
                rc = want(session, list, (struct bw_onnx_value *)(uintptr_t)address, false);
    }
    return rc;
}

/* The values' tensors become inputs that hold the data. Values that share a tensor share the input. */
static int realized(struct bw_onnx_session *session, struct wanted *list, void **data)
{
    int rc = 0;
    for (size_t i = 0; i < list->tensors.count; i++)
        rc = own(session, data[i]) ? -ENOMEM : rc;
    if (rc)
        return rc;
    struct bw_onnx_value **first = calloc(list->tensors.count, sizeof *first);
    if (!first)
        return bw_fail(session->err, -ENOMEM, "onnx", "list of values");
    for (size_t i = 0; !rc && i < list->values.count; i++) {
        struct bw_onnx_value *value = list->values.data[i];
        uint64_t place = 0;
        if (value->host) /* listed twice: wanted, and read later too */
            continue;
        bw_map_get(&list->places, value->tensor.id, &place);
        assert(place);
        value->host = data[place - 1];
        if (first[place - 1]) {
            value->tensor = first[place - 1]->tensor;
            value->input = first[place - 1]->input;
            continue;
        }
        first[place - 1] = value;
        const bool *sources = sources_of(session, value->tensor);
        rc = value_becomes_input(session, value, UINT32_MAX);
        if (!rc)
            session->inputs.data[session->inputs.count - 1].sources = sources;
    }
    free(first);
    return rc;
}

int bw_onnx_session_realize(struct bw_onnx_session *session, struct bw_onnx_value *const *values,
                            uint32_t count)
{
    struct wanted list = {0};
    int rc = bw_tensor_graph_error(session->graph, session->err);
    for (uint32_t i = 0; !rc && i < count; i++)
        rc = want(session, &list, values[i], true);
    if (!rc && list.tensors.count)
        rc = want_live(session, &list);
    if (!rc && list.tensors.count && !session->may_realize) {
        rc = bw_fail(session->err, -ENOTSUP, "onnx", "values are needed that only a run can give");
        bw_err_hint(session->err,
                    "a run computes such values and goes on from there, in pieces; this is no one "
                    "piece that could be shown");
    }
    if (!rc && list.tensors.count) {
        void **data = calloc(list.tensors.count, sizeof *data);
        rc = data ? session->run(session, list.tensors.data, (uint32_t)list.tensors.count, data, session->err)
                  : bw_fail(session->err, -ENOMEM, "onnx", "list of values");
        if (!rc)
            rc = realized(session, &list, data);
        free(data);
        session->dynamic = true;
    }
    bw_vec_free(&list.values);
    bw_vec_free(&list.tensors);
    bw_map_free(&list.places);
    return rc;
}

/* ---- folding and deciding ---- */

/* Elements of all nodes that a tensor is made of, as far as they reach the limit. */
static int work_of(struct bw_onnx_session *session, bw_tensor tensor, int64_t limit, int64_t *work)
{
    const struct bw_ir *ir = session->graph->ir;
    BW_VEC(bw_node) stack = {0};
    struct bw_map seen = {0};
    int rc = bw_vec_push(&stack, tensor.id);
    *work = 0;
    while (!rc && stack.count && *work <= limit) {
        bw_node node = stack.data[--stack.count];
        uint64_t ignored;
        if (bw_map_get(&seen, node, &ignored))
            continue;
        rc = bw_map_set(&seen, node, 1);
        *work += bw_ir_elements(ir, node);
        for (uint32_t s = 0; !rc && s < bw_ir_source_count(ir, node); s++)
            rc = bw_vec_push(&stack, bw_ir_source(ir, node, s));
    }
    bw_vec_free(&stack);
    bw_map_free(&seen);
    return rc ? bw_fail(session->err, rc, "onnx", "work of a decision") : 0;
}

static int evaluate_fixed(struct bw_onnx_session *session, struct bw_onnx_value *value,
                          const void *const *inputs, uint32_t input_count)
{
    void *data = NULL;
    int rc =
        bw_tensor_evaluate_with(session->graph, &value->tensor, 1, inputs, input_count, &data, session->err);
    if (!rc)
        rc = own(session, data);
    if (rc)
        return rc;
    value->host = data;
    value->fixed = true;
    value->tensor = (bw_tensor){0}; /* a constant from now on */
    return 0;
}

int bw_onnx_value_fold(struct bw_onnx_session *session, struct bw_onnx_value *value)
{
    int64_t work;
    if (!is_unknown(value) || value->elements > BW_ONNX_FOLD_ELEMENTS_MAX ||
        !bw_tensor_is_constant(session->graph, value->tensor))
        return 0;
    int rc = work_of(session, value->tensor, BW_ONNX_FOLD_WORK_MAX, &work);
    return rc || work > BW_ONNX_FOLD_WORK_MAX ? rc : evaluate_fixed(session, value, NULL, 0);
}

static int evaluate_decision(struct bw_onnx_session *session, struct bw_onnx_value *value,
                             const void *const *inputs, uint32_t input_count)
{
    int64_t work;
    int rc = work_of(session, value->tensor, BW_ONNX_DECIDE_WORK_MAX, &work);
    if (rc)
        return rc;
    if (work > BW_ONNX_DECIDE_WORK_MAX)
        return bw_fail(session->err, -E2BIG, "onnx",
                       "a shape or branch that takes more than %d steps to decide", BW_ONNX_DECIDE_WORK_MAX);
    return evaluate_fixed(session, value, inputs, input_count);
}

/* The model inputs that a tensor reads, when all are small enough to specialise on; count 0 otherwise. */
static int specializable_inputs(struct bw_onnx_session *session, bw_tensor tensor, uint8_t *used,
                                uint32_t *count)
{
    const struct bw_ir *ir = session->graph->ir;
    BW_VEC(bw_node) stack = {0};
    struct bw_map seen = {0};
    int64_t elements = 0;
    bool all = true;
    int rc = bw_vec_push(&stack, tensor.id);
    *count = 0;
    while (!rc && all && stack.count) {
        bw_node node = stack.data[--stack.count];
        uint64_t ignored;
        if (!bw_tensor_depends_on_input(session->graph, node) || bw_map_get(&seen, node, &ignored))
            continue;
        rc = bw_map_set(&seen, node, 1);
        if (bw_ir_op(ir, node) == BW_OP_BUFFER) {
            uint32_t index = session->graph->buffers.data[bw_ir_buffer_number(ir, node)].input_index;
            struct bw_onnx_session_input *input = &session->inputs.data[index];
            elements += input->value->elements;
            all = input->model_input != UINT32_MAX && elements <= BW_ONNX_SPECIALIZE_ELEMENTS_MAX;
            used[index] = 1;
            ++*count;
        }
        for (uint32_t s = 0; !rc && s < bw_ir_source_count(ir, node); s++)
            rc = bw_vec_push(&stack, bw_ir_source(ir, node, s));
    }
    bw_vec_free(&stack);
    bw_map_free(&seen);
    *count = all ? *count : 0;
    return rc ? bw_fail(session->err, rc, "onnx", "inputs of a decision") : 0;
}

static void specialize(struct bw_onnx_session *session, uint32_t index)
{
    struct bw_onnx_session_input *input = &session->inputs.data[index];
    input->specialized = true;
    sources_mark(session, index, session->decided);
    input->value->fixed = true;
    input->value->tensor = (bw_tensor){0}; /* a constant from now on */
}

/* Decides by evaluating on the values of small inputs. *done: false when the tensor needs more than those. */
static int decide_by_inputs(struct bw_onnx_session *session, struct bw_onnx_value *value, bool *done)
{
    uint32_t input_count = (uint32_t)session->inputs.count, count = 0;
    uint8_t *used = calloc(input_count + 1, 1);
    const void **inputs = calloc(input_count + 1, sizeof *inputs);
    int rc = used && inputs ? specializable_inputs(session, value->tensor, used, &count)
                            : bw_fail(session->err, -ENOMEM, "onnx", "inputs of a decision");
    *done = count > 0;
    for (uint32_t i = 0; !rc && count && i < input_count; i++)
        inputs[i] = session->inputs.data[i].data;
    if (!rc && count)
        rc = evaluate_decision(session, value, inputs, input_count);
    for (uint32_t i = 0; !rc && count && i < input_count; i++)
        if (used[i])
            specialize(session, i);
    free(used);
    free(inputs);
    return rc;
}

int bw_onnx_value_decide(struct bw_onnx_session *session, struct bw_onnx_value *value)
{
    bool done = false;
    int rc = bw_tensor_graph_error(session->graph, session->err);
    if (rc)
        return rc;
    if (value->host) {
        bool model_input = value->input && session->inputs.data[value->input - 1].model_input != UINT32_MAX;
        if (!value->fixed && model_input && value->elements <= BW_ONNX_SPECIALIZE_ELEMENTS_MAX)
            specialize(session, value->input - 1);
        session->dynamic |= !value->fixed;
        bw_onnx_value_decided(session, value);
        return 0;
    }
    if (bw_tensor_is_constant(session->graph, value->tensor))
        return evaluate_decision(session, value, NULL, 0);
    rc = decide_by_inputs(session, value, &done);
    if (rc || done)
        return rc;
    rc = bw_onnx_session_realize(session, &value, 1);
    if (!rc)
        bw_onnx_value_decided(session, value);
    return rc;
}

int bw_onnx_value_realize(struct bw_onnx_session *session, struct bw_onnx_value *value, bool *dynamic)
{
    int rc = bw_tensor_graph_error(session->graph, session->err);
    if (rc)
        return rc;
    if (is_unknown(value) && bw_tensor_is_constant(session->graph, value->tensor))
        rc = evaluate_fixed(session, value, NULL, 0);
    if (!rc && is_unknown(value))
        rc = bw_onnx_session_realize(session, &value, 1);
    for (uint32_t i = 0; !rc && i < value->item_count; i++)
        rc = bw_onnx_value_realize(session, value->items[i], dynamic);
    if (!rc && value->host && !value->fixed) {
        *dynamic = true;
        session->dynamic = true;
    }
    return rc;
}
