/* Reads under way by threads, for machines that refuse io_uring. */
#include "iface/sys_host.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

enum {
    THREADS_MAX = 8, /* more in a pread at once gain nothing on one disk, and each has a stack */
};

/* Slots: free, waiting, taken, ended; both lists are rings of as many entries as reads fit. */
struct threads {
    struct bw_ring base;
    uint32_t entries;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t started, ended;
    struct bw_ring_read *reads; /* put, not taken: [taken, put) */
    struct bw_ring_done *done;  /* ended, not given to the caller: [given, finished) */
    uint64_t put, taken, finished, given;
    bool stop;
    uint32_t thread_count;
    pthread_t threads[THREADS_MAX];
};

static struct threads *threads_of(struct bw_ring *ring)
{
    return (struct threads *)ring;
}

static void *thread_main(void *argument)
{
    struct threads *threads = argument;
    pthread_mutex_lock(&threads->lock);
    for (;;) {
        while (threads->taken == threads->put && !threads->stop)
            pthread_cond_wait(&threads->started, &threads->lock);
        if (threads->taken == threads->put)
            break;
        struct bw_ring_read read = threads->reads[threads->taken++ % threads->entries];
        pthread_mutex_unlock(&threads->lock);
        ssize_t got = pread(read.fd, read.data, read.size_bytes, (off_t)read.offset);
        int32_t result = got < 0 ? -errno : (int32_t)got;
        pthread_mutex_lock(&threads->lock);
        threads->done[threads->finished++ % threads->entries] = (struct bw_ring_done){read.tag, result};
        pthread_cond_signal(&threads->ended);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

static int threads_start(struct bw_ring *base, const struct bw_ring_read *reads, uint32_t count)
{
    struct threads *threads = threads_of(base);
    uint32_t started = 0;
    pthread_mutex_lock(&threads->lock);
    for (; started < count && threads->put - threads->given < threads->entries; started++) {
        threads->reads[threads->put++ % threads->entries] = reads[started];
        pthread_cond_signal(&threads->started);
    }
    pthread_mutex_unlock(&threads->lock);
    return (int)started;
}

static int threads_finish(struct bw_ring *base, struct bw_ring_done *done, uint32_t capacity,
                          uint64_t timeout_ns)
{
    struct threads *threads = threads_of(base);
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    uint64_t end_ns = (uint64_t)deadline.tv_nsec + timeout_ns % 1000000000;
    deadline.tv_sec += (time_t)(timeout_ns / 1000000000 + end_ns / 1000000000);
    deadline.tv_nsec = (long)(end_ns % 1000000000);
    uint32_t count = 0;
    int rc = timeout_ns ? 0 : ETIMEDOUT;
    pthread_mutex_lock(&threads->lock);
    while (threads->given == threads->finished && threads->given != threads->put && !rc)
        rc = pthread_cond_timedwait(&threads->ended, &threads->lock, &deadline);
    for (; count < capacity && threads->given != threads->finished; count++)
        done[count] = threads->done[threads->given++ % threads->entries];
    pthread_mutex_unlock(&threads->lock);
    return (int)count;
}

static int threads_memory_add(struct bw_ring *base, void *data, uint64_t size_bytes)
{
    return -ENOTSUP; /* pread looks the memory up each time */
}

static void threads_memory_remove(struct bw_ring *base, void *data)
{
}

static void threads_close(struct bw_ring *base)
{
    struct threads *threads = threads_of(base);
    pthread_mutex_lock(&threads->lock);
    assert(threads->given == threads->put);
    threads->stop = true;
    pthread_cond_broadcast(&threads->started);
    pthread_mutex_unlock(&threads->lock);
    for (uint32_t i = 0; i < threads->thread_count; i++)
        pthread_join(threads->threads[i], NULL);
    pthread_cond_destroy(&threads->started);
    pthread_cond_destroy(&threads->ended);
    pthread_mutex_destroy(&threads->lock);
    free(threads->reads);
    free(threads->done);
    free(threads);
}

static void locks_init(struct threads *threads)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->started, NULL);
    pthread_cond_init(&threads->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

int bw_sys_host_threads_open(uint32_t entries, struct bw_ring **ring)
{
    static const struct bw_ring_ops ops = {
        threads_start, threads_finish, threads_memory_add, threads_memory_remove, threads_close,
    };
    struct threads *threads = calloc(1, sizeof *threads);
    if (!threads)
        return -ENOMEM;
    threads->base = (struct bw_ring){&ops, "threads"};
    threads->entries = entries;
    threads->reads = calloc(entries, sizeof *threads->reads);
    threads->done = calloc(entries, sizeof *threads->done);
    locks_init(threads);
    int rc = threads->reads && threads->done ? 0 : -ENOMEM;
    while (!rc && threads->thread_count < entries && threads->thread_count < THREADS_MAX) {
        rc = bw_thread_create(&threads->threads[threads->thread_count], NULL, thread_main, threads);
        threads->thread_count += rc == 0;
    }
    if (rc && threads->thread_count == 0) {
        threads_close(&threads->base);
        return rc;
    }
    *ring = &threads->base; /* fewer threads than wanted read, too */
    return 0;
}
