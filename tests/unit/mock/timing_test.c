/* The simulation of time, against cases that can be worked out by hand. */
#include "mock/timing.h"

#include <errno.h>

#include "tests/check.h"

enum { HOST = BW_TOPOLOGY_HOST, GREATER_OR_EQUAL = 5, ALL_BITS = 0xffffffff };

struct bench {
    struct bw_topology topology;
    struct bw_mock_recording recording;
    struct bw_timing timing;
    struct bw_err err;
};

/* Three GPUs of two engines at 32 GB/s. 0 and 1 are linked at 64 GB/s and 0.5 us; the others reach each other
 * over the host: up at 10 GB/s, down to 1 at 30, down to 2 at 4, no latency. */
static const char topology_text[] = "{\"gpus\":3,\"engines_per_gpu\":2,\"engine_gb_per_s\":32,\"links\":["
                                    "{\"from\":0,\"to\":1,\"gb_per_s\":64,\"latency_us\":0.5},{\"from\":1,"
                                    "\"to\":0,\"gb_per_s\":64,\"latency_us\":0.5},"
                                    "{\"from\":0,\"to\":\"host\",\"gb_per_s\":10,\"latency_us\":0},"
                                    "{\"from\":1,\"to\":\"host\",\"gb_per_s\":10,\"latency_us\":0},"
                                    "{\"from\":\"host\",\"to\":1,\"gb_per_s\":30,\"latency_us\":0},"
                                    "{\"from\":\"host\",\"to\":2,\"gb_per_s\":4,\"latency_us\":0}]}";

static void bench_open(struct bench *bench)
{
    *bench = (struct bench){0};
    BW_OK(bw_topology_parse("three", topology_text, sizeof topology_text - 1, &bench->topology, &bench->err),
          &bench->err);
}

static void bench_close(struct bench *bench)
{
    bw_topology_free(&bench->topology);
    bw_mock_recording_free(&bench->recording);
    bw_timing_free(&bench->timing);
}

static uint32_t queue_add(struct bench *bench, uint32_t gpu, uint32_t engine)
{
    struct bw_mock_record_queue queue = {.gpu = gpu, .engine = engine, .name = "sdma"};
    BW_EQ(bw_vec_push(&bench->recording.queues, queue), 0);
    return (uint32_t)bench->recording.queues.count - 1;
}

static uint32_t word_add(struct bench *bench, uint32_t initial)
{
    struct bw_mock_record_word word = {bench->recording.words.count, initial};
    BW_EQ(bw_vec_push(&bench->recording.words, word), 0);
    return (uint32_t)bench->recording.words.count - 1;
}

static void event_add(struct bench *bench, struct bw_mock_event event)
{
    BW_EQ(bw_vec_push(&bench->recording.events, event), 0);
}

static void copy_add(struct bench *bench, uint32_t queue, uint32_t from, uint32_t to, uint64_t bytes)
{
    event_add(bench, (struct bw_mock_event){BW_MOCK_EVENT_COPY, queue, from, to, .size_bytes = bytes});
}

static void wait_add(struct bench *bench, uint32_t queue, uint32_t word, uint32_t value)
{
    event_add(bench, (struct bw_mock_event){BW_MOCK_EVENT_WAIT, queue, .word = word,
                                            .function = GREATER_OR_EQUAL, .mask = ALL_BITS, .value = value});
}

static void write_add(struct bench *bench, uint32_t queue, uint32_t word, uint32_t value)
{
    event_add(bench, (struct bw_mock_event){BW_MOCK_EVENT_WRITE, queue, .word = word, .value = value});
}

static bool takes_ns(struct bench *bench, double expected_ns)
{
    bw_timing_free(&bench->timing);
    return BW_OK(bw_timing_simulate(&bench->topology, &bench->recording, &bench->timing, &bench->err),
                 &bench->err) &&
           BW_NEAR(bench->timing.seconds * 1e9, expected_ns, 1e-6 * expected_ns);
}

static void one_copy_is_as_fast_as_its_engine(void)
{
    struct bench bench;
    bench_open(&bench);
    copy_add(&bench, queue_add(&bench, 0, 1), 0, 1, 64000);
    takes_ns(&bench, 500 + 2000); /* latency; 32 of the link's 64 GB/s */
    BW_EQ(bench.timing.bytes, 64000);
    BW_NEAR(bench.timing.link_busy[0], 1000.0 / 2500, 1e-9);
    BW_NEAR(bench.timing.link_busy[1], 0, 1e-9);
    BW_NEAR(bench.timing.engine_busy[0], 0, 1e-9);
    BW_NEAR(bench.timing.engine_busy[1], 2000.0 / 2500, 1e-9);
    bench_close(&bench);
}

static void two_copies_share_a_link(void)
{
    struct bench bench;
    bench_open(&bench);
    uint32_t a = queue_add(&bench, 0, 0), b = queue_add(&bench, 0, 1);
    copy_add(&bench, a, 0, HOST, 10000); /* both at 5 GB/s until 10000 bytes of each are over, */
    copy_add(&bench, b, 0, HOST, 30000); /* then 20000 at 10 */
    takes_ns(&bench, 2000 + 2000);
    BW_NEAR(bench.timing.link_busy[2], 1, 1e-9);
    bench_close(&bench);
}

static void two_queues_share_an_engine(void)
{
    struct bench bench;
    bench_open(&bench);
    copy_add(&bench, queue_add(&bench, 0, 0), 0, 0, 32000); /* within a GPU: no link */
    copy_add(&bench, queue_add(&bench, 0, 0), 0, 0, 32000);
    takes_ns(&bench, 2000);
    copy_add(&bench, queue_add(&bench, 0, 1), 0, 0, 32000); /* the other engine does not matter */
    takes_ns(&bench, 2000);
    BW_NEAR(bench.timing.engine_busy[0], 1, 1e-9);
    BW_NEAR(bench.timing.engine_busy[1], 0.5, 1e-9);
    bench_close(&bench);
}

/* What one flow cannot use, since it is held up elsewhere, the other one gets. */
static void shares_are_max_min_fair(void)
{
    struct bench bench;
    bench_open(&bench);
    copy_add(&bench, queue_add(&bench, 0, 0), 0, 2, 4000);    /* 4 GB/s: down to GPU 2 */
    copy_add(&bench, queue_add(&bench, 0, 1), 0, HOST, 6000); /* 6 of the 10 GB/s up */
    takes_ns(&bench, 1000);
    BW_NEAR(bench.timing.link_busy[2], 1, 1e-9);
    BW_NEAR(bench.timing.link_busy[5], 1, 1e-9);
    bench_close(&bench);
}

static void a_chain_of_waits_adds_up(void)
{
    struct bench bench;
    bench_open(&bench);
    uint32_t a = queue_add(&bench, 0, 0), b = queue_add(&bench, 1, 0), c = queue_add(&bench, 1, 1);
    uint32_t first = word_add(&bench, 6), second = word_add(&bench, 0xfffffff0);
    wait_add(&bench, c, second, 2); /* not over, and compared as unsigned */
    copy_add(&bench, c, 1, 0, 32000);
    wait_add(&bench, b, first, 7);
    copy_add(&bench, b, 1, HOST, 10000);
    write_add(&bench, b, second, 2);
    wait_add(&bench, a, first, 6); /* over before it begins */
    copy_add(&bench, a, 0, 1, 32000);
    write_add(&bench, a, first, 7);
    bench.recording.words.data[second].initial = 1;
    takes_ns(&bench, 1500 + 1000 + 1500);
    bench_close(&bench);
}

static void what_waits_for_nobody_is_named(void)
{
    struct bench bench;
    bench_open(&bench);
    uint32_t queue = queue_add(&bench, 2, 1);
    wait_add(&bench, queue, word_add(&bench, 3), 4);
    BW_EQ(bw_timing_simulate(&bench.topology, &bench.recording, &bench.timing, &bench.err), -EDEADLK);
    BW_STR(bench.err.what, "GPU 2, sdma waits for a word that nobody writes so");
    BW_STR(bench.err.expected, ">= 0x4");
    BW_STR(bench.err.observed, "0x3");
    bench_close(&bench);
}

static void refuses(uint32_t gpu, uint32_t engine, uint32_t from, uint32_t to, const char *what)
{
    struct bench bench;
    bench_open(&bench);
    copy_add(&bench, queue_add(&bench, gpu, engine), from, to, 1);
    BW_EQ(bw_timing_simulate(&bench.topology, &bench.recording, &bench.timing, &bench.err), -EINVAL);
    BW_STR(bench.err.what, what);
    bench_close(&bench);
}

static void what_the_topology_lacks_is_named(void)
{
    refuses(3, 0, 0, 1, "topology three has 3 GPUs, and GPU 3 was used");
    refuses(0, 2, 0, 1, "topology three has 2 engines per GPU, and engine 2 was used");
    refuses(2, 0, 2, 1, "topology three has no link from GPU 2 to GPU 1, and none over the host");
    refuses(0, 0, 0, 5, "topology three has no link from GPU 0 to GPU 5, and none over the host");
    refuses(0, 0, HOST, 0, "topology three has no link from the host to GPU 0, and none over the host");
}

static void nothing_takes_no_time(void)
{
    struct bench bench;
    bench_open(&bench);
    BW_OK(bw_timing_simulate(&bench.topology, &bench.recording, &bench.timing, &bench.err), &bench.err);
    BW_EQ(bench.timing.seconds == 0, true);
    BW_EQ(bench.timing.link_busy[0] == 0, true);
    bench_close(&bench);
}

static void the_bound_is_the_slowest_link_or_gpu(void)
{
    struct bench bench;
    double seconds = 0;
    bench_open(&bench);
    uint64_t by_link[9] = {0, 64000, 4000, 0, 0, 4000}; /* GPU 2's link down carries both: 8000 at 4 GB/s */
    BW_OK(bw_timing_bound(&bench.topology, by_link, &seconds, &bench.err), &bench.err);
    BW_NEAR(seconds * 1e9, 2000, 1e-6);
    uint64_t by_engine[9] = {100000, 156000}; /* 256000 by two engines; the link needs 2437.5 */
    BW_OK(bw_timing_bound(&bench.topology, by_engine, &seconds, &bench.err), &bench.err);
    BW_NEAR(seconds * 1e9, 4000, 1e-6);
    uint64_t nowhere[9] = {[6] = 1};
    BW_EQ(bw_timing_bound(&bench.topology, nowhere, &seconds, &bench.err), -EINVAL);
    bench_close(&bench);
}

BW_TEST_MAIN("timing", {"one_copy_is_as_fast_as_its_engine", one_copy_is_as_fast_as_its_engine},
             {"two_copies_share_a_link", two_copies_share_a_link},
             {"two_queues_share_an_engine", two_queues_share_an_engine},
             {"shares_are_max_min_fair", shares_are_max_min_fair},
             {"a_chain_of_waits_adds_up", a_chain_of_waits_adds_up},
             {"what_waits_for_nobody_is_named", what_waits_for_nobody_is_named},
             {"what_the_topology_lacks_is_named", what_the_topology_lacks_is_named},
             {"nothing_takes_no_time", nothing_takes_no_time},
             {"the_bound_is_the_slowest_link_or_gpu", the_bound_is_the_slowest_link_or_gpu})
