/* Random graphs and what serial execution makes of them: buffers on some devices, calls on one device, on
 * tuples of them and from one to another, replayed again and again with inputs and variables that change. All
 * of it follows from one seed. */
#ifndef BW_TESTS_HCQ_FUZZ_WORLD_H
#define BW_TESTS_HCQ_FUZZ_WORLD_H

#include "base/bits.h"
#include "tests/unit/hcq/rig.h"

enum {
    BYTES = 3000,
    BUFFERS_MIN = 6, /* and two on each device */
    BUFFERS_MAX = 2 * RIG_DEVICES_MAX,
    INPUTS = 3,
    INPUT_SETS = 4,
    VARIABLES = 2,
    REPLAYS = 12,
    CALLS_MAX = 24,
    GRAPHS = 2, /* of a world, replayed in any order */
    INPUT_SPACES = INPUT_SETS * INPUTS,
    SPACES_MAX = BUFFERS_MAX + INPUT_SPACES,
};

/* One call, or one lane of a call, remembered for the serial run. space < buffer_count: that buffer; else
 * input space - buffer_count. */
struct step {
    bool kernel;
    uint32_t lanes; /* that begin here; 0: a lane of the call before */
    uint32_t target, source;
    uint64_t target_offset, source_offset, target_bytes, source_bytes;
    uint32_t salt;
    int salt_variable;
};

struct program {
    struct step steps[CALLS_MAX + RIG_DEVICES_MAX];
    uint32_t step_count;
    struct bw_linked_graph *linked;
};

/* Buffers and graphs of one thread. */
struct world {
    struct rig *rig;
    bool kernels; /* the devices compute */
    bool family;  /* they are all of one */
    uint32_t buffer_count;
    struct bw_buffer *buffers[BUFFERS_MAX], *inputs[INPUT_SETS][INPUTS];
    uint8_t shadow[SPACES_MAX][BYTES];
    struct program programs[GRAPHS];
    struct bw_rng rng;
    uint32_t replays;
    bool leaves;       /* without waiting for what it has in flight */
    struct bw_err err; /* of its thread */
    int rc;
};

static inline uint32_t space_count(const struct world *world)
{
    return world->buffer_count + INPUT_SPACES;
}

static inline void bytes_random(uint8_t *bytes, struct bw_rng *rng)
{
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)bw_rng_next(rng);
}

static inline struct bw_buffer *space_buffer(const struct world *world, uint32_t space)
{
    uint32_t input = space - world->buffer_count;
    return space < world->buffer_count ? world->buffers[space]
                                       : world->inputs[input / INPUTS][input % INPUTS];
}

static inline int space_write(struct world *world, uint32_t space, struct bw_rng *rng)
{
    bytes_random(world->shadow[space], rng);
    return bw_buffer_write(space_buffer(world, space), 0, world->shadow[space], BYTES, &world->err);
}

/* Some buffers are views with an odd offset, some are host memory. */
static inline struct bw_buffer *buffer_make(struct world *world, uint32_t device)
{
    struct bw_rng *rng = &world->rng;
    uint32_t flags = bw_rng_below(rng, 3) ? BW_BUFFER_DEVICE : BW_BUFFER_HOST;
    uint64_t lead_bytes = bw_rng_below(rng, 2) ? 1 + bw_rng_below(rng, 500) : 0;
    struct bw_buffer *whole = rig_buffer(world->rig, device, BYTES + lead_bytes, flags), *view = NULL;
    BW_OK(bw_buffer_view(whole, lead_bytes, BYTES, &view, &world->err), &world->err);
    bw_buffer_destroy(whole); /* the view keeps the memory */
    return view;
}

static inline void buffers_make(struct world *world)
{
    for (uint32_t i = 0; i < world->buffer_count; i++)
        world->buffers[i] = buffer_make(world, i % world->rig->device_count);
    for (uint32_t i = 0; i < INPUT_SETS * INPUTS; i++)
        world->inputs[i / INPUTS][i % INPUTS] = buffer_make(world, i % INPUTS % world->rig->device_count);
    for (uint32_t i = 0; i < space_count(world); i++)
        BW_OK(space_write(world, i, &world->rng), &world->err);
}

/* ---- graphs ---- */

static inline struct bw_range range_make(const struct world *world, uint32_t space, uint64_t offset,
                                         uint64_t size_bytes)
{
    return (struct bw_range){space < world->buffer_count ? world->buffers[space] : NULL,
                             space - world->buffer_count, offset, size_bytes};
}

static inline uint32_t device_of(const struct world *world, uint32_t space)
{
    return (space < world->buffer_count ? space : space - world->buffer_count) % world->rig->device_count;
}

static inline void step_trim(struct step *step)
{
    if (!step->kernel)
        step->target_bytes = step->source_bytes =
            step->target_bytes < step->source_bytes ? step->target_bytes : step->source_bytes;
}

/* Of one device, as an input's device is the call's; between devices buffers are copied, see below. */
static inline struct step step_random(struct world *world, bool kernel)
{
    struct bw_rng *rng = &world->rng;
    struct step step = {.kernel = kernel, .lanes = 1, .salt_variable = -1};
    step.target = (uint32_t)bw_rng_below(rng, world->buffer_count + INPUTS);
    do
        step.source = (uint32_t)bw_rng_below(rng, world->buffer_count + INPUTS);
    while (step.source == step.target || device_of(world, step.source) != device_of(world, step.target));
    step.target_offset = bw_rng_below(rng, BYTES - 1);
    step.source_offset = bw_rng_below(rng, BYTES - 1);
    step.target_bytes = 1 + bw_rng_below(rng, BYTES - step.target_offset);
    step.source_bytes = 1 + bw_rng_below(rng, BYTES - step.source_offset);
    step.salt = (uint32_t)bw_rng_below(rng, 256);
    if (kernel && bw_rng_below(rng, 2))
        step.salt_variable = (int)bw_rng_below(rng, VARIABLES);
    step_trim(&step);
    return step;
}

/* A copy from one device's buffer to another's. */
static inline struct step step_across(struct world *world)
{
    struct step step = step_random(world, false);
    step.target = (uint32_t)bw_rng_below(&world->rng, world->buffer_count);
    do
        step.source = (uint32_t)bw_rng_below(&world->rng, world->buffer_count);
    while (device_of(world, step.source) == device_of(world, step.target));
    return step;
}

struct lane {
    struct bw_argument arguments[5];
    struct bw_launch launch;
};

static inline struct bw_kernel *lane_fill(struct world *world, const struct step *step, struct lane *lane)
{
    uint32_t device = device_of(world, step->target);
    struct bw_range target = range_make(world, step->target, step->target_offset, step->target_bytes);
    struct bw_range source = range_make(world, step->source, step->source_offset, step->source_bytes);
    *lane =
        (struct lane){.arguments = {argument_range(target, BW_ACCESS_READ | BW_ACCESS_WRITE),
                                    argument_range(source, BW_ACCESS_READ), argument_value(target.size_bytes),
                                    argument_value(source.size_bytes), argument_value(step->salt)}};
    if (step->salt_variable >= 0)
        lane->arguments[4] =
            (struct bw_argument){.source = BW_ARG_VARIABLE, .variable = (uint32_t)step->salt_variable};
    lane->launch =
        (struct bw_launch){.group_count = {{1, false}, {1, false}, {1, false}},
                           .group_size = {bw_device_info(world->rig->devices[device])->wave_size, 1, 1},
                           .arguments = lane->arguments,
                           .argument_count = 5};
    return rig_kernel(world->rig, device, "mix");
}

static inline int kernels_add(struct world *world, struct bw_graph *graph, const struct step *steps,
                              uint32_t count)
{
    struct lane lanes[RIG_DEVICES_MAX];
    struct bw_kernel_lane made[RIG_DEVICES_MAX];
    for (uint32_t i = 0; i < count; i++)
        made[i] = (struct bw_kernel_lane){lane_fill(world, &steps[i], &lanes[i]), &lanes[i].launch};
    return count == 1 ? bw_graph_kernel(graph, made[0].kernel, made[0].launch, &world->err)
                      : bw_graph_kernel_lanes(graph, made, count, &world->err);
}

static inline int copies_add(struct world *world, struct bw_graph *graph, const struct step *steps,
                             uint32_t count)
{
    struct bw_copy_lane made[RIG_DEVICES_MAX];
    for (uint32_t i = 0; i < count; i++)
        made[i] = (struct bw_copy_lane){
            world->rig->devices[device_of(world, steps[i].target)],
            range_make(world, steps[i].target, steps[i].target_offset, steps[i].target_bytes),
            range_make(world, steps[i].source, steps[i].source_offset, steps[i].source_bytes)};
    return count == 1 ? bw_graph_copy(graph, made[0].device, made[0].target, made[0].source, &world->err)
                      : bw_graph_copy_lanes(graph, made, count, &world->err);
}

/* A tuple has each device once, so its lanes touch nothing in common. */
static inline uint32_t lanes_random(struct world *world, struct step *steps, bool kernel)
{
    uint32_t count = 0;
    uint64_t taken = 0;
    for (uint32_t tries = 0; tries < 2 * RIG_DEVICES_MAX; tries++) {
        struct step step = step_random(world, kernel);
        uint32_t device = device_of(world, step.target);
        if (taken >> device & 1)
            continue;
        taken |= 1ull << device;
        step.lanes = 0;
        steps[count++] = step;
    }
    steps[0].lanes = count;
    return count;
}

static inline uint32_t steps_random(struct world *world, struct step *steps, uint32_t index)
{
    struct bw_rng *rng = &world->rng;
    bool kernel = world->kernels && bw_rng_below(rng, 2), several = world->rig->device_count > 1;
    if (index < INPUTS || (index == INPUTS && world->kernels)) { /* every input and variable is used */
        steps[0] = step_random(world, index == INPUTS || kernel);
        if (index < INPUTS) {
            steps[0].target = index;
            steps[0].source = world->buffer_count + index;
        } else {
            steps[0].salt_variable = VARIABLES - 1;
        }
        return 1;
    }
    if (several && bw_rng_below(rng, 5) == 0)
        steps[0] = step_across(world);
    else if (several && (!kernel || world->family) && bw_rng_below(rng, 4) == 0)
        return lanes_random(world, steps, kernel);
    else
        steps[0] = step_random(world, kernel);
    return 1;
}

static inline bool program_make(struct world *world, struct program *program)
{
    struct bw_graph *graph = rig_graph(world->rig);
    uint32_t wanted = 4 + (uint32_t)bw_rng_below(&world->rng, CALLS_MAX - 4);
    struct bw_link_options options = {.size = sizeof options,
                                      .instances = 1 + (uint32_t)bw_rng_below(&world->rng, 4)};
    bool ok = true;
    program->step_count = 0;
    while (program->step_count < wanted && ok) {
        struct step *steps = &program->steps[program->step_count];
        uint32_t count = steps_random(world, steps, program->step_count);
        program->step_count += count;
        ok = BW_OK(steps[0].kernel ? kernels_add(world, graph, steps, count)
                                   : copies_add(world, graph, steps, count),
                   &world->err);
    }
    if (ok)
        ok = BW_OK(bw_graph_link(graph, &options, &program->linked, &world->err), &world->err);
    bw_graph_destroy(graph);
    return ok;
}

/* ---- runs ---- */

static inline uint8_t *shadow_of(struct world *world, uint32_t space, uint32_t set)
{
    return world->shadow[space < world->buffer_count
                             ? space
                             : world->buffer_count + set * INPUTS + (space - world->buffer_count)];
}

static inline void serial_run(struct world *world, const struct program *program, uint32_t set,
                              const uint32_t *variables)
{
    for (uint32_t i = 0; i < program->step_count; i++) {
        const struct step *step = &program->steps[i];
        uint8_t *target = shadow_of(world, step->target, set) + step->target_offset;
        const uint8_t *source = shadow_of(world, step->source, set) + step->source_offset;
        if (step->kernel)
            mix_run(target, step->target_bytes, source, step->source_bytes,
                    step->salt_variable < 0 ? step->salt : variables[step->salt_variable]);
        else
            memcpy(target, source, step->target_bytes);
    }
}

static inline int replay_once(struct world *world, uint64_t *tickets)
{
    uint32_t set = (uint32_t)bw_rng_below(&world->rng, INPUT_SETS),
             which = (uint32_t)bw_rng_below(&world->rng, GRAPHS);
    uint32_t variables[VARIABLES] = {(uint32_t)bw_rng_next(&world->rng), (uint32_t)bw_rng_next(&world->rng)};
    struct bw_replay replay = {world->inputs[set], INPUTS, variables, world->kernels ? VARIABLES : 0};
    struct program *program = &world->programs[which];
    int rc = bw_linked_graph_replay(program->linked, &replay, &tickets[which], &world->err);
    serial_run(world, program, set, variables);
    if (!rc && bw_rng_below(&world->rng, 6) == 0)
        rc = bw_linked_graph_wait(program->linked, tickets[which], &world->err);
    return rc;
}

/* No checks of CUnit in here: threads do this. */
static inline void *world_run(void *argument)
{
    struct world *world = argument;
    uint64_t tickets[GRAPHS] = {0};
    for (uint32_t i = 0; i < world->replays && !world->rc; i++) {
        world->rc = replay_once(world, tickets);
        if (!world->rc && bw_rng_below(&world->rng, 4) == 0) /* waits for what is in flight */
            world->rc = space_write(world, i % world->buffer_count, &world->rng);
    }
    for (uint32_t i = 0; i < GRAPHS && !world->rc && !world->leaves; i++)
        if (tickets[i])
            world->rc = bw_linked_graph_wait(world->programs[i].linked, tickets[i], &world->err);
    return NULL;
}

static inline bool world_compare(struct world *world)
{
    uint8_t got[BYTES];
    bool ok = BW_OK(world->rc, &world->err);
    for (uint32_t i = 0; i < space_count(world) && ok; i++)
        ok = BW_OK(bw_buffer_read(space_buffer(world, i), 0, got, BYTES, &world->err), &world->err) &&
             BW_BYTES(got, world->shadow[i], BYTES);
    return ok;
}

/* kernels: the devices compute. */
static inline bool world_make(struct world *world, bool kernels, struct rig *rig, uint64_t seed)
{
    *world =
        (struct world){.rig = rig, .kernels = kernels, .family = true, .replays = REPLAYS, .rng = {seed}};
    world->buffer_count = 2 * rig->device_count > BUFFERS_MIN ? 2 * rig->device_count : BUFFERS_MIN;
    for (uint32_t i = 1; i < rig->device_count; i++)
        world->family &=
            strcmp(bw_device_info(rig->devices[i])->driver, bw_device_info(rig->devices[0])->driver) == 0;
    buffers_make(world);
    bool ok = true;
    for (uint32_t i = 0; i < GRAPHS && ok; i++)
        ok = program_make(world, &world->programs[i]);
    return ok;
}

static inline void world_end(struct world *world)
{
    for (uint32_t i = 0; i < GRAPHS; i++)
        bw_linked_graph_destroy(world->programs[i].linked);
    for (uint32_t i = 0; i < space_count(world); i++)
        bw_buffer_destroy(space_buffer(world, i));
}

#endif
