/* Goal: models do what their file says, import once for each kind of input, and say what is wrong by name. */
#include <bellwire/model.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

static struct bw_model *load(const struct pb *file)
{
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    BW_OK(bw_model_load_bytes(file->data, file->size_bytes, &model, &err), &err);
    return model;
}

static struct bw_value array(enum bw_dtype dtype, uint32_t rank, const int64_t *dims, const void *data)
{
    struct bw_value value = {.kind = BW_VALUE_ARRAY,
                             .array = {.dtype = dtype, .rank = rank, .data = (void *)(uintptr_t)data}};
    for (uint32_t i = 0; i < rank; i++)
        value.array.dims[i] = dims[i];
    return value;
}

static struct bw_model_stats stats_of(const struct bw_model *model)
{
    struct bw_model_stats stats;
    bw_model_stats(model, &stats);
    return stats;
}

static int run_fails(struct bw_model *model, const struct bw_value *inputs, struct bw_err *err)
{
    struct bw_value output = {0};
    int rc = bw_model_run(model, NULL, inputs, &output, err);
    bw_value_free(&output);
    return rc;
}

/* y = relu(x) + x, x f32 [N, 3] */
static struct pb relu_model(void)
{
    struct pb graph = {.size_bytes = 0};
    pb_node(&graph, "Relu", "x", "r", NULL);
    pb_node(&graph, "Add", "r,x", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "N,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "N,3");
    return pb_model(&graph, 13);
}

static void second_run_replays(void)
{
    struct pb file = relu_model();
    struct bw_model *model = load(&file);
    static const float x[] = {-1, 2, 3, -4, 5, 6};
    int64_t dims[] = {2, 3};
    struct bw_err err = {0};
    for (int run = 0; run < 3; run++) {
        if (run == 2)
            dims[0] = 1; /* another shape: another import */
        struct bw_value input = array(BW_F32, 2, dims, x), output = {0};
        if (!BW_OK(bw_model_run(model, NULL, &input, &output, &err), &err))
            break;
        BW_EQ(output.array.dims[0], dims[0]);
        BW_NEAR(((float *)output.array.data)[0], -1, 0);
        BW_NEAR(((float *)output.array.data)[1], 4, 0);
        bw_value_free(&output);
        BW_EQ(stats_of(model).replayed, run == 1);
        BW_EQ(stats_of(model).imports, run == 2 ? 2 : 1);
    }
    bw_model_destroy(model);
}

static void dimensions_are_bound_by_name(void)
{
    struct pb file = relu_model();
    struct bw_model *model = load(&file);
    struct bw_err err = {0};
    uint32_t rank = 0;
    int64_t dims[BW_TENSOR_RANK_MAX];
    BW_EQ(bw_model_input_shape(model, 0, &rank, dims, &err), -EINVAL);
    BW_TRUE(strstr(err.what, "(N)") && strstr(err.what, "'x'"));
    BW_EQ(bw_model_bind(model, "M", 4, &err), -ENOENT);
    BW_TRUE(strstr(err.hint, " N") != NULL);
    BW_OK(bw_model_bind(model, "N", 4, &err), &err);
    BW_OK(bw_model_input_shape(model, 0, &rank, dims, &err), &err);
    BW_EQ(rank, 2);
    BW_EQ(dims[0], 4);
    int64_t wrong[] = {5, 2}, right[] = {5, 3};
    BW_EQ(bw_model_bind_shape(model, "x", 2, wrong, &err), -EINVAL);
    BW_EQ(bw_model_bind_shape(model, "x", 1, right, &err), -EINVAL);
    BW_EQ(bw_model_bind_shape(model, "z", 2, right, &err), -ENOENT);
    BW_OK(bw_model_bind_shape(model, "x", 2, right, &err), &err);
    BW_OK(bw_model_input_shape(model, 0, &rank, dims, &err), &err);
    BW_EQ(dims[0], 5);
    struct bw_model_value value;
    bw_model_output(model, 0, &value);
    BW_STR(value.name, "y");
    BW_EQ(value.dims[0].size, 5); /* the symbol is bound everywhere */
    bw_model_destroy(model);
}

static void wrong_inputs_are_named(void)
{
    struct pb file = relu_model();
    struct bw_model *model = load(&file);
    static const float x[4] = {0};
    int64_t dims[] = {1, 3}, bad[] = {1, 4};
    struct bw_err err = {0};
    struct bw_value dtype = array(BW_F64, 2, dims, x), shape = array(BW_F32, 2, bad, x),
                    rank = array(BW_F32, 1, dims, x), none = array(BW_F32, 2, dims, NULL),
                    kind = {.kind = BW_VALUE_SEQUENCE};
    BW_EQ(run_fails(model, &dtype, &err), -EINVAL);
    BW_STR(err.observed, "f64");
    BW_EQ(run_fails(model, &shape, &err), -EINVAL);
    BW_STR(err.expected, "[N,3]");
    BW_EQ(run_fails(model, &rank, &err), -EINVAL);
    BW_EQ(run_fails(model, &none, &err), -EINVAL);
    BW_EQ(run_fails(model, &kind, &err), -EINVAL);
    BW_STR(err.expected, "a tensor");
    BW_STR(err.observed, "a sequence");
    BW_TRUE(strstr(err.what, "'x'") != NULL);
    bw_model_destroy(model);
}

/* A model of one node from x f32 [2, 3] to y. */
static struct pb one_node(const char *op_type, const char *inputs, const struct pb *attributes, int64_t opset)
{
    struct pb graph = {.size_bytes = 0};
    pb_node(&graph, op_type, inputs, "y", attributes);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "");
    return pb_model(&graph, opset);
}

static void expect_failure(const struct pb *file, int code, const char *text)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t dims[] = {2, 3};
    struct bw_value input = array(BW_F32, 2, dims, x);
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    int rc = bw_model_load_bytes(file->data, file->size_bytes, &model, &err);
    if (!rc)
        rc = run_fails(model, &input, &err);
    BW_EQ(rc, code);
    if (!BW_TRUE(strstr(err.what, text) != NULL))
        printf("      said: %s\n", err.what);
    bw_model_destroy(model);
}

/* The second node of a graph, with or without a name and a type, that holds what cannot be read. */
static struct pb damaged_node(const char *name, const char *op_type, const char *attribute)
{
    struct pb graph = {.size_bytes = 0}, node = {.size_bytes = 0};
    pb_node(&graph, "Relu", "x", "r", NULL);
    pb_text(&node, 1, "r");
    pb_text(&node, 2, "y");
    pb_text(&node, 5, attribute); /* before what names it */
    if (name)
        pb_text(&node, 3, name);
    if (op_type)
        pb_text(&node, 4, op_type);
    pb_message(&graph, 1, &node);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
    return pb_model(&graph, 13);
}

static void what_is_damaged_is_named(void)
{
    static const char damage[] = "\x12\x7f"; /* 127 bytes of which there are none */
    struct pb file = damaged_node("last", "Concat", damage);
    expect_failure(&file, -EBADMSG, "node 1 'last' (Concat): byte ");
    expect_failure(&file, -EBADMSG, ", in AttributeProto: ");
    file = damaged_node(NULL, "Concat", damage);
    expect_failure(&file, -EBADMSG, "node 1 (Concat): byte ");
    file = damaged_node("last", NULL, damage);
    expect_failure(&file, -EBADMSG, "node 1 'last': byte ");
    file = damaged_node(NULL, NULL, damage);
    expect_failure(&file, -EBADMSG, "node 1: byte ");

    /* Outside of nodes none is named. */
    struct pb graph = {.size_bytes = 0};
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    pb_node(&graph, "Relu", "x", "y", NULL);
    pb_text(&graph, 5, damage);
    file = pb_model(&graph, 13);
    BW_EQ(bw_model_load_bytes(file.data, file.size_bytes, &model, &err), -EBADMSG);
    BW_TRUE(strstr(err.what, "byte ") == err.what);
    BW_TRUE(strstr(err.what, "in TensorProto") != NULL);
    BW_TRUE(strstr(err.what, "node") == NULL);
}

static void errors_name_node_op_and_opset(void)
{
    struct pb axis = {.size_bytes = 0}, wrong_type = {.size_bytes = 0}, attribute = {.size_bytes = 0};
    pb_attribute_int(&axis, "axis", 7);
    struct pb file = one_node("Frobnicate", "x", NULL, 13);
    expect_failure(&file, -ENOTSUP, "node 'my_Frobnicate' (Frobnicate, opset 13)");
    file = one_node("LayerNormalization", "x,x", NULL, 13); /* exists since 17 */
    expect_failure(&file, -ENOTSUP, "does not exist in this opset");
    file = one_node("Concat", "x", &axis, 13);
    expect_failure(&file, -ERANGE, "axis 7 of a tensor of rank 2");
    file = one_node("Relu", "q", NULL, 13);
    expect_failure(&file, -EBADMSG, "input 'q' is not defined");
    file = one_node("Add", "x", NULL, 13);
    expect_failure(&file, -EBADMSG, "1 inputs, but the op has 2");
    file = one_node("MatMul", "x,x", NULL, 13);
    expect_failure(&file, -EINVAL, "(MatMul, opset 13): matrix product over 3 and 2");
    pb_text(&attribute, 1, "axis");
    pb_float(&attribute, 2, 1.5f);
    pb_int(&attribute, 20, 1);
    pb_message(&wrong_type, 5, &attribute);
    file = one_node("Softmax", "x", &wrong_type, 13);
    expect_failure(&file, -EBADMSG, "attribute 'axis'");
}

static void outputs_that_nobody_computes(void)
{
    struct pb graph = {.size_bytes = 0};
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    expect_failure(&file, -EBADMSG, "'y'");
}

/* ---- values that decide ---- */

/* y = if(flag) x + x else -x, flag an input */
static struct pb if_model(bool computed)
{
    struct pb graph = {.size_bytes = 0}, then = {.size_bytes = 0}, other = {.size_bytes = 0},
              branches = {.size_bytes = 0};
    pb_node(&then, "Add", "x,x", "t", NULL);
    pb_graph_output(&then, "t", PB_FLOAT, computed ? "N" : "4");
    pb_node(&other, "Neg", "x", "e", NULL);
    pb_graph_output(&other, "e", PB_FLOAT, computed ? "N" : "4");
    pb_attribute_graph(&branches, "then_branch", &then);
    pb_attribute_graph(&branches, "else_branch", &other);
    if (computed) { /* sum over x, more than can be specialised on, > 0 */
        struct pb keep = {.size_bytes = 0}, zero = pb_tensor("", PB_FLOAT, 0, NULL, "\0\0\0", 4),
                  value = {.size_bytes = 0};
        pb_attribute_int(&keep, "keepdims", 0);
        pb_node(&graph, "ReduceSum", "x", "sum", &keep);
        pb_attribute_tensor(&value, "value", &zero);
        pb_node(&graph, "Constant", "", "zero", &value);
        pb_node(&graph, "Greater", "sum,zero", "flag", NULL);
    }
    pb_node(&graph, "If", "flag", "y", &branches);
    pb_graph_input(&graph, "x", PB_FLOAT, computed ? "N" : "4");
    if (!computed)
        pb_graph_input(&graph, "flag", PB_BOOL, "");
    pb_graph_output(&graph, "y", PB_FLOAT, computed ? "N" : "4");
    return pb_model(&graph, 13);
}

static void small_inputs_specialise(void)
{
    struct pb file = if_model(false);
    struct bw_model *model = load(&file);
    static const float x[] = {1, 2, 3, 4};
    int64_t dims[] = {4};
    struct bw_err err = {0};
    static const bool flags[] = {true, false, true, false, true};
    for (size_t run = 0; run < BW_COUNT_OF(flags); run++) {
        uint8_t flag = flags[run];
        struct bw_value inputs[] = {array(BW_F32, 1, dims, x), array(BW_BOOL, 0, NULL, &flag)}, output = {0};
        if (!BW_OK(bw_model_run(model, NULL, inputs, &output, &err), &err))
            break;
        BW_NEAR(((float *)output.array.data)[3], flag ? 8 : -4, 0);
        bw_value_free(&output);
        BW_EQ(stats_of(model).replayed, run >= 2); /* each value once */
        BW_TRUE(!bw_model_input_decided(model, 0) && bw_model_input_decided(model, 1));
    }
    BW_EQ(stats_of(model).imports, 2);
    bw_model_destroy(model);
}

static void computed_conditions_are_realised(void)
{
    enum { N = 1000 };
    struct pb file = if_model(true);
    struct bw_model *model = load(&file);
    static float x[N];
    int64_t dims[] = {N};
    struct bw_err err = {0};
    for (int run = 0; run < 4; run++) {
        float sign = run % 2 ? -1 : 1;
        for (int i = 0; i < N; i++)
            x[i] = sign * (float)i;
        struct bw_value input = array(BW_F32, 1, dims, x), output = {0};
        if (!BW_OK(bw_model_run(model, NULL, &input, &output, &err), &err))
            break;
        BW_NEAR(((float *)output.array.data)[N - 1], run % 2 ? N - 1 : 2 * (N - 1), 0);
        BW_TRUE(bw_model_input_decided(model, 0));
        bw_value_free(&output);
        BW_EQ(stats_of(model).replayed, 0);
    }
    struct bw_value input = array(BW_F32, 1, dims, x);
    struct bw_tensor_graph *graph = NULL;
    bw_tensor *outputs = NULL;
    uint32_t count = 0;
    BW_EQ(bw_model_graph(model, &input, &graph, &outputs, &count, &err), -ENOTSUP);
    BW_TRUE(strstr(err.what, "my_If") != NULL);
    BW_TRUE(strstr(err.hint, "in pieces") != NULL);
    bw_model_destroy(model);
}

/* Positions of what is not zero, doubled: what follows a host op goes on with its result. */
static void shapes_that_depend_on_data(void)
{
    struct pb graph = {.size_bytes = 0};
    pb_node(&graph, "Exp", "x", "e", NULL);
    pb_node(&graph, "Floor", "e", "f", NULL);
    pb_node(&graph, "NonZero", "f", "n", NULL);
    pb_node(&graph, "Add", "n,n", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_INT64, "2,K");
    struct pb file = pb_model(&graph, 13);
    struct bw_model *model = load(&file);
    struct bw_err err = {0};
    int64_t dims[] = {2, 3};
    for (int run = 0; run < 3; run++) {
        float x[] = {-5, 1, -5, 1, -5, run == 1 ? -5.0f : 1.0f};
        struct bw_value input = array(BW_F32, 2, dims, x), output = {0};
        if (!BW_OK(bw_model_run(model, NULL, &input, &output, &err), &err))
            break;
        BW_EQ(output.array.dims[1], run == 1 ? 2 : 3);
        BW_TRUE(bw_model_input_decided(model, 0));
        BW_EQ(((int64_t *)output.array.data)[0], 0);
        BW_EQ(((int64_t *)output.array.data)[1], 2);
        bw_value_free(&output);
    }
    bw_model_destroy(model);
}

/* while (s < 100) s = 2 s: trip count by a condition that is computed. */
static void loops_end_on_computed_conditions(void)
{
    struct pb graph = {.size_bytes = 0}, body = {.size_bytes = 0}, attributes = {.size_bytes = 0},
              one = {.size_bytes = 0}, hundred = {.size_bytes = 0}, flat = {.size_bytes = 0};
    float limit = 100;
    uint8_t yes = 1;
    struct pb limit_tensor = pb_tensor("", PB_FLOAT, 0, NULL, &limit, 4),
              yes_tensor = pb_tensor("", PB_BOOL, 0, NULL, &yes, 1);
    pb_attribute_tensor(&hundred, "value", &limit_tensor);
    pb_attribute_tensor(&one, "value", &yes_tensor);
    pb_node(&body, "Add", "s,s", "s2", NULL);
    pb_node(&body, "Constant", "", "limit", &hundred);
    pb_attribute_int(&flat, "keepdims", 0);
    pb_node(&body, "ReduceMax", "s2", "max", &flat);
    pb_node(&body, "Less", "max,limit", "go", NULL);
    pb_graph_input(&body, "i", PB_INT64, "");
    pb_graph_input(&body, "c", PB_BOOL, "");
    pb_graph_input(&body, "s", PB_FLOAT, "1,1");
    pb_graph_output(&body, "go", PB_BOOL, "");
    pb_graph_output(&body, "s2", PB_FLOAT, "1,1");
    pb_graph_output(&body, "s2", PB_FLOAT, "1,1");
    pb_attribute_graph(&attributes, "body", &body);
    pb_node(&graph, "Constant", "", "yes", &one);
    pb_node(&graph, "ReduceSum", "x", "start", NULL);
    pb_node(&graph, "Loop", ",yes,start", "y,all", &attributes);
    pb_graph_input(&graph, "x", PB_FLOAT, "1,N");
    pb_graph_output(&graph, "y", PB_FLOAT, "1,1");
    pb_graph_output(&graph, "all", PB_FLOAT, "K,1,1");
    struct pb file = pb_model(&graph, 13);
    struct bw_model *model = load(&file);
    struct bw_err err = {0};
    static float x[300];
    int64_t dims[] = {1, 300};
    x[7] = 3;
    struct bw_value input = array(BW_F32, 2, dims, x), outputs[2] = {{0}};
    if (BW_OK(bw_model_run(model, NULL, &input, outputs, &err), &err)) {
        BW_NEAR(((float *)outputs[0].array.data)[0], 192, 0);
        BW_EQ(outputs[1].array.dims[0], 6);
        BW_NEAR(((float *)outputs[1].array.data)[2], 24, 0);
    }
    bw_value_free(&outputs[0]);
    bw_value_free(&outputs[1]);
    bw_model_destroy(model);
}

/* ---- hostile models ---- */

static void endless_loops_are_cut(void)
{
    struct pb graph = {.size_bytes = 0}, body = {.size_bytes = 0}, attributes = {.size_bytes = 0};
    pb_node(&body, "Identity", "c", "go", NULL);
    pb_graph_input(&body, "i", PB_INT64, "");
    pb_graph_input(&body, "c", PB_BOOL, "");
    pb_graph_input(&body, "s", PB_FLOAT, "2,3");
    pb_node(&body, "Identity", "s", "s2", NULL);
    pb_graph_output(&body, "go", PB_BOOL, "");
    pb_graph_output(&body, "s2", PB_FLOAT, "2,3");
    pb_attribute_graph(&attributes, "body", &body);
    pb_node(&graph, "Loop", ",,x", "y", &attributes);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    expect_failure(&file, -E2BIG, "nodes and iterations");
}

static void recursive_functions_are_cut(void)
{
    struct pb graph = {.size_bytes = 0}, function = {.size_bytes = 0}, node = {.size_bytes = 0},
              opset = {.size_bytes = 0};
    pb_text(&node, 1, "a");
    pb_text(&node, 2, "b");
    pb_text(&node, 4, "F");
    pb_text(&node, 7, "mine");
    pb_text(&function, 1, "F");
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "b");
    pb_message(&function, 7, &node);
    pb_text(&function, 10, "mine");
    struct pb call = {.size_bytes = 0};
    pb_text(&call, 1, "x");
    pb_text(&call, 2, "y");
    pb_text(&call, 4, "F");
    pb_text(&call, 7, "mine");
    pb_message(&graph, 1, &call);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "y", PB_FLOAT, "");
    struct pb file = pb_model(&graph, 13);
    pb_message(&file, 25, &function);
    pb_text(&opset, 1, "mine");
    pb_int(&opset, 2, 1);
    pb_message(&file, 8, &opset);
    expect_failure(&file, -E2BIG, "deeper than");
}

/* A function with an attribute that its body refers to. */
static void functions_take_attributes(void)
{
    struct pb graph = {.size_bytes = 0}, function = {.size_bytes = 0}, node = {.size_bytes = 0},
              reference = {.size_bytes = 0}, call = {.size_bytes = 0}, attribute = {.size_bytes = 0};
    pb_text(&reference, 1, "alpha");
    pb_int(&reference, 20, 1);
    pb_text(&reference, 21, "slope");
    pb_text(&node, 1, "a");
    pb_text(&node, 2, "b");
    pb_text(&node, 4, "LeakyRelu");
    pb_message(&node, 5, &reference);
    pb_text(&function, 1, "F");
    pb_text(&function, 4, "a");
    pb_text(&function, 5, "b");
    pb_text(&function, 6, "slope");
    pb_message(&function, 7, &node);
    pb_text(&function, 10, "mine");
    pb_text(&attribute, 1, "slope");
    pb_float(&attribute, 2, 0.5f);
    pb_int(&attribute, 20, 1);
    pb_text(&call, 1, "x");
    pb_text(&call, 2, "y");
    pb_text(&call, 4, "F");
    pb_text(&call, 7, "mine");
    pb_message(&call, 5, &attribute);
    pb_message(&graph, 1, &call);
    pb_graph_input(&graph, "x", PB_FLOAT, "2");
    pb_graph_output(&graph, "y", PB_FLOAT, "2");
    struct pb file = pb_model(&graph, 13);
    pb_message(&file, 25, &function);
    struct bw_model *model = load(&file);
    static const float x[] = {-4, 4};
    int64_t dims[] = {2};
    struct bw_err err = {0};
    struct bw_value input = array(BW_F32, 1, dims, x), output = {0};
    if (BW_OK(bw_model_run(model, NULL, &input, &output, &err), &err)) {
        BW_NEAR(((float *)output.array.data)[0], -2, 0);
        BW_NEAR(((float *)output.array.data)[1], 4, 0);
    }
    bw_value_free(&output);
    bw_model_destroy(model);
}

static void graphs_nested_too_deep_are_refused(void)
{
    static struct pb inner, attributes, graph;
    inner.size_bytes = 0;
    pb_node(&inner, "Relu", "x", "y", NULL);
    for (int depth = 0; depth < 40; depth++) {
        attributes.size_bytes = graph.size_bytes = 0;
        pb_attribute_graph(&attributes, "then_branch", &inner);
        pb_node(&graph, "If", "c", "y", &attributes);
        inner = graph;
    }
    struct pb file = pb_model(&inner, 13);
    expect_failure(&file, -E2BIG, "nested too deep");
}

static void data_outside_of_the_directory_are_refused(void)
{
    static const char *const paths[] = {"/etc/passwd", "../secret", "a/../../secret", ""};
    for (size_t i = 0; i < BW_COUNT_OF(paths); i++) {
        struct pb graph = {.size_bytes = 0}, tensor = {.size_bytes = 0}, entry = {.size_bytes = 0};
        pb_int(&tensor, 1, 6);
        pb_int(&tensor, 2, PB_FLOAT);
        pb_text(&tensor, 8, "w");
        pb_text(&entry, 1, "location");
        pb_text(&entry, 2, paths[i]);
        pb_message(&tensor, 13, &entry);
        pb_int(&tensor, 14, 1);
        pb_message(&graph, 5, &tensor);
        pb_node(&graph, "Identity", "w", "y", NULL);
        pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
        pb_graph_output(&graph, "y", PB_FLOAT, "6");
        struct pb file = pb_model(&graph, 13);
        expect_failure(&file, -EACCES, "outside the model's directory");
    }
}

static void tensors_that_lie_about_their_size(void)
{
    int64_t huge[] = {1 << 20, 1 << 19}, six[] = {6}, too_many[] = {1ll << 40, 1ll << 40};
    struct {
        struct pb tensor;
        const char *text;
    } cases[] = {
        {pb_tensor("w", PB_FLOAT, 1, six, "abcd", 4), "raw data"},
        {pb_tensor("w", PB_FLOAT, 2, huge, "abcd", 4), "raw data"},
        {pb_tensor("w", PB_FLOAT, 2, too_many, "abcd", 4), "2^40"},
        {pb_tensor("w", 14, 1, six, "abcd", 4), "opset 13): value 'w' (byte 10) has type COMPLEX64"}};
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb graph = {.size_bytes = 0};
        pb_message(&graph, 5, &cases[i].tensor);
        pb_node(&graph, "Identity", "w", "y", NULL);
        pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
        pb_graph_output(&graph, "y", PB_FLOAT, "6");
        struct pb file = pb_model(&graph, 13);
        expect_failure(&file, i == 3 ? -ENOTSUP : -EBADMSG, cases[i].text);
    }
    /* Typed data: a shape of 2^38 elements on a few bytes asks for no memory. */
    struct pb tensor = {.size_bytes = 0}, graph = {.size_bytes = 0};
    pb_int(&tensor, 1, 1ll << 38);
    pb_int(&tensor, 2, PB_INT64);
    pb_int(&tensor, 7, 5);
    pb_text(&tensor, 8, "w");
    pb_message(&graph, 5, &tensor);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(&graph, "x", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    expect_failure(&file, -EBADMSG, "fewer elements");
}

static void ints_add(struct pb *attributes, const char *name, int64_t a, int64_t b)
{
    struct pb attribute = {.size_bytes = 0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 8, a);
    pb_int(&attribute, 8, b);
    pb_int(&attribute, 20, 7);
    pb_message(attributes, 5, &attribute);
}

/* Kernel 2x2 at stride 2 over one row: one row of windows, as onnxruntime has it; kernels of 4 rows fit
 * nowhere. */
static void windows_may_be_larger_than_a_small_picture(void)
{
    static const char *const ops[] = {"MaxPool", "AveragePool", "LpPool", "MaxPool"};
    static const float x[] = {1, 2, 5, 4}, expected[][2] = {{2, 5}, {1.5f, 4.5f}, {2.236068f, 6.4031243f}};
    static const int64_t dims[] = {1, 1, 1, 4};
    for (size_t i = 0; i < BW_COUNT_OF(ops); i++) {
        struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0};
        ints_add(&attributes, "kernel_shape", i == 3 ? 4 : 2, 2);
        ints_add(&attributes, "strides", 2, 2);
        pb_node(&graph, ops[i], "x", "y", &attributes);
        pb_graph_input(&graph, "x", PB_FLOAT, "1,1,1,4");
        pb_graph_output(&graph, "y", PB_FLOAT, "1,1,H,W");
        struct pb file = pb_model(&graph, 13);
        struct bw_model *model = load(&file);
        struct bw_value input = array(BW_F32, 4, dims, x), output = {0};
        struct bw_err err = {0};
        if (i == 3) {
            BW_EQ(run_fails(model, &input, &err), -EINVAL);
            BW_TRUE(strstr(err.what, "window of 4 does not fit into 1") != NULL);
        } else if (BW_OK(bw_model_run(model, NULL, &input, &output, &err), &err) &&
                   BW_EQ(output.array.dims[2], 1) && BW_EQ(output.array.dims[3], 2)) {
            BW_NEAR(((float *)output.array.data)[0], expected[i][0], 1e-6);
            BW_NEAR(((float *)output.array.data)[1], expected[i][1], 1e-6);
        }
        bw_value_free(&output);
        bw_model_destroy(model);
    }
}

static void offsets_that_are_no_numbers(void)
{
    static const char *const offsets[] = {"-4", "12abc", "", "99999999999999999999999"};
    for (size_t i = 0; i < BW_COUNT_OF(offsets); i++) {
        struct pb graph = {.size_bytes = 0}, tensor = {.size_bytes = 0}, entry = {.size_bytes = 0};
        pb_int(&tensor, 1, 6);
        pb_int(&tensor, 2, PB_FLOAT);
        pb_text(&entry, 1, "offset");
        pb_text(&entry, 2, offsets[i]);
        pb_message(&tensor, 13, &entry);
        pb_int(&tensor, 14, 1);
        pb_message(&graph, 5, &tensor);
        struct pb file = pb_model(&graph, 13);
        expect_failure(&file, -EBADMSG, "is no number");
    }
}

/* A model with some of everything, as a victim. */
static struct pb rich_model(void)
{
    struct pb graph = {.size_bytes = 0}, then = {.size_bytes = 0}, other = {.size_bytes = 0},
              branches = {.size_bytes = 0}, axis = {.size_bytes = 0}, value = {.size_bytes = 0};
    static const float w[] = {1, 2, 3, 4, 5, 6};
    static const int64_t w_dims[] = {3, 2}, shape[] = {-1, 2}, shape_dims[] = {2};
    struct pb weight = pb_tensor("w", PB_FLOAT, 2, w_dims, w, sizeof w),
              shape_tensor = pb_tensor("", PB_INT64, 1, shape_dims, shape, sizeof shape);
    pb_node(&then, "Relu", "m", "t", NULL);
    pb_graph_output(&then, "t", PB_FLOAT, "N,2");
    pb_node(&other, "Neg", "m", "e", NULL);
    pb_graph_output(&other, "e", PB_FLOAT, "N,2");
    pb_attribute_graph(&branches, "then_branch", &then);
    pb_attribute_graph(&branches, "else_branch", &other);
    pb_attribute_int(&axis, "axis", -1);
    pb_attribute_tensor(&value, "value", &shape_tensor);
    pb_message(&graph, 5, &weight);
    pb_node(&graph, "MatMul", "x,w", "m", NULL);
    pb_node(&graph, "Constant", "", "shape", &value);
    pb_node(&graph, "If", "flag", "i", &branches);
    pb_node(&graph, "Softmax", "i", "s", &axis);
    pb_node(&graph, "Reshape", "s,shape", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "N,3");
    pb_graph_input(&graph, "flag", PB_BOOL, "");
    pb_graph_output(&graph, "y", PB_FLOAT, "M,2");
    return pb_model(&graph, 13);
}

/* Loads and runs whatever comes; only a crash or a leak (under the sanitizer) is a failure. Returns whether
 * it ran. */
static bool survive(const uint8_t *data, size_t size_bytes)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t flag = 1;
    static const int64_t dims[] = {2, 3};
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    if (bw_model_load_bytes(data, size_bytes, &model, &err)) {
        if (!err.code || !err.what[0])
            BW_TRUE(err.code && err.what[0]); /* refused without a word */
        return false;
    }
    struct bw_value inputs[8] = {{0}}, outputs[8] = {{0}};
    bool ran = false;
    if (bw_model_input_count(model) <= 8 && bw_model_output_count(model) <= 8) {
        for (uint32_t i = 0; i < bw_model_input_count(model); i++)
            inputs[i] = i ? array(BW_BOOL, 0, NULL, &flag) : array(BW_F32, 2, dims, x);
        ran = !bw_model_run(model, NULL, inputs, outputs, &err);
        for (int i = 0; i < 8; i++)
            bw_value_free(&outputs[i]);
    }
    bw_model_destroy(model);
    return ran;
}

static void truncated_anywhere(void)
{
    struct pb file = rich_model();
    BW_TRUE(survive(file.data, file.size_bytes));
    int ran = 0;
    for (size_t size = 0; size < file.size_bytes; size++)
        ran += survive(file.data, size);
    BW_EQ(ran, 0); /* the graph is the last field: nothing shorter can run */
}

static void bits_flipped_anywhere(void)
{
    struct pb file = rich_model();
    int ran = 0;
    for (size_t at = 0; at < file.size_bytes; at++)
        for (int bit = 0; bit < 8; bit++) {
            file.data[at] ^= (uint8_t)(1 << bit);
            ran += survive(file.data, file.size_bytes);
            file.data[at] ^= (uint8_t)(1 << bit);
        }
    BW_TRUE(ran > 0); /* a bit of a weight changes a number, no more */
    BW_TRUE(survive(file.data, file.size_bytes));
}

static void bytes_replaced_anywhere(void)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    struct pb file = rich_model();
    for (size_t at = 0; at < file.size_bytes; at++)
        for (size_t i = 0; i < BW_COUNT_OF(values); i++) {
            uint8_t old = file.data[at];
            file.data[at] = values[i];
            survive(file.data, file.size_bytes);
            file.data[at] = old;
        }
    BW_TRUE(survive(file.data, file.size_bytes));
}

BW_TEST_MAIN("onnx", {"second_run_replays", second_run_replays},
             {"dimensions_are_bound_by_name", dimensions_are_bound_by_name},
             {"wrong_inputs_are_named", wrong_inputs_are_named},
             {"what_is_damaged_is_named", what_is_damaged_is_named},
             {"errors_name_node_op_and_opset", errors_name_node_op_and_opset},
             {"outputs_that_nobody_computes", outputs_that_nobody_computes},
             {"small_inputs_specialise", small_inputs_specialise},
             {"computed_conditions_are_realised", computed_conditions_are_realised},
             {"shapes_that_depend_on_data", shapes_that_depend_on_data},
             {"loops_end_on_computed_conditions", loops_end_on_computed_conditions},
             {"endless_loops_are_cut", endless_loops_are_cut},
             {"recursive_functions_are_cut", recursive_functions_are_cut},
             {"functions_take_attributes", functions_take_attributes},
             {"graphs_nested_too_deep_are_refused", graphs_nested_too_deep_are_refused},
             {"data_outside_of_the_directory_are_refused", data_outside_of_the_directory_are_refused},
             {"tensors_that_lie_about_their_size", tensors_that_lie_about_their_size},
             {"windows_may_be_larger_than_a_small_picture", windows_may_be_larger_than_a_small_picture},
             {"offsets_that_are_no_numbers", offsets_that_are_no_numbers},
             {"truncated_anywhere", truncated_anywhere}, {"bits_flipped_anywhere", bits_flipped_anywhere},
             {"bytes_replaced_anywhere", bytes_replaced_anywhere})
