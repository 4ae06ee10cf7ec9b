/* Random tensor graphs for comparing everything that can run one with the evaluator. Shared by the tests of
 * the scheduler, the interpreter and the code generators. */
#ifndef BW_TESTS_RANDOM_GRAPH_H
#define BW_TESTS_RANDOM_GRAPH_H

#include <bellwire/tensor.h>

#include <math.h>

#include "base/rng.h"
#include "compiler/scalar.h"
#include "compiler/tensor_graph.h"
#include "tests/check.h"

enum { RANDOM_POOL_MAX = 64, RANDOM_INPUTS = 3, RANDOM_OUTPUTS_MAX = 3 };

struct random_tensor {
    bw_tensor x;
    bool exact; /* small multiples of 1/8, the same whatever the order of operations: may be compared and
                   rounded */
};

struct random_graph {
    struct bw_tensor_graph *g;
    struct bw_rng rng;
    struct random_tensor pool[RANDOM_POOL_MAX];
    uint32_t count;
    void *inputs[RANDOM_INPUTS];
    bw_tensor outputs[RANDOM_OUTPUTS_MAX];
    uint32_t output_count;
};

static inline uint32_t random_below(struct random_graph *r, uint32_t bound)
{
    return (uint32_t)bw_rng_below(&r->rng, bound);
}

static inline void random_fill(struct bw_rng *rng, enum bw_dtype dtype, int64_t elements, void *data)
{
    for (int64_t i = 0; i < elements; i++) {
        int64_t value = (int64_t)bw_rng_below(rng, 33) - 16;
        union bw_scalar scalar = {.i = bw_dtype_is_signed(dtype) ? value : value + 16};
        if (dtype == BW_BOOL)
            scalar.i = value > 0;
        if (bw_dtype_is_float(dtype))
            scalar.d = (double)value / 8;
        bw_scalar_store(dtype, (char *)data + i * bw_dtype_bytes(dtype), scalar);
    }
}

static inline void random_push(struct random_graph *r, bw_tensor x, bool exact)
{
    if (r->count < RANDOM_POOL_MAX && x.id && bw_tensor_elements(r->g, x) <= 20000)
        r->pool[r->count++] = (struct random_tensor){x, exact};
}

static inline struct random_tensor random_pick(struct random_graph *r)
{
    /* newer ones are likelier: deeper graphs */
    uint32_t a = random_below(r, r->count), b = random_below(r, r->count);
    return r->pool[a > b ? a : b];
}

static inline bw_tensor random_float(struct random_graph *r, bw_tensor x)
{
    return bw_dtype_is_float(bw_tensor_dtype(r->g, x)) ? x : bw_tensor_cast(r->g, BW_F32, x);
}

static inline void random_movement(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    uint32_t rank = bw_tensor_rank(g, t.x), axes[BW_TENSOR_RANK_MAX];
    int64_t dims[BW_TENSOR_RANK_MAX], low[BW_TENSOR_RANK_MAX], high[BW_TENSOR_RANK_MAX],
        step[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = bw_tensor_dims(g, t.x)[i];
        axes[i] = i;
    }
    switch (random_below(r, 6)) {
    case 0: /* merge two axes, or split one */
        for (uint32_t i = 0; i < rank; i++)
            if (dims[i] % 2 == 0 && dims[i] > 2 && rank < 5 && random_below(r, 2)) {
                for (uint32_t k = rank; k > i; k--)
                    dims[k] = dims[k - 1];
                dims[i + 1] = dims[i] / 2;
                dims[i] = 2;
                random_push(r, bw_tensor_reshape(g, t.x, rank + 1, dims), t.exact);
                return;
            }
        if (rank >= 2) {
            dims[rank - 2] *= dims[rank - 1];
            random_push(r, bw_tensor_reshape(g, t.x, rank - 1, dims), t.exact);
        }
        return;
    case 1:
        for (uint32_t i = rank; i > 1; i--) {
            uint32_t k = random_below(r, i), swapped = axes[i - 1];
            axes[i - 1] = axes[k];
            axes[k] = swapped;
        }
        random_push(r, bw_tensor_permute(g, t.x, axes), t.exact);
        return;
    case 2:
    case 3:
        for (uint32_t i = 0; i < rank; i++) {
            low[i] = random_below(r, 3);
            high[i] = random_below(r, 3);
        }
        random_push(r, bw_tensor_pad(g, t.x, low, high, (double)random_below(r, 3)), t.exact);
        return;
    case 4:
        for (uint32_t i = 0; i < rank; i++) {
            low[i] = random_below(r, (uint32_t)dims[i]);
            high[i] = low[i] + 1 + random_below(r, (uint32_t)(dims[i] - low[i]));
            step[i] = 1 + random_below(r, 2);
        }
        random_push(r, bw_tensor_slice(g, t.x, low, high, step), t.exact);
        return;
    default:
        random_push(r, bw_tensor_flip(g, t.x, random_below(r, 1u << rank)), t.exact);
    }
}

static inline void random_unary(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    bw_tensor x = random_float(r, t.x);
    switch (random_below(r, 9)) {
    case 0:
        random_push(r, bw_tensor_relu(g, x), t.exact);
        return;
    case 1:
        random_push(r, bw_tensor_sigmoid(g, x), false);
        return;
    case 2:
        random_push(r, bw_tensor_tanh(g, x), false);
        return;
    case 3:
        random_push(r, bw_tensor_sqrt(g, bw_tensor_abs(g, x)), false);
        return;
    case 4:
        random_push(r, bw_tensor_exp(g, bw_tensor_tanh(g, x)), false);
        return;
    case 5:
        random_push(r, bw_tensor_sin(g, x), false);
        return;
    case 6:
        if (t.exact)
            random_push(r, bw_tensor_floor(g, x), true);
        return;
    case 7:
        random_push(r, bw_tensor_neg(g, x), t.exact);
        return;
    default:
        if (t.exact) {
            static const enum bw_dtype dtypes[] = {BW_F32, BW_F16, BW_BF16, BW_F64, BW_I32,
                                                   BW_I64, BW_I8,  BW_U8,   BW_I16, BW_BOOL};
            random_push(r, bw_tensor_cast(g, dtypes[random_below(r, 10)], x), true);
        }
    }
}

/* b made to broadcast against a: reduced to size 1 where the shapes differ. */
static inline bw_tensor random_match(struct random_graph *r, bw_tensor a, bw_tensor b)
{
    struct bw_tensor_graph *g = r->g;
    uint32_t rank = bw_tensor_rank(g, b), a_rank = bw_tensor_rank(g, a), mask = 0;
    int64_t low[BW_TENSOR_RANK_MAX], high[BW_TENSOR_RANK_MAX], step[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) {
        int64_t dim = bw_tensor_dims(g, b)[i];
        bool fits = i + a_rank >= rank && bw_tensor_dims(g, a)[i + a_rank - rank] == dim;
        low[i] = 0;
        high[i] = fits ? dim : 1;
        step[i] = 1;
        mask |= (uint32_t)!fits << i;
    }
    (void)mask;
    return bw_tensor_slice(g, b, low, high, step);
}

static inline void random_binary(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    struct random_tensor u = random_pick(r);
    bw_tensor a = t.x, b = random_match(r, t.x, u.x);
    bool exact = t.exact && u.exact;
    enum bw_dtype dtype = bw_tensor_dtype(g, a);
    if (dtype == BW_BOOL || bw_tensor_dtype(g, b) != dtype) {
        a = random_float(r, a);
        dtype = bw_tensor_dtype(g, a);
        b = bw_tensor_cast(g, dtype, b);
    }
    switch (random_below(r, 7)) {
    case 0:
        random_push(r, bw_tensor_add(g, a, b), false);
        return;
    case 1:
        random_push(r, bw_tensor_sub(g, a, b), false);
        return;
    case 2:
        random_push(r, bw_tensor_mul(g, a, b), false);
        return;
    case 3:
        random_push(r, bw_tensor_max(g, a, b), exact);
        return;
    case 4:
        random_push(r, bw_tensor_min(g, a, b), exact);
        return;
    case 5:
        if (exact)
            random_push(r,
                        bw_tensor_where(g, bw_tensor_less(g, a, b), a,
                                        bw_tensor_expand(g, b, bw_tensor_rank(g, a), bw_tensor_dims(g, a))),
                        true);
        return;
    default:
        if (exact && bw_dtype_is_int(dtype))
            random_push(r, random_below(r, 2) ? bw_tensor_floor_mod(g, a, b) : bw_tensor_floor_div(g, a, b),
                        true);
        else
            random_push(
                r, bw_tensor_div(g, a, bw_tensor_add(g, bw_tensor_abs(g, b), bw_tensor_scalar(g, dtype, 1))),
                false);
    }
}

static inline void random_reduce(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    bw_tensor x = random_float(r, t.x);
    uint32_t rank = bw_tensor_rank(g, x), mask = rank ? 1 + random_below(r, (1u << rank) - 1) : 0;
    bool keep = random_below(r, 2);
    switch (random_below(r, 5)) {
    case 0:
        random_push(r, bw_tensor_sum(g, x, mask, keep), false);
        return;
    case 1:
        random_push(r, bw_tensor_reduce_max(g, x, mask, keep), t.exact);
        return;
    case 2:
        random_push(r, bw_tensor_mean(g, x, mask, keep), false);
        return;
    case 3:
        random_push(r, bw_tensor_softmax(g, x, mask), false);
        return;
    default:
        if (t.exact && rank)
            random_push(r, bw_tensor_argmax(g, x, random_below(r, rank), keep, random_below(r, 2)), true);
    }
}

static inline void random_matmul(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    bw_tensor a = random_float(r, t.x);
    if (bw_tensor_rank(g, a) < 2)
        return;
    int64_t n = 1 + random_below(r, 9), dims[2] = {bw_tensor_dims(g, a)[bw_tensor_rank(g, a) - 1], n};
    float data[4096];
    if (dims[0] * n > 4096)
        return;
    random_fill(&r->rng, BW_F32, dims[0] * n, data);
    bw_tensor b = bw_tensor_constant(g, BW_F32, 2, dims, data);
    random_push(r, bw_tensor_matmul(g, bw_tensor_cast(g, BW_F32, a), b), false);
}

static inline void random_conv(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    bw_tensor a = bw_tensor_cast(g, BW_F32, t.x), bias = {0};
    if (bw_tensor_rank(g, a) != 4)
        return;
    const int64_t *dims = bw_tensor_dims(g, a);
    int64_t groups = random_below(r, 3) ? 1 : dims[1], m = groups * (1 + random_below(r, 3));
    int64_t k = 1 + random_below(r, 3), stride[2] = {1 + random_below(r, 2), 1},
            dilation[2] = {1, 1 + random_below(r, 2)};
    int64_t pad[2] = {random_below(r, 2) + k / 2, 2}, w_dims[4] = {m, dims[1] / groups, k, k};
    float weights[4096];
    if (w_dims[0] * w_dims[1] * k * k > 4096)
        return;
    random_fill(&r->rng, BW_F32, w_dims[0] * w_dims[1] * k * k, weights);
    bw_tensor w = bw_tensor_constant(g, BW_F32, 4, w_dims, weights);
    if (random_below(r, 2))
        bias = bw_tensor_constant(g, BW_F32, 1, &m, weights);
    struct bw_conv conv = {.spatial = 2,
                           .stride = stride,
                           .dilation = dilation,
                           .pad_low = pad,
                           .pad_high = pad,
                           .groups = groups};
    random_push(r, bw_tensor_conv(g, a, w, bias, &conv), false);
}

static inline void random_gather(struct random_graph *r, struct random_tensor t)
{
    struct bw_tensor_graph *g = r->g;
    uint32_t rank = bw_tensor_rank(g, t.x);
    if (!rank)
        return;
    int64_t dims[2] = {1 + random_below(r, 4), 1 + random_below(r, 4)}, data[16];
    bw_tensor indexes[BW_TENSOR_RANK_MAX];
    for (uint32_t axis = 0; axis < rank; axis++) {
        for (int i = 0; i < 16; i++)
            data[i] = (int64_t)random_below(r, 12) - 3;
        indexes[axis] = bw_tensor_constant(g, BW_I64, 2, dims, data);
    }
    random_push(r, bw_tensor_gather_nd(g, t.x, indexes), t.exact);
}

static inline void random_step(struct random_graph *r)
{
    struct random_tensor t = random_pick(r);
    switch (random_below(r, 14)) {
    case 0:
    case 1:
    case 2:
        random_movement(r, t);
        break;
    case 3:
    case 4:
    case 5:
        random_unary(r, t);
        break;
    case 6:
    case 7:
    case 8:
        random_binary(r, t);
        break;
    case 9:
        random_reduce(r, t);
        break;
    case 10:
        random_matmul(r, t);
        break;
    case 11:
        random_conv(r, t);
        break;
    case 12:
        random_gather(r, t);
        break;
    default: {
        struct random_tensor both[2] = {t, t};
        uint32_t rank = bw_tensor_rank(r->g, t.x);
        bw_tensor list[2] = {both[0].x, both[1].x};
        if (rank)
            random_push(r,
                        random_below(r, 2) ? bw_tensor_concat(r->g, list, 2, random_below(r, rank))
                                           : bw_tensor_contiguous(r->g, t.x),
                        t.exact);
    }
    }
}

static inline bool random_graph_create(struct random_graph *r, uint64_t seed, uint32_t steps)
{
    struct bw_err err;
    *r = (struct random_graph){.rng = {seed}};
    if (!BW_OK(bw_tensor_graph_create(&r->g, &err), &err))
        return false;
    for (uint32_t i = 0; i < RANDOM_INPUTS; i++) {
        static const enum bw_dtype dtypes[] = {BW_F32, BW_F32,  BW_F32, BW_F32, BW_I32,
                                               BW_F16, BW_BF16, BW_F64, BW_U8,  BW_I64};
        uint32_t rank = 1 + random_below(r, 4);
        enum bw_dtype dtype = dtypes[random_below(r, 10)];
        int64_t dims[4], elements = 1;
        for (uint32_t k = 0; k < rank; k++) {
            dims[k] = 1 + random_below(r, rank > 2 ? 9 : 40);
            elements *= dims[k];
        }
        r->inputs[i] = calloc((size_t)elements, 8);
        random_fill(&r->rng, dtype, elements, r->inputs[i]);
        random_push(r, bw_tensor_input(r->g, dtype, rank, dims), true);
    }
    for (uint32_t i = 0; i < steps; i++)
        random_step(r);
    r->output_count = 1 + random_below(r, RANDOM_OUTPUTS_MAX);
    for (uint32_t i = 0; i < r->output_count; i++)
        r->outputs[i] = r->pool[r->count - 1 - random_below(r, r->count < 4 ? r->count : 4)].x;
    return BW_OK(bw_tensor_graph_error(r->g, &err), &err);
}

static inline void random_graph_destroy(struct random_graph *r)
{
    for (uint32_t i = 0; i < RANDOM_INPUTS; i++)
        free(r->inputs[i]);
    bw_tensor_graph_destroy(r->g);
}

/* Within tolerance of the largest expected magnitude; NaN equals NaN. Prints the first difference. */
static inline bool random_same(enum bw_dtype dtype, int64_t elements, const void *observed,
                               const void *expected, double tolerance)
{
    double scale = 0;
    uint32_t bytes = bw_dtype_bytes(dtype);
    bool real = bw_dtype_is_float(dtype);
    if (dtype == BW_F16)
        tolerance = tolerance < 4e-3 ? 4e-3 : tolerance;
    if (dtype == BW_BF16)
        tolerance = tolerance < 3e-2 ? 3e-2 : tolerance;
    for (int64_t i = 0; i < elements && real; i++) {
        double value = bw_scalar_load(dtype, (const char *)expected + i * bytes).d;
        if (isfinite(value) && fabs(value) > scale)
            scale = fabs(value);
    }
    for (int64_t i = 0; i < elements; i++) {
        union bw_scalar a = bw_scalar_load(dtype, (const char *)observed + i * bytes);
        union bw_scalar b = bw_scalar_load(dtype, (const char *)expected + i * bytes);
        bool same =
            real ? (isnan(a.d) && isnan(b.d)) || a.d == b.d || fabs(a.d - b.d) <= tolerance * (scale + 1e-6)
                 : a.i == b.i;
        if (same)
            continue;
        if (real)
            printf("\n      element %lld of %lld %s: expected %.9g, observed %.9g (largest %g)\n",
                   (long long)i, (long long)elements, bw_dtype_name(dtype), b.d, a.d, scale);
        else
            printf("\n      element %lld of %lld %s: expected %lld, observed %lld\n", (long long)i,
                   (long long)elements, bw_dtype_name(dtype), (long long)b.i, (long long)a.i);
        return false;
    }
    return true;
}

#endif
