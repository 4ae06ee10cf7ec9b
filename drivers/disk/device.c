/* The file as a device: see disk.h. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/disk/disk.h"
#include "drivers/host/packet.h"

enum {
    COPY_BYTES_MAX = 16 << 20, /* of one packet: as many pieces as are under way at once fit it */
    GIVE_UP_NS = 1000000000,   /* for reads to end when the device is reset or closed */
};

void bw_disk_device_break(struct bw_disk_device *device, const struct bw_err *failure)
{
    pthread_mutex_lock(&device->lock);
    if (!__atomic_load_n(&device->broken, __ATOMIC_RELAXED))
        device->failure = *failure;
    __atomic_store_n(&device->broken, true, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&device->lock);
    bw_host_interrupt_raise(&device->interrupt);
}

void bw_disk_device_release(struct bw_disk_device *device)
{
    if (!bw_host_left_release(&device->left))
        return;
    bw_disk_close(device->disk);
    bw_host_left_fini(&device->left);
    bw_host_interrupt_fini(&device->interrupt);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

static void disk_close(struct bw_device *base)
{
    struct bw_disk_device *device = (struct bw_disk_device *)base;
    assert(!device->queue);
    bw_disk_device_release(device);
}

static int disk_alloc(struct bw_device *base, uint64_t size_bytes, uint32_t flags, struct bw_memory *memory,
                      struct bw_err *err)
{
    struct bw_disk_device *device = (struct bw_disk_device *)base;
    if (!(flags & BW_BUFFER_HOST)) {
        bw_fail(err, -ENOTSUP, "disk", "%s has no memory of its own", base->info.name);
        bw_err_hint(err, "its file is bw_buffer_file; memory of the process is BW_BUFFER_HOST");
        return -ENOTSUP;
    }
    int rc = bw_host_memory_alloc(device->sys, "disk", size_bytes, flags, memory, err);
    /* Not what the CPU writes signals and commands to, which nothing is read into. */
    if (!rc && !(flags & BW_BUFFER_UNCACHED))
        bw_disk_memory_add(device->disk, (void *)(uintptr_t)memory->cpu.base, memory->size_bytes);
    return rc;
}

static void disk_free(struct bw_device *base, struct bw_memory *memory)
{
    struct bw_disk_device *device = (struct bw_disk_device *)base;
    if (!device->left.any && memory->cpu.size_bytes)
        bw_disk_memory_remove(device->disk, (void *)(uintptr_t)memory->cpu.base);
    bw_host_memory_free(&device->left, memory);
}

static int disk_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                             struct bw_program **program, struct bw_err *err)
{
    bw_fail(err, -ENOTSUP, "disk", "%s runs no programs", device->info.name);
    bw_err_hint(err, "a disk only reads; name a GPU or host:0 to compute");
    return -ENOTSUP;
}

static int disk_wait_interrupt(struct bw_device *device, uint64_t timeout_ns)
{
    bw_host_interrupt_wait(&((struct bw_disk_device *)device)->interrupt, timeout_ns);
    return 0;
}

static int disk_query_fault(struct bw_device *base, struct bw_err *err)
{
    struct bw_disk_device *device = (struct bw_disk_device *)base;
    if (!__atomic_load_n(&device->broken, __ATOMIC_ACQUIRE))
        return 0;
    pthread_mutex_lock(&device->lock);
    *err = device->failure;
    pthread_mutex_unlock(&device->lock);
    bw_err_device(err, base->info.name);
    return err->code;
}

static int disk_reset(struct bw_device *base, struct bw_err *err)
{
    struct bw_disk_device *device = (struct bw_disk_device *)base;
    int rc = device->queue ? bw_disk_queue_reset(device->queue, device->give_up_ns) : 0;
    if (!rc)
        return 0;
    bw_fail(err, rc, "disk", "a read that does not end");
    bw_err_device(err, base->info.name);
    bw_err_hint(err, "the disk, or whoever serves its file system, does not answer");
    return rc;
}

static const struct bw_driver_ops disk_ops = {
    .name = "disk",
    .close = disk_close,
    .alloc = disk_alloc,
    .free = disk_free,
    .map_peer = bw_host_memory_map_peer,
    .program_load = disk_program_load,
    .queue_create = bw_disk_queue_create,
    .queue_destroy = bw_disk_queue_destroy,
    .encode_copy = bw_host_encode_copy,
    .encode_wait = bw_host_encode_wait,
    .encode_signal = bw_host_encode_signal,
    .encode_timestamp = bw_host_encode_timestamp,
    .encode_barrier = bw_host_encode_barrier,
    .encode_end = bw_host_encode_end,
    .submit = bw_disk_queue_submit,
    .queue_progress = bw_disk_queue_progress,
    .queue_look = bw_disk_queue_look,
    .wait_interrupt = disk_wait_interrupt,
    .query_fault = disk_query_fault,
    .reset = disk_reset,
};

static void info_fill(struct bw_disk_device *device, const char *name)
{
    struct bw_device_info *info = &device->base.info;
    snprintf(info->name, sizeof info->name, "%s", name);
    if (strlen(name) >= sizeof info->name) /* the end of a path tells more than its start */
        snprintf(info->name, sizeof info->name, "disk:...%s", name + strlen(name) - (sizeof info->name - 9));
    snprintf(info->driver, sizeof info->driver, "disk");
    info->file_bytes = bw_disk_size(device->disk);
    device->base.caps = (struct bw_device_caps){
        .copy_queues = 1,
        .user_doorbell = false, /* a sleeping thread is woken by a system call */
        .device_wait = true,
        .device_wait_64 = true,
        .copy_bytes_max = COPY_BYTES_MAX,
        .command_alignment_words = 1,
        .timestamp_hz = 1000000000,
        .timestamp_is_clock = true,
        .host_addressable = true,
        .file_address = BW_DISK_FILE_ADDRESS,
    };
}

int bw_disk_device_open(struct bw_ctx *ctx, const char *name, const char *path, struct bw_device **out,
                        struct bw_err *err)
{
    struct bw_disk_device *device = calloc(1, sizeof *device);
    if (!device)
        return bw_fail(err, -ENOMEM, "disk", "%s", path);
    device->base.ops = &disk_ops;
    device->base.ctx = ctx;
    device->sys = bw_ctx_sys(ctx);
    uint64_t wait_ns = bw_ctx_config(ctx)->wait_ns;
    device->give_up_ns = wait_ns < GIVE_UP_NS ? wait_ns : GIVE_UP_NS;
    int rc = bw_disk_open(device->sys, path, &device->disk, err);
    if (rc) {
        bw_err_device(err, name);
        free(device);
        return rc;
    }
    info_fill(device, name);
    pthread_mutex_init(&device->lock, NULL);
    bw_host_interrupt_init(&device->interrupt);
    bw_host_left_init(&device->left, device->sys);
    *out = &device->base;
    return 0;
}
