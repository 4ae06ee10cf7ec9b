/* Queues and their timelines: reserving points, ringing, remembering. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <bellwire/mock.h>

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
    __atomic_store_n(&queue->signal, word, __ATOMIC_RELEASE);
    queue->signal_offset = offset;
    __atomic_store_n(&queue->submitted.value, first.value, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->depends_until.value, first.value, __ATOMIC_RELEASE);
}

static void queue_plan(struct bw_hcq_device *device, enum bw_queue_kind kind, uint32_t index)
{
    struct bw_hcq_queue *queue = &device->queues[device->queue_count];
    queue->owner = device;
    queue->kind = kind;
    queue->index = index;
    queue->number = device->queue_count++;
    snprintf(queue->label, sizeof queue->label, "%s queue %u", kind == BW_QUEUE_COMPUTE ? "compute" : "copy",
             index);
    slot_enter(queue, 0, (struct bw_point){device->ctx->config.timeline_start});
}

/* A mock knows why, where a kernel driver has a number. */
static void mock_hint(const struct bw_hcq_device *device, struct bw_err *err)
{
    static const char call[] = "CREATE_QUEUE: ";
    char why[sizeof err->hint] = "";
    if (!device->machine || !err)
        return;
    bw_mock_last_error(bw_machine_sys(device->machine), why, sizeof why);
    if (!strncmp(why, call, sizeof call - 1))
        bw_err_hint(err, "%s", why + sizeof call - 1);
}

static int queue_make(struct bw_hcq_queue *queue, struct bw_err *err)
{
    struct bw_device *device = queue->owner->device;
    struct bw_queue *made = NULL;
    int rc = device->ops->queue_create(device, queue->kind, queue->index, &made, err);
    if (!rc) {
        __atomic_store_n(&queue->queue, made, __ATOMIC_RELEASE);
        __atomic_fetch_add(&queue->owner->ctx->queues_epoch, 1, __ATOMIC_RELEASE);
    } else {
        mock_hint(queue->owner, err);
    }
    return rc;
}

bool bw_hcq_queue_usable(struct bw_hcq_queue *queue)
{
    struct bw_hcq_device *device = queue->owner;
    if (bw_hcq_queue_made(queue))
        return true;
    pthread_mutex_lock(&device->lock);
    if (!queue->queue && !queue->refused && queue_make(queue, NULL))
        __atomic_store_n(&queue->refused, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&device->lock);
    return bw_hcq_queue_made(queue) != NULL;
}

/* Copy engines are shared with other processes: where all are taken, compute queues copy. */
static int first_queues_make(struct bw_hcq_device *device, struct bw_err *err)
{
    int rc = device->compute_count ? queue_make(&device->queues[0], err) : 0;
    if (rc || device->compute_count == device->queue_count)
        return rc;
    rc = queue_make(&device->queues[device->compute_count], err);
    if (rc == -ENOMEM && device->compute_count && device->device->caps.compute_copies) {
        device->queue_count = device->compute_count;
        rc = 0;
    }
    return rc;
}

int bw_hcq_queues_create(struct bw_hcq_device *device, struct bw_err *err)
{
    const struct bw_device_caps *caps = &device->device->caps;
    uint64_t signal_bytes = (uint64_t)BW_HCQ_QUEUES_MAX * BW_HCQ_SIGNAL_SLOTS * BW_HCQ_SIGNAL_BYTES;
    assert(caps->compute_queues + caps->copy_queues <= BW_HCQ_QUEUES_MAX);
    assert(caps->xgmi_copy_queues <= caps->copy_queues);
    int rc =
        bw_block_create(device, signal_bytes, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &device->signals, err);
    if (rc)
        return rc;
    if (!bw_block_map(device->signals))
        return bw_fail(err, -ENOTSUP, "hcq", "signal memory of %s has no CPU view",
                       device->device->info.name);
    for (uint32_t i = 0; i < caps->compute_queues; i++)
        queue_plan(device, BW_QUEUE_COMPUTE, i);
    device->compute_count = device->queue_count;
    for (uint32_t i = 0; i < caps->copy_queues; i++)
        queue_plan(device, BW_QUEUE_COPY, i);
    return first_queues_make(device, err);
}

void bw_hcq_queues_stop(struct bw_hcq_device *device)
{
    for (uint32_t i = device->queue_count; i-- > 0;) {
        struct bw_hcq_queue *queue = &device->queues[i];
        if (queue->queue)
            device->device->ops->queue_destroy(queue->queue);
        __atomic_store_n(&queue->queue, NULL, __ATOMIC_RELEASE);
    }
}

void bw_hcq_queues_forget(struct bw_hcq_device *device)
{
    device->queue_count = 0;
    bw_block_release(device->signals);
    device->signals = NULL;
}

/* The other slot is free: everything that ever used it was waited for at the last change. */
static int queue_roll(struct bw_hcq_queue *queue, struct bw_err *err)
{
    struct bw_ctx *ctx = queue->owner->ctx;
    /* Whoever waits for this queue has passed its wait, too, or is reset before it is used again. */
    (void)bw_hcq_devices_wait(ctx, UINT64_MAX, NULL);
    int rc = bw_hcq_device_check(queue->owner, err);
    if (rc)
        return rc;
    slot_enter(queue, (queue->slot + 1) % BW_HCQ_SIGNAL_SLOTS,
               bw_point_window(bw_hcq_queue_submitted(queue)));
    ctx->signal_epoch++;
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

void bw_hcq_queue_depend(struct bw_hcq_queue *queue, uint64_t devices, struct bw_point last)
{
    devices &= ~(1ull << queue->owner->index);
    if (!devices)
        return;
    bool over = bw_point_reached(bw_hcq_queue_now(queue), queue->depends_until);
    __atomic_store_n(&queue->depends_on, over ? devices : queue->depends_on | devices, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->depends_until.value, last.value, __ATOMIC_RELEASE);
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

int bw_hcq_queue_flush(struct bw_hcq_queue *queue, struct bw_err *err)
{
    const struct bw_driver_ops *ops = queue->owner->device->ops;
    struct bw_err failure;
    int rc = ops->flush ? ops->flush(queue->queue) : 0;
    if (rc)
        rc = bw_hcq_queue_refused(queue, rc, &failure);
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
