/* KFD events as the kernel treats them: latching, auto-reset, several waiters, mailboxes, interrupts. */
#include <pthread.h>

#include "tests/unit/mock/client.h"

struct fixture {
    struct client c;
    struct memory page;
};

static bool open_fixture(struct fixture *f)
{
    if (!client_open(&f->c) || !BW_EQ(memory_create(&f->c, 0x8000, GTT, &f->page), 0))
        return false;
    f->c.event_page = f->page.handle;
    return true;
}

static int simple(struct client *c, unsigned number, uint32_t id)
{
    uint32_t args[2] = {id, 0};
    return client_ioctl(c, number, args, sizeof args);
}

enum { DESTROY = 0x09, SET = 0x0a, RESET = 0x0b, COMPLETE = 0, TIMEOUT = 1, FAIL = 2 };

static void the_event_page_is_given_once(void)
{
    struct fixture f;
    struct create_event_args a, b;
    if (!open_fixture(&f))
        return;
    ((uint64_t *)f.page.cpu)[7] = 0;
    BW_EQ(event_create(&f.c, 0, true, &a), 0);
    BW_TRUE(a.id >= 1 && a.slot == a.id && a.trigger == a.id);
    BW_TRUE(a.page != 0);
    BW_EQ(((uint64_t *)f.page.cpu)[7], UINT64_MAX); /* all mailboxes unsignalled */
    f.c.event_page = f.page.handle;
    BW_EQ(event_create(&f.c, 0, true, &b), -EINVAL);
    BW_EQ(event_create(&f.c, 8, true, &b), 0);
    BW_TRUE(b.id >= 4096);
    BW_EQ(memory_unmap(&f.c, &f.page), 0);
    BW_EQ(client_ioctl(&f.c, 0x17, &f.page.handle, 8), -EPERM);
    client_close(&f.c);
}

static void a_wrong_event_page_is_refused(void)
{
    struct fixture f;
    struct memory small, vram;
    struct create_event_args a;
    if (!open_fixture(&f) || !BW_EQ(memory_create(&f.c, PAGE, GTT, &small), 0) ||
        !BW_EQ(memory_create(&f.c, 0x8000, VRAM, &vram), 0))
        return;
    f.c.event_page = small.handle;
    BW_EQ(event_create(&f.c, 0, true, &a), -EINVAL);
    f.c.event_page = vram.handle;
    BW_EQ(event_create(&f.c, 0, true, &a), -EINVAL);
    f.c.event_page = 12345;
    BW_EQ(event_create(&f.c, 0, true, &a), -EINVAL);
    client_close(&f.c);
}

static void setting_latches_and_waiting_resets(void)
{
    struct fixture f;
    struct create_event_args automatic, manual;
    struct event_data data;
    uint32_t result;
    if (!open_fixture(&f) || !BW_EQ(event_create(&f.c, 0, true, &automatic), 0) ||
        !BW_EQ(event_create(&f.c, 0, false, &manual), 0))
        return;
    BW_EQ(event_wait(&f.c, automatic.id, 0, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    BW_EQ(event_wait(&f.c, automatic.id, 5, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    BW_EQ(simple(&f.c, SET, automatic.id), 0);
    BW_EQ(simple(&f.c, SET, automatic.id), 0);
    BW_EQ(event_wait(&f.c, automatic.id, 0, &data, &result), 0);
    BW_EQ(result, COMPLETE);
    BW_EQ(event_wait(&f.c, automatic.id, 0, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    BW_EQ(simple(&f.c, SET, manual.id), 0);
    for (int i = 0; i < 2; i++) {
        BW_EQ(event_wait(&f.c, manual.id, 0, &data, &result), 0);
        BW_EQ(result, COMPLETE);
    }
    BW_EQ(simple(&f.c, RESET, manual.id), 0);
    BW_EQ(event_wait(&f.c, manual.id, 0, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    /* all of several; what is done is consumed even when the whole is not */
    struct event_data both[2] = {{.id = automatic.id}, {.id = manual.id}};
    struct wait_args args = {.events = (uintptr_t)both, .count = 2, .all = 1};
    BW_EQ(simple(&f.c, SET, automatic.id), 0);
    BW_EQ(client_ioctl(&f.c, 0x0c, &args, sizeof args), 0);
    BW_EQ(args.result, TIMEOUT);
    BW_EQ(simple(&f.c, SET, automatic.id), 0);
    BW_EQ(simple(&f.c, SET, manual.id), 0);
    BW_EQ(client_ioctl(&f.c, 0x0c, &args, sizeof args), 0);
    BW_EQ(args.result, COMPLETE);
    BW_EQ(simple(&f.c, SET, 999), -EINVAL);
    BW_EQ(event_wait(&f.c, 999, 0, &data, &result), -EINVAL);
    BW_EQ(simple(&f.c, DESTROY, manual.id), 0);
    BW_EQ(simple(&f.c, DESTROY, manual.id), -EINVAL);
    client_close(&f.c);
}

struct waiter {
    struct client *c;
    uint32_t id, result;
    int rc;
};

static void *wait_thread(void *user)
{
    struct waiter *waiter = user;
    struct event_data data;
    waiter->rc = event_wait(waiter->c, waiter->id, 20000, &data, &waiter->result);
    return NULL;
}

static void setting_wakes_all_who_wait(void)
{
    struct fixture f;
    struct create_event_args event;
    struct event_data data;
    uint32_t result;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct waiter waiters[THREADS];
    if (!open_fixture(&f) || !BW_EQ(event_create(&f.c, 0, true, &event), 0))
        return;
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){.c = &f.c, .id = event.id, .result = 99};
        pthread_create(&threads[i], NULL, wait_thread, &waiters[i]);
    }
    f.c.sys->ops->sleep_ns(f.c.sys, 30000000);
    BW_EQ(simple(&f.c, SET, event.id), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        BW_EQ(waiters[i].rc, 0);
        BW_EQ(waiters[i].result, COMPLETE);
    }
    BW_EQ(event_wait(&f.c, event.id, 0, &data, &result), 0);
    BW_EQ(result, TIMEOUT); /* it was not latched */
    /* destroying it fails who waits */
    waiters[0].result = 99;
    pthread_create(&threads[0], NULL, wait_thread, &waiters[0]);
    f.c.sys->ops->sleep_ns(f.c.sys, 20000000);
    BW_EQ(simple(&f.c, DESTROY, event.id), 0);
    pthread_join(threads[0], NULL);
    BW_EQ(waiters[0].rc, -EIO);
    BW_EQ(waiters[0].result, FAIL);
    client_close(&f.c);
}

#define RELEASE_INTERRUPT(va, id, context) \
    PM4(0x49, 7), 0x14u | 5u << 8, 2u << 29 | 2u << 24, lo(va), hi(va), id, 0, context

static void engines_interrupt(void)
{
    struct fixture f;
    struct queue compute, sdma;
    struct create_event_args a, b;
    struct event_data data;
    uint32_t result;
    if (!open_fixture(&f) || !BW_EQ(event_create(&f.c, 0, true, &a), 0) ||
        !BW_EQ(event_create(&f.c, 0, true, &b), 0) || !queue_create(&f.c, COMPUTE, &compute) ||
        !queue_create(&f.c, SDMA, &sdma))
        return;
    uint64_t mailbox_a = f.page.va + a.slot * 8, mailbox_b = f.page.va + b.slot * 8;
    queue_submit(&f.c, &compute, (const uint32_t[]){RELEASE_INTERRUPT(mailbox_a, a.id, a.id)}, 8);
    BW_EQ(event_wait(&f.c, a.id, 20000, &data, &result), 0);
    BW_EQ(result, COMPLETE);
    BW_EQ(((uint64_t *)f.page.cpu)[a.slot], UINT64_MAX); /* the kernel acknowledged it */
    /* an id that says nothing: every mailbox is looked at */
    queue_submit(&f.c, &compute, (const uint32_t[]){RELEASE_INTERRUPT(mailbox_b, b.id, 0)}, 8);
    BW_EQ(event_wait(&f.c, b.id, 20000, &data, &result), 0);
    BW_EQ(result, COMPLETE);
    queue_submit(&f.c, &sdma, (const uint32_t[]){5, lo(mailbox_b), hi(mailbox_b), b.id, 6, b.id}, 6);
    BW_EQ(event_wait(&f.c, b.id, 20000, &data, &result), 0);
    BW_EQ(result, COMPLETE);
    /* an interrupt with no mailbox written wakes nobody */
    queue_submit(&f.c, &sdma, (const uint32_t[]){6, b.id}, 2);
    BW_EQ(event_wait(&f.c, b.id, 20, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    struct bw_mock_stats stats;
    bw_mock_stats(f.c.sys, &stats);
    BW_EQ(stats.interrupts, 4);
    client_close(&f.c);
}

static void ages_show_what_was_missed(void)
{
    struct fixture f;
    struct create_event_args event;
    if (!open_fixture(&f) || !BW_EQ(event_create(&f.c, 0, true, &event), 0))
        return;
    struct event_data data = {.id = event.id, .age = 1};
    struct wait_args args = {.events = (uintptr_t)&data, .count = 1};
    BW_EQ(simple(&f.c, SET, event.id), 0);
    BW_EQ(client_ioctl(&f.c, 0x0c, &args, sizeof args), 0);
    BW_EQ(args.result, COMPLETE);
    BW_EQ(data.age, 2);
    BW_EQ(client_ioctl(&f.c, 0x0c, &args, sizeof args), 0);
    BW_EQ(args.result, TIMEOUT);
    data.age = 1; /* somebody who saw less */
    BW_EQ(client_ioctl(&f.c, 0x0c, &args, sizeof args), 0);
    BW_EQ(args.result, COMPLETE);
    client_close(&f.c);
}

static void single_step_time_is_virtual(void)
{
    struct client c;
    struct bw_mock_config config = {.size = sizeof config, .arch = "gfx1100", .single_step = true};
    struct create_event_args event;
    struct event_data data;
    uint32_t result;
    if (!client_open_config(&c, &config) || !BW_EQ(event_create(&c, 0, true, &event), 0))
        return;
    uint64_t before = c.sys->ops->clock_ns(c.sys);
    BW_EQ(event_wait(&c, event.id, 3600 * 1000, &data, &result), 0);
    BW_EQ(result, TIMEOUT);
    BW_EQ(c.sys->ops->clock_ns(c.sys) - before, 3600ull * 1000000000);
    c.sys->ops->sleep_ns(c.sys, 1000000000);
    BW_EQ(c.sys->ops->clock_ns(c.sys) - before, 3601ull * 1000000000);
    client_close(&c);
}

BW_TEST_MAIN("mock.event", {"the event page is given once", the_event_page_is_given_once},
             {"a wrong event page is refused", a_wrong_event_page_is_refused},
             {"setting latches and waiting resets", setting_latches_and_waiting_resets},
             {"setting wakes all who wait", setting_wakes_all_who_wait},
             {"engines interrupt", engines_interrupt},
             {"ages show what was missed", ages_show_what_was_missed},
             {"single-step time is virtual", single_step_time_is_virtual})
