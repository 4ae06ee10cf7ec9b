/* Where the time of profiles went: by kernel, by queue, and what queues waited for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "hcq/tracks.h"

struct report {
    struct bw_profile_report report; /* first */
    struct bw_arena arena;
};

struct reporter {
    struct report *report;
    struct bw_tracks tracks;
    const struct bw_call_profile *
        *lasts;             /* by profile: of its and earlier ones' calls the one that ended last */
    uint32_t *last_profile; /* by track: 1 + of the call before, 0: none */
    BW_VEC(struct bw_profile_gap) gaps;
};

/* ---- kernels ---- */

static int text_compare(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int name_compare(const void *left, const void *right)
{
    const struct bw_call_profile *a = *(const struct bw_call_profile *const *)left,
                                 *b = *(const struct bw_call_profile *const *)right;
    int order = (a->copy > b->copy) - (a->copy < b->copy);
    if (!order)
        order = strcmp(a->name, b->name);
    if (!order)
        order = text_compare(a->source, b->source);
    return order ? order : text_compare(a->target, b->target);
}

static int time_compare(const void *left, const void *right)
{
    const struct bw_profile_kernel *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

static const char *kernel_name(struct reporter *reporter, const struct bw_call_profile *call)
{
    struct bw_text text = {0};
    if (call->copy)
        bw_text_add(&text, "%s %s -> %s", call->name, call->source, call->target);
    else
        bw_text_add(&text, "%s", call->name);
    char *name = text.failed ? NULL : bw_arena_string(&reporter->report->arena, bw_text_string(&text));
    bw_text_free(&text);
    return name;
}

static void kernel_count(struct bw_profile_kernel *kernel, const struct bw_call_profile *call)
{
    kernel->calls++;
    kernel->time_ns += call->end_ns - call->begin_ns;
    kernel->bytes += bw_tracks_bytes(call);
    kernel->flops += call->flops;
}

static int kernels_sum(struct reporter *reporter, const struct bw_call_profile **calls, uint32_t count)
{
    struct bw_profile_report *report = &reporter->report->report;
    struct bw_profile_kernel *kernels =
        bw_arena_alloc(&reporter->report->arena, (count + 1) * sizeof *kernels);
    if (!kernels)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || name_compare(&calls[i - 1], &calls[i])) {
            kernels[report->kernel_count].name = kernel_name(reporter, calls[i]);
            if (!kernels[report->kernel_count++].name)
                return -ENOMEM;
        }
        kernel_count(&kernels[report->kernel_count - 1], calls[i]);
        report->time_ns += calls[i]->end_ns - calls[i]->begin_ns;
    }
    qsort(kernels, report->kernel_count, sizeof *kernels, time_compare);
    report->kernels = kernels;
    return 0;
}

static int kernels_make(struct reporter *reporter)
{
    uint32_t count = reporter->tracks.entry_count;
    const struct bw_call_profile **calls = malloc((count + 1) * sizeof *calls);
    if (!calls)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        calls[i] = reporter->tracks.entries[i].call;
    qsort(calls, count, sizeof *calls, name_compare);
    int rc = kernels_sum(reporter, calls, count);
    free(calls);
    return rc;
}

/* ---- gaps ---- */

/* The last of what the call had to wait for, as far as that happened while its queue was idle. */
static void cause_among_calls(const struct bw_profile *profile, uint32_t call, uint64_t *latest_ns,
                              struct bw_profile_gap *gap)
{
    uint32_t begin, end = bw_tracks_dependencies(profile, call, &begin);
    for (uint32_t i = begin; i < end; i++) {
        const struct bw_profile_dependency *dependency = &profile->dependencies[i];
        const struct bw_call_profile *producer = &profile->calls[dependency->producer];
        if (dependency->order == BW_PROFILE_ORDER_QUEUE || producer->end_ns <= *latest_ns)
            continue;
        *latest_ns = producer->end_ns;
        gap->waited = producer;
        gap->cause =
            dependency->order == BW_PROFILE_ORDER_HOST ? BW_PROFILE_CAUSE_HOST : BW_PROFILE_CAUSE_CALL;
    }
}

/* A replay's first call on its queue may also have waited for the host, or for earlier replays. */
static void cause_among_replays(const struct reporter *reporter, uint32_t number, uint64_t latest_ns,
                                struct bw_profile_gap *gap)
{
    const struct bw_profile *profile = gap->profile;
    bool asked = profile->called_ns < gap->begin_ns, free = profile->free_ns < gap->begin_ns;
    uint64_t host_ns = !asked ? profile->called_ns : !free ? profile->free_ns : profile->submitted_ns;
    if (host_ns >= latest_ns && host_ns <= gap->end_ns) {
        gap->cause = asked && !free ? BW_PROFILE_CAUSE_INSTANCE : BW_PROFILE_CAUSE_REPLAY;
        gap->waited = NULL;
        latest_ns = host_ns;
    }
    const struct bw_call_profile *last = number ? reporter->lasts[number - 1] : NULL;
    if (last && last->end_ns > latest_ns && last->end_ns <= gap->end_ns) {
        gap->cause = BW_PROFILE_CAUSE_EARLIER;
        gap->waited = last;
    }
}

static int gap_add(struct reporter *reporter, const struct bw_track_entry *entry, uint64_t begin_ns)
{
    const struct bw_profile *profile = reporter->tracks.profiles[entry->profile];
    struct bw_profile_gap gap = {.begin_ns = begin_ns,
                                 .end_ns = entry->call->begin_ns,
                                 .profile = profile,
                                 .call = entry->call,
                                 .cause = BW_PROFILE_CAUSE_START};
    uint64_t latest_ns = begin_ns;
    cause_among_calls(profile, (uint32_t)(entry->call - profile->calls), &latest_ns, &gap);
    if (reporter->last_profile[entry->track] != entry->profile + 1)
        cause_among_replays(reporter, entry->profile, latest_ns, &gap);
    return bw_vec_push(&reporter->gaps, gap);
}

static int gap_compare(const void *left, const void *right)
{
    const struct bw_profile_gap *a = left, *b = right;
    uint64_t a_ns = a->end_ns - a->begin_ns, b_ns = b->end_ns - b->begin_ns;
    if (a_ns != b_ns)
        return a_ns > b_ns ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* ---- queues ---- */

static int queue_make(struct reporter *reporter, uint32_t number, struct bw_profile_queue *queue)
{
    const struct bw_tracks *tracks = &reporter->tracks;
    const struct bw_track *track = &tracks->tracks.data[number];
    uint64_t end_ns = tracks->begin_ns;
    int rc = 0;
    *queue = (struct bw_profile_queue){tracks->devices.data[track->device].name, track->label, track->number,
                                       track->entry_count, 0};
    for (uint32_t i = 0; i < track->entry_count && !rc; i++) {
        const struct bw_track_entry *entry = &tracks->entries[track->entry_begin + i];
        const struct bw_call_profile *call = entry->call;
        if (call->begin_ns > end_ns) {
            rc = gap_add(reporter, entry, end_ns);
            end_ns = call->begin_ns;
        }
        if (call->end_ns > end_ns) {
            queue->busy_ns += call->end_ns - end_ns;
            end_ns = call->end_ns;
        }
        reporter->last_profile[number] = entry->profile + 1;
    }
    return rc;
}

static int queue_compare(const void *left, const void *right)
{
    const struct bw_profile_queue *a = left, *b = right;
    return (a->number > b->number) - (a->number < b->number);
}

/* Device by device, and each one's by number. */
static int queues_make(struct reporter *reporter)
{
    struct bw_profile_report *report = &reporter->report->report;
    const struct bw_tracks *tracks = &reporter->tracks;
    struct bw_profile_queue *queues =
        bw_arena_alloc(&reporter->report->arena, (tracks->tracks.count + 1) * sizeof *queues);
    int rc = queues ? 0 : -ENOMEM;
    for (uint32_t device = 0; device < tracks->devices.count && !rc; device++) {
        uint32_t first = report->queue_count;
        for (uint32_t i = 0; i < tracks->tracks.count && !rc; i++) {
            if (tracks->tracks.data[i].device == device)
                rc = queue_make(reporter, i, &queues[report->queue_count++]);
        }
        if (!rc)
            qsort(queues + first, report->queue_count - first, sizeof *queues, queue_compare);
    }
    report->queues = queues;
    return rc;
}

/* ---- the whole ---- */

static int lasts_find(struct reporter *reporter)
{
    const struct bw_tracks *tracks = &reporter->tracks;
    reporter->lasts = calloc(tracks->profile_count + 1, sizeof *reporter->lasts);
    reporter->last_profile = calloc(tracks->tracks.count + 1, sizeof *reporter->last_profile);
    if (!reporter->lasts || !reporter->last_profile)
        return -ENOMEM;
    for (uint32_t i = 0; i < tracks->profile_count; i++) {
        const struct bw_profile *profile = tracks->profiles[i];
        const struct bw_call_profile *last = i ? reporter->lasts[i - 1] : NULL;
        for (uint32_t k = 0; k < profile->call_count; k++) {
            if (!last || profile->calls[k].end_ns > last->end_ns)
                last = &profile->calls[k];
        }
        reporter->lasts[i] = last;
    }
    return 0;
}

static int report_fill(struct reporter *reporter)
{
    struct bw_profile_report *report = &reporter->report->report;
    report->begin_ns = reporter->tracks.begin_ns;
    report->end_ns = reporter->tracks.end_ns;
    int rc = kernels_make(reporter);
    if (!rc)
        rc = lasts_find(reporter);
    if (!rc)
        rc = queues_make(reporter);
    if (rc)
        return rc;
    if (reporter->gaps.count)
        qsort(reporter->gaps.data, reporter->gaps.count, sizeof *reporter->gaps.data, gap_compare);
    report->gap_count = (uint32_t)reporter->gaps.count;
    report->gaps = bw_arena_copy(&reporter->report->arena, reporter->gaps.data,
                                 reporter->gaps.count * sizeof *reporter->gaps.data);
    return report->gaps ? 0 : -ENOMEM;
}

int bw_profile_report_make(const struct bw_profile *const *profiles, uint32_t count,
                           struct bw_profile_report **out, struct bw_err *err)
{
    struct reporter reporter = {.report = calloc(1, sizeof *reporter.report)};
    int rc = reporter.report ? bw_tracks_make(&reporter.tracks, profiles, count) : -ENOMEM;
    if (!rc)
        rc = report_fill(&reporter);
    bw_tracks_free(&reporter.tracks);
    bw_vec_free(&reporter.gaps);
    free(reporter.lasts);
    free(reporter.last_profile);
    if (rc) {
        bw_profile_report_destroy(reporter.report ? &reporter.report->report : NULL);
        return bw_fail(err, rc, "profile", "report of %u profiles", count);
    }
    *out = &reporter.report->report;
    return 0;
}

void bw_profile_report_destroy(struct bw_profile_report *base)
{
    struct report *report = (struct report *)base;
    if (!report)
        return;
    bw_arena_free(&report->arena);
    free(report);
}
