/* Buffers of a render node: address first (reserved here, so that GPU address == CPU address), then the
 * kernel's buffer, then the CPU mapping over the reservation, then the GPU's. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/amdgpu.h"
#include "iface/drm.h"

/* Buffers from this size on start at a multiple of it, so that the GPU's page tables can use their 2 MiB
 * leaves. */
#define HUGE_PAGE_BYTES (2ull << 20)

/* Left free after each buffer, so that an overrun faults and says by how much. */
#define GUARD_BYTES ((uint64_t)BW_DRM_PAGE_BYTES)

/* A buffer as the kernel knows it; bw_iface_memory.handle is its address. */
struct bw_drm_buffer {
    struct bw_drm_buffer *next, *previous; /* of the interface */
    uint64_t va, size_bytes;
    uint32_t handle; /* of GEM; 0: none */
    uint32_t flags;  /* enum bw_iface_memory_flags */
    bool has_va;     /* an address to give back; false also where some GPU keeps a mapping there for good */
    bool gpu_mapped, listed;
    struct bw_region cpu;
    BW_VEC(struct bw_drm_import) imports; /* share_lock */
};

static int take_address(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    if (buffer->flags & BW_IFACE_USER_POINTER)
        return 0;
    uint64_t alignment = buffer->size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    pthread_mutex_lock(&drm->lock);
    int rc = bw_va_space_alloc(&drm->va, buffer->size_bytes + GUARD_BYTES, alignment, &buffer->va);
    pthread_mutex_unlock(&drm->lock);
    buffer->has_va = !rc;
    if (!rc)
        return 0;
    rc = bw_fail(err, rc, "drm", "address for a buffer of %" PRIu64 " bytes", buffer->size_bytes);
    if (rc == -ENOMEM)
        bw_err_hint(err, "the process is out of address space: see ulimit -v and vm.max_map_count");
    return rc;
}

int bw_drm_available_memory(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct drm_amdgpu_info request = {.query = AMDGPU_INFO_MEMORY};
    struct drm_amdgpu_memory_info memory;
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    rc = bw_drm_info(drm, &request, &memory, sizeof memory);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "INFO, MEMORY");
    uint64_t usable = memory.vram.usable_heap_size, used = memory.vram.heap_usage;
    *available_bytes = used < usable ? usable - used : 0;
    return 0;
}

/* The kernel would take system memory where VRAM is used up, and move buffers to and fro as they are used. */
static int check_vram(struct bw_drm_iface *drm, const struct bw_drm_buffer *buffer, struct bw_err *err)
{
    uint64_t available_bytes;
    int rc = bw_drm_available_memory(&drm->base, &available_bytes, err);
    if (rc || buffer->size_bytes <= available_bytes)
        return rc;
    rc = bw_fail(err, -ENOMEM, "drm", "%" PRIu64 " bytes of VRAM", buffer->size_bytes);
    bw_err_observed(err, "%" PRIu64 " bytes are free", available_bytes);
    bw_err_hint(err, "free something first, or see what else uses this GPU's memory");
    return rc;
}

static int create_own(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    bool vram = buffer->flags & BW_IFACE_VRAM;
    union drm_amdgpu_gem_create args = {
        .in = {.bo_size = buffer->size_bytes,
               .alignment = buffer->size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : BW_DRM_PAGE_BYTES,
               .domains = vram ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT}};
    if (vram)
        args.in.domain_flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID |
                               (buffer->flags & BW_IFACE_CPU_VISIBLE ? AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED
                                                                     : AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
    int rc = vram ? check_vram(drm, buffer, err) : 0;
    if (rc)
        return rc;
    bool placed = !vram && bw_numa_begin(drm->base.sys, &drm->numa);
    rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);
    if (placed)
        bw_numa_end(drm->base.sys, &drm->numa);
    if (rc < 0) {
        rc = bw_fail(err, rc, "drm", "GEM_CREATE, %" PRIu64 " bytes of %s", buffer->size_bytes,
                     vram ? "VRAM" : "host memory");
        if (rc == -ENOMEM)
            bw_err_hint(err, "free something first, or see what else uses this GPU's memory");
        return rc;
    }
    buffer->handle = args.out.handle;
    return 0;
}

static int create_user(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    struct drm_amdgpu_gem_userptr args = {.addr = buffer->va,
                                          .size = buffer->size_bytes,
                                          .flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_VALIDATE |
                                                   AMDGPU_GEM_USERPTR_REGISTER};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "GEM_USERPTR, %" PRIu64 " bytes of user memory", buffer->size_bytes);
    buffer->handle = args.handle;
    return 0;
}

static int map_cpu(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    struct bw_sys *sys = drm->base.sys;
    union drm_amdgpu_gem_mmap args = {.in = {.handle = buffer->handle}};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "GEM_MMAP");
    /* VRAM through the BAR is write-combined, GTT without USWC is ordinary memory (amdgpu_ttm.c). */
    struct bw_map_request request = {
        .fd = drm->fd,
        .offset = args.out.addr_ptr,
        .size_bytes = buffer->size_bytes,
        .fixed_address = buffer->va,
        .writable = true,
        .dont_fork = true,
        .memory_type = buffer->flags & BW_IFACE_VRAM ? BW_MEMORY_WRITE_COMBINED : BW_MEMORY_CACHED,
    };
    rc = sys->ops->map(sys, &request, &buffer->cpu);
    if (!rc)
        return 0;
    buffer->cpu = (struct bw_region){0};
    return bw_fail(err, rc, "drm", "mmap of a buffer of %" PRIu64 " bytes", buffer->size_bytes);
}

static struct drm_amdgpu_gem_va place_of(const struct bw_drm_buffer *buffer, uint32_t operation)
{
    struct drm_amdgpu_gem_va args = {.handle = buffer->handle,
                                     .operation = operation,
                                     .flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
                                     .va_address = buffer->va,
                                     .map_size = buffer->size_bytes};
    if (buffer->flags & BW_IFACE_EXECUTABLE)
        args.flags |= AMDGPU_VM_PAGE_EXECUTABLE;
    args.flags |= buffer->flags & BW_IFACE_UNCACHED ? AMDGPU_VM_MTYPE_UC : AMDGPU_VM_MTYPE_DEFAULT;
    return args;
}

static int change_va(struct bw_drm_iface *drm, const struct bw_drm_buffer *buffer, uint32_t operation)
{
    struct drm_amdgpu_gem_va args = place_of(buffer, operation);
    return bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

static int map_gpu(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    int rc = change_va(drm, buffer, AMDGPU_VA_OP_MAP);
    if (rc >= 0) {
        buffer->gpu_mapped = true;
        return 0;
    }
    rc = bw_fail(err, rc, "drm", "GEM_VA, map %" PRIu64 " bytes at 0x%" PRIx64, buffer->size_bytes,
                 buffer->va);
    if (rc == -EINVAL && buffer->flags & BW_IFACE_USER_POINTER)
        bw_err_hint(err, "some of these pages are mapped for the GPU already");
    return rc;
}

/* Puts the bare reservation back in one step, so that no stranger's mapping can slip in. */
static int unmap_cpu(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    struct bw_region region;
    struct bw_map_request request = {.fd = -1,
                                     .size_bytes = buffer->size_bytes,
                                     .fixed_address = buffer->va,
                                     .reserve = true,
                                     .dont_fork = true};
    if (!buffer->cpu.size_bytes)
        return 0;
    int rc = drm->base.sys->ops->map(drm->base.sys, &request, &region);
    if (rc)
        return bw_fail(err, rc, "drm", "reserve the address of a freed buffer again");
    buffer->cpu = (struct bw_region){0};
    return 0;
}

static int close_handle(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    struct drm_gem_close args = {.handle = buffer->handle};
    int rc = buffer->handle ? bw_drm_ioctl(drm, DRM_IOCTL_GEM_CLOSE, &args) : 0;
    if (rc < 0)
        return bw_fail(err, rc, "drm", "GEM_CLOSE, %" PRIu64 " bytes", buffer->size_bytes);
    buffer->handle = 0;
    return 0;
}

static int unlist(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    int rc = buffer->listed ? bw_drm_list_remove(drm, buffer->handle, err) : 0;
    buffer->listed = buffer->listed && rc;
    return rc;
}

/* An import that is over and still mapped takes the address out of use, also when the buffer is freed at the
 * next try: another buffer there could not be mapped for that GPU, or would be seen as this one. */
static void address_keep(struct bw_drm_buffer *buffer, const struct bw_drm_import *import)
{
    buffer->has_va &= !import->mapped;
}

static int drop_imports(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    struct drm_amdgpu_gem_va place = place_of(buffer, AMDGPU_VA_OP_UNMAP);
    int rc = 0;
    pthread_mutex_lock(&drm->share_lock);
    while (buffer->imports.count) {
        struct bw_drm_import *import = &buffer->imports.data[--buffer->imports.count];
        int drop_rc = bw_drm_import_drop(import, &place, rc ? NULL : err);
        rc = rc ? rc : drop_rc;
        address_keep(buffer, import);
    }
    pthread_mutex_unlock(&drm->share_lock);
    return rc;
}

static void link_buffer(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer)
{
    pthread_mutex_lock(&drm->lock);
    buffer->next = drm->buffers;
    if (buffer->next)
        buffer->next->previous = buffer;
    drm->buffers = buffer;
    pthread_mutex_unlock(&drm->lock);
}

static void unlink_buffer(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer)
{
    pthread_mutex_lock(&drm->lock);
    if (buffer->previous)
        buffer->previous->next = buffer->next;
    else
        drm->buffers = buffer->next;
    if (buffer->next)
        buffer->next->previous = buffer->previous;
    pthread_mutex_unlock(&drm->lock);
}

void bw_drm_buffers_forget(struct bw_drm_iface *drm)
{
    while (drm->buffers) {
        struct bw_drm_buffer *buffer = drm->buffers;
        drm->buffers = buffer->next;
        for (size_t i = 0; i < buffer->imports.count; i++)
            bw_drm_unref(buffer->imports.data[i].drm);
        bw_vec_free(&buffer->imports);
        free(buffer);
    }
}

/* The GPU loses the memory before the CPU does; the kernel keeps it until whatever was submitted is done. A
 * step that fails leaves the rest as it is: the address is not used again, and the kernel frees the buffer
 * with the file. */
static int release(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    int rc = drop_imports(drm, buffer, err);
    if (!rc)
        rc = unlist(drm, buffer, err);
    if (rc)
        return rc;
    if (buffer->gpu_mapped)
        rc = change_va(drm, buffer, AMDGPU_VA_OP_UNMAP);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "GEM_VA, unmap %" PRIu64 " bytes", buffer->size_bytes);
    buffer->gpu_mapped = false;
    rc = unmap_cpu(drm, buffer, err);
    if (!rc)
        rc = close_handle(drm, buffer, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&drm->lock);
    if (buffer->has_va)
        bw_va_space_free(&drm->va, buffer->va);
    pthread_mutex_unlock(&drm->lock);
    unlink_buffer(drm, buffer);
    bw_vec_free(&buffer->imports);
    free(buffer);
    return 0;
}

static int create(struct bw_drm_iface *drm, struct bw_drm_buffer *buffer, struct bw_err *err)
{
    bool user = buffer->flags & BW_IFACE_USER_POINTER;
    int rc = take_address(drm, buffer, err);
    if (!rc)
        rc = user ? create_user(drm, buffer, err) : create_own(drm, buffer, err);
    if (!rc && !user && buffer->flags & (BW_IFACE_HOST | BW_IFACE_CPU_VISIBLE))
        rc = map_cpu(drm, buffer, err);
    if (!rc)
        rc = map_gpu(drm, buffer, err);
    if (!rc && !(buffer->flags & BW_IFACE_VRAM)) { /* not always valid */
        rc = bw_drm_list_add(drm, buffer->handle, err);
        buffer->listed = !rc;
    }
    return rc;
}

int bw_drm_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                 struct bw_iface_memory *memory, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    int rc = bw_drm_check_fork(drm, err);
    if (!rc)
        rc = bw_amdgpu_request_check("drm", size_bytes, flags, cpu_address, err);
    if (rc)
        return rc;
    struct bw_drm_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return bw_fail(err, -ENOMEM, "drm", "buffer");
    buffer->size_bytes = bw_align_up(size_bytes, BW_DRM_PAGE_BYTES);
    buffer->flags = flags;
    buffer->va = cpu_address;
    link_buffer(drm, buffer);
    rc = create(drm, buffer, err);
    if (rc) {
        (void)release(drm, buffer, NULL); /* what fails here leaves the record with its address */
        return rc;
    }
    struct bw_region cpu = buffer->cpu;
    if (flags & BW_IFACE_USER_POINTER)
        cpu = (struct bw_region){.base = (void *)(uintptr_t)cpu_address, .size_bytes = size_bytes};
    *memory = (struct bw_iface_memory){.gpu_va = buffer->va,
                                       .size_bytes = buffer->size_bytes,
                                       .cpu = cpu,
                                       .handle = (uint64_t)(uintptr_t)buffer,
                                       .flags = flags};
    return 0;
}

int bw_drm_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct bw_drm_buffer *buffer = (void *)(uintptr_t)memory->handle;
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    assert(buffer && buffer->va == memory->gpu_va);
    rc = release(drm, buffer, err);
    if (!rc)
        memset(memory, 0, sizeof *memory);
    return rc;
}

uint32_t bw_drm_handle(const struct bw_iface_memory *memory)
{
    return ((const struct bw_drm_buffer *)(uintptr_t)memory->handle)->handle;
}

int bw_drm_link(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                struct bw_err *err)
{
    *link = (struct bw_iface_link){.kind = BW_IFACE_LINK_NONE};
    return bw_drm_check_fork(bw_drm_of(iface), err);
}

static int share(struct bw_drm_iface *owner, struct bw_drm_buffer *buffer, struct bw_drm_iface *drm,
                 struct bw_err *err)
{
    struct drm_amdgpu_gem_va place = place_of(buffer, AMDGPU_VA_OP_MAP);
    struct bw_drm_import import = {.drm = drm};
    bool there = false;
    pthread_mutex_lock(&owner->share_lock);
    for (size_t i = 0; i < buffer->imports.count; i++)
        there |= buffer->imports.data[i].drm == drm;
    int rc = there ? 0 : bw_vec_reserve(&buffer->imports, 1);
    if (rc)
        bw_fail(err, rc, "drm", "record of a shared buffer");
    else if (!there)
        rc = bw_drm_import_make(owner, buffer->handle, &place, drm, &import, err);
    if (!there && !rc)
        buffer->imports.data[buffer->imports.count++] = import;
    else if (!there)
        address_keep(buffer, &import);
    pthread_mutex_unlock(&owner->share_lock);
    return rc;
}

int bw_drm_map_peer(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                    struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    int rc = bw_drm_check_fork(drm, err);
    if (rc || owner == iface)
        return rc;
    if (owner->ops != iface->ops || !(memory->flags & BW_IFACE_HOST)) {
        rc = bw_fail(err, -EOPNOTSUPP, "drm", "%s cannot reach %s memory of %s", iface->properties.node_name,
                     memory->flags & BW_IFACE_VRAM ? "device" : "user", owner->properties.node_name);
        bw_err_hint(err, "device memory of a render node belongs to one address space, so that a submission "
                         "needs no list of it: the kernel exports none; GPUs of the KFD reach each other");
        return rc;
    }
    return share(bw_drm_of(owner), (struct bw_drm_buffer *)(uintptr_t)memory->handle, drm, err);
}
