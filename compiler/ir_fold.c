/* Constant folding and identities of elementwise nodes, applied whenever a node is built.
 *
 * Float folding works in double and rounds once to the dtype, which is exact for + - * / and sqrt of f16,
 * bf16 and f32 (a double has more than 2p+2 bits of each). Identities keep NaN and signed zero: x*0 is not 0
 * for floats, x+(-0.0) is x. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compiler/ir_internal.h"

static int64_t int_floor_div(int64_t a, int64_t b)
{
    int64_t quotient = a / b;
    return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

/* Division traps in C where the IR defines a result. */
static int64_t fold_division(enum bw_op op, enum bw_dtype dtype, int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (!bw_dtype_is_signed(dtype)) {
        uint64_t x = (uint64_t)a, y = (uint64_t)b;
        return (int64_t)(op == BW_OP_DIV || op == BW_OP_FLOOR_DIV ? x / y : x % y);
    }
    if (b == -1) /* INT64_MIN / -1 wraps */
        return op == BW_OP_DIV || op == BW_OP_FLOOR_DIV ? (int64_t)(0 - (uint64_t)a) : 0;
    switch (op) {
    case BW_OP_DIV:
        return a / b;
    case BW_OP_FLOOR_DIV:
        return int_floor_div(a, b);
    case BW_OP_TRUNC_MOD:
        return a % b;
    default:
        return a - int_floor_div(a, b) * b;
    }
}

static int64_t fold_shift(enum bw_op op, enum bw_dtype dtype, int64_t a, int64_t count)
{
    int64_t width = 8 * bw_dtype_bytes(dtype);
    bool is_signed = bw_dtype_is_signed(dtype), over = count < 0 || count >= width;
    if (op == BW_OP_SHL)
        return over ? 0 : (int64_t)((uint64_t)a << count);
    if (is_signed)
        return a >> (over ? 63 : count);
    return over ? 0 : (int64_t)((uint64_t)a >> count);
}

static bool int_less(enum bw_dtype dtype, int64_t a, int64_t b)
{
    return bw_dtype_is_signed(dtype) ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t fold_int_binary(enum bw_op op, enum bw_dtype dtype, int64_t a, int64_t b)
{
    switch (op) {
    case BW_OP_ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case BW_OP_SUB:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case BW_OP_MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case BW_OP_MAX:
        return int_less(dtype, a, b) ? b : a;
    case BW_OP_MIN:
        return int_less(dtype, b, a) ? b : a;
    case BW_OP_AND:
        return a & b;
    case BW_OP_OR:
        return a | b;
    case BW_OP_XOR:
        return a ^ b;
    case BW_OP_SHL:
    case BW_OP_SHR:
        return fold_shift(op, dtype, a, b);
    case BW_OP_LESS:
        return int_less(dtype, a, b);
    case BW_OP_EQUAL:
        return a == b;
    case BW_OP_NOT_EQUAL:
        return a != b;
    default:
        return fold_division(op, dtype, a, b);
    }
}

/* False: leave it to run time (transcendentals differ between libraries in the last place). */
static bool fold_float(enum bw_op op, const double *x, double *value)
{
    switch (op) {
    case BW_OP_NEG:
        return *value = -x[0], true;
    case BW_OP_ABS:
        return *value = fabs(x[0]), true;
    case BW_OP_SQRT:
        return *value = sqrt(x[0]), true;
    case BW_OP_RECIPROCAL:
        return *value = 1.0 / x[0], true;
    case BW_OP_TRUNC:
        return *value = trunc(x[0]), true;
    case BW_OP_FLOOR:
        return *value = floor(x[0]), true;
    case BW_OP_CEIL:
        return *value = ceil(x[0]), true;
    case BW_OP_ROUND_EVEN:
        return *value = rint(x[0]), true;
    case BW_OP_ADD:
        return *value = x[0] + x[1], true;
    case BW_OP_SUB:
        return *value = x[0] - x[1], true;
    case BW_OP_MUL:
        return *value = x[0] * x[1], true;
    case BW_OP_DIV:
        return *value = x[0] / x[1], true;
    case BW_OP_TRUNC_MOD:
        return *value = fmod(x[0], x[1]), true;
    case BW_OP_MAX:
        return *value = isnan(x[0]) || isnan(x[1]) ? NAN : x[0] > x[1] ? x[0] : x[1], true;
    case BW_OP_MIN:
        return *value = isnan(x[0]) || isnan(x[1]) ? NAN : x[0] < x[1] ? x[0] : x[1], true;
    default:
        return false;
    }
}

static bw_node fold_cast(struct bw_ir *ir, enum bw_dtype to, bw_node x)
{
    int64_t integer;
    double real;
    if (bw_ir_const_value_int(ir, x, &integer)) {
        if (to == BW_BOOL)
            return bw_ir_const_int(ir, to, integer != 0);
        if (!bw_dtype_is_float(to))
            return bw_ir_const_int(ir, to, integer);
        bool wide_unsigned = bw_ir_dtype(ir, x) == BW_U64;
        if (to == BW_F32) /* one rounding, from the integer itself */
            return bw_ir_const_float(ir, to,
                                     (double)(wide_unsigned ? (float)(uint64_t)integer : (float)integer));
        return bw_ir_const_float(ir, to, wide_unsigned ? (double)(uint64_t)integer : (double)integer);
    }
    if (!bw_ir_const_value_float(ir, x, &real))
        return 0;
    if (bw_dtype_is_float(to))
        return bw_ir_const_float(ir, to, real);
    if (to == BW_BOOL)
        return bw_ir_const_int(ir, to, real != 0);
    return bw_ir_const_int(ir, to, bw_dtype_int_from(to, real));
}

static bw_node fold_constants(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, const bw_node *sources,
                              uint32_t count)
{
    int64_t ints[3] = {0};
    double reals[3] = {0}, value;
    bool all_int = true, all_real = true;
    for (uint32_t i = 0; i < count; i++) {
        all_int &= bw_ir_const_value_int(ir, sources[i], &ints[i]);
        all_real &= bw_ir_const_value_float(ir, sources[i], &reals[i]);
    }
    if (op == BW_OP_CAST)
        return fold_cast(ir, dtype, sources[0]);
    if (op == BW_OP_BITCAST || bw_op_class(op) == BW_OP_TERNARY || !(all_int || all_real))
        return 0;
    enum bw_dtype operand = bw_ir_dtype(ir, sources[0]);
    if (all_real) {
        if (op == BW_OP_LESS)
            return bw_ir_const_int(ir, dtype, reals[0] < reals[1]);
        if (op == BW_OP_EQUAL)
            return bw_ir_const_int(ir, dtype, reals[0] == reals[1]);
        if (op == BW_OP_NOT_EQUAL)
            return bw_ir_const_int(ir, dtype, reals[0] != reals[1]);
        return fold_float(op, reals, &value) ? bw_ir_const_float(ir, dtype, value) : 0;
    }
    switch (op) {
    case BW_OP_NEG:
        return bw_ir_const_int(ir, dtype, (int64_t)(0 - (uint64_t)ints[0]));
    case BW_OP_NOT:
        return bw_ir_const_int(ir, dtype, dtype == BW_BOOL ? !ints[0] : ~ints[0]);
    case BW_OP_ABS:
        return bw_ir_const_int(
            ir, dtype, bw_dtype_is_signed(dtype) && ints[0] < 0 ? (int64_t)(0 - (uint64_t)ints[0]) : ints[0]);
    case BW_OP_TRUNC:
    case BW_OP_FLOOR:
    case BW_OP_CEIL:
    case BW_OP_ROUND_EVEN:
        return sources[0];
    default:
        return bw_op_class(op) == BW_OP_BINARY
                   ? bw_ir_const_int(ir, dtype, fold_int_binary(op, operand, ints[0], ints[1]))
                   : 0;
    }
}

static bool is_int_const(const struct bw_ir *ir, bw_node node, int64_t wanted)
{
    int64_t value;
    return bw_ir_const_value_int(ir, node, &value) && value == wanted;
}

static bool is_float_const(const struct bw_ir *ir, bw_node node, double wanted)
{
    double value;
    return bw_ir_const_value_float(ir, node, &value) && !memcmp(&value, &wanted, sizeof value);
}

static bw_node fold_int_identity(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    switch (op) {
    case BW_OP_ADD:
    case BW_OP_OR:
    case BW_OP_XOR:
        return is_int_const(ir, b, 0) ? a : is_int_const(ir, a, 0) ? b : 0;
    case BW_OP_SUB:
    case BW_OP_SHL:
    case BW_OP_SHR:
        return is_int_const(ir, b, 0) ? a : 0;
    case BW_OP_MUL:
        if (is_int_const(ir, b, 1) || is_int_const(ir, a, 0))
            return a;
        return is_int_const(ir, a, 1) || is_int_const(ir, b, 0) ? b : 0;
    case BW_OP_DIV:
    case BW_OP_FLOOR_DIV:
        return is_int_const(ir, b, 1) || is_int_const(ir, a, 0) ? a : 0;
    case BW_OP_FLOOR_MOD:
    case BW_OP_TRUNC_MOD:
        return is_int_const(ir, b, 1)   ? bw_ir_const_int(ir, bw_ir_dtype(ir, a), 0)
               : is_int_const(ir, a, 0) ? a
                                        : 0;
    default:
        return 0;
    }
}

static bw_node fold_bool_identity(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    if (op == BW_OP_AND)
        return is_int_const(ir, a, 1) || is_int_const(ir, b, 0)   ? b
               : is_int_const(ir, b, 1) || is_int_const(ir, a, 0) ? a
                                                                  : 0;
    if (op == BW_OP_OR)
        return is_int_const(ir, a, 0) || is_int_const(ir, b, 1)   ? b
               : is_int_const(ir, b, 0) || is_int_const(ir, a, 1) ? a
                                                                  : 0;
    return 0;
}

static bw_node fold_float_identity(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    switch (op) {
    case BW_OP_ADD:
        return is_float_const(ir, b, -0.0) ? a : is_float_const(ir, a, -0.0) ? b : 0;
    case BW_OP_SUB:
        return is_float_const(ir, b, 0.0) ? a : 0;
    case BW_OP_MUL:
        return is_float_const(ir, b, 1.0) ? a : is_float_const(ir, a, 1.0) ? b : 0;
    case BW_OP_DIV:
        return is_float_const(ir, b, 1.0) ? a : 0;
    default:
        return 0;
    }
}

bw_node bw_ir_fold_elementwise(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, const bw_node *sources,
                               uint32_t count)
{
    bw_node folded = fold_constants(ir, op, dtype, sources, count);
    if (folded)
        return folded;
    if (op == BW_OP_WHERE) {
        if (sources[1] == sources[2] || is_int_const(ir, sources[0], 1))
            return sources[1];
        return is_int_const(ir, sources[0], 0) ? sources[2] : 0;
    }
    if (op == BW_OP_NOT && bw_ir_op(ir, sources[0]) == BW_OP_NOT)
        return bw_ir_source(ir, sources[0], 0);
    if (bw_op_class(op) != BW_OP_BINARY)
        return 0;
    bw_node a = sources[0], b = sources[1];
    bool same_matters_not = op == BW_OP_AND || op == BW_OP_OR || op == BW_OP_MAX || op == BW_OP_MIN;
    if (a == b && same_matters_not)
        return a;
    enum bw_dtype operand = bw_ir_dtype(ir, a);
    if (operand == BW_BOOL)
        return fold_bool_identity(ir, op, a, b);
    return bw_dtype_is_float(operand) ? fold_float_identity(ir, op, a, b) : fold_int_identity(ir, op, a, b);
}
