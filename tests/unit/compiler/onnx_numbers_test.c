/* Goal: numbers that no integer and no axis can hold (NaN, infinities, 2^63) mean what is documented, or are
 * refused as what they are; lists that name something twice are refused. */
#include <bellwire/ctx.h>
#include <bellwire/device.h>

#include "tests/unit/compiler/onnx_case.h"

static void conversions_saturate(void)
{
    static const struct {
        enum bw_dtype dtype;
        double value;
        int64_t expected;
    } cases[] = {
        {BW_I64, NAN, 0},
        {BW_I64, INFINITY, INT64_MAX},
        {BW_I64, -INFINITY, INT64_MIN},
        {BW_I64, 0x1p63, INT64_MAX},
        {BW_I64, -0x1p63, INT64_MIN},
        {BW_I64, 0x1.fffffffffffffp62, INT64_MAX - 1023},
        {BW_I64, -2.9, -2},
        {BW_U64, -1, 0},
        {BW_U64, 0x1p63, INT64_MIN},
        {BW_U64, 0x1p64, -1},
        {BW_I8, 127.9, 127},
        {BW_I8, -1e300, -128},
        {BW_U8, 256, 255},
        {BW_U8, -0.5, 0},
        {BW_U32, 0x1p32, 0xffffffff},
        {BW_BOOL, INFINITY, 1},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++)
        BW_EQ(bw_dtype_int_from(cases[i].dtype, cases[i].value), cases[i].expected);
}

/* A region that is no number, or has no end, has no places for its samples: what comes of it is no number. */
static void regions(void)
{
#define REGION(...)                                                 \
    {                                                               \
        {"r", 2, {1, 4}, 0, {0}, true, {__VA_ARGS__}}, INTS("i", 0) \
    }
    static const struct node_case cases[] = {
        {"RoiAlign", "x,r,i", NULL, {{0}}, REGION(0, 0, 3, 3), 1, {1}},
        {"RoiAlign", "x,r,i", NULL, {{0}}, REGION(NAN, 0, 3, 3), 1, {NAN}},
        {"RoiAlign", "x,r,i", NULL, {{0}}, REGION(0, 0, 3, NAN), 1, {NAN}},
        {"RoiAlign",
         "x,r,i",
         NULL,
         {NUMBER("sampling_ratio", 2)},
         REGION(-INFINITY, 0, INFINITY, 3),
         1,
         {NAN}},
        {"RoiAlign", "x,r,i", NULL, {{0}}, REGION(0, 0, INFINITY, 3e38f), 1, {NAN}},
        {"RoiAlign", "x,r,i", NULL, {{0}}, REGION(3e38f, 3e38f, 3.1e38f, 3.1e38f), 1, {0}},
    };
    RUN_CASES(cases, "y", 16, 1, 1, 4, 4);
}

static void sizes(void)
{
    static const struct node_case cases[] = {
        {"Resize",
         "x,,,s",
         "size 9.2233720368547758e+18 of axis 1 overflows: an axis has at most 2^40 elements",
         {{0}},
         {INTS("s", 2, INT64_MAX)}},
        {"Resize", "x,,,s", "size -1 of axis 0", {{0}}, {INTS("s", -1, 3)}},
        {"Resize", "x,,w", "of axis 0 overflows", {{0}}, {REALS("w", 3e38f, 1)}},
        {"Resize", "x,,w", "size inf of axis 1 overflows", {{0}}, {REALS("w", 1, INFINITY)}},
        {"Resize", "x,,w", "scale nan of axis 0", {{0}}, {REALS("w", NAN, 1)}},
        {"Resize", "x,,w", "scale -inf of axis 0", {{0}}, {REALS("w", -INFINITY, 1)}},
        {"Resize", "x,,w", "scale 0 of axis 1", {{0}}, {REALS("w", 1, 0)}},
        {"Pad",
         "x,s",
         "pads -9223372036854775808 and 0 take more than the 2 elements of axis 0",
         {{0}},
         {INTS("s", INT64_MIN, 0, 0, 0)}},
        {"Pad",
         "x,s",
         "pads 9223372036854775807 and 0 of axis 1 overflow: an axis has at most 2^40 elements",
         {{0}},
         {INTS("s", 0, INT64_MAX, 0, 0)}},
        {"Pad",
         "x,s",
         "pads 9223372036854775807 and -9223372036854775807 of axis 0 overflow",
         {WORD("mode", "edge")},
         {INTS("s", INT64_MAX, 0, -INT64_MAX, 0)}},
    };
    RUN_CASES(cases, "y", 13, 2, 3);
}

static void regions_of_a_resize(void)
{
#define CROPS WORD("coordinate_transformation_mode", "tf_crop_and_resize")
    static const struct node_case cases[] = {
        {"Resize", "x,r,,s", NULL, {CROPS}, {REALS("r", 0, 1), INTS("s", 2)}, 2, {1, 1}},
        {"Resize", "x,r,,s", NULL, {CROPS}, {REALS("r", -1048576, 1048576), INTS("s", 2)}, 2, {0, 0}},
        {"Resize", "x,r,,s", "roi 0 to 1e+30 of axis 0", {CROPS}, {REALS("r", 0, 1e30f), INTS("s", 2)}},
        {"Resize", "x,r,,s", "roi -inf to 1 of axis 0", {CROPS}, {REALS("r", -INFINITY, 1), INTS("s", 2)}},
        {"Resize", "x,r,,s", "roi 0 to nan of axis 0", {CROPS}, {REALS("r", 0, NAN), INTS("s", 2)}},
    };
    RUN_CASES(cases, "y", 13, 2);
}

static void mel_edges(void)
{
#define MEL(low, high)                                                       \
    {"n", 0, {0}, 1, {2}}, {"l", 0, {0}, 1, {16}}, {"r", 0, {0}, 1, {8000}}, \
        {"a", 0, {0}, 0, {0}, true, {low}},                                  \
    {                                                                        \
        "b", 0, {0}, 0, {0}, true,                                           \
        {                                                                    \
            high                                                             \
        }                                                                    \
    }
    static const struct node_case cases[] = {
        {"MelWeightMatrix", "n,l,r,a,b", NULL, {{0}}, {MEL(0, 4000)}},
        {"MelWeightMatrix", "n,l,r,a,b", "edges at -1 and 4000 Hz", {{0}}, {MEL(-1, 4000)}},
        {"MelWeightMatrix", "n,l,r,a,b", "edges at 0 and -0.5 Hz", {{0}}, {MEL(0, -0.5f)}},
        {"MelWeightMatrix", "n,l,r,a,b", "edges at nan and 4000 Hz", {{0}}, {MEL(NAN, 4000)}},
        {"MelWeightMatrix", "n,l,r,a,b", "edges at 0 and inf Hz", {{0}}, {MEL(0, INFINITY)}},
    };
    RUN_CASES(cases, "y", 17, 1);
}

/* Whatever has a list of axes. */
static void axes_twice(void)
{
    static const char twice[] = "an axis is there twice";
    static const struct node_case inputs[] = {
        {"Squeeze", "x,s", NULL, {{0}}, {INTS("s", 0, 1)}},
        {"Squeeze", "x,s", twice, {{0}}, {INTS("s", 0, 0)}},
        {"Squeeze", "x,s", twice, {{0}}, {INTS("s", 1, -2)}},
        {"ReduceSum", "x,s", NULL, {{0}}, {INTS("s", 1, 0)}},
        {"ReduceSum", "x,s", twice, {{0}}, {INTS("s", 2, 2)}},
        {"ReduceMax", "x", twice, {LIST("axes", 0, -3)}, {{0}}},
        {"MeanVarianceNormalization", "x", twice, {LIST("axes", 1, 1)}, {{0}}},
    };
    RUN_CASES(inputs, "y", 13, 1, 1, 3);
    static const struct node_case newer[] = {
        {"Resize", "x,,,s", NULL, {LIST("axes", 2)}, {INTS("s", 6)}},
        {"Resize", "x,,,s", twice, {LIST("axes", 2, 2)}, {INTS("s", 6, 3)}},
        {"ReduceProd", "x,s", twice, {{0}}, {INTS("s", -1, 2)}},
    };
    RUN_CASES(newer, "y", 18, 1, 1, 3);
}

static void equations(void)
{
    static const struct node_case cases[] = {
        {"Einsum", "x", NULL, {WORD("equation", "...i->i...")}, {{0}}},
        {"Einsum", "x", NULL, {WORD("equation", "ii...->i...")}, {{0}}},
        {"Einsum", "x", "equation '......->...'", {WORD("equation", "......->...")}, {{0}}},
        {"Einsum", "x", "equation '...i...->i'", {WORD("equation", "...i...->i")}, {{0}}},
        {"Einsum", "x", "equation '...i->i......'", {WORD("equation", "...i->i......")}, {{0}}},
        {"Einsum", "x", "equation 'ijk->iij'", {WORD("equation", "ijk->iij")}, {{0}}},
    };
    RUN_CASES(cases, "y", 13, 2, 2, 3);
}

/* Where numbers are put in order, NaN is one value: the largest. */
static void order_with_nan(void)
{
    static const struct node_case top[] = {
        {"TopK", "e,k", NULL, {{0}}, {REALS("e", NAN, 1, NAN, 2), INTS("k", 3)}, 3, {NAN, NAN, 2}},
        {"TopK",
         "e,k",
         NULL,
         {NUMBER("largest", 0)},
         {REALS("e", NAN, 1, NAN, 2), INTS("k", 3)},
         3,
         {1, 2, NAN}},
        {"TopK", "e,k", "1 of 4 elements", {{0}}, {REALS("e", NAN, 1, NAN, 2), INTS("k", 1, 2)}},
    };
    RUN_CASES(top, "y,n", 13, 1);
    static const struct node_case unique[] = {
        {"Unique", "e", NULL, {{0}}, {REALS("e", 1, NAN, 2, NAN, 0)}, 4, {0, 1, 2, NAN}},
        {"Unique", "e", "1073741824 slices to sort", {NUMBER("axis", 0)}, {{"e", 2, {1 << 30, 0}}}},
    };
    RUN_CASES(unique, "y", 13, 1);
}

static void parts_of_sequences(void)
{
    static const struct node_case cases[] = {
        {"SplitToSequence", "x,s", NULL, {{0}}, {INTS("s", 1, 1)}},
        {"SplitToSequence", "x,s", NULL, {{0}}, {{"s", 0, {0}, 1, {INT64_MAX}}}},
        {"SplitToSequence",
         "x,s",
         "part 1 of size 9223372036854775807 does not fit",
         {{0}},
         {INTS("s", 1, INT64_MAX)}},
        {"SplitToSequence", "x,s", "parts of 1 elements together, not 2", {{0}}, {INTS("s", 1)}},
        {"SplitToSequence", "x,s", "parts of size", {{0}}, {{"s", 2, {1, 2}, 2, {1, 1}}}},
    };
    RUN_CASES(cases, "y", 13, 2, 3);
}

static void signals(void)
{
    static const struct node_case frames[] = {
        {"STFT", "x,s,w", NULL, {{0}}, {{"s", 0, {0}, 1, {2}}, ONES("w", 4)}},
        {"STFT",
         "x,s,w,l",
         "a window of 3 for frames of 4",
         {{0}},
         {{"s", 0, {0}, 1, {2}}, ONES("w", 3), {"l", 0, {0}, 1, {4}}}},
        {"DFT", "x,l", "pad of axis 1 by 0, 9223372036854775799", {{0}}, {{"l", 0, {0}, 1, {INT64_MAX}}}},
        {"DFT", "x,l", "the length be one number", {{0}}, {{"l", 1, {2}, 2, {4, 4}}}},
    };
    RUN_CASES(frames, "y", 17, 1, 8, 1);
    static const struct node_case wide[] = {
        {"STFT", "x,s", "frames of 8 every 2", {{0}}, {{"s", 0, {0}, 1, {2}}}},
        {"DFT", "x", "the last axis must have size 1 or 2", {{0}}, {{0}}},
    };
    RUN_CASES(wide, "y", 17, 1, 8, 5);
}

static void products_that_overflow(void)
{
#define NGRAMS(index)                                                                               \
    {                                                                                               \
        WORD("mode", "TF"), NUMBER("min_gram_length", 1), NUMBER("max_gram_length", 65535),         \
            NUMBER("max_skip_count", 65535), LIST("ngram_counts", 0), LIST("ngram_indexes", index), \
            LIST("pool_int64s", 1)                                                                  \
    }
    static const struct node_case cases[] = {
        {"TfIdfVectorizer", "i", NULL, NGRAMS(1), {INTS("i", 1, 2, 1)}, 2, {0, 2}},
        {"TfIdfVectorizer", "i", "indexes out of range", NGRAMS(INT64_MAX), {INTS("i", 1, 2, 1)}},
        {"TfIdfVectorizer",
         "e",
         "549755813888 rows of 2 outputs",
         NGRAMS(1),
         {{"e", 2, {1ll << 39, 0}, 1, {0}}}},
        {"Multinomial",
         "e",
         "more than 268435456 random numbers",
         {NUMBER("sample_size", 1 << 24)},
         {ONES("e", 32, 1)}},
        {"Multinomial", "e", "1 samples, input of rank 2", {{0}}, {{"e", 2, {2, 0}}}},
        {"NonMaxSuppression",
         "b,s",
         NULL,
         {{0}},
         {{"b", 3, {1 << 20, 0, 4}}, {"s", 3, {1 << 20, 1 << 19, 0}}}},
    };
    RUN_CASES(cases, "y", 13, 1);
    static const struct node_case images[] = {
        {"RoiAlign", "x,r,i", "images without elements", {{0}}, REGION(0, 0, 1, 1)},
    };
    RUN_CASES(images, "y", 16, 1, 1, 0, 4);
    static const struct node_case pooled[] = {
        {"MaxUnpool", "x,i", NULL, {LIST("kernel_shape", 2, 2)}, {{"i", 4, {1, 1, 2, 2}, 4, {0, 1, 2, 3}}}},
        {"MaxUnpool",
         "x,i,s",
         "axis 2 of 3 elements in an output of -9223372036854775808",
         {LIST("kernel_shape", 2, 2)},
         {{"i", 4, {1, 1, 2, 2}, 4, {0, 1, 2, 3}}, INTS("s", 1, 1, INT64_MIN, INT64_MAX)}},
    };
    RUN_CASES(pooled, "y", 13, 1, 1, 2, 2);
}

/* One for the whole tensor, or one for each element of an axis. */
static void quantisation(void)
{
    static const struct node_case cases[] = {
        {"QuantizeLinear", "x,s", NULL, {{0}}, {ONES("s", 1)}},
        {"QuantizeLinear", "x,s", NULL, {NUMBER("axis", 2)}, {ONES("s", 3)}},
        {"QuantizeLinear", "x,s", "5 scales or zero points for axis 1 of size 1", {{0}}, {ONES("s", 5)}},
        {"QuantizeLinear", "x,s", "3 scales or zero points for axis 1", {{0}}, {ONES("s", 3)}},
    };
    RUN_CASES(cases, "y", 13, 2, 1, 3);
}

/* y = ConstantOfShape([elements]) of zeros, on a device or, for NULL, on the evaluator. */
static int fill_run(int64_t elements, struct bw_device *device, struct bw_value *y, uint64_t *plans,
                    struct bw_err *err)
{
    static const int64_t one[] = {1};
    struct pb graph = {.size_bytes = 0}, shape = pb_tensor("s", PB_INT64, 1, one, &elements, sizeof elements);
    struct bw_model *model = NULL;
    struct bw_model_stats stats = {0};
    pb_message(&graph, 5, &shape);
    pb_node(&graph, "ConstantOfShape", "s", "y", NULL);
    pb_graph_output(&graph, "y", PB_FLOAT, "N");
    struct pb file = pb_model(&graph, 13);
    int rc = bw_model_load_bytes(file.data, file.size_bytes, &model, err);
    for (int run = 0; !rc && run < 2; run++) { /* the second replays */
        bw_value_free(y);
        rc = bw_model_run(model, device, NULL, y, err);
    }
    if (model)
        bw_model_stats(model, &stats);
    *plans = stats.plans;
    bw_model_destroy(model);
    return rc;
}

/* A large constant is not computed for keeping and copied for each run: it is computed where it goes. One
 * that no memory holds is refused before anything is. */
static void fills(void)
{
    enum { LARGE = 100000 };
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = "", .wait_ns = 20000000000ull};
    struct bw_ctx *ctx;
    struct bw_device *devices[2] = {NULL, NULL};
    struct bw_err err = {0};
    if (!BW_OK(bw_ctx_create(&config, &ctx, &err), &err))
        return;
    bool opened = BW_OK(bw_device_open(ctx, "host:0", &devices[1], &err), &err);
    for (int i = 0; opened && i < 2; i++) {
        struct bw_value y = {0};
        uint64_t plans;
        bool ok = BW_OK(fill_run(LARGE, devices[i], &y, &plans, &err), &err);
        BW_EQ(plans, i);
        for (int64_t k = 0; ok && k < LARGE; k++)
            ok = BW_NEAR(((const float *)y.array.data)[k], 0, 0);
        BW_EQ(fill_run(1ll << 39, devices[i], &y, &plans, &err), -ENOMEM);
        BW_TRUE(strstr(err.what, "node 'my_ConstantOfShape' (ConstantOfShape, opset 13): its output takes "
                                 "2199023255552 bytes, this machine has ") != NULL);
        bw_value_free(&y);
    }
    if (opened)
        bw_device_close(devices[1]);
    bw_ctx_destroy(ctx);
}

/* What the device has no memory for says which node of the model it is mostly for. */
static void memory_is_a_nodes(void)
{
    enum { ROWS = 1024, COLUMNS = 8 };
    struct bw_ctx_config config = {.size = sizeof config, .cache_dir = "", .wait_ns = 20000000000ull};
    struct bw_ctx *ctx;
    struct bw_device *device = NULL;
    struct bw_err err = {0};
    struct pb graph = {.size_bytes = 0};
    pb_node(&graph, "MatMul", "x,u", "scores", NULL);
    pb_node(&graph, "Softmax", "scores", "weights", NULL); /* 4 MiB */
    pb_node(&graph, "MatMul", "weights,x", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "1024,8");
    pb_graph_input(&graph, "u", PB_FLOAT, "8,1024");
    pb_graph_output(&graph, "y", PB_FLOAT, "1024,8");
    struct pb file = pb_model(&graph, 13);
    float *ones = malloc(ROWS * COLUMNS * sizeof *ones);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        ones[i] = 1;
    const struct bw_value inputs[2] = {{.kind = BW_VALUE_ARRAY, .array = {BW_F32, 2, {ROWS, COLUMNS}, ones}},
                                       {.kind = BW_VALUE_ARRAY, .array = {BW_F32, 2, {COLUMNS, ROWS}, ones}}};
    struct bw_value y = {0};
    struct bw_model *model = NULL;
    if (!BW_OK(bw_ctx_create(&config, &ctx, &err), &err))
        return;
    if (BW_OK(bw_device_open(ctx, "mockkfd+amd@gfx1100,vram=2M", &device, &err), &err) &&
        BW_OK(bw_model_load_bytes(file.data, file.size_bytes, &model, &err), &err)) {
        BW_EQ(bw_model_run(model, device, inputs, &y, &err), -ENOMEM);
        if (!BW_TRUE(strstr(err.what, "one of 1048576 elements of f32 for node 'my_Softmax' (Softmax)") !=
                     NULL))
            printf("      said: %s\n", err.what);
    }
    bw_model_destroy(model);
    if (device)
        bw_device_close(device);
    bw_ctx_destroy(ctx);
    free(ones);
}

BW_TEST_MAIN("onnx_numbers", {"conversions_saturate", conversions_saturate}, {"regions", regions},
             {"sizes", sizes}, {"regions_of_a_resize", regions_of_a_resize}, {"mel_edges", mel_edges},
             {"axes_twice", axes_twice}, {"equations", equations}, {"fills", fills},
             {"order_with_nan", order_with_nan}, {"parts_of_sequences", parts_of_sequences},
             {"signals", signals}, {"products_that_overflow", products_that_overflow},
             {"quantisation", quantisation}, {"memory_is_a_nodes", memory_is_a_nodes})
