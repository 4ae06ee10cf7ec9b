/* Inputs of `bellwire run`: shapes, files, made-up values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "compiler/io.h"
#include "compiler/io_npy.h"
#include "tools/run.h"
#include "tools/tool.h"

enum {
    INTEGER_BELOW = 10,     /* made-up integers: small, so that they are indexes into most things */
    ELEMENTS_MAX = 1 << 30, /* of a made-up input: 4 GiB of floats; more is a mistyped shape */
};

static const uint64_t FILE_BYTES_MAX = 1ull << 36; /* 64 GiB: beyond the memory of what runs this */

/* ---- --shape ---- */

static bool parse_dims(const char *text, uint32_t *rank, int64_t *dims)
{
    *rank = 0;
    for (const char *at = text;; at++) {
        uint64_t size;
        if (*rank == BW_TENSOR_RANK_MAX || bw_number_take(&at, &size) || size > INT64_MAX ||
            (*at && *at != 'x'))
            return false;
        dims[(*rank)++] = (int64_t)size;
        if (!*at)
            return true;
    }
}

static int usage_fail(const struct bw_err *err)
{
    bw_tool_fail(err);
    return BW_TOOL_USAGE;
}

/* What names there are, for a hint. */
static void inputs_hint(const struct bw_model *model, struct bw_err *err)
{
    char text[160] = "";
    size_t length = 0;
    for (uint32_t i = 0; i < bw_model_input_count(model) && length < sizeof text; i++) {
        struct bw_model_value value;
        bw_model_input(model, i, &value);
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? ", " : "", value.name);
    }
    bw_err_hint(err, "its inputs are: %s", text[0] ? text : "none");
}

/* Whether an earlier --shape names this input, too: "@0" and its name, say. */
static bool shape_bound(const struct bw_run *run, const struct bw_run_binding *binding, const char *name,
                        uint32_t index)
{
    for (const struct bw_run_binding *other = run->shapes.data; other < binding; other++)
        if (bw_run_names(other, name, index))
            return true;
    return false;
}

static int shape_bind(struct bw_run *run, const struct bw_run_binding *binding)
{
    struct bw_err err = {0};
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    if (!parse_dims(binding->text, &rank, dims))
        return bw_tool_usage(run->tool, "--shape %s: expected sizes like 1x3x48x320", binding->name);
    for (uint32_t i = 0; i < bw_model_input_count(run->model); i++) {
        struct bw_model_value value;
        bw_model_input(run->model, i, &value);
        if (!bw_run_names(binding, value.name, i))
            continue;
        if (shape_bound(run, binding, value.name, i))
            return bw_tool_usage(run->tool, "--shape %s: given twice", value.name);
        return bw_model_bind_shape(run->model, value.name, rank, dims, &err) ? usage_fail(&err)
                                                                             : BW_TOOL_DONE;
    }
    char symbol[256];
    snprintf(symbol, sizeof symbol, "%.*s", (int)binding->name_bytes, binding->name);
    int rc = rank == 1 ? bw_model_bind(run->model, symbol, dims[0], &err)
                       : bw_fail(&err, -ENOENT, run->tool, "--shape %s: no such input", symbol);
    if (rc && !err.hint[0])
        inputs_hint(run->model, &err);
    return rc ? usage_fail(&err) : BW_TOOL_DONE;
}

int bw_run_shapes_bind(struct bw_run *run)
{
    int status = BW_TOOL_DONE;
    for (size_t i = 0; i < run->shapes.count && !status; i++)
        status = shape_bind(run, &run->shapes.data[i]);
    return status;
}

/* ---- files ---- */

static bool starts_with(const uint8_t *data, uint64_t size_bytes, const char *magic)
{
    return size_bytes >= strlen(magic) && !memcmp(data, magic, strlen(magic));
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length > end_length && !strcmp(text + length - end_length, end);
}

int bw_run_file_read(const char *path, const struct bw_model_value *declared,
                     const struct bw_run_picture_options *options, struct bw_value *value, struct bw_err *err)
{
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_file_read(path, FILE_BYTES_MAX, &data, &size_bytes, err);
    if (rc)
        return rc;
    if (starts_with(data, size_bytes, "\x89PNG") || ends_with(path, ".png"))
        rc = bw_run_picture_parse(path, data, size_bytes, declared, options, value, err);
    else if (starts_with(data, size_bytes, "\x93NUMPY") || ends_with(path, ".npy"))
        rc = bw_npy_parse(path, data, size_bytes, value, err);
    else if (size_bytes && (ends_with(path, ".pb") || ends_with(path, ".onnx")))
        rc = bw_pb_parse(path, data, size_bytes, declared->kind, value, err);
    else
        rc = bw_fail(err, -EINVAL, "file", "%s is no .npy, .pb or .png", path);
    free(data);
    return rc;
}

/* ---- typed values ---- */

bool bw_run_is_typed(const struct bw_run_binding *binding)
{
    size_t length = strcspn(binding->text, ":");
    return binding->text[length] && bw_tool_dtype_named(binding->text, length) != BW_VOID;
}

/* What was typed as a list, in the shape that is declared, if it can have that. */
static void typed_shape(const struct bw_model_value *declared, struct bw_array *array)
{
    int64_t count = array->dims[0], known = 1;
    uint32_t free_axes = 0, free_axis = 0;
    for (uint32_t i = 0; i < declared->rank; i++) {
        if (declared->dims[i].size < 0) {
            free_axis = i;
            free_axes++;
        } else if (__builtin_mul_overflow(known, declared->dims[i].size, &known)) {
            return;
        }
    }
    if (!declared->has_shape && count == 1)
        array->rank = 0;
    if (!declared->has_shape || free_axes > 1 || !known || count % known || (!free_axes && count != known))
        return;
    array->rank = declared->rank;
    for (uint32_t i = 0; i < declared->rank; i++)
        array->dims[i] = declared->dims[i].size;
    if (free_axes)
        array->dims[free_axis] = count / known;
}

static int typed_read(const struct bw_run *run, const char *option, const struct bw_run_binding *binding,
                      const struct bw_model_value *declared, struct bw_value *value)
{
    size_t length = strcspn(binding->text, ":");
    enum bw_dtype dtype = bw_tool_dtype_named(binding->text, length);
    char wrong[BW_TOOL_NUMBER_BYTES];
    int rc = bw_tool_elements_parse(dtype, binding->text + length + 1, value, wrong);
    if (rc)
        return rc == -ENOMEM
                   ? bw_tool_usage(run->tool, "%s %s: more than there is memory", option, binding->name)
                   : bw_tool_usage(run->tool, "%s %s: '%s' is not of type %s%s", option, binding->name, wrong,
                                   bw_dtype_name(dtype), dtype == BW_BOOL ? ", which is 0 or 1" : "");
    typed_shape(declared, &value->array);
    return BW_TOOL_DONE;
}

/* No such file: it may be that a value was meant. */
static void typed_hint(const char *option, const struct bw_run_binding *binding,
                       const struct bw_model_value *declared, struct bw_err *err)
{
    const char *at = binding->text;
    double number;
    int name_bytes = (int)binding->name_bytes;
    if (err->code != -ENOENT)
        return;
    if (!bw_real_take(&at, &number) && (!*at || *at == ','))
        bw_err_hint(err, "no such file; a value is typed behind its type: %s %.*s=%s:%s", option, name_bytes,
                    binding->name,
                    bw_dtype_name(declared->dtype ? bw_dtype_carrier(declared->dtype) : BW_F32),
                    binding->text);
    else if (strchr(binding->text, ':') && !strchr(binding->text, '/'))
        bw_err_hint(
            err,
            "no such file; a value is typed behind its type, one of bool, i8, u8, .., f16, bf16, f32, "
            "f64: %s %.*s=i64:1",
            option, name_bytes, binding->name);
}

int bw_run_value_read(const struct bw_run *run, const char *option, const struct bw_run_binding *binding,
                      const struct bw_model_value *declared, struct bw_value *value)
{
    struct bw_err err = {0};
    if (bw_run_is_typed(binding))
        return typed_read(run, option, binding, declared, value);
    if (!bw_run_file_read(binding->text, declared, &run->picture, value, &err))
        return BW_TOOL_DONE;
    typed_hint(option, binding, declared, &err);
    return bw_tool_fail(&err);
}

/* Free dimensions with a name get the size that the file has, for the other inputs that share it. */
static void symbols_learn(struct bw_run *run, const struct bw_model_value *declared,
                          const struct bw_value *value)
{
    if (value->kind != BW_VALUE_ARRAY || !declared->has_shape || declared->rank != value->array.rank)
        return;
    for (uint32_t i = 0; i < declared->rank; i++)
        if (declared->dims[i].size < 0 && declared->dims[i].symbol)
            bw_model_bind(run->model, declared->dims[i].symbol, value->array.dims[i], NULL);
}

static int files_read(struct bw_run *run)
{
    for (size_t k = 0; k < run->inputs.count; k++) {
        const struct bw_run_binding *binding = &run->inputs.data[k];
        uint32_t count = bw_model_input_count(run->model), i = 0;
        struct bw_model_value declared;
        struct bw_err err = {0};
        for (; i < count; i++) {
            bw_model_input(run->model, i, &declared);
            if (bw_run_names(binding, declared.name, i))
                break;
        }
        if (i == count) {
            bw_fail(&err, -ENOENT, run->tool, "--input %s: no such input", binding->name);
            inputs_hint(run->model, &err);
            return usage_fail(&err);
        }
        if (run->values[i].kind != BW_VALUE_NONE)
            return bw_tool_usage(run->tool, "--input %s: given twice", declared.name);
        int status = bw_run_value_read(run, "--input", binding, &declared, &run->values[i]);
        if (status)
            return status;
        symbols_learn(run, &declared, &run->values[i]);
    }
    return BW_TOOL_DONE;
}

/* ---- made-up values ---- */

/* Any integer of the type; a float from -1 to 1. */
static uint8_t storage_make(enum bw_dtype dtype, struct bw_rng *rng)
{
    for (;;) {
        uint8_t byte = (uint8_t)bw_rng_below(rng, 1 << 8);
        double value = bw_dtype_storage_value(dtype, byte);
        if (bw_dtype_storage_fits(dtype, byte) && (bw_dtype_is_int(dtype) || (value >= -1 && value <= 1)))
            return byte;
    }
}

static void element_make(struct bw_array *array, int64_t i, struct bw_rng *rng)
{
    if (bw_dtype_is_storage(array->dtype)) {
        ((uint8_t *)array->data)[i] = storage_make(array->dtype, rng);
        return;
    }
    double unit = 2 * bw_rng_unit(rng) - 1;
    uint64_t integer = bw_rng_below(rng, INTEGER_BELOW);
    switch (array->dtype) {
    case BW_F32:
        ((float *)array->data)[i] = (float)unit;
        return;
    case BW_F64:
        ((double *)array->data)[i] = unit;
        return;
    case BW_F16:
        ((uint16_t *)array->data)[i] = bw_f16_from_f64(unit);
        return;
    case BW_BF16:
        ((uint16_t *)array->data)[i] = bw_bf16_from_f64(unit);
        return;
    case BW_BOOL:
        ((uint8_t *)array->data)[i] = integer & 1;
        return;
    default: /* little endian, small: the same bytes for every integer type */
        memcpy((char *)array->data + (uint64_t)i * bw_dtype_bytes(array->dtype), &integer,
               bw_dtype_bytes(array->dtype));
    }
}

static int value_make(struct bw_run *run, uint32_t index, const struct bw_model_value *declared)
{
    struct bw_err err = {0};
    struct bw_array array = {.dtype = declared->dtype};
    if (declared->kind == BW_VALUE_NONE)
        return BW_TOOL_DONE;
    if (declared->kind != BW_VALUE_ARRAY) {
        bw_fail(&err, -EINVAL, run->tool, "input '%s' is a %s", declared->name,
                declared->kind == BW_VALUE_SEQUENCE ? "sequence" : "tensor of strings");
        bw_err_hint(&err, "give it: --input %s=FILE.pb", declared->name);
        return usage_fail(&err);
    }
    if (bw_model_input_shape(run->model, index, &array.rank, array.dims, &err)) {
        char hint[sizeof err.hint];
        memcpy(hint, err.hint, sizeof hint);
        bw_err_hint(&err, "with --shape: %s; or give the input: --input %s=FILE", hint, declared->name);
        return usage_fail(&err);
    }
    uint64_t elements = 1;
    for (uint32_t i = 0; i < array.rank; i++)
        if (__builtin_mul_overflow(elements, (uint64_t)array.dims[i], &elements) || elements > ELEMENTS_MAX) {
            bw_fail(&err, -E2BIG, run->tool, "input '%s' has more than %d elements", declared->name,
                    ELEMENTS_MAX);
            return usage_fail(&err);
        }
    array.data = malloc(elements * bw_dtype_bytes(array.dtype) + 1);
    if (!array.data) {
        bw_fail(&err, -ENOMEM, run->tool, "input '%s'", declared->name);
        return bw_tool_fail(&err);
    }
    struct bw_rng rng = {.state = run->seed * 1000003 + index}; /* inputs do not depend on each other */
    for (uint64_t i = 0; i < elements; i++)
        element_make(&array, (int64_t)i, &rng);
    run->values[index] = (struct bw_value){.kind = BW_VALUE_ARRAY, .array = array};
    run->made_up[index] = true;
    return BW_TOOL_DONE;
}

int bw_run_inputs_make(struct bw_run *run)
{
    int status = files_read(run);
    for (uint32_t i = 0; i < bw_model_input_count(run->model) && !status; i++) {
        struct bw_model_value declared;
        bw_model_input(run->model, i, &declared);
        if (run->values[i].kind == BW_VALUE_NONE)
            status = value_make(run, i, &declared);
    }
    return status;
}
