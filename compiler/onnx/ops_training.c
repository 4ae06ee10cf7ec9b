/* Optimiser steps of ai.onnx.preview.training, and Dropout. */
#include <errno.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static const char training[] = "ai.onnx.preview.training";

static bw_tensor scaled(struct bw_onnx_call *c, bw_tensor x, double factor)
{
    return bw_tensor_mul(c->g, x, bw_onnx_scalar_like(c, x, factor));
}

static bw_tensor shifted(struct bw_onnx_call *c, bw_tensor x, double addend)
{
    return bw_tensor_add(c->g, x, bw_onnx_scalar_like(c, x, addend));
}

static bw_tensor scalar_in(struct bw_onnx_call *c, uint32_t input, bw_tensor like)
{
    return bw_tensor_cast(c->g, bw_tensor_dtype(c->g, like),
                          bw_tensor_reshape(c->g, bw_onnx_in(c, input), 0, NULL));
}

/* Inputs R, T, then as many X, G and states each as there are tensors. */
static int tensors_count(struct bw_onnx_call *c, uint32_t lists, uint32_t *count)
{
    *count = c->input_count > 2 ? (c->input_count - 2) / lists : 0;
    return *count && *count * lists + 2 == c->input_count
               ? 0
               : bw_onnx_fail(c, -EINVAL, "%u inputs", c->input_count);
}

/* Gradient plus the derivative of norm_coefficient / 2 * |x|^2. */
static bw_tensor regularized(struct bw_onnx_call *c, bw_tensor x, bw_tensor gradient)
{
    return bw_tensor_add(c->g, scaled(c, x, bw_onnx_float(c, "norm_coefficient", 0)), gradient);
}

static int adagrad(struct bw_onnx_call *c)
{
    uint32_t n;
    if (tensors_count(c, 3, &n))
        return c->rc;
    for (uint32_t i = 0; i < n; i++) {
        bw_tensor x = bw_onnx_in(c, 2 + i), h = bw_onnx_in(c, 2 + 2 * n + i),
                  gradient = regularized(c, x, bw_onnx_in(c, 2 + n + i));
        bw_tensor decay = shifted(c, scaled(c, scalar_in(c, 1, x), bw_onnx_float(c, "decay_factor", 0)), 1);
        bw_tensor rate = bw_tensor_div(c->g, scalar_in(c, 0, x), decay);
        h = bw_tensor_add(c->g, h, bw_tensor_mul(c->g, gradient, gradient));
        bw_tensor root = shifted(c, bw_tensor_sqrt(c->g, h), bw_onnx_float(c, "epsilon", 1e-6f));
        bw_onnx_out(c, i,
                    bw_tensor_sub(c->g, x, bw_tensor_div(c->g, bw_tensor_mul(c->g, rate, gradient), root)));
        bw_onnx_out(c, n + i, h);
    }
    return c->rc;
}

/* The learning rate corrected for the bias of the first steps: R * sqrt(1 - beta^T) / (1 - alpha^T), for T >
 * 0 */
static bw_tensor adam_rate(struct bw_onnx_call *c, bw_tensor x, double alpha, double beta)
{
    bw_tensor rate = scalar_in(c, 0, x), t = scalar_in(c, 1, x), one = bw_onnx_scalar_like(c, x, 1);
    bw_tensor first = bw_tensor_sub(c->g, one, bw_tensor_pow(c->g, bw_onnx_scalar_like(c, x, alpha), t));
    bw_tensor second = bw_tensor_sub(c->g, one, bw_tensor_pow(c->g, bw_onnx_scalar_like(c, x, beta), t));
    bw_tensor corrected = bw_tensor_div(c->g, bw_tensor_mul(c->g, rate, bw_tensor_sqrt(c->g, second)), first);
    return bw_tensor_where(c->g, bw_tensor_greater(c->g, t, bw_onnx_scalar_like(c, x, 0)), corrected, rate);
}

static bw_tensor mixed(struct bw_onnx_call *c, bw_tensor old, bw_tensor new, double share)
{
    return bw_tensor_add(c->g, scaled(c, old, share), scaled(c, new, 1 - share));
}

static int adam(struct bw_onnx_call *c)
{
    double alpha = bw_onnx_float(c, "alpha", 0.9f), beta = bw_onnx_float(c, "beta", 0.999f);
    uint32_t n;
    if (tensors_count(c, 4, &n))
        return c->rc;
    for (uint32_t i = 0; i < n; i++) {
        bw_tensor x = bw_onnx_in(c, 2 + i), gradient = regularized(c, x, bw_onnx_in(c, 2 + n + i));
        bw_tensor v = mixed(c, bw_onnx_in(c, 2 + 2 * n + i), gradient, alpha);
        bw_tensor h = mixed(c, bw_onnx_in(c, 2 + 3 * n + i), bw_tensor_mul(c->g, gradient, gradient), beta);
        bw_tensor root = shifted(c, bw_tensor_sqrt(c->g, h), bw_onnx_float(c, "epsilon", 1e-6f));
        bw_tensor step = bw_tensor_div(c->g, bw_tensor_mul(c->g, adam_rate(c, x, alpha, beta), v), root);
        x = bw_tensor_sub(c->g, x, step);
        bw_onnx_out(c, i, scaled(c, x, 1 - bw_onnx_float(c, "norm_coefficient_post", 0)));
        bw_onnx_out(c, n + i, v);
        bw_onnx_out(c, 2 * n + i, h);
    }
    return c->rc;
}

static int momentum(struct bw_onnx_call *c)
{
    double alpha = bw_onnx_float(c, "alpha", 0), beta = bw_onnx_float(c, "beta", 0);
    bool nesterov = bw_onnx_string_is(c, "mode", "nesterov", false);
    uint32_t n;
    if (tensors_count(c, 3, &n))
        return c->rc;
    for (uint32_t i = 0; i < n; i++) {
        bw_tensor x = bw_onnx_in(c, 2 + i), gradient = regularized(c, x, bw_onnx_in(c, 2 + n + i)),
                  t = scalar_in(c, 1, x);
        bw_tensor first =
            bw_tensor_equal(c->g, t, bw_onnx_scalar_like(c, t, 0)); /* the first gradient counts fully */
        bw_tensor share =
            bw_tensor_where(c->g, first, bw_onnx_scalar_like(c, x, 1), bw_onnx_scalar_like(c, x, beta));
        bw_tensor v = bw_tensor_add(c->g, scaled(c, bw_onnx_in(c, 2 + 2 * n + i), alpha),
                                    bw_tensor_mul(c->g, share, gradient));
        bw_tensor direction = nesterov ? bw_tensor_add(c->g, gradient, scaled(c, v, alpha)) : v;
        bw_onnx_out(c, i, bw_tensor_sub(c->g, x, bw_tensor_mul(c->g, scalar_in(c, 0, x), direction)));
        bw_onnx_out(c, n + i, v);
    }
    return c->rc;
}

/* The derivative of y by xs, where they are what they are in the graph (evaluating it elsewhere would run the
 * graph between them again). */
static int gradient(struct bw_onnx_call *c)
{
    const struct bw_onnx_attribute *names = bw_onnx_attribute(c, "xs", BW_ONNX_ATTR_STRINGS);
    const struct bw_onnx_attribute *result = bw_onnx_attribute(c, "y", BW_ONNX_ATTR_STRING);
    struct bw_onnx_value *y = result ? bw_onnx_named(c, result->s) : NULL;
    uint32_t count = names ? (uint32_t)names->count : 0;
    bw_tensor *x = bw_onnx_alloc(c, count, sizeof *x),
              *gradients = bw_onnx_alloc(c, count, sizeof *gradients);
    if (c->rc || !y || y->kind != BW_VALUE_ARRAY || !count)
        return bw_onnx_fail(c, -EINVAL, "xs or y name no tensors");
    for (uint32_t i = 0; i < count; i++) {
        if (i >= c->input_count || bw_onnx_named(c, names->strings[i]) != c->inputs[i])
            return bw_onnx_fail(c, -ENOTSUP, "input %u is not '%s' itself", i,
                                bw_onnx_text(names->strings[i]).text);
        x[i] = bw_onnx_in(c, i);
    }
    c->rc = c->rc ? c->rc
                  : bw_tensor_gradient(c->g, bw_onnx_tensor_of(c->session, y), x, count, gradients,
                                       c->session->err);
    for (uint32_t i = 0; !c->rc && i < count; i++)
        bw_onnx_out(c, i, gradients[i]);
    return c->rc;
}

static const struct bw_onnx_op rows[] = {
    {"Adagrad", 1, .function = adagrad, .domain = training},
    {"Adam", 1, .function = adam, .domain = training},
    {"Gradient", 1, .function = gradient, .domain = training},
    {"Momentum", 1, .function = momentum, .domain = training},
};

const struct bw_onnx_ops bw_onnx_ops_training = {rows, BW_COUNT_OF(rows)};
