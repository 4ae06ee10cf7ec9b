/* Shape and type rules of every op, in one place: what bw_ir_add accepts. */
#include <assert.h>
#include <string.h>

#include "compiler/ir_internal.h"

enum { ELEMENTS_LOG2_MAX = 48 }; /* byte sizes stay far below 2^63 even for f64 and offsets of windows */

static int shape_check(struct bw_ir *ir, const struct bw_shape *shape)
{
    if (shape->rank > BW_RANK_MAX)
        return bw_ir_fail(ir, -E2BIG, "rank %u (at most %d)", shape->rank, BW_RANK_MAX), -1;
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            return bw_ir_fail(ir, -EINVAL, "dimension %u is negative (%lld)", i, (long long)shape->dims[i]),
                   -1;
        if (__builtin_mul_overflow(elements, shape->dims[i], &elements) || elements >> ELEMENTS_LOG2_MAX)
            return bw_ir_fail(ir, -E2BIG, "more than 2^%d elements", ELEMENTS_LOG2_MAX), -1;
    }
    return 0;
}

static int64_t shape_elements(const struct bw_shape *shape)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        elements *= shape->dims[i];
    return elements;
}

static bool shape_equal(const struct bw_shape *a, const struct bw_shape *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]);
}

static void shape_from_blob(const struct bw_ir *ir, uint64_t blob, struct bw_shape *shape)
{
    const int64_t *packed = bw_ir_blob_data(ir, blob);
    shape->rank = (uint32_t)packed[0];
    memcpy(shape->dims, packed + 1, shape->rank * sizeof shape->dims[0]);
}

static int derive_movement(struct bw_ir *ir, enum bw_op op, uint64_t arg, const struct bw_shape *x,
                           struct bw_shape *shape)
{
    *shape = *x;
    switch (op) {
    case BW_OP_RESHAPE:
        shape_from_blob(ir, arg, shape);
        if (shape_check(ir, shape))
            return -1;
        if (shape_elements(shape) != shape_elements(x))
            return bw_ir_fail(ir, -EINVAL, "RESHAPE of %lld elements to %lld", (long long)shape_elements(x),
                              (long long)shape_elements(shape)),
                   -1;
        return 0;
    case BW_OP_PERMUTE: {
        const struct bw_axes *axes = bw_ir_blob_data(ir, arg);
        uint32_t seen = 0;
        for (uint32_t i = 0; i < x->rank; i++) {
            if (axes->axes[i] >= x->rank || seen >> axes->axes[i] & 1)
                return bw_ir_fail(ir, -EINVAL, "PERMUTE axis %u of rank %u is out of range or twice there",
                                  axes->axes[i], x->rank),
                       -1;
            seen |= 1u << axes->axes[i];
            shape->dims[i] = x->dims[axes->axes[i]];
        }
        return 0;
    }
    case BW_OP_EXPAND:
        shape_from_blob(ir, arg, shape);
        if (shape->rank != x->rank)
            return bw_ir_fail(ir, -EINVAL, "EXPAND from rank %u to rank %u", x->rank, shape->rank), -1;
        for (uint32_t i = 0; i < x->rank; i++)
            if (x->dims[i] != shape->dims[i] && x->dims[i] != 1)
                return bw_ir_fail(ir, -EINVAL, "EXPAND of axis %u from %lld to %lld", i,
                                  (long long)x->dims[i], (long long)shape->dims[i]),
                       -1;
        return shape_check(ir, shape);
    case BW_OP_PAD:
    case BW_OP_SHRINK: {
        const struct bw_bounds *bounds = bw_ir_blob_data(ir, arg);
        for (uint32_t i = 0; i < x->rank; i++) {
            int64_t low = bounds->low[i], high = bounds->high[i];
            bool fits = op == BW_OP_PAD ? low >= 0 && high >= 0 && low < 1ll << ELEMENTS_LOG2_MAX &&
                                              high < 1ll << ELEMENTS_LOG2_MAX
                                        : low >= 0 && low <= high && high <= x->dims[i];
            if (!fits)
                return bw_ir_fail(ir, -ERANGE, "%s of axis %u (size %lld) by %lld, %lld", bw_op_name(op), i,
                                  (long long)x->dims[i], (long long)low, (long long)high),
                       -1;
            shape->dims[i] = op == BW_OP_PAD ? x->dims[i] + low + high : high - low;
        }
        return shape_check(ir, shape);
    }
    default: /* FLIP */
        if (arg >> x->rank)
            return bw_ir_fail(ir, -ERANGE, "FLIP axes 0x%llx of rank %u", (unsigned long long)arg, x->rank),
                   -1;
        return 0;
    }
}

static int derive_elementwise(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, const bw_node *sources,
                              uint32_t source_count, struct bw_shape *shape)
{
    static const uint8_t wanted[] = {[BW_OP_UNARY] = 1, [BW_OP_BINARY] = 2, [BW_OP_TERNARY] = 3};
    if (source_count != wanted[bw_op_class(op)])
        return bw_ir_fail(ir, -EINVAL, "%s with %u sources", bw_op_name(op), source_count), -1;
    *shape = *bw_ir_shape(ir, sources[0]);
    for (uint32_t i = 1; i < source_count; i++)
        if (!shape_equal(shape, bw_ir_shape(ir, sources[i])))
            return bw_ir_fail(ir, -EINVAL, "%s of unequal shapes (source %u)", bw_op_name(op), i), -1;
    uint32_t first = op == BW_OP_WHERE;
    bool shift = op == BW_OP_SHL || op == BW_OP_SHR;
    for (uint32_t i = first + 1; i < source_count && !shift; i++)
        if (bw_ir_dtype(ir, sources[i]) != bw_ir_dtype(ir, sources[first]))
            return bw_ir_fail(ir, -EINVAL, "%s of %s and %s", bw_op_name(op),
                              bw_dtype_name(bw_ir_dtype(ir, sources[first])),
                              bw_dtype_name(bw_ir_dtype(ir, sources[i]))),
                   -1;
    if (op == BW_OP_WHERE && bw_ir_dtype(ir, sources[0]) != BW_BOOL)
        return bw_ir_fail(ir, -EINVAL, "WHERE on a condition of %s",
                          bw_dtype_name(bw_ir_dtype(ir, sources[0]))),
               -1;
    if (op == BW_OP_BITCAST && bw_dtype_bytes(dtype) != bw_dtype_bytes(bw_ir_dtype(ir, sources[0])))
        return bw_ir_fail(ir, -EINVAL, "BITCAST from %s to %s", bw_dtype_name(bw_ir_dtype(ir, sources[0])),
                          bw_dtype_name(dtype)),
               -1;
    return 0;
}

static int derive_gather(struct bw_ir *ir, const bw_node *sources, uint32_t source_count,
                         struct bw_shape *shape)
{
    uint32_t rank = source_count ? bw_ir_shape(ir, sources[0])->rank : 0;
    if (source_count != rank + 1 || rank == 0)
        return bw_ir_fail(ir, -EINVAL, "GATHER from rank %u with %u sources", rank, source_count), -1;
    *shape = *bw_ir_shape(ir, sources[1]);
    for (uint32_t i = 1; i < source_count; i++)
        if (!shape_equal(shape, bw_ir_shape(ir, sources[i])) || !bw_dtype_is_int(bw_ir_dtype(ir, sources[i])))
            return bw_ir_fail(ir, -EINVAL, "GATHER index %u: %s, or its shape differs", i - 1,
                              bw_dtype_name(bw_ir_dtype(ir, sources[i]))),
                   -1;
    return 0;
}

static int derive_reduce(struct bw_ir *ir, uint64_t arg, const struct bw_shape *x, struct bw_shape *shape)
{
    uint32_t axes = (uint32_t)(arg >> 8);
    if (x->rank < 32 && axes >> x->rank)
        return bw_ir_fail(ir, -ERANGE, "REDUCE axes 0x%x of rank %u", axes, x->rank), -1;
    *shape = *x;
    for (uint32_t i = 0; i < x->rank; i++)
        if (axes >> i & 1)
            shape->dims[i] = 1;
    return 0;
}

int bw_ir_shape_derive(struct bw_ir *ir, enum bw_op op, enum bw_dtype dtype, uint64_t arg,
                       const bw_node *sources, uint32_t source_count, struct bw_shape *shape)
{
    switch (bw_op_class(op)) {
    case BW_OP_UNARY:
    case BW_OP_BINARY:
    case BW_OP_TERNARY:
        return derive_elementwise(ir, op, dtype, sources, source_count, shape);
    case BW_OP_MOVEMENT:
        if (source_count != 1u + (op == BW_OP_PAD))
            return bw_ir_fail(ir, -EINVAL, "%s with %u sources", bw_op_name(op), source_count), -1;
        if (op == BW_OP_PAD && (bw_ir_shape(ir, sources[1])->rank || bw_ir_dtype(ir, sources[1]) != dtype))
            return bw_ir_fail(ir, -EINVAL, "PAD value must be a scalar of %s", bw_dtype_name(dtype)), -1;
        return derive_movement(ir, op, arg, bw_ir_shape(ir, sources[0]), shape);
    case BW_OP_TENSOR:
        if (op == BW_OP_GATHER)
            return derive_gather(ir, sources, source_count, shape);
        if (source_count != 1)
            return bw_ir_fail(ir, -EINVAL, "%s with %u sources", bw_op_name(op), source_count), -1;
        if (op == BW_OP_REDUCE)
            return derive_reduce(ir, arg, bw_ir_shape(ir, sources[0]), shape);
        *shape = *bw_ir_shape(ir, sources[0]);
        return 0;
    case BW_OP_LEAF:
        if (op == BW_OP_BUFFER || op == BW_OP_INDEXES) {
            /* blob: {number or axis, rank, dims...} */
            const int64_t *packed = bw_ir_blob_data(ir, arg);
            shape->rank = (uint32_t)packed[1];
            memcpy(shape->dims, packed + 2, shape->rank * sizeof shape->dims[0]);
            return shape_check(ir, shape);
        }
        return 0;
    default: /* kernel and linear stages: scalars */
        return 0;
    }
}
