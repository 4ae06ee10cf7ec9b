/* Policy that GPU and host share: the register tile and unrolling. See optimize.h.
 *
 * A tile of one range is worth its registers where some operand does not depend on that range: the copies
 * share the load. Costs are counted in instructions of a small model; only their order matters. */
#include "compiler/optimize.h"

#include <assert.h>

#include "compiler/optimize_policy.h"
#include "compiler/symbolic.h"

int64_t best_block(int64_t size, int64_t most)
{
    int64_t best = 1;
    double best_cost = 2;
    for (int64_t t = 2; t <= most && t <= size; t++) {
        double waste = (double)(bw_div_up_i64(size, t) * t) / (double)size,
               cost = waste * (1 + 1.0 / (double)t);
        if (cost < best_cost) {
            best_cost = cost;
            best = t;
        }
    }
    return best;
}

int find_reuse_range(const struct kernel_view *view, uint64_t exclude)
{
    int best = -1;
    uint32_t best_reuse = 0;
    for (uint32_t r = 0; r < view->ranges.count; r++) {
        if (!(view->outputs >> r & 1) || exclude >> r & 1 || view->ranges.sizes[r] < 2)
            continue;
        uint32_t reuse = 0;
        for (size_t i = 0; i < view->loads.count; i++)
            reuse += view->loads.data[i].in_fold && !(view->loads.data[i].depends >> r & 1);
        if (reuse > best_reuse) {
            best_reuse = reuse;
            best = (int)r;
        }
    }
    return best;
}

int find_contiguous_output(const struct kernel_view *view)
{
    for (uint32_t r = 0; r < view->ranges.count; r++)
        if (view->outputs >> r & 1 && view->store.stride[r] == 1 && !(view->store.irregular >> r & 1))
            return (int)r;
    return -1;
}

/* A factor to split a long loop by; 1 when none pays. */
static int64_t unroll_factor(int64_t size, int64_t budget)
{
    static const int64_t factors[] = {8, 4, 6, 5, 3, 7, 2};
    for (uint32_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (factors[i] <= budget && size % factors[i] == 0 && size > factors[i])
            return factors[i];
    return size >= 32 && budget >= 4 ? 4 : 1; /* with a rest */
}

bw_node unroll_reductions(struct bw_ir *ir, bw_node sink, int64_t budget)
{
    struct bw_kernel_ranges ranges;
    if (!sink || !bw_kernel_ranges(ir, sink, &ranges))
        return 0;
    for (uint32_t i = ranges.count; i-- > 0 && budget > 1 && sink;) {
        if (bw_ir_range_kind(ir, ranges.list[i]) != BW_RANGE_REDUCE)
            continue;
        int64_t size = ranges.sizes[i];
        if (size <= budget && size <= 9) {
            sink = split_reduce(ir, sink, ranges.list[i], size, BW_RANGE_UNROLL);
            budget /= size;
            continue;
        }
        int64_t factor = unroll_factor(size, budget);
        if (factor > 1) {
            sink = split_reduce(ir, sink, ranges.list[i], factor, BW_RANGE_UNROLL);
            budget /= factor;
        }
    }
    return sink;
}

bw_node bw_optimize(struct bw_ir *ir, bw_node sink, const struct bw_target *target)
{
    struct kernel_view view;
    int rc = sink ? kernel_view_create(&view, ir, sink) : -1;
    if (rc)
        return sink ? bw_ir_fail(ir, rc, "analysis of a kernel") : 0;
    sink = target->family == BW_TARGET_HOST ? optimize_host(&view, target) : optimize_gpu(&view, target);
    kernel_view_free(&view);
    return expand_ranges(ir, sink);
}
