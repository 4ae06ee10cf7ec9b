/* Goal: what a kernel is said to compute is what its meaning takes, whatever fuses into it: for profiles. */
#include <bellwire/profile.h>

#include "compiler/kernel.h"
#include "compiler/plan.h"
#include "tests/unit/compiler/run_schedule.h"

/* Of all kernels that run each time. */
static double flops_of(struct bw_tensor_graph *g, bw_tensor output)
{
    struct bw_err err;
    struct bw_schedule *s;
    double sum = 0;
    if (!BW_OK(bw_tensor_graph_error(g, &err), &err) || !BW_OK(schedule_of(g, &output, 1, &s, &err), &err))
        return -1;
    for (size_t i = 0; i < s->kernels.count; i++)
        sum += s->kernels.data[i].once ? 0 : bw_kernel_flops(s->ir, s->kernels.data[i].sink);
    bw_schedule_destroy(s);
    return sum;
}

static struct bw_tensor_graph *graph_new(void)
{
    struct bw_tensor_graph *g = NULL;
    struct bw_err err;
    BW_OK(bw_tensor_graph_create(&g, &err), &err);
    return g;
}

static void elementwise(void)
{
    struct bw_tensor_graph *g = graph_new();
    int64_t dims[] = {10, 7}, row[] = {1, 7};
    bw_tensor a = bw_tensor_input(g, BW_F32, 2, dims), b = bw_tensor_input(g, BW_F32, 2, dims),
              c = bw_tensor_input(g, BW_F32, 2, row), n = bw_tensor_input(g, BW_I32, 2, dims);
    BW_NEAR(flops_of(g, bw_tensor_add(g, bw_tensor_mul(g, a, b), a)), 2 * 70, 0);
    BW_NEAR(flops_of(g, bw_tensor_mul(g, n, n)), 70, 0); /* integers count, too */
    BW_NEAR(flops_of(g, bw_tensor_cast(g, BW_F16, a)), 0, 0);
    BW_NEAR(flops_of(g, bw_tensor_relu(g, a)), 70, 0);
    /* What is the same in every row is counted once for each column. */
    BW_NEAR(flops_of(g, bw_tensor_add(g, a, bw_tensor_expand(g, bw_tensor_mul(g, c, c), 2, dims))), 70 + 7,
            0);
    bw_tensor_graph_destroy(g);
}

static void folds(void)
{
    struct bw_tensor_graph *g = graph_new();
    int64_t left[] = {6, 50}, right[] = {50, 9}, batch[] = {3, 4, 20};
    bw_tensor a = bw_tensor_input(g, BW_F32, 2, left), b = bw_tensor_input(g, BW_F32, 2, right),
              c = bw_tensor_input(g, BW_F32, 3, batch);
    BW_NEAR(flops_of(g, bw_tensor_matmul(g, a, b)), 2 * 6 * 50 * 9, 0);
    BW_NEAR(flops_of(g, bw_tensor_relu(g, bw_tensor_matmul(g, a, b))), 2 * 6 * 50 * 9 + 6 * 9, 0);
    BW_NEAR(flops_of(g, bw_tensor_sum(g, c, 1 << 2, false)), 3 * 4 * 20, 0);
    BW_NEAR(flops_of(g, bw_tensor_reduce_max(g, c, 7, false)), 3 * 4 * 20, 0);
    bw_tensor_graph_destroy(g);
}

/* Indexes and the gates of padding are no arithmetic on elements. */
static void convolutions(void)
{
    struct bw_tensor_graph *g = graph_new();
    int64_t image[] = {1, 8, 12, 20}, filter[] = {16, 8, 3, 3}, ones[] = {1, 1};
    bw_tensor x = bw_tensor_input(g, BW_F32, 4, image), w = bw_tensor_input(g, BW_F32, 4, filter);
    struct bw_conv conv = {
        .spatial = 2, .stride = ones, .dilation = ones, .pad_low = ones, .pad_high = ones, .groups = 1};
    bw_tensor y = bw_tensor_conv(g, x, w, (bw_tensor){0}, &conv);
    BW_NEAR(flops_of(g, y), 2.0 * 16 * 12 * 20 * 8 * 9, 0);
    bw_tensor_graph_destroy(g);
}

static void plans_say_so_in_their_profile(void)
{
    enum { N = 24 };
    struct bw_tensor_graph *g = graph_new();
    int64_t dims[] = {N, N};
    static float data[N * N], out[N * N];
    const void *inputs[] = {data, data};
    void *outputs[] = {out};
    struct bw_err err = {0};
    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_plan *plan;
    struct bw_profile *profile;
    if (!BW_HAVE_LLVM) {
        bw_tensor_graph_destroy(g);
        return;
    }
    bw_tensor y =
        bw_tensor_matmul(g, bw_tensor_input(g, BW_F32, 2, dims), bw_tensor_input(g, BW_F32, 2, dims));
    struct bw_plan_options options = {.size = sizeof options, .profile = true};
    BW_OK(bw_ctx_create(NULL, &ctx, &err), &err);
    if (BW_OK(bw_device_open(ctx, "host:0", &device, &err), &err) &&
        BW_OK(bw_plan_create(g, device, &y, 1, &options, &plan, &err), &err)) {
        double flops = 0;
        uint64_t bytes = 0;
        BW_OK(bw_plan_run(plan, inputs, outputs, &err), &err);
        if (BW_OK(bw_linked_graph_profile_take(bw_plan_linked(plan), 0, &profile, &err), &err)) {
            for (uint32_t i = 0; i < profile->call_count; i++) {
                flops += profile->calls[i].flops;
                bytes += profile->calls[i].bytes_read + profile->calls[i].bytes_written;
            }
            BW_NEAR(flops, 2.0 * N * N * N, 0);
            BW_EQ(bytes, 3 * sizeof data);
            bw_profile_destroy(profile);
        }
        bw_plan_destroy(plan);
        bw_device_close(device);
    }
    bw_ctx_destroy(ctx);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("flops", {"elementwise", elementwise}, {"folds", folds}, {"convolutions", convolutions},
             {"plans_say_so_in_their_profile", plans_say_so_in_their_profile})
