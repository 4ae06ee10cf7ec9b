/* The rings of the GPUs, which all DRM clients share, and the jobs on them. */
#ifndef BW_MOCK_DRM_RINGS_H
#define BW_MOCK_DRM_RINGS_H

#include <pthread.h>

#include "mock/drm/client.h"

enum {
    BW_MOCK_DRM_HARDWARE_COMPUTE_RINGS = 8, /* amdgpu_gfx_get_num_kcq's default */
    BW_MOCK_DRM_HARDWARE_DMA_RINGS_MAX = 16,
};

struct bw_mock_drm_ib {
    uint64_t va;
    uint32_t words;
};

struct bw_mock_drm_job {
    struct bw_mock_drm_job *next;      /* of its queue */
    struct bw_mock_drm_job *ring_next; /* of its ring: in order of submission */
    struct bw_mock_drm_entity *entity;
    uint64_t sequence;
    uint64_t *fence;       /* where it writes its number when done, NULL: nowhere */
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
};

/* DMA rings that a context sees. */
uint32_t bw_mock_drm_dma_rings(const struct bw_mock_gpu *gpu);
/* The one with the fewest users so far, as drm_sched_pick_best spreads entities. drm->lock is held. */
struct bw_mock_drm_ring *bw_mock_drm_ring_pick(struct bw_mock *machine, const struct bw_mock_gpu *gpu,
                                               bool dma);
/* The job that the queue is at and those after it are lost. drm->lock is held. */
void bw_mock_drm_entity_fail(struct bw_mock_drm_entity *entity, int error);

#endif
