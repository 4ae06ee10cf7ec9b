/* The elements of a TensorProto: raw bytes in place, typed fields decoded, external files mapped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/onnx/proto.h"

struct dtype_row {
    const char *name;
    enum bw_dtype dtype;
};

/* TensorProto.DataType, by number */
static const struct dtype_row dtype_rows[BW_ONNX_DTYPE_COUNT] = {
    {"UNDEFINED", BW_VOID}, {"FLOAT", BW_F32},  {"UINT8", BW_U8},       {"INT8", BW_I8},
    {"UINT16", BW_U16},     {"INT16", BW_I16},  {"INT32", BW_I32},      {"INT64", BW_I64},
    {"STRING", BW_VOID},    {"BOOL", BW_BOOL},  {"FLOAT16", BW_F16},    {"DOUBLE", BW_F64},
    {"UINT32", BW_U32},     {"UINT64", BW_U64}, {"COMPLEX64", BW_VOID}, {"COMPLEX128", BW_VOID},
    {"BFLOAT16", BW_BF16},
};

enum bw_dtype bw_onnx_dtype_of(int64_t onnx_dtype)
{
    return onnx_dtype >= 0 && onnx_dtype < BW_ONNX_DTYPE_COUNT ? dtype_rows[onnx_dtype].dtype : BW_VOID;
}

const char *bw_onnx_dtype_name(int64_t onnx_dtype)
{
    return onnx_dtype >= 0 && onnx_dtype < BW_ONNX_DTYPE_COUNT ? dtype_rows[onnx_dtype].name : "?";
}

int64_t bw_onnx_dtype_to(enum bw_dtype dtype)
{
    for (int64_t i = 1; i < BW_ONNX_DTYPE_COUNT; i++)
        if (dtype_rows[i].dtype == dtype && dtype != BW_VOID)
            return i;
    return BW_ONNX_UNDEFINED;
}

static int tensor_error(const struct bw_onnx_tensor *tensor, struct bw_err *err, int code, const char *what)
{
    return bw_fail(err, code, "onnx", "byte %llu: tensor '%s' (%s): %s", (unsigned long long)tensor->offset,
                   bw_onnx_text(tensor->name).text, bw_onnx_dtype_name(tensor->dtype), what);
}

/* Typed fields: which one holds a dtype's elements, and how. */
enum { FLOAT_DATA = 4, INT32_DATA = 5, STRING_DATA = 6, INT64_DATA = 7, DOUBLE_DATA = 10, UINT64_DATA = 11 };

static uint32_t typed_field(int64_t onnx_dtype)
{
    switch (bw_onnx_dtype_of(onnx_dtype)) {
    case BW_F32:
        return FLOAT_DATA;
    case BW_F64:
        return DOUBLE_DATA;
    case BW_I64:
        return INT64_DATA;
    case BW_U32:
    case BW_U64:
        return UINT64_DATA;
    case BW_VOID:
        return onnx_dtype == BW_ONNX_STRING ? STRING_DATA : 0;
    default: /* small integers, bool, and the bits of f16 and bf16 */
        return INT32_DATA;
    }
}

struct decoder {
    const struct bw_onnx_tensor *tensor;
    uint8_t *out;
    uint64_t done; /* elements */
    uint32_t element_bytes;
    struct bw_err *err;
};

static int decode_element(struct decoder *d, const void *bytes)
{
    if (d->done == (uint64_t)d->tensor->elements)
        return tensor_error(d->tensor, d->err, -EBADMSG, "more elements than its shape says");
    memcpy(d->out + d->done++ * d->element_bytes, bytes, d->element_bytes);
    return 0;
}

/* One field: packed or single numbers, or one string. Elements are the low bytes of the numbers (little
 * endian throughout). */
static int decode_field(struct decoder *d, const struct bw_wire_field *field, uint32_t number)
{
    int rc = 0;
    if (number == STRING_DATA)
        return field->type == BW_WIRE_BYTES
                   ? decode_element(d, &field->bytes)
                   : tensor_error(d->tensor, d->err, -EBADMSG, "its strings are no strings");
    if (field->type != BW_WIRE_BYTES)
        return decode_element(d, &field->value);
    const uint8_t *at = field->bytes.data, *end = at + field->bytes.size_bytes;
    uint32_t fixed_bytes = number == FLOAT_DATA ? 4 : number == DOUBLE_DATA ? 8 : 0;
    while (!rc && at < end) {
        uint64_t value = 0;
        if (fixed_bytes) {
            if ((uint64_t)(end - at) < fixed_bytes)
                return tensor_error(d->tensor, d->err, -EBADMSG, "packed data are cut off");
            memcpy(&value, at, fixed_bytes);
            at += fixed_bytes;
        } else if (bw_wire_varint(&at, end, &value)) {
            return tensor_error(d->tensor, d->err, -EBADMSG, "packed data are cut off");
        }
        rc = decode_element(d, &value);
    }
    return rc;
}

static int decode_typed(struct bw_onnx_tensor *tensor, const uint8_t *file, struct bw_err *err)
{
    uint32_t number = typed_field(tensor->dtype);
    struct decoder d = {
        .tensor = tensor, .err = err, .element_bytes = bw_dtype_bytes(bw_onnx_dtype_of(tensor->dtype))};
    if (number == STRING_DATA)
        d.element_bytes = sizeof(struct bw_bytes);
    /* Each element takes at least a byte of the file: a shape that promises more is refused before memory is
     * taken for it. */
    if ((uint64_t)tensor->elements > tensor->message.size_bytes)
        return tensor_error(tensor, err, -EBADMSG, "fewer elements than its shape says");
    d.out = calloc(tensor->elements ? (size_t)tensor->elements : 1, d.element_bytes);
    if (!d.out)
        return tensor_error(tensor, err, -ENOMEM, "no memory for its elements");
    struct bw_wire wire = {.file = file,
                           .at = tensor->message.data,
                           .end = tensor->message.data + tensor->message.size_bytes,
                           .message = "TensorProto",
                           .err = err};
    struct bw_wire_field field;
    int rc;
    while ((rc = bw_wire_next(&wire, &field)) > 0) {
        rc = field.number == number ? decode_field(&d, &field, number) : 0;
        if (rc)
            break;
    }
    if (!rc && d.done != (uint64_t)tensor->elements)
        rc = tensor_error(tensor, err, -EBADMSG, "fewer elements than its shape says");
    if (rc)
        free(d.out);
    else
        tensor->decoded = d.out;
    return rc;
}

/* External files lie beside the model or below it: a path that leaves its directory is refused. */
static bool location_is_safe(const char *location)
{
    if (!*location || *location == '/')
        return false;
    for (const char *part = location; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
        if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
            return false;
    return true;
}

static int map_file(const struct bw_onnx_tensor *tensor, const char *path, struct bw_onnx_mapping *mapping,
                    struct bw_err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO would wait for its writer */
    if (fd < 0)
        return tensor_error(tensor, err, -errno, "its external file cannot be opened");
    if (fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size <= 0) {
        close(fd);
        return tensor_error(tensor, err, -EINVAL, "its external file is empty or no file");
    }
    void *address = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int code = -errno;
    close(fd);
    if (address == MAP_FAILED)
        return tensor_error(tensor, err, code, "its external file cannot be mapped");
    *mapping = (struct bw_onnx_mapping){address, (uint64_t)status.st_size};
    return 0;
}

static int external_data(const struct bw_onnx_tensor *tensor, const char *directory, const void **data,
                         struct bw_onnx_mapping *mapping, struct bw_err *err)
{
    enum { PATH_BYTES_MAX = 4096 };
    char path[PATH_BYTES_MAX], location[PATH_BYTES_MAX];
    uint64_t wanted = (uint64_t)tensor->elements * bw_dtype_bytes(bw_onnx_dtype_of(tensor->dtype));
    if (tensor->location.size_bytes >= sizeof location ||
        memchr(tensor->location.data, 0, tensor->location.size_bytes))
        return tensor_error(tensor, err, -EINVAL, "its external file has an unusable name");
    memcpy(location, tensor->location.data, tensor->location.size_bytes);
    location[tensor->location.size_bytes] = 0;
    if (!directory || !location_is_safe(location))
        return tensor_error(tensor, err, -EACCES, "its external file lies outside the model's directory");
    if (snprintf(path, sizeof path, "%s/%s", directory, location) >= (int)sizeof path)
        return tensor_error(tensor, err, -ENAMETOOLONG, "its external file has an unusable name");
    if (tensor->external_bytes_given && tensor->external_bytes != wanted)
        return tensor_error(tensor, err, -EBADMSG,
                            "the length of its external data is not that of its shape");
    int rc = map_file(tensor, path, mapping, err);
    if (rc)
        return rc;
    if (tensor->external_offset > mapping->size_bytes ||
        wanted > mapping->size_bytes - tensor->external_offset)
        return tensor_error(tensor, err, -EBADMSG, "its external file is too short");
    *data = (const uint8_t *)mapping->address + tensor->external_offset;
    return 0;
}

/* A bool is 0 or 1 everywhere else; in a file it is whatever is not 0. */
static int normalize_bools(struct bw_onnx_tensor *tensor, const void **data, struct bw_err *err)
{
    const uint8_t *bytes = *data;
    uint8_t all = 0;
    for (int64_t i = 0; i < tensor->elements; i++)
        all |= bytes[i];
    if (all <= 1)
        return 0;
    uint8_t *copy = tensor->decoded ? tensor->decoded : malloc((size_t)tensor->elements);
    if (!copy)
        return tensor_error(tensor, err, -ENOMEM, "no memory for its elements");
    for (int64_t i = 0; i < tensor->elements; i++)
        copy[i] = bytes[i] != 0;
    *data = tensor->decoded = copy;
    return 0;
}

static int find_data(struct bw_onnx_tensor *tensor, const uint8_t *file, const char *directory,
                     const void **data, struct bw_onnx_mapping *external, struct bw_err *err)
{
    enum bw_dtype dtype = bw_onnx_dtype_of(tensor->dtype);
    if (dtype == BW_VOID && tensor->dtype != BW_ONNX_STRING)
        return tensor_error(tensor, err, -ENOTSUP, "elements of this type are not supported");
    if (tensor->decoded) {
        *data = tensor->decoded;
        return 0;
    }
    if (tensor->external && dtype != BW_VOID)
        return external_data(tensor, directory, data, external, err);
    if (!tensor->has_raw || dtype == BW_VOID) {
        int rc = decode_typed(tensor, file, err);
        *data = tensor->decoded;
        return rc;
    }
    if (tensor->raw.size_bytes != (uint64_t)tensor->elements * bw_dtype_bytes(dtype))
        return tensor_error(tensor, err, -EBADMSG, "its raw data do not have the size of its shape");
    *data = tensor->raw.data;
    return 0;
}

int bw_onnx_tensor_data(struct bw_onnx_tensor *tensor, const uint8_t *file, const char *directory,
                        const void **data, struct bw_onnx_mapping *external, struct bw_err *err)
{
    bool decoded_before = tensor->decoded != NULL;
    int rc = find_data(tensor, file, directory, data, external, err);
    if (!rc && !decoded_before && bw_onnx_dtype_of(tensor->dtype) == BW_BOOL)
        rc = normalize_bools(tensor, data, err);
    return rc;
}
