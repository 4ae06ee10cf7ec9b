/* Any bytes as a .npy or .png file: refused or read, and what is read is no larger than the file can
 * fill. */
#include <stdlib.h>
#include <string.h>

#include <bellwire/picture.h>

#include "compiler/io_npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void npy(const uint8_t *data, size_t size)
{
    struct bw_value value;
    struct bw_err err;
    if (bw_npy_parse("fuzz", data, size, &value, &err)) {
        if (value.kind != BW_VALUE_NONE || err.code >= 0 || !err.what[0])
            abort();
        return;
    }
    if (value.kind == BW_VALUE_ARRAY &&
        (uint64_t)bw_array_elements(&value.array) * bw_dtype_bytes(value.array.dtype) > size)
        abort();
    bw_value_free(&value);
}

static void png(const uint8_t *data, size_t size)
{
    struct bw_picture picture;
    struct bw_err err;
    if (bw_png_parse("fuzz", data, size, &picture, &err)) {
        if (picture.rgb || err.code >= 0 || !err.what[0])
            abort();
        return;
    }
    for (uint64_t i = 0; i < 3ull * picture.width * picture.height; i++)
        if (!(picture.rgb[i] >= 0 && picture.rgb[i] <= 1))
            abort();
    bw_picture_free(&picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    npy(data, size);
    png(data, size);
    return 0;
}
