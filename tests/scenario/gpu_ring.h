/* GPUs in a ring: each mixes what it was sent into its state, sends the state on, and mixes again. A kernel
 * and a copy of every GPU, and each waits for another GPU's. */
#ifndef BW_TESTS_SCENARIO_GPU_RING_H
#define BW_TESTS_SCENARIO_GPU_RING_H

#include "tests/unit/hcq/mock_rig.h"

enum { GPU_RING_BYTES = 96 };

struct gpu_ring {
    struct rig *rig;
    uint32_t count, instances; /* instances: of each graph that is linked; 0: the default */
    struct bw_buffer *state[RIG_DEVICES_MAX], *inbox[RIG_DEVICES_MAX];
    struct bw_linked_graph *linked;
    uint8_t state_model[RIG_DEVICES_MAX][GPU_RING_BYTES], inbox_model[RIG_DEVICES_MAX][GPU_RING_BYTES];
};

/* Makes those buffers that are not there yet. 0 or the first error. */
static inline int gpu_ring_buffers(struct gpu_ring *ring)
{
    struct rig *rig = ring->rig;
    int rc = 0;
    for (uint32_t i = 0; i < ring->count && !rc; i++) {
        struct bw_buffer **buffers[] = {&ring->state[i], &ring->inbox[i]};
        for (int k = 0; k < 2 && !rc; k++)
            if (!*buffers[k])
                rc = bw_buffer_create(rig->devices[i], GPU_RING_BYTES, 0, buffers[k], &rig->err);
    }
    return rc;
}

/* Links one turn of the ring, unless that was done. 0 or the first error. */
static inline int gpu_ring_link(struct gpu_ring *ring)
{
    struct rig *rig = ring->rig;
    struct bw_graph *graph;
    int rc = ring->linked ? 0 : bw_graph_create(rig->ctx, &graph, &rig->err);
    if (ring->linked || rc)
        return rc;
    for (uint32_t salt = 1; salt <= 2; salt++) {
        for (uint32_t i = 0; i < ring->count && !rc; i++)
            rc = mix_add(rig, graph, i, range_all(ring->state[i]), range_all(ring->inbox[i]), salt, -1);
        for (uint32_t i = 0; i < ring->count && !rc && salt == 1; i++)
            rc = bw_graph_copy(graph, rig->devices[i], range_all(ring->inbox[(i + 1) % ring->count]),
                               range_all(ring->state[i]), &rig->err);
    }
    struct bw_link_options options = {.size = sizeof options, .instances = ring->instances};
    if (!rc)
        rc = bw_graph_link(graph, &options, &ring->linked, &rig->err);
    bw_graph_destroy(graph);
    return rc;
}

/* Random bytes for everybody. 0 or the first error. */
static inline int gpu_ring_write(struct gpu_ring *ring, struct bw_rng *rng)
{
    struct rig *rig = ring->rig;
    int rc = 0;
    for (uint32_t i = 0; i < ring->count && !rc; i++) {
        for (uint32_t k = 0; k < GPU_RING_BYTES; k++) {
            ring->state_model[i][k] = (uint8_t)bw_rng_next(rng);
            ring->inbox_model[i][k] = (uint8_t)bw_rng_next(rng);
        }
        rc = bw_buffer_write(ring->state[i], 0, ring->state_model[i], GPU_RING_BYTES, &rig->err);
        if (!rc)
            rc = bw_buffer_write(ring->inbox[i], 0, ring->inbox_model[i], GPU_RING_BYTES, &rig->err);
    }
    return rc;
}

/* What one turn does. */
static inline void gpu_ring_model(struct gpu_ring *ring)
{
    for (uint32_t i = 0; i < ring->count; i++)
        mix_run(ring->state_model[i], GPU_RING_BYTES, ring->inbox_model[i], GPU_RING_BYTES, 1);
    for (uint32_t i = 0; i < ring->count; i++)
        memcpy(ring->inbox_model[(i + 1) % ring->count], ring->state_model[i], GPU_RING_BYTES);
    for (uint32_t i = 0; i < ring->count; i++)
        mix_run(ring->state_model[i], GPU_RING_BYTES, ring->inbox_model[i], GPU_RING_BYTES, 2);
}

/* That many turns one behind the other, the last one waited for. 0 or the first error. */
static inline int gpu_ring_turn(struct gpu_ring *ring, uint32_t turns)
{
    uint64_t ticket = 0;
    int rc = 0;
    for (uint32_t i = 0; i < turns && !rc; i++) {
        rc = bw_linked_graph_replay(ring->linked, NULL, &ticket, &ring->rig->err);
        gpu_ring_model(ring);
    }
    return rc ? rc : bw_linked_graph_wait(ring->linked, ticket, &ring->rig->err);
}

/* 0 when every byte is what the model has, or the first error of reading. */
static inline int gpu_ring_check(struct gpu_ring *ring)
{
    uint8_t got[GPU_RING_BYTES];
    struct rig *rig = ring->rig;
    int rc = 0;
    bool ok = true;
    for (uint32_t i = 0; i < ring->count && !rc && ok; i++) {
        rc = bw_buffer_read(ring->state[i], 0, got, GPU_RING_BYTES, &rig->err);
        ok = rc || BW_BYTES(got, ring->state_model[i], GPU_RING_BYTES);
        if (!rc && ok)
            rc = bw_buffer_read(ring->inbox[i], 0, got, GPU_RING_BYTES, &rig->err);
        ok = rc || !ok || BW_BYTES(got, ring->inbox_model[i], GPU_RING_BYTES);
    }
    return rc;
}

static inline bool gpu_ring_open(struct gpu_ring *ring, struct rig *rig)
{
    *ring = (struct gpu_ring){.rig = rig, .count = rig->device_count};
    return BW_OK(gpu_ring_buffers(ring), &rig->err) && BW_OK(gpu_ring_link(ring), &rig->err);
}

/* New bytes, turns, the right bytes. */
static inline bool gpu_ring_works(struct gpu_ring *ring, struct bw_rng *rng, uint32_t turns)
{
    struct bw_err *err = &ring->rig->err;
    return BW_OK(gpu_ring_write(ring, rng), err) && BW_OK(gpu_ring_turn(ring, turns), err) &&
           BW_OK(gpu_ring_check(ring), err);
}

static inline void gpu_ring_close(struct gpu_ring *ring)
{
    bw_linked_graph_destroy(ring->linked);
    for (uint32_t i = 0; i < ring->count; i++) {
        bw_buffer_destroy(ring->state[i]);
        bw_buffer_destroy(ring->inbox[i]);
    }
}

#endif
