/* Collectives over a tuple of devices, as calls of a graph: nothing runs until the graph is linked and
 * replayed, and then with no call back into the program.
 *
 * Rank r is device r of the tuple. Sizes and places are those of NCCL, with n ranks and `count` elements:
 *
 *                    send (each rank)       receive (each rank)    in place when
 *   all-gather       count                  n * count              send is part r of receive
 *   broadcast        count (root only)      count                  send is receive
 *   reduce-scatter   n * count              count: part r          receive is part r of send
 *   all-reduce       count                  count                  send is receive
 *   all-to-all       n * count              n * count              send is receive
 *
 * Strategies: how bytes travel and in which order they are reduced.
 *   naive    everything through one rank (the root, else rank 0)
 *   ring     n - 1 steps, each rank sends to the next one; least bytes, most steps
 *   direct   each part straight to the rank that it is for (a broadcast: scattered, then gathered)
 *   tree     binomial, log2 n steps of everything; for small sizes
 * All-to-all is always direct.
 *
 * Results of one strategy are the same at every run, bit by bit, and all ranks of an all-reduce hold the same
 * bits. Between strategies sums of floats differ by rounding: with e the unit round-off of the type that
 * travels (f32 2^-24, f16 2^-11, bf16 2^-8), each is within (n + 1) * e * (sum of absolute values) of the
 * exact sum as long as nothing overflows or becomes denormal. f16 and bf16 are added in f32 and rounded when
 * they are stored: once (naive, direct), at each step (ring), at each level (tree). Integers wrap, and are
 * equal across strategies, as are minima and maxima. */
#ifndef BW_COLLECTIVE_H
#define BW_COLLECTIVE_H

#include <bellwire/dtype.h>
#include <bellwire/graph.h>
#include <bellwire/topology.h>

#ifdef __cplusplus
extern "C" {
#endif

enum bw_collective_kind {
    BW_ALL_GATHER,
    BW_BROADCAST,
    BW_REDUCE_SCATTER,
    BW_ALL_REDUCE,
    BW_ALL_TO_ALL,
    BW_COLLECTIVE_COUNT,
};

enum bw_strategy {
    BW_STRATEGY_AUTO, /* the one that a cost model finds fastest */
    BW_STRATEGY_NAIVE,
    BW_STRATEGY_RING,
    BW_STRATEGY_DIRECT,
    BW_STRATEGY_TREE,
    BW_STRATEGY_COUNT,
};

enum bw_reduction {
    BW_REDUCE_SUM,
    BW_REDUCE_PROD,
    BW_REDUCE_MIN, /* NaN when any is */
    BW_REDUCE_MAX,
    BW_REDUCE_AVG, /* floats only: the sum, times 1 / n before it is rounded for the last time */
    BW_REDUCE_COUNT,
};

struct bw_collective_options {
    uint64_t size; /* sizeof this struct */
    enum bw_collective_kind kind;
    enum bw_strategy strategy;
    enum bw_reduction reduction; /* of reduce-scatter and all-reduce */
    enum bw_dtype dtype;         /* any but BOOL and VOID */
    enum bw_dtype transport; /* type that travels: VOID (as dtype), or F16 or BF16 when dtype is F32 or F64 */
    uint32_t root;           /* of broadcast */
    uint64_t count;          /* at least 1; need not be divisible by the ranks */
    /* What the cost model counts with; NULL: what bw_device_link says of the devices. gpus: the topology's
     * GPU of each rank; NULL: rank r is GPU r. Read by bw_collective_create only. */
    const struct bw_topology *topology;
    const uint32_t *gpus;
};

struct bw_collective;

/* Chooses, compiles the kernels (through the context's cache) and takes scratch memory on each device. All
 * devices are of one family and architecture, and each comes once. -EINVAL names what is wrong with the tuple
 * or the options; -ENOTSUP: a type or a strategy that this kind has not; -ENOMEM. The caller ends it with
 * bw_collective_destroy. */
int bw_collective_create(struct bw_device *const *devices, uint32_t rank_count,
                         const struct bw_collective_options *options, struct bw_collective **collective,
                         struct bw_err *err);
/* Graphs that were linked with its calls are gone. NULL is fine. */
void bw_collective_destroy(struct bw_collective *collective);

/* Appends the collective's calls to the graph. send and receive: one range per rank, exactly as large as the
 * table above says, of buffers of that rank's device or of replay inputs, which are said to be of that device
 * (bw_graph_input). Ranges of one rank may overlap only as in place. A broadcast reads the root's send range
 * only. -EINVAL names the rank, and nothing was appended; after any other error the graph holds a part of the
 * calls and is of no use. The scratch memory is one: linked graphs with calls of one collective are replayed
 * one at a time. */
int bw_collective_add(struct bw_collective *collective, struct bw_graph *graph, const struct bw_range *send,
                      const struct bw_range *receive, struct bw_err *err);

/* What was chosen, and what the cost model expects of it. */
enum bw_strategy bw_collective_strategy(const struct bw_collective *collective);
double bw_collective_seconds(const struct bw_collective *collective);

/* "all-reduce", "ring", "sum"; NULL past the end. */
const char *bw_collective_name(enum bw_collective_kind kind);
const char *bw_strategy_name(enum bw_strategy strategy);
const char *bw_reduction_name(enum bw_reduction reduction);

#ifdef __cplusplus
}
#endif
#endif
