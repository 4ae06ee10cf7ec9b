/* Goal: every tensor builder means what NumPy and libm say, on the evaluator, at its edges too. */
#include <bellwire/tensor.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "base/rng.h"
#include "tests/check.h"

typedef struct bw_tensor_graph graph;

static graph *graph_new(void)
{
    graph *g = NULL;
    struct bw_err err = {0};
    BW_OK(bw_tensor_graph_create(&g, &err), &err);
    return g;
}

/* The value of a constant tensor; ends the test program's patience, not the program. */
static void *value_of(graph *g, bw_tensor x)
{
    void *data = NULL;
    struct bw_err err = {0};
    BW_OK(bw_tensor_graph_error(g, &err), &err);
    BW_OK(bw_tensor_evaluate(g, x, &data, &err), &err);
    return data ? data : calloc(1, 1 << 16);
}

static bw_tensor f32(graph *g, uint32_t rank, const int64_t *dims, const float *data)
{
    return bw_tensor_constant(g, BW_F32, rank, dims, data);
}

static bw_tensor random_f32(graph *g, struct bw_rng *rng, uint32_t rank, const int64_t *dims, float *copy)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < rank; i++)
        elements *= dims[i];
    for (int64_t i = 0; i < elements; i++)
        copy[i] = (float)(bw_rng_unit(rng) * 2 - 1);
    return f32(g, rank, dims, copy);
}

struct function {
    const char *name;
    bw_tensor (*build)(graph *, bw_tensor);
    double (*reference)(double);
    double low, high;
    double ulps_f32, ulps_f64; /* allowed, in units of the last place of max(|result|, floor) */
    double floor;              /* below this magnitude the error is absolute */
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double reciprocal(double x)
{
    return 1 / x;
}

static const struct function functions[] = {
    {"exp", bw_tensor_exp, exp, -87, 88.7, 4, 4, 0},
    {"exp2", bw_tensor_exp2, exp2, -120, 127, 1, 1, 0},
    {"log", bw_tensor_log, log, 1e-30, 1e30, 2, 2, 0},
    {"log2", bw_tensor_log2, log2, 1e-30, 1e3, 1, 1, 0},
    {"sin", bw_tensor_sin, sin, -1000, 1000, 1, 1, 0},
    {"cos", bw_tensor_cos, cos, -1000, 1000, 3, 3, 1},
    {"tan", bw_tensor_tan, tan, -1.5, 1.5, 14, 14, 1},
    {"asin", bw_tensor_asin, asin, -1, 1, 6, 6, 0},
    {"acos", bw_tensor_acos, acos, -1, 1, 6, 6, 0},
    {"atan", bw_tensor_atan, atan, -50, 50, 4, 4, 0},
    {"sinh", bw_tensor_sinh, sinh, -89.3, 89.3, 12, 12, 0},
    {"cosh", bw_tensor_cosh, cosh, -89.3, 89.3, 12, 12, 0},
    {"tanh", bw_tensor_tanh, tanh, -12, 12, 5, 5, 0},
    {"asinh", bw_tensor_asinh, asinh, -1e10, 1e10, 6, 6, 0},
    {"acosh", bw_tensor_acosh, acosh, 1, 1e10, 6, 6, 0},
    {"atanh", bw_tensor_atanh, atanh, -0.9999, 0.9999, 6, 6, 0},
    {"sigmoid", bw_tensor_sigmoid, sigmoid, -80, 80, 6, 6, 0},
    {"erf", bw_tensor_erf, erf, -7, 7, 3, 8, 0},
    {"sqrt", bw_tensor_sqrt, sqrt, 0, 1e20, 0.51, 0.51, 0},
    {"reciprocal", bw_tensor_reciprocal, reciprocal, 1e-10, 1e10, 0.51, 0.51, 0},
    {"floor", bw_tensor_floor, floor, -100, 100, 0, 0, 0},
    {"ceil", bw_tensor_ceil, ceil, -100, 100, 0, 0, 0},
    {"trunc", bw_tensor_trunc, trunc, -100, 100, 0, 0, 0},
    {"round_even", bw_tensor_round_even, rint, -100, 100, 0, 0, 0},
    {"abs", bw_tensor_abs, fabs, -100, 100, 0, 0, 0},
};

enum { SAMPLES = 20000 };

/* Samples dense around 0 and at both ends of the range. */
static double sample(struct bw_rng *rng, const struct function *f, int i)
{
    double unit = bw_rng_unit(rng);
    if (i % 4 == 0) {
        double small = exp2(-30 * unit) * (i % 8 ? -1 : 1);
        return small >= f->low && small <= f->high ? small : f->low + (f->high - f->low) * unit;
    }
    if (i == 1)
        return f->low;
    return i == 2 ? f->high : f->low + (f->high - f->low) * unit;
}

static double error_ulps(double observed, double expected, double unit, double floor_)
{
    if (observed == expected)
        return 0;
    double magnitude = fabs(expected) > floor_ ? fabs(expected) : floor_;
    return fabs(observed - expected) / (magnitude * unit);
}

static void functions_in_f32(void)
{
    static float x[SAMPLES];
    struct bw_rng rng = {7};
    int64_t dims[] = {SAMPLES};
    for (size_t k = 0; k < BW_COUNT_OF(functions); k++) {
        const struct function *f = &functions[k];
        for (int i = 0; i < SAMPLES; i++)
            x[i] = (float)sample(&rng, f, i);
        x[1] = nextafterf(x[1], x[2]), x[2] = nextafterf(x[2], x[1]);
        graph *g = graph_new();
        float *y = value_of(g, f->build(g, f32(g, 1, dims, x)));
        double worst = 0, at = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double expected = f->reference((double)x[i]);
            double error = error_ulps(y[i], (double)(float)expected, 0x1p-23, f->floor);
            if (!(error <= worst))
                worst = error, at = x[i];
        }
        if (!BW_TRUE(worst <= f->ulps_f32))
            printf("      %s(%.9g) in f32 is off by %.3g units\n", f->name, at, worst);
        free(y);
        bw_tensor_graph_destroy(g);
    }
}

static void functions_in_f64(void)
{
    static double x[SAMPLES];
    struct bw_rng rng = {8};
    int64_t dims[] = {SAMPLES};
    for (size_t k = 0; k < BW_COUNT_OF(functions); k++) {
        const struct function *f = &functions[k];
        for (int i = 0; i < SAMPLES; i++)
            x[i] = sample(&rng, f, i);
        graph *g = graph_new();
        double *y = value_of(g, f->build(g, bw_tensor_constant(g, BW_F64, 1, dims, x)));
        double worst = 0, at = 0;
        for (int i = 0; i < SAMPLES; i++) {
            double error = error_ulps(y[i], f->reference(x[i]), 0x1p-52, f->floor);
            if (!(error <= worst))
                worst = error, at = x[i];
        }
        if (!BW_TRUE(worst <= f->ulps_f64))
            printf("      %s(%.17g) in f64 is off by %.3g units\n", f->name, at, worst);
        free(y);
        bw_tensor_graph_destroy(g);
    }
}

/* Infinities, NaN, zeros and overflow behave as in C. */
static void functions_at_the_edges(void)
{
    static const float x[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1000.0f, -1000.0f, 1.0f, -1.0f, 1e-40f};
    int64_t dims[] = {BW_COUNT_OF(x)};
    graph *g = graph_new();
    for (size_t k = 0; k < BW_COUNT_OF(functions); k++) {
        const struct function *f = &functions[k];
        if (f->build == bw_tensor_sin || f->build == bw_tensor_cos || f->build == bw_tensor_tan)
            continue; /* sin(1000) is covered above; of infinity it is NaN on every target, or not */
        float *y = value_of(g, f->build(g, f32(g, 1, dims, x)));
        for (size_t i = 0; i < BW_COUNT_OF(x); i++) {
            float expected = (float)f->reference((double)x[i]);
            bool same = isnan(expected)
                            ? isnan(y[i])
                            : y[i] == expected || error_ulps(y[i], expected, 0x1p-23, 1e-37) <= 12;
            if (!BW_TRUE(same))
                printf("      %s(%g) is %g, not %g\n", f->name, x[i], y[i], expected);
        }
        free(y);
    }
    bw_tensor_graph_destroy(g);
}

static void pow_like_c(void)
{
    static const float values[] = {0.0f,  -0.0f, 1,     -1,    2,        -2,        3,   -3, 0.5f,
                                   -0.5f, 1.5f,  -2.5f, 1e10f, INFINITY, -INFINITY, NAN, 10, 7};
    enum { COUNT = BW_COUNT_OF(values) };
    int64_t row[] = {1, COUNT}, column[] = {COUNT, 1};
    graph *g = graph_new();
    float *y = value_of(g, bw_tensor_pow(g, f32(g, 2, column, values), f32(g, 2, row, values)));
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            float expected = powf(values[i], values[j]), observed = y[i * COUNT + j];
            bool same = isnan(expected)
                            ? isnan(observed)
                            : observed == expected || fabsf(observed - expected) <= 1e-5f * fabsf(expected);
            same &= isnan(expected) || signbit(expected) == signbit(observed);
            if (!BW_TRUE(same))
                printf("      pow(%g, %g) is %g, not %g\n", values[i], values[j], observed, expected);
        }
    free(y);
    static const int32_t bases[] = {0, 1, -1, 2, -3, 7}, exponents[] = {0, 1, 2, 3, 10, 64, 65, -1, -2};
    int64_t base_dims[] = {6, 1}, exponent_dims[] = {9};
    int32_t *z = value_of(g, bw_tensor_pow(g, bw_tensor_constant(g, BW_I32, 2, base_dims, bases),
                                           bw_tensor_constant(g, BW_I32, 1, exponent_dims, exponents)));
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 9; j++) {
            uint32_t expected = 1;
            for (int k = 0; k < exponents[j]; k++)
                expected *= (uint32_t)bases[i];
            if (exponents[j] < 0)
                expected = bases[i] == 1 || bases[i] == -1 ? (exponents[j] & 1 ? (uint32_t)bases[i] : 1) : 0;
            if (exponents[j] < 64 || abs(bases[i]) < 2) /* others overflow: whatever bits are left */
                BW_EQ(z[i * 9 + j], (int32_t)expected);
        }
    free(z);
    bw_tensor_graph_destroy(g);
}

static void broadcasting_and_comparisons(void)
{
    static const float a[] = {1, 2, NAN}, b[] = {2, 2, 2};
    int64_t three[] = {3}, column[] = {3, 1};
    graph *g = graph_new();
    bw_tensor x = f32(g, 1, three, a), y = f32(g, 2, column, b), z = f32(g, 1, three, b);
    bw_tensor sum = bw_tensor_add(g, x, y);
    BW_EQ(bw_tensor_rank(g, sum), 2);
    BW_EQ(bw_tensor_dims(g, sum)[0], 3);
    float *s = value_of(g, sum);
    BW_EQ(s[0] == 3 && s[1] == 4 && isnan(s[2]), 1);
    free(s);
    struct {
        bw_tensor (*build)(graph *, bw_tensor, bw_tensor);
        uint8_t expected[3];
    } rows[] = {{bw_tensor_less, {1, 0, 0}},    {bw_tensor_less_equal, {1, 1, 0}},
                {bw_tensor_greater, {0, 0, 0}}, {bw_tensor_greater_equal, {0, 1, 0}},
                {bw_tensor_equal, {0, 1, 0}},   {bw_tensor_not_equal, {1, 0, 1}}};
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++) {
        uint8_t *r = value_of(g, rows[i].build(g, x, z));
        BW_BYTES(r, rows[i].expected, 3);
        free(r);
    }
    bw_tensor_graph_destroy(g);
}

static void max_min_where_sign(void)
{
    static const float a[] = {1, NAN, -0.0f, -5, INFINITY}, b[] = {2, 1, 0.0f, NAN, 3};
    int64_t dims[] = {5};
    graph *g = graph_new();
    bw_tensor x = f32(g, 1, dims, a), y = f32(g, 1, dims, b);
    float *high = value_of(g, bw_tensor_max(g, x, y)), *low = value_of(g, bw_tensor_min(g, x, y));
    BW_EQ(high[0], 2);
    BW_TRUE(isnan(high[1]) && isnan(high[3]) && isnan(low[1]) && isnan(low[3]));
    BW_EQ(signbit(high[2]) != 0, 0);
    BW_EQ(signbit(low[2]) != 0, 1);
    BW_EQ(isinf(high[4]) != 0, 1);
    float *sign = value_of(g, bw_tensor_sign(g, x));
    BW_TRUE(sign[0] == 1 && isnan(sign[1]) && sign[2] == 0 && sign[3] == -1 && sign[4] == 1);
    float *picked = value_of(
        g, bw_tensor_where(g, bw_tensor_is_nan(g, x), bw_tensor_scalar(g, BW_F32, 9), bw_tensor_relu(g, x)));
    BW_TRUE(picked[0] == 1 && picked[1] == 9 && picked[2] == 0 && picked[3] == 0);
    free(high), free(low), free(sign), free(picked);
    bw_tensor_graph_destroy(g);
}

static void movement_is_index_arithmetic(void)
{
    float x[24];
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    int64_t dims[] = {2, 3, 4}, two[] = {4, -1};
    uint32_t axes[] = {2, 0, 1};
    graph *g = graph_new();
    bw_tensor t = f32(g, 3, dims, x), p = bw_tensor_permute(g, t, axes);
    float *y = value_of(g, p);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 6; j++)
            BW_EQ(y[i * 6 + j], x[j * 4 + i]);
    free(y);
    bw_tensor r = bw_tensor_reshape(g, p, 2, two);
    BW_EQ(bw_tensor_dims(g, r)[1], 6);
    y = value_of(g, bw_tensor_flip(g, r, 3));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 6; j++)
            BW_EQ(y[i * 6 + j], x[(5 - j) * 4 + 3 - i]);
    free(y);
    int64_t low[] = {1, -1, 0}, high[] = {0, 2, -3};
    bw_tensor padded = bw_tensor_pad(g, t, low, high, -7);
    y = value_of(g, padded);
    BW_EQ(bw_tensor_elements(g, padded), 3 * 4 * 1);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            BW_EQ(y[i * 4 + j], i == 0 || j >= 2 ? -7 : x[(i - 1) * 12 + (j + 1) * 4]);
    free(y);
    bw_tensor_graph_destroy(g);
}

static void slices_with_any_step(void)
{
    enum { SIZE = 11 };
    int32_t x[SIZE];
    for (int i = 0; i < SIZE; i++)
        x[i] = i * i;
    int64_t dims[] = {SIZE};
    graph *g = graph_new();
    bw_tensor t = bw_tensor_constant(g, BW_I32, 1, dims, x);
    for (int64_t step = -4; step <= 4; step++)
        for (int64_t start = 0; step && start < SIZE; start++)
            for (int64_t stop = -1; stop <= SIZE; stop++) {
                bw_tensor s = bw_tensor_slice(g, t, &start, &stop, &step);
                int64_t count = 0;
                int32_t *y = value_of(g, s);
                for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step, count++)
                    if (i >= 0 && i < SIZE && count < bw_tensor_elements(g, s) && y[count] != x[i])
                        BW_EQ(y[count], x[i]);
                if (bw_tensor_elements(g, s) != count)
                    BW_EQ(bw_tensor_elements(g, s), count);
                free(y);
            }
    bw_tensor_graph_destroy(g);
}

static void concat_and_gather(void)
{
    float a[6] = {0, 1, 2, 3, 4, 5}, b[2] = {10, 11}, c[4] = {20, 21, 22, 23};
    int64_t a_dims[] = {2, 3}, b_dims[] = {2, 1}, c_dims[] = {2, 2}, e_dims[] = {2, 0};
    graph *g = graph_new();
    bw_tensor parts[] = {f32(g, 2, a_dims, a), f32(g, 2, e_dims, a), f32(g, 2, b_dims, b),
                         f32(g, 2, c_dims, c)};
    float *y = value_of(g, bw_tensor_concat(g, parts, 4, 1));
    static const float joined[] = {0, 1, 2, 10, 20, 21, 3, 4, 5, 11, 22, 23};
    BW_BYTES(y, joined, sizeof joined);
    free(y);
    static const int64_t rows[] = {1, -2, 5},
                         columns[] = {-1, 0, -9}; /* the last of each is out of range: clamped */
    int64_t three[] = {3};
    bw_tensor indexes[] = {bw_tensor_constant(g, BW_I64, 1, three, rows),
                           bw_tensor_constant(g, BW_I64, 1, three, columns)};
    y = value_of(g, bw_tensor_gather_nd(g, parts[0], indexes));
    BW_TRUE(y[0] == 5 && y[1] == 0 && y[2] == 3);
    free(y);
    bw_tensor_graph_destroy(g);
}

static void reductions_over_any_axes(void)
{
    enum { A = 3, B = 5, C = 70 };
    static float x[A * B * C];
    int64_t dims[] = {A, B, C};
    struct bw_rng rng = {3};
    graph *g = graph_new();
    bw_tensor t = random_f32(g, &rng, 3, dims, x);
    for (uint32_t mask = 0; mask < 8; mask++) {
        bw_tensor s = bw_tensor_sum(g, t, mask, true), m = bw_tensor_reduce_max(g, t, mask, false),
                  n = bw_tensor_mean(g, t, mask, true);
        BW_EQ(bw_tensor_rank(g, m), 3 - (uint32_t)__builtin_popcount(mask));
        float *sum = value_of(g, s), *max = value_of(g, m), *mean = value_of(g, n);
        double sums[A * B * C] = {0}, maxima[A * B * C];
        int counts[A * B * C] = {0};
        for (int i = 0; i < A * B * C; i++)
            maxima[i] = -INFINITY;
        for (int i = 0; i < A * B * C; i++) {
            int at = 0, index[] = {i / (B * C), i / C % B, i % C};
            for (int k = 0; k < 3; k++)
                at = mask >> k & 1 ? at : at * (int)dims[k] + index[k];
            sums[at] += (double)x[i];
            maxima[at] = x[i] > maxima[at] ? x[i] : maxima[at];
            counts[at]++;
        }
        for (int i = 0; i < (int)bw_tensor_elements(g, s); i++) {
            BW_NEAR(sum[i], sums[i], 1e-4);
            BW_NEAR(max[i], maxima[i], 0);
            BW_NEAR(mean[i], sums[i] / counts[i], 1e-5);
        }
        free(sum), free(max), free(mean);
    }
    bw_tensor_graph_destroy(g);
}

static void empty_tensors_reduce_to_identities(void)
{
    int64_t dims[] = {2, 0}, matrix[] = {0, 3};
    graph *g = graph_new();
    bw_tensor x = bw_tensor_constant(g, BW_F32, 2, dims, NULL);
    float *sum = value_of(g, bw_tensor_sum(g, x, 2, false)),
          *product = value_of(g, bw_tensor_prod(g, x, 2, false));
    BW_TRUE(sum[0] == 0 && sum[1] == 0 && product[1] == 1);
    float *max = value_of(g, bw_tensor_reduce_max(g, x, 2, false));
    BW_TRUE(isinf(max[0]) && max[0] < 0);
    bw_tensor y = bw_tensor_constant(g, BW_F32, 2, matrix, NULL), m = bw_tensor_matmul(g, x, y);
    float *zero = value_of(g, m);
    BW_EQ(bw_tensor_elements(g, m), 6);
    BW_TRUE(zero[0] == 0 && zero[5] == 0);
    free(sum), free(product), free(max), free(zero);
    bw_tensor_graph_destroy(g);
}

static void argmax_softmax_cumsum(void)
{
    static const float x[] = {1, 5, 5, 2, NAN, 3, 9, 9};
    int64_t dims[] = {2, 4};
    graph *g = graph_new();
    bw_tensor t = f32(g, 2, dims, x);
    int64_t *first = value_of(g, bw_tensor_argmax(g, t, 1, false, false)),
            *last = value_of(g, bw_tensor_argmax(g, t, 1, false, true));
    BW_EQ(first[0], 1);
    BW_EQ(last[0], 2);
    BW_EQ(first[1], 0); /* NaN is the largest, as in NumPy */
    BW_EQ(last[1], 0);
    free(first), free(last);
    static const float big[] = {1000, 1001, 1002, -1000};
    int64_t four[] = {4};
    float *soft = value_of(g, bw_tensor_softmax(g, f32(g, 1, four, big), 1));
    float *logs = value_of(g, bw_tensor_log_softmax(g, f32(g, 1, four, big), 1));
    double total = 1 + exp(-1) + exp(-2);
    BW_NEAR(soft[2], 1 / total, 1e-6);
    BW_NEAR(soft[0], exp(-2) / total, 1e-6);
    BW_NEAR(logs[1], -1 - log(total), 1e-6);
    BW_NEAR(soft[3], 0, 0);
    free(soft), free(logs);
    bw_tensor_graph_destroy(g);
}

static void running_sums_of_any_length(void)
{
    static const int64_t sizes[] = {1, 7, 128, 129, 1000, 8200};
    for (size_t k = 0; k < BW_COUNT_OF(sizes); k++)
        for (int mode = 0; mode < 4; mode++) {
            bool exclusive = mode & 1, reverse = mode & 2;
            int64_t size = sizes[k], dims[] = {2, size}, total = 0;
            int64_t *x = calloc((size_t)size * 2, sizeof *x);
            for (int64_t i = 0; i < 2 * size; i++)
                x[i] = i * i % 17 - 5;
            graph *g = graph_new();
            int64_t *y = value_of(
                g, bw_tensor_cumsum(g, bw_tensor_constant(g, BW_I64, 2, dims, x), 1, exclusive, reverse));
            for (int64_t i = 0; i < size; i++) {
                int64_t at = size + (reverse ? size - 1 - i : i); /* the second row */
                int64_t expected = exclusive ? total : total + x[at];
                total += x[at];
                if (y[at] != expected)
                    BW_EQ(y[at], expected);
            }
            free(x), free(y);
            bw_tensor_graph_destroy(g);
        }
}

static void matmul_like_numpy(void)
{
    enum { M = 9, K = 33, N = 70, BATCH = 2 };
    static float a[BATCH * M * K], b[K * N];
    int64_t a_dims[] = {BATCH, M, K}, b_dims[] = {K, N}, v_dims[] = {K};
    struct bw_rng rng = {5};
    graph *g = graph_new();
    bw_tensor x = random_f32(g, &rng, 3, a_dims, a), y = random_f32(g, &rng, 2, b_dims, b);
    bw_tensor product = bw_tensor_matmul(g, x, y);
    BW_EQ(bw_tensor_rank(g, product), 3);
    float *p = value_of(g, product);
    for (int i = 0; i < BATCH * M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* in the evaluator's order: bit for bit */
            for (int k = 0; k < K; k++)
                sum += a[i * K + k] * b[k * N + j];
            if (p[i * N + j] != sum)
                BW_NEAR(p[i * N + j], sum, 0);
        }
    free(p);
    bw_tensor vector = f32(g, 1, v_dims, a);
    bw_tensor row = bw_tensor_matmul(g, vector, y), dot = bw_tensor_matmul(g, vector, vector),
              column = bw_tensor_matmul(g, x, vector);
    BW_EQ(bw_tensor_rank(g, row), 1);
    BW_EQ(bw_tensor_dims(g, row)[0], N);
    BW_EQ(bw_tensor_rank(g, dot), 0);
    BW_EQ(bw_tensor_rank(g, column), 2);
    p = value_of(g, dot);
    float sum = 0;
    for (int k = 0; k < K; k++)
        sum += a[k] * a[k];
    BW_NEAR(p[0], sum, 1e-5);
    free(p);
    bw_tensor_graph_destroy(g);
}

/* Direct convolution, the definition. x [n][c][h][w], w [m][c/g][kh][kw]. */
struct conv_case {
    int64_t n, c, h, w, m, kh, kw, groups;
    int64_t stride[2], dilation[2], low[2], high[2], extra[2];
};

static double conv_reference(const struct conv_case *k, const float *x, const float *w, int64_t n, int64_t m,
                             int64_t oh, int64_t ow)
{
    int64_t cg = k->c / k->groups, group = m / (k->m / k->groups);
    double sum = 0;
    for (int64_t c = 0; c < cg; c++)
        for (int64_t i = 0; i < k->kh; i++)
            for (int64_t j = 0; j < k->kw; j++) {
                int64_t y = oh * k->stride[0] + i * k->dilation[0] - k->low[0];
                int64_t z = ow * k->stride[1] + j * k->dilation[1] - k->low[1];
                if (y >= 0 && y < k->h && z >= 0 && z < k->w)
                    sum += (double)x[((n * k->c + group * cg + c) * k->h + y) * k->w + z] *
                           (double)w[((m * cg + c) * k->kh + i) * k->kw + j];
            }
    return sum;
}

static const struct conv_case conv_cases[] = {
    {1, 1, 5, 5, 1, 3, 3, 1, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}},
    {2, 4, 9, 7, 6, 3, 2, 2, {2, 1}, {1, 2}, {1, 0}, {0, 2}, {0, 0}},
    {1, 6, 8, 8, 6, 5, 5, 6, {1, 2}, {1, 1}, {2, 2}, {2, 2}, {0, 0}}, /* depthwise */
    {1, 3, 6, 30, 8, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {0, 0}},
    {1, 3, 6, 6, 4, 1, 1, 1, {2, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {1, 2, 4, 5, 4, 3, 3, 2, {3, 2}, {2, 1}, {1, 1}, {1, 0}, {2, 1}},
};

static void conv_by_definition(void)
{
    static float x[4096], w[4096], b[16];
    struct bw_rng rng = {11};
    for (size_t i = 0; i < BW_COUNT_OF(conv_cases); i++) {
        const struct conv_case *k = &conv_cases[i];
        int64_t x_dims[] = {k->n, k->c, k->h, k->w}, w_dims[] = {k->m, k->c / k->groups, k->kh, k->kw},
                b_dims[] = {k->m};
        graph *g = graph_new();
        struct bw_conv conv = {.spatial = 2,
                               .stride = k->stride,
                               .dilation = k->dilation,
                               .pad_low = k->low,
                               .pad_high = k->high,
                               .groups = k->groups};
        bw_tensor xs = random_f32(g, &rng, 4, x_dims, x), ws = random_f32(g, &rng, 4, w_dims, w),
                  bs = random_f32(g, &rng, 1, b_dims, b);
        bw_tensor result = bw_tensor_conv(g, xs, ws, bs, &conv);
        float *y = value_of(g, result);
        const int64_t *out = bw_tensor_dims(g, result);
        BW_EQ(out[2], (k->h + k->low[0] + k->high[0] - k->dilation[0] * (k->kh - 1) - 1) / k->stride[0] + 1);
        for (int64_t n = 0, at = 0; n < k->n; n++)
            for (int64_t m = 0; m < k->m; m++)
                for (int64_t oh = 0; oh < out[2]; oh++)
                    for (int64_t ow = 0; ow < out[3]; ow++, at++)
                        BW_NEAR(y[at], conv_reference(k, x, w, n, m, oh, ow) + (double)b[m], 1e-4);
        free(y);
        bw_tensor_graph_destroy(g);
    }
}

/* The transposed convolution scatters: y[o] += x[i] w[k] at o = i stride + k dilation - low. */
static void conv_transpose_by_definition(void)
{
    static float x[4096], w[4096];
    static double expected[65536];
    struct bw_rng rng = {13};
    for (size_t i = 0; i < BW_COUNT_OF(conv_cases); i++) {
        const struct conv_case *k = &conv_cases[i];
        int64_t mg = k->m / k->groups, cg = k->c / k->groups;
        int64_t x_dims[] = {k->n, k->c, k->h, k->w}, w_dims[] = {k->c, mg, k->kh, k->kw};
        graph *g = graph_new();
        struct bw_conv conv = {.spatial = 2,
                               .stride = k->stride,
                               .dilation = k->dilation,
                               .pad_low = k->low,
                               .pad_high = k->high,
                               .output_padding = k->extra,
                               .groups = k->groups};
        bw_tensor result = bw_tensor_conv_transpose(g, random_f32(g, &rng, 4, x_dims, x),
                                                    random_f32(g, &rng, 4, w_dims, w), (bw_tensor){0}, &conv);
        float *y = value_of(g, result);
        const int64_t *out = bw_tensor_dims(g, result);
        BW_EQ(out[2], (k->h - 1) * k->stride[0] + k->dilation[0] * (k->kh - 1) + 1 - k->low[0] - k->high[0] +
                          k->extra[0]);
        memset(expected, 0, sizeof expected);
        for (int64_t n = 0; n < k->n; n++)
            for (int64_t c = 0; c < k->c; c++)
                for (int64_t m = 0; m < mg; m++)
                    for (int64_t p = 0; p < k->h * k->w * k->kh * k->kw; p++) {
                        int64_t kj = p % k->kw, ki = p / k->kw % k->kh, xj = p / k->kw / k->kh % k->w,
                                xi = p / k->kw / k->kh / k->w;
                        int64_t oh = xi * k->stride[0] + ki * k->dilation[0] - k->low[0];
                        int64_t ow = xj * k->stride[1] + kj * k->dilation[1] - k->low[1];
                        if (oh >= 0 && oh < out[2] && ow >= 0 && ow < out[3])
                            expected[((n * k->m + c / cg * mg + m) * out[2] + oh) * out[3] + ow] +=
                                (double)x[((n * k->c + c) * k->h + xi) * k->w + xj] *
                                (double)w[((c * mg + m) * k->kh + ki) * k->kw + kj];
                    }
        for (int64_t p = 0; p < bw_tensor_elements(g, result); p++)
            BW_NEAR(y[p], expected[p], 1e-4);
        free(y);
        bw_tensor_graph_destroy(g);
    }
}

static void windows_pick_the_right_elements(void)
{
    float x[40];
    for (int i = 0; i < 40; i++)
        x[i] = (float)i;
    int64_t dims[] = {2, 20}, kernel[] = {3}, stride[] = {4}, dilation[] = {5};
    graph *g = graph_new();
    bw_tensor w = bw_tensor_windows(g, f32(g, 2, dims, x), 1, kernel, stride, dilation);
    BW_EQ(bw_tensor_dims(g, w)[1], 3);
    float *y = value_of(g, w);
    for (int r = 0; r < 2; r++)
        for (int o = 0; o < 3; o++)
            for (int k = 0; k < 3; k++)
                BW_EQ(y[(r * 3 + o) * 3 + k], r * 20 + o * 4 + k * 5);
    free(y);
    bw_tensor_graph_destroy(g);
}

static void inputs_are_given_at_evaluation(void)
{
    int64_t dims[] = {3};
    graph *g = graph_new();
    bw_tensor a = bw_tensor_input(g, BW_F32, 1, dims), b = bw_tensor_input(g, BW_I32, 1, dims);
    bw_tensor sum = bw_tensor_add(g, a, bw_tensor_cast(g, BW_F32, b)), outputs[] = {sum, b};
    BW_EQ(bw_tensor_is_constant(g, sum), 0);
    BW_EQ(bw_tensor_is_constant(g, bw_tensor_scalar(g, BW_F32, 1)), 1);
    static const float x[] = {1, 2, 3};
    static const int32_t y[] = {10, 20, 30};
    const void *inputs[] = {x, y};
    void *results[2], *none = NULL;
    struct bw_err err = {0};
    BW_EQ(bw_tensor_evaluate(g, sum, &none, &err), -EINVAL);
    BW_EQ(bw_tensor_evaluate_with(g, outputs, 2, inputs, 1, results, &err), -EINVAL);
    if (BW_OK(bw_tensor_evaluate_with(g, outputs, 2, inputs, 2, results, &err), &err)) {
        BW_EQ(((float *)results[0])[2], 33);
        BW_EQ(((int32_t *)results[1])[1], 20);
        free(results[0]), free(results[1]);
    }
    bw_tensor_graph_destroy(g);
}

static void errors_are_kept_and_named(void)
{
    int64_t three[] = {3}, four[] = {4};
    graph *g = graph_new();
    bw_tensor a = bw_tensor_input(g, BW_F32, 1, three), b = bw_tensor_input(g, BW_F32, 1, four);
    bw_tensor bad = bw_tensor_add(g, a, b);
    BW_EQ(bad.id, 0);
    BW_EQ(bw_tensor_exp(g, bad).id, 0);
    BW_EQ(bw_tensor_rank(g, bad), 0);
    struct bw_err err = {0};
    BW_EQ(bw_tensor_graph_error(g, &err), -EINVAL);
    BW_TRUE(strstr(err.what, "ADD") != NULL);
    bw_tensor_graph_destroy(g);
    g = graph_new();
    BW_EQ(bw_tensor_exp(g, bw_tensor_input(g, BW_I32, 1, three)).id, 0);
    BW_EQ(bw_tensor_graph_error(g, &err), -EINVAL);
    BW_TRUE(strstr(err.what, "exp of i32") != NULL);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("tensor", {"functions_in_f32", functions_in_f32}, {"functions_in_f64", functions_in_f64},
             {"functions_at_the_edges", functions_at_the_edges}, {"pow_like_c", pow_like_c},
             {"broadcasting_and_comparisons", broadcasting_and_comparisons},
             {"max_min_where_sign", max_min_where_sign},
             {"movement_is_index_arithmetic", movement_is_index_arithmetic},
             {"slices_with_any_step", slices_with_any_step}, {"concat_and_gather", concat_and_gather},
             {"reductions_over_any_axes", reductions_over_any_axes},
             {"empty_tensors_reduce_to_identities", empty_tensors_reduce_to_identities},
             {"argmax_softmax_cumsum", argmax_softmax_cumsum},
             {"running_sums_of_any_length", running_sums_of_any_length},
             {"matmul_like_numpy", matmul_like_numpy}, {"conv_by_definition", conv_by_definition},
             {"conv_transpose_by_definition", conv_transpose_by_definition},
             {"windows_pick_the_right_elements", windows_pick_the_right_elements},
             {"inputs_are_given_at_evaluation", inputs_are_given_at_evaluation},
             {"errors_are_kept_and_named", errors_are_kept_and_named})
