/* Indexes that point nowhere. What a device gathers is kept within its tensor (bw_tensor_gather_nd), so that
 * a wrong index reads a wrong element and nothing else; where the indexes are known on the host, as constants
 * or as an input of the model, they are refused before anything runs. */
#include <errno.h>
#include <stdio.h>

#include "compiler/onnx/import.h"

int bw_onnx_indexes_within(const struct bw_onnx_model *proto, const struct bw_onnx_index_check *check,
                           const struct bw_array *indexes, struct bw_err *err)
{
    int64_t count = bw_array_elements(indexes);
    const struct bw_onnx_limits *limits = &check->limits;
    for (int64_t i = 0; i < count; i++) {
        int64_t index = bw_onnx_host_int(indexes->dtype, indexes->data, i),
                size = limits->sizes[i % limits->period], low = limits->from_end ? -size : 0;
        if ((index >= low && index < size) || (limits->has_exempt && index == limits->exempt))
            continue;
        char what[160];
        snprintf(what, sizeof what, "input %u has the index %lld, which is not within %lld and %lld",
                 check->input, (long long)index, (long long)low, (long long)size - 1);
        return bw_onnx_node_fail(proto, check->node, check->opset, err, -ERANGE, what);
    }
    return 0;
}

int bw_onnx_check_indexes(struct bw_onnx_call *c, uint32_t input, const struct bw_onnx_limits *limits)
{
    struct bw_onnx_value *value = bw_onnx_has(c, input) ? c->inputs[input] : NULL;
    if (c->rc || !value || !value->host || value->kind != BW_VALUE_ARRAY || !limits->period)
        return c->rc;
    struct bw_onnx_index_check check = {
        .node = c->node, .opset = c->opset, .input = input, .limits = *limits};
    struct bw_array array = {
        .dtype = value->dtype, .rank = value->rank, .data = (void *)(uintptr_t)value->host};
    for (uint32_t i = 0; i < value->rank; i++)
        array.dims[i] = value->dims[i];
    c->rc = bw_onnx_indexes_within(c->session->proto, &check, &array, c->session->err);
    c->session->reported |= c->rc != 0;
    if (c->rc)
        bw_onnx_value_decided(c->session, value);
    if (c->rc || value->fixed || !value->input)
        return c->rc;
    check.model_input = c->session->inputs.data[value->input - 1].model_input;
    if (check.model_input != UINT32_MAX && bw_vec_push(&c->session->index_checks, check))
        return bw_onnx_fail(c, -ENOMEM, "no memory");
    return 0;
}

int bw_onnx_check_index(struct bw_onnx_call *c, uint32_t input, int64_t size)
{
    return bw_onnx_check_indexes(c, input,
                                 &(struct bw_onnx_limits){.period = 1, .sizes = {size}, .from_end = true});
}
