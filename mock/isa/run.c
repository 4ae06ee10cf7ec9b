/* Workgroups and waves of a dispatch: who runs when. A group lives on one worker, its waves take turns at
 * barriers, sleeps and polls; groups are handed out in order. So nothing a kernel may rely on depends on the
 * number of threads. */
#include "mock/isa/run.h"

#include <stdlib.h>
#include <string.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/bits.h"

static struct bw_wave *slot_wave(const struct bw_run *run, struct bw_worker *worker, unsigned slot)
{
    return (struct bw_wave *)(void *)(worker->slots + slot * run->slot_bytes);
}

/* A scratch slot for the wave, or false when all are taken (then it starts later). */
static bool take_scratch(struct bw_run *run, struct bw_wave *wave)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    wave->scratch_va = 0;
    wave->scratch_bytes = 0;
    if (!run->uses_scratch)
        return true;
    pthread_mutex_lock(&run->lock);
    uint32_t slot = 0, slots = dispatch->scratch_wave_slots < BW_SCRATCH_SLOTS_MAX
                                   ? dispatch->scratch_wave_slots
                                   : BW_SCRATCH_SLOTS_MAX;
    while (slot < slots && run->scratch_used[slot])
        slot++;
    if (slot < slots)
        run->scratch_used[slot] = 1;
    pthread_mutex_unlock(&run->lock);
    if (slot == slots)
        return false;
    wave->scratch_slot = slot;
    wave->scratch_va = dispatch->scratch_base + (uint64_t)slot * dispatch->scratch_wave_bytes;
    wave->scratch_bytes = dispatch->scratch_wave_bytes;
    return true;
}

static void give_scratch(struct bw_run *run, struct bw_wave *wave)
{
    if (!run->uses_scratch)
        return;
    pthread_mutex_lock(&run->lock);
    run->scratch_used[wave->scratch_slot] = 0;
    pthread_mutex_unlock(&run->lock);
}

/* Starts the group's next wave in a free slot; false when it has to wait for scratch. */
static bool start_wave(struct bw_run *run, struct bw_worker *worker, struct bw_group *group)
{
    unsigned slot = (unsigned)__builtin_ctz(~group->slots_used);
    struct bw_wave *wave = slot_wave(run, worker, slot);
    if (!take_scratch(run, wave))
        return false;
    bw_wave_launch(run, worker, group, wave, group->started++);
    wave->slot = slot;
    group->slots_used |= 1u << slot;
    group->live[group->live_count++] = wave;
    worker->waves++;
    return true;
}

static void run_wave(struct bw_wave *wave)
{
    const struct bw_uop *uop = wave->resume;
    wave->stop = BW_WAVE_RUNNING;
    do {
        uop = uop->run(wave, uop);
    } while (uop);
    bw_wave_finish_count(wave);
}

static void end_wave(struct bw_run *run, struct bw_group *group, unsigned at)
{
    struct bw_wave *wave = group->live[at];
    give_scratch(run, wave);
    group->slots_used &= ~(1u << wave->slot);
    group->live_count--;
    memmove(&group->live[at], &group->live[at + 1], (group->live_count - at) * sizeof group->live[0]);
    atomic_fetch_add_explicit(&run->control->waves_retired, 1, memory_order_relaxed);
}

static void record_fault(struct bw_run *run, struct bw_worker *worker, const struct bw_group *group,
                         uint32_t wave_index)
{
    pthread_mutex_lock(&run->lock);
    if (group->index < atomic_load(&run->fault_group)) {
        atomic_store(&run->fault_group, group->index);
        run->fault = worker->fault;
        run->fault_wave = wave_index;
    }
    pthread_mutex_unlock(&run->lock);
}

/* Whether this group should go on. */
static bool may_continue(struct bw_run *run, uint64_t group_index)
{
    if (atomic_load_explicit(&run->control->stop, memory_order_relaxed))
        atomic_store_explicit(&run->stopped, true, memory_order_relaxed);
    return !atomic_load_explicit(&run->stopped, memory_order_relaxed) &&
           group_index < atomic_load_explicit(&run->fault_group, memory_order_relaxed);
}

/* Every live wave is at the barrier and every wave has been started: they go on. */
static void release_barrier(struct bw_group *group)
{
    for (unsigned i = 0; i < group->live_count; i++) {
        if (group->live[i]->stop != BW_WAVE_BARRIER)
            return;
    }
    for (unsigned i = 0; i < group->live_count; i++)
        group->live[i]->stop = BW_WAVE_YIELD;
}

/* Runs the wave until it stops. False when the group is to be given up. */
static bool step_wave(struct bw_run *run, struct bw_worker *worker, struct bw_group *group, unsigned at)
{
    struct bw_wave *wave = group->live[at];
    worker->alone = group->live_count == 1 && group->started == group->waves && !run->dispatch->single_step;
    run_wave(wave);
    if (wave->stop == BW_WAVE_FAULT) {
        record_fault(run, worker, group, wave->index);
        return false;
    }
    if (wave->stop == BW_WAVE_ENDED)
        end_wave(run, group, at);
    return true;
}

/* A round over the live waves. */
static bool run_round(struct bw_run *run, struct bw_worker *worker, struct bw_group *group)
{
    for (unsigned at = 0; at < group->live_count;) {
        struct bw_wave *wave = group->live[at];
        if (wave->stop == BW_WAVE_BARRIER) {
            at++;
            continue;
        }
        if (!step_wave(run, worker, group, at))
            return false;
        if (at < group->live_count && group->live[at] == wave)
            at++;
    }
    return true;
}

static void abandon(struct bw_run *run, struct bw_group *group)
{
    for (unsigned i = 0; i < group->live_count; i++)
        give_scratch(run, group->live[i]);
}

static void run_group(struct bw_run *run, struct bw_worker *worker, struct bw_group *group)
{
    while (group->started < group->waves || group->live_count) {
        if (!may_continue(run, group->index)) {
            abandon(run, group);
            return;
        }
        bool started = group->started < group->waves && start_wave(run, worker, group);
        bool ok =
            started ? step_wave(run, worker, group, group->live_count - 1) : run_round(run, worker, group);
        if (!ok) {
            abandon(run, group);
            return;
        }
        if (group->started == group->waves)
            release_barrier(group);
    }
}

/* Single-step mode: all waves start, then one at a time, as the seed says. */
static void run_group_stepped(struct bw_run *run, struct bw_worker *worker, struct bw_group *group,
                              struct bw_rng *rng)
{
    while (group->started < group->waves && start_wave(run, worker, group))
        continue;
    while (group->live_count && may_continue(run, group->index)) {
        unsigned at = (unsigned)bw_rng_below(rng, group->live_count);
        if (group->live[at]->stop != BW_WAVE_BARRIER && !step_wave(run, worker, group, at))
            break;
        if (group->started < group->waves)
            start_wave(run, worker, group);
        else
            release_barrier(group);
    }
    abandon(run, group);
}

static void run_groups(struct bw_run *run, struct bw_worker *worker)
{
    struct bw_group group;
    for (;;) {
        uint64_t first =
            atomic_fetch_add_explicit(&run->next_group, run->groups_per_take, memory_order_relaxed);
        if (first >= run->groups)
            return;
        uint64_t end =
            run->groups - first < run->groups_per_take ? run->groups : first + run->groups_per_take;
        for (uint64_t index = first; index < end; index++) {
            if (!may_continue(run, index))
                return;
            bw_group_place(run, &group, index);
            run_group(run, worker, &group);
        }
    }
}

/* One thread, groups in an order that the seed fixes: a walk with a step that has no common divisor with
 * their number. */
static void run_stepped(struct bw_run *run, struct bw_worker *worker)
{
    struct bw_rng rng = {.state = run->dispatch->seed};
    uint64_t step = bw_rng_below(&rng, run->groups) | 1, at = bw_rng_below(&rng, run->groups);
    for (uint64_t a = step, b = run->groups; b;) { /* Euclid; from 1 on any step does */
        uint64_t rest = a % b;
        a = b;
        b = rest;
        if (!b && a != 1) {
            step++;
            a = step;
            b = run->groups;
        }
    }
    struct bw_group group;
    for (uint64_t i = 0; i < run->groups && may_continue(run, 0); i++) {
        bw_group_place(run, &group, at);
        run_group_stepped(run, worker, &group, &rng);
        if (atomic_load(&run->fault_group) != UINT64_MAX)
            return;
        at = (at + step) % run->groups;
    }
}

void bw_run_work(struct bw_run *run, struct bw_worker *worker)
{
#if defined(__SSE__)
    /* Handlers count on round to nearest, denormals on, no traps, whatever the host program has set. */
    enum { MXCSR_DEFAULT = 0x1f80 };
    unsigned saved = _mm_getcsr();
    _mm_setcsr(MXCSR_DEFAULT);
#endif
    if (run->dispatch->single_step)
        run_stepped(run, worker);
    else
        run_groups(run, worker);
#if defined(__SSE__)
    _mm_setcsr(saved);
#endif
    atomic_fetch_add_explicit(&run->control->instructions, worker->instructions - worker->reported,
                              memory_order_relaxed);
    pthread_mutex_lock(&run->lock);
    run->instructions += worker->instructions;
    run->waves += worker->waves;
    pthread_mutex_unlock(&run->lock);
}
