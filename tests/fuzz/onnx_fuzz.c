/* Any bytes as an ONNX model: parsed, and imported for small inputs if it has a form that allows it. */
#include <bellwire/model.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUTS_MAX = 8, ELEMENTS_MAX = 4096 };

/* The declared shape with free dimensions as 2; false when that is not small. */
static int fill(const struct bw_model *model, uint32_t index, struct bw_value *value, const void *zeros)
{
    struct bw_model_value declared;
    bw_model_input(model, index, &declared);
    if (declared.kind != BW_VALUE_ARRAY)
        return 0;
    *value =
        (struct bw_value){.kind = BW_VALUE_ARRAY, .array = {.dtype = declared.dtype, .rank = declared.rank}};
    int64_t elements = 1;
    for (uint32_t i = 0; i < declared.rank; i++) {
        value->array.dims[i] = declared.dims[i].size < 0 ? 2 : declared.dims[i].size;
        if (value->array.dims[i] > ELEMENTS_MAX || (elements *= value->array.dims[i]) > ELEMENTS_MAX)
            return 0;
    }
    value->array.data = (void *)(uintptr_t)zeros;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bw_model *model = NULL;
    struct bw_err err = {0};
    if (bw_model_load_bytes(data, size, &model, &err)) {
        if (!err.code || !err.what[0])
            abort(); /* refused without a word */
        return 0;
    }
    struct bw_value inputs[INPUTS_MAX] = {{0}};
    void *zeros = calloc(ELEMENTS_MAX, 8);
    int small = zeros && bw_model_input_count(model) <= INPUTS_MAX;
    for (uint32_t i = 0; small && i < bw_model_input_count(model); i++)
        small = fill(model, i, &inputs[i], zeros);
    struct bw_tensor_graph *graph = NULL;
    bw_tensor *outputs = NULL;
    uint32_t count = 0;
    if (small && !bw_model_graph(model, inputs, &graph, &outputs, &count, &err)) {
        free(outputs);
        bw_tensor_graph_destroy(graph);
    }
    free(zeros);
    bw_model_destroy(model);
    return 0;
}
