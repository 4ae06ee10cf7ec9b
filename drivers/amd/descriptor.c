/* Kernel descriptors: see code_object.h. Layout: LLVM Support/AMDHSAKernelDescriptor.h, meaning: AMDGPUUsage.
 */
#include <errno.h>
#include <inttypes.h>
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

/* kernarg_preload, and the value of TIDIG_COMP_CNT that says nothing: SYSTEM_VGPR_WORKITEM_ID_UNDEFINED. */
enum {
    PRELOAD_LENGTH = BW_AMD_BITS(0, 0, 6),
    PRELOAD_OFFSET = BW_AMD_BITS(0, 7, 15),
    WORKITEM_ID_UNDEFINED = 3,
};

/* SGPRs of each property bit, in bit order: AMDGPUUsage "SGPR Register Set Up Order". */
static const uint8_t sgprs_of_property[] = {4, 2, 2, 2, 2, 2, 1};

/* A reserved byte that is not 0: its offset; 64: none. */
static size_t reserved_byte(const struct descriptor_layout *layout)
{
    static const struct {
        size_t offset, count;
    } reserved[] = {
        {offsetof(struct descriptor_layout, reserved0), sizeof layout->reserved0},
        {offsetof(struct descriptor_layout, reserved1), sizeof layout->reserved1},
        {offsetof(struct descriptor_layout, reserved3), sizeof layout->reserved3},
    };
    for (size_t i = 0; i < BW_COUNT_OF(reserved); i++)
        for (size_t k = 0; k < reserved[i].count; k++)
            if (((const uint8_t *)layout)[reserved[i].offset + k])
                return reserved[i].offset + k;
    return sizeof *layout;
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

/* More than what the properties ask for is a kernel's right: LLVM pads to 16 for gfx1100 and gfx1102, whose
 * first SGPRs are else not all initialised (FeatureUserSGPRInit16Bug). */
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

/* What is preloaded must be there: words [offset, offset + length) of the arguments. */
static int check_preload(const struct bw_amd_arch *arch, const char *kernel_name,
                         const struct bw_amd_descriptor *d, struct bw_err *err)
{
    if (!d->preload_words && !d->preload_offset_words)
        return 0;
    if (!arch->kernarg_preload) {
        bw_fail(err, -EINVAL, "elf", "descriptor of %s: kernarg_preload of %u words at word %u", kernel_name,
                d->preload_words, d->preload_offset_words);
        bw_err_expected(err, "0, reserved on %s", arch->name);
        return -EINVAL;
    }
    uint64_t end = (uint64_t)d->preload_offset_words + d->preload_words,
             words = bw_div_up(d->argument_bytes, 4);
    if (d->preload_words && end <= words)
        return 0;
    bw_fail(err, -EINVAL, "elf", "descriptor of %s: kernarg_preload of %u words at word %u", kernel_name,
            d->preload_words, d->preload_offset_words);
    bw_err_expected(err, "some of the %" PRIu64 " words of arguments", words);
    return -EINVAL;
}

static int refuse_value(const char *kernel_name, const char *field, uint32_t value, const char *expected,
                        struct bw_err *err)
{
    bw_fail(err, -EINVAL, "elf", "descriptor of %s: %s = %u", kernel_name, field, value);
    bw_err_expected(err, "%s", expected);
    return -EINVAL;
}

/* Fields that hold only together with others. */
static int check_registers(const struct bw_amd_arch *arch, const char *kernel_name,
                           const struct bw_amd_descriptor *d, struct bw_err *err)
{
    bool wave32 = d->properties & BW_AMD_KERNEL_WAVEFRONT_SIZE32;
    uint32_t vgprs = (bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC1_VGPRS, d->rsrc1) + 1) * arch->vgpr_unit *
                     (wave32 ? 2 : 1);
    uint32_t shared = bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC3_SHARED_VGPR_CNT, d->rsrc3);
    uint32_t accum = bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC3_GFX9_ACCUM_OFFSET, d->rsrc3);
    if (bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC2_TIDIG_COMP_CNT, d->rsrc2) == WORKITEM_ID_UNDEFINED)
        return refuse_value(kernel_name, "COMPUTE_PGM_RSRC2.TIDIG_COMP_CNT", WORKITEM_ID_UNDEFINED, "0 to 2",
                            err);
    switch (arch->rsrc3_layout) {
    case BW_AMD_RSRC3_SHARED_VGPRS:
        if (shared && (wave32 || vgprs + 8 * shared > arch->vgprs_per_wave))
            return refuse_value(kernel_name, "COMPUTE_PGM_RSRC3.SHARED_VGPR_CNT", shared,
                                wave32 ? "0 in waves of 32" : "all registers within those of a wave", err);
        return 0;
    case BW_AMD_RSRC3_ACCUM_OFFSET:
        if (4 * (accum + 1) > vgprs)
            return refuse_value(kernel_name, "COMPUTE_PGM_RSRC3.ACCUM_OFFSET", accum,
                                "an offset within the registers of a wave", err);
        if (bw_amd_bits_unpack(BW_AMD_COMPUTE_PGM_RSRC3_GFX9_TG_SPLIT, d->rsrc3) && d->group_bytes)
            return refuse_value(kernel_name, "COMPUTE_PGM_RSRC3.TG_SPLIT", 1, "0 in a kernel with LDS", err);
        return 0;
    default:
        return 0;
    }
}

static int check_reserved(const struct bw_amd_arch *arch, const char *kernel_name,
                          const struct descriptor_layout *layout, const struct bw_amd_descriptor *d,
                          struct bw_err *err)
{
    size_t byte = reserved_byte(layout);
    if (byte < sizeof *layout)
        return bw_fail(err, -EINVAL, "elf", "descriptor of %s: byte %zu is 0x%02x, and reserved", kernel_name,
                       byte, ((const uint8_t *)layout)[byte]);
    int rc = refuse_bits(kernel_name, "COMPUTE_PGM_RSRC1", d->rsrc1, arch->rsrc1_reserved, err);
    rc = rc ? rc : refuse_bits(kernel_name, "COMPUTE_PGM_RSRC2", d->rsrc2, arch->rsrc2_reserved, err);
    rc = rc ? rc : refuse_bits(kernel_name, "COMPUTE_PGM_RSRC3", d->rsrc3, arch->rsrc3_reserved, err);
    return rc ? rc
              : refuse_bits(kernel_name, "kernel_code_properties", d->properties,
                            ~(uint32_t)BW_AMD_KERNEL_PROPERTIES_KNOWN, err);
}

static int check_sizes(const struct bw_amd_arch *arch, const char *kernel_name,
                       const struct bw_amd_descriptor *d, struct bw_err *err)
{
    uint32_t wave_size = d->properties & BW_AMD_KERNEL_WAVEFRONT_SIZE32 ? 32 : 64;
    if (!(arch->wave_sizes & wave_size))
        return bw_fail(err, -EINVAL, "elf", "descriptor of %s: waves of %u, which %s does not have",
                       kernel_name, wave_size, arch->name);
    if (d->group_bytes > arch->lds_bytes) {
        bw_fail(err, -E2BIG, "elf", "%s: static LDS of %u bytes", kernel_name, d->group_bytes);
        bw_err_expected(err, "at most %u (lds_bytes of %s)", arch->lds_bytes, arch->name);
        return -E2BIG;
    }
    if (d->argument_bytes > BW_AMD_ARGUMENT_BYTES_MAX) {
        bw_fail(err, -E2BIG, "elf", "%s: arguments of %u bytes", kernel_name, d->argument_bytes);
        bw_err_expected(err, "at most %u (BW_AMD_ARGUMENT_BYTES_MAX)", BW_AMD_ARGUMENT_BYTES_MAX);
        return -E2BIG;
    }
    return 0;
}

int bw_amd_descriptor_read(const struct bw_amd_arch *arch, const char *kernel_name, const uint8_t bytes[64],
                           struct bw_amd_descriptor *descriptor, struct bw_err *err)
{
    struct descriptor_layout layout;
    memcpy(&layout, bytes, sizeof layout);
    *descriptor = (struct bw_amd_descriptor){
        .group_bytes = layout.group_segment_fixed_size,
        .private_bytes = layout.private_segment_fixed_size,
        .argument_bytes = layout.kernarg_size,
        .entry_offset = layout.kernel_code_entry_byte_offset,
        .rsrc1 = layout.compute_pgm_rsrc1,
        .rsrc2 = layout.compute_pgm_rsrc2,
        .rsrc3 = layout.compute_pgm_rsrc3,
        .properties = layout.kernel_code_properties,
        .preload_words = bw_amd_bits_unpack(PRELOAD_LENGTH, layout.kernarg_preload),
        .preload_offset_words = bw_amd_bits_unpack(PRELOAD_OFFSET, layout.kernarg_preload),
    };
    int rc = check_reserved(arch, kernel_name, &layout, descriptor, err);
    rc = rc ? rc : check_sizes(arch, kernel_name, descriptor, err);
    rc = rc ? rc : check_preload(arch, kernel_name, descriptor, err);
    rc = rc ? rc : check_registers(arch, kernel_name, descriptor, err);
    return rc ? rc : check_user_sgprs(arch, kernel_name, descriptor, err);
}
