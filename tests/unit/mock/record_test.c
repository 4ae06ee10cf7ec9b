/* Recordings: what engines executed, in each queue's order, with the values that words had before; nothing
 * when off. */
#include "mock/record.h"

#include <errno.h>

#include "tests/unit/mock/client.h"

struct fixture {
    struct client c;
    struct queue q;
    struct memory vram, host, signal;
};

static bool open_fixture(struct fixture *f)
{
    return client_open(&f->c) && queue_create(&f->c, SDMA, &f->q) &&
           BW_EQ(memory_create(&f->c, 4 * PAGE, VRAM, &f->vram), 0) &&
           BW_EQ(memory_create(&f->c, 4 * PAGE, GTT, &f->host), 0) &&
           BW_EQ(memory_create(&f->c, PAGE, GTT, &f->signal), 0);
}

static void close_fixture(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    BW_EQ(memory_destroy(&f->c, &f->vram), 0);
    BW_EQ(memory_destroy(&f->c, &f->host), 0);
    BW_EQ(memory_destroy(&f->c, &f->signal), 0);
    client_close(&f->c);
}

#define PUT(f, ...) \
    queue_put(&(f)->q, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static void put_copy(struct fixture *f, uint64_t target, uint64_t source, uint32_t bytes)
{
    PUT(f, 1, bytes - 1, 0, lo(source), hi(source), lo(target), hi(target));
}

static void put_fence(struct fixture *f, uint64_t va, uint32_t value)
{
    PUT(f, 5 | 3u << 16, lo(va), hi(va), value);
}

static void put_wait(struct fixture *f, uint64_t va, uint32_t value) /* until the word is at least that */
{
    PUT(f, 8 | 5u << 28 | 1u << 31, lo(va), hi(va), value, 0xffffffff, 0xfffu << 16 | 10);
}

static void run_some(struct fixture *f, uint32_t last)
{
    put_copy(f, f->vram.va, f->host.va, 100);
    put_wait(f, f->signal.va + 8, 7);
    put_copy(f, f->host.va + PAGE, f->vram.va, 300);
    put_fence(f, f->signal.va, last);
    queue_ring(&f->c, &f->q);
    BW_TRUE(wait_word(&f->c, f->signal.cpu, last));
}

static void there_is_one_at_a_time(void)
{
    struct fixture f;
    struct bw_mock_recording recording;
    struct bw_err err = {0};
    if (!open_fixture(&f))
        return;
    BW_EQ(bw_mock_record_end(f.c.sys, &recording, &err), -ENOENT);
    BW_OK(bw_mock_record_begin(f.c.sys, &err), &err);
    BW_EQ(bw_mock_record_begin(f.c.sys, &err), -EALREADY);
    BW_OK(bw_mock_record_end(f.c.sys, &recording, &err), &err);
    BW_EQ(recording.events.count, 0);
    bw_mock_recording_free(&recording);
    BW_OK(bw_mock_record_begin(f.c.sys, &err), &err); /* this one ends with the machine */
    close_fixture(&f);
}

static void check_events(const struct bw_mock_recording *recording)
{
    const struct bw_mock_event *events = recording->events.data;
    if (!BW_EQ(recording->events.count, 4) || !BW_EQ(recording->queues.count, 1) ||
        !BW_EQ(recording->words.count, 2))
        return;
    BW_EQ(recording->queues.data[0].gpu, 0);
    BW_EQ(recording->queues.data[0].engine, 0);
    BW_EQ(events[0].kind, BW_MOCK_EVENT_COPY);
    BW_EQ(events[0].from, BW_MOCK_RECORD_HOST);
    BW_EQ(events[0].to, 0);
    BW_EQ(events[0].size_bytes, 100);
    BW_EQ(events[1].kind, BW_MOCK_EVENT_WAIT);
    BW_EQ(events[1].function, 5);
    BW_EQ(events[1].value, 7);
    BW_EQ(recording->words.data[events[1].word].initial, 9);
    BW_EQ(events[2].from, 0);
    BW_EQ(events[2].to, BW_MOCK_RECORD_HOST);
    BW_EQ(events[2].size_bytes, 300);
    BW_EQ(events[3].kind, BW_MOCK_EVENT_WRITE);
    BW_EQ(events[3].value, 20);
    BW_EQ(recording->words.data[events[3].word].initial, 3); /* before it was written */
    BW_TRUE(events[3].word != events[1].word);
}

static void what_was_executed_is_recorded(void)
{
    struct fixture f;
    struct bw_mock_recording recording;
    struct bw_err err = {0};
    if (!open_fixture(&f))
        return;
    ((volatile uint32_t *)f.signal.cpu)[2] = 9;
    run_some(&f, 3); /* off: not recorded */
    BW_OK(bw_mock_record_begin(f.c.sys, &err), &err);
    run_some(&f, 20);
    BW_OK(bw_mock_record_end(f.c.sys, &recording, &err), &err);
    check_events(&recording);
    bw_mock_recording_free(&recording);
    run_some(&f, 21);
    BW_OK(bw_mock_record_begin(f.c.sys, &err), &err); /* ends with the machine */
    run_some(&f, 22);
    close_fixture(&f);
}

BW_TEST_MAIN("record", {"there_is_one_at_a_time", there_is_one_at_a_time},
             {"what_was_executed_is_recorded", what_was_executed_is_recorded})
