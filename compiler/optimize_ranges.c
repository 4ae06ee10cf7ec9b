/* Mechanics of splitting and expanding ranges: see optimize_internal.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/optimize_internal.h"
#include "compiler/rewrite.h"
#include "compiler/symbolic.h"

void tiling_start(struct tiling *tiling, const struct kernel_view *view)
{
    *tiling = (struct tiling){.ir = view->ir, .view = view};
}

bw_node tiling_range(struct tiling *tiling, enum bw_range_kind kind, int64_t size)
{
    if (size == 1)
        return bw_sym_const(tiling->ir, 0);
    return bw_ir_range(tiling->ir, tiling->next_number++, kind, bw_sym_const(tiling->ir, size));
}

bw_node tiling_block(struct tiling *tiling, bw_node block, int64_t factor, int64_t size)
{
    assert(size >= factor);
    bw_node at = bw_sym_mul(tiling->ir, block, factor);
    if (size % factor == 0)
        return at;
    return bw_sym_binary(tiling->ir, BW_OP_MIN, at, bw_sym_const(tiling->ir, size - factor));
}

bw_node tiling_finish(struct tiling *tiling)
{
    return bw_ir_substitute(tiling->ir, tiling->view->sink, tiling->view->ranges.list, tiling->to,
                            tiling->view->ranges.count);
}

struct split {
    bw_node range;
    int64_t factor, size;
    enum bw_range_kind inner_kind;
    uint32_t next_number;
    bw_node outer, inner, rest; /* made once: all FOLDs over the range share them */
};

/* FOLD over the ranges of `fold` with split->range replaced; the index is `index`, its ranges are `made`. */
static bw_node fold_over(struct bw_ir *ir, const struct bw_ir *from, bw_node fold, const bw_node *sources,
                         const struct split *split, bw_node index, const bw_node *made, uint32_t made_count)
{
    bw_node ranges[BW_RANK_MAX * 2];
    uint32_t count = 0;
    for (uint32_t i = 1; i < bw_ir_source_count(from, fold); i++)
        if (bw_ir_source(from, fold, i) != split->range)
            ranges[count++] = sources[i];
    for (uint32_t i = 0; i < made_count; i++)
        if (made[i])
            ranges[count++] = made[i];
    if (count > BW_RANK_MAX)
        return bw_ir_fail(ir, -E2BIG, "a reduction over %u ranges", count);
    bw_node value = bw_ir_substitute(ir, sources[0], &split->range, &index, 1);
    return bw_ir_fold(ir, bw_ir_reduce_op(from, fold), value, ranges, count);
}

static bw_node range_make(struct bw_ir *ir, struct split *split, enum bw_range_kind kind, int64_t size)
{
    return bw_ir_range(ir, split->next_number++, kind, bw_sym_const(ir, size));
}

static bw_node split_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                          const bw_node *sources)
{
    struct split *split = user;
    bool over = false;
    for (uint32_t i = 1; bw_ir_op(from, node) == BW_OP_FOLD && i < bw_ir_source_count(from, node); i++)
        over |= bw_ir_source(from, node, i) == split->range;
    if (!over)
        return bw_ir_rebuild(to, from, node, sources);
    enum bw_op op = bw_ir_reduce_op(from, node);
    int64_t count = split->size / split->factor, covered = count * split->factor;
    if (!split->inner) {
        split->outer = count > 1 ? range_make(to, split, BW_RANGE_REDUCE, count) : 0;
        split->inner = range_make(to, split, split->inner_kind, split->factor);
        split->rest =
            covered < split->size && split->size - covered > 1
                ? range_make(to, split,
                             split->inner_kind == BW_RANGE_UNROLL ? BW_RANGE_UNROLL : BW_RANGE_REDUCE,
                             split->size - covered)
                : 0;
    }
    bw_node outer = split->outer ? split->outer : bw_sym_const(to, 0);
    bw_node index = bw_sym_add(to, bw_sym_mul(to, outer, split->factor), split->inner);
    bool group = split->inner_kind == BW_RANGE_GROUP_REDUCE;
    bw_node made[] = {split->outer, group ? 0 : split->inner};
    bw_node value = fold_over(to, from, node, sources, split, index, made, 2);
    if (group)
        value = bw_ir_fold(to, op, value, &split->inner, 1);
    if (covered == split->size || !value)
        return value;
    bw_node rest = bw_sym_add(to, split->rest ? split->rest : bw_sym_const(to, 0), bw_sym_const(to, covered));
    return bw_ir_binary(to, op, value, fold_over(to, from, node, sources, split, rest, &split->rest, 1));
}

bw_node split_reduce(struct bw_ir *ir, bw_node sink, bw_node range, int64_t factor,
                     enum bw_range_kind inner_kind)
{
    struct bw_kernel_ranges ranges;
    if (!sink || !bw_kernel_ranges(ir, sink, &ranges) || ranges.count == 0)
        return 0;
    struct split split = {.range = range,
                          .factor = factor,
                          .inner_kind = inner_kind,
                          .next_number = bw_ir_range_number(ir, ranges.list[ranges.count - 1]) + 1};
    bool constant = bw_ir_const_value_int(ir, bw_ir_source(ir, range, 0), &split.size);
    assert(constant && split.size >= factor);
    return constant && !bw_ir_rewrite(ir, ir, &sink, 1, split_node, &split) ? sink : 0;
}

static bool is_kind(const struct bw_ir *ir, bw_node node, enum bw_range_kind kind)
{
    return bw_ir_op(ir, node) == BW_OP_RANGE && bw_ir_range_kind(ir, node) == kind;
}

static int64_t size_of(const struct bw_ir *ir, bw_node range)
{
    int64_t size = 0;
    bool constant = bw_ir_const_value_int(ir, bw_ir_source(ir, range, 0), &size);
    assert(constant);
    return constant ? size : 0;
}

/* value with the ranges at point number `number` (row-major). */
static bw_node at_point(struct bw_ir *ir, bw_node value, const bw_node *ranges, uint32_t count,
                        int64_t number)
{
    bw_node to[BW_KERNEL_RANGES_MAX];
    for (uint32_t i = count; i-- > 0;) {
        int64_t size = size_of(ir, ranges[i]);
        to[i] = bw_sym_const(ir, number % size);
        number /= size;
    }
    return bw_ir_substitute(ir, value, ranges, to, count);
}

static bw_node unroll_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                           const bw_node *sources)
{
    bw_node unrolled[BW_RANK_MAX], kept[BW_RANK_MAX];
    uint32_t unrolled_count = 0, kept_count = 0;
    int64_t points = 1;
    (void)user;
    for (uint32_t i = 1; bw_ir_op(from, node) == BW_OP_FOLD && i < bw_ir_source_count(from, node); i++)
        if (is_kind(to, sources[i], BW_RANGE_UNROLL)) {
            unrolled[unrolled_count++] = sources[i];
            points *= size_of(to, sources[i]);
        } else
            kept[kept_count++] = sources[i];
    if (!unrolled_count)
        return bw_ir_rebuild(to, from, node, sources);
    enum bw_op op = bw_ir_reduce_op(from, node);
    bw_node chain = 0;
    for (int64_t i = 0; i < points; i++) {
        bw_node part = at_point(to, sources[0], unrolled, unrolled_count, i);
        chain = chain ? bw_ir_binary(to, op, chain, part) : part;
    }
    return bw_ir_fold(to, op, chain, kept, kept_count);
}

enum { STORES_MAX = 1024 };

/* One STORE per point of the UPCAST ranges. What does not depend on them is the same node in all: loads are
 * shared. */
static bw_node upcast(struct bw_ir *ir, bw_node sink)
{
    struct bw_kernel_ranges ranges;
    bw_node tile[BW_KERNEL_RANGES_MAX], stores[STORES_MAX];
    uint32_t count = 0, store_count = 0;
    int64_t points = 1;
    if (!sink || !bw_kernel_ranges(ir, sink, &ranges))
        return 0;
    for (uint32_t i = 0; i < ranges.count; i++)
        if (is_kind(ir, ranges.list[i], BW_RANGE_UPCAST)) {
            tile[count++] = ranges.list[i];
            points *= ranges.sizes[i];
        }
    if (!count)
        return sink;
    uint32_t source_count = bw_ir_source_count(ir, sink);
    if (points * source_count > STORES_MAX)
        return bw_ir_fail(ir, -E2BIG, "a tile of %lld elements", (long long)points);
    for (uint32_t k = 0; k < source_count; k++)
        for (int64_t i = 0; i < points; i++) {
            stores[store_count] = at_point(ir, bw_ir_source(ir, sink, k), tile, count, i);
            if (!stores[store_count++])
                return 0;
        }
    return bw_ir_add(ir, BW_OP_SINK, BW_VOID, 0, stores, store_count);
}

bw_node expand_ranges(struct bw_ir *ir, bw_node sink)
{
    if (!sink || bw_ir_rewrite(ir, ir, &sink, 1, unroll_node, NULL))
        return 0;
    return upcast(ir, sink);
}
