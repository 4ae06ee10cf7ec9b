/* Goal: a model that ONNX does not allow is refused when it is loaded or imported, whether the part at fault
 * would run or not, with its place in the file and its node; and one that ONNX allows is not. */
#include <bellwire/model.h>

#include <errno.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"
#include "compiler/onnx/schema.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

/* Loads and runs a model whose first input, if any, is f32 [2, 3]. */
static int outcome(const struct pb *file, struct bw_err *err)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const uint8_t flag = 1;
    struct bw_value inputs[2] = {
        {.kind = BW_VALUE_ARRAY,
         .array = {.dtype = BW_F32, .rank = 2, .dims = {2, 3}, .data = (void *)(uintptr_t)x}},
        {.kind = BW_VALUE_ARRAY, .array = {.dtype = BW_BOOL, .data = (void *)(uintptr_t)&flag}}};
    struct bw_value outputs[4] = {{0}};
    struct bw_model *model = NULL;
    int rc = bw_model_load_bytes(file->data, file->size_bytes, &model, err);
    if (!rc && bw_model_output_count(model) <= BW_COUNT_OF(outputs))
        rc = bw_model_run(model, NULL, inputs, outputs, err);
    for (size_t i = 0; i < BW_COUNT_OF(outputs); i++)
        bw_value_free(&outputs[i]);
    bw_model_destroy(model);
    return rc;
}

static void refused(const struct pb *file, int code, const char *text)
{
    struct bw_err err = {0};
    BW_EQ(outcome(file, &err), code);
    if (!BW_TRUE(strstr(err.what, text) != NULL))
        printf("      expected '%s', said: %s\n", text, err.what);
}

static void accepted(const struct pb *file)
{
    struct bw_err err = {0};
    BW_OK(outcome(file, &err), &err);
}

/* Refused with that code and text, or, with none, accepted. */
static void judged(const struct pb *file, int code, const char *text)
{
    if (text)
        refused(file, code, text);
    else
        accepted(file);
}

static void declare_xy(struct pb *graph)
{
    pb_graph_input(graph, "x", PB_FLOAT, "2,3");
    pb_graph_output(graph, "y", PB_FLOAT, "2,3");
}

struct node {
    const char *op, *inputs, *outputs;
};

/* A model from x to y of some nodes, with an initializer w f32 [2, 3]. */
static struct pb model_of(const struct node *nodes, size_t count)
{
    static const float w[6] = {1, 1, 1, 1, 1, 1};
    static const int64_t dims[] = {2, 3};
    struct pb graph = {.size_bytes = 0}, weight = pb_tensor("w", PB_FLOAT, 2, dims, w, sizeof w);
    pb_message(&graph, 5, &weight);
    for (size_t i = 0; i < count && nodes[i].op; i++)
        pb_node(&graph, nodes[i].op, nodes[i].inputs, nodes[i].outputs, NULL);
    declare_xy(&graph);
    return pb_model(&graph, 13);
}

/* ---- names ---- */

static void names_of_values(void)
{
    enum { NODES_MAX = 4 };
    static const struct {
        struct node nodes[NODES_MAX];
        const char *text; /* NULL: a good model */
    } cases[] = {
        {{{"Relu", "x", "a"}, {"Abs", "a", "y"}}, NULL},
        {{{"Relu", "x", "a"}, {"Neg", "x", "a"}, {"Abs", "a", "y"}},
         "node 'my_Neg' (Neg, opset 13): output 'a': another value has this name"},
        {{{"Split", "x", "a,a"}, {"Abs", "x", "y"}}, "(Split, opset 13): output 'a': another value"},
        {{{"Relu", "x", "x"}, {"Abs", "x", "y"}}, "output 'x': another value"},
        {{{"Relu", "x", "w"}, {"Abs", "w", "y"}}, "output 'w': another value"},
        {{{"Add", "x,q", "y"}}, "(Add, opset 13): input 'q' is not defined anywhere"},
        {{{"Add", "x,q", "dead"}, {"Abs", "x", "y"}}, "(Add, opset 13): input 'q' is not defined anywhere"},
        {{{"Relu", "a", "y"}, {"Neg", "x", "a"}}, "input 'a' is not defined before: its node (Neg, byte"},
        {{{"Relu", "a", "dead"}, {"Neg", "x", "a"}, {"Abs", "a", "y"}}, "(Relu, opset 13): input 'a' is not"},
        {{{"Add", "x,b", "a"}, {"Relu", "a", "b"}, {"Abs", "b", "y"}},
         "(Add, opset 13): input 'b' is not defined before: it is part of a cycle"},
        {{{"Add", "x,y", "y"}}, "input 'y' is not defined before: it is part of a cycle"},
        {{{"Relu", "a", "y"}, {"Add", "x,b", "a"}, {"Neg", "a", "b"}}, "its node (Add, byte"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb file = model_of(cases[i].nodes, NODES_MAX);
        judged(&file, -EBADMSG, cases[i].text);
    }
}

/* What stands in errors of a name from a file. */
static void names_as_text(void)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"conv1", "conv1"},
        {"a\x1b[31mb\n", "a\\x1b[31mb\\n"},
        {"\xe4\xb8\xad\xff\xc2\x85", "\xe4\xb8\xad\\xff\\u0085"},
        {"012345678901234567890123456789012345678901234567890123456789abc",
         "012345678901234567890123456789012345678901234567890123456789abc"},
        {"012345678901234567890123456789012345678901234567890123456789abcd",
         "012345678901234567890123456789012345678901234567890123456789..."},
        {"01234567890123456789012345678901234567890123456789012345678\x1b more",
         "01234567890123456789012345678901234567890123456789012345678..."},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        const uint8_t *name = (const uint8_t *)cases[i].name;
        BW_STR(bw_onnx_text((struct bw_bytes){name, strlen(cases[i].name)}).text, cases[i].text);
    }
    BW_STR(bw_onnx_text((struct bw_bytes){(const uint8_t *)"a\0b", 3}).text, "a\\x00b");
    BW_STR(bw_onnx_text((struct bw_bytes){NULL, 0}).text, "");
}

static void names_of_inputs_and_initializers(void)
{
    static const float one = 1;
    struct pb weight = pb_tensor("w", PB_FLOAT, 0, NULL, &one, 4),
              nameless = pb_tensor("", PB_FLOAT, 0, NULL, &one, 4);
    for (int i = 0; i < 5; i++) {
        struct pb graph = {.size_bytes = 0};
        pb_node(&graph, "Relu", "x", "y", NULL);
        declare_xy(&graph);
        if (i == 0 || i == 1)
            pb_message(&graph, 5, &weight);
        if (i == 1)
            pb_message(&graph, 5, &weight);
        if (i == 2)
            pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
        if (i == 3)
            pb_graph_input(&graph, "", PB_FLOAT, "2,3");
        if (i == 4)
            pb_message(&graph, 5, &nameless);
        static const char *const texts[] = {NULL, "value 'w' of graph '': two initializers have this name",
                                            "value 'x' of graph '': two inputs have this name",
                                            "an input without a name", "an initializer without a name"};
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, texts[i]);
    }
}

static void graphs_without_outputs(void)
{
    struct pb graph = {.size_bytes = 0};
    pb_node(&graph, "Relu", "x", "y", NULL);
    pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    refused(&file, -EBADMSG, "graph '' has no outputs");
}

/* The user of a model tells its outputs by their names. A branch's outputs have places: one value twice is
 * fine. */
static void outputs_twice(void)
{
    struct pb graph = {.size_bytes = 0}, branch = {.size_bytes = 0}, attributes = {.size_bytes = 0};
    pb_node(&graph, "Relu", "x", "y", NULL);
    declare_xy(&graph);
    pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
    struct pb file = pb_model(&graph, 13);
    refused(&file, -EBADMSG, "value 'y' of graph '': two outputs have this name");
    pb_node(&branch, "Relu", "x", "t", NULL);
    pb_graph_output(&branch, "t", PB_FLOAT, "2,3");
    pb_graph_output(&branch, "t", PB_FLOAT, "2,3");
    pb_attribute_graph(&attributes, "then_branch", &branch);
    pb_attribute_graph(&attributes, "else_branch", &branch);
    graph.size_bytes = 0;
    declare_xy(&graph);
    pb_graph_input(&graph, "c", PB_BOOL, "");
    pb_node(&graph, "If", "c", "y,z", &attributes);
    file = pb_model(&graph, 13);
    accepted(&file);
}

static void inputs_without_type(void)
{
    for (int i = 0; i < 2; i++) {
        struct pb graph = {.size_bytes = 0}, untyped = {.size_bytes = 0}, none = pb_value("x", 0, "2,3");
        pb_text(&untyped, 1, "x");
        pb_node(&graph, "Relu", "x", "y", NULL);
        pb_message(&graph, 11, i ? &none : &untyped);
        pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
        struct pb file = pb_model(&graph, 13);
        refused(&file, -EBADMSG, "value 'x' of graph '': an input without a type");
    }
}

/* A name that a branch defines anew hides one around it: ONNX does not allow it. What comes after the If, its
 * branches cannot read. */
static void names_in_branches(void)
{
    static const struct node then_nodes[] = {{"Relu", "x", "t"},
                                             {"Relu", "x", "a"},
                                             {"Relu", "later", "t"},
                                             {"Relu", "y", "t"},
                                             {"Relu", "q", "t"}};
    static const char *const texts[] = {NULL, "(Relu, opset 13): output 'a': another value",
                                        "input 'later' is not defined before: its node (Abs, byte",
                                        "input 'y' is not defined before: it is part of a cycle",
                                        "input 'q' is not defined anywhere"};
    for (size_t i = 0; i < BW_COUNT_OF(then_nodes); i++) {
        struct pb graph = {.size_bytes = 0}, then = {.size_bytes = 0}, other = {.size_bytes = 0},
                  branches = {.size_bytes = 0};
        pb_node(&then, then_nodes[i].op, then_nodes[i].inputs, then_nodes[i].outputs, NULL);
        pb_graph_output(&then, then_nodes[i].outputs, PB_FLOAT, "2,3");
        pb_node(&other, "Neg", "a", "e", NULL);
        pb_graph_output(&other, "e", PB_FLOAT, "2,3");
        pb_attribute_graph(&branches, "then_branch", &other); /* the one that runs is fine in all cases */
        pb_attribute_graph(&branches, "else_branch", &then);
        pb_node(&graph, "Neg", "x", "a", NULL);
        pb_node(&graph, "If", "c", "y", &branches);
        pb_node(&graph, "Abs", "x", "later", NULL);
        declare_xy(&graph);
        pb_graph_input(&graph, "c", PB_BOOL, "");
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, texts[i]);
    }
}

/* ---- versions ---- */

static struct pb versioned(int64_t ir_version, int opsets, const char *domain, int64_t opset)
{
    struct pb graph = {.size_bytes = 0}, model = {.size_bytes = 0}, import = {.size_bytes = 0};
    pb_node(&graph, "Relu", "x", "y", NULL);
    declare_xy(&graph);
    pb_text(&import, 1, domain);
    pb_int(&import, 2, opset);
    if (ir_version != INT64_MIN)
        pb_int(&model, 1, ir_version);
    for (int i = 0; i < opsets; i++)
        pb_message(&model, 8, &import);
    pb_message(&model, 7, &graph);
    return model;
}

static void versions(void)
{
    static const int64_t good[][2] = {{1, 1}, {3, 1}, {8, 13}, {13, BW_ONNX_OPSET_MAX}};
    for (size_t i = 0; i < BW_COUNT_OF(good); i++) {
        struct pb file = versioned(good[i][0], 1, i % 2 ? "ai.onnx" : "", good[i][1]);
        accepted(&file);
    }
    static const int64_t ir_versions[] = {INT64_MIN, 0, -1, BW_ONNX_IR_VERSION_MAX + 1, 99, INT64_MAX};
    for (size_t i = 0; i < BW_COUNT_OF(ir_versions); i++) {
        struct pb file = versioned(ir_versions[i], 1, "", 13);
        struct bw_err err = {0};
        BW_EQ(outcome(&file, &err), -ENOTSUP);
        BW_TRUE(strstr(err.what, "IR version") != NULL);
        BW_STR(err.expected, "1 to 13");
    }
    static const int64_t opsets[] = {0, -3, BW_ONNX_OPSET_MAX + 1, 99, INT64_MAX};
    for (size_t i = 0; i < BW_COUNT_OF(opsets); i++) {
        struct pb file = versioned(8, 1, "", opsets[i]);
        struct bw_err err = {0};
        BW_EQ(outcome(&file, &err), -ENOTSUP);
        BW_TRUE(strstr(err.what, "of domain 'ai.onnx'") != NULL);
        BW_STR(err.expected, "1 to 27");
    }
    struct pb file = versioned(2, 0, "", 0); /* files of that age say no opset: it is 1 */
    accepted(&file);
    file = versioned(8, 0, "", 0);
    refused(&file, -EBADMSG, "no opset_import");
    file = versioned(8, 1, "com.example", 1);
    refused(&file, -EBADMSG, "(Relu, opset 1): opset_import does not name its domain ''");
    struct pb other = {.size_bytes = 0};
    file = versioned(8, 1, "", 13);
    pb_int(&other, 2, 12);
    pb_text(&other, 1, "ai.onnx");
    pb_message(&file, 8, &other);
    refused(&file, -EBADMSG, "two versions of domain 'ai.onnx'");
}

/* ---- nodes against their op ---- */

static void attribute(struct pb *attributes, const char *name, int type, float f, int64_t i)
{
    struct pb one = {.size_bytes = 0};
    pb_text(&one, 1, name);
    if (type == 1)
        pb_float(&one, 2, f);
    if (type == 2)
        pb_int(&one, 3, i);
    if (type == 7)
        pb_int(&one, 8, i);
    pb_int(&one, 20, type);
    pb_message(attributes, 5, &one);
}

static void inputs_and_outputs_of_ops(void)
{
    enum { NODES_MAX = 2 };
    static const struct {
        struct node nodes[NODES_MAX];
        const char *text;
        int code;
    } cases[] = {
        {{{"Relu", "x", "y"}}, NULL, 0},
        {{{"Clip", "x", "y"}}, NULL, 0},
        {{{"Max", "x,x,x,x,x", "y"}}, NULL, 0},
        {{{"Relu", "x,x", "y"}}, "(Relu, opset 13): 2 inputs, but the op has 1", -EBADMSG},
        {{{"Relu", "x,", "y"}}, "2 inputs, but the op has 1", -EBADMSG},
        {{{"Relu", "x,x", "dead"}, {"Abs", "x", "y"}}, "2 inputs, but the op has 1", -EBADMSG},
        {{{"Clip", "x,w,w,w", "y"}}, "4 inputs, but the op has 1 to 3", -EBADMSG},
        {{{"Relu", "x", "y,z"}}, "2 outputs, but the op has 1", -EBADMSG},
        {{{"Relu", "x", ""}, {"Abs", "x", "y"}}, "0 outputs, but the op has 1", -EBADMSG},
        {{{"Add", "x", "y"}}, "1 inputs, but the op has 2", -EBADMSG},
        {{{"Add", "x,", "y"}}, "one of its inputs, number 1, is missing", -EBADMSG},
        {{{"Max", "", "y"}}, "0 inputs, but the op has at least 1", -EBADMSG},
        {{{"Mish", "x", "y"}}, "the op does not exist in this opset", -ENOTSUP},
        {{{"Upsample", "x,w", "y"}}, "the op was removed in opset 10", -ENOTSUP},
        {{{"", "x", "y"}}, "a node without op", -EBADMSG},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb file = model_of(cases[i].nodes, NODES_MAX);
        judged(&file, cases[i].code, cases[i].text);
    }
}

static void attributes_of_ops(void)
{
    struct {
        const char *op, *inputs, *name;
        int type;
        const char *text;
    } cases[] = {
        {"LeakyRelu", "x", "alpha", 1, NULL},
        {"LeakyRelu", "x", "beta", 1, "(LeakyRelu, opset 13): the op has no attribute 'beta'"},
        {"LeakyRelu", "x", "alpha", 2, "attribute 'alpha' is an int instead of a float"},
        {"Transpose", "x", "perm", 2, "attribute 'perm' is an int instead of a list of ints"},
        {"Softmax", "x", "axis", 7, "attribute 'axis' is a list of ints instead of an int"},
        {"Concat", "x,x", "axis", 0, "attribute 'axis' is missing"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb graph = {.size_bytes = 0}, attributes = {.size_bytes = 0};
        if (cases[i].type)
            attribute(&attributes, cases[i].name, cases[i].type, 0.5f, 1);
        pb_node(&graph, cases[i].op, cases[i].inputs, "y", &attributes);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, cases[i].text);
    }
    struct pb graph = {.size_bytes = 0}, twice = {.size_bytes = 0};
    attribute(&twice, "alpha", 1, 0.5f, 0);
    attribute(&twice, "alpha", 1, 0.25f, 0);
    pb_node(&graph, "LeakyRelu", "x", "y", &twice);
    declare_xy(&graph);
    struct pb file = pb_model(&graph, 13);
    refused(&file, -EBADMSG, "attribute 'alpha' is there twice");
}

/* What an attribute holds and what it says it is. */
static void attributes_of_two_minds(void)
{
    for (int i = 0; i < 3; i++) {
        struct pb graph = {.size_bytes = 0}, one = {.size_bytes = 0}, attributes = {.size_bytes = 0};
        pb_text(&one, 1, "alpha");
        pb_float(&one, 2, 0.5f);
        if (i == 1)
            pb_int(&one, 3, 4);
        pb_int(&one, 20, i == 2 ? 2 : 1);
        pb_message(&attributes, 5, &one);
        pb_node(&graph, "LeakyRelu", "x", "y", &attributes);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        if (!i)
            accepted(&file);
        else
            refused(&file, -EBADMSG, i == 1 ? "two kinds of value" : "does not have its type");
    }
}

/* The table itself: ordered, so that it can be searched, and every row can be read to its end. */
static struct bw_bytes bytes_of(const char *text)
{
    return (struct bw_bytes){(const uint8_t *)text, strlen(text)};
}

static void table_of_ops(void)
{
    const struct bw_onnx_schemas *table = &bw_onnx_schema_table;
    BW_TRUE(table->count > 500);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct bw_onnx_schema *row = &table->rows[i], *before = i ? row - 1 : NULL;
        struct bw_bytes op = bytes_of(row->op);
        struct bw_onnx_word word;
        bool known, fine = true;
        if (before) {
            int order = strcmp(before->op, row->op);
            fine = order < 0 || (order == 0 && before->since < row->since);
        }
        fine = fine && bw_onnx_schema_find(op, row->since, &known) == row && known;
        for (const char *at = row->inputs ? row->inputs : ""; bw_onnx_word_next(&at, &word);)
            fine = fine && word.length && bw_onnx_schema_letters(row, &word);
        for (const char *at = row->attributes ? row->attributes : ""; bw_onnx_word_next(&at, &word);)
            fine = fine && word.length && word.kind && strchr("fistgFISpy", word.kind);
        if (!BW_TRUE(fine))
            printf("      row %u: %s\n", i, row->op);
    }
    bool known = true;
    BW_TRUE(!bw_onnx_schema_find(bytes_of("Zzz"), 13, &known) && !known);
}

/* An op without a schema would take any node of its name. */
static void every_op_has_a_schema(void)
{
    const struct bw_onnx_ops *table;
    bool known;
    for (uint32_t t = 0; (table = bw_onnx_ops_at(t)); t++)
        for (uint32_t i = 0; i < table->count; i++) {
            const struct bw_onnx_op *op = &table->rows[i];
            const struct bw_onnx_schema *schema =
                bw_onnx_schema_find(bytes_of(op->name), op->first_opset, &known);
            if (!BW_TRUE(schema && schema->inputs))
                printf("      %s of opset %lld\n", op->name, (long long)op->first_opset);
        }
}

/* Nor is there a schema of an op that no table has. */
static void every_schema_has_an_op(void)
{
    for (uint32_t i = 0; i < bw_onnx_schema_table.count; i++) {
        const struct bw_onnx_schema *schema = &bw_onnx_schema_table.rows[i];
        bool known, training;
        bw_onnx_op_find(bytes_of(""), bytes_of(schema->op), schema->since, &known);
        bw_onnx_op_find(bytes_of("ai.onnx.preview.training"), bytes_of(schema->op), schema->since, &training);
        if (!BW_TRUE(known || training))
            printf("      %s\n", schema->op);
    }
}

/* ---- types ---- */

static void types_that_ops_take(void)
{
    static const int64_t dims[] = {2, 3}, numbers[6] = {1, 1, 1, 1, 1, 1};
    static const struct {
        const char *op, *inputs, *text;
    } cases[] = {
        {"Add", "x,l", "(Add, opset 13): inputs 0 (f32) and 1 (i64) must have one type (T)"},
        {"Max", "x,x,l", "inputs 0 (f32) and 2 (i64) must have one type (T)"},
        {"Sqrt", "l", "the op takes no i64 as input 0"},
        {"Where", "x,x,x", "the op takes no f32 as input 0"},
        {"Relu", "s", "the op takes no string as input 0"},
        {"Gather", "x,x", "the op takes no f32 as input 1"},
        {"Pow", "x,l", NULL}, /* two type parameters */
    };
    struct pb longs = pb_tensor("l", PB_INT64, 2, dims, numbers, sizeof numbers), strings = {.size_bytes = 0};
    pb_int(&strings, 1, 1);
    pb_int(&strings, 2, PB_STRING);
    pb_text(&strings, 6, "text");
    pb_text(&strings, 8, "s");
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb graph = {.size_bytes = 0};
        pb_message(&graph, 5, &longs);
        pb_message(&graph, 5, &strings);
        pb_node(&graph, cases[i].op, cases[i].inputs, "y", NULL);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EINVAL, cases[i].text);
    }
}

static void declared_types(void)
{
    static const struct {
        int dtype;
        const char *dims;
        const char *expected; /* of the error; NULL: fine */
    } cases[] = {
        {PB_FLOAT, "2,3", NULL},       {PB_FLOAT, "N,M", NULL},           {PB_INT64, "2,3", "i64[2,3]"},
        {PB_FLOAT, "4,3", "f32[4,3]"}, {PB_FLOAT, "N,7", "f32[?,7]"},     {PB_FLOAT, "2,3,1", "f32[2,3,1]"},
        {PB_FLOAT, "", "f32[]"},       {PB_STRING, "2,3", "STRING[2,3]"},
    };
    for (size_t i = 0; i < 2 * BW_COUNT_OF(cases); i++) {
        bool between = i >= BW_COUNT_OF(cases); /* a value_info, not an output */
        size_t n = i % BW_COUNT_OF(cases);
        struct pb graph = {.size_bytes = 0}, info = pb_value("a", cases[n].dtype, cases[n].dims);
        struct bw_err err = {0};
        pb_node(&graph, "Relu", "x", "a", NULL);
        pb_node(&graph, "Abs", "a", "y", NULL);
        pb_graph_input(&graph, "x", PB_FLOAT, "2,3");
        pb_graph_output(&graph, "y", PB_FLOAT, "2,3");
        pb_message(&graph, between ? 13 : 12, &info);
        struct pb file = pb_model(&graph, 13);
        if (!cases[n].expected) {
            accepted(&file);
            continue;
        }
        BW_EQ(outcome(&file, &err), -EINVAL);
        BW_TRUE(strstr(err.what, "node 'my_Relu' (Relu, opset 13): value 'a' is not what the file declares"));
        BW_STR(err.expected, cases[n].expected);
        BW_STR(err.observed, "f32[2,3]");
    }
}

static void declared_twice(void)
{
    static const float one = 1;
    struct pb weight = pb_tensor("w", PB_FLOAT, 0, NULL, &one, 4);
    for (int i = 0; i < 4; i++) {
        struct pb graph = {.size_bytes = 0},
                  w = pb_value("w", i == 1 ? PB_INT64 : PB_FLOAT, i == 2 ? "5" : ""),
                  x = pb_value("x", PB_FLOAT, i == 3 ? "2,4" : "2,N");
        pb_message(&graph, 5, &weight);
        pb_node(&graph, "Add", "x,w", "y", NULL);
        declare_xy(&graph);
        pb_message(&graph, 13, &x);
        pb_message(&graph, i % 2 ? 11 : 13, &w);
        struct pb file = pb_model(&graph, 13);
        if (i == 0)
            accepted(&file);
        else
            refused(&file, -EBADMSG,
                    i == 3 ? "value 'x' of graph '': declared with two different types"
                           : "value 'w' of graph '': its initializer does not have its declared type");
    }
}

/* ---- graphs inside of nodes ---- */

static void branches_of_if(void)
{
    for (int i = 0; i < 6; i++) {
        static const char *const texts[] = {NULL,
                                            "attribute 'else_branch' is missing",
                                            "its graph '' has 2 outputs instead of 1",
                                            "its branches give output 0 as FLOAT and INT64",
                                            "its graph '' has 1 inputs instead of 0",
                                            "its graph '' has 1 outputs instead of 2"};
        struct pb graph = {.size_bytes = 0}, then = {.size_bytes = 0}, other = {.size_bytes = 0},
                  branches = {.size_bytes = 0};
        pb_node(&then, "Relu", "x", "t", NULL);
        pb_graph_output(&then, "t", PB_FLOAT, "2,3");
        pb_node(&other, i == 3 ? "Shape" : "Neg", "x", "e", NULL);
        pb_graph_output(&other, "e", i == 3 ? PB_INT64 : PB_FLOAT, i == 3 ? "2" : "2,3");
        if (i == 2)
            pb_graph_output(&other, "x", PB_FLOAT, "2,3");
        if (i == 4)
            pb_graph_input(&other, "q", PB_FLOAT, "2,3");
        pb_attribute_graph(&branches, "then_branch", &then);
        if (i != 1)
            pb_attribute_graph(&branches, "else_branch", &other);
        pb_node(&graph, "If", "c", i == 5 ? "y,z" : "y", &branches);
        declare_xy(&graph);
        pb_graph_input(&graph, "c", PB_BOOL, "");
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, texts[i]);
    }
}

static void bodies_of_loop(void)
{
    static const struct {
        const char *outputs; /* of the node */
        int inputs, results, carried_dtype, condition_dtype;
        const char *text;
    } cases[] = {
        {"y", 3, 2, PB_FLOAT, PB_BOOL, NULL},
        {"y", 2, 2, PB_FLOAT, PB_BOOL, "its graph '' has 2 inputs instead of 3"},
        {"y", 4, 2, PB_FLOAT, PB_BOOL, "its graph '' has 4 inputs instead of 3"},
        {"y", 3, 1, PB_FLOAT, PB_BOOL, "its graph '' has 1 outputs instead of 2"},
        {"y", 3, 3, PB_FLOAT, PB_BOOL, "its graph '' has 3 outputs instead of 2"},
        {"y,z", 3, 2, PB_FLOAT, PB_BOOL, "its graph '' has 2 outputs instead of 3"},
        {"y", 3, 2, PB_INT64, PB_BOOL, "its body takes 'a' as FLOAT and returns it as INT64"},
        {"y", 3, 2, PB_FLOAT, PB_FLOAT, "are not INT64, BOOL and BOOL"},
    };
    static const int64_t three = 3;
    struct pb trips = pb_tensor("m", PB_INT64, 0, NULL, &three, 8);
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb graph = {.size_bytes = 0}, body = {.size_bytes = 0}, attributes = {.size_bytes = 0};
        static const char *const names[] = {"i", "c", "a", "b"};
        static const int dtypes[] = {PB_INT64, PB_BOOL, PB_FLOAT, PB_FLOAT};
        for (int k = 0; k < cases[i].inputs; k++)
            pb_graph_input(&body, names[k], dtypes[k], k < 2 ? "" : "2,3");
        pb_node(&body, "Identity", "c", "go", NULL);
        pb_node(&body, "Add", "x,x", "more", NULL);
        pb_graph_output(&body, "go", cases[i].condition_dtype, "");
        for (int k = 1; k < cases[i].results; k++)
            pb_graph_output(&body, "more", cases[i].carried_dtype, "2,3");
        pb_attribute_graph(&attributes, "body", &body);
        pb_message(&graph, 5, &trips);
        pb_node(&graph, "Loop", "m,,x", cases[i].outputs, &attributes);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, cases[i].text);
    }
}

static void bodies_of_scan(void)
{
    static const struct {
        int64_t scanned;
        int inputs;
        const char *outputs, *list;
        int64_t element;
        const char *text;
    } cases[] = {
        {1, 1, "y", NULL, 0, NULL},
        {1, 1, "y", "scan_input_directions", 1, NULL},
        {0, 1, "y", NULL, 0, "0 scanned inputs of 1"},
        {2, 1, "y", NULL, 0, "2 scanned inputs of 1"},
        {1, 2, "y", NULL, 0, "its graph '' has 2 inputs instead of 1"},
        {1, 1, "y,z", NULL, 0, "its graph '' has 1 outputs instead of 2"},
        {1, 1, "y", "scan_input_directions", 7, "scan_input_directions has 7 instead of 0 or 1"},
        {1, 1, "y", "scan_output_directions", -1, "scan_output_directions has -1 instead of 0 or 1"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct pb graph = {.size_bytes = 0}, body = {.size_bytes = 0}, attributes = {.size_bytes = 0};
        pb_graph_input(&body, "a", PB_FLOAT, "3");
        if (cases[i].inputs == 2)
            pb_graph_input(&body, "b", PB_FLOAT, "3");
        pb_node(&body, "Neg", "a", "o", NULL);
        pb_graph_output(&body, "o", PB_FLOAT, "3");
        pb_attribute_graph(&attributes, "body", &body);
        pb_attribute_int(&attributes, "num_scan_inputs", cases[i].scanned);
        if (cases[i].list)
            attribute(&attributes, cases[i].list, 7, 0, cases[i].element);
        pb_node(&graph, "Scan", "x", cases[i].outputs, &attributes);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        judged(&file, -EBADMSG, cases[i].text);
    }
}

/* ---- functions ---- */

static void calls_of_functions(void)
{
    for (int i = 0; i < 4; i++) {
        static const char *const texts[] = {NULL, "(F, opset 1): 2 inputs, but the op has 0 to 1",
                                            "(F, opset 1): 2 outputs, but the op has 0 to 1",
                                            "function 'F': another has this name"};
        struct pb graph = {.size_bytes = 0}, function = {.size_bytes = 0}, node = {.size_bytes = 0},
                  call = {.size_bytes = 0};
        pb_text(&node, 1, "a");
        pb_text(&node, 2, "b");
        pb_text(&node, 4, "Relu");
        pb_text(&function, 1, "F");
        pb_text(&function, 4, "a");
        pb_text(&function, 5, "b");
        pb_message(&function, 7, &node);
        pb_text(&function, 10, "mine");
        pb_names(&call, 1, i == 1 ? "x,x" : "x");
        pb_names(&call, 2, i == 2 ? "y,z" : "y");
        pb_text(&call, 4, "F");
        pb_text(&call, 7, "mine");
        pb_message(&graph, 1, &call);
        declare_xy(&graph);
        struct pb file = pb_model(&graph, 13);
        pb_message(&file, 25, &function);
        if (i == 3)
            pb_message(&file, 25, &function);
        judged(&file, -EBADMSG, texts[i]);
    }
}

BW_TEST_MAIN("onnx_check", {"names_of_values", names_of_values}, {"names_as_text", names_as_text},
             {"names_of_inputs_and_initializers", names_of_inputs_and_initializers},
             {"graphs_without_outputs", graphs_without_outputs}, {"outputs_twice", outputs_twice},
             {"inputs_without_type", inputs_without_type}, {"names_in_branches", names_in_branches},
             {"versions", versions}, {"inputs_and_outputs_of_ops", inputs_and_outputs_of_ops},
             {"attributes_of_ops", attributes_of_ops}, {"attributes_of_two_minds", attributes_of_two_minds},
             {"table_of_ops", table_of_ops}, {"every_op_has_a_schema", every_op_has_a_schema},
             {"every_schema_has_an_op", every_schema_has_an_op}, {"types_that_ops_take", types_that_ops_take},
             {"declared_types", declared_types}, {"declared_twice", declared_twice},
             {"branches_of_if", branches_of_if}, {"bodies_of_loop", bodies_of_loop},
             {"bodies_of_scan", bodies_of_scan}, {"calls_of_functions", calls_of_functions})
