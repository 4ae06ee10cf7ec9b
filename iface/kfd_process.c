/* What the KFD keeps once per process: see kfd.h. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iface/fork_mark.h"
#include "iface/kfd.h"
#include "iface/sys_util.h"

void bw_kfd_render_path(const struct bw_kfd_node *node, char *path, uint32_t path_size)
{
    snprintf(path, path_size, "/dev/dri/renderD%u", node->render_minor);
}

int bw_kfd_fail_open(struct bw_err *err, int rc, const char *path)
{
    bool absent = rc == -ENOENT || rc == -ENXIO || rc == -ENODEV;
    int code = bw_amdgpu_fail_open(err, rc, "kfd", path);
    if (absent && !strcmp(path, BW_KFD_PATH))
        bw_err_hint(
            err, "load the module amdgpu (modprobe amdgpu), on a kernel with CONFIG_HSA_AMD; in a container "
                 "pass --device /dev/kfd --device /dev/dri");
    return code;
}

bool bw_kfd_forked(const struct bw_kfd_process *process)
{
    return __atomic_load_n(&process->started, __ATOMIC_ACQUIRE) && bw_fork_mark_forked(&process->fork_mark);
}

int bw_kfd_check_fork(const struct bw_kfd_process *process, struct bw_err *err)
{
    return bw_kfd_forked(process) ? bw_fork_mark_refuse("kfd", err) : 0;
}

int bw_kfd_ioctl(struct bw_kfd_process *process, unsigned long request, void *argument)
{
    return bw_sys_ioctl(process->sys, process->fd, request, argument, &process->overdue);
}

static int check_version(struct bw_kfd_process *process, struct bw_err *err)
{
    struct bw_kfd_version_args version = {0};
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_GET_VERSION, &version);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "GET_VERSION");
    if (version.major != BW_KFD_MAJOR) {
        rc = bw_fail(err, -ENOTSUP, "kfd", "interface version");
        bw_err_expected(err, "%d.x", BW_KFD_MAJOR);
        bw_err_observed(err, "%u.%u", version.major, version.minor);
        return rc;
    }
    process->minor_version = version.minor;
    return 0;
}

static int read_apertures(struct bw_kfd_process *process, struct bw_err *err)
{
    struct bw_kfd_apertures_args args = {0};
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_GET_APERTURES, &args);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "GET_PROCESS_APERTURES_NEW, count");
    if (args.count > BW_KFD_NODES_MAX)
        return bw_fail(err, -EPROTO, "kfd", "GET_PROCESS_APERTURES_NEW: %u GPUs", args.count);
    if (!args.count)
        return bw_fail(err, -ENODEV, "kfd", "the kernel driver has no GPU for this process");
    if (bw_vec_reserve(&process->apertures, args.count))
        return bw_fail(err, -ENOMEM, "kfd", "apertures");
    memset(process->apertures.data, 0, args.count * sizeof process->apertures.data[0]);
    args.apertures = (uint64_t)(uintptr_t)process->apertures.data;
    rc = bw_kfd_ioctl(process, BW_KFD_IOC_GET_APERTURES, &args);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "GET_PROCESS_APERTURES_NEW");
    process->apertures.count = args.count;
    return 0;
}

/* Addresses that every GPU of the process can reach, since buffers keep their address on peers. */
static int start_va(struct bw_kfd_process *process, struct bw_err *err)
{
    uint64_t lowest = 0, highest = UINT64_MAX;
    for (size_t i = 0; i < process->apertures.count; i++) {
        const struct bw_kfd_process_apertures *gpu = &process->apertures.data[i];
        lowest = gpu->gpuvm_base > lowest ? gpu->gpuvm_base : lowest;
        highest = gpu->gpuvm_limit < highest ? gpu->gpuvm_limit : highest;
    }
    if (lowest >= highest)
        return bw_fail(err, -EPROTO, "kfd", "the GPUs have no address range in common");
    int rc = bw_va_space_init(&process->va, process->sys, lowest, highest);
    return rc ? bw_fail(err, rc, "kfd", "address space") : 0;
}

static int start_fork_mark(struct bw_kfd_process *process, struct bw_err *err)
{
    int rc = bw_fork_mark_map(process->sys, &process->fork_mark);
    return rc ? bw_fail(err, rc, "kfd", "map the page that tells a fork") : 0;
}

/* Tells the KFD that a runtime is here: it then clears stale per-process state in the scheduler firmware.
 * -EBUSY and -EEXIST: a second context of this process, which is fine. */
static int enable_runtime(struct bw_kfd_process *process, struct bw_err *err)
{
    struct bw_kfd_runtime_enable_args args = {.mode_mask = BW_KFD_RUNTIME_MODE_ENABLE};
    if (process->minor_version < BW_KFD_MINOR_RUNTIME_ENABLE)
        return 0;
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_RUNTIME_ENABLE, &args);
    return rc >= 0 || rc == -EBUSY || rc == -EEXIST ? 0 : bw_fail(err, rc, "kfd", "RUNTIME_ENABLE");
}

/* Takes back whatever start made, in any state. In a forked child the mappings are not there (MADV_DONTFORK),
 * and their addresses may belong to others: only descriptors are closed. */
static void stop(struct bw_kfd_process *process)
{
    struct bw_sys *sys = process->sys;
    bool forked = bw_kfd_forked(process);
    __atomic_store_n(&process->started, false, __ATOMIC_RELEASE);
    for (size_t i = 0; i < process->gpus.count; i++) {
        struct bw_kfd_gpu *gpu = process->gpus.data[i];
        if (gpu->doorbells.size_bytes && !forked)
            sys->ops->unmap(sys, &gpu->doorbells);
        if (gpu->render_fd >= 0)
            sys->ops->close(sys, gpu->render_fd);
        free(gpu);
    }
    bw_vec_free(&process->gpus);
    bw_vec_free(&process->apertures);
    if (forked)
        bw_va_space_forget(&process->va);
    bw_va_space_fini(&process->va);
    if (process->fork_mark.size_bytes)
        sys->ops->unmap(sys, &process->fork_mark);
    if (process->fd >= 0)
        sys->ops->close(sys, process->fd);
    process->fd = -1;
}

static int start(struct bw_kfd_process *process, struct bw_err *err)
{
    struct bw_sys *sys = process->sys;
    int fd = sys->ops->open(sys, BW_KFD_PATH, O_RDWR);
    if (fd < 0)
        return bw_kfd_fail_open(err, fd, BW_KFD_PATH);
    process->fd = fd;
    int rc = check_version(process, err);
    if (!rc)
        rc = start_fork_mark(process, err);
    if (!rc)
        rc = read_apertures(process, err);
    if (!rc)
        rc = start_va(process, err);
    if (!rc)
        rc = enable_runtime(process, err);
    if (rc)
        stop(process);
    __atomic_store_n(&process->started, !rc, __ATOMIC_RELEASE);
    return rc;
}

/* The process object of this sys, made at first use. */
static struct bw_kfd_process *find_process(struct bw_sys *sys)
{
    struct bw_kfd_process *found = __atomic_load_n((struct bw_kfd_process **)&sys->kfd, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    struct bw_kfd_process *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->sys = sys;
    made->fd = -1;
    /* Neither fails on Linux, where a mutex holds nothing but itself. */
    pthread_mutex_init(&made->open_lock, NULL);
    pthread_mutex_init(&made->lock, NULL);
    void *expected = NULL;
    if (__atomic_compare_exchange_n(&sys->kfd, &expected, (void *)made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    pthread_mutex_destroy(&made->open_lock);
    pthread_mutex_destroy(&made->lock);
    free(made);
    return expected;
}

int bw_kfd_process_get(struct bw_sys *sys, struct bw_kfd_process **process, struct bw_err *err)
{
    struct bw_kfd_process *found = find_process(sys);
    if (!found)
        return bw_fail(err, -ENOMEM, "kfd", "process state");
    int rc = bw_kfd_check_fork(found, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&found->lock);
    if (!found->started)
        rc = start(found, err);
    found->users += !rc;
    pthread_mutex_unlock(&found->lock);
    *process = rc ? NULL : found;
    return rc;
}

void bw_kfd_process_put(struct bw_kfd_process *process)
{
    pthread_mutex_lock(&process->lock);
    assert(process->users);
    process->users--;
    pthread_mutex_unlock(&process->lock);
}

/* Frees the records of buffers and queues that are still there; the kernel ends them with the process. */
static void free_records(struct bw_kfd_process *process)
{
    while (process->queues) {
        struct bw_kfd_queue *next = process->queues->next;
        free(process->queues);
        process->queues = next;
    }
    if (process->buffers.count) {
        BW_INTERVAL_EACH(&process->buffers, handle, 0, UINT64_MAX)
        {
            struct bw_kfd_buffer *buffer =
                (void *)(uintptr_t)bw_interval_at(&process->buffers, handle)->value;
            bw_vec_free(&buffer->mapped);
            free(buffer);
        }
    }
    bw_interval_map_free(&process->buffers);
}

void bw_kfd_process_end(struct bw_sys *sys)
{
    struct bw_kfd_process *process = sys->kfd;
    if (!process)
        return;
    assert(!process->users || bw_kfd_forked(process));
    if (process->started)
        stop(process);
    free_records(process);
    pthread_mutex_destroy(&process->open_lock);
    pthread_mutex_destroy(&process->lock);
    free(process);
    sys->kfd = NULL;
}

static int acquire(struct bw_kfd_process *process, const struct bw_kfd_node *node, struct bw_kfd_gpu *gpu,
                   struct bw_err *err)
{
    struct bw_sys *sys = process->sys;
    char path[64];
    bw_kfd_render_path(node, path, sizeof path);
    int fd = sys->ops->open(sys, path, O_RDWR);
    if (fd < 0)
        return bw_kfd_fail_open(err, fd, path);
    struct bw_kfd_acquire_vm_args args = {.drm_fd = (uint32_t)fd, .gpu_id = node->gpu_id};
    int rc = bw_kfd_ioctl(process, BW_KFD_IOC_ACQUIRE_VM, &args);
    if (rc < 0) {
        sys->ops->close(sys, fd);
        rc = bw_fail(err, rc, "kfd", "ACQUIRE_VM of %s for GPU 0x%x", path, node->gpu_id);
        if (rc == -EBUSY)
            bw_err_hint(
                err,
                "another context of this process has had this GPU; the kernel ties it to that one until the "
                "process ends: let both contexts use one bw_sys");
        return rc;
    }
    gpu->render_fd = fd;
    return 0;
}

int bw_kfd_gpu_get(struct bw_kfd_process *process, const struct bw_kfd_node *node, struct bw_kfd_gpu **gpu,
                   struct bw_err *err)
{
    int rc = 0;
    *gpu = NULL;
    pthread_mutex_lock(&process->lock);
    for (size_t i = 0; i < process->gpus.count; i++)
        if (process->gpus.data[i]->gpu_id == node->gpu_id)
            *gpu = process->gpus.data[i];
    if (!*gpu) {
        struct bw_kfd_gpu *made = calloc(1, sizeof *made);
        if (!made || bw_vec_push(&process->gpus, made)) {
            free(made);
            rc = bw_fail(err, -ENOMEM, "kfd", "GPU state");
        } else {
            made->gpu_id = node->gpu_id;
            made->render_fd = -1;
            bw_numa_read(process->sys, node->render_minor, &made->numa);
            *gpu = made;
        }
    }
    if (!rc && (*gpu)->render_fd < 0)
        rc = acquire(process, node, *gpu, err);
    if (!rc)
        (*gpu)->users++;
    pthread_mutex_unlock(&process->lock);
    return rc;
}

void bw_kfd_gpu_put(struct bw_kfd_process *process, struct bw_kfd_gpu *gpu)
{
    pthread_mutex_lock(&process->lock);
    assert(gpu->users);
    gpu->users--;
    pthread_mutex_unlock(&process->lock);
}
