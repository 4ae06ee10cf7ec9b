/* Goal: the reuse cache gives back what fits exactly, newest first, drops the oldest first, and never loses
 * or doubles a buffer. */
#include "base/bits.h"
#include "mem/reuse.h"
#include "tests/check.h"
#include "tests/seed.h"

enum { KEPT_MAX = 4096 };
struct kept {
    uint64_t size;
    uint32_t flags;
    uintptr_t id;
};
/* The model: a plain array in order of age, oldest first. */
struct model {
    struct kept at[KEPT_MAX];
    uint32_t count;
    uint64_t bytes, limit;
    uintptr_t released[KEPT_MAX];
    uint32_t released_count, checked;
};

static void note_release(void *user, void *buffer)
{
    struct model *model = user;
    model->released[model->released_count++ % KEPT_MAX] = (uintptr_t)buffer;
}

static struct kept model_remove(struct model *model, uint32_t index)
{
    struct kept gone = model->at[index];
    memmove(&model->at[index], &model->at[index + 1], (model->count - index - 1) * sizeof gone);
    model->count--;
    model->bytes -= gone.size;
    return gone;
}

static bool model_trim(struct model *model, uint64_t keep)
{
    while (model->bytes > keep) {
        struct kept gone = model_remove(model, 0);
        if (!BW_TRUE(model->checked < model->released_count) ||
            !BW_EQ(model->released[model->checked++ % KEPT_MAX], gone.id))
            return false;
    }
    return BW_EQ(model->checked, model->released_count);
}

static void agrees_with_a_list_by_age(void)
{
    struct bw_rng rng = bw_test_rng("reuse");
    static struct model model;
    struct bw_reuse cache = {.limit_bytes = 500000, .release = note_release, .user = &model};
    model.limit = cache.limit_bytes;
    uintptr_t next_id = 1;
    for (int step = 0; step < 100000; step++) {
        uint64_t size = bw_rng_below(&rng, 50) ? 4096 * (1 + bw_rng_below(&rng, 12)) : 600000;
        uint32_t flags = (uint32_t)bw_rng_below(&rng, 3), pick = model.count;
        if (bw_rng_below(&rng, 1000) == 0) {
            uint64_t keep = bw_rng_below(&rng, 400000), before = model.bytes;
            uint64_t freed = bw_reuse_trim(&cache, keep);
            if (!model_trim(&model, keep) || !BW_EQ(freed, before - model.bytes))
                break;
        } else if (bw_rng_below(&rng, 2)) {
            bw_reuse_put(&cache, size, flags, (void *)next_id);
            if (size > model.limit) {
                if (!BW_EQ(model.released[model.checked++ % KEPT_MAX], next_id))
                    break;
            } else {
                model.at[model.count++] = (struct kept){size, flags, next_id};
                model.bytes += size;
            }
            next_id++;
            if (!model_trim(&model, model.limit))
                break;
        } else {
            for (uint32_t i = 0; i < model.count; i++)
                if (model.at[i].size == size && model.at[i].flags == flags)
                    pick = i;
            void *expected = pick < model.count ? (void *)model_remove(&model, pick).id : NULL;
            if (!BW_EQ((uintptr_t)bw_reuse_take(&cache, size, flags), (uintptr_t)expected))
                break;
        }
        if (!BW_EQ(cache.kept_bytes, model.bytes) || !BW_EQ(cache.count, model.count))
            break;
    }
    bw_reuse_free(&cache);
    model_trim(&model, 0);
    BW_EQ(cache.count, 0);
}

static void a_cache_without_a_limit_keeps_nothing(void)
{
    static struct model model;
    struct bw_reuse cache = {.release = note_release, .user = &model};
    bw_reuse_put(&cache, 4096, 0, (void *)1);
    BW_EQ(model.released_count, 1);
    BW_TRUE(bw_reuse_take(&cache, 4096, 0) == NULL);
    bw_reuse_free(&cache);
}

static void sizes_are_rounded_to_few(void)
{
    BW_EQ(bw_reuse_round(0), 0);
    BW_EQ(bw_reuse_round(1), 4096);
    BW_EQ(bw_reuse_round(4096), 4096);
    BW_EQ(bw_reuse_round(4097), 8192);
    BW_EQ(bw_reuse_round(1 << 20), 1 << 20);
    BW_EQ(bw_reuse_round((1 << 20) + 1), (1 << 20) + (1 << 17));
    BW_EQ(bw_reuse_round(UINT64_MAX), UINT64_MAX);
    struct bw_rng rng = bw_test_rng("round");
    uint64_t bad = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t size = 1 + bw_rng_below(&rng, (uint64_t)1 << (1 + bw_rng_below(&rng, 62)));
        uint64_t rounded = bw_reuse_round(size);
        bad += rounded < size || rounded % 4096 || bw_reuse_round(rounded) != rounded;
        bad += size >= 32768 && rounded - size > size / 8;
    }
    BW_EQ(bad, 0);
}

BW_TEST_MAIN("mem.reuse", {"agrees with a list by age", agrees_with_a_list_by_age},
             {"a cache without a limit keeps nothing", a_cache_without_a_limit_keeps_nothing},
             {"sizes are rounded to few", sizes_are_rounded_to_few})
