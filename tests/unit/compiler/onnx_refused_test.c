/* Goal: what an op cannot do with the shapes, numbers and words that a model gives it is refused by name, not
 * computed as something else: windows, groups, lists of axes and sizes, indexes. */
#include "tests/unit/compiler/onnx_case.h"

static void convolutions(void)
{
    static const struct node_case cases[] = {
        {"Conv", "x,w", NULL, WEIGHT(4, 4, 3, 3)},
        {"Conv",
         "x,w",
         NULL,
         {LIST("kernel_shape", 3, 3), LIST("pads", 1, 0, 0, 1)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", NULL, {NUMBER("group", 2)}, {ONES("w", 6, 2, 3, 3)}},
        {"Conv", "x,w", NULL, WEIGHT(4, 4, 8, 8)}, /* just fits */
        {"Conv",
         "x,w",
         "kernel_shape has 5 for axis 0, but the weights have 3",
         {LIST("kernel_shape", 5, 5)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv",
         "x,w",
         "kernel_shape has 1 numbers, not 2",
         {LIST("kernel_shape", 3)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv",
         "x,w",
         "group 3 does not divide 4 input channels",
         {NUMBER("group", 3)},
         {ONES("w", 6, 1, 3, 3)}},
        {"Conv",
         "x,w",
         "group 2 does not divide 3 output channels",
         {NUMBER("group", 2)},
         {ONES("w", 3, 2, 3, 3)}},
        {"Conv", "x,w", "group 0 does not divide", {NUMBER("group", 0)}, {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", "group -2 does not divide", {NUMBER("group", -2)}, {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", "weights for 3 input channels of 4 in 1 groups", WEIGHT(4, 3, 3, 3)},
        {"Conv", "x,w", "a kernel of 9 does not fit into 8 padded elements", WEIGHT(4, 4, 9, 1)},
        {"Conv", "x,w", "a kernel of 12 does not fit into 8", WEIGHT(4, 4, 1, 12)},
        {"Conv",
         "x,w",
         "a kernel of 19 does not fit into 8",
         {LIST("dilations", 9, 9)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv",
         "x,w",
         "pads has -1, which is not within 0 and",
         {LIST("pads", 0, 0, 0, -1)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv",
         "x,w",
         "strides has 0, which is not within 1 and",
         {LIST("strides", 1, 0)},
         {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", "dilations has 0, which", {LIST("dilations", 0, 1)}, {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", "pads has 3 numbers, not 4", {LIST("pads", 1, 1, 1)}, {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w", "'auto_pad' is 'SOME', none of", {WORD("auto_pad", "SOME")}, {ONES("w", 4, 4, 3, 3)}},
        {"Conv", "x,w,b", "the bias is no list of 4 numbers", {{0}}, {ONES("w", 4, 4, 3, 3), ONES("b", 1)}},
        {"Conv",
         "x,w,b",
         "the bias is no list of 4 numbers",
         {{0}},
         {ONES("w", 4, 4, 3, 3), ONES("b", 4, 1, 1)}},
        {"Conv", "x,w", "different ranks", {{0}}, {ONES("w", 4, 4, 3)}},
    };
    RUN_CASES(cases, "y", 13, 1, 4, 8, 8);
}

static void transposed_convolutions(void)
{
    static const struct node_case cases[] = {
        {"ConvTranspose", "x,w", NULL, WEIGHT(4, 4, 3, 3)},
        {"ConvTranspose", "x,w", NULL, {LIST("output_shape", 9, 8)}, {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         NULL,
         {LIST("strides", 2, 2), LIST("output_padding", 1, 1)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "kernel_shape has 5 for axis 0",
         {LIST("kernel_shape", 5, 5)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose", "x,w", "group 3 does not divide", {NUMBER("group", 3)}, {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose", "x,w", "weights for 3 input channels of 4", WEIGHT(3, 4, 3, 3)},
        {"ConvTranspose",
         "x,w",
         "output axis 0 would have -8 elements",
         {LIST("pads", 9, 9, 9, 9)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output axis 0 would have 0 elements",
         {LIST("pads", 5, 5, 5, 5)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_padding 2 of axis 0 is not below",
         {LIST("output_padding", 2, 2)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_padding 9223372036854775807 of axis 1",
         {LIST("output_padding", 0, INT64_MAX)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_padding -1 of axis 0",
         {LIST("output_padding", -1, -1)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_shape has 0, which",
         {LIST("output_shape", 0, 0)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_shape has 100 for axis 0, which this kernel does not reach",
         {LIST("output_shape", 100, 100)},
         {ONES("w", 4, 4, 3, 3)}},
        {"ConvTranspose",
         "x,w",
         "output_shape has 4 numbers, not 2",
         {LIST("output_shape", 1, 4, 10, 10)},
         {ONES("w", 4, 4, 3, 3)}},
    };
    RUN_CASES(cases, "y", 13, 1, 4, 8, 8);
}

static void pools(void)
{
    static const struct node_case cases[] = {
        {"MaxPool", "x", NULL, {LIST("kernel_shape", 8, 8)}, {{0}}},
        {"MaxPool", "x", NULL, {LIST("kernel_shape", 3, 3), LIST("pads", 2, 2, 2, 2)}, {{0}}},
        {"MaxPool", "x", "attribute 'kernel_shape' is missing", {{0}}, {{0}}},
        {"MaxPool", "x", "kernel_shape has 0, which", {LIST("kernel_shape", 0, 0)}, {{0}}},
        {"MaxPool",
         "x",
         "a window of 9 does not fit into 8 padded elements",
         {LIST("kernel_shape", 9, 9)},
         {{0}}},
        {"AveragePool", "x", "a window of 9 does not fit into 8", {LIST("kernel_shape", 1, 9)}, {{0}}},
        {"LpPool", "x", "a window of 20 does not fit into 8", {LIST("kernel_shape", 20, 1)}, {{0}}},
        {"MaxPool", "x", "strides has 0, which", {LIST("kernel_shape", 2, 2), LIST("strides", 0, 0)}, {{0}}},
        {"AveragePool",
         "x",
         "pads has -1, which",
         {LIST("kernel_shape", 2, 2), LIST("pads", -1, -1, -1, -1)},
         {{0}}},
        {"MaxPool",
         "x",
         "pads 2 and 0 of axis 0 are not below the window's 2",
         {LIST("kernel_shape", 2, 2), LIST("pads", 2, 0, 0, 0)},
         {{0}}},
        {"AveragePool",
         "x",
         "pads 0 and 2 of axis 1 are not below",
         {LIST("kernel_shape", 2, 2), LIST("pads", 0, 0, 0, 2)},
         {{0}}},
        {"MaxPool",
         "x",
         "storage_order 7 is neither",
         {LIST("kernel_shape", 2, 2), NUMBER("storage_order", 7)},
         {{0}}},
    };
    RUN_CASES(cases, "y", 13, 1, 4, 8, 8);
}

static void shapes(void)
{
    static const struct node_case cases[] = {
        {"Reshape", "x,s", NULL, {{0}}, {INTS("s", 3, -1)}},
        {"Reshape", "x,s", "input 1 must be a list, but has rank 2", {{0}}, {{"s", 2, {1, 2}, 2, {2, 3}}}},
        {"Reshape", "x,s", "RESHAPE of 6 elements to 8", {{0}}, {INTS("s", 4, 2)}},
        {"Reshape", "x,s", "reshape to dimension -2", {{0}}, {INTS("s", -2, 3)}},
        {"Reshape", "x,s", "reshape to dimension -1", {{0}}, {INTS("s", -1, -1)}},
        {"Reshape", "x,s", "reshape to dimension", {{0}}, {INTS("s", 1ll << 40, 1ll << 40)}},
        {"Expand", "x,s", "expand: shapes do not fit", {{0}}, {INTS("s", 4, 3)}},
        {"Expand", "x,s", "expand: shapes do not fit", {{0}}, {INTS("s", -1, 3)}},
        {"Squeeze", "x,s", "axis 0 has size 2, not 1", {{0}}, {INTS("s", 0)}},
        {"Squeeze", "x,s", "axis 5 of a tensor of rank 2", {{0}}, {INTS("s", 5)}},
        {"Unsqueeze", "x,s", NULL, {{0}}, {INTS("s", 0, -1)}},
        {"Unsqueeze", "x,s", "an axis is there twice", {{0}}, {INTS("s", 0, 0)}},
        {"Unsqueeze", "x,s", "an axis is there twice", {{0}}, {INTS("s", 0, -4)}},
        {"Concat", "x,w", "dtypes or shapes do not fit", {NUMBER("axis", 0)}, {ONES("w", 1, 4)}},
        {"Concat", "x,w", "dtypes or shapes do not fit", {NUMBER("axis", 0)}, {ONES("w", 1, 3, 1)}},
        {"Slice", "x,a,b", NULL, {{0}}, {INTS("a", 0), INTS("b", 100)}},
        {"Slice", "x,a,b", "do not fit together", {{0}}, {INTS("a", 0, 0), INTS("b", 1)}},
        {"Slice", "x,a,b,a", NULL, {{0}}, {INTS("a", 0), INTS("b", 1)}},
        {"Slice", "x,a,a,a", "an axis is there twice", {{0}}, {INTS("a", 0, 0)}},
        {"Slice", "x,a,b,a,a", "slice of axis 0 with step 0", {{0}}, {INTS("a", 0), INTS("b", 1)}},
        {"Slice", "x,a,b", "input 1 must be a list", {{0}}, {{"a", 0, {0}, 1, {0}}, INTS("b", 1)}},
        {"Tile", "x,s", "axis 0 repeated -1 times", {{0}}, {INTS("s", -1, 1)}},
        {"Tile", "x,s", "1 repeats for rank 2", {{0}}, {INTS("s", 2)}},
        {"Pad", "x,s", "'mode' is 'round', none of", {WORD("mode", "round")}, {INTS("s", 1, 0, 1, 0)}},
        {"Pad", "x,s", "2 pads for 2 axes", {{0}}, {INTS("s", 1, 1)}},
        {"Transpose",
         "x",
         "PERMUTE axis 0 of rank 2 is out of range or twice there",
         {LIST("perm", 0, 0)},
         {{0}}},
        {"Gemm",
         "x,w,c",
         "input 2 does not broadcast to the product's [2,2]",
         {{0}},
         {ONES("w", 3, 2), ONES("c", 5, 2, 2)}},
        {"Gemm", "x,w,c", NULL, {{0}}, {ONES("w", 3, 2), ONES("c", 2)}},
        {"Resize",
         "x,,w,s",
         "scales or sizes must be given, and not both",
         {{0}},
         {ONES("w", 2), INTS("s", 2, 3)}},
        {"Resize", "x", "scales or sizes must be given", {{0}}, {{0}}},
        {"Resize", "x,,w", "'mode' is 'sharp', none of", {WORD("mode", "sharp")}, {ONES("w", 2)}},
    };
    RUN_CASES(cases, "y", 13, 2, 3);
}

static void parts(void)
{
    static const struct node_case cases[] = {
        {"Split", "x,s", NULL, {NUMBER("axis", 1)}, {INTS("s", 1, 2)}},
        {"Split", "x,s", "sizes of 1 parts for 2 outputs", {NUMBER("axis", 1)}, {INTS("s", 3)}},
        {"Split", "x,s", "parts of 2 elements together, not 3", {NUMBER("axis", 1)}, {INTS("s", 1, 1)}},
        {"Split", "x,s", "part 0 of size 4 does not fit into 3", {NUMBER("axis", 1)}, {INTS("s", 4, -1)}},
        {"Split", "x", "3 elements do not make 2 equal parts", {NUMBER("axis", 1)}, {{0}}},
        {"Split", "x", NULL, {NUMBER("axis", 0)}, {{0}}},
    };
    RUN_CASES(cases, "y,z", 13, 2, 3);
    static const struct node_case newer[] = {
        {"Split", "x", NULL, {NUMBER("axis", 1), NUMBER("num_outputs", 2)}, {{0}}},
        {"Split", "x", "3 parts for 2 outputs", {NUMBER("axis", 1), NUMBER("num_outputs", 3)}, {{0}}},
    };
    RUN_CASES(newer, "y,z", 18, 2, 3);
}

static void scales(void)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0, 2};
    for (size_t i = 0; i < BW_COUNT_OF(bad); i++) {
        struct pb graph = {.size_bytes = 0}, scale = pb_tensor("s", PB_FLOAT, 0, NULL, &bad[i], 4);
        pb_message(&graph, 5, &scale);
        pb_node(&graph, "QuantizeLinear", "x,s", "y", NULL);
        pb_graph_input(&graph, "x", PB_FLOAT, "1");
        pb_graph_output(&graph, "y", PB_UINT8, "1");
        struct pb file = pb_model(&graph, 13);
        struct bw_model *model = NULL;
        struct bw_err err = {0};
        float x = 1;
        struct bw_value output = {0},
                        input = {.kind = BW_VALUE_ARRAY,
                                 .array = {.dtype = BW_F32, .rank = 1, .dims = {1}, .data = &x}};
        if (!BW_OK(bw_model_load_bytes(file.data, file.size_bytes, &model, &err), &err))
            continue;
        BW_EQ(bw_model_run(model, NULL, &input, &output, &err), i < 3 ? -EINVAL : 0);
        if (i < 3)
            BW_TRUE(strstr(err.what, "(QuantizeLinear, opset 13): scale ") != NULL);
        bw_value_free(&output);
        bw_model_destroy(model);
    }
}

static void constant_indexes(void)
{
    static const struct node_case cases[] = {
        {"Gather", "x,i", NULL, {{0}}, {INTS("i", 1, -2)}},
        {"Gather", "x,i", "input 1 has the index 2, which is not within -2 and 1", {{0}}, {INTS("i", 0, 2)}},
        {"Gather", "x,i", "the index -3, which is not within -2 and 1", {{0}}, {INTS("i", -3)}},
        {"Gather", "x,i", "the index 3, which is not within -3 and 2", {NUMBER("axis", 1)}, {INTS("i", 3)}},
        {"GatherElements", "x,i", NULL, {{0}}, {{"i", 2, {1, 3}, 3, {1, 0, -1}}}},
        {"GatherElements", "x,i", "the index 9", {{0}}, {{"i", 2, {1, 3}, 3, {9, 0, 0}}}},
        {"GatherElements",
         "x,i",
         "indices are larger than data along axis 1",
         {{0}},
         {{"i", 2, {1, 4}, 4, {0, 0, 0, 0}}}},
        {"GatherND", "x,i", NULL, {{0}}, {{"i", 2, {1, 2}, 2, {1, 2}}}},
        {"GatherND",
         "x,i",
         "the index 2, which is not within -2 and 1",
         {{0}},
         {{"i", 2, {1, 2}, 2, {2, 1}}}},
        {"GatherND",
         "x,i",
         "the index 7, which is not within -3 and 2",
         {{0}},
         {{"i", 2, {1, 2}, 2, {1, 7}}}},
        {"ScatterElements", "x,i,u", NULL, {{0}}, {{"i", 2, {1, 3}, 3, {1, 0, -1}}, ONES("u", 1, 3)}},
        {"ScatterElements", "x,i,u", "the index 9", {{0}}, {{"i", 2, {1, 3}, 3, {9, 0, 0}}, ONES("u", 1, 3)}},
        {"ScatterElements",
         "x,i,u",
         "indices and updates have different shapes",
         {{0}},
         {{"i", 2, {1, 3}, 3, {0, 0, 0}}, ONES("u", 1, 2)}},
        {"ScatterND", "x,i,u", NULL, {{0}}, {{"i", 2, {1, 1}, 1, {1}}, ONES("u", 1, 3)}},
        {"ScatterND",
         "x,i,u",
         "the index 9, which is not within -2 and 1",
         {{0}},
         {{"i", 2, {1, 1}, 1, {9}}, ONES("u", 1, 3)}},
        {"ScatterND",
         "x,i,u",
         "updates do not have the shape",
         {{0}},
         {{"i", 2, {1, 1}, 1, {1}}, ONES("u", 1, 2)}},
        {"NegativeLogLikelihoodLoss", "x,i", NULL, {{0}}, {INTS("i", 2, 0)}},
        {"NegativeLogLikelihoodLoss",
         "x,i",
         "the index 3, which is not within 0 and 2",
         {{0}},
         {INTS("i", 3, 0)}},
        {"NegativeLogLikelihoodLoss", "x,i", "the index -1", {{0}}, {INTS("i", -1, 0)}},
        {"NegativeLogLikelihoodLoss", "x,i", NULL, {NUMBER("ignore_index", -1)}, {INTS("i", -1, 0)}},
        {"ReverseSequence", "x,i", NULL, {{0}}, {INTS("i", 2, 2, 1)}},
        {"ReverseSequence", "x,i", "the index 3, which is not within 0 and 2", {{0}}, {INTS("i", 2, 3, 1)}},
    };
    RUN_CASES(cases, "y", 13, 2, 3);
}

/* Indexes that come with each run: looked at before each, though the second replays the first one's plan. */
static void indexes_of_a_run(void)
{
    static const float data[] = {10, 11, 12, 20, 21, 22};
    static const int64_t dims[] = {2, 3}, list[] = {2},
                         runs[][2] = {{0, 1}, {1, -1}, {0, 2}, {-3, 0}, {1, 1}};
    static const bool good[] = {true, true, false, false, true};
    struct pb graph = {.size_bytes = 0}, weight = pb_tensor("w", PB_FLOAT, 2, dims, data, sizeof data);
    pb_message(&graph, 5, &weight);
    pb_node(&graph, "Gather", "w,i", "y", NULL);
    pb_graph_input(&graph, "i", PB_INT64, "2");
    pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    if (!BW_OK(bw_model_load_bytes(file.data, file.size_bytes, &model, &err), &err))
        return;
    for (size_t i = 0; i < BW_COUNT_OF(runs); i++) {
        struct bw_value output = {0}, input = {.kind = BW_VALUE_ARRAY,
                                               .array = {.dtype = BW_I64,
                                                         .rank = 1,
                                                         .dims = {list[0]},
                                                         .data = (void *)(uintptr_t)runs[i]}};
        struct bw_model_stats stats;
        int rc = bw_model_run(model, NULL, &input, &output, &err);
        bw_model_stats(model, &stats);
        BW_EQ(rc, good[i] ? 0 : -ERANGE);
        BW_EQ(stats.replayed, i > 0);
        BW_EQ(bw_model_input_decided(model, 0), !good[i]); /* only where they are to blame */
        if (good[i])
            BW_NEAR(((const float *)output.array.data)[3], runs[i][1] == 0 ? 10 : 20, 0);
        else
            BW_TRUE(strstr(err.what, "node 'my_Gather' (Gather, opset 13): input 1 has the index") != NULL);
        bw_value_free(&output);
    }
    bw_model_destroy(model);
}

BW_TEST_MAIN("onnx_refused", {"convolutions", convolutions},
             {"transposed_convolutions", transposed_convolutions}, {"pools", pools}, {"shapes", shapes},
             {"parts", parts}, {"scales", scales}, {"constant_indexes", constant_indexes},
             {"indexes_of_a_run", indexes_of_a_run})
