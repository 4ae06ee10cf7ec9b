/* A copy engine's front end: fetching, checking, and the pointers, which count bytes and never wrap (kfdtest
 * SDMAQueue.cpp). */
#include "mock/engine/sdma.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/trace.h"

enum { OPCODE_NOP = 0, OPCODE_WRITE = 2, NOP_COUNT_LOW = 16, NOP_COUNT_HIGH = 29 };

static const char *name_of(const struct bw_mock_sdma_packet *packet)
{
    return packet->kind ? packet->kind->name : "packet";
}

enum bw_mock_queue_progress bw_mock_sdma_fail(struct bw_mock_sdma_packet *packet, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    enum bw_mock_queue_progress progress =
        bw_mock_queue_packet_fail(packet->queue, name_of(packet), format, arguments);
    va_end(arguments);
    return progress;
}

enum bw_mock_queue_progress bw_mock_sdma_block(struct bw_mock_sdma_packet *packet, uint64_t va,
                                               uint32_t function, uint64_t value, uint64_t reference)
{
    return bw_mock_queue_packet_block(packet->queue, name_of(packet), va, function, value, reference);
}

enum bw_mock_queue_progress bw_mock_sdma_fault(struct bw_mock_sdma_packet *packet,
                                               const struct bw_mock_violation *violation)
{
    return bw_mock_queue_packet_fault(packet->queue, name_of(packet), violation);
}

static int fetch(struct bw_mock_queue *queue, uint32_t *words, uint32_t count,
                 struct bw_mock_violation *violation)
{
    struct bw_mock_space *space = &queue->context->space;
    if (queue->in_indirect)
        return bw_mock_space_read(space, queue->indirect.va + queue->indirect.at * 4ull, words, count * 4ull,
                                  violation);
    return bw_mock_space_read(space, queue->ring_va + (queue->read & (queue->ring_bytes - 1)), words,
                              count * 4ull, violation);
}

static uint64_t words_left(const struct bw_mock_queue *queue)
{
    return queue->in_indirect ? queue->indirect.words - queue->indirect.at : (queue->write - queue->read) / 4;
}

static void advance(struct bw_mock_queue *queue, uint64_t words)
{
    struct bw_mock_violation violation;
    if (queue->in_indirect) {
        queue->indirect.at += (uint32_t)words;
        queue->in_indirect = queue->indirect.at != queue->indirect.words;
        return;
    }
    queue->read += words * 4;
    (void)bw_mock_space_write(&queue->context->space, queue->read_va, &queue->read, sizeof queue->read,
                              &violation);
}

uint64_t bw_mock_sdma_length(const struct bw_mock_sdma *kind, const uint32_t *words)
{
    if (kind->opcode == OPCODE_NOP)
        return 1 + bw_field(words[0], NOP_COUNT_LOW, NOP_COUNT_HIGH);
    if (kind->opcode == OPCODE_WRITE)
        return kind->count + bw_field(words[3], 0, 19) + 1ull;
    return kind->count;
}

static bool check_ring(struct bw_mock_sdma_packet *packet, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    uint64_t in_memory, pending = queue->write - queue->read;
    if (queue->in_indirect)
        return true;
    if (queue->write % 4) {
        *progress = bw_mock_sdma_fail(packet, "doorbell 0x%llx counts bytes, and is no multiple of 4",
                                      (unsigned long long)queue->write);
        return false;
    }
    if (pending > queue->ring_bytes) {
        *progress = bw_mock_sdma_fail(packet, "doorbell 0x%llx is %s the ring: 0x%llx bytes were read",
                                      (unsigned long long)queue->write,
                                      pending >> 63 ? "behind" : "more than a ring ahead in",
                                      (unsigned long long)queue->read);
        return false;
    }
    if (bw_mock_space_read(&queue->context->space, queue->write_va, &in_memory, sizeof in_memory,
                           &violation)) {
        *progress = bw_mock_sdma_fault(packet, &violation);
        return false;
    }
    if ((int64_t)(in_memory - queue->write) < 0) {
        *progress = bw_mock_sdma_fail(packet, "the doorbell says 0x%llx, the write pointer in memory 0x%llx",
                                      (unsigned long long)queue->write, (unsigned long long)in_memory);
        return false;
    }
    return true;
}

/* How far a packet may reach: the end of what was submitted, and of the ring, since no packet wraps. */
static bool check_length(struct bw_mock_sdma_packet *packet, uint64_t count,
                         enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    uint64_t to_end = (queue->ring_bytes - (queue->read & (queue->ring_bytes - 1))) / 4;
    if (count > words_left(queue)) {
        *progress = bw_mock_sdma_fail(packet, "%llu words, but %llu are left", (unsigned long long)count,
                                      (unsigned long long)words_left(queue));
        return false;
    }
    if (!queue->in_indirect && count > to_end && packet->kind->opcode != OPCODE_NOP) {
        *progress = bw_mock_sdma_fail(packet, "%llu words, but the ring ends after %llu: packets do not wrap",
                                      (unsigned long long)count, (unsigned long long)to_end);
        return false;
    }
    return true;
}

static bool read_packet(struct bw_mock_sdma_packet *packet, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_violation violation;
    uint32_t header;
    if (!check_ring(packet, progress))
        return false;
    if (fetch(queue, &header, 1, &violation)) {
        *progress = bw_mock_sdma_fault(packet, &violation);
        return false;
    }
    packet->kind = bw_mock_sdma_find(bw_field(header, 0, 7), bw_field(header, 8, 15),
                                     bw_mock_family(queue->context->gpu->chip));
    if (!packet->kind) {
        *progress = bw_mock_sdma_fail(packet, "unknown opcode 0x%02x, sub-opcode 0x%02x (header 0x%08x)",
                                      bw_field(header, 0, 7), bw_field(header, 8, 15), header);
        return false;
    }
    queue->packet[0] = header;
    if (!check_length(packet, packet->kind->count, progress))
        return false;
    if (fetch(queue, queue->packet, packet->kind->count, &violation)) {
        *progress = bw_mock_sdma_fault(packet, &violation);
        return false;
    }
    uint64_t count = bw_mock_sdma_length(packet->kind, queue->packet);
    if (!check_length(packet, count, progress))
        return false;
    packet->count = (uint32_t)count;
    if (packet->kind->opcode == OPCODE_WRITE && fetch(queue, queue->packet, packet->count, &violation)) {
        *progress = bw_mock_sdma_fault(packet, &violation);
        return false;
    }
    packet->words = queue->packet;
    for (uint32_t i = 0; i < packet->kind->count && i < BW_MOCK_SDMA_CHECKED_WORDS; i++) {
        if (packet->words[i] & packet->kind->reserved[i]) {
            *progress = bw_mock_sdma_fail(packet, "reserved bits 0x%08x in word %u (0x%08x)",
                                          packet->words[i] & packet->kind->reserved[i], i, packet->words[i]);
            return false;
        }
    }
    return true;
}

enum bw_mock_queue_progress bw_mock_sdma_step(struct bw_mock_queue *queue)
{
    struct bw_mock_sdma_packet packet = {.queue = queue};
    enum bw_mock_queue_progress progress;
    if (!read_packet(&packet, &progress))
        return progress;
    bw_mock_trace_packet(queue, packet.kind->name, packet.words, packet.count);
    bool was_indirect = queue->in_indirect;
    progress = packet.kind->run(&packet);
    if (progress != BW_MOCK_QUEUE_MOVED)
        return progress;
    atomic_fetch_add_explicit(&queue->machine->stats.sdma_packets, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&queue->machine->stats.executed[BW_MOCK_PACKETS_SDMA][packet.kind->opcode], 1,
                              memory_order_relaxed);
    queue->retries = 0;
    if (!was_indirect && queue->in_indirect) {
        queue->in_indirect = false;
        advance(queue, packet.count);
        queue->in_indirect = true;
        return progress;
    }
    if (packet.skip > words_left(queue) - packet.count)
        return bw_mock_sdma_fail(&packet, "skips %u words, but %llu are left", packet.skip,
                                 (unsigned long long)(words_left(queue) - packet.count));
    advance(queue, packet.count + (uint64_t)packet.skip);
    return progress;
}
