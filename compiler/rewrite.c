/* Rebuilding of graphs: see rewrite.h. Nodes are numbered sources first, so no walk here recurses. */
#include "compiler/rewrite.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/symbolic.h"

bool *bw_ir_reachable(const struct bw_ir *ir, const bw_node *roots, uint32_t count)
{
    bool *reached = calloc(bw_ir_count(ir), sizeof *reached);
    bw_node last = 0;
    if (!reached)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        reached[roots[i]] = roots[i] != 0;
        last = roots[i] > last ? roots[i] : last;
    }
    for (bw_node node = last; node > 0; node--) {
        uint32_t source_count = reached[node] ? bw_ir_source_count(ir, node) : 0;
        for (uint32_t i = 0; i < source_count; i++)
            reached[bw_ir_source(ir, node, i)] = true;
    }
    return reached;
}

static uint64_t copied_arg(struct bw_ir *to, const struct bw_ir *from, bw_node node)
{
    uint64_t arg = bw_ir_arg(from, node);
    if (to == from)
        return arg;
    switch (bw_ir_op(from, node)) {
    case BW_OP_VARIABLE:
        return bw_ir_blob(to, bw_ir_blob_data(from, arg), sizeof(struct bw_variable));
    case BW_OP_LOCAL:
        return bw_ir_blob(to, bw_ir_blob_data(from, arg), sizeof(struct bw_local));
    default:
        return arg;
    }
}

/* where(g, load(.., g, _), x) is load(.., g, x): the gate of a pad moves into the load. */
static bw_node rebuild_where(struct bw_ir *to, const bw_node *sources)
{
    bw_node gate = sources[0], load = sources[1];
    if (bw_ir_op(to, load) == BW_OP_LOAD && bw_ir_source_count(to, load) == 4 &&
        bw_ir_source(to, load, 2) == gate && bw_ir_op(to, sources[2]) == BW_OP_CONST)
        return bw_ir_load(to, bw_ir_source(to, load, 0), bw_ir_source(to, load, 1), gate, sources[2]);
    return bw_ir_ternary(to, BW_OP_WHERE, gate, load, sources[2]);
}

bw_node bw_ir_rebuild(struct bw_ir *to, const struct bw_ir *from, bw_node node, const bw_node *sources)
{
    enum bw_op op = bw_ir_op(from, node);
    enum bw_dtype dtype = bw_ir_dtype(from, node);
    uint32_t count = bw_ir_source_count(from, node);
    for (uint32_t i = 0; i < count; i++)
        if (!sources[i])
            return 0;
    switch (bw_op_class(op)) {
    case BW_OP_UNARY:
        if (op == BW_OP_CAST)
            return bw_sym_cast(to, dtype, sources[0]);
        if (op == BW_OP_BITCAST)
            return bw_ir_bitcast(to, dtype, sources[0]);
        return op == BW_OP_NOT && dtype == BW_BOOL ? bw_sym_not(to, sources[0])
                                                   : bw_ir_unary(to, op, sources[0]);
    case BW_OP_BINARY:
        return bw_sym_binary(to, op, sources[0], sources[1]);
    case BW_OP_TERNARY:
        return op == BW_OP_WHERE ? rebuild_where(to, sources)
                                 : bw_ir_ternary(to, op, sources[0], sources[1], sources[2]);
    default:
        if (op == BW_OP_LOAD && count == 4)
            return bw_ir_load(to, sources[0], sources[1], sources[2], sources[3]);
        return bw_ir_add(to, op, dtype, copied_arg(to, from, node), sources, count);
    }
}

int bw_ir_rewrite(struct bw_ir *to, const struct bw_ir *from, bw_node *roots, uint32_t count,
                  bw_rewrite_fn fn, void *user, bw_node **map_out)
{
    bool *reached = bw_ir_reachable(from, roots, count);
    uint32_t node_count = bw_ir_count(from);
    bw_node *map = calloc(node_count, sizeof *map),
            *sources = malloc(sizeof *sources * (BW_IR_SOURCES_MAX + 1));
    int rc = reached && map && sources ? 0 : -ENOMEM;
    for (bw_node node = 1; !rc && node < node_count; node++) {
        if (!reached[node])
            continue;
        uint32_t source_count = bw_ir_source_count(from, node);
        for (uint32_t i = 0; i < source_count; i++)
            sources[i] = map[bw_ir_source(from, node, i)];
        map[node] = fn ? fn(user, to, from, node, sources) : bw_ir_rebuild(to, from, node, sources);
        if (!map[node])
            rc = bw_ir_error(to, NULL) ? bw_ir_error(to, NULL) : -ENOMEM;
    }
    for (uint32_t i = 0; !rc && i < count; i++)
        roots[i] = map[roots[i]];
    free(reached);
    free(sources);
    if (map_out && !rc)
        *map_out = map;
    else
        free(map);
    return rc;
}

struct substitution {
    const bw_node *from, *to;
    uint32_t count;
};

/* Appends the ranges (or launch numbers that took their place) that the expression contains to list, each
 * once. Index expressions are shallow. */
static uint32_t ranges_append(const struct bw_ir *ir, bw_node expression, bw_node *list, uint32_t count)
{
    if (bw_ir_op(ir, expression) == BW_OP_RANGE || bw_ir_op(ir, expression) == BW_OP_SPECIAL) {
        for (uint32_t i = 0; i < count; i++)
            if (list[i] == expression)
                return count;
        if (count < BW_RANK_MAX)
            list[count++] = expression;
        return count;
    }
    for (uint32_t i = 0; i < bw_ir_source_count(ir, expression); i++)
        count = ranges_append(ir, bw_ir_source(ir, expression, i), list, count);
    return count;
}

static bw_node substitute_node(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                               const bw_node *sources)
{
    const struct substitution *substitution = user;
    for (uint32_t i = 0; i < substitution->count; i++)
        if (substitution->from[i] == node)
            return substitution->to[i];
    if (bw_ir_op(from, node) != BW_OP_FOLD)
        return bw_ir_rebuild(to, from, node, sources);
    bw_node ranges[BW_RANK_MAX];
    uint32_t count = 0, source_count = bw_ir_source_count(from, node);
    for (uint32_t i = 1; i < source_count; i++)
        count = ranges_append(to, sources[i], ranges, count);
    return bw_ir_fold(to, bw_ir_reduce_op(from, node), sources[0], ranges, count);
}

bw_node bw_ir_substitute(struct bw_ir *ir, bw_node root, const bw_node *from, const bw_node *to,
                         uint32_t count)
{
    struct substitution substitution = {from, to, count};
    return bw_ir_rewrite(ir, ir, &root, 1, substitute_node, &substitution, NULL) ? 0 : root;
}
