/* Shapes and movement. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static const int64_t *dims_of(struct bw_onnx_call *c, bw_tensor x)
{
    return bw_tensor_dims(c->g, x);
}

/* The shape came as an attribute before opset 5. 0 keeps the input's dimension unless allowzero. */
static int reshape(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints shape = c->opset < 5 ? bw_onnx_ints(c, "shape") : bw_onnx_list_in(c, 1);
    bool keeps_zero = bw_onnx_int(c, "allowzero", 0);
    int64_t dims[BW_TENSOR_RANK_MAX];
    if (shape.count > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -E2BIG, "rank %llu", (unsigned long long)shape.count);
    for (uint32_t i = 0; i < shape.count; i++) {
        bool copies = shape.data[i] == 0 && !keeps_zero;
        if (copies && i >= bw_tensor_rank(c->g, x))
            return bw_onnx_fail(c, -EINVAL, "dimension %u is to be kept, but the input has rank %u", i,
                                bw_tensor_rank(c->g, x));
        dims[i] = copies ? dims_of(c, x)[i] : shape.data[i];
    }
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, (uint32_t)shape.count, dims));
}

static int transpose(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints perm = bw_onnx_ints(c, "perm");
    uint32_t rank = bw_tensor_rank(c->g, x), axes[BW_TENSOR_RANK_MAX];
    if (perm.given && perm.count != rank)
        return bw_onnx_fail(c, -EINVAL, "perm has %llu axes, the input %u", (unsigned long long)perm.count,
                            rank);
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = perm.given ? bw_onnx_axis(c, perm.data[i], rank) : rank - 1 - i;
    return bw_onnx_out(c, 0, bw_tensor_permute(c->g, x, axes));
}

static int squeeze(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x), kept = 0;
    struct bw_onnx_ints axes = bw_onnx_ints_either(c, 1, "axes");
    uint32_t mask = bw_onnx_axes(c, axes, rank);
    int64_t dims[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; !c->rc && i < rank; i++) {
        bool dropped = axes.given ? mask >> i & 1 : dims_of(c, x)[i] == 1;
        if (dropped && dims_of(c, x)[i] != 1)
            return bw_onnx_fail(c, -EINVAL, "axis %u has size %lld, not 1", i, (long long)dims_of(c, x)[i]);
        if (!dropped)
            dims[kept++] = dims_of(c, x)[i];
    }
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, kept, dims));
}

static int unsqueeze(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints axes = bw_onnx_ints_either(c, 1, "axes");
    uint64_t rank = bw_tensor_rank(c->g, x) + axes.count;
    if (rank > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -E2BIG, "rank %llu", (unsigned long long)rank);
    uint32_t mask = bw_onnx_axes(c, axes, (uint32_t)rank);
    int64_t dims[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0, from = 0; !c->rc && i < rank; i++)
        dims[i] = mask >> i & 1 ? 1 : dims_of(c, x)[from++];
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, (uint32_t)rank, dims));
}

static int flatten(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    int64_t rank = bw_tensor_rank(c->g, x), axis = bw_onnx_int(c, "axis", 1), dims[2] = {1, 1};
    if (axis < -rank || axis > rank)
        return bw_onnx_fail(c, -ERANGE, "axis %lld of rank %lld", (long long)axis, (long long)rank);
    axis += axis < 0 ? rank : 0;
    for (int64_t i = 0; i < rank; i++)
        dims[i >= axis] *= dims_of(c, x)[i];
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, 2, dims));
}

static int concat(struct bw_onnx_call *c)
{
    bw_tensor *x = bw_onnx_alloc(c, c->input_count, sizeof *x);
    if (!x || !c->input_count)
        return bw_onnx_fail(c, -EINVAL, "no inputs");
    for (uint32_t i = 0; i < c->input_count; i++)
        x[i] = bw_onnx_in(c, i);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 1), bw_tensor_rank(c->g, x[0]));
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_concat(c->g, x, c->input_count, axis));
}

static bw_tensor slice_axis(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, int64_t start, int64_t stop)
{
    int64_t starts[BW_TENSOR_RANK_MAX] = {0}, stops[BW_TENSOR_RANK_MAX], steps[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < bw_tensor_rank(c->g, x); i++) {
        stops[i] = dims_of(c, x)[i];
        steps[i] = 1;
    }
    starts[axis] = start;
    stops[axis] = stop;
    return bw_tensor_slice(c->g, x, starts, stops, steps);
}

/* The sizes of all parts: as many as outputs, and all of the axis. */
static int split_check(struct bw_onnx_call *c, struct bw_onnx_ints sizes, int64_t size)
{
    int64_t sum = 0;
    if (sizes.count != c->output_count)
        return bw_onnx_fail(c, -EINVAL, "sizes of %llu parts for %u outputs", (unsigned long long)sizes.count,
                            c->output_count);
    for (uint64_t i = 0; i < sizes.count; i++) {
        if (sizes.data[i] < 0 || sizes.data[i] > size - sum)
            return bw_onnx_fail(c, -EINVAL, "part %llu of size %lld does not fit into %lld",
                                (unsigned long long)i, (long long)sizes.data[i], (long long)size);
        sum += sizes.data[i];
    }
    return sum == size ? 0
                       : bw_onnx_fail(c, -EINVAL, "parts of %lld elements together, not %lld", (long long)sum,
                                      (long long)size);
}

/* Sizes from the attribute, from input 1, or equal parts (since opset 18 the last one may be smaller). */
static int split(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), bw_tensor_rank(c->g, x));
    struct bw_onnx_ints sizes = bw_onnx_ints_either(c, 1, "split");
    int64_t size = x.id && bw_tensor_rank(c->g, x) ? dims_of(c, x)[axis] : 0,
            parts = bw_onnx_int(c, "num_outputs", c->output_count);
    if (c->rc || parts != c->output_count)
        return bw_onnx_fail(c, -EINVAL, "%lld parts for %u outputs", (long long)parts, c->output_count);
    if (sizes.given && split_check(c, sizes, size))
        return c->rc;
    if (!sizes.given && c->opset < 18 && size % parts)
        return bw_onnx_fail(c, -EINVAL, "%lld elements do not make %lld equal parts", (long long)size,
                            (long long)parts);
    int64_t equal = (size + parts - 1) / parts, start = 0;
    for (uint32_t i = 0; i < c->output_count; i++) {
        int64_t count = sizes.given ? sizes.data[i] : size - start < equal ? size - start : equal;
        int rc = bw_onnx_out(c, i, slice_axis(c, x, axis, start, start + count));
        if (rc)
            return rc;
        start += count;
    }
    return 0;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* NumPy's rules: negative counts from the end, what is outside is clamped. */
static void slice_resolve(int64_t size, int64_t step, int64_t *start, int64_t *stop)
{
    *start += *start < 0 ? size : 0;
    *stop += *stop < 0 ? size : 0;
    *start = step > 0 ? clamp(*start, 0, size) : clamp(*start, 0, size - 1);
    *stop = step > 0 ? clamp(*stop, 0, size) : clamp(*stop, -1, size);
}

static int slice(struct bw_onnx_call *c)
{
    bool attributes = c->opset < 10;
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints starts = attributes ? bw_onnx_ints(c, "starts") : bw_onnx_list_in(c, 1);
    struct bw_onnx_ints ends = attributes ? bw_onnx_ints(c, "ends") : bw_onnx_list_in(c, 2);
    struct bw_onnx_ints axes = attributes          ? bw_onnx_ints(c, "axes")
                               : bw_onnx_has(c, 3) ? bw_onnx_ints_in(c, 3)
                                                   : (struct bw_onnx_ints){0};
    struct bw_onnx_ints steps = bw_onnx_has(c, 4) ? bw_onnx_ints_in(c, 4) : (struct bw_onnx_ints){0};
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t start[BW_TENSOR_RANK_MAX] = {0}, stop[BW_TENSOR_RANK_MAX], step[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        stop[i] = dims_of(c, x)[i];
        step[i] = 1;
    }
    bool fits = starts.count == ends.count && (!axes.given || axes.count == starts.count) &&
                (!steps.given || steps.count == starts.count) && (axes.given || starts.count <= rank);
    if (c->rc || !fits)
        return bw_onnx_fail(c, -EINVAL, "starts, ends, axes and steps do not fit together");
    if (axes.given)
        bw_onnx_axes(c, axes, rank);
    for (uint32_t i = 0; !c->rc && i < starts.count; i++) {
        uint32_t axis = axes.given ? bw_onnx_axis(c, axes.data[i], rank) : i;
        start[axis] = starts.data[i];
        stop[axis] = ends.data[i];
        /* a longer step has the same effect, and could overflow */
        step[axis] = steps.given
                         ? clamp(steps.data[i], -(1ll << BW_ONNX_SIZE_MAX_LOG2), 1ll << BW_ONNX_SIZE_MAX_LOG2)
                         : 1;
        slice_resolve(dims_of(c, x)[axis], step[axis], &start[axis], &stop[axis]);
    }
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_slice(c->g, x, start, stop, step));
}

/* Where element i of a padded axis comes from. */
static bw_tensor pad_index(struct bw_onnx_call *c, int64_t size, int64_t padded, int64_t low, bool reflects,
                           bool wraps)
{
    int64_t dims[] = {padded};
    bw_tensor index = bw_tensor_indexes(c->g, BW_I64, 1, dims, 0),
              last = bw_tensor_scalar_int(c->g, BW_I64, size - 1);
    index = bw_tensor_sub(c->g, index, bw_tensor_scalar_int(c->g, BW_I64, low));
    if (wraps)
        return bw_tensor_floor_mod(c->g, index, bw_tensor_scalar_int(c->g, BW_I64, size));
    if (reflects && size > 1) {
        index = bw_tensor_floor_mod(c->g, index, bw_tensor_scalar_int(c->g, BW_I64, 2 * (size - 1)));
        return bw_tensor_sub(c->g, last, bw_tensor_abs(c->g, bw_tensor_sub(c->g, last, index)));
    }
    return bw_tensor_min(c->g, bw_tensor_max(c->g, index, bw_tensor_scalar_int(c->g, BW_I64, 0)), last);
}

static int pad_by_index(struct bw_onnx_call *c, bw_tensor x, const int64_t *low, const int64_t *high,
                        bool reflects, bool wraps)
{
    for (uint32_t axis = 0; axis < bw_tensor_rank(c->g, x); axis++) {
        int64_t size = dims_of(c, x)[axis], padded = size + low[axis] + high[axis];
        if (padded < 0 || (size == 0 && padded))
            return bw_onnx_fail(c, -EINVAL, "padding of axis %u of size %lld", axis, (long long)size);
        if (low[axis] || high[axis])
            x = bw_onnx_take(c, x, axis, pad_index(c, size, padded, low[axis], reflects, wraps));
    }
    return bw_onnx_out(c, 0, x);
}

/* What the padded axis would have. */
static void pad_check(struct bw_onnx_call *c, uint32_t axis, int64_t size, int64_t low, int64_t high)
{
    const int64_t most = 1ll << BW_ONNX_SIZE_MAX_LOG2;
    __int128 padded = (__int128)size + low + high;
    if (padded < 0)
        bw_onnx_fail(c, -EINVAL, "pads %lld and %lld take more than the %lld elements of axis %u",
                     (long long)low, (long long)high, (long long)size, axis);
    else if (padded > most || low < -most || low > most || high < -most || high > most)
        bw_onnx_fail(c, -E2BIG, "pads %lld and %lld of axis %u overflow: an axis has at most 2^%d elements",
                     (long long)low, (long long)high, axis, BW_ONNX_SIZE_MAX_LOG2);
}

/* `paddings` in opset 1, `pads` as attribute up to 10, as input since 11, for some axes only since 18. */
static int pad(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x);
    struct bw_onnx_ints pads =
        c->opset < 11 ? bw_onnx_ints(c, c->opset < 2 ? "paddings" : "pads") : bw_onnx_ints_in(c, 1);
    struct bw_onnx_ints axes = bw_onnx_has(c, 3) ? bw_onnx_ints_in(c, 3) : (struct bw_onnx_ints){0};
    int64_t low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0};
    uint64_t count = axes.given ? axes.count : rank, value_count = 0;
    if (pads.count != 2 * count || count > rank)
        return bw_onnx_fail(c, -EINVAL, "%llu pads for %llu axes", (unsigned long long)pads.count,
                            (unsigned long long)count);
    if (axes.given)
        bw_onnx_axes(c, axes, rank);
    for (uint32_t i = 0; !c->rc && i < count; i++) {
        uint32_t axis = axes.given ? bw_onnx_axis(c, axes.data[i], rank) : i;
        low[axis] = pads.data[i];
        high[axis] = pads.data[i + count];
        pad_check(c, axis, dims_of(c, x)[axis], low[axis], high[axis]);
    }
    if (c->rc)
        return c->rc;
    if (!bw_onnx_string_is(c, "mode", "constant", true))
        return pad_by_index(c, x, low, high, bw_onnx_string_is(c, "mode", "reflect", false),
                            bw_onnx_string_is(c, "mode", "wrap", false));
    double value = bw_onnx_float(c, "value", 0);
    if (bw_onnx_has(c, 2) && c->opset >= 11) {
        const double *given = bw_onnx_doubles_in(c, 2, &value_count);
        value = value_count ? given[0] : 0;
        if (value_count && bw_dtype_is_storage(c->inputs[2]->dtype)) /* bytes move, so this is one */
            value = (double)bw_onnx_host_int(bw_dtype_carrier(c->inputs[2]->dtype), c->inputs[2]->host, 0);
    }
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_pad(c->g, x, low, high, value));
}

static int expand(struct bw_onnx_call *c)
{
    struct bw_onnx_ints shape = bw_onnx_list_in(c, 1);
    bw_tensor x = bw_onnx_in(c, 0);
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_expand(c->g, x, (uint32_t)shape.count, shape.data));
}

/* [r1, d1, r2, d2, ..] expanded and merged: no copy */
static int tile(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints repeats = bw_onnx_ints_in(c, 1);
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t counts[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        counts[i] = c->opset < 6 ? 1 : i < repeats.count ? repeats.data[i] : 0;
    if (c->opset < 6) { /* tiles along one axis */
        struct bw_onnx_ints axis = bw_onnx_ints_in(c, 2);
        if (axis.count != 1 || repeats.count != 1)
            return bw_onnx_fail(c, -EINVAL, "tiles and axis must be one number each");
        counts[bw_onnx_axis(c, axis.data[0], rank)] = repeats.data[0];
    } else if (repeats.count != rank) {
        return bw_onnx_fail(c, -EINVAL, "%llu repeats for rank %u", (unsigned long long)repeats.count, rank);
    }
    for (uint32_t axis = 0; axis < rank && !c->rc; axis++) {
        int64_t before = 1, after = 1, size = dims_of(c, x)[axis], dims[BW_TENSOR_RANK_MAX];
        memcpy(dims, dims_of(c, x), rank * sizeof *dims);
        if (counts[axis] < 0 || counts[axis] >> BW_ONNX_SIZE_MAX_LOG2 ||
            (size && counts[axis] > (1ll << BW_ONNX_SIZE_MAX_LOG2) / size))
            return bw_onnx_fail(c, -EINVAL, "axis %u repeated %lld times", axis, (long long)counts[axis]);
        for (uint32_t i = 0; i < rank; i++)
            *(i < axis ? &before : &after) *= i == axis ? 1 : dims[i];
        int64_t split_dims[] = {before, 1, size, after}, spread[] = {before, counts[axis], size, after};
        dims[axis] = size * counts[axis];
        x = bw_tensor_reshape(
            c->g, bw_tensor_expand(c->g, bw_tensor_reshape(c->g, x, 4, split_dims), 4, spread), rank, dims);
    }
    return bw_onnx_out(c, 0, x);
}

static int shape(struct bw_onnx_call *c)
{
    if (!bw_onnx_has(c, 0) || c->inputs[0]->kind == BW_VALUE_SEQUENCE)
        return bw_onnx_fail(c, -EINVAL, "the shape of no tensor");
    int64_t rank = c->inputs[0]->rank, start = bw_onnx_int(c, "start", 0), end = bw_onnx_int(c, "end", rank);
    start = clamp(start < 0 ? start + rank : start, 0, rank);
    end = clamp(end < 0 ? end + rank : end, start, rank);
    return bw_onnx_out_ints(c, 0, c->inputs[0]->dims + start, (uint32_t)(end - start));
}

static int size(struct bw_onnx_call *c)
{
    if (!bw_onnx_has(c, 0) || c->inputs[0]->kind == BW_VALUE_SEQUENCE)
        return bw_onnx_fail(c, -EINVAL, "the size of no tensor");
    return bw_onnx_out(c, 0, bw_tensor_scalar_int(c->g, BW_I64, c->inputs[0]->elements));
}

static int identity(struct bw_onnx_call *c)
{
    if (c->input_count < 1 || !c->inputs[0])
        return bw_onnx_fail(c, -EINVAL, "no input");
    return bw_onnx_out_value(c, 0, c->inputs[0]);
}

static int constant_strings(struct bw_onnx_call *c, const struct bw_bytes *strings, uint64_t count,
                            uint32_t rank)
{
    int64_t dims[] = {(int64_t)count};
    struct bw_bytes *copy = calloc(count + 1, sizeof *copy);
    if (copy && count)
        memcpy(copy, strings, count * sizeof *copy);
    return bw_onnx_out_value(c, 0, bw_onnx_value_strings(c->session, rank, dims, copy, true));
}

static int constant(struct bw_onnx_call *c)
{
    if (c->node->attribute_count > 1)
        return bw_onnx_fail(c, -EINVAL, "%u values instead of one", c->node->attribute_count);
    for (uint32_t i = 0; i < c->node->attribute_count; i++) {
        char name[64];
        struct bw_onnx_text text = bw_onnx_text(c->node->attributes[i].name);
        memcpy(name, text.text, sizeof name);
        const struct bw_onnx_attribute *attr = bw_onnx_attribute(c, name, c->node->attributes[i].type);
        if (!attr)
            continue; /* a reference that the call does not give */
        int64_t dims[] = {(int64_t)attr->count};
        if (!strcmp(name, "value") && attr->type == BW_ONNX_ATTR_TENSOR)
            return bw_onnx_out_value(c, 0, bw_onnx_value_proto(c->session, attr->tensor));
        if (!strcmp(name, "value_int"))
            return bw_onnx_out(c, 0, bw_tensor_scalar_int(c->g, BW_I64, attr->i));
        if (!strcmp(name, "value_float"))
            return bw_onnx_out(c, 0, bw_tensor_scalar(c->g, BW_F32, (double)attr->f));
        if (!strcmp(name, "value_ints"))
            return bw_onnx_out(c, 0, bw_tensor_constant(c->g, BW_I64, 1, dims, attr->ints));
        if (!strcmp(name, "value_floats"))
            return bw_onnx_out(c, 0, bw_tensor_constant(c->g, BW_F32, 1, dims, attr->floats));
        if (!strcmp(name, "value_string"))
            return constant_strings(c, &attr->s, 1, 0);
        if (!strcmp(name, "value_strings"))
            return constant_strings(c, attr->strings, attr->count, 1);
    }
    return bw_onnx_fail(c, -ENOTSUP, "no value, or a sparse one");
}

static int constant_of_shape(struct bw_onnx_call *c)
{
    struct bw_onnx_ints dims = bw_onnx_list_in(c, 0);
    const struct bw_onnx_attribute *attr = bw_onnx_attribute(c, "value", BW_ONNX_ATTR_TENSOR);
    bw_tensor element = bw_tensor_scalar(c->g, BW_F32, 0);
    enum bw_dtype dtype = BW_F32;
    if (c->rc)
        return c->rc;
    if (attr) {
        struct bw_onnx_value *value = bw_onnx_value_proto(c->session, attr->tensor);
        if (!value || value->kind != BW_VALUE_ARRAY || value->elements != 1)
            return bw_onnx_fail(c, -EINVAL, "value is not one number");
        element = bw_tensor_reshape(c->g, bw_onnx_tensor_of(c->session, value), 0, NULL);
        dtype = value->dtype;
    }
    element = bw_tensor_expand(c->g, element, (uint32_t)dims.count, dims.data);
    return bw_onnx_out_typed(c, 0, element, dtype);
}

/* How many steps of delta lie before limit; integers of 64 bits, which a double does not hold. */
static int range_steps_int(struct bw_onnx_call *c, double *steps)
{
    struct bw_onnx_ints start = bw_onnx_ints_in(c, 0), limit = bw_onnx_ints_in(c, 1),
                        delta = bw_onnx_ints_in(c, 2);
    if (c->rc)
        return c->rc;
    __int128 span = (__int128)limit.data[0] - start.data[0], step = delta.data[0];
    bool any = step > 0 ? span > 0 : span < 0;
    *steps = any ? (double)((span + step - (step > 0 ? 1 : -1)) / step) : 0;
    return 0;
}

static int range(struct bw_onnx_call *c)
{
    uint64_t counts[3];
    const double *start = bw_onnx_doubles_in(c, 0, &counts[0]), *limit = bw_onnx_doubles_in(c, 1, &counts[1]),
                 *delta = bw_onnx_doubles_in(c, 2, &counts[2]);
    if (c->rc || counts[0] != 1 || counts[1] != 1 || counts[2] != 1 || delta[0] == 0)
        return bw_onnx_fail(c, -EINVAL, "start, limit and delta must be numbers, delta not 0");
    enum bw_dtype dtype = bw_onnx_in_dtype(c, 0);
    double steps = ceil((limit[0] - start[0]) / delta[0]);
    if (bw_dtype_is_int(dtype) && range_steps_int(c, &steps))
        return c->rc;
    if (!(steps < 0x1p40))
        return bw_onnx_fail(c, -E2BIG, "%g elements", steps);
    int64_t dims[] = {steps > 0 ? (int64_t)steps : 0};
    bw_tensor index = bw_tensor_cast(c->g, dtype, bw_tensor_indexes(c->g, BW_I64, 1, dims, 0));
    bw_tensor one[] = {bw_tensor_reshape(c->g, bw_onnx_in(c, 0), 0, NULL),
                       bw_tensor_reshape(c->g, bw_onnx_in(c, 2), 0, NULL)};
    return bw_onnx_out(c, 0, bw_tensor_add(c->g, bw_tensor_mul(c->g, index, one[1]), one[0]));
}

/* column - row, over the last two axes of a shape */
static bw_tensor diagonal_number(struct bw_onnx_call *c, uint32_t rank, const int64_t *dims)
{
    return bw_tensor_sub(c->g, bw_tensor_indexes(c->g, BW_I64, rank, dims, rank - 1),
                         bw_tensor_indexes(c->g, BW_I64, rank, dims, rank - 2));
}

static int eye_like(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    if (bw_tensor_rank(c->g, x) != 2)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u, not 2", bw_tensor_rank(c->g, x));
    enum bw_dtype dtype = bw_onnx_dtype(c, "dtype", bw_onnx_dtype_to(bw_tensor_dtype(c->g, x)));
    bw_tensor k = bw_tensor_scalar_int(c->g, BW_I64, bw_onnx_int(c, "k", 0));
    bw_tensor on = bw_tensor_equal(c->g, diagonal_number(c, 2, dims_of(c, x)), k);
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_cast(c->g, dtype, on));
}

static int trilu(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x);
    struct bw_onnx_ints given = bw_onnx_has(c, 1) ? bw_onnx_ints_in(c, 1) : (struct bw_onnx_ints){0};
    if (rank < 2 || c->rc)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u", rank);
    bw_tensor k = bw_tensor_scalar_int(c->g, BW_I64, given.count ? given.data[0] : 0),
              number = diagonal_number(c, rank, dims_of(c, x));
    bool upper = bw_onnx_int(c, "upper", 1);
    bw_tensor kept = upper ? bw_tensor_greater_equal(c->g, number, k) : bw_tensor_less_equal(c->g, number, k);
    return bw_onnx_out(c, 0, bw_tensor_where(c->g, kept, x, bw_onnx_scalar_like(c, x, 0)));
}

enum { BLOCK_MAX = 1 << 16 }; /* its square times an axis stays within 64 bits */

static int depth_to_space(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    int64_t b = bw_onnx_int(c, "blocksize", 0);
    const int64_t *d = dims_of(c, x);
    if (bw_tensor_rank(c->g, x) != 4 || b < 1 || b > BLOCK_MAX || d[1] % (b * b))
        return bw_onnx_fail(c, -EINVAL, "blocksize %lld does not fit the input", (long long)b);
    bool columns = bw_onnx_string_is(c, "mode", "CRD", false); /* depth counts slowest */
    int64_t depth = d[1] / (b * b), result[] = {d[0], depth, d[2] * b, d[3] * b};
    int64_t dcr[] = {d[0], b, b, depth, d[2], d[3]}, crd[] = {d[0], depth, b, b, d[2], d[3]};
    static const uint32_t dcr_axes[] = {0, 3, 4, 1, 5, 2}, crd_axes[] = {0, 1, 4, 2, 5, 3};
    x = bw_tensor_permute(c->g, bw_tensor_reshape(c->g, x, 6, columns ? crd : dcr),
                          columns ? crd_axes : dcr_axes);
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, 4, result));
}

static int space_to_depth(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    int64_t b = bw_onnx_int(c, "blocksize", 0);
    const int64_t *d = dims_of(c, x);
    if (bw_tensor_rank(c->g, x) != 4 || b < 1 || b > BLOCK_MAX || d[2] % b || d[3] % b)
        return bw_onnx_fail(c, -EINVAL, "blocksize %lld does not fit the input", (long long)b);
    int64_t split_dims[] = {d[0], d[1], d[2] / b, b, d[3] / b, b},
            result[] = {d[0], d[1] * b * b, d[2] / b, d[3] / b};
    static const uint32_t axes[] = {0, 3, 5, 1, 2, 4};
    x = bw_tensor_permute(c->g, bw_tensor_reshape(c->g, x, 6, split_dims), axes);
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, x, 4, result));
}

/* The first sequence_lens[b] steps of each batch, backwards; the others as they are. */
static int reverse_sequence(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), lengths = bw_tensor_cast(c->g, BW_I64, bw_onnx_in(c, 1));
    uint32_t rank = bw_tensor_rank(c->g, x);
    uint32_t batch = bw_onnx_axis(c, bw_onnx_int(c, "batch_axis", 1), rank),
             time = bw_onnx_axis(c, bw_onnx_int(c, "time_axis", 0), rank);
    int64_t dims[BW_TENSOR_RANK_MAX];
    if (c->rc || batch == time || bw_tensor_elements(c->g, lengths) != dims_of(c, x)[batch])
        return bw_onnx_fail(c, -EINVAL, "batch axis, time axis and lengths do not fit");
    struct bw_onnx_limits limits = {.period = 1, .sizes = {dims_of(c, x)[time] + 1}};
    if (bw_onnx_check_indexes(c, 1, &limits))
        return c->rc;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == batch ? dims_of(c, x)[batch] : 1;
    bw_tensor length = bw_tensor_reshape(c->g, lengths, rank, dims), indexes[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        indexes[i] = bw_tensor_indexes(c->g, BW_I64, rank, dims_of(c, x), i);
    bw_tensor step = indexes[time],
              back = bw_tensor_sub(c->g, bw_tensor_sub(c->g, length, bw_tensor_scalar_int(c->g, BW_I64, 1)),
                                   step);
    indexes[time] = bw_tensor_where(c->g, bw_tensor_less(c->g, step, length), back, step);
    return bw_onnx_out(c, 0, bw_tensor_gather_nd(c->g, x, indexes));
}

static const struct bw_onnx_op rows[] = {
    {"Concat", 1, .function = concat},
    {"Constant", 1, .function = constant},
    {"ConstantOfShape", 9, .function = constant_of_shape},
    {"DepthToSpace", 1, .function = depth_to_space},
    {"Expand", 8, .function = expand},
    {"EyeLike", 9, .function = eye_like},
    {"Flatten", 1, .function = flatten, .moves = true},
    {"Identity", 1, .function = identity},
    {"Pad", 1, .function = pad, .moves = true},
    {"Range", 11, .function = range},
    {"Reshape", 1, .function = reshape, .moves = true},
    {"ReverseSequence", 10, .function = reverse_sequence},
    {"Shape", 1, .function = shape},
    {"Size", 1, .function = size},
    {"Slice", 1, .function = slice},
    {"SpaceToDepth", 1, .function = space_to_depth},
    {"Split", 1, .function = split},
    {"Squeeze", 1, .function = squeeze, .moves = true},
    {"Tile", 1, .function = tile},
    {"Transpose", 1, .function = transpose, .moves = true},
    {"Trilu", 14, .function = trilu},
    {"Unsqueeze", 1, .function = unsqueeze, .moves = true},
};

const struct bw_onnx_ops bw_onnx_ops_shape = {rows, BW_COUNT_OF(rows)};
