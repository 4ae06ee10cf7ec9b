/* Target machines, diagnostics and emission: see machine.h. */
#include "compiler/llvm/machine.h"

#include <elf.h>
#include <errno.h>
#include <llvm-c/Target.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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

static bool makes_code(const struct bw_amd_arch *row)
{
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    return row->llvm_major <= major;
}

int bw_llvm_arch_find(const char *subsystem, const char *arch, const struct bw_amd_arch **row,
                      struct bw_err *err)
{
    uint32_t count;
    const struct bw_amd_arch *table = bw_amd_arch_table(&count);
    *row = bw_amd_arch_find(arch);
    if (*row && makes_code(*row))
        return 0;
    bw_fail(err, -ENOTSUP, subsystem, "architecture '%s'", arch);
    if (*row) {
        unsigned major, minor, patch;
        LLVMGetVersion(&major, &minor, &patch);
        bw_err_expected(err, "LLVM %u or later", (*row)->llvm_major);
        bw_err_observed(err, "LLVM %u.%u.%u", major, minor, patch);
    }
    struct bw_text known = {0};
    for (uint32_t i = 0; i < count; i++)
        if (makes_code(&table[i]))
            bw_text_add(&known, "%s%s", known.length ? ", " : "", table[i].name);
    bw_err_hint(err, "known: %s", bw_text_string(&known));
    bw_text_free(&known);
    return -ENOTSUP;
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

/* What LLVM says that it made. */
static int check_marks(LLVMTargetMachineRef machine, const void *object, uint64_t object_bytes,
                       struct bw_err *err)
{
    char *cpu = LLVMGetTargetMachineCPU(machine);
    const struct bw_amd_arch *row = bw_amd_arch_find(cpu);
    LLVMDisposeMessage(cpu);
    Elf64_Ehdr header;
    if (!row || object_bytes < sizeof header)
        return 0;
    memcpy(&header, object, sizeof header);
    if ((header.e_flags & BW_AMD_ELF_FLAGS_MACHINE) == row->elf_machine)
        return 0;
    bw_fail(err, -ENOTSUP, "llvm", "object for %s: e_flags 0x%x", row->name, header.e_flags);
    bw_err_expected(err, "machine 0x%x", row->elf_machine);
    return -ENOTSUP;
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
    if (!*object)
        return bw_fail(err, -ENOMEM, "llvm", "object of %llu bytes", (unsigned long long)*object_bytes);
    rc = check_marks(machine, *object, *object_bytes, err);
    if (rc) {
        free(*object);
        *object = NULL;
    }
    return rc;
}
