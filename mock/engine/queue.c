#include "mock/engine/queue.h"
#include "base/text.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "mock/engine/dispatch.h"
#include "mock/trace.h"

enum {
    BLOCKED_NS_MIN = 20000,   /* a blocked queue looks at memory again after this, ... */
    BLOCKED_NS_MAX = 1000000, /* ... then ever more rarely: what the host writes cannot wake it */
    /* Jitter: the slowest queue holds packets up for about the time that a kernel of a real graph takes; now
     * and then any queue stands for longer than the others need for a whole replay. */
    HELD_NS_MIN = 500,
    HELD_OCTAVES = 8, /* the slowest is up to 2^8 times as slow */
    HELD_LONG_NS = 1000000,
    HELD_ONE_IN = 3,
    HELD_LONG_ONE_IN = 400,
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                               .tv_nsec = (long)(timeout_ns % 1000000000)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void bw_mock_doorbell_wake(struct bw_mock_doorbell *doorbell)
{
    atomic_fetch_add(&doorbell->sequence, 1);
    if (atomic_load(&doorbell->asleep))
        futex_wake(&doorbell->sequence);
}

void bw_mock_progress_signal(struct bw_mock *machine)
{
    if (!atomic_load(&machine->blocked))
        return;
    atomic_fetch_add(&machine->progress, 1);
    futex_wake(&machine->progress);
}

void bw_mock_doorbell_write(struct bw_mock_context *context, uint64_t offset, uint64_t value)
{
    struct bw_mock *machine = context->process->machine;
    assert(offset < BW_MOCK_DOORBELL_BYTES);
    struct bw_mock_doorbell *doorbell = &context->doorbells[offset / 8];
    struct bw_mock_fault fault;
    atomic_fetch_add_explicit(&machine->stats.doorbells, 1, memory_order_relaxed);
    bw_mock_trace_doorbell(context, offset, value);
    if (!atomic_load(&doorbell->bound)) {
        bw_mock_error_set(machine, "doorbell at offset 0x%llx: no queue listens there",
                          (unsigned long long)offset);
        return;
    }
    enum bw_mock_fault_action action =
        bw_mock_faults_check(&machine->faults, "doorbell", context->gpu->index, &fault);
    if (action == BW_MOCK_FAULT_DROP)
        return;
    if (action == BW_MOCK_FAULT_DELAY)
        atomic_store(&doorbell->not_before_ns, bw_mock_clock_ns(machine) + fault.delay_ns);
    atomic_store(&doorbell->value, value);
    bw_mock_doorbell_wake(doorbell);
    if (action == BW_MOCK_FAULT_DUP)
        bw_mock_doorbell_wake(doorbell);
}

/* Takes a doorbell over into queue->write. False while a delayed one is under way. */
static bool take_doorbell(struct bw_mock_queue *queue)
{
    struct bw_mock_doorbell *doorbell = queue->doorbell;
    uint64_t not_before = atomic_load(&doorbell->not_before_ns);
    if (not_before && bw_mock_clock_ns(queue->machine) < not_before)
        return false;
    if (not_before)
        atomic_store(&doorbell->not_before_ns, 0);
    queue->write = atomic_load(&doorbell->value);
    return true;
}

__attribute__((format(printf, 2, 3))) static void set_text(struct bw_mock_queue *queue, const char *format,
                                                           ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&queue->machine->error_lock);
    bw_text_fit_v(queue->text, sizeof queue->text, format, arguments);
    pthread_mutex_unlock(&queue->machine->error_lock);
    va_end(arguments);
}

enum bw_mock_queue_progress bw_mock_queue_block(struct bw_mock_queue *queue, const char *format, ...)
{
    char text[sizeof queue->text];
    va_list arguments;
    if (queue->again) /* said already */
        return BW_MOCK_QUEUE_BLOCKED;
    va_start(arguments, format);
    bw_text_fit_v(text, sizeof text, format, arguments);
    va_end(arguments);
    set_text(queue, "%s", text);
    atomic_store(&queue->waits, true);
    return BW_MOCK_QUEUE_BLOCKED;
}

enum bw_mock_queue_progress bw_mock_queue_hang(struct bw_mock_queue *queue, const char *site)
{
    char place[64];
    bw_mock_queue_place(queue, place, sizeof place);
    atomic_store(&queue->hung, true);
    set_text(queue, "%s hangs at %s (injected)", site, place);
    return BW_MOCK_QUEUE_BLOCKED;
}

void bw_mock_queue_place(const struct bw_mock_queue *queue, char *text, size_t size)
{
    static const uint32_t unit_bytes[] = {
        [BW_MOCK_QUEUE_PM4] = 4, [BW_MOCK_QUEUE_AQL] = 64, [BW_MOCK_QUEUE_SDMA] = 1};
    if (queue->in_indirect || queue->feed)
        snprintf(text, size, "indirect buffer 0x%llx + 0x%x", (unsigned long long)queue->indirect.va,
                 queue->indirect.at * 4);
    else
        snprintf(text, size, "ring offset 0x%llx",
                 (unsigned long long)(queue->read * unit_bytes[queue->type] & (queue->ring_bytes - 1)));
}

enum bw_mock_queue_progress bw_mock_queue_packet_fail(struct bw_mock_queue *queue, const char *name,
                                                      const char *format, va_list arguments)
{
    char place[64], text[256];
    bw_text_fit_v(text, sizeof text, format, arguments);
    bw_mock_queue_place(queue, place, sizeof place);
    return bw_mock_queue_fail(queue, "%s at %s: %s", name, place, text);
}

enum bw_mock_queue_progress bw_mock_queue_packet_block(struct bw_mock_queue *queue, const char *name,
                                                       uint64_t va, uint32_t function, uint64_t value,
                                                       uint64_t reference)
{
    char place[64];
    bw_mock_queue_place(queue, place, sizeof place);
    return bw_mock_queue_block(queue, "%s at %s: 0x%llx at 0x%llx is to be %s 0x%llx", name, place,
                               (unsigned long long)value, (unsigned long long)va,
                               bw_mock_compare_name(function), (unsigned long long)reference);
}

enum bw_mock_queue_progress bw_mock_queue_packet_fault(struct bw_mock_queue *queue, const char *name,
                                                       const struct bw_mock_violation *violation)
{
    char place[64], text[128];
    bw_mock_queue_place(queue, place, sizeof place);
    snprintf(text, sizeof text, "%s at %s", name, place);
    return bw_mock_queue_fault(queue, violation, text);
}

bool bw_mock_compare(uint32_t function, uint64_t value, uint64_t reference)
{
    const bool results[] = {true, value<reference, value <= reference, value == reference, value != reference,
                                        value >= reference, value>
                                      reference};
    return function >= sizeof results / sizeof results[0] || results[function];
}

const char *bw_mock_compare_name(uint32_t function)
{
    static const char *const names[] = {"anything:", "<", "<=", "==", "!=", ">=", ">"};
    return function < sizeof names / sizeof names[0] ? names[function] : "?";
}

/* False: it was stopped before. */
static bool stop_queue(struct bw_mock_queue *queue, enum bw_mock_queue_state state)
{
    uint32_t runs = BW_MOCK_QUEUE_RUNS;
    return atomic_compare_exchange_strong(&queue->state, &runs, state);
}

/* What fault injection does to the next packet. False: *progress is the outcome of this step. */
static bool injection_passes(struct bw_mock_queue *queue, enum bw_mock_queue_progress *progress)
{
    char site[16] = "mec";
    struct bw_mock_fault fault;
    if (queue->type == BW_MOCK_QUEUE_SDMA)
        snprintf(site, sizeof site, "sdma%u", queue->sdma_engine);
    switch (bw_mock_faults_check(&queue->machine->faults, site, queue->context->gpu->index, &fault)) {
    case BW_MOCK_FAULT_DELAY:
        bw_mock_engine_delay(queue->machine, fault.delay_ns);
        return true;
    case BW_MOCK_FAULT_HANG:
        *progress = bw_mock_queue_hang(queue, site);
        return false;
    case BW_MOCK_FAULT_FAIL:
        *progress = bw_mock_queue_fail(queue, "injected failure (%s)", strerror(fault.error));
        return false;
    case BW_MOCK_FAULT_DROP: /* the engine dies without a word */
        set_text(queue, "the engine died (injected)");
        atomic_store(&queue->hung, queue->feed != NULL); /* which amdgpu finds out in time */
        stop_queue(queue, BW_MOCK_QUEUE_FAILED);
        *progress = BW_MOCK_QUEUE_STOPPED;
        return false;
    default:
        return true;
    }
}

static bool has_work(const struct bw_mock_queue *queue)
{
    if (queue->feed)
        return queue->in_indirect;
    if (queue->type == BW_MOCK_QUEUE_AQL)
        return queue->in_indirect || queue->read < queue->write + 1;
    return queue->in_indirect || queue->read != queue->write;
}

static enum bw_mock_queue_progress step_packet(struct bw_mock_queue *queue)
{
    switch (queue->type) {
    case BW_MOCK_QUEUE_PM4:
        return bw_mock_pm4_step(queue);
    case BW_MOCK_QUEUE_AQL:
        return bw_mock_aql_step(queue);
    default:
        return bw_mock_sdma_step(queue);
    }
}

/* How long the next packet is held up. */
static uint64_t jitter_draw(struct bw_mock_queue *queue)
{
    struct bw_rng *rng = &queue->speed.rng;
    if (!queue->speed.mean_ns) {
        rng->state = bw_hash64(queue->machine->jitter) ^
                     bw_hash64((uint64_t)queue->context->gpu->index << 32 | queue->id);
        queue->speed.mean_ns = (uint64_t)HELD_NS_MIN << bw_rng_below(rng, HELD_OCTAVES + 1);
    }
    if (bw_rng_below(rng, HELD_LONG_ONE_IN) == 0)
        return HELD_LONG_NS;
    return bw_rng_below(rng, HELD_ONE_IN) ? 0 : bw_rng_below(rng, 2 * queue->speed.mean_ns);
}

/* False: single-step, and the packet is held up. */
static bool jitter_passes(struct bw_mock_queue *queue)
{
    struct bw_mock *machine = queue->machine;
    if (!queue->speed.drawn) {
        uint64_t held_ns = jitter_draw(queue);
        queue->speed.drawn = true;
        queue->speed.until_ns = bw_mock_clock_ns(machine) + held_ns;
        if (held_ns && !machine->single_step)
            bw_mock_engine_delay(machine, held_ns);
    }
    return !machine->single_step || bw_mock_clock_ns(machine) >= queue->speed.until_ns;
}

void bw_mock_queue_begin(struct bw_mock_queue *queue, uint64_t va, uint32_t words)
{
    assert(queue->feed && !queue->in_indirect && words);
    queue->indirect = (struct bw_mock_stream){.va = va, .words = words};
    queue->in_indirect = true;
}

void bw_mock_queue_forget_registers(struct bw_mock_queue *queue)
{
    struct bw_rng rng = {queue->machine->seed ^ queue->id};
    for (size_t i = 0; i < BW_MOCK_SH_COUNT; i++)
        queue->sh[i] = (uint32_t)bw_rng_next(&rng);
}

enum bw_mock_queue_progress bw_mock_queue_step(struct bw_mock_queue *queue)
{
    enum bw_mock_queue_progress progress;
    if (atomic_load(&queue->context->evictions) != queue->evictions &&
        stop_queue(queue, BW_MOCK_QUEUE_EVICTED)) {
        bw_mock_launch_abandon(queue);
        if (queue->feed)
            queue->context->front->failed(queue);
    }
    if (atomic_load(&queue->state) != BW_MOCK_QUEUE_RUNS)
        return BW_MOCK_QUEUE_STOPPED;
    if (atomic_load(&queue->inactive))
        return BW_MOCK_QUEUE_IDLE;
    if (atomic_load_explicit(&queue->hung, memory_order_relaxed) || !take_doorbell(queue))
        return BW_MOCK_QUEUE_BLOCKED;
    if (!has_work(queue))
        return queue->feed ? queue->context->front->feed(queue) : BW_MOCK_QUEUE_IDLE;
    if (!queue->again && atomic_load_explicit(&queue->machine->faults.count, memory_order_relaxed) &&
        !injection_passes(queue, &progress)) {
        if (progress == BW_MOCK_QUEUE_STOPPED && queue->feed && !atomic_load(&queue->hung))
            queue->context->front->failed(queue);
        return progress;
    }
    if (!queue->again && queue->machine->jitter && !jitter_passes(queue))
        return BW_MOCK_QUEUE_BLOCKED;
    queue->speed.drawn = false;
    progress = step_packet(queue);
    if (progress == BW_MOCK_QUEUE_STOPPED && queue->feed)
        queue->context->front->failed(queue);
    queue->again = progress == BW_MOCK_QUEUE_BLOCKED || progress == BW_MOCK_QUEUE_RUNNING;
    if (progress == BW_MOCK_QUEUE_MOVED) {
        atomic_fetch_add_explicit(&queue->packets, 1, memory_order_relaxed);
        if (atomic_load_explicit(&queue->waits, memory_order_relaxed))
            atomic_store(&queue->waits, false);
    }
    return progress;
}

static void *queue_thread(void *argument)
{
    struct bw_mock_queue *queue = argument;
    struct bw_mock_doorbell *doorbell = queue->doorbell;
    struct bw_mock *machine = queue->machine;
    uint64_t nap_ns = BLOCKED_NS_MIN;
    while (!atomic_load(&queue->stopping)) {
        uint32_t seen = atomic_load(&doorbell->sequence);
        uint32_t progress_seen = atomic_load(&machine->progress);
        enum bw_mock_queue_progress progress = bw_mock_queue_step(queue);
        if (progress == BW_MOCK_QUEUE_MOVED) {
            nap_ns = BLOCKED_NS_MIN;
            bw_mock_progress_signal(machine);
        } else if (progress == BW_MOCK_QUEUE_BLOCKED) {
            atomic_fetch_add(&machine->blocked, 1);
            futex_wait(&machine->progress, progress_seen, nap_ns);
            atomic_fetch_sub(&machine->blocked, 1);
            nap_ns = nap_ns * 2 < BLOCKED_NS_MAX ? nap_ns * 2 : BLOCKED_NS_MAX;
        } else {
            atomic_store(&doorbell->asleep, 1);
            if (!atomic_load(&queue->stopping))
                futex_wait(&doorbell->sequence, seen, UINT64_MAX);
            atomic_store(&doorbell->asleep, 0);
        }
    }
    return NULL;
}

int bw_mock_queue_start(struct bw_mock_queue *queue)
{
    size_t words = queue->type == BW_MOCK_QUEUE_SDMA ? BW_MOCK_SDMA_PACKET_WORDS : BW_MOCK_PACKET_WORDS;
    queue->packet = malloc(words * sizeof *queue->packet);
    if (!queue->packet)
        return -ENOMEM;
    /* AQL doorbells hold the last packet's index: before the first one that is -1 */
    atomic_store(&queue->doorbell->value, queue->type == BW_MOCK_QUEUE_AQL ? queue->read - 1 : queue->read);
    atomic_store(&queue->doorbell->not_before_ns, 0);
    atomic_store(&queue->doorbell->bound, 1);
    if (queue->machine->single_step)
        return 0;
    int rc = bw_thread_create(&queue->thread, NULL, queue_thread, queue);
    queue->has_thread = !rc;
    if (rc)
        atomic_store(&queue->doorbell->bound, 0);
    return rc;
}

void bw_mock_queue_halt(struct bw_mock_queue *queue)
{
    struct bw_mock *machine = queue->machine;
    atomic_store(&queue->doorbell->bound, 0);
    atomic_store(&queue->stopping, 1);
    atomic_store(&queue->control.stop, 1);
    if (machine->single_step) {
        pthread_mutex_lock(&machine->step_lock);
        bw_mock_launch_abandon(queue);
        pthread_mutex_unlock(&machine->step_lock);
    }
    if (queue->has_thread) {
        bw_mock_doorbell_wake(queue->doorbell);
        atomic_fetch_add(&machine->progress, 1);
        futex_wake(&machine->progress);
        pthread_join(queue->thread, NULL);
        queue->has_thread = false;
    }
}

void bw_mock_queue_free(struct bw_mock_queue *queue)
{
    struct bw_mock *machine = queue->machine;
    /* A single step that picked this queue before it left the process's list must be over. */
    pthread_mutex_lock(&machine->step_lock);
    free(queue->packet);
    free(queue);
    pthread_mutex_unlock(&machine->step_lock);
}

enum bw_mock_queue_progress bw_mock_queue_fail(struct bw_mock_queue *queue, const char *format, ...)
{
    char text[BW_MOCK_ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(text, sizeof text, format, arguments);
    va_end(arguments);
    stop_queue(queue, BW_MOCK_QUEUE_FAILED);
    set_text(queue, "%s", text);
    bw_mock_error_set(queue->machine, "%s: %.400s", queue->name, text);
    queue->context->front->exception(queue->context);
    return BW_MOCK_QUEUE_STOPPED;
}

static void describe_nearest(struct bw_mock_space *space, uint64_t va, char *text, size_t size)
{
    struct bw_mock_mapping near;
    if (!bw_mock_space_nearest(space, va, &near)) {
        snprintf(text, size, "nothing is mapped");
        return;
    }
    unsigned long long from = near.va, to = near.va + near.size;
    if (va < near.va)
        snprintf(text, size, "0x%llx bytes before [0x%llx, 0x%llx)", (unsigned long long)(near.va - va), from,
                 to);
    else if (va - near.va < near.size)
        snprintf(text, size, "in [0x%llx, 0x%llx)", from, to);
    else
        snprintf(text, size, "0x%llx bytes past the end of [0x%llx, 0x%llx)",
                 (unsigned long long)(va - near.va - near.size), from, to);
}

static const char *access_name(uint32_t access)
{
    if (access & BW_MOCK_EXECUTE)
        return "fetch";
    return access & (BW_MOCK_WRITE | BW_MOCK_ATOMIC) ? "write" : "read";
}

enum bw_mock_queue_progress bw_mock_queue_fault(struct bw_mock_queue *queue,
                                                const struct bw_mock_violation *violation, const char *what)
{
    struct bw_mock_context *context = queue->context;
    char near[128];
    describe_nearest(&context->space, violation->va, near, sizeof near);
    stop_queue(queue, BW_MOCK_QUEUE_FAILED);
    set_text(queue, "%s of 0x%llx by %s", access_name(violation->access), (unsigned long long)violation->va,
             what);
    pthread_mutex_lock(&queue->machine->error_lock);
    queue->faulted = true;
    queue->fault_va = violation->va;
    pthread_mutex_unlock(&queue->machine->error_lock);
    bw_mock_error_set(queue->machine, "%s: %s: memory fault at 0x%llx, %s of %s memory (%s)", queue->name,
                      what, (unsigned long long)violation->va, access_name(violation->access),
                      violation->mapped ? "protected" : "unmapped", near);
    if (!queue->feed) /* amdgpu's own rings go on with what others gave them */
        atomic_fetch_add(&context->evictions, 1);
    bw_mock_progress_signal(queue->machine);
    context->front->memory_fault(context, violation);
    return BW_MOCK_QUEUE_STOPPED;
}
