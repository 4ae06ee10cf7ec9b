/* Derivatives by reverse accumulation: one rule per op, from the result back to the variables. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/tensor_internal.h"

struct sweep {
    struct bw_tensor_graph *g;
    BW_VEC(bw_node) nodes;   /* that the result is made of */
    struct bw_map dependent; /* those that depend on a variable -> 1 */
    struct bw_map gradients; /* node -> node */
};

static bw_tensor scalar_like(struct bw_tensor_graph *g, bw_tensor like, double value)
{
    return bw_tensor_scalar(g, bw_tensor_dtype(g, like), value);
}

static void contribute(struct sweep *s, bw_node source, bw_tensor gradient)
{
    uint64_t known, ignored;
    if (!bw_map_get(&s->dependent, source, &ignored))
        return;
    if (bw_map_get(&s->gradients, source, &known))
        gradient = bw_tensor_add(s->g, bw_tensor_of((bw_node)known), gradient);
    if (!gradient.id || bw_map_set(&s->gradients, source, gradient.id))
        bw_ir_fail(s->g->ir, -ENOMEM, "gradient of node %u", source);
}

/* d: of the node; a, b: its operands; y: itself. */
static bool unary_rule(struct sweep *s, bw_node node, bw_tensor d, bw_tensor a, bw_tensor y)
{
    struct bw_tensor_graph *g = s->g;
    bw_tensor result;
    switch (bw_ir_op(g->ir, node)) {
    case BW_OP_NEG:
        result = bw_tensor_neg(g, d);
        break;
    case BW_OP_RECIPROCAL: /* -1 / x^2 */
        result = bw_tensor_neg(g, bw_tensor_mul(g, d, bw_tensor_mul(g, y, y)));
        break;
    case BW_OP_SQRT:
        result = bw_tensor_div(g, d, bw_tensor_mul(g, y, scalar_like(g, y, 2)));
        break;
    case BW_OP_EXP2:
        result = bw_tensor_mul(g, d, bw_tensor_mul(g, y, scalar_like(g, y, M_LN2)));
        break;
    case BW_OP_LOG2:
        result = bw_tensor_div(g, d, bw_tensor_mul(g, a, scalar_like(g, a, M_LN2)));
        break;
    case BW_OP_SIN:
        result = bw_tensor_mul(g, d, bw_tensor_cos(g, a));
        break;
    case BW_OP_ABS:
        result = bw_tensor_mul(g, d, bw_tensor_sign(g, a));
        break;
    case BW_OP_CAST:
        if (!bw_dtype_is_float(bw_tensor_dtype(g, a)) || !bw_dtype_is_float(bw_tensor_dtype(g, y)))
            return true; /* steps: flat almost everywhere */
        result = bw_tensor_cast(g, bw_tensor_dtype(g, a), d);
        break;
    case BW_OP_TRUNC:
    case BW_OP_FLOOR:
    case BW_OP_CEIL:
    case BW_OP_ROUND_EVEN:
        return true;
    default:
        return false;
    }
    contribute(s, bw_ir_source(g->ir, node, 0), result);
    return true;
}

/* d where the condition holds, to one side, else to the other. */
static void choose(struct sweep *s, bw_tensor condition, bw_tensor d, bw_node taken, bw_node other)
{
    bw_tensor zero = scalar_like(s->g, d, 0);
    contribute(s, taken, bw_tensor_where(s->g, condition, d, zero));
    contribute(s, other, bw_tensor_where(s->g, condition, zero, d));
}

static bool binary_rule(struct sweep *s, bw_node node, bw_tensor d, bw_tensor a, bw_tensor b, bw_tensor y)
{
    struct bw_tensor_graph *g = s->g;
    switch (bw_ir_op(g->ir, node)) {
    case BW_OP_ADD:
        contribute(s, a.id, d);
        contribute(s, b.id, d);
        return true;
    case BW_OP_SUB:
        contribute(s, a.id, d);
        contribute(s, b.id, bw_tensor_neg(g, d));
        return true;
    case BW_OP_MUL:
        contribute(s, a.id, bw_tensor_mul(g, d, b));
        contribute(s, b.id, bw_tensor_mul(g, d, a));
        return true;
    case BW_OP_DIV:
        contribute(s, a.id, bw_tensor_div(g, d, b));
        contribute(s, b.id, bw_tensor_neg(g, bw_tensor_div(g, bw_tensor_mul(g, d, y), b)));
        return true;
    case BW_OP_MAX:
        choose(s, bw_tensor_less(g, a, b), d, b.id, a.id);
        return true;
    case BW_OP_MIN:
        choose(s, bw_tensor_less(g, b, a), d, b.id, a.id);
        return true;
    default:
        return false;
    }
}

/* Sums over what EXPAND repeated. */
static bw_tensor unexpand(struct sweep *s, bw_tensor d, const struct bw_shape *from)
{
    uint32_t repeated = 0;
    for (uint32_t i = 0; i < from->rank; i++)
        repeated |= (uint32_t)(from->dims[i] != bw_tensor_dims(s->g, d)[i]) << i;
    return bw_tensor_sum(s->g, d, repeated, true);
}

static bw_tensor unpermute(struct sweep *s, bw_tensor d, const struct bw_axes *axes)
{
    uint32_t back[BW_RANK_MAX];
    for (uint32_t i = 0; i < bw_tensor_rank(s->g, d); i++)
        back[axes->axes[i]] = i;
    return bw_tensor_permute(s->g, d, back);
}

/* PAD's inverse crops, SHRINK's pads with zeros. */
static bw_tensor unbound(struct sweep *s, bw_tensor d, const struct bw_shape *from,
                         const struct bw_bounds *bounds, bool shrunk)
{
    int64_t low[BW_RANK_MAX], high[BW_RANK_MAX];
    for (uint32_t i = 0; i < from->rank; i++) {
        low[i] = shrunk ? bounds->low[i] : -bounds->low[i];
        high[i] = shrunk ? from->dims[i] - bounds->high[i] : -bounds->high[i];
    }
    return bw_tensor_pad(s->g, d, low, high, 0);
}

static bool movement_rule(struct sweep *s, bw_node node, bw_tensor d)
{
    struct bw_tensor_graph *g = s->g;
    bw_node x = bw_ir_source(g->ir, node, 0);
    struct bw_shape from = *bw_ir_shape(g->ir, x);
    uint64_t arg = bw_ir_arg(g->ir, node);
    bw_tensor result;
    switch (bw_ir_op(g->ir, node)) {
    case BW_OP_RESHAPE:
        result = bw_tensor_reshape(g, d, from.rank, from.dims);
        break;
    case BW_OP_PERMUTE:
        result = unpermute(s, d, bw_ir_blob_data(g->ir, arg));
        break;
    case BW_OP_EXPAND:
        result = unexpand(s, d, &from);
        break;
    case BW_OP_PAD:
    case BW_OP_SHRINK:
        result = unbound(s, d, &from, bw_ir_blob_data(g->ir, arg), bw_ir_op(g->ir, node) == BW_OP_SHRINK);
        break;
    default: /* FLIP */
        result = bw_tensor_flip(g, d, (uint32_t)arg);
    }
    contribute(s, x, result);
    return true;
}

/* A sum gives its gradient to every element; the largest elements share theirs. */
static bool reduce_rule(struct sweep *s, bw_node node, bw_tensor d, bw_tensor x, bw_tensor y)
{
    struct bw_tensor_graph *g = s->g;
    enum bw_op op = bw_ir_reduce_op(g->ir, node);
    struct bw_shape from = *bw_ir_shape(g->ir, x.id);
    uint32_t axes = bw_ir_reduce_axes(g->ir, node);
    if (op == BW_OP_MAX || op == BW_OP_MIN) {
        bw_tensor chosen = bw_tensor_cast(g, bw_tensor_dtype(g, x), bw_tensor_equal(g, x, y));
        d = bw_tensor_mul(g, chosen, bw_tensor_div(g, d, bw_tensor_sum(g, chosen, axes, true)));
    } else if (op != BW_OP_ADD) {
        return false;
    }
    contribute(s, x.id, bw_tensor_expand(g, d, from.rank, from.dims));
    return true;
}

static bool apply_rule(struct sweep *s, bw_node node, bw_tensor d)
{
    const struct bw_ir *ir = s->g->ir;
    enum bw_op op = bw_ir_op(ir, node);
    uint32_t count = bw_ir_source_count(ir, node);
    bw_tensor a = bw_tensor_of(count > 0 ? bw_ir_source(ir, node, 0) : 0), y = bw_tensor_of(node);
    bw_tensor b = bw_tensor_of(count > 1 ? bw_ir_source(ir, node, 1) : 0);
    switch (bw_op_class(op)) {
    case BW_OP_UNARY:
        return unary_rule(s, node, d, a, y);
    case BW_OP_BINARY:
        return binary_rule(s, node, d, a, b, y);
    case BW_OP_MOVEMENT:
        return movement_rule(s, node, d);
    default:
        break;
    }
    if (op == BW_OP_WHERE)
        choose(s, a, d, b.id, bw_ir_source(ir, node, 2));
    else if (op == BW_OP_CONTIGUOUS)
        contribute(s, a.id, d);
    else if (op == BW_OP_REDUCE)
        return reduce_rule(s, node, d, a, y);
    else
        return false;
    return true;
}

static int node_order(const void *a, const void *b)
{
    bw_node x = *(const bw_node *)a, y = *(const bw_node *)b;
    return (x > y) - (x < y);
}

/* The nodes of y in order, and which of them depend on a variable. */
static int sweep_collect(struct sweep *s, bw_node y, const bw_tensor *x, uint32_t count)
{
    const struct bw_ir *ir = s->g->ir;
    struct bw_map seen = {0};
    uint64_t ignored;
    int rc = bw_vec_push(&s->nodes, y) || bw_map_set(&seen, y, 1) ? -ENOMEM : 0;
    for (size_t i = 0; !rc && i < s->nodes.count; i++)
        for (uint32_t k = 0; !rc && k < bw_ir_source_count(ir, s->nodes.data[i]); k++) {
            bw_node source = bw_ir_source(ir, s->nodes.data[i], k);
            if (!bw_map_get(&seen, source, &ignored))
                rc = bw_map_set(&seen, source, 1) || bw_vec_push(&s->nodes, source) ? -ENOMEM : 0;
        }
    bw_map_free(&seen);
    if (!rc)
        qsort(s->nodes.data, s->nodes.count, sizeof *s->nodes.data, node_order);
    for (uint32_t i = 0; !rc && i < count; i++)
        rc = bw_map_set(&s->dependent, x[i].id, 1);
    for (size_t i = 0; !rc && i < s->nodes.count; i++)
        for (uint32_t k = 0; !rc && k < bw_ir_source_count(ir, s->nodes.data[i]); k++)
            if (bw_map_get(&s->dependent, bw_ir_source(ir, s->nodes.data[i], k), &ignored))
                rc = bw_map_set(&s->dependent, s->nodes.data[i], 1);
    return rc;
}

static bool is_variable(const bw_tensor *x, uint32_t count, bw_node node)
{
    for (uint32_t i = 0; i < count; i++)
        if (x[i].id == node)
            return true;
    return false;
}

static void sweep_run(struct sweep *s, bw_tensor y, const bw_tensor *x, uint32_t count)
{
    contribute(
        s, y.id,
        bw_tensor_full(s->g, bw_tensor_dtype(s->g, y), bw_tensor_rank(s->g, y), bw_tensor_dims(s->g, y), 1));
    for (size_t i = s->nodes.count; i-- > 0;) {
        bw_node node = s->nodes.data[i];
        uint64_t gradient;
        if (is_variable(x, count, node) || !bw_map_get(&s->gradients, node, &gradient))
            continue;
        if (!apply_rule(s, node, bw_tensor_of((bw_node)gradient))) {
            bw_ir_fail(s->g->ir, -ENOTSUP, "derivative of %s", bw_op_name(bw_ir_op(s->g->ir, node)));
            return;
        }
    }
}

int bw_tensor_gradient(struct bw_tensor_graph *g, bw_tensor y, const bw_tensor *x, uint32_t count,
                       bw_tensor *gradients, struct bw_err *err)
{
    struct sweep s = {.g = g};
    int rc = bw_tensor_graph_error(g, err);
    if (!rc && (!y.id || !bw_dtype_is_float(bw_tensor_dtype(g, y))))
        rc = bw_fail(err, -EINVAL, "tensor", "derivative of what is no float");
    if (!rc && sweep_collect(&s, y.id, x, count))
        rc = bw_fail(err, -ENOMEM, "tensor", "derivative");
    if (!rc)
        sweep_run(&s, y, x, count);
    if (!rc)
        rc = bw_tensor_graph_error(g, err);
    for (uint32_t i = 0; !rc && i < count; i++) {
        uint64_t gradient;
        if (bw_map_get(&s.gradients, x[i].id, &gradient))
            gradients[i] = bw_tensor_of((bw_node)gradient);
        else /* y does not depend on it */
            gradients[i] = bw_tensor_full(g, bw_tensor_dtype(g, x[i]), bw_tensor_rank(g, x[i]),
                                          bw_tensor_dims(g, x[i]), 0);
    }
    bw_vec_free(&s.nodes);
    bw_map_free(&s.dependent);
    bw_map_free(&s.gradients);
    return rc;
}
