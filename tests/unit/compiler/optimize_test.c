/* Goal: whatever shape the optimiser gives a kernel, for the host and for GPUs, the interpreter computes the
 * same from it, inside its buffers; and machine code can be made of it. */
#include <bellwire/err.h>

#include "compiler/codegen.h"
#include "compiler/optimize.h"
#include "compiler/rewrite.h"
#include "compiler/verify.h"
#include "tests/unit/compiler/run_schedule.h"

static struct bw_target target;

/* The kernel, optimised for `target`, through the interpreter. */
static int run_optimised(struct bw_ir *shared, bw_node sink, const struct bw_interp_buffer *buffers,
                         uint32_t count, struct bw_err *err)
{
    struct bw_ir *ir;
    struct bw_linear linear = {0};
    int rc = bw_ir_create(&ir, err);
    if (rc)
        return rc;
    rc = bw_ir_rewrite(ir, shared, &sink, 1, NULL, NULL);
    sink = rc ? 0 : bw_optimize(ir, bw_decompose(ir, sink, &target.decompose), &target);
    if (!sink)
        rc = bw_ir_error(ir, err) ? bw_ir_error(ir, err) : bw_fail(err, -ENOMEM, "test", "optimiser");
    if (!rc)
        rc = bw_verify_kernel(ir, sink, err);
    if (!rc)
        rc = bw_linearize(ir, sink, &linear, err);
    if (!rc)
        rc = bw_verify_linear(&linear, err);
    if (!rc)
        rc = bw_interp_run(&linear, buffers, count, err);
    bw_linear_free(&linear);
    bw_ir_destroy(ir);
    return rc;
}

static void random_graphs(uint64_t count)
{
    const char *fixed = getenv("BW_TEST_SEED"), *more = getenv("BW_TEST_COUNT");
    uint64_t first = fixed ? strtoull(fixed, NULL, 0) : 1;
    count = more ? strtoull(more, NULL, 0) : fixed ? 1 : count;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_graph r;
        bool ok = random_graph_create(&r, seed, 8 + seed % 25) && agrees(&r, run_optimised);
        random_graph_destroy(&r);
        if (!BW_TRUE(ok)) {
            printf("      seed %llu (BW_TEST_SEED)\n", (unsigned long long)seed);
            return;
        }
    }
}

static void host_shapes_keep_values(void)
{
    struct bw_err err;
    if (!BW_OK(bw_target_host(&target, &err), &err))
        return;
    static const uint32_t widths[] = {64, 32, 16};
    for (uint32_t i = 0; i < 3; i++) {
        target.vector_bytes = widths[i];
        target.vector_registers = i ? 16 : 32;
        target.workers = 1 + i;
        random_graphs(150);
    }
}

static void gpu_shapes_keep_values(void)
{
    struct bw_err err;
    static const char *const archs[] = {"gfx1100", "gfx942"};
    for (uint32_t i = 0; i < 2; i++)
        if (BW_OK(bw_target_amdgpu(archs[i], &target, &err), &err))
            random_graphs(150);
}

static void unknown_archs_are_refused(void)
{
    struct bw_err err;
    BW_EQ(bw_target_amdgpu("gfx1234", &target, &err), -ENOTSUP);
    BW_TRUE(strstr(err.hint, "gfx1100") != NULL);
}

int main(void)
{
    static const struct bw_test tests[] = {{"host_shapes_keep_values", host_shapes_keep_values},
                                           {"gpu_shapes_keep_values", gpu_shapes_keep_values},
                                           {"unknown_archs_are_refused", unknown_archs_are_refused}};
    return BW_HAVE_LLVM ? bw_test_run("optimize", tests, sizeof tests / sizeof tests[0]) : BW_TEST_SKIPPED;
}
