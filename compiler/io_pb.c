/* TensorProto, SequenceProto and OptionalProto files. Field numbers: onnx-data.proto of ONNX 1.16. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/io.h"
#include "compiler/onnx/proto.h"

static const uint64_t FILE_BYTES_MAX = 1ull << 31; /* protobuf's own limit */

struct reader {
    struct bw_bytes file;
    uint32_t depth;
    struct bw_err *err;
};

static int strings_value(const struct bw_onnx_tensor *tensor, const struct bw_bytes *strings,
                         struct bw_value *value, struct bw_err *err)
{
    struct bw_value view = {.kind = BW_VALUE_STRINGS, .array = {.rank = tensor->rank}};
    memcpy(view.array.dims, tensor->dims, sizeof view.array.dims);
    struct bw_string *list = calloc((size_t)tensor->elements + 1, sizeof *list);
    if (!list)
        return bw_fail(err, -ENOMEM, "onnx", "%lld strings", (long long)tensor->elements);
    for (int64_t i = 0; i < tensor->elements; i++)
        list[i] = (struct bw_string){(char *)(uintptr_t)strings[i].data, strings[i].size_bytes};
    view.array.data = list;
    int rc = bw_value_copy(value, &view, err);
    free(list);
    return rc;
}

static int read_tensor(struct reader *r, struct bw_bytes message, struct bw_value *value)
{
    struct bw_onnx_tensor tensor;
    struct bw_onnx_mapping external = {0};
    const void *data = NULL;
    int rc = bw_onnx_parse_tensor(r->file, message, &tensor, r->err);
    if (!rc)
        rc = bw_onnx_tensor_data(&tensor, r->file.data, NULL, &data, &external, r->err);
    if (rc)
        return rc;
    if (tensor.dtype == BW_ONNX_STRING) {
        rc = strings_value(&tensor, data, value, r->err);
    } else {
        struct bw_value view = {.kind = BW_VALUE_ARRAY,
                                .array = {.dtype = bw_onnx_dtype_of(tensor.dtype), .rank = tensor.rank}};
        memcpy(view.array.dims, tensor.dims, sizeof view.array.dims);
        view.array.data = (void *)(uintptr_t)data;
        rc = bw_value_copy(value, &view, r->err);
    }
    free(tensor.decoded);
    return rc;
}

static int read_container(struct reader *r, struct bw_bytes message, bool sequence, struct bw_value *value);

/* SequenceProto: tensors = 3, sequences = 5, optionals = 7. OptionalProto: the same three, at most one of
 * them. */
static int read_item(struct reader *r, const struct bw_wire_field *field, struct bw_value *item)
{
    switch (field->number) {
    case 3:
        return read_tensor(r, field->bytes, item);
    case 5:
        return read_container(r, field->bytes, true, item);
    default:
        return read_container(r, field->bytes, false, item);
    }
}

static int append(struct bw_value *sequence, uint64_t *capacity, struct bw_value item)
{
    if (sequence->item_count == *capacity) {
        uint64_t grown = *capacity ? *capacity * 2 : 4;
        struct bw_value *items = realloc(sequence->items, grown * sizeof *items);
        if (!items)
            return -ENOMEM;
        sequence->items = items;
        *capacity = grown;
    }
    sequence->items[sequence->item_count++] = item;
    return 0;
}

static int read_container(struct reader *r, struct bw_bytes message, bool sequence, struct bw_value *value)
{
    struct bw_wire outer = {.file = r->file.data, .err = r->err},
                   wire = bw_wire_inside(&outer, message, sequence ? "SequenceProto" : "OptionalProto");
    struct bw_wire_field field;
    uint64_t capacity = 0;
    int rc;
    *value = (struct bw_value){.kind = sequence ? BW_VALUE_SEQUENCE : BW_VALUE_NONE};
    if (r->depth++ == BW_ONNX_NESTING_MAX)
        return bw_fail(r->err, -E2BIG, "onnx", "values nested too deep");
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        struct bw_value item = {0};
        if (field.number == 4 || field.number == 6)
            rc = bw_fail(r->err, -ENOTSUP, "onnx", "byte %llu: a sparse tensor or a map",
                         (unsigned long long)field.offset);
        else if (field.number != 3 && field.number != 5 && field.number != 7)
            continue;
        else if (!(rc = bw_wire_expect(&wire, &field, BW_WIRE_BYTES)))
            rc = read_item(r, &field, &item);
        if (!rc && sequence) {
            rc = append(value, &capacity, item) ? bw_fail(r->err, -ENOMEM, "onnx", "a sequence") : 0;
        } else if (!rc) {
            bw_value_free(value);
            *value = item;
            continue;
        }
        if (rc) {
            bw_value_free(&item);
            break;
        }
    }
    r->depth--;
    if (rc)
        bw_value_free(value);
    return rc;
}

int bw_pb_parse(const char *name, const uint8_t *data, uint64_t size_bytes, enum bw_value_kind kind,
                struct bw_value *value, struct bw_err *err)
{
    struct reader r = {.file = {data, size_bytes}, .err = err};
    bool container = kind == BW_VALUE_SEQUENCE || kind == BW_VALUE_NONE;
    int rc = container ? read_container(&r, r.file, kind == BW_VALUE_SEQUENCE, value)
                       : read_tensor(&r, r.file, value);
    if (rc)
        bw_file_err_name(name, err);
    return rc;
}

int bw_pb_read(const char *path, enum bw_value_kind kind, struct bw_value *value, struct bw_err *err)
{
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_file_read(path, FILE_BYTES_MAX, &data, &size_bytes, err);
    if (rc)
        return rc;
    rc = bw_pb_parse(path, data, size_bytes, kind, value, err);
    free(data);
    return rc;
}
