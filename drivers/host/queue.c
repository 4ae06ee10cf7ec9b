/* The host's queues: see queue.h and packet.h. */
#include "drivers/host/queue.h"

#include <assert.h>
#include <errno.h>
#include <fenv.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "drivers/host/packet.h"
#include "drivers/host/spin.h"

enum {
    QUEUE_STACK_BYTES = 8 << 20,
    WAIT_YIELDS = 50, /* after spinning, before sleeping: another queue may need this CPU */
    WAIT_SLEEP_MAX_NS = 200000,
    CLOSE_STEP_NS = 20000,
};

static bool queue_gives_up(const struct bw_host_queue *queue)
{
    return __atomic_load_n(&queue->stop, __ATOMIC_RELAXED) || __atomic_load_n(&queue->drop, __ATOMIC_RELAXED);
}

/* The word has another writer: a queue of this device, of another one, or a GPU. Acquire: what was written
 * before the signal is visible to the packets after the wait. */
static void packet_wait(struct bw_host_queue *queue, const uint32_t *packet)
{
    const uint64_t *word = (const uint64_t *)(uintptr_t)bw_host_field64(packet + 1);
    uint64_t value = bw_host_field64(packet + 3), sleep_ns = 1000;
    for (uint64_t look = 0; (int64_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - value) < 0; look++) {
        if (queue_gives_up(queue))
            return;
        if (look < BW_HOST_SPINS) {
            bw_host_pause();
        } else if (look < BW_HOST_SPINS + WAIT_YIELDS) {
            sched_yield();
        } else {
            queue->host->sys->ops->sleep_ns(queue->host->sys, sleep_ns);
            sleep_ns = sleep_ns * 2 < WAIT_SLEEP_MAX_NS ? sleep_ns * 2 : WAIT_SLEEP_MAX_NS;
        }
    }
}

/* After the store the packet may be somebody else's memory. */
static void packet_signal(struct bw_host_queue *queue, const uint32_t *packet)
{
    uint64_t *word = (uint64_t *)(uintptr_t)bw_host_field64(packet + 1);
    bool interrupt = packet[5] & BW_HOST_SIGNAL_INTERRUPT;
    __atomic_store_n(word, bw_host_field64(packet + 3), __ATOMIC_RELEASE);
    if (interrupt)
        bw_host_interrupt_raise(&queue->host->interrupt);
}

static void packet_kernel(struct bw_host_queue *queue, const uint32_t *packet)
{
    struct bw_host_launch launch = {
        .kernel = (const struct bw_host_kernel *)(uintptr_t)bw_host_field64(packet + 1),
        .argument_block = (const void *)(uintptr_t)bw_host_field64(packet + 3),
        .group_count = {packet[5], packet[6], packet[7]},
    };
    assert(queue->pool && launch.kernel->function);
    bw_host_pool_run(queue->pool, &launch);
}

static void packet_timestamp(struct bw_host_queue *queue, const uint32_t *packet)
{
    uint64_t *word = (uint64_t *)(uintptr_t)bw_host_field64(packet + 1);
    __atomic_store_n(word, queue->host->sys->ops->clock_ns(queue->host->sys), __ATOMIC_RELEASE);
}

static void packet_run(struct bw_host_queue *queue, const uint32_t *packet)
{
    switch (bw_host_header_opcode(packet[0])) {
    case BW_HOST_OP_KERNEL:
        packet_kernel(queue, packet);
        break;
    case BW_HOST_OP_COPY:
        memcpy((void *)(uintptr_t)bw_host_field64(packet + 1),
               (const void *)(uintptr_t)bw_host_field64(packet + 3), bw_host_field64(packet + 5));
        break;
    case BW_HOST_OP_WAIT:
        packet_wait(queue, packet);
        break;
    case BW_HOST_OP_SIGNAL:
        packet_signal(queue, packet);
        break;
    case BW_HOST_OP_TIMESTAMP:
        packet_timestamp(queue, packet);
        break;
    default: /* NOP; BARRIER: this thread runs packets in order on coherent memory */
        break;
    }
    __atomic_fetch_add(&queue->progress, 1, __ATOMIC_RELAXED);
}

static void entry_run(struct bw_host_queue *queue, const struct bw_host_entry *entry)
{
    if (bw_host_packets_check(entry->words, entry->word_count)) {
        __atomic_store_n(&queue->host->broken, 1, __ATOMIC_RELEASE);
        return;
    }
    for (uint32_t at = 0, next; at < entry->word_count && !queue_gives_up(queue); at = next) {
        next = at +
               bw_host_header_words(entry->words[at]); /* after a last signal the words are somebody else's */
        packet_run(queue, &entry->words[at]);
    }
}

static void queue_sleep(struct bw_host_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    __atomic_store_n(&queue->asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&queue->put, __ATOMIC_SEQ_CST) == queue->get &&
           !__atomic_load_n(&queue->stop, __ATOMIC_RELAXED))
        pthread_cond_wait(&queue->wake, &queue->lock);
    __atomic_store_n(&queue->asleep, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&queue->lock);
}

static void queue_free(struct bw_host_queue *queue)
{
    if (queue->pool)
        bw_host_pool_destroy(queue->pool);
    pthread_cond_destroy(&queue->wake);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

static void *queue_main(void *argument)
{
    struct bw_host_queue *queue = argument;
    struct bw_host_device *host = queue->host;
    fesetenv(FE_DFL_ENV); /* threads inherit MXCSR from whoever opened the device */
    while (!__atomic_load_n(&queue->stop, __ATOMIC_ACQUIRE)) {
        for (uint32_t spin = 0;
             spin < BW_HOST_SPINS && __atomic_load_n(&queue->put, __ATOMIC_ACQUIRE) == queue->get; spin++)
            bw_host_pause();
        if (__atomic_load_n(&queue->put, __ATOMIC_ACQUIRE) == queue->get) {
            queue_sleep(queue);
            continue;
        }
        struct bw_host_entry entry = queue->ring[queue->get % BW_HOST_RING_ENTRIES];
        if (!__atomic_load_n(&queue->drop, __ATOMIC_ACQUIRE))
            entry_run(queue, &entry);
        __atomic_store_n(&queue->get, queue->get + 1, __ATOMIC_RELEASE);
    }
    if (bw_host_left_end(&queue->ended)) {
        queue_free(queue);
        bw_host_device_release(host);
    }
    return NULL;
}

static void queue_wake(struct bw_host_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->wake);
    pthread_mutex_unlock(&queue->lock);
}

int bw_host_queue_submit(struct bw_queue *base, uint64_t address, uint32_t word_count)
{
    struct bw_host_queue *queue = (struct bw_host_queue *)base;
    if (queue->put - __atomic_load_n(&queue->get, __ATOMIC_ACQUIRE) == BW_HOST_RING_ENTRIES)
        return -EAGAIN;
    queue->ring[queue->put % BW_HOST_RING_ENTRIES] =
        (struct bw_host_entry){(const uint32_t *)(uintptr_t)address, word_count};
    /* Release: entry and command buffer before put. Sequentially consistent against queue_sleep's asleep: one
     * sees the other. */
    __atomic_store_n(&queue->put, queue->put + 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&queue->asleep, __ATOMIC_SEQ_CST))
        queue_wake(queue);
    return 0;
}

uint64_t bw_host_queue_progress(struct bw_queue *base)
{
    return __atomic_load_n(&((struct bw_host_queue *)base)->progress, __ATOMIC_RELAXED);
}

static int queue_start(struct bw_host_queue *queue, struct bw_err *err)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, QUEUE_STACK_BYTES);
    int rc = bw_thread_create(&queue->thread, &attributes, queue_main, queue);
    pthread_attr_destroy(&attributes);
    if (!rc)
        return 0;
    bw_fail(err, rc, "host", "thread of queue %u", queue->base.index);
    bw_err_hint(err, BW_THREAD_LIMITS);
    return rc;
}

int bw_host_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                         struct bw_queue **out, struct bw_err *err)
{
    struct bw_host_device *host = (struct bw_host_device *)device;
    if (index > 0 || host->queues[kind])
        return bw_fail(err, -ENODEV, "host", "queue %u of kind %d", index, kind);
    struct bw_host_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return bw_fail(err, -ENOMEM, "host", "queue of kind %d", kind);
    queue->base = (struct bw_queue){device, kind, index};
    queue->host = host;
    int rc = 0;
    if (kind == BW_QUEUE_COMPUTE)
        rc = bw_host_pool_create(host->sys, host->thread_count - 1, &queue->progress, &queue->pool, err);
    if (rc) {
        free(queue);
        return rc;
    }
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->wake, NULL);
    rc = queue_start(queue, err);
    if (rc) {
        queue_free(queue);
        return rc;
    }
    host->queues[kind] = queue;
    *out = &queue->base;
    return 0;
}

void bw_host_queue_destroy(struct bw_queue *base)
{
    struct bw_host_queue *queue = (struct bw_host_queue *)base;
    struct bw_host_device *host = queue->host;
    __atomic_store_n(&queue->stop, 1, __ATOMIC_SEQ_CST);
    queue_wake(queue);
    host->queues[queue->base.kind] = NULL;
    pthread_t thread = queue->thread;
    if (!bw_host_left_wait(&host->left, &queue->ended, CLOSE_STEP_NS, host->give_up_ns)) {
        pthread_detach(thread); /* an endless kernel: nothing can stop it, and it uses queue and pool */
        return;
    }
    pthread_join(thread, NULL);
    queue_free(queue);
}

int bw_host_queue_reset(struct bw_host_queue *queue, uint64_t timeout_ns)
{
    struct bw_sys *sys = queue->host->sys;
    const uint64_t step_ns = 100000;
    int rc = 0;
    __atomic_store_n(&queue->drop, 1, __ATOMIC_SEQ_CST);
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    while (__atomic_load_n(&queue->get, __ATOMIC_ACQUIRE) != queue->put) {
        if (sys->ops->clock_ns(sys) - begin_ns >= timeout_ns) {
            rc = -EBUSY;
            break;
        }
        sys->ops->sleep_ns(sys, step_ns);
    }
    if (!rc)
        __atomic_store_n(&queue->drop, 0, __ATOMIC_SEQ_CST);
    return rc;
}
