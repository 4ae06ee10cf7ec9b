/* Models: files, declared inputs and outputs, bound dimensions. Running is in model_run.c. */
#include "compiler/model_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "compiler/io.h"

/* ---- loading ---- */

static const char *symbol_name(struct bw_model *model, bw_symbol symbol)
{
    struct bw_bytes bytes = model->proto->symbols.data[symbol];
    char *name = bw_arena_alloc(&model->arena, bytes.size_bytes + 1);
    if (name && bytes.size_bytes)
        memcpy(name, bytes.data, bytes.size_bytes);
    return name;
}

static bool has_initializer(const struct bw_onnx_graph *graph, bw_symbol symbol)
{
    for (uint32_t i = 0; i < graph->initializer_count; i++)
        if (graph->initializers[i].symbol == symbol)
            return true;
    return false;
}

static int declared_fill(struct bw_model *model, const struct bw_onnx_value_info *info,
                         struct bw_declared *declared, struct bw_err *err)
{
    const struct bw_onnx_type *type = &info->type;
    declared->name = symbol_name(model, info->symbol);
    declared->optional = type->kind == BW_ONNX_KIND_OPTIONAL;
    if (declared->optional && type->element)
        type = type->element;
    declared->sequence = type->kind == BW_ONNX_KIND_SEQUENCE;
    declared->strings = type->kind == BW_ONNX_KIND_TENSOR && type->dtype == BW_ONNX_STRING;
    declared->dtype = type->kind == BW_ONNX_KIND_TENSOR ? bw_onnx_dtype_of(type->dtype) : BW_VOID;
    declared->has_shape = type->kind == BW_ONNX_KIND_TENSOR && type->has_shape;
    declared->rank = declared->has_shape ? type->rank : 0;
    if (type->kind == BW_ONNX_KIND_OTHER)
        return bw_fail(err, -ENOTSUP, "onnx", "byte %llu: '%s' is a map or a sparse tensor",
                       (unsigned long long)info->offset,
                       bw_onnx_text(model->proto->symbols.data[info->symbol]).text);
    for (uint32_t i = 0; i < declared->rank; i++) {
        declared->dims[i].size = type->dims[i].value;
        bw_symbol symbol = bw_onnx_intern(model->proto, type->dims[i].symbol);
        if (symbol == UINT32_MAX)
            return bw_fail(err, -ENOMEM, "onnx", "names");
        declared->dims[i].symbol = symbol && type->dims[i].value < 0 ? symbol_name(model, symbol) : NULL;
    }
    return declared->name ? 0 : bw_fail(err, -ENOMEM, "onnx", "names");
}

static int declare(struct bw_model *model, struct bw_err *err)
{
    const struct bw_onnx_graph *graph = &model->proto->graph;
    model->inputs = bw_arena_alloc(&model->arena, graph->input_count * sizeof *model->inputs);
    model->outputs = bw_arena_alloc(&model->arena, graph->output_count * sizeof *model->outputs);
    model->decided = bw_arena_alloc(&model->arena, graph->input_count * sizeof *model->decided);
    if (!model->inputs || !model->outputs || !model->decided)
        return bw_fail(err, -ENOMEM, "onnx", "declarations");
    int rc = 0;
    for (uint32_t i = 0; !rc && i < graph->input_count; i++) {
        if (has_initializer(
                graph, graph->inputs[i].symbol)) /* before IR version 4, initializers were listed as inputs */
            continue;
        model->inputs[model->input_count].graph_input = i;
        rc = declared_fill(model, &graph->inputs[i], &model->inputs[model->input_count++], err);
    }
    for (uint32_t i = 0; !rc && i < graph->output_count; i++)
        rc = declared_fill(model, &graph->outputs[i], &model->outputs[model->output_count++], err);
    return rc;
}

static int load(struct bw_model *model, struct bw_bytes file, struct bw_model **result, struct bw_err *err)
{
    int rc = bw_onnx_parse(file, &model->proto, err);
    if (!rc)
        rc = declare(model, err);
    if (rc) {
        bw_model_err_name(model, err);
        bw_model_destroy(model);
        return rc;
    }
    *result = model;
    return 0;
}

static struct bw_model *model_new(struct bw_err *err)
{
    struct bw_model *model = calloc(1, sizeof *model);
    if (!model)
        bw_fail(err, -ENOMEM, "onnx", "model");
    return model;
}

static int map_file(struct bw_model *model, const char *path, struct bw_err *err)
{
    int fd;
    uint64_t size_bytes = 0;
    int code =
        bw_file_open(path, false, &fd, &size_bytes, err); /* weights stay in the file: a pipe is none */
    if (code == -EINVAL)
        bw_err_hint(err, "save the model to a file first");
    if (code)
        return code;
    if (size_bytes == 0) {
        close(fd);
        return bw_fail(err, -EBADMSG, "onnx", "%s is empty", path);
    }
    void *address = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    code = -errno;
    if (address == MAP_FAILED) {
        close(fd);
        return bw_fail(err, code, "onnx", "%s cannot be mapped", path);
    }
    code = bw_model_mapping_keep(model, (struct bw_onnx_mapping){address, size_bytes, 0, fd}, err);
    if (code)
        munmap(address, size_bytes);
    return code;
}

void bw_model_err_name(const struct bw_model *model, struct bw_err *err)
{
    if (err && model->path && !strcmp(err->subsystem, "onnx"))
        bw_file_err_name(model->path, err);
}

int bw_model_load(const char *path, struct bw_model **model, struct bw_err *err)
{
    struct bw_model *loaded = model_new(err);
    if (!loaded)
        return -ENOMEM;
    int rc = map_file(loaded, path, err);
    const char *slash = strrchr(path, '/');
    loaded->directory = bw_arena_string(&loaded->arena, slash ? path : ".");
    loaded->path = bw_arena_string(&loaded->arena, path);
    if (!rc && (!loaded->directory || !loaded->path))
        rc = bw_fail(err, -ENOMEM, "onnx", "model");
    if (rc) {
        bw_model_destroy(loaded);
        return rc;
    }
    if (slash)
        loaded->directory[slash == path ? 1 : slash - path] = 0;
    const struct bw_onnx_mapping *file = &loaded->mappings.data[0];
    return load(loaded, (struct bw_bytes){file->address, file->size_bytes}, model, err);
}

int bw_model_load_bytes(const void *data, uint64_t size_bytes, struct bw_model **model, struct bw_err *err)
{
    struct bw_model *loaded = model_new(err);
    return loaded ? load(loaded, (struct bw_bytes){data, size_bytes}, model, err) : -ENOMEM;
}

void bw_model_destroy(struct bw_model *model)
{
    if (!model)
        return;
    bw_model_plans_destroy(model);
    bw_model_profiles_drop(model);
    bw_vec_free(&model->profiles);
    bw_onnx_free(model->proto);
    bw_model_files_close(model);
    bw_vec_free(&model->bindings);
    bw_arena_free(&model->arena);
    free(model);
}

int bw_model_tensor_data(void *user, struct bw_onnx_tensor *tensor, const void **data, struct bw_err *err)
{
    struct bw_model *model = user;
    struct bw_onnx_mapping external = {0};
    bool decoded_before = tensor->decoded != NULL;
    if (tensor->external && tensor->mapped) {
        *data = tensor->mapped;
        return 0;
    }
    int rc = bw_onnx_tensor_data(tensor, model->proto->file.data, model->directory, data, &external, err);
    int kept = external.address ? bw_model_mapping_keep(model, external, err) : 0;
    if (kept) {
        munmap(external.address, external.size_bytes);
        return kept;
    }
    if (!rc && external.address)
        tensor->mapped = *data;
    if (!rc && tensor->decoded && !decoded_before && bw_vec_push(&model->proto->decoded, tensor->decoded)) {
        free(tensor->decoded);
        tensor->decoded = NULL;
        return bw_fail(err, -ENOMEM, "onnx", "decoded tensors");
    }
    return rc;
}

/* ---- declarations and bindings ---- */

uint32_t bw_model_input_count(const struct bw_model *model)
{
    return model->input_count;
}

uint32_t bw_model_output_count(const struct bw_model *model)
{
    return model->output_count;
}

/* The size that a dimension has: fixed, bound by its symbol, or bound by the input's own shape. */
static int64_t dim_size(const struct bw_model *model, const struct bw_declared *declared, uint32_t axis)
{
    if (declared->dims[axis].size >= 0)
        return declared->dims[axis].size;
    if (declared->shape_bound)
        return declared->bound[axis];
    for (size_t i = 0; declared->dims[axis].symbol && i < model->bindings.count; i++)
        if (!strcmp(model->bindings.data[i].symbol, declared->dims[axis].symbol))
            return model->bindings.data[i].size;
    return -1;
}

static void describe(const struct bw_model *model, const struct bw_declared *declared,
                     struct bw_model_value *value)
{
    *value = (struct bw_model_value){.name = declared->name,
                                     .dtype = declared->dtype,
                                     .has_shape = declared->has_shape || declared->shape_bound,
                                     .rank = declared->rank};
    value->kind = declared->optional   ? BW_VALUE_NONE
                  : declared->sequence ? BW_VALUE_SEQUENCE
                  : declared->strings  ? BW_VALUE_STRINGS
                                       : BW_VALUE_ARRAY;
    for (uint32_t i = 0; i < declared->rank; i++)
        value->dims[i] = (struct bw_model_dim){dim_size(model, declared, i), declared->dims[i].symbol};
}

void bw_model_input(const struct bw_model *model, uint32_t index, struct bw_model_value *value)
{
    assert(index < model->input_count);
    describe(model, &model->inputs[index], value);
}

bool bw_model_input_decided(const struct bw_model *model, uint32_t index)
{
    assert(index < model->input_count);
    return model->decided[index];
}

void bw_model_output(const struct bw_model *model, uint32_t index, struct bw_model_value *value)
{
    assert(index < model->output_count);
    describe(model, &model->outputs[index], value);
}

int bw_model_bind(struct bw_model *model, const char *symbol, int64_t size, struct bw_err *err)
{
    const char *known = NULL;
    char list[160] = "";
    if (size < 0)
        return bw_fail(err, -EINVAL, "model", "dimension '%s' of size %lld", symbol, (long long)size);
    for (uint32_t i = 0; i < model->input_count; i++)
        for (uint32_t axis = 0; axis < model->inputs[i].rank; axis++) {
            const char *name = model->inputs[i].dims[axis].symbol;
            if (!name)
                continue;
            if (!strcmp(name, symbol))
                known = name;
            if (!strstr(list, name) && strlen(list) + strlen(name) + 2 < sizeof list)
                strcat(strcat(list, " "), name);
        }
    if (!known) {
        int rc = bw_fail(err, -ENOENT, "model", "no input has a dimension '%s'", symbol);
        bw_err_hint(err, "free dimensions:%s", list[0] ? list : " none");
        return rc;
    }
    for (size_t i = 0; i < model->bindings.count; i++)
        if (model->bindings.data[i].symbol == known || !strcmp(model->bindings.data[i].symbol, known)) {
            model->bindings.data[i].size = size;
            return 0;
        }
    struct bw_binding binding = {known, size};
    return bw_vec_push(&model->bindings, binding) ? bw_fail(err, -ENOMEM, "model", "bindings") : 0;
}

int bw_model_bind_shape(struct bw_model *model, const char *input, uint32_t rank, const int64_t *dims,
                        struct bw_err *err)
{
    struct bw_declared *declared = NULL;
    for (uint32_t i = 0; i < model->input_count; i++)
        if (!strcmp(model->inputs[i].name, input))
            declared = &model->inputs[i];
    if (!declared)
        return bw_fail(err, -ENOENT, "model", "no input '%s'", input);
    if (rank > BW_TENSOR_RANK_MAX || (declared->has_shape && rank != declared->rank)) {
        int rc = bw_fail(err, -EINVAL, "model", "shape of input '%s'", declared->name);
        bw_err_expected(err, "rank %u", declared->rank);
        bw_err_observed(err, "rank %u", rank);
        return rc;
    }
    for (uint32_t i = 0; i < rank; i++) {
        bool fits = dims[i] >= 0 &&
                    (!declared->has_shape || declared->dims[i].size < 0 || declared->dims[i].size == dims[i]);
        if (!fits) {
            int rc = bw_fail(err, -EINVAL, "model", "dimension %u of input '%s'", i, declared->name);
            bw_err_expected(err, "%lld", (long long)(declared->has_shape ? declared->dims[i].size : 0));
            bw_err_observed(err, "%lld", (long long)dims[i]);
            return rc;
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        declared->bound[i] = dims[i];
        if (!declared->has_shape)
            declared->dims[i].size = -1;
    }
    declared->rank = rank;
    declared->shape_bound = true;
    /* What the symbols stand for here, they stand for everywhere. */
    int rc = 0;
    for (uint32_t i = 0; !rc && i < rank; i++)
        if (declared->dims[i].symbol)
            rc = bw_model_bind(model, declared->dims[i].symbol, dims[i], err);
    return rc;
}

/* One dimension of a shape of that rank: the size that it has, or some. */
static void shape_example(struct bw_text *text, uint32_t index, int64_t size)
{
    enum { SOME_SIZE = 64, BATCH_SIZE = 1 };
    bw_text_add(text, "%s%lld", index ? "x" : "",
                (long long)(size >= 0 ? size
                            : index   ? SOME_SIZE
                                      : BATCH_SIZE));
}

int bw_model_input_shape(const struct bw_model *model, uint32_t index, uint32_t *rank, int64_t *dims,
                         struct bw_err *err)
{
    assert(index < model->input_count);
    const struct bw_declared *declared = &model->inputs[index];
    if (!declared->has_shape && !declared->shape_bound) {
        int rc = bw_fail(err, -EINVAL, "model", "input '%s' has no shape in the file", declared->name);
        bw_err_hint(err, "give it one: %s=1x3x48x320", declared->name);
        return rc;
    }
    *rank = declared->rank;
    for (uint32_t i = 0; i < declared->rank; i++) {
        dims[i] = dim_size(model, declared, i);
        if (dims[i] < 0) {
            const char *symbol = declared->dims[i].symbol;
            int rc = bw_fail(err, -EINVAL, "model", "dimension %u%s%s%s of input '%s' is free", i,
                             symbol ? " (" : "", symbol ? symbol : "", symbol ? ")" : "", declared->name);
            struct bw_text text = {0};
            for (uint32_t k = 0; k < declared->rank; k++)
                shape_example(&text, k, dim_size(model, declared, k));
            bw_err_hint(err, "bind it, or give the whole shape, as %s=%s", declared->name,
                        bw_text_string(&text));
            bw_text_free(&text);
            return rc;
        }
    }
    return 0;
}
