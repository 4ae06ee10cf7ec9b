/* Target machines, diagnostics and emission: see machine.h. */
#include "compiler/llvm/machine.h"

#include <errno.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

/* LLVM's registry of targets is a list without a lock, so that it is filled before there are threads; this
 * library has no state of its own that could say "once". */
__attribute__((constructor)) static void targets_register(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser();
}

int bw_llvm_machine_create(const char *triple, const char *cpu, const char *features,
                           LLVMTargetMachineRef *machine, struct bw_err *err)
{
    LLVMTargetRef target;
    char *message = NULL;
    if (LLVMGetTargetFromTriple(triple, &target, &message)) {
        int rc = bw_fail(err, -ENOTSUP, "llvm", "%s", message);
        LLVMDisposeMessage(message);
        return rc;
    }
    *machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                       LLVMCodeModelDefault);
    return *machine ? 0 : bw_fail(err, -ENOMEM, "llvm", "target machine for %s", cpu);
}

static void keep_first_error(LLVMDiagnosticInfoRef info, void *user)
{
    struct bw_llvm_diagnostics *diagnostics = user;
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

void bw_llvm_diagnostics_watch(LLVMContextRef context, struct bw_llvm_diagnostics *diagnostics)
{
    *diagnostics = (struct bw_llvm_diagnostics){{0}};
    LLVMContextSetDiagnosticHandler(context, keep_first_error, diagnostics);
}

int bw_llvm_emit(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                 LLVMMemoryBufferRef *buffer, struct bw_err *err)
{
    char *message = NULL;
    if (!LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, buffer))
        return 0;
    int rc = bw_fail(err, -EINVAL, "llvm", "%s", message ? message : "no object");
    LLVMDisposeMessage(message);
    return rc;
}

int bw_llvm_emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module, void **object,
                        uint64_t *object_bytes, struct bw_err *err)
{
    LLVMMemoryBufferRef buffer = NULL;
    int rc = bw_llvm_emit(machine, module, LLVMObjectFile, &buffer, err);
    if (rc)
        return rc;
    *object_bytes = LLVMGetBufferSize(buffer);
    *object = malloc(*object_bytes + 1);
    if (*object)
        memcpy(*object, LLVMGetBufferStart(buffer), *object_bytes);
    LLVMDisposeMemoryBuffer(buffer);
    return *object ? 0
                   : bw_fail(err, -ENOMEM, "llvm", "object of %llu bytes", (unsigned long long)*object_bytes);
}
