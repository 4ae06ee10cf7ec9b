/* Goal: transfers, replays in flight, timelines that roll over and forks, on mock GPUs with real concurrency.
 * Hangs, faults and what runs out: tests/scenario/hcq_*. */
#include "tests/unit/hcq/mock_rig.h"

#include <sys/wait.h>
#include <unistd.h>

static void transfers_of_any_size_and_alignment(void)
{
    enum { BYTES = 9 << 20, GUARD = 16 };
    struct machine machine;
    struct bw_rng rng = bw_test_rng("transfers");
    if (!machine_open(&machine, RIG_THREADED, 1, 64 << 20, 0))
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
        if (!machine_open(&machine, RIG_THREADED, 2, 64 << 20, starts[s]))
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

static void uncached_memory_is_the_hosts(void)
{
    static const uint32_t alone[] = {BW_BUFFER_UNCACHED, BW_BUFFER_UNCACHED | BW_BUFFER_EXECUTABLE};
    struct machine machine;
    if (!machine_open(&machine, RIG_THREADED, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = NULL;
    for (int i = 0; i < 2; i++) {
        BW_EQ(bw_buffer_create(rig->devices[0], 64, alone[i], &buffer, &rig->err), -EINVAL);
        BW_STR(rig->err.what, "buffer with BW_BUFFER_UNCACHED in device memory");
    }
    buffer = rig_buffer(rig, 0, 64, BW_BUFFER_HOST | BW_BUFFER_UNCACHED);
    BW_TRUE(bw_buffer_map(buffer) != NULL);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void a_forked_child_harms_nothing(void)
{
    struct machine machine;
    int status = 0;
    if (!machine_open(&machine, RIG_THREADED, 1, 64 << 20, 0))
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
    BW_EQ(bw_test_wait(child, &status), child);
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
    if (!machine_open(&machine, RIG_THREADED, 1, 64 << 20, 0))
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

/* Virtual time that a chain of copies takes on engines of that jitter. */
static uint64_t chain_ns(uint64_t jitter)
{
    enum { LINKS = 200 };
    struct machine machine;
    struct bw_mock_config mock = {.cu_count = 2, .vram_bytes = 64 << 20, .jitter = jitter};
    if (!machine_open_config(&machine, RIG_STEPPED, mock, 0))
        return 0;
    struct rig *rig = &machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    struct bw_buffer *buffer = rig_buffer(rig, 0, (LINKS + 1) * 64, 0);
    for (uint32_t i = 0; i < LINKS; i++)
        BW_OK(bw_graph_copy(graph, rig->devices[0], (struct bw_range){buffer, 0, (i + 1) * 64, 64},
                            (struct bw_range){buffer, 0, i * 64, 64}, &rig->err),
              &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    uint64_t ticket = 0, begin_ns = machine.sys->ops->clock_ns(machine.sys);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    uint64_t end_ns = machine.sys->ops->clock_ns(machine.sys);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
    return end_ns - begin_ns;
}

static void jitter_makes_engines_slow_and_its_seed_how_slow(void)
{
    uint64_t fast_ns = chain_ns(0), one_ns = chain_ns(1), two_ns = chain_ns(2);
    BW_TRUE(fast_ns > 0 && one_ns > fast_ns && two_ns > fast_ns);
    BW_TRUE(one_ns != two_ns);
    BW_EQ(chain_ns(1), one_ns);
}

/* Rings and doorbells alone, or one ioctl for all that a queue is given: what hcq promises of replays. */
static void a_replay_makes_no_call_or_one(void)
{
    enum { BYTES = 64, REPLAYS = 3 /* as many as are in flight without a wait */ };
    struct machine machine;
    uint64_t ticket = 0;
    if (!machine_open(&machine, RIG_THREADED, 1, 64 << 20, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    struct bw_buffer *a = rig_buffer(rig, 0, BYTES, 0), *b = rig_buffer(rig, 0, BYTES, 0);
    for (int i = 0; i < 6; i++)
        BW_OK(mix_add(rig, graph, 0, range_all(i % 2 ? a : b), range_all(i % 2 ? b : a), 5, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    uint64_t before = __atomic_load_n(&machine.sys->calls, __ATOMIC_RELAXED);
    for (int i = 0; i < REPLAYS; i++)
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_EQ(__atomic_load_n(&machine.sys->calls, __ATOMIC_RELAXED) - before, WAY_EITHER(0, REPLAYS));
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    machine_close(&machine);
}

BW_TEST_MAIN("hcq on the mock",
             {"jitter_makes_engines_slow_and_its_seed_how_slow",
              jitter_makes_engines_slow_and_its_seed_how_slow},
             {"replays_in_flight_on_the_mock", replays_in_flight_on_the_mock},
             {"a_replay_makes_no_call_or_one", a_replay_makes_no_call_or_one},
             {"transfers_of_any_size_and_alignment", transfers_of_any_size_and_alignment},
             {"timelines_roll_over_on_two_gpus", timelines_roll_over_on_two_gpus},
             {"uncached_memory_is_the_hosts", uncached_memory_is_the_hosts},
             {"a_forked_child_harms_nothing", a_forked_child_harms_nothing})
