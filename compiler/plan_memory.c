/* Lifetimes to offsets: see plan.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "compiler/plan.h"
#include "mem/tlsf.h"

static bool live_together(const struct bw_plan_lifetime *a, const struct bw_plan_lifetime *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int by_size_down(const void *a, const void *b)
{
    const struct bw_plan_lifetime *x = *(struct bw_plan_lifetime *const *)a,
                                  *y = *(struct bw_plan_lifetime *const *)b;
    if (x->size_bytes != y->size_bytes)
        return x->size_bytes < y->size_bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* the order of equals must not depend on the sort */
}

/* The lowest offset where `wanted` overlaps none of the placed ones that live when it does. */
static uint64_t lowest_offset(struct bw_plan_lifetime *const *placed, uint32_t count,
                              const struct bw_plan_lifetime *wanted)
{
    uint64_t offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < count; i++) {
            const struct bw_plan_lifetime *other = placed[i];
            if (live_together(other, wanted) && offset < other->offset + other->size_bytes &&
                other->offset < offset + wanted->size_bytes) {
                offset = bw_align_up(other->offset + other->size_bytes, BW_PLAN_ALIGN_BYTES);
                moved = true;
            }
        }
    }
    return offset;
}

static int by_first(const void *a, const void *b)
{
    const struct bw_plan_lifetime *x = *(struct bw_plan_lifetime *const *)a,
                                  *y = *(struct bw_plan_lifetime *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int by_last(const void *a, const void *b)
{
    const struct bw_plan_lifetime *x = *(struct bw_plan_lifetime *const *)a,
                                  *y = *(struct bw_plan_lifetime *const *)b;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return x < y ? -1 : x > y;
}

enum {
    GREEDY_MAX = 4096, /* buffers: each is compared with all that are placed */
    RANGE_LOG2 = 60,   /* what the allocator hands out of: more than any device has */
};

/* In the order of time: each takes what others have freed. */
static uint64_t place_by_time(struct bw_plan_lifetime *lifetimes, uint32_t count)
{
    struct bw_plan_lifetime **first = calloc(count, sizeof *first), **last = calloc(count, sizeof *last);
    struct bw_tlsf *tlsf = NULL;
    uint64_t total = 0;
    uint32_t freed = 0;
    int rc = first && last ? bw_tlsf_create(BW_PLAN_ALIGN_BYTES, &tlsf) : -ENOMEM;
    if (!rc)
        rc = bw_tlsf_add(tlsf, 0, 1ull << RANGE_LOG2);
    for (uint32_t i = 0; !rc && i < count; i++)
        first[i] = last[i] = &lifetimes[i];
    if (!rc) {
        qsort(first, count, sizeof *first, by_first);
        qsort(last, count, sizeof *last, by_last);
    }
    for (uint32_t i = 0; !rc && i < count; i++) {
        for (; last[freed]->last < first[i]->first; freed++)
            if (last[freed]->size_bytes)
                bw_tlsf_free(tlsf, last[freed]->offset);
        first[i]->offset = 0;
        if (first[i]->size_bytes)
            rc = bw_tlsf_alloc(tlsf, first[i]->size_bytes, BW_PLAN_ALIGN_BYTES, &first[i]->offset);
        uint64_t end = first[i]->offset + first[i]->size_bytes;
        total = end > total ? end : total;
    }
    bw_tlsf_destroy(tlsf);
    free(first);
    free(last);
    return rc ? UINT64_MAX : bw_align_up(total, BW_PLAN_ALIGN_BYTES);
}

/* Largest first: greedy by size is within a few percent of optimal on inference graphs (Pisarchyk and Lee,
 * 2020). */
uint64_t bw_plan_place(struct bw_plan_lifetime *lifetimes, uint32_t count)
{
    if (count > GREEDY_MAX)
        return place_by_time(lifetimes, count);
    struct bw_plan_lifetime **order = calloc(count + 1, sizeof *order);
    uint64_t total = 0;
    if (!order)
        return UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        order[i] = &lifetimes[i];
    qsort(order, count, sizeof *order, by_size_down);
    for (uint32_t i = 0; i < count; i++) {
        order[i]->offset = lowest_offset(order, i, order[i]);
        uint64_t end = order[i]->offset + order[i]->size_bytes;
        total = end > total ? end : total;
    }
    free(order);
    return bw_align_up(total, BW_PLAN_ALIGN_BYTES);
}
