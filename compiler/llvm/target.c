/* Which machine to generate code for: see compiler/codegen.h. */
#include <errno.h>
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen.h"
#include "compiler/llvm/machine.h"

int bw_target_host(struct bw_target *target, struct bw_err *err)
{
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    *target = (struct bw_target){.family = BW_TARGET_HOST,
                                 .wave_size = 1,
                                 .group_size_max = 64,
                                 .workers = 1,
                                 .vector_bytes = 16,
                                 .vector_registers = 16,
                                 .decompose = {.keep_sin_f64 = true}};
    int cpu_length = snprintf(target->cpu, sizeof target->cpu, "%s", cpu);
    int length = snprintf(target->features, sizeof target->features, "%s", features);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    if (cpu_length >= (int)sizeof target->cpu || length >= (int)sizeof target->features)
        return bw_fail(err, -E2BIG, "llvm", "feature string of %d bytes", length);
    if (strstr(target->features, "+avx512f")) {
        target->vector_bytes = 64;
        target->vector_registers = 32;
    } else if (strstr(target->features, "+avx,") || strstr(target->features, "+avx2"))
        target->vector_bytes = 32;
    return 0;
}

int bw_target_amdgpu(const char *arch, struct bw_target *target, struct bw_err *err)
{
    const struct bw_amd_arch *row;
    int rc = bw_llvm_arch_find("llvm", arch, &row, err);
    if (rc)
        return rc;
    *target = (struct bw_target){.family = BW_TARGET_AMDGPU,
                                 .vector_bytes = 16,
                                 .vector_registers = 128,
                                 .wave_size = row->wave_size,
                                 .group_size_max = 256,
                                 .lds_bytes = row->lds_bytes,
                                 .workers = 1,
                                 .decompose = {.keep_exp2_log2_f32 = true}};
    snprintf(target->cpu, sizeof target->cpu, "%s", row->name);
    if (row->wave_sizes == (32 | 64))
        snprintf(target->features, sizeof target->features, "+wavefrontsize%u", row->wave_size);
    return 0;
}

int bw_target_from_device(const struct bw_device_info *info, struct bw_target *target, struct bw_err *err)
{
    int rc;
    if (!strcmp(info->driver, "amd"))
        rc = bw_target_amdgpu(info->arch, target, err);
    else if (!strcmp(info->driver, "host"))
        rc = bw_target_host(target, err);
    else {
        rc = bw_fail(err, -ENOTSUP, "llvm", "code for driver '%s'", info->driver);
        bw_err_hint(err, "it executes nothing: run on host:0, on a GPU or on a mock of one");
    }
    if (!rc && info->compute_units)
        target->workers = info->compute_units;
    return rc;
}
