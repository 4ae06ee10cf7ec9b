/* Goal: host memory of a GPU lies on the memory node next to it, through the KFD and through the render node;
 * nothing is asked where there is no choice, and whoever forbids it is asked once. */
#include <errno.h>

#include <sys/mman.h>
#include <unistd.h>

#include "iface/numa.h"
#include "tests/kfd_fixture.h"

enum { GPUS = 4, NODES = 2 };

typedef int open_function(struct bw_sys *sys, uint32_t index, struct bw_iface **iface, struct bw_err *err);
static open_function *const ways[] = {bw_kfd_open, bw_drm_open};

static bool machine_open(struct kfd_fixture *f, uint32_t nodes, bool unknown)
{
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = "gfx1100",
                                    .gpu_count = GPUS,
                                    .vram_bytes = 64 << 20,
                                    .threads = 1,
                                    .nodes = nodes,
                                    .node_unknown = unknown};
    struct bw_err err = {0};
    *f = (struct kfd_fixture){0};
    return BW_OK(bw_mock_kfd_create(&config, &f->mock, &err), &err) &&
           BW_EQ(bw_sys_wrap_create(f->mock, &f->sys), 0);
}

static int thread_has_policy(struct kfd_fixture *f)
{
    struct bw_node_request request = {.operation = BW_NODE_ASK};
    return f->mock->ops->node(f->mock, &request);
}

static uint64_t node_calls(struct kfd_fixture *f)
{
    return bw_sys_wrap_calls(f->sys, BW_SYS_CALL_NODE);
}

/* Where a page of host memory of an open GPU comes to lie. */
static uint32_t node_of_new(struct kfd_fixture *f, struct bw_iface *iface, uint32_t flags)
{
    struct bw_iface_memory memory;
    struct bw_err err = {0};
    if (!BW_OK(iface->ops->alloc(iface, 3 * 4096, BW_IFACE_HOST | flags, 0, &memory, &err), &err))
        return UINT32_MAX;
    const char *base = (const char *)memory.cpu.base;
    uint32_t node = bw_mock_memory_node(f->mock, base);
    BW_EQ(bw_mock_memory_node(f->mock, base + memory.size_bytes - 1), node);
    BW_OK(iface->ops->free(iface, &memory, &err), &err);
    return node;
}

static void host_memory_is_near_its_gpu(void)
{
    for (size_t way = 0; way < 2; way++) {
        struct kfd_fixture f;
        struct bw_iface *gpus[GPUS];
        struct pm4_fixture queue;
        struct bw_err err = {0};
        if (!machine_open(&f, NODES, false))
            return;
        for (uint32_t i = 0; i < GPUS; i++) {
            if (!BW_OK(ways[way](f.sys, i, &gpus[i], &err), &err))
                return;
            const struct bw_iface_properties *p = &gpus[i]->properties;
            BW_TRUE(p->has_numa_node && p->numa_choice && !p->numa_error);
            BW_EQ(p->numa_node, i * NODES / GPUS);
        }
        for (uint32_t i = GPUS; i-- > 0;) {
            BW_EQ(node_of_new(&f, gpus[i], 0), i * NODES / GPUS);
            BW_EQ(node_of_new(&f, gpus[i], BW_IFACE_UNCACHED | BW_IFACE_EXECUTABLE), i * NODES / GPUS);
        }
        BW_EQ(thread_has_policy(&f), 0);
        uint64_t calls = node_calls(&f);
        BW_OK(pm4_open(&queue, gpus[3], &err), &err);
        BW_EQ(bw_mock_memory_node(f.mock, (const void *)queue.ring.cpu.base), 1);
        BW_TRUE(node_calls(&f) > calls);
        calls = node_calls(&f);
        BW_OK(pm4_signal(&queue, queue.ring.gpu_va + 2048, 3, &err), &err);
        BW_EQ(node_calls(&f), calls);
        BW_OK(pm4_close(&queue, &err), &err);
        BW_EQ(node_calls(&f), calls); /* nor does freeing ask */
        for (uint32_t i = 0; i < GPUS; i++)
            gpus[i]->ops->close(gpus[i]);
        fixture_close(&f);
    }
}

/* numactl's word counts more, and is still there afterwards. */
static void a_policy_of_somebody_else_stays(void)
{
    for (size_t way = 0; way < 2; way++) {
        struct kfd_fixture f;
        struct bw_node_request mine = {.operation = BW_NODE_THREAD, .node = 0};
        struct bw_err err = {0};
        if (!machine_open(&f, NODES, false) || !BW_OK(ways[way](f.sys, GPUS - 1, &f.iface, &err), &err))
            return;
        BW_EQ(f.mock->ops->node(f.mock, &mine), 0);
        BW_EQ(node_of_new(&f, f.iface, 0), 0);
        BW_EQ(thread_has_policy(&f), 1);
        mine.node = BW_NODE_DEFAULT;
        BW_EQ(f.mock->ops->node(f.mock, &mine), 0);
        BW_EQ(node_of_new(&f, f.iface, 0), 1);
        fixture_close(&f);
    }
}

static void without_a_choice_nothing_is_asked(void)
{
    static const struct {
        uint32_t nodes;
        bool unknown;
    } machines[] = {{0, false}, {1, false}, {NODES, true}};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        for (size_t way = 0; way < 2; way++) {
            struct kfd_fixture f;
            struct bw_err err = {0};
            if (!machine_open(&f, machines[i].nodes, machines[i].unknown) ||
                !BW_OK(ways[way](f.sys, GPUS - 1, &f.iface, &err), &err))
                return;
            BW_EQ(f.iface->properties.has_numa_node, !machines[i].unknown);
            BW_TRUE(!f.iface->properties.numa_choice && !f.iface->properties.numa_error);
            BW_EQ(node_of_new(&f, f.iface, 0), 0);
            BW_EQ(node_calls(&f), 0);
            fixture_close(&f);
        }
    }
}

/* A container's filter: known from the first question on. */
static void a_kernel_that_refuses_is_asked_once(void)
{
    static const struct {
        const char *fault;
        int error;
    } refusals[] = {{"node:fail=EPERM", EPERM}, {"node:fail=ENOSYS", ENOSYS}};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        for (size_t way = 0; way < 2; way++) {
            struct kfd_fixture f;
            struct bw_err err = {0};
            if (!machine_open(&f, NODES, false) ||
                !BW_OK(bw_mock_fault_add(f.mock, refusals[i].fault, &err), &err) ||
                !BW_OK(ways[way](f.sys, GPUS - 1, &f.iface, &err), &err))
                return;
            BW_TRUE(f.iface->properties.has_numa_node && !f.iface->properties.numa_choice);
            BW_EQ(f.iface->properties.numa_node, 1);
            BW_EQ(f.iface->properties.numa_error, -refusals[i].error);
            for (int k = 0; k < 3; k++)
                BW_EQ(node_of_new(&f, f.iface, 0), 0);
            BW_EQ(node_calls(&f), 1);
            fixture_close(&f);
        }
    }
}

/* Later it is not asked again either; and the thread is never left with a policy that is not its own. */
static void a_refusal_later_ends_it(void)
{
    for (uint64_t nth = 1; nth <= 3; nth++) { /* asking, setting, taking back */
        for (size_t way = 0; way < 2; way++) {
            struct kfd_fixture f;
            struct bw_err err = {0};
            if (!machine_open(&f, NODES, false) || !BW_OK(ways[way](f.sys, GPUS - 1, &f.iface, &err), &err))
                return;
            uint64_t calls = node_calls(&f);
            bw_sys_wrap_fail(f.sys, BW_SYS_CALL_NODE, nth, EINVAL);
            BW_EQ(node_of_new(&f, f.iface, 0), nth == 3);
            BW_TRUE(bw_sys_wrap_fired(f.sys));
            BW_EQ(thread_has_policy(&f), 0);
            BW_EQ(node_of_new(&f, f.iface, 0), 0);
            BW_EQ(node_calls(&f) - calls, nth == 3 ? 4 : nth);
            fixture_close(&f);
        }
    }
}

static void what_was_touched_stays_where_it_is(void)
{
    struct kfd_fixture f;
    struct bw_region region;
    struct bw_map_request map = {.fd = -1, .size_bytes = 4 * 4096, .writable = true};
    if (!machine_open(&f, NODES, false) || !BW_EQ(f.sys->ops->map(f.sys, &map, &region), 0))
        return;
    char *base = (char *)(uintptr_t)region.base;
    struct bw_node_request place = {BW_NODE_RANGE, 1, (uintptr_t)base, region.size_bytes};
    base[4096] = 1;
    BW_EQ(bw_mock_memory_node(f.mock, base), 0);
    BW_EQ(f.sys->ops->node(f.sys, &place), 0);
    for (uint32_t page = 0; page < 4; page++)
        BW_EQ(bw_mock_memory_node(f.mock, base + page * 4096), page != 1);
    place.node = NODES;
    BW_EQ(f.sys->ops->node(f.sys, &place), -EINVAL);
    place.node = 1;
    place.address += 1;
    BW_EQ(f.sys->ops->node(f.sys, &place), -EINVAL);
    place.address -= 1;
    BW_EQ(f.sys->ops->unmap(f.sys, &region), 0);
    BW_EQ(f.sys->ops->node(f.sys, &place), -EFAULT);
    BW_EQ(bw_mock_memory_node(f.mock, base), 0);
    fixture_close(&f);
}

/* Two files of a machine that is not there, and a kernel that says yes. */
struct told {
    struct bw_sys sys;
    struct bw_sys_ops ops;
    const char *numa_node, *has_memory; /* NULL: no such file */
};

static int told_open(struct bw_sys *sys, const char *path, int flags)
{
    const struct told *told = (const struct told *)sys;
    const char *text = strstr(path, "/numa_node") ? told->numa_node : told->has_memory;
    int fd = text ? memfd_create("bellwire-test", MFD_CLOEXEC) : -1;
    if (fd < 0)
        return -ENOENT;
    BW_EQ(write(fd, text, strlen(text)), strlen(text));
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int told_node(struct bw_sys *sys, const struct bw_node_request *request)
{
    return 0;
}

static void what_sysfs_says_is_understood(void)
{
    static const struct {
        const char *numa_node, *has_memory;
        bool known, choice;
        uint32_t node;
    } cases[] = {
        {"1\n", "0-1\n", true, true, 1},
        {"0\n", "0-1\n", true, true, 0},
        {"0\n", "0\n", true, false, 0},
        {"-1\n", "0-1\n", false, false, 0},
        {"3\n", "0,2-3,8\n", true, true, 3},
        {"1\n", "0,2-3,8\n", true, false, 1}, /* near a node of CPUs only */
        {"8\n", "0,8\n", true, true, 8},
        {"1023\n", "0-1023\n", true, true, 1023},
        {"1024\n", "0-1024\n", false, false, 0},
        {"1\n", "1-0\n", true, false, 1},
        {"1\n", "", true, false, 1},
        {"1\n", NULL, true, false, 1},
        {"", "0-1\n", false, false, 0},
        {"near\n", "0-1\n", false, false, 0},
        {NULL, "0-1\n", false, false, 0},
    };
    struct bw_sys *host;
    if (!BW_EQ(bw_sys_host_create(&host), 0))
        return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct told told = {.ops = *host->ops};
        struct bw_numa numa;
        told.sys.ops = &told.ops;
        told.ops.open = told_open;
        told.ops.node = told_node;
        told.numa_node = cases[i].numa_node;
        told.has_memory = cases[i].has_memory;
        bw_numa_read(&told.sys, 128, &numa);
        BW_EQ(numa.known, cases[i].known);
        BW_EQ(numa.choice, cases[i].choice);
        BW_EQ(numa.node, cases[i].node);
        told.ops.node = NULL; /* a machine without */
        bw_numa_read(&told.sys, 128, &numa);
        BW_EQ(numa.choice, false);
        BW_EQ(numa.error, cases[i].choice ? -ENOSYS : 0);
    }
    bw_sys_destroy(host);
}

BW_TEST_MAIN("iface.numa", {"what sysfs says is understood", what_sysfs_says_is_understood},
             {"host memory is near its GPU", host_memory_is_near_its_gpu},
             {"a policy of somebody else stays", a_policy_of_somebody_else_stays},
             {"without a choice nothing is asked", without_a_choice_nothing_is_asked},
             {"a kernel that refuses is asked once", a_kernel_that_refuses_is_asked_once},
             {"a refusal later ends it", a_refusal_later_ends_it},
             {"what was touched stays where it is", what_was_touched_stays_where_it_is})
