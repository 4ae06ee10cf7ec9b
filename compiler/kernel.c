/* Range splitting and joining: see kernel.h. */
#include "compiler/kernel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "compiler/rewrite.h"
#include "compiler/symbolic.h"

/* Bits of PARAM's arg: number, written, then this. */
enum { ELEMENTS_SHIFT = 33 };
static const int64_t ELEMENTS_MAX = ((int64_t)1 << 31) - 1;

bw_node bw_kernel_param(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, bool written,
                        int64_t elements)
{
    uint64_t kept = (uint64_t)(elements < ELEMENTS_MAX ? elements : ELEMENTS_MAX);
    return bw_ir_add(ir, BW_OP_PARAM, dtype, number | (uint64_t)written << 32 | kept << ELEMENTS_SHIFT, NULL,
                     0);
}

int64_t bw_kernel_param_elements(const struct bw_ir *ir, bw_node param)
{
    return bw_ir_op(ir, param) == BW_OP_PARAM ? (int64_t)(bw_ir_arg(ir, param) >> ELEMENTS_SHIFT) : 0;
}

bool bw_kernel_ranges(const struct bw_ir *ir, bw_node sink, struct bw_kernel_ranges *ranges)
{
    bool *reached = bw_ir_reachable(ir, &sink, 1), ok = reached != NULL;
    ranges->count = 0;
    for (bw_node node = 1; ok && node < sink; node++) {
        if (!reached[node] || bw_ir_op(ir, node) != BW_OP_RANGE)
            continue;
        int64_t size;
        ok = ranges->count < BW_KERNEL_RANGES_MAX &&
             bw_ir_const_value_int(ir, bw_ir_source(ir, node, 0), &size);
        if (!ok)
            break;
        uint32_t at = ranges->count++;
        for (; at > 0 && bw_ir_range_number(ir, ranges->list[at - 1]) > bw_ir_range_number(ir, node); at--) {
            ranges->list[at] = ranges->list[at - 1];
            ranges->sizes[at] = ranges->sizes[at - 1];
        }
        ranges->list[at] = node;
        ranges->sizes[at] = size;
    }
    free(reached);
    return ok;
}

static uint32_t next_number(const struct bw_ir *ir, const struct bw_kernel_ranges *ranges)
{
    return ranges->count ? bw_ir_range_number(ir, ranges->list[ranges->count - 1]) + 1 : 0;
}

/* A range and a factor of its size by which it is divided somewhere; 0 when there is none. */
static bw_node find_divided_range(const struct bw_ir *ir, bw_node sink, int64_t *divisor)
{
    bool *reached = bw_ir_reachable(ir, &sink, 1);
    bw_node found = 0;
    for (bw_node node = 1; reached && node < sink && !found; node++) {
        if (!reached[node] ||
            (bw_ir_op(ir, node) != BW_OP_FLOOR_DIV && bw_ir_op(ir, node) != BW_OP_FLOOR_MOD))
            continue;
        bw_node range = bw_ir_source(ir, node, 0);
        int64_t size;
        if (bw_ir_op(ir, range) == BW_OP_RANGE &&
            bw_ir_const_value_int(ir, bw_ir_source(ir, range, 0), &size) &&
            bw_ir_const_value_int(ir, bw_ir_source(ir, node, 1), divisor) && *divisor > 1 &&
            *divisor < size && size % *divisor == 0)
            found = range;
    }
    free(reached);
    return found;
}

/* All r become high * divisor + low. Numbers stay in order: ranges after r move up by one. */
static bw_node split_range(struct bw_ir *ir, bw_node sink, bw_node range, int64_t divisor)
{
    struct bw_kernel_ranges ranges;
    bw_node from[BW_KERNEL_RANGES_MAX], to[BW_KERNEL_RANGES_MAX];
    if (!bw_kernel_ranges(ir, sink, &ranges) || ranges.count == BW_KERNEL_RANGES_MAX)
        return 0;
    uint32_t number = 0;
    for (uint32_t i = 0; i < ranges.count; i++) {
        enum bw_range_kind kind = bw_ir_range_kind(ir, ranges.list[i]);
        from[i] = ranges.list[i];
        if (ranges.list[i] != range) {
            to[i] = bw_ir_range(ir, number++, kind, bw_ir_source(ir, ranges.list[i], 0));
            continue;
        }
        bw_node high = bw_ir_range(ir, number++, kind, bw_sym_const(ir, ranges.sizes[i] / divisor));
        bw_node low = bw_ir_range(ir, number++, kind, bw_sym_const(ir, divisor));
        to[i] = bw_sym_add(ir, bw_sym_mul(ir, high, divisor), low);
    }
    return bw_ir_substitute(ir, sink, from, to, ranges.count);
}

static uint32_t count_divisions(const struct bw_ir *ir, bw_node sink)
{
    bool *reached = bw_ir_reachable(ir, &sink, 1);
    uint32_t count = 0;
    for (bw_node node = 1; reached && node < sink; node++)
        count +=
            reached[node] && (bw_ir_op(ir, node) == BW_OP_FLOOR_DIV || bw_ir_op(ir, node) == BW_OP_FLOOR_MOD);
    free(reached);
    return count;
}

/* Both ranges are closed by the same FOLDs (or by none): only then may they be one. */
static bool closed_together(const struct bw_ir *ir, bw_node sink, bw_node a, bw_node b)
{
    bool *reached = bw_ir_reachable(ir, &sink, 1), together = reached != NULL;
    for (bw_node node = 1; together && node < sink; node++) {
        if (!reached[node] || bw_ir_op(ir, node) != BW_OP_FOLD)
            continue;
        bool has_a = false, has_b = false;
        for (uint32_t i = 1; i < bw_ir_source_count(ir, node); i++) {
            has_a |= bw_ir_source(ir, node, i) == a;
            has_b |= bw_ir_source(ir, node, i) == b;
        }
        together = has_a == has_b;
    }
    free(reached);
    return together;
}

/* Two neighbours become one range where that adds no division; 0 when it would. */
static bw_node join_ranges(struct bw_ir *ir, bw_node sink, const struct bw_kernel_ranges *ranges, uint32_t at)
{
    bw_node outer = ranges->list[at], inner = ranges->list[at + 1];
    int64_t inner_size = ranges->sizes[at + 1], joined_size;
    if (bw_ir_range_kind(ir, outer) != bw_ir_range_kind(ir, inner) ||
        __builtin_mul_overflow(ranges->sizes[at], inner_size, &joined_size) ||
        !closed_together(ir, sink, outer, inner))
        return 0;
    bw_node joined =
        bw_ir_range(ir, next_number(ir, ranges), bw_ir_range_kind(ir, outer), bw_sym_const(ir, joined_size));
    bw_node from[] = {outer, inner},
            to[] = {bw_sym_div(ir, joined, inner_size), bw_sym_mod(ir, joined, inner_size)};
    bw_node tried = bw_ir_substitute(ir, sink, from, to, 2);
    if (!tried || count_divisions(ir, tried) > count_divisions(ir, sink))
        return 0;
    /* Give it the place of the outer one. */
    bw_node placed = bw_ir_range(ir, bw_ir_range_number(ir, outer), bw_ir_range_kind(ir, outer),
                                 bw_sym_const(ir, joined_size));
    return bw_ir_substitute(ir, tried, &joined, &placed, 1);
}

static bw_node renumber(struct bw_ir *ir, bw_node sink)
{
    struct bw_kernel_ranges ranges;
    bw_node to[BW_KERNEL_RANGES_MAX];
    if (!bw_kernel_ranges(ir, sink, &ranges))
        return bw_ir_fail(ir, -E2BIG, "a kernel of more than %d ranges", BW_KERNEL_RANGES_MAX);
    uint32_t number = 0;
    for (int reduce = 0; reduce < 2; reduce++)
        for (uint32_t i = 0; i < ranges.count; i++) {
            enum bw_range_kind kind = bw_ir_range_kind(ir, ranges.list[i]);
            if ((kind == BW_RANGE_REDUCE) == reduce)
                to[i] = bw_ir_range(ir, number++, kind, bw_ir_source(ir, ranges.list[i], 0));
        }
    return bw_ir_substitute(ir, sink, ranges.list, to, ranges.count);
}

enum { SPLITS_MAX = 32 };

bw_node bw_kernel_simplify(struct bw_ir *ir, bw_node sink)
{
    int64_t divisor;
    struct bw_kernel_ranges ranges;
    bw_node range;
    if (!sink)
        return 0;
    for (int i = 0; i < SPLITS_MAX && sink && (range = find_divided_range(ir, sink, &divisor)); i++)
        sink = split_range(ir, sink, range, divisor);
    if (!sink)
        return bw_ir_fail(ir, -E2BIG, "a kernel of more than %d ranges", BW_KERNEL_RANGES_MAX);
    bool joined = true;
    while (joined && bw_kernel_ranges(ir, sink, &ranges)) {
        joined = false;
        for (uint32_t i = 0; i + 1 < ranges.count && !joined; i++) {
            bw_node better = join_ranges(ir, sink, &ranges, i);
            joined = better != 0;
            sink = joined ? better : sink;
        }
    }
    return renumber(ir, sink);
}
