/* Goal (S8): whatever a kernel or an engine does, the error comes within about a deadline and names device,
 * queue, kernel and address with the nearest allocation; the other GPU does not mind; the same process goes
 * on, after recovering the device or opening it again; closing is bounded; slow work that moves is left
 * alone. */
#include "tests/unit/hcq/mock_rig.h"

#include "hcq/hcq.h"

enum { VRAM_BYTES = 64 << 20 };

static uint64_t now_ns(const struct machine *machine)
{
    return machine->sys->ops->clock_ns(machine->sys);
}

/* The driver's uploads have a copy engine to themselves; which one that is shows in the mock's words. */
#ifdef BW_TESTS_DRM
#define UPLOADS       "sdma0"
#define COPIES        "sdma1"
#define UPLOAD_QUEUE  " dma 0: "
#define COPY_QUEUE    " dma 0: "
#define COMPUTE_QUEUE " compute 0: "
#else
#define UPLOADS       "sdma1"
#define COPIES        "sdma0"
#define UPLOAD_QUEUE  "sdma1 queue "
#define COPY_QUEUE    "sdma0 queue "
#define COMPUTE_QUEUE "mec queue "
#endif

/* Names the device and everything in texts, which NULL ends. */
static bool error_names(const struct rig *rig, const char *const *texts)
{
    bool ok = BW_TRUE(error_says(&rig->err, WAY "+amd:0@gfx1100"));
    for (; *texts; texts++)
        ok &= BW_TRUE(error_says(&rig->err, *texts));
    return ok;
}

#define ERROR_NAMES(rig, ...) error_names(rig, (const char *const[]){__VA_ARGS__, NULL})

/* The error is told again at once; the other GPU works; recovered, the device does too. */
static void recovers(struct rig *rig, int rc)
{
    struct bw_err again;
    struct bw_buffer *buffer = NULL;
    BW_EQ(bw_device_synchronize(rig->devices[0], &again), rc);
    BW_STR(again.what, rig->err.what);
    BW_EQ(bw_buffer_create(rig->devices[0], 64, 0, &buffer, &again), rc);
    bw_buffer_destroy(buffer);
    if (rig->device_count > 1)
        matmul_works(rig, 1);
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    matmul_works(rig, 0);
}

static void an_endless_kernel_is_named(void)
{
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
    for (int round = 0; round < 3; round++) {
        uint64_t begin_ns = now_ns(&machine);
        BW_EQ(run(rig, 0, "endless", &argument, 1), -ETIMEDOUT);
        uint64_t waited_ns = now_ns(&machine) - begin_ns;
        BW_TRUE(waited_ns >= RIG_WAIT_NS && waited_ns < 2 * RIG_WAIT_NS);
        BW_TRUE(rig->err.elapsed_ns >= RIG_WAIT_NS && rig->err.elapsed_ns <= waited_ns);
        ERROR_NAMES(rig, "compute queue 0: kernel endless", "nothing moves", COMPUTE_QUEUE,
                    "group (0, 0, 0) wave 0 at pc 0x", "s_branch");
        recovers(rig, -ETIMEDOUT);
    }
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

static void who_waits_for_whom_at_a_barrier_is_said(void)
{
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_WRITE);
    BW_EQ(run_groups(rig, 0, "stuck_at_barrier", 1, 64, &argument, 1), -ETIMEDOUT);
    ERROR_NAMES(rig, "kernel stuck_at_barrier", "wave 0 at pc 0x", "1 of 2 waves at a barrier");
    recovers(rig, -ETIMEDOUT);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

/* Replays that do not fit the ring any more behind a kernel that never ends: the submission gives up. */
static void a_full_ring_that_does_not_drain_is_named(void)
{
    enum { LINKED = 200, INSTANCES = 30 };
    const uint64_t room = WAY_EITHER(4096, BW_IFACE_SUBMISSIONS_MAX); /* command buffers that a queue holds */
    struct machine machine;
    static struct bw_linked_graph *linked[LINKED];
    uint64_t ticket;
    int rc = 0;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 64, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    struct bw_link_options options = {.size = sizeof options, .instances = INSTANCES};
    for (int i = 0; i < LINKED; i++) {
        struct bw_graph *graph = rig_graph(rig);
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "endless"), &launch, &rig->err), &rig->err);
        BW_OK(bw_graph_link(graph, &options, &linked[i], &rig->err), &rig->err);
        bw_graph_destroy(graph);
    }
    uint64_t begin_ns = now_ns(&machine), submitted = 0;
    for (int i = 0; i < LINKED * INSTANCES && !rc; i++) {
        rc = bw_linked_graph_replay(linked[i % LINKED], NULL, &ticket, &rig->err);
        submitted += rc == 0;
    }
    BW_EQ(rc, -ETIMEDOUT);
    BW_TRUE(submitted > room - room / 20 && submitted < room + room / 20);
    BW_TRUE(now_ns(&machine) - begin_ns < 2 * RIG_WAIT_NS);
    ERROR_NAMES(rig, "compute queue 0: kernel endless", "room for a command buffer in a full ring",
                "s_branch");
    recovers(rig, -ETIMEDOUT);
    for (int i = 0; i < LINKED; i++)
        bw_linked_graph_destroy(linked[i]);
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

/* Progress is waves that end: many deadlines of work in many waves are fine, a single wave of more than a
 * deadline looks hung, as it would to anybody who cannot look into it. */
static void slow_work_that_moves_is_not_killed(void)
{
    enum { GROUPS = 40, TURNS = 500000 };
    struct machine machine;
    uint32_t seen[GROUPS];
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *out = rig_buffer(rig, 0, sizeof seen, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(TURNS)};
    uint64_t begin_ns = now_ns(&machine);
    BW_OK(run_groups(rig, 0, "spin", GROUPS, 32, arguments, 2), &rig->err);
    BW_TRUE(now_ns(&machine) - begin_ns > 10 * RIG_WAIT_NS);
    BW_OK(bw_buffer_read(out, 0, seen, sizeof seen, &rig->err), &rig->err);
    for (int i = 0; i < GROUPS; i++)
        BW_EQ(seen[i], UINT32_MAX);
    /* Many short kernels one after the other in one command buffer. */
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    for (int i = 0; i < GROUPS; i++)
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "spin"), &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    begin_ns = now_ns(&machine);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_TRUE(now_ns(&machine) - begin_ns > 10 * RIG_WAIT_NS);
    bw_linked_graph_destroy(linked);
    arguments[1] = argument_value(5 * TURNS);
    BW_EQ(run(rig, 0, "spin", arguments, 2), -ETIMEDOUT);
    ERROR_NAMES(rig, "compute queue 0: kernel spin");
    recovers(rig, -ETIMEDOUT);
    bw_buffer_destroy(out);
    machine_close(&machine);
}

/* A real GPU cannot be looked into: the read pointer stands while a command buffer of many kernels runs, and
 * what moves is what the command buffer tells. */
static void many_kernels_of_one_command_buffer_are_not_killed(void)
{
    enum { KERNELS = 80, TURNS = 50000 };
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    const struct bw_sys_ops *ops = machine.sys->ops;
    struct bw_sys_ops blind = *ops;
    blind.queue_look = NULL;
    machine.sys->ops = &blind;
    struct bw_buffer *out = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument arguments[] = {argument_range(range_all(out), BW_ACCESS_WRITE), argument_value(TURNS)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {32, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    for (int i = 0; i < KERNELS; i++)
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "spin"), &launch, &rig->err), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    for (int replay = 0; replay < 2; replay++) {
        uint64_t begin_ns = now_ns(&machine);
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
        BW_TRUE(now_ns(&machine) - begin_ns > 3 * RIG_WAIT_NS);
    }
    bw_linked_graph_destroy(linked);
    /* And one that hangs is found. */
    uint64_t begin_ns = now_ns(&machine);
    BW_EQ(run(rig, 0, "endless", arguments, 1), -ETIMEDOUT);
    BW_TRUE(now_ns(&machine) - begin_ns < 2 * RIG_WAIT_NS);
    ERROR_NAMES(rig, "compute queue 0: kernel endless");
    recovers(rig, -ETIMEDOUT);
    machine.sys->ops = ops;
    bw_buffer_destroy(out);
    machine_close(&machine);
}

static void an_illegal_instruction_is_named(void)
{
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
    struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
    for (int round = 0; round < 3; round++) {
        uint64_t begin_ns = now_ns(&machine);
        BW_EQ(run(rig, 0, "illegal", &argument, 1), -EIO);
        BW_TRUE(now_ns(&machine) - begin_ns < RIG_WAIT_NS);
        ERROR_NAMES(rig, "compute queue 0, kernel illegal: ", "illegal instruction", "pc 0x", "0xdeadbeef");
        recovers(rig, -EIO);
    }
    bw_buffer_destroy(buffer);
    machine_close(&machine);
}

struct access {
    const char *kernel;
    uint64_t address;
    const char *where; /* NULL: this access is fine */
};

/* One access, its error, and on. */
static void access_is_named(struct machine *machine, const struct access *access, struct bw_buffer *out)
{
    struct rig *rig = &machine->rig;
    bool loads = !strcmp(access->kernel, "load_at");
    struct bw_argument arguments[] = {argument_value(access->address),
                                      loads ? argument_range(range_all(out), BW_ACCESS_WRITE)
                                            : argument_value(77)};
    char kernel[64], address[64];
    uint64_t begin_ns = now_ns(machine);
    int rc = run(rig, 0, access->kernel, arguments, 2);
    if (!access->where) {
        BW_OK(rc, &rig->err);
        return;
    }
    BW_EQ(rc, -EIO);
    BW_TRUE(now_ns(machine) - begin_ns < RIG_WAIT_NS);
    snprintf(kernel, sizeof kernel, "compute queue 0, kernel %s: ", access->kernel);
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)access->address);
    ERROR_NAMES(rig, kernel, address, access->where);
    recovers(rig, -EIO);
}

static void accesses_to_the_wrong_place_are_named(void)
{
    enum {
        LIVE_BYTES = 1 << 20,
        FREED_BYTES = 20 << 20
    }; /* the freed one is too large to be kept for reuse */
    struct machine machine;
    uint32_t got[3] = {0};
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    struct bw_buffer *live = rig_buffer(rig, 0, LIVE_BYTES, 0), *freed = rig_buffer(rig, 0, FREED_BYTES, 0);
    uint64_t at = bw_buffer_address(live), was = bw_buffer_address(freed);
    bw_buffer_destroy(freed);
    BW_OK(bw_buffer_write(live, 0, got, sizeof got, &rig->err), &rig->err);
    char past[96], inside[96];
    snprintf(past, sizeof past, "0 bytes past the end of a %d-byte buffer at 0x%llx", LIVE_BYTES,
             (unsigned long long)at);
    snprintf(inside, sizeof inside, "%d bytes into a freed %d-byte buffer at 0x%llx", FREED_BYTES - 64,
             FREED_BYTES, (unsigned long long)was);
    const struct access accesses[] = {
        {"store_at", was + FREED_BYTES - 64, inside}, /* first: new buffers may come to lie there */
        {"load_at", was + FREED_BYTES - 64, inside},
        {"store_at", 0, "the null address"},
        {"store_by_call", 0, "by kernel store_by_call at pc"},
        {"store_at", 8, "not mapped"},
        {"store_at", 0x123456789000, "no buffer is near"},
        {"store_at", 0x123456789abc, "not mapped"},
        {"store_at", at + LIVE_BYTES, past},
        {"store_at", 0x8000000000000000, "not mapped"}, /* no address of this GPU */
        {"load_at", 0, "the null address"},
        {"atomic_at", 0, "the null address"},
        {"atomic_at", at + LIVE_BYTES, past},
        {"store_at", at + LIVE_BYTES - 2, past}, /* begins inside */
        {"store_at", at + LIVE_BYTES - 2, "(not mapped)"},
        {"load_at", at + LIVE_BYTES - 1, past},
        {"load_at", at + LIVE_BYTES - 1, "(not mapped)"},
        {"atomic_at", at + 2, "misaligned"},
        {"atomic_at", at + LIVE_BYTES - 2, "misaligned"}, /* which is found first */
        {"store_at", at + 5, NULL}, /* the hardware's unaligned mode, which amdgpu turns on */
        {"store_at", at + LIVE_BYTES - 4, NULL},
    };
    for (size_t i = 0; i < BW_COUNT_OF(accesses); i++)
        access_is_named(&machine, &accesses[i], live);
    BW_OK(bw_buffer_read(live, 0, got, sizeof got, &rig->err), &rig->err);
    BW_EQ(got[1], 77 << 8); /* and nothing but what was right was written */
    BW_EQ(got[2], 0);
    bw_buffer_destroy(live);
    machine_close(&machine);
}

/* ---- engines ---- */

struct engine_case {
    const char *fault;
    int code;
    const char *texts[3];
};

/* A program's upload, a write, a kernel: the first that fails. */
static int use_everything(struct rig *rig)
{
    uint8_t bytes[100] = {1};
    struct bw_program *program = NULL;
    struct bw_buffer *a = NULL;
    int rc = bw_program_load(rig->devices[0], rig_kernels_gfx1100, sizeof rig_kernels_gfx1100, &program,
                             &rig->err);
    if (!rc)
        rc = bw_buffer_create(rig->devices[0], sizeof bytes, 0, &a, &rig->err);
    if (!rc)
        rc = bw_buffer_write(a, 0, bytes, sizeof bytes, &rig->err);
    struct bw_argument arguments[] = {
        a ? argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE) : argument_value(0),
        a ? argument_range(range_all(a), BW_ACCESS_READ) : argument_value(0),
        argument_value(100),
        argument_value(100),
        argument_value(9),
    };
    if (!rc)
        rc = run(rig, 0, "mix", arguments, 5);
    bw_buffer_destroy(a);
    bw_program_destroy(program);
    return rc;
}

static void engine_is_named(const struct engine_case *engine)
{
    struct machine machine;
    char fault[64];
    if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    mix_works(rig, 0); /* every queue exists */
    snprintf(fault, sizeof fault, "%s,gpu=0", engine->fault);
    BW_OK(bw_mock_fault_add(machine.sys, fault, &rig->err), &rig->err);
    uint64_t begin_ns = now_ns(&machine);
    bool ok = BW_EQ(use_everything(rig), engine->code);
    ok &= BW_TRUE(now_ns(&machine) - begin_ns < 2 * RIG_WAIT_NS);
    for (size_t i = 0; i < BW_COUNT_OF(engine->texts) && engine->texts[i]; i++)
        ok &= ERROR_NAMES(rig, engine->texts[i]);
    if (!ok)
        printf("      fault: %s\n", engine->fault);
    bw_mock_fault_clear(machine.sys);
    recovers(rig, engine->code);
    machine_close(&machine);
}

static void engines_that_stand_still_or_die_are_named(void)
{
    static const struct engine_case cases[] = {
        {UPLOADS ":hang", -ETIMEDOUT, {"upload queue: machine code to 0x", UPLOADS " hangs at"}},
        {UPLOADS ":drop", -ETIMEDOUT, {"upload queue: machine code to 0x", UPLOAD_QUEUE, "died"}},
        {UPLOADS ":fail=EIO", -EIO, {"upload queue, copy of ", "hardware exception", UPLOAD_QUEUE}},
        {COPIES ":hang", -ETIMEDOUT, {"copy queue 0: write to a buffer", "copy of 100 bytes to 0x", COPIES}},
        {COPIES ":drop", -ETIMEDOUT, {"copy queue 0: write to a buffer", COPY_QUEUE, "died"}},
        {COPIES ":fail=EIO", -EIO, {"copy queue 0, copy of 100 bytes to 0x", COPY_QUEUE, "injected"}},
        {"mec:hang", -ETIMEDOUT, {"compute queue 0: kernel mix", "mec hangs at"}},
        {"mec:drop", -ETIMEDOUT, {"compute queue 0: kernel mix", COMPUTE_QUEUE, "died"}},
        {"mec:fail=EIO", -EIO, {"compute queue 0, kernel mix: ", "hardware exception", "injected"}},
        {"kernel:hang", -ETIMEDOUT, {"compute queue 0: kernel mix", "kernel hangs at"}},
        {"kernel:fail=EIO", -EIO, {"compute queue 0, kernel mix: ", "kernel: injected failure"}},
#ifndef BW_TESTS_DRM
        {"doorbell:drop", -ETIMEDOUT, {"upload queue: machine code to 0x", "its doorbell said 0x"}},
        {"doorbell:drop,nth=2", -ETIMEDOUT, {"copy queue 0: write to a buffer", "its doorbell said 0x"}},
        {"doorbell:drop,nth=3,count=9", -ETIMEDOUT, {"compute queue 0: kernel mix", "its doorbell said 0x"}},
#endif
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++)
        engine_is_named(&cases[i]);
}

/* What only delays or repeats is no failure. */
static void what_is_late_or_comes_twice_is_no_failure(void)
{
    static const char *const faults[] = {
#ifdef BW_TESTS_DRM
        "ioctl.CS:delay=20", "ioctl.WAIT_FENCES:delay=20",
#else
        "irq:drop",       "irq:dup",      "irq:delay=20",   "doorbell:dup", "doorbell:delay=20",
#endif
        "sdma0:delay=20", "mec:delay=20", "kernel:delay=20"};
    for (size_t i = 0; i < BW_COUNT_OF(faults); i++) {
        struct machine machine;
        if (!machine_open(&machine, RIG_STEPPED, 1, VRAM_BYTES, 0))
            return;
        BW_OK(bw_mock_fault_add(machine.sys, faults[i], &machine.rig.err), &machine.rig.err);
        matmul_works(&machine.rig, 0);
        machine_close(&machine);
    }
}

/* ---- several devices, closing ---- */

/* The second GPU waits for what the first one never does: the first is to blame, and the second goes on once
 * that one is recovered; whether a mock tells who waits, or what was submitted has to. */
static void a_gpu_that_waits_for_a_broken_one_is_not_blamed(void)
{
    enum { BYTES = 256 };
    static const char *const kernels[] = {"endless", "illegal", "endless"};
    for (size_t k = 0; k < BW_COUNT_OF(kernels); k++) {
        struct machine machine;
        uint64_t ticket;
        if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
            return;
        struct rig *rig = &machine.rig;
        const struct bw_sys_ops *ops = machine.sys->ops;
        struct bw_sys_ops blind = *ops;
        blind.queue_look = NULL;
        machine.sys->ops = k == 2 ? &blind : ops;
        struct bw_buffer *a = rig_buffer(rig, 0, BYTES, 0), *b = rig_buffer(rig, 1, BYTES, 0);
        struct bw_argument argument = argument_range(range_all(a), BW_ACCESS_READ | BW_ACCESS_WRITE);
        struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                                   .group_size = {32, 1, 1},
                                   .arguments = &argument,
                                   .argument_count = 1};
        struct bw_graph *graph = rig_graph(rig);
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, kernels[k]), &launch, &rig->err), &rig->err);
        BW_OK(bw_graph_copy(graph, rig->devices[1], range_all(b), range_all(a), &rig->err), &rig->err);
        BW_OK(mix_add(rig, graph, 1, range_all(b), range_all(b), 2, -1), &rig->err);
        struct bw_linked_graph *linked = rig_link(rig, graph);
        uint64_t begin_ns = now_ns(&machine);
        int failure = k % 2 ? -EIO : -ETIMEDOUT;
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        BW_EQ(bw_device_synchronize(rig->devices[1], &rig->err), failure);
        BW_TRUE(now_ns(&machine) - begin_ns < 2 * RIG_WAIT_NS);
        ERROR_NAMES(rig, kernels[k], "compute queue 0");
        BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), failure);
        BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
        BW_OK(bw_device_synchronize(rig->devices[1], &rig->err), &rig->err);
        matmul_works(rig, 0);
        matmul_works(rig, 1);
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(a);
        bw_buffer_destroy(b);
        machine.sys->ops = ops;
        machine_close(&machine);
    }
}

/* Without recovering, before or after the hang was seen: the device is closed in about a deadline and opened
 * again. */
static void a_broken_device_is_closed_and_opened_again(void)
{
    static const char *const kernels[] = {"endless", "illegal"};
    for (int i = 0; i < 4; i++) {
        struct machine machine;
        uint64_t ticket;
        if (!machine_open(&machine, RIG_STEPPED, 2, VRAM_BYTES, 0))
            return;
        struct rig *rig = &machine.rig;
        struct bw_buffer *buffer = rig_buffer(rig, 0, 4096, 0);
        struct bw_argument argument = argument_range(range_all(buffer), BW_ACCESS_READ);
        struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                                   .group_size = {32, 1, 1},
                                   .arguments = &argument,
                                   .argument_count = 1};
        struct bw_graph *graph = rig_graph(rig);
        BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, kernels[i % 2]), &launch, &rig->err), &rig->err);
        struct bw_linked_graph *linked = rig_link(rig, graph);
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
        if (i / 2)
            BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), i % 2 ? -EIO : -ETIMEDOUT);
        uint64_t begin_ns = now_ns(&machine);
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(buffer);
        bw_program_destroy(rig->programs[0]);
        bw_device_close(rig->devices[0]);
        /* The kernel's DRM lets what hangs go on for a second when its context is freed. */
        BW_TRUE(now_ns(&machine) - begin_ns < 2 * RIG_WAIT_NS + WAY_EITHER(0, 1000000000ull));
        matmul_works(rig, 1);
        bool ok = BW_OK(bw_device_open(rig->ctx, WAY "+amd:0", &rig->devices[0], &rig->err), &rig->err) &&
                  rig_program(rig, 0);
        if (ok)
            matmul_works(rig, 0);
        machine_close(&machine);
    }
}

/* With real threads, so that fault, recovery and the other GPU really meet. */
static void real_concurrency_makes_no_difference(void)
{
    struct machine machine;
    if (!machine_open(&machine, RIG_THREADED, 2, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    for (int round = 0; round < 5; round++) {
        /* Another page each time: DRM shows the last fault, and the same once more looks like none. */
        uint64_t address = 0x1000ull * (1 + (uint64_t)round);
        char text[80];
        struct bw_argument arguments[] = {argument_value(address), argument_value(1)};
        BW_EQ(run(rig, 0, "store_at", arguments, 2), -EIO);
        snprintf(text, sizeof text, "compute queue 0, kernel store_at: memory fault at 0x%llx",
                 (unsigned long long)address);
        ERROR_NAMES(rig, text);
        recovers(rig, -EIO);
    }
    machine_close(&machine);
}

BW_TEST_MAIN("scenario.hcq_hang_and_fault", {"an endless kernel is named", an_endless_kernel_is_named},
             {"who waits for whom at a barrier is said", who_waits_for_whom_at_a_barrier_is_said},
             {"a full ring that does not drain is named", a_full_ring_that_does_not_drain_is_named},
             {"slow work that moves is not killed", slow_work_that_moves_is_not_killed},
             {"many kernels of one command buffer are not killed",
              many_kernels_of_one_command_buffer_are_not_killed},
             {"an illegal instruction is named", an_illegal_instruction_is_named},
             {"accesses to the wrong place are named", accesses_to_the_wrong_place_are_named},
             {"engines that stand still or die are named", engines_that_stand_still_or_die_are_named},
             {"what is late or comes twice is no failure", what_is_late_or_comes_twice_is_no_failure},
             {"a GPU that waits for a broken one is not blamed",
              a_gpu_that_waits_for_a_broken_one_is_not_blamed},
             {"a broken device is closed and opened again", a_broken_device_is_closed_and_opened_again},
             {"real concurrency makes no difference", real_concurrency_makes_no_difference})
