/* Any bytes as a topology: read whole, with ends that exist and rates that can be divided by, or refused with
 * an error. */
#include <bellwire/topology.h>

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
    if (!holds)
        abort();
}

static void end_check(const struct bw_topology *topology, uint32_t end)
{
    check(end == BW_TOPOLOGY_HOST || end < topology->gpu_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bw_topology topology;
    struct bw_err err = {0};
    uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
    int rc = bw_topology_parse("fuzz", (const char *)data, size, &topology, &err);
    if (rc) {
        check(rc < 0 && err.code == rc && err.what[0] && !topology.links);
        return 0;
    }
    check(topology.gpu_count && topology.engines_per_gpu && topology.engine_gb_per_s > 0);
    for (uint32_t i = 0; i < topology.link_count; i++) {
        const struct bw_topology_link *link = &topology.links[i];
        end_check(&topology, link->from);
        end_check(&topology, link->to);
        check(link->from != link->to && link->gb_per_s > 0 && isfinite(link->latency_us));
        check(bw_topology_route(&topology, link->from, link->to, route) == 1 && route[0] == i);
    }
    bw_topology_free(&topology);
    return 0;
}
