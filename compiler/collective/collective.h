/* How collectives are made. Strategies (gather.c, reduce.c) say copies, folds and rounds to a struct
 * bw_making, which does one of three things with them: counts what they cost (cost.c), notes what scratch
 * memory and which kernels they need, or appends them to a graph (making.c). So what is counted, prepared and
 * built is the same. */
#ifndef BW_COMPILER_COLLECTIVE_H
#define BW_COMPILER_COLLECTIVE_H

#include <bellwire/collective.h>

#include "base/vec.h"

enum {
    BW_COLLECTIVE_RANKS_MAX = 64,
    BW_FOLD_INPUTS_MAX = 8, /* of one kernel: more are folded one kernel after the other */
};

/* Memory of a rank: the caller's, and scratch. */
enum bw_area {
    BW_AREA_SEND,
    BW_AREA_RECEIVE,
    BW_AREA_IN,     /* what arrives to be folded */
    BW_AREA_OUT,    /* what leaves, made by a kernel */
    BW_AREA_FULL,   /* everything in the type that travels */
    BW_AREA_SUMS,   /* of a tree, level by level: two halves, taken in turn */
    BW_AREA_CHAIN,  /* between kernels of a fold with many inputs: two halves, taken in turn */
    BW_AREA_RESULT, /* of a fold whose target is one of its inputs */
    BW_AREA_COUNT,
};

struct bw_spot {
    enum bw_area area;
    uint64_t offset; /* bytes */
    enum bw_dtype dtype;
};

/* out[i] = fold of inputs[..][i], in order, computed in a wide type; one input: a conversion. */
struct bw_fold {
    uint64_t count;
    uint32_t input_count;
    enum bw_dtype inputs[BW_FOLD_INPUTS_MAX], output;
    bool last; /* an average is scaled here */
};

/* A fold's kernel on every rank. */
struct bw_fold_kernel {
    struct bw_fold fold;
    uint32_t order[BW_FOLD_INPUTS_MAX]; /* argument 1 + i is this input */
    uint32_t group_count[3], group_size;
    double flops;
    struct bw_program *programs[BW_COLLECTIVE_RANKS_MAX];
    struct bw_kernel *kernels[BW_COLLECTIVE_RANKS_MAX];
};

struct bw_collective {
    struct bw_device *devices[BW_COLLECTIVE_RANKS_MAX];
    uint32_t rank_count;
    struct bw_collective_options options; /* resolved: transport is no VOID, pointers are NULL */
    double seconds;
    BW_VEC(struct bw_fold_kernel) kernels;
    struct bw_buffer *scratch[BW_COLLECTIVE_RANKS_MAX];
    uint64_t scratch_bytes[BW_COLLECTIVE_RANKS_MAX];
    uint64_t area_offset[BW_COLLECTIVE_RANKS_MAX][BW_AREA_COUNT];
    uint64_t area_bytes[BW_COLLECTIVE_RANKS_MAX][BW_AREA_COUNT];
};

struct bw_cost;

enum bw_making_mode { BW_MAKING_COST, BW_MAKING_PREPARE, BW_MAKING_GRAPH };
struct bw_making {
    struct bw_collective *collective;
    enum bw_making_mode mode;
    enum bw_strategy strategy;
    struct bw_cost *cost;
    struct bw_graph *graph;
    const struct bw_range *send, *receive;
    struct bw_err *err;
    int rc; /* sticky */
};

/* One family and architecture, one context, each device once, not too many: 0, or -EINVAL with what is wrong.
 */
int bw_collective_tuple_check(struct bw_device *const *devices, uint32_t rank_count, struct bw_err *err);

/* ---- making.c: what strategies say ---- */

void bw_make_copy(struct bw_making *making, uint32_t from, struct bw_spot source, uint32_t to,
                  struct bw_spot target, uint64_t count);
/* More inputs than one kernel takes are fine. `last`: the result is final. */
void bw_make_fold(struct bw_making *making, uint32_t rank, struct bw_spot target,
                  const struct bw_spot *inputs, uint32_t input_count, uint64_t count, bool last);
/* What follows depends on what was said. */
void bw_make_round(struct bw_making *making);
/* Where send begins, seen from receive. */
int64_t bw_make_distance(const struct bw_making *making, uint32_t rank);
/* Whether rank's send and receive ranges share bytes. Before that is known: as if. */
bool bw_make_in_place(const struct bw_making *making, uint32_t rank);

/* ---- strategies ---- */

/* Where part r of `total` elements begins and how many it has: equal parts, the last ones shorter or empty.
 */
uint64_t bw_part_begin(const struct bw_collective *collective, uint64_t total, uint32_t part);
uint64_t bw_part_count(const struct bw_collective *collective, uint64_t total, uint32_t part);

/* gather.c. Parts of `total` elements, each in its rank's area already, reach every rank's. */
void bw_make_all_gather(struct bw_making *making, struct bw_spot whole, uint64_t total);
/* All `total` elements, in the root's area already. */
void bw_make_broadcast(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root);
/* The whole of one kind, by making->strategy. */
void bw_make_collective(struct bw_making *making);

/* reduce.c. Of `total` elements that each rank sends: part r to `target` of rank r (at its place in the whole
 * when `spread`), or all to rank 0's. */
void bw_make_reduce_parts(struct bw_making *making, struct bw_spot target, uint64_t total, bool spread);
void bw_make_reduce_all(struct bw_making *making, struct bw_spot target, uint64_t total);

/* ---- fold.c, cost.c ---- */

/* Compiles for the architecture of the devices and loads it on each. */
int bw_fold_kernel_make(struct bw_collective *collective, const struct bw_fold *fold,
                        struct bw_fold_kernel *kernel, struct bw_err *err);
void bw_fold_kernel_free(struct bw_fold_kernel *kernel, uint32_t rank_count);

int bw_cost_create(const struct bw_collective *collective, const struct bw_collective_options *options,
                   struct bw_cost **cost, struct bw_err *err);
void bw_cost_destroy(struct bw_cost *cost);
void bw_cost_begin(struct bw_cost *cost);
void bw_cost_copy(struct bw_cost *cost, uint32_t from, uint32_t to, uint64_t size_bytes);
void bw_cost_fold(struct bw_cost *cost, uint32_t rank);
void bw_cost_round(struct bw_cost *cost);
double bw_cost_seconds(struct bw_cost *cost);

#endif
