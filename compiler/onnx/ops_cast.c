/* Changes of element type, text included. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

enum { NUMBER_TEXT_BYTES = 40 };

/* The shortest text that reads back as the same number, as NumPy prints it. */
static void float_print(enum bw_dtype dtype, double value, char *text)
{
    int digits_max = dtype == BW_F64 ? 17 : 9;
    if (isnan(value) || isinf(value)) {
        strcpy(text, isnan(value) ? "NaN" : value > 0 ? "INF" : "-INF");
        return;
    }
    for (int digits = 1; digits <= digits_max; digits++) {
        snprintf(text, NUMBER_TEXT_BYTES, "%.*g", digits, value);
        if (dtype == BW_F64 ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value)
            break;
    }
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
}

static void number_print(enum bw_dtype dtype, const void *data, int64_t i, char *text)
{
    if (bw_dtype_is_float(dtype))
        float_print(dtype, bw_onnx_host_double(dtype, data, i), text);
    else if (dtype == BW_BOOL)
        strcpy(text, bw_onnx_host_int(dtype, data, i) ? "True" : "False");
    else if (dtype == BW_U64)
        snprintf(text, NUMBER_TEXT_BYTES, "%llu", (unsigned long long)bw_onnx_host_int(dtype, data, i));
    else
        snprintf(text, NUMBER_TEXT_BYTES, "%lld", (long long)bw_onnx_host_int(dtype, data, i));
}

static int numbers_to_strings(struct bw_onnx_call *c)
{
    if (bw_onnx_realize(c, 0))
        return c->rc;
    const struct bw_onnx_value *x = c->inputs[0];
    struct bw_bytes *strings = calloc((size_t)x->elements + 1, sizeof *strings);
    for (int64_t i = 0; strings && i < x->elements; i++) {
        char text[NUMBER_TEXT_BYTES];
        number_print(x->dtype, x->host, i, text);
        strings[i].size_bytes = strlen(text);
        strings[i].data = bw_arena_copy(&c->session->arena, text, strings[i].size_bytes + 1);
        if (!strings[i].data)
            bw_onnx_fail(c, -ENOMEM, "no memory");
    }
    return bw_onnx_out_value(c, 0, bw_onnx_value_strings(c->session, x->rank, x->dims, strings, !c->dynamic));
}

/* Text as a number: strtod takes NaN, INF and exponents as NumPy does; integers are read as such, so that 64
 * bits survive. */
static bool number_read(enum bw_dtype dtype, struct bw_bytes string, void *data, int64_t i)
{
    char text[NUMBER_TEXT_BYTES * 2], *end = text;
    if (string.size_bytes >= sizeof text || !string.size_bytes)
        return false;
    memcpy(text, string.data, string.size_bytes);
    text[string.size_bytes] = 0;
    if (bw_dtype_is_float(dtype)) {
        bw_onnx_host_store(dtype, data, i, strtod(text, &end));
    } else {
        unsigned long long number =
            dtype == BW_U64 ? strtoull(text, &end, 10) : (unsigned long long)strtoll(text, &end, 10);
        memcpy((uint8_t *)data + i * bw_dtype_bytes(dtype), &number, bw_dtype_bytes(dtype));
        if (dtype == BW_BOOL)
            ((uint8_t *)data)[i] = number != 0;
    }
    return end == text + string.size_bytes;
}

static int strings_to_numbers(struct bw_onnx_call *c, enum bw_dtype dtype)
{
    const struct bw_onnx_value *x = c->inputs[0];
    const struct bw_bytes *strings = x->host;
    if (bw_onnx_realize(c, 0))
        return c->rc;
    uint8_t *data = calloc((size_t)x->elements + 1, bw_dtype_bytes(dtype));
    for (int64_t i = 0; data && i < x->elements; i++)
        if (!number_read(dtype, strings[i], data, i)) {
            bw_onnx_fail(c, -EINVAL, "'%s' is no %s", bw_onnx_text(strings[i]).text, bw_dtype_name(dtype));
            break;
        }
    return bw_onnx_out_array(c, 0, dtype, x->rank, x->dims, data);
}

/* The opset's words on storage types. Until opset 23 infinity was NaN in floats without -0. */
static struct bw_onnx_rounding rounding_of(struct bw_onnx_call *c)
{
    enum { INFINITY_SATURATES_SINCE = 24 };
    struct bw_onnx_rounding rounding = {.saturate = bw_onnx_int(c, "saturate", 1) != 0,
                                        .infinity_is_nan = c->opset < INFINITY_SATURATES_SINCE};
    if (bw_onnx_string_is(c, "round_mode", "down", false))
        rounding.power = BW_ONNX_POWER_DOWN;
    else if (bw_onnx_string_is(c, "round_mode", "nearest", false))
        rounding.power = BW_ONNX_POWER_NEAREST;
    return rounding;
}

static int numbers_to_numbers(struct bw_onnx_call *c, enum bw_dtype dtype, bw_tensor x)
{
    struct bw_onnx_rounding rounding = rounding_of(c);
    x = bw_dtype_is_storage(dtype) ? bw_onnx_encode(c, dtype, x, &rounding) : bw_tensor_cast(c->g, dtype, x);
    return bw_onnx_out_typed(c, 0, x, dtype);
}

static int cast_to(struct bw_onnx_call *c, bool to_strings, enum bw_dtype dtype)
{
    if (!bw_onnx_has(c, 0) || c->inputs[0]->kind == BW_VALUE_SEQUENCE)
        return bw_onnx_fail(c, -EINVAL, "no tensor");
    bool from_strings = c->inputs[0]->kind == BW_VALUE_STRINGS;
    if (from_strings ? to_strings : !to_strings && c->inputs[0]->dtype == dtype)
        return bw_onnx_out_value(c, 0, c->inputs[0]);
    if (to_strings)
        return numbers_to_strings(c);
    if (!from_strings)
        return numbers_to_numbers(c, dtype, bw_onnx_in_number(c, 0));
    if (!bw_dtype_is_storage(dtype))
        return strings_to_numbers(c, dtype);
    int rc = strings_to_numbers(c, BW_F64);
    return rc || !c->outputs[0] ? rc
                                : numbers_to_numbers(c, dtype, bw_onnx_tensor_of(c->session, c->outputs[0]));
}

/* Before opset 6 the target was a name. */
static int64_t target_named(struct bw_onnx_call *c)
{
    const char *name;
    for (int64_t i = 1; (name = bw_onnx_dtype_name(i)); i++)
        if (bw_onnx_string_is(c, "to", name, false))
            return i;
    return BW_ONNX_UNDEFINED;
}

static int cast(struct bw_onnx_call *c)
{
    int64_t to = c->opset < 6 ? target_named(c) : bw_onnx_int(c, "to", BW_ONNX_UNDEFINED);
    if (bw_onnx_dtype_of(to) == BW_VOID && to != BW_ONNX_STRING)
        return bw_onnx_fail(c, bw_onnx_dtype_name(to) ? -ENOTSUP : -EBADMSG, "target type %s",
                            bw_onnx_dtype_text(to).text);
    return cast_to(c, to == BW_ONNX_STRING, bw_onnx_dtype_of(to));
}

static int cast_like(struct bw_onnx_call *c)
{
    if (!bw_onnx_has(c, 1) || c->inputs[1]->kind == BW_VALUE_SEQUENCE)
        return bw_onnx_fail(c, -EINVAL, "no target");
    return cast_to(c, c->inputs[1]->kind == BW_VALUE_STRINGS, c->inputs[1]->dtype);
}

static const struct bw_onnx_op rows[] = {
    {"Cast", 1, .function = cast},
    {"CastLike", 15, .function = cast_like},
};

const struct bw_onnx_ops bw_onnx_ops_cast = {rows, BW_COUNT_OF(rows)};
