/* Sequences and optionals: host-side lists of values. Tensors in them stay lazy. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static struct bw_onnx_value *sequence_in(struct bw_onnx_call *c, uint32_t input)
{
    if (bw_onnx_has(c, input) && c->inputs[input]->kind == BW_VALUE_SEQUENCE)
        return c->inputs[input];
    bw_onnx_fail(c, -EINVAL, "input %u is no sequence", input);
    return NULL;
}

/* A position in 0 .. count (inclusive: for inserting) or 0 .. count - 1; negative ones count from the end. */
static int position_in(struct bw_onnx_call *c, uint32_t input, uint32_t count, bool inclusive,
                       uint32_t *position)
{
    int64_t given = 0;
    if (bw_onnx_decide_int(c, c->inputs[input], &given))
        return c->rc;
    given += given < 0 ? count : 0;
    if (given < 0 || given > (int64_t)count - !inclusive)
        return bw_onnx_fail(c, -ERANGE, "position %lld in a sequence of %u", (long long)given, count);
    *position = (uint32_t)given;
    return 0;
}

static int sequence_construct(struct bw_onnx_call *c)
{
    for (uint32_t i = 0; i < c->input_count; i++)
        if (!bw_onnx_has(c, i))
            return bw_onnx_fail(c, -EINVAL, "input %u is missing", i);
    return bw_onnx_out_value(c, 0, bw_onnx_value_sequence(c->session, c->inputs, c->input_count));
}

static int sequence_empty(struct bw_onnx_call *c)
{
    return bw_onnx_out_value(c, 0, bw_onnx_value_sequence(c->session, NULL, 0));
}

static int sequence_insert(struct bw_onnx_call *c)
{
    struct bw_onnx_value *sequence = sequence_in(c, 0);
    if (!sequence || !bw_onnx_has(c, 1))
        return bw_onnx_fail(c, -EINVAL, "no value to insert");
    uint32_t count = sequence->item_count, position = count;
    if (bw_onnx_has(c, 2) && position_in(c, 2, count, true, &position))
        return c->rc;
    struct bw_onnx_value **items = bw_onnx_alloc(c, (uint64_t)count + 1, sizeof *items);
    if (!items)
        return c->rc;
    for (uint32_t i = 0; i <= count; i++)
        items[i] = i < position ? sequence->items[i] : i == position ? c->inputs[1] : sequence->items[i - 1];
    return bw_onnx_out_value(c, 0, bw_onnx_value_sequence(c->session, items, count + 1));
}

static int sequence_erase(struct bw_onnx_call *c)
{
    struct bw_onnx_value *sequence = sequence_in(c, 0);
    if (!sequence)
        return c->rc;
    uint32_t count = sequence->item_count, position = count - 1;
    if (!count || (bw_onnx_has(c, 1) && position_in(c, 1, count, false, &position)))
        return bw_onnx_fail(c, -ERANGE, "an empty sequence");
    struct bw_onnx_value **items = bw_onnx_alloc(c, count, sizeof *items);
    for (uint32_t i = 0; items && i + 1 < count; i++)
        items[i] = sequence->items[i < position ? i : i + 1];
    return items ? bw_onnx_out_value(c, 0, bw_onnx_value_sequence(c->session, items, count - 1)) : c->rc;
}

static int sequence_at(struct bw_onnx_call *c)
{
    struct bw_onnx_value *sequence = sequence_in(c, 0);
    uint32_t position = 0;
    if (!sequence || !bw_onnx_has(c, 1) || position_in(c, 1, sequence->item_count, false, &position))
        return bw_onnx_fail(c, -EINVAL, "no position");
    return bw_onnx_out_value(c, 0, sequence->items[position]);
}

static int sequence_length(struct bw_onnx_call *c)
{
    struct bw_onnx_value *sequence = sequence_in(c, 0);
    return sequence ? bw_onnx_out(c, 0, bw_tensor_scalar_int(c->g, BW_I64, sequence->item_count)) : c->rc;
}

static bw_tensor part_of(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, int64_t start, int64_t stop,
                         bool keep)
{
    int64_t starts[BW_TENSOR_RANK_MAX] = {0}, stops[BW_TENSOR_RANK_MAX], steps[BW_TENSOR_RANK_MAX],
            kept[BW_TENSOR_RANK_MAX];
    uint32_t rank = bw_tensor_rank(c->g, x), kept_rank = 0;
    for (uint32_t i = 0; i < rank; i++) {
        stops[i] = bw_tensor_dims(c->g, x)[i];
        steps[i] = 1;
        if (i != axis)
            kept[kept_rank++] = stops[i];
    }
    starts[axis] = start;
    stops[axis] = stop;
    bw_tensor part = bw_tensor_slice(c->g, x, starts, stops, steps);
    return keep ? part : bw_tensor_reshape(c->g, part, kept_rank, kept);
}

/* Parts of given sizes, of one size, or single elements (without their axis unless keepdims). */
static int split_to_sequence(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), bw_tensor_rank(c->g, x));
    struct bw_onnx_ints split = bw_onnx_has(c, 1) ? bw_onnx_ints_in(c, 1) : (struct bw_onnx_ints){0};
    bool sizes = split.given && c->inputs[1]->rank == 1, keep = split.given || bw_onnx_int(c, "keepdims", 1);
    if (c->rc)
        return c->rc;
    int64_t size = bw_tensor_dims(c->g, x)[axis], part = split.given && !sizes ? split.data[0] : 1;
    if (part < 1 || (split.given && c->inputs[1]->rank > 1))
        return bw_onnx_fail(c, -EINVAL, "parts of size %lld", (long long)part);
    int64_t count = sizes ? (int64_t)split.count : size / part + (size % part != 0), start = 0;
    struct bw_onnx_value **items = bw_onnx_alloc(c, (uint64_t)count, sizeof *items);
    for (int64_t i = 0; items && i < count; i++) {
        int64_t wanted = sizes                 ? split.data[i]
                         : part < size - start ? part
                                               : size - start,
                stop = start + (wanted <= size - start ? wanted : 0);
        if (wanted < 0 || wanted > size - start)
            return bw_onnx_fail(c, -EINVAL, "part %lld of size %lld does not fit", (long long)i,
                                (long long)wanted);
        if (bw_onnx_iteration(c))
            return c->rc;
        items[i] = bw_onnx_value_tensor(c->session, part_of(c, x, axis, start, stop, keep));
        if (!items[i])
            return bw_onnx_fail(c, -EINVAL, "part %lld", (long long)i);
        start = stop;
    }
    if (items && start != size)
        return bw_onnx_fail(c, -EINVAL, "parts of %lld elements together, not %lld", (long long)start,
                            (long long)size);
    return items ? bw_onnx_out_value(c, 0, bw_onnx_value_sequence(c->session, items, (uint32_t)count))
                 : c->rc;
}

static int concat_from_sequence(struct bw_onnx_call *c)
{
    struct bw_onnx_value *sequence = sequence_in(c, 0);
    if (!sequence || !sequence->item_count)
        return bw_onnx_fail(c, -EINVAL, "nothing to join");
    bool stacks = bw_onnx_int(c, "new_axis", 0);
    uint32_t count = sequence->item_count, rank = sequence->items[0]->rank + stacks;
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), rank);
    bw_tensor *parts = bw_onnx_alloc(c, count, sizeof *parts);
    for (uint32_t i = 0; !c->rc && i < count; i++) {
        struct bw_onnx_value *value = sequence->items[i];
        int64_t dims[BW_TENSOR_RANK_MAX];
        if (value->kind != BW_VALUE_ARRAY || value->rank + stacks != rank || rank > BW_TENSOR_RANK_MAX)
            return bw_onnx_fail(c, -EINVAL, "item %u does not fit", i);
        for (uint32_t k = 0; k < rank; k++)
            dims[k] = stacks && k == axis ? 1 : value->dims[k - (stacks && k > axis)];
        parts[i] = bw_tensor_reshape(c->g, bw_onnx_tensor_of(c->session, value), rank, dims);
    }
    return c->rc ? c->rc : bw_onnx_out(c, 0, bw_tensor_concat(c->g, parts, count, axis));
}

/* The body once per item; inputs that are no sequences are the same each time. */
static int sequence_map(struct bw_onnx_call *c)
{
    const struct bw_onnx_graph *body = bw_onnx_graph_attribute(c, "body");
    struct bw_onnx_value *first = sequence_in(c, 0);
    if (!body || !first)
        return c->rc;
    uint32_t count = first->item_count, outputs = body->output_count;
    struct bw_onnx_value **inputs = bw_onnx_alloc(c, c->input_count, sizeof *inputs),
                         **results = bw_onnx_alloc(c, outputs, sizeof *results);
    struct bw_onnx_value **items = bw_onnx_alloc(c, (uint64_t)count * outputs, sizeof *items);
    int rc = c->rc;
    uint32_t pinned = 0;
    for (uint32_t i = 0; !rc && i < count; i++) {
        for (uint32_t k = 0; k < c->input_count; k++) {
            struct bw_onnx_value *value = c->inputs[k];
            bool is_sequence = value && value->kind == BW_VALUE_SEQUENCE;
            if (!value || (is_sequence && value->item_count <= i))
                return bw_onnx_fail(c, -EINVAL, "input %u has no item %u", k, i);
            inputs[k] = is_sequence ? value->items[i] : value;
        }
        rc = bw_onnx_iteration(c);
        if (!rc)
            rc = bw_onnx_subgraph(c, body, inputs, c->input_count, results);
        if (!rc)
            rc = bw_onnx_pin(c, results, outputs);
        pinned += rc ? 0 : outputs;
        for (uint32_t k = 0; !rc && k < outputs; k++)
            items[k * count + i] = results[k];
    }
    bw_onnx_unpin(c, pinned);
    for (uint32_t k = 0; !rc && k < outputs; k++)
        rc = bw_onnx_out_value(c, k, bw_onnx_value_sequence(c->session, items + k * count, count));
    return rc;
}

/* An optional that holds a value is that value. */
static int optional(struct bw_onnx_call *c)
{
    return bw_onnx_out_value(c, 0,
                             c->input_count && c->inputs[0] ? c->inputs[0] : bw_onnx_value_none(c->session));
}

static int optional_has_element(struct bw_onnx_call *c)
{
    return bw_onnx_out(c, 0, bw_tensor_scalar_int(c->g, BW_BOOL, bw_onnx_has(c, 0)));
}

static int optional_get_element(struct bw_onnx_call *c)
{
    if (!bw_onnx_has(c, 0))
        return bw_onnx_fail(c, -EINVAL, "an optional without a value");
    return bw_onnx_out_value(c, 0, c->inputs[0]);
}

static const struct bw_onnx_op rows[] = {
    {"ConcatFromSequence", 11, .function = concat_from_sequence},
    {"Optional", 15, .function = optional},
    {"OptionalGetElement", 15, .function = optional_get_element},
    {"OptionalHasElement", 15, .function = optional_has_element},
    {"SequenceAt", 11, .function = sequence_at},
    {"SequenceConstruct", 11, .function = sequence_construct},
    {"SequenceEmpty", 11, .function = sequence_empty},
    {"SequenceErase", 11, .function = sequence_erase},
    {"SequenceInsert", 11, .function = sequence_insert},
    {"SequenceLength", 11, .function = sequence_length},
    {"SequenceMap", 17, .function = sequence_map},
    {"SplitToSequence", 11, .function = split_to_sequence},
};

const struct bw_onnx_ops bw_onnx_ops_sequence = {rows, BW_COUNT_OF(rows)};
