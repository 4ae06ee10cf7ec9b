/* Which operation has to wait for which: read after write, write after write, write after read, by byte.
 *
 * Every queue has a vector of positions: `known[p]` says that whatever it runs next runs after operation
 * known[p] of queue p, because of a wait or a barrier already given. A dependency that is known costs
 * nothing; a wait brings the producer's own vector along, so what follows through a third queue is not waited
 * for again. `acquired[p]` is the same for data: caches were invalidated since.
 *
 * For one producer queue the newest operation is enough: a signal is written, and a barrier passed, after all
 * earlier work of its queue. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/history.h"

enum { DIRECT_ROOTS_MAX = 2 }; /* queues whose prologues wait for everybody by themselves: one hop less */

struct tracker {
    struct bw_plan *plan;
    struct bw_err *err;
    uint32_t queue_count;
    struct bw_history history;     /* who touched which bytes last */
    bw_position *known, *acquired; /* [queue][producer queue] */
    bw_position *clocks;           /* [operation][producer queue]: known when it was queued */
    uint32_t *need, *need_data;    /* [producer queue]: newest operation to run after / to see, index + 1 */
    bw_position *reached;          /* [queue]: passed once all that is needed is done */
    bw_position *known_before;     /* [producer queue]: for failures_wait */
    enum bw_wait_kind *kinds;      /* [queue][producer queue] */
    uint32_t **order; /* [queue][position - 1]: operation; of devices with submit_wait, else NULL */
};

static int no_memory(const struct tracker *tracker)
{
    return bw_fail(tracker->err, -ENOMEM, "graph", "dependencies of %zu operations",
                   tracker->plan->operations.count);
}

/* Collects what operation `index` needs, before it is itself recorded: an operation does not wait for itself.
 */
static void needs_collect(struct tracker *tracker, uint32_t index)
{
    const struct bw_operation *operation = &tracker->plan->operations.data[index];
    memset(tracker->need, 0, tracker->queue_count * sizeof *tracker->need);
    memset(tracker->need_data, 0, tracker->queue_count * sizeof *tracker->need_data);
    for (uint32_t i = 0; i < operation->touch_count; i++)
        bw_history_needs(&tracker->history, operation->touch_begin + i, tracker->need, tracker->need_data);
    for (uint32_t p = 0; p < tracker->queue_count; p++) {
        if (tracker->need[p] < tracker->need_data[p])
            tracker->need[p] = tracker->need_data[p];
    }
}

/* Reads first: what the operation also writes has it as its writer, and needs no reader. */
static int touches_record(struct tracker *tracker, uint32_t index)
{
    const struct bw_operation *operation = &tracker->plan->operations.data[index];
    for (int write = 0; write < 2; write++) {
        for (uint32_t i = 0; i < operation->touch_count; i++) {
            uint32_t touch = operation->touch_begin + i;
            if (tracker->plan->touches.data[touch].write == (write == 1) &&
                bw_history_record(&tracker->history, touch, index))
                return no_memory(tracker);
        }
    }
    return 0;
}

static bw_position position_of(const struct tracker *tracker, uint32_t need)
{
    return need ? tracker->plan->operations.data[need - 1].position : 0;
}

/* What the queue runs next runs after operation need - 1, and after all that this one ran after. */
static void known_bring(struct tracker *tracker, uint32_t queue, uint32_t need)
{
    const struct bw_operation *producer = &tracker->plan->operations.data[need - 1];
    const bw_position *clock = &tracker->clocks[(uint64_t)(need - 1) * tracker->queue_count];
    bw_position *known = &tracker->known[queue * tracker->queue_count];
    for (uint32_t i = 0; i < tracker->queue_count; i++)
        known[i] = clock[i] > known[i] ? clock[i] : known[i];
    if (known[producer->queue] < producer->position)
        known[producer->queue] = producer->position;
}

static int wait_add(struct tracker *tracker, uint32_t index, uint32_t need)
{
    struct bw_plan *plan = tracker->plan;
    struct bw_operation *operation = &plan->operations.data[index],
                        *producer = &plan->operations.data[need - 1];
    uint32_t count = tracker->queue_count;
    struct bw_wait wait = {producer->queue, producer->position, need - 1,
                           tracker->kinds[operation->queue * count + producer->queue]};
    bool on_host = wait.kind == BW_WAIT_HOST;
    if (bw_vec_push(&plan->waits, wait))
        return no_memory(tracker);
    operation->wait_count++;
    producer->signalled = true;
    producer->host_signalled |= on_host;
    /* What comes after a wait of the host is submitted after it, on whatever queue. */
    for (uint32_t q = 0; q < count; q++) {
        if (q == operation->queue || on_host)
            known_bring(tracker, q, need);
    }
    return 0;
}

/* A signal of a device with submit_wait says nothing of other queues of such devices that the operation came
 * after: those may have failed. Who goes by signals, the host or another device, waits for each. */
static int failures_wait(struct tracker *tracker, uint32_t index, uint32_t need)
{
    const struct bw_plan *plan = tracker->plan;
    uint32_t count = tracker->queue_count, own = plan->operations.data[index].queue;
    uint32_t producer = plan->operations.data[need - 1].queue;
    const bw_position *clock = &tracker->clocks[(uint64_t)(need - 1) * count];
    bw_position *known = tracker->known_before; /* each wait brings along what is still to be waited for */
    int rc = 0;
    if (!tracker->order[producer] || tracker->kinds[own * count + producer] == BW_WAIT_SUBMISSION)
        return 0;
    memcpy(known, &tracker->known[own * count], count * sizeof *known);
    for (uint32_t q = 0; q < count && !rc; q++) {
        if (q != producer && tracker->order[q] && clock[q] > known[q])
            rc = wait_add(tracker, index, tracker->order[q][clock[q] - 1] + 1);
    }
    return rc;
}

/* Newest first, so that what it brings along makes others unnecessary. */
static int waits_give(struct tracker *tracker, uint32_t index)
{
    struct bw_operation *operation = &tracker->plan->operations.data[index];
    const bw_position *known = &tracker->known[operation->queue * tracker->queue_count];
    operation->wait_begin = (uint32_t)tracker->plan->waits.count;
    for (;;) {
        uint32_t newest = 0;
        for (uint32_t p = 0; p < tracker->queue_count; p++) {
            uint32_t need = tracker->need[p];
            if (p != operation->queue && position_of(tracker, need) > known[p] && need > newest)
                newest = need;
        }
        if (!newest)
            return 0;
        int rc = failures_wait(tracker, index, newest);
        if (!rc)
            rc = wait_add(tracker, index, newest);
        if (rc)
            return rc;
    }
}

/* What a queue does first has a barrier in any case: against what earlier replays left running, and for what
 * they and the host wrote. After its waits, with which earlier replays are over. */
static void barriers_give(struct tracker *tracker, uint32_t index)
{
    struct bw_operation *operation = &tracker->plan->operations.data[index];
    uint32_t own = operation->queue, count = tracker->queue_count;
    bw_position *known = &tracker->known[own * count], *acquired = &tracker->acquired[own * count];
    for (uint32_t p = 0; p < count; p++) {
        if (p != own && position_of(tracker, tracker->need_data[p]) > acquired[p])
            operation->barrier |= BW_BARRIER_ACQUIRE;
    }
    if (operation->position == 1)
        operation->barrier |= BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE;
    if (operation->barrier & BW_BARRIER_ACQUIRE)
        memcpy(acquired, known, count * sizeof *known);
    if (position_of(tracker, tracker->need[own]) > known[own] ||
        position_of(tracker, tracker->need_data[own]) > acquired[own]) {
        operation->barrier |= BW_BARRIER_EXECUTION;
        known[own] = acquired[own] = operation->position - 1;
        tracker->plan->queues.data[own].stage++;
    }
    operation->stage = tracker->plan->queues.data[own].stage;
}

static void reached_find(struct tracker *tracker)
{
    uint32_t count = tracker->queue_count;
    memset(tracker->reached, 0, count * sizeof *tracker->reached);
    for (uint32_t p = 0; p < count; p++) {
        if (!tracker->need[p])
            continue;
        const bw_position *clock = &tracker->clocks[(uint64_t)(tracker->need[p] - 1) * count];
        for (uint32_t i = 0; i < count; i++)
            tracker->reached[i] = clock[i] > tracker->reached[i] ? clock[i] : tracker->reached[i];
        bw_position own = position_of(tracker, tracker->need[p]);
        tracker->reached[p] = own > tracker->reached[p] ? own : tracker->reached[p];
    }
}

/* Gives the operation its place on a queue, now that it is known what it depends on. */
static int queue_give(struct tracker *tracker, uint32_t index)
{
    struct bw_operation *operation = &tracker->plan->operations.data[index];
    int rc = 0;
    if (operation->queue == BW_PLAN_NONE) {
        reached_find(tracker);
        rc = bw_spread_kernel(tracker->plan, index, tracker->need, tracker->reached, tracker->err);
    }
    if (rc)
        return rc;
    operation->position = ++tracker->plan->queues.data[operation->queue].operation_count;
    if (tracker->order[operation->queue])
        tracker->order[operation->queue][operation->position - 1] = index;
    return 0;
}

static enum bw_profile_order order_of(const struct tracker *tracker, const struct bw_operation *consumer,
                                      uint32_t producer)
{
    const struct bw_plan *plan = tracker->plan;
    const struct bw_wait *waits = plan->waits.data + consumer->wait_begin;
    if (plan->operations.data[producer].queue == consumer->queue)
        return BW_PROFILE_ORDER_QUEUE;
    for (uint32_t i = 0; i < consumer->wait_count; i++) {
        if (waits[i].operation == producer)
            return waits[i].kind == BW_WAIT_HOST ? BW_PROFILE_ORDER_HOST : BW_PROFILE_ORDER_DEVICE;
    }
    return BW_PROFILE_ORDER_GIVEN;
}

/* For a profile: what the operation comes after, whatever it took to make it so. */
static int dependencies_note(struct tracker *tracker, uint32_t index)
{
    struct bw_plan *plan = tracker->plan;
    for (uint32_t p = 0; p < tracker->queue_count && plan->profile; p++) {
        if (!tracker->need[p])
            continue;
        uint32_t producer = tracker->need[p] - 1;
        struct bw_profile_dependency dependency = {
            index, producer, order_of(tracker, &plan->operations.data[index], producer)};
        if (bw_vec_push(&plan->dependencies, dependency))
            return no_memory(tracker);
    }
    return 0;
}

/* What a queue does first is ordered after earlier replays by its prologue, or, when it waits for another
 * queue of this replay, by that one's. */
static void root_note(struct tracker *tracker, const struct bw_operation *operation)
{
    if (operation->position == 1 && operation->wait_count == 0)
        tracker->plan->queues.data[operation->queue].root = true;
}

static int operation_track(struct tracker *tracker, uint32_t index)
{
    uint32_t count = tracker->queue_count;
    needs_collect(tracker, index);
    int rc = queue_give(tracker, index);
    if (!rc)
        rc = waits_give(tracker, index);
    if (rc)
        return rc;
    uint32_t own = tracker->plan->operations.data[index].queue;
    root_note(tracker, &tracker->plan->operations.data[index]);
    barriers_give(tracker, index);
    rc = dependencies_note(tracker, index);
    if (rc)
        return rc;
    memcpy(&tracker->clocks[(uint64_t)index * count], &tracker->known[own * count],
           count * sizeof *tracker->known);
    return touches_record(tracker, index);
}

/* Which queue's prologue waits for earlier work on behalf of the other roots, and signals when it is over:
 * with many roots, each waiting for everybody would be waits by the square. The one that most can wait for.
 */
static uint32_t leader_find(const struct bw_plan *plan)
{
    uint32_t leader = BW_PLAN_NONE, most = 0, roots = 0;
    for (uint32_t i = 0; i < plan->queues.count; i++)
        roots += plan->queues.data[i].root;
    for (uint32_t i = 0; i < plan->queues.count && roots > DIRECT_ROOTS_MAX; i++) {
        uint32_t followers = 0;
        for (uint32_t k = 0; k < plan->queues.count && plan->queues.data[i].root; k++)
            followers += k != i && plan->queues.data[k].root &&
                         bw_plan_wait_kind(plan, plan->queues.data[k].device, plan->queues.data[i].device) ==
                             BW_WAIT_DEVICE;
        if (followers > most) {
            leader = i;
            most = followers;
        }
    }
    return leader;
}

/* The last operation of each queue signals, for whoever waits for the replay. The leader's first signal is
 * its prologue's, written or not. */
static void signals_number(struct bw_plan *plan)
{
    plan->leader = leader_find(plan);
    if (plan->leader != BW_PLAN_NONE)
        plan->queues.data[plan->leader].signal_count = 1;
    for (size_t i = 0; i < plan->operations.count; i++) {
        struct bw_operation *operation = &plan->operations.data[i];
        struct bw_plan_queue *queue = &plan->queues.data[operation->queue];
        if (operation->position == queue->operation_count)
            operation->signalled = operation->host_signalled = true;
        if (operation->signalled)
            operation->signal_number = ++queue->signal_count;
    }
}

static int tracker_create(struct tracker *tracker)
{
    uint32_t count = tracker->queue_count;
    size_t square = (size_t)count * count, operations = tracker->plan->operations.count;
    int rc = bw_history_create(&tracker->history, tracker->plan);
    if (rc == -E2BIG)
        return bw_fail(tracker->err, rc, "graph", "%zu byte ranges, at most 2^31",
                       tracker->plan->touches.count);
    tracker->known = calloc(square + 1, sizeof *tracker->known);
    tracker->acquired = calloc(square + 1, sizeof *tracker->acquired);
    tracker->clocks = calloc(operations * count + 1, sizeof *tracker->clocks);
    tracker->need = calloc(count + 1, sizeof *tracker->need);
    tracker->need_data = calloc(count + 1, sizeof *tracker->need_data);
    tracker->reached = calloc(count + 1, sizeof *tracker->reached);
    tracker->kinds = calloc(square + 1, sizeof *tracker->kinds);
    tracker->order = calloc(count + 1, sizeof *tracker->order);
    tracker->known_before = calloc(count + 1, sizeof *tracker->known_before);
    if (rc || !tracker->known || !tracker->known_before || !tracker->acquired || !tracker->clocks ||
        !tracker->need || !tracker->need_data || !tracker->reached || !tracker->kinds || !tracker->order)
        return no_memory(tracker);
    const struct bw_plan_queue *queues = tracker->plan->queues.data;
    for (uint32_t q = 0; q < count; q++) {
        for (uint32_t p = 0; p < count; p++)
            tracker->kinds[q * count + p] =
                bw_plan_wait_kind(tracker->plan, queues[q].device, queues[p].device);
        if (!queues[q].hcq->owner->device->caps.submit_wait)
            continue;
        tracker->order[q] = calloc(operations + 1, sizeof *tracker->order[q]);
        if (!tracker->order[q])
            return no_memory(tracker);
    }
    return 0;
}

static void tracker_free(struct tracker *tracker)
{
    bw_history_free(&tracker->history);
    free(tracker->known);
    free(tracker->acquired);
    free(tracker->clocks);
    free(tracker->need);
    free(tracker->need_data);
    free(tracker->reached);
    free(tracker->known_before);
    free(tracker->kinds);
    for (uint32_t q = 0; tracker->order && q < tracker->queue_count; q++)
        free(tracker->order[q]);
    free(tracker->order);
}

int bw_hazards_find(struct bw_plan *plan, struct bw_err *err)
{
    struct tracker tracker = {.plan = plan, .err = err, .queue_count = (uint32_t)plan->queues.count};
    int rc = tracker_create(&tracker);
    for (uint32_t i = 0; i < plan->operations.count && !rc; i++)
        rc = operation_track(&tracker, i);
    if (!rc)
        signals_number(plan);
    tracker_free(&tracker);
    return rc;
}
