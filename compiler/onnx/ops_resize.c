/* Resize and Upsample: per axis, elements at indices and weights that are known when the shapes are. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

enum mode { NEAREST, LINEAR, CUBIC };
enum { TAPS_MAX = 4096 };              /* of an antialiased axis: reduced by more is refused */
static const double ROI_MAX = 1 << 20; /* edges: what is cropped lies outside of the input long before */
static const double FAR = 0x1p61; /* positions: outside of any axis, and some taps further still a number */

struct resize {
    enum mode mode;
    double scales[BW_TENSOR_RANK_MAX], starts[BW_TENSOR_RANK_MAX],
        ends[BW_TENSOR_RANK_MAX]; /* roi: starts and ends */
    int64_t sizes[BW_TENSOR_RANK_MAX];
    bool exclude_outside, antialias, crops;
    double cubic_a, extrapolation;
};

static const char *const coordinate_modes[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
enum {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF_PIXEL,
    TF_CROP
};

/* Where element i of the result lies in the input. */
static double coordinate(int mode, const struct resize *r, uint32_t axis, int64_t i, int64_t size)
{
    double x = (double)i, out = (double)r->sizes[axis], in = (double)size, scale = r->scales[axis];
    switch (mode) {
    case HALF_PIXEL_SYMMETRIC: {
        double adjustment = out / (scale * in), center = in / 2;
        return center * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
    case PYTORCH_HALF_PIXEL:
        return r->sizes[axis] > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ALIGN_CORNERS:
        return r->sizes[axis] > 1 ? x * (in - 1) / (out - 1) : 0;
    case ASYMMETRIC:
        return x / scale;
    case TF_HALF_PIXEL:
        return (x + 0.5) / scale;
    case TF_CROP:
        return r->sizes[axis] > 1
                   ? r->starts[axis] * (in - 1) + x * (r->ends[axis] - r->starts[axis]) * (in - 1) / (out - 1)
                   : 0.5 * (r->starts[axis] + r->ends[axis]) * (in - 1);
    default:
        return (x + 0.5) / scale - 0.5;
    }
}

static int64_t nearest_index(struct bw_onnx_call *c, double x)
{
    double nearest = ceil(x - 0.5);
    if (bw_onnx_string_is(c, "nearest_mode", "round_prefer_ceil", false))
        nearest = floor(x + 0.5);
    else if (c->opset < 11 || bw_onnx_string_is(c, "nearest_mode", "floor", false))
        nearest = floor(x);
    else if (bw_onnx_string_is(c, "nearest_mode", "ceil", false))
        nearest = ceil(x);
    return bw_dtype_int_from(BW_I64, nearest);
}

/* Weight of a tap at distance t. */
static double kernel(const struct resize *r, double t)
{
    double a = r->cubic_a;
    t = fabs(t);
    if (r->mode == LINEAR)
        return t < 1 ? 1 - t : 0;
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Weights of `taps` inputs from floor(x) - before on; outside ones are dropped or repeat the border. */
static void axis_weights(const struct resize *r, double x, int64_t size, double stretch, int64_t before,
                         int64_t taps, int64_t *index, double *weights)
{
    double sum = 0;
    int64_t base = bw_dtype_int_from(BW_I64, fmin(fmax(floor(x), -FAR), FAR));
    for (int64_t k = 0; k < taps; k++) {
        int64_t at = base - before + k;
        bool outside = at < 0 || at >= size;
        weights[k] = r->exclude_outside && outside ? 0 : kernel(r, ((double)at - x) / stretch);
        index[k] = at < 0 ? 0 : at >= size ? size - 1 : at;
        sum += weights[k];
    }
    for (int64_t k = 0; k < taps && (r->exclude_outside || r->antialias) && sum != 0; k++)
        weights[k] /= sum;
}

static bw_tensor constant_column(struct bw_onnx_call *c, enum bw_dtype dtype, uint32_t rank, uint32_t axis,
                                 int64_t size, const double *values)
{
    int64_t flat[] = {size}, dims[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? size : 1;
    bw_tensor column = bw_tensor_constant(c->g, BW_F64, 1, flat, values);
    return bw_tensor_reshape(c->g, bw_tensor_cast(c->g, dtype, column), rank, dims);
}

/* x[.., index[i], ..]; indices that only repeat each element are a reshape and an expand. */
static bw_tensor take_indices(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, int64_t count,
                              const int64_t *index)
{
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t size = bw_tensor_dims(c->g, x)[axis], repeat = size ? count / size : 0, flat[] = {count};
    bool repeats = repeat > 0 && repeat * size == count && rank < BW_TENSOR_RANK_MAX;
    for (int64_t i = 0; i < count && repeats; i++)
        repeats = index[i] == i / repeat;
    if (!repeats)
        return bw_onnx_take(c, x, axis, bw_tensor_constant(c->g, BW_I64, 1, flat, index));
    int64_t column[BW_TENSOR_RANK_MAX], spread[BW_TENSOR_RANK_MAX], result[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i <= rank; i++) {
        column[i] = spread[i] = i == axis + 1 ? 1 : bw_tensor_dims(c->g, x)[i <= axis ? i : i - 1];
        if (i < rank)
            result[i] = i == axis ? count : bw_tensor_dims(c->g, x)[i];
    }
    spread[axis + 1] = repeat;
    return bw_tensor_reshape(
        c->g, bw_tensor_expand(c->g, bw_tensor_reshape(c->g, x, rank + 1, column), rank + 1, spread), rank,
        result);
}

/* Sum over taps of weight * element. */
static bw_tensor interpolate_axis(struct bw_onnx_call *c, const struct resize *r, bw_tensor x, uint32_t axis,
                                  int mode)
{
    int64_t size = bw_tensor_dims(c->g, x)[axis], count = r->sizes[axis], reach = r->mode == CUBIC ? 2 : 1;
    double stretch = r->antialias && r->scales[axis] < 1 ? 1 / r->scales[axis] : 1;
    double span = ceil((double)reach * stretch);
    if (!(2 * span + 1 <= TAPS_MAX)) {
        bw_onnx_fail(c, -E2BIG, "axis %u is reduced by %g", axis, stretch);
        return x;
    }
    int64_t before = stretch > 1 ? bw_dtype_int_from(BW_I64, span) : reach - 1,
            taps = stretch > 1 ? 2 * before + 1 : 2 * reach;
    int64_t *index = bw_onnx_alloc(c, (uint64_t)(count * taps), sizeof *index),
            *column = bw_onnx_alloc(c, (uint64_t)count, sizeof *column);
    double *weights = bw_onnx_alloc(c, (uint64_t)(count * taps), sizeof *weights),
           *weight = bw_onnx_alloc(c, (uint64_t)count, sizeof *weight);
    if (c->rc)
        return x;
    for (int64_t i = 0; i < count; i++)
        axis_weights(r, coordinate(mode, r, axis, i, size), size, stretch, before, taps, index + i * taps,
                     weights + i * taps);
    bw_tensor sum = {0};
    for (int64_t k = 0; k < taps; k++) {
        for (int64_t i = 0; i < count; i++) {
            column[i] = index[i * taps + k];
            weight[i] = weights[i * taps + k];
        }
        bw_tensor factor =
            constant_column(c, bw_tensor_dtype(c->g, x), bw_tensor_rank(c->g, x), axis, count, weight);
        bw_tensor term = bw_tensor_mul(c->g, take_indices(c, x, axis, count, column), factor);
        sum = k ? bw_tensor_add(c->g, sum, term) : term;
    }
    return sum;
}

static bw_tensor nearest_axis(struct bw_onnx_call *c, const struct resize *r, bw_tensor x, uint32_t axis,
                              int mode)
{
    int64_t size = bw_tensor_dims(c->g, x)[axis], count = r->sizes[axis],
            *index = bw_onnx_alloc(c, (uint64_t)count, sizeof *index);
    for (int64_t i = 0; index && i < count; i++) {
        int64_t at = nearest_index(c, coordinate(mode, r, axis, i, size));
        index[i] = at < 0 ? 0 : at >= size ? size - 1 : at;
    }
    return index ? take_indices(c, x, axis, count, index) : x;
}

/* tf_crop_and_resize: what lies outside of the input gets a value of its own. */
static bw_tensor extrapolate(struct bw_onnx_call *c, const struct resize *r, bw_tensor y, uint32_t axis,
                             int64_t size)
{
    double *outside = bw_onnx_alloc(c, (uint64_t)r->sizes[axis], sizeof *outside);
    for (int64_t i = 0; outside && i < r->sizes[axis]; i++) {
        double x = coordinate(TF_CROP, r, axis, i, size);
        outside[i] = x < 0 || x > (double)size - 1;
    }
    if (!outside)
        return y;
    bw_tensor mask = constant_column(c, BW_BOOL, bw_tensor_rank(c->g, y), axis, r->sizes[axis], outside);
    return bw_tensor_where(c->g, mask, bw_onnx_scalar_like(c, y, r->extrapolation), y);
}

static int resize_run(struct bw_onnx_call *c, const struct resize *r, bw_tensor x)
{
    int mode = c->opset < 11 ? ASYMMETRIC : HALF_PIXEL;
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t dims[BW_TENSOR_RANK_MAX];
    memcpy(dims, bw_tensor_dims(c->g, x), rank * sizeof *dims);
    for (size_t i = 0; i < BW_COUNT_OF(coordinate_modes); i++)
        if (bw_onnx_string_is(c, "coordinate_transformation_mode", coordinate_modes[i], false))
            mode = (int)i;
    enum bw_dtype dtype = bw_tensor_dtype(c->g, x), wide = bw_dtype_is_float(dtype) ? dtype : BW_F32;
    if (r->mode != NEAREST)
        x = bw_tensor_cast(c->g, wide, x);
    for (uint32_t axis = 0; !c->rc && axis < rank; axis++) {
        if ((r->sizes[axis] == dims[axis] && r->scales[axis] == 1 && mode != TF_CROP) || !x.id)
            continue;
        if (!dims[axis] || !r->sizes[axis]) {
            bw_onnx_fail(c, -EINVAL, "axis %u from size %lld to %lld", axis, (long long)dims[axis],
                         (long long)r->sizes[axis]);
            break;
        }
        x = r->mode == NEAREST ? nearest_axis(c, r, x, axis, mode) : interpolate_axis(c, r, x, axis, mode);
    }
    for (uint32_t axis = 0; !c->rc && mode == TF_CROP && axis < rank; axis++)
        x = extrapolate(c, r, x, axis, dims[axis]);
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_cast(c->g, dtype, x));
}

/* Values for some or all axes, into a list by axis. */
static bool spread_axes(struct bw_onnx_call *c, struct bw_onnx_ints axes, uint32_t rank, const double *values,
                        uint64_t count, double *list)
{
    if (count != (axes.given ? axes.count : rank)) {
        bw_onnx_fail(c, -EINVAL, "%llu sizes or scales for rank %u", (unsigned long long)count, rank);
        return false;
    }
    for (uint64_t i = 0; i < count; i++)
        list[axes.given ? bw_onnx_axis(c, axes.data[i], rank) : i] = values[i];
    return !c->rc;
}

/* A size that was given or computed, as one; what no axis can have is refused as what it is. */
static int64_t size_of(struct bw_onnx_call *c, double size, uint32_t axis)
{
    if (!(size >= 0))
        bw_onnx_fail(c, -EINVAL, "size %.17g of axis %u", size, axis);
    else if (size > 0x1p40) /* BW_ONNX_SIZE_MAX_LOG2 */
        bw_onnx_fail(c, -E2BIG, "size %.17g of axis %u overflows: an axis has at most 2^%d elements", size,
                     axis, BW_ONNX_SIZE_MAX_LOG2);
    return c->rc ? 0 : bw_dtype_int_from(BW_I64, size);
}

static void sizes_from_scales(struct bw_onnx_call *c, struct resize *r, const int64_t *dims, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (!(r->scales[i] > 0))
            bw_onnx_fail(c, -EINVAL, "scale %g of axis %u", r->scales[i], i);
        r->sizes[i] =
            size_of(c, floor((double)dims[i] * (r->crops ? r->ends[i] - r->starts[i] : 1) * r->scales[i]), i);
    }
}

/* keep_aspect_ratio_policy: one scale for all axes, the smaller or the larger of those wanted. */
static void scales_from_sizes(struct bw_onnx_call *c, struct resize *r, const int64_t *dims, uint32_t rank,
                              struct bw_onnx_ints axes)
{
    bool smaller = bw_onnx_string_is(c, "keep_aspect_ratio_policy", "not_larger", false);
    bool larger = bw_onnx_string_is(c, "keep_aspect_ratio_policy", "not_smaller", false);
    uint32_t mask = axes.given ? bw_onnx_axes(c, axes, rank) : (1u << rank) - 1;
    double common = smaller ? INFINITY : 0;
    for (uint32_t i = 0; i < rank; i++) {
        r->scales[i] = dims[i] ? (double)r->sizes[i] / (double)dims[i] : 1;
        if (mask >> i & 1)
            common = smaller ? fmin(common, r->scales[i]) : fmax(common, r->scales[i]);
    }
    for (uint32_t i = 0; i < rank && (smaller || larger); i++)
        if (mask >> i & 1) {
            r->scales[i] = common;
            r->sizes[i] = size_of(c, floor(common * (double)dims[i] + 0.5), i);
        }
}

static void mode_read(struct bw_onnx_call *c, struct resize *r)
{
    bool cubic = bw_onnx_string_is(c, "mode", "cubic", false);
    bool linear =
        bw_onnx_string_is(c, "mode", "linear", false) || bw_onnx_string_is(c, "mode", "bilinear", false);
    r->mode = cubic ? CUBIC : linear ? LINEAR : NEAREST;
    r->cubic_a = bw_onnx_float(c, "cubic_coeff_a", -0.75);
    r->exclude_outside = bw_onnx_int(c, "exclude_outside", 0);
    r->antialias = bw_onnx_int(c, "antialias", 0);
    r->extrapolation = bw_onnx_float(c, "extrapolation_value", 0);
}

static int resize(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x), scales_input = c->opset < 11 ? 1 : 2;
    struct bw_onnx_ints axes = bw_onnx_ints(c, "axes");
    struct resize r = {0};
    double list[BW_TENSOR_RANK_MAX];
    uint64_t count = 0;
    const int64_t *dims = bw_tensor_dims(c->g, x);
    mode_read(c, &r);
    r.crops = bw_onnx_string_is(c, "coordinate_transformation_mode", "tf_crop_and_resize", false);
    for (uint32_t i = 0; i < rank; i++) {
        r.scales[i] = r.ends[i] = 1;
        list[i] = (double)dims[i];
    }
    if (axes.given)
        bw_onnx_axes(c, axes, rank);
    if (r.crops && bw_onnx_has(c, 1)) {
        const double *roi = bw_onnx_doubles_in(c, 1, &count);
        if (c->rc || !spread_axes(c, axes, rank, roi, count / 2, r.starts) ||
            !spread_axes(c, axes, rank, roi + count / 2, count / 2, r.ends))
            return bw_onnx_fail(c, -EINVAL, "roi");
        for (uint32_t i = 0; i < rank; i++)
            if (!(fabs(r.starts[i]) <= ROI_MAX && fabs(r.ends[i]) <= ROI_MAX)) /* nor NaN */
                return bw_onnx_fail(c, -EINVAL, "roi %g to %g of axis %u", r.starts[i], r.ends[i], i);
    }
    count = 0;
    const double *scales = bw_onnx_has(c, scales_input) ? bw_onnx_doubles_in(c, scales_input, &count) : NULL;
    if (c->rc)
        return c->rc;
    uint64_t sizes_count = bw_onnx_has(c, 3) ? (uint64_t)c->inputs[3]->elements : 0;
    if (c->opset >= 11 && !count == !sizes_count)
        return bw_onnx_fail(c, -EINVAL, "scales or sizes must be given, and not both");
    if (scales && count) {
        if (!spread_axes(c, axes, rank, scales, count, r.scales))
            return c->rc;
        sizes_from_scales(c, &r, dims, rank);
    } else {
        const double *sizes = bw_onnx_doubles_in(c, 3, &count);
        if (c->rc || !spread_axes(c, axes, rank, sizes, count, list))
            return c->rc;
        for (uint32_t i = 0; i < rank; i++)
            r.sizes[i] = size_of(c, list[i], i);
        scales_from_sizes(c, &r, dims, rank, axes);
    }
    return c->rc ? c->rc : resize_run(c, &r, x);
}

/* Resize as it was before: scales as attribute (opset 7) or input (9). */
static int upsample(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x);
    const struct bw_onnx_attribute *attribute =
        c->opset < 9 ? bw_onnx_attribute(c, "scales", BW_ONNX_ATTR_FLOATS) : NULL;
    struct resize r = {0};
    uint64_t count = attribute ? attribute->count : 0;
    const double *given = c->opset < 9 ? NULL : bw_onnx_doubles_in(c, 1, &count);
    if (c->rc || count != rank)
        return bw_onnx_fail(c, -EINVAL, "%llu scales for rank %u", (unsigned long long)count, rank);
    mode_read(c, &r);
    for (uint32_t i = 0; i < rank; i++)
        r.scales[i] = given ? given[i] : (double)attribute->floats[i];
    sizes_from_scales(c, &r, bw_tensor_dims(c->g, x), rank);
    return c->rc ? c->rc : resize_run(c, &r, x);
}

static const struct bw_onnx_op rows[] = {
    {"Resize", 10, .function = resize},
    {"Upsample", 7, .function = upsample},
};

const struct bw_onnx_ops bw_onnx_ops_resize = {rows, BW_COUNT_OF(rows)};
