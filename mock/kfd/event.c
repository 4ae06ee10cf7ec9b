#include "mock/kfd/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mock/kfd/kfd.h"
#include "mock/machine.h"

enum {
    SLOT_UNSIGNALED_BYTE = 0xff, /* UNSIGNALED_EVENT_SLOT is all ones */
    OWN_PAGE_EVENTS = 256,       /* without a page of the client's the kernel makes one, for this many */
    FIRST_OTHER_ID = MOCK_KFD_SIGNAL_EVENTS,
    EVENTS_MAX = 65536,
    WAIT_EVENTS_MAX = 4096, /* a bound for our allocation; the kernel has none but memory */
};

struct waiter {
    struct event *event; /* NULL: it was destroyed meanwhile */
    struct waiter *next;
    bool activated, wants_age;
};

struct event {
    uint32_t id, type;
    bool auto_reset, signaled;
    uint64_t age; /* counts set_event, never 0 */
    struct waiter *waiters;
    struct mock_kfd_memory_exception memory;
    struct mock_kfd_hw_exception hw;
};

struct bw_mock_events {
    struct bw_mock *machine;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    BW_VEC(struct event *) list;
    struct bw_mock_buffer *page_buffer; /* the client's page */
    uint64_t *slots;                    /* NULL: no page yet */
    uint64_t *own_page;
    uint32_t slot_count;
    bool ended;
};

struct bw_mock_events *bw_mock_events_create(struct bw_mock *machine)
{
    struct bw_mock_events *events = calloc(1, sizeof *events);
    if (!events)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&events->lock, NULL);
    pthread_cond_init(&events->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    events->machine = machine;
    return events;
}

void bw_mock_events_destroy(struct bw_mock_events *events)
{
    for (size_t i = 0; i < events->list.count; i++)
        free(events->list.data[i]);
    bw_vec_free(&events->list);
    pthread_cond_destroy(&events->changed);
    pthread_mutex_destroy(&events->lock);
    free(events->own_page);
    free(events);
}

void bw_mock_events_shutdown(struct bw_mock_events *events)
{
    pthread_mutex_lock(&events->lock);
    events->ended = true;
    events->slots = events->own_page;
    for (size_t i = 0; i < events->list.count; i++) {
        for (struct waiter *waiter = events->list.data[i]->waiters; waiter; waiter = waiter->next)
            waiter->event = NULL;
        events->list.data[i]->waiters = NULL;
    }
    pthread_cond_broadcast(&events->changed);
    pthread_mutex_unlock(&events->lock);
}

/* Below, events->lock is held. */

static struct event *find_event(struct bw_mock_events *events, uint32_t id)
{
    for (size_t i = 0; i < events->list.count; i++) {
        if (events->list.data[i]->id == id)
            return events->list.data[i];
    }
    return NULL;
}

static uint32_t free_id(struct bw_mock_events *events, uint32_t first, uint32_t end)
{
    for (uint32_t id = first; id < end; id++) {
        if (!find_event(events, id))
            return id;
    }
    return end;
}

/* kfd_kmap_event_page */
static int use_page(struct bw_mock_process *process, uint64_t handle)
{
    struct bw_mock_events *events = process->events;
    struct bw_mock_buffer *buffer = bw_mock_kfd_buffer(process, handle);
    if (events->slots)
        return bw_mock_refuse(events->machine, -EINVAL, "CREATE_EVENT: the event page is set already");
    if (!buffer || !(buffer->flags & MOCK_KFD_ALLOC_GTT))
        return bw_mock_refuse(events->machine, -EINVAL,
                              "CREATE_EVENT: 0x%llx is no GTT buffer for an event page",
                              (unsigned long long)handle);
    if (buffer->size < MOCK_KFD_SIGNAL_EVENTS * sizeof *events->slots)
        return bw_mock_refuse(
            events->machine, -EINVAL, "CREATE_EVENT: the event page has 0x%llx bytes, not 0x%zx",
            (unsigned long long)buffer->size, MOCK_KFD_SIGNAL_EVENTS * sizeof *events->slots);
    events->page_buffer = buffer;
    events->slots = (uint64_t *)(void *)buffer->host;
    events->slot_count = MOCK_KFD_SIGNAL_EVENTS;
    memset(buffer->host, SLOT_UNSIGNALED_BYTE, MOCK_KFD_SIGNAL_EVENTS * sizeof *events->slots);
    return 0;
}

static int own_page(struct bw_mock_events *events)
{
    size_t bytes = MOCK_KFD_SIGNAL_EVENTS * sizeof *events->own_page;
    events->own_page = malloc(bytes);
    if (!events->own_page)
        return -ENOMEM;
    memset(events->own_page, SLOT_UNSIGNALED_BYTE, bytes);
    events->slots = events->own_page;
    events->slot_count = OWN_PAGE_EVENTS;
    return 0;
}

struct bw_mock_buffer *bw_mock_events_page(struct bw_mock_events *events)
{
    pthread_mutex_lock(&events->lock);
    struct bw_mock_buffer *buffer = events->page_buffer;
    pthread_mutex_unlock(&events->lock);
    return buffer;
}

static bool gpu_can_signal(uint32_t type)
{
    return type == MOCK_KFD_EVENT_SIGNAL || type == MOCK_KFD_EVENT_DEBUG;
}

static int add_event(struct bw_mock_events *events, struct mock_kfd_create_event_args *args,
                     struct event *event)
{
    bool signal = gpu_can_signal(args->event_type);
    int rc = signal && !events->slots ? own_page(events) : 0;
    if (rc)
        return rc;
    uint32_t end = signal ? events->slot_count : FIRST_OTHER_ID + EVENTS_MAX;
    uint32_t id = free_id(events, signal ? 1 : FIRST_OTHER_ID, end);
    if (id == end)
        return bw_mock_refuse(events->machine, -ENOSPC, "CREATE_EVENT: all %u events are in use", end);
    *event =
        (struct event){.id = id, .type = args->event_type, .auto_reset = args->auto_reset != 0, .age = 1};
    if (bw_vec_push(&events->list, event))
        return -ENOMEM;
    args->event_page_offset = 0;
    args->event_id = id;
    args->event_trigger_data = id;
    if (signal) {
        memset(&events->slots[id], SLOT_UNSIGNALED_BYTE, sizeof events->slots[id]);
        args->event_page_offset = MOCK_KFD_MMAP_EVENTS;
        args->event_slot_index = id;
    }
    return 0;
}

int bw_mock_events_create_event(struct bw_mock_process *process, struct mock_kfd_create_event_args *args)
{
    struct bw_mock_events *events = process->events;
    struct event *event = calloc(1, sizeof *event);
    if (!event)
        return -ENOMEM;
    pthread_mutex_lock(&events->lock);
    int rc = args->event_page_offset ? use_page(process, args->event_page_offset) : 0;
    if (!rc)
        rc = add_event(events, args, event);
    pthread_mutex_unlock(&events->lock);
    if (rc)
        free(event);
    return rc;
}

static void set_event(struct bw_mock_events *events, struct event *event)
{
    /* All who wait now are activated; the event is latched only when nobody does (kfd_events.c, set_event).
     */
    event->signaled = !event->auto_reset || !event->waiters;
    event->age++;
    for (struct waiter *waiter = event->waiters; waiter; waiter = waiter->next)
        waiter->activated = true;
    pthread_cond_broadcast(&events->changed);
}

int bw_mock_events_destroy_event(struct bw_mock_events *events, uint32_t id)
{
    int rc = -EINVAL;
    pthread_mutex_lock(&events->lock);
    for (size_t i = 0; i < events->list.count && rc; i++) {
        struct event *event = events->list.data[i];
        if (event->id != id)
            continue;
        for (struct waiter *waiter = event->waiters; waiter; waiter = waiter->next)
            waiter->event = NULL;
        pthread_cond_broadcast(&events->changed);
        events->list.data[i] = events->list.data[--events->list.count];
        free(event);
        rc = 0;
    }
    pthread_mutex_unlock(&events->lock);
    return rc ? bw_mock_refuse(events->machine, rc, "DESTROY_EVENT: no event %u", id) : 0;
}

int bw_mock_events_set(struct bw_mock_events *events, uint32_t id)
{
    pthread_mutex_lock(&events->lock);
    struct event *event = find_event(events, id);
    bool good = event && event->type == MOCK_KFD_EVENT_SIGNAL;
    if (good)
        set_event(events, event);
    pthread_mutex_unlock(&events->lock);
    return good ? 0 : bw_mock_refuse(events->machine, -EINVAL, "SET_EVENT: %u is no signal event", id);
}

int bw_mock_events_reset(struct bw_mock_events *events, uint32_t id)
{
    pthread_mutex_lock(&events->lock);
    struct event *event = find_event(events, id);
    bool good = event && event->type == MOCK_KFD_EVENT_SIGNAL;
    if (good)
        event->signaled = false;
    pthread_mutex_unlock(&events->lock);
    return good ? 0 : bw_mock_refuse(events->machine, -EINVAL, "RESET_EVENT: %u is no signal event", id);
}

/* init_event_waiter */
static int begin_wait(struct bw_mock_events *events, const struct mock_kfd_event_data *data,
                      struct waiter *waiter)
{
    struct event *event = find_event(events, data->event_id);
    if (!event)
        return bw_mock_refuse(events->machine, -EINVAL, "WAIT_EVENTS: no event %u", data->event_id);
    waiter->event = event;
    waiter->activated = event->signaled;
    event->signaled = event->signaled && !event->auto_reset;
    if (event->type == MOCK_KFD_EVENT_SIGNAL && data->last_event_age) {
        waiter->wants_age = true;
        waiter->activated = waiter->activated || event->age != data->last_event_age;
    }
    if (!waiter->activated) {
        waiter->next = event->waiters;
        event->waiters = waiter;
    }
    return 0;
}

static void end_wait(struct waiter *waiter)
{
    if (!waiter->event)
        return;
    struct waiter **link = &waiter->event->waiters;
    while (*link && *link != waiter)
        link = &(*link)->next;
    if (*link)
        *link = waiter->next;
}

static uint32_t test_waiters(const struct waiter *waiters, uint32_t count, bool all)
{
    uint32_t activated = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!waiters[i].event)
            return MOCK_KFD_WAIT_FAIL;
        activated += waiters[i].activated;
    }
    return (all ? activated == count : activated > 0) ? MOCK_KFD_WAIT_COMPLETE : MOCK_KFD_WAIT_TIMEOUT;
}

static void copy_out(const struct waiter *waiters, uint32_t count, struct mock_kfd_event_data *data)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct event *event = waiters[i].event;
        if (!waiters[i].activated)
            continue;
        if (event->type == MOCK_KFD_EVENT_MEMORY)
            data[i].memory = event->memory;
        else if (event->type == MOCK_KFD_EVENT_HW_EXCEPTION)
            data[i].hw = event->hw;
        else if (waiters[i].wants_age)
            data[i].last_event_age = event->age;
    }
}

/* One turn of waiting. False when the time is over. */
static bool wait_turn(struct bw_mock_events *events, uint64_t deadline_ns)
{
    struct bw_mock *machine = events->machine;
    if (machine->single_step) {
        pthread_mutex_unlock(&events->lock);
        int moved = bw_mock_step(&machine->sys);
        uint64_t now = bw_mock_clock_ns(machine);
        /* With every engine at rest only time can pass: all of it at once. */
        if (!moved && deadline_ns != UINT64_MAX && now < deadline_ns)
            atomic_fetch_add(&machine->virtual_ns, deadline_ns - now);
        pthread_mutex_lock(&events->lock);
        return now < deadline_ns && (moved || deadline_ns != UINT64_MAX);
    }
    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(&events->changed, &events->lock);
        return true;
    }
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / 1000000000),
                             .tv_nsec = (long)(deadline_ns % 1000000000)};
    return pthread_cond_timedwait(&events->changed, &events->lock, &until) != ETIMEDOUT;
}

static int wait_locked(struct bw_mock_events *events, struct mock_kfd_wait_events_args *args,
                       struct waiter *waiters)
{
    struct mock_kfd_event_data *data = (void *)(uintptr_t)args->events_pointer;
    bool infinite = args->timeout_ms == (uint32_t)MOCK_KFD_TIMEOUT_INFINITE;
    uint64_t deadline_ns =
        infinite ? UINT64_MAX : bw_mock_clock_ns(events->machine) + (uint64_t)args->timeout_ms * 1000000;
    uint32_t started = 0;
    int rc = events->ended ? -EIO : 0;
    while (!rc && started < args->num_events) {
        rc = begin_wait(events, &data[started], &waiters[started]);
        started += !rc;
    }
    if (!rc) {
        bool timely = args->timeout_ms != 0;
        args->wait_result = test_waiters(waiters, args->num_events, args->wait_for_all);
        while (args->wait_result == MOCK_KFD_WAIT_TIMEOUT && timely) {
            timely = wait_turn(events, deadline_ns);
            args->wait_result = test_waiters(waiters, args->num_events, args->wait_for_all);
        }
        if (args->wait_result == MOCK_KFD_WAIT_COMPLETE)
            copy_out(waiters, args->num_events, data);
        else if (args->wait_result == MOCK_KFD_WAIT_FAIL)
            rc = -EIO;
    }
    for (uint32_t i = 0; i < started; i++)
        end_wait(&waiters[i]);
    if (rc)
        args->wait_result = MOCK_KFD_WAIT_FAIL;
    return rc;
}

int bw_mock_events_wait(struct bw_mock_events *events, struct mock_kfd_wait_events_args *args)
{
    if (args->num_events > WAIT_EVENTS_MAX)
        return bw_mock_refuse(events->machine, -ENOMEM, "WAIT_EVENTS: %u events", args->num_events);
    if (args->num_events && !args->events_pointer)
        return bw_mock_refuse(events->machine, -EFAULT, "WAIT_EVENTS: no array of events");
    struct waiter *waiters = calloc(args->num_events + 1, sizeof *waiters);
    if (!waiters)
        return -ENOMEM;
    pthread_mutex_lock(&events->lock);
    int rc = wait_locked(events, args, waiters);
    pthread_mutex_unlock(&events->lock);
    free(waiters);
    return rc;
}

/* set_event_from_interrupt */
static bool take_slot(struct bw_mock_events *events, uint32_t id)
{
    uint64_t unsignaled = UINT64_MAX;
    struct event *event = find_event(events, id);
    if (__atomic_load_n(&events->slots[id], __ATOMIC_ACQUIRE) == unsignaled || !event ||
        !gpu_can_signal(event->type))
        return false;
    __atomic_store_n(&events->slots[id], unsignaled, __ATOMIC_RELEASE);
    set_event(events, event);
    return true;
}

/* kfd_signal_event_interrupt: the id in the interrupt is a hint; without one all mailboxes are looked at. */
static void deliver(struct bw_mock_events *events, uint32_t context_id, uint32_t valid_bits)
{
    pthread_mutex_lock(&events->lock);
    if (events->slots && !events->ended) {
        bool hinted = valid_bits && context_id && context_id < events->slot_count;
        if (!hinted || !take_slot(events, context_id)) {
            for (size_t i = 0; i < events->list.count; i++) {
                uint32_t id = events->list.data[i]->id;
                if (id < events->slot_count)
                    take_slot(events, id);
            }
        }
    }
    pthread_mutex_unlock(&events->lock);
}

static void take_interrupt(struct bw_mock_context *context, uint32_t context_id, uint32_t valid_bits)
{
    struct bw_mock *machine = context->process->machine;
    struct bw_mock_fault fault;
    atomic_fetch_add_explicit(&machine->stats.interrupts, 1, memory_order_relaxed);
    enum bw_mock_fault_action action =
        bw_mock_faults_check(&machine->faults, "irq", context->gpu->index, &fault);
    if (action == BW_MOCK_FAULT_DROP)
        return;
    if (action == BW_MOCK_FAULT_DELAY)
        bw_mock_engine_delay(machine, fault.delay_ns);
    deliver(context->process->events, context_id, valid_bits);
    if (action == BW_MOCK_FAULT_DUP)
        deliver(context->process->events, context_id, valid_bits);
}

static void take_exception(struct bw_mock_context *context)
{
    struct bw_mock_events *events = context->process->events;
    pthread_mutex_lock(&events->lock);
    for (size_t i = 0; i < events->list.count; i++) {
        struct event *event = events->list.data[i];
        if (event->type != MOCK_KFD_EVENT_HW_EXCEPTION)
            continue;
        event->hw = (struct mock_kfd_hw_exception){.reset_type = MOCK_KFD_RESET_ENGINE,
                                                   .gpu_id = context->gpu->gpu_id};
        set_event(events, event);
    }
    pthread_mutex_unlock(&events->lock);
}

static void take_memory_fault(struct bw_mock_context *context, const struct bw_mock_violation *violation)
{
    struct bw_mock_events *events = context->process->events;
    bool writes = violation->access & (BW_MOCK_WRITE | BW_MOCK_ATOMIC);
    pthread_mutex_lock(&events->lock);
    for (size_t i = 0; i < events->list.count; i++) {
        struct event *event = events->list.data[i];
        if (event->type != MOCK_KFD_EVENT_MEMORY)
            continue;
        event->memory = (struct mock_kfd_memory_exception){
            /* PERMISSION_FAULTS of the fault register, as kfd_int_process_v11.c reads them: "valid" when
             * there is no page, "write" with every write, page or not; the one of a fetch is left out. */
            .not_present = !violation->mapped,
            .read_only = writes,
            .va = violation->va & ~(uint64_t)(BW_MOCK_PAGE - 1), /* the fault register holds a page number */
            .gpu_id = context->gpu->gpu_id,
        };
        set_event(events, event);
    }
    pthread_mutex_unlock(&events->lock);
}

const struct bw_mock_front_ops bw_mock_kfd_front = {
    .interrupt = take_interrupt,
    .memory_fault = take_memory_fault,
    .exception = take_exception,
};
