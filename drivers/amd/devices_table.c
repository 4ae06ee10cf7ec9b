/* The architecture rows: see arch.h.
 *
 * Sources, by property:
 * - gfx_version: LLVM AMDGPUUsage "Processors" (gfxMNS = major.minor.stepping, stepping in hex); KFD's
 *   gfx_target_version = major*10000 + minor*100 + stepping (kfd_topology.c)
 * - elf_machine: LLVM BinaryFormat/ELF.h, EF_AMDGPU_MACH_*; gfx950's is of LLVM 20
 * - llvm_major: LLVM's release notes, "Changes to the AMDGPU Backend"
 * - packets: Linux nvd.h against soc15d.h; sdma_v6_0_0_pkt_open.h against vega10_sdma_pkt_open.h
 * - wave_sizes: AMDGPUUsage "Target Features" (wavefrontsize64), gfx9 has 64 only
 * - lds_bytes: RDNA3, RDNA4 and CDNA3 ISA documents, "LDS"; gfx950: AMDGPUUsage
 * - lds_granule_bytes: AMDGPUUsage, COMPUTE_PGM_RSRC2 GRANULATED_LDS_SIZE: 128 dwords; gfx950: 320 dwords
 * - simds_per_cu, waves_per_simd, vgprs_*, vgpr_*: LLVM AMDGPUBaseInfo.cpp, getEUsPerCU, getMaxWavesPerEU,
 *   getTotalNumVGPRs, getVGPRAllocGranule, getVGPREncodingGranule, getAddressableNumVGPRs, with the features
 *   of the processors in AMDGPU.td (GFX90AInsts; 1_5xVGPRs: gfx1100, gfx1101, gfx12)
 * - has_wgp_mode: AMDGPUUsage, COMPUTE_PGM_RSRC1 WGP_MODE: gfx10 and later
 * - scratch_granule_bytes: Linux gc_*_sh_mask.h and Mesa ac_gpu_info: 256 bytes from gfx11, 1024 before
 * - scratch_units_max: gc_11_0_0_sh_mask.h (15 bits), gc_9_4_2_sh_mask.h (13); gfx12: PAL's merged
 *   registers (18)
 * - scratch_waves_per_engine: Mesa radv, S_00B860_WAVES: per shader engine from gfx11
 * - rsrc*_reserved: LLVM Support/AMDHSAKernelDescriptor.h and AMDGPUUsage ("must be 0", "reserved")
 * - rsrc3_layout, kernarg_preload: AMDGPUUsage, compute_pgm_rsrc3 tables and KERNARG_PRELOAD_SPEC_LENGTH
 * - rsrc3_register: Linux gc_*_offset.h with the block's segment base: 0x1260 on gfx11, 0x2000 on gfx9
 * - architected_flat_scratch: AMDGPUUsage "Processors", column "Target Properties"
 * - workgroup_id_in_ttmp: AMDGPUUsage, initial SGPR state of gfx12
 * - xcc_max: Linux amdgpu_discovery; MI300X has 8 */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/packet.h"
#include "drivers/amd/regs.h"

#define VERIFIED(name) (1u << BW_AMD_PROPERTY_##name)
#define ALL_VERIFIED   ((1u << BW_AMD_PROPERTY_COUNT) - 1)

#define BIT(n)          (1u << (n))
#define BITS(low, high) ((uint32_t)(((1ull << ((high) - (low) + 1)) - 1) << (low)))

/* Kernel descriptor bits that must be 0. PRIORITY, PRIV, DEBUG_MODE, BULKY, CDBG_USER, the trap handler,
 * address watch and memory exceptions and the LDS size are the packet processor's (here: the encoder's) to
 * set; the rest is reserved. The count of SGPRs (RSRC1 6:9), which AMDGPUUsage reserves from gfx10 on, is
 * not: LLVM's code generator fills it on every generation, and waves have all 128 whatever it says. */
#define RSRC1_ALWAYS (BITS(10, 11) | BIT(20) | BIT(22) | BIT(24) | BIT(25) | BITS(27, 28))
#define RSRC1_GFX9   (RSRC1_ALWAYS | BITS(29, 31))
#define RSRC1_GFX12  (RSRC1_ALWAYS | BIT(23)) /* DISABLE_PERF */
#define RSRC2_ALWAYS (BIT(6) | BIT(13) | BIT(14) | BITS(15, 23) | BIT(31))
#define RSRC3_GFX9   (BITS(6, 15) | BITS(17, 31))
/* IMAGE_OP (31) is of kernels in graphics pipelines. */
#define RSRC3_GFX11 (BIT(10) | BIT(11) | BITS(12, 31))
#define RSRC3_GFX12 (BITS(0, 3) | BIT(12) | BITS(14, 31))

#define GFX9_COMMON                                                                                       \
    .packets = BW_AMD_PM4_COHER | BW_AMD_SDMA_4, .wave_sizes = 64, .wave_size = 64, .simds_per_cu = 4,    \
    .waves_per_simd = 8, .vgprs_per_simd = 512, .vgpr_granule = 8, .vgpr_unit = 8, .vgprs_per_wave = 512, \
    .scratch_granule_bytes = 1024, .scratch_units_max = (1 << 13) - 1, .rsrc1_reserved = RSRC1_GFX9,      \
    .rsrc2_reserved = RSRC2_ALWAYS, .rsrc3_reserved = RSRC3_GFX9,                                         \
    .rsrc3_register = BW_AMD_COMPUTE_PGM_RSRC3_GFX9, .rsrc3_layout = BW_AMD_RSRC3_ACCUM_OFFSET,           \
    .kernarg_preload = true
/* RDNA's register file, and the larger one of some. */
#define VGPRS_1X   .vgprs_per_simd = 512, .vgpr_granule = 8
#define VGPRS_1_5X .vgprs_per_simd = 768, .vgpr_granule = 12
#define GFX11_COMMON                                                                                      \
    .packets = BW_AMD_PM4_GCR | BW_AMD_SDMA_5, .wave_sizes = 32 | 64, .wave_size = 32, .simds_per_cu = 2, \
    .has_wgp_mode = true, .waves_per_simd = 16, .vgpr_unit = 4, .vgprs_per_wave = 256,                    \
    .lds_bytes = 64 << 10, .lds_granule_bytes = 512, .scratch_granule_bytes = 256,                        \
    .scratch_units_max = (1 << 15) - 1, .scratch_waves_per_engine = true, .rsrc1_reserved = RSRC1_ALWAYS, \
    .rsrc2_reserved = RSRC2_ALWAYS, .rsrc3_reserved = RSRC3_GFX11,                                        \
    .rsrc3_register = BW_AMD_COMPUTE_PGM_RSRC3, .rsrc3_layout = BW_AMD_RSRC3_SHARED_VGPRS,                \
    .architected_flat_scratch = true, .xcc_max = 1
#define GFX12_COMMON                                                                                      \
    .packets = BW_AMD_PM4_GCR | BW_AMD_SDMA_5, .wave_sizes = 32 | 64, .wave_size = 32, .simds_per_cu = 2, \
    .has_wgp_mode = true, .waves_per_simd = 16, .vgpr_unit = 4, .vgprs_per_wave = 256,                    \
    .lds_bytes = 64 << 10, .lds_granule_bytes = 512, .scratch_granule_bytes = 256,                        \
    .scratch_units_max = (1 << 18) - 1, .scratch_waves_per_engine = true, .rsrc1_reserved = RSRC1_GFX12,  \
    .rsrc2_reserved = RSRC2_ALWAYS, .rsrc3_reserved = RSRC3_GFX12,                                        \
    .rsrc3_register = BW_AMD_COMPUTE_PGM_RSRC3, .rsrc3_layout = BW_AMD_RSRC3_NO_REGISTERS,                \
    .architected_flat_scratch = true, .workgroup_id_in_ttmp = true, .xcc_max = 1

/* gfx12: Linux 6.1, which the register columns were read from, has no gc_12 headers; gfx950: nor gc_9_5. */
#define NOT_IN_KERNEL_6_1 (VERIFIED(rsrc3_register) | VERIFIED(scratch_granule_bytes) | VERIFIED(packets))

static const struct bw_amd_arch rows[] = {
    {.name = "gfx90a",
     .verified = ALL_VERIFIED & ~VERIFIED(xcc_max),
     .drivable = false, /* user SGPRs of flat scratch and accumulation registers are untried */
     .gfx_version = 90010,
     .elf_machine = 0x3f,
     GFX9_COMMON,
     .lds_granule_bytes = 512,
     .lds_bytes = 64 << 10,
     .xcc_max = 1},
    {.name = "gfx942",
     .verified = ALL_VERIFIED & ~VERIFIED(packets) & ~VERIFIED(rsrc3_register),
     .drivable = false, /* dispatches over several XCCs need one scratch base and PRED_EXEC each */
     .gfx_version = 90402,
     .elf_machine = 0x4c,
     GFX9_COMMON,
     .lds_granule_bytes = 512,
     .lds_bytes = 64 << 10,
     .architected_flat_scratch = true,
     .xcc_max = 8},
    {.name = "gfx950",
     .verified = VERIFIED(gfx_version) | VERIFIED(wave_sizes) | VERIFIED(lds_bytes),
     .drivable = false, /* as gfx942 */
     .gfx_version = 90500,
     .elf_machine = 0x4f,
     .llvm_major = 20,
     GFX9_COMMON,
     .lds_granule_bytes = 1280,
     .lds_bytes = 160 << 10,
     .architected_flat_scratch = true,
     .xcc_max = 8},
    {.name = "gfx1100",
     .verified = ALL_VERIFIED,
     .drivable = true,
     .gfx_version = 110000,
     .elf_machine = 0x41,
     VGPRS_1_5X,
     GFX11_COMMON},
    {.name = "gfx1101",
     .verified = ALL_VERIFIED,
     .drivable = true,
     .gfx_version = 110001,
     .elf_machine = 0x46,
     VGPRS_1_5X,
     GFX11_COMMON},
    {.name = "gfx1102",
     .verified = ALL_VERIFIED,
     .drivable = true,
     .gfx_version = 110002,
     .elf_machine = 0x47,
     VGPRS_1X,
     GFX11_COMMON},
    {.name = "gfx1200",
     .verified = ALL_VERIFIED & ~NOT_IN_KERNEL_6_1,
     .drivable = true,
     .gfx_version = 120000,
     .elf_machine = 0x48,
     VGPRS_1_5X,
     GFX12_COMMON},
    {.name = "gfx1201",
     .verified = ALL_VERIFIED & ~NOT_IN_KERNEL_6_1,
     .drivable = true,
     .gfx_version = 120001,
     .elf_machine = 0x4e,
     VGPRS_1_5X,
     GFX12_COMMON},
};

#define PROPERTY_NAME(name) #name,
static const char *const property_names[] = {BW_AMD_ARCH_PROPERTIES(PROPERTY_NAME)};

const struct bw_amd_arch *bw_amd_arch_table(uint32_t *count)
{
    *count = BW_COUNT_OF(rows);
    return rows;
}

const struct bw_amd_arch *bw_amd_arch_find(const char *name)
{
    for (size_t i = 0; name && i < BW_COUNT_OF(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const struct bw_amd_arch *bw_amd_arch_by_version(uint32_t gfx_version)
{
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++)
        if (rows[i].gfx_version == gfx_version)
            return &rows[i];
    return NULL;
}

const struct bw_amd_arch *bw_amd_arch_by_elf_machine(uint32_t elf_machine)
{
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++)
        if (rows[i].elf_machine == elf_machine)
            return &rows[i];
    return NULL;
}

void bw_amd_arch_names(char *text, uint32_t text_size)
{
    uint32_t length = 0;
    for (size_t i = 0; i < BW_COUNT_OF(rows) && length < text_size; i++)
        length += (uint32_t)snprintf(text + length, text_size - length, "%s%s", i ? ", " : "", rows[i].name);
}

const char *bw_amd_property_name(enum bw_amd_property property)
{
    return (unsigned)property < BW_AMD_PROPERTY_COUNT ? property_names[property] : "?";
}
