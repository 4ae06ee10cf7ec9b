/* PM4 packets that set registers, order work or steer the stream. */
#include "base/bits.h"
#include "mock/engine/pm4.h"
#include "mock/engine/registers.h"

enum bw_mock_queue_progress bw_mock_pm4_nop(struct bw_mock_packet *packet)
{
    return BW_MOCK_QUEUE_MOVED;
}

/* Checks every register of a SET packet; the values start at words[1]. */
static bool check_registers(struct bw_mock_packet *packet, uint32_t first, uint32_t space_count,
                            enum bw_mock_queue_progress *progress)
{
    const struct bw_mock_chip *chip = packet->queue->context->gpu->chip;
    uint32_t offset = packet->words[0], count = packet->count - 1;
    if (offset >= space_count || count > space_count - offset) {
        *progress =
            bw_mock_packet_fail(packet, "offset 0x%x, %u registers: past the register space", offset, count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_mock_register *row = bw_mock_register_find(chip, first + offset + i);
        uint32_t value = packet->words[1 + i];
        if (!row) {
            *progress = bw_mock_packet_fail(packet, "no register at offset 0x%x (dword 0x%x)", offset + i,
                                            first + offset + i);
            return false;
        }
        if (value & ~row->mask) {
            *progress = bw_mock_packet_fail(packet, "%s: reserved bits 0x%08x in 0x%08x", row->name,
                                            value & ~row->mask, value);
            return false;
        }
    }
    return true;
}

enum bw_mock_queue_progress bw_mock_pm4_set_sh_reg(struct bw_mock_packet *packet)
{
    enum bw_mock_queue_progress progress;
    if (!check_registers(packet, BW_MOCK_SH_FIRST, BW_MOCK_SH_COUNT, &progress))
        return progress;
    for (uint32_t i = 1; i < packet->count; i++)
        packet->queue->sh[packet->words[0] + i - 1] = packet->words[i];
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_pm4_set_uconfig_reg(struct bw_mock_packet *packet)
{
    enum bw_mock_queue_progress progress;
    if (!check_registers(packet, BW_MOCK_UCONFIG_FIRST, BW_MOCK_UCONFIG_COUNT, &progress))
        return progress;
    return BW_MOCK_QUEUE_MOVED; /* none of those in the table changes what this model does */
}

enum bw_mock_queue_progress bw_mock_pm4_event_write(struct bw_mock_packet *packet)
{
    /* Event types and the index that each needs: Mesa gfx11.json VGT_EVENT_TYPE, sid.h EVENT_INDEX. */
    static const struct {
        uint8_t type, index;
    } known[] = {
        {0x07, 4}, /* CS_PARTIAL_FLUSH */
        {0x16, 0}, /* CACHE_FLUSH_AND_INV_EVENT */
        {0x17, 0}, /* PERFCOUNTER_START */
        {0x18, 0}, /* PERFCOUNTER_STOP */
        {0x1b, 0}, /* PERFCOUNTER_SAMPLE */
        {0x33, 0}, /* THREAD_TRACE_START */
        {0x34, 0}, /* THREAD_TRACE_STOP */
        {0x35, 0}, /* THREAD_TRACE_MARKER */
        {0x37, 0}, /* THREAD_TRACE_FINISH */
    };
    uint32_t type = bw_field(packet->words[0], 0, 5), index = bw_field(packet->words[0], 8, 11);
    if (packet->count != 1)
        return bw_mock_packet_fail(packet, "event 0x%02x takes no address", type);
    for (size_t i = 0; i < BW_COUNT_OF(known); i++) {
        if (known[i].type != type)
            continue;
        if (known[i].index != index)
            return bw_mock_packet_fail(packet, "event 0x%02x needs index %u, not %u", type, known[i].index,
                                       index);
        return BW_MOCK_QUEUE_MOVED; /* dispatches end before the next packet is read */
    }
    return bw_mock_packet_fail(packet, "unknown event 0x%02x", type);
}

enum bw_mock_queue_progress bw_mock_pm4_pred_exec(struct bw_mock_packet *packet)
{
    enum { FIRST_XCC = 1 };
    if (!packet->queue->in_indirect)
        return bw_mock_packet_fail(packet, "outside of an indirect buffer");
    if (!(bw_field(packet->words[0], 24, 31) & FIRST_XCC))
        packet->skip = bw_field(packet->words[0], 0, 13);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_pm4_cond_exec(struct bw_mock_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t condition;
    if (bw_mock_space_read(&packet->queue->context->space, bw_mock_address(packet->words), &condition,
                           sizeof condition, &violation))
        return bw_mock_packet_fault(packet, &violation);
    if (!condition)
        packet->skip = bw_field(packet->words[3], 0, 13);
    return BW_MOCK_QUEUE_MOVED;
}

enum bw_mock_queue_progress bw_mock_pm4_acquire_mem(struct bw_mock_packet *packet)
{
    return BW_MOCK_QUEUE_MOVED; /* this model has no caches that could be stale */
}
