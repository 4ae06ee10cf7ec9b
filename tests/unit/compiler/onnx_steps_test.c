/* Goal: the steps of a recurrence share their programs: how many are compiled does not depend on how many
 * steps there are, and what they compute is what the evaluator says. */
#include <bellwire/ctx.h>
#include <bellwire/device.h>
#include <bellwire/model.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

enum { BATCH = 2, INPUTS = 3, HIDDEN = 4, GATES_MAX = 4, STEPS_MAX = 80 };

struct layer {
    const char *op;
    int gates;
    bool reverse, has_lengths;
};

static struct pb layer_model(const struct layer *layer)
{
    static float weights[GATES_MAX * HIDDEN * HIDDEN];
    static const int32_t lengths[BATCH] = {5, STEPS_MAX};
    for (size_t i = 0; i < BW_COUNT_OF(weights); i++)
        weights[i] = (float)((int)(i * 7 % 11) - 5) / 8;
    int64_t rows = layer->gates * HIDDEN, w_dims[] = {1, rows, INPUTS}, r_dims[] = {1, rows, HIDDEN},
            lengths_dims[] = {BATCH};
    struct pb graph = {.size_bytes = 0}, node = {.size_bytes = 0}, direction = {.size_bytes = 0};
    struct pb w = pb_tensor("w", PB_FLOAT, 3, w_dims, weights, (size_t)rows * INPUTS * sizeof(float)),
              r = pb_tensor("r", PB_FLOAT, 3, r_dims, weights, (size_t)rows * HIDDEN * sizeof(float)),
              l = pb_tensor("l", 6 /* INT32 */, 1, lengths_dims, lengths, sizeof lengths);
    pb_message(&graph, 5, &w);
    pb_message(&graph, 5, &r);
    pb_message(&graph, 5, &l);
    pb_attribute_int(&node, "hidden_size", HIDDEN);
    pb_text(&direction, 1, "direction");
    pb_text(&direction, 4, layer->reverse ? "reverse" : "forward");
    pb_int(&direction, 20, 3);
    pb_message(&node, 5, &direction);
    pb_node(&graph, layer->op, layer->has_lengths ? "x,w,r,,l" : "x,w,r", "y", &node);
    pb_graph_input(&graph, "x", PB_FLOAT, "T,2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "T,1,2,4");
    return pb_model(&graph, 14);
}

/* Runs `steps` steps; returns how many programs that took, 0 after a failure. */
static uint64_t programs_of(const struct pb *file, struct bw_device *device, int64_t steps)
{
    static float x[STEPS_MAX * BATCH * INPUTS];
    for (size_t i = 0; i < BW_COUNT_OF(x); i++)
        x[i] = (float)((int)(i * 5 % 17) - 8) / 4;
    struct bw_value input =
                        {.kind = BW_VALUE_ARRAY,
                         .array = {.dtype = BW_F32, .rank = 3, .dims = {steps, BATCH, INPUTS}, .data = x}},
                    observed = {0}, expected = {0};
    struct bw_model *model = NULL;
    struct bw_model_stats stats = {0};
    struct bw_err err;
    bool ok = BW_OK(bw_model_load_bytes(file->data, file->size_bytes, &model, &err), &err) &&
              BW_OK(bw_model_run(model, device, &input, &observed, &err), &err);
    if (ok)
        bw_model_stats(model, &stats);
    ok = ok && BW_OK(bw_model_run(model, NULL, &input, &expected, &err), &err);
    for (int64_t i = 0; ok && i < steps * BATCH * HIDDEN; i++)
        ok = BW_NEAR(((const float *)observed.array.data)[i], ((const float *)expected.array.data)[i], 1e-5);
    bw_value_free(&observed);
    bw_value_free(&expected);
    bw_model_destroy(model);
    return ok ? stats.plan.compiled + stats.plan.cache_hits : 0;
}

static void programs_do_not_grow(const char *device_name)
{
    static const struct layer layers[] = {
        {"LSTM", 4, false, false}, {"LSTM", 4, true, true}, {"GRU", 3, false, true}, {"RNN", 1, true, false}};
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = "", .wait_ns = 20000000000ull};
    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_err err;
    if (!BW_OK(bw_ctx_create(&config, &ctx, &err), &err))
        return;
    bool ok = BW_OK(bw_device_open(ctx, device_name, &device, &err), &err);
    for (size_t i = 0; ok && i < BW_COUNT_OF(layers); i++) {
        struct pb file = layer_model(&layers[i]);
        uint64_t few = programs_of(&file, device, STEPS_MAX / 2),
                 many = programs_of(&file, device, STEPS_MAX);
        BW_TRUE(few > 0);
        BW_TRUE(many <= few + 1); /* the outputs are joined by one kernel or by two */
    }
    if (ok)
        bw_device_close(device);
    bw_ctx_destroy(ctx);
}

static void on_the_host(void)
{
    programs_do_not_grow("host:0");
}

static void on_the_mock(void)
{
    programs_do_not_grow("mockkfd+amd@gfx1100");
}

BW_TEST_MAIN("onnx_steps", {"on_the_host", on_the_host}, {"on_the_mock", on_the_mock})
