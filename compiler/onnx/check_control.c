/* If, Loop, Scan and SequenceMap: how many inputs and outputs their graphs have, and of which declared types.
 * What runs is one branch, or a body so many times; that the rest fits as well is only seen here. */
#include <errno.h>

#include "base/bits.h"
#include "compiler/onnx/check.h"
#include "compiler/onnx/schema.h"

static int check_body(const struct bw_onnx_checker *k, const struct bw_onnx_node *node,
                      const struct bw_onnx_graph *body, uint64_t inputs, uint64_t outputs)
{
    struct bw_onnx_text name = bw_onnx_text(body->name);
    if (body->input_count != inputs)
        return bw_onnx_check_fail(k, node, -EBADMSG, "its graph '%s' has %u inputs instead of %llu",
                                  name.text, body->input_count, (unsigned long long)inputs);
    if (body->output_count != outputs)
        return bw_onnx_check_fail(k, node, -EBADMSG, "its graph '%s' has %u outputs instead of %llu",
                                  name.text, body->output_count, (unsigned long long)outputs);
    return 0;
}

/* An optional value counts as what it holds: an op may take it and return it unwrapped. */
static bool same_element_type(const struct bw_onnx_type *a, const struct bw_onnx_type *b)
{
    while (a->kind == BW_ONNX_KIND_OPTIONAL && a->element)
        a = a->element;
    while (b->kind == BW_ONNX_KIND_OPTIONAL && b->element)
        b = b->element;
    if (!a->kind || !b->kind)
        return true;
    if (a->kind != b->kind || a->kind != BW_ONNX_KIND_TENSOR)
        return a->kind == b->kind;
    return !a->dtype || !b->dtype || a->dtype == b->dtype;
}

/* NULL where a function's call gives the graph. */
static const struct bw_onnx_graph *graph_of(const struct bw_onnx_node *node, const char *name)
{
    const struct bw_onnx_attribute *attribute = bw_onnx_check_attribute(node, name);
    return attribute ? attribute->graph : NULL;
}

static int check_if(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    const struct bw_onnx_graph *then = graph_of(node, "then_branch"), *other = graph_of(node, "else_branch");
    int rc = then ? check_body(k, node, then, 0, node->output_count) : 0;
    if (!rc && other)
        rc = check_body(k, node, other, 0, node->output_count);
    for (uint32_t i = 0; !rc && then && other && i < node->output_count; i++) {
        const struct bw_onnx_type *a = &then->outputs[i].type, *b = &other->outputs[i].type;
        if (!same_element_type(a, b))
            rc = bw_onnx_check_fail(k, node, -EBADMSG, "its branches give output %u as %s and %s", i,
                                    bw_onnx_dtype_text(a->dtype).text, bw_onnx_dtype_text(b->dtype).text);
    }
    return rc;
}

/* A value that goes round: the body's output comes back as its input. */
static int check_carried(const struct bw_onnx_checker *k, const struct bw_onnx_node *node,
                         const struct bw_onnx_value_info *in, const struct bw_onnx_value_info *out)
{
    if (same_element_type(&in->type, &out->type))
        return 0;
    return bw_onnx_check_fail(k, node, -EBADMSG, "its body takes '%s' as %s and returns it as %s",
                              bw_onnx_text(k->model->symbols.data[in->symbol]).text,
                              bw_onnx_dtype_text(in->type.dtype).text,
                              bw_onnx_dtype_text(out->type.dtype).text);
}

static int check_loop(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    static const struct bw_onnx_type count = {.kind = BW_ONNX_KIND_TENSOR, .dtype = BW_ONNX_INT64},
                                     flag = {.kind = BW_ONNX_KIND_TENSOR, .dtype = BW_ONNX_BOOL};
    const struct bw_onnx_graph *body = graph_of(node, "body");
    uint32_t carried = node->input_count > 2 ? node->input_count - 2 : 0;
    if (!body)
        return 0;
    if (node->output_count < carried)
        return bw_onnx_check_fail(k, node, -EBADMSG, "%u values go round, but it has %u outputs", carried,
                                  node->output_count);
    int rc = check_body(k, node, body, 2 + (uint64_t)carried, 1 + (uint64_t)node->output_count);
    if (rc)
        return rc;
    if (!same_element_type(&body->inputs[0].type, &count) ||
        !same_element_type(&body->inputs[1].type, &flag) || !same_element_type(&body->outputs[0].type, &flag))
        return bw_onnx_check_fail(k, node, -EBADMSG,
                                  "its body's iteration number and conditions are not INT64, "
                                  "BOOL and BOOL");
    for (uint32_t i = 0; !rc && i < carried; i++)
        rc = check_carried(k, node, &body->inputs[2 + i], &body->outputs[1 + i]);
    return rc;
}

/* A list of one number for each scanned input or collected output, or none. */
static int check_list(const struct bw_onnx_checker *k, const struct bw_onnx_node *node, const char *name,
                      uint64_t count, bool directions)
{
    const struct bw_onnx_attribute *list = bw_onnx_check_attribute(node, name);
    if (!list || list->reference.size_bytes || !list->count)
        return 0;
    if (list->count != count)
        return bw_onnx_check_fail(k, node, -EBADMSG, "%s has %llu numbers instead of %llu", name,
                                  (unsigned long long)list->count, (unsigned long long)count);
    for (uint64_t i = 0; directions && i < count; i++)
        if (list->ints[i] != 0 && list->ints[i] != 1)
            return bw_onnx_check_fail(k, node, -EBADMSG, "%s has %lld instead of 0 or 1", name,
                                      (long long)list->ints[i]);
    return 0;
}

static int check_scan(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    const struct bw_onnx_attribute *number = bw_onnx_check_attribute(node, "num_scan_inputs");
    const struct bw_onnx_graph *body = graph_of(node, "body");
    int64_t inputs = (int64_t)node->input_count - (node->schema->since < 9); /* then sequence_lens is first */
    if (!body || !number || number->reference.size_bytes)
        return 0;
    if (number->i < 1 || number->i > inputs || inputs - number->i > node->output_count)
        return bw_onnx_check_fail(k, node, -EBADMSG, "%lld scanned inputs of %lld, and %u outputs",
                                  (long long)number->i, (long long)inputs, node->output_count);
    uint32_t states = (uint32_t)(inputs - number->i);
    uint64_t scanned = (uint64_t)number->i, collected = node->output_count - states;
    int rc = check_body(k, node, body, (uint64_t)inputs, node->output_count);
    for (uint32_t i = 0; !rc && i < states; i++)
        rc = check_carried(k, node, &body->inputs[i], &body->outputs[i]);
    rc = rc ? rc : check_list(k, node, "directions", scanned, true);
    rc = rc ? rc : check_list(k, node, "scan_input_axes", scanned, false);
    rc = rc ? rc : check_list(k, node, "scan_input_directions", scanned, true);
    rc = rc ? rc : check_list(k, node, "scan_output_axes", collected, false);
    return rc ? rc : check_list(k, node, "scan_output_directions", collected, true);
}

static int check_sequence_map(const struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    const struct bw_onnx_graph *body = graph_of(node, "body");
    return body ? check_body(k, node, body, node->input_count, node->output_count) : 0;
}

static const struct {
    const char *op;
    int (*check)(const struct bw_onnx_checker *k, const struct bw_onnx_node *node);
} rows[] = {
    {"If", check_if},
    {"Loop", check_loop},
    {"Scan", check_scan},
    {"SequenceMap", check_sequence_map},
};

int bw_onnx_check_control(struct bw_onnx_checker *k, const struct bw_onnx_node *node)
{
    for (size_t i = 0; node->schema && i < BW_COUNT_OF(rows); i++)
        if (bw_onnx_equals(node->op_type, rows[i].op))
            return rows[i].check(k, node);
    return 0;
}
