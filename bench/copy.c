/* Copies: caller memory to a device and back (bw_buffer_write, bw_buffer_read), within a device and between
 * devices (a linked graph of one copy), over a range of sizes, beside one thread's memcpy. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/collective.h"
#include "bench/walk.h"
#include "tools/print.h"

#define MEMORY_NAME "memory" /* the caller's own */

enum {
    REPEATS_DEFAULT = 5, /* the median of which is told */
    BYTES_MIN_DEFAULT = 64 << 10,
    BYTES_MAX_DEFAULT = 64 << 20,
};

struct bench {
    struct bw_ctx *ctx;
    struct bw_bench_devices devices;
    struct bw_bench_sizes sizes;
    uint32_t repeats;
    char *memory[2];
    cJSON *rows;
    FILE *text;
};

/* One way to copy size bytes; the clock runs over it. */
struct route {
    struct bw_buffer *target, *source; /* NULL: caller memory */
    struct bw_linked_graph *linked;    /* of two buffers */
};

static int route_run(const struct bench *bench, const struct route *route, uint64_t size_bytes,
                     struct bw_err *err)
{
    if (!route->source && !route->target) {
        memcpy(bench->memory[0], bench->memory[1], size_bytes);
        return 0;
    }
    if (!route->source)
        return bw_buffer_write(route->target, 0, bench->memory[1], size_bytes, err);
    if (!route->target)
        return bw_buffer_read(route->source, 0, bench->memory[0], size_bytes, err);
    return bw_bench_replay_once(route->linked, err);
}

/* Median of the repeats after one run to warm up, in GB/s. */
static int route_measure(const struct bench *bench, const struct route *route, uint64_t size_bytes,
                         double *gb_per_s, struct bw_err *err)
{
    struct bw_sys *sys = bw_ctx_sys(bench->ctx);
    double *rates = calloc(bench->repeats, sizeof *rates);
    if (!rates)
        return bw_fail(err, -ENOMEM, "bench", "%u rates", bench->repeats);
    int rc = route_run(bench, route, size_bytes, err);
    for (uint32_t i = 0; i < bench->repeats && !rc; i++) {
        uint64_t begin_ns = sys->ops->clock_ns(sys);
        rc = route_run(bench, route, size_bytes, err);
        uint64_t elapsed_ns = sys->ops->clock_ns(sys) - begin_ns;
        rates[i] = bw_bench_rate(size_bytes, elapsed_ns);
    }
    *gb_per_s = bw_bench_median(rates, bench->repeats);
    free(rates);
    return rc;
}

static void row_report(const struct bench *bench, const char *from, const char *to, uint64_t size_bytes,
                       double gb_per_s)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "from", from);
    cJSON_AddStringToObject(row, "to", to);
    cJSON_AddNumberToObject(row, "size_bytes", (double)size_bytes);
    cJSON_AddNumberToObject(row, "gb_per_s", gb_per_s);
    cJSON_AddItemToArray(bench->rows, row);
    if (bench->text)
        bw_print(bench->text, "%-26s %-26s %12llu %9.3f\n", from, to, (unsigned long long)size_bytes,
                 gb_per_s);
}

static const char *name_of(const struct bw_device *device)
{
    return device ? bw_device_info(device)->name : MEMORY_NAME;
}

/* From one place to another (NULL: caller memory) at one size. */
static int pair_run(const struct bench *bench, struct bw_device *from, struct bw_device *to,
                    uint64_t size_bytes, struct bw_err *err)
{
    struct route route = {0};
    double gb_per_s = 0;
    int rc = from ? bw_buffer_create(from, size_bytes, BW_BUFFER_DEVICE, &route.source, err) : 0;
    if (!rc && to)
        rc = bw_buffer_create(to, size_bytes, BW_BUFFER_DEVICE, &route.target, err);
    if (!rc && from && to)
        rc = bw_bench_copy_link(bench->ctx, from, route.target, route.source, size_bytes, &route.linked, err);
    if (!rc)
        rc = route_measure(bench, &route, size_bytes, &gb_per_s, err);
    if (!rc)
        row_report(bench, name_of(from), name_of(to), size_bytes, gb_per_s);
    bw_linked_graph_destroy(route.linked);
    bw_buffer_destroy(route.source);
    bw_buffer_destroy(route.target);
    return rc;
}

static int size_run(const struct bench *bench, uint64_t size_bytes, struct bw_err *err)
{
    const struct bw_bench_devices *devices = &bench->devices;
    int rc = 0;
    for (uint32_t i = 0; i < devices->count && !rc; i++) {
        rc = pair_run(bench, NULL, devices->at[i], size_bytes, err);
        if (!rc)
            rc = pair_run(bench, devices->at[i], NULL, size_bytes, err);
        for (uint32_t k = 0; k < devices->count && !rc; k++)
            rc = pair_run(bench, devices->at[i], devices->at[k], size_bytes, err);
    }
    return rc;
}

static int memory_make(struct bench *bench, struct bw_err *err)
{
    for (int i = 0; i < 2; i++) {
        bench->memory[i] = malloc(bench->sizes.most);
        if (!bench->memory[i])
            return bw_fail(err, -ENOMEM, "bench", "%llu bytes", (unsigned long long)bench->sizes.most);
        memset(bench->memory[i], 1 + i, bench->sizes.most);
    }
    return 0;
}

static void bench_close(struct bench *bench)
{
    bw_bench_devices_close(&bench->devices);
    free(bench->memory[0]);
    free(bench->memory[1]);
}

int bw_bench_copy(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    cJSON *root = cJSON_CreateObject();
    struct bench bench = {.ctx = options->ctx,
                          .repeats = options->repeats ? options->repeats : REPEATS_DEFAULT,
                          .sizes = bw_bench_sizes(options, BYTES_MIN_DEFAULT, BYTES_MAX_DEFAULT),
                          .rows = cJSON_AddArrayToObject(root, "results"),
                          .text = options->text};
    uint64_t size_bytes = 0;
    struct route plain = {0};
    double memcpy_gb_per_s = 0;
    int rc = memory_make(&bench, err);
    if (!rc)
        rc = bw_bench_devices_open(options, "host:0", &bench.devices, err);
    if (!rc && bench.text)
        bw_print(bench.text, "%-26s %-26s %12s %9s\n", "from", "to", "bytes", "GB/s");
    while (!rc && bw_bench_size_next(&bench.sizes, &size_bytes))
        rc = size_run(&bench, size_bytes, err);
    if (!rc)
        rc = route_measure(&bench, &plain, bench.sizes.most, &memcpy_gb_per_s, err);
    bench_close(&bench);
    if (rc) {
        cJSON_Delete(root);
        return rc;
    }
    cJSON_AddNumberToObject(root, "memcpy_gb_per_s", memcpy_gb_per_s);
    if (bench.text)
        bw_print(bench.text, "memcpy, one thread: %.3f GB/s\n", memcpy_gb_per_s);
    *document = root;
    return 0;
}
