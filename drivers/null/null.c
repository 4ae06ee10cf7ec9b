/* A device whose work retires at the doorbell: kernels do nothing, copies, waits, signals and timestamps
 * happen inside flush, which reads the same packets as the host (drivers/host/packet.h). It is what the
 * host's side of a replay is measured on, and a schedule that would deadlock or wait for the wrong value
 * stands still here, every time.
 *
 * A command buffer that waits for a word that has not got there parks its queue; each doorbell lets all
 * queues go on as far as they can, and so does a host that asks for progress while it waits, since another
 * device may have written the word. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/host/interrupt.h"
#include "drivers/host/object.h"
#include "drivers/host/packet.h"

enum {
    COPY_BYTES_MAX = 1 << 20, /* small, so that tests cross it often */
    COMPUTE_QUEUES = 2, /* several of each kind, so that schedules over them are seen without hardware */
    COPY_QUEUES = 3,
    QUEUES = COMPUTE_QUEUES + COPY_QUEUES,
    RING_ENTRIES = 64, /* parked command buffers of a queue, before submit says -EAGAIN */
    PARKED_LOOK_NS =
        50000, /* how late a waiting host sees that another device's signal let a parked queue go on */
};

struct null_entry {
    const uint32_t *words;
    uint32_t word_count;
};

struct null_queue {
    struct bw_queue base;
    struct null_entry ring[RING_ENTRIES];
    uint64_t put, told, get; /* told: by the last flush; what was put since does not run */
    uint32_t at;             /* word of the first entry where it goes on */
    uint64_t progress;       /* atomic: packets retired */
};

struct null_device {
    struct bw_device base;
    struct bw_sys *sys;
    struct null_queue *queues[QUEUES]; /* compute queues first; NULL: not made */
    bool broken;                       /* atomic: a packet was not one of ours */
    bool busy;                         /* atomic: a thread runs the queues */
};

static bool word_reached(const uint32_t *packet)
{
    const uint64_t *word = (const uint64_t *)(uintptr_t)bw_host_field64(packet + 1);
    return (int64_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - bw_host_field64(packet + 3)) >= 0;
}

static void word_write(const uint32_t *packet, uint64_t value)
{
    __atomic_store_n((uint64_t *)(uintptr_t)bw_host_field64(packet + 1), value, __ATOMIC_RELEASE);
}

/* False when the packet has to wait. */
static bool packet_retire(struct null_device *device, const uint32_t *packet)
{
    switch (bw_host_header_opcode(packet[0])) {
    case BW_HOST_OP_WAIT:
        return word_reached(packet);
    case BW_HOST_OP_SIGNAL:
        word_write(packet, bw_host_field64(packet + 3));
        return true;
    case BW_HOST_OP_TIMESTAMP:
        word_write(packet, device->sys->ops->clock_ns(device->sys));
        return true;
    case BW_HOST_OP_COPY:
        memcpy((void *)(uintptr_t)bw_host_field64(packet + 1),
               (const void *)(uintptr_t)bw_host_field64(packet + 3), bw_host_field64(packet + 5));
        return true;
    case BW_HOST_OP_NOP:
    case BW_HOST_OP_KERNEL:
    case BW_HOST_OP_BARRIER:
        return true;
    default:
        __atomic_store_n(&device->broken, true, __ATOMIC_RELEASE);
        return false;
    }
}

/* Runs the queue until it is empty or waits; true when something retired. */
static bool queue_run(struct null_device *device, struct null_queue *queue)
{
    uint64_t retired = 0;
    while (queue->get != queue->told && !device->broken) {
        const struct null_entry *entry = &queue->ring[queue->get % RING_ENTRIES];
        while (queue->at < entry->word_count) {
            const uint32_t *packet = &entry->words[queue->at];
            uint32_t length = bw_host_header_words(packet[0]);
            if (length == 0 || length > entry->word_count - queue->at)
                __atomic_store_n(&device->broken, true, __ATOMIC_RELEASE);
            if (device->broken || !packet_retire(device, packet))
                goto parked;
            queue->at += length;
            retired++;
        }
        queue->at = 0;
        queue->get++;
    }
parked:
    __atomic_store_n(&queue->progress, queue->progress + retired, __ATOMIC_RELAXED);
    return retired != 0;
}

static bool device_take(struct null_device *device)
{
    return !__atomic_exchange_n(&device->busy, true, __ATOMIC_ACQUIRE);
}

static void device_give(struct null_device *device)
{
    __atomic_store_n(&device->busy, false, __ATOMIC_RELEASE);
}

/* Lets all queues go on as far as they can; true when something retired. */
static bool device_run(struct null_device *device)
{
    bool any = false;
    for (bool moved = true; moved; any |= moved) { /* ends: every turn retires a packet */
        moved = false;
        for (uint32_t i = 0; i < QUEUES; i++) {
            struct null_queue *queue = device->queues[i];
            if (queue && queue->get != queue->told)
                moved |= queue_run(device, queue);
        }
    }
    return any;
}

static int null_submit(struct bw_queue *base, uint64_t address, uint32_t word_count)
{
    struct null_queue *queue = (struct null_queue *)base;
    struct null_device *device = (struct null_device *)base->device;
    while (!device_take(device)) { /* a waiting thread looks at parked queues: for a moment */
    }
    bool full = queue->put - queue->get == RING_ENTRIES;
    if (!full) {
        queue->ring[queue->put % RING_ENTRIES] =
            (struct null_entry){(const uint32_t *)(uintptr_t)address, word_count};
        queue->put++;
    }
    device_give(device);
    return full ? -EAGAIN : 0;
}

static int null_flush(struct bw_queue *base)
{
    struct null_queue *queue = (struct null_queue *)base;
    struct null_device *device = (struct null_device *)base->device;
    while (!device_take(device)) {
    }
    queue->told = queue->put;
    device_run(device);
    device_give(device);
    return 0;
}

static struct null_queue **slot_of(struct null_device *device, enum bw_queue_kind kind, uint32_t index)
{
    return &device->queues[kind == BW_QUEUE_COMPUTE ? index : COMPUTE_QUEUES + index];
}

static int null_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                             struct bw_queue **out, struct bw_err *err)
{
    struct null_device *null = (struct null_device *)device;
    if (index >= (kind == BW_QUEUE_COMPUTE ? COMPUTE_QUEUES : COPY_QUEUES) || *slot_of(null, kind, index))
        return bw_fail(err, -ENODEV, "null", "queue %u of kind %d", index, kind);
    struct null_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return bw_fail(err, -ENOMEM, "null", "queue");
    queue->base = (struct bw_queue){device, kind, index};
    while (!device_take(null)) { /* others may be looked at meanwhile */
    }
    *slot_of(null, kind, index) = queue;
    device_give(null);
    *out = &queue->base;
    return 0;
}

static void null_queue_destroy(struct bw_queue *queue)
{
    struct null_device *null = (struct null_device *)queue->device;
    while (!device_take(null)) {
    }
    *slot_of(null, queue->kind, queue->index) = NULL;
    device_give(null);
    free(queue);
}

static uint64_t null_queue_progress(struct bw_queue *queue)
{
    struct null_device *device = (struct null_device *)queue->device;
    if (device_take(device)) {
        device_run(device);
        device_give(device);
    }
    return __atomic_load_n(&((struct null_queue *)queue)->progress, __ATOMIC_RELAXED);
}

static void null_close(struct bw_device *device)
{
    free(device);
}

static int null_alloc(struct bw_device *device, uint64_t size_bytes, uint32_t flags, struct bw_memory *memory,
                      struct bw_err *err)
{
    return bw_host_memory_alloc(((struct null_device *)device)->sys, "null", size_bytes, flags, memory, err);
}

static void null_free(struct bw_device *device, struct bw_memory *memory)
{
    struct null_device *null = (struct null_device *)device;
    null->sys->ops->unmap(null->sys, &memory->cpu);
    *memory = (struct bw_memory){0};
}

/* Takes what the host takes, and reads only who the kernels are. */
static int null_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                             struct bw_program **out, struct bw_err *err)
{
    struct bw_host_object object;
    int rc = bw_host_object_open(image, image_bytes, &object, err);
    if (rc)
        return rc;
    struct bw_host_program *program = calloc(1, sizeof *program);
    rc = program ? bw_host_kernels_read(&object, program, err) : bw_fail(err, -ENOMEM, "null", "program");
    bw_host_object_close(&object);
    if (rc) {
        free(program);
        return rc;
    }
    program->base.device = device;
    *out = &program->base;
    return 0;
}

static void null_program_destroy(struct bw_program *base)
{
    bw_host_kernels_free((struct bw_host_program *)base);
    free(base);
}

static int null_wait_interrupt(struct bw_device *device, uint64_t timeout_ns)
{
    struct null_device *null = (struct null_device *)device;
    null->sys->ops->sleep_ns(null->sys, timeout_ns < PARKED_LOOK_NS ? timeout_ns : PARKED_LOOK_NS);
    return 0;
}

static int null_query_fault(struct bw_device *device, struct bw_err *err)
{
    struct null_device *null = (struct null_device *)device;
    if (!__atomic_load_n(&null->broken, __ATOMIC_ACQUIRE))
        return 0;
    bw_fail(err, -EIO, "null", "a command buffer that is not made of packets");
    bw_err_device(err, device->info.name);
    return -EIO;
}

static int null_reset(struct bw_device *device, struct bw_err *err)
{
    struct null_device *null = (struct null_device *)device;
    for (uint32_t i = 0; i < QUEUES; i++) {
        struct null_queue *queue = null->queues[i];
        if (!queue)
            continue;
        queue->get = queue->told = queue->put;
        queue->at = 0;
    }
    null->broken = false;
    return 0;
}

static const struct bw_driver_ops null_ops = {
    .name = "null",
    .close = null_close,
    .alloc = null_alloc,
    .free = null_free,
    .map_peer = bw_host_memory_map_peer,
    .program_load = null_program_load,
    .program_destroy = null_program_destroy,
    .program_kernel = bw_host_program_kernel,
    .argument_block = bw_host_argument_block,
    .queue_create = null_queue_create,
    .queue_destroy = null_queue_destroy,
    .encode_kernel = bw_host_encode_kernel,
    .encode_copy = bw_host_encode_copy,
    .encode_wait = bw_host_encode_wait,
    .encode_signal = bw_host_encode_signal,
    .encode_timestamp = bw_host_encode_timestamp,
    .encode_barrier = bw_host_encode_barrier,
    .encode_end = bw_host_encode_end,
    .submit = null_submit,
    .flush = null_flush,
    .queue_progress = null_queue_progress,
    .wait_interrupt = null_wait_interrupt,
    .query_fault = null_query_fault,
    .reset = null_reset,
};

int bw_null_open(struct bw_ctx *ctx, struct bw_device **device, struct bw_err *err)
{
    struct null_device *null = calloc(1, sizeof *null);
    if (!null)
        return bw_fail(err, -ENOMEM, "null", "device");
    null->base.ops = &null_ops;
    null->base.ctx = ctx;
    null->sys = bw_ctx_sys(ctx);
    struct bw_device_info *info = &null->base.info;
    snprintf(info->name, sizeof info->name, "null");
    snprintf(info->driver, sizeof info->driver, "null");
    snprintf(info->arch, sizeof info->arch, "x86_64"); /* takes the host's objects */
    info->wave_size = 1;
    info->compute_units = 1;
    info->group_size_max = 1;
    null->base.caps = (struct bw_device_caps){
        .compute_queues = COMPUTE_QUEUES,
        .copy_queues = COPY_QUEUES,
        .compute_copies = true,
        .user_doorbell = true,
        .device_wait = true,
        .device_wait_64 = true,
        .copy_bytes_max = COPY_BYTES_MAX,
        .command_alignment_words = 1,
        .timestamp_hz = 1000000000,
        .timestamp_is_clock = true,
        .host_addressable = true,
    };
    *device = &null->base;
    return 0;
}
