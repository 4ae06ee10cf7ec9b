#include "mock/engine/sdma.h"

#include "base/bits.h"
#include "mock/engine/registers.h"
#include "mock/link.h"
#include "mock/record.h"

static struct bw_mock_space *space_of(const struct bw_mock_sdma_packet *packet)
{
    return &packet->queue->context->space;
}

static uint64_t address(const uint32_t *words)
{
    return (uint64_t)words[1] << 32 | words[0];
}

enum bw_mock_queue_progress bw_mock_sdma_nop(struct bw_mock_sdma_packet *packet)
{
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_gcr(struct bw_mock_sdma_packet *packet)
{
    return BW_MOCK_QUEUE_MOVED; /* no caches in this model */
}

static enum bw_mock_queue_progress fail_size(struct bw_mock_sdma_packet *packet, uint64_t size)
{
    return bw_mock_sdma_fail(packet, "%llu bytes, at most %u", (unsigned long long)size,
                             packet->kind->bytes_max);
}

enum bw_mock_queue_progress bw_mock_sdma_copy_linear(struct bw_mock_sdma_packet *packet)
{
    enum { ENCRYPT_TMZ = 0x00050000, BACKWARDS = 1 << 25, BROADCAST = 1 << 27, SWAPS = 0x03030000 };
    uint64_t size = packet->words[1] + 1ull;
    struct bw_mock_violation violation;
    if (packet->words[0] & (ENCRYPT_TMZ | BACKWARDS | BROADCAST))
        return bw_mock_sdma_fail(packet,
                                 "header 0x%08x: encryption, backward and broadcast copies are not modelled",
                                 packet->words[0]);
    if (packet->words[2] & SWAPS)
        return bw_mock_sdma_fail(packet, "byte swapping (0x%08x)", packet->words[2]);
    if (size > packet->kind->bytes_max)
        return fail_size(packet, size);
    enum bw_mock_queue_progress progress;
    if (!bw_mock_link_passes(packet->queue, address(packet->words + 3), &progress) ||
        !bw_mock_link_passes(packet->queue, address(packet->words + 5), &progress))
        return progress;
    bw_mock_record_copy(packet->queue, address(packet->words + 5), address(packet->words + 3), size);
    if (bw_mock_space_copy(space_of(packet), address(packet->words + 5), address(packet->words + 3), size,
                           &violation))
        return bw_mock_sdma_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_write_linear(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_violation violation;
    uint64_t bytes = (packet->count - packet->kind->count) * 4ull;
    if (bw_mock_space_write(space_of(packet), address(packet->words + 1), packet->words + packet->kind->count,
                            bytes, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_indirect(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_queue *queue = packet->queue;
    struct bw_mock_mapping mapping;
    uint64_t va = address(packet->words + 1), end = queue->read / 4 + packet->count;
    uint32_t words = packet->words[3];
    struct bw_mock_violation violation = {.va = va, .access = BW_MOCK_READ};
    if (queue->in_indirect)
        return bw_mock_sdma_fail(packet, "inside an indirect buffer");
    if (end % 8)
        return bw_mock_sdma_fail(packet, "the packet must end on a multiple of 8 words, and ends at %llu",
                                 (unsigned long long)end);
    if (bw_field(packet->words[0], 16, 19))
        return bw_mock_sdma_fail(packet, "VMID %u: a user queue has its own",
                                 bw_field(packet->words[0], 16, 19));
    if (!words)
        return bw_mock_sdma_fail(packet, "size 0");
    if (!bw_mock_space_find(space_of(packet), va, &mapping))
        return bw_mock_sdma_fault(packet, &violation);
    queue->indirect = (struct bw_mock_stream){.va = va, .words = words};
    queue->in_indirect = true;
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_fence(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_violation violation;
    bw_mock_record_write(packet->queue, address(packet->words + 1), packet->words[3], 4);
    if (bw_mock_space_write(space_of(packet), address(packet->words + 1), &packet->words[3], 4, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_trap(struct bw_mock_sdma_packet *packet)
{
    packet->queue->context->front->interrupt(packet->queue->context, packet->words[1], 28);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_cond_exe(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t value;
    if (bw_mock_space_read(space_of(packet), address(packet->words + 1), &value, sizeof value, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    if (value != packet->words[3])
        packet->skip = packet->words[4];
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_poll_regmem(struct bw_mock_sdma_packet *packet)
{
    enum { FOREVER = 0xfff, HDP_FLUSH = 1 << 26, FUNCTION_RESERVED = 7 };
    struct bw_mock_violation violation;
    uint32_t function = bw_field(packet->words[0], 28, 30), retries = bw_field(packet->words[5], 16, 27),
             value;
    bool in_memory = packet->words[0] >> 31;
    if (packet->words[0] & HDP_FLUSH)
        return bw_mock_sdma_fail(packet, "an HDP flush by POLL_REGMEM is the kernel's");
    if (function == FUNCTION_RESERVED)
        return bw_mock_sdma_fail(packet, "function 7");
    if (!in_memory)
        return bw_mock_sdma_fail(packet, "register 0x%x: a user queue polls memory only", packet->words[1]);
    if (bw_mock_space_read(space_of(packet), address(packet->words + 1), &value, sizeof value, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    if (bw_mock_compare(function, value & packet->words[4], packet->words[3])) {
        bw_mock_record_wait(packet->queue, address(packet->words + 1), function, packet->words[4],
                            packet->words[3]);
        return BW_MOCK_QUEUE_MOVED;
    }
    if (retries != FOREVER && packet->queue->retries++ >= retries)
        return bw_mock_sdma_fail(packet, "poll timeout after %u retries (0x%08x, expected 0x%08x)", retries,
                                 value & packet->words[4], packet->words[3]);
    return bw_mock_sdma_block(packet, address(packet->words + 1), function, value & packet->words[4],
                              packet->words[3]);
}

struct atomic_operands {
    uint32_t operation;
    uint64_t source, compare;
};

/* Operations of the texture cache, as in ATOMIC_MEM: bits 4:0, bit 5 64 bits. */
static uint64_t apply(uint64_t value, void *user)
{
    const struct atomic_operands *operands = user;
    switch (operands->operation & 0x1f) {
    case 8:
        return value == operands->compare ? operands->source : value;
    case 15:
        return value + operands->source;
    case 16:
        return value - operands->source;
    case 21:
        return value & operands->source;
    case 22:
        return value | operands->source;
    case 23:
        return value ^ operands->source;
    default:
        return operands->source; /* 7: swap */
    }
}

enum bw_mock_queue_progress bw_mock_sdma_atomic(struct bw_mock_sdma_packet *packet)
{
    enum { LOOP = 1 << 16 };
    struct bw_mock_violation violation;
    uint32_t operation = bw_field(packet->words[0], 25, 31), kind = operation & 0x1f,
             bytes = operation & 0x20 ? 8 : 4;
    uint64_t va = address(packet->words + 1), before;
    struct atomic_operands operands = {operation, address(packet->words + 3), address(packet->words + 5)};
    if (kind != 7 && kind != 8 && kind != 15 && kind != 16 && kind != 21 && kind != 22 && kind != 23)
        return bw_mock_sdma_fail(packet, "atomic operation %u", operation);
    if (va % bytes)
        return bw_mock_sdma_fail(packet, "address 0x%llx is not aligned to %u bytes", (unsigned long long)va,
                                 bytes);
    if (bytes == 4) {
        operands.source = bw_lo32(operands.source);
        operands.compare = bw_lo32(operands.compare);
    }
    if (bw_mock_space_atomic(space_of(packet), va, bytes, apply, &operands, &before, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    bool loops = (packet->words[0] & LOOP) && kind == 8 && before != operands.compare;
    return loops ? bw_mock_sdma_block(packet, va, BW_MOCK_COMPARE_EQUAL, before, operands.compare)
                 : BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_const_fill(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t unit_log = packet->words[0] >> 30, unit = 1u << unit_log;
    if (unit_log == 3)
        return bw_mock_sdma_fail(packet, "fill size 3");
    /* The count is in bytes less one unit, its bits below a unit do not count: the kernel passes bytes - 1,
     * ROCr (words - 1) * 4 (sdma_v6_0.c emit_fill_buffer; amd_blit_sdma.cpp BuildFillCommand). */
    uint64_t va = address(packet->words + 1), size = ((uint64_t)(packet->words[4] >> unit_log) + 1)
                                                     << unit_log;
    if (size > packet->kind->bytes_max)
        return fail_size(packet, size);
    if (va % unit)
        return bw_mock_sdma_fail(packet, "address 0x%llx is not aligned to %u bytes", (unsigned long long)va,
                                 unit);
    if (bw_mock_space_fill(space_of(packet), va, packet->words[3], unit, size, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_sdma_timestamp(struct bw_mock_sdma_packet *packet)
{
    struct bw_mock_violation violation;
    uint64_t now = bw_mock_gpu_clock(packet->queue->machine);
    if (bw_mock_space_write(space_of(packet), address(packet->words + 1), &now, sizeof now, &violation))
        return bw_mock_sdma_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}
