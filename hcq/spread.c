/* Which queue an operation goes to.
 *
 * Copies: what a graph moves between two places is known before the first copy is placed. All transfers from
 * one device to one place are a pair; pairs are dealt out to the device's engines, the largest first, each to
 * the engine with the least to do, so that transfers to different places run beside each other and share no
 * engine while others idle. A pair that has engines to itself spreads its large transfers over them. Engines
 * that do not serve links between GPUs help those that do as long as nothing else is theirs to move: each
 * takes a small part of large transfers, of one pair after the other.
 *
 * Kernels: what depends on a kernel follows it, since order on one queue costs a barrier at most; else it
 * goes where all work is done by the time that it may start, else to the queue that has been given the least.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "hcq/plan.h"

enum {
    /* Of what an engine takes: 4 us of one that does 32 GB/s, several times its packet, wait and signal. */
    PART_BYTES_MIN = 128 << 10,
    KERNEL_LOAD = 64 << 10, /* a launch, in bytes that would take as long */
};

struct pair {
    struct bw_hcq_device *near;
    uint32_t far;
    uint64_t bytes;
    uint32_t queues[BW_HCQ_QUEUES_MAX], queue_count; /* numbers of the device */
    uint32_t help_queue, help_part, help_whole;      /* of each transfer a helper takes part / whole */
};

struct engines {
    uint32_t queues[BW_HCQ_QUEUES_MAX], count;
};

struct bw_spread {
    struct bw_map numbers;
    BW_VEC(struct pair) pairs;
    uint64_t loads[BW_HCQ_DEVICES_MAX][BW_HCQ_QUEUES_MAX]; /* bytes given to each queue so far */
};

struct bw_spread *bw_spread_create(void)
{
    return calloc(1, sizeof(struct bw_spread));
}

void bw_spread_destroy(struct bw_spread *spread)
{
    if (!spread)
        return;
    bw_map_free(&spread->numbers);
    bw_vec_free(&spread->pairs);
    free(spread);
}

static uint64_t pair_key(const struct bw_hcq_device *near, uint32_t far)
{
    return (uint64_t)near->index * (BW_SPREAD_HOST + 1) + far;
}

int bw_spread_note(struct bw_spread *spread, struct bw_hcq_device *near, uint32_t far, uint64_t size_bytes)
{
    uint64_t number;
    if (!bw_map_get(&spread->numbers, pair_key(near, far), &number)) {
        struct pair fresh = {.near = near, .far = far};
        number = spread->pairs.count;
        if (bw_vec_push(&spread->pairs, fresh) || bw_map_set(&spread->numbers, pair_key(near, far), number))
            return -ENOMEM;
    }
    spread->pairs.data[number].bytes += size_bytes;
    return 0;
}

/* ---- engines of one device ---- */

/* Engines that serve links between GPUs, or those that do not; where a device has no such, all it has. */
static struct engines engines_find(struct bw_hcq_device *device, bool xgmi)
{
    struct engines engines = {.count = 0};
    uint32_t split = device->queue_count - device->device->caps.xgmi_copy_queues;
    uint32_t begin = xgmi ? split : device->compute_count, end = xgmi ? device->queue_count : split;
    if (begin >= end) {
        begin = device->compute_count < device->queue_count ? device->compute_count : 0;
        end = device->compute_count < device->queue_count ? device->queue_count : 1;
    }
    for (uint32_t queue = begin; queue < end; queue++)
        engines.queues[engines.count++] = queue;
    return engines;
}

/* Engines that serve no links, as far as no pair is theirs. */
static struct engines helpers_find(const struct bw_spread *spread, struct bw_hcq_device *device)
{
    struct engines all = engines_find(device, false), helpers = {.count = 0};
    uint64_t taken = 0;
    for (size_t i = 0; i < spread->pairs.count; i++) {
        const struct pair *pair = &spread->pairs.data[i];
        for (uint32_t k = 0; k < pair->queue_count && pair->near == device; k++)
            taken |= 1ull << pair->queues[k];
    }
    for (uint32_t i = 0; i < all.count; i++) {
        uint32_t queue = all.queues[i];
        if (queue >= device->compute_count && !(taken >> queue & 1) &&
            bw_hcq_queue_usable(&device->queues[queue]))
            helpers.queues[helpers.count++] = queue;
    }
    return helpers;
}

static bool pair_is_xgmi(const struct bw_ctx *ctx, const struct pair *pair)
{
    if (pair->far == BW_SPREAD_HOST || !pair->near->device->caps.xgmi_copy_queues)
        return false;
    const struct bw_hcq_peer *peer =
        __atomic_load_n(&ctx->peers[pair->near->index][pair->far], __ATOMIC_ACQUIRE);
    return peer && peer->link.kind == BW_LINK_XGMI;
}

/* The engine with the least bytes among those that can be had; BW_PLAN_NONE when none can. */
static uint32_t engine_pick(struct bw_hcq_device *device, struct engines *engines, const uint64_t *totals)
{
    while (engines->count) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < engines->count; i++) {
            if (totals[engines->queues[i]] < totals[engines->queues[best]])
                best = i;
        }
        if (bw_hcq_queue_usable(&device->queues[engines->queues[best]]))
            return engines->queues[best];
        engines->count--; /* another process has it */
        memmove(&engines->queues[best], &engines->queues[best + 1],
                (engines->count - best) * sizeof engines->queues[0]);
    }
    return BW_PLAN_NONE;
}

static int pair_compare(const void *left, const void *right)
{
    const struct pair *a = *(struct pair *const *)left, *b = *(struct pair *const *)right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    /* As order.c has them, so that in all devices the same engine serves the same step around the ring. */
    uint32_t a_step = a->far == BW_SPREAD_HOST ? a->far : bw_spread_distance(a->near->index, a->far),
             b_step = b->far == BW_SPREAD_HOST ? b->far : bw_spread_distance(b->near->index, b->far);
    return (a_step > b_step) - (a_step < b_step);
}

static void pair_give(struct pair *pair, uint32_t queue, uint64_t *totals)
{
    pair->queues[pair->queue_count++] = queue;
    totals[queue] += pair->bytes ? pair->bytes : 1;
}

/* Engines that nobody has go to the pairs with the most bytes for each engine, as long as parts stay large.
 */
static void spare_engines_give(struct bw_hcq_device *device, struct engines engines, struct pair **pairs,
                               uint32_t count, uint64_t *totals)
{
    for (;;) {
        uint32_t queue = engine_pick(device, &engines, totals);
        struct pair *neediest = NULL;
        for (uint32_t i = 0; i < count && queue != BW_PLAN_NONE && totals[queue] == 0; i++) {
            struct pair *pair = pairs[i];
            if (pair->bytes / (pair->queue_count + 1) >= PART_BYTES_MIN &&
                (!neediest || pair->bytes / pair->queue_count > neediest->bytes / neediest->queue_count))
                neediest = pair;
        }
        if (!neediest)
            return;
        pair_give(neediest, queue, totals);
    }
}

/* Each of a device's XGMI pairs gets a helper, if there are any. It comes as one more to a link that n
 * engines may keep busy already, and such a link gives each of n + 1 an n-th part less: so a helper is given
 * x = n/(n + 1) of what the others have, and is never the last to end. With k helpers beside e engines that
 * is x/(e + kx) of all, from as many pairs as are its own. */
static void help_assign(const struct bw_spread *spread, struct bw_hcq_device *device, struct pair **pairs,
                        uint32_t count, const uint64_t *totals)
{
    struct engines helpers = helpers_find(spread, device);
    uint32_t engines = 0;
    helpers.count = helpers.count < count ? helpers.count : count;
    for (uint32_t queue = 0; queue < device->queue_count; queue++)
        engines += totals[queue] != 0;
    uint32_t each = engines > count ? engines / count : 1;
    for (uint32_t i = 0; i < count && helpers.count; i++) {
        uint32_t helper = i % helpers.count, served = (count - helper - 1) / helpers.count + 1;
        pairs[i]->help_queue = helpers.queues[helper];
        pairs[i]->help_part = each * count;
        pairs[i]->help_whole = (engines * (each + 1) + helpers.count * each) * served;
    }
}

static int class_assign(struct bw_spread *spread, struct bw_ctx *ctx, struct bw_hcq_device *device, bool xgmi)
{
    uint64_t totals[BW_HCQ_QUEUES_MAX] = {0};
    struct pair **pairs = calloc(spread->pairs.count + 1, sizeof *pairs);
    uint32_t count = 0;
    if (!pairs)
        return -ENOMEM;
    for (size_t i = 0; i < spread->pairs.count; i++) {
        struct pair *pair = &spread->pairs.data[i];
        if (pair->near == device && pair_is_xgmi(ctx, pair) == xgmi)
            pairs[count++] = pair;
    }
    qsort(pairs, count, sizeof *pairs, pair_compare);
    struct engines engines = engines_find(device, xgmi);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t queue = engine_pick(device, &engines, totals);
        /* The first queue of each kind exists since the device was opened. */
        pair_give(pairs[i], queue != BW_PLAN_NONE ? queue : engines_find(device, false).queues[0], totals);
    }
    if (count && device->compute_count < device->queue_count)
        spare_engines_give(device, engines, pairs, count, totals);
    if (count && xgmi)
        help_assign(spread, device, pairs, count, totals);
    free(pairs);
    return 0;
}

int bw_spread_assign(struct bw_spread *spread, struct bw_ctx *ctx)
{
    uint64_t done = 0;
    int rc = 0;
    for (size_t i = 0; i < spread->pairs.count && !rc; i++) {
        struct bw_hcq_device *device = spread->pairs.data[i].near;
        if (done >> device->index & 1 || device->queue_count == 0)
            continue;
        done |= 1ull << device->index;
        rc = class_assign(spread, ctx, device, false);
        if (!rc)
            rc = class_assign(spread, ctx, device, true);
    }
    return rc;
}

/* The one of these queues that was given least, of those that are not taken yet. */
static uint32_t least_loaded(const uint32_t *queues, uint32_t count, uint64_t taken, const uint64_t *loads)
{
    uint32_t best = BW_PLAN_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (!(taken >> queues[i] & 1) && (best == BW_PLAN_NONE || loads[queues[i]] < loads[best]))
            best = queues[i];
    }
    return best;
}

uint32_t bw_spread_queues(struct bw_spread *spread, struct bw_hcq_device *near, uint32_t far,
                          uint64_t size_bytes, uint32_t queues[BW_HCQ_QUEUES_MAX], uint64_t *help_bytes)
{
    uint64_t number = 0, *loads = spread->loads[near->index];
    bool noted = bw_map_get(&spread->numbers, pair_key(near, far), &number);
    assert(noted);
    (void)noted;
    const struct pair *pair = &spread->pairs.data[number];
    uint64_t most = size_bytes / PART_BYTES_MIN, taken = 0;
    uint32_t parts = most > pair->queue_count ? pair->queue_count : most ? (uint32_t)most : 1;
    *help_bytes = pair->help_part ? size_bytes / pair->help_whole * pair->help_part : 0;
    if (*help_bytes < PART_BYTES_MIN)
        *help_bytes = 0;
    for (uint32_t part = 0; part < parts; part++) {
        queues[part] = least_loaded(pair->queues, pair->queue_count, taken, loads);
        taken |= 1ull << queues[part];
    }
    for (uint32_t part = 0; part < parts; part++)
        loads[queues[part]] += (size_bytes - *help_bytes) / parts + 1;
    if (*help_bytes)
        queues[parts] = pair->help_queue;
    return parts;
}

/* ---- kernels ---- */

static uint64_t kernel_load(const struct bw_plan *plan, const struct bw_operation *operation)
{
    uint64_t bytes = KERNEL_LOAD;
    for (uint32_t i = 0; i < operation->touch_count; i++)
        bytes += plan->touches.data[operation->touch_begin + i].size_bytes;
    return bytes;
}

/* Behind its producer an operation starts as soon as that is done, unless the queue has waited for something
 * else since, which held up what follows. */
static bool follows_closely(const struct bw_plan *plan, uint32_t queue, uint32_t need)
{
    const struct bw_operation *producer = &plan->operations.data[need - 1];
    return plan->queues.data[queue].stage <= producer->stage + 1;
}

/* What makes a queue a good place. */
enum place {
    PLACE_PRODUCER, /* the kernel's producer is on it, and it has not been held up since */
    PLACE_FINISHED, /* it was used, and is done with all that before the kernel may start */
    PLACE_ANY,
    PLACE_COUNT,
};

static bool queue_fits(const struct bw_plan *plan, uint32_t queue, const uint32_t *need,
                       const bw_position *reached, enum place place)
{
    bw_position last = plan->queues.data[queue].operation_count;
    if (place == PLACE_PRODUCER)
        return need[queue] && follows_closely(plan, queue, need[queue]);
    return place == PLACE_ANY || (last && reached[queue] >= last);
}

/* The least loaded of the device's compute queues among those of the best sort that there are. */
static uint32_t kernel_queue_pick(const struct bw_plan *plan, const struct bw_plan_device *device,
                                  const uint32_t *need, const bw_position *reached)
{
    uint32_t best = BW_PLAN_NONE;
    for (int place = 0; place < PLACE_COUNT && best == BW_PLAN_NONE; place++) {
        for (uint32_t i = 0; i < device->hcq->compute_count; i++) {
            uint32_t queue = device->queue_numbers[i];
            if (queue == BW_PLAN_NONE || __atomic_load_n(&device->hcq->queues[i].refused, __ATOMIC_RELAXED) ||
                !queue_fits(plan, queue, need, reached, (enum place)place))
                continue;
            if (best == BW_PLAN_NONE || plan->queues.data[queue].load < plan->queues.data[best].load)
                best = queue;
        }
    }
    return best;
}

int bw_spread_kernel(struct bw_plan *plan, uint32_t index, const uint32_t *need, const bw_position *reached,
                     struct bw_err *err)
{
    struct bw_operation *operation = &plan->operations.data[index];
    const struct bw_plan_device *device = &plan->devices.data[operation->device];
    uint32_t queue;
    do { /* a queue that the driver refuses is not picked again, and the first cannot be */
        queue = kernel_queue_pick(plan, device, need, reached);
        if (queue == BW_PLAN_NONE)
            return bw_fail(err, -ENOTSUP, "graph", "%s has no compute queue", device->hcq->device->info.name);
    } while (!bw_hcq_queue_usable(plan->queues.data[queue].hcq));
    operation->queue = queue;
    plan->queues.data[queue].load += kernel_load(plan, operation);
    return 0;
}
