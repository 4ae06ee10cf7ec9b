/* Worker threads, the host's instruction-set level, and bw_isa_run itself. */
#include "mock/isa/pool.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/text.h"
#include "base/thread.h"
#include "mock/isa/run.h"

struct bw_isa {
    const char *arch;
    const struct bw_generation *generation;
    bool is_executed;
};

static const struct bw_isa known[] = {
    {"gfx1100", &bw_gfx11, true}, {"gfx1101", &bw_gfx11, true},  {"gfx1102", &bw_gfx11, true},
    {"gfx1103", &bw_gfx11, true}, {"gfx1200", &bw_gfx12, false}, {"gfx1201", &bw_gfx12, false},
};

const char *bw_isa_decoder_at(uint32_t index)
{
    return index < BW_COUNT_OF(known) ? known[index].arch : NULL;
}

int bw_isa_find_decoder(const char *arch, const struct bw_isa **isa)
{
    for (size_t i = 0; i < BW_COUNT_OF(known); i++) {
        if (strcmp(known[i].arch, arch) == 0) {
            *isa = &known[i];
            return 0;
        }
    }
    return -ENOTSUP;
}

int bw_isa_find(const char *arch, const struct bw_isa **isa)
{
    const struct bw_isa *found;
    if (bw_isa_find_decoder(arch, &found) || !found->is_executed)
        return -ENOTSUP;
    *isa = found;
    return 0;
}

unsigned bw_isa_disassemble(const struct bw_isa *isa, const void *code, uint64_t code_bytes, uint64_t pc,
                            struct bw_text *text)
{
    struct bw_inst inst;
    unsigned bytes = bw_inst_decode(isa->generation, code, code_bytes, &inst);
    if (bytes)
        bw_inst_print(&inst, pc, text);
    return bytes;
}

enum bw_isa_level bw_isa_host_level(void)
{
#if defined(BW_EXEC_LEVELS_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("fma"))
        return BW_ISA_LEVEL_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        return BW_ISA_LEVEL_AVX2;
#endif
    return BW_ISA_LEVEL_BASE;
}

static void add_handlers(struct bw_isa_pool *pool, const struct bw_uop_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        assert(!pool->handlers[table->rows[i].kind]);
        pool->handlers[table->rows[i].kind] = table->rows[i].run;
    }
}

static void choose_handlers(struct bw_isa_pool *pool, enum bw_isa_level level)
{
    switch (level) {
#if defined(BW_EXEC_LEVELS_X86)
    case BW_ISA_LEVEL_AVX512:
#define ADD(file) add_handlers(pool, &bw_exec_##file##_avx512);
        BW_EXEC_FILES(ADD)
#undef ADD
        break;
    case BW_ISA_LEVEL_AVX2:
#define ADD(file) add_handlers(pool, &bw_exec_##file##_avx2);
        BW_EXEC_FILES(ADD)
#undef ADD
        break;
#endif
    default:
#define ADD(file) add_handlers(pool, &bw_exec_##file##_base);
        BW_EXEC_FILES(ADD)
#undef ADD
    }
    add_handlers(pool, &bw_plain_atomic);
    add_handlers(pool, &bw_plain_buffer);
    add_handlers(pool, &bw_plain_odd);
    add_handlers(pool, &bw_plain_rounding);
    add_handlers(pool, &bw_plain_saturate);
}

static void *thread_main(void *argument)
{
    struct bw_thread *thread = argument;
    struct bw_isa_pool *pool = thread->worker.pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    while (!pool->quit) {
        if (!pool->run || pool->run_serial == seen) {
            pthread_cond_wait(&pool->wake, &pool->lock);
            continue;
        }
        struct bw_run *run = pool->run;
        seen = pool->run_serial;
        pool->joined++;
        pthread_mutex_unlock(&pool->lock);
        bw_run_join(run, &thread->worker);
        pthread_mutex_lock(&pool->lock);
        if (--pool->joined == 0)
            pthread_cond_signal(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static int start_threads(struct bw_isa_pool *pool)
{
    for (unsigned i = 1; i < pool->threads_count; i++) {
        struct bw_thread *thread = &pool->threads[i];
        if (bw_thread_create(&thread->thread, NULL, thread_main, thread))
            return -EAGAIN;
        thread->started = true;
    }
    return 0;
}

int bw_isa_pool_create(unsigned threads, struct bw_isa_pool **pool)
{
    return bw_isa_pool_create_level(threads, bw_isa_host_level(), pool);
}

int bw_isa_pool_create_level(unsigned threads, enum bw_isa_level level, struct bw_isa_pool **out)
{
    enum { THREADS_MAX = 256 }; /* more would only fight over the group counter */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (threads == 0)
        threads = online > 0 ? (unsigned)online : 1;
    if (threads > THREADS_MAX)
        threads = THREADS_MAX;
    struct bw_isa_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return -ENOMEM;
    pool->threads = calloc(threads, sizeof *pool->threads);
    if (!pool->threads) {
        free(pool);
        return -ENOMEM;
    }
    pool->threads_count = threads;
    for (unsigned i = 0; i < threads; i++) {
        pool->threads[i].worker.pool = pool;
        pool->threads[i].worker.index = i;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->code_lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->idle, NULL);
    choose_handlers(pool, level);
    int rc = start_threads(pool);
    if (rc) {
        bw_isa_pool_destroy(pool);
        return rc;
    }
    *out = pool;
    return 0;
}

static void free_berths(struct bw_worker *worker)
{
    while (worker->berths) {
        struct bw_berth *berth = worker->berths;
        worker->berths = berth->next;
        free(berth->slots);
        free(berth->lds);
        free(berth);
    }
}

void bw_isa_pool_destroy(struct bw_isa_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->quit = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->threads_count; i++) {
        struct bw_thread *thread = &pool->threads[i];
        if (thread->started)
            pthread_join(thread->thread, NULL);
        free_berths(&thread->worker);
        free(thread->worker.ids);
    }
    while (pool->codes) {
        struct bw_code *code = pool->codes;
        pool->codes = code->next;
        bw_code_free(code);
    }
    pthread_cond_destroy(&pool->idle);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->code_lock);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}

/* Refuses what hardware would not run; text says why. */
static const char *refusal(const struct bw_isa_dispatch *d)
{
    enum { GROUP_ITEMS_MAX = 1024, LDS_BYTES = 65536, USER_SGPRS_MAX = 16, ENTRY_ALIGN = 256 };
    uint64_t items = 1;
    if (d->wave_size != 32 && d->wave_size != 64)
        return "wave size is neither 32 nor 64";
    if (d->entry_va % ENTRY_ALIGN)
        return "COMPUTE_PGM is not a multiple of 256 bytes";
    for (unsigned i = 0; i < 3; i++) {
        if (d->group_size[i] == 0 || d->group_size[i] > GROUP_ITEMS_MAX)
            return "a dimension of the workgroup is 0 or beyond 1024";
        if (d->last_group_size[i] > d->group_size[i])
            return "the last group is larger than the others";
        items *= d->group_size[i];
    }
    if (items > GROUP_ITEMS_MAX)
        return "the workgroup has more than 1024 work-items";
    if (d->lds_bytes > LDS_BYTES)
        return "more than 64 KiB of LDS";
    if (bw_field(d->rsrc2, 1, 5) > USER_SGPRS_MAX)
        return "more than 16 user SGPRs";
    if (bw_field(d->rsrc2, 0, 0) && d->scratch_base && d->scratch_wave_slots < bw_div_up(items, d->wave_size))
        return "fewer scratch slots than a workgroup has waves";
    return NULL;
}

static uint32_t vgprs_of(const struct bw_isa_dispatch *d)
{
    /* GRANULATED_WORKITEM_VGPR_COUNT, rsrc1[5:0]: in units of 8 (wave32) or 4 (wave64), minus 1. */
    uint32_t count = (bw_field(d->rsrc1, 0, 5) + 1) * (d->wave_size == 32 ? 8 : 4);
    return count < BW_VGPR_MAX ? count : BW_VGPR_MAX;
}

static uint32_t mode_of(const struct bw_isa_dispatch *d)
{
    return bw_field(d->rsrc1, 12, 19) | bw_field(d->rsrc1, 21, 21) << 8 | bw_field(d->rsrc1, 23, 23) << 9 |
           bw_field(d->rsrc1, 26, 26) << 23;
}

enum { LDS_BYTES_MAX = 65536, IDS_MAX = 1024 };

struct bw_berth *bw_berth_take(const struct bw_run *run, struct bw_worker *worker)
{
    size_t need = run->slot_bytes * run->waves_per_group;
    struct bw_berth *berth = worker->berths;
    if (berth)
        worker->berths = berth->next;
    else
        berth = calloc(1, sizeof *berth);
    if (!berth)
        return NULL;
    if (berth->slots_bytes < need) {
        free(berth->slots);
        berth->slots = aligned_alloc(BW_WAVE_ALIGN, need);
        berth->slots_bytes = berth->slots ? need : 0;
        berth->slot_bytes = 0;
    }
    if (!berth->lds)
        berth->lds = aligned_alloc(BW_WAVE_ALIGN, LDS_BYTES_MAX);
    if (!berth->slots || !berth->lds) {
        berth->next = worker->berths;
        worker->berths = berth;
        return NULL;
    }
    if (berth->slot_bytes != run->slot_bytes || berth->slots_laid < run->waves_per_group) {
        /* whose constants a block holds is not known in another layout */
        for (uint32_t i = 0; i < run->waves_per_group; i++)
            ((struct bw_wave *)(void *)(berth->slots + i * run->slot_bytes))->code_id = 0;
        berth->slot_bytes = run->slot_bytes;
        berth->slots_laid = run->waves_per_group;
    }
    return berth;
}

void bw_worker_refresh(struct bw_worker *worker)
{
    const struct bw_isa_memory *memory = &worker->memory;
    uint64_t generation = memory->generation ? atomic_load(memory->generation) : 0;
    if (generation == worker->generation && memory->generation && memory->user == worker->memory_user)
        return;
    memset(worker->read, 0, sizeof worker->read);
    memset(worker->write, 0, sizeof worker->write);
    memset(worker->atomic, 0, sizeof worker->atomic);
    worker->generation = generation;
    worker->memory_user = memory->user;
}

/* What a worker keeps from one dispatch to the next: ranges, jumps, memory. */
static int prepare_worker(struct bw_run *run, struct bw_worker *worker)
{
    const struct bw_isa_dispatch *d = run->dispatch;
    if (!worker->ids)
        worker->ids = aligned_alloc(BW_WAVE_ALIGN, IDS_MAX * sizeof *worker->ids);
    if (!worker->ids)
        return -ENOMEM;
    worker->memory = d->memory;
    worker->control = run->control;
    worker->instructions = worker->reported = worker->waves = 0;
    bw_worker_refresh(worker);
    if (worker->jumps_of != run->program->code->id) {
        memset(worker->jump, 0, sizeof worker->jump);
        worker->jumps_of = run->program->code->id;
    }
    return 0;
}

void bw_run_join(struct bw_run *run, struct bw_worker *worker)
{
    if (prepare_worker(run, worker) == 0)
        bw_run_work(run, worker);
}

static void offer(struct bw_isa_pool *pool, struct bw_run *run)
{
    pthread_mutex_lock(&pool->lock);
    pool->run = run;
    pool->run_serial++;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

static void take_back(struct bw_isa_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->run = NULL;
    while (pool->joined)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void refuse(struct bw_isa_result *result, const char *text)
{
    result->status = BW_ISA_BAD_DISPATCH;
    bw_text_fit(result->text, sizeof result->text, "%s", text);
}

static void report(struct bw_run *run, struct bw_isa_result *result)
{
    result->instructions = run->instructions;
    result->waves = run->waves;
    if (atomic_load(&run->fault_group) != UINT64_MAX) {
        struct bw_group group;
        bw_group_place(run, &group, atomic_load(&run->fault_group));
        result->status = run->fault.status;
        result->pc = run->fault.pc;
        result->va = run->fault.va;
        result->access = run->fault.access;
        result->lane = run->fault.lane;
        result->wave = run->fault_wave;
        memcpy(result->group, group.id, sizeof result->group);
        bw_text_fit(result->text, sizeof result->text, "%s", run->fault.text);
    } else if (atomic_load(&run->out_of_memory)) {
        refuse(result, "out of memory for the waves");
    } else {
        result->status = atomic_load(&run->stopped) ? BW_ISA_STOPPED : BW_ISA_DONE;
    }
}

static void run_all(struct bw_run *run)
{
    struct bw_isa_pool *pool = run->pool;
    bool shared = pool->threads_count > 1 && run->groups > 1 && !run->dispatch->single_step;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->scratch_freed, NULL);
    if (shared)
        offer(pool, run);
    bw_run_work(run, &pool->threads[0].worker);
    if (shared)
        take_back(pool);
    pthread_cond_destroy(&run->scratch_freed);
    pthread_mutex_destroy(&run->lock);
}

void bw_isa_run(const struct bw_isa *isa, struct bw_isa_pool *pool, const struct bw_isa_dispatch *dispatch,
                struct bw_isa_control *control, struct bw_isa_result *result)
{
    enum { TAKE_MAX = 16, TAKES_PER_THREAD = 8 };
    memset(result, 0, sizeof *result);
    atomic_store(&control->place_serial, 0);
    const char *why = refusal(dispatch);
    if (why) {
        refuse(result, why);
        return;
    }
    struct bw_run run = {.pool = pool, .dispatch = dispatch, .control = control, .groups = 1};
    struct bw_worker *worker = &pool->threads[0].worker;
    uint64_t items = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (__builtin_mul_overflow(run.groups, (uint64_t)dispatch->group_count[i], &run.groups)) {
            refuse(result, "more than 2^64 workgroups");
            return;
        }
        items *= dispatch->group_size[i];
    }
    if (run.groups == 0)
        return;
    worker->memory = dispatch->memory;
    if (bw_code_get(pool, worker, dispatch->entry_va, dispatch->wave_size, vgprs_of(dispatch),
                    mode_of(dispatch), &run.program, &run.entry)) {
        refuse(result, "out of memory while translating the kernel");
        return;
    }
    struct bw_code *code = run.program->code;
    code->constants_limit = code->constants_count + BW_CODE_CONSTANTS_SLACK;
    run.waves_per_group = (uint32_t)bw_div_up(items, dispatch->wave_size);
    run.slot_bytes =
        (size_t)bw_align_up((uint64_t)bw_code_constant_offset(code, code->constants_limit), BW_WAVE_ALIGN);
    run.user_sgprs = bw_field(dispatch->rsrc2, 1, 5);
    run.uses_scratch = bw_field(dispatch->rsrc2, 0, 0) && dispatch->scratch_base;
    run.groups_per_take = run.groups / ((uint64_t)pool->threads_count * TAKES_PER_THREAD);
    run.groups_per_take = run.groups_per_take < 1          ? 1
                          : run.groups_per_take > TAKE_MAX ? TAKE_MAX
                                                           : run.groups_per_take;
    atomic_init(&run.fault_group, UINT64_MAX);
    atomic_init(&run.patience, BW_FAULT_PATIENCE);
    if (prepare_worker(&run, worker)) {
        refuse(result, "out of memory for the waves");
        return;
    }
    run_all(&run);
    report(&run, result);
}
