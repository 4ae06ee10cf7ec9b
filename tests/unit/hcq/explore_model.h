/* All interleavings of what explore_record.h wrote down: the queues of two devices and the host thread, as
 * processes that know of each other only what they read in signal words.
 *
 * A queue takes its packets in order. Operations run on after their packet until they end, in any order; a
 * signal is written once all that its queue took before is over; a barrier waits for the queue's operations;
 * a wait compares the low 32 bits, unsigned. That is the least that drivers/driver.h promises, and what PM4
 * does.
 */
#ifndef BW_TESTS_HCQ_EXPLORE_MODEL_H
#define BW_TESTS_HCQ_EXPLORE_MODEL_H

#include "tests/unit/hcq/explore_record.h"

enum {
    EX_RUNNING_MAX = 16,
    EX_OPERATIONS_MAX = EX_REPLAYS_MAX * EX_CALLS_MAX,
    EX_STATES_MAX = 2000000, /* a search that does not end by then is none for CI */
};

enum ex_verdict {
    EX_FINE,
    EX_DEADLOCK,     /* something stands still for ever: a lost wake-up, too */
    EX_ORDER,        /* an operation begins before one that it depends on is over */
    EX_STALE,        /* ... or reads bytes that its queue's caches may hold from before */
    EX_EARLY_REUSE,  /* the host writes what an engine has yet to read */
    EX_EARLY_RETURN, /* the host's wait is over, the replay is not */
    EX_BACKWARD,     /* a signal word goes back */
    EX_WRAP,         /* a wait that compares 32 bits and one that compares 64 bits disagree */
    EX_TOO_MUCH,     /* more than is explored */
    EX_VERDICTS,
};

static const char *const ex_verdict_names[EX_VERDICTS] = {
    "fine", "deadlock", "order", "stale", "early reuse", "early return", "backward", "wrap", "too much"};

enum ex_mutation_kind {
    EX_UNCHANGED,
    EX_WITHOUT_PACKET,        /* the packet at `word` of graph and device */
    EX_WITHOUT_FLAGS,         /* the barrier there lacks `flags` */
    EX_WITHOUT_PROLOGUES,     /* none waits for earlier work */
    EX_WITHOUT_INSTANCE_WAIT, /* the host takes instances that are busy */
    EX_WITHOUT_TICKET_WAIT,   /* ... does not wait for `queue` at the end */
    EX_WITHOUT_HOST_WAITS,    /* ... nor in the middle of a replay */
    EX_WITH_ONE_SLOT,         /* timelines stay in their signal words when the low half wraps */
};

struct ex_mutation {
    enum ex_mutation_kind kind;
    uint32_t graph, device, word, flags, queue;
};

/* The next packet, or one that was taken. replay EX_NONE: none. */
struct ex_place {
    uint8_t replay, at;
};

struct ex_queue_state {
    struct ex_place next;
    struct ex_place running[EX_RUNNING_MAX]; /* taken, not over; oldest first */
    uint16_t written[BW_HCQ_SIGNAL_SLOTS];   /* signal words, less their origin */
    uint8_t seen[EX_QUEUES_MAX]; /* operations of each queue whose bytes its caches cannot hold from before */
};

/* No padding: compared and hashed as bytes. */
struct ex_state {
    uint8_t replay, at;             /* the host's next step */
    uint8_t busy;                   /* what it saw so far */
    uint8_t wanted[EX_REPLAYS_MAX]; /* queues that get a prologue and are not there yet */
    struct ex_queue_state queues[EX_QUEUES_MAX];
};

struct ex_operation {
    uint32_t replay, queue, at, ordinal; /* on its queue, from 0 */
};

struct ex_step {
    uint32_t parent;
    uint8_t process, replay, at; /* process: queue, or EX_NONE for the host */
    bool ends;                   /* an end, else a beginning */
};

struct ex_model {
    struct ex_record *record;
    struct ex_operation operations[EX_OPERATIONS_MAX];
    uint32_t operation_count;
    uint8_t operation_at[EX_REPLAYS_MAX][EX_QUEUES_MAX][EX_PACKETS_MAX]; /* EX_NONE: another packet */
    uint8_t operations_before[EX_REPLAYS_MAX][EX_QUEUES_MAX][EX_PACKETS_MAX + 1];
    /* [later][earlier] */
    bool conflicts[EX_OPERATIONS_MAX][EX_OPERATIONS_MAX], data[EX_OPERATIONS_MAX][EX_OPERATIONS_MAX];
    /* [replay that writes][replay][queue][packet]: into its command buffer, its argument block */
    bool writes_buffer[EX_REPLAYS_MAX][EX_REPLAYS_MAX][EX_QUEUES_MAX][EX_PACKETS_MAX];
    bool writes_block[EX_REPLAYS_MAX][EX_REPLAYS_MAX][EX_QUEUES_MAX][EX_PACKETS_MAX];
    /* of a search */
    struct ex_mutation mutation;
    bool reduce;
    enum ex_verdict verdict;
    BW_VEC(struct ex_state) states;
    BW_VEC(struct ex_step) steps;
    uint32_t *table; /* state number plus 1 */
    uint32_t table_capacity;
    uint32_t from; /* the state whose steps are looked at */
};

/* ---- what the record says, looked at once ---- */

static const struct ex_packet *ex_packet(const struct ex_model *model, uint32_t queue, struct ex_place place)
{
    return &model->record->replays[place.replay].streams[queue].packets[place.at];
}

static bool ex_overlap(const struct ex_range *a, const struct ex_range *b)
{
    return a->space == b->space && a->begin < b->end && b->begin < a->end;
}

/* In the order of the program. */
static bool ex_is_before(const struct ex_model *model, uint32_t one, uint32_t other)
{
    const struct ex_operation *a = &model->operations[one], *b = &model->operations[other];
    if (a->replay != b->replay)
        return a->replay < b->replay;
    return ex_packet(model, a->queue, (struct ex_place){a->replay, a->at})->call <
           ex_packet(model, b->queue, (struct ex_place){b->replay, b->at})->call;
}

static const struct ex_packet *ex_operation_packet(const struct ex_model *model, uint32_t number)
{
    const struct ex_operation *operation = &model->operations[number];
    return ex_packet(model, operation->queue, (struct ex_place){operation->replay, operation->at});
}

static void ex_conflict_note(struct ex_model *model, uint32_t later, uint32_t earlier)
{
    const struct ex_packet *one = ex_operation_packet(model, later),
                           *two = ex_operation_packet(model, earlier);
    for (uint32_t i = 0; i < one->range_count && ex_is_before(model, earlier, later); i++)
        for (uint32_t k = 0; k < two->range_count; k++)
            model->conflicts[later][earlier] |= ex_overlap(&one->ranges[i], &two->ranges[k]) &&
                                                (one->ranges[i].write || two->ranges[k].write);
}

static bool ex_writes_byte(const struct ex_packet *packet, uint32_t space, uint32_t byte)
{
    for (uint32_t i = 0; i < packet->range_count; i++)
        if (packet->ranges[i].write && packet->ranges[i].space == space && packet->ranges[i].begin <= byte &&
            byte < packet->ranges[i].end)
            return true;
    return false;
}

/* Who wrote last what the operation reads. */
static void ex_data_note(struct ex_model *model, uint32_t reader)
{
    const struct ex_packet *packet = ex_operation_packet(model, reader);
    for (uint32_t i = 0; i < packet->range_count; i++) {
        const struct ex_range *range = &packet->ranges[i];
        for (uint32_t byte = range->begin; !range->write && byte < range->end; byte++) {
            uint32_t last = EX_NONE;
            for (uint32_t k = 0; k < model->operation_count; k++)
                if (ex_is_before(model, k, reader) &&
                    ex_writes_byte(ex_operation_packet(model, k), range->space, byte) &&
                    (last == EX_NONE || ex_is_before(model, last, k)))
                    last = k;
            if (last != EX_NONE)
                model->data[reader][last] = true;
        }
    }
}

static void ex_operations_find(struct ex_model *model)
{
    memset(model->operation_at, EX_NONE, sizeof model->operation_at);
    for (uint32_t q = 0; q < model->record->queue_count; q++) {
        uint32_t ordinal = 0;
        for (uint32_t r = 0; r < model->record->scene->replay_count; r++) {
            const struct ex_stream *stream = &model->record->replays[r].streams[q];
            for (uint32_t i = 0; i < stream->count; i++) {
                model->operations_before[r][q][i] = (uint8_t)ordinal;
                if (stream->packets[i].kind != EX_OPERATION)
                    continue;
                model->operation_at[r][q][i] = (uint8_t)model->operation_count;
                model->operations[model->operation_count++] = (struct ex_operation){r, q, i, ordinal++};
            }
            model->operations_before[r][q][stream->count] = (uint8_t)ordinal;
        }
    }
    for (uint32_t i = 0; i < model->operation_count; i++) {
        ex_data_note(model, i);
        for (uint32_t k = 0; k < model->operation_count; k++)
            ex_conflict_note(model, i, k);
    }
}

static bool ex_writes(const struct ex_replay *replay, const struct ex_memory *memory)
{
    for (uint32_t i = 0; i < replay->change_count; i++) {
        const struct ex_memory *change = &replay->changes[i];
        if (change->graph == memory->graph && change->device == memory->device &&
            change->begin < memory->end && memory->begin < change->end)
            return true;
    }
    return false;
}

static void ex_writes_find(struct ex_model *model)
{
    const struct ex_record *record = model->record;
    for (uint32_t writer = 0; writer < record->scene->replay_count; writer++) {
        for (uint32_t r = 0; r < writer; r++) {
            for (uint32_t q = 0; q < record->queue_count; q++) {
                const struct ex_stream *stream = &record->replays[r].streams[q];
                for (uint32_t i = 0; i < stream->count; i++) {
                    model->writes_buffer[writer][r][q][i] =
                        ex_writes(&record->replays[writer], &stream->packets[i].buffer);
                    model->writes_block[writer][r][q][i] =
                        ex_writes(&record->replays[writer], &stream->packets[i].block);
                }
            }
        }
    }
}

static struct ex_model *ex_model_make(struct ex_record *record)
{
    struct ex_model *model = calloc(1, sizeof *model);
    if (!BW_TRUE(model != NULL))
        return NULL;
    model->record = record;
    ex_operations_find(model);
    ex_writes_find(model);
    return model;
}

static void ex_model_free(struct ex_model *model)
{
    if (!model)
        return;
    bw_vec_free(&model->states);
    bw_vec_free(&model->steps);
    free(model->table);
    free(model);
}

/* ---- states ---- */

static uint64_t ex_state_hash(const struct ex_state *state)
{
    uint64_t hash = 0;
    const uint8_t *bytes = (const uint8_t *)state;
    for (size_t i = 0; i < sizeof *state; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, sizeof *state - i < 8 ? sizeof *state - i : 8);
        hash = bw_hash64(hash ^ word) + i;
    }
    return hash;
}

static void ex_table_put(struct ex_model *model, uint32_t number)
{
    uint32_t mask = model->table_capacity - 1;
    uint32_t at = (uint32_t)ex_state_hash(&model->states.data[number]) & mask;
    while (model->table[at])
        at = (at + 1) & mask;
    model->table[at] = number + 1;
}

static void ex_table_grow(struct ex_model *model)
{
    uint32_t capacity = model->table_capacity ? 2 * model->table_capacity : 4096;
    free(model->table);
    model->table = calloc(capacity, sizeof *model->table);
    model->table_capacity = capacity;
    for (uint32_t i = 0; model->table && i < model->states.count; i++)
        ex_table_put(model, i);
    if (!model->table)
        abort();
}

static bool ex_state_known(const struct ex_model *model, const struct ex_state *state)
{
    uint32_t mask = model->table_capacity - 1;
    for (uint32_t at = (uint32_t)ex_state_hash(state) & mask; model->table[at]; at = (at + 1) & mask)
        if (memcmp(&model->states.data[model->table[at] - 1], state, sizeof *state) == 0)
            return true;
    return false;
}

static void ex_state_add(struct ex_model *model, const struct ex_state *state, const struct ex_step *step)
{
    if (model->table_capacity < 2 * (model->states.count + 1))
        ex_table_grow(model);
    if (ex_state_known(model, state))
        return;
    if (bw_vec_push(&model->states, *state) || bw_vec_push(&model->steps, *step))
        abort();
    ex_table_put(model, (uint32_t)model->states.count - 1);
}

/* ---- signal words ---- */

static uint32_t ex_slot(const struct ex_model *model, uint32_t slot)
{
    return model->mutation.kind == EX_WITH_ONE_SLOT ? 0 : slot;
}

static uint64_t ex_word(const struct ex_model *model, const struct ex_state *state, uint32_t queue,
                        uint32_t slot)
{
    slot = ex_slot(model, slot);
    return model->record->slot_origin[queue][slot] + state->queues[queue].written[slot];
}

static bool ex_reached(const struct ex_model *model, const struct ex_state *state,
                       const struct ex_threshold *threshold)
{
    for (uint32_t i = 0; i < model->record->queue_count; i++)
        if (threshold->wanted[i] &&
            (int64_t)(ex_word(model, state, i, threshold->slot[i]) - threshold->value[i]) < 0)
            return false;
    return true;
}

/* ---- queues ---- */

static uint32_t ex_actions_begin(const struct ex_model *model)
{
    return 3 +
           model->record->queue_count; /* after the instance, its words, a look at each queue, the drain */
}

static bool ex_host_submits(const struct ex_model *model, const struct ex_state *state)
{
    return state->replay < model->record->scene->replay_count && state->at >= ex_actions_begin(model);
}

/* How many packets of the replay the queue was given. */
static uint32_t ex_given(const struct ex_model *model, const struct ex_state *state, uint32_t queue,
                         uint32_t replay)
{
    if (replay < state->replay)
        return model->record->replays[replay].streams[queue].count;
    uint32_t given = 0;
    if (replay > state->replay || !ex_host_submits(model, state))
        return 0;
    const struct ex_submission *submission = ex_submission_get(model->record, replay, state->busy);
    for (uint32_t i = 0; i < state->at - ex_actions_begin(model) && i < submission->action_count; i++) {
        const struct ex_action *action = &submission->actions[i];
        if (!action->wait && action->queue == queue && action->end > given)
            given = action->end;
    }
    return given;
}

/* At the end of a replay's packets: on to those of the next one that the host has begun to submit. */
static void ex_queues_advance(const struct ex_model *model, struct ex_state *state)
{
    for (uint32_t q = 0; q < model->record->queue_count; q++) {
        struct ex_place *next = &state->queues[q].next;
        while (next->at == model->record->replays[next->replay].streams[q].count &&
               (next->replay + 1 < state->replay ||
                (next->replay + 1 == state->replay && ex_host_submits(model, state)))) {
            next->replay++;
            bool wanted = state->wanted[next->replay] >> q & 1;
            next->at = (uint8_t)(wanted ? 0 : model->record->replays[next->replay].streams[q].prologue_count);
            state->wanted[next->replay] &= (uint8_t) ~(1u << q);
        }
    }
}

static bool ex_taken(const struct ex_queue_state *queue, uint32_t replay, uint32_t at)
{
    return queue->next.replay > replay || (queue->next.replay == replay && queue->next.at > at);
}

static bool ex_over(const struct ex_queue_state *queue, uint32_t replay, uint32_t at)
{
    for (uint32_t i = 0; i < EX_RUNNING_MAX && queue->running[i].replay != EX_NONE; i++)
        if (queue->running[i].replay == replay && queue->running[i].at == at)
            return false;
    return ex_taken(queue, replay, at);
}

/* Operations of the queue that are over, and all before them. */
static uint8_t ex_prefix(const struct ex_model *model, const struct ex_state *state, uint32_t queue)
{
    const struct ex_queue_state *at = &state->queues[queue];
    for (uint32_t i = 0; i < EX_RUNNING_MAX && at->running[i].replay != EX_NONE; i++) {
        uint8_t number = model->operation_at[at->running[i].replay][queue][at->running[i].at];
        if (number != EX_NONE)
            return (uint8_t)model->operations[number].ordinal;
    }
    return model->operations_before[at->next.replay][queue][at->next.at];
}

static bool ex_operations_run(const struct ex_model *model, const struct ex_state *state, uint32_t queue)
{
    const struct ex_queue_state *at = &state->queues[queue];
    return ex_prefix(model, state, queue) != model->operations_before[at->next.replay][queue][at->next.at];
}

static bool ex_mutated(const struct ex_model *model, const struct ex_packet *packet)
{
    const struct ex_mutation *mutation = &model->mutation;
    return mutation->graph == packet->graph && mutation->device == packet->device &&
           mutation->word == packet->word;
}

static bool ex_removed(const struct ex_model *model, const struct ex_packet *packet)
{
    enum ex_mutation_kind kind = model->mutation.kind;
    return (kind == EX_WITHOUT_PACKET && ex_mutated(model, packet)) ||
           (kind == EX_WITHOUT_PROLOGUES && packet->prologue && packet->kind == EX_WAIT);
}

static uint32_t ex_flags(const struct ex_model *model, const struct ex_packet *packet)
{
    bool lacks = model->mutation.kind == EX_WITHOUT_FLAGS && ex_mutated(model, packet);
    return packet->flags & ~(lacks ? model->mutation.flags : 0);
}

static void ex_fail(struct ex_model *model, enum ex_verdict verdict)
{
    if (model->verdict == EX_FINE)
        model->verdict = verdict;
}

/* What the operation depends on is over, and seen. */
static void ex_operation_check(struct ex_model *model, const struct ex_state *state, uint32_t queue,
                               uint32_t number)
{
    for (uint32_t i = 0; i < model->operation_count; i++) {
        const struct ex_operation *earlier = &model->operations[i];
        if (!model->conflicts[number][i])
            continue;
        if (!ex_over(&state->queues[earlier->queue], earlier->replay, earlier->at))
            ex_fail(model, EX_ORDER);
        else if (model->data[number][i] && state->queues[queue].seen[earlier->queue] <= earlier->ordinal)
            ex_fail(model, EX_STALE);
    }
}

static void ex_running_add(struct ex_model *model, struct ex_queue_state *queue)
{
    uint32_t i = 0;
    while (i < EX_RUNNING_MAX && queue->running[i].replay != EX_NONE)
        i++;
    if (i == EX_RUNNING_MAX)
        ex_fail(model, EX_TOO_MUCH);
    else
        queue->running[i] = queue->next;
}

/* Whether the wait lets the queue go on. */
static bool ex_wait_over(struct ex_model *model, const struct ex_state *state, const struct ex_packet *packet)
{
    if (packet->queue == EX_NONE)
        return true;
    uint64_t word = ex_word(model, state, packet->queue, packet->slot);
    bool narrow = (uint32_t)word >= (uint32_t)packet->value, wide = (int64_t)(word - packet->value) >= 0;
    if (narrow != wide)
        ex_fail(model, EX_WRAP);
    return narrow;
}

/* A barrier for which something has to end. */
static bool ex_barrier_ends(const struct ex_model *model, const struct ex_state *state, uint32_t queue,
                            const struct ex_packet *packet)
{
    return packet->kind == EX_BARRIER && ex_flags(model, packet) & BW_BARRIER_EXECUTION &&
           ex_operations_run(model, state, queue);
}

/* False: the queue has nothing to take, or has to wait. */
static bool ex_queue_can_take(struct ex_model *model, const struct ex_state *state, uint32_t queue)
{
    struct ex_place next = state->queues[queue].next;
    if (next.at >= ex_given(model, state, queue, next.replay))
        return false;
    const struct ex_packet *packet = ex_packet(model, queue, next);
    if (ex_removed(model, packet))
        return true;
    if (packet->kind == EX_WAIT)
        return ex_wait_over(model, state, packet);
    return packet->kind != EX_BARRIER || !ex_barrier_ends(model, state, queue, packet) || model->reduce;
}

/* The first `count` of what runs on the queue: those that are operations end. */
static void ex_operations_end(const struct ex_model *model, struct ex_queue_state *queue, uint32_t number,
                              uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < EX_RUNNING_MAX; i++) {
        struct ex_place place = queue->running[i];
        bool ends =
            i < count && place.replay != EX_NONE && ex_packet(model, number, place)->kind == EX_OPERATION;
        if (!ends)
            queue->running[kept++] = place;
    }
    while (kept < EX_RUNNING_MAX)
        queue->running[kept++] = (struct ex_place){EX_NONE, EX_NONE};
}

static void ex_barrier_take(struct ex_model *model, struct ex_state *state, uint32_t queue, uint32_t flags)
{
    uint8_t *seen = state->queues[queue].seen;
    if (flags & BW_BARRIER_EXECUTION)
        ex_operations_end(model, &state->queues[queue], queue, EX_RUNNING_MAX);
    for (uint32_t p = 0; p < model->record->queue_count; p++)
        if (flags & BW_BARRIER_ACQUIRE || (p == queue && flags & BW_BARRIER_EXECUTION))
            seen[p] = ex_prefix(model, state, p);
}

static void ex_queue_take(struct ex_model *model, struct ex_state *state, uint32_t queue)
{
    struct ex_queue_state *at = &state->queues[queue];
    const struct ex_packet *packet = ex_packet(model, queue, at->next);
    if (!ex_removed(model, packet)) {
        if (packet->kind == EX_OPERATION)
            ex_operation_check(model, state, queue, model->operation_at[at->next.replay][queue][at->next.at]);
        if (packet->kind == EX_BARRIER)
            ex_barrier_take(model, state, queue, ex_flags(model, packet));
        if (packet->kind == EX_OPERATION || packet->kind == EX_SIGNAL)
            ex_running_add(model, at);
    }
    at->next.at++;
    ex_queues_advance(model, state);
}

/* Number `which` of what runs is over: an operation, or a signal, with the operations before it. */
static void ex_queue_end(struct ex_model *model, struct ex_state *state, uint32_t queue, uint32_t which)
{
    struct ex_queue_state *at = &state->queues[queue];
    const struct ex_packet *packet = ex_packet(model, queue, at->running[which]);
    if (packet->kind == EX_SIGNAL) {
        uint32_t slot = ex_slot(model, packet->slot);
        if ((int64_t)(packet->value - ex_word(model, state, packet->queue, slot)) <= 0)
            ex_fail(model, EX_BACKWARD);
        state->queues[packet->queue].written[slot] =
            (uint16_t)(packet->value - model->record->slot_origin[packet->queue][slot]);
    }
    memmove(&at->running[which], &at->running[which + 1],
            (EX_RUNNING_MAX - which - 1) * sizeof at->running[0]);
    at->running[EX_RUNNING_MAX - 1] = (struct ex_place){EX_NONE, EX_NONE};
    if (packet->kind == EX_SIGNAL)
        ex_operations_end(model, at, queue, which);
}

/* What may be over next: a signal after all else before it, unless that else is brought to its end with it.
 */
static bool ex_can_end(const struct ex_model *model, const struct ex_state *state, uint32_t queue,
                       uint32_t which)
{
    const struct ex_queue_state *at = &state->queues[queue];
    bool signal = ex_packet(model, queue, at->running[which])->kind == EX_SIGNAL;
    if (!model->reduce || !signal)
        return model->reduce ? false : !signal || which == 0;
    for (uint32_t i = 0; i < which; i++)
        if (ex_packet(model, queue, at->running[i])->kind == EX_SIGNAL)
            return false;
    return true;
}

/* ---- the host ---- */

/* Nobody reads the packet any more. A command buffer that ends with a signal is read until that is written.
 */
static bool ex_read(const struct ex_queue_state *queue, uint32_t replay, uint32_t at,
                    const struct ex_packet *packet)
{
    return packet->ends_buffer && packet->kind == EX_SIGNAL ? ex_over(queue, replay, at)
                                                            : ex_taken(queue, replay, at);
}

static void ex_patch_check(struct ex_model *model, const struct ex_state *state)
{
    for (uint32_t r = 0; r < state->replay; r++) {
        for (uint32_t q = 0; q < model->record->queue_count; q++) {
            const struct ex_queue_state *queue = &state->queues[q];
            const struct ex_stream *stream = &model->record->replays[r].streams[q];
            bool wanted = queue->next.replay >= r || state->wanted[r] >> q & 1;
            for (uint32_t i = wanted ? 0 : stream->prologue_count; i < stream->count; i++)
                if ((model->writes_buffer[state->replay][r][q][i] &&
                     !ex_read(queue, r, i, &stream->packets[i])) ||
                    (model->writes_block[state->replay][r][q][i] && !ex_over(queue, r, i)))
                    ex_fail(model, EX_EARLY_REUSE);
        }
    }
}

/* All replays of that graph up to that one are over. */
static void ex_ticket_check(struct ex_model *model, const struct ex_state *state, uint32_t last)
{
    const struct ex_replay *replays = model->record->replays;
    for (uint32_t i = 0; i < model->operation_count; i++) {
        const struct ex_operation *operation = &model->operations[i];
        if (operation->replay <= last && replays[operation->replay].graph == replays[last].graph &&
            !ex_over(&state->queues[operation->queue], operation->replay, operation->at))
            ex_fail(model, EX_EARLY_RETURN);
    }
}

static bool ex_ticket_reached(const struct ex_model *model, const struct ex_state *state, uint32_t replay)
{
    struct ex_threshold ticket = model->record->replays[replay].ticket;
    if (model->mutation.kind == EX_WITHOUT_TICKET_WAIT)
        ticket.wanted[model->mutation.queue] = false;
    return ex_reached(model, state, &ticket);
}

/* The last replay of the graph; replay_count when there is none. */
static uint32_t ex_last_of(const struct ex_model *model, uint32_t graph)
{
    const struct ex_scene *scene = model->record->scene;
    uint32_t last = scene->replay_count;
    for (uint32_t i = 0; i < scene->replay_count; i++)
        last = scene->replays[i] == graph ? i : last;
    return last;
}

/* After all replays: waits for each graph's last one. */
static bool ex_host_end_step(struct ex_model *model, struct ex_state *state)
{
    uint32_t last = state->at < model->record->scene->graph_count ? ex_last_of(model, state->at) : EX_NONE;
    if (last == EX_NONE)
        return false;
    if (last < model->record->scene->replay_count) {
        if (!ex_ticket_reached(model, state, last))
            return false;
        ex_ticket_check(model, state, last);
    }
    state->at++;
    return true;
}

static void ex_host_look(const struct ex_model *model, struct ex_state *state, uint32_t queue)
{
    const struct ex_replay *replay = &model->record->replays[state->replay];
    uint64_t word = ex_word(model, state, queue, replay->slot_before[queue]);
    if (!replay->rolls && (int64_t)(word - replay->submitted_before[queue]) < 0)
        state->busy |= (uint8_t)(1u << queue);
}

/* It knows now which queues get prologues. */
static void ex_host_decide(struct ex_model *model, struct ex_state *state)
{
    state->busy &= (uint8_t)ex_busy_most(model->record, state->replay); /* else: without its instance wait */
    const struct ex_submission *submission = ex_submission_get(model->record, state->replay, state->busy);
    for (uint32_t i = 0; i < submission->action_count; i++) {
        const struct ex_action *action = &submission->actions[i];
        const struct ex_stream *stream = &model->record->replays[state->replay].streams[action->queue];
        if (!action->wait && action->end <= stream->prologue_count)
            state->wanted[state->replay] |= (uint8_t)(1u << action->queue);
    }
}

static bool ex_host_action_step(struct ex_model *model, struct ex_state *state)
{
    const struct ex_replay *replay = &model->record->replays[state->replay];
    const struct ex_submission *submission = ex_submission_get(model->record, state->replay, state->busy);
    uint32_t at = state->at - ex_actions_begin(model);
    if (at < submission->action_count) {
        const struct ex_action *action = &submission->actions[at];
        if (action->wait && model->mutation.kind != EX_WITHOUT_HOST_WAITS &&
            !ex_reached(model, state, &replay->thresholds[action->phase]))
            return false;
        state->at++;
        return true;
    }
    if (model->record->scene->waited >> state->replay & 1) {
        if (!ex_ticket_reached(model, state, state->replay))
            return false;
        ex_ticket_check(model, state, state->replay);
    }
    state->replay++;
    state->at = state->busy = 0;
    return true;
}

/* False: the host waits, or is done. */
static bool ex_host_step(struct ex_model *model, struct ex_state *state)
{
    uint32_t queues = model->record->queue_count;
    if (state->replay == model->record->scene->replay_count)
        return ex_host_end_step(model, state);
    const struct ex_replay *replay = &model->record->replays[state->replay];
    if (state->at >= ex_actions_begin(model)) {
        if (!ex_host_action_step(model, state))
            return false;
        ex_queues_advance(model, state);
        return true;
    }
    if (state->at == 0 && model->mutation.kind != EX_WITHOUT_INSTANCE_WAIT &&
        !ex_reached(model, state, &replay->thresholds[EX_PHASE_INSTANCE]))
        return false;
    if (state->at == 1)
        ex_patch_check(model, state);
    if (state->at >= 2 && state->at < 2 + queues)
        ex_host_look(model, state, state->at - 2);
    if (state->at == 2 + queues) {
        if (!ex_reached(model, state, &replay->thresholds[EX_PHASE_DRAIN]))
            return false;
        ex_host_decide(model, state);
    }
    state->at++;
    ex_queues_advance(model, state);
    return true;
}

#endif
