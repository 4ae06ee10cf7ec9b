/* What the mock knows of each GPU model: the figures that the kernel would show in the KFD topology. */
#ifndef BW_MOCK_CHIP_H
#define BW_MOCK_CHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bw_mock_ip_version {
    uint8_t major, minor, revision;
};

struct bw_mock_chip {
    const char *arch;    /* "gfx1100" */
    const char *product; /* as in amdgpu.ids */
    uint16_t device_id;
    uint8_t revision;
    uint32_t target_version; /* gfx_target_version of the topology: major*10000 + minor*100 + stepping */
    uint32_t drm_family;     /* AMDGPU_FAMILY_* of amdgpu_drm.h */
    uint32_t drm_external_revision;
    uint32_t shader_engines; /* over all XCCs */
    uint32_t arrays_per_engine;
    uint32_t cu_count, cu_per_array;
    uint32_t simd_per_cu, waves_per_simd;
    uint32_t wave64_vgprs, wave64_vgpr_granule; /* of a SIMD, and what a wave gets a multiple of */
    uint32_t scratch_slots_per_cu;
    uint32_t lds_kib, wave_size;
    uint32_t xcc_count;
    uint32_t sdma_engines, sdma_xgmi_engines;
    uint32_t sdma_queues_per_engine;
    uint32_t xgmi_mb_per_s; /* of one link to one other GPU, one direction; 0: there are none */
    uint32_t engine_clock_mhz, memory_clock_mhz, memory_width_bits;
    uint32_t l2_kib;
    uint64_t vram_bytes;
    struct bw_mock_ip_version gc, sdma, mmhub, osssys, hdp, nbif, mp0;
};

/* NULL when the arch is not modelled. */
const struct bw_mock_chip *bw_mock_chip_find(const char *arch);
/* The i-th chip, NULL past the end. */
const struct bw_mock_chip *bw_mock_chip_at(size_t index);

/* Context save sizes that the kernel demands of CREATE_QUEUE (kfd_queue.c, kfd_queue_ctx_save_restore_size).
 */
struct bw_mock_save_sizes {
    uint32_t ctl_stack_bytes;
    uint32_t save_bytes;  /* control stack and workgroup data, one XCC */
    uint32_t debug_bytes; /* one XCC */
    uint64_t total_bytes; /* of the buffer, all XCCs */
};
struct bw_mock_save_sizes bw_mock_chip_save_sizes(const struct bw_mock_chip *chip, uint32_t cu_count);

#endif
