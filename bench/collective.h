/* What the benches of collectives share: ranks and their buffers, the walk over sizes, measuring and
 * checking, the columns of nccl-tests. A bench of this kind is a struct bw_bench_collective. */
#ifndef BW_BENCH_COLLECTIVE_H
#define BW_BENCH_COLLECTIVE_H

#include <bellwire/collective.h>

#include "bench/bench.h"

enum { BW_BENCH_RANKS_MAX = 64 /* devices of one context */ };

/* The devices of a collective, one rank each, with what each holds, and what is asked of it. */
struct bw_bench_group {
    struct bw_ctx *ctx;
    struct bw_device *devices[BW_BENCH_RANKS_MAX];
    uint32_t rank_count;
    const char *type_name; /* as nccl-tests name it */
    enum bw_dtype dtype, transport;
    uint32_t element_bytes;
    enum bw_reduction reduction;
    enum bw_strategy strategy;
    struct bw_topology topology;       /* what strategies are chosen by; no GPUs: the devices themselves */
    const char *topology_file;         /* as it was named */
    uint32_t gpus[BW_BENCH_RANKS_MAX]; /* of it, by rank */
    uint64_t bytes_max;                /* of each buffer */
    struct bw_buffer *send[BW_BENCH_RANKS_MAX], *receive[BW_BENCH_RANKS_MAX];
};

/* One collective. Sizes are bytes per rank, as nccl-tests count them. In place: `receive` holds the input. */
struct bw_bench_collective {
    enum bw_collective_kind kind;
    int root;
    bool reduces;
    bool copies_all; /* out of place each byte of a rank is copied once: comparable with memcpy */
    /* Elements that the column shows, of a size as it was typed; *size_bytes: what is really used of it. The
     * collective's own count is the same. */
    uint64_t (*count)(const struct bw_bench_group *group, uint64_t *size_bytes);
    /* Bytes that a link carries for each byte of algbw (nccl-tests, PERFORMANCE.md). */
    double (*bus_factor)(uint32_t rank_count);
    /* Bytes that must get from one rank to another whatever the schedule. */
    uint64_t (*traffic)(uint32_t rank_count, uint32_t from, uint32_t to, uint64_t size_bytes);
    /* The rank's input, and how many elements of its output are not as they should be. */
    void (*fill)(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes, char *memory);
    uint64_t (*wrong)(const struct bw_bench_group *group, uint32_t rank, uint64_t size_bytes,
                      const char *memory);
};

/* A collective of one size, linked. how: NULL as by default. */
struct bw_bench_linked {
    struct bw_collective *made;
    struct bw_linked_graph *graph;
};
int bw_bench_link(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                  uint64_t size_bytes, bool in_place, const struct bw_link_options *how,
                  struct bw_bench_linked *linked, struct bw_err *err);
void bw_bench_unlink(struct bw_bench_linked *linked);

int bw_bench_collective_run(const struct bw_bench_options *options,
                            const struct bw_bench_collective *collective, struct cJSON **document,
                            struct bw_err *err);

/* measure.c: one replay and the wait for it. */
int bw_bench_replay_once(struct bw_linked_graph *linked, struct bw_err *err);
/* Replays, queued as far as they may be, until the last is done. */
int bw_bench_replay_many(struct bw_sys *sys, struct bw_linked_graph *linked, uint32_t count,
                         double *seconds_each, struct bw_err *err);
double bw_bench_median(double *values, uint32_t count);

/* matrix.c: bandwidth of one copy of size_bytes from each rank to each, in GB/s, row-major by source. */
int bw_bench_matrix(const struct bw_bench_group *group, uint64_t size_bytes, double *gb_per_s,
                    struct bw_err *err);
void bw_bench_matrix_print(const struct bw_bench_group *group, uint64_t size_bytes, const double *gb_per_s,
                           FILE *text);
int bw_bench_matrix_plot(const struct bw_bench_group *group, uint64_t size_bytes, const double *gb_per_s,
                         const char *path, struct bw_err *err);

/* profile.c: a trace of some replays of that size, and what it says, for the document and in the text. */
int bw_bench_profile(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                     uint64_t size_bytes, const struct bw_bench_options *options, struct cJSON *document,
                     struct bw_err *err);

/* model.c: takes the topology that options->model names, or the preset that fits, where all ranks are mock
 * GPUs of one machine; else the group has none. */
int bw_bench_model_open(const struct bw_bench_options *options, struct bw_bench_group *group,
                        struct bw_err *err);
/* What it says of the schedule at that size. *node: an object for the document, NULL without a topology. */
int bw_bench_model(const struct bw_bench_group *group, const struct bw_bench_collective *collective,
                   uint64_t size_bytes, FILE *text, struct cJSON **node, struct bw_err *err);

#endif
