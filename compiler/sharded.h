/* What stands behind struct bw_sharded_graph.
 *
 * Every rank runs a program of its own, cut into stages by what travels: between two stages there are links,
 * each a collective or, for what a later stage needs of an earlier one, a copy. A stage is an ordinary tensor
 * graph for each rank; a link takes an output of one stage to an input of a later one. */
#ifndef BW_COMPILER_SHARDED_H
#define BW_COMPILER_SHARDED_H

#include <bellwire/sharded.h>

#include "base/vec.h"
#include "compiler/collective/collective.h"
#include "compiler/tensor_graph.h"

enum { BW_SHARDED_RANKS_MAX = BW_COLLECTIVE_RANKS_MAX };

/* What each rank has of a value: by rank, in the graphs of one stage. */
struct bw_locals {
    bw_tensor of[BW_SHARDED_RANKS_MAX];
};

struct bw_sharded_value {
    struct bw_shape shape; /* of the whole */
    enum bw_dtype dtype;
    int32_t axis;
    uint32_t stage, source; /* source: number + 1, or 0 */
    struct bw_locals locals;
};

/* Where values begin. They are made anew in each stage that reads them, so that they need no link. */
struct bw_sharded_source {
    uint32_t value;
    bool is_input;
    uint32_t input; /* among the inputs */
    void *data;     /* of a constant: the whole, owned; NULL: all elements are `number` */
    double number;
};

/* A value in a stage that is not its own. */
struct bw_sharded_import {
    uint32_t value, stage;
    struct bw_locals locals;
};

/* An input of a stage that is filled at each run. */
struct bw_sharded_feed {
    uint32_t source, stage, number; /* number: input of the stage's graphs */
};

struct bw_sharded_link {
    bool copies; /* each rank's to itself; else by `options` */
    struct bw_collective_options options;
    uint32_t from_stage, to_stage, number; /* number: input of to_stage's graphs */
    struct bw_locals sent;
};

struct bw_sharded_stage {
    struct bw_tensor_graph *graphs[BW_SHARDED_RANKS_MAX];
};

struct bw_sharded_graph {
    struct bw_device *devices[BW_SHARDED_RANKS_MAX];
    uint32_t device_count, input_count;
    int rc; /* the first error */
    struct bw_err err;
    BW_VEC(struct bw_sharded_stage) stages;
    BW_VEC(struct bw_sharded_value) values; /* id - 1 */
    BW_VEC(struct bw_sharded_source) sources;
    BW_VEC(struct bw_sharded_import) imports;
    BW_VEC(struct bw_sharded_feed) feeds;
    BW_VEC(struct bw_sharded_link) links;
};

/* Records the first error and gives the failed tensor. */
#define bw_sharded_fail(g, code, ...) \
    ((g)->rc ? (bw_sharded){(g), 0}   \
             : ((g)->rc = bw_fail(&(g)->err, code, "sharded", __VA_ARGS__), (bw_sharded){(g), 0}))

/* Of `length` elements: where rank's part begins, and how many it has. */
int64_t bw_sharded_begin(int64_t length, uint32_t rank, uint32_t rank_count);
int64_t bw_sharded_count(int64_t length, uint32_t rank, uint32_t rank_count);
int64_t bw_sharded_count_max(int64_t length, uint32_t rank_count);

/* The value, or NULL with an error recorded: a failed tensor, or one of another graph. */
const struct bw_sharded_value *bw_sharded_value_of(struct bw_sharded_graph *g, bw_sharded x, const char *op);
/* Whether that axis of that shape may be sharded; records why not. axis is REPLICATED for one device. */
bool bw_sharded_axis_check(struct bw_sharded_graph *g, const struct bw_shape *shape, int32_t *axis,
                           const char *op);
/* Locals of a value in a stage that is not before its own; false after an error. */
bool bw_sharded_locals(struct bw_sharded_graph *g, uint32_t id, uint32_t stage, struct bw_locals *locals);
/* A new value; locals that failed record their graph's error. */
bw_sharded bw_sharded_value_add(struct bw_sharded_graph *g, const struct bw_sharded_value *value);
/* The link's number is filled in; locals: of to_stage, on each rank of that shape, or of what it sends there
 * when received is NULL. */
bool bw_sharded_link_add(struct bw_sharded_graph *g, struct bw_sharded_link link,
                         const struct bw_shape *received, struct bw_locals *locals);
/* Between the whole of a tensor and the part along an axis that a rank has, both in host memory. */
struct bw_sharded_rows {
    uint64_t count, whole_bytes, part_bytes,
        offset; /* rows in both, bytes of a row in each, where it begins */
};
struct bw_sharded_rows bw_sharded_rows_of(const struct bw_sharded_value *value, uint32_t rank,
                                          uint32_t rank_count);
/* Elements [begin, begin + count) of an axis. */
bw_tensor bw_sharded_part(struct bw_tensor_graph *g, bw_tensor x, uint32_t axis, int64_t begin,
                          int64_t count);

#endif
