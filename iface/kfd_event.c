/* Interrupts and faults of one GPU. Three events: a signal that queues raise, memory faults, and hardware
 * exceptions (resets).
 *
 * The first two are auto-reset: latched when nobody waits, and given to every waiter of the moment otherwise.
 * The kernel fills in the data of a memory fault in every version, so the gpu_id there tells that it came. Of
 * a hardware exception it does so only lately; that event is therefore sticky, is asked about by itself, and
 * is made anew once reported (RESET_EVENT is for signals only: event_can_be_cpu_signaled of kfd_events.c). */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "iface/kfd.h"

/* The kernel takes milliseconds and treats values above this as one of its special cases. */
#define WAIT_MS_MAX 0x7fffffffull
#define NS_PER_MS   1000000ull

/* Without an event page queues cannot wake us: wait_interrupt then looks again this often. */
#define NO_PAGE_WAIT_NS 1000000ull

enum { ERROR_TYPE_NONE = 0, ERROR_TYPE_SRAM_ECC = 1, ERROR_TYPE_POISON = 2, ERROR_TYPE_HANG = 3 };

static int create_event(struct bw_kfd_iface *kfd, enum bw_kfd_event_type type, bool auto_reset,
                        uint64_t page_handle, struct bw_kfd_create_event_args *args)
{
    *args = (struct bw_kfd_create_event_args){
        .event_page_offset = page_handle,
        .event_type = type,
        .auto_reset = auto_reset,
        .node_id = kfd->node.number,
    };
    return bw_kfd_ioctl(kfd->process, BW_KFD_IOC_CREATE_EVENT, args);
}

static void destroy_event(struct bw_kfd_iface *kfd, uint32_t *event_id)
{
    struct bw_kfd_destroy_event_args args = {.event_id = *event_id};
    /* Event 0 is the kernel's own (kfd_event_init_process), so it stands for none. */
    if (*event_id)
        bw_kfd_ioctl(kfd->process, BW_KFD_IOC_DESTROY_EVENT, &args);
    *event_id = 0;
}

/* Makes the first signal event of the process, with the event page in this GPU's memory. The caller holds
 * open_lock. */
static int create_first_signal(struct bw_kfd_iface *kfd, struct bw_kfd_create_event_args *args,
                               struct bw_err *err)
{
    struct bw_kfd_process *process = kfd->process;
    struct bw_kfd_buffer *page;
    struct bw_region cpu;
    int rc = bw_kfd_buffer_create(process, kfd->gpu, BW_KFD_EVENT_PAGE_BYTES,
                                  BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &page, &cpu, err);
    if (rc)
        return rc;
    rc = create_event(kfd, BW_KFD_EVENT_SIGNAL, true, page->handle, args);
    if (rc >= 0) {
        process->event_page = page;
        return 0;
    }
    bw_kfd_buffer_free(process, page, NULL);
    /* Another context of this process set an event page of its own: go on with one that queues cannot reach.
     */
    if (rc == -EINVAL || rc == -EBUSY)
        rc = create_event(kfd, BW_KFD_EVENT_SIGNAL, true, 0, args);
    return rc < 0 ? bw_fail(err, rc, "kfd", "CREATE_EVENT, signal with event page") : 0;
}

static int create_signal(struct bw_kfd_iface *kfd, struct bw_err *err)
{
    struct bw_kfd_process *process = kfd->process;
    struct bw_kfd_create_event_args args;
    int rc;
    if (!process->event_page) {
        rc = create_first_signal(kfd, &args, err);
    } else {
        rc = bw_kfd_buffer_map_gpu(process, process->event_page, kfd->gpu->gpu_id, err);
        if (!rc) {
            rc = create_event(kfd, BW_KFD_EVENT_SIGNAL, true, 0, &args);
            rc = rc < 0 ? bw_fail(err, rc, "kfd", "CREATE_EVENT, signal") : 0;
        }
    }
    if (rc)
        return rc;
    kfd->signal_event = args.event_id;
    kfd->signal_data = args.event_trigger_data;
    if (args.event_slot_index >= BW_KFD_SIGNAL_EVENTS_MAX)
        return bw_fail(err, -EPROTO, "kfd", "CREATE_EVENT: slot %u of %d", args.event_slot_index,
                       BW_KFD_SIGNAL_EVENTS_MAX);
    if (process->event_page)
        kfd->mailbox_va = process->event_page->va + (uint64_t)args.event_slot_index * 8;
    return 0;
}

static int create_fault_event(struct bw_kfd_iface *kfd, enum bw_kfd_event_type type, bool auto_reset,
                              uint32_t *event_id, struct bw_err *err)
{
    struct bw_kfd_create_event_args args;
    int rc = create_event(kfd, type, auto_reset, 0, &args);
    if (rc < 0)
        return bw_fail(err, rc, "kfd", "CREATE_EVENT, type %d", type);
    *event_id = args.event_id;
    return 0;
}

int bw_kfd_events_create(struct bw_kfd_iface *kfd, struct bw_err *err)
{
    int rc = create_signal(kfd, err);
    if (!rc)
        rc = create_fault_event(kfd, BW_KFD_EVENT_MEMORY, true, &kfd->memory_event, err);
    if (!rc)
        rc = create_fault_event(kfd, BW_KFD_EVENT_HW_EXCEPTION, false, &kfd->hw_event, err);
    if (rc)
        bw_kfd_events_destroy(kfd);
    return rc;
}

void bw_kfd_events_destroy(struct bw_kfd_iface *kfd)
{
    destroy_event(kfd, &kfd->signal_event);
    destroy_event(kfd, &kfd->memory_event);
    destroy_event(kfd, &kfd->hw_event);
}

void bw_kfd_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    *mailbox_va = kfd->mailbox_va;
    *event_id = kfd->signal_data;
}

static void describe_memory_fault(const struct bw_kfd_memory_exception *data, struct bw_fault *fault)
{
    static const char *const causes[] = {"", ", uncorrectable SRAM error", ", poisoned memory", ", GPU hang"};
    *fault = (struct bw_fault){
        .kind = BW_FAULT_MEMORY,
        .va = data->va,
        .not_present = data->not_present,
        .read_only = data->read_only,
        .no_execute = data->no_execute,
        .imprecise = data->imprecise,
    };
    /* A write to a page that is not there sets both; the missing page explains it. */
    snprintf(fault->text, sizeof fault->text, "memory fault at 0x%" PRIx64 ":%s%s%s%s", data->va,
             data->not_present ? " page not present"
             : data->read_only ? " write to a read-only page"
                               : "",
             data->no_execute ? " execution of a page without permission" : "",
             data->imprecise ? " (address imprecise)" : "",
             data->error_type < BW_COUNT_OF(causes) ? causes[data->error_type] : ", unknown error type");
}

static void describe_hw_exception(const struct bw_kfd_hw_exception *data, struct bw_fault *fault)
{
    *fault = (struct bw_fault){
        .kind = BW_FAULT_HARDWARE,
        .reset_type = data->reset_type,
        .reset_cause = data->reset_cause,
    };
    /* KFD_HW_EXCEPTION_* of kfd_ioctl.h */
    snprintf(fault->text, sizeof fault->text, "hardware exception: %s reset after %s%s",
             data->reset_type ? "engine" : "whole GPU", data->reset_cause ? "an ECC error" : "a hang",
             data->memory_lost ? ", VRAM contents lost" : "");
}

static bool same_fault(const struct bw_fault *a, const struct bw_fault *b)
{
    return a->kind == b->kind && a->va == b->va && a->reset_type == b->reset_type &&
           a->reset_cause == b->reset_cause;
}

/* Keeps a fault for query_fault. One event may be given to several waiting threads; one that is slow must not
 * report again what has been reported since it began to wait (epoch). The first of several faults is the one
 * that explains. */
static void note_fault(struct bw_kfd_iface *kfd, const struct bw_fault *fault, uint64_t epoch)
{
    pthread_mutex_lock(&kfd->fault_lock);
    bool stale = epoch != kfd->fault_epoch && same_fault(fault, &kfd->reported);
    if (!stale && kfd->fault.kind == BW_FAULT_NONE)
        kfd->fault = *fault;
    pthread_mutex_unlock(&kfd->fault_lock);
}

static uint64_t current_epoch(struct bw_kfd_iface *kfd)
{
    pthread_mutex_lock(&kfd->fault_lock);
    uint64_t epoch = kfd->fault_epoch;
    pthread_mutex_unlock(&kfd->fault_lock);
    return epoch;
}

/* One WAIT_EVENTS on any of them: 1 something, 0 timeout, -errno (-EINTR included, the caller knows the
 * deadline). */
static int wait_any(struct bw_kfd_iface *kfd, struct bw_kfd_event_data *events, uint32_t count,
                    uint64_t timeout_ns)
{
    struct bw_sys *sys = kfd->base.sys;
    uint64_t timeout_ms = bw_div_up(timeout_ns, NS_PER_MS);
    struct bw_kfd_wait_events_args args = {
        .events = (uint64_t)(uintptr_t)events,
        .event_count = count,
        .timeout_ms = (uint32_t)(timeout_ms < WAIT_MS_MAX ? timeout_ms : WAIT_MS_MAX),
    };
    int rc = sys->ops->ioctl(sys, kfd->process->fd, BW_KFD_IOC_WAIT_EVENTS, &args);
    if (rc < 0)
        return rc;
    if (args.result == BW_KFD_WAIT_FAIL)
        return -EIO;
    return args.result == BW_KFD_WAIT_COMPLETE;
}

/* Makes the sticky event anew, which clears it. */
static int renew_hw_event(struct bw_kfd_iface *kfd)
{
    uint32_t fresh = 0;
    int rc = create_fault_event(kfd, BW_KFD_EVENT_HW_EXCEPTION, false, &fresh, NULL);
    if (rc)
        return rc;
    pthread_mutex_lock(&kfd->fault_lock);
    uint32_t old = kfd->hw_event;
    kfd->hw_event = fresh;
    kfd->hw_renewals++;
    pthread_mutex_unlock(&kfd->fault_lock);
    destroy_event(kfd, &old);
    return 0;
}

/* The sticky event, and which of them it is: the kernel gives ids of destroyed events out again. */
static uint32_t hw_event_of(struct bw_kfd_iface *kfd, uint64_t *renewals)
{
    pthread_mutex_lock(&kfd->fault_lock);
    uint32_t event = kfd->hw_event;
    *renewals = kfd->hw_renewals;
    pthread_mutex_unlock(&kfd->fault_lock);
    return event;
}

static bool hw_event_renewed(struct bw_kfd_iface *kfd, uint64_t since)
{
    uint64_t renewals;
    (void)hw_event_of(kfd, &renewals);
    return renewals != since;
}

/* Asks about hardware exceptions alone. 0 or -errno. */
static int poll_hw(struct bw_kfd_iface *kfd, uint64_t epoch)
{
    uint64_t renewals;
    struct bw_kfd_event_data event = {.event_id = hw_event_of(kfd, &renewals)};
    int rc = wait_any(kfd, &event, 1, 0);
    if (rc < 0 && hw_event_renewed(kfd, renewals))
        return 0; /* another thread made it anew meanwhile and keeps what it told */
    if (rc == -EINTR)
        return 0; /* sticky: the next look sees it */
    if (rc <= 0)
        return rc;
    bool ours = !event.hw.gpu_id || event.hw.gpu_id == kfd->gpu->gpu_id;
    struct bw_fault fault;
    describe_hw_exception(&event.hw, &fault);
    if (ours)
        note_fault(kfd, &fault, epoch);
    return renew_hw_event(kfd);
}

static void note_memory(struct bw_kfd_iface *kfd, const struct bw_kfd_memory_exception *data, uint64_t epoch)
{
    /* Every memory event of the process hears of every GPU's faults. */
    if (data->gpu_id != kfd->gpu->gpu_id)
        return;
    struct bw_fault fault;
    describe_memory_fault(data, &fault);
    note_fault(kfd, &fault, epoch);
}

static int fail_wait(struct bw_kfd_iface *kfd, int rc, struct bw_err *err)
{
    rc = bw_fail(err, rc, "kfd", "WAIT_EVENTS of %s", kfd->base.properties.node_name);
    if (rc == -EIO || rc == -ENODEV)
        bw_err_hint(err, "the GPU is gone or was reset: see the kernel log (dmesg)");
    return rc;
}

int bw_kfd_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    struct bw_sys *sys = iface->sys;
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (rc)
        return rc;
    bool blind = !kfd->mailbox_va && timeout_ns > NO_PAGE_WAIT_NS;
    uint64_t start = sys->ops->clock_ns(sys), epoch = current_epoch(kfd);
    uint64_t left = blind ? NO_PAGE_WAIT_NS : timeout_ns, limit = left;
    for (;;) {
        uint64_t renewals;
        uint32_t hw_event = hw_event_of(kfd, &renewals);
        struct bw_kfd_event_data events[] = {
            {.event_id = kfd->signal_event}, {.event_id = kfd->memory_event}, {.event_id = hw_event}};
        rc = wait_any(kfd, events, BW_COUNT_OF(events), left);
        if (rc > 0) {
            note_memory(kfd, &events[1].memory, epoch);
            int hw_rc = poll_hw(kfd, epoch);
            return hw_rc < 0 ? fail_wait(kfd, hw_rc, err) : 1;
        }
        /* Another thread met a hardware exception and made that event anew: the kernel fails waits for the
         * old one. What it met is to be asked for. */
        if ((rc == -EIO || rc == -EINVAL) && hw_event_renewed(kfd, renewals))
            return 1;
        if (rc < 0 && rc != -EINTR)
            return fail_wait(kfd, rc, err);
        uint64_t elapsed = sys->ops->clock_ns(sys) - start;
        if (rc == 0 || elapsed >= limit)
            return blind;
        left = limit - elapsed;
    }
}

int bw_kfd_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    memset(fault, 0, sizeof *fault);
    int rc = bw_kfd_check_fork(kfd->process, err);
    if (rc)
        return rc;
    uint64_t epoch = current_epoch(kfd);
    struct bw_kfd_event_data event = {.event_id = kfd->memory_event};
    rc = wait_any(kfd, &event, 1, 0);
    if (rc > 0)
        note_memory(kfd, &event.memory, epoch);
    if (rc >= 0 || rc == -EINTR)
        rc = poll_hw(kfd, epoch);
    if (rc < 0 && rc != -EIO && rc != -ENODEV)
        return fail_wait(kfd, rc, err);
    pthread_mutex_lock(&kfd->fault_lock);
    *fault = kfd->fault;
    if (rc < 0 && fault->kind == BW_FAULT_NONE) {
        fault->kind = BW_FAULT_LOST;
        snprintf(fault->text, sizeof fault->text,
                 "the GPU is gone: the kernel driver no longer answers for it");
    }
    if (fault->kind != BW_FAULT_NONE) {
        kfd->fault_epoch++;
        kfd->reported = *fault;
        kfd->fault.kind = BW_FAULT_NONE;
    }
    pthread_mutex_unlock(&kfd->fault_lock);
    return 0;
}
