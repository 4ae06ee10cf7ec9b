/* Goal: what the scheduler makes of a tensor graph computes what the evaluator says, and fuses what should be
 * one kernel. */
#include <bellwire/err.h>

#include "tests/unit/compiler/run_schedule.h"

static int interpret(struct bw_ir *ir, bw_node sink, const struct bw_interp_buffer *buffers, uint32_t count,
                     struct bw_err *err)
{
    struct bw_linear linear;
    int rc = bw_linearize(ir, sink, &linear, err);
    if (rc)
        return rc;
    rc = bw_interp_run(&linear, buffers, count, err);
    bw_linear_free(&linear);
    return rc;
}

static void random_graphs_agree_with_the_evaluator(void)
{
    const char *fixed = getenv("BW_TEST_SEED");
    uint64_t first = fixed ? strtoull(fixed, NULL, 0) : 1, count = fixed ? 1 : 400;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_graph r;
        bool ok = random_graph_create(&r, seed, 8 + seed % 25) && agrees(&r, interpret);
        random_graph_destroy(&r);
        if (!BW_TRUE(ok)) {
            printf("      seed %llu (BW_TEST_SEED)\n", (unsigned long long)seed);
            return;
        }
    }
}

static uint32_t kernels_of(struct bw_tensor_graph *g, bw_tensor output)
{
    struct bw_err err;
    struct bw_schedule *s;
    uint32_t count = 0;
    if (!BW_OK(bw_tensor_graph_error(g, &err), &err) || !BW_OK(schedule_of(g, &output, 1, &s, &err), &err))
        return 0;
    for (size_t i = 0; i < s->kernels.count; i++)
        count += !s->kernels.data[i].once;
    bw_schedule_destroy(s);
    return count;
}

static void chains_become_few_kernels(void)
{
    struct bw_err err;
    struct bw_tensor_graph *g;
    if (!BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    int64_t image[] = {1, 8, 12, 20}, filter[] = {8, 8, 3, 3}, ones[] = {1, 1}, channels = 8;
    static const float weights[8 * 8 * 9], biases[8];
    bw_tensor x = bw_tensor_input(g, BW_F32, 4, image), residual = bw_tensor_input(g, BW_F32, 4, image);
    struct bw_conv conv = {
        .spatial = 2, .stride = ones, .dilation = ones, .pad_low = ones, .pad_high = ones, .groups = 1};
    bw_tensor w = bw_tensor_constant(g, BW_F32, 4, filter, weights),
              bias = bw_tensor_constant(g, BW_F32, 1, &channels, biases);
    bw_tensor y = bw_tensor_add(g, bw_tensor_relu(g, bw_tensor_conv(g, x, w, bias, &conv)), residual);
    BW_EQ(kernels_of(g, y), 1);
    BW_EQ(kernels_of(g, bw_tensor_conv(g, y, w, bias, &conv)), 2);
    BW_TRUE(kernels_of(g, bw_tensor_softmax(g, x, 8)) <= 3);
    bw_tensor silu = bw_tensor_mul(g, y, bw_tensor_sigmoid(g, y));
    BW_EQ(kernels_of(g, silu), 1);
    BW_EQ(kernels_of(g, bw_tensor_matmul(g, x, bw_tensor_permute(g, residual, (uint32_t[]){0, 1, 3, 2}))), 1);
    bw_tensor_graph_destroy(g);
}

/* Graphs that no single kernel should hold are cut, and large ones stay fast. */
static void large_graphs_are_cut(void)
{
    struct bw_err err;
    struct bw_tensor_graph *g;
    enum { MANY = 120, LOADS = 450, LAYERS = 300 };
    int64_t dims[] = {6, 5}, square[] = {5, 5};
    static float weights[25];
    if (!BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    bw_tensor sum = {0};
    for (int i = 0; i < MANY; i++) { /* more loops than a kernel has */
        bw_tensor each = bw_tensor_sum(g, bw_tensor_input(g, BW_F32, 2, dims), 2, true);
        sum = i ? bw_tensor_add(g, sum, each) : each;
    }
    uint32_t kernels = kernels_of(g, sum);
    BW_TRUE(kernels > 1 && kernels < MANY);
    for (int i = 0; i < LOADS; i++) {
        bw_tensor each = bw_tensor_input(g, BW_F32, 2, dims);
        sum = i ? bw_tensor_add(g, sum, each) : each;
    }
    kernels = kernels_of(g, sum);
    BW_TRUE(kernels > 1 && kernels < 6);
    bw_tensor x = bw_tensor_input(g, BW_F32, 2, dims);
    for (int i = 0; i < LAYERS; i++) {
        weights[i % 25] = (float)i;
        x = bw_tensor_relu(g, bw_tensor_matmul(g, x, bw_tensor_constant(g, BW_F32, 2, square, weights)));
    }
    BW_EQ(kernels_of(g, x), LAYERS);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("schedule", {"chains_become_few_kernels", chains_become_few_kernels},
             {"large_graphs_are_cut", large_graphs_are_cut},
             {"random_graphs_agree_with_the_evaluator", random_graphs_agree_with_the_evaluator})
