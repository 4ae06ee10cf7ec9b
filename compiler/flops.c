/* How much arithmetic a kernel does: see kernel.h. */
#include <stdlib.h>

#include "compiler/kernel.h"
#include "compiler/rewrite.h"

struct counter {
    const struct bw_ir *ir;
    bw_node sink;
    struct bw_kernel_ranges ranges;
    bool *reached;
    bool *values;   /* nodes that elements are computed from: not indexes, not gates */
    uint64_t *sets; /* ranges that a node's value changes with */
};

static double points(const struct counter *counter, uint64_t set)
{
    double product = 1;
    for (; set; set &= set - 1)
        product *= (double)counter->ranges.sizes[__builtin_ctzll(set)];
    return product;
}

static uint64_t range_bit(const struct counter *counter, bw_node range)
{
    for (uint32_t i = 0; i < counter->ranges.count; i++)
        if (counter->ranges.list[i] == range)
            return (uint64_t)1 << i;
    return 0;
}

static uint64_t fold_ranges(const struct counter *counter, bw_node fold)
{
    uint64_t set = 0;
    for (uint32_t i = 1; i < bw_ir_source_count(counter->ir, fold); i++)
        set |= range_bit(counter, bw_ir_source(counter->ir, fold, i));
    return set;
}

static void sets_find(struct counter *counter)
{
    for (bw_node node = 1; node <= counter->sink; node++) {
        if (!counter->reached[node])
            continue;
        for (uint32_t i = 0; i < bw_ir_source_count(counter->ir, node); i++)
            counter->sets[node] |= counter->sets[bw_ir_source(counter->ir, node, i)];
        if (bw_ir_op(counter->ir, node) == BW_OP_RANGE)
            counter->sets[node] = range_bit(counter, node);
        if (bw_ir_op(counter->ir, node) == BW_OP_FOLD)
            counter->sets[node] &= ~fold_ranges(counter, node);
    }
}

/* Which sources of a value are values, too: all of an elementwise node's. */
static bool source_is_value(enum bw_op op, uint32_t index)
{
    switch (op) {
    case BW_OP_STORE:
        return index == 2; /* param, index, value, gate */
    case BW_OP_LOAD:
        return index == 3; /* param, index, gate, alternative */
    case BW_OP_FOLD:
        return index == 0;
    default:
        return true;
    }
}

static void values_find(struct counter *counter)
{
    counter->values[counter->sink] = true;
    for (bw_node node = counter->sink; node > 0; node--) {
        for (uint32_t i = 0; counter->values[node] && i < bw_ir_source_count(counter->ir, node); i++)
            if (source_is_value(bw_ir_op(counter->ir, node), i))
                counter->values[bw_ir_source(counter->ir, node, i)] = true;
    }
}

/* Of one evaluation. */
static double operations(enum bw_op op)
{
    switch (op) {
    case BW_OP_ADD:
    case BW_OP_SUB:
    case BW_OP_MUL:
    case BW_OP_DIV:
    case BW_OP_TRUNC_MOD:
    case BW_OP_MAX:
    case BW_OP_MIN:
    case BW_OP_RECIPROCAL:
    case BW_OP_SQRT:
    case BW_OP_EXP2:
    case BW_OP_LOG2:
    case BW_OP_SIN:
    case BW_OP_FOLD:
        return 1;
    case BW_OP_MULTIPLY_ADD:
        return 2;
    default:
        return 0;
    }
}

static double sum(const struct counter *counter)
{
    double total = 0;
    for (bw_node node = 1; node <= counter->sink; node++) {
        enum bw_op op = bw_ir_op(counter->ir, node);
        uint64_t set = counter->sets[node];
        if (!counter->values[node])
            continue;
        if (op == BW_OP_FOLD)
            set = counter->sets[bw_ir_source(counter->ir, node, 0)] | fold_ranges(counter, node);
        total += operations(op) * points(counter, set);
    }
    return total;
}

double bw_kernel_flops(const struct bw_ir *ir, bw_node sink)
{
    struct counter counter = {.ir = ir, .sink = sink};
    double total = 0;
    if (!bw_kernel_ranges(ir, sink, &counter.ranges))
        return 0;
    counter.reached = bw_ir_reachable(ir, &sink, 1);
    counter.values = calloc((size_t)sink + 1, sizeof *counter.values);
    counter.sets = calloc((size_t)sink + 1, sizeof *counter.sets);
    if (counter.reached && counter.values && counter.sets) {
        sets_find(&counter);
        values_find(&counter);
        total = sum(&counter);
    }
    free(counter.reached);
    free(counter.values);
    free(counter.sets);
    return total;
}
