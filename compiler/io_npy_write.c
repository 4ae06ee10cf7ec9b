/* Writing .npy: see io_npy.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "compiler/io.h"
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
    return names[bw_dtype_carrier(dtype)];
}

static uint64_t longest(const struct bw_array *strings)
{
    uint64_t most = 1; /* numpy has no strings of no bytes */
    const struct bw_string *string = strings->data;
    for (int64_t i = 0; i < bw_array_elements(strings); i++)
        most = string[i].size_bytes > most ? string[i].size_bytes : most;
    return most;
}

/* Preamble and header. */
static void header_make(struct bw_text *text, const struct bw_array *array, uint64_t string_bytes)
{
    static const uint8_t preamble[PREAMBLE_BYTES] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    bw_text_add_bytes(text, (const char *)preamble, sizeof preamble);
    if (string_bytes)
        bw_text_add(text, "{'descr': '|S%llu'", (unsigned long long)string_bytes);
    else
        bw_text_add(text, "{'descr': '%s'", descr_of(array->dtype));
    bw_text_add(text, ", 'fortran_order': False, 'shape': (");
    for (uint32_t i = 0; i < array->rank; i++)
        bw_text_add(text, "%s%lld%s", i ? " " : "", (long long)array->dims[i],
                    i + 1 < array->rank || i == 0 ? "," : "");
    bw_text_add(text, "), }");
    size_t end = text->length + 1;
    bw_text_add(text, "%*s\n", (int)((DATA_ALIGNMENT - end % DATA_ALIGNMENT) % DATA_ALIGNMENT), "");
    if (text->failed)
        return;
    text->data[PREAMBLE_BYTES - 2] = (char)(text->length - PREAMBLE_BYTES);
    text->data[PREAMBLE_BYTES - 1] = (char)((text->length - PREAMBLE_BYTES) >> 8);
}

/* Strings padded to the same size. NULL: no memory. */
static char *strings_pad(const struct bw_array *strings, uint64_t string_bytes, uint64_t *size_bytes)
{
    const struct bw_string *string = strings->data;
    uint64_t count = (uint64_t)bw_array_elements(strings);
    char *padded = calloc(count ? count : 1, string_bytes);
    for (uint64_t i = 0; padded && i < count; i++)
        if (string[i].size_bytes)
            memcpy(padded + i * string_bytes, string[i].data, string[i].size_bytes);
    *size_bytes = count * string_bytes;
    return padded;
}

int bw_npy_write(const char *path, const struct bw_value *value, struct bw_err *err)
{
    bool strings = value->kind == BW_VALUE_STRINGS;
    if (!strings && (value->kind != BW_VALUE_ARRAY || !bw_dtype_bytes(value->array.dtype)))
        return bw_fail(err, -EINVAL, "npy", "%s: a sequence or an empty optional is no array", path);
    uint64_t string_bytes = strings ? longest(&value->array) : 0;
    struct bw_text header = {0};
    header_make(&header, &value->array, string_bytes);
    struct bw_file_piece pieces[2] = {{header.data, header.length}};
    pieces[1] = (struct bw_file_piece){value->array.data, (uint64_t)bw_array_elements(&value->array) *
                                                              bw_dtype_bytes(value->array.dtype)};
    char *padded = strings ? strings_pad(&value->array, string_bytes, &pieces[1].size_bytes) : NULL;
    if (strings)
        pieces[1].data = padded;
    int rc = header.failed || (strings && !padded) ? bw_fail(err, -ENOMEM, "npy", "%s", path)
                                                   : bw_file_write(path, pieces, 2, err);
    free(padded);
    bw_text_free(&header);
    return rc;
}
