/* Goal (S5): kernels and copies that depend on each other go from one queue to another, of one GPU and of
 * two, without the host, whether queues are fed by doorbells or by the kernel; and nobody who comes after
 * work that failed is told that it was well, although the kernel lets go of what waits for failed work. */
#include "hcq/linked.h"
#include "iface/sys_wrap.h"
#include "tests/unit/hcq/mock_rig.h"

enum { BYTES = 700, LINKS = 6, VRAM_BYTES = 64 << 20 };

struct chain {
    struct machine machine; /* machine.sys: what counts calls, around: */
    struct bw_sys *mock;
    struct bw_buffer *buffers[LINKS + 1];
    struct bw_linked_graph *linked;
};

static bool chain_machine(struct chain *chain, uint32_t gpus)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = gpus,
                                  .cu_count = 1,
                                  .vram_bytes = VRAM_BYTES,
                                  .threads = 1,
                                  .kfd_absent = WAY_DRM};
    const char *const names[] = {WAY "+amd:0", gpus > 1 ? WAY "+amd:1" : NULL, NULL};
    struct bw_err err;
    *chain = (struct chain){0};
    if (!BW_OK(bw_mock_kfd_create(&mock, &chain->mock, &err), &err) ||
        !BW_EQ(bw_sys_wrap_create(chain->mock, &chain->machine.sys), 0))
        return false;
    struct bw_ctx_config config = {.size = sizeof config, .sys = chain->machine.sys};
    return rig_open(&chain->machine.rig, &config, names);
}

/* buffers[i + 1] = mix of itself and buffers[i], then a copy of it, on queues of one GPU after the other. */
static void chain_link(struct chain *chain, uint32_t gpus)
{
    struct rig *rig = &chain->machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (int i = 0; i <= LINKS; i++)
        chain->buffers[i] = rig_buffer(rig, 0, BYTES, gpus > 1 ? BW_BUFFER_HOST : 0);
    for (int i = 0; i < LINKS; i++) {
        struct bw_range to = range_all(chain->buffers[i + 1]), from = range_all(chain->buffers[i]);
        uint32_t gpu = (uint32_t)i / 2 % gpus;
        if (i % 2)
            BW_OK(bw_graph_copy(graph, rig->devices[gpu], to, from, &rig->err), &rig->err);
        else
            BW_OK(mix_add(rig, graph, gpu, to, from, (uint32_t)i, -1), &rig->err);
    }
    chain->linked = rig_link(rig, graph);
}

static void chain_close(struct chain *chain)
{
    bw_linked_graph_destroy(chain->linked);
    for (int i = 0; i <= LINKS; i++)
        bw_buffer_destroy(chain->buffers[i]);
    machine_close(&chain->machine);
    bw_sys_destroy(chain->mock);
}

static void commands_count(const struct bw_linked_graph *linked, uint32_t counts[3])
{
    struct bw_linked_command command;
    memset(counts, 0, 3 * sizeof *counts);
    for (uint32_t i = 0; bw_linked_graph_command(linked, i, &command); i++)
        counts[command.kind]++;
}

static void chain_fill(struct chain *chain, uint8_t model[LINKS + 1][BYTES])
{
    for (int i = 0; i <= LINKS; i++) {
        for (int k = 0; k < BYTES; k++)
            model[i][k] = (uint8_t)(i * 50 + k);
        BW_OK(bw_buffer_write(chain->buffers[i], 0, model[i], BYTES, &chain->machine.rig.err),
              &chain->machine.rig.err);
    }
}

static void chain_check(struct chain *chain, uint8_t model[LINKS + 1][BYTES], int replays)
{
    uint8_t got[BYTES];
    for (int i = 0; i < LINKS * replays; i++) {
        int at = i % LINKS;
        if (at % 2)
            memcpy(model[at + 1], model[at], BYTES);
        else
            mix_run(model[at + 1], BYTES, model[at], BYTES, (uint32_t)at);
    }
    for (int i = 1; i <= LINKS; i++) {
        BW_OK(bw_buffer_read(chain->buffers[i], 0, got, BYTES, &chain->machine.rig.err),
              &chain->machine.rig.err);
        BW_BYTES(got, model[i], BYTES);
    }
}

/* One system call for each submission where the kernel wants one, and no wait of the host in between. The
 * first replay makes queues and caches of code ready. */
static void goes_by_itself(uint32_t gpus)
{
    enum { REPLAYS = 3 };
    struct chain chain;
    uint8_t model[LINKS + 1][BYTES];
    uint32_t counts[3];
    uint64_t ticket = 0;
    if (!chain_machine(&chain, gpus))
        return;
    struct rig *rig = &chain.machine.rig;
    chain_link(&chain, gpus);
    if (!BW_TRUE(chain.linked != NULL))
        return;
    commands_count(chain.linked, counts);
    BW_EQ(counts[BW_STEP_HOST_WAIT], 0);
    BW_EQ(counts[BW_STEP_AFTER], WAY_EITHER(0, LINKS - 1));
    BW_TRUE(WAY_DRM ? counts[BW_STEP_SUBMIT] == LINKS : counts[BW_STEP_SUBMIT] <= 2 * gpus);
    chain_fill(&chain, model);
    BW_OK(bw_linked_graph_replay(chain.linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(chain.linked, ticket, &rig->err), &rig->err);
    uint64_t before = bw_sys_wrap_calls(chain.machine.sys, BW_SYS_CALL_IOCTL);
    for (int replay = 0; replay < REPLAYS; replay++)
        BW_OK(bw_linked_graph_replay(chain.linked, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_sys_wrap_calls(chain.machine.sys, BW_SYS_CALL_IOCTL) - before, WAY_EITHER(0, LINKS * REPLAYS));
    BW_OK(bw_linked_graph_wait(chain.linked, ticket, &rig->err), &rig->err);
    chain_check(&chain, model, 1 + REPLAYS);
    chain_close(&chain);
}

static void a_chain_over_queues_goes_by_itself(void)
{
    goes_by_itself(1);
}

static void a_chain_over_gpus_goes_by_itself(void)
{
    goes_by_itself(2);
}

/* Links a graph of one call: a kernel that never ends well, or a copy. */
static struct bw_linked_graph *link_one(struct rig *rig, const char *kernel, struct bw_buffer *to,
                                        struct bw_buffer *from)
{
    struct bw_graph *graph = rig_graph(rig);
    struct bw_argument argument = argument_range(range_all(from), BW_ACCESS_READ | BW_ACCESS_WRITE);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    if (kernel)
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, kernel), &launch, &rig->err), &rig->err);
    else
        BW_OK(bw_graph_copy(graph, rig->devices[0], range_all(to), range_all(from), &rig->err), &rig->err);
    return rig_link(rig, graph);
}

/* A graph that fails, one that copies what it was to write, and one that copies that: whoever waits for the
 * last one only hears of it, also when the GPU was recovered meanwhile. */
static void who_comes_after_a_failure_hears_of_it(void)
{
    static const char *const kernels[] = {"endless", "illegal"};
    for (int i = 0; i < 4; i++) {
        struct machine machine;
        struct bw_buffer *buffers[3];
        struct bw_linked_graph *linked[3];
        uint64_t tickets[3];
        int failure = i % 2 ? -EIO : -ETIMEDOUT;
        if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
            return;
        struct rig *rig = &machine.rig;
        for (int k = 0; k < 3; k++)
            buffers[k] = rig_buffer(rig, 0, BYTES, 0);
        linked[0] = link_one(rig, kernels[i % 2], NULL, buffers[0]);
        linked[1] = link_one(rig, NULL, buffers[1], buffers[0]);
        linked[2] = link_one(rig, NULL, buffers[2], buffers[1]);
        for (int k = 0; k < 3; k++)
            BW_OK(bw_linked_graph_replay(linked[k], NULL, &tickets[k], &rig->err), &rig->err);
        if (i < 2) {
            BW_EQ(bw_linked_graph_wait(linked[2], tickets[2], &rig->err), failure);
            BW_TRUE(error_says(&rig->err, kernels[i % 2]));
        } else {
            BW_EQ(bw_linked_graph_wait(linked[0], tickets[0], &rig->err), failure);
        }
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        for (int k = 0; k < 3; k++)
            BW_EQ(bw_linked_graph_wait(linked[k], tickets[k], &rig->err), -ECANCELED);
        matmul_works(rig, 0);
        for (int k = 0; k < 3; k++) {
            bw_linked_graph_destroy(linked[k]);
            bw_buffer_destroy(buffers[k]);
        }
        machine_close(&machine);
    }
}

/* A kernel of each GPU, one after the other. */
static void pair_works(struct rig *rig, struct bw_linked_graph *pair, struct bw_buffer *const buffers[2])
{
    uint8_t model[2][BYTES], got[BYTES];
    uint64_t ticket;
    for (int i = 0; i < 2; i++) {
        memset(model[i], 3 + i, BYTES);
        BW_OK(bw_buffer_write(buffers[i], 0, model[i], BYTES, &rig->err), &rig->err);
    }
    if (!BW_OK(bw_linked_graph_replay(pair, NULL, &ticket, &rig->err), &rig->err))
        return;
    BW_OK(bw_linked_graph_wait(pair, ticket, &rig->err), &rig->err);
    mix_run(model[0], BYTES, model[1], BYTES, 1);
    mix_run(model[1], BYTES, model[0], BYTES, 2);
    BW_OK(bw_buffer_read(buffers[1], 0, got, BYTES, &rig->err), &rig->err);
    BW_BYTES(got, model[1], BYTES);
}

/* In one graph: a kernel that fails, a copy of another queue of its GPU that comes after it, and a copy of
 * another GPU that comes after that one. Queues made anew by recovering are waited for as before. */
static void another_gpu_hears_of_a_failure_in_its_graph(void)
{
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *a = rig_buffer(rig, 0, BYTES, 0), *b = rig_buffer(rig, 0, BYTES, 0),
                     *c = rig_buffer(rig, 1, BYTES, 0);
    struct bw_argument argument = argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "illegal"), &launch, &rig->err), &rig->err);
    BW_OK(bw_graph_copy(graph, rig->devices[0], range_all(b), range_all(a), &rig->err), &rig->err);
    BW_OK(bw_graph_copy(graph, rig->devices[1], range_all(c), range_all(b), &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    struct bw_buffer *both[2] = {rig_buffer(rig, 0, BYTES, BW_BUFFER_HOST),
                                 rig_buffer(rig, 1, BYTES, BW_BUFFER_HOST)};
    graph = rig_graph(rig);
    BW_OK(mix_add(rig, graph, 0, range_all(both[0]), range_all(both[1]), 1, -1), &rig->err);
    BW_OK(mix_add(rig, graph, 1, range_all(both[1]), range_all(both[0]), 2, -1), &rig->err);
    struct bw_linked_graph *pair = rig_link(rig, graph);
    pair_works(rig, pair, both);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -EIO);
    BW_TRUE(error_says(&rig->err, "illegal"));
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -ECANCELED);
    pair_works(rig, pair, both);
    matmul_works(rig, 0);
    matmul_works(rig, 1);
    bw_linked_graph_destroy(linked);
    bw_linked_graph_destroy(pair);
    bw_buffer_destroy(both[0]);
    bw_buffer_destroy(both[1]);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    bw_buffer_destroy(c);
    machine_close(&machine);
}

static struct bw_linked_graph *link_mix(struct rig *rig, struct bw_buffer *to, struct bw_buffer *from)
{
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(mix_add(rig, graph, 1, range_all(to), range_all(from), 1, -1), &rig->err);
    return rig_link(rig, graph);
}

/* By whom a GPU's failure is first met, of those that came after it on another GPU. */
enum meeting { WAIT_FOR_NEXT, WAIT_FOR_LAST, SYNCHRONIZE, READ, MEETINGS };

struct relay {
    struct machine machine;
    struct bw_buffer *buffers[3];     /* host memory of the first GPU, then two of the second */
    struct bw_buffer *spare;          /* of the first */
    struct bw_linked_graph *links[3]; /* who fails, who reads what that was to write, who reads that */
    uint64_t tickets[3];              /* 0: refused */
};

static int relay_meet(struct relay *relay, enum meeting meeting)
{
    struct rig *rig = &relay->machine.rig;
    uint8_t got[BYTES];
    switch (meeting) {
    case WAIT_FOR_NEXT:
        return bw_linked_graph_wait(relay->links[1], relay->tickets[1], &rig->err);
    case WAIT_FOR_LAST:
        return bw_linked_graph_wait(relay->links[2], relay->tickets[2], &rig->err);
    case SYNCHRONIZE:
        return bw_device_synchronize(rig->devices[1], &rig->err);
    default:
        return bw_buffer_read(relay->buffers[1], 0, got, BYTES, &rig->err);
    }
}

/* Recovered, the same graphs run, with queues that are made anew. */
static void relay_works(struct relay *relay, struct bw_linked_graph *good)
{
    struct rig *rig = &relay->machine.rig;
    uint8_t model[3][BYTES] = {{0}}, got[BYTES] = {0};
    uint64_t ticket = 0;
    for (int i = 0; i < BYTES; i++)
        model[0][i] = (uint8_t)(i * 7 + 1);
    BW_OK(bw_buffer_write(relay->spare, 0, model[0], BYTES, &rig->err), &rig->err);
    for (int k = 1; k < 3; k++)
        BW_OK(bw_buffer_write(relay->buffers[k], 0, model[k], BYTES, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_replay(good, NULL, &ticket, &rig->err), &rig->err);
    for (int k = 1; k < 3; k++)
        BW_OK(bw_linked_graph_replay(relay->links[k], NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(relay->links[2], ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(relay->buffers[2], 0, got, BYTES, &rig->err), &rig->err);
    for (int k = 1; k < 3; k++)
        mix_run(model[k], BYTES, model[k - 1], BYTES, 1);
    BW_BYTES(got, model[2], BYTES);
}

/* In three graphs: one that fails on a GPU, one in which another GPU copies what that was to write, and one
 * of that other GPU alone. The last one is refused, or lost with the others. */
static void another_gpu_hears_of_a_failure_in_another_graph(void)
{
    for (int i = 0; i < 2 * MEETINGS; i++) {
        struct relay relay = {.machine = {0}};
        int failure = i % 2 ? -EIO : -ETIMEDOUT, last;
        if (!machine_open(&relay.machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
            return;
        struct rig *rig = &relay.machine.rig;
        for (uint32_t k = 0; k < 3; k++)
            relay.buffers[k] = rig_buffer(rig, k > 0, BYTES, k ? 0 : BW_BUFFER_HOST);
        relay.spare = rig_buffer(rig, 0, BYTES, 0);
        struct bw_linked_graph *good = link_one(rig, NULL, relay.buffers[0], relay.spare);
        relay.links[0] = link_one(rig, i % 2 ? "illegal" : "endless", NULL, relay.buffers[0]);
        for (int k = 1; k < 3; k++)
            relay.links[k] = link_mix(rig, relay.buffers[k], relay.buffers[k - 1]);
        for (int k = 0; k < 2; k++)
            BW_OK(bw_linked_graph_replay(relay.links[k], NULL, &relay.tickets[k], &rig->err), &rig->err);
        if (i / 2 == WAIT_FOR_LAST) {
            last = bw_linked_graph_replay(relay.links[2], NULL, &relay.tickets[2], &rig->err);
            BW_EQ(last, WAY_EITHER(0, failure));
        }
        if (i / 2 != WAIT_FOR_LAST || relay.tickets[2])
            BW_EQ(relay_meet(&relay, i / 2), failure);
        BW_TRUE(error_says(&rig->err, i % 2 ? "illegal" : "endless"));
        BW_TRUE(error_says(&rig->err, WAY "+amd:0@gfx1100"));
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        for (int k = 0; k < 3; k++) {
            if (relay.tickets[k])
                BW_EQ(bw_linked_graph_wait(relay.links[k], relay.tickets[k], &rig->err), -ECANCELED);
        }
        relay_works(&relay, good);
        bw_linked_graph_destroy(good);
        for (int k = 0; k < 3; k++)
            bw_linked_graph_destroy(relay.links[k]);
        for (int k = 0; k < 3; k++)
            bw_buffer_destroy(relay.buffers[k]);
        bw_buffer_destroy(relay.spare);
        machine_close(&relay.machine);
    }
}

BW_TEST_MAIN("scenario.hcq_submissions",
             {"a chain over queues goes by itself", a_chain_over_queues_goes_by_itself},
             {"a chain over GPUs goes by itself", a_chain_over_gpus_goes_by_itself},
             {"who comes after a failure hears of it", who_comes_after_a_failure_hears_of_it},
             {"another GPU hears of a failure in its graph", another_gpu_hears_of_a_failure_in_its_graph},
             {"another GPU hears of a failure in another graph",
              another_gpu_hears_of_a_failure_in_another_graph})
