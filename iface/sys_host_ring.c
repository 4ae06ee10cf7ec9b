/* Reads under way through io_uring, with memory that the kernel knows already (registered buffers), and,
 * where there is a CPU to spare, submitted by the kernel's own thread (SQPOLL), without a system call. */
#include "iface/sys_host.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MEMORIES_MAX = 64, /* pieces of registered memory: two staging slots of each of 32 linked graphs */
    POLL_IDLE_MS = 1,  /* how long the kernel's thread looks at an empty queue: longer than from one read to
                          the next, short beside what an idle device may cost */
};

/* Largest piece of memory that the kernel registers (io_uring/rsrc.c, io_buffer_validate). */
#define MEMORY_BYTES_MAX (1ull << 30)

struct memory {
    char *data; /* NULL: free */
    uint64_t size_bytes;
};

struct uring {
    struct bw_ring base;
    struct io_uring ring;
    uint32_t under_way;
    pthread_mutex_t lock; /* of the rest */
    bool registers;       /* the kernel has a table of memories (5.19) */
    struct memory memories[MEMORIES_MAX];
};

static struct uring *uring_of(struct bw_ring *ring)
{
    return (struct uring *)ring;
}

/* Number of the registered memory that holds all of the read, or -1. */
static int memory_find(struct uring *uring, const struct bw_ring_read *read)
{
    int found = -1;
    uintptr_t begin = (uintptr_t)read->data;
    pthread_mutex_lock(&uring->lock);
    for (int i = 0; i < MEMORIES_MAX && found < 0; i++) {
        const struct memory *memory = &uring->memories[i];
        uintptr_t base = (uintptr_t)memory->data;
        if (base && begin >= base && begin - base < memory->size_bytes &&
            read->size_bytes <= memory->size_bytes - (begin - base))
            found = i;
    }
    pthread_mutex_unlock(&uring->lock);
    return found;
}

static int uring_start(struct bw_ring *base, const struct bw_ring_read *reads, uint32_t count)
{
    struct uring *uring = uring_of(base);
    uint32_t started = 0;
    for (; started < count; started++) {
        const struct bw_ring_read *read = &reads[started];
        struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
        if (!sqe)
            break;
        int memory = memory_find(uring, read);
        if (memory >= 0)
            io_uring_prep_read_fixed(sqe, read->fd, read->data, read->size_bytes, read->offset, memory);
        else
            io_uring_prep_read(sqe, read->fd, read->data, read->size_bytes, read->offset);
        io_uring_sqe_set_data64(sqe, read->tag);
    }
    uring->under_way += started;
    /* What the kernel does not take now stays in the queue, and finish submits again. */
    int rc = started ? io_uring_submit(&uring->ring) : 0;
    return rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY ? rc : (int)started;
}

static uint32_t take_ended(struct uring *uring, struct bw_ring_done *done, uint32_t capacity)
{
    struct io_uring_cqe *cqe;
    uint32_t count = 0;
    for (; count < capacity && io_uring_peek_cqe(&uring->ring, &cqe) == 0; count++) {
        done[count] = (struct bw_ring_done){(uint32_t)io_uring_cqe_get_data64(cqe), cqe->res};
        io_uring_cqe_seen(&uring->ring, cqe);
    }
    assert(count <= uring->under_way);
    uring->under_way -= count;
    return count;
}

static int uring_finish(struct bw_ring *base, struct bw_ring_done *done, uint32_t capacity,
                        uint64_t timeout_ns)
{
    struct uring *uring = uring_of(base);
    uint32_t count = take_ended(uring, done, capacity);
    if (count || !timeout_ns || !uring->under_way)
        return (int)count;
    int rc = io_uring_sq_ready(&uring->ring) ? io_uring_submit(&uring->ring) : 0;
    struct __kernel_timespec timeout = {(long long)(timeout_ns / 1000000000),
                                        (long long)(timeout_ns % 1000000000)};
    struct io_uring_cqe *cqe;
    if (rc >= 0)
        rc = io_uring_wait_cqe_timeout(&uring->ring, &cqe, &timeout);
    if (rc < 0 && rc != -ETIME && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
        return rc;
    return (int)take_ended(uring, done, capacity);
}

static int memory_set(struct uring *uring, int index, void *data, uint64_t size_bytes)
{
    struct iovec vector = {data, size_bytes};
    __u64 tag = 0;
    int rc = io_uring_register_buffers_update_tag(&uring->ring, (unsigned)index, &vector, &tag, 1);
    return rc < 0 ? rc : 0;
}

static int uring_memory_add(struct bw_ring *base, void *data, uint64_t size_bytes)
{
    struct uring *uring = uring_of(base);
    int rc = uring->registers && size_bytes <= MEMORY_BYTES_MAX ? -ENOSPC : -ENOTSUP;
    pthread_mutex_lock(&uring->lock);
    for (int i = 0; i < MEMORIES_MAX && rc == -ENOSPC; i++) {
        if (uring->memories[i].data)
            continue;
        rc = memory_set(uring, i, data, size_bytes); /* -ENOMEM: more than RLIMIT_MEMLOCK */
        if (!rc)
            uring->memories[i] = (struct memory){data, size_bytes};
    }
    pthread_mutex_unlock(&uring->lock);
    return rc;
}

static void uring_memory_remove(struct bw_ring *base, void *data)
{
    struct uring *uring = uring_of(base);
    pthread_mutex_lock(&uring->lock);
    for (int i = 0; i < MEMORIES_MAX; i++) {
        if (uring->memories[i].data != data)
            continue;
        (void)memory_set(uring, i, NULL, 0);
        uring->memories[i] = (struct memory){0};
    }
    pthread_mutex_unlock(&uring->lock);
}

static void uring_close(struct bw_ring *base)
{
    struct uring *uring = uring_of(base);
    io_uring_queue_exit(&uring->ring);
    pthread_mutex_destroy(&uring->lock);
    free(uring);
}

/* A kernel thread that polls pays where it has a CPU of its own: with one CPU it would take turns with the
 * reader. Before 5.11 it wants registered files, too: without it there. */
static int polled_open(struct uring *uring, uint32_t entries)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = POLL_IDLE_MS};
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        return -ENOTSUP;
    int rc = io_uring_queue_init_params(entries, &uring->ring, &params);
    if (rc || params.features & IORING_FEAT_SQPOLL_NONFIXED)
        return rc;
    io_uring_queue_exit(&uring->ring);
    return -ENOTSUP;
}

static int plain_open(struct uring *uring, uint32_t entries)
{
    struct io_uring_params params = {0};
    int rc = io_uring_queue_init_params(entries, &uring->ring, &params);
    if (rc || params.features & IORING_FEAT_RW_CUR_POS) /* came with IORING_OP_READ, in 5.6 */
        return rc;
    io_uring_queue_exit(&uring->ring);
    return -ENOTSUP;
}

int bw_sys_host_ring_open(uint32_t entries, struct bw_ring **ring)
{
    static const struct bw_ring_ops ops = {
        uring_start, uring_finish, uring_memory_add, uring_memory_remove, uring_close,
    };
    struct uring *uring = calloc(1, sizeof *uring);
    if (!uring)
        return -ENOMEM;
    uring->base = (struct bw_ring){&ops, "io_uring, polled by the kernel"};
    int rc = polled_open(uring, entries);
    if (rc) {
        uring->base.kind = "io_uring";
        rc = plain_open(uring, entries);
    }
    if (rc) {
        free(uring);
        return rc;
    }
    pthread_mutex_init(&uring->lock, NULL);
    uring->registers = io_uring_register_buffers_sparse(&uring->ring, MEMORIES_MAX) == 0;
    *ring = &uring->base;
    return 0;
}
