/* Models of one node: what it computes, or the words with which it is refused. */
#ifndef BW_TESTS_ONNX_CASE_H
#define BW_TESTS_ONNX_CASE_H

#include <bellwire/model.h>

#include <errno.h>
#include <math.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/unit/compiler/onnx_writer.h"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* a case leaves out what it does not need */

enum { NUMBERS_MAX = 8, ATTRIBUTES_MAX = 8, CONSTANTS_MAX = 5, ELEMENTS_MAX = 1 << 10 };

/* An attribute: a list of ints (count > 0), one int (count -1), or a word. */
struct attribute {
    const char *name, *word;
    int count;
    int64_t numbers[NUMBERS_MAX];
};

/* An initializer: i64 with these elements (count > 0), f32 with these (has_reals), or f32 of ones. */
struct constant {
    const char *name;
    int rank;
    int64_t dims[4];
    int count;
    int64_t numbers[NUMBERS_MAX];
    bool has_reals;
    float reals[NUMBERS_MAX];
};

struct node_case {
    const char *op, *inputs;
    const char *text; /* of the error; NULL: the model runs */
    struct attribute attributes[ATTRIBUTES_MAX];
    struct constant constants[CONSTANTS_MAX];
    int expected_count; /* of the output's elements; 0: any */
    float expected[NUMBERS_MAX];
};

static inline void put_attribute(struct pb *node, const struct attribute *attribute)
{
    struct pb one = {.size_bytes = 0};
    pb_text(&one, 1, attribute->name);
    if (attribute->word)
        pb_text(&one, 4, attribute->word);
    if (attribute->count < 0)
        pb_int(&one, 3, attribute->numbers[0]);
    for (int i = 0; i < attribute->count; i++)
        pb_int(&one, 8, attribute->numbers[i]);
    pb_int(&one, 20, attribute->word ? 3 : attribute->count < 0 ? 2 : 7);
    pb_message(node, 5, &one);
}

static inline void put_constant(struct pb *graph, const struct constant *constant)
{
    static float ones[ELEMENTS_MAX];
    size_t elements = 1;
    for (int i = 0; i < constant->rank; i++)
        elements *= (size_t)constant->dims[i];
    for (size_t i = 0; i < elements && i < ELEMENTS_MAX; i++)
        ones[i] = 1;
    const float *reals = constant->has_reals ? constant->reals : ones;
    struct pb tensor = constant->count
                           ? pb_tensor(constant->name, PB_INT64, (uint32_t)constant->rank, constant->dims,
                                       constant->numbers, elements * sizeof(int64_t))
                           : pb_tensor(constant->name, PB_FLOAT, (uint32_t)constant->rank, constant->dims,
                                       reals, elements * sizeof *reals);
    pb_message(graph, 5, &tensor);
}

static inline void expect_values(const struct bw_value *value, int count, const float *expected)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < value->array.rank; i++)
        elements *= value->array.dims[i];
    if (!count || !BW_EQ(elements, count) || !BW_EQ(value->array.dtype, BW_F32))
        return;
    for (int i = 0; i < count; i++) {
        float observed = ((const float *)value->array.data)[i];
        if (isnan(expected[i]))
            BW_TRUE(isnan(observed));
        else
            BW_NEAR(observed, expected[i], 0);
    }
}

/* y.. = op(x, constants), x f32 of ones of these dims. */
static inline void run_case(const struct node_case *one, uint32_t rank, const int64_t *dims,
                            const char *outputs, int64_t opset)
{
    static float x[ELEMENTS_MAX];
    static struct pb graph;
    struct pb node = {.size_bytes = 0};
    graph.size_bytes = 0;
    for (int i = 0; i < ELEMENTS_MAX; i++)
        x[i] = 1;
    for (int i = 0; i < ATTRIBUTES_MAX && one->attributes[i].name; i++)
        put_attribute(&node, &one->attributes[i]);
    for (int i = 0; i < CONSTANTS_MAX && one->constants[i].name; i++)
        put_constant(&graph, &one->constants[i]);
    pb_node(&graph, one->op, one->inputs, outputs, &node);
    struct pb x_type = {.size_bytes = 0}, tensor = {.size_bytes = 0}, shape = {.size_bytes = 0},
              info = {.size_bytes = 0}, y = {.size_bytes = 0};
    for (uint32_t i = 0; i < rank; i++) {
        struct pb dim = {.size_bytes = 0};
        pb_int(&dim, 1, dims[i]);
        pb_message(&shape, 1, &dim);
    }
    pb_int(&tensor, 1, PB_FLOAT);
    pb_message(&tensor, 2, &shape);
    pb_message(&x_type, 1, &tensor);
    pb_text(&info, 1, "x");
    pb_message(&info, 2, &x_type);
    pb_message(&graph, 11, &info);
    pb_text(&y, 1, "y");
    pb_message(&graph, 12, &y);
    struct pb file = pb_model(&graph, opset);
    struct bw_value input = {.kind = BW_VALUE_ARRAY, .array = {.dtype = BW_F32, .rank = rank, .data = x}},
                    output = {0};
    memcpy(input.array.dims, dims, rank * sizeof *dims);
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    int rc = bw_model_load_bytes(file.data, file.size_bytes, &model, &err);
    rc = rc ? rc : bw_model_run(model, NULL, &input, &output, &err);
    if (!one->text) {
        BW_OK(rc, &err);
        expect_values(&output, one->expected_count, one->expected);
    } else {
        BW_TRUE(rc == -EINVAL || rc == -ERANGE || rc == -EBADMSG || rc == -ENOTSUP || rc == -E2BIG);
        BW_TRUE(strstr(err.what, "byte ") == err.what && strstr(err.what, one->op) != NULL);
        if (!BW_TRUE(strstr(err.what, one->text) != NULL))
            printf("      expected '%s', said: %s\n", one->text, err.what);
    }
    bw_value_free(&output);
    bw_model_destroy(model);
}

#define RUN_CASES(cases, outputs, opset, ...)                                       \
    do {                                                                            \
        static const int64_t dims[] = {__VA_ARGS__};                                \
        for (size_t i = 0; i < BW_COUNT_OF(cases); i++)                             \
            run_case(&cases[i], (uint32_t)BW_COUNT_OF(dims), dims, outputs, opset); \
    } while (0)

#define WEIGHT(...) .constants = {{"w", 4, {__VA_ARGS__}, 0, {0}}}
#define LIST(name, ...)                                                 \
    {                                                                   \
        name, NULL, (int)BW_COUNT_OF(((const int64_t[]){__VA_ARGS__})), \
        {                                                               \
            __VA_ARGS__                                                 \
        }                                                               \
    }
#define NUMBER(name, number) \
    {                        \
        name, NULL, -1,      \
        {                    \
            number           \
        }                    \
    }
#define WORD(name, word) \
    {                    \
        name, word, 0,   \
        {                \
            0            \
        }                \
    }
/* f32 constants of these dims. */
#define ONES(name, ...)                                                             \
    {                                                                               \
        name, (int)BW_COUNT_OF(((const int64_t[]){__VA_ARGS__})), {__VA_ARGS__}, 0, \
        {                                                                           \
            0                                                                       \
        }                                                                           \
    }
/* f32 constants of rank 1 with these elements. */
#define REALS(name, ...)                                                               \
    {                                                                                  \
        name, 1, {(int64_t)BW_COUNT_OF(((const float[]){__VA_ARGS__}))}, 0, {0}, true, \
        {                                                                              \
            __VA_ARGS__                                                                \
        }                                                                              \
    }
/* i64 constants of rank 1. */
#define INTS(name, ...)                                                    \
    {                                                                      \
        name, 1, {(int64_t)BW_COUNT_OF(((const int64_t[]){__VA_ARGS__}))}, \
            (int)BW_COUNT_OF(((const int64_t[]){__VA_ARGS__})),            \
        {                                                                  \
            __VA_ARGS__                                                    \
        }                                                                  \
    }

#endif
