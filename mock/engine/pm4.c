/* The MEC's front end: fetching packets from the ring and from indirect buffers, checking them against the
 * table, and the read pointer. */
#include "mock/engine/pm4.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/trace.h"

enum {
    HEADER_TYPE_3 = 3,
    HEADER_RESERVED = 0xf8,
    HEADER_PREDICATE = 1,
    COUNT_HEADER_ONLY = 0x3fff, /* of a NOP: one word in all (sid.h, PKT3_NOP_PAD) */
    OPCODE_NOP = 0x10,
};

static const char *name_of(const struct bw_mock_packet *packet)
{
    return packet->kind ? packet->kind->name : "packet";
}

enum bw_mock_queue_progress bw_mock_packet_fail(struct bw_mock_packet *packet, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum bw_mock_queue_progress progress =
        bw_mock_queue_packet_fail(packet->queue, name_of(packet), format, arguments);
    va_end(arguments);
    return progress;
}

enum bw_mock_queue_progress bw_mock_packet_block(struct bw_mock_packet *packet, uint64_t va,
                                                 uint32_t function, uint64_t value, uint64_t reference)
{
    return bw_mock_queue_packet_block(packet->queue, name_of(packet), va, function, value, reference);
}

enum bw_mock_queue_progress bw_mock_packet_fault(struct bw_mock_packet *packet,
                                                 const struct bw_mock_violation *violation)
{
    return bw_mock_queue_packet_fault(packet->queue, name_of(packet), violation);
}

/* Reads words of the stream from `from` words past its position on. */
static int fetch(struct bw_mock_queue *queue, uint32_t from, uint32_t *words, uint32_t count,
                 struct bw_mock_violation *violation)
{
    struct bw_mock_space *space = &queue->context->space;
    if (queue->in_indirect)
        return bw_mock_space_read(space, queue->indirect.va + (queue->indirect.at + (uint64_t)from) * 4,
                                  words, (uint64_t)count * 4, violation);
    uint64_t ring_words = queue->ring_bytes / 4, at = (queue->read + from) & (ring_words - 1);
    uint64_t first = count < ring_words - at ? count : ring_words - at;
    int rc = bw_mock_space_read(space, queue->ring_va + at * 4, words, first * 4, violation);
    if (!rc && first < count)
        rc = bw_mock_space_read(space, queue->ring_va, words + first, (count - first) * 4, violation);
    return rc;
}

static uint64_t words_left(const struct bw_mock_queue *queue)
{
    return queue->in_indirect ? queue->indirect.words - queue->indirect.at : queue->write - queue->read;
}

/* The read pointer of a PM4 queue is 32 bits of words and wraps with the ring (kfdtest PM4Queue.cpp). It
 * tells what was fetched, not what is done. */
static void report_read(struct bw_mock_queue *queue)
{
    struct bw_mock_violation violation;
    uint32_t value = (uint32_t)(queue->read & (queue->ring_bytes / 4 - 1));
    (void)bw_mock_space_write(&queue->context->space, queue->read_va, &value, sizeof value, &violation);
}

static void advance(struct bw_mock_queue *queue, uint32_t words)
{
    if (!queue->in_indirect) {
        queue->read += words;
        report_read(queue);
        return;
    }
    queue->indirect.at += words;
    assert(queue->indirect.at <= queue->indirect.words);
    if (queue->indirect.at == queue->indirect.words)
        queue->in_indirect = false;
}

static bool check_ring(struct bw_mock_packet *packet, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    uint64_t in_memory, pending = queue->write - queue->read;
    if (queue->in_indirect)
        return true;
    if (pending > queue->ring_bytes / 4) {
        *progress = bw_mock_packet_fail(packet, "doorbell 0x%llx is %s the ring: 0x%llx words were read",
                                        (unsigned long long)queue->write,
                                        pending >> 63 ? "behind" : "more than a ring ahead in",
                                        (unsigned long long)queue->read);
        return false;
    }
    /* The scheduler firmware takes the write pointer from memory when it maps a queue again: a client that
     * only rings the doorbell loses work then, once in a while. */
    if (bw_mock_space_read(&queue->context->space, queue->write_va, &in_memory, sizeof in_memory,
                           &violation)) {
        *progress = bw_mock_packet_fault(packet, &violation);
        return false;
    }
    if ((int64_t)(in_memory - queue->write) < 0) {
        *progress =
            bw_mock_packet_fail(packet, "the doorbell says 0x%llx, the write pointer in memory 0x%llx",
                                (unsigned long long)queue->write, (unsigned long long)in_memory);
        return false;
    }
    return true;
}

static bool check_header(struct bw_mock_packet *packet, uint32_t header,
                         enum bw_mock_queue_progress *progress)
{
    uint32_t opcode = bw_field(header, 8, 15);
    if (header >> 30 != HEADER_TYPE_3) {
        *progress = bw_mock_packet_fail(packet, "header 0x%08x is of type %u", header, header >> 30);
        return false;
    }
    packet->kind = bw_mock_pm4_find(opcode, bw_mock_family(packet->queue->context->gpu->chip));
    if (!packet->kind) {
        *progress = bw_mock_packet_fail(packet, "unknown opcode 0x%02x (header 0x%08x)", opcode, header);
        return false;
    }
    if (header & (HEADER_RESERVED | HEADER_PREDICATE)) {
        *progress = bw_mock_packet_fail(packet, "reserved or predicate bits in header 0x%08x", header);
        return false;
    }
    return true;
}

static bool check_payload(struct bw_mock_packet *packet, enum bw_mock_queue_progress *progress)
{
    const struct bw_mock_pm4 *kind = packet->kind;
    if (packet->count < kind->count_min || packet->count > kind->count_max) {
        *progress = bw_mock_packet_fail(packet, "%u payload words, expected %u to %u", packet->count,
                                        kind->count_min, kind->count_max);
        return false;
    }
    for (uint32_t i = 0; i < packet->count && i < BW_MOCK_PM4_CHECKED_WORDS; i++) {
        if (packet->words[i] & kind->reserved[i]) {
            *progress = bw_mock_packet_fail(packet, "reserved bits 0x%08x in word %u (0x%08x)",
                                            packet->words[i] & kind->reserved[i], i + 1, packet->words[i]);
            return false;
        }
    }
    return true;
}

/* Fetches and checks the packet at the stream's position. */
static bool read_packet(struct bw_mock_packet *packet, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    uint32_t header;
    if (!check_ring(packet, progress))
        return false;
    if (fetch(queue, 0, &header, 1, &violation)) {
        *progress = bw_mock_packet_fault(packet, &violation);
        return false;
    }
    if (!check_header(packet, header, progress))
        return false;
    uint32_t count = bw_field(header, 16, 29);
    packet->count = packet->kind->opcode == OPCODE_NOP && count == COUNT_HEADER_ONLY ? 0 : count + 1;
    if (packet->count + 1 > words_left(queue)) {
        *progress =
            bw_mock_packet_fail(packet, "%u words, but %llu are left in the %s", packet->count + 1,
                                (unsigned long long)words_left(queue),
                                queue->in_indirect ? "indirect buffer" : "ring before the write pointer");
        return false;
    }
    if (packet->count && fetch(queue, 1, queue->packet, packet->count, &violation)) {
        *progress = bw_mock_packet_fault(packet, &violation);
        return false;
    }
    packet->words = queue->packet;
    return check_payload(packet, progress);
}

static enum bw_mock_queue_progress step(struct bw_mock_queue *queue)
{
    struct bw_mock_packet packet = {.queue = queue};
    enum bw_mock_queue_progress progress;
    if (!read_packet(&packet, &progress))
        return progress;
    bw_mock_trace_packet(queue, packet.kind->name, packet.words, packet.count);
    bool was_indirect = queue->in_indirect;
    struct bw_mock_stream stream = queue->indirect;
    progress = packet.kind->run(&packet);
    if (progress != BW_MOCK_QUEUE_MOVED)
        return progress;
    atomic_fetch_add_explicit(&queue->machine->stats.packets, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&queue->machine->stats.executed[BW_MOCK_PACKETS_PM4][packet.kind->opcode], 1,
                              memory_order_relaxed);
    queue->wait_armed = false;
    bool chained = was_indirect && queue->indirect.va != stream.va;
    if (chained)
        return progress;                       /* nothing after a chain is read */
    if (!was_indirect && queue->in_indirect) { /* the ring moves past the packet that starts the buffer */
        queue->in_indirect = false;
        advance(queue, packet.count + 1);
        queue->in_indirect = true;
        return progress;
    }
    if (packet.skip > words_left(queue) - packet.count - 1)
        return bw_mock_packet_fail(&packet, "skips %u words, but %llu are left", packet.skip,
                                   (unsigned long long)(words_left(queue) - packet.count - 1));
    advance(queue, packet.count + 1 + packet.skip);
    return progress;
}

enum bw_mock_queue_progress bw_mock_pm4_step(struct bw_mock_queue *queue)
{
    return step(queue);
}

enum bw_mock_queue_progress bw_mock_pm4_step_indirect(struct bw_mock_queue *queue)
{
    assert(queue->in_indirect);
    return step(queue);
}

enum {
    IB_CHAIN = 1 << 20,
    IB_VALID = 1 << 23,
};

enum bw_mock_queue_progress bw_mock_pm4_start_indirect(struct bw_mock_packet *packet)
{
    struct bw_mock_queue *queue = packet->queue;
    uint64_t va = bw_mock_address(packet->words);
    uint32_t control = packet->words[2], words = bw_field(control, 0, 19);
    if (!(control & IB_VALID))
        return bw_mock_packet_fail(packet, "the VALID bit (23) is not set");
    if (bw_field(control, 24, 27))
        return bw_mock_packet_fail(packet, "VMID %u: a user queue has its own", bw_field(control, 24, 27));
    if (!words)
        return bw_mock_packet_fail(packet, "size 0");
    struct bw_mock_mapping mapping;
    struct bw_mock_violation violation = {.va = va, .access = BW_MOCK_READ};
    if (!bw_mock_space_find(&queue->context->space, va, &mapping))
        return bw_mock_packet_fault(packet, &violation);
    queue->indirect = (struct bw_mock_stream){.va = va, .words = words};
    queue->in_indirect = true;
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_pm4_indirect_buffer(struct bw_mock_packet *packet)
{
    struct bw_mock_queue *queue = packet->queue;
    bool chain = packet->words[2] & IB_CHAIN;
    /* The MEC has one level of indirect buffers; inside one it can only go on elsewhere (RADV does not use
     * IB2 on compute rings for that reason). */
    if (queue->in_indirect && !chain)
        return bw_mock_packet_fail(packet, "inside an indirect buffer, without the CHAIN bit (20)");
    if (!queue->in_indirect && chain)
        return bw_mock_packet_fail(packet, "CHAIN in the ring");
    if (queue->in_indirect && queue->indirect.at + packet->count + 1 != queue->indirect.words)
        return bw_mock_packet_fail(packet, "CHAIN is not the last packet of its buffer");
    return bw_mock_pm4_start_indirect(packet);
}
