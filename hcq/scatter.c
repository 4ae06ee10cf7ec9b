/* Which word gets which value at a replay: patches sorted into lists by when their values are known and who
 * needs them. Inputs and points are listed step by step, so that the first command buffers are on their way
 * before the last ones are written. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hcq/linked.h"

struct sorter {
    struct bw_linked_graph *linked;
    const struct bw_encoded *encoded;
    uint32_t *command_at; /* per queue: the next patch of its commands */
    uint32_t *run_at;     /* per device: the next run of its arguments, in the order below */
    struct run **runs;    /* per device: sorted by step */
};

struct run {
    uint32_t step, patch_begin, patch_end;
};

static enum bw_symbol_kind kind_of(const struct sorter *sorter, const struct bw_patch *patch)
{
    return sorter->encoded->symbols.data[patch->symbol].kind;
}

static int scatter_add(struct bw_scatter_list *list, const struct bw_encoder *image,
                       const struct bw_patch *patch, uint64_t word)
{
    assert(word + image->count <= UINT32_MAX);
    if (patch->wide && patch->shift == 0) {
        struct bw_scatter scatter = {(uint32_t)(word + patch->word), patch->symbol, patch->addend};
        return bw_vec_push(&list->wide, scatter);
    }
    struct bw_scatter_field field = {.word = (uint32_t)(word + patch->word),
                                     .slot = patch->symbol,
                                     .addend = patch->addend,
                                     .mask = patch->mask,
                                     .keep = image->words[patch->word] & ~patch->mask,
                                     .shift = patch->shift,
                                     .wide = patch->wide};
    return bw_vec_push(&list->fields, field);
}

/* A patch of a step, or of a prologue or epilogue, which have their points in a list of their own. */
static int patch_sort(struct sorter *sorter, struct bw_linked_device *device, const struct bw_encoder *image,
                      const struct bw_patch *patch, uint64_t word, struct bw_scatter_list *points)
{
    enum bw_symbol_kind kind = kind_of(sorter, patch);
    if (kind < BW_SYMBOL_INPUT)
        return 0;
    struct bw_scatter_list *list = kind == BW_SYMBOL_INPUT || kind == BW_SYMBOL_VARIABLE ? &device->early
                                   : kind == BW_SYMBOL_SIGNAL                            ? &device->rare
                                                                                         : points;
    return scatter_add(list, image, patch, word);
}

static void range_begin(struct bw_scatter_range *range, const struct bw_scatter_list *list)
{
    range->wide_begin = (uint32_t)list->wide.count;
    range->field_begin = (uint32_t)list->fields.count;
}

static void range_end(struct bw_scatter_range *range, const struct bw_scatter_list *list)
{
    range->wide_end = (uint32_t)list->wide.count;
    range->field_end = (uint32_t)list->fields.count;
}

/* The patches of a command buffer; those of a queue's commands are in the order of its words. */
static int commands_sort(struct sorter *sorter, const struct bw_step *step, struct bw_scatter_list *points)
{
    const struct bw_linked_queue *queue = &sorter->linked->queues[step->queue];
    const struct bw_encoder *image = &sorter->encoded->queues[step->queue].commands;
    uint32_t *at = &sorter->command_at[step->queue];
    int rc = 0;
    for (; *at < image->patch_count && image->patches[*at].word < step->word + step->word_count && !rc; ++*at)
        rc = patch_sort(sorter, &sorter->linked->devices[queue->device], image, &image->patches[*at],
                        queue->word, points);
    return rc;
}

static int arguments_sort(struct sorter *sorter, uint32_t number, uint32_t step)
{
    struct bw_linked_device *device = &sorter->linked->devices[number];
    const struct bw_encoded_device *encoded = &sorter->encoded->devices[number];
    int rc = 0;
    for (uint32_t *at = &sorter->run_at[number];
         *at < encoded->runs.count && sorter->runs[number][*at].step == step && !rc; ++*at) {
        const struct run *run = &sorter->runs[number][*at];
        for (uint32_t i = run->patch_begin; i < run->patch_end && !rc; i++)
            rc = patch_sort(sorter, device, &encoded->arguments, &encoded->arguments.patches[i],
                            device->argument_word, &device->late);
    }
    return rc;
}

static int step_sort(struct sorter *sorter, uint32_t index, bool *begun)
{
    struct bw_linked_step made = {.step = sorter->encoded->steps.data[index]};
    uint32_t queue = made.step.queue, number = sorter->linked->queues[queue].device;
    struct bw_linked_device *device = &sorter->linked->devices[number];
    int rc = 0;
    if (made.step.kind == BW_STEP_SUBMIT) {
        made.first = !begun[queue];
        begun[queue] = true;
        range_begin(&made.early, &device->early);
        range_begin(&made.late, &device->late);
        rc = commands_sort(sorter, &made.step, &device->late);
        if (!rc)
            rc = arguments_sort(sorter, number, index);
        range_end(&made.early, &device->early);
        range_end(&made.late, &device->late);
    }
    return rc ? rc : bw_vec_push(&sorter->linked->steps, made);
}

/* After all steps, as the words of prologues and epilogues are. */
static int asides_sort(struct sorter *sorter, uint32_t number)
{
    struct bw_linked_queue *queue = &sorter->linked->queues[number];
    struct bw_scatter_list *list = &sorter->linked->devices[queue->device].aside;
    range_begin(&queue->prologue_range, list);
    int rc = commands_sort(sorter, &queue->prologue, list);
    range_end(&queue->prologue_range, list);
    range_begin(&queue->epilogue_range, list);
    if (!rc)
        rc = commands_sort(sorter, &queue->epilogue, list);
    range_end(&queue->epilogue_range, list);
    assert(rc || sorter->command_at[number] == sorter->encoded->queues[number].commands.patch_count);
    return rc;
}

static int run_compare(const void *left, const void *right)
{
    const struct run *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return (a->patch_begin > b->patch_begin) - (a->patch_begin < b->patch_begin);
}

static int runs_sort(struct sorter *sorter, uint32_t number)
{
    const struct bw_encoded_device *encoded = &sorter->encoded->devices[number];
    size_t count = encoded->runs.count;
    struct run *runs = sorter->runs[number] = calloc(count + 1, sizeof *runs);
    if (!runs)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        runs[i] = (struct run){encoded->runs.data[i].step, encoded->runs.data[i].patch_begin,
                               i + 1 < count ? encoded->runs.data[i + 1].patch_begin
                                             : encoded->arguments.patch_count};
    qsort(runs, count, sizeof *runs, run_compare);
    return 0;
}

static int all_sort(struct sorter *sorter)
{
    struct bw_linked_graph *linked = sorter->linked;
    bool *begun = calloc(linked->queue_count + 1, sizeof *begun);
    int rc = begun ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < linked->device_count && !rc; i++)
        rc = runs_sort(sorter, i);
    for (uint32_t i = 0; i < sorter->encoded->steps.count && !rc; i++)
        rc = step_sort(sorter, i, begun);
    for (uint32_t i = 0; i < linked->queue_count && !rc; i++)
        rc = linked->queues[i].signal_count ? asides_sort(sorter, i) : 0;
    free(begun);
    return rc;
}

int bw_scatter_make(struct bw_linked_graph *linked, const struct bw_encoded *encoded)
{
    struct sorter sorter = {.linked = linked,
                            .encoded = encoded,
                            .command_at = calloc(linked->queue_count + 1, sizeof *sorter.command_at),
                            .run_at = calloc(linked->device_count + 1, sizeof *sorter.run_at),
                            .runs = calloc(linked->device_count + 1, sizeof *sorter.runs)};
    int rc = sorter.command_at && sorter.run_at && sorter.runs ? all_sort(&sorter) : -ENOMEM;
    for (uint32_t i = 0; sorter.runs && i < linked->device_count; i++)
        free(sorter.runs[i]);
    free(sorter.command_at);
    free(sorter.run_at);
    free(sorter.runs);
    return rc;
}

static void list_free(struct bw_scatter_list *list)
{
    bw_vec_free(&list->wide);
    bw_vec_free(&list->fields);
}

void bw_scatter_free(struct bw_linked_device *device)
{
    list_free(&device->early);
    list_free(&device->late);
    list_free(&device->aside);
    list_free(&device->rare);
}

enum {
    PREFETCH_ENTRIES = 16, /* ahead: about as long as a line takes to come from where the engine read it */
};

void bw_scatter_run(const struct bw_scatter_list *list, const struct bw_scatter_range *range,
                    const uint64_t *table, uint32_t *words)
{
    for (uint32_t i = range->wide_begin; i < range->wide_end; i++) {
        const struct bw_scatter *entry = &list->wide.data[i];
        uint64_t value = table[entry->slot] + entry->addend;
        if (i + PREFETCH_ENTRIES < range->wide_end)
            __builtin_prefetch(words + entry[PREFETCH_ENTRIES].word, 1);
        memcpy(words + entry->word, &value, sizeof value);
    }
    for (uint32_t i = range->field_begin; i < range->field_end; i++) {
        const struct bw_scatter_field *field = &list->fields.data[i];
        uint64_t value = (table[field->slot] + field->addend) >> field->shift;
        words[field->word] = field->keep | ((uint32_t)value & field->mask);
        if (field->wide)
            words[field->word + 1] = (uint32_t)(value >> 32);
    }
}
