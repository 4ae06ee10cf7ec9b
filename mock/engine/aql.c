/* AQL queues: packets of 64 bytes (HSA Platform System Architecture, "Architected Queuing Language"; AMD's
 * vendor packets and queue structure: ROCR-Runtime, inc/amd_hsa_queue.h, amd_hsa_signal.h,
 * hsa_ven_amd_aqlprofile). What the packet processor makes of a kernel descriptor: LLVM AMDGPUUsage, "Kernel
 * Descriptor" and "Initial Kernel Execution State". */
#include "mock/engine/aql.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"
#include "mock/engine/pm4.h"
#include "mock/trace.h"

enum {
    PACKET_BYTES = 64,
    BARRIER_SIGNALS = 5,
    SCOPE_RESERVED = 3,
    IB_HEADER = (int)0xc0023f00, /* INDIRECT_BUFFER with three words */
    IB_REMAINING = 10,           /* words left in the packet: dw5 of a PM4-IB packet says so */
};

static const char *type_name(uint32_t header)
{
    static const char *const names[] = {[BW_MOCK_AQL_VENDOR] = "AQL vendor packet",
                                        [BW_MOCK_AQL_DISPATCH] = "AQL kernel dispatch",
                                        [BW_MOCK_AQL_BARRIER_AND] = "AQL barrier-and",
                                        [BW_MOCK_AQL_BARRIER_OR] = "AQL barrier-or"};
    uint32_t type = bw_field(header, 0, 7);
    return type < BW_COUNT_OF(names) && names[type] ? names[type] : "AQL packet of no known type";
}

static enum bw_mock_queue_progress fail(struct bw_mock_aql *packet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum bw_mock_queue_progress fail(struct bw_mock_aql *packet, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(text, sizeof text, format, arguments);
    va_end(arguments);
    return bw_mock_queue_fail(packet->queue, "AQL packet %llu: %s", (unsigned long long)packet->queue->read,
                              text);
}

static enum bw_mock_queue_progress fault(struct bw_mock_aql *packet,
                                         const struct bw_mock_violation *violation)
{
    char text[48];
    snprintf(text, sizeof text, "AQL packet %llu", (unsigned long long)packet->queue->read);
    return bw_mock_queue_fault(packet->queue, violation, text);
}

static struct bw_mock_space *space_of(const struct bw_mock_aql *packet)
{
    return &packet->queue->context->space;
}

static uint64_t slot_va(const struct bw_mock_queue *queue)
{
    return queue->ring_va + (queue->read * PACKET_BYTES & (queue->ring_bytes - 1));
}

static uint64_t word64(const struct bw_mock_aql *packet, unsigned byte_offset)
{
    return bw_mock_address(packet->words + byte_offset / 4);
}

static uint64_t decrement(uint64_t value, void *user)
{
    return value - 1;
}

/* Timestamps, the value, and the interrupt when the signal has a mailbox (struct amd_signal_s). */
static bool signal_completion(struct bw_mock_aql *packet, uint64_t signal,
                              enum bw_mock_queue_progress *progress)
{
    enum { VALUE = 8, MAILBOX = 16, EVENT_ID = 24, START = 32 };
    struct bw_mock_space *space = space_of(packet);
    struct bw_mock_violation violation;
    uint64_t stamps[2] = {packet->queue->aql_start, bw_mock_gpu_clock(packet->queue->machine)}, before,
             mailbox, id64;
    uint32_t id;
    if (!signal)
        return true;
    if (bw_mock_space_write(space, signal + START, stamps, sizeof stamps, &violation) ||
        bw_mock_space_read(space, signal + MAILBOX, &mailbox, sizeof mailbox, &violation) ||
        bw_mock_space_read(space, signal + EVENT_ID, &id, sizeof id, &violation) ||
        bw_mock_space_atomic(space, signal + VALUE, 8, decrement, NULL, &before, &violation)) {
        *progress = fault(packet, &violation);
        return false;
    }
    id64 = id;
    if (mailbox) {
        if (bw_mock_space_write(space, mailbox, &id64, sizeof id64, &violation)) {
            *progress = fault(packet, &violation);
            return false;
        }
        packet->queue->context->front->interrupt(packet->queue->context, id, 32);
    }
    return true;
}

/* The packet is done: its completion signal, its slot invalid again, the read index. */
static enum bw_mock_queue_progress complete(struct bw_mock_aql *packet)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    enum bw_mock_queue_progress progress;
    uint16_t invalid = BW_MOCK_AQL_INVALID;
    if (!signal_completion(packet, word64(packet, 56), &progress))
        return progress;
    uint64_t next = queue->read + 1;
    if (bw_mock_space_write(&queue->context->space, slot_va(queue), &invalid, sizeof invalid, &violation) ||
        bw_mock_space_write(&queue->context->space, queue->read_va, &next, sizeof next, &violation))
        return fault(packet, &violation);
    queue->read = next;
    queue->aql_start = 0;
    atomic_fetch_add_explicit(&queue->machine->stats.packets, 1, memory_order_relaxed);
    return BW_MOCK_QUEUE_MOVED;
}

static bool signal_value(struct bw_mock_aql *packet, uint64_t signal, uint64_t *value,
                         enum bw_mock_queue_progress *progress)
{
    struct bw_mock_violation violation;
    if (!bw_mock_space_read(space_of(packet), signal + 8, value, sizeof *value, &violation))
        return true;
    *progress = fault(packet, &violation);
    return false;
}

static enum bw_mock_queue_progress barrier(struct bw_mock_aql *packet, bool all)
{
    enum bw_mock_queue_progress progress;
    unsigned given = 0, done = 0;
    for (unsigned i = 0; i < BARRIER_SIGNALS; i++) {
        uint64_t signal = word64(packet, 8 + i * 8), value;
        if (!signal)
            continue;
        if (!signal_value(packet, signal, &value, &progress))
            return progress;
        given++;
        done += value == 0;
    }
    bool open = all ? done == given : done > 0 || !given;
    return open ? complete(packet)
                : bw_mock_queue_block(packet->queue, "AQL barrier at packet %llu: %u of %u signals are 0",
                                      (unsigned long long)packet->queue->read, done, given);
}

static enum bw_mock_queue_progress barrier_value(struct bw_mock_aql *packet)
{
    enum { CONDITION_EQ = 0, CONDITION_NE = 1, CONDITION_LT = 2, CONDITION_GTE = 3 };
    enum bw_mock_queue_progress progress;
    uint64_t signal = word64(packet, 8), value;
    int64_t reference = (int64_t)word64(packet, 16), mask = (int64_t)word64(packet, 24);
    uint32_t condition = packet->words[8];
    if (condition > CONDITION_GTE)
        return fail(packet, "BARRIER_VALUE: condition %u", condition);
    if (!signal) /* "a satisfied dependency" */
        return complete(packet);
    if (!signal_value(packet, signal, &value, &progress))
        return progress;
    int64_t seen = (int64_t)value & mask;
    const bool open[] = {seen == reference, seen != reference, seen < reference, seen >= reference};
    return open[condition]
               ? complete(packet)
               : bw_mock_queue_block(packet->queue, "AQL barrier at packet %llu: signal 0x%llx holds %lld",
                                     (unsigned long long)packet->queue->read, (unsigned long long)signal,
                                     (long long)seen);
}

static enum bw_mock_queue_progress pm4_ib(struct bw_mock_aql *packet)
{
    struct bw_mock_queue *queue = packet->queue;
    if (queue->vendor_running) {
        queue->vendor_running = false;
        return complete(packet);
    }
    if (packet->words[1] != (uint32_t)IB_HEADER || packet->words[5] != IB_REMAINING)
        return fail(packet, "PM4 words 0x%08x ... 0x%08x are no INDIRECT_BUFFER of this format",
                    packet->words[1], packet->words[5]);
    struct bw_mock_packet start = {.queue = queue, .words = packet->words + 2, .count = 3};
    start.kind = bw_mock_pm4_find(bw_field((uint32_t)IB_HEADER, 8, 15), ~0u);
    enum bw_mock_queue_progress progress = bw_mock_pm4_start_indirect(&start);
    queue->vendor_running = progress == BW_MOCK_QUEUE_MOVED;
    return progress;
}

static enum bw_mock_queue_progress dispatch(struct bw_mock_aql *packet)
{
    char why[200];
    enum bw_mock_queue_progress progress = bw_mock_aql_dispatch(packet, why, sizeof why);
    if (progress == BW_MOCK_QUEUE_STOPPED && why[0])
        return fail(packet, "%s", why);
    return progress == BW_MOCK_QUEUE_MOVED ? complete(packet) : progress;
}

static bool check_reserved(struct bw_mock_aql *packet, const struct bw_mock_aql_kind *kind,
                           enum bw_mock_queue_progress *progress)
{
    uint32_t header = packet->words[0];
    for (uint32_t i = 0; i < BW_MOCK_AQL_WORDS; i++) {
        if (packet->words[i] & kind->reserved[i]) {
            *progress = fail(packet, "%s: reserved bits 0x%08x in word %u (0x%08x)", kind->name,
                             packet->words[i] & kind->reserved[i], i, packet->words[i]);
            return false;
        }
    }
    if (bw_field(header, 9, 10) != SCOPE_RESERVED && bw_field(header, 11, 12) != SCOPE_RESERVED)
        return true;
    *progress = fail(packet, "%s: fence scope 3 in header 0x%04x", kind->name, header & 0xffff);
    return false;
}

static enum bw_mock_queue_progress run_packet(struct bw_mock_aql *packet)
{
    enum bw_mock_queue_progress progress;
    uint32_t type = bw_field(packet->words[0], 0, 7), format = bw_field(packet->words[0], 16, 23);
    const struct bw_mock_aql_kind *kind = bw_mock_aql_find(type, format);
    if (!kind)
        return type == BW_MOCK_AQL_VENDOR ? fail(packet, "unknown vendor format %u", format)
                                          : fail(packet, "unknown type %u", type);
    if (!check_reserved(packet, kind, &progress))
        return progress;
    switch (type) {
    case BW_MOCK_AQL_DISPATCH:
        return dispatch(packet);
    case BW_MOCK_AQL_VENDOR:
        return format == BW_MOCK_AQL_FORMAT_PM4_IB ? pm4_ib(packet) : barrier_value(packet);
    default:
        return barrier(packet, type == BW_MOCK_AQL_BARRIER_AND);
    }
}

static bool check_ring(struct bw_mock_aql *packet, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    uint64_t end = queue->write + 1, written;
    if (end - queue->read > queue->ring_bytes / PACKET_BYTES) {
        *progress = fail(packet, "doorbell %llu is more than a ring ahead, or behind",
                         (unsigned long long)queue->write);
        return false;
    }
    if (bw_mock_space_read(&queue->context->space, queue->write_va, &written, sizeof written, &violation)) {
        *progress = fault(packet, &violation);
        return false;
    }
    if ((int64_t)(written - end) < 0) {
        *progress = fail(packet, "the doorbell says %llu, but only %llu packets were reserved",
                         (unsigned long long)queue->write, (unsigned long long)written);
        return false;
    }
    return true;
}

enum bw_mock_queue_progress bw_mock_aql_step(struct bw_mock_queue *queue)
{
    struct bw_mock_aql packet = {.queue = queue};
    struct bw_mock_violation violation;
    enum bw_mock_queue_progress progress;
    if (queue->in_indirect)
        return bw_mock_pm4_step_indirect(queue);
    if (!check_ring(&packet, &progress))
        return progress;
    /* The header last written makes a packet valid: it is read first, with acquire. */
    if (bw_mock_space_read(&queue->context->space, slot_va(queue), packet.words, 4, &violation))
        return fault(&packet, &violation);
    if (bw_field(packet.words[0], 0, 7) == BW_MOCK_AQL_INVALID)
        return bw_mock_queue_block(queue, "AQL packet %llu: its header is not written yet",
                                   (unsigned long long)queue->read);
    if (bw_mock_space_read(&queue->context->space, slot_va(queue) + 4, packet.words + 1, PACKET_BYTES - 4,
                           &violation))
        return fault(&packet, &violation);
    if (!queue->aql_start)
        queue->aql_start = bw_mock_gpu_clock(queue->machine);
    bw_mock_trace_packet(queue, type_name(packet.words[0]), packet.words, BW_COUNT_OF(packet.words));
    return run_packet(&packet);
}
