/* Cones: elementwise ops over stored views, block by block, stored or folded. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/evaluate.h"

enum { REGISTER_BYTES = BW_BLOCK * 8 };

int bw_cone_prepare(struct bw_cone *cone, struct bw_err *err)
{
    assert(cone->leaf_count <= BW_CONE_LEAVES_MAX && cone->op_count <= BW_CONE_OPS_MAX);
    /* one more for a shift's counts, two for the accumulator and its next value */
    cone->registers = malloc((size_t)(cone->leaf_count + cone->op_count + 3) * REGISTER_BYTES);
    if (!cone->registers)
        return bw_fail(err, -ENOMEM, "evaluate", "registers of %u ops", cone->op_count);
    return 0;
}

void bw_cone_finish(struct bw_cone *cone)
{
    free(cone->registers);
    cone->registers = NULL;
}

static uint8_t *cone_register(const struct bw_cone *cone, uint32_t number)
{
    return cone->registers + (size_t)number * REGISTER_BYTES;
}

/* Runs the ops on n elements; values[] holds the leaves' and receives the ops'. The last value is the cone's.
 */
static const void *cone_run(const struct bw_cone *cone, const void **values, int64_t n)
{
    for (uint32_t k = 0; k < cone->op_count; k++) {
        const struct bw_cone_op *op = &cone->ops[k];
        const void *in[3] = {values[op->sources[0]], values[op->sources[1]], values[op->sources[2]]};
        uint8_t *out = cone_register(cone, cone->leaf_count + k);
        if (op->shift) {
            uint8_t *counts = cone_register(cone, cone->leaf_count + cone->op_count);
            const void *count_in[3] = {in[1]};
            enum bw_dtype from = op->sources[1] < cone->leaf_count
                                     ? cone->leaves[op->sources[1]]->dtype
                                     : cone->ops[op->sources[1] - cone->leaf_count].to;
            bw_evaluate_run(BW_OP_CAST, from, BW_I64, n, counts, count_in);
            in[1] = counts;
        }
        bw_evaluate_run(op->op, op->from, op->to, n, out, in);
        values[cone->leaf_count + k] = out;
    }
    return values[cone->leaf_count + cone->op_count - 1];
}

void bw_cone_store(struct bw_cone *cone, const struct bw_shape *stored, void *out)
{
    struct bw_cursor *cursors = calloc(cone->leaf_count, sizeof *cursors);
    const void *values[BW_CONE_LEAVES_MAX + BW_CONE_OPS_MAX];
    uint32_t element_bytes = bw_dtype_bytes(cone->dtype);
    assert(cursors);
    for (uint32_t i = 0; i < cone->leaf_count; i++) {
        struct bw_view view = *cone->leaves[i];
        view.shape = *stored;
        bw_cursor_start(&cursors[i], &view);
    }
    int64_t left = bw_view_stored_elements(stored, 0);
    for (uint8_t *at = out; left > 0;) {
        int64_t n = left < BW_BLOCK ? left : BW_BLOCK;
        for (uint32_t i = 0; i < cone->leaf_count; i++)
            values[i] = bw_cursor_next(&cursors[i], n, cone_register(cone, i));
        memcpy(at, cone_run(cone, values, n), (size_t)n * element_bytes);
        at += n * element_bytes;
        left -= n;
    }
    free(cursors);
}

/* An axis that all leaves walk together; strides in bytes. */
struct joint_axis {
    int64_t size, out_stride;
    int64_t strides[BW_CONE_LEAVES_MAX];
};

struct reduction {
    struct bw_cone *cone;
    enum bw_op op;
    uint32_t out_rank, reduce_rank;
    struct joint_axis out[BW_RANK_MAX], reduce[BW_RANK_MAX];
    uint8_t *result;
    uint8_t identity[8];
};

/* Does `inner` continue `outer` in every leaf (and in the result)? */
static bool axes_join(const struct reduction *r, struct joint_axis *outer, const struct joint_axis *inner)
{
    if (outer->out_stride != inner->out_stride * inner->size)
        return false;
    for (uint32_t i = 0; i < r->cone->leaf_count; i++)
        if (outer->strides[i] != inner->strides[i] * inner->size)
            return false;
    int64_t size = outer->size * inner->size;
    *outer = *inner;
    outer->size = size;
    return true;
}

static void reduction_axes(struct reduction *r, uint32_t axes_mask, uint32_t collapsed)
{
    const struct bw_shape *shape = &r->cone->shape;
    int64_t out_stride = 1, out_strides[BW_RANK_MAX];
    for (uint32_t i = shape->rank; i-- > 0;) {
        bool stays = !(axes_mask >> i & 1) && !(collapsed >> i & 1);
        out_strides[i] = stays ? out_stride : 0;
        out_stride *= stays ? shape->dims[i] : 1;
    }
    bool last_reduced = false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        bool reduced = axes_mask >> i & 1;
        if (shape->dims[i] == 1 || (!reduced && collapsed >> i & 1))
            continue;
        struct joint_axis *list = reduced ? r->reduce : r->out;
        uint32_t *rank = reduced ? &r->reduce_rank : &r->out_rank;
        struct joint_axis *axis = &list[*rank];
        axis->size = shape->dims[i];
        axis->out_stride = out_strides[i];
        for (uint32_t k = 0; k < r->cone->leaf_count; k++)
            axis->strides[k] = r->cone->leaves[k]->strides[i] * bw_dtype_bytes(r->cone->leaves[k]->dtype);
        if (!*rank || last_reduced != reduced || !axes_join(r, axis - 1, axis))
            ++*rank;
        last_reduced = reduced;
    }
}

/* Counts up a multi-index over axes, moving the leaves' pointers along; false when it is through. */
static bool odometer_step(const struct reduction *r, const struct joint_axis *axes, uint32_t rank,
                          int64_t *index, const uint8_t **at, int64_t *out)
{
    for (uint32_t axis = rank; axis-- > 0;) {
        bool wraps = ++index[axis] == axes[axis].size;
        int64_t steps = wraps ? 1 - axes[axis].size : 1;
        for (uint32_t i = 0; i < r->cone->leaf_count; i++)
            at[i] += steps * axes[axis].strides[i];
        if (out)
            *out += steps * axes[axis].out_stride;
        if (!wraps)
            return true;
        index[axis] = 0;
    }
    return false;
}

/* The cone's value for n elements along one axis, from where the leaves point. */
static const void *reduction_block(const struct reduction *r, const uint8_t *const *at,
                                   const struct joint_axis *axis, int64_t n)
{
    const void *values[BW_CONE_LEAVES_MAX + BW_CONE_OPS_MAX];
    for (uint32_t i = 0; i < r->cone->leaf_count; i++) {
        uint32_t bytes = bw_dtype_bytes(r->cone->leaves[i]->dtype);
        uint8_t *copied = cone_register(r->cone, i);
        bool direct = n == 1 || axis->strides[i] == bytes;
        values[i] = at[i];
        if (!direct || (uintptr_t)at[i] % bytes) {
            bw_evaluate_load(copied, at[i], axis->strides[i] / bytes, n, bytes);
            values[i] = copied;
        }
    }
    return cone_run(r->cone, values, n);
}

/* The product of two stored f32 views, summed: matrix products and convolutions. */
static bool is_f32_product_sum(const struct reduction *r)
{
    const struct bw_cone *cone = r->cone;
    if (r->op != BW_OP_ADD || cone->dtype != BW_F32 || cone->op_count != 1 || cone->ops[0].op != BW_OP_MUL ||
        cone->leaf_count != 2)
        return false;
    return cone->ops[0].sources[0] != cone->ops[0].sources[1] && (uintptr_t)cone->leaves[0]->data % 4 == 0 &&
           (uintptr_t)cone->leaves[1]->data % 4 == 0;
}

static void lanes_accumulate(const struct reduction *r, uint8_t **accumulator, uint8_t **next,
                             const uint8_t *const *at, const struct joint_axis *lanes, int64_t n,
                             bool product_sum)
{
    if (product_sum) {
        bw_evaluate_multiply_add_f32((float *)(void *)*accumulator, (const float *)(const void *)at[0],
                                     lanes->strides[0] / 4, (const float *)(const void *)at[1],
                                     lanes->strides[1] / 4, n);
        return;
    }
    const void *in[3] = {*accumulator, reduction_block(r, at, lanes, n)};
    bw_evaluate_run(r->op, r->cone->dtype, r->cone->dtype, n, *next, in);
    uint8_t *swap = *accumulator;
    *accumulator = *next;
    *next = swap;
}

/* n results that lie along `lanes` at once: one addition each per step of the reduction. */
static void reduce_lanes(const struct reduction *r, const uint8_t *const *start,
                         const struct joint_axis *lanes, int64_t n, int64_t out)
{
    uint32_t bytes = bw_dtype_bytes(r->cone->dtype), registers = r->cone->leaf_count + r->cone->op_count;
    uint8_t *accumulator = cone_register(r->cone, registers + 1),
            *next = cone_register(r->cone, registers + 2);
    const uint8_t *at[BW_CONE_LEAVES_MAX];
    int64_t index[BW_RANK_MAX] = {0};
    bool product_sum = is_f32_product_sum(r);
    memcpy(at, start, r->cone->leaf_count * sizeof *at);
    bw_evaluate_load(accumulator, r->identity, 0, n, bytes);
    do
        lanes_accumulate(r, &accumulator, &next, at, lanes, n, product_sum);
    while (odometer_step(r, r->reduce, r->reduce_rank, index, at, NULL));
    for (int64_t i = 0; i < n; i++)
        memcpy(r->result + (out + i * lanes->out_stride) * bytes, accumulator + i * bytes, bytes);
}

/* One result: the innermost reduced axis goes by in blocks. */
static void reduce_single(const struct reduction *r, const uint8_t *const *start, int64_t out)
{
    uint32_t bytes = bw_dtype_bytes(r->cone->dtype), inner = r->reduce_rank - 1;
    const struct joint_axis *axis = &r->reduce[inner];
    const uint8_t *at[BW_CONE_LEAVES_MAX], *block[BW_CONE_LEAVES_MAX];
    int64_t index[BW_RANK_MAX] = {0};
    uint8_t accumulator[8];
    memcpy(at, start, r->cone->leaf_count * sizeof *at);
    memcpy(accumulator, r->identity, sizeof accumulator);
    do {
        for (int64_t done = 0; done < axis->size; done += BW_BLOCK) {
            int64_t n = axis->size - done < BW_BLOCK ? axis->size - done : BW_BLOCK;
            for (uint32_t i = 0; i < r->cone->leaf_count; i++)
                block[i] = at[i] + done * axis->strides[i];
            bw_evaluate_fold(r->op, r->cone->dtype, n, accumulator, reduction_block(r, block, axis, n));
        }
    } while (odometer_step(r, r->reduce, inner, index, at, NULL));
    memcpy(r->result + out * bytes, accumulator, bytes);
}

/* The output axis whose elements are computed side by side: long, and lying side by side in memory. Its
 * place, or -1 when the reduced axis is the longer one. */
static int lanes_choose(const struct reduction *r)
{
    enum { LONG_ENOUGH = 64, WORTHWHILE = 8 };
    int best = -1;
    int64_t best_score = 0;
    for (uint32_t axis = 0; axis < r->out_rank; axis++) {
        int64_t size = r->out[axis].size, score = size < LONG_ENOUGH ? size : LONG_ENOUGH;
        bool unit = true;
        for (uint32_t i = 0; i < r->cone->leaf_count; i++) {
            int64_t stride = r->out[axis].strides[i];
            unit &= stride == 0 || stride == bw_dtype_bytes(r->cone->leaves[i]->dtype);
        }
        score *= unit ? 4 : 1;
        if (score > best_score) {
            best_score = score;
            best = (int)axis;
        }
    }
    if (best < 0)
        return -1;
    int64_t inner = r->reduce[r->reduce_rank - 1].size;
    return r->out[best].size >= WORTHWHILE || r->out[best].size >= inner ? best : -1;
}

static void reduction_run(struct reduction *r)
{
    const uint8_t *at[BW_CONE_LEAVES_MAX], *block[BW_CONE_LEAVES_MAX];
    int64_t index[BW_RANK_MAX] = {0}, out = 0;
    int chosen = lanes_choose(r);
    struct joint_axis lanes = {0};
    if (chosen >= 0) {
        lanes = r->out[chosen];
        memmove(&r->out[chosen], &r->out[chosen + 1],
                (r->out_rank - (uint32_t)chosen - 1) * sizeof r->out[0]);
        r->out_rank--;
    }
    for (uint32_t i = 0; i < r->cone->leaf_count; i++)
        at[i] = r->cone->leaves[i]->data;
    do {
        if (chosen < 0)
            reduce_single(r, at, out);
        for (int64_t done = 0; done < lanes.size; done += BW_BLOCK) {
            for (uint32_t i = 0; i < r->cone->leaf_count; i++)
                block[i] = at[i] + done * lanes.strides[i];
            int64_t n = lanes.size - done < BW_BLOCK ? lanes.size - done : BW_BLOCK;
            reduce_lanes(r, block, &lanes, n, out + done * lanes.out_stride);
        }
    } while (odometer_step(r, r->out, r->out_rank, index, at, &out));
}

void bw_cone_reduce(struct bw_cone *cone, enum bw_op op, uint32_t axes_mask, uint32_t collapsed, void *out)
{
    struct reduction *r = calloc(1, sizeof *r);
    assert(r);
    r->cone = cone;
    r->op = op;
    r->result = out;
    bw_evaluate_identity(op, cone->dtype, r->identity);
    reduction_axes(r, axes_mask, collapsed);
    if (!r->reduce_rank) { /* every reduced axis has size 1 */
        r->reduce[r->reduce_rank++].size = 1;
    }
    reduction_run(r);
    free(r);
}
