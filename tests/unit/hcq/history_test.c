/* Goal: the history of bytes says what a list of all touches says, for any mix of ranges, spaces and queues;
 * and n pieces with m readers of all of them cost m + n looks, not m * n. */
#include "hcq/history.h"

#include "base/bits.h"
#include "tests/check.h"
#include "tests/seed.h"

enum { SPACES = 3, QUEUES = 5 };

/* A plan of operations that have one touch each, all on inputs. */
static bool operation_add(struct bw_plan *plan, uint32_t queue, uint32_t space, uint64_t offset,
                          uint64_t size_bytes, bool write)
{
    struct bw_operation operation = {.queue = queue};
    struct bw_touch touch = {{NULL, space, offset}, size_bytes, write};
    return BW_EQ(bw_vec_push(&plan->operations, operation), 0) &&
           BW_EQ(bw_vec_push(&plan->touches, touch), 0);
}

static bool queues_add(struct bw_plan *plan, uint32_t count)
{
    bool ok = true;
    for (uint32_t i = 0; i < count && ok; i++)
        ok = BW_EQ(bw_vec_push(&plan->queues, (struct bw_plan_queue){0}), 0);
    return ok;
}

static void plan_clear(struct bw_plan *plan)
{
    bw_vec_free(&plan->queues);
    bw_vec_free(&plan->operations);
    bw_vec_free(&plan->touches);
}

static void newest_note(const struct bw_plan *plan, uint32_t operation, uint32_t *need)
{
    uint32_t *entry = &need[plan->operations.data[operation].queue];
    *entry = *entry > operation + 1 ? *entry : operation + 1;
}

static bool touch_holds(const struct bw_touch *touch, uint32_t space, uint64_t at)
{
    return touch->place.input == space && at >= touch->place.offset &&
           at - touch->place.offset < touch->size_bytes;
}

/* Byte by byte, backwards: readers up to the last writer. */
static void needs_expect(const struct bw_plan *plan, uint32_t index, uint32_t *need, uint32_t *need_data)
{
    const struct bw_touch *touch = &plan->touches.data[index];
    for (uint64_t at = touch->place.offset; at < touch->place.offset + touch->size_bytes; at++) {
        for (uint32_t i = index; i-- > 0;) {
            const struct bw_touch *before = &plan->touches.data[i];
            if (!touch_holds(before, touch->place.input, at))
                continue;
            if (before->write || touch->write)
                newest_note(plan, i, touch->write ? need : need_data);
            if (before->write)
                break;
        }
    }
}

static bool history_agrees(const struct bw_plan *plan)
{
    struct bw_history history;
    bool ok = BW_EQ(bw_history_create(&history, plan), 0);
    for (uint32_t i = 0; i < plan->operations.count && ok; i++) {
        uint32_t need[2][QUEUES] = {{0}}, expected[2][QUEUES] = {{0}};
        bw_history_needs(&history, i, need[0], need[1]);
        needs_expect(plan, i, expected[0], expected[1]);
        ok = BW_BYTES(need, expected, sizeof need) && BW_EQ(bw_history_record(&history, i, i), 0);
    }
    bw_history_free(&history);
    return ok;
}

/* Small spaces, in which ranges meet, and ones of more runs than a word of the bitmap has bits; some end at
 * the last address. */
static void agrees_with_a_list_of_touches(void)
{
    static const uint64_t sizes[] = {1, 8, 40, 600, 5000};
    struct bw_rng rng = bw_test_rng("history");
    bool ok = true;
    for (int round = 0; round < 60 && ok; round++) {
        struct bw_plan plan = {0};
        uint64_t space_bytes = sizes[bw_rng_below(&rng, BW_COUNT_OF(sizes))];
        uint64_t base = bw_rng_below(&rng, 2) ? UINT64_MAX - space_bytes : 0;
        uint64_t readers = 1 + bw_rng_below(&rng, 7); /* of eight */
        ok = queues_add(&plan, QUEUES);
        for (int i = 0; i < 700 && ok; i++) {
            uint64_t most_bytes = bw_rng_below(&rng, 16) || space_bytes < 5 ? 4 : space_bytes;
            uint64_t size_bytes = 1 + bw_rng_below(&rng, most_bytes < space_bytes ? most_bytes : space_bytes);
            uint64_t offset = base + bw_rng_below(&rng, space_bytes - size_bytes + 1);
            ok = operation_add(&plan, (uint32_t)bw_rng_below(&rng, QUEUES),
                               (uint32_t)bw_rng_below(&rng, SPACES), offset, size_bytes,
                               bw_rng_below(&rng, 8) >= readers);
        }
        ok = ok && history_agrees(&plan);
        plan_clear(&plan);
    }
}

static uint64_t gather_visits(uint32_t pieces, uint32_t readers, bool interleaved)
{
    struct bw_plan plan = {0};
    struct bw_history history;
    uint64_t visits = UINT64_MAX;
    bool ok = queues_add(&plan, QUEUES);
    for (uint32_t i = 0; i < pieces && ok; i++)
        ok = operation_add(&plan, i % QUEUES, 0, i, 1, true);
    for (uint32_t i = 0; i < readers && ok; i++) {
        ok = operation_add(&plan, i % QUEUES, 0, i % 7, pieces - i % 11, false); /* nearly all */
        if (interleaved && ok) /* and what was read changes again */
            ok = operation_add(&plan, i % QUEUES, 0, i * 37 % pieces, 1, true);
    }
    ok = ok && BW_EQ(bw_history_create(&history, &plan), 0);
    if (!ok)
        return visits;
    for (uint32_t i = 0; i < plan.operations.count && ok; i++) {
        uint32_t need[QUEUES] = {0}, need_data[QUEUES] = {0};
        bw_history_needs(&history, i, need, need_data);
        ok = BW_EQ(bw_history_record(&history, i, i), 0);
    }
    visits = history.visit_count;
    bw_history_free(&history);
    plan_clear(&plan);
    return visits;
}

/* A reader looks at no more than two incomplete words of each level, and at the words that changed. Levels
 * grow by one with 64 times the pieces. */
static void readers_of_many_pieces_do_not_look_at_each(void)
{
    enum { LEVELS = 3, PER_LEVEL = 2 * 64, PER_PIECE = 8 };
    bool ok = true;
    for (uint32_t count = 1000; count <= 64000 && ok; count *= 4) {
        uint64_t visits = gather_visits(count, count, false), changing = gather_visits(count, count, true);
        printf("(%u: %.1f, %.1f) ", count, (double)visits / count, (double)changing / count);
        ok = BW_TRUE(visits <= count * (uint64_t)(LEVELS * PER_LEVEL + PER_PIECE)) &&
             BW_TRUE(changing <= count * (uint64_t)(2 * LEVELS * PER_LEVEL + PER_PIECE));
    }
}

BW_TEST_MAIN("history", {"agrees_with_a_list_of_touches", agrees_with_a_list_of_touches},
             {"readers_of_many_pieces_do_not_look_at_each", readers_of_many_pieces_do_not_look_at_each})
