/* Queues and their timelines: reserving points, ringing, remembering. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"

static void slot_enter(struct bw_hcq_queue *queue, uint32_t slot, struct bw_point first)
{
    struct bw_block *signals = queue->owner->signals;
    uint64_t offset = ((uint64_t)queue->number * BW_HCQ_SIGNAL_SLOTS + slot) * BW_HCQ_SIGNAL_BYTES;
    assert(offset + sizeof(uint64_t) <= signals->size_bytes);
    volatile uint64_t *word = (volatile uint64_t *)((volatile char *)signals->memory.cpu.base + offset);
    __atomic_store_n(word, first.value, __ATOMIC_RELEASE);
    queue->slot = slot;
    queue->signal = word;
    queue->signal_offset = offset;
    __atomic_store_n(&queue->submitted.value, first.value, __ATOMIC_RELEASE);
}

static int queue_create(struct bw_hcq_device *device, enum bw_queue_kind kind, uint32_t index,
                        struct bw_err *err)
{
    struct bw_hcq_queue *queue = &device->queues[device->queue_count];
    queue->owner = device;
    queue->number = device->queue_count;
    snprintf(queue->label, sizeof queue->label, "%s queue %u", kind == BW_QUEUE_COMPUTE ? "compute" : "copy",
             index);
    int rc = device->device->ops->queue_create(device->device, kind, index, &queue->queue, err);
    if (rc)
        return rc;
    slot_enter(queue, 0, (struct bw_point){device->ctx->config.timeline_start});
    device->queue_count++;
    return 0;
}

/* One queue of each kind is what a graph is spread over today; a device that offers more gets its first of
 * each. */
int bw_hcq_queues_create(struct bw_hcq_device *device, struct bw_err *err)
{
    const struct bw_device_caps *caps = &device->device->caps;
    uint64_t signal_bytes = (uint64_t)BW_HCQ_QUEUES_MAX * BW_HCQ_SIGNAL_SLOTS * BW_HCQ_SIGNAL_BYTES;
    int rc =
        bw_block_create(device, signal_bytes, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &device->signals, err);
    if (rc)
        return rc;
    if (!bw_block_map(device->signals))
        return bw_fail(err, -ENOTSUP, "hcq", "signal memory of %s has no CPU view",
                       device->device->info.name);
    if (caps->compute_queues)
        rc = queue_create(device, BW_QUEUE_COMPUTE, 0, err);
    device->compute_count = device->queue_count;
    if (!rc && caps->copy_queues)
        rc = queue_create(device, BW_QUEUE_COPY, 0, err);
    return rc;
}

void bw_hcq_queues_destroy(struct bw_hcq_device *device)
{
    while (device->queue_count) {
        struct bw_hcq_queue *queue = &device->queues[--device->queue_count];
        device->device->ops->queue_destroy(queue->queue);
    }
    bw_block_release(device->signals);
    device->signals = NULL;
}

/* The other slot is free: everything that ever used it was waited for at the last change. */
static int queue_roll(struct bw_hcq_queue *queue, struct bw_err *err)
{
    struct bw_ctx *ctx = queue->owner->ctx;
    int rc =
        bw_hcq_devices_wait(ctx, UINT64_MAX, err); /* whoever waits for this queue has passed its wait, too */
    if (rc)
        return rc;
    slot_enter(queue, (queue->slot + 1) % BW_HCQ_SIGNAL_SLOTS,
               bw_point_window(bw_hcq_queue_submitted(queue)));
    return 0;
}

int bw_hcq_queue_window(struct bw_hcq_queue *queue, uint64_t count, struct bw_err *err)
{
    assert(count > 0 && count < UINT32_MAX / 2);
    return bw_point_window_holds(bw_hcq_queue_submitted(queue), count) ? 0 : queue_roll(queue, err);
}

struct bw_point bw_hcq_queue_reserve(struct bw_hcq_queue *queue, uint64_t count)
{
    struct bw_point base = bw_hcq_queue_submitted(queue);
    assert(bw_point_window_holds(base, count));
    __atomic_store_n(&queue->submitted.value, bw_point_after(base, count).value, __ATOMIC_RELEASE);
    return base;
}

void bw_hcq_queue_unreserve(struct bw_hcq_queue *queue, struct bw_point base)
{
    assert(bw_point_reached(bw_hcq_queue_submitted(queue), base));
    __atomic_store_n(&queue->submitted.value, base.value, __ATOMIC_RELEASE);
}

int bw_hcq_queue_submit(struct bw_hcq_queue *queue, uint64_t address, uint32_t word_count, struct bw_err *err)
{
    struct bw_err failure;
    assert(word_count > 0);
    int rc = queue->owner->device->ops->submit(queue->queue, address, word_count);
    if (rc)
        rc = bw_hcq_queue_submit_slowly(queue, address, word_count, &failure);
    if (rc && err)
        *err = failure;
    return rc;
}

void bw_hcq_queue_remember(struct bw_hcq_queue *queue, struct bw_point last, const struct bw_hcq_label *label)
{
    struct bw_hcq_submission *recent = &queue->recent[queue->recent_count++ % BW_HCQ_RECENT_COUNT];
    recent->last = last;
    recent->label = *label;
}

const char *bw_hcq_queue_doing(const struct bw_hcq_queue *queue)
{
    struct bw_point now = bw_hcq_queue_now(queue);
    uint64_t kept = queue->recent_count < BW_HCQ_RECENT_COUNT ? queue->recent_count : BW_HCQ_RECENT_COUNT;
    const char *doing = "nothing";
    for (uint64_t i = queue->recent_count - kept; i < queue->recent_count; i++) {
        const struct bw_hcq_submission *recent = &queue->recent[i % BW_HCQ_RECENT_COUNT];
        doing = recent->label.text;
        if (!bw_point_reached(now, recent->last))
            break;
    }
    return doing;
}
