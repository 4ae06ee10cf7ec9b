/* Fault injection: what the grammar takes, and that each fault strikes where and when it says. */
#include "tests/unit/mock/client.h"

static void the_grammar(void)
{
    struct client c;
    struct bw_err err;
    if (!client_open(&c))
        return;
    static const char *const good[] = {
        "ioctl.CREATE_QUEUE:fail=ENOMEM",
        "ioctl.create_event:fail=12,nth=3,count=2",
        "map:fail=EPERM,nth=2",
        "map:fail=EWOULDBLOCK",
        "map:fail=edeadlock",
        "map:fail=ENOTSUP",
        "doorbell:drop,gpu=0,seed=7",
        "doorbell:delay=10",
        "irq:dup",
        "sdma1:hang,nth=5",
        "mec:delay=1",
        "kernel:dup,count=1",
        "kernel:hang",
        "ioctl.INFO:delay=5",
    };
    static const struct {
        const char *text, *named;
    } bad[] = {
        {"doorbell", "no ':'"},
        {"psp:hang", "no site \"psp\""},
        {"sdma2:hang", "no site \"sdma2\""}, /* a gfx1100 has two engines */
        {"sdma:hang", "no site \"sdma\""},
        {":hang", "no site \"\""},
        {"ioctl.:fail=EIO", "no site"},
        {"ioctl.CREATE_QUEUES:fail=EIO", "no site \"ioctl.CREATE_QUEUES\""},
        {"ioctl.CREATE_QUEUE:hang", "does not fit site \"ioctl.CREATE_QUEUE\""},
        {"irq:hang", "does not fit"},
        {"sdma0:dup", "does not fit"},
        {"mec:hang,gpu=1", "gpu=1 on a machine of 1"},
        {"map:fail=EIO,gpu=0", "whole machine"},
        {"mec:delay=99999999999", "is no delay"},
        {"mec:hang,step=psp", "\"step=psp\" is not an option"},
        {"map:explode", "\"explode\" is not an action"},
        {"map:fail", "\"fail\" is not an action"},
        {"map:fail=EWHAT", "fail=\"EWHAT\" is no errno"},
        {"map:delay=x", "delay=\"x\" is no delay"},
        {"map:drop", "does not fit site \"map\""},
        {"doorbell:fail=EIO", "does not fit"},
        {"mec:hang,nth=0", "\"nth=0\" is not an option"},
        {"mec:hang,often=3", "\"often=3\" is not an option"},
        {"mec:hang,nth", "\"nth\" is not an option"},
        {"mec:hang,nth=1,nth=2", "\"nth=2\" is not an option, or given twice"},
        {"mec:hang,count=1,count=1", "\"count=1\" is not an option, or given twice"},
        {"mec:hang,gpu=0,gpu=0", "\"gpu=0\" is not an option, or given twice"},
        {"mec:hang,seed=0,seed=1", "\"seed=1\" is not an option, or given twice"},
        {"mec:hang,nth= 1", "\"nth= 1\" is not an option"},
        {"mec:hang,nth=+1", "\"nth=+1\" is not an option"},
        {"mec:fail=+5", "fail=\"+5\" is no errno"},
        {"mec:delay= 5", "delay=\" 5\" is no delay"},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        BW_OK(bw_mock_fault_add(c.sys, good[i], &err), &err);
    bw_mock_fault_clear(c.sys);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        BW_EQ(bw_mock_fault_add(c.sys, bad[i].text, &err), -EINVAL);
        if (!strstr(err.what, bad[i].named))
            BW_STR(err.what, bad[i].named);
    }
    /* What is wrong comes with what would be right on this machine. */
    BW_EQ(bw_mock_fault_add(c.sys, "sdma2:hang", &err), -EINVAL);
    BW_STR(err.hint, "sites: map, node, doorbell, irq, mec, kernel, sdma0, sdma1, ioctl.NAME");
    BW_EQ(bw_mock_fault_add(c.sys, "ioctl.X:fail=EIO", &err), -EINVAL);
    BW_TRUE(strstr(err.hint, "ioctls: GET_VERSION, CREATE_QUEUE, ") == err.hint);
    BW_TRUE(strstr(err.hint, ", RUNTIME_ENABLE, VERSION, INFO, ") != NULL);
    BW_TRUE(strstr(err.hint, ", SYNCOBJ_FD_TO_HANDLE, DRM") != NULL); /* the last: nothing was cut */
    BW_EQ(bw_mock_fault_add(c.sys, "doorbell:fail=EIO", &err), -EINVAL);
    BW_STR(err.hint, "actions there: drop, delay=MS, dup");
    client_close(&c);
}

/* Which sites there are depends on the chip. */
static void the_sites_are_the_chips(void)
{
    struct bw_mock_config config = {.size = sizeof config, .arch = "gfx942", .gpu_count = 2, .threads = 1};
    struct bw_sys *sys;
    struct bw_err err;
    if (!BW_OK(bw_mock_kfd_create(&config, &sys, &err), &err))
        return;
    BW_OK(bw_mock_fault_add(sys, "sdma15:hang,gpu=1", &err), &err); /* two of its own, 14 for XGMI */
    BW_EQ(bw_mock_fault_add(sys, "sdma16:hang", &err), -EINVAL);
    BW_EQ(bw_mock_fault_add(sys, "mec:hang,gpu=2", &err), -EINVAL);
    bw_sys_destroy(sys);
}

static void calls_fail_on_time(void)
{
    struct client c;
    struct memory m;
    struct create_event_args event;
    if (!client_open(&c))
        return;
    BW_EQ(bw_mock_fault_add(c.sys, "ioctl.create_event:fail=ENOSPC,nth=2,count=2", NULL), 0);
    static const int expected[] = {0, -ENOSPC, -ENOSPC, 0};
    for (int i = 0; i < 4; i++)
        BW_EQ(event_create(&c, 0, true, &event), expected[i]);
    BW_EQ(bw_mock_fault_add(c.sys, "map:fail=ENOMEM,nth=1", NULL), 0);
    BW_EQ(memory_create(&c, PAGE, GTT, &m), -ENOMEM);
    BW_EQ(memory_create(&c, PAGE, GTT, &m), 0);
    BW_EQ(bw_mock_fault_add(c.sys, "ioctl.ALLOC_MEMORY_OF_GPU:fail=EIO", NULL), 0);
    for (int i = 0; i < 3; i++)
        BW_EQ(memory_create(&c, PAGE, GTT, &m), -EIO);
    bw_mock_fault_clear(c.sys);
    BW_EQ(memory_create(&c, PAGE, GTT, &m), 0);
    client_close(&c);
}

struct fixture {
    struct client c;
    struct queue q;
    struct memory m;
};

/* Stepped: what is late is late by the virtual clock. */
static bool open_fixture(struct fixture *f, uint32_t type)
{
    struct bw_mock_config config = {
        .size = sizeof config, .arch = "gfx1100", .threads = 1, .single_step = true, .seed = 3};
    if (!client_open_config(&f->c, &config) || !queue_create(&f->c, type, &f->q) ||
        !BW_EQ(memory_create(&f->c, PAGE, GTT, &f->m), 0))
        return false;
    memset(f->m.cpu, 0, PAGE);
    return true;
}

static void write_word(struct fixture *f, uint32_t value)
{
    if (f->q.type == SDMA)
        queue_submit(&f->c, &f->q, (const uint32_t[]){5, lo(f->m.va), hi(f->m.va), value}, 4);
    else
        queue_submit(&f->c, &f->q, (const uint32_t[]){PM4(0x37, 4), 5u << 8, lo(f->m.va), hi(f->m.va), value},
                     5);
}

static bool stays(struct fixture *f, uint32_t value)
{
    f->c.sys->ops->sleep_ns(f->c.sys, 15000000);
    return BW_EQ(*(volatile uint32_t *)f->m.cpu, value);
}

static void doorbells_get_lost_and_late(void)
{
    struct fixture f;
    if (!open_fixture(&f, COMPUTE))
        return;
    BW_EQ(bw_mock_fault_add(f.c.sys, "doorbell:drop,nth=1", NULL), 0);
    write_word(&f, 1);
    stays(&f, 0);
    write_word(&f, 2); /* the next one brings both */
    BW_TRUE(wait_word(&f.c, f.m.cpu, 2));
    bw_mock_fault_clear(f.c.sys);
    BW_EQ(bw_mock_fault_add(f.c.sys, "doorbell:delay=60,nth=1", NULL), 0);
    write_word(&f, 3);
    stays(&f, 2);
    BW_TRUE(wait_word(&f.c, f.m.cpu, 3));
    client_close(&f.c);
}

static void engines_hang_fail_and_die(void)
{
    struct fixture f;
    if (!open_fixture(&f, SDMA))
        return;
    BW_EQ(bw_mock_fault_add(f.c.sys, "sdma0:hang,nth=2", NULL), 0);
    write_word(&f, 1);
    BW_TRUE(wait_word(&f.c, f.m.cpu, 1));
    write_word(&f, 2);
    stays(&f, 1);
    queue_destroy(&f.c, &f.q); /* bounded */
    bw_mock_fault_clear(f.c.sys);
    if (!queue_create(&f.c, SDMA, &f.q))
        return;
    write_word(&f, 3);
    BW_TRUE(wait_word(&f.c, f.m.cpu, 3));
    queue_destroy(&f.c, &f.q);
    BW_EQ(bw_mock_fault_add(f.c.sys, "mec:fail=EIO,nth=1", NULL), 0);
    if (!queue_create(&f.c, COMPUTE, &f.q))
        return;
    write_word(&f, 4);
    wait_error(&f.c, "injected failure");
    stays(&f, 3);
    client_close(&f.c);
}

static void interrupts_get_lost(void)
{
    struct fixture f;
    struct memory page;
    struct create_event_args event;
    struct event_data data;
    uint32_t result;
    if (!open_fixture(&f, SDMA) || !BW_EQ(memory_create(&f.c, 0x8000, GTT, &page), 0))
        return;
    f.c.event_page = page.handle;
    BW_EQ(event_create(&f.c, 0, true, &event), 0);
    BW_EQ(bw_mock_fault_add(f.c.sys, "irq:drop,nth=1", NULL), 0);
    uint64_t mailbox = page.va + event.slot * 8;
    const uint32_t words[] = {5, lo(mailbox), hi(mailbox), event.id, 6, event.id};
    queue_submit(&f.c, &f.q, words, 6);
    BW_EQ(event_wait(&f.c, event.id, 30, &data, &result), 0);
    BW_EQ(result, 1);
    queue_submit(&f.c, &f.q, words, 6);
    BW_EQ(event_wait(&f.c, event.id, 20000, &data, &result), 0);
    BW_EQ(result, 0);
    client_close(&f.c);
}

static void a_seed_decides_alike(void)
{
    uint32_t seen[2] = {0};
    for (int run = 0; run < 2; run++) {
        struct client c;
        struct create_event_args event;
        if (!client_open(&c))
            return;
        BW_EQ(bw_mock_fault_add(c.sys, "ioctl.CREATE_EVENT:fail=EIO,seed=42", NULL), 0);
        for (int i = 0; i < 32; i++)
            seen[run] |= (uint32_t)(event_create(&c, 0, true, &event) != 0) << i;
        client_close(&c);
    }
    BW_EQ(seen[0], seen[1]);
    BW_TRUE(seen[0] != 0 && seen[0] != UINT32_MAX);
}

BW_TEST_MAIN("mock.fault", {"the grammar", the_grammar},
             {"the sites are the chip's", the_sites_are_the_chips},
             {"calls fail on time", calls_fail_on_time},
             {"doorbells get lost and late", doorbells_get_lost_and_late},
             {"engines hang, fail and die", engines_hang_fail_and_die},
             {"interrupts get lost", interrupts_get_lost}, {"a seed decides alike", a_seed_decides_alike})
