/* A collective of one size once more, with timestamps: replays in flight as when it was measured. */
#include "tools/profile.h"
#include "bench/collective.h"

enum { REPLAYS = 3 }; /* as many as are in flight by default: how they overlap is seen */

static int replays_take(struct bw_linked_graph *linked, struct bw_profile **profiles, struct bw_err *err)
{
    uint64_t tickets[REPLAYS];
    int rc = bw_bench_replay_once(linked, err); /* warms up */
    for (uint32_t i = 0; i < REPLAYS && !rc; i++)
        rc = bw_linked_graph_replay(linked, NULL, &tickets[i], err);
    for (uint32_t i = 0; i < REPLAYS && !rc; i++)
        rc = bw_linked_graph_profile_take(linked, tickets[i], &profiles[i], err);
    return rc;
}

int bw_bench_profile(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                     uint64_t size_bytes, const struct bw_bench_options *options, struct cJSON *document,
                     struct bw_err *err)
{
    struct bw_bench_linked linked;
    struct bw_profile *profiles[REPLAYS] = {NULL};
    struct bw_profile_report *report = NULL;
    struct bw_link_options profiled = {.size = sizeof profiled, .instances = REPLAYS, .profile = true};
    int rc = bw_bench_link(group, collective, size_bytes, false, &profiled, &linked, err);
    if (!rc)
        rc = replays_take(linked.graph, profiles, err);
    if (!rc)
        rc = bw_tool_profile_take((const struct bw_profile *const *)profiles, REPLAYS, options->profile,
                                  &report, err);
    if (report)
        bw_tool_profile_json(report, document);
    if (report && options->text)
        bw_tool_profile_print(report, options->text, "# ");
    bw_profile_report_destroy(report);
    for (uint32_t i = 0; i < REPLAYS; i++)
        bw_profile_destroy(profiles[i]);
    bw_bench_unlink(&linked);
    return rc;
}
