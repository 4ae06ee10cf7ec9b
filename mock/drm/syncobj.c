/* Synchronisation objects that several files, also of several GPUs, share by a descriptor (drm_syncobj.c of
 * the kernel): timelines, whose points jobs signal and wait for. Guarded by drm->lock. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/vec.h"
#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/drm/rings.h"
#include "mock/machine.h"

/* A point that a job is to signal. */
struct point {
    uint64_t value;
    bool done;
};

struct bw_mock_drm_syncobj {
    uint32_t references;
    uint64_t given, reached; /* the last point that somebody signals, or will; all up to it are done */
    BW_VEC(struct point) pending;
};

void bw_mock_drm_syncobj_ref(struct bw_mock_drm_syncobj *syncobj)
{
    syncobj->references++;
}

void bw_mock_drm_syncobj_unref(struct bw_mock_drm_syncobj *syncobj)
{
    if (--syncobj->references)
        return;
    bw_vec_free(&syncobj->pending);
    free(syncobj);
}

uint64_t bw_mock_drm_syncobj_given(const struct bw_mock_drm_syncobj *syncobj)
{
    return syncobj->given;
}

bool bw_mock_drm_syncobj_reached(const struct bw_mock_drm_syncobj *syncobj, uint64_t point)
{
    return point <= syncobj->reached;
}

int bw_mock_drm_syncobj_give(struct bw_mock_drm_syncobj *syncobj, uint64_t point)
{
    struct point pending = {.value = point};
    if (bw_vec_push(&syncobj->pending, pending))
        return -ENOMEM;
    syncobj->given = point;
    return 0;
}

void bw_mock_drm_syncobj_signal(struct bw_mock_drm_syncobj *syncobj, uint64_t point)
{
    size_t done = 0;
    for (size_t i = 0; i < syncobj->pending.count; i++)
        syncobj->pending.data[i].done |= syncobj->pending.data[i].value == point;
    while (done < syncobj->pending.count && syncobj->pending.data[done].done)
        syncobj->reached = syncobj->pending.data[done++].value;
    if (!done)
        return;
    syncobj->pending.count -= done;
    memmove(syncobj->pending.data, syncobj->pending.data + done,
            syncobj->pending.count * sizeof *syncobj->pending.data);
}

struct bw_mock_drm_syncobj *bw_mock_drm_syncobj_find(struct bw_mock_drm_client *client, uint32_t handle)
{
    return handle && handle <= client->syncobjs.count ? client->syncobjs.data[handle - 1] : NULL;
}

/* A handle of the client for it; the reference goes along. 0: no memory. */
static uint32_t handle_make(struct bw_mock_drm_client *client, struct bw_mock_drm_syncobj *syncobj)
{
    size_t at = 0;
    while (at < client->syncobjs.count && client->syncobjs.data[at])
        at++;
    if (at == client->syncobjs.count && bw_vec_push(&client->syncobjs, NULL))
        return 0;
    client->syncobjs.data[at] = syncobj;
    return (uint32_t)at + 1;
}

static int create(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_syncobj *args = data;
    if (args->flags)
        return bw_mock_refuse(client->process->machine, -EINVAL, "SYNCOBJ_CREATE: flags 0x%x%s", args->flags,
                              args->flags == MOCK_DRM_SYNCOBJ_SIGNALED ? " (signalled: not modelled)" : "");
    struct bw_mock_drm_syncobj *syncobj = calloc(1, sizeof *syncobj);
    if (!syncobj)
        return -ENOMEM;
    syncobj->references = 1;
    args->handle = handle_make(client, syncobj);
    if (args->handle)
        return 0;
    free(syncobj);
    return -ENOMEM;
}

static int destroy(struct bw_mock_drm_client *client, void *data)
{
    const struct mock_drm_syncobj *args = data;
    struct bw_mock_drm_syncobj *syncobj = bw_mock_drm_syncobj_find(client, args->handle);
    if (args->flags || !syncobj)
        return bw_mock_refuse(client->process->machine, -EINVAL, "SYNCOBJ_DESTROY of %u", args->handle);
    client->syncobjs.data[args->handle - 1] = NULL;
    bw_mock_drm_syncobj_unref(syncobj);
    return 0;
}

static int export_fd(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_syncobj_fd *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_drm_syncobj *syncobj = bw_mock_drm_syncobj_find(client, args->handle);
    if (args->pad || args->flags || !syncobj)
        return bw_mock_refuse(machine, -EINVAL, "SYNCOBJ_HANDLE_TO_FD of %u, flags 0x%x", args->handle,
                              args->flags);
    if (bw_vec_reserve(&machine->files, 1))
        return -ENOMEM;
    int fd = memfd_create("bellwire-mock-syncobj", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    bw_mock_drm_syncobj_ref(syncobj);
    machine->files.data[machine->files.count++] = (struct bw_mock_file){
        .fd = fd, .kind = BW_MOCK_FILE_SYNCOBJ, .gpu = client->gpu->gpu, .syncobj = syncobj};
    args->fd = fd;
    return 0;
}

static int import_fd(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_syncobj_fd *args = data;
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_file file;
    if (args->pad || args->flags || !bw_mock_file_find(machine, args->fd, &file) ||
        file.kind != BW_MOCK_FILE_SYNCOBJ)
        return bw_mock_refuse(machine, -EINVAL, "SYNCOBJ_FD_TO_HANDLE of descriptor %d, flags 0x%x", args->fd,
                              args->flags);
    args->handle = handle_make(client, file.syncobj);
    if (!args->handle)
        return -ENOMEM;
    bw_mock_drm_syncobj_ref(file.syncobj);
    return 0;
}

typedef int syncobj_call(struct bw_mock_drm_client *client, void *data);

static int locked(struct bw_mock_drm_client *client, void *data, syncobj_call *call)
{
    struct bw_mock_drm *drm = client->process->machine->drm;
    pthread_mutex_lock(&drm->lock);
    int rc = call(client, data);
    pthread_mutex_unlock(&drm->lock);
    return rc;
}

int bw_mock_drm_syncobj_create(struct bw_mock_drm_client *client, void *data)
{
    return locked(client, data, create);
}

int bw_mock_drm_syncobj_destroy(struct bw_mock_drm_client *client, void *data)
{
    return locked(client, data, destroy);
}

int bw_mock_drm_syncobj_export(struct bw_mock_drm_client *client, void *data)
{
    return locked(client, data, export_fd);
}

int bw_mock_drm_syncobj_import(struct bw_mock_drm_client *client, void *data)
{
    return locked(client, data, import_fd);
}

void bw_mock_drm_syncobj_close(struct bw_mock *machine, struct bw_mock_drm_syncobj *syncobj)
{
    pthread_mutex_lock(&machine->drm->lock);
    bw_mock_drm_syncobj_unref(syncobj);
    pthread_mutex_unlock(&machine->drm->lock);
}

void bw_mock_drm_syncobjs_end(struct bw_mock_drm_client *client)
{
    for (size_t i = 0; i < client->syncobjs.count; i++) {
        if (client->syncobjs.data[i])
            bw_mock_drm_syncobj_unref(client->syncobjs.data[i]);
    }
    bw_vec_free(&client->syncobjs);
}
