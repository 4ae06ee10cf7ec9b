/* What is lost when a device fails. Its work that was not done is; so is what other queues did not have done
 * while they waited for it, or had queued behind that: it may have read what was never written. All of it
 * goes on, since other devices must, but nobody is told that it was well. */
#include <errno.h>
#include <string.h>

#include "hcq/linked.h"

/* Whether what the queue did up to the point was not done when the device failed, which stopped with all that
 * it has been given since. */
static bool point_undone(const struct bw_hcq_device *failed, const struct bw_hcq_queue *queue,
                         struct bw_point point)
{
    const struct bw_hcq_undone *undone = &failed->undone[queue->owner->index][queue->number];
    return !bw_point_reached(undone->done, point) &&
           (queue->owner == failed || bw_point_reached(undone->given, point));
}

int bw_hcq_loss_check(const struct bw_hcq_queue *queue, struct bw_point point, uint64_t failed,
                      struct bw_err *err)
{
    const struct bw_ctx *ctx = queue->owner->ctx;
    for (failed &= __atomic_load_n(&ctx->failed, __ATOMIC_ACQUIRE); failed; failed &= failed - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(ctx, (uint32_t)__builtin_ctzll(failed));
        if (device && device->dependents >> queue->owner->index & 1 && point_undone(device, queue, point))
            return bw_hcq_device_check(device, err);
    }
    return 0;
}

/* ---- of a linked graph ---- */

void bw_losses_register(struct bw_linked_graph *linked)
{
    struct bw_ctx *ctx = linked->ctx;
    pthread_mutex_lock(&ctx->lock);
    linked->next = ctx->linked;
    linked->link = &ctx->linked;
    if (linked->next)
        linked->next->link = &linked->next;
    ctx->linked = linked;
    pthread_mutex_unlock(&ctx->lock);
    linked->registered = true;
}

void bw_losses_unregister(struct bw_linked_graph *linked)
{
    if (!linked->registered || bw_ctx_forked(linked->ctx))
        return;
    pthread_mutex_lock(&linked->ctx->lock);
    *linked->link = linked->next;
    if (linked->next)
        linked->next->link = linked->link;
    pthread_mutex_unlock(&linked->ctx->lock);
    linked->registered = false;
}

/* Whether the instance's last replay was lost with the device: it touched it, or was on a device that waited
 * for it, if only for another replay's sake, which its own may have been queued behind. */
static bool instance_lost(const struct bw_linked_graph *linked, uint32_t instance,
                          const struct bw_hcq_device *failed)
{
    const struct bw_point *done = bw_instance_done(linked, instance);
    bool touches = linked->touched[instance] >> failed->index & 1, lost = false;
    for (uint32_t i = 0; i < linked->waited_count; i++) {
        const struct bw_hcq_queue *queue = linked->waited[i];
        if (queue && (touches || failed->dependents >> queue->owner->index & 1))
            lost |= point_undone(failed, queue, done[i]);
    }
    return lost;
}

static void loss_record(struct bw_linked_graph *linked, const struct bw_linked_loss *loss)
{
    if (linked->loss_count == BW_LINK_LOSSES_MAX) {
        linked->forgotten = linked->losses[0].last;
        linked->loss_count--;
        memmove(linked->losses, linked->losses + 1, linked->loss_count * sizeof *linked->losses);
    }
    linked->losses[linked->loss_count++] = *loss;
}

/* Of the replays that still have their instances; those before are done. */
static void losses_find(struct bw_linked_graph *linked, const struct bw_hcq_device *failed)
{
    struct bw_linked_loss loss = {.last = linked->replay_count, .why = failed->error};
    for (uint64_t i = 0; i < linked->instance_count && i < linked->replay_count; i++) {
        uint32_t instance = (uint32_t)((linked->replay_count - 1 - i) % linked->instance_count);
        if (instance_lost(linked, instance, failed))
            loss.tickets |= 1ull << i;
    }
    if (loss.tickets)
        loss_record(linked, &loss);
}

void bw_hcq_losses_note(const struct bw_hcq_device *device)
{
    pthread_mutex_lock(&device->ctx->lock);
    for (struct bw_linked_graph *linked = device->ctx->linked; linked; linked = linked->next) {
        if (__atomic_load_n(&linked->touched_ever, __ATOMIC_ACQUIRE) &
            (1ull << device->index | device->dependents))
            losses_find(linked, device); /* others may be in use */
    }
    pthread_mutex_unlock(&device->ctx->lock);
}

int bw_losses_check(const struct bw_linked_graph *linked, uint64_t ticket, struct bw_err *err)
{
    if (ticket <= linked->forgotten) {
        bw_fail(err, -ECANCELED, "graph", "replay %llu may be lost", (unsigned long long)ticket);
        bw_err_hint(err, "devices failed more than %d times since", BW_LINK_LOSSES_MAX);
        return -ECANCELED;
    }
    for (uint32_t i = 0; i < linked->loss_count; i++) {
        const struct bw_linked_loss *loss = &linked->losses[i];
        if (ticket > loss->last || loss->last - ticket >= BW_LINK_INSTANCES_MAX ||
            !(loss->tickets >> (loss->last - ticket) & 1))
            continue;
        bw_fail(err, -ECANCELED, "graph", "replay %llu was lost: %s", (unsigned long long)ticket,
                loss->why.what);
        bw_err_device(err, loss->why.device);
        bw_err_hint(err, "%s", loss->why.hint);
        return -ECANCELED;
    }
    return 0;
}

int bw_losses_look(const struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    const struct bw_ctx *ctx = linked->ctx;
    for (uint64_t failed = __atomic_load_n(&ctx->failed, __ATOMIC_ACQUIRE); failed; failed &= failed - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(ctx, (uint32_t)__builtin_ctzll(failed));
        if (device && instance_lost(linked, instance, device))
            return bw_hcq_device_check(device, err);
    }
    return 0;
}
