/* Goal (S9): a program with a 1 ms interval timer, whose handler does not restart system calls, uses a mock
 * GPU as well as any other. */
#include <signal.h>
#include <sys/time.h>

#include "tests/unit/mock/client.h"

static _Atomic int ticks;

static void tick(int number)
{
    ticks++;
}

static void start_timer(void)
{
    struct sigaction action = {.sa_handler = tick}; /* no SA_RESTART */
    struct itimerval every = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

static void stop_timer(void)
{
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
}

static void queues_events_and_memory_work(void)
{
    struct client c;
    struct queue compute, sdma;
    struct memory page, m;
    struct create_event_args event;
    struct event_data data;
    uint32_t result;
    enum { ROUNDS = 300 };
    start_timer();
    if (!client_open(&c) || !queue_create(&c, COMPUTE, &compute) || !queue_create(&c, SDMA, &sdma) ||
        !BW_EQ(memory_create(&c, 0x8000, GTT, &page), 0))
        return;
    c.event_page = page.handle;
    BW_EQ(event_create(&c, 0, true, &event), 0);
    uint64_t mailbox = page.va + event.slot * 8;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        if (!BW_EQ(memory_create(&c, 16 * PAGE, GTT, &m), 0))
            return;
        BW_EQ(*(uint32_t *)m.cpu, 0); /* zeroed, whatever was there before */
        *((uint32_t *)m.cpu + 1) = i;
        queue_submit(&c, &sdma,
                     (const uint32_t[]){1, 3, 0, lo(m.va + 4), hi(m.va), lo(m.va), hi(m.va), 5 | 3u << 16,
                                        lo(m.va + 8), hi(m.va), i, 0, 0, 0, 0, 0},
                     16);
        queue_submit(&c, &compute,
                     (const uint32_t[]){PM4(0x3c, 6), 3 | 1u << 4, lo(m.va + 8), hi(m.va), i, 0xffffffff, 4,
                                        PM4(0x49, 7), 0x14u | 5u << 8, 2u << 29 | 2u << 24, lo(mailbox),
                                        hi(mailbox), event.id, 0, event.id},
                     15);
        if (!BW_EQ(event_wait(&c, event.id, 20000, &data, &result), 0) || !BW_EQ(result, 0))
            return;
        BW_EQ(*(uint32_t *)m.cpu, i);
        BW_EQ(memory_destroy(&c, &m), 0);
    }
    for (int i = 0; i < 20; i++) {
        BW_EQ(event_wait(&c, event.id, 3, &data, &result), 0);
        BW_EQ(result, 1);
    }
    stop_timer();
    BW_TRUE(ticks > 20);
    queue_destroy(&c, &compute);
    queue_destroy(&c, &sdma);
    client_close(&c);
}

BW_TEST_MAIN("scenario.mock_under_timer", {"queues, events and memory work", queues_events_and_memory_work})
