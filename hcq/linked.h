/* A linked graph: K instances of its words in device-visible memory, and what a replay does to one of them.
 */
#ifndef BW_HCQ_LINKED_H
#define BW_HCQ_LINKED_H

#include "hcq/plan.h"

enum {
    BW_LINK_INSTANCES_DEFAULT = 3, /* one runs, one is queued behind it, one is being written */
    /* More only cost memory: rings hold fewer command buffers of one graph. Sets of tickets are 64-bit masks.
     */
    BW_LINK_INSTANCES_MAX = 64,
    BW_LINK_LOSSES_MAX = 8, /* failures of devices whose tickets are remembered one by one */
};

/* table[slot] + addend goes to the instance's word, 64 bits wide. The hot loop: nearly every patch is an
 * address. */
struct bw_scatter {
    uint32_t word, slot;
    uint64_t addend;
};

/* The general case: a field of one or two words. */
struct bw_scatter_field {
    uint32_t word, slot;
    uint64_t addend;
    uint32_t mask, keep; /* bits written; the template's other bits */
    uint8_t shift;
    bool wide;
};

struct bw_scatter_list {
    BW_VEC(struct bw_scatter) wide;
    BW_VEC(struct bw_scatter_field) fields;
};

/* A stretch of a list: [wide_begin, wide_end) and [field_begin, field_end). */
struct bw_scatter_range {
    uint32_t wide_begin, wide_end, field_begin, field_end;
};

struct bw_linked_device {
    struct bw_hcq_device *hcq;
    struct bw_block *memory; /* of all instances; NULL: it executes nothing */
    uint32_t *words;         /* CPU's view */
    uint64_t address;
    uint64_t stride_words;              /* from one instance to the next */
    uint64_t argument_word, stamp_word; /* where those begin in an instance */
    uint64_t can_wait;                  /* devices of the graph for whose signals its queues can wait */
    uint64_t can_follow;                /* ... after whose queues' submissions its own can be put */
    struct bw_scatter_list early;       /* inputs and variables, step by step */
    struct bw_scatter_list late;        /* points, known in the turn, step by step */
    struct bw_scatter_list aside;       /* points in prologues and epilogues, queue by queue */
    struct bw_scatter_list rare;        /* signal addresses */
};

struct bw_linked_queue {
    struct bw_hcq_queue *hcq;
    uint32_t device;
    uint32_t signal_count; /* 0: this graph gives it nothing to do */
    uint64_t word;         /* its command words in an instance */
    struct bw_step prologue, epilogue;
    struct bw_scatter_range prologue_range, epilogue_range;
    bool root, follows; /* its prologue waits for earlier work: by itself, or for the leader's */
    struct bw_hcq_label label;
    uint32_t base_slot;   /* in the table, BW_PLAN_NONE: nobody reads it */
    struct bw_point base; /* of the replay in progress */
    bool prologue_wanted; /* by the replay in progress */
};

struct bw_linked_step {
    struct bw_step step;
    bool first;                          /* of its queue: its inputs may be written before the turn */
    struct bw_scatter_range early, late; /* what it reads, in its device's lists */
};

/* A word of the table that holds something of a queue, whether or not the graph uses that. */
struct bw_linked_signal {
    uint32_t slot, device; /* whose address of it */
    struct bw_hcq_queue *hcq;
};

struct bw_linked_preceding {
    uint32_t slot;
    struct bw_hcq_queue *hcq;
};

struct bw_linked_input {
    struct bw_plan_input range;
    uint32_t slot_begin, slot_count; /* in input_slots */
};

struct bw_input_slot {
    uint32_t slot, device;
};

struct bw_linked_variable {
    uint32_t slot; /* BW_PLAN_NONE: nobody reads it */
    bool is_dimension;
    uint32_t value_max; /* of a dimension */
};

/* Overlap of inputs: which input was given memory of a block in the current replay, and where the graph
 * itself touches the block. */
struct bw_seen {
    uint64_t block_id;
    uint64_t replay;                   /* attempt for which `input` is valid */
    uint32_t input;                    /* the last one; bw_inputs.previous chains the others */
    uint32_t fixed_begin, fixed_count; /* ranges of the graph's own touches */
};

struct bw_fixed_range {
    uint64_t begin, end;
    bool written;
};

struct bw_inputs {
    struct bw_linked_input *inputs;
    uint32_t count;
    uint64_t replay; /* attempts so far, failed ones included */
    BW_VEC(struct bw_input_slot) slots;
    struct bw_seen *seen; /* capacity: a power of two */
    uint32_t seen_capacity;
    uint32_t *previous; /* per input, BW_PLAN_NONE ends the chain */
    BW_VEC(struct bw_fixed_range) fixed;
};

/* Replays lost when a device failed: bit i is ticket last - i. */
struct bw_linked_loss {
    uint64_t last, tickets;
    struct bw_err why;
};

struct bw_linked_profile;

struct bw_linked_graph {
    struct bw_ctx *ctx;
    bool registered;                      /* read by this graph's thread alone */
    struct bw_linked_graph *next, **link; /* in ctx->linked, under its lock */
    uint32_t instance_count;
    uint64_t replay_count; /* tickets are 1 .. replay_count */
    struct bw_linked_device *devices;
    uint32_t device_count;
    struct bw_linked_queue *queues;
    uint32_t queue_count;
    /* Whose points say that a replay is over: the graph's queues (NULL: nothing to do), then those of devices
     * with submit_wait, which begin after earlier work even if that failed, so that it is looked at, too. */
    struct bw_hcq_queue **waited;
    uint32_t waited_count;
    struct bw_point *done;   /* [instance][waited]: when the instance is free */
    uint64_t *touched;       /* [instance]: context devices that its last replay ran on or touched */
    uint64_t touched_ever;   /* atomic: ... any replay */
    uint64_t *signal_epochs; /* [instance]: for which its signal addresses are right */
    uint64_t signal_epoch;   /* for which the table's are */
    BW_VEC(struct bw_linked_step) steps;
    BW_VEC(struct bw_linked_signal) signals;
    BW_VEC(struct bw_linked_preceding) preceding;
    uint32_t leader; /* queue, BW_PLAN_NONE: none */
    uint8_t
        device_numbers[BW_HCQ_DEVICES_MAX]; /* of the context's devices in the graph, plus 1; 0: not in it */
    struct bw_linked_variable *variables;
    uint32_t variable_count;
    struct bw_inputs inputs;
    uint64_t *table;
    uint32_t table_count;
    /* Context devices that follow each other; 0: none does. And of which epoch of the context's queues that
     * was made ready. */
    uint64_t followers, follows_epoch;
    uint64_t executing;    /* context devices that run something */
    uint64_t owners;       /* context devices whose memory the graph touches by itself */
    uint64_t input_owners; /* ... through this replay's inputs */
    /* Context devices whose queues may touch that memory: of the graph's blocks, as of an epoch, and of this
     * replay's inputs. */
    uint64_t users, users_epoch, input_users;
    BW_VEC(struct bw_block *) held;
    struct bw_graph_stats stats;
    struct bw_linked_loss losses[BW_LINK_LOSSES_MAX]; /* oldest first */
    uint32_t loss_count;
    uint64_t forgotten;                /* tickets up to it: of losses that are not remembered any more */
    struct bw_linked_profile *profile; /* NULL: without */
};

/* scatter.c */
/* Steps and their lists. 0 or -ENOMEM. */
int bw_scatter_make(struct bw_linked_graph *linked, const struct bw_encoded *encoded);
void bw_scatter_free(struct bw_linked_device *device);
void bw_scatter_run(const struct bw_scatter_list *list, const struct bw_scatter_range *range,
                    const uint64_t *table, uint32_t *words);

/* By `waited`: the points that the instance's last replay ends with. */
static inline struct bw_point *bw_instance_done(const struct bw_linked_graph *linked, uint32_t instance)
{
    return &linked->done[(uint64_t)instance * linked->waited_count];
}

/* replay.c */
/* In a turn: queues of the graph's devices that were made, or made anew, are to be waited for by others. */
int bw_follows_make(struct bw_linked_graph *linked, struct bw_err *err);

/* loss.c */
void bw_losses_register(struct bw_linked_graph *linked);
void bw_losses_unregister(struct bw_linked_graph *linked);
/* -ECANCELED with why when that replay was lost with a device that works again. */
int bw_losses_check(const struct bw_linked_graph *linked, uint64_t ticket, struct bw_err *err);
/* The error of a device failed now with which the instance's last replay was lost. */
int bw_losses_look(const struct bw_linked_graph *linked, uint32_t instance, struct bw_err *err);

/* inputs.c */
int bw_inputs_make(struct bw_inputs *inputs, const struct bw_plan *plan, const struct bw_encoded *encoded,
                   struct bw_err *err);
void bw_inputs_free(struct bw_inputs *inputs);
/* Checks the replay's inputs and fills the table. */
int bw_inputs_take(struct bw_linked_graph *linked, const struct bw_replay *replay, struct bw_err *err);

/* commands.c */
/* What a replay does, in order: a command buffer given to a queue, or what that queue or the host waits for.
 */
struct bw_linked_command {
    struct bw_device *device;
    const char *queue_label; /* "compute queue 0" */
    bool copy;               /* the queue is a copy engine's */
    enum bw_step_kind kind;
    struct bw_device *producer; /* of BW_STEP_AFTER: whose queue is waited for, */
    const char *producer_label; /* and which */
    const uint32_t *words;      /* of the first instance, patched as its last replay left them */
    uint32_t word_count;
};
/* False when there are no more. Nothing may replay the graph meanwhile. */
bool bw_linked_graph_command(const struct bw_linked_graph *linked, uint32_t index,
                             struct bw_linked_command *command);

/* profile.c */
int bw_profile_make(struct bw_linked_graph *linked, const struct bw_plan *plan,
                    const struct bw_encoded *encoded, struct bw_err *err);
void bw_profile_free(struct bw_linked_graph *linked);
/* The host's clock for bw_profile_begin and bw_profile_end; 0 without profile. */
uint64_t bw_profile_now(const struct bw_linked_graph *linked);
/* The instance is free for a replay that was asked for at called_ns: its stamps are that one's from here on.
 */
void bw_profile_begin(struct bw_linked_graph *linked, uint32_t instance, uint64_t called_ns);
void bw_profile_end(struct bw_linked_graph *linked, uint32_t instance);

#endif
