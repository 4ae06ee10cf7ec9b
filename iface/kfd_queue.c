/* Queues of the KFD. The kernel checks every buffer of a queue against exact sizes
 * (kfd_queue_acquire_buffers); what it would refuse without a word is refused here with one. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/kfd.h"

/* The largest ring: its size is a 32-bit power of two. */
#define RING_BYTES_MAX (1ull << 31)

static uint64_t doorbell_read(void *user, uint64_t offset, uint32_t width_bytes)
{
    struct bw_kfd_queue *memory = user;
    uint64_t at = memory->doorbell_offset + offset;
    return width_bytes == 8 ? bw_rd64(&memory->page, at) : bw_rd32(&memory->page, at);
}

static void doorbell_write(void *user, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    struct bw_kfd_queue *memory = user;
    uint64_t at = memory->doorbell_offset + offset;
    if (width_bytes == 8)
        bw_wr64(&memory->page, at, value);
    else
        bw_wr32(&memory->page, at, (uint32_t)value);
}

static const struct bw_region_ops doorbell_ops = {doorbell_read, doorbell_write};

/* One doorbell out of the page. */
static struct bw_region doorbell_of(struct bw_kfd_queue *memory)
{
    struct bw_region region = {.size_bytes = 8, .memory_type = BW_MEMORY_UNCACHED};
    if (memory->page.ops) {
        region.ops = &doorbell_ops;
        region.user = memory;
    } else {
        region.base = (volatile char *)memory->page.base + memory->doorbell_offset;
    }
    return region;
}

/* The page is mapped once per process and GPU. The caller holds no lock. */
static int map_doorbells(struct bw_kfd_iface *kfd, uint64_t doorbell_offset, struct bw_kfd_queue *memory,
                         struct bw_err *err)
{
    struct bw_kfd_process *process = kfd->process;
    struct bw_kfd_gpu *gpu = kfd->gpu;
    struct bw_map_request request = {
        .fd = process->fd,
        .offset = bw_align_down(doorbell_offset, BW_KFD_DOORBELL_BYTES),
        .size_bytes = BW_KFD_DOORBELL_BYTES,
        .writable = true,
        .dont_fork = true,
        .memory_type = BW_MEMORY_UNCACHED,
    };
    pthread_mutex_lock(&process->lock);
    int rc = 0;
    if (!gpu->doorbells.size_bytes)
        rc = process->sys->ops->map(process->sys, &request, &gpu->doorbells);
    if (rc)
        gpu->doorbells.size_bytes = 0;
    memory->page = gpu->doorbells;
    pthread_mutex_unlock(&process->lock);
    memory->doorbell_offset = doorbell_offset % BW_KFD_DOORBELL_BYTES;
    if (rc)
        return bw_fail(err, rc, "kfd", "mmap of the doorbells of %s", kfd->base.properties.node_name);
    if (memory->doorbell_offset % 8)
        return bw_fail(err, -EPROTO, "kfd", "CREATE_QUEUE: doorbell offset 0x%" PRIx64, doorbell_offset);
    return 0;
}

static int check_ring(const struct bw_kfd_buffer *ring, struct bw_err *err)
{
    if (ring->queue_in_use)
        return bw_fail(err, -EBUSY, "kfd", "the ring of another queue");
    if (bw_is_pow2(ring->size_bytes) && ring->size_bytes >= BW_KFD_QUEUE_RING_BYTES_MIN &&
        ring->size_bytes <= RING_BYTES_MAX)
        return 0;
    int rc = bw_fail(err, -EINVAL, "kfd", "ring size");
    bw_err_expected(err, "a power of two from %d to 2^31", BW_KFD_QUEUE_RING_BYTES_MIN);
    bw_err_observed(err, "%" PRIu64, ring->size_bytes);
    return rc;
}

/* The kernel wants each pointer in a buffer of exactly one page of host memory (kfd_queue_buffer_get with
 * PAGE_SIZE; the firmware scheduler maps it into the GART). */
static int check_pointer(const struct bw_kfd_buffer *buffer, uint64_t va, const char *name,
                         struct bw_err *err)
{
    if (buffer && buffer->size_bytes == BW_KFD_PAGE_BYTES && (buffer->flags & BW_IFACE_HOST) && va % 8 == 0)
        return 0;
    int rc = bw_fail(err, -EINVAL, "kfd", "%s at 0x%" PRIx64, name, va);
    bw_err_expected(err, "8 bytes in a one-page host buffer of its own");
    bw_err_observed(err, buffer ? "%" PRIu64 " bytes, flags 0x%x" : "no buffer",
                    buffer ? buffer->size_bytes : 0, buffer ? buffer->flags : 0);
    return rc;
}

/* Looks the caller's buffers up and marks them, so that they cannot be freed under the queue. */
static int check_buffers(struct bw_kfd_iface *kfd, const struct bw_iface_queue_request *request,
                         struct bw_kfd_queue *memory, struct bw_err *err)
{
    struct bw_kfd_process *process = kfd->process;
    if (request->priority > BW_KFD_QUEUE_PRIORITY_MAX)
        return bw_fail(err, -EINVAL, "kfd", "queue priority %u of 0 to %d", request->priority,
                       BW_KFD_QUEUE_PRIORITY_MAX);
    pthread_mutex_lock(&process->lock);
    memory->ring = bw_kfd_buffer_find(process, request->ring->gpu_va);
    memory->read_page = bw_kfd_buffer_find(process, request->read_pointer_va);
    memory->write_page = bw_kfd_buffer_find(process, request->write_pointer_va);
    assert(memory->ring && memory->ring->va == request->ring->gpu_va);
    int rc = check_ring(memory->ring, err);
    if (!rc)
        rc = check_pointer(memory->read_page, request->read_pointer_va, "read pointer", err);
    if (!rc)
        rc = check_pointer(memory->write_page, request->write_pointer_va, "write pointer", err);
    if (!rc)
        memory->ring->queue_in_use = true;
    pthread_mutex_unlock(&process->lock);
    return rc;
}

/* End-of-pipe buffer and context save area, which only compute queues have. */
static int create_buffers(struct bw_kfd_iface *kfd, struct bw_kfd_queue *memory, struct bw_err *err)
{
    struct bw_region cpu;
    int rc = kfd->sizes_rc;
    if (rc)
        return bw_kfd_queue_sizes(&kfd->node, &kfd->sizes, err);
    rc = bw_kfd_buffer_create(kfd->process, kfd->gpu, kfd->sizes.eop_bytes,
                              BW_IFACE_VRAM | BW_IFACE_EXECUTABLE, 0, &memory->end_of_pipe, &cpu, err);
    if (rc)
        return rc;
    /* In host memory: it is large (some 46 MB on a gfx1100) and hardly ever used, and the KFD reads its
     * header through the process's own mapping when a debugger is attached. */
    return bw_kfd_buffer_create(kfd->process, kfd->gpu, kfd->sizes.area_bytes,
                                BW_IFACE_HOST | BW_IFACE_EXECUTABLE, 0, &memory->save_area, &cpu, err);
}

static void link_queue(struct bw_kfd_process *process, struct bw_kfd_queue *queue)
{
    pthread_mutex_lock(&process->lock);
    queue->next = process->queues;
    process->queues = queue;
    pthread_mutex_unlock(&process->lock);
}

/* Frees the queue's own buffers; the first failure is reported, what cannot be freed stays with the process.
 */
static int free_memory(struct bw_kfd_iface *kfd, struct bw_kfd_queue *memory, struct bw_err *err)
{
    int rc = 0;
    struct bw_kfd_buffer *own[] = {memory->end_of_pipe, memory->save_area};
    for (size_t i = 0; i < BW_COUNT_OF(own); i++) {
        int free_rc = own[i] ? bw_kfd_buffer_free(kfd->process, own[i], rc ? NULL : err) : 0;
        rc = rc ? rc : free_rc;
    }
    pthread_mutex_lock(&kfd->process->lock);
    if (memory->ring)
        memory->ring->queue_in_use = false;
    struct bw_kfd_queue **link = &kfd->process->queues;
    while (*link != memory)
        link = &(*link)->next;
    *link = memory->next;
    pthread_mutex_unlock(&kfd->process->lock);
    free(memory);
    return rc;
}

static int destroy_kernel_queue(struct bw_kfd_iface *kfd, uint32_t queue_id)
{
    struct bw_kfd_destroy_queue_args args = {.queue_id = queue_id};
    return bw_kfd_ioctl(kfd->process, BW_KFD_IOC_DESTROY_QUEUE, &args);
}

static int create_kernel_queue(struct bw_kfd_iface *kfd, const struct bw_iface_queue_request *request,
                               const struct bw_kfd_queue *memory, struct bw_kfd_create_queue_args *args,
                               struct bw_err *err)
{
    static const uint32_t types[] = {
        [BW_IFACE_QUEUE_COMPUTE_PM4] = BW_KFD_QUEUE_COMPUTE,
        [BW_IFACE_QUEUE_COMPUTE_AQL] = BW_KFD_QUEUE_COMPUTE_AQL,
        [BW_IFACE_QUEUE_SDMA] = BW_KFD_QUEUE_SDMA,
        [BW_IFACE_QUEUE_SDMA_XGMI] = BW_KFD_QUEUE_SDMA_XGMI,
    };
    assert((size_t)request->kind < BW_COUNT_OF(types));
    *args = (struct bw_kfd_create_queue_args){
        .ring_base_address = memory->ring->va,
        .ring_size = (uint32_t)memory->ring->size_bytes,
        .write_pointer_address = request->write_pointer_va,
        .read_pointer_address = request->read_pointer_va,
        .gpu_id = kfd->gpu->gpu_id,
        .queue_type = types[request->kind],
        .queue_percentage = BW_KFD_QUEUE_PERCENTAGE_MAX,
        .queue_priority = request->priority,
    };
    if (memory->end_of_pipe) {
        args->eop_buffer_address = memory->end_of_pipe->va;
        args->eop_buffer_size = memory->end_of_pipe->size_bytes;
        args->ctx_save_restore_address = memory->save_area->va;
        args->ctx_save_restore_size = kfd->sizes.save_bytes;
        args->ctl_stack_size = kfd->sizes.control_stack_bytes;
    }
    int rc = bw_kfd_ioctl(kfd->process, BW_KFD_IOC_CREATE_QUEUE, args);
    if (rc >= 0)
        return 0;
    rc =
        bw_fail(err, rc, "kfd", "CREATE_QUEUE, type %u, ring of %u bytes", args->queue_type, args->ring_size);
    bool xgmi = request->kind == BW_IFACE_QUEUE_SDMA_XGMI;
    if (rc == -ENOMEM && (xgmi || request->kind == BW_IFACE_QUEUE_SDMA))
        bw_err_hint(err, "all SDMA queues of this GPU are taken (%u engines of %u)",
                    xgmi ? kfd->node.sdma_xgmi_engines : kfd->node.sdma_engines,
                    kfd->node.sdma_queues_per_engine);
    else if (rc == -EINVAL)
        bw_err_hint(err, "the kernel log says which buffer or size it refused (dynamic debug of amdgpu)");
    return rc;
}

int bw_kfd_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                        struct bw_iface_queue *queue, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    struct bw_kfd_create_queue_args args;
    memset(queue, 0, sizeof *queue);
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (rc)
        return rc;
    struct bw_kfd_queue *memory = calloc(1, sizeof *memory);
    if (!memory)
        return bw_fail(err, -ENOMEM, "kfd", "queue");
    link_queue(kfd->process, memory);
    rc = check_buffers(kfd, request, memory, err);
    if (rc)
        memory->ring = NULL; /* not marked by us */
    bool compute = request->kind == BW_IFACE_QUEUE_COMPUTE_PM4 || request->kind == BW_IFACE_QUEUE_COMPUTE_AQL;
    if (!rc && compute)
        rc = create_buffers(kfd, memory, err);
    if (!rc)
        rc = create_kernel_queue(kfd, request, memory, &args, err);
    if (!rc) {
        rc = map_doorbells(kfd, args.doorbell_offset, memory, err);
        if (rc)
            destroy_kernel_queue(kfd, args.queue_id);
    }
    if (rc) {
        free_memory(kfd, memory, NULL);
        return rc;
    }
    queue->id = args.queue_id;
    queue->doorbell = doorbell_of(memory);
    queue->private_data = memory;
    return 0;
}

int bw_kfd_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (rc)
        return rc;
    rc = destroy_kernel_queue(kfd, queue->id);
    /* -ETIME: the GPU did not let go in time; the KFD has forgotten the queue all the same and resets the GPU
     * (pqm_destroy_queue). After any other failure the queue is still there and so are its buffers. */
    if (rc < 0 && rc != -ETIME)
        return bw_fail(err, rc, "kfd", "DESTROY_QUEUE %u", queue->id);
    bool hung = rc == -ETIME;
    rc = free_memory(kfd, queue->private_data, err);
    memset(queue, 0, sizeof *queue);
    if (!rc && hung)
        rc = bw_fail(err, -ETIME, "kfd", "DESTROY_QUEUE: the queue did not stop and was torn down");
    return rc;
}

int bw_kfd_queue_look(struct bw_iface *iface, const struct bw_iface_queue *queue, struct bw_queue_view *view)
{
    struct bw_sys *sys = iface->sys;
    return sys->ops->queue_look ? sys->ops->queue_look(sys, bw_kfd_of(iface)->process->fd, queue->id, view)
                                : -ENOTSUP;
}
