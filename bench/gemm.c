/* Matrix products n x n x n in f32 and f16, compiled as any graph is, by the time that the kernel itself
 * takes (the device's timestamps); the best of the repeats, since whatever else runs on the machine can only
 * make it slower. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/tensor.h>

#include "bench/bench.h"
#include "compiler/plan.h"
#include "tools/print.h"

enum {
    REPEATS_DEFAULT = 5,
    SIZE_MIN_DEFAULT = 256,
    SIZE_MAX_DEFAULT = 1024,
    MOCK_SIZE_MIN_DEFAULT = 64, /* an emulator's second is a GPU's millisecond */
    MOCK_SIZE_MAX_DEFAULT = 256,
    FACTOR_DEFAULT = 2,
    EDGE_MAX = 1 << 16, /* 16 GiB of floats each: more than is worth waiting for */
    CALLS_MAX = 16,     /* of one plan: two copies in, a kernel, a copy out */
};

struct gemm {
    const struct bw_bench_options *options;
    struct bw_device *device;
    enum bw_dtype dtype;
    int64_t size;
};

static double kernel_seconds(struct bw_plan *plan)
{
    struct bw_call_profile calls[CALLS_MAX];
    uint32_t count = bw_linked_graph_profile(bw_plan_linked(plan), calls, CALLS_MAX);
    double seconds = 0;
    for (uint32_t i = 0; i < count && i < CALLS_MAX; i++)
        if (!calls[i].copy)
            seconds += (double)(calls[i].end_ns - calls[i].begin_ns) * 1e-9;
    return seconds;
}

static int plan_measure(const struct gemm *gemm, struct bw_plan *plan, double *best, struct bw_err *err)
{
    uint64_t bytes = (uint64_t)(gemm->size * gemm->size) * bw_dtype_bytes(gemm->dtype);
    uint32_t repeats = gemm->options->repeats ? gemm->options->repeats : REPEATS_DEFAULT;
    void *data = calloc(1, bytes), *out = malloc(bytes);
    int rc = data && out ? 0 : bw_fail(err, -ENOMEM, "bench", "%llu bytes", (unsigned long long)bytes);
    *best = 0;
    for (uint32_t i = 0; i <= repeats && !rc; i++) { /* the first warms up */
        const void *inputs[] = {data, data};
        rc = bw_plan_run(plan, inputs, &out, err);
        double seconds = rc ? 0 : kernel_seconds(plan);
        if (i > 0 && seconds > 0 && (*best == 0 || seconds < *best))
            *best = seconds;
    }
    free(data);
    free(out);
    return rc;
}

static int gemm_run(const struct gemm *gemm, double *gflops, struct bw_err *err)
{
    struct bw_tensor_graph *graph;
    struct bw_plan *plan = NULL;
    struct bw_plan_options options = {.size = sizeof options, .profile = true};
    int64_t dims[] = {gemm->size, gemm->size};
    double seconds = 0;
    int rc = bw_tensor_graph_create(&graph, err);
    if (rc)
        return rc;
    bw_tensor a = bw_tensor_input(graph, gemm->dtype, 2, dims),
              b = bw_tensor_input(graph, gemm->dtype, 2, dims);
    bw_tensor product = bw_tensor_matmul(graph, a, b);
    rc = bw_plan_create(graph, gemm->device, &product, 1, &options, &plan, err);
    if (!rc)
        rc = plan_measure(gemm, plan, &seconds, err);
    if (!rc && seconds > 0)
        *gflops = 2.0 * (double)gemm->size * (double)gemm->size * (double)gemm->size / seconds * 1e-9;
    bw_plan_destroy(plan);
    bw_tensor_graph_destroy(graph);
    return rc;
}

static void row_report(const struct gemm *gemm, cJSON *rows, double gflops)
{
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "device", bw_device_info(gemm->device)->name);
    cJSON_AddStringToObject(row, "dtype", bw_dtype_name(gemm->dtype));
    cJSON_AddNumberToObject(row, "m", (double)gemm->size);
    cJSON_AddNumberToObject(row, "n", (double)gemm->size);
    cJSON_AddNumberToObject(row, "k", (double)gemm->size);
    cJSON_AddNumberToObject(row, "gflops", gflops);
    cJSON_AddItemToArray(rows, row);
    if (gemm->options->text)
        bw_print(gemm->options->text, "%-26s %-5s %6lld %10.2f\n", bw_device_info(gemm->device)->name,
                 bw_dtype_name(gemm->dtype), (long long)gemm->size, gflops);
}

static int device_run(const struct bw_bench_options *options, const char *name, cJSON *rows,
                      struct bw_err *err)
{
    static const enum bw_dtype dtypes[] = {BW_F32, BW_F16};
    struct gemm gemm = {.options = options};
    int rc = bw_device_open(options->ctx, name, &gemm.device, err);
    if (rc)
        return rc;
    bool mock = bw_device_info(gemm.device)->mock;
    uint64_t first = options->bytes_min ? options->bytes_min
                     : mock             ? MOCK_SIZE_MIN_DEFAULT
                                        : SIZE_MIN_DEFAULT;
    uint64_t last = options->bytes_max ? options->bytes_max : mock ? MOCK_SIZE_MAX_DEFAULT : SIZE_MAX_DEFAULT;
    if (!options->bytes_max && last < first)
        last = first;
    if (!options->bytes_min && last < first)
        first = last;
    if (first > EDGE_MAX || last > EDGE_MAX)
        rc = bw_fail(err, -EINVAL, "bench", "-b, -e: sizes are at most %d", EDGE_MAX);
    int64_t factor = options->factor > 1 ? options->factor : FACTOR_DEFAULT;
    for (uint32_t i = 0; i < 2 && !rc; i++)
        for (gemm.size = (int64_t)first, gemm.dtype = dtypes[i]; gemm.size <= (int64_t)last && !rc;
             gemm.size *= factor) {
            double gflops = 0;
            rc = gemm_run(&gemm, &gflops, err);
            if (!rc)
                row_report(&gemm, rows, gflops);
        }
    bw_device_close(gemm.device);
    return rc;
}

int bw_bench_gemm(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    static const char *const names_default[] = {"host:0"};
    const char *const *names = options->device_count ? options->devices : names_default;
    uint32_t count = options->device_count ? options->device_count : 1;
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "results");
    int rc = 0;
    if (options->text)
        bw_print(options->text, "%-26s %-5s %6s %10s\n", "device", "dtype", "n", "GFLOPS");
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = device_run(options, names[i], rows, err);
    if (rc) {
        cJSON_Delete(root);
        return rc;
    }
    *document = root;
    return 0;
}
