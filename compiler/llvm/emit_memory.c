/* Loads and stores: see emit.h.
 *
 * An index is split as linear.h orders it: what is the same for all work-items, what differs, a constant. On
 * the GPU that becomes scalar base + 32-bit offset per lane + immediate; on the host, where what differs is
 * just the lane's number, one vector access. */
#include "compiler/llvm/emit.h"

#include <assert.h>
#include <string.h>

#include "compiler/kernel.h"

struct index_parts {
    bw_node uniform, varying; /* 0: none */
    int64_t constant;
};

static struct index_parts split_index(const struct emitter *e, bw_node index)
{
    struct index_parts parts = {0, 0, 0};
    const struct bw_ir *ir = e->ir;
    if (bw_ir_const_value_int(ir, index, &parts.constant))
        return parts;
    if (bw_ir_op(ir, index) == BW_OP_ADD &&
        bw_ir_const_value_int(ir, bw_ir_source(ir, index, 1), &parts.constant))
        index = bw_ir_source(ir, index, 0);
    if (!e->varies[index]) {
        parts.uniform = index;
        return parts;
    }
    if (bw_ir_op(ir, index) == BW_OP_ADD && !e->varies[bw_ir_source(ir, index, 0)] &&
        e->varies[bw_ir_source(ir, index, 1)]) {
        parts.uniform = bw_ir_source(ir, index, 0);
        parts.varying = bw_ir_source(ir, index, 1);
        return parts;
    }
    parts.varying = index;
    return parts;
}

static LLVMTypeRef memory_type(struct emitter *e, enum bw_dtype dtype)
{
    return dtype == BW_BOOL ? LLVMInt8TypeInContext(e->context) : emit_scalar_type(e, dtype);
}

static LLVMValueRef pointer_of(struct emitter *e, bw_node param)
{
    return bw_ir_op(e->ir, param) == BW_OP_PARAM ? e->params[bw_ir_param_number(e->ir, param)]
                                                 : e->values[param];
}

/* pointer + node elements (bytes_each wide). Offsets that fit are computed in 32 unsigned bits, which
 * hardware adds for free. */
static LLVMValueRef advance(struct emitter *e, LLVMValueRef pointer, bw_node node, uint32_t bytes_each)
{
    LLVMTypeRef i8 = LLVMInt8TypeInContext(e->context), i64 = LLVMInt64TypeInContext(e->context);
    LLVMValueRef offset = emit_value(e, node, false);
    int64_t min, max;
    bw_ir_bounds(e->ir, node, &min, &max);
    bool small = min >= 0 && max < ((int64_t)1 << 31) / bytes_each && bw_ir_dtype(e->ir, node) == BW_I32;
    if (small) {
        LLVMTypeRef type = LLVMTypeOf(offset);
        LLVMValueRef bytes = LLVMBuildNUWMul(e->builder, offset, emit_int(e, type, bytes_each), "");
        offset = LLVMBuildZExt(e->builder, bytes, emit_retype(e, type, i64), "");
    } else {
        offset = LLVMBuildIntCast2(e->builder, offset, emit_retype(e, LLVMTypeOf(offset), i64), 1, "");
        offset = LLVMBuildMul(e->builder, offset, emit_int(e, LLVMTypeOf(offset), bytes_each), "");
    }
    return LLVMBuildGEP2(e->builder, i8, pointer, &offset, 1, "");
}

static LLVMValueRef address_of(struct emitter *e, LLVMValueRef pointer, struct index_parts parts,
                               uint32_t bytes_each)
{
    if (parts.uniform)
        pointer = advance(e, pointer, parts.uniform, bytes_each);
    if (parts.varying)
        pointer = advance(e, pointer, parts.varying, bytes_each);
    if (!parts.constant)
        return pointer;
    LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(e->context),
                                       (unsigned long long)(parts.constant * bytes_each), 1);
    return LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), pointer, &offset, 1, "");
}

/* bool lies in memory as a byte. */
static LLVMValueRef from_memory(struct emitter *e, enum bw_dtype dtype, LLVMValueRef value)
{
    if (dtype != BW_BOOL)
        return value;
    return LLVMBuildICmp(e->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "");
}

static LLVMValueRef to_memory(struct emitter *e, enum bw_dtype dtype, LLVMValueRef value)
{
    if (dtype != BW_BOOL)
        return value;
    return LLVMBuildZExt(e->builder, value,
                         emit_retype(e, LLVMTypeOf(value), LLVMInt8TypeInContext(e->context)), "");
}

/* What differs between lanes is the lane's own number: element i of the vector lies i elements behind the
 * first. */
static bool is_lane_number(const struct emitter *e, bw_node node)
{
    return node && bw_ir_op(e->ir, node) == BW_OP_SPECIAL &&
           bw_ir_special_which(e->ir, node) == BW_SPECIAL_ITEM;
}

static LLVMValueRef mask_of(struct emitter *e, bw_node gate)
{
    LLVMTypeRef type = LLVMVectorType(LLVMInt1TypeInContext(e->context), e->lanes);
    return gate ? emit_value(e, gate, true) : LLVMConstAllOnes(type);
}

/* llvm.masked.*: overloaded on the data's and the pointer's type. */
static LLVMValueRef masked(struct emitter *e, const char *name, LLVMTypeRef data, LLVMTypeRef pointer,
                           LLVMValueRef *arguments)
{
    LLVMTypeRef types[] = {data, pointer};
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, types, 2);
    return LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, types, 2), function, arguments, 4,
                          "");
}

static LLVMValueRef load_vector(struct emitter *e, bw_node node, LLVMValueRef pointer,
                                struct index_parts parts)
{
    bw_node param = bw_ir_source(e->ir, node, 0),
            gate = bw_ir_source_count(e->ir, node) > 2 ? bw_ir_source(e->ir, node, 2) : 0;
    enum bw_dtype dtype = bw_ir_dtype(e->ir, param);
    uint32_t bytes = bw_dtype_bytes(dtype);
    LLVMTypeRef type = LLVMVectorType(memory_type(e, dtype), e->lanes);
    LLVMValueRef align = LLVMConstInt(LLVMInt32TypeInContext(e->context), bytes, 0), value;
    LLVMValueRef other =
        gate ? to_memory(e, dtype, emit_value(e, bw_ir_source(e->ir, node, 3), true)) : LLVMGetPoison(type);
    if (is_lane_number(e, parts.varying)) {
        LLVMValueRef first =
            address_of(e, pointer, (struct index_parts){parts.uniform, 0, parts.constant}, bytes);
        if (!gate) {
            value = LLVMBuildLoad2(e->builder, type, first, "");
            LLVMSetAlignment(value, bytes);
        } else {
            LLVMValueRef arguments[] = {first, align, mask_of(e, gate), other};
            value = masked(e, "llvm.masked.load", type, LLVMTypeOf(first), arguments);
        }
    } else {
        LLVMValueRef each = address_of(e, pointer, parts, bytes);
        if (LLVMGetTypeKind(LLVMTypeOf(each)) != LLVMVectorTypeKind)
            each = emit_splat(e, each);
        LLVMValueRef arguments[] = {each, align, mask_of(e, gate), other};
        value = masked(e, "llvm.masked.gather", type, LLVMTypeOf(each), arguments);
    }
    return from_memory(e, dtype, value);
}

/* The same address where the gate holds, and some address inside the buffer where it does not, without a
 * branch. When the uniform part alone is inside, only the 32-bit offset per lane is selected, which mostly
 * stays the same in inner loops. */
static LLVMValueRef gated_address(struct emitter *e, bw_node param, LLVMValueRef gate, LLVMValueRef pointer,
                                  struct index_parts parts, uint32_t bytes)
{
    int64_t min = 0, max = 0, low = 0, high = 0, elements = bw_kernel_param_elements(e->ir, param);
    if (parts.uniform)
        bw_ir_bounds(e->ir, parts.uniform, &min, &max);
    if (parts.varying)
        bw_ir_bounds(e->ir, parts.varying, &low, &high);
    bool small = parts.varying && bw_ir_dtype(e->ir, parts.varying) == BW_I32 &&
                 low + parts.constant > INT32_MIN / bytes && high + parts.constant < INT32_MAX / bytes;
    if (min < 0 || max >= elements || !small) {
        LLVMValueRef address = address_of(e, pointer, parts, bytes);
        return LLVMBuildSelect(e->builder, gate, address, pointer, "");
    }
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), i64 = LLVMInt64TypeInContext(e->context);
    LLVMValueRef offset = emit_value(e, parts.varying, false);
    offset = LLVMBuildAdd(e->builder, offset, emit_int(e, i32, parts.constant), "");
    offset = LLVMBuildMul(e->builder, offset, emit_int(e, i32, bytes), "");
    offset = LLVMBuildSelect(e->builder, gate, offset, emit_int(e, i32, 0), "");
    pointer = address_of(e, pointer, (struct index_parts){parts.uniform, 0, 0}, bytes);
    /* Where the gate holds the whole index is inside the buffer; it may only be negative when the uniform
     * part makes up for it. */
    offset = low + parts.constant >= 0 || !parts.uniform ? LLVMBuildZExt(e->builder, offset, i64, "")
                                                         : LLVMBuildSExt(e->builder, offset, i64, "");
    return LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), pointer, &offset, 1, "");
}

static LLVMValueRef load_scalar(struct emitter *e, bw_node node, LLVMValueRef pointer,
                                struct index_parts parts)
{
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node);
    uint32_t bytes = bw_dtype_bytes(dtype);
    bw_node param = bw_ir_source(e->ir, node, 0);
    LLVMValueRef gate =
        bw_ir_source_count(e->ir, node) > 2 ? emit_value(e, bw_ir_source(e->ir, node, 2), false) : NULL;
    LLVMValueRef address =
        gate ? gated_address(e, param, gate, pointer, parts, bytes) : address_of(e, pointer, parts, bytes);
    LLVMValueRef value = LLVMBuildLoad2(e->builder, memory_type(e, dtype), address, "");
    LLVMSetAlignment(value, bytes);
    value = from_memory(e, dtype, value);
    return gate ? LLVMBuildSelect(e->builder, gate, value, emit_value(e, bw_ir_source(e->ir, node, 3), false),
                                  "")
                : value;
}

LLVMValueRef emit_load(struct emitter *e, bw_node node)
{
    LLVMValueRef pointer = pointer_of(e, bw_ir_source(e->ir, node, 0));
    struct index_parts parts = split_index(e, bw_ir_source(e->ir, node, 1));
    return emit_is_vector(e, node) ? load_vector(e, node, pointer, parts)
                                   : load_scalar(e, node, pointer, parts);
}

static void store_vector(struct emitter *e, bw_node node, LLVMValueRef pointer, struct index_parts parts)
{
    enum bw_dtype dtype = bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, 0));
    bw_node gate = bw_ir_source_count(e->ir, node) > 3 ? bw_ir_source(e->ir, node, 3) : 0;
    uint32_t bytes = bw_dtype_bytes(dtype);
    LLVMValueRef value = to_memory(e, dtype, emit_value(e, bw_ir_source(e->ir, node, 2), true));
    LLVMValueRef align = LLVMConstInt(LLVMInt32TypeInContext(e->context), bytes, 0);
    if (!is_lane_number(e, parts.varying)) {
        LLVMValueRef each = address_of(e, pointer, parts, bytes);
        if (LLVMGetTypeKind(LLVMTypeOf(each)) != LLVMVectorTypeKind)
            each = emit_splat(e, each);
        LLVMValueRef arguments[] = {value, each, align, mask_of(e, gate)};
        masked(e, "llvm.masked.scatter", LLVMTypeOf(value), LLVMTypeOf(each), arguments);
        return;
    }
    LLVMValueRef first =
        address_of(e, pointer, (struct index_parts){parts.uniform, 0, parts.constant}, bytes);
    if (gate) {
        LLVMValueRef arguments[] = {value, first, align, mask_of(e, gate)};
        masked(e, "llvm.masked.store", LLVMTypeOf(value), LLVMTypeOf(first), arguments);
    } else
        LLVMSetAlignment(LLVMBuildStore(e->builder, value, first), bytes);
}

static void store_scalar(struct emitter *e, bw_node node, LLVMValueRef pointer, struct index_parts parts)
{
    enum bw_dtype dtype = bw_ir_dtype(e->ir, bw_ir_source(e->ir, node, 0));
    bool gated = bw_ir_source_count(e->ir, node) > 3;
    LLVMValueRef value = to_memory(e, dtype, emit_value(e, bw_ir_source(e->ir, node, 2), false));
    LLVMBasicBlockRef after = NULL;
    if (gated) {
        LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->context, e->function, "store");
        after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
        LLVMBuildCondBr(e->builder, emit_value(e, bw_ir_source(e->ir, node, 3), false), inside, after);
        LLVMPositionBuilderAtEnd(e->builder, inside);
    }
    LLVMValueRef address = address_of(e, pointer, parts, bw_dtype_bytes(dtype));
    LLVMSetAlignment(LLVMBuildStore(e->builder, value, address), bw_dtype_bytes(dtype));
    if (gated) {
        LLVMBuildBr(e->builder, after);
        LLVMPositionBuilderAtEnd(e->builder, after);
    }
}

void emit_store(struct emitter *e, bw_node node)
{
    LLVMValueRef pointer = pointer_of(e, bw_ir_source(e->ir, node, 0));
    struct index_parts parts = split_index(e, bw_ir_source(e->ir, node, 1));
    if (emit_is_vector(e, node))
        store_vector(e, node, pointer, parts);
    else
        store_scalar(e, node, pointer, parts);
}
