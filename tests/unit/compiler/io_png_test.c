/* Goal: every kind of PNG gives the same picture: gray, palette, transparent, 16 bits, interlaced; damage and
 * bombs are refused. Files are written by libpng itself. */
#include <bellwire/err.h>

#include "tests/check.h"

#include <errno.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/picture.h>


struct sink {
    uint8_t bytes[4096];
    uint64_t size_bytes;
};

static void on_write(png_structp png, png_bytep data, size_t size_bytes)
{
    struct sink *sink = png_get_io_ptr(png);
    if (sink->size_bytes + size_bytes > sizeof sink->bytes)
        png_error(png, "test file too large");
    memcpy(sink->bytes + sink->size_bytes, data, size_bytes);
    sink->size_bytes += size_bytes;
}

struct kind {
    int color_type, bit_depth, interlace;
    uint32_t width, height;
    const uint8_t *samples; /* packed rows */
    uint64_t row_bytes;
    bool palette, transparent_color;
};

static struct sink png_make(const struct kind *kind)
{
    static const png_color palette[] = {{255, 0, 0}, {0, 255, 0}, {51, 102, 204}};
    static const uint8_t alpha[] = {255, 0};
    struct sink sink = {.size_bytes = 0};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &sink, on_write, NULL);
    png_set_IHDR(png, info, kind->width, kind->height, kind->bit_depth, kind->color_type, kind->interlace,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_color_16 color = {.gray = 1, .red = 1, .green = 2, .blue = 3};
    if (kind->palette) {
        png_set_PLTE(png, info, palette, 3);
        png_set_tRNS(png, info, alpha, 2, NULL);
    } else if (kind->transparent_color) {
        png_set_tRNS(png, info, NULL, 0, &color);
    }
    png_write_info(png, info);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < kind->height; y++)
            png_write_row(png, kind->samples + y * kind->row_bytes);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return sink;
}

static int parse(const struct sink *sink, uint64_t size_bytes, struct bw_picture *picture, struct bw_err *err)
{
    uint8_t *exact = malloc(size_bytes ? size_bytes : 1);
    memcpy(exact, sink->bytes, size_bytes);
    int rc = bw_png_parse("x.png", exact, size_bytes, picture, err);
    free(exact);
    return rc;
}

static void check(const struct kind *kind, const float *expected)
{
    struct sink sink = png_make(kind);
    struct bw_picture picture;
    struct bw_err err = {0};
    if (!BW_OK(parse(&sink, sink.size_bytes, &picture, &err), &err))
        return;
    BW_EQ(picture.width, kind->width);
    BW_EQ(picture.height, kind->height);
    for (uint32_t i = 0; i < 3 * kind->width * kind->height; i++)
        BW_NEAR((double)picture.rgb[i], (double)expected[i], 1e-6);
    bw_picture_free(&picture);
}

static void test_kinds(void)
{
    static const uint8_t gray1[] = {0x40}, gray8[] = {0, 51, 255}, gray16[] = {0x33, 0x33, 0x80, 0x00};
    static const uint8_t rgb8[] = {1, 2, 3, 255, 128, 0}, rgba8[] = {100, 50, 0, 51, 7, 7, 7, 255};
    static const uint8_t indexes[] = {0x18}, gray_alpha[] = {0, 0, 0, 102};
    check(&(struct kind){PNG_COLOR_TYPE_GRAY, 1, 0, 2, 1, gray1, 1, false, false},
          (const float[]){0, 0, 0, 1, 1, 1});
    check(&(struct kind){PNG_COLOR_TYPE_GRAY, 8, 0, 3, 1, gray8, 3, false, false},
          (const float[]){0, 0, 0, 0.2f, 0.2f, 0.2f, 1, 1, 1});
    check(&(struct kind){PNG_COLOR_TYPE_GRAY, 16, 0, 2, 1, gray16, 4, false, false},
          (const float[]){0.2f, 0.2f, 0.2f, 32768 / 65535.0f, 32768 / 65535.0f, 32768 / 65535.0f});
    check(&(struct kind){PNG_COLOR_TYPE_RGB, 8, 0, 2, 1, rgb8, 6, false, true}, /* 1, 2, 3 is transparent */
          (const float[]){1, 1, 1, 1, 128 / 255.0f, 0});
    check(&(struct kind){PNG_COLOR_TYPE_RGB_ALPHA, 8, 0, 2, 1, rgba8, 8, false, false},
          (const float[]){100 / 255.0f * 0.2f + 0.8f, 50 / 255.0f * 0.2f + 0.8f, 0.8f, 7 / 255.0f, 7 / 255.0f,
                          7 / 255.0f});
    check(&(struct kind){PNG_COLOR_TYPE_PALETTE, 2, 0, 3, 1, indexes, 1, true, false}, /* 0, 1 (clear), 2 */
          (const float[]){1, 0, 0, 1, 1, 1, 0.2f, 0.4f, 0.8f});
    check(&(struct kind){PNG_COLOR_TYPE_GRAY_ALPHA, 8, 0, 2, 1, gray_alpha, 4, false, false},
          (const float[]){1, 1, 1, 0.6f, 0.6f, 0.6f});
}

static void test_interlaced(void)
{
    uint8_t samples[9][9];
    float expected[9 * 9 * 3];
    for (int i = 0; i < 81; i++) {
        samples[i / 9][i % 9] = (uint8_t)(i * 3);
        expected[3 * i] = expected[3 * i + 1] = expected[3 * i + 2] = (float)(i * 3) / 255.0f;
    }
    check(&(struct kind){PNG_COLOR_TYPE_GRAY, 8, PNG_INTERLACE_ADAM7, 9, 9, samples[0], 9, false, false},
          expected);
}

static void test_damage(void)
{
    static const uint8_t rgb8[] = {1, 2, 3, 255, 128, 0};
    struct kind kind = {PNG_COLOR_TYPE_RGB, 8, 0, 2, 1, rgb8, 6, false, false};
    struct sink sink = png_make(&kind);
    struct bw_picture picture;
    struct bw_err err = {0};
    for (uint64_t size_bytes = 0; size_bytes < sink.size_bytes; size_bytes++) {
        BW_EQ(parse(&sink, size_bytes, &picture, &err), -EBADMSG);
        BW_TRUE(strstr(err.what, "x.png: ") != NULL);
        BW_TRUE(picture.rgb == NULL);
    }
    for (uint64_t at = 0; at < 8; at++) { /* the signature */
        struct sink broken = sink;
        broken.bytes[at] ^= 0x10;
        BW_EQ(parse(&broken, sink.size_bytes, &picture, &err), -EBADMSG);
    }
    struct sink broken = sink;
    broken.bytes[sink.size_bytes - 20] ^= 1; /* in the compressed data or its checksum */
    BW_EQ(parse(&broken, sink.size_bytes, &picture, &err), -EBADMSG);
}

/* The header alone may not make us allocate what the file cannot fill. */
static void test_bombs(void)
{
    struct kind kind = {PNG_COLOR_TYPE_GRAY, 8, 0, 3, 1, (const uint8_t[]){1, 2, 3}, 3, false, false};
    static const struct {
        uint32_t width, height;
        int code;
    } rows[] = {{8192, 8192, -EBADMSG}, {8192, 8193, -EFBIG}, {1 << 26, 1 << 5, -EFBIG}, {0, 5, -EBADMSG}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sink sink = png_make(&kind);
        uint8_t *header = sink.bytes + 8 + 8; /* after the signature, the chunk's length and name */
        for (int byte = 0; byte < 4; byte++) {
            header[byte] = (uint8_t)(rows[i].width >> (24 - 8 * byte));
            header[4 + byte] = (uint8_t)(rows[i].height >> (24 - 8 * byte));
        }
        uint32_t crc = 0xffffffff; /* of the chunk's name and data (PNG specification, annex D) */
        for (int at = 0; at < 17; at++) {
            crc ^= sink.bytes[12 + at];
            for (int bit = 0; bit < 8; bit++)
                crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
        }
        for (int byte = 0; byte < 4; byte++)
            sink.bytes[29 + byte] = (uint8_t)(~crc >> (24 - 8 * byte));
        struct bw_picture picture;
        struct bw_err err = {0};
        BW_EQ(parse(&sink, sink.size_bytes, &picture, &err), rows[i].code);
    }
}

static void test_files(void)
{
    static const struct {
        const char *name;
        uint32_t height_min;
    } rows[] = {{"line", 16}, {"line-gray", 16}, {"line-palette", 16}, {"line-rgba", 16}, {"line-16bit", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[1024];
        struct bw_picture picture;
        struct bw_err err = {0};
        snprintf(path, sizeof path, BW_SOURCE_DIR "/samples/ocr/%s.png", rows[i].name);
        if (!BW_OK(bw_png_read(path, &picture, &err), &err))
            continue;
        BW_TRUE(picture.height >= rows[i].height_min && picture.width > picture.height);
        float low = 1, high = 0;
        for (uint64_t k = 0; k < 3ull * picture.width * picture.height; k++) {
            low = picture.rgb[k] < low ? picture.rgb[k] : low;
            high = picture.rgb[k] > high ? picture.rgb[k] : high;
        }
        BW_TRUE(low >= 0 && low < 0.4f && high <= 1 && high > 0.8f); /* ink and ground */
        bw_picture_free(&picture);
    }
    struct bw_picture picture;
    BW_EQ(bw_png_read(BW_SOURCE_DIR "/samples/ocr/none.png", &picture, NULL), -ENOENT);
}

BW_TEST_MAIN("compiler.io_png", {"kinds", test_kinds}, {"interlaced", test_interlaced},
             {"damage", test_damage}, {"bombs", test_bombs}, {"files", test_files})
