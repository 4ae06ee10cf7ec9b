/* What is measured, and how. Each bench fills one JSON document (keys: the man page of `bellwire bench`) and,
 * when `text` is set, prints a table for people as it goes. */
#ifndef BW_BENCH_BENCH_H
#define BW_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <bellwire/graph.h>

struct cJSON;

struct bw_bench_options {
    struct bw_ctx *ctx;
    const char *const *devices; /* names; count 0: the bench's own default */
    uint32_t device_count;
    uint64_t bytes_min, bytes_max; /* sizes to walk (gemm: n); 0: the bench's own default */
    uint32_t factor;               /* from one size to the next, at least 2; 0: 4 */
    uint32_t nodes;                /* launch: kernels per graph; 0: 200. schedule: calls of the largest */
    uint32_t repeats;              /* 0: the bench's own default */
    /* Collectives, as nccl-tests have them. */
    uint32_t ranks;               /* the first so many devices; 0: all, or 4 host queues */
    uint64_t step_bytes;          /* from one size to the next when no factor is given; 0: 1 MiB */
    uint32_t warm_up, iterations; /* iterations: at least 1 */
    const char *type;             /* NULL: float */
    const char *reduction, *strategy, *transport; /* NULL: sum, what is fastest, the type itself */
    const char *model;   /* topology for mock GPUs, a preset or a file; NULL: what fits */
    const char *plot;    /* file for the matrix of pairs, NULL: none */
    const char *profile; /* file for a trace, NULL: none */
    FILE *text;
};

/* 0 or -errno. The caller frees *document with cJSON_Delete; with -errno it is NULL, or holds what was
 * measured before. */
int bw_bench_launch(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_emulator(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_all2all(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_allreduce(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_disk(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_copy(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);

int bw_bench_gemm(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_compile(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
int bw_bench_schedule(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);

/* Calls of malloc and its kin by this thread so far; UINT64_MAX when they cannot be counted (sanitizers have
 * their own). */
uint64_t bw_bench_allocations(void);

/* kernels.c: a kernel tiny(const uint32_t *in, uint32_t *out), one group that copies a word, for the device.
 * -ENOTSUP: none built in for its architecture. */
struct bw_bench_kernel {
    struct bw_program *program;
    struct bw_kernel *kernel;
    uint32_t group_size;
};
int bw_bench_kernel_load(struct bw_device *device, struct bw_bench_kernel *kernel, struct bw_err *err);

#endif
