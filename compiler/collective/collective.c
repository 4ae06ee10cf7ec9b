/* Collectives: checks, the choice of a strategy, memory and kernels. Contract in
 * include/bellwire/collective.h. */
#include "compiler/collective/collective.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* Elements of one rank: what 64 ranks hold of 64 ranks in 8 bytes each stays below 2^63. */
#define COUNT_MAX (1ull << 44)

static const char *const kind_names[] = {"all-gather", "broadcast", "reduce-scatter", "all-reduce",
                                         "all-to-all"};
static const char *const strategy_names[] = {"auto", "naive", "ring", "direct", "tree"};
static const char *const reduction_names[] = {"sum", "prod", "min", "max", "avg"};

const char *bw_collective_name(enum bw_collective_kind kind)
{
    return (uint32_t)kind < BW_COUNT_OF(kind_names) ? kind_names[kind] : NULL;
}

const char *bw_strategy_name(enum bw_strategy strategy)
{
    return (uint32_t)strategy < BW_COUNT_OF(strategy_names) ? strategy_names[strategy] : NULL;
}

const char *bw_reduction_name(enum bw_reduction reduction)
{
    return (uint32_t)reduction < BW_COUNT_OF(reduction_names) ? reduction_names[reduction] : NULL;
}

/* ---- checks ---- */

int bw_collective_tuple_check(struct bw_device *const *devices, uint32_t rank_count, struct bw_err *err)
{
    if (rank_count < 1 || rank_count > BW_COLLECTIVE_RANKS_MAX)
        return bw_fail(err, -EINVAL, "collective", "%u ranks: 1 to %d", rank_count, BW_COLLECTIVE_RANKS_MAX);
    const struct bw_device_info *first = bw_device_info(devices[0]);
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        const struct bw_device_info *info = bw_device_info(devices[rank]);
        if (bw_device_ctx(devices[rank]) != bw_device_ctx(devices[0]))
            return bw_fail(err, -EINVAL, "collective", "rank %u is of another context", rank);
        for (uint32_t other = 0; other < rank; other++)
            if (devices[other] == devices[rank])
                return bw_fail(err, -EINVAL, "collective", "%s is rank %u and rank %u", info->name, other,
                               rank);
        if (strcmp(info->driver, first->driver) || strcmp(info->arch, first->arch)) {
            bw_fail(err, -EINVAL, "collective", "rank %u is of another family", rank);
            bw_err_expected(err, "%s %s", first->driver, first->arch);
            bw_err_observed(err, "%s %s (%s)", info->driver, info->arch, info->name);
            return -EINVAL;
        }
    }
    return 0;
}

static int types_check(const struct bw_collective_options *options, struct bw_err *err)
{
    enum bw_dtype dtype = options->dtype, transport = options->transport;
    bool narrows = (dtype == BW_F32 || dtype == BW_F64) && (transport == BW_F16 || transport == BW_BF16);
    if (dtype <= BW_BOOL || dtype >= BW_DTYPE_COUNT)
        return bw_fail(err, -EINVAL, "collective", "type %d is no type of numbers", dtype);
    if (transport != BW_VOID && transport != dtype && !narrows)
        return bw_fail(err, -ENOTSUP, "collective",
                       "%s does not travel as %s: f32 and f64 do, as f16 or bf16", bw_dtype_name(dtype),
                       (uint32_t)transport < BW_DTYPE_COUNT ? bw_dtype_name(transport) : "that");
    if (options->reduction == BW_REDUCE_AVG && !bw_dtype_is_float(dtype) &&
        (options->kind == BW_ALL_REDUCE || options->kind == BW_REDUCE_SCATTER))
        return bw_fail(err, -ENOTSUP, "collective", "averages of %s: of floats only", bw_dtype_name(dtype));
    return 0;
}

static int options_check(const struct bw_collective_options *options, uint32_t rank_count, struct bw_err *err)
{
    if ((uint32_t)options->kind >= BW_COLLECTIVE_COUNT || (uint32_t)options->strategy >= BW_STRATEGY_COUNT ||
        (uint32_t)options->reduction >= BW_REDUCE_COUNT)
        return bw_fail(err, -EINVAL, "collective", "kind %d, strategy %d, reduction %d: no such",
                       options->kind, options->strategy, options->reduction);
    if (options->count < 1 || options->count > COUNT_MAX)
        return bw_fail(err, -EINVAL, "collective", "%llu elements: 1 to %llu",
                       (unsigned long long)options->count, COUNT_MAX);
    if (options->kind == BW_BROADCAST && options->root >= rank_count)
        return bw_fail(err, -EINVAL, "collective", "root %u of %u ranks", options->root, rank_count);
    if (options->kind == BW_ALL_TO_ALL && options->strategy != BW_STRATEGY_AUTO &&
        options->strategy != BW_STRATEGY_DIRECT)
        return bw_fail(err, -ENOTSUP, "collective", "all-to-all is direct: no %s",
                       bw_strategy_name(options->strategy));
    return types_check(options, err);
}

/* ---- making ---- */

static void cost_find(struct bw_collective *collective, struct bw_cost *cost, enum bw_strategy strategy)
{
    struct bw_making making = {
        .collective = collective, .mode = BW_MAKING_COST, .strategy = strategy, .cost = cost};
    bw_cost_begin(cost);
    bw_make_collective(&making);
    double seconds = bw_cost_seconds(cost);
    if (seconds < collective->seconds) {
        collective->seconds = seconds;
        collective->options.strategy = strategy;
    }
}

static int strategy_choose(struct bw_collective *collective, const struct bw_collective_options *options,
                           struct bw_err *err)
{
    struct bw_cost *cost;
    int rc = bw_cost_create(collective, options, &cost, err);
    if (rc)
        return rc;
    collective->seconds = INFINITY;
    for (uint32_t i = BW_STRATEGY_NAIVE; i < BW_STRATEGY_COUNT; i++) {
        bool asked = options->strategy == BW_STRATEGY_AUTO || options->strategy == i;
        if (asked && (options->kind != BW_ALL_TO_ALL || i == BW_STRATEGY_DIRECT))
            cost_find(collective, cost, (enum bw_strategy)i);
    }
    bw_cost_destroy(cost);
    return 0;
}

static int scratch_take(struct bw_collective *collective, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t rank = 0; rank < collective->rank_count && !rc; rank++) {
        for (uint32_t area = 0; area < BW_AREA_COUNT; area++) {
            collective->area_offset[rank][area] = collective->scratch_bytes[rank];
            collective->scratch_bytes[rank] += collective->area_bytes[rank][area];
        }
        if (collective->scratch_bytes[rank])
            rc = bw_buffer_create(collective->devices[rank], collective->scratch_bytes[rank],
                                  BW_BUFFER_DEVICE, &collective->scratch[rank], err);
    }
    return rc;
}

static int collective_prepare(struct bw_collective *collective, const struct bw_collective_options *options,
                              struct bw_err *err)
{
    int rc = strategy_choose(collective, options, err);
    struct bw_making making = {.collective = collective,
                               .mode = BW_MAKING_PREPARE,
                               .strategy = collective->options.strategy,
                               .err = err};
    if (rc)
        return rc;
    bw_make_collective(&making);
    return making.rc ? making.rc : scratch_take(collective, err);
}

int bw_collective_create(struct bw_device *const *devices, uint32_t rank_count,
                         const struct bw_collective_options *options, struct bw_collective **out,
                         struct bw_err *err)
{
    int rc = bw_collective_tuple_check(devices, rank_count, err);
    if (!rc)
        rc = options_check(options, rank_count, err);
    if (rc)
        return rc;
    struct bw_collective *collective = calloc(1, sizeof *collective);
    if (!collective)
        return bw_fail(err, -ENOMEM, "collective", "collective");
    memcpy(collective->devices, devices, rank_count * sizeof *devices);
    collective->rank_count = rank_count;
    collective->options = *options;
    collective->options.topology = NULL;
    collective->options.gpus = NULL;
    if (options->transport == BW_VOID || rank_count == 1) /* nothing travels */
        collective->options.transport = options->dtype;
    rc = collective_prepare(collective, options, err);
    if (rc)
        bw_collective_destroy(collective);
    else
        *out = collective;
    return rc;
}

void bw_collective_destroy(struct bw_collective *collective)
{
    if (!collective)
        return;
    for (size_t i = 0; i < collective->kernels.count; i++)
        bw_fold_kernel_free(&collective->kernels.data[i], collective->rank_count);
    bw_vec_free(&collective->kernels);
    for (uint32_t rank = 0; rank < collective->rank_count; rank++)
        bw_buffer_destroy(collective->scratch[rank]);
    free(collective);
}

/* ---- adding ---- */

static uint64_t bytes_expected(const struct bw_collective *collective, uint32_t rank, bool receive)
{
    const struct bw_collective_options *options = &collective->options;
    bool all = receive ? options->kind == BW_ALL_GATHER || options->kind == BW_ALL_TO_ALL
                       : options->kind == BW_REDUCE_SCATTER || options->kind == BW_ALL_TO_ALL;
    return options->count * bw_dtype_bytes(options->dtype) * (all ? collective->rank_count : 1);
}

static int range_check(const struct bw_collective *collective, uint32_t rank, const struct bw_range *range,
                       bool receive, struct bw_err *err)
{
    uint64_t expected = bytes_expected(collective, rank, receive);
    const char *name = receive ? "receive" : "send";
    if (range->size_bytes != expected) {
        bw_fail(err, -EINVAL, "collective", "rank %u: %s range of %s", rank, name,
                bw_collective_name(collective->options.kind));
        bw_err_expected(err, "%llu bytes", (unsigned long long)expected);
        bw_err_observed(err, "%llu bytes", (unsigned long long)range->size_bytes);
        return -EINVAL;
    }
    if (range->buffer && bw_buffer_device(range->buffer) != collective->devices[rank])
        return bw_fail(err, -EINVAL, "collective", "rank %u: %s buffer is of %s, not %s", rank, name,
                       bw_device_info(bw_buffer_device(range->buffer))->name,
                       bw_device_info(collective->devices[rank])->name);
    return 0;
}

/* Where send begins, seen from receive, when that is in place. */
static int64_t in_place_offset(const struct bw_collective *collective, uint32_t rank)
{
    int64_t part = (int64_t)(collective->options.count * bw_dtype_bytes(collective->options.dtype)) * rank;
    return collective->options.kind == BW_ALL_GATHER       ? part
           : collective->options.kind == BW_REDUCE_SCATTER ? -part
                                                           : 0;
}

static int overlap_check(const struct bw_making *making, uint32_t rank, struct bw_err *err)
{
    if (!bw_make_in_place(making, rank) ||
        bw_make_distance(making, rank) == in_place_offset(making->collective, rank))
        return 0;
    return bw_fail(err, -EINVAL, "collective", "rank %u: send and receive overlap, and not as in place",
                   rank);
}

static int inputs_say(const struct bw_making *making, uint32_t rank, bool reads)
{
    struct bw_device *device = making->collective->devices[rank];
    int rc = making->receive[rank].buffer
                 ? 0
                 : bw_graph_input(making->graph, making->receive[rank].input, device, making->err);
    if (!rc && reads && !making->send[rank].buffer)
        rc = bw_graph_input(making->graph, making->send[rank].input, device, making->err);
    return rc;
}

int bw_collective_add(struct bw_collective *collective, struct bw_graph *graph, const struct bw_range *send,
                      const struct bw_range *receive, struct bw_err *err)
{
    const struct bw_collective_options *options = &collective->options;
    struct bw_making making = {.collective = collective,
                               .mode = BW_MAKING_GRAPH,
                               .strategy = options->strategy,
                               .graph = graph,
                               .send = send,
                               .receive = receive,
                               .err = err};
    int rc = 0;
    for (uint32_t rank = 0; rank < collective->rank_count && !rc; rank++) {
        bool reads = options->kind != BW_BROADCAST || rank == options->root;
        rc = range_check(collective, rank, &receive[rank], true, err);
        if (!rc && reads)
            rc = range_check(collective, rank, &send[rank], false, err);
        if (!rc && reads)
            rc = overlap_check(&making, rank, err);
    }
    for (uint32_t rank = 0; rank < collective->rank_count && !rc; rank++)
        rc = inputs_say(&making, rank, options->kind != BW_BROADCAST || rank == options->root);
    if (!rc)
        bw_make_collective(&making);
    return rc ? rc : making.rc;
}

enum bw_strategy bw_collective_strategy(const struct bw_collective *collective)
{
    return collective->options.strategy;
}

double bw_collective_seconds(const struct bw_collective *collective)
{
    return collective->seconds;
}
