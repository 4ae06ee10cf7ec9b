#include "mock/engine/aql.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "mock/engine/dispatch.h"
#include "mock/engine/pm4.h"

enum {
    DESCRIPTOR_BYTES = 64,
    RSRC2_SCRATCH_EN = 1,
    PROPERTY_PRIVATE_BUFFER = 0x1,
    PROPERTY_DISPATCH_PTR = 0x2,
    PROPERTY_QUEUE_PTR = 0x4,
    PROPERTY_KERNARG_PTR = 0x8,
    PROPERTY_DISPATCH_ID = 0x10,
    PROPERTY_FLAT_SCRATCH = 0x20,
    PROPERTY_PRIVATE_SIZE = 0x40,
    PROPERTY_WAVE32 = 0x400,
    PROPERTY_DYNAMIC_STACK = 0x800,
    LDS_BLOCK_BYTES = 512,
    LDS_BLOCK_BYTES_GFX950 = 1280,
    USER_SGPRS_MAX = 16,
};

/* Offsets into amd_queue_t. */
enum {
    QUEUE_READ_ID = 128,
    QUEUE_BASE_OFFSET = 136, /* how far read_dispatch_id lies behind the start of the structure */
    QUEUE_TMPRING = 140,
    QUEUE_SCRATCH_DESCRIPTOR = 144,
    QUEUE_SCRATCH_BASE = 160,
    QUEUE_SCRATCH_LANE_BYTES = 176,
    QUEUE_BYTES = 256,
};

struct descriptor {
    uint32_t group_bytes, private_bytes, kernarg_bytes, reserved0;
    int64_t entry_offset;
    uint8_t reserved1[20];
    uint32_t rsrc3, rsrc1, rsrc2;
    uint16_t properties, preload;
    uint8_t reserved2[4];
};
static_assert(sizeof(struct descriptor) == DESCRIPTOR_BYTES, "kernel descriptor");

struct state {
    struct bw_mock_aql *packet;
    struct descriptor descriptor;
    uint64_t descriptor_va, queue_va;
    uint8_t queue[QUEUE_BYTES];
    char *why;
    size_t why_size;
};

static uint32_t queue_word(const struct state *state, unsigned offset)
{
    uint32_t value;
    memcpy(&value, state->queue + offset, sizeof value);
    return value;
}

static bool read_memory(struct state *state, uint64_t va, void *data, size_t size,
                        enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = state->packet->queue;
    struct bw_mock_violation violation;
    if (!bw_mock_space_read(&queue->context->space, va, data, size, &violation))
        return true;
    *progress = bw_mock_queue_fault(queue, &violation, "AQL kernel dispatch");
    return false;
}

static bool read_structures(struct state *state, enum bw_mock_queue_progress *progress)
{
    struct bw_mock_queue *queue = state->packet->queue;
    uint32_t back;
    state->descriptor_va = bw_mock_address(state->packet->words + 8);
    if (!read_memory(state, queue->read_va + QUEUE_BASE_OFFSET - QUEUE_READ_ID, &back, sizeof back, progress))
        return false;
    state->queue_va = queue->read_va - back;
    return read_memory(state, state->queue_va, state->queue, sizeof state->queue, progress) &&
           read_memory(state, state->descriptor_va, &state->descriptor, sizeof state->descriptor, progress);
}

/* Grid and group sizes; unused dimensions are 1. */
static bool set_grid(struct state *state, struct bw_isa_dispatch *dispatch)
{
    const uint32_t *words = state->packet->words;
    uint32_t dimensions = bw_field(words[0], 16, 17);
    const uint32_t group[3] = {bw_field(words[1], 0, 15), bw_field(words[1], 16, 31),
                               bw_field(words[2], 0, 15)};
    if (!dimensions) {
        snprintf(state->why, state->why_size, "KERNEL_DISPATCH: a grid of 0 dimensions");
        return false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t grid = words[3 + i];
        if (!group[i] || !grid || (i >= dimensions && (group[i] != 1 || grid != 1))) {
            snprintf(state->why, state->why_size, "dimension %u of %u: grid %u, group %u", i, dimensions,
                     grid, group[i]);
            return false;
        }
        dispatch->group_size[i] = group[i];
        dispatch->group_count[i] = (uint32_t)bw_div_up(grid, group[i]);
        dispatch->last_group_size[i] = grid % group[i];
    }
    return true;
}

static void push_sgpr64(struct bw_isa_dispatch *dispatch, uint32_t *next, uint64_t value)
{
    dispatch->user_sgpr[(*next)++] = bw_lo32(value);
    dispatch->user_sgpr[(*next)++] = bw_hi32(value);
}

/* In the order of AMDGPUUsage's table of user SGPRs. */
static bool set_user_sgprs(struct state *state, struct bw_isa_dispatch *dispatch)
{
    const struct descriptor *descriptor = &state->descriptor;
    const struct bw_mock_queue *queue = state->packet->queue;
    uint16_t properties = descriptor->properties;
    uint32_t next = 0, expected = bw_field(descriptor->rsrc2, 1, 5);
    uint64_t packet_va = queue->ring_va + (queue->read * 64 & (queue->ring_bytes - 1));
    for (uint32_t i = 0; i < 4 && (properties & PROPERTY_PRIVATE_BUFFER); i++)
        dispatch->user_sgpr[next++] = queue_word(state, QUEUE_SCRATCH_DESCRIPTOR + i * 4);
    if (properties & PROPERTY_DISPATCH_PTR)
        push_sgpr64(dispatch, &next, packet_va);
    if (properties & PROPERTY_QUEUE_PTR)
        push_sgpr64(dispatch, &next, state->queue_va);
    if (properties & PROPERTY_KERNARG_PTR)
        push_sgpr64(dispatch, &next, bw_mock_address(state->packet->words + 10));
    if (properties & PROPERTY_DISPATCH_ID)
        push_sgpr64(dispatch, &next, queue->read);
    if (properties & PROPERTY_FLAT_SCRATCH)
        push_sgpr64(dispatch, &next, dispatch->scratch_base);
    if (properties & PROPERTY_PRIVATE_SIZE)
        dispatch->user_sgpr[next++] = state->packet->words[6];
    /* More may be declared than the properties fill: LLVM does so for gfx1100 (FeatureUserSGPRInit16Bug). */
    if (next > expected || expected > USER_SGPRS_MAX || descriptor->preload) {
        snprintf(state->why, state->why_size,
                 "kernel descriptor: properties 0x%04x ask for %u user SGPRs, RSRC2 for %u, "
                 "preload 0x%04x",
                 properties, next, expected, descriptor->preload);
        return false;
    }
    return true;
}

static bool set_memory(struct state *state, struct bw_mock_launch *launch)
{
    const struct bw_mock_chip *chip = state->packet->queue->context->gpu->chip;
    struct bw_isa_dispatch *dispatch = &launch->dispatch;
    uint32_t private_bytes = state->packet->words[6], group_bytes = state->packet->words[7];
    uint32_t block = chip->target_version == 90500 ? LDS_BLOCK_BYTES_GFX950 : LDS_BLOCK_BYTES;
    if (private_bytes < state->descriptor.private_bytes || group_bytes < state->descriptor.group_bytes) {
        snprintf(state->why, state->why_size,
                 "packet gives %u private and %u group bytes, the kernel needs %u and %u", private_bytes,
                 group_bytes, state->descriptor.private_bytes, state->descriptor.group_bytes);
        return false;
    }
    launch->lds_blocks = (uint32_t)bw_div_up(group_bytes, block);
    launch->tmpring = queue_word(state, QUEUE_TMPRING);
    memcpy(&dispatch->scratch_base, state->queue + QUEUE_SCRATCH_BASE, sizeof dispatch->scratch_base);
    uint32_t lane_bytes = queue_word(state, QUEUE_SCRATCH_LANE_BYTES);
    bool needs = private_bytes || (state->descriptor.properties & PROPERTY_DYNAMIC_STACK);
    if (needs && private_bytes > lane_bytes) {
        snprintf(state->why, state->why_size, "%u bytes of scratch per work-item, the queue has %u",
                 private_bytes, lane_bytes);
        return false;
    }
    dispatch->rsrc2 = (dispatch->rsrc2 & ~(uint32_t)RSRC2_SCRATCH_EN) | (needs ? RSRC2_SCRATCH_EN : 0);
    return true;
}

enum bw_mock_queue_progress bw_mock_aql_dispatch(struct bw_mock_aql *packet, char *why, size_t why_size)
{
    struct state state = {.packet = packet, .why = why, .why_size = why_size};
    struct bw_mock_launch launch = {0};
    struct bw_isa_dispatch *dispatch = &launch.dispatch;
    enum bw_mock_queue_progress progress;
    why[0] = 0;
    if (bw_mock_address(packet->words + 8) % DESCRIPTOR_BYTES || !bw_mock_address(packet->words + 8)) {
        snprintf(why, why_size, "kernel object 0x%llx",
                 (unsigned long long)bw_mock_address(packet->words + 8));
        return BW_MOCK_QUEUE_STOPPED;
    }
    if (!set_grid(&state, dispatch))
        return BW_MOCK_QUEUE_STOPPED;
    if (!read_structures(&state, &progress))
        return progress;
    dispatch->entry_va = state.descriptor_va + (uint64_t)state.descriptor.entry_offset;
    dispatch->rsrc1 = state.descriptor.rsrc1;
    dispatch->rsrc2 = state.descriptor.rsrc2;
    dispatch->rsrc3 = state.descriptor.rsrc3;
    dispatch->wave_size = state.descriptor.properties & PROPERTY_WAVE32 ? 32 : 64;
    if (!set_memory(&state, &launch) || !set_user_sgprs(&state, dispatch) ||
        bw_mock_launch_refused(packet->queue->context->gpu, &launch, why, why_size))
        return BW_MOCK_QUEUE_STOPPED;
    return bw_mock_launch_run(packet->queue, &launch);
}
