/* What code generation and assembling share of LLVM-C: target machines, the first diagnostic, the object in
 * memory. */
#ifndef BW_COMPILER_LLVM_MACHINE_H
#define BW_COMPILER_LLVM_MACHINE_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdint.h>

#include <bellwire/err.h>

#include "drivers/amd/arch.h"

#define BW_LLVM_TRIPLE_HOST   "x86_64-unknown-linux-gnu"
#define BW_LLVM_TRIPLE_AMDGPU "amdgcn-amd-amdhsa"

/* The row of arch. -ENOTSUP: it is not in the table, or needs a later LLVM; the hint lists those that there
 * are. LLVM itself is not asked: for a cpu that it does not know it prints a warning and makes code for none,
 * or aborts. */
int bw_llvm_arch_find(const char *subsystem, const char *arch, const struct bw_amd_arch **row,
                      struct bw_err *err);

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
/* The module as an object. *object is malloc'd, the caller frees it. -ENOTSUP: an AMD GPU's that is not
 * marked as the machine's cpu. */
int bw_llvm_emit_object(LLVMTargetMachineRef machine, LLVMModuleRef module, void **object,
                        uint64_t *object_bytes, struct bw_err *err);

#endif
