/* The header of a safetensors file: see weights.h. It comes from anywhere. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/weights.h"

enum { NAME_SHOWN_BYTES = 80 }; /* of a name in an error, which has other things to say */

/* Beyond, a double does not hold every integer, and neither does JSON for most who write it. */
static const double INTEGER_MAX = 9007199254740992.0;

struct parser {
    const char *name;
    uint64_t header_bytes, data_bytes;
    struct bw_weights *weights;
    struct bw_err *err;
};

static int damaged(const struct parser *p, const char *tensor, const char *what)
{
    return bw_fail(p->err, -EBADMSG, "safetensors", "%s: tensor '%.*s': %s", p->name, NAME_SHOWN_BYTES,
                   tensor, what);
}

/* A number that is a whole one, at least 0. */
static bool integer_of(const cJSON *item, uint64_t *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= INTEGER_MAX))
        return false;
    *value = (uint64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

/* Bits of an element; 0: no such type. Types: the format's reference implementation, enum Dtype of
 * safetensors/src/tensor.rs; which float8 each is: bindings/python/src/lib.rs, torch's float8_e4m3fn,
 * float8_e5m2, float8_e8m0fnu, and those that end in fnuz. */
static uint32_t type_read(const char *text, enum bw_dtype *dtype)
{
    static const struct {
        const char *name;
        enum bw_dtype dtype;
        uint32_t bits;
    } types[] = {
        {"BOOL", BW_BOOL, 8},
        {"U8", BW_U8, 8},
        {"I8", BW_I8, 8},
        {"F8_E5M2", BW_F8E5M2, 8},
        {"I16", BW_I16, 16},
        {"U16", BW_U16, 16},
        {"F16", BW_F16, 16},
        {"F8_E4M3", BW_F8E4M3FN, 8},
        {"I32", BW_I32, 32},
        {"U32", BW_U32, 32},
        {"F32", BW_F32, 32},
        {"BF16", BW_BF16, 16},
        {"I64", BW_I64, 64},
        {"U64", BW_U64, 64},
        {"F64", BW_F64, 64},
        {"C64", BW_VOID, 64},
        {"F8_E8M0", BW_F8E8M0, 8},
        {"F6_E2M3", BW_VOID, 6},
        {"F6_E3M2", BW_VOID, 6},
        {"F4", BW_VOID, 4},
        {"F8_E4M3FNUZ", BW_F8E4M3FNUZ, 8},
        {"F8_E5M2FNUZ", BW_F8E5M2FNUZ, 8},
    };
    for (size_t i = 0; text && i < BW_COUNT_OF(types); i++) {
        if (!strcmp(types[i].name, text)) {
            *dtype = types[i].dtype;
            return types[i].bits;
        }
    }
    return 0;
}

static int shape_read(const struct parser *p, const cJSON *shape, struct bw_weight *weight,
                      uint64_t *elements)
{
    const cJSON *dim;
    bool empty = false;
    if (!cJSON_IsArray(shape))
        return damaged(p, weight->name, "shape is missing, or no array");
    *elements = 1;
    cJSON_ArrayForEach(dim, shape)
    {
        uint64_t value;
        if (weight->rank == BW_TENSOR_RANK_MAX)
            return bw_fail(p->err, -E2BIG, "safetensors", "%s: tensor '%.*s': rank above %d", p->name,
                           NAME_SHOWN_BYTES, weight->name, BW_TENSOR_RANK_MAX);
        if (!integer_of(dim, &value))
            return damaged(p, weight->name, "a dimension that is no whole number");
        weight->dims[weight->rank++] = (int64_t)value;
        empty |= value == 0;
        if (__builtin_mul_overflow(*elements, value ? value : 1, elements) || *elements > INT64_MAX)
            return damaged(p, weight->name, "a shape too large");
    }
    *elements = empty ? 0 : *elements;
    return 0;
}

static int offsets_read(const struct parser *p, const cJSON *offsets, struct bw_weight *weight)
{
    uint64_t begin, end;
    if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
        !integer_of(cJSON_GetArrayItem(offsets, 0), &begin) ||
        !integer_of(cJSON_GetArrayItem(offsets, 1), &end))
        return damaged(p, weight->name, "data_offsets is missing, or no pair of whole numbers");
    if (begin > end || end > p->data_bytes) {
        damaged(p, weight->name, "data_offsets outside the file");
        bw_err_expected(p->err, "at most %" PRIu64, p->data_bytes);
        bw_err_observed(p->err, "[%" PRIu64 ", %" PRIu64 "]", begin, end);
        return -EBADMSG;
    }
    weight->offset = BW_SAFETENSORS_PREFIX_BYTES + p->header_bytes + begin;
    weight->size_bytes = end - begin;
    return 0;
}

/* Three entries, each once. */
static int entries_check(const struct parser *p, const cJSON *item)
{
    if (!cJSON_IsObject(item))
        return damaged(p, item->string, "no object");
    if (cJSON_GetArraySize(item) != 3)
        return damaged(p, item->string, "expected dtype, shape and data_offsets");
    return 0;
}

static int tensor_fill(const struct parser *p, const cJSON *item, struct bw_weight *weight)
{
    uint64_t elements = 0, needed;
    uint32_t element_bits =
        type_read(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "dtype")), &weight->dtype);
    if (!element_bits)
        return damaged(p, weight->name, "dtype is missing, or none that is known");
    int rc = shape_read(p, cJSON_GetObjectItemCaseSensitive(item, "shape"), weight, &elements);
    if (!rc)
        rc = offsets_read(p, cJSON_GetObjectItemCaseSensitive(item, "data_offsets"), weight);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(elements, (uint64_t)element_bits, &needed) || needed % 8 ||
        needed / 8 != weight->size_bytes) {
        damaged(p, weight->name, "data_offsets do not fit the shape");
        bw_err_expected(p->err, "%" PRIu64 " elements of %u bits", elements, element_bits);
        bw_err_observed(p->err, "%" PRIu64 " bytes", weight->size_bytes);
        return -EBADMSG;
    }
    return 0;
}

static int tensor_add(const struct parser *p, const cJSON *item)
{
    struct bw_weights *weights = p->weights;
    int rc = entries_check(p, item);
    if (rc)
        return rc;
    if (weights->all.count == BW_WEIGHTS_MAX)
        return bw_fail(p->err, -E2BIG, "safetensors", "%s: more than %d tensors", p->name, BW_WEIGHTS_MAX);
    struct bw_weight weight = {.name = strdup(item->string)};
    if (!weight.name || bw_vec_push(&weights->all, weight)) {
        free((char *)(uintptr_t)weight.name);
        return bw_fail(p->err, -ENOMEM, "safetensors", "%s", p->name);
    }
    return tensor_fill(p, item, &weights->all.data[weights->all.count - 1]);
}

static int by_offset(const void *left, const void *right)
{
    const struct bw_weight *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes < b->size_bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* "The byte buffer needs to be entirely indexed, and cannot contain holes." */
static int cover_check(const struct parser *p)
{
    uint64_t at = BW_SAFETENSORS_PREFIX_BYTES + p->header_bytes, end = at + p->data_bytes;
    for (size_t i = 0; i < p->weights->all.count; i++) {
        const struct bw_weight *weight = &p->weights->all.data[i];
        if (weight->offset != at) {
            damaged(p, weight->name,
                    weight->offset < at ? "bytes that another tensor has, too"
                                        : "a gap in front of its bytes");
            bw_err_expected(p->err, "byte %" PRIu64 " of the file", at);
            bw_err_observed(p->err, "byte %" PRIu64, weight->offset);
            return -EBADMSG;
        }
        at += weight->size_bytes;
    }
    if (at != end) {
        bw_fail(p->err, -EBADMSG, "safetensors", "%s: bytes behind the last tensor", p->name);
        bw_err_expected(p->err, "a file of %" PRIu64 " bytes", at);
        bw_err_observed(p->err, "%" PRIu64, end);
        return -EBADMSG;
    }
    return 0;
}

static int metadata_check(const struct parser *p, const cJSON *item)
{
    const cJSON *entry;
    bool strings = cJSON_IsObject(item);
    cJSON_ArrayForEach(entry, item) strings &= cJSON_IsString(entry);
    return strings ? 0
                   : bw_fail(p->err, -EBADMSG, "safetensors", "%s: __metadata__ that is no map of strings",
                             p->name);
}

/* Whether a name holds "\u0000", which ends a string in C. */
static bool has_nul(const char *json, uint64_t json_bytes)
{
    return memmem(json, json_bytes, "\\u0000", 6) != NULL || memchr(json, 0, json_bytes) != NULL;
}

static int json_read(const struct parser *p, const char *json, cJSON **root)
{
    const char *end = NULL;
    *root = NULL;
    if (p->header_bytes && json[0] == '{' && !has_nul(json, p->header_bytes))
        *root = cJSON_ParseWithLengthOpts(json, p->header_bytes, &end, false);
    while (*root && end < json + p->header_bytes && *end == ' ')
        end++;
    if (*root && end == json + p->header_bytes)
        return 0;
    cJSON_Delete(*root);
    *root = NULL;
    return bw_fail(p->err, -EBADMSG, "safetensors", "%s: the header is no JSON object", p->name);
}

int bw_safetensors_parse(const char *name, const char *json, uint64_t json_bytes, uint64_t data_bytes,
                         struct bw_weights *weights, struct bw_err *err)
{
    struct parser p = {name, json_bytes, data_bytes, weights, err};
    cJSON *root;
    const cJSON *item;
    bool metadata = false;
    int rc = json_read(&p, json, &root);
    cJSON_ArrayForEach(item, root)
    {
        bool is_metadata = !strcmp(item->string, "__metadata__");
        if (!rc && is_metadata && metadata)
            rc = damaged(&p, item->string, "twice");
        if (!rc)
            rc = is_metadata ? metadata_check(&p, item) : tensor_add(&p, item);
        metadata |= is_metadata;
    }
    cJSON_Delete(root);
    if (rc)
        return rc;
    if (weights->all.count)
        qsort(weights->all.data, weights->all.count, sizeof weights->all.data[0], by_offset);
    return cover_check(&p);
}
