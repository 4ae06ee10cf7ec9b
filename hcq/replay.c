/* Replaying a linked graph: take a free instance, scatter, ring. No allocation, no system call, no lock where
 * the device has user-space doorbells and an instance is free. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/linked.h"

static struct bw_point *instance_done(const struct bw_linked_graph *linked, uint32_t instance)
{
    return &linked->done[(uint64_t)instance * linked->queue_count];
}

/* Every queue of the graph has passed what the instance was last used for. */
static int instance_wait(const struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    const struct bw_point *done = instance_done(linked, instance);
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        if (linked->queues[i].signal_count == 0 ||
            bw_point_reached(bw_hcq_queue_now(linked->queues[i].hcq), done[i]))
            continue;
        int rc = bw_hcq_queue_wait(linked->queues[i].hcq, done[i], err);
        if (rc)
            return rc;
    }
    return 0;
}

static int devices_check(const struct bw_linked_graph *linked, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < linked->device_count && !rc; i++)
        rc = bw_hcq_device_check(linked->devices[i].hcq, err);
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

static void scatter(const struct bw_scatter_list *list, const uint64_t *table, uint32_t *words)
{
    for (size_t i = 0; i < list->wide.count; i++) {
        const struct bw_scatter *entry = &list->wide.data[i];
        uint64_t value = table[entry->slot] + entry->addend;
        memcpy(words + entry->word, &value, sizeof value);
    }
    for (size_t i = 0; i < list->fields.count; i++) {
        const struct bw_scatter_field *field = &list->fields.data[i];
        uint64_t value = (table[field->slot] + field->addend) >> field->shift;
        words[field->word] = field->keep | ((uint32_t)value & field->mask);
        if (field->wide)
            words[field->word + 1] = (uint32_t)(value >> 32);
    }
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

/* Reserves this replay's points and puts everything that patches may ask for into the table. */
static int table_fill(struct bw_linked_graph *linked, struct bw_err *err)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->preceding_slot != BW_PLAN_NONE)
            linked->table[queue->preceding_slot] = bw_hcq_queue_submitted(queue->hcq).value;
        queue->submitted = 0;
        if (queue->signal_count == 0)
            continue;
        queue->base = bw_hcq_queue_reserve(queue->hcq, queue->signal_count);
        if (queue->base_slot != BW_PLAN_NONE)
            linked->table[queue->base_slot] = queue->base.value;
    }
    for (size_t i = 0; i < linked->signals.count; i++) {
        const struct bw_linked_signal *signal = &linked->signals.data[i];
        struct bw_hcq_queue *queue = linked->queues[signal->queue].hcq;
        uint64_t address = queue->owner->signals->memory.address;
        if (linked->devices[signal->device].hcq != queue->owner) {
            int rc =
                bw_block_reach(queue->owner->signals, linked->devices[signal->device].hcq, &address, err);
            if (rc)
                return rc;
        }
        linked->table[signal->slot] = address + queue->signal_offset;
    }
    return 0;
}

static int step_submit(struct bw_linked_graph *linked, const struct bw_step *step, uint32_t instance,
                       struct bw_err *err)
{
    struct bw_linked_queue *queue = &linked->queues[step->queue];
    const struct bw_linked_device *device = &linked->devices[queue->device];
    uint64_t word = instance * device->stride_words + queue->word + step->word;
    queue->submitted++;
    return bw_hcq_queue_submit(queue->hcq, device->address + word * sizeof(uint32_t), step->word_count, err);
}

static uint32_t plan_queue_of(const struct bw_linked_graph *linked, const struct bw_hcq_queue *queue)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        if (linked->queues[i].hcq == queue)
            return i;
    }
    return BW_PLAN_NONE;
}

/* Every device whose queues may still touch memory that this replay touches. */
static uint64_t users_of(const struct bw_linked_graph *linked)
{
    uint64_t users = 0;
    for (uint64_t owners = linked->owners | linked->input_owners; owners; owners &= owners - 1) {
        struct bw_hcq_device *owner = bw_hcq_device_at(linked->ctx, (uint32_t)__builtin_ctzll(owners));
        assert(owner);
        uint64_t before = __atomic_load_n(&owner->users, __ATOMIC_ACQUIRE);
        if ((before & linked->executing) != linked->executing)
            __atomic_fetch_or(&owner->users, linked->executing, __ATOMIC_RELEASE);
        users |= before;
    }
    return users;
}

/* Which of the graph's queues must wait for earlier work of others: on the device by their prologue, else
 * here. Before this replay's own points are reserved. */
static int preceding_find(const struct bw_linked_graph *linked, uint64_t *prologues, struct bw_err *err)
{
    *prologues = 0;
    for (uint64_t users = users_of(linked); users; users &= users - 1) {
        struct bw_hcq_device *device = bw_hcq_device_at(linked->ctx, (uint32_t)__builtin_ctzll(users));
        for (uint32_t i = 0; device && i < device->queue_count; i++) {
            struct bw_hcq_queue *producer = &device->queues[i];
            if (bw_hcq_queue_idle(producer))
                continue;
            uint32_t number = plan_queue_of(linked, producer);
            for (uint32_t q = 0; q < linked->queue_count; q++) {
                if (q == number || linked->queues[q].signal_count == 0)
                    continue;
                if (number != BW_PLAN_NONE && (linked->queues[q].can_wait >> number & 1)) {
                    *prologues |= 1ull << q;
                    continue;
                }
                int rc = bw_hcq_queue_wait(producer, bw_hcq_queue_submitted(producer), err);
                if (rc)
                    return rc;
            }
        }
    }
    return 0;
}

static int prologues_submit(struct bw_linked_graph *linked, uint64_t wanted, uint32_t instance,
                            struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < linked->queue_count && !rc; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        uint64_t code_epoch = __atomic_load_n(&queue->hcq->owner->code_epoch, __ATOMIC_ACQUIRE);
        if (queue->signal_count == 0 || (!(wanted >> i & 1) && queue->hcq->code_epoch == code_epoch))
            continue;
        rc = step_submit(linked, &queue->prologue, instance, err);
        queue->hcq->code_epoch = code_epoch;
    }
    return rc;
}

static int steps_run(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < linked->steps.count && !rc; i++) {
        const struct bw_step *step = &linked->steps.data[i];
        const struct bw_linked_queue *queue = &linked->queues[step->queue];
        rc = step->host_wait
                 ? bw_hcq_queue_wait(queue->hcq, bw_point_after(queue->base, step->signal_number), err)
                 : step_submit(linked, step, instance, err);
    }
    return rc;
}

/* Part of the replay is on its way and the rest will not follow. Queues that got nothing take their points
 * back; those that got something would wait for ever, so their devices share the failure. */
static void replay_abandon(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->signal_count == 0)
            continue;
        if (queue->submitted == 0) {
            bw_hcq_queue_unreserve(queue->hcq, queue->base);
            instance_done(linked, instance)[i] = queue->base;
        } else {
            struct bw_err failure = *err;
            bw_hcq_device_fail(queue->hcq->owner, &failure);
        }
    }
}

static void replay_remember(struct bw_linked_graph *linked, uint32_t instance)
{
    struct bw_point *done = instance_done(linked, instance);
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        struct bw_linked_queue *queue = &linked->queues[i];
        if (queue->signal_count == 0)
            continue;
        done[i] = bw_point_after(queue->base, queue->signal_count);
        bw_hcq_queue_remember(queue->hcq, done[i], &queue->label);
    }
}

/* In the turn: points, late patches, doorbells. */
static int replay_submit(struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err)
{
    uint64_t prologues;
    int rc = windows_ensure(linked, err);
    if (!rc)
        rc = preceding_find(linked, &prologues, err);
    if (rc)
        return rc;
    rc = table_fill(linked, err);
    if (!rc) {
        for (uint32_t i = 0; i < linked->device_count; i++) {
            if (linked->devices[i].memory)
                scatter(&linked->devices[i].late, linked->table,
                        instance_words(&linked->devices[i], instance));
        }
        replay_remember(linked, instance);
        rc = prologues_submit(linked, prologues, instance, err);
    }
    if (!rc)
        rc = steps_run(linked, instance, err);
    if (rc)
        replay_abandon(linked, instance, err);
    return rc;
}

int bw_linked_graph_replay(struct bw_linked_graph *linked, const struct bw_replay *replay, uint64_t *ticket,
                           struct bw_err *err)
{
    struct bw_err local;
    err = err ? err : &local;
    uint32_t instance = (uint32_t)(linked->replay_count % linked->instance_count);
    int rc = devices_check(linked, err);
    if (!rc)
        rc = variables_take(linked, replay, err);
    if (!rc)
        rc = bw_inputs_take(linked, replay, err);
    if (!rc)
        rc = instance_wait(linked, instance, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < linked->device_count; i++) {
        if (linked->devices[i].memory)
            scatter(&linked->devices[i].early, linked->table, instance_words(&linked->devices[i], instance));
    }
    bw_hcq_turn_take(linked->ctx);
    rc = replay_submit(linked, instance, err);
    bw_hcq_turn_give(linked->ctx);
    if (rc)
        return rc;
    linked->replay_count++;
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
    if (linked->replay_count - ticket >= linked->instance_count)
        return 0; /* its instance was taken again, so it is long done */
    int rc = devices_check(linked, err);
    return rc ? rc : instance_wait(linked, (uint32_t)((ticket - 1) % linked->instance_count), err);
}
