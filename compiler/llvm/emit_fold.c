/* Folds over the work-items of a group: see emit.h. */
#include <assert.h>
#include <errno.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/llvm/emit.h"

/* Lanes of one vector: fold its upper half onto its lower half until one is left. */
static LLVMValueRef fold_lanes(struct emitter *e, enum bw_op op, enum bw_dtype dtype, LLVMValueRef value)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
    uint32_t count = e->lanes;
    assert(bw_is_pow2(count));
    while (count > 1) {
        LLVMValueRef low[32], high[32];
        count /= 2;
        for (uint32_t i = 0; i < count; i++) {
            low[i] = LLVMConstInt(i32, i, 0);
            high[i] = LLVMConstInt(i32, count + i, 0);
        }
        LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(value));
        LLVMValueRef a = LLVMBuildShuffleVector(e->builder, value, poison, LLVMConstVector(low, count), "");
        LLVMValueRef b = LLVMBuildShuffleVector(e->builder, value, poison, LLVMConstVector(high, count), "");
        value = emit_combine(e, op, dtype, a, b);
    }
    return LLVMBuildExtractElement(e->builder, value, LLVMConstInt(i32, 0, 0), "");
}

enum { LOCAL_SPACE = 3 };

/* Orders LDS accesses of the group around it, as clang's work_group_barrier does. LLVM-C 19 cannot name a
 * fence's scope, so that this function comes as text. */
static const char barrier_text[] =
    "declare void @llvm.amdgcn.s.barrier()\n"
    "define internal void @group_barrier() alwaysinline convergent nounwind {\n"
    "  fence syncscope(\"workgroup\") release\n"
    "  call void @llvm.amdgcn.s.barrier()\n"
    "  fence syncscope(\"workgroup\") acquire\n"
    "  ret void\n"
    "}\n";

static LLVMValueRef barrier_function(struct emitter *e)
{
    LLVMValueRef known = LLVMGetNamedFunction(e->module, "group_barrier");
    if (known)
        return known;
    LLVMModuleRef module = NULL;
    char *message = NULL;
    LLVMMemoryBufferRef text =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(barrier_text, sizeof barrier_text - 1, "barrier");
    if (LLVMParseIRInContext(e->context, text, &module, &message)) {
        LLVMDisposeMessage(message);
        return NULL;
    }
    LLVMSetTarget(module, LLVMGetTarget(e->module));
    LLVMSetDataLayout(module, LLVMGetDataLayoutStr(e->module));
    LLVMSetLinkage(LLVMGetNamedFunction(module, "group_barrier"),
                   LLVMExternalLinkage); /* kept while linking */
    if (LLVMLinkModules2(e->module, module))
        return NULL;
    known = LLVMGetNamedFunction(e->module, "group_barrier");
    LLVMSetLinkage(known, LLVMInternalLinkage);
    return known;
}

static void barrier(struct emitter *e)
{
    LLVMValueRef function = barrier_function(e);
    if (function)
        LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(function), function, NULL, 0, "");
    else if (!e->rc)
        e->rc = bw_fail(e->err, -EINVAL, "llvm", "barrier");
}

struct lds_fold {
    LLVMValueRef array;
    LLVMTypeRef type;
    enum bw_dtype dtype;
};

static LLVMValueRef lds_at(struct emitter *e, const struct lds_fold *lds, LLVMValueRef item)
{
    return LLVMBuildGEP2(e->builder, lds->type, lds->array, &item, 1, "");
}

static LLVMValueRef lds_load(struct emitter *e, const struct lds_fold *lds, LLVMValueRef item)
{
    LLVMValueRef value = LLVMBuildLoad2(e->builder, lds->type, lds_at(e, lds, item), "");
    return lds->dtype == BW_BOOL ? LLVMBuildTrunc(e->builder, value, LLVMInt1TypeInContext(e->context), "")
                                 : value;
}

static void lds_store(struct emitter *e, const struct lds_fold *lds, LLVMValueRef item, LLVMValueRef value)
{
    if (lds->dtype == BW_BOOL)
        value = LLVMBuildZExt(e->builder, value, lds->type, "");
    LLVMBuildStore(e->builder, value, lds_at(e, lds, item));
}

/* Work-items below `half` that have a partner add it to their own. */
static void lds_step(struct emitter *e, const struct lds_fold *lds, enum bw_op op, uint32_t half,
                     uint32_t count)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
    LLVMValueRef item = e->specials[BW_SPECIAL_ITEM];
    LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->context, e->function, "fold");
    LLVMBasicBlockRef after = LLVMAppendBasicBlockInContext(e->context, e->function, "folded");
    LLVMValueRef active = LLVMBuildICmp(e->builder, LLVMIntULT, item, LLVMConstInt(i32, count - half, 0), "");
    LLVMBuildCondBr(e->builder, active, inside, after);
    LLVMPositionBuilderAtEnd(e->builder, inside);
    LLVMValueRef partner = LLVMBuildAdd(e->builder, item, LLVMConstInt(i32, half, 0), "");
    LLVMValueRef sum = emit_combine(e, op, lds->dtype, lds_load(e, lds, item), lds_load(e, lds, partner));
    lds_store(e, lds, item, sum);
    LLVMBuildBr(e->builder, after);
    LLVMPositionBuilderAtEnd(e->builder, after);
    barrier(e);
}

static LLVMValueRef fold_through_lds(struct emitter *e, enum bw_op op, enum bw_dtype dtype,
                                     LLVMValueRef value)
{
    uint32_t count = e->linear->item_count;
    struct lds_fold lds = {.dtype = dtype};
    lds.type = dtype == BW_BOOL ? LLVMInt8TypeInContext(e->context) : emit_scalar_type(e, dtype);
    LLVMTypeRef array = LLVMArrayType2(lds.type, count);
    lds.array = LLVMAddGlobalInAddressSpace(e->module, array, "fold", LOCAL_SPACE);
    LLVMSetInitializer(lds.array, LLVMGetPoison(array));
    LLVMSetLinkage(lds.array, LLVMInternalLinkage);
    lds_store(e, &lds, e->specials[BW_SPECIAL_ITEM], value);
    barrier(e);
    while (count > 1) {
        uint32_t half = (count + 1) / 2;
        lds_step(e, &lds, op, half, count);
        count = half;
    }
    LLVMValueRef folded = lds_load(e, &lds, LLVMConstInt(LLVMInt32TypeInContext(e->context), 0, 0));
    barrier(e); /* a loop around this may store to the array again */
    return folded;
}

LLVMValueRef emit_group_fold(struct emitter *e, bw_node node)
{
    enum bw_op op = bw_ir_reduce_op(e->ir, node);
    enum bw_dtype dtype = bw_ir_dtype(e->ir, node);
    if (e->target->family != BW_TARGET_HOST)
        return fold_through_lds(e, op, dtype, emit_value(e, bw_ir_source(e->ir, node, 0), false));
    if (e->lanes == 1)
        return emit_value(e, bw_ir_source(e->ir, node, 0), false);
    return fold_lanes(e, op, dtype, emit_value(e, bw_ir_source(e->ir, node, 0), true));
}
