/* Elementwise operations as LLVM IR: see emit.h; what each means is said in ir.h.
 *
 * f16 is computed in f32 and rounded after each operation (exact for + - * / and square root); bf16 too, its
 * conversions by integer arithmetic, so that denormals and NaN come out the same on every target. */
#include "compiler/llvm/emit.h"

#include <assert.h>

static LLVMTypeRef element_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

static LLVMTypeRef as_int(struct emitter *e, LLVMTypeRef like, unsigned bits)
{
    return emit_retype(e, like, LLVMIntTypeInContext(e->context, bits));
}

static LLVMTypeRef as_float(struct emitter *e, LLVMTypeRef like)
{
    return emit_retype(e, like, LLVMFloatTypeInContext(e->context));
}

static LLVMTypeRef as_double(struct emitter *e, LLVMTypeRef like)
{
    return emit_retype(e, like, LLVMDoubleTypeInContext(e->context));
}

static LLVMValueRef choose(struct emitter *e, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildSelect(e->builder, condition, a, b, "");
}

static LLVMValueRef bf16_to_f32(struct emitter *e, LLVMValueRef value)
{
    LLVMTypeRef i32 = as_int(e, LLVMTypeOf(value), 32);
    LLVMValueRef wide = LLVMBuildZExt(e->builder, value, i32, "");
    wide = LLVMBuildShl(e->builder, wide, emit_int(e, i32, 16), "");
    return LLVMBuildBitCast(e->builder, wide, as_float(e, i32), "");
}

/* To nearest even: adds half of the dropped part, and the lowest kept bit decides ties. NaN is made quiet. */
static LLVMValueRef f32_to_bf16(struct emitter *e, LLVMValueRef value)
{
    LLVMTypeRef i32 = as_int(e, LLVMTypeOf(value), 32), i16 = as_int(e, LLVMTypeOf(value), 16);
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, value, i32, "");
    LLVMValueRef high = LLVMBuildLShr(e->builder, bits, emit_int(e, i32, 16), "");
    LLVMValueRef odd = LLVMBuildAnd(e->builder, high, emit_int(e, i32, 1), "");
    LLVMValueRef bias = LLVMBuildAdd(e->builder, odd, emit_int(e, i32, 0x7fff), "");
    LLVMValueRef rounded =
        LLVMBuildLShr(e->builder, LLVMBuildAdd(e->builder, bits, bias, ""), emit_int(e, i32, 16), "");
    LLVMValueRef nan = LLVMBuildFCmp(e->builder, LLVMRealUNO, value, value, "");
    LLVMValueRef quiet = LLVMBuildOr(e->builder, high, emit_int(e, i32, 0x40), "");
    return LLVMBuildTrunc(e->builder, choose(e, nan, quiet, rounded), i16, "");
}

/* f64 to f32 rounded to odd: towards zero, with the last bit set when anything was dropped. A further
 * rounding to at most 22 bits is then the same as rounding once (Boldo and Melquiond, 2008). */
static LLVMValueRef f64_to_f32_odd(struct emitter *e, LLVMValueRef value)
{
    LLVMTypeRef f32 = as_float(e, LLVMTypeOf(value)), f64 = LLVMTypeOf(value), i32 = as_int(e, f64, 32);
    LLVMValueRef near = LLVMBuildFPTrunc(e->builder, value, f32, "");
    LLVMValueRef back = LLVMBuildFPExt(e->builder, near, f64, "");
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, near, i32, "");
    LLVMValueRef magnitudes[2] = {back, value};
    for (int i = 0; i < 2; i++)
        magnitudes[i] = emit_intrinsic(e, "llvm.fabs", f64, &magnitudes[i], 1);
    LLVMValueRef over = LLVMBuildFCmp(e->builder, LLVMRealOGT, magnitudes[0], magnitudes[1], "");
    LLVMValueRef inexact = LLVMBuildFCmp(e->builder, LLVMRealONE, back, value, "");
    bits = LLVMBuildSub(e->builder, bits, LLVMBuildZExt(e->builder, over, i32, ""), "");
    bits = LLVMBuildOr(e->builder, bits, LLVMBuildZExt(e->builder, inexact, i32, ""), "");
    return LLVMBuildBitCast(e->builder, bits, f32, "");
}

static LLVMValueRef to_narrow(struct emitter *e, LLVMValueRef f32, enum bw_dtype to)
{
    if (to == BW_BF16)
        return f32_to_bf16(e, f32);
    return LLVMBuildFPTrunc(e->builder, f32,
                            emit_retype(e, LLVMTypeOf(f32), LLVMHalfTypeInContext(e->context)), "");
}

static LLVMValueRef to_f32(struct emitter *e, LLVMValueRef narrow, enum bw_dtype from)
{
    if (from == BW_BF16)
        return bf16_to_f32(e, narrow);
    return LLVMBuildFPExt(e->builder, narrow, as_float(e, LLVMTypeOf(narrow)), "");
}

static bool is_narrow(enum bw_dtype dtype)
{
    return dtype == BW_F16 || dtype == BW_BF16;
}

static LLVMValueRef float_to_float(struct emitter *e, LLVMValueRef value, enum bw_dtype from,
                                   enum bw_dtype to)
{
    if (is_narrow(from)) {
        value = to_f32(e, value, from);
        from = BW_F32;
    }
    if (is_narrow(to))
        return to_narrow(e, from == BW_F64 ? f64_to_f32_odd(e, value) : value, to);
    if (from == to)
        return value;
    return to == BW_F64 ? LLVMBuildFPExt(e->builder, value, as_double(e, LLVMTypeOf(value)), "")
                        : LLVMBuildFPTrunc(e->builder, value, as_float(e, LLVMTypeOf(value)), "");
}

static LLVMValueRef float_to_int(struct emitter *e, LLVMValueRef value, enum bw_dtype from, enum bw_dtype to)
{
    if (is_narrow(from))
        value = to_f32(e, value, from);
    LLVMTypeRef types[] = {emit_retype(e, LLVMTypeOf(value), emit_scalar_type(e, to)), LLVMTypeOf(value)};
    const char *name = bw_dtype_is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
    unsigned id = LLVMLookupIntrinsicID(name, sizeof "llvm.fptosi.sat" - 1);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, types, 2);
    return LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, types, 2), function, &value, 1,
                          "");
}

static LLVMValueRef int_to_float(struct emitter *e, LLVMValueRef value, enum bw_dtype from, enum bw_dtype to)
{
    /* Through f64 where f32 does not hold every value of the type: then f16 and bf16 are rounded once. */
    bool through_double = to == BW_F64 || (is_narrow(to) && bw_dtype_bytes(from) > 2);
    LLVMTypeRef type = through_double ? as_double(e, LLVMTypeOf(value)) : as_float(e, LLVMTypeOf(value));
    LLVMValueRef real = bw_dtype_is_signed(from) ? LLVMBuildSIToFP(e->builder, value, type, "")
                                                 : LLVMBuildUIToFP(e->builder, value, type, "");
    return float_to_float(e, real, through_double ? BW_F64 : BW_F32, to);
}

LLVMValueRef emit_cast(struct emitter *e, LLVMValueRef value, enum bw_dtype from, enum bw_dtype to)
{
    LLVMTypeRef type = emit_retype(e, LLVMTypeOf(value), emit_scalar_type(e, to));
    bool from_float = bw_dtype_is_float(from);
    if (to == BW_BOOL) {
        if (is_narrow(from))
            value = to_f32(e, value, from);
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(value));
        return from_float ? LLVMBuildFCmp(e->builder, LLVMRealUNE, value, zero, "")
                          : LLVMBuildICmp(e->builder, LLVMIntNE, value, zero, "");
    }
    if (from_float)
        return bw_dtype_is_float(to) ? float_to_float(e, value, from, to) : float_to_int(e, value, from, to);
    if (bw_dtype_is_float(to))
        return int_to_float(e, value, from, to);
    return LLVMBuildIntCast2(e->builder, value, type, bw_dtype_is_signed(from), "");
}

static LLVMValueRef bitcast(struct emitter *e, LLVMValueRef value, enum bw_dtype from, enum bw_dtype to)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    if (from == BW_BOOL)
        value = LLVMBuildZExt(e->builder, value, as_int(e, type, 8), "");
    if (to == BW_BOOL)
        return LLVMBuildTrunc(e->builder, value, as_int(e, type, 1), "");
    return LLVMBuildBitCast(e->builder, value, emit_retype(e, type, emit_scalar_type(e, to)), "");
}

static LLVMValueRef unary_float(struct emitter *e, enum bw_op op, LLVMValueRef a)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    switch (op) {
    case BW_OP_NEG:
        return LLVMBuildFNeg(e->builder, a, "");
    case BW_OP_ABS:
        return emit_intrinsic(e, "llvm.fabs", type, &a, 1);
    case BW_OP_RECIPROCAL:
        return LLVMBuildFDiv(e->builder, emit_real(e, type, 1), a, "");
    case BW_OP_SQRT:
        return emit_intrinsic(e, "llvm.sqrt", type, &a, 1);
    case BW_OP_EXP2:
        return emit_intrinsic(e, "llvm.exp2", type, &a, 1);
    case BW_OP_LOG2:
        return emit_intrinsic(e, "llvm.log2", type, &a, 1);
    case BW_OP_SIN:
        return emit_intrinsic(e, "llvm.sin", type, &a, 1);
    case BW_OP_TRUNC:
        return emit_intrinsic(e, "llvm.trunc", type, &a, 1);
    case BW_OP_FLOOR:
        return emit_intrinsic(e, "llvm.floor", type, &a, 1);
    case BW_OP_CEIL:
        return emit_intrinsic(e, "llvm.ceil", type, &a, 1);
    default:
        assert(op == BW_OP_ROUND_EVEN);
        return emit_intrinsic(e, "llvm.roundeven", type, &a, 1);
    }
}

static LLVMValueRef unary_int(struct emitter *e, enum bw_op op, enum bw_dtype dtype, LLVMValueRef a)
{
    switch (op) {
    case BW_OP_NEG:
        return LLVMBuildNeg(e->builder, a, "");
    case BW_OP_NOT:
        return LLVMBuildNot(e->builder, a, "");
    case BW_OP_ABS: {
        if (!bw_dtype_is_signed(dtype))
            return a;
        LLVMValueRef negative = LLVMBuildICmp(e->builder, LLVMIntSLT, a, LLVMConstNull(LLVMTypeOf(a)), "");
        return choose(e, negative, LLVMBuildNeg(e->builder, a, ""), a);
    }
    default:
        return a; /* integers are round */
    }
}

/* The remainder's sign is a's. Exact where the quotient is below 2^53: q is off by one at most, fma makes the
 * rest exact. */
static LLVMValueRef remainder_float(struct emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a), f64 = as_double(e, type);
    if (e->target->family == BW_TARGET_HOST) /* fmod of the C library */
        return LLVMBuildFRem(e->builder, a, b, "");
    bool single = element_of(type) == LLVMFloatTypeInContext(e->context);
    LLVMValueRef x = single ? LLVMBuildFPExt(e->builder, a, f64, "") : a,
                 y = single ? LLVMBuildFPExt(e->builder, b, f64, "") : b;
    LLVMValueRef x_magnitude = emit_intrinsic(e, "llvm.fabs", f64, &x, 1),
                 y_magnitude = emit_intrinsic(e, "llvm.fabs", f64, &y, 1);
    LLVMValueRef quotient = LLVMBuildFDiv(e->builder, x_magnitude, y_magnitude, "");
    quotient = LLVMBuildFNeg(e->builder, emit_intrinsic(e, "llvm.trunc", f64, &quotient, 1), "");
    LLVMValueRef parts[] = {quotient, y_magnitude, x_magnitude};
    LLVMValueRef rest = emit_intrinsic(e, "llvm.fma", f64, parts, 3);
    LLVMValueRef negative = LLVMBuildFCmp(e->builder, LLVMRealOLT, rest, LLVMConstNull(f64), "");
    rest = choose(e, negative, LLVMBuildFAdd(e->builder, rest, y_magnitude, ""), rest);
    LLVMValueRef large = LLVMBuildFCmp(e->builder, LLVMRealOGE, rest, y_magnitude, "");
    rest = choose(e, large, LLVMBuildFSub(e->builder, rest, y_magnitude, ""), rest);
    LLVMValueRef below =
        LLVMBuildFCmp(e->builder, LLVMRealOLT, x_magnitude, y_magnitude, ""); /* also for infinite b */
    rest = choose(e, below, x_magnitude, rest);
    LLVMValueRef signs[] = {rest, x};
    rest = emit_intrinsic(e, "llvm.copysign", f64, signs, 2);
    return single ? LLVMBuildFPTrunc(e->builder, rest, type, "") : rest;
}

static bool is_number(const struct emitter *e, bw_node node)
{
    double value;
    return bw_ir_const_value_float(e->ir, node, &value) && value == value;
}

/* NaN when either is NaN; with a constant that is none, one comparison does. */
static LLVMValueRef extreme_float(struct emitter *e, enum bw_op op, bw_node node, LLVMValueRef a,
                                  LLVMValueRef b)
{
    bool max = op == BW_OP_MAX;
    LLVMRealPredicate take_b = max ? LLVMRealOLT : LLVMRealOGT, keep_a = max ? LLVMRealUGT : LLVMRealULT;
    if (node && is_number(e, bw_ir_source(e->ir, node, 1)))
        return choose(e, LLVMBuildFCmp(e->builder, take_b, a, b, ""), b, a);
    if (node && is_number(e, bw_ir_source(e->ir, node, 0)))
        return choose(e, LLVMBuildFCmp(e->builder, take_b, b, a, ""), a, b);
    LLVMValueRef value = choose(e, LLVMBuildFCmp(e->builder, keep_a, a, b, ""), a, b);
    return choose(e, LLVMBuildFCmp(e->builder, LLVMRealUNO, b, b, ""), b, value);
}

static LLVMValueRef binary_float(struct emitter *e, enum bw_op op, bw_node node, LLVMValueRef a,
                                 LLVMValueRef b)
{
    switch (op) {
    case BW_OP_ADD:
        return LLVMBuildFAdd(e->builder, a, b, "");
    case BW_OP_SUB:
        return LLVMBuildFSub(e->builder, a, b, "");
    case BW_OP_MUL:
        return LLVMBuildFMul(e->builder, a, b, "");
    case BW_OP_DIV:
        return LLVMBuildFDiv(e->builder, a, b, "");
    case BW_OP_TRUNC_MOD:
        return remainder_float(e, a, b);
    case BW_OP_LESS:
        return LLVMBuildFCmp(e->builder, LLVMRealOLT, a, b, "");
    case BW_OP_EQUAL:
        return LLVMBuildFCmp(e->builder, LLVMRealOEQ, a, b, "");
    case BW_OP_NOT_EQUAL:
        return LLVMBuildFCmp(e->builder, LLVMRealUNE, a, b, "");
    default:
        return extreme_float(e, op, node, a, b);
    }
}

/* b is 0 where the guard says so: the result is 0 there. Constants and non-negative operands need less. */
static LLVMValueRef division(struct emitter *e, bw_node node, LLVMValueRef a, LLVMValueRef b)
{
    enum bw_op op = bw_ir_op(e->ir, node);
    bool quotient = op == BW_OP_DIV || op == BW_OP_FLOOR_DIV,
         floors = op == BW_OP_FLOOR_DIV || op == BW_OP_FLOOR_MOD;
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node);
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef zero = LLVMConstNull(type), one = emit_int(e, type, 1);
    int64_t a_min, a_max, b_min, b_max;
    bw_ir_bounds(e->ir, bw_ir_source(e->ir, node, 0), &a_min, &a_max);
    bw_ir_bounds(e->ir, bw_ir_source(e->ir, node, 1), &b_min, &b_max);
    bool is_unsigned = !bw_dtype_is_signed(dtype) || (a_min >= 0 && b_min >= 0);
    bool may_be_zero = dtype == BW_U64 || (b_min <= 0 && b_max >= 0),
         may_be_minus_one = !is_unsigned && b_min <= -1 && b_max >= -1;
    LLVMValueRef is_zero = may_be_zero ? LLVMBuildICmp(e->builder, LLVMIntEQ, b, zero, "") : NULL;
    LLVMValueRef is_minus_one =
        may_be_minus_one ? LLVMBuildICmp(e->builder, LLVMIntEQ, b, emit_int(e, type, -1), "") : NULL;
    LLVMValueRef safe = is_zero ? choose(e, is_zero, one, b) : b;
    safe = is_minus_one ? choose(e, is_minus_one, one, safe) : safe;
    LLVMValueRef q =
        is_unsigned ? LLVMBuildUDiv(e->builder, a, safe, "") : LLVMBuildSDiv(e->builder, a, safe, "");
    LLVMValueRef r = LLVMBuildSub(e->builder, a, LLVMBuildMul(e->builder, q, safe, ""), "");
    if (floors && !is_unsigned) {
        LLVMValueRef signs =
            LLVMBuildICmp(e->builder, LLVMIntSLT, LLVMBuildXor(e->builder, r, safe, ""), zero, "");
        LLVMValueRef inexact = LLVMBuildICmp(e->builder, LLVMIntNE, r, zero, "");
        LLVMValueRef down = LLVMBuildAnd(e->builder, signs, inexact, "");
        q = choose(e, down, LLVMBuildSub(e->builder, q, one, ""), q);
        r = choose(e, down, LLVMBuildAdd(e->builder, r, safe, ""), r);
    }
    LLVMValueRef value = quotient ? q : r;
    if (is_minus_one) /* the lowest value wraps; the remainder is 0 by the division by 1 */
        value = quotient ? choose(e, is_minus_one, LLVMBuildNeg(e->builder, a, ""), value)
                         : choose(e, is_minus_one, zero, value);
    return is_zero ? choose(e, is_zero, zero, value) : value;
}

static LLVMValueRef shift(struct emitter *e, bw_node node, LLVMValueRef a, LLVMValueRef count)
{
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node),
                  count_dtype = bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, 1));
    bool left = bw_ir_op(e->ir, node) == BW_OP_SHL, is_signed = bw_dtype_is_signed(dtype);
    int64_t width = 8 * bw_dtype_bytes(dtype), constant;
    LLVMTypeRef type = LLVMTypeOf(a), count_type = LLVMTypeOf(count);
    bool known = bw_ir_const_value_int(e->ir, bw_ir_source(e->ir, node, 1), &constant) && constant >= 0 &&
                 constant < width;
    LLVMValueRef over =
        known ? NULL : LLVMBuildICmp(e->builder, LLVMIntUGE, count, emit_int(e, count_type, width), "");
    /* A narrow count may not reach the width; comparing in its own type is then never true, as it should be.
     */
    if (!known && 8 * bw_dtype_bytes(count_dtype) < 7)
        over = NULL;
    LLVMValueRef amount = LLVMBuildIntCast2(e->builder, count, type, 0, "");
    if (over)
        amount = choose(e, over, emit_int(e, type, is_signed && !left ? width - 1 : 0), amount);
    LLVMValueRef value = left        ? LLVMBuildShl(e->builder, a, amount, "")
                         : is_signed ? LLVMBuildAShr(e->builder, a, amount, "")
                                     : LLVMBuildLShr(e->builder, a, amount, "");
    return over && (left || !is_signed) ? choose(e, over, LLVMConstNull(type), value) : value;
}

static LLVMValueRef binary_int(struct emitter *e, enum bw_op op, enum bw_dtype dtype, bw_node node,
                               LLVMValueRef a, LLVMValueRef b)
{
    LLVMIntPredicate less = bw_dtype_is_signed(dtype) ? LLVMIntSLT : LLVMIntULT;
    switch (op) {
    case BW_OP_ADD:
        return LLVMBuildAdd(e->builder, a, b, "");
    case BW_OP_SUB:
        return LLVMBuildSub(e->builder, a, b, "");
    case BW_OP_MUL:
        return LLVMBuildMul(e->builder, a, b, "");
    case BW_OP_AND:
        return LLVMBuildAnd(e->builder, a, b, "");
    case BW_OP_OR:
        return LLVMBuildOr(e->builder, a, b, "");
    case BW_OP_XOR:
        return LLVMBuildXor(e->builder, a, b, "");
    case BW_OP_MAX:
        return choose(e, LLVMBuildICmp(e->builder, less, a, b, ""), b, a);
    case BW_OP_MIN:
        return choose(e, LLVMBuildICmp(e->builder, less, a, b, ""), a, b);
    case BW_OP_LESS:
        return LLVMBuildICmp(e->builder, less, a, b, "");
    case BW_OP_EQUAL:
        return LLVMBuildICmp(e->builder, LLVMIntEQ, a, b, "");
    case BW_OP_NOT_EQUAL:
        return LLVMBuildICmp(e->builder, LLVMIntNE, a, b, "");
    case BW_OP_SHL:
    case BW_OP_SHR:
        return shift(e, node, a, b);
    default:
        return division(e, node, a, b);
    }
}

LLVMValueRef emit_combine(struct emitter *e, enum bw_op op, enum bw_dtype dtype, LLVMValueRef a,
                          LLVMValueRef b)
{
    if (!bw_dtype_is_float(dtype))
        return binary_int(e, op, dtype, 0, a, b);
    if (!is_narrow(dtype))
        return binary_float(e, op, 0, a, b);
    return to_narrow(e, binary_float(e, op, 0, to_f32(e, a, dtype), to_f32(e, b, dtype)), dtype);
}

static LLVMValueRef multiply_add(struct emitter *e, enum bw_dtype dtype, LLVMValueRef *x)
{
    if (!bw_dtype_is_float(dtype))
        return LLVMBuildAdd(e->builder, LLVMBuildMul(e->builder, x[0], x[1], ""), x[2], "");
    return emit_intrinsic(e, "llvm.fmuladd", LLVMTypeOf(x[0]), x, 3);
}

LLVMValueRef emit_elementwise(struct emitter *e, bw_node node)
{
    enum bw_op op = bw_ir_op(e->ir, node);
    uint32_t count = bw_ir_source_count(e->ir, node);
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node),
                  operand = bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, 0));
    bool vector = emit_is_vector(e, node);
    LLVMValueRef x[3];
    for (uint32_t i = 0; i < count; i++)
        x[i] = emit_value(e, bw_ir_source(e->ir, node, i), vector);
    if (op == BW_OP_CAST)
        return emit_cast(e, x[0], operand, dtype);
    if (op == BW_OP_BITCAST)
        return bitcast(e, x[0], operand, dtype);
    if (op == BW_OP_WHERE)
        return choose(e, x[0], x[1], x[2]);
    bool narrow = is_narrow(operand);
    for (uint32_t i = 0; i < count && narrow; i++)
        x[i] = to_f32(e, x[i], operand);
    LLVMValueRef value;
    if (op == BW_OP_MULTIPLY_ADD)
        value = multiply_add(e, dtype, x);
    else if (count == 1)
        value = bw_dtype_is_float(operand) ? unary_float(e, op, x[0]) : unary_int(e, op, dtype, x[0]);
    else
        value = bw_dtype_is_float(operand) ? binary_float(e, op, node, x[0], x[1])
                                           : binary_int(e, op, operand, node, x[0], x[1]);
    return narrow && dtype == operand ? to_narrow(e, value, dtype) : value;
}
