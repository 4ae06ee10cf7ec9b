/* Replays under the clock, and medians. */
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
