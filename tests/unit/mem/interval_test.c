/* Goal: the interval map agrees with a plain list under any mix of inserts, removals and cuts, and stays
 * logarithmic with a million ranges. */
#include <math.h>
#include <time.h>

#include "base/bits.h"
#include "mem/interval.h"
#include "tests/check.h"
#include "tests/seed.h"

/* The model: every byte range in insertion order, nothing clever. */
enum { MODEL_MAX = 512 };
struct model {
    struct bw_interval at[MODEL_MAX];
    uint32_t handle[MODEL_MAX]; /* BW_INTERVAL_NONE: made by a cut, handle not known */
    uint32_t count;
};

static void model_drop(struct model *model, uint32_t index)
{
    model->count--;
    model->at[index] = model->at[model->count];
    model->handle[index] = model->handle[model->count];
}

static void model_cut(struct model *model, uint64_t start, uint64_t last)
{
    for (uint32_t i = 0; i < model->count;) {
        struct bw_interval old = model->at[i];
        if (old.start > last || old.last < start) {
            i++;
            continue;
        }
        model_drop(model, i);
        if (old.start < start && model->count < MODEL_MAX) {
            model->at[model->count] = (struct bw_interval){old.start, start - 1, old.value};
            model->handle[model->count++] = BW_INTERVAL_NONE;
        }
        if (old.last > last && model->count < MODEL_MAX) {
            model->at[model->count] = (struct bw_interval){last + 1, old.last, old.value};
            model->handle[model->count++] = BW_INTERVAL_NONE;
        }
    }
}

static int by_range(const void *a, const void *b)
{
    const struct bw_interval *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Lists the overlaps both ways and compares them as sorted lists; the map must also give them in order of
 * start. */
static bool same_overlaps(const struct bw_interval_map *map, const struct model *model, uint64_t start,
                          uint64_t size)
{
    static struct bw_interval found[MODEL_MAX], expected[MODEL_MAX];
    uint32_t count = 0, expected_count = 0;
    uint64_t last = start + (size - 1), before = 0;
    BW_INTERVAL_EACH(map, handle, start, size)
    {
        if (count == MODEL_MAX)
            return BW_TRUE(count < MODEL_MAX);
        found[count] = *bw_interval_at(map, handle);
        if (found[count].start < before)
            return BW_TRUE(found[count].start >= before);
        before = found[count++].start;
    }
    for (uint32_t i = 0; i < model->count; i++)
        if (model->at[i].start <= last && model->at[i].last >= start)
            expected[expected_count++] = model->at[i];
    if (!BW_EQ(count, expected_count))
        return false;
    qsort(found, count, sizeof found[0], by_range);
    qsort(expected, count, sizeof expected[0], by_range);
    return BW_TRUE(memcmp(found, expected, count * sizeof found[0]) == 0);
}

static uint64_t distance_to(const struct bw_interval *interval, uint64_t address)
{
    if (address < interval->start)
        return interval->start - address;
    return address > interval->last ? address - interval->last : 0;
}

static bool same_nearest(const struct bw_interval_map *map, const struct model *model, uint64_t address)
{
    uint32_t nearest = bw_interval_nearest(map, address), above = bw_interval_above(map, address);
    uint64_t best = UINT64_MAX, next = UINT64_MAX;
    for (uint32_t i = 0; i < model->count; i++) {
        uint64_t distance = distance_to(&model->at[i], address);
        best = distance < best ? distance : best;
        if (model->at[i].start > address && model->at[i].start < next)
            next = model->at[i].start;
    }
    if (!BW_EQ(nearest == BW_INTERVAL_NONE, model->count == 0))
        return false;
    if (model->count && !BW_EQ(distance_to(bw_interval_at(map, nearest), address), best))
        return false;
    return BW_EQ(above == BW_INTERVAL_NONE ? UINT64_MAX : bw_interval_at(map, above)->start, next);
}

static bool random_step(struct bw_interval_map *map, struct model *model, struct bw_rng *rng, uint64_t space,
                        uint64_t base)
{
    uint64_t size = 1 + bw_rng_below(rng, bw_rng_below(rng, 4) ? 12 : space / 2);
    uint64_t start = base + bw_rng_below(rng, space - size + 1), last = start + (size - 1),
             value = bw_rng_next(rng);
    switch (bw_rng_below(rng, 7)) {
    case 0: /* remove one whose handle is known */
        for (uint32_t i = 0; i < model->count; i++) {
            if (model->handle[i] == BW_INTERVAL_NONE)
                continue;
            const struct bw_interval *found = bw_interval_at(map, model->handle[i]);
            if (!BW_TRUE(memcmp(found, &model->at[i], sizeof *found) == 0))
                return false;
            bw_interval_remove(map, model->handle[i]);
            model_drop(model, i);
            break;
        }
        break;
    case 1:
        if (!BW_EQ(bw_interval_cut(map, start, size), 0))
            return false;
        model_cut(model, start, last);
        break;
    case 2:
        if (!BW_EQ(bw_interval_assign(map, start, size, value), 0))
            return false;
        model_cut(model, start, last);
        model->at[model->count] = (struct bw_interval){start, last, value};
        model->handle[model->count++] = BW_INTERVAL_NONE;
        break;
    default:
        if (model->count > MODEL_MAX / 4)
            break;
        if (!BW_EQ(bw_interval_insert(map, start, size, value, &model->handle[model->count]), 0))
            return false;
        model->at[model->count++] = (struct bw_interval){start, last, value};
    }
    bw_interval_map_check(map);
    if (!BW_EQ(map->count, model->count))
        return false;
    uint64_t probe = 1 + bw_rng_below(rng, 20);
    return same_overlaps(map, model, base + bw_rng_below(rng, space - probe + 1), probe) &&
           same_nearest(map, model, base + bw_rng_below(rng, space));
}

static void agrees_with_a_plain_list(void)
{
    struct bw_rng rng = bw_test_rng("interval");
    /* The second space ends at the very last address. */
    const struct {
        uint64_t base, space;
    } spaces[] = {{0, 300}, {UINT64_MAX - 299, 300}, {1ull << 40, 1ull << 40}};
    for (size_t i = 0; i < BW_COUNT_OF(spaces); i++) {
        struct bw_interval_map map = {0};
        static struct model model;
        memset(&model, 0, sizeof model);
        for (int step = 0; step < 20000; step++) {
            if (!random_step(&map, &model, &rng, spaces[i].space, spaces[i].base))
                break;
            /* After a cut the known handles of what it touched are gone: forget all that no longer match. */
            for (uint32_t k = 0; k < model.count; k++) {
                uint32_t handle = model.handle[k];
                if (handle == BW_INTERVAL_NONE)
                    continue;
                bool live = false;
                BW_INTERVAL_EACH(&map, at, model.at[k].start, 1)
                live |=
                    at == handle && memcmp(bw_interval_at(&map, at), &model.at[k], sizeof model.at[k]) == 0;
                if (!live)
                    model.handle[k] = BW_INTERVAL_NONE;
            }
        }
        bw_interval_map_free(&map);
    }
}

static void edges_of_the_address_space(void)
{
    struct bw_interval_map map = {0};
    uint32_t all, top;
    BW_EQ(bw_interval_first(&map, 0, UINT64_MAX), BW_INTERVAL_NONE);
    BW_EQ(bw_interval_nearest(&map, 5), BW_INTERVAL_NONE);
    BW_EQ(bw_interval_insert(&map, 0, UINT64_MAX, 1, &all), 0);
    BW_EQ(bw_interval_insert(&map, UINT64_MAX, 1, 2, &top), 0);
    BW_EQ(bw_interval_first(&map, UINT64_MAX, 1), top);
    BW_EQ(bw_interval_nearest(&map, UINT64_MAX), top);
    BW_EQ(bw_interval_nearest(&map, UINT64_MAX - 1), all);
    BW_EQ(bw_interval_assign(&map, 10, 10, 3), 0);
    BW_EQ(map.count, 4);
    BW_EQ(bw_interval_at(&map, bw_interval_first(&map, 19, 1))->value, 3);
    BW_EQ(bw_interval_at(&map, bw_interval_first(&map, 20, 1))->start, 20);
    bw_interval_map_clear(&map);
    BW_EQ(bw_interval_first(&map, 0, UINT64_MAX), BW_INTERVAL_NONE);
    bw_interval_map_free(&map);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The worst order for a tree that does not balance; the height is what makes every operation logarithmic. */
static void a_million_ranges_stay_logarithmic(void)
{
    enum { RANGES = 1000000 };
    struct bw_interval_map map = {0};
    double start = seconds_now();
    for (uint64_t i = 0; i < RANGES; i++)
        if (bw_interval_insert(&map, i * 16, 16, i, NULL)) {
            BW_TRUE(!"insert");
            break;
        }
    uint32_t height = bw_interval_map_check(&map);
    BW_TRUE(height <= (uint32_t)(1.4405 * log2(RANGES + 2)));
    struct bw_rng rng = bw_test_rng("million");
    uint64_t wrong = 0;
    for (int i = 0; i < RANGES; i++) {
        uint64_t address = bw_rng_below(&rng, (uint64_t)RANGES * 16);
        const struct bw_interval *found = bw_interval_at(&map, bw_interval_nearest(&map, address));
        wrong += found->value != address / 16;
    }
    BW_EQ(wrong, 0);
    printf("(height %u, %.2f s) ", height, seconds_now() - start);
    bw_interval_map_free(&map);
}

BW_TEST_MAIN("mem.interval", {"agrees with a plain list", agrees_with_a_plain_list},
             {"edges of the address space", edges_of_the_address_space},
             {"a million ranges stay logarithmic", a_million_ranges_stay_logarithmic})
