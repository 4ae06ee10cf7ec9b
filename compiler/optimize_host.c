/* Shape of a kernel on the host: see optimize.h.
 *
 * The work-items of a group are the lanes of vector registers, so one range of the right kind is chosen for
 * them: an output along which operands are contiguous or stay the same, or a reduction when that is
 * contiguous instead. Around it a register tile, around that loops, and the outermost loops are groups, which
 * workers share. */
#include <assert.h>

#include "compiler/optimize_policy.h"
#include "compiler/symbolic.h"

enum {
    TILE_MAX = 8,
    VECTORS_MAX = 4,
    BODY_MAX = 160,         /* vector multiply-adds in an unrolled loop body */
    GROUP_WORK_MIN = 30000, /* cycles, roughly: a call and its dispatch cost some hundred */
    GROUPS_PER_WORKER = 4,  /* so that workers end at the same time */
    GATHER_PENALTY = 2,
};

struct host_shape {
    int lanes_range; /* -1: none */
    bool lanes_reduce;
    int64_t lanes, vectors; /* of one block of lanes_range */
    int tiled;
    int64_t tile;
    double cost, block_cost;
};

/* How well accesses go with lanes along range r. */
static double lane_score(const struct kernel_view *view, uint32_t r)
{
    double score = 0;
    for (size_t i = 0; i <= view->loads.count; i++) {
        bool store = i == view->loads.count;
        const struct access *access = store ? &view->store : &view->loads.data[i];
        double weight = access->in_fold ? 4 : 1;
        bool contiguous = access->stride[r] == 1 && !(access->irregular >> r & 1);
        if (contiguous)
            score += weight;
        else if (access->depends >> r & 1)
            score -= GATHER_PENALTY * weight;
    }
    return score;
}

static int64_t lanes_most(const struct kernel_view *view, const struct bw_target *target)
{
    uint32_t bytes = 4;
    for (size_t i = 0; i <= view->loads.count; i++) {
        bw_node node = i < view->loads.count ? view->loads.data[i].node : view->store.node;
        uint32_t own = bw_dtype_bytes(bw_ir_dtype(view->ir, bw_ir_source(view->ir, node, 0)));
        bytes = own > bytes ? own : bytes;
    }
    return target->vector_bytes / bytes;
}

static void choose_lanes(const struct kernel_view *view, const struct bw_target *target,
                         struct host_shape *shape)
{
    int64_t most = lanes_most(view, target);
    double best = 0;
    shape->lanes_range = -1;
    shape->lanes = 1;
    for (uint32_t r = 0; r < view->ranges.count; r++) {
        bool reduce = view->reduces >> r & 1;
        int64_t size = view->ranges.sizes[r], lanes = most;
        if (size < 2 || (reduce && size < 2 * most))
            continue;
        while (lanes > size)
            lanes /= 2;
        double score = lane_score(view, r) * (double)lanes / (double)most - (reduce ? 2.5 : 0);
        if (shape->lanes_range < 0 || score > best) {
            if (shape->lanes_range < 0 && reduce && score <= 0)
                continue;
            best = score;
            shape->lanes_range = (int)r;
            shape->lanes_reduce = reduce;
            shape->lanes = lanes;
        }
    }
}

static double body_cost(const struct kernel_view *view, const struct host_shape *shape)
{
    double inside = (double)view->reduce_points / (shape->lanes_reduce ? (double)shape->lanes : 1), cost = 0;
    for (size_t i = 0; i < view->loads.count; i++) {
        const struct access *load = &view->loads.data[i];
        double copies = 1, weight = 0.5;
        if (shape->lanes_range >= 0 && load->depends >> shape->lanes_range & 1) {
            bool contiguous =
                load->stride[shape->lanes_range] == 1 && !(load->irregular >> shape->lanes_range & 1);
            weight = contiguous ? 0.6 : (double)shape->lanes;
            copies *= (double)shape->vectors;
        }
        if (shape->tiled >= 0 && load->depends >> shape->tiled & 1)
            copies *= (double)shape->tile;
        cost += copies * weight * (load->in_fold ? inside : 1);
    }
    double elements = (double)(shape->vectors * shape->tile);
    return cost + elements * inside * 0.5 + elements * (view->arithmetic + 1) + 10;
}

static void choose_tile(const struct kernel_view *view, const struct bw_target *target,
                        struct host_shape *shape)
{
    bool lanes = shape->lanes_range >= 0 && !shape->lanes_reduce;
    uint64_t exclude = lanes ? (uint64_t)1 << shape->lanes_range : 0;
    int64_t lane_size = lanes ? view->ranges.sizes[shape->lanes_range] : 1;
    shape->tiled = view->fold_count ? find_reuse_range(view, exclude) : -1;
    shape->cost = -1;
    struct host_shape best = *shape;
    for (int64_t vectors = 1; vectors <= (lanes ? VECTORS_MAX : 1); vectors++)
        for (int64_t tile = 1; tile <= (shape->tiled < 0 ? 1 : TILE_MAX); tile++) {
            struct host_shape tried = *shape;
            tried.vectors = vectors;
            tried.tile = tile;
            bool fits = vectors * tile + vectors + 2 <= target->vector_registers;
            if ((lanes && vectors * shape->lanes > lane_size) || !fits ||
                (shape->tiled >= 0 && tile > view->ranges.sizes[shape->tiled]))
                continue;
            tried.block_cost = body_cost(view, &tried);
            double blocks = lanes ? (double)bw_div_up_i64(lane_size, vectors * shape->lanes) : 1;
            if (shape->tiled >= 0)
                blocks *= (double)bw_div_up_i64(view->ranges.sizes[shape->tiled], tile);
            tried.cost = blocks * tried.block_cost;
            if (best.cost < 0 || tried.cost < best.cost)
                best = tried;
        }
    *shape = best;
}

/* One level of blocks around the tile: `count` of them, to be split over groups and loops. */
struct level {
    int range;
    int64_t count;
    bw_node at;
};

/* From the innermost outwards: loops until a group has enough to do, then groups. */
static void place_levels(struct tiling *tiling, struct level *levels, uint32_t count, double block_cost,
                         uint32_t workers)
{
    double total = block_cost, inner = block_cost;
    int64_t loop_sizes[BW_KERNEL_RANGES_MAX];
    for (uint32_t i = 0; i < count; i++)
        total *= (double)levels[i].count;
    double wanted = total / ((double)workers * GROUPS_PER_WORKER);
    wanted = wanted < GROUP_WORK_MIN ? GROUP_WORK_MIN : wanted;
    for (uint32_t i = count; i-- > 0;) {
        int64_t fit = bw_dtype_int_from(BW_I64, wanted / inner);
        loop_sizes[i] = fit < 1 ? 1 : fit < levels[i].count ? fit : levels[i].count;
        inner *= (double)loop_sizes[i];
        if (loop_sizes[i] < levels[i].count)
            inner = wanted; /* everything further out is groups */
    }
    bw_node groups[BW_KERNEL_RANGES_MAX];
    for (uint32_t i = 0; i < count; i++)
        groups[i] = tiling_range(tiling, BW_RANGE_GLOBAL, bw_div_up_i64(levels[i].count, loop_sizes[i]));
    for (uint32_t i = 0; i < count; i++) {
        bw_node base = tiling_block(tiling, groups[i], loop_sizes[i], levels[i].count);
        levels[i].at = bw_sym_add(tiling->ir, base, tiling_range(tiling, BW_RANGE_LOOP, loop_sizes[i]));
    }
}

static bw_node apply(const struct kernel_view *view, const struct bw_target *target,
                     const struct host_shape *shape)
{
    struct tiling tiling;
    struct level levels[BW_KERNEL_RANGES_MAX];
    uint32_t count = 0;
    int lanes = shape->lanes_reduce ? -1 : shape->lanes_range;
    tiling_start(&tiling, view);
    for (uint32_t r = 0; r < view->ranges.count; r++)
        if (view->outputs >> r & 1 && (int)r != lanes && (int)r != shape->tiled)
            levels[count++] = (struct level){(int)r, view->ranges.sizes[r], 0};
    if (shape->tiled >= 0)
        levels[count++] =
            (struct level){shape->tiled, bw_div_up_i64(view->ranges.sizes[shape->tiled], shape->tile), 0};
    int64_t block = shape->lanes * shape->vectors;
    if (lanes >= 0)
        levels[count++] = (struct level){lanes, bw_div_up_i64(view->ranges.sizes[lanes], block), 0};
    place_levels(&tiling, levels, count, shape->block_cost, target->workers);
    for (uint32_t i = 0; i < count; i++) {
        int r = levels[i].range;
        int64_t size = view->ranges.sizes[r];
        bw_node at = levels[i].at;
        if (r == lanes) {
            bw_node vector = tiling_range(&tiling, BW_RANGE_UPCAST, shape->vectors);
            at = bw_sym_add(view->ir, tiling_block(&tiling, at, block, size),
                            bw_sym_mul(view->ir, vector, shape->lanes));
            at = bw_sym_add(view->ir, at, tiling_range(&tiling, BW_RANGE_ITEM, shape->lanes));
        } else if (r == shape->tiled)
            at = bw_sym_add(view->ir, tiling_block(&tiling, at, shape->tile, size),
                            tiling_range(&tiling, BW_RANGE_UPCAST, shape->tile));
        tiling.to[r] = at;
    }
    for (uint32_t r = 0; r < view->ranges.count; r++)
        if (view->reduces >> r & 1)
            tiling.to[r] = tiling_range(&tiling, BW_RANGE_REDUCE, view->ranges.sizes[r]);
    bw_node sink = tiling_finish(&tiling);
    if (shape->lanes_reduce)
        sink =
            split_reduce(view->ir, sink, tiling.to[shape->lanes_range], shape->lanes, BW_RANGE_GROUP_REDUCE);
    return sink;
}

bw_node optimize_host(const struct kernel_view *view, const struct bw_target *target)
{
    struct host_shape shape = {.vectors = 1, .tile = 1};
    choose_lanes(view, target, &shape);
    choose_tile(view, target, &shape);
    int64_t budget = BODY_MAX / (shape.vectors * shape.tile);
    return unroll_reductions(view->ir, apply(view, target, &shape), budget < 9 ? budget : 9);
}
