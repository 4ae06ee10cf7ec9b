/* Strategies of reducing. What leaves a rank is in the type that travels; a rank's own contribution is folded
 * as it is. */
#include "compiler/collective/collective.h"

static struct bw_spot spot_at(struct bw_spot spot, uint64_t elements)
{
    spot.offset += elements * bw_dtype_bytes(spot.dtype);
    return spot;
}

static struct bw_spot own(const struct bw_making *making)
{
    return (struct bw_spot){BW_AREA_SEND, 0, making->collective->options.dtype};
}

static struct bw_spot wire(const struct bw_making *making, enum bw_area area)
{
    return (struct bw_spot){area, 0, making->collective->options.transport};
}

/* What a rank sends, ready to travel: its data, or a conversion of all of it. */
static struct bw_spot outgoing(struct bw_making *making, uint64_t total)
{
    struct bw_spot source = own(making), out = wire(making, BW_AREA_OUT);
    if (source.dtype == out.dtype)
        return source;
    for (uint32_t rank = 0; rank < making->collective->rank_count; rank++)
        bw_make_fold(making, rank, out, &source, 1, total, false);
    bw_make_round(making);
    return out;
}

/* ---- each part where it belongs ---- */

/* Everyone sends part p to rank p, which folds them in the order of ranks. */
static void parts_direct(struct bw_making *making, struct bw_spot target, uint64_t total, bool spread)
{
    const struct bw_collective *collective = making->collective;
    uint32_t ranks = collective->rank_count;
    struct bw_spot out = outgoing(making, total), in = wire(making, BW_AREA_IN),
                   inputs[BW_COLLECTIVE_RANKS_MAX];
    for (uint32_t step = 1; step < ranks; step++) {
        for (uint32_t from = 0; from < ranks; from++) {
            uint32_t to = (from + step) % ranks;
            uint64_t count = bw_part_count(collective, total, to);
            bw_make_copy(making, from, spot_at(out, bw_part_begin(collective, total, to)), to,
                         spot_at(in, from * count), count);
        }
    }
    bw_make_round(making);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t begin = bw_part_begin(collective, total, rank),
                 count = bw_part_count(collective, total, rank);
        for (uint32_t from = 0; from < ranks; from++)
            inputs[from] = from == rank ? spot_at(own(making), begin) : spot_at(in, from * count);
        bw_make_fold(making, rank, spread ? spot_at(target, begin) : target, inputs, ranks, count, true);
    }
    bw_make_round(making);
}

/* In step s rank r sends the sum so far of part r - 1 - s to its neighbour, which adds its own: the last that
 * a rank adds to is its own part. Each step has a slot of its own for what comes and what leaves. */
static void parts_ring(struct bw_making *making, struct bw_spot target, uint64_t total, bool spread)
{
    const struct bw_collective *collective = making->collective;
    uint32_t ranks = collective->rank_count;
    uint64_t slot = bw_part_count(collective, total, 0);
    struct bw_spot in = wire(making, BW_AREA_IN), out = wire(making, BW_AREA_OUT), mine = own(making);
    bool converts = mine.dtype != out.dtype;
    for (uint32_t step = 0; step + 1 < ranks; step++) {
        for (uint32_t from = 0; from < ranks; from++) {
            uint32_t part = (from + 2 * ranks - 1 - step) % ranks;
            uint64_t begin = bw_part_begin(collective, total, part),
                     count = bw_part_count(collective, total, part);
            struct bw_spot source = spot_at(out, step * slot), first = spot_at(mine, begin);
            if (step == 0 && converts)
                bw_make_fold(making, from, source, &first, 1, count, false);
            bw_make_copy(making, from, step || converts ? source : first, (from + 1) % ranks,
                         spot_at(in, step * slot), count);
        }
        bw_make_round(making);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            uint32_t part = (rank + 2 * ranks - 2 - step) % ranks;
            uint64_t begin = bw_part_begin(collective, total, part),
                     count = bw_part_count(collective, total, part);
            struct bw_spot inputs[] = {spot_at(in, step * slot), spot_at(mine, begin)};
            bool last = step + 2 == ranks;
            struct bw_spot to = !last    ? spot_at(out, (step + 1) * slot)
                                : spread ? spot_at(target, begin)
                                         : target;
            bw_make_fold(making, rank, to, inputs, 2, count, last);
        }
        bw_make_round(making);
    }
}

/* All at rank 0, then part by part to where it belongs. */
static void parts_by_one(struct bw_making *making, struct bw_spot target, uint64_t total)
{
    const struct bw_collective *collective = making->collective;
    struct bw_spot full = wire(making, BW_AREA_FULL), in = wire(making, BW_AREA_IN);
    bool converts = full.dtype != target.dtype;
    bw_make_reduce_all(making, full, total);
    for (uint32_t rank = 0; rank < collective->rank_count; rank++)
        bw_make_copy(making, 0, spot_at(full, bw_part_begin(collective, total, rank)), rank,
                     converts ? in : target, bw_part_count(collective, total, rank));
    bw_make_round(making);
    for (uint32_t rank = 0; rank < collective->rank_count && converts; rank++)
        bw_make_fold(making, rank, target, &in, 1, bw_part_count(collective, total, rank), false);
    bw_make_round(making);
}

void bw_make_reduce_parts(struct bw_making *making, struct bw_spot target, uint64_t total, bool spread)
{
    uint32_t ranks = making->collective->rank_count;
    struct bw_spot mine = own(making);
    if (ranks == 1)
        bw_make_fold(making, 0, target, &mine, 1, total, true);
    else if (making->strategy == BW_STRATEGY_RING)
        parts_ring(making, target, total, spread);
    else if (making->strategy == BW_STRATEGY_DIRECT)
        parts_direct(making, target, total, spread);
    else
        parts_by_one(making, target, total);
}

/* ---- everything at rank 0 ---- */

static void all_naive(struct bw_making *making, struct bw_spot target, uint64_t total)
{
    uint32_t ranks = making->collective->rank_count;
    struct bw_spot out = outgoing(making, total), in = wire(making, BW_AREA_IN),
                   inputs[BW_COLLECTIVE_RANKS_MAX];
    inputs[0] = own(making);
    for (uint32_t from = 1; from < ranks; from++) {
        inputs[from] = spot_at(in, (from - 1) * total);
        bw_make_copy(making, from, out, 0, inputs[from], total);
    }
    bw_make_round(making);
    bw_make_fold(making, 0, target, inputs, ranks, total, true);
    bw_make_round(making);
}

/* Sums of a level lie in one half of their area, those of the next in the other. */
static struct bw_spot sums_of(const struct bw_making *making, uint32_t level, uint64_t total)
{
    struct bw_spot sums = wire(making, BW_AREA_SUMS);
    return level ? spot_at(sums, level % 2 * total) : own(making);
}

static void all_tree(struct bw_making *making, struct bw_spot target, uint64_t total)
{
    uint32_t ranks = making->collective->rank_count, level = 0;
    struct bw_spot in = wire(making, BW_AREA_IN), out = outgoing(making, total);
    for (uint32_t reach = 1; reach < ranks; reach *= 2, level++) {
        for (uint32_t to = 0; to + reach < ranks; to += 2 * reach) {
            /* A rank that got nothing on the level before still has what it began with. */
            uint32_t from = to + reach, from_level = 0;
            while (from_level < level && from + (1u << from_level) < ranks)
                from_level++;
            bw_make_copy(making, from, from_level ? sums_of(making, from_level, total) : out, to, in, total);
        }
        bw_make_round(making);
        for (uint32_t to = 0; to + reach < ranks; to += 2 * reach) {
            struct bw_spot inputs[] = {sums_of(making, level, total), in};
            bool last = 2 * reach >= ranks;
            bw_make_fold(making, to, last ? target : sums_of(making, level + 1, total), inputs, 2, total,
                         last);
        }
        bw_make_round(making);
    }
}

void bw_make_reduce_all(struct bw_making *making, struct bw_spot target, uint64_t total)
{
    struct bw_spot mine = own(making);
    if (making->collective->rank_count == 1)
        bw_make_fold(making, 0, target, &mine, 1, total, true);
    else if (making->strategy == BW_STRATEGY_TREE)
        all_tree(making, target, total);
    else
        all_naive(making, target, total);
}
