/* Scratch of a compute queue. Per queue, since hardware hands out wave slots per queue: two queues on one
 * block would share slots. Sizes: COMPUTE_TMPRING_SIZE in the register table, per wave and per shader engine
 * as the architecture's row says. */
#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "drivers/amd/device.h"
#include "drivers/amd/packet.h"
#include "drivers/amd/regs.h"

enum {
    SCRATCH_WAVE_BYTES_MIN =
        8 << 10, /* 128 bytes for each of 64 work-items: most kernels that spill at all fit */
    /* A workgroup of 1024 is 32 waves of 32, which must all run for a barrier to pass; fewer slots could
       deadlock. */
    SCRATCH_WAVES_MIN = 32,
};

static const char subsystem[] = "amd";

/* Wave slots that the GPU can fill, in the unit of TMPRING_SIZE.WAVES. */
static uint32_t wave_slots(const struct bw_amd_device *device, uint32_t *engines)
{
    const struct bw_iface_properties *p = &device->iface->properties;
    uint32_t units = p->simd_per_cu ? p->simd_count / p->simd_per_cu : p->simd_count;
    uint64_t slots = (uint64_t)units * p->scratch_slots_per_cu;
    *engines = device->arch->scratch_waves_per_engine && p->shader_engines ? p->shader_engines : 1;
    uint64_t per_engine = bw_div_up(slots, *engines);
    uint32_t max = bw_amd_bits_max(BW_AMD_COMPUTE_TMPRING_SIZE_WAVES);
    per_engine = per_engine > max ? max : per_engine;
    return per_engine < SCRATCH_WAVES_MIN ? SCRATCH_WAVES_MIN : (uint32_t)per_engine;
}

static int scratch_refuse(const struct bw_amd_device *device, const char *kernel_name, uint64_t private_bytes,
                          uint64_t size_bytes, uint32_t waves, struct bw_err *err)
{
    uint64_t available_bytes;
    bw_fail(err, -ENOMEM, subsystem, "kernel %s: scratch of %" PRIu64 " bytes per work-item", kernel_name,
            private_bytes);
    bw_err_expected(err, "%" PRIu64 " bytes for %u waves", size_bytes, waves);
    if (device->iface->ops->available_memory(device->iface, &available_bytes, NULL) == 0)
        bw_err_observed(err, "%" PRIu64 " bytes of device memory available", available_bytes);
    bw_err_device(err, device->base.info.name);
    bw_err_hint(err, "free buffers; kernels that were linked before keep the scratch that they have");
    return -ENOMEM;
}

/* Allocates for as many waves as memory allows, at best all that the GPU can run. */
static int scratch_grow(struct bw_amd_queue *queue, const char *kernel_name, uint64_t private_bytes,
                        uint32_t wave_bytes, struct bw_amd_scratch *scratch, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    uint32_t engines, waves = wave_slots(device, &engines);
    int rc;
    for (;; waves = bw_div_up(waves, 2) < SCRATCH_WAVES_MIN ? SCRATCH_WAVES_MIN
                                                            : (uint32_t)bw_div_up(waves, 2)) {
        uint64_t size_bytes = (uint64_t)wave_bytes * waves * engines;
        rc = device->iface->ops->alloc(device->iface, size_bytes, BW_IFACE_VRAM, 0, &scratch->memory, err);
        if (rc == 0)
            break;
        if (rc != -ENOMEM)
            return rc;
        if (waves == SCRATCH_WAVES_MIN)
            return scratch_refuse(device, kernel_name, private_bytes, size_bytes, waves * engines, err);
    }
    scratch->wave_bytes = wave_bytes;
    scratch->tmpring_size = bw_amd_bits_pack(BW_AMD_COMPUTE_TMPRING_SIZE_WAVES, waves) |
                            bw_amd_bits_pack(BW_AMD_COMPUTE_TMPRING_SIZE_WAVESIZE,
                                             wave_bytes / device->arch->scratch_granule_bytes);
    if (bw_vec_push(&queue->scratch, *scratch)) {
        device->iface->ops->free(device->iface, &scratch->memory, NULL);
        return bw_fail(err, -ENOMEM, subsystem, "scratch list");
    }
    return 0;
}

int bw_amd_scratch_get(struct bw_amd_queue *queue, const char *kernel_name, uint64_t private_bytes,
                       uint32_t wave_size, struct bw_amd_scratch *scratch, struct bw_err *err)
{
    const struct bw_amd_arch *arch = bw_amd_device(queue->base.device)->arch;
    uint64_t max_bytes = (uint64_t)arch->scratch_units_max * arch->scratch_granule_bytes;
    uint64_t needed = bw_align_up(private_bytes, 4) * wave_size;
    if (needed > max_bytes) {
        bw_fail(err, -E2BIG, subsystem, "kernel %s: %" PRIu64 " bytes of scratch per work-item", kernel_name,
                private_bytes);
        bw_err_expected(err, "at most %" PRIu64 " (scratch_units_max of %s)", max_bytes / wave_size,
                        arch->name);
        return -E2BIG;
    }
    uint64_t wave_bytes = SCRATCH_WAVE_BYTES_MIN;
    while (wave_bytes < needed)
        wave_bytes *= 2;
    if (wave_bytes > max_bytes)
        wave_bytes = max_bytes;
    pthread_mutex_lock(&queue->scratch_lock);
    int rc = 0;
    if (queue->scratch.count && queue->scratch.data[queue->scratch.count - 1].wave_bytes >= needed)
        *scratch = queue->scratch.data[queue->scratch.count - 1];
    else
        rc = scratch_grow(queue, kernel_name, private_bytes, (uint32_t)wave_bytes, scratch, err);
    pthread_mutex_unlock(&queue->scratch_lock);
    return rc;
}

void bw_amd_scratch_free(struct bw_amd_queue *queue)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    for (size_t i = 0; i < queue->scratch.count; i++)
        device->iface->ops->free(device->iface, &queue->scratch.data[i].memory, NULL);
    bw_vec_free(&queue->scratch);
}
