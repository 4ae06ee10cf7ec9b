/* Profiles: timestamps of the last finished replay, on the host's clock.
 *
 * Device and host clock are laid beside each other once per device: a queue writes its clock while the host
 * looks at its own before and after; of a few tries the one with the narrowest window wins, and its middle is
 * taken. The rest is the device's tick rate. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/linked.h"

#define NS_PER_S 1000000000ull

enum {
    CLOCK_TRIES = 5,
    CLOCK_COMMAND_BYTES = 4096, /* a timestamp and a signal, and the stamp itself at the end */
};

static uint64_t ticks_to_ns(const struct bw_hcq_device *device, uint64_t ticks)
{
    uint64_t hz = device->device->caps.timestamp_hz;
    assert(hz > 0);
    return (uint64_t)((unsigned __int128)ticks * NS_PER_S / hz);
}

/* One stamp on the device's first queue. */
static int clock_try(struct bw_hcq_device *device, struct bw_block *block, struct bw_encoder *encoder,
                     uint64_t *window_ns, uint64_t *offset_ns, struct bw_err *err)
{
    struct bw_hcq_queue *queue = &device->queues[0];
    const struct bw_driver_ops *ops = device->device->ops;
    uint64_t stamp_offset = CLOCK_COMMAND_BYTES - sizeof(uint64_t);
    static const struct bw_hcq_label label = {"timestamp"};
    encoder->count = 0;
    bw_hcq_turn_take(device->ctx);
    int rc = bw_hcq_queue_window(queue, 1, err);
    if (!rc) {
        struct bw_point done = bw_point_after(bw_hcq_queue_reserve(queue, 1), 1);
        ops->encode_timestamp(queue->queue, encoder,
                              bw_operand_constant(block->memory.address + stamp_offset));
        ops->encode_signal(queue->queue, encoder,
                           bw_operand_constant(device->signals->memory.address + queue->signal_offset),
                           bw_operand_constant(done.value), true);
        ops->encode_end(queue->queue, encoder);
        assert(!encoder->failed && encoder->count * sizeof(uint32_t) <= stamp_offset);
        memcpy(bw_block_map(block), encoder->words, encoder->count * sizeof(uint32_t));
        bw_hcq_queue_remember(queue, done, &label);
        uint64_t begin_ns = device->sys->ops->clock_ns(device->sys);
        rc = bw_hcq_queue_submit(queue, block->memory.address, encoder->count, err);
        if (!rc)
            rc = bw_hcq_queue_flush(queue, err);
        if (!rc)
            rc = bw_hcq_queue_wait(queue, done, err);
        *window_ns = device->sys->ops->clock_ns(device->sys) - begin_ns;
        uint64_t stamp;
        memcpy(&stamp, (char *)bw_block_map(block) + stamp_offset, sizeof stamp);
        *offset_ns = begin_ns + *window_ns / 2 - ticks_to_ns(device, stamp);
    }
    bw_hcq_turn_give(device->ctx);
    return rc;
}

static int clock_align(struct bw_hcq_device *device, struct bw_err *err)
{
    struct bw_block *block;
    struct bw_encoder encoder = {0};
    uint64_t best_ns = UINT64_MAX;
    if (device->clock_known || device->queue_count == 0)
        return 0;
    int rc = bw_block_create(device, CLOCK_COMMAND_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &block, err);
    if (rc)
        return rc;
    rc = bw_hcq_devices_wait(device->ctx, 1ull << device->index, err); /* an idle device answers at once */
    for (int i = 0; i < CLOCK_TRIES && !rc; i++) {
        uint64_t window_ns, offset_ns;
        rc = clock_try(device, block, &encoder, &window_ns, &offset_ns, err);
        if (!rc && window_ns < best_ns) {
            best_ns = window_ns;
            device->clock_offset_ns = offset_ns;
        }
    }
    device->clock_known = rc == 0;
    bw_encoder_free(&encoder);
    bw_block_release(block);
    return rc;
}

int bw_profile_make(struct bw_linked_graph *linked, const struct bw_plan *plan, struct bw_encoded *encoded,
                    struct bw_err *err)
{
    size_t count = encoded->stamped.count;
    if (count == 0)
        return 0;
    linked->names = calloc(count, sizeof *linked->names);
    if (!linked->names || bw_vec_reserve(&linked->stamped, count))
        return bw_fail(err, -ENOMEM, "graph", "profile of %zu calls", count);
    for (size_t i = 0; i < count; i++) {
        const struct bw_call *call = &plan->graph->calls.data[encoded->stamped.data[i].call];
        snprintf(linked->names[i], sizeof linked->names[i], "%s",
                 call->kernel ? call->kernel->info.name : "copy");
        linked->stamped.data[linked->stamped.count++] = encoded->stamped.data[i];
    }
    int rc = 0;
    for (uint32_t i = 0; i < linked->device_count && !rc; i++) {
        if (linked->devices[i].memory)
            rc = clock_align(linked->devices[i].hcq, err);
    }
    return rc;
}

void bw_profile_free(struct bw_linked_graph *linked)
{
    bw_vec_free(&linked->stamped);
    free(linked->names);
    linked->names = NULL;
}

static uint64_t stamp_read(const struct bw_linked_device *device, uint32_t instance, uint32_t stamp)
{
    uint64_t ticks;
    memcpy(&ticks, device->words + instance * device->stride_words + device->stamp_word + stamp * 2ull,
           sizeof ticks);
    return ticks_to_ns(device->hcq, ticks) + device->hcq->clock_offset_ns;
}

static bool replay_finished(const struct bw_linked_graph *linked, uint32_t instance)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_point done = linked->done[(uint64_t)instance * linked->queue_count + i];
        if (linked->queues[i].signal_count &&
            !bw_point_reached(bw_hcq_queue_now(linked->queues[i].hcq), done))
            return false;
    }
    return true;
}

uint32_t bw_linked_graph_profile(struct bw_linked_graph *linked, struct bw_call_profile *calls,
                                 uint32_t capacity)
{
    uint64_t ticket = linked->replay_count;
    uint64_t oldest = ticket > linked->instance_count ? ticket - linked->instance_count : 0;
    while (ticket > oldest && !replay_finished(linked, (uint32_t)((ticket - 1) % linked->instance_count)))
        ticket--;
    if (ticket == oldest)
        return 0;
    uint32_t instance = (uint32_t)((ticket - 1) % linked->instance_count);
    for (uint32_t i = 0; i < linked->stamped.count && i < capacity; i++) {
        const struct bw_encoded_call *stamped = &linked->stamped.data[i];
        const struct bw_linked_queue *queue = &linked->queues[stamped->queue];
        const struct bw_linked_device *device = &linked->devices[queue->device];
        calls[i] = (struct bw_call_profile){.name = linked->names[i],
                                            .device = device->hcq->device->info.name,
                                            .queue = queue->hcq->number,
                                            .begin_ns = stamp_read(device, instance, stamped->stamp),
                                            .end_ns = stamp_read(device, instance, stamped->stamp + 1)};
    }
    return (uint32_t)linked->stamped.count;
}
