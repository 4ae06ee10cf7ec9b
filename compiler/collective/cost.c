/* What a strategy would take: round by round, the latency of its longest way plus the time of its busiest
 * link or GPU, with the numbers of a topology. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/collective/collective.h"

/* What a round costs beside its bytes: packets, the signal of one queue and the wait of another. No document
 * gives a figure for all of that; it is some microseconds, and the choice between few steps and few bytes
 * does not hang on how many. */
#define ROUND_NS 5e3

/* Of machines of which nothing is said: PCIe 4.0 x16, and engines tuned for that
 * (data/topologies/8xRX7900XTX.json). */
#define LINK_GB_PER_S   31.5
#define ENGINE_GB_PER_S 32.0
#define LATENCY_US      0.5

struct bw_cost {
    struct bw_topology topology;
    uint32_t gpus[BW_COLLECTIVE_RANKS_MAX]; /* by rank */
    double *link_bytes, *gpu_bytes;         /* of this round */
    double latency_ns, ns;
    bool any; /* copy or fold in this round */
};

/* ---- topologies ---- */

static int links_copy(struct bw_topology *topology, const struct bw_topology *from, struct bw_err *err)
{
    *topology = *from;
    topology->links = calloc((size_t)from->link_count + 1, sizeof *topology->links);
    if (!topology->links)
        return bw_fail(err, -ENOMEM, "collective", "topology");
    if (from->link_count)
        memcpy(topology->links, from->links, from->link_count * sizeof *from->links);
    return 0;
}

static void link_add(struct bw_topology *topology, uint32_t from, uint32_t to, uint64_t mb_per_s)
{
    double rate = mb_per_s ? (double)mb_per_s * 1e-3 : LINK_GB_PER_S;
    topology->links[topology->link_count++] = (struct bw_topology_link){from, to, rate, LATENCY_US};
}

/* XGMI links each by itself; whoever goes another way shares its own way to the host. */
static int topology_ask(const struct bw_collective *collective, struct bw_topology *topology,
                        struct bw_err *err)
{
    uint32_t ranks = collective->rank_count;
    *topology =
        (struct bw_topology){.gpu_count = ranks, .engines_per_gpu = 2, .engine_gb_per_s = ENGINE_GB_PER_S};
    topology->links = calloc((size_t)ranks * (ranks + 2), sizeof *topology->links);
    if (!topology->links)
        return bw_fail(err, -ENOMEM, "collective", "topology");
    for (uint32_t from = 0; from < ranks; from++) {
        link_add(topology, from, BW_TOPOLOGY_HOST, 0);
        link_add(topology, BW_TOPOLOGY_HOST, from, 0);
        for (uint32_t to = 0; to < ranks; to++) {
            struct bw_link link = {0};
            if (from == to)
                continue;
            int rc = bw_device_link(collective->devices[from], collective->devices[to], &link, NULL);
            if (rc)
                return bw_fail(err, rc, "collective", "rank %u asked for its way to rank %u", from, to);
            if (link.kind == BW_LINK_XGMI)
                link_add(topology, from, to, link.bandwidth_mb_per_s);
        }
    }
    return 0;
}

static int gpus_take(struct bw_cost *cost, const struct bw_collective *collective, const uint32_t *gpus,
                     struct bw_err *err)
{
    uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
    for (uint32_t rank = 0; rank < collective->rank_count; rank++) {
        cost->gpus[rank] = gpus ? gpus[rank] : rank;
        if (cost->gpus[rank] >= cost->topology.gpu_count)
            return bw_fail(err, -EINVAL, "collective", "rank %u is GPU %u, and topology %s has %u", rank,
                           cost->gpus[rank], cost->topology.name, cost->topology.gpu_count);
        for (uint32_t other = 0; other < rank; other++)
            if (bw_topology_route(&cost->topology, cost->gpus[rank], cost->gpus[other], route) < 0 ||
                bw_topology_route(&cost->topology, cost->gpus[other], cost->gpus[rank], route) < 0)
                return bw_fail(err, -EINVAL, "collective",
                               "topology %s has no way between rank %u and rank %u", cost->topology.name,
                               other, rank);
    }
    return 0;
}

int bw_cost_create(const struct bw_collective *collective, const struct bw_collective_options *options,
                   struct bw_cost **out, struct bw_err *err)
{
    struct bw_cost *cost = calloc(1, sizeof *cost);
    if (!cost)
        return bw_fail(err, -ENOMEM, "collective", "cost");
    int rc = options->topology ? links_copy(&cost->topology, options->topology, err)
                               : topology_ask(collective, &cost->topology, err);
    if (!rc)
        rc = gpus_take(cost, collective, options->topology ? options->gpus : NULL, err);
    if (!rc) {
        cost->link_bytes = calloc((size_t)cost->topology.link_count + 1, sizeof *cost->link_bytes);
        cost->gpu_bytes = calloc(cost->topology.gpu_count, sizeof *cost->gpu_bytes);
        rc = cost->link_bytes && cost->gpu_bytes ? 0 : bw_fail(err, -ENOMEM, "collective", "cost");
    }
    if (rc)
        bw_cost_destroy(cost);
    else
        *out = cost;
    return rc;
}

void bw_cost_destroy(struct bw_cost *cost)
{
    if (!cost)
        return;
    bw_topology_free(&cost->topology);
    free(cost->link_bytes);
    free(cost->gpu_bytes);
    free(cost);
}

/* ---- counting ---- */

void bw_cost_begin(struct bw_cost *cost)
{
    memset(cost->link_bytes, 0, cost->topology.link_count * sizeof *cost->link_bytes);
    memset(cost->gpu_bytes, 0, cost->topology.gpu_count * sizeof *cost->gpu_bytes);
    cost->latency_ns = cost->ns = 0;
    cost->any = false;
}

void bw_cost_copy(struct bw_cost *cost, uint32_t from, uint32_t to, uint64_t size_bytes)
{
    uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
    int count = bw_topology_route(&cost->topology, cost->gpus[from], cost->gpus[to], route);
    double latency_ns = 0;
    for (int i = 0; i < count; i++) {
        cost->link_bytes[route[i]] += (double)size_bytes;
        latency_ns += cost->topology.links[route[i]].latency_us * 1e3;
    }
    cost->gpu_bytes[cost->gpus[from]] += (double)size_bytes;
    cost->latency_ns = fmax(cost->latency_ns, latency_ns);
    cost->any = true;
}

/* Memory is some ten times faster than any link: a fold counts as a step only. */
void bw_cost_fold(struct bw_cost *cost, uint32_t rank)
{
    cost->any = true;
}

void bw_cost_round(struct bw_cost *cost)
{
    double most_ns = 0, engines = cost->topology.engines_per_gpu * cost->topology.engine_gb_per_s;
    for (uint32_t i = 0; i < cost->topology.link_count; i++)
        most_ns = fmax(most_ns, cost->link_bytes[i] / cost->topology.links[i].gb_per_s);
    for (uint32_t i = 0; i < cost->topology.gpu_count; i++)
        most_ns = fmax(most_ns, cost->gpu_bytes[i] / engines);
    double ns = cost->ns + (cost->any ? ROUND_NS + cost->latency_ns + most_ns : 0);
    bw_cost_begin(cost);
    cost->ns = ns;
}

double bw_cost_seconds(struct bw_cost *cost)
{
    bw_cost_round(cost);
    return cost->ns * 1e-9;
}
