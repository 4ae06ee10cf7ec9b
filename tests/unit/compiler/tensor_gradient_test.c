/* Goal: derivatives agree with central differences, for every op that has a rule. */
#include <bellwire/tensor.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "base/rng.h"
#include "compiler/tensor_graph.h"
#include "tests/check.h"

typedef struct bw_tensor_graph graph;

enum { ROWS = 3, COLUMNS = 4, ELEMENTS = ROWS * COLUMNS };

/* Functions of a [3, 4] and b [4], all positive, to any shape. */
static bw_tensor arithmetic(graph *g, bw_tensor a, bw_tensor b)
{
    bw_tensor quotient =
        bw_tensor_div(g, bw_tensor_sub(g, a, b), bw_tensor_add(g, a, bw_tensor_mul(g, b, b)));
    return bw_tensor_mul(g, quotient, bw_tensor_neg(g, bw_tensor_reciprocal(g, a)));
}

static bw_tensor elementary(graph *g, bw_tensor a, bw_tensor b)
{
    bw_tensor x = bw_tensor_mul(g, bw_tensor_sin(g, a), bw_tensor_log(g, b));
    x = bw_tensor_add(g, x, bw_tensor_sqrt(g, bw_tensor_exp(g, bw_tensor_sub(g, a, b))));
    return bw_tensor_mul(g, x, bw_tensor_tanh(g, bw_tensor_abs(g, bw_tensor_sub(g, b, a))));
}

static bw_tensor softmax(graph *g, bw_tensor a, bw_tensor b)
{
    return bw_tensor_mul(g, bw_tensor_softmax(g, bw_tensor_mul(g, a, b), 2), a);
}

static bw_tensor matmul(graph *g, bw_tensor a, bw_tensor b)
{
    static const uint32_t swapped[] = {1, 0};
    bw_tensor square = bw_tensor_matmul(g, a, bw_tensor_permute(g, a, swapped));
    return bw_tensor_matmul(g, square, bw_tensor_matmul(g, a, b));
}

static bw_tensor movement(graph *g, bw_tensor a, bw_tensor b)
{
    int64_t low[] = {1, -1}, high[] = {0, 2}, flat[] = {-1}, start[] = {2}, stop[] = {11}, step[] = {1};
    bw_tensor x = bw_tensor_flip(g, bw_tensor_pad(g, bw_tensor_mul(g, a, b), low, high, 5), 2);
    x = bw_tensor_slice(g, bw_tensor_reshape(g, x, 1, flat), start, stop, step);
    return bw_tensor_mul(g, x, bw_tensor_contiguous(g, x));
}

static bw_tensor choices(graph *g, bw_tensor a, bw_tensor b)
{
    bw_tensor x = bw_tensor_max(g, bw_tensor_mul(g, a, a), b), y = bw_tensor_min(g, a, b);
    x = bw_tensor_where(g, bw_tensor_less(g, a, b), x, bw_tensor_mul(g, y, y));
    x = bw_tensor_add(g, x, bw_tensor_mul(g, bw_tensor_floor(g, a), b));
    return bw_tensor_mul(g, x, bw_tensor_reduce_max(g, x, 1, true));
}

static const struct {
    const char *name;
    bw_tensor (*build)(graph *, bw_tensor, bw_tensor);
} functions[] = {{"arithmetic", arithmetic}, {"elementary", elementary}, {"softmax", softmax},
                 {"matmul", matmul},         {"movement", movement},     {"choices", choices}};

static double evaluate_sum(graph *g, bw_tensor y, const double *a, const double *b)
{
    const void *inputs[] = {a, b};
    void *data = NULL;
    struct bw_err err = {0};
    double sum = 0;
    if (BW_OK(bw_tensor_evaluate_with(g, &y, 1, inputs, 2, &data, &err), &err))
        for (int64_t i = 0; i < bw_tensor_elements(g, y); i++)
            sum += ((double *)data)[i];
    free(data);
    return sum;
}

static void derivatives_agree_with_differences(void)
{
    struct bw_rng rng = {99};
    int64_t dims[] = {ROWS, COLUMNS};
    for (size_t k = 0; k < BW_COUNT_OF(functions); k++) {
        graph *g = NULL;
        struct bw_err err = {0};
        double a[ELEMENTS], b[COLUMNS];
        for (int i = 0; i < ELEMENTS; i++)
            a[i] = 0.3 + 1.5 * bw_rng_unit(&rng);
        for (int i = 0; i < COLUMNS; i++)
            b[i] = 0.3 + 1.5 * bw_rng_unit(&rng);
        BW_OK(bw_tensor_graph_create(&g, &err), &err);
        bw_tensor x[] = {bw_tensor_input(g, BW_F64, 2, dims), bw_tensor_input(g, BW_F64, 1, dims + 1)},
                  gradients[2] = {{0}};
        bw_tensor y = functions[k].build(g, x[0], x[1]);
        void *data[2] = {NULL, NULL};
        const void *inputs[] = {a, b};
        if (BW_OK(bw_tensor_gradient(g, y, x, 2, gradients, &err), &err) &&
            BW_OK(bw_tensor_evaluate_with(g, gradients, 2, inputs, 2, data, &err), &err))
            for (int i = 0; i < ELEMENTS + COLUMNS; i++) {
                double *variable = i < ELEMENTS ? &a[i] : &b[i - ELEMENTS], old = *variable, step = 1e-6;
                double observed = i < ELEMENTS ? ((double *)data[0])[i] : ((double *)data[1])[i - ELEMENTS];
                *variable = old + step;
                double above = evaluate_sum(g, y, a, b);
                *variable = old - step;
                double expected = (above - evaluate_sum(g, y, a, b)) / (2 * step);
                *variable = old;
                if (!BW_NEAR(observed, expected, 1e-6 * (1 + fabs(expected))))
                    printf("      %s, variable %d\n", functions[k].name, i);
            }
        free(data[0]), free(data[1]);
        bw_tensor_graph_destroy(g);
    }
}

static void what_has_no_rule_is_named(void)
{
    graph *g = NULL;
    struct bw_err err = {0};
    int64_t dims[] = {8}, kernel[] = {3}, one[] = {1};
    BW_OK(bw_tensor_graph_create(&g, &err), &err);
    bw_tensor x = bw_tensor_input(g, BW_F32, 1, dims), other = bw_tensor_input(g, BW_F32, 1, dims), gradient;
    BW_OK(bw_tensor_gradient(g, bw_tensor_exp(g, x), &other, 1, &gradient, &err),
          &err); /* independent: zeros */
    BW_EQ(bw_tensor_dims(g, gradient)[0], 8);
    BW_EQ(bw_tensor_is_constant(g, gradient), 1);
    BW_EQ(bw_tensor_gradient(g, bw_tensor_windows(g, x, 1, kernel, one, one), &x, 1, &gradient, &err),
          -ENOTSUP);
    BW_TRUE(strstr(err.what, "GATHER") != NULL);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("tensor_gradient", {"derivatives_agree_with_differences", derivatives_agree_with_differences},
             {"what_has_no_rule_is_named", what_has_no_rule_is_named})
