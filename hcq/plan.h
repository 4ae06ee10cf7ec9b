/* From calls to command buffers, step by step:
 *
 *   graph.c   calls, as the user made them (checked, copied); lanes.c: on several devices at once
 *   plan.c    calls -> operations: one device each, copies that no device can do in one go are staged
 *   order.c   copies that have no order among themselves, in a good one
 *   spread.c  which queue: copies over engines and links, kernels by what they depend on
 *   hazard.c  operations -> what each has to wait for; what order already gives is left out. history.c: who
 *             touched which bytes last
 *   encode.c  operations -> command words with patches, argument blocks, steps of submission
 *   link.c    patches -> K instances in device-visible memory; scatter.c: lists of what a replay writes
 *   replay.c  scatter, ring; loss.c: which replays a failed device took along
 *   profile.c when calls ran and what they waited for; clock.c: on the host's clock; report.c, trace.c:
 *             for people
 */
#ifndef BW_HCQ_PLAN_H
#define BW_HCQ_PLAN_H

#include <bellwire/profile.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "hcq/hcq.h"

enum {
    BW_PLAN_NONE = 0xffffffff,
    BW_GRAPH_INPUTS_MAX = 1 << 16,    /* input numbers: bounds the replay table */
    BW_GRAPH_VARIABLES_MAX = 1 << 12, /* variable numbers: same */
};

/* Where bytes are: in a block, or (block NULL) in replay input `input`, whose offset counts from the input's
 * own start. */
struct bw_place {
    struct bw_block *block;
    uint32_t input;
    uint64_t offset;
};

/* One number for all places in one block or input. */
static inline uint64_t bw_place_space(const struct bw_place *place)
{
    return place->block ? place->block->id * 2 : place->input * 2ull + 1;
}

/* A call as made. Everything that it points at lives in the graph's arena; buffers are resolved to blocks,
 * which the graph holds, so that their handles may go. */
struct bw_call {
    struct bw_device *device;
    struct bw_kernel *kernel; /* NULL: a copy */
    struct bw_launch launch;
    struct bw_place *places; /* of the arguments that are ranges; of a copy: target, source */
    uint64_t size_bytes;     /* of a copy */
};

/* A byte range of a call: target and source of a copy, the arguments of a kernel that are ranges. */
struct bw_call_range {
    const struct bw_place *place;
    uint64_t size_bytes; /* 0: only its address is used */
    uint32_t access;     /* enum bw_access */
};

/* The call's next range; *at begins with 0. False: there are no more. */
bool bw_call_range_next(const struct bw_call *call, uint32_t *at, struct bw_call_range *range);

struct bw_graph {
    struct bw_ctx *ctx;
    struct bw_arena arena;
    BW_VEC(struct bw_call) calls;
    BW_VEC(struct bw_block *) held; /* one reference for each use */
    uint32_t input_count, variable_count;
    BW_VEC(struct bw_device *) input_devices; /* by input; NULL or past the end: nothing was said */
};

/* A touched byte range. */
struct bw_touch {
    struct bw_place place;
    uint64_t size_bytes;
    bool write;
};

/* Position of an operation on its queue, counted from 1; 0: before all. */
typedef uint32_t bw_position;

/* Who sees to it that one queue waits for another. */
enum bw_wait_kind {
    BW_WAIT_DEVICE,     /* a packet of the waiting queue */
    BW_WAIT_SUBMISSION, /* the kernel, before it begins with the next command buffer */
    BW_WAIT_HOST,       /* the host, before it submits anything more */
};

/* "Wait until queue `queue` of the plan has passed operation `position`." */
struct bw_wait {
    uint32_t queue;
    bw_position position;
    uint32_t operation; /* its index */
    enum bw_wait_kind kind;
};

struct bw_operation {
    uint32_t call;   /* index of the call that it belongs to */
    uint32_t device; /* of the plan */
    uint32_t queue;  /* of the plan; BW_PLAN_NONE until hazard.c knows what a kernel depends on */
    bw_position position;
    struct bw_place target, source; /* of a copy */
    uint64_t size_bytes;
    uint32_t touch_begin, touch_count;
    /* hazard.c */
    uint32_t wait_begin, wait_count;
    uint32_t barrier;       /* enum bw_barrier_flags to emit before it, after the waits */
    uint32_t stage;         /* execution barriers of its queue up to it */
    bool signalled;         /* somebody waits for it */
    bool host_signalled;    /* ... the host does */
    uint32_t signal_number; /* of the queue's signals, from 1, when signalled */
};

/* A device that executes something or owns memory that is touched. */
struct bw_plan_device {
    struct bw_hcq_device *hcq;
    uint32_t kernel_count;
    uint32_t queue_numbers[BW_HCQ_QUEUES_MAX]; /* of its queues in the plan; BW_PLAN_NONE: not in it */
};

/* A queue that the graph uses, or may use for kernels. */
struct bw_plan_queue {
    struct bw_hcq_queue *hcq;
    uint32_t device;             /* of the plan */
    bw_position operation_count; /* 0: this graph gives it nothing to do */
    uint32_t signal_count;       /* of one replay, the final one included */
    uint64_t load;               /* what it was given so far, in bytes; see spread.c */
    uint32_t stage;              /* execution barriers so far */
    bool root;                   /* its first operation waits for no other queue of this replay */
};

struct bw_plan_input {
    uint64_t begin, end; /* bytes touched: [begin, end) */
    bool used, written;
    uint64_t devices; /* plan devices (by number) whose queues address it */
};

/* Host memory between two devices that do not reach each other. */
struct bw_staging {
    struct bw_block *block;
    uint64_t slot_bytes;
    uint32_t slot_count;
};

struct bw_plan {
    struct bw_graph *graph;
    BW_VEC(struct bw_plan_device) devices;
    BW_VEC(struct bw_plan_queue) queues;
    BW_VEC(struct bw_operation) operations;
    BW_VEC(struct bw_touch) touches;
    BW_VEC(struct bw_wait) waits;
    bool profile;
    BW_VEC(struct bw_profile_dependency) dependencies; /* of a profile: between operations */
    BW_VEC(struct bw_staging) staging;                 /* made here, one reference each */
    struct bw_map staging_numbers;                     /* which of them two devices share */
    struct bw_plan_input *inputs;                      /* graph->input_count */
    struct bw_spread *spread;                          /* while it is made */
    uint32_t leader; /* queue whose prologue waits for the others' sake; BW_PLAN_NONE: none */
};

/* profile: what is linked has timestamps, and dependencies are listed; the schedule is the same. */
int bw_plan_make(struct bw_graph *graph, bool profile, struct bw_plan *plan, struct bw_err *err);
void bw_plan_free(struct bw_plan *plan);
/* How queues of device `waiter` wait for queues of device `writer` (of the plan). */
enum bw_wait_kind bw_plan_wait_kind(const struct bw_plan *plan, uint32_t waiter, uint32_t writer);
/* The number of a device's queue in the plan, added when new. */
int bw_plan_queue_number(struct bw_plan *plan, uint32_t device, uint32_t queue, uint32_t *number,
                         struct bw_err *err);

/* spread.c */
enum { BW_SPREAD_HOST = BW_HCQ_DEVICES_MAX }; /* the far side of a transfer is host memory */
/* Whose memory it is; of an input that nobody said anything of, the call's device. */
struct bw_hcq_device *bw_plan_place_owner(const struct bw_plan *plan, const struct bw_place *place,
                                          const struct bw_call *call);

/* order.c: the numbers of all calls in the order in which they are planned. 0 or -ENOMEM. */
int bw_order_make(const struct bw_plan *plan, uint32_t *order);

/* From one device to another around the ring of all. */
static inline uint32_t bw_spread_distance(uint32_t from, uint32_t to)
{
    return (to + BW_HCQ_DEVICES_MAX - from) % BW_HCQ_DEVICES_MAX;
}

struct bw_spread *bw_spread_create(void);
void bw_spread_destroy(struct bw_spread *spread);
/* Before operations are made: that `near` will move so many bytes to or from `far` (indices in the context).
 */
int bw_spread_note(struct bw_spread *spread, struct bw_hcq_device *near, uint32_t far, uint64_t size_bytes);
/* All transfers are noted: gives every pair its queues. */
int bw_spread_assign(struct bw_spread *spread, struct bw_ctx *ctx);
/* Queue numbers of `near` for a transfer of that size: into how many equal parts it is to be cut, one queue
 * each. help_bytes, when not 0, are what is left to one more queue, the last of the list. */
uint32_t bw_spread_queues(struct bw_spread *spread, struct bw_hcq_device *near, uint32_t far,
                          uint64_t size_bytes, uint32_t queues[BW_HCQ_QUEUES_MAX], uint64_t *help_bytes);
/* The queue for a kernel. By queue of the plan: need is the newest operation there that it depends on, plus
 * 1, or 0; reached the position that is passed once all it depends on is done. */
int bw_spread_kernel(struct bw_plan *plan, uint32_t operation, const uint32_t *need,
                     const bw_position *reached, struct bw_err *err);

/* hazard.c: fills the operations' waits, barriers and signals. */
int bw_hazards_find(struct bw_plan *plan, struct bw_err *err);

/* Symbols of a linked graph: what a patch's number stands for. */
enum bw_symbol_kind {
    BW_SYMBOL_BLOCK,     /* address of block `block` for device `device`: known at link */
    BW_SYMBOL_ARGUMENTS, /* argument blocks of device `device`: known per instance */
    BW_SYMBOL_STAMPS,    /* timestamps of device `device`: known per instance */
    BW_SYMBOL_INPUT,     /* replay: address of input `number` for device `device` */
    BW_SYMBOL_VARIABLE,  /* replay: variable `number` */
    BW_SYMBOL_BASE,      /* replay: points of queue `number` before this replay's first */
    /* Numbers of queues below are bw_symbol_queue of a device of the plan and its queue. */
    BW_SYMBOL_PRECEDING, /* replay: points of the queue that earlier submissions end with (a prologue's wait)
                          */
    BW_SYMBOL_SIGNAL,    /* replay: signal address of the queue for device `device` */
};

static inline uint32_t bw_symbol_queue(uint32_t device, uint32_t queue)
{
    return device * BW_HCQ_QUEUES_MAX + queue;
}

struct bw_symbol {
    enum bw_symbol_kind kind;
    struct bw_block *block;
    uint32_t number, device;
};

enum bw_step_kind {
    BW_STEP_SUBMIT,    /* a command buffer */
    BW_STEP_AFTER,     /* what the queue is given next begins after all that the producer was given */
    BW_STEP_HOST_WAIT, /* the host waits for the queue */
};

/* What a replay does, in order. */
struct bw_step {
    enum bw_step_kind kind;
    bool flush;                /* submit: the device is told of it now; else with a later one of the queue */
    uint32_t queue;            /* whose command buffer is submitted, who waits, or who is waited for */
    uint32_t word, word_count; /* submit: in the queue's command words */
    uint32_t producer;         /* after: the other queue */
    uint32_t signal_number;    /* host wait: of that queue */
};

/* Of one plan queue. */
struct bw_encoded_queue {
    struct bw_encoder commands; /* all its command buffers; patches count words in it */
    struct bw_step prologue;    /* invalidates code, waits for everyone else */
    struct bw_step epilogue;    /* the last signal alone, for a replay that ends early */
    bool follows;               /* its prologue waits for the leader's */
    struct bw_hcq_label label;
    uint32_t open;        /* 1 + step of the command buffer under construction, 0: none */
    uint32_t batch_count; /* operations in it */
    uint32_t batch_max;   /* that it takes; doubles; 0: it had none */
};

/* Argument patches from patch_begin on, up to the next run's, are for the kernels of one step. */
struct bw_argument_run {
    uint32_t patch_begin, step;
};

/* Of one plan device. */
struct bw_encoded_device {
    struct bw_encoder arguments; /* its argument blocks */
    BW_VEC(struct bw_argument_run) runs;
    uint32_t stamp_count; /* 64-bit words */
};

struct bw_encoded_stamp {
    uint32_t queue; /* of the plan */
    uint32_t stamp; /* two consecutive stamps of the queue's device, begin and end */
};

struct bw_encoded {
    BW_VEC(struct bw_symbol) symbols;
    struct bw_map symbol_numbers; /* kind, device and number or block id in one key */
    BW_VEC(struct bw_step) steps;
    struct bw_encoded_queue *queues;        /* one per plan queue */
    struct bw_encoded_device *devices;      /* one per plan device */
    BW_VEC(struct bw_encoded_stamp) stamps; /* of a profile: by operation */
    struct bw_graph_stats stats;
};

int bw_plan_encode(struct bw_plan *plan, struct bw_encoded *encoded, struct bw_err *err);
void bw_encoded_free(struct bw_plan *plan, struct bw_encoded *encoded);

#endif
