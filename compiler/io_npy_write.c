/* Writing .npy: see io_npy.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "compiler/io_npy.h"

enum {
    PREAMBLE_BYTES = 10, /* magic, version, length of the header */
    DATA_ALIGNMENT = 64, /* of the elements in the file, as numpy writes them so that they can be mapped */
};

static const char *descr_of(enum bw_dtype dtype)
{
    static const char *const names[BW_DTYPE_COUNT] = {
        [BW_BOOL] = "|b1", [BW_I8] = "|i1",  [BW_U8] = "|u1",  [BW_I16] = "<i2", [BW_U16] = "<u2",
        [BW_I32] = "<i4",  [BW_U32] = "<u4", [BW_I64] = "<i8", [BW_U64] = "<u8", [BW_F16] = "<f2",
        [BW_BF16] = "<V2", [BW_F32] = "<f4", [BW_F64] = "<f8",
    };
    return names[dtype];
}

static uint64_t longest(const struct bw_array *strings)
{
    uint64_t most = 1; /* numpy has no strings of no bytes */
    const struct bw_string *string = strings->data;
    for (int64_t i = 0; i < bw_array_elements(strings); i++)
        most = string[i].size_bytes > most ? string[i].size_bytes : most;
    return most;
}

static bool header_write(FILE *file, const struct bw_array *array, uint64_t string_bytes)
{
    struct bw_text text = {0};
    if (string_bytes)
        bw_text_add(&text, "{'descr': '|S%llu'", (unsigned long long)string_bytes);
    else
        bw_text_add(&text, "{'descr': '%s'", descr_of(array->dtype));
    bw_text_add(&text, ", 'fortran_order': False, 'shape': (");
    for (uint32_t i = 0; i < array->rank; i++)
        bw_text_add(&text, "%s%lld%s", i ? " " : "", (long long)array->dims[i],
                    i + 1 < array->rank || i == 0 ? "," : "");
    bw_text_add(&text, "), }");
    size_t end = PREAMBLE_BYTES + text.length + 1;
    bw_text_add(&text, "%*s\n", (int)((DATA_ALIGNMENT - end % DATA_ALIGNMENT) % DATA_ALIGNMENT), "");
    const uint8_t preamble[PREAMBLE_BYTES] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)text.length, (uint8_t)(text.length >> 8),
    };
    bool written = !text.failed && fwrite(preamble, 1, sizeof preamble, file) == sizeof preamble &&
                   fwrite(text.data, 1, text.length, file) == text.length;
    bw_text_free(&text);
    return written;
}

static bool strings_write(FILE *file, const struct bw_array *strings, uint64_t string_bytes)
{
    const struct bw_string *string = strings->data;
    for (int64_t i = 0; i < bw_array_elements(strings); i++) {
        if (fwrite(string[i].data, 1, string[i].size_bytes, file) != string[i].size_bytes)
            return false;
        for (uint64_t pad = string[i].size_bytes; pad < string_bytes; pad++)
            if (putc(0, file) == EOF)
                return false;
    }
    return true;
}

static bool elements_write(FILE *file, const struct bw_array *array)
{
    size_t bytes = (size_t)bw_array_elements(array) * bw_dtype_bytes(array->dtype);
    return !bytes || fwrite(array->data, 1, bytes, file) == bytes;
}

int bw_npy_write(const char *path, const struct bw_value *value, struct bw_err *err)
{
    bool text = value->kind == BW_VALUE_STRINGS;
    if (!text && (value->kind != BW_VALUE_ARRAY || !bw_dtype_bytes(value->array.dtype)))
        return bw_fail(err, -EINVAL, "npy", "%s: a sequence or an empty optional is no array", path);
    FILE *file = fopen(path, "wbe");
    if (!file)
        return bw_fail(err, -errno, "npy", "%s", path);
    uint64_t string_bytes = text ? longest(&value->array) : 0;
    errno = 0;
    bool written =
        header_write(file, &value->array, string_bytes) &&
        (text ? strings_write(file, &value->array, string_bytes) : elements_write(file, &value->array));
    int code = errno;
    if (fclose(file)) {
        code = errno;
        written = false;
    }
    if (written)
        return 0;
    unlink(path);
    return bw_fail(err, code ? -code : -EIO, "npy", "%s", path);
}
