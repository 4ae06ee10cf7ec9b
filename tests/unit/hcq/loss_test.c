/* Goal (S9): one of several GPUs fails during a replay. The replay is lost and says so, then and ever after;
 * the other GPUs go on at once, with the right bytes, whether or not the failed one ever comes back. */
#include "tests/unit/hcq/mock_rig.h"

#include <errno.h>

#include "hcq/linked.h"

enum { GPUS = 4, BAD = 2, BYTES = 96, VRAM_BYTES = 64 << 20 };

static const uint32_t everybody[] = {0, 1, 2, 3}, healthy[] = {0, 1, 3};

/* Per GPU a state and an inbox. What every replay does with them, in a ring: mix the inbox in, send the state
 * to the next one's inbox, mix that in. */
struct ring {
    struct machine machine;
    struct bw_buffer *state[GPUS], *inbox[GPUS];
    uint8_t state_model[GPUS][BYTES], inbox_model[GPUS][BYTES];
};

static bool ring_open(struct ring *ring)
{
    bool ok = machine_open(&ring->machine, RIG_STEPPED, GPUS, VRAM_BYTES, 0);
    for (uint32_t i = 0; i < GPUS && ok; i++) {
        ring->state[i] = rig_buffer(&ring->machine.rig, i, BYTES, 0);
        ring->inbox[i] = rig_buffer(&ring->machine.rig, i, BYTES, 0);
        ok = ring->state[i] && ring->inbox[i];
    }
    return ok;
}

static void ring_close(struct ring *ring)
{
    for (uint32_t i = 0; i < GPUS; i++) {
        bw_buffer_destroy(ring->state[i]);
        bw_buffer_destroy(ring->inbox[i]);
    }
    machine_close(&ring->machine);
}

static struct bw_linked_graph *ring_link(struct ring *ring, const uint32_t *team, uint32_t count)
{
    struct rig *rig = &ring->machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < count; i++)
        BW_OK(mix_add(rig, graph, team[i], range_all(ring->state[team[i]]), range_all(ring->inbox[team[i]]),
                      1, -1),
              &rig->err);
    for (uint32_t i = 0; i < count; i++)
        BW_OK(bw_graph_copy(graph, rig->devices[team[i]], range_all(ring->inbox[team[(i + 1) % count]]),
                            range_all(ring->state[team[i]]), &rig->err),
              &rig->err);
    for (uint32_t i = 0; i < count; i++)
        BW_OK(mix_add(rig, graph, team[i], range_all(ring->state[team[i]]), range_all(ring->inbox[team[i]]),
                      2, -1),
              &rig->err);
    return rig_link(rig, graph);
}

static void ring_model(struct ring *ring, const uint32_t *team, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        mix_run(ring->state_model[team[i]], BYTES, ring->inbox_model[team[i]], BYTES, 1);
    for (uint32_t i = 0; i < count; i++)
        memcpy(ring->inbox_model[team[(i + 1) % count]], ring->state_model[team[i]], BYTES);
    for (uint32_t i = 0; i < count; i++)
        mix_run(ring->state_model[team[i]], BYTES, ring->inbox_model[team[i]], BYTES, 2);
}

/* New contents, then some replays, compared byte for byte. */
static void ring_works(struct ring *ring, struct bw_linked_graph *linked, const uint32_t *team,
                       uint32_t count)
{
    struct rig *rig = &ring->machine.rig;
    uint8_t got[BYTES];
    uint64_t ticket = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < BYTES; k++) {
            ring->state_model[team[i]][k] = (uint8_t)(k * 3 + team[i]);
            ring->inbox_model[team[i]][k] = (uint8_t)(k + 7 * team[i]);
        }
        BW_OK(bw_buffer_write(ring->state[team[i]], 0, ring->state_model[team[i]], BYTES, &rig->err),
              &rig->err);
        BW_OK(bw_buffer_write(ring->inbox[team[i]], 0, ring->inbox_model[team[i]], BYTES, &rig->err),
              &rig->err);
    }
    for (int i = 0; i < 8; i++) {
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        ring_model(ring, team, count);
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    for (uint32_t i = 0; i < count; i++) {
        BW_OK(bw_buffer_read(ring->state[team[i]], 0, got, BYTES, &rig->err), &rig->err);
        BW_BYTES(got, ring->state_model[team[i]], BYTES);
    }
}

static void fault_add(struct ring *ring, const char *what)
{
    char fault[64];
    snprintf(fault, sizeof fault, "%s,gpu=%d", what, BAD);
    BW_OK(bw_mock_fault_add(ring->machine.sys, fault, &ring->machine.rig.err), &ring->machine.rig.err);
}

static uint64_t now_ns(const struct ring *ring)
{
    return ring->machine.sys->ops->clock_ns(ring->machine.sys);
}

static void names_the_bad_one(const struct bw_err *err)
{
    BW_STR(err->device, "kfd+amd:2@gfx1100");
}

static void is_lost(struct bw_linked_graph *linked, uint64_t ticket)
{
    struct bw_err err;
    char text[64];
    snprintf(text, sizeof text, "replay %llu was lost: ", (unsigned long long)ticket);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &err), -ECANCELED);
    BW_TRUE(strncmp(err.what, text, strlen(text)) == 0 && strlen(err.what) > strlen(text));
    names_the_bad_one(&err);
}

static void others_are_idle(struct ring *ring)
{
    while (bw_mock_step(ring->machine.sys)) {
    }
    for (int i = 0; i < GPUS - 1; i++) {
        struct bw_hcq_device *device = bw_hcq_device_of(ring->machine.rig.devices[healthy[i]]);
        for (uint32_t k = 0; k < device->queue_count; k++)
            BW_TRUE(bw_hcq_queue_idle(&device->queues[k]));
    }
}

static void one_fails_and_the_others_go_on(const char *fault, int code)
{
    struct ring ring;
    uint64_t first, lost[2], ticket;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    struct bw_linked_graph *others = ring_link(&ring, healthy, GPUS - 1);
    ring_works(&ring, all, everybody, GPUS);
    BW_OK(bw_linked_graph_replay(all, NULL, &first, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(all, first, &rig->err), &rig->err);
    fault_add(&ring, fault);
    for (int i = 0; i < 2; i++)
        BW_OK(bw_linked_graph_replay(all, NULL, &lost[i], &rig->err), &rig->err);
    uint64_t begin_ns = now_ns(&ring);
    BW_EQ(bw_linked_graph_wait(all, lost[0], &rig->err), code);
    BW_TRUE(now_ns(&ring) - begin_ns < 2 * RIG_WAIT_NS);
    names_the_bad_one(&rig->err);
    BW_EQ(bw_linked_graph_wait(all, lost[1], &rig->err), code);
    others_are_idle(&ring); /* nobody waits any more, waited for or not */
    BW_EQ(bw_linked_graph_replay(all, NULL, &ticket, &rig->err), code);
    begin_ns = now_ns(&ring);
    ring_works(&ring, others, healthy, GPUS - 1);
    BW_TRUE(now_ns(&ring) - begin_ns < RIG_WAIT_NS); /* nobody waits for the bad one */
    for (int i = 0; i < GPUS - 1; i++)
        BW_OK(bw_device_synchronize(rig->devices[healthy[i]], &rig->err), &rig->err);
    bw_mock_fault_clear(ring.machine.sys);
    BW_OK(bw_device_recover(rig->devices[BAD], &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(all, first, &rig->err), &rig->err);
    is_lost(all, lost[0]);
    is_lost(all, lost[1]);
    ring_works(&ring, all, everybody, GPUS);
    is_lost(all, lost[0]); /* its instance was taken again since */
    BW_OK(bw_linked_graph_wait(all, first, &rig->err), &rig->err);
    bw_linked_graph_destroy(all);
    bw_linked_graph_destroy(others);
    ring_close(&ring);
}

static void whatever_fails_the_others_go_on(void)
{
    one_fails_and_the_others_go_on("mec:hang", -ETIMEDOUT);
    one_fails_and_the_others_go_on("kernel:hang", -ETIMEDOUT);
    one_fails_and_the_others_go_on("sdma0:hang", -ETIMEDOUT);
    one_fails_and_the_others_go_on("mec:fail=EIO", -EIO);
    one_fails_and_the_others_go_on("sdma0:fail=EIO", -EIO);
    one_fails_and_the_others_go_on("doorbell:drop", -ETIMEDOUT);
}

static struct bw_linked_graph *endless_link(struct rig *rig, const struct bw_argument *argument)
{
    struct bw_graph *graph = rig_graph(rig);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = argument,
                               .argument_count = 1};
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, BAD, "endless"), &launch, &rig->err), &rig->err);
    return rig_link(rig, graph);
}

/* The graph that once tied them together is gone: a failure of one is nobody else's business. */
static void who_worked_together_once_is_not_tied(void)
{
    enum { TURNS = 200000 };
    struct ring ring;
    uint32_t seen[2];
    uint64_t ticket;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    ring_works(&ring, all, everybody, GPUS);
    BW_OK(bw_linked_graph_replay(all, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_hcq_dependencies(bw_hcq_device_of(rig->devices[0])), (1 << GPUS) - 1);
    BW_OK(bw_linked_graph_wait(all, ticket, &rig->err), &rig->err);
    for (uint32_t i = 0; i < GPUS; i++)
        BW_EQ(bw_hcq_dependencies(bw_hcq_device_of(rig->devices[i])), 1ull << i);
    bw_linked_graph_destroy(all);
    struct bw_buffer *own = rig_buffer(rig, BAD, BYTES, 0);
    struct bw_argument endless = argument_range(range_all(own), BW_ACCESS_READ);
    struct bw_linked_graph *linked = endless_link(rig, &endless);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    for (int i = 0; i < GPUS - 1; i++)
        mix_works(rig, healthy[i]); /* beside the one that never ends, of which nobody knows yet */
    BW_OK(bw_hcq_device_check(bw_hcq_device_of(rig->devices[BAD]), &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -ETIMEDOUT);
    names_the_bad_one(&rig->err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(own);
    struct bw_buffer *out = rig_buffer(rig, 0, sizeof seen, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(TURNS)};
    BW_OK(run_groups(rig, 0, "spin", 2, 32, arguments, 2), &rig->err); /* a slow wait */
    BW_OK(bw_buffer_read(out, 0, seen, sizeof seen, &rig->err), &rig->err);
    BW_EQ(seen[1], UINT32_MAX);
    for (int i = 0; i < GPUS - 1; i++)
        mix_works(rig, healthy[i]);
    bw_buffer_destroy(out);
    ring_close(&ring);
}

/* Others' next replay may read what the lost one should have written: it is told so, once, and not run. */
static void a_replay_right_behind_is_told(void)
{
    struct ring ring;
    uint64_t lost, behind;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    struct bw_linked_graph *others = ring_link(&ring, healthy, GPUS - 1);
    ring_works(&ring, all, everybody, GPUS);
    fault_add(&ring, "mec:hang");
    BW_OK(bw_linked_graph_replay(all, NULL, &lost, &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_replay(others, NULL, &behind, &rig->err), -ETIMEDOUT);
    names_the_bad_one(&rig->err);
    ring_works(&ring, others, healthy, GPUS - 1);
    bw_mock_fault_clear(ring.machine.sys);
    BW_OK(bw_device_recover(rig->devices[BAD], &rig->err), &rig->err);
    is_lost(all, lost);
    bw_linked_graph_destroy(all);
    bw_linked_graph_destroy(others);
    ring_close(&ring);
}

static void bytes_that_were_lost_are_not_read(void)
{
    struct ring ring;
    uint64_t ticket;
    uint8_t got[BYTES];
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    ring_works(&ring, all, everybody, GPUS);
    fault_add(&ring, "mec:hang");
    BW_OK(bw_linked_graph_replay(all, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_buffer_read(ring.inbox[(BAD + 1) % GPUS], 0, got, BYTES, &rig->err), -ETIMEDOUT);
    names_the_bad_one(&rig->err);
    BW_OK(bw_buffer_read(ring.inbox[(BAD + 1) % GPUS], 0, got, BYTES, &rig->err), &rig->err); /* told */
    bw_linked_graph_destroy(all);
    ring_close(&ring);
}

/* Its engine may still write there, until it is reset. */
static void memory_that_a_failed_gpu_reaches_is_not_reused(void)
{
    enum { FRESH = 20 }; /* more than were ever freed before */
    struct ring ring;
    uint64_t ticket;
    struct bw_buffer *others[FRESH + 1];
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    fault_add(&ring, "mec:hang");
    BW_OK(bw_linked_graph_replay(all, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_wait(all, ticket, &rig->err), -ETIMEDOUT);
    bw_linked_graph_destroy(all);
    for (int i = 0; i < GPUS - 1; i++)
        BW_OK(bw_device_synchronize(rig->devices[healthy[i]], &rig->err), &rig->err);
    uint64_t reached = bw_buffer_address(ring.inbox[3]); /* the bad one sends there */
    bw_buffer_destroy(ring.inbox[3]);
    ring.inbox[3] = NULL;
    for (uint32_t i = 0; i < BW_COUNT_OF(others); i++) {
        others[i] = rig_buffer(rig, 3, BYTES, 0);
        BW_TRUE(bw_buffer_address(others[i]) != reached);
    }
    uint64_t own = bw_buffer_address(others[FRESH]); /* nobody else ever saw it */
    bw_buffer_destroy(others[FRESH]);
    others[FRESH] = rig_buffer(rig, 3, BYTES, 0);
    BW_EQ(bw_buffer_address(others[FRESH]), own);
    bw_mock_fault_clear(ring.machine.sys);
    BW_OK(bw_device_recover(rig->devices[BAD], &rig->err), &rig->err);
    ring.inbox[3] = rig_buffer(rig, 3, BYTES, 0);
    BW_EQ(bw_buffer_address(ring.inbox[3]), reached);
    for (uint32_t i = 0; i < BW_COUNT_OF(others); i++)
        bw_buffer_destroy(others[i]);
    ring_close(&ring);
}

/* It is closed as it is; what waits for it then still finds its signals, or none of it is left waiting. */
static void a_failed_gpu_closes_and_the_others_go_on(void)
{
    struct ring ring;
    uint64_t ticket;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    fault_add(&ring, "mec:hang");
    for (int i = 0; i < 3; i++)
        BW_OK(bw_linked_graph_replay(all, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_wait(all, ticket, &rig->err), -ETIMEDOUT);
    bw_linked_graph_destroy(all);
    bw_buffer_destroy(ring.state[BAD]);
    bw_buffer_destroy(ring.inbox[BAD]);
    ring.state[BAD] = ring.inbox[BAD] = NULL;
    bw_program_destroy(rig->programs[BAD]);
    bw_device_close(rig->devices[BAD]);
    rig->programs[BAD] = NULL;
    rig->devices[BAD] = NULL;
    struct bw_linked_graph *others = ring_link(&ring, healthy, GPUS - 1);
    ring_works(&ring, others, healthy, GPUS - 1);
    bw_linked_graph_destroy(others);
    ring_close(&ring);
}

/* What polls a signal of a device that closes has seen it before its memory goes: here a device that runs
 * only when it is looked at, so it would not. */
static void who_waits_sees_the_signal_before_it_goes(void)
{
    static const uint32_t garbage[] = {0xffffffff};
    struct rig rig;
    uint64_t ticket;
    if (!rig_open(&rig, NULL, (const char *const[]){"null", "null", NULL}))
        return;
    struct bw_buffer *a = rig_buffer(&rig, 0, BYTES, 0), *b = rig_buffer(&rig, 1, BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    BW_OK(mix_add(&rig, graph, 0, range_all(a), range_all(a), 1, -1), &rig.err);
    BW_OK(mix_add(&rig, graph, 1, range_all(b), range_all(a), 1, -1), &rig.err);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    struct bw_hcq_queue *broken = &bw_hcq_device_of(rig.devices[0])->queues[0];
    struct bw_hcq_queue *waits = &bw_hcq_device_of(rig.devices[1])->queues[0];
    BW_EQ(rig.devices[0]->ops->submit(broken->queue, (uintptr_t)garbage, BW_COUNT_OF(garbage)), 0);
    BW_EQ(rig.devices[0]->ops->flush(broken->queue), 0);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
    BW_EQ(bw_device_synchronize(rig.devices[0], &rig.err), -EIO);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig.err), -EIO);
    BW_TRUE(!bw_hcq_queue_idle(waits));
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_program_destroy(rig.programs[0]);
    bw_device_close(rig.devices[0]);
    rig.programs[0] = NULL;
    rig.devices[0] = NULL;
    BW_TRUE(bw_hcq_queue_idle(waits));
    bw_buffer_destroy(b);
    rig_close(&rig);
}

/* The host waits in the middle of the replay and finds out there: GPU 3 has the first half of its work, and
 * will not get the second. */
static void a_replay_that_ends_half_way(void)
{
    struct ring ring;
    uint64_t ticket;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    struct bw_linked_graph *others = ring_link(&ring, healthy, GPUS - 1);
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    struct {
        uint32_t device;
        struct bw_buffer *target, *source;
    } steps[] = {{3, ring.state[3], ring.inbox[3]},
                 {BAD, ring.state[BAD], ring.inbox[BAD]},
                 {0, ring.state[0], ring.state[BAD]},
                 {3, ring.state[3], ring.state[0]}};
    rig->devices[0]->caps.device_wait = false;
    for (uint32_t i = 0; i < BW_COUNT_OF(steps); i++)
        BW_OK(mix_add(rig, graph, steps[i].device, range_all(steps[i].target), range_all(steps[i].source), i,
                      -1),
              &rig->err);
    struct bw_linked_graph *half = rig_link(rig, graph);
    rig->devices[0]->caps.device_wait = true;
    fault_add(&ring, "mec:hang");
    BW_EQ(bw_linked_graph_replay(half, NULL, &ticket, &rig->err), -ETIMEDOUT);
    names_the_bad_one(&rig->err);
    ring_works(&ring, others, healthy, GPUS - 1);
    bw_mock_fault_clear(ring.machine.sys);
    BW_OK(bw_device_recover(rig->devices[BAD], &rig->err), &rig->err);
    BW_OK(bw_linked_graph_replay(half, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(half, ticket, &rig->err), &rig->err);
    ring_works(&ring, all, everybody, GPUS);
    bw_linked_graph_destroy(half);
    bw_linked_graph_destroy(all);
    bw_linked_graph_destroy(others);
    ring_close(&ring);
}

/* Which replays were lost is remembered of so many failures; of earlier ones it is not said that all was
 * well. */
static void losses_are_remembered_up_to_a_limit(void)
{
    struct ring ring;
    uint64_t tickets[BW_LINK_LOSSES_MAX + 1];
    struct bw_err err;
    if (!ring_open(&ring))
        return;
    struct rig *rig = &ring.machine.rig;
    struct bw_linked_graph *all = ring_link(&ring, everybody, GPUS);
    for (uint32_t i = 0; i <= BW_LINK_LOSSES_MAX; i++) {
        if (i > 0)
            is_lost(all, tickets[0]);
        fault_add(&ring, "mec:hang");
        BW_OK(bw_linked_graph_replay(all, NULL, &tickets[i], &rig->err), &rig->err);
        BW_EQ(bw_linked_graph_wait(all, tickets[i], &rig->err), -ETIMEDOUT);
        bw_mock_fault_clear(ring.machine.sys);
        BW_OK(bw_device_recover(rig->devices[BAD], &rig->err), &rig->err);
    }
    for (uint32_t i = 1; i <= BW_LINK_LOSSES_MAX; i++)
        is_lost(all, tickets[i]);
    BW_EQ(bw_linked_graph_wait(all, tickets[0], &err), -ECANCELED);
    BW_TRUE(strstr(err.what, "may be lost") != NULL);
    ring_works(&ring, all, everybody, GPUS);
    bw_linked_graph_destroy(all);
    ring_close(&ring);
}

BW_TEST_MAIN("loss", {"whatever_fails_the_others_go_on", whatever_fails_the_others_go_on},
             {"who_worked_together_once_is_not_tied", who_worked_together_once_is_not_tied},
             {"a_replay_right_behind_is_told", a_replay_right_behind_is_told},
             {"bytes_that_were_lost_are_not_read", bytes_that_were_lost_are_not_read},
             {"memory_that_a_failed_gpu_reaches_is_not_reused",
              memory_that_a_failed_gpu_reaches_is_not_reused},
             {"a_failed_gpu_closes_and_the_others_go_on", a_failed_gpu_closes_and_the_others_go_on},
             {"who_waits_sees_the_signal_before_it_goes", who_waits_sees_the_signal_before_it_goes},
             {"a_replay_that_ends_half_way", a_replay_that_ends_half_way},
             {"losses_are_remembered_up_to_a_limit", losses_are_remembered_up_to_a_limit})
