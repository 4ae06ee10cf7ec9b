/* Goal: what goes wrong stays where it is: hangs, forks, memory that runs out or is freed too early, threads
 * and contexts beside each other. */
#include "tests/unit/hcq/rig.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "hcq/hcq.h"
#include "iface/sys_wrap.h"

/* The deadline where a hang is provoked, and how far the clock goes on at each look while one is waited for.
 * Else that clock stands: what is to succeed may take as long as a busy machine needs. */
#define WAIT_NS 200000000ull
#define TICK_NS 10000000ull

static const char *const on_hosts[] = {"host:0", "host:1", NULL};

/* Two host devices whose clock is the test's. */
struct clocked {
    struct bw_sys *host, *sys;
    struct rig rig;
};

static bool clocked_open(struct clocked *clocked)
{
    if (!BW_EQ(bw_sys_host_create(&clocked->host), 0) ||
        !BW_EQ(bw_sys_wrap_create(clocked->host, &clocked->sys), 0))
        return false;
    bw_sys_wrap_clock_tick(clocked->sys, 0);
    struct bw_ctx_config config = {.size = sizeof config, .wait_ns = WAIT_NS, .sys = clocked->sys};
    return rig_open(&clocked->rig, &config, on_hosts);
}

static void clocked_close(struct clocked *clocked)
{
    rig_close(&clocked->rig);
    bw_sys_destroy(clocked->sys);
    bw_sys_destroy(clocked->host);
}

static struct bw_linked_graph *flag_link(struct rig *rig, struct bw_buffer *flag)
{
    struct bw_graph *graph = rig_graph(rig);
    struct bw_argument argument = argument_range(range_all(flag), BW_ACCESS_READ);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "wait_for_flag"), &launch, &rig->err), &rig->err);
    return rig_link(rig, graph);
}

static void flag_set(struct bw_buffer *flag, uint32_t value)
{
    __atomic_store_n((uint32_t *)bw_buffer_map(flag), value, __ATOMIC_RELEASE);
}

/* Adds a kernel that stores 1 to mark[0], then ends only when somebody stores to flag[0]. */
static void marked_add(struct rig *rig, struct bw_graph *graph, struct bw_buffer *mark,
                       struct bw_buffer *flag)
{
    flag_set(mark, 0);
    flag_set(flag, 0);
    struct bw_argument arguments[] = {argument_range(range_all(mark), BW_ACCESS_WRITE),
                                      argument_range(range_all(flag), BW_ACCESS_READ)};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = 2};
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, 0, "mark_and_wait"), &launch, &rig->err), &rig->err);
}

static void mark_wait(struct bw_buffer *mark)
{
    const uint32_t *word = bw_buffer_map(mark);
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE))
        sched_yield();
}

/* target = target * 31 + source + 5 on that device, and whether it was right. */
static void mix_works(struct rig *rig, uint32_t device)
{
    uint8_t target[100], source[100], got[100];
    uint64_t ticket;
    for (int i = 0; i < 100; i++) {
        target[i] = (uint8_t)(i * 3);
        source[i] = (uint8_t)(i + 50);
    }
    struct bw_buffer *a = rig_buffer(rig, device, 100, 0), *b = rig_buffer(rig, device, 100, 0);
    if (!a || !b)
        return;
    BW_OK(bw_buffer_write(a, 0, target, 100, &rig->err), &rig->err);
    BW_OK(bw_buffer_write(b, 0, source, 100, &rig->err), &rig->err);
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(mix_add(rig, graph, device, range_all(a), range_all(b), 5, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    BW_OK(bw_buffer_read(a, 0, got, 100, &rig->err), &rig->err);
    mix_run(target, 100, source, 100, 5);
    BW_BYTES(got, target, 100);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
}

static void a_hang_is_named_and_recovered_from(void)
{
    struct clocked clocked;
    uint64_t ticket, size_bytes = 64;
    struct bw_buffer *refused = NULL;
    if (!clocked_open(&clocked))
        return;
    struct rig *rig = &clocked.rig;
    struct bw_buffer *flag = rig_buffer(rig, 0, size_bytes, BW_BUFFER_HOST);
    flag_set(flag, 0);
    struct bw_linked_graph *linked = flag_link(rig, flag);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    bw_sys_wrap_clock_tick(clocked.sys, TICK_NS);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -ETIMEDOUT);
    bw_sys_wrap_clock_tick(clocked.sys, 0);
    BW_STR(rig->err.device, "host:0");
    BW_TRUE(strstr(rig->err.what, "compute queue 0") && strstr(rig->err.what, "wait_for_flag"));
    BW_TRUE(rig->err.elapsed_ns >= WAIT_NS && rig->err.elapsed_ns < 2 * WAIT_NS);
    struct bw_err first = rig->err; /* from now on that same error, at once */
    BW_EQ(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), -ETIMEDOUT);
    BW_STR(rig->err.what, first.what);
    BW_EQ(bw_buffer_create(rig->devices[0], 100, 0, &refused, &rig->err), -ETIMEDOUT);
    BW_EQ(bw_device_synchronize(rig->devices[0], &rig->err), -ETIMEDOUT);
    BW_EQ(rig->err.elapsed_ns, first.elapsed_ns);
    mix_works(rig, 1); /* the other device does not mind */
    bw_sys_wrap_clock_tick(clocked.sys, TICK_NS);
    BW_EQ(bw_device_recover(rig->devices[0], &rig->err),
          -EBUSY); /* a thread cannot be stopped from outside */
    bw_sys_wrap_clock_tick(clocked.sys, 0);
    flag_set(flag, 1);
    BW_OK(bw_device_recover(rig->devices[0], &rig->err), &rig->err);
    mix_works(rig, 0);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err),
          &rig->err); /* the graph itself is as good as before */
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(flag);
    clocked_close(&clocked);
}

static uint32_t thread_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    uint32_t count = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

/* Whether the page is mapped: mincore(2) refuses one that is not. */
static bool is_mapped(void *page)
{
    unsigned char state;
    return !mincore(page, 1, &state);
}

/* Its thread runs on: code, arguments and memory must stay, or the process dies. When the kernel ends after
 * all, with its context and machine long gone, nothing is left of them (LeakSanitizer looks at the rest). */
static void a_device_closes_under_an_endless_kernel(void)
{
    struct clocked clocked;
    uint64_t ticket;
    uint32_t threads = thread_count();
    if (!clocked_open(&clocked))
        return;
    struct rig *rig = &clocked.rig;
    struct bw_buffer *mark = rig_buffer(rig, 0, 64, BW_BUFFER_HOST);
    struct bw_buffer *flag = rig_buffer(rig, 0, 64, BW_BUFFER_HOST);
    struct bw_graph *graph = rig_graph(rig);
    marked_add(rig, graph, mark, flag);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    uint32_t *page = bw_buffer_map(flag);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err);
    mark_wait(mark); /* it runs: a thread that had not begun would end by itself */
    bw_sys_wrap_clock_tick(clocked.sys, TICK_NS);
    BW_EQ(bw_linked_graph_wait(linked, ticket, &rig->err), -ETIMEDOUT);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(mark);
    bw_buffer_destroy(flag);
    bw_sys_wrap_clock_tick(clocked.sys,
                           TICK_NS / 1000); /* idle threads get the time to end, on any machine */
    clocked_close(&clocked);                /* what the thread uses stays, the wrapper among it */
    const struct timespec pause = {.tv_nsec = 20000000}; /* for a thread that lost its code to fall */
    nanosleep(&pause, NULL);
    BW_TRUE(is_mapped(page));
    BW_TRUE(thread_count() > threads);
    __atomic_store_n(page, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < 1000 && (thread_count() > threads || is_mapped(page)); i++)
        nanosleep(&pause, NULL);
    BW_EQ(thread_count(), threads);
    BW_TRUE(!is_mapped(page));
}

struct waiting {
    struct bw_linked_graph *linked;
    uint64_t ticket;
    struct bw_err err;
    int rc;
    bool over; /* atomic */
};

static void *wait_main(void *argument)
{
    struct waiting *waiting = argument;
    waiting->rc = bw_linked_graph_wait(waiting->linked, waiting->ticket, &waiting->err);
    __atomic_store_n(&waiting->over, true, __ATOMIC_RELEASE);
    return NULL;
}

/* Until the waiting thread has looked at the clock and at what moved since, twice. */
static void looks_pass(struct bw_sys *sys, const struct waiting *waiting)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t seen = bw_sys_wrap_clock_readings(sys);
    while (bw_sys_wrap_clock_readings(sys) < seen + 2 && !__atomic_load_n(&waiting->over, __ATOMIC_ACQUIRE))
        nanosleep(&pause, NULL);
}

/* Ten kernels, of which each takes three quarters of the deadline, from its start on: then everything before
 * it has been counted as progress. */
static void slow_work_that_moves_is_not_killed(void)
{
    enum { KERNELS = 10 };
    struct clocked clocked;
    struct bw_buffer *marks[KERNELS], *flags[KERNELS];
    struct waiting waiting = {.rc = -1};
    pthread_t thread;
    if (!clocked_open(&clocked))
        return;
    struct rig *rig = &clocked.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (int i = 0; i < KERNELS; i++) {
        marks[i] = rig_buffer(rig, 0, 64, BW_BUFFER_HOST);
        flags[i] = rig_buffer(rig, 0, 64, BW_BUFFER_HOST);
        marked_add(rig, graph, marks[i], flags[i]);
    }
    waiting.linked = rig_link(rig, graph);
    BW_OK(bw_linked_graph_replay(waiting.linked, NULL, &waiting.ticket, &rig->err), &rig->err);
    BW_EQ(pthread_create(&thread, NULL, wait_main, &waiting), 0);
    for (int i = 0; i < KERNELS; i++) {
        mark_wait(marks[i]);
        looks_pass(clocked.sys, &waiting);
        bw_sys_wrap_clock_add(clocked.sys, WAIT_NS / 4 * 3);
        looks_pass(clocked.sys, &waiting);
        flag_set(flags[i], 1);
    }
    pthread_join(thread, NULL);
    BW_OK(waiting.rc, &waiting.err);
    bw_linked_graph_destroy(waiting.linked);
    for (int i = 0; i < KERNELS; i++) {
        bw_buffer_destroy(marks[i]);
        bw_buffer_destroy(flags[i]);
    }
    clocked_close(&clocked);
}

static void memory_freed_in_flight_is_not_reused_before(void)
{
    struct rig rig;
    uint64_t ticket;
    uint8_t got[100], source[100], target[100];
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    memset(source, 7, sizeof source);
    memset(target, 1, sizeof target);
    struct bw_buffer *flag = rig_buffer(&rig, 0, 64, BW_BUFFER_HOST), *result = rig_buffer(&rig, 0, 100, 0);
    struct bw_buffer *input = rig_buffer(&rig, 0, 100, 0);
    BW_OK(bw_buffer_write(input, 0, source, 100, &rig.err), &rig.err);
    BW_OK(bw_buffer_write(result, 0, target, 100, &rig.err), &rig.err);
    struct bw_graph *graph = rig_graph(&rig);
    BW_OK(mix_add(&rig, graph, 0, range_all(result), range_input(0, 0, 100), 2, -1), &rig.err);
    struct bw_linked_graph *held = flag_link(&rig, flag), *linked = rig_link(&rig, graph);
    flag_set(flag, 0);
    BW_OK(bw_linked_graph_replay(held, NULL, &ticket, &rig.err), &rig.err); /* the queue stands */
    struct bw_replay replay = {.inputs = &input, .input_count = 1};
    BW_OK(bw_linked_graph_replay(linked, &replay, &ticket, &rig.err), &rig.err);
    uint64_t address = bw_buffer_address(input);
    bw_buffer_destroy(input);
    struct bw_buffer *others[4];
    for (int i = 0; i < 4; i++) {
        others[i] = rig_buffer(&rig, 0, 100, 0);
        BW_TRUE(bw_buffer_address(others[i]) != address);
    }
    flag_set(flag, 1);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    BW_OK(bw_buffer_read(result, 0, got, 100, &rig.err), &rig.err);
    mix_run(target, 100, source, 100, 2);
    BW_BYTES(got, target, 100);
    struct bw_buffer *again = rig_buffer(&rig, 0, 100, 0); /* now it is free */
    BW_EQ(bw_buffer_address(again), address);
    bw_buffer_destroy(again);
    for (int i = 0; i < 4; i++)
        bw_buffer_destroy(others[i]);
    bw_linked_graph_destroy(held);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(flag);
    bw_buffer_destroy(result);
    rig_close(&rig);
}

static void memory_that_runs_out_is_named_and_the_cache_given_back(void)
{
    struct bw_sys *host, *wrapped;
    struct rig rig;
    struct bw_buffer *buffer = NULL, *kept = NULL;
    BW_EQ(bw_sys_host_create(&host), 0);
    BW_EQ(bw_sys_wrap_create(host, &wrapped), 0);
    struct bw_ctx_config config = {.size = sizeof config, .sys = wrapped};
    if (!rig_open(&rig, &config, on_hosts))
        return;
    BW_EQ(bw_buffer_create(rig.devices[0], 1ull << 60, 0, &buffer, &rig.err), -ENOMEM);
    BW_STR(rig.err.device, "host:0");
    BW_TRUE(strstr(rig.err.what, "1152921504606846976") != NULL);
    BW_TRUE(strstr(rig.err.hint, "live") != NULL);
    BW_EQ(bw_buffer_create(rig.devices[0], UINT64_MAX, 0, &buffer, &rig.err), -ENOMEM);
    BW_EQ(bw_buffer_create(rig.devices[0], 0, 0, &buffer, &rig.err), -EINVAL);
    for (int i = 0; i < 3; i++) { /* three megabytes in the cache */
        buffer = rig_buffer(&rig, 0, (1 << 20) + 4096u * (unsigned)i * 64, 0);
        bw_buffer_destroy(buffer);
    }
    uint64_t mapped_bytes = bw_sys_wrap_mapped_bytes(wrapped);
    bw_sys_wrap_fail(wrapped, BW_SYS_CALL_MAP, 1, ENOMEM);
    BW_OK(bw_buffer_create(rig.devices[0], 5000, 0, &kept, &rig.err), &rig.err); /* fails, flushes, works */
    BW_TRUE(bw_sys_wrap_fired(wrapped));
    BW_TRUE(bw_sys_wrap_mapped_bytes(wrapped) + (3 << 20) <= mapped_bytes + 8192);
    mix_works(&rig, 0);
    bw_buffer_destroy(kept);
    rig_close(&rig);
    BW_EQ(bw_sys_wrap_mapped_bytes(wrapped), 0); /* nothing is left behind */
    bw_sys_destroy(wrapped);
    bw_sys_destroy(host);
}

/* Each call through the seam fails once, at opening and later: an error, nothing left behind, never a crash.
 */
static void every_system_call_may_fail(void)
{
    for (uint64_t nth = 1; nth < 100; nth++) {
        struct bw_sys *host, *wrapped;
        struct bw_ctx *ctx = NULL;
        struct bw_device *device = NULL;
        struct bw_buffer *buffer = NULL;
        struct bw_err err;
        BW_EQ(bw_sys_host_create(&host), 0);
        BW_EQ(bw_sys_wrap_create(host, &wrapped), 0);
        struct bw_ctx_config config = {.size = sizeof config, .sys = wrapped};
        bw_sys_wrap_fail(wrapped, BW_SYS_CALL_ANY, nth, EIO);
        int rc = bw_ctx_create(&config, &ctx, &err);
        if (!rc)
            rc = bw_device_open(ctx, "host:0", &device, &err);
        if (!rc)
            rc = bw_buffer_create(device, 10000, 0, &buffer, &err);
        bw_buffer_destroy(buffer);
        bw_device_close(device);
        bw_ctx_destroy(ctx);
        bool fired = bw_sys_wrap_fired(wrapped);
        BW_EQ(bw_sys_wrap_mapped_bytes(wrapped), 0);
        BW_TRUE(rc == 0 || rc == -EIO);
        bw_sys_destroy(wrapped);
        bw_sys_destroy(host);
        if (!fired) {
            BW_TRUE(nth > 2); /* there were some */
            return;
        }
    }
    BW_TRUE(false && "more than 100 system calls to open a host device");
}

static void a_forked_child_gets_an_error_and_harms_nothing(void)
{
    struct rig rig;
    int status = 0;
    uint64_t ticket;
    uint8_t byte = 3;
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    struct bw_buffer *flag = rig_buffer(&rig, 0, 64, BW_BUFFER_HOST);
    struct bw_linked_graph *linked = flag_link(&rig, flag);
    flag_set(flag, 0);
    BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err); /* work is in flight */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct bw_buffer *buffer;
        struct bw_device *device;
        bool ok = bw_linked_graph_replay(linked, NULL, &ticket, NULL) == -ECHILD &&
                  bw_buffer_write(flag, 0, &byte, 1, NULL) == -ECHILD &&
                  bw_buffer_create(rig.devices[0], 10, 0, &buffer, NULL) == -ECHILD &&
                  bw_linked_graph_wait(linked, ticket, NULL) == -ECHILD &&
                  bw_device_synchronize(rig.devices[1], NULL) == -ECHILD &&
                  bw_device_open(rig.ctx, "null", &device, NULL) == -ECHILD;
        bw_linked_graph_destroy(linked);
        bw_buffer_destroy(flag);
        rig_close(&rig);
        struct bw_ctx *own; /* a context of its own works */
        ok = ok && bw_ctx_create(NULL, &own, NULL) == 0 &&
             bw_device_open(own, "null", &device, NULL) == 0; /* no thread: TSan */
        if (ok)
            bw_device_close(device);
        _exit(ok ? 7 : 8);
    }
    BW_EQ(bw_test_wait(child, &status), child);
    BW_TRUE(WIFEXITED(status));
    BW_EQ(WEXITSTATUS(status), 7);
    flag_set(flag, 1);
    BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    mix_works(&rig, 0);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(flag);
    rig_close(&rig);
}

/* ---- threads and contexts ---- */

struct worker {
    struct rig *rig;
    uint32_t number;
    pthread_t thread;
    uint32_t wrong;
};

/* Its own buffers and graph on shared devices: a copy to the other device, a kernel there, a copy back. */
static void *worker_main(void *argument)
{
    enum { BYTES = 500, ROUNDS = 200 };
    struct worker *worker = argument;
    struct rig *rig = worker->rig;
    struct bw_err err;
    struct bw_buffer *a = NULL, *b = NULL;
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    struct rig own = *rig; /* whose err is mine */
    uint8_t model[BYTES], got[BYTES];
    uint64_t ticket = 0;
    memset(model, (int)worker->number, BYTES);
    int rc = bw_buffer_create(rig->devices[0], BYTES, 0, &a, &err) ||
             bw_buffer_create(rig->devices[1], BYTES, 0, &b, &err) ||
             bw_buffer_write(a, 0, model, BYTES, &err) || bw_graph_create(rig->ctx, &graph, &err) ||
             bw_graph_copy(graph, rig->devices[0], range_all(b), range_all(a), &err) ||
             mix_add(&own, graph, 1, range_all(b), range_all(a), worker->number, -1) ||
             bw_graph_copy(graph, rig->devices[0], range_all(a), range_all(b), &err) ||
             bw_graph_link(graph, NULL, &linked, &err);
    for (int round = 0; round < ROUNDS && !rc; round++) {
        uint8_t before[BYTES];
        memcpy(before, model, BYTES);
        mix_run(model, BYTES, before, BYTES, worker->number);
        rc = bw_linked_graph_replay(linked, NULL, &ticket, &err);
        if (!rc && round % 50 == 49)
            rc = bw_buffer_read(a, 0, got, BYTES, &err) || memcmp(got, model, BYTES);
    }
    worker->wrong += rc != 0;
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    bw_buffer_destroy(a);
    bw_buffer_destroy(b);
    return NULL;
}

static void threads_and_contexts_beside_each_other(void)
{
    enum { CONTEXTS = 2, WORKERS = 3 };
    struct rig rigs[CONTEXTS];
    struct worker workers[CONTEXTS * WORKERS];
    struct bw_ctx_config config = {
        .size = sizeof config, .host_threads = 2, .timeline_start = UINT32_MAX - 1000};
    for (int i = 0; i < CONTEXTS; i++) {
        if (!rig_open(&rigs[i], &config, on_hosts))
            return;
    }
    for (uint32_t i = 0; i < CONTEXTS * WORKERS; i++) {
        workers[i] = (struct worker){.rig = &rigs[i / WORKERS], .number = i + 1};
        BW_EQ(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < CONTEXTS * WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        BW_EQ(workers[i].wrong, 0);
    }
    for (int i = 0; i < CONTEXTS; i++)
        rig_close(&rigs[i]);
}

static void timer_tick(int number)
{
    (void)number;
}

/* A 1 ms interval timer without SA_RESTART: every system call that sleeps is interrupted, and nobody notices.
 */
static void signals_interrupt_and_nothing_breaks(void)
{
    struct rig rig;
    struct sigaction action = {.sa_handler = timer_tick}, before;
    struct itimerval tick = {{0, 1000}, {0, 1000}}, off = {0};
    uint64_t ticket;
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    struct bw_buffer *flag = rig_buffer(&rig, 0, 64, BW_BUFFER_HOST);
    struct bw_linked_graph *linked = flag_link(&rig, flag);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &tick, NULL);
    for (int i = 0; i < 20; i++) {
        mix_works(&rig, (uint32_t)i % 2);
        flag_set(flag, 0);
        BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig.err), &rig.err);
        struct bw_sys *sys = bw_ctx_sys(rig.ctx);
        sys->ops->sleep_ns(sys, 3000000);
        flag_set(flag, 1);
        BW_OK(bw_linked_graph_wait(linked, ticket, &rig.err), &rig.err);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    sigaction(SIGALRM, &before, NULL);
    bw_linked_graph_destroy(linked);
    bw_buffer_destroy(flag);
    rig_close(&rig);
}

static void addresses_are_described_by_the_nearest_buffer(void)
{
    struct rig rig;
    char text[128];
    if (!rig_open(&rig, NULL, on_hosts))
        return;
    struct bw_buffer *buffer = rig_buffer(&rig, 0, 4096, 0);
    uint64_t address = bw_buffer_address(buffer);
    char expected[128];
    struct bw_address_describer describer = rig.devices[0]->describer;
    describer.describe(describer.user, address + 10, text, sizeof text);
    snprintf(expected, sizeof expected, "10 bytes into a 4096-byte buffer at 0x%llx",
             (unsigned long long)address);
    BW_STR(text, expected);
    describer.describe(describer.user, address + 4096 + 12, text, sizeof text);
    snprintf(expected, sizeof expected, "12 bytes past the end of a 4096-byte buffer at 0x%llx",
             (unsigned long long)address);
    if (strstr(text, "into") == NULL && strstr(text, "before") == NULL) /* another one may lie closer */
        BW_STR(text, expected);
    bw_buffer_destroy(buffer);
    describer.describe(describer.user, address, text, sizeof text);
    snprintf(expected, sizeof expected, "0 bytes into a freed 4096-byte buffer at 0x%llx",
             (unsigned long long)address);
    BW_STR(text, expected);
    describer.describe(describer.user, 0, text, sizeof text);
    BW_STR(text, "the null address");
    rig_close(&rig);
}

static int names_note(void *user, const struct bw_device_listing *listing)
{
    char *names = user;
    if (listing->usable)
        strcat(strcat(names, listing->info.name), " ");
    return 0;
}

static void devices_are_found_by_name(void)
{
    struct bw_ctx *ctx;
    struct bw_device *device = NULL;
    struct bw_err err;
    char names[4096] = "";
    if (!BW_OK(bw_ctx_create(NULL, &ctx, &err), &err))
        return;
    BW_EQ(bw_device_list(ctx, names_note, names, &err), 0);
    BW_TRUE(strstr(names, "host:0") && strstr(names, "null") && strstr(names, "mockkfd+amd:0@gfx1100"));
    BW_EQ(bw_device_open(ctx, "qcom", &device, &err), -ENODEV);
    BW_TRUE(strstr(err.hint, "host:0") != NULL);
    BW_EQ(bw_device_open(ctx, "host:99", &device, &err), -ENODEV);
    BW_EQ(bw_device_open(ctx, "host::", &device, &err), -EINVAL);
    BW_TRUE(device == NULL);
    bw_ctx_destroy(ctx);
}

static void the_environment_is_parsed_or_named(void)
{
    struct bw_ctx_config config;
    struct bw_err err;
    setenv("BW_WAIT_MS", "250", 1);
    setenv("BW_DEV", "host:1", 1);
    setenv("BW_HOST_THREADS", "3", 1);
    BW_OK(bw_ctx_config_from_environment(&config, &err), &err);
    BW_EQ(config.wait_ns, 250000000);
    BW_STR(config.device, "host:1");
    BW_EQ(config.host_threads, 3);
    static const char *const wrong[] = {"12x", "-1", "99999999999999999999", "1025"};
    for (uint32_t i = 0; i < BW_COUNT_OF(wrong); i++) {
        setenv("BW_HOST_THREADS", wrong[i], 1);
        BW_EQ(bw_ctx_config_from_environment(&config, &err), -EINVAL);
        BW_TRUE(strstr(err.what, "BW_HOST_THREADS") != NULL);
        BW_STR(err.observed, wrong[i]);
    }
    unsetenv("BW_WAIT_MS");
    unsetenv("BW_DEV");
    unsetenv("BW_HOST_THREADS");
}

/* The signals that a thread of this process blocks. */
static uint64_t blocked_signals(const char *thread_id)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread_id);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "SigBlk: %llx", &mask);
    if (file)
        fclose(file);
    return mask;
}

static bool blocks(uint64_t blocked, int number)
{
    return blocked >> (number - 1) & 1;
}

/* The ids of this process's threads; at most count of them. */
static unsigned threads_list(char (*ids)[24], unsigned count)
{
    unsigned found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; BW_TRUE(tasks != NULL) && (task = readdir(tasks));)
        if (task->d_name[0] != '.' && BW_TRUE(found < count))
            snprintf(ids[found++], sizeof ids[0], "%.23s", task->d_name);
    if (tasks)
        closedir(tasks);
    return found;
}

static bool is_listed(char (*ids)[24], unsigned count, const char *id)
{
    for (unsigned i = 0; i < count; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

/* All our threads block what may come from outside, so that no handler of the program runs on them; what a
 * thread raises by its own fault they let through to a crash handler. */
static void our_threads_take_no_signals(void)
{
    static const char *const devices[] = {"mockkfd+amd@gfx1100", "host:0", NULL};
    static const int outside[] = {SIGHUP,  SIGINT,  SIGTERM, SIGALRM, SIGUSR1, SIGUSR2,  SIGCHLD,
                                  SIGPROF, SIGPIPE, SIGIO,   SIGCONT, SIGURG,  SIGVTALRM};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    enum { FIRST_REAL_TIME = 32 };
    struct rig rig;
    char first[4][24], now[64][24]; /* there may be one of a sanitizer besides the program's own */
    unsigned first_count = threads_list(first, BW_COUNT_OF(first)), others = 0;
    char self[24];
    snprintf(self, sizeof self, "%d", (int)getpid());
    uint64_t before = blocked_signals(self);
    if (!rig_open(&rig, NULL, devices))
        return;
    mix_works(&rig, 0);
    mix_works(&rig, 1);
    unsigned now_count = threads_list(now, BW_COUNT_OF(now));
    for (unsigned t = 0; t < now_count; t++) {
        if (is_listed(first, first_count, now[t]))
            continue;
        uint64_t blocked = blocked_signals(now[t]);
        if (blocks(blocked, FIRST_REAL_TIME)) /* libc's own: a thread that is only starting or ending */
            continue;
        others++;
        for (size_t i = 0; i < BW_COUNT_OF(outside); i++)
            BW_TRUE(blocks(blocked, outside[i]));
        for (size_t i = 0; i < BW_COUNT_OF(faults); i++)
            BW_TRUE(!blocks(blocked, faults[i]));
    }
    BW_TRUE(others > 1);
    BW_EQ(blocked_signals(self), before);
    rig_close(&rig);
}

BW_TEST_MAIN("health", {"a_hang_is_named_and_recovered_from", a_hang_is_named_and_recovered_from},
             {"slow_work_that_moves_is_not_killed", slow_work_that_moves_is_not_killed},
             {"memory_freed_in_flight_is_not_reused_before", memory_freed_in_flight_is_not_reused_before},
             {"memory_that_runs_out_is_named_and_the_cache_given_back",
              memory_that_runs_out_is_named_and_the_cache_given_back},
             {"every_system_call_may_fail", every_system_call_may_fail},
             {"a_forked_child_gets_an_error_and_harms_nothing",
              a_forked_child_gets_an_error_and_harms_nothing},
             {"threads_and_contexts_beside_each_other", threads_and_contexts_beside_each_other},
             {"signals_interrupt_and_nothing_breaks", signals_interrupt_and_nothing_breaks},
             {"our_threads_take_no_signals", our_threads_take_no_signals},
             {"addresses_are_described_by_the_nearest_buffer", addresses_are_described_by_the_nearest_buffer},
             {"devices_are_found_by_name", devices_are_found_by_name},
             {"the_environment_is_parsed_or_named", the_environment_is_parsed_or_named},
             {"a_device_closes_under_an_endless_kernel", a_device_closes_under_an_endless_kernel})
