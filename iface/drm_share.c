/* The list of buffers that a submission names, and buffers that several GPUs reach: see drm.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "iface/drm.h"

/* Tells the kernel what the list holds now; submissions that are under way keep the old one. drm->lock is
 * held. */
static int list_update(struct bw_drm_iface *drm)
{
    uint32_t list = atomic_load(&drm->list);
    union drm_amdgpu_bo_list args = {
        .in = {.operation = list ? AMDGPU_BO_LIST_OP_UPDATE : AMDGPU_BO_LIST_OP_CREATE,
               .list_handle = list,
               .bo_number = (uint32_t)drm->listed.count,
               .bo_info_size = sizeof *drm->listed.data,
               .bo_info_ptr = (uint64_t)(uintptr_t)drm->listed.data}};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);
    if (rc >= 0 && !list)
        atomic_store(&drm->list, args.out.list_handle);
    return rc < 0 ? rc : 0;
}

int bw_drm_list_add(struct bw_drm_iface *drm, uint32_t handle, struct bw_err *err)
{
    pthread_mutex_lock(&drm->lock);
    int rc = bw_vec_push(&drm->listed, (struct drm_amdgpu_bo_list_entry){.bo_handle = handle});
    if (!rc) {
        rc = list_update(drm);
        drm->listed.count -= rc != 0;
    }
    pthread_mutex_unlock(&drm->lock);
    return rc ? bw_fail(err, rc, "drm", "BO_LIST, one buffer more") : 0;
}

int bw_drm_list_remove(struct bw_drm_iface *drm, uint32_t handle, struct bw_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&drm->lock);
    for (size_t i = 0; i < drm->listed.count; i++) {
        struct drm_amdgpu_bo_list_entry gone = drm->listed.data[i];
        if (gone.bo_handle != handle)
            continue;
        drm->listed.data[i] = drm->listed.data[--drm->listed.count];
        rc = list_update(drm);
        if (rc) /* there was room for it */
            drm->listed.data[drm->listed.count++] = gone;
        break;
    }
    pthread_mutex_unlock(&drm->lock);
    return rc ? bw_fail(err, rc, "drm", "BO_LIST, one buffer less") : 0;
}

/* Through a descriptor of a dma-buf, which the kernel's two buffers then share. */
static int import_handle(struct bw_drm_iface *owner, uint32_t handle, struct bw_drm_import *import,
                         struct bw_err *err)
{
    struct bw_sys *sys = owner->base.sys;
    struct drm_prime_handle shared = {.handle = handle, .flags = DRM_CLOEXEC | DRM_RDWR, .fd = -1};
    int rc = bw_drm_ioctl(owner, DRM_IOCTL_PRIME_HANDLE_TO_FD, &shared);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "PRIME_HANDLE_TO_FD of %s", owner->base.properties.node_name);
    rc = bw_drm_ioctl(import->drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &shared);
    sys->ops->close(sys, shared.fd);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "PRIME_FD_TO_HANDLE of %s", import->drm->base.properties.node_name);
    import->handle = shared.handle;
    return 0;
}

int bw_drm_import_make(struct bw_drm_iface *owner, uint32_t handle, const struct drm_amdgpu_gem_va *place,
                       struct bw_drm_iface *drm, struct bw_drm_import *import, struct bw_err *err)
{
    struct drm_amdgpu_gem_va args = *place;
    *import = (struct bw_drm_import){.drm = drm};
    atomic_fetch_add(&drm->references, 1);
    int rc = import_handle(owner, handle, import, err);
    if (!rc) {
        args.handle = import->handle;
        rc = bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
        import->mapped = rc >= 0;
        rc = rc < 0 ? bw_fail(err, rc, "drm", "GEM_VA, map memory of %s", owner->base.properties.node_name)
                    : 0;
    }
    if (!rc) {
        rc = bw_drm_list_add(drm, import->handle, err);
        import->listed = !rc;
    }
    if (rc)
        bw_drm_import_drop(import, place, NULL);
    return rc;
}

static int take_back(struct bw_drm_import *import, const struct drm_amdgpu_gem_va *place, struct bw_err *err)
{
    struct drm_amdgpu_gem_va args = *place;
    struct drm_gem_close close = {.handle = import->handle};
    int rc = import->listed ? bw_drm_list_remove(import->drm, import->handle, err) : 0;
    if (rc)
        return rc;
    args.handle = import->handle;
    args.operation = AMDGPU_VA_OP_UNMAP;
    rc = import->mapped ? bw_drm_ioctl(import->drm, DRM_IOCTL_AMDGPU_GEM_VA, &args) : 0;
    if (rc < 0)
        return bw_fail(err, rc, "drm", "GEM_VA, unmap memory of another GPU");
    import->mapped = false;
    rc = import->handle ? bw_drm_ioctl(import->drm, DRM_IOCTL_GEM_CLOSE, &close) : 0;
    return rc < 0 ? bw_fail(err, rc, "drm", "GEM_CLOSE of memory of another GPU") : 0;
}

int bw_drm_import_drop(struct bw_drm_import *import, const struct drm_amdgpu_gem_va *place,
                       struct bw_err *err)
{
    int rc = take_back(import, place, err);
    bw_drm_unref(import->drm);
    return rc;
}
