/* What the DRM front keeps for an open render node: its contexts and their queues; buffers and the address
 * space are those of its struct bw_mock_process.
 *
 * Every queue of a context (an entity of drm_sched) has an engine's thread of its own, but a GPU has few
 * rings: each job waits until it is the oldest one on its ring, whoever else that ring serves. So work that
 * waits on a ring for other work behind it hangs, as it does on a board. */
#ifndef BW_MOCK_DRM_CLIENT_H
#define BW_MOCK_DRM_CLIENT_H

#include "mock/drm/uapi.h"
#include "mock/machine.h"

enum {
    /* amdgpu_ctx_num_entities; a GPU of every generation here has at least as many rings. */
    BW_MOCK_DRM_COMPUTE_RINGS = 4,
    BW_MOCK_DRM_DMA_RINGS = 2,
    BW_MOCK_DRM_IBS_MAX = 125, /* of one job: amdgpu_ring_max_ibs of a compute ring */
    BW_MOCK_DRM_JOBS_MAX = 32, /* in flight on one queue of a context: amdgpu_sched_jobs */
};

struct bw_mock_drm_syncobj;
struct bw_mock_drm_ring;
struct bw_mock_drm_job;

struct bw_mock_drm_context;

/* One queue of a context. Guarded by drm->lock, as everything here. */
struct bw_mock_drm_entity {
    struct bw_mock_drm_client *client;
    struct bw_mock_drm_context *context;
    uint32_t ip_type, number;    /* number: "ring" of the interface */
    struct bw_mock_queue *queue; /* NULL until the first job */
    struct bw_mock_doorbell wake;
    struct bw_mock_drm_ring *ring;
    struct bw_mock_drm_job *jobs;  /* BW_MOCK_DRM_JOBS_MAX of them, by sequence number: a client that counts
                                      allocations counts none of the kernel's */
    struct bw_mock_drm_job *first; /* in order; the first may have begun */
    uint64_t submitted, completed; /* sequence numbers */
    uint64_t failed_from;          /* 0: none; the first sequence number that failed */
    int error;                     /* of those */
    bool held;                     /* schedule.c: a job of it waits for other queues */
    uint64_t hung_since_ns;
};

struct bw_mock_drm_context {
    uint32_t id;
    bool guilty, told; /* told: QUERY_STATE reported it */
    struct bw_mock_drm_entity compute[BW_MOCK_DRM_COMPUTE_RINGS], dma[BW_MOCK_DRM_DMA_RINGS];
};

struct bw_mock_drm_client {
    struct bw_mock_process *process;
    struct bw_mock_context *gpu;                   /* its side of the process */
    BW_VEC(struct bw_mock_drm_context *) contexts; /* by id - 1; NULL: free */
    BW_VEC(bool) lists;                            /* by handle - 1: whether there is such a list */
    BW_VEC(struct bw_mock_drm_syncobj *) syncobjs; /* by handle - 1; NULL: free. drm->lock */
    uint64_t in_flight;                            /* jobs of all its queues */
    struct mock_drm_fault fault;                   /* the last one; address 0 and status 0: none */
    BW_VEC(struct bw_mock_buffer *) doomed; /* closed, and kept until no job can touch them: machine.lock */
};

/* drm.c: the client behind a render node's descriptor, made at first need. NULL: out of memory. The caller
 * holds machine.lock. */
struct bw_mock_drm_client *bw_mock_drm_client_get(struct bw_mock *machine, int fd);
/* The last close. Without any lock. */
void bw_mock_drm_client_end(struct bw_mock_drm_client *client);
int bw_mock_drm_machine_open(struct bw_mock *machine);
void bw_mock_drm_machine_close(struct bw_mock *machine);

extern const struct bw_mock_front_ops bw_mock_drm_front;

/* gem.c; machine.lock is held. */
int bw_mock_drm_gem_create(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_gem_mmap(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_gem_close(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_userptr(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_gem_va(struct bw_mock_drm_client *client, void *data);
struct bw_mock_buffer *bw_mock_drm_buffer(struct bw_mock_drm_client *client, uint32_t handle);
/* Gives back what was closed, if no job is left that could touch it. */
void bw_mock_drm_reap(struct bw_mock_drm_client *client);

/* share.c; machine.lock is held. */
int bw_mock_drm_bo_list(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_prime_export(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_prime_import(struct bw_mock_drm_client *client, void *data);
/* That every buffer of a list exists: 0, -EFAULT, -ENOENT. */
int bw_mock_drm_list_check(struct bw_mock_drm_client *client, const struct mock_drm_list *list);

/* syncobj.c: the ioctls; machine.lock is held. */
int bw_mock_drm_syncobj_create(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_syncobj_destroy(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_syncobj_export(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_syncobj_import(struct bw_mock_drm_client *client, void *data);
/* drm->lock is held. */
struct bw_mock_drm_syncobj *bw_mock_drm_syncobj_find(struct bw_mock_drm_client *client, uint32_t handle);
void bw_mock_drm_syncobjs_end(struct bw_mock_drm_client *client);

/* submit.c; without any lock. */
int bw_mock_drm_cs(struct bw_mock_drm_client *client, void *data);
/* The queue that a submission names; *error: what the kernel answers. drm->lock is held. */
struct bw_mock_drm_entity *bw_mock_drm_entity(struct bw_mock_drm_client *client, uint32_t context,
                                              uint32_t ip_type, uint32_t instance, uint32_t ring, int *error);
int bw_mock_drm_ctx(struct bw_mock_drm_client *client, void *data);
void bw_mock_drm_context_free(struct bw_mock_drm_client *client, struct bw_mock_drm_context *context);
/* -ENOENT: no such queue. machine.lock is held. id: context * 16 + IP type * 4 + ring. */
int bw_mock_drm_queue_look(struct bw_mock_drm_client *client, uint32_t id, struct bw_queue_view *view);

/* wait.c; without any lock. */
int bw_mock_drm_wait_cs(struct bw_mock_drm_client *client, void *data);
int bw_mock_drm_wait_fences(struct bw_mock_drm_client *client, void *data);
/* Waits for a change, at most until deadline_ns (UINT64_MAX: none); false when that has come. drm->lock is
 * held. Jobs that hang are ended meanwhile, as the kernel's timeout does. */
bool bw_mock_drm_wait_turn(struct bw_mock *machine, uint64_t deadline_ns);

#endif
