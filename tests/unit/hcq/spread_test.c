/* Goal: operations go to queues so that what is independent runs beside each other: chains of kernels, copies
 * to different places, parts of one large copy; and what orders replays of a graph of many queues stays
 * linear. What the mock's engines execute is counted beside what a graph says of itself. */
#include "tests/unit/hcq/rig.h"

#include <errno.h>

#include <bellwire/mock.h>

#include "base/bits.h"
#include "drivers/host/packet.h"
#include "hcq/linked.h"

static const char *const on_null[] = {"null", NULL};
static const char *const on_four_nulls[] = {"null", "null", "null", "null", NULL};

enum { SPACE_BYTES = 4096 };

static struct bw_range part(struct bw_buffer *buffer, uint64_t offset, uint64_t size_bytes)
{
    return (struct bw_range){buffer, 0, offset, size_bytes};
}

/* A kernel of device 0 that reads one part of the buffer and writes another. */
static void kernel_add(struct rig *rig, struct bw_graph *graph, struct bw_buffer *buffer, uint32_t to,
                       uint32_t from)
{
    BW_OK(mix_add(rig, graph, 0, part(buffer, to * 64, 64), part(buffer, from * 64, 64), 1, -1), &rig->err);
}

static bool plan_open(struct rig *rig, struct bw_graph *graph, struct bw_plan *plan)
{
    return BW_OK(bw_plan_make(graph, false, plan, &rig->err), &rig->err);
}

/* ---- kernels ---- */

static void chains_run_beside_each_other(void)
{
    enum { LINKS = 10 };
    struct rig rig;
    struct bw_plan plan;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, SPACE_BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    for (uint32_t i = 0; i < LINKS; i++) {
        kernel_add(&rig, graph, buffer, 1 + i, i); /* one chain over parts 0 to 10 */
        kernel_add(&rig, graph, buffer, 31 + i, 30 + i);
    }
    if (plan_open(&rig, graph, &plan)) {
        for (size_t i = 2; i < plan.operations.count; i++)
            BW_EQ(plan.operations.data[i].queue, plan.operations.data[i % 2].queue);
        BW_TRUE(plan.operations.data[0].queue != plan.operations.data[1].queue);
        BW_EQ(plan.waits.count, 0);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

static void branches_stay_while_that_costs_nothing(void)
{
    struct rig rig;
    struct bw_plan plan;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, SPACE_BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    kernel_add(&rig, graph, buffer, 1, 0);
    kernel_add(&rig, graph, buffer, 2, 1); /* both behind one barrier */
    kernel_add(&rig, graph, buffer, 3, 1);
    kernel_add(&rig, graph, buffer, 4, 2);
    kernel_add(&rig, graph, buffer, 5, 1); /* would stand behind another chain's barrier */
    kernel_add(&rig, graph, buffer, 5, 4); /* needs both: follows one, waits for the other */
    if (plan_open(&rig, graph, &plan)) {
        const struct bw_operation *operations = plan.operations.data;
        for (int i = 1; i < 4; i++)
            BW_EQ(operations[i].queue, operations[0].queue);
        BW_EQ(operations[1].barrier != 0, true);
        BW_EQ(operations[2].barrier, 0);
        BW_EQ(operations[3].barrier != 0, true);
        BW_TRUE(operations[4].queue != operations[0].queue);
        BW_EQ(operations[4].wait_count, 1);
        BW_EQ(operations[5].wait_count, 1);
        BW_EQ(plan.waits.count, 2);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

static void a_chain_through_copies_stays_on_two_queues(void)
{
    struct rig rig;
    struct bw_plan plan;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, SPACE_BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    for (uint32_t i = 0; i < 10; i++) {
        kernel_add(&rig, graph, buffer, 2 * i + 1, 2 * i);
        BW_OK(bw_graph_copy(graph, rig.devices[0], part(buffer, (2 * i + 2) * 64, 64),
                            part(buffer, (2 * i + 1) * 64, 64), &rig.err),
              &rig.err);
    }
    if (plan_open(&rig, graph, &plan)) {
        for (size_t i = 2; i < plan.operations.count; i++)
            BW_EQ(plan.operations.data[i].queue, plan.operations.data[i % 2].queue);
        BW_EQ(plan.waits.count, 19);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

/* ---- copies ---- */

struct traffic {
    struct rig rig;
    struct bw_buffer *buffers[RIG_DEVICES_MAX];
};

/* A wait for what nobody writes ends a test soon. */
static bool traffic_open(struct traffic *traffic, uint64_t size_bytes)
{
    struct bw_ctx_config config = {.size = sizeof config, .wait_ns = 500000000};
    bool ok = rig_open(&traffic->rig, &config, on_four_nulls);
    for (uint32_t i = 0; i < traffic->rig.device_count && ok; i++) {
        traffic->buffers[i] = rig_buffer(&traffic->rig, i, size_bytes, 0);
        ok = traffic->buffers[i] != NULL;
    }
    return ok;
}

static void traffic_close(struct traffic *traffic)
{
    for (uint32_t i = 0; i < traffic->rig.device_count; i++)
        bw_buffer_destroy(traffic->buffers[i]);
    rig_close(&traffic->rig);
}

/* From device 0's buffer to another one's, both at the same offset. */
static void send(struct traffic *traffic, struct bw_graph *graph, uint32_t to, uint64_t offset,
                 uint64_t size_bytes)
{
    BW_OK(bw_graph_copy(graph, traffic->rig.devices[0], part(traffic->buffers[to], offset, size_bytes),
                        part(traffic->buffers[0], offset, size_bytes), &traffic->rig.err),
          &traffic->rig.err);
}

static uint32_t number_of(const struct bw_plan *plan, size_t operation)
{
    return plan->queues.data[plan->operations.data[operation].queue].hcq->number;
}

/* The engine of a copy that is one operation, by its place in the program. */
static uint32_t engine_of(const struct bw_plan *plan, uint32_t call)
{
    for (size_t i = 0; i < plan->operations.count; i++)
        if (plan->operations.data[i].call == call)
            return number_of(plan, i);
    return BW_PLAN_NONE;
}

static void places_have_engines_of_their_own(void)
{
    struct traffic traffic;
    struct bw_plan plan;
    if (!traffic_open(&traffic, SPACE_BYTES))
        return;
    struct bw_graph *graph = rig_graph(&traffic.rig);
    for (uint32_t round = 0; round < 4; round++) {
        for (uint32_t to = 1; to < 4; to++) {
            send(&traffic, graph, to, round * 128, 64); /* one after the other to the same place */
            send(&traffic, graph, to, round * 128 + 64, 64);
        }
    }
    if (plan_open(&traffic.rig, graph, &plan)) {
        BW_EQ(plan.operations.count, 24);
        for (size_t i = 0; i < plan.operations.count; i++) {
            /* As the first to that place. */
            BW_EQ(engine_of(&plan, (uint32_t)i), engine_of(&plan, (uint32_t)i / 2 % 3 * 2));
            BW_EQ(plan.queues.data[plan.operations.data[i].queue].hcq->kind, BW_QUEUE_COPY);
        }
        BW_TRUE(engine_of(&plan, 0) != engine_of(&plan, 2) && engine_of(&plan, 2) != engine_of(&plan, 4) &&
                engine_of(&plan, 0) != engine_of(&plan, 4));
        BW_EQ(plan.waits.count, 0);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    traffic_close(&traffic);
}

/* All to all over four devices, all to 0 first, then all to 1, ..., twice: each device sends to the next one
 * first, then to the one after that; what writes the same bytes again stays behind. */
static void copies_without_an_order_go_around_the_ring(void)
{
    struct traffic traffic;
    struct bw_plan plan;
    if (!traffic_open(&traffic, SPACE_BYTES))
        return;
    struct bw_graph *graph = rig_graph(&traffic.rig);
    for (uint32_t i = 0; i < 2 * 16; i++) { /* the source in the upper half of its buffer, by target */
        uint32_t from = i % 4, to = i / 4 % 4;
        BW_OK(bw_graph_copy(graph, traffic.rig.devices[from], part(traffic.buffers[to], from * 64, 64),
                            part(traffic.buffers[from], (4 + to) * 64, 64), &traffic.rig.err),
              &traffic.rig.err);
    }
    if (plan_open(&traffic.rig, graph, &plan) && BW_EQ(plan.operations.count, 32)) {
        uint32_t sent[4] = {0};
        for (size_t i = 0; i < plan.operations.count; i++) {
            uint32_t call = plan.operations.data[i].call, from = call % 4, to = call / 4 % 4;
            BW_EQ(call / 16, i / 16);
            BW_EQ(to, (from + sent[from]++) % 4);
        }
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    traffic_close(&traffic);
}

static void many_places_share_by_bytes(void)
{
    struct traffic traffic;
    struct bw_plan plan;
    if (!traffic_open(&traffic, 64 << 10))
        return;
    struct bw_graph *graph = rig_graph(&traffic.rig);
    send(&traffic, graph, 1, 0, 40 << 10);
    send(&traffic, graph, 2, 0, 20 << 10);
    send(&traffic, graph, 3, 0, 20 << 10);
    BW_OK(bw_graph_copy(graph, traffic.rig.devices[0], part(traffic.buffers[0], 50 << 10, 10 << 10),
                        part(traffic.buffers[0], 0, 10 << 10), &traffic.rig.err),
          &traffic.rig.err); /* within device 0: a fourth place, with the engine that has the least */
    if (plan_open(&traffic.rig, graph, &plan)) {
        BW_TRUE(engine_of(&plan, 3) == engine_of(&plan, 1) || engine_of(&plan, 3) == engine_of(&plan, 2));
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    traffic_close(&traffic);
}

static void a_large_copy_takes_engines_that_idle(void)
{
    enum { BYTES = (7 << 20) + 5 };
    struct traffic traffic;
    struct bw_plan plan;
    if (!traffic_open(&traffic, BYTES))
        return;
    struct bw_graph *graph = rig_graph(&traffic.rig);
    send(&traffic, graph, 1, 0, BYTES);
    if (plan_open(&traffic.rig, graph, &plan)) {
        uint64_t at = 0, engines = 0;
        for (size_t i = 0; i < plan.operations.count; i++) {
            const struct bw_operation *operation = &plan.operations.data[i];
            BW_EQ(operation->source.offset, at);
            BW_EQ(operation->target.offset, at);
            BW_EQ(operation->wait_count, 0);
            at += operation->size_bytes;
            engines |= 1ull << number_of(&plan, i);
        }
        BW_EQ(at, BYTES);
        BW_EQ(plan.operations.count, 3);
        BW_EQ(__builtin_popcountll(engines), 3);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    graph = rig_graph(&traffic.rig); /* two places: the one with more bytes has the spare engine */
    send(&traffic, graph, 1, 0, 3 << 20);
    send(&traffic, graph, 2, 0, 7 << 20);
    if (plan_open(&traffic.rig, graph, &plan)) {
        BW_EQ(plan.operations.count, 3);
        BW_EQ(plan.operations.data[0].size_bytes, 3 << 20);
        BW_TRUE(number_of(&plan, 1) != number_of(&plan, 2));
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    graph = rig_graph(&traffic.rig); /* parts would be too small */
    send(&traffic, graph, 1, 0, (128 << 10) + 1);
    if (plan_open(&traffic.rig, graph, &plan)) {
        BW_EQ(plan.operations.count, 1);
        bw_plan_free(&plan);
    }
    bw_graph_destroy(graph);
    traffic_close(&traffic);
}

/* ---- the order of replays ---- */

static uint32_t waits_in(const uint32_t *words, uint32_t word_count)
{
    uint32_t waits = 0;
    for (uint32_t at = 0; at < word_count; at += bw_host_header_words(words[at]))
        waits += bw_host_header_opcode(words[at]) == BW_HOST_OP_WAIT;
    return waits;
}

/* Twelve queues without an order among them: one gathers what was before, the others follow it. */
static void prologues_grow_with_the_queues_not_their_square(void)
{
    struct traffic traffic;
    struct bw_plan plan;
    struct bw_encoded encoded;
    uint64_t ticket = 0;
    if (!traffic_open(&traffic, SPACE_BYTES))
        return;
    struct rig *rig = &traffic.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t from = 0; from < 4; from++) {
        for (uint32_t to = 0; to < 4; to++) {
            if (from != to)
                BW_OK(bw_graph_copy(graph, rig->devices[from], part(traffic.buffers[to], 64 * (from + 4), 64),
                                    part(traffic.buffers[from], 64 * to, 64), &rig->err),
                      &rig->err);
        }
    }
    if (plan_open(rig, graph, &plan) && BW_OK(bw_plan_encode(&plan, &encoded, &rig->err), &rig->err)) {
        uint32_t used = 0, waits = 0, all = 0;
        for (uint32_t i = 0; i < plan.queues.count; i++) {
            const struct bw_step *prologue = &encoded.queues[i].prologue;
            used += plan.queues.data[i].operation_count > 0;
            if (prologue->word_count)
                waits += waits_in(encoded.queues[i].commands.words + prologue->word, prologue->word_count);
        }
        for (uint32_t i = 0; i < plan.devices.count; i++)
            all += plan.devices.data[i].hcq->queue_count;
        BW_EQ(used, 12);
        BW_EQ(waits, (all - 1) + (used - 1));
        bw_encoded_free(&plan, &encoded);
        bw_plan_free(&plan);
    }
    struct bw_linked_graph *linked = rig_link(rig, graph);
    for (int i = 0; i < 20; i++)
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_linked_graph_destroy(linked);
    traffic_close(&traffic);
}

/* Only a follower has to invalidate its code: the leader's first signal is written all the same. */
static void new_code_of_a_follower(void)
{
    struct traffic traffic;
    uint64_t ticket;
    if (!traffic_open(&traffic, SPACE_BYTES))
        return;
    struct rig *rig = &traffic.rig;
    struct bw_buffer **buffers = traffic.buffers;
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < 3; i++)
        BW_OK(mix_add(rig, graph, i, part(buffers[i], 0, 64), part(buffers[i], 64, 64), 1, -1), &rig->err);
    for (uint32_t i = 1; i < 3; i++)
        BW_OK(mix_add(rig, graph, 0, part(buffers[0], 0, 64), part(buffers[i], 0, 64), 1, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    if (BW_TRUE(linked != NULL)) {
        BW_TRUE(linked->leader != BW_PLAN_NONE &&
                linked->devices[linked->queues[linked->leader].device].hcq ==
                    bw_hcq_device_of(rig->devices[0]));
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
        struct bw_program *first = rig->programs[1];
        BW_TRUE(rig_program(rig, 1));
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
        bw_program_destroy(first);
    }
    bw_linked_graph_destroy(linked);
    traffic_close(&traffic);
}

/* The host waits for a follower before the leader has its first command buffer: its prologue runs before. */
static void a_leader_behind_a_wait_of_the_host(void)
{
    struct traffic traffic;
    uint64_t ticket;
    if (!traffic_open(&traffic, SPACE_BYTES))
        return;
    struct rig *rig = &traffic.rig;
    struct bw_buffer **buffers = traffic.buffers;
    struct bw_graph *graph = rig_graph(rig);
    rig->devices[1]->caps.device_wait = false;
    BW_OK(mix_add(rig, graph, 2, part(buffers[2], 0, 64), part(buffers[2], 64, 64), 1, -1), &rig->err);
    BW_OK(mix_add(rig, graph, 1, part(buffers[1], 0, 64), part(buffers[2], 0, 64), 1, -1), &rig->err);
    for (uint32_t i = 0; i < 4; i += 3)
        BW_OK(bw_graph_copy(graph, rig->devices[i], part(buffers[i], 128, 64), part(buffers[i], 192, 64),
                            &rig->err),
              &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    if (BW_TRUE(linked != NULL)) {
        BW_TRUE(linked->leader != BW_PLAN_NONE && linked->queues[linked->leader].hcq->kind == BW_QUEUE_COPY);
        for (int i = 0; i < 5; i++)
            BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    }
    bw_linked_graph_destroy(linked);
    traffic_close(&traffic);
}

/* ---- what the engines of a mock execute ---- */

enum { OP_DISPATCH = 0x15, OP_WAIT = 0x3c, OP_RELEASE = 0x49, OP_ACQUIRE = 0x58 }; /* PM4 */
enum { SDMA_COPY = 1, SDMA_FENCE = 5, SDMA_POLL = 8 };

struct executed {
    uint64_t dispatches, waits, releases, copies, fences, polls;
};

/* An engine counts a packet after its effect is seen: all are let run out first. */
static struct executed executed_of(struct bw_sys *sys)
{
    while (bw_mock_step(sys)) {
    }
    return (struct executed){bw_mock_packets_executed(sys, BW_MOCK_PACKETS_PM4, OP_DISPATCH),
                             bw_mock_packets_executed(sys, BW_MOCK_PACKETS_PM4, OP_WAIT),
                             bw_mock_packets_executed(sys, BW_MOCK_PACKETS_PM4, OP_RELEASE),
                             bw_mock_packets_executed(sys, BW_MOCK_PACKETS_SDMA, SDMA_COPY),
                             bw_mock_packets_executed(sys, BW_MOCK_PACKETS_SDMA, SDMA_FENCE),
                             bw_mock_packets_executed(sys, BW_MOCK_PACKETS_SDMA, SDMA_POLL)};
}

static struct executed replay_executed(struct bw_sys *sys, struct rig *rig, struct bw_linked_graph *linked)
{
    uint64_t ticket;
    struct executed before = executed_of(sys);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    struct executed after = executed_of(sys);
    return (struct executed){after.dispatches - before.dispatches, after.waits - before.waits,
                             after.releases - before.releases,     after.copies - before.copies,
                             after.fences - before.fences,         after.polls - before.polls};
}

/* Whoever sees a queue's last signal may free the words it came from: nothing is read after it. */
static void last_words_are_signals(const struct bw_linked_graph *linked)
{
    enum { RELEASE_WORDS = 8, FENCE_WORDS = 4 };
    struct bw_linked_command command, other;
    for (uint32_t i = 0; bw_linked_graph_command(linked, i, &command); i++) {
        bool last = command.kind == BW_STEP_SUBMIT;
        for (uint32_t k = i + 1; bw_linked_graph_command(linked, k, &other); k++)
            last &= other.kind != BW_STEP_SUBMIT || other.device != command.device ||
                    strcmp(other.queue_label, command.queue_label) != 0;
        if (!last)
            continue;
        const uint32_t *end = command.words + command.word_count;
        if (command.copy)
            BW_EQ(*(end - FENCE_WORDS) & 0xff, SDMA_FENCE);
        else
            BW_EQ(*(end - RELEASE_WORDS) >> 8 & 0xff, OP_RELEASE);
    }
}

static void engines_execute_what_a_graph_says(void)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = 2,
                                  .cu_count = 2,
                                  .vram_bytes = 64 << 20,
                                  .single_step = true};
    struct bw_sys *sys;
    struct rig rig;
    struct bw_graph_stats stats;
    struct bw_mock_stats before, after;
    uint64_t ticket;
    BW_OK(bw_mock_kfd_create(&mock, &sys, &rig.err), &rig.err);
    struct bw_ctx_config config = {.size = sizeof config, .sys = sys};
    if (!rig_open(&rig, &config, (const char *const[]){"kfd+amd:0", "kfd+amd:1", NULL}))
        return;
    struct bw_buffer *near = rig_buffer(&rig, 0, SPACE_BYTES, 0), *far = rig_buffer(&rig, 1, SPACE_BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    for (uint32_t i = 0; i < 8; i++) /* two chains on GPU 0, eight kernels long */
        kernel_add(&rig, graph, near, 2 + i, i);
    BW_OK(bw_graph_copy(graph, rig.devices[0], part(far, 0, 64), part(near, 9 * 64, 64), &rig.err), &rig.err);
    BW_OK(mix_add(&rig, graph, 1, part(far, 64, 64), part(far, 0, 64), 1, -1), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[1], part(near, 0, 64), part(far, 64, 64), &rig.err), &rig.err);
    struct bw_linked_graph *linked, *profiled;
    BW_OK(bw_graph_link(graph,
                        &(struct bw_link_options){.size = sizeof(struct bw_link_options), .profile = true},
                        &profiled, &rig.err),
          &rig.err);
    last_words_are_signals(profiled);
    bw_linked_graph_destroy(profiled);
    linked = rig_link(&rig, graph);
    last_words_are_signals(linked);
    bw_linked_graph_stats(linked, &stats);
    replay_executed(sys, &rig, linked); /* the first one also invalidates code */
    bw_mock_stats(sys, &before);
    struct executed executed = replay_executed(sys, &rig, linked);
    bw_mock_stats(sys, &after);
    BW_EQ(executed.dispatches, 9);
    BW_EQ(executed.copies, 2);
    BW_EQ(executed.waits + executed.polls, stats.waits);
    /* What the host looks at raises an interrupt, with a word of its own before; a copy engine writes a
     * signal in halves. */
    uint32_t copy_queues = 2, compute_queues = stats.doorbells - copy_queues;
    uint64_t compute_signals = executed.releases - compute_queues;
    uint64_t copy_signals = (executed.fences - copy_queues) / 2;
    BW_EQ(compute_signals + copy_signals, stats.signals);
    BW_EQ(after.doorbells - before.doorbells, stats.doorbells);
    /* One in flight behind another: each is told to wait, none asks the host. */
    for (int i = 0; i < 6; i++)
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(near);
    bw_buffer_destroy(far);
    rig_close(&rig);
    bw_sys_destroy(sys);
}

static void copies_where_all_copy_engines_are_taken(void)
{
    enum { BYTES = 5000 };
    struct bw_mock_config mock = {
        .size = sizeof mock, .arch = "gfx1100", .cu_count = 2, .vram_bytes = 64 << 20, .threads = 1};
    struct bw_sys *sys;
    struct rig rig = {0};
    uint8_t bytes[BYTES], got[BYTES];
    uint64_t ticket;
    BW_OK(bw_mock_kfd_create(&mock, &sys, &rig.err), &rig.err);
    BW_OK(bw_mock_fault_add(sys, "ioctl.CREATE_QUEUE:fail=ENOMEM,nth=2", &rig.err), &rig.err);
    struct bw_ctx_config config = {.size = sizeof config, .sys = sys};
    if (!rig_open(&rig, &config, (const char *const[]){"kfd+amd:0", NULL}))
        return;
    BW_EQ(bw_hcq_device_of(rig.devices[0])->queue_count, bw_hcq_device_of(rig.devices[0])->compute_count);
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 7);
    struct bw_buffer *a = rig_buffer(&rig, 0, BYTES, 0), *b = rig_buffer(&rig, 0, BYTES, 0);
    BW_OK(bw_buffer_write(a, 0, bytes, BYTES, &rig.err), &rig.err);
    struct bw_graph *graph = rig_graph(&rig);
    BW_OK(mix_add(&rig, graph, 0, part(a, 0, 100), part(a, 200, 100), 3, -1), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_all(b), range_all(a), &rig.err), &rig.err);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
    BW_OK(bw_buffer_read(b, 0, got, BYTES, &rig.err), &rig.err);
    mix_run(bytes, 100, bytes + 200, 100, 3);
    BW_BYTES(got, bytes, BYTES);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    rig_close(&rig);
    bw_sys_destroy(sys);
}

BW_TEST_MAIN("spread", {"chains_run_beside_each_other", chains_run_beside_each_other},
             {"branches_stay_while_that_costs_nothing", branches_stay_while_that_costs_nothing},
             {"a_chain_through_copies_stays_on_two_queues", a_chain_through_copies_stays_on_two_queues},
             {"places_have_engines_of_their_own", places_have_engines_of_their_own},
             {"copies_without_an_order_go_around_the_ring", copies_without_an_order_go_around_the_ring},
             {"many_places_share_by_bytes", many_places_share_by_bytes},
             {"a_large_copy_takes_engines_that_idle", a_large_copy_takes_engines_that_idle},
             {"prologues_grow_with_the_queues_not_their_square",
              prologues_grow_with_the_queues_not_their_square},
             {"new_code_of_a_follower", new_code_of_a_follower},
             {"a_leader_behind_a_wait_of_the_host", a_leader_behind_a_wait_of_the_host},
             {"engines_execute_what_a_graph_says", engines_execute_what_a_graph_says},
             {"copies_where_all_copy_engines_are_taken", copies_where_all_copy_engines_are_taken})
