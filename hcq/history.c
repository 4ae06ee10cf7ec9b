/* Histories of bytes: see history.h. */
#include "hcq/history.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum {
    WORD_BITS = 64,
    DIGIT_BITS = 8, /* of sorting: counters of one pass stay in the first cache */
    DIGIT_VALUES = 1 << DIGIT_BITS,
    OFFSET_DIGITS = 64 / DIGIT_BITS,
    SPACE_DIGITS = 32 / DIGIT_BITS,
};

/* ---- runs ---- */

static uint32_t words_for(uint32_t bits)
{
    return bits / WORD_BITS + (bits % WORD_BITS != 0);
}

static int runs_create(struct bw_runs *runs, uint32_t slot_count)
{
    runs->slot_count = slot_count;
    runs->values = calloc((size_t)slot_count + 1, sizeof *runs->values);
    if (!runs->values)
        return -ENOMEM;
    for (uint32_t bits = slot_count;; bits = words_for(bits)) {
        assert(runs->level_count < BW_RUNS_LEVELS_MAX);
        uint64_t *level = calloc((size_t)words_for(bits) + 1, sizeof *level);
        if (!level)
            return -ENOMEM;
        level[0] = 1; /* one run of all */
        runs->levels[runs->level_count++] = level;
        if (bits <= 1)
            return 0;
    }
}

static void runs_free(struct bw_runs *runs)
{
    for (uint32_t i = 0; i < runs->level_count; i++)
        free(runs->levels[i]);
    free(runs->values);
}

static bool run_starts(const struct bw_runs *runs, uint32_t slot)
{
    return runs->levels[0][slot / WORD_BITS] >> slot % WORD_BITS & 1;
}

static void start_set(struct bw_runs *runs, uint32_t slot)
{
    for (uint32_t level = 0, bit = slot; level < runs->level_count; level++, bit /= WORD_BITS) {
        uint64_t *word = &runs->levels[level][bit / WORD_BITS], before = *word;
        *word |= 1ull << bit % WORD_BITS;
        if (before)
            return; /* so the levels above know of it */
    }
}

static void start_clear(struct bw_runs *runs, uint32_t slot)
{
    for (uint32_t level = 0, bit = slot; level < runs->level_count; level++, bit /= WORD_BITS) {
        uint64_t *word = &runs->levels[level][bit / WORD_BITS];
        *word &= ~(1ull << bit % WORD_BITS);
        if (*word)
            return;
    }
}

/* The start of the run that holds the slot. */
static uint32_t run_of(const struct bw_runs *runs, uint32_t slot)
{
    uint32_t level = 0, bit = slot;
    if (run_starts(runs, slot))
        return slot;
    for (;; level++, bit /= WORD_BITS) {
        assert(level < runs->level_count); /* slot 0 always is a start */
        uint64_t below = runs->levels[level][bit / WORD_BITS] & ((1ull << bit % WORD_BITS) - 1);
        if (!below)
            continue;
        bit = bit / WORD_BITS * WORD_BITS + (WORD_BITS - 1 - (uint32_t)__builtin_clzll(below));
        while (level--)
            bit = bit * WORD_BITS + (WORD_BITS - 1 - (uint32_t)__builtin_clzll(runs->levels[level][bit]));
        return bit;
    }
}

/* The first start after the slot; slot_count: there is none. */
static uint32_t run_next(const struct bw_runs *runs, uint32_t slot)
{
    for (uint32_t level = 0, bit = slot; level < runs->level_count; level++, bit /= WORD_BITS) {
        uint64_t above = runs->levels[level][bit / WORD_BITS] & ~((2ull << bit % WORD_BITS) - 1);
        if (!above)
            continue;
        bit = bit / WORD_BITS * WORD_BITS + (uint32_t)__builtin_ctzll(above);
        while (level--)
            bit = bit * WORD_BITS + (uint32_t)__builtin_ctzll(runs->levels[level][bit]);
        return bit;
    }
    return runs->slot_count;
}

/* ---- slots ---- */

/* An end of a touch. */
struct point {
    uint64_t offset;
    uint32_t space;
    uint32_t owner; /* touch * 2; + 1: where it ends */
};

static uint32_t digit_of(const struct point *point, uint32_t digit)
{
    uint64_t value = digit < OFFSET_DIGITS ? point->offset >> digit * DIGIT_BITS
                                           : point->space >> (digit - OFFSET_DIGITS) * DIGIT_BITS;
    return (uint32_t)(value % DIGIT_VALUES);
}

/* One pass of sorting: stable, by one digit. False: all have the same, and nothing was moved. */
static bool digit_sort(const struct point *from, struct point *to, size_t count, uint32_t digit)
{
    size_t at[DIGIT_VALUES] = {0}, sum = 0;
    for (size_t i = 0; i < count; i++)
        at[digit_of(&from[i], digit)]++;
    if (at[digit_of(&from[0], digit)] == count)
        return false;
    for (uint32_t value = 0; value < DIGIT_VALUES; value++) {
        size_t here = at[value];
        at[value] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++)
        to[at[digit_of(&from[i], digit)]++] = from[i];
    return true;
}

/* Sorted by digits, as that takes linear time. Returns which of the two arrays holds the result. */
static struct point *points_sort(struct point *points, struct point *spare, size_t count)
{
    for (uint32_t digit = 0; digit < OFFSET_DIGITS + SPACE_DIGITS && count; digit++) {
        if (!digit_sort(points, spare, count, digit))
            continue;
        struct point *sorted = spare;
        spare = points;
        points = sorted;
    }
    return points;
}

static int points_list(const struct bw_plan *plan, struct point *points)
{
    struct bw_map numbers = {0}; /* of spaces: sorted by few digits */
    uint64_t space_count = 0;
    int rc = 0;
    for (uint32_t i = 0; i < plan->touches.count && !rc; i++) {
        const struct bw_touch *touch = &plan->touches.data[i];
        uint64_t space;
        if (!bw_map_get(&numbers, bw_place_space(&touch->place), &space)) {
            space = space_count++;
            rc = bw_map_set(&numbers, bw_place_space(&touch->place), space);
        }
        uint64_t begin = touch->place.offset;
        points[2 * i] = (struct point){begin, (uint32_t)space, 2 * i};
        points[2 * i + 1] = (struct point){begin + touch->size_bytes, (uint32_t)space, 2 * i + 1};
    }
    bw_map_free(&numbers);
    return rc;
}

/* Returns how many different points there are. */
static uint32_t slots_number(struct bw_history *history, const struct point *points, size_t count)
{
    uint32_t slot = 0;
    for (size_t i = 0; i < count; i++) {
        slot += i && (points[i].offset != points[i - 1].offset || points[i].space != points[i - 1].space);
        if (points[i].owner % 2)
            history->slots[points[i].owner / 2].end = slot;
        else
            history->slots[points[i].owner / 2].begin = slot;
    }
    return slot + 1;
}

static int slots_make(struct bw_history *history, uint32_t *slot_count)
{
    size_t count = 2 * history->plan->touches.count;
    struct point *points = malloc((count + 1) * sizeof *points), *spare = malloc((count + 1) * sizeof *spare);
    history->slots = malloc((count / 2 + 1) * sizeof *history->slots);
    int rc = points && spare && history->slots ? points_list(history->plan, points) : -ENOMEM;
    if (!rc)
        *slot_count = slots_number(history, points_sort(points, spare, count), count);
    free(points);
    free(spare);
    return rc;
}

int bw_history_create(struct bw_history *history, const struct bw_plan *plan)
{
    uint32_t slot_count = 0;
    *history = (struct bw_history){.plan = plan, .queue_count = (uint32_t)plan->queues.count};
    if (plan->touches.count >= UINT32_MAX / 2)
        return -E2BIG;
    int rc = slots_make(history, &slot_count);
    if (!rc)
        rc = runs_create(&history->writes, slot_count);
    if (!rc)
        rc = runs_create(&history->reads, slot_count);
    if (!rc)
        rc = bw_vec_push(&history->readers, (struct bw_reader){0}); /* number 0 ends lists */
    for (uint32_t level = 0; level < history->writes.level_count && !rc; level++) {
        size_t words = slot_count / WORD_BITS + 1;
        for (uint32_t i = 0; i < level; i++)
            words = words / WORD_BITS + 1;
        history->newest[level] = calloc(words * history->queue_count + 1, sizeof *history->newest[level]);
        history->fresh[level] = calloc(words, sizeof *history->fresh[level]);
        rc = history->newest[level] && history->fresh[level] ? 0 : -ENOMEM;
    }
    return rc;
}

void bw_history_free(struct bw_history *history)
{
    for (uint32_t level = 0; level < BW_RUNS_LEVELS_MAX; level++) {
        free(history->newest[level]);
        free(history->fresh[level]);
    }
    runs_free(&history->writes);
    runs_free(&history->reads);
    bw_vec_free(&history->readers);
    free(history->slots);
}

/* ---- what comes before ---- */

/* number: index of an operation + 1, or 0. */
static void newest_note(struct bw_history *history, uint32_t *newest, uint32_t number)
{
    history->visit_count++;
    if (!number)
        return;
    uint32_t queue = history->plan->operations.data[number - 1].queue;
    if (newest[queue] < number)
        newest[queue] = number;
}

static void newest_merge(const struct bw_history *history, uint32_t *newest, const uint32_t *other)
{
    for (uint32_t i = 0; i < history->queue_count; i++)
        newest[i] = other[i] > newest[i] ? other[i] : newest[i];
}

static const uint32_t *summary_of(struct bw_history *history, uint32_t level, uint32_t word);

/* Writers of what the bits [begin, end) of a level stand for. */
static void bits_note(struct bw_history *history, uint32_t level, uint32_t begin, uint32_t end,
                      uint32_t *newest)
{
    for (uint32_t bit = begin; bit < end; bit++) {
        uint64_t left = history->writes.levels[level][bit / WORD_BITS] >> bit % WORD_BITS;
        bit = left ? bit + (uint32_t)__builtin_ctzll(left) : bit | (WORD_BITS - 1);
        if (!left || bit >= end)
            continue;
        if (level == 0)
            newest_note(history, newest, history->writes.values[bit]);
        else
            newest_merge(history, newest, summary_of(history, level - 1, bit));
    }
}

static const uint32_t *summary_of(struct bw_history *history, uint32_t level, uint32_t word)
{
    uint32_t *newest = &history->newest[level][(size_t)word * history->queue_count];
    history->visit_count++;
    if (!history->fresh[level][word]) {
        uint32_t begin = word * WORD_BITS;
        memset(newest, 0, history->queue_count * sizeof *newest);
        bits_note(history, level, begin, begin + WORD_BITS, newest);
        history->fresh[level][word] = true;
    }
    return newest;
}

/* The same of as many bits as one likes: whole words of them are bits of the level above. */
static void range_note(struct bw_history *history, uint32_t level, uint32_t begin, uint32_t end,
                       uint32_t *newest)
{
    uint32_t word_begin = words_for(begin), word_end = end / WORD_BITS;
    if (word_begin >= word_end) {
        bits_note(history, level, begin, end, newest);
        return;
    }
    bits_note(history, level, begin, word_begin * WORD_BITS, newest);
    range_note(history, level + 1, word_begin, word_end, newest);
    bits_note(history, level, word_end * WORD_BITS, end, newest);
}

static void writers_note(struct bw_history *history, uint32_t begin, uint32_t end, uint32_t *newest)
{
    newest_note(history, newest, history->writes.values[run_of(&history->writes, begin)]);
    if (end - begin > 1)
        range_note(history, 0, begin + 1, end, newest);
}

/* Each run is looked at once: the write that asks takes them away. */
static void readers_note(struct bw_history *history, uint32_t begin, uint32_t end, uint32_t *newest)
{
    const struct bw_runs *reads = &history->reads;
    for (uint32_t slot = run_of(reads, begin); slot < end; slot = run_next(reads, slot)) {
        history->visit_count++;
        for (uint32_t at = reads->values[slot]; at; at = history->readers.data[at].next)
            newest_note(history, newest, history->readers.data[at].operation + 1);
    }
}

void bw_history_needs(struct bw_history *history, uint32_t touch, uint32_t *need, uint32_t *need_data)
{
    uint32_t begin = history->slots[touch].begin, end = history->slots[touch].end;
    bool write = history->plan->touches.data[touch].write;
    writers_note(history, begin, end, write ? need : need_data);
    if (write)
        readers_note(history, begin, end, need);
}

/* ---- recording ---- */

static void write_changed(struct bw_history *history, uint32_t slot)
{
    for (uint32_t level = 0, word = slot / WORD_BITS; level < history->writes.level_count;
         level++, word /= WORD_BITS)
        history->fresh[level][word] = false;
}

static void write_record(struct bw_history *history, uint32_t begin, uint32_t end, uint32_t operation)
{
    struct bw_runs *writes = &history->writes;
    if (!run_starts(writes, end)) { /* there always is a slot at the end: a range ends there */
        writes->values[end] = writes->values[run_of(writes, end)];
        start_set(writes, end);
        write_changed(history, end);
    }
    for (uint32_t slot = run_next(writes, begin); slot < end; slot = run_next(writes, slot)) {
        history->visit_count++;
        start_clear(writes, slot);
        write_changed(history, slot);
    }
    start_set(writes, begin);
    writes->values[begin] = operation + 1;
    write_changed(history, begin);
}

/* Puts a reader before the list, which stays in falling order: operations are recorded in theirs. */
static int reader_push(struct bw_history *history, uint32_t *list, uint32_t operation)
{
    uint32_t at = history->free_reader;
    if (at)
        history->free_reader = history->readers.data[at].next;
    else if (at = (uint32_t)history->readers.count, bw_vec_push(&history->readers, (struct bw_reader){0}))
        return -ENOMEM;
    history->readers.data[at] = (struct bw_reader){operation, *list};
    *list = at;
    return 0;
}

static int readers_copy(struct bw_history *history, uint32_t list, uint32_t *copy)
{
    uint32_t last = 0, fresh;
    *copy = 0;
    for (uint32_t at = list; at; at = history->readers.data[at].next, last = fresh) {
        fresh = 0;
        if (reader_push(history, &fresh, history->readers.data[at].operation))
            return -ENOMEM;
        *(last ? &history->readers.data[last].next : copy) = fresh;
    }
    return 0;
}

static bool readers_equal(struct bw_history *history, uint32_t a, uint32_t b)
{
    const struct bw_reader *readers = history->readers.data;
    for (; a && b && readers[a].operation == readers[b].operation; a = readers[a].next, b = readers[b].next)
        history->visit_count++;
    return !a && !b;
}

/* Takes the readers of a queue, or all, out of a list. */
static void readers_drop(struct bw_history *history, uint32_t *list, uint32_t queue)
{
    while (*list) {
        struct bw_reader *reader = &history->readers.data[*list];
        history->visit_count++;
        if (queue != BW_PLAN_NONE && history->plan->operations.data[reader->operation].queue != queue) {
            list = &reader->next;
            continue;
        }
        uint32_t dropped = *list;
        *list = reader->next;
        reader->next = history->free_reader;
        history->free_reader = dropped;
    }
}

static int reads_split(struct bw_history *history, uint32_t slot)
{
    struct bw_runs *reads = &history->reads;
    if (run_starts(reads, slot))
        return 0;
    uint32_t list = reads->values[run_of(reads, slot)];
    start_set(reads, slot);
    return readers_copy(history, list, &reads->values[slot]);
}

/* Runs that have the same readers now become one, so that gaps which writes made are forgotten once all
 * queues have read over them. */
static int read_record(struct bw_history *history, uint32_t begin, uint32_t end, uint32_t operation)
{
    struct bw_runs *reads = &history->reads;
    uint32_t queue = history->plan->operations.data[operation].queue, run = begin;
    int rc = reads_split(history, begin);
    if (!rc)
        rc = reads_split(history, end);
    for (uint32_t slot = begin; slot < end && !rc; slot = run_next(reads, slot)) {
        history->visit_count++;
        readers_drop(history, &reads->values[slot], queue);
        rc = reader_push(history, &reads->values[slot], operation);
        if (slot != begin && readers_equal(history, reads->values[run], reads->values[slot])) {
            readers_drop(history, &reads->values[slot], BW_PLAN_NONE);
            start_clear(reads, slot);
        } else {
            run = slot;
        }
    }
    return rc;
}

static int readers_clear(struct bw_history *history, uint32_t begin, uint32_t end)
{
    struct bw_runs *reads = &history->reads;
    uint32_t start = run_of(reads, begin);
    if (!reads->values[start] && run_next(reads, start) >= end)
        return 0; /* there were none */
    int rc = reads_split(history, begin);
    if (!rc)
        rc = reads_split(history, end);
    for (uint32_t slot = begin; slot < end && !rc; slot = run_next(reads, slot)) {
        history->visit_count++;
        readers_drop(history, &reads->values[slot], BW_PLAN_NONE);
        if (slot != begin)
            start_clear(reads, slot);
    }
    return rc;
}

int bw_history_record(struct bw_history *history, uint32_t touch, uint32_t operation)
{
    uint32_t begin = history->slots[touch].begin, end = history->slots[touch].end;
    if (!history->plan->touches.data[touch].write)
        return read_record(history, begin, end, operation);
    write_record(history, begin, end, operation);
    return readers_clear(history, begin, end);
}
