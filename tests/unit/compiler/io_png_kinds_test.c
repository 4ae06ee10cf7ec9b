/* Goal: all fifteen kinds of PNG, interlaced or not, transparent or not, at sizes around the passes' edges,
 * give the picture that the specification says; damage at any place is an error that names the file, never a
 * wrong picture. The files are written here from the PNG specification (third edition), not by libpng. */
#include <bellwire/err.h>

#include "tests/check.h"

#include <errno.h>

#include <bellwire/picture.h>

#include "base/rng.h"

enum {
    FILE_BYTES_MAX = 1 << 16,
    PIXELS_MAX = 40 * 40,
    GRAY = 0,
    RGB = 2,
    PALETTE = 3,
    GRAY_ALPHA = 4,
    RGBA = 6,
};

struct file {
    uint8_t bytes[FILE_BYTES_MAX];
    size_t size;
    size_t chunk_at[FILE_BYTES_MAX / 12]; /* where each chunk starts; 12 bytes at least */
    unsigned chunks;
};

struct kind {
    uint8_t type, depth;
};

static const struct kind kinds[] = {
    {GRAY, 1},    {GRAY, 2},       {GRAY, 4},        {GRAY, 8},    {GRAY, 16},
    {RGB, 8},     {RGB, 16},       {PALETTE, 1},     {PALETTE, 2}, {PALETTE, 4},
    {PALETTE, 8}, {GRAY_ALPHA, 8}, {GRAY_ALPHA, 16}, {RGBA, 8},    {RGBA, 16},
};

struct image {
    struct kind kind;
    uint32_t width, height;
    bool interlaced, transparent;
    unsigned colours;
    uint8_t palette[256][4];
    uint16_t key[3]; /* the transparent colour of gray and RGB */
    uint16_t samples[PIXELS_MAX][4];
};

static unsigned channels(uint8_t type)
{
    static const unsigned counts[] = {[GRAY] = 1, [RGB] = 3, [PALETTE] = 1, [GRAY_ALPHA] = 2, [RGBA] = 4};
    return counts[type];
}

/* ---- writing ---- */

static void put(struct file *file, const void *data, size_t size)
{
    if (size)
        memcpy(file->bytes + file->size, data, size);
    file->size += size;
}

static void put_be(struct file *file, uint32_t value, int bytes)
{
    while (bytes-- > 0)
        put(file, &(uint8_t){(uint8_t)(value >> 8 * bytes)}, 1);
}

static uint32_t crc_of(const uint8_t *data, size_t size)
{
    uint32_t crc = 0xffffffff;
    for (size_t at = 0; at < size; at++) {
        crc ^= data[at];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

static void chunk(struct file *file, const char *name, const void *data, size_t size)
{
    file->chunk_at[file->chunks++] = file->size;
    put_be(file, (uint32_t)size, 4);
    size_t start = file->size;
    put(file, name, 4);
    put(file, data, size);
    put_be(file, crc_of(file->bytes + start, size + 4), 4);
}

/* zlib's format with stored blocks. */
static void stored(struct file *stream, const uint8_t *data, size_t size)
{
    uint32_t a = 1, b = 0;
    put(stream, "\x78\x01", 2);
    put(stream, (uint8_t[]){1, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)},
        5);
    put(stream, data, size);
    for (size_t i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    put_be(stream, b << 16 | a, 4);
}

/* The pixels x0, x0 + dx, ... of the rows y0, y0 + dy, ...: one pass. */
static void put_pass(struct file *rows, const struct image *image, uint32_t x0, uint32_t y0, uint32_t dx,
                     uint32_t dy)
{
    for (uint32_t y = y0; y < image->height && x0 < image->width; y += dy) {
        unsigned bits = 0, held = 0;
        put(rows, "", 1); /* filter: none */
        for (uint32_t x = x0; x < image->width; x += dx)
            for (unsigned channel = 0; channel < channels(image->kind.type); channel++) {
                uint16_t sample = image->samples[y * image->width + x][channel];
                if (image->kind.depth >= 8) {
                    put_be(rows, sample, image->kind.depth / 8);
                    continue;
                }
                held = held << image->kind.depth | sample;
                bits += image->kind.depth;
                if (bits == 8) {
                    put_be(rows, held, 1);
                    bits = held = 0;
                }
            }
        if (bits)
            put_be(rows, held << (8 - bits), 1);
    }
}

static void put_header(struct file *file, const struct image *image)
{
    struct file data = {.size = 0};
    put_be(&data, image->width, 4);
    put_be(&data, image->height, 4);
    put(&data, (uint8_t[]){image->kind.depth, image->kind.type, 0, 0, image->interlaced}, 5);
    chunk(file, "IHDR", data.bytes, data.size);
}

static void put_colours(struct file *file, const struct image *image)
{
    struct file palette = {.size = 0}, alpha = {.size = 0};
    for (unsigned i = 0; i < image->colours; i++) {
        put(&palette, image->palette[i], 3);
        put(&alpha, &image->palette[i][3], 1);
    }
    if (image->kind.type == PALETTE)
        chunk(file, "PLTE", palette.bytes, palette.size);
    for (unsigned i = 0; image->kind.type < PALETTE && i < channels(image->kind.type); i++)
        put_be(&alpha, image->key[i], 2);
    if (image->transparent)
        chunk(file, "tRNS", alpha.bytes, alpha.size);
}

static void put_rows(struct file *rows, const struct image *image)
{
    static const uint8_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}}; /* table of clause 8 */
    for (unsigned i = 0; i < (image->interlaced ? 7 : 1); i++)
        if (image->interlaced)
            put_pass(rows, image, passes[i][0], passes[i][1], passes[i][2], passes[i][3]);
        else
            put_pass(rows, image, 0, 0, 1, 1);
}

/* piece_bytes: of each IDAT chunk; 0: one for all. */
static void file_make(struct file *file, const struct image *image, size_t piece_bytes)
{
    static struct file rows, stream;
    rows.size = stream.size = file->size = file->chunks = 0;
    put(file, "\x89PNG\r\n\x1a\n", 8);
    put_header(file, image);
    chunk(file, "gAMA", "\0\0\x27\x10", 4); /* 0.1: it would change every sample */
    put_colours(file, image);
    put_rows(&rows, image);
    stored(&stream, rows.bytes, rows.size);
    size_t piece = piece_bytes ? piece_bytes : stream.size;
    for (size_t at = 0; at < stream.size; at += piece)
        chunk(file, "IDAT", stream.bytes + at, at + piece < stream.size ? piece : stream.size - at);
    chunk(file, "tEXt", "Comment\0\x1b", 9);
    chunk(file, "IEND", NULL, 0);
}

/* ---- what it must look like ---- */

static void expected_pixel(const struct image *image, uint32_t pixel, double rgb[3])
{
    const uint16_t *samples = image->samples[pixel];
    double most = (1 << image->kind.depth) - 1, alpha = 1;
    unsigned count = channels(image->kind.type);
    bool coloured = image->kind.type & 2, keyed = image->transparent && image->kind.type < PALETTE;
    if (image->kind.type == PALETTE) {
        const uint8_t *colour = image->palette[samples[0]];
        for (int i = 0; i < 3; i++)
            rgb[i] = colour[i] / 255.0;
        alpha = image->transparent ? colour[3] / 255.0 : 1;
    } else {
        for (unsigned i = 0; i < 3; i++)
            rgb[i] = samples[coloured ? i : 0] / most;
        for (unsigned i = 0; i < count && keyed; i++)
            keyed = samples[i] == image->key[i];
        alpha = image->kind.type & 4 ? samples[count - 1] / most : keyed ? 0 : 1;
    }
    for (int i = 0; i < 3; i++)
        rgb[i] = rgb[i] * alpha + 1 - alpha;
}

static int parse(const struct file *file, size_t size_bytes, struct bw_picture *picture, struct bw_err *err)
{
    uint8_t *exact =
        malloc(size_bytes ? size_bytes : 1); /* what is read past the end shows under sanitizers */
    memcpy(exact, file->bytes, size_bytes);
    int rc = bw_png_parse("x.png", exact, size_bytes, picture, err);
    free(exact);
    return rc;
}

static void check(const struct image *image, size_t piece_bytes)
{
    static struct file file;
    struct bw_picture picture;
    struct bw_err err = {0};
    file_make(&file, image, piece_bytes);
    if (!BW_OK(parse(&file, file.size, &picture, &err), &err)) {
        printf("      type %u, %u bits, %u x %u\n", image->kind.type, image->kind.depth, image->width,
               image->height);
        return;
    }
    BW_EQ(picture.width, image->width);
    BW_EQ(picture.height, image->height);
    for (uint32_t pixel = 0; pixel < image->width * image->height; pixel++) {
        double expected[3];
        expected_pixel(image, pixel, expected);
        for (int i = 0; i < 3; i++)
            if (!BW_NEAR((double)picture.rgb[3 * pixel + (uint32_t)i], expected[i], 1e-6)) {
                printf("      type %u, %u bits, %u x %u, pixel %u\n", image->kind.type, image->kind.depth,
                       image->width, image->height, pixel);
                bw_picture_free(&picture);
                return;
            }
    }
    bw_picture_free(&picture);
}

static void image_make(struct image *image, struct kind kind, uint32_t width, uint32_t height,
                       struct bw_rng *rng)
{
    *image = (struct image){.kind = kind, .width = width, .height = height};
    image->colours = kind.type == PALETTE ? 1 + (unsigned)bw_rng_below(rng, 1u << kind.depth) : 0;
    for (unsigned i = 0; i < image->colours; i++)
        for (int k = 0; k < 4; k++)
            image->palette[i][k] = (uint8_t)bw_rng_below(rng, 256);
    for (uint32_t pixel = 0; pixel < width * height; pixel++)
        for (int k = 0; k < 4; k++)
            image->samples[pixel][k] =
                (uint16_t)bw_rng_below(rng, image->colours ? image->colours : 1u << kind.depth);
    memcpy(image->key, image->samples[0], sizeof image->key); /* the first pixel is transparent */
}

static void every_kind(void)
{
    static const uint32_t sizes[][2] = {{1, 1}, {2, 3}, {3, 2},  {4, 5},  {5, 1},
                                        {1, 9}, {8, 8}, {9, 17}, {33, 10}};
    static struct image image;
    struct bw_rng rng = {3};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (int flags = 0; flags < 4; flags++) {
                image_make(&image, kinds[k], sizes[s][0], sizes[s][1], &rng);
                image.interlaced = flags & 1;
                image.transparent = (flags & 2) && kinds[k].type < GRAY_ALPHA;
                check(&image, flags & 1 ? 7 : 0);
            }
}

static void wrong(const struct file *file, const char *named)
{
    struct bw_picture picture;
    struct bw_err err = {0};
    BW_EQ(parse(file, file->size, &picture, &err), -EBADMSG);
    if (!strstr(err.what, named) || strncmp(err.what, "x.png: ", 7) != 0)
        BW_STR(err.what, named);
    BW_TRUE(picture.rgb == NULL);
}

/* An index that the palette does not have is no colour. */
static void indexes_beyond_the_palette(void)
{
    static struct image image;
    static struct file file;
    struct bw_rng rng = {4};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int interlaced = 0; interlaced < 2 && kinds[k].type == PALETTE; interlaced++) {
            image_make(&image, kinds[k], 9, 5, &rng);
            image.colours = (1u << kinds[k].depth) - 1;
            image.interlaced = interlaced;
            for (uint32_t pixel = 0; pixel < 9 * 5; pixel++)
                image.samples[pixel][0] = (uint16_t)(pixel % image.colours);
            check(&image, 0);
            image.samples[40][0] = (uint16_t)image.colours;
            char named[64];
            snprintf(named, sizeof named, "colour %u of a palette of %u", image.colours, image.colours);
            file_make(&file, &image, 0);
            wrong(&file, named);
        }
}

/* Cut at every byte, with every chunk left out, with a bit flipped in every byte of the chunks that make the
 * picture. */
static void damage_everywhere(void)
{
    static struct image image;
    static struct file file, broken;
    struct bw_rng rng = {5};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        image_make(&image, kinds[k], 5, 3, &rng);
        image.interlaced = k % 2;
        file_make(&file, &image, 20);
        for (size_t size = 0; size < file.size; size++) {
            broken = file;
            broken.size = size;
            wrong(&broken, "");
        }
        for (unsigned c = 0; c < file.chunks; c++) {
            size_t start = file.chunk_at[c], end = c + 1 < file.chunks ? file.chunk_at[c + 1] : file.size;
            bool needed = file.bytes[start + 4] < 'a'; /* an upper-case letter: critical */
            for (size_t at = start; at < end && needed; at++) {
                broken = file;
                broken.bytes[at] ^= 0x20;
                if (at < start + 4 || at >= start + 8) /* another name may be a chunk that nobody needs */
                    wrong(&broken, "");
            }
            broken = file;
            memmove(broken.bytes + start, broken.bytes + end, file.size - end);
            broken.size -= end - start;
            if (needed)
                wrong(&broken, "");
        }
    }
}

/* Sizes of nothing, kinds that are none, pictures larger than may be. */
static void headers_that_cannot_be(void)
{
    static struct image image;
    static struct file file;
    struct bw_rng rng = {6};
    struct bw_picture picture;
    struct bw_err err = {0};
    static const uint32_t sizes[][2] = {{0, 1}, {1, 0}, {0, 0}, {0x80000000, 1}, {1, 0xffffffff}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        image_make(&image, kinds[3], 1, 1, &rng);
        file.size = file.chunks = 0;
        put(&file, "\x89PNG\r\n\x1a\n", 8);
        image.width = sizes[i][0];
        image.height = sizes[i][1];
        put_header(&file, &image);
        chunk(&file, "IDAT", "", 0);
        wrong(&file, "");
    }
    for (unsigned type = 0; type < 8; type++)
        for (unsigned depth = 0; depth <= 32; depth++) {
            bool known = false;
            for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
                known |= kinds[k].type == type && kinds[k].depth == depth;
            if (known)
                continue;
            image_make(&image, kinds[3], 1, 1, &rng);
            file_make(&file, &image, 0);
            file.bytes[24] = (uint8_t)depth;
            file.bytes[25] = (uint8_t)type;
            uint32_t crc = crc_of(file.bytes + 12, 17);
            for (int byte = 0; byte < 4; byte++)
                file.bytes[29 + byte] = (uint8_t)(crc >> (24 - 8 * byte));
            wrong(&file, "");
        }
    image_make(&image, kinds[0], 1, 1, &rng);
    image.width = 1 << 14;
    image.height = 1 << 13;
    file.size = file.chunks = 0;
    put(&file, "\x89PNG\r\n\x1a\n", 8);
    put_header(&file, &image);
    chunk(&file, "IDAT", "", 0);
    BW_EQ(parse(&file, file.size, &picture, &err), -EFBIG);
    BW_STR(err.what, "x.png: more than 2^26 pixels");
}

BW_TEST_MAIN("compiler.io_png_kinds", {"every_kind", every_kind},
             {"indexes_beyond_the_palette", indexes_beyond_the_palette},
             {"damage_everywhere", damage_everywhere}, {"headers_that_cannot_be", headers_that_cannot_be})
