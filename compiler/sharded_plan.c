/* Plans of sharded tensors: each stage compiled for each rank, from the last to the first, since what a stage
 * has to give is known once those after it are compiled; then one graph of all kernels and links. */
#include <errno.h>
#include <string.h>

#include <bellwire/graph.h>

#include "compiler/plan.h"
#include "compiler/sharded.h"
#include "compiler/tensor_internal.h"

/* By rank: where a tensor lies. */
struct spread {
    struct bw_range of[BW_SHARDED_RANKS_MAX];
};

struct stage {
    struct bw_plan *parts[BW_SHARDED_RANKS_MAX]; /* NULL: nothing needs the stage */
};

/* A whole tensor of the caller. */
struct whole {
    struct bw_sharded_value value;
    uint32_t stage, number; /* output: of the stage's plans; input: the caller's */
    struct spread at;
};

struct link {
    bool needed;
    uint32_t number; /* output of the stage that it comes from */
    struct bw_collective *collective;
    struct bw_buffer *unread[BW_SHARDED_RANKS_MAX]; /* where a rank does not need what others do */
};

struct bw_sharded_plan {
    struct bw_device *devices[BW_SHARDED_RANKS_MAX];
    uint32_t device_count, output_count;
    uint64_t scratch_bytes;
    char *scratch; /* one rank's part of one tensor */
    struct stage *stages;
    uint32_t stage_count;
    struct link *links;
    uint32_t link_count;
    struct whole *outputs;
    BW_VEC(struct whole) inputs;
    struct bw_linked_graph *linked;
    struct bw_sharded_stats stats;
};

/* ---- stages ---- */

/* What one stage has to give, by rank. */
struct wanted {
    bw_tensor *of[BW_SHARDED_RANKS_MAX];
    uint32_t count;
};

static uint32_t want(struct wanted *wanted, const struct bw_locals *locals, uint32_t device_count)
{
    for (uint32_t rank = 0; rank < device_count; rank++)
        wanted->of[rank][wanted->count] = locals->of[rank];
    return wanted->count++;
}

static bool link_is_needed(const struct bw_sharded_plan *plan, const struct bw_sharded_link *link)
{
    bool needed = false;
    for (uint32_t rank = 0; rank < plan->device_count; rank++) {
        const struct bw_plan *part = plan->stages[link->to_stage].parts[rank];
        needed |= part && bw_plan_part_input(part, link->number).size_bytes;
    }
    return needed;
}

static void stage_want(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, uint32_t stage,
                       struct wanted *wanted)
{
    for (uint32_t i = 0; i < plan->output_count; i++)
        if (plan->outputs[i].value.stage == stage)
            plan->outputs[i].number = want(wanted, &plan->outputs[i].value.locals, plan->device_count);
    for (uint32_t i = 0; i < plan->link_count; i++) {
        const struct bw_sharded_link *link = &g->links.data[i];
        if (link->from_stage != stage || !link_is_needed(plan, link))
            continue;
        plan->links[i].needed = true;
        plan->links[i].number = want(wanted, &link->sent, plan->device_count);
    }
}

static int stage_make(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, uint32_t stage,
                      struct bw_err *err)
{
    struct wanted wanted = {.count = 0};
    size_t most = plan->output_count + plan->link_count + 1;
    bw_tensor *all = calloc(most * plan->device_count, sizeof *all);
    if (!all)
        return bw_fail(err, -ENOMEM, "sharded", "stage %u", stage);
    for (uint32_t rank = 0; rank < plan->device_count; rank++)
        wanted.of[rank] = all + rank * most;
    stage_want(plan, g, stage, &wanted);
    int rc = 0;
    for (uint32_t rank = 0; rank < plan->device_count && wanted.count && !rc; rank++) {
        struct bw_plan_stats stats;
        rc = bw_plan_part_create(g->stages.data[stage].graphs[rank], plan->devices[rank], wanted.of[rank],
                                 wanted.count, &plan->stages[stage].parts[rank], err);
        if (rc)
            bw_err_prefix(err, "rank %u: ", rank);
        else
            bw_plan_stats(plan->stages[stage].parts[rank], &stats);
        plan->stats.kernels += rc ? 0 : stats.kernels;
    }
    free(all);
    return rc;
}

/* ---- links ---- */

static uint64_t input_bytes(const struct bw_tensor_graph *g, uint32_t number)
{
    const struct bw_tensor_buffer *buffer = &g->buffers.data[g->inputs.data[number]];
    return (uint64_t)bw_shape_elements(&buffer->shape) * bw_dtype_bytes(buffer->dtype);
}

static int link_ranges(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, uint32_t number,
                       struct spread *send, struct spread *receive, struct bw_err *err)
{
    const struct bw_sharded_link *link = &g->links.data[number];
    int rc = 0;
    for (uint32_t rank = 0; rank < plan->device_count && !rc; rank++) {
        struct bw_buffer **unread = &plan->links[number].unread[rank];
        send->of[rank] =
            bw_plan_part_output(plan->stages[link->from_stage].parts[rank], plan->links[number].number);
        receive->of[rank] = bw_plan_part_input(plan->stages[link->to_stage].parts[rank], link->number);
        if (receive->of[rank].size_bytes)
            continue;
        uint64_t size_bytes = input_bytes(g->stages.data[link->to_stage].graphs[rank], link->number);
        rc = bw_buffer_create(plan->devices[rank], size_bytes, BW_BUFFER_DEVICE, unread, err);
        receive->of[rank] = (struct bw_range){.buffer = *unread, .size_bytes = size_bytes};
    }
    return rc;
}

static int link_add(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, uint32_t number,
                    struct bw_graph *graph, struct bw_err *err)
{
    const struct bw_sharded_link *link = &g->links.data[number];
    struct bw_copy_lane lanes[BW_SHARDED_RANKS_MAX];
    struct spread send, receive;
    int rc = link_ranges(plan, g, number, &send, &receive, err);
    if (rc)
        return rc;
    if (!link->copies) {
        struct bw_collective **collective = &plan->links[number].collective;
        rc = bw_collective_create(plan->devices, plan->device_count, &link->options, collective, err);
        plan->stats.collectives++;
        return rc ? rc : bw_collective_add(*collective, graph, send.of, receive.of, err);
    }
    for (uint32_t rank = 0; rank < plan->device_count; rank++)
        lanes[rank] = (struct bw_copy_lane){plan->devices[rank], receive.of[rank], send.of[rank]};
    return bw_graph_copy_lanes(graph, lanes, plan->device_count, err);
}

static int graph_fill(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, struct bw_graph *graph,
                      struct bw_err *err)
{
    int rc = 0;
    for (uint32_t stage = 0; stage < plan->stage_count && !rc; stage++) {
        for (uint32_t rank = 0; rank < plan->device_count && !rc; rank++)
            if (plan->stages[stage].parts[rank])
                rc = bw_plan_part_add(plan->stages[stage].parts[rank], graph, err);
        for (uint32_t i = 0; i < plan->link_count && !rc; i++)
            if (plan->links[i].needed && g->links.data[i].from_stage == stage)
                rc = link_add(plan, g, i, graph, err);
    }
    return rc;
}

static int graph_link(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, struct bw_err *err)
{
    struct bw_link_options options = {.size = sizeof options, .instances = 1};
    struct bw_graph *graph;
    int rc = bw_graph_create(bw_device_ctx(plan->devices[0]), &graph, err);
    if (rc)
        return rc;
    rc = graph_fill(plan, g, graph, err);
    if (!rc)
        rc = bw_graph_link(graph, &options, &plan->linked, err);
    bw_graph_destroy(graph);
    return rc;
}

/* ---- what the caller gives and takes ---- */

static void scratch_note(struct bw_sharded_plan *plan, const struct bw_sharded_value *value)
{
    struct bw_sharded_rows rows = bw_sharded_rows_of(value, 0, plan->device_count);
    uint64_t size_bytes = rows.count * rows.part_bytes;
    plan->scratch_bytes = size_bytes > plan->scratch_bytes ? size_bytes : plan->scratch_bytes;
}

static int inputs_find(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, struct bw_err *err)
{
    for (size_t i = 0; i < g->feeds.count; i++) {
        const struct bw_sharded_feed *feed = &g->feeds.data[i];
        const struct bw_sharded_source *source = &g->sources.data[feed->source];
        struct whole input = {
            .value = g->values.data[source->value], .stage = feed->stage, .number = source->input};
        for (uint32_t rank = 0; rank < plan->device_count; rank++)
            if (plan->stages[feed->stage].parts[rank])
                input.at.of[rank] = bw_plan_part_input(plan->stages[feed->stage].parts[rank], feed->number);
        scratch_note(plan, &input.value);
        if (bw_vec_push(&plan->inputs, input))
            return bw_fail(err, -ENOMEM, "sharded", "%zu inputs", g->feeds.count);
    }
    return 0;
}

static int scratch_make(struct bw_sharded_plan *plan, struct bw_err *err)
{
    for (uint32_t i = 0; i < plan->output_count; i++) {
        struct whole *output = &plan->outputs[i];
        scratch_note(plan, &output->value);
        for (uint32_t rank = 0; rank < plan->device_count; rank++)
            output->at.of[rank] =
                bw_plan_part_output(plan->stages[output->value.stage].parts[rank], output->number);
    }
    plan->scratch = malloc(plan->scratch_bytes + 1);
    return plan->scratch
               ? 0
               : bw_fail(err, -ENOMEM, "sharded", "%llu bytes", (unsigned long long)plan->scratch_bytes);
}

/* One rank's part of the caller's tensor. */
static int part_write(struct bw_sharded_plan *plan, const struct whole *input, uint32_t rank,
                      const char *data, struct bw_err *err)
{
    struct bw_sharded_rows rows = bw_sharded_rows_of(&input->value, rank, plan->device_count);
    const struct bw_range *range = &input->at.of[rank];
    if (!range->size_bytes)
        return 0;
    if (rows.count == 1)
        return bw_buffer_write(range->buffer, range->offset, data + rows.offset, rows.part_bytes, err);
    for (uint64_t i = 0; i < rows.count; i++)
        memcpy(plan->scratch + i * rows.part_bytes, data + i * rows.whole_bytes + rows.offset,
               rows.part_bytes);
    return bw_buffer_write(range->buffer, range->offset, plan->scratch, rows.count * rows.part_bytes, err);
}

static int part_read(struct bw_sharded_plan *plan, const struct whole *output, uint32_t rank, char *data,
                     struct bw_err *err)
{
    struct bw_sharded_rows rows = bw_sharded_rows_of(&output->value, rank, plan->device_count);
    const struct bw_range *range = &output->at.of[rank];
    if (rows.count == 1)
        return bw_buffer_read(range->buffer, range->offset, data + rows.offset, rows.part_bytes, err);
    int rc = bw_buffer_read(range->buffer, range->offset, plan->scratch, rows.count * rows.part_bytes, err);
    for (uint64_t i = 0; i < rows.count && !rc; i++)
        memcpy(data + i * rows.whole_bytes + rows.offset, plan->scratch + i * rows.part_bytes,
               rows.part_bytes);
    return rc;
}

/* ---- plans ---- */

static int plan_make(struct bw_sharded_plan *plan, const struct bw_sharded_graph *g, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t stage = plan->stage_count; stage-- > 0 && !rc;)
        rc = stage_make(plan, g, stage, err);
    if (!rc)
        rc = inputs_find(plan, g, err);
    if (!rc)
        rc = scratch_make(plan, err);
    return rc ? rc : graph_link(plan, g, err);
}

int bw_sharded_plan_create(struct bw_sharded_graph *g, const bw_sharded *outputs, uint32_t output_count,
                           struct bw_sharded_plan **out, struct bw_err *err)
{
    for (uint32_t i = 0; i < output_count; i++)
        (void)bw_sharded_value_of(g, outputs[i], "plan");
    int rc = bw_sharded_graph_error(g, err);
    if (rc)
        return rc;
    if (!output_count)
        return bw_fail(err, -EINVAL, "sharded", "a plan with no output");
    struct bw_sharded_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return bw_fail(err, -ENOMEM, "sharded", "new plan");
    memcpy(plan->devices, g->devices, g->device_count * sizeof *plan->devices);
    plan->device_count = g->device_count;
    plan->output_count = output_count;
    plan->stage_count = (uint32_t)g->stages.count;
    plan->link_count = (uint32_t)g->links.count;
    plan->stages = calloc(g->stages.count + 1, sizeof *plan->stages);
    plan->links = calloc(g->links.count + 1, sizeof *plan->links);
    plan->outputs = calloc(output_count, sizeof *plan->outputs);
    rc = plan->stages && plan->links && plan->outputs ? 0 : bw_fail(err, -ENOMEM, "sharded", "new plan");
    for (uint32_t i = 0; i < output_count && !rc; i++)
        plan->outputs[i].value = g->values.data[outputs[i].id - 1];
    if (!rc)
        rc = plan_make(plan, g, err);
    if (rc)
        bw_sharded_plan_destroy(plan);
    else
        *out = plan;
    return rc;
}

void bw_sharded_plan_destroy(struct bw_sharded_plan *plan)
{
    if (!plan)
        return;
    bw_linked_graph_destroy(plan->linked);
    for (uint32_t i = 0; plan->links && i < plan->link_count; i++) {
        bw_collective_destroy(plan->links[i].collective);
        for (uint32_t rank = 0; rank < plan->device_count; rank++)
            bw_buffer_destroy(plan->links[i].unread[rank]);
    }
    for (uint32_t i = 0; plan->stages && i < plan->stage_count; i++)
        for (uint32_t rank = 0; rank < plan->device_count; rank++)
            bw_plan_destroy(plan->stages[i].parts[rank]);
    bw_vec_free(&plan->inputs);
    free(plan->stages);
    free(plan->links);
    free(plan->outputs);
    free(plan->scratch);
    free(plan);
}

int bw_sharded_plan_run(struct bw_sharded_plan *plan, const void *const *inputs, void *const *outputs,
                        struct bw_err *err)
{
    struct bw_replay nothing = {0};
    uint64_t ticket;
    int rc = 0;
    for (size_t i = 0; i < plan->inputs.count && !rc; i++)
        for (uint32_t rank = 0; rank < plan->device_count && !rc; rank++)
            rc = part_write(plan, &plan->inputs.data[i], rank, inputs[plan->inputs.data[i].number], err);
    if (!rc)
        rc = bw_linked_graph_replay(plan->linked, &nothing, &ticket, err);
    if (!rc)
        rc = bw_linked_graph_wait(plan->linked, ticket, err);
    for (uint32_t i = 0; i < plan->output_count && !rc; i++) {
        uint32_t holders = plan->outputs[i].value.axis >= 0 ? plan->device_count : 1;
        for (uint32_t rank = 0; rank < holders && !rc; rank++)
            rc = part_read(plan, &plan->outputs[i], rank, outputs[i], err);
    }
    return rc;
}

void bw_sharded_plan_stats(const struct bw_sharded_plan *plan, struct bw_sharded_stats *stats)
{
    *stats = plan->stats;
}
