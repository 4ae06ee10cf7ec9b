/* Replay inputs: what was given, whether it fits, whether two of them overlap where one is written.
 *
 * Overlap is looked for by block: a hash table, made at link, remembers for each block which input of the
 * current replay lies in it, so that inputs in blocks of their own cost one probe each. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/linked.h"

static int no_memory(struct bw_err *err)
{
    return bw_fail(err, -ENOMEM, "graph", "replay inputs");
}

/* ---- at link ---- */

/* What earlier replays left behind counts as free. That keeps probing sound: entries of the graph's own
 * blocks come first on their probe paths, and within one replay no entry becomes free. */
static bool seen_is_free(const struct bw_seen *seen, uint64_t replay)
{
    return !seen->fixed_count && seen->replay != replay;
}

/* Ids are consecutive numbers, and memory that is made together is given together: neighbours in the table
 * are neighbours in a replay, which walks the table and does not jump in it. What is further apart than the
 * table is long is spread by Fibonacci hashing. */
static uint32_t seen_home(const struct bw_inputs *inputs, uint64_t block_id)
{
    uint64_t stretch = block_id >> __builtin_ctz(inputs->seen_capacity);
    return (uint32_t)(block_id + ((stretch * 0x9e3779b97f4a7c15ull) >> 32)) & (inputs->seen_capacity - 1);
}

/* The block's entry, or the free one where it belongs. */
static struct bw_seen *seen_at(const struct bw_inputs *inputs, uint64_t block_id, uint64_t replay)
{
    uint32_t mask = inputs->seen_capacity - 1, at = seen_home(inputs, block_id);
    while (!seen_is_free(&inputs->seen[at], replay) && inputs->seen[at].block_id != block_id)
        at = (at + 1) & mask;
    return &inputs->seen[at];
}

static int touch_compare(const void *left, const void *right)
{
    const struct bw_touch *a = *(const struct bw_touch *const *)left,
                          *b = *(const struct bw_touch *const *)right;
    if (a->place.block->id != b->place.block->id)
        return a->place.block->id < b->place.block->id ? -1 : 1;
    if (a->write != b->write)
        return a->write ? 1 : -1;
    return (a->place.offset > b->place.offset) - (a->place.offset < b->place.offset);
}

/* Touches of blocks, sorted by block, kind and offset. */
static int touches_sort(const struct bw_plan *plan, const struct bw_touch ***out, size_t *count,
                        uint32_t *block_count)
{
    const struct bw_touch **sorted = calloc(plan->touches.count + 1, sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    *count = 0;
    *block_count = 0;
    for (size_t i = 0; i < plan->touches.count; i++) {
        if (plan->touches.data[i].place.block)
            sorted[(*count)++] = &plan->touches.data[i];
    }
    qsort(sorted, *count, sizeof *sorted, touch_compare);
    for (size_t i = 0; i < *count; i++)
        *block_count += i == 0 || sorted[i]->place.block != sorted[i - 1]->place.block;
    *out = sorted;
    return 0;
}

/* Merges neighbours of one block and kind into ranges, and hangs them on the block's entry. */
static int fixed_fill(struct bw_inputs *inputs, const struct bw_touch *const *sorted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct bw_touch *touch = sorted[i];
        struct bw_seen *seen = seen_at(inputs, touch->place.block->id, 1);
        uint64_t begin = touch->place.offset, end = begin + touch->size_bytes;
        if (!seen->fixed_count)
            *seen = (struct bw_seen){.block_id = touch->place.block->id,
                                     .fixed_begin = (uint32_t)inputs->fixed.count};
        struct bw_fixed_range *last = seen->fixed_count ? &inputs->fixed.data[inputs->fixed.count - 1] : NULL;
        if (last && last->written == touch->write && begin <= last->end) {
            last->end = end > last->end ? end : last->end;
            continue;
        }
        struct bw_fixed_range range = {begin, end, touch->write};
        if (bw_vec_push(&inputs->fixed, range))
            return -ENOMEM;
        seen->fixed_count++;
    }
    return 0;
}

static int fixed_make(struct bw_inputs *inputs, const struct bw_plan *plan)
{
    const struct bw_touch **sorted;
    size_t count;
    uint32_t blocks;
    int rc = touches_sort(plan, &sorted, &count, &blocks);
    if (rc)
        return rc;
    inputs->seen_capacity = 16;
    while (inputs->seen_capacity < 2 * ((uint64_t)blocks + inputs->count)) /* at most half full */
        inputs->seen_capacity *= 2;
    inputs->seen = calloc(inputs->seen_capacity, sizeof *inputs->seen);
    rc = inputs->seen ? fixed_fill(inputs, sorted, count) : -ENOMEM;
    free(sorted);
    return rc;
}

static int slots_make(struct bw_inputs *inputs, const struct bw_encoded *encoded)
{
    for (uint32_t slot = 0; slot < encoded->symbols.count; slot++) {
        const struct bw_symbol *symbol = &encoded->symbols.data[slot];
        if (symbol->kind == BW_SYMBOL_INPUT)
            inputs->inputs[symbol->number].slot_count++;
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < inputs->count; i++) {
        inputs->inputs[i].slot_begin = total;
        total += inputs->inputs[i].slot_count;
        inputs->inputs[i].slot_count = 0;
    }
    if (total && bw_vec_reserve(&inputs->slots, total))
        return -ENOMEM;
    inputs->slots.count = total;
    for (uint32_t slot = 0; slot < encoded->symbols.count; slot++) {
        const struct bw_symbol *symbol = &encoded->symbols.data[slot];
        if (symbol->kind != BW_SYMBOL_INPUT)
            continue;
        struct bw_linked_input *input = &inputs->inputs[symbol->number];
        inputs->slots.data[input->slot_begin + input->slot_count++] =
            (struct bw_input_slot){slot, symbol->device};
    }
    return 0;
}

int bw_inputs_make(struct bw_inputs *inputs, const struct bw_plan *plan, const struct bw_encoded *encoded,
                   struct bw_err *err)
{
    inputs->count = plan->graph->input_count;
    if (inputs->count == 0)
        return 0;
    inputs->inputs = calloc(inputs->count, sizeof *inputs->inputs);
    inputs->previous = calloc(inputs->count, sizeof *inputs->previous);
    if (!inputs->inputs || !inputs->previous)
        return no_memory(err);
    for (uint32_t i = 0; i < inputs->count; i++)
        inputs->inputs[i].range = plan->inputs[i];
    int rc = slots_make(inputs, encoded);
    if (!rc)
        rc = fixed_make(inputs, plan);
    return rc ? no_memory(err) : 0;
}

void bw_inputs_free(struct bw_inputs *inputs)
{
    free(inputs->inputs);
    free(inputs->previous);
    free(inputs->seen);
    bw_vec_free(&inputs->slots);
    bw_vec_free(&inputs->fixed);
    *inputs = (struct bw_inputs){0};
}

/* ---- at replay ---- */

enum {
    PREFETCH_INPUTS = 16, /* ahead: about as long as main memory takes */
};

static int overlap_refuse(uint32_t index, const char *with, uint32_t other, struct bw_err *err)
{
    bw_fail(err, -EINVAL, "graph", "replay input %u overlaps %s", index, with);
    if (other != BW_PLAN_NONE)
        bw_err_observed(err, "input %u", other);
    bw_err_hint(err, "what a graph writes may not lie under another name: dependencies were tracked by name");
    return -EINVAL;
}

static bool ranges_meet(uint64_t a_begin, uint64_t a_end, uint64_t b_begin, uint64_t b_end)
{
    return a_begin < b_end && b_begin < a_end;
}

/* Against the graph's own touches of the block, and the inputs of this replay that lie in it. */
static int overlap_check(const struct bw_inputs *inputs, const struct bw_replay *replay,
                         const struct bw_seen *seen, uint32_t index, struct bw_err *err)
{
    const struct bw_plan_input *range = &inputs->inputs[index].range;
    uint64_t offset = replay->inputs[index]->offset, begin = offset + range->begin, end = offset + range->end;
    for (uint32_t i = 0; i < seen->fixed_count; i++) {
        const struct bw_fixed_range *fixed = &inputs->fixed.data[seen->fixed_begin + i];
        if ((fixed->written || range->written) && ranges_meet(begin, end, fixed->begin, fixed->end))
            return overlap_refuse(index, "a buffer of the graph", BW_PLAN_NONE, err);
    }
    for (uint32_t other = inputs->previous[index]; other != BW_PLAN_NONE; other = inputs->previous[other]) {
        const struct bw_plan_input *theirs = &inputs->inputs[other].range;
        uint64_t their_offset = replay->inputs[other]->offset;
        if ((theirs->written || range->written) &&
            ranges_meet(begin, end, their_offset + theirs->begin, their_offset + theirs->end))
            return overlap_refuse(index, "another input", other, err);
    }
    return 0;
}

static int input_refuse(uint32_t index, const struct bw_linked_input *input, const struct bw_buffer *buffer,
                        struct bw_err *err)
{
    if (!buffer)
        return bw_fail(err, -EINVAL, "graph", "replay input %u is not given", index);
    bw_fail(err, -ERANGE, "graph", "replay input %u", index);
    bw_err_expected(err, "at least %llu bytes", (unsigned long long)input->range.end);
    bw_err_observed(err, "%llu", (unsigned long long)buffer->size_bytes);
    return -ERANGE;
}

/* The address for each device that uses the input. Mapping a peer's memory for the first time is the one slow
 * path. */
static int addresses_fill(struct bw_linked_graph *linked, const struct bw_linked_input *input,
                          const struct bw_buffer *buffer, struct bw_err *err)
{
    const struct bw_input_slot *slots = linked->inputs.slots.data + input->slot_begin;
    for (uint32_t i = 0; i < input->slot_count; i++) {
        struct bw_hcq_device *hcq = linked->devices[slots[i].device].hcq;
        uint64_t address = buffer->block->memory.address;
        if (hcq != buffer->block->owner) {
            int rc = bw_block_reach(buffer->block, hcq, &address, err);
            if (rc)
                return rc;
        }
        linked->table[slots[i].slot] = address + buffer->offset;
    }
    return 0;
}

static int input_take(struct bw_linked_graph *linked, const struct bw_replay *replay, uint32_t index,
                      struct bw_err *err)
{
    struct bw_inputs *inputs = &linked->inputs;
    const struct bw_linked_input *input = &inputs->inputs[index];
    const struct bw_buffer *buffer = replay->inputs[index];
    if (!buffer || buffer->size_bytes < input->range.end)
        return input_refuse(index, input, buffer, err);
    struct bw_seen *seen = seen_at(inputs, buffer->block->id, inputs->replay);
    inputs->previous[index] = seen->replay == inputs->replay ? seen->input : BW_PLAN_NONE;
    if (seen->fixed_count || inputs->previous[index] != BW_PLAN_NONE) {
        int rc = overlap_check(inputs, replay, seen, index, err);
        if (rc)
            return rc;
    }
    seen->replay = inputs->replay;
    seen->input = index;
    seen->block_id = buffer->block->id;
    linked->input_owners |= 1ull << buffer->block->owner->index;
    linked->input_users |= __atomic_load_n(&buffer->block->users, __ATOMIC_ACQUIRE);
    return addresses_fill(linked, input, buffer, err);
}

int bw_inputs_take(struct bw_linked_graph *linked, const struct bw_replay *replay, struct bw_err *err)
{
    struct bw_inputs *inputs = &linked->inputs;
    uint32_t given = replay ? replay->input_count : 0;
    linked->input_owners = linked->input_users = 0;
    if (given != inputs->count) {
        bw_fail(err, -EINVAL, "graph", "replay inputs");
        bw_err_expected(err, "%u", inputs->count);
        bw_err_observed(err, "%u", given);
        return -EINVAL;
    }
    inputs->replay++;
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (i + PREFETCH_INPUTS < inputs->count)
            __builtin_prefetch(replay->inputs[i + PREFETCH_INPUTS]);
        int rc = inputs->inputs[i].range.used ? input_take(linked, replay, i, err) : 0;
        if (rc)
            return rc;
    }
    return 0;
}
