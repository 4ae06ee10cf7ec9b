/* Strategies of moving without reducing, and which kinds are made of what. */
#include "compiler/collective/collective.h"

enum {
    /* Of a broadcast around a ring: smaller pieces fill the pipeline sooner, and cost a packet, a signal and
       a wait each. */
    CHUNKS_MAX = 16,
    CHUNK_BYTES_MIN = 1 << 18,
};

uint64_t bw_part_begin(const struct bw_collective *collective, uint64_t total, uint32_t part)
{
    uint64_t size = (total + collective->rank_count - 1) / collective->rank_count;
    return part * size < total ? part * size : total;
}

uint64_t bw_part_count(const struct bw_collective *collective, uint64_t total, uint32_t part)
{
    return bw_part_begin(collective, total, part + 1) - bw_part_begin(collective, total, part);
}

static struct bw_spot spot_at(struct bw_spot spot, uint64_t elements)
{
    spot.offset += elements * bw_dtype_bytes(spot.dtype);
    return spot;
}

/* Parts [first, end) from one rank to another, at their places. */
static void parts_send(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t from,
                       uint32_t to, uint32_t first, uint32_t end)
{
    uint64_t begin = bw_part_begin(making->collective, total, first);
    bw_make_copy(making, from, spot_at(whole, begin), to, spot_at(whole, begin),
                 bw_part_begin(making->collective, total, end) - begin);
}

/* ---- all-gather ---- */

static void gather_direct(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t complete)
{
    uint32_t ranks = making->collective->rank_count;
    for (uint32_t step = 1; step < ranks; step++)
        for (uint32_t from = 0; from < ranks; from++)
            if ((from + step) % ranks != complete)
                parts_send(making, whole, total, from, (from + step) % ranks, from, from + 1);
}

static void gather_ring(struct bw_making *making, struct bw_spot whole, uint64_t total)
{
    uint32_t ranks = making->collective->rank_count;
    for (uint32_t step = 0; step + 1 < ranks; step++) {
        for (uint32_t from = 0; from < ranks; from++) {
            uint32_t part = (from + ranks - step) % ranks;
            parts_send(making, whole, total, from, (from + 1) % ranks, part, part + 1);
        }
        bw_make_round(making);
    }
}

static void broadcast_tree(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root)
{
    uint32_t ranks = making->collective->rank_count, reach = 1;
    while (reach < ranks)
        reach *= 2;
    for (reach /= 2; reach; reach /= 2) {
        for (uint32_t from = 0; from + reach < ranks; from += 2 * reach)
            parts_send(making, whole, total, (from + root) % ranks, (from + reach + root) % ranks, 0, ranks);
        bw_make_round(making);
    }
}

/* Neighbours first, so that a rank's parts and what it got are one range. */
static void gather_tree(struct bw_making *making, struct bw_spot whole, uint64_t total)
{
    uint32_t ranks = making->collective->rank_count;
    for (uint32_t reach = 1; reach < ranks; reach *= 2) {
        for (uint32_t to = 0; to + reach < ranks; to += 2 * reach) {
            uint32_t end = to + 2 * reach < ranks ? to + 2 * reach : ranks;
            parts_send(making, whole, total, to + reach, to, to + reach, end);
        }
        bw_make_round(making);
    }
    broadcast_tree(making, whole, total, 0);
}

static void broadcast_naive(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root)
{
    for (uint32_t to = 0; to < making->collective->rank_count; to++)
        if (to != root)
            parts_send(making, whole, total, root, to, 0, making->collective->rank_count);
    bw_make_round(making);
}

static void gather_naive(struct bw_making *making, struct bw_spot whole, uint64_t total)
{
    for (uint32_t from = 1; from < making->collective->rank_count; from++)
        parts_send(making, whole, total, from, 0, from, from + 1);
    bw_make_round(making);
    broadcast_naive(making, whole, total, 0);
}

void bw_make_all_gather(struct bw_making *making, struct bw_spot whole, uint64_t total)
{
    switch (making->strategy) {
    case BW_STRATEGY_RING:
        gather_ring(making, whole, total);
        break;
    case BW_STRATEGY_TREE:
        gather_tree(making, whole, total);
        break;
    case BW_STRATEGY_NAIVE:
        gather_naive(making, whole, total);
        break;
    default:
        gather_direct(making, whole, total, making->collective->rank_count);
        bw_make_round(making);
        break;
    }
}

/* ---- broadcast ---- */

static uint32_t chunk_count(const struct bw_spot *whole, uint64_t total)
{
    uint64_t most = total * bw_dtype_bytes(whole->dtype) / CHUNK_BYTES_MIN;
    return most < 1 ? 1 : most < CHUNKS_MAX ? (uint32_t)most : (uint32_t)CHUNKS_MAX;
}

/* Chunk c leaves the k-th rank of the ring in round c + k. */
static void broadcast_ring(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root)
{
    uint32_t ranks = making->collective->rank_count, chunks = chunk_count(&whole, total);
    uint64_t size = (total + chunks - 1) / chunks;
    for (uint32_t round = 0; round + 2 < chunks + ranks; round++) {
        for (uint32_t hop = 0; hop + 1 < ranks && hop <= round; hop++) {
            uint64_t begin = (round - hop) * size;
            if (begin >= total)
                continue;
            struct bw_spot piece = spot_at(whole, begin);
            bw_make_copy(making, (root + hop) % ranks, piece, (root + hop + 1) % ranks, piece,
                         total - begin < size ? total - begin : size);
        }
        bw_make_round(making);
    }
}

static void broadcast_direct(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root)
{
    for (uint32_t to = 0; to < making->collective->rank_count; to++)
        if (to != root)
            parts_send(making, whole, total, root, to, to, to + 1);
    bw_make_round(making);
    gather_direct(making, whole, total, root);
    bw_make_round(making);
}

void bw_make_broadcast(struct bw_making *making, struct bw_spot whole, uint64_t total, uint32_t root)
{
    switch (making->strategy) {
    case BW_STRATEGY_RING:
        broadcast_ring(making, whole, total, root);
        break;
    case BW_STRATEGY_TREE:
        broadcast_tree(making, whole, total, root);
        break;
    case BW_STRATEGY_NAIVE:
        broadcast_naive(making, whole, total, root);
        break;
    default:
        broadcast_direct(making, whole, total, root);
        break;
    }
}

/* ---- all-to-all ---- */

static void exchange(struct bw_making *making, struct bw_spot from_whole, struct bw_spot to_whole,
                     uint64_t total)
{
    const struct bw_collective *collective = making->collective;
    uint32_t ranks = collective->rank_count;
    for (uint32_t step = 0; step < ranks; step++) {
        for (uint32_t from = 0; from < ranks; from++) {
            uint32_t to = (from + step) % ranks;
            bw_make_copy(making, from, spot_at(from_whole, bw_part_begin(collective, total, to)), to,
                         spot_at(to_whole, bw_part_begin(collective, total, from)),
                         bw_part_count(collective, total, to));
        }
    }
    bw_make_round(making);
}

/* ---- whole collectives ---- */

/* From one type to another, or from one place to another. */
static void convert(struct bw_making *making, uint32_t rank, struct bw_spot target, struct bw_spot source,
                    uint64_t count)
{
    if (target.dtype == source.dtype)
        bw_make_copy(making, rank, source, rank, target, count);
    else
        bw_make_fold(making, rank, target, &source, 1, count, false);
}

static void convert_all(struct bw_making *making, struct bw_spot target, struct bw_spot source,
                        uint64_t count)
{
    for (uint32_t rank = 0; rank < making->collective->rank_count; rank++)
        convert(making, rank, target, source, count);
    bw_make_round(making);
}

static void all_to_all(struct bw_making *making, struct bw_spot send, struct bw_spot receive, bool converts,
                       uint64_t total)
{
    enum bw_dtype wire = making->collective->options.transport;
    struct bw_spot out = {BW_AREA_OUT, 0, wire}, full = {BW_AREA_FULL, 0, wire};
    bool in_place = false;
    for (uint32_t rank = 0; rank < making->collective->rank_count; rank++)
        in_place |= bw_make_in_place(making, rank);
    if (converts)
        convert_all(making, out, send, total);
    exchange(making, converts ? out : send, converts || in_place ? full : receive, total);
    if (converts || in_place)
        convert_all(making, receive, full, total);
}

void bw_make_collective(struct bw_making *making)
{
    const struct bw_collective *collective = making->collective;
    const struct bw_collective_options *options = &collective->options;
    uint32_t ranks = collective->rank_count;
    uint64_t all = options->count * ranks;
    bool converts = options->transport != options->dtype;
    struct bw_spot send = {BW_AREA_SEND, 0, options->dtype}, receive = {BW_AREA_RECEIVE, 0, options->dtype},
                   full = {BW_AREA_FULL, 0, options->transport}, whole = converts ? full : receive;
    switch (options->kind) {
    case BW_ALL_GATHER:
        for (uint32_t rank = 0; rank < ranks; rank++)
            convert(making, rank, spot_at(whole, rank * options->count), send, options->count);
        bw_make_round(making);
        bw_make_all_gather(making, whole, all);
        break;
    case BW_BROADCAST:
        convert(making, options->root, whole, send, options->count);
        bw_make_round(making);
        bw_make_broadcast(making, whole, options->count, options->root);
        all = options->count;
        break;
    case BW_REDUCE_SCATTER:
        bw_make_reduce_parts(making, receive, all, false);
        return;
    case BW_ALL_REDUCE:
        all = options->count;
        if (making->strategy == BW_STRATEGY_NAIVE || making->strategy == BW_STRATEGY_TREE) {
            bw_make_reduce_all(making, whole, all);
            bw_make_broadcast(making, whole, all, 0);
        } else {
            bw_make_reduce_parts(making, whole, all, true);
            bw_make_all_gather(making, whole, all);
        }
        break;
    default:
        all_to_all(making, send, receive, converts, all);
        return;
    }
    if (converts)
        convert_all(making, receive, full, all);
}
