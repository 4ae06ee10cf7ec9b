/* In which order copies are handed to queues. Copies that follow each other and touch nothing in common have
 * no order of their own, and the one in which a program lists them is often the worst: when every device
 * sends to the first one, then to the second, they queue up in front of one link while the others idle. So
 * such a run goes in rounds, the first copy of each pair of devices, then the second, and in each round by
 * the distance from source to target around the ring of devices: at any time each device sends to another
 * one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hcq/plan.h"

/* Bytes that a copy of a run touches. */
struct touch {
    uint64_t space, begin, end;
    uint32_t call;
    bool write;
};

struct item {
    uint32_t round, distance, call;
};

static int touch_compare(const void *left, const void *right)
{
    const struct touch *a = left, *b = right;
    if (a->space != b->space)
        return a->space < b->space ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

static bool touch_set(struct touch *touch, const struct bw_place *place, const struct bw_call *call,
                      uint32_t index, bool write)
{
    *touch =
        (struct touch){bw_place_space(place), place->offset, place->offset + call->size_bytes, index, write};
    return call->size_bytes != 0;
}

/* Whether no copy of calls [first, end) writes what another touches. In each space by start: what overlaps a
 * range starts before that ends, and one writer among overlapping ranges is enough to refuse. */
static bool run_is_free(const struct bw_graph *graph, uint32_t first, uint32_t end, struct touch *touches)
{
    uint32_t count = 0;
    for (uint32_t i = first; i < end; i++) {
        const struct bw_call *call = &graph->calls.data[i];
        count += touch_set(&touches[count], &call->places[0], call, i, true);
        count += touch_set(&touches[count], &call->places[1], call, i, false);
    }
    qsort(touches, count, sizeof *touches, touch_compare);
    uint64_t written_end = 0, read_end = 0; /* of the space so far */
    for (uint32_t i = 0; i < count; i++) {
        const struct touch *touch = &touches[i];
        if (i == 0 || touch->space != touches[i - 1].space)
            written_end = read_end = 0;
        if (touch->begin < written_end || (touch->write && touch->begin < read_end))
            return false;
        uint64_t *reached = touch->write ? &written_end : &read_end;
        *reached = touch->end > *reached ? touch->end : *reached;
    }
    return true;
}

/* Twice as far as long as it goes, so that all looks together cost no more than sorting. */
static uint32_t run_end(const struct bw_graph *graph, uint32_t first, struct touch *touches)
{
    for (uint32_t length = 1;;) {
        uint32_t longer = length;
        while (longer < 2 * length && first + longer < graph->calls.count &&
               !graph->calls.data[first + longer].kernel)
            longer++;
        if (longer == length || !run_is_free(graph, first, first + longer, touches))
            return first + length;
        length = longer;
    }
}

static int item_compare(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    return (a->call > b->call) - (a->call < b->call);
}

static int run_sort(const struct bw_plan *plan, uint32_t first, uint32_t end, struct item *items,
                    uint32_t *order)
{
    struct bw_map rounds = {0}; /* copies of each pair so far */
    int rc = 0;
    for (uint32_t i = first; i < end && !rc; i++) {
        const struct bw_call *call = &plan->graph->calls.data[i];
        const struct bw_hcq_device *to = bw_plan_place_owner(plan, &call->places[0], call),
                                   *from = bw_plan_place_owner(plan, &call->places[1], call);
        uint64_t round = 0, pair = (uint64_t)from->index * BW_HCQ_DEVICES_MAX + to->index;
        (void)bw_map_get(&rounds, pair, &round);
        rc = bw_map_set(&rounds, pair, round + 1);
        items[i - first] = (struct item){(uint32_t)round, bw_spread_distance(from->index, to->index), i};
    }
    qsort(items, end - first, sizeof *items, item_compare);
    for (uint32_t i = first; i < end; i++)
        order[i] = items[i - first].call;
    bw_map_free(&rounds);
    return rc;
}

int bw_order_make(const struct bw_plan *plan, uint32_t *order)
{
    const struct bw_graph *graph = plan->graph;
    struct touch *touches = calloc(2 * graph->calls.count + 1, sizeof *touches);
    struct item *items = calloc(graph->calls.count + 1, sizeof *items);
    int rc = touches && items ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < graph->calls.count && !rc;) {
        uint32_t end = graph->calls.data[i].kernel ? i + 1 : run_end(graph, i, touches);
        order[i] = i;
        if (end - i > 1)
            rc = run_sort(plan, i, end, items, order);
        i = end;
    }
    free(touches);
    free(items);
    return rc;
}
