/* Frame of the emitter: types, values, loops. See emit.h. */
#include "compiler/llvm/emit.h"

#include <assert.h>
#include <errno.h>
#include <llvm-c/DebugInfo.h>
#include <stdlib.h>
#include <string.h>

enum { VECTOR_MAX = 64 }; /* lanes of the widest host vectors, bytes in 512 bits */

LLVMTypeRef emit_scalar_type(struct emitter *e, enum bw_dtype dtype)
{
    switch (dtype) {
    case BW_BOOL:
        return LLVMInt1TypeInContext(e->context);
    case BW_F16:
        return LLVMHalfTypeInContext(e->context);
    case BW_F32:
        return LLVMFloatTypeInContext(e->context);
    case BW_F64:
        return LLVMDoubleTypeInContext(e->context);
    default: /* integers, and bf16 as its bits: LLVM's bfloat rounds denormals away on some CPUs */
        return LLVMIntTypeInContext(e->context, 8 * bw_dtype_bytes(dtype));
    }
}

LLVMTypeRef emit_type(struct emitter *e, enum bw_dtype dtype, bool vector)
{
    LLVMTypeRef scalar = emit_scalar_type(e, dtype);
    return vector ? LLVMVectorType(scalar, e->lanes) : scalar;
}

bool emit_is_vector(const struct emitter *e, bw_node node)
{
    return e->lanes > 1 && e->varies[node];
}

LLVMTypeRef emit_retype(struct emitter *e, LLVMTypeRef like, LLVMTypeRef element)
{
    return LLVMGetTypeKind(like) == LLVMVectorTypeKind ? LLVMVectorType(element, LLVMGetVectorSize(like))
                                                       : element;
}

LLVMValueRef emit_splat(struct emitter *e, LLVMValueRef scalar)
{
    LLVMTypeRef vector = LLVMVectorType(LLVMTypeOf(scalar), e->lanes),
                i32 = LLVMInt32TypeInContext(e->context);
    LLVMValueRef zero = LLVMConstInt(i32, 0, 0);
    LLVMValueRef one = LLVMBuildInsertElement(e->builder, LLVMGetPoison(vector), scalar, zero, "");
    return LLVMBuildShuffleVector(e->builder, one, LLVMGetPoison(vector),
                                  LLVMConstNull(LLVMVectorType(i32, e->lanes)), "");
}

/* The constant, once per element for vector types. */
static LLVMValueRef repeat(LLVMTypeRef type, LLVMValueRef constant)
{
    LLVMValueRef all[VECTOR_MAX];
    unsigned size = LLVMGetVectorSize(type);
    assert(size <= VECTOR_MAX);
    for (unsigned i = 0; i < size; i++)
        all[i] = constant;
    return LLVMConstVector(all, size);
}

LLVMValueRef emit_int(struct emitter *e, LLVMTypeRef type, int64_t value)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return LLVMConstInt(type, (unsigned long long)value, 1);
    return repeat(type, LLVMConstInt(LLVMGetElementType(type), (unsigned long long)value, 1));
}

LLVMValueRef emit_real(struct emitter *e, LLVMTypeRef type, double value)
{
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return LLVMConstReal(type, value);
    return repeat(type, LLVMConstReal(LLVMGetElementType(type), value));
}

LLVMValueRef emit_intrinsic(struct emitter *e, const char *name, LLVMTypeRef type, LLVMValueRef *arguments,
                            unsigned count)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, &type, 1);
    LLVMTypeRef function_type = LLVMIntrinsicGetType(e->context, id, &type, 1);
    return LLVMBuildCall2(e->builder, function_type, function, arguments, count, "");
}

static LLVMValueRef constant(struct emitter *e, bw_node node)
{
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node);
    LLVMTypeRef type = emit_scalar_type(e, dtype);
    double real;
    if (!bw_ir_const_value_float(e->ir, node, &real))
        return LLVMConstInt(type, bw_ir_arg(e->ir, node), 1);
    if (dtype == BW_BF16)
        return LLVMConstInt(type, bw_bf16_from_f32((float)real), 0);
    return LLVMConstReal(type, real);
}

LLVMValueRef emit_value(struct emitter *e, bw_node node, bool vector)
{
    LLVMValueRef value = e->values[node];
    enum bw_op op = bw_ir_op(e->ir, node);
    if (op == BW_OP_CONST)
        value = constant(e, node);
    assert(value);
    if (op == BW_OP_ACCUMULATOR)
        value = LLVMBuildLoad2(e->builder, emit_type(e, bw_ir_dtype(e->ir, node), emit_is_vector(e, node)),
                               value, "");
    return vector && !emit_is_vector(e, node) ? emit_splat(e, value) : value;
}

/* A value differs between work-items when it depends on their number; an accumulator when something assigned
 * to it does. */
static void find_varying(struct emitter *e)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < e->linear->list.count; i++) {
            bw_node node = e->linear->list.data[i];
            enum bw_op op = bw_ir_op(e->ir, node);
            bw_node target = op == BW_OP_ASSIGN ? bw_ir_source(e->ir, node, 0) : node;
            bool varies = op == BW_OP_SPECIAL && bw_ir_special_which(e->ir, node) == BW_SPECIAL_ITEM;
            for (uint32_t k = 0; k < bw_ir_source_count(e->ir, node); k++)
                varies |= e->varies[bw_ir_source(e->ir, node, k)];
            varies &= !bw_ir_is_group_fold(e->ir, node);
            if (varies && !e->varies[target])
                changed = e->varies[target] = true;
        }
    }
}

struct loop {
    LLVMBasicBlockRef block;
    LLVMValueRef counter;
};

static int64_t loop_size(const struct emitter *e, bw_node range)
{
    int64_t size = 0;
    bool known = bw_ir_const_value_int(e->ir, bw_ir_source(e->ir, range, 0), &size);
    assert(known && size > 0);
    return known ? size : 0;
}

static void loop_begin(struct emitter *e, bw_node range, struct loop *loop)
{
    LLVMTypeRef type = emit_scalar_type(e, bw_ir_dtype(e->ir, range));
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->builder);
    loop->block = LLVMAppendBasicBlockInContext(e->context, e->function, "loop");
    LLVMBuildBr(e->builder, loop->block);
    LLVMPositionBuilderAtEnd(e->builder, loop->block);
    loop->counter = LLVMBuildPhi(e->builder, type, "i");
    LLVMValueRef zero = LLVMConstInt(type, 0, 0);
    LLVMAddIncoming(loop->counter, &zero, &before, 1);
    e->values[range] = loop->counter;
}

/* Loops come tiled and unrolled as they should be: LLVM is told to leave them. */
static void loop_keep(struct emitter *e, LLVMValueRef branch)
{
    static const char *const hints[] = {"llvm.loop.unroll.disable", "llvm.loop.vectorize.enable"};
    LLVMMetadataRef parts[3];
    LLVMMetadataRef name = LLVMMDStringInContext2(e->context, hints[0], strlen(hints[0]));
    parts[1] = LLVMMDNodeInContext2(e->context, &name, 1);
    LLVMMetadataRef off[2] = {LLVMMDStringInContext2(e->context, hints[1], strlen(hints[1])),
                              LLVMValueAsMetadata(LLVMConstInt(LLVMInt1TypeInContext(e->context), 0, 0))};
    parts[2] = LLVMMDNodeInContext2(e->context, off, 2);
    /* A loop's node names itself first, so that it is distinct. */
    LLVMMetadataRef temporary = LLVMTemporaryMDNode(e->context, NULL, 0);
    parts[0] = temporary;
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, 3);
    LLVMMetadataReplaceAllUsesWith(temporary, node);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(e->context, "llvm.loop", 9),
                    LLVMMetadataAsValue(e->context, node));
}

static void loop_end(struct emitter *e, bw_node range, const struct loop *loop)
{
    LLVMTypeRef type = LLVMTypeOf(loop->counter);
    LLVMValueRef next = LLVMBuildNSWAdd(e->builder, loop->counter, LLVMConstInt(type, 1, 0), "");
    LLVMValueRef more = LLVMBuildICmp(e->builder, LLVMIntULT, next,
                                      LLVMConstInt(type, (unsigned long long)loop_size(e, range), 0), "");
    LLVMBasicBlockRef last = LLVMGetInsertBlock(e->builder);
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "after");
    loop_keep(e, LLVMBuildCondBr(e->builder, more, loop->block, after));
    LLVMAddIncoming(loop->counter, &next, &last, 1);
    LLVMPositionBuilderAtEnd(e->builder, after);
}

/* Accumulators live in allocas of the entry block; LLVM's first pass makes registers of them. */
static LLVMValueRef accumulator(struct emitter *e, bw_node node)
{
    LLVMTypeRef type = emit_type(e, bw_ir_dtype(e->ir, node), emit_is_vector(e, node));
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder), entry = LLVMGetEntryBasicBlock(e->function);
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    if (!e->values[node]) {
        if (first)
            LLVMPositionBuilderBefore(e->builder, first);
        e->values[node] = LLVMBuildAlloca(e->builder, type, "");
        LLVMPositionBuilderAtEnd(e->builder, here);
    }
    LLVMBuildStore(e->builder, emit_value(e, bw_ir_source(e->ir, node, 0), emit_is_vector(e, node)),
                   e->values[node]);
    return e->values[node];
}

enum { LOOPS_MAX = 64 };

static void emit_entry(struct emitter *e, bw_node node, struct loop *loops, uint32_t *depth)
{
    bw_node first = bw_ir_source_count(e->ir, node) ? bw_ir_source(e->ir, node, 0) : 0;
    enum bw_op op = bw_ir_op(e->ir, node);
    switch (op) {
    case BW_OP_LOOP:
        assert(*depth < LOOPS_MAX);
        loop_begin(e, first, &loops[(*depth)++]);
        return;
    case BW_OP_END_LOOP:
        assert(*depth > 0);
        loop_end(e, first, &loops[--*depth]);
        return;
    case BW_OP_CONST:
        return; /* made where it is used */
    case BW_OP_SPECIAL:
        e->values[node] =
            LLVMBuildIntCast2(e->builder, e->specials[bw_ir_special_which(e->ir, node)],
                              emit_type(e, bw_ir_dtype(e->ir, node), emit_is_vector(e, node)), 0, "");
        return;
    case BW_OP_ACCUMULATOR:
        e->values[node] = accumulator(e, node);
        return;
    case BW_OP_ASSIGN:
        LLVMBuildStore(e->builder, emit_value(e, bw_ir_source(e->ir, node, 1), emit_is_vector(e, first)),
                       e->values[first]);
        return;
    case BW_OP_LOAD:
        e->values[node] = emit_load(e, node);
        return;
    case BW_OP_STORE:
        emit_store(e, node);
        return;
    case BW_OP_FOLD:
        e->values[node] = emit_group_fold(e, node);
        return;
    default:
        if (bw_op_is_elementwise(op))
            e->values[node] = emit_elementwise(e, node);
        else
            e->rc = bw_fail(e->err, -ENOTSUP, "llvm", "%s in a linear program", bw_op_name(op));
    }
}

void emit_body(struct emitter *e)
{
    struct loop loops[LOOPS_MAX];
    uint32_t depth = 0;
    find_varying(e);
    for (size_t i = 0; i < e->linear->list.count && !e->rc; i++)
        emit_entry(e, e->linear->list.data[i], loops, &depth);
    assert(e->rc || depth == 0);
}
