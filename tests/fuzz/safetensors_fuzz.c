/* Any bytes as a safetensors header, in front of as many bytes as the first says: refused, or tensors that
 * cover these bytes and do not overlap. */
#include <stdlib.h>
#include <string.h>

#include "compiler/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bw_weights weights = {0};
    struct bw_err err;
    if (!size)
        return 0;
    uint64_t data_bytes = data[0], at = BW_SAFETENSORS_PREFIX_BYTES + (size - 1);
    int rc = bw_safetensors_parse("fuzz", (const char *)data + 1, size - 1, data_bytes, &weights, &err);
    if (rc && (err.code != rc || !err.what[0]))
        abort();
    for (size_t i = 0; i < weights.all.count && !rc; i++) {
        const struct bw_weight *weight = &weights.all.data[i];
        uint64_t elements = 1;
        for (uint32_t k = 0; k < weight->rank; k++)
            elements *= (uint64_t)weight->dims[k];
        if (weight->offset != at || weight->rank > BW_TENSOR_RANK_MAX)
            abort();
        if (weight->dtype != BW_VOID && elements * bw_dtype_bytes(weight->dtype) != weight->size_bytes)
            abort();
        at += weight->size_bytes;
    }
    if (!rc && at != BW_SAFETENSORS_PREFIX_BYTES + (size - 1) + data_bytes)
        abort();
    bw_weights_clear(&weights);
    return 0;
}
