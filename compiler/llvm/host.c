/* The host's kernel function and its record: see drivers/host/host.h for the ABI. */
#include <stdio.h>
#include <string.h>

#include <bellwire/program.h>

#include "compiler/llvm/emit.h"
#include "drivers/host/host.h"

static void add_attribute(struct emitter *e, LLVMValueRef function, LLVMAttributeIndex at, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, at, LLVMCreateEnumAttribute(e->context, kind, 0));
}

/* What the record says, as bytes in the section that the loader looks for. */
static void emit_record(struct emitter *e, const char *name)
{
    struct {
        struct bw_host_kernel_record kernel;
        struct bw_host_argument_record arguments[BW_HOST_ARGUMENTS_MAX];
    } record;
    uint32_t count = (uint32_t)e->linear->params.count;
    uint32_t bytes = (uint32_t)(sizeof record.kernel + count * sizeof record.arguments[0]);
    memset(&record, 0, bytes);
    record.kernel = (struct bw_host_kernel_record){.magic = BW_HOST_KERNEL_MAGIC,
                                                   .record_bytes = bytes,
                                                   .argument_count = count,
                                                   .argument_bytes = 8 * count};
    strncpy(record.kernel.symbol, name, sizeof record.kernel.symbol - 1);
    for (uint32_t i = 0; i < count; i++) {
        record.arguments[i] =
            (struct bw_host_argument_record){.kind = BW_ARGUMENT_BUFFER, .offset = 8 * i, .size_bytes = 8};
        snprintf(record.arguments[i].name, sizeof record.arguments[i].name, "p%u", i);
    }
    LLVMValueRef data = LLVMConstStringInContext2(e->context, (const char *)&record, bytes, 1);
    LLVMValueRef global = LLVMAddGlobal(e->module, LLVMTypeOf(data), "record");
    LLVMSetInitializer(global, data);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMInternalLinkage);
    LLVMSetSection(global, BW_HOST_KERNEL_SECTION);
    LLVMSetAlignment(global, 4);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
    LLVMValueRef used = LLVMAddGlobal(e->module, LLVMArrayType2(pointer, 1), "llvm.used");
    LLVMSetInitializer(used, LLVMConstArray2(pointer, &global, 1));
    LLVMSetLinkage(used, LLVMAppendingLinkage);
    LLVMSetSection(used, "llvm.metadata");
}

/* void body(pointers.., group x, y, z), whose pointers do not alias; inlined into the kernel. */
static LLVMTypeRef body_type(struct emitter *e)
{
    LLVMTypeRef types[BW_LINEAR_PARAMS_MAX + 3];
    unsigned count = (unsigned)e->linear->params.count;
    for (unsigned i = 0; i < count; i++)
        types[i] = LLVMPointerTypeInContext(e->context, 0);
    for (unsigned i = 0; i < 3; i++)
        types[count + i] = LLVMInt32TypeInContext(e->context);
    return LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, count + 3, 0);
}

static LLVMValueRef lane_numbers(struct emitter *e)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
    LLVMValueRef numbers[1024];
    for (uint32_t i = 0; i < e->lanes; i++)
        numbers[i] = LLVMConstInt(i32, i, 0);
    return e->lanes > 1 ? LLVMConstVector(numbers, e->lanes) : numbers[0];
}

static void emit_kernel(struct emitter *e, const char *name, LLVMTypeRef type, LLVMValueRef body)
{
    LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i32 = LLVMInt32TypeInContext(e->context);
    LLVMTypeRef types[] = {pointer, i32, i32, i32};
    LLVMValueRef kernel =
        LLVMAddFunction(e->module, name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, 4, 0));
    LLVMValueRef arguments[BW_LINEAR_PARAMS_MAX + 3];
    unsigned count = (unsigned)e->linear->params.count;
    add_attribute(e, kernel, LLVMAttributeFunctionIndex, "nounwind");
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, kernel, "entry"));
    for (unsigned i = 0; i < count; i++) {
        LLVMValueRef offset = LLVMConstInt(LLVMInt64TypeInContext(e->context), 8ull * i, 0);
        LLVMValueRef at = LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context),
                                        LLVMGetParam(kernel, 0), &offset, 1, "");
        arguments[i] = LLVMBuildLoad2(e->builder, pointer, at, "");
    }
    for (unsigned i = 0; i < 3; i++)
        arguments[count + i] = LLVMGetParam(kernel, 1 + i);
    LLVMBuildCall2(e->builder, type, body, arguments, count + 3, "");
    LLVMBuildRetVoid(e->builder);
}

void emit_host_function(struct emitter *e, const char *name)
{
    LLVMTypeRef type = body_type(e);
    unsigned count = (unsigned)e->linear->params.count;
    e->function = LLVMAddFunction(e->module, "body", type);
    LLVMSetLinkage(e->function, LLVMInternalLinkage);
    add_attribute(e, e->function, LLVMAttributeFunctionIndex, "alwaysinline");
    add_attribute(e, e->function, LLVMAttributeFunctionIndex, "nounwind");
    for (unsigned i = 0; i < count; i++) {
        bw_node param = e->linear->params.data[i];
        e->params[i] = LLVMGetParam(e->function, i);
        add_attribute(e, e->function, i + 1, "noalias");
        add_attribute(e, e->function, i + 1,
                      param && bw_ir_param_written(e->ir, param) ? "noundef" : "readonly");
    }
    for (unsigned i = 0; i < 3; i++)
        e->specials[BW_SPECIAL_GROUP_X + i] = LLVMGetParam(e->function, count + i);
    e->specials[BW_SPECIAL_ITEM] = lane_numbers(e);
    LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, e->function, "entry"));
    emit_body(e);
    LLVMBuildRetVoid(e->builder);
    emit_kernel(e, name, type, e->function);
    emit_record(e, name);
}
