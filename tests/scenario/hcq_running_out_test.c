/* Goal (S10): what runs out is named with its limit, freed, and the work goes on: VRAM, scratch, grids. */
#include "tests/unit/hcq/mock_rig.h"

static void vram_runs_out_and_comes_back(void)
{
    enum { BUFFERS_MAX = 200 };
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffers[BUFFERS_MAX];
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        int rc = 0;
        while (count < BUFFERS_MAX && !rc) {
            rc =
                bw_buffer_create(rig->devices[0], (uint64_t)(1 + round) << 20, 0, &buffers[count], &rig->err);
            count += rc == 0;
        }
        BW_EQ(rc, -ENOMEM);
        BW_TRUE(count * (1u + (uint32_t)round) >= 40); /* most of 64 MiB */
        BW_TRUE(error_says(&rig->err, "kfd+amd:0"));
        for (uint32_t i = 0; i < count; i++) /* other sizes in the next round: the cache has to give way */
            bw_buffer_destroy(buffers[i]);
        mix_works(rig, 0);
    }
    machine_close(&machine);
}

static void scratch_may_grow_after_a_graph_was_linked(void)
{
    struct machine machine;
    uint32_t first[32], again[32];
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, sizeof first, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(7)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "scratch_16"), &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, first, sizeof first, &rig->err), &rig->err);
    if (!BW_OK(run(rig, 0, "scratch_1024", arguments, 2), &rig->err)) {
        char text[400];
        bw_mock_last_error(machine.sys, text, sizeof text);
        printf("    mock: %s\n", text);
    }
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t memory[1024], sum = 0;
        for (uint32_t i = 0; i < 1024; i++)
            memory[i * 7 % 1024] = i + lane;
        for (uint32_t i = 0; i < 1024; i++)
            sum = sum * 3 + memory[i];
        if (!BW_OK(bw_buffer_read(out, lane * 4, &again[lane], 4, &rig->err), &rig->err) ||
            !BW_EQ(again[lane], sum))
            break;
    }
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, again, sizeof again, &rig->err), &rig->err);
    BW_BYTES(again, first, sizeof first);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(out);
    machine_close(&machine);
}

static void grids_past_their_limit_are_refused(void)
{
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, RIG_STEPPED, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    const uint32_t groups_max = UINT32_MAX / 32; /* work-items in 32 bits */
    struct bw_argument arguments[] = {argument_value(0), argument_value(0)};
    struct bw_launch launch = {.group_count = {{groups_max + 1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_kernel *kernel = rig_kernel(rig, 0, "store_at");
    struct bw_graph *graph = rig_graph(rig);
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "2^32-1"));
    launch.group_size[0] = 2048; /* more than a workgroup holds */
    launch.group_count[0].value = 1;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    launch.group_size[0] = 32;
    launch.group_count[0] = (struct bw_dimension){0, true};
    BW_OK(bw_graph_kernel(graph, kernel, &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    uint32_t groups = groups_max + 1;
    struct bw_replay replay = {.variables = &groups, .variable_count = 1};
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    groups = 0;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    bw_linked_graph_destroy(linked);
    machine_close(&machine);
}

BW_TEST_MAIN("scenario.hcq_running_out", {"VRAM runs out and comes back", vram_runs_out_and_comes_back},
             {"scratch may grow after a graph was linked", scratch_may_grow_after_a_graph_was_linked},
             {"grids past their limit are refused", grids_past_their_limit_are_refused})
