/* Calls -> operations on queues. */
#include "hcq/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { STAGING_SLOTS = 2 }; /* one is filled while the other is emptied */

static int no_memory(struct bw_err *err)
{
    return bw_fail(err, -ENOMEM, "graph", "plan");
}

/* The number of a device in the plan, added with its queues when new. */
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
    struct bw_plan_device device = {.hcq = hcq, .queue_begin = (uint32_t)plan->queues.count};
    if (bw_vec_push(&plan->devices, device))
        return no_memory(err);
    for (uint32_t i = 0; i < hcq->queue_count; i++) {
        struct bw_plan_queue queue = {.hcq = &hcq->queues[i], .device = *number};
        if (bw_vec_push(&plan->queues, queue))
            return no_memory(err);
    }
    return bw_hcq_device_check(hcq, err);
}

static struct bw_hcq_device *place_owner(const struct bw_plan *plan, const struct bw_place *place,
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
    int rc = device_number(plan, place_owner(plan, place, call), &owner, err);
    if (rc)
        return rc;
    if (!place->block) {
        struct bw_plan_input *input = &plan->inputs[place->input];
        uint64_t end = place->offset + size_bytes;
        input->begin = input->used && input->begin < place->offset ? input->begin : place->offset;
        input->end = input->used && input->end > end ? input->end : end;
        input->written |= write;
        input->used = true;
        input->devices |= 1ull << plan->queues.data[operation->queue].device;
    }
    if (size_bytes == 0)
        return 0;
    struct bw_touch touch = {*place, size_bytes, write};
    if (bw_vec_push(&plan->touches, touch))
        return no_memory(err);
    operation->touch_count++;
    return 0;
}

static int operation_add(struct bw_plan *plan, uint32_t call, uint32_t queue, struct bw_err *err)
{
    struct bw_operation operation = {.call = call,
                                     .queue = queue,
                                     .touch_begin = (uint32_t)plan->touches.count,
                                     .position = ++plan->queues.data[queue].operation_count};
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
    rc = operation_add(plan, index, plan->devices.data[device].queue_begin, err);
    for (uint32_t i = 0; i < call->launch.argument_count && !rc; i++) {
        const struct bw_argument *argument = &call->launch.arguments[i];
        if (argument->source != BW_ARG_RANGE)
            continue;
        if (argument->access & BW_ACCESS_READ || !argument->access)
            rc = touch_add(plan, call, &call->places[i], argument->access ? argument->range.size_bytes : 0,
                           false, err);
        if (argument->access & BW_ACCESS_WRITE && !rc)
            rc = touch_add(plan, call, &call->places[i], argument->range.size_bytes, true, err);
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
        struct bw_hcq_device *owner = place_owner(plan, place, call);
        return owner == hcq ||
               (bw_device_link(hcq->device, owner->device, &link, NULL) == 0 && link.kind != BW_LINK_NONE);
    }
    return bw_block_reach(place->block, hcq, &address, NULL) == 0;
}

/* One copy that `hcq` can do by itself. */
static int leg_add(struct bw_plan *plan, uint32_t index, struct bw_hcq_device *hcq,
                   const struct bw_place *target, const struct bw_place *source, uint64_t size_bytes,
                   struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    uint32_t device;
    int rc = device_number(plan, hcq, &device, err);
    if (rc)
        return rc;
    if (hcq->queue_count == 0)
        return bw_fail(err, -ENOTSUP, "graph", "call %u: %s has no queue", index, hcq->device->info.name);
    uint32_t first_copy = hcq->compute_count < hcq->queue_count ? hcq->compute_count : 0;
    rc = operation_add(plan, index, plan->devices.data[device].queue_begin + first_copy, err);
    if (rc)
        return rc;
    struct bw_operation *operation = &plan->operations.data[plan->operations.count - 1];
    operation->target = *target;
    operation->source = *source;
    operation->size_bytes = size_bytes;
    rc = touch_add(plan, call, source, size_bytes, false, err);
    return rc ? rc : touch_add(plan, call, target, size_bytes, true, err);
}

/* Host memory that both can address: one's own, mapped into the other. */
static int staging_make(struct bw_plan *plan, struct bw_hcq_device *source, struct bw_hcq_device *target,
                        uint64_t size_bytes, struct bw_block **out, struct bw_err *err)
{
    struct bw_hcq_device *owners[2] = {device_is_cpu(source) ? target : source,
                                       device_is_cpu(source) ? source : target};
    int rc = -EOPNOTSUPP;
    for (int i = 0; i < 2 && rc; i++) {
        struct bw_block *block;
        uint64_t address;
        rc = bw_block_create(owners[i], size_bytes, BW_BUFFER_HOST, &block, err);
        if (rc)
            return rc;
        rc = bw_block_reach(block, source, &address, err);
        if (!rc)
            rc = bw_block_reach(block, target, &address, err);
        if (!rc && bw_vec_push(&plan->staging, block))
            rc = no_memory(err);
        if (rc)
            bw_block_release(block);
        else
            *out = block;
        if (rc == -ENOMEM)
            return rc;
    }
    return rc;
}

/* Neither side reaches the other: through host memory in chunks. Slots are byte ranges like any other, so
 * that hazards between chunks make the two legs a pipeline by themselves. */
static int bounce_plan(struct bw_plan *plan, uint32_t index, struct bw_hcq_device *source,
                       struct bw_hcq_device *target, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    uint64_t chunk_bytes = call->size_bytes < BW_HCQ_STAGING_BYTES ? call->size_bytes : BW_HCQ_STAGING_BYTES;
    struct bw_block *block = NULL;
    int rc = staging_make(plan, source, target, STAGING_SLOTS * chunk_bytes, &block, err);
    for (uint64_t at = 0, slot = 0; at < call->size_bytes && !rc;
         at += chunk_bytes, slot = (slot + 1) % STAGING_SLOTS) {
        uint64_t left_bytes = call->size_bytes - at;
        uint64_t size_bytes = left_bytes < chunk_bytes ? left_bytes : chunk_bytes;
        struct bw_place to = call->places[0], from = call->places[1],
                        between = {block, 0, slot * chunk_bytes};
        to.offset += at;
        from.offset += at;
        rc = leg_add(plan, index, source, &between, &from, size_bytes, err);
        if (!rc)
            rc = leg_add(plan, index, target, &to, &between, size_bytes, err);
    }
    return rc;
}

/* The source's side pushes, since posted writes travel better than reads; a GPU's engine before the CPU. */
static int copy_plan(struct bw_plan *plan, uint32_t index, struct bw_err *err)
{
    const struct bw_call *call = &plan->graph->calls.data[index];
    const struct bw_place *target = &call->places[0], *source = &call->places[1];
    struct bw_hcq_device *candidates[2] = {place_owner(plan, source, call), place_owner(plan, target, call)};
    if (device_is_cpu(candidates[0]) && !device_is_cpu(candidates[1])) {
        candidates[0] = place_owner(plan, target, call);
        candidates[1] = place_owner(plan, source, call);
    }
    for (int i = 0; i < 2; i++) {
        if (candidates[i]->queue_count && place_reachable(plan, target, call, candidates[i]) &&
            place_reachable(plan, source, call, candidates[i]))
            return leg_add(plan, index, candidates[i], target, source, call->size_bytes, err);
    }
    return bounce_plan(plan, index, place_owner(plan, source, call), place_owner(plan, target, call), err);
}

bool bw_plan_can_wait(const struct bw_plan *plan, uint32_t consumer, uint32_t producer)
{
    struct bw_hcq_device *waiter = plan->devices.data[plan->queues.data[consumer].device].hcq;
    struct bw_hcq_device *writer = plan->devices.data[plan->queues.data[producer].device].hcq;
    uint64_t address;
    return waiter->device->caps.device_wait && bw_block_reach(writer->signals, waiter, &address, NULL) == 0;
}

int bw_plan_make(struct bw_graph *graph, struct bw_plan *plan, struct bw_err *err)
{
    *plan = (struct bw_plan){.graph = graph};
    plan->inputs = calloc(graph->input_count ? graph->input_count : 1, sizeof *plan->inputs);
    int rc = plan->inputs ? 0 : no_memory(err);
    for (uint32_t i = 0; i < graph->calls.count && !rc; i++)
        rc = graph->calls.data[i].kernel ? kernel_plan(plan, i, err) : copy_plan(plan, i, err);
    if (!rc)
        rc = bw_hazards_find(plan, err);
    if (rc)
        bw_plan_free(plan);
    return rc;
}

void bw_plan_free(struct bw_plan *plan)
{
    for (size_t i = 0; i < plan->staging.count; i++)
        bw_block_release(plan->staging.data[i]);
    bw_vec_free(&plan->staging);
    bw_vec_free(&plan->devices);
    bw_vec_free(&plan->queues);
    bw_vec_free(&plan->operations);
    bw_vec_free(&plan->touches);
    bw_vec_free(&plan->waits);
    free(plan->inputs);
    plan->inputs = NULL;
}
