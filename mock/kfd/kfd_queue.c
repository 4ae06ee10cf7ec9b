/* Queue ioctls (kfd_chardev.c, kfd_process_queue_manager.c and kfd_queue.c of the kernel). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/thread.h"
#include "mock/engine/queue.h"
#include "mock/kfd/kfd.h"

enum {
    QUEUES_MAX = 1024, /* KFD_MAX_NUM_OF_QUEUES_PER_PROCESS */
    RING_BYTES_MIN = 1024,
    EOP_BYTES = 4096,
    SDMA_DOORBELL_FIRST =
        0x100, /* compute queues get the doorbells below (kfd_doorbell.c keeps a range for SDMA) */
    COMPUTE_DOORBELLS = 0xf0,
    PERCENTAGE_MASK = 0xff, /* the bits above choose an XCC */
};

static int check_common(struct bw_mock *machine, const struct mock_kfd_create_queue_args *args)
{
    if ((args->queue_percentage & PERCENTAGE_MASK) > MOCK_KFD_QUEUE_PERCENTAGE_MAX)
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: percentage %u",
                              args->queue_percentage & PERCENTAGE_MASK);
    if (args->queue_priority > MOCK_KFD_QUEUE_PRIORITY_MAX)
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: priority %u", args->queue_priority);
    if (!args->ring_base_address || args->ring_base_address % 256)
        return bw_mock_refuse(machine, args->ring_base_address ? -EINVAL : -EFAULT,
                              "CREATE_QUEUE: ring at 0x%llx", (unsigned long long)args->ring_base_address);
    if (!bw_is_pow2(args->ring_size) || args->ring_size < RING_BYTES_MIN)
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: ring size 0x%x is no power of two from %d up",
                              args->ring_size, RING_BYTES_MIN);
    if (!args->read_pointer_address || !args->write_pointer_address || args->read_pointer_address % 8 ||
        args->write_pointer_address % 8)
        return bw_mock_refuse(machine, -EFAULT, "CREATE_QUEUE: pointers at 0x%llx and 0x%llx",
                              (unsigned long long)args->read_pointer_address,
                              (unsigned long long)args->write_pointer_address);
    if (args->queue_type > MOCK_KFD_QUEUE_SDMA_XGMI)
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: type %u", args->queue_type);
    return 0;
}

/* kfd_queue_buffer_get: the address must start a mapping of exactly that size (size 0: of any). */
static int check_buffer(struct bw_mock_context *context, const char *what, uint64_t va, uint64_t size)
{
    struct bw_mock_mapping mapping;
    struct bw_mock *machine = context->process->machine;
    uint64_t page = bw_align_down(va, BW_MOCK_PAGE);
    if (!bw_mock_space_find(&context->space, va, &mapping))
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: %s at 0x%llx is not mapped on this GPU", what,
                              (unsigned long long)va);
    if (mapping.va != page || (size >= BW_MOCK_PAGE && mapping.size != size))
        return bw_mock_refuse(
            machine, -EINVAL,
            "CREATE_QUEUE: %s at 0x%llx must be one whole buffer of 0x%llx bytes, but lies in "
            "[0x%llx, 0x%llx)",
            what, (unsigned long long)va, (unsigned long long)size, (unsigned long long)mapping.va,
            (unsigned long long)(mapping.va + mapping.size));
    return 0;
}

static int check_compute(struct bw_mock_context *context, const struct mock_kfd_create_queue_args *args)
{
    struct bw_mock *machine = context->process->machine;
    struct bw_mock_save_sizes save = context->gpu->save;
    uint32_t xccs = context->gpu->chip->xcc_count;
    if (args->eop_buffer_address) {
        if (args->eop_buffer_size != EOP_BYTES)
            return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: EOP buffer of 0x%llx bytes, not 0x%x",
                                  (unsigned long long)args->eop_buffer_size, EOP_BYTES);
        int rc = check_buffer(context, "EOP buffer", args->eop_buffer_address, EOP_BYTES);
        if (rc)
            return rc;
    }
    if (args->ctl_stack_size != save.ctl_stack_bytes)
        return bw_mock_refuse(machine, -EINVAL,
                              "CREATE_QUEUE: control stack of 0x%x bytes, this GPU needs 0x%x",
                              args->ctl_stack_size, save.ctl_stack_bytes);
    if (args->ctx_save_restore_size < save.save_bytes)
        return bw_mock_refuse(machine, -EINVAL, "CREATE_QUEUE: save area of 0x%x bytes, this GPU needs 0x%x",
                              args->ctx_save_restore_size, save.save_bytes);
    uint64_t total =
        bw_align_up(((uint64_t)args->ctx_save_restore_size + save.debug_bytes) * xccs, BW_MOCK_PAGE);
    return check_buffer(context, "save area", args->ctx_save_restore_address, total);
}

/* Every mapping that the queue keeps busy. */
static void hold_buffers(struct bw_mock_queue *queue, int by)
{
    const uint64_t addresses[] = {queue->ring_va, queue->read_va, queue->write_va, queue->eop_va,
                                  queue->save_va};
    for (size_t i = 0; i < BW_COUNT_OF(addresses); i++) {
        if (addresses[i])
            bw_mock_space_hold(&queue->context->space, bw_align_down(addresses[i], BW_MOCK_PAGE), by);
    }
}

static bool doorbell_taken(struct bw_mock_context *context, uint32_t index)
{
    struct bw_mock_process *process = context->process;
    for (size_t i = 0; i < process->queues.count; i++) {
        struct bw_mock_queue *queue = process->queues.data[i];
        if (queue->context == context && queue->doorbell_index == index)
            return true;
    }
    return false;
}

static int take_doorbell(struct bw_mock_queue *queue)
{
    bool sdma = queue->type == BW_MOCK_QUEUE_SDMA;
    uint32_t first = sdma ? SDMA_DOORBELL_FIRST : 0, end = first + COMPUTE_DOORBELLS;
    for (uint32_t index = first; index < end; index++) {
        if (!doorbell_taken(queue->context, index)) {
            queue->doorbell_index = index;
            queue->doorbell = &queue->context->doorbells[index];
            return 0;
        }
    }
    return bw_mock_refuse(queue->machine, -EINVAL, "CREATE_QUEUE: no doorbell is free");
}

/* Engines are used in turn: the one with the fewest queues of all processes. */
static int take_engine(struct bw_mock_queue *queue, bool xgmi)
{
    struct bw_mock *machine = queue->machine;
    const struct bw_mock_chip *chip = queue->context->gpu->chip;
    uint32_t used[64] = {0};
    uint32_t first = xgmi ? chip->sdma_engines : 0;
    uint32_t end = xgmi ? chip->sdma_engines + chip->sdma_xgmi_engines : chip->sdma_engines;
    for (size_t p = 0; p < machine->processes.count; p++) {
        struct bw_mock_process *process = machine->processes.data[p];
        for (size_t i = 0; i < process->queues.count; i++) {
            struct bw_mock_queue *other = process->queues.data[i];
            if (other->type == BW_MOCK_QUEUE_SDMA && !other->feed &&
                other->context->gpu == queue->context->gpu)
                used[other->sdma_engine]++;
        }
    }
    uint32_t best = first;
    for (uint32_t i = first; i < end; i++)
        best = used[i] < used[best] ? i : best;
    if (first == end || used[best] >= chip->sdma_queues_per_engine)
        return bw_mock_refuse(machine, -ENOMEM,
                              "CREATE_QUEUE: no SDMA queue is free (%u engines of %u queues)", end - first,
                              chip->sdma_queues_per_engine);
    queue->sdma_engine = best;
    return 0;
}

static enum bw_mock_queue_type queue_type(uint32_t type)
{
    if (type == MOCK_KFD_QUEUE_COMPUTE)
        return BW_MOCK_QUEUE_PM4;
    return type == MOCK_KFD_QUEUE_COMPUTE_AQL ? BW_MOCK_QUEUE_AQL : BW_MOCK_QUEUE_SDMA;
}

static int start_queue(struct bw_mock_queue *queue, const struct mock_kfd_create_queue_args *args)
{
    struct bw_mock_process *process = queue->context->process;
    bool sdma = queue->type == BW_MOCK_QUEUE_SDMA;
    int rc = sdma ? take_engine(queue, args->queue_type == MOCK_KFD_QUEUE_SDMA_XGMI) : 0;
    if (!rc)
        rc = take_doorbell(queue);
    if (!rc && bw_vec_reserve(&process->queues, 1))
        rc = -ENOMEM;
    if (rc)
        return rc;
    if (sdma)
        snprintf(queue->name, sizeof queue->name, "sdma%u queue %u", queue->sdma_engine, queue->id);
    else
        snprintf(queue->name, sizeof queue->name, "mec queue %u", queue->id);
    hold_buffers(queue, 1);
    rc = bw_mock_queue_start(queue);
    if (rc)
        hold_buffers(queue, -1);
    if (rc ==
        -EAGAIN) /* which the KFD says only of a GPU that is being reset; of memory that it has not, ENOMEM */
        rc = bw_mock_refuse(process->machine, -ENOMEM, "CREATE_QUEUE: no thread for %s; " BW_THREAD_LIMITS,
                            queue->name);
    return rc;
}

int bw_mock_kfd_create_queue(struct bw_mock_process *process, struct mock_kfd_create_queue_args *args)
{
    int rc = check_common(process->machine, args);
    struct bw_mock_context *context =
        rc ? NULL : bw_mock_kfd_context(process, args->gpu_id, "CREATE_QUEUE", &rc);
    if (!context)
        return rc == -ENODEV ? -ESRCH : rc;
    rc = check_buffer(context, "write pointer", args->write_pointer_address, BW_MOCK_PAGE);
    if (!rc)
        rc = check_buffer(context, "read pointer", args->read_pointer_address, BW_MOCK_PAGE);
    if (!rc)
        rc = check_buffer(context, "ring", args->ring_base_address, args->ring_size);
    enum bw_mock_queue_type type = queue_type(args->queue_type);
    if (!rc && type != BW_MOCK_QUEUE_SDMA)
        rc = check_compute(context, args);
    if (!rc && process->queues.count >= QUEUES_MAX)
        rc = bw_mock_refuse(process->machine, -ENOSPC, "CREATE_QUEUE: %d queues exist", QUEUES_MAX);
    if (rc)
        return rc;
    struct bw_mock_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return -ENOMEM;
    queue->machine = process->machine;
    queue->context = context;
    queue->type = type;
    queue->id = process->queue_count;
    queue->ring_va = args->ring_base_address;
    queue->ring_bytes = args->ring_size;
    queue->read_va = args->read_pointer_address;
    queue->write_va = args->write_pointer_address;
    queue->percentage = args->queue_percentage;
    queue->priority = args->queue_priority;
    queue->evictions = atomic_load(&context->evictions);
    if (type != BW_MOCK_QUEUE_SDMA) {
        queue->eop_va = args->eop_buffer_address;
        queue->save_va = args->ctx_save_restore_address;
    }
    rc = start_queue(queue, args);
    if (rc) {
        free(queue->packet);
        free(queue);
        return rc;
    }
    process->queue_count++;
    process->queues.data[process->queues.count++] = queue;
    args->queue_id = queue->id;
    args->doorbell_offset = MOCK_KFD_MMAP_DOORBELL |
                            (uint64_t)context->gpu->gpu_id << MOCK_KFD_MMAP_GPU_SHIFT |
                            queue->doorbell_index * 8;
    return 0;
}

static struct bw_mock_queue *find_queue(struct bw_mock_process *process, uint32_t id)
{
    for (size_t i = 0; i < process->queues.count; i++) {
        struct bw_mock_queue *queue = process->queues.data[i];
        if (queue->id == id && !queue->destroying)
            return queue;
    }
    return NULL;
}

/* The queue stays listed, and so keeps its doorbell, until its engine has let go of it. */
static void remove_queue(struct bw_mock_queue *queue)
{
    struct bw_mock_process *process = queue->context->process;
    pthread_mutex_lock(&queue->machine->lock);
    for (size_t i = 0; i < process->queues.count; i++) {
        if (process->queues.data[i] == queue) {
            process->queues.data[i] = process->queues.data[--process->queues.count];
            break;
        }
    }
    hold_buffers(queue, -1);
    pthread_mutex_unlock(&queue->machine->lock);
}

int bw_mock_kfd_destroy_queue(struct bw_mock_process *process, uint32_t queue_id)
{
    struct bw_mock *machine = process->machine;
    pthread_mutex_lock(&machine->lock);
    struct bw_mock_queue *queue = find_queue(process, queue_id);
    if (queue)
        queue->destroying = true;
    pthread_mutex_unlock(&machine->lock);
    if (!queue)
        return bw_mock_refuse(machine, -EINVAL, "DESTROY_QUEUE: no queue %u", queue_id);
    bw_mock_queue_halt(queue);
    remove_queue(queue);
    bw_mock_queue_free(queue);
    return 0;
}

void bw_mock_kfd_destroy_all_queues(struct bw_mock_process *process)
{
    struct bw_mock *machine = process->machine;
    for (;;) {
        pthread_mutex_lock(&machine->lock);
        struct bw_mock_queue *queue = NULL;
        for (size_t i = 0; i < process->queues.count && !queue; i++)
            queue = process->queues.data[i]->destroying ? NULL : process->queues.data[i];
        uint32_t id = queue ? queue->id : 0;
        pthread_mutex_unlock(&machine->lock);
        if (!queue)
            return;
        bw_mock_kfd_destroy_queue(process, id);
    }
}

int bw_mock_kfd_update_queue(struct bw_mock_process *process, struct mock_kfd_update_queue_args *args)
{
    struct bw_mock *machine = process->machine;
    struct bw_mock_queue *queue = find_queue(process, args->queue_id);
    uint32_t percentage = args->queue_percentage & PERCENTAGE_MASK;
    if (percentage > MOCK_KFD_QUEUE_PERCENTAGE_MAX || args->queue_priority > MOCK_KFD_QUEUE_PRIORITY_MAX)
        return bw_mock_refuse(machine, -EINVAL, "UPDATE_QUEUE: percentage %u, priority %u", percentage,
                              args->queue_priority);
    if (!queue)
        return bw_mock_refuse(machine, -EFAULT, "UPDATE_QUEUE: no queue %u", args->queue_id);
    bool off = !args->ring_base_address || !args->ring_size || !percentage;
    if (!off && (args->ring_base_address != queue->ring_va || args->ring_size != queue->ring_bytes))
        return bw_mock_refuse(machine, -EINVAL, "UPDATE_QUEUE: queue %u has its ring at 0x%llx, not 0x%llx",
                              queue->id, (unsigned long long)queue->ring_va,
                              (unsigned long long)args->ring_base_address);
    queue->percentage = args->queue_percentage;
    queue->priority = args->queue_priority;
    atomic_store(&queue->inactive, off);
    bw_mock_doorbell_wake(queue->doorbell);
    return 0;
}

int bw_mock_kfd_queue_look(struct bw_mock_process *process, uint32_t queue_id, struct bw_queue_view *view)
{
    struct bw_mock_queue *queue = find_queue(process, queue_id);
    if (!queue)
        return -ENOENT;
    bw_mock_queue_look(queue, view);
    return 0;
}
