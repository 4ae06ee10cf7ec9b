/* Matrix products, convolutions, pooling. */
#include "compiler/onnx/ops_nn.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static int matmul(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, bw_tensor_matmul(c->g, bw_onnx_in(c, 0), bw_onnx_in(c, 1)));
}

static bw_tensor scaled(struct bw_onnx_call *c, bw_tensor x, double factor)
{
    return factor == 1 ? x : bw_tensor_mul(c->g, x, bw_onnx_scalar_like(c, x, factor));
}

static bw_tensor matrix_in(struct bw_onnx_call *c, uint32_t input, const char *transposes)
{
    static const uint32_t swapped[] = {1, 0};
    bw_tensor x = bw_onnx_in(c, input);
    if (bw_tensor_rank(c->g, x) != 2)
        bw_onnx_fail(c, -EINVAL, "input %u has rank %u, not 2", input, bw_tensor_rank(c->g, x));
    return bw_onnx_int(c, transposes, 0) && !c->rc ? bw_tensor_permute(c->g, x, swapped) : x;
}

static int gemm(struct bw_onnx_call *c)
{
    bw_tensor a = matrix_in(c, 0, "transA"), b = matrix_in(c, 1, "transB");
    if (c->rc)
        return c->rc;
    bw_tensor y = scaled(c, bw_tensor_matmul(c->g, a, b), bw_onnx_float(c, "alpha", 1));
    if (y.id && bw_onnx_has(c, 2)) {
        int64_t dims[] = {bw_tensor_dims(c->g, y)[0], bw_tensor_dims(c->g, y)[1]};
        y = bw_tensor_add(c->g, y, scaled(c, bw_onnx_in(c, 2), bw_onnx_float(c, "beta", 1)));
        if (y.id && (bw_tensor_rank(c->g, y) != 2 || memcmp(bw_tensor_dims(c->g, y), dims, sizeof dims) != 0))
            return bw_onnx_fail(c, -EINVAL, "input 2 does not broadcast to the product's [%lld,%lld]",
                                (long long)dims[0], (long long)dims[1]);
    }
    return bw_onnx_out(c, 0, y);
}

/* ---- windows ---- */

enum {
    LARGE = 1 << 20
}; /* of kernels, strides, pads, groups: times the longest axis, still within 64 bits */

static bool list_read(struct bw_onnx_call *c, const char *name, uint32_t count, int64_t absent, int64_t *list)
{
    struct bw_onnx_ints given = bw_onnx_ints(c, name);
    if (given.given && given.count && given.count != count) {
        bw_onnx_fail(c, -EINVAL, "%s has %llu numbers, not %u", name, (unsigned long long)given.count, count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        list[i] = given.count ? given.data[i] : absent;
    return true;
}

/* SAME: the output has ceil(size / stride) elements; an odd element of padding goes to the end (UPPER) or the
 * start. */
static void pad_same(struct bw_onnx_window *w, const int64_t *size, bool upper)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t out = (size[i] + w->stride[i] - 1) / w->stride[i];
        int64_t needed = (out - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1 - size[i];
        needed = needed < 0 ? 0 : needed;
        w->low[i] = upper ? needed / 2 : needed - needed / 2;
        w->high[i] = needed - w->low[i];
    }
}

/* Each number of a list within its range. */
static bool list_within(struct bw_onnx_call *c, const char *name, const int64_t *list, uint32_t count,
                        int64_t least, int64_t most)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] < least || list[i] > most) {
            bw_onnx_fail(c, -EINVAL, "%s has %lld, which is not within %lld and %lld", name,
                         (long long)list[i], (long long)least, (long long)most);
            return false;
        }
    return true;
}

/* kernel_shape, or that of the weights; where both are there they are the same. */
static bool kernel_read(struct bw_onnx_call *c, const int64_t *weights, struct bw_onnx_window *w)
{
    bool given = bw_onnx_ints(c, "kernel_shape").count;
    if (!weights && !given) {
        bw_onnx_fail(c, -EINVAL, "no kernel_shape");
        return false;
    }
    if (!list_read(c, "kernel_shape", w->spatial, 1, w->kernel))
        return false;
    for (uint32_t i = 0; weights && i < w->spatial; i++) {
        if (given && w->kernel[i] != weights[i]) {
            bw_onnx_fail(c, -EINVAL, "kernel_shape has %lld for axis %u, but the weights have %lld",
                         (long long)w->kernel[i], i, (long long)weights[i]);
            return false;
        }
        w->kernel[i] = weights[i];
    }
    return true;
}

int bw_onnx_window_read(struct bw_onnx_call *c, const int64_t *dims, uint32_t rank, const int64_t *kernel,
                        struct bw_onnx_window *w)
{
    int64_t pads[2 * BW_ONNX_SPATIAL_MAX];
    if (rank < 3 || rank - 2 > BW_ONNX_SPATIAL_MAX)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u (3 to %d)", rank, 2 + BW_ONNX_SPATIAL_MAX);
    w->spatial = rank - 2;
    bool fine = list_read(c, "strides", w->spatial, 1, w->stride) &&
                list_read(c, "dilations", w->spatial, 1, w->dilation) &&
                list_read(c, "pads", 2 * w->spatial, 0, pads);
    fine = fine && kernel_read(c, kernel, w) && list_within(c, "strides", w->stride, w->spatial, 1, LARGE) &&
           list_within(c, "dilations", w->dilation, w->spatial, 1, LARGE) &&
           list_within(c, "kernel_shape", w->kernel, w->spatial, 1, LARGE) &&
           list_within(c, "pads", pads, 2 * w->spatial, 0, LARGE);
    if (!fine)
        return c->rc;
    bool upper = bw_onnx_string_is(c, "auto_pad", "SAME_UPPER", false),
         lower = bw_onnx_string_is(c, "auto_pad", "SAME_LOWER", false),
         none = bw_onnx_string_is(c, "auto_pad", "VALID", false);
    for (uint32_t i = 0; i < w->spatial; i++) {
        w->low[i] = none ? 0 : pads[i];
        w->high[i] = none ? 0 : pads[w->spatial + i];
    }
    w->same = upper || lower;
    w->same_upper = upper;
    if (w->same)
        pad_same(w, dims + 2, upper);
    return c->rc;
}

static int64_t reach_of(const struct bw_onnx_window *w, uint32_t axis)
{
    return w->dilation[axis] * (w->kernel[axis] - 1) + 1;
}

/* Channels, groups and bias of a convolution; x [N, C, ..], weight [M, C/group, ..] or, transposed, [C,
 * M/group, ..]. */
static int channels_check(struct bw_onnx_call *c, bw_tensor x, bw_tensor weight, bw_tensor bias,
                          bool transposed, int64_t *groups)
{
    const int64_t *d = bw_tensor_dims(c->g, x), *k = bw_tensor_dims(c->g, weight);
    int64_t group = *groups = bw_onnx_int(c, "group", 1);
    if (c->rc || group < 1 || group > LARGE || d[1] % group)
        return bw_onnx_fail(c, -EINVAL, "group %lld does not divide %lld input channels", (long long)group,
                            (long long)d[1]);
    if (!transposed && k[0] % group)
        return bw_onnx_fail(c, -EINVAL, "group %lld does not divide %lld output channels", (long long)group,
                            (long long)k[0]);
    if (transposed ? k[0] != d[1] : k[1] != d[1] / group)
        return bw_onnx_fail(c, -EINVAL, "weights for %lld input channels of %lld in %lld groups",
                            (long long)(transposed ? k[0] : k[1] * group), (long long)d[1], (long long)group);
    int64_t channels = transposed ? k[1] * group : k[0];
    if (bias.id && (bw_tensor_rank(c->g, bias) != 1 || bw_tensor_dims(c->g, bias)[0] != channels))
        return bw_onnx_fail(c, -EINVAL, "the bias is no list of %lld numbers", (long long)channels);
    return 0;
}

int bw_onnx_conv_read(struct bw_onnx_call *c, bw_tensor x, bw_tensor weight, bw_tensor bias,
                      struct bw_onnx_window *w, int64_t *groups)
{
    if (c->rc || bw_tensor_rank(c->g, x) != bw_tensor_rank(c->g, weight))
        return bw_onnx_fail(c, -EINVAL, "input and weight have different ranks");
    const int64_t *dims = bw_tensor_dims(c->g, x);
    if (bw_onnx_window_read(c, dims, bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, weight) + 2, w) ||
        channels_check(c, x, weight, bias, false, groups))
        return c->rc;
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t padded = dims[2 + i] + w->low[i] + w->high[i];
        if (padded < reach_of(w, i) && dims[2 + i])
            return bw_onnx_fail(c, -EINVAL, "a kernel of %lld does not fit into %lld padded elements",
                                (long long)reach_of(w, i), (long long)padded);
    }
    return 0;
}

static int conv(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), weight = bw_onnx_in(c, 1),
              bias = bw_onnx_has(c, 2) ? bw_onnx_in(c, 2) : (bw_tensor){0};
    struct bw_onnx_window w;
    struct bw_conv description = {
        .stride = w.stride, .dilation = w.dilation, .pad_low = w.low, .pad_high = w.high};
    if (bw_onnx_conv_read(c, x, weight, bias, &w, &description.groups))
        return c->rc;
    description.spatial = w.spatial;
    return bw_onnx_out(c, 0, bw_tensor_conv(c->g, x, weight, bias, &description));
}

/* output_shape decides the pads when it is given; SAME pads to size * stride. */
static void transposed_pads(struct bw_onnx_window *w, const int64_t *size, struct bw_onnx_ints output_shape,
                            const int64_t *extra)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t full = w->stride[i] * (size[i] - 1) + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t wanted = output_shape.count ? output_shape.data[output_shape.count - w->spatial + i]
                                            : size[i] * w->stride[i];
        int64_t total = full - wanted;
        bool upper = w->same && w->same_upper;
        w->low[i] = total <= 0 ? 0
                    : upper    ? total / 2
                               : total - total / 2; /* what is missing is added at the end */
        w->high[i] = total - w->low[i];
    }
}

/* output_padding and output_shape: what is added at the end is less than a step of the kernel, and something
 * is left when the pads are cut off. */
static int transposed_check(struct bw_onnx_call *c, const struct bw_onnx_window *w, const int64_t *size,
                            const int64_t *extra)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t step = w->stride[i] > w->dilation[i] ? w->stride[i] : w->dilation[i];
        if (extra[i] < 0 || extra[i] >= step)
            return bw_onnx_fail(c, -EINVAL, "output_padding %lld of axis %u is not below stride or dilation",
                                (long long)extra[i], i);
        int64_t out = w->stride[i] * (size[i] - 1) + extra[i] + reach_of(w, i) - w->low[i] - w->high[i];
        if (out < 1 && size[i])
            return bw_onnx_fail(c, -EINVAL, "output axis %u would have %lld elements", i, (long long)out);
        if (w->low[i] + w->high[i] <= -step)
            return bw_onnx_fail(c, -EINVAL,
                                "output_shape has %lld for axis %u, which this kernel does not reach",
                                (long long)out, i);
    }
    return 0;
}

static int conv_transpose(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), weight = bw_onnx_in(c, 1),
              bias = bw_onnx_has(c, 2) ? bw_onnx_in(c, 2) : (bw_tensor){0};
    struct bw_onnx_window w;
    int64_t extra[BW_ONNX_SPATIAL_MAX];
    struct bw_conv description = {.stride = w.stride,
                                  .dilation = w.dilation,
                                  .pad_low = w.low,
                                  .pad_high = w.high,
                                  .output_padding = extra};
    if (bw_tensor_rank(c->g, x) != bw_tensor_rank(c->g, weight))
        return bw_onnx_fail(c, -EINVAL, "input and weight have different ranks");
    const int64_t *dims = bw_tensor_dims(c->g, x);
    if (bw_onnx_window_read(c, dims, bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, weight) + 2, &w) ||
        !list_read(c, "output_padding", w.spatial, 0, extra) ||
        channels_check(c, x, weight, bias, true, &description.groups))
        return c->rc;
    struct bw_onnx_ints output_shape = bw_onnx_ints(c, "output_shape");
    if (output_shape.count &&
        (output_shape.count != w.spatial ||
         !list_within(c, "output_shape", output_shape.data, w.spatial, 1, 1ll << BW_ONNX_SIZE_MAX_LOG2)))
        return bw_onnx_fail(c, -EINVAL, "output_shape has %llu numbers, not %u",
                            (unsigned long long)output_shape.count, w.spatial);
    if (output_shape.count || w.same)
        transposed_pads(&w, dims + 2, output_shape, extra);
    if (transposed_check(c, &w, dims + 2, extra))
        return c->rc;
    description.spatial = w.spatial;
    return bw_onnx_out(c, 0, bw_tensor_conv_transpose(c->g, x, weight, bias, &description));
}

/* ---- pooling ---- */

/* ceil_mode: a last window that is only partly inside counts, unless it would start in the padding at the
 * end. */
static void pad_for_ceil(struct bw_onnx_window *w, const int64_t *size)
{
    for (uint32_t i = 0; i < w->spatial; i++) {
        int64_t reach = w->dilation[i] * (w->kernel[i] - 1) + 1,
                room = size[i] + w->low[i] + w->high[i] - reach;
        int64_t rest = room % w->stride[i], out = room / w->stride[i] + 1;
        if (room >= 0 && rest && out * w->stride[i] < size[i] + w->low[i])
            w->high[i] += w->stride[i] - rest;
    }
}

/* A window larger than its padded input, but by less than a stride: one window, cut off at the input's end.
 * Where the specification's formula rounds down to no window at all, onnxruntime's rounds towards zero, and
 * real networks on small pictures count on it. What it adds is never counted, as in ceil_mode. A window
 * larger still fits nowhere. */
static int pad_for_one(struct bw_onnx_call *c, struct bw_onnx_window *w, const int64_t *size)
{
    for (uint32_t i = 0; i < w->spatial && !w->same; i++) {
        int64_t room = size[i] + w->low[i] + w->high[i] - reach_of(w, i);
        if (room >= 0 || size[i] == 0)
            continue;
        if (room <= -w->stride[i])
            return bw_onnx_fail(c, -EINVAL, "a window of %lld does not fit into %lld padded elements",
                                (long long)reach_of(w, i), (long long)(room + reach_of(w, i)));
        w->high[i] -= room;
    }
    return 0;
}

/* Windows that lie in the padding altogether have no largest element and no mean. */
static int pool_pads_check(struct bw_onnx_call *c, const struct bw_onnx_window *w)
{
    for (uint32_t i = 0; i < w->spatial; i++)
        if (w->low[i] >= reach_of(w, i) || w->high[i] >= reach_of(w, i))
            return bw_onnx_fail(c, -EINVAL, "pads %lld and %lld of axis %u are not below the window's %lld",
                                (long long)w->low[i], (long long)w->high[i], i, (long long)reach_of(w, i));
    return 0;
}

bw_tensor bw_onnx_window_pad(struct bw_onnx_call *c, bw_tensor x, const struct bw_onnx_window *w,
                             double value)
{
    int64_t low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0};
    memcpy(low + 2, w->low, w->spatial * sizeof *low);
    memcpy(high + 2, w->high, w->spatial * sizeof *high);
    return bw_tensor_pad(c->g, x, low, high, value);
}

static bw_tensor window_view(struct bw_onnx_call *c, bw_tensor x, const struct bw_onnx_window *w,
                             double padding)
{
    return bw_tensor_windows(c->g, bw_onnx_window_pad(c, x, w, padding), w->spatial, w->kernel, w->stride,
                             w->dilation);
}

/* The axes of a window view that are inside the window. */
static uint32_t window_mask(const struct bw_onnx_window *w)
{
    return ((1u << w->spatial) - 1) << (2 + w->spatial);
}

static int pool_read(struct bw_onnx_call *c, bw_tensor x, struct bw_onnx_window *w)
{
    int rc = bw_onnx_window_read(c, bw_tensor_dims(c->g, x), bw_tensor_rank(c->g, x), NULL, w);
    if (!rc)
        rc = pool_pads_check(c, w);
    if (!rc && bw_onnx_int(c, "ceil_mode", 0) && !w->same)
        pad_for_ceil(w, bw_tensor_dims(c->g, x) + 2);
    return rc ? rc : pad_for_one(c, w, bw_tensor_dims(c->g, x) + 2);
}

static double lowest(enum bw_dtype dtype)
{
    return bw_dtype_is_float(dtype) ? -INFINITY : (double)bw_dtype_int_min(dtype);
}

/* Number of each element of an unpadded input of these dims, in row-major or column-major order of the
 * spatial axes. */
static bw_tensor element_numbers(struct bw_onnx_call *c, uint32_t rank, const int64_t *dims,
                                 bool column_major)
{
    bw_tensor number = bw_tensor_full(c->g, BW_I64, rank, dims, 0);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t factor = 1;
        for (uint32_t k = 0; k < rank; k++) {
            bool faster = i < 2 || !column_major ? k > i : k >= 2 && k < i;
            factor *= faster ? dims[k] : 1;
        }
        bw_tensor index = bw_tensor_indexes(c->g, BW_I64, rank, dims, i);
        number = bw_tensor_add(c->g, number,
                               bw_tensor_mul(c->g, index, bw_tensor_scalar_int(c->g, BW_I64, factor)));
    }
    return number;
}

static int max_pool(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_window w;
    int64_t order = bw_onnx_int(c, "storage_order", 0);
    if (order != 0 && order != 1)
        return bw_onnx_fail(c, -EINVAL, "storage_order %lld is neither 0 nor 1", (long long)order);
    if (pool_read(c, x, &w))
        return c->rc;
    bw_tensor windows = window_view(c, x, &w, lowest(bw_tensor_dtype(c->g, x)));
    bw_tensor max = bw_tensor_reduce_max(c->g, windows, window_mask(&w), true),
              flat = bw_tensor_reduce_max(c->g, windows, window_mask(&w), false);
    if (bw_onnx_wants(c, 1)) { /* the first place of the maximum */
        bw_tensor numbers = element_numbers(c, bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, x), order);
        bw_tensor never = bw_tensor_scalar_int(c->g, BW_I64, INT64_MAX);
        numbers = window_view(c, numbers, &w, 0x1p40); /* larger than any number of an element */
        numbers = bw_tensor_where(c->g, bw_tensor_equal(c->g, windows, max), numbers, never);
        bw_onnx_out(c, 1, bw_tensor_reduce_min(c->g, numbers, window_mask(&w), false));
    }
    return bw_onnx_out(c, 0, flat);
}

static int average_pool(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_window w;
    if (bw_onnx_window_read(c, bw_tensor_dims(c->g, x), bw_tensor_rank(c->g, x), NULL, &w) ||
        pool_pads_check(c, &w))
        return c->rc;
    const int64_t *size = bw_tensor_dims(c->g, x) + 2;
    bool ceil = bw_onnx_int(c, "ceil_mode", 0) && !w.same;
    if (!ceil && pad_for_one(c, &w, size))
        return c->rc;
    struct bw_onnx_window declared = w; /* what ceil_mode adds is never counted */
    if (ceil) {
        pad_for_ceil(&w, size);
        if (pad_for_one(c, &w, size))
            return c->rc;
    }
    bw_tensor sum = bw_tensor_sum(c->g, window_view(c, x, &w, 0), window_mask(&w), false);
    /* How many elements of each window count, as the same sum over ones. */
    int64_t dims[BW_TENSOR_RANK_MAX] = {1, 1};
    memcpy(dims + 2, bw_tensor_dims(c->g, x) + 2, w.spatial * sizeof *dims);
    bw_tensor ones = bw_tensor_full(c->g, bw_tensor_dtype(c->g, x), 2 + w.spatial, dims, 1);
    bool counts_padding = bw_onnx_int(c, "count_include_pad", 0);
    if (counts_padding) {
        ones = bw_onnx_window_pad(c, ones, &declared, 1);
        for (uint32_t i = 0; i < w.spatial; i++) {
            w.low[i] = 0;
            w.high[i] -= declared.high[i];
        }
    }
    bw_tensor count = bw_tensor_sum(c->g, window_view(c, ones, &w, 0), window_mask(&w), false);
    return bw_onnx_out(c, 0, bw_tensor_div(c->g, sum, count));
}

static bw_tensor power_sum(struct bw_onnx_call *c, bw_tensor x, uint32_t mask, bool keep)
{
    double p = c->opset < 2 ? bw_onnx_float(c, "p", 2) : (double)bw_onnx_int(c, "p", 2);
    bw_tensor powers = bw_tensor_pow(c->g, bw_tensor_abs(c->g, x), bw_onnx_scalar_like(c, x, p));
    bw_tensor sum = bw_tensor_sum(c->g, powers, mask, keep);
    return bw_tensor_pow(c->g, sum, bw_onnx_scalar_like(c, sum, 1 / p));
}

static int lp_pool(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_window w;
    if (pool_read(c, x, &w))
        return c->rc;
    return bw_onnx_out(c, 0, power_sum(c, window_view(c, x, &w, 0), window_mask(&w), false));
}

enum { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP };

static int global_pool(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x);
    if (rank < 3)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u", rank);
    uint32_t mask = ((1u << rank) - 1) & ~3u;
    if (c->op->variant == GLOBAL_AVERAGE)
        return bw_onnx_out(c, 0, bw_tensor_mean(c->g, x, mask, true));
    return bw_onnx_out(c, 0,
                       c->op->variant == GLOBAL_MAX ? bw_tensor_reduce_max(c->g, x, mask, true)
                                                    : power_sum(c, x, mask, true));
}

/* Values back to the places that their indices name, in a tensor of the size that undoes the pooling; the
 * rest is zero. output_shape pads the result. Each output element looks for its number among the values of
 * its own image and channel. */
static int max_unpool(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), places = bw_onnx_in(c, 1);
    struct bw_onnx_window w;
    if (bw_onnx_window_read(c, bw_tensor_dims(c->g, x), bw_tensor_rank(c->g, x), NULL, &w))
        return c->rc;
    uint32_t rank = 2 + w.spatial;
    int64_t out[BW_TENSOR_RANK_MAX], low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0},
                                     pixels = 1, values = 1;
    struct bw_onnx_ints given = bw_onnx_has(c, 2) ? bw_onnx_ints_in(c, 2) : (struct bw_onnx_ints){0};
    if (c->rc || (given.given && given.count != rank))
        return bw_onnx_fail(c, -EINVAL, "output_shape has %llu numbers", (unsigned long long)given.count);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t size = bw_tensor_dims(c->g, x)[i];
        out[i] = i < 2 ? size : (size - 1) * w.stride[i - 2] - w.low[i - 2] - w.high[i - 2] + w.kernel[i - 2];
        const int64_t most = 1ll << BW_ONNX_SIZE_MAX_LOG2;
        if (out[i] < 0 || out[i] > most ||
            (given.given &&
             (given.data[i] < out[i] || given.data[i] > most || (i < 2 && given.data[i] != size))))
            return bw_onnx_fail(c, -EINVAL, "axis %u of %lld elements in an output of %lld", i,
                                (long long)out[i], (long long)(given.given ? given.data[i] : out[i]));
        high[i] = given.given ? given.data[i] - out[i] : 0;
        values *= i < 2 ? 1 : size;
        pixels *= i < 2 ? 1 : out[i];
    }
    struct bw_onnx_limits limits = {.period = 1, .sizes = {out[0] * out[1] * pixels}};
    if (bw_onnx_check_indexes(c, 1, &limits))
        return c->rc;
    int64_t place_dims[] = {out[0], out[1], 1, values},
            pixel_dims[] = {out[0], out[1], pixels, 1}; /* [N, C, pixels, values] */
    bw_tensor wanted = bw_tensor_reshape(c->g, places, 4, place_dims);
    bw_tensor pixel = bw_tensor_reshape(c->g, element_numbers(c, rank, out, false), 4, pixel_dims);
    bw_tensor here = bw_tensor_equal(c->g, bw_tensor_cast(c->g, BW_I64, wanted), pixel);
    bw_tensor spread =
        bw_tensor_where(c->g, here, bw_tensor_reshape(c->g, x, 4, place_dims), bw_onnx_scalar_like(c, x, 0));
    bw_tensor y = bw_tensor_reshape(c->g, bw_tensor_sum(c->g, spread, 8, false), rank, out);
    return bw_onnx_out(c, 0, bw_tensor_pad(c->g, y, low, high, 0));
}

static const struct bw_onnx_op rows[] = {
    {"AveragePool", 1, .function = average_pool},
    {"Conv", 1, .function = conv},
    {"ConvTranspose", 1, .function = conv_transpose},
    {"Gemm", 1, .function = gemm},
    {"GlobalAveragePool", 1, global_pool, .variant = GLOBAL_AVERAGE},
    {"GlobalLpPool", 1, global_pool, .variant = GLOBAL_LP},
    {"GlobalMaxPool", 1, global_pool, .variant = GLOBAL_MAX},
    {"LpPool", 1, .function = lp_pool},
    {"MatMul", 1, .function = matmul},
    {"MaxPool", 1, .function = max_pool},
    {"MaxUnpool", 9, .function = max_unpool},
};

const struct bw_onnx_ops bw_onnx_ops_nn = {rows, BW_COUNT_OF(rows)};
