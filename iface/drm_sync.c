/* Timelines (DRM's syncobj) by which queues of one GPU wait for queues of another: each render node is a file
 * of its own, whose contexts no other file sees. A queue has one from when it is first to be waited for, and
 * each file that waits has a handle for it, which goes with the file. Points are the numbers of submissions.
 */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include "iface/drm.h"

static uint32_t node_index(const struct bw_drm_iface *drm)
{
    return drm->base.properties.gpu_id - BW_DRM_MINOR_FIRST;
}

uint32_t bw_drm_timeline_of(const struct bw_drm_iface *drm, const struct bw_drm_queue *producer)
{
    uint32_t index = node_index(drm);
    if (index >= BW_DRM_MINORS || producer->readers[index].serial != drm->serial)
        return 0;
    return producer->readers[index].handle;
}

/* From the next submission on the queue signals it. */
static int timeline_make(struct bw_drm_queue *queue, struct bw_err *err)
{
    struct drm_syncobj_create args = {0};
    if (queue->timeline)
        return 0;
    int rc = bw_drm_ioctl(queue->drm, DRM_IOCTL_SYNCOBJ_CREATE, &args);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "SYNCOBJ_CREATE");
    queue->timeline = args.handle;
    queue->timeline_from = atomic_load(&queue->submitted);
    return 0;
}

static int reader_make(struct bw_drm_iface *drm, struct bw_drm_queue *producer, struct bw_err *err)
{
    struct bw_sys *sys = drm->base.sys;
    struct drm_syncobj_handle args = {.handle = producer->timeline, .fd = -1};
    int rc = bw_drm_ioctl(producer->drm, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "SYNCOBJ_HANDLE_TO_FD, %u", producer->timeline);
    rc = bw_drm_ioctl(drm, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args);
    sys->ops->close(sys, args.fd);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "SYNCOBJ_FD_TO_HANDLE, of another render node");
    producer->readers[node_index(drm)] = (struct bw_drm_reader){drm->serial, args.handle};
    return 0;
}

int bw_drm_queue_follow(struct bw_iface *iface, struct bw_iface_queue *producer, struct bw_err *err)
{
    struct bw_drm_iface *drm = bw_drm_of(iface);
    struct bw_drm_queue *queue = producer->private_data;
    assert(queue->drm != drm && queue->drm->base.sys == iface->sys);
    if (node_index(drm) >= BW_DRM_MINORS)
        return bw_fail(err, -ENOTSUP, "drm", "%s is not one of %d", iface->properties.node_name,
                       BW_DRM_MINORS);
    int rc = bw_drm_check_fork(drm, err);
    if (!rc)
        rc = timeline_make(queue, err);
    return rc || bw_drm_timeline_of(drm, queue) ? rc : reader_make(drm, queue, err);
}

bool bw_drm_queue_follows(struct bw_iface *iface, const struct bw_iface_queue *producer, uint64_t submission)
{
    const struct bw_drm_queue *queue = producer->private_data;
    return bw_drm_timeline_of(bw_drm_of(iface), queue) && submission > queue->timeline_from;
}

int bw_drm_timeline_end(struct bw_drm_queue *queue, struct bw_err *err)
{
    struct drm_syncobj_destroy args = {.handle = queue->timeline};
    int rc = queue->timeline ? bw_drm_ioctl(queue->drm, DRM_IOCTL_SYNCOBJ_DESTROY, &args) : 0;
    if (rc < 0)
        return bw_fail(err, rc, "drm", "SYNCOBJ_DESTROY, %u", queue->timeline);
    queue->timeline = 0;
    return 0;
}
