/* Goal: what profiles are made into for people, from profiles that say exactly what happened: sums by kernel
 * and queue, gaps with their causes, and a trace that holds whatever names and times are in it. */
#include <errno.h>

#include <bellwire/profile.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/trace_check.h"

enum { CALLS_MAX = 16 };

struct story {
    struct bw_profile profile;
    struct bw_call_profile calls[CALLS_MAX];
    struct bw_profile_dependency dependencies[CALLS_MAX];
};

static struct story story(uint64_t ticket, uint64_t called_ns, uint64_t free_ns, uint64_t submitted_ns)
{
    return (struct story){.profile = {.graph = 1,
                                      .ticket = ticket,
                                      .called_ns = called_ns,
                                      .free_ns = free_ns,
                                      .submitted_ns = submitted_ns}};
}

static const struct bw_profile *told(struct story *story)
{
    story->profile.calls = story->calls;
    story->profile.dependencies = story->dependencies;
    return &story->profile;
}

static struct bw_call_profile *call(struct story *story, const char *name, uint32_t queue, uint64_t begin_ns,
                                    uint64_t end_ns)
{
    static const char *const labels[] = {"compute queue 0", "compute queue 1", "copy queue 0"};
    struct bw_call_profile *fresh = &story->calls[story->profile.call_count];
    *fresh = (struct bw_call_profile){.name = name,
                                      .device = "gpu",
                                      .queue_label = labels[queue],
                                      .queue = queue,
                                      .call = story->profile.call_count++,
                                      .begin_ns = begin_ns,
                                      .end_ns = end_ns};
    return fresh;
}

static void after(struct story *story, uint32_t consumer, uint32_t producer, enum bw_profile_order order)
{
    story->dependencies[story->profile.dependency_count++] =
        (struct bw_profile_dependency){consumer, producer, order};
}

static struct bw_profile_report *report_of(const struct bw_profile *const *profiles, uint32_t count)
{
    struct bw_profile_report *report = NULL;
    struct bw_err err = {0};
    BW_OK(bw_profile_report_make(profiles, count, &report, &err), &err);
    return report;
}

static void kernels_and_queues_are_summed(void)
{
    struct story one = story(1, 1000, 1000, 1500);
    struct bw_call_profile *a = call(&one, "a", 0, 2000, 3000);
    a->flops = 5000;
    a->bytes_read = 600;
    a->bytes_written = 400;
    *call(&one, "a", 0, 2500, 3500) = (struct bw_call_profile){.name = "a", /* overlaps the first */
                                                               .device = "gpu",
                                                               .queue_label = "compute queue 0",
                                                               .call = 1,
                                                               .flops = 1000,
                                                               .begin_ns = 2500,
                                                               .end_ns = 3500};
    call(&one, "b", 1, 2000, 2100);
    struct bw_call_profile *copy = call(&one, "copy", 2, 4000, 5000);
    copy->copy = true;
    copy->source = "host";
    copy->target = "gpu";
    copy->bytes_read = copy->bytes_written = 700;
    struct bw_profile_report *report = report_of((const struct bw_profile *const[]){told(&one)}, 1);
    if (report && BW_EQ(report->kernel_count, 3) && BW_EQ(report->queue_count, 3)) {
        BW_EQ(report->begin_ns, 1000);
        BW_EQ(report->end_ns, 5000);
        BW_EQ(report->time_ns, 3100);
        BW_STR(report->kernels[0].name, "a");
        BW_EQ(report->kernels[0].calls, 2);
        BW_EQ(report->kernels[0].time_ns, 2000);
        BW_EQ(report->kernels[0].bytes, 1000);
        BW_NEAR(report->kernels[0].flops, 6000, 0);
        BW_STR(report->kernels[1].name, "copy host -> gpu");
        BW_EQ(report->kernels[1].bytes, 700); /* moved once */
        BW_STR(report->kernels[2].name, "b");
        BW_STR(report->queues[0].label, "compute queue 0");
        BW_EQ(report->queues[0].calls, 2);
        BW_EQ(report->queues[0].busy_ns, 1500); /* not twice where calls overlap */
        BW_EQ(report->queues[1].busy_ns, 100);
        BW_EQ(report->queues[2].busy_ns, 1000);
    }
    bw_profile_report_destroy(report);
}

static const struct bw_profile_gap *gap_before(const struct bw_profile_report *report,
                                               const struct bw_call_profile *wanted)
{
    for (uint32_t i = 0; i < report->gap_count; i++) {
        if (report->gaps[i].call == wanted)
            return &report->gaps[i];
    }
    BW_TRUE(!"a gap before that call");
    return &report->gaps[0];
}

static void gaps_are_named(void)
{
    struct story one = story(1, 1000, 1000, 1500), two = story(2, 1600, 9000, 9100),
                 three = story(3, 12000, 12000, 12100), four = story(4, 12200, 12200, 12300);
    call(&one, "first", 0, 2000, 3000);  /* 0: the host called */
    call(&one, "far", 1, 2000, 4000);    /* 1 */
    call(&one, "late", 0, 5000, 6000);   /* 2: for 1, on the device */
    call(&one, "own", 0, 6010, 7000);    /* 3: for nobody; 2 is on its queue */
    call(&one, "hosted", 1, 8000, 8500); /* 4: for 3, by the host */
    after(&one, 2, 0, BW_PROFILE_ORDER_QUEUE);
    after(&one, 2, 1, BW_PROFILE_ORDER_DEVICE);
    after(&one, 3, 2, BW_PROFILE_ORDER_QUEUE);
    after(&one, 4, 3, BW_PROFILE_ORDER_HOST);
    call(&two, "next", 0, 9500, 10000);     /* asked for at 1600, but an instance was free at 9000 */
    call(&three, "new", 0, 12500, 20000);   /* asked for while the queue was idle */
    call(&four, "behind", 1, 20100, 20200); /* asked for while 1 idled, but 0 was at work until 20000 */
    const struct bw_profile *profiles[] = {told(&four), told(&three), told(&two), told(&one)};
    struct bw_profile_report *report = report_of(profiles, 4);
    if (!report)
        return;
    struct {
        const struct bw_call_profile *call, *waited;
        enum bw_profile_cause cause;
        uint64_t idle_ns;
    } expected[] = {
        {&one.calls[0], NULL, BW_PROFILE_CAUSE_REPLAY, 1000},
        {&one.calls[1], NULL, BW_PROFILE_CAUSE_REPLAY, 1000},
        {&one.calls[2], &one.calls[1], BW_PROFILE_CAUSE_CALL, 2000},
        {&one.calls[3], NULL, BW_PROFILE_CAUSE_START, 10},
        {&one.calls[4], &one.calls[3], BW_PROFILE_CAUSE_HOST, 4000},
        {&two.calls[0], NULL, BW_PROFILE_CAUSE_INSTANCE, 2500},
        {&three.calls[0], NULL, BW_PROFILE_CAUSE_REPLAY, 2500},
        {&four.calls[0], &three.calls[0], BW_PROFILE_CAUSE_EARLIER, 11600},
    };
    BW_EQ(report->gap_count, BW_COUNT_OF(expected));
    for (size_t i = 0; i < BW_COUNT_OF(expected); i++) {
        const struct bw_profile_gap *gap = gap_before(report, expected[i].call);
        BW_EQ(gap->cause, expected[i].cause);
        BW_TRUE(gap->waited == expected[i].waited);
        BW_EQ(gap->end_ns - gap->begin_ns, expected[i].idle_ns);
    }
    BW_EQ(report->gaps[0].end_ns - report->gaps[0].begin_ns, 11600); /* longest first */
    bw_profile_report_destroy(report);
}

/* ---- traces ---- */

static void trace_of(const struct bw_profile *const *profiles, uint32_t count, struct trace_check *check)
{
    char *text = NULL;
    uint64_t size_bytes = 0;
    struct bw_err err = {0};
    *check = (struct trace_check){0};
    if (!BW_OK(bw_profile_trace(profiles, count, &text, &size_bytes, &err), &err))
        return;
    BW_EQ(strlen(text), size_bytes);
    if (!BW_TRUE(trace_check(check, text)))
        printf("      %s\n", check->why);
    for (uint64_t i = 0; i < size_bytes; i++) {
        if (!BW_TRUE(text[i] == '\n' ||
                     (text[i] >= 0x20 && text[i] < 0x7f))) /* the story's names are escaped */
            break;
    }
    free(text);
}

static const cJSON *event_find(const struct trace_check *check, const char *phase, const char *name,
                               uint32_t number)
{
    const cJSON *event;
    cJSON_ArrayForEach(event, check->document->child)
    {
        if (strcmp(trace_string(event, "ph"), phase) == 0 && strcmp(trace_string(event, "name"), name) == 0 &&
            number-- == 0)
            return event;
    }
    BW_TRUE(!"an event of that name");
    return NULL;
}

static void slices_say_what_they_did(void)
{
    struct story one = story(7, 1000000, 1000100, 1000500);
    struct trace_check check;
    struct bw_call_profile *kernel = call(&one, "a", 0, 1001000, 1003001);
    kernel->bytes_read = 3000;
    kernel->bytes_written = 1002;
    kernel->flops = 20010;
    struct bw_call_profile *copy = call(&one, "copy", 2, 1004000, 1005000);
    copy->copy = true;
    copy->source = "host";
    copy->target = "gpu";
    copy->bytes_read = copy->bytes_written = 5000;
    after(&one, 1, 0, BW_PROFILE_ORDER_DEVICE);
    trace_of((const struct bw_profile *const[]){told(&one)}, 1, &check);
    BW_EQ(check.calls, 2);
    BW_EQ(check.flows, 3); /* one dependency, and the replay to each queue */
    const cJSON *slice = event_find(&check, "X", "a", 0), *other = event_find(&check, "X", "copy", 0);
    if (slice && other) {
        BW_NEAR(trace_number(slice, "ts"), 1, 1e-9);
        BW_NEAR(trace_number(slice, "dur"), 2.001, 1e-9);
        BW_NEAR(trace_number(trace_arguments(slice), "gflops"), 10, 1e-9);
        BW_NEAR(trace_number(trace_arguments(slice), "gb_per_s"), 2, 1e-9);
        BW_NEAR(trace_number(trace_arguments(slice), "ticket"), 7, 0);
        BW_NEAR(trace_number(trace_arguments(other), "gb_per_s"), 5, 1e-9);
        BW_STR(trace_string(trace_arguments(other), "from"), "host");
        BW_STR(trace_string(trace_arguments(other), "to"), "gpu");
    }
    trace_check_free(&check);
}

/* What counters say, times how long they say it, is what was done. */
static double counter_sum(const struct trace_check *check, const char *name, const char *unit)
{
    const cJSON *event;
    double sum = 0, value = 0, since_ns = 0;
    cJSON_ArrayForEach(event, check->document->child)
    {
        if (strcmp(trace_string(event, "ph"), "C") != 0 || strcmp(trace_string(event, "name"), name) != 0)
            continue;
        sum += value * (trace_ns(trace_number(event, "ts")) - since_ns);
        value = trace_number(trace_arguments(event), unit);
        since_ns = trace_ns(trace_number(event, "ts"));
    }
    BW_NEAR(value, 0, 0); /* at the end nothing is done */
    return sum;
}

static void counters_add_up(void)
{
    struct story one = story(1, 0, 10, 20);
    struct trace_check check;
    for (uint32_t i = 0; i < 10; i++) {
        struct bw_call_profile *kernel = call(&one, "a", i % 2, 100 + i * 977, 100 + i * 977 + 300 + i * 7);
        kernel->bytes_read = 1000 * (i + 1);
        kernel->bytes_written = 1;
        kernel->flops = 100.5 * i;
    }
    call(&one, "instant", 0, 8000, 8000)->bytes_written = 12345;
    trace_of((const struct bw_profile *const[]){told(&one)}, 1, &check);
    BW_NEAR(counter_sum(&check, "memory", "GB/s"), 55000 + 10 + 12345, 1e-3);
    BW_NEAR(counter_sum(&check, "arithmetic", "GFLOPS"), 100.5 * 45, 1e-3);
    BW_NEAR(counter_sum(&check, "compute queue 0 busy", "%"), 100.0 * (5 * 300 + 7 * 20), 1e-3);
    BW_NEAR(counter_sum(&check, "compute queue 1 busy", "%"), 100.0 * (5 * 300 + 7 * 25), 1e-3);
    trace_check_free(&check);
}

/* Calls of no length at one time, calls that overlap on their queue, consumers that seem to begin first. */
static void traces_hold_with_any_times(void)
{
    struct story one = story(1, 100, 100, 200), two = story(2, 150, 160, 170);
    struct trace_check check;
    for (uint32_t i = 0; i < 4; i++) {
        call(&one, "instant", 0, 1000, 1000);
        if (i)
            after(&one, i, i - 1, BW_PROFILE_ORDER_QUEUE);
    }
    call(&one, "long", 1, 900, 2000);    /* 4 */
    call(&one, "inside", 1, 1000, 1500); /* 5 */
    call(&one, "across", 1, 1200, 2500); /* 6 */
    after(&one, 6, 3, BW_PROFILE_ORDER_DEVICE);
    call(&one, "early", 2, 800, 1100); /* 7: before its producer, by its clock */
    after(&one, 7, 4, BW_PROFILE_ORDER_DEVICE);
    call(&one, "over", 2, 1100, 1110); /* 8: over before its producer begins: no arrow can be drawn */
    after(&one, 8, 6, BW_PROFILE_ORDER_GIVEN);
    call(&two, "before", 0, 50, 60); /* before it was asked for, by its clock */
    trace_of((const struct bw_profile *const[]){told(&one), told(&two)}, 2, &check);
    BW_EQ(check.calls, 10);
    BW_EQ(check.replays, 2);
    BW_EQ(check.flows, 3 + 1 + 1 + 3); /* chain, across, early; the first replay to three queues */
    BW_EQ(check.processes, 2);
    trace_check_free(&check);
}

static void traces_hold_with_any_names(void)
{
    static const char *const names[] = {"\"}],\n", "\x1b[2J", "\xff\xfe", "a\\", "\xe2\x80\xae", ""};
    struct story one = story(1, 0, 0, 10);
    struct trace_check check;
    for (uint32_t i = 0; i + 1 < BW_COUNT_OF(names); i++)
        call(&one, names[i], 0, 100 * (i + 1), 100 * (i + 1) + 50)->device = names[i];
    trace_of((const struct bw_profile *const[]){told(&one)}, 1, &check);
    BW_EQ(check.calls, BW_COUNT_OF(names) - 1);
    BW_EQ(check.processes, BW_COUNT_OF(names));
    trace_check_free(&check);
}

static void nothing_is_a_trace_too(void)
{
    struct story one = story(1, 5, 5, 5);
    struct trace_check check;
    trace_of(NULL, 0, &check);
    BW_EQ(check.slices, 0);
    trace_check_free(&check);
    trace_of((const struct bw_profile *const[]){told(&one)}, 1, &check);
    BW_EQ(check.replays, 1);
    trace_check_free(&check);
    struct bw_profile_report *report = report_of(NULL, 0);
    if (report)
        BW_EQ(report->kernel_count + report->queue_count + report->gap_count, 0);
    bw_profile_report_destroy(report);
}

BW_TEST_MAIN("trace", {"kernels_and_queues_are_summed", kernels_and_queues_are_summed},
             {"gaps_are_named", gaps_are_named}, {"slices_say_what_they_did", slices_say_what_they_did},
             {"counters_add_up", counters_add_up}, {"traces_hold_with_any_times", traces_hold_with_any_times},
             {"traces_hold_with_any_names", traces_hold_with_any_names},
             {"nothing_is_a_trace_too", nothing_is_a_trace_too})
