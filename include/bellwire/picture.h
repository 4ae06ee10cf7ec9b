/* Pictures, as models take them: read from PNG files. */
#ifndef BW_PICTURE_H
#define BW_PICTURE_H

#include <stdint.h>

#include <bellwire/err.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_picture {
    uint32_t width, height;
    float *rgb; /* red, green, blue of each pixel, 0 to 1, row by row from the top; malloc */
};

enum {
    BW_PICTURE_PIXELS_MAX = 1 << 26, /* 8192 x 8192: larger than any model takes; 768 MiB as floats */
};

/* Every kind of PNG: gray, palette, RGB, with transparency (laid over white), 1 to 16 bits, interlaced.
 * Samples are taken as they are, gamma and colour profiles are not applied, as model pipelines do. -EBADMSG:
 * damaged or no PNG; -EFBIG: more than BW_PICTURE_PIXELS_MAX. `name` stands in errors. */
int bw_png_parse(const char *name, const uint8_t *data, uint64_t size_bytes, struct bw_picture *picture,
                 struct bw_err *err);
int bw_png_read(const char *path, struct bw_picture *picture, struct bw_err *err);
void bw_picture_free(struct bw_picture *picture);

#ifdef __cplusplus
}
#endif

#endif
