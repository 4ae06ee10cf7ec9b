/* What benches of copies do alike: sizes from the options, devices by name, a linked graph of one copy. */
#ifndef BW_BENCH_WALK_H
#define BW_BENCH_WALK_H

#include "bench/bench.h"

enum { BW_BENCH_DEVICES_MAX = 16 /* pairs of them are walked */ };

/* From least to most, each `factor` times the one before. */
struct bw_bench_sizes {
    uint64_t least, most, factor;
};
/* As typed; where one end is not, by default, or the other end where that lies beyond the default. */
struct bw_bench_sizes bw_bench_sizes(const struct bw_bench_options *options, uint64_t least_default,
                                     uint64_t most_default);
/* Whether *size_bytes, 0 at first, is one more size now. */
bool bw_bench_size_next(const struct bw_bench_sizes *sizes, uint64_t *size_bytes);

struct bw_bench_devices {
    struct bw_device *at[BW_BENCH_DEVICES_MAX];
    uint32_t count;
};
/* Those of the options, else the one of that name (NULL: what no name stands for). -E2BIG: too many. Whatever
 * it returns, bw_bench_devices_close ends those that are open. */
int bw_bench_devices_open(const struct bw_bench_options *options, const char *name_default,
                          struct bw_bench_devices *devices, struct bw_err *err);
void bw_bench_devices_close(struct bw_bench_devices *devices);

/* A graph of one copy on that device, from the beginning of one buffer to that of another. */
int bw_bench_copy_link(struct bw_ctx *ctx, struct bw_device *device, struct bw_buffer *target,
                       struct bw_buffer *source, uint64_t size_bytes, struct bw_linked_graph **linked,
                       struct bw_err *err);

/* Bytes per ns are GB/s. */
static inline double bw_bench_rate(uint64_t size_bytes, uint64_t elapsed_ns)
{
    return (double)size_bytes / (double)(elapsed_ns ? elapsed_ns : 1);
}

#endif
