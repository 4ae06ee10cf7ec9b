/* The list of op tables. */
#include "compiler/onnx/ops.h"

#include <string.h>

#include "base/bits.h"

static const struct bw_onnx_ops *const tables[] = {
    &bw_onnx_ops_math,     &bw_onnx_ops_shape,  &bw_onnx_ops_reduce, &bw_onnx_ops_nn,
    &bw_onnx_ops_index,    &bw_onnx_ops_quant,  &bw_onnx_ops_cast,   &bw_onnx_ops_control,
    &bw_onnx_ops_sequence, &bw_onnx_ops_host,   &bw_onnx_ops_rnn,    &bw_onnx_ops_resize,
    &bw_onnx_ops_sample,   &bw_onnx_ops_einsum, &bw_onnx_ops_string, &bw_onnx_ops_signal,
    &bw_onnx_ops_training, &bw_onnx_ops_random};

const struct bw_onnx_ops *bw_onnx_ops_at(uint32_t index)
{
    return index < BW_COUNT_OF(tables) ? tables[index] : NULL;
}

static bool domain_matches(const struct bw_onnx_op *op, struct bw_bytes domain)
{
    bool is_default = !domain.size_bytes || bw_onnx_equals(domain, "ai.onnx");
    return op->domain ? bw_onnx_equals(domain, op->domain) : is_default;
}

const struct bw_onnx_op *bw_onnx_op_find(struct bw_bytes domain, struct bw_bytes op_type, int64_t opset,
                                         bool *known)
{
    const struct bw_onnx_op *best = NULL;
    const struct bw_onnx_ops *table;
    *known = false;
    for (uint32_t t = 0; (table = bw_onnx_ops_at(t)); t++)
        for (uint32_t i = 0; i < table->count; i++) {
            const struct bw_onnx_op *op = &table->rows[i];
            if (!bw_onnx_equals(op_type, op->name) || !domain_matches(op, domain))
                continue;
            *known = true;
            if (op->first_opset <= opset && (!best || op->first_opset > best->first_opset))
                best = op;
        }
    return best;
}
