/* Plans: a tensor graph compiled for one device and kept ready to replay. Contract in
 * include/bellwire/tensor.h.
 *
 * Memory is three buffers: constants (and what depends on constants only, computed here once), an arena of
 * inputs, outputs and intermediates, and, where the CPU does not see device memory, a staging buffer that
 * copies of the graph fill and read. */
#include "compiler/plan.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bellwire/graph.h>

#include "base/bits.h"
#include "compiler/kernel.h"
#include "compiler/tensor_graph.h"

enum { LABEL_BYTES_MAX = 80 }; /* of a name in an error, which has other things to say */

/* Where a schedule's buffer lies. */
struct place {
    struct bw_buffer *buffer;
    uint64_t offset, size_bytes;
};

struct bw_plan {
    struct bw_device *device;
    bool profile, encode_only; /* as struct bw_plan_options has them */
    bool part;                 /* of something larger: no graph of its own */
    bool unified;              /* the CPU reads and writes the arena itself */
    struct bw_schedule *schedule;
    struct bw_tensor_buffer *tensors; /* copies of the graph's rows: it may be gone when the plan runs */
    uint32_t tensor_count;
    struct bw_compile_job *jobs;
    uint32_t *job_of, job_count;
    struct bw_program **programs; /* by job */
    struct bw_kernel **kernels;
    struct place *places; /* by buffer of the schedule */
    struct bw_buffer *constants, *arena, *staging;
    uint64_t *input_staging, *output_staging; /* offsets */
    uint32_t *input_buffer;                   /* input number -> buffer of the schedule + 1; 0: not used */
    uint32_t input_count;
    struct bw_linked_graph *linked;
    struct bw_plan_stats stats;
};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t buffer_bytes(const struct bw_schedule_buffer *buffer)
{
    return (uint64_t)buffer->elements * bw_dtype_bytes(buffer->dtype);
}

static const struct bw_tensor_buffer *tensor_of(const struct bw_plan *plan, uint32_t buffer)
{
    const struct bw_schedule_buffer *row = &plan->schedule->buffers.data[buffer];
    return row->kind == BW_SCHEDULE_TENSOR ? &plan->tensors[row->tensor_buffer] : NULL;
}

static bool is_input(const struct bw_plan *plan, uint32_t buffer)
{
    const struct bw_tensor_buffer *tensor = tensor_of(plan, buffer);
    return tensor && tensor->kind == BW_TENSOR_INPUT;
}

static bool is_constant(const struct bw_plan *plan, uint32_t buffer)
{
    const struct bw_tensor_buffer *tensor = tensor_of(plan, buffer);
    return tensor ? tensor->kind == BW_TENSOR_CONSTANT : plan->schedule->buffers.data[buffer].once;
}

/* Lifetimes over the kernels of each run; inputs are there before, outputs after. UINT32_MAX in first: not
 * touched. */
static int find_lifetimes(const struct bw_plan *plan, struct bw_plan_lifetime *lifetimes)
{
    const struct bw_schedule *s = plan->schedule;
    for (size_t i = 0; i < s->buffers.count; i++)
        lifetimes[i] = (struct bw_plan_lifetime){buffer_bytes(&s->buffers.data[i]), UINT32_MAX, 0, 0};
    for (size_t i = 0; i < s->kernels.count; i++)
        for (uint32_t k = 0; k < s->kernels.data[i].argument_count; k++) {
            struct bw_plan_lifetime *lifetime = &lifetimes[s->kernels.data[i].arguments[k]];
            lifetime->first = lifetime->first < i ? lifetime->first : (uint32_t)i;
            lifetime->last = (uint32_t)i;
        }
    for (size_t i = 0; i < s->buffers.count; i++) {
        if (is_input(plan, (uint32_t)i) && lifetimes[i].first != UINT32_MAX)
            lifetimes[i].first = 0;
        if (s->buffers.data[i].output)
            lifetimes[i].last = UINT32_MAX;
        if (s->buffers.data[i].output && plan->part) /* whoever reads it reads memory, of inputs too */
            lifetimes[i].first = lifetimes[i].first == UINT32_MAX ? 0 : lifetimes[i].first;
    }
    return 0;
}

static int buffer_create(struct bw_plan *plan, uint64_t size_bytes, bool host, struct bw_buffer **buffer,
                         struct bw_err *err)
{
    return bw_buffer_create(plan->device, size_bytes ? size_bytes : BW_PLAN_ALIGN_BYTES,
                            host ? BW_BUFFER_HOST : BW_BUFFER_DEVICE, buffer, err);
}

static int label_length(uint64_t bytes)
{
    return bytes < LABEL_BYTES_MAX ? (int)bytes : LABEL_BYTES_MAX;
}

/* What takes most of the memory that could not be had. */
static void name_largest(const struct bw_plan *plan, const struct bw_tensor_graph *g, bool constants,
                         struct bw_err *err)
{
    const struct bw_schedule_buffer *largest = NULL;
    for (size_t i = 0; i < plan->schedule->buffers.count; i++) {
        const struct bw_schedule_buffer *buffer = &plan->schedule->buffers.data[i];
        if (is_constant(plan, (uint32_t)i) == constants && plan->places[i].size_bytes &&
            (!largest || buffer_bytes(buffer) > buffer_bytes(largest)))
            largest = buffer;
    }
    const struct bw_tensor_label *label = largest ? bw_tensor_graph_label_of(g, largest->node) : NULL;
    if (label)
        bw_err_prefix(err, "%s, with one of %lld elements of %s for node '%.*s' (%.*s): ",
                      constants ? "constants" : "tensors", (long long)largest->elements,
                      bw_dtype_name(largest->dtype), label_length(label->name_bytes),
                      (const char *)label->name, label_length(label->op_type_bytes),
                      (const char *)label->op_type);
    else if (largest)
        bw_err_prefix(err, "%s, with one of %lld elements of %s: ", constants ? "constants" : "tensors",
                      (long long)largest->elements, bw_dtype_name(largest->dtype));
}

static int place_buffers(struct bw_plan *plan, const struct bw_tensor_graph *g, struct bw_err *err)
{
    size_t count = plan->schedule->buffers.count;
    struct bw_plan_lifetime *lifetimes = calloc(count + 1, sizeof *lifetimes),
                            *moving = calloc(count + 1, sizeof *moving);
    uint32_t *which = calloc(count + 1, sizeof *which), moving_count = 0;
    uint64_t constant_bytes = 0;
    plan->places = calloc(count + 1, sizeof *plan->places);
    int rc = lifetimes && moving && which && plan->places ? find_lifetimes(plan, lifetimes) : -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++) {
        if (lifetimes[i].first == UINT32_MAX)
            continue;
        plan->places[i].size_bytes = lifetimes[i].size_bytes;
        if (is_constant(plan, i)) {
            plan->places[i].offset = constant_bytes;
            constant_bytes += bw_align_up(lifetimes[i].size_bytes, BW_PLAN_ALIGN_BYTES);
            continue;
        }
        which[moving_count] = i;
        moving[moving_count++] = lifetimes[i];
    }
    uint64_t arena_bytes = rc ? 0 : bw_plan_place(moving, moving_count);
    rc = rc || arena_bytes == UINT64_MAX ? bw_fail(err, -ENOMEM, "plan", "%zu buffers", count) : 0;
    if (!rc && (rc = buffer_create(plan, constant_bytes, plan->unified, &plan->constants, err)))
        name_largest(plan, g, true, err);
    if (!rc && (rc = buffer_create(plan, arena_bytes, plan->unified, &plan->arena, err)))
        name_largest(plan, g, false, err);
    for (uint32_t i = 0; i < count && !rc; i++)
        plan->places[i].buffer = is_constant(plan, i) ? plan->constants : plan->arena;
    for (uint32_t i = 0; i < moving_count && !rc; i++)
        plan->places[which[i]].offset = moving[i].offset;
    plan->stats.constant_bytes = constant_bytes;
    plan->stats.buffer_bytes = arena_bytes;
    free(lifetimes);
    free(moving);
    free(which);
    return rc;
}

static int upload_constants(struct bw_plan *plan, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < plan->schedule->buffers.count && !rc; i++) {
        const struct bw_tensor_buffer *tensor = tensor_of(plan, i);
        const struct place *place = &plan->places[i];
        if (!tensor || tensor->kind != BW_TENSOR_CONSTANT || !place->size_bytes)
            continue;
        assert(tensor->size_bytes == place->size_bytes);
        if (!tensor->file)
            rc = bw_buffer_write(place->buffer, place->offset, tensor->data, place->size_bytes, err);
    }
    return rc;
}

static struct bw_range range_of(const struct bw_plan *plan, uint32_t buffer)
{
    const struct place *place = &plan->places[buffer];
    return (struct bw_range){
        .buffer = place->buffer, .offset = place->offset, .size_bytes = place->size_bytes};
}

static int replay(struct bw_linked_graph *linked, struct bw_err *err)
{
    struct bw_replay nothing = {0};
    uint64_t ticket;
    int rc = bw_linked_graph_replay(linked, &nothing, &ticket, err);
    return rc ? rc : bw_linked_graph_wait(linked, ticket, err);
}

static int add_file_copies(const struct bw_plan *plan, struct bw_graph *graph, uint32_t *count,
                           struct bw_err *err)
{
    int rc = 0;
    *count = 0;
    for (uint32_t i = 0; i < plan->schedule->buffers.count && !rc; i++) {
        const struct bw_tensor_buffer *tensor = tensor_of(plan, i);
        if (!tensor || !tensor->file || !plan->places[i].size_bytes)
            continue;
        struct bw_range file = {.buffer = tensor->file, .size_bytes = tensor->size_bytes};
        rc = bw_graph_copy(graph, plan->device, range_of(plan, i), file, err);
        *count += 1;
    }
    return rc;
}

/* Constants in files go from the disk to the device, all in one graph, so that reading one and copying
 * another overlap. */
static int load_files(struct bw_plan *plan, struct bw_err *err)
{
    struct bw_graph *graph;
    struct bw_linked_graph *linked = NULL;
    struct bw_link_options options = {.size = sizeof options, .instances = 1};
    uint32_t count;
    int rc = bw_graph_create(bw_device_ctx(plan->device), &graph, err);
    if (rc)
        return rc;
    rc = add_file_copies(plan, graph, &count, err);
    if (!rc && count)
        rc = bw_graph_link(graph, &options, &linked, err);
    bw_graph_destroy(graph);
    if (!rc && count)
        rc = replay(linked, err);
    bw_linked_graph_destroy(linked);
    return rc;
}

static int load_programs(struct bw_plan *plan, struct bw_err *err)
{
    plan->programs = calloc(plan->job_count + 1, sizeof *plan->programs);
    plan->kernels = calloc(plan->job_count + 1, sizeof *plan->kernels);
    int rc =
        plan->programs && plan->kernels ? 0 : bw_fail(err, -ENOMEM, "plan", "%u programs", plan->job_count);
    for (uint32_t i = 0; i < plan->job_count && !rc; i++) {
        const struct bw_compiled *compiled = &plan->jobs[i].compiled;
        rc = bw_program_load(plan->device, compiled->object.data, compiled->object.size_bytes,
                             &plan->programs[i], err);
        if (!rc)
            rc = bw_program_kernel(plan->programs[i], compiled->name, &plan->kernels[i], err);
    }
    return rc;
}

/* Of one argument: its buffer from where the kernel begins on. */
static struct bw_range argument_of(const struct bw_plan *plan, const struct bw_schedule_kernel *kernel,
                                   uint32_t argument)
{
    uint32_t buffer = kernel->arguments[argument];
    struct bw_range range = range_of(plan, buffer);
    uint64_t skipped = kernel->offsets ? (uint64_t)kernel->offsets[argument] *
                                             bw_dtype_bytes(plan->schedule->buffers.data[buffer].dtype)
                                       : 0;
    range.offset += skipped;
    range.size_bytes -= skipped;
    return range;
}

/* For a profile. */
static double launch_flops(const struct bw_plan *plan, const struct bw_schedule_kernel *kernel)
{
    return plan->profile ? bw_kernel_flops(plan->schedule->ir, kernel->sink) : 0;
}

static int add_launch(const struct bw_plan *plan, struct bw_graph *graph, uint32_t number, struct bw_err *err)
{
    const struct bw_schedule_kernel *kernel = &plan->schedule->kernels.data[number];
    const struct bw_compiled *compiled = &plan->jobs[plan->job_of[number]].compiled;
    struct bw_argument *arguments = calloc(kernel->argument_count + 1, sizeof *arguments);
    if (!arguments)
        return bw_fail(err, -ENOMEM, "plan", "%u arguments", kernel->argument_count);
    /* A parameter that simplification dropped at the end of the list is no argument any more. */
    uint32_t count =
        compiled->param_count < kernel->argument_count ? compiled->param_count : kernel->argument_count;
    for (uint32_t i = 0; i < count; i++)
        arguments[i] = (struct bw_argument){.source = BW_ARG_RANGE,
                                            .range = argument_of(plan, kernel, i),
                                            .access = i == 0 ? BW_ACCESS_WRITE : BW_ACCESS_READ};
    struct bw_launch launch = {.arguments = arguments,
                               .argument_count = count,
                               .flops = launch_flops(plan, kernel),
                               .group_size = {plan->unified ? 1 : compiled->item_count, 1, 1}};
    for (int d = 0; d < 3; d++)
        launch.group_count[d] = (struct bw_dimension){.value = compiled->group_count[d]};
    int rc = bw_graph_kernel(graph, plan->kernels[plan->job_of[number]], &launch, err);
    free(arguments);
    return rc;
}

static int add_launches(const struct bw_plan *plan, struct bw_graph *graph, bool once, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < plan->schedule->kernels.count && !rc; i++)
        if (plan->schedule->kernels.data[i].once == once)
            rc = add_launch(plan, graph, i, err);
    return rc;
}

/* What depends on constants only is computed now. */
static int run_once(struct bw_plan *plan, struct bw_err *err)
{
    bool any = false;
    for (size_t i = 0; i < plan->schedule->kernels.count; i++)
        any |= plan->schedule->kernels.data[i].once;
    if (!any)
        return 0;
    struct bw_graph *graph;
    struct bw_linked_graph *linked = NULL;
    struct bw_link_options options = {.size = sizeof options, .instances = 1};
    int rc = bw_graph_create(bw_device_ctx(plan->device), &graph, err);
    if (rc)
        return rc;
    rc = add_launches(plan, graph, true, err);
    if (!rc)
        rc = bw_graph_link(graph, &options, &linked, err);
    bw_graph_destroy(graph);
    if (!rc)
        rc = replay(linked, err);
    if (linked)
        bw_linked_graph_destroy(linked);
    return rc;
}

static uint32_t output_buffer(const struct bw_plan *plan, uint32_t output)
{
    return plan->schedule->outputs[output];
}

static int place_staging(struct bw_plan *plan, struct bw_err *err)
{
    uint64_t total = 0;
    plan->input_staging = calloc(plan->input_count + 1, sizeof *plan->input_staging);
    plan->output_staging = calloc(plan->schedule->output_count + 1, sizeof *plan->output_staging);
    if (!plan->input_staging || !plan->output_staging)
        return bw_fail(err, -ENOMEM, "plan", "%u inputs", plan->input_count);
    for (uint32_t i = 0; i < plan->input_count; i++) {
        plan->input_staging[i] = total;
        if (plan->input_buffer[i])
            total += bw_align_up(plan->places[plan->input_buffer[i] - 1].size_bytes, BW_PLAN_ALIGN_BYTES);
    }
    for (uint32_t i = 0; i < plan->schedule->output_count; i++) {
        plan->output_staging[i] = total;
        if (!tensor_of(plan, output_buffer(plan, i)))
            total += bw_align_up(plan->places[output_buffer(plan, i)].size_bytes, BW_PLAN_ALIGN_BYTES);
    }
    return plan->unified ? 0 : buffer_create(plan, total, true, &plan->staging, err);
}

static int add_copies(const struct bw_plan *plan, struct bw_graph *graph, bool outputs, struct bw_err *err)
{
    uint32_t count = outputs ? plan->schedule->output_count : plan->input_count;
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc && !plan->unified; i++) {
        uint32_t buffer = outputs ? output_buffer(plan, i) : plan->input_buffer[i] - 1;
        if (outputs ? tensor_of(plan, buffer) != NULL : !plan->input_buffer[i])
            continue;
        struct bw_range device = range_of(plan, buffer),
                        staging = {.buffer = plan->staging, .size_bytes = device.size_bytes};
        staging.offset = outputs ? plan->output_staging[i] : plan->input_staging[i];
        rc = outputs ? bw_graph_copy(graph, plan->device, staging, device, err)
                     : bw_graph_copy(graph, plan->device, device, staging, err);
    }
    return rc;
}

static int link_graph(struct bw_plan *plan, struct bw_err *err)
{
    struct bw_graph *graph;
    struct bw_link_options link = {.size = sizeof link, .instances = 1, .profile = plan->profile};
    int rc = bw_graph_create(bw_device_ctx(plan->device), &graph, err);
    if (rc)
        return rc;
    rc = add_copies(plan, graph, false, err);
    if (!rc)
        rc = add_launches(plan, graph, false, err);
    if (!rc)
        rc = add_copies(plan, graph, true, err);
    if (!rc)
        rc = bw_graph_link(graph, &link, &plan->linked, err);
    bw_graph_destroy(graph);
    return rc;
}

/* Ranges of files are the plan's own handles: the graph's go with it. */
static int hold_files(struct bw_plan *plan, size_t count, struct bw_err *err)
{
    int rc = 0;
    plan->tensor_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        struct bw_buffer *file = plan->tensors[i].file;
        plan->tensors[i].file = NULL;
        if (file && !rc)
            rc = bw_buffer_view(file, 0, bw_buffer_size(file), &plan->tensors[i].file, err);
    }
    return rc;
}

static void note_input(struct bw_plan *plan, uint32_t buffer)
{
    if (is_input(plan, buffer))
        plan->input_buffer[tensor_of(plan, buffer)->input_index] = buffer + 1;
}

static int find_inputs(struct bw_plan *plan, struct bw_tensor_graph *g, struct bw_err *err)
{
    plan->input_count = (uint32_t)g->inputs.count;
    plan->input_buffer = calloc(g->inputs.count + 1, sizeof *plan->input_buffer);
    plan->tensors = calloc(g->buffers.count + 1, sizeof *plan->tensors);
    if (!plan->input_buffer || !plan->tensors)
        return bw_fail(err, -ENOMEM, "plan", "%zu inputs", g->inputs.count);
    if (g->buffers.count)
        memcpy(plan->tensors, g->buffers.data, g->buffers.count * sizeof *plan->tensors);
    int rc = hold_files(plan, g->buffers.count, err);
    if (rc)
        return rc;
    for (size_t k = 0; k < plan->schedule->kernels.count; k++)
        for (uint32_t a = 0; a < plan->schedule->kernels.data[k].argument_count; a++)
            note_input(plan, plan->schedule->kernels.data[k].arguments[a]);
    for (uint32_t i = 0; i < plan->schedule->output_count && plan->part; i++)
        note_input(plan, plan->schedule->outputs[i]);
    return 0;
}

static int compile(struct bw_plan *plan, const struct bw_target *target, struct bw_err *err)
{
    struct bw_cache *cache;
    double start = seconds();
    int rc = bw_plan_jobs(plan->schedule, target, &plan->jobs, &plan->job_count, &plan->job_of, err);
    if (!rc)
        rc = bw_cache_create(bw_ctx_config(bw_device_ctx(plan->device))->cache_dir, &cache, err);
    if (rc)
        return rc;
    rc = bw_compile_all(plan->schedule->ir, plan->jobs, plan->job_count, target, cache, err);
    bw_cache_destroy(cache);
    for (uint32_t i = 0; i < plan->job_count; i++)
        *(plan->jobs[i].compiled.from_cache ? &plan->stats.cache_hits : &plan->stats.compiled) += 1;
    plan->stats.compile_seconds = seconds() - start;
    return rc;
}

static int plan_build(struct bw_plan *plan, struct bw_tensor_graph *g, const bw_tensor *outputs,
                      uint32_t output_count, struct bw_err *err)
{
    struct bw_target target;
    double start = seconds();
    int rc = bw_target_from_device(bw_device_info(plan->device), &target, err);
    if (!rc)
        rc = bw_plan_schedule(g, outputs, output_count, &plan->schedule, err);
    if (!rc)
        rc = find_inputs(plan, g, err);
    plan->stats.schedule_seconds = seconds() - start;
    if (!rc)
        rc = compile(plan, &target, err);
    start = seconds();
    if (!rc)
        rc = place_buffers(plan, g, err);
    bool runs = !plan->encode_only;
    if (!rc && runs)
        rc = upload_constants(plan, err);
    if (!rc && runs)
        rc = load_files(plan, err);
    if (!rc)
        rc = load_programs(plan, err);
    if (!rc && runs)
        rc = run_once(plan, err);
    if (!rc && !plan->part)
        rc = place_staging(plan, err);
    if (!rc && !plan->part)
        rc = link_graph(plan, err);
    plan->stats.link_seconds = seconds() - start;
    return rc;
}

static int plan_create(struct bw_tensor_graph *g, struct bw_device *device, const bw_tensor *outputs,
                       uint32_t output_count, const struct bw_plan_options *options, bool part,
                       struct bw_plan **out, struct bw_err *err)
{
    struct bw_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return bw_fail(err, -ENOMEM, "plan", "new plan");
    plan->device = device;
    plan->part = part;
    plan->profile = options && options->profile;
    plan->encode_only = options && options->encode_only;
    plan->unified = !strcmp(bw_device_info(device)->driver, "host");
    int rc = plan_build(plan, g, outputs, output_count, err);
    if (rc) {
        bw_plan_destroy(plan);
        return rc;
    }
    for (size_t i = 0; i < plan->schedule->kernels.count; i++)
        plan->stats.kernels += !plan->schedule->kernels.data[i].once;
    for (uint32_t i = 0; i < plan->input_count && !plan->unified; i++)
        plan->stats.copies += plan->input_buffer[i] != 0;
    for (uint32_t i = 0; i < output_count && !plan->unified; i++)
        plan->stats.copies += tensor_of(plan, output_buffer(plan, i)) == NULL;
    *out = plan;
    return 0;
}

int bw_plan_create(struct bw_tensor_graph *g, struct bw_device *device, const bw_tensor *outputs,
                   uint32_t output_count, const struct bw_plan_options *options, struct bw_plan **plan,
                   struct bw_err *err)
{
    return plan_create(g, device, outputs, output_count, options, false, plan, err);
}

int bw_plan_part_create(struct bw_tensor_graph *g, struct bw_device *device, const bw_tensor *outputs,
                        uint32_t output_count, struct bw_plan **plan, struct bw_err *err)
{
    return plan_create(g, device, outputs, output_count, NULL, true, plan, err);
}

int bw_plan_part_add(const struct bw_plan *plan, struct bw_graph *graph, struct bw_err *err)
{
    return add_launches(plan, graph, false, err);
}

struct bw_range bw_plan_part_input(const struct bw_plan *plan, uint32_t input)
{
    bool used = input < plan->input_count && plan->input_buffer[input];
    return used ? range_of(plan, plan->input_buffer[input] - 1) : (struct bw_range){0};
}

struct bw_range bw_plan_part_output(const struct bw_plan *plan, uint32_t output)
{
    return range_of(plan, output_buffer(plan, output));
}

void bw_plan_destroy(struct bw_plan *plan)
{
    if (!plan)
        return;
    if (plan->linked)
        bw_linked_graph_destroy(plan->linked);
    for (uint32_t i = 0; plan->programs && i < plan->job_count; i++)
        bw_program_destroy(plan->programs[i]);
    for (uint32_t i = 0; plan->jobs && i < plan->job_count; i++)
        bw_compiled_free(&plan->jobs[i].compiled);
    bw_buffer_destroy(plan->staging);
    bw_buffer_destroy(plan->arena);
    bw_buffer_destroy(plan->constants);
    bw_schedule_destroy(plan->schedule);
    free(plan->programs);
    free(plan->kernels);
    free(plan->jobs);
    free(plan->job_of);
    free(plan->places);
    for (uint32_t i = 0; i < plan->tensor_count; i++)
        bw_buffer_destroy(plan->tensors[i].file);
    free(plan->tensors);
    free(plan->input_buffer);
    free(plan->input_staging);
    free(plan->output_staging);
    free(plan);
}

static void copy_in(struct bw_plan *plan, const void *const *inputs)
{
    char *staging = plan->unified ? NULL : bw_buffer_map(plan->staging);
    for (uint32_t i = 0; i < plan->input_count; i++) {
        if (!plan->input_buffer[i])
            continue;
        const struct place *place = &plan->places[plan->input_buffer[i] - 1];
        char *target = plan->unified ? (char *)bw_buffer_map(place->buffer) + place->offset
                                     : staging + plan->input_staging[i];
        memcpy(target, inputs[i], place->size_bytes);
    }
}

static int copy_out(struct bw_plan *plan, const void *const *inputs, void *const *outputs, struct bw_err *err)
{
    const char *staging = plan->unified ? NULL : bw_buffer_map(plan->staging);
    int rc = 0;
    for (uint32_t i = 0; i < plan->schedule->output_count && !rc; i++) {
        uint32_t buffer = output_buffer(plan, i);
        const struct bw_tensor_buffer *tensor = tensor_of(plan, buffer);
        const struct place *place = &plan->places[buffer];
        uint64_t size_bytes = buffer_bytes(&plan->schedule->buffers.data[buffer]);
        const void *from;
        if (tensor && tensor->file) {
            rc = bw_buffer_read(tensor->file, 0, outputs[i], size_bytes, err);
            continue;
        }
        if (tensor) /* an output that is an input or a constant as it is */
            from = tensor->kind == BW_TENSOR_INPUT ? inputs[tensor->input_index] : tensor->data;
        else
            from = plan->unified ? (const char *)bw_buffer_map(place->buffer) + place->offset
                                 : staging + plan->output_staging[i];
        memcpy(outputs[i], from, size_bytes);
    }
    return rc;
}

int bw_plan_run(struct bw_plan *plan, const void *const *inputs, void *const *outputs, struct bw_err *err)
{
    double start = seconds();
    copy_in(plan, inputs);
    int rc = replay(plan->linked, err);
    if (rc)
        return rc;
    rc = copy_out(plan, inputs, outputs, err);
    plan->stats.run_seconds = seconds() - start;
    return rc;
}

void bw_plan_stats(const struct bw_plan *plan, struct bw_plan_stats *stats)
{
    *stats = plan->stats;
}

struct bw_linked_graph *bw_plan_linked(struct bw_plan *plan)
{
    return plan->linked;
}
