/* A kernel of amdgcn-amd-amdhsa: LLVM's AMDGPUUsage, "AMDGPU_KERNEL" calling convention; arguments are global
 * pointers in order, code object v5 (the note that LLVM writes tells the loader where they lie). */
#include <stdio.h>
#include <string.h>

#include "compiler/llvm/emit.h"

enum {
    AMDGPU_KERNEL = 91, /* llvm/IR/CallingConv.h */
    GLOBAL_SPACE = 1,
    LOCAL_SPACE = 3,
};

static void add_attribute(struct emitter *e, LLVMValueRef function, LLVMAttributeIndex at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, at, LLVMCreateEnumAttribute(e->context, kind, 0));
}

static void add_string(struct emitter *e, LLVMValueRef function, const char *name, const char *value)
{
    LLVMAddAttributeAtIndex(
        function, LLVMAttributeFunctionIndex,
        LLVMCreateStringAttribute(e->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

/* Hardware number of a group or item, known to be below `size`. */
static LLVMValueRef hardware_id(struct emitter *e, const char *name, uint32_t size)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
    if (size == 1)
        return LLVMConstInt(i32, 0, 0);
    LLVMValueRef call =
        LLVMBuildCall2(e->builder, LLVMIntrinsicGetType(e->context, id, NULL, 0), function, NULL, 0, "");
    LLVMMetadataRef range[] = {LLVMValueAsMetadata(LLVMConstInt(i32, 0, 0)),
                               LLVMValueAsMetadata(LLVMConstInt(i32, size, 0))};
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, range, 2);
    LLVMSetMetadata(call, LLVMGetMDKindIDInContext(e->context, "range", 5),
                    LLVMMetadataAsValue(e->context, node));
    return call;
}

static void emit_specials(struct emitter *e)
{
    static const char *const names[] = {"llvm.amdgcn.workgroup.id.x", "llvm.amdgcn.workgroup.id.y",
                                        "llvm.amdgcn.workgroup.id.z"};
    for (int i = 0; i < 3; i++)
        e->specials[BW_SPECIAL_GROUP_X + i] = hardware_id(e, names[i], e->linear->group_count[i]);
    e->specials[BW_SPECIAL_ITEM] = hardware_id(e, "llvm.amdgcn.workitem.id.x", e->linear->item_count);
}

void emit_amdgpu_function(struct emitter *e, const char *name)
{
    LLVMTypeRef types[BW_LINEAR_PARAMS_MAX];
    char sizes[32];
    unsigned count = (unsigned)e->linear->params.count;
    for (unsigned i = 0; i < count; i++)
        types[i] = LLVMPointerTypeInContext(e->context, GLOBAL_SPACE);
    e->address_space = GLOBAL_SPACE;
    e->function = LLVMAddFunction(e->module, name,
                                  LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, count, 0));
    LLVMSetFunctionCallConv(e->function, AMDGPU_KERNEL);
    LLVMSetVisibility(e->function, LLVMProtectedVisibility);
    snprintf(sizes, sizeof sizes, "%u,%u", e->linear->item_count, e->linear->item_count);
    add_string(e, e->function, "amdgpu-flat-work-group-size", sizes);
    add_string(e, e->function, "uniform-work-group-size", "true");
    add_attribute(e, e->function, LLVMAttributeFunctionIndex, "nounwind");
    for (unsigned i = 0; i < count; i++) {
        bw_node param = e->linear->params.data[i];
        e->params[i] = LLVMGetParam(e->function, i);
        add_attribute(e, e->function, i + 1, "noalias");
        if (!param || !bw_ir_param_written(e->ir, param))
            add_attribute(e, e->function, i + 1, "readonly");
    }
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
    emit_specials(e);
    emit_body(e);
    LLVMBuildRetVoid(e->builder);
}
