/* Workgroups and waves of a dispatch: who runs when. A group lives on one worker, its waves take turns at
 * barriers, sleeps and polls; groups are handed out in order. So nothing a kernel may rely on depends on the
 * number of threads. */
#include "mock/isa/run.h"

#include <assert.h>
#include <string.h>
#include <time.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/bits.h"

static struct bw_wave *slot_wave(const struct bw_run *run, const struct bw_group *group, unsigned slot)
{
    return (struct bw_wave *)(void *)(group->slots + slot * run->slot_bytes);
}

static uint32_t scratch_slots(const struct bw_run *run)
{
    uint32_t slots = run->dispatch->scratch_wave_slots;
    return slots < BW_SCRATCH_SLOTS_MAX ? slots : BW_SCRATCH_SLOTS_MAX;
}

/* Scratch for every wave of the group, or for none: a group that had some and waited for more could wait for
 * ever. */
static bool take_scratch(struct bw_run *run, struct bw_group *group)
{
    uint32_t found = 0, slots = scratch_slots(run);
    if (!run->uses_scratch)
        return true;
    pthread_mutex_lock(&run->lock);
    for (uint32_t slot = 0; slot < slots && found < group->waves; slot++) {
        if (!run->scratch_used[slot])
            group->scratch_slots[found++] = (uint16_t)slot;
    }
    bool enough = found == group->waves;
    for (uint32_t i = 0; enough && i < found; i++)
        run->scratch_used[group->scratch_slots[i]] = 1;
    pthread_mutex_unlock(&run->lock);
    return enough;
}

static void give_scratch(struct bw_run *run, const struct bw_group *group)
{
    if (!run->uses_scratch)
        return;
    pthread_mutex_lock(&run->lock);
    for (uint32_t i = 0; i < group->waves; i++)
        run->scratch_used[group->scratch_slots[i]] = 0;
    pthread_cond_broadcast(&run->scratch_freed);
    pthread_mutex_unlock(&run->lock);
}

/* Until some group has given scratch back, or it is time to look at control->stop again. */
static void wait_for_scratch(struct bw_run *run)
{
    enum { POLL_NS = 1000000 };
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += POLL_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&run->lock);
    pthread_cond_timedwait(&run->scratch_freed, &run->lock, &until);
    pthread_mutex_unlock(&run->lock);
}

/* Starts the group's next wave in a free slot. */
static void start_wave(struct bw_run *run, struct bw_worker *worker, struct bw_group *group)
{
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    unsigned slot = (unsigned)__builtin_ctz(~group->slots_used);
    struct bw_wave *wave = slot_wave(run, group, slot);
    uint32_t index = group->started++;
    wave->scratch_va = 0;
    wave->scratch_bytes = 0;
    if (run->uses_scratch) {
        wave->scratch_va =
            dispatch->scratch_base + (uint64_t)group->scratch_slots[index] * dispatch->scratch_wave_bytes;
        wave->scratch_bytes = dispatch->scratch_wave_bytes;
    }
    bw_wave_launch(run, worker, group, wave, index);
    wave->slot = slot;
    group->slots_used |= 1u << slot;
    group->live[group->live_count++] = wave;
    worker->waves++;
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
           group_index < atomic_load_explicit(&run->fault_group, memory_order_relaxed) &&
           atomic_load_explicit(&run->patience, memory_order_relaxed) > 0;
}

/* A group has gone on for some turns of its waves without ending. Once another has failed, that is to be told
 * soon, as hardware does: the groups below the one that failed are let to their ends only so that the lowest
 * failure is the one that is told, whatever the number of threads, and some may be endless. */
static void lose_patience(struct bw_run *run, unsigned turns)
{
    if (atomic_load_explicit(&run->fault_group, memory_order_relaxed) != UINT64_MAX)
        atomic_fetch_sub_explicit(&run->patience, turns, memory_order_relaxed);
}

/* When every live wave is at the barrier (and every wave has been started), they go on. */
static bool release_barrier(struct bw_group *group)
{
    for (unsigned i = 0; i < group->live_count; i++) {
        if (group->live[i]->stop != BW_WAVE_BARRIER)
            return false;
    }
    for (unsigned i = 0; i < group->live_count; i++)
        group->live[i]->stop = BW_WAVE_YIELD;
    return true;
}

static_assert(sizeof(struct bw_isa_place) == BW_ISA_PLACE_WORDS * sizeof(uint32_t), "place in words");

/* Tells whoever watches where the group stands. Another worker that is telling goes first. */
static void tell_place(struct bw_run *run, const struct bw_group *group)
{
    struct bw_isa_control *control = run->control;
    struct bw_isa_place place = {.wave = UINT32_MAX};
    uint32_t words[BW_ISA_PLACE_WORDS], serial = atomic_load(&control->place_serial);
    memcpy(place.group, group->id, sizeof place.group);
    for (unsigned i = 0; i < group->live_count; i++) {
        const struct bw_wave *wave = group->live[i];
        place.live |= 1u << wave->index;
        if (wave->stop == BW_WAVE_BARRIER) {
            place.at_barrier |= 1u << wave->index;
        } else if (wave->index < place.wave) {
            place.wave = wave->index;
            place.pc = wave->code_va + (uint64_t)(int64_t)wave->resume->pc;
        }
    }
    if (serial % 2 || !atomic_compare_exchange_strong(&control->place_serial, &serial, serial + 1))
        return;
    memcpy(words, &place, sizeof words);
    for (unsigned i = 0; i < BW_ISA_PLACE_WORDS; i++)
        atomic_store(&control->place[(serial / 2 + 1) % 2][i], words[i]);
    atomic_store(&control->place_serial, serial + 2);
}

/* The place told last stays whole until the next but one is begun, so that a writer which the system keeps
 * from going on stops no reader. */
bool bw_isa_place_read(struct bw_isa_control *control, struct bw_isa_place *place)
{
    enum { TRIES = 1000 }; /* each time two places were told while this one was read */
    uint32_t words[BW_ISA_PLACE_WORDS];
    for (int i = 0; i < TRIES; i++) {
        uint32_t told = atomic_load(&control->place_serial) / 2;
        if (told == 0)
            return false;
        for (unsigned k = 0; k < BW_ISA_PLACE_WORDS; k++)
            words[k] = atomic_load(&control->place[told % 2][k]);
        if (atomic_load(&control->place_serial) - 2 * told > 2)
            continue;
        memcpy(place, words, sizeof *place);
        return true;
    }
    return false;
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

enum outcome {
    GROUP_ENDED,
    GROUP_GIVEN_UP, /* fault or stop */
    GROUP_WAITS,    /* has used its turn; others may be what it waits for */
};

/* One turn of the group: to its end, unless it goes on for very long or sleeps all over. */
static enum outcome run_group(struct bw_run *run, struct bw_worker *worker, struct bw_group *group)
{
    enum { POLLS_PER_TURN = 64, SLEEPS_PER_TURN = 16 };
    unsigned sleeps = 0;
    worker->polls = 0;
    while (group->started < group->waves || group->live_count) {
        if (!may_continue(run, group->index))
            return GROUP_GIVEN_UP;
        bool starts = group->started < group->waves, ok;
        if (starts) {
            start_wave(run, worker, group);
            ok = step_wave(run, worker, group, group->live_count - 1);
        } else {
            ok = run_round(run, worker, group);
        }
        if (!ok)
            return GROUP_GIVEN_UP;
        if (starts)
            continue;
        bool released = release_barrier(group);
        sleeps = released ? 0 : sleeps + 1;
        if (worker->polls >= POLLS_PER_TURN || sleeps >= SLEEPS_PER_TURN)
            return group->live_count ? GROUP_WAITS : GROUP_ENDED;
    }
    return GROUP_ENDED;
}

/* The groups that this worker takes from the run's counter. */
struct taking {
    uint64_t next, end;
};

static bool take_index(struct bw_run *run, struct taking *taking, uint64_t *index)
{
    if (taking->next == taking->end) {
        uint64_t first =
            atomic_fetch_add_explicit(&run->next_group, run->groups_per_take, memory_order_relaxed);
        if (first >= run->groups)
            return false;
        taking->next = first;
        taking->end = run->groups - first < run->groups_per_take ? run->groups : first + run->groups_per_take;
    }
    *index = taking->next++;
    return true;
}

/* Groups on a worker: the one that came last, and those that gave way, oldest first. */
struct residents {
    struct bw_berth *first, **last;
    unsigned count;
    struct bw_berth *placed; /* has no scratch yet */
};

static void give_way(struct residents *residents, struct bw_berth *berth)
{
    berth->next = NULL;
    *residents->last = berth;
    residents->last = &berth->next;
    residents->count++;
}

static struct bw_berth *come_on(struct residents *residents)
{
    struct bw_berth *berth = residents->first;
    if (!berth)
        return NULL;
    residents->first = berth->next;
    if (!residents->first)
        residents->last = &residents->first;
    residents->count--;
    return berth;
}

/* A new group with its scratch; NULL when there is none, or none can start now. */
static struct bw_berth *start_group(struct bw_run *run, struct bw_worker *worker, struct residents *residents,
                                    struct taking *taking)
{
    struct bw_berth *berth = residents->placed;
    uint64_t index;
    if (!berth) {
        berth = bw_berth_take(run, worker);
        if (berth && !take_index(run, taking, &index)) {
            berth->next = worker->berths;
            worker->berths = berth;
            return NULL;
        }
        if (!berth) {
            if (residents->count == 0)
                atomic_store(&run->out_of_memory, true);
            return NULL;
        }
        bw_group_place(run, &berth->group, index);
        berth->group.slots = berth->slots;
        berth->group.lds = berth->lds;
    }
    residents->placed = take_scratch(run, &berth->group) ? NULL : berth;
    return residents->placed ? NULL : berth;
}

static void leave(struct bw_run *run, struct bw_worker *worker, struct bw_berth *berth)
{
    give_scratch(run, &berth->group);
    berth->next = worker->berths;
    worker->berths = berth;
}

/* New groups one after the other; after a turn that did not end its group, those that gave way have theirs
 * first. */
static void run_groups(struct bw_run *run, struct bw_worker *worker)
{
    struct residents residents = {0};
    struct taking taking = {0};
    unsigned turns = 0; /* of waiting groups, before a new one comes */
    residents.last = &residents.first;
    for (;;) {
        struct bw_berth *berth = turns ? come_on(&residents) : NULL;
        bool is_new = !berth;
        if (!berth)
            berth = start_group(run, worker, &residents, &taking);
        if (!berth) {
            berth = come_on(&residents);
            is_new = false;
        }
        if (!berth && residents.placed && may_continue(run, residents.placed->group.index)) {
            wait_for_scratch(run);
            continue;
        }
        if (!berth)
            break;
        turns -= turns > 0;
        if (run_group(run, worker, &berth->group) == GROUP_WAITS) {
            lose_patience(run, worker->polls + 1);
            tell_place(run, &berth->group);
            give_way(&residents, berth);
            turns = is_new ? residents.count : turns;
        } else {
            leave(run, worker, berth);
        }
    }
    if (residents.placed) { /* was never started: it holds no scratch */
        residents.placed->next = worker->berths;
        worker->berths = residents.placed;
    }
}

struct stepping {
    struct bw_rng rng;
    uint64_t instructions, turns; /* of waves: the worker's count at the last pause, and since */
};

/* Single-step mode: whoever steps gets to do something else, after as much as a few hundred microseconds of a
 * slow GPU. */
static void pause_stepped(struct bw_run *run, struct bw_worker *worker, const struct bw_group *group,
                          struct stepping *stepping)
{
    enum { INSTRUCTIONS = 4096, TURNS = 256 };
    const struct bw_isa_dispatch *dispatch = run->dispatch;
    uint64_t instructions = worker->instructions - stepping->instructions;
    stepping->turns++;
    if (!dispatch->pause || (instructions < INSTRUCTIONS && stepping->turns < TURNS))
        return;
    if (group->live_count)
        tell_place(run, group);
    dispatch->pause(dispatch->pause_user, instructions, stepping->turns);
    bw_worker_refresh(worker);
    stepping->instructions = worker->instructions;
    stepping->turns = 0;
}

/* All waves start, then one at a time, as the seed says. */
static void run_group_stepped(struct bw_run *run, struct bw_worker *worker, struct bw_group *group,
                              struct stepping *stepping)
{
    while (group->started < group->waves)
        start_wave(run, worker, group);
    while (group->live_count && may_continue(run, group->index)) {
        unsigned at = (unsigned)bw_rng_below(&stepping->rng, group->live_count);
        if (group->live[at]->stop != BW_WAVE_BARRIER && !step_wave(run, worker, group, at))
            break;
        release_barrier(group);
        lose_patience(run, 1);
        pause_stepped(run, worker, group, stepping);
    }
}

/* One thread, groups in an order that the seed fixes: a walk with a step that has no common divisor with
 * their number. */
static void run_stepped(struct bw_run *run, struct bw_worker *worker)
{
    struct stepping stepping = {.rng = {.state = run->dispatch->seed}};
    uint64_t step = bw_rng_below(&stepping.rng, run->groups) | 1,
             at = bw_rng_below(&stepping.rng, run->groups);
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
    struct bw_berth *berth = bw_berth_take(run, worker);
    if (!berth)
        atomic_store(&run->out_of_memory, true);
    for (uint64_t i = 0; berth && i < run->groups && may_continue(run, 0); i++) {
        struct bw_group *group = &berth->group;
        bw_group_place(run, group, at);
        group->slots = berth->slots;
        group->lds = berth->lds;
        bool has_scratch = take_scratch(run, group);
        assert(has_scratch); /* one group at a time, and a dispatch with fewer slots is refused */
        (void)has_scratch;
        run_group_stepped(run, worker, group, &stepping);
        give_scratch(run, group);
        at = (at + step) % run->groups;
    }
    if (berth) {
        berth->next = worker->berths;
        worker->berths = berth;
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
