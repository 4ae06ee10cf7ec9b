/* What the schedule of a full all-to-all over 8 GPUs reaches of what links and engines allow: recorded from
 * the mock's engines, timed by a simulation that knows nothing of the scheduler. It says nothing of this
 * machine's speed. */
#include "mock/timing.h"
#include "tests/scenario/box.h"

enum { GPUS = GPUS_MAX };

/* In whatever order a program lists them: by source, by target, or in steps around a ring. */
enum order { BY_SOURCE, BY_TARGET, IN_STEPS, ORDERS };

static void pair_of(enum order order, uint32_t i, uint32_t *from, uint32_t *to)
{
    *from = order == BY_SOURCE ? i / GPUS : i % GPUS;
    *to = order == BY_SOURCE ? i % GPUS : order == BY_TARGET ? i / GPUS : (i % GPUS + i / GPUS) % GPUS;
}

static struct bw_linked_graph *all_to_all_link(struct box *box, enum order order, uint64_t part_bytes,
                                               bool self)
{
    struct bw_copy_lane lanes[GPUS * GPUS];
    struct bw_linked_graph *linked = NULL;
    struct bw_graph *graph;
    uint32_t count = 0, from, to;
    for (uint32_t i = 0; i < GPUS * GPUS; i++) {
        pair_of(order, i, &from, &to);
        if (from != to || self)
            lanes[count++] = (struct bw_copy_lane){box->devices[from],
                                                   {box->in[to], 0, from * part_bytes, part_bytes},
                                                   {box->out[from], 0, to * part_bytes, part_bytes}};
    }
    BW_OK(bw_graph_create(box->ctx, &graph, &box->err), &box->err);
    BW_OK(bw_graph_copy_lanes(graph, lanes, count, &box->err), &box->err);
    BW_OK(bw_graph_link(graph, NULL, &linked, &box->err), &box->err);
    bw_graph_destroy(graph);
    return linked;
}

static bool topology_read(const char *name, struct bw_topology *topology)
{
    char path[256], text[1 << 16];
    struct bw_err err = {0};
    snprintf(path, sizeof path, BW_SOURCE_DIR "/data/topologies/%s.json", name);
    FILE *file = fopen(path, "r");
    if (!BW_TRUE(file != NULL))
        return false;
    size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    return BW_OK(bw_topology_parse(name, text, bytes, topology, &err), &err);
}

static double share_of(struct box *box, struct bw_linked_graph *linked, const struct bw_topology *topology,
                       uint64_t part_bytes, bool self)
{
    struct bw_mock_recording recording;
    struct bw_timing timing = {0};
    uint64_t traffic[GPUS * GPUS], ticket, bytes = 0;
    double bound = 0;
    for (uint32_t i = 0; i < GPUS * GPUS; i++) {
        traffic[i] = i / GPUS == i % GPUS && !self ? 0 : part_bytes;
        bytes += traffic[i];
    }
    if (!BW_OK(bw_mock_record_begin(box->sys, &box->err), &box->err) ||
        !BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &box->err), &box->err) ||
        !BW_OK(bw_linked_graph_wait(linked, ticket, &box->err), &box->err) ||
        !BW_OK(bw_mock_record_end(box->sys, &recording, &box->err), &box->err))
        return 0;
    if (BW_OK(bw_timing_simulate(topology, &recording, &timing, &box->err), &box->err) &&
        BW_OK(bw_timing_bound(topology, traffic, &bound, &box->err), &box->err))
        BW_EQ(timing.bytes, bytes);
    double share = timing.seconds > 0 ? bound / timing.seconds : 0;
    bw_timing_free(&timing);
    bw_mock_recording_free(&recording);
    return share;
}

/* share_min: of the bound, with what a GPU keeps to itself and without. */
static void reaches(const char *name, uint32_t xgmi_engines, uint64_t part_bytes, double share_min,
                    double share_min_without)
{
    struct bw_topology topology;
    struct box box;
    if (!topology_read(name, &topology))
        return;
    if (box_open(
            &box,
            (struct bw_mock_config){.gpu_count = GPUS, .vram_bytes = 1 << 30, .xgmi_engines = xgmi_engines},
            GPUS * part_bytes, 0, (const char *const[]){NULL})) {
        for (int i = 0; i < 2 * ORDERS; i++) {
            enum order order = (enum order)(i / 2);
            struct bw_linked_graph *linked = all_to_all_link(&box, order, part_bytes, i % 2);
            double share = linked ? share_of(&box, linked, &topology, part_bytes, i % 2) : 0;
            BW_TRUE(share >= (i % 2 ? share_min : share_min_without));
            BW_TRUE(share <= 1 + 1e-9); /* a bound it is */
            bw_linked_graph_destroy(linked);
        }
    }
    box_close(&box);
    bw_topology_free(&topology);
}

static void mi300x(void)
{
    reaches("8xMI300X", 14, 2 << 20, 0.9, 0.9);
    reaches("8xMI300X", 14, 512 << 10, 0.9, 0.9); /* in parts of 256 KiB, two to a link */
}

static void mi350x(void)
{
    /* Its links are faster than two engines. 14 of 16 engines serve them, and the others help when nothing
     * stays on a GPU: whoever comes third to a link finds no third engine's rate there, so parts are unequal.
     */
    reaches("8xMI350X", 14, 8 << 20, 0.9, 0.9);
    reaches("8xMI350X", 14, 2 << 20, 0.9, 0.88); /* a copy's latency is 2 % of the time here */
}

static void rx7900xtx(void)
{
    reaches("8xRX7900XTX", 0, 1 << 20, 0.9, 0.9);
}

BW_TEST_MAIN("all to all, bound", {"mi300x", mi300x}, {"mi350x", mi350x}, {"rx7900xtx", rx7900xtx})
