/* Interval analysis: inclusive bounds of integer and bool nodes. Contract in ir.h.
 *
 * Bounds are derived from those of the sources when a node is made: constant work per node, however much its
 * graph is shared. */
#include <assert.h>

#include "compiler/ir_internal.h"

struct interval {
    int64_t min, max;
};

static struct interval whole(enum bw_dtype dtype)
{
    return (struct interval){bw_dtype_int_min(dtype), bw_dtype_int_max(dtype)};
}

static int64_t saturate(__int128 value)
{
    return value < INT64_MIN ? INT64_MIN : value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    __int128 quotient = (__int128)a / b;
    return saturate(quotient - ((__int128)a % b != 0 && (a < 0) != (b < 0)));
}

static struct interval bounds(const struct bw_ir *ir, bw_node node)
{
    return (struct interval){ir->nodes.data[node].min, ir->nodes.data[node].max};
}

static struct interval corners(__int128 a, __int128 b, __int128 c, __int128 d)
{
    __int128 low = a < b ? a : b, high = a < b ? b : a;
    low = c < low ? c : low;
    low = d < low ? d : low;
    high = c > high ? c : high;
    high = d > high ? d : high;
    return (struct interval){saturate(low), saturate(high)};
}

/* Wrap-around of the dtype makes nothing known. */
static struct interval checked(enum bw_dtype dtype, struct interval result)
{
    struct interval all = whole(dtype);
    return result.min < all.min || result.max > all.max || result.min == INT64_MIN || result.max == INT64_MAX
               ? all
               : result;
}

static struct interval bounds_division(enum bw_op op, struct interval a, struct interval b,
                                       enum bw_dtype dtype)
{
    bool divides = op == BW_OP_FLOOR_DIV || (op == BW_OP_DIV && a.min >= 0);
    if (b.min <= 0)
        return whole(dtype);
    if (divides)
        return corners(floor_div(a.min, b.min), floor_div(a.min, b.max), floor_div(a.max, b.min),
                       floor_div(a.max, b.max));
    if (op == BW_OP_FLOOR_MOD || (op == BW_OP_TRUNC_MOD && a.min >= 0)) {
        if (a.min >= 0 && a.max < b.min)
            return a;
        if (b.min == b.max && floor_div(a.min, b.min) == floor_div(a.max, b.min)) {
            int64_t base = floor_div(a.min, b.min) * b.min;
            return (struct interval){a.min - base, a.max - base};
        }
        int64_t high = a.min >= 0 && a.max < b.max - 1 ? a.max : b.max - 1;
        return (struct interval){0, high};
    }
    return whole(dtype);
}

static struct interval bounds_compare(enum bw_op op, struct interval a, struct interval b)
{
    bool disjoint = a.max < b.min || b.max < a.min,
         same_point = a.min == a.max && b.min == b.max && a.min == b.min;
    switch (op) {
    case BW_OP_LESS:
        return (struct interval){a.max < b.min, a.min < b.max};
    case BW_OP_EQUAL:
        return (struct interval){same_point, !disjoint};
    default:
        return (struct interval){disjoint, !same_point};
    }
}

static struct interval bounds_bits(enum bw_op op, struct interval a, struct interval b, enum bw_dtype dtype)
{
    if (a.min < 0 || b.min < 0)
        return whole(dtype);
    if (op == BW_OP_AND)
        return (struct interval){0, a.max < b.max ? a.max : b.max};
    /* OR and XOR stay below the next power of two of the larger. */
    uint64_t top = (uint64_t)(a.max > b.max ? a.max : b.max);
    int64_t high = top == 0 ? 0 : (int64_t)(((1ull << (63 - __builtin_clzll(top))) << 1) - 1);
    return (struct interval){op == BW_OP_OR ? (a.min > b.min ? a.min : b.min) : 0, high};
}

static struct interval bounds_shift(enum bw_op op, struct interval a, struct interval count,
                                    enum bw_dtype dtype)
{
    if (count.min != count.max || count.min < 0 || count.min > 62)
        return whole(dtype);
    if (op == BW_OP_SHR)
        return (struct interval){a.min >> count.min, a.max >> count.min};
    __int128 factor = (__int128)1 << count.min;
    return checked(dtype, corners(a.min * factor, a.max * factor, a.min * factor, a.max * factor));
}

static struct interval bounds_binary(const struct bw_ir *ir, bw_node node, enum bw_op op, enum bw_dtype dtype)
{
    bw_node left = bw_ir_source(ir, node, 0), right = bw_ir_source(ir, node, 1);
    enum bw_dtype operand = bw_ir_dtype(ir, left);
    if (bw_dtype_is_float(operand) || operand == BW_U64) /* u64 does not fit the interval type */
        return whole(dtype);
    struct interval a = bounds(ir, left), b = bounds(ir, right);
    switch (op) {
    case BW_OP_ADD:
        return checked(
            dtype, (struct interval){saturate((__int128)a.min + b.min), saturate((__int128)a.max + b.max)});
    case BW_OP_SUB:
        return checked(
            dtype, (struct interval){saturate((__int128)a.min - b.max), saturate((__int128)a.max - b.min)});
    case BW_OP_MUL:
        return checked(dtype, corners((__int128)a.min * b.min, (__int128)a.min * b.max,
                                      (__int128)a.max * b.min, (__int128)a.max * b.max));
    case BW_OP_DIV:
    case BW_OP_FLOOR_DIV:
    case BW_OP_FLOOR_MOD:
    case BW_OP_TRUNC_MOD:
        return checked(dtype, bounds_division(op, a, b, dtype));
    case BW_OP_MAX:
        return (struct interval){a.min > b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
    case BW_OP_MIN:
        return (struct interval){a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
    case BW_OP_AND:
    case BW_OP_OR:
    case BW_OP_XOR:
        return bounds_bits(op, a, b, dtype);
    case BW_OP_SHL:
    case BW_OP_SHR:
        return bounds_shift(op, a, b, dtype);
    default:
        return bounds_compare(op, a, b);
    }
}

static struct interval bounds_cast(const struct bw_ir *ir, bw_node x, enum bw_dtype dtype)
{
    struct interval all = whole(dtype);
    enum bw_dtype from = bw_ir_dtype(ir, x);
    if (bw_dtype_is_float(from) || from == BW_U64)
        return all;
    struct interval a = bounds(ir, x);
    if (dtype == BW_BOOL)
        return (struct interval){a.min > 0 || a.max < 0, a.min != 0 || a.max != 0};
    return a.min >= all.min && a.max <= all.max ? a : all;
}

static struct interval bounds_unary(const struct bw_ir *ir, bw_node node, enum bw_op op, enum bw_dtype dtype)
{
    bw_node x = bw_ir_source(ir, node, 0);
    if (op == BW_OP_CAST)
        return bounds_cast(ir, x, dtype);
    if (op == BW_OP_BITCAST || dtype == BW_U64)
        return whole(dtype);
    struct interval a = bounds(ir, x);
    switch (op) {
    case BW_OP_NEG:
        return checked(dtype, (struct interval){saturate(-(__int128)a.max), saturate(-(__int128)a.min)});
    case BW_OP_NOT:
        return dtype == BW_BOOL ? (struct interval){!a.max, !a.min} : whole(dtype);
    case BW_OP_ABS:
        if (a.min >= 0)
            return a;
        return a.min == INT64_MIN ? whole(dtype) : (struct interval){0, -a.min > a.max ? -a.min : a.max};
    default:
        return a;
    }
}

static struct interval bounds_leaf(const struct bw_ir *ir, bw_node node, enum bw_op op, enum bw_dtype dtype)
{
    switch (op) {
    case BW_OP_CONST: {
        int64_t value = (int64_t)bw_ir_arg(ir, node);
        return dtype == BW_U64 && value < 0 ? whole(dtype) : (struct interval){value, value};
    }
    case BW_OP_INDEXES: {
        int64_t size = bw_ir_shape(ir, node)->dims[bw_ir_indexes_axis(ir, node)];
        return checked(dtype, (struct interval){0, size > 0 ? size - 1 : 0});
    }
    case BW_OP_RANGE: {
        int64_t size = bounds(ir, bw_ir_source(ir, node, 0)).max;
        return (struct interval){0, size > 0 ? size - 1 : 0};
    }
    case BW_OP_SPECIAL: { /* arg: which in the low 8 bits, size above */
        int64_t size = (int64_t)(bw_ir_arg(ir, node) >> 8);
        return (struct interval){0, size > 0 ? size - 1 : 0};
    }
    case BW_OP_VARIABLE: {
        const struct bw_variable *variable = bw_ir_blob_data(ir, bw_ir_arg(ir, node));
        return (struct interval){variable->min, variable->max};
    }
    default:
        return whole(dtype);
    }
}

static struct interval derive(const struct bw_ir *ir, bw_node node)
{
    enum bw_op op = bw_ir_op(ir, node);
    enum bw_dtype dtype = bw_ir_dtype(ir, node);
    if (bw_dtype_is_float(dtype) || dtype == BW_VOID)
        return whole(dtype);
    switch (bw_op_class(op)) {
    case BW_OP_BINARY:
        return bounds_binary(ir, node, op, dtype);
    case BW_OP_UNARY:
        return bounds_unary(ir, node, op, dtype);
    case BW_OP_MOVEMENT:
        return op == BW_OP_PAD ? whole(dtype) : bounds(ir, bw_ir_source(ir, node, 0));
    case BW_OP_TERNARY:
        if (op == BW_OP_WHERE) {
            struct interval a = bounds(ir, bw_ir_source(ir, node, 1));
            struct interval b = bounds(ir, bw_ir_source(ir, node, 2));
            return (struct interval){a.min < b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
        }
        return whole(dtype);
    default:
        if (op == BW_OP_GATHER || op == BW_OP_CONTIGUOUS)
            return bounds(ir, bw_ir_source(ir, node, 0));
        return bounds_leaf(ir, node, op, dtype);
    }
}

void bw_ir_bounds_derive(struct bw_ir *ir, bw_node node)
{
    struct interval result = derive(ir, node);
    assert(result.min <= result.max);
    ir->nodes.data[node].min = result.min;
    ir->nodes.data[node].max = result.max;
}

void bw_ir_bounds(const struct bw_ir *ir, bw_node node, int64_t *min, int64_t *max)
{
    struct interval result = bounds(ir, node);
    *min = result.min;
    *max = result.max;
}
