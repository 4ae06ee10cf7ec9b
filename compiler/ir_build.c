/* Builders: pack args, check dtypes, remove what is nothing. Contract in ir.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "compiler/ir_internal.h"

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

bw_node bw_ir_const_int(struct bw_ir *ir, enum bw_dtype dtype, int64_t value)
{
    if (bw_dtype_is_float(dtype))
        return bw_ir_const_float(ir, dtype, (double)value);
    unsigned bits = 8 * bw_dtype_bytes(dtype);
    if (dtype == BW_BOOL)
        value = value != 0;
    else if (bits < 64) /* wrap into the type */
        value = bw_dtype_is_signed(dtype) ? (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits)
                                          : (int64_t)((uint64_t)value & ((1ull << bits) - 1));
    return bw_ir_add(ir, BW_OP_CONST, dtype, (uint64_t)value, NULL, 0);
}

bw_node bw_ir_const_float(struct bw_ir *ir, enum bw_dtype dtype, double value)
{
    switch (dtype) {
    case BW_F16:
        value = (double)bw_f16_to_f32(bw_f16_from_f64(value));
        break;
    case BW_BF16:
        value = (double)bw_bf16_to_f32(bw_bf16_from_f64(value));
        break;
    case BW_F32:
        value = (double)(float)value;
        break;
    case BW_F64:
        break;
    default:
        return bw_ir_fail(ir, -EINVAL, "float constant of %s", bw_dtype_name(dtype));
    }
    return bw_ir_add(ir, BW_OP_CONST, dtype, bits_of(value), NULL, 0);
}

static uint64_t numbered_shape(struct bw_ir *ir, uint32_t number, const struct bw_shape *shape)
{
    int64_t packed[2 + BW_RANK_MAX] = {number, shape->rank};
    if (shape->rank > BW_RANK_MAX)
        return bw_ir_fail(ir, -E2BIG, "rank %u (at most %d)", shape->rank, BW_RANK_MAX);
    memcpy(packed + 2, shape->dims, shape->rank * sizeof packed[0]);
    return bw_ir_blob(ir, packed, (2 + shape->rank) * (uint32_t)sizeof packed[0]);
}

bw_node bw_ir_buffer(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, const struct bw_shape *shape)
{
    uint64_t blob = numbered_shape(ir, number, shape);
    return blob ? bw_ir_add(ir, BW_OP_BUFFER, dtype, blob, NULL, 0) : 0;
}

uint32_t bw_ir_buffer_number(const struct bw_ir *ir, bw_node buffer)
{
    assert(bw_ir_op(ir, buffer) == BW_OP_BUFFER);
    return (uint32_t) * (const int64_t *)bw_ir_blob_data(ir, bw_ir_arg(ir, buffer));
}

bw_node bw_ir_indexes(struct bw_ir *ir, enum bw_dtype dtype, const struct bw_shape *shape, uint32_t axis)
{
    if (axis >= shape->rank || !bw_dtype_is_int(dtype))
        return bw_ir_fail(ir, -EINVAL, "INDEXES along axis %u of rank %u in %s", axis, shape->rank,
                          bw_dtype_name(dtype));
    uint64_t blob = numbered_shape(ir, axis, shape);
    return blob ? bw_ir_add(ir, BW_OP_INDEXES, dtype, blob, NULL, 0) : 0;
}

uint32_t bw_ir_indexes_axis(const struct bw_ir *ir, bw_node indexes)
{
    assert(bw_ir_op(ir, indexes) == BW_OP_INDEXES);
    return (uint32_t) * (const int64_t *)bw_ir_blob_data(ir, bw_ir_arg(ir, indexes));
}

/* Which dtypes an elementwise op takes. */
static bool dtype_accepted(enum bw_op op, enum bw_dtype dtype)
{
    bool is_float = bw_dtype_is_float(dtype), is_int = bw_dtype_is_int(dtype), is_bool = dtype == BW_BOOL;
    switch (op) {
    case BW_OP_RECIPROCAL:
    case BW_OP_SQRT:
    case BW_OP_EXP2:
    case BW_OP_LOG2:
    case BW_OP_SIN:
        return is_float;
    case BW_OP_FLOOR_DIV:
    case BW_OP_FLOOR_MOD:
    case BW_OP_SHL:
    case BW_OP_SHR:
        return is_int;
    case BW_OP_NOT:
    case BW_OP_AND:
    case BW_OP_OR:
    case BW_OP_XOR:
        return is_int || is_bool;
    case BW_OP_MAX:
    case BW_OP_MIN:
    case BW_OP_LESS:
    case BW_OP_EQUAL:
    case BW_OP_NOT_EQUAL:
    case BW_OP_WHERE:
    case BW_OP_CAST:
    case BW_OP_BITCAST:
        return is_int || is_float || is_bool;
    default:
        return is_int || is_float;
    }
}

static bw_node elementwise(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, const bw_node *sources,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!sources[i])
            return 0;
    enum bw_dtype operand = bw_ir_dtype(ir, sources[count - 1]);
    if (op == BW_OP_SHL || op == BW_OP_SHR)
        operand = dtype;
    if (!dtype_accepted(op, operand))
        return bw_ir_fail(ir, -EINVAL, "%s of %s", bw_op_name(op), bw_dtype_name(operand));
    struct bw_shape shape;
    if (bw_ir_shape_derive(ir, op, dtype, 0, sources, count, &shape))
        return 0;
    bw_node folded = bw_ir_fold_elementwise(ir, op, dtype, sources, count);
    return folded ? folded : bw_ir_add(ir, op, dtype, 0, sources, count);
}

bw_node bw_ir_unary(struct bw_ir *ir, enum bw_op op, bw_node x)
{
    assert(bw_op_class(op) == BW_OP_UNARY && op != BW_OP_CAST && op != BW_OP_BITCAST);
    return elementwise(ir, op, bw_ir_dtype(ir, x), &x, 1);
}

bw_node bw_ir_binary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b)
{
    assert(bw_op_class(op) == BW_OP_BINARY);
    bool compare = op == BW_OP_LESS || op == BW_OP_EQUAL || op == BW_OP_NOT_EQUAL;
    bw_node sources[] = {a, b};
    return elementwise(ir, op, compare ? BW_BOOL : bw_ir_dtype(ir, a), sources, 2);
}

bw_node bw_ir_ternary(struct bw_ir *ir, enum bw_op op, bw_node a, bw_node b, bw_node c)
{
    assert(bw_op_class(op) == BW_OP_TERNARY);
    bw_node sources[] = {a, b, c};
    return elementwise(ir, op, bw_ir_dtype(ir, c), sources, 3);
}

bw_node bw_ir_cast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x)
{
    if (!x || bw_ir_dtype(ir, x) == dtype)
        return x;
    return elementwise(ir, BW_OP_CAST, dtype, &x, 1);
}

bw_node bw_ir_bitcast(struct bw_ir *ir, enum bw_dtype dtype, bw_node x)
{
    if (!x || bw_ir_dtype(ir, x) == dtype)
        return x;
    return elementwise(ir, BW_OP_BITCAST, dtype, &x, 1);
}

static bool same_shape(const struct bw_shape *a, const struct bw_shape *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]);
}

bw_node bw_ir_reshape(struct bw_ir *ir, bw_node x, const struct bw_shape *shape)
{
    if (!x)
        return 0;
    if (bw_ir_op(ir, x) == BW_OP_RESHAPE)
        x = bw_ir_source(ir, x, 0);
    if (same_shape(bw_ir_shape(ir, x), shape))
        return x;
    uint64_t blob = shape->rank > BW_RANK_MAX
                        ? bw_ir_fail(ir, -E2BIG, "rank %u (at most %d)", shape->rank, BW_RANK_MAX)
                        : bw_ir_shape_blob(ir, shape);
    return blob ? bw_ir_add(ir, BW_OP_RESHAPE, bw_ir_dtype(ir, x), blob, &x, 1) : 0;
}

bw_node bw_ir_permute(struct bw_ir *ir, bw_node x, const uint32_t *axes)
{
    if (!x)
        return 0;
    struct bw_axes packed = {{0}};
    uint32_t rank = bw_ir_shape(ir, x)->rank;
    bool identity = true;
    for (uint32_t i = 0; i < rank; i++) {
        packed.axes[i] = axes[i];
        identity &= axes[i] == i;
    }
    if (identity)
        return x;
    if (bw_ir_op(ir, x) == BW_OP_PERMUTE) { /* permutations compose */
        const struct bw_axes *inner = bw_ir_blob_data(ir, bw_ir_arg(ir, x));
        for (uint32_t i = 0; i < rank; i++)
            if (axes[i] < rank)
                packed.axes[i] = inner->axes[axes[i]];
        return bw_ir_permute(ir, bw_ir_source(ir, x, 0), packed.axes);
    }
    uint64_t blob = bw_ir_blob(ir, &packed, sizeof packed);
    return blob ? bw_ir_add(ir, BW_OP_PERMUTE, bw_ir_dtype(ir, x), blob, &x, 1) : 0;
}

bw_node bw_ir_expand(struct bw_ir *ir, bw_node x, const struct bw_shape *shape)
{
    if (!x || same_shape(bw_ir_shape(ir, x), shape))
        return x;
    if (shape->rank > BW_RANK_MAX)
        return bw_ir_fail(ir, -E2BIG, "rank %u (at most %d)", shape->rank, BW_RANK_MAX);
    uint64_t blob = bw_ir_shape_blob(ir, shape);
    return blob ? bw_ir_add(ir, BW_OP_EXPAND, bw_ir_dtype(ir, x), blob, &x, 1) : 0;
}

static uint64_t bounds_blob(struct bw_ir *ir, bw_node x, const struct bw_bounds *bounds)
{
    struct bw_bounds packed = {{0}, {0}};
    uint32_t rank = bw_ir_shape(ir, x)->rank;
    memcpy(packed.low, bounds->low, rank * sizeof packed.low[0]);
    memcpy(packed.high, bounds->high, rank * sizeof packed.high[0]);
    return bw_ir_blob(ir, &packed, sizeof packed);
}

bw_node bw_ir_pad(struct bw_ir *ir, bw_node x, bw_node value, const struct bw_bounds *bounds)
{
    if (!x || !value)
        return 0;
    bool nothing = true;
    for (uint32_t i = 0; i < bw_ir_shape(ir, x)->rank; i++)
        nothing &= bounds->low[i] == 0 && bounds->high[i] == 0;
    if (nothing)
        return x;
    bw_node sources[] = {x, value};
    uint64_t blob = bounds_blob(ir, x, bounds);
    return blob ? bw_ir_add(ir, BW_OP_PAD, bw_ir_dtype(ir, x), blob, sources, 2) : 0;
}

bw_node bw_ir_shrink(struct bw_ir *ir, bw_node x, const struct bw_bounds *bounds)
{
    if (!x)
        return 0;
    const struct bw_shape *shape = bw_ir_shape(ir, x);
    bool nothing = true;
    for (uint32_t i = 0; i < shape->rank; i++)
        nothing &= bounds->low[i] == 0 && bounds->high[i] == shape->dims[i];
    if (nothing)
        return x;
    uint64_t blob = bounds_blob(ir, x, bounds);
    return blob ? bw_ir_add(ir, BW_OP_SHRINK, bw_ir_dtype(ir, x), blob, &x, 1) : 0;
}

bw_node bw_ir_flip(struct bw_ir *ir, bw_node x, uint32_t axes_mask)
{
    if (!x || !axes_mask)
        return x;
    return bw_ir_add(ir, BW_OP_FLIP, bw_ir_dtype(ir, x), axes_mask, &x, 1);
}

bw_node bw_ir_gather(struct bw_ir *ir, bw_node data, const bw_node *indexes)
{
    if (!data)
        return 0;
    bw_node sources[1 + BW_RANK_MAX] = {data};
    uint32_t rank = bw_ir_shape(ir, data)->rank;
    memcpy(sources + 1, indexes, rank * sizeof *indexes);
    return bw_ir_add(ir, BW_OP_GATHER, bw_ir_dtype(ir, data), 0, sources, rank + 1);
}

static bool reduce_op_accepted(enum bw_op op, enum bw_dtype dtype)
{
    switch (op) {
    case BW_OP_ADD:
    case BW_OP_MUL:
        return dtype != BW_BOOL && dtype != BW_VOID;
    case BW_OP_MAX:
    case BW_OP_MIN:
        return dtype != BW_VOID;
    case BW_OP_AND:
    case BW_OP_OR:
    case BW_OP_XOR:
        return bw_dtype_is_int(dtype) || dtype == BW_BOOL;
    default:
        return false;
    }
}

bw_node bw_ir_reduce(struct bw_ir *ir, enum bw_op op, bw_node x, uint32_t axes_mask)
{
    if (!x || !axes_mask)
        return x;
    if (!reduce_op_accepted(op, bw_ir_dtype(ir, x)))
        return bw_ir_fail(ir, -EINVAL, "REDUCE by %s of %s", bw_op_name(op),
                          bw_dtype_name(bw_ir_dtype(ir, x)));
    return bw_ir_add(ir, BW_OP_REDUCE, bw_ir_dtype(ir, x), op | (uint64_t)axes_mask << 8, &x, 1);
}

bw_node bw_ir_contiguous(struct bw_ir *ir, bw_node x)
{
    if (!x || bw_ir_op(ir, x) == BW_OP_CONTIGUOUS || bw_ir_op(ir, x) == BW_OP_BUFFER)
        return x;
    return bw_ir_add(ir, BW_OP_CONTIGUOUS, bw_ir_dtype(ir, x), 0, &x, 1);
}

bw_node bw_ir_param(struct bw_ir *ir, enum bw_dtype dtype, uint32_t number, bool written)
{
    return bw_ir_add(ir, BW_OP_PARAM, dtype, number | (uint64_t)written << 32, NULL, 0);
}

bw_node bw_ir_range(struct bw_ir *ir, uint32_t number, enum bw_range_kind kind, bw_node size)
{
    return bw_ir_add(ir, BW_OP_RANGE, BW_I64, number | (uint64_t)kind << 32, &size, 1);
}

bw_node bw_ir_variable(struct bw_ir *ir, const char *name, int64_t min, int64_t max)
{
    struct bw_variable variable = {.min = min, .max = max};
    if (min > max || strlen(name) >= sizeof variable.name)
        return bw_ir_fail(ir, -EINVAL, "VARIABLE %s in %lld..%lld", name, (long long)min, (long long)max);
    memcpy(variable.name, name, strlen(name));
    uint64_t blob = bw_ir_blob(ir, &variable, sizeof variable);
    return blob ? bw_ir_add(ir, BW_OP_VARIABLE, BW_I64, blob, NULL, 0) : 0;
}

bw_node bw_ir_load(struct bw_ir *ir, bw_node param, bw_node index, bw_node gate, bw_node alternative)
{
    bw_node sources[] = {param, index, gate, alternative};
    int64_t always;
    if (gate && bw_ir_const_value_int(ir, gate, &always)) {
        if (!always)
            return alternative;
        gate = 0;
    }
    return param ? bw_ir_add(ir, BW_OP_LOAD, bw_ir_dtype(ir, param), 0, sources, gate ? 4 : 2) : 0;
}

bw_node bw_ir_store(struct bw_ir *ir, bw_node param, bw_node index, bw_node value, bw_node gate)
{
    bw_node sources[] = {param, index, value, gate};
    return bw_ir_add(ir, BW_OP_STORE, BW_VOID, 0, sources, gate ? 4 : 3);
}

bw_node bw_ir_fold(struct bw_ir *ir, enum bw_op op, bw_node value, const bw_node *ranges,
                   uint32_t range_count)
{
    bw_node sources[1 + BW_RANK_MAX] = {value};
    if (!value || !range_count)
        return value;
    if (range_count > BW_RANK_MAX || !reduce_op_accepted(op, bw_ir_dtype(ir, value)))
        return bw_ir_fail(ir, -EINVAL, "FOLD by %s of %s over %u ranges", bw_op_name(op),
                          bw_dtype_name(bw_ir_dtype(ir, value)), range_count);
    memcpy(sources + 1, ranges, range_count * sizeof *ranges);
    return bw_ir_add(ir, BW_OP_FOLD, bw_ir_dtype(ir, value), op, sources, range_count + 1);
}

enum bw_op bw_ir_reduce_op(const struct bw_ir *ir, bw_node node)
{
    assert(bw_ir_op(ir, node) == BW_OP_REDUCE || bw_ir_op(ir, node) == BW_OP_FOLD);
    return (enum bw_op)(bw_ir_arg(ir, node) & 0xff);
}

uint32_t bw_ir_reduce_axes(const struct bw_ir *ir, bw_node reduce)
{
    assert(bw_ir_op(ir, reduce) == BW_OP_REDUCE);
    return (uint32_t)(bw_ir_arg(ir, reduce) >> 8);
}

uint32_t bw_ir_param_number(const struct bw_ir *ir, bw_node param)
{
    assert(bw_ir_op(ir, param) == BW_OP_PARAM);
    return (uint32_t)bw_ir_arg(ir, param);
}

bool bw_ir_param_written(const struct bw_ir *ir, bw_node param)
{
    return bw_ir_arg(ir, param) >> 32 & 1;
}

uint32_t bw_ir_range_number(const struct bw_ir *ir, bw_node range)
{
    assert(bw_ir_op(ir, range) == BW_OP_RANGE);
    return (uint32_t)bw_ir_arg(ir, range);
}

enum bw_range_kind bw_ir_range_kind(const struct bw_ir *ir, bw_node range)
{
    assert(bw_ir_op(ir, range) == BW_OP_RANGE);
    return (enum bw_range_kind)(bw_ir_arg(ir, range) >> 32);
}

bool bw_ir_const_value_int(const struct bw_ir *ir, bw_node node, int64_t *value)
{
    if (bw_ir_op(ir, node) != BW_OP_CONST || bw_dtype_is_float(bw_ir_dtype(ir, node)))
        return false;
    *value = (int64_t)bw_ir_arg(ir, node);
    return true;
}

bool bw_ir_const_value_float(const struct bw_ir *ir, bw_node node, double *value)
{
    if (bw_ir_op(ir, node) != BW_OP_CONST || !bw_dtype_is_float(bw_ir_dtype(ir, node)))
        return false;
    uint64_t bits = bw_ir_arg(ir, node);
    memcpy(value, &bits, sizeof *value);
    return true;
}

bw_node bw_ir_reduce_identity(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype)
{
    bool is_float = bw_dtype_is_float(dtype);
    switch (op) {
    case BW_OP_MUL:
        return bw_ir_const_int(ir, dtype, 1);
    case BW_OP_MAX:
        return is_float ? bw_ir_const_float(ir, dtype, -INFINITY)
                        : bw_ir_const_int(ir, dtype, bw_dtype_int_min(dtype));
    case BW_OP_MIN:
        return is_float          ? bw_ir_const_float(ir, dtype, INFINITY)
               : dtype == BW_U64 ? bw_ir_const_int(ir, dtype, -1)
                                 : bw_ir_const_int(ir, dtype, bw_dtype_int_max(dtype));
    case BW_OP_AND:
        return bw_ir_const_int(ir, dtype, -1);
    default: /* ADD, OR, XOR */
        return bw_ir_const_int(ir, dtype, 0);
    }
}
