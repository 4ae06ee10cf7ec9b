/* Elementwise builders that are one IR op, or a few. What needs a polynomial is in tensor_math.c. */
#include <errno.h>
#include <math.h>

#include "base/text.h"
#include "compiler/tensor_internal.h"

static bool uniform_is(const struct bw_tensor_graph *g, bw_node uniform, double wanted)
{
    int64_t integer;
    double real;
    if (bw_ir_const_value_int(g->ir, uniform, &integer))
        return (double)integer == wanted;
    return bw_ir_const_value_float(g->ir, uniform, &real) && real == wanted &&
           signbit(real) == signbit(wanted);
}

/* Does `op` with this constant on its right leave the left side as it is? x + 0.0 does not: it turns -0 into
 * 0. */
static bool right_identity(const struct bw_tensor_graph *g, enum bw_op op, bw_node uniform)
{
    bool is_float = bw_dtype_is_float(bw_ir_dtype(g->ir, uniform));
    switch (op) {
    case BW_OP_ADD:
        return uniform_is(g, uniform, is_float ? -0.0 : 0.0);
    case BW_OP_SUB:
        return uniform_is(g, uniform, 0.0);
    case BW_OP_MUL:
    case BW_OP_DIV:
        return uniform_is(g, uniform, 1.0);
    default:
        return false;
    }
}

static bw_node expand_result(struct bw_tensor_graph *g, bw_node scalar, const struct bw_shape *shape)
{
    return scalar ? bw_tensor_full_node(g, scalar, shape) : 0;
}

bw_node bw_tensor_unary_node(struct bw_tensor_graph *g, enum bw_op op, bw_node x)
{
    bw_node uniform = bw_tensor_uniform_node(g, x);
    if (uniform) {
        struct bw_shape shape = *bw_ir_shape(g->ir, x);
        return expand_result(g, bw_ir_unary(g->ir, op, uniform), &shape);
    }
    return x ? bw_ir_unary(g->ir, op, x) : 0;
}

/* "[2,3]" */
static void shape_add(struct bw_text *text, const struct bw_shape *shape)
{
    for (uint32_t i = 0; i < shape->rank; i++)
        bw_text_add(text, "%s%lld", i ? "," : "[", (long long)shape->dims[i]);
    bw_text_add(text, shape->rank ? "]" : "[]");
}

/* c may be 0. */
static bw_node broadcast_fail(struct bw_tensor_graph *g, const char *op, bw_node a, bw_node b, bw_node c)
{
    const bw_node nodes[] = {a, b, c};
    struct bw_text text = {0};
    for (uint32_t i = 0; i < 3 && nodes[i]; i++) {
        bw_text_add(&text, "%s", i ? ", " : "");
        shape_add(&text, bw_ir_shape(g->ir, nodes[i]));
    }
    bw_ir_fail(g->ir, -EINVAL, "%s: shapes do not broadcast: %s", op, bw_text_string(&text));
    bw_text_free(&text);
    return 0;
}

bw_node bw_tensor_binary_node(struct bw_tensor_graph *g, enum bw_op op, bw_node a, bw_node b)
{
    struct bw_shape shape;
    if (!a || !b)
        return 0;
    if (!bw_shape_broadcast(bw_ir_shape(g->ir, a), bw_ir_shape(g->ir, b), &shape))
        return broadcast_fail(g, bw_op_name(op), a, b, 0);
    bw_node left = bw_tensor_uniform_node(g, a), right = bw_tensor_uniform_node(g, b);
    bool one_dtype = bw_ir_dtype(g->ir, a) == bw_ir_dtype(g->ir, b);
    if (left && right)
        return expand_result(g, bw_ir_binary(g->ir, op, left, right), &shape);
    if (right && one_dtype && right_identity(g, op, right))
        return bw_tensor_broadcast_node(g, a, &shape);
    if (left && one_dtype && (op == BW_OP_ADD || op == BW_OP_MUL) && right_identity(g, op, left))
        return bw_tensor_broadcast_node(g, b, &shape);
    return bw_ir_binary(g->ir, op, bw_tensor_broadcast_node(g, a, &shape),
                        bw_tensor_broadcast_node(g, b, &shape));
}

bw_node bw_tensor_where_node(struct bw_tensor_graph *g, bw_node condition, bw_node a, bw_node b)
{
    struct bw_shape shape;
    if (!condition || !a || !b)
        return 0;
    if (!bw_shape_broadcast(bw_ir_shape(g->ir, a), bw_ir_shape(g->ir, b), &shape) ||
        !bw_shape_broadcast(&shape, bw_ir_shape(g->ir, condition), &shape))
        return broadcast_fail(g, "WHERE", condition, a, b);
    bw_node known = bw_tensor_uniform_node(g, condition);
    int64_t taken;
    if (known && bw_ir_const_value_int(g->ir, known, &taken))
        return bw_tensor_broadcast_node(g, taken ? a : b, &shape);
    return bw_ir_ternary(g->ir, BW_OP_WHERE, bw_tensor_broadcast_node(g, condition, &shape),
                         bw_tensor_broadcast_node(g, a, &shape), bw_tensor_broadcast_node(g, b, &shape));
}

bw_tensor bw_tensor_where(struct bw_tensor_graph *g, bw_tensor condition, bw_tensor a, bw_tensor b)
{
    return bw_tensor_of(bw_tensor_where_node(g, condition.id, a.id, b.id));
}

bw_tensor bw_tensor_cast(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor x)
{
    if (!bw_dtype_bytes(dtype))
        return bw_tensor_fail(g, -EINVAL, "cast to %s", bw_dtype_name(dtype));
    bw_node uniform = x.id ? bw_tensor_uniform_node(g, x.id) : 0;
    if (uniform && uniform != x.id) {
        struct bw_shape shape = *bw_ir_shape(g->ir, x.id);
        return bw_tensor_of(expand_result(g, bw_ir_cast(g->ir, dtype, uniform), &shape));
    }
    return bw_tensor_of(bw_ir_cast(g->ir, dtype, x.id));
}

bw_tensor bw_tensor_bitcast(struct bw_tensor_graph *g, enum bw_dtype dtype, bw_tensor x)
{
    return bw_tensor_of(bw_ir_bitcast(g->ir, dtype, x.id));
}

#define UNARY(name, op)                                                 \
    bw_tensor bw_tensor_##name(struct bw_tensor_graph *g, bw_tensor x)  \
    {                                                                   \
        return bw_tensor_of(bw_tensor_unary_node(g, BW_OP_##op, x.id)); \
    }
UNARY(not, NOT)
UNARY(reciprocal, RECIPROCAL)
UNARY(sqrt, SQRT)
UNARY(exp2, EXP2)
UNARY(log2, LOG2)
UNARY(sin, SIN)
UNARY(trunc, TRUNC)
UNARY(floor, FLOOR)
UNARY(ceil, CEIL)
UNARY(round_even, ROUND_EVEN)
UNARY(abs, ABS)
UNARY(neg, NEG)

#define BINARY(name, op)                                                            \
    bw_tensor bw_tensor_##name(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b) \
    {                                                                               \
        return bw_tensor_of(bw_tensor_binary_node(g, BW_OP_##op, a.id, b.id));      \
    }
BINARY(add, ADD)
BINARY(sub, SUB)
BINARY(mul, MUL)
BINARY(div, DIV)
BINARY(floor_div, FLOOR_DIV)
BINARY(floor_mod, FLOOR_MOD)
BINARY(trunc_mod, TRUNC_MOD)
BINARY(max, MAX)
BINARY(min, MIN)
BINARY(and, AND)
BINARY(or, OR)
BINARY(xor, XOR)
BINARY(shl, SHL)
BINARY(shr, SHR)
BINARY(less, LESS)
BINARY(equal, EQUAL)
BINARY(not_equal, NOT_EQUAL)

bw_tensor bw_tensor_greater(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    return bw_tensor_less(g, b, a);
}

/* Not "no greater": that would be true for NaN. */
bw_tensor bw_tensor_less_equal(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    if (bw_dtype_is_float(bw_tensor_dtype(g, a)))
        return bw_tensor_or(g, bw_tensor_less(g, a, b), bw_tensor_equal(g, a, b));
    return bw_tensor_not(g, bw_tensor_less(g, b, a));
}

bw_tensor bw_tensor_greater_equal(struct bw_tensor_graph *g, bw_tensor a, bw_tensor b)
{
    return bw_tensor_less_equal(g, b, a);
}

bw_tensor bw_tensor_relu(struct bw_tensor_graph *g, bw_tensor x)
{
    return bw_tensor_max(g, x, bw_tensor_scalar(g, bw_tensor_dtype(g, x), 0));
}

/* -1, 0, 1; NaN and -0 stay what they are. */
bw_tensor bw_tensor_sign(struct bw_tensor_graph *g, bw_tensor x)
{
    enum bw_dtype dtype = bw_tensor_dtype(g, x);
    if (!x.id)
        return x;
    bw_tensor zero = bw_tensor_scalar(g, dtype, 0), one = bw_tensor_scalar(g, dtype, 1);
    bw_tensor below = x;
    if (bw_dtype_is_signed(dtype))
        below = bw_tensor_where(g, bw_tensor_less(g, x, zero), bw_tensor_scalar(g, dtype, -1), x);
    return bw_tensor_where(g, bw_tensor_less(g, zero, x), one, below);
}

bw_tensor bw_tensor_is_nan(struct bw_tensor_graph *g, bw_tensor x)
{
    return bw_tensor_not_equal(g, x, x);
}

bw_tensor bw_tensor_is_inf(struct bw_tensor_graph *g, bw_tensor x)
{
    if (!x.id)
        return x;
    return bw_tensor_equal(g, bw_tensor_abs(g, x), bw_tensor_scalar(g, bw_tensor_dtype(g, x), INFINITY));
}
