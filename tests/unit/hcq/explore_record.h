/* What hcq really gives to two devices, written down for explore_model.h: every command buffer of every
 * replay, decoded from the words that `submit` was called with, and what the host's own waits wait for,
 * measured.
 *
 * The devices are null devices whose engines stand still: `submit` writes down instead of running, and the
 * signal words move only when this file moves them. A replay is recorded in a context of its own, after the
 * replays before it, once for each set of queues that the host finds busy: nothing else that hcq decides at
 * replay depends on what the engines did. */
#ifndef BW_TESTS_HCQ_EXPLORE_RECORD_H
#define BW_TESTS_HCQ_EXPLORE_RECORD_H

#include "tests/unit/hcq/explore_stage.h"

/* ---- decoding ---- */

static bool ex_address_find(const struct ex_stage *stage, uint64_t address, uint32_t *space, uint32_t *offset)
{
    for (uint32_t i = 0; i < EX_SPACES; i++) {
        uint64_t begin = stage->buffers[i]->block->memory.address + stage->buffers[i]->offset;
        if (address - begin < EX_BUFFER_BYTES) {
            *space = i;
            *offset = (uint32_t)(address - begin);
            return true;
        }
    }
    return BW_TRUE(!"an address of one of the buffers");
}

/* What the scene says that the call touches in that replay. */
static uint32_t ex_space_of(uint32_t replay, uint32_t space)
{
    return space < EX_BUFFERS ? space : space + replay % EX_INPUT_SETS * EX_INPUTS;
}

static bool ex_range_read(const struct ex_stage *stage, uint64_t address, uint64_t bytes, bool write,
                          struct ex_packet *packet)
{
    struct ex_range *range = &packet->ranges[packet->range_count++];
    bool ok = ex_address_find(stage, address, &range->space, &range->begin);
    range->end = range->begin + (uint32_t)bytes;
    range->write = write;
    return ok && BW_TRUE(range->end <= EX_BUFFER_BYTES);
}

static bool ex_range_is(const struct ex_range *range, uint32_t space, uint32_t offset, uint32_t bytes)
{
    return range->space == space && range->begin == offset && range->end == offset + bytes;
}

/* The call of a copy: the same bytes, and not met before. */
static bool ex_copy_find(const struct ex_stage *stage, uint32_t replay, struct ex_packet *packet,
                         uint32_t *met)
{
    const struct ex_scene *scene = stage->scene;
    uint32_t graph = scene->replays[replay];
    for (uint32_t i = 0; i < scene->call_count[graph]; i++) {
        const struct ex_call *call = &scene->calls[graph][i];
        if (call->kernel || *met >> i & 1 ||
            !ex_range_is(&packet->ranges[0], ex_space_of(replay, call->target), call->target_offset,
                         call->target_bytes) ||
            !ex_range_is(&packet->ranges[1], ex_space_of(replay, call->source), call->source_offset,
                         call->target_bytes))
            continue;
        *met |= 1u << i;
        packet->call = i;
        return true;
    }
    return BW_TRUE(!"a copy of the graph");
}

static bool ex_memory_find(const struct ex_stage *stage, uint64_t address, uint64_t bytes,
                           struct ex_memory *memory)
{
    for (uint32_t i = 0; i < stage->current->device_count; i++) {
        const struct bw_linked_device *device = &stage->current->devices[i];
        if (device->memory && address - device->address < ex_words_bytes(stage->current, i)) {
            *memory = (struct ex_memory){
                .device = i, .begin = address - device->address, .end = address - device->address + bytes};
            return true;
        }
    }
    return BW_TRUE(!"memory of the linked graph");
}

struct ex_mix_block {
    uint64_t target, source;
    uint32_t target_bytes, source_bytes, salt;
};

static bool ex_kernel_read(const struct ex_stage *stage, uint32_t replay, const uint32_t *words,
                           struct ex_packet *packet, uint32_t *met)
{
    struct ex_mix_block block;
    uint64_t address = bw_host_field64(words + 3);
    if (!ex_memory_find(stage, address, sizeof block, &packet->block))
        return false;
    packet->block.graph = packet->graph;
    memcpy(&block, (const void *)(uintptr_t)address, sizeof block);
    const struct ex_scene *scene = stage->scene;
    uint32_t graph = scene->replays[replay];
    if (!BW_TRUE(block.salt < scene->call_count[graph]) || !BW_TRUE(!(*met >> block.salt & 1)))
        return false;
    const struct ex_call *call = &scene->calls[graph][block.salt];
    *met |= 1u << block.salt;
    packet->call = block.salt;
    return ex_range_read(stage, block.target, block.target_bytes, true, packet) &&
           ex_range_read(stage, block.source, block.source_bytes, false, packet) &&
           ex_range_read(stage, block.target, block.target_bytes, false, packet) && BW_TRUE(call->kernel) &&
           BW_TRUE(ex_range_is(&packet->ranges[0], ex_space_of(replay, call->target), call->target_offset,
                               call->target_bytes)) &&
           BW_TRUE(ex_range_is(&packet->ranges[1], ex_space_of(replay, call->source), call->source_offset,
                               call->source_bytes));
}

/* Whose signal word that is. */
static bool ex_signal_read(const struct ex_stage *stage, const uint32_t *words, struct ex_packet *packet)
{
    uint64_t address = bw_host_field64(words + 1);
    packet->value = bw_host_field64(words + 3);
    for (uint32_t i = 0; i < stage->record->queue_count; i++) {
        const struct bw_hcq_queue *queue = ex_queue(stage, i);
        uint64_t slot = (address - queue->owner->signals->memory.address) / BW_HCQ_SIGNAL_BYTES -
                        (uint64_t)queue->number * BW_HCQ_SIGNAL_SLOTS;
        if (slot < BW_HCQ_SIGNAL_SLOTS) {
            packet->queue = i;
            packet->slot = (uint32_t)slot;
            return true;
        }
    }
    packet->queue = EX_NONE;
    return BW_TRUE(packet->kind == EX_WAIT && packet->prologue) &&
           BW_TRUE(*(const uint64_t *)(uintptr_t)address == packet->value);
}

/* False: not a packet that a null device knows. */
static bool ex_packet_read(const struct ex_stage *stage, uint32_t replay, const uint32_t *words,
                           struct ex_packet *packet, uint32_t *met)
{
    switch (bw_host_header_opcode(words[0])) {
    case BW_HOST_OP_KERNEL:
        packet->kind = EX_OPERATION;
        return ex_kernel_read(stage, replay, words, packet, met);
    case BW_HOST_OP_COPY:
        packet->kind = EX_OPERATION;
        return ex_range_read(stage, bw_host_field64(words + 1), bw_host_field64(words + 5), true, packet) &&
               ex_range_read(stage, bw_host_field64(words + 3), bw_host_field64(words + 5), false, packet) &&
               ex_copy_find(stage, replay, packet, met);
    case BW_HOST_OP_WAIT:
        packet->kind = EX_WAIT;
        return ex_signal_read(stage, words, packet);
    case BW_HOST_OP_SIGNAL:
        packet->kind = EX_SIGNAL;
        return ex_signal_read(stage, words, packet) && BW_TRUE(packet->queue != EX_NONE);
    case BW_HOST_OP_BARRIER:
        packet->kind = EX_BARRIER;
        packet->flags = words[1];
        return true;
    default:
        return BW_TRUE(!"a packet of a graph");
    }
}

static uint32_t ex_queue_of(const struct ex_stage *stage, const struct bw_hcq_queue *queue)
{
    for (uint32_t i = 0; i < stage->record->queue_count; i++)
        if (ex_queue(stage, i) == queue)
            return i;
    return EX_NONE;
}

/* Appends the packets of one command buffer to `stream`. */
static bool ex_buffer_read(const struct ex_stage *stage, uint32_t replay, const struct ex_submitted *made,
                           bool prologue, struct ex_stream *stream, uint32_t *met)
{
    struct ex_packet common = {.graph = stage->scene->replays[replay], .prologue = prologue};
    if (!ex_memory_find(stage, made->address, made->word_count * sizeof(uint32_t), &common.buffer))
        return false;
    common.buffer.graph = common.graph;
    common.device = common.buffer.device;
    uint64_t stride = stage->current->devices[common.device].stride_words;
    for (uint32_t at = 0; at < made->word_count;) {
        const uint32_t *words = made->words + at;
        uint32_t length = bw_host_header_words(words[0]);
        struct ex_packet packet = common;
        if (!BW_TRUE(length > 0 && length <= made->word_count - at) ||
            !BW_TRUE(stream->count < EX_PACKETS_MAX))
            return false;
        packet.word = (uint32_t)((common.buffer.begin / sizeof(uint32_t) + at) % stride);
        at += length;
        packet.ends_buffer = at == made->word_count;
        if (bw_host_header_opcode(words[0]) == BW_HOST_OP_NOP && !packet.ends_buffer)
            continue;
        if (!ex_packet_read(stage, replay, words, &packet, met))
            return false;
        stream->packets[stream->count++] = packet;
    }
    return true;
}

/* ---- recording one replay ---- */

/* Nothing that was submitted was written afterwards. */
static bool ex_words_stay(const struct ex_stage *stage)
{
    bool ok = true;
    for (uint32_t i = 0; i < stage->submitted_count && ok; i++) {
        const struct ex_submitted *made = &stage->submitted[i];
        ok = BW_BYTES((const void *)(uintptr_t)made->address, made->words,
                      made->word_count * sizeof(uint32_t));
    }
    return ok;
}

static bool ex_is_prologue(const struct ex_stage *stage, const struct ex_submitted *made)
{
    for (uint32_t i = 0; i < stage->current->queue_count; i++) {
        const struct bw_linked_queue *queue = &stage->current->queues[i];
        const struct bw_linked_device *device = &stage->current->devices[queue->device];
        if (queue->hcq != made->queue || !queue->signal_count || !queue->prologue.word_count)
            continue;
        uint64_t word = (made->address - device->address) / sizeof(uint32_t) % device->stride_words;
        return word == queue->word + queue->prologue.word;
    }
    return false;
}

static bool ex_packets_equal(const struct ex_packet *a, const struct ex_packet *b)
{
    return a->kind == b->kind && a->word == b->word && a->call == b->call && a->queue == b->queue &&
           a->slot == b->slot && a->value == b->value && a->flags == b->flags &&
           a->ends_buffer == b->ends_buffer && memcmp(a->ranges, b->ranges, sizeof a->ranges) == 0;
}

/* Fresh packets stand in `known` already, or are the first that are seen. */
static bool ex_stream_merge(struct ex_stream *known, const struct ex_packet *packets, uint32_t count,
                            uint32_t begin)
{
    bool ok = BW_TRUE(begin + count <= EX_PACKETS_MAX) && BW_TRUE(begin <= known->count);
    for (uint32_t i = 0; i < count && ok; i++) {
        if (begin + i == known->count)
            known->packets[known->count++] = packets[i];
        else
            ok = BW_TRUE(ex_packets_equal(&known->packets[begin + i], &packets[i]));
    }
    return ok;
}

/* Which packets of which queue each submission is, with what the host waits for in between. */
static bool ex_submission_read(struct ex_stage *stage, uint32_t replay, struct ex_submission *submission)
{
    struct ex_replay *into = &stage->record->replays[replay];
    uint32_t at[EX_QUEUES_MAX], step = 0, met = 0;
    struct ex_stream *fresh = calloc(1, sizeof *fresh);
    bool ok = BW_TRUE(fresh != NULL);
    for (uint32_t i = 0; i < EX_QUEUES_MAX; i++)
        at[i] = into->streams[i].prologue_count;
    for (uint32_t i = 0; i < stage->submitted_count && ok; i++) {
        const struct ex_submitted *made = &stage->submitted[i];
        uint32_t queue = ex_queue_of(stage, made->queue);
        bool prologue = ex_is_prologue(stage, made);
        fresh->count = 0;
        ok = BW_TRUE(queue != EX_NONE) && ex_buffer_read(stage, replay, made, prologue, fresh, &met) &&
             BW_TRUE(submission->action_count + 2 <= EX_ACTIONS_MAX);
        if (!ok)
            break;
        struct ex_stream *stream = &into->streams[queue];
        if (prologue && !stream->prologue_count) /* the first recording has all prologues */
            stream->prologue_count = at[queue] = fresh->count;
        uint32_t begin = prologue ? 0 : at[queue];
        ok = ex_stream_merge(stream, fresh->packets, fresh->count, begin);
        at[queue] = prologue ? at[queue] : begin + fresh->count;
        submission->actions[submission->action_count++] =
            (struct ex_action){.queue = queue, .begin = begin, .end = begin + fresh->count};
        step += !prologue;
        if (ok && !prologue && BW_TRUE(EX_PHASE_DRAIN + step < EX_PHASES_MAX))
            submission->actions[submission->action_count++] =
                (struct ex_action){.wait = true, .phase = EX_PHASE_DRAIN + step};
    }
    free(fresh);
    return ok && BW_EQ(met, (1u << stage->scene->call_count[into->graph]) - 1); /* each call, once */
}

static bool ex_changes_read(struct ex_stage *stage, struct ex_replay *replay)
{
    bool ok = true;
    replay->change_count = 0;
    for (uint32_t i = 0; i < stage->current->device_count; i++) {
        uint64_t count = ex_words_bytes(stage->current, i) / sizeof(uint32_t);
        for (uint64_t word = 0; word < count && ok; word++) {
            if (stage->found[i][word] == stage->current->devices[i].words[word])
                continue;
            ok = BW_TRUE(replay->change_count < EX_CHANGES_MAX);
            if (ok)
                replay->changes[replay->change_count++] = (struct ex_memory){
                    replay->graph, i, word * sizeof(uint32_t), (word + 1) * sizeof(uint32_t)};
        }
    }
    return ok;
}

/* busy: bits of queues that are not done with earlier work when the host looks. */
static bool ex_submission_record(struct ex_record *record, uint32_t replay, uint32_t busy)
{
    struct ex_stage *stage = calloc(1, sizeof *stage);
    struct ex_replay *into = &record->replays[replay];
    struct ex_submission *submission = &into->submissions[busy];
    uint64_t ticket;
    bool ok = BW_TRUE(stage != NULL) && ex_stage_at(stage, record, replay);
    for (uint32_t i = 0; i < record->queue_count && ok; i++) {
        if (busy >> i & 1)
            ex_signal_set(ex_queue(stage, i), into->submitted_before[i] - 1);
    }
    ok = ok && ex_stage_replay(stage, replay, &ticket) && ex_words_stay(stage) &&
         ex_submission_read(stage, replay, submission);
    if (ok && !into->change_count)
        ok = ex_changes_read(stage, into);
    submission->known = true;
    if (stage)
        ex_stage_close(stage);
    free(stage);
    return ok;
}

/* ---- what the host waits for ---- */

/* In a replay, or in a wait for its ticket. */
static bool ex_threshold_measure(struct ex_record *record, uint32_t replay, uint32_t queue, bool ticket)
{
    struct ex_stage *stage = calloc(1, sizeof *stage);
    struct ex_replay *into = &record->replays[replay];
    uint64_t number = 0;
    bool ok = BW_TRUE(stage != NULL) && ex_stage_at(stage, record, replay);
    if (ok && ticket)
        ok = ex_stage_replay(stage, replay, &number);
    for (uint32_t i = 0; i < record->queue_count && ok && !ticket; i++) {
        into->slot_before[i] = ex_queue(stage, i)->slot;
        into->submitted_before[i] = bw_hcq_queue_submitted(ex_queue(stage, i)).value;
    }
    if (ok) {
        stage->lagging = queue;
        stage->thresholds = ticket ? &into->ticket : into->thresholds;
        stage->submitted_count = stage->step_count = 0;
        if (ticket)
            stage->current = NULL;
        for (uint32_t i = 0; i < record->queue_count; i++)
            ex_signal_set(ex_queue(stage, i),
                          i == queue ? record->slot_origin[i][ex_queue(stage, i)->slot]
                                     : bw_hcq_queue_submitted(ex_queue(stage, i)).value + EX_STEPS_MAX);
        ok = ticket ? BW_OK(bw_linked_graph_wait(stage->linked[into->graph], number, &stage->rig.err),
                            &stage->rig.err)
                    : ex_stage_replay(stage, replay, &number);
    }
    for (uint32_t i = 0; i < record->queue_count && ok && !ticket; i++) {
        const struct bw_hcq_queue *now = ex_queue(stage, i);
        if (now->slot == into->slot_before[i])
            continue;
        into->rolls = true;
        record->slot_origin[i][now->slot] =
            bw_point_window((struct bw_point){into->submitted_before[i]}).value;
    }
    if (stage) {
        stage->lagging = EX_NONE;
        ex_stage_close(stage);
    }
    free(stage);
    return ok;
}

/* ---- all of it ---- */

/* The queues that the graphs use, found in a stage of its own. False without a word when there are too many.
 */
static bool ex_queues_find(struct ex_record *record)
{
    struct ex_stage *stage = calloc(1, sizeof *stage);
    bool ok = BW_TRUE(stage != NULL) && ex_stage_open(stage, record), fits = ok;
    record->ok = ok;
    uint32_t of_device[EX_DEVICES] = {0};
    for (uint32_t g = 0; g < record->scene->graph_count && fits; g++) {
        struct bw_graph_stats stats;
        bw_linked_graph_stats(stage->linked[g], &stats);
        record->waits += stats.waits;
        record->signals += stats.signals;
        for (uint32_t i = 0; i < stage->linked[g]->queue_count && fits; i++) {
            const struct bw_linked_queue *queue = &stage->linked[g]->queues[i];
            if (!queue->signal_count || ex_queue_of(stage, queue->hcq) != EX_NONE)
                continue;
            uint32_t device = queue->hcq->owner->device == stage->rig.devices[1];
            fits = of_device[device]++ < 2;
            if (fits) {
                record->queue_device[record->queue_count] = device;
                record->queue_number[record->queue_count] = queue->hcq->number;
                record->slot_origin[record->queue_count++][queue->hcq->slot] = record->scene->timeline_start;
            }
        }
    }
    if (stage)
        ex_stage_close(stage);
    free(stage);
    return fits;
}

/* The queues that the host can find busy: they were given something before, and their last signal is none
 * that it has just waited for. */
static uint32_t ex_busy_most(const struct ex_record *record, uint32_t replay)
{
    const struct ex_replay *at = &record->replays[replay];
    const struct ex_threshold *instance = &at->thresholds[EX_PHASE_INSTANCE];
    uint32_t busy = 0;
    for (uint32_t i = 0; i < record->queue_count && !at->rolls; i++)
        if (at->submitted_before[i] != record->slot_origin[i][at->slot_before[i]] &&
            !(instance->wanted[i] && instance->value[i] == at->submitted_before[i]))
            busy |= 1u << i;
    return busy;
}

/* Recorded when the search asks for it. */
static const struct ex_submission *ex_submission_get(struct ex_record *record, uint32_t replay, uint32_t busy)
{
    struct ex_submission *submission = &record->replays[replay].submissions[busy];
    if (!submission->known && !ex_submission_record(record, replay, busy))
        record->ok = false;
    return submission;
}

/* False: the graphs use more queues than are explored, or (record->ok) something failed. */
static bool ex_record_make(const struct ex_scene *scene, struct ex_record *record)
{
    *record = (struct ex_record){.scene = scene};
    if (!ex_queues_find(record))
        return false;
    for (uint32_t i = 0; i < scene->replay_count && record->ok; i++) {
        struct ex_replay *replay = &record->replays[i];
        replay->graph = scene->replays[i];
        for (uint32_t q = 0; q < record->queue_count && record->ok; q++)
            record->ok =
                ex_threshold_measure(record, i, q, false) && ex_threshold_measure(record, i, q, true);
        if (record->ok) /* with all prologues that there can be */
            (void)ex_submission_get(record, i, ex_busy_most(record, i));
    }
    return record->ok;
}

#endif
