/* --profile: the trace's file, and where the time went as tables or JSON. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <bellwire/profile.h>

#include "compiler/io.h"
#include "tools/print.h"
#include "tools/run.h"
#include "tools/tool.h"

enum { GAPS_SHOWN = 10 };

int bw_run_profile_take(struct bw_run *run, struct bw_err *err)
{
    const struct bw_profile *const *profiles;
    uint32_t count = bw_model_profiles(run->model, &profiles);
    char *text = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_profile_trace(profiles, count, &text, &size_bytes, err);
    const struct bw_file_piece piece = {text, size_bytes};
    if (!rc)
        rc = bw_file_write(run->profile, &piece, 1, err);
    if (!rc)
        rc = bw_profile_report_make(profiles, count, &run->profile_report, err);
    free(text);
    return rc;
}

static double microseconds(uint64_t time_ns)
{
    return (double)time_ns * 1e-3;
}

static double share(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns ? (double)part_ns / (double)whole_ns : 0;
}

/* Per nanosecond: GFLOPS, GB/s. */
static double rate(double amount, uint64_t time_ns)
{
    return time_ns ? amount / (double)time_ns : 0;
}

/* ---- for people ---- */

static void kernels_print(const struct bw_profile_report *report)
{
    bw_print(stdout, "%12s %6s %7s %9s %9s  %s\n", "time us", "share", "calls", "GFLOPS", "GB/s", "kernel");
    for (uint32_t i = 0; i < report->kernel_count; i++) {
        const struct bw_profile_kernel *kernel = &report->kernels[i];
        bw_print(stdout, "%12.3f %5.1f%% %7" PRIu64 " %9.3f %9.3f  %s\n", microseconds(kernel->time_ns),
                 100 * share(kernel->time_ns, report->time_ns), kernel->calls,
                 rate(kernel->flops, kernel->time_ns), rate((double)kernel->bytes, kernel->time_ns),
                 kernel->name);
    }
}

static void queues_print(const struct bw_profile_report *report)
{
    uint64_t span_ns = report->end_ns - report->begin_ns;
    bw_print(stdout, "%12s %6s %7s  of %.3f us, queue\n", "busy us", "share", "calls", microseconds(span_ns));
    for (uint32_t i = 0; i < report->queue_count; i++) {
        const struct bw_profile_queue *queue = &report->queues[i];
        bw_print(stdout, "%12.3f %5.1f%% %7u  %s, %s\n", microseconds(queue->busy_ns),
                 100 * share(queue->busy_ns, span_ns), queue->calls, queue->label, queue->device);
    }
}

static const char *call_noun(const struct bw_call_profile *call)
{
    return call->copy ? "" : "kernel ";
}

static void cause_print(const struct bw_profile_gap *gap)
{
    const struct bw_call_profile *waited = gap->waited;
    switch (gap->cause) {
    case BW_PROFILE_CAUSE_CALL:
        bw_print(stdout, "%s%s on %s, %s", call_noun(waited), waited->name, waited->queue_label,
                 waited->device);
        break;
    case BW_PROFILE_CAUSE_HOST:
        bw_print(stdout, "the host, which waited for %s%s on %s, %s", call_noun(waited), waited->name,
                 waited->queue_label, waited->device);
        break;
    case BW_PROFILE_CAUSE_REPLAY:
        bw_print(stdout, "the host, which submitted replay %" PRIu64 " of graph %" PRIu64,
                 gap->profile->ticket, gap->profile->graph);
        break;
    case BW_PROFILE_CAUSE_INSTANCE:
        bw_print(stdout, "a free instance of graph %" PRIu64, gap->profile->graph);
        break;
    case BW_PROFILE_CAUSE_EARLIER:
        bw_print(stdout, "earlier replays on other queues");
        break;
    case BW_PROFILE_CAUSE_START:
        bw_print(stdout, "its own start");
        break;
    }
}

static void gaps_print(const struct bw_profile_report *report)
{
    uint32_t shown = report->gap_count < GAPS_SHOWN ? report->gap_count : GAPS_SHOWN;
    if (shown)
        bw_print(stdout, "%12s  the longest %u of %u: where, before what, waited for what\n", "idle us",
                 shown, report->gap_count);
    for (uint32_t i = 0; i < shown; i++) {
        const struct bw_profile_gap *gap = &report->gaps[i];
        bw_print(stdout, "%12.3f  %s, %s, before %s%s: waited for ",
                 microseconds(gap->end_ns - gap->begin_ns), gap->call->queue_label, gap->call->device,
                 call_noun(gap->call), gap->call->name);
        cause_print(gap);
        bw_print(stdout, "\n");
    }
}

void bw_run_profile_print(const struct bw_run *run)
{
    if (run->profile_report->kernel_count == 0) /* the evaluator's */
        return;
    kernels_print(run->profile_report);
    queues_print(run->profile_report);
    gaps_print(run->profile_report);
}

/* ---- JSON ---- */

static void kernels_json(const struct bw_profile_report *report, cJSON *rows)
{
    for (uint32_t i = 0; i < report->kernel_count; i++) {
        const struct bw_profile_kernel *kernel = &report->kernels[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", kernel->name);
        cJSON_AddNumberToObject(row, "calls", (double)kernel->calls);
        cJSON_AddNumberToObject(row, "time_ns", (double)kernel->time_ns);
        cJSON_AddNumberToObject(row, "share", share(kernel->time_ns, report->time_ns));
        cJSON_AddNumberToObject(row, "bytes", (double)kernel->bytes);
        cJSON_AddNumberToObject(row, "flops", kernel->flops);
        cJSON_AddNumberToObject(row, "gflops", rate(kernel->flops, kernel->time_ns));
        cJSON_AddNumberToObject(row, "gb_per_s", rate((double)kernel->bytes, kernel->time_ns));
        cJSON_AddItemToArray(rows, row);
    }
}

static void queues_json(const struct bw_profile_report *report, cJSON *rows)
{
    for (uint32_t i = 0; i < report->queue_count; i++) {
        const struct bw_profile_queue *queue = &report->queues[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "device", queue->device);
        cJSON_AddStringToObject(row, "queue", queue->label);
        cJSON_AddNumberToObject(row, "calls", queue->calls);
        cJSON_AddNumberToObject(row, "busy_ns", (double)queue->busy_ns);
        cJSON_AddNumberToObject(row, "share", share(queue->busy_ns, report->end_ns - report->begin_ns));
        cJSON_AddItemToArray(rows, row);
    }
}

static void waited_json(cJSON *row, const struct bw_call_profile *waited)
{
    cJSON *object = cJSON_AddObjectToObject(row, "waited");
    cJSON_AddStringToObject(object, "name", waited->name);
    cJSON_AddStringToObject(object, "device", waited->device);
    cJSON_AddStringToObject(object, "queue", waited->queue_label);
}

static void gaps_json(const struct bw_profile_report *report, cJSON *rows)
{
    static const char *const causes[] = {"call", "host", "replay", "instance", "earlier", "start"};
    for (uint32_t i = 0; i < report->gap_count && i < GAPS_SHOWN; i++) {
        const struct bw_profile_gap *gap = &report->gaps[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "device", gap->call->device);
        cJSON_AddStringToObject(row, "queue", gap->call->queue_label);
        cJSON_AddStringToObject(row, "before", gap->call->name);
        cJSON_AddNumberToObject(row, "idle_ns", (double)(gap->end_ns - gap->begin_ns));
        cJSON_AddStringToObject(row, "cause", causes[gap->cause]);
        if (gap->waited)
            waited_json(row, gap->waited);
        else
            cJSON_AddNullToObject(row, "waited");
        cJSON_AddItemToArray(rows, row);
    }
}

void bw_run_profile_json(const struct bw_run *run, cJSON *document)
{
    const struct bw_profile_report *report = run->profile_report;
    cJSON *object = cJSON_AddObjectToObject(document, "profile");
    cJSON_AddNumberToObject(object, "span_ns", (double)(report->end_ns - report->begin_ns));
    cJSON_AddNumberToObject(object, "time_ns", (double)report->time_ns);
    kernels_json(report, cJSON_AddArrayToObject(object, "kernels"));
    queues_json(report, cJSON_AddArrayToObject(object, "queues"));
    cJSON_AddNumberToObject(object, "gap_count", report->gap_count);
    gaps_json(report, cJSON_AddArrayToObject(object, "gaps"));
}
