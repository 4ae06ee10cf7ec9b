/* Goal: calls on tuples of devices: lanes run as calls of their own, tuples overlap in any way, and what
 * makes no sense is refused by name with the graph left as it was. Inputs of a replay that come from
 * elsewhere. */
#include "tests/unit/hcq/rig.h"

#include <errno.h>

#include "base/bits.h"
#include "hcq/plan.h"

enum { BYTES = 256, DEVICES = 4 };

static const char *const on_hosts[] = {"host:0", "host:1", "host:2", "host:3", NULL};

struct world {
    struct rig rig;
    struct bw_buffer *buffers[DEVICES];
    uint8_t shadow[DEVICES][BYTES];
};

static bool world_open(struct world *world, const char *const *names)
{
    bool ok = rig_open(&world->rig, NULL, names);
    for (uint32_t i = 0; i < world->rig.device_count && ok; i++) {
        world->buffers[i] = rig_buffer(&world->rig, i, BYTES, 0);
        for (uint32_t k = 0; k < BYTES; k++)
            world->shadow[i][k] = (uint8_t)(i * 50 + k);
        ok = world->buffers[i] &&
             BW_OK(bw_buffer_write(world->buffers[i], 0, world->shadow[i], BYTES, &world->rig.err),
                   &world->rig.err);
    }
    return ok;
}

static void world_close(struct world *world)
{
    for (uint32_t i = 0; i < world->rig.device_count; i++)
        bw_buffer_destroy(world->buffers[i]);
    rig_close(&world->rig);
}

/* What a lane of `mix` needs to stay in place. */
struct mix_lane {
    struct bw_argument arguments[5];
    struct bw_launch launch;
};

static struct bw_kernel_lane mix_lane(struct rig *rig, struct mix_lane *lane, uint32_t device,
                                      struct bw_range target, struct bw_range source, uint32_t salt)
{
    const struct bw_argument arguments[] = {
        argument_range(target, BW_ACCESS_READ | BW_ACCESS_WRITE), argument_range(source, BW_ACCESS_READ),
        argument_value(target.size_bytes), argument_value(source.size_bytes), argument_value(salt)};
    memcpy(lane->arguments, arguments, sizeof arguments);
    lane->launch = (struct bw_launch){.group_count = {{1, false}, {1, false}, {1, false}},
                                      .group_size = {bw_device_info(rig->devices[device])->wave_size, 1, 1},
                                      .arguments = lane->arguments,
                                      .argument_count = 5};
    return (struct bw_kernel_lane){rig_kernel(rig, device, "mix"), &lane->launch};
}

static struct bw_range part(const struct world *world, uint32_t buffer, uint64_t offset, uint64_t size_bytes)
{
    return (struct bw_range){world->buffers[buffer], 0, offset, size_bytes};
}

static bool run_and_compare(struct world *world, struct bw_graph *graph)
{
    struct rig *rig = &world->rig;
    uint8_t got[BYTES];
    uint64_t ticket;
    struct bw_linked_graph *linked = rig_link(rig, graph);
    bool ok = linked && BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) &&
              BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    for (uint32_t i = 0; i < rig->device_count && ok; i++)
        ok = BW_OK(bw_buffer_read(world->buffers[i], 0, got, BYTES, &rig->err), &rig->err) &&
             BW_BYTES(got, world->shadow[i], BYTES);
    bw_linked_graph_destroy(linked);
    return ok;
}

/* Random tuples, which overlap from call to call, beside copies from each device of a tuple to the next. */
static void overlapping_tuples_run_like_their_lanes(void)
{
    struct world *world = calloc(1, sizeof *world);
    struct bw_rng rng = bw_test_rng("tuples");
    if (!world_open(world, on_hosts))
        return;
    struct rig *rig = &world->rig;
    for (int round = 0; round < 30; round++) {
        struct bw_graph *graph = rig_graph(rig);
        for (int call = 0; call < 12; call++) {
            struct mix_lane lanes_made[DEVICES];
            struct bw_kernel_lane lanes[DEVICES];
            struct bw_copy_lane copies[DEVICES];
            uint32_t members[DEVICES], count = 0, salt = (uint32_t)bw_rng_below(&rng, 200);
            uint64_t tuple = 1 + bw_rng_below(&rng, 15);
            for (uint32_t i = 0; i < DEVICES; i++) {
                if (tuple >> i & 1)
                    members[count++] = i;
            }
            uint8_t before[DEVICES][BYTES];
            memcpy(before, world->shadow, sizeof before);
            for (uint32_t k = 0; k < count; k++) {
                uint32_t device = members[k], next = members[(k + 1) % count];
                lanes[k] = mix_lane(rig, &lanes_made[k], device, part(world, device, 10, 100),
                                    part(world, device, 50, 150), salt);
                copies[k] = (struct bw_copy_lane){rig->devices[device], part(world, next, 0, 64),
                                                  part(world, device, 128, 64)};
            }
            if (call % 2) {
                BW_OK(bw_graph_copy_lanes(graph, copies, count, &rig->err), &rig->err);
                for (uint32_t k = 0; k < count; k++)
                    memcpy(world->shadow[members[(k + 1) % count]], before[members[k]] + 128, 64);
            } else {
                BW_OK(bw_graph_kernel_lanes(graph, lanes, count, &rig->err), &rig->err);
                for (uint32_t k = 0; k < count; k++)
                    mix_run(world->shadow[members[k]] + 10, 100, world->shadow[members[k]] + 50, 150, salt);
            }
        }
        if (!run_and_compare(world, graph))
            break;
    }
    world_close(world);
    free(world);
}

static void lanes_that_meet_are_refused(void)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world_open(world, on_hosts))
        return;
    struct rig *rig = &world->rig;
    struct bw_graph *graph = rig_graph(rig);
    const struct bw_copy_lane writes_meet[] = {
        {rig->devices[0], part(world, 2, 0, 64), part(world, 0, 0, 64)},
        {rig->devices[1], part(world, 2, 63, 64), part(world, 1, 0, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, writes_meet, 2, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "call 0: lane 0 writes what lane 1 writes") ||
            error_says(&rig->err, "call 0: lane 1 writes what lane 0 writes"));
    BW_TRUE(error_says(&rig->err, "1 bytes in common"));
    const struct bw_copy_lane write_meets_read[] = {
        {rig->devices[0], part(world, 2, 0, 64), part(world, 0, 0, 64)},
        {rig->devices[1], part(world, 3, 0, 64), part(world, 3, 100, 64)},
        {rig->devices[1], part(world, 1, 0, 64), part(world, 2, 10, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, write_meets_read, 3, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "lane 0 writes what lane 2 reads"));
    struct bw_range inputs[] = {range_input(0, 0, 64), range_input(0, 32, 64)};
    const struct bw_copy_lane inputs_meet[] = {{rig->devices[0], inputs[0], part(world, 0, 0, 64)},
                                               {rig->devices[0], inputs[1], part(world, 0, 0, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, inputs_meet, 2, &rig->err), -EINVAL);
    /* What only is read may be read by all. */
    const struct bw_copy_lane broadcast[] = {{rig->devices[0], part(world, 1, 0, 64), part(world, 0, 0, 64)},
                                             {rig->devices[0], part(world, 2, 0, 64), part(world, 0, 0, 64)}};
    BW_OK(bw_graph_copy_lanes(graph, broadcast, 2, &rig->err), &rig->err);
    memcpy(world->shadow[1], world->shadow[0], 64);
    memcpy(world->shadow[2], world->shadow[0], 64);
    BW_EQ(graph->calls.count, 2);
    BW_EQ(graph->input_count, 0);
    BW_EQ(graph->held.count, 4);
    run_and_compare(world, graph);
    world_close(world);
    free(world);
}

/* The whole text of the error stands behind the lane's number. */
static void a_long_error_of_a_lane_is_whole(void)
{
    struct world *world = calloc(1, sizeof *world);
    char name[180], expected[sizeof world->rig.err.what];
    if (!world_open(world, on_hosts))
        return;
    struct rig *rig = &world->rig;
    struct bw_graph *graph = rig_graph(rig);
    struct bw_kernel *kernel = rig_kernel(rig, 0, "mix");
    const char *own_name = kernel->info.name;
    memset(name, 'k', sizeof name - 1);
    name[sizeof name - 1] = 0;
    kernel->info.name = name;
    struct bw_launch launch = {.argument_count = 0};
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    snprintf(expected, sizeof expected, "lane 0: %.240s", rig->err.what);
    BW_TRUE(strlen(expected) > sizeof name);
    BW_EQ(bw_graph_kernel_lanes(graph, &(struct bw_kernel_lane){kernel, &launch}, 1, &rig->err), -EINVAL);
    BW_STR(rig->err.what, expected);
    kernel->info.name = own_name;
    bw_graph_destroy(graph);
    world_close(world);
    free(world);
}

static void a_bad_lane_is_named_and_takes_the_others_back(void)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world_open(world, on_hosts))
        return;
    struct rig *rig = &world->rig;
    struct bw_graph *graph = rig_graph(rig);
    const struct bw_copy_lane too_long[] = {
        {rig->devices[0], range_input(3, 0, 64), part(world, 0, 0, 64)},
        {rig->devices[1], part(world, 2, 0, 64), part(world, 1, 200, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, too_long, 2, &rig->err), -ERANGE);
    BW_TRUE(error_says(&rig->err, "lane 1:"));
    const struct bw_copy_lane itself[] = {{rig->devices[0], part(world, 0, 0, 64), part(world, 0, 63, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, itself, 1, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "lane 0:"));
    const struct bw_copy_lane nowhere[] = {{NULL, part(world, 0, 0, 64), part(world, 1, 0, 64)}};
    BW_EQ(bw_graph_copy_lanes(graph, nowhere, 1, &rig->err), -EINVAL);
    BW_EQ(bw_graph_copy_lanes(graph, nowhere, 0, &rig->err), -EINVAL);
    BW_EQ(bw_graph_copy_lanes(graph, nowhere, BW_GRAPH_LANES_MAX + 1, &rig->err), -EINVAL);
    BW_EQ(graph->calls.count, 0);
    BW_EQ(graph->input_count, 0);
    BW_EQ(graph->held.count, 0);
    /* Zero bytes do nothing, also in a lane, also of one place. */
    const struct bw_copy_lane nothing[] = {{rig->devices[0], part(world, 1, 0, 0), part(world, 0, 0, 0)},
                                           {rig->devices[1], part(world, 1, 0, 0), part(world, 1, 0, 0)},
                                           {rig->devices[1], part(world, 2, 256, 0), part(world, 1, 256, 0)}};
    BW_OK(bw_graph_copy_lanes(graph, nothing, 3, &rig->err), &rig->err);
    BW_EQ(graph->calls.count, 0);
    run_and_compare(world, graph);
    world_close(world);
    free(world);
}

static void tuples_are_of_one_family_and_name_each_device_once(void)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world_open(world, (const char *const[]){"host:0", "host:1", "null", NULL}))
        return;
    struct rig *rig = &world->rig;
    struct mix_lane made[3];
    struct bw_kernel_lane lanes[3];
    for (uint32_t i = 0; i < 3; i++)
        lanes[i] = mix_lane(rig, &made[i], i, part(world, i, 0, 64), part(world, i, 64, 64), 1);
    struct bw_graph *graph = rig_graph(rig);
    BW_EQ(bw_graph_kernel_lanes(graph, lanes, 3, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "lane 2 is of another family"));
    BW_TRUE(error_says(&rig->err, "expected host x86_64, observed null x86_64 (null)"));
    struct bw_kernel_lane twice[] = {lanes[0], lanes[1], lanes[0]}; /* as if there were three */
    BW_EQ(bw_graph_kernel_lanes(graph, twice, 3, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "host:0 is lane 0 and lane 2"));
    BW_EQ(graph->calls.count, 0);
    BW_OK(bw_graph_kernel_lanes(graph, lanes, 2, &rig->err), &rig->err);
    for (uint32_t i = 0; i < 2; i++)
        mix_run(world->shadow[i], 64, world->shadow[i] + 64, 64, 1);
    run_and_compare(world, graph);
    world_close(world);
    free(world);
}

static void devices_that_do_not_exist_are_refused(void)
{
    struct bw_ctx *ctx;
    struct bw_device *devices[8];
    uint32_t count = 7;
    struct bw_err err = {0};
    BW_OK(bw_ctx_create(NULL, &ctx, &err), &err);
    BW_EQ(bw_device_open_list(ctx, "mockkfd+amd:2@gfx1100*2,vram=16M", devices, 8, &count, &err), -EINVAL);
    BW_TRUE(error_says(&err, "index 2 of a machine with 2 GPUs"));
    BW_EQ(count, 0);
    BW_EQ(bw_device_open_list(ctx, "host:0,mockkfd+amd@gfx1100*8", devices, 8, &count, &err), -E2BIG);
    BW_EQ(bw_device_open_list(ctx, "host:0,host:1,host:9999", devices, 8, &count, &err), -ENODEV);
    BW_EQ(count, 0); /* what was open is closed again */
    BW_OK(bw_device_open_list(ctx, "host:3,mockkfd+amd@gfx1100*2,vram=16M,null", devices, 8, &count, &err),
          &err);
    BW_EQ(count, 4);
    BW_STR(bw_device_info(devices[2])->name, "mockkfd+amd:1@gfx1100*2,vram=16M");
    while (count)
        bw_device_close(devices[--count]);
    bw_ctx_destroy(ctx);
}

/* Both ends of a copy given at each replay, on two devices. */
static void inputs_of_two_devices(void)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world_open(world, (const char *const[]){"host:0", "mockkfd+amd@gfx1100,vram=64M", NULL}))
        return;
    struct rig *rig = &world->rig;
    struct bw_graph *graph = rig_graph(rig);
    uint8_t got[BYTES];
    uint64_t ticket;
    BW_OK(bw_graph_input(graph, 1, rig->devices[1], &rig->err), &rig->err);
    BW_OK(bw_graph_input(graph, 1, rig->devices[1], &rig->err), &rig->err);
    BW_EQ(bw_graph_input(graph, 1, rig->devices[0], &rig->err), -EBUSY);
    BW_EQ(bw_graph_input(graph, BW_GRAPH_INPUTS_MAX, rig->devices[0], &rig->err), -EINVAL);
    BW_EQ(bw_graph_input(graph, 2, NULL, &rig->err), -EINVAL);
    BW_OK(
        bw_graph_copy(graph, rig->devices[0], range_input(1, 0, BYTES), range_input(0, 0, BYTES), &rig->err),
        &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    struct bw_buffer *inputs[] = {world->buffers[0], world->buffers[1]};
    struct bw_replay replay = {.inputs = inputs, .input_count = 2};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(world->buffers[1], 0, got, BYTES, &rig->err), &rig->err);
    BW_BYTES(got, world->shadow[0], BYTES);
    struct bw_buffer *swapped[] = {world->buffers[1], world->buffers[0]}; /* VRAM, where the CPU is to read */
    replay.inputs = swapped;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EOPNOTSUPP);
    struct bw_buffer *small = NULL;
    BW_OK(bw_buffer_create(rig->devices[0], BYTES - 1, 0, &small, &rig->err), &rig->err);
    struct bw_buffer *short_one[] = {small, world->buffers[1]};
    replay.inputs = short_one;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -ERANGE);
    BW_TRUE(error_says(&rig->err, "replay input 0"));
    replay.input_count = 1;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    replay = (struct bw_replay){.inputs = inputs, .input_count = 2}; /* as good as before */
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_buffer_destroy(small);
    bw_linked_graph_destroy(linked);
    world_close(world);
    free(world);
}

BW_TEST_MAIN("lanes", {"overlapping_tuples_run_like_their_lanes", overlapping_tuples_run_like_their_lanes},
             {"lanes_that_meet_are_refused", lanes_that_meet_are_refused},
             {"a_long_error_of_a_lane_is_whole", a_long_error_of_a_lane_is_whole},
             {"a_bad_lane_is_named_and_takes_the_others_back", a_bad_lane_is_named_and_takes_the_others_back},
             {"tuples_are_of_one_family_and_name_each_device_once",
              tuples_are_of_one_family_and_name_each_device_once},
             {"devices_that_do_not_exist_are_refused", devices_that_do_not_exist_are_refused},
             {"inputs_of_two_devices", inputs_of_two_devices})
