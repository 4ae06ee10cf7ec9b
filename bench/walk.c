#include "bench/walk.h"

#include <errno.h>

enum { FACTOR_DEFAULT = 4 };

struct bw_bench_sizes bw_bench_sizes(const struct bw_bench_options *options, uint64_t least_default,
                                     uint64_t most_default)
{
    struct bw_bench_sizes sizes = {options->bytes_min ? options->bytes_min : least_default,
                                   options->bytes_max ? options->bytes_max : most_default,
                                   options->factor > 1 ? options->factor : FACTOR_DEFAULT};
    if (!options->bytes_max && sizes.most < sizes.least)
        sizes.most = sizes.least;
    if (!options->bytes_min && sizes.least > sizes.most)
        sizes.least = sizes.most;
    return sizes;
}

bool bw_bench_size_next(const struct bw_bench_sizes *sizes, uint64_t *size_bytes)
{
    if (*size_bytes > sizes->most / sizes->factor)
        return false;
    *size_bytes = *size_bytes ? *size_bytes * sizes->factor : sizes->least;
    return *size_bytes <= sizes->most;
}

int bw_bench_devices_open(const struct bw_bench_options *options, const char *name_default,
                          struct bw_bench_devices *devices, struct bw_err *err)
{
    uint32_t count = options->device_count ? options->device_count : 1;
    *devices = (struct bw_bench_devices){0};
    if (count > BW_BENCH_DEVICES_MAX)
        return bw_fail(err, -E2BIG, "bench", "%u devices, at most %d", count, BW_BENCH_DEVICES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        int rc = bw_device_open(options->ctx, options->device_count ? options->devices[i] : name_default,
                                &devices->at[i], err);
        if (rc)
            return rc;
        devices->count++;
    }
    return 0;
}

void bw_bench_devices_close(struct bw_bench_devices *devices)
{
    for (uint32_t i = 0; i < devices->count; i++)
        bw_device_close(devices->at[i]);
    devices->count = 0;
}

int bw_bench_copy_link(struct bw_ctx *ctx, struct bw_device *device, struct bw_buffer *target,
                       struct bw_buffer *source, uint64_t size_bytes, struct bw_linked_graph **linked,
                       struct bw_err *err)
{
    struct bw_range to = {target, 0, 0, size_bytes}, from = {source, 0, 0, size_bytes};
    struct bw_graph *graph;
    int rc = bw_graph_create(ctx, &graph, err);
    if (rc)
        return rc;
    rc = bw_graph_copy(graph, device, to, from, err);
    if (!rc)
        rc = bw_graph_link(graph, NULL, linked, err);
    bw_graph_destroy(graph);
    return rc;
}
