/* Buffers and their addresses (amdgpu_gem.c, amdgpu_vm.c and amdgpu_object.c of the kernel). What is mapped
 * stays where it is: eviction is not modelled, so a buffer that a submission should have listed and did not
 * goes unnoticed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/drm/rings.h"
#include "mock/kfd/kfd.h"

#define KNOWN_DOMAINS                                                                           \
    (MOCK_DRM_DOMAIN_CPU | MOCK_DRM_DOMAIN_GTT | MOCK_DRM_DOMAIN_VRAM | MOCK_DRM_DOMAINS_REST | \
     MOCK_DRM_DOMAIN_DOORBELL)
#define SETTABLE_FLAGS                                                                          \
    (MOCK_DRM_CREATE_CPU_ACCESS | MOCK_DRM_CREATE_NO_CPU_ACCESS | MOCK_DRM_CREATE_USWC |        \
     MOCK_DRM_CREATE_VRAM_CLEARED | MOCK_DRM_CREATE_CONTIGUOUS | MOCK_DRM_CREATE_ALWAYS_VALID | \
     MOCK_DRM_CREATE_EXPLICIT_SYNC | MOCK_DRM_CREATE_WIPE | MOCK_DRM_CREATE_DISCARDABLE |       \
     MOCK_DRM_CREATE_COHERENT | MOCK_DRM_CREATE_UNCACHED)
#define PAGE_FLAGS                                                                   \
    (MOCK_DRM_PAGE_DELAY_UPDATE | MOCK_DRM_PAGE_READABLE | MOCK_DRM_PAGE_WRITEABLE | \
     MOCK_DRM_PAGE_EXECUTABLE | MOCK_DRM_PAGE_MTYPES | MOCK_DRM_PAGE_NOALLOC)

struct bw_mock_buffer *bw_mock_drm_buffer(struct bw_mock_drm_client *client, uint32_t handle)
{
    struct bw_mock_process *process = client->process;
    return handle && handle < process->buffers.count ? process->buffers.data[handle] : NULL;
}

/* flags: MOCK_KFD_ALLOC_VRAM, _USERPTR or neither, and _PUBLIC where the CPU may look. */
static int buffer_make(struct bw_mock_drm_client *client, uint64_t size, uint32_t flags,
                       struct bw_mock_buffer **made)
{
    struct bw_mock_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return -ENOMEM;
    *buffer = (struct bw_mock_buffer){.process = client->process,
                                      .gpu = client->gpu->gpu->index,
                                      .flags = flags,
                                      .size = bw_align_up(size, BW_MOCK_PAGE)};
    bool user = flags & MOCK_KFD_ALLOC_USERPTR, vram = flags & MOCK_KFD_ALLOC_VRAM;
    int rc = user ? 0 : bw_mock_buffer_back(client->gpu, buffer, "GEM_CREATE");
    if (rc && vram) { /* the kernel makes room, or takes system memory; here it is always that */
        buffer->flags &= ~MOCK_KFD_ALLOC_VRAM;
        rc = bw_mock_buffer_back(client->gpu, buffer, "GEM_CREATE");
    }
    if (rc)
        buffer->pool = NULL;
    rc = rc ? rc : bw_mock_buffer_add(client->process, buffer);
    if (rc)
        bw_mock_buffer_release(buffer);
    else
        *made = buffer;
    return rc;
}

int bw_mock_drm_gem_create(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_gem_create *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_buffer *buffer;
    bw_mock_drm_reap(client);
    if (args->flags & ~SETTABLE_FLAGS || args->domains & ~(uint64_t)KNOWN_DOMAINS)
        return bw_mock_refuse(machine, -EINVAL, "GEM_CREATE: flags 0x%llx, domains 0x%llx",
                              (unsigned long long)args->flags, (unsigned long long)args->domains);
    if (!(args->domains & (MOCK_DRM_DOMAIN_VRAM | MOCK_DRM_DOMAIN_GTT)))
        return bw_mock_refuse(machine, -EINVAL, "GEM_CREATE: domains 0x%llx are not modelled",
                              (unsigned long long)args->domains);
    bool vram = args->domains & MOCK_DRM_DOMAIN_VRAM;
    uint64_t most =
        args->domains & MOCK_DRM_DOMAIN_GTT ? machine->system.limit : client->gpu->gpu->vram.limit;
    if (!args->size || args->size > most) /* amdgpu_bo_validate_size */
        return bw_mock_refuse(machine, args->size ? -ENOMEM : -EINVAL, "GEM_CREATE: 0x%llx bytes of 0x%llx",
                              (unsigned long long)args->size, (unsigned long long)most);
    uint32_t flags = vram ? MOCK_KFD_ALLOC_VRAM : MOCK_KFD_ALLOC_GTT;
    if (!(args->flags & MOCK_DRM_CREATE_NO_CPU_ACCESS))
        flags |= MOCK_KFD_ALLOC_PUBLIC;
    int rc = buffer_make(client, args->size, flags, &buffer);
    if (!rc) {
        buffer->always_valid = args->flags & MOCK_DRM_CREATE_ALWAYS_VALID;
        memset(args, 0, sizeof *args);
        memcpy(args, &buffer->index, sizeof buffer->index);
    }
    return rc;
}

int bw_mock_drm_userptr(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_userptr *args = data;
    struct bw_mock *machine = client->process->machine;
    const uint32_t known = MOCK_DRM_USERPTR_READONLY | MOCK_DRM_USERPTR_ANONONLY | MOCK_DRM_USERPTR_VALIDATE |
                           MOCK_DRM_USERPTR_REGISTER;
    struct bw_mock_buffer *buffer;
    if ((args->address | args->size) % BW_MOCK_PAGE || !args->size || args->flags & ~known)
        return bw_mock_refuse(machine, -EINVAL, "GEM_USERPTR: 0x%llx bytes at 0x%llx, flags 0x%x",
                              (unsigned long long)args->size, (unsigned long long)args->address, args->flags);
    if (!(args->flags & (MOCK_DRM_USERPTR_READONLY | MOCK_DRM_USERPTR_REGISTER)))
        return bw_mock_refuse(machine, -EACCES, "GEM_USERPTR: writable without REGISTER");
    if (!bw_mock_user_memory_ok((void *)(uintptr_t)args->address, args->size))
        return bw_mock_refuse(machine, -EFAULT, "GEM_USERPTR: 0x%llx bytes at 0x%llx cannot be used",
                              (unsigned long long)args->size, (unsigned long long)args->address);
    int rc = buffer_make(client, args->size, MOCK_KFD_ALLOC_USERPTR, &buffer);
    if (rc)
        return rc;
    buffer->host = (uint8_t *)(uintptr_t)args->address;
    args->handle = buffer->index;
    return 0;
}

int bw_mock_drm_gem_mmap(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_gem_mmap *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_buffer *buffer = bw_mock_drm_buffer(client, args->handle);
    if (!buffer)
        return bw_mock_refuse(machine, -ENOENT, "GEM_MMAP: no buffer %u", args->handle);
    if (!buffer->pool || !(buffer->flags & MOCK_KFD_ALLOC_PUBLIC))
        return bw_mock_refuse(machine, -EPERM, "GEM_MMAP: buffer %u is not for the CPU", args->handle);
    memcpy(data, &buffer->offset, sizeof buffer->offset);
    return 0;
}

/* A mapping of the buffer, whichever. */
static bool mapping_of(struct bw_mock_drm_client *client, const struct bw_mock_buffer *buffer,
                       struct bw_mock_mapping *found)
{
    struct bw_mock_space *space = &client->gpu->space;
    bool any = false;
    pthread_rwlock_rdlock(&space->lock);
    for (size_t i = 0; i < space->maps.count && !any; i++) {
        any = space->maps.data[i].buffer == buffer;
        if (any)
            *found = space->maps.data[i];
    }
    pthread_rwlock_unlock(&space->lock);
    return any;
}

static void unmap(struct bw_mock_drm_client *client, struct bw_mock_buffer *buffer, uint64_t va)
{
    bw_mock_space_unmap(&client->gpu->space, va);
    if (buffer->flags & MOCK_KFD_ALLOC_USERPTR) { /* the client's own pages may go next */
        bw_mock_buffer_drain_user(client->gpu);
        buffer->mapped = 0;
    }
}

int bw_mock_drm_gem_close(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_gem_close *args = data;
    struct bw_mock_buffer *buffer = bw_mock_drm_buffer(client, args->handle);
    struct bw_mock_mapping mapping;
    if (!buffer)
        return bw_mock_refuse(client->process->machine, -EINVAL, "GEM_CLOSE: no buffer %u", args->handle);
    if (bw_vec_push(&client->doomed, buffer))
        return -ENOMEM;
    while (mapping_of(client, buffer, &mapping))
        unmap(client, buffer, mapping.va);
    client->process->buffers.data[buffer->index] = NULL;
    bw_mock_drm_reap(client);
    return 0;
}

/* amdgpu_vm_verify_parameters and the checks of amdgpu_gem_va_ioctl. */
static int check_range(struct bw_mock *machine, const struct mock_drm_gem_va *args,
                       const struct bw_mock_buffer *buffer)
{
    uint64_t end = args->va + args->size;
    if (args->va < BW_MOCK_DRM_VA_START || end < args->va || end > BW_MOCK_DRM_VA_END)
        return bw_mock_refuse(machine, -EINVAL, "GEM_VA: [0x%llx, +0x%llx) is outside of user space",
                              (unsigned long long)args->va, (unsigned long long)args->size);
    if (!args->size || (args->va | args->offset | args->size) % BW_MOCK_PAGE)
        return bw_mock_refuse(machine, -EINVAL, "GEM_VA: 0x%llx bytes at 0x%llx, offset 0x%llx: no pages",
                              (unsigned long long)args->size, (unsigned long long)args->va,
                              (unsigned long long)args->offset);
    if (args->offset > buffer->size || args->size > buffer->size - args->offset)
        return bw_mock_refuse(machine, -EINVAL, "GEM_VA: 0x%llx bytes at offset 0x%llx of 0x%llx",
                              (unsigned long long)args->size, (unsigned long long)args->offset,
                              (unsigned long long)buffer->size);
    return 0;
}

static int map(struct bw_mock_drm_client *client, const struct mock_drm_gem_va *args,
               struct bw_mock_buffer *buffer)
{
    struct bw_mock *machine = client->process->machine;
    int rc = check_range(machine, args, buffer);
    if (rc)
        return rc;
    uint32_t access = 0;
    if (args->flags & MOCK_DRM_PAGE_READABLE)
        access |= BW_MOCK_READ;
    if (args->flags & MOCK_DRM_PAGE_WRITEABLE)
        access |= BW_MOCK_WRITE | BW_MOCK_ATOMIC;
    if (args->flags & MOCK_DRM_PAGE_EXECUTABLE)
        access |= BW_MOCK_EXECUTE;
    struct bw_mock_mapping mapping = {.va = args->va,
                                      .size = args->size,
                                      .host = buffer->host + args->offset,
                                      .access = access,
                                      .buffer = buffer,
                                      .pool = buffer->pool};
    rc = bw_mock_space_map(&client->gpu->space, &mapping);
    if (rc == -EINVAL)
        return bw_mock_refuse(machine, rc, "GEM_VA: [0x%llx, +0x%llx) overlaps another mapping",
                              (unsigned long long)args->va, (unsigned long long)args->size);
    if (!rc && buffer->flags &
                   MOCK_KFD_ALLOC_USERPTR) { /* for when the pages go away: bw_mock_kfd_invalidate_user */
        buffer->va = args->va;
        buffer->mapped = (uint64_t)1 << client->gpu->gpu->index;
    }
    return rc;
}

int bw_mock_drm_gem_va(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_gem_va *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_mapping mapping;
    if (args->flags & ~PAGE_FLAGS)
        return bw_mock_refuse(machine, -EINVAL, "GEM_VA: flags 0x%x", args->flags);
    if (args->operation != MOCK_DRM_VA_MAP && args->operation != MOCK_DRM_VA_UNMAP)
        return bw_mock_refuse(machine, -EINVAL, "GEM_VA: operation %u is not modelled", args->operation);
    struct bw_mock_buffer *buffer = bw_mock_drm_buffer(client, args->handle);
    if (!buffer)
        return bw_mock_refuse(machine, -ENOENT, "GEM_VA: no buffer %u", args->handle);
    if (args->operation == MOCK_DRM_VA_MAP)
        return map(client, args, buffer);
    if (!bw_mock_space_find(&client->gpu->space, args->va, &mapping) || mapping.va != args->va ||
        mapping.buffer != buffer)
        return bw_mock_refuse(machine, -ENOENT, "GEM_VA: buffer %u is not mapped at 0x%llx", args->handle,
                              (unsigned long long)args->va);
    unmap(client, buffer, args->va);
    return 0;
}

void bw_mock_drm_reap(struct bw_mock_drm_client *client)
{
    struct bw_mock_drm *drm = client->process->machine->drm;
    pthread_mutex_lock(&drm->lock);
    bool idle = !client->in_flight;
    pthread_mutex_unlock(&drm->lock);
    while (idle && client->doomed.count) {
        struct bw_mock_buffer *buffer = client->doomed.data[--client->doomed.count];
        buffer->process = NULL;
        if (!buffer->cpu_maps)
            bw_mock_buffer_release(buffer);
    }
}
