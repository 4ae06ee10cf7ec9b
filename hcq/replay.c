/* Replaying a linked graph: take a free instance, scatter, ring. No allocation, no system call, no lock where
 * the device has user-space doorbells and an instance is free. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/linked.h"

/* Every queue of the graph has passed what the instance was last used for. */
static int instance_wait(const struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    const struct bw_point *done = bw_instance_done(linked, instance);
    for (uint32_t i = 0; i < linked->waited_count; i++) {
        struct bw_hcq_queue *queue = linked->waited[i];
        if (!queue || bw_point_reached(bw_hcq_queue_now(queue), done[i]))
            continue;
        int rc = bw_hcq_queue_wait(queue, done[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int devices_check(const struct bw_linked_graph *linked, uint64_t devices, struct bw_err *err)
{
    int rc = 0;
    for (; devices && !rc; devices &= devices - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(linked->ctx, (uint32_t)__builtin_ctzll(devices));
        rc = device ? bw_hcq_device_check(device, err) : 0;
    }
    return rc;
}

static int variable_refuse(uint32_t index, const struct bw_linked_variable *variable, uint32_t value,
                           struct bw_err *err)
{
    bw_fail(err, -EINVAL, "graph", "replay variable %u, a number of workgroups", index);
    bw_err_expected(err, "1 to %u", variable->value_max);
    bw_err_observed(err, "%u", value);
    return -EINVAL;
}

static int variables_take(struct bw_linked_graph *linked, const struct bw_replay *replay, struct bw_err *err)
{
    uint32_t given = replay ? replay->variable_count : 0;
    if (given != linked->variable_count) {
        bw_fail(err, -EINVAL, "graph", "replay variables");
        bw_err_expected(err, "%u", linked->variable_count);
        bw_err_observed(err, "%u", given);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < given; i++) {
        const struct bw_linked_variable *variable = &linked->variables[i];
        uint32_t value = replay->variables[i];
        if (variable->is_dimension && (value == 0 || value > variable->value_max))
            return variable_refuse(i, variable, value, err);
        if (variable->slot != BW_PLAN_NONE)
            linked->table[variable->slot] = value;
    }
    return 0;
}

static uint32_t *instance_words(const struct bw_linked_device *device, uint32_t instance)
{
    return device->words + instance * device->stride_words;
}

/* Makes sure that every queue's points of this replay fit its signal slot. May drain the context, once in
 * 2^32 points. */
static int windows_ensure(const struct bw_linked_graph *linked, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < linked->queue_count && !rc; i++) {
        const struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->signal_count)
            rc = bw_hcq_queue_window(queue->hcq, queue->signal_count, err);
    }
    return rc;
}

/* Signal addresses change when a timeline moves to its other slot, once in 2^32 points. */
static int signals_refresh(struct bw_linked_graph *linked, struct bw_err *err)
{
    if (linked->signal_epoch == linked->ctx->signal_epoch)
        return 0;
    for (size_t i = 0; i < linked->signals.count; i++) {
        const struct bw_linked_signal *signal = &linked->signals.data[i];
        const struct bw_hcq_queue *queue = signal->hcq;
        uint64_t address = queue->owner->signals->memory.address;
        if (linked->devices[signal->device].hcq != queue->owner) {
            int rc =
                bw_block_reach(queue->owner->signals, linked->devices[signal->device].hcq, &address, err);
            if (rc)
                return rc;
        }
        linked->table[signal->slot] = address + queue->signal_offset;
    }
    linked->signal_epoch = linked->ctx->signal_epoch;
    return 0;
}

static void signals_scatter(struct bw_linked_graph *linked, uint32_t instance)
{
    if (linked->signal_epochs[instance] == linked->signal_epoch)
        return;
    for (uint32_t i = 0; i < linked->device_count; i++) {
        const struct bw_linked_device *device = &linked->devices[i];
        const struct bw_scatter_range all = {.wide_end = (uint32_t)device->rare.wide.count,
                                             .field_end = (uint32_t)device->rare.fields.count};
        if (device->memory)
            bw_scatter_run(&device->rare, &all, linked->table, instance_words(device, instance));
    }
    linked->signal_epochs[instance] = linked->signal_epoch;
}

/* Before this replay's own points are reserved: where everybody stands. */
static void preceding_fill(struct bw_linked_graph *linked)
{
    for (size_t i = 0; i < linked->preceding.count; i++)
        linked->table[linked->preceding.data[i].slot] =
            bw_hcq_queue_submitted(linked->preceding.data[i].hcq).value;
}

static void points_reserve(struct bw_linked_graph *linked)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->signal_count == 0)
            continue;
        queue->base = bw_hcq_queue_reserve(queue->hcq, queue->signal_count);
        if (queue->base_slot != BW_PLAN_NONE)
            linked->table[queue->base_slot] = queue->base.value;
    }
}

static int step_submit(struct bw_linked_graph *linked, const struct bw_step *step, uint32_t instance,
                       struct bw_err *err)
{
    const struct bw_linked_queue *queue = &linked->queues[step->queue];
    const struct bw_linked_device *device = &linked->devices[queue->device];
    uint64_t word = instance * device->stride_words + queue->word + step->word;
    int rc =
        bw_hcq_queue_submit(queue->hcq, device->address + word * sizeof(uint32_t), step->word_count, err);
    return rc || !step->flush ? rc : bw_hcq_queue_flush(queue->hcq, err);
}

/* Every device whose queues may still touch memory that this replay touches. In the turn: who uses a block
 * later is submitted later, too. */
static uint64_t users_of(struct bw_linked_graph *linked)
{
    uint64_t epoch = __atomic_load_n(&linked->ctx->users_epoch, __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < linked->held.count && linked->users_epoch != epoch; i++)
        linked->users |= __atomic_load_n(&linked->held.data[i]->users, __ATOMIC_ACQUIRE);
    linked->users_epoch = epoch;
    return linked->executing | linked->users | linked->input_users;
}

/* A follower's prologue waits for the leader's. */
static void prologue_want(struct bw_linked_graph *linked, struct bw_linked_queue *queue)
{
    queue->prologue_wanted = true;
    if (queue->follows)
        linked->queues[linked->leader].prologue_wanted = true;
}

/* A queue that is not done with earlier work: who waits for it on the device? *here: somebody cannot, so the
 * host has to. */
static void preceding_wait(struct bw_linked_graph *linked, const struct bw_hcq_queue *producer,
                           uint32_t number, bool *wanted, bool *here)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (!queue->root || queue->hcq == producer)
            continue;
        const struct bw_linked_device *device = &linked->devices[queue->device];
        bool itself = number && device->can_wait >> (number - 1) & 1;
        bool after = number && device->can_follow >> (number - 1) & 1;
        if (after) {
            *here |= device->hcq->device->ops->after(queue->hcq->queue, producer->queue) != 0;
        } else if (queue->follows || itself) {
            prologue_want(linked, queue);
            *wanted = true;
        } else {
            *here = true;
        }
    }
}

static bool code_is_stale(const struct bw_linked_queue *queue)
{
    return queue->signal_count &&
           queue->hcq->code_epoch != __atomic_load_n(&queue->hcq->owner->code_epoch, __ATOMIC_ACQUIRE);
}

int bw_follows_make(struct bw_linked_graph *linked, struct bw_err *err)
{
    uint64_t epoch = __atomic_load_n(&linked->ctx->queues_epoch, __ATOMIC_ACQUIRE);
    int rc = 0;
    for (uint32_t i = 0; i < linked->device_count && linked->follows_epoch != epoch; i++) {
        struct bw_device *device = linked->devices[i].hcq->device;
        for (uint64_t others = linked->devices[i].can_follow & ~(1ull << i); others; others &= others - 1) {
            struct bw_hcq_device *other = linked->devices[__builtin_ctzll(others)].hcq;
            for (uint32_t k = 0; k < other->queue_count && !rc; k++) {
                struct bw_queue *made = bw_hcq_queue_made(&other->queues[k]);
                rc = made ? device->ops->follow(made, device, err) : 0;
            }
        }
    }
    linked->follows_epoch = rc ? linked->follows_epoch : epoch;
    return rc;
}

/* Which of the graph's queues must wait for earlier work of others: on the device by their prologue, else
 * here. Before this replay's own points are reserved. */
static int preceding_find(struct bw_linked_graph *linked, struct bw_err *err)
{
    uint64_t failed = __atomic_load_n(&linked->ctx->failed, __ATOMIC_ACQUIRE);
    bool wanted = false;
    for (uint32_t i = 0; i < linked->queue_count; i++)
        linked->queues[i].prologue_wanted = false;
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        if (!code_is_stale(&linked->queues[i]))
            continue;
        prologue_want(linked, &linked->queues[i]);
        wanted = true;
    }
    for (uint64_t devices = users_of(linked); devices; devices &= devices - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(linked->ctx, (uint32_t)__builtin_ctzll(devices));
        if (!device || bw_hcq_device_failed(device))
            continue; /* what it was given is lost */
        for (uint32_t i = 0; i < device->queue_count; i++) {
            struct bw_hcq_queue *producer = &device->queues[i];
            bool here = false;
            if (bw_hcq_queue_idle(producer))
                continue;
            preceding_wait(linked, producer, linked->device_numbers[device->index], &wanted, &here);
            int rc = here ? bw_hcq_queue_wait(producer, bw_hcq_queue_submitted(producer), err) : 0;
            if (rc)
                return rc;
        }
        int rc = bw_hcq_followed_wait(device, linked->followers | failed, err);
        if (rc)
            return rc;
    }
    if (wanted)
        preceding_fill(linked);
    return 0;
}

static int prologue_submit(struct bw_linked_graph *linked, uint32_t number, uint32_t instance,
                           struct bw_err *err)
{
    struct bw_linked_queue *queue = &linked->queues[number];
    const struct bw_linked_device *device = &linked->devices[queue->device];
    if (!queue->prologue_wanted)
        return 0;
    queue->hcq->code_epoch = __atomic_load_n(&queue->hcq->owner->code_epoch, __ATOMIC_ACQUIRE);
    if (!queue->prologue.word_count) /* a copy queue has no instruction cache */
        return 0;
    bw_scatter_run(&device->aside, &queue->prologue_range, linked->table, instance_words(device, instance));
    return step_submit(linked, &queue->prologue, instance, err);
}

/* The leader's first, since others wait for it. */
static int prologues_submit(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    int rc = linked->leader != BW_PLAN_NONE ? prologue_submit(linked, linked->leader, instance, err) : 0;
    for (uint32_t i = 0; i < linked->queue_count && !rc; i++) {
        if (i != linked->leader)
            rc = prologue_submit(linked, i, instance, err);
    }
    return rc;
}

static void step_scatter(struct bw_linked_graph *linked, const struct bw_linked_step *step, uint32_t instance,
                         bool early, bool late)
{
    const struct bw_linked_device *device = &linked->devices[linked->queues[step->step.queue].device];
    uint32_t *words = instance_words(device, instance);
    if (early)
        bw_scatter_run(&device->early, &step->early, linked->table, words);
    if (late)
        bw_scatter_run(&device->late, &step->late, linked->table, words);
}

/* Outside the turn: what the first command buffer of each queue reads of inputs and variables. */
static void steps_prepare(struct bw_linked_graph *linked, uint32_t instance)
{
    for (size_t i = 0; i < linked->steps.count; i++) {
        const struct bw_linked_step *step = &linked->steps.data[i];
        if (step->first)
            step_scatter(linked, step, instance, true, false);
    }
}

static int step_after(struct bw_linked_graph *linked, const struct bw_step *step, struct bw_err *err)
{
    const struct bw_hcq_queue *queue = linked->queues[step->queue].hcq,
                              *producer = linked->queues[step->producer].hcq;
    int rc = queue->owner->device->ops->after(queue->queue, producer->queue);
    if (!rc)
        return 0;
    bw_fail(err, rc, "hcq", "%s is to wait for %s of %s", queue->label, producer->label,
            producer->owner->device->info.name);
    bw_err_device(err, queue->owner->device->info.name);
    return rc;
}

static int steps_run(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < linked->steps.count && !rc; i++) {
        const struct bw_linked_step *step = &linked->steps.data[i];
        const struct bw_linked_queue *queue = &linked->queues[step->step.queue];
        if (step->step.kind == BW_STEP_AFTER) {
            rc = step_after(linked, &step->step, err);
            continue;
        }
        if (step->step.kind == BW_STEP_HOST_WAIT) {
            rc = bw_hcq_queue_wait(queue->hcq, bw_point_after(queue->base, step->step.signal_number), err);
            if (!rc) /* it may have gone on without a device */
                rc = devices_check(linked, linked->owners, err);
            continue;
        }
        step_scatter(linked, step, instance, !step->first, true);
        rc = step_submit(linked, &step->step, instance, err);
    }
    return rc;
}

/* Part of the replay is on its way and the rest will not follow. Every queue that works ends it, with the
 * last signal: whoever waits for any of its signals goes on. */
static void replay_abandon(struct bw_linked_graph *linked, uint32_t instance)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        const struct bw_linked_queue *queue = &linked->queues[i];
        const struct bw_linked_device *device = &linked->devices[queue->device];
        if (queue->signal_count == 0)
            continue;
        if (bw_hcq_device_failed(device->hcq)) {
            bw_hcq_timelines_settle(device->hcq); /* it may have failed before the points were reserved */
            continue;
        }
        bw_scatter_run(&device->aside, &queue->epilogue_range, linked->table,
                       instance_words(device, instance));
        (void)step_submit(linked, &queue->epilogue, instance, NULL); /* if that fails, the device has */
    }
}

/* What this replay may begin after, if only by the order of submission. Before its own points are reserved.
 */
static void earlier_remember(struct bw_linked_graph *linked, uint32_t instance)
{
    struct bw_point *done = bw_instance_done(linked, instance);
    for (uint32_t i = linked->queue_count; i < linked->waited_count; i++)
        done[i] = bw_hcq_device_failed(linked->waited[i]->owner) ? bw_hcq_queue_now(linked->waited[i])
                                                                 : bw_hcq_queue_submitted(linked->waited[i]);
}

/* Whoever follows a device of the graph follows the others that may be followed in it, too: see follow.c. */
static void follows_remember(struct bw_linked_graph *linked)
{
    for (uint32_t i = 0; i < linked->device_count && linked->followers; i++) {
        for (uint32_t k = 0; k < linked->device_count; k++) {
            if (k != i && linked->followers >> linked->devices[k].hcq->index & 1)
                bw_hcq_follow_note(linked->devices[i].hcq, linked->devices[k].hcq);
        }
    }
}

static void replay_remember(struct bw_linked_graph *linked, uint32_t instance)
{
    uint64_t touched = linked->owners | linked->input_owners;
    linked->touched[instance] = touched;
    if (touched & ~linked->touched_ever)
        __atomic_fetch_or(&linked->touched_ever, touched, __ATOMIC_RELEASE);
    struct bw_point *done = bw_instance_done(linked, instance);
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->signal_count == 0)
            continue;
        done[i] = bw_point_after(queue->base, queue->signal_count);
        bw_hcq_queue_depend(queue->hcq, linked->owners, done[i]);
        bw_hcq_queue_remember(queue->hcq, done[i], &queue->label);
    }
    follows_remember(linked);
}

/* In the turn: points, patches, doorbells. */
static int replay_submit(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    int rc = windows_ensure(linked, err);
    if (!rc)
        rc = signals_refresh(linked, err);
    if (!rc)
        rc = bw_follows_make(linked, err);
    if (!rc)
        rc = preceding_find(linked, err);
    if (rc)
        return rc;
    earlier_remember(linked, instance);
    points_reserve(linked);
    signals_scatter(linked, instance);
    replay_remember(linked, instance);
    rc = prologues_submit(linked, instance, err);
    if (!rc)
        rc = steps_run(linked, instance, err);
    if (rc)
        replay_abandon(linked, instance);
    return rc;
}

int bw_linked_graph_replay(struct bw_linked_graph *linked, const struct bw_replay *replay, uint64_t *ticket,
                           struct bw_err *err)
{
    struct bw_err local;
    err = err ? err : &local;
    uint32_t instance = (uint32_t)(linked->replay_count % linked->instance_count);
    uint64_t called_ns = linked->profile ? bw_profile_now(linked) : 0;
    int rc = devices_check(linked, linked->owners, err);
    if (!rc)
        rc = variables_take(linked, replay, err);
    if (!rc)
        rc = bw_inputs_take(linked, replay, err);
    if (!rc)
        rc = devices_check(linked, linked->input_owners & ~linked->owners, err);
    if (!rc)
        rc = instance_wait(linked, instance, err);
    if (rc)
        return rc;
    if (linked->profile)
        bw_profile_begin(linked, instance, called_ns);
    steps_prepare(linked, instance);
    bw_hcq_turn_take(linked->ctx);
    rc = replay_submit(linked, instance, err);
    bw_hcq_turn_give(linked->ctx);
    if (rc)
        return rc;
    linked->replay_count++;
    if (linked->profile)
        bw_profile_end(linked, instance);
    if (ticket)
        *ticket = linked->replay_count;
    return 0;
}

int bw_linked_graph_wait(struct bw_linked_graph *linked, uint64_t ticket, struct bw_err *err)
{
    if (ticket == 0 || ticket > linked->replay_count) {
        bw_fail(err, -EINVAL, "graph", "ticket %llu", (unsigned long long)ticket);
        bw_err_expected(err, "1 to %llu", (unsigned long long)linked->replay_count);
        return -EINVAL;
    }
    int rc = bw_losses_check(linked, ticket, err);
    if (rc || linked->replay_count - ticket >= linked->instance_count)
        return rc; /* without a loss: its instance was taken again, so it is long done */
    uint32_t instance = (uint32_t)((ticket - 1) % linked->instance_count);
    rc = devices_check(linked, linked->touched[instance], err);
    if (!rc)
        rc = instance_wait(linked, instance, err);
    return rc ? rc : bw_losses_look(linked, instance, err);
}
