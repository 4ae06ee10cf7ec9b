/* Sources: the KFD's kfd_device.c and kfd_crat.c (engines, wave slots, target versions), libdrm's amdgpu.ids
 * (ids and names), AMD's product pages (units, memory, clocks, Infinity Fabric: MI300X 128, MI350X 153.6,
 * MI210 100 GB/s a link in both directions together), Mesa's ac_gpu_info (cache sizes; RDNA's registers:
 * num_physical_wave64_vgprs_per_simd, allocated by its 64th part), the CDNA2 and CDNA3 ISA documents, section
 * 3.6 (512 VGPRs by 8). */
#include <string.h>

#include "base/bits.h"
#include "mock/chip.h"

#define GIB(n) ((uint64_t)(n) << 30)
#define MIB(n) ((uint64_t)(n) << 20)

static const struct bw_mock_chip chips[] = {
    {
        .arch = "gfx1100",
        .product = "AMD Radeon RX 7900 XTX",
        .device_id = 0x744c,
        .revision = 0xc8,
        .target_version = 110000,
        .drm_family = 145,
        .drm_external_revision = 0x01,
        .shader_engines = 6,
        .arrays_per_engine = 2,
        .cu_count = 96,
        .cu_per_array = 8,
        .simd_per_cu = 2,
        .waves_per_simd = 16,
        .wave64_vgprs = 768,
        .wave64_vgpr_granule = 12,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 32,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .engine_clock_mhz = 2482,
        .memory_clock_mhz = 1249,
        .memory_width_bits = 384,
        .l2_kib = 6144,
        .vram_bytes = GIB(24) - MIB(16), /* what a 24 GiB board shows: firmware keeps 16 MiB */
        .gc = {11, 0, 0},
        .sdma = {6, 0, 0},
        .mmhub = {3, 0, 0},
        .osssys = {6, 0, 0},
        .hdp = {6, 0, 0},
        .nbif = {4, 3, 0},
        .mp0 = {13, 0, 0},
    },
    {
        .arch = "gfx1101",
        .product = "AMD Radeon RX 7800 XT",
        .device_id = 0x747e,
        .revision = 0xc8,
        .target_version = 110001,
        .drm_family = 145,
        .drm_external_revision = 0x20,
        .shader_engines = 3,
        .arrays_per_engine = 2,
        .cu_count = 60,
        .cu_per_array = 10,
        .simd_per_cu = 2,
        .waves_per_simd = 16,
        .wave64_vgprs = 768,
        .wave64_vgpr_granule = 12,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 32,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .engine_clock_mhz = 2430,
        .memory_clock_mhz = 1219,
        .memory_width_bits = 256,
        .l2_kib = 4096,
        .vram_bytes = GIB(16) - MIB(16),
        .gc = {11, 0, 3},
        .sdma = {6, 0, 3},
        .mmhub = {3, 0, 2},
        .osssys = {6, 0, 0},
        .hdp = {6, 0, 0},
        .nbif = {4, 3, 0},
        .mp0 = {13, 0, 10},
    },
    {
        .arch = "gfx1102",
        .product = "AMD Radeon RX 7600",
        .device_id = 0x7480,
        .revision = 0xcf,
        .target_version = 110002,
        .drm_family = 145,
        .drm_external_revision = 0x10,
        .shader_engines = 2,
        .arrays_per_engine = 2,
        .cu_count = 32,
        .cu_per_array = 8,
        .simd_per_cu = 2,
        .waves_per_simd = 16,
        .wave64_vgprs = 512,
        .wave64_vgpr_granule = 8,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 32,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .engine_clock_mhz = 2655,
        .memory_clock_mhz = 1124,
        .memory_width_bits = 128,
        .l2_kib = 2048,
        .vram_bytes = GIB(8) - MIB(16),
        .gc = {11, 0, 2},
        .sdma = {6, 0, 2},
        .mmhub = {3, 0, 1},
        .osssys = {6, 0, 0},
        .hdp = {6, 0, 0},
        .nbif = {4, 3, 0},
        .mp0 = {13, 0, 7},
    },
    {
        .arch = "gfx1200",
        .product = "AMD Radeon RX 9060 XT",
        .device_id = 0x7590,
        .revision = 0xc0,
        .target_version = 120000,
        .drm_family = 152,
        .drm_external_revision = 0x40,
        .shader_engines = 2,
        .arrays_per_engine = 2,
        .cu_count = 32,
        .cu_per_array = 8,
        .simd_per_cu = 2,
        .waves_per_simd = 16,
        .wave64_vgprs = 768,
        .wave64_vgpr_granule = 12,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 32,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .engine_clock_mhz = 3130,
        .memory_clock_mhz = 1258,
        .memory_width_bits = 128,
        .l2_kib = 4096,
        .vram_bytes = GIB(16) - MIB(16),
        .gc = {12, 0, 0},
        .sdma = {7, 0, 0},
        .mmhub = {4, 1, 0},
        .osssys = {7, 0, 0},
        .hdp = {7, 0, 0},
        .nbif = {6, 3, 1},
        .mp0 = {14, 0, 2},
    },
    {
        .arch = "gfx1201",
        .product = "AMD Radeon RX 9070 XT",
        .device_id = 0x7550,
        .revision = 0xc0,
        .target_version = 120001,
        .drm_family = 152,
        .drm_external_revision = 0x50,
        .shader_engines = 4,
        .arrays_per_engine = 2,
        .cu_count = 64,
        .cu_per_array = 8,
        .simd_per_cu = 2,
        .waves_per_simd = 16,
        .wave64_vgprs = 768,
        .wave64_vgpr_granule = 12,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 32,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_queues_per_engine = 6,
        .engine_clock_mhz = 2970,
        .memory_clock_mhz = 1258,
        .memory_width_bits = 256,
        .l2_kib = 8192,
        .vram_bytes = GIB(16) - MIB(16),
        .gc = {12, 0, 1},
        .sdma = {7, 0, 1},
        .mmhub = {4, 1, 0},
        .osssys = {7, 0, 0},
        .hdp = {7, 0, 0},
        .nbif = {6, 3, 1},
        .mp0 = {14, 0, 3},
    },
    {
        .arch = "gfx942",
        .product = "AMD Instinct MI300X",
        .device_id = 0x74a1,
        .revision = 0x00,
        .target_version = 90402,
        .drm_family = 141,
        .drm_external_revision = 0x46,
        .shader_engines = 32,
        .arrays_per_engine = 1,
        .cu_count = 304,
        .cu_per_array = 10,
        .simd_per_cu = 4,
        .waves_per_simd = 8,
        .wave64_vgprs = 512,
        .wave64_vgpr_granule = 8,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 64,
        .xcc_count = 8,
        .sdma_engines = 2,
        .sdma_xgmi_engines = 14,
        .sdma_queues_per_engine = 8,
        .xgmi_mb_per_s = 64000,
        .engine_clock_mhz = 2100,
        .memory_clock_mhz = 1300,
        .memory_width_bits = 8192,
        .l2_kib = 4096,
        .vram_bytes = GIB(192) - MIB(16),
        .gc = {9, 4, 3},
        .sdma = {4, 4, 2},
        .mmhub = {1, 8, 0},
        .osssys = {4, 4, 2},
        .hdp = {4, 4, 2},
        .nbif = {7, 9, 0},
        .mp0 = {13, 0, 6},
    },
    {
        .arch = "gfx950",
        .product = "AMD Instinct MI350X",
        .device_id = 0x75a0,
        .revision = 0x00,
        .target_version = 90500,
        .drm_family = 141,
        .drm_external_revision = 0x50,
        .shader_engines = 32,
        .arrays_per_engine = 1,
        .cu_count = 256,
        .cu_per_array = 10,
        .simd_per_cu = 4,
        .waves_per_simd = 8,
        .wave64_vgprs = 512,
        .wave64_vgpr_granule = 8,
        .scratch_slots_per_cu = 32,
        .lds_kib = 160,
        .wave_size = 64,
        .xcc_count = 8,
        .sdma_engines = 2,
        .sdma_xgmi_engines = 14,
        .sdma_queues_per_engine = 8,
        .xgmi_mb_per_s = 76800,
        .engine_clock_mhz = 2200,
        .memory_clock_mhz = 2000,
        .memory_width_bits = 8192,
        .l2_kib = 4096,
        .vram_bytes = GIB(288) - MIB(16),
        .gc = {9, 5, 0},
        .sdma = {4, 4, 4},
        .mmhub = {1, 8, 1},
        .osssys = {4, 4, 4},
        .hdp = {4, 4, 4},
        .nbif = {7, 9, 1},
        .mp0 = {13, 0, 12},
    },
    {
        .arch = "gfx90a",
        .product = "AMD Instinct MI210",
        .device_id = 0x740f,
        .revision = 0x02,
        .target_version = 90010,
        .drm_family = 141,
        .drm_external_revision = 0x3c,
        .shader_engines = 8,
        .arrays_per_engine = 1,
        .cu_count = 104,
        .cu_per_array = 14,
        .simd_per_cu = 4,
        .waves_per_simd = 8,
        .wave64_vgprs = 512,
        .wave64_vgpr_granule = 8,
        .scratch_slots_per_cu = 32,
        .lds_kib = 64,
        .wave_size = 64,
        .xcc_count = 1,
        .sdma_engines = 2,
        .sdma_xgmi_engines = 3,
        .sdma_queues_per_engine = 8,
        .xgmi_mb_per_s = 50000,
        .engine_clock_mhz = 1700,
        .memory_clock_mhz = 1600,
        .memory_width_bits = 4096,
        .l2_kib = 8192,
        .vram_bytes = GIB(64) - MIB(16),
        .gc = {9, 4, 2},
        .sdma = {4, 4, 0},
        .mmhub = {1, 7, 0},
        .osssys = {4, 4, 0},
        .hdp = {4, 4, 0},
        .nbif = {7, 4, 4},
        .mp0 = {13, 0, 2},
    },
};

const struct bw_mock_chip *bw_mock_chip_at(size_t index)
{
    return index < BW_COUNT_OF(chips) ? &chips[index] : NULL;
}

const struct bw_mock_chip *bw_mock_chip_find(const char *arch)
{
    for (size_t i = 0; i < BW_COUNT_OF(chips); i++) {
        if (strcmp(chips[i].arch, arch) == 0)
            return &chips[i];
    }
    return NULL;
}

enum {
    PAGE_BYTES = 4096,
    SGPR_BYTES_PER_CU = 0x4000,
    LDS_BYTES_PER_CU = 0x10000,
    HWREG_BYTES_PER_CU = 0x1000,
    SAVE_HEADER_BYTES = 40, /* struct kfd_context_save_area_header */
    DEBUG_BYTES_PER_WAVE = 32,
    DEBUG_ALIGN_BYTES = 64,
    FIRST_RDNA_TARGET = 100100,
};

static uint32_t vgpr_bytes_per_cu(uint32_t target)
{
    switch (target) {
    case 90010:
    case 90402:
    case 90500:
        return 0x80000;
    case 110000:
    case 110001:
    case 120000:
    case 120001:
        return 0x60000;
    default:
        return 0x40000;
    }
}

struct bw_mock_save_sizes bw_mock_chip_save_sizes(const struct bw_mock_chip *chip, uint32_t cu_count)
{
    bool rdna = chip->target_version >= FIRST_RDNA_TARGET;
    uint32_t cus = cu_count / chip->xcc_count;
    uint32_t waves = cus * 32;
    if (!rdna) {
        /* array_count is shader engines times arrays; the kernel divides it by the arrays again */
        uint32_t most = chip->shader_engines * 512;
        waves = cus * 40 < most ? cus * 40 : most;
    }
    uint32_t lds = chip->target_version == 90500 ? chip->lds_kib << 10 : LDS_BYTES_PER_CU;
    uint64_t per_cu =
        (uint64_t)vgpr_bytes_per_cu(chip->target_version) + SGPR_BYTES_PER_CU + lds + HWREG_BYTES_PER_CU;
    struct bw_mock_save_sizes sizes;
    sizes.ctl_stack_bytes =
        (uint32_t)bw_align_up(SAVE_HEADER_BYTES + (uint64_t)waves * (rdna ? 12 : 8) + 8, PAGE_BYTES);
    sizes.save_bytes = sizes.ctl_stack_bytes + (uint32_t)bw_align_up(cus * per_cu, PAGE_BYTES);
    sizes.debug_bytes = (uint32_t)bw_align_up((uint64_t)waves * DEBUG_BYTES_PER_WAVE, DEBUG_ALIGN_BYTES);
    sizes.total_bytes =
        bw_align_up(((uint64_t)sizes.save_bytes + sizes.debug_bytes) * chip->xcc_count, PAGE_BYTES);
    return sizes;
}
