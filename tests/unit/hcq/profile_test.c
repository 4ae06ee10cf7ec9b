/* Goal: profiles say when calls ran, on the host's clock and in the order that their dependencies want, what
 * they moved and what kept them waiting; each ticket its own; and graphs linked without cost what they did.
 */
#include "tests/unit/hcq/mock_rig.h"

#include <errno.h>

#include <bellwire/profile.h>

#include "drivers/host/packet.h"
#include "hcq/linked.h"
#include "tests/trace_check.h"

static const char *const on_host[] = {"host:0", NULL};
static const char *const on_hosts[] = {"host:0", "host:1", NULL};
static const char *const on_null[] = {"null", NULL};

enum { BYTES = 4096, VRAM_BYTES = 64 << 20 };

static const struct bw_link_options profiled = {.size = sizeof profiled, .profile = true};

/* ---- a graph over all devices ---- */

/* Per device a state and an inbox; mix, send to the next device, mix. */
struct ring {
    struct rig *rig;
    struct bw_buffer *state[RIG_DEVICES_MAX], *inbox[RIG_DEVICES_MAX];
};

static void ring_open(struct ring *ring, struct rig *rig)
{
    *ring = (struct ring){.rig = rig};
    for (uint32_t i = 0; i < rig->device_count; i++) {
        ring->state[i] = rig_buffer(rig, i, BYTES, 0);
        ring->inbox[i] = rig_buffer(rig, i, BYTES, 0);
    }
}

static void ring_close(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->rig->device_count; i++) {
        bw_buffer_destroy(ring->state[i]);
        bw_buffer_destroy(ring->inbox[i]);
    }
}

static struct bw_graph *ring_graph(struct ring *ring)
{
    struct rig *rig = ring->rig;
    struct bw_graph *graph = rig_graph(rig);
    uint32_t count = rig->device_count;
    for (uint32_t i = 0; i < count; i++)
        BW_OK(mix_add(rig, graph, i, range_all(ring->state[i]), range_all(ring->inbox[i]), 1, -1), &rig->err);
    for (uint32_t i = 0; i < count; i++)
        BW_OK(bw_graph_copy(graph, rig->devices[i], range_all(ring->inbox[(i + 1) % count]),
                            range_all(ring->state[i]), &rig->err),
              &rig->err);
    for (uint32_t i = 0; i < count; i++)
        BW_OK(mix_add(rig, graph, i, range_all(ring->state[i]), range_all(ring->inbox[i]), 2, -1), &rig->err);
    return graph;
}

static struct bw_linked_graph *link_with(struct rig *rig, struct bw_graph *graph,
                                         const struct bw_link_options *options)
{
    struct bw_linked_graph *linked = NULL;
    BW_OK(bw_graph_link(graph, options, &linked, &rig->err), &rig->err);
    bw_graph_destroy(graph);
    return linked;
}

static struct bw_linked_graph *ring_link(struct ring *ring)
{
    return link_with(ring->rig, ring_graph(ring), &profiled);
}

static uint64_t replay(struct rig *rig, struct bw_linked_graph *linked)
{
    uint64_t ticket = 0;
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    return ticket;
}

static struct bw_profile *take(struct rig *rig, struct bw_linked_graph *linked, uint64_t ticket)
{
    struct bw_profile *profile = NULL;
    BW_OK(bw_linked_graph_profile_take(linked, ticket, &profile, &rig->err), &rig->err);
    return profile;
}

static int take_refused(struct rig *rig, struct bw_linked_graph *linked, uint64_t ticket)
{
    struct bw_profile *profile = NULL;
    int rc = bw_linked_graph_profile_take(linked, ticket, &profile, &rig->err);
    BW_TRUE(profile == NULL);
    return rc;
}

/* ---- times ---- */

static bool same_queue(const struct bw_call_profile *a, const struct bw_call_profile *b)
{
    return a->device_number == b->device_number && a->queue == b->queue;
}

/* Of two devices each may be off by the error. */
static void times_are_in_order(const struct bw_profile *profile)
{
    for (uint32_t i = 0; i < profile->call_count; i++) {
        const struct bw_call_profile *call = &profile->calls[i];
        BW_TRUE(call->begin_ns <= call->end_ns);
        for (uint32_t k = i + 1; k < profile->call_count; k++) {
            if (same_queue(call, &profile->calls[k]))
                BW_TRUE(profile->calls[k].begin_ns >= call->end_ns);
        }
    }
    for (uint32_t i = 0; i < profile->dependency_count; i++) {
        const struct bw_profile_dependency *dependency = &profile->dependencies[i];
        const struct bw_call_profile *consumer = &profile->calls[dependency->consumer],
                                     *producer = &profile->calls[dependency->producer];
        bool one_clock = consumer->device_number == producer->device_number;
        uint64_t slack_ns = one_clock ? 0 : 2 * profile->clock_error_ns;
        BW_TRUE(consumer->begin_ns + slack_ns >= producer->end_ns);
        BW_EQ(dependency->order == BW_PROFILE_ORDER_QUEUE, same_queue(consumer, producer));
    }
}

static void times_lie_within(const struct bw_profile *profile, uint64_t begin_ns, uint64_t end_ns)
{
    BW_TRUE(begin_ns <= profile->called_ns && profile->called_ns <= profile->free_ns &&
            profile->free_ns <= profile->submitted_ns && profile->submitted_ns <= end_ns);
    for (uint32_t i = 0; i < profile->call_count; i++) {
        BW_TRUE(profile->calls[i].begin_ns + profile->clock_error_ns >= profile->free_ns);
        BW_TRUE(profile->calls[i].end_ns <= end_ns + profile->clock_error_ns);
    }
}

/* exact: the devices tell time by the host's clock itself. */
static void ring_runs(struct rig *rig, struct bw_sys *sys, bool exact)
{
    struct ring ring;
    ring_open(&ring, rig);
    struct bw_linked_graph *linked = ring_link(&ring);
    BW_EQ(take_refused(rig, linked, 0), -ENOENT); /* nothing has run */
    for (int i = 0; i < 4; i++) {
        uint64_t begin_ns = sys->ops->clock_ns(sys), ticket = replay(rig, linked);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
        uint64_t end_ns = sys->ops->clock_ns(sys);
        struct bw_profile *profile = take(rig, linked, ticket);
        if (!profile)
            break;
        BW_EQ(profile->ticket, ticket);
        BW_EQ(profile->call_count, 3 * rig->device_count);
        times_are_in_order(profile);
        times_lie_within(profile, begin_ns, end_ns);
        if (exact)
            BW_EQ(profile->clock_error_ns, 0);
        else
            BW_TRUE(profile->clock_error_ns > 0);
        bw_profile_destroy(profile);
    }
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
}

static void consumers_begin_after_producers(void)
{
    static const char *const *const places[] = {on_host, on_hosts, on_null};
    for (size_t i = 0; i < BW_COUNT_OF(places); i++) {
        struct rig rig;
        if (!rig_open(&rig, NULL, places[i]))
            return;
        ring_runs(&rig, bw_ctx_sys(rig.ctx), true);
        rig_close(&rig);
    }
}

static void consumers_begin_after_producers_on_gpus(void)
{
    for (int kind = RIG_STEPPED; kind <= RIG_THREADED; kind++) {
        struct machine machine;
        if (!machine_open(&machine, (enum rig_machine)kind, 2, VRAM_BYTES, 0))
            return;
        ring_runs(&machine.rig, machine.sys, false);
        machine_close(&machine);
    }
}

/* Two chains of kernels that each take a while run beside each other. */
static void overlap_is_seen(void)
{
    enum { LINKS = 4 };
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffers[2] = {rig_buffer(rig, 0, BYTES, 0), rig_buffer(rig, 0, BYTES, 0)};
    struct bw_graph *graph = rig_graph(rig);
    for (int i = 0; i < LINKS; i++) {
        for (int k = 0; k < 2; k++)
            BW_OK(mix_add(rig, graph, 0, range_all(buffers[k]), range_all(buffers[k]), 1, -1), &rig->err);
    }
    struct bw_linked_graph *linked = link_with(rig, graph, &profiled);
    struct bw_profile *profile = take(rig, linked, replay(rig, linked));
    if (profile && BW_EQ(profile->call_count, 2 * LINKS)) {
        BW_STR(profile->calls[0].queue_label, "compute queue 0");
        BW_STR(profile->calls[1].queue_label, "compute queue 1");
        BW_EQ(profile->calls[1].queue, 1);
        BW_TRUE(profile->calls[1].begin_ns < profile->calls[2 * LINKS - 2].end_ns &&
                profile->calls[0].begin_ns < profile->calls[2 * LINKS - 1].end_ns);
    }
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    for (int k = 0; k < 2; k++)
        bw_buffer_destroy(buffers[k]);
    machine_close(&machine);
}

/* A clock that runs 100 ppm fast, and one point of it far off. */
static void rates_are_measured(void)
{
    struct bw_hcq_clock clock = {{1000, 5000000000, 10}, {1000 + 200020000, 7000000000, 10}, true};
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000), 5000000000);
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 200020000), 7000000000);
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 100010000), 6000000000);
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 300030000), 8000000000); /* 2 s told the rate */
    clock.last = clock.previous;
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 100000000), 6000000000); /* nominal */
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 900), 5000000000 - 1000);
    clock.last = (struct bw_clock_point){1000 + 1000, 5000020000, 10}; /* half the rate, by 10 us */
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 500), 5000010000);
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, 1000 + 2000), 5000030000);
    clock.previous.ticks = 1ull << 62; /* no overflow */
    clock.last = (struct bw_clock_point){(1ull << 62) + 100000000, 6000000000, 10};
    BW_EQ(bw_hcq_clock_host_ns(&clock, 100000000, (1ull << 62) + 50000000), 5500000000);
}

/* ---- tickets ---- */

static void every_ticket_has_its_own(void)
{
    struct rig rig;
    struct ring ring;
    struct bw_profile *profiles[3] = {NULL};
    uint64_t tickets[3];
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    ring_open(&ring, &rig);
    struct bw_linked_graph *linked = ring_link(&ring);
    for (int i = 0; i < 3; i++)
        tickets[i] = replay(&rig, linked);
    for (int i = 0; i < 3; i++)
        profiles[i] = take(&rig, linked, tickets[i]);
    for (int i = 0; i < 3 && profiles[i]; i++) {
        BW_EQ(profiles[i]->ticket, tickets[i]);
        times_are_in_order(profiles[i]);
        for (uint32_t k = 0; i > 0 && k < profiles[i]->call_count; k++)
            BW_TRUE(profiles[i]->calls[k].begin_ns >= profiles[i - 1]->calls[k].end_ns);
    }
    uint64_t fourth = replay(&rig, linked);
    BW_EQ(take_refused(&rig, linked, tickets[0]), -ENOENT); /* the fourth took its instance */
    BW_TRUE(error_says(&rig.err, "last 3 of 4"));
    BW_EQ(take_refused(&rig, linked, fourth + 1), -EINVAL);
    struct bw_profile *last = take(&rig, linked, 0);
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
    rig_close(&rig);
    if (last && BW_EQ(last->ticket, 4)) { /* lives on without graph and devices */
        BW_STR(last->calls[0].name, "mix");
        BW_STR(last->calls[0].device, "host:0");
        BW_STR(last->calls[3].queue_label, "copy queue 0");
    }
    bw_profile_destroy(last);
    for (int i = 0; i < 3; i++)
        bw_profile_destroy(profiles[i]);
}

static void without_profile_there_is_none(void)
{
    struct rig rig;
    struct ring ring;
    struct bw_call_profile calls[1];
    if (!rig_open(&rig, NULL, on_null))
        return;
    ring_open(&ring, &rig);
    struct bw_linked_graph *linked = rig_link(&rig, ring_graph(&ring));
    uint64_t ticket = replay(&rig, linked);
    BW_EQ(take_refused(&rig, linked, ticket), -ENOTSUP);
    BW_EQ(bw_linked_graph_profile(linked, calls, 1), 0);
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
    rig_close(&rig);
}

static void lost_replays_have_none(void)
{
    struct machine machine;
    struct ring ring;
    struct bw_call_profile calls[3];
    uint64_t bad = 0;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    ring_open(&ring, rig);
    struct bw_linked_graph *linked = ring_link(&ring);
    uint64_t good = replay(rig, linked);
    struct bw_profile *before = take(rig, linked, good);
    BW_OK(bw_mock_fault_add(machine.sys, "mec:hang", &rig->err), &rig->err);
    BW_OK(bw_linked_graph_replay(linked, NULL, &bad, &rig->err), &rig->err);
    BW_EQ(take_refused(rig, linked, bad), -ETIMEDOUT);
    bw_mock_fault_clear(machine.sys);
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    BW_EQ(take_refused(rig, linked, bad), -ECANCELED);
    if (BW_EQ(bw_linked_graph_profile(linked, calls, 3), 3) && before) /* the last that went well */
        BW_NEAR((double)calls[2].end_ns, (double)before->calls[2].end_ns, (double)before->clock_error_ns);
    struct bw_profile *after = take(rig, linked, replay(rig, linked));
    if (after)
        times_are_in_order(after);
    bw_profile_destroy(before);
    bw_profile_destroy(after);
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
    machine_close(&machine);
}

/* ---- what a call was ---- */

static void calls_say_what_they_moved(void)
{
    struct rig rig;
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    struct bw_buffer *a = rig_buffer(&rig, 0, BYTES, 0), *b = rig_buffer(&rig, 1, BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    struct bw_range half = {a, 0, 0, BYTES / 2};
    struct bw_argument arguments[] = {argument_range(half, BW_ACCESS_READ | BW_ACCESS_WRITE),
                                      argument_range(range_all(a), BW_ACCESS_READ), argument_value(BYTES / 2),
                                      argument_value(BYTES), argument_value(1)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 5,
                               .flops = 12345};
    BW_OK(bw_graph_kernel(graph, rig_kernel(&rig, 0, "mix"), &launch, &rig.err), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_all(b), range_all(a), &rig.err), &rig.err);
    struct bw_linked_graph *linked = link_with(&rig, graph, &profiled);
    struct bw_profile *profile = take(&rig, linked, replay(&rig, linked));
    if (profile && BW_EQ(profile->call_count, 2)) {
        const struct bw_call_profile *kernel = &profile->calls[0], *copy = &profile->calls[1];
        BW_EQ(kernel->copy, false);
        BW_EQ(kernel->bytes_read, BYTES / 2 + BYTES);
        BW_EQ(kernel->bytes_written, BYTES / 2);
        BW_NEAR(kernel->flops, 12345, 0);
        BW_TRUE(kernel->source == NULL && kernel->target == NULL);
        BW_EQ(copy->copy, true);
        BW_EQ(copy->call, 1);
        BW_EQ(copy->bytes_read, BYTES);
        BW_EQ(copy->bytes_written, BYTES);
        BW_STR(copy->source, "host:0");
        BW_STR(copy->target, "host:1");
        BW_STR(copy->queue_label, "copy queue 0");
    }
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    rig_close(&rig);
}

/* Copies between GPUs of one hive go by engines of their own. */
static void engines_of_links_are_named(void)
{
    struct bw_ctx *ctx;
    struct bw_device *devices[2] = {NULL};
    struct bw_buffer *buffers[2] = {NULL};
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    struct bw_profile *profile = NULL;
    struct bw_err err = {0};
    uint64_t ticket;
    static const char *const names[] = {"mockkfd+amd:0@gfx1100*2,vram=64M,xgmi=2",
                                        "mockkfd+amd:1@gfx1100*2,vram=64M,xgmi=2"};
    BW_OK(bw_ctx_create(NULL, &ctx, &err), &err);
    for (int i = 0; i < 2; i++) {
        if (!BW_OK(bw_device_open(ctx, names[i], &devices[i], &err), &err))
            return;
        BW_OK(bw_buffer_create(devices[i], BYTES, 0, &buffers[i], &err), &err);
    }
    BW_OK(bw_graph_create(ctx, &graph, &err), &err);
    BW_OK(bw_graph_copy(graph, devices[0], range_all(buffers[1]), range_all(buffers[0]), &err), &err);
    BW_OK(bw_graph_link(graph, &profiled, &linked, &err), &err);
    bw_graph_destroy(graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &err), &err);
    if (BW_OK(bw_linked_graph_profile_take(linked, ticket, &profile, &err), &err)) {
        BW_TRUE(strstr(profile->calls[0].queue_label, "copy queue ") == profile->calls[0].queue_label);
        BW_TRUE(strstr(profile->calls[0].queue_label, " (XGMI)") != NULL);
        BW_STR(profile->calls[0].source, bw_device_info(devices[0])->name);
        BW_STR(profile->calls[0].target, bw_device_info(devices[1])->name);
    }
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    for (int i = 0; i < 2; i++) {
        bw_buffer_destroy(buffers[i]);
        bw_device_close(devices[i]);
    }
    bw_ctx_destroy(ctx);
}

/* Names need not differ: two of these are both "null". */
static void devices_are_told_apart(void)
{
    static const char *const on_nulls[] = {"null", "null", NULL};
    struct rig rig;
    struct ring ring;
    struct bw_profile_report *report = NULL;
    if (!rig_open(&rig, NULL, on_nulls))
        return;
    ring_open(&ring, &rig);
    struct bw_linked_graph *linked = ring_link(&ring);
    struct bw_profile *profile = take(&rig, linked, replay(&rig, linked));
    if (profile) {
        BW_STR(profile->calls[0].device, profile->calls[1].device);
        BW_TRUE(profile->calls[0].device_number != profile->calls[1].device_number);
        BW_OK(bw_profile_report_make((const struct bw_profile *const[]){profile}, 1, &report, &rig.err),
              &rig.err);
        BW_EQ(report->queue_count, 4);
    }
    bw_profile_report_destroy(report);
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
    rig_close(&rig);
}

static void disks_are_devices_like_others(void)
{
    static const char path[] = "profile_test.bin";
    struct bw_ctx *ctx;
    struct bw_device *disk = NULL, *host = NULL;
    struct bw_buffer *file = NULL, *memory = NULL;
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    struct bw_profile *profile = NULL;
    struct bw_err err = {0};
    char bytes[BYTES] = "disk";
    uint64_t ticket;
    FILE *made = fopen(path, "w");
    if (!BW_TRUE(made && fwrite(bytes, BYTES, 1, made) == 1 && fclose(made) == 0))
        return;
    BW_OK(bw_ctx_create(NULL, &ctx, &err), &err);
    if (BW_OK(bw_device_open(ctx, "host:0", &host, &err), &err) &&
        BW_OK(bw_device_open(ctx, "disk:profile_test.bin", &disk, &err), &err)) {
        BW_OK(bw_buffer_file(disk, 0, BYTES, &file, &err), &err);
        BW_OK(bw_buffer_create(host, BYTES, 0, &memory, &err), &err);
        BW_OK(bw_graph_create(ctx, &graph, &err), &err);
        BW_OK(bw_graph_copy(graph, disk, range_all(memory), range_all(file), &err), &err);
        BW_OK(bw_graph_link(graph, &profiled, &linked, &err), &err);
        bw_graph_destroy(graph);
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &err), &err);
        if (BW_OK(bw_linked_graph_profile_take(linked, ticket, &profile, &err), &err)) {
            times_are_in_order(profile);
            BW_STR(profile->calls[0].device, "disk:profile_test.bin");
            BW_STR(profile->calls[0].source, "disk:profile_test.bin");
            BW_STR(profile->calls[0].target, "host:0");
            BW_EQ(profile->calls[0].bytes_written, BYTES);
        }
        bw_profile_destroy(profile);
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(file);
        bw_buffer_destroy(memory);
    }
    bw_device_close(disk);
    bw_device_close(host);
    bw_ctx_destroy(ctx);
    remove(path);
}

/* Kernels 0 -> 1 and 0 -> 2 -> 3 on two queues, then 4 after 1 and 3: what keeps each behind the others. */
static void dependencies_say_who_waits(bool device_wait)
{
    struct rig rig;
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    rig.devices[1]->caps.device_wait = device_wait;
    struct bw_buffer *a = rig_buffer(&rig, 0, BYTES, 0), *b = rig_buffer(&rig, 1, BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    BW_OK(mix_add(&rig, graph, 0, range_all(a), range_all(a), 1, -1), &rig.err); /* 0 */
    BW_OK(mix_add(&rig, graph, 0, range_all(a), range_all(a), 1, -1), &rig.err); /* 1: after 0, same queue */
    BW_OK(mix_add(&rig, graph, 1, range_all(b), range_all(a), 1, -1), &rig.err); /* 2: reads 1's */
    BW_OK(mix_add(&rig, graph, 1, range_all(b), range_all(a), 1, -1), &rig.err); /* 3: and again */
    struct bw_linked_graph *linked = link_with(&rig, graph, &profiled);
    struct bw_profile *profile = take(&rig, linked, replay(&rig, linked));
    static const struct bw_profile_dependency expected[] = {{1, 0, BW_PROFILE_ORDER_QUEUE},
                                                            {2, 1, BW_PROFILE_ORDER_DEVICE},
                                                            {3, 1, BW_PROFILE_ORDER_GIVEN},
                                                            {3, 2, BW_PROFILE_ORDER_QUEUE}};
    if (profile && BW_EQ(profile->dependency_count, BW_COUNT_OF(expected))) {
        for (size_t i = 0; i < BW_COUNT_OF(expected); i++) {
            const struct bw_profile_dependency *got = &profile->dependencies[i];
            enum bw_profile_order order = expected[i].order;
            BW_EQ(got->consumer, expected[i].consumer);
            BW_EQ(got->producer, expected[i].producer);
            BW_EQ(got->order,
                  order == BW_PROFILE_ORDER_DEVICE && !device_wait ? BW_PROFILE_ORDER_HOST : order);
        }
        times_are_in_order(profile);
    }
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    rig_close(&rig);
}

static void dependencies_by_devices_and_by_the_host(void)
{
    dependencies_say_who_waits(true);
    dependencies_say_who_waits(false);
}

/* ---- no cost when off ---- */

typedef BW_VEC(uint32_t) words_t;

/* PM4 type 3 of a compute queue; the filler is one word long. */
static uint32_t packet_words(bool amd, const uint32_t *words)
{
    if (!amd)
        return bw_host_header_words(*words);
    return *words == 0xffff1000 ? 1 : (*words >> 16 & 0x3fff) + 2;
}

static bool packet_is_stamp(const struct bw_encoded *encoded, const struct bw_encoder *commands,
                            uint32_t begin, uint32_t end)
{
    bool stamp = false;
    for (uint32_t i = 0; i < commands->patch_count; i++) {
        const struct bw_patch *patch = &commands->patches[i];
        stamp |= patch->word >= begin && patch->word < end &&
                 encoded->symbols.data[patch->symbol].kind == BW_SYMBOL_STAMPS;
    }
    return stamp;
}

static bool packet_is_filler(bool amd, const uint32_t *words)
{
    return amd && (*words >> 8 & 0xff) == 0x10;
}

/* The packets of a command buffer but for stamps and what pads it. Returns the number of stamps. */
static uint32_t words_without_stamps(const struct bw_encoded *encoded, const struct bw_encoder *commands,
                                     const struct bw_step *step, bool amd, words_t *out)
{
    uint32_t stamps = 0, end = step->word + step->word_count;
    for (uint32_t at = step->word, next; at < end; at = next) {
        next = at + packet_words(amd, commands->words + at);
        if (!BW_TRUE(next > at && next <= end))
            return stamps;
        bool stamp = packet_is_stamp(encoded, commands, at, next);
        stamps += stamp;
        for (uint32_t i = at; i < next && !stamp && !packet_is_filler(amd, commands->words + at); i++)
            BW_EQ(bw_vec_push(out, commands->words[i]), 0);
    }
    return stamps;
}

/* Of all compute queues, and of the CPU's copy queues. */
static uint32_t words_of(const struct bw_plan *plan, const struct bw_encoded *encoded, bool amd, words_t *out)
{
    uint32_t stamps = 0;
    for (size_t i = 0; i < encoded->steps.count; i++) {
        const struct bw_step *step = &encoded->steps.data[i];
        if (step->kind == BW_STEP_SUBMIT &&
            (!amd || plan->queues.data[step->queue].hcq->kind == BW_QUEUE_COMPUTE))
            stamps += words_without_stamps(encoded, &encoded->queues[step->queue].commands, step, amd, out);
    }
    return stamps;
}

static void profile_adds_stamps_and_nothing_else(struct rig *rig, bool amd)
{
    struct ring ring;
    words_t words[2] = {{0}, {0}};
    struct bw_graph_stats stats[2] = {{0}};
    uint32_t stamps[2] = {0}, operations = 0;
    ring_open(&ring, rig);
    struct bw_graph *graph = ring_graph(&ring);
    for (int profile = 0; profile < 2; profile++) {
        struct bw_plan plan;
        struct bw_encoded encoded;
        if (!BW_OK(bw_plan_make(graph, profile, &plan, &rig->err), &rig->err))
            break;
        if (BW_OK(bw_plan_encode(&plan, &encoded, &rig->err), &rig->err)) {
            stamps[profile] = words_of(&plan, &encoded, amd, &words[profile]);
            stats[profile] = encoded.stats;
            operations = (uint32_t)plan.operations.count;
            BW_EQ(encoded.stamps.count, profile ? operations : 0);
            BW_EQ(plan.dependencies.count != 0, profile);
            bw_encoded_free(&plan, &encoded);
        }
        bw_plan_free(&plan);
    }
    BW_EQ(stamps[0], 0);
    BW_EQ(stamps[1], 2 * (amd ? 2 * rig->device_count : operations)); /* two kernels on each */
    if (BW_EQ(words[1].count, words[0].count) && words[0].count)
        BW_BYTES(words[1].data, words[0].data, words[0].count * sizeof(uint32_t));
    BW_EQ(stats[1].waits, stats[0].waits);
    BW_EQ(stats[1].signals, stats[0].signals);
    BW_EQ(stats[1].doorbells, stats[0].doorbells);
    BW_EQ(stats[1].command_buffers, stats[0].command_buffers);
    bw_vec_free(&words[0]);
    bw_vec_free(&words[1]);
    bw_graph_destroy(graph);
    ring_close(&ring);
}

static void without_profile_packets_are_the_same(void)
{
    struct rig rig;
    struct machine machine;
    if (rig_open(&rig, NULL, on_hosts)) {
        profile_adds_stamps_and_nothing_else(&rig, false);
        rig_close(&rig);
    }
    if (machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0)) {
        profile_adds_stamps_and_nothing_else(&machine.rig, true);
        machine_close(&machine);
    }
}

/* ---- traces of what ran ---- */

static void trace_holds(const struct bw_profile *const *profiles, uint32_t count, struct trace_check *check)
{
    char *text = NULL;
    uint64_t size_bytes = 0;
    struct bw_err err = {0};
    if (!BW_OK(bw_profile_trace(profiles, count, &text, &size_bytes, &err), &err))
        return;
    BW_EQ(strlen(text), size_bytes);
    if (!BW_TRUE(trace_check(check, text)))
        printf("      %s\n", check->why);
    free(text);
}

static void traces_of_many_replays(void)
{
    enum { REPLAYS = 3 };
    struct machine machine;
    struct ring ring;
    struct trace_check check;
    struct bw_profile_report *report = NULL;
    struct bw_profile *profiles[REPLAYS] = {NULL};
    if (!machine_open(&machine, RIG_THREADED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    ring_open(&ring, rig);
    struct bw_linked_graph *linked = ring_link(&ring);
    for (int i = 0; i < REPLAYS; i++)
        replay(rig, linked);
    bool all = true;
    for (int i = 0; i < REPLAYS && all; i++)
        all = (profiles[i] = take(rig, linked, (uint64_t)i + 1)) != NULL;
    if (all) {
        trace_holds((const struct bw_profile *const *)profiles, REPLAYS, &check);
        BW_EQ(check.calls, REPLAYS * profiles[0]->call_count);
        BW_EQ(check.replays, REPLAYS);
        BW_EQ(check.processes, 3);
        BW_TRUE(check.flows > 0 && check.counters > 0);
        trace_check_free(&check);
        BW_OK(bw_profile_report_make((const struct bw_profile *const *)profiles, REPLAYS, &report, &rig->err),
              &rig->err);
        BW_EQ(report->queue_count, 4);
        for (uint32_t i = 0; i < report->queue_count; i++)
            BW_TRUE(report->queues[i].busy_ns <= report->end_ns - report->begin_ns);
        bw_profile_report_destroy(report);
    }
    for (int i = 0; i < REPLAYS; i++)
        bw_profile_destroy(profiles[i]);
    bw_linked_graph_destroy(linked);
    ring_close(&ring);
    machine_close(&machine);
}

BW_TEST_MAIN("profile", {"consumers_begin_after_producers", consumers_begin_after_producers},
             {"consumers_begin_after_producers_on_gpus", consumers_begin_after_producers_on_gpus},
             {"overlap_is_seen", overlap_is_seen}, {"rates_are_measured", rates_are_measured},
             {"every_ticket_has_its_own", every_ticket_has_its_own},
             {"without_profile_there_is_none", without_profile_there_is_none},
             {"lost_replays_have_none", lost_replays_have_none},
             {"calls_say_what_they_moved", calls_say_what_they_moved},
             {"engines_of_links_are_named", engines_of_links_are_named},
             {"devices_are_told_apart", devices_are_told_apart},
             {"disks_are_devices_like_others", disks_are_devices_like_others},
             {"dependencies_by_devices_and_by_the_host", dependencies_by_devices_and_by_the_host},
             {"without_profile_packets_are_the_same", without_profile_packets_are_the_same},
             {"traces_of_many_replays", traces_of_many_replays})
