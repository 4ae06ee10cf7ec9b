/* Linking: addresses resolved, K instances written, patch lists sorted by when their values are known. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/linked.h"

enum {
    PART_ALIGN_WORDS = 64, /* parts of an instance begin at 256 bytes, like command buffers */
    PLACE_TRIES = 4,       /* addresses looked at for one where no argument block's high word changes */
};

struct linker {
    struct bw_linked_graph *linked;
    struct bw_plan *plan;
    struct bw_encoded *encoded;
    struct bw_err *err;
};

static int no_memory(const struct linker *linker)
{
    return bw_fail(linker->err, -ENOMEM, "graph", "linking %zu calls", linker->plan->graph->calls.count);
}

static int arrays_make(struct linker *linker, uint32_t instances)
{
    struct bw_linked_graph *linked = linker->linked;
    const struct bw_graph *graph = linker->plan->graph;
    linked->ctx = graph->ctx;
    linked->instance_count = instances;
    linked->device_count = (uint32_t)linker->plan->devices.count;
    linked->queue_count = (uint32_t)linker->plan->queues.count;
    linked->variable_count = graph->variable_count;
    linked->table_count = (uint32_t)linker->encoded->symbols.count;
    linked->leader = linker->plan->leader;
    linked->stats = linker->encoded->stats;
    linked->devices = calloc(linked->device_count + 1, sizeof *linked->devices);
    linked->queues = calloc(linked->queue_count + 1, sizeof *linked->queues);
    linked->touched = calloc(instances, sizeof *linked->touched);
    linked->signal_epochs = calloc(instances, sizeof *linked->signal_epochs);
    linked->variables = calloc(linked->variable_count + 1, sizeof *linked->variables);
    linked->table = calloc(linked->table_count + 1, sizeof *linked->table);
    if (!linked->devices || !linked->queues || !linked->touched || !linked->signal_epochs ||
        !linked->variables || !linked->table)
        return no_memory(linker);
    linked->signal_epoch = linked->users_epoch = UINT64_MAX; /* nothing is known yet */
    memset(linked->signal_epochs, 0xff, instances * sizeof *linked->signal_epochs);
    return 0;
}

/* The graph's blocks stay as long as the linked graph does. */
static int blocks_hold(struct linker *linker)
{
    struct bw_linked_graph *linked = linker->linked;
    struct bw_graph *graph = linker->plan->graph;
    if (bw_vec_reserve(&linked->held, graph->held.count + linker->plan->staging.count))
        return no_memory(linker);
    for (size_t i = 0; i < graph->held.count; i++) {
        bw_block_hold(graph->held.data[i]);
        linked->held.data[linked->held.count++] = graph->held.data[i];
    }
    for (size_t i = 0; i < linker->plan->staging.count; i++)
        linked->held.data[linked->held.count++] = linker->plan->staging.data[i].block;
    linker->plan->staging.count = 0; /* their references moved */
    return 0;
}

static void queues_fill(struct linker *linker)
{
    struct bw_linked_graph *linked = linker->linked;
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        const struct bw_plan_queue *planned = &linker->plan->queues.data[i];
        const struct bw_encoded_queue *encoded = &linker->encoded->queues[i];
        linked->queues[i] = (struct bw_linked_queue){.hcq = planned->hcq,
                                                     .device = planned->device,
                                                     .signal_count = planned->signal_count,
                                                     .prologue = encoded->prologue,
                                                     .epilogue = encoded->epilogue,
                                                     .root = planned->root,
                                                     .follows = encoded->follows,
                                                     .label = encoded->label,
                                                     .base_slot = BW_PLAN_NONE};
        if (planned->signal_count)
            linked->executing |= 1ull << planned->hcq->owner->index;
    }
    for (uint32_t i = 0; i < linked->device_count; i++) {
        linked->devices[i].hcq = linker->plan->devices.data[i].hcq;
        linked->owners |= 1ull << linked->devices[i].hcq->index;
        linked->device_numbers[linked->devices[i].hcq->index] = (uint8_t)(i + 1);
        for (uint32_t producer = 0; producer < linked->device_count; producer++) {
            enum bw_wait_kind kind = bw_plan_wait_kind(linker->plan, i, producer);
            if (kind == BW_WAIT_DEVICE)
                linked->devices[i].can_wait |= 1ull << producer;
            else if (kind == BW_WAIT_SUBMISSION)
                linked->devices[i].can_follow |= 1ull << producer;
        }
        if (linked->devices[i].can_follow & ~(1ull << i))
            linked->followers |= 1ull << linked->devices[i].hcq->index;
    }
}

static void waited_add(struct bw_linked_graph *linked, struct bw_hcq_queue *queue)
{
    linked->waited[linked->waited_count++] = queue;
}

/* See struct bw_linked_graph. Every instance is free: its queues have passed the points that they stand at.
 */
static int waited_make(struct linker *linker)
{
    struct bw_linked_graph *linked = linker->linked;
    size_t most = linked->queue_count + (size_t)linked->device_count * BW_HCQ_QUEUES_MAX;
    linked->waited = calloc(most + 1, sizeof *linked->waited);
    linked->done = calloc(linked->instance_count * most + 1, sizeof *linked->done);
    if (!linked->waited || !linked->done)
        return no_memory(linker);
    for (uint32_t i = 0; i < linked->queue_count; i++)
        waited_add(linked, linked->queues[i].signal_count ? linked->queues[i].hcq : NULL);
    for (uint32_t i = 0; i < linked->device_count; i++) {
        struct bw_hcq_device *hcq = linked->devices[i].hcq;
        for (uint32_t k = 0; k < hcq->queue_count && linked->devices[i].can_follow; k++)
            waited_add(linked, &hcq->queues[k]);
    }
    for (uint32_t i = 0; i < linked->instance_count * linked->waited_count; i++) {
        const struct bw_hcq_queue *queue = linked->waited[i % linked->waited_count];
        if (queue)
            linked->done[i] = bw_hcq_queue_now(queue);
    }
    return 0;
}

static uint64_t part_words(uint64_t words)
{
    return bw_align_up(words, PART_ALIGN_WORDS);
}

/* Whether the argument blocks of each instance lie in one window of 4 GiB, as encode.c promised. */
static bool arguments_share_high(const struct bw_linked_graph *linked, const struct bw_linked_device *device,
                                 uint64_t argument_words)
{
    for (uint32_t i = 0; i < linked->instance_count && argument_words; i++) {
        uint64_t begin = device->memory->memory.address +
                         (i * device->stride_words + device->argument_word) * sizeof(uint32_t);
        if (begin >> 32 != (begin + argument_words * sizeof(uint32_t) - 1) >> 32)
            return false;
    }
    return true;
}

/* One allocation for all instances; another one when that lies badly, which few do. */
static int device_memory_make(struct linker *linker, struct bw_linked_device *device, uint64_t argument_words)
{
    struct bw_block *bad[PLACE_TRIES];
    uint64_t bytes = device->stride_words * sizeof(uint32_t) * linker->linked->instance_count;
    uint32_t tries = 0;
    int rc;
    do {
        rc = bw_block_create(device->hcq, bytes, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &device->memory,
                             linker->err);
        if (!rc && !arguments_share_high(linker->linked, device, argument_words)) {
            bad[tries++] = device->memory;
            device->memory = NULL;
        }
    } while (!rc && !device->memory && tries < PLACE_TRIES);
    if (!rc && !device->memory)
        rc = bw_fail(linker->err, -ENOMEM, "graph", "%llu bytes of argument blocks in one 4 GiB of addresses",
                     (unsigned long long)(argument_words * sizeof(uint32_t)));
    while (tries)
        bw_block_release(bad[--tries]);
    return rc;
}

/* Lays an instance out: the queues' commands, argument blocks, timestamps; then makes all instances. */
static int device_place(struct linker *linker, uint32_t number)
{
    struct bw_linked_graph *linked = linker->linked;
    struct bw_linked_device *device = &linked->devices[number];
    const struct bw_encoded_device *encoded = &linker->encoded->devices[number];
    for (uint32_t i = 0; i < linked->queue_count; i++) {
        if (linked->queues[i].device != number)
            continue;
        linked->queues[i].word = device->stride_words;
        device->stride_words += part_words(linker->encoded->queues[i].commands.count);
    }
    if (!device->stride_words)
        return 0;
    device->argument_word = device->stride_words;
    device->stamp_word = device->argument_word + part_words(encoded->arguments.count);
    device->stride_words = device->stamp_word + part_words(encoded->stamp_count * 2ull);
    int rc = device_memory_make(linker, device, encoded->arguments.count);
    if (rc)
        return rc;
    device->words = bw_block_map(device->memory);
    device->address = device->memory->memory.address;
    return device->words ? 0
                         : bw_fail(linker->err, -ENOTSUP, "graph", "command memory of %s has no CPU view",
                                   device->hcq->device->info.name);
}

static void patch_store(uint32_t *words, const struct bw_patch *patch, uint64_t value)
{
    uint64_t bits = (value + patch->addend) >> patch->shift;
    words[patch->word] |= (uint32_t)bits & patch->mask;
    if (patch->wide)
        words[patch->word + 1] |= (uint32_t)(bits >> 32);
}

/* Resolves what is the same for every instance, in the encoder's own words. */
static int image_resolve(struct linker *linker, struct bw_encoder *image, struct bw_hcq_device *hcq)
{
    for (uint32_t i = 0; i < image->patch_count; i++) {
        const struct bw_patch *patch = &image->patches[i];
        const struct bw_symbol *symbol = &linker->encoded->symbols.data[patch->symbol];
        uint64_t address;
        assert(patch->word + (patch->wide ? 1u : 0u) < image->count);
        assert(!patch->wide || patch->mask == UINT32_MAX);
        if (symbol->kind != BW_SYMBOL_BLOCK)
            continue;
        int rc = bw_block_reach(symbol->block, hcq, &address, linker->err);
        if (rc)
            return rc;
        patch_store(image->words, patch, address);
    }
    return 0;
}

/* Copies the image into every instance and resolves what differs between them. */
static void image_copy(struct linker *linker, const struct bw_encoder *image, struct bw_linked_device *device,
                       uint64_t word)
{
    for (uint32_t instance = 0; instance < linker->linked->instance_count; instance++) {
        uint64_t start = instance * device->stride_words;
        uint32_t *words = device->words + start + word;
        if (image->count)
            memcpy(words, image->words, image->count * sizeof *words);
        for (uint32_t i = 0; i < image->patch_count; i++) {
            const struct bw_patch *patch = &image->patches[i];
            enum bw_symbol_kind kind = linker->encoded->symbols.data[patch->symbol].kind;
            if (kind == BW_SYMBOL_ARGUMENTS)
                patch_store(words, patch, device->address + (start + device->argument_word) * sizeof *words);
            else if (kind == BW_SYMBOL_STAMPS)
                patch_store(words, patch, device->address + (start + device->stamp_word) * sizeof *words);
        }
    }
}

static int image_link(struct linker *linker, struct bw_encoder *image, uint32_t number, uint64_t word)
{
    struct bw_linked_device *device = &linker->linked->devices[number];
    int rc = image_resolve(linker, image, device->hcq);
    if (!rc)
        image_copy(linker, image, device, word);
    return rc;
}

static int images_link(struct linker *linker)
{
    struct bw_linked_graph *linked = linker->linked;
    int rc = 0;
    for (uint32_t i = 0; i < linked->queue_count && !rc; i++) {
        if (linked->queues[i].signal_count)
            rc = image_link(linker, &linker->encoded->queues[i].commands, linked->queues[i].device,
                            linked->queues[i].word);
    }
    for (uint32_t i = 0; i < linked->device_count && !rc; i++) {
        if (linked->devices[i].memory)
            rc = image_link(linker, &linker->encoded->devices[i].arguments, i,
                            linked->devices[i].argument_word);
    }
    return rc;
}

/* Where the replay puts what it knows. The table is indexed by symbol. */
static int slots_find(struct linker *linker)
{
    struct bw_linked_graph *linked = linker->linked;
    for (uint32_t i = 0; i < linked->variable_count; i++)
        linked->variables[i] = (struct bw_linked_variable){BW_PLAN_NONE, false, UINT32_MAX};
    for (uint32_t slot = 0; slot < linked->table_count; slot++) {
        const struct bw_symbol *symbol = &linker->encoded->symbols.data[slot];
        struct bw_hcq_queue *hcq = NULL;
        if (symbol->kind == BW_SYMBOL_SIGNAL || symbol->kind == BW_SYMBOL_PRECEDING)
            hcq = &linked->devices[symbol->number / BW_HCQ_QUEUES_MAX]
                       .hcq->queues[symbol->number % BW_HCQ_QUEUES_MAX];
        struct bw_linked_signal signal = {slot, symbol->device, hcq};
        struct bw_linked_preceding preceding = {slot, hcq};
        int rc = 0;
        if (symbol->kind == BW_SYMBOL_VARIABLE)
            linked->variables[symbol->number].slot = slot;
        else if (symbol->kind == BW_SYMBOL_BASE)
            linked->queues[symbol->number].base_slot = slot;
        else if (symbol->kind == BW_SYMBOL_PRECEDING)
            rc = bw_vec_push(&linked->preceding, preceding);
        else if (symbol->kind == BW_SYMBOL_SIGNAL)
            rc = bw_vec_push(&linked->signals, signal);
        if (rc)
            return no_memory(linker);
    }
    return 0;
}

static void dimensions_note(struct linker *linker)
{
    const struct bw_graph *graph = linker->plan->graph;
    for (size_t i = 0; i < graph->calls.count; i++) {
        const struct bw_launch *launch = &graph->calls.data[i].launch;
        for (int k = 0; graph->calls.data[i].kernel && k < 3; k++) {
            if (!launch->group_count[k].is_variable)
                continue;
            struct bw_linked_variable *variable = &linker->linked->variables[launch->group_count[k].value];
            uint32_t value_max = UINT32_MAX / launch->group_size[k];
            variable->is_dimension = true;
            variable->value_max = value_max < variable->value_max ? value_max : variable->value_max;
        }
    }
}

static int link_all(struct linker *linker, uint32_t instances)
{
    struct bw_linked_graph *linked = linker->linked;
    int rc = arrays_make(linker, instances);
    if (!rc)
        rc = blocks_hold(linker);
    if (rc)
        return rc;
    queues_fill(linker);
    rc = waited_make(linker);
    for (uint32_t i = 0; i < linked->device_count && !rc; i++)
        rc = device_place(linker, i);
    if (!rc)
        rc = images_link(linker);
    if (!rc)
        rc = slots_find(linker);
    if (!rc && bw_scatter_make(linked, linker->encoded))
        rc = no_memory(linker);
    if (!rc)
        rc = bw_inputs_make(&linked->inputs, linker->plan, linker->encoded, linker->err);
    if (!rc)
        rc = bw_profile_make(linked, linker->plan, linker->encoded, linker->err);
    if (rc)
        return rc;
    dimensions_note(linker);
    bw_losses_register(linked);
    bw_hcq_turn_take(linked->ctx);
    (void)bw_follows_make(linked, NULL); /* the replay that needs it tries again, and says what fails */
    bw_hcq_turn_give(linked->ctx);
    return 0;
}

static int options_read(const struct bw_link_options *given, struct bw_link_options *options,
                        struct bw_err *err)
{
    *options = (struct bw_link_options){0};
    if (given) {
        if (given->size < offsetof(struct bw_link_options, instances) || given->size > sizeof *given)
            return bw_fail(err, -EINVAL, "graph", "size of struct bw_link_options: %llu",
                           (unsigned long long)given->size);
        memcpy(options, given, given->size);
    }
    if (!options->instances)
        options->instances = BW_LINK_INSTANCES_DEFAULT;
    if (options->instances > BW_LINK_INSTANCES_MAX)
        return bw_fail(err, -EINVAL, "graph", "%u instances, at most %d", options->instances,
                       BW_LINK_INSTANCES_MAX);
    return 0;
}

int bw_graph_link(struct bw_graph *graph, const struct bw_link_options *given, struct bw_linked_graph **out,
                  struct bw_err *err)
{
    struct bw_link_options options;
    struct bw_plan plan;
    struct bw_encoded encoded;
    struct bw_err local;
    err = err ? err : &local;
    *err = (struct bw_err){0};
    int rc = bw_ctx_forked(graph->ctx) ? bw_fail(err, -ECHILD, "graph", "context made before fork")
                                       : options_read(given, &options, err);
    if (!rc)
        rc = bw_plan_make(graph, options.profile, &plan, err);
    if (rc)
        return rc;
    struct bw_linked_graph *linked = calloc(1, sizeof *linked);
    rc = linked ? bw_plan_encode(&plan, &encoded, err) : bw_fail(err, -ENOMEM, "graph", "linked graph");
    if (!rc) {
        struct linker linker = {linked, &plan, &encoded, err};
        rc = link_all(&linker, options.instances);
        bw_encoded_free(&plan, &encoded);
    }
    bw_plan_free(&plan);
    if (rc) {
        if (!err->code) /* an encoder of a driver that says only -ENOMEM */
            bw_fail(err, rc, "graph", "linking %zu calls", graph->calls.count);
        bw_linked_graph_destroy(linked);
        return rc;
    }
    *out = linked;
    return 0;
}

void bw_linked_graph_destroy(struct bw_linked_graph *linked)
{
    if (!linked)
        return;
    if (linked->replay_count && !bw_ctx_forked(linked->ctx))
        (void)bw_linked_graph_wait(linked, linked->replay_count,
                                   NULL); /* a failed device: its memory retires when it recovers */
    bw_losses_unregister(linked);
    for (uint32_t i = 0; linked->devices && i < linked->device_count; i++) {
        bw_block_release(linked->devices[i].memory);
        bw_scatter_free(&linked->devices[i]);
    }
    for (size_t i = 0; i < linked->held.count; i++)
        bw_block_release(linked->held.data[i]);
    bw_vec_free(&linked->held);
    bw_vec_free(&linked->steps);
    bw_vec_free(&linked->signals);
    bw_vec_free(&linked->preceding);
    bw_inputs_free(&linked->inputs);
    bw_profile_free(linked);
    free(linked->devices);
    free(linked->queues);
    free(linked->waited);
    free(linked->done);
    free(linked->touched);
    free(linked->signal_epochs);
    free(linked->variables);
    free(linked->table);
    free(linked);
}

void bw_linked_graph_stats(const struct bw_linked_graph *linked, struct bw_graph_stats *stats)
{
    *stats = linked->stats;
}
