/* Waiting for submissions (amdgpu_cs_wait_ioctl and amdgpu_cs_wait_fences_ioctl of the kernel), and the
 * rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/drm/rings.h"
#include "mock/engine/queue.h"
#include "mock/kfd/kfd.h"

enum {
    /* After this long without a sign of life the kernel resets a ring: lockup_timeout, whose default is 2 s
     * in new kernels and 10 to 60 s before. A long kernel is a sign of life here, as an emulator is slow. */
    LOCKUP_NS = 2000000000,
    TURN_NS = 50000000, /* how often a waiter looks for rings that hang */
    FENCES_MAX = 4096,  /* a bound for our allocation; the kernel has none but memory */
};

int bw_mock_drm_machine_open(struct bw_mock *machine)
{
    struct bw_mock_drm *drm = calloc(1, sizeof *drm);
    struct bw_mock_drm_gpu *gpus = calloc(machine->gpu_count, sizeof *gpus);
    pthread_condattr_t attributes;
    if (!drm || !gpus) {
        free(drm);
        free(gpus);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        for (uint32_t k = 0; k < BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS; k++)
            gpus[i].compute[k].index = k;
        for (uint32_t k = 0; k < BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX; k++)
            gpus[i].dma[k].index = k;
    }
    drm->gpus = gpus;
    pthread_mutex_init(&drm->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&drm->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    machine->drm = drm;
    return 0;
}

void bw_mock_drm_machine_close(struct bw_mock *machine)
{
    if (!machine->drm)
        return;
    pthread_mutex_destroy(&machine->drm->lock);
    pthread_cond_destroy(&machine->drm->changed);
    free(machine->drm->gpus);
    free(machine->drm);
}

static uint32_t hardware_dma_rings(const struct bw_mock_gpu *gpu)
{
    uint32_t engines = gpu->chip->sdma_engines;
    return engines < BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX ? engines : BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX;
}

uint32_t bw_mock_drm_dma_rings(const struct bw_mock_gpu *gpu)
{
    uint32_t rings = hardware_dma_rings(gpu);
    return rings < BW_MOCK_DRM_DMA_RINGS ? rings : BW_MOCK_DRM_DMA_RINGS;
}

struct bw_mock_drm_ring *bw_mock_drm_ring_pick(struct bw_mock *machine, const struct bw_mock_gpu *gpu,
                                               bool dma)
{
    struct bw_mock_drm_gpu *rings = &machine->drm->gpus[gpu->index];
    struct bw_mock_drm_ring *list = dma ? rings->dma : rings->compute, *best = list;
    uint32_t count = dma ? hardware_dma_rings(gpu) : BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS;
    for (uint32_t i = 1; i < count; i++)
        best = list[i].users < best->users ? &list[i] : best;
    best->users++;
    return best;
}

/* The kernel's timeout for a job that hangs. */
static void check_ring(struct bw_mock *machine, struct bw_mock_drm_ring *ring)
{
    struct bw_mock_drm_entity *entity = ring->first ? ring->first->entity : NULL;
    if (!entity || !atomic_load(&entity->queue->hung))
        return;
    uint64_t now_ns = bw_mock_clock_ns(machine);
    if (!entity->hung_since_ns)
        entity->hung_since_ns = now_ns;
    else if (now_ns - entity->hung_since_ns >= LOCKUP_NS)
        bw_mock_drm_entity_fail(entity, -ETIME);
}

static void check_rings(struct bw_mock *machine)
{
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        struct bw_mock_drm_gpu *gpu = &machine->drm->gpus[i];
        for (uint32_t k = 0; k < BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS; k++)
            check_ring(machine, &gpu->compute[k]);
        for (uint32_t k = 0; k < BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX; k++)
            check_ring(machine, &gpu->dma[k]);
    }
}

static bool step_turn(struct bw_mock *machine, uint64_t deadline_ns)
{
    pthread_mutex_unlock(&machine->drm->lock);
    int moved = bw_mock_step(&machine->sys);
    uint64_t now_ns = bw_mock_clock_ns(machine);
    /* With every engine at rest only time can pass. */
    if (!moved && now_ns < deadline_ns)
        atomic_fetch_add(&machine->virtual_ns,
                         deadline_ns - now_ns < TURN_NS ? deadline_ns - now_ns : TURN_NS);
    pthread_mutex_lock(&machine->drm->lock);
    return now_ns < deadline_ns;
}

bool bw_mock_drm_wait_turn(struct bw_mock *machine, uint64_t deadline_ns)
{
    bool timely = true;
    if (machine->single_step) {
        timely = step_turn(machine, deadline_ns);
    } else {
        uint64_t now_ns = bw_mock_clock_ns(machine);
        uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
        uint64_t until_ns = now_ns + (left_ns < TURN_NS ? left_ns : TURN_NS);
        struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                 .tv_nsec = (long)(until_ns % 1000000000)};
        timely = left_ns > 0;
        if (timely)
            pthread_cond_timedwait(&machine->drm->changed, &machine->drm->lock, &until);
    }
    check_rings(machine);
    return timely;
}

/* 1 done, 0 not yet, -errno: of the call, or what the job failed on. */
static int look(struct bw_mock_drm_client *client, const struct mock_drm_fence *fence)
{
    int rc;
    struct bw_mock_drm_entity *entity =
        bw_mock_drm_entity(client, fence->context, fence->ip_type, fence->ip_instance, fence->ring, &rc);
    if (!entity)
        return rc;
    uint64_t sequence = fence->sequence == UINT64_MAX ? entity->submitted : fence->sequence;
    if (sequence > entity->submitted)
        return bw_mock_refuse(client->process->machine, -EINVAL, "wait for submission %llu of %llu",
                              (unsigned long long)sequence, (unsigned long long)entity->submitted);
    if (entity->failed_from && sequence >= entity->failed_from)
        return entity->error;
    return sequence <= entity->completed;
}

int bw_mock_drm_wait_cs(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_wait_cs *args = data;
    struct bw_mock *machine = client->process->machine;
    struct mock_drm_fence fence = {args->context, args->ip_type, args->ip_instance, args->ring,
                                   args->sequence};
    uint64_t deadline_ns = args->timeout_ns, busy;
    pthread_mutex_lock(&machine->drm->lock);
    int rc = look(client, &fence);
    while (!rc && bw_mock_drm_wait_turn(machine, deadline_ns))
        rc = look(client, &fence);
    pthread_mutex_unlock(&machine->drm->lock);
    if (rc < 0)
        return rc;
    busy = !rc;
    memset(args, 0, sizeof *args);
    memcpy(args, &busy, sizeof busy);
    return 0;
}

/* Any of them, or all. 1 with *first, 0 not yet, -errno. */
static int look_at_all(struct bw_mock_drm_client *client, const struct mock_drm_fence *fences, uint32_t count,
                       bool all, uint32_t *first)
{
    int result = all;
    for (uint32_t i = 0; i < count; i++) {
        int rc = look(client, &fences[i]);
        if (rc < 0)
            return rc;
        if (rc && !all) {
            *first = i;
            return 1;
        }
        result &= rc;
    }
    return result;
}

int bw_mock_drm_wait_fences(struct bw_mock_drm_client *client, void *data)
{
    union mock_drm_wait_fences *args = data;
    struct bw_mock *machine = client->process->machine;
    uint32_t count = args->in.count, first = 0;
    uint64_t deadline_ns = args->in.timeout_ns;
    bool all = args->in.all;
    if (!count || count > FENCES_MAX)
        return bw_mock_refuse(machine, count ? -ENOMEM : -EINVAL, "WAIT_FENCES: %u fences", count);
    struct mock_drm_fence *fences = calloc(count, sizeof *fences);
    if (!fences || !bw_mock_user_copy(fences, args->in.fences, count * sizeof *fences)) {
        int rc = fences ? bw_mock_refuse(machine, -EFAULT, "WAIT_FENCES: array of fences") : -ENOMEM;
        free(fences);
        return rc;
    }
    pthread_mutex_lock(&machine->drm->lock);
    int rc = look_at_all(client, fences, count, all, &first);
    while (!rc && bw_mock_drm_wait_turn(machine, deadline_ns))
        rc = look_at_all(client, fences, count, all, &first);
    pthread_mutex_unlock(&machine->drm->lock);
    free(fences);
    if (rc < 0)
        return rc;
    memset(args, 0, sizeof *args);
    args->out.status = rc > 0;
    args->out.first = first;
    return 0;
}
