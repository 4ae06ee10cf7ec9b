/* Goal: hangs, faults, exhausted memory and everything else that a GPU does to its user, on the mock: named,
 * survived, recovered from. */
#include "tests/unit/hcq/rig.h"

#include <bellwire/mock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"

/* The deadline where a hang is provoked: above what a loaded machine keeps a thread waiting. */
#define WAIT_NS 1000000000ull

/* A mock machine with `gpus` GPUs as the context's operating system, so that faults can be put into it. */
struct machine {
    struct bw_sys *sys;
    struct rig rig;
};

static bool machine_open(struct machine *machine, uint32_t gpus, uint64_t vram_bytes, uint64_t timeline_start)
{
    static const char *const names[] = {"kfd+amd:0", "kfd+amd:1"};
    const char *opened[3] = {names[0], gpus > 1 ? names[1] : NULL, NULL};
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = gpus,
                                  .cu_count = 2,
                                  .vram_bytes = vram_bytes,
                                  .threads = 1};
    struct bw_err err;
    if (!BW_OK(bw_mock_kfd_create(&mock, &machine->sys, &err), &err))
        return false;
    struct bw_ctx_config config = {
        .size = sizeof config, .sys = machine->sys, .wait_ns = WAIT_NS, .timeline_start = timeline_start};
    return rig_open(&machine->rig, &config, opened);
}

static void machine_close(struct machine *machine)
{
    rig_close(&machine->rig);
    bw_sys_destroy(machine->sys);
}

/* One launch of one wave, waited for. */
static int run(struct rig *rig, uint32_t device, const char *name, const struct bw_argument *arguments,
               uint32_t count)
{
    struct bw_graph *graph = rig_graph(rig);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = count};
    uint64_t ticket;
    int rc = bw_graph_kernel(graph, rig_kernel(rig, device, name), &launch, &rig->err);
    struct bw_linked_graph *linked = rc ? NULL : rig_link(rig, graph);
    if (!linked)
        return -EPROTO;
    rc = bw_linked_graph_replay(linked, NULL, &ticket, &rig->err);
    if (!rc)
        rc = bw_linked_graph_wait(linked, ticket, &rig->err);
    bw_linked_graph_destroy(linked);
    return rc;
}

static void mix_works(struct rig *rig, uint32_t device)
{
    enum { BYTES = 1000 };
    uint8_t target[BYTES], source[BYTES], got[BYTES];
    struct bw_buffer *a = rig_buffer(rig, device, BYTES, 0), *b = rig_buffer(rig, device, BYTES, 0);
    if (!a || !b)
        return;
    for (int i = 0; i < BYTES; i++) {
        target[i] = (uint8_t)(i * 3);
        source[i] = (uint8_t)(i + 50);
    }
    struct bw_argument arguments[] = {argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE),
                                      argument_range(range_all(b), BW_ACCESS_READ), argument_value(BYTES),
                                      argument_value(BYTES), argument_value(9)};
    BW_OK(bw_buffer_write(a, 0, target, BYTES, &rig->err), &rig->err);
    BW_OK(bw_buffer_write(b, 0, source, BYTES, &rig->err), &rig->err);
    BW_OK(run(rig, device, "mix", arguments, 5), &rig->err);
    BW_OK(bw_buffer_read(a, 0, got, BYTES, &rig->err), &rig->err);
    mix_run(target, BYTES, source, BYTES, 9);
    BW_BYTES(got, target, BYTES);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
}

static bool error_says(const struct bw_err *err, const char *text)
{
    char line[600];
    bw_err_format(err, line, sizeof line);
    if (strstr(line, text))
        return true;
    printf("\n    not in the error: %s\n", line);
    return false;
}

static void an_endless_kernel_is_named(void)
{
    struct machine machine;
    if (!machine_open(&machine, 2, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
    for (int round = 0; round < 2; round++) {
        int rc = run(rig, 0, "endless", &argument, 1);
        BW_TRUE(rc == -ETIMEDOUT || rc == -EIO);
        BW_TRUE(error_says(&rig->err, "kfd+amd:0@gfx1100"));
        BW_TRUE(error_says(&rig->err, "endless"));
        BW_TRUE(error_says(&rig->err, "compute"));
        BW_EQ(bw_device_synchronize(rig->devices[0], &rig->err), rc);
        mix_works(rig, 1); /* the other GPU does not mind */
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        mix_works(rig, 0);
    }
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void a_store_to_the_wrong_place_is_named(void)
{
    struct machine machine;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0), *freed = rig_buffer(rig, 0, 1 << 20, 0);
    uint64_t address = bw_buffer_address(buffer);
    const struct {
        uint64_t address;
        const char *text;
    } cases[] = {{0, "0x0"}, {address + (16 << 20) + 64, "buffer"}, {0x123456789000, "0x123456789000"}};
    bw_buffer_destroy(freed);
    for (uint32_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_argument arguments[] = {argument_value(cases[i].address), argument_value(77)};
        BW_EQ(run(rig, 0, "store_at", arguments, 2), -EIO);
        BW_TRUE(error_says(&rig->err, "store_at"));
        BW_TRUE(error_says(&rig->err, cases[i].text));
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        mix_works(rig, 0);
    }
    uint32_t got = 0;
    struct bw_argument right[] = {argument_value(address + 8), argument_value(77)}; /* where it may */
    BW_OK(run(rig, 0, "store_at", right, 2), &rig->err);
    BW_OK(bw_buffer_read(buffer, 8, &got, 4, &rig->err), &rig->err);
    BW_EQ(got, 77);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void an_illegal_instruction_is_named(void)
{
    struct machine machine;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
    BW_EQ(run(rig, 0, "illegal", &argument, 1), -EIO);
    BW_TRUE(error_says(&rig->err, "illegal"));
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    mix_works(rig, 0);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void engines_that_stand_still_are_named(void)
{
    static const struct {
        const char *fault, *queue;
    } cases[] = {{"sdma0:hang,count=1000", "copy 0"},
                 {"doorbell:drop,count=1000", "0"},
                 {"mec:hang,count=1000", "compute 0"}};
    uint8_t bytes[100] = {1};
    for (uint32_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct machine machine;
        if (!machine_open(&machine, 1, 64 << 20, 0))
            return;
        struct rig *rig = &machine.rig;
        struct bw_buffer *a = rig_buffer(rig, 0, sizeof bytes, 0), *b = rig_buffer(rig, 0, sizeof bytes, 0);
        struct bw_argument arguments[] = {argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE),
                                          argument_range(range_all(b), BW_ACCESS_READ), argument_value(100),
                                          argument_value(100), argument_value(9)};
        BW_OK(bw_buffer_write(a, 0, bytes, sizeof bytes, &rig->err), &rig->err);
        BW_OK(bw_mock_fault_add(machine.sys, cases[i].fault, &rig->err), &rig->err);
        int rc = bw_buffer_write(b, 0, bytes, sizeof bytes, &rig->err);
        if (!rc)
            rc = run(rig, 0, "mix", arguments, 5);
        BW_TRUE(rc == -ETIMEDOUT || rc == -EIO);
        BW_TRUE(error_says(&rig->err, cases[i].queue));
        bw_mock_fault_clear(machine.sys);
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        mix_works(rig, 0);
        bw_buffer_destroy(a);
        bw_buffer_destroy(b);
        machine_close(&machine);
    }
}

static void vram_runs_out_and_comes_back(void)
{
    enum { BUFFERS_MAX = 200 };
    struct machine machine;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffers[BUFFERS_MAX];
    for (int round = 0; round < 3; round++) {
        uint32_t count = 0;
        int rc = 0;
        while (count < BUFFERS_MAX && !rc) {
            rc =
                bw_buffer_create(rig->devices[0], (uint64_t)(1 + round) << 20, 0, &buffers[count], &rig->err);
            count += rc == 0;
        }
        BW_EQ(rc, -ENOMEM);
        BW_TRUE(count * (1u + (uint32_t)round) >= 40); /* most of 64 MiB */
        BW_TRUE(error_says(&rig->err, "kfd+amd:0"));
        for (uint32_t i = 0; i < count; i++) /* other sizes in the next round: the cache has to give way */
            bw_buffer_destroy(buffers[i]);
        mix_works(rig, 0);
    }
    machine_close(&machine);
}

static void transfers_of_any_size_and_alignment(void)
{
    enum { BYTES = 9 << 20, GUARD = 16 };
    struct machine machine;
    struct bw_rng rng = bw_test_rng("transfers");
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    uint8_t *model = malloc(BYTES), *got = malloc(BYTES + GUARD), *data = malloc(BYTES);
    struct bw_buffer *buffer = rig_buffer(rig, 0, BYTES, 0);
    BW_TRUE(bw_buffer_map(buffer) == NULL); /* device memory */
    for (uint32_t i = 0; i < BYTES; i++)
        model[i] = (uint8_t)bw_rng_next(&rng);
    BW_OK(bw_buffer_write(buffer, 0, model, BYTES, &rig->err), &rig->err); /* three staging chunks */
    for (int i = 0; i < 40; i++) {
        uint64_t offset = bw_rng_below(&rng, BYTES), size_bytes = bw_rng_below(&rng, i % 4 ? 5000 : BYTES);
        size_bytes = size_bytes < BYTES - offset ? size_bytes : BYTES - offset;
        memset(data, i, size_bytes);
        memcpy(model + offset, data, size_bytes);
        BW_OK(bw_buffer_write(buffer, offset, data, size_bytes, &rig->err), &rig->err);
        uint64_t from = bw_rng_below(&rng, BYTES), length = bw_rng_below(&rng, i % 4 ? 5000 : BYTES);
        length = length < BYTES - from ? length : BYTES - from;
        memset(got, 0xee, length + GUARD);
        BW_OK(bw_buffer_read(buffer, from, got, length, &rig->err), &rig->err);
        if (!BW_BYTES(got, model + from, length) || !BW_EQ(got[length], 0xee))
            break;
    }
    BW_OK(bw_buffer_read(buffer, 0, got, BYTES, &rig->err), &rig->err);
    BW_BYTES(got, model, BYTES);
    BW_EQ(bw_buffer_read(buffer, BYTES, got, 1, &rig->err), -ERANGE);
    BW_OK(bw_buffer_read(buffer, BYTES, got, 0, &rig->err), &rig->err);
    free(model);
    free(got);
    free(data);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

/* Two GPUs and four queues, each of whose timelines wraps its low word again and again. */
static void timelines_roll_over_on_two_gpus(void)
{
    enum { BYTES = 300, ROUNDS = 30 };
    static const uint64_t starts[] = {UINT32_MAX - 5ull, UINT64_MAX - 40};
    for (uint32_t s = 0; s < BW_COUNT_OF(starts); s++) {
        struct machine machine;
        uint8_t model[2][BYTES], got[BYTES];
        uint64_t ticket = 0;
        if (!machine_open(&machine, 2, 64 << 20, starts[s]))
            return;
        struct rig *rig = &machine.rig;
        struct bw_buffer *a = rig_buffer(rig, 0, BYTES, 0), *b = rig_buffer(rig, 1, BYTES, 0);
        struct bw_graph *graph = rig_graph(rig);
        for (int i = 0; i < BYTES; i++) {
            model[0][i] = (uint8_t)i;
            model[1][i] = (uint8_t)(3 * i);
        }
        BW_OK(bw_buffer_write(a, 0, model[0], BYTES, &rig->err), &rig->err);
        BW_OK(bw_buffer_write(b, 0, model[1], BYTES, &rig->err), &rig->err);
        BW_OK(mix_add(rig, graph, 0, range_all(a), range_all(a), 1, -1), &rig->err);
        BW_OK(bw_graph_copy(graph, rig->devices[0], range_all(b), range_all(a), &rig->err), &rig->err);
        BW_OK(mix_add(rig, graph, 1, range_all(b), range_all(b), 2, -1), &rig->err);
        BW_OK(bw_graph_copy(graph, rig->devices[1], range_all(a), range_all(b), &rig->err), &rig->err);
        struct bw_linked_graph *linked = rig_link(rig, graph);
        for (int round = 0; round < ROUNDS && linked; round++) {
            if (!BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err))
                break;
            mix_run(model[0], BYTES, model[0], BYTES, 1);
            memcpy(model[1], model[0], BYTES);
            mix_run(model[1], BYTES, model[1], BYTES, 2);
            memcpy(model[0], model[1], BYTES);
        }
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
        BW_OK(bw_buffer_read(a, 0, got, BYTES, &rig->err), &rig->err);
        BW_BYTES(got, model[0], BYTES);
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(a);
        bw_buffer_destroy(b);
        machine_close(&machine);
    }
}

static void scratch_may_grow_after_a_graph_was_linked(void)
{
    struct machine machine;
    uint32_t first[32], again[32];
    uint64_t ticket;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, sizeof first, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(7)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "scratch_16"), &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, first, sizeof first, &rig->err), &rig->err);
    if (!BW_OK(run(rig, 0, "scratch_1024", arguments, 2), &rig->err)) {
        char text[400];
        bw_mock_last_error(machine.sys, text, sizeof text);
        printf("    mock: %s\n", text);
    }
    for (uint32_t lane = 0; lane < 32; lane++) {
        uint32_t memory[1024], sum = 0;
        for (uint32_t i = 0; i < 1024; i++)
            memory[i * 7 % 1024] = i + lane;
        for (uint32_t i = 0; i < 1024; i++)
            sum = sum * 3 + memory[i];
        if (!BW_OK(bw_buffer_read(out, lane * 4, &again[lane], 4, &rig->err), &rig->err) ||
            !BW_EQ(again[lane], sum))
            break;
    }
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(out, 0, again, sizeof again, &rig->err), &rig->err);
    BW_BYTES(again, first, sizeof first);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(out);
    machine_close(&machine);
}

static void grids_past_their_limit_are_refused(void)
{
    struct machine machine;
    uint64_t ticket;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    const uint32_t groups_max = UINT32_MAX / 32; /* work-items in 32 bits */
    struct bw_argument arguments[] = {argument_value(0), argument_value(0)};
    struct bw_launch launch = {.group_count = {{groups_max + 1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_kernel *kernel = rig_kernel(rig, 0, "store_at");
    struct bw_graph *graph = rig_graph(rig);
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    BW_TRUE(error_says(&rig->err, "2^32-1"));
    launch.group_size[0] = 2048; /* more than a workgroup holds */
    launch.group_count[0].value = 1;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig->err), -EINVAL);
    launch.group_size[0] = 32;
    launch.group_count[0] = (struct bw_dimension){0, true};
    BW_OK(bw_graph_kernel(graph, kernel, &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    uint32_t groups = groups_max + 1;
    struct bw_replay replay = {.variables = &groups, .variable_count = 1};
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    groups = 0;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), -EINVAL);
    bw_linked_graph_destroy(linked);
    machine_close(&machine);
}

static void a_forked_child_harms_nothing(void)
{
    struct machine machine;
    int status = 0;
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 100, 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        uint8_t byte = 1;
        bool ok = bw_buffer_write(buffer, 0, &byte, 1, NULL) == -ECHILD &&
                  bw_device_synchronize(rig->devices[0], NULL) == -ECHILD;
        bw_buffer_destroy(buffer);
        rig_close(rig);
        _exit(ok ? 7 : 8);
    }
    BW_EQ(waitpid(child, &status, 0), child);
    BW_TRUE(WIFEXITED(status));
    BW_EQ(WEXITSTATUS(status), 7);
    mix_works(rig, 0);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void replays_in_flight_on_the_mock(void)
{
    enum { BYTES = 64, SETS = 5, REPLAYS = 40 };
    struct machine machine;
    uint8_t model[SETS][BYTES], got[BYTES];
    uint64_t ticket = 0;
    struct bw_buffer *inputs[SETS];
    if (!machine_open(&machine, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    struct bw_buffer *sum = rig_buffer(rig, 0, BYTES, 0);
    uint8_t total[BYTES] = {0};
    BW_OK(bw_buffer_write(sum, 0, total, BYTES, &rig->err), &rig->err);
    BW_OK(mix_add(rig, graph, 0, range_all(sum), range_input(0, 0, BYTES), 0, 0), &rig->err);
    BW_OK(mix_add(rig, graph, 0, range_input(0, 0, BYTES), range_all(sum), 3, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    for (int i = 0; i < SETS; i++) {
        memset(model[i], i + 1, BYTES);
        inputs[i] = rig_buffer(rig, 0, BYTES, 0);
        BW_OK(bw_buffer_write(inputs[i], 0, model[i], BYTES, &rig->err), &rig->err);
    }
    for (uint32_t i = 0; i < REPLAYS; i++) {
        struct bw_replay replay = {
            .inputs = &inputs[i % SETS], .input_count = 1, .variables = &i, .variable_count = 1};
        if (!BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig->err), &rig->err))
            break;
        mix_run(total, BYTES, model[i % SETS], BYTES, i);
        mix_run(model[i % SETS], BYTES, total, BYTES, 3);
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(sum, 0, got, BYTES, &rig->err), &rig->err);
    BW_BYTES(got, total, BYTES);
    for (int i = 0; i < SETS; i++) {
        BW_OK(bw_buffer_read(inputs[i], 0, got, BYTES, &rig->err), &rig->err);
        BW_BYTES(got, model[i], BYTES);
        bw_buffer_destroy(inputs[i]);
    }
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(sum);
    machine_close(&machine);
}

BW_TEST_MAIN("hcq on the mock", {"replays_in_flight_on_the_mock", replays_in_flight_on_the_mock},
             {"transfers_of_any_size_and_alignment", transfers_of_any_size_and_alignment},
             {"timelines_roll_over_on_two_gpus", timelines_roll_over_on_two_gpus},
             {"scratch_may_grow_after_a_graph_was_linked", scratch_may_grow_after_a_graph_was_linked},
             {"vram_runs_out_and_comes_back", vram_runs_out_and_comes_back},
             {"an_endless_kernel_is_named", an_endless_kernel_is_named},
             {"a_store_to_the_wrong_place_is_named", a_store_to_the_wrong_place_is_named},
             {"an_illegal_instruction_is_named", an_illegal_instruction_is_named},
             {"engines_that_stand_still_are_named", engines_that_stand_still_are_named},
             {"grids_past_their_limit_are_refused", grids_past_their_limit_are_refused},
             {"a_forked_child_harms_nothing", a_forked_child_harms_nothing})
