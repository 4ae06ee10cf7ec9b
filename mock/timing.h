/* How long a recording would take on GPUs with given links and engines: a discrete-event simulation,
 * deterministic, of copies that share links and engines fairly and wait for each other as recorded. Kernels,
 * packets and waits themselves take no time. What a schedule reaches in it says something about the schedule,
 * not about the machine it runs on. */
#ifndef BW_MOCK_TIMING_H
#define BW_MOCK_TIMING_H

#include <bellwire/topology.h>

#include "mock/record.h"

struct bw_timing {
    double seconds;
    uint64_t bytes; /* of all copies */
    /* Bytes carried over bytes that could have been, by link of the topology, and by gpu * engines_per_gpu +
     * engine. */
    double *link_busy, *engine_busy;
};

/* -EINVAL: the recording is of a GPU or an engine that the topology does not have, or no way leads from one
 * end of a copy to the other. -EDEADLK: a queue waits for what nobody writes. The caller ends it with
 * bw_timing_free. */
int bw_timing_simulate(const struct bw_topology *topology, const struct bw_mock_recording *recording,
                       struct bw_timing *timing, struct bw_err *err);
void bw_timing_free(struct bw_timing *timing);

/* Below this no schedule comes: the most seconds that one link, or all engines of one GPU together, need for
 * the traffic. traffic: bytes by source and target, gpu_count by gpu_count of the topology; a GPU's engines
 * move what it sends. -EINVAL: no way between two ends. */
int bw_timing_bound(const struct bw_topology *topology, const uint64_t *traffic, double *seconds,
                    struct bw_err *err);

#endif
