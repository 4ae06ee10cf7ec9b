/* Quantised arithmetic: integers with a scale and a zero point. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"
#include "compiler/onnx/ops_nn.h"

/* A scale or zero point, one per tensor or one per element of an axis of `of`, shaped to broadcast against
 * it. */
static bw_tensor at_axis(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, bw_tensor of)
{
    int64_t dims[BW_TENSOR_RANK_MAX], elements = bw_tensor_elements(c->g, x);
    uint32_t rank = bw_tensor_rank(c->g, of);
    if (elements == 1)
        return bw_tensor_reshape(c->g, x, 0, NULL);
    if (axis >= rank || bw_tensor_dims(c->g, of)[axis] != elements) {
        bw_onnx_fail(c, -EINVAL, "%lld scales or zero points for axis %u of size %lld", (long long)elements,
                     axis, axis < rank ? (long long)bw_tensor_dims(c->g, of)[axis] : 0ll);
        return (bw_tensor){0};
    }
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? elements : 1;
    return bw_tensor_reshape(c->g, x, rank, dims);
}

/* x plus a zero point, if there is one, as x's type. */
static bw_tensor shifted(struct bw_onnx_call *c, bw_tensor x, bw_tensor zero_point)
{
    if (!zero_point.id)
        return x;
    return bw_tensor_add(c->g, x, bw_tensor_cast(c->g, bw_tensor_dtype(c->g, x), zero_point));
}

/* round(x) + zero_point, saturated to dtype: casts from floats saturate. */
static bw_tensor saturated(struct bw_onnx_call *c, bw_tensor x, bw_tensor zero_point, enum bw_dtype dtype)
{
    return bw_tensor_cast(c->g, dtype, shifted(c, bw_tensor_round_even(c->g, x), zero_point));
}

/* Constant scales are numbers: with NaN or infinity every element would be lost. */
static int scale_check(struct bw_onnx_call *c, uint32_t input)
{
    const struct bw_onnx_value *value = bw_onnx_has(c, input) ? c->inputs[input] : NULL;
    for (int64_t i = 0; value && value->fixed && i < value->elements; i++) {
        double scale = bw_onnx_host_double(value->dtype, value->host, i);
        if (!isfinite(scale))
            return bw_onnx_fail(c, -EINVAL, "scale %g of input %u", scale, input);
    }
    return c->rc;
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* What one scale is for: all elements, one place of an axis, or (block_size) so many places of it. */
struct scaling {
    uint32_t axis;
    int64_t block_size;
};

static struct scaling scaling_read(struct bw_onnx_call *c, bw_tensor x, bw_tensor scale)
{
    struct scaling scaling = {.block_size = bw_onnx_int(c, "block_size", 0)};
    if (scaling.block_size < 0)
        bw_onnx_fail(c, -EINVAL, "block_size %lld", (long long)scaling.block_size);
    if (scaling.block_size || bw_tensor_elements(c->g, scale) != 1)
        scaling.axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 1), bw_tensor_rank(c->g, x));
    return scaling;
}

/* Each scale or zero point repeated for its block; the last block may be cut. */
static bw_tensor at_blocks(struct bw_onnx_call *c, bw_tensor x, const struct scaling *scaling, bw_tensor of)
{
    uint32_t rank = bw_tensor_rank(c->g, of), axis = scaling->axis;
    const int64_t *sizes = bw_tensor_dims(c->g, of);
    int64_t dims[BW_TENSOR_RANK_MAX + 1], start[BW_TENSOR_RANK_MAX] = {0}, step[BW_TENSOR_RANK_MAX];
    int64_t block = scaling->block_size < sizes[axis] ? scaling->block_size : sizes[axis] ? sizes[axis] : 1;
    bool fits = bw_tensor_rank(c->g, x) == rank && rank < BW_TENSOR_RANK_MAX;
    for (uint32_t i = 0; fits && i < rank; i++) {
        step[i] = 1;
        fits = bw_tensor_dims(c->g, x)[i] == (i == axis ? (sizes[i] + block - 1) / block : sizes[i]);
    }
    if (!fits) {
        bw_onnx_fail(c, -EINVAL, "scales or zero points do not have the shape of blocks of %lld of axis %u",
                     (long long)scaling->block_size, axis);
        return (bw_tensor){0};
    }
    for (uint32_t i = 0; i <= rank; i++)
        dims[i] = i == axis + 1 ? 1 : bw_tensor_dims(c->g, x)[i <= axis ? i : i - 1];
    x = bw_tensor_reshape(c->g, x, rank + 1, dims);
    dims[axis + 1] = block;
    x = bw_tensor_expand(c->g, x, rank + 1, dims);
    int64_t blocks = dims[axis];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? blocks * block : sizes[i];
    return bw_tensor_slice(c->g, bw_tensor_reshape(c->g, x, rank, dims), start, sizes, step);
}

static bw_tensor at_scaling(struct bw_onnx_call *c, bw_tensor x, const struct scaling *scaling, bw_tensor of)
{
    if (!x.id || !of.id || c->rc)
        return (bw_tensor){0};
    return scaling->block_size ? at_blocks(c, x, scaling, of) : at_axis(c, x, scaling->axis, of);
}

static bw_tensor zero_point_at(struct bw_onnx_call *c, const struct scaling *scaling, bw_tensor of)
{
    return bw_onnx_has(c, 2) ? at_scaling(c, bw_onnx_in_number(c, 2), scaling, of) : (bw_tensor){0};
}

/* output_dtype; without, that of the zero point. */
static enum bw_dtype quantized_dtype(struct bw_onnx_call *c)
{
    bool given = bw_onnx_int(c, "output_dtype", 0) != 0;
    enum bw_dtype zero_point = bw_onnx_has(c, 2) ? bw_onnx_in_dtype(c, 2) : BW_VOID,
                  dtype = given        ? bw_onnx_dtype_any(c, "output_dtype", 0)
                          : zero_point ? zero_point
                                       : BW_U8;
    if (zero_point && dtype != zero_point)
        bw_onnx_fail(c, -EINVAL, "output_dtype is not that of the zero point");
    int64_t precision = bw_onnx_int(c, "precision", 0);
    if (precision && bw_onnx_dtype_of(precision) != BW_F32)
        bw_onnx_fail(c, -ENOTSUP, "a division in %s (precision)", bw_onnx_dtype_text(precision).text);
    return dtype;
}

static int quantize_linear(struct bw_onnx_call *c)
{
    bw_tensor x = bw_tensor_cast(c->g, BW_F32, bw_onnx_in(c, 0)),
              scale = bw_tensor_cast(c->g, BW_F32, bw_onnx_in_number(c, 1));
    struct scaling scaling = scaling_read(c, x, scale);
    struct bw_onnx_rounding rounding = {.saturate = bw_onnx_int(c, "saturate", 1) != 0};
    enum bw_dtype dtype = quantized_dtype(c);
    if (scale_check(c, 1))
        return c->rc;
    bw_tensor zero_point = zero_point_at(c, &scaling, x);
    x = bw_tensor_div(c->g, x, at_scaling(c, scale, &scaling, x));
    if (!bw_dtype_is_storage(dtype))
        return bw_onnx_out(c, 0, saturated(c, x, zero_point, dtype));
    x = shifted(c, bw_dtype_is_float(dtype) ? x : bw_tensor_round_even(c->g, x), zero_point);
    return bw_onnx_out_typed(c, 0, bw_onnx_encode(c, dtype, x, &rounding), dtype);
}

static bw_tensor centered(struct bw_onnx_call *c, bw_tensor x, bw_tensor zero_point, uint32_t axis,
                          enum bw_dtype dtype)
{
    x = bw_tensor_cast(c->g, dtype, x);
    if (!zero_point.id)
        return x;
    return bw_tensor_sub(c->g, x, at_axis(c, bw_tensor_cast(c->g, dtype, zero_point), axis, x));
}

/* output_dtype; without, that of the scale. */
static enum bw_dtype dequantized_dtype(struct bw_onnx_call *c)
{
    enum bw_dtype scale = bw_onnx_in_dtype(c, 1);
    if (bw_onnx_int(c, "output_dtype", 0))
        return bw_onnx_dtype(c, "output_dtype", 0);
    if (bw_dtype_is_storage(scale))
        bw_onnx_fail(c, -EINVAL, "scales of type %s without output_dtype",
                     bw_onnx_dtype_text(bw_onnx_dtype_to(scale)).text);
    return scale;
}

static int dequantize_linear(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in_number(c, 0), scale = bw_onnx_in_number(c, 1);
    struct scaling scaling = scaling_read(c, x, scale);
    enum bw_dtype dtype = dequantized_dtype(c),
                  exact = bw_dtype_is_float(bw_tensor_dtype(c->g, x)) ? BW_F32 : BW_I32;
    if (scale_check(c, 1))
        return c->rc;
    x = bw_tensor_cast(c->g, exact, x);
    if (bw_onnx_has(c, 2))
        x = bw_tensor_sub(c->g, x, bw_tensor_cast(c->g, exact, zero_point_at(c, &scaling, x)));
    x = bw_tensor_cast(c->g, bw_tensor_dtype(c->g, scale), x);
    x = bw_tensor_mul(c->g, x, at_scaling(c, scale, &scaling, x));
    return bw_onnx_out(c, 0, bw_tensor_cast(c->g, dtype, x));
}

/* The range is widened to hold 0, so that 0 is represented exactly. */
static int dynamic_quantize_linear(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), zero = bw_onnx_scalar_like(c, x, 0),
              levels = bw_onnx_scalar_like(c, x, 255);
    uint32_t all = (1u << bw_tensor_rank(c->g, x)) - 1;
    bw_tensor low = bw_tensor_min(c->g, bw_tensor_reduce_min(c->g, x, all, false), zero);
    bw_tensor high = bw_tensor_max(c->g, bw_tensor_reduce_max(c->g, x, all, false), zero);
    bw_tensor scale = bw_tensor_div(c->g, bw_tensor_sub(c->g, high, low), levels);
    bw_tensor zero_point =
        saturated(c, bw_tensor_neg(c->g, bw_tensor_div(c->g, low, scale)), (bw_tensor){0}, BW_U8);
    bw_onnx_out(c, 1, scale);
    bw_onnx_out(c, 2, zero_point);
    return bw_onnx_out(c, 0, saturated(c, bw_tensor_div(c->g, x, scale), zero_point, BW_U8));
}

static bw_tensor optional_in(struct bw_onnx_call *c, uint32_t input)
{
    return bw_onnx_has(c, input) ? bw_onnx_in(c, input) : (bw_tensor){0};
}

/* Zero points of a matrix: per row of a, per column of b. */
static bw_tensor matrix_centered(struct bw_onnx_call *c, uint32_t input, uint32_t zero_input, bool rows)
{
    bw_tensor x = bw_onnx_in(c, input);
    uint32_t rank = bw_tensor_rank(c->g, x);
    return centered(c, x, optional_in(c, zero_input), rank < 2 ? 0 : rows ? rank - 2 : rank - 1, BW_I32);
}

static int matmul_integer(struct bw_onnx_call *c)
{
    return bw_onnx_out(
        c, 0, bw_tensor_matmul(c->g, matrix_centered(c, 0, 2, true), matrix_centered(c, 1, 3, false)));
}

static int qlinear_matmul(struct bw_onnx_call *c)
{
    bw_tensor product =
        bw_tensor_matmul(c->g, matrix_centered(c, 0, 2, true), matrix_centered(c, 3, 5, false));
    bw_tensor a_scale = bw_onnx_in(c, 1), b_scale = bw_onnx_in(c, 4), y_scale = bw_onnx_in(c, 6),
              y_zero = bw_onnx_in(c, 7);
    uint32_t rank = bw_tensor_rank(c->g, product);
    if (scale_check(c, 1) || scale_check(c, 4) || scale_check(c, 6) || rank < 2)
        return bw_onnx_fail(c, -EINVAL, "product of rank %u", rank);
    bw_tensor scale =
        bw_tensor_mul(c->g, at_axis(c, a_scale, rank - 2, product), at_axis(c, b_scale, rank - 1, product));
    scale = bw_tensor_div(c->g, scale, at_axis(c, y_scale, rank - 1, product));
    bw_tensor real = bw_tensor_mul(c->g, bw_tensor_cast(c->g, BW_F32, product), scale);
    return bw_onnx_out(
        c, 0, saturated(c, real, at_axis(c, y_zero, rank - 1, product), bw_tensor_dtype(c->g, y_zero)));
}

/* x and weight as i32 around their zero points; padding is the zero point, which is 0 then. */
static bw_tensor integer_conv(struct bw_onnx_call *c, uint32_t x_input, uint32_t x_zero, uint32_t w_input,
                              uint32_t w_zero, bw_tensor bias)
{
    bw_tensor x = bw_onnx_in(c, x_input), weight = bw_onnx_in(c, w_input);
    struct bw_onnx_window w;
    struct bw_conv conv = {.stride = w.stride, .dilation = w.dilation, .pad_low = w.low, .pad_high = w.high};
    if (bw_onnx_conv_read(c, x, weight, bias, &w, &conv.groups))
        return (bw_tensor){0};
    conv.spatial = w.spatial;
    return bw_tensor_conv(c->g, centered(c, x, optional_in(c, x_zero), 1, BW_I32),
                          centered(c, weight, optional_in(c, w_zero), 0, BW_I32), bias, &conv);
}

static int conv_integer(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, integer_conv(c, 0, 2, 1, 3, (bw_tensor){0}));
}

static int qlinear_conv(struct bw_onnx_call *c)
{
    bw_tensor sum = integer_conv(c, 0, 2, 3, 5, optional_in(c, 8));
    bw_tensor x_scale = bw_onnx_in(c, 1), w_scale = bw_onnx_in(c, 4), y_scale = bw_onnx_in(c, 6),
              y_zero = bw_onnx_in(c, 7);
    if (scale_check(c, 1) || scale_check(c, 4) || scale_check(c, 6) || !sum.id)
        return c->rc;
    bw_tensor scale = bw_tensor_mul(c->g, at_axis(c, x_scale, 1, sum), at_axis(c, w_scale, 1, sum));
    scale = bw_tensor_div(c->g, scale, at_axis(c, y_scale, 1, sum));
    bw_tensor real = bw_tensor_mul(c->g, bw_tensor_cast(c->g, BW_F32, sum), scale);
    return bw_onnx_out(c, 0, saturated(c, real, at_axis(c, y_zero, 1, sum), bw_tensor_dtype(c->g, y_zero)));
}

static const struct bw_onnx_op rows[] = {
    {"ConvInteger", 10, .function = conv_integer},
    {"DequantizeLinear", 10, .function = dequantize_linear},
    {"DynamicQuantizeLinear", 11, .function = dynamic_quantize_linear},
    {"MatMulInteger", 10, .function = matmul_integer},
    {"QLinearConv", 10, .function = qlinear_conv},
    {"QLinearMatMul", 10, .function = qlinear_matmul},
    {"QuantizeLinear", 10, .function = quantize_linear},
};

const struct bw_onnx_ops bw_onnx_ops_quant = {rows, BW_COUNT_OF(rows)};
