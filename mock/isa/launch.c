/* The state that a wave starts with. Source: LLVM AMDGPUUsage, "Initial Kernel Execution State" and the
 * COMPUTE_PGM_RSRC tables beside it (gfx11: packed work-item ids, architected flat scratch). */
#include <string.h>

#include "base/bits.h"
#include "mock/isa/run.h"

enum { RSRC2_TIDIG_LOW = 11, RSRC2_TIDIG_HIGH = 12 };

static bool rsrc2_bit(const struct bw_isa_dispatch *dispatch, unsigned bit)
{
    return dispatch->rsrc2 >> bit & 1;
}

void bw_group_place(const struct bw_run *run, struct bw_group *group, uint64_t index)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    uint64_t rest = index;
    group->index = index;
    group->items = 1;
    for (unsigned i = 0; i < 3; i++) {
        uint32_t place = (uint32_t)(rest % dispatch->group_count[i]);
        bool is_last = place == dispatch->group_count[i] - 1;
        rest /= dispatch->group_count[i];
        group->id[i] = dispatch->group_start[i] + place;
        group->size[i] =
            is_last && dispatch->last_group_size[i] ? dispatch->last_group_size[i] : dispatch->group_size[i];
        group->items *= group->size[i];
    }
    group->waves = (uint32_t)bw_div_up(group->items, dispatch->wave_size);
    group->live_count = group->started = 0;
    group->slots_used = 0;
}

/* Work-item ids of every lane of a group of that size: x [9:0], y [19:10], z [29:20], as many as rsrc2 asks
 * for. */
static void fill_ids(struct bw_worker *worker, const uint32_t size[3], unsigned components)
{
    uint32_t at = 0;
    for (uint32_t z = 0; z < size[2]; z++)
        for (uint32_t y = 0; y < size[1]; y++)
            for (uint32_t x = 0; x < size[0]; x++)
                worker->ids[at++] = x | (components > 0 ? y << 10 : 0) | (components > 1 ? z << 20 : 0);
    for (; at % 64; at++)
        worker->ids[at] = 0;
    memcpy(worker->ids_size, size, sizeof worker->ids_size);
    worker->ids_components = components;
}

static void set_sgpr(struct bw_wave *wave, unsigned index, uint32_t value)
{
    wave->sgpr[index] = value;
    for (unsigned lane = 0; lane < BW_LANES; lane++)
        wave->shadow[index].lane[lane] = value;
}

static void set_sgpr64(struct bw_wave *wave, unsigned index, uint64_t value)
{
    set_sgpr(wave, index, (uint32_t)value);
    set_sgpr(wave, index + 1, (uint32_t)(value >> 32));
}

/* What earlier waves left in registers is unspecified: with a seed, a pattern of it, so that a read before a
 * write shows. */
static void fill_stale(const struct bw_run *run, struct bw_wave *wave)
{
    const struct bw_code *code = run->program->code;
    uint64_t seed = run->dispatch->seed;
    for (unsigned i = 0; i < BW_SREG_VCC_LO; i++)
        set_sgpr(wave, i, (uint32_t)bw_hash64(seed + i));
    for (uint32_t half = 0; half < wave->wave_size / BW_LANES; half++) {
        for (uint32_t i = 0; i < code->vgprs_used; i++) {
            struct bw_vreg *vreg = &wave->vgpr[half * code->vgpr_count + i];
            for (unsigned lane = 0; lane < BW_LANES; lane++)
                vreg->lane[lane] = (uint32_t)bw_hash64(seed ^ ((uint64_t)i << 32 | lane));
        }
    }
}

static void launch_sgprs(const struct bw_run *run, const struct bw_group *group, struct bw_wave *wave)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    enum { RSRC2_TGID_X = 7, RSRC2_TG_SIZE = 10 };
    unsigned next = run->user_sgprs;
    for (unsigned i = 0; i < run->user_sgprs; i++)
        set_sgpr(wave, i, dispatch->user_sgpr[i]);
    for (unsigned i = 0; i < 3; i++) {
        if (rsrc2_bit(dispatch, RSRC2_TGID_X + i))
            set_sgpr(wave, next++, group->id[i]);
    }
    if (rsrc2_bit(dispatch, RSRC2_TG_SIZE)) /* first wave [31], waves in the group [5:0] */
        set_sgpr(wave, next++, (wave->index == 0 ? 0x80000000u : 0) | group->waves);
    set_sgpr64(wave, BW_SREG_VCC_LO, 0);
    set_sgpr(wave, BW_SREG_M0, 0);
    set_sgpr(wave, BW_SREG_NULL, 0);
    wave->sgpr[BW_SLOT_SCC] = 0;
    wave->sgpr[BW_SLOT_SHARED_BASE] = wave->sgpr[BW_SLOT_PRIVATE_BASE] = 0;
    wave->sgpr[BW_SLOT_SHARED_BASE + 1] = (uint32_t)(dispatch->shared_aperture >> 32);
    wave->sgpr[BW_SLOT_PRIVATE_BASE + 1] = (uint32_t)(dispatch->private_aperture >> 32);
    wave->sgpr[BW_SLOT_SHARED_LIMIT] = wave->sgpr[BW_SLOT_PRIVATE_LIMIT] = 0xffffffffu;
    wave->sgpr[BW_SLOT_SHARED_LIMIT + 1] = wave->sgpr[BW_SLOT_SHARED_BASE + 1];
    wave->sgpr[BW_SLOT_PRIVATE_LIMIT + 1] = wave->sgpr[BW_SLOT_PRIVATE_BASE + 1];
}

static void launch_lanes(const struct bw_run *run, struct bw_worker *worker, const struct bw_group *group,
                         struct bw_wave *wave)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    unsigned components = bw_field(dispatch->rsrc2, RSRC2_TIDIG_LOW, RSRC2_TIDIG_HIGH);
    uint32_t first = wave->index * wave->wave_size;
    uint32_t lanes = group->items - first < wave->wave_size ? group->items - first : wave->wave_size;
    uint64_t exec = lanes == 64 ? ~0ull : (1ull << lanes) - 1;
    if (memcmp(worker->ids_size, group->size, sizeof group->size) || worker->ids_components != components)
        fill_ids(worker, group->size, components);
    set_sgpr64(wave, BW_SREG_EXEC_LO, exec);
    for (uint32_t half = 0; half < wave->wave_size / BW_LANES; half++)
        memcpy(&wave->vgpr[half * run->program->code->vgpr_count], &worker->ids[first + half * BW_LANES],
               BW_VREG_BYTES);
}

void bw_wave_launch(const struct bw_run *run, struct bw_worker *worker, struct bw_group *group,
                    struct bw_wave *wave, uint32_t index)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    wave->worker = worker;
    wave->group = group;
    wave->dispatch = dispatch;
    wave->program = run->program;
    wave->index = index;
    wave->wave_size = dispatch->wave_size;
    wave->mode = bw_field(dispatch->rsrc1, 12, 19) | bw_field(dispatch->rsrc1, 21, 21) << 8 |
                 bw_field(dispatch->rsrc1, 23, 23) << 9 | bw_field(dispatch->rsrc1, 26, 26) << 23;
    wave->lds = group->lds;
    wave->lds_bytes = dispatch->lds_bytes;
    wave->shared_aperture = dispatch->shared_aperture;
    wave->private_aperture = dispatch->private_aperture;
    wave->code_va = run->program->code->entry_va;
    wave->trap_status = 0;
    wave->granted = BW_WAVE_BUDGET;
    wave->budget = BW_WAVE_BUDGET + run->entry->ordinal;
    wave->counted = 0;
    wave->stop = BW_WAVE_RUNNING;
    wave->resume = run->entry;
    bw_wave_sync_constants(wave, run->program->code);
    if (dispatch->seed)
        fill_stale(run, wave);
    launch_sgprs(run, group, wave);
    launch_lanes(run, worker, group, wave);
}
