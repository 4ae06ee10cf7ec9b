/* What the tests of disks share: a file of known bytes in $TMPDIR, a context with a disk on it, a GPU and a
 * CPU, and reads that can be made to fail, hang or be watched. */
#ifndef BW_TESTS_DISK_RIG_H
#define BW_TESTS_DISK_RIG_H

#include <bellwire/graph.h>

#include <unistd.h>

#include "base/bits.h"
#include "base/rng.h"
#include "tests/check.h"
#include "tests/seed.h"

enum { DISK_FILE_BYTES = 11 * 1024 * 1024 + 777, DISK_TAGS = 64 };

/* A ring that does as it is told; reads go through the real one. */
struct faulty_ring {
    struct bw_ring base;
    struct bw_ring *inner;
    struct bw_ring_read reads[DISK_TAGS]; /* by tag */
    struct faults *faults;
};

struct faults {
    struct bw_sys *sys; /* the host's, with another ring_open */
    const struct bw_sys_ops *host_ops;
    struct bw_sys_ops ops;
    int error; /* atomic: what reads of the byte at error_offset give */
    uint64_t error_offset;
    bool hung;           /* atomic: reads do not end */
    uint64_t ns_per_kib; /* how slow the disk is made */
    uint64_t
        spread_max; /* atomic: most bytes between the first and the last byte that were under way at once */
};

static inline int faulty_start(struct bw_ring *base, const struct bw_ring_read *reads, uint32_t count)
{
    struct faulty_ring *ring = (struct faulty_ring *)base;
    struct faults *faults = ring->faults;
    int rc = ring->inner->ops->start(ring->inner, reads, count);
    uint64_t first = UINT64_MAX, end = 0;
    for (int i = 0; i < rc; i++)
        ring->reads[reads[i].tag] = reads[i];
    for (int i = 0; i < DISK_TAGS; i++) {
        const struct bw_ring_read *read = &ring->reads[i];
        if (!read->size_bytes)
            continue;
        first = read->offset < first ? read->offset : first;
        end = read->offset + read->size_bytes > end ? read->offset + read->size_bytes : end;
    }
    if (end && end - first > faults->spread_max)
        __atomic_store_n(&faults->spread_max, end - first, __ATOMIC_RELAXED);
    return rc;
}

static inline int faulty_finish(struct bw_ring *base, struct bw_ring_done *done, uint32_t capacity,
                                uint64_t timeout_ns)
{
    struct faulty_ring *ring = (struct faulty_ring *)base;
    struct faults *faults = ring->faults;
    if (__atomic_load_n(&faults->hung, __ATOMIC_ACQUIRE)) {
        usleep(1000);
        return 0;
    }
    /* A slow disk ends one read after the other. */
    int count = ring->inner->ops->finish(ring->inner, done, faults->ns_per_kib ? 1 : capacity, timeout_ns);
    int error = __atomic_load_n(&faults->error, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; i++) {
        struct bw_ring_read *read = &ring->reads[done[i].tag];
        if (error && faults->error_offset >= read->offset &&
            faults->error_offset < read->offset + read->size_bytes)
            done[i].result = error;
        usleep((useconds_t)(read->size_bytes / 1024 * faults->ns_per_kib / 1000));
        read->size_bytes = 0;
    }
    return count;
}

static inline int faulty_add(struct bw_ring *base, void *data, uint64_t size_bytes)
{
    struct faulty_ring *ring = (struct faulty_ring *)base;
    return ring->inner->ops->memory_add(ring->inner, data, size_bytes);
}

static inline void faulty_remove(struct bw_ring *base, void *data)
{
    struct faulty_ring *ring = (struct faulty_ring *)base;
    ring->inner->ops->memory_remove(ring->inner, data);
}

static inline void faulty_close(struct bw_ring *base)
{
    struct faulty_ring *ring = (struct faulty_ring *)base;
    ring->inner->ops->close(ring->inner);
    free(ring);
}

static inline int faulty_open(struct bw_sys *sys, uint32_t entries, struct bw_ring **out)
{
    static const struct bw_ring_ops ops = {faulty_start, faulty_finish, faulty_add, faulty_remove,
                                           faulty_close};
    struct faults *faults = (struct faults *)((char *)(uintptr_t)sys->ops - offsetof(struct faults, ops));
    struct faulty_ring *ring = calloc(1, sizeof *ring);
    int rc = faults->host_ops->ring_open(sys, entries, &ring->inner);
    if (rc) {
        free(ring);
        return rc;
    }
    ring->faults = faults;
    ring->base = (struct bw_ring){&ops, ring->inner->kind};
    *out = &ring->base;
    return 0;
}

struct disk_rig {
    struct faults faults;
    uint8_t *file;
    int fd;
    char path[300], name[320];
    struct bw_ctx *ctx;
    struct bw_device *disk, *gpu, *cpu;
    struct bw_rng rng;
    struct bw_err err;
};

static inline void disk_file_make(struct disk_rig *rig)
{
    const char *directory = getenv("TMPDIR");
    snprintf(rig->path, sizeof rig->path, "%s/bw_disk_test_XXXXXX",
             directory && *directory ? directory : "/tmp");
    rig->fd = mkstemp(rig->path);
    rig->file = malloc(DISK_FILE_BYTES);
    for (size_t i = 0; i < DISK_FILE_BYTES; i++)
        rig->file[i] = (uint8_t)bw_hash64(i);
    BW_EQ(write(rig->fd, rig->file, DISK_FILE_BYTES), DISK_FILE_BYTES);
    snprintf(rig->name, sizeof rig->name, "disk:%s", rig->path);
}

/* mock_faults: of the GPU; NULL: none. */
static inline bool disk_rig_open_faulty(struct disk_rig *rig, const char *test, uint64_t wait_ns,
                                        const char *mock_faults)
{
    memset(rig, 0, sizeof *rig);
    rig->rng = bw_test_rng(test);
    disk_file_make(rig);
    struct faults *faults = &rig->faults;
    if (!BW_EQ(bw_sys_host_create(&faults->sys), 0))
        return false;
    faults->host_ops = faults->sys->ops;
    faults->ops = *faults->host_ops;
    faults->ops.ring_open = faulty_open;
    faults->sys->ops = &faults->ops;
    struct bw_ctx_config config = {
        .size = sizeof config, .sys = faults->sys, .wait_ns = wait_ns, .mock_faults = mock_faults};
    return BW_OK(bw_ctx_create(&config, &rig->ctx, &rig->err), &rig->err) &&
           BW_OK(bw_device_open(rig->ctx, rig->name, &rig->disk, &rig->err), &rig->err) &&
           BW_OK(bw_device_open(rig->ctx, "mockkfd+amd@gfx1100,cu=2,vram=64M", &rig->gpu, &rig->err),
                 &rig->err) &&
           BW_OK(bw_device_open(rig->ctx, "host:1", &rig->cpu, &rig->err), &rig->err);
}

static inline bool disk_rig_open(struct disk_rig *rig, const char *test, uint64_t wait_ns)
{
    return disk_rig_open_faulty(rig, test, wait_ns, NULL);
}

static inline void disk_rig_close(struct disk_rig *rig)
{
    bw_device_close(rig->disk);
    bw_device_close(rig->gpu);
    bw_device_close(rig->cpu);
    bw_ctx_destroy(rig->ctx);
    bw_sys_destroy(rig->faults.sys);
    close(rig->fd);
    unlink(rig->path);
    free(rig->file);
}

static inline struct bw_buffer *disk_rig_buffer(struct disk_rig *rig, struct bw_device *device,
                                                uint64_t bytes, uint32_t flags)
{
    struct bw_buffer *buffer = NULL;
    BW_OK(bw_buffer_create(device, bytes, flags, &buffer, &rig->err), &rig->err);
    return buffer;
}

static inline struct bw_buffer *disk_rig_file(struct disk_rig *rig, uint64_t offset, uint64_t bytes)
{
    struct bw_buffer *buffer = NULL;
    BW_OK(bw_buffer_file(rig->disk, offset, bytes, &buffer, &rig->err), &rig->err);
    return buffer;
}

static inline struct bw_range disk_rig_range(struct bw_buffer *buffer, uint64_t offset, uint64_t bytes)
{
    return (struct bw_range){.buffer = buffer, .offset = offset, .size_bytes = bytes};
}

/* A linked graph of one copy. */
static inline struct bw_linked_graph *disk_rig_copy(struct disk_rig *rig, struct bw_device *device,
                                                    struct bw_range target, struct bw_range source)
{
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    if (BW_OK(bw_graph_create(rig->ctx, &graph, &rig->err), &rig->err) &&
        BW_OK(bw_graph_copy(graph, device, target, source, &rig->err), &rig->err))
        BW_OK(bw_graph_link(graph, NULL, &linked, &rig->err), &rig->err);
    bw_graph_destroy(graph);
    return linked;
}

static inline int disk_rig_run(struct disk_rig *rig, struct bw_linked_graph *linked)
{
    uint64_t ticket;
    int rc = bw_linked_graph_replay(linked, NULL, &ticket, &rig->err);
    return rc ? rc : bw_linked_graph_wait(linked, ticket, &rig->err);
}

#endif
