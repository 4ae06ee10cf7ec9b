/* The elements of a TensorProto: raw bytes in place, typed fields decoded, external files mapped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/onnx/proto.h"

static int tensor_error(const struct bw_onnx_tensor *tensor, struct bw_err *err, int code, const char *what)
{
    return bw_fail(err, code, "onnx", "byte %llu: tensor '%s' (%s): %s", (unsigned long long)tensor->offset,
                   bw_onnx_text(tensor->name).text, bw_onnx_dtype_text(tensor->dtype).text, what);
}

/* The typed field that holds a dtype's elements. */
static uint32_t typed_field(int64_t onnx_dtype)
{
    switch (bw_onnx_dtype_of(onnx_dtype)) {
    case BW_F32:
        return BW_ONNX_FLOAT_DATA;
    case BW_F64:
        return BW_ONNX_DOUBLE_DATA;
    case BW_I64:
        return BW_ONNX_INT64_DATA;
    case BW_U32:
    case BW_U64:
        return BW_ONNX_UINT64_DATA;
    case BW_VOID:
        return onnx_dtype == BW_ONNX_STRING ? BW_ONNX_STRING_DATA : 0;
    default: /* small integers, bool, and the bits of small floats */
        return BW_ONNX_INT32_DATA;
    }
}

/* What a file holds of a tensor: its elements, or bytes of several elements each. */
struct units {
    uint64_t count;
    uint32_t unit_bytes;
};

static bool is_packed(const struct bw_onnx_tensor *tensor)
{
    uint32_t bits = bw_onnx_dtype_bits(tensor->dtype);
    return bits && bits < 8;
}

static struct units units_of(const struct bw_onnx_tensor *tensor)
{
    uint64_t elements = (uint64_t)tensor->elements;
    if (tensor->dtype == BW_ONNX_STRING)
        return (struct units){elements, sizeof(struct bw_bytes)};
    if (is_packed(tensor)) /* the last byte may have room for more */
        return (struct units){(elements * bw_onnx_dtype_bits(tensor->dtype) + 7) / 8, 1};
    return (struct units){elements, bw_dtype_bytes(bw_onnx_dtype_of(tensor->dtype))};
}

struct decoder {
    const struct bw_onnx_tensor *tensor;
    uint8_t *out;
    struct units units;
    uint64_t done; /* units */
    struct bw_err *err;
};

static int decode_element(struct decoder *d, const void *bytes)
{
    if (d->done == d->units.count)
        return tensor_error(d->tensor, d->err, -EBADMSG, "more elements than its shape says");
    memcpy(d->out + d->done++ * d->units.unit_bytes, bytes, d->units.unit_bytes);
    return 0;
}

/* Whether a number of int32_data or uint64_data is one of the dtype. Negative numbers come as 64 bits, or cut
 * to 32; floats come as their bits. */
static bool number_fits(enum bw_dtype dtype, uint64_t number)
{
    int64_t value = (int64_t)number;
    if (dtype == BW_U32)
        return number <= UINT32_MAX;
    if (dtype == BW_BOOL || dtype == BW_I64 || dtype == BW_U64)
        return true;
    if (value != (int32_t)number && number > UINT32_MAX)
        return false;
    value = (int32_t)number;
    if (dtype == BW_F16 || dtype == BW_BF16)
        return value >= INT16_MIN && value <= UINT16_MAX;
    if (bw_dtype_is_storage(dtype)) /* a byte of bits */
        return value >= INT8_MIN && value <= UINT8_MAX;
    return value >= bw_dtype_int_min(dtype) && value <= bw_dtype_int_max(dtype);
}

static int decode_number(struct decoder *d, uint64_t number)
{
    if (!number_fits(bw_onnx_dtype_of(d->tensor->dtype), number))
        return tensor_error(d->tensor, d->err, -EBADMSG, "an element does not fit into its type");
    return decode_element(d, &number);
}

/* One field: packed or single numbers, or one string. Elements are the low bytes of the numbers (little
 * endian throughout). */
static int decode_field(struct decoder *d, const struct bw_wire_field *field, uint32_t number)
{
    int rc = 0;
    if (number == BW_ONNX_STRING_DATA)
        return field->type == BW_WIRE_BYTES
                   ? decode_element(d, &field->bytes)
                   : tensor_error(d->tensor, d->err, -EBADMSG, "its strings are no strings");
    uint32_t fixed_bytes = number == BW_ONNX_FLOAT_DATA ? 4 : number == BW_ONNX_DOUBLE_DATA ? 8 : 0;
    if (field->type != BW_WIRE_BYTES)
        return fixed_bytes ? decode_element(d, &field->value) : decode_number(d, field->value);
    const uint8_t *at = field->bytes.data, *end = at + field->bytes.size_bytes;
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
        rc = fixed_bytes ? decode_element(d, &value) : decode_number(d, value);
    }
    return rc;
}

static int decode_typed(struct bw_onnx_tensor *tensor, const uint8_t *file, struct bw_err *err)
{
    uint32_t number = typed_field(tensor->dtype);
    struct decoder d = {.tensor = tensor, .err = err, .units = units_of(tensor)};
    /* Each unit takes at least a byte of the file: a shape that promises more is refused before memory is
     * taken for it. */
    if (d.units.count > tensor->message.size_bytes)
        return tensor_error(tensor, err, -EBADMSG, "fewer elements than its shape says");
    d.out = calloc(d.units.count ? (size_t)d.units.count : 1, d.units.unit_bytes);
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
    if (!rc && d.done != d.units.count)
        rc = tensor_error(tensor, err, -EBADMSG, "fewer elements than its shape says");
    if (rc)
        free(d.out);
    else
        tensor->decoded = d.out;
    return rc;
}

static int external_error(const struct bw_onnx_tensor *tensor, struct bw_err *err, int code)
{
    int rc = tensor_error(tensor, err, code,
                          code == -EACCES   ? "its external file lies outside the model's directory"
                          : code == -EINVAL ? "its external file is no regular file"
                                            : "its external file cannot be opened");
    bw_err_observed(err, "'%s'", bw_onnx_text(tensor->location).text);
    if (code == -EACCES)
        bw_err_hint(err, "data lie beside their model; copy what a symbolic link stands for");
    return rc;
}

/* Maps just the pages that hold the elements: hundreds of tensors may share one file of gigabytes. */
static int external_map(const struct bw_onnx_tensor *tensor, int fd, uint64_t wanted, const void **data,
                        struct bw_onnx_mapping *mapping, struct bw_err *err)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = tensor->external_offset & ~(page - 1);
    uint64_t size_bytes = tensor->external_offset - start + wanted;
    void *address = mmap(NULL, size_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)start);
    if (address == MAP_FAILED)
        return tensor_error(tensor, err, -errno, "its external file cannot be mapped");
    *mapping = (struct bw_onnx_mapping){address, size_bytes, start, fd};
    *data = (const uint8_t *)address + (tensor->external_offset - start);
    return 0;
}

static int external_data(const struct bw_onnx_tensor *tensor, const char *directory, const void **data,
                         struct bw_onnx_mapping *mapping, struct bw_err *err)
{
    struct units units = units_of(tensor);
    uint64_t size_bytes, wanted = units.count * units.unit_bytes;
    if (tensor->has_raw || tensor->typed)
        return tensor_error(tensor, err, -EBADMSG, "elements both in the model and in an external file");
    if (tensor->external_bytes_given && tensor->external_bytes != wanted)
        return tensor_error(tensor, err, -EBADMSG,
                            "the length of its external data is not that of its shape");
    int fd = directory ? bw_onnx_open_beneath(directory, tensor->location, false, &size_bytes) : -EACCES;
    if (fd < 0)
        return external_error(tensor, err, fd);
    int rc = 0;
    if (tensor->external_offset > size_bytes || wanted > size_bytes - tensor->external_offset) {
        rc = tensor_error(tensor, err, -EBADMSG, "its external file is too short");
        bw_err_expected(err, "%llu bytes from offset %llu", (unsigned long long)wanted,
                        (unsigned long long)tensor->external_offset);
        bw_err_observed(err, "a file of %llu bytes", (unsigned long long)size_bytes);
    } else if (wanted) {
        rc = external_map(tensor, fd, wanted, data, mapping, err);
    }
    if (!mapping->address)
        close(fd);
    return rc;
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

/* Packed elements to a byte each: the first in the low bits, signed ones with their sign. */
static int unpack(struct bw_onnx_tensor *tensor, const void **data, struct bw_err *err)
{
    uint32_t bits = bw_onnx_dtype_bits(tensor->dtype), per_byte = 8 / bits;
    bool is_signed = bw_dtype_carrier(bw_onnx_dtype_of(tensor->dtype)) == BW_I8;
    const uint8_t *packed = *data;
    uint8_t *out = malloc(tensor->elements ? (size_t)tensor->elements : 1);
    for (int64_t i = 0; out && i < tensor->elements; i++) {
        uint8_t high = (uint8_t)(packed[i / per_byte] << (8 - bits * (i % per_byte + 1)));
        out[i] = is_signed ? (uint8_t)((int8_t)high >> (8 - bits)) : high >> (8 - bits);
    }
    free(tensor->decoded);
    *data = tensor->decoded = out;
    return out ? 0 : tensor_error(tensor, err, -ENOMEM, "no memory for its elements");
}

static int find_data(struct bw_onnx_tensor *tensor, const uint8_t *file, const char *directory,
                     const void **data, struct bw_onnx_mapping *external, struct bw_err *err)
{
    enum bw_dtype dtype = bw_onnx_dtype_of(tensor->dtype);
    if (dtype == BW_VOID && tensor->dtype != BW_ONNX_STRING)
        return tensor_error(tensor, err, bw_onnx_dtype_name(tensor->dtype) ? -ENOTSUP : -EBADMSG,
                            bw_onnx_dtype_name(tensor->dtype) ? "elements of this type are not supported"
                                                              : "no type");
    if (tensor->decoded) {
        *data = tensor->decoded;
        return 0;
    }
    if (tensor->external && dtype != BW_VOID)
        return external_data(tensor, directory, data, external, err);
    if (tensor->has_raw && tensor->raw.size_bytes && tensor->typed)
        return tensor_error(tensor, err, -EBADMSG, "elements both as raw data and as numbers");
    if (tensor->typed & ~(1u << typed_field(tensor->dtype)))
        return tensor_error(tensor, err, -EBADMSG, "its elements are in the field of another type");
    if (!tensor->has_raw || dtype == BW_VOID) {
        int rc = decode_typed(tensor, file, err);
        *data = tensor->decoded;
        return rc;
    }
    struct units units = units_of(tensor);
    if (tensor->raw.size_bytes != units.count * units.unit_bytes) {
        int rc = tensor_error(tensor, err, -EBADMSG, "its raw data do not have the size of its shape");
        bw_err_expected(err, "%llu bytes", (unsigned long long)(units.count * units.unit_bytes));
        bw_err_observed(err, "%llu bytes", (unsigned long long)tensor->raw.size_bytes);
        return rc;
    }
    *data = tensor->raw.data;
    return 0;
}

int bw_onnx_tensor_data(struct bw_onnx_tensor *tensor, const uint8_t *file, const char *directory,
                        const void **data, struct bw_onnx_mapping *external, struct bw_err *err)
{
    bool decoded_before = tensor->decoded != NULL;
    int rc = find_data(tensor, file, directory, data, external, err);
    if (rc || decoded_before)
        return rc;
    if (is_packed(tensor))
        return unpack(tensor, data, err);
    return bw_onnx_dtype_of(tensor->dtype) == BW_BOOL ? normalize_bools(tensor, data, err) : 0;
}
