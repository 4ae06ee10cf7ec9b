/* Reads and writes of buffers: straight through the CPU's view where that is ordinary memory, else staged
 * through a copy queue, double buffered: while one slot is on its way, the CPU fills or empties the other. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"
#include "mem/disk.h"

enum {
    SLOTS = 2,
    COMMAND_BYTES = 64 << 10, /* of a slot */
    PACKETS_MAX = 512, /* of a slot: 32 words of command memory for each, more than any family's copy takes */
};

struct slot {
    struct bw_point done;        /* when the queue has passed this, the slot is free */
    void *caller;                /* read: where its bytes go */
    uint64_t offset, size_bytes; /* of its bytes in the staging memory */
    bool current;                /* of the request that runs */
};

struct bw_transfer {
    struct bw_hcq_device *device;
    struct bw_hcq_queue *queue;
    struct bw_block *staging, *commands;
    struct bw_encoder encoder;
    struct slot slots[SLOTS];
    uint64_t chunk_bytes;
};

/* One transfer's parameters. */
struct request {
    struct bw_block *block;
    uint64_t offset;
    char *data;
    uint64_t size_bytes;
    bool write;
};

static void transfer_free(struct bw_transfer *transfer)
{
    bw_block_release(transfer->staging);
    bw_block_release(transfer->commands);
    bw_encoder_free(&transfer->encoder);
    free(transfer);
}

void bw_hcq_transfer_destroy(struct bw_hcq_device *device)
{
    if (device->transfer)
        transfer_free(device->transfer);
    device->transfer = NULL;
}

static int transfer_create(struct bw_hcq_device *device, struct bw_transfer **out, struct bw_err *err)
{
    struct bw_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer)
        return bw_fail(err, -ENOMEM, "hcq", "staging buffers");
    transfer->device = device;
    /* The first copy queue, else the first queue that there is. */
    uint32_t number = device->compute_count < device->queue_count ? device->compute_count : 0;
    transfer->queue = &device->queues[number];
    uint64_t packet_bytes = device->device->caps.copy_bytes_max;
    assert(device->queue_count && packet_bytes > 0);
    transfer->chunk_bytes =
        packet_bytes < BW_HCQ_STAGING_BYTES / PACKETS_MAX ? packet_bytes * PACKETS_MAX : BW_HCQ_STAGING_BYTES;
    int rc = bw_block_create(device, SLOTS * transfer->chunk_bytes, BW_BUFFER_HOST, &transfer->staging, err);
    if (!rc)
        rc = bw_block_create(device, SLOTS * COMMAND_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED,
                             &transfer->commands, err);
    if (!rc && (!bw_block_map(transfer->staging) || !bw_block_map(transfer->commands)))
        rc = bw_fail(err, -ENOTSUP, "hcq", "host memory of %s has no CPU view", device->device->info.name);
    if (rc) {
        transfer_free(transfer);
        return rc;
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        transfer->slots[i].done = bw_hcq_queue_submitted(transfer->queue);
    *out = transfer;
    return 0;
}

/* Waits on the device, where it can, for what other queues may still do to the block; else here. In a turn.
 * *depends_on: for queues of which devices. */
static int waits_encode(struct bw_transfer *transfer, const struct bw_block *block, uint64_t *depends_on,
                        struct bw_err *err)
{
    struct bw_device *device = transfer->device->device;
    uint64_t devices = __atomic_load_n(&block->users, __ATOMIC_ACQUIRE);
    for (; devices; devices &= devices - 1) {
        struct bw_hcq_device *other =
            bw_hcq_device_at(transfer->device->ctx, (uint32_t)__builtin_ctzll(devices));
        if (!other || bw_hcq_device_failed(other))
            continue; /* what it was given is lost */
        for (uint32_t i = 0; i < other->queue_count; i++) {
            struct bw_hcq_queue *queue = &other->queues[i];
            if (queue == transfer->queue || bw_hcq_queue_idle(queue))
                continue;
            uint64_t address;
            if (!device->caps.device_wait ||
                bw_block_reach(other->signals, transfer->device, &address, NULL)) {
                int rc = bw_hcq_queue_wait(queue, bw_hcq_queue_submitted(queue), err);
                if (rc)
                    return rc;
                continue;
            }
            *depends_on |= 1ull << other->index;
            device->ops->encode_wait(transfer->queue->queue, &transfer->encoder,
                                     bw_operand_constant(address + queue->signal_offset),
                                     bw_operand_constant(bw_hcq_queue_submitted(queue).value));
        }
        int rc = bw_hcq_followed_wait(other, __atomic_load_n(&other->ctx->failed, __ATOMIC_ACQUIRE), err);
        if (rc)
            return rc;
    }
    return 0;
}

static int copies_encode(struct bw_transfer *transfer, uint64_t target, uint64_t source, uint64_t size_bytes)
{
    struct bw_queue *queue = transfer->queue->queue;
    while (size_bytes) {
        uint64_t done_bytes = 0;
        int rc = queue->device->ops->encode_copy(queue, &transfer->encoder, bw_operand_constant(target),
                                                 bw_operand_constant(source), size_bytes, &done_bytes);
        if (rc)
            return rc;
        assert(done_bytes > 0 && done_bytes <= size_bytes);
        target += done_bytes;
        source += done_bytes;
        size_bytes -= done_bytes;
    }
    return 0;
}

/* Encodes one slot's command buffer and rings. In a turn. */
static int slot_submit(struct bw_transfer *transfer, uint32_t index, const struct request *request,
                       uint64_t at, struct bw_err *err)
{
    struct bw_hcq_queue *queue = transfer->queue;
    const struct bw_driver_ops *ops = queue->owner->device->ops;
    struct bw_encoder *encoder = &transfer->encoder;
    struct slot *slot = &transfer->slots[index];
    uint64_t staging = transfer->staging->memory.address + slot->offset;
    uint64_t memory = request->block->memory.address + request->offset + at;
    encoder->count = encoder->patch_count = 0;
    uint64_t depends_on = 0;
    int rc = at == 0 ? waits_encode(transfer, request->block, &depends_on, err) : 0;
    if (!rc)
        rc = bw_hcq_queue_window(queue, 1, err);
    if (rc)
        return rc;
    struct bw_point base = bw_hcq_queue_reserve(queue, 1);
    slot->done = bw_point_after(base, 1);
    uint64_t signal = queue->owner->signals->memory.address + queue->signal_offset;
    if (ops->encode_begin)
        ops->encode_begin(queue->queue, encoder);
    ops->encode_barrier(queue->queue, encoder, BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE);
    rc = copies_encode(transfer, request->write ? memory : staging, request->write ? staging : memory,
                       slot->size_bytes);
    ops->encode_signal(queue->queue, encoder, bw_operand_constant(signal),
                       bw_operand_constant(slot->done.value), true);
    ops->encode_end(queue->queue, encoder);
    assert(encoder->count * sizeof(uint32_t) <= COMMAND_BYTES && encoder->patch_count == 0);
    if (rc || encoder->failed) {
        bw_hcq_queue_unreserve(queue, base);
        slot->done = base;
        return bw_fail(err, rc ? rc : encoder->failed, "hcq", "encoding a copy of %llu bytes",
                       (unsigned long long)slot->size_bytes);
    }
    memcpy((char *)bw_block_map(transfer->commands) + index * COMMAND_BYTES, encoder->words,
           encoder->count * sizeof(uint32_t));
    static const struct bw_hcq_label write_label = {"write to a buffer"}, read_label = {"read of a buffer"};
    bw_hcq_queue_depend(queue, depends_on, slot->done);
    bw_hcq_queue_remember(queue, slot->done, request->write ? &write_label : &read_label);
    rc = bw_hcq_queue_submit(queue, transfer->commands->memory.address + index * COMMAND_BYTES,
                             encoder->count, err);
    return rc ? rc : bw_hcq_queue_flush(queue, err);
}

/* Waits until the slot is free again; a read's bytes go to the caller. */
static int slot_finish(struct bw_transfer *transfer, uint32_t index, struct bw_err *err)
{
    struct slot *slot = &transfer->slots[index];
    int rc = bw_hcq_queue_wait(transfer->queue, slot->done, err);
    if (!rc && slot->current)
        rc = bw_hcq_loss_check(transfer->queue, slot->done, UINT64_MAX, err);
    slot->current = false;
    if (!rc && slot->caller)
        memcpy(slot->caller, (char *)bw_block_map(transfer->staging) + slot->offset, slot->size_bytes);
    slot->caller = NULL;
    return rc;
}

/* Which bytes go through the slot next. Those of a file keep their place within a block of the disk: see
 * mem/disk.h. */
static void slot_place(struct bw_transfer *transfer, uint32_t index, const struct request *request,
                       uint64_t at)
{
    struct slot *slot = &transfer->slots[index];
    uint64_t skew_bytes = bw_block_is_file(request->block) ? (request->offset + at) % BW_DISK_ALIGNMENT : 0;
    uint64_t left_bytes = request->size_bytes - at, room_bytes = transfer->chunk_bytes - skew_bytes;
    slot->offset = index * transfer->chunk_bytes + skew_bytes;
    slot->size_bytes = left_bytes < room_bytes ? left_bytes : room_bytes;
}

static int staged_run(struct bw_transfer *transfer, const struct request *request, struct bw_err *err)
{
    int rc = 0;
    uint32_t index = 0;
    for (uint64_t at = 0; at < request->size_bytes && !rc; index = (index + 1) % SLOTS) {
        struct slot *slot = &transfer->slots[index];
        rc = slot_finish(transfer, index, err);
        if (rc)
            break;
        slot_place(transfer, index, request, at);
        if (request->write)
            memcpy((char *)bw_block_map(transfer->staging) + slot->offset, request->data + at,
                   slot->size_bytes);
        bw_hcq_turn_take(transfer->device->ctx);
        rc = slot_submit(transfer, index, request, at, err);
        bw_hcq_turn_give(transfer->device->ctx);
        slot->caller = rc || request->write ? NULL : request->data + at;
        slot->current = true;
        at += slot->size_bytes;
    }
    for (uint32_t i = 0; i < SLOTS; i++, index = (index + 1) % SLOTS) { /* oldest first */
        int finish_rc = rc ? rc : slot_finish(transfer, index, err);
        transfer->slots[index].caller = NULL;
        transfer->slots[index].current = false;
        rc = finish_rc;
    }
    return rc;
}

static int staged(const struct request *request, struct bw_err *err)
{
    struct bw_hcq_device *device = request->block->owner;
    pthread_mutex_lock(&device->transfer_lock);
    int rc = device->transfer ? 0 : transfer_create(device, &device->transfer, err);
    if (!rc)
        rc = staged_run(device->transfer, request, err);
    pthread_mutex_unlock(&device->transfer_lock);
    return rc;
}

int bw_hcq_transfer(struct bw_block *block, uint64_t offset, void *data, uint64_t size_bytes, bool write,
                    struct bw_err *err)
{
    struct request request = {block, offset, data, size_bytes, write};
    char *base = bw_block_map(block);
    if (!base || block->memory.cpu.memory_type != BW_MEMORY_CACHED)
        return staged(&request, err);
    int rc = bw_hcq_devices_wait(block->owner->ctx, __atomic_load_n(&block->users, __ATOMIC_ACQUIRE), err);
    if (!rc)
        rc = bw_hcq_device_check(block->owner, err);
    if (rc)
        return rc;
    memcpy(write ? base + offset : data, write ? data : base + offset, size_bytes);
    return 0;
}
