/* A collective of one size, replays under the clock, medians. */
#include <stdlib.h>

#include "bench/collective.h"

int bw_bench_replay_once(struct bw_linked_graph *linked, struct bw_err *err)
{
    uint64_t ticket;
    int rc = bw_linked_graph_replay(linked, NULL, &ticket, err);
    return rc ? rc : bw_linked_graph_wait(linked, ticket, err);
}

int bw_bench_replay_many(struct bw_sys *sys, struct bw_linked_graph *linked, uint32_t count,
                         double *seconds_each, struct bw_err *err)
{
    uint64_t ticket = 0, begin_ns = sys->ops->clock_ns(sys);
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = bw_linked_graph_replay(linked, NULL, &ticket, err);
    if (!rc && count)
        rc = bw_linked_graph_wait(linked, ticket, err);
    uint64_t elapsed_ns = sys->ops->clock_ns(sys) - begin_ns;
    *seconds_each = (double)(elapsed_ns ? elapsed_ns : 1) * 1e-9 / (count ? count : 1);
    return rc;
}

static int compare_double(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double bw_bench_median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, compare_double);
    return values[count / 2];
}

static int graph_link(const struct bw_bench_group *group, uint64_t size_bytes, bool in_place,
                      const struct bw_link_options *how, struct bw_bench_linked *linked, struct bw_err *err)
{
    struct bw_range send[BW_BENCH_RANKS_MAX], receive[BW_BENCH_RANKS_MAX];
    struct bw_graph *graph;
    int rc = bw_graph_create(group->ctx, &graph, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < group->rank_count; i++) {
        send[i] = (struct bw_range){in_place ? group->receive[i] : group->send[i], 0, 0, size_bytes};
        receive[i] = (struct bw_range){group->receive[i], 0, 0, size_bytes};
    }
    if (linked->made) /* nothing is to be moved when there are no elements */
        rc = bw_collective_add(linked->made, graph, send, receive, err);
    if (!rc)
        rc = bw_graph_link(graph, how, &linked->graph, err);
    bw_graph_destroy(graph);
    return rc;
}

int bw_bench_link(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                  uint64_t size_bytes, bool in_place, const struct bw_link_options *how,
                  struct bw_bench_linked *linked, struct bw_err *err)
{
    struct bw_collective_options options = {.size = sizeof options,
                                            .kind = collective->kind,
                                            .strategy = group->strategy,
                                            .reduction = group->reduction,
                                            .dtype = group->dtype,
                                            .transport = group->transport,
                                            .count = collective->count(group, &size_bytes),
                                            .topology = group->topology.gpu_count ? &group->topology : NULL,
                                            .gpus = group->gpus};
    *linked = (struct bw_bench_linked){0};
    int rc = options.count
                 ? bw_collective_create(group->devices, group->rank_count, &options, &linked->made, err)
                 : 0;
    return rc ? rc : graph_link(group, size_bytes, in_place, how, linked, err);
}

void bw_bench_unlink(struct bw_bench_linked *linked)
{
    bw_linked_graph_destroy(linked->graph);
    bw_collective_destroy(linked->made);
    *linked = (struct bw_bench_linked){0};
}
