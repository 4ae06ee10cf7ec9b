/* Reductions, softmax, normalisation, losses. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static uint32_t all_axes(uint32_t rank)
{
    return (1u << rank) - 1;
}

static bw_tensor square(struct bw_onnx_call *c, bw_tensor x)
{
    return bw_tensor_mul(c->g, x, x);
}

static bw_tensor shifted(struct bw_onnx_call *c, bw_tensor x, double addend)
{
    return bw_tensor_add(c->g, x, bw_onnx_scalar_like(c, x, addend));
}

enum reduction { SUM, MEAN, MAX, MIN, PROD, L1, L2, LOG_SUM, LOG_SUM_EXP, SUM_SQUARE };

static bw_tensor log_sum_exp(struct bw_onnx_call *c, bw_tensor x, uint32_t mask, bool keep)
{
    bw_tensor max = bw_tensor_reduce_max(c->g, x, mask, true);
    bw_tensor sum = bw_tensor_log(
        c->g, bw_tensor_sum(c->g, bw_tensor_exp(c->g, bw_tensor_sub(c->g, x, max)), mask, true));
    sum = bw_tensor_add(c->g, sum, max);
    return bw_tensor_sum(c->g, sum, keep ? 0 : mask, keep); /* drops the axes: their size is 1 */
}

static bw_tensor reduced(struct bw_onnx_call *c, bw_tensor x, uint32_t mask, bool keep)
{
    switch ((enum reduction)c->op->variant) {
    case SUM:
        return bw_tensor_sum(c->g, x, mask, keep);
    case MEAN:
        return bw_tensor_mean(c->g, x, mask, keep);
    case MAX:
        return bw_tensor_reduce_max(c->g, x, mask, keep);
    case MIN:
        return bw_tensor_reduce_min(c->g, x, mask, keep);
    case PROD:
        return bw_tensor_prod(c->g, x, mask, keep);
    case L1:
        return bw_tensor_sum(c->g, bw_tensor_abs(c->g, x), mask, keep);
    case L2:
        return bw_tensor_sqrt(c->g, bw_tensor_sum(c->g, square(c, x), mask, keep));
    case LOG_SUM:
        return bw_tensor_log(c->g, bw_tensor_sum(c->g, x, mask, keep));
    case LOG_SUM_EXP:
        return log_sum_exp(c, x, mask, keep);
    default:
        return bw_tensor_sum(c->g, square(c, x), mask, keep);
    }
}

/* Axes as attribute, or as input 1 since opset 13 (ReduceSum) and 18; no axes are all axes, unless told
 * otherwise. */
static int reduce(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t rank = bw_tensor_rank(c->g, x);
    struct bw_onnx_ints axes = bw_onnx_ints_either(c, 1, "axes");
    bool keep = bw_onnx_int(c, "keepdims", 1), none_is_none = bw_onnx_int(c, "noop_with_empty_axes", 0);
    if (!axes.count && none_is_none)
        return bw_onnx_out(c, 0, x);
    uint32_t mask = axes.count ? bw_onnx_axes(c, axes, rank) : all_axes(rank);
    return c->rc ? c->rc : bw_onnx_out(c, 0, reduced(c, x, mask, keep));
}

static int arg_extreme(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), bw_tensor_rank(c->g, x));
    bool keep = bw_onnx_int(c, "keepdims", 1), last = bw_onnx_int(c, "select_last_index", 0),
         smallest = c->op->variant;
    enum bw_dtype dtype = bw_tensor_dtype(c->g, x);
    if (smallest) /* ~x orders all integers the other way round, and does not overflow */
        x = bw_dtype_is_float(dtype) ? bw_tensor_neg(c->g, x) : bw_tensor_not(c->g, x);
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_argmax(c->g, x, axis, keep, last));
}

/* Before opset 13 these worked on the input flattened to 2-d at the axis. */
static uint32_t softmax_axes(struct bw_onnx_call *c, uint32_t rank)
{
    bool flattens = c->opset < 13;
    int64_t axis = bw_onnx_int(c, "axis", flattens ? 1 : -1);
    if (flattens && axis == rank)
        return 0;
    uint32_t first = bw_onnx_axis(c, axis, rank);
    return flattens ? all_axes(rank) & ~all_axes(first) : 1u << first;
}

static int softmax(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t mask = softmax_axes(c, bw_tensor_rank(c->g, x));
    return c->rc ? c->rc
                 : bw_onnx_out(c, 0,
                               c->op->variant ? bw_tensor_log_softmax(c->g, x, mask)
                                              : bw_tensor_softmax(c->g, x, mask));
}

/* 1 at the first of the largest, else 0. */
static int hardmax(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), flat = x;
    uint32_t rank = bw_tensor_rank(c->g, x), mask = softmax_axes(c, rank),
             axis = mask ? (uint32_t)__builtin_ctz(mask) : 0;
    int64_t joined[BW_TENSOR_RANK_MAX], dims[BW_TENSOR_RANK_MAX];
    if (c->rc || !mask)
        return bw_onnx_fail(c, -EINVAL, "no axis");
    memcpy(dims, bw_tensor_dims(c->g, x), rank * sizeof *dims);
    memcpy(joined, dims, rank * sizeof *dims);
    uint32_t joined_rank = rank;
    if (c->opset < 13) { /* one axis of all that follow */
        joined_rank = axis + 1;
        joined[axis] = -1;
        flat = bw_tensor_reshape(c->g, x, joined_rank, joined);
        memcpy(joined, bw_tensor_dims(c->g, flat), joined_rank * sizeof *joined);
    }
    bw_tensor first = bw_tensor_argmax(c->g, flat, axis, true, false);
    bw_tensor on = bw_tensor_equal(c->g, bw_tensor_indexes(c->g, BW_I64, joined_rank, joined, axis), first);
    return bw_onnx_out(
        c, 0, bw_tensor_reshape(c->g, bw_tensor_cast(c->g, bw_tensor_dtype(c->g, x), on), rank, dims));
}

static int cumsum(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints axis = bw_onnx_ints_in(c, 1);
    if (c->rc || axis.count != 1)
        return bw_onnx_fail(c, -EINVAL, "axis is not one number");
    bool exclusive = bw_onnx_int(c, "exclusive", 0), reverse = bw_onnx_int(c, "reverse", 0);
    uint32_t at = bw_onnx_axis(c, axis.data[0], bw_tensor_rank(c->g, x));
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_cumsum(c->g, x, at, exclusive, reverse));
}

/* [C] as [1, C, 1, ..] */
static bw_tensor per_channel(struct bw_onnx_call *c, bw_tensor x, uint32_t rank)
{
    int64_t dims[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == 1 ? bw_tensor_elements(c->g, x) : 1;
    return bw_tensor_reshape(c->g, x, rank, dims);
}

static bw_tensor inverse_root(struct bw_onnx_call *c, bw_tensor variance, double epsilon)
{
    return bw_tensor_reciprocal(c->g, bw_tensor_sqrt(c->g, shifted(c, variance, epsilon)));
}

static bw_tensor variance_of(struct bw_onnx_call *c, bw_tensor x, bw_tensor mean, uint32_t mask, bool keep)
{
    return bw_tensor_mean(c->g, square(c, bw_tensor_sub(c->g, x, mean)), mask, keep);
}

/* running * momentum + current * (1 - momentum) */
static bw_tensor running(struct bw_onnx_call *c, bw_tensor old, bw_tensor current, double momentum)
{
    return bw_tensor_add(c->g, bw_tensor_mul(c->g, old, bw_onnx_scalar_like(c, old, momentum)),
                         bw_tensor_mul(c->g, current, bw_onnx_scalar_like(c, current, 1 - momentum)));
}

static int batch_normalization(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), scale = bw_onnx_in(c, 1), bias = bw_onnx_in(c, 2),
              mean = bw_onnx_in(c, 3), variance = bw_onnx_in(c, 4);
    uint32_t rank = bw_tensor_rank(c->g, x), others = all_axes(rank) & ~2u;
    double epsilon = bw_onnx_float(c, "epsilon", 1e-5f), momentum = bw_onnx_float(c, "momentum", 0.9f);
    enum bw_dtype dtype = bw_tensor_dtype(c->g, x);
    if (rank < 2 || c->rc)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u", rank);
    for (uint32_t i = 1; i < 5; i++)
        if (c->inputs[i]->rank != 1 || c->inputs[i]->elements != bw_tensor_dims(c->g, x)[1])
            return bw_onnx_fail(c, -EINVAL, "input %u is no list of %lld numbers", i,
                                (long long)bw_tensor_dims(c->g, x)[1]);
    if (bw_onnx_int(c, "training_mode", 0)) {
        bw_tensor batch_mean = bw_tensor_mean(c->g, x, others, false);
        bw_tensor batch_variance = variance_of(c, x, bw_tensor_mean(c->g, x, others, true), others, false);
        bw_onnx_out(
            c, 1, running(c, mean, bw_tensor_cast(c->g, bw_tensor_dtype(c->g, mean), batch_mean), momentum));
        bw_onnx_out(c, 2,
                    running(c, variance,
                            bw_tensor_cast(c->g, bw_tensor_dtype(c->g, variance), batch_variance), momentum));
        mean = batch_mean;
        variance = batch_variance;
    }
    /* scale / sqrt(variance + epsilon) is one number per channel: x only sees a product and a sum. */
    bw_tensor factor = bw_tensor_mul(c->g, bw_tensor_cast(c->g, dtype, scale),
                                     inverse_root(c, bw_tensor_cast(c->g, dtype, variance), epsilon));
    bw_tensor centered = bw_tensor_sub(c->g, x, per_channel(c, bw_tensor_cast(c->g, dtype, mean), rank));
    bw_tensor y = bw_tensor_mul(c->g, centered, per_channel(c, factor, rank));
    return bw_onnx_out(c, 0, bw_tensor_add(c->g, y, per_channel(c, bw_tensor_cast(c->g, dtype, bias), rank)));
}

/* (x - mean) / sqrt(variance + epsilon) over the axes, with the two statistics. */
static bw_tensor normalized(struct bw_onnx_call *c, bw_tensor x, uint32_t mask, double epsilon,
                            bw_tensor *mean, bw_tensor *inverse)
{
    *mean = bw_tensor_mean(c->g, x, mask, true);
    *inverse = inverse_root(c, variance_of(c, x, *mean, mask, true), epsilon);
    return bw_tensor_mul(c->g, bw_tensor_sub(c->g, x, *mean), *inverse);
}

static int instance_normalization(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), mean, inverse;
    uint32_t rank = bw_tensor_rank(c->g, x);
    if (rank < 3)
        return bw_onnx_fail(c, -EINVAL, "input of rank %u", rank);
    bw_tensor y = normalized(c, x, all_axes(rank) & ~3u, bw_onnx_float(c, "epsilon", 1e-5f), &mean, &inverse);
    y = bw_tensor_mul(c->g, y, per_channel(c, bw_onnx_in(c, 1), rank));
    return bw_onnx_out(c, 0, bw_tensor_add(c->g, y, per_channel(c, bw_onnx_in(c, 2), rank)));
}

/* Scale and bias per channel. (Per group in opset 18, whose version ONNX has withdrawn.) */
static int group_normalization(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), scale = bw_onnx_in(c, 1), bias = bw_onnx_in(c, 2), mean, inverse;
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t groups = bw_onnx_int(c, "num_groups", 0), dims[BW_TENSOR_RANK_MAX], channels;
    if (rank < 2 || groups < 1 || bw_tensor_dims(c->g, x)[1] % groups)
        return bw_onnx_fail(c, -EINVAL, "%lld groups of an input of rank %u", (long long)groups, rank);
    memcpy(dims, bw_tensor_dims(c->g, x), rank * sizeof *dims);
    channels = dims[1];
    int64_t split[] = {dims[0], groups, channels / groups, -1};
    bw_tensor y = normalized(c, bw_tensor_reshape(c->g, x, 4, split), 12, bw_onnx_float(c, "epsilon", 1e-5f),
                             &mean, &inverse);
    int64_t affine[] = {1, groups, channels / groups, 1};
    y = bw_tensor_mul(c->g, y, bw_tensor_reshape(c->g, scale, 4, affine));
    y = bw_tensor_add(c->g, y, bw_tensor_reshape(c->g, bias, 4, affine));
    return bw_onnx_out(c, 0, bw_tensor_reshape(c->g, y, rank, dims));
}

static int layer_normalization(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), mean, inverse;
    enum bw_dtype dtype = bw_tensor_dtype(c->g, x),
                  stash = dtype == BW_F16 || dtype == BW_BF16 ? BW_F32 : dtype;
    uint32_t rank = bw_tensor_rank(c->g, x), axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", -1), rank);
    bw_tensor y = normalized(c, bw_tensor_cast(c->g, stash, x), all_axes(rank) & ~all_axes(axis),
                             bw_onnx_float(c, "epsilon", 1e-5f), &mean, &inverse);
    y = bw_tensor_mul(c->g, bw_tensor_cast(c->g, dtype, y), bw_onnx_in(c, 1));
    if (bw_onnx_has(c, 2))
        y = bw_tensor_add(c->g, y, bw_onnx_in(c, 2));
    bw_onnx_out(c, 1, mean);
    bw_onnx_out(c, 2, inverse);
    return bw_onnx_out(c, 0, y);
}

static int mean_variance_normalization(struct bw_onnx_call *c)
{
    static const int64_t usual[] = {0, 2, 3};
    bw_tensor x = bw_onnx_in(c, 0);
    struct bw_onnx_ints axes = bw_onnx_ints(c, "axes");
    if (!axes.given)
        axes = (struct bw_onnx_ints){usual, 3, true};
    uint32_t mask = bw_onnx_axes(c, axes, bw_tensor_rank(c->g, x));
    bw_tensor mean = bw_tensor_mean(c->g, x, mask, true);
    bw_tensor deviation = bw_tensor_sqrt(c->g, variance_of(c, x, mean, mask, true));
    return c->rc ? c->rc
                 : bw_onnx_out(
                       c, 0, bw_tensor_div(c->g, bw_tensor_sub(c->g, x, mean), shifted(c, deviation, 1e-9)));
}

/* x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta */
static int lrn(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    int64_t n = bw_onnx_int(c, "size", 1), low[BW_TENSOR_RANK_MAX] = {0}, high[BW_TENSOR_RANK_MAX] = {0};
    double alpha = bw_onnx_float(c, "alpha", 1e-4f), beta = bw_onnx_float(c, "beta", 0.75),
           bias = bw_onnx_float(c, "bias", 1);
    uint32_t rank = bw_tensor_rank(c->g, x);
    enum { NEIGHBOURS_MAX = 4096 }; /* each is an addition in the graph */
    if (rank < 2 || n < 1 || n > NEIGHBOURS_MAX)
        return bw_onnx_fail(c, -EINVAL, "size %lld, input of rank %u", (long long)n, rank);
    low[1] = (n - 1) / 2;
    high[1] = n - 1 - low[1];
    bw_tensor padded = bw_tensor_pad(c->g, square(c, x), low, high, 0), sum = {0};
    int64_t starts[BW_TENSOR_RANK_MAX] = {0}, stops[BW_TENSOR_RANK_MAX], steps[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        stops[i] = bw_tensor_dims(c->g, x)[i];
        steps[i] = 1;
    }
    int64_t channels = stops[1];
    for (int64_t k = 0; k < n; k++) {
        starts[1] = k;
        stops[1] = k + channels;
        bw_tensor shifted_squares = bw_tensor_slice(c->g, padded, starts, stops, steps);
        sum = k ? bw_tensor_add(c->g, sum, shifted_squares) : shifted_squares;
    }
    bw_tensor base =
        shifted(c, bw_tensor_mul(c->g, sum, bw_onnx_scalar_like(c, sum, alpha / (double)n)), bias);
    return bw_onnx_out(c, 0,
                       bw_tensor_div(c->g, x, bw_tensor_pow(c->g, base, bw_onnx_scalar_like(c, base, beta))));
}

static int lp_normalization(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t mask = 1u << bw_onnx_axis(c, bw_onnx_int(c, "axis", -1), bw_tensor_rank(c->g, x));
    bool absolute = bw_onnx_int(c, "p", 2) == 1;
    bw_tensor norm = bw_tensor_sum(c->g, absolute ? bw_tensor_abs(c->g, x) : square(c, x), mask, true);
    return c->rc ? c->rc
                 : bw_onnx_out(c, 0, bw_tensor_div(c->g, x, absolute ? norm : bw_tensor_sqrt(c->g, norm)));
}

/* ---- losses ---- */

/* -weight[target] * log_probability[target] at each place, zero where the target is ignored; and the weights
 * themselves. */
static bw_tensor picked_loss(struct bw_onnx_call *c, bw_tensor logs, bw_tensor target, bool has_weight,
                             bw_tensor *weight)
{
    uint32_t rank = bw_tensor_rank(c->g, logs);
    const struct bw_onnx_attribute *ignore = bw_onnx_attribute(c, "ignore_index", BW_ONNX_ATTR_INT);
    bw_tensor indexes[BW_TENSOR_RANK_MAX], zero = bw_onnx_scalar_like(c, logs, 0);
    target = bw_tensor_cast(c->g, BW_I64, target);
    if (rank < 2 || bw_tensor_rank(c->g, target) + 1 != rank) {
        bw_onnx_fail(c, -EINVAL, "scores of rank %u and targets of rank %u", rank,
                     bw_tensor_rank(c->g, target));
        return zero;
    }
    struct bw_onnx_limits limits = {.period = 1,
                                    .sizes = {bw_tensor_dims(c->g, logs)[1]},
                                    .has_exempt = ignore != NULL,
                                    .exempt = ignore ? ignore->i : 0};
    if (bw_onnx_check_indexes(c, 1, &limits))
        return zero;
    for (uint32_t i = 0; i < rank; i++)
        indexes[i] =
            i == 1 ? target
                   : bw_tensor_indexes(c->g, BW_I64, rank - 1, bw_tensor_dims(c->g, target), i - (i > 1));
    bw_tensor loss = bw_tensor_neg(c->g, bw_tensor_gather_nd(c->g, logs, indexes));
    bw_tensor one = bw_onnx_scalar_like(c, logs, 1);
    *weight = has_weight ? bw_tensor_gather_nd(c->g, bw_onnx_in(c, 2), &target)
                         : bw_tensor_expand(c->g, one, rank - 1, bw_tensor_dims(c->g, target));
    if (ignore)
        *weight = bw_tensor_where(
            c->g, bw_tensor_equal(c->g, target, bw_tensor_scalar_int(c->g, BW_I64, ignore->i)), zero,
            *weight);
    return bw_tensor_mul(c->g, loss, *weight);
}

static int loss_out(struct bw_onnx_call *c, bw_tensor logs)
{
    bw_tensor weight = {0}, loss = picked_loss(c, logs, bw_onnx_in(c, 1), bw_onnx_has(c, 2), &weight);
    uint32_t mask = all_axes(bw_tensor_rank(c->g, loss));
    if (c->rc || bw_onnx_string_is(c, "reduction", "none", false))
        return c->rc ? c->rc : bw_onnx_out(c, 0, loss);
    bw_tensor sum = bw_tensor_sum(c->g, loss, mask, false);
    if (bw_onnx_string_is(c, "reduction", "sum", false))
        return bw_onnx_out(c, 0, sum);
    return bw_onnx_out(c, 0, bw_tensor_div(c->g, sum, bw_tensor_sum(c->g, weight, mask, false)));
}

static int negative_log_likelihood_loss(struct bw_onnx_call *c)
{
    return loss_out(c, bw_onnx_in(c, 0));
}

static int softmax_cross_entropy_loss(struct bw_onnx_call *c)
{
    bw_tensor logs = bw_tensor_log_softmax(c->g, bw_onnx_in(c, 0), 2);
    bw_onnx_out(c, 1, logs);
    return loss_out(c, logs);
}

static const struct bw_onnx_op rows[] = {
    {"ArgMax", 1, .function = arg_extreme},
    {"ArgMin", 1, arg_extreme, .variant = 1},
    {"BatchNormalization", 1, .function = batch_normalization},
    {"CumSum", 11, .function = cumsum},
    {"GroupNormalization", 21, .function = group_normalization},
    {"Hardmax", 1, .function = hardmax},
    {"InstanceNormalization", 1, .function = instance_normalization},
    {"LRN", 1, .function = lrn},
    {"LayerNormalization", 17, .function = layer_normalization},
    {"LogSoftmax", 1, softmax, .variant = 1},
    {"LpNormalization", 1, .function = lp_normalization},
    {"MeanVarianceNormalization", 9, .function = mean_variance_normalization},
    {"NegativeLogLikelihoodLoss", 12, .function = negative_log_likelihood_loss},
    {"ReduceL1", 1, reduce, .variant = L1},
    {"ReduceL2", 1, reduce, .variant = L2},
    {"ReduceLogSum", 1, reduce, .variant = LOG_SUM},
    {"ReduceLogSumExp", 1, reduce, .variant = LOG_SUM_EXP},
    {"ReduceMax", 1, reduce, .variant = MAX},
    {"ReduceMean", 1, reduce, .variant = MEAN},
    {"ReduceMin", 1, reduce, .variant = MIN},
    {"ReduceProd", 1, reduce, .variant = PROD},
    {"ReduceSum", 1, reduce, .variant = SUM},
    {"ReduceSumSquare", 1, reduce, .variant = SUM_SQUARE},
    {"Softmax", 1, .function = softmax},
    {"SoftmaxCrossEntropyLoss", 12, .function = softmax_cross_entropy_loss},
};

const struct bw_onnx_ops bw_onnx_ops_reduce = {rows, BW_COUNT_OF(rows)};
