/* Pictures as inputs: channels first, 0 to 1, normalised. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <bellwire/picture.h>

#include "tools/run.h"

/* ITU-R BT.601, as picture libraries turn colours to gray. */
static const double gray_weights[3] = {0.299, 0.587, 0.114};

/* 1 or 3, or 0: the input is no picture. */
static uint32_t channels_of(const struct bw_model_value *declared)
{
    if (!declared->has_shape)
        return 3;
    if (declared->rank < 3 || declared->rank > 4)
        return 0;
    int64_t size = declared->dims[declared->rank - 3].size;
    return size < 0 ? 3 : size == 1 || size == 3 ? (uint32_t)size : 0;
}

static bool size_fits(const struct bw_picture *picture, const struct bw_model_value *declared)
{
    if (!declared->has_shape)
        return true;
    int64_t height = declared->dims[declared->rank - 2].size, width = declared->dims[declared->rank - 1].size;
    return (height < 0 || height == picture->height) && (width < 0 || width == picture->width);
}

struct extent {
    char text[24];
};

static struct extent extent_text(int64_t size)
{
    struct extent extent = {"any"};
    if (size >= 0)
        snprintf(extent.text, sizeof extent.text, "%lld", (long long)size);
    return extent;
}

enum { STRETCH_PIXELS = 1024 }; /* fit the nearest cache */

static void channel_values(const float *pixels, uint64_t count, uint32_t channel, uint32_t channels,
                           const struct bw_run_picture_options *options, double *values)
{
    const float *from = pixels + (options->bgr ? 2 - channel : channel);
    for (uint64_t i = 0; i < count && channels != 1; i++)
        values[i] = (double)from[3 * i];
    for (uint64_t i = 0; i < count && channels == 1; i++)
        values[i] = gray_weights[0] * (double)pixels[3 * i] + gray_weights[1] * (double)pixels[3 * i + 1] +
                    gray_weights[2] * (double)pixels[3 * i + 2];
}

static void store(struct bw_array *array, uint64_t at, const double *values, uint64_t count, double mean,
                  double std)
{
    if (array->dtype == BW_F32)
        for (uint64_t i = 0; i < count; i++)
            ((float *)array->data)[at + i] = (float)((values[i] - mean) / std);
    else if (array->dtype == BW_F16)
        for (uint64_t i = 0; i < count; i++)
            ((uint16_t *)array->data)[at + i] = bw_f16_from_f64((values[i] - mean) / std);
    else /* u8: samples as they are in most files */
        for (uint64_t i = 0; i < count; i++)
            ((uint8_t *)array->data)[at + i] = (uint8_t)(values[i] * 255 + 0.5);
}

/* Planes from pixels, a stretch of them for all channels at once. */
static void planes_make(const struct bw_picture *picture, uint32_t channels,
                        const struct bw_run_picture_options *options, struct bw_array *array)
{
    double values[STRETCH_PIXELS];
    uint64_t plane = (uint64_t)picture->width * picture->height;
    for (uint64_t at = 0; at < plane; at += STRETCH_PIXELS) {
        uint64_t count = plane - at < STRETCH_PIXELS ? plane - at : STRETCH_PIXELS;
        for (uint32_t channel = 0; channel < channels; channel++) {
            channel_values(picture->rgb + 3 * at, count, channel, channels, options, values);
            store(array, channel * plane + at, values, count, options->mean[channel], options->std[channel]);
        }
    }
}

int bw_run_picture_parse(const char *path, const uint8_t *data, uint64_t size_bytes,
                         const struct bw_model_value *declared, const struct bw_run_picture_options *options,
                         struct bw_value *value, struct bw_err *err)
{
    struct bw_picture picture;
    uint32_t channels = channels_of(declared);
    bool dtype_fits = declared->dtype == BW_F32 || declared->dtype == BW_F16 || declared->dtype == BW_U8;
    if (declared->kind != BW_VALUE_ARRAY || !channels || !dtype_fits) {
        bw_fail(err, -EINVAL, "run", "%s: input '%s' takes no picture", path, declared->name);
        bw_err_expected(err, "f32, f16 or u8 of 1 or 3 channels, CHW");
        return -EINVAL;
    }
    int rc = bw_png_parse(path, data, size_bytes, &picture, err);
    if (rc)
        return rc;
    if (!size_fits(&picture, declared)) {
        bw_fail(err, -EINVAL, "run", "%s: size for input '%s'", path, declared->name);
        bw_err_expected(err, "%s x %s", extent_text(declared->dims[declared->rank - 1].size).text,
                        extent_text(declared->dims[declared->rank - 2].size).text);
        bw_err_observed(err, "%u x %u", picture.width, picture.height);
        bw_err_hint(err,
                    "width x height; pictures are not scaled: give one of the size that the model takes");
        bw_picture_free(&picture);
        return -EINVAL;
    }
    uint64_t plane = (uint64_t)picture.width * picture.height;
    struct bw_array array = {.dtype = declared->dtype,
                             .rank = declared->has_shape ? declared->rank : 4,
                             .data = malloc(plane * channels * bw_dtype_bytes(declared->dtype))};
    if (!array.data) {
        bw_picture_free(&picture);
        return bw_fail(err, -ENOMEM, "run", "%s", path);
    }
    array.dims[0] = 1;
    array.dims[array.rank - 3] = channels;
    array.dims[array.rank - 2] = picture.height;
    array.dims[array.rank - 1] = picture.width;
    planes_make(&picture, channels, options, &array);
    bw_picture_free(&picture);
    *value = (struct bw_value){.kind = BW_VALUE_ARRAY, .array = array};
    return 0;
}
