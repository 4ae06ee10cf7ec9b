/* Profiles: when each call of a replay ran, on the host's clock, what it moved and computed, and what it
 * waited for. A graph is linked with bw_link_options.profile; its replays are then stamped on every queue.
 *
 *   bw_linked_graph_replay(linked, &replay, &ticket, &err);
 *   bw_linked_graph_profile_take(linked, ticket, &profile, &err);     (waits for it)
 *   bw_profile_trace((const struct bw_profile *const[]){profile}, 1, &text, &size_bytes, &err);
 *   bw_profile_destroy(profile);
 *
 * Clocks: a device's clock is laid beside the host's when a graph is linked and again when a profile is taken
 * from an idle device; between two such points it is taken to run evenly, beyond them at its nominal rate. */
#ifndef BW_PROFILE_H
#define BW_PROFILE_H

#include <stdint.h>

#include <bellwire/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What keeps a call behind another one. */
enum bw_profile_order {
    BW_PROFILE_ORDER_QUEUE,  /* both are on one queue */
    BW_PROFILE_ORDER_DEVICE, /* its queue waits for the other's signal */
    BW_PROFILE_ORDER_HOST,   /* the host waits for the other before it submits this one */
    BW_PROFILE_ORDER_GIVEN,  /* some other wait of its queue covers this one */
};
const char *bw_profile_order_name(enum bw_profile_order order);

/* The consumer touches bytes that the producer wrote, or writes what it read. Of all producers on one queue
 * only the newest is listed: the others come before it. */
struct bw_profile_dependency {
    uint32_t consumer, producer; /* in struct bw_profile.calls */
    enum bw_profile_order order;
};

/* One replay. Everything lives until bw_profile_destroy, whatever becomes of the graph and its devices. */
struct bw_profile {
    uint64_t graph;  /* number of the linked graph in its context, from 1 */
    uint64_t ticket; /* of the replay */
    /* On the host: bw_linked_graph_replay was called, had a free instance, and returned. */
    uint64_t called_ns, free_ns, submitted_ns;
    const struct bw_call_profile *calls; /* of each queue in order */
    uint32_t call_count;
    const struct bw_profile_dependency *dependencies; /* by consumer, ascending */
    uint32_t dependency_count;
    uint64_t clock_error_ns; /* a device's time may be off the host's clock by this much */
};

/* Waits for the replay as bw_linked_graph_wait does, with its errors. ticket 0: the last one. -ENOTSUP:
 * linked without profile. -ENOENT: nothing ran, or its instance was taken by a later replay. One thread at a
 * time per linked graph. */
int bw_linked_graph_profile_take(struct bw_linked_graph *linked, uint64_t ticket, struct bw_profile **profile,
                                 struct bw_err *err);
/* NULL is fine. */
void bw_profile_destroy(struct bw_profile *profile);

/* ---- where the time went ---- */

/* All calls of one name. Time is summed: calls that run beside each other on several queues count each. */
struct bw_profile_kernel {
    const char *name; /* of copies "copy FROM -> TO" */
    uint64_t calls, time_ns;
    uint64_t bytes; /* read and written by kernels; moved by copies, counted once */
    double flops;
};

struct bw_profile_queue {
    const char *device, *label;
    uint32_t number, calls;
    uint64_t busy_ns;
};

/* What a queue waited for while it did nothing: the last thing that happened before it went on. */
enum bw_profile_cause {
    BW_PROFILE_CAUSE_CALL,     /* another call */
    BW_PROFILE_CAUSE_HOST,     /* the host, which waited for another call before it submitted more */
    BW_PROFILE_CAUSE_REPLAY,   /* the host, which had not asked for the replay before */
    BW_PROFILE_CAUSE_INSTANCE, /* the host, which had no free instance of the graph for the replay */
    BW_PROFILE_CAUSE_EARLIER,  /* earlier work of other queues */
    BW_PROFILE_CAUSE_START,    /* nothing that is recorded: signals, launch and stamps take their time */
};

struct bw_profile_gap {
    uint64_t begin_ns, end_ns;
    const struct bw_profile *profile; /* of the call that came after it */
    const struct bw_call_profile *call;
    enum bw_profile_cause cause;
    const struct bw_call_profile *waited; /* CALL, HOST: that one; EARLIER: its last; else NULL */
};

struct bw_profile_report {
    uint64_t begin_ns, end_ns;               /* from the first replay's call to the last call's end */
    uint64_t time_ns;                        /* sum over calls */
    const struct bw_profile_kernel *kernels; /* most time first */
    uint32_t kernel_count;
    const struct bw_profile_queue *queues; /* device by device in order of first use */
    uint32_t queue_count;
    const struct bw_profile_gap *gaps; /* longest first */
    uint32_t gap_count;
};

/* Over profiles of one or many replays and graphs, which have to live as long as the report. -ENOMEM. */
int bw_profile_report_make(const struct bw_profile *const *profiles, uint32_t count,
                           struct bw_profile_report **report, struct bw_err *err);
/* NULL is fine. */
void bw_profile_report_destroy(struct bw_profile_report *report);

/* A trace in Chrome's JSON trace event format, for ui.perfetto.dev or chrome://tracing: devices as processes,
 * queues as threads, calls as slices with bytes and flops, dependencies as flows, and GB/s, GFLOPS and busy
 * share of every queue as counters. Times count from otherData.origin_ns on the host's clock. *text is the
 * caller's (free), with a terminating NUL that *size_bytes does not count. -ENOMEM. */
int bw_profile_trace(const struct bw_profile *const *profiles, uint32_t count, char **text,
                     uint64_t *size_bytes, struct bw_err *err);

#ifdef __cplusplus
}
#endif
#endif
