/* What a kernel reads and writes along which range: see optimize_internal.h. */
#include <errno.h>
#include <stdlib.h>

#include "compiler/optimize_internal.h"
#include "compiler/rewrite.h"
#include "compiler/symbolic.h"

static uint64_t range_bit(const struct kernel_view *view, bw_node range)
{
    for (uint32_t i = 0; i < view->ranges.count; i++)
        if (view->ranges.list[i] == range)
            return (uint64_t)1 << i;
    return 0;
}

/* Every range below each node, FOLDs' own included. */
static uint64_t *range_sets(const struct kernel_view *view, const bool *reached)
{
    uint64_t *sets = calloc(view->sink + 1, sizeof *sets);
    for (bw_node node = 1; sets && node <= view->sink; node++) {
        if (!reached[node])
            continue;
        if (bw_ir_op(view->ir, node) == BW_OP_RANGE)
            sets[node] = range_bit(view, node);
        for (uint32_t i = 0; i < bw_ir_source_count(view->ir, node); i++)
            sets[node] |= sets[bw_ir_source(view->ir, node, i)];
    }
    return sets;
}

static void access_describe(const struct kernel_view *view, const uint64_t *sets, bw_node node,
                            struct access *access)
{
    struct bw_sum sum;
    bw_node index = bw_ir_source(view->ir, node, 1);
    bool store = bw_ir_op(view->ir, node) == BW_OP_STORE;
    *access = (struct access){.node = node, .depends = store ? sets[index] : sets[node]};
    if (!bw_sum_from(view->ir, index, &sum)) {
        access->irregular = sets[index];
        return;
    }
    for (uint32_t i = 0; i < sum.count; i++) {
        uint64_t set = sets[sum.terms[i].atom];
        if (bw_ir_op(view->ir, sum.terms[i].atom) == BW_OP_RANGE)
            access->stride[__builtin_ctzll(set)] = sum.terms[i].factor;
        else
            access->irregular |= set;
    }
}

/* Marks what lies below a FOLD. */
static bool *folded_nodes(const struct kernel_view *view, const bool *reached)
{
    bool *folded = calloc(view->sink + 1, sizeof *folded);
    for (bw_node node = view->sink; folded && node > 0; node--) {
        if (!reached[node])
            continue;
        bool below = folded[node] || bw_ir_op(view->ir, node) == BW_OP_FOLD;
        for (uint32_t i = 0; below && i < bw_ir_source_count(view->ir, node); i++)
            folded[bw_ir_source(view->ir, node, i)] = true;
    }
    return folded;
}

static int view_nodes(struct kernel_view *view, const bool *reached, const uint64_t *sets, const bool *folded)
{
    for (bw_node node = 1; node <= view->sink; node++) {
        if (!reached[node])
            continue;
        enum bw_op op = bw_ir_op(view->ir, node);
        struct access access;
        view->arithmetic += bw_op_is_elementwise(op) && bw_ir_dtype(view->ir, node) != BW_I64;
        if (op == BW_OP_STORE)
            access_describe(view, sets, node, &view->store);
        if (op == BW_OP_LOAD) {
            access_describe(view, sets, node, &access);
            access.in_fold = folded[node];
            if (bw_vec_push(&view->loads, access))
                return -ENOMEM;
        }
        if (op != BW_OP_FOLD)
            continue;
        int64_t points = 1;
        for (uint32_t i = 0; i < view->ranges.count; i++)
            if (sets[node] >> i & 1 && !(view->outputs >> i & 1))
                points *= view->ranges.sizes[i];
        view->fold_count++;
        view->reduce_points = points > view->reduce_points ? points : view->reduce_points;
    }
    return 0;
}

int kernel_view_create(struct kernel_view *view, struct bw_ir *ir, bw_node sink)
{
    *view = (struct kernel_view){.ir = ir, .sink = sink, .reduce_points = 1};
    if (!bw_kernel_ranges(ir, sink, &view->ranges))
        return -E2BIG;
    for (uint32_t i = 0; i < view->ranges.count; i++)
        *(bw_ir_range_kind(ir, view->ranges.list[i]) == BW_RANGE_REDUCE ? &view->reduces : &view->outputs) |=
            (uint64_t)1 << i;
    bool *reached = bw_ir_reachable(ir, &sink, 1);
    uint64_t *sets = reached ? range_sets(view, reached) : NULL;
    bool *folded = reached ? folded_nodes(view, reached) : NULL;
    int rc = sets && folded ? view_nodes(view, reached, sets, folded) : -ENOMEM;
    free(reached);
    free(sets);
    free(folded);
    if (rc)
        kernel_view_free(view);
    return rc;
}

void kernel_view_free(struct kernel_view *view)
{
    bw_vec_free(&view->loads);
}
