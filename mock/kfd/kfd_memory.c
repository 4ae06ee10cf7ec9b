/* Memory ioctls (kfd_chardev.c and amdgpu_amdkfd_gpuvm.c of the kernel). */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/rng.h"
#include "mock/engine/queue.h"
#include "mock/kfd/event.h"
#include "mock/kfd/kfd.h"
#include "mock/link.h"

#define KNOWN_FLAGS                                                                                \
    (MOCK_KFD_ALLOC_VRAM | MOCK_KFD_ALLOC_GTT | MOCK_KFD_ALLOC_USERPTR | MOCK_KFD_ALLOC_DOORBELL | \
     MOCK_KFD_ALLOC_MMIO_REMAP | MOCK_KFD_ALLOC_CONTIGUOUS | MOCK_KFD_ALLOC_EXT_COHERENT |         \
     MOCK_KFD_ALLOC_UNCACHED | MOCK_KFD_ALLOC_COHERENT | MOCK_KFD_ALLOC_AQL_QUEUE_MEM |            \
     MOCK_KFD_ALLOC_NO_SUBSTITUTE | MOCK_KFD_ALLOC_PUBLIC | MOCK_KFD_ALLOC_EXECUTABLE |            \
     MOCK_KFD_ALLOC_WRITABLE)
#define DOMAINS                                                                                    \
    (MOCK_KFD_ALLOC_VRAM | MOCK_KFD_ALLOC_GTT | MOCK_KFD_ALLOC_USERPTR | MOCK_KFD_ALLOC_DOORBELL | \
     MOCK_KFD_ALLOC_MMIO_REMAP)

#define VA_LAST 0x7fffffffffffull /* of the aperture: kfd.c's GPUVM_LIMIT */

enum {
    DEVICES_MAX = BW_MOCK_GPUS_MAX,
    BUFFERS_MAX = 1 << 20, /* handles are an IDR of the kernel; this only bounds the table */
    JUNK_BYTES =
        64 << 10, /* of new VRAM that is filled with junk: all of it would back what is meant to be lazy */
    DRAIN_NS = 500000000,     /* how long unmapping user memory waits for kernels that may still touch it */
    DRAIN_SHORT_NS = 2000000, /* ... and memory of the machine, which stays where it is */
    DRAIN_STEP_NS = 100000,
};

int bw_mock_kfd_acquire_vm(struct bw_mock_process *process, struct mock_kfd_acquire_vm_args *args)
{
    struct bw_mock *machine = process->machine;
    struct bw_mock_gpu *gpu = bw_mock_gpu_by_id(machine, args->gpu_id);
    struct bw_mock_file file;
    if (!gpu)
        return bw_mock_refuse(machine, -EINVAL, "ACQUIRE_VM: no GPU 0x%x", args->gpu_id);
    if (!bw_mock_file_find(machine, (int)args->drm_fd, &file) || file.kind != BW_MOCK_FILE_RENDER ||
        file.gpu != gpu)
        return bw_mock_refuse(machine, -EINVAL, "ACQUIRE_VM: descriptor %u is no render node of GPU 0x%x",
                              args->drm_fd, args->gpu_id);
    struct bw_mock_context *context = &process->contexts[gpu->index];
    if (context->acquired && context->render_fd != (int)args->drm_fd)
        return bw_mock_refuse(machine, -EBUSY, "ACQUIRE_VM: GPU 0x%x was acquired with another descriptor",
                              args->gpu_id);
    context->acquired = true;
    context->render_fd = (int)args->drm_fd;
    return 0;
}

struct bw_mock_buffer *bw_mock_kfd_buffer(struct bw_mock_process *process, uint64_t handle)
{
    struct bw_mock_gpu *gpu = bw_mock_gpu_by_id(process->machine, (uint32_t)(handle >> 32));
    uint64_t index = bw_lo32(handle);
    if (!gpu || index >= process->buffers.count)
        return NULL;
    struct bw_mock_buffer *buffer = process->buffers.data[index];
    return buffer && buffer->gpu == gpu->index ? buffer : NULL;
}

static int check_alloc(struct bw_mock_context *context, const struct mock_kfd_alloc_memory_args *args)
{
    struct bw_mock *machine = context->process->machine;
    uint32_t domain = args->flags & DOMAINS;
    if (!args->size)
        return bw_mock_refuse(machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: size 0");
    if (args->flags & ~KNOWN_FLAGS)
        return bw_mock_refuse(machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: unknown flags 0x%x",
                              args->flags & ~KNOWN_FLAGS);
    if (!bw_is_pow2(domain))
        return bw_mock_refuse(machine, -EINVAL,
                              "ALLOC_MEMORY_OF_GPU: flags 0x%x name no or several kinds of memory",
                              args->flags);
    if (args->va_addr % BW_MOCK_PAGE)
        return bw_mock_refuse(machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: address 0x%llx is not on a page",
                              (unsigned long long)args->va_addr);
    if (args->size > INT64_MAX - BW_MOCK_PAGE)
        return bw_mock_refuse(machine, -ENOMEM, "ALLOC_MEMORY_OF_GPU: size 0x%llx",
                              (unsigned long long)args->size);
    if ((args->flags & MOCK_KFD_ALLOC_PUBLIC) && domain == MOCK_KFD_ALLOC_VRAM &&
        context->gpu->visible_bytes < context->gpu->vram.limit)
        return bw_mock_refuse(
            machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: VRAM for the CPU with a BAR of 0x%llx for 0x%llx bytes",
            (unsigned long long)context->gpu->visible_bytes, (unsigned long long)context->gpu->vram.limit);
    if (domain == MOCK_KFD_ALLOC_DOORBELL && args->size != BW_MOCK_DOORBELL_BYTES)
        return bw_mock_refuse(machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: doorbells are %d bytes, not 0x%llx",
                              BW_MOCK_DOORBELL_BYTES, (unsigned long long)args->size);
    if (domain == MOCK_KFD_ALLOC_MMIO_REMAP && args->size != BW_MOCK_PAGE)
        return bw_mock_refuse(machine, -EINVAL, "ALLOC_MEMORY_OF_GPU: the MMIO page is %d bytes, not 0x%llx",
                              BW_MOCK_PAGE, (unsigned long long)args->size);
    if (domain == MOCK_KFD_ALLOC_USERPTR) {
        if (!args->mmap_offset || args->mmap_offset % BW_MOCK_PAGE)
            return bw_mock_refuse(machine, -EINVAL,
                                  "ALLOC_MEMORY_OF_GPU: user pointer 0x%llx is not on a page",
                                  (unsigned long long)args->mmap_offset);
        if (!bw_mock_user_memory_ok((void *)(uintptr_t)args->mmap_offset,
                                    bw_align_up(args->size, BW_MOCK_PAGE)))
            return bw_mock_refuse(machine, -EFAULT,
                                  "ALLOC_MEMORY_OF_GPU: user memory at 0x%llx, 0x%llx bytes, cannot be "
                                  "read and written",
                                  (unsigned long long)args->mmap_offset, (unsigned long long)args->size);
    }
    return 0;
}

/* VRAM holds what was there before; a client that counts on zeros shall notice. */
static void fill_with_junk(struct bw_mock *machine, struct bw_mock_buffer *buffer)
{
    struct bw_rng rng = {machine->seed ^ buffer->offset};
    uint64_t bytes = buffer->size < JUNK_BYTES ? buffer->size : JUNK_BYTES;
    for (uint64_t at = 0; at < bytes; at += 8) {
        uint64_t junk = bw_rng_next(&rng);
        memcpy(buffer->host + at, &junk, 8);
    }
}

int bw_mock_buffer_back(struct bw_mock_context *context, struct bw_mock_buffer *buffer, const char *call)
{
    struct bw_mock *machine = context->process->machine;
    bool vram = buffer->flags & MOCK_KFD_ALLOC_VRAM;
    buffer->pool = vram ? &context->gpu->vram : &machine->system;
    int rc = bw_mock_pool_take(buffer->pool, buffer->size, &buffer->offset);
    if (rc)
        return bw_mock_refuse(machine, rc, "%s: 0x%llx bytes of %s, 0x%llx are free", call,
                              (unsigned long long)buffer->size, vram ? "VRAM" : "system memory",
                              (unsigned long long)(buffer->pool->limit - buffer->pool->used));
    buffer->host = bw_mock_pool_host(buffer->pool, buffer->offset);
    buffer->node = vram ? 0 : bw_mock_policy_node(&machine->policies);
    return 0;
}

static int back_buffer(struct bw_mock_context *context, struct bw_mock_buffer *buffer, uint64_t user_pointer)
{
    if (buffer->flags & MOCK_KFD_ALLOC_USERPTR) {
        buffer->host = (uint8_t *)(uintptr_t)user_pointer;
        return 0;
    }
    if (buffer->flags & MOCK_KFD_ALLOC_DOORBELL) {
        buffer->offset = MOCK_KFD_MMAP_DOORBELL | (uint64_t)context->gpu->gpu_id << MOCK_KFD_MMAP_GPU_SHIFT;
        return 0;
    }
    int rc = bw_mock_buffer_back(context, buffer, "ALLOC_MEMORY_OF_GPU");
    if (!rc && buffer->flags & MOCK_KFD_ALLOC_VRAM)
        fill_with_junk(context->process->machine, buffer);
    return rc;
}

/* Handles start at 1, like those of an IDR that is told to. */
int bw_mock_buffer_add(struct bw_mock_process *process, struct bw_mock_buffer *buffer)
{
    if (!process->buffers.count && bw_vec_push(&process->buffers, NULL))
        return -ENOMEM;
    for (size_t i = 1; i < process->buffers.count; i++) {
        if (!process->buffers.data[i]) {
            process->buffers.data[i] = buffer;
            buffer->index = (uint32_t)i;
            return 0;
        }
    }
    if (process->buffers.count >= BUFFERS_MAX || bw_vec_push(&process->buffers, buffer))
        return -ENOMEM;
    buffer->index = (uint32_t)process->buffers.count - 1;
    return 0;
}

void bw_mock_buffer_release(struct bw_mock_buffer *buffer)
{
    if (buffer->origin)
        bw_mock_buffer_let_go(buffer->origin);
    if (buffer->pool)
        bw_mock_pool_give(buffer->pool, buffer->offset, buffer->size);
    free(buffer);
}

void bw_mock_buffer_let_go(struct bw_mock_buffer *buffer)
{
    if (!--buffer->cpu_maps && !buffer->process)
        bw_mock_buffer_release(buffer);
}

int bw_mock_kfd_alloc(struct bw_mock_process *process, struct mock_kfd_alloc_memory_args *args)
{
    int rc = 0;
    struct bw_mock_context *context = bw_mock_kfd_context(process, args->gpu_id, "ALLOC_MEMORY_OF_GPU", &rc);
    if (!context)
        return rc;
    rc = check_alloc(context, args);
    if (rc)
        return rc;
    struct bw_mock_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return -ENOMEM;
    *buffer = (struct bw_mock_buffer){
        .process = process,
        .gpu = context->gpu->index,
        .flags = args->flags,
        .va = args->va_addr,
        .size = bw_align_up(args->size, BW_MOCK_PAGE),
    };
    rc = back_buffer(context, buffer, args->mmap_offset);
    if (rc) {
        free(buffer);
        return rc;
    }
    rc = bw_mock_buffer_add(process, buffer);
    if (rc) {
        bw_mock_buffer_release(buffer);
        return rc;
    }
    args->handle = (uint64_t)context->gpu->gpu_id << 32 | buffer->index;
    if (!(args->flags & MOCK_KFD_ALLOC_USERPTR))
        args->mmap_offset = buffer->offset;
    return 0;
}

static void drop_buffer(struct bw_mock_buffer *buffer)
{
    buffer->process->buffers.data[buffer->index] = NULL;
    buffer->process = NULL;
    if (!buffer->cpu_maps)
        bw_mock_buffer_release(buffer);
}

int bw_mock_kfd_free(struct bw_mock_process *process, struct mock_kfd_free_memory_args *args)
{
    struct bw_mock_buffer *buffer = bw_mock_kfd_buffer(process, args->handle);
    if (!buffer)
        return bw_mock_refuse(process->machine, -EINVAL, "FREE_MEMORY_OF_GPU: no buffer with handle 0x%llx",
                              (unsigned long long)args->handle);
    if (buffer == bw_mock_events_page(process->events))
        return bw_mock_refuse(process->machine, -EPERM,
                              "FREE_MEMORY_OF_GPU: the event page lives as long as the process");
    if (buffer->mapped)
        return bw_mock_refuse(process->machine, -EBUSY,
                              "FREE_MEMORY_OF_GPU: buffer 0x%llx at 0x%llx is still mapped",
                              (unsigned long long)args->handle, (unsigned long long)buffer->va);
    drop_buffer(buffer);
    return 0;
}

/* Copies the array of GPU ids of a map or unmap call. */
static int read_devices(struct bw_mock *machine, const struct mock_kfd_map_memory_args *args,
                        const char *call, uint32_t ids[DEVICES_MAX])
{
    if (!args->n_devices || args->n_devices > DEVICES_MAX)
        return bw_mock_refuse(machine, -EINVAL, "%s: %u devices", call, args->n_devices);
    if (args->n_success > args->n_devices)
        return bw_mock_refuse(machine, -EINVAL, "%s: n_success %u of %u", call, args->n_success,
                              args->n_devices);
    if (!args->device_ids_pointer)
        return bw_mock_refuse(machine, -EFAULT, "%s: no array of devices", call);
    memcpy(ids, (const void *)(uintptr_t)args->device_ids_pointer, args->n_devices * sizeof *ids);
    return 0;
}

static int map_one(struct bw_mock_buffer *buffer, struct bw_mock_context *context)
{
    struct bw_mock *machine = context->process->machine;
    uint64_t bit = (uint64_t)1 << context->gpu->index;
    if (buffer->mapped & bit)
        return 0; /* the kernel counts this as done */
    if (!buffer->host)
        return 0; /* doorbells: the GPU has no business there */
    if (!buffer->va || buffer->va + buffer->size < buffer->va || buffer->va + buffer->size - 1 > VA_LAST)
        return bw_mock_refuse(machine, -EINVAL, "MAP_MEMORY_TO_GPU: address 0x%llx is outside the aperture",
                              (unsigned long long)buffer->va);
    uint32_t access = BW_MOCK_READ;
    if (buffer->flags & MOCK_KFD_ALLOC_WRITABLE)
        access |= BW_MOCK_WRITE | BW_MOCK_ATOMIC;
    if (buffer->flags & MOCK_KFD_ALLOC_EXECUTABLE)
        access |= BW_MOCK_EXECUTE;
    struct bw_mock_mapping mapping = {.va = buffer->va,
                                      .size = buffer->size,
                                      .host = buffer->host,
                                      .access = access,
                                      .buffer = buffer,
                                      .pool = buffer->pool};
    int rc = buffer->flags & MOCK_KFD_ALLOC_VRAM ? bw_mock_link_map(context, buffer->gpu, &mapping) : 0;
    if (rc)
        return rc;
    rc = bw_mock_space_map(&context->space, &mapping);
    if (rc)
        bw_mock_link_mirror_free(&mapping);
    if (rc == -EINVAL)
        return bw_mock_refuse(machine, rc, "MAP_MEMORY_TO_GPU: [0x%llx, +0x%llx) overlaps another mapping",
                              (unsigned long long)buffer->va, (unsigned long long)buffer->size);
    if (!rc)
        buffer->mapped |= bit;
    return rc;
}

int bw_mock_kfd_map(struct bw_mock_process *process, struct mock_kfd_map_memory_args *args)
{
    struct bw_mock *machine = process->machine;
    uint32_t ids[DEVICES_MAX];
    struct bw_mock_buffer *buffer = bw_mock_kfd_buffer(process, args->handle);
    int rc = read_devices(machine, args, "MAP_MEMORY_TO_GPU", ids);
    if (rc)
        return rc;
    if (!buffer)
        return bw_mock_refuse(machine, -ENOMEM, "MAP_MEMORY_TO_GPU: no buffer with handle 0x%llx",
                              (unsigned long long)args->handle);
    for (uint32_t i = args->n_success; i < args->n_devices; i++) {
        struct bw_mock_context *context = bw_mock_kfd_context(process, ids[i], "MAP_MEMORY_TO_GPU", &rc);
        if (context)
            rc = map_one(buffer, context);
        if (rc)
            return rc;
        args->n_success = i + 1;
    }
    return 0;
}

/* Waits until no kernel of the context runs that may still use what it resolved before the unmapping. */
static void drain(struct bw_mock_context *context, uint64_t limit_ns)
{
    struct bw_mock *machine = context->process->machine;
    if (machine->single_step)
        return; /* steps do not overlap with calls, and a kernel looks again what is mapped before it goes on
                 */
    for (uint64_t waited = 0; atomic_load(&context->dispatches) && waited < limit_ns; waited += DRAIN_STEP_NS)
        bw_mock_sleep_ns(machine, DRAIN_STEP_NS);
}

/* User memory may really go away after the call. A kernel that would still touch it then is ended, with the
 * other queues of the context: what the kernel does when waves cannot be preempted. */
static void evict(struct bw_mock_context *context)
{
    struct bw_mock_process *process = context->process;
    bw_mock_error_set(process->machine,
                      "user memory was unmapped under a kernel that does not end: queues evicted");
    atomic_fetch_add(&context->evictions, 1);
    for (size_t i = 0; i < process->queues.count; i++) {
        if (process->queues.data[i]->context == context)
            atomic_store(&process->queues.data[i]->control.stop, 1);
    }
    while (atomic_load(&context->dispatches))
        bw_mock_sleep_ns(process->machine, DRAIN_STEP_NS);
}

void bw_mock_buffer_drain_user(struct bw_mock_context *context)
{
    drain(context, DRAIN_NS);
    if (!context->process->machine->single_step && atomic_load(&context->dispatches))
        evict(context);
}

static int unmap_one(struct bw_mock_buffer *buffer, struct bw_mock_context *context)
{
    struct bw_mock *machine = context->process->machine;
    uint64_t bit = (uint64_t)1 << context->gpu->index;
    if (!(buffer->mapped & bit))
        return buffer->host ? bw_mock_refuse(machine, -EINVAL,
                                             "UNMAP_MEMORY_FROM_GPU: 0x%llx is not mapped on GPU 0x%x",
                                             (unsigned long long)buffer->va, context->gpu->gpu_id)
                            : 0;
    struct bw_mock_mapping mapping = {0};
    bw_mock_space_find(&context->space, buffer->va, &mapping);
    int rc = bw_mock_space_unmap(&context->space, buffer->va);
    if (rc == -EBUSY)
        return bw_mock_refuse(machine, rc, "UNMAP_MEMORY_FROM_GPU: a queue still uses 0x%llx",
                              (unsigned long long)buffer->va);
    buffer->mapped &= ~bit;
    if (buffer->pool)
        drain(context, DRAIN_SHORT_NS);
    else
        bw_mock_buffer_drain_user(context);
    bw_mock_link_mirror_free(&mapping);
    return 0;
}

int bw_mock_kfd_unmap(struct bw_mock_process *process, struct mock_kfd_map_memory_args *args)
{
    struct bw_mock *machine = process->machine;
    uint32_t ids[DEVICES_MAX];
    struct bw_mock_buffer *buffer = bw_mock_kfd_buffer(process, args->handle);
    int rc = read_devices(machine, args, "UNMAP_MEMORY_FROM_GPU", ids);
    if (rc)
        return rc;
    if (!buffer)
        return bw_mock_refuse(machine, -ENOMEM, "UNMAP_MEMORY_FROM_GPU: no buffer with handle 0x%llx",
                              (unsigned long long)args->handle);
    for (uint32_t i = args->n_success; i < args->n_devices; i++) {
        struct bw_mock_context *context = bw_mock_kfd_context(process, ids[i], "UNMAP_MEMORY_FROM_GPU", &rc);
        if (context)
            rc = unmap_one(buffer, context);
        if (rc)
            return rc;
        args->n_success = i + 1;
    }
    return 0;
}

int bw_mock_kfd_available(struct bw_mock_process *process, struct mock_kfd_get_available_memory_args *args)
{
    int rc = 0;
    struct bw_mock_context *context = bw_mock_kfd_context(process, args->gpu_id, "AVAILABLE_MEMORY", &rc);
    if (context)
        args->available = context->gpu->vram.limit - context->gpu->vram.used;
    return rc;
}

static void unmap_everywhere(struct bw_mock_buffer *buffer)
{
    struct bw_mock *machine = buffer->process->machine;
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        struct bw_mock_space *space = &buffer->process->contexts[i].space;
        struct bw_mock_mapping mapping = {0};
        if (!(buffer->mapped & (uint64_t)1 << i))
            continue;
        bw_mock_space_find(space, buffer->va, &mapping);
        bw_mock_space_unmap(space, buffer->va);
        bw_mock_link_mirror_free(&mapping);
    }
    buffer->mapped = 0;
}

void bw_mock_kfd_free_all(struct bw_mock_process *process)
{
    for (size_t i = 0; i < process->buffers.count; i++) {
        struct bw_mock_buffer *buffer = process->buffers.data[i];
        if (!buffer)
            continue;
        unmap_everywhere(buffer);
        drop_buffer(buffer);
    }
    process->buffers.count = 0;
}

void bw_mock_kfd_invalidate_user(struct bw_mock *machine, const void *base, uint64_t size)
{
    uint64_t from = (uintptr_t)base, to = from + size;
    for (size_t p = 0; p < machine->processes.count; p++) {
        struct bw_mock_process *process = machine->processes.data[p];
        for (size_t i = 0; i < process->buffers.count; i++) {
            struct bw_mock_buffer *buffer = process->buffers.data[i];
            if (!buffer || !(buffer->flags & MOCK_KFD_ALLOC_USERPTR) || !buffer->mapped)
                continue;
            uint64_t start = (uintptr_t)buffer->host;
            if (start >= to || from >= start + buffer->size)
                continue;
            /* Still mapped as far as the client's book-keeping goes; every access faults from here on. */
            for (uint32_t gpu = 0; gpu < machine->gpu_count; gpu++)
                bw_mock_space_unmap(&process->contexts[gpu].space, buffer->va);
            for (uint32_t gpu = 0; gpu < machine->gpu_count; gpu++)
                bw_mock_buffer_drain_user(&process->contexts[gpu]);
        }
    }
}
