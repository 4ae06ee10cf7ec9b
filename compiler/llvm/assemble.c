/* The assembler is LLVM's, reached as module-level inline assembly: LLVM-C has no other door to it. */
#include "compiler/llvm/assemble.h"

#include <errno.h>
#include <stdlib.h>

#include "compiler/llvm/machine.h"

static int assemble(LLVMTargetMachineRef machine, LLVMModuleRef module,
                    const struct bw_llvm_diagnostics *diagnostics, void **object, uint64_t *object_bytes,
                    struct bw_err *err)
{
    int rc = bw_llvm_emit_object(machine, module, object, object_bytes, err);
    if (!diagnostics->first[0])
        return rc;
    if (!rc) { /* what was emitted lacks the refused line */
        free(*object);
        *object = NULL;
    }
    return bw_fail(err, -EINVAL, "asm", "%s", diagnostics->first);
}

int bw_llvm_assemble(const char *arch, const char *text, uint64_t text_bytes, void **object,
                     uint64_t *object_bytes, struct bw_err *err)
{
    const struct bw_amd_arch *row;
    LLVMTargetMachineRef machine = NULL;
    int rc = bw_llvm_arch_find("asm", arch, &row, err);
    if (!rc)
        rc = bw_llvm_machine_create(BW_LLVM_TRIPLE_AMDGPU, row->name, "", &machine, err);
    if (rc)
        return rc;
    struct bw_llvm_diagnostics diagnostics;
    LLVMContextRef context = LLVMContextCreate();
    bw_llvm_diagnostics_watch(context, &diagnostics);
    LLVMModuleRef module = LLVMModuleCreateWithNameInContext("asm", context);
    LLVMSetTarget(module, BW_LLVM_TRIPLE_AMDGPU);
    LLVMSetModuleInlineAsm2(module, text, text_bytes);
    rc = assemble(machine, module, &diagnostics, object, object_bytes, err);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    return rc;
}
