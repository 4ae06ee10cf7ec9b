/* Contexts and command submission (amdgpu_ctx.c and amdgpu_cs.c of the kernel), and how the engines are fed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "mock/drm/client.h"
#include "mock/drm/drm.h"
#include "mock/drm/rings.h"
#include "mock/engine/queue.h"
#include "mock/kfd/kfd.h"

enum {
    CONTEXTS_MAX = 4096,   /* AMDGPU_VM_MAX_NUM_CTX */
    DMA_IBS_MAX = 49,      /* amdgpu_ring_max_ibs: what is neither graphics, compute nor JPEG */
    CHUNKS_MAX = 4096,     /* a bound for our work; the kernel has none but memory */
    DMA_IB_ALIGNMENT = 32, /* INDIRECT's address has no bits below: sdma_v6_0_0_pkt_open.h */
    GONE_NS = 1000000000,  /* MAX_WAIT_SCHED_ENTITY_Q_EMPTY: how long a context that is freed may work on */
};

static struct bw_mock_drm_context *context_find(struct bw_mock_drm_client *client, uint32_t id)
{
    return id && id <= client->contexts.count ? client->contexts.data[id - 1] : NULL;
}

struct bw_mock_drm_entity *bw_mock_drm_entity(struct bw_mock_drm_client *client, uint32_t context_id,
                                              uint32_t ip_type, uint32_t instance, uint32_t ring, int *error)
{
    struct bw_mock *machine = client->process->machine;
    struct bw_mock_drm_context *context = context_find(client, context_id);
    uint32_t count = ip_type == MOCK_DRM_IP_COMPUTE ? BW_MOCK_DRM_COMPUTE_RINGS
                     : ip_type == MOCK_DRM_IP_DMA   ? bw_mock_drm_dma_rings(client->gpu->gpu)
                                                    : 0;
    *error = 0;
    if (!context)
        *error = bw_mock_refuse(machine, -EINVAL, "no context %u", context_id);
    else if (instance || ring >= count)
        *error = bw_mock_refuse(machine, -EINVAL, "no ring %u of IP type %u, instance %u", ring, ip_type,
                                instance);
    if (*error)
        return NULL;
    return ip_type == MOCK_DRM_IP_DMA ? &context->dma[ring] : &context->compute[ring];
}

/* --- the engines' side ------------------------------------------------------------------------------- */

void bw_mock_drm_entity_fail(struct bw_mock_drm_entity *entity, int error)
{
    if (entity->first && !entity->failed_from) {
        entity->failed_from = entity->first->sequence;
        entity->error = error;
        entity->context->guilty = true;
    }
    struct bw_mock_drm *drm = entity->client->process->machine->drm;
    while (entity->first)
        bw_mock_drm_job_remove(drm, entity);
    bw_mock_drm_jobs_release(drm);
}

static void tell(struct bw_mock *machine)
{
    pthread_cond_broadcast(&machine->drm->changed);
    bw_mock_progress_signal(machine);
}

static enum bw_mock_queue_progress feed(struct bw_mock_queue *queue)
{
    struct bw_mock_drm_entity *entity = queue->feed;
    struct bw_mock_drm *drm = queue->machine->drm;
    enum bw_mock_queue_progress progress = BW_MOCK_QUEUE_MOVED;
    uint32_t waits = 0;
    pthread_mutex_lock(&drm->lock);
    struct bw_mock_drm_job *job = entity->first;
    if (!job) {
        progress = BW_MOCK_QUEUE_IDLE;
    } else if (entity->ring->first != job) {
        waits = job->dependency_count;
        progress = BW_MOCK_QUEUE_BLOCKED;
    } else if (job->at < job->ib_count) {
        if (!job->at)
            bw_mock_queue_forget_registers(queue);
        bw_mock_queue_begin(queue, job->ibs[job->at].va, job->ibs[job->at].words);
        job->at++;
    } else {
        if (job->fence)
            __atomic_store_n(job->fence, job->sequence, __ATOMIC_RELEASE);
        bw_mock_drm_job_remove(drm, entity);
        bw_mock_drm_jobs_release(drm);
        tell(queue->machine);
    }
    pthread_mutex_unlock(&drm->lock);
    if (progress != BW_MOCK_QUEUE_BLOCKED)
        return progress;
    return waits ? bw_mock_queue_block(queue, "a job depends on %u jobs of other queues", waits)
                 : bw_mock_queue_block(queue, "ring %u works for others", entity->ring->index);
}

static void failed(struct bw_mock_queue *queue)
{
    struct bw_mock_drm *drm = queue->machine->drm;
    pthread_mutex_lock(&drm->lock);
    bw_mock_drm_entity_fail(queue->feed, -ETIME);
    tell(queue->machine);
    pthread_mutex_unlock(&drm->lock);
}

/* GCVM_L2_PROTECTION_FAULT_STATUS, as Mesa's register database has it (gfx11.json) and as kernel logs show
 * it: PERMISSION_FAULTS in [7:4] (page not valid, read, write, execute), RW in 18. */
static uint32_t fault_status(const struct bw_mock_violation *violation)
{
    bool writes = violation->access & (BW_MOCK_WRITE | BW_MOCK_ATOMIC);
    bool runs = violation->access & BW_MOCK_EXECUTE;
    return !violation->mapped << 4 | (runs ? 1u << 7 : writes ? 1u << 6 : 1u << 5) | (uint32_t)writes << 18;
}

static void memory_fault(struct bw_mock_context *context, const struct bw_mock_violation *violation)
{
    struct bw_mock_drm *drm = context->process->machine->drm;
    pthread_mutex_lock(&drm->lock);
    context->process->drm->fault = (struct mock_drm_fault){
        .address = bw_align_down(violation->va, BW_MOCK_PAGE), .status = fault_status(violation)};
    pthread_mutex_unlock(&drm->lock);
}

/* The kernel uses interrupts to see its own fences only. */
static void interrupt(struct bw_mock_context *context, uint32_t context_id, uint32_t valid_bits)
{
    atomic_fetch_add_explicit(&context->process->machine->stats.interrupts, 1, memory_order_relaxed);
}

static void exception(struct bw_mock_context *context)
{
}

const struct bw_mock_front_ops bw_mock_drm_front = {
    .interrupt = interrupt,
    .memory_fault = memory_fault,
    .exception = exception,
    .feed = feed,
    .failed = failed,
};

/* --- contexts ---------------------------------------------------------------------------------------- */

static void entity_init(struct bw_mock_drm_client *client, struct bw_mock_drm_context *context,
                        struct bw_mock_drm_entity *entity, uint32_t ip_type, uint32_t ring)
{
    *entity = (struct bw_mock_drm_entity){.client = client, .context = context};
    entity->ip_type = ip_type;
    entity->number = ring;
}

static int context_alloc(struct bw_mock_drm_client *client, union mock_drm_ctx *args)
{
    struct bw_mock_drm_context *context = calloc(1, sizeof *context);
    size_t at = 0;
    while (at < client->contexts.count && client->contexts.data[at])
        at++;
    if (!context || at >= CONTEXTS_MAX ||
        (at == client->contexts.count && bw_vec_push(&client->contexts, NULL))) {
        free(context);
        return -ENOMEM;
    }
    if (args->in.priority > MOCK_DRM_PRIORITY_NORMAL && args->in.priority <= MOCK_DRM_PRIORITY_VERY_HIGH) {
        free(context);
        return bw_mock_refuse(client->process->machine, -EACCES, "CTX: priority %d needs CAP_SYS_NICE",
                              args->in.priority);
    }
    context->id = (uint32_t)at + 1;
    for (uint32_t i = 0; i < BW_MOCK_DRM_COMPUTE_RINGS; i++)
        entity_init(client, context, &context->compute[i], MOCK_DRM_IP_COMPUTE, i);
    for (uint32_t i = 0; i < BW_MOCK_DRM_DMA_RINGS; i++)
        entity_init(client, context, &context->dma[i], MOCK_DRM_IP_DMA, i);
    client->contexts.data[at] = context;
    memset(args, 0, sizeof *args);
    args->made.id = context->id;
    return 0;
}

static void context_state(struct bw_mock_drm_context *context, bool second, union mock_drm_ctx *args)
{
    bool guilty = context->guilty;
    memset(args, 0, sizeof *args);
    if (second) {
        args->state.flags = guilty ? MOCK_DRM_STATE_RESET | MOCK_DRM_STATE_GUILTY : 0;
        return;
    }
    args->state.reset_status = guilty && !context->told ? MOCK_DRM_RESET_GUILTY : MOCK_DRM_RESET_NONE;
    context->told = guilty;
}

/* Ends the queue's engine. Without any lock; nobody finds the queue any more. */
static void entity_end(struct bw_mock_drm_entity *entity)
{
    struct bw_mock_process *process = entity->client->process;
    struct bw_mock *machine = process->machine;
    struct bw_mock_queue *queue = entity->queue;
    uint64_t deadline_ns = bw_mock_clock_ns(machine) + GONE_NS;
    if (!queue)
        return;
    pthread_mutex_lock(&machine->drm->lock);
    while (entity->first && bw_mock_drm_wait_turn(machine, deadline_ns))
        ;
    pthread_mutex_unlock(&machine->drm->lock);
    bw_mock_queue_halt(queue);
    pthread_mutex_lock(&machine->lock);
    for (size_t i = 0; i < process->queues.count; i++) {
        if (process->queues.data[i] == queue)
            process->queues.data[i--] = process->queues.data[--process->queues.count];
    }
    pthread_mutex_lock(&machine->drm->lock);
    bw_mock_drm_entity_fail(entity, -ETIME);
    tell(machine);
    pthread_mutex_unlock(&machine->drm->lock);
    pthread_mutex_unlock(&machine->lock);
    bw_mock_queue_free(queue);
    free(entity->jobs);
}

/* The context is in no table any more. */
void bw_mock_drm_context_free(struct bw_mock_drm_client *client, struct bw_mock_drm_context *context)
{
    for (uint32_t i = 0; i < BW_MOCK_DRM_COMPUTE_RINGS; i++)
        entity_end(&context->compute[i]);
    for (uint32_t i = 0; i < BW_MOCK_DRM_DMA_RINGS; i++)
        entity_end(&context->dma[i]);
    free(context);
}

int bw_mock_drm_ctx(struct bw_mock_drm_client *client, void *data)
{
    union mock_drm_ctx *args = data;
    struct bw_mock *machine = client->process->machine;
    uint32_t operation = args->in.operation, id = args->in.id;
    struct bw_mock_drm_context *gone = NULL;
    int rc = 0;
    pthread_mutex_lock(&machine->drm->lock);
    struct bw_mock_drm_context *context = context_find(client, id);
    if (operation == MOCK_DRM_CTX_ALLOC)
        rc = context_alloc(client, args);
    else if (operation < MOCK_DRM_CTX_ALLOC || operation > MOCK_DRM_CTX_QUERY_STATE2)
        rc = bw_mock_refuse(machine, -EINVAL, "CTX: operation %u is not modelled", operation);
    else if (!context)
        rc = bw_mock_refuse(machine, -EINVAL, "CTX: no context %u", id);
    else if (operation == MOCK_DRM_CTX_FREE)
        gone = context;
    else
        context_state(context, operation == MOCK_DRM_CTX_QUERY_STATE2, args);
    if (gone)
        client->contexts.data[id - 1] = NULL;
    pthread_mutex_unlock(&machine->drm->lock);
    if (gone)
        bw_mock_drm_context_free(client, gone);
    return rc;
}

/* --- submission -------------------------------------------------------------------------------------- */

/* What a submission asks for, while it is read. */
struct submission {
    struct bw_mock_drm_client *client;
    const struct mock_drm_cs *args;
    struct mock_drm_ib target; /* ip_type, ip_instance and ring of the first IB */
    struct bw_mock_drm_ib ibs[BW_MOCK_DRM_IBS_MAX];
    uint32_t ib_count;
    uint64_t *fence;
    struct bw_mock_drm_dependency dependencies[BW_MOCK_DRM_DEPENDENCIES_MAX];
    uint32_t dependency_count;
    struct bw_mock_drm_signal signals[BW_MOCK_DRM_SIGNALS_MAX];
    uint32_t signal_count;
};

static int take_ib(struct submission *submission, const struct mock_drm_ib *ib)
{
    struct bw_mock *machine = submission->client->process->machine;
    const struct mock_drm_ib *first = &submission->target;
    bool dma = ib->ip_type == MOCK_DRM_IP_DMA;
    int rc;
    if (!bw_mock_drm_entity(submission->client, submission->args->context, ib->ip_type, ib->ip_instance,
                            ib->ring, &rc))
        return rc;
    if (submission->ib_count && (ib->ip_type != first->ip_type || ib->ring != first->ring))
        return bw_mock_refuse(machine, -EINVAL, "CS: IBs for several rings (gangs) are not modelled");
    if (submission->ib_count == (dma ? DMA_IBS_MAX : BW_MOCK_DRM_IBS_MAX))
        return bw_mock_refuse(machine, -EINVAL, "CS: more than %u IBs", submission->ib_count);
    /* The kernel takes these as they are, and the engine then reads elsewhere or not at all. */
    if (!ib->bytes || ib->bytes % 4 || ib->va % (dma ? DMA_IB_ALIGNMENT : 4))
        return bw_mock_refuse(machine, -EINVAL, "CS: IB of 0x%x bytes at 0x%llx: size or alignment",
                              ib->bytes, (unsigned long long)ib->va);
    submission->target = *ib;
    submission->ibs[submission->ib_count++] = (struct bw_mock_drm_ib){ib->va, ib->bytes / 4};
    return 0;
}

static int take_fence(struct submission *submission, const struct mock_drm_user_fence *fence)
{
    struct bw_mock *machine = submission->client->process->machine;
    struct bw_mock_buffer *buffer = bw_mock_drm_buffer(submission->client, fence->handle);
    if (!buffer || submission->fence || !buffer->pool || buffer->size != BW_MOCK_PAGE ||
        fence->offset > BW_MOCK_PAGE - sizeof(uint64_t) || fence->offset % sizeof(uint64_t))
        return bw_mock_refuse(machine, -EINVAL, "CS: user fence in buffer %u at 0x%x", fence->handle,
                              fence->offset);
    submission->fence = (uint64_t *)(void *)(buffer->host + fence->offset);
    return 0;
}

static int add_dependency(struct submission *submission, struct bw_mock_drm_dependency dependency)
{
    if (submission->dependency_count == BW_MOCK_DRM_DEPENDENCIES_MAX)
        return bw_mock_refuse(submission->client->process->machine, -ENOMEM, "CS: more than %d dependencies",
                              BW_MOCK_DRM_DEPENDENCIES_MAX);
    submission->dependencies[submission->dependency_count++] = dependency;
    return 0;
}

/* amdgpu_ctx_get_fence: a number that was not given out yet is refused, one that is long over is none. */
static int take_dependency(struct submission *submission, const struct mock_drm_dependency *dependency)
{
    struct bw_mock *machine = submission->client->process->machine;
    int rc;
    struct bw_mock_drm_entity *entity =
        bw_mock_drm_entity(submission->client, dependency->context, dependency->ip_type,
                           dependency->ip_instance, dependency->ring, &rc);
    if (!entity)
        return rc;
    uint64_t sequence = dependency->sequence == UINT64_MAX ? entity->submitted : dependency->sequence;
    if (sequence > entity->submitted)
        return bw_mock_refuse(machine, -EINVAL, "CS: depends on submission %llu of %llu",
                              (unsigned long long)sequence, (unsigned long long)entity->submitted);
    if (sequence <= entity->completed)
        return 0;
    return add_dependency(submission, (struct bw_mock_drm_dependency){entity, NULL, sequence});
}

/* drm_syncobj_find_fence: a point that nobody was given to signal is refused. */
static int take_wait(struct submission *submission, const struct mock_drm_syncobj_point *wait)
{
    struct bw_mock *machine = submission->client->process->machine;
    struct bw_mock_drm_syncobj *syncobj = bw_mock_drm_syncobj_find(submission->client, wait->handle);
    if (!syncobj)
        return bw_mock_refuse(machine, -ENOENT, "CS: waits for syncobj %u, which is none", wait->handle);
    if (wait->flags || !wait->point)
        return bw_mock_refuse(machine, -EINVAL,
                              "CS: wait for syncobj %u, flags 0x%x, point %llu: not modelled", wait->handle,
                              wait->flags, (unsigned long long)wait->point);
    if (wait->point > bw_mock_drm_syncobj_given(syncobj))
        return bw_mock_refuse(machine, -EINVAL, "CS: waits for point %llu of syncobj %u, %llu are submitted",
                              (unsigned long long)wait->point, wait->handle,
                              (unsigned long long)bw_mock_drm_syncobj_given(syncobj));
    return bw_mock_drm_syncobj_reached(syncobj, wait->point)
               ? 0
               : add_dependency(submission, (struct bw_mock_drm_dependency){NULL, syncobj, wait->point});
}

static int take_signal(struct submission *submission, const struct mock_drm_syncobj_point *signal)
{
    struct bw_mock *machine = submission->client->process->machine;
    struct bw_mock_drm_syncobj *syncobj = bw_mock_drm_syncobj_find(submission->client, signal->handle);
    if (!syncobj)
        return bw_mock_refuse(machine, -EINVAL, "CS: signals syncobj %u, which is none", signal->handle);
    /* The kernel takes points out of order, and complains in its log (drm_syncobj_add_point). */
    if (signal->flags || signal->point <= bw_mock_drm_syncobj_given(syncobj) ||
        submission->signal_count == BW_MOCK_DRM_SIGNALS_MAX)
        return bw_mock_refuse(machine, -EINVAL, "CS: signals point %llu of syncobj %u after %llu, flags 0x%x",
                              (unsigned long long)signal->point, signal->handle,
                              (unsigned long long)bw_mock_drm_syncobj_given(syncobj), signal->flags);
    submission->signals[submission->signal_count++] = (struct bw_mock_drm_signal){syncobj, signal->point};
    return 0;
}

static int take_item(struct submission *submission, uint32_t chunk_id, const void *item)
{
    return chunk_id == MOCK_DRM_CHUNK_DEPENDENCIES    ? take_dependency(submission, item)
           : chunk_id == MOCK_DRM_CHUNK_TIMELINE_WAIT ? take_wait(submission, item)
                                                      : take_signal(submission, item);
}

/* A chunk is an array of as many items as are whole in it. */
static int take_items(struct submission *submission, const struct mock_drm_chunk *chunk, uint32_t item_bytes)
{
    union {
        struct mock_drm_dependency dependency;
        struct mock_drm_syncobj_point point;
    } item;
    int rc = 0;
    for (uint64_t at = 0; !rc && at + item_bytes <= chunk->length_words * 4ull; at += item_bytes) {
        rc = bw_mock_user_copy(&item, chunk->data + at, item_bytes)
                 ? take_item(submission, chunk->id, &item)
                 : bw_mock_refuse(submission->client->process->machine, -EFAULT,
                                  "CS: data of a chunk at 0x%llx", (unsigned long long)chunk->data);
    }
    return rc;
}

static int take_chunk(struct submission *submission, uint64_t address)
{
    struct bw_mock *machine = submission->client->process->machine;
    struct mock_drm_chunk chunk;
    union {
        struct mock_drm_ib ib;
        struct mock_drm_user_fence fence;
        struct mock_drm_list list;
    } data;
    if (!bw_mock_user_copy(&chunk, address, sizeof chunk))
        return bw_mock_refuse(machine, -EFAULT, "CS: chunk at 0x%llx", (unsigned long long)address);
    if (chunk.id == MOCK_DRM_CHUNK_DEPENDENCIES)
        return take_items(submission, &chunk, sizeof(struct mock_drm_dependency));
    if (chunk.id == MOCK_DRM_CHUNK_TIMELINE_WAIT || chunk.id == MOCK_DRM_CHUNK_TIMELINE_SIGNAL)
        return take_items(submission, &chunk, sizeof(struct mock_drm_syncobj_point));
    uint64_t wanted = chunk.id == MOCK_DRM_CHUNK_IB           ? sizeof data.ib
                      : chunk.id == MOCK_DRM_CHUNK_FENCE      ? sizeof data.fence
                      : chunk.id == MOCK_DRM_CHUNK_BO_HANDLES ? sizeof data.list
                                                              : 0;
    if (!wanted)
        return bw_mock_refuse(machine, -EINVAL, "CS: chunk of type %u is %s", chunk.id,
                              chunk.id && chunk.id <= MOCK_DRM_CHUNK_LAST ? "not modelled" : "unknown");
    if (chunk.length_words * 4ull < wanted)
        return bw_mock_refuse(machine, -EINVAL, "CS: chunk of type %u with %u words", chunk.id,
                              chunk.length_words);
    if (!bw_mock_user_copy(&data, chunk.data, wanted))
        return bw_mock_refuse(machine, -EFAULT, "CS: data of a chunk at 0x%llx",
                              (unsigned long long)chunk.data);
    if (chunk.id == MOCK_DRM_CHUNK_IB)
        return take_ib(submission, &data.ib);
    return chunk.id == MOCK_DRM_CHUNK_FENCE ? take_fence(submission, &data.fence)
                                            : bw_mock_drm_list_check(submission->client, &data.list);
}

/* machine.lock and drm->lock are held. */
static int read_submission(struct submission *submission)
{
    const struct mock_drm_cs *args = submission->args;
    struct bw_mock *machine = submission->client->process->machine;
    struct bw_mock_drm_context *context = context_find(submission->client, args->context);
    int rc = 0;
    if (!args->chunk_count || args->chunk_count > CHUNKS_MAX || !context)
        return bw_mock_refuse(machine, -EINVAL, "CS: %u chunks, context %u", args->chunk_count,
                              args->context);
    if (context->guilty)
        return bw_mock_refuse(machine, -ECANCELED, "CS: context %u made the GPU hang", args->context);
    if (args->list &&
        (args->list > submission->client->lists.count || !submission->client->lists.data[args->list - 1]))
        return bw_mock_refuse(machine, -ENOENT, "CS: no list %u", args->list);
    for (uint32_t i = 0; i < args->chunk_count && !rc; i++) {
        uint64_t address;
        rc = bw_mock_user_copy(&address, args->chunks + 8ull * i, sizeof address)
                 ? take_chunk(submission, address)
                 : bw_mock_refuse(machine, -EFAULT, "CS: array of chunks");
    }
    if (!rc && !submission->ib_count)
        rc = bw_mock_refuse(machine, -EINVAL, "CS: no IB");
    return rc;
}

static uint32_t queue_id(const struct bw_mock_drm_entity *entity)
{
    return entity->context->id * 16 + entity->ip_type * 4 + entity->number;
}

/* The first job of this queue: a ring for it, and an engine. */
static int entity_start(struct bw_mock_drm_entity *entity)
{
    struct bw_mock_process *process = entity->client->process;
    bool dma = entity->ip_type == MOCK_DRM_IP_DMA;
    if (bw_vec_reserve(&process->queues, 1))
        return -ENOMEM;
    struct bw_mock_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    entity->ring = bw_mock_drm_ring_pick(process->machine, entity->client->gpu->gpu, dma);
    queue->machine = process->machine;
    queue->context = entity->client->gpu;
    queue->type = dma ? BW_MOCK_QUEUE_SDMA : BW_MOCK_QUEUE_PM4;
    queue->id = queue_id(entity);
    queue->sdma_engine = dma ? entity->ring->index : 0;
    queue->doorbell = &entity->wake;
    queue->feed = entity;
    queue->evictions = atomic_load(&entity->client->gpu->evictions);
    snprintf(queue->name, sizeof queue->name, "context %u %s %u", entity->context->id,
             dma ? "dma" : "compute", entity->number);
    entity->jobs = calloc(BW_MOCK_DRM_JOBS_MAX, sizeof *entity->jobs);
    int rc = entity->jobs ? bw_mock_queue_start(queue) : -ENOMEM;
    if (rc) {
        free(entity->jobs);
        entity->jobs = NULL;
        free(queue->packet);
        free(queue);
        return rc;
    }
    entity->queue = queue;
    process->queues.data[process->queues.count++] = queue;
    return 0;
}

static void syncobjs_hold(const struct bw_mock_drm_job *job)
{
    for (uint32_t i = 0; i < job->dependency_count; i++) {
        if (job->dependencies[i].syncobj)
            bw_mock_drm_syncobj_ref(job->dependencies[i].syncobj);
    }
    for (uint32_t i = 0; i < job->signal_count; i++)
        bw_mock_drm_syncobj_ref(job->signals[i].syncobj);
}

static int push(const struct submission *submission, struct bw_mock_drm_entity *entity, uint64_t *sequence)
{
    int rc = entity->queue ? 0 : entity_start(entity);
    for (uint32_t i = 0; i < submission->signal_count && !rc; i++)
        rc = bw_mock_drm_syncobj_give(submission->signals[i].syncobj, submission->signals[i].point);
    if (rc)
        return rc;
    *sequence = ++entity->submitted;
    struct bw_mock_drm_job *job = &entity->jobs[*sequence % BW_MOCK_DRM_JOBS_MAX];
    *job = (struct bw_mock_drm_job){.entity = entity,
                                    .sequence = *sequence,
                                    .fence = submission->fence,
                                    .dependency_count = submission->dependency_count,
                                    .signal_count = submission->signal_count,
                                    .ib_count = submission->ib_count};
    memcpy(job->dependencies, submission->dependencies,
           submission->dependency_count * sizeof *job->dependencies);
    memcpy(job->signals, submission->signals, submission->signal_count * sizeof *job->signals);
    memcpy(job->ibs, submission->ibs, submission->ib_count * sizeof *job->ibs);
    syncobjs_hold(job);
    bw_mock_drm_job_push(entity->client->process->machine->drm, job);
    return 0;
}

int bw_mock_drm_cs(struct bw_mock_drm_client *client, void *data)
{
    struct mock_drm_cs *args = data;
    struct bw_mock *machine = client->process->machine;
    uint64_t sequence = 0;
    for (bool full = true; full;) {
        struct submission submission = {.client = client, .args = args};
        pthread_mutex_lock(&machine->lock);
        pthread_mutex_lock(&machine->drm->lock);
        int rc = read_submission(&submission);
        struct bw_mock_drm_entity *entity =
            rc ? NULL
               : bw_mock_drm_entity(client, args->context, submission.target.ip_type, 0,
                                    submission.target.ring, &rc);
        full = entity && entity->submitted - entity->completed >= BW_MOCK_DRM_JOBS_MAX;
        if (entity && !full)
            rc = push(&submission, entity, &sequence);
        pthread_mutex_unlock(&machine->lock);
        if (full)
            bw_mock_drm_wait_turn(machine, UINT64_MAX);
        pthread_mutex_unlock(&machine->drm->lock);
        if (rc)
            return rc;
    }
    memcpy(data, &sequence, sizeof sequence);
    return 0;
}

int bw_mock_drm_queue_look(struct bw_mock_drm_client *client, uint32_t id, struct bw_queue_view *view)
{
    for (size_t i = 0; i < client->process->queues.count; i++) {
        struct bw_mock_queue *queue = client->process->queues.data[i];
        if (queue->id == id) {
            bw_mock_queue_look(queue, view);
            return 0;
        }
    }
    return -ENOENT;
}
