/* Verifiers: see verify.h. */
#include "compiler/verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/kernel.h"
#include "compiler/print.h"
#include "compiler/rewrite.h"

static int refuse(const struct bw_ir *ir, bw_node node, struct bw_err *err, const char *why)
{
    struct bw_text text = {0};
    bw_print_node(&text, ir, node);
    size_t length = strcspn(bw_text_string(&text), "\n");
    int rc = bw_fail(err, -EINVAL, "verify", "%s: %.*s", why, (int)length, bw_text_string(&text));
    bw_text_free(&text);
    return rc;
}

static bool is_memory(const struct bw_ir *ir, bw_node node)
{
    return bw_ir_op(ir, node) == BW_OP_PARAM || bw_ir_op(ir, node) == BW_OP_LOCAL;
}

/* Types and counts that the kernel and the linear stage share; NULL when right. */
static const char *node_fault(const struct bw_ir *ir, bw_node node)
{
    uint32_t count = bw_ir_source_count(ir, node);
    bool store = bw_ir_op(ir, node) == BW_OP_STORE;
    uint32_t plain = store ? 3 : 2;
    switch (bw_ir_op(ir, node)) {
    case BW_OP_LOAD:
    case BW_OP_STORE:
        if (count != plain && count != plain + (store ? 1 : 2))
            return "source count";
        if (!is_memory(ir, bw_ir_source(ir, node, 0)))
            return "no memory";
        if (bw_ir_dtype(ir, bw_ir_source(ir, node, 1)) != BW_I64 &&
            bw_ir_dtype(ir, bw_ir_source(ir, node, 1)) != BW_I32)
            return "index type";
        if (count > plain && bw_ir_dtype(ir, bw_ir_source(ir, node, plain)) != BW_BOOL)
            return "gate type";
        if (bw_ir_dtype(ir, store ? bw_ir_source(ir, node, 2) : node) !=
            bw_ir_dtype(ir, bw_ir_source(ir, node, 0)))
            return "element type";
        if (store && bw_ir_op(ir, bw_ir_source(ir, node, 0)) == BW_OP_PARAM &&
            !bw_ir_param_written(ir, bw_ir_source(ir, node, 0)))
            return "store to a parameter that is read";
        return NULL;
    case BW_OP_RANGE:
        return count == 1 && bw_ir_op(ir, bw_ir_source(ir, node, 0)) == BW_OP_CONST ? NULL
                                                                                    : "range without a size";
    default:
        return bw_op_class(bw_ir_op(ir, node)) == BW_OP_MOVEMENT ||
                       bw_op_class(bw_ir_op(ir, node)) == BW_OP_TENSOR
                   ? "tensor operation"
                   : NULL;
    }
}

static uint64_t own_bit(const struct bw_kernel_ranges *ranges, bw_node range)
{
    for (uint32_t i = 0; i < ranges->count; i++)
        if (ranges->list[i] == range)
            return (uint64_t)1 << i;
    return 0;
}

static int verify_nodes(const struct bw_ir *ir, bw_node sink, const bool *reached, uint64_t *open,
                        const struct bw_kernel_ranges *ranges, struct bw_err *err)
{
    for (bw_node node = 1; node <= sink; node++) {
        if (!reached[node])
            continue;
        const char *fault = node_fault(ir, node);
        if (fault)
            return refuse(ir, node, err, fault);
        for (uint32_t i = 0; i < bw_ir_source_count(ir, node); i++)
            open[node] |= open[bw_ir_source(ir, node, i)];
        if (bw_ir_op(ir, node) == BW_OP_RANGE)
            open[node] = own_bit(ranges, node);
        for (uint32_t i = 1; bw_ir_op(ir, node) == BW_OP_FOLD && i < bw_ir_source_count(ir, node); i++)
            open[node] &= ~own_bit(ranges, bw_ir_source(ir, node, i));
    }
    return 0;
}

int bw_verify_kernel(const struct bw_ir *ir, bw_node sink, struct bw_err *err)
{
    struct bw_kernel_ranges ranges;
    if (!sink || bw_ir_op(ir, sink) != BW_OP_SINK || !bw_ir_source_count(ir, sink))
        return bw_fail(err, -EINVAL, "verify", "a kernel that is no SINK");
    for (uint32_t i = 0; i < bw_ir_source_count(ir, sink); i++)
        if (bw_ir_op(ir, bw_ir_source(ir, sink, i)) != BW_OP_STORE)
            return refuse(ir, bw_ir_source(ir, sink, i), err, "no STORE");
    if (!bw_kernel_ranges(ir, sink, &ranges))
        return bw_fail(err, -E2BIG, "verify", "ranges without constant sizes, or more than %d",
                       BW_KERNEL_RANGES_MAX);
    bool *reached = bw_ir_reachable(ir, &sink, 1);
    uint64_t *open = calloc(sink + 1, sizeof *open);
    int rc = reached && open ? verify_nodes(ir, sink, reached, open, &ranges, err)
                             : bw_fail(err, -ENOMEM, "verify", "%u nodes", sink);
    for (uint32_t i = 0; !rc && i < ranges.count; i++) {
        enum bw_range_kind kind = bw_ir_range_kind(ir, ranges.list[i]);
        bool reduces = kind == BW_RANGE_REDUCE || kind == BW_RANGE_UNROLL || kind == BW_RANGE_GROUP_REDUCE;
        if (reduces && open[sink] >> i & 1)
            rc = refuse(ir, ranges.list[i], err, "a reduction that no FOLD ends");
    }
    free(reached);
    free(open);
    return rc;
}

enum { LOOPS_MAX = 64 };

struct scope_state {
    uint32_t *defined;              /* by node: 1 + number of the scope it was last computed in; 0: not */
    uint32_t scopes[LOOPS_MAX + 1]; /* of the open loops, outermost first; scope 0 is the function's */
    bw_node ranges[LOOPS_MAX + 1];
    uint32_t depth, scope_count;
};

static bool visible(const struct scope_state *s, bw_node node)
{
    for (uint32_t i = 0; i <= s->depth; i++)
        if (s->defined[node] == 1 + s->scopes[i])
            return true;
    return false;
}

static int verify_entry(const struct bw_ir *ir, struct scope_state *s, bw_node node, struct bw_err *err)
{
    enum bw_op op = bw_ir_op(ir, node);
    const char *fault = node_fault(ir, node);
    if (fault)
        return refuse(ir, node, err, fault);
    if (op == BW_OP_LOOP) {
        if (s->depth == LOOPS_MAX)
            return refuse(ir, node, err, "loops nest too deeply");
        s->scopes[++s->depth] = ++s->scope_count;
        s->ranges[s->depth] = bw_ir_source(ir, node, 0);
        s->defined[s->ranges[s->depth]] = 1 + s->scope_count;
        return 0;
    }
    if (op == BW_OP_END_LOOP) {
        if (!s->depth || s->ranges[s->depth] != bw_ir_source(ir, node, 0))
            return refuse(ir, node, err, "not the innermost loop");
        s->depth--;
        return 0;
    }
    for (uint32_t i = 0; i < bw_ir_source_count(ir, node); i++) {
        bw_node source = bw_ir_source(ir, node, i);
        bool anywhere = bw_ir_op(ir, source) == BW_OP_PARAM || bw_ir_op(ir, source) == BW_OP_LOCAL;
        if (!anywhere && !visible(s, source))
            return refuse(ir, node, err, "a source that is not computed");
    }
    s->defined[node] = 1 + s->scopes[s->depth];
    return 0;
}

int bw_verify_linear(const struct bw_linear *linear, struct bw_err *err)
{
    struct scope_state s = {.defined = calloc(bw_ir_count(linear->ir), sizeof *s.defined)};
    int rc = s.defined ? 0 : bw_fail(err, -ENOMEM, "verify", "%u nodes", bw_ir_count(linear->ir));
    for (size_t i = 0; i < linear->list.count && !rc; i++)
        rc = verify_entry(linear->ir, &s, linear->list.data[i], err);
    if (!rc && s.depth)
        rc = bw_fail(err, -EINVAL, "verify", "a loop without an end");
    free(s.defined);
    return rc;
}
