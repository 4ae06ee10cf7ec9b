/* Requests in pieces, pieces through a ring of reads: see disk.h. */
#include "mem/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum {
    PIECES_MAX = 64,         /* under way at once: enough to keep an NVMe queue busy */
    PIECE_BYTES = 1 << 20,   /* of a large request, so that several pieces of it are under way */
    BARREN_MAX = 1000,       /* times that one piece may be interrupted with nothing read in between */
    BARREN_WAIT_NS = 100000, /* before the next try, once the first few gave nothing */
    BARREN_AT_ONCE = 8,
};

struct request {
    bool used;
    bool cached;                 /* direct reads into this memory are refused */
    char *data;                  /* of all */
    uint64_t offset, size_bytes; /* of all */
    uint64_t begun_bytes;        /* cut into pieces so far */
    uint64_t arrived_bytes;
    uint32_t pieces; /* under way */
    int rc;          /* of the lowest offset that failed */
    uint64_t failed_offset;
};

/* What is still to be read of a piece. */
struct piece {
    uint32_t request;
    bool direct;
    uint32_t barren; /* tries that gave nothing */
    char *data;
    uint64_t offset;
    uint32_t size_bytes;
};

struct bw_disk {
    struct bw_sys *sys;
    char *path;
    int fd, direct_fd; /* direct_fd < 0: the file system has no direct reads, or not for us */
    uint64_t size_bytes;
    struct bw_ring *ring;
    struct request requests[BW_DISK_REQUESTS_MAX];
    uint32_t order[BW_DISK_REQUESTS_MAX]; /* requests in use, oldest first */
    uint32_t order_count;
    struct piece pieces[PIECES_MAX];
    uint32_t waiting[PIECES_MAX]; /* pieces to be started (again), oldest first */
    uint32_t waiting_count;
    uint32_t free[PIECES_MAX];
    uint32_t free_count;
    uint32_t started_count; /* pieces in the ring */
    bool tired;             /* a piece has been interrupted often: wait a little before the next try */
    struct bw_disk_manner manner;
};

/* ---- opening ---- */

void bw_disk_close(struct bw_disk *disk)
{
    if (!disk)
        return;
    assert(!disk->started_count);
    const struct bw_sys_ops *ops = disk->sys->ops;
    if (disk->ring)
        disk->ring->ops->close(disk->ring);
    if (disk->direct_fd >= 0)
        ops->close(disk->sys, disk->direct_fd);
    if (disk->fd >= 0)
        ops->close(disk->sys, disk->fd);
    free(disk->path);
    free(disk);
}

/* The same file again with other flags, whatever its path leads to by now. -errno: there is no /proc, or the
 * file system refuses these flags. */
static int file_reopen(struct bw_disk *disk, int flags)
{
    char same[32];
    snprintf(same, sizeof same, "/proc/self/fd/%d", disk->fd);
    return disk->sys->ops->open(disk->sys, same, O_RDONLY | flags);
}

/* O_NONBLOCK at first: a FIFO is to be refused, not waited for. Not for reading: io_uring gives -EAGAIN for
 * such a descriptor wherever the file system would sleep. */
static int files_open(struct bw_disk *disk, struct bw_err *err)
{
    const struct bw_sys_ops *ops = disk->sys->ops;
    int fd = ops->open(disk->sys, disk->path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return bw_fail(err, fd, "disk", "%s", disk->path);
    disk->fd = fd;
    int64_t size_bytes = ops->size(disk->sys, fd);
    if (size_bytes < 0) {
        bw_fail(err, (int)size_bytes, "disk", "%s", disk->path);
        bw_err_expected(err, "a file or block device");
        return (int)size_bytes;
    }
    disk->size_bytes = (uint64_t)size_bytes;
    disk->direct_fd = file_reopen(disk, O_DIRECT);
    int waiting = file_reopen(disk, 0);
    if (waiting >= 0) {
        disk->fd = waiting;
        ops->close(disk->sys, fd);
    }
    return 0;
}

int bw_disk_open(struct bw_sys *sys, const char *path, struct bw_disk **out, struct bw_err *err)
{
    struct bw_disk *disk = calloc(1, sizeof *disk);
    if (!disk)
        return bw_fail(err, -ENOMEM, "disk", "%s", path);
    disk->sys = sys;
    disk->fd = disk->direct_fd = -1;
    disk->path = strdup(path);
    for (uint32_t i = 0; i < PIECES_MAX; i++)
        disk->free[disk->free_count++] = i;
    int rc = disk->path ? files_open(disk, err) : bw_fail(err, -ENOMEM, "disk", "%s", path);
    if (!rc) {
        rc = sys->ops->ring_open ? sys->ops->ring_open(sys, PIECES_MAX, &disk->ring) : -ENOSYS;
        if (rc)
            bw_fail(err, rc, "disk", "%s: a ring for reads", path);
    }
    if (rc) {
        disk->ring = NULL;
        bw_disk_close(disk);
        return rc;
    }
    disk->manner.ring = disk->ring->kind;
    *out = disk;
    return 0;
}

uint64_t bw_disk_size(const struct bw_disk *disk)
{
    return disk->size_bytes;
}

const char *bw_disk_path(const struct bw_disk *disk)
{
    return disk->path;
}

struct bw_disk_manner bw_disk_manner(const struct bw_disk *disk)
{
    return (struct bw_disk_manner){
        disk->manner.ring,
        __atomic_load_n(&disk->manner.direct_bytes, __ATOMIC_RELAXED),
        __atomic_load_n(&disk->manner.cached_bytes, __ATOMIC_RELAXED),
    };
}

void bw_disk_memory_add(struct bw_disk *disk, void *data, uint64_t size_bytes)
{
    (void)disk->ring->ops->memory_add(disk->ring, data, size_bytes);
}

void bw_disk_memory_remove(struct bw_disk *disk, void *data)
{
    disk->ring->ops->memory_remove(disk->ring, data);
}

/* ---- pieces ---- */

static void request_fail(struct request *request, uint64_t offset, int rc)
{
    if (request->rc && request->failed_offset <= offset)
        return;
    request->rc = rc;
    request->failed_offset = offset;
}

static bool aligned(uint64_t value)
{
    return value % BW_DISK_ALIGNMENT == 0;
}

/* How the bytes from here on are best read: how many at once, and whether past the page cache. The start of
 * a range that is out of step by itself, so that the rest is in step. */
static void piece_shape(const struct bw_disk *disk, const struct request *request, struct piece *piece,
                        uint64_t left_bytes)
{
    uint64_t size_bytes = left_bytes < PIECE_BYTES ? left_bytes : PIECE_BYTES;
    bool can = disk->direct_fd >= 0 && !request->cached && aligned(piece->offset ^ (uintptr_t)piece->data);
    piece->direct = can && aligned(piece->offset) && size_bytes >= BW_DISK_ALIGNMENT;
    if (piece->direct)
        size_bytes = bw_align_down(size_bytes, BW_DISK_ALIGNMENT);
    else if (can && !aligned(piece->offset)) {
        uint64_t head_bytes = BW_DISK_ALIGNMENT - piece->offset % BW_DISK_ALIGNMENT;
        size_bytes = size_bytes < head_bytes ? size_bytes : head_bytes;
    }
    piece->size_bytes = (uint32_t)size_bytes;
}

/* Cuts the oldest requests into pieces as long as there is room. */
static void pieces_cut(struct bw_disk *disk)
{
    for (uint32_t i = 0; i < disk->order_count; i++) {
        struct request *request = &disk->requests[disk->order[i]];
        while (disk->free_count && !request->rc && request->begun_bytes < request->size_bytes) {
            uint32_t number = disk->free[--disk->free_count];
            struct piece *piece = &disk->pieces[number];
            *piece = (struct piece){.request = disk->order[i],
                                    .data = request->data + request->begun_bytes,
                                    .offset = request->offset + request->begun_bytes};
            piece_shape(disk, request, piece, request->size_bytes - request->begun_bytes);
            request->begun_bytes += piece->size_bytes;
            request->pieces++;
            disk->waiting[disk->waiting_count++] = number;
        }
    }
}

static void piece_free(struct bw_disk *disk, uint32_t number)
{
    disk->requests[disk->pieces[number].request].pieces--;
    disk->free[disk->free_count++] = number;
}

/* A ring that is of no use any more fails all that is under way, and all that comes. */
static void ring_broken(struct bw_disk *disk, int rc)
{
    bool idle[PIECES_MAX] = {0};
    for (uint32_t i = 0; i < disk->free_count; i++)
        idle[disk->free[i]] = true;
    for (uint32_t i = 0; i < PIECES_MAX; i++) {
        const struct piece *piece = &disk->pieces[i];
        if (idle[i])
            continue;
        request_fail(&disk->requests[piece->request], piece->offset, rc);
        piece_free(disk, i);
    }
    disk->waiting_count = disk->started_count = 0;
}

static void pieces_start(struct bw_disk *disk)
{
    struct bw_ring_read reads[PIECES_MAX];
    for (uint32_t i = 0; i < disk->waiting_count; i++) {
        const struct piece *piece = &disk->pieces[disk->waiting[i]];
        reads[i] = (struct bw_ring_read){.fd = piece->direct ? disk->direct_fd : disk->fd,
                                         .tag = disk->waiting[i],
                                         .data = piece->data,
                                         .offset = piece->offset,
                                         .size_bytes = piece->size_bytes};
    }
    if (!disk->waiting_count)
        return;
    int count = disk->ring->ops->start(disk->ring, reads, disk->waiting_count);
    if (count < 0) {
        ring_broken(disk, count);
        return;
    }
    assert((uint32_t)count <= disk->waiting_count);
    disk->started_count += (uint32_t)count;
    disk->waiting_count -= (uint32_t)count;
    memmove(disk->waiting, disk->waiting + count, disk->waiting_count * sizeof disk->waiting[0]);
}

/* What is left of the piece is read again. */
static void piece_again(struct bw_disk *disk, uint32_t number)
{
    struct piece *piece = &disk->pieces[number];
    uint32_t size_bytes = piece->size_bytes;
    piece_shape(disk, &disk->requests[piece->request], piece, size_bytes);
    if (piece->size_bytes < size_bytes) { /* its start only: what follows is a piece of its own, or waits */
        piece->size_bytes = size_bytes;
        piece->direct = false;
    }
    disk->waiting[disk->waiting_count++] = number;
}

/* The kernel or the file system does not read past the page cache like this: -EFAULT into this memory (a
 * mapping of device memory has no pages to lend), others at this alignment. */
static bool direct_refused(struct bw_disk *disk, const struct piece *piece, int result)
{
    if (!piece->direct || (result != -EFAULT && result != -EINVAL && result != -EOPNOTSUPP))
        return false;
    disk->requests[piece->request].cached = true;
    return true;
}

static void piece_barren(struct bw_disk *disk, uint32_t number, int result)
{
    struct piece *piece = &disk->pieces[number];
    struct request *request = &disk->requests[piece->request];
    if (direct_refused(disk, piece, result)) {
        piece_again(disk, number);
    } else if ((result == -EINTR || result == -EAGAIN) && ++piece->barren < BARREN_MAX) {
        disk->tired |= piece->barren > BARREN_AT_ONCE;
        piece_again(disk, number);
    } else {
        request_fail(request, piece->offset, result ? result : -ENODATA);
        piece_free(disk, number);
    }
}

static uint64_t piece_ended(struct bw_disk *disk, uint32_t number, int32_t result)
{
    struct piece *piece = &disk->pieces[number];
    struct request *request = &disk->requests[piece->request];
    if (result > 0 && (uint32_t)result > piece->size_bytes)
        result = -EPROTO; /* more than there is room for */
    if (result <= 0) {
        piece_barren(disk, number, result);
        return 0;
    }
    uint32_t got_bytes = (uint32_t)result;
    uint64_t *sum = piece->direct ? &disk->manner.direct_bytes : &disk->manner.cached_bytes;
    __atomic_fetch_add(sum, got_bytes, __ATOMIC_RELAXED);
    request->arrived_bytes += got_bytes;
    piece->data += got_bytes;
    piece->offset += got_bytes;
    piece->size_bytes -= got_bytes;
    piece->barren = 0;
    if (piece->size_bytes)
        piece_again(disk, number);
    else
        piece_free(disk, number);
    return got_bytes;
}

/* ---- requests ---- */

int bw_disk_start(struct bw_disk *disk, uint64_t offset, void *data, uint64_t size_bytes, uint32_t *out)
{
    assert(size_bytes > 0 && offset <= disk->size_bytes && size_bytes <= disk->size_bytes - offset);
    uint32_t number = 0;
    while (number < BW_DISK_REQUESTS_MAX && disk->requests[number].used)
        number++;
    if (number == BW_DISK_REQUESTS_MAX)
        return -EAGAIN;
    disk->requests[number] =
        (struct request){.used = true, .data = data, .offset = offset, .size_bytes = size_bytes};
    disk->order[disk->order_count++] = number;
    pieces_cut(disk);
    pieces_start(disk);
    *out = number;
    return 0;
}

uint64_t bw_disk_run(struct bw_disk *disk, uint64_t timeout_ns)
{
    struct bw_ring_done done[PIECES_MAX];
    uint64_t arrived_bytes = 0;
    if (disk->tired)
        disk->sys->ops->sleep_ns(disk->sys, timeout_ns < BARREN_WAIT_NS ? timeout_ns : BARREN_WAIT_NS);
    disk->tired = false;
    pieces_cut(disk);
    pieces_start(disk);
    if (!disk->started_count)
        return 0;
    int count = disk->ring->ops->finish(disk->ring, done, PIECES_MAX, timeout_ns);
    if (count < 0)
        ring_broken(disk, count);
    for (int i = 0; i < count; i++) {
        assert(done[i].tag < PIECES_MAX && disk->started_count);
        disk->started_count--;
        arrived_bytes += piece_ended(disk, done[i].tag, done[i].result);
    }
    pieces_cut(disk);
    pieces_start(disk);
    return arrived_bytes;
}

bool bw_disk_idle(const struct bw_disk *disk)
{
    return disk->started_count == 0 && disk->waiting_count == 0;
}

static int request_error(const struct bw_disk *disk, const struct request *request, struct bw_err *err)
{
    uint64_t at = request->failed_offset;
    if (request->rc == -ENODATA) {
        bw_fail(err, -ENODATA, "disk", "%s: the file ends at or before offset %" PRIu64, disk->path, at);
        bw_err_expected(err, "%" PRIu64 " bytes, its size when it was opened", disk->size_bytes);
        bw_err_hint(err, "it was cut while in use");
        return -ENODATA;
    }
    return bw_fail(err, request->rc, "disk", "%s: reading at offset %" PRIu64, disk->path, at);
}

bool bw_disk_finished(struct bw_disk *disk, uint32_t number, int *rc, struct bw_err *err)
{
    struct request *request = &disk->requests[number];
    assert(number < BW_DISK_REQUESTS_MAX && request->used);
    if (request->pieces || (!request->rc && request->begun_bytes < request->size_bytes))
        return false;
    assert(request->rc || request->arrived_bytes == request->size_bytes);
    *rc = request->rc ? request_error(disk, request, err) : 0;
    request->used = false;
    uint32_t place = 0;
    while (disk->order[place] != number)
        place++;
    disk->order_count--;
    memmove(&disk->order[place], &disk->order[place + 1],
            (disk->order_count - place) * sizeof disk->order[0]);
    return true;
}
