/* Copies and folds: counted, prepared or appended to a graph. See collective.h. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/collective/collective.h"

enum { AREA_ALIGN_BYTES = 256 /* a cache line of every device */ };

static uint64_t bytes_of(enum bw_dtype dtype, uint64_t count)
{
    return count * bw_dtype_bytes(dtype);
}

static bool is_scratch(enum bw_area area)
{
    return area != BW_AREA_SEND && area != BW_AREA_RECEIVE;
}

static void spot_note(struct bw_making *making, uint32_t rank, const struct bw_spot *spot, uint64_t count)
{
    uint64_t end = spot->offset + bytes_of(spot->dtype, count);
    uint64_t *bytes = &making->collective->area_bytes[rank][spot->area];
    if (is_scratch(spot->area) && end > *bytes)
        *bytes = bw_align_up(end, AREA_ALIGN_BYTES);
}

static struct bw_range range_of(const struct bw_making *making, uint32_t rank, const struct bw_spot *spot,
                                uint64_t count)
{
    const struct bw_collective *collective = making->collective;
    struct bw_range range = {.buffer = collective->scratch[rank],
                             .offset = collective->area_offset[rank][spot->area]};
    if (spot->area == BW_AREA_SEND)
        range = making->send[rank];
    if (spot->area == BW_AREA_RECEIVE)
        range = making->receive[rank];
    range.offset += spot->offset;
    range.size_bytes = bytes_of(spot->dtype, count);
    return range;
}

/* Where a range begins, to be compared with another one of the same device: views of one buffer are one
 * memory. */
static uint64_t begin_of(const struct bw_range *range)
{
    return range->buffer ? bw_buffer_address(range->buffer) + range->offset : range->offset;
}

/* Of one rank. */
static bool ranges_overlap(const struct bw_range *a, const struct bw_range *b)
{
    bool comparable = a->buffer ? b->buffer != NULL : !b->buffer && a->input == b->input;
    return comparable && begin_of(a) < begin_of(b) + b->size_bytes &&
           begin_of(b) < begin_of(a) + a->size_bytes;
}

void bw_make_copy(struct bw_making *making, uint32_t from, struct bw_spot source, uint32_t to,
                  struct bw_spot target, uint64_t count)
{
    if (making->rc || !count)
        return;
    if (making->mode == BW_MAKING_COST) {
        bw_cost_copy(making->cost, from, to, bytes_of(source.dtype, count));
        return;
    }
    if (making->mode == BW_MAKING_PREPARE) {
        spot_note(making, from, &source, count);
        spot_note(making, to, &target, count);
        return;
    }
    struct bw_range source_range = range_of(making, from, &source, count),
                    target_range = range_of(making, to, &target, count);
    bool same = from == to && ranges_overlap(&source_range, &target_range) &&
                begin_of(&source_range) == begin_of(&target_range);
    if (!same) /* in place it lies there already */
        making->rc = bw_graph_copy(making->graph, making->collective->devices[from], target_range,
                                   source_range, making->err);
}

/* ---- folds ---- */

static const struct bw_fold_kernel *kernel_find(struct bw_collective *collective, const struct bw_fold *fold)
{
    for (size_t i = 0; i < collective->kernels.count; i++) {
        const struct bw_fold *known = &collective->kernels.data[i].fold;
        if (known->count == fold->count && known->input_count == fold->input_count &&
            known->output == fold->output && known->last == fold->last &&
            !memcmp(known->inputs, fold->inputs, fold->input_count * sizeof fold->inputs[0]))
            return &collective->kernels.data[i];
    }
    return NULL;
}

static void fold_prepare(struct bw_making *making, const struct bw_fold *fold)
{
    struct bw_fold_kernel kernel;
    if (kernel_find(making->collective, fold))
        return;
    making->rc = bw_fold_kernel_make(making->collective, fold, &kernel, making->err);
    if (!making->rc && bw_vec_push(&making->collective->kernels, kernel)) {
        bw_fold_kernel_free(&kernel, making->collective->rank_count);
        making->rc = bw_fail(making->err, -ENOMEM, "collective", "kernel");
    }
}

static void fold_launch(struct bw_making *making, uint32_t rank, const struct bw_fold *fold,
                        const struct bw_range *target, const struct bw_range *inputs)
{
    const struct bw_fold_kernel *kernel = kernel_find(making->collective, fold);
    struct bw_argument arguments[1 + BW_FOLD_INPUTS_MAX] = {
        {.source = BW_ARG_RANGE, .range = *target, .access = BW_ACCESS_WRITE}};
    for (uint32_t i = 0; i < fold->input_count; i++)
        arguments[1 + i] = (struct bw_argument){
            .source = BW_ARG_RANGE, .range = inputs[kernel->order[i]], .access = BW_ACCESS_READ};
    struct bw_launch launch = {.arguments = arguments,
                               .argument_count = 1 + fold->input_count,
                               .flops = kernel->flops,
                               .group_size = {kernel->group_size, 1, 1}};
    for (int d = 0; d < 3; d++)
        launch.group_count[d].value = kernel->group_count[d];
    making->rc = bw_graph_kernel(making->graph, kernel->kernels[rank], &launch, making->err);
}

/* One kernel. Its arguments never overlap: what would be written onto an input goes beside it first. */
static void fold_one(struct bw_making *making, uint32_t rank, struct bw_spot target,
                     const struct bw_spot *inputs, const struct bw_fold *fold)
{
    struct bw_spot beside = {BW_AREA_RESULT, 0, target.dtype};
    if (making->rc)
        return;
    if (making->mode == BW_MAKING_COST) {
        bw_cost_fold(making->cost, rank);
        return;
    }
    if (making->mode == BW_MAKING_PREPARE) {
        spot_note(making, rank, &target, fold->count);
        for (uint32_t i = 0; i < fold->input_count; i++)
            spot_note(making, rank, &inputs[i], fold->count);
        for (uint32_t i = 0; i < fold->input_count; i++)
            if (target.area == BW_AREA_RECEIVE && inputs[i].area == BW_AREA_SEND)
                spot_note(making, rank, &beside, fold->count);
        fold_prepare(making, fold);
        return;
    }
    struct bw_range ranges[BW_FOLD_INPUTS_MAX], target_range = range_of(making, rank, &target, fold->count);
    bool overlaps = false;
    for (uint32_t i = 0; i < fold->input_count; i++) {
        ranges[i] = range_of(making, rank, &inputs[i], fold->count);
        overlaps |= ranges_overlap(&ranges[i], &target_range);
    }
    if (overlaps)
        target_range = range_of(making, rank, &beside, fold->count);
    fold_launch(making, rank, fold, &target_range, ranges);
    if (overlaps)
        bw_make_copy(making, rank, beside, rank, target, fold->count);
}

static enum bw_dtype wide_of(enum bw_dtype dtype)
{
    return dtype == BW_F16 || dtype == BW_BF16 ? BW_F32 : dtype;
}

void bw_make_fold(struct bw_making *making, uint32_t rank, struct bw_spot target,
                  const struct bw_spot *inputs, uint32_t input_count, uint64_t count, bool last)
{
    enum bw_dtype wide = wide_of(making->collective->options.dtype);
    if (input_count == 1 && inputs[0].dtype == target.dtype) { /* also the average of one rank */
        bw_make_copy(making, rank, inputs[0], rank, target, count);
        return;
    }
    struct bw_spot chain = {BW_AREA_CHAIN, 0, wide}, some[BW_FOLD_INPUTS_MAX];
    for (uint32_t done = 0, kernels = 0; done < input_count && count; kernels++) {
        struct bw_fold fold = {.count = count};
        if (kernels) {
            some[fold.input_count++] = chain;
            chain.offset = kernels % 2 * bytes_of(wide, count);
        }
        while (fold.input_count < BW_FOLD_INPUTS_MAX && done < input_count)
            some[fold.input_count++] = inputs[done++];
        struct bw_spot to = done == input_count ? target : chain;
        fold.output = to.dtype;
        fold.last = last && done == input_count;
        for (uint32_t i = 0; i < fold.input_count; i++)
            fold.inputs[i] = some[i].dtype;
        fold_one(making, rank, to, some, &fold);
    }
}

void bw_make_round(struct bw_making *making)
{
    if (making->mode == BW_MAKING_COST)
        bw_cost_round(making->cost);
}

int64_t bw_make_distance(const struct bw_making *making, uint32_t rank)
{
    return (int64_t)(begin_of(&making->send[rank]) - begin_of(&making->receive[rank]));
}

bool bw_make_in_place(const struct bw_making *making, uint32_t rank)
{
    return making->mode != BW_MAKING_GRAPH || ranges_overlap(&making->send[rank], &making->receive[rank]);
}
