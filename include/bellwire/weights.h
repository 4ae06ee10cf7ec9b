/* Tensors in a file, safetensors or .npy: the names, types and shapes now, the elements when they are used.
 */
#ifndef BW_WEIGHTS_H
#define BW_WEIGHTS_H

#include <bellwire/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_weights;

struct bw_weight {
    const char *name;    /* "" for the array of a .npy file; any bytes but NUL */
    enum bw_dtype dtype; /* FP8: a storage type. BW_VOID: of a type that tensors do not have (FP4, FP6,
                            complex); it is listed and not loaded */
    uint32_t rank;
    int64_t dims[BW_TENSOR_RANK_MAX];
    uint64_t offset, size_bytes; /* in the file */
};

/* Reads the header of the file that the disk is ("disk:PATH"). -EBADMSG: damaged, says which tensor and
 * where; -E2BIG: more tensors or dimensions than there may be; -ENOTSUP: an element type that is not loaded
 * lazily
 * (.npy: strings, structures, big-endian). The disk stays open until the weights are closed, and until plans
 * and graphs made of them are gone. */
int bw_weights_open(struct bw_device *disk, struct bw_weights **weights, struct bw_err *err);
void bw_weights_close(struct bw_weights *weights);

/* In the order of their bytes in the file. */
uint32_t bw_weights_count(const struct bw_weights *weights);
const struct bw_weight *bw_weights_at(const struct bw_weights *weights, uint32_t index);
/* -ENOENT: none of that name. */
int bw_weights_find(const struct bw_weights *weights, const char *name, uint32_t *index, struct bw_err *err);

/* The tensor as a constant whose bytes are read when they are used: bw_tensor_file. FP8 is f32, decoded where
 * it is used (bw_tensor_decode): its bytes are all that is read. Errors are the graph's. Reading an array in
 * Fortran order is index arithmetic like any permutation. */
bw_tensor bw_weights_tensor(struct bw_weights *weights, struct bw_tensor_graph *g, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
