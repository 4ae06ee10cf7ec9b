/* How a value at an index becomes values of its sources at theirs: the whole of movement lives here. See
 * schedule.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "compiler/kernel.h"
#include "compiler/rewrite.h"
#include "compiler/schedule_internal.h"
#include "compiler/symbolic.h"

bw_node bw_schedule_flatten(struct bw_ir *ir, const struct bw_shape *shape, const bw_node *index)
{
    bw_node flat = bw_sym_const(ir, 0);
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        flat = bw_sym_add(ir, flat, bw_sym_mul(ir, index[i], stride));
        stride *= shape->dims[i];
    }
    return flat;
}

void bw_schedule_unflatten(struct bw_ir *ir, bw_node flat, const struct bw_shape *shape, bw_node *index)
{
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0;) {
        bw_node rest = bw_sym_div(ir, flat, stride);
        bool outermost = true; /* everything above is 1: no modulus needed */
        for (uint32_t k = 0; k < i; k++)
            outermost &= shape->dims[k] == 1;
        index[i] = shape->dims[i] == 1 ? bw_sym_const(ir, 0)
                   : outermost         ? rest
                                       : bw_sym_mod(ir, rest, shape->dims[i]);
        stride *= shape->dims[i];
    }
}

static struct bw_shape shape_slice(const struct bw_shape *shape, uint32_t first, uint32_t end)
{
    struct bw_shape slice = {.rank = end - first};
    memcpy(slice.dims, shape->dims + first, (end - first) * sizeof slice.dims[0]);
    return slice;
}

/* Axes are regrouped only as far as they must be: [a, b, c] to [a, b * c] leaves a alone. */
static void reshape_index(struct bw_ir *ir, const struct bw_shape *from, const bw_node *from_index,
                          const struct bw_shape *to, bw_node *to_index)
{
    uint32_t from_at = 0, to_at = 0;
    while (from_at < from->rank || to_at < to->rank) {
        uint32_t from_end = from_at, to_end = to_at;
        int64_t from_size = 1, to_size = 1;
        do {
            if (from_end < from->rank && (from_size <= to_size || to_end == to->rank))
                from_size *= from->dims[from_end++];
            else
                to_size *= to->dims[to_end++];
        } while (from_size != to_size);
        struct bw_shape from_slice = shape_slice(from, from_at, from_end),
                        to_slice = shape_slice(to, to_at, to_end);
        bw_schedule_unflatten(ir, bw_schedule_flatten(ir, &from_slice, from_index + from_at), &to_slice,
                              to_index + to_at);
        from_at = from_end;
        to_at = to_end;
    }
}

static bool request_equal(const struct request *a, const struct request *b)
{
    return a->node == b->node && a->group == b->group && a->gate == b->gate && a->rank == b->rank &&
           !memcmp(a->index, b->index, a->rank * sizeof *a->index);
}

static uint64_t request_hash(const struct request *request)
{
    uint64_t hash = bw_hash64((uint64_t)request->node << 32 | request->group) ^ request->gate;
    for (uint32_t i = 0; i < request->rank; i++)
        hash = bw_hash64(hash + request->index[i]);
    return hash;
}

struct request *bw_schedule_request(struct scheduler *s, bw_node node, const struct request *user,
                                    uint32_t rank, const bw_node *index, bw_node gate)
{
    struct request wanted = {.node = node,
                             .group = user->group,
                             .rank = rank,
                             .gate = gate,
                             .points = user->points,
                             .in_reduce = user->in_reduce};
    struct node_state *state = &s->nodes[node];
    for (uint32_t i = 0; i < rank; i++)
        if (!index[i])
            return NULL;
    wanted.index = bw_arena_copy(&s->arena, index, rank * sizeof *index);
    if (!wanted.index)
        return NULL;
    uint64_t hash = request_hash(&wanted), address = 0;
    bw_map_get(&s->requests, hash, &address);
    wanted.same_hash = (struct request *)(uintptr_t)address;
    for (struct request *known = wanted.same_hash; known; known = known->same_hash)
        if (request_equal(known, &wanted)) {
            known->points = known->points > wanted.points ? known->points : wanted.points;
            known->in_reduce |= wanted.in_reduce;
            return known;
        }
    struct request *made = bw_arena_copy(&s->arena, &wanted, sizeof wanted);
    if (!made || bw_map_set(&s->requests, hash, (uint64_t)(uintptr_t)made))
        return NULL;
    s->groups.data[made->group].load_count += bw_ir_op(s->tensors, node) == BW_OP_BUFFER || state->must_store;
    made->next = state->requests;
    state->requests = made;
    state->request_count++;
    return made;
}

static int expand_pad(struct scheduler *s, bw_node node, struct request *request)
{
    const struct bw_bounds *bounds = bw_ir_blob_data(s->tensors, bw_ir_arg(s->tensors, node));
    bw_node x = bw_ir_source(s->tensors, node, 0), index[BW_RANK_MAX];
    const struct bw_shape *shape = bw_ir_shape(s->tensors, x);
    bw_node inside = bw_ir_const_int(s->ir, BW_BOOL, 1);
    for (uint32_t i = 0; i < shape->rank; i++) {
        bw_node at = request->index[i];
        if (bounds->low[i])
            inside =
                bw_sym_and(s->ir, inside, bw_sym_less(s->ir, bw_sym_const(s->ir, bounds->low[i] - 1), at));
        if (bounds->high[i])
            inside = bw_sym_and(s->ir, inside,
                                bw_sym_less(s->ir, at, bw_sym_const(s->ir, bounds->low[i] + shape->dims[i])));
        index[i] = bw_sym_add(s->ir, at, bw_sym_const(s->ir, -bounds->low[i]));
    }
    bw_node gate = request->gate ? bw_sym_and(s->ir, request->gate, inside) : inside;
    int64_t always;
    if (gate && bw_ir_const_value_int(s->ir, gate, &always) && always)
        gate = 0;
    request->inside = gate;
    request->sources[0] = bw_schedule_request(s, x, request, shape->rank, index, gate);
    request->sources[1] =
        bw_schedule_request(s, bw_ir_source(s->tensors, node, 1), request, 0, NULL, request->gate);
    return request->sources[0] && request->sources[1] ? 0 : -ENOMEM;
}

static int expand_reduce(struct scheduler *s, bw_node node, struct request *request)
{
    bw_node x = bw_ir_source(s->tensors, node, 0), index[BW_RANK_MAX];
    const struct bw_shape *shape = bw_ir_shape(s->tensors, x);
    uint32_t axes = bw_ir_reduce_axes(s->tensors, node);
    struct request inner = *request;
    for (uint32_t i = 0; i < shape->rank; i++) {
        index[i] = request->index[i];
        if (!(axes >> i & 1))
            continue;
        index[i] = bw_sym_const(s->ir, 0);
        if (shape->dims[i] == 1)
            continue;
        bw_node size = bw_sym_const(s->ir, shape->dims[i]);
        index[i] = bw_ir_range(s->ir, s->groups.data[request->group].range_count++, BW_RANGE_REDUCE, size);
        request->range_list[request->range_count++] = index[i];
        inner.points *= (double)shape->dims[i];
        inner.in_reduce = true;
    }
    request->sources[0] = bw_schedule_request(s, x, &inner, shape->rank, index, request->gate);
    return request->sources[0] ? 0 : -ENOMEM;
}

static int assign_buffer(struct scheduler *s, bw_node node)
{
    struct node_state *state = &s->nodes[node];
    state->must_store = true;
    if (state->buffer)
        return 0;
    struct bw_schedule_buffer buffer = {.kind = BW_SCHEDULE_STORED,
                                        .dtype = bw_ir_dtype(s->tensors, node),
                                        .elements = bw_ir_elements(s->tensors, node),
                                        .node = node,
                                        .once = state->constant};
    if (bw_vec_push(&s->schedule->buffers, buffer))
        return -ENOMEM;
    state->buffer = (uint32_t)s->schedule->buffers.count;
    return 0;
}

int bw_schedule_assign_buffer(struct scheduler *s, bw_node node)
{
    return assign_buffer(s, node);
}

/* Values of a node that is cheap and reads at most plain buffers, at once: a GATHER needs its index before
 * its data's request can be made. */
static bw_node value_now(struct scheduler *s, bw_node node, struct request *request)
{
    if (request->value)
        return request->value;
    if (bw_ir_op(s->tensors, node) == BW_OP_BUFFER || s->nodes[node].must_store)
        request->loads = true;
    else if (bw_schedule_expand(s, node, request))
        return 0;
    uint32_t count = request->loads ? 0 : bw_ir_source_count(s->tensors, node);
    for (uint32_t i = 0; i < count; i++)
        if (request->sources[i] && !value_now(s, bw_ir_source(s->tensors, node, i), request->sources[i]))
            return 0;
    return request->value = bw_schedule_value(s, node, request);
}

enum { INDEX_COST_MAX = 24 }; /* costlier index tensors are stored and loaded */

static int expand_gather(struct scheduler *s, bw_node node, struct request *request)
{
    bw_node data = bw_ir_source(s->tensors, node, 0), index[BW_RANK_MAX];
    uint32_t rank = bw_ir_shape(s->tensors, data)->rank;
    for (uint32_t i = 0; i < rank; i++) {
        bw_node at = bw_ir_source(s->tensors, node, i + 1);
        if (s->nodes[at].has_reduce || s->nodes[at].cost > INDEX_COST_MAX) {
            bw_node base =
                bw_ir_op(s->tensors, at) == BW_OP_CONTIGUOUS ? bw_ir_source(s->tensors, at, 0) : at;
            if (assign_buffer(s, base))
                return -ENOMEM;
        }
        struct request *made =
            bw_schedule_request(s, at, request, request->rank, request->index, request->gate);
        bw_node value = made ? value_now(s, at, made) : 0;
        if (!value)
            return -ENOMEM;
        request->sources[i + 1] = made;
        index[i] = bw_sym_cast(s->ir, BW_I64, value);
    }
    request->sources[0] = bw_schedule_request(s, data, request, rank, index, request->gate);
    return request->sources[0] ? 0 : -ENOMEM;
}

static void movement_index(struct scheduler *s, bw_node node, const struct request *request, bw_node *index)
{
    const struct bw_ir *tensors = s->tensors;
    const struct bw_shape *from = bw_ir_shape(tensors, bw_ir_source(tensors, node, 0)),
                          *to = bw_ir_shape(tensors, node);
    uint64_t arg = bw_ir_arg(tensors, node);
    if (bw_ir_op(tensors, node) == BW_OP_RESHAPE) {
        reshape_index(s->ir, to, request->index, from, index);
        return;
    }
    for (uint32_t i = 0; i < from->rank; i++) {
        bw_node at = request->index[i];
        switch (bw_ir_op(tensors, node)) {
        case BW_OP_PERMUTE:
            index[((const struct bw_axes *)bw_ir_blob_data(tensors, arg))->axes[i]] = at;
            break;
        case BW_OP_EXPAND:
            index[i] = from->dims[i] == 1 ? bw_sym_const(s->ir, 0) : at;
            break;
        case BW_OP_SHRINK: {
            int64_t low = ((const struct bw_bounds *)bw_ir_blob_data(tensors, arg))->low[i];
            index[i] = bw_sym_add(s->ir, at, bw_sym_const(s->ir, low));
            break;
        }
        case BW_OP_FLIP:
            index[i] = arg >> i & 1
                           ? bw_sym_binary(s->ir, BW_OP_SUB, bw_sym_const(s->ir, from->dims[i] - 1), at)
                           : at;
            break;
        default:
            index[i] = at;
        }
    }
}

int bw_schedule_expand(struct scheduler *s, bw_node node, struct request *request)
{
    const struct bw_ir *tensors = s->tensors;
    uint32_t count = bw_ir_source_count(tensors, node);
    bw_node index[BW_RANK_MAX];
    if (request->sources || !count)
        return 0;
    request->sources = bw_arena_alloc(&s->arena, count * sizeof *request->sources);
    if (!request->sources)
        return -ENOMEM;
    switch (bw_ir_op(tensors, node)) {
    case BW_OP_PAD:
        return expand_pad(s, node, request);
    case BW_OP_REDUCE:
        return expand_reduce(s, node, request);
    case BW_OP_GATHER:
        return expand_gather(s, node, request);
    default:
        break;
    }
    bool moves = bw_op_class(bw_ir_op(tensors, node)) == BW_OP_MOVEMENT;
    if (moves)
        movement_index(s, node, request, index);
    for (uint32_t i = 0; i < count; i++) {
        bw_node source = bw_ir_source(tensors, node, i);
        request->sources[i] = bw_schedule_request(s, source, request, bw_ir_shape(tensors, source)->rank,
                                                  moves ? index : request->index, request->gate);
        if (!request->sources[i])
            return -ENOMEM;
    }
    return 0;
}

/* The number of the group's parameter that is this buffer. */
static bw_node group_param(struct scheduler *s, uint32_t group_number, uint32_t buffer)
{
    struct group *group = &s->groups.data[group_number];
    uint32_t at = 0;
    while (at < group->arguments.count && group->arguments.data[at] != buffer)
        at++;
    if (at == group->arguments.count && bw_vec_push(&group->arguments, buffer))
        return 0;
    const struct bw_schedule_buffer *of = &s->schedule->buffers.data[buffer];
    return bw_kernel_param(s->ir, of->dtype, at, at == 0, of->elements);
}

static bw_node value_load(struct scheduler *s, bw_node node, struct request *request)
{
    enum bw_dtype dtype = bw_ir_dtype(s->tensors, node);
    bw_node param = group_param(s, request->group, s->nodes[node].buffer - 1);
    bw_node flat = bw_schedule_flatten(s->ir, bw_ir_shape(s->tensors, node), request->index);
    bw_node zero = bw_ir_const_int(s->ir, dtype, 0);
    return bw_ir_load(s->ir, param, flat, request->gate, zero);
}

/* where(gate, x, value); a load that is gated by the same gate takes the value as its alternative. */
static bw_node value_pad(struct scheduler *s, const struct request *request)
{
    bw_node x = request->sources[0]->value, value = request->sources[1]->value, gate = request->inside;
    if (!gate)
        return x;
    if (bw_ir_op(s->ir, x) == BW_OP_LOAD && bw_ir_source_count(s->ir, x) == 4 &&
        bw_ir_source(s->ir, x, 2) == gate && bw_ir_op(s->ir, value) == BW_OP_CONST)
        return bw_ir_load(s->ir, bw_ir_source(s->ir, x, 0), bw_ir_source(s->ir, x, 1), gate, value);
    return bw_ir_ternary(s->ir, BW_OP_WHERE, gate, x, value);
}

bw_node bw_schedule_value(struct scheduler *s, bw_node node, struct request *request)
{
    enum bw_op op = bw_ir_op(s->tensors, node);
    bw_node values[3] = {0};
    if (request->loads || op == BW_OP_BUFFER)
        return value_load(s, node, request);
    switch (op) {
    case BW_OP_CONST:
        return bw_ir_add(s->ir, BW_OP_CONST, bw_ir_dtype(s->tensors, node), bw_ir_arg(s->tensors, node), NULL,
                         0);
    case BW_OP_INDEXES:
        return bw_sym_cast(s->ir, bw_ir_dtype(s->tensors, node),
                           request->index[bw_ir_indexes_axis(s->tensors, node)]);
    case BW_OP_PAD:
        return value_pad(s, request);
    case BW_OP_REDUCE:
        return bw_ir_fold(s->ir, bw_ir_reduce_op(s->tensors, node), request->sources[0]->value,
                          request->range_list, request->range_count);
    default:
        break;
    }
    if (!bw_op_is_elementwise(op))
        return request->sources[0]->value;
    for (uint32_t i = 0; i < bw_ir_source_count(s->tensors, node); i++)
        values[i] = request->sources[i]->value;
    return bw_ir_rebuild(s->ir, s->tensors, node, values);
}
