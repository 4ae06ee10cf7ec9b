/* Sliding windows and convolutions: index arithmetic, a product and a sum. */
#include <errno.h>
#include <string.h>

#include "compiler/tensor_internal.h"

/* Output size of a window along one axis; negative when it does not fit. */
static int64_t window_count(int64_t size, int64_t kernel, int64_t stride, int64_t dilation)
{
    int64_t reach = dilation * (kernel - 1) + 1;
    return size < reach ? 0 : (size - reach) / stride + 1;
}

bw_tensor bw_tensor_windows(struct bw_tensor_graph *g, bw_tensor x, uint32_t spatial, const int64_t *kernel,
                            const int64_t *stride, const int64_t *dilation)
{
    if (!x.id)
        return x;
    struct bw_shape from = *bw_ir_shape(g->ir, x.id), result = from;
    if (spatial > from.rank || from.rank + spatial > BW_RANK_MAX)
        return bw_tensor_fail(g, -E2BIG, "windows over %u axes of rank %u", spatial, from.rank);
    uint32_t first = from.rank - spatial;
    bool plain = true;
    for (uint32_t i = 0; i < spatial; i++) {
        if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1)
            return bw_tensor_fail(g, -EINVAL, "window of %lld, stride %lld, dilation %lld",
                                  (long long)kernel[i], (long long)stride[i], (long long)dilation[i]);
        result.dims[first + i] = window_count(from.dims[first + i], kernel[i], stride[i], dilation[i]);
        result.dims[from.rank + i] = kernel[i];
        plain &= kernel[i] == 1 && stride[i] == 1;
    }
    result.rank = from.rank + spatial;
    if (plain)
        return bw_tensor_of(bw_ir_reshape(g->ir, x.id, &result));
    if (!bw_shape_elements(&result))
        return bw_tensor_full(g, bw_tensor_dtype(g, x), result.rank, result.dims, 0);
    bw_node indexes[BW_RANK_MAX];
    for (uint32_t i = 0; i < from.rank; i++) {
        indexes[i] = bw_ir_indexes(g->ir, BW_I64, &result, i);
        if (i < first)
            continue;
        bw_node step = bw_ir_const_int(g->ir, BW_I64, stride[i - first]);
        bw_node gap = bw_ir_const_int(g->ir, BW_I64, dilation[i - first]);
        bw_node inner = bw_ir_indexes(g->ir, BW_I64, &result, from.rank + i - first);
        indexes[i] =
            bw_tensor_binary_node(g, BW_OP_ADD, bw_tensor_binary_node(g, BW_OP_MUL, indexes[i], step),
                                  bw_tensor_binary_node(g, BW_OP_MUL, inner, gap));
    }
    return bw_tensor_of(bw_ir_gather(g->ir, x.id, indexes));
}

static bw_tensor pad_spatial(struct bw_tensor_graph *g, bw_tensor x, uint32_t spatial, const int64_t *low,
                             const int64_t *high)
{
    int64_t lows[BW_RANK_MAX] = {0}, highs[BW_RANK_MAX] = {0};
    memcpy(lows + 2, low, spatial * sizeof *low);
    memcpy(highs + 2, high, spatial * sizeof *high);
    return bw_tensor_pad(g, x, lows, highs, 0);
}

static bool conv_fits(const struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight,
                      const struct bw_conv *conv, bool transposed)
{
    const int64_t *dims = bw_tensor_dims(g, x), *weights = bw_tensor_dims(g, weight);
    uint32_t rank = conv->spatial + 2;
    if (!x.id || !weight.id || rank != bw_tensor_rank(g, x) || rank != bw_tensor_rank(g, weight) ||
        conv->groups < 1 || 2 + 1 + conv->spatial * 2 + 2 > BW_RANK_MAX)
        return false;
    for (uint32_t i = 0; i < conv->spatial; i++)
        if (weights[2 + i] < 1 || conv->stride[i] < 1 || conv->dilation[i] < 1)
            return false;
    if (bw_tensor_dtype(g, x) != bw_tensor_dtype(g, weight) || dims[1] % conv->groups)
        return false;
    return transposed ? weights[0] == dims[1]
                      : weights[1] == dims[1] / conv->groups && weights[0] % conv->groups == 0;
}

static bw_tensor bias_add(struct bw_tensor_graph *g, bw_tensor x, bw_tensor bias)
{
    if (!bias.id)
        return x;
    int64_t dims[BW_RANK_MAX];
    for (uint32_t i = 0; i < bw_tensor_rank(g, x); i++)
        dims[i] = i == 1 ? bw_tensor_elements(g, bias) : 1;
    return bw_tensor_add(g, x, bw_tensor_reshape(g, bias, bw_tensor_rank(g, x), dims));
}

/* windows [N, C, o.., k..] as [N, G, 1, o.., C/G, k..] times weights as [1, G, M/G, 1.., C/G, k..], summed
 * over the last 1 + spatial. */
static bw_tensor conv_products(struct bw_tensor_graph *g, bw_tensor windows, bw_tensor weight,
                               uint32_t spatial, int64_t groups)
{
    const struct bw_shape from = *bw_ir_shape(g->ir, windows.id), kernel = *bw_ir_shape(g->ir, weight.id);
    int64_t x_dims[BW_RANK_MAX] = {from.dims[0], groups, from.dims[1] / groups, 1};
    int64_t w_dims[BW_RANK_MAX] = {1, groups, kernel.dims[0] / groups};
    uint32_t rank = 4 + 2 * spatial, axes[BW_RANK_MAX], reduced = 0;
    /* x as [N, G, C/G, 1, o.., k..], then the channel moves behind the outputs */
    memcpy(x_dims + 4, from.dims + 2, 2 * spatial * sizeof *x_dims);
    axes[0] = 0, axes[1] = 1, axes[2] = 3, axes[3 + spatial] = 2;
    for (uint32_t i = 0; i < spatial; i++) {
        axes[3 + i] = 4 + i;
        axes[4 + spatial + i] = 4 + spatial + i;
        w_dims[3 + i] = 1;
        w_dims[4 + spatial + i] = kernel.dims[2 + i];
    }
    w_dims[3 + spatial] = kernel.dims[1];
    for (uint32_t i = 3 + spatial; i < rank; i++)
        reduced |= 1u << i;
    bw_tensor x = bw_tensor_permute(g, bw_tensor_reshape(g, windows, rank, x_dims), axes);
    bw_tensor sum =
        bw_tensor_sum(g, bw_tensor_mul(g, x, bw_tensor_reshape(g, weight, rank, w_dims)), reduced, false);
    int64_t out[BW_RANK_MAX] = {from.dims[0], kernel.dims[0]};
    memcpy(out + 2, from.dims + 2, spatial * sizeof *out);
    return bw_tensor_reshape(g, sum, 2 + spatial, out);
}

/* One convolution over x that is padded already, in f32 for the narrow floats. */
static bw_tensor conv_padded(struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight, bw_tensor bias,
                             const struct bw_conv *conv)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (!x.id || !weight.id)
        return bw_tensor_of(0);
    if (dtype == BW_F16 || dtype == BW_BF16) {
        x = bw_tensor_cast(g, BW_F32, x);
        weight = bw_tensor_cast(g, BW_F32, weight);
    }
    const int64_t *kernel = bw_tensor_dims(g, weight) + 2;
    bw_tensor windows = bw_tensor_windows(g, x, conv->spatial, kernel, conv->stride, conv->dilation);
    if (!windows.id)
        return windows;
    bw_tensor result = conv_products(g, windows, weight, conv->spatial, conv->groups);
    return bias_add(g, bw_tensor_cast(g, dtype, result), bias);
}

bw_tensor bw_tensor_conv(struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight, bw_tensor bias,
                         const struct bw_conv *conv)
{
    if (!x.id || !weight.id)
        return bw_tensor_of(0);
    if (!conv_fits(g, x, weight, conv, false))
        return bw_tensor_fail(g, -EINVAL, "convolution: ranks, channels, groups or dtypes do not fit");
    return conv_padded(g, pad_spatial(g, x, conv->spatial, conv->pad_low, conv->pad_high), weight, bias,
                       conv);
}

/* stride - 1 zeros between the elements of each spatial axis. */
static bw_tensor stuff_zeros(struct bw_tensor_graph *g, bw_tensor x, uint32_t spatial, const int64_t *stride)
{
    for (uint32_t i = 0; i < spatial; i++) {
        if (stride[i] == 1)
            continue;
        uint32_t rank = bw_tensor_rank(g, x), axis = 2 + i;
        int64_t split[BW_RANK_MAX], zero[BW_RANK_MAX] = {0}, high[BW_RANK_MAX] = {0}, crop[BW_RANK_MAX] = {0};
        memcpy(split, bw_tensor_dims(g, x), (axis + 1) * sizeof *split);
        split[axis + 1] = 1;
        memcpy(split + axis + 2, bw_tensor_dims(g, x) + axis + 1, (rank - axis - 1) * sizeof *split);
        high[axis + 1] = stride[i] - 1;
        crop[axis] = 1 - stride[i];
        x = bw_tensor_pad(g, bw_tensor_reshape(g, x, rank + 1, split), zero, high, 0);
        split[axis] *= stride[i];
        memmove(split + axis + 1, split + axis + 2, (rank - axis - 1) * sizeof *split);
        x = bw_tensor_pad(g, bw_tensor_reshape(g, x, rank, split), zero, crop, 0);
    }
    return x;
}

/* [C, M/G, k..] to [M, C/G, k..], kernel mirrored. */
static bw_tensor transposed_weight(struct bw_tensor_graph *g, bw_tensor weight, uint32_t spatial,
                                   int64_t groups)
{
    struct bw_shape shape = *bw_ir_shape(g->ir, weight.id);
    int64_t split[BW_RANK_MAX] = {groups, shape.dims[0] / groups, shape.dims[1]};
    int64_t joined[BW_RANK_MAX] = {groups * shape.dims[1], shape.dims[0] / groups};
    uint32_t axes[BW_RANK_MAX] = {0, 2, 1}, mirrored = 0;
    for (uint32_t i = 0; i < spatial; i++) {
        split[3 + i] = joined[2 + i] = shape.dims[2 + i];
        axes[3 + i] = 3 + i;
        mirrored |= 1u << (2 + i);
    }
    weight = bw_tensor_permute(g, bw_tensor_reshape(g, weight, 3 + spatial, split), axes);
    return bw_tensor_flip(g, bw_tensor_reshape(g, weight, 2 + spatial, joined), mirrored);
}

bw_tensor bw_tensor_conv_transpose(struct bw_tensor_graph *g, bw_tensor x, bw_tensor weight, bw_tensor bias,
                                   const struct bw_conv *conv)
{
    if (!x.id || !weight.id)
        return bw_tensor_of(0);
    if (!conv_fits(g, x, weight, conv, true))
        return bw_tensor_fail(g, -EINVAL,
                              "transposed convolution: ranks, channels, groups or dtypes do not fit");
    int64_t ones[BW_RANK_MAX], low[BW_RANK_MAX], high[BW_RANK_MAX];
    for (uint32_t i = 0; i < conv->spatial; i++) {
        int64_t reach = conv->dilation[i] * (bw_tensor_dims(g, weight)[2 + i] - 1);
        ones[i] = 1;
        low[i] = reach - conv->pad_low[i];
        high[i] = reach - conv->pad_high[i] + (conv->output_padding ? conv->output_padding[i] : 0);
    }
    x = pad_spatial(g, stuff_zeros(g, x, conv->spatial, conv->stride), conv->spatial, low, high);
    struct bw_conv plain = *conv;
    plain.stride = ones;
    return conv_padded(g, x, transposed_weight(g, weight, conv->spatial, conv->groups), bias, &plain);
}
