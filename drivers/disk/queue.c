/* The thread of a disk's queue: see disk.h. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "drivers/disk/disk.h"
#include "drivers/host/packet.h"
#include "drivers/host/spin.h"

enum {
    LOOK_NS = 50000,        /* with reads under way: how late a new packet or a written word is seen */
    WAIT_YIELDS = 50,       /* after spinning, before sleeping: another queue may need this CPU */
    WAIT_SLEEP_NS = 100000, /* how late a written word is seen by a queue that has waited for it long */
    CLOSE_STEP_NS = 20000,
    RESET_STEP_NS = 100000,
};

static bool flag(const bool *word)
{
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void flag_set(bool *word, bool value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

static void progress_add(struct bw_disk_queue *queue)
{
    __atomic_fetch_add(&queue->progress, 1, __ATOMIC_RELAXED);
}

/* ---- beginning ---- */

static struct bw_disk_pending *pending_add(struct bw_disk_queue *queue, uint32_t opcode)
{
    struct bw_disk_pending *pending = &queue->pending[queue->begun++ % BW_DISK_PENDING_MAX];
    *pending = (struct bw_disk_pending){.opcode = opcode};
    return pending;
}

/* The oldest copy that is not done, for whoever asks what the queue is at. */
static void copy_show(struct bw_disk_queue *queue)
{
    uint64_t at = queue->retired;
    while (at != queue->begun && queue->pending[at % BW_DISK_PENDING_MAX].opcode != BW_HOST_OP_COPY)
        at++;
    const struct bw_disk_pending *copy = &queue->pending[at % BW_DISK_PENDING_MAX];
    __atomic_store_n(&queue->copy_offset, at != queue->begun ? copy->address : 0, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->copy_bytes, at != queue->begun ? copy->value : 0, __ATOMIC_RELAXED);
}

static void copy_refuse(struct bw_disk_queue *queue, int code, const char *what, uint64_t offset)
{
    struct bw_err failure;
    bw_fail(&failure, code, "disk", "%s: %s at offset %" PRIu64, bw_disk_path(queue->device->disk), what,
            offset);
    bw_disk_device_break(queue->device, &failure);
}

/* Between two places in memory: whatever was begun may be about to write there. */
static bool memory_copy(struct bw_disk_queue *queue, uint64_t target, uint64_t source, uint64_t size_bytes)
{
    if (queue->begun != queue->retired)
        return false;
    memcpy((void *)(uintptr_t)target, (const void *)(uintptr_t)source, size_bytes);
    return true;
}

static bool copy_begin(struct bw_disk_queue *queue, const uint32_t *packet)
{
    struct bw_disk *disk = queue->device->disk;
    uint64_t target = bw_host_field64(packet + 1), source = bw_host_field64(packet + 3),
             size_bytes = bw_host_field64(packet + 5), offset = source - BW_DISK_FILE_ADDRESS;
    uint32_t request;
    if (target >= BW_DISK_FILE_ADDRESS) {
        copy_refuse(queue, -EROFS, "a copy into the file", target - BW_DISK_FILE_ADDRESS);
        return false;
    }
    if (source < BW_DISK_FILE_ADDRESS)
        return memory_copy(queue, target, source, size_bytes);
    if (offset > bw_disk_size(disk) || size_bytes > bw_disk_size(disk) - offset || size_bytes == 0) {
        copy_refuse(queue, -ERANGE, "a copy from outside the file", offset);
        return false;
    }
    if (bw_disk_start(disk, offset, (void *)(uintptr_t)target, size_bytes, &request))
        return false; /* as many as there may be are under way */
    struct bw_disk_pending *pending = pending_add(queue, BW_HOST_OP_COPY);
    pending->request = request;
    pending->address = offset;
    pending->value = size_bytes;
    copy_show(queue);
    return true;
}

/* Acquire: what was written before the word is visible to the packets after the wait. */
static bool wait_over(struct bw_disk_queue *queue, const uint32_t *packet)
{
    const uint64_t *word = (const uint64_t *)(uintptr_t)bw_host_field64(packet + 1);
    bool over = (int64_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - bw_host_field64(packet + 3)) >= 0;
    __atomic_store_n(&queue->waits, !over, __ATOMIC_RELAXED);
    return over;
}

/* False: not yet. */
static bool packet_begin(struct bw_disk_queue *queue, const uint32_t *packet)
{
    struct bw_disk_pending *pending;
    switch (bw_host_header_opcode(packet[0])) {
    case BW_HOST_OP_WAIT:
        return wait_over(queue, packet);
    case BW_HOST_OP_COPY:
        return copy_begin(queue, packet);
    case BW_HOST_OP_BARRIER:
        return !(packet[1] & BW_BARRIER_EXECUTION) || queue->begun == queue->retired;
    case BW_HOST_OP_SIGNAL:
        pending = pending_add(queue, BW_HOST_OP_SIGNAL);
        pending->address = bw_host_field64(packet + 1);
        pending->value = bw_host_field64(packet + 3);
        pending->interrupt = packet[5] & BW_HOST_SIGNAL_INTERRUPT;
        return true;
    case BW_HOST_OP_TIMESTAMP:
        pending = pending_add(queue, BW_HOST_OP_TIMESTAMP);
        pending->address = bw_host_field64(packet + 1);
        return true;
    default: /* NOP */
        return true;
    }
}

static bool entry_check(struct bw_disk_queue *queue, const struct bw_disk_entry *entry)
{
    struct bw_err failure;
    bool kernel = false;
    int rc = bw_host_packets_check(entry->words, entry->word_count);
    for (uint32_t at = 0; !rc && at < entry->word_count; at += bw_host_header_words(entry->words[at]))
        kernel |= bw_host_header_opcode(entry->words[at]) == BW_HOST_OP_KERNEL;
    if (!rc && !kernel)
        return true;
    bw_fail(&failure, -EIO, "disk", "a command buffer that is not made of a disk's packets");
    bw_disk_device_break(queue->device, &failure);
    return false;
}

/* Begins what can be begun; true when something was. */
static bool queue_begin(struct bw_disk_queue *queue)
{
    bool any = false;
    while (queue->get != __atomic_load_n(&queue->put, __ATOMIC_ACQUIRE)) {
        const struct bw_disk_entry *entry = &queue->ring[queue->get % BW_DISK_RING_ENTRIES];
        if (queue->at == 0 && !entry_check(queue, entry))
            return any;
        while (queue->at < entry->word_count) {
            /* After a last signal the words are somebody else's. */
            uint32_t next = queue->at + bw_host_header_words(entry->words[queue->at]);
            if (queue->begun - queue->retired == BW_DISK_PENDING_MAX ||
                !packet_begin(queue, &entry->words[queue->at]))
                return any;
            queue->at = next;
            progress_add(queue);
            any = true;
        }
        queue->at = 0;
        __atomic_store_n(&queue->get, queue->get + 1, __ATOMIC_RELEASE);
    }
    return any;
}

/* ---- retiring ---- */

static bool copy_retire(struct bw_disk_queue *queue, const struct bw_disk_pending *pending)
{
    struct bw_err failure;
    int rc;
    if (!bw_disk_finished(queue->device->disk, pending->request, &rc, &failure))
        return false;
    if (rc)
        bw_disk_device_break(queue->device, &failure);
    return true;
}

/* False: not yet. */
static bool pending_retire(struct bw_disk_queue *queue, const struct bw_disk_pending *pending)
{
    uint64_t *word = (uint64_t *)(uintptr_t)pending->address;
    struct bw_sys *sys = queue->device->sys;
    if (pending->opcode == BW_HOST_OP_COPY)
        return copy_retire(queue, pending);
    uint64_t value = pending->opcode == BW_HOST_OP_SIGNAL ? pending->value : sys->ops->clock_ns(sys);
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (pending->interrupt)
        bw_host_interrupt_raise(&queue->device->interrupt);
    return true;
}

/* Retires what is done, in order, up to the first failure; true when something was. */
static bool queue_retire(struct bw_disk_queue *queue)
{
    bool any = false;
    while (queue->retired != queue->begun && !flag(&queue->device->broken)) {
        if (!pending_retire(queue, &queue->pending[queue->retired % BW_DISK_PENDING_MAX]))
            break;
        queue->retired++;
        progress_add(queue);
        any = true;
    }
    if (any)
        copy_show(queue);
    return any;
}

/* ---- the thread ---- */

static void reads_run(struct bw_disk_queue *queue)
{
    if (bw_disk_run(queue->device->disk, LOOK_NS))
        progress_add(queue);
}

/* Forgets everything. Memory of reads under way is left alone only when they are over. */
static void queue_drop(struct bw_disk_queue *queue)
{
    int rc;
    while (!bw_disk_idle(queue->device->disk))
        reads_run(queue);
    for (; queue->retired != queue->begun; queue->retired++) {
        const struct bw_disk_pending *pending = &queue->pending[queue->retired % BW_DISK_PENDING_MAX];
        if (pending->opcode == BW_HOST_OP_COPY) {
            bool finished = bw_disk_finished(queue->device->disk, pending->request, &rc, NULL);
            assert(finished);
            (void)finished;
        }
    }
    queue->at = 0;
    copy_show(queue);
    __atomic_store_n(&queue->waits, false, __ATOMIC_RELAXED);
    __atomic_store_n(&queue->get, __atomic_load_n(&queue->put, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    flag_set(&queue->clean, true);
}

/* Until there is something to begin. */
static void queue_sleep(struct bw_disk_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    flag_set(&queue->asleep, true);
    while (!flag(&queue->stop) &&
           (flag(&queue->drop) ? flag(&queue->clean)
                               : flag(&queue->device->broken) ||
                                     __atomic_load_n(&queue->put, __ATOMIC_SEQ_CST) == queue->get))
        pthread_cond_wait(&queue->wake, &queue->lock);
    flag_set(&queue->asleep, false);
    pthread_mutex_unlock(&queue->lock);
}

/* Nothing could be begun or retired. `looks`: how often in a row. */
static void queue_rest(struct bw_disk_queue *queue, uint64_t looks)
{
    struct bw_sys *sys = queue->device->sys;
    bool nothing =
        flag(&queue->device->broken) ||
        (queue->begun == queue->retired && __atomic_load_n(&queue->put, __ATOMIC_ACQUIRE) == queue->get);
    if (!bw_disk_idle(queue->device->disk))
        reads_run(queue);
    else if (looks < BW_HOST_SPINS)
        bw_host_pause();
    else if (nothing)
        queue_sleep(queue);
    else if (looks < BW_HOST_SPINS + WAIT_YIELDS)
        sched_yield();
    else
        sys->ops->sleep_ns(sys, WAIT_SLEEP_NS);
}

static void queue_free(struct bw_disk_queue *queue)
{
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static void *queue_main(void *argument)
{
    struct bw_disk_queue *queue = argument;
    struct bw_disk_device *device = queue->device;
    uint64_t looks = 0;
    while (!flag(&queue->stop)) {
        bool moved = false;
        if (flag(&queue->drop) && !flag(&queue->clean)) {
            queue_drop(queue);
        } else if (!flag(&queue->drop) && !flag(&queue->device->broken)) {
            moved = queue_retire(queue);
            moved |= queue_begin(queue);
        }
        looks = moved ? 0 : looks + 1;
        if (!moved)
            queue_rest(queue, looks);
    }
    queue_drop(queue);
    if (bw_host_left_end(&queue->ended)) {
        queue_free(queue);
        bw_disk_device_release(device);
    }
    return NULL;
}

static void queue_wake(struct bw_disk_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
}

/* ---- the device's side ---- */

int bw_disk_queue_submit(struct bw_queue *base, uint64_t address, uint32_t word_count)
{
    struct bw_disk_queue *queue = (struct bw_disk_queue *)base;
    if (queue->put - __atomic_load_n(&queue->get, __ATOMIC_ACQUIRE) == BW_DISK_RING_ENTRIES)
        return -EAGAIN;
    queue->ring[queue->put % BW_DISK_RING_ENTRIES] =
        (struct bw_disk_entry){(const uint32_t *)(uintptr_t)address, word_count};
    /* Sequentially consistent against queue_sleep's asleep: one sees the other. */
    __atomic_store_n(&queue->put, queue->put + 1, __ATOMIC_SEQ_CST);
    if (flag(&queue->asleep))
        queue_wake(queue);
    return 0;
}

uint64_t bw_disk_queue_progress(struct bw_queue *base)
{
    return __atomic_load_n(&((struct bw_disk_queue *)base)->progress, __ATOMIC_RELAXED);
}

int bw_disk_queue_look(struct bw_queue *base, struct bw_queue_view *view)
{
    struct bw_disk_queue *queue = (struct bw_disk_queue *)base;
    uint64_t bytes = __atomic_load_n(&queue->copy_bytes, __ATOMIC_RELAXED);
    *view = (struct bw_queue_view){.progress = bw_disk_queue_progress(base),
                                   .failed = flag(&queue->device->broken),
                                   .waits = !bytes && __atomic_load_n(&queue->waits, __ATOMIC_RELAXED)};
    if (bytes)
        snprintf(view->text, sizeof view->text, "reading %" PRIu64 " bytes at offset %" PRIu64 " of %.200s",
                 bytes, __atomic_load_n(&queue->copy_offset, __ATOMIC_RELAXED),
                 bw_disk_path(queue->device->disk));
    else if (view->waits)
        snprintf(view->text, sizeof view->text, "waits for another queue");
    return 0;
}

int bw_disk_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                         struct bw_queue **out, struct bw_err *err)
{
    struct bw_disk_device *disk = (struct bw_disk_device *)device;
    if (kind != BW_QUEUE_COPY || index > 0 || disk->queue)
        return bw_fail(err, -ENODEV, "disk", "queue %u of kind %d", index, kind);
    struct bw_disk_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return bw_fail(err, -ENOMEM, "disk", "queue");
    queue->base = (struct bw_queue){device, kind, index};
    queue->device = disk;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->wake, NULL);
    int rc = bw_thread_create(&queue->thread, NULL, queue_main, queue);
    if (rc) {
        queue_free(queue);
        return bw_fail(err, rc, "disk", "thread of the queue");
    }
    disk->queue = queue;
    *out = &queue->base;
    return 0;
}

/* Waits until the flag is set; false when it was not in time. */
static bool flag_wait(struct bw_sys *sys, const bool *word, uint64_t step_ns, uint64_t timeout_ns)
{
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    while (!flag(word)) {
        if (sys->ops->clock_ns(sys) - begin_ns >= timeout_ns)
            return false;
        sys->ops->sleep_ns(sys, step_ns);
    }
    return true;
}

void bw_disk_queue_destroy(struct bw_queue *base)
{
    struct bw_disk_queue *queue = (struct bw_disk_queue *)base;
    struct bw_disk_device *device = queue->device;
    flag_set(&queue->stop, true);
    queue_wake(queue);
    device->queue = NULL;
    pthread_t thread = queue->thread;
    if (!bw_host_left_wait(&device->left, &queue->ended, CLOSE_STEP_NS, device->give_up_ns)) {
        pthread_detach(thread); /* a read that never ends: nothing can stop it, and it uses the memory */
        return;
    }
    pthread_join(thread, NULL);
    queue_free(queue);
}

int bw_disk_queue_reset(struct bw_disk_queue *queue, uint64_t timeout_ns)
{
    flag_set(&queue->clean, false);
    flag_set(&queue->drop, true);
    queue_wake(queue);
    if (!flag_wait(queue->device->sys, &queue->clean, RESET_STEP_NS, timeout_ns))
        return -EBUSY;
    flag_set(&queue->device->broken, false);
    flag_set(&queue->drop, false);
    return 0;
}
