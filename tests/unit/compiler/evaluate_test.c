/* Goal: the evaluator is right where it is clever: views, fused chains, gathers as views, narrow floats,
 * edges of integers. */
#include <bellwire/tensor.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "base/rng.h"
#include "compiler/evaluate.h"
#include "tests/check.h"

static struct bw_tensor_graph *graph_new(void)
{
    struct bw_tensor_graph *g = NULL;
    struct bw_err err = {0};
    BW_OK(bw_tensor_graph_create(&g, &err), &err);
    return g;
}

static void *value_of(struct bw_tensor_graph *g, bw_tensor x)
{
    void *data = NULL;
    struct bw_err err = {0};
    BW_OK(bw_tensor_graph_error(g, &err), &err);
    BW_OK(bw_tensor_evaluate(g, x, &data, &err), &err);
    return data ? data : calloc(1, 1 << 16);
}

/* ---- random graphs against the plainest evaluator: one element at a time, from the definition of each op
 * ---- */

static float plain(const struct bw_tensor_graph *g, bw_node node, const int64_t *index);

static bool source_index(const struct bw_tensor_graph *g, bw_node node, const int64_t *index, int64_t *at);

/* Indexes of gathers: what the builder makes of them. */
static int64_t plain_int(const struct bw_tensor_graph *g, bw_node node, const int64_t *index)
{
    const struct bw_ir *ir = g->ir;
    const struct bw_shape *shape = bw_ir_shape(ir, node);
    int64_t at[BW_RANK_MAX] = {0}, flat = 0, value = 0, sources[3] = {0};
    switch (bw_ir_op(ir, node)) {
    case BW_OP_CONST:
        bw_ir_const_value_int(ir, node, &value);
        return value;
    case BW_OP_BUFFER:
        for (uint32_t i = 0; i < shape->rank; i++)
            flat = flat * shape->dims[i] + index[i];
        return ((const int64_t *)g->buffers.data[bw_ir_buffer_number(ir, node)].data)[flat];
    case BW_OP_ADD:
    case BW_OP_MAX:
    case BW_OP_MIN:
    case BW_OP_LESS:
    case BW_OP_WHERE:
        for (uint32_t i = 0; i < bw_ir_source_count(ir, node); i++)
            sources[i] = plain_int(g, bw_ir_source(ir, node, i), index);
        break;
    default:
        source_index(g, node, index, at);
        return plain_int(g, bw_ir_source(ir, node, 0), at);
    }
    switch (bw_ir_op(ir, node)) {
    case BW_OP_ADD:
        return sources[0] + sources[1];
    case BW_OP_MAX:
        return sources[0] > sources[1] ? sources[0] : sources[1];
    case BW_OP_MIN:
        return sources[0] < sources[1] ? sources[0] : sources[1];
    case BW_OP_LESS:
        return sources[0] < sources[1];
    default:
        return sources[0] ? sources[1] : sources[2];
    }
}

static float plain_reduce(const struct bw_tensor_graph *g, bw_node node, const int64_t *index)
{
    bw_node x = bw_ir_source(g->ir, node, 0);
    const struct bw_shape *shape = bw_ir_shape(g->ir, x);
    uint32_t axes = bw_ir_reduce_axes(g->ir, node);
    bool max = bw_ir_reduce_op(g->ir, node) == BW_OP_MAX;
    int64_t at[BW_RANK_MAX];
    memcpy(at, index, sizeof at);
    float result = max ? -INFINITY : 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        at[i] = axes >> i & 1 ? 0 : at[i];
    for (bool more = true; more;) {
        float value = plain(g, x, at);
        result = max ? fmaxf(result, value) : result + value;
        more = false;
        for (uint32_t i = shape->rank; i-- > 0 && !more;) {
            if (!(axes >> i & 1))
                continue;
            more = ++at[i] < shape->dims[i];
            at[i] = more ? at[i] : 0;
        }
    }
    return result;
}

/* Where an element of a movement op comes from; false: from the padding. */
static bool source_index(const struct bw_tensor_graph *g, bw_node node, const int64_t *index, int64_t *at)
{
    const struct bw_ir *ir = g->ir;
    bw_node x = bw_ir_source(ir, node, 0);
    const struct bw_shape *from = bw_ir_shape(ir, x), *to = bw_ir_shape(ir, node);
    const void *arg = bw_ir_op(ir, node) == BW_OP_FLIP ? NULL : bw_ir_blob_data(ir, bw_ir_arg(ir, node));
    int64_t flat = 0;
    switch (bw_ir_op(ir, node)) {
    case BW_OP_RESHAPE:
        for (uint32_t i = 0; i < to->rank; i++)
            flat = flat * to->dims[i] + index[i];
        for (uint32_t i = from->rank; i-- > 0;) {
            at[i] = flat % from->dims[i];
            flat /= from->dims[i];
        }
        break;
    case BW_OP_PERMUTE:
        for (uint32_t i = 0; i < to->rank; i++)
            at[((const struct bw_axes *)arg)->axes[i]] = index[i];
        break;
    case BW_OP_EXPAND:
        for (uint32_t i = 0; i < to->rank; i++)
            at[i] = from->dims[i] == 1 ? 0 : index[i];
        break;
    case BW_OP_SHRINK:
        for (uint32_t i = 0; i < to->rank; i++)
            at[i] = index[i] + ((const struct bw_bounds *)arg)->low[i];
        break;
    case BW_OP_PAD:
        for (uint32_t i = 0; i < to->rank; i++) {
            at[i] = index[i] - ((const struct bw_bounds *)arg)->low[i];
            if (at[i] < 0 || at[i] >= from->dims[i])
                return false;
        }
        break;
    default: /* FLIP */
        for (uint32_t i = 0; i < to->rank; i++)
            at[i] = bw_ir_arg(ir, node) >> i & 1 ? from->dims[i] - 1 - index[i] : index[i];
    }
    return true;
}

static float plain(const struct bw_tensor_graph *g, bw_node node, const int64_t *index)
{
    const struct bw_ir *ir = g->ir;
    const struct bw_shape *shape = bw_ir_shape(ir, node);
    int64_t at[BW_RANK_MAX] = {0}, flat = 0;
    double constant;
    switch (bw_ir_op(ir, node)) {
    case BW_OP_CONST:
        return bw_ir_const_value_float(ir, node, &constant) ? (float)constant : 0;
    case BW_OP_BUFFER:
        for (uint32_t i = 0; i < shape->rank; i++)
            flat = flat * shape->dims[i] + index[i];
        return ((const float *)g->buffers.data[bw_ir_buffer_number(ir, node)].data)[flat];
    case BW_OP_ADD:
        return plain(g, bw_ir_source(ir, node, 0), index) + plain(g, bw_ir_source(ir, node, 1), index);
    case BW_OP_SUB:
        return plain(g, bw_ir_source(ir, node, 0), index) - plain(g, bw_ir_source(ir, node, 1), index);
    case BW_OP_MUL:
        return plain(g, bw_ir_source(ir, node, 0), index) * plain(g, bw_ir_source(ir, node, 1), index);
    case BW_OP_NEG:
        return -plain(g, bw_ir_source(ir, node, 0), index);
    case BW_OP_REDUCE:
        return plain_reduce(g, node, index);
    case BW_OP_GATHER:
        for (uint32_t i = 1; i < bw_ir_source_count(ir, node); i++)
            at[i - 1] = plain_int(g, bw_ir_source(ir, node, i), index);
        return plain(g, bw_ir_source(ir, node, 0), at);
    default:
        return plain(g, bw_ir_source(ir, node, !source_index(g, node, index, at)), at);
    }
}

struct builder {
    struct bw_tensor_graph *g;
    struct bw_rng rng;
    bw_tensor pool[64];
    uint32_t count;
};

static int64_t below(struct builder *b, int64_t bound)
{
    return (int64_t)bw_rng_below(&b->rng, (uint64_t)bound);
}

static bw_tensor random_leaf(struct builder *b)
{
    int64_t dims[3];
    float data[64];
    uint32_t rank = 1 + (uint32_t)below(b, 3);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = 1 + below(b, 4);
    for (int i = 0; i < 64; i++)
        data[i] = (float)(below(b, 17) - 8);
    return bw_tensor_constant(b->g, BW_F32, rank, dims, data);
}

static bw_tensor random_movement(struct builder *b, bw_tensor x)
{
    uint32_t rank = bw_tensor_rank(b->g, x), axis = (uint32_t)below(b, rank), axes[BW_RANK_MAX];
    int64_t dims[BW_RANK_MAX], low[BW_RANK_MAX] = {0}, high[BW_RANK_MAX] = {0}, step[BW_RANK_MAX];
    memcpy(dims, bw_tensor_dims(b->g, x), rank * sizeof *dims);
    switch (below(b, 6)) {
    case 0: /* join or split an axis */
        if (rank > 1 && axis + 1 < rank) {
            dims[axis] *= dims[axis + 1];
            memmove(dims + axis + 1, dims + axis + 2, (rank - axis - 2) * sizeof *dims);
            return bw_tensor_reshape(b->g, x, rank - 1, dims);
        }
        if (dims[axis] % 2)
            return x;
        memmove(dims + axis + 1, dims + axis, (rank - axis) * sizeof *dims);
        dims[axis] = 2;
        dims[axis + 1] /= 2;
        return rank < 5 ? bw_tensor_reshape(b->g, x, rank + 1, dims) : x;
    case 1:
        for (uint32_t i = 0; i < rank; i++)
            axes[i] = (i + 1 + axis) % rank;
        return bw_tensor_permute(b->g, x, axes);
    case 2: /* a new axis in front */
        memmove(dims + 1, dims, rank * sizeof *dims);
        dims[0] = 1 + below(b, 3);
        return rank < 5 ? bw_tensor_expand(b->g, x, rank + 1, dims) : x;
    case 3:
        low[axis] = below(b, 3) - 1;
        high[axis] = below(b, 3) - 1;
        return dims[axis] + low[axis] + high[axis] > 0 ? bw_tensor_pad(b->g, x, low, high, 3) : x;
    case 4:
        for (uint32_t i = 0; i < rank; i++)
            step[i] = 1;
        low[axis] = dims[axis] - 1;
        high[axis] = -1;
        step[axis] = -1 - below(b, 2);
        for (uint32_t i = 0; i < rank; i++)
            high[i] = i == axis ? -1 : dims[i];
        return step[axis] == -1 ? bw_tensor_slice(b->g, x, low, high, step)
                                : x; /* larger steps are gathers of INDEXES: see below */
    default:
        return bw_tensor_flip(b->g, x, 1u << axis);
    }
}

static bw_tensor random_gather(struct builder *b, bw_tensor x)
{
    int64_t dims[2] = {1 + below(b, 4), 1 + below(b, 4)}, values[16];
    bw_tensor indexes[BW_RANK_MAX];
    bool affine = below(b, 2);
    for (uint32_t axis = 0; axis < bw_tensor_rank(b->g, x); axis++) {
        int64_t size = bw_tensor_dims(b->g, x)[axis], base = below(b, size), a = below(b, 3) - 1,
                c = below(b, 3) - 1;
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
            int64_t wanted = base + a * (i / dims[1]) + c * (i % dims[1]);
            values[i] = !affine ? below(b, size) : wanted < 0 ? 0 : wanted >= size ? size - 1 : wanted;
        }
        values[0] += values[0] == values[dims[0] * dims[1] - 1] && size > 1
                         ? values[0] ? -1 : 1
                         : 0; /* not uniform: stays a buffer */
        indexes[axis] = bw_tensor_constant(b->g, BW_I64, 2, dims, values);
        if (bw_ir_op(b->g->ir, indexes[axis].id) != BW_OP_BUFFER)
            return x;
    }
    return bw_tensor_gather_nd(b->g, x, indexes);
}

static void random_step(struct builder *b)
{
    bw_tensor x = b->pool[below(b, b->count)], y = b->pool[below(b, b->count)], result = x;
    uint32_t rank = bw_tensor_rank(b->g, x);
    switch (below(b, 8)) {
    case 0:
        result = random_leaf(b);
        break;
    case 1:
        result = rank ? bw_tensor_sum(b->g, x, 1u << below(b, rank), below(b, 2)) : x;
        break;
    case 2:
        result = rank ? bw_tensor_reduce_max(b->g, x, (uint32_t)below(b, 1 << rank), true) : x;
        break;
    case 3:
    case 4: {
        const struct bw_shape *a = bw_ir_shape(b->g->ir, x.id), *c = bw_ir_shape(b->g->ir, y.id);
        bool same = a->rank == c->rank && !memcmp(a->dims, c->dims, a->rank * sizeof *a->dims);
        bw_tensor other = same ? y : bw_tensor_neg(b->g, x);
        result = below(b, 2) ? bw_tensor_mul(b->g, x, other) : bw_tensor_sub(b->g, x, other);
        break;
    }
    case 5:
        result = rank ? random_gather(b, x) : x;
        break;
    default:
        result = rank ? random_movement(b, x) : x;
    }
    if (result.id && bw_tensor_elements(b->g, result) <= 512 && bw_tensor_rank(b->g, result) <= 6 &&
        b->count < BW_COUNT_OF(b->pool))
        b->pool[b->count++] = result;
}

static void random_graphs_agree_with_the_definition(void)
{
    enum { GRAPHS = 400, STEPS = 24 };
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        struct builder b = {.g = graph_new(), .rng = {seed}};
        b.pool[b.count++] = random_leaf(&b);
        for (int i = 0; i < STEPS; i++)
            random_step(&b);
        void *data[BW_COUNT_OF(b.pool)] = {NULL};
        struct bw_err err = {0};
        BW_OK(bw_tensor_graph_error(b.g, &err), &err);
        BW_OK(bw_tensor_evaluate_with(b.g, b.pool, b.count, NULL, 0, data, &err), &err);
        for (uint32_t k = 0; k < b.count && data[k]; k++) {
            const struct bw_shape *shape = bw_ir_shape(b.g->ir, b.pool[k].id);
            for (int64_t i = 0; i < bw_tensor_elements(b.g, b.pool[k]); i++) {
                int64_t index[BW_RANK_MAX] = {0}, rest = i;
                for (uint32_t axis = shape->rank; axis-- > 0;) {
                    index[axis] = rest % shape->dims[axis];
                    rest /= shape->dims[axis];
                }
                float expected = plain(b.g, b.pool[k].id, index), observed = ((float *)data[k])[i];
                if (observed != expected && !(isnan(observed) && isnan(expected))) {
                    BW_NEAR(observed, expected, 0);
                    printf("      graph %llu, tensor %u (%s), element %lld\n", (unsigned long long)seed, k,
                           bw_op_name(bw_ir_op(b.g->ir, b.pool[k].id)), (long long)i);
                    i = INT32_MAX;
                }
            }
            free(data[k]);
        }
        bw_tensor_graph_destroy(b.g);
    }
}

/* ---- scalars ---- */

static void narrow_floats_round_after_each_op(void)
{
    struct bw_rng rng = {17};
    for (int i = 0; i < 200000; i++) {
        uint16_t x = (uint16_t)bw_rng_next(&rng), y = (uint16_t)bw_rng_next(&rng), sum, product, root;
        const void *in[3] = {&x, &y};
        double a = (double)bw_f16_to_f32(x), b = (double)bw_f16_to_f32(y);
        bw_evaluate_run(BW_OP_ADD, BW_F16, BW_F16, 1, &sum, in);
        bw_evaluate_run(BW_OP_MUL, BW_F16, BW_F16, 1, &product, in);
        bw_evaluate_run(BW_OP_SQRT, BW_F16, BW_F16, 1, &root, in);
        uint16_t expected_sum = bw_f16_from_f64(a + b), expected_product = bw_f16_from_f64(a * b),
                 expected_root = bw_f16_from_f64(sqrt(a));
        bool nan = isnan(a) || isnan(b);
        if (!nan && !isnan(a + b) && sum != expected_sum)
            BW_EQ(sum, expected_sum);
        if (!nan && !isnan(a * b) && product != expected_product)
            BW_EQ(product, expected_product);
        if (!nan && a >= 0 && root != expected_root)
            BW_EQ(root, expected_root);
    }
}

static int64_t binary_i8(enum bw_op op, int a, int b)
{
    int8_t x = (int8_t)a, y = (int8_t)b, result = 0;
    const void *in[3] = {&x, &y};
    bw_evaluate_run(op, BW_I8, BW_I8, 1, &result, in);
    return result;
}

/* Every pair of bytes, against arithmetic in a wider type. */
static void integer_division_follows_its_definition(void)
{
    for (int a = -128; a < 128; a++)
        for (int b = -128; b < 128; b++) {
            int quotient = b ? a / b : 0, remainder = b ? a % b : 0;
            int floor_quotient = b ? (int)floor((double)a / b) : 0;
            int floor_remainder = b ? a - floor_quotient * b : 0;
            if (binary_i8(BW_OP_DIV, a, b) != (int8_t)quotient)
                BW_EQ(binary_i8(BW_OP_DIV, a, b), (int8_t)quotient);
            if (binary_i8(BW_OP_TRUNC_MOD, a, b) != remainder)
                BW_EQ(binary_i8(BW_OP_TRUNC_MOD, a, b), remainder);
            if (binary_i8(BW_OP_FLOOR_DIV, a, b) != (int8_t)floor_quotient)
                BW_EQ(binary_i8(BW_OP_FLOOR_DIV, a, b), (int8_t)floor_quotient);
            if (binary_i8(BW_OP_FLOOR_MOD, a, b) != floor_remainder)
                BW_EQ(binary_i8(BW_OP_FLOOR_MOD, a, b), floor_remainder);
            if (binary_i8(BW_OP_MUL, a, b) != (int8_t)(a * b))
                BW_EQ(binary_i8(BW_OP_MUL, a, b), (int8_t)(a * b));
        }
}

static void shifts_beyond_the_width(void)
{
    int32_t x = -7;
    uint32_t y = 0x80000001u;
    static const int64_t counts[] = {0, 1, 31, 32, 100, -1};
    static const int32_t arithmetic[] = {-7, -4, -1, -1, -1, -1};
    static const uint32_t logical[] = {0x80000001u, 0x40000000u, 1, 0, 0, 0},
                          left[] = {0x80000001u, 2, 0x80000000u, 0, 0, 0};
    for (size_t i = 0; i < BW_COUNT_OF(counts); i++) {
        int32_t signed_result;
        uint32_t result;
        const void *signed_in[3] = {&x, &counts[i]}, *in[3] = {&y, &counts[i]};
        bw_evaluate_run(BW_OP_SHR, BW_I32, BW_I32, 1, &signed_result, signed_in);
        BW_EQ(signed_result, arithmetic[i]);
        bw_evaluate_run(BW_OP_SHR, BW_U32, BW_U32, 1, &result, in);
        BW_EQ(result, logical[i]);
        bw_evaluate_run(BW_OP_SHL, BW_U32, BW_U32, 1, &result, in);
        BW_EQ(result, left[i]);
    }
}

static uint64_t cast(enum bw_dtype from, enum bw_dtype to, const void *value)
{
    uint64_t result = 0;
    const void *in[3] = {value};
    bw_evaluate_run(BW_OP_CAST, from, to, 1, &result, in);
    return result;
}

static void casts_saturate_wrap_and_round_once(void)
{
    double big = 1e30, negative = -3.9, nan = NAN, half = 0.5;
    BW_EQ(cast(BW_F64, BW_I32, &big), 0x7fffffff);
    BW_EQ(cast(BW_F64, BW_U8, &big), 255);
    BW_EQ(cast(BW_F64, BW_U8, &negative), 0);
    BW_EQ((int8_t)cast(BW_F64, BW_I8, &negative), -3);
    BW_EQ(cast(BW_F64, BW_I64, &big), INT64_MAX);
    BW_EQ(cast(BW_F64, BW_U64, &big), UINT64_MAX);
    BW_EQ(cast(BW_F64, BW_I64, &nan), 0);
    BW_EQ(cast(BW_F64, BW_BOOL, &half), 1);
    BW_EQ(cast(BW_F64, BW_BOOL, &nan), 1);
    int32_t wide = 0x12345678, minus = -1;
    BW_EQ(cast(BW_I32, BW_I8, &wide), 0x78);
    BW_EQ(cast(BW_I32, BW_U64, &minus), UINT64_MAX);
    BW_EQ(cast(BW_I32, BW_BOOL, &wide), 1);
    /* 2^24 + 1 and its like: once to f32; through f64 or f32 first it would be twice. */
    int64_t tie = (1ll << 53) + (1ll << 29) + 1;
    float expected = (float)tie, observed;
    uint64_t bits = cast(BW_I64, BW_F32, &tie);
    memcpy(&observed, &bits, sizeof observed);
    BW_NEAR(observed, expected, 0);
    int64_t narrow = (1ll << 60) + (1ll << 52) + 1; /* just above the middle between two bf16 */
    BW_NEAR(bw_bf16_to_f32((uint16_t)cast(BW_I64, BW_BF16, &narrow)), 0x1.02p60, 0);
}

static void strided_gathers_of_indexes(void)
{
    struct bw_tensor_graph *g = graph_new();
    float x[30];
    for (int i = 0; i < 30; i++)
        x[i] = (float)i;
    int64_t dims[] = {5, 6}, start[] = {4, 1}, stop[] = {-1, 6}, step[] = {-2, 3};
    bw_tensor t = bw_tensor_slice(g, bw_tensor_constant(g, BW_F32, 2, dims, x), start, stop, step);
    float *y = value_of(g, t);
    static const float expected[] = {25, 28, 13, 16, 1, 4};
    BW_BYTES(y, expected, sizeof expected);
    free(y);
    bw_tensor_graph_destroy(g);
}

/* A matrix product whose products alone would be 2 GiB: they are never stored. */
static void large_products_are_not_stored(void)
{
    enum { N = 800 };
    struct bw_tensor_graph *g = graph_new();
    int64_t dims[] = {N, N};
    float *x = malloc(sizeof(float) * N * N);
    for (int i = 0; i < N * N; i++)
        x[i] = (float)(i % 7) - 3;
    bw_tensor t = bw_tensor_constant_borrowed(g, BW_F32, 2, dims, x);
    float *y = value_of(g, bw_tensor_matmul(g, t, t));
    double sum = 0;
    for (int k = 0; k < N; k++)
        sum += (double)x[17 * N + k] * (double)x[k * N + 333];
    BW_NEAR(y[17 * N + 333], sum, 1e-3);
    free(y);
    free(x);
    bw_tensor_graph_destroy(g);
}

static void borrowed_data_may_lie_anywhere(void)
{
    struct bw_tensor_graph *g = graph_new();
    uint8_t bytes[4 * 8 + 1];
    int64_t dims[] = {8};
    for (int i = 0; i < 8; i++) {
        float value = (float)i * 1.5f;
        memcpy(bytes + 1 + 4 * i, &value, 4);
    }
    bw_tensor x = bw_tensor_constant_borrowed(g, BW_F32, 1, dims, bytes + 1);
    float *sum = value_of(g, bw_tensor_sum(g, bw_tensor_mul(g, x, x), 1, false));
    BW_NEAR(*sum, 2.25 * 140, 0);
    free(sum);
    bw_tensor_graph_destroy(g);
}

static void absurd_sizes_are_refused(void)
{
    struct bw_tensor_graph *g = graph_new();
    int64_t dims[] = {1 << 18, 1 << 18};
    bw_tensor x = bw_tensor_indexes(g, BW_I64, 2, dims, 0), y = bw_tensor_indexes(g, BW_I64, 2, dims, 1);
    void *data = NULL;
    struct bw_err err = {0};
    BW_EQ(bw_tensor_evaluate(g, bw_tensor_add(g, x, y), &data, &err), -ENOMEM);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("evaluate", {"random_graphs_agree_with_the_definition", random_graphs_agree_with_the_definition},
             {"narrow_floats_round_after_each_op", narrow_floats_round_after_each_op},
             {"integer_division_follows_its_definition", integer_division_follows_its_definition},
             {"shifts_beyond_the_width", shifts_beyond_the_width},
             {"casts_saturate_wrap_and_round_once", casts_saturate_wrap_and_round_once},
             {"strided_gathers_of_indexes", strided_gathers_of_indexes},
             {"large_products_are_not_stored", large_products_are_not_stored},
             {"borrowed_data_may_lie_anywhere", borrowed_data_may_lie_anywhere},
             {"absurd_sizes_are_refused", absurd_sizes_are_refused})
