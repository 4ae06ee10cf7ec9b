/* Calls on a tuple of devices: each lane becomes a call of its own. What makes them one call is checked here:
 * that they may run in any order, and that all of them are appended or none. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcq/plan.h"

/* Where the graph stood before the first lane. */
struct mark {
    size_t calls, held;
    uint32_t input_count, variable_count;
};

/* Bytes that a lane touches. space: as key of a map, one per block and per input. */
struct lane_touch {
    uint64_t space, begin, end;
    uint32_t lane;
    bool write;
};

struct lane_touches {
    BW_VEC(struct lane_touch) list;
};

static struct mark mark_take(const struct bw_graph *graph)
{
    return (struct mark){graph->calls.count, graph->held.count, graph->input_count, graph->variable_count};
}

static void mark_return(struct bw_graph *graph, const struct mark *mark)
{
    while (graph->held.count > mark->held)
        bw_block_release(graph->held.data[--graph->held.count]);
    graph->calls.count = mark->calls;
    graph->input_count = mark->input_count;
    graph->variable_count = mark->variable_count;
}

static int call_note(struct lane_touches *touches, const struct bw_call *call, uint32_t lane)
{
    struct bw_call_range range;
    for (uint32_t at = 0; bw_call_range_next(call, &at, &range);) {
        uint64_t begin = range.place->offset;
        struct lane_touch touch = {bw_place_space(range.place), begin, begin + range.size_bytes, lane,
                                   range.access & BW_ACCESS_WRITE};
        if (range.size_bytes && bw_vec_push(&touches->list, touch))
            return -ENOMEM;
    }
    return 0;
}

static int touch_compare(const void *left, const void *right)
{
    const struct lane_touch *a = left, *b = right;
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static int conflict_refuse(const struct bw_graph *graph, const struct lane_touch *a,
                           const struct lane_touch *b, struct bw_err *err)
{
    const struct lane_touch *writer = a->write ? a : b, *other = a->write ? b : a;
    uint64_t begin = a->begin > b->begin ? a->begin : b->begin, end = a->end < b->end ? a->end : b->end;
    bw_fail(err, -EINVAL, "graph", "call %zu: lane %u writes what lane %u %s", graph->calls.count,
            writer->lane, other->lane, other->write ? "writes" : "reads");
    bw_err_observed(err, "%llu bytes in common", (unsigned long long)(end - begin));
    bw_err_hint(err, "lanes of one call have no order among themselves: make it two calls");
    return -EINVAL;
}

/* Sorted by start, so a range is compared with those that start inside it. */
static int conflicts_look(const struct bw_graph *graph, struct lane_touches *touches, struct bw_err *err)
{
    const struct lane_touch *list = touches->list.data;
    if (touches->list.count)
        qsort(touches->list.data, touches->list.count, sizeof *list, touch_compare);
    for (size_t i = 0; i < touches->list.count; i++) {
        for (size_t k = i + 1;
             k < touches->list.count && list[k].space == list[i].space && list[k].begin < list[i].end; k++) {
            if (list[i].lane != list[k].lane && (list[i].write || list[k].write))
                return conflict_refuse(graph, &list[i], &list[k], err);
        }
    }
    return 0;
}

static int count_check(const struct bw_graph *graph, uint32_t lane_count, struct bw_err *err)
{
    if (lane_count > 0 && lane_count <= BW_GRAPH_LANES_MAX)
        return 0;
    bw_fail(err, -EINVAL, "graph", "call %zu: lanes", graph->calls.count);
    bw_err_expected(err, "1 to %d", BW_GRAPH_LANES_MAX);
    bw_err_observed(err, "%u", lane_count);
    return -EINVAL;
}

/* Appends the lanes one by one, then looks at what they touch together. */
static int lanes_add(struct bw_graph *graph, uint32_t lane_count,
                     int (*add)(struct bw_graph *graph, const void *lanes, uint32_t lane, struct bw_err *err),
                     const void *lanes, struct bw_err *err)
{
    struct mark mark = mark_take(graph);
    struct lane_touches touches = {0};
    int rc = 0;
    for (uint32_t lane = 0; lane < lane_count && !rc; lane++) {
        size_t before = graph->calls.count;
        rc = add(graph, lanes, lane, err);
        if (rc)
            bw_err_prefix(err, "lane %u: ", lane);
        if (!rc && graph->calls.count > before && call_note(&touches, &graph->calls.data[before], lane))
            rc = bw_fail(err, -ENOMEM, "graph", "call %zu: lanes", mark.calls);
    }
    if (!rc) {
        size_t after = graph->calls.count;
        graph->calls.count = mark.calls; /* the number that the error names */
        rc = conflicts_look(graph, &touches, err);
        graph->calls.count = after;
    }
    bw_vec_free(&touches.list);
    if (rc)
        mark_return(graph, &mark);
    return rc;
}

/* Each device once, and all of one architecture: the lanes are one program. */
static int tuple_check(const struct bw_graph *graph, const struct bw_kernel_lane *lanes, uint32_t lane_count,
                       struct bw_err *err)
{
    uint32_t lane_of[BW_HCQ_DEVICES_MAX] = {0}; /* by device, plus 1 */
    const struct bw_device *first = lanes[0].kernel->program->device;
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        const struct bw_device *device = lanes[lane].kernel->program->device;
        if (device->ctx != graph->ctx)
            return bw_fail(err, -EINVAL, "graph", "call %zu: lane %u is of another context",
                           graph->calls.count, lane);
        uint32_t *seen = &lane_of[bw_hcq_device_of(device)->index];
        if (*seen)
            return bw_fail(err, -EINVAL, "graph", "call %zu: %s is lane %u and lane %u", graph->calls.count,
                           device->info.name, *seen - 1, lane);
        *seen = lane + 1;
        if (strcmp(device->info.driver, first->info.driver) || strcmp(device->info.arch, first->info.arch)) {
            bw_fail(err, -EINVAL, "graph", "call %zu: lane %u is of another family", graph->calls.count,
                    lane);
            bw_err_expected(err, "%s %s", first->info.driver, first->info.arch);
            bw_err_observed(err, "%s %s (%s)", device->info.driver, device->info.arch, device->info.name);
            return -EINVAL;
        }
    }
    return 0;
}

static int kernel_lane_add(struct bw_graph *graph, const void *lanes, uint32_t lane, struct bw_err *err)
{
    const struct bw_kernel_lane *at = (const struct bw_kernel_lane *)lanes + lane;
    return bw_graph_kernel(graph, at->kernel, at->launch, err);
}

int bw_graph_kernel_lanes(struct bw_graph *graph, const struct bw_kernel_lane *lanes, uint32_t lane_count,
                          struct bw_err *err)
{
    int rc = count_check(graph, lane_count, err);
    if (!rc)
        rc = tuple_check(graph, lanes, lane_count, err);
    return rc ? rc : lanes_add(graph, lane_count, kernel_lane_add, lanes, err);
}

static int copy_lane_add(struct bw_graph *graph, const void *lanes, uint32_t lane, struct bw_err *err)
{
    const struct bw_copy_lane *at = (const struct bw_copy_lane *)lanes + lane;
    return bw_graph_copy(graph, at->device, at->target, at->source, err);
}

int bw_graph_copy_lanes(struct bw_graph *graph, const struct bw_copy_lane *lanes, uint32_t lane_count,
                        struct bw_err *err)
{
    int rc = count_check(graph, lane_count, err);
    return rc ? rc : lanes_add(graph, lane_count, copy_lane_add, lanes, err);
}
