/* Lists of buffers (amdgpu_bo_list.c of the kernel) and buffers that leave their file (drm_prime.c,
 * amdgpu_dma_buf.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/kfd/kfd.h"

enum { LISTS_MAX = 65536, ENTRIES_MAX = 128 * 1024 /* AMDGPU_BO_LIST_MAX_ENTRIES */ };

int bw_mock_drm_list_check(struct bw_mock_drm_client *client, const struct mock_drm_list *list)
{
    struct bw_mock *machine = client->process->machine;
    if (list->count > ENTRIES_MAX)
        return bw_mock_refuse(machine, -EINVAL, "list of %u buffers", list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        struct mock_drm_list_entry entry = {0};
        uint64_t bytes = list->entry_bytes < sizeof entry ? list->entry_bytes : sizeof entry;
        if (!bw_mock_user_copy(&entry, list->entries + (uint64_t)i * list->entry_bytes, bytes))
            return bw_mock_refuse(machine, -EFAULT, "list of buffers: cannot be read");
        if (!bw_mock_drm_buffer(client, entry.handle))
            return bw_mock_refuse(machine, -ENOENT, "list of buffers: no buffer %u", entry.handle);
    }
    return 0;
}

static int list_create(struct bw_mock_drm_client *client, uint32_t *handle)
{
    size_t at = 0;
    while (at < client->lists.count && client->lists.data[at])
        at++;
    if (at >= LISTS_MAX || (at == client->lists.count && bw_vec_push(&client->lists, false)))
        return -ENOMEM;
    client->lists.data[at] = true;
    *handle = (uint32_t)at + 1;
    return 0;
}

int bw_mock_drm_bo_list(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_list *args = data;
    struct bw_mock *machine = client->process->machine;
    uint32_t operation = args->operation, handle = args->list;
    bool there = handle && handle <= client->lists.count && client->lists.data[handle - 1];
    if (operation > MOCK_DRM_LIST_UPDATE)
        return bw_mock_refuse(machine, -EINVAL, "BO_LIST: operation %u", operation);
    int rc = operation == MOCK_DRM_LIST_DESTROY ? 0 : bw_mock_drm_list_check(client, args);
    if (!rc && operation != MOCK_DRM_LIST_CREATE && !there)
        rc = bw_mock_refuse(machine, -ENOENT, "BO_LIST: no list %u", handle);
    if (!rc && operation == MOCK_DRM_LIST_CREATE)
        rc = list_create(client, &handle);
    if (rc)
        return rc;
    if (operation == MOCK_DRM_LIST_DESTROY)
        client->lists.data[handle - 1] = false;
    memset(args, 0, sizeof *args);
    memcpy(args, &handle, sizeof handle);
    return 0;
}

int bw_mock_drm_prime_export(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_prime *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_buffer *buffer = bw_mock_drm_buffer(client, args->handle);
    if (args->flags & ~(uint32_t)(O_CLOEXEC | O_RDWR))
        return bw_mock_refuse(machine, -EINVAL, "PRIME_HANDLE_TO_FD: flags 0x%x", args->flags);
    if (!buffer)
        return bw_mock_refuse(machine, -ENOENT, "PRIME_HANDLE_TO_FD: no buffer %u", args->handle);
    if (buffer->always_valid || buffer->flags & MOCK_KFD_ALLOC_USERPTR)
        return bw_mock_refuse(machine, -EPERM, "PRIME_HANDLE_TO_FD: buffer %u belongs to one address space",
                              args->handle);
    if (buffer->origin)
        return bw_mock_refuse(machine, -EINVAL, "PRIME_HANDLE_TO_FD of an import: not modelled");
    if (bw_vec_reserve(&machine->files, 1))
        return -ENOMEM;
    int fd = memfd_create("bellwire-mock-dmabuf", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    buffer->cpu_maps++;
    machine->files.data[machine->files.count++] = (struct bw_mock_file){
        .fd = fd, .kind = BW_MOCK_FILE_DMABUF, .gpu = client->gpu->gpu, .buffer = buffer};
    args->fd = fd;
    return 0;
}

int bw_mock_drm_prime_import(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_prime *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_file file;
    if (!bw_mock_file_find(machine, args->fd, &file) || file.kind != BW_MOCK_FILE_DMABUF)
        return bw_mock_refuse(machine, -EINVAL, "PRIME_FD_TO_HANDLE: descriptor %d is no dma-buf", args->fd);
    if (file.buffer->process == client->process || file.buffer->flags & MOCK_KFD_ALLOC_VRAM)
        return bw_mock_refuse(machine, -EINVAL,
                              "PRIME_FD_TO_HANDLE: of the same file, or of VRAM: not modelled");
    struct bw_mock_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return -ENOMEM;
    *buffer = (struct bw_mock_buffer){.process = client->process,
                                      .gpu = client->gpu->gpu->index,
                                      .flags = MOCK_KFD_ALLOC_GTT,
                                      .size = file.buffer->size,
                                      .host = file.buffer->host,
                                      .origin = file.buffer};
    int rc = bw_mock_buffer_add(client->process, buffer);
    if (rc) {
        free(buffer);
        return rc;
    }
    file.buffer->cpu_maps++;
    args->handle = buffer->index;
    return 0;
}
