/* Goal: random graphs, calls on tuples of devices among them, several in flight and replayed many times
 * without waiting, with inputs and variables that change, submitted by one thread or several, on devices
 * whose queues run concurrently and at random speeds, give the bytes of serial execution.
 *
 * A round is made from one seed, printed when it fails: BW_SEED=that makes it the first. BW_FUZZ_SECONDS goes
 * on with new rounds for so long in each test (scripts/soak.sh). */
#include <pthread.h>
#include <time.h>

#include <bellwire/mock.h>

#include "base/bits.h"
#include "tests/unit/hcq/rig.h"
#include "tests/way.h"

enum {
    BYTES = 3000,
    BUFFERS = 6,
    INPUTS = 3,
    INPUT_SETS = 4,
    VARIABLES = 2,
    REPLAYS = 12,
    CALLS_MAX = 24,
    GRAPHS = 2, /* of a world, replayed in any order */
    WORLDS_MAX = 3,
    SPACES = BUFFERS + INPUT_SETS * INPUTS,
    NAME_BYTES = 96,
};

/* One call, or one lane of a call, remembered for the serial run. space < BUFFERS: that buffer; else input
 * space - BUFFERS. */
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
    struct bw_buffer *buffers[BUFFERS], *inputs[INPUT_SETS][INPUTS];
    uint8_t shadow[SPACES][BYTES];
    struct program programs[GRAPHS];
    struct bw_rng rng;
    struct bw_err err; /* of its thread */
    int rc;
};

/* What a test runs on. */
struct field {
    const char *name;
    const char *devices[RIG_DEVICES_MAX + 1]; /* "%s" of a mock stands for a jitter seed */
    struct bw_ctx_config config;
    uint32_t worlds; /* threads that submit */
    uint32_t rounds;
    bool kernels;
    bool stepped; /* GPUs of a machine that one thread steps: the same every time */
};

static void bytes_random(uint8_t *bytes, struct bw_rng *rng)
{
    for (uint32_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)bw_rng_next(rng);
}

static struct bw_buffer *space_buffer(const struct world *world, uint32_t space)
{
    uint32_t input = space - BUFFERS;
    return space < BUFFERS ? world->buffers[space] : world->inputs[input / INPUTS][input % INPUTS];
}

static int space_write(struct world *world, uint32_t space, struct bw_rng *rng)
{
    bytes_random(world->shadow[space], rng);
    return bw_buffer_write(space_buffer(world, space), 0, world->shadow[space], BYTES, &world->err);
}

/* Some buffers are views with an odd offset, some are host memory. */
static struct bw_buffer *buffer_make(struct world *world, uint32_t device)
{
    struct bw_rng *rng = &world->rng;
    uint32_t flags = bw_rng_below(rng, 3) ? BW_BUFFER_DEVICE : BW_BUFFER_HOST;
    uint64_t lead_bytes = bw_rng_below(rng, 2) ? 1 + bw_rng_below(rng, 500) : 0;
    struct bw_buffer *whole = rig_buffer(world->rig, device, BYTES + lead_bytes, flags), *view = NULL;
    BW_OK(bw_buffer_view(whole, lead_bytes, BYTES, &view, &world->err), &world->err);
    bw_buffer_destroy(whole); /* the view keeps the memory */
    return view;
}

static void buffers_make(struct world *world)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        world->buffers[i] = buffer_make(world, i % world->rig->device_count);
    for (uint32_t i = 0; i < INPUT_SETS * INPUTS; i++)
        world->inputs[i / INPUTS][i % INPUTS] = buffer_make(world, i % INPUTS % world->rig->device_count);
    for (uint32_t i = 0; i < SPACES; i++)
        BW_OK(space_write(world, i, &world->rng), &world->err);
}

/* ---- graphs ---- */

static struct bw_range range_make(const struct world *world, uint32_t space, uint64_t offset,
                                  uint64_t size_bytes)
{
    return (struct bw_range){space < BUFFERS ? world->buffers[space] : NULL, space - BUFFERS, offset,
                             size_bytes};
}

static uint32_t device_of(const struct world *world, uint32_t space)
{
    return (space < BUFFERS ? space : space - BUFFERS) % world->rig->device_count;
}

static void step_trim(struct step *step)
{
    if (!step->kernel)
        step->target_bytes = step->source_bytes =
            step->target_bytes < step->source_bytes ? step->target_bytes : step->source_bytes;
}

/* Of one device, as an input's device is the call's; between devices buffers are copied, see below. */
static struct step step_random(struct world *world, bool kernel)
{
    struct bw_rng *rng = &world->rng;
    struct step step = {.kernel = kernel, .lanes = 1, .salt_variable = -1};
    step.target = (uint32_t)bw_rng_below(rng, BUFFERS + INPUTS);
    do
        step.source = (uint32_t)bw_rng_below(rng, BUFFERS + INPUTS);
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
static struct step step_across(struct world *world)
{
    struct step step = step_random(world, false);
    step.target = (uint32_t)bw_rng_below(&world->rng, BUFFERS);
    step.source = (step.target + 1) % BUFFERS;
    return step;
}

struct lane {
    struct bw_argument arguments[5];
    struct bw_launch launch;
};

static struct bw_kernel *lane_fill(struct world *world, const struct step *step, struct lane *lane)
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

static int kernels_add(struct world *world, struct bw_graph *graph, const struct step *steps, uint32_t count)
{
    struct lane lanes[RIG_DEVICES_MAX];
    struct bw_kernel_lane made[RIG_DEVICES_MAX];
    for (uint32_t i = 0; i < count; i++)
        made[i] = (struct bw_kernel_lane){lane_fill(world, &steps[i], &lanes[i]), &lanes[i].launch};
    return count == 1 ? bw_graph_kernel(graph, made[0].kernel, made[0].launch, &world->err)
                      : bw_graph_kernel_lanes(graph, made, count, &world->err);
}

static int copies_add(struct world *world, struct bw_graph *graph, const struct step *steps, uint32_t count)
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
static uint32_t lanes_random(struct world *world, struct step *steps, bool kernel)
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

static uint32_t steps_random(struct world *world, struct step *steps, uint32_t index)
{
    struct bw_rng *rng = &world->rng;
    bool kernel = world->kernels && bw_rng_below(rng, 2), several = world->rig->device_count > 1;
    if (index < INPUTS || (index == INPUTS && world->kernels)) { /* every input and variable is used */
        steps[0] = step_random(world, index == INPUTS || kernel);
        if (index < INPUTS) {
            steps[0].target = index;
            steps[0].source = BUFFERS + index;
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

static bool program_make(struct world *world, struct program *program)
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

static uint8_t *shadow_of(struct world *world, uint32_t space, uint32_t set)
{
    return world->shadow[space < BUFFERS ? space : BUFFERS + set * INPUTS + (space - BUFFERS)];
}

static void serial_run(struct world *world, const struct program *program, uint32_t set,
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

static int replay_once(struct world *world, uint64_t *tickets)
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
static void *world_run(void *argument)
{
    struct world *world = argument;
    uint64_t tickets[GRAPHS] = {0};
    for (uint32_t i = 0; i < REPLAYS && !world->rc; i++) {
        world->rc = replay_once(world, tickets);
        if (!world->rc && bw_rng_below(&world->rng, 4) == 0) /* waits for what is in flight */
            world->rc = space_write(world, i % BUFFERS, &world->rng);
    }
    for (uint32_t i = 0; i < GRAPHS && !world->rc; i++)
        if (tickets[i])
            world->rc = bw_linked_graph_wait(world->programs[i].linked, tickets[i], &world->err);
    return NULL;
}

static bool world_compare(struct world *world)
{
    static uint8_t got[BYTES];
    bool ok = BW_OK(world->rc, &world->err);
    for (uint32_t i = 0; i < SPACES && ok; i++)
        ok = BW_OK(bw_buffer_read(space_buffer(world, i), 0, got, BYTES, &world->err), &world->err) &&
             BW_BYTES(got, world->shadow[i], BYTES);
    return ok;
}

static bool world_make(struct world *world, const struct field *field, struct rig *rig, uint64_t seed)
{
    *world = (struct world){.rig = rig, .kernels = field->kernels, .family = true, .rng = {seed}};
    for (uint32_t i = 1; i < rig->device_count; i++)
        world->family &=
            strcmp(bw_device_info(rig->devices[i])->driver, bw_device_info(rig->devices[0])->driver) == 0;
    buffers_make(world);
    bool ok = true;
    for (uint32_t i = 0; i < GRAPHS && ok; i++)
        ok = program_make(world, &world->programs[i]);
    return ok;
}

static void world_end(struct world *world)
{
    for (uint32_t i = 0; i < GRAPHS; i++)
        bw_linked_graph_destroy(world->programs[i].linked);
    for (uint32_t i = 0; i < SPACES; i++)
        bw_buffer_destroy(space_buffer(world, i));
}

static bool worlds_run(const struct field *field, struct rig *rig, uint64_t seed)
{
    struct world *worlds = calloc(field->worlds, sizeof *worlds);
    pthread_t threads[WORLDS_MAX];
    bool ok = BW_TRUE(worlds != NULL), started[WORLDS_MAX] = {false};
    uint32_t made = 0;
    for (; made < field->worlds && ok; made++)
        ok = world_make(&worlds[made], field, rig, seed + made * 0x100000000ull);
    for (uint32_t i = 1; i < field->worlds && ok; i++)
        started[i] = BW_EQ(pthread_create(&threads[i], NULL, world_run, &worlds[i]), 0);
    if (ok)
        world_run(&worlds[0]);
    for (uint32_t i = 1; i < field->worlds; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < field->worlds && ok; i++)
        ok = world_compare(&worlds[i]);
    for (uint32_t i = 0; i < made; i++)
        world_end(&worlds[i]);
    free(worlds);
    return ok;
}

/* ---- devices ---- */

static bool devices_open(const struct field *field, uint64_t seed, struct rig *rig)
{
    char names[RIG_DEVICES_MAX][NAME_BYTES];
    const char *opened[RIG_DEVICES_MAX + 1] = {NULL};
    char jitter[24];
    snprintf(jitter, sizeof jitter, "%" PRIu64, seed ? seed : 1);
    for (uint32_t i = 0; i < RIG_DEVICES_MAX && field->devices[i]; i++) {
        const char *mark = strstr(field->devices[i], "%s");
        snprintf(names[i], NAME_BYTES, "%.*s%s%s",
                 mark ? (int)(mark - field->devices[i]) : (int)strlen(field->devices[i]), field->devices[i],
                 mark ? jitter : "", mark ? mark + 2 : "");
        opened[i] = names[i];
    }
    struct bw_ctx_config config = field->config;
    config.size = sizeof config;
    return rig_open(rig, &config, opened);
}

static bool round_run(const struct field *field, uint64_t seed)
{
    struct field on = *field;
    struct rig rig = {0};
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = 2,
                                  .cu_count = 2,
                                  .vram_bytes = 64 << 20,
                                  .threads = 1,
                                  .seed = seed,
                                  .single_step = true,
                                  .kfd_absent = WAY_DRM,
                                  .jitter = seed ? seed : 1};
    if (field->stepped && !BW_OK(bw_mock_kfd_create(&mock, &on.config.sys, &rig.err), &rig.err))
        return false;
    bool ok = devices_open(&on, seed, &rig) && worlds_run(field, &rig, seed);
    rig_close(&rig);
    if (field->stepped)
        bw_sys_destroy(on.config.sys);
    return ok;
}

static void fuzz(const struct field *field)
{
    uint64_t first = bw_test_rng(field->name).state;
    const char *text = getenv("BW_FUZZ_SECONDS");
    time_t end = text ? time(NULL) + strtol(text, NULL, 0) : 0;
    bool ok = true;
    uint64_t round = 0;
    for (; ok && (round < field->rounds || time(NULL) < end); round++) {
        ok = round_run(field, first + round);
        if (!ok)
            printf("    %s: round %" PRIu64 ": BW_SEED=%" PRIu64 " begins with it\n", field->name, round,
                   first + round);
    }
    if (text)
        printf(" %" PRIu64 " rounds ", round);
}

static void one_host(void)
{
    fuzz(&(struct field){.name = "host", .devices = {"host:0"}, .worlds = 1, .rounds = 40, .kernels = true});
}

static void three_hosts(void)
{
    fuzz(&(struct field){.name = "three hosts",
                         .devices = {"host:0", "host:1", "host:2"},
                         .config = {.host_threads = 2},
                         .worlds = 1,
                         .rounds = 40,
                         .kernels = true});
}

static void null_copies(void)
{
    fuzz(&(struct field){.name = "null", .devices = {"null", "null"}, .worlds = 1, .rounds = 80});
}

static void mock_copies(void)
{
    fuzz(&(struct field){.name = "mock, copies",
                         .devices = {"mock" WAY "+amd@gfx1100,vram=64M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 10});
}

static void mock_kernels_and_host(void)
{
    fuzz(&(struct field){.name = "mock and host",
                         .devices = {"mock" WAY "+amd@gfx1100,cu=2,vram=64M,jitter=%s", "host:0"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

static void two_gpus(void)
{
    fuzz(&(struct field){.name = "two GPUs",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

/* Neither reaches the other's memory: through the host. */
static void two_gpus_apart(void)
{
    fuzz(&(struct field){.name = "two GPUs apart",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,bar=1M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,bar=1M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

/* Nothing but the seed decides what runs when. */
static void two_gpus_stepped(void)
{
    fuzz(&(struct field){.name = "two GPUs, stepped",
                         .devices = {WAY "+amd:0", WAY "+amd:1"},
                         .worlds = 1,
                         .rounds = 24,
                         .kernels = true,
                         .stepped = true});
}

static void threads_submit(void)
{
    fuzz(&(struct field){.name = "threads, hosts",
                         .devices = {"host:0", "host:1"},
                         .config = {.host_threads = 2},
                         .worlds = 3,
                         .rounds = 30,
                         .kernels = true});
    fuzz(&(struct field){.name = "threads, GPUs and host",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,jitter=%s", "host:0"},
                         .config = {.mock_threads = 1},
                         .worlds = 3,
                         .rounds = 6,
                         .kernels = true});
}

static void timelines_roll_over_meanwhile(void)
{
    fuzz(&(struct field){.name = "host from 2^32 - 41",
                         .devices = {"host:0", "host:1"},
                         .config = {.timeline_start = UINT32_MAX - 40},
                         .worlds = 2,
                         .rounds = 16,
                         .kernels = true});
    fuzz(&(struct field){.name = "host from 2^64 - 41",
                         .devices = {"host:0", "null"},
                         .config = {.timeline_start = UINT64_MAX - 40},
                         .worlds = 1,
                         .rounds = 16});
    fuzz(&(struct field){.name = "GPUs from 2^32 - 41",
                         .devices = {WAY "+amd:0", WAY "+amd:1"},
                         .config = {.timeline_start = UINT32_MAX - 40},
                         .worlds = 1,
                         .rounds = 8,
                         .kernels = true,
                         .stepped = true});
}

BW_TEST_MAIN("hcq fuzz", {"one_host", one_host}, {"three_hosts", three_hosts}, {"null_copies", null_copies},
             {"mock_copies", mock_copies}, {"mock_kernels_and_host", mock_kernels_and_host},
             {"two_gpus", two_gpus}, {"two_gpus_apart", two_gpus_apart},
             {"two_gpus_stepped", two_gpus_stepped}, {"threads_submit", threads_submit},
             {"timelines_roll_over_meanwhile", timelines_roll_over_meanwhile})
