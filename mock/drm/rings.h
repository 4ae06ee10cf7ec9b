/* The rings of the GPUs, which all DRM clients share, and the jobs on them. */
#ifndef BW_MOCK_DRM_RINGS_H
#define BW_MOCK_DRM_RINGS_H

#include <pthread.h>

#include "mock/drm/client.h"

enum {
    BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS = 8, /* amdgpu_gfx_get_num_kcq's default */
    BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX = 16,
    /* Of one job: bounds for our memory; the kernel has none. */
    BW_MOCK_DRM_DEPENDENCIES_MAX = 256,
    BW_MOCK_DRM_SIGNALS_MAX = 8,
};

struct bw_mock_drm_ib {
    uint64_t va;
    uint32_t words;
};

/* Job number `sequence` of a queue, and all before it; or a point of a timeline, and all before it. */
struct bw_mock_drm_dependency {
    struct bw_mock_drm_entity *entity;
    struct bw_mock_drm_syncobj *syncobj; /* when entity is NULL */
    uint64_t sequence;
};

/* What a job signals when it is over. */
struct bw_mock_drm_signal {
    struct bw_mock_drm_syncobj *syncobj;
    uint64_t point;
};

struct bw_mock_drm_job {
    struct bw_mock_drm_job *next;      /* of its queue */
    struct bw_mock_drm_job *ring_next; /* of its ring, or of those that wait for other jobs */
    struct bw_mock_drm_entity *entity;
    uint64_t sequence;
    uint64_t *fence; /* where it writes its number when done, NULL: nowhere */
    bool on_ring;
    uint32_t dependency_count;
    struct bw_mock_drm_dependency dependencies[BW_MOCK_DRM_DEPENDENCIES_MAX];
    uint32_t signal_count;
    struct bw_mock_drm_signal signals[BW_MOCK_DRM_SIGNALS_MAX];
    uint32_t ib_count, at; /* at: begun so far */
    struct bw_mock_drm_ib ibs[BW_MOCK_DRM_IBS_MAX];
};

struct bw_mock_drm_ring {
    struct bw_mock_drm_job *first; /* works, or is next */
    uint32_t index, users;         /* users: queues that were ever given it */
};

struct bw_mock_drm_gpu {
    struct bw_mock_drm_ring compute[BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS];
    struct bw_mock_drm_ring dma[BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX];
};

struct bw_mock_drm {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bw_mock_drm_gpu *gpus;
    struct bw_mock_drm_job *waiting; /* on no ring yet, in order of submission */
};

/* DMA rings that a context sees. */
uint32_t bw_mock_drm_dma_rings(const struct bw_mock_gpu *gpu);
/* The one with the fewest users so far, as drm_sched_pick_best spreads entities. drm->lock is held. */
struct bw_mock_drm_ring *bw_mock_drm_ring_pick(struct bw_mock *machine, const struct bw_mock_gpu *gpu,
                                               bool dma);
/* The job that the queue is at and those after it are lost. drm->lock is held. */
void bw_mock_drm_entity_fail(struct bw_mock_drm_entity *entity, int error);

/* syncobj.c; drm->lock is held. */
void bw_mock_drm_syncobj_ref(struct bw_mock_drm_syncobj *syncobj);
void bw_mock_drm_syncobj_unref(struct bw_mock_drm_syncobj *syncobj);
/* The last point that somebody will signal. */
uint64_t bw_mock_drm_syncobj_given(const struct bw_mock_drm_syncobj *syncobj);
bool bw_mock_drm_syncobj_reached(const struct bw_mock_drm_syncobj *syncobj, uint64_t point);
/* Somebody will signal the point, which is after all given so far. 0 or -ENOMEM. */
int bw_mock_drm_syncobj_give(struct bw_mock_drm_syncobj *syncobj, uint64_t point);
void bw_mock_drm_syncobj_signal(struct bw_mock_drm_syncobj *syncobj, uint64_t point);

/* schedule.c; drm->lock is held. */
/* A new job, behind all of its queue. */
void bw_mock_drm_job_push(struct bw_mock_drm *drm, struct bw_mock_drm_job *job);
/* The queue's first job is over, on its ring or not. */
void bw_mock_drm_job_remove(struct bw_mock_drm *drm, struct bw_mock_drm_entity *entity);
/* After jobs were removed: others may go to their rings. */
void bw_mock_drm_jobs_release(struct bw_mock_drm *drm);

#endif
