/* What a GPU behind a render node is. DRM does not tell the architecture, but the version of the graphics
 * block; the figures that the KFD tells for one follow from it. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "iface/drm.h"

/* IP_VERSION of the kernel's soc15_common.h, as HW_IP_INFO gives it. */
#define IP(major, minor, revision) ((major) << 16 | (minor) << 8 | (revision))

/* Sources: architectures: kgd2kfd_probe of amdkfd/kfd_device.c; SIMDs and wave slots: gfx_v9_0.c,
 * gfx_v9_4_3.c, gfx_v10_0.c, gfx_v11_0.c and gfx_v12_0.c (get_cu_info), and Mesa's ac_gpu_info.c
 * (max_waves_per_simd). */
static const struct chip {
    uint32_t ip_version, gfx_version;
    uint32_t simd_per_cu, waves_per_simd, scratch_slots_per_cu, lds_bytes;
} chips[] = {
    {IP(9, 4, 2), 90010, 4, 8, 32, 64 << 10},    {IP(9, 4, 3), 90402, 4, 8, 32, 64 << 10},
    {IP(9, 4, 4), 90402, 4, 8, 32, 64 << 10},    {IP(9, 5, 0), 90500, 4, 8, 32, 160 << 10},
    {IP(10, 3, 0), 100300, 2, 16, 32, 64 << 10}, {IP(10, 3, 2), 100301, 2, 16, 32, 64 << 10},
    {IP(10, 3, 4), 100302, 2, 16, 32, 64 << 10}, {IP(10, 3, 5), 100304, 2, 16, 32, 64 << 10},
    {IP(11, 0, 0), 110000, 2, 16, 32, 64 << 10}, {IP(11, 0, 3), 110001, 2, 16, 32, 64 << 10},
    {IP(11, 0, 2), 110002, 2, 16, 32, 64 << 10}, {IP(11, 0, 1), 110003, 2, 16, 32, 64 << 10},
    {IP(11, 0, 4), 110003, 2, 16, 32, 64 << 10}, {IP(11, 5, 0), 110500, 2, 16, 32, 64 << 10},
    {IP(11, 5, 1), 110501, 2, 16, 32, 64 << 10}, {IP(12, 0, 0), 120000, 2, 16, 32, 64 << 10},
    {IP(12, 0, 1), 120001, 2, 16, 32, 64 << 10},
};

/* That the graphics driver gives LDS and scratch in every address space: gmc_v9_0.c and its followers,
 * shared_aperture_start and private_aperture_start. */
#define LDS_APERTURE     0x2000000000000000ull
#define SCRATCH_APERTURE 0x1000000000000000ull

/* Clocks are in kHz. */
enum { HZ_PER_KHZ = 1000, KHZ_PER_MHZ = 1000 };

static int read_ip(struct bw_drm_iface *drm, uint32_t type, const char *name,
                   struct drm_amdgpu_info_hw_ip *ip, struct bw_err *err)
{
    struct drm_amdgpu_info request = {.query = AMDGPU_INFO_HW_IP_INFO, .query_hw_ip = {.type = type}};
    int rc = bw_drm_info(drm, &request, ip, sizeof *ip);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "INFO, HW_IP_INFO of %s", name);
    if (!ip->available_rings)
        return bw_fail(err, -ENOTSUP, "drm", "%s has no %s ring", drm->base.properties.node_name, name);
    return 0;
}

/* Newer headers call what was padding ip_discovery_version; kernels before 6.2 leave it 0. */
static int find_chip(struct bw_drm_iface *drm, const struct drm_amdgpu_info_hw_ip *compute,
                     const struct chip **chip, struct bw_err *err)
{
    uint32_t version = compute->_pad;
    for (size_t i = 0; i < BW_COUNT_OF(chips); i++) {
        *chip = &chips[i];
        if ((*chip)->ip_version == version)
            return 0;
    }
    int rc = bw_fail(err, -ENOTSUP, "drm", "graphics block of %s", drm->base.properties.node_name);
    if (!version)
        bw_err_hint(err, "the kernel does not tell its version: Linux 6.2 or newer does");
    else
        bw_err_observed(err, "version %u.%u.%u", version >> 16, version >> 8 & 0xff, version & 0xff);
    return rc;
}

static int read_memory(struct bw_drm_iface *drm, struct bw_err *err)
{
    struct drm_amdgpu_info request = {.query = AMDGPU_INFO_MEMORY};
    struct drm_amdgpu_memory_info memory;
    int rc = bw_drm_info(drm, &request, &memory, sizeof memory);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "INFO, MEMORY");
    drm->base.properties.vram_bytes = memory.vram.total_heap_size;
    drm->base.properties.visible_vram_bytes = memory.cpu_accessible_vram.total_heap_size;
    return 0;
}

static int read_device(struct bw_drm_iface *drm, struct drm_amdgpu_info_device *device, struct bw_err *err)
{
    struct drm_amdgpu_info request = {.query = AMDGPU_INFO_DEV_INFO};
    int rc = bw_drm_info(drm, &request, device, sizeof *device);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "INFO, DEV_INFO");
    bool good = device->virtual_address_max > device->virtual_address_offset && device->cu_active_number &&
                device->gpu_counter_freq && device->virtual_address_alignment <= BW_DRM_PAGE_BYTES;
    if (good)
        return 0;
    rc = bw_fail(err, -EPROTO, "drm", "INFO, DEV_INFO makes no sense");
    bw_err_observed(err, "%u compute units, addresses 0x%llx to 0x%llx in steps of %u, clock of %u kHz",
                    device->cu_active_number, (unsigned long long)device->virtual_address_offset,
                    (unsigned long long)device->virtual_address_max, device->virtual_address_alignment,
                    device->gpu_counter_freq);
    return rc;
}

static void fill(struct bw_drm_iface *drm, const struct drm_amdgpu_info_device *device,
                 const struct chip *chip)
{
    struct bw_iface_properties *p = &drm->base.properties;
    p->gfx_version = chip->gfx_version;
    p->vendor_id = 0x1002;
    p->device_id = (uint16_t)device->device_id;
    p->simd_per_cu = chip->simd_per_cu;
    p->simd_count = device->cu_active_number * chip->simd_per_cu;
    p->array_count = device->num_shader_engines * device->num_shader_arrays_per_engine;
    p->cu_per_array = device->num_cu_per_sh;
    p->waves_per_simd_max = chip->waves_per_simd;
    p->scratch_slots_per_cu = chip->scratch_slots_per_cu;
    p->xcc_count = 1;
    p->shader_engines = device->num_shader_engines;
    p->lds_bytes = chip->lds_bytes;
    p->wave_size = device->wave_front_size;
    p->sdma_engines = drm->dma_rings;
    p->sdma_queues_per_engine = 1;
    p->cp_queues = drm->compute_rings;
    p->engine_clock_mhz_max = (uint32_t)(device->max_engine_clock / KHZ_PER_MHZ);
    p->timestamp_hz = (uint64_t)device->gpu_counter_freq * HZ_PER_KHZ;
    p->lds_aperture = LDS_APERTURE;
    p->scratch_aperture = SCRATCH_APERTURE;
    drm->va_first = device->virtual_address_offset;
    drm->va_last = device->virtual_address_max - 1;
}

int bw_drm_device_read(struct bw_drm_iface *drm, struct bw_err *err)
{
    struct drm_amdgpu_info_device device;
    struct drm_amdgpu_info_hw_ip compute, dma;
    const struct chip *chip;
    int rc = read_device(drm, &device, err);
    if (!rc)
        rc = read_ip(drm, AMDGPU_HW_IP_COMPUTE, "compute", &compute, err);
    if (!rc)
        rc = read_ip(drm, AMDGPU_HW_IP_DMA, "DMA", &dma, err);
    if (!rc)
        rc = find_chip(drm, &compute, &chip, err);
    if (!rc)
        rc = read_memory(drm, err);
    if (rc)
        return rc;
    drm->compute_rings = (uint32_t)__builtin_popcount(compute.available_rings);
    drm->dma_rings = (uint32_t)__builtin_popcount(dma.available_rings);
    fill(drm, &device, chip);
    return 0;
}
