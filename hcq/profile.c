/* Profiles: what a link knows of each call, and the stamps of one replay on the host's clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcq/linked.h"

/* What is the same in every replay. Profiles share it with their graph. */
struct shape {
    uint32_t references; /* atomic */
    uint64_t graph;
    struct bw_arena arena;         /* all that follows, and the strings */
    struct bw_call_profile *calls; /* but their times */
    struct bw_profile_dependency *dependencies;
    uint32_t call_count, dependency_count;
};

/* The host's part of a replay. */
struct times {
    uint64_t ticket; /* 0: none, or it was never submitted */
    uint64_t called_ns, free_ns, submitted_ns;
};

struct bw_linked_profile {
    struct shape *shape;
    struct bw_sys *sys;
    struct bw_encoded_stamp *stamps; /* by call */
    struct times times[];            /* by instance */
};

struct taken {
    struct bw_profile profile; /* first */
    struct shape *shape;
    struct bw_call_profile calls[];
};

const char *bw_profile_order_name(enum bw_profile_order order)
{
    static const char *const names[] = {"queue", "device", "host", "given"};
    return names[order];
}

static void shape_release(struct shape *shape)
{
    if (!shape || __atomic_sub_fetch(&shape->references, 1, __ATOMIC_ACQ_REL))
        return;
    bw_arena_free(&shape->arena);
    free(shape);
}

/* ---- when a graph is linked ---- */

struct maker {
    struct shape *shape;
    const struct bw_plan *plan;
    struct bw_map names;       /* kernel -> its name, once */
    const char **queue_labels; /* by queue of the plan */
    const char **device_names; /* by device of the context */
    bool failed;
};

static const char *string_keep(struct maker *maker, const char *text)
{
    const char *kept = bw_arena_string(&maker->shape->arena, text);
    maker->failed |= !kept;
    return kept;
}

static const char *kernel_name(struct maker *maker, const struct bw_kernel *kernel)
{
    uint64_t kept;
    if (bw_map_get(&maker->names, (uintptr_t)kernel, &kept))
        return (const char *)(uintptr_t)kept;
    const char *name = string_keep(maker, kernel->info.name);
    maker->failed |= bw_map_set(&maker->names, (uintptr_t)kernel, (uintptr_t)name) != 0;
    return name;
}

static const char *device_name(struct maker *maker, const struct bw_hcq_device *device)
{
    const char **name = &maker->device_names[device->index];
    if (!*name)
        *name = string_keep(maker, device->device->info.name);
    return *name;
}

static const char *queue_label(struct maker *maker, uint32_t number)
{
    const struct bw_hcq_queue *queue = maker->plan->queues.data[number].hcq;
    const struct bw_device_caps *caps = &queue->owner->device->caps;
    const char **label = &maker->queue_labels[number];
    char text[sizeof queue->label + 8];
    bool xgmi = queue->kind == BW_QUEUE_COPY && queue->index >= caps->copy_queues - caps->xgmi_copy_queues;
    if (!*label) {
        snprintf(text, sizeof text, "%s%s", queue->label, xgmi ? " (XGMI)" : "");
        *label = string_keep(maker, text);
    }
    return *label;
}

/* Whose memory the bytes are in. A GPU's BW_BUFFER_HOST memory is the host's. */
static const char *memory_name(struct maker *maker, const struct bw_place *place, const struct bw_call *call)
{
    const struct bw_hcq_device *owner = bw_plan_place_owner(maker->plan, place, call);
    bool host = place->block && place->block->memory.flags & BW_BUFFER_HOST;
    return host && !owner->device->caps.host_addressable ? "host" : device_name(maker, owner);
}

static void bytes_count(const struct bw_call *call, struct bw_call_profile *profile)
{
    struct bw_call_range range;
    for (uint32_t at = 0; bw_call_range_next(call, &at, &range);) {
        profile->bytes_read += range.access & BW_ACCESS_READ ? range.size_bytes : 0;
        profile->bytes_written += range.access & BW_ACCESS_WRITE ? range.size_bytes : 0;
    }
}

static void call_make(struct maker *maker, const struct bw_operation *operation,
                      struct bw_call_profile *profile)
{
    const struct bw_call *call = &maker->plan->graph->calls.data[operation->call];
    const struct bw_plan_queue *queue = &maker->plan->queues.data[operation->queue];
    *profile = (struct bw_call_profile){.name = "copy",
                                        .device = device_name(maker, queue->hcq->owner),
                                        .device_number = queue->hcq->owner->index,
                                        .queue_label = queue_label(maker, operation->queue),
                                        .queue = queue->hcq->number,
                                        .call = operation->call,
                                        .copy = call->kernel == NULL};
    if (call->kernel) {
        profile->name = kernel_name(maker, call->kernel);
        profile->flops = call->launch.flops;
        bytes_count(call, profile);
    } else {
        profile->source = memory_name(maker, &operation->source, call);
        profile->target = memory_name(maker, &operation->target, call);
        profile->bytes_read = profile->bytes_written = operation->size_bytes;
    }
}

static int shape_fill(struct shape *shape, const struct bw_plan *plan)
{
    struct maker maker = {.shape = shape, .plan = plan};
    shape->calls = bw_arena_alloc(&shape->arena, plan->operations.count * sizeof *shape->calls);
    shape->dependency_count = (uint32_t)plan->dependencies.count;
    shape->dependencies = bw_arena_copy(&shape->arena, plan->dependencies.data,
                                        plan->dependencies.count * sizeof *shape->dependencies);
    maker.queue_labels = calloc(plan->queues.count + 1, sizeof *maker.queue_labels);
    maker.device_names = calloc(BW_HCQ_DEVICES_MAX, sizeof *maker.device_names);
    maker.failed = !shape->calls || !shape->dependencies || !maker.queue_labels || !maker.device_names;
    for (size_t i = 0; i < plan->operations.count && !maker.failed; i++)
        call_make(&maker, &plan->operations.data[i], &shape->calls[shape->call_count++]);
    free(maker.queue_labels);
    free(maker.device_names);
    bw_map_free(&maker.names);
    return maker.failed ? -ENOMEM : 0;
}

static int profile_fill(struct bw_linked_graph *linked, const struct bw_plan *plan,
                        const struct bw_encoded *encoded)
{
    struct bw_linked_profile *profile =
        calloc(1, sizeof *profile + linked->instance_count * sizeof profile->times[0]);
    size_t stamp_bytes = encoded->stamps.count * sizeof *profile->stamps;
    if (!profile)
        return -ENOMEM;
    linked->profile = profile;
    profile->sys = linked->device_count ? linked->devices[0].hcq->sys : linked->ctx->sys;
    profile->stamps = malloc(stamp_bytes + 1);
    profile->shape = calloc(1, sizeof *profile->shape);
    if (!profile->stamps || !profile->shape)
        return -ENOMEM;
    if (stamp_bytes)
        memcpy(profile->stamps, encoded->stamps.data, stamp_bytes);
    profile->shape->references = 1;
    profile->shape->graph = __atomic_add_fetch(&linked->ctx->profile_serial, 1, __ATOMIC_RELAXED);
    return shape_fill(profile->shape, plan);
}

int bw_profile_make(struct bw_linked_graph *linked, const struct bw_plan *plan,
                    const struct bw_encoded *encoded, struct bw_err *err)
{
    if (!plan->profile)
        return 0;
    if (profile_fill(linked, plan, encoded))
        return bw_fail(err, -ENOMEM, "graph", "profile of %zu calls", plan->operations.count);
    int rc = 0;
    for (uint32_t i = 0; i < linked->device_count && !rc; i++) {
        if (linked->devices[i].memory)
            rc = bw_hcq_clock_align(linked->devices[i].hcq, err);
    }
    return rc;
}

void bw_profile_free(struct bw_linked_graph *linked)
{
    if (!linked->profile)
        return;
    shape_release(linked->profile->shape);
    free(linked->profile->stamps);
    free(linked->profile);
    linked->profile = NULL;
}

/* ---- when it is replayed ---- */

uint64_t bw_profile_now(const struct bw_linked_graph *linked)
{
    struct bw_sys *sys = linked->profile->sys;
    return sys->ops->clock_ns(sys);
}

void bw_profile_begin(struct bw_linked_graph *linked, uint32_t instance, uint64_t called_ns)
{
    linked->profile->times[instance] = (struct times){0, called_ns, bw_profile_now(linked), 0};
}

void bw_profile_end(struct bw_linked_graph *linked, uint32_t instance)
{
    linked->profile->times[instance].ticket = linked->replay_count;
    linked->profile->times[instance].submitted_ns = bw_profile_now(linked);
}

/* ---- when it is looked at ---- */

static uint64_t stamp_read(const struct bw_linked_device *device, const struct bw_hcq_clock *clock,
                           uint32_t instance, uint32_t stamp)
{
    uint64_t ticks;
    memcpy(&ticks, device->words + instance * device->stride_words + device->stamp_word + stamp * 2ull,
           sizeof ticks);
    return bw_hcq_clock_host_ns(clock, device->hcq->device->caps.timestamp_hz, ticks);
}

/* The first `capacity` calls with their times. Gives back how far these may be off. */
static uint64_t calls_read(const struct bw_linked_graph *linked, uint32_t instance,
                           struct bw_call_profile *calls, uint32_t capacity)
{
    const struct bw_linked_profile *profile = linked->profile;
    struct bw_hcq_clock clocks[BW_HCQ_DEVICES_MAX]; /* by device of the graph */
    uint64_t error_ns = 0;
    for (uint32_t i = 0; i < linked->device_count; i++) {
        clocks[i] = bw_hcq_clock_get(linked->devices[i].hcq);
        uint64_t previous_ns = clocks[i].previous.error_ns, last_ns = clocks[i].last.error_ns;
        error_ns = previous_ns > error_ns ? previous_ns : error_ns;
        error_ns = last_ns > error_ns ? last_ns : error_ns;
    }
    for (uint32_t i = 0; i < profile->shape->call_count && i < capacity; i++) {
        const struct bw_encoded_stamp *stamps = &profile->stamps[i];
        uint32_t device = linked->queues[stamps->queue].device;
        calls[i] = profile->shape->calls[i];
        calls[i].begin_ns = stamp_read(&linked->devices[device], &clocks[device], instance, stamps->stamp);
        calls[i].end_ns = stamp_read(&linked->devices[device], &clocks[device], instance, stamps->stamp + 1);
    }
    return error_ns;
}

static void clocks_refresh(const struct bw_linked_graph *linked)
{
    for (uint32_t i = 0; i < linked->device_count; i++) {
        if (linked->devices[i].memory)
            bw_hcq_clock_refresh(linked->devices[i].hcq);
    }
}

static int ticket_refuse(const struct bw_linked_graph *linked, uint64_t ticket, struct bw_err *err)
{
    bw_fail(err, -ENOENT, "graph", "profile of replay %llu", (unsigned long long)ticket);
    bw_err_expected(err, "one of the last %u of %llu replays", linked->instance_count,
                    (unsigned long long)linked->replay_count);
    bw_err_hint(err, "more instances keep more (bw_link_options)");
    return -ENOENT;
}

int bw_linked_graph_profile_take(struct bw_linked_graph *linked, uint64_t ticket, struct bw_profile **out,
                                 struct bw_err *err)
{
    if (!linked->profile)
        return bw_fail(err, -ENOTSUP, "graph", "profile of a graph that was linked without");
    struct shape *shape = linked->profile->shape;
    ticket = ticket ? ticket : linked->replay_count;
    if (!ticket)
        return ticket_refuse(linked, ticket, err);
    int rc = bw_linked_graph_wait(linked, ticket, err);
    if (rc)
        return rc;
    uint32_t instance = (uint32_t)((ticket - 1) % linked->instance_count);
    const struct times *times = &linked->profile->times[instance];
    if (times->ticket != ticket)
        return ticket_refuse(linked, ticket, err);
    struct taken *taken = calloc(1, sizeof *taken + shape->call_count * sizeof taken->calls[0]);
    if (!taken)
        return bw_fail(err, -ENOMEM, "graph", "profile of %u calls", shape->call_count);
    clocks_refresh(linked);
    taken->profile = (struct bw_profile){.graph = shape->graph,
                                         .ticket = ticket,
                                         .called_ns = times->called_ns,
                                         .free_ns = times->free_ns,
                                         .submitted_ns = times->submitted_ns,
                                         .calls = taken->calls,
                                         .call_count = shape->call_count,
                                         .dependencies = shape->dependencies,
                                         .dependency_count = shape->dependency_count};
    taken->profile.clock_error_ns = calls_read(linked, instance, taken->calls, shape->call_count);
    taken->shape = shape;
    __atomic_add_fetch(&shape->references, 1, __ATOMIC_RELAXED);
    *out = &taken->profile;
    return 0;
}

void bw_profile_destroy(struct bw_profile *profile)
{
    struct taken *taken = (struct taken *)profile;
    if (!taken)
        return;
    shape_release(taken->shape);
    free(taken);
}

static bool replay_finished(const struct bw_linked_graph *linked, uint32_t instance)
{
    for (uint32_t i = 0; i < linked->waited_count; i++) {
        if (linked->waited[i] &&
            !bw_point_reached(bw_hcq_queue_now(linked->waited[i]), bw_instance_done(linked, instance)[i]))
            return false;
    }
    return true;
}

static bool replay_well(const struct bw_linked_graph *linked, uint64_t ticket)
{
    uint32_t instance = (uint32_t)((ticket - 1) % linked->instance_count);
    return linked->profile->times[instance].ticket == ticket && replay_finished(linked, instance) &&
           bw_losses_check(linked, ticket, NULL) == 0 && bw_losses_look(linked, instance, NULL) == 0;
}

uint32_t bw_linked_graph_profile(struct bw_linked_graph *linked, struct bw_call_profile *calls,
                                 uint32_t capacity)
{
    uint64_t ticket = linked->replay_count;
    uint64_t oldest = ticket > linked->instance_count ? ticket - linked->instance_count : 0;
    while (linked->profile && ticket > oldest && !replay_well(linked, ticket))
        ticket--;
    if (!linked->profile || ticket == oldest)
        return 0;
    calls_read(linked, (uint32_t)((ticket - 1) % linked->instance_count), calls, capacity);
    return linked->profile->shape->call_count;
}
