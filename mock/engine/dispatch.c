/* DISPATCH packets: from register state to a launch. */
#include "mock/engine/dispatch.h"

#include "base/bits.h"
#include "mock/engine/pm4.h"
#include "mock/engine/registers.h"

/* COMPUTE_DISPATCH_INITIATOR. */
enum {
    SHADER_EN = 1 << 0,
    PARTIAL_TG_EN = 1 << 1,
    FORCE_START_AT_000 = 1 << 2,
    USE_THREAD_DIMENSIONS = 1 << 5,
    RESTORE = 1 << 14,
    CS_W32_EN = 1 << 15,
};

enum { RSRC2_LDS_LOW = 15, RSRC2_LDS_HIGH = 23 };

static uint64_t sh64(const struct bw_mock_queue *queue, uint32_t index)
{
    return bw_mock_address(queue->sh + index);
}

/* Group counts, starts and sizes of one dimension. The packet's numbers are where the dispatch ends: RADV
 * adds the start to them (radv_emit_dispatch_packets). */
static bool set_dimension(struct bw_mock_packet *packet, struct bw_isa_dispatch *dispatch, uint32_t i,
                          uint32_t end, uint32_t initiator, enum bw_mock_queue_progress *progress)
{
    const uint32_t *sh = packet->queue->sh;
    uint32_t threads = sh[BW_MOCK_COMPUTE_NUM_THREAD_X + i];
    uint32_t full = bw_field(threads, 0, 15), partial = bw_field(threads, 16, 31);
    uint32_t start = initiator & FORCE_START_AT_000 ? 0 : sh[BW_MOCK_COMPUTE_START_X + i];
    dispatch->group_size[i] = full;
    dispatch->last_group_size[i] = initiator & PARTIAL_TG_EN ? partial : 0;
    if (initiator & USE_THREAD_DIMENSIONS)
        end = full ? (uint32_t)bw_div_up(end, full) : 0;
    if (start > end) {
        *progress = bw_mock_packet_fail(packet, "dimension %u starts at %u and ends at %u", i, start, end);
        return false;
    }
    if (partial > full && (initiator & PARTIAL_TG_EN)) {
        *progress = bw_mock_packet_fail(packet, "dimension %u: a partial group of %u, whole ones have %u", i,
                                        partial, full);
        return false;
    }
    dispatch->group_start[i] = start;
    dispatch->group_count[i] = end - start;
    return true;
}

static enum bw_mock_queue_progress dispatch_groups(struct bw_mock_packet *packet,
                                                   const uint32_t dimensions[3], uint32_t initiator)
{
    struct bw_mock_queue *queue = packet->queue;
    const struct bw_mock_gpu *gpu = queue->context->gpu;
    const struct bw_mock_register *row = bw_mock_register_find(gpu->chip, BW_MOCK_SH_FIRST + 0x200);
    struct bw_mock_launch launch = {0};
    struct bw_isa_dispatch *dispatch = &launch.dispatch;
    enum bw_mock_queue_progress progress;
    char why[160];
    if (initiator & ~row->mask)
        return bw_mock_packet_fail(packet, "reserved bits in initiator 0x%08x", initiator);
    if (!(initiator & SHADER_EN))
        return bw_mock_packet_fail(packet, "initiator 0x%08x without COMPUTE_SHADER_EN", initiator);
    if (initiator & RESTORE)
        return bw_mock_packet_fail(packet, "initiator 0x%08x restores saved waves, there are none",
                                   initiator);
    for (uint32_t i = 0; i < 3; i++) {
        if (!set_dimension(packet, dispatch, i, dimensions[i], initiator, &progress))
            return progress;
    }
    bool gfx9 = bw_mock_family(gpu->chip) == BW_MOCK_GFX9;
    dispatch->entry_va = sh64(queue, BW_MOCK_COMPUTE_PGM_LO) << 8;
    dispatch->rsrc1 = queue->sh[BW_MOCK_COMPUTE_PGM_RSRC1];
    dispatch->rsrc2 = queue->sh[BW_MOCK_COMPUTE_PGM_RSRC2];
    dispatch->rsrc3 = queue->sh[gfx9 ? BW_MOCK_COMPUTE_PGM_RSRC3_GFX9 : BW_MOCK_COMPUTE_PGM_RSRC3];
    dispatch->wave_size = initiator & CS_W32_EN ? 32 : 64;
    dispatch->scratch_base = sh64(queue, BW_MOCK_COMPUTE_DISPATCH_SCRATCH_BASE_LO) << 8;
    for (uint32_t i = 0; i < 16; i++)
        dispatch->user_sgpr[i] = queue->sh[BW_MOCK_COMPUTE_USER_DATA_0 + i];
    launch.lds_blocks = bw_field(dispatch->rsrc2, RSRC2_LDS_LOW, RSRC2_LDS_HIGH);
    launch.tmpring = queue->sh[BW_MOCK_COMPUTE_TMPRING_SIZE];
    if (bw_mock_launch_refused(gpu, &launch, why, sizeof why))
        return bw_mock_packet_fail(packet, "%s", why);
    return bw_mock_launch_run(queue, &launch);
}

enum bw_mock_queue_progress bw_mock_pm4_dispatch_direct(struct bw_mock_packet *packet)
{
    return dispatch_groups(packet, packet->words, packet->words[3]);
}

enum bw_mock_queue_progress bw_mock_pm4_dispatch_indirect(struct bw_mock_packet *packet)
{
    struct bw_mock_violation violation;
    uint32_t dimensions[3];
    if (bw_mock_space_read(&packet->queue->context->space, bw_mock_address(packet->words), dimensions,
                           sizeof dimensions, &violation))
        return bw_mock_packet_fault(packet, &violation);
    return dispatch_groups(packet, dimensions, packet->words[2]);
}
