/* Operations -> command words, argument blocks, and the order of submission. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/plan.h"

enum {
    COMMAND_ALIGN_WORDS =
        64, /* 256 bytes: where the strictest of our packets wants an indirect buffer to begin */
    ARGUMENT_ALIGN_WORDS = 16, /* 64 bytes: a block shares no cache line with another */
    WORDS_MAX = 1 << 28,       /* 1 GiB per instance and device */
};

struct coder {
    struct bw_plan *plan;
    struct bw_encoded *encoded;
    bool profile;
    struct bw_err *err;
};

static int no_memory(const struct coder *coder)
{
    return bw_fail(coder->err, -ENOMEM, "graph", "encoding %zu operations", coder->plan->operations.count);
}

/* The symbol's number. BW_SYMBOL_NONE means no memory here, which nothing else means. */
static uint32_t symbol_find(struct coder *coder, const struct bw_symbol *symbol)
{
    struct bw_encoded *encoded = coder->encoded;
    uint64_t low = symbol->block ? symbol->block->id : symbol->number, number;
    assert(low < 1ull << 52 && symbol->device < BW_HCQ_DEVICES_MAX);
    uint64_t key = (uint64_t)symbol->kind << 60 | (uint64_t)symbol->device << 52 | low;
    if (bw_map_get(&encoded->symbol_numbers, key, &number))
        return (uint32_t)number;
    number = encoded->symbols.count;
    if (bw_vec_push(&encoded->symbols, *symbol) || bw_map_set(&encoded->symbol_numbers, key, number))
        return BW_SYMBOL_NONE;
    return (uint32_t)number;
}

static int operand_of(struct coder *coder, enum bw_symbol_kind kind, uint32_t number, uint32_t device,
                      uint64_t addend, struct bw_operand *operand)
{
    struct bw_symbol symbol = {.kind = kind, .number = number, .device = device};
    *operand = bw_operand_symbol(symbol_find(coder, &symbol), addend);
    return operand->symbol == BW_SYMBOL_NONE ? no_memory(coder) : 0;
}

static int operand_of_place(struct coder *coder, const struct bw_place *place, uint32_t device,
                            struct bw_operand *operand)
{
    struct bw_symbol symbol = {.kind = place->block ? BW_SYMBOL_BLOCK : BW_SYMBOL_INPUT,
                               .block = place->block,
                               .number = place->block ? 0 : place->input,
                               .device = device};
    *operand = bw_operand_symbol(symbol_find(coder, &symbol), place->offset);
    return operand->symbol == BW_SYMBOL_NONE ? no_memory(coder) : 0;
}

static struct bw_plan_queue *queue_at(const struct coder *coder, uint32_t queue)
{
    return &coder->plan->queues.data[queue];
}

static struct bw_encoder *commands_of(const struct coder *coder, uint32_t queue)
{
    return &coder->encoded->queues[queue].commands;
}

static const struct bw_driver_ops *ops_of(const struct coder *coder, uint32_t queue)
{
    return queue_at(coder, queue)->hcq->owner->device->ops;
}

static void words_align(struct bw_encoder *encoder, uint32_t words)
{
    while (encoder->count % words && !encoder->failed)
        bw_encoder_word(encoder, 0);
}

static int wait_encode(struct coder *coder, uint32_t queue, uint32_t producer, enum bw_symbol_kind base,
                       uint64_t number)
{
    struct bw_operand address, value;
    int rc = operand_of(coder, BW_SYMBOL_SIGNAL, producer, queue_at(coder, queue)->device, 0, &address);
    if (!rc)
        rc = operand_of(coder, base, producer, 0, number, &value);
    return rc ? rc
              : ops_of(coder, queue)
                    ->encode_wait(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue), address,
                                  value);
}

static int signal_encode(struct coder *coder, const struct bw_operation *operation)
{
    struct bw_plan_queue *queue = queue_at(coder, operation->queue);
    struct bw_operand address, value;
    int rc = operand_of(coder, BW_SYMBOL_SIGNAL, operation->queue, queue->device, 0, &address);
    if (!rc)
        rc = operand_of(coder, BW_SYMBOL_BASE, operation->queue, 0, operation->signal_number, &value);
    coder->encoded->stats.signals++;
    return rc ? rc
              : ops_of(coder, operation->queue)
                    ->encode_signal(queue->hcq->queue, commands_of(coder, operation->queue), address, value,
                                    operation->host_signalled);
}

static int barrier_encode(struct coder *coder, uint32_t queue, uint32_t flags)
{
    return ops_of(coder, queue)
        ->encode_barrier(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue), flags);
}

/* A queue's first command buffer opens with a barrier: against what earlier replays left running, and for
 * what the host wrote. */
static int segment_open(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    if (queue->open)
        return 0;
    words_align(&queue->commands, COMMAND_ALIGN_WORDS);
    struct bw_step step = {.queue = number, .word = queue->commands.count};
    if (bw_vec_push(&coder->encoded->steps, step))
        return no_memory(coder);
    queue->open = (uint32_t)coder->encoded->steps.count;
    bool first = !queue->begun;
    queue->begun = true;
    return first ? barrier_encode(coder, number, BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE) : 0;
}

static int end_encode(struct coder *coder, uint32_t number, struct bw_step *step)
{
    struct bw_encoder *commands = commands_of(coder, number);
    int rc = ops_of(coder, number)->encode_end(queue_at(coder, number)->hcq->queue, commands);
    if (rc || commands->failed || commands->count > WORDS_MAX)
        return no_memory(coder);
    step->word_count = commands->count - step->word;
    assert(step->word_count > 0);
    return 0;
}

static int segment_close(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    if (!queue->open)
        return 0;
    struct bw_step *step = &coder->encoded->steps.data[queue->open - 1];
    queue->open = 0;
    return end_encode(coder, number, step);
}

static int segments_close(struct coder *coder)
{
    int rc = 0;
    for (uint32_t queue = 0; queue < coder->plan->queues.count && !rc; queue++)
        rc = segment_close(coder, queue);
    return rc;
}

/* The host waits for an operation: everything so far has to be on its way first. */
static int host_wait_encode(struct coder *coder, const struct bw_wait *wait)
{
    struct bw_step step = {.host_wait = true,
                           .queue = wait->queue,
                           .signal_number = coder->plan->operations.data[wait->operation].signal_number};
    int rc = segments_close(coder);
    if (!rc && bw_vec_push(&coder->encoded->steps, step))
        rc = no_memory(coder);
    return rc;
}

static int waits_encode(struct coder *coder, const struct bw_operation *operation)
{
    const struct bw_wait *waits = coder->plan->waits.data + operation->wait_begin;
    int rc = 0;
    for (uint32_t i = 0; i < operation->wait_count && !rc; i++) {
        if (waits[i].on_host)
            rc = host_wait_encode(coder, &waits[i]);
    }
    if (!rc)
        rc = segment_open(coder, operation->queue);
    for (uint32_t i = 0; i < operation->wait_count && !rc; i++) {
        const struct bw_operation *producer = &coder->plan->operations.data[waits[i].operation];
        if (!waits[i].on_host)
            rc =
                wait_encode(coder, operation->queue, waits[i].queue, BW_SYMBOL_BASE, producer->signal_number);
    }
    coder->encoded->stats.waits += operation->wait_count;
    return rc;
}

/* The value lies in the block in the argument's own size, little endian; blocks are words, values may be
 * bytes. */
static void value_store(struct bw_encoder *block, uint32_t block_word, const struct bw_argument_info *info,
                        uint64_t value)
{
    uint64_t offset = (uint64_t)block_word * sizeof(uint32_t) + info->offset;
    assert(offset + info->size_bytes <= (uint64_t)block->count * sizeof(uint32_t));
    memcpy((char *)block->words + offset, &value, info->size_bytes);
}

static int argument_encode(struct coder *coder, const struct bw_call *call, uint32_t index, uint32_t device,
                           uint32_t block_word)
{
    const struct bw_argument *argument = &call->launch.arguments[index];
    const struct bw_argument_info *info = &call->kernel->info.arguments[index];
    struct bw_encoder *block = &coder->encoded->devices[device].arguments;
    struct bw_operand operand;
    if (argument->source == BW_ARG_VALUE) {
        value_store(block, block_word, info, argument->value);
        return 0;
    }
    bool address = argument->source == BW_ARG_RANGE;
    int rc = address ? operand_of_place(coder, &call->places[index], device, &operand)
                     : operand_of(coder, BW_SYMBOL_VARIABLE, argument->variable, 0, 0, &operand);
    if (rc)
        return rc;
    assert(info->offset % sizeof(uint32_t) == 0);
    bw_encoder_patch(block, &(struct bw_patch){.word = block_word + info->offset / (uint32_t)sizeof(uint32_t),
                                               .symbol = operand.symbol,
                                               .addend = operand.addend,
                                               .wide = address,
                                               .mask = UINT32_MAX});
    return block->failed ? no_memory(coder) : 0;
}

/* Appends the argument block of the call and gives its address back. */
static int block_encode(struct coder *coder, const struct bw_call *call, uint32_t device,
                        struct bw_dispatch *dispatch)
{
    struct bw_encoder *block = &coder->encoded->devices[device].arguments;
    words_align(block, ARGUMENT_ALIGN_WORDS);
    uint32_t block_word = block->count;
    int rc = operand_of(coder, BW_SYMBOL_ARGUMENTS, 0, device, (uint64_t)block_word * sizeof(uint32_t),
                        &dispatch->argument_block);
    if (!rc)
        rc = call->device->ops->argument_block(call->kernel, dispatch, block, coder->err);
    if (rc)
        return rc;
    if (block->failed || block->count > WORDS_MAX)
        return no_memory(coder);
    assert(block->count - block_word == bw_div_up(call->kernel->info.argument_bytes, sizeof(uint32_t)));
    for (uint32_t i = 0; i < call->launch.argument_count && !rc; i++)
        rc = argument_encode(coder, call, i, device, block_word);
    return rc;
}

static int kernel_encode(struct coder *coder, const struct bw_operation *operation,
                         const struct bw_call *call)
{
    struct bw_plan_queue *queue = queue_at(coder, operation->queue);
    struct bw_dispatch dispatch = {.dynamic_lds_bytes = call->launch.dynamic_lds_bytes};
    int rc = 0;
    for (int i = 0; i < 3 && !rc; i++) {
        const struct bw_dimension *groups = &call->launch.group_count[i];
        dispatch.group_size[i] = call->launch.group_size[i];
        dispatch.group_count[i] = bw_operand_constant(groups->value);
        if (groups->is_variable)
            rc = operand_of(coder, BW_SYMBOL_VARIABLE, groups->value, 0, 0, &dispatch.group_count[i]);
    }
    if (!rc)
        rc = block_encode(coder, call, queue->device, &dispatch);
    return rc ? rc
              : call->device->ops->encode_kernel(queue->hcq->queue, commands_of(coder, operation->queue),
                                                 call->kernel, &dispatch, coder->err);
}

static int copy_encode(struct coder *coder, const struct bw_operation *operation)
{
    struct bw_plan_queue *queue = queue_at(coder, operation->queue);
    struct bw_operand target, source;
    int rc = operand_of_place(coder, &operation->target, queue->device, &target);
    if (!rc)
        rc = operand_of_place(coder, &operation->source, queue->device, &source);
    for (uint64_t left_bytes = operation->size_bytes; left_bytes && !rc;) {
        uint64_t done_bytes = 0;
        rc = ops_of(coder, operation->queue)
                 ->encode_copy(queue->hcq->queue, commands_of(coder, operation->queue), target, source,
                               left_bytes, &done_bytes);
        if (rc)
            return bw_fail(coder->err, rc, "graph", "call %u: copy of %llu bytes", operation->call,
                           (unsigned long long)left_bytes);
        assert(done_bytes > 0 && done_bytes <= left_bytes);
        target.addend += done_bytes;
        source.addend += done_bytes;
        left_bytes -= done_bytes;
    }
    return rc;
}

static int stamp_encode(struct coder *coder, const struct bw_operation *operation, uint32_t stamp)
{
    struct bw_plan_queue *queue = queue_at(coder, operation->queue);
    struct bw_operand address;
    int rc =
        operand_of(coder, BW_SYMBOL_STAMPS, 0, queue->device, (uint64_t)stamp * sizeof(uint64_t), &address);
    return rc ? rc
              : ops_of(coder, operation->queue)
                    ->encode_timestamp(queue->hcq->queue, commands_of(coder, operation->queue), address);
}

static int body_encode(struct coder *coder, const struct bw_operation *operation)
{
    const struct bw_call *call = &coder->plan->graph->calls.data[operation->call];
    struct bw_encoded_device *device = &coder->encoded->devices[queue_at(coder, operation->queue)->device];
    uint32_t stamp = device->stamp_count;
    int rc = 0;
    if (coder->profile) {
        struct bw_encoded_call stamped = {operation->call, operation->queue, stamp};
        device->stamp_count += 2;
        rc = bw_vec_push(&coder->encoded->stamped, stamped) ? no_memory(coder)
                                                            : stamp_encode(coder, operation, stamp);
    }
    if (!rc)
        rc = call->kernel ? kernel_encode(coder, operation, call) : copy_encode(coder, operation);
    if (!rc && coder->profile)
        rc = stamp_encode(coder, operation, stamp + 1);
    return rc;
}

static int operation_encode(struct coder *coder, const struct bw_operation *operation)
{
    int rc = waits_encode(coder, operation);
    if (!rc && operation->barrier)
        rc = barrier_encode(coder, operation->queue, operation->barrier);
    if (!rc)
        rc = body_encode(coder, operation);
    if (!rc && operation->signalled)
        rc = signal_encode(coder, operation);
    return !rc && commands_of(coder, operation->queue)->failed ? no_memory(coder) : rc;
}

/* What a replay submits first when it must: instruction caches are stale, or another queue is not done with
 * earlier work. Every wait is for points before this replay, so that prologues cannot wait for each other. */
static int prologue_encode(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    words_align(&queue->commands, COMMAND_ALIGN_WORDS);
    queue->prologue = (struct bw_step){.queue = number, .word = queue->commands.count};
    int rc = barrier_encode(coder, number, BW_BARRIER_EXECUTION | BW_BARRIER_CODE);
    for (uint32_t producer = 0; producer < coder->plan->queues.count && !rc; producer++) {
        if (producer != number && bw_plan_can_wait(coder->plan, number, producer))
            rc = wait_encode(coder, number, producer, BW_SYMBOL_PRECEDING, 0);
    }
    return rc ? rc : end_encode(coder, number, &queue->prologue);
}

static void labels_make(struct coder *coder)
{
    for (size_t i = 0; i < coder->plan->operations.count; i++) {
        const struct bw_operation *operation = &coder->plan->operations.data[i];
        const struct bw_call *call = &coder->plan->graph->calls.data[operation->call];
        struct bw_hcq_label *label = &coder->encoded->queues[operation->queue].label;
        uint32_t more = queue_at(coder, operation->queue)->operation_count - 1;
        if (operation->position != 1)
            continue;
        int length = snprintf(label->text, sizeof label->text, "%s%.60s", call->kernel ? "kernel " : "copy",
                              call->kernel ? call->kernel->info.name : "");
        if (more)
            snprintf(label->text + length, sizeof label->text - (size_t)length,
                     " or one of %u calls after it", more);
    }
}

static void stats_fill(struct coder *coder)
{
    struct bw_encoded *encoded = coder->encoded;
    struct bw_graph_stats *stats = &encoded->stats;
    stats->calls = (uint32_t)coder->plan->graph->calls.count;
    for (size_t i = 0; i < encoded->steps.count; i++) {
        const struct bw_step *step = &encoded->steps.data[i];
        if (step->host_wait)
            continue;
        stats->command_buffers++;
        stats->doorbells++;
        stats->dwords += step->word_count;
    }
    for (size_t i = 0; i < coder->plan->queues.count; i++) {
        stats->packets += encoded->queues[i].commands.packets;
        stats->cache_operations += encoded->queues[i].commands.cache_operations;
    }
}

static int plan_encode(struct coder *coder)
{
    struct bw_plan *plan = coder->plan;
    struct bw_encoded *encoded = coder->encoded;
    encoded->queues = calloc(plan->queues.count + 1, sizeof *encoded->queues);
    encoded->devices = calloc(plan->devices.count + 1, sizeof *encoded->devices);
    int rc = encoded->queues && encoded->devices ? 0 : no_memory(coder);
    for (size_t i = 0; i < plan->operations.count && !rc; i++)
        rc = operation_encode(coder, &plan->operations.data[i]);
    if (!rc)
        rc = segments_close(coder);
    if (rc)
        return rc;
    labels_make(coder);
    stats_fill(coder); /* prologues are the exception: not counted */
    for (uint32_t queue = 0; queue < plan->queues.count && !rc; queue++) {
        if (plan->queues.data[queue].operation_count)
            rc = prologue_encode(coder, queue);
    }
    return rc;
}

int bw_plan_encode(struct bw_plan *plan, bool profile, struct bw_encoded *encoded, struct bw_err *err)
{
    struct coder coder = {plan, encoded, profile, err};
    *encoded = (struct bw_encoded){0};
    int rc = plan_encode(&coder);
    if (rc)
        bw_encoded_free(plan, encoded);
    return rc;
}

void bw_encoded_free(struct bw_plan *plan, struct bw_encoded *encoded)
{
    for (size_t i = 0; encoded->queues && i < plan->queues.count; i++)
        bw_encoder_free(&encoded->queues[i].commands);
    for (size_t i = 0; encoded->devices && i < plan->devices.count; i++)
        bw_encoder_free(&encoded->devices[i].arguments);
    free(encoded->queues);
    free(encoded->devices);
    bw_vec_free(&encoded->symbols);
    bw_vec_free(&encoded->steps);
    bw_vec_free(&encoded->stamped);
    bw_map_free(&encoded->symbol_numbers);
    *encoded = (struct bw_encoded){0};
}
