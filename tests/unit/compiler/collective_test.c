/* Collectives: every kind by every strategy, on host queues and on mock GPUs, against sums in f64; the same
 * bits at every run and on every rank; what cannot be is refused by name. */
#include <bellwire/collective.h>
#include <bellwire/mock.h>
#include <bellwire/profile.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/seed.h"

enum {
    RANKS_MAX = 9,
    COUNT_LARGEST = 1500,
    ELEMENTS_MAX = RANKS_MAX * COUNT_LARGEST,
    BYTES_MAX = ELEMENTS_MAX * 8
};

struct box {
    struct bw_ctx *ctx;
    uint32_t ranks;
    struct bw_device *devices[RANKS_MAX];
    struct bw_buffer *send[RANKS_MAX], *receive[RANKS_MAX];
    struct bw_rng rng;
    struct bw_err err;
};

/* One collective that is tried. */
struct trial {
    struct bw_collective_options options;
    bool in_place;
    bool as_inputs; /* given at each replay */
    bool exact;     /* values and sums that every type holds */
};

static double sent[RANKS_MAX][ELEMENTS_MAX], wanted[RANKS_MAX][ELEMENTS_MAX], slack[RANKS_MAX][ELEMENTS_MAX];
static uint8_t memory[BYTES_MAX], results[RANKS_MAX][BYTES_MAX], again[BYTES_MAX];

static bool box_open(struct box *box, const char *names, uint32_t ranks)
{
    struct bw_ctx_config config = {
        .size = sizeof config, .cache_dir = "", .host_threads = 1, .mock_threads = 1};
    *box = (struct box){.rng = bw_test_rng("collective")};
    bool ok = BW_OK(bw_ctx_create(&config, &box->ctx, &box->err), &box->err) &&
              BW_OK(bw_device_open_list(box->ctx, names, box->devices, RANKS_MAX, &box->ranks, &box->err),
                    &box->err) &&
              BW_EQ(box->ranks, ranks);
    for (uint32_t i = 0; i < ranks && ok; i++)
        ok = BW_OK(bw_buffer_create(box->devices[i], BYTES_MAX, 0, &box->send[i], &box->err), &box->err) &&
             BW_OK(bw_buffer_create(box->devices[i], BYTES_MAX, 0, &box->receive[i], &box->err), &box->err);
    return ok;
}

static void box_close(struct box *box)
{
    for (uint32_t i = 0; i < box->ranks; i++) {
        bw_buffer_destroy(box->send[i]);
        bw_buffer_destroy(box->receive[i]);
    }
    for (uint32_t i = 0; i < box->ranks; i++)
        bw_device_close(box->devices[i]);
    bw_ctx_destroy(box->ctx);
}

static void element_put(uint8_t *at, enum bw_dtype dtype, double value)
{
    uint16_t half = dtype == BW_F16 ? bw_f16_from_f64(value) : bw_bf16_from_f64(value);
    float single = (float)value;
    int32_t word = (int32_t)value;
    uint8_t byte = (uint8_t)(int32_t)value;
    const void *from = dtype == BW_F64   ? (const void *)&value
                       : dtype == BW_F32 ? (const void *)&single
                       : dtype == BW_I32 ? (const void *)&word
                       : dtype == BW_U8  ? (const void *)&byte
                                         : (const void *)&half;
    memcpy(at, from, bw_dtype_bytes(dtype));
}

static double element_get(const uint8_t *at, enum bw_dtype dtype)
{
    uint16_t half;
    float single;
    double wide;
    int32_t word;
    switch (dtype) {
    case BW_F64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case BW_F32:
        memcpy(&single, at, sizeof single);
        return single;
    case BW_I32:
        memcpy(&word, at, sizeof word);
        return word;
    case BW_U8:
        return *at;
    default:
        memcpy(&half, at, sizeof half);
        return dtype == BW_F16 ? bw_f16_to_f32(half) : bw_bf16_to_f32(half);
    }
}

static double round_off(enum bw_dtype dtype)
{
    return dtype == BW_F16 ? 0x1p-11 : dtype == BW_BF16 ? 0x1p-8 : dtype == BW_F32 ? 0x1p-24 : 0x1p-53;
}

/* ---- what goes in, what is to come out ---- */

static uint64_t send_count(const struct box *box, const struct trial *trial)
{
    bool all = trial->options.kind == BW_REDUCE_SCATTER || trial->options.kind == BW_ALL_TO_ALL;
    return trial->options.count * (all ? box->ranks : 1);
}

static uint64_t receive_count(const struct box *box, const struct trial *trial)
{
    bool all = trial->options.kind == BW_ALL_GATHER || trial->options.kind == BW_ALL_TO_ALL;
    return trial->options.count * (all ? box->ranks : 1);
}

static double fold(enum bw_reduction reduction, double a, double b)
{
    switch (reduction) {
    case BW_REDUCE_PROD:
        return a * b;
    case BW_REDUCE_MIN:
        return fmin(a, b);
    case BW_REDUCE_MAX:
        return fmax(a, b);
    default:
        return a + b;
    }
}

static void reduced(const struct box *box, const struct trial *trial, uint32_t rank, uint64_t i, uint64_t at)
{
    double value = sent[0][at], size = fabs(value),
           scale = trial->options.reduction == BW_REDUCE_AVG ? 1.0 / box->ranks : 1;
    for (uint32_t from = 1; from < box->ranks; from++) {
        value = fold(trial->options.reduction, value, sent[from][at]);
        size += fabs(sent[from][at]);
    }
    wanted[rank][i] = value * scale;
    slack[rank][i] = (box->ranks + 1) * round_off(trial->options.transport) * size;
}

static void expect(const struct box *box, const struct trial *trial)
{
    uint64_t count = trial->options.count;
    for (uint32_t rank = 0; rank < box->ranks; rank++) {
        for (uint64_t i = 0; i < receive_count(box, trial); i++) {
            slack[rank][i] = trial->options.transport == trial->options.dtype
                                 ? 0
                                 : round_off(trial->options.transport) * 4;
            switch (trial->options.kind) {
            case BW_ALL_GATHER:
                wanted[rank][i] = sent[i / count][i % count];
                break;
            case BW_BROADCAST:
                wanted[rank][i] = sent[trial->options.root][i];
                break;
            case BW_ALL_TO_ALL:
                wanted[rank][i] = sent[i / count][rank * count + i % count];
                break;
            case BW_REDUCE_SCATTER:
                reduced(box, trial, rank, i, rank * count + i);
                break;
            default:
                reduced(box, trial, rank, i, i);
                break;
            }
        }
    }
}

static void inputs_make(struct box *box, const struct trial *trial)
{
    for (uint32_t rank = 0; rank < box->ranks; rank++) {
        for (uint64_t i = 0; i < send_count(box, trial); i++) {
            double value = trial->exact ? (double)bw_rng_below(&box->rng, 4) : 2 * bw_rng_unit(&box->rng) - 1;
            uint8_t bytes[8];
            element_put(bytes, trial->options.dtype, value);
            sent[rank][i] = element_get(bytes, trial->options.dtype);
        }
    }
}

/* ---- one trial ---- */

/* Where send lies in the receive buffer, or receive in the send buffer, when that is in place. */
static void ranges_choose(const struct box *box, const struct trial *trial, struct bw_range *send,
                          struct bw_range *receive)
{
    uint64_t element = bw_dtype_bytes(trial->options.dtype), part = trial->options.count * element;
    for (uint32_t rank = 0; rank < box->ranks; rank++) {
        send[rank] = (struct bw_range){box->send[rank], 0, 0, send_count(box, trial) * element};
        receive[rank] = (struct bw_range){box->receive[rank], 0, 0, receive_count(box, trial) * element};
        if (!trial->in_place)
            continue;
        receive[rank].buffer = box->send[rank];
        send[rank].offset = trial->options.kind == BW_ALL_GATHER ? rank * part : 0;
        receive[rank].offset = trial->options.kind == BW_REDUCE_SCATTER ? rank * part : 0;
    }
}

/* What the graph is told: numbers in place of buffers. */
static void inputs_number(const struct box *box, const struct trial *trial, struct bw_range *ranges,
                          bool receive)
{
    for (uint32_t rank = 0; rank < box->ranks && trial->as_inputs; rank++) {
        ranges[rank].buffer = NULL;
        ranges[rank].input = rank + (receive && !trial->in_place ? box->ranks : 0);
    }
}

static bool run(struct box *box, const struct trial *trial, struct bw_linked_graph *linked,
                const struct bw_range *send, const struct bw_range *receive)
{
    uint64_t ticket, element = bw_dtype_bytes(trial->options.dtype);
    bool ok = true;
    for (uint32_t rank = 0; rank < box->ranks && ok; rank++) {
        memset(memory, 0xa5, sizeof memory);
        ok = BW_OK(bw_buffer_write(receive[rank].buffer, receive[rank].offset, memory,
                                   receive[rank].size_bytes, &box->err),
                   &box->err);
        for (uint64_t i = 0; i < send_count(box, trial); i++)
            element_put(memory + i * element, trial->options.dtype, sent[rank][i]);
        ok = ok && BW_OK(bw_buffer_write(send[rank].buffer, send[rank].offset, memory, send[rank].size_bytes,
                                         &box->err),
                         &box->err);
    }
    struct bw_buffer *inputs[2 * RANKS_MAX];
    memcpy(inputs, box->send, box->ranks * sizeof *inputs);
    memcpy(inputs + box->ranks, box->receive, box->ranks * sizeof *inputs);
    struct bw_replay replay = {.inputs = inputs,
                               .input_count = trial->as_inputs ? (trial->in_place ? 1 : 2) * box->ranks : 0};
    return ok && BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &box->err), &box->err) &&
           BW_OK(bw_linked_graph_wait(linked, ticket, &box->err), &box->err);
}

static bool results_check(struct box *box, const struct trial *trial, const struct bw_range *receive)
{
    uint64_t element = bw_dtype_bytes(trial->options.dtype);
    for (uint32_t rank = 0; rank < box->ranks; rank++) {
        if (!BW_OK(bw_buffer_read(receive[rank].buffer, receive[rank].offset, results[rank],
                                  receive[rank].size_bytes, &box->err),
                   &box->err))
            return false;
        for (uint64_t i = 0; i < receive_count(box, trial); i++) {
            double value = element_get(results[rank] + i * element, trial->options.dtype);
            double most = trial->exact ? 0 : slack[rank][i];
            if (fabs(value - wanted[rank][i]) <= most)
                continue;
            printf("%s, %s, %s as %s, %u ranks, %llu elements, in place %d: rank %u, element %llu\n",
                   bw_collective_name(trial->options.kind), bw_strategy_name(trial->options.strategy),
                   bw_dtype_name(trial->options.dtype), bw_dtype_name(trial->options.transport), box->ranks,
                   (unsigned long long)trial->options.count, trial->in_place, rank, (unsigned long long)i);
            return BW_NEAR(value, wanted[rank][i], most);
        }
        if (trial->options.kind == BW_ALL_REDUCE &&
            !BW_BYTES(results[rank], results[0], receive[rank].size_bytes))
            return false;
    }
    return true;
}

static bool repeats(struct box *box, const struct trial *trial, const struct bw_range *receive)
{
    bool ok = true;
    for (uint32_t rank = 0; rank < box->ranks && ok; rank++)
        ok = BW_OK(bw_buffer_read(receive[rank].buffer, receive[rank].offset, again, receive[rank].size_bytes,
                                  &box->err),
                   &box->err) &&
             BW_BYTES(again, results[rank], receive[rank].size_bytes);
    return ok;
}

static bool trial_run(struct box *box, struct trial trial)
{
    struct bw_range send[RANKS_MAX], receive[RANKS_MAX];
    struct bw_collective *collective;
    struct bw_linked_graph *linked = NULL;
    struct bw_graph *graph = NULL;
    trial.options.size = sizeof trial.options;
    if (!BW_OK(bw_collective_create(box->devices, box->ranks, &trial.options, &collective, &box->err),
               &box->err))
        return false;
    if (trial.options.transport == BW_VOID)
        trial.options.transport = trial.options.dtype;
    ranges_choose(box, &trial, send, receive);
    inputs_make(box, &trial);
    expect(box, &trial);
    struct bw_range given_send[RANKS_MAX], given_receive[RANKS_MAX];
    memcpy(given_send, send, sizeof send);
    memcpy(given_receive, receive, sizeof receive);
    inputs_number(box, &trial, given_send, false);
    inputs_number(box, &trial, given_receive, true);
    bool ok = BW_OK(bw_graph_create(box->ctx, &graph, &box->err), &box->err) &&
              BW_OK(bw_collective_add(collective, graph, given_send, given_receive, &box->err), &box->err) &&
              BW_OK(bw_graph_link(graph, NULL, &linked, &box->err), &box->err) &&
              run(box, &trial, linked, send, receive) && results_check(box, &trial, receive) &&
              run(box, &trial, linked, send, receive) && repeats(box, &trial, receive);
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    bw_collective_destroy(collective);
    return ok;
}

/* ---- what is tried ---- */

static void kinds_and_strategies(struct box *box, uint64_t count, enum bw_dtype dtype,
                                 enum bw_dtype transport, bool exact)
{
    for (uint32_t kind = 0; kind < BW_COLLECTIVE_COUNT; kind++) {
        for (uint32_t strategy = BW_STRATEGY_NAIVE; strategy < BW_STRATEGY_COUNT; strategy++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                struct trial trial = {.options = {.kind = (enum bw_collective_kind)kind,
                                                  .strategy = (enum bw_strategy)strategy,
                                                  .dtype = dtype,
                                                  .transport = transport,
                                                  .root = (uint32_t)(count % box->ranks),
                                                  .count = count},
                                      .in_place = in_place,
                                      .exact = exact};
                if ((kind != BW_ALL_TO_ALL || strategy == BW_STRATEGY_DIRECT) && !trial_run(box, trial))
                    return;
            }
        }
    }
}

static void host_queues(void)
{
    struct box box;
    if (box_open(&box, "host:0,host:1,host:2,host:3", 4)) {
        kinds_and_strategies(&box, COUNT_LARGEST, BW_F32, BW_VOID, false);
        kinds_and_strategies(&box, 3, BW_F32, BW_VOID, false); /* fewer elements than ranks */
        kinds_and_strategies(&box, 1001, BW_F16, BW_VOID, false);
        kinds_and_strategies(&box, 1002, BW_BF16, BW_VOID, false);
        kinds_and_strategies(&box, 1003, BW_F32, BW_BF16, false);
        kinds_and_strategies(&box, 64, BW_F64, BW_F16, false);
        kinds_and_strategies(&box, 77, BW_I32, BW_VOID, true);
        kinds_and_strategies(&box, 78, BW_U8, BW_VOID, true);
    }
    box_close(&box);
}

static void tuples_of_any_size(void)
{
    static const char *const names[] = {
        "host:0", "host:0,host:1", "host:0,host:1,host:2", "host:0,host:1,host:2,host:3,host:4",
        "host:0,host:1,host:2,host:3,host:4,host:5,host:6,host:7,host:8" /* more than one kernel folds */};
    static const uint32_t ranks[] = {1, 2, 3, 5, 9};
    for (size_t i = 0; i < BW_COUNT_OF(names); i++) {
        struct box box;
        if (box_open(&box, names[i], ranks[i])) {
            kinds_and_strategies(&box, 100, BW_F32, BW_VOID, false);
            kinds_and_strategies(&box, 1, BW_BF16, BW_VOID, false);
        }
        box_close(&box);
    }
}

static void mock_gpus(void)
{
    struct box box;
    if (box_open(&box, "mockkfd+amd@gfx1100*4,cu=2,vram=64M", 4)) {
        kinds_and_strategies(&box, 130, BW_F32, BW_VOID, false);
        kinds_and_strategies(&box, 65, BW_F16, BW_VOID, false);
        kinds_and_strategies(&box, 66, BW_F32, BW_BF16, false);
    }
    box_close(&box);
}

static void reductions(void)
{
    struct box box;
    if (box_open(&box, "host:0,host:1,host:2", 3)) {
        for (uint32_t reduction = 0; reduction < BW_REDUCE_COUNT; reduction++) {
            for (uint32_t strategy = BW_STRATEGY_NAIVE; strategy < BW_STRATEGY_COUNT; strategy++) {
                struct trial trial = {.options = {.kind = BW_ALL_REDUCE,
                                                  .strategy = (enum bw_strategy)strategy,
                                                  .reduction = (enum bw_reduction)reduction,
                                                  .dtype = BW_F32,
                                                  .count = 50}};
                trial_run(&box, trial);
                trial.options.dtype = BW_I32;
                trial.exact = true;
                if (reduction != BW_REDUCE_AVG)
                    trial_run(&box, trial);
            }
        }
    }
    box_close(&box);
}

static void replay_inputs(void)
{
    struct box box;
    if (box_open(&box, "host:0,host:1,host:2", 3)) {
        for (uint32_t kind = 0; kind < BW_COLLECTIVE_COUNT; kind++) {
            for (int in_place = 0; in_place < 2; in_place++) {
                struct trial trial = {
                    .options = {.kind = (enum bw_collective_kind)kind, .dtype = BW_F32, .count = 20},
                    .in_place = in_place && kind != BW_BROADCAST, /* whose ranks but the root send nothing */
                    .as_inputs = true};
                trial_run(&box, trial);
            }
        }
    }
    box_close(&box);
}

/* Views of one buffer are one memory: what is in place is found to be so. */
static void views_in_place(void)
{
    struct box box;
    if (box_open(&box, "host:0,host:1", 2)) {
        for (uint32_t i = 0; i < box.ranks; i++) {
            bw_buffer_destroy(box.receive[i]);
            BW_OK(bw_buffer_view(box.send[i], 0, BYTES_MAX, &box.receive[i], &box.err), &box.err);
        }
        for (uint32_t strategy = BW_STRATEGY_NAIVE; strategy < BW_STRATEGY_COUNT; strategy++) {
            struct trial trial = {.options = {.kind = BW_ALL_REDUCE,
                                              .strategy = (enum bw_strategy)strategy,
                                              .dtype = BW_F32,
                                              .count = 500}};
            trial_run(&box, trial);
        }
    }
    box_close(&box);
}

/* ---- what is chosen ---- */

static void topology_make(struct bw_topology *topology, struct bw_topology_link *links, uint32_t gpus,
                          bool mesh)
{
    *topology = (struct bw_topology){
        .name = "test", .gpu_count = gpus, .engines_per_gpu = 16, .engine_gb_per_s = 32, .links = links};
    for (uint32_t from = 0; from < gpus; from++) {
        for (uint32_t to = 0; to < gpus && mesh; to++)
            if (from != to)
                links[topology->link_count++] = (struct bw_topology_link){from, to, 64, 0.5};
        links[topology->link_count++] = (struct bw_topology_link){from, BW_TOPOLOGY_HOST, 32, 0.5};
        links[topology->link_count++] = (struct bw_topology_link){BW_TOPOLOGY_HOST, from, 32, 0.5};
    }
}

static enum bw_strategy chosen(struct box *box, enum bw_collective_kind kind, uint64_t count,
                               const struct bw_topology *topology, double *seconds)
{
    struct bw_collective_options options = {
        .size = sizeof options, .kind = kind, .dtype = BW_U8, .count = count, .topology = topology};
    struct bw_collective *collective;
    if (!BW_OK(bw_collective_create(box->devices, box->ranks, &options, &collective, &box->err), &box->err))
        return BW_STRATEGY_AUTO;
    enum bw_strategy strategy = bw_collective_strategy(collective);
    *seconds = bw_collective_seconds(collective);
    bw_collective_destroy(collective);
    return strategy;
}

static void the_cheapest_is_chosen(void)
{
    struct bw_topology_link links[RANKS_MAX * (RANKS_MAX + 1)];
    struct bw_topology topology;
    struct box box;
    double seconds = 0;
    if (box_open(&box, "host:0,host:1,host:2,host:3,host:4", 5)) {
        topology_make(&topology, links, 5, true);
        /* A rank's own part within it, then each to each at once: 4 MB over 64 GB/s. */
        BW_EQ(chosen(&box, BW_ALL_GATHER, 4000000, &topology, &seconds), BW_STRATEGY_DIRECT);
        BW_NEAR(seconds, 5e-6 + 4e6 / 512e9 + 5e-6 + 0.5e-6 + 4e6 / 64e9, 1e-9);
        BW_EQ(chosen(&box, BW_BROADCAST, 40000000, &topology, &seconds), BW_STRATEGY_DIRECT);
        BW_EQ(chosen(&box, BW_BROADCAST, 40, &topology, &seconds), BW_STRATEGY_NAIVE); /* one step */
        topology_make(&topology, links, 5, false);
        /* All from the root over one link is 4 times the bytes; a chain is one time, chunk by chunk. */
        BW_EQ(chosen(&box, BW_BROADCAST, 40000000, &topology, &seconds), BW_STRATEGY_RING);
    }
    box_close(&box);
}

/* ---- what is refused ---- */

static void refused(struct box *box, uint32_t ranks, const struct bw_collective_options *options, int code,
                    const char *what)
{
    struct bw_collective *collective;
    BW_EQ(bw_collective_create(box->devices, ranks, options, &collective, &box->err), code);
    if (!BW_TRUE(strstr(box->err.what, what) != NULL))
        printf("%s\n", box->err.what);
}

static void what_cannot_be_is_refused_by_name(void)
{
    struct bw_collective_options good = {.size = sizeof good,
                                         .kind = BW_ALL_REDUCE,
                                         .dtype = BW_F32,
                                         .count = 8},
                                 bad;
    struct bw_topology_link links[8];
    struct bw_topology topology;
    struct bw_collective *collective;
    struct bw_graph *graph;
    struct box box;
    if (!box_open(&box, "host:0,host:1,mockkfd+amd@gfx1100,cu=2,vram=64M", 3))
        return;
    refused(&box, 3, &good, -EINVAL, "rank 2 is of another family");
    refused(&box, 0, &good, -EINVAL, "0 ranks");
    refused(&box, 65, &good, -EINVAL, "65 ranks");
    bad = good, bad.count = 0;
    refused(&box, 2, &bad, -EINVAL, "0 elements");
    bad = good, bad.kind = BW_COLLECTIVE_COUNT;
    refused(&box, 2, &bad, -EINVAL, "no such");
    bad = good, bad.dtype = BW_BOOL;
    refused(&box, 2, &bad, -EINVAL, "no type of numbers");
    bad = good, bad.transport = BW_I8;
    refused(&box, 2, &bad, -ENOTSUP, "f32 does not travel as i8");
    bad = good, bad.dtype = BW_I32, bad.reduction = BW_REDUCE_AVG;
    refused(&box, 2, &bad, -ENOTSUP, "averages of i32");
    bad = good, bad.kind = BW_BROADCAST, bad.root = 2;
    refused(&box, 2, &bad, -EINVAL, "root 2 of 2 ranks");
    bad = good, bad.kind = BW_ALL_TO_ALL, bad.strategy = BW_STRATEGY_RING;
    refused(&box, 2, &bad, -ENOTSUP, "all-to-all is direct: no ring");
    topology_make(&topology, links, 1, false);
    bad = good, bad.topology = &topology;
    refused(&box, 2, &bad, -EINVAL, "rank 1 is GPU 1, and topology test has 1");
    topology_make(&topology, links, 2, false);
    topology.link_count = 3;
    bad = good, bad.topology = &topology;
    refused(&box, 2, &bad, -EINVAL, "no way between rank 0 and rank 1");
    struct bw_device *kept = box.devices[1];
    box.devices[1] = box.devices[0];
    refused(&box, 2, &good, -EINVAL, "host:0 is rank 0 and rank 1");
    box.devices[1] = kept;
    if (BW_OK(bw_collective_create(box.devices, 2, &good, &collective, &box.err), &box.err) &&
        BW_OK(bw_graph_create(box.ctx, &graph, &box.err), &box.err)) {
        struct bw_range send[] = {{box.send[0], 0, 0, 32}, {box.send[1], 0, 0, 32}},
                        receive[] = {{box.receive[0], 0, 0, 32}, {box.receive[1], 0, 0, 28}};
        BW_EQ(bw_collective_add(collective, graph, send, receive, &box.err), -EINVAL);
        BW_STR(box.err.what, "rank 1: receive range of all-reduce");
        BW_STR(box.err.expected, "32 bytes");
        receive[1] = (struct bw_range){box.receive[0], 0, 64, 32};
        BW_EQ(bw_collective_add(collective, graph, send, receive, &box.err), -EINVAL);
        BW_STR(box.err.what, "rank 1: receive buffer is of host:0, not host:1");
        receive[1] = (struct bw_range){box.send[1], 0, 4, 32};
        BW_EQ(bw_collective_add(collective, graph, send, receive, &box.err), -EINVAL);
        BW_STR(box.err.what, "rank 1: send and receive overlap, and not as in place");
        bw_graph_destroy(graph);
        bw_collective_destroy(collective);
    }
    box_close(&box);
}

/* Each element of the result is three sums, wherever they are computed. */
static void sums_are_counted(struct box *box, enum bw_strategy strategy)
{
    struct bw_collective_options options = {
        .size = sizeof options, .kind = BW_ALL_REDUCE, .strategy = strategy, .dtype = BW_F32, .count = 1000};
    struct bw_link_options link = {.size = sizeof link, .profile = true};
    struct bw_collective *collective = NULL;
    struct bw_linked_graph *linked = NULL;
    struct bw_profile *profile = NULL;
    struct bw_graph *graph = NULL;
    struct bw_range send[4], receive[4];
    double flops = 0;
    for (int rank = 0; rank < 4; rank++) {
        send[rank] = (struct bw_range){box->send[rank], 0, 0, 4000};
        receive[rank] = (struct bw_range){box->receive[rank], 0, 0, 4000};
    }
    BW_OK(bw_collective_create(box->devices, 4, &options, &collective, &box->err), &box->err);
    BW_OK(bw_graph_create(box->ctx, &graph, &box->err), &box->err);
    BW_OK(bw_collective_add(collective, graph, send, receive, &box->err), &box->err);
    BW_OK(bw_graph_link(graph, &link, &linked, &box->err), &box->err);
    BW_OK(bw_linked_graph_replay(linked, NULL, NULL, &box->err), &box->err);
    if (BW_OK(bw_linked_graph_profile_take(linked, 0, &profile, &box->err), &box->err)) {
        for (uint32_t i = 0; i < profile->call_count; i++)
            flops += profile->calls[i].flops;
        BW_NEAR(flops, 3 * 1000, 0);
    }
    bw_profile_destroy(profile);
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    bw_collective_destroy(collective);
}

static void profiles_count_the_sums(void)
{
    struct box box;
    if (box_open(&box, "host:0,host:1,host:2,host:3", 4)) {
        sums_are_counted(&box, BW_STRATEGY_RING);
        sums_are_counted(&box, BW_STRATEGY_DIRECT);
    }
    box_close(&box);
}

static void names(void)
{
    BW_STR(bw_collective_name(BW_ALL_TO_ALL), "all-to-all");
    BW_STR(bw_strategy_name(BW_STRATEGY_TREE), "tree");
    BW_STR(bw_reduction_name(BW_REDUCE_AVG), "avg");
    BW_TRUE(!bw_collective_name(BW_COLLECTIVE_COUNT) && !bw_strategy_name(BW_STRATEGY_COUNT) &&
            !bw_reduction_name(BW_REDUCE_COUNT));
}

int main(void)
{
    static const struct bw_test tests[] = {
        {"host_queues", host_queues},
        {"tuples_of_any_size", tuples_of_any_size},
        {"mock_gpus", mock_gpus},
        {"reductions", reductions},
        {"replay_inputs", replay_inputs},
        {"views_in_place", views_in_place},
        {"profiles_count_the_sums", profiles_count_the_sums},
        {"the_cheapest_is_chosen", the_cheapest_is_chosen},
        {"what_cannot_be_is_refused_by_name", what_cannot_be_is_refused_by_name},
        {"names", names}};
    return BW_HAVE_LLVM ? bw_test_run("collective", tests, sizeof tests / sizeof tests[0]) : BW_TEST_SKIPPED;
}
