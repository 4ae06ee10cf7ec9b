/* Goal (S3, S9): whichever call to the system fails, the interface answers with that error, says which
 * step it was, leaks neither descriptor nor mapping, and works again afterwards. Signals that interrupt calls
 * change nothing. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "base/bits.h"
#include "tests/kfd_fixture.h"

enum { GPUS = WAY_EITHER(1, 2) };

/* Everything that a user of the interface does, once. */
struct life {
    struct bw_sys *sys;
    struct bw_iface *iface, *peer; /* peer: another GPU, that reaches host memory of the first; of DRM */
    struct bw_iface_memory vram, host, user;
    struct pm4_fixture queue;
    void *pages;
};

static int use(struct life *life, struct bw_err *err)
{
    struct bw_iface *iface = life->iface;
    const struct bw_iface_ops *ops = iface->ops;
    struct bw_fault fault;
    uint64_t available;
    int rc = ops->alloc(iface, 1 << 20, BW_IFACE_VRAM | BW_IFACE_CPU_VISIBLE, 0, &life->vram, err);
    if (!rc)
        rc = ops->alloc(iface, 8192, BW_IFACE_HOST | BW_IFACE_UNCACHED, 0, &life->host, err);
    if (!rc)
        rc = ops->alloc(iface, 12288, BW_IFACE_USER_POINTER, (uint64_t)(uintptr_t)life->pages, &life->user,
                        err);
    if (!rc && WAY_DRM)
        rc = way_open(life->sys, 1, &life->peer, err);
    if (!rc && WAY_DRM)
        rc = ops->map_peer(life->peer, iface, &life->host, err);
    if (!rc)
        rc = pm4_open(&life->queue, iface, err);
    if (!rc) {
        bw_wr64(&life->host.cpu, 0, 0);
        int woken = ops->wait_interrupt(iface, 0, err); /* nothing yet: one wait in every life */
        rc = woken < 0 ? woken : 0;
    }
    if (!rc)
        rc = pm4_signal(&life->queue, life->host.gpu_va, 77, err);
    for (int tries = 0; !rc && tries < 100 && bw_rd64(&life->host.cpu, 0) != 77; tries++) {
        int woken = ops->wait_interrupt(iface, FIXTURE_WAIT_NS / 100, err);
        rc = woken < 0 ? woken : 0;
    }
    if (!rc)
        rc = ops->query_fault(iface, &fault, err);
    if (!rc)
        rc = ops->available_memory(iface, &available, err);
    if (!rc)
        BW_EQ(bw_rd64(&life->host.cpu, 0), 77);
    return rc;
}

/* The first failure of freeing is returned; everything that can be freed is. */
static int put_away(struct life *life, struct bw_err *err)
{
    struct bw_err own = {0};
    struct bw_iface_memory *memory[] = {&life->user, &life->host, &life->vram};
    int rc = pm4_close(&life->queue, &own);
    for (size_t i = 0; i < BW_COUNT_OF(memory); i++) {
        struct bw_err later = {0};
        int free_rc = memory[i]->size_bytes ? life->iface->ops->free(life->iface, memory[i], &later) : 0;
        if (!rc && free_rc) {
            rc = free_rc;
            own = later;
        }
    }
    if (rc && err)
        *err = own;
    return rc;
}

static int live(struct bw_sys *sys, void *pages, struct bw_err *err)
{
    struct life life = {.sys = sys, .pages = pages};
    int rc = way_open(sys, 0, &life.iface, err);
    if (rc)
        return rc;
    rc = use(&life, err);
    int away_rc = put_away(&life, rc ? NULL : err);
    life.iface->ops->close(life.iface);
    if (life.peer)
        life.peer->ops->close(life.peer);
    return rc ? rc : away_rc;
}

static void *new_pages(void)
{
    return mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

enum { MARK = EREMOTEIO }; /* nobody else returns this */

/* Fails the nth call; returns false when there was no nth call any more. */
static bool fail_nth(enum bw_sys_call call, uint64_t nth, uint32_t *tolerated)
{
    struct kfd_fixture f;
    struct bw_err err = {0};
    void *pages = new_pages();
    if (!fixture_machine(&f, "gfx1100", GPUS, 1 << 30))
        return false;
    bw_sys_wrap_fail(f.sys, call, nth, MARK);
    int rc = live(f.sys, pages, &err);
    bw_sys_wrap_settle(f.sys);
    bool fired = bw_sys_wrap_fired(f.sys);
    if (fired && rc) {
        BW_EQ(rc, -MARK);
        BW_EQ(err.code, -MARK);
        BW_TRUE(err.what[0] != 0 && !strcmp(err.subsystem, WAY));
    } else if (fired) {
        ++*tolerated;
    } else {
        BW_EQ(rc, 0);
    }
    BW_EQ(bw_sys_wrap_open_descriptors(f.sys), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(f.sys), 0);
    bw_sys_destroy(f.sys);
    bw_sys_destroy(f.mock);
    munmap(pages, 12288);
    return fired;
}

static void every_call_of_every_kind(void)
{
    /* What may fail without harm: closing and unmapping (done all the same), the marketing name (three reads,
     * of which the first file's three calls open, read, read count), where memory is near (numa.h: two files
     * of each GPU that is opened, open, read, read, without which no node is known; by the render node's way
     * two GPUs are), and events that go with the process. */
    static const struct {
        enum bw_sys_call call;
        uint32_t at_least, tolerated_max;
    } kinds[] = {
        {BW_SYS_CALL_OPEN, WAY_EITHER(6, 3), WAY_EITHER(3 + 2, 6 + 4)},
        {BW_SYS_CALL_CLOSE, WAY_EITHER(5, 3), 16},
        {BW_SYS_CALL_READ, WAY_EITHER(8, 4), WAY_EITHER(12 + 4, 24 + 8)},
        {BW_SYS_CALL_IOCTL, 25, WAY_EITHER(4, 6)},
        {BW_SYS_CALL_MAP, WAY_EITHER(8, 6), WAY_EITHER(1, 2)},
        {BW_SYS_CALL_UNMAP, 2, 8},
        {BW_SYS_CALL_LIST, WAY_EITHER(2, 1), 0},
    };
    for (size_t i = 0; i < BW_COUNT_OF(kinds); i++) {
        uint32_t count = 0, tolerated = 0;
        while (count < 200 && fail_nth(kinds[i].call, count + 1, &tolerated))
            count++;
        bool ok = BW_TRUE(count >= kinds[i].at_least);
        ok &= BW_TRUE(tolerated <= kinds[i].tolerated_max);
        if (!ok)
            printf("      %s: %u calls, %u of them may fail\n", bw_sys_call_name(kinds[i].call), count,
                   tolerated);
    }
}

static void each_ioctl_names_itself_and_all_is_well_afterwards(void)
{
    static const char *const names[] = {
#ifdef BW_TESTS_DRM
        "PRIME_HANDLE_TO_FD",
        "PRIME_FD_TO_HANDLE",
        "BO_LIST",
        "VERSION",
        "INFO",
        "GEM_CREATE",
        "GEM_MMAP",
        "GEM_VA",
        "GEM_USERPTR",
        "GEM_CLOSE",
        "CTX",
        "CS",
#else
        "GET_VERSION",        "GET_PROCESS_APERTURES_NEW", "ACQUIRE_VM",        "RUNTIME_ENABLE",
        "CREATE_EVENT",       "ALLOC_MEMORY_OF_GPU",       "MAP_MEMORY_TO_GPU", "CREATE_QUEUE",
        "WAIT_EVENTS",        "AVAILABLE_MEMORY",          "DESTROY_QUEUE",     "UNMAP_MEMORY_FROM_GPU",
        "FREE_MEMORY_OF_GPU",
#endif
    };
    for (size_t i = 0; i < BW_COUNT_OF(names); i++) {
        struct kfd_fixture f;
        struct bw_err err = {0};
        char fault[80], line[600];
        void *pages = new_pages();
        if (!fixture_machine(&f, "gfx1100", GPUS, 1 << 30))
            return;
        snprintf(fault, sizeof fault, "ioctl.%s:fail=ENOMEM,nth=1", names[i]);
        BW_OK(bw_mock_fault_add(f.mock, fault, &err), &err);
        bool ok = BW_EQ(live(f.sys, pages, &err), -ENOMEM);
        bw_err_format(&err, line, sizeof line);
        ok &= BW_TRUE(strstr(err.what, names[i]) != NULL);
        if (!ok)
            printf("      %s: %s\n", names[i], line);
        bw_mock_fault_clear(f.mock);
        /* The pages may still be pinned by what could not be freed: use others. */
        void *fresh = new_pages();
        BW_OK(live(f.sys, fresh, &err), &err);
        fixture_close(&f);
        munmap(pages, 12288);
        munmap(fresh, 12288);
    }
}

static void refusals_have_hints(void)
{
    static const struct {
        const char *fault, *hint;
        int code;
    } cases[] = {
#ifdef BW_TESTS_DRM
        {"ioctl.GEM_CREATE:fail=ENOMEM", "free something", -ENOMEM},
        {"ioctl.GEM_VA:fail=EINVAL,nth=3", "mapped for the GPU already", -EINVAL},
        {"ioctl.CS:fail=ENOMEM", "no place for the buffers", -ENOMEM},
        {"ioctl.CS:fail=ECANCELED", "earlier work of this queue", -ECANCELED},
#else
        {"ioctl.ACQUIRE_VM:fail=EBUSY", "another context of this process", -EBUSY},
        {"ioctl.ALLOC_MEMORY_OF_GPU:fail=EINVAL,nth=2", "resizable BAR", -EINVAL},
        {"ioctl.ALLOC_MEMORY_OF_GPU:fail=ENOMEM,nth=3", "free something", -ENOMEM},
        {"ioctl.CREATE_QUEUE:fail=EINVAL", "kernel log", -EINVAL},
        {"ioctl.WAIT_EVENTS:fail=EIO", "the GPU is gone", -EIO},
#endif
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct kfd_fixture f;
        struct bw_err err = {0};
        void *pages = new_pages();
        if (!fixture_machine(&f, "gfx1100", GPUS, 1 << 30))
            return;
        BW_OK(bw_mock_fault_add(f.mock, cases[i].fault, &err), &err);
        BW_EQ(live(f.sys, pages, &err), cases[i].code);
        if (!BW_TRUE(strstr(err.hint, cases[i].hint) != NULL))
            printf("      %s: %s\n", cases[i].fault, err.hint);
        bw_mock_fault_clear(f.mock);
        fixture_close(&f);
        munmap(pages, 12288);
    }
}

/* EINTR at each ioctl in turn: repeated, and nobody notices. */
static void interrupted_ioctls_are_repeated(void)
{
    bool fired = true;
    uint64_t count = 0;
    for (; fired && count < 200; count++) {
        struct kfd_fixture f;
        struct bw_err err = {0};
        void *pages = new_pages();
        if (!fixture_machine(&f, "gfx1100", GPUS, 1 << 30))
            return;
        bw_sys_wrap_fail(f.sys, BW_SYS_CALL_IOCTL, count + 1, EINTR);
        BW_OK(live(f.sys, pages, &err), &err);
        fired = bw_sys_wrap_fired(f.sys);
        fixture_close(&f);
        munmap(pages, 12288);
    }
    BW_TRUE(count > 25);
}

static void ignore_alarm(int number)
{
}

static void a_timer_changes_nothing(void)
{
    struct sigaction action = {.sa_handler = ignore_alarm};
    struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct kfd_fixture f;
    struct bw_err err = {0};
    void *pages = new_pages();
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 20; i++) {
        if (!fixture_machine(&f, "gfx1100", GPUS, 1 << 30) || !BW_OK(live(f.sys, pages, &err), &err))
            break;
        fixture_close(&f);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    munmap(pages, 12288);
}

struct worker {
    struct bw_sys *sys;
    int result;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    void *pages = new_pages();
    struct bw_err err;
    for (int i = 0; i < 10 && !worker->result; i++)
        worker->result = live(worker->sys, pages, &err);
    munmap(pages, 12288);
    return NULL;
}

/* Threads that open, use and close one GPU, and a second context beside them. */
static void threads_and_contexts_do_not_meet(void)
{
    enum { WORKERS = 4 };
    struct kfd_fixture one, two;
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    if (!fixture_machine(&one, "gfx1100", GPUS, 1 << 30) ||
        !fixture_machine(&two, WAY_EITHER("gfx942", "gfx1201"), GPUS, 1 << 30))
        return;
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){i ? one.sys : two.sys, 0};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        BW_EQ(workers[i].result, 0);
    }
    fixture_close(&one);
    fixture_close(&two);
}

BW_TEST_MAIN("scenario.every_call_fails", {"every call of every kind", every_call_of_every_kind},
             {"each ioctl names itself, and all is well afterwards",
              each_ioctl_names_itself_and_all_is_well_afterwards},
             {"refusals have hints", refusals_have_hints},
             {"interrupted ioctls are repeated", interrupted_ioctls_are_repeated},
             {"a timer changes nothing", a_timer_changes_nothing},
             {"threads and contexts do not meet", threads_and_contexts_do_not_meet})
