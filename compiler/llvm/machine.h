/* What code generation and assembling share of LLVM-C: target machines, the first diagnostic, the object in
 * memory. */
#ifndef BW_COMPILER_LLVM_MACHINE_H
#define BW_COMPILER_LLVM_MACHINE_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdint.h>

#include <bellwire/err.h>

#define BW_LLVM_TRIPLE_HOST   "x86_64-unknown-linux-gnu"
#define BW_LLVM_TRIPLE_AMDGPU "amdgcn-amd-amdhsa"

/* Position-independent code for cpu. The caller disposes of it. -ENOTSUP: this LLVM lacks the target. */
int bw_llvm_machine_create(const char *triple, const char *cpu, const char *features,
                           LLVMTargetMachineRef *machine, struct bw_err *err);

/* The first error of a context, one line; empty when there was none. Must outlive the context that it
 * watches. */
struct bw_llvm_diagnostics {
    char first[160];
};
void bw_llvm_diagnostics_watch(LLVMContextRef context, struct bw_llvm_diagnostics *diagnostics);

/* The module as a file of that type. The caller disposes of *buffer. -EINVAL: LLVM's own reason. */
int bw_llvm_emit(LLVMTargetMachineRef machine, LLVMModuleRef module, LLVMCodeGenFileType type,
                 LLVMMemoryBufferRef *buffer, struct bw_err *err);
/* The module as an object. *object is malloc'd, the caller frees it. */
int bw_llvm_emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module, void **object,
                        uint64_t *object_bytes, struct bw_err *err);

#endif
