/* The simulation: see timing.h. Resources are the links, then the engines. A copy first waits for the latency
 * of its way, then flows; flows share resources by max-min fairness: the resource that gives each of its
 * flows the least fixes their rate, and so on with what is left (Bertsekas and Gallager, Data
 * Networks, 6.5.2). Between two events rates are constant. */
#include "mock/timing.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock/engine/queue.h"

enum {
    RESOURCES_OF_FLOW = BW_TOPOLOGY_ROUTE_MAX + 1,
    NO_EVENT = 0xffffffff,
};

/* Two ends of flows that are this close, relative to the time, are one event: rounding, not physics. */
#define SAME_TIME 1e-12
#define NS_PER_US 1e3

enum state { STATE_READY, STATE_LATENT, STATE_FLOWING, STATE_DONE };

/* A queue and the copy that it is at. Times in ns, rates in bytes per ns. */
struct lane {
    const struct bw_mock_record_queue *queue;
    uint32_t *events; /* of the recording, in order */
    uint32_t event_count, at;
    enum state state;
    double latent_until, left, rate;
    uint32_t resources[RESOURCES_OF_FLOW], resource_count;
    bool fixed;
};

struct simulation {
    const struct bw_topology *topology;
    const struct bw_mock_recording *recording;
    struct lane *lanes;
    uint32_t lane_count, resource_count;
    uint32_t *words;
    double *capacity, *spare, *carried; /* by resource */
    uint32_t *users;
    double now;
};

static const struct bw_mock_event *event_of(const struct simulation *simulation, const struct lane *lane)
{
    return &simulation->recording->events.data[lane->events[lane->at]];
}

/* ---- copies ---- */

static int way_refuse(const struct bw_topology *topology, uint32_t from, uint32_t to, struct bw_err *err)
{
    char ends[2][16];
    const uint32_t numbers[] = {from, to};
    for (int i = 0; i < 2; i++) {
        if (numbers[i] == BW_TOPOLOGY_HOST)
            snprintf(ends[i], sizeof ends[i], "the host");
        else
            snprintf(ends[i], sizeof ends[i], "GPU %u", numbers[i]);
    }
    return bw_fail(err, -EINVAL, "timing", "topology %s has no link from %s to %s, and none over the host",
                   topology->name, ends[0], ends[1]);
}

static bool end_exists(const struct bw_topology *topology, uint32_t end)
{
    return end == BW_TOPOLOGY_HOST || end < topology->gpu_count;
}

static int lane_check(const struct bw_topology *topology, const struct lane *lane, struct bw_err *err)
{
    const struct bw_mock_record_queue *queue = lane->queue;
    if (queue->gpu >= topology->gpu_count)
        return bw_fail(err, -EINVAL, "timing", "topology %s has %u GPUs, and GPU %u was used", topology->name,
                       topology->gpu_count, queue->gpu);
    if (queue->engine != BW_MOCK_RECORD_NO_ENGINE && queue->engine >= topology->engines_per_gpu)
        return bw_fail(err, -EINVAL, "timing", "topology %s has %u engines per GPU, and engine %u was used",
                       topology->name, topology->engines_per_gpu, queue->engine);
    return 0;
}

static int copy_start(struct simulation *simulation, struct lane *lane, struct bw_err *err)
{
    const struct bw_topology *topology = simulation->topology;
    const struct bw_mock_event *event = event_of(simulation, lane);
    uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
    if (!end_exists(topology, event->from) || !end_exists(topology, event->to))
        return way_refuse(topology, event->from, event->to, err);
    int count = bw_topology_route(topology, event->from, event->to, route);
    if (count < 0)
        return way_refuse(topology, event->from, event->to, err);
    lane->latent_until = simulation->now;
    lane->left = (double)event->size_bytes;
    lane->resource_count = 0;
    for (int i = 0; i < count; i++) {
        lane->resources[lane->resource_count++] = route[i];
        lane->latent_until += topology->links[route[i]].latency_us * NS_PER_US;
    }
    assert(lane->queue->engine != BW_MOCK_RECORD_NO_ENGINE);
    lane->resources[lane->resource_count++] =
        topology->link_count + lane->queue->gpu * topology->engines_per_gpu + lane->queue->engine;
    lane->state = STATE_LATENT;
    return 0;
}

/* ---- events ---- */

static bool wait_is_over(const struct simulation *simulation, const struct bw_mock_event *event)
{
    return bw_mock_compare(event->function, simulation->words[event->word] & event->mask, event->value);
}

/* Everything of this queue that takes no time. True: something happened. */
static int lane_advance(struct simulation *simulation, struct lane *lane, bool *moved, struct bw_err *err)
{
    while (lane->state == STATE_READY) {
        if (lane->at == lane->event_count) {
            lane->state = STATE_DONE;
            return 0;
        }
        const struct bw_mock_event *event = event_of(simulation, lane);
        if (event->kind == BW_MOCK_EVENT_WAIT && !wait_is_over(simulation, event))
            return 0;
        *moved = true;
        if (event->kind == BW_MOCK_EVENT_COPY)
            return copy_start(simulation, lane, err);
        if (event->kind == BW_MOCK_EVENT_WRITE)
            simulation->words[event->word] = event->value;
        lane->at++;
    }
    return 0;
}

static int lanes_advance(struct simulation *simulation, struct bw_err *err)
{
    bool moved;
    do {
        moved = false;
        for (uint32_t i = 0; i < simulation->lane_count; i++) {
            int rc = lane_advance(simulation, &simulation->lanes[i], &moved, err);
            if (rc)
                return rc;
        }
    } while (moved);
    return 0;
}

/* ---- rates ---- */

static uint32_t tightest_find(const struct simulation *simulation)
{
    uint32_t tightest = NO_EVENT;
    double least = INFINITY;
    for (uint32_t i = 0; i < simulation->resource_count; i++) {
        if (!simulation->users[i] || simulation->spare[i] / simulation->users[i] >= least)
            continue;
        least = simulation->spare[i] / simulation->users[i];
        tightest = i;
    }
    return tightest;
}

static bool lane_uses(const struct lane *lane, uint32_t resource)
{
    for (uint32_t i = 0; i < lane->resource_count; i++)
        if (lane->resources[i] == resource)
            return true;
    return false;
}

static void lane_fix(struct simulation *simulation, struct lane *lane, double rate)
{
    lane->fixed = true;
    lane->rate = rate;
    for (uint32_t i = 0; i < lane->resource_count; i++) {
        simulation->users[lane->resources[i]]--;
        simulation->spare[lane->resources[i]] -= rate;
    }
}

static void rates_share(struct simulation *simulation)
{
    memcpy(simulation->spare, simulation->capacity, simulation->resource_count * sizeof *simulation->spare);
    for (uint32_t i = 0; i < simulation->lane_count; i++) {
        struct lane *lane = &simulation->lanes[i];
        lane->fixed = lane->state != STATE_FLOWING;
        for (uint32_t k = 0; !lane->fixed && k < lane->resource_count; k++)
            simulation->users[lane->resources[k]]++;
    }
    for (uint32_t resource; (resource = tightest_find(simulation)) != NO_EVENT;) {
        double rate = simulation->spare[resource] / simulation->users[resource];
        for (uint32_t i = 0; i < simulation->lane_count; i++)
            if (!simulation->lanes[i].fixed && lane_uses(&simulation->lanes[i], resource))
                lane_fix(simulation, &simulation->lanes[i], rate);
    }
}

/* ---- time ---- */

static double lane_next(const struct simulation *simulation, const struct lane *lane)
{
    if (lane->state == STATE_LATENT)
        return lane->latent_until;
    return lane->state == STATE_FLOWING ? simulation->now + lane->left / lane->rate : INFINITY;
}

static void lane_pass(struct simulation *simulation, struct lane *lane, double until)
{
    double end = lane_next(simulation, lane), slack = until * SAME_TIME;
    if (lane->state == STATE_LATENT && end <= until + slack) {
        lane->state = STATE_FLOWING;
        return;
    }
    if (lane->state != STATE_FLOWING)
        return;
    bool ends = end <= until + slack;
    double bytes = ends ? lane->left : lane->rate * (until - simulation->now);
    for (uint32_t i = 0; i < lane->resource_count; i++)
        simulation->carried[lane->resources[i]] += bytes;
    lane->left -= bytes;
    if (ends) {
        lane->state = STATE_READY;
        lane->at++;
    }
}

static int stuck_refuse(const struct simulation *simulation, struct bw_err *err)
{
    for (uint32_t i = 0; i < simulation->lane_count; i++) {
        const struct lane *lane = &simulation->lanes[i];
        if (lane->state != STATE_READY)
            continue;
        const struct bw_mock_event *event = event_of(simulation, lane);
        bw_fail(err, -EDEADLK, "timing", "GPU %u, %s waits for a word that nobody writes so",
                lane->queue->gpu, lane->queue->name);
        bw_err_expected(err, "%s 0x%x", bw_mock_compare_name(event->function), event->value);
        bw_err_observed(err, "0x%x", simulation->words[event->word]);
        return -EDEADLK;
    }
    return 0; /* all are done */
}

static int simulation_run(struct simulation *simulation, struct bw_err *err)
{
    for (;;) {
        int rc = lanes_advance(simulation, err);
        if (rc)
            return rc;
        rates_share(simulation);
        double next = INFINITY;
        for (uint32_t i = 0; i < simulation->lane_count; i++)
            next = fmin(next, lane_next(simulation, &simulation->lanes[i]));
        if (isinf(next))
            return stuck_refuse(simulation, err);
        for (uint32_t i = 0; i < simulation->lane_count; i++)
            lane_pass(simulation, &simulation->lanes[i], next);
        simulation->now = next;
    }
}

/* ---- setting up ---- */

static int lanes_make(struct simulation *simulation, struct bw_err *err)
{
    const struct bw_mock_recording *recording = simulation->recording;
    simulation->lane_count = (uint32_t)recording->queues.count;
    for (size_t i = 0; i < recording->events.count; i++)
        simulation->lanes[recording->events.data[i].queue].event_count++;
    for (uint32_t i = 0; i < simulation->lane_count; i++) {
        struct lane *lane = &simulation->lanes[i];
        lane->queue = &recording->queues.data[i];
        int rc = lane_check(simulation->topology, lane, err);
        if (rc)
            return rc;
        lane->events = calloc(lane->event_count + 1, sizeof *lane->events);
        if (!lane->events)
            return bw_fail(err, -ENOMEM, "timing", "%u events", lane->event_count);
        lane->event_count = 0;
    }
    for (uint32_t i = 0; i < recording->events.count; i++) {
        struct lane *lane = &simulation->lanes[recording->events.data[i].queue];
        lane->events[lane->event_count++] = i;
    }
    return 0;
}

static int simulation_make(struct simulation *simulation, struct bw_err *err)
{
    const struct bw_topology *topology = simulation->topology;
    const struct bw_mock_recording *recording = simulation->recording;
    uint32_t count = topology->link_count + topology->gpu_count * topology->engines_per_gpu;
    simulation->resource_count = count;
    simulation->lanes = calloc(recording->queues.count + 1, sizeof *simulation->lanes);
    simulation->words = calloc(recording->words.count + 1, sizeof *simulation->words);
    simulation->capacity = calloc(count, sizeof *simulation->capacity);
    simulation->spare = calloc(count, sizeof *simulation->spare);
    simulation->carried = calloc(count, sizeof *simulation->carried);
    simulation->users = calloc(count, sizeof *simulation->users);
    if (!simulation->lanes || !simulation->words || !simulation->capacity || !simulation->spare ||
        !simulation->carried || !simulation->users)
        return bw_fail(err, -ENOMEM, "timing", "simulation of %zu events", recording->events.count);
    for (uint32_t i = 0; i < count; i++) /* GB/s are bytes per ns */
        simulation->capacity[i] =
            i < topology->link_count ? topology->links[i].gb_per_s : topology->engine_gb_per_s;
    for (uint32_t i = 0; i < recording->words.count; i++)
        simulation->words[i] = recording->words.data[i].initial;
    return lanes_make(simulation, err);
}

static void simulation_free(struct simulation *simulation)
{
    for (uint32_t i = 0; i < simulation->lane_count; i++)
        free(simulation->lanes[i].events);
    free(simulation->lanes);
    free(simulation->words);
    free(simulation->capacity);
    free(simulation->spare);
    free(simulation->carried);
    free(simulation->users);
}

static int timing_fill(const struct simulation *simulation, struct bw_timing *timing, struct bw_err *err)
{
    uint32_t links = simulation->topology->link_count;
    timing->link_busy = calloc((size_t)links + 1, sizeof *timing->link_busy);
    timing->engine_busy = calloc(simulation->resource_count - links, sizeof *timing->engine_busy);
    if (!timing->link_busy || !timing->engine_busy) {
        bw_timing_free(timing);
        return bw_fail(err, -ENOMEM, "timing", "result");
    }
    timing->seconds = simulation->now * 1e-9;
    for (uint32_t i = 0; i < simulation->resource_count && simulation->now > 0; i++) {
        double busy = simulation->carried[i] / (simulation->capacity[i] * simulation->now);
        *(i < links ? &timing->link_busy[i] : &timing->engine_busy[i - links]) = busy;
    }
    for (size_t i = 0; i < simulation->recording->events.count; i++)
        timing->bytes += simulation->recording->events.data[i].size_bytes;
    return 0;
}

int bw_timing_simulate(const struct bw_topology *topology, const struct bw_mock_recording *recording,
                       struct bw_timing *timing, struct bw_err *err)
{
    struct simulation simulation = {.topology = topology, .recording = recording};
    *timing = (struct bw_timing){0};
    int rc = simulation_make(&simulation, err);
    if (!rc)
        rc = simulation_run(&simulation, err);
    if (!rc)
        rc = timing_fill(&simulation, timing, err);
    simulation_free(&simulation);
    return rc;
}

void bw_timing_free(struct bw_timing *timing)
{
    free(timing->link_busy);
    free(timing->engine_busy);
    *timing = (struct bw_timing){0};
}

/* ---- the bound, from the traffic alone ---- */

int bw_timing_bound(const struct bw_topology *topology, const uint64_t *traffic, double *seconds,
                    struct bw_err *err)
{
    double *carried = calloc((size_t)topology->link_count + 1, sizeof *carried), most_ns = 0;
    int rc = carried ? 0 : bw_fail(err, -ENOMEM, "timing", "%u links", topology->link_count);
    for (uint32_t from = 0; from < topology->gpu_count && !rc; from++) {
        double sent = 0;
        for (uint32_t to = 0; to < topology->gpu_count && !rc; to++) {
            uint64_t bytes = traffic[from * topology->gpu_count + to];
            uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
            int count = bytes ? bw_topology_route(topology, from, to, route) : 0;
            if (count < 0)
                rc = way_refuse(topology, from, to, err);
            for (int i = 0; i < count; i++)
                carried[route[i]] += (double)bytes;
            sent += (double)bytes;
        }
        most_ns = fmax(most_ns, sent / (topology->engines_per_gpu * topology->engine_gb_per_s));
    }
    for (uint32_t i = 0; i < topology->link_count && !rc; i++)
        most_ns = fmax(most_ns, carried[i] / topology->links[i].gb_per_s);
    free(carried);
    *seconds = most_ns * 1e-9;
    return rc;
}
