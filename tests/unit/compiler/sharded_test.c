/* Sharded tensors: the same results as of whole ones, over 2, 4 and 8 devices, host queues and mock GPUs;
 * what moves and what does not; what cannot be is refused by name. */
#include <bellwire/sharded.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/seed.h"

enum { DEVICES_MAX = 8, ELEMENTS_MAX = 4096, INPUTS_MAX = 4, OUTPUTS_MAX = 4 };

struct box {
    struct bw_ctx *ctx;
    uint32_t count;
    struct bw_device *devices[DEVICES_MAX];
    struct bw_sharded_graph *g;
    struct bw_rng rng;
    struct bw_err err;
    float in[INPUTS_MAX][ELEMENTS_MAX], out[OUTPUTS_MAX][ELEMENTS_MAX];
};

static bool box_open(struct box *box, const char *names)
{
    struct bw_ctx_config config = {
        .size = sizeof config, .cache_dir = "", .host_threads = 1, .mock_threads = 1};
    memset(box, 0, sizeof *box);
    box->rng = bw_test_rng("sharded");
    bool ok = BW_OK(bw_ctx_create(&config, &box->ctx, &box->err), &box->err) &&
              BW_OK(bw_device_open_list(box->ctx, names, box->devices, DEVICES_MAX, &box->count, &box->err),
                    &box->err) &&
              BW_OK(bw_sharded_graph_create(box->devices, box->count, &box->g, &box->err), &box->err);
    for (int i = 0; i < INPUTS_MAX; i++)
        for (int k = 0; k < ELEMENTS_MAX; k++)
            box->in[i][k] = (float)((int)(bw_rng_next(&box->rng) % 17) - 8) / 4;
    return ok;
}

static void graph_renew(struct box *box)
{
    bw_sharded_graph_destroy(box->g);
    box->g = NULL;
    BW_OK(bw_sharded_graph_create(box->devices, box->count, &box->g, &box->err), &box->err);
}

static void box_close(struct box *box)
{
    bw_sharded_graph_destroy(box->g);
    for (uint32_t i = 0; i < box->count; i++)
        bw_device_close(box->devices[i]);
    bw_ctx_destroy(box->ctx);
}

/* Twice, since a plan is for many runs. */
static bool run(struct box *box, const bw_sharded *outputs, uint32_t count, struct bw_sharded_stats *stats)
{
    const void *inputs[INPUTS_MAX];
    void *results[OUTPUTS_MAX];
    struct bw_sharded_plan *plan = NULL;
    for (int i = 0; i < INPUTS_MAX; i++)
        inputs[i] = box->in[i];
    for (int i = 0; i < OUTPUTS_MAX; i++)
        results[i] = box->out[i];
    if (!BW_OK(bw_sharded_plan_create(box->g, outputs, count, &plan, &box->err), &box->err))
        return false;
    bw_sharded_plan_stats(plan, stats);
    bool ok = true;
    for (int i = 0; i < 2 && ok; i++) {
        memset(box->out, 0xff, sizeof box->out);
        ok = BW_OK(bw_sharded_plan_run(plan, inputs, results, &box->err), &box->err);
    }
    bw_sharded_plan_destroy(plan);
    return ok;
}

static bw_sharded input(struct box *box, int64_t rows, int64_t columns, int32_t axis)
{
    return bw_sharded_input(box->g, BW_F32, 2, (const int64_t[]){rows, columns}, axis);
}

/* Multiples of 1/16 that f32 holds: sums are exact in any order. */
static double product(const float *a, const float *b, int row, int column, int summed, int columns)
{
    double sum = 0;
    for (int k = 0; k < summed; k++)
        sum += (double)a[row * summed + k] * (double)b[k * columns + column];
    return sum;
}

enum { ROWS = 19, SUMMED = 21, COLUMNS = 10 }; /* no device count divides the first two */

static void product_check(const struct box *box, const float *out, bool bias, bool relu)
{
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            double wanted = product(box->in[0], box->in[1], row, column, SUMMED, COLUMNS);
            wanted += bias ? (double)box->in[2][column] : 0;
            wanted = relu && wanted < 0 ? 0 : wanted;
            BW_NEAR((double)out[row * COLUMNS + column], wanted, 1e-4);
        }
}

/* Rows are dealt out, weights are everywhere: nothing travels. */
static void data_parallel(struct box *box)
{
    struct bw_sharded_stats stats;
    graph_renew(box);
    bw_sharded x = input(box, ROWS, SUMMED, 0), w = input(box, SUMMED, COLUMNS, BW_SHARDED_REPLICATED);
    bw_sharded bias =
        bw_sharded_constant(box->g, BW_F32, 1, (const int64_t[]){COLUMNS}, BW_SHARDED_REPLICATED, box->in[2]);
    bw_sharded y = bw_sharded_relu(box->g, bw_sharded_add(box->g, bw_sharded_matmul(box->g, x, w), bias));
    BW_EQ(bw_sharded_axis(box->g, y), box->count > 1 ? 0 : BW_SHARDED_REPLICATED);
    BW_EQ(bw_sharded_dims(box->g, y)[0], ROWS);
    if (run(box, &y, 1, &stats)) {
        BW_EQ(stats.collectives, 0);
        product_check(box, box->out[0], true, true);
    }
}

/* What is summed is dealt out: one all-reduce, then work on every rank with what an earlier stage had. */
static void tensor_parallel(struct box *box)
{
    struct bw_sharded_stats stats;
    graph_renew(box);
    bw_sharded x = input(box, ROWS, SUMMED, 1), w = input(box, SUMMED, COLUMNS, 0);
    bw_sharded bias = bw_sharded_input(box->g, BW_F32, 1, (const int64_t[]){COLUMNS}, BW_SHARDED_REPLICATED);
    bw_sharded y = bw_sharded_matmul(box->g, x, w), twice = bw_sharded_add(box->g, x, x);
    bw_sharded z = bw_sharded_add(box->g, y, bias);
    BW_EQ(bw_sharded_axis(box->g, z), BW_SHARDED_REPLICATED);
    bw_sharded total =
        bw_sharded_add(box->g, bw_sharded_sum(box->g, twice, 3, false),
                       bw_sharded_mean(box->g, bw_sharded_reduce_max(box->g, z, 1, false), 1, false));
    /* made before the all-reduce, used after it */
    bw_sharded mixed = bw_sharded_mul(
        box->g, twice, bw_sharded_reduce_max(box->g, bw_sharded_sum(box->g, x, 3, true), 3, true));
    if (!run(box, (bw_sharded[]){y, z, total, mixed}, 4, &stats))
        return;
    product_check(box, box->out[0], false, false);
    product_check(box, box->out[1], true, false);
    double sum = 0, mean = 0;
    for (int i = 0; i < ROWS * SUMMED; i++)
        sum += (double)box->in[0][i];
    for (int column = 0; column < COLUMNS; column++) {
        float most = -INFINITY;
        for (int row = 0; row < ROWS; row++)
            most = fmaxf(most, box->out[1][row * COLUMNS + column]);
        mean += (double)most / COLUMNS;
    }
    BW_NEAR((double)box->out[2][0], 2 * sum + mean, 1e-3);
    for (int i = 0; i < ROWS * SUMMED; i++)
        BW_NEAR((double)box->out[3][i], 2 * (double)box->in[0][i] * sum, 1e-3);
    BW_EQ(stats.collectives, box->count > 1 ? 3 : 0); /* the two sums of x are different ones */
}

/* From axis to axis and back, of lengths that devices do not divide. */
static void reshard(struct box *box)
{
    struct bw_sharded_stats stats;
    graph_renew(box);
    bw_sharded x = input(box, ROWS, SUMMED, 0);
    bw_sharded turned = bw_sharded_reshard(box->g, x, 1), whole = bw_sharded_reshard(box->g, turned, -1);
    bw_sharded cut = bw_sharded_reshard(box->g, whole, 0), flipped = bw_sharded_flip(box->g, cut, 2);
    bw_sharded moved = bw_sharded_permute(box->g, turned, (const uint32_t[]){1, 0});
    BW_EQ(bw_sharded_axis(box->g, moved), box->count > 1 ? 0 : BW_SHARDED_REPLICATED);
    bw_sharded shaped = bw_sharded_reshape(box->g, flipped, 3, (const int64_t[]){ROWS, 3, SUMMED / 3});
    if (!run(box, (bw_sharded[]){turned, whole, moved, shaped}, 4, &stats))
        return;
    BW_EQ(stats.collectives,
          box->count > 1 ? 2 : 0); /* an all-to-all and an all-gather: a slice moves nothing */
    BW_BYTES(box->out[0], box->in[0], ROWS * SUMMED * sizeof(float));
    BW_BYTES(box->out[1], box->in[0], ROWS * SUMMED * sizeof(float));
    for (int i = 0; i < ROWS * SUMMED; i++) {
        int row = i / SUMMED, column = i % SUMMED;
        BW_EQ(box->out[2][column * ROWS + row] == box->in[0][i], 1);
        BW_EQ(box->out[3][row * SUMMED + SUMMED - 1 - column] == box->in[0][i], 1);
    }
}

/* Columns of the weights are dealt out, then rows of the next ones: two layers, one all-reduce. */
static void two_layers(struct box *box)
{
    struct bw_sharded_stats stats;
    graph_renew(box);
    bw_sharded x = input(box, ROWS, SUMMED, -1), w = input(box, SUMMED, COLUMNS, 1);
    bw_sharded v = input(box, COLUMNS, 1, 0);
    bw_sharded hidden = bw_sharded_relu(box->g, bw_sharded_matmul(box->g, x, w));
    bw_sharded y = bw_sharded_matmul(box->g, hidden, v);
    if (!run(box, (bw_sharded[]){hidden, y}, 2, &stats))
        return;
    BW_EQ(stats.collectives, box->count > 1);
    product_check(box, box->out[0], false, true);
    for (int row = 0; row < ROWS; row++)
        BW_NEAR((double)box->out[1][row], product(box->out[0], box->in[2], row, 0, COLUMNS, 1), 1e-3);
}

enum { BATCH = 11, INNER = 4 };

/* Leading axes dealt out: of one operand and not of the other, which has it or has it not. Integers too. */
static void batched(struct box *box)
{
    struct bw_sharded_stats stats;
    const int64_t a_dims[] = {BATCH, 3, INNER}, b_dims[] = {BATCH, INNER, 2};
    graph_renew(box);
    bw_sharded a = bw_sharded_input(box->g, BW_F32, 3, a_dims, 0);
    bw_sharded b = bw_sharded_input(box->g, BW_F32, 3, b_dims, BW_SHARDED_REPLICATED);
    bw_sharded one = input(box, INNER, 2, BW_SHARDED_REPLICATED);
    bw_sharded y = bw_sharded_matmul(box->g, a, b), z = bw_sharded_matmul(box->g, a, one);
    bw_sharded larger = bw_sharded_where(box->g, bw_sharded_greater(box->g, y, z), y, z);
    bw_sharded whole = bw_sharded_sum(box->g, bw_sharded_cast(box->g, BW_I32, a), 7, false);
    if (!run(box, (bw_sharded[]){y, z, larger, whole}, 4, &stats))
        return;
    int32_t sum = 0, observed;
    for (int i = 0; i < BATCH * 3 * INNER; i++)
        sum += (int32_t)box->in[0][i];
    memcpy(&observed, box->out[3], sizeof observed);
    BW_EQ(observed, sum);
    for (int i = 0; i < BATCH * 6; i++) {
        const float *left = box->in[0] + i / 6 * 3 * INNER;
        double by_own = product(left, box->in[1] + i / 6 * 2 * INNER, i % 6 / 2, i % 2, INNER, 2);
        double by_one = product(left, box->in[2], i % 6 / 2, i % 2, INNER, 2);
        BW_NEAR((double)box->out[0][i], by_own, 1e-4);
        BW_NEAR((double)box->out[1][i], by_one, 1e-4);
        BW_NEAR((double)box->out[2][i], fmax(by_own, by_one), 1e-4);
    }
}

/* An output that is an input as it is, and one that is a constant. */
static void as_given(struct box *box)
{
    struct bw_sharded_stats stats;
    const int64_t dims[] = {ROWS, SUMMED};
    graph_renew(box);
    bw_sharded x = input(box, ROWS, SUMMED, 1);
    bw_sharded y = bw_sharded_constant(box->g, BW_F32, 2, dims, 1, box->in[1]);
    if (!run(box, (bw_sharded[]){x, y}, 2, &stats))
        return;
    BW_BYTES(box->out[0], box->in[0], ROWS * SUMMED * sizeof(float));
    BW_BYTES(box->out[1], box->in[1], ROWS * SUMMED * sizeof(float));
}

static void everything(const char *names)
{
    static struct box box;
    if (box_open(&box, names)) {
        data_parallel(&box);
        tensor_parallel(&box);
        reshard(&box);
        two_layers(&box);
        batched(&box);
        as_given(&box);
    }
    box_close(&box);
}

static void on_hosts(void)
{
    everything("host:0");
    everything("host:0,host:1");
    everything("host:0,host:1,host:2,host:3");
    everything("host:0,host:1,host:2,host:3,host:4,host:5,host:6,host:7");
}

static void on_gpus(void)
{
    everything("mockkfd+amd@gfx1100*2,cu=2,vram=64M");
    everything("mockkfd+amd@gfx1100*4,cu=2,vram=64M");
    everything("mockkfd+amd@gfx1100*8,cu=2,vram=64M");
}

/* ---- what is refused ---- */

static void refused(struct box *box, bw_sharded x, int code, const char *what)
{
    char text[512];
    struct bw_sharded_plan *plan = NULL;
    struct bw_err err = {0};
    BW_EQ(x.id, 0);
    BW_EQ(bw_sharded_plan_create(box->g, &x, 1, &plan, &err), code);
    bw_err_format(&err, text, sizeof text);
    if (!BW_TRUE(strstr(text, what) != NULL))
        BW_STR(text, what);
    graph_renew(box);
}

static void bad_tensors(void)
{
    static struct box box;
    const int64_t dims[] = {8, 6};
    if (!box_open(&box, "host:0,host:1,host:2,host:3")) {
        box_close(&box);
        return;
    }
    refused(&box, input(&box, 8, 6, 2), -EINVAL, "input: axis 2 of a tensor of 2 axes");
    refused(&box, input(&box, 3, 6, 0), -EINVAL, "axis 0 has 3 elements, fewer than the 4 devices");
    refused(&box, bw_sharded_reshard(box.g, input(&box, 3, 6, -1), 0), -EINVAL, "fewer than the 4 devices");
    refused(&box, input(&box, 0, 6, -1), -EINVAL, "axis 0 has 0 elements");
    refused(&box, bw_sharded_add(box.g, input(&box, 8, 6, 0), input(&box, 8, 6, 1)), -EINVAL,
            "add of tensors sharded along axis 0 and axis 1");
    refused(&box, bw_sharded_matmul(box.g, input(&box, 8, 6, 0), input(&box, 6, 6, 1)), -EINVAL,
            "matmul of tensors sharded along axis 0 and axis 1");
    refused(&box, bw_sharded_matmul(box.g, input(&box, 8, 6, 1), input(&box, 6, 6, 1)), -EINVAL,
            "along what is summed");
    refused(&box, bw_sharded_matmul(box.g, input(&box, 8, 6, 1), input(&box, 8, 6, 0)), -EINVAL,
            "do not fit");
    refused(&box, bw_sharded_reshape(box.g, input(&box, 8, 6, 0), 1, (const int64_t[]){48}), -ENOTSUP,
            "reshape of axis 0, which is sharded");
    refused(&box, bw_sharded_flip(box.g, input(&box, 8, 6, 0), 1), -ENOTSUP,
            "flip of axis 0, which is sharded");
    refused(&box,
            bw_sharded_pad(box.g, input(&box, 8, 6, 1), (const int64_t[]){0, 1}, (const int64_t[]){0, 0}, 0),
            -ENOTSUP, "pad of axis 1, which is sharded");
    refused(
        &box,
        bw_sharded_slice(box.g, input(&box, 8, 6, 1), (const int64_t[]){0, 1}, dims, (const int64_t[]){1, 1}),
        -ENOTSUP, "slice of axis 1, which is sharded");
    refused(&box, bw_sharded_sum(box.g, input(&box, 8, 6, 1), 4, false), -EINVAL, "sum over axes 0x4");
    bw_sharded mixed =
        bw_sharded_add(box.g, input(&box, 8, 6, 0), bw_sharded_input(box.g, BW_I32, 2, dims, 0));
    refused(&box, mixed, -EINVAL, "rank 0");
    box_close(&box);
}

static void bad_tuples(void)
{
    static struct box box, other;
    struct bw_sharded_graph *g = NULL;
    struct bw_device *devices[3];
    uint32_t count = 0;
    char text[512];
    if (box_open(&box, "host:0,host:1") && box_open(&other, "host:2,host:3")) {
        bw_sharded ours = input(&box, 8, 6, 0), theirs = input(&other, 8, 6, 1);
        refused(&box, bw_sharded_add(box.g, ours, theirs), -EINVAL, "a tensor of another graph");
        BW_EQ(bw_sharded_graph_create(box.devices, 0, &g, &box.err), -EINVAL);
        devices[0] = devices[1] = box.devices[0];
        BW_EQ(bw_sharded_graph_create(devices, 2, &g, &box.err), -EINVAL);
        if (BW_OK(bw_device_open_list(box.ctx, "mockkfd+amd@gfx1100,cu=2,vram=64M", &devices[1], 1, &count,
                                      &box.err),
                  &box.err)) {
            BW_EQ(bw_sharded_graph_create(devices, 2, &g, &box.err), -EINVAL);
            bw_err_format(&box.err, text, sizeof text);
            BW_TRUE(strstr(text, "of another family") != NULL);
            bw_device_close(devices[1]);
        }
        box_close(&other);
    }
    box_close(&box);
}

BW_TEST_MAIN("sharded", {"on hosts", on_hosts}, {"on GPUs", on_gpus}, {"bad tensors", bad_tensors},
             {"bad tuples", bad_tuples})
