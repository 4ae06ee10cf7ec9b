/* What stands behind struct bw_weights, and the header of a safetensors file. */
#ifndef BW_COMPILER_WEIGHTS_H
#define BW_COMPILER_WEIGHTS_H

#include <bellwire/weights.h>

#include "base/vec.h"

/* https://github.com/huggingface/safetensors, README.md, "Format": 8 bytes of the header's size, little
 * endian, then that many bytes of JSON, then the elements, whose offsets count from there. */
enum {
    BW_SAFETENSORS_PREFIX_BYTES = 8,
    BW_SAFETENSORS_HEADER_BYTES_MAX = 100000000, /* of the JSON, as the format says */
    BW_WEIGHTS_MAX = 1 << 20,                    /* tensors of one file: what such a header holds */
};

struct bw_weights {
    struct bw_device *disk;
    BW_VEC(struct bw_weight) all; /* names are malloc'd; sorted by offset */
    BW_VEC(uint32_t) by_name;
    bool fortran_order; /* the one array of a .npy file: dims are as NumPy has them */
};

/* Adds the tensors that the JSON lists, checked: names once each, element types, shapes, offsets that cover
 * all data_bytes that follow it with no gap and no overlap. `name` stands in errors. 0, -EBADMSG, -E2BIG,
 * -ENOMEM. After an error the weights hold what bw_weights_clear frees. */
int bw_safetensors_parse(const char *name, const char *json, uint64_t json_bytes, uint64_t data_bytes,
                         struct bw_weights *weights, struct bw_err *err);
void bw_weights_clear(struct bw_weights *weights);

#endif
