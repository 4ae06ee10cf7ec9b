/* Batched disk reads through io_uring, or one by one where io_uring is refused (containers commonly filter
 * it: seccomp answers EPERM or ENOSYS; kernel.io_uring_disabled answers EPERM). */
#include "iface/sys_host.h"

#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads in flight: enough to keep an NVMe queue busy, small enough to stay under RLIMIT_MEMLOCK on old
 * kernels. */
#define RING_ENTRIES 64u

/* One request is split at this size, so that several pieces of a large one are under way and io_uring's
 * 32-bit length holds. */
#define PIECE_BYTES_MAX (4u << 20)

/* A piece under way. */
struct piece {
    uint32_t request;
    uint64_t offset, size_bytes; /* within the request */
};

struct batch {
    struct bw_read_request *requests;
    uint32_t count, next_request;
    uint64_t next_offset; /* of next_request */
    struct piece pieces[RING_ENTRIES];
    bool busy[RING_ENTRIES];
    uint32_t in_flight;
    int broken; /* the ring itself failed */
};

int bw_sys_host_ring_init(struct bw_sys_host_ring *ring)
{
    return -pthread_mutex_init(&ring->lock, NULL);
}

void bw_sys_host_ring_fini(struct bw_sys_host_ring *ring)
{
    if (ring->ring) {
        io_uring_queue_exit(ring->ring);
        free(ring->ring);
    }
    pthread_mutex_destroy(&ring->lock);
}

static struct io_uring *ring_open(struct bw_sys_host_ring *ring)
{
    if (ring->ring)
        return ring->owner == getpid() ? ring->ring : NULL;
    if (ring->refused)
        return NULL;
    struct io_uring *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    if (io_uring_queue_init(RING_ENTRIES, made, 0)) {
        free(made);
        ring->refused = true;
        return NULL;
    }
    ring->owner = getpid();
    return ring->ring = made;
}

/* The first error of a request wins; result holds the bytes read until then. */
static void note_error(struct bw_read_request *request, int code)
{
    if (request->result >= 0)
        request->result = code;
}

static void prepare(struct io_uring *ring, struct batch *batch, uint32_t slot)
{
    const struct piece *piece = &batch->pieces[slot];
    const struct bw_read_request *request = &batch->requests[piece->request];
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    assert(sqe); /* as many entries as slots, and every earlier one was submitted */
    io_uring_prep_read(sqe, request->fd, (char *)request->data + piece->offset, (unsigned)piece->size_bytes,
                       request->offset + piece->offset);
    io_uring_sqe_set_data64(sqe, slot);
    batch->busy[slot] = true;
    batch->in_flight++;
}

/* The next piece that has not been started; false when all have. */
static bool next_piece(struct batch *batch, struct piece *piece)
{
    for (; batch->next_request < batch->count; batch->next_request++, batch->next_offset = 0) {
        uint64_t left = batch->requests[batch->next_request].size_bytes - batch->next_offset;
        if (!left)
            continue;
        uint64_t size = left < PIECE_BYTES_MAX ? left : PIECE_BYTES_MAX;
        *piece = (struct piece){batch->next_request, batch->next_offset, size};
        batch->next_offset += size;
        return true;
    }
    return false;
}

static void start_pieces(struct io_uring *ring, struct batch *batch)
{
    for (uint32_t slot = 0; slot < RING_ENTRIES; slot++) {
        if (batch->busy[slot])
            continue;
        if (batch->broken || !next_piece(batch, &batch->pieces[slot]))
            return;
        prepare(ring, batch, slot);
    }
}

static void finish_piece(struct batch *batch, uint32_t slot, int got)
{
    struct piece *piece = &batch->pieces[slot];
    struct bw_read_request *request = &batch->requests[piece->request];
    assert(batch->busy[slot] && batch->in_flight);
    batch->busy[slot] = false;
    batch->in_flight--;
    int64_t total = got;
    if (got == -EINTR || got == -EAGAIN || got == -EINVAL || (got > 0 && (uint64_t)got < piece->size_bytes)) {
        /* Interrupted, short, or a kernel that knows no IORING_OP_READ (before 5.6): the rest by hand, which
         * also tells the end of the file from a short read. */
        uint64_t done = got > 0 ? (uint64_t)got : 0;
        int64_t rest =
            bw_sys_host_pread_all(request->fd, (char *)request->data + piece->offset + done,
                                  piece->size_bytes - done, request->offset + piece->offset + done);
        total = rest < 0 ? rest : (int64_t)done + rest;
    }
    if (total < 0)
        note_error(request, (int)total);
    else if (request->result >= 0)
        request->result += total;
}

static void reap(struct io_uring *ring, struct batch *batch)
{
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(ring, &cqe) == 0) {
        uint32_t slot = (uint32_t)io_uring_cqe_get_data64(cqe);
        int got = cqe->res;
        io_uring_cqe_seen(ring, cqe);
        finish_piece(batch, slot, got);
    }
}

/* Memory of the caller is written until every piece is back, so this never returns earlier. Entries that the
 * kernel refused to take (still in the submission queue) never start. */
static void run_batch(struct io_uring *ring, struct batch *batch)
{
    start_pieces(ring, batch);
    while (batch->in_flight > (batch->broken ? io_uring_sq_ready(ring) : 0)) {
        struct io_uring_cqe *cqe;
        int rc = batch->broken ? io_uring_wait_cqe(ring, &cqe) : io_uring_submit_and_wait(ring, 1);
        if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY)
            batch->broken = rc;
        reap(ring, batch);
        start_pieces(ring, batch);
    }
}

static void read_by_hand(struct bw_read_request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        requests[i].result = bw_sys_host_pread_all(requests[i].fd, requests[i].data, requests[i].size_bytes,
                                                   requests[i].offset);
}

int bw_sys_host_ring_read(struct bw_sys_host_ring *ring, struct bw_read_request *requests, uint32_t count)
{
    struct batch batch = {.requests = requests, .count = count};
    for (uint32_t i = 0; i < count; i++)
        requests[i].result = 0;
    pthread_mutex_lock(&ring->lock);
    struct io_uring *opened = ring_open(ring);
    if (opened)
        run_batch(opened, &batch);
    if (batch.broken) {
        /* A ring that the kernel no longer serves: everything is read again, by hand. */
        io_uring_queue_exit(opened);
        free(opened);
        ring->ring = NULL;
        ring->refused = true;
        opened = NULL;
    }
    pthread_mutex_unlock(&ring->lock);
    if (!opened)
        read_by_hand(requests, count);
    return 0;
}
