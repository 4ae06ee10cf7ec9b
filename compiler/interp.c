/* Interpreter of linear programs: see interp.h. Each node is computed for all work-items of the group before
 * the next node is looked at, so that barriers hold by construction. */
#include "compiler/interp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "compiler/scalar.h"

struct interp {
    const struct bw_linear *linear;
    const struct bw_ir *ir;
    const struct bw_interp_buffer *buffers;
    uint32_t buffer_count, items;
    uint32_t *slots;         /* node -> slot + 1 */
    union bw_scalar *values; /* slot-major, one per item */
    uint32_t slot_count;
    uint32_t *loop_ends;             /* list place of LOOP -> of its END_LOOP, and back */
    struct bw_interp_buffer *locals; /* by number of LOCAL */
    uint32_t local_count;
    uint32_t group[3];
    struct bw_err *err;
};

static union bw_scalar *value_of(const struct interp *in, bw_node node)
{
    assert(in->slots[node]);
    return in->values + (size_t)(in->slots[node] - 1) * in->items;
}

static const struct bw_interp_buffer *memory_of(const struct interp *in, bw_node param)
{
    if (bw_ir_op(in->ir, param) == BW_OP_LOCAL) {
        const struct bw_local *local = bw_ir_blob_data(in->ir, bw_ir_arg(in->ir, param));
        return &in->locals[local->number];
    }
    return &in->buffers[bw_ir_param_number(in->ir, param)];
}

static int out_of_bounds(struct interp *in, bw_node node, int64_t index, uint64_t elements)
{
    bw_node param = bw_ir_source(in->ir, node, 0);
    bw_fail(in->err, -ERANGE, "interp", "%s of %s %u", bw_op_name(bw_ir_op(in->ir, node)),
            bw_op_name(bw_ir_op(in->ir, param)),
            bw_ir_op(in->ir, param) == BW_OP_PARAM ? bw_ir_param_number(in->ir, param) : 0);
    bw_err_expected(in->err, "index below %llu", (unsigned long long)elements);
    bw_err_observed(in->err, "%lld", (long long)index);
    return -ERANGE;
}

static int run_memory(struct interp *in, bw_node node, bool store)
{
    const struct bw_ir *ir = in->ir;
    bw_node param = bw_ir_source(ir, node, 0);
    enum bw_dtype dtype = bw_ir_dtype(ir, param);
    uint32_t bytes = bw_dtype_bytes(dtype);
    const struct bw_interp_buffer *memory = memory_of(in, param);
    const union bw_scalar *index = value_of(in, bw_ir_source(ir, node, 1));
    const union bw_scalar *value = store ? value_of(in, bw_ir_source(ir, node, 2)) : NULL;
    uint32_t gate_at = store ? 3 : 2;
    const union bw_scalar *gate =
        bw_ir_source_count(ir, node) > gate_at ? value_of(in, bw_ir_source(ir, node, gate_at)) : NULL;
    uint64_t elements = memory->size_bytes / bytes;
    for (uint32_t item = 0; item < in->items; item++) {
        if (gate && !gate[item].i) {
            if (!store)
                value_of(in, node)[item] = value_of(in, bw_ir_source(ir, node, 3))[item];
            continue;
        }
        if (index[item].i < 0 || (uint64_t)index[item].i >= elements)
            return out_of_bounds(in, node, index[item].i, elements);
        char *at = (char *)memory->data + (uint64_t)index[item].i * bytes;
        if (store)
            bw_scalar_store(dtype, at, value[item]);
        else
            value_of(in, node)[item] = bw_scalar_load(dtype, at);
    }
    return 0;
}

static void run_elementwise(struct interp *in, bw_node node)
{
    const struct bw_ir *ir = in->ir;
    enum bw_op op = bw_ir_op(ir, node);
    bw_node first = bw_ir_source(ir, node, 0);
    enum bw_dtype dtype = bw_ir_dtype(ir, node), operand = bw_ir_dtype(ir, first);
    uint32_t count = bw_ir_source_count(ir, node);
    const union bw_scalar *a = value_of(in, first);
    const union bw_scalar *b = count > 1 ? value_of(in, bw_ir_source(ir, node, 1)) : NULL;
    const union bw_scalar *c = count > 2 ? value_of(in, bw_ir_source(ir, node, 2)) : NULL;
    union bw_scalar *out = value_of(in, node);
    for (uint32_t i = 0; i < in->items; i++) {
        if (op == BW_OP_CAST)
            out[i] = bw_scalar_cast(dtype, operand, a[i]);
        else if (op == BW_OP_BITCAST)
            out[i] = bw_scalar_bitcast(dtype, operand, a[i]);
        else if (op == BW_OP_WHERE)
            out[i] = a[i].i ? b[i] : c[i];
        else if (op == BW_OP_MULTIPLY_ADD)
            out[i] = bw_scalar_multiply_add(dtype, a[i], b[i], c[i]);
        else if (count == 1)
            out[i] = bw_scalar_unary(op, operand, a[i]);
        else
            out[i] = bw_scalar_binary(op, operand, a[i], b[i]);
    }
}

static void run_leaf(struct interp *in, bw_node node)
{
    const struct bw_ir *ir = in->ir;
    union bw_scalar *out = value_of(in, node);
    uint64_t bits = bw_ir_arg(ir, node);
    for (uint32_t i = 0; i < in->items; i++) {
        if (bw_ir_op(ir, node) == BW_OP_CONST)
            memcpy(&out[i], &bits, sizeof bits); /* a double's bits, or an integer */
        else
            out[i].i = bw_ir_special_which(ir, node) == BW_SPECIAL_ITEM
                           ? i
                           : in->group[bw_ir_special_which(ir, node)];
    }
}

/* All work-items get the fold of the values of all. */
static void run_group_fold(struct interp *in, bw_node node)
{
    const union bw_scalar *values = value_of(in, bw_ir_source(in->ir, node, 0));
    union bw_scalar folded = values[0];
    for (uint32_t i = 1; i < in->items; i++)
        folded =
            bw_scalar_binary(bw_ir_reduce_op(in->ir, node), bw_ir_dtype(in->ir, node), folded, values[i]);
    for (uint32_t i = 0; i < in->items; i++)
        value_of(in, node)[i] = folded;
}

static int64_t range_size(const struct interp *in, bw_node range)
{
    int64_t size = 0;
    bool constant = bw_ir_const_value_int(in->ir, bw_ir_source(in->ir, range, 0), &size);
    assert(constant);
    return constant ? size : 0;
}

static void fill(struct interp *in, bw_node node, const union bw_scalar *values, int64_t constant)
{
    union bw_scalar *out = value_of(in, node);
    for (uint32_t i = 0; i < in->items; i++)
        if (values)
            out[i] = values[i];
        else
            out[i].i = constant;
}

/* LOOP and END_LOOP: sets the range and returns the next place in the list. */
static size_t run_loop(struct interp *in, size_t at, bw_node node)
{
    bw_node range = bw_ir_source(in->ir, node, 0);
    if (bw_ir_op(in->ir, node) == BW_OP_LOOP) {
        fill(in, range, NULL, 0);
        return range_size(in, range) > 0 ? at + 1 : in->loop_ends[at] + 1;
    }
    int64_t next = value_of(in, range)[0].i + 1;
    fill(in, range, NULL, next);
    return next < range_size(in, range) ? in->loop_ends[at] + 1 : at + 1;
}

static int run_group(struct interp *in)
{
    const struct bw_ir *ir = in->ir;
    int rc = 0;
    for (size_t at = 0; at < in->linear->list.count && !rc;) {
        bw_node node = in->linear->list.data[at];
        enum bw_op op = bw_ir_op(ir, node);
        switch (op) {
        case BW_OP_LOOP:
        case BW_OP_END_LOOP:
            at = run_loop(in, at, node);
            continue;
        case BW_OP_LOAD:
        case BW_OP_STORE:
            rc = run_memory(in, node, op == BW_OP_STORE);
            break;
        case BW_OP_ACCUMULATOR:
            fill(in, node, value_of(in, bw_ir_source(ir, node, 0)), 0);
            break;
        case BW_OP_ASSIGN:
            fill(in, bw_ir_source(ir, node, 0), value_of(in, bw_ir_source(ir, node, 1)), 0);
            break;
        case BW_OP_CONST:
        case BW_OP_SPECIAL:
            run_leaf(in, node);
            break;
        case BW_OP_FOLD:
            run_group_fold(in, node);
            break;
        case BW_OP_BARRIER:
            break;
        default:
            if (!bw_op_is_elementwise(op))
                return bw_fail(in->err, -EINVAL, "interp", "%s in a linear program", bw_op_name(op));
            run_elementwise(in, node);
        }
        at++;
    }
    return rc;
}

static void slot_add(struct interp *in, bw_node node)
{
    if (!in->slots[node])
        in->slots[node] = ++in->slot_count;
}

enum { LOOPS_MAX = 64 };

static int prepare(struct interp *in)
{
    const struct bw_ir *ir = in->ir;
    size_t count = in->linear->list.count, open[LOOPS_MAX], depth = 0;
    in->slots = calloc(bw_ir_count(ir), sizeof *in->slots);
    in->loop_ends = calloc(count + 1, sizeof *in->loop_ends);
    if (!in->slots || !in->loop_ends)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        bw_node node = in->linear->list.data[i];
        enum bw_op op = bw_ir_op(ir, node);
        slot_add(in, op == BW_OP_LOOP ? bw_ir_source(ir, node, 0) : node);
        if (op == BW_OP_LOOP && depth < LOOPS_MAX)
            open[depth++] = i;
        if (op == BW_OP_END_LOOP && depth) {
            in->loop_ends[i] = (uint32_t)open[--depth];
            in->loop_ends[open[depth]] = (uint32_t)i;
        }
    }
    in->values = calloc((size_t)in->slot_count * in->items + 1, sizeof *in->values);
    return in->values && depth == 0 ? 0 : in->values ? -EINVAL : -ENOMEM;
}

static int prepare_locals(struct interp *in)
{
    for (bw_node node = 1; node < bw_ir_count(in->ir); node++) {
        if (bw_ir_op(in->ir, node) != BW_OP_LOCAL)
            continue;
        const struct bw_local *local = bw_ir_blob_data(in->ir, bw_ir_arg(in->ir, node));
        if ((uint64_t)local->number >= in->local_count) {
            void *grown = realloc(in->locals, ((size_t)local->number + 1) * sizeof *in->locals);
            if (!grown)
                return -ENOMEM;
            in->locals = grown;
            while (in->local_count <= (uint64_t)local->number)
                in->locals[in->local_count++] = (struct bw_interp_buffer){0};
        }
        struct bw_interp_buffer *memory = &in->locals[local->number];
        memory->size_bytes = (uint64_t)local->elements * bw_dtype_bytes(bw_ir_dtype(in->ir, node));
        free(memory->data);
        memory->data = calloc(1, memory->size_bytes + 1);
        if (!memory->data)
            return -ENOMEM;
    }
    return 0;
}

int bw_interp_run(const struct bw_linear *linear, const struct bw_interp_buffer *buffers,
                  uint32_t buffer_count, struct bw_err *err)
{
    struct interp in = {.linear = linear,
                        .ir = linear->ir,
                        .buffers = buffers,
                        .buffer_count = buffer_count,
                        .items = linear->item_count,
                        .err = err};
    if (buffer_count < linear->params.count)
        return bw_fail(err, -EINVAL, "interp", "%u buffers for %zu parameters", buffer_count,
                       linear->params.count);
    int rc = prepare(&in);
    if (!rc)
        rc = prepare_locals(&in);
    if (rc)
        bw_fail(err, rc, "interp", "preparing a program of %zu nodes", linear->list.count);
    uint64_t groups = (uint64_t)linear->group_count[0] * linear->group_count[1] * linear->group_count[2];
    for (uint64_t i = 0; i < groups && !rc; i++) {
        in.group[0] = (uint32_t)(i % linear->group_count[0]);
        in.group[1] = (uint32_t)(i / linear->group_count[0] % linear->group_count[1]);
        in.group[2] = (uint32_t)(i / linear->group_count[0] / linear->group_count[1]);
        rc = run_group(&in);
    }
    for (uint32_t i = 0; i < in.local_count; i++)
        free(in.locals[i].data);
    free(in.locals);
    free(in.values);
    free(in.slots);
    free(in.loop_ends);
    return rc;
}
