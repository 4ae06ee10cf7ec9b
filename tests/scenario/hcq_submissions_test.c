/* Goal (S5): kernels and copies of one GPU that depend on each other go from one queue to another without the
 * host, whether queues are fed by doorbells or by the kernel; and nobody who comes after work that failed is
 * told that it was well, although the kernel lets go of what waits for failed work. */
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

static bool chain_machine(struct chain *chain)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = 1,
                                  .cu_count = 1,
                                  .vram_bytes = VRAM_BYTES,
                                  .threads = 1,
                                  .kfd_absent = WAY_DRM};
    static const char *const names[] = {WAY "+amd:0", NULL};
    struct bw_err err;
    *chain = (struct chain){0};
    if (!BW_OK(bw_mock_kfd_create(&mock, &chain->mock, &err), &err) ||
        !BW_EQ(bw_sys_wrap_create(chain->mock, &chain->machine.sys), 0))
        return false;
    struct bw_ctx_config config = {.size = sizeof config, .sys = chain->machine.sys};
    return rig_open(&chain->machine.rig, &config, names);
}

/* buffers[i + 1] = mix of itself and buffers[i], on the compute queue and on a copy queue in turn. */
static void chain_link(struct chain *chain)
{
    struct rig *rig = &chain->machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (int i = 0; i <= LINKS; i++)
        chain->buffers[i] = rig_buffer(rig, 0, BYTES, 0);
    for (int i = 0; i < LINKS; i++) {
        struct bw_range to = range_all(chain->buffers[i + 1]), from = range_all(chain->buffers[i]);
        if (i % 2)
            BW_OK(bw_graph_copy(graph, rig->devices[0], to, from, &rig->err), &rig->err);
        else
            BW_OK(mix_add(rig, graph, 0, to, from, (uint32_t)i, -1), &rig->err);
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

/* One system call for each submission where the kernel wants one, and no wait of the host in between. */
static void a_chain_over_queues_goes_by_itself(void)
{
    enum { REPLAYS = 3 };
    struct chain chain;
    uint8_t model[LINKS + 1][BYTES] = {{0}}, got[BYTES];
    uint32_t counts[3];
    uint64_t ticket = 0;
    if (!chain_machine(&chain))
        return;
    struct rig *rig = &chain.machine.rig;
    chain_link(&chain);
    if (!BW_TRUE(chain.linked != NULL))
        return;
    commands_count(chain.linked, counts);
    BW_EQ(counts[BW_STEP_HOST_WAIT], 0);
    BW_EQ(counts[BW_STEP_AFTER], WAY_EITHER(0, LINKS - 1));
    BW_EQ(counts[BW_STEP_SUBMIT], WAY_EITHER(2, LINKS));
    for (int i = 0; i <= LINKS; i++) {
        for (int k = 0; k < BYTES; k++)
            model[i][k] = (uint8_t)(i * 50 + k);
        BW_OK(bw_buffer_write(chain.buffers[i], 0, model[i], BYTES, &rig->err), &rig->err);
    }
    uint64_t before = bw_sys_wrap_calls(chain.machine.sys, BW_SYS_CALL_IOCTL);
    for (int replay = 0; replay < REPLAYS; replay++)
        BW_OK(bw_linked_graph_replay(chain.linked, NULL, &ticket, &rig->err), &rig->err);
    uint64_t calls = bw_sys_wrap_calls(chain.machine.sys, BW_SYS_CALL_IOCTL) - before;
    /* The first one invalidates caches of code on its own: at most one submission more. */
    BW_TRUE(calls - WAY_EITHER(0, LINKS * REPLAYS) <= WAY_EITHER(0, 1));
    BW_OK(bw_linked_graph_wait(chain.linked, ticket, &rig->err), &rig->err);
    for (int i = 0; i < LINKS * REPLAYS; i++) {
        int at = i % LINKS;
        if (at % 2)
            memcpy(model[at + 1], model[at], BYTES);
        else
            mix_run(model[at + 1], BYTES, model[at], BYTES, (uint32_t)at);
    }
    for (int i = 1; i <= LINKS; i++) {
        BW_OK(bw_buffer_read(chain.buffers[i], 0, got, BYTES, &rig->err), &rig->err);
        BW_BYTES(got, model[i], BYTES);
    }
    chain_close(&chain);
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

/* Where another GPU waits for a copy queue that came after a kernel that failed, the host waits in between:
 * for the kernel, too, so that the other GPU is never given what was not computed. */
static void another_gpu_is_not_given_what_failed(void)
{
    struct machine machine;
    uint64_t ticket;
    uint8_t before[BYTES], after[BYTES];
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *a = rig_buffer(rig, 0, BYTES, 0), *b = rig_buffer(rig, 0, BYTES, 0),
                     *c = rig_buffer(rig, 1, BYTES, 0);
    memset(before, 0x5a, BYTES);
    BW_OK(bw_buffer_write(c, 0, before, BYTES, &rig->err), &rig->err);
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
    int rc = bw_linked_graph_replay(linked, NULL, &ticket, &rig->err);
    BW_EQ(rc, WAY_EITHER(0, -EIO));
    if (!rc)
        BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -EIO);
    BW_TRUE(error_says(&rig->err, "illegal"));
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    BW_OK(bw_buffer_read(c, 0, after, BYTES, &rig->err), &rig->err);
    if (WAY_DRM)
        BW_BYTES(after, before, BYTES);
    matmul_works(rig, 0);
    matmul_works(rig, 1);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    bw_buffer_destroy(c);
    machine_close(&machine);
}

BW_TEST_MAIN("scenario.hcq_submissions",
             {"a chain over queues goes by itself", a_chain_over_queues_goes_by_itself},
             {"who comes after a failure hears of it", who_comes_after_a_failure_hears_of_it},
             {"another GPU is not given what failed", another_gpu_is_not_given_what_failed})
