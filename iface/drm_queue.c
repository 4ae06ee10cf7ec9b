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
    struct drm_amdgpu_cs_chunk chunks[BW_IFACE_COMMANDS_MAX + 2];
    uint64_t addresses[BW_IFACE_COMMANDS_MAX + 2];
    uint32_t count;
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

/* The kernel numbers a context's submissions from 1, too (amdgpu_ctx_add_fence). */
static void add_dependencies(struct submission *submission, const struct bw_iface_dependency *dependencies,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_drm_queue *producer = dependencies[i].queue->private_data;
        submission->dependencies[i] = (struct drm_amdgpu_cs_chunk_dep){.ip_type = producer->ip_type,
                                                                       .ctx_id = producer->context_id,
                                                                       .handle = dependencies[i].submission};
    }
    if (count)
        add_chunk(submission, AMDGPU_CHUNK_ID_DEPENDENCIES, submission->dependencies,
                  count * sizeof submission->dependencies[0]);
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
    struct submission submission = {.count = 0};
    assert(command_count && command_count <= BW_IFACE_COMMANDS_MAX);
    assert(dependency_count <= BW_IFACE_DEPENDENCIES_MAX);
    int rc = bw_drm_check_fork(drm, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < command_count; i++)
        add_commands(&submission, drm_queue, &commands[i], i);
    add_dependencies(&submission, dependencies, dependency_count);
    submission.fence.handle = bw_drm_handle(&drm_queue->page);
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
