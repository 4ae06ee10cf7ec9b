/* Queues: memory, hardware queue and ring of each, and submission. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/device.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"

static const char subsystem[] = "amd";

static void zero_region(const struct bw_region *region)
{
    for (uint64_t at = 0; at < region->size_bytes; at += 8)
        bw_wr64(region, at, 0);
}

static bool kernel_feeds(const struct bw_amd_queue *queue)
{
    return bw_amd_device(queue->base.device)->iface->ops->queue_submit != NULL;
}

static int create_hardware(struct bw_amd_queue *queue, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    zero_region(&queue->pointer_memory.cpu);
    queue->command_count = 0;
    queue->submissions = 0;
    queue->dependency_count = 0;
    for (uint32_t i = 0; i < BW_AMD_RECENT_DEPENDENCES; i++)
        atomic_store(&queue->dependences[i].consumer, 0); /* submissions are counted anew */
    const struct bw_device_caps *caps = &device->base.caps;
    bool compute = queue->base.kind == BW_QUEUE_COMPUTE;
    uint32_t plain_copies = caps->copy_queues - caps->xgmi_copy_queues; /* the driver's own queue counts on */
    bool xgmi = queue->base.index >= plain_copies && queue->base.index < caps->copy_queues;
    struct bw_iface_queue_request request = {
        .kind = compute ? BW_IFACE_QUEUE_COMPUTE_PM4
                : xgmi  ? BW_IFACE_QUEUE_SDMA_XGMI
                        : BW_IFACE_QUEUE_SDMA,
        .ring = &queue->ring_memory,
        .read_pointer_va = queue->pointer_memory.gpu_va + BW_AMD_POINTER_READ,
        .write_pointer_va = queue->pointer_memory.gpu_va + BW_AMD_POINTER_WRITE,
        .priority = 7,
    };
    int rc = device->iface->ops->queue_create(device->iface, &request, &queue->hardware, err);
    if (rc)
        return rc;
    queue->live = true;
    if (kernel_feeds(queue))
        return 0;
    queue->ring = (struct bw_amd_ring){
        .words = queue->ring_memory.cpu,
        .size_words = (compute ? device->compute_ring_bytes : device->copy_ring_bytes) / 4,
        .pointers = queue->pointer_memory.cpu,
        .read_offset = BW_AMD_POINTER_READ,
        .write_offset = BW_AMD_POINTER_WRITE,
        .doorbell = queue->hardware.doorbell,
        .pointer_scale = compute ? 1 : 4, /* CP_HQD_PQ_WPTR counts dwords, SDMA_QUEUE_RB_WPTR bytes */
    };
    bw_amd_ring_start(&queue->ring);
    return 0;
}

int bw_amd_queue_open(struct bw_amd_device *device, enum bw_queue_kind kind, uint32_t index,
                      struct bw_amd_queue **opened, struct bw_err *err)
{
    struct bw_amd_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return bw_fail(err, -ENOMEM, subsystem, "queue");
    queue->base = (struct bw_queue){&device->base, kind, index};
    queue->code_generation = atomic_load(&device->code_generation) - 1; /* the first submission invalidates */
    pthread_mutex_init(&queue->scratch_lock, NULL);
    uint32_t ring_bytes = kind == BW_QUEUE_COMPUTE ? device->compute_ring_bytes : device->copy_ring_bytes;
    assert(bw_is_pow2(ring_bytes) && ring_bytes >= BW_AMD_RING_BYTES_MIN);
    uint32_t flags = BW_IFACE_HOST | BW_IFACE_UNCACHED | BW_IFACE_EXECUTABLE;
    const struct bw_iface_ops *ops = device->iface->ops;
    int rc =
        kernel_feeds(queue) ? 0 : ops->alloc(device->iface, ring_bytes, flags, 0, &queue->ring_memory, err);
    rc = rc ? rc : ops->alloc(device->iface, BW_AMD_RING_BYTES_MIN, flags, 0, &queue->pointer_memory, err);
    rc = rc ? rc : create_hardware(queue, err);
    if (rc) {
        bw_amd_queue_close(queue);
        return rc;
    }
    *opened = queue;
    return 0;
}

void bw_amd_queue_close(struct bw_amd_queue *queue)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    const struct bw_iface_ops *ops = device->iface->ops;
    if (queue->live)
        ops->queue_destroy(device->iface, &queue->hardware, NULL);
    bw_amd_scratch_free(queue);
    if (queue->ring_memory.size_bytes)
        ops->free(device->iface, &queue->ring_memory, NULL);
    if (queue->pointer_memory.size_bytes)
        ops->free(device->iface, &queue->pointer_memory, NULL);
    pthread_mutex_destroy(&queue->scratch_lock);
    free(queue);
}

int bw_amd_queue_rebuild(struct bw_amd_queue *queue, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    if (queue->live) {
        /* A queue that hangs may refuse to be preempted; the interface resets it then, and it is gone either
         * way. */
        queue->live = false;
        int rc = device->iface->ops->queue_destroy(device->iface, &queue->hardware, err);
        if (rc)
            return rc;
    }
    queue->code_generation = atomic_load(&device->code_generation) - 1;
    atomic_store(&queue->submit_count, 0);
    return create_hardware(queue, err);
}

int bw_amd_queue_create(struct bw_device *base, enum bw_queue_kind kind, uint32_t index,
                        struct bw_queue **queue, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    uint32_t limit = kind == BW_QUEUE_COMPUTE ? base->caps.compute_queues : base->caps.copy_queues;
    if (index >= limit)
        return bw_fail(err, -EINVAL, subsystem, "%s queue %u of %u",
                       kind == BW_QUEUE_COMPUTE ? "compute" : "copy", index, limit);
    struct bw_amd_queue *opened;
    int rc = bw_amd_queue_open(device, kind, index, &opened, err);
    if (rc)
        return rc;
    pthread_mutex_lock(&device->lock);
    opened->next = device->queues;
    device->queues = opened;
    pthread_mutex_unlock(&device->lock);
    *queue = &opened->base;
    return 0;
}

void bw_amd_queue_destroy(struct bw_queue *base)
{
    struct bw_amd_queue *queue = bw_amd_queue(base);
    struct bw_amd_device *device = bw_amd_device(base->device);
    pthread_mutex_lock(&device->lock);
    struct bw_amd_queue **link = &device->queues;
    while (*link && *link != queue)
        link = &(*link)->next;
    if (*link)
        *link = queue->next;
    pthread_mutex_unlock(&device->lock);
    bw_amd_queue_close(queue);
}

/* ACQUIRE_MEM of instruction caches as ring words, put before the first command buffer after a program was
 * uploaded: its code may lie where other code was. */
static uint32_t code_invalidate(const struct bw_amd_device *device,
                                uint32_t words[BW_AMD_PM4_WORDS_ACQUIRE_MEM])
{
    struct bw_amd_emit emit;
    bw_amd_pm4_acquire_mem_emit(&emit, device->pm4, BW_AMD_CACHE_INVALIDATE | BW_AMD_CACHE_CODE);
    assert(emit.word_count <= BW_AMD_PM4_WORDS_ACQUIRE_MEM);
    memcpy(words, emit.words, emit.word_count * sizeof *words);
    return emit.word_count;
}

static int submit_compute(struct bw_amd_queue *queue, uint64_t address, uint32_t word_count)
{
    struct bw_amd_device *device = bw_amd_device(queue->base.device);
    uint32_t words[BW_AMD_PM4_WORDS_ACQUIRE_MEM + BW_AMD_PM4_IB_PACKET_WORDS], count = 0;
    uint32_t generation = atomic_load_explicit(&device->code_generation, memory_order_acquire);
    if (queue->code_generation != generation)
        count = code_invalidate(device, words);
    bw_amd_pm4_indirect_buffer(words + count, address, word_count);
    count += BW_AMD_PM4_IB_PACKET_WORDS;
    if (bw_amd_ring_space(&queue->ring) < count)
        return -EAGAIN;
    bw_amd_ring_write(&queue->ring, words, count);
    queue->code_generation = generation;
    return 0;
}

static int submit_copy(struct bw_amd_queue *queue, uint64_t address, uint32_t word_count)
{
    enum { BLOCK = BW_AMD_SDMA_IB_ALIGNMENT_WORDS };
    uint32_t words[2 * BLOCK], count = 0;
    /* INDIRECT ends at a multiple of 8 words, and 8 divides the ring, so that no packet is cut by the ring's
     * end; NOPs fill up to the block first (only a ring that was started elsewhere needs them) and then
     * inside it. */
    uint32_t to_block = (BLOCK - bw_amd_ring_position(&queue->ring) % BLOCK) % BLOCK;
    if (to_block)
        bw_amd_sdma_nop_words(words, to_block);
    count = to_block;
    bw_amd_sdma_nop_words(words + count, BW_AMD_SDMA_IB_RING_OFFSET_WORDS);
    count += BW_AMD_SDMA_IB_RING_OFFSET_WORDS;
    bw_amd_sdma_indirect(words + count, address, word_count);
    count += BW_AMD_SDMA_IB_PACKET_WORDS;
    if (bw_amd_ring_space(&queue->ring) < count)
        return -EAGAIN;
    bw_amd_ring_write(&queue->ring, words, count);
    return 0;
}

/* What the submission about to be made depends on, for whoever looks at the queue. */
static void dependences_note(struct bw_amd_queue *queue)
{
    for (uint32_t i = 0; i < queue->dependency_count; i++) {
        struct bw_amd_dependence *noted =
            &queue->dependences[queue->dependence_count++ % BW_AMD_RECENT_DEPENDENCES];
        atomic_store_explicit(&noted->consumer, 0, memory_order_relaxed); /* of nobody, until all is there */
        atomic_store_explicit(&noted->producer, queue->dependencies[i].queue, memory_order_release);
        atomic_store_explicit(&noted->submission, queue->dependencies[i].submission, memory_order_relaxed);
        atomic_store_explicit(&noted->consumer, queue->submissions + 1, memory_order_release);
    }
}

static int hand_over(struct bw_amd_queue *queue)
{
    struct bw_iface *iface = bw_amd_device(queue->base.device)->iface;
    uint32_t count = queue->command_count;
    if (!count)
        return 0;
    dependences_note(queue);
    int rc = iface->ops->queue_submit(iface, &queue->hardware, queue->commands, count, queue->dependencies,
                                      queue->dependency_count, NULL);
    queue->command_count = queue->dependency_count = 0;
    queue->submissions += !rc;
    return rc;
}

int bw_amd_queue_follow(struct bw_queue *base, struct bw_device *device, struct bw_err *err)
{
    struct bw_iface *iface = bw_amd_device(device)->iface;
    return iface->ops->queue_follow(iface, &bw_amd_queue(base)->hardware, err);
}

int bw_amd_queue_after(struct bw_queue *base, struct bw_queue *base_producer)
{
    struct bw_iface *iface = bw_amd_device(base->device)->iface;
    struct bw_amd_queue *queue = bw_amd_queue(base), *producer = bw_amd_queue(base_producer);
    struct bw_iface_dependency dependency = {&producer->hardware, producer->submissions};
    uint32_t at = 0;
    assert(!queue->command_count && !producer->command_count);
    if (!dependency.submission)
        return 0;
    if (base->device != base_producer->device &&
        !iface->ops->queue_follows(iface, dependency.queue, dependency.submission))
        return -EAGAIN;
    while (at < queue->dependency_count && queue->dependencies[at].queue != dependency.queue)
        at++;
    if (at == BW_IFACE_DEPENDENCIES_MAX)
        return -E2BIG;
    queue->dependencies[at] = dependency;
    if (at == queue->dependency_count)
        queue->dependency_count++;
    return 0;
}

bool bw_amd_queue_depends(const struct bw_amd_queue *queue)
{
    uint64_t next = kernel_feeds(queue) && queue->live ? bw_amd_load64(&queue->hardware.done, 0) + 1 : 0;
    for (uint32_t i = 0; i < BW_AMD_RECENT_DEPENDENCES && next; i++) {
        const struct bw_amd_dependence *noted = &queue->dependences[i];
        if (atomic_load_explicit(&noted->consumer, memory_order_acquire) != next)
            continue;
        const struct bw_iface_queue *producer = atomic_load_explicit(&noted->producer, memory_order_acquire);
        if (producer->done.size_bytes && bw_amd_load64(&producer->done, 0) <
                                             atomic_load_explicit(&noted->submission, memory_order_relaxed))
            return true;
    }
    return false;
}

/* Whether the kernel would take one more submission at once. */
static bool has_room(const struct bw_amd_queue *queue)
{
    return queue->submissions - bw_amd_load64(&queue->hardware.done, 0) < BW_IFACE_SUBMISSIONS_MAX;
}

/* For the next flush, which has room if the first of its batch had; a full batch goes at once. */
static int submit_kept(struct bw_amd_queue *queue, uint64_t address, uint32_t word_count)
{
    bool compute = queue->base.kind == BW_QUEUE_COMPUTE;
    uint32_t generation = atomic_load(&bw_amd_device(queue->base.device)->code_generation);
    int rc = queue->command_count == BW_IFACE_COMMANDS_MAX ? hand_over(queue) : 0;
    if (rc)
        return rc;
    if (!queue->command_count && !has_room(queue))
        return -EAGAIN;
    queue->commands[queue->command_count++] =
        (struct bw_iface_commands){.va = address,
                                   .word_count = word_count,
                                   .invalidate_code = compute && queue->code_generation != generation};
    queue->code_generation = generation;
    return 0;
}

int bw_amd_queue_submit(struct bw_queue *base, uint64_t address, uint32_t word_count)
{
    struct bw_amd_queue *queue = bw_amd_queue(base);
    bool compute = base->kind == BW_QUEUE_COMPUTE;
    uint32_t alignment = base->device->caps.command_alignment_words;
    if (word_count == 0)
        return 0;
    if (bw_amd_device(base->device)->unfed)
        return -ENODEV;
    if (address % (alignment * 4) || word_count % alignment)
        return -EINVAL;
    if (word_count > base->device->caps.command_words_max)
        return -E2BIG;
    int rc = kernel_feeds(queue) ? submit_kept(queue, address, word_count)
             : compute           ? submit_compute(queue, address, word_count)
                                 : submit_copy(queue, address, word_count);
    if (rc)
        return rc;
    uint64_t count = atomic_load_explicit(&queue->submit_count, memory_order_relaxed);
    struct bw_amd_submit *recent = &queue->recent[count % BW_AMD_RECENT_SUBMITS];
    atomic_store_explicit(&recent->address, address, memory_order_relaxed);
    atomic_store_explicit(&recent->word_count, word_count, memory_order_relaxed);
    atomic_store_explicit(&queue->submit_count, count + 1, memory_order_release);
    return 0;
}

int bw_amd_queue_flush(struct bw_queue *base)
{
    struct bw_amd_queue *queue = bw_amd_queue(base);
    if (kernel_feeds(queue))
        return hand_over(queue);
    bw_amd_ring_announce(&queue->ring);
    return 0;
}

uint64_t bw_amd_queue_progress(struct bw_queue *base)
{
    struct bw_amd_queue *queue = bw_amd_queue(base);
    struct bw_iface *iface = bw_amd_device(base->device)->iface;
    struct bw_queue_view view;
    /* None is to hide the others: rings are smaller than 4 GiB, and nobody counts that far. */
    uint64_t told = bw_rd32(&queue->pointer_memory.cpu, BW_AMD_POINTER_PROGRESS);
    uint64_t read = kernel_feeds(queue) ? bw_amd_load64(&queue->hardware.done, 0)
                                        : bw_amd_ring_read_pointer(&queue->ring);
    uint64_t progress = read + (told << 40);
    if (iface->ops->queue_look && !iface->ops->queue_look(iface, &queue->hardware, &view))
        progress += view.progress << 32;
    return progress;
}
