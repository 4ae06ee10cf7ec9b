/* From a tensor graph to a plan that is ready to run: the first time (no kernel known) and again (all kernels
 * on disk). The graphs are built with the public tensor API; weights are zeros, which cost the compiler the
 * same. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/tensor.h>

#include "bench/bench.h"
#include "tools/print.h"

struct net {
    struct bw_tensor_graph *g;
    bw_tensor x;
    float *zeros; /* as many as the largest weight has */
};

enum { WEIGHTS_MAX = 512 * 512 * 9 };

static bw_tensor weight(struct net *net, uint32_t rank, const int64_t *dims)
{
    return bw_tensor_constant_borrowed(net->g, BW_F32, rank, dims, net->zeros);
}

static void conv(struct net *net, int64_t out, int64_t kernel, int64_t stride)
{
    int64_t in = bw_tensor_dims(net->g, net->x)[1], dims[] = {out, in, kernel, kernel},
            strides[] = {stride, stride}, ones[] = {1, 1}, pad[] = {kernel / 2, kernel / 2};
    struct bw_conv conv = {
        .spatial = 2, .stride = strides, .dilation = ones, .pad_low = pad, .pad_high = pad, .groups = 1};
    net->x = bw_tensor_conv(net->g, net->x, weight(net, 4, dims), weight(net, 1, &out), &conv);
}

static void dense(struct net *net, int64_t out)
{
    int64_t dims[] = {bw_tensor_dims(net->g, net->x)[1], out};
    net->x =
        bw_tensor_add(net->g, bw_tensor_matmul(net->g, net->x, weight(net, 2, dims)), weight(net, 1, &out));
}

static void relu(struct net *net)
{
    net->x = bw_tensor_relu(net->g, net->x);
}

static void build_mlp(struct net *net)
{
    int64_t dims[] = {32, 784};
    net->x = bw_tensor_input(net->g, BW_F32, 2, dims);
    dense(net, 128);
    relu(net);
    dense(net, 10);
}

static void block(struct net *net, int64_t channels, int64_t stride)
{
    bw_tensor shortcut = net->x;
    conv(net, channels, 3, stride);
    relu(net);
    conv(net, channels, 3, 1);
    bw_tensor main = net->x;
    if (stride != 1 || bw_tensor_dims(net->g, shortcut)[1] != channels) {
        net->x = shortcut;
        conv(net, channels, 1, stride);
        shortcut = net->x;
    }
    net->x = bw_tensor_relu(net->g, bw_tensor_add(net->g, main, shortcut));
}

static void build_resnet_block(struct net *net)
{
    int64_t dims[] = {1, 64, 56, 56};
    net->x = bw_tensor_input(net->g, BW_F32, 4, dims);
    block(net, 64, 1);
}

static void build_resnet18(struct net *net)
{
    int64_t dims[] = {1, 3, 224, 224}, pad[] = {0, 0, 1, 1}, kernel[] = {3, 3}, stride[] = {2, 2},
            ones[] = {1, 1};
    net->x = bw_tensor_input(net->g, BW_F32, 4, dims);
    conv(net, 64, 7, 2);
    relu(net);
    bw_tensor padded = bw_tensor_pad(net->g, net->x, pad, pad, 0);
    net->x = bw_tensor_reduce_max(net->g, bw_tensor_windows(net->g, padded, 2, kernel, stride, ones), 3u << 4,
                                  false);
    for (int stage = 0; stage < 4; stage++) {
        block(net, 64 << stage, stage ? 2 : 1);
        block(net, 64 << stage, 1);
    }
    net->x = bw_tensor_mean(net->g, net->x, 3u << 2, false);
    dense(net, 1000);
}

static const struct {
    const char *name;
    void (*build)(struct net *net);
} cases[] = {{"mlp", build_mlp}, {"resnet_block", build_resnet_block}, {"resnet18", build_resnet18}};

static int plan_seconds(struct bw_device *device, uint32_t which, double *seconds, struct bw_err *err)
{
    struct bw_sys *sys = bw_ctx_sys(bw_device_ctx(device));
    struct net net = {.zeros = calloc(WEIGHTS_MAX, sizeof *net.zeros)};
    struct bw_plan *plan = NULL;
    int rc = net.zeros ? bw_tensor_graph_create(&net.g, err) : bw_fail(err, -ENOMEM, "bench", "weights");
    if (!rc) {
        cases[which].build(&net);
        uint64_t begin_ns = sys->ops->clock_ns(sys);
        rc = bw_plan_create(net.g, device, &net.x, 1, NULL, &plan, err);
        *seconds = (double)(sys->ops->clock_ns(sys) - begin_ns) * 1e-9;
        bw_plan_destroy(plan);
        bw_tensor_graph_destroy(net.g);
    }
    free(net.zeros);
    return rc;
}

static int case_run(const struct bw_bench_options *options, struct bw_device *device, uint32_t which,
                    cJSON *rows, struct bw_err *err)
{
    double cold = 0, again = 0;
    int rc = plan_seconds(device, which, &cold, err);
    if (!rc)
        rc = plan_seconds(device, which, &again, err);
    if (rc)
        return rc;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "case", cases[which].name);
    cJSON_AddStringToObject(row, "device", bw_device_info(device)->name);
    cJSON_AddNumberToObject(row, "cold_seconds", cold);
    cJSON_AddNumberToObject(row, "again_seconds", again);
    cJSON_AddItemToArray(rows, row);
    if (options->text)
        bw_print(options->text, "%-14s %-26s %10.4f %10.4f\n", cases[which].name,
                 bw_device_info(device)->name, cold, again);
    return 0;
}

static int device_run(const struct bw_bench_options *options, struct bw_ctx *ctx, const char *name,
                      cJSON *rows, struct bw_err *err)
{
    struct bw_device *device;
    int rc = bw_device_open(ctx, name, &device, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0] && !rc; i++)
        rc = case_run(options, device, i, rows, err);
    bw_device_close(device);
    return rc;
}

static int entry_remove(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    return remove(path);
}

/* A context of its own, whose kernel cache is empty. */
static int bench_run(const struct bw_bench_options *options, cJSON *rows, struct bw_err *err)
{
    static const char *const names_default[] = {"host:0", "mockkfd+amd@gfx1100"};
    const char *const *names = options->device_count ? options->devices : names_default;
    uint32_t count = options->device_count ? options->device_count : 2;
    char directory[] = "/tmp/bellwire-bench-XXXXXX";
    struct bw_ctx_config config = *bw_ctx_config(options->ctx);
    struct bw_ctx *ctx = NULL;
    if (!mkdtemp(directory))
        return bw_fail(err, -errno, "bench", "directory %s", directory);
    config.cache_dir = directory;
    int rc = bw_ctx_create(&config, &ctx, err);
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = device_run(options, ctx, names[i], rows, err);
    if (ctx)
        bw_ctx_destroy(ctx);
    nftw(directory, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}

int bw_bench_compile(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err)
{
    cJSON *root = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(root, "results");
    if (options->text)
        bw_print(options->text, "%-14s %-26s %10s %10s\n", "case", "device", "cold s", "again s");
    int rc = bench_run(options, rows, err);
    if (rc) {
        cJSON_Delete(root);
        return rc;
    }
    *document = root;
    return 0;
}
