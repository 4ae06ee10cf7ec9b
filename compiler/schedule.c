/* What is stored: see schedule.h.
 *
 * Users are visited before their sources. Each user asks its sources for the elements that it needs (a
 * request: group and index); when all users of a node have asked, it is decided:
 *  - outputs and what CONTIGUOUS names are stored;
 *  - a value that runs a reduction is stored when it is asked for at more than one index, inside another
 * reduction, under a gate, or more often than it has elements (a broadcast): otherwise it is fused into its
 * only reader;
 *  - any other value is stored when recomputing it costs more than storing it and loading it back;
 *  - a value that depends on constants only is stored where something that does not needs it, and computed
 * once. What is not stored passes its requests on. */
#include "compiler/schedule.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "compiler/kernel.h"
#include "compiler/rewrite.h"
#include "compiler/schedule_internal.h"
#include "compiler/symbolic.h"

/* In simple operations per element: a store, its loads, and a share of one more kernel. */
static const double STORE_COST = 32;
static const float COST_MAX = 1e6f;
static const float INDEX_COST_MAX =
    8; /* arithmetic on indexes alone, which loops hoist, is never worth memory below this */
static const int64_t ONCE_BYTES_MAX =
    64 << 20; /* larger folded constants would cost more memory than they save */

static float operation_cost(const struct bw_ir *ir, bw_node node)
{
    float wide = bw_ir_dtype(ir, node) == BW_F64 ? 2 : 1;
    switch (bw_ir_op(ir, node)) {
    case BW_OP_EXP2:
    case BW_OP_LOG2:
    case BW_OP_SIN:
        return 8 * wide;
    case BW_OP_DIV:
    case BW_OP_RECIPROCAL:
    case BW_OP_SQRT:
    case BW_OP_FLOOR_DIV:
    case BW_OP_FLOOR_MOD:
    case BW_OP_TRUNC_MOD:
        return 4 * wide;
    case BW_OP_CAST:
        return 0.1f; /* narrow types are worth keeping narrow in memory */
    default:
        return 1;
    }
}

static void cost_elementwise(struct scheduler *s, bw_node node)
{
    struct node_state *state = &s->nodes[node];
    uint32_t count = bw_ir_source_count(s->tensors, node);
    state->constant = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct node_state *source = &s->nodes[bw_ir_source(s->tensors, node, i)];
        state->cost += source->cost;
        state->reads_memory |= source->reads_memory;
        state->constant &= source->constant;
        state->has_reduce |= source->has_reduce;
    }
    float own = bw_op_is_elementwise(bw_ir_op(s->tensors, node)) ? operation_cost(s->tensors, node) : 0.01f;
    state->cost += own;
    if (!state->reads_memory && !state->has_reduce)
        state->cost *= 0.5f; /* arithmetic on indexes alone is mostly hoisted */
    if (state->cost > COST_MAX)
        state->cost = COST_MAX;
}

/* Reading through a broadcast, a gate or an index makes the source stored when it runs a reduction (see
 * above). */
static void cost_of_view(struct scheduler *s, bw_node node)
{
    struct node_state *state = &s->nodes[node];
    cost_elementwise(s, node);
    bool grows =
        bw_ir_elements(s->tensors, node) > bw_ir_elements(s->tensors, bw_ir_source(s->tensors, node, 0));
    if (s->nodes[bw_ir_source(s->tensors, node, 0)].has_reduce && grows) {
        state->cost = 0.01f;
        state->has_reduce = false;
    }
}

void bw_schedule_costs(struct scheduler *s)
{
    for (bw_node node = 1; node < bw_ir_count(s->tensors); node++) {
        struct node_state *state = &s->nodes[node];
        switch (bw_ir_op(s->tensors, node)) {
        case BW_OP_CONST:
        case BW_OP_INDEXES:
            state->constant = true;
            break;
        case BW_OP_BUFFER:
            state->constant = !s->is_input[bw_ir_buffer_number(s->tensors, node)];
            state->reads_memory = true;
            break;
        case BW_OP_REDUCE:
            cost_elementwise(s, node);
            state->has_reduce = true;
            break;
        case BW_OP_EXPAND:
        case BW_OP_PAD:
        case BW_OP_GATHER:
            cost_of_view(s, node);
            break;
        default:
            cost_elementwise(s, node);
        }
    }
}

static bool is_movement(const struct scheduler *s, bw_node node)
{
    enum bw_op op = bw_ir_op(s->tensors, node);
    if (op == BW_OP_GATHER) { /* windows: the index is arithmetic, nothing is looked up */
        bool looks_up = false;
        for (uint32_t i = 1; i < bw_ir_source_count(s->tensors, node); i++)
            looks_up |= s->nodes[bw_ir_source(s->tensors, node, i)].reads_memory;
        return !looks_up;
    }
    return bw_op_class(op) == BW_OP_MOVEMENT || bw_op_class(op) == BW_OP_LEAF || op == BW_OP_CONTIGUOUS;
}

static bool stored_once(const struct scheduler *s, bw_node node)
{
    const struct node_state *state = &s->nodes[node];
    if (!state->constant || !state->reads_memory ||
        bw_ir_elements(s->tensors, node) * bw_dtype_bytes(bw_ir_dtype(s->tensors, node)) > ONCE_BYTES_MAX)
        return false;
    for (const struct request *request = state->requests; request; request = request->next)
        if (!s->groups.data[request->group].once)
            return true;
    return false;
}

enum { COST_WALK_MAX = 256 }; /* nodes; whatever is larger is worth storing */

/* Cost of one element with every shared value counted once; state->cost counts it for each of its users.
 * Counts no further than the limit. */
static double shared_cost(const struct scheduler *s, bw_node root, double limit)
{
    bw_node seen[COST_WALK_MAX] = {root};
    uint32_t count = 1;
    double cost = 0;
    for (uint32_t at = 0; at < count && cost <= limit; at++) {
        const struct node_state *state = &s->nodes[seen[at]];
        bool arithmetic_on_indexes = !state->reads_memory;
        if (bw_op_is_elementwise(bw_ir_op(s->tensors, seen[at])))
            cost += operation_cost(s->tensors, seen[at]) * (arithmetic_on_indexes ? 0.5 : 1);
        bool broadcasts_stored = state->cost <= 0.01f;
        for (uint32_t i = 0; i < bw_ir_source_count(s->tensors, seen[at]) && !broadcasts_stored; i++) {
            bw_node source = bw_ir_source(s->tensors, seen[at], i);
            uint32_t k = 0;
            while (k < count && seen[k] != source)
                k++;
            if (k == COST_WALK_MAX)
                return (double)COST_MAX;
            if (k == count)
                seen[count++] = source;
        }
    }
    return cost;
}

enum {
    GROUP_RANGES_MAX = 40,      /* of BW_KERNEL_RANGES_MAX; splitting makes more */
    GROUP_LOADS_MAX = 200,      /* pointers are registers, or loads of their own */
    GROUP_WORK_MAX = 1024,      /* what compiles a kernel takes more than twice the time for twice the work */
    GROUP_WORK_HARD_MAX = 4096, /* then even what is cheap to compute again, or only moves, is stored */
};

static double group_work(const struct scheduler *s, bw_node node)
{
    double most = 0;
    for (const struct request *request = s->nodes[node].requests; request; request = request->next)
        if ((double)s->groups.data[request->group].work > most)
            most = (double)s->groups.data[request->group].work;
    return most;
}

/* Whoever asks has as many loops, operands or operations as one kernel should: what is asked for becomes a
 * kernel of its own. A chain of any length is cut so, into kernels that are mostly one and the same. */
static bool group_is_full(const struct scheduler *s, bw_node node)
{
    uint32_t rank = bw_ir_op(s->tensors, node) == BW_OP_REDUCE ? bw_ir_shape(s->tensors, node)->rank : 0;
    for (const struct request *request = s->nodes[node].requests; request; request = request->next) {
        const struct group *group = &s->groups.data[request->group];
        if (rank && group->range_count + rank > GROUP_RANGES_MAX)
            return true;
        if (group->load_count > GROUP_LOADS_MAX && s->nodes[node].reads_memory)
            return true;
    }
    return s->nodes[node].reads_memory && group_work(s, node) > GROUP_WORK_MAX;
}

static bool wants_store(const struct scheduler *s, bw_node node)
{
    const struct node_state *state = &s->nodes[node];
    if (state->must_store)
        return true;
    if (bw_op_class(bw_ir_op(s->tensors, node)) != BW_OP_LEAF && group_work(s, node) > GROUP_WORK_HARD_MAX)
        return true;
    if (is_movement(s, node))
        return false;
    if (stored_once(s, node) || group_is_full(s, node))
        return true;
    double points = 0, elements = (double)bw_ir_elements(s->tensors, node);
    bool gated = false, in_reduce = false;
    for (const struct request *request = state->requests; request; request = request->next) {
        points += request->points;
        gated |= request->gate != 0;
        in_reduce |= request->in_reduce;
    }
    double evaluations = points / (elements > 0 ? elements : 1);
    if (state->has_reduce)
        return state->request_count > 1 || gated || in_reduce || evaluations > 1.001;
    if (state->cost * (evaluations - 1) <= STORE_COST ||
        (!state->reads_memory && state->cost <= INDEX_COST_MAX))
        return false;
    return shared_cost(s, node, STORE_COST / (evaluations - 1)) * (evaluations - 1) > STORE_COST;
}

/* A group for a node that is stored, with one range per axis that has more than one element. */
static int group_create(struct scheduler *s, bw_node node)
{
    const struct bw_shape *shape = bw_ir_shape(s->tensors, node);
    struct group group = {.node = node, .buffer = s->nodes[node].buffer - 1, .once = s->nodes[node].constant};
    bw_node index[BW_RANK_MAX];
    for (uint32_t i = 0; i < shape->rank; i++)
        index[i] = shape->dims[i] == 1 ? bw_sym_const(s->ir, 0)
                                       : bw_ir_range(s->ir, group.range_count++, BW_RANGE_LOOP,
                                                     bw_sym_const(s->ir, shape->dims[i]));
    if (bw_vec_push(&group.arguments, group.buffer))
        return -ENOMEM;
    if (bw_vec_push(&s->groups, group)) {
        bw_vec_free(&group.arguments);
        return -ENOMEM;
    }
    struct request root = {.group = (uint32_t)s->groups.count - 1,
                           .rank = shape->rank,
                           .points = (double)bw_ir_elements(s->tensors, node)};
    root.index = bw_arena_copy(&s->arena, index, shape->rank * sizeof *index);
    struct request *made = root.index ? bw_arena_copy(&s->arena, &root, sizeof root) : NULL;
    s->groups.data[s->groups.count - 1].root = made;
    return made ? bw_schedule_expand(s, node, made) : -ENOMEM;
}

static int decide(struct scheduler *s, bw_node node)
{
    struct node_state *state = &s->nodes[node];
    if ((!state->requests && !state->must_store) || bw_ir_op(s->tensors, node) == BW_OP_BUFFER)
        return 0;
    if (wants_store(s, node)) {
        int rc = bw_schedule_assign_buffer(s, node);
        state->stored = true;
        for (struct request *request = state->requests; request; request = request->next) {
            request->loads = request->value == 0;
            s->groups.data[request->group].load_count += request->loads;
        }
        if (rc || bw_ir_elements(s->tensors, node) == 0)
            return rc; /* nothing is to be computed: no kernel */
        return group_create(s, node);
    }
    float work = bw_op_is_elementwise(bw_ir_op(s->tensors, node)) ? operation_cost(s->tensors, node) : 1;
    for (struct request *request = state->requests; request; request = request->next) {
        s->groups.data[request->group].work += work;
        int rc = bw_schedule_expand(s, node, request);
        if (rc)
            return rc;
    }
    return 0;
}

/* What an output or a CONTIGUOUS names: the node below reshapes, which have the same bytes. */
static bw_node stored_base(const struct scheduler *s, bw_node node)
{
    while (bw_ir_op(s->tensors, node) == BW_OP_RESHAPE || bw_ir_op(s->tensors, node) == BW_OP_CONTIGUOUS)
        node = bw_ir_source(s->tensors, node, 0);
    return node;
}

static int mark_roots(struct scheduler *s, const bw_node *outputs, uint32_t output_count)
{
    bool *reached = bw_ir_reachable(s->tensors, outputs, output_count);
    int rc = reached ? 0 : -ENOMEM;
    for (bw_node node = 1; !rc && node < bw_ir_count(s->tensors); node++)
        if (reached[node] && bw_ir_op(s->tensors, node) == BW_OP_CONTIGUOUS) {
            bw_node base = stored_base(s, node);
            if (bw_ir_op(s->tensors, base) != BW_OP_BUFFER)
                rc = bw_schedule_assign_buffer(s, base);
        }
    for (uint32_t i = 0; !rc && i < output_count; i++) {
        bw_node base = stored_base(s, outputs[i]);
        if (bw_ir_op(s->tensors, base) != BW_OP_BUFFER)
            rc = bw_schedule_assign_buffer(s, base);
        s->schedule->outputs[i] = s->nodes[base].buffer - 1;
        if (!rc)
            s->schedule->buffers.data[s->schedule->outputs[i]].output = true;
    }
    free(reached);
    return rc;
}

static int compute_values(struct scheduler *s)
{
    for (bw_node node = 1; node < bw_ir_count(s->tensors); node++)
        for (struct request *request = s->nodes[node].requests; request; request = request->next)
            if (!request->value && !(request->value = bw_schedule_value(s, node, request)))
                return -ENOMEM;
    return 0;
}

/* In an ir of its own: what simplification tries and drops would make every later walk longer. */
static bw_node simplify_apart(struct scheduler *s, const struct group *group, bw_node sink, int64_t **offsets)
{
    uint32_t count = (uint32_t)group->arguments.count;
    int64_t *elements = bw_arena_alloc(&s->arena, count * sizeof *elements);
    struct bw_ir *scratch;
    if (!sink || !elements || bw_ir_create(&scratch, NULL))
        return 0;
    for (uint32_t i = 0; i < count; i++)
        elements[i] = s->schedule->buffers.data[group->arguments.data[i]].elements;
    int rc = bw_ir_rewrite(scratch, s->ir, &sink, 1, NULL, NULL);
    if (!rc)
        sink = bw_kernel_simplify(scratch, sink);
    if (!rc && sink)
        rc = bw_schedule_views(scratch, &sink, elements, count, offsets);
    if (!rc && sink)
        rc = bw_ir_rewrite(s->ir, scratch, &sink, 1, NULL, NULL);
    struct bw_err why;
    if ((rc || !sink) && bw_ir_error(scratch, &why))
        bw_ir_fail(s->ir, why.code, "%s", why.what);
    bw_ir_destroy(scratch);
    return rc ? 0 : sink;
}

/* Groups were made from the last to the first: sources of a stored node have lower numbers, so that order is
 * reversed. */
static int emit_kernels(struct scheduler *s)
{
    for (size_t i = s->groups.count; i-- > 0;) {
        struct group *group = &s->groups.data[i];
        bw_node value = bw_schedule_value(s, group->node, group->root);
        bw_node param = bw_kernel_param(s->ir, bw_ir_dtype(s->tensors, group->node), 0, true,
                                        bw_ir_elements(s->tensors, group->node));
        bw_node flat = bw_schedule_flatten(s->ir, bw_ir_shape(s->tensors, group->node), group->root->index);
        bw_node store = bw_ir_store(s->ir, param, flat, value, 0);
        bw_node sink = store ? bw_ir_add(s->ir, BW_OP_SINK, BW_VOID, 0, &store, 1) : 0;
        int64_t *offsets = NULL;
        sink = simplify_apart(s, group, sink, &offsets);
        struct bw_schedule_kernel kernel = {.sink = sink,
                                            .arguments = group->arguments.data,
                                            .offsets = offsets,
                                            .argument_count = (uint32_t)group->arguments.count,
                                            .once = group->once};
        if (!sink || bw_vec_push(&s->schedule->kernels, kernel)) {
            free(offsets);
            return -ENOMEM;
        }
        group->arguments.data = NULL; /* now the kernel's */
    }
    return 0;
}

static int schedule_buffers(struct scheduler *s)
{
    for (bw_node node = 1; node < bw_ir_count(s->tensors); node++) {
        if (bw_ir_op(s->tensors, node) != BW_OP_BUFFER)
            continue;
        struct bw_schedule_buffer buffer = {.kind = BW_SCHEDULE_TENSOR,
                                            .dtype = bw_ir_dtype(s->tensors, node),
                                            .elements = bw_ir_elements(s->tensors, node),
                                            .node = node,
                                            .tensor_buffer = bw_ir_buffer_number(s->tensors, node)};
        assert(buffer.tensor_buffer < s->buffer_count);
        if (bw_vec_push(&s->schedule->buffers, buffer))
            return -ENOMEM;
        s->nodes[node].buffer = (uint32_t)s->schedule->buffers.count;
    }
    return 0;
}

static int schedule_run(struct scheduler *s, const bw_node *outputs, uint32_t output_count)
{
    int rc = schedule_buffers(s);
    if (rc)
        return rc;
    bw_schedule_costs(s);
    rc = mark_roots(s, outputs, output_count);
    for (bw_node node = bw_ir_count(s->tensors) - 1; !rc && node > 0; node--)
        rc = decide(s, node);
    if (!rc)
        rc = compute_values(s);
    return rc ? rc : emit_kernels(s);
}

int bw_schedule_create(const struct bw_ir *tensors, const bool *is_input, uint32_t buffer_count,
                       const bw_node *outputs, uint32_t output_count, struct bw_schedule **out,
                       struct bw_err *err)
{
    struct bw_schedule *schedule = calloc(1, sizeof *schedule);
    if (!schedule)
        return bw_fail(err, -ENOMEM, "schedule", "new schedule");
    struct scheduler s = {
        .tensors = tensors, .is_input = is_input, .buffer_count = buffer_count, .schedule = schedule};
    int rc = bw_ir_create(&schedule->ir, err);
    s.ir = schedule->ir;
    s.nodes = calloc(bw_ir_count(tensors), sizeof *s.nodes);
    schedule->outputs = calloc(output_count + 1, sizeof *schedule->outputs);
    schedule->output_count = output_count;
    if (!rc && (!s.nodes || !schedule->outputs))
        rc = -ENOMEM;
    if (!rc)
        rc = schedule_run(&s, outputs, output_count);
    if (rc && (!schedule->ir || !bw_ir_error(schedule->ir, err)))
        bw_fail(err, rc, "schedule", "%u nodes", bw_ir_count(tensors));
    else if (rc)
        rc = bw_ir_error(schedule->ir, err);
    for (size_t i = 0; i < s.groups.count; i++)
        bw_vec_free(&s.groups.data[i].arguments);
    bw_vec_free(&s.groups);
    bw_map_free(&s.requests);
    bw_arena_free(&s.arena);
    free(s.nodes);
    if (rc)
        bw_schedule_destroy(schedule);
    else
        *out = schedule;
    return rc;
}

void bw_schedule_destroy(struct bw_schedule *schedule)
{
    if (!schedule)
        return;
    for (size_t i = 0; i < schedule->kernels.count; i++)
        free(schedule->kernels.data[i].arguments), free(schedule->kernels.data[i].offsets);
    bw_vec_free(&schedule->kernels);
    bw_vec_free(&schedule->buffers);
    bw_ir_destroy(schedule->ir);
    free(schedule->outputs);
    free(schedule);
}
