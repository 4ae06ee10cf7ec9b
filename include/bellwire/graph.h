/* Graphs of kernel and copy calls: build once, link once, replay many times.
 *
 * A graph is a list of calls in program order on one or more devices. Linking tracks dependencies by byte
 * range, assigns queues, encodes command buffers and resolves addresses; replay patches inputs, variables and
 * signal values, and rings doorbells: no allocation, no system call, no lock where the device has user-space
 * doorbells. */
#ifndef BW_GRAPH_H
#define BW_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/program.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_graph;
struct bw_linked_graph;

/* A byte range that a call touches: of a buffer known now, or of input number `input` given at each replay.
 * Of an input the device is what bw_graph_input said, else the call's. */
struct bw_range {
    struct bw_buffer *buffer; /* NULL: replay input */
    uint32_t input;
    uint64_t offset, size_bytes;
};

enum bw_access { BW_ACCESS_READ = 1, BW_ACCESS_WRITE = 2 };

/* One kernel argument, in the order of the kernel's visible arguments. */
enum bw_argument_source { BW_ARG_RANGE, BW_ARG_VALUE, BW_ARG_VARIABLE };
struct bw_argument {
    enum bw_argument_source source;
    struct bw_range range; /* BW_ARG_RANGE: its address is passed, the range is what may be touched */
    uint32_t access;       /* BW_ARG_RANGE: enum bw_access bits */
    uint64_t value;        /* BW_ARG_VALUE: up to 8 bytes, little endian */
    uint32_t variable;     /* BW_ARG_VARIABLE: number of a replay variable, 32 bits */
};

/* A launch dimension: a constant, or a replay variable. */
struct bw_dimension {
    uint32_t value;
    bool is_variable; /* value is then the variable's number */
};

struct bw_launch {
    struct bw_dimension group_count[3]; /* workgroups */
    uint32_t group_size[3];             /* work-items per group */
    uint32_t dynamic_lds_bytes;
    const struct bw_argument *arguments;
    uint32_t argument_count;
    double flops; /* arithmetic that it does, for profiles; 0: not known */
};

/* An empty graph, the caller's until bw_graph_destroy; -ENOMEM. One thread at a time per graph. */
int bw_graph_create(struct bw_ctx *ctx, struct bw_graph **graph, struct bw_err *err);
/* Graphs linked from it stay. NULL is fine. */
void bw_graph_destroy(struct bw_graph *graph);
/* Appends a call. All that `launch` points at is copied. Buffers and kernels must outlive the linked graph.
 * -EINVAL: arguments or sizes that the kernel does not take; -ERANGE: a range outside its buffer, named with
 * call and argument. After an error the graph has no call more. */
int bw_graph_kernel(struct bw_graph *graph, struct bw_kernel *kernel, const struct bw_launch *launch,
                    struct bw_err *err);
/* Copies source.size_bytes (= target.size_bytes) bytes; both ranges' devices are known from the buffer or,
 * for an input, are `device`. Overlapping ranges of one buffer: -EINVAL. Zero bytes: nothing happens. */
int bw_graph_copy(struct bw_graph *graph, struct bw_device *device, struct bw_range target,
                  struct bw_range source, struct bw_err *err);
/* Says that replays will give memory of `device` as that input; any time before linking. A replay that gives
 * memory of another device is served when all devices that touch the input reach that memory too, else
 * refused with -EOPNOTSUPP. -EBUSY: another device was said. */
int bw_graph_input(struct bw_graph *graph, uint32_t input, struct bw_device *device, struct bw_err *err);

/* Calls on a tuple of devices: one command per lane, the same work on other buffers. Lanes have no order
 * among themselves: a lane that writes what another lane touches is refused (-EINVAL). Towards other calls
 * each lane is ordered by the bytes that it touches, like a call of its own, so tuples may overlap from call
 * to call in any way. All lanes are checked before the first is appended: after an error the graph is as it
 * was. Errors name the lane. */
enum { BW_GRAPH_LANES_MAX = 4096 }; /* 64 devices, each to each */

/* A lane of kernels belongs to the kernel's device. A tuple has each device once, and all of one
 * architecture: -EINVAL. */
struct bw_kernel_lane {
    struct bw_kernel *kernel;
    const struct bw_launch *launch;
};
int bw_graph_kernel_lanes(struct bw_graph *graph, const struct bw_kernel_lane *lanes, uint32_t lane_count,
                          struct bw_err *err);

/* As the arguments of bw_graph_copy. Devices may be of any kinds and come several times; lanes of zero bytes
 * do nothing. */
struct bw_copy_lane {
    struct bw_device *device;
    struct bw_range target, source;
};
int bw_graph_copy_lanes(struct bw_graph *graph, const struct bw_copy_lane *lanes, uint32_t lane_count,
                        struct bw_err *err);

struct bw_link_options {
    uint64_t size;      /* sizeof this struct */
    uint32_t instances; /* replays in flight; 0: 3 */
    bool profile;       /* timestamps around each call: <bellwire/profile.h> */
};

/* The graph may be destroyed afterwards. options may be NULL. */
int bw_graph_link(struct bw_graph *graph, const struct bw_link_options *options,
                  struct bw_linked_graph **linked, struct bw_err *err);
/* Waits for its replays (bounded), then frees. */
void bw_linked_graph_destroy(struct bw_linked_graph *linked);

struct bw_replay {
    struct bw_buffer *const *inputs; /* one per input number used in the graph */
    uint32_t input_count;
    const uint32_t *variables;
    uint32_t variable_count;
};

/* Submits one run and returns; *ticket names it. Blocks only when all instances are busy. Two inputs that
 * overlap while one is written: -EINVAL. One thread at a time per linked graph. */
int bw_linked_graph_replay(struct bw_linked_graph *linked, const struct bw_replay *replay, uint64_t *ticket,
                           struct bw_err *err);
/* Waits until that replay is done. A device that faulted or hung: -EIO / -ETIMEDOUT with the kernel, queue
 * and address. Once the device was recovered: -ECANCELED with that same reason, for every replay that was not
 * done when it failed. Devices that did their part meanwhile are as good as before. */
int bw_linked_graph_wait(struct bw_linked_graph *linked, uint64_t ticket, struct bw_err *err);

/* One command of one queue. A copy may be several: parts for several engines, or two legs through host
 * memory. Where kernels of a queue overlap, one "begins" when those before it have ended. */
struct bw_call_profile {
    const char *name; /* kernel name, or "copy"; lives as long as the linked graph, or the profile */
    const char *device;
    uint32_t device_number;  /* in its context: names need not differ */
    const char *queue_label; /* "compute queue 2", "copy queue 1 (XGMI)" */
    uint32_t queue;          /* number among the device's queues: compute queues, then copy queues */
    uint32_t call;           /* number in the graph; launches of no groups and empty copies have none */
    bool copy;
    const char *source, *target; /* of a copy: whose memory, "host" or a device's name; else NULL */
    /* Of the ranges that the call may touch: what it touches may be less. */
    uint64_t bytes_read, bytes_written;
    double flops;              /* as its launch says */
    uint64_t begin_ns, end_ns; /* on the host's clock */
};
/* Of the last finished replay of a graph linked with profile, without waiting. Returns the number of calls,
 * fills up to `capacity`. */
uint32_t bw_linked_graph_profile(struct bw_linked_graph *linked, struct bw_call_profile *calls,
                                 uint32_t capacity);

struct bw_graph_stats {
    uint32_t calls, command_buffers, dwords, waits, signals, cache_operations, doorbells, packets;
};
/* What linking made of the graph, summed over its queues; of one replay. */
void bw_linked_graph_stats(const struct bw_linked_graph *linked, struct bw_graph_stats *stats);

/* Waits for everything submitted to the device. */
int bw_device_synchronize(struct bw_device *device, struct bw_err *err);

#ifdef __cplusplus
}
#endif
#endif
