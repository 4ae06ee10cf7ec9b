/* Values as text, JSON and files. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <bellwire/model.h>
#include <bellwire/text.h>

#include "tools/print.h"
#include "tools/tool.h"

enum { ELEMENTS_PRINTED = 8 }; /* fit a line of a terminal */

struct bw_tool_type bw_tool_type(const struct bw_value *value)
{
    struct bw_tool_type type = {"none"};
    size_t length = 0, size = sizeof type.text;
    if (value->kind == BW_VALUE_SEQUENCE)
        snprintf(type.text, size, "sequence of %" PRIu64, value->item_count);
    if (value->kind != BW_VALUE_ARRAY && value->kind != BW_VALUE_STRINGS)
        return type;
    bool strings = value->kind == BW_VALUE_STRINGS;
    length =
        (size_t)snprintf(type.text, size, "%s[", strings ? "strings" : bw_dtype_name(value->array.dtype));
    for (uint32_t i = 0; i < value->array.rank && length < size; i++)
        length += (size_t)snprintf(type.text + length, size - length, "%s%" PRId64, i ? "," : "",
                                   value->array.dims[i]);
    if (length < size)
        snprintf(type.text + length, size - length, "]");
    return type;
}

double bw_tool_element(const struct bw_array *array, int64_t i)
{
    const void *data = array->data;
    switch (array->dtype) {
    case BW_F32:
        return (double)((const float *)data)[i];
    case BW_F64:
        return ((const double *)data)[i];
    case BW_F16:
        return (double)bw_f16_to_f32(((const uint16_t *)data)[i]);
    case BW_BF16:
        return (double)bw_bf16_to_f32(((const uint16_t *)data)[i]);
    case BW_I8:
        return ((const int8_t *)data)[i];
    case BW_I16:
        return ((const int16_t *)data)[i];
    case BW_I32:
        return ((const int32_t *)data)[i];
    case BW_I64:
        return (double)((const int64_t *)data)[i];
    case BW_U16:
        return ((const uint16_t *)data)[i];
    case BW_U32:
        return ((const uint32_t *)data)[i];
    case BW_U64:
        return (double)((const uint64_t *)data)[i];
    default: /* bool, u8, storage types */
        return bw_dtype_is_storage(array->dtype)
                   ? bw_dtype_storage_value(array->dtype, ((const uint8_t *)data)[i])
                   : ((const uint8_t *)data)[i];
    }
}

struct bw_tool_type bw_tool_element_text(const struct bw_array *array, int64_t i)
{
    struct bw_tool_type text;
    if (array->dtype == BW_VOID) {
        const struct bw_string *string = (const struct bw_string *)array->data + i;
        char shown[sizeof text.text - sizeof "\"\"..."];
        bool whole = bw_text_escape(string->data, string->size_bytes, shown, sizeof shown) < sizeof shown;
        snprintf(text.text, sizeof text.text, "\"%s\"%s", shown, whole ? "" : "...");
    } else if (array->dtype == BW_I64) {
        snprintf(text.text, sizeof text.text, "%" PRId64, ((const int64_t *)array->data)[i]);
    } else if (array->dtype == BW_U64) {
        snprintf(text.text, sizeof text.text, "%" PRIu64, ((const uint64_t *)array->data)[i]);
    } else if (array->dtype == BW_BOOL) {
        snprintf(text.text, sizeof text.text, "%s", bw_tool_element(array, i) != 0 ? "true" : "false");
    } else if (isnan(bw_tool_element(array, i))) { /* printf would show a sign that says nothing */
        snprintf(text.text, sizeof text.text, "nan");
    } else {
        int digits = array->dtype == BW_F64 ? 17 : bw_dtype_is_float(array->dtype) ? 9 : 10;
        snprintf(text.text, sizeof text.text, "%.*g", digits, bw_tool_element(array, i));
    }
    return text;
}

void bw_tool_print_elements(FILE *out, const struct bw_array *array)
{
    int64_t elements = bw_array_elements(array),
            shown = elements < ELEMENTS_PRINTED ? elements : ELEMENTS_PRINTED;
    for (int64_t i = 0; i < shown; i++)
        bw_print(out, "%s%s", i ? " " : "", bw_tool_element_text(array, i).text);
    bw_print(out, "%s\n", shown < elements ? " ..." : "");
}

int bw_tool_make_directory(const char *path, struct bw_err *err)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        return bw_fail(err, -errno, "output", "directory %s", path);
    return 0;
}

int bw_tool_npy_path(const char *directory, const char *name, const char *suffix, char **path,
                     struct bw_err *err)
{
    if (asprintf(path, "%s/%s%s.npy", directory, name, suffix) < 0) {
        *path = NULL;
        return bw_fail(err, -ENOMEM, "output", "%s", name);
    }
    for (char *at = *path + strlen(directory) + 1; *at; at++)
        if (*at == '/')
            *at = '_';
    return 0;
}

void bw_tool_json_type(struct cJSON *object, const struct bw_value *value)
{
    const char *dtype = value->kind == BW_VALUE_ARRAY      ? bw_dtype_name(value->array.dtype)
                        : value->kind == BW_VALUE_STRINGS  ? "string"
                        : value->kind == BW_VALUE_SEQUENCE ? "sequence"
                                                           : "none";
    cJSON_AddStringToObject(object, "dtype", dtype);
    cJSON *shape = cJSON_AddArrayToObject(object, "shape");
    if (value->kind == BW_VALUE_SEQUENCE)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)value->item_count));
    for (uint32_t i = 0; i < value->array.rank; i++)
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)value->array.dims[i]));
}
