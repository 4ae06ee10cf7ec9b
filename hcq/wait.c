/* Host waits. Progress is watched, not just time: the deadline counts from the last thing that moved. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"

enum {
    SPINS = 2000, /* about 60 us: longer than most replays, shorter than a time slice */
    SLICE_FIRST_NS = 50000,
    SLICE_MAX_NS = 5000000,     /* how late a fault may be seen, and how late a lost interrupt */
    RING_FULL_SLEEP_NS = 20000, /* a command buffer's run; the ring is full, so latency does not matter */
};

/* Changes whenever a signal or a progress counter of the devices does. */
static uint64_t progress_of(const struct bw_ctx *ctx, uint64_t mask)
{
    uint64_t sum = 0;
    for (; mask; mask &= mask - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(ctx, (uint32_t)__builtin_ctzll(mask));
        for (uint32_t i = 0; device && i < device->queue_count; i++) {
            struct bw_hcq_queue *queue = &device->queues[i];
            sum = sum * 0x100000001b3ull +
                  bw_hcq_queue_now(queue).value; /* FNV-1a's prime: order matters, little cancels */
            struct bw_queue *made = bw_hcq_queue_made(queue);
            sum = sum * 0x100000001b3ull + (made ? device->device->ops->queue_progress(made) : 0);
        }
    }
    return sum;
}

/* Asks every device that a wait for `owner` depends on. What is broken fails, and whoever waits for it goes
 * on; only when it is the owner itself the wait is over. */
static int faults_look(struct bw_hcq_device *owner, uint64_t mask, struct bw_err *failure)
{
    for (; mask; mask &= mask - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(owner->ctx, (uint32_t)__builtin_ctzll(mask));
        struct bw_err fault;
        if (device && bw_hcq_device_failed(device))
            bw_hcq_timelines_settle(device);
        else if (device && device->device->ops->query_fault(device->device, &fault))
            (void)bw_hcq_device_fail(device, &fault);
    }
    return bw_hcq_device_check(owner, failure);
}

/* A queue that stands, and what is known about it. */
struct standing {
    struct bw_hcq_queue *queue;
    struct bw_queue_view view;
};

static void look(struct bw_hcq_queue *queue, struct standing *standing)
{
    const struct bw_driver_ops *ops = queue->owner->device->ops;
    *standing = (struct standing){.queue = queue};
    if (!ops->queue_look || ops->queue_look(queue->queue, &standing->view))
        standing->view = (struct bw_queue_view){0};
}

/* Whom to blame for a queue that stands: the queue itself, unless it waits for another one and one of those
 * stands that waits for nobody. */
static void culprit_find(const struct bw_ctx *ctx, uint64_t mask, struct bw_hcq_queue *queue,
                         struct standing *culprit)
{
    look(queue, culprit);
    for (; mask && culprit->view.waits; mask &= mask - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(ctx, (uint32_t)__builtin_ctzll(mask));
        if (!device || bw_hcq_device_failed(device))
            continue;
        for (uint32_t i = 0; i < device->queue_count; i++) {
            struct standing other;
            if (&device->queues[i] == queue || bw_hcq_queue_idle(&device->queues[i]))
                continue;
            look(&device->queues[i], &other);
            if (!other.view.waits) {
                *culprit = other;
                return;
            }
        }
    }
}

static void culprit_fail(const struct bw_ctx *ctx, uint64_t mask, struct bw_hcq_queue *queue,
                         const char *wanted, uint64_t elapsed_ns, struct bw_err *failure)
{
    struct standing culprit;
    culprit_find(ctx, mask, queue, &culprit);
    struct bw_hcq_queue *stood = culprit.queue;
    const char *text = culprit.view.text;
    bw_fail(failure, -ETIMEDOUT, "hcq", "%s: %s", stood->label, bw_hcq_queue_doing(stood));
    bw_err_device(failure, stood->owner->device->info.name);
    bw_err_expected(failure, "%s", wanted);
    if (stood != queue)
        bw_err_expected(failure, "signal 0x%llx", (unsigned long long)bw_hcq_queue_submitted(stood).value);
    bw_err_observed(failure, "signal 0x%llx, nothing moves any more",
                    (unsigned long long)bw_hcq_queue_now(stood).value);
    failure->elapsed_ns = elapsed_ns;
    bw_err_hint(failure, "%s", text);
    if (stood != queue)
        bw_err_hint(failure, "%s%swaited for by %s of %s: %s", text, text[0] ? "; " : "", queue->label,
                    queue->owner->device->info.name, bw_hcq_queue_doing(queue));
    (void)bw_hcq_device_fail(stood->owner, failure);
}

uint64_t bw_hcq_dependencies(const struct bw_hcq_device *device)
{
    uint64_t mask = 1ull << device->index, looked = 0;
    while (mask & ~looked) {
        uint32_t index = (uint32_t)__builtin_ctzll(mask & ~looked);
        const struct bw_hcq_device *at = bw_hcq_device_at(device->ctx, index);
        looked |= 1ull << index;
        for (uint32_t i = 0; at && i < at->queue_count; i++) {
            const struct bw_hcq_queue *queue = &at->queues[i];
            struct bw_point until = {__atomic_load_n(&queue->depends_until.value, __ATOMIC_ACQUIRE)};
            if (!bw_point_reached(bw_hcq_queue_now(queue), until))
                mask |= __atomic_load_n(&queue->depends_on, __ATOMIC_ACQUIRE);
        }
    }
    return mask;
}

/* What a wait for a queue watches. */
struct watch {
    uint64_t mask; /* devices that it may depend on */
    uint64_t progress, moved_ns, now_ns;
};

static struct watch watch_begin(const struct bw_hcq_queue *queue)
{
    struct bw_hcq_device *owner = queue->owner;
    struct watch watch = {.mask = bw_hcq_dependencies(owner)};
    watch.moved_ns = watch.now_ns = owner->sys->ops->clock_ns(owner->sys);
    watch.progress = progress_of(owner->ctx, watch.mask);
    return watch;
}

/* Whether something has moved within the deadline. */
static bool watch_goes_on(struct watch *watch, const struct bw_hcq_queue *queue)
{
    struct bw_hcq_device *owner = queue->owner;
    watch->now_ns = owner->sys->ops->clock_ns(owner->sys);
    uint64_t progress = progress_of(owner->ctx, watch->mask);
    if (progress != watch->progress)
        watch->moved_ns = watch->now_ns;
    watch->progress = progress;
    return watch->now_ns - watch->moved_ns < owner->ctx->config.wait_ns;
}

/* The device behind whose work the kernel holds the queue back, now that it has failed; NULL: none. */
static struct bw_hcq_device *holder_find(const struct watch *watch, struct bw_hcq_queue *queue)
{
    const struct bw_hcq_device *owner = queue->owner;
    struct standing standing;
    uint64_t failed = __atomic_load_n(&owner->ctx->failed, __ATOMIC_ACQUIRE) & watch->mask;
    look(queue, &standing);
    for (; failed && standing.view.waits && owner->device->caps.submit_wait; failed &= failed - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(owner->ctx, (uint32_t)__builtin_ctzll(failed));
        if (device && device != owner && device->device->caps.submit_wait)
            return device;
    }
    return NULL;
}

/* Nothing has moved for the deadline. When another device is to blame, the wait begins anew without it; where
 * the kernel makes the queue wait for that one, nothing will move until it is reset, and the error is its. */
static int watch_fails(struct watch *watch, struct bw_hcq_queue *queue, const char *wanted,
                       struct bw_err *failure)
{
    struct bw_hcq_device *owner = queue->owner, *holder = holder_find(watch, queue);
    if (!holder) {
        culprit_fail(owner->ctx, watch->mask, queue, wanted, watch->now_ns - watch->moved_ns, failure);
        holder = holder_find(watch, queue);
    }
    watch->moved_ns = watch->now_ns;
    return bw_hcq_device_check(holder ? holder : owner, failure);
}

static void slice_sleep(struct bw_hcq_device *device, uint64_t slice_ns)
{
    const struct bw_driver_ops *ops = device->device->ops;
    if (!ops->wait_interrupt || ops->wait_interrupt(device->device, slice_ns) < 0)
        device->sys->ops->sleep_ns(device->sys, slice_ns);
}

static int wait_slowly(struct bw_hcq_queue *queue, struct bw_point point, struct bw_err *failure)
{
    struct bw_hcq_device *owner = queue->owner;
    struct watch watch = watch_begin(queue);
    uint64_t slice_ns = SLICE_FIRST_NS;
    char wanted[32];
    int rc;
    snprintf(wanted, sizeof wanted, "signal 0x%llx", (unsigned long long)point.value);
    do {
        slice_sleep(owner, slice_ns);
        slice_ns = slice_ns * 2 < SLICE_MAX_NS ? slice_ns * 2 : SLICE_MAX_NS;
        if (bw_point_reached(bw_hcq_queue_now(queue), point))
            return bw_hcq_device_check(owner, failure);
        rc = faults_look(owner, watch.mask, failure);
        if (!rc && !watch_goes_on(&watch, queue))
            rc = watch_fails(&watch, queue, wanted, failure);
    } while (!rc);
    return rc;
}

int bw_hcq_queue_refused(struct bw_hcq_queue *queue, int code, struct bw_err *failure)
{
    struct bw_hcq_device *owner = queue->owner;
    int rc = faults_look(owner, 1ull << owner->index, failure); /* refused because of what happened before? */
    if (rc)
        return rc;
    bw_fail(failure, code, "hcq", "submitting to %s", queue->label);
    return bw_hcq_device_fail(owner, failure);
}

int bw_hcq_queue_submit_slowly(struct bw_hcq_queue *queue, uint64_t address, uint32_t word_count,
                               struct bw_err *failure)
{
    struct bw_hcq_device *owner = queue->owner;
    struct watch watch = watch_begin(queue);
    int rc = bw_hcq_queue_flush(queue, failure); /* what fills the ring has to be known to run */
    while (!rc) {
        rc = owner->device->ops->submit(queue->queue, address, word_count);
        if (rc == 0)
            return 0;
        if (rc != -EAGAIN)
            return bw_hcq_queue_refused(queue, rc, failure);
        rc = faults_look(owner, watch.mask, failure);
        owner->sys->ops->sleep_ns(owner->sys, RING_FULL_SLEEP_NS);
        if (!rc && !watch_goes_on(&watch, queue))
            rc = watch_fails(&watch, queue, "room for a command buffer in a full ring", failure);
    }
    return rc;
}

int bw_hcq_queue_wait(struct bw_hcq_queue *queue, struct bw_point point, struct bw_err *err)
{
    for (uint32_t spin = 0; spin < SPINS; spin++) {
        if (bw_point_reached(bw_hcq_queue_now(queue), point))
            return bw_hcq_device_check(queue->owner, err); /* it may have been settled */
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    struct bw_err failure;
    int rc = bw_ctx_forked(queue->owner->ctx) ? bw_hcq_device_check(queue->owner, &failure)
                                              : wait_slowly(queue, point, &failure);
    if (rc && err)
        *err = failure;
    return rc;
}

static int device_wait(struct bw_hcq_device *device, uint64_t failed_before, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < device->queue_count && !rc; i++) {
        struct bw_hcq_queue *queue = &device->queues[i];
        struct bw_point point = bw_hcq_queue_submitted(queue);
        rc = bw_hcq_queue_wait(queue, point, err);
        if (!rc)
            rc = bw_hcq_loss_check(queue, point, ~failed_before, err);
    }
    return rc ? rc : bw_hcq_followed_wait(device, failed_before, err);
}

int bw_hcq_devices_wait(struct bw_ctx *ctx, uint64_t mask, struct bw_err *err)
{
    uint64_t failed_before = __atomic_load_n(&ctx->failed, __ATOMIC_ACQUIRE);
    int first_rc = 0;
    for (mask &= ~failed_before; mask; mask &= mask - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(ctx, (uint32_t)__builtin_ctzll(mask));
        int rc = device ? device_wait(device, failed_before, first_rc ? NULL : err) : 0;
        first_rc = first_rc ? first_rc : rc;
    }
    return first_rc;
}
