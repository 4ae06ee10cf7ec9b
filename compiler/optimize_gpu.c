/* Shape of a kernel on a GPU: see optimize.h.
 *
 * Work-items run along the output that is contiguous in memory, each computing a few neighbours (wide loads
 * and stores) times a few elements of another range (shared operands; what is the same for a wave is loaded
 * by its scalar unit). Small outputs are joined so that waves are full. Where there are few outputs and long
 * reductions, the work-items of a group share the reduction. */
#include <assert.h>
#include <math.h>

#include "compiler/optimize_policy.h"
#include "compiler/symbolic.h"

enum {
    NEIGHBOURS_MAX = 4, /* outputs per item along the contiguous range: 16 bytes of f32 */
    TILE_MAX = 8,       /* along the other range */
    ITEMS_WANTED = 64,  /* per group, before more ranges are joined */
    BODY_MAX = 320,     /* multiply-adds in an unrolled loop body: what an instruction cache holds */
    WAVES_WANTED = 16,  /* fewer leave units idle */
    GROUP_REDUCE_OUTPUTS_MAX = 64, /* more fill a few waves by themselves */
    GROUP_REDUCE_SIZE_MIN = 256,
};

struct gpu_shape {
    int contiguous, tiled; /* ranges; -1: none */
    int64_t neighbours, tile;
    uint32_t joined[BW_KERNEL_RANGES_MAX]; /* ranges that work-items run along, outermost first */
    uint32_t joined_count;
    bool tiles_joined;         /* blocks of the tiled range are outermost among them */
    int64_t item_total, items; /* in all groups, per group */
    double cost;
};

static int64_t items_per_group(int64_t total, const struct bw_target *target)
{
    int64_t best = 0, wave = target->wave_size;
    double best_cost = 0;
    int64_t most = total < target->group_size_max ? total : (int64_t)target->group_size_max;
    for (int64_t t = most; t > 0; t = t > wave ? (t - 1) / wave * wave : 0) {
        int64_t waves = bw_div_up_i64(total, t) * bw_div_up_i64(t, wave);
        double cost = (double)waves * (1 + 0.02 * fabs(log2((double)t / ITEMS_WANTED)));
        if (!best || cost < best_cost) {
            best = t;
            best_cost = cost;
        }
    }
    return best;
}

/* Instructions per point of the reduction (or per element, outside). */
static double body_cost(const struct kernel_view *view, const struct gpu_shape *shape, uint64_t lanes)
{
    double cost = 0, inside = (double)view->reduce_points;
    for (size_t i = 0; i < view->loads.count; i++) {
        const struct access *load = &view->loads.data[i];
        double copies = 1, weight = load->depends & lanes ? 1.2 : 0.4;
        if (shape->contiguous >= 0 && load->depends >> shape->contiguous & 1) {
            bool wide = load->stride[shape->contiguous] == 1 && !(load->irregular >> shape->contiguous & 1) &&
                        bw_ir_source_count(view->ir, load->node) == 2;
            copies *= wide ? 1.2 : (double)shape->neighbours;
        }
        if (shape->tiled >= 0 && load->depends >> shape->tiled & 1)
            copies *= (double)shape->tile;
        if (bw_ir_source_count(view->ir, load->node) > 2)
            weight += 1;
        cost += copies * weight * (load->in_fold ? inside : 1);
    }
    double elements = (double)(shape->neighbours * shape->tile);
    return cost + elements * inside + elements * (view->arithmetic + 1) + 30;
}

static void join_ranges(const struct kernel_view *view, struct gpu_shape *shape)
{
    uint64_t used = shape->tiled >= 0 ? (uint64_t)1 << shape->tiled : 0;
    shape->item_total = view->ranges.sizes[shape->contiguous] / shape->neighbours;
    shape->joined[shape->joined_count++] = (uint32_t)shape->contiguous;
    used |= (uint64_t)1 << shape->contiguous;
    while (shape->item_total < ITEMS_WANTED) {
        int next = -1;
        for (uint32_t r = 0; r < view->ranges.count; r++)
            if (view->outputs >> r & 1 && !(used >> r & 1) && !(view->store.irregular >> r & 1) &&
                (next < 0 || view->store.stride[r] < view->store.stride[next]))
                next = (int)r;
        if (next < 0)
            break;
        used |= (uint64_t)1 << next;
        shape->item_total *= view->ranges.sizes[next];
        for (uint32_t i = shape->joined_count++; i > 0; i--)
            shape->joined[i] = shape->joined[i - 1];
        shape->joined[0] = (uint32_t)next;
    }
    if (shape->item_total < ITEMS_WANTED / 2 && shape->tiled >= 0) {
        shape->tiles_joined = true;
        shape->item_total *= bw_div_up_i64(view->ranges.sizes[shape->tiled], shape->tile);
    }
}

static void shape_cost(const struct kernel_view *view, const struct bw_target *target,
                       struct gpu_shape *shape)
{
    join_ranges(view, shape);
    shape->items = items_per_group(shape->item_total, target);
    uint64_t lanes = shape->tiles_joined ? (uint64_t)1 << shape->tiled : 0;
    for (uint32_t i = 0; i < shape->joined_count; i++)
        lanes |= (uint64_t)1 << shape->joined[i];
    double waves = (double)(bw_div_up_i64(shape->item_total, shape->items) *
                            bw_div_up_i64(shape->items, target->wave_size));
    for (uint32_t r = 0; r < view->ranges.count; r++) {
        if (!(view->outputs >> r & 1) || lanes >> r & 1)
            continue;
        int64_t size = view->ranges.sizes[r];
        waves *= (double)((int)r == shape->tiled ? bw_div_up_i64(size, shape->tile) : size);
    }
    shape->cost = waves * body_cost(view, shape, lanes);
    if (waves < WAVES_WANTED)
        shape->cost *= 1 + 0.5 * (WAVES_WANTED - waves) / WAVES_WANTED;
}

static struct gpu_shape choose(const struct kernel_view *view, const struct bw_target *target)
{
    struct gpu_shape best = {.cost = -1};
    int contiguous = find_contiguous_output(view);
    if (contiguous < 0) /* the store is irregular everywhere: any output will do */
        contiguous = 63 - __builtin_clzll(view->outputs);
    int tiled = view->fold_count ? find_reuse_range(view, (uint64_t)1 << contiguous) : -1;
    int64_t size = view->ranges.sizes[contiguous];
    for (int64_t neighbours = 1; neighbours <= NEIGHBOURS_MAX; neighbours++) {
        if (size % neighbours)
            continue;
        for (int64_t tile = tiled < 0 ? 1 : 2; tile <= (tiled < 0 ? 1 : TILE_MAX); tile++) {
            if (tiled >= 0 && tile > view->ranges.sizes[tiled])
                break;
            struct gpu_shape shape = {
                .contiguous = contiguous, .tiled = tiled, .neighbours = neighbours, .tile = tile};
            shape_cost(view, target, &shape);
            if (best.cost < 0 || shape.cost < best.cost)
                best = shape;
        }
    }
    return best;
}

/* to[] of the ranges that work-items run along, from one item number. */
static void place_items(struct tiling *tiling, const struct gpu_shape *shape, bw_node *tile_block)
{
    const struct kernel_view *view = tiling->view;
    struct bw_ir *ir = tiling->ir;
    int64_t groups = bw_div_up_i64(shape->item_total, shape->items);
    bw_node group = tiling_range(tiling, BW_RANGE_GLOBAL, groups),
            item = tiling_range(tiling, BW_RANGE_ITEM, shape->items);
    bw_node flat = bw_sym_add(ir, tiling_block(tiling, group, shape->items, shape->item_total), item);
    bw_node neighbour = tiling_range(tiling, BW_RANGE_UPCAST, shape->neighbours);
    for (uint32_t i = shape->joined_count; i-- > 0;) {
        uint32_t r = shape->joined[i];
        bool contiguous = (int)r == shape->contiguous, outermost = i == 0 && !shape->tiles_joined;
        int64_t size = view->ranges.sizes[r] / (contiguous ? shape->neighbours : 1);
        bw_node at = outermost ? flat : bw_sym_mod(ir, flat, size);
        tiling->to[r] = contiguous ? bw_sym_add(ir, bw_sym_mul(ir, at, shape->neighbours), neighbour) : at;
        flat = bw_sym_div(ir, flat, size);
    }
    if (shape->tiles_joined)
        *tile_block = flat;
}

static bw_node apply(const struct kernel_view *view, const struct gpu_shape *shape)
{
    struct tiling tiling;
    bw_node tile_block = 0;
    uint64_t done = 0;
    tiling_start(&tiling, view);
    for (uint32_t i = 0; i < shape->joined_count; i++)
        done |= (uint64_t)1 << shape->joined[i];
    for (uint32_t r = 0; r < view->ranges.count; r++)
        if (view->outputs >> r & 1 && !(done >> r & 1) && (int)r != shape->tiled)
            tiling.to[r] = tiling_range(&tiling, BW_RANGE_GLOBAL, view->ranges.sizes[r]);
    if (shape->tiled >= 0 && !shape->tiles_joined)
        tile_block = tiling_range(&tiling, BW_RANGE_GLOBAL,
                                  bw_div_up_i64(view->ranges.sizes[shape->tiled], shape->tile));
    place_items(&tiling, shape, &tile_block);
    if (shape->tiled >= 0)
        tiling.to[shape->tiled] = bw_sym_add(
            view->ir, tiling_block(&tiling, tile_block, shape->tile, view->ranges.sizes[shape->tiled]),
            tiling_range(&tiling, BW_RANGE_UPCAST, shape->tile));
    for (uint32_t r = 0; r < view->ranges.count; r++)
        if (view->reduces >> r & 1)
            tiling.to[r] = tiling_range(&tiling, BW_RANGE_REDUCE, view->ranges.sizes[r]);
    return tiling_finish(&tiling);
}

/* The longest reduction range when a group should share it; -1 when not. */
static int shared_reduction(const struct kernel_view *view)
{
    int64_t outputs = 1;
    int longest = -1;
    for (uint32_t r = 0; r < view->ranges.count; r++) {
        if (view->outputs >> r & 1)
            outputs = outputs < INT32_MAX ? outputs * view->ranges.sizes[r] : outputs;
        else if (longest < 0 || view->ranges.sizes[r] >= view->ranges.sizes[longest])
            longest = (int)r;
    }
    if (outputs > GROUP_REDUCE_OUTPUTS_MAX || longest < 0 ||
        view->ranges.sizes[longest] < GROUP_REDUCE_SIZE_MIN)
        return -1;
    return longest;
}

static bw_node apply_shared(const struct kernel_view *view, const struct bw_target *target, int shared)
{
    struct tiling tiling;
    int64_t size = view->ranges.sizes[shared], items = target->wave_size;
    for (int64_t t = target->wave_size; t <= target->group_size_max; t += target->wave_size)
        if (size / t + size % t <= size / items + size % items)
            items = t;
    tiling_start(&tiling, view);
    for (uint32_t r = 0; r < view->ranges.count; r++)
        tiling.to[r] = tiling_range(&tiling, view->outputs >> r & 1 ? BW_RANGE_GLOBAL : BW_RANGE_REDUCE,
                                    view->ranges.sizes[r]);
    bw_node sink = tiling_finish(&tiling);
    return split_reduce(view->ir, sink, tiling.to[shared], items, BW_RANGE_GROUP_REDUCE);
}

bw_node optimize_gpu(const struct kernel_view *view, const struct bw_target *target)
{
    int shared = shared_reduction(view);
    if (shared >= 0)
        return unroll_reductions(view->ir, apply_shared(view, target, shared), 8);
    if (!view->outputs) {
        struct gpu_shape none = {
            .contiguous = -1, .tiled = -1, .neighbours = 1, .tile = 1, .item_total = 1, .items = 1};
        return unroll_reductions(view->ir, apply(view, &none), 8);
    }
    struct gpu_shape shape = choose(view, target);
    int64_t budget = BODY_MAX / (shape.neighbours * shape.tile);
    return unroll_reductions(view->ir, apply(view, &shape), budget < 16 ? budget : 16);
}
