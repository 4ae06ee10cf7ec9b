/* Weights: what is in the file, from its header. Contract in include/bellwire/weights.h. */
#include "compiler/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/io_npy.h"
#include "compiler/tensor_internal.h"

enum { NPY_PREFIX_BYTES = 1 << 16 }; /* where the header has to end: NumPy pads it to 64 bytes, mostly 128 */

void bw_weights_clear(struct bw_weights *weights)
{
    for (size_t i = 0; i < weights->all.count; i++)
        free((char *)(uintptr_t)weights->all.data[i].name);
    bw_vec_free(&weights->all);
    bw_vec_free(&weights->by_name);
}

static const char *name_of(const struct bw_weights *weights)
{
    return bw_device_info(weights->disk)->name;
}

/* Bytes of the file. malloc'd. */
static int bytes_read(const struct bw_weights *weights, uint64_t offset, uint64_t size_bytes, char **data,
                      struct bw_err *err)
{
    struct bw_buffer *range;
    *data = NULL;
    int rc = bw_buffer_file(weights->disk, offset, size_bytes, &range, err);
    if (rc)
        return rc;
    *data = malloc(size_bytes);
    rc = *data ? bw_buffer_read(range, 0, *data, size_bytes, err)
               : bw_fail(err, -ENOMEM, "weights", "%s: %llu bytes", name_of(weights),
                         (unsigned long long)size_bytes);
    bw_buffer_destroy(range);
    if (rc) {
        free(*data);
        *data = NULL;
    }
    return rc;
}

static int safetensors_open(struct bw_weights *weights, uint64_t file_bytes, uint64_t json_bytes,
                            struct bw_err *err)
{
    uint64_t most_bytes = file_bytes - BW_SAFETENSORS_PREFIX_BYTES;
    if (json_bytes > BW_SAFETENSORS_HEADER_BYTES_MAX || json_bytes > most_bytes || json_bytes < 2) {
        bw_fail(err, -EBADMSG, "weights", "%s is neither a safetensors nor a .npy file", name_of(weights));
        bw_err_expected(err, "a header of at most %llu bytes",
                        (unsigned long long)(most_bytes < BW_SAFETENSORS_HEADER_BYTES_MAX
                                                 ? most_bytes
                                                 : BW_SAFETENSORS_HEADER_BYTES_MAX));
        bw_err_observed(err, "%llu", (unsigned long long)json_bytes);
        return -EBADMSG;
    }
    char *json;
    int rc = bytes_read(weights, BW_SAFETENSORS_PREFIX_BYTES, json_bytes, &json, err);
    if (rc)
        return rc;
    rc = bw_safetensors_parse(name_of(weights), json, json_bytes, most_bytes - json_bytes, weights, err);
    free(json);
    return rc;
}

static int npy_open(struct bw_weights *weights, uint64_t file_bytes, struct bw_err *err)
{
    uint64_t prefix_bytes = file_bytes < NPY_PREFIX_BYTES ? file_bytes : NPY_PREFIX_BYTES;
    struct bw_npy_layout layout;
    char *prefix;
    int rc = bytes_read(weights, 0, prefix_bytes, &prefix, err);
    if (!rc)
        rc = bw_npy_layout(name_of(weights), (const uint8_t *)prefix, prefix_bytes, file_bytes, &layout, err);
    free(prefix);
    if (rc)
        return rc;
    struct bw_weight weight = {.name = strdup(""),
                               .dtype = layout.dtype,
                               .rank = layout.rank,
                               .offset = layout.offset,
                               .size_bytes = layout.size_bytes};
    memcpy(weight.dims, layout.dims, sizeof weight.dims);
    weights->fortran_order = layout.fortran_order;
    if (weight.name && !bw_vec_push(&weights->all, weight))
        return 0;
    free((char *)(uintptr_t)weight.name);
    return bw_fail(err, -ENOMEM, "weights", "%s", name_of(weights));
}

static const struct bw_weight *named(const struct bw_weights *weights, uint32_t place)
{
    return &weights->all.data[weights->by_name.data[place]];
}

static int by_name(const void *left, const void *right, void *user)
{
    const struct bw_weights *weights = user;
    const struct bw_weight *a = &weights->all.data[*(const uint32_t *)left],
                           *b = &weights->all.data[*(const uint32_t *)right];
    return strcmp(a->name, b->name);
}

/* Sorts, and refuses what is there twice. */
static int names_sort(struct bw_weights *weights, struct bw_err *err)
{
    uint32_t count = (uint32_t)weights->all.count;
    for (uint32_t i = 0; i < count; i++)
        if (bw_vec_push(&weights->by_name, i))
            return bw_fail(err, -ENOMEM, "weights", "%s", name_of(weights));
    if (count)
        qsort_r(weights->by_name.data, count, sizeof weights->by_name.data[0], by_name, weights);
    for (uint32_t i = 1; i < count; i++)
        if (!strcmp(named(weights, i - 1)->name, named(weights, i)->name))
            return bw_fail(err, -EBADMSG, "weights", "%s: tensor '%.80s' twice", name_of(weights),
                           named(weights, i)->name);
    return 0;
}

static int file_open(struct bw_weights *weights, struct bw_err *err)
{
    uint64_t file_bytes = bw_device_info(weights->disk)->file_bytes, json_bytes = 0;
    char *prefix;
    if (file_bytes < BW_SAFETENSORS_PREFIX_BYTES)
        return bw_fail(err, -EBADMSG, "weights", "%s: a file of %llu bytes", name_of(weights),
                       (unsigned long long)file_bytes);
    int rc = bytes_read(weights, 0, BW_SAFETENSORS_PREFIX_BYTES, &prefix, err);
    if (rc)
        return rc;
    bool npy = !memcmp(prefix, "\x93NUMPY", 6);
    for (int i = 0; i < BW_SAFETENSORS_PREFIX_BYTES; i++)
        json_bytes |= (uint64_t)(uint8_t)prefix[i] << 8 * i;
    free(prefix);
    rc = npy ? npy_open(weights, file_bytes, err) : safetensors_open(weights, file_bytes, json_bytes, err);
    return rc ? rc : names_sort(weights, err);
}

int bw_weights_open(struct bw_device *disk, struct bw_weights **out, struct bw_err *err)
{
    struct bw_weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return bw_fail(err, -ENOMEM, "weights", "%s", bw_device_info(disk)->name);
    weights->disk = disk;
    int rc = file_open(weights, err);
    if (rc) {
        bw_weights_close(weights);
        return rc;
    }
    *out = weights;
    return 0;
}

void bw_weights_close(struct bw_weights *weights)
{
    if (!weights)
        return;
    bw_weights_clear(weights);
    free(weights);
}

uint32_t bw_weights_count(const struct bw_weights *weights)
{
    return (uint32_t)weights->all.count;
}

const struct bw_weight *bw_weights_at(const struct bw_weights *weights, uint32_t index)
{
    return index < weights->all.count ? &weights->all.data[index] : NULL;
}

int bw_weights_find(const struct bw_weights *weights, const char *name, uint32_t *index, struct bw_err *err)
{
    uint32_t low = 0, high = (uint32_t)weights->by_name.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(named(weights, middle)->name, name);
        if (order == 0) {
            *index = weights->by_name.data[middle];
            return 0;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return bw_fail(err, -ENOENT, "weights", "%s: no tensor '%.80s'", name_of(weights), name);
}

/* The axes the other way round: a Fortran array is the row-major one of its transpose. */
static bw_tensor fortran_tensor(struct bw_tensor_graph *g, const struct bw_weight *weight,
                                struct bw_buffer *range)
{
    int64_t dims[BW_TENSOR_RANK_MAX];
    uint32_t axes[BW_TENSOR_RANK_MAX];
    for (uint32_t i = 0; i < weight->rank; i++) {
        dims[i] = weight->dims[weight->rank - 1 - i];
        axes[i] = weight->rank - 1 - i;
    }
    return bw_tensor_permute(g, bw_tensor_file(g, weight->dtype, weight->rank, dims, range), axes);
}

bw_tensor bw_weights_tensor(struct bw_weights *weights, struct bw_tensor_graph *g, uint32_t index)
{
    const struct bw_weight *weight = bw_weights_at(weights, index);
    struct bw_buffer *range = NULL;
    struct bw_err err;
    if (!weight)
        return bw_tensor_fail(g, -EINVAL, "%s: weight %u of %u", name_of(weights), index,
                              bw_weights_count(weights));
    if (weight->dtype == BW_VOID)
        return bw_tensor_fail(g, -ENOTSUP, "%s: tensor '%.80s' has an element type that tensors do not",
                              name_of(weights), weight->name);
    enum bw_dtype carrier = bw_dtype_carrier(weight->dtype);
    if (!weight->size_bytes)
        return bw_tensor_decode(g, weight->dtype,
                                bw_tensor_constant(g, carrier, weight->rank, weight->dims, ""));
    if (bw_buffer_file(weights->disk, weight->offset, weight->size_bytes, &range, &err))
        return bw_tensor_fail(g, err.code, "%s", err.what);
    bw_tensor tensor = weights->fortran_order && weight->rank > 1
                           ? fortran_tensor(g, weight, range)
                           : bw_tensor_file(g, carrier, weight->rank, weight->dims, range);
    bw_buffer_destroy(range);
    return bw_tensor_decode(g, weight->dtype, tensor);
}
