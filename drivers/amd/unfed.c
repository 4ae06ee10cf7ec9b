/* An AMD device made from a row of the table alone, for command buffers that are looked at and never run:
 * host memory is ordinary memory, device memory only addresses, from a fixed start, so that the same graph
 * gives the same words each time. Queues have rings that nobody reads; submissions are refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/device.h"

enum {
    PAGE_BYTES = 4096,
    /* The topology says these of a GPU, not its architecture: the least that there is. Scratch is laid out
     * for the fewest waves then. */
    SDMA_ENGINES = 1,
    CP_QUEUES = 1,
    EVENT_ID = 1,
    TIMESTAMP_HZ = 100000000, /* gfx9 and later */
};

/* Where the KFD's own allocations begin to lie in a process: 47 bits, out of any low range's way. */
static const uint64_t first_va = 0x7f0000000000;
/* Of the KFD (kfd_flat_memory.c): LDS and scratch of flat addresses. */
static const uint64_t lds_aperture = 0x1000000000000, scratch_aperture = 0x2000000000000;

struct unfed {
    struct bw_iface iface;
    pthread_mutex_t lock;
    uint64_t next_va;
    struct bw_iface_memory mailbox;
};

static struct unfed *unfed_of(struct bw_iface *iface)
{
    return (struct unfed *)iface;
}

static int unfed_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                       struct bw_iface_memory *memory, struct bw_err *err)
{
    struct unfed *unfed = unfed_of(iface);
    void *data = NULL;
    if (size_bytes > unfed->iface.properties.vram_bytes)
        return bw_fail(err, -ENOMEM, "amd", "%llu bytes", (unsigned long long)size_bytes);
    size_bytes = bw_align_up(size_bytes ? size_bytes : 1, PAGE_BYTES);
    if (flags & BW_IFACE_HOST && !(data = calloc(1, size_bytes)))
        return bw_fail(err, -ENOMEM, "amd", "%llu bytes of host memory", (unsigned long long)size_bytes);
    *memory = (struct bw_iface_memory){.size_bytes = size_bytes, .flags = flags};
    memory->handle = (uint64_t)(uintptr_t)data;
    if (data)
        memory->cpu =
            (struct bw_region){.base = data, .size_bytes = size_bytes, .memory_type = BW_MEMORY_CACHED};
    pthread_mutex_lock(&unfed->lock);
    memory->gpu_va = unfed->next_va;
    unfed->next_va += size_bytes;
    pthread_mutex_unlock(&unfed->lock);
    return 0;
}

static int unfed_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err)
{
    free((void *)(uintptr_t)memory->handle);
    memset(memory, 0, sizeof *memory);
    return 0;
}

static int unfed_link(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                      struct bw_err *err)
{
    *link = (struct bw_iface_link){.kind = BW_IFACE_LINK_NONE};
    return 0;
}

static int unfed_map_peer(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                          struct bw_err *err)
{
    return bw_fail(err, -EOPNOTSUPP, "amd", "memory of another device");
}

static int unfed_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                              struct bw_iface_queue *queue, struct bw_err *err)
{
    uint64_t *doorbell = calloc(1, sizeof *doorbell);
    if (!doorbell)
        return bw_fail(err, -ENOMEM, "amd", "doorbell");
    *queue = (struct bw_iface_queue){.private_data = doorbell};
    queue->doorbell =
        (struct bw_region){.base = doorbell, .size_bytes = sizeof *doorbell, .memory_type = BW_MEMORY_CACHED};
    return 0;
}

static int unfed_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err)
{
    free(queue->private_data);
    return 0;
}

static int unfed_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err)
{
    return 0; /* nothing is ever on its way */
}

static void unfed_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id)
{
    *mailbox_va = unfed_of(iface)->mailbox.gpu_va;
    *event_id = EVENT_ID;
}

static int unfed_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err)
{
    *fault = (struct bw_fault){.kind = BW_FAULT_NONE};
    return 0;
}

static int unfed_available_memory(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err)
{
    return -ENOTSUP;
}

static void unfed_close(struct bw_iface *iface)
{
    struct unfed *unfed = unfed_of(iface);
    pthread_mutex_destroy(&unfed->lock);
    free(unfed);
}

static const struct bw_iface_ops ops = {
    .name = "none",
    .alloc = unfed_alloc,
    .free = unfed_free,
    .link = unfed_link,
    .map_peer = unfed_map_peer,
    .queue_create = unfed_queue_create,
    .queue_destroy = unfed_queue_destroy,
    .wait_interrupt = unfed_wait_interrupt,
    .interrupt_target = unfed_interrupt_target,
    .query_fault = unfed_query_fault,
    .available_memory = unfed_available_memory,
    .close = unfed_close,
};

int bw_amd_open_unfed(struct bw_ctx *ctx, struct bw_sys *sys, const char *arch_name,
                      struct bw_device **device, struct bw_err *err)
{
    const struct bw_amd_arch *arch = bw_amd_arch_find(arch_name);
    if (!arch) {
        char names[160];
        bw_amd_arch_names(names, sizeof names);
        bw_fail(err, -ENOTSUP, "amd", "architecture '%s'", arch_name);
        bw_err_hint(err, "known: %s", names);
        return -ENOTSUP;
    }
    struct unfed *unfed = calloc(1, sizeof *unfed);
    if (!unfed)
        return bw_fail(err, -ENOMEM, "amd", "device");
    pthread_mutex_init(&unfed->lock, NULL);
    unfed->next_va = first_va;
    unfed->iface = (struct bw_iface){
        .ops = &ops,
        .sys = sys,
        .properties = {.node_name = "no device",
                       .gfx_version = arch->gfx_version,
                       .vram_bytes = (uint64_t)1 << 40, /* addresses only */
                       .simd_per_cu = arch->simds_per_cu,
                       .waves_per_simd_max = arch->waves_per_simd,
                       .xcc_count = 1,
                       .shader_engines = 1,
                       .lds_bytes = arch->lds_bytes,
                       .wave_size = arch->wave_size,
                       .sdma_engines = SDMA_ENGINES,
                       .cp_queues = CP_QUEUES,
                       .timestamp_hz = TIMESTAMP_HZ,
                       .lds_aperture = lds_aperture,
                       .scratch_aperture = scratch_aperture},
    };
    int rc = unfed_alloc(&unfed->iface, PAGE_BYTES, BW_IFACE_VRAM, 0, &unfed->mailbox, err);
    if (!rc)
        return bw_amd_open_arch(ctx, &unfed->iface, arch, true, device, err);
    unfed_close(&unfed->iface);
    return rc;
}
