/* PM4 packets that touch memory: writing, copying, waiting, signalling. */
#include "base/bits.h"
#include "mock/engine/pm4.h"
#include "mock/engine/registers.h"
#include "mock/link.h"
#include "mock/record.h"

#include <string.h>

enum {
    SELECT_REGISTER = 0,
    SELECT_MEMORY_GRBM = 1,
    SELECT_L2 = 2,
    SELECT_IMMEDIATE = 5, /* as a source of COPY_DATA */
    SELECT_MEMORY = 5,    /* as a destination */
    SELECT_CLOCK = 9,
};

static struct bw_mock_space *space_of(const struct bw_mock_packet *packet)
{
    return &packet->queue->context->space;
}

/* A write to a memory-mapped register, by dword address. */
static bool write_register(struct bw_mock_packet *packet, uint32_t address, uint32_t value,
                           enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    const struct bw_mock_register *row = bw_mock_register_find(queue->context->gpu->chip, address);
    if (address == BW_MOCK_HDP_FLUSH_REQ) {
        queue->hdp_flush_done = value; /* the flush is done at once */
        return true;
    }
    if (!row) {
        *progress = bw_mock_packet_fail(packet, "write to register 0x%x, which a user queue has no access to",
                                        address);
        return false;
    }
    if (address - BW_MOCK_SH_FIRST < BW_MOCK_SH_COUNT)
        queue->sh[address - BW_MOCK_SH_FIRST] = value & row->mask;
    return true;
}

static bool read_register(struct bw_mock_packet *packet, uint32_t address, uint32_t *value,
                          enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = packet->queue;
    *value = 0;
    if (address == BW_MOCK_HDP_FLUSH_DONE || address == BW_MOCK_HDP_FLUSH_REQ) {
        *value = queue->hdp_flush_done;
        return true;
    }
    if (!bw_mock_register_find(queue->context->gpu->chip, address)) {
        *progress = bw_mock_packet_fail(packet, "read of register 0x%x, which a user queue has no access to",
                                        address);
        return false;
    }
    if (address - BW_MOCK_SH_FIRST < BW_MOCK_SH_COUNT)
        *value = queue->sh[address - BW_MOCK_SH_FIRST];
    return true;
}

enum bw_mock_queue_progress bw_mock_pm4_write_data(struct bw_mock_packet *packet)
{
    enum { ONE_ADDRESS = 1 << 16 };
    enum bw_mock_queue_progress progress;
    struct bw_mock_violation violation;
    uint32_t select = bw_field(packet->words[0], 8, 11), count = packet->count - 3;
    uint64_t va = bw_mock_address(packet->words + 1);
    bool one = packet->words[0] & ONE_ADDRESS;
    if (select == SELECT_REGISTER) {
        for (uint32_t i = 0; i < count; i++) {
            if (!write_register(packet, packet->words[1] + (one ? 0 : i), packet->words[3 + i], &progress))
                return progress;
        }
        return BW_MOCK_QUEUE_MOVED;
    }
    if (select != SELECT_MEMORY_GRBM && select != SELECT_L2 && select != SELECT_MEMORY)
        return bw_mock_packet_fail(packet, "destination select %u", select);
    if (!one) {
        if (bw_mock_space_write(space_of(packet), va, packet->words + 3, count * 4ull, &violation))
            return bw_mock_packet_fault(packet, &violation);
        return BW_MOCK_QUEUE_MOVED;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (bw_mock_space_write(space_of(packet), va, &packet->words[3 + i], 4, &violation))
            return bw_mock_packet_fault(packet, &violation);
    }
    return BW_MOCK_QUEUE_MOVED;
}

/* The source of a COPY_DATA: *value gets 4 or 8 bytes. */
static bool copy_source(struct bw_mock_packet *packet, uint32_t bytes, uint64_t *value,
                        enum bw_mock_queue_progress *progress)
{
    struct bw_mock_violation violation;
    uint32_t select = bw_field(packet->words[0], 0, 3), word = 0;
    *value = 0;
    switch (select) {
    case SELECT_REGISTER:
        if (!read_register(packet, packet->words[1], &word, progress))
            return false;
        *value = word;
        if (bytes == 8 && !read_register(packet, packet->words[1] + 1, &word, progress))
            return false;
        *value |= bytes == 8 ? (uint64_t)word << 32 : 0;
        return true;
    case SELECT_MEMORY_GRBM:
    case SELECT_L2:
        if (bw_mock_address(packet->words + 1) % bytes) {
            *progress = bw_mock_packet_fail(packet, "source 0x%llx is not aligned to %u bytes",
                                            (unsigned long long)bw_mock_address(packet->words + 1), bytes);
            return false;
        }
        if (!bw_mock_space_read(space_of(packet), bw_mock_address(packet->words + 1), value, bytes,
                                &violation))
            return true;
        *progress = bw_mock_packet_fault(packet, &violation);
        return false;
    case SELECT_IMMEDIATE:
        *value = bytes == 8 ? bw_mock_address(packet->words + 1) : packet->words[1];
        return true;
    case SELECT_CLOCK:
        *value = bw_mock_gpu_clock(packet->queue->machine);
        return true;
    default:
        *progress = bw_mock_packet_fail(packet, "source select %u", select);
        return false;
    }
}

enum bw_mock_queue_progress bw_mock_pm4_copy_data(struct bw_mock_packet *packet)
{
    enum { COUNT_64 = 1 << 16 };
    enum bw_mock_queue_progress progress;
    struct bw_mock_violation violation;
    uint32_t bytes = packet->words[0] & COUNT_64 ? 8 : 4, select = bw_field(packet->words[0], 8, 11);
    uint64_t value, va = bw_mock_address(packet->words + 3);
    if (!copy_source(packet, bytes, &value, &progress))
        return progress;
    if (select == SELECT_REGISTER) {
        if (!write_register(packet, packet->words[3], bw_lo32(value), &progress) ||
            (bytes == 8 && !write_register(packet, packet->words[3] + 1, bw_hi32(value), &progress)))
            return progress;
        return BW_MOCK_QUEUE_MOVED;
    }
    if (select != SELECT_MEMORY_GRBM && select != SELECT_L2 && select != SELECT_MEMORY)
        return bw_mock_packet_fail(packet, "destination select %u", select);
    if (va % bytes)
        return bw_mock_packet_fail(packet, "destination 0x%llx is not aligned to %u bytes",
                                   (unsigned long long)va, bytes);
    if (bw_mock_space_write(space_of(packet), va, &value, bytes, &violation))
        return bw_mock_packet_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_pm4_dma_data(struct bw_mock_packet *packet)
{
    enum { TO_MEMORY = 0, NOWHERE = 2, TO_L2 = 3, FROM_DATA = 2, FROM_GDS = 1, FIXED_ADDRESSES = 0x3c000000 };
    struct bw_mock_violation violation;
    uint32_t to = bw_field(packet->words[0], 20, 21), from = bw_field(packet->words[0], 29, 30);
    uint32_t size = bw_field(packet->words[5], 0, 25);
    uint64_t source = bw_mock_address(packet->words + 1), target = bw_mock_address(packet->words + 3);
    int rc = 0;
    if (packet->words[5] & FIXED_ADDRESSES)
        return bw_mock_packet_fail(packet, "register or fixed addresses (command 0x%08x)", packet->words[5]);
    if (from == FROM_GDS || (to != TO_MEMORY && to != NOWHERE && to != TO_L2))
        return bw_mock_packet_fail(packet, "source select %u, destination select %u", from, to);
    if (to == NOWHERE) { /* a prefetch into L2: only reads */
        struct bw_mock_mapping mapping;
        violation = (struct bw_mock_violation){.va = source, .access = BW_MOCK_READ};
        rc = from == FROM_DATA || bw_mock_space_find(space_of(packet), source, &mapping) ? 0 : -1;
    } else if (from == FROM_DATA) {
        if (size % 4 || target % 4)
            return bw_mock_packet_fail(packet, "fill of %u bytes at 0x%llx: not whole words", size,
                                       (unsigned long long)target);
        rc = bw_mock_space_fill(space_of(packet), target, packet->words[1], 4, size, &violation);
    } else {
        enum bw_mock_queue_progress progress;
        if (!bw_mock_link_passes(packet->queue, source, &progress) ||
            !bw_mock_link_passes(packet->queue, target, &progress))
            return progress;
        rc = bw_mock_space_copy(space_of(packet), target, source, size, &violation);
    }
    return rc ? bw_mock_packet_fault(packet, &violation) : BW_MOCK_QUEUE_MOVED;
}

enum { WAIT_POLL = 0, WAIT_WRITE_THEN_POLL = 1, WAIT_PREEMPTABLE = 3, FUNCTION_RESERVED = 7 };

enum bw_mock_queue_progress bw_mock_pm4_wait_reg_mem(struct bw_mock_packet *packet)
{
    enum bw_mock_queue_progress progress;
    struct bw_mock_violation violation;
    struct bw_mock_queue *queue = packet->queue;
    uint32_t function = bw_field(packet->words[0], 0, 2), in_memory = bw_field(packet->words[0], 4, 5);
    uint32_t operation = bw_field(packet->words[0], 6, 7), reference = packet->words[3],
             mask = packet->words[4], value;
    uint64_t va = 0; /* of memory */
    if (function == FUNCTION_RESERVED || in_memory > 1)
        return bw_mock_packet_fail(packet, "function %u, memory space %u", function, in_memory);
    if (operation != WAIT_POLL && operation != WAIT_WRITE_THEN_POLL && operation != WAIT_PREEMPTABLE)
        return bw_mock_packet_fail(packet, "operation %u", operation);
    if (operation == WAIT_WRITE_THEN_POLL) {
        if (in_memory)
            return bw_mock_packet_fail(packet, "write-then-wait works on registers only");
        if (!queue->wait_armed && !write_register(packet, packet->words[1], reference, &progress))
            return progress;
        queue->wait_armed = true;
        if (!read_register(packet, packet->words[2], &value, &progress))
            return progress;
    } else if (!in_memory) {
        if (!read_register(packet, packet->words[1], &value, &progress))
            return progress;
    } else {
        va = bw_mock_address(packet->words + 1);
        if (va % 4)
            return bw_mock_packet_fail(packet, "address 0x%llx is not aligned to 4 bytes",
                                       (unsigned long long)va);
        if (bw_mock_space_read(space_of(packet), va, &value, sizeof value, &violation))
            return bw_mock_packet_fault(packet, &violation);
    }
    bool over = bw_mock_compare(function, value & mask, reference);
    if (over && in_memory)
        bw_mock_record_wait(queue, va, function, mask, reference);
    return over ? BW_MOCK_QUEUE_MOVED : bw_mock_packet_block(packet, va, function, value & mask, reference);
}

enum bw_mock_queue_progress bw_mock_pm4_wait_reg_mem64(struct bw_mock_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t function = bw_field(packet->words[0], 0, 2), in_memory = bw_field(packet->words[0], 4, 5);
    uint64_t va = bw_mock_address(packet->words + 1), value;
    uint64_t reference = bw_mock_address(packet->words + 3), mask = bw_mock_address(packet->words + 5);
    if (function == FUNCTION_RESERVED || in_memory != 1 ||
        bw_field(packet->words[0], 6, 7) == WAIT_WRITE_THEN_POLL)
        return bw_mock_packet_fail(packet, "control 0x%08x: only memory is waited for with 64 bits",
                                   packet->words[0]);
    if (bw_mock_space_read(space_of(packet), va, &value, sizeof value, &violation))
        return bw_mock_packet_fault(packet, &violation);
    return bw_mock_compare(function, value & mask, reference)
               ? BW_MOCK_QUEUE_MOVED
               : bw_mock_packet_block(packet, va, function, value & mask, reference);
}

struct atomic_operands {
    uint32_t operation;
    uint64_t operand;
};

static uint64_t apply_atomic(uint64_t value, void *user)
{
    const struct atomic_operands *operands = user;
    switch (operands->operation & 0x1f) {
    case 15:
        return value + operands->operand;
    case 16:
        return value - operands->operand;
    case 21:
        return value & operands->operand;
    case 22:
        return value | operands->operand;
    case 23:
        return value ^ operands->operand;
    default:
        return operands->operand; /* 7: swap */
    }
}

/* Operations of the texture cache (sid.h, TC_OP_ATOMIC_*): bits 4:0 the operation, bit 5 64 bits, bit 6 no
 * return. */
enum bw_mock_queue_progress bw_mock_pm4_atomic_mem(struct bw_mock_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t operation = bw_field(packet->words[0], 0, 6), kind = operation & 0x1f;
    uint32_t bytes = operation & 0x20 ? 8 : 4;
    uint64_t va = bw_mock_address(packet->words + 1), before;
    struct atomic_operands operands = {operation, bw_mock_address(packet->words + 3)};
    if (kind != 7 && kind != 15 && kind != 16 && kind != 21 && kind != 22 && kind != 23)
        return bw_mock_packet_fail(packet, "atomic operation %u", operation);
    if (va % bytes)
        return bw_mock_packet_fail(packet, "address 0x%llx is not aligned to %u bytes",
                                   (unsigned long long)va, bytes);
    if (bw_mock_space_atomic(space_of(packet), va, bytes, apply_atomic, &operands, &before, &violation))
        return bw_mock_packet_fault(packet, &violation);
    return BW_MOCK_QUEUE_MOVED;
}

enum {
    RELEASE_INDEX_EOP = 5,
    RELEASE_INDEX_DONE = 6,
    RELEASE_DATA_NONE = 0,
    RELEASE_DATA_32 = 1,
    RELEASE_DATA_64 = 2,
    RELEASE_DATA_CLOCK = 3,
    RELEASE_INT_NONE = 0,
    RELEASE_INT_ONLY = 1,
    RELEASE_INT_CONFIRM = 2,
    RELEASE_INT_DATA_CONFIRM = 3, /* no interrupt: the data waits for the confirmation */
    RELEASE_INT_CONTEXT = 4,
};

static bool check_release(struct bw_mock_packet *packet, enum bw_mock_queue_progress *progress)
{
    /* Timestamp events (index 5) and done events (index 6). */
    static const struct {
        uint8_t type, index;
    } known[] = {{0x14, RELEASE_INDEX_EOP}, {0x28, RELEASE_INDEX_EOP}, {0x2f, RELEASE_INDEX_DONE}};
    uint32_t type = bw_field(packet->words[0], 0, 5), index = bw_field(packet->words[0], 8, 11);
    bool good = false;
    for (size_t i = 0; i < BW_COUNT_OF(known); i++)
        good = good || (known[i].type == type && known[i].index == index);
    if (!good) {
        *progress = bw_mock_packet_fail(packet, "event 0x%02x with index %u", type, index);
        return false;
    }
    if (!packet->queue->eop_va && !packet->queue->feed) {
        *progress = bw_mock_packet_fail(packet, "the queue has no EOP buffer");
        return false;
    }
    uint32_t target = bw_field(packet->words[1], 16, 17), interrupt = bw_field(packet->words[1], 24, 26);
    if (target > 1 || interrupt > RELEASE_INT_CONTEXT ||
        bw_field(packet->words[1], 29, 31) > RELEASE_DATA_CLOCK) {
        *progress = bw_mock_packet_fail(packet, "destination %u, interrupt %u, data %u: not modelled", target,
                                        interrupt, bw_field(packet->words[1], 29, 31));
        return false;
    }
    return true;
}

enum bw_mock_queue_progress bw_mock_pm4_release_mem(struct bw_mock_packet *packet)
{
    enum bw_mock_queue_progress progress;
    struct bw_mock_violation violation;
    struct bw_mock_queue *queue = packet->queue;
    if (!check_release(packet, &progress))
        return progress;
    uint32_t data = bw_field(packet->words[1], 29, 31), interrupt = bw_field(packet->words[1], 24, 26);
    uint32_t bytes = data == RELEASE_DATA_32 ? 4 : 8;
    uint64_t va = bw_mock_address(packet->words + 2);
    uint64_t value =
        data == RELEASE_DATA_CLOCK ? bw_mock_gpu_clock(queue->machine) : bw_mock_address(packet->words + 4);
    if (data != RELEASE_DATA_NONE) {
        if (va % bytes)
            return bw_mock_packet_fail(packet, "address 0x%llx is not aligned to %u bytes",
                                       (unsigned long long)va, bytes);
        bw_mock_record_write(queue, va, value, bytes);
        if (bw_mock_space_write(space_of(packet), va, &value, bytes, &violation))
            return bw_mock_packet_fault(packet, &violation);
    }
    if (interrupt == RELEASE_INT_ONLY || interrupt == RELEASE_INT_CONFIRM || interrupt == RELEASE_INT_CONTEXT)
        queue->context->front->interrupt(queue->context, packet->words[6], 32);
    return BW_MOCK_QUEUE_MOVED;
}
