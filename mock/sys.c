/* The OS seam of a mock machine. What the machine's tree does not own is the host's. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/engine/queue.h"
#include "mock/kfd/kfd.h"
#include "mock/machine.h"
#include "mock/pass.h"
#include "mock/trace.h"

static_assert(offsetof(struct bw_mock, sys) == offsetof(struct bw_mock_base, sys) &&
                  offsetof(struct bw_mock, host) == offsetof(struct bw_mock_base, host),
              "a machine begins as struct bw_mock_base");

/* In a forked child the machine's locks may be held for ever and its engines are gone: its descriptors answer
 * EBADF, as those of the KFD do, and everything else is the host's. */
static bool in_child(const struct bw_mock *machine)
{
    return machine->pid != getpid();
}

bool bw_mock_file_find(struct bw_mock *machine, int fd, struct bw_mock_file *file)
{
    for (size_t i = 0; i < machine->files.count; i++) {
        if (machine->files.data[i].fd == fd) {
            *file = machine->files.data[i];
            return true;
        }
    }
    return false;
}

/* machine.lock is held. */
static int open_device(struct bw_mock *machine, const struct bw_mock_node *node)
{
    struct bw_mock_file file = {.kind = BW_MOCK_FILE_RENDER, .gpu = &machine->gpus[node->index]};
    if (bw_vec_reserve(&machine->files, 1))
        return -ENOMEM;
    if (node->kind == BW_MOCK_NODE_KFD) {
        file = (struct bw_mock_file){.kind = BW_MOCK_FILE_KFD};
        int rc = bw_mock_process_open(machine, &file.process);
        if (rc)
            return rc;
        file.fd = memfd_create("bellwire-mock-kfd", MFD_CLOEXEC);
    } else {
        file.fd = fcntl(file.gpu->render_fd, F_DUPFD_CLOEXEC, 0);
    }
    if (file.fd >= 0) {
        machine->files.data[machine->files.count++] = file;
        return file.fd;
    }
    return -errno;
}

static int mock_open(struct bw_sys *sys, const char *path, int flags)
{
    struct bw_mock *machine = bw_mock_of(sys);
    char resolved[BW_MOCK_PATH_BYTES];
    bw_mock_count(sys);
    if (!bw_mock_tree_resolve(&machine->tree, path, resolved))
        return -ENAMETOOLONG;
    if (!bw_mock_tree_owns(resolved))
        return machine->host->ops->open(machine->host, path, flags);
    const struct bw_mock_node *node = bw_mock_tree_find(&machine->tree, resolved);
    if (!node)
        return -ENOENT;
    if (node->kind == BW_MOCK_NODE_TEXT)
        return bw_mock_open_text(node);
    if (in_child(machine))
        return -ENODEV; /* the devices live in the process that made the machine */
    pthread_mutex_lock(&machine->lock);
    int fd = open_device(machine, node);
    pthread_mutex_unlock(&machine->lock);
    return fd;
}

static int mock_close(struct bw_sys *sys, int fd)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_process *process = NULL;
    bw_mock_count(sys);
    if (in_child(machine))
        return machine->host->ops->close(machine->host, fd);
    pthread_mutex_lock(&machine->lock);
    for (size_t i = 0; i < machine->files.count; i++) {
        if (machine->files.data[i].fd == fd) {
            process = machine->files.data[i].process;
            if (machine->files.data[i].buffer)
                bw_mock_buffer_let_go(machine->files.data[i].buffer);
            if (machine->files.data[i].syncobj)
                bw_mock_drm_syncobj_close(machine, machine->files.data[i].syncobj);
            machine->files.data[i] = machine->files.data[--machine->files.count];
            break;
        }
    }
    pthread_mutex_unlock(&machine->lock);
    if (process)
        bw_mock_process_close(process);
    return machine->host->ops->close(machine->host, fd);
}

static int mock_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_file file;
    bw_mock_count(sys);
    if (in_child(machine))
        return bw_mock_file_find(machine, fd, &file)
                   ? -EBADF
                   : machine->host->ops->ioctl(machine->host, fd, request, argument);
    pthread_mutex_lock(&machine->lock);
    bool found = bw_mock_file_find(machine, fd, &file);
    pthread_mutex_unlock(&machine->lock);
    if (!found)
        return machine->host->ops->ioctl(machine->host, fd, request, argument);
    atomic_fetch_add_explicit(&machine->stats.ioctls, 1, memory_order_relaxed);
    if (file.kind == BW_MOCK_FILE_KFD)
        return bw_mock_kfd_ioctl(machine, file.process, request, argument);
    if (file.kind == BW_MOCK_FILE_DMABUF || file.kind == BW_MOCK_FILE_SYNCOBJ)
        return bw_mock_refuse(machine, -ENOTTY, "ioctl 0x%lx of a %s: not modelled", request,
                              file.kind == BW_MOCK_FILE_DMABUF ? "dma-buf" : "syncobj");
    int rc = bw_mock_drm_ioctl(machine, &file, request, argument);
    char device[16];
    snprintf(device, sizeof device, "gpu%u drm", file.gpu->index);
    bw_mock_trace_ioctl(machine, device, bw_mock_drm_name(request), NULL, NULL, rc);
    return rc;
}

/* Doorbells of a mock have no memory: a write is a message to the device. */
static uint64_t doorbell_read(void *user, uint64_t offset, uint32_t width_bytes)
{
    struct bw_mock_context *context = user;
    uint64_t value = atomic_load(&context->doorbells[offset / 8].value);
    return width_bytes == 4 ? (uint32_t)(value >> (offset % 8 * 8)) : value;
}

static void doorbell_write(void *user, uint64_t offset, uint32_t width_bytes, uint64_t value)
{
    struct bw_mock_context *context = user;
    if (width_bytes == 8)
        bw_mock_doorbell_write(context, offset, value);
    else
        bw_mock_error_set(context->process->machine,
                          "doorbell at offset 0x%llx: written with 32 bits, SOC15 doorbells have 64",
                          (unsigned long long)offset);
}

static const struct bw_region_ops doorbell_ops = {doorbell_read, doorbell_write};

/* machine.lock is held, as in the other map_ functions. */
static int map_doorbells(struct bw_mock *machine, struct bw_mock_process *process,
                         const struct bw_map_request *request, struct bw_region *region)
{
    uint32_t gpu_id = (uint32_t)(request->offset >> MOCK_KFD_MMAP_GPU_SHIFT) & 0xffff;
    uint64_t in_page = request->offset & (((uint64_t)1 << MOCK_KFD_MMAP_GPU_SHIFT) - 1);
    struct bw_mock_gpu *gpu = bw_mock_gpu_by_id(machine, gpu_id);
    if (!gpu || in_page || request->size_bytes != BW_MOCK_DOORBELL_BYTES)
        return bw_mock_refuse(machine, -EINVAL, "mmap of doorbells: offset 0x%llx, 0x%llx bytes",
                              (unsigned long long)request->offset, (unsigned long long)request->size_bytes);
    struct bw_mock_cpu_map map = {.size = request->size_bytes, .context = &process->contexts[gpu->index]};
    if (bw_vec_push(&machine->cpu_maps, map))
        return -ENOMEM;
    process->refs++;
    *region = (struct bw_region){
        .size_bytes = request->size_bytes,
        .memory_type = BW_MEMORY_UNCACHED,
        .ops = &doorbell_ops,
        .user = map.context,
    };
    return 0;
}

/* DRM lets a file map its own buffers only (drm_vma_node_is_allowed); the KFD's have no file. */
static struct bw_mock_buffer *buffer_at(struct bw_mock *machine, const struct bw_mock_file *file,
                                        uint64_t offset)
{
    const struct bw_mock_gpu *gpu = file->gpu;
    for (size_t p = 0; p < machine->processes.count; p++) {
        struct bw_mock_process *process = machine->processes.data[p];
        for (size_t i = 0; i < process->buffers.count && (!process->drm || process == file->process); i++) {
            struct bw_mock_buffer *buffer = process->buffers.data[i];
            if (buffer && buffer->pool && buffer->offset == offset && buffer->gpu == gpu->index)
                return buffer;
        }
    }
    return NULL;
}

/* mmap of a render node: the offset names a buffer, the whole of which or its start may be mapped. */
static int map_buffer(struct bw_mock *machine, const struct bw_mock_file *file,
                      const struct bw_map_request *request, struct bw_region *region)
{
    struct bw_mock_buffer *buffer = buffer_at(machine, file, request->offset);
    if (!buffer || request->size_bytes > buffer->size)
        return bw_mock_refuse(machine, -EINVAL,
                              "mmap of GPU memory: no buffer of 0x%llx bytes at offset 0x%llx",
                              (unsigned long long)request->size_bytes, (unsigned long long)request->offset);
    if ((buffer->flags & MOCK_KFD_ALLOC_VRAM) && !(buffer->flags & MOCK_KFD_ALLOC_PUBLIC))
        return bw_mock_refuse(machine, -EPERM, "mmap of GPU memory: the VRAM buffer at 0x%llx is not PUBLIC",
                              (unsigned long long)buffer->va);
    struct bw_map_request host = *request;
    host.fd = machine->memory_fd;
    if (bw_vec_reserve(&machine->cpu_maps, 1))
        return -ENOMEM;
    int rc = machine->host->ops->map(machine->host, &host, region);
    if (rc)
        return rc;
    struct bw_mock_cpu_map map = {
        .base = (const void *)region->base, .size = region->size_bytes, .buffer = buffer};
    machine->cpu_maps.data[machine->cpu_maps.count++] = map;
    buffer->cpu_maps++;
    return 0;
}

static int map_device(struct bw_mock *machine, const struct bw_mock_file *file,
                      const struct bw_map_request *request, struct bw_region *region)
{
    if (file->kind == BW_MOCK_FILE_DMABUF)
        return bw_mock_refuse(machine, -EINVAL, "mmap of a dma-buf: not modelled");
    if (file->kind == BW_MOCK_FILE_SYNCOBJ)
        return bw_mock_refuse(machine, -ENODEV, "mmap of a syncobj");
    if (file->kind == BW_MOCK_FILE_RENDER)
        return map_buffer(machine, file, request, region);
    if ((request->offset & MOCK_KFD_MMAP_TYPES) == MOCK_KFD_MMAP_DOORBELL)
        return map_doorbells(machine, file->process, request, region);
    return bw_mock_refuse(machine, -EINVAL, "mmap of /dev/kfd: offset 0x%llx",
                          (unsigned long long)request->offset);
}

/* machine.lock is held. */
static void forget_map(struct bw_mock *machine, size_t index)
{
    struct bw_mock_cpu_map map = machine->cpu_maps.data[index];
    machine->cpu_maps.data[index] = machine->cpu_maps.data[--machine->cpu_maps.count];
    if (map.context) {
        bw_mock_process_unref(map.context->process);
    } else {
        bw_mock_buffer_let_go(map.buffer);
    }
}

/* A mapping or reservation at a fixed address takes the place of what was there, as MAP_FIXED does. */
static void forget_range(struct bw_mock *machine, uint64_t start, uint64_t size)
{
    pthread_mutex_lock(&machine->lock);
    bw_mock_policy_forget(&machine->policies, start, size);
    for (size_t i = machine->cpu_maps.count; i-- > 0;) {
        uint64_t base = (uint64_t)(uintptr_t)machine->cpu_maps.data[i].base;
        if (base >= start && base - start < size)
            forget_map(machine, i);
    }
    pthread_mutex_unlock(&machine->lock);
}

static int mock_map(struct bw_sys *sys, const struct bw_map_request *request, struct bw_region *region)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_file file;
    struct bw_mock_fault fault;
    bw_mock_count(sys);
    if (in_child(machine))
        return bw_mock_file_find(machine, request->fd, &file)
                   ? -EBADF
                   : machine->host->ops->map(machine->host, request, region);
    enum bw_mock_fault_action action = bw_mock_faults_check(&machine->faults, "map", -1, &fault);
    if (action == BW_MOCK_FAULT_FAIL)
        return -fault.error;
    if (action == BW_MOCK_FAULT_DELAY)
        bw_mock_sleep_ns(machine, fault.delay_ns);
    pthread_mutex_lock(&machine->lock);
    bool found = request->fd >= 0 && bw_mock_file_find(machine, request->fd, &file);
    int rc = found ? map_device(machine, &file, request, region) : 0;
    pthread_mutex_unlock(&machine->lock);
    if (found)
        return rc;
    rc = machine->host->ops->map(machine->host, request, region);
    if (!rc && request->fixed_address)
        forget_range(machine, request->fixed_address, request->size_bytes);
    return rc;
}

static int mock_unmap(struct bw_sys *sys, struct bw_region *region)
{
    struct bw_mock *machine = bw_mock_of(sys);
    bool doorbells = region->ops == &doorbell_ops, known = false;
    const void *base = (const void *)region->base;
    uint64_t size = region->size_bytes;
    bw_mock_count(sys);
    if (in_child(machine) && !doorbells)
        return machine->host->ops->unmap(machine->host, region);
    if (in_child(machine)) {
        *region = (struct bw_region){0};
        return 0;
    }
    if (!doorbells) {
        pthread_mutex_lock(&machine->lock);
        bw_mock_kfd_invalidate_user(machine, base, size);
        pthread_mutex_unlock(&machine->lock);
    }
    int rc = doorbells ? 0 : machine->host->ops->unmap(machine->host, region);
    pthread_mutex_lock(&machine->lock);
    if (!rc && !doorbells)
        bw_mock_policy_forget(&machine->policies, (uintptr_t)base, size);
    for (size_t i = 0; i < machine->cpu_maps.count && !known; i++) {
        const struct bw_mock_cpu_map *map = &machine->cpu_maps.data[i];
        known =
            doorbells ? map->context == region->user : map->buffer && map->base == base && map->size == size;
        if (known)
            forget_map(machine, i);
    }
    pthread_mutex_unlock(&machine->lock);
    if (doorbells)
        *region = (struct bw_region){0};
    return rc;
}

static int mock_node(struct bw_sys *sys, const struct bw_node_request *request)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_fault fault;
    bw_mock_count(sys);
    if (in_child(machine))
        return machine->host->ops->node(machine->host, request);
    enum bw_mock_fault_action action = bw_mock_faults_check(&machine->faults, "node", -1, &fault);
    if (action == BW_MOCK_FAULT_FAIL)
        return -fault.error;
    if (action == BW_MOCK_FAULT_DELAY)
        bw_mock_sleep_ns(machine, fault.delay_ns);
    pthread_mutex_lock(&machine->lock);
    int rc = bw_mock_policy_call(machine, request);
    pthread_mutex_unlock(&machine->lock);
    return rc;
}

uint32_t bw_mock_memory_node(struct bw_sys *sys, const void *address)
{
    struct bw_mock *machine = bw_mock_of(sys);
    uint64_t at = (uintptr_t)address;
    pthread_mutex_lock(&machine->lock);
    uint32_t node = bw_mock_policy_range_node(&machine->policies, at);
    for (size_t i = 0; i < machine->cpu_maps.count; i++) {
        const struct bw_mock_cpu_map *map = &machine->cpu_maps.data[i];
        uint64_t base = (uintptr_t)map->base;
        if (map->buffer && at >= base && at - base < map->size)
            node = (map->buffer->origin ? map->buffer->origin : map->buffer)->node;
    }
    pthread_mutex_unlock(&machine->lock);
    return node;
}

static int mock_list(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name),
                     void *user)
{
    struct bw_mock *machine = bw_mock_of(sys);
    char resolved[BW_MOCK_PATH_BYTES];
    bw_mock_count(sys);
    if (!bw_mock_tree_resolve(&machine->tree, path, resolved))
        return -ENAMETOOLONG;
    if (!bw_mock_tree_owns(resolved))
        return machine->host->ops->list(machine->host, path, entry, user);
    return bw_mock_tree_list(&machine->tree, resolved, entry, user);
}

static uint64_t mock_clock_ns(struct bw_sys *sys)
{
    return bw_mock_clock_ns(bw_mock_of(sys));
}

static void mock_sleep_ns(struct bw_sys *sys, uint64_t duration_ns)
{
    bw_mock_count(sys);
    bw_mock_sleep_ns(bw_mock_of(sys), duration_ns);
}

static int mock_pci_scan(struct bw_sys *sys, int (*found)(void *user, const struct bw_pci_id *id), void *user)
{
    struct bw_mock *machine = bw_mock_of(sys);
    bw_mock_count(sys);
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        const struct bw_mock_gpu *gpu = &machine->gpus[i];
        struct bw_pci_id id = {
            .bus = (uint8_t)gpu->bus,
            .vendor_id = 0x1002,
            .device_id = gpu->chip->device_id,
            .subsystem_vendor_id = 0x1002,
            .subsystem_id = 0x0e3b,
            .revision = gpu->chip->revision,
            .class_code = 0x030000,
        };
        int rc = found(user, &id);
        if (rc)
            return rc;
    }
    return 0;
}

static int mock_queue_look(struct bw_sys *sys, int fd, uint32_t queue_id, struct bw_queue_view *view)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_file file;
    int rc = -ENOENT;
    if (in_child(machine))
        return rc;
    pthread_mutex_lock(&machine->lock);
    if (bw_mock_file_find(machine, fd, &file) && file.process)
        rc = file.process->drm ? bw_mock_drm_queue_look(file.process->drm, queue_id, view)
                               : bw_mock_kfd_queue_look(file.process, queue_id, view);
    pthread_mutex_unlock(&machine->lock);
    return rc;
}

/* What is still open is closed. What is still mapped stays so: pages of a file that nobody else holds any
 * more. */
static void mock_destroy(struct bw_sys *sys)
{
    struct bw_mock *machine = bw_mock_of(sys);
    if (in_child(machine))
        return; /* there are no threads to end, and the memory goes with the child */
    while (machine->files.count)
        mock_close(sys, machine->files.data[machine->files.count - 1].fd);
    pthread_mutex_lock(&machine->lock);
    while (machine->cpu_maps.count)
        forget_map(machine, machine->cpu_maps.count - 1);
    pthread_mutex_unlock(&machine->lock);
    bw_mock_machine_free(machine);
}

const struct bw_sys_ops bw_mock_sys_ops = {
    .open = mock_open,
    .close = mock_close,
    .read = bw_mock_pass_read,
    .write = bw_mock_pass_write,
    .pread = bw_mock_pass_pread,
    .pwrite = bw_mock_pass_pwrite,
    .ioctl = mock_ioctl,
    .map = mock_map,
    .unmap = mock_unmap,
    .protect = bw_mock_pass_protect,
    .poll = bw_mock_pass_poll,
    .list = mock_list,
    .clock_ns = mock_clock_ns,
    .sleep_ns = mock_sleep_ns,
    .lock = bw_mock_pass_lock,
    .pci_scan = mock_pci_scan,
    .size = bw_mock_pass_size,
    .ring_open = bw_mock_pass_ring_open,
    .node = mock_node,
    .queue_look = mock_queue_look,
    .destroy = mock_destroy,
};
