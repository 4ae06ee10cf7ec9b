/* Buffers of the KFD: address first (reserved here, so that GPU address == CPU address), then the kernel's
 * buffer, then the CPU mapping over the reservation, then the GPU mapping. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/amdgpu.h"
#include "iface/kfd.h"

/* Buffers from this size on start at a multiple of it, so that the GPU's page tables can use their 2 MiB
 * leaves. */
#define HUGE_PAGE_BYTES (2ull << 20)

/* Left free after each buffer, so that an overrun faults and says by how much, instead of reaching the next.
 */
#define GUARD_BYTES ((uint64_t)BW_KFD_PAGE_BYTES)

static uint32_t kernel_flags(uint32_t flags)
{
    uint32_t kernel = BW_KFD_ALLOC_WRITABLE | BW_KFD_ALLOC_NO_SUBSTITUTE;
    if (flags & BW_IFACE_VRAM)
        kernel |= BW_KFD_ALLOC_VRAM;
    if (flags & BW_IFACE_HOST)
        kernel |= BW_KFD_ALLOC_GTT;
    if (flags & BW_IFACE_USER_POINTER)
        kernel |= BW_KFD_ALLOC_USERPTR;
    if (flags & BW_IFACE_EXECUTABLE)
        kernel |= BW_KFD_ALLOC_EXECUTABLE;
    if (flags & BW_IFACE_CPU_VISIBLE)
        kernel |= BW_KFD_ALLOC_PUBLIC;
    /* Not cached by the GPU: what CPU and GPU both write while a kernel runs. Other host memory may stay in
     * the GPU's caches until a release, which saves traffic over PCIe. */
    if (flags & BW_IFACE_UNCACHED)
        kernel |= BW_KFD_ALLOC_UNCACHED | BW_KFD_ALLOC_COHERENT;
    return kernel;
}

struct bw_kfd_buffer *bw_kfd_buffer_find(struct bw_kfd_process *process, uint64_t address)
{
    uint32_t handle = bw_interval_first(&process->buffers, address, 1);
    if (handle == BW_INTERVAL_NONE)
        return NULL;
    return (void *)(uintptr_t)bw_interval_at(&process->buffers, handle)->value;
}

/* Gives the buffer an address and its place in the index. */
static int take_address(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err)
{
    int rc = 0;
    uint64_t alignment = buffer->size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    pthread_mutex_lock(&process->lock);
    if (buffer->own_va)
        rc = bw_va_space_alloc(&process->va, buffer->size_bytes + GUARD_BYTES, alignment, &buffer->va);
    else if (bw_interval_first(&process->buffers, buffer->va, buffer->size_bytes) != BW_INTERVAL_NONE)
        rc = -EEXIST;
    if (!rc) {
        rc = bw_interval_insert(&process->buffers, buffer->va, buffer->size_bytes,
                                (uint64_t)(uintptr_t)buffer, NULL);
        if (rc && buffer->own_va)
            bw_va_space_free(&process->va, buffer->va);
    }
    pthread_mutex_unlock(&process->lock);
    if (!rc)
        return 0;
    rc = bw_fail(err, rc, "kfd", "address for a buffer of %" PRIu64 " bytes", buffer->size_bytes);
    if (rc == -EEXIST)
        bw_err_hint(err, "some of these pages are mapped for the GPU already");
    else if (rc == -ENOMEM)
        bw_err_hint(err, "the process is out of address space: see ulimit -v and vm.max_map_count");
    return rc;
}

static void give_address_back(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer)
{
    pthread_mutex_lock(&process->lock);
    int rc = bw_interval_cut(&process->buffers, buffer->va, buffer->size_bytes);
    assert(!rc); /* whole ranges only: nothing is split */
    (void)rc;
    if (buffer->own_va)
        bw_va_space_free(&process->va, buffer->va);
    pthread_mutex_unlock(&process->lock);
}

static int allocate(struct bw_kfd_process *process, struct bw_kfd_gpu *gpu, struct bw_kfd_buffer *buffer,
                    uint64_t *mmap_offset, struct bw_err *err)
{
    struct bw_kfd_alloc_args args = {
        .va_addr = buffer->va,
        .size = buffer->size_bytes,
        .gpu_id = buffer->gpu_id,
        .flags = kernel_flags(buffer->flags),
        .mmap_offset = buffer->own_va ? 0 : buffer->va,
    };
    bool placed = buffer->flags & BW_IFACE_HOST && bw_numa_begin(process->sys, &gpu->numa);
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_ALLOC_MEMORY, &args);
    if (placed)
        bw_numa_end(process->sys, &gpu->numa);
    if (rc >= 0) {
        buffer->handle = args.handle;
        *mmap_offset = args.mmap_offset;
        return 0;
    }
    const char *kind = buffer->flags & BW_IFACE_VRAM   ? "VRAM"
                       : buffer->flags & BW_IFACE_HOST ? "host memory"
                                                       : "user memory";
    rc = bw_fail(err, rc, "kfd", "ALLOC_MEMORY_OF_GPU, %" PRIu64 " bytes of %s", buffer->size_bytes, kind);
    bool visible_vram = (buffer->flags & BW_IFACE_VRAM) && (buffer->flags & BW_IFACE_CPU_VISIBLE);
    if (rc == -EINVAL && visible_vram)
        bw_err_hint(err, "the BAR is smaller than VRAM: enable resizable BAR, or do not ask for CPU access");
    else if (rc == -ENOMEM)
        bw_err_hint(err, "free something first, or see what else uses this GPU's memory");
    return rc;
}

static int map_cpu(struct bw_kfd_process *process, int render_fd, struct bw_kfd_buffer *buffer,
                   uint64_t mmap_offset, struct bw_region *cpu, struct bw_err *err)
{
    /* VRAM through the BAR is write-combined, GTT is ordinary memory (amdgpu_ttm.c). */
    struct bw_map_request request = {
        .fd = render_fd,
        .offset = mmap_offset,
        .size_bytes = buffer->size_bytes,
        .fixed_address = buffer->va,
        .writable = true,
        .dont_fork = true,
        .memory_type = buffer->flags & BW_IFACE_VRAM ? BW_MEMORY_WRITE_COMBINED : BW_MEMORY_CACHED,
    };
    int rc = process->sys->ops->map(process->sys, &request, cpu);
    if (rc)
        return bw_fail(err, rc, "kfd", "mmap of a buffer of %" PRIu64 " bytes", buffer->size_bytes);
    buffer->cpu_mapped = true;
    return 0;
}

/* Puts the bare reservation back in one step, so that no stranger's mapping can slip in. */
static int unmap_cpu(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err)
{
    if (!buffer->cpu_mapped)
        return 0;
    struct bw_region region;
    struct bw_map_request request = {.fd = -1,
                                     .size_bytes = buffer->size_bytes,
                                     .fixed_address = buffer->va,
                                     .reserve = true,
                                     .dont_fork = true};
    int rc = process->sys->ops->map(process->sys, &request, &region);
    if (rc)
        return bw_fail(err, rc, "kfd", "reserve the address of a freed buffer again");
    buffer->cpu_mapped = false;
    return 0;
}

int bw_kfd_buffer_map_gpu(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, uint32_t gpu_id,
                          struct bw_err *err)
{
    pthread_mutex_lock(&process->lock);
    bool there = false;
    for (size_t i = 0; i < buffer->mapped.count; i++)
        there |= buffer->mapped.data[i] == gpu_id;
    int rc = there ? 0 : bw_vec_reserve(&buffer->mapped, 1);
    struct bw_kfd_map_args args = {
        .handle = buffer->handle, .gpu_ids = (uint64_t)(uintptr_t)&gpu_id, .gpu_count = 1};
    if (!rc && !there)
        rc = bw_kfd_ioctl(process, BW_KFD_IOC_MAP_MEMORY, &args);
    if (rc >= 0 && !there)
        buffer->mapped.data[buffer->mapped.count++] = gpu_id;
    pthread_mutex_unlock(&process->lock);
    if (rc >= 0)
        return 0;
    return bw_fail(err, rc, "kfd", "MAP_MEMORY_TO_GPU 0x%x, %" PRIu64 " bytes", gpu_id, buffer->size_bytes);
}

static int unmap_gpus(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err)
{
    if (!buffer->mapped.count)
        return 0;
    struct bw_kfd_map_args args = {.handle = buffer->handle,
                                   .gpu_ids = (uint64_t)(uintptr_t)buffer->mapped.data,
                                   .gpu_count = (uint32_t)buffer->mapped.count};
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_UNMAP_MEMORY, &args);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "UNMAP_MEMORY_FROM_GPU, %" PRIu64 " bytes", buffer->size_bytes);
    buffer->mapped.count = 0;
    return 0;
}

static int release(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err)
{
    struct bw_kfd_free_args args = {.handle = buffer->handle};
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_FREE_MEMORY, &args);
    return rc < 0 ? bw_fail(err, rc, "kfd", "FREE_MEMORY_OF_GPU, %" PRIu64 " bytes", buffer->size_bytes) : 0;
}

int bw_kfd_buffer_free(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err)
{
    if (buffer->queue_in_use)
        return bw_fail(err, -EBUSY, "kfd", "the ring of a queue that still exists");
    /* The GPU loses the memory before the CPU does. A step that fails leaves the rest as it is: the buffer
     * stays in the index, its address is not used again, and the kernel frees it when the process ends. */
    int rc = unmap_gpus(process, buffer, err);
    if (!rc)
        rc = unmap_cpu(process, buffer, err);
    if (!rc)
        rc = release(process, buffer, err);
    if (rc)
        return rc;
    give_address_back(process, buffer);
    bw_vec_free(&buffer->mapped);
    free(buffer);
    return 0;
}

int bw_kfd_buffer_create(struct bw_kfd_process *process, struct bw_kfd_gpu *gpu, uint64_t size_bytes,
                         uint32_t flags, uint64_t cpu_address, struct bw_kfd_buffer **buffer,
                         struct bw_region *cpu, struct bw_err *err)
{
    memset(cpu, 0, sizeof *cpu);
    int rc = bw_amdgpu_request_check("kfd", size_bytes, flags, cpu_address, err);
    if (rc)
        return rc;
    struct bw_kfd_buffer *made = calloc(1, sizeof *made);
    if (!made)
        return bw_fail(err, -ENOMEM, "kfd", "buffer");
    made->size_bytes = bw_align_up(size_bytes, BW_KFD_PAGE_BYTES);
    made->flags = flags;
    made->gpu_id = gpu->gpu_id;
    made->va = cpu_address;
    made->own_va = !(flags & BW_IFACE_USER_POINTER);
    uint64_t mmap_offset = 0;
    rc = take_address(process, made, err);
    if (rc) {
        free(made);
        return rc;
    }
    rc = allocate(process, gpu, made, &mmap_offset, err);
    if (rc) {
        give_address_back(process, made);
        free(made);
        return rc;
    }
    if (made->own_va && (flags & (BW_IFACE_HOST | BW_IFACE_CPU_VISIBLE)))
        rc = map_cpu(process, gpu->render_fd, made, mmap_offset, cpu, err);
    if (!rc)
        rc = bw_kfd_buffer_map_gpu(process, made, gpu->gpu_id, err);
    if (rc) {
        bw_kfd_buffer_free(process, made, NULL);
        return rc;
    }
    *buffer = made;
    return 0;
}

int bw_kfd_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                 struct bw_iface_memory *memory, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    struct bw_kfd_buffer *buffer;
    struct bw_region cpu;
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (!rc)
        rc = bw_kfd_buffer_create(kfd->process, kfd->gpu, size_bytes, flags, cpu_address, &buffer, &cpu, err);
    if (rc)
        return rc;
    if (flags & BW_IFACE_USER_POINTER)
        cpu = (struct bw_region){.base = (void *)(uintptr_t)cpu_address, .size_bytes = size_bytes};
    *memory = (struct bw_iface_memory){.gpu_va = buffer->va,
                                       .size_bytes = buffer->size_bytes,
                                       .cpu = cpu,
                                       .handle = buffer->handle,
                                       .flags = flags};
    return 0;
}

/* The buffer behind what alloc gave out. */
static struct bw_kfd_buffer *buffer_of(struct bw_kfd_process *process, const struct bw_iface_memory *memory)
{
    pthread_mutex_lock(&process->lock);
    struct bw_kfd_buffer *buffer = bw_kfd_buffer_find(process, memory->gpu_va);
    pthread_mutex_unlock(&process->lock);
    assert(buffer && buffer->va == memory->gpu_va && buffer->handle == memory->handle);
    return buffer;
}

int bw_kfd_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (!rc)
        rc = bw_kfd_buffer_free(kfd->process, buffer_of(kfd->process, memory), err);
    if (!rc)
        memset(memory, 0, sizeof *memory);
    return rc;
}

int bw_kfd_link(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    int rc = bw_kfd_check_fork(kfd->process, err);
    *link = (struct bw_iface_link){.kind = BW_IFACE_LINK_NONE};
    if (rc || owner->ops != iface->ops || bw_kfd_of(owner)->process != kfd->process)
        return rc;
    return bw_kfd_link_read(iface->sys, kfd->node.number, bw_kfd_of(owner)->node.number, link, err);
}

/* The kernel's -EINVAL when neither XGMI nor a BAR over all of VRAM leads there (kfd_mem_attach,
 * amdgpu_device_is_peer_accessible), with what is known of the two. */
static int fail_peer(struct bw_kfd_iface *kfd, struct bw_kfd_iface *owner, struct bw_err *err)
{
    const struct bw_iface_properties *theirs = &owner->base.properties;
    struct bw_iface_link link;
    int rc = bw_kfd_link_read(kfd->base.sys, kfd->node.number, owner->node.number, &link, err);
    if (rc)
        return rc;
    rc = bw_fail(err, -EOPNOTSUPP, "kfd", "%s cannot reach the VRAM of %s", kfd->base.properties.node_name,
                 theirs->node_name);
    bw_err_expected(err, "XGMI, or a BAR over all of its VRAM");
    if (theirs->visible_vram_bytes < theirs->vram_bytes)
        bw_err_observed(err, "a BAR of %" PRIu64 " MiB for %" PRIu64 " MiB", theirs->visible_vram_bytes >> 20,
                        theirs->vram_bytes >> 20);
    else
        bw_err_observed(err, link.kind == BW_IFACE_LINK_NONE ? "no link in the topology"
                                                             : "the kernel driver refuses the mapping");
    bw_err_hint(err, "enable resizable BAR, and PCIe access between devices (no ACS redirection in between)");
    return rc;
}

int bw_kfd_map_peer(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                    struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (rc)
        return rc;
    if (owner->ops != iface->ops || bw_kfd_of(owner)->process != kfd->process)
        return bw_fail(err, -EOPNOTSUPP, "kfd", "memory of a GPU that another interface or context opened");
    struct bw_kfd_buffer *buffer = buffer_of(kfd->process, memory);
    rc = bw_kfd_buffer_map_gpu(kfd->process, buffer, kfd->gpu->gpu_id, err);
    return rc == -EINVAL && (buffer->flags & BW_IFACE_VRAM) ? fail_peer(kfd, bw_kfd_of(owner), err) : rc;
}

int bw_kfd_available_memory(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    struct bw_kfd_process *process = kfd->process;
    int rc = bw_kfd_check_fork(process, err);
    if (rc)
        return rc;
    if (process->minor_version < BW_KFD_MINOR_AVAILABLE_MEMORY)
        return bw_fail(err, -ENOTSUP, "kfd", "AVAILABLE_MEMORY needs interface 1.%d, this is 1.%u",
                       BW_KFD_MINOR_AVAILABLE_MEMORY, process->minor_version);
    struct bw_kfd_available_memory_args args = {.gpu_id = kfd->gpu->gpu_id};
    rc = bw_kfd_ioctl(process, BW_KFD_IOC_AVAILABLE_MEMORY, &args);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "AVAILABLE_MEMORY");
    *available_bytes = args.available;
    return 0;
}
