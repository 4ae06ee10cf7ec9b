/* PNG through libpng: see include/bellwire/picture.h. */
#include <bellwire/picture.h>

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/io.h"

enum {
    CHANNELS = 4, /* everything is expanded to RGBA of 16 bits */
    SAMPLE_BYTES = 2,
    DEFLATE_RATIO_MAX = 1032, /* zlib's technical details: no stream expands more */
};

static const uint64_t FILE_BYTES_MAX = 1ull << 30; /* BW_PICTURE_PIXELS_MAX of 16-bit RGBA, uncompressed */

struct decoder {
    const uint8_t *at, *end;
    png_structp png;
    png_infop info;
    png_bytep samples; /* a row; the whole picture of interlaced files */
    png_bytepp rows;
    struct bw_picture *picture;
    char why[96];
    int code;
};

static void on_error(png_structp png, png_const_charp message)
{
    struct decoder *decoder = png_get_error_ptr(png);
    if (!decoder->why[0])
        strncpy(decoder->why, message, sizeof decoder->why - 1);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
}

static void on_read(png_structp png, png_bytep data, size_t size_bytes)
{
    struct decoder *decoder = png_get_io_ptr(png);
    if ((size_t)(decoder->end - decoder->at) < size_bytes)
        png_error(png, "the file ends too early");
    memcpy(data, decoder->at, size_bytes);
    decoder->at += size_bytes;
}

static bool has_palette(const struct decoder *decoder)
{
    return png_get_color_type(decoder->png, decoder->info) == PNG_COLOR_TYPE_PALETTE;
}

static void expand(struct decoder *decoder)
{
    if (has_palette(decoder)) { /* libpng's own expansion reads past the palette's end as black */
        png_set_packing(decoder->png);
    } else {
        png_set_expand_16(decoder->png); /* also gray of few bits and transparent colours */
        png_set_gray_to_rgb(decoder->png);
        png_set_add_alpha(decoder->png, 0xffff, PNG_FILLER_AFTER);
    }
    png_set_interlace_handling(decoder->png);
    png_read_update_info(decoder->png, decoder->info);
}

static void allocate(struct decoder *decoder, uint64_t file_bytes)
{
    uint64_t width = png_get_image_width(decoder->png, decoder->info);
    uint64_t height = png_get_image_height(decoder->png, decoder->info);
    uint64_t packed_bytes = png_get_rowbytes(decoder->png, decoder->info) * height;
    decoder->code = -EFBIG;
    if (width * height > BW_PICTURE_PIXELS_MAX)
        png_error(decoder->png, "more than 2^26 pixels");
    decoder->code = -EBADMSG;
    if (packed_bytes / DEFLATE_RATIO_MAX > file_bytes)
        png_error(decoder->png, "the file is too small for its picture");
    expand(decoder);
    decoder->code = -ENOMEM;
    /* What is interlaced is whole at its last pass; of all else a row at a time is held. */
    uint64_t held = png_get_interlace_type(decoder->png, decoder->info) == PNG_INTERLACE_NONE ? 1 : height;
    decoder->samples = malloc(width * held * CHANNELS * SAMPLE_BYTES);
    decoder->rows = calloc(held, sizeof *decoder->rows);
    decoder->picture->rgb = malloc(width * height * 3 * sizeof *decoder->picture->rgb);
    if (!decoder->samples || !decoder->rows || !decoder->picture->rgb)
        png_error(decoder->png, "out of memory");
    decoder->code = -EBADMSG;
    decoder->picture->width = (uint32_t)width;
    decoder->picture->height = (uint32_t)height;
    for (uint64_t y = 0; y < held; y++)
        decoder->rows[y] = decoder->samples + y * width * CHANNELS * SAMPLE_BYTES;
}

/* A row of indexes, a byte each, to RGBA of 16 bits in the same place: from its end, since it grows. */
static void row_colour(const struct decoder *decoder, uint8_t *row, const png_color *palette, int colours,
                       const uint8_t *alpha, int alphas)
{
    for (uint32_t x = png_get_image_width(decoder->png, decoder->info); x-- > 0;) {
        int index = row[x];
        if (index >= colours) {
            char why[64];
            snprintf(why, sizeof why, "colour %d of a palette of %d", index, colours);
            png_error(decoder->png, why);
        }
        const uint8_t rgba[CHANNELS] = {palette[index].red, palette[index].green, palette[index].blue,
                                        index < alphas ? alpha[index] : 0xff};
        for (unsigned i = 0; i < CHANNELS * SAMPLE_BYTES; i++)
            row[(size_t)x * CHANNELS * SAMPLE_BYTES + i] =
                rgba[i / SAMPLE_BYTES]; /* 257 times: 255 to 65535 */
    }
}

static void palette_apply(const struct decoder *decoder, uint8_t *row)
{
    png_colorp palette = NULL;
    png_bytep alpha = NULL;
    int colours = 0, alphas = 0;
    png_get_PLTE(decoder->png, decoder->info, &palette, &colours);
    png_get_tRNS(decoder->png, decoder->info, &alpha, &alphas, NULL);
    row_colour(decoder, row, palette, colours, alpha, alphas);
}

static float sample(const uint8_t *at)
{
    return (float)((unsigned)at[0] << 8 | at[1]) / 65535.0f;
}

/* Over a white ground. */
static void blend(const uint8_t *row, uint32_t pixels, float *rgb)
{
    for (uint32_t i = 0; i < pixels; i++, row += CHANNELS * SAMPLE_BYTES, rgb += 3) {
        float alpha = sample(row + 3 * SAMPLE_BYTES);
        for (unsigned channel = 0; channel < 3; channel++)
            rgb[channel] = alpha == 1.0f ? sample(row + channel * SAMPLE_BYTES)
                                         : sample(row + channel * SAMPLE_BYTES) * alpha + (1.0f - alpha);
    }
}

static void row_deliver(const struct decoder *decoder, uint32_t y, uint8_t *row)
{
    const struct bw_picture *picture = decoder->picture;
    if (has_palette(decoder))
        palette_apply(decoder, row);
    blend(row, picture->width, picture->rgb + (size_t)y * picture->width * 3);
}

/* 0, or -1 with decoder->why set. Nothing that changes after setjmp is read after it. */
static int decode(struct decoder *decoder, uint64_t file_bytes)
{
    if (setjmp(png_jmpbuf(decoder->png)))
        return -1;
    png_set_user_limits(decoder->png, BW_PICTURE_PIXELS_MAX, BW_PICTURE_PIXELS_MAX);
    png_set_read_fn(decoder->png, decoder, on_read);
    png_read_info(decoder->png, decoder->info);
    bool interlaced = png_get_interlace_type(decoder->png, decoder->info) != PNG_INTERLACE_NONE;
    allocate(decoder, file_bytes);
    if (interlaced)
        png_read_image(decoder->png, decoder->rows);
    for (uint32_t y = 0; y < decoder->picture->height; y++) {
        uint8_t *row = decoder->rows[interlaced ? y : 0];
        if (!interlaced)
            png_read_row(decoder->png, row, NULL);
        row_deliver(decoder, y, row);
    }
    png_read_end(decoder->png, NULL);
    return 0;
}

int bw_png_parse(const char *name, const uint8_t *data, uint64_t size_bytes, struct bw_picture *picture,
                 struct bw_err *err)
{
    struct decoder decoder = {.at = data, .end = data + size_bytes, .picture = picture, .code = -EBADMSG};
    *picture = (struct bw_picture){0};
    decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, on_error, on_warning);
    decoder.info = decoder.png ? png_create_info_struct(decoder.png) : NULL;
    int rc = decoder.info ? 0 : -ENOMEM;
    if (!rc)
        rc = decode(&decoder, size_bytes) ? decoder.code : 0;
    png_destroy_read_struct(&decoder.png, &decoder.info, NULL);
    free(decoder.samples);
    free(decoder.rows);
    if (rc)
        bw_picture_free(picture);
    return rc ? bw_fail(err, rc, "png", "%s: %s", name, decoder.why[0] ? decoder.why : "out of memory") : 0;
}

int bw_png_read(const char *path, struct bw_picture *picture, struct bw_err *err)
{
    uint8_t *data = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_file_read(path, FILE_BYTES_MAX, &data, &size_bytes, err);
    if (rc)
        return rc;
    rc = bw_png_parse(path, data, size_bytes, picture, err);
    free(data);
    return rc;
}

void bw_picture_free(struct bw_picture *picture)
{
    free(picture->rgb);
    *picture = (struct bw_picture){0};
}
