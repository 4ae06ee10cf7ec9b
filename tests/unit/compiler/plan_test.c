/* Goal: a plan on a real queue device computes what the evaluator says: on the host, and on the mock GPU,
 * where every kernel is machine code that is launched by packets. Random graphs; the seed of a failure is
 * printed and BW_TEST_SEED repeats it. */
#include <bellwire/err.h>

#include <errno.h>
#include <math.h>

#include "compiler/plan.h"
#include "tests/unit/compiler/random_graph.h"

static struct bw_ctx *ctx;

static struct bw_device *device_open(const char *name)
{
    struct bw_err err;
    struct bw_device *device = NULL;
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = "", .wait_ns = 20000000000ull};
    if (!BW_OK(bw_ctx_create(&config, &ctx, &err), &err))
        return NULL;
    if (!BW_OK(bw_device_open(ctx, name, &device, &err), &err)) {
        bw_ctx_destroy(ctx);
        return NULL;
    }
    return device;
}

static void device_close(struct bw_device *device)
{
    bw_device_close(device);
    bw_ctx_destroy(ctx);
}

static bool plan_agrees(struct bw_device *device, struct random_graph *r)
{
    struct bw_err err;
    struct bw_plan *plan = NULL;
    void *expected[RANDOM_OUTPUTS_MAX], *observed[RANDOM_OUTPUTS_MAX];
    if (!BW_OK(bw_tensor_evaluate_with(r->g, r->outputs, r->output_count, (const void *const *)r->inputs,
                                       RANDOM_INPUTS, expected, &err),
               &err))
        return false;
    bool ok = BW_OK(bw_plan_create(r->g, device, r->outputs, r->output_count, NULL, &plan, &err), &err);
    for (uint32_t i = 0; i < r->output_count; i++)
        observed[i] = calloc((size_t)bw_tensor_elements(r->g, r->outputs[i]), 8);
    for (int run = 0; run < 2 && ok; run++) {
        ok = BW_OK(bw_plan_run(plan, (const void *const *)r->inputs, observed, &err), &err);
        for (uint32_t i = 0; i < r->output_count && ok; i++)
            ok = random_same(bw_tensor_dtype(r->g, r->outputs[i]), bw_tensor_elements(r->g, r->outputs[i]),
                             observed[i], expected[i], 2e-4);
    }
    bw_plan_destroy(plan);
    for (uint32_t i = 0; i < r->output_count; i++) {
        free(expected[i]);
        free(observed[i]);
    }
    return ok;
}

static void random_graphs_agree(const char *name, uint64_t count)
{
    const char *fixed = getenv("BW_TEST_SEED"), *more = getenv("BW_TEST_COUNT");
    struct bw_device *device = device_open(name);
    uint64_t first = fixed ? strtoull(fixed, NULL, 0) : 1;
    if (!device)
        return;
    count = more ? strtoull(more, NULL, 0) : fixed ? 1 : count;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_graph r;
        bool ok = random_graph_create(&r, seed, 8 + seed % 25) && plan_agrees(device, &r);
        random_graph_destroy(&r);
        if (!BW_TRUE(ok)) {
            printf("      seed %llu (BW_TEST_SEED)\n", (unsigned long long)seed);
            break;
        }
    }
    device_close(device);
}

static void host_agrees_with_the_evaluator(void)
{
    random_graphs_agree("host:0", 40);
}

static void mock_gpu_agrees_with_the_evaluator(void)
{
    random_graphs_agree("mockkfd+amd@gfx1100", 25);
}

/* Outputs that need no kernel, one value twice, values of constants only, an input that nothing reads. */
static void odd_outputs(const char *name)
{
    struct bw_err err;
    struct bw_tensor_graph *g;
    struct bw_device *device = device_open(name);
    struct bw_plan *plan = NULL;
    int64_t dims[] = {2, 3}, turned[] = {3, 2};
    float in[2][6] = {{1, 2, 3, 4, 5, 6}, {0}}, constant[6] = {6, 5, 4, 3, 2, 1}, out[7][6] = {{0}};
    if (!device)
        return;
    if (!BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    bw_tensor x = bw_tensor_input(g, BW_F32, 2, dims);
    bw_tensor_input(g, BW_F32, 2, dims);
    bw_tensor c = bw_tensor_constant(g, BW_F32, 2, dims, constant), twice = bw_tensor_add(g, x, x);
    bw_tensor outputs[] = {x,
                           c,
                           bw_tensor_reshape(g, x, 2, turned),
                           twice,
                           bw_tensor_reshape(g, twice, 2, turned),
                           bw_tensor_mul(g, c, c),
                           bw_tensor_full(g, BW_F32, 2, dims, 2.5)};
    const void *inputs[] = {in[0], in[1]};
    void *targets[7];
    for (int i = 0; i < 7; i++)
        targets[i] = out[i];
    if (BW_OK(bw_plan_create(g, device, outputs, 7, NULL, &plan, &err), &err) &&
        BW_OK(bw_plan_run(plan, inputs, targets, &err), &err))
        for (int i = 0; i < 6; i++) {
            const float expected[] = {
                in[0][i], constant[i], in[0][i], 2 * in[0][i], 2 * in[0][i], constant[i] * constant[i], 2.5f};
            for (int k = 0; k < 7; k++)
                BW_NEAR((double)out[k][i], (double)expected[k], 0);
        }
    bw_plan_destroy(plan);
    /* Nothing to launch at all. */
    plan = NULL;
    memset(out, 0, sizeof out);
    if (BW_OK(bw_plan_create(g, device, outputs, 2, NULL, &plan, &err), &err) &&
        BW_OK(bw_plan_run(plan, inputs, targets, &err), &err)) {
        BW_BYTES(out[0], in[0], sizeof in[0]);
        BW_BYTES(out[1], constant, sizeof constant);
    }
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(g);
    device_close(device);
}

static void outputs_without_kernels(void)
{
    odd_outputs("host:0");
    odd_outputs("mockkfd+amd@gfx1100");
}

static void lifetimes_never_overlap(void)
{
    struct bw_rng rng = {7};
    for (int round = 0; round < 300; round++) {
        struct bw_plan_lifetime lifetimes[60];
        uint32_t count = 1 + (uint32_t)bw_rng_below(&rng, 60);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++) {
            lifetimes[i] = (struct bw_plan_lifetime){.size_bytes = 1 + bw_rng_below(&rng, 100000),
                                                     .first = (uint32_t)bw_rng_below(&rng, 50)};
            lifetimes[i].last = lifetimes[i].first + (uint32_t)bw_rng_below(&rng, 10);
            sum += lifetimes[i].size_bytes + BW_PLAN_ALIGN_BYTES;
        }
        uint64_t total = bw_plan_place(lifetimes, count);
        BW_TRUE(total <= sum);
        for (uint32_t i = 0; i < count; i++) {
            BW_EQ(lifetimes[i].offset % BW_PLAN_ALIGN_BYTES, 0);
            BW_TRUE(lifetimes[i].offset + lifetimes[i].size_bytes <= total);
            for (uint32_t k = 0; k < i; k++) {
                bool together =
                    lifetimes[i].first <= lifetimes[k].last && lifetimes[k].first <= lifetimes[i].last;
                bool overlap = lifetimes[i].offset < lifetimes[k].offset + lifetimes[k].size_bytes &&
                               lifetimes[k].offset < lifetimes[i].offset + lifetimes[i].size_bytes;
                if (together && overlap && !BW_TRUE(!(together && overlap)))
                    return;
            }
        }
    }
}

/* Too many to compare each with each: placed in the order of time. */
static void many_lifetimes_never_overlap(void)
{
    enum { COUNT = 50000, SLOTS = 64, SHORT = 8 };
    static struct bw_plan_lifetime lifetimes[COUNT];
    struct bw_rng rng = {11};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        lifetimes[i] = (struct bw_plan_lifetime){
            .size_bytes = bw_rng_below(&rng, 4) ? 1 + bw_rng_below(&rng, 4000) : 4096, .first = i};
        lifetimes[i].last = i + (uint32_t)bw_rng_below(&rng, SHORT);
        sum += lifetimes[i].size_bytes;
    }
    lifetimes[7].last = UINT32_MAX; /* an output */
    uint64_t total = bw_plan_place(lifetimes, COUNT);
    BW_TRUE(total < sum / 100); /* few live at one time */
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t k = i + 1; k < COUNT && k <= i + SHORT; k++) {
            bool overlap = lifetimes[i].offset < lifetimes[k].offset + lifetimes[k].size_bytes &&
                           lifetimes[k].offset < lifetimes[i].offset + lifetimes[i].size_bytes;
            if (overlap && lifetimes[i].last >= lifetimes[k].first &&
                !BW_TRUE(lifetimes[i].last < lifetimes[k].first))
                return;
        }
    for (uint32_t i = 8; i < COUNT; i++)
        if (!BW_TRUE(lifetimes[i].offset >= lifetimes[7].offset + lifetimes[7].size_bytes ||
                     lifetimes[i].offset + lifetimes[i].size_bytes <= lifetimes[7].offset))
            return;
}

/* Kernels are cut before they are too large to compile, and pieces of a chain are one kernel, compiled once.
 */
static bool chain_agrees(struct bw_device *device, uint32_t length, int kind, uint32_t kernels_max)
{
    enum { ELEMENTS = 5 };
    static const float x[ELEMENTS] = {-1, 0, 0.5f, 2, 3};
    static const int64_t dims[] = {ELEMENTS};
    const void *inputs[] = {x};
    struct bw_err err;
    struct bw_tensor_graph *g;
    struct bw_plan *plan = NULL;
    struct bw_plan_stats stats = {0};
    float observed[ELEMENTS];
    void *expected = NULL, *outputs[] = {observed};
    if (!BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return false;
    bw_tensor in = bw_tensor_input(g, BW_F32, 1, dims), y = in, before = in;
    for (uint32_t i = 0; i < length; i++) {
        bw_tensor last = y;
        if (kind == 0) /* a chain */
            y = i % 2 ? bw_tensor_sub(g, y, bw_tensor_scalar(g, BW_F32, 0.25)) : bw_tensor_add(g, y, in);
        else if (kind == 1) /* costly links */
            y = i % 2 ? bw_tensor_exp(g, bw_tensor_neg(g, y)) : bw_tensor_sin(g, y);
        else /* a ladder, whose steps are read twice */
            y = bw_tensor_mul(g, bw_tensor_add(g, y, before), bw_tensor_scalar(g, BW_F32, 0.5));
        before = last;
    }
    bool ok = BW_OK(bw_plan_create(g, device, &y, 1, NULL, &plan, &err), &err) &&
              BW_OK(bw_plan_run(plan, inputs, outputs, &err), &err) &&
              BW_OK(bw_tensor_evaluate_with(g, &y, 1, inputs, 1, &expected, &err), &err);
    for (int i = 0; i < ELEMENTS && ok; i++)
        ok = BW_NEAR(observed[i], ((float *)expected)[i], 2e-3 + 1e-3 * fabs((double)((float *)expected)[i]));
    if (ok)
        bw_plan_stats(plan, &stats);
    if (!(ok = ok && BW_TRUE(stats.kernels > 1 && stats.kernels <= kernels_max && stats.compiled <= 8)))
        printf("      kind %d: %u kernels, %u compiled\n", kind, (unsigned)stats.kernels,
               (unsigned)stats.compiled);
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(g);
    free(expected);
    return ok;
}

static void long_chains_are_cut(void)
{
    static const char *const names[] = {"host:0", "mockkfd+amd@gfx1100"};
    for (int i = 0; i < 2; i++) {
        struct bw_device *device = device_open(names[i]);
        if (!device)
            return;
        chain_agrees(device, 100000, 0, 200);
        chain_agrees(device, 2000, 1, 200);
        chain_agrees(device, 5000, 2, 10000);
        device_close(device);
    }
}

/* Thousands of outputs of one input. */
static void many_outputs(void)
{
    enum { OUTPUTS = 20000 };
    static bw_tensor outputs[OUTPUTS];
    static float data[OUTPUTS][2];
    static void *observed[OUTPUTS];
    static const int64_t dims[] = {2};
    struct bw_err err;
    struct bw_tensor_graph *g;
    struct bw_plan *plan = NULL;
    float x[] = {1, 2};
    const void *inputs[] = {x};
    struct bw_device *device = device_open("host:0");
    if (!device || !BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    bw_tensor in = bw_tensor_input(g, BW_F32, 1, dims);
    for (int i = 0; i < OUTPUTS; i++) {
        float w[] = {(float)i, (float)-i};
        outputs[i] = bw_tensor_add(g, in, bw_tensor_constant(g, BW_F32, 1, dims, w));
        observed[i] = data[i];
    }
    if (BW_OK(bw_plan_create(g, device, outputs, OUTPUTS, NULL, &plan, &err), &err) &&
        BW_OK(bw_plan_run(plan, inputs, observed, &err), &err))
        for (int i = 0; i < OUTPUTS; i += 999) {
            BW_NEAR(data[i][0], 1 + i, 0);
            BW_NEAR(data[i][1], 2 - i, 0);
        }
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(g);
    device_close(device);
}

/* Tensors of no elements, made in every way, are computed with, given out, summed and padded. */
static void empty_tensors(const char *name)
{
    enum { OUTPUTS = 7 };
    static const int64_t dims[] = {0, 3}, one[] = {1, 0};
    static const uint32_t counts[OUTPUTS] = {0, 0, 0, 0, 3, 1, 6};
    static const float expected[OUTPUTS] = {0, 0, 0, 0, 2, 0, 7};
    struct bw_err err;
    struct bw_tensor_graph *g;
    struct bw_plan *plan = NULL;
    float nothing[1] = {0}, out[OUTPUTS][8];
    void *observed[OUTPUTS];
    const void *inputs[] = {nothing};
    struct bw_device *device = device_open(name);
    if (!device || !BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    bw_tensor in = bw_tensor_input(g, BW_F32, 2, dims), two = bw_tensor_scalar(g, BW_F32, 2);
    bw_tensor full = bw_tensor_full(g, BW_F32, 2, dims, 1), twice = bw_tensor_mul(g, in, two);
    bw_tensor outputs[OUTPUTS] = {bw_tensor_mul(g, bw_tensor_constant(g, BW_F32, 2, dims, nothing), two),
                                  twice,
                                  full,
                                  bw_tensor_mul(g, full, in),
                                  bw_tensor_add(g, bw_tensor_sum(g, twice, 1, false), two),
                                  bw_tensor_sum(g, in, 3, false),
                                  bw_tensor_pad(g, twice, one, one, 7)};
    for (int i = 0; i < OUTPUTS; i++) {
        observed[i] = out[i];
        for (int k = 0; k < 8; k++)
            out[i][k] = -1;
    }
    if (BW_OK(bw_plan_create(g, device, outputs, OUTPUTS, NULL, &plan, &err), &err) &&
        BW_OK(bw_plan_run(plan, inputs, observed, &err), &err))
        for (uint32_t i = 0; i < OUTPUTS; i++)
            for (uint32_t k = 0; k < 8; k++)
                BW_NEAR((double)out[i][k], k < counts[i] ? (double)expected[i] : -1, 0);
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(g);
    device_close(device);
}

static void tensors_of_no_elements(void)
{
    empty_tensors("host:0");
    empty_tensors("mockkfd+amd@gfx1100");
}

int main(void)
{
    static const struct bw_test tests[] = {
        {"lifetimes_never_overlap", lifetimes_never_overlap},
        {"many_lifetimes_never_overlap", many_lifetimes_never_overlap},
        {"long_chains_are_cut", long_chains_are_cut},
        {"many_outputs", many_outputs},
        {"outputs_without_kernels", outputs_without_kernels},
        {"tensors_of_no_elements", tensors_of_no_elements},
        {"host_agrees_with_the_evaluator", host_agrees_with_the_evaluator},
        {"mock_gpu_agrees_with_the_evaluator", mock_gpu_agrees_with_the_evaluator}};
    return BW_HAVE_LLVM ? bw_test_run("plan", tests, sizeof tests / sizeof tests[0]) : BW_TEST_SKIPPED;
}
