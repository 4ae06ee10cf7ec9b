/* Queues of a render node: contexts and the ioctl CS. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/drm.h"

/* Of a mock's queue: its own numbering, see bw_sys_ops.queue_look. */
enum { LOOK_CONTEXT_UNIT = 16, LOOK_IP_UNIT = 4 };

static int context_create(struct bw_drm_iface *drm, struct bw_drm_queue *queue, struct bw_err *err)
{
    union drm_amdgpu_ctx args = {
        .in = {.op = AMDGPU_CTX_OP_ALLOC_CTX, .priority = AMDGPU_CTX_PRIORITY_NORMAL}};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_CTX, &args);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "CTX, allocate");
    queue->context_id = args.out.alloc.ctx_id;
    return 0;
}

static int context_free(struct bw_drm_iface *drm, struct bw_drm_queue *queue, struct bw_err *err)
{
    union drm_amdgpu_ctx args = {.in = {.op = AMDGPU_CTX_OP_FREE_CTX, .ctx_id = queue->context_id}};
    int rc = queue->context_id ? bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_CTX, &args) : 0;
    if (rc < 0)
        return bw_fail(err, rc, "drm", "CTX, free %u", queue->context_id);
    queue->context_id = 0;
    return 0;
}

static void link_queue(struct bw_drm_iface *drm, struct bw_drm_queue *queue)
{
    pthread_mutex_lock(&drm->lock);
    queue->next = drm->queues;
    drm->queues = queue;
    pthread_mutex_unlock(&drm->lock);
}

static void unlink_queue(struct bw_drm_iface *drm, struct bw_drm_queue *queue)
{
    pthread_mutex_lock(&drm->lock);
    struct bw_drm_queue **link = &drm->queues;
    while (*link && *link != queue)
        link = &(*link)->next;
    if (*link)
        *link = queue->next;
    pthread_mutex_unlock(&drm->lock);
}

int bw_drm_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                        struct bw_iface_queue *queue, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    memset(queue, 0, sizeof *queue);
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    if (request->kind != BW_IFACE_QUEUE_COMPUTE_PM4 && request->kind != BW_IFACE_QUEUE_SDMA)
        return bw_fail(err, -EOPNOTSUPP, "drm", "queues of kind %d: there are PM4 and SDMA ones",
                       request->kind);
    struct bw_drm_queue *made = calloc(1, sizeof *made);
    if (!made)
        return bw_fail(err, -ENOMEM, "drm", "queue");
    made->drm = drm;
    made->ip_type = request->kind == BW_IFACE_QUEUE_SDMA ? AMDGPU_HW_IP_DMA : AMDGPU_HW_IP_COMPUTE;
    /* The kernel wants the word that it writes in a buffer of exactly one page (amdgpu_cs_p1_user_fence). */
    rc = bw_drm_alloc(iface, BW_DRM_PAGE_BYTES, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &made->page, err);
    if (!rc) {
        bw_wr64(&made->page.cpu, 0, 0);
        rc = context_create(drm, made, err);
    }
    if (rc) {
        if (made->page.size_bytes)
            bw_drm_free(iface, &made->page, NULL);
        free(made);
        return rc;
    }
    link_queue(drm, made);
    queue->id = made->context_id * LOOK_CONTEXT_UNIT + made->ip_type * LOOK_IP_UNIT;
    queue->done = made->page.cpu;
    queue->private_data = made;
    return 0;
}

int bw_drm_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct bw_drm_queue *gone = queue->private_data;
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    rc = bw_drm_timeline_end(gone, err);
    if (!rc)
        rc = context_free(drm, gone, err);
    if (!rc)
        rc = bw_drm_free(iface, &gone->page, err);
    if (rc)
        return rc;
    unlink_queue(drm, gone);
    free(gone);
    memset(queue, 0, sizeof *queue);
    return 0;
}

/* What an ioctl CS is made of. */
struct submission {
    struct drm_amdgpu_cs_chunk_ib ibs[BW_IFACE_COMMANDS_MAX];
    struct drm_amdgpu_cs_chunk_fence fence;
    struct drm_amdgpu_cs_chunk_dep dependencies[BW_IFACE_DEPENDENCIES_MAX];
    struct drm_amdgpu_cs_chunk_syncobj points[BW_IFACE_DEPENDENCIES_MAX], signal;
    struct drm_amdgpu_cs_chunk chunks[BW_IFACE_COMMANDS_MAX + 4];
    uint64_t addresses[BW_IFACE_COMMANDS_MAX + 4];
    uint32_t count, dependency_count, point_count;
};

static void add_chunk(struct submission *submission, uint32_t id, const void *data, size_t size_bytes)
{
    assert(submission->count < BW_COUNT_OF(submission->chunks));
    struct drm_amdgpu_cs_chunk *chunk = &submission->chunks[submission->count];
    *chunk = (struct drm_amdgpu_cs_chunk){.chunk_id = id,
                                          .length_dw = (uint32_t)(size_bytes / sizeof(uint32_t)),
                                          .chunk_data = (uint64_t)(uintptr_t)data};
    submission->addresses[submission->count++] = (uint64_t)(uintptr_t)chunk;
}

static void add_commands(struct submission *submission, const struct bw_drm_queue *queue,
                         const struct bw_iface_commands *commands, uint32_t index)
{
    struct drm_amdgpu_cs_chunk_ib *ib = &submission->ibs[index];
    *ib = (struct drm_amdgpu_cs_chunk_ib){
        .flags = commands->invalidate_code ? AMDGPU_IB_FLAG_EMIT_MEM_SYNC : 0,
        .va_start = commands->va,
        .ib_bytes = commands->word_count * (uint32_t)sizeof(uint32_t),
        .ip_type = queue->ip_type,
    };
    add_chunk(submission, AMDGPU_CHUNK_ID_IB, ib, sizeof *ib);
}

/* The kernel numbers a context's submissions from 1, too (amdgpu_ctx_add_fence); points of a timeline are
 * those numbers. */
static void add_dependency(struct submission *submission, const struct bw_drm_iface *drm,
                           const struct bw_iface_dependency *dependency)
{
    const struct bw_drm_queue *producer = dependency->queue->private_data;
    if (producer->drm == drm)
        submission->dependencies[submission->dependency_count++] = (struct drm_amdgpu_cs_chunk_dep){
            .ip_type = producer->ip_type, .ctx_id = producer->context_id, .handle = dependency->submission};
    else
        submission->points[submission->point_count++] = (struct drm_amdgpu_cs_chunk_syncobj){
            .handle = bw_drm_timeline_of(drm, producer), .point = dependency->submission};
}

static void add_dependencies(struct submission *submission, const struct bw_drm_iface *drm,
                             const struct bw_iface_dependency *dependencies, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_dependency(submission, drm, &dependencies[i]);
    if (submission->dependency_count)
        add_chunk(submission, AMDGPU_CHUNK_ID_DEPENDENCIES, submission->dependencies,
                  submission->dependency_count * sizeof submission->dependencies[0]);
    if (submission->point_count)
        add_chunk(submission, AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_WAIT, submission->points,
                  submission->point_count * sizeof submission->points[0]);
}

static void add_signal(struct submission *submission, const struct bw_drm_queue *queue)
{
    if (!queue->timeline)
        return;
    submission->signal = (struct drm_amdgpu_cs_chunk_syncobj){.handle = queue->timeline,
                                                              .point = atomic_load(&queue->submitted) + 1};
    add_chunk(submission, AMDGPU_CHUNK_ID_SYNCOBJ_TIMELINE_SIGNAL, &submission->signal,
              sizeof submission->signal);
}

static int submit(struct bw_drm_iface *drm, struct bw_drm_queue *queue, struct submission *submission)
{
    union drm_amdgpu_cs args = {.in = {.ctx_id = queue->context_id,
                                       .bo_list_handle = atomic_load(&drm->list),
                                       .num_chunks = submission->count,
                                       .chunks = (uint64_t)(uintptr_t)submission->addresses}};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_CS, &args);
    if (rc >= 0)
        atomic_store_explicit(&queue->submitted, args.out.handle, memory_order_release);
    return rc;
}

int bw_drm_queue_submit(struct bw_iface *iface, struct bw_iface_queue *queue,
                        const struct bw_iface_commands *commands, uint32_t command_count,
                        const struct bw_iface_dependency *dependencies, uint32_t dependency_count,
                        struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct bw_drm_queue *drm_queue = queue->private_data;
    struct submission submission; /* large, and filled as far as it is used */
    assert(command_count && command_count <= BW_IFACE_COMMANDS_MAX);
    assert(dependency_count <= BW_IFACE_DEPENDENCIES_MAX);
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    submission.count = submission.dependency_count = submission.point_count = 0;
    for (uint32_t i = 0; i < command_count; i++)
        add_commands(&submission, drm_queue, &commands[i], i);
    add_dependencies(&submission, drm, dependencies, dependency_count);
    add_signal(&submission, drm_queue);
    submission.fence = (struct drm_amdgpu_cs_chunk_fence){.handle = bw_drm_handle(&drm_queue->page)};
    add_chunk(&submission, AMDGPU_CHUNK_ID_FENCE, &submission.fence, sizeof submission.fence);
    rc = submit(drm, drm_queue, &submission);
    if (rc >= 0)
        return 0;
    rc = bw_fail(err, rc, "drm", "CS of %u command buffers", command_count);
    if (rc == -ECANCELED)
        bw_err_hint(err, "earlier work of this queue made the GPU fault or hang");
    else if (rc == -ENOMEM)
        bw_err_hint(err, "the kernel finds no place for the buffers: see what else uses this GPU's memory");
    return rc;
}

int bw_drm_queue_look(struct bw_iface *iface, const struct bw_iface_queue *queue, struct bw_queue_view *view)
{
    struct bw_sys *sys = iface->sys;
    return sys->ops->queue_look ? sys->ops->queue_look(sys, bw_drm_of(iface)->fd, queue->id, view) : -ENOTSUP;
}
