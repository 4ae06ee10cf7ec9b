/* Goal: what replays cost and what they refuse: no system call and no allocation on the way to the doorbell,
 * K in flight, overlapping inputs, variables, timelines that roll over, profiles. */
#include "bench/allocations.c"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "tests/unit/hcq/rig.h"

enum { BYTES = 256, NODES = 50 };

static const char *const on_null[] = {"null", NULL}, *const on_host[] = {"host:0", NULL};

/* A chain of kernels over NODES + 1 inputs, or with a copy between each two kernels. */
static struct bw_linked_graph *chain_link(struct rig *rig, bool copies)
{
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < NODES; i++) {
        struct bw_range source = range_input(i, 0, BYTES), target = range_input(i + 1, 0, BYTES);
        if (copies && i % 2)
            BW_OK(bw_graph_copy(graph, rig->devices[0], target, source, &rig->err), &rig->err);
        else
            BW_OK(mix_add(rig, graph, 0, target, source, i, -1), &rig->err);
    }
    return rig_link(rig, graph);
}

static void inputs_make(struct rig *rig, struct bw_buffer **inputs)
{
    for (uint32_t i = 0; i <= NODES; i++)
        inputs[i] = rig_buffer(rig, 0, BYTES, 0);
}

static void inputs_end(struct bw_buffer **inputs)
{
    for (uint32_t i = 0; i <= NODES; i++)
        bw_buffer_destroy(inputs[i]);
}

/* From here on every system call but exit_group kills the process. */
static int system_calls_forbid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {BW_COUNT_OF(filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

enum { CHILD_OK = 7, CHILD_NO_SECCOMP = 8, CHILD_FAILED = 9 };

/* Replays with other inputs each time, waits included, under the filter. Ends the process. */
static void replays_in_silence(bool copies)
{
    struct rig rig;
    struct bw_buffer *inputs[2][NODES + 1];
    int status = CHILD_OK;
    if (!rig_open(&rig, NULL, on_null))
        _exit(CHILD_FAILED);
    struct bw_linked_graph *linked = chain_link(&rig, copies);
    inputs_make(&rig, inputs[0]);
    inputs_make(&rig, inputs[1]);
    struct bw_replay first = {.inputs = inputs[0], .input_count = NODES + 1};
    uint64_t ticket, allocations = 0;
    if (!linked ||
        bw_linked_graph_replay(linked, &first, &ticket, NULL)) /* the first one after a program was loaded */
        _exit(CHILD_FAILED);
    if (system_calls_forbid())
        _exit(CHILD_NO_SECCOMP);
    uint64_t allocations_before = bw_bench_allocations();
    for (uint32_t i = 0; i < 100; i++) {
        struct bw_replay replay = {.inputs = inputs[i % 2], .input_count = NODES + 1};
        if (bw_linked_graph_replay(linked, &replay, &ticket, NULL) ||
            bw_linked_graph_wait(linked, ticket, NULL))
            status = CHILD_FAILED;
    }
    allocations = bw_bench_allocations() - allocations_before;
    syscall(SYS_exit_group, allocations ? CHILD_FAILED : status);
}

static void replay_makes_no_system_call_and_no_allocation(void)
{
    for (int copies = 0; copies < 2; copies++) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            replays_in_silence(copies);
        BW_EQ(bw_test_wait(child, &status), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_NO_SECCOMP) {
            printf(" [this kernel refuses seccomp filters: not shown] ");
            return;
        }
        BW_TRUE(WIFEXITED(status)); /* SIGSYS: a system call */
        BW_EQ(WEXITSTATUS(status), CHILD_OK);
    }
}

static void a_chain_costs_what_it_must(void)
{
    struct rig rig;
    struct bw_graph_stats stats;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_linked_graph *linked = chain_link(&rig, false);
    bw_linked_graph_stats(linked, &stats);
    BW_EQ(stats.calls, NODES);
    BW_EQ(stats.command_buffers, 1);
    BW_EQ(stats.doorbells, 1);
    BW_EQ(stats.waits, 0);
    BW_EQ(stats.signals, 1);
    BW_EQ(stats.cache_operations,
          NODES); /* one barrier before each kernel: the first for what was before the replay */
    BW_EQ(stats.packets, NODES * 2 + 1);
    bw_linked_graph_destroy(linked);
    linked = chain_link(&rig, true);
    bw_linked_graph_stats(linked, &stats);
    BW_EQ(stats.command_buffers, 2);
    BW_EQ(stats.doorbells, 2);
    BW_EQ(stats.waits, NODES - 1); /* each kernel and each copy follows the other queue */
    BW_EQ(stats.signals, NODES);
    bw_linked_graph_destroy(linked);
    rig_close(&rig);
}

/* The device begins while the host still writes; telling it so often that it never has to wait for the host
 * again would be a doorbell for each. */
static void long_graphs_begin_early(void)
{
    enum { LONG = 256 + 512 + 1024 + 1 };
    struct rig rig;
    struct bw_graph_stats stats;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    for (uint32_t i = 0; i < LONG; i++)
        BW_OK(mix_add(&rig, graph, 0, range_all(buffer), range_all(buffer), i, -1), &rig.err);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    bw_linked_graph_stats(linked, &stats);
    BW_EQ(stats.command_buffers, 4);
    BW_EQ(stats.doorbells, 4);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

static void inputs_that_overlap_are_refused(void)
{
    struct rig rig;
    struct bw_buffer *parts[3];
    uint64_t ticket;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *whole = rig_buffer(&rig, 0, 1000, 0), *fixed = rig_buffer(&rig, 0, 100, 0),
                     *other = rig_buffer(&rig, 0, 300, 0);
    struct bw_graph *graph = rig_graph(&rig);
    BW_EQ(bw_graph_copy(graph, rig.devices[0], range_input(2, 50, 50), range_all(fixed), &rig.err),
          -EINVAL); /* sizes differ */
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_input(0, 0, 100), range_input(1, 0, 100), &rig.err),
          &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_input(0, 100, 100), range_all(fixed), &rig.err),
          &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_input(0, 200, 100), range_input(2, 50, 100), &rig.err),
          &rig.err);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    /* Offsets into `whole`: input 0 is written over 300 bytes, 1 read over [0, 100), 2 read over [50, 150).
     */
    static const struct {
        uint64_t offsets[3];
        int rc;
    } cases[] = {
        {{0, 300, 400}, 0},       {{0, 299, 400}, -EINVAL}, {{0, 300, 249}, -EINVAL}, {{0, 300, 250}, 0},
        {{500, 0, 0}, 0},         {{500, 0, 350}, 0},       {{500, 0, 351}, -EINVAL}, {{500, 400, 0}, 0},
        {{500, 401, 0}, -EINVAL}, {{500, 0, 0}, 0},         {{0, 300, 300}, 0},
    };
    for (uint32_t i = 0; i < BW_COUNT_OF(cases); i++) {
        for (uint32_t k = 0; k < 3; k++)
            BW_OK(bw_buffer_view(whole, cases[i].offsets[k], k == 0 ? 300 : 200, &parts[k], &rig.err),
                  &rig.err);
        struct bw_replay replay = {.inputs = parts, .input_count = 3};
        BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), cases[i].rc);
        for (uint32_t k = 0; k < 3; k++)
            bw_buffer_destroy(parts[k]);
    }
    /* The graph's own buffer: reading it as an input as well is fine, writing is not. */
    struct bw_buffer *reading[] = {other, fixed, whole}, *writing[] = {fixed, other, whole};
    struct bw_replay replay = {.inputs = reading, .input_count = 3};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), &rig.err);
    replay.inputs = writing;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err),
          -ERANGE); /* too small in the first place */
    bw_linked_graph_destroy(linked);
    graph = rig_graph(&rig);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_input(0, 0, 100), range_all(fixed), &rig.err), &rig.err);
    linked = rig_link(&rig, graph);
    replay = (struct bw_replay){.inputs = (struct bw_buffer *[]){fixed}, .input_count = 1};
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), -EINVAL);
    replay.inputs = (struct bw_buffer *[]){whole};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), &rig.err);
    replay.input_count = 0;
    BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), -EINVAL);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(whole);
    bw_buffer_destroy(fixed);
    bw_buffer_destroy(other);
    rig_close(&rig);
}

static void grids_may_be_variables(void)
{
    struct rig rig;
    uint64_t ticket = 0;
    uint32_t counts[35 * 8] = {0}, got[35 * 8];
    if (!rig_open(&rig, NULL, on_host))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, sizeof counts, 0);
    BW_OK(bw_buffer_write(buffer, 0, counts, sizeof counts, &rig.err), &rig.err);
    struct bw_graph *graph = rig_graph(&rig);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ | BW_ACCESS_WRITE);
    struct bw_launch launch = {.group_count = {{7, false}, {5, false}, {0, true}},
                               .group_size = {1, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    BW_OK(bw_graph_kernel(graph, rig_kernel(&rig, 0, "count_groups"), &launch, &rig.err), &rig.err);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    for (uint32_t depth = 0; depth <= 8; depth++) {
        struct bw_replay replay = {.variables = &depth, .variable_count = 1};
        BW_EQ(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), depth == 0 ? -EINVAL : 0);
    }
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    BW_EQ(bw_linked_graph_wait(linked, ticket + 1, &rig.err), -EINVAL);
    BW_EQ(bw_linked_graph_wait(linked, 0, &rig.err), -EINVAL);
    BW_OK(bw_linked_graph_wait(linked, 1, &rig.err), &rig.err);
    BW_OK(bw_buffer_read(buffer, 0, got, sizeof got, &rig.err), &rig.err);
    for (uint32_t i = 0; i < 35 * 8; i++)
        counts[i] = 8 - i / 35;
    BW_BYTES(got, counts, sizeof got);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

/* A device that compares low words only meets each wrap: the values of a slot share their high word, and
 * waits keep holding. */
static void timelines_roll_over(void)
{
    static const uint64_t starts[] = {0,          UINT32_MAX - 1ull, UINT32_MAX - 70ull,
                                      1ull << 32, UINT64_MAX,        UINT64_MAX - 333};
    for (uint32_t i = 0; i < BW_COUNT_OF(starts); i++) {
        struct bw_ctx_config config = {.size = sizeof config, .timeline_start = starts[i]};
        struct rig rig;
        struct bw_buffer *inputs[NODES + 1];
        uint64_t ticket = 0;
        uint8_t first[BYTES], last[BYTES];
        if (!rig_open(&rig, &config, on_null))
            return;
        struct bw_graph *graph = rig_graph(&rig);
        for (uint32_t k = 0; k < NODES; k++) {
            BW_OK(bw_graph_copy(graph, rig.devices[0], range_input(k + 1, 0, BYTES), range_input(k, 0, BYTES),
                                &rig.err),
                  &rig.err);
            BW_OK(mix_add(&rig, graph, 0, range_input(k + 1, 0, BYTES), range_input(k, 0, BYTES), k, -1),
                  &rig.err);
        }
        struct bw_linked_graph *linked = rig_link(&rig, graph);
        inputs_make(&rig, inputs);
        for (uint32_t round = 0; round < 20; round++) {
            struct bw_replay replay = {.inputs = inputs, .input_count = NODES + 1};
            memset(first, (int)round + 1, sizeof first);
            BW_OK(bw_buffer_write(inputs[0], 0, first, sizeof first, &rig.err), &rig.err);
            if (!BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), &rig.err))
                break;
            BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
            BW_OK(bw_buffer_read(inputs[NODES], 0, last, sizeof last, &rig.err), &rig.err);
            BW_BYTES(last, first, sizeof last);
        }
        inputs_end(inputs);
        bw_linked_graph_destroy(linked);
        rig_close(&rig);
    }
}

static void profiles_lie_on_the_hosts_clock(void)
{
    struct rig rig;
    struct bw_call_profile calls[3];
    struct bw_link_options options = {.size = sizeof options, .profile = true};
    struct bw_linked_graph *linked = NULL;
    uint64_t ticket;
    if (!rig_open(&rig, NULL, on_host))
        return;
    struct bw_sys *sys = bw_ctx_sys(rig.ctx);
    struct bw_buffer *a = rig_buffer(&rig, 0, 1 << 20, 0), *b = rig_buffer(&rig, 0, 1 << 20, 0);
    struct bw_graph *graph = rig_graph(&rig);
    BW_OK(mix_add(&rig, graph, 0, range_all(a), range_all(b), 1, -1), &rig.err);
    BW_OK(bw_graph_copy(graph, rig.devices[0], range_all(b), range_all(a), &rig.err), &rig.err);
    BW_OK(bw_graph_link(graph, &options, &linked, &rig.err), &rig.err);
    bw_graph_destroy(graph);
    BW_EQ(bw_linked_graph_profile(linked, calls, 3), 0); /* nothing has run */
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    uint64_t end_ns = sys->ops->clock_ns(sys),
             slack_ns = 2000000; /* half of a scheduling hiccup while the clocks were compared */
    if (BW_EQ(bw_linked_graph_profile(linked, calls, 3), 2)) {
        BW_STR(calls[0].name, "mix");
        BW_STR(calls[1].name, "copy");
        BW_STR(calls[0].device, "host:0");
        BW_EQ(calls[0].queue, 0);
        BW_EQ(calls[1].queue, 1);
        BW_TRUE(calls[0].begin_ns + slack_ns >= begin_ns && calls[1].end_ns <= end_ns + slack_ns);
        BW_TRUE(calls[0].begin_ns <= calls[0].end_ns && calls[0].end_ns <= calls[1].begin_ns &&
                calls[1].begin_ns <= calls[1].end_ns);
    }
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    rig_close(&rig);
}

static void copies_of_every_size(void)
{
    enum { MAX = 1 << 20, GUARD = 64, TOTAL = 3 * MAX + 2 * GUARD }; /* null's copy packet takes 1 MiB */
    static const uint64_t sizes[] = {1,       2,   3,       5,           4095,    4097,
                                     MAX - 1, MAX, MAX + 1, 2 * MAX - 1, 2 * MAX, 3 * MAX};
    struct rig rig;
    struct bw_rng rng = bw_test_rng("copies");
    uint64_t ticket;
    if (!rig_open(&rig, NULL, on_null))
        return;
    uint8_t *model = malloc(TOTAL), *got = malloc(TOTAL), *source = malloc(TOTAL);
    struct bw_buffer *from = rig_buffer(&rig, 0, TOTAL, 0), *to = rig_buffer(&rig, 0, TOTAL, 0);
    for (uint32_t i = 0; i < TOTAL; i++)
        source[i] = (uint8_t)bw_rng_next(&rng);
    BW_OK(bw_buffer_write(from, 0, source, TOTAL, &rig.err), &rig.err);
    for (uint32_t i = 0; i < BW_COUNT_OF(sizes); i++) {
        uint64_t at = GUARD + bw_rng_below(&rng, 9), source_at = bw_rng_below(&rng, 2 * GUARD);
        struct bw_graph_stats stats;
        struct bw_graph *graph = rig_graph(&rig);
        memset(model, 0xa5, TOTAL);
        BW_OK(bw_buffer_write(to, 0, model, TOTAL, &rig.err), &rig.err);
        BW_OK(bw_graph_copy(graph, rig.devices[0], (struct bw_range){to, 0, at, sizes[i]},
                            (struct bw_range){from, 0, source_at, sizes[i]}, &rig.err),
              &rig.err);
        struct bw_linked_graph *linked = rig_link(&rig, graph);
        bw_linked_graph_stats(linked, &stats);
        uint64_t parts = stats.command_buffers; /* equal ones, each with a barrier and a signal */
        BW_EQ(stats.packets, parts * (bw_div_up(bw_div_up(sizes[i], parts), MAX) + 2));
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
        memcpy(model + at, source + source_at, sizes[i]);
        BW_OK(bw_buffer_read(to, 0, got, TOTAL, &rig.err), &rig.err);
        BW_BYTES(got, model, TOTAL);
        bw_linked_graph_destroy(linked);
    }
    struct bw_graph *graph = rig_graph(&rig); /* nothing is a size, too */
    BW_OK(bw_graph_copy(graph, rig.devices[0], (struct bw_range){to, 0, 5, 0},
                        (struct bw_range){from, 0, 5, 0}, &rig.err),
          &rig.err);
    BW_EQ(bw_graph_copy(graph, rig.devices[0], (struct bw_range){to, 0, 0, 10},
                        (struct bw_range){to, 0, 9, 10}, &rig.err),
          -EINVAL);
    BW_EQ(bw_graph_copy(graph, rig.devices[0], (struct bw_range){to, 0, TOTAL, 1},
                        (struct bw_range){from, 0, 9, 1}, &rig.err),
          -ERANGE);
    struct bw_linked_graph *linked = rig_link(&rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(from);
    bw_buffer_destroy(to);
    free(model);
    free(got);
    free(source);
    rig_close(&rig);
}

static void a_range_outside_its_buffer_is_named(void)
{
    struct rig rig;
    if (!rig_open(&rig, NULL, on_null))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, BYTES, 0);
    struct bw_graph *graph = rig_graph(&rig);
    struct bw_range outside = {buffer, 0, 1, BYTES};
    BW_EQ(mix_add(&rig, graph, 0, range_all(buffer), outside, 0, -1), -ERANGE);
    BW_STR(rig.err.what, "call 0, kernel mix: argument 1 source: 256 bytes at offset 1");
    BW_STR(rig.err.expected, "inside a buffer of 256 bytes");
    BW_EQ(bw_graph_copy(graph, rig.devices[0], outside, range_all(buffer), &rig.err), -ERANGE);
    BW_STR(rig.err.what, "call 0, copy target: 256 bytes at offset 1");
    bw_graph_destroy(graph);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

BW_TEST_MAIN("replay",
             {"replay_makes_no_system_call_and_no_allocation", replay_makes_no_system_call_and_no_allocation},
             {"a_chain_costs_what_it_must", a_chain_costs_what_it_must},
             {"long_graphs_begin_early", long_graphs_begin_early},
             {"inputs_that_overlap_are_refused", inputs_that_overlap_are_refused},
             {"grids_may_be_variables", grids_may_be_variables}, {"timelines_roll_over", timelines_roll_over},
             {"a_range_outside_its_buffer_is_named", a_range_outside_its_buffer_is_named},
             {"profiles_lie_on_the_hosts_clock", profiles_lie_on_the_hosts_clock},
             {"copies_of_every_size", copies_of_every_size})
