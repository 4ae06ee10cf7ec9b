/* A strict reader of Chrome's JSON trace event format: what the format's document demands of a file, and what
 * Perfetto's importer (src/trace_processor, importers/json and importers/common) does with its events, one
 * after the other: slices on a stack per thread, ends of flows bound to the slice on top. */
#ifndef BW_TESTS_TRACE_CHECK_H
#define BW_TESTS_TRACE_CHECK_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_THREADS_MAX = 256, TRACE_WHY_BYTES = 300 };

struct trace_thread {
    double tid, pid;
    bool named;
    const cJSON *slice; /* begun last */
};

struct trace_flow {
    const cJSON *begin, *from, *to; /* slices */
};

struct trace_check {
    uint32_t slices, calls, replays, flows, counters, processes, thread_count;
    struct trace_thread threads[TRACE_THREADS_MAX];
    double pids[TRACE_THREADS_MAX]; /* of processes with a name */
    struct trace_flow *flow;        /* by id, from 1 */
    uint32_t flow_capacity;
    cJSON *document;
    char why[TRACE_WHY_BYTES];
};

__attribute__((format(printf, 2, 3))) static inline bool trace_refuse(struct trace_check *check,
                                                                      const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->why, sizeof check->why, format, arguments);
    va_end(arguments);
    return false;
}

static inline double trace_number(const cJSON *event, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(event, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static inline const char *trace_string(const cJSON *event, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
    return text ? text : "";
}

static inline const cJSON *trace_arguments(const cJSON *event)
{
    return cJSON_GetObjectItemCaseSensitive(event, "args");
}

/* Microseconds to whole nanoseconds: to compare exactly. */
static inline double trace_ns(double time_us)
{
    return round(time_us * 1000);
}

static inline double trace_end_ns(const cJSON *slice)
{
    return trace_ns(trace_number(slice, "ts")) + trace_ns(trace_number(slice, "dur"));
}

static inline struct trace_thread *trace_thread_find(struct trace_check *check, const cJSON *event)
{
    double tid = trace_number(event, "tid"), pid = trace_number(event, "pid");
    for (uint32_t i = 0; i < check->thread_count; i++) {
        if (check->threads[i].tid == tid)
            return check->threads[i].pid == pid ? &check->threads[i] : NULL;
    }
    if (!(tid > 0) || check->thread_count == TRACE_THREADS_MAX)
        return NULL;
    struct trace_thread *fresh = &check->threads[check->thread_count++];
    *fresh = (struct trace_thread){.tid = tid, .pid = pid};
    return fresh;
}

static inline bool trace_metadata(struct trace_check *check, const cJSON *event)
{
    const char *name = trace_string(event, "name");
    bool process = strcmp(name, "process_name") == 0, thread = strcmp(name, "thread_name") == 0;
    if (!cJSON_IsObject(trace_arguments(event)))
        return trace_refuse(check, "metadata without args");
    if ((process || thread) && !trace_string(trace_arguments(event), "name")[0])
        return trace_refuse(check, "%s without a name", name);
    if (process)
        check->pids[check->processes++] = trace_number(event, "pid");
    if (thread) {
        struct trace_thread *found = trace_thread_find(check, event);
        if (!found)
            return trace_refuse(check, "a thread of two processes");
        found->named = true;
    }
    return true;
}

static inline bool trace_slice(struct trace_check *check, const cJSON *event)
{
    struct trace_thread *thread = trace_thread_find(check, event);
    double begin_ns = trace_ns(trace_number(event, "ts")), dur_us = trace_number(event, "dur");
    if (!thread || !thread->named || !trace_string(event, "name")[0])
        return trace_refuse(check, "slice at %.0f ns without a named thread or a name", begin_ns);
    if (!(dur_us >= 0) || !cJSON_IsObject(trace_arguments(event)))
        return trace_refuse(check, "slice at %.0f ns without dur or args", begin_ns);
    if (thread->slice && trace_end_ns(thread->slice) > begin_ns)
        return trace_refuse(check, "slice at %.0f ns overlaps the one before it", begin_ns);
    thread->slice = event;
    check->slices++;
    if (strcmp(trace_string(event, "cat"), "replay") == 0) {
        check->replays++;
        return true;
    }
    check->calls++;
    static const char *const wanted[] = {"graph", "ticket", "call", "bytes_read", "bytes_written", "flops"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!(trace_number(trace_arguments(event), wanted[i]) >= 0))
            return trace_refuse(check, "slice at %.0f ns without %s", begin_ns, wanted[i]);
    }
    return true;
}

static inline struct trace_flow *trace_flow_find(struct trace_check *check, const cJSON *event)
{
    double id = trace_number(event, "id");
    if (!(id >= 1) || id > 1e7)
        return NULL;
    while (check->flow_capacity <= (uint32_t)id) {
        uint32_t more = check->flow_capacity ? check->flow_capacity * 2 : 64;
        check->flow = realloc(check->flow, more * sizeof *check->flow);
        memset(check->flow + check->flow_capacity, 0, (more - check->flow_capacity) * sizeof *check->flow);
        check->flow_capacity = more;
    }
    return &check->flow[(uint32_t)id];
}

static inline bool trace_flow_end(struct trace_check *check, const cJSON *event, bool begin)
{
    struct trace_thread *thread = trace_thread_find(check, event);
    struct trace_flow *flow = trace_flow_find(check, event);
    double at_ns = trace_ns(trace_number(event, "ts"));
    const cJSON *slice = thread ? thread->slice : NULL;
    if (!flow || !slice)
        return trace_refuse(check, "flow at %.0f ns without an id or outside any slice", at_ns);
    double begin_ns = trace_ns(trace_number(slice, "ts")), end_ns = trace_end_ns(slice);
    if (at_ns < begin_ns || (at_ns >= end_ns && at_ns != begin_ns))
        return trace_refuse(check, "flow at %.0f ns outside its slice, %.0f to %.0f", at_ns, begin_ns,
                            end_ns);
    if (begin) {
        if (flow->begin)
            return trace_refuse(check, "two flows with one id");
        flow->begin = event;
        flow->from = slice;
        return true;
    }
    if (!flow->begin || flow->to)
        return trace_refuse(check, "flow at %.0f ns ends before it begins, or twice", at_ns);
    if (strcmp(trace_string(event, "bp"), "e") != 0 ||
        strcmp(trace_string(event, "cat"), trace_string(flow->begin, "cat")) != 0 ||
        strcmp(trace_string(event, "name"), trace_string(flow->begin, "name")) != 0)
        return trace_refuse(check, "flow at %.0f ns: its ends differ, or it does not bind", at_ns);
    flow->to = slice;
    check->flows++;
    return flow->to != flow->from || trace_refuse(check, "flow at %.0f ns into its own slice", at_ns);
}

static inline bool trace_counter(struct trace_check *check, const cJSON *event)
{
    const cJSON *item, *arguments = trace_arguments(event);
    if (!trace_string(event, "name")[0] || !cJSON_IsObject(arguments) || !cJSON_GetArraySize(arguments))
        return trace_refuse(check, "a counter without a name or values");
    cJSON_ArrayForEach(item, arguments)
    {
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
            (strcmp(item->string, "%") == 0 && item->valuedouble > 100.0001))
            return trace_refuse(check, "counter %s: %s", trace_string(event, "name"), item->string);
    }
    check->counters++;
    return true;
}

static inline bool trace_event(struct trace_check *check, const cJSON *event, double *last_ns)
{
    const char *phase = trace_string(event, "ph");
    double at_ns = trace_ns(trace_number(event, "ts"));
    if (!cJSON_IsObject(event) || strlen(phase) != 1 || !(trace_number(event, "pid") > 0))
        return trace_refuse(check, "an event without ph or pid");
    if (*phase == 'M')
        return trace_metadata(check, event);
    if (!(at_ns >= *last_ns))
        return trace_refuse(check, "time goes back at %.0f ns", at_ns);
    *last_ns = at_ns;
    switch (*phase) {
    case 'X':
        return trace_slice(check, event);
    case 's':
    case 'f':
        return trace_flow_end(check, event, *phase == 's');
    case 'C':
        return trace_counter(check, event);
    default:
        return trace_refuse(check, "an event of kind '%s'", phase);
    }
}

/* Each thread belongs to one named process, and has no process's number: that is who counters belong to. */
static inline bool trace_names(struct trace_check *check)
{
    for (uint32_t i = 0; i < check->thread_count; i++) {
        bool known = false;
        for (uint32_t k = 0; k < check->processes; k++) {
            known |= check->pids[k] == check->threads[i].pid;
            if (check->pids[k] == check->threads[i].tid)
                return trace_refuse(check, "thread %.0f has a process's number", check->threads[i].tid);
        }
        if (!known)
            return trace_refuse(check, "thread %.0f of a process without a name", check->threads[i].tid);
    }
    for (uint32_t i = 0; i < check->flow_capacity; i++) {
        if (check->flow[i].begin && !check->flow[i].to)
            return trace_refuse(check, "flow %u does not end", i);
    }
    return true;
}

/* False: check->why. In either case the caller ends it with trace_check_free. */
static inline bool trace_check(struct trace_check *check, const char *text)
{
    const cJSON *event;
    double last_ns = 0;
    *check = (struct trace_check){.document = cJSON_Parse(text)};
    const cJSON *events = check->document ? check->document->child : NULL;
    if (!cJSON_IsArray(events) || strcmp(events->string, "traceEvents") != 0)
        return trace_refuse(check, "no JSON object that begins with the array traceEvents");
    cJSON_ArrayForEach(event, events)
    {
        if (!trace_event(check, event, &last_ns))
            return false;
    }
    return trace_names(check);
}

static inline void trace_check_free(struct trace_check *check)
{
    cJSON_Delete(check->document);
    free(check->flow);
}

#endif
