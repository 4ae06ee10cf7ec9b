/* Goal: random graphs, replayed many times without waiting, with inputs and variables that change, on devices
 * whose queues run concurrently, give the bytes of serial execution. */
#include "tests/unit/hcq/rig.h"

enum { BYTES = 3000, BUFFERS = 6, INPUTS = 3, INPUT_SETS = 4, VARIABLES = 2, REPLAYS = 12, CALLS_MAX = 24 };

/* One call, remembered for the serial run. space < BUFFERS: that buffer; else input space - BUFFERS. */
struct step {
    bool kernel;
    uint32_t target, source;
    uint64_t target_offset, source_offset, target_bytes, source_bytes;
    uint32_t salt;
    int salt_variable;
};

struct world {
    struct rig rig;
    bool kernels; /* the devices compute */
    struct bw_buffer *buffers[BUFFERS], *inputs[INPUT_SETS][INPUTS];
    uint8_t shadow[BUFFERS + INPUT_SETS * INPUTS][BYTES];
    struct step steps[CALLS_MAX];
    uint32_t step_count;
};

static void space_init(struct world *world, struct bw_buffer *buffer, uint32_t shadow, struct bw_rng *rng)
{
    for (uint32_t i = 0; i < BYTES; i++)
        world->shadow[shadow][i] = (uint8_t)bw_rng_next(rng);
    BW_OK(bw_buffer_write(buffer, 0, world->shadow[shadow], BYTES, &world->rig.err), &world->rig.err);
}

/* Some buffers are views with an odd offset, some are host memory. */
static struct bw_buffer *buffer_make(struct world *world, uint32_t device, struct bw_rng *rng)
{
    uint32_t flags = bw_rng_below(rng, 3) ? BW_BUFFER_DEVICE : BW_BUFFER_HOST;
    uint64_t lead_bytes = bw_rng_below(rng, 2) ? 1 + bw_rng_below(rng, 500) : 0;
    struct bw_buffer *whole = rig_buffer(&world->rig, device, BYTES + lead_bytes, flags), *view = NULL;
    BW_OK(bw_buffer_view(whole, lead_bytes, BYTES, &view, &world->rig.err), &world->rig.err);
    bw_buffer_destroy(whole); /* the view keeps the memory */
    return view;
}

static void world_make(struct world *world, struct bw_rng *rng)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        world->buffers[i] = buffer_make(world, i % world->rig.device_count, rng);
        space_init(world, world->buffers[i], i, rng);
    }
    for (uint32_t set = 0; set < INPUT_SETS; set++) {
        for (uint32_t i = 0; i < INPUTS; i++) {
            world->inputs[set][i] = buffer_make(world, i % world->rig.device_count, rng);
            space_init(world, world->inputs[set][i], BUFFERS + set * INPUTS + i, rng);
        }
    }
}

static void world_end(struct world *world)
{
    for (uint32_t i = 0; i < BUFFERS; i++)
        bw_buffer_destroy(world->buffers[i]);
    for (uint32_t i = 0; i < INPUT_SETS * INPUTS; i++)
        bw_buffer_destroy(world->inputs[i / INPUTS][i % INPUTS]);
}

static struct bw_range range_make(const struct world *world, uint32_t space, uint64_t offset,
                                  uint64_t size_bytes)
{
    return (struct bw_range){space < BUFFERS ? world->buffers[space] : NULL, space - BUFFERS, offset,
                             size_bytes};
}

static uint32_t device_of(const struct world *world, uint32_t space)
{
    return (space < BUFFERS ? space : space - BUFFERS) % world->rig.device_count;
}

static struct step step_random(const struct world *world, struct bw_rng *rng)
{
    struct step step = {.kernel = world->kernels && bw_rng_below(rng, 2), .salt_variable = -1};
    step.target = (uint32_t)bw_rng_below(rng, BUFFERS + INPUTS);
    do
        step.source = (uint32_t)bw_rng_below(rng, BUFFERS + INPUTS);
    while (step.source == step.target || device_of(world, step.source) != device_of(world, step.target));
    step.target_offset = bw_rng_below(rng, BYTES - 1);
    step.source_offset = bw_rng_below(rng, BYTES - 1);
    step.target_bytes = 1 + bw_rng_below(rng, BYTES - step.target_offset);
    step.source_bytes = 1 + bw_rng_below(rng, BYTES - step.source_offset);
    if (!step.kernel)
        step.target_bytes = step.source_bytes =
            step.target_bytes < step.source_bytes ? step.target_bytes : step.source_bytes;
    step.salt = (uint32_t)bw_rng_below(rng, 256);
    if (step.kernel && bw_rng_below(rng, 2))
        step.salt_variable = (int)bw_rng_below(rng, VARIABLES);
    return step;
}

/* An input's device is the call's, so a call's spaces lie on one device; between devices buffers are copied
 * below. */
static bool step_add(struct world *world, struct bw_graph *graph, const struct step *step)
{
    struct bw_range target = range_make(world, step->target, step->target_offset, step->target_bytes);
    struct bw_range source = range_make(world, step->source, step->source_offset, step->source_bytes);
    uint32_t device = device_of(world, step->target);
    if (step->kernel)
        return BW_OK(mix_add(&world->rig, graph, device, target, source, step->salt, step->salt_variable),
                     &world->rig.err);
    return BW_OK(bw_graph_copy(graph, world->rig.devices[device], target, source, &world->rig.err),
                 &world->rig.err);
}

/* A copy from one device's buffer to another's. */
static struct step step_across(const struct world *world, struct bw_rng *rng)
{
    struct step step = step_random(world, rng);
    step.kernel = false;
    step.target = (uint32_t)bw_rng_below(rng, BUFFERS);
    step.source = (step.target + 1) % BUFFERS;
    step.target_bytes = step.source_bytes =
        step.target_bytes < step.source_bytes ? step.target_bytes : step.source_bytes;
    return step;
}

static bool graph_make(struct world *world, struct bw_graph *graph, struct bw_rng *rng)
{
    bool ok = true;
    world->step_count = 4 + (uint32_t)bw_rng_below(rng, CALLS_MAX - 4);
    for (uint32_t i = 0; i < world->step_count && ok; i++) {
        struct step *step = &world->steps[i];
        *step = bw_rng_below(rng, 5) == 0 && world->rig.device_count > 1 ? step_across(world, rng)
                                                                         : step_random(world, rng);
        /* Every input and variable is used somewhere. */
        if (i < INPUTS) {
            *step = step_random(world, rng);
            step->target = i;
            step->source = BUFFERS + i;
        } else if (i == INPUTS && world->kernels) {
            *step = step_random(world, rng);
            step->kernel = true;
            step->salt_variable = VARIABLES - 1;
        }
        if (!step->kernel)
            step->target_bytes = step->source_bytes =
                step->target_bytes < step->source_bytes ? step->target_bytes : step->source_bytes;
        ok = step_add(world, graph, step);
    }
    return ok;
}

static uint8_t *shadow_of(struct world *world, uint32_t space, uint32_t set)
{
    return world->shadow[space < BUFFERS ? space : BUFFERS + set * INPUTS + (space - BUFFERS)];
}

static void serial_run(struct world *world, uint32_t set, const uint32_t *variables)
{
    for (uint32_t i = 0; i < world->step_count; i++) {
        const struct step *step = &world->steps[i];
        uint8_t *target = shadow_of(world, step->target, set) + step->target_offset;
        const uint8_t *source = shadow_of(world, step->source, set) + step->source_offset;
        if (step->kernel)
            mix_run(target, step->target_bytes, source, step->source_bytes,
                    step->salt_variable < 0 ? step->salt : variables[step->salt_variable]);
        else
            memcpy(target, source, step->target_bytes);
    }
}

static bool world_compare(struct world *world)
{
    static uint8_t got[BYTES];
    bool ok = true;
    for (uint32_t i = 0; i < BUFFERS + INPUT_SETS * INPUTS && ok; i++) {
        uint32_t input = i - BUFFERS;
        struct bw_buffer *buffer =
            i < BUFFERS ? world->buffers[i] : world->inputs[input / INPUTS][input % INPUTS];
        ok = BW_OK(bw_buffer_read(buffer, 0, got, BYTES, &world->rig.err), &world->rig.err) &&
             BW_BYTES(got, world->shadow[i], BYTES);
    }
    return ok;
}

static bool graph_run(struct world *world, struct bw_rng *rng)
{
    struct bw_graph *graph = rig_graph(&world->rig);
    if (!graph_make(world, graph, rng))
        return false;
    struct bw_linked_graph *linked = rig_link(&world->rig, graph);
    bool ok = linked != NULL;
    uint64_t ticket = 0;
    for (uint32_t i = 0; i < REPLAYS && ok; i++) {
        uint32_t set = (uint32_t)bw_rng_below(rng, INPUT_SETS);
        uint32_t variables[VARIABLES] = {(uint32_t)bw_rng_next(rng), (uint32_t)bw_rng_next(rng)};
        struct bw_replay replay = {world->inputs[set], INPUTS, variables, world->kernels ? VARIABLES : 0};
        ok = BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &world->rig.err), &world->rig.err);
        serial_run(world, set, variables);
        if (bw_rng_below(rng, 4) == 0) /* a write in between waits for what is in flight */
            space_init(world, world->buffers[i % BUFFERS], i % BUFFERS, rng);
    }
    if (ok)
        ok = BW_OK(bw_linked_graph_wait(linked, ticket, &world->rig.err), &world->rig.err);
    ok = world_compare(world) && ok;
    bw_linked_graph_destroy(linked);
    return ok;
}

static void fuzz(const char *name, const struct bw_ctx_config *config, const char *const *devices,
                 bool kernels, int rounds)
{
    struct bw_rng rng = bw_test_rng(name);
    struct world *world = calloc(1, sizeof *world);
    world->kernels = kernels;
    bool ok = rig_open(&world->rig, config, devices);
    for (int round = 0; round < rounds && ok; round++) {
        world_make(world, &rng);
        ok = graph_run(world, &rng);
        world_end(world);
    }
    rig_close(&world->rig);
    free(world);
}

static void one_host(void)
{
    fuzz("host", NULL, (const char *const[]){"host:0", NULL}, true, 40);
}

static void three_hosts(void)
{
    struct bw_ctx_config config = {.size = sizeof config, .host_threads = 2};
    fuzz("three hosts", &config, (const char *const[]){"host:0", "host:1", "host:2", NULL}, true, 40);
}

static void null_copies(void)
{
    fuzz("null", NULL, (const char *const[]){"null", "null", NULL}, false, 60);
}

static void mock_copies(void)
{
    struct bw_ctx_config config = {.size = sizeof config, .mock_threads = 1};
    fuzz("mock, copies", &config, (const char *const[]){"mockkfd+amd@gfx1100,vram=256M", NULL}, false, 10);
}

static void mock_kernels_and_host(void)
{
    struct bw_ctx_config config = {.size = sizeof config, .mock_threads = 1};
    fuzz("mock and host", &config, (const char *const[]){"mockkfd+amd@gfx1100,vram=256M", "host:0", NULL},
         true, 10);
}

static void timelines_roll_over_meanwhile(void)
{
    struct bw_ctx_config config = {.size = sizeof config, .timeline_start = UINT32_MAX - 40};
    fuzz("host from 2^32 - 41", &config, (const char *const[]){"host:0", "host:1", NULL}, true, 15);
    config.timeline_start = UINT64_MAX - 40;
    fuzz("host from 2^64 - 41", &config, (const char *const[]){"host:0", "null", NULL}, false, 15);
}

BW_TEST_MAIN("hcq fuzz", {"one_host", one_host}, {"three_hosts", three_hosts}, {"null_copies", null_copies},
             {"mock_copies", mock_copies}, {"mock_kernels_and_host", mock_kernels_and_host},
             {"timelines_roll_over_meanwhile", timelines_roll_over_meanwhile})
