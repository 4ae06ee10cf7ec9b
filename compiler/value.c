/* Host-side values: arrays, strings, sequences. Contract in include/bellwire/model.h. */
#include <bellwire/model.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t bw_array_elements(const struct bw_array *array)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < array->rank; i++) { /* beside a zero the others may be anything */
        if (array->dims[i] == 0)
            return 0;
    }
    for (uint32_t i = 0; i < array->rank; i++)
        elements *= array->dims[i];
    return elements;
}

void bw_value_free(struct bw_value *value)
{
    if (value->kind == BW_VALUE_STRINGS && value->array.data) {
        struct bw_string *strings = value->array.data;
        for (int64_t i = 0; i < bw_array_elements(&value->array); i++)
            free(strings[i].data);
    }
    for (uint64_t i = 0; i < value->item_count; i++)
        bw_value_free(&value->items[i]);
    free(value->items);
    free(value->array.data);
    *value = (struct bw_value){0};
}

static int strings_copy(struct bw_value *copy, const struct bw_value *value, struct bw_err *err)
{
    int64_t elements = bw_array_elements(&value->array);
    const struct bw_string *from = value->array.data;
    struct bw_string *to = calloc(elements ? (size_t)elements : 1, sizeof *to);
    copy->array.data = to;
    bool failed = !to;
    for (int64_t i = 0; !failed && i < elements; i++) {
        to[i].data = malloc(from[i].size_bytes ? from[i].size_bytes : 1);
        failed = !to[i].data;
        if (failed)
            break;
        if (from[i].size_bytes)
            memcpy(to[i].data, from[i].data, from[i].size_bytes);
        to[i].size_bytes = from[i].size_bytes;
    }
    return failed ? bw_fail(err, -ENOMEM, "model", "%lld strings", (long long)elements) : 0;
}

int bw_value_copy(struct bw_value *copy, const struct bw_value *value, struct bw_err *err)
{
    *copy = (struct bw_value){.kind = value->kind, .array = value->array};
    copy->array.data = NULL;
    int rc = 0;
    if (value->kind == BW_VALUE_STRINGS) {
        rc = strings_copy(copy, value, err);
    } else if (value->kind == BW_VALUE_ARRAY) {
        uint64_t size_bytes = (uint64_t)bw_array_elements(&value->array) * bw_dtype_bytes(value->array.dtype);
        copy->array.data = malloc(size_bytes ? size_bytes : 1);
        if (!copy->array.data)
            rc = bw_fail(err, -ENOMEM, "model", "an array of %llu bytes", (unsigned long long)size_bytes);
        else if (size_bytes)
            memcpy(copy->array.data, value->array.data, size_bytes);
    } else if (value->kind == BW_VALUE_SEQUENCE) {
        copy->items = calloc(value->item_count ? value->item_count : 1, sizeof *copy->items);
        if (!copy->items)
            rc = bw_fail(err, -ENOMEM, "model", "a sequence of %llu", (unsigned long long)value->item_count);
        for (uint64_t i = 0; !rc && i < value->item_count; i++) {
            rc = bw_value_copy(&copy->items[i], &value->items[i], err);
            copy->item_count = i + 1;
        }
    }
    if (rc)
        bw_value_free(copy);
    return rc;
}
