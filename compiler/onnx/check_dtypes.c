/* Element types that a file names: one that is not supported, or that ONNX does not have, is refused with the
 * node that has to do with it. */
#include <errno.h>

#include "compiler/onnx/check.h"

static int code_of(int64_t onnx_dtype)
{
    return bw_onnx_dtype_name(onnx_dtype) ? -ENOTSUP : -EBADMSG;
}

/* BW_ONNX_UNDEFINED: nothing is said, whoever needs it complains. */
static bool is_supported(int64_t onnx_dtype)
{
    return onnx_dtype == BW_ONNX_UNDEFINED || onnx_dtype == BW_ONNX_STRING ||
           bw_onnx_dtype_of(onnx_dtype) != BW_VOID;
}

static bool has(const bw_symbol *symbols, uint32_t count, bw_symbol symbol)
{
    for (uint32_t i = 0; i < count; i++)
        if (symbols[i] == symbol)
            return true;
    return false;
}

/* The first node that reads a value, or makes it, or NULL. */
static const struct bw_onnx_node *node_of(const struct bw_onnx_graph *graph, bw_symbol symbol)
{
    for (uint32_t n = 0; symbol && n < graph->node_count; n++) {
        const struct bw_onnx_node *node = &graph->nodes[n];
        if (has(node->inputs, node->input_count, symbol) || has(node->outputs, node->output_count, symbol))
            return node;
    }
    return NULL;
}

int bw_onnx_check_dtype(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph, bw_symbol symbol,
                        uint64_t offset, int64_t onnx_dtype)
{
    if (is_supported(onnx_dtype))
        return 0;
    struct bw_onnx_text name = bw_onnx_text(k->model->symbols.data[symbol]),
                        type = bw_onnx_dtype_text(onnx_dtype);
    const struct bw_onnx_node *node = node_of(graph, symbol);
    if (node)
        return bw_onnx_check_fail(k, node, code_of(onnx_dtype), "value '%s' (byte %llu) has type %s",
                                  name.text, (unsigned long long)offset, type.text);
    struct bw_bytes standard = {0};
    return bw_fail(k->err, code_of(onnx_dtype), "onnx", "byte %llu: value '%s' (opset %lld) has type %s",
                   (unsigned long long)offset, name.text, (long long)bw_onnx_opset_of(k->opsets, standard, 1),
                   type.text);
}

int bw_onnx_check_type(const struct bw_onnx_checker *k, const struct bw_onnx_graph *graph,
                       const struct bw_onnx_value_info *info)
{
    const struct bw_onnx_type *type = &info->type;
    while (type->element)
        type = type->element;
    return type->kind == BW_ONNX_KIND_TENSOR
               ? bw_onnx_check_dtype(k, graph, info->symbol, info->offset, type->dtype)
               : 0;
}

int bw_onnx_check_attribute_dtypes(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const struct bw_onnx_attribute *attribute = &node->attributes[i];
        if (attribute->tensor && !is_supported(attribute->tensor->dtype))
            return bw_onnx_check_fail(
                k, node, code_of(attribute->tensor->dtype), "attribute '%s' (byte %llu) has type %s",
                bw_onnx_text(attribute->name).text, (unsigned long long)attribute->tensor->offset,
                bw_onnx_dtype_text(attribute->tensor->dtype).text);
    }
    return 0;
}
