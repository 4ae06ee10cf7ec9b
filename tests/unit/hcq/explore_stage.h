/* A context with two devices whose engines stand still, and the types of what explore_record.h writes down.
 */
#ifndef BW_TESTS_HCQ_EXPLORE_STAGE_H
#define BW_TESTS_HCQ_EXPLORE_STAGE_H

#include <stddef.h>

#include "drivers/host/packet.h"
#include "hcq/linked.h"
#include "tests/unit/hcq/rig.h"

enum {
    EX_DEVICES = 2,
    EX_QUEUES_MAX = 4, /* two of each device */
    EX_GRAPHS_MAX = 2,
    EX_CALLS_MAX = 8,
    EX_REPLAYS_MAX = 5,
    EX_BUFFERS = 4, /* even ones lie on device 0 */
    EX_INPUTS = 2,
    EX_INPUT_SETS = 2, /* given in turn */
    EX_BUFFER_BYTES = 64,
    EX_SPACES = EX_BUFFERS + EX_INPUT_SETS * EX_INPUTS,
    EX_PACKETS_MAX = 96, /* of one replay on one queue */
    EX_RANGES_MAX = 3,
    EX_ACTIONS_MAX = 32,
    EX_CHANGES_MAX = 256,
    EX_PHASES_MAX = 24,
    EX_STEPS_MAX =
        4096, /* of a signal word in one wait: more means that the host waits for what never comes */
    EX_NONE = 0xff,
};

/* A call of a scene. Spaces below EX_BUFFERS are buffers, the others are replay inputs. */
struct ex_call {
    bool kernel; /* reads and writes the target, reads the source; else a copy of target_bytes */
    uint8_t device;
    uint8_t target, source, target_offset, source_offset, target_bytes, source_bytes;
};

struct ex_scene {
    const char *name;
    struct ex_call calls[EX_GRAPHS_MAX][EX_CALLS_MAX];
    uint32_t call_count[EX_GRAPHS_MAX], graph_count;
    uint32_t replays[EX_REPLAYS_MAX], replay_count; /* which graph */
    uint32_t waited;                                /* bits: the host waits for that replay before the next */
    uint32_t instances;
    uint32_t input_count;
    uint64_t timeline_start;
    bool host_waits; /* device 1 cannot wait for signals: the host does */
};

struct ex_range {
    uint32_t space, begin, end;
    bool write;
};

/* Bytes of a linked graph's memory on a device, all instances. */
struct ex_memory {
    uint32_t graph, device;
    uint64_t begin, end;
};

enum ex_packet_kind { EX_OPERATION, EX_WAIT, EX_SIGNAL, EX_BARRIER };

struct ex_packet {
    enum ex_packet_kind kind;
    uint32_t graph, device, word; /* where it stands in the graph's template */
    bool prologue, ends_buffer;
    struct ex_memory buffer; /* that it is read from */
    /* operation */
    uint32_t call, range_count;
    struct ex_range ranges[EX_RANGES_MAX];
    struct ex_memory block; /* of its arguments, read while it runs; empty: none */
    /* wait, signal */
    uint32_t queue, slot; /* queue EX_NONE: of none that is used, and reached */
    uint64_t value;
    uint32_t flags; /* barrier */
};

/* What one replay gives to one queue. A prologue comes first, whether or not it is submitted. */
struct ex_stream {
    struct ex_packet packets[EX_PACKETS_MAX];
    uint32_t count, prologue_count;
};

/* "Every queue with a value has reached it." */
struct ex_threshold {
    bool wanted[EX_QUEUES_MAX];
    uint32_t slot[EX_QUEUES_MAX];
    uint64_t value[EX_QUEUES_MAX];
};

struct ex_action {
    bool wait;      /* for phase `phase`, else a submission to `queue`: packets [begin, end) of its stream */
    uint32_t phase; /* thresholds of the replay */
    uint32_t queue, begin, end;
};

/* What the host does once it knows which queues are busy. */
struct ex_submission {
    bool known;
    uint32_t action_count;
    struct ex_action actions[EX_ACTIONS_MAX];
};

/* Phases of a replay call: before it writes anything of the instance; before it submits anything; after so
 * many command buffers, prologues not counted. */
enum { EX_PHASE_INSTANCE, EX_PHASE_DRAIN, EX_PHASE_FIRST };

struct ex_replay {
    uint32_t graph;
    bool rolls; /* moves timelines to their other slots */
    struct ex_stream streams[EX_QUEUES_MAX];
    struct ex_submission submissions[1 << EX_QUEUES_MAX]; /* by busy queues */
    struct ex_memory changes[EX_CHANGES_MAX];             /* words that it writes */
    uint32_t change_count;
    uint32_t slot_before[EX_QUEUES_MAX]; /* where its look at the queues compares */
    uint64_t submitted_before[EX_QUEUES_MAX];
    struct ex_threshold thresholds[EX_PHASES_MAX], ticket;
};

struct ex_record {
    const struct ex_scene *scene;
    uint32_t queue_count;
    uint32_t queue_device[EX_QUEUES_MAX], queue_number[EX_QUEUES_MAX];
    uint64_t slot_origin[EX_QUEUES_MAX][BW_HCQ_SIGNAL_SLOTS];
    struct ex_replay replays[EX_REPLAYS_MAX];
    uint32_t waits, signals; /* of the graphs, as they count themselves */
    bool ok;
};

/* ---- a stage: a context with two devices that stand still ---- */

struct ex_stage;

struct ex_device {
    struct bw_driver_ops ops; /* first: found from the device */
    const struct bw_driver_ops *null_ops;
    struct ex_stage *stage;
};

struct ex_submitted {
    struct bw_hcq_queue *queue;
    uint64_t address;
    uint32_t word_count;
    uint32_t words[512]; /* as they were then */
};

struct ex_stage {
    const struct ex_scene *scene;
    struct ex_record *record;
    struct rig rig;
    struct ex_device devices[EX_DEVICES];
    struct bw_buffer *buffers[EX_SPACES];
    struct bw_linked_graph *linked[EX_GRAPHS_MAX];
    bool recording;
    struct ex_submitted submitted[EX_ACTIONS_MAX];
    uint32_t submitted_count, step_count; /* steps: without prologues */
    /* The instance's words as a replay found them. */
    uint32_t *found[EX_DEVICES];
    const struct bw_linked_graph *current;
    /* Which queue lags behind (EX_NONE: all go on together), and where it let the host go on. */
    uint32_t lagging;
    uint32_t moves;
    struct ex_threshold *thresholds; /* by phase */
};

static struct bw_hcq_queue *ex_queue(const struct ex_stage *stage, uint32_t queue)
{
    const struct ex_record *record = stage->record;
    return &bw_hcq_device_of(stage->rig.devices[record->queue_device[queue]])
                ->queues[record->queue_number[queue]];
}

static uint64_t ex_words_bytes(const struct bw_linked_graph *linked, uint32_t device)
{
    return linked->devices[device].memory
               ? linked->devices[device].stride_words * linked->instance_count * sizeof(uint32_t)
               : 0;
}

static bool ex_changed(const struct ex_stage *stage)
{
    for (uint32_t i = 0; stage->current && i < stage->current->device_count; i++) {
        uint64_t bytes = ex_words_bytes(stage->current, i);
        if (bytes && memcmp(stage->found[i], stage->current->devices[i].words, bytes) != 0)
            return true;
    }
    return false;
}

static uint32_t ex_phase(const struct ex_stage *stage)
{
    if (stage->submitted_count)
        return EX_PHASE_DRAIN + stage->step_count;
    return ex_changed(stage) ? EX_PHASE_DRAIN : EX_PHASE_INSTANCE;
}

static int ex_submit(struct bw_queue *queue, uint64_t address, uint32_t word_count)
{
    struct ex_stage *stage = ((const struct ex_device *)queue->device->ops)->stage;
    struct bw_hcq_device *hcq = bw_hcq_device_of(queue->device);
    if (!stage->recording)
        return 0;
    if (!BW_TRUE(stage->submitted_count < EX_ACTIONS_MAX) ||
        !BW_TRUE(word_count <= sizeof stage->submitted[0].words / sizeof(uint32_t)))
        return -EINVAL;
    struct ex_submitted *made = &stage->submitted[stage->submitted_count++];
    for (uint32_t i = 0; i < hcq->queue_count; i++)
        if (hcq->queues[i].queue == queue)
            made->queue = &hcq->queues[i];
    made->address = address;
    made->word_count = word_count;
    memcpy(made->words, (const void *)(uintptr_t)address, word_count * sizeof(uint32_t));
    bool prologue = false;
    for (uint32_t i = 0; i < stage->current->queue_count; i++) {
        const struct bw_linked_queue *linked = &stage->current->queues[i];
        const struct bw_linked_device *device = &stage->current->devices[linked->device];
        uint64_t word = (address - device->address) / sizeof(uint32_t) % device->stride_words;
        prologue |= linked->hcq == made->queue && linked->signal_count && linked->prologue.word_count &&
                    word == linked->word + linked->prologue.word;
    }
    stage->step_count += !prologue;
    return 0;
}

static int ex_flush(struct bw_queue *queue)
{
    return 0;
}

static void ex_signal_set(struct bw_hcq_queue *queue, uint64_t value)
{
    __atomic_store_n(queue->signal, value, __ATOMIC_RELEASE);
}

/* All but the lagging queue go far ahead (without one: to what they were given). False: they were there. */
static bool ex_others_move(struct ex_stage *stage)
{
    bool moved = false;
    for (uint32_t i = 0; i < stage->record->queue_count; i++) {
        struct bw_hcq_queue *queue = ex_queue(stage, i);
        uint64_t target =
            bw_hcq_queue_submitted(queue).value + (stage->lagging == EX_NONE ? 0 : EX_STEPS_MAX);
        if (i == stage->lagging || bw_hcq_queue_now(queue).value == target)
            continue;
        ex_signal_set(queue, target);
        moved = true;
    }
    return moved;
}

/* The host waits and nothing moves by itself. With the others far ahead it can only be for the one that lags:
 * its word goes up one by one until the host has what it waits for. */
static int ex_wait_interrupt(struct bw_device *device, uint64_t timeout_ns)
{
    struct ex_stage *stage = ((const struct ex_device *)device->ops)->stage;
    uint32_t phase = ex_phase(stage), lagging = stage->lagging;
    if (!BW_TRUE(stage->moves++ < EX_STEPS_MAX))
        abort();
    if (ex_others_move(stage) || lagging == EX_NONE)
        return 0;
    struct bw_hcq_queue *queue = ex_queue(stage, lagging);
    uint64_t next = bw_hcq_queue_now(queue).value + 1;
    struct ex_threshold *threshold = &stage->thresholds[phase];
    ex_signal_set(queue, next);
    threshold->wanted[lagging] = true;
    threshold->slot[lagging] = queue->slot;
    threshold->value[lagging] = next;
    return 0;
}

static bool ex_device_stop(struct ex_stage *stage, uint32_t index)
{
    struct ex_device *device = &stage->devices[index];
    struct bw_device *null = stage->rig.devices[index];
    device->null_ops = null->ops;
    device->ops = *null->ops;
    device->ops.submit = ex_submit;
    device->ops.flush = ex_flush;
    device->ops.wait_interrupt = ex_wait_interrupt;
    device->stage = stage;
    null->ops = &device->ops;
    if (index == 1 && stage->scene->host_waits)
        null->caps.device_wait = false;
    return true;
}

static struct bw_range ex_range_make(const struct ex_stage *stage, uint32_t space, uint32_t offset,
                                     uint32_t bytes)
{
    return (struct bw_range){space < EX_BUFFERS ? stage->buffers[space] : NULL, space - EX_BUFFERS, offset,
                             bytes};
}

/* The salt of a kernel is the number of its call, so that it can be told in the argument block. */
static bool ex_call_add(struct ex_stage *stage, struct bw_graph *graph, const struct ex_call *call,
                        uint32_t number)
{
    struct bw_range target = ex_range_make(stage, call->target, call->target_offset, call->target_bytes),
                    source = ex_range_make(stage, call->source, call->source_offset,
                                           call->kernel ? call->source_bytes : call->target_bytes);
    struct rig *rig = &stage->rig;
    return BW_OK(call->kernel ? mix_add(rig, graph, call->device, target, source, number, -1)
                              : bw_graph_copy(graph, rig->devices[call->device], target, source, &rig->err),
                 &rig->err);
}

static bool ex_graph_link(struct ex_stage *stage, uint32_t index)
{
    const struct ex_scene *scene = stage->scene;
    struct bw_link_options options = {.size = sizeof options, .instances = scene->instances};
    struct bw_graph *graph = rig_graph(&stage->rig);
    bool ok = true;
    for (uint32_t i = 0; i < scene->input_count && ok; i++) /* as buffers: even ones on device 0 */
        ok = BW_OK(bw_graph_input(graph, i, stage->rig.devices[i % EX_DEVICES], &stage->rig.err),
                   &stage->rig.err);
    for (uint32_t i = 0; i < scene->call_count[index] && ok; i++)
        ok = ex_call_add(stage, graph, &scene->calls[index][i], i);
    if (ok)
        ok = BW_OK(bw_graph_link(graph, &options, &stage->linked[index], &stage->rig.err), &stage->rig.err);
    bw_graph_destroy(graph);
    return ok;
}

static bool ex_stage_open(struct ex_stage *stage, struct ex_record *record)
{
    *stage = (struct ex_stage){.scene = record->scene, .record = record, .lagging = EX_NONE};
    struct bw_ctx_config config = {.size = sizeof config, .timeline_start = record->scene->timeline_start};
    bool ok = rig_open(&stage->rig, &config, (const char *const[]){"null", "null", NULL});
    for (uint32_t i = 0; i < EX_DEVICES && ok; i++)
        ok = ex_device_stop(stage, i);
    for (uint32_t i = 0; i < EX_SPACES && ok; i++) {
        stage->buffers[i] = rig_buffer(&stage->rig, i % EX_DEVICES, EX_BUFFER_BYTES, 0);
        ok = stage->buffers[i] != NULL;
    }
    for (uint32_t i = 0; i < record->scene->graph_count && ok; i++)
        ok = ex_graph_link(stage, i);
    return ok;
}

/* All engines are done with all that they were given. */
static void ex_settle(struct ex_stage *stage)
{
    for (uint32_t i = 0; i < stage->rig.device_count; i++) {
        struct bw_hcq_device *device = bw_hcq_device_of(stage->rig.devices[i]);
        for (uint32_t k = 0; device && k < device->queue_count; k++)
            ex_signal_set(&device->queues[k], bw_hcq_queue_submitted(&device->queues[k]).value);
    }
}

static void ex_stage_close(struct ex_stage *stage)
{
    ex_settle(stage);
    for (uint32_t i = 0; i < EX_GRAPHS_MAX; i++)
        bw_linked_graph_destroy(stage->linked[i]);
    for (uint32_t i = 0; i < EX_SPACES; i++)
        bw_buffer_destroy(stage->buffers[i]);
    for (uint32_t i = 0; i < EX_DEVICES; i++) {
        free(stage->found[i]);
        if (stage->devices[i].null_ops)
            stage->rig.devices[i]->ops = stage->devices[i].null_ops;
    }
    rig_close(&stage->rig);
}

static bool ex_stage_replay(struct ex_stage *stage, uint32_t replay, uint64_t *ticket)
{
    uint32_t set = replay % EX_INPUT_SETS;
    struct bw_replay given = {.inputs = &stage->buffers[EX_BUFFERS + set * EX_INPUTS],
                              .input_count = stage->scene->input_count};
    return BW_OK(
        bw_linked_graph_replay(stage->linked[stage->scene->replays[replay]], &given, ticket, &stage->rig.err),
        &stage->rig.err);
}

/* Opens a stage where replays 0 to replay - 1 are over, and notes what the next one finds. */
static bool ex_stage_at(struct ex_stage *stage, struct ex_record *record, uint32_t replay)
{
    uint64_t ticket;
    bool ok = ex_stage_open(stage, record);
    for (uint32_t i = 0; i < replay && ok; i++) {
        ok = ex_stage_replay(stage, i, &ticket);
        ex_settle(stage);
    }
    if (!ok)
        return false;
    stage->current = stage->linked[record->scene->replays[replay]];
    for (uint32_t i = 0; i < stage->current->device_count && ok; i++) {
        uint64_t bytes = ex_words_bytes(stage->current, i);
        stage->found[i] = malloc(bytes + 1);
        ok = BW_TRUE(stage->found[i] != NULL);
        if (ok && bytes)
            memcpy(stage->found[i], stage->current->devices[i].words, bytes);
    }
    stage->recording = true;
    return ok;
}

#endif
