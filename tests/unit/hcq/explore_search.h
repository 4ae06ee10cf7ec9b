/* The search through all states of explore_model.h, breadth first, and how it came to one.
 *
 * Reduction: what only enables later steps, and is checked most strictly as early as it can be, is done at
 * once: taking a packet, and what the host does but for a look at a queue that is busy. An operation ends
 * when it has to, at a signal or a barrier, since no check is stricter on one that has ended. What others see
 * stays free: the writing of signals, barriers that end something, the last packet of a command buffer (its
 * memory is free then), and looks. Every step goes forward, so there are no cycles. A test compares the
 * verdicts with those of the search without reduction.
 */
#ifndef BW_TESTS_HCQ_EXPLORE_SEARCH_H
#define BW_TESTS_HCQ_EXPLORE_SEARCH_H

#include "tests/unit/hcq/explore_model.h"

static void ex_successor(struct ex_model *model, const struct ex_state *state, uint32_t process,
                         struct ex_place place, bool ends)
{
    struct ex_step step = {model->from, (uint8_t)process, place.replay, place.at, ends};
    ex_state_add(model, state, &step);
}

/* Only a look at a queue that is busy may come out otherwise later. */
static bool ex_host_is_free(const struct ex_model *model, const struct ex_state *state)
{
    struct ex_state after = *state;
    uint32_t queue = state->at - 2u;
    if (state->replay == model->record->scene->replay_count || queue >= model->record->queue_count)
        return false;
    ex_host_look(model, &after, queue);
    return after.busy != state->busy;
}

static bool ex_take_is_free(const struct ex_model *model, const struct ex_state *state, uint32_t queue)
{
    const struct ex_packet *packet = ex_packet(model, queue, state->queues[queue].next);
    return ex_barrier_ends(model, state, queue, packet) ||
           (packet->ends_buffer && (packet->kind != EX_SIGNAL || ex_removed(model, packet)));
}

/* A step that is done at once: the only one to look at. The host's first: what it writes, an engine may have
 * yet to read. */
static bool ex_step_at_once(struct ex_model *model, const struct ex_state *state)
{
    struct ex_state after = *state;
    if (!ex_host_is_free(model, state) && ex_host_step(model, &after)) {
        ex_successor(model, &after, EX_NONE, (struct ex_place){state->replay, state->at}, false);
        return true;
    }
    for (uint32_t q = 0; q < model->record->queue_count; q++) {
        if (!ex_queue_can_take(model, state, q) || ex_take_is_free(model, state, q))
            continue;
        after = *state;
        ex_queue_take(model, &after, q);
        ex_successor(model, &after, q, state->queues[q].next, false);
        return true;
    }
    return false;
}

static bool ex_is_end(const struct ex_model *model, const struct ex_state *state)
{
    bool end =
        state->replay == model->record->scene->replay_count && state->at == model->record->scene->graph_count;
    for (uint32_t q = 0; q < model->record->queue_count && end; q++) {
        const struct ex_queue_state *queue = &state->queues[q];
        end = (model->reduce || queue->running[0].replay == EX_NONE) &&
              queue->next.replay + 1u == state->replay &&
              queue->next.at == model->record->replays[queue->next.replay].streams[q].count;
    }
    return end;
}

static void ex_expand(struct ex_model *model, const struct ex_state *state)
{
    uint32_t moved = 0;
    if (model->reduce && ex_step_at_once(model, state))
        return;
    for (uint32_t q = 0; q < model->record->queue_count; q++) {
        const struct ex_queue_state *queue = &state->queues[q];
        if (ex_queue_can_take(model, state, q)) {
            struct ex_state after = *state;
            ex_queue_take(model, &after, q);
            ex_successor(model, &after, q, queue->next, false);
            moved++;
        }
        for (uint32_t i = 0; i < EX_RUNNING_MAX && queue->running[i].replay != EX_NONE; i++) {
            if (!ex_can_end(model, state, q, i))
                continue;
            struct ex_state after = *state;
            ex_queue_end(model, &after, q, i);
            ex_successor(model, &after, q, queue->running[i], true);
            moved++;
        }
    }
    struct ex_state after = *state;
    if (ex_host_step(model, &after)) {
        ex_successor(model, &after, EX_NONE, (struct ex_place){state->replay, state->at}, false);
        moved++;
    }
    if (!moved && !ex_is_end(model, state))
        ex_fail(model, EX_DEADLOCK);
}

static void ex_begin(struct ex_model *model)
{
    struct ex_state first;
    struct ex_step none = {0};
    memset(&first, 0, sizeof first);
    for (uint32_t q = 0; q < EX_QUEUES_MAX; q++) {
        memset(first.queues[q].running, EX_NONE, sizeof first.queues[q].running);
        /* The first replay begins with its prologues: the programs are new. */
        first.queues[q].next = (struct ex_place){0, 0};
    }
    model->states.count = model->steps.count = 0;
    if (model->table)
        memset(model->table, 0, model->table_capacity * sizeof *model->table);
    ex_state_add(model, &first, &none);
}

static enum ex_verdict ex_search(struct ex_model *model, const struct ex_mutation *mutation, bool reduce)
{
    model->mutation = *mutation;
    model->reduce = reduce;
    model->verdict = EX_FINE;
    ex_begin(model);
    for (model->from = 0; model->from < model->states.count && model->verdict == EX_FINE; model->from++) {
        struct ex_state state = model->states.data[model->from];
        ex_expand(model, &state);
        if (model->states.count > EX_STATES_MAX || !model->record->ok)
            ex_fail(model, EX_TOO_MUCH);
    }
    return model->verdict;
}

/* How the search came to where it ended. */
static void ex_path_print(const struct ex_model *model)
{
    static const char *const kinds[] = {"operation", "wait", "signal", "barrier"};
    uint32_t path[512], length = 0;
    for (uint32_t at = model->from - 1; at && length < 512; at = model->steps.data[at].parent)
        path[length++] = at;
    while (length) {
        const struct ex_step *step = &model->steps.data[path[--length]];
        struct ex_place place = {step->replay, step->at};
        if (step->process == EX_NONE) {
            printf("      host: replay %u, step %u\n", step->replay, step->at);
            continue;
        }
        const struct ex_packet *packet = ex_packet(model, step->process, place);
        printf("      queue %u: replay %u, packet %u (%s%s) %s", step->process, step->replay, step->at,
               packet->prologue ? "prologue " : "", kinds[packet->kind], step->ends ? "ends" : "begins");
        if (packet->kind == EX_OPERATION)
            printf(", call %u", packet->call);
        else if (packet->kind != EX_BARRIER)
            printf(", queue %u %#" PRIx64, packet->queue, packet->value);
        printf("\n");
    }
}

#endif
