/* Goal: TLSF agrees with a plain map of bytes: no overlap, right alignment, nothing lost, and a refusal only
 * when nothing fits. */
#include <errno.h>

#include "base/bits.h"
#include "mem/tlsf.h"
#include "tests/check.h"
#include "tests/seed.h"

/* The model: one flag per granule of two ranges that do not touch. */
enum { GRANULES = 4096, GAP_START = 1500, GAP_END = 1564, LIVE_MAX = 600 };
struct model {
    uint8_t used[GRANULES]; /* 2: in the gap, never ours */
    struct {
        uint64_t start, size;
    } live[LIVE_MAX];
    uint32_t live_count;
};

static bool model_fits(const struct model *model, uint64_t size, uint64_t alignment)
{
    uint64_t run = 0;
    for (uint64_t end = 0; end < GRANULES; end++) {
        run = model->used[end] ? 0 : run + 1;
        if (run < size)
            continue;
        /* The run may be longer than needed: the lowest aligned start in it decides. */
        uint64_t low = end + 1 - run, start = (low + alignment - 1) / alignment * alignment;
        if (start + size <= end + 1)
            return true;
    }
    return false;
}

static uint64_t model_largest(const struct model *model)
{
    uint64_t best = 0, run = 0;
    for (uint64_t i = 0; i < GRANULES; i++) {
        run = model->used[i] ? 0 : run + 1;
        best = run > best ? run : best;
    }
    return best;
}

static bool step_alloc(struct bw_tlsf *tlsf, struct model *model, struct bw_rng *rng, uint64_t granule)
{
    uint64_t size = 1 + bw_rng_below(rng, bw_rng_below(rng, 8) ? 24 : 900);
    uint64_t alignment = (uint64_t)1 << bw_rng_below(rng, bw_rng_below(rng, 4) ? 2 : 9);
    uint64_t bytes = (size - 1) * granule + 1 + bw_rng_below(rng, granule), start = 0;
    bool fits = model_fits(model, size, alignment);
    int rc = bw_tlsf_alloc(tlsf, bytes, alignment * granule, &start);
    if (!BW_EQ(rc, fits ? 0 : -ENOMEM))
        return false;
    if (rc)
        return true;
    if (!BW_EQ(start % (alignment * granule), 0) || !BW_EQ(bw_tlsf_size(tlsf, start), size * granule))
        return false;
    for (uint64_t i = 0; i < size; i++) {
        if (model->used[start / granule + i])
            return BW_EQ(model->used[start / granule + i], 0);
        model->used[start / granule + i] = 1;
    }
    model->live[model->live_count].start = start;
    model->live[model->live_count++].size = size;
    return true;
}

static bool step_free(struct bw_tlsf *tlsf, struct model *model, struct bw_rng *rng, uint64_t granule)
{
    uint32_t pick = (uint32_t)bw_rng_below(rng, model->live_count);
    uint64_t start = model->live[pick].start, size = model->live[pick].size;
    model->live[pick] = model->live[--model->live_count];
    memset(model->used + start / granule, 0, size);
    return BW_EQ(bw_tlsf_free(tlsf, start), size * granule) && BW_EQ(bw_tlsf_size(tlsf, start), 0);
}

static void agrees_with_a_map_of_granules(void)
{
    struct bw_rng rng = bw_test_rng("tlsf");
    static const uint64_t granules[] = {1, 256, 4096};
    for (size_t variant = 0; variant < BW_COUNT_OF(granules); variant++) {
        uint64_t granule = granules[variant];
        static struct model model;
        memset(&model, 0, sizeof model);
        memset(model.used + GAP_START, 2, GAP_END - GAP_START);
        struct bw_tlsf *tlsf;
        BW_EQ(bw_tlsf_create(granule, &tlsf), 0);
        BW_EQ(bw_tlsf_add(tlsf, 0, GAP_START * granule), 0);
        BW_EQ(bw_tlsf_add(tlsf, GAP_END * granule, (GRANULES - GAP_END) * granule), 0);
        for (int step = 0; step < 30000; step++) {
            /* Waves of filling and draining, so that both ends are met. */
            bool fill = bw_rng_below(&rng, 100) < (step / 2000 % 2 ? 65u : 40u);
            bool ok = !model.live_count || (fill && model.live_count < LIVE_MAX)
                          ? step_alloc(tlsf, &model, &rng, granule)
                          : step_free(tlsf, &model, &rng, granule);
            if (!ok)
                break;
            bw_tlsf_check(tlsf);
            if (step % 50)
                continue;
            struct bw_tlsf_stats stats;
            bw_tlsf_stats(tlsf, &stats);
            BW_EQ(stats.largest_free_bytes, model_largest(&model) * granule);
            BW_EQ(stats.used_blocks, model.live_count);
        }
        while (model.live_count && step_free(tlsf, &model, &rng, granule))
            ;
        struct bw_tlsf_stats stats;
        bw_tlsf_stats(tlsf, &stats);
        BW_EQ(stats.used_bytes, 0);
        BW_EQ(stats.free_blocks, 2); /* everything joined again, and not across the gap */
        BW_EQ(stats.total_bytes, (GRANULES - (GAP_END - GAP_START)) * granule);
        bw_tlsf_destroy(tlsf);
    }
}

static void whole_range_and_absurd_sizes(void)
{
    struct bw_tlsf *tlsf;
    uint64_t start = 0, second = 0;
    BW_EQ(bw_tlsf_create(4096, &tlsf), 0);
    BW_EQ(bw_tlsf_alloc(tlsf, 1, 0, &start), -ENOMEM); /* nothing added yet */
    BW_EQ(bw_tlsf_add(tlsf, 1ull << 40, 64ull << 30), 0);
    BW_EQ(bw_tlsf_alloc(tlsf, 0, 0, &start), -EINVAL);
    BW_EQ(bw_tlsf_alloc(tlsf, UINT64_MAX, 0, &start), -EINVAL);
    BW_EQ(bw_tlsf_alloc(tlsf, UINT64_MAX - 4096, 0, &start), -ENOMEM);
    BW_EQ(bw_tlsf_alloc(tlsf, (64ull << 30) + 1, 0, &start), -ENOMEM);
    BW_EQ(bw_tlsf_alloc(tlsf, 4096, 1ull << 63, &start), -ENOMEM);
    BW_EQ(bw_tlsf_alloc(tlsf, 64ull << 30, 1ull << 40, &start),
          0); /* all of it, though its size class is rounded */
    BW_EQ(start, 1ull << 40);
    BW_EQ(bw_tlsf_alloc(tlsf, 1, 0, &second), -ENOMEM);
    BW_EQ(bw_tlsf_free(tlsf, start), 64ull << 30);
    bw_tlsf_check(tlsf);
    bw_tlsf_destroy(tlsf);
    bw_tlsf_destroy(NULL);
    /* A range that ends at the very top. */
    BW_EQ(bw_tlsf_create(1, &tlsf), 0);
    BW_EQ(bw_tlsf_add(tlsf, 1, UINT64_MAX), 0);
    BW_EQ(bw_tlsf_alloc(tlsf, UINT64_MAX, 1, &start), 0);
    BW_EQ(start, 1);
    bw_tlsf_check(tlsf);
    bw_tlsf_destroy(tlsf);
}

BW_TEST_MAIN("mem.tlsf", {"agrees with a map of granules", agrees_with_a_map_of_granules},
             {"whole range and absurd sizes", whole_range_and_absurd_sizes})
