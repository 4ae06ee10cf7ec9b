/* Recording: see record.h. What an engine does is noted under one lock, and before it is done where it
 * writes, so that the value which a word had before its first event is known. */
#include "mock/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"
#include "mock/engine/queue.h"

struct bw_mock_recorder {
    struct bw_mock_recording recording;
    struct bw_map queue_numbers, word_numbers; /* by the queue's and the word's address */
    int failed;
};

void bw_mock_recording_free(struct bw_mock_recording *recording)
{
    bw_vec_free(&recording->queues);
    bw_vec_free(&recording->words);
    bw_vec_free(&recording->events);
}

static void recorder_free(struct bw_mock_recorder *recorder)
{
    bw_map_free(&recorder->queue_numbers);
    bw_map_free(&recorder->word_numbers);
    free(recorder);
}

int bw_mock_record_begin(struct bw_sys *sys, struct bw_err *err)
{
    struct bw_mock *machine = bw_mock_of(sys);
    struct bw_mock_recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return bw_fail(err, -ENOMEM, "mock", "recording");
    pthread_mutex_lock(&machine->record_lock);
    bool busy = machine->recorder != NULL;
    if (!busy)
        machine->recorder = recorder;
    atomic_store(&machine->records, 1);
    pthread_mutex_unlock(&machine->record_lock);
    if (!busy)
        return 0;
    free(recorder);
    return bw_fail(err, -EALREADY, "mock", "a recording is under way");
}

static struct bw_mock_recorder *recorder_take(struct bw_mock *machine)
{
    pthread_mutex_lock(&machine->record_lock);
    struct bw_mock_recorder *recorder = machine->recorder;
    machine->recorder = NULL;
    atomic_store(&machine->records, 0);
    pthread_mutex_unlock(&machine->record_lock);
    return recorder;
}

int bw_mock_record_end(struct bw_sys *sys, struct bw_mock_recording *recording, struct bw_err *err)
{
    struct bw_mock_recorder *recorder = recorder_take(bw_mock_of(sys));
    *recording = (struct bw_mock_recording){0};
    if (!recorder)
        return bw_fail(err, -ENOENT, "mock", "no recording is under way");
    int rc = recorder->failed;
    if (rc) {
        bw_fail(err, rc, "mock", "recording of %zu events", recorder->recording.events.count);
        bw_mock_recording_free(&recorder->recording);
    } else {
        *recording = recorder->recording;
    }
    recorder_free(recorder);
    return rc;
}

void bw_mock_record_drop(struct bw_mock *machine)
{
    struct bw_mock_recorder *recorder = recorder_take(machine);
    if (!recorder)
        return;
    bw_mock_recording_free(&recorder->recording);
    recorder_free(recorder);
}

/* ---- events ---- */

static int queue_number(struct bw_mock_recorder *recorder, const struct bw_mock_queue *queue,
                        uint32_t *number)
{
    uint64_t found, key = (uintptr_t)queue;
    if (!bw_map_get(&recorder->queue_numbers, key, &found)) {
        struct bw_mock_record_queue fresh = {.gpu = queue->context->gpu->index,
                                             .engine = queue->type == BW_MOCK_QUEUE_SDMA
                                                           ? queue->sdma_engine
                                                           : (uint32_t)BW_MOCK_RECORD_NO_ENGINE};
        memcpy(fresh.name, queue->name, sizeof fresh.name);
        found = recorder->recording.queues.count;
        if (bw_vec_push(&recorder->recording.queues, fresh) ||
            bw_map_set(&recorder->queue_numbers, key, found))
            return -ENOMEM;
    }
    *number = (uint32_t)found;
    return 0;
}

/* The word by where it really is: GPUs and the host see it at addresses of their own. False: not mapped. */
static bool word_key(struct bw_mock_queue *queue, uint64_t va, uint64_t *key)
{
    struct bw_mock_mapping mapping;
    if (!bw_mock_space_find(&queue->context->space, va, &mapping))
        return false;
    *key = (uintptr_t)mapping.host + (va - mapping.va);
    return true;
}

static int word_number(struct bw_mock_recorder *recorder, struct bw_mock_queue *queue, uint64_t va,
                       uint32_t *number)
{
    struct bw_mock_violation violation;
    uint64_t found, key;
    if (!word_key(queue, va, &key))
        return -EFAULT;
    if (!bw_map_get(&recorder->word_numbers, key, &found)) {
        struct bw_mock_record_word fresh = {.key = key};
        if (bw_mock_space_read(&queue->context->space, va, &fresh.initial, sizeof fresh.initial, &violation))
            return -EFAULT;
        found = recorder->recording.words.count;
        if (bw_vec_push(&recorder->recording.words, fresh) || bw_map_set(&recorder->word_numbers, key, found))
            return -ENOMEM;
    }
    *number = (uint32_t)found;
    return 0;
}

/* What cannot be read or written fails in the packet itself, by name: it is no event. */
static void event_add(struct bw_mock_recorder *recorder, struct bw_mock_queue *queue, uint64_t va,
                      struct bw_mock_event event)
{
    int rc = queue_number(recorder, queue, &event.queue);
    if (!rc && event.kind != BW_MOCK_EVENT_COPY)
        rc = word_number(recorder, queue, va, &event.word);
    if (!rc && recorder->recording.events.count >= BW_MOCK_RECORD_EVENTS_MAX)
        rc = -E2BIG;
    if (!rc)
        rc = bw_vec_push(&recorder->recording.events, event);
    if (rc && rc != -EFAULT)
        recorder->failed = rc;
}

/* The lock is held when a recording is under way. */
static struct bw_mock_recorder *record_enter(struct bw_mock *machine)
{
    if (!atomic_load_explicit(&machine->records, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&machine->record_lock);
    if (machine->recorder)
        return machine->recorder;
    pthread_mutex_unlock(&machine->record_lock);
    return NULL;
}

static void record_leave(struct bw_mock *machine)
{
    pthread_mutex_unlock(&machine->record_lock);
}

static uint32_t owner_of(struct bw_mock_queue *queue, uint64_t va)
{
    struct bw_mock *machine = queue->machine;
    struct bw_mock_mapping mapping;
    if (!bw_mock_space_find(&queue->context->space, va, &mapping))
        return BW_MOCK_RECORD_HOST;
    if (mapping.peer)
        return mapping.peer - 1;
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        const struct bw_mock_pool *vram = &machine->gpus[i].vram;
        if (mapping.host >= vram->host && mapping.host < vram->host + vram->span)
            return i;
    }
    return BW_MOCK_RECORD_HOST;
}

void bw_mock_record_copy(struct bw_mock_queue *queue, uint64_t target_va, uint64_t source_va,
                         uint64_t size_bytes)
{
    struct bw_mock_recorder *recorder = record_enter(queue->machine);
    if (!recorder)
        return;
    struct bw_mock_event event = {.kind = BW_MOCK_EVENT_COPY,
                                  .from = owner_of(queue, source_va),
                                  .to = owner_of(queue, target_va),
                                  .size_bytes = size_bytes};
    event_add(recorder, queue, 0, event);
    record_leave(queue->machine);
}

void bw_mock_record_wait(struct bw_mock_queue *queue, uint64_t va, uint32_t function, uint32_t mask,
                         uint32_t value)
{
    struct bw_mock_recorder *recorder = record_enter(queue->machine);
    if (!recorder)
        return;
    struct bw_mock_event event = {
        .kind = BW_MOCK_EVENT_WAIT, .function = function, .mask = mask, .value = value};
    event_add(recorder, queue, va, event);
    record_leave(queue->machine);
}

void bw_mock_record_write(struct bw_mock_queue *queue, uint64_t va, uint64_t value, uint32_t bytes)
{
    struct bw_mock_recorder *recorder = record_enter(queue->machine);
    if (!recorder)
        return;
    for (uint32_t at = 0; at < bytes; at += 4) {
        struct bw_mock_event event = {.kind = BW_MOCK_EVENT_WRITE, .value = (uint32_t)(value >> (8 * at))};
        event_add(recorder, queue, va + at, event);
    }
    record_leave(queue->machine);
}
