/* Running models: importing for the inputs at hand, keeping imports that can be replayed. */
#include "compiler/model_internal.h"

#include <assert.h>
#include <bellwire/graph.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compiler/plan.h"

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- kept imports ---- */

static void entry_free(struct bw_model *model, struct bw_model_entry *entry)
{
    if (!entry)
        return;
    bw_plan_destroy(entry->plan);
    bw_tensor_graph_destroy(entry->graph);
    for (uint32_t i = 0; entry->inputs && i < model->input_count; i++)
        bw_value_free(&entry->inputs[i]);
    for (uint32_t i = 0; entry->outputs && i < model->output_count; i++)
        bw_value_free(&entry->outputs[i].value);
    free(entry->inputs);
    free(entry->outputs);
    free(entry->graph_inputs);
    free(entry->tensors);
    free(entry->index_checks);
    free(entry);
}

void bw_model_plans_destroy(struct bw_model *model)
{
    for (size_t i = 0; i < model->entries.count; i++)
        entry_free(model, model->entries.data[i]);
    bw_vec_free(&model->entries);
    for (uint32_t i = 0; i < BW_MODEL_SEGMENTS_MAX; i++)
        bw_model_segment_free(model, &model->segments[i]);
}

void bw_model_forget(struct bw_model *model)
{
    bw_model_plans_destroy(model);
    bw_model_disks_close(model);
}

static bool same_shape(const struct bw_array *a, const struct bw_array *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]);
}

static uint64_t array_bytes(const struct bw_array *array)
{
    return (uint64_t)bw_array_elements(array) * bw_dtype_bytes(array->dtype);
}

/* Same kinds, shapes, and values where the import is specialised on them. */
static bool entry_fits(const struct bw_model *model, const struct bw_model_entry *entry,
                       const struct bw_value *inputs)
{
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct bw_value *kept = &entry->inputs[i];
        if (kept->kind != inputs[i].kind ||
            (kept->kind == BW_VALUE_ARRAY && !same_shape(&kept->array, &inputs[i].array)))
            return false;
        if (kept->array.data &&
            memcmp(kept->array.data, inputs[i].array.data, array_bytes(&kept->array)) != 0)
            return false;
    }
    return true;
}

static struct bw_model_entry *entry_find(struct bw_model *model, const struct bw_device *device,
                                         const struct bw_value *inputs)
{
    for (size_t i = 0; i < model->entries.count; i++)
        if (model->entries.data[i]->device == device && entry_fits(model, model->entries.data[i], inputs))
            return model->entries.data[i];
    return NULL;
}

static int entry_keep(struct bw_model *model, struct bw_model_entry *entry, struct bw_err *err)
{
    if (model->entries.count == BW_MODEL_ENTRIES_MAX) {
        size_t oldest = 0;
        for (size_t i = 1; i < model->entries.count; i++)
            if (model->entries.data[i]->last_used < model->entries.data[oldest]->last_used)
                oldest = i;
        entry_free(model, model->entries.data[oldest]);
        model->entries.data[oldest] = model->entries.data[--model->entries.count];
    }
    return bw_vec_push(&model->entries, entry) ? bw_fail(err, -ENOMEM, "model", "kept imports") : 0;
}

/* ---- inputs ---- */

static int input_mismatch(const struct bw_declared *declared, struct bw_err *err, const char *what)
{
    return bw_fail(err, -EINVAL, "model", "%s of input '%s'", what, declared->name);
}

/* "[1,3,height,?]": free dimensions by name. */
static void shape_declared(const struct bw_model_value *value, struct bw_text *text)
{
    for (uint32_t i = 0; i < value->rank; i++) {
        const struct bw_model_dim *dim = &value->dims[i];
        bw_text_add(text, i ? "," : "[");
        if (dim->size >= 0)
            bw_text_add(text, "%lld", (long long)dim->size);
        else
            bw_text_add(text, "%s", dim->symbol ? dim->symbol : "?");
    }
    bw_text_add(text, value->rank ? "]" : "[]");
}

static int shape_mismatch(const struct bw_model_value *value, const struct bw_array *array,
                          struct bw_err *err)
{
    struct bw_text expected = {0}, observed = {0};
    struct bw_model_value given = {.rank = array->rank};
    for (uint32_t i = 0; i < array->rank; i++)
        given.dims[i] = (struct bw_model_dim){.size = array->dims[i]};
    shape_declared(value, &expected);
    shape_declared(&given, &observed);
    bw_fail(err, -EINVAL, "model", "shape of input '%s'", value->name);
    bw_err_expected(err, "%s", bw_text_string(&expected));
    bw_err_observed(err, "%s", bw_text_string(&observed));
    bw_text_free(&expected);
    bw_text_free(&observed);
    return -EINVAL;
}

/* An array of a storage type may come as its bytes: other programs and .npy files have no such types. */
static bool dtype_fits(enum bw_dtype declared, enum bw_dtype given)
{
    return given == declared || given == bw_dtype_carrier(declared);
}

/* Integers of a few bits are in bytes that have room for more. */
static int elements_check(const struct bw_declared *declared, const struct bw_array *array,
                          struct bw_err *err)
{
    if (!bw_dtype_is_storage(declared->dtype))
        return 0;
    for (int64_t i = 0; i < bw_array_elements(array); i++) {
        uint8_t byte = ((const uint8_t *)array->data)[i];
        int number = bw_dtype_carrier(declared->dtype) == BW_I8 ? (int8_t)byte : byte;
        if (bw_dtype_storage_fits(declared->dtype, byte))
            continue;
        int rc = bw_fail(err, -ERANGE, "model", "element %lld of input '%s'", (long long)i, declared->name);
        bw_err_expected(err, "%s", bw_dtype_name(declared->dtype));
        bw_err_observed(err, "%d", number);
        return rc;
    }
    return 0;
}

static int array_check(const struct bw_model *model, uint32_t index, const struct bw_array *array,
                       struct bw_err *err)
{
    const struct bw_declared *declared = &model->inputs[index];
    struct bw_model_value value;
    bw_model_input(model, index, &value);
    if (!dtype_fits(declared->dtype, array->dtype)) {
        int rc = input_mismatch(declared, err, "dtype");
        bw_err_expected(err, "%s", bw_dtype_name(declared->dtype));
        bw_err_observed(err, "%s", bw_dtype_name(array->dtype));
        return rc;
    }
    if (array->rank > BW_TENSOR_RANK_MAX)
        return input_mismatch(declared, err, "rank above BW_TENSOR_RANK_MAX");
    if (value.has_shape && value.rank != array->rank)
        return shape_mismatch(&value, array, err);
    for (uint32_t i = 0; i < array->rank; i++)
        if (array->dims[i] < 0 ||
            (value.has_shape && value.dims[i].size >= 0 && value.dims[i].size != array->dims[i]))
            return shape_mismatch(&value, array, err);
    if (!array->data && bw_array_elements(array))
        return input_mismatch(declared, err, "data");
    return elements_check(declared, array, err);
}

static const char *kind_text(enum bw_value_kind kind)
{
    return kind == BW_VALUE_ARRAY      ? "a tensor"
           : kind == BW_VALUE_STRINGS  ? "a tensor of strings"
           : kind == BW_VALUE_SEQUENCE ? "a sequence"
                                       : "nothing";
}

static int inputs_check(const struct bw_model *model, const struct bw_value *inputs, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; !rc && i < model->input_count; i++) {
        const struct bw_declared *declared = &model->inputs[i];
        enum bw_value_kind wanted = declared->sequence  ? BW_VALUE_SEQUENCE
                                    : declared->strings ? BW_VALUE_STRINGS
                                                        : BW_VALUE_ARRAY;
        if (inputs[i].kind == BW_VALUE_NONE && declared->optional)
            continue;
        if (inputs[i].kind != wanted) {
            rc = input_mismatch(declared, err, "kind");
            bw_err_expected(err, "%s", kind_text(wanted));
            bw_err_observed(err, "%s", kind_text(inputs[i].kind));
        }
        if (!rc && wanted == BW_VALUE_ARRAY)
            rc = array_check(model, i, &inputs[i].array, err);
    }
    return rc;
}

/* ---- one import ---- */

struct import {
    struct bw_model *model;
    struct bw_device *device; /* NULL: the evaluator */
    struct bw_onnx_session session;
    struct bw_onnx_value **outputs; /* by model output */
    bool started;
};

static int import_segment(struct bw_onnx_session *session, const bw_tensor *outputs, uint32_t count,
                          void **data, struct bw_err *err)
{
    struct import *import = session->user;
    uint32_t input_count = (uint32_t)session->inputs.count;
    const void **inputs = calloc((size_t)input_count + 1, sizeof *inputs);
    if (!inputs)
        return bw_fail(err, -ENOMEM, "model", "inputs");
    for (uint32_t i = 0; i < input_count; i++)
        inputs[i] = session->inputs.data[i].data;
    int rc = import->device
                 ? bw_model_segment_run(import->model, import->device, session->graph, outputs, count, inputs,
                                        data, err)
                 : bw_tensor_evaluate_with(session->graph, outputs, count, inputs, input_count, data, err);
    free(inputs);
    return rc;
}

static int import_tensor_data(void *user, struct bw_onnx_tensor *tensor, const void **data,
                              struct bw_err *err)
{
    return bw_model_tensor_data(((struct import *)user)->model, tensor, data, err);
}

static struct bw_buffer *import_tensor_range(void *user, const void *data, uint64_t size_bytes)
{
    struct import *import = user;
    return bw_model_range(import->model, import->device, data, size_bytes);
}

static void import_finish(struct import *import)
{
    if (import->started)
        bw_onnx_session_finish(&import->session);
    free(import->outputs);
}

static int import_run(struct import *import, struct bw_model *model, struct bw_device *device,
                      const struct bw_value *inputs, bool may_realize, struct bw_err *err)
{
    struct bw_onnx_session *session = &import->session;
    *import = (struct import){.model = model, .device = device};
    *session = (struct bw_onnx_session){.proto = model->proto,
                                        .run = import_segment,
                                        .tensor_data = import_tensor_data,
                                        .tensor_range = import_tensor_range,
                                        .user = import,
                                        .may_realize = may_realize,
                                        .decided = model->decided,
                                        .model_input_count = model->input_count,
                                        .rng = &model->rng};
    int rc = bw_onnx_session_start(session, err);
    import->started = !rc;
    struct bw_onnx_value **values = calloc(model->proto->graph.input_count + 1, sizeof *values);
    import->outputs = calloc(model->output_count + 1, sizeof *import->outputs);
    if (!rc && (!values || !import->outputs))
        rc = bw_fail(err, -ENOMEM, "model", "values");
    for (uint32_t i = 0; !rc && i < model->input_count; i++) {
        struct bw_value input = inputs[i];
        if (input.kind == BW_VALUE_ARRAY) /* which may have come as its carrier */
            input.array.dtype = model->inputs[i].dtype;
        rc = bw_onnx_session_input(session, &input, i, &values[model->inputs[i].graph_input]);
    }
    if (!rc)
        rc = bw_onnx_session_import(session, values, import->outputs);
    free(values);
    model->stats.imports++;
    model->stats.nodes = session->nodes;
    return rc;
}

/* A value of the import as the caller's: everything is known by now. */
static int value_export(struct bw_onnx_session *session, const struct bw_onnx_value *value,
                        struct bw_value *out, struct bw_err *err)
{
    struct bw_value view = {.kind = value->kind};
    if (value->kind == BW_VALUE_SEQUENCE) {
        *out = (struct bw_value){.kind = BW_VALUE_SEQUENCE,
                                 .items = calloc((size_t)value->item_count + 1, sizeof *out->items)};
        int rc = out->items ? 0 : bw_fail(err, -ENOMEM, "model", "a sequence");
        for (uint32_t i = 0; !rc && i < value->item_count; i++) {
            rc = value_export(session, value->items[i], &out->items[i], err);
            out->item_count = i + 1;
        }
        return rc;
    }
    if (value->kind != BW_VALUE_NONE) {
        assert(value->host);
        view.array = (struct bw_array){
            .dtype = value->dtype, .rank = value->rank, .data = (void *)(uintptr_t)value->host};
        memcpy(view.array.dims, value->dims, value->rank * sizeof value->dims[0]);
    }
    return bw_value_copy(out, &view, err);
}

static int outputs_export(struct import *import, struct bw_value *outputs, struct bw_err *err)
{
    struct bw_model *model = import->model;
    bool dynamic = false;
    int rc = bw_onnx_session_realize(&import->session, import->outputs, model->output_count);
    for (uint32_t i = 0; !rc && i < model->output_count; i++)
        rc = bw_onnx_value_realize(&import->session, import->outputs[i], &dynamic);
    struct bw_value *values = calloc((size_t)model->output_count + 1, sizeof *values);
    if (!rc && !values)
        rc = bw_fail(err, -ENOMEM, "model", "outputs");
    for (uint32_t i = 0; !rc && i < model->output_count; i++)
        rc = value_export(&import->session, import->outputs[i], &values[i], err);
    for (uint32_t i = 0; values && i < model->output_count; i++)
        if (rc)
            bw_value_free(&values[i]);
        else
            outputs[i] = values[i];
    free(values);
    return rc;
}

/* Outputs are memory of the machine whatever computes them: one that is larger than all of it is refused
 * before anything is computed. */
static int outputs_fit(struct import *import, struct bw_err *err)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    uint64_t memory_bytes = pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
    for (uint32_t i = 0; i < import->model->output_count; i++) {
        const struct bw_onnx_value *value = import->outputs[i];
        uint64_t size_bytes = 0;
        char what[160];
        if (value->kind != BW_VALUE_ARRAY || value->host ||
            (!__builtin_mul_overflow((uint64_t)value->elements, bw_dtype_bytes(value->dtype), &size_bytes) &&
             size_bytes <= memory_bytes))
            continue;
        snprintf(what, sizeof what, "its output takes %llu bytes, this machine has %llu",
                 (unsigned long long)size_bytes, (unsigned long long)memory_bytes);
        import->session.err = err;
        return bw_onnx_output_fail(&import->session, i, -ENOMEM, what);
    }
    return 0;
}

/* ---- making an entry of an import ---- */

/* Only arrays that are computed, fixed or handed through can be replayed. */
static bool can_keep(const struct import *import)
{
    if (import->session.dynamic)
        return false;
    for (uint32_t i = 0; i < import->model->output_count; i++)
        if (import->outputs[i]->kind != BW_VALUE_ARRAY)
            return false;
    return true;
}

static int output_row(struct import *import, struct bw_model_entry *entry, uint32_t index, struct bw_err *err)
{
    struct bw_onnx_value *value = import->outputs[index];
    struct bw_output_row *row = &entry->outputs[index];
    row->value =
        (struct bw_value){.kind = BW_VALUE_ARRAY, .array = {.dtype = value->dtype, .rank = value->rank}};
    memcpy(row->value.array.dims, value->dims, value->rank * sizeof value->dims[0]);
    /* Large constants that are not there yet are computed like what depends on inputs: once, where they go.
     */
    bool is_fixed = value->fixed || (!value->host && value->elements <= BW_ONNX_FOLD_ELEMENTS_MAX &&
                                     bw_tensor_is_constant(import->session.graph, value->tensor));
    if (is_fixed) {
        bool dynamic = false;
        int rc = bw_onnx_value_realize(&import->session, value, &dynamic);
        row->source = BW_OUTPUT_FIXED;
        return rc ? rc : value_export(&import->session, value, &row->value, err);
    }
    if (value->input) {
        row->source = BW_OUTPUT_INPUT;
        row->index = import->session.inputs.data[value->input - 1].model_input;
        return 0;
    }
    row->source = BW_OUTPUT_COMPUTED;
    for (row->index = 0; row->index < entry->tensor_count; row->index++)
        if (entry->tensors[row->index].id == value->tensor.id)
            return 0;
    entry->tensors[entry->tensor_count++] = value->tensor;
    return 0;
}

static int entry_inputs(struct import *import, struct bw_model_entry *entry, const struct bw_value *inputs,
                        struct bw_err *err)
{
    struct bw_onnx_session *session = &import->session;
    int rc = 0;
    for (uint32_t i = 0; i < import->model->input_count; i++) {
        entry->inputs[i] = (struct bw_value){.kind = inputs[i].kind, .array = inputs[i].array};
        entry->inputs[i].array.data = NULL;
    }
    for (uint32_t i = 0; !rc && i < session->inputs.count; i++) {
        uint32_t model_input = session->inputs.data[i].model_input;
        assert(model_input < import->model->input_count);
        entry->graph_inputs[entry->graph_input_count++] = model_input;
        if (session->inputs.data[i].specialized)
            rc = bw_value_copy(&entry->inputs[model_input], &inputs[model_input], err);
    }
    return rc;
}

static int entry_make(struct import *import, struct bw_device *device, const struct bw_value *inputs,
                      struct bw_model_entry **result, struct bw_err *err)
{
    struct bw_model *model = import->model;
    struct bw_model_entry *entry = calloc(1, sizeof *entry);
    if (!entry)
        return bw_fail(err, -ENOMEM, "model", "kept import");
    entry->device = device;
    entry->nodes = import->session.nodes;
    entry->inputs = calloc((size_t)model->input_count + 1, sizeof *entry->inputs);
    entry->graph_inputs = calloc(import->session.inputs.count + 1, sizeof *entry->graph_inputs);
    entry->tensors = calloc((size_t)model->output_count + 1, sizeof *entry->tensors);
    entry->outputs = calloc((size_t)model->output_count + 1, sizeof *entry->outputs);
    int rc = entry->inputs && entry->graph_inputs && entry->tensors && entry->outputs
                 ? 0
                 : bw_fail(err, -ENOMEM, "model", "kept import");
    if (!rc)
        rc = entry_inputs(import, entry, inputs, err);
    for (uint32_t i = 0; !rc && i < model->output_count; i++)
        rc = output_row(import, entry, i, err);
    if (rc) {
        entry_free(model, entry);
        return rc;
    }
    entry->graph = import->session.graph;
    import->session.graph = NULL;
    entry->index_checks = import->session.index_checks.data;
    entry->index_check_count = import->session.index_checks.count;
    import->session.index_checks.data = NULL;
    import->session.index_checks.count = import->session.index_checks.capacity = 0;
    *result = entry;
    return 0;
}

/* ---- replay ---- */

static int entry_compute(struct bw_model *model, struct bw_model_entry *entry, const struct bw_value *inputs,
                         void **data, struct bw_err *err)
{
    const void **pointers = calloc((size_t)entry->graph_input_count + 1, sizeof *pointers);
    int rc = pointers ? 0 : bw_fail(err, -ENOMEM, "model", "inputs");
    for (uint32_t i = 0; !rc && i < entry->graph_input_count; i++)
        pointers[i] = inputs[entry->graph_inputs[i]].array.data;
    if (!rc && !entry->device)
        rc = bw_tensor_evaluate_with(entry->graph, entry->tensors, entry->tensor_count, pointers,
                                     entry->graph_input_count, data, err);
    else if (!rc &&
             !(rc = bw_model_outputs_alloc(entry->graph, entry->tensors, entry->tensor_count, data, err))) {
        rc = bw_plan_run(entry->plan, pointers, data, err);
        if (!rc)
            rc = bw_model_plan_ran(model, entry->plan, err);
    }
    free(pointers);
    return rc;
}

/* One output; *taken: the computed data went into it. */
static int entry_output(const struct bw_output_row *row, const struct bw_value *inputs, void *const *data,
                        bool *taken, struct bw_value *out, struct bw_err *err)
{
    struct bw_value view = row->value;
    if (row->source == BW_OUTPUT_INPUT)
        view.array.data = inputs[row->index].array.data;
    if (row->source == BW_OUTPUT_COMPUTED && !*taken) {
        *out = row->value;
        out->array.data = data[row->index];
        *taken = true;
        return 0;
    }
    if (row->source == BW_OUTPUT_COMPUTED)
        view.array.data = data[row->index];
    return bw_value_copy(out, &view, err);
}

static int entry_run(struct bw_model *model, struct bw_model_entry *entry, const struct bw_value *inputs,
                     struct bw_value *outputs, struct bw_err *err)
{
    void **data = calloc((size_t)entry->tensor_count + 1, sizeof *data);
    bool *taken = calloc((size_t)entry->tensor_count + 1, sizeof *taken);
    struct bw_value *values = calloc((size_t)model->output_count + 1, sizeof *values);
    int rc = data && taken && values ? 0 : bw_fail(err, -ENOMEM, "model", "outputs");
    for (size_t i = 0; !rc && i < entry->index_check_count; i++) {
        uint32_t input = entry->index_checks[i].model_input;
        rc = bw_onnx_indexes_within(model->proto, &entry->index_checks[i], &inputs[input].array, err);
        model->decided[input] |= rc != 0;
    }
    if (!rc && entry->tensor_count)
        rc = entry_compute(model, entry, inputs, data, err);
    bool ignored = false;
    for (uint32_t i = 0; !rc && i < model->output_count; i++) {
        const struct bw_output_row *row = &entry->outputs[i];
        bool computed = row->source == BW_OUTPUT_COMPUTED;
        rc = entry_output(row, inputs, data, computed ? &taken[row->index] : &ignored, &values[i], err);
    }
    for (uint32_t i = 0; data && taken && i < entry->tensor_count; i++)
        if (!taken[i])
            free(data[i]);
    for (uint32_t i = 0; values && i < model->output_count; i++)
        if (rc)
            bw_value_free(&values[i]);
        else
            outputs[i] = values[i];
    free(data);
    free(taken);
    free(values);
    entry->last_used = model->stats.runs;
    model->stats.nodes = entry->nodes;
    return rc;
}

/* ---- the public functions ---- */

static int run_fresh(struct bw_model *model, struct bw_device *device, const struct bw_value *inputs,
                     struct bw_value *outputs, struct bw_err *err)
{
    struct import import;
    struct bw_model_entry *entry = NULL;
    double start = seconds_now();
    int rc = import_run(&import, model, device, inputs, true, err);
    model->stats.import_seconds = seconds_now() - start;
    if (!rc)
        rc = outputs_fit(&import, err);
    if (!rc && can_keep(&import)) {
        rc = entry_make(&import, device, inputs, &entry, err);
        if (!rc && device && entry->tensor_count)
            rc = bw_model_plan_create(model, device, entry->graph, entry->tensors, entry->tensor_count,
                                      &entry->plan, err);
        if (!rc)
            rc = entry_run(model, entry, inputs, outputs, err);
        if (rc || entry_keep(model, entry,
                             NULL)) /* not kept for lack of memory: the outputs are right all the same */
            entry_free(model, entry);
    } else if (!rc) {
        rc = outputs_export(&import, outputs, err);
    }
    import_finish(&import);
    model->stats.run_seconds = seconds_now() - start - model->stats.import_seconds;
    return rc;
}

static int run(struct bw_model *model, struct bw_device *device, const struct bw_value *inputs,
               struct bw_value *outputs, struct bw_err *err)
{
    memset(model->decided, 0, model->input_count * sizeof *model->decided);
    int rc = inputs_check(model, inputs, err);
    if (rc)
        return rc;
    model->stats.runs++;
    model->stats.plan = (struct bw_plan_stats){0};
    bw_model_profiles_drop(model);
    struct bw_model_entry *entry = entry_find(model, device, inputs);
    model->stats.replayed = entry != NULL;
    if (!entry)
        return run_fresh(model, device, inputs, outputs, err);
    double start = seconds_now();
    model->stats.import_seconds = 0;
    for (uint32_t i = 0; i < model->input_count; i++)
        model->decided[i] = entry->inputs[i].array.data != NULL;
    rc = entry_run(model, entry, inputs, outputs, err);
    model->stats.run_seconds = seconds_now() - start;
    return rc;
}

int bw_model_run(struct bw_model *model, struct bw_device *device, const struct bw_value *inputs,
                 struct bw_value *outputs, struct bw_err *err)
{
    struct bw_err local = {0};
    if (!err)
        err = &local; /* messages are read back while importing */
    int rc = run(model, device, inputs, outputs, err);
    if (rc)
        bw_model_err_name(model, err);
    return rc;
}

void bw_model_profile(struct bw_model *model, bool on)
{
    model->profile = on;
}

uint32_t bw_model_profiles(const struct bw_model *model, const struct bw_profile *const **profiles)
{
    *profiles = (const struct bw_profile *const *)model->profiles.data;
    return (uint32_t)model->profiles.count;
}

int bw_model_graph(struct bw_model *model, const struct bw_value *inputs, struct bw_tensor_graph **graph,
                   bw_tensor **outputs, uint32_t *output_count, struct bw_err *err)
{
    struct bw_err local = {0};
    struct import import;
    if (!err)
        err = &local;
    memset(model->decided, 0, model->input_count * sizeof *model->decided);
    int rc = inputs_check(model, inputs, err);
    if (rc)
        return rc;
    rc = import_run(&import, model, NULL, inputs, false, err);
    bw_tensor *tensors = rc ? NULL : calloc((size_t)model->output_count + 1, sizeof *tensors);
    if (!rc && !tensors)
        rc = bw_fail(err, -ENOMEM, "model", "outputs");
    for (uint32_t i = 0; !rc && i < model->output_count; i++) {
        if (import.outputs[i]->kind != BW_VALUE_ARRAY)
            rc = bw_fail(err, -ENOTSUP, "model", "output '%s' is no tensor", model->outputs[i].name);
        else
            tensors[i] = bw_onnx_tensor_of(&import.session, import.outputs[i]);
    }
    if (!rc)
        rc = bw_tensor_graph_error(import.session.graph, err);
    if (rc) {
        bw_model_err_name(model, err);
        free(tensors);
    } else {
        *graph = import.session.graph;
        *outputs = tensors;
        *output_count = model->output_count;
        import.session.graph = NULL;
    }
    import_finish(&import);
    return rc;
}

void bw_model_stats(const struct bw_model *model, struct bw_model_stats *stats)
{
    *stats = model->stats;
}
