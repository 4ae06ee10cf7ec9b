/* Workgroups over threads: see pool.h.
 *
 * A job is open while its runner lets helpers in. A helper counts itself in before it looks whether the job
 * is open, the runner closes the job before it looks whether anyone is in: in the total order of these four
 * accesses one of them sees the other, so the job's fields never change under a helper. */
#include "drivers/host/pool.h"

#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/thread.h"
#include "drivers/host/spin.h"

enum {
    WORKER_STACK_BYTES = 8 << 20,
    TASKS_PER_THREAD = 4,   /* evens out groups of different length */
    SPLIT_WORTH_NS = 20000, /* waking a thread costs about 5 us */
};

struct bw_host_pool {
    struct bw_sys *sys;
    uint64_t *progress;
    pthread_t *threads;
    uint32_t helper_count;

    struct bw_host_launch launch; /* the job: fixed while open or while helpers are in */
    uint64_t group_count, task_groups;
    uint64_t next_group;   /* atomic */
    uint32_t open, inside; /* atomic, sequentially consistent */

    pthread_mutex_t lock; /* of sleeping only */
    pthread_cond_t wake;
    uint64_t generation;     /* atomic: counts jobs */
    uint32_t sleepers, stop; /* atomic */
};

static void groups_run(struct bw_host_pool *pool, const struct bw_host_launch *launch, uint64_t first,
                       uint64_t count)
{
    bw_host_kernel_function *function = launch->kernel->function;
    uint64_t plane = (uint64_t)launch->group_count[0] * launch->group_count[1];
    uint32_t x = (uint32_t)(first % launch->group_count[0]);
    uint32_t y = (uint32_t)(first / launch->group_count[0] % launch->group_count[1]);
    uint32_t z = (uint32_t)(first / plane);
    for (uint64_t i = 0; i < count; i++) {
        assert(z < launch->group_count[2]);
        function(launch->argument_block, x, y, z);
        if (++x == launch->group_count[0]) {
            x = 0;
            if (++y == launch->group_count[1]) {
                y = 0;
                z++;
            }
        }
    }
    __atomic_fetch_add(pool->progress, count, __ATOMIC_RELAXED);
}

/* Takes tasks until none is left. */
static void job_work(struct bw_host_pool *pool)
{
    for (;;) {
        uint64_t first = __atomic_fetch_add(&pool->next_group, pool->task_groups, __ATOMIC_RELAXED);
        if (first >= pool->group_count)
            return;
        uint64_t left = pool->group_count - first;
        groups_run(pool, &pool->launch, first, left < pool->task_groups ? left : pool->task_groups);
    }
}

static void helper_sleep(struct bw_host_pool *pool, uint64_t seen)
{
    pthread_mutex_lock(&pool->lock);
    __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&pool->generation, __ATOMIC_SEQ_CST) == seen &&
           !__atomic_load_n(&pool->stop, __ATOMIC_RELAXED))
        pthread_cond_wait(&pool->wake, &pool->lock);
    __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lock);
}

static void *helper_main(void *argument)
{
    struct bw_host_pool *pool = argument;
    uint64_t seen = 0;
    fesetenv(FE_DFL_ENV); /* threads inherit MXCSR from whoever opened the device */
    while (!__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE)) {
        for (uint32_t spin = 0;
             spin < BW_HOST_SPINS && __atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE) == seen; spin++)
            bw_host_pause();
        if (__atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE) == seen) {
            helper_sleep(pool, seen);
            continue;
        }
        seen = __atomic_load_n(&pool->generation, __ATOMIC_ACQUIRE);
        __atomic_add_fetch(&pool->inside, 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&pool->open, __ATOMIC_SEQ_CST))
            job_work(pool);
        __atomic_sub_fetch(&pool->inside, 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void job_wake(struct bw_host_pool *pool)
{
    __atomic_add_fetch(&pool->generation, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
}

/* Opens the job for groups [first, count), works on it, and waits for the helpers inside. */
static void job_run(struct bw_host_pool *pool, const struct bw_host_launch *launch, uint64_t first,
                    uint64_t count, uint64_t task_groups)
{
    assert(!pool->open && task_groups > 0);
    pool->launch = *launch;
    pool->group_count = count;
    pool->task_groups = task_groups;
    __atomic_store_n(&pool->next_group, first, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->open, 1, __ATOMIC_SEQ_CST);
    job_wake(pool);
    job_work(pool);
    __atomic_store_n(&pool->open, 0, __ATOMIC_SEQ_CST);
    for (uint32_t spin = 0; __atomic_load_n(&pool->inside, __ATOMIC_SEQ_CST); spin++) {
        if (spin < BW_HOST_SPINS)
            bw_host_pause();
        else
            pool->sys->ops->sleep_ns(pool->sys, 20000); /* a helper is in a long group */
    }
}

static uint64_t task_size(const struct bw_host_pool *pool, uint64_t count, uint32_t hint)
{
    uint64_t even = bw_div_up(count, (uint64_t)(pool->helper_count + 1) * TASKS_PER_THREAD);
    return hint > even ? hint : even;
}

void bw_host_pool_run(struct bw_host_pool *pool, const struct bw_host_launch *launch)
{
    uint64_t count = (uint64_t)launch->group_count[0] * launch->group_count[1] * launch->group_count[2];
    uint32_t hint = launch->kernel->groups_per_task;
    if (count == 0)
        return;
    if (count == 1 || pool->helper_count == 0 || (hint && count < 2ull * hint)) {
        groups_run(pool, launch, 0, count);
        return;
    }
    uint64_t done = 0;
    if (!hint) { /* no hint: time the first group */
        uint64_t begin_ns = pool->sys->ops->clock_ns(pool->sys);
        groups_run(pool, launch, 0, 1);
        uint64_t group_ns = pool->sys->ops->clock_ns(pool->sys) - begin_ns;
        done = 1;
        if (group_ns * (count - 1) < SPLIT_WORTH_NS) {
            groups_run(pool, launch, 1, count - 1);
            return;
        }
    }
    job_run(pool, launch, done, count, task_size(pool, count - done, hint));
}

int bw_host_pool_create(struct bw_sys *sys, uint32_t helper_count, uint64_t *progress,
                        struct bw_host_pool **out, struct bw_err *err)
{
    struct bw_host_pool *pool = calloc(1, sizeof *pool);
    if (pool)
        pool->threads = calloc(helper_count + 1, sizeof *pool->threads);
    if (!pool || !pool->threads) {
        free(pool);
        return bw_fail(err, -ENOMEM, "host", "pool of %u threads", helper_count);
    }
    pool->sys = sys;
    pool->progress = progress;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    int rc = 0;
    while (pool->helper_count < helper_count && !rc) {
        rc = bw_thread_create(&pool->threads[pool->helper_count], &attributes, helper_main, pool);
        pool->helper_count += rc == 0;
    }
    pthread_attr_destroy(&attributes);
    if (rc) {
        bw_fail(err, rc, "host", "worker thread %u of %u", pool->helper_count + 1, helper_count);
        bw_err_hint(err, BW_THREAD_LIMITS);
        bw_host_pool_destroy(pool);
        return rc;
    }
    *out = pool;
    return 0;
}

void bw_host_pool_destroy(struct bw_host_pool *pool)
{
    assert(!pool->open);
    pthread_mutex_lock(&pool->lock);
    __atomic_store_n(&pool->stop, 1, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->helper_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->threads);
    free(pool);
}
