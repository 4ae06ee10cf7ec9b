/* Kernel descriptors: see code_object.h. Layout: LLVM Support/AMDHSAKernelDescriptor.h, meaning: AMDGPUUsage.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/code_object.h"
#include "drivers/amd/regs.h"

struct descriptor_layout {
    uint32_t group_segment_fixed_size;
    uint32_t private_segment_fixed_size;
    uint32_t kernarg_size;
    uint8_t reserved0[4];
    int64_t kernel_code_entry_byte_offset;
    uint8_t reserved1[20];
    uint32_t compute_pgm_rsrc3;
    uint32_t compute_pgm_rsrc1;
    uint32_t compute_pgm_rsrc2;
    uint16_t kernel_code_properties;
    uint16_t kernarg_preload;
    uint8_t reserved3[4];
};
_Static_assert(sizeof(struct descriptor_layout) == 64, "AMDHSAKernelDescriptor.h");
_Static_assert(offsetof(struct descriptor_layout, compute_pgm_rsrc3) == 44, "AMDHSAKernelDescriptor.h");
_Static_assert(offsetof(struct descriptor_layout, kernarg_preload) == 58, "AMDHSAKernelDescriptor.h");

enum { PRELOAD_LENGTH_BITS = 7 };

/* SGPRs of each property bit, in bit order: AMDGPUUsage "SGPR Register Set Up Order". */
static const uint8_t sgprs_of_property[] = {4, 2, 2, 2, 2, 2, 1};

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i])
            return false;
    return true;
}

static int refuse_bits(const char *kernel_name, const char *reg, uint32_t value, uint32_t reserved,
                       struct bw_err *err)
{
    if ((value & reserved) == 0)
        return 0;
    bw_fail(err, -EINVAL, "elf", "descriptor of %s: %s = 0x%08x", kernel_name, reg, value);
    bw_err_expected(err, "bits 0x%08x clear", reserved);
    bw_err_observed(err, "0x%08x set", value & reserved);
    return -EINVAL;
}

uint32_t bw_amd_descriptor_user_sgprs(const struct bw_amd_descriptor *descriptor)
{
    uint32_t count = 0;
    for (size_t i = 0; i < BW_COUNT_OF(sgprs_of_property); i++)
        if (descriptor->properties >> i & 1)
            count += sgprs_of_property[i];
    return count;
}

static int check_user_sgprs(const struct bw_amd_arch *arch, const char *kernel_name,
                            const struct bw_amd_descriptor *d, struct bw_err *err)
{
    uint32_t scratch_sgprs = BW_AMD_KERNEL_PRIVATE_SEGMENT_BUFFER | BW_AMD_KERNEL_FLAT_SCRATCH_INIT;
    if (arch->architected_flat_scratch && (d->properties & scratch_sgprs))
        return bw_fail(err, -EINVAL, "elf",
                       "descriptor of %s: asks for scratch SGPRs, which %s does not have", kernel_name,
                       arch->name);
    uint32_t needed = bw_amd_descriptor_user_sgprs(d) + d->preload_words;
    uint32_t declared = bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC2_USER_SGPR, d->rsrc2);
    if (declared > BW_AMD_USER_SGPRS_MAX || needed > declared) {
        bw_fail(err, -EINVAL, "elf", "descriptor of %s: %u user SGPRs", kernel_name, declared);
        bw_err_expected(err, "%u to %u", needed, BW_AMD_USER_SGPRS_MAX);
        return -EINVAL;
    }
    return 0;
}

int bw_amd_descriptor_read(const struct bw_amd_arch *arch, const char *kernel_name, const uint8_t bytes[64],
                           struct bw_amd_descriptor *descriptor, struct bw_err *err)
{
    struct descriptor_layout layout;
    memcpy(&layout, bytes, sizeof layout);
    *descriptor = (struct bw_amd_descriptor){layout.group_segment_fixed_size,
                                             layout.private_segment_fixed_size,
                                             layout.kernarg_size,
                                             layout.kernel_code_entry_byte_offset,
                                             layout.compute_pgm_rsrc1,
                                             layout.compute_pgm_rsrc2,
                                             layout.compute_pgm_rsrc3,
                                             layout.kernel_code_properties,
                                             layout.kernarg_preload & ((1u << PRELOAD_LENGTH_BITS) - 1)};
    if (!all_zero(layout.reserved0, sizeof layout.reserved0) ||
        !all_zero(layout.reserved1, sizeof layout.reserved1) ||
        !all_zero(layout.reserved3, sizeof layout.reserved3))
        return bw_fail(err, -EINVAL, "elf", "descriptor of %s: reserved bytes are not 0", kernel_name);
    int rc = refuse_bits(kernel_name, "COMPUTE_PGM_RSRC1", descriptor->rsrc1, arch->rsrc1_reserved, err);
    rc =
        rc ? rc : refuse_bits(kernel_name, "COMPUTE_PGM_RSRC2", descriptor->rsrc2, arch->rsrc2_reserved, err);
    rc =
        rc ? rc : refuse_bits(kernel_name, "COMPUTE_PGM_RSRC3", descriptor->rsrc3, arch->rsrc3_reserved, err);
    rc = rc ? rc
            : refuse_bits(kernel_name, "kernel_code_properties", descriptor->properties,
                          ~(uint32_t)BW_AMD_KERNEL_PROPERTIES_KNOWN, err);
    if (rc)
        return rc;
    uint32_t wave_size = descriptor->properties & BW_AMD_KERNEL_WAVEFRONT_SIZE32 ? 32 : 64;
    if (!(arch->wave_sizes & wave_size))
        return bw_fail(err, -EINVAL, "elf", "descriptor of %s: waves of %u, which %s does not have",
                       kernel_name, wave_size, arch->name);
    if (descriptor->group_bytes > arch->lds_bytes) {
        bw_fail(err, -E2BIG, "elf", "%s: static LDS of %u bytes", kernel_name, descriptor->group_bytes);
        bw_err_expected(err, "at most %u (lds_bytes of %s)", arch->lds_bytes, arch->name);
        return -E2BIG;
    }
    if (descriptor->argument_bytes > BW_AMD_ARGUMENT_BYTES_MAX) {
        bw_fail(err, -E2BIG, "elf", "%s: arguments of %u bytes", kernel_name, descriptor->argument_bytes);
        bw_err_expected(err, "at most %u (BW_AMD_ARGUMENT_BYTES_MAX)", BW_AMD_ARGUMENT_BYTES_MAX);
        return -E2BIG;
    }
    return check_user_sgprs(arch, kernel_name, descriptor, err);
}
