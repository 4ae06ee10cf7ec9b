/* If, Loop, Scan, and values that are lists or may be absent. Lists are made and taken apart during import.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static int if_op(struct bw_onnx_call *c)
{
    int64_t condition = 0;
    if (!bw_onnx_has(c, 0))
        return bw_onnx_fail(c, -EINVAL, "no condition");
    if (bw_onnx_decide_int(c, c->inputs[0], &condition))
        return c->rc;
    const struct bw_onnx_graph *branch =
        bw_onnx_graph_attribute(c, condition ? "then_branch" : "else_branch");
    if (!branch)
        return c->rc;
    struct bw_onnx_value **outputs = bw_onnx_alloc(c, branch->output_count, sizeof *outputs);
    int rc = outputs ? bw_onnx_subgraph(c, branch, NULL, 0, outputs) : c->rc;
    for (uint32_t i = 0; !rc && i < branch->output_count; i++)
        rc = bw_onnx_out_value(c, i, outputs[i]);
    return rc;
}

/* ---- stacks: what Loop and Scan collect, one value per iteration ---- */

struct stack {
    BW_VEC(struct bw_onnx_value *) values;
};

static int stack_push(struct bw_onnx_call *c, struct stack *stack, struct bw_onnx_value *value)
{
    if (value->kind != BW_VALUE_ARRAY)
        return bw_onnx_fail(c, -ENOTSUP, "collected values that are no tensors");
    return bw_vec_push(&stack->values, value) ? bw_onnx_fail(c, -ENOMEM, "no memory")
                                              : bw_onnx_pin(c, &value, 1);
}

/* What stack_join's result holds, where that is a storage type. */
static enum bw_dtype stack_dtype(const struct stack *stack, const struct bw_onnx_type *declared)
{
    return stack->values.count ? stack->values.data[0]->dtype : bw_onnx_dtype_of(declared->dtype);
}

/* The collected values along a new axis. Without any, the declared type says what an empty result is. */
static bw_tensor stack_join(struct bw_onnx_call *c, const struct stack *stack, uint32_t axis, bool reversed,
                            const struct bw_onnx_type *declared)
{
    uint32_t count = (uint32_t)stack->values.count;
    if (!count) {
        int64_t dims[BW_TENSOR_RANK_MAX] = {0};
        enum bw_dtype dtype = bw_dtype_carrier(bw_onnx_dtype_of(declared->dtype));
        uint32_t rank = declared->rank < BW_TENSOR_RANK_MAX ? declared->rank + 1 : 1;
        for (uint32_t i = 1; i < rank; i++)
            dims[i] = declared->dims[i - 1].value > 0 ? declared->dims[i - 1].value : 0;
        return bw_tensor_constant(c->g, dtype == BW_VOID ? BW_F32 : dtype, rank, dims, NULL);
    }
    bw_tensor *parts = bw_onnx_alloc(c, count, sizeof *parts);
    for (uint32_t i = 0; parts && i < count; i++) {
        struct bw_onnx_value *value = stack->values.data[reversed ? count - 1 - i : i];
        int64_t dims[BW_TENSOR_RANK_MAX];
        if (axis > value->rank || value->rank + 1 > BW_TENSOR_RANK_MAX) {
            bw_onnx_fail(c, -EINVAL, "results of rank %u collected along axis %u", value->rank, axis);
            return (bw_tensor){0};
        }
        for (uint32_t k = 0; k <= value->rank; k++)
            dims[k] = k == axis ? 1 : value->dims[k < axis ? k : k - 1];
        parts[i] = bw_tensor_reshape(c->g, bw_onnx_tensor_of(c->session, value), value->rank + 1, dims);
    }
    return parts ? bw_tensor_concat(c->g, parts, count, axis) : (bw_tensor){0};
}

static void stacks_free(struct bw_onnx_call *c, struct stack *stacks, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bw_onnx_unpin(c, (uint32_t)stacks[i].values.count);
        bw_vec_free(&stacks[i].values);
    }
}

/* ---- Loop ---- */

static struct bw_onnx_value *scalar_value(struct bw_onnx_call *c, enum bw_dtype dtype, int64_t number)
{
    uint64_t *data = malloc(sizeof *data);
    if (data)
        *data = (uint64_t)number;
    return bw_onnx_value_host(c->session, dtype, 0, NULL, data, true);
}

struct loop {
    const struct bw_onnx_graph *body;
    struct bw_onnx_value **inputs, **outputs; /* of the body */
    uint32_t carried, collected;
    struct stack *stacks;
    int64_t trips;
};

static int loop_start(struct bw_onnx_call *c, struct loop *loop, int64_t *condition)
{
    loop->body = bw_onnx_graph_attribute(c, "body");
    if (!loop->body)
        return c->rc;
    loop->carried = c->input_count > 2 ? c->input_count - 2 : 0;
    if (loop->body->output_count < 1 + loop->carried)
        return bw_onnx_fail(c, -EBADMSG, "its body has %u outputs", loop->body->output_count);
    loop->collected = loop->body->output_count - 1 - loop->carried;
    loop->inputs = bw_onnx_alloc(c, 2 + loop->carried, sizeof *loop->inputs);
    loop->outputs = bw_onnx_alloc(c, loop->body->output_count, sizeof *loop->outputs);
    loop->stacks = bw_onnx_alloc(c, loop->collected, sizeof *loop->stacks);
    loop->trips = INT64_MAX;
    *condition = 1;
    if (c->rc)
        return c->rc;
    if (bw_onnx_has(c, 0) && bw_onnx_decide_int(c, c->inputs[0], &loop->trips))
        return c->rc;
    if (bw_onnx_has(c, 1) && bw_onnx_decide_int(c, c->inputs[1], condition))
        return c->rc;
    for (uint32_t i = 0; i < loop->carried; i++) {
        loop->inputs[2 + i] = c->inputs[2 + i] ? c->inputs[2 + i] : bw_onnx_value_none(c->session);
        if (!loop->inputs[2 + i])
            return -ENOMEM;
    }
    return 0;
}

static int loop_run(struct bw_onnx_call *c, struct loop *loop, int64_t condition)
{
    int rc = 0;
    for (int64_t i = 0; !rc && i < loop->trips && condition; i++) {
        loop->inputs[0] = scalar_value(c, BW_I64, i);
        loop->inputs[1] = scalar_value(c, BW_BOOL, 1);
        rc = loop->inputs[0] && loop->inputs[1] ? bw_onnx_iteration(c) : -ENOMEM;
        if (!rc)
            rc = bw_onnx_subgraph(c, loop->body, loop->inputs, 2 + loop->carried, loop->outputs);
        if (rc)
            return rc;
        rc = bw_onnx_pin(c, loop->outputs + 1, loop->carried); /* the condition may have to be realised */
        if (!rc) {
            rc = bw_onnx_decide_int(c, loop->outputs[0], &condition);
            bw_onnx_unpin(c, loop->carried);
        }
        memcpy(loop->inputs + 2, loop->outputs + 1, loop->carried * sizeof *loop->inputs);
        for (uint32_t k = 0; !rc && k < loop->collected; k++)
            rc = stack_push(c, &loop->stacks[k], loop->outputs[1 + loop->carried + k]);
    }
    return rc;
}

static int loop_op(struct bw_onnx_call *c)
{
    struct loop loop = {0};
    int64_t condition;
    int rc = loop_start(c, &loop, &condition);
    if (!rc)
        rc = loop_run(c, &loop, condition);
    for (uint32_t i = 0; !rc && i < loop.carried; i++)
        rc = bw_onnx_out_value(c, i, loop.inputs[2 + i]);
    for (uint32_t k = 0; !rc && k < loop.collected; k++) {
        const struct bw_onnx_type *declared = &loop.body->outputs[1 + loop.carried + k].type;
        rc = bw_onnx_out_typed(c, loop.carried + k, stack_join(c, &loop.stacks[k], 0, false, declared),
                               stack_dtype(&loop.stacks[k], declared));
    }
    if (loop.stacks)
        stacks_free(c, loop.stacks, loop.collected);
    return rc;
}

/* ---- Scan ---- */

static bw_tensor element_at(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, int64_t i)
{
    return bw_onnx_take(c, x, axis, bw_tensor_scalar_int(c->g, BW_I64, i));
}

struct scan {
    const struct bw_onnx_graph *body;
    uint32_t states, scanned, collected;
    struct bw_onnx_ints input_axes, input_directions, output_axes, output_directions;
    struct bw_onnx_value **inputs, **outputs; /* of the body */
    struct stack *stacks;
};

static int64_t item(struct bw_onnx_ints list, uint32_t i)
{
    return i < list.count ? list.data[i] : 0;
}

static int scan_start(struct bw_onnx_call *c, struct scan *scan, uint32_t inputs)
{
    scan->body = bw_onnx_graph_attribute(c, "body");
    int64_t scanned = bw_onnx_int(c, "num_scan_inputs", -1);
    if (c->rc || scanned < 1 || scanned > inputs || scan->body->output_count < inputs - scanned)
        return bw_onnx_fail(c, -EBADMSG, "%lld scanned inputs of %u", (long long)scanned, inputs);
    scan->scanned = (uint32_t)scanned;
    scan->states = inputs - scan->scanned;
    scan->collected = scan->body->output_count - scan->states;
    scan->inputs = bw_onnx_alloc(c, inputs, sizeof *scan->inputs);
    scan->outputs = bw_onnx_alloc(c, scan->body->output_count, sizeof *scan->outputs);
    scan->stacks = bw_onnx_alloc(c, scan->collected, sizeof *scan->stacks);
    return c->rc;
}

/* One pass over the scanned tensors; scan->inputs holds the states before and after. */
static int scan_run(struct bw_onnx_call *c, struct scan *scan, const bw_tensor *scanned)
{
    int64_t length = -1;
    for (uint32_t k = 0; k < scan->scanned; k++) {
        uint32_t axis = bw_onnx_axis(c, item(scan->input_axes, k), bw_tensor_rank(c->g, scanned[k]));
        int64_t size = c->rc ? 0 : bw_tensor_dims(c->g, scanned[k])[axis];
        if (c->rc || (length >= 0 && size != length))
            return bw_onnx_fail(c, -EINVAL, "scanned inputs of different lengths");
        length = size;
    }
    int rc = 0;
    for (int64_t i = 0; !rc && i < length; i++) {
        for (uint32_t k = 0; k < scan->scanned; k++) {
            uint32_t axis = bw_onnx_axis(c, item(scan->input_axes, k), bw_tensor_rank(c->g, scanned[k]));
            int64_t at = item(scan->input_directions, k) ? length - 1 - i : i;
            enum bw_dtype dtype = bw_onnx_in_dtype(c, c->input_count - scan->scanned + k);
            scan->inputs[scan->states + k] =
                bw_onnx_value_typed(c->session, element_at(c, scanned[k], axis, at), dtype);
            if (!scan->inputs[scan->states + k])
                return -EINVAL;
        }
        rc = bw_onnx_iteration(c);
        if (!rc)
            rc = bw_onnx_subgraph(c, scan->body, scan->inputs, scan->states + scan->scanned, scan->outputs);
        if (!rc)
            memcpy(scan->inputs, scan->outputs, scan->states * sizeof *scan->inputs);
        for (uint32_t k = 0; !rc && k < scan->collected; k++)
            rc = stack_push(c, &scan->stacks[k], scan->outputs[scan->states + k]);
    }
    return rc;
}

static bw_tensor scan_result(struct bw_onnx_call *c, struct scan *scan, uint32_t k)
{
    const struct bw_onnx_type *declared = &scan->body->outputs[scan->states + k].type;
    uint32_t rank = scan->stacks[k].values.count ? scan->stacks[k].values.data[0]->rank : 0;
    uint32_t axis = scan->stacks[k].values.count ? bw_onnx_axis(c, item(scan->output_axes, k), rank + 1) : 0;
    return stack_join(c, &scan->stacks[k], axis, item(scan->output_directions, k), declared);
}

static int scan_op(struct bw_onnx_call *c)
{
    struct scan scan = {.input_axes = bw_onnx_ints(c, "scan_input_axes"),
                        .input_directions = bw_onnx_ints(c, "scan_input_directions"),
                        .output_axes = bw_onnx_ints(c, "scan_output_axes"),
                        .output_directions = bw_onnx_ints(c, "scan_output_directions")};
    int rc = scan_start(c, &scan, c->input_count);
    bw_tensor *scanned = bw_onnx_alloc(c, scan.scanned, sizeof *scanned);
    for (uint32_t i = 0; !rc && i < c->input_count; i++) {
        if (i < scan.states)
            scan.inputs[i] = c->inputs[i];
        else
            scanned[i - scan.states] = bw_onnx_in_bytes(c, i);
        rc = c->inputs[i] ? c->rc : bw_onnx_fail(c, -EINVAL, "input %u is missing", i);
    }
    if (!rc)
        rc = scan_run(c, &scan, scanned);
    for (uint32_t i = 0; !rc && i < scan.states; i++)
        rc = bw_onnx_out_value(c, i, scan.inputs[i]);
    for (uint32_t k = 0; !rc && k < scan.collected; k++)
        rc = bw_onnx_out_typed(c, scan.states + k, scan_result(c, &scan, k),
                               stack_dtype(&scan.stacks[k], &scan.body->outputs[scan.states + k].type));
    if (scan.stacks)
        stacks_free(c, scan.stacks, scan.collected);
    return rc;
}

/* Opset 8 has a batch axis in front of everything, and input 0 is sequence_lens (all of full length here). */
static int scan_8(struct bw_onnx_call *c)
{
    struct scan scan = {.input_directions = bw_onnx_ints(c, "directions")};
    if (c->input_count < 2 || bw_onnx_has(c, 0))
        return bw_onnx_fail(c, -ENOTSUP, "sequence_lens");
    int rc = scan_start(c, &scan, c->input_count - 1);
    if (rc)
        return rc;
    bw_tensor first = bw_onnx_in(c, 1), *scanned = bw_onnx_alloc(c, scan.scanned, sizeof *scanned);
    int64_t batches = first.id && bw_tensor_rank(c->g, first) ? bw_tensor_dims(c->g, first)[0] : 0;
    struct stack *results = bw_onnx_alloc(c, scan.body->output_count, sizeof *results);
    rc = c->rc;
    for (int64_t batch = 0; !rc && batch < batches; batch++) {
        for (uint32_t i = 0; !rc && i + 1 < c->input_count; i++) {
            bw_tensor one = element_at(c, bw_onnx_in(c, i + 1), 0, batch);
            if (i < scan.states)
                scan.inputs[i] = bw_onnx_value_tensor(c->session, one);
            else
                scanned[i - scan.states] = one;
            rc = one.id ? c->rc : -EINVAL;
        }
        if (!rc)
            rc = scan_run(c, &scan, scanned);
        for (uint32_t i = 0; !rc && i < scan.states; i++)
            rc = stack_push(c, &results[i], scan.inputs[i]);
        for (uint32_t k = 0; !rc && k < scan.collected; k++) {
            struct bw_onnx_value *value = bw_onnx_value_tensor(c->session, scan_result(c, &scan, k));
            rc = value ? stack_push(c, &results[scan.states + k], value) : -EINVAL;
        }
        stacks_free(c, scan.stacks, scan.collected);
    }
    for (uint32_t i = 0; !rc && i < scan.body->output_count; i++)
        rc = bw_onnx_out(c, i, stack_join(c, &results[i], 0, false, &scan.body->outputs[i].type));
    if (results)
        stacks_free(c, results, scan.body->output_count);
    stacks_free(c, scan.stacks, scan.collected);
    return rc;
}

static const struct bw_onnx_op rows[] = {
    {"If", 1, .function = if_op},
    {"Loop", 1, .function = loop_op},
    {"Scan", 8, .function = scan_8},
    {"Scan", 9, .function = scan_op},
};

const struct bw_onnx_ops bw_onnx_ops_control = {rows, BW_COUNT_OF(rows)};
