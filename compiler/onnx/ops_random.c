/* Random numbers: from the host's generator, new ones at each run unless the op has a seed. An import that
 * draws is not kept. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

enum { UNIFORM, NORMAL };
enum { ELEMENTS_MAX = 1 << 28 }; /* drawn by one op: a gigabyte of floats */

static struct bw_rng generator(struct bw_onnx_call *c)
{
    bool whole =
        bw_onnx_equals(c->node->op_type, "Dropout"); /* its seed is an integer, the others' a float */
    const struct bw_onnx_attribute *seed =
        bw_onnx_attribute(c, "seed", whole ? BW_ONNX_ATTR_INT : BW_ONNX_ATTR_FLOAT);
    struct bw_rng seeded = {0};
    if (seed && whole)
        seeded.state = (uint64_t)seed->i;
    else if (seed)
        memcpy(&seeded.state, &seed->f, sizeof seed->f);
    else
        seeded.state = bw_rng_next(c->session->rng);
    c->dynamic = c->session->dynamic = true;
    return seeded;
}

/* Box and Muller's transform; 1 - u keeps the logarithm finite. */
static double draw(struct bw_rng *rng, bool normal)
{
    double u = bw_rng_unit(rng);
    return normal ? sqrt(-2 * log(1 - u)) * cos(2 * M_PI * bw_rng_unit(rng)) : u;
}

static int random_out(struct bw_onnx_call *c, int64_t absent, uint32_t rank, const int64_t *dims)
{
    bool normal = c->op->variant == NORMAL;
    double low = bw_onnx_float(c, "low", 0), high = bw_onnx_float(c, "high", 1),
           mean = bw_onnx_float(c, "mean", 0), scale = bw_onnx_float(c, "scale", 1);
    enum bw_dtype dtype = bw_onnx_dtype(c, "dtype", absent);
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(elements, dims[i], &elements))
            return bw_onnx_fail(c, -EINVAL, "shape");
    if (!bw_dtype_is_float(dtype) || elements > ELEMENTS_MAX)
        return bw_onnx_fail(c, -EINVAL, "type or shape");
    struct bw_rng rng = generator(c);
    uint8_t *data = calloc((size_t)elements + 1, bw_dtype_bytes(dtype));
    for (int64_t i = 0; data && i < elements; i++)
        bw_onnx_host_store(dtype, data, i,
                           normal ? mean + scale * draw(&rng, true) : low + (high - low) * draw(&rng, false));
    return bw_onnx_out_array(c, 0, dtype, rank, dims, data);
}

static int random_shaped(struct bw_onnx_call *c)
{
    struct bw_onnx_ints shape = bw_onnx_ints(c, "shape");
    if (shape.count > BW_TENSOR_RANK_MAX)
        return bw_onnx_fail(c, -E2BIG, "rank %llu", (unsigned long long)shape.count);
    return random_out(c, bw_onnx_dtype_to(BW_F32), (uint32_t)shape.count, shape.data);
}

static int random_like(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    enum bw_dtype dtype = bw_tensor_dtype(c->g, x);
    int64_t dims[BW_TENSOR_RANK_MAX], usual = bw_onnx_dtype_to(bw_dtype_is_float(dtype) ? dtype : BW_F32);
    memcpy(dims, bw_tensor_dims(c->g, x), bw_tensor_rank(c->g, x) * sizeof *dims);
    return c->rc ? c->rc : random_out(c, usual, bw_tensor_rank(c->g, x), dims);
}

/* Uniform numbers of a shape, as a tensor of what follows. */
static bw_tensor uniform(struct bw_onnx_call *c, enum bw_dtype dtype, uint32_t rank, const int64_t *dims)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(elements, dims[i], &elements) || elements > ELEMENTS_MAX) {
            bw_onnx_fail(c, -E2BIG, "more than %d random numbers", ELEMENTS_MAX);
            return (bw_tensor){0};
        }
    struct bw_rng rng = generator(c);
    uint8_t *data = calloc((size_t)elements + 1, bw_dtype_bytes(dtype));
    for (int64_t i = 0; data && i < elements; i++)
        bw_onnx_host_store(dtype, data, i, bw_rng_unit(&rng));
    struct bw_onnx_value *value = bw_onnx_value_host(c->session, dtype, rank, dims, data, false);
    return value ? bw_onnx_tensor_of(c->session, value) : (bw_tensor){0};
}

static int bernoulli(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    enum bw_dtype dtype = bw_onnx_dtype(c, "dtype", bw_onnx_dtype_to(bw_tensor_dtype(c->g, x)));
    if (c->rc)
        return c->rc;
    bw_tensor drawn = uniform(c, bw_tensor_dtype(c->g, x), bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, x));
    return bw_onnx_out(c, 0, bw_tensor_cast(c->g, dtype, bw_tensor_less(c->g, drawn, x)));
}

/* Classes drawn from unnormalised log probabilities [batch, classes]. */
static int multinomial(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    int64_t samples = bw_onnx_int(c, "sample_size", 1);
    enum bw_dtype dtype = bw_onnx_dtype(c, "dtype", bw_onnx_dtype_to(BW_I32));
    if (c->rc || bw_tensor_rank(c->g, x) != 2 || samples < 1 || samples > 1 << 24 ||
        !bw_tensor_dims(c->g, x)[1])
        return bw_onnx_fail(c, -EINVAL, "%lld samples, input of rank %u", (long long)samples,
                            bw_tensor_rank(c->g, x));
    int64_t batch = bw_tensor_dims(c->g, x)[0], classes = bw_tensor_dims(c->g, x)[1],
            dims[] = {batch, samples, 1}, row[] = {batch, 1, classes};
    bw_tensor chances = bw_tensor_cumsum(c->g, bw_tensor_softmax(c->g, x, 2), 1, false, false);
    bw_tensor drawn = uniform(c, bw_tensor_dtype(c->g, x), 3, dims);
    bw_tensor below = bw_tensor_less_equal(c->g, bw_tensor_reshape(c->g, chances, 3, row), drawn);
    bw_tensor class = bw_tensor_sum(c->g, bw_tensor_cast(c->g, BW_I64, below), 4, false);
    class = bw_tensor_min(c->g, class, bw_tensor_scalar_int(c->g, BW_I64, classes - 1));
    return bw_onnx_out(c, 0, bw_tensor_cast(c->g, dtype, class));
}

/* Only training drops: an attribute before opset 12, input 2 since. The mask says what was kept. */
static int dropout(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in_bytes(c, 0);
    uint64_t count = 0;
    double ratio = bw_onnx_float(c, "ratio", 0.5);
    struct bw_onnx_ints trains =
        c->opset >= 12 && bw_onnx_has(c, 2) ? bw_onnx_ints_in(c, 2) : (struct bw_onnx_ints){0};
    bool training = trains.count && trains.data[0];
    if (c->opset >= 12 && bw_onnx_has(c, 1) && training) {
        const double *given = bw_onnx_doubles_in(c, 1, &count);
        ratio = count ? given[0] : ratio;
    }
    enum bw_dtype mask_dtype = c->opset < 10 ? bw_tensor_dtype(c->g, x) : BW_BOOL;
    if (c->rc)
        return c->rc;
    if (!training || ratio == 0) {
        bw_tensor kept =
            bw_tensor_full(c->g, mask_dtype, bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, x), 1);
        bw_onnx_out(c, 1, kept);
        return bw_onnx_out_typed(c, 0, x, bw_onnx_in_dtype(c, 0));
    }
    x = bw_onnx_in(c, 0); /* to compute with */
    bw_tensor drawn = uniform(c, BW_F32, bw_tensor_rank(c->g, x), bw_tensor_dims(c->g, x));
    bw_tensor kept = bw_tensor_greater_equal(c->g, drawn, bw_tensor_scalar(c->g, BW_F32, ratio));
    bw_tensor y =
        bw_tensor_where(c->g, kept, bw_tensor_mul(c->g, x, bw_onnx_scalar_like(c, x, 1 / (1 - ratio))),
                        bw_onnx_scalar_like(c, x, 0));
    bw_onnx_out(c, 1, bw_tensor_cast(c->g, mask_dtype, kept));
    return bw_onnx_out(c, 0, y);
}

static const struct bw_onnx_op rows[] = {
    {"Bernoulli", 15, .function = bernoulli},
    {"Dropout", 1, .function = dropout},
    {"Multinomial", 7, .function = multinomial},
    {"RandomNormal", 1, .function = random_shaped, .variant = NORMAL},
    {"RandomNormalLike", 1, .function = random_like, .variant = NORMAL},
    {"RandomUniform", 1, .function = random_shaped, .variant = UNIFORM},
    {"RandomUniformLike", 1, .function = random_like, .variant = UNIFORM},
};

const struct bw_onnx_ops bw_onnx_ops_random = {rows, BW_COUNT_OF(rows)};
