/* Profiles as a trace for Perfetto, in the JSON trace event format of Chrome's "Trace Event Format" document.
 *
 * Slices of one thread must not overlap, so a queue whose calls do has several threads. A flow begins inside
 * its producer's slice and ends inside its consumer's, later: viewers bind its ends to the slices that
 * enclose them.
 *
 * What Perfetto's importer (src/trace_processor/importers/json) makes of it besides: events of one time count
 * in the order of the file; a flow's ends bind to the slice that was begun last on their thread; an event
 * without a thread, as counters are, belongs to the thread that has the process's number; versions of it end
 * at the first key that they do not know, take displayTimeUnit for the unit of ts, and find ts only behind
 * strings without \u. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/text.h>

#include "base/bits.h"
#include "base/text.h"
#include "hcq/tracks.h"

enum {
    HOST_PID = 1,  /* 0 is the idle process of viewers; devices follow */
    WINDOWS = 256, /* of counters: about as many as a screen tells apart */
    NUMBER_BYTES = 40,
};

/* A thread of the trace: calls, or replays, that follow each other. */
struct lane {
    uint32_t track; /* LANE_HOST: replays */
    uint32_t tid;
    uint64_t end_ns;
};
#define LANE_HOST UINT32_MAX

/* Where a slice is. rank: in order of begin, so that of one time all of a slice comes before the next slice.
 */
struct slice {
    uint32_t pid, tid, track, rank;
};

enum event_kind { EVENT_CALL, EVENT_REPLAY, EVENT_FLOW_BEGIN, EVENT_FLOW_END, EVENT_COUNTER };

struct event {
    enum event_kind kind;
    uint64_t ts_ns;
    struct slice slice; /* that it is, or that it lies in */
    uint32_t position;  /* in order of generation */
    const struct bw_call_profile *call;
    const struct bw_profile *profile;
    uint64_t flow;
    const char *name, *unit; /* of a flow: its category; of a counter */
    bool queue;              /* a counter of the queue `name` */
    double value;
};

struct tracer {
    struct bw_tracks tracks;
    BW_VEC(struct lane) lanes;
    BW_VEC(struct event) events;
    struct slice *slices;  /* by position of an entry */
    uint32_t *first_calls; /* by profile: position of its first call */
    uint64_t flow_count;
    struct bw_text text;
    bool comma, failed;
};

/* ---- lanes ---- */

/* No thread has a process's number. */
static uint32_t tid_of(const struct tracer *tracer, size_t lane)
{
    return HOST_PID + 1 + (uint32_t)(tracer->tracks.devices.count + lane);
}

static uint32_t lane_take(struct tracer *tracer, uint32_t track, uint64_t begin_ns, uint64_t end_ns)
{
    for (size_t i = 0; i < tracer->lanes.count; i++) {
        struct lane *lane = &tracer->lanes.data[i];
        if (lane->track == track && lane->end_ns <= begin_ns) {
            lane->end_ns = end_ns;
            return lane->tid;
        }
    }
    struct lane fresh = {track, tid_of(tracer, tracer->lanes.count), end_ns};
    tracer->failed |= bw_vec_push(&tracer->lanes, fresh) != 0;
    return fresh.tid;
}

static uint32_t pid_of(const struct tracer *tracer, uint32_t track)
{
    return HOST_PID + 1 + tracer->tracks.tracks.data[track].device;
}

/* ---- events ---- */

static void event_add(struct tracer *tracer, struct event event)
{
    event.position = (uint32_t)tracer->events.count;
    tracer->failed |= bw_vec_push(&tracer->events, event) != 0;
}

static uint64_t inside(uint64_t wanted_ns, uint64_t begin_ns, uint64_t end_ns)
{
    uint64_t last_ns = end_ns > begin_ns ? end_ns - 1 : begin_ns;
    wanted_ns = wanted_ns > last_ns ? last_ns : wanted_ns;
    return wanted_ns < begin_ns ? begin_ns : wanted_ns;
}

/* From a slice to a call's, as far as clocks allow: they may say that the consumer began first. */
static void flow_add(struct tracer *tracer, struct slice from, uint64_t begin_ns, uint64_t end_ns,
                     struct slice to, const struct bw_call_profile *call, const char *category)
{
    uint64_t from_ns = inside(call->begin_ns ? call->begin_ns - 1 : 0, begin_ns, end_ns);
    uint64_t to_ns = call->begin_ns;
    if (begin_ns > call->begin_ns) {
        to_ns = begin_ns + 1;
        if (to_ns >= call->end_ns)
            return;
    }
    struct event event = {.kind = EVENT_FLOW_BEGIN,
                          .ts_ns = from_ns,
                          .slice = from,
                          .flow = ++tracer->flow_count,
                          .name = category};
    event_add(tracer, event);
    event.kind = EVENT_FLOW_END;
    event.ts_ns = to_ns;
    event.slice = to;
    event_add(tracer, event);
}

static int begin_compare(const void *left, const void *right)
{
    const struct bw_track_entry *a = *(const struct bw_track_entry *const *)left,
                                *b = *(const struct bw_track_entry *const *)right;
    if (a->call->begin_ns != b->call->begin_ns)
        return a->call->begin_ns < b->call->begin_ns ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

static void call_add(struct tracer *tracer, const struct bw_track_entry *entry, uint32_t rank)
{
    const struct bw_call_profile *call = entry->call;
    uint32_t tid = lane_take(tracer, entry->track, call->begin_ns, call->end_ns);
    struct slice slice = {pid_of(tracer, entry->track), tid, entry->track, rank};
    tracer->slices[entry->position] = slice;
    event_add(tracer, (struct event){.kind = EVENT_CALL,
                                     .ts_ns = call->begin_ns,
                                     .slice = slice,
                                     .call = call,
                                     .profile = tracer->tracks.profiles[entry->profile]});
}

static int calls_add(struct tracer *tracer)
{
    uint32_t count = tracer->tracks.entry_count;
    const struct bw_track_entry **order = malloc((count + 1) * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        order[i] = &tracer->tracks.entries[i];
    qsort(order, count, sizeof *order, begin_compare);
    for (uint32_t i = 0; i < count; i++)
        call_add(tracer, order[i], i + 1);
    free(order);
    return 0;
}

static void dependencies_add(struct tracer *tracer, uint32_t number)
{
    const struct bw_profile *profile = tracer->tracks.profiles[number];
    const struct slice *slices = tracer->slices + tracer->first_calls[number];
    for (uint32_t i = 0; i < profile->dependency_count; i++) {
        const struct bw_profile_dependency *dependency = &profile->dependencies[i];
        const struct bw_call_profile *producer = &profile->calls[dependency->producer];
        flow_add(tracer, slices[dependency->producer], producer->begin_ns, producer->end_ns,
                 slices[dependency->consumer], &profile->calls[dependency->consumer],
                 bw_profile_order_name(dependency->order));
    }
}

/* The host's slice, and flows to the replay's first call on each queue. */
static int replay_add(struct tracer *tracer, uint32_t number)
{
    const struct bw_tracks *tracks = &tracer->tracks;
    const struct bw_profile *profile = tracks->profiles[number];
    uint32_t tid = lane_take(tracer, LANE_HOST, profile->called_ns, profile->submitted_ns);
    struct slice host = {HOST_PID, tid, LANE_HOST, 0};
    uint32_t *firsts = malloc((tracks->tracks.count + 1) * sizeof *firsts);
    if (!firsts)
        return -ENOMEM;
    memset(firsts, 0xff, (tracks->tracks.count + 1) * sizeof *firsts);
    event_add(
        tracer,
        (struct event){.kind = EVENT_REPLAY, .ts_ns = profile->called_ns, .slice = host, .profile = profile});
    for (uint32_t i = 0; i < profile->call_count; i++) {
        uint32_t track = tracer->slices[tracer->first_calls[number] + i].track;
        if (firsts[track] == UINT32_MAX)
            firsts[track] = i;
    }
    for (size_t i = 0; i < tracks->tracks.count; i++) {
        if (firsts[i] != UINT32_MAX && profile->calls[firsts[i]].begin_ns >= profile->called_ns)
            flow_add(tracer, host, profile->called_ns, profile->submitted_ns,
                     tracer->slices[tracer->first_calls[number] + firsts[i]], &profile->calls[firsts[i]],
                     "replay");
    }
    free(firsts);
    return 0;
}

/* ---- counters ---- */

struct window {
    uint64_t origin_ns, width_ns;
    double values[WINDOWS];
};

/* Spreads the amount evenly over [begin_ns, end_ns). */
static void window_spread(struct window *window, uint64_t begin_ns, uint64_t end_ns, double amount)
{
    uint64_t at_ns = begin_ns - window->origin_ns, stop_ns = end_ns - window->origin_ns;
    if (at_ns == stop_ns)
        window->values[at_ns / window->width_ns < WINDOWS ? at_ns / window->width_ns : WINDOWS - 1] += amount;
    while (at_ns < stop_ns) {
        uint64_t number = at_ns / window->width_ns, next_ns = (number + 1) * window->width_ns;
        next_ns = next_ns < stop_ns ? next_ns : stop_ns;
        window->values[number] += amount * (double)(next_ns - at_ns) / (double)(end_ns - begin_ns);
        at_ns = next_ns;
    }
}

/* One event where the value changes, and a zero behind the last. */
static void window_emit(struct tracer *tracer, const struct window *window, struct event event, double scale)
{
    double before = -1;
    event.kind = EVENT_COUNTER;
    for (uint32_t i = 0; i <= WINDOWS; i++) {
        event.value = i < WINDOWS ? window->values[i] * scale / (double)window->width_ns : 0;
        event.ts_ns = window->origin_ns + i * window->width_ns;
        if (event.value != before)
            event_add(tracer, event);
        before = event.value;
    }
}

static struct window window_of(const struct tracer *tracer)
{
    uint64_t span_ns = tracer->tracks.end_ns - tracer->tracks.begin_ns;
    return (struct window){.origin_ns = tracer->tracks.begin_ns, .width_ns = span_ns / WINDOWS + 1};
}

static void queue_count(struct tracer *tracer, uint32_t number)
{
    const struct bw_track *track = &tracer->tracks.tracks.data[number];
    struct window window = window_of(tracer);
    uint64_t end_ns = tracer->tracks.begin_ns;
    for (uint32_t i = 0; i < track->entry_count; i++) {
        const struct bw_call_profile *call = tracer->tracks.entries[track->entry_begin + i].call;
        uint64_t begin_ns = call->begin_ns > end_ns ? call->begin_ns : end_ns;
        if (call->end_ns <= begin_ns)
            continue;
        window_spread(&window, begin_ns, call->end_ns, (double)(call->end_ns - begin_ns));
        end_ns = call->end_ns;
    }
    struct event event = {
        .slice.pid = pid_of(tracer, number), .name = track->label, .unit = "%", .queue = true};
    window_emit(tracer, &window, event, 100);
}

static void device_count(struct tracer *tracer, uint32_t device)
{
    struct window bytes = window_of(tracer), flops = bytes;
    for (uint32_t i = 0; i < tracer->tracks.entry_count; i++) {
        const struct bw_track_entry *entry = &tracer->tracks.entries[i];
        if (tracer->tracks.tracks.data[entry->track].device != device)
            continue;
        window_spread(&bytes, entry->call->begin_ns, entry->call->end_ns,
                      (double)bw_tracks_bytes(entry->call));
        window_spread(&flops, entry->call->begin_ns, entry->call->end_ns, entry->call->flops);
    }
    struct event event = {.slice.pid = HOST_PID + 1 + device, .name = "memory", .unit = "GB/s"};
    window_emit(tracer, &bytes, event, 1); /* bytes per ns */
    event.name = "arithmetic";
    event.unit = "GFLOPS";
    window_emit(tracer, &flops, event, 1);
}

/* ---- text ---- */

/* Frees the object. */
static void object_print(struct tracer *tracer, cJSON *object)
{
    char *line = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    size_t bytes = line ? bw_text_escape_json(line, strlen(line), NULL, 0) : 0;
    char *escaped = line ? malloc(bytes + 1) : NULL;
    if (escaped) {
        bw_text_escape_json(line, strlen(line), escaped, bytes + 1);
        bw_text_add(&tracer->text, "%s\n", tracer->comma ? "," : "");
        bw_text_add_bytes(&tracer->text, escaped, bytes);
    }
    tracer->failed |= !escaped;
    tracer->comma = true;
    cJSON_free(line);
    free(escaped);
}

static void integer_add(cJSON *object, const char *key, uint64_t value)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRIu64, value);
    cJSON_AddRawToObject(object, key, text);
}

/* Microseconds, exactly. */
static void time_add(cJSON *object, const char *key, uint64_t time_ns)
{
    char text[NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRIu64 ".%03u", time_ns / 1000, (unsigned)(time_ns % 1000));
    cJSON_AddRawToObject(object, key, text);
}

static void metadata_print(struct tracer *tracer, uint32_t pid, uint32_t tid, const char *what,
                           const char *name, uint32_t sort_index)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", "M");
    cJSON_AddStringToObject(object, "name", what);
    cJSON_AddNumberToObject(object, "pid", pid);
    if (tid)
        cJSON_AddNumberToObject(object, "tid", tid);
    cJSON *arguments = cJSON_AddObjectToObject(object, "args");
    if (name)
        cJSON_AddStringToObject(arguments, "name", name);
    else
        cJSON_AddNumberToObject(arguments, "sort_index", sort_index);
    object_print(tracer, object);
}

static void names_print(struct tracer *tracer)
{
    const struct bw_tracks *tracks = &tracer->tracks;
    for (uint32_t i = 0; i <= tracks->devices.count; i++) {
        metadata_print(tracer, HOST_PID + i, 0, "process_name", i ? tracks->devices.data[i - 1].name : "host",
                       0);
        metadata_print(tracer, HOST_PID + i, 0, "process_sort_index", NULL, i);
    }
    for (size_t i = 0; i < tracer->lanes.count; i++) {
        const struct lane *lane = &tracer->lanes.data[i];
        bool host = lane->track == LANE_HOST;
        const struct bw_track *track = host ? NULL : &tracks->tracks.data[lane->track];
        uint32_t pid = host ? HOST_PID : pid_of(tracer, lane->track);
        metadata_print(tracer, pid, lane->tid, "thread_name", host ? "replays" : track->label, 0);
        metadata_print(tracer, pid, lane->tid, "thread_sort_index", NULL, host ? 0 : track->number);
    }
}

static void call_arguments(cJSON *arguments, const struct event *event)
{
    const struct bw_call_profile *call = event->call;
    double time_ns = (double)(call->end_ns - call->begin_ns);
    integer_add(arguments, "graph", event->profile->graph);
    integer_add(arguments, "ticket", event->profile->ticket);
    integer_add(arguments, "call", call->call);
    if (call->copy) {
        cJSON_AddStringToObject(arguments, "from", call->source);
        cJSON_AddStringToObject(arguments, "to", call->target);
    }
    integer_add(arguments, "bytes_read", call->bytes_read);
    integer_add(arguments, "bytes_written", call->bytes_written);
    cJSON_AddNumberToObject(arguments, "flops", call->flops);
    if (time_ns > 0) {
        cJSON_AddNumberToObject(arguments, "gb_per_s", (double)bw_tracks_bytes(call) / time_ns);
        cJSON_AddNumberToObject(arguments, "gflops", call->flops / time_ns);
    }
}

static void slice_fill(cJSON *object, const struct event *event)
{
    const struct bw_profile *profile = event->profile;
    char name[2 * NUMBER_BYTES];
    if (event->kind == EVENT_CALL) {
        cJSON_AddStringToObject(object, "name", event->call->name);
        cJSON_AddStringToObject(object, "cat", event->call->copy ? "copy" : "kernel");
        time_add(object, "dur", event->call->end_ns - event->call->begin_ns);
        call_arguments(cJSON_AddObjectToObject(object, "args"), event);
        return;
    }
    snprintf(name, sizeof name, "replay %" PRIu64 " of graph %" PRIu64, profile->ticket, profile->graph);
    cJSON_AddStringToObject(object, "name", name);
    cJSON_AddStringToObject(object, "cat", "replay");
    time_add(object, "dur", profile->submitted_ns - profile->called_ns);
    cJSON *arguments = cJSON_AddObjectToObject(object, "args");
    integer_add(arguments, "graph", profile->graph);
    integer_add(arguments, "ticket", profile->ticket);
    integer_add(arguments, "instance_wait_ns", profile->free_ns - profile->called_ns);
}

static void flow_fill(cJSON *object, const struct event *event)
{
    if (event->kind == EVENT_FLOW_END)
        cJSON_AddStringToObject(object, "bp", "e");
    cJSON_AddStringToObject(object, "name", "dependency");
    cJSON_AddStringToObject(object, "cat", event->name);
    integer_add(object, "id", event->flow);
}

static void counter_fill(cJSON *object, const struct event *event)
{
    struct bw_text name = {0};
    bw_text_add(&name, "%s%s", event->name, event->queue ? " busy" : "");
    cJSON_AddStringToObject(object, "name", bw_text_string(&name));
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(object, "args"), event->unit, event->value);
    bw_text_free(&name);
}

static void event_print(struct tracer *tracer, const struct event *event)
{
    static const char *const phases[] = {"X", "X", "s", "f", "C"}; /* by kind */
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "ph", phases[event->kind]);
    time_add(object, "ts", event->ts_ns - tracer->tracks.begin_ns);
    cJSON_AddNumberToObject(object, "pid", event->slice.pid);
    if (event->kind != EVENT_COUNTER)
        cJSON_AddNumberToObject(object, "tid", event->slice.tid);
    if (event->kind == EVENT_CALL || event->kind == EVENT_REPLAY)
        slice_fill(object, event);
    else if (event->kind == EVENT_COUNTER)
        counter_fill(object, event);
    else
        flow_fill(object, event);
    object_print(tracer, object);
}

static int event_compare(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns ? -1 : 1;
    if (a->slice.rank != b->slice.rank)
        return a->slice.rank < b->slice.rank ? -1 : 1;
    return (a->position > b->position) - (a->position < b->position);
}

/* ---- the whole ---- */

static int events_make(struct tracer *tracer)
{
    const struct bw_tracks *tracks = &tracer->tracks;
    tracer->slices = calloc(tracks->entry_count + 1, sizeof *tracer->slices);
    tracer->first_calls = calloc(tracks->profile_count + 1, sizeof *tracer->first_calls);
    if (!tracer->slices || !tracer->first_calls)
        return -ENOMEM;
    for (uint32_t i = 0; i < tracks->profile_count; i++)
        tracer->first_calls[i + 1] = tracer->first_calls[i] + tracks->profiles[i]->call_count;
    int rc = calls_add(tracer);
    for (uint32_t i = 0; i < tracks->profile_count && !rc; i++)
        rc = replay_add(tracer, i);
    for (uint32_t i = 0; i < tracks->profile_count && !rc; i++)
        dependencies_add(tracer, i);
    for (uint32_t i = 0; i < tracks->devices.count && !rc; i++)
        device_count(tracer, i);
    for (uint32_t i = 0; i < tracks->tracks.count && !rc; i++)
        queue_count(tracer, i);
    return rc || tracer->failed ? -ENOMEM : 0;
}

static void trace_print(struct tracer *tracer)
{
    uint64_t error_ns = 0;
    for (uint32_t i = 0; i < tracer->tracks.profile_count; i++) {
        uint64_t one_ns = tracer->tracks.profiles[i]->clock_error_ns;
        error_ns = one_ns > error_ns ? one_ns : error_ns;
    }
    bw_text_add(&tracer->text, "{\"traceEvents\":[");
    names_print(tracer);
    if (tracer->events.count)
        qsort(tracer->events.data, tracer->events.count, sizeof *tracer->events.data, event_compare);
    for (size_t i = 0; i < tracer->events.count; i++)
        event_print(tracer, &tracer->events.data[i]);
    bw_text_add(&tracer->text,
                "\n],\"otherData\":{\"origin_ns\":\"%" PRIu64 "\",\"clock_error_ns\":\"%" PRIu64 "\"}}\n",
                tracer->tracks.begin_ns, error_ns);
}

int bw_profile_trace(const struct bw_profile *const *profiles, uint32_t count, char **text,
                     uint64_t *size_bytes, struct bw_err *err)
{
    struct tracer tracer = {0};
    int rc = bw_tracks_make(&tracer.tracks, profiles, count);
    if (!rc)
        rc = events_make(&tracer);
    if (!rc) {
        trace_print(&tracer);
        rc = tracer.failed || tracer.text.failed ? -ENOMEM : 0;
    }
    bw_tracks_free(&tracer.tracks);
    bw_vec_free(&tracer.lanes);
    bw_vec_free(&tracer.events);
    free(tracer.slices);
    free(tracer.first_calls);
    if (rc) {
        bw_text_free(&tracer.text);
        return bw_fail(err, rc, "profile", "trace of %u profiles", count);
    }
    *text = tracer.text.data;
    *size_bytes = tracer.text.length;
    return 0;
}
