/* Calls -> operations on queues. */
#include "hcq/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/mock.h>

#include "base/bits.h"
#include "mem/disk.h"

enum {
    STAGING_SLOTS = 2, /* one is filled while the other is emptied */
    /* Of a disk: it wants to know of many reads ahead, and takes its time to be told that a slot is empty. */
    STAGING_FILE_SLOTS = 4,
    PART_ALIGN_BYTES = 256, /* parts of a copy keep the alignment that its start has */
};

static int no_memory(struct bw_err *err)
{
    return bw_fail(err, -ENOMEM, "graph", "plan");
}

/* The number of a device in the plan, added when new. */
static int device_number(struct bw_plan *plan, struct bw_hcq_device *hcq, uint32_t *number,
                         struct bw_err *err)
{
    for (uint32_t i = 0; i < plan->devices.count; i++) {
        if (plan->devices.data[i].hcq == hcq) {
            *number = i;
            return 0;
        }
    }
    *number = (uint32_t)plan->devices.count;
    struct bw_plan_device device = {.hcq = hcq};
    memset(device.queue_numbers, 0xff, sizeof device.queue_numbers);
    if (bw_vec_push(&plan->devices, device))
        return no_memory(err);
    return bw_hcq_device_check(hcq, err);
}

int bw_plan_queue_number(struct bw_plan *plan, uint32_t device, uint32_t queue, uint32_t *number,
                         struct bw_err *err)
{
    struct bw_plan_device *owner = &plan->devices.data[device];
    assert(queue < owner->hcq->queue_count);
    if (owner->queue_numbers[queue] == BW_PLAN_NONE) {
        struct bw_plan_queue fresh = {.hcq = &owner->hcq->queues[queue], .device = device};
        owner->queue_numbers[queue] = (uint32_t)plan->queues.count;
        if (bw_vec_push(&plan->queues, fresh))
            return no_memory(err);
    }
    *number = owner->queue_numbers[queue];
    return 0;
}

struct bw_hcq_device *bw_plan_place_owner(const struct bw_plan *plan, const struct bw_place *place,
                                          const struct bw_call *call)
{
    const struct bw_graph *graph = plan->graph;
    struct bw_device *said = !place->block && place->input < graph->input_devices.count
                                 ? graph->input_devices.data[place->input]
                                 : NULL;
    return place->block ? place->block->owner : bw_hcq_device_of(said ? said : call->device);
}

/* Adds the range to the operation under construction, which is the last one. */
static int touch_add(struct bw_plan *plan, const struct bw_call *call, const struct bw_place *place,
                     uint64_t size_bytes, bool write, struct bw_err *err)
{
    struct bw_operation *operation = &plan->operations.data[plan->operations.count - 1];
    uint32_t owner; /* only has to be a device of the plan */
    int rc = device_number(plan, bw_plan_place_owner(plan, place, call), &owner, err);
    if (rc)
        return rc;
    if (!place->block) {
        struct bw_plan_input *input = &plan->inputs[place->input];
        uint64_t end = place->offset + size_bytes;
        input->begin = input->used && input->begin < place->offset ? input->begin : place->offset;
        input->end = input->used && input->end > end ? input->end : end;
        input->written |= write;
        input->used = true;
        input->devices |= 1ull << operation->device;
    }
    if (size_bytes == 0)
        return 0;
    struct bw_touch touch = {*place, size_bytes, write};
    if (bw_vec_push(&plan->touches, touch))
        return no_memory(err);
    operation->touch_count++;
    return 0;
}

static int operation_add(struct bw_plan *plan, uint32_t call, uint32_t device, uint32_t queue,
                         struct bw_err *err)
{
    struct bw_operation operation = {
        .call = call, .device = device, .queue = queue, .touch_begin = (uint32_t)plan->touches.count};
    if (plan->operations.count >= UINT32_MAX / 2)
        return bw_fail(err, -E2BIG, "graph", "more than 2^31 operations");
    return bw_vec_push(&plan->operations, operation) ? no_memory(err) : 0;
}

static int kernel_plan(struct bw_plan *plan, uint32_t index, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    struct bw_hcq_device *hcq = bw_hcq_device_of(call->device);
    uint32_t device;
    int rc = device_number(plan, hcq, &device, err);
    if (rc)
        return rc;
    if (hcq->compute_count == 0)
        return bw_fail(err, -ENOTSUP, "graph", "call %u: %s has no compute queue", index,
                       call->device->info.name);
    plan->devices.data[device].kernel_count++;
    rc = operation_add(plan, index, device, BW_PLAN_NONE, err);
    struct bw_call_range range;
    for (uint32_t at = 0; !rc && bw_call_range_next(call, &at, &range);) {
        if (range.access & BW_ACCESS_READ)
            rc = touch_add(plan, call, range.place, range.size_bytes, false, err);
        if (range.access & BW_ACCESS_WRITE && !rc)
            rc = touch_add(plan, call, range.place, range.size_bytes, true, err);
    }
    return rc;
}

static bool device_is_cpu(const struct bw_hcq_device *hcq)
{
    return hcq->device->caps.host_addressable;
}

static bool place_reachable(const struct bw_plan *plan, const struct bw_place *place,
                            const struct bw_call *call, struct bw_hcq_device *hcq)
{
    uint64_t address;
    if (!place->block) {
        struct bw_link link;
        struct bw_hcq_device *owner = bw_plan_place_owner(plan, place, call);
        return owner == hcq ||
               (bw_device_link(hcq->device, owner->device, &link, NULL) == 0 && link.kind != BW_LINK_NONE);
    }
    return bw_block_reach(place->block, hcq, &address, NULL) == 0;
}

static bool device_has_file(const struct bw_hcq_device *hcq)
{
    return hcq->device->caps.file_address != 0;
}

/* Whether the bytes are, or may be, those of a file. */
static bool place_is_file(const struct bw_plan *plan, const struct bw_place *place,
                          const struct bw_call *call)
{
    return place->block ? bw_block_is_file(place->block)
                        : device_has_file(bw_plan_place_owner(plan, place, call));
}

/* What a copy becomes. */
struct route {
    struct bw_hcq_device *source, *target; /* whose memory it is */
    struct bw_hcq_device *engine;          /* who copies; NULL: both, through host memory */
};

static bool place_is_host(const struct bw_place *place)
{
    return place->block && place->block->memory.flags & BW_BUFFER_HOST;
}

/* What lies on the far side of a transfer by `near` between these two: host memory, another device, or
 * nothing but its own memory. */
static uint32_t far_side(const struct bw_hcq_device *near, const struct bw_place *target,
                         const struct bw_place *source, const struct route *route)
{
    const struct bw_hcq_device *other = route->target != near ? route->target : route->source;
    return place_is_host(target) || place_is_host(source) ? BW_SPREAD_HOST : other->index;
}

/* The source's side pushes, since posted writes travel better than reads; but who has host memory of its own
 * at one end leaves the copy to the other. A GPU's engine before the CPU. */
static struct route route_find(struct bw_plan *plan, const struct bw_call *call)
{
    const struct bw_place *target = &call->places[0], *source = &call->places[1];
    struct route route = {bw_plan_place_owner(plan, source, call), bw_plan_place_owner(plan, target, call),
                          NULL};
    struct bw_hcq_device *candidates[2] = {route.source, route.target};
    if ((device_is_cpu(route.source) && !device_is_cpu(route.target)) ||
        (place_is_host(source) && !place_is_host(target) && !device_is_cpu(route.target))) {
        candidates[0] = route.target;
        candidates[1] = route.source;
    }
    for (int i = 0; i < 2 && !route.engine; i++) {
        if (candidates[i]->queue_count && place_reachable(plan, target, call, candidates[i]) &&
            place_reachable(plan, source, call, candidates[i]))
            route.engine = candidates[i];
    }
    return route;
}

/* One part of a copy, that a queue of the device (by its number there) can do by itself. */
static int leg_add(struct bw_plan *plan, uint32_t index, uint32_t device, uint32_t queue,
                   const struct bw_place *target, const struct bw_place *source, uint64_t size_bytes,
                   struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    uint32_t number;
    int rc = bw_plan_queue_number(plan, device, queue, &number, err);
    if (!rc)
        rc = operation_add(plan, index, device, number, err);
    if (rc)
        return rc;
    struct bw_operation *operation = &plan->operations.data[plan->operations.count - 1];
    operation->target = *target;
    operation->source = *source;
    operation->size_bytes = size_bytes;
    rc = touch_add(plan, call, source, size_bytes, false, err);
    return rc ? rc : touch_add(plan, call, target, size_bytes, true, err);
}

static int engine_check(const struct bw_hcq_device *hcq, uint32_t index, struct bw_err *err)
{
    bool copies =
        hcq->queue_count > hcq->compute_count || (hcq->compute_count && hcq->device->caps.compute_copies);
    return copies ? 0
                  : bw_fail(err, -ENOTSUP, "graph", "call %u: %s has no queue that copies", index,
                            hcq->device->info.name);
}

/* By one device: in as many parts as it has engines to spare. Parts share no byte, so they need no order. */
static int direct_plan(struct bw_plan *plan, uint32_t index, const struct route *route, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    struct bw_place target = call->places[0], source = call->places[1];
    uint32_t device, queues[BW_HCQ_QUEUES_MAX];
    uint64_t help_bytes;
    int rc = engine_check(route->engine, index, err);
    if (!rc)
        rc = device_number(plan, route->engine, &device, err);
    if (rc)
        return rc;
    uint32_t parts =
        bw_spread_queues(plan->spread, route->engine, far_side(route->engine, &target, &source, route),
                         call->size_bytes, queues, &help_bytes);
    uint64_t own_bytes = call->size_bytes - help_bytes;
    uint64_t part_bytes = bw_align_up(bw_div_up(own_bytes, parts), PART_ALIGN_BYTES);
    uint64_t packet_bytes = route->engine->device->caps.copy_bytes_max;
    if (part_bytes > packet_bytes && !help_bytes) /* no packet more than the whole would take */
        part_bytes = bw_div_up(part_bytes, packet_bytes) * packet_bytes;
    for (uint64_t at = 0, part = 0; at < call->size_bytes && !rc; at += part_bytes, part++) {
        uint64_t left_bytes = call->size_bytes - at;
        if (part == parts) /* the helper's */
            part_bytes = left_bytes;
        rc = leg_add(plan, index, device, queues[part], &target, &source,
                     left_bytes < part_bytes ? left_bytes : part_bytes, err);
        target.offset += part_bytes;
        source.offset += part_bytes;
    }
    return rc;
}

static bool is_placed(const struct bw_hcq_device *device)
{
    return device->device->info.numa_placed;
}

/* Between GPUs on two sockets the bytes cross from one to the other once, wherever they are staged: better as
 * the writes of the source, which PCIe posts, than as the reads of the target, of which an engine has only so
 * many under way while each takes the longer way there and back. */
static bool nodes_differ(const struct bw_hcq_device *source, const struct bw_hcq_device *target)
{
    return is_placed(source) && is_placed(target) &&
           source->device->info.numa_node != target->device->info.numa_node;
}

/* Of memory that a disk reads into: near the GPU that fetches it from there. A mock that a name made has
 * nodes of its own, which say nothing on the disk's machine. */
static uint32_t node_flags(const struct bw_hcq_device *source, const struct bw_hcq_device *target)
{
    bool near = device_has_file(source) && is_placed(target) && !bw_device_mock(target->device);
    return near ? (target->device->info.numa_node + 1) << BW_ALLOC_NODE_SHIFT : 0;
}

/* Host memory that both can address: one's own, mapped into the other. */
static int staging_make(struct bw_plan *plan, const struct route *route, struct bw_staging *staging,
                        struct bw_err *err)
{
    struct bw_hcq_device *source = route->source, *target = route->target;
    /* A disk reads past the page cache into memory of the process, not into what a driver has mapped. */
    bool target_first = (device_is_cpu(source) && !device_has_file(source)) || nodes_differ(source, target);
    struct bw_hcq_device *owners[2] = {target_first ? target : source, target_first ? source : target};
    int rc = -EOPNOTSUPP;
    for (int i = 0; i < 2 && rc; i++) {
        struct bw_block *block;
        uint64_t address;
        rc = bw_block_create(owners[i], staging->slot_count * staging->slot_bytes,
                             BW_BUFFER_HOST | node_flags(source, target), &block, err);
        if (rc)
            return rc;
        rc = bw_block_reach(block, source, &address, err);
        if (!rc)
            rc = bw_block_reach(block, target, &address, err);
        if (rc)
            bw_block_release(block);
        else
            staging->block = block;
        if (rc == -ENOMEM)
            return rc;
    }
    return rc;
}

static uint64_t staging_key(const struct route *route)
{
    return (uint64_t)route->source->index * BW_HCQ_DEVICES_MAX + route->target->index;
}

/* Copies between the same two devices share their slots: one such pair is busy with one copy at a time
 * anyhow. Slots hold the largest of them, up to what keeps both sides busy. */
static int staging_note(struct bw_plan *plan, const struct route *route, uint64_t size_bytes)
{
    bool file = device_has_file(route->source);
    uint32_t slot_count = file ? STAGING_FILE_SLOTS : STAGING_SLOTS;
    uint64_t number, slot_bytes = size_bytes < BW_HCQ_STAGING_BYTES ? size_bytes : BW_HCQ_STAGING_BYTES;
    if (file && slot_bytes < BW_HCQ_STAGING_BYTES) { /* room for being in step: see bounce_plan */
        slot_bytes = bw_align_up(slot_bytes, BW_DISK_ALIGNMENT) + BW_DISK_ALIGNMENT;
        slot_bytes = slot_bytes < BW_HCQ_STAGING_BYTES ? slot_bytes : BW_HCQ_STAGING_BYTES;
    }
    if (!bw_map_get(&plan->staging_numbers, staging_key(route), &number)) {
        struct bw_staging fresh = {.slot_count = slot_count};
        number = plan->staging.count;
        if (bw_vec_push(&plan->staging, fresh) ||
            bw_map_set(&plan->staging_numbers, staging_key(route), number))
            return -ENOMEM;
    }
    struct bw_staging *staging = &plan->staging.data[number];
    staging->slot_bytes = slot_bytes > staging->slot_bytes ? slot_bytes : staging->slot_bytes;
    return 0;
}

static int staging_find(struct bw_plan *plan, const struct route *route, struct bw_staging *out,
                        struct bw_err *err)
{
    uint64_t number = 0;
    bool noted = bw_map_get(&plan->staging_numbers, staging_key(route), &number);
    assert(noted);
    (void)noted;
    struct bw_staging *staging = &plan->staging.data[number];
    int rc = staging->block ? 0 : staging_make(plan, route, staging, err);
    *out = *staging;
    return rc;
}

static int bounce_check(struct bw_plan *plan, uint32_t index, const struct route *route, uint32_t *near,
                        uint32_t *far, struct bw_err *err)
{
    int rc = engine_check(route->source, index, err);
    if (!rc)
        rc = engine_check(route->target, index, err);
    if (!rc)
        rc = device_number(plan, route->source, near, err);
    return rc ? rc : device_number(plan, route->target, far, err);
}

/* Neither side reaches the other: through host memory in chunks. Slots are byte ranges like any other, so
 * that hazards between chunks make the two legs a pipeline by themselves. */
static int bounce_plan(struct bw_plan *plan, uint32_t index, const struct route *route, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    uint32_t source_queues[BW_HCQ_QUEUES_MAX], target_queues[BW_HCQ_QUEUES_MAX], source, target;
    struct bw_staging staging;
    int rc = bounce_check(plan, index, route, &source, &target, err);
    if (!rc)
        rc = staging_find(plan, route, &staging, err);
    if (rc)
        return rc;
    uint64_t whole_bytes = call->size_bytes, help_bytes; /* a link to the host has no helpers */
    (void)bw_spread_queues(plan->spread, route->source, BW_SPREAD_HOST, whole_bytes, source_queues,
                           &help_bytes);
    (void)bw_spread_queues(plan->spread, route->target, BW_SPREAD_HOST, whole_bytes, target_queues,
                           &help_bytes);
    /* Bytes of a file keep their place within a block of the disk, so that all but the first and last blocks
     * are read past the page cache. */
    uint64_t skew_bytes = device_has_file(route->source) ? call->places[1].offset % BW_DISK_ALIGNMENT : 0;
    for (uint64_t at = 0, slot = 0, size_bytes; at < whole_bytes && !rc;
         at += size_bytes, slot = (slot + 1) % staging.slot_count, skew_bytes = 0) {
        uint64_t left_bytes = whole_bytes - at, room_bytes = staging.slot_bytes - skew_bytes;
        size_bytes = left_bytes < room_bytes ? left_bytes : room_bytes;
        struct bw_place to = call->places[0], from = call->places[1],
                        between = {staging.block, 0, slot * staging.slot_bytes + skew_bytes};
        to.offset += at;
        from.offset += at;
        rc = leg_add(plan, index, source, source_queues[0], &between, &from, size_bytes, err);
        if (!rc)
            rc = leg_add(plan, index, target, target_queues[0], &to, &between, size_bytes, err);
    }
    return rc;
}

static int copy_plan(struct bw_plan *plan, uint32_t index, const struct route *route, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    if (place_is_file(plan, &call->places[0], call))
        return bw_fail(err, -EROFS, "graph", "call %u: a copy into the file of %s, which is only read", index,
                       route->target->device->info.name);
    return route->engine ? direct_plan(plan, index, route, err) : bounce_plan(plan, index, route, err);
}

/* How much each engine's device will move where, before the first transfer is given to a queue. */
static int traffic_note(struct bw_plan *plan, const struct bw_call *call, const struct route *route)
{
    const struct bw_place *target = &call->places[0], *source = &call->places[1];
    if (route->engine)
        return bw_spread_note(plan->spread, route->engine, far_side(route->engine, target, source, route),
                              call->size_bytes);
    int rc = staging_note(plan, route, call->size_bytes);
    if (!rc)
        rc = bw_spread_note(plan->spread, route->source, BW_SPREAD_HOST, call->size_bytes);
    return rc ? rc : bw_spread_note(plan->spread, route->target, BW_SPREAD_HOST, call->size_bytes);
}

/* Finds every copy's route, then the queues of all, then makes the operations. */
static int operations_make(struct bw_plan *plan, struct route *routes, uint32_t *order, struct bw_err *err)
{
    const struct bw_graph *graph = plan->graph;
    /* Most calls are one operation that touches two ranges or more. */
    int rc = bw_vec_reserve(&plan->operations, graph->calls.count) ||
                     bw_vec_reserve(&plan->touches, 2 * graph->calls.count) || bw_order_make(plan, order)
                 ? no_memory(err)
                 : 0;
    for (uint32_t i = 0; i < graph->calls.count && !rc; i++) {
        const struct bw_call *call = &graph->calls.data[i];
        if (call->kernel)
            continue;
        routes[i] = route_find(plan, call);
        rc = traffic_note(plan, call, &routes[i]) ? no_memory(err) : 0;
    }
    if (!rc && bw_spread_assign(plan->spread, graph->ctx))
        rc = no_memory(err);
    for (uint32_t i = 0; i < graph->calls.count && !rc; i++)
        rc = graph->calls.data[order[i]].kernel ? kernel_plan(plan, order[i], err)
                                                : copy_plan(plan, order[i], &routes[order[i]], err);
    return rc;
}

/* Kernels may go to any compute queue of their device, as far as there are kernels for them. */
static int compute_queues_add(struct bw_plan *plan, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < plan->devices.count; i++) {
        const struct bw_plan_device *device = &plan->devices.data[i];
        for (uint32_t k = 0; k < device->hcq->compute_count && k < device->kernel_count && !rc; k++) {
            uint32_t number;
            rc = bw_plan_queue_number(plan, i, k, &number, err);
        }
    }
    return rc;
}

enum bw_wait_kind bw_plan_wait_kind(const struct bw_plan *plan, uint32_t waiter, uint32_t writer)
{
    struct bw_hcq_device *waits = plan->devices.data[waiter].hcq, *writes = plan->devices.data[writer].hcq;
    uint64_t address;
    if (waits->device->caps.submit_wait && writes->device->caps.submit_wait &&
        waits->device->ops == writes->device->ops && waits->sys == writes->sys)
        return BW_WAIT_SUBMISSION;
    bool reaches =
        waits->device->caps.device_wait && bw_block_reach(writes->signals, waits, &address, NULL) == 0;
    return reaches ? BW_WAIT_DEVICE : BW_WAIT_HOST;
}

int bw_plan_make(struct bw_graph *graph, bool profile, struct bw_plan *plan, struct bw_err *err)
{
    *plan = (struct bw_plan){.graph = graph, .profile = profile, .leader = BW_PLAN_NONE};
    plan->inputs = calloc(graph->input_count ? graph->input_count : 1, sizeof *plan->inputs);
    plan->spread = bw_spread_create();
    struct route *routes = calloc(graph->calls.count + 1, sizeof *routes);
    uint32_t *order = calloc(graph->calls.count + 1, sizeof *order);
    int rc = plan->inputs && plan->spread && routes && order ? operations_make(plan, routes, order, err)
                                                             : no_memory(err);
    free(routes);
    free(order);
    if (!rc)
        rc = compute_queues_add(plan, err);
    if (!rc)
        rc = bw_hazards_find(plan, err);
    bw_spread_destroy(plan->spread);
    plan->spread = NULL;
    if (rc)
        bw_plan_free(plan);
    return rc;
}

void bw_plan_free(struct bw_plan *plan)
{
    for (size_t i = 0; i < plan->staging.count; i++)
        bw_block_release(plan->staging.data[i].block);
    bw_vec_free(&plan->staging);
    bw_map_free(&plan->staging_numbers);
    bw_vec_free(&plan->devices);
    bw_vec_free(&plan->queues);
    bw_vec_free(&plan->operations);
    bw_vec_free(&plan->touches);
    bw_vec_free(&plan->waits);
    bw_vec_free(&plan->dependencies);
    free(plan->inputs);
    plan->inputs = NULL;
}
