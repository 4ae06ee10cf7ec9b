/* Sampling at positions that are data: GridSample, RoiAlign, MaxRoiPool. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

/* ---- GridSample: in the graph ---- */

enum padding { ZEROS, BORDER, REFLECTION };

struct sampler {
    struct bw_onnx_call *c;
    bw_tensor x; /* [N, C, H, W] */
    int64_t n, channels, size[2], out[2];
    enum padding padding;
    bool align_corners;
};

static bw_tensor number(struct sampler *s, bw_tensor like, double value)
{
    return bw_onnx_scalar_like(s->c, like, value);
}

static bw_tensor plus(struct sampler *s, bw_tensor x, double addend)
{
    return bw_tensor_add(s->c->g, x, number(s, x, addend));
}

static bw_tensor times(struct sampler *s, bw_tensor x, double factor)
{
    return bw_tensor_mul(s->c->g, x, number(s, x, factor));
}

static bw_tensor clamped(struct sampler *s, bw_tensor x, double low, double high)
{
    return bw_tensor_min(s->c->g, bw_tensor_max(s->c->g, x, number(s, x, low)), number(s, x, high));
}

/* Mirrors positions into [low, high]: a triangle wave. */
static bw_tensor reflected(struct sampler *s, bw_tensor x, double low, double high)
{
    double span = high - low;
    if (span <= 0)
        return number(s, x, low);
    bw_tensor distance = bw_tensor_abs(s->c->g, plus(s, x, -low));
    bw_tensor rest = bw_tensor_trunc_mod(s->c->g, distance, number(s, x, 2 * span));
    rest = bw_tensor_sub(s->c->g, number(s, x, span), bw_tensor_abs(s->c->g, plus(s, rest, -span)));
    return plus(s, rest, low);
}

/* Positions brought inside as the padding mode says; ZEROS leaves them. */
static bw_tensor padded_position(struct sampler *s, bw_tensor x, int axis)
{
    double size = (double)s->size[axis], low = s->align_corners ? 0 : -0.5,
           high = s->align_corners ? size - 1 : size - 0.5;
    if (s->padding == BORDER)
        return clamped(s, x, 0, size - 1);
    return s->padding == REFLECTION ? reflected(s, x, low, high) : x;
}

/* Elements at whole positions [N, 1, Ho, Wo]. Outside it is zero; with the other paddings only a neighbour
 * just outside can be meant, and the border stands for it. */
static bw_tensor pixels(struct sampler *s, bw_tensor y, bw_tensor x)
{
    struct bw_tensor_graph *g = s->c->g;
    int64_t dims[] = {s->n, s->channels, s->out[0], s->out[1]};
    bw_tensor positions[] = {y, x}, inside = {0}, indexes[4];
    for (int axis = 0; axis < 2; axis++) {
        double last = (double)s->size[axis] - 1;
        bw_tensor at = positions[axis], within = bw_tensor_equal(g, clamped(s, at, 0, last), at);
        inside = axis ? bw_tensor_and(g, inside, within) : within;
        indexes[2 + axis] = bw_tensor_cast(g, BW_I64, clamped(s, at, 0, last));
        indexes[axis] = bw_tensor_indexes(g, BW_I64, 4, dims, (uint32_t)axis);
    }
    bw_tensor elements = bw_tensor_gather_nd(g, s->x, indexes);
    return s->padding == ZEROS ? bw_tensor_where(g, inside, elements, number(s, s->x, 0)) : elements;
}

static bw_tensor sample_bilinear(struct sampler *s, bw_tensor y, bw_tensor x)
{
    struct bw_tensor_graph *g = s->c->g;
    y = padded_position(s, y, 0);
    x = padded_position(s, x, 1);
    bw_tensor y0 = bw_tensor_floor(g, y), x0 = bw_tensor_floor(g, x), fy = bw_tensor_sub(g, y, y0),
              fx = bw_tensor_sub(g, x, x0), sum = {0};
    for (int k = 0; k < 4; k++) {
        bw_tensor wy = k & 2 ? fy : bw_tensor_sub(g, number(s, fy, 1), fy),
                  wx = k & 1 ? fx : bw_tensor_sub(g, number(s, fx, 1), fx);
        bw_tensor term =
            bw_tensor_mul(g, pixels(s, plus(s, y0, k >> 1), plus(s, x0, k & 1)), bw_tensor_mul(g, wy, wx));
        sum = k ? bw_tensor_add(g, sum, term) : term;
    }
    return sum;
}

/* Keys' kernel with a = -0.75 at distance k - 1 + (1 - t) .. : weights of taps -1, 0, 1, 2. */
static bw_tensor cubic_weight(struct sampler *s, bw_tensor t, int tap)
{
    const double a = -0.75;
    struct bw_tensor_graph *g = s->c->g;
    bw_tensor d = bw_tensor_abs(g, plus(s, t, 1 - tap)), d2 = bw_tensor_mul(g, d, d);
    if (tap == 1 || tap == 2) /* ((a + 2) d - (a + 3)) d^2 + 1 */
        return plus(s, bw_tensor_mul(g, plus(s, times(s, d, a + 2), -(a + 3)), d2), 1);
    /* ((a d - 5 a) d + 8 a) d - 4 a */
    bw_tensor inner = plus(s, bw_tensor_mul(g, plus(s, times(s, d, a), -5 * a), d), 8 * a);
    return plus(s, bw_tensor_mul(g, inner, d), -4 * a);
}

static bw_tensor sample_bicubic(struct sampler *s, bw_tensor y, bw_tensor x)
{
    struct bw_tensor_graph *g = s->c->g;
    bw_tensor y0 = bw_tensor_floor(g, y), x0 = bw_tensor_floor(g, x), fy = bw_tensor_sub(g, y, y0),
              fx = bw_tensor_sub(g, x, x0), sum = {0};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            bw_tensor at_y = padded_position(s, plus(s, y0, i - 1), 0),
                      at_x = padded_position(s, plus(s, x0, j - 1), 1);
            bw_tensor weight = bw_tensor_mul(g, cubic_weight(s, fy, i), cubic_weight(s, fx, j));
            bw_tensor term = bw_tensor_mul(g, pixels(s, at_y, at_x), weight);
            sum = i || j ? bw_tensor_add(g, sum, term) : term;
        }
    return sum;
}

static bw_tensor sample_nearest(struct sampler *s, bw_tensor y, bw_tensor x)
{
    y = padded_position(s, bw_tensor_round_even(s->c->g, y), 0);
    x = padded_position(s, bw_tensor_round_even(s->c->g, x), 1);
    return pixels(s, bw_tensor_round_even(s->c->g, y), bw_tensor_round_even(s->c->g, x));
}

/* One of the grid's two numbers, from [-1, 1] to positions: [N, 1, Ho, Wo]. */
static bw_tensor grid_positions(struct sampler *s, bw_tensor grid, int64_t which, int axis)
{
    int64_t starts[] = {0, 0, 0, which}, stops[] = {s->n, s->out[0], s->out[1], which + 1},
            steps[] = {1, 1, 1, 1};
    int64_t dims[] = {s->n, 1, s->out[0], s->out[1]};
    double size = (double)s->size[axis];
    bw_tensor x = bw_tensor_reshape(s->c->g, bw_tensor_slice(s->c->g, grid, starts, stops, steps), 4, dims);
    if (s->align_corners)
        return times(s, plus(s, x, 1), (size - 1) / 2);
    return times(s, plus(s, times(s, plus(s, x, 1), size), -1), 0.5);
}

static int grid_sample(struct bw_onnx_call *c)
{
    struct sampler s = {.c = c, .x = bw_onnx_in(c, 0), .align_corners = bw_onnx_int(c, "align_corners", 0)};
    bw_tensor grid = bw_onnx_in(c, 1);
    const int64_t *d = bw_tensor_dims(c->g, s.x), *o = bw_tensor_dims(c->g, grid);
    if (bw_tensor_rank(c->g, s.x) != 4 || bw_tensor_rank(c->g, grid) != 4 || o[3] != 2 || o[0] != d[0])
        return bw_onnx_fail(c, -ENOTSUP, "other than 4-d input and grid");
    s.n = d[0], s.channels = d[1], s.size[0] = d[2], s.size[1] = d[3], s.out[0] = o[1], s.out[1] = o[2];
    s.padding = bw_onnx_string_is(c, "padding_mode", "border", false)       ? BORDER
                : bw_onnx_string_is(c, "padding_mode", "reflection", false) ? REFLECTION
                                                                            : ZEROS;
    grid = bw_tensor_cast(c->g, bw_tensor_dtype(c->g, s.x), grid);
    bw_tensor y = grid_positions(&s, grid, 1, 0), x = grid_positions(&s, grid, 0, 1);
    if (bw_onnx_string_is(c, "mode", "nearest", false))
        return bw_onnx_out(c, 0, sample_nearest(&s, y, x));
    bool cubic =
        bw_onnx_string_is(c, "mode", "bicubic", false) || bw_onnx_string_is(c, "mode", "cubic", false);
    return bw_onnx_out(c, 0, cubic ? sample_bicubic(&s, y, x) : sample_bilinear(&s, y, x));
}

/* ---- RoiAlign: on the host, since how many samples a bin has depends on the regions ---- */

enum {
    BINS_MAX = 4096,   /* per axis */
    SAMPLES_MAX = 256, /* per axis of a bin: a hostile region does not run for ever */
};

struct roi_align {
    const struct bw_onnx_value *x;
    int64_t channels, height, width, out[2], ratio;
    double scale;
    bool half_pixel, takes_max;
};

static double pixel(const struct roi_align *r, int64_t image, int64_t channel, int64_t y, int64_t x)
{
    return bw_onnx_host_double(r->x->dtype, r->x->host,
                               ((image * r->channels + channel) * r->height + y) * r->width + x);
}

/* The four neighbours' weighted values; more than a pixel outside counts as zero. */
static double bilinear(const struct roi_align *r, int64_t image, int64_t channel, double y, double x)
{
    if (isnan(y) || isnan(x)) /* a region that is no number */
        return NAN;
    if (y < -1 || y > (double)r->height || x < -1 || x > (double)r->width)
        return 0;
    y = fmax(y, 0), x = fmax(x, 0);
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= r->height - 1)
        y = (double)(y0 = y1 = r->height - 1);
    if (x0 >= r->width - 1)
        x = (double)(x0 = x1 = r->width - 1);
    double fy = y - (double)y0, fx = x - (double)x0;
    double v[] = {(1 - fy) * (1 - fx) * pixel(r, image, channel, y0, x0),
                  (1 - fy) * fx * pixel(r, image, channel, y0, x1),
                  fy * (1 - fx) * pixel(r, image, channel, y1, x0),
                  fy * fx * pixel(r, image, channel, y1, x1)};
    if (r->takes_max)
        return fmax(fmax(v[0], v[1]), fmax(v[2], v[3]));
    return v[0] + v[1] + v[2] + v[3];
}

static double bin_value(const struct roi_align *r, const double *roi, int64_t image, int64_t channel,
                        int64_t i, int64_t j)
{
    double offset = r->half_pixel ? 0.5 : 0, start[2], size[2], bin[2], sum = 0, max = -INFINITY;
    int64_t grid[2];
    for (int axis = 0; axis < 2; axis++) { /* roi: x1, y1, x2, y2 */
        start[axis] = roi[1 - axis] * r->scale - offset;
        size[axis] = roi[3 - axis] * r->scale - offset - start[axis];
        if (!r->half_pixel)
            size[axis] = fmax(size[axis], 1);
        bin[axis] = size[axis] / (double)r->out[axis];
        grid[axis] = r->ratio > 0 ? r->ratio : bw_dtype_int_from(BW_I64, ceil(bin[axis]));
        grid[axis] = grid[axis] < 1 ? 1 : grid[axis] > SAMPLES_MAX ? SAMPLES_MAX : grid[axis];
    }
    for (int64_t a = 0; a < grid[0]; a++)
        for (int64_t b = 0; b < grid[1]; b++) {
            double y = start[0] + (double)i * bin[0] + ((double)a + 0.5) * bin[0] / (double)grid[0];
            double x = start[1] + (double)j * bin[1] + ((double)b + 0.5) * bin[1] / (double)grid[1];
            double value = bilinear(r, image, channel, y, x);
            sum += value;
            max = fmax(max, value);
        }
    return r->takes_max ? max : sum / (double)(grid[0] * grid[1]);
}

static int roi_align(struct bw_onnx_call *c)
{
    if (bw_onnx_realize(c, 0) || bw_onnx_realize(c, 1) || bw_onnx_realize(c, 2))
        return c->rc;
    const struct bw_onnx_value *x = c->inputs[0], *rois = c->inputs[1], *images = c->inputs[2];
    struct roi_align r = {.x = x,
                          .out = {bw_onnx_int(c, "output_height", 1), bw_onnx_int(c, "output_width", 1)},
                          .ratio = bw_onnx_int(c, "sampling_ratio", 0),
                          .scale = bw_onnx_float(c, "spatial_scale", 1),
                          .takes_max = bw_onnx_string_is(c, "mode", "max", false)};
    r.half_pixel =
        c->opset >= 16 && bw_onnx_string_is(c, "coordinate_transformation_mode", "half_pixel", true);
    bool fits = x->rank == 4 && rois->rank == 2 && rois->dims[1] == 4 && images->elements == rois->dims[0] &&
                r.out[0] > 0 && r.out[1] > 0;
    if (c->rc || !fits || r.out[0] > BINS_MAX || r.out[1] > BINS_MAX)
        return bw_onnx_fail(c, -EINVAL, "input, regions or output size do not fit");
    r.channels = x->dims[1], r.height = x->dims[2], r.width = x->dims[3];
    int64_t dims[] = {rois->dims[0], r.channels, r.out[0], r.out[1]}, bins = r.out[0] * r.out[1], total;
    if (!r.height || !r.width)
        return bw_onnx_fail(c, -EINVAL, "images without elements");
    if (__builtin_mul_overflow(dims[0] * bins, dims[1], &total))
        return bw_onnx_fail(c, -E2BIG, "%lld regions of %lld channels", (long long)dims[0],
                            (long long)dims[1]);
    uint8_t *result = calloc((size_t)total + 1, bw_dtype_bytes(x->dtype));
    for (int64_t at = 0; result && at < total; at++) {
        int64_t roi = at / bins / r.channels, image = bw_onnx_host_int(images->dtype, images->host, roi);
        double box[4];
        for (int k = 0; k < 4; k++)
            box[k] = bw_onnx_host_double(rois->dtype, rois->host, roi * 4 + k);
        if (image < 0 || image >= x->dims[0]) {
            bw_onnx_fail(c, -ERANGE, "region %lld of image %lld", (long long)roi, (long long)image);
            break;
        }
        bw_onnx_host_store(
            x->dtype, result, at,
            bin_value(&r, box, image, at / bins % r.channels, at % bins / r.out[1], at % r.out[1]));
    }
    return bw_onnx_out_array(c, 0, x->dtype, 4, dims, result);
}

static const struct bw_onnx_op rows[] = {
    {"GridSample", 16, .function = grid_sample},
    {"RoiAlign", 10, .function = roi_align},
};

const struct bw_onnx_ops bw_onnx_ops_sample = {rows, BW_COUNT_OF(rows)};
