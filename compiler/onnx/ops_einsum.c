/* Einsum: every operand spread over one space of labels, multiplied, summed over the labels that the result
 * has not. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

enum { ELLIPSIS_FIRST = 1 }; /* labels 1, 2, .. stand for the axes of "..."; letters for themselves */

struct labels {
    uint8_t list[BW_TENSOR_RANK_MAX];
    uint32_t count;
};

struct einsum {
    struct labels space; /* the result's labels, then those that are summed */
    int64_t dims[BW_TENSOR_RANK_MAX];
    uint32_t result_rank, ellipsis; /* ellipsis: how many axes */
};

static int find(const struct labels *labels, uint8_t label)
{
    for (uint32_t i = 0; i < labels->count; i++)
        if (labels->list[i] == label)
            return (int)i;
    return -1;
}

static bool push(struct labels *labels, uint8_t label)
{
    if (labels->count == BW_TENSOR_RANK_MAX)
        return false;
    labels->list[labels->count++] = label;
    return true;
}

/* One term of the equation: [*at, end) without blanks; "...", which it has once, becomes `ellipsis` labels,
 * the last ones of ELLIPSIS_FIRST .. */
static bool term_read(const char *at, const char *end, uint32_t ellipsis, uint32_t ellipsis_max,
                      struct labels *labels)
{
    bool dots = false;
    labels->count = 0;
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (end - at >= 3 && !memcmp(at, "...", 3) && !dots) {
            dots = true;
            for (uint32_t i = 0; i < ellipsis; i++)
                if (!push(labels, (uint8_t)(ELLIPSIS_FIRST + ellipsis_max - ellipsis + i)))
                    return false;
            at += 2;
            continue;
        }
        if (!isalpha((unsigned char)*at) || !push(labels, (uint8_t)*at))
            return false;
    }
    return true;
}

static uint32_t letters(const char *at, const char *end, bool *has_ellipsis)
{
    uint32_t count = 0;
    *has_ellipsis = false;
    for (; at < end; at++) {
        count += isalpha((unsigned char)*at) != 0;
        *has_ellipsis |= *at == '.';
    }
    return count;
}

/* Sizes of the labels; 1 broadcasts. */
static int sizes_note(struct bw_onnx_call *c, const struct labels *labels, bw_tensor x, int64_t *sizes)
{
    if (labels->count != bw_tensor_rank(c->g, x))
        return bw_onnx_fail(c, -EINVAL, "%u labels for an operand of rank %u", labels->count,
                            bw_tensor_rank(c->g, x));
    for (uint32_t i = 0; i < labels->count; i++) {
        int64_t *known = &sizes[labels->list[i]], size = bw_tensor_dims(c->g, x)[i];
        if (*known > 1 && size != 1 && size != *known)
            return bw_onnx_fail(c, -EINVAL, "one label with sizes %lld and %lld", (long long)*known,
                                (long long)size);
        *known = *known > 1 || (*known >= 0 && size == 1) ? *known : size;
    }
    return 0;
}

/* x spread over the space. A label that it has twice takes the diagonal: both axes get one index. */
static bw_tensor spread(struct bw_onnx_call *c, const struct einsum *e, const struct labels *labels,
                        bw_tensor x)
{
    bool repeated = false;
    for (uint32_t i = 0; i < labels->count; i++)
        for (uint32_t k = 0; k < i; k++)
            repeated |= labels->list[i] == labels->list[k];
    int64_t dims[BW_TENSOR_RANK_MAX];
    if (repeated) {
        bw_tensor indexes[BW_TENSOR_RANK_MAX];
        for (uint32_t i = 0; i < e->space.count; i++)
            dims[i] = find(labels, e->space.list[i]) < 0 ? 1 : e->dims[i];
        for (uint32_t i = 0; i < labels->count; i++)
            indexes[i] = bw_tensor_indexes(c->g, BW_I64, e->space.count, dims,
                                           (uint32_t)find(&e->space, labels->list[i]));
        return bw_tensor_gather_nd(c->g, x, indexes);
    }
    uint32_t axes[BW_TENSOR_RANK_MAX], count = 0;
    for (uint32_t i = 0; i < e->space.count; i++) {
        int at = find(labels, e->space.list[i]);
        dims[i] = at < 0 ? 1 : bw_tensor_dims(c->g, x)[at];
        if (at >= 0)
            axes[count++] = (uint32_t)at;
    }
    return bw_tensor_reshape(c->g, bw_tensor_permute(c->g, x, axes), e->space.count, dims);
}

/* Without "->" the result has the labels that occur once, in alphabetical order, after the ellipsis. */
static bool result_implied(const struct labels *operands, uint32_t count, uint32_t ellipsis,
                           struct labels *result)
{
    bool fine = true;
    for (uint32_t i = 0; i < ellipsis; i++)
        fine &= push(result, (uint8_t)(ELLIPSIS_FIRST + i));
    for (int label = 'A'; label <= 'z'; label++) {
        uint32_t occurrences = 0;
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t i = 0; i < operands[k].count; i++)
                occurrences += operands[k].list[i] == label;
        if (occurrences == 1 && isalpha(label))
            fine &= push(result, (uint8_t)label);
    }
    return fine;
}

static int equation_read(struct bw_onnx_call *c, const char *text, struct labels *operands, struct einsum *e)
{
    const char *arrow = strstr(text, "->"), *end = arrow ? arrow : text + strlen(text), *at = text;
    for (int pass = 0; pass < 2; pass++) { /* first how many axes "..." has, then the labels */
        at = text;
        for (uint32_t k = 0; k < c->input_count; k++) {
            const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
            uint32_t rank = bw_tensor_rank(c->g, bw_onnx_in(c, k));
            bool dots;
            uint32_t named = letters(at, stop, &dots), own = dots && rank > named ? rank - named : 0;
            if (pass == 0)
                e->ellipsis = own > e->ellipsis ? own : e->ellipsis;
            else if (!term_read(at, stop, own, e->ellipsis, &operands[k]))
                return bw_onnx_fail(c, -EINVAL, "equation '%s'", text);
            if ((comma == NULL) != (k + 1 == c->input_count))
                return bw_onnx_fail(c, -EINVAL, "equation '%s' for %u operands", text, c->input_count);
            at = comma ? comma + 1 : end;
        }
    }
    bool fine = arrow ? term_read(arrow + 2, text + strlen(text), e->ellipsis, e->ellipsis, &e->space)
                      : result_implied(operands, c->input_count, e->ellipsis, &e->space);
    e->result_rank = e->space.count;
    for (uint32_t i = 0; i < e->space.count; i++) /* each is an axis of the result: once */
        fine &= find(&e->space, e->space.list[i]) == (int)i;
    for (uint32_t k = 0; k < c->input_count; k++)
        for (uint32_t i = 0; i < operands[k].count; i++)
            if (find(&e->space, operands[k].list[i]) < 0)
                fine &= push(&e->space, operands[k].list[i]);
    return fine ? c->rc : bw_onnx_fail(c, -EINVAL, "equation '%s'", text);
}

static int einsum(struct bw_onnx_call *c)
{
    const struct bw_onnx_attribute *equation = bw_onnx_attribute(c, "equation", BW_ONNX_ATTR_STRING);
    struct labels *operands = bw_onnx_alloc(c, c->input_count, sizeof *operands);
    struct einsum e = {0};
    int64_t sizes[128];
    char text[64];
    if (!equation || !operands || !c->input_count || !equation->s.size_bytes ||
        equation->s.size_bytes >= sizeof text || memchr(equation->s.data, 0, equation->s.size_bytes))
        return bw_onnx_fail(c, -EINVAL, "no equation, or too long");
    memcpy(text, equation->s.data, equation->s.size_bytes);
    text[equation->s.size_bytes] = 0;
    memset(sizes, -1, sizeof sizes);
    if (equation_read(c, text, operands, &e))
        return c->rc;
    for (uint32_t k = 0; k < c->input_count; k++)
        if (sizes_note(c, &operands[k], bw_onnx_in(c, k), sizes))
            return c->rc;
    uint32_t summed = 0;
    for (uint32_t i = 0; i < e.space.count; i++) {
        e.dims[i] = sizes[e.space.list[i]];
        summed |= i >= e.result_rank ? 1u << i : 0;
        if (e.dims[i] < 0)
            return bw_onnx_fail(c, -EINVAL, "equation '%s': a label of the result is in no operand", text);
    }
    bw_tensor product = {0};
    for (uint32_t k = 0; k < c->input_count; k++) {
        bw_tensor x = spread(c, &e, &operands[k], bw_onnx_in(c, k));
        product = k ? bw_tensor_mul(c->g, product, x) : x;
    }
    product = bw_tensor_expand(c->g, product, e.space.count, e.dims);
    return bw_onnx_out(c, 0, bw_tensor_sum(c->g, product, summed, false));
}

static const struct bw_onnx_op rows[] = {
    {"Einsum", 12, .function = einsum},
};

const struct bw_onnx_ops bw_onnx_ops_einsum = {rows, BW_COUNT_OF(rows)};
