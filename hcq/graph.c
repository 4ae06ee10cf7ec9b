/* Building graphs: calls are checked and copied. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "hcq/plan.h"

enum {
    LAUNCH_ITEMS_MAX = 0xffffffff
}; /* per dimension: packets and hidden arguments count work-items in 32 bits */

bool bw_call_range_next(const struct bw_call *call, uint32_t *at, struct bw_call_range *range)
{
    uint32_t count = call->kernel ? call->launch.argument_count : 2;
    while (*at < count) {
        uint32_t i = (*at)++;
        uint64_t size_bytes = call->size_bytes;
        uint32_t access = i == 0 ? BW_ACCESS_WRITE : BW_ACCESS_READ;
        if (call->kernel) {
            const struct bw_argument *argument = &call->launch.arguments[i];
            if (argument->source != BW_ARG_RANGE)
                continue;
            size_bytes = argument->access ? argument->range.size_bytes : 0;
            access = argument->access ? argument->access : BW_ACCESS_READ;
        }
        *range = (struct bw_call_range){&call->places[i], size_bytes, access};
        return true;
    }
    return false;
}

int bw_graph_create(struct bw_ctx *ctx, struct bw_graph **out, struct bw_err *err)
{
    struct bw_graph *graph = calloc(1, sizeof *graph);
    if (!graph)
        return bw_fail(err, -ENOMEM, "graph", "graph");
    graph->ctx = ctx;
    *out = graph;
    return 0;
}

void bw_graph_destroy(struct bw_graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->held.count; i++)
        bw_block_release(graph->held.data[i]);
    bw_vec_free(&graph->held);
    bw_vec_free(&graph->calls);
    bw_vec_free(&graph->input_devices);
    bw_arena_free(&graph->arena);
    free(graph);
}

static int no_memory(struct bw_err *err, size_t call)
{
    return bw_fail(err, -ENOMEM, "graph", "call %zu", call);
}

int bw_graph_input(struct bw_graph *graph, uint32_t input, struct bw_device *device, struct bw_err *err)
{
    if (input >= BW_GRAPH_INPUTS_MAX) {
        bw_fail(err, -EINVAL, "graph", "input %u", input);
        bw_err_expected(err, "a number below %d", BW_GRAPH_INPUTS_MAX);
        return -EINVAL;
    }
    if (!device || device->ctx != graph->ctx)
        return bw_fail(err, -EINVAL, "graph", "input %u without a device of this context", input);
    if (input >= graph->input_devices.count) {
        size_t more = input + 1 - graph->input_devices.count;
        if (bw_vec_reserve(&graph->input_devices, more))
            return no_memory(err, graph->calls.count);
        memset(graph->input_devices.data + graph->input_devices.count, 0,
               more * sizeof *graph->input_devices.data);
        graph->input_devices.count += more;
    }
    struct bw_device **said = &graph->input_devices.data[input];
    if (*said && *said != device) {
        bw_fail(err, -EBUSY, "graph", "input %u is memory of %s", input, (*said)->info.name);
        bw_err_observed(err, "%s", device->info.name);
        return -EBUSY;
    }
    *said = device;
    return 0;
}

/* What a range is for its call: a text, or an argument of a kernel. */
struct role {
    const char *what;
    const struct bw_kernel *kernel;
    uint32_t index;
};

struct role_text {
    char text[160];
};

static struct role_text role_print(struct role role)
{
    struct role_text out;
    if (!role.kernel) {
        bw_text_fit(out.text, sizeof out.text, "%s", role.what);
        return out;
    }
    const char *name = role.kernel->info.arguments[role.index].name;
    bw_text_fit(out.text, sizeof out.text, "kernel %s: argument %u%s%s", role.kernel->info.name, role.index,
                name[0] ? " " : "", name);
    return out;
}

/* Checks a range and notes what it uses: the buffer's block, or the input's number. */
static int range_take(struct bw_graph *graph, const struct bw_range *range, struct role role,
                      struct bw_place *place, struct bw_err *err)
{
    *place = (struct bw_place){NULL, range->input, range->offset};
    if (!range->buffer) {
        if (range->input >= BW_GRAPH_INPUTS_MAX || range->offset > UINT64_MAX - range->size_bytes) {
            bw_fail(err, -EINVAL, "graph", "call %zu, %s: input %u", graph->calls.count,
                    role_print(role).text, range->input);
            bw_err_expected(err, "a number below %d", BW_GRAPH_INPUTS_MAX);
            return -EINVAL;
        }
        if (range->input >= graph->input_count)
            graph->input_count = range->input + 1;
        return 0;
    }
    const struct bw_buffer *buffer = range->buffer;
    if (buffer->block->owner->ctx != graph->ctx)
        return bw_fail(err, -EINVAL, "graph", "call %zu, %s: a buffer of another context", graph->calls.count,
                       role_print(role).text);
    if (range->offset > buffer->size_bytes || range->size_bytes > buffer->size_bytes - range->offset) {
        bw_fail(err, -ERANGE, "graph", "call %zu, %s: %llu bytes at offset %llu", graph->calls.count,
                role_print(role).text, (unsigned long long)range->size_bytes,
                (unsigned long long)range->offset);
        bw_err_expected(err, "inside a buffer of %llu bytes", (unsigned long long)buffer->size_bytes);
        return -ERANGE;
    }
    place->block = buffer->block;
    place->offset += buffer->offset;
    bw_block_hold(buffer->block);
    if (bw_vec_push(&graph->held, buffer->block)) {
        bw_block_release(buffer->block);
        return no_memory(err, graph->calls.count);
    }
    return 0;
}

static int variable_take(struct bw_graph *graph, uint32_t variable, struct bw_err *err)
{
    if (variable >= BW_GRAPH_VARIABLES_MAX) {
        bw_fail(err, -EINVAL, "graph", "call %zu: variable %u", graph->calls.count, variable);
        bw_err_expected(err, "a number below %d", BW_GRAPH_VARIABLES_MAX);
        return -EINVAL;
    }
    if (variable >= graph->variable_count)
        graph->variable_count = variable + 1;
    return 0;
}

static int argument_refuse(struct bw_graph *graph, const struct bw_kernel *kernel, uint32_t index,
                           const char *expected, struct bw_err *err)
{
    const struct bw_argument_info *info = &kernel->info.arguments[index];
    bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: argument %u%s%s", graph->calls.count,
            kernel->info.name, index, info->name[0] ? " " : "", info->name);
    bw_err_expected(err, "%s", expected);
    return -EINVAL;
}

static int argument_take(struct bw_graph *graph, const struct bw_kernel *kernel, uint32_t index,
                         const struct bw_argument *argument, struct bw_place *place, struct bw_err *err)
{
    const struct bw_argument_info *info = &kernel->info.arguments[index];
    bool buffer = info->kind == BW_ARGUMENT_BUFFER;
    switch (argument->source) {
    case BW_ARG_RANGE:
        if (!buffer)
            return argument_refuse(graph, kernel, index, "a value", err);
        if (argument->access & ~(uint32_t)(BW_ACCESS_READ | BW_ACCESS_WRITE))
            return argument_refuse(graph, kernel, index, "access bits of enum bw_access", err);
        return range_take(graph, &argument->range, (struct role){NULL, kernel, index}, place, err);
    case BW_ARG_VALUE:
        if (buffer)
            return argument_refuse(graph, kernel, index, "a range", err);
        if (info->size_bytes > sizeof argument->value)
            return argument_refuse(graph, kernel, index, "a value of at most 8 bytes", err);
        return 0;
    case BW_ARG_VARIABLE:
        if (buffer || (info->size_bytes != 4 && info->size_bytes != 8) || info->offset % 4)
            return argument_refuse(graph, kernel, index,
                                   "a value of 4 or 8 bytes, since variables have 32 bits", err);
        return variable_take(graph, argument->variable, err);
    default:
        return argument_refuse(graph, kernel, index, "a source of enum bw_argument_source", err);
    }
}

/* Group sizes against the kernel's and the device's limit, and work-items per dimension against 32 bits. */
static int geometry_check(const struct bw_graph *graph, const struct bw_kernel *kernel,
                          const struct bw_launch *launch, struct bw_err *err)
{
    uint64_t limit = kernel->info.group_size_max ? kernel->info.group_size_max
                                                 : kernel->program->device->info.group_size_max;
    uint64_t items = 1;
    for (int i = 0; i < 3; i++) {
        const struct bw_dimension *groups = &launch->group_count[i];
        if (launch->group_size[i] == 0)
            return bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: group size 0", graph->calls.count,
                           kernel->info.name);
        items *= launch->group_size[i];
        if (items > UINT32_MAX || (limit && items > limit)) {
            bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: work-items per group", graph->calls.count,
                    kernel->info.name);
            bw_err_expected(err, "at most %llu", (unsigned long long)(limit ? limit : UINT32_MAX));
            bw_err_observed(err, "%u x %u x %u", launch->group_size[0], launch->group_size[1],
                            launch->group_size[2]);
            return -EINVAL;
        }
        if (!groups->is_variable && (uint64_t)groups->value * launch->group_size[i] > LAUNCH_ITEMS_MAX) {
            bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: work-items in dimension %d",
                    graph->calls.count, kernel->info.name, i);
            bw_err_expected(err, "at most 2^32-1");
            bw_err_observed(err, "%u groups of %u", groups->value, launch->group_size[i]);
            return -EINVAL;
        }
    }
    return 0;
}

/* A launch without groups does nothing: hardware need not be asked how it takes one. */
static bool launch_is_empty(const struct bw_launch *launch)
{
    for (int i = 0; i < 3; i++) {
        if (!launch->group_count[i].is_variable && launch->group_count[i].value == 0)
            return true;
    }
    return false;
}

static int call_add(struct bw_graph *graph, const struct bw_call *call, struct bw_err *err)
{
    return bw_vec_push(&graph->calls, *call) ? no_memory(err, graph->calls.count) : 0;
}

int bw_graph_kernel(struct bw_graph *graph, struct bw_kernel *kernel, const struct bw_launch *launch,
                    struct bw_err *err)
{
    struct bw_call call = {.device = kernel->program->device, .kernel = kernel, .launch = *launch};
    if (call.device->ctx != graph->ctx)
        return bw_fail(err, -EINVAL, "graph", "kernel %s of another context", kernel->info.name);
    if (kernel->info.undescribed_bytes) {
        bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: %u bytes of arguments that nobody described",
                graph->calls.count, kernel->info.name, kernel->info.undescribed_bytes);
        bw_err_hint(err,
                    "bw_kernel_describe says how they lie; in a code object, .amdgpu_metadata with .args");
        return -EINVAL;
    }
    if (launch->argument_count != kernel->info.argument_count) {
        bw_fail(err, -EINVAL, "graph", "call %zu, kernel %s: arguments", graph->calls.count,
                kernel->info.name);
        bw_err_expected(err, "%u", kernel->info.argument_count);
        bw_err_observed(err, "%u", launch->argument_count);
        return -EINVAL;
    }
    call.launch.arguments =
        bw_arena_copy(&graph->arena, launch->arguments, launch->argument_count * sizeof *launch->arguments);
    call.places = bw_arena_alloc(&graph->arena, launch->argument_count * sizeof *call.places);
    if (!call.launch.arguments || !call.places)
        return no_memory(err, graph->calls.count);
    int rc = geometry_check(graph, kernel, launch, err);
    for (uint32_t i = 0; i < launch->argument_count && !rc; i++)
        rc = argument_take(graph, kernel, i, &launch->arguments[i], &call.places[i], err);
    for (int i = 0; i < 3 && !rc; i++) {
        if (launch->group_count[i].is_variable)
            rc = variable_take(graph, launch->group_count[i].value, err);
    }
    return rc || launch_is_empty(launch) ? rc : call_add(graph, &call, err);
}

static bool places_overlap(const struct bw_place *a, const struct bw_place *b, uint64_t size_bytes)
{
    if (a->block != b->block || (!a->block && a->input != b->input))
        return false;
    return a->offset < b->offset + size_bytes && b->offset < a->offset + size_bytes;
}

int bw_graph_copy(struct bw_graph *graph, struct bw_device *device, struct bw_range target,
                  struct bw_range source, struct bw_err *err)
{
    struct bw_call call = {.device = device, .size_bytes = target.size_bytes};
    if (target.size_bytes != source.size_bytes) {
        bw_fail(err, -EINVAL, "graph", "call %zu: copy", graph->calls.count);
        bw_err_expected(err, "target and source of one size");
        bw_err_observed(err, "%llu and %llu bytes", (unsigned long long)target.size_bytes,
                        (unsigned long long)source.size_bytes);
        return -EINVAL;
    }
    if (!device || device->ctx != graph->ctx)
        return bw_fail(err, -EINVAL, "graph", "call %zu: copy without a device of this context",
                       graph->calls.count);
    call.places = bw_arena_alloc(&graph->arena, 2 * sizeof *call.places);
    if (!call.places)
        return no_memory(err, graph->calls.count);
    int rc = range_take(graph, &target, (struct role){.what = "copy target"}, &call.places[0], err);
    if (!rc)
        rc = range_take(graph, &source, (struct role){.what = "copy source"}, &call.places[1], err);
    if (rc || target.size_bytes == 0)
        return rc;
    if (places_overlap(&call.places[0], &call.places[1], call.size_bytes))
        return bw_fail(err, -EINVAL, "graph", "call %zu: copy between overlapping ranges",
                       graph->calls.count);
    return call_add(graph, &call, err);
}
