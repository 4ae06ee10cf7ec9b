/* From a kernel graph to a list: see linear.h.
 *
 * Blocks are loops that are open; each node is put into the innermost block that binds a range it depends on,
 * so that what does not change in a loop stands before it. FOLDs over the same ranges, in the same block,
 * none of which needs another, share one loop. */
#include "compiler/linear.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/kernel.h"
#include "compiler/lower.h"
#include "compiler/rewrite.h"

bw_node bw_ir_special(struct bw_ir *ir, enum bw_dtype dtype, enum bw_special which, int64_t size)
{
    assert(size > 0 && size < (int64_t)1 << 48);
    return bw_ir_add(ir, BW_OP_SPECIAL, dtype, (uint64_t)which | (uint64_t)size << 8, NULL, 0);
}

enum bw_special bw_ir_special_which(const struct bw_ir *ir, bw_node special)
{
    assert(bw_ir_op(ir, special) == BW_OP_SPECIAL);
    return (enum bw_special)(bw_ir_arg(ir, special) & 0xff);
}

bool bw_ir_is_group_fold(const struct bw_ir *ir, bw_node node)
{
    return node && bw_ir_op(ir, node) == BW_OP_FOLD &&
           bw_ir_op(ir, bw_ir_source(ir, node, 1)) == BW_OP_SPECIAL;
}

enum { DEPTH_MAX = 20000 }; /* of recursion over a fused expression, some 200 bytes of stack each */

/* Sets of ranges, as bits by place in linearizer.ranges. */
typedef uint64_t range_set;

struct block {
    struct block *outer;
    bw_node range; /* 0: the outermost */
    BW_VEC(bw_node) list;
    struct bw_map made; /* kernel node -> linear node */
};

struct fold_info {
    range_set closes, free;
    uint32_t level; /* length of the longest chain of FOLDs below */
};

struct linearizer {
    struct bw_ir *ir;
    struct bw_linear *linear;
    struct bw_kernel_ranges ranges;
    uint32_t node_count; /* of the kernel graph; later nodes are linear ones */
    range_set *free;     /* by kernel node */
    uint32_t *level;
    BW_VEC(bw_node) folds;
    struct block *block; /* innermost open */
    uint32_t accumulator_count;
    int depth;
    int rc;
};

static range_set range_bit(const struct linearizer *l, bw_node range)
{
    for (uint32_t i = 0; i < l->ranges.count; i++)
        if (l->ranges.list[i] == range)
            return (range_set)1 << i;
    assert(!"every range was listed");
    return 0;
}

static range_set fold_closes(const struct linearizer *l, bw_node fold)
{
    range_set closes = 0;
    for (uint32_t i = 1; i < bw_ir_source_count(l->ir, fold); i++)
        closes |= range_bit(l, bw_ir_source(l->ir, fold, i));
    return closes;
}

static int analyse(struct linearizer *l, const bool *reached)
{
    for (bw_node node = 1; node < l->node_count; node++) {
        if (!reached[node])
            continue;
        enum bw_op op = bw_ir_op(l->ir, node);
        for (uint32_t i = 0; i < bw_ir_source_count(l->ir, node); i++) {
            bw_node source = bw_ir_source(l->ir, node, i);
            l->free[node] |= l->free[source];
            l->level[node] = l->level[node] > l->level[source] ? l->level[node] : l->level[source];
        }
        if (op == BW_OP_RANGE)
            l->free[node] = range_bit(l, node);
        if (op != BW_OP_FOLD || bw_ir_is_group_fold(l->ir, node))
            continue;
        l->free[node] &= ~fold_closes(l, node);
        l->level[node]++;
        if (bw_vec_push(&l->folds, node))
            return -ENOMEM;
    }
    return 0;
}

/* The innermost open block that binds one of these ranges; the outermost when none does. */
static struct block *block_for(const struct linearizer *l, range_set ranges)
{
    struct block *block = l->block;
    while (block->outer && !(ranges & range_bit(l, block->range)))
        block = block->outer;
    return block;
}

/* Everything that these ranges need is open in block, and nothing less will do. */
static bool is_home(const struct linearizer *l, const struct block *block, range_set ranges)
{
    range_set open = 0, own = block->outer ? range_bit(l, block->range) : 0;
    for (const struct block *at = block; at->outer; at = at->outer)
        open |= range_bit(l, at->range);
    return !(ranges & ~open) && (ranges & own) == own;
}

static void block_open(struct linearizer *l, struct block *block, bw_node range)
{
    *block = (struct block){.outer = l->block, .range = range};
    l->block = block;
}

static void put(struct linearizer *l, struct block *block, bw_node node)
{
    if (!node || bw_vec_push(&block->list, node))
        l->rc = l->rc ? l->rc : -ENOMEM;
}

static void block_close(struct linearizer *l)
{
    struct block *block = l->block, *outer = block->outer;
    put(l, outer, bw_ir_add(l->ir, BW_OP_LOOP, BW_VOID, 0, &block->range, 1));
    for (size_t i = 0; i < block->list.count; i++)
        put(l, outer, block->list.data[i]);
    put(l, outer, bw_ir_add(l->ir, BW_OP_END_LOOP, BW_VOID, 0, &block->range, 1));
    bw_vec_free(&block->list);
    bw_map_free(&block->made);
    l->block = outer;
}

static bw_node emit(struct linearizer *l, bw_node node);

/* accumulator op value; a value that is itself op of parts is added part by part, so that products fuse with
 * the sum. */
static bw_node accumulate(struct linearizer *l, enum bw_op op, bw_node accumulator, bw_node value, int depth)
{
    if (bw_ir_op(l->ir, value) == op && depth < BW_KERNEL_RANGES_MAX * 8) {
        accumulator = accumulate(l, op, accumulator, bw_ir_source(l->ir, value, 0), depth + 1);
        return accumulate(l, op, accumulator, bw_ir_source(l->ir, value, 1), depth + 1);
    }
    bool product = op == BW_OP_ADD && bw_ir_op(l->ir, value) == BW_OP_MUL &&
                   bw_dtype_is_float(bw_ir_dtype(l->ir, value));
    bw_node next;
    if (product) {
        bw_node a = emit(l, bw_ir_source(l->ir, value, 0)), b = emit(l, bw_ir_source(l->ir, value, 1));
        bw_node sources[] = {a, b, accumulator};
        next = bw_ir_add(l->ir, BW_OP_MULTIPLY_ADD, bw_ir_dtype(l->ir, value), 0, sources, 3);
    } else {
        bw_node sources[] = {accumulator, emit(l, value)};
        next = bw_ir_add(l->ir, op, bw_ir_dtype(l->ir, value), 0, sources, 2);
    }
    put(l, l->block, next);
    return next;
}

/* One loop nest for all FOLDs like this one. */
static void emit_folds(struct linearizer *l, bw_node first)
{
    struct block *home = l->block, loops[BW_RANK_MAX];
    BW_VEC(bw_node) members = {0}, accumulators = {0};
    range_set closes = fold_closes(l, first);
    uint32_t depth = 0;
    for (size_t i = 0; i < l->folds.count && !l->rc; i++) {
        bw_node fold = l->folds.data[i];
        uint64_t known;
        if (l->level[fold] != l->level[first] || fold_closes(l, fold) != closes ||
            !is_home(l, home, l->free[fold]) || bw_map_get(&home->made, fold, &known))
            continue;
        bw_node initial =
            bw_ir_reduce_identity(l->ir, bw_ir_reduce_op(l->ir, fold), bw_ir_dtype(l->ir, fold));
        put(l, home, initial);
        bw_node accumulator = bw_ir_add(l->ir, BW_OP_ACCUMULATOR, bw_ir_dtype(l->ir, fold),
                                        l->accumulator_count++, &initial, 1);
        put(l, home, accumulator);
        if (bw_map_set(&home->made, fold, accumulator) || bw_vec_push(&members, fold) ||
            bw_vec_push(&accumulators, accumulator))
            l->rc = -ENOMEM;
    }
    for (uint32_t i = 1; i < bw_ir_source_count(l->ir, first); i++)
        block_open(l, &loops[depth++], bw_ir_source(l->ir, first, i));
    for (size_t i = 0; i < members.count && !l->rc; i++) {
        bw_node fold = members.data[i], accumulator = accumulators.data[i];
        bw_node next =
            accumulate(l, bw_ir_reduce_op(l->ir, fold), accumulator, bw_ir_source(l->ir, fold, 0), 0);
        bw_node sources[] = {accumulator, next};
        put(l, l->block, bw_ir_add(l->ir, BW_OP_ASSIGN, BW_VOID, 0, sources, 2));
    }
    while (depth-- > 0)
        block_close(l);
    bw_vec_free(&members);
    bw_vec_free(&accumulators);
}

static bw_node emit_in_block(struct linearizer *l, bw_node node)
{
    enum bw_op op = bw_ir_op(l->ir, node);
    uint64_t made;
    if (op == BW_OP_FOLD && !bw_ir_is_group_fold(l->ir, node)) {
        emit_folds(l, node);
        return bw_map_get(&l->block->made, node, &made) ? (bw_node)made : 0;
    }
    uint32_t count = bw_ir_source_count(l->ir, node);
    bw_node sources[4];
    assert(count <= 4);
    for (uint32_t i = 0; i < count; i++)
        sources[i] = emit(l, bw_ir_source(l->ir, node, i));
    bw_node copy = bw_ir_add(l->ir, op, bw_ir_dtype(l->ir, node), bw_ir_arg(l->ir, node), sources, count);
    put(l, l->block, copy);
    if (bw_map_set(&l->block->made, node, copy))
        l->rc = -ENOMEM;
    return copy;
}

/* The linear node for a kernel node, in the list already, in a block that is open. */
static bw_node emit(struct linearizer *l, bw_node node)
{
    uint64_t made;
    if (l->rc)
        return 0;
    if (l->depth >= DEPTH_MAX) {
        l->rc = -E2BIG;
        return 0;
    }
    if (bw_ir_op(l->ir, node) == BW_OP_RANGE || bw_ir_op(l->ir, node) == BW_OP_PARAM)
        return node;
    struct block *home = block_for(l, l->free[node]), *inner = l->block;
    if (bw_map_get(&home->made, node, &made))
        return (bw_node)made;
    l->depth++;
    l->block = home;
    bw_node copy = emit_in_block(l, node);
    l->block = inner;
    l->depth--;
    return copy;
}

static int emit_all(struct linearizer *l, bw_node sink)
{
    struct block root = {0}, loops[BW_KERNEL_RANGES_MAX];
    uint32_t depth = 0;
    l->block = &root;
    for (uint32_t i = 0; i < l->ranges.count; i++)
        if (bw_ir_range_kind(l->ir, l->ranges.list[i]) == BW_RANGE_LOOP)
            block_open(l, &loops[depth++], l->ranges.list[i]);
    for (uint32_t i = 0; i < bw_ir_source_count(l->ir, sink); i++)
        emit(l, bw_ir_source(l->ir, sink, i));
    while (depth-- > 0)
        block_close(l);
    for (size_t i = 0; i < root.list.count && !l->rc; i++)
        if (bw_vec_push(&l->linear->list, root.list.data[i]))
            l->rc = -ENOMEM;
    bw_vec_free(&root.list);
    bw_map_free(&root.made);
    return l->rc;
}

static int list_params(struct bw_linear *linear, const bool *reached, uint32_t count)
{
    for (bw_node node = 1; node < count; node++) {
        if (!reached[node] || bw_ir_op(linear->ir, node) != BW_OP_PARAM)
            continue;
        uint32_t number = bw_ir_param_number(linear->ir, node);
        if (number >= BW_LINEAR_PARAMS_MAX)
            return -E2BIG;
        while (linear->params.count <= number)
            if (bw_vec_push(&linear->params, 0))
                return -ENOMEM;
        linear->params.data[number] = node;
    }
    return 0;
}

int bw_linearize(struct bw_ir *ir, bw_node sink, struct bw_linear *linear, struct bw_err *err)
{
    *linear = (struct bw_linear){.ir = ir, .group_count = {1, 1, 1}, .item_count = 1};
    sink = bw_lower_launch(ir, sink, linear);
    sink = bw_lower_indexes(ir, sink);
    struct linearizer l = {.ir = ir, .linear = linear};
    if (!sink)
        return bw_ir_error(ir, err) ? bw_ir_error(ir, err)
                                    : bw_fail(err, -ENOMEM, "lower", "index arithmetic");
    if (!bw_kernel_ranges(ir, sink, &l.ranges))
        return bw_fail(err, -E2BIG, "lower", "a kernel of more than %d ranges", BW_KERNEL_RANGES_MAX);
    l.node_count = sink + 1;
    bool *reached = bw_ir_reachable(ir, &sink, 1);
    l.free = calloc(l.node_count, sizeof *l.free);
    l.level = calloc(l.node_count, sizeof *l.level);
    int rc = reached && l.free && l.level ? analyse(&l, reached) : -ENOMEM;
    if (!rc)
        rc = list_params(linear, reached, l.node_count);
    if (!rc)
        rc = emit_all(&l, sink);
    free(reached);
    free(l.free);
    free(l.level);
    bw_vec_free(&l.folds);
    if (rc) {
        bw_linear_free(linear);
        return bw_ir_error(ir, err)
                   ? bw_ir_error(ir, err)
                   : bw_fail(err, rc, "lower", "linear form of a kernel of %u nodes", l.node_count);
    }
    return 0;
}

void bw_linear_free(struct bw_linear *linear)
{
    bw_vec_free(&linear->list);
    bw_vec_free(&linear->params);
}
