/* Rebuilding of graphs: see rewrite.h. Nodes are numbered sources first, so no walk here recurses. */
#include "compiler/rewrite.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
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

/* Values by node: an array for small graphs, a hash map where a few nodes of a large one are meant. */
struct node_map {
    bw_node *dense;
    struct bw_map sparse;
};

enum { DENSE_MAX = 1 << 15 }; /* nodes; below, clearing an array is cheaper than hashing */

static bw_node map_get(const struct node_map *map, bw_node node)
{
    uint64_t value = 0;
    if (map->dense)
        return map->dense[node];
    return bw_map_get(&map->sparse, node, &value) ? (bw_node)value : 0;
}

static int map_set(struct node_map *map, bw_node node, bw_node value)
{
    if (!map->dense)
        return bw_map_set(&map->sparse, node, value);
    map->dense[node] = value;
    return 0;
}

typedef BW_VEC(bw_node) node_list;

static int by_number(const void *a, const void *b)
{
    bw_node x = *(const bw_node *)a, y = *(const bw_node *)b;
    return (x > y) - (x < y);
}

/* Everything that the roots reach, sources first. Leaves a mark in map for each. */
static int collect(const struct bw_ir *ir, const bw_node *roots, uint32_t count, struct node_map *map,
                   node_list *list)
{
    node_list stack = {0};
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = bw_vec_push(&stack, roots[i]);
    while (stack.count && !rc) {
        bw_node node = stack.data[--stack.count];
        if (!node || map_get(map, node))
            continue;
        rc = map_set(map, node, 1);
        if (!rc)
            rc = bw_vec_push(list, node);
        for (uint32_t i = 0; i < bw_ir_source_count(ir, node) && !rc; i++)
            rc = bw_vec_push(&stack, bw_ir_source(ir, node, i));
    }
    bw_vec_free(&stack);
    if (!rc && list->count)
        qsort(list->data, list->count, sizeof *list->data, by_number);
    return rc;
}

static int rewrite_list(struct bw_ir *to, const struct bw_ir *from, const node_list *list,
                        struct node_map *map, bw_rewrite_fn fn, void *user)
{
    BW_VEC(bw_node) sources = {0};
    int rc = 0;
    for (size_t i = 0; i < list->count && !rc; i++) {
        bw_node node = list->data[i];
        uint32_t source_count = bw_ir_source_count(from, node);
        sources.count = 0;
        rc = bw_vec_reserve(&sources, source_count + 1);
        for (uint32_t k = 0; k < source_count && !rc; k++)
            sources.data[k] = map_get(map, bw_ir_source(from, node, k));
        bw_node made = rc   ? 0
                       : fn ? fn(user, to, from, node, sources.data)
                            : bw_ir_rebuild(to, from, node, sources.data);
        if (!rc && !made)
            rc = bw_ir_error(to, NULL) ? bw_ir_error(to, NULL) : -ENOMEM;
        if (!rc)
            rc = map_set(map, node, made);
    }
    bw_vec_free(&sources);
    return rc;
}

int bw_ir_rewrite(struct bw_ir *to, const struct bw_ir *from, bw_node *roots, uint32_t count,
                  bw_rewrite_fn fn, void *user)
{
    struct node_map map = {0};
    node_list list = {0};
    bool dense = bw_ir_count(from) <= DENSE_MAX;
    if (dense)
        map.dense = calloc(bw_ir_count(from), sizeof *map.dense);
    int rc = dense && !map.dense ? -ENOMEM : collect(from, roots, count, &map, &list);
    if (!rc)
        rc = rewrite_list(to, from, &list, &map, fn, user);
    for (uint32_t i = 0; !rc && i < count; i++)
        roots[i] = map_get(&map, roots[i]);
    bw_vec_free(&list);
    bw_map_free(&map.sparse);
    free(map.dense);
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
    return bw_ir_rewrite(ir, ir, &root, 1, substitute_node, &substitution) ? 0 : root;
}
