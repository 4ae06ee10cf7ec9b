/* Profiles: the trace's file, and where the time went as tables or JSON. See tools/profile.h. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "compiler/io.h"
#include "tools/print.h"
#include "tools/profile.h"

enum { GAPS_SHOWN = 10 };

int bw_tool_profile_take(const struct bw_profile *const *profiles, uint32_t count, const char *path,
                         struct bw_profile_report **report, struct bw_err *err)
{
    char *text = NULL;
    uint64_t size_bytes = 0;
    int rc = bw_profile_report_make(profiles, count, report, err);
    if (!rc)
        rc = bw_profile_trace(profiles, count, &text, &size_bytes, err);
    const struct bw_file_piece piece = {text, size_bytes};
    if (!rc)
        rc = bw_file_write(path, &piece, 1, err);
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

static void kernels_print(const struct bw_profile_report *report, FILE *out, const char *prefix)
{
    bw_print(out, "%s%12s %6s %7s %9s %9s  %s\n", prefix, "time us", "share", "calls", "GFLOPS", "GB/s",
             "kernel");
    for (uint32_t i = 0; i < report->kernel_count; i++) {
        const struct bw_profile_kernel *kernel = &report->kernels[i];
        bw_print(out, "%s%12.3f %5.1f%% %7" PRIu64 " %9.3f %9.3f  %s\n", prefix,
                 microseconds(kernel->time_ns), 100 * share(kernel->time_ns, report->time_ns), kernel->calls,
                 rate(kernel->flops, kernel->time_ns), rate((double)kernel->bytes, kernel->time_ns),
                 kernel->name);
    }
}

static void queues_print(const struct bw_profile_report *report, FILE *out, const char *prefix)
{
    uint64_t span_ns = report->end_ns - report->begin_ns;
    bw_print(out, "%s%12s %6s %7s  of %.3f us, queue\n", prefix, "busy us", "share", "calls",
             microseconds(span_ns));
    for (uint32_t i = 0; i < report->queue_count; i++) {
        const struct bw_profile_queue *queue = &report->queues[i];
        bw_print(out, "%s%12.3f %5.1f%% %7u  %s, %s\n", prefix, microseconds(queue->busy_ns),
                 100 * share(queue->busy_ns, span_ns), queue->calls, queue->label, queue->device);
    }
}

static void call_print(FILE *out, const struct bw_call_profile *call)
{
    if (call->copy)
        bw_print(out, "copy %s -> %s", call->source, call->target);
    else
        bw_print(out, "kernel %s", call->name);
}

static void cause_print(const struct bw_profile_gap *gap, FILE *out)
{
    switch (gap->cause) {
    case BW_PROFILE_CAUSE_CALL:
        break;
    case BW_PROFILE_CAUSE_HOST:
        bw_print(out, "the host, which waited for ");
        break;
    case BW_PROFILE_CAUSE_EARLIER:
        bw_print(out, "an earlier replay's ");
        break;
    case BW_PROFILE_CAUSE_REPLAY:
        bw_print(out, "the host, which submitted replay %" PRIu64 " of graph %" PRIu64, gap->profile->ticket,
                 gap->profile->graph);
        break;
    case BW_PROFILE_CAUSE_INSTANCE:
        bw_print(out, "a free instance of graph %" PRIu64, gap->profile->graph);
        break;
    case BW_PROFILE_CAUSE_START:
        bw_print(out, "its own start");
        break;
    }
    if (gap->waited) {
        call_print(out, gap->waited);
        bw_print(out, " on %s, %s", gap->waited->queue_label, gap->waited->device);
    }
}

static void gaps_print(const struct bw_profile_report *report, FILE *out, const char *prefix)
{
    uint32_t shown = report->gap_count < GAPS_SHOWN ? report->gap_count : GAPS_SHOWN;
    if (shown)
        bw_print(out, "%s%12s  the longest %u of %u: where, before what, waited for what\n", prefix,
                 "idle us", shown, report->gap_count);
    for (uint32_t i = 0; i < shown; i++) {
        const struct bw_profile_gap *gap = &report->gaps[i];
        bw_print(out, "%s%12.3f  %s, %s, before ", prefix, microseconds(gap->end_ns - gap->begin_ns),
                 gap->call->queue_label, gap->call->device);
        call_print(out, gap->call);
        bw_print(out, ": waited for ");
        cause_print(gap, out);
        bw_print(out, "\n");
    }
}

void bw_tool_profile_print(const struct bw_profile_report *report, FILE *out, const char *prefix)
{
    if (report->kernel_count == 0)
        return;
    kernels_print(report, out, prefix);
    queues_print(report, out, prefix);
    gaps_print(report, out, prefix);
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

void bw_tool_profile_json(const struct bw_profile_report *report, cJSON *document)
{
    cJSON *object = cJSON_AddObjectToObject(document, "profile");
    cJSON_AddNumberToObject(object, "span_ns", (double)(report->end_ns - report->begin_ns));
    cJSON_AddNumberToObject(object, "time_ns", (double)report->time_ns);
    kernels_json(report, cJSON_AddArrayToObject(object, "kernels"));
    queues_json(report, cJSON_AddArrayToObject(object, "queues"));
    cJSON_AddNumberToObject(object, "gap_count", report->gap_count);
    gaps_json(report, cJSON_AddArrayToObject(object, "gaps"));
}
