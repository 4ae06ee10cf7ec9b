/* AMD GPUs behind the device seam: opening, memory, and the table of operations. */
#include "drivers/amd/device.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"

/* Without a context that says otherwise, as that of a context. */
static const uint64_t wait_ns_default = 30000000000;
static const char subsystem[] = "amd";

static uint32_t memory_flags(uint32_t flags)
{
    uint32_t result = flags & BW_BUFFER_HOST ? BW_IFACE_HOST : BW_IFACE_VRAM;
    if (flags & BW_BUFFER_UNCACHED)
        result |= BW_IFACE_UNCACHED;
    if (flags & BW_BUFFER_EXECUTABLE)
        result |= BW_IFACE_EXECUTABLE;
    return result;
}

static void out_of_memory(struct bw_amd_device *device, uint64_t size_bytes, struct bw_err *err)
{
    uint64_t available_bytes = 0;
    bw_fail(err, -ENOMEM, subsystem, "allocation of %" PRIu64 " bytes", size_bytes);
    if (device->iface->ops->available_memory(device->iface, &available_bytes, NULL) == 0)
        bw_err_observed(err, "%" PRIu64 " bytes of device memory available", available_bytes);
    bw_err_device(err, device->base.info.name);
    bw_err_hint(err, "free buffers, or use smaller ones");
}

static void memory_note(struct bw_amd_device *device, struct bw_amd_memory *block)
{
    pthread_mutex_lock(&device->lock);
    block->next = device->memories;
    if (block->next)
        block->next->previous = block;
    device->memories = block;
    pthread_mutex_unlock(&device->lock);
}

static int amd_alloc(struct bw_device *base, uint64_t size_bytes, uint32_t flags, struct bw_memory *memory,
                     struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    struct bw_amd_memory *block = calloc(1, sizeof *block);
    if (!block)
        return bw_fail(err, -ENOMEM, subsystem, "allocation record");
    int rc = device->iface->ops->alloc(device->iface, size_bytes, memory_flags(flags), 0, &block->iface, err);
    if (rc) {
        free(block);
        if (rc == -ENOMEM)
            out_of_memory(device, size_bytes, err);
        return rc;
    }
    memory_note(device, block);
    *memory =
        (struct bw_memory){block->iface.gpu_va, block->iface.size_bytes, block->iface.cpu, flags, block};
    return 0;
}

static void amd_free(struct bw_device *base, struct bw_memory *memory)
{
    struct bw_amd_device *device = bw_amd_device(base);
    struct bw_amd_memory *block = memory->private_data;
    assert(block);
    pthread_mutex_lock(&device->lock);
    if (block->previous)
        block->previous->next = block->next;
    else
        device->memories = block->next;
    if (block->next)
        block->next->previous = block->previous;
    pthread_mutex_unlock(&device->lock);
    device->iface->ops->free(device->iface, &block->iface, NULL);
    free(block);
    memset(memory, 0, sizeof *memory);
}

static const struct bw_driver_ops ops;

static int amd_link(struct bw_device *base, struct bw_device *owner, struct bw_link *link, struct bw_err *err)
{
    struct bw_iface *iface = bw_amd_device(base)->iface, *theirs = bw_amd_device(owner)->iface;
    struct bw_iface_link found;
    *link = (struct bw_link){.kind = BW_LINK_NONE};
    if (iface->ops != theirs->ops)
        return 0;
    int rc = iface->ops->link(iface, theirs, &found, err);
    if (rc)
        return rc;
    static const enum bw_link_kind kinds[] = {[BW_IFACE_LINK_NONE] = BW_LINK_NONE,
                                              [BW_IFACE_LINK_PCIE] = BW_LINK_PCIE,
                                              [BW_IFACE_LINK_XGMI] = BW_LINK_XGMI};
    *link = (struct bw_link){kinds[found.kind], found.weight, found.bandwidth_mb_per_s};
    return 0;
}

/* Memory of the process that a device of the CPU has: its pages become the GPU's, too, at the same address. A
 * second GPU of one process finds them taken, and is refused. */
static int host_memory_map(struct bw_amd_device *device, struct bw_device *owner,
                           const struct bw_memory *memory, struct bw_err *err)
{
    if (!memory->cpu.size_bytes || memory->cpu.ops || (uintptr_t)memory->cpu.base != memory->address)
        return bw_fail(err, -EOPNOTSUPP, subsystem, "memory of %s, which another driver has",
                       owner->info.name);
    struct bw_amd_memory *block = calloc(1, sizeof *block);
    if (!block)
        return bw_fail(err, -ENOMEM, subsystem, "allocation record");
    uint32_t flags = BW_IFACE_USER_POINTER | (memory->flags & BW_BUFFER_UNCACHED ? BW_IFACE_UNCACHED : 0);
    int rc = device->iface->ops->alloc(device->iface, memory->cpu.size_bytes, flags, memory->address,
                                       &block->iface, err);
    if (!rc)
        memory_note(device, block);
    else
        free(block);
    return rc == -EEXIST ? -EOPNOTSUPP : rc;
}

static void peer_view_forget(struct bw_amd_device *device, uint64_t address)
{
    pthread_mutex_lock(&device->lock);
    for (size_t i = device->peer_views.count; i-- > 0;) {
        if (device->peer_views.data[i].gpu_va != address)
            continue;
        device->peer_views.data[i] = device->peer_views.data[--device->peer_views.count];
        break;
    }
    pthread_mutex_unlock(&device->lock);
}

static int peer_view_note(struct bw_amd_device *device, const struct bw_memory *memory, struct bw_err *err)
{
    struct bw_amd_peer_view view = {memory->address, memory->cpu};
    if (!(memory->flags & BW_BUFFER_HOST) || !view.cpu.size_bytes)
        return 0;
    peer_view_forget(device, memory->address); /* it may be mapped again */
    pthread_mutex_lock(&device->lock);
    int rc = bw_vec_push(&device->peer_views, view);
    pthread_mutex_unlock(&device->lock);
    return rc ? bw_fail(err, -ENOMEM, subsystem, "record of another device's memory") : 0;
}

static void amd_unmap_peer(struct bw_device *base, struct bw_device *owner, struct bw_memory *memory)
{
    struct bw_amd_device *device = bw_amd_device(base);
    if (owner->ops == base->ops) {
        peer_view_forget(device, memory->address);
        return; /* the kernel takes it from all of its GPUs */
    }
    pthread_mutex_lock(&device->lock);
    struct bw_amd_memory *block = device->memories;
    while (block && block->iface.gpu_va != memory->address)
        block = block->next;
    pthread_mutex_unlock(&device->lock);
    struct bw_memory mapped = {.private_data = block};
    if (block)
        amd_free(base, &mapped);
}

static int amd_map_peer(struct bw_device *base, struct bw_device *owner, struct bw_memory *memory,
                        struct bw_err *err)
{
    if (owner == base)
        return 0;
    struct bw_amd_device *device = bw_amd_device(base);
    if (owner->ops != &ops)
        return host_memory_map(device, owner, memory, err);
    if (bw_amd_device(owner)->iface->ops != device->iface->ops)
        return bw_fail(err, -EOPNOTSUPP, subsystem, "memory of %s, which another driver has",
                       owner->info.name);
    struct bw_amd_memory *block = memory->private_data;
    int rc = peer_view_note(device, memory, err);
    if (rc)
        return rc;
    rc = device->iface->ops->map_peer(device->iface, bw_amd_device(owner)->iface, &block->iface, err);
    if (rc)
        peer_view_forget(device, memory->address);
    return rc;
}

static int amd_wait_interrupt(struct bw_device *base, uint64_t timeout_ns)
{
    struct bw_iface *iface = bw_amd_device(base)->iface;
    int rc = iface->ops->wait_interrupt(iface, timeout_ns, NULL);
    return rc < 0 ? rc : 0;
}

static void amd_close(struct bw_device *base)
{
    struct bw_amd_device *device = bw_amd_device(base);
    while (device->queues)
        bw_amd_queue_destroy(&device->queues->base);
    bw_amd_upload_close(device);
    while (device->programs)
        bw_amd_program_destroy(&device->programs->base);
    while (device->memories) {
        struct bw_memory memory = {.private_data = device->memories};
        amd_free(base, &memory);
    }
    bw_vec_free(&device->peer_views);
    device->iface->ops->close(device->iface);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->upload_lock);
    pthread_mutex_destroy(&device->fault_lock);
    free(device);
}

static const struct bw_driver_ops ops = {
    .name = "amd",
    .close = amd_close,
    .alloc = amd_alloc,
    .free = amd_free,
    .link = amd_link,
    .map_peer = amd_map_peer,
    .unmap_peer = amd_unmap_peer,
    .program_load = bw_amd_program_load,
    .program_destroy = bw_amd_program_destroy,
    .program_kernel = bw_amd_program_kernel,
    .argument_block = bw_amd_argument_block,
    .queue_create = bw_amd_queue_create,
    .queue_destroy = bw_amd_queue_destroy,
    .encode_begin = bw_amd_encode_begin,
    .encode_kernel = bw_amd_encode_kernel,
    .encode_copy = bw_amd_encode_copy,
    .encode_wait = bw_amd_encode_wait,
    .encode_signal = bw_amd_encode_signal,
    .encode_timestamp = bw_amd_encode_timestamp,
    .encode_barrier = bw_amd_encode_barrier,
    .encode_end = bw_amd_encode_end,
    .submit = bw_amd_queue_submit,
    .follow = bw_amd_queue_follow,
    .after = bw_amd_queue_after,
    .flush = bw_amd_queue_flush,
    .queue_progress = bw_amd_queue_progress,
    .wait_interrupt = amd_wait_interrupt,
    .queue_look = bw_amd_queue_look,
    .query_fault = bw_amd_query_fault,
    .reset = bw_amd_reset,
};

static int check_arch(const struct bw_iface_properties *properties, const struct bw_amd_arch **arch,
                      struct bw_err *err)
{
    uint32_t version = properties->gfx_version;
    *arch = bw_amd_arch_by_version(version);
    if (!*arch) {
        char names[160];
        bw_amd_arch_names(names, sizeof names);
        bw_fail(err, -ENOTSUP, subsystem, "%s: gfx version %u.%u.%u is not in the device table",
                properties->node_name, version / 10000, version / 100 % 100, version % 100);
        bw_err_hint(err, "known: %s", names);
        return -ENOTSUP;
    }
    if (!(*arch)->drivable)
        return bw_fail(err, -ENOTSUP, subsystem,
                       "%s: %s is known to tools and the compiler, but not driven yet", properties->node_name,
                       (*arch)->name);
    if (properties->xcc_count > (*arch)->xcc_max)
        return bw_fail(err, -ENOTSUP, subsystem, "%s: %u compute dies, at most %u", properties->node_name,
                       properties->xcc_count, (*arch)->xcc_max);
    return 0;
}

int bw_amd_check(const struct bw_iface_properties *properties, struct bw_err *err)
{
    const struct bw_amd_arch *arch;
    return check_arch(properties, &arch, err);
}

static void fill_info(struct bw_amd_device *device)
{
    const struct bw_iface_properties *p = &device->iface->properties;
    struct bw_device_info *info = &device->base.info;
    snprintf(info->name, sizeof info->name, "%s+amd@%s", device->iface->ops->name, device->arch->name);
    snprintf(info->product, sizeof info->product, "%s", p->product);
    snprintf(info->driver, sizeof info->driver, "%s", ops.name);
    snprintf(info->iface, sizeof info->iface, "%s", device->iface->ops->name);
    snprintf(info->arch, sizeof info->arch, "%s", device->arch->name);
    info->vram_bytes = p->vram_bytes;
    info->wave_size = device->arch->wave_size;
    info->compute_units = p->simd_per_cu ? p->simd_count / p->simd_per_cu : 0;
    info->has_numa_node = p->has_numa_node;
    info->numa_node = p->numa_node;
    info->numa_placed = p->numa_choice;
    info->numa_error = p->numa_error;
    info->lds_bytes = device->arch->lds_bytes;
    info->group_size_max = BW_AMD_GROUP_SIZE_MAX;
    info->mock = p->mock;
}

static void fill_caps(struct bw_amd_device *device)
{
    const struct bw_iface_properties *p = &device->iface->properties;
    /* One queue per engine: the kernel deals queues out to engines in turn, and a second one on the same
     * engine moves no byte more. */
    uint32_t most = BW_AMD_COPY_QUEUES_MAX;
    uint32_t copies = p->sdma_engines < most ? p->sdma_engines : most;
    uint32_t xgmi = p->sdma_xgmi_engines < most - copies ? p->sdma_xgmi_engines : most - copies;
    uint32_t computes = p->cp_queues ? p->cp_queues : 1;
    /* The kernel deals queues that it feeds out to its few rings, where one waits behind another: work that
     * waits on the device for work submitted later would never end. Submissions wait instead, and each time a
     * queue waits for another costs a system call more: one compute queue keeps kernels in order by itself.
     */
    bool doorbells = !device->iface->ops->queue_submit;
    computes = doorbells ? computes : 1;
    device->base.caps = (struct bw_device_caps){
        .compute_queues = computes < BW_AMD_COMPUTE_QUEUES_MAX ? computes : BW_AMD_COMPUTE_QUEUES_MAX,
        .copy_queues = copies + xgmi,
        .xgmi_copy_queues = xgmi,
        .compute_copies = true,
        .user_doorbell = doorbells,
        .device_wait = doorbells,
        .submit_wait = !doorbells,
        .device_wait_64 = false, /* SDMA polls 32 bits; WAIT_REG_MEM64 would serve compute queues only */
        .copy_bytes_max = bw_amd_sdma_copy_bytes_max(device->sdma),
        .command_words_max = BW_AMD_PM4_IB_WORDS_MAX & ~(BW_AMD_PM4_IB_ALIGNMENT_WORDS - 1u),
        .command_alignment_words = BW_AMD_PM4_IB_ALIGNMENT_WORDS,
        .timestamp_hz = p->timestamp_hz,
        .host_addressable = false,
    };
    _Static_assert((int)BW_AMD_PM4_IB_ALIGNMENT_WORDS == (int)BW_AMD_SDMA_IB_ALIGNMENT_WORDS,
                   "one alignment for both kinds");
    _Static_assert((int)BW_AMD_PM4_IB_WORDS_MAX == (int)BW_AMD_SDMA_IB_WORDS_MAX, "one limit for both kinds");
}

int bw_amd_open_arch(struct bw_ctx *ctx, struct bw_iface *iface, const struct bw_amd_arch *arch, bool unfed,
                     struct bw_device **opened, struct bw_err *err)
{
    struct bw_amd_device *device = calloc(1, sizeof *device);
    if (!device) {
        iface->ops->close(iface);
        return bw_fail(err, -ENOMEM, subsystem, "device");
    }
    device->unfed = unfed;
    device->base.ops = &ops;
    device->base.ctx = ctx;
    device->arch = arch;
    device->iface = iface;
    device->pm4 = arch->packets & (BW_AMD_PM4_COHER | BW_AMD_PM4_GCR);
    device->sdma = arch->packets & (BW_AMD_SDMA_4 | BW_AMD_SDMA_5);
    uint32_t ring_bytes = ctx ? (uint32_t)bw_ctx_config(ctx)->ring_bytes : 0;
    device->compute_ring_bytes = ring_bytes ? ring_bytes : BW_AMD_COMPUTE_RING_BYTES;
    device->copy_ring_bytes = ring_bytes ? ring_bytes : BW_AMD_COPY_RING_BYTES;
    device->wait_ns = ctx ? bw_ctx_config(ctx)->wait_ns : wait_ns_default;
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->upload_lock, NULL);
    pthread_mutex_init(&device->fault_lock, NULL);
    iface->ops->interrupt_target(iface, &device->mailbox_va, &device->event_id);
    fill_info(device);
    fill_caps(device);
    *opened = &device->base;
    return 0;
}

int bw_amd_open(struct bw_ctx *ctx, struct bw_iface *iface, struct bw_device **device, struct bw_err *err)
{
    const struct bw_amd_arch *arch;
    int rc = check_arch(&iface->properties, &arch, err);
    if (!rc)
        return bw_amd_open_arch(ctx, iface, arch, false, device, err);
    iface->ops->close(iface);
    return rc;
}
