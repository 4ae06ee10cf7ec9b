/* Shared by compiler/schedule*.c. */
#ifndef BW_COMPILER_SCHEDULE_INTERNAL_H
#define BW_COMPILER_SCHEDULE_INTERNAL_H

#include "base/arena.h"
#include "base/map.h"
#include "compiler/schedule.h"

/* "This node, at this index, in that group": made by users for their sources, so each node sees how it is
 * read. */
struct request {
    struct request *next; /* of the same node */
    struct request *same_hash;
    bw_node node;
    uint32_t group;
    uint32_t rank;
    bw_node *index;                  /* one i64 node per axis, in schedule->ir */
    bw_node gate;                    /* the value is only used where this holds; 0: everywhere */
    double points;                   /* how often it is evaluated */
    bool in_reduce;                  /* inside a FOLD */
    bool loads;                      /* of a stored node: read from memory */
    bw_node inside;                  /* PAD: the gate it adds */
    bw_node range_list[BW_RANK_MAX]; /* REDUCE: its ranges */
    uint32_t range_count;
    struct request **sources;
    bw_node value;
};

/* A group becomes a kernel: everything that is computed for one stored node. */
struct group {
    bw_node node; /* what is stored */
    struct request *root;
    uint32_t range_count, load_count;
    float work; /* operations that it computes for one element */
    uint32_t buffer;
    bool once;
    BW_VEC(uint32_t) arguments;
};

struct node_state {
    struct request *requests;
    uint32_t request_count;
    uint32_t buffer; /* number + 1 when it lies in memory, else 0 */
    float cost;      /* of computing one element from memory, in simple operations */
    bool reads_memory, constant, must_store, stored, output;
    bool has_reduce; /* computing one element runs a reduction */
};

struct scheduler {
    const struct bw_ir *tensors;
    const bool *is_input;
    uint32_t buffer_count;
    struct bw_schedule *schedule;
    struct bw_ir *ir; /* schedule->ir */
    struct bw_arena arena;
    struct node_state *nodes;
    struct bw_map requests; /* hash -> struct request *, by same_hash */
    BW_VEC(struct group) groups;
    int rc;
};

/* Fills cost, reads_memory, constant, has_reduce. */
void bw_schedule_costs(struct scheduler *s);
/* The request for `node`, shared with an equal one; NULL after an error. */
struct request *bw_schedule_request(struct scheduler *s, bw_node node, const struct request *user,
                                    uint32_t rank, const bw_node *index, bw_node gate);
/* Makes the requests for the sources of node that `request` needs. */
int bw_schedule_expand(struct scheduler *s, bw_node node, struct request *request);
/* Decides that node lies in memory, in a buffer of its own: 0 or -ENOMEM. */
int bw_schedule_assign_buffer(struct scheduler *s, bw_node node);
/* The kernel-stage value of a request whose sources have theirs. */
bw_node bw_schedule_value(struct scheduler *s, bw_node node, struct request *request);
/* index[] of the element with that row-major number, and back. */
void bw_schedule_unflatten(struct bw_ir *ir, bw_node flat, const struct bw_shape *shape, bw_node *index);
bw_node bw_schedule_flatten(struct bw_ir *ir, const struct bw_shape *shape, const bw_node *index);
/* Takes what all loads of a parameter add to their indexes out of the kernel: elements by parameter as
 * offsets (for the caller to free), NULL where there are none. elements: of the parameters' buffers. */
int bw_schedule_views(struct bw_ir *ir, bw_node *sink, const int64_t *elements, uint32_t count,
                      int64_t **offsets);

#endif
