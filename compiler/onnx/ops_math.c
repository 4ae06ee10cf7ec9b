/* Elementwise ops. */
#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static int unary(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, c->op->unary(c->g, bw_onnx_in(c, 0)));
}

/* Before opset 7 the second operand was aligned at an axis of the first. */
static bw_tensor align_at_axis(struct bw_onnx_call *c, bw_tensor a, bw_tensor b)
{
    uint32_t rank = bw_tensor_rank(c->g, a), own = bw_tensor_rank(c->g, b);
    int64_t dims[BW_TENSOR_RANK_MAX], given = bw_onnx_int(c, "axis", INT64_MAX);
    if (given == INT64_MAX || !own || !b.id)
        return b;
    uint32_t axis = bw_onnx_axis(c, given, rank);
    if (axis + own > rank) {
        bw_onnx_fail(c, -EINVAL, "rank %u does not fit at axis %u of rank %u", own, axis, rank);
        return (bw_tensor){0};
    }
    for (uint32_t i = 0; i < rank - axis; i++)
        dims[i] = i < own ? bw_tensor_dims(c->g, b)[i] : 1;
    return bw_tensor_reshape(c->g, b, rank - axis, dims);
}

static int binary(struct bw_onnx_call *c)
{
    bw_tensor a = bw_onnx_in(c, 0), b = bw_onnx_in(c, 1);
    if (c->opset < 7)
        b = align_at_axis(c, a, b);
    return bw_onnx_out(c, 0, c->op->binary(c->g, a, b));
}

/* Max, Min, Sum of any number of inputs. */
static int variadic(struct bw_onnx_call *c)
{
    bw_tensor result = bw_onnx_in(c, 0);
    for (uint32_t i = 1; i < c->input_count; i++)
        result = c->op->binary(c->g, result, bw_onnx_in(c, i));
    return bw_onnx_out(c, 0, result);
}

static int mean(struct bw_onnx_call *c)
{
    bw_tensor sum = bw_onnx_in(c, 0);
    for (uint32_t i = 1; i < c->input_count; i++)
        sum = bw_tensor_add(c->g, sum, bw_onnx_in(c, i));
    return bw_onnx_out(c, 0, bw_tensor_div(c->g, sum, bw_onnx_scalar_like(c, sum, c->input_count)));
}

/* The result has the base's dtype; an integer base to a real power is computed in the power's dtype. */
static int pow_op(struct bw_onnx_call *c)
{
    bw_tensor a = bw_onnx_in(c, 0), b = bw_onnx_in(c, 1);
    enum bw_dtype base = bw_tensor_dtype(c->g, a), exponent = bw_tensor_dtype(c->g, b);
    if (c->opset < 7)
        b = align_at_axis(c, a, b);
    if (!bw_dtype_is_float(base) && bw_dtype_is_float(exponent))
        a = bw_tensor_cast(c->g, exponent, a);
    else
        b = bw_tensor_cast(c->g, base, b);
    return bw_onnx_out(c, 0, bw_tensor_cast(c->g, base, bw_tensor_pow(c->g, a, b)));
}

static int mod(struct bw_onnx_call *c)
{
    bw_tensor a = bw_onnx_in(c, 0), b = bw_onnx_in(c, 1);
    bool truncates = bw_onnx_int(c, "fmod", 0);
    if (!truncates && bw_dtype_is_float(bw_tensor_dtype(c->g, a)))
        return bw_onnx_fail(c, -EINVAL, "fmod=0 on floats");
    return bw_onnx_out(c, 0, truncates ? bw_tensor_trunc_mod(c->g, a, b) : bw_tensor_floor_mod(c->g, a, b));
}

static int bit_shift(struct bw_onnx_call *c)
{
    bw_tensor a = bw_onnx_in(c, 0), b = bw_onnx_in(c, 1);
    bool left = bw_onnx_string_is(c, "direction", "LEFT", false);
    return bw_onnx_out(c, 0, left ? bw_tensor_shl(c->g, a, b) : bw_tensor_shr(c->g, a, b));
}

static int where(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, bw_tensor_where(c->g, bw_onnx_in(c, 0), bw_onnx_in(c, 1), bw_onnx_in(c, 2)));
}

static int is_inf(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in_number(c, 0);
    bool negative = bw_onnx_int(c, "detect_negative", 1), positive = bw_onnx_int(c, "detect_positive", 1);
    if (negative && positive)
        return bw_onnx_out(c, 0, bw_tensor_is_inf(c->g, x));
    double wanted = positive ? INFINITY : negative ? -INFINITY : NAN; /* nothing equals NaN */
    return bw_onnx_out(c, 0, bw_tensor_equal(c->g, x, bw_onnx_scalar_like(c, x, wanted)));
}

static int is_nan(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, bw_tensor_is_nan(c->g, bw_onnx_in_number(c, 0)));
}

/* Bounds were attributes before opset 11. */
static int clip(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    if (c->opset < 11) {
        double low = bw_onnx_float(c, "min", -INFINITY), high = bw_onnx_float(c, "max", INFINITY);
        x = bw_tensor_max(c->g, x, bw_onnx_scalar_like(c, x, low));
        return bw_onnx_out(c, 0, bw_tensor_min(c->g, x, bw_onnx_scalar_like(c, x, high)));
    }
    if (bw_onnx_has(c, 1))
        x = bw_tensor_max(c->g, x, bw_onnx_in(c, 1));
    if (bw_onnx_has(c, 2))
        x = bw_tensor_min(c->g, x, bw_onnx_in(c, 2));
    return bw_onnx_out(c, 0, x);
}

static bw_tensor scaled(struct bw_onnx_call *c, bw_tensor x, double factor)
{
    return bw_tensor_mul(c->g, x, bw_onnx_scalar_like(c, x, factor));
}

static bw_tensor shifted(struct bw_onnx_call *c, bw_tensor x, double addend)
{
    return bw_tensor_add(c->g, x, bw_onnx_scalar_like(c, x, addend));
}

static bw_tensor is_negative(struct bw_onnx_call *c, bw_tensor x)
{
    return bw_tensor_less(c->g, x, bw_onnx_scalar_like(c, x, 0));
}

static int leaky_relu(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    return bw_onnx_out(
        c, 0, bw_tensor_where(c->g, is_negative(c, x), scaled(c, x, bw_onnx_float(c, "alpha", 0.01f)), x));
}

/* A slope per channel that has no room for the trailing axes is aligned at axis 1 (old files rely on it). */
static int prelu(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), slope = bw_onnx_in(c, 1);
    uint32_t rank = bw_tensor_rank(c->g, x);
    int64_t dims[BW_TENSOR_RANK_MAX];
    bool per_channel =
        c->opset < 7 && bw_tensor_rank(c->g, slope) == 1 && rank > 1 && bw_tensor_elements(c->g, slope) > 1;
    if (per_channel) {
        for (uint32_t i = 0; i + 1 < rank; i++)
            dims[i] = i == 0 ? bw_tensor_elements(c->g, slope) : 1;
        slope = bw_tensor_reshape(c->g, slope, rank - 1, dims);
    }
    return bw_onnx_out(c, 0, bw_tensor_where(c->g, is_negative(c, x), bw_tensor_mul(c->g, slope, x), x));
}

/* factor * (exp(x / divisor) - 1) below 0 */
static bw_tensor exponential_unit(struct bw_onnx_call *c, bw_tensor x, double factor, double divisor)
{
    bw_tensor below = scaled(c, shifted(c, bw_tensor_exp(c->g, scaled(c, x, 1 / divisor)), -1), factor);
    return bw_tensor_where(c->g, is_negative(c, x), below, x);
}

static int elu(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, exponential_unit(c, bw_onnx_in(c, 0), bw_onnx_float(c, "alpha", 1), 1));
}

static int celu(struct bw_onnx_call *c)
{
    double alpha = bw_onnx_float(c, "alpha", 1);
    return bw_onnx_out(c, 0, exponential_unit(c, bw_onnx_in(c, 0), alpha, alpha));
}

static int selu(struct bw_onnx_call *c)
{
    bool old = c->opset < 6; /* with other defaults */
    double alpha = bw_onnx_float(c, "alpha", old ? 1.6732 : 1.67326319217681884765625);
    double gamma = bw_onnx_float(c, "gamma", old ? 1.0507 : 1.05070102214813232421875);
    return bw_onnx_out(c, 0, scaled(c, exponential_unit(c, bw_onnx_in(c, 0), alpha, 1), gamma));
}

static int thresholded_relu(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), alpha = bw_onnx_scalar_like(c, x, bw_onnx_float(c, "alpha", 1));
    return bw_onnx_out(
        c, 0, bw_tensor_where(c->g, bw_tensor_greater(c->g, x, alpha), x, bw_onnx_scalar_like(c, x, 0)));
}

static bw_tensor clamp_unit(struct bw_onnx_call *c, bw_tensor x)
{
    return bw_tensor_max(c->g, bw_tensor_min(c->g, x, bw_onnx_scalar_like(c, x, 1)),
                         bw_onnx_scalar_like(c, x, 0));
}

static int hard_sigmoid(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    double alpha = bw_onnx_float(c, "alpha", 0.2f), beta = bw_onnx_float(c, "beta", 0.5f);
    return bw_onnx_out(c, 0, clamp_unit(c, shifted(c, scaled(c, x, alpha), beta)));
}

static int hard_swish(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    return bw_onnx_out(c, 0, bw_tensor_mul(c->g, x, clamp_unit(c, shifted(c, scaled(c, x, 1.0 / 6), 0.5))));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|), which cannot overflow */
static bw_tensor softplus_of(struct bw_onnx_call *c, bw_tensor x)
{
    bw_tensor tail = bw_tensor_exp(c->g, bw_tensor_neg(c->g, bw_tensor_abs(c->g, x)));
    return bw_tensor_add(c->g, bw_tensor_relu(c->g, x), bw_tensor_log(c->g, shifted(c, tail, 1)));
}

static int softplus(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, softplus_of(c, bw_onnx_in(c, 0)));
}

static int mish(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    return bw_onnx_out(c, 0, bw_tensor_mul(c->g, x, bw_tensor_tanh(c->g, softplus_of(c, x))));
}

static int softsign(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    return bw_onnx_out(c, 0, bw_tensor_div(c->g, x, shifted(c, bw_tensor_abs(c->g, x), 1)));
}

static int gelu(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), inner;
    if (bw_onnx_string_is(c, "approximate", "tanh", false)) {
        bw_tensor cubic = scaled(c, bw_tensor_mul(c->g, x, bw_tensor_mul(c->g, x, x)), 0.044715);
        inner = bw_tensor_tanh(c->g, scaled(c, bw_tensor_add(c->g, x, cubic), sqrt(M_2_PI)));
    } else {
        inner = bw_tensor_erf(c->g, scaled(c, x, M_SQRT1_2));
    }
    return bw_onnx_out(c, 0, bw_tensor_mul(c->g, scaled(c, x, 0.5), shifted(c, inner, 1)));
}

/* x < -lambd: x + bias; x > lambd: x - bias; else 0 */
static int shrink(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0), zero = bw_onnx_scalar_like(c, x, 0);
    double lambda = bw_onnx_float(c, "lambd", 0.5), bias = bw_onnx_float(c, "bias", 0);
    bw_tensor below = bw_tensor_less(c->g, x, bw_onnx_scalar_like(c, x, -lambda));
    bw_tensor above = bw_tensor_greater(c->g, x, bw_onnx_scalar_like(c, x, lambda));
    bw_tensor inner = bw_tensor_where(c->g, above, shifted(c, x, -bias), zero);
    return bw_onnx_out(c, 0, bw_tensor_where(c->g, below, shifted(c, x, bias), inner));
}

static const struct bw_onnx_op rows[] = {
    {"Abs", 1, unary, .unary = bw_tensor_abs},
    {"Acos", 7, unary, .unary = bw_tensor_acos},
    {"Acosh", 9, unary, .unary = bw_tensor_acosh},
    {"Add", 1, binary, .binary = bw_tensor_add},
    {"And", 1, binary, .binary = bw_tensor_and},
    {"Asin", 7, unary, .unary = bw_tensor_asin},
    {"Asinh", 9, unary, .unary = bw_tensor_asinh},
    {"Atan", 7, unary, .unary = bw_tensor_atan},
    {"Atanh", 9, unary, .unary = bw_tensor_atanh},
    {"BitShift", 11, .function = bit_shift},
    {"BitwiseAnd", 18, binary, .binary = bw_tensor_and},
    {"BitwiseNot", 18, unary, .unary = bw_tensor_not},
    {"BitwiseOr", 18, binary, .binary = bw_tensor_or},
    {"BitwiseXor", 18, binary, .binary = bw_tensor_xor},
    {"Ceil", 1, unary, .unary = bw_tensor_ceil},
    {"Celu", 12, .function = celu},
    {"Clip", 1, .function = clip},
    {"Cos", 7, unary, .unary = bw_tensor_cos},
    {"Cosh", 9, unary, .unary = bw_tensor_cosh},
    {"Div", 1, binary, .binary = bw_tensor_div},
    {"Elu", 1, .function = elu},
    {"Equal", 1, binary, .binary = bw_tensor_equal},
    {"Erf", 9, unary, .unary = bw_tensor_erf},
    {"Exp", 1, unary, .unary = bw_tensor_exp},
    {"Floor", 1, unary, .unary = bw_tensor_floor},
    {"Gelu", 20, .function = gelu},
    {"Greater", 1, binary, .binary = bw_tensor_greater},
    {"GreaterOrEqual", 12, binary, .binary = bw_tensor_greater_equal},
    {"HardSigmoid", 1, .function = hard_sigmoid},
    {"HardSwish", 14, .function = hard_swish},
    {"IsInf", 10, .function = is_inf},
    {"IsNaN", 9, .function = is_nan},
    {"LeakyRelu", 1, .function = leaky_relu},
    {"Less", 1, binary, .binary = bw_tensor_less},
    {"LessOrEqual", 12, binary, .binary = bw_tensor_less_equal},
    {"Log", 1, unary, .unary = bw_tensor_log},
    {"Max", 1, variadic, .binary = bw_tensor_max},
    {"Mean", 1, .function = mean},
    {"Min", 1, variadic, .binary = bw_tensor_min},
    {"Mish", 18, .function = mish},
    {"Mod", 10, .function = mod},
    {"Mul", 1, binary, .binary = bw_tensor_mul},
    {"Neg", 1, unary, .unary = bw_tensor_neg},
    {"Not", 1, unary, .unary = bw_tensor_not},
    {"Or", 1, binary, .binary = bw_tensor_or},
    {"PRelu", 1, .function = prelu},
    {"Pow", 1, .function = pow_op},
    {"Reciprocal", 1, unary, .unary = bw_tensor_reciprocal},
    {"Relu", 1, unary, .unary = bw_tensor_relu},
    {"Round", 11, unary, .unary = bw_tensor_round_even},
    {"Selu", 1, .function = selu},
    {"Shrink", 9, .function = shrink},
    {"Sigmoid", 1, unary, .unary = bw_tensor_sigmoid},
    {"Sign", 9, unary, .unary = bw_tensor_sign},
    {"Sin", 7, unary, .unary = bw_tensor_sin},
    {"Sinh", 9, unary, .unary = bw_tensor_sinh},
    {"Softplus", 1, .function = softplus},
    {"Softsign", 1, .function = softsign},
    {"Sqrt", 1, unary, .unary = bw_tensor_sqrt},
    {"Sub", 1, binary, .binary = bw_tensor_sub},
    {"Sum", 1, variadic, .binary = bw_tensor_add},
    {"Tan", 7, unary, .unary = bw_tensor_tan},
    {"Tanh", 1, unary, .unary = bw_tensor_tanh},
    {"ThresholdedRelu", 10, .function = thresholded_relu},
    {"Where", 9, .function = where},
    {"Xor", 1, binary, .binary = bw_tensor_xor},
};

const struct bw_onnx_ops bw_onnx_ops_math = {rows, BW_COUNT_OF(rows)};
