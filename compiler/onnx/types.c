/* Element types and shapes while a model is imported: what an op takes, and what the file declares. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "compiler/onnx/import.h"
#include "compiler/onnx/schema.h"

/* ---- what an op takes ---- */

enum { VARIABLES_MAX = 16 }; /* type parameters of one op: SequenceMap and Adam have most, 3 */

/* The types that type parameters stand for in this call, as far as inputs have told. */
struct binding {
    struct bw_onnx_word parameter;
    enum bw_dtype dtype;
    uint32_t input;
};
struct bindings {
    struct binding rows[VARIABLES_MAX];
    uint32_t count;
};

static const char *value_type_name(const struct bw_onnx_value *value)
{
    return value->kind == BW_VALUE_STRINGS ? "string" : bw_dtype_name(value->dtype);
}

static int bind(struct bw_onnx_call *c, struct bindings *bindings, const struct bw_onnx_word *parameter,
                uint32_t input)
{
    struct bw_onnx_value *value = c->inputs[input];
    for (uint32_t i = 0; i < bindings->count; i++) {
        const struct binding *row = &bindings->rows[i];
        if (row->parameter.length != parameter->length ||
            memcmp(row->parameter.name, parameter->name, parameter->length) != 0)
            continue;
        if (row->dtype == value->dtype)
            return 0;
        return bw_onnx_fail(c, -EINVAL, "inputs %u (%s) and %u (%s) must have one type (%.*s)", row->input,
                            value_type_name(c->inputs[row->input]), input, value_type_name(value),
                            (int)parameter->length, parameter->name);
    }
    if (bindings->count < VARIABLES_MAX)
        bindings->rows[bindings->count++] = (struct binding){*parameter, value->dtype, input};
    return 0;
}

static int check_input(struct bw_onnx_call *c, struct bindings *bindings,
                       const struct bw_onnx_word *parameter, uint32_t input)
{
    struct bw_onnx_value *value = c->inputs[input];
    if (!value || value->kind == BW_VALUE_NONE || value->kind == BW_VALUE_SEQUENCE)
        return 0;
    const char *letters = bw_onnx_schema_letters(c->node->schema, parameter);
    if (!letters || bw_onnx_letters_have(letters, '#')) /* optionals come without their wrapping */
        return 0;
    if (!bw_onnx_letters_have(letters, bw_onnx_letter_of(value->dtype)))
        return bw_onnx_fail(c, -EINVAL, "the op takes no %s as input %u", value_type_name(value), input);
    return *parameter->name == '=' || parameter->mark == '~' ? 0 : bind(c, bindings, parameter, input);
}

int bw_onnx_check_types(struct bw_onnx_call *c)
{
    struct bindings bindings = {.count = 0};
    struct bw_onnx_word parameter = {0};
    const char *at = c->node->schema ? c->node->schema->inputs : "";
    int rc = 0;
    for (uint32_t i = 0; !rc && i < c->input_count; i++) {
        bool repeats = parameter.mark == '*' || parameter.mark == '~';
        if (!repeats && !bw_onnx_word_next(&at, &parameter))
            break;
        rc = check_input(c, &bindings, &parameter, i);
    }
    return rc;
}

int bw_onnx_check_output_type(struct bw_onnx_call *c, uint32_t output, enum bw_dtype dtype)
{
    const struct bw_onnx_schema *schema = c->node->schema;
    struct bw_onnx_word parameter = {0};
    const char *at = schema ? schema->outputs : "";
    for (uint32_t i = 0; i <= output && bw_onnx_word_next(&at, &parameter);)
        i++;
    const char *letters = parameter.length ? bw_onnx_schema_letters(schema, &parameter) : NULL;
    if (!letters || bw_onnx_letters_have(letters, bw_onnx_letter_of(dtype)))
        return 0;
    return bw_onnx_fail(c, -EINVAL, "the op gives no %s", bw_onnx_dtype_text(bw_onnx_dtype_to(dtype)).text);
}

/* ---- what the file declares ---- */

struct line {
    char text[64];
    size_t length;
};

static void put(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line->text + line->length, sizeof line->text - line->length, format, arguments);
    va_end(arguments);
    if (written > 0)
        line->length += (size_t)written;
    if (line->length >= sizeof line->text)
        line->length = sizeof line->text - 1;
}

static struct line declared_line(const struct bw_onnx_type *type)
{
    struct line line = {.length = 0};
    if (type->kind != BW_ONNX_KIND_TENSOR) {
        put(&line, "%s", type->kind == BW_ONNX_KIND_SEQUENCE ? "a sequence" : "a map or a sparse tensor");
        return line;
    }
    enum bw_dtype dtype = bw_onnx_dtype_of(type->dtype);
    put(&line, "%s", dtype ? bw_dtype_name(dtype) : bw_onnx_dtype_text(type->dtype).text);
    for (uint32_t i = 0; type->has_shape && i < type->rank; i++)
        if (type->dims[i].value < 0)
            put(&line, "%s?", i ? "," : "[");
        else
            put(&line, "%s%lld", i ? "," : "[", (long long)type->dims[i].value);
    if (type->has_shape)
        put(&line, type->rank ? "]" : "[]");
    return line;
}

static struct line value_line(const struct bw_onnx_value *value)
{
    struct line line = {.length = 0};
    if (value->kind == BW_VALUE_SEQUENCE || value->kind == BW_VALUE_NONE) {
        put(&line, "%s", value->kind == BW_VALUE_SEQUENCE ? "a sequence" : "nothing");
        return line;
    }
    put(&line, "%s", value_type_name(value));
    for (uint32_t i = 0; i < value->rank; i++)
        put(&line, "%s%lld", i ? "," : "[", (long long)value->dims[i]);
    put(&line, value->rank ? "]" : "[]");
    return line;
}

static bool shape_fits(const struct bw_onnx_value *value, const struct bw_onnx_type *type)
{
    for (uint32_t i = 0; i < type->rank && type->rank == value->rank; i++)
        if (type->dims[i].value >= 0 && type->dims[i].value != value->dims[i])
            return false;
    return type->rank == value->rank;
}

static bool value_fits(const struct bw_onnx_value *value, const struct bw_onnx_type *type, bool shapes)
{
    switch (type->kind) {
    case BW_ONNX_KIND_TENSOR:
        if (value->kind == BW_VALUE_NONE || value->kind == BW_VALUE_SEQUENCE)
            return false;
        if (type->dtype == BW_ONNX_UNDEFINED)
            break;
        if (value->kind == BW_VALUE_STRINGS ? type->dtype != BW_ONNX_STRING
                                            : bw_onnx_dtype_of(type->dtype) != value->dtype)
            return false;
        break;
    case BW_ONNX_KIND_SEQUENCE:
        return value->kind == BW_VALUE_SEQUENCE;
    case BW_ONNX_KIND_OPTIONAL:
        return value->kind == BW_VALUE_NONE || !type->element || value_fits(value, type->element, shapes);
    default:
        return true;
    }
    return !shapes || !type->has_shape || shape_fits(value, type);
}

int bw_onnx_check_declared(struct bw_onnx_call *c, const struct bw_onnx_graph *graph, bw_symbol symbol,
                           const struct bw_onnx_value *value, bool shapes)
{
    uint64_t address;
    if (!bw_map_get(&graph->declared, symbol, &address))
        return 0;
    const struct bw_onnx_type *type = (const struct bw_onnx_type *)(uintptr_t)address;
    if (value_fits(value, type, shapes))
        return 0;
    while (type->kind == BW_ONNX_KIND_OPTIONAL)
        type = type->element;
    int rc = bw_onnx_fail(c, -EINVAL, "value '%s' is not what the file declares",
                          bw_onnx_text(c->session->proto->symbols.data[symbol]).text);
    bw_err_expected(c->session->err, "%s", declared_line(type).text);
    bw_err_observed(c->session->err, "%s", value_line(value).text);
    return rc;
}
