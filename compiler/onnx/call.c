/* What op functions read and write: see import.h. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/onnx/import.h"
#include "compiler/onnx/ops.h"

int bw_onnx_fail(struct bw_onnx_call *c, int code, const char *format, ...)
{
    char what[160];
    va_list arguments;
    if (c->rc)
        return c->rc;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    c->rc = bw_onnx_node_fail(c->session->proto, c->node, c->opset, c->session->err, code, what);
    c->session->reported = true;
    return c->rc;
}

void *bw_onnx_alloc(struct bw_onnx_call *c, uint64_t count, uint64_t size_bytes)
{
    uint64_t total, used = c->session->arena.used_bytes;
    if (__builtin_mul_overflow(count, size_bytes, &total) || total > BW_ONNX_SESSION_BYTES_MAX ||
        used > BW_ONNX_SESSION_BYTES_MAX - total) {
        bw_onnx_fail(c, -E2BIG, "its tables and lists take more than %d bytes", BW_ONNX_SESSION_BYTES_MAX);
        return NULL;
    }
    void *memory = bw_arena_alloc(&c->session->arena, total);
    if (!memory)
        bw_onnx_fail(c, -ENOMEM, "no memory");
    return memory;
}

bool bw_onnx_has(const struct bw_onnx_call *c, uint32_t input)
{
    return input < c->input_count && c->inputs[input] && c->inputs[input]->kind != BW_VALUE_NONE;
}

bw_tensor bw_onnx_in_bytes(struct bw_onnx_call *c, uint32_t input)
{
    if (!bw_onnx_has(c, input)) {
        bw_onnx_fail(c, -EINVAL, "input %u is missing", input);
        return (bw_tensor){0};
    }
    if (c->inputs[input]->kind != BW_VALUE_ARRAY) {
        bw_onnx_fail(c, -ENOTSUP, "input %u holds strings or a sequence", input);
        return (bw_tensor){0};
    }
    return bw_onnx_tensor_of(c->session, c->inputs[input]);
}

bw_tensor bw_onnx_in(struct bw_onnx_call *c, uint32_t input)
{
    enum bw_dtype dtype = bw_onnx_in_dtype(c, input);
    if (!bw_dtype_is_storage(dtype) || c->op->moves)
        return bw_onnx_in_bytes(c, input);
    bw_onnx_fail(c, -ENOTSUP, "input %u of type %s", input, bw_onnx_dtype_text(bw_onnx_dtype_to(dtype)).text);
    return (bw_tensor){0};
}

bw_tensor bw_onnx_in_number(struct bw_onnx_call *c, uint32_t input)
{
    return bw_onnx_decode(c, bw_onnx_in_dtype(c, input), bw_onnx_in_bytes(c, input));
}

enum bw_dtype bw_onnx_in_dtype(struct bw_onnx_call *c, uint32_t input)
{
    return bw_onnx_has(c, input) ? c->inputs[input]->dtype : BW_VOID;
}

bool bw_onnx_wants(const struct bw_onnx_call *c, uint32_t output)
{
    return output < c->node->output_count && c->node->outputs[output];
}

int bw_onnx_out_value(struct bw_onnx_call *c, uint32_t output, struct bw_onnx_value *value)
{
    if (c->rc)
        return c->rc;
    if (!value) { /* whoever failed to make it has said why */
        int rc = bw_tensor_graph_error(c->g, c->session->err);
        return rc ? rc : c->session->err->code ? c->session->err->code : -ENOMEM;
    }
    if (output < c->output_count)
        c->outputs[output] = value;
    return 0;
}

int bw_onnx_out(struct bw_onnx_call *c, uint32_t output, bw_tensor tensor)
{
    bool moved = c->op && c->op->moves && output == 0;
    return bw_onnx_out_typed(c, output, tensor, moved ? bw_onnx_in_dtype(c, 0) : BW_VOID);
}

int bw_onnx_out_typed(struct bw_onnx_call *c, uint32_t output, bw_tensor tensor, enum bw_dtype dtype)
{
    if (c->rc)
        return c->rc;
    if (!tensor.id)
        return bw_tensor_graph_error(c->g, c->session->err)
                   ? bw_tensor_graph_error(c->g, c->session->err)
                   : bw_onnx_fail(c, -EINVAL, "no result %u", output);
    if (output >= c->output_count)
        return 0;
    if (bw_dtype_is_storage(dtype) && bw_onnx_check_output_type(c, output, dtype))
        return c->rc;
    return bw_onnx_out_value(c, output, bw_onnx_value_typed(c->session, tensor, dtype));
}

int bw_onnx_out_array(struct bw_onnx_call *c, uint32_t output, enum bw_dtype dtype, uint32_t rank,
                      const int64_t *dims, void *data)
{
    if (c->rc || !data) {
        free(data);
        return c->rc ? c->rc : bw_onnx_fail(c, -ENOMEM, "no memory");
    }
    return bw_onnx_out_value(c, output, bw_onnx_value_host(c->session, dtype, rank, dims, data, !c->dynamic));
}

int bw_onnx_out_ints(struct bw_onnx_call *c, uint32_t output, const int64_t *values, uint32_t count)
{
    int64_t *data = calloc(count + 1, sizeof *data), dims[] = {count};
    if (data && count)
        memcpy(data, values, count * sizeof *data);
    return bw_onnx_out_array(c, output, BW_I64, 1, dims, data);
}

/* ---- attributes ---- */

static const struct bw_onnx_attribute *find(const struct bw_onnx_attribute *attributes, uint32_t count,
                                            struct bw_bytes name)
{
    for (uint32_t i = 0; i < count; i++)
        if (attributes[i].name.size_bytes == name.size_bytes && name.size_bytes &&
            !memcmp(attributes[i].name.data, name.data, name.size_bytes))
            return &attributes[i];
    return NULL;
}

/* Inside a function an attribute may be a reference to one of the call's, which may be a reference again. */
static const struct bw_onnx_attribute *resolve(const struct bw_onnx_frame *frame,
                                               const struct bw_onnx_attribute *attribute)
{
    while (attribute && attribute->reference.size_bytes && frame) {
        const struct bw_onnx_attribute *given =
            find(frame->node->attributes, frame->node->attribute_count, attribute->reference);
        attribute =
            given ? given
                  : find(frame->function->defaults, frame->function->default_count, attribute->reference);
        frame = frame->outer;
    }
    return attribute && attribute->reference.size_bytes ? NULL : attribute;
}

const struct bw_onnx_attribute *bw_onnx_attribute(struct bw_onnx_call *c, const char *name,
                                                  enum bw_onnx_attribute_type type)
{
    struct bw_bytes wanted = {(const uint8_t *)name, strlen(name)};
    const struct bw_onnx_attribute *attribute = find(c->node->attributes, c->node->attribute_count, wanted);
    attribute = resolve(c->session->frame, attribute);
    if (attribute && attribute->type != type) {
        bw_onnx_fail(c, -EBADMSG, "attribute '%s' has type %d instead of %d", name, attribute->type, type);
        return NULL;
    }
    return attribute;
}

int64_t bw_onnx_int(struct bw_onnx_call *c, const char *name, int64_t absent)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_attribute(c, name, BW_ONNX_ATTR_INT);
    return attribute ? attribute->i : absent;
}

enum bw_dtype bw_onnx_dtype_any(struct bw_onnx_call *c, const char *name, int64_t absent)
{
    int64_t given = bw_onnx_int(c, name, absent);
    enum bw_dtype dtype = bw_onnx_dtype_of(given);
    if (dtype == BW_VOID)
        bw_onnx_fail(c, bw_onnx_dtype_name(given) ? -ENOTSUP : -EBADMSG, "%s of type %s", name,
                     bw_onnx_dtype_text(given).text);
    return dtype;
}

enum bw_dtype bw_onnx_dtype(struct bw_onnx_call *c, const char *name, int64_t absent)
{
    enum bw_dtype dtype = bw_onnx_dtype_any(c, name, absent);
    if (!bw_dtype_is_storage(dtype))
        return dtype;
    bw_onnx_fail(c, -ENOTSUP, "%s of type %s", name, bw_onnx_dtype_text(bw_onnx_dtype_to(dtype)).text);
    return BW_VOID;
}

double bw_onnx_float(struct bw_onnx_call *c, const char *name, double absent)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_attribute(c, name, BW_ONNX_ATTR_FLOAT);
    return attribute ? (double)attribute->f : absent;
}

struct bw_onnx_ints bw_onnx_ints(struct bw_onnx_call *c, const char *name)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_attribute(c, name, BW_ONNX_ATTR_INTS);
    return attribute ? (struct bw_onnx_ints){attribute->ints, attribute->count, true}
                     : (struct bw_onnx_ints){0};
}

bool bw_onnx_string_is(struct bw_onnx_call *c, const char *name, const char *text, bool absent)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_attribute(c, name, BW_ONNX_ATTR_STRING);
    return attribute ? bw_onnx_equals(attribute->s, text) : absent;
}

const struct bw_onnx_graph *bw_onnx_graph_attribute(struct bw_onnx_call *c, const char *name)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_attribute(c, name, BW_ONNX_ATTR_GRAPH);
    if (!attribute)
        bw_onnx_fail(c, -EBADMSG, "no graph '%s'", name);
    return attribute ? attribute->graph : NULL;
}

/* ---- host elements ---- */

#define ELEMENT(T)                                                                            \
    {                                                                                         \
        T element;                                                                            \
        memcpy(&element, (const uint8_t *)data + (size_t)i * sizeof element, sizeof element); \
        return (__typeof__(result))element;                                                   \
    }

static float narrow_element(enum bw_dtype dtype, const void *data, int64_t i)
{
    uint16_t bits;
    memcpy(&bits, (const uint8_t *)data + i * 2, sizeof bits);
    return dtype == BW_F16 ? bw_f16_to_f32(bits) : bw_bf16_to_f32(bits);
}

int64_t bw_onnx_host_int(enum bw_dtype dtype, const void *data, int64_t i)
{
    int64_t result = 0;
    switch (bw_dtype_is_int(dtype) ? bw_dtype_carrier(dtype) : dtype) {
    case BW_BOOL:
    case BW_U8:
        ELEMENT(uint8_t)
    case BW_I8:
        ELEMENT(int8_t)
    case BW_U16:
        ELEMENT(uint16_t)
    case BW_I16:
        ELEMENT(int16_t)
    case BW_U32:
        ELEMENT(uint32_t)
    case BW_I32:
        ELEMENT(int32_t)
    case BW_U64:
    case BW_I64:
        ELEMENT(int64_t)
    default:
        return bw_dtype_int_from(BW_I64, bw_onnx_host_double(dtype, data, i));
    }
}

double bw_onnx_host_double(enum bw_dtype dtype, const void *data, int64_t i)
{
    double result = 0;
    switch (dtype) {
    case BW_F32:
        ELEMENT(float)
    case BW_F64:
        ELEMENT(double)
    case BW_F16:
    case BW_BF16:
        return (double)narrow_element(dtype, data, i);
    case BW_U64:
        ELEMENT(uint64_t)
    default:
        return bw_dtype_is_storage(dtype) ? bw_dtype_storage_value(dtype, ((const uint8_t *)data)[i])
                                          : (double)bw_onnx_host_int(dtype, data, i);
    }
}

void bw_onnx_host_store(enum bw_dtype dtype, void *data, int64_t i, double value)
{
    uint32_t bytes = bw_dtype_bytes(dtype);
    uint8_t *at = (uint8_t *)data + i * bytes;
    float f32 = (float)value;
    uint16_t narrow = dtype == BW_F16 ? bw_f16_from_f64(value) : bw_bf16_from_f64(value);
    int64_t integer = bw_dtype_int_from(dtype, value);
    const void *from = &integer; /* little endian: the low bytes come first */
    if (dtype == BW_F32)
        from = &f32;
    else if (dtype == BW_F64)
        from = &value;
    else if (dtype == BW_F16 || dtype == BW_BF16)
        from = &narrow;
    memcpy(at, from, bytes);
}

/* ---- values of inputs ---- */

static struct bw_onnx_value *decided(struct bw_onnx_call *c, uint32_t input)
{
    if (!bw_onnx_has(c, input) || c->inputs[input]->kind != BW_VALUE_ARRAY) {
        bw_onnx_fail(c, -EINVAL, "input %u is missing or holds no numbers", input);
        return NULL;
    }
    int rc = c->rc ? c->rc : bw_onnx_value_decide(c->session, c->inputs[input]);
    c->rc = rc;
    return rc ? NULL : c->inputs[input];
}

struct bw_onnx_ints bw_onnx_ints_in(struct bw_onnx_call *c, uint32_t input)
{
    struct bw_onnx_value *value = decided(c, input);
    int64_t *data = value ? bw_onnx_alloc(c, (uint64_t)value->elements, sizeof *data) : NULL;
    if (!data)
        return (struct bw_onnx_ints){0};
    for (int64_t i = 0; i < value->elements; i++)
        data[i] = bw_onnx_host_int(value->dtype, value->host, i);
    return (struct bw_onnx_ints){data, (uint64_t)value->elements, true};
}

const double *bw_onnx_doubles_in(struct bw_onnx_call *c, uint32_t input, uint64_t *count)
{
    struct bw_onnx_value *value = decided(c, input);
    double *data = value ? bw_onnx_alloc(c, (uint64_t)value->elements, sizeof *data) : NULL;
    *count = 0;
    if (!data)
        return NULL;
    *count = (uint64_t)value->elements;
    for (int64_t i = 0; i < value->elements; i++)
        data[i] = bw_onnx_host_double(value->dtype, value->host, i);
    return data;
}

struct bw_onnx_ints bw_onnx_ints_either(struct bw_onnx_call *c, uint32_t input, const char *name)
{
    return bw_onnx_has(c, input) ? bw_onnx_ints_in(c, input) : bw_onnx_ints(c, name);
}

int bw_onnx_realize(struct bw_onnx_call *c, uint32_t input)
{
    if (c->rc)
        return c->rc;
    if (!bw_onnx_has(c, input))
        return bw_onnx_fail(c, -EINVAL, "input %u is missing", input);
    c->rc = bw_onnx_value_realize(c->session, c->inputs[input], &c->dynamic);
    return c->rc;
}

int bw_onnx_realize_count(struct bw_onnx_call *c, uint32_t input)
{
    int rc = bw_onnx_realize(c, input);
    if (!rc)
        bw_onnx_value_decided(c->session, c->inputs[input]);
    return rc;
}

int bw_onnx_decide_int(struct bw_onnx_call *c, struct bw_onnx_value *value, int64_t *result)
{
    if (c->rc)
        return c->rc;
    if (value->kind != BW_VALUE_ARRAY || value->elements != 1)
        return bw_onnx_fail(c, -EINVAL, "a condition or count that is not one number");
    c->rc = bw_onnx_value_decide(c->session, value);
    if (!c->rc)
        *result = bw_onnx_host_int(value->dtype, value->host, 0);
    return c->rc;
}

uint32_t bw_onnx_axis(struct bw_onnx_call *c, int64_t axis, uint32_t rank)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        bw_onnx_fail(c, -ERANGE, "axis %lld of a tensor of rank %u", (long long)axis, rank);
        return 0;
    }
    return (uint32_t)(axis < 0 ? axis + rank : axis);
}

struct bw_onnx_ints bw_onnx_list_in(struct bw_onnx_call *c, uint32_t input)
{
    struct bw_onnx_ints list = bw_onnx_ints_in(c, input);
    if (!c->rc && c->inputs[input]->rank != 1)
        bw_onnx_fail(c, -EINVAL, "input %u must be a list, but has rank %u", input, c->inputs[input]->rank);
    return list;
}

uint32_t bw_onnx_axes(struct bw_onnx_call *c, struct bw_onnx_ints axes, uint32_t rank)
{
    uint32_t mask = 0;
    for (uint64_t i = 0; i < axes.count && !c->rc; i++)
        mask |= 1u << bw_onnx_axis(c, axes.data[i], rank);
    if (!c->rc && (uint64_t)__builtin_popcount(mask) != axes.count)
        bw_onnx_fail(c, -EINVAL, "an axis is there twice");
    return mask;
}

bw_tensor bw_onnx_take(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, bw_tensor index)
{
    uint32_t rank = bw_tensor_rank(c->g, x), inner = bw_tensor_rank(c->g, index), result = rank + inner - 1;
    if (!x.id || !index.id)
        return (bw_tensor){0};
    if (axis >= rank || result > BW_TENSOR_RANK_MAX) {
        bw_onnx_fail(c, -E2BIG, "elements of rank %u by an index of rank %u", rank, inner);
        return (bw_tensor){0};
    }
    int64_t dims[BW_TENSOR_RANK_MAX], index_dims[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < result; i++) {
        bool of_index = i >= axis && i < axis + inner;
        index_dims[i] = of_index ? bw_tensor_dims(c->g, index)[i - axis] : 1;
        dims[i] = of_index ? index_dims[i] : bw_tensor_dims(c->g, x)[i < axis ? i : i + 1 - inner];
    }
    bw_tensor indexes[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t at = i < axis ? i : i + inner - 1;
        indexes[i] = i == axis ? bw_tensor_reshape(c->g, index, result, index_dims)
                               : bw_tensor_indexes(c->g, BW_I64, result, dims, at);
    }
    return bw_tensor_gather_nd(c->g, x, indexes);
}
