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
    /* Operations of a queue's first command buffer; each next one takes twice as many, so that they are few.
     * The first ones run while the host still patches the others. It patches 256 in 3 us, about what a
     * doorbell takes to start a kernel: with smaller ones a queue would start no sooner. */
    BATCH_FIRST = 256,
    /* Room for one operation before a command buffer is closed: more than any family's kernel or copy with
     * signal and stamps; and for each wait. */
    OPERATION_WORDS = 256,
    WAIT_WORDS = 16,
};

struct coder {
    struct bw_plan *plan;
    struct bw_encoded *encoded;
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

static const struct bw_device *device_of(const struct coder *coder, uint32_t queue)
{
    return queue_at(coder, queue)->hcq->owner->device;
}

static const struct bw_driver_ops *ops_of(const struct coder *coder, uint32_t queue)
{
    return device_of(coder, queue)->ops;
}

static void words_align(struct bw_encoder *encoder, uint32_t words)
{
    while (encoder->count % words && !encoder->failed)
        bw_encoder_word(encoder, 0);
}

static int wait_encode(struct coder *coder, uint32_t queue, uint32_t producer, struct bw_operand value)
{
    struct bw_operand address;
    int rc = operand_of(coder, BW_SYMBOL_SIGNAL, producer, queue_at(coder, queue)->device, 0, &address);
    return rc ? rc
              : ops_of(coder, queue)
                    ->encode_wait(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue), address,
                                  value);
}

/* As symbols number it. */
static uint32_t queue_symbol(const struct coder *coder, uint32_t queue)
{
    return bw_symbol_queue(queue_at(coder, queue)->device, queue_at(coder, queue)->hcq->number);
}

/* For signal `number` that a queue of the plan writes in this replay. */
static int signal_wait_encode(struct coder *coder, uint32_t queue, uint32_t producer, uint32_t number)
{
    struct bw_operand value;
    int rc = operand_of(coder, BW_SYMBOL_BASE, producer, 0, number, &value);
    return rc ? rc : wait_encode(coder, queue, queue_symbol(coder, producer), value);
}

static int signal_write_encode(struct coder *coder, uint32_t queue, uint32_t number, bool interrupt)
{
    struct bw_operand address, value;
    int rc = operand_of(coder, BW_SYMBOL_SIGNAL, queue_symbol(coder, queue), queue_at(coder, queue)->device,
                        0, &address);
    if (!rc)
        rc = operand_of(coder, BW_SYMBOL_BASE, queue, 0, number, &value);
    return rc ? rc
              : ops_of(coder, queue)
                    ->encode_signal(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue), address,
                                    value, interrupt);
}

static int signal_encode(struct coder *coder, const struct bw_operation *operation)
{
    coder->encoded->stats.signals++;
    return signal_write_encode(coder, operation->queue, operation->signal_number, operation->host_signalled);
}

static int barrier_encode(struct coder *coder, uint32_t queue, uint32_t flags)
{
    return ops_of(coder, queue)
        ->encode_barrier(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue), flags);
}

static void begin_encode(struct coder *coder, uint32_t queue)
{
    words_align(commands_of(coder, queue), COMMAND_ALIGN_WORDS);
    if (ops_of(coder, queue)->encode_begin)
        ops_of(coder, queue)->encode_begin(queue_at(coder, queue)->hcq->queue, commands_of(coder, queue));
}

static int segment_open(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    if (queue->open)
        return 0;
    begin_encode(coder, number);
    struct bw_step step = {.queue = number, .word = queue->commands.count};
    if (bw_vec_push(&coder->encoded->steps, step))
        return no_memory(coder);
    queue->open = (uint32_t)coder->encoded->steps.count;
    queue->batch_count = 0;
    queue->batch_max = queue->batch_max ? queue->batch_max * 2 : BATCH_FIRST;
    return 0;
}

static int end_encode(struct coder *coder, uint32_t number, struct bw_step *step)
{
    struct bw_encoder *commands = commands_of(coder, number);
    int rc = ops_of(coder, number)->encode_end(queue_at(coder, number)->hcq->queue, commands);
    if (rc || commands->failed || commands->count > WORDS_MAX)
        return no_memory(coder);
    step->word_count = commands->count - step->word;
    uint32_t most = device_of(coder, number)->caps.command_words_max;
    assert(!most || step->word_count <= most);
    (void)most;
    return 0;
}

static int segment_close(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    if (!queue->open)
        return 0;
    struct bw_step *step = &coder->encoded->steps.data[queue->open - 1];
    queue->open = 0;
    int rc = end_encode(coder, number, step);
    assert(rc || step->word_count > 0);
    return rc;
}

static int segments_close(struct coder *coder)
{
    int rc = 0;
    for (uint32_t queue = 0; queue < coder->plan->queues.count && !rc; queue++)
        rc = segment_close(coder, queue);
    return rc;
}

/* Closes the queue's command buffer when so many more words do not fit what one may hold. */
static int segment_room(struct coder *coder, uint32_t number, uint32_t words)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    uint32_t most = device_of(coder, number)->caps.command_words_max;
    if (!queue->open || !most)
        return 0;
    uint32_t used = queue->commands.count - coder->encoded->steps.data[queue->open - 1].word;
    return used + words > most ? segment_close(coder, number) : 0;
}

static int batch_count(struct coder *coder, uint32_t number)
{
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    return ++queue->batch_count >= queue->batch_max ? segment_close(coder, number) : 0;
}

/* The kernel is to give the queue's next command buffers to a ring when the other's are done: what is
 * under construction of both ends here. */
static int after_encode(struct coder *coder, uint32_t queue, const struct bw_wait *wait)
{
    struct bw_step step = {.kind = BW_STEP_AFTER, .queue = queue, .producer = wait->queue};
    int rc = segment_close(coder, wait->queue);
    if (!rc)
        rc = segment_close(coder, queue);
    if (!rc && bw_vec_push(&coder->encoded->steps, step))
        rc = no_memory(coder);
    return rc;
}

/* The host waits for an operation: everything so far has to be on its way first. */
static int host_wait_encode(struct coder *coder, const struct bw_wait *wait)
{
    struct bw_step step = {.kind = BW_STEP_HOST_WAIT,
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
        if (waits[i].kind == BW_WAIT_HOST)
            rc = host_wait_encode(coder, &waits[i]);
    }
    for (uint32_t i = 0; i < operation->wait_count && !rc; i++) {
        if (waits[i].kind == BW_WAIT_SUBMISSION)
            rc = after_encode(coder, operation->queue, &waits[i]);
    }
    if (!rc)
        rc = segment_room(coder, operation->queue, OPERATION_WORDS + WAIT_WORDS * operation->wait_count);
    if (!rc)
        rc = segment_open(coder, operation->queue);
    for (uint32_t i = 0; i < operation->wait_count && !rc; i++) {
        const struct bw_operation *producer = &coder->plan->operations.data[waits[i].operation];
        if (waits[i].kind == BW_WAIT_DEVICE)
            rc = signal_wait_encode(coder, operation->queue, waits[i].queue, producer->signal_number);
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
static int block_encode(struct coder *coder, const struct bw_call *call, uint32_t device, uint32_t step,
                        struct bw_dispatch *dispatch)
{
    struct bw_encoder *block = &coder->encoded->devices[device].arguments;
    words_align(block, ARGUMENT_ALIGN_WORDS);
    uint32_t block_word = block->count;
    struct bw_argument_run run = {block->patch_count, step};
    if (bw_vec_push(&coder->encoded->devices[device].runs, run))
        return no_memory(coder);
    int rc = operand_of(coder, BW_SYMBOL_ARGUMENTS, 0, device, (uint64_t)block_word * sizeof(uint32_t),
                        &dispatch->argument_block);
    dispatch->argument_block.shares_high = true; /* link.c sees to it */
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
        rc = block_encode(coder, call, queue->device, coder->encoded->queues[operation->queue].open - 1,
                          &dispatch);
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
        rc = segment_room(coder, operation->queue, OPERATION_WORDS);
        if (!rc)
            rc = segment_open(coder, operation->queue);
        if (rc)
            return rc;
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
    if (coder->plan->profile) {
        struct bw_encoded_stamp stamps = {operation->queue, stamp};
        device->stamp_count += 2;
        rc = bw_vec_push(&coder->encoded->stamps, stamps) ? no_memory(coder)
                                                          : stamp_encode(coder, operation, stamp);
    }
    if (!rc)
        rc = call->kernel ? kernel_encode(coder, operation, call) : copy_encode(coder, operation);
    if (!rc && coder->plan->profile)
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
    if (!rc)
        rc = batch_count(coder, operation->queue);
    return !rc && commands_of(coder, operation->queue)->failed ? no_memory(coder) : rc;
}

/* Waits for what the queues of a device were given before this replay; not for the own one, which is in
 * order. */
static int preceding_encode(struct coder *coder, uint32_t number, uint32_t device)
{
    const struct bw_plan_queue *queue = queue_at(coder, number);
    const struct bw_hcq_device *producer = coder->plan->devices.data[device].hcq;
    int rc = 0;
    for (uint32_t i = 0; i < producer->queue_count && !rc; i++) {
        struct bw_operand value;
        if (&producer->queues[i] == queue->hcq)
            continue;
        rc = operand_of(coder, BW_SYMBOL_PRECEDING, bw_symbol_queue(device, i), 0, 0, &value);
        if (!rc)
            rc = wait_encode(coder, number, bw_symbol_queue(device, i), value);
    }
    return rc;
}

/* What orders a root queue after earlier work: by itself, or through the leader. */
static int order_encode(struct coder *coder, uint32_t number)
{
    const struct bw_plan *plan = coder->plan;
    uint32_t device = queue_at(coder, number)->device;
    if (coder->encoded->queues[number].follows)
        return signal_wait_encode(coder, number, plan->leader, 1);
    int rc = 0;
    for (uint32_t producer = 0; producer < plan->devices.count && !rc; producer++) {
        if (bw_plan_wait_kind(plan, device, producer) == BW_WAIT_DEVICE)
            rc = preceding_encode(coder, number, producer);
    }
    if (!rc && number == plan->leader)
        rc = signal_write_encode(coder, number, 1, false);
    return rc;
}

/* What a replay submits first when it must: instruction caches are stale, or another queue is not done with
 * earlier work. Waits are for points before this replay, or for the leader, which waits for such points: so
 * prologues cannot wait for each other crosswise. */
static int prologue_encode(struct coder *coder, uint32_t number)
{
    const struct bw_plan *plan = coder->plan;
    const struct bw_plan_queue *planned = queue_at(coder, number);
    struct bw_encoded_queue *queue = &coder->encoded->queues[number];
    queue->follows =
        planned->root && plan->leader != BW_PLAN_NONE && plan->leader != number &&
        bw_plan_wait_kind(plan, planned->device, queue_at(coder, plan->leader)->device) == BW_WAIT_DEVICE;
    begin_encode(coder, number);
    queue->prologue.queue = number;
    queue->prologue.word = queue->commands.count;
    int rc = barrier_encode(coder, number, BW_BARRIER_EXECUTION | BW_BARRIER_CODE);
    if (!rc && planned->root)
        rc = order_encode(coder, number);
    return rc ? rc : end_encode(coder, number, &queue->prologue);
}

/* Ends a replay on a queue that was given only part of it. */
static int epilogue_encode(struct coder *coder, uint32_t number)
{
    struct bw_step *epilogue = &coder->encoded->queues[number].epilogue;
    begin_encode(coder, number);
    *epilogue = (struct bw_step){.queue = number, .word = commands_of(coder, number)->count, .flush = true};
    int rc = signal_write_encode(coder, number, queue_at(coder, number)->signal_count, true);
    return rc ? rc : end_encode(coder, number, epilogue);
}

/* Telling a device costs a store where it has user-space doorbells: at once, so that it runs the first
 * command buffers while the host writes the others. Elsewhere it costs a system call: once, before
 * somebody waits and at the end. A prologue is told with its queue's first command buffer unless somebody
 * waits before that. */
static int flushes_place(struct coder *coder)
{
    bool *pending = calloc(coder->plan->queues.count + 1, sizeof *pending);
    if (!pending)
        return no_memory(coder);
    for (size_t i = coder->encoded->steps.count; i-- > 0;) {
        struct bw_step *step = &coder->encoded->steps.data[i];
        if (step->kind == BW_STEP_HOST_WAIT)
            memset(pending, 0, coder->plan->queues.count * sizeof *pending);
        else if (step->kind == BW_STEP_AFTER)
            pending[step->queue] = pending[step->producer] = false;
        if (step->kind != BW_STEP_SUBMIT)
            continue;
        step->flush = !pending[step->queue] || device_of(coder, step->queue)->caps.user_doorbell;
        pending[step->queue] = true;
    }
    for (uint32_t i = 0; i < coder->plan->queues.count; i++)
        coder->encoded->queues[i].prologue.flush = !pending[i];
    free(pending);
    return 0;
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
        if (step->kind != BW_STEP_SUBMIT)
            continue;
        stats->command_buffers++;
        stats->doorbells += step->flush || !ops_of(coder, step->queue)->flush;
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
    if (!rc)
        rc = flushes_place(coder);
    if (rc)
        return rc;
    labels_make(coder);
    stats_fill(coder); /* prologues and epilogues are the exception: not counted */
    for (uint32_t queue = 0; queue < plan->queues.count && !rc; queue++) {
        if (plan->queues.data[queue].operation_count == 0)
            continue;
        rc = prologue_encode(coder, queue);
        if (!rc)
            rc = epilogue_encode(coder, queue);
    }
    return rc;
}

int bw_plan_encode(struct bw_plan *plan, struct bw_encoded *encoded, struct bw_err *err)
{
    struct coder coder = {plan, encoded, err};
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
    for (size_t i = 0; encoded->devices && i < plan->devices.count; i++) {
        bw_encoder_free(&encoded->devices[i].arguments);
        bw_vec_free(&encoded->devices[i].runs);
    }
    free(encoded->queues);
    free(encoded->devices);
    bw_vec_free(&encoded->symbols);
    bw_vec_free(&encoded->steps);
    bw_vec_free(&encoded->stamps);
    bw_map_free(&encoded->symbol_numbers);
    *encoded = (struct bw_encoded){0};
}
