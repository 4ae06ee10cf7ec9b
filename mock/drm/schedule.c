/* When a job goes to its ring (drm_sched of the kernel): in the order of its queue, and once all that it
 * depends on is over, however that ended. Everything under drm->lock. */
#include "mock/drm/client.h"
#include "mock/drm/rings.h"
#include "mock/engine/queue.h"

static bool is_over(const struct bw_mock_drm_dependency *dependency)
{
    return dependency->entity ? dependency->sequence <= dependency->entity->completed
                              : bw_mock_drm_syncobj_reached(dependency->syncobj, dependency->sequence);
}

/* Forgets dependencies that are over, so that none outlives its queue. */
static void dependencies_drop(struct bw_mock_drm_job *job)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < job->dependency_count; i++) {
        struct bw_mock_drm_dependency *dependency = &job->dependencies[i];
        if (!is_over(dependency))
            job->dependencies[left++] = *dependency;
        else if (dependency->syncobj)
            bw_mock_drm_syncobj_unref(dependency->syncobj);
    }
    job->dependency_count = left;
}

/* What the job holds, now that it is over. */
static void job_end(struct bw_mock_drm_job *job)
{
    for (uint32_t i = 0; i < job->signal_count; i++) {
        bw_mock_drm_syncobj_signal(job->signals[i].syncobj, job->signals[i].point);
        bw_mock_drm_syncobj_unref(job->signals[i].syncobj);
    }
    for (uint32_t i = 0; i < job->dependency_count; i++) {
        if (job->dependencies[i].syncobj)
            bw_mock_drm_syncobj_unref(job->dependencies[i].syncobj);
    }
}

static void ring_add(struct bw_mock_drm_job *job)
{
    struct bw_mock_drm_job **link = &job->entity->ring->first;
    while (*link)
        link = &(*link)->ring_next;
    *link = job;
    job->ring_next = NULL;
    job->on_ring = true;
    bw_mock_doorbell_wake(&job->entity->wake);
}

void bw_mock_drm_jobs_release(struct bw_mock_drm *drm)
{
    for (struct bw_mock_drm_job *job = drm->waiting; job; job = job->ring_next)
        job->entity->held = false;
    for (struct bw_mock_drm_job **link = &drm->waiting; *link;) {
        struct bw_mock_drm_job *job = *link;
        dependencies_drop(job);
        if (job->dependency_count || job->entity->held) {
            job->entity->held = true;
            link = &job->ring_next;
            continue;
        }
        *link = job->ring_next;
        ring_add(job);
    }
}

void bw_mock_drm_job_push(struct bw_mock_drm *drm, struct bw_mock_drm_job *job)
{
    struct bw_mock_drm_entity *entity = job->entity;
    struct bw_mock_drm_job **link = &entity->first;
    while (*link)
        link = &(*link)->next;
    *link = job;
    for (link = &drm->waiting; *link; link = &(*link)->ring_next)
        ;
    *link = job;
    entity->client->in_flight++;
    bw_mock_drm_jobs_release(drm);
}

void bw_mock_drm_job_remove(struct bw_mock_drm *drm, struct bw_mock_drm_entity *entity)
{
    struct bw_mock_drm_job *job = entity->first;
    struct bw_mock_drm_job **link = job->on_ring ? &entity->ring->first : &drm->waiting;
    while (*link != job)
        link = &(*link)->ring_next;
    *link = job->ring_next;
    entity->first = job->next;
    entity->completed = job->sequence;
    job_end(job);
    entity->client->in_flight--;
}
