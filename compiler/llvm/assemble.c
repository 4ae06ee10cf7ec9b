/* The assembler is LLVM's, reached as module-level inline assembly: LLVM-C has no other door to it. */
#include "compiler/llvm/assemble.h"

#include <errno.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/amd/arch.h"

struct diagnostics {
    char first[160];
};

static void keep_first_error(LLVMDiagnosticInfoRef info, void *user)
{
    struct diagnostics *diagnostics = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || diagnostics->first[0])
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    size_t length = strcspn(text, "\n");
    if (length >= sizeof diagnostics->first)
        length = sizeof diagnostics->first - 1;
    memcpy(diagnostics->first, text, length);
    diagnostics->first[length] = 0;
    LLVMDisposeMessage(text);
}

static LLVMTargetMachineRef machine_create(const char *arch)
{
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple("amdgcn-amd-amdhsa", &target, &message)) {
        LLVMDisposeMessage(message);
        return NULL;
    }
    return LLVMCreateTargetMachine(target, "amdgcn-amd-amdhsa", arch, "", LLVMCodeGenLevelNone, LLVMRelocPIC,
                                   LLVMCodeModelDefault);
}

static int emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module, struct diagnostics *diagnostics,
                       void **object, uint64_t *object_bytes, struct bw_err *err)
{
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    int failed = LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &buffer);
    if (failed || diagnostics->first[0]) {
        int code = bw_fail(err, -EINVAL, "asm", "%s",
                           diagnostics->first[0] ? diagnostics->first
                           : message             ? message
                                                 : "not assembled");
        LLVMDisposeMessage(message);
        if (buffer)
            LLVMDisposeMemoryBuffer(buffer);
        return code;
    }
    uint64_t size = LLVMGetBufferSize(buffer);
    *object = malloc(size);
    if (*object)
        memcpy(*object, LLVMGetBufferStart(buffer), size);
    *object_bytes = size;
    LLVMDisposeMemoryBuffer(buffer);
    return *object ? 0 : bw_fail(err, -ENOMEM, "asm", "object of %llu bytes", (unsigned long long)size);
}

int bw_llvm_assemble(const char *arch, const char *text, uint64_t text_bytes, void **object,
                     uint64_t *object_bytes, struct bw_err *err)
{
    if (!bw_amd_arch_find(arch)) {
        char known[160];
        bw_amd_arch_names(known, sizeof known);
        bw_fail(err, -ENOTSUP, "asm", "architecture '%s'", arch);
        bw_err_hint(err, "known: %s", known);
        return -ENOTSUP;
    }
    LLVMTargetMachineRef machine = machine_create(arch);
    if (!machine)
        return bw_fail(err, -ENOTSUP, "asm", "this LLVM has no AMDGPU target");
    struct diagnostics diagnostics = {{0}};
    LLVMContextRef context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(context, keep_first_error, &diagnostics);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("asm", context);
    LLVMSetTarget(module, "amdgcn-amd-amdhsa");
    LLVMSetModuleInlineAsm2(module, text, text_bytes);
    int status = emit_object(machine, module, &diagnostics, object, object_bytes, err);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    return status;
}
