/* What a queue is at, in words: for whoever waits in vain. */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "mock/engine/queue.h"

/* The instruction at pc, or "". */
static void print_instruction(const struct bw_mock_queue *queue, uint64_t pc, struct bw_text *text)
{
    struct bw_mock_context *context = queue->context;
    const struct bw_isa *isa;
    uint64_t start, bytes;
    const void *code = bw_mock_space_resolve(&context->space, pc, BW_MOCK_EXECUTE, &start, &bytes);
    if (!code || bw_isa_find(context->gpu->chip->arch, &isa))
        return;
    bw_text_add(text, ": ");
    bw_isa_disassemble(isa, code, bytes, pc, text);
}

/* A kernel runs: where one of its groups stands, once it was seen to. */
static void look_at_kernel(struct bw_mock_queue *queue, struct bw_queue_view *view, struct bw_text *text)
{
    struct bw_isa_place place;
    if (!bw_isa_place_read(&queue->control, &place)) {
        bw_text_add(text, "a kernel runs");
        return;
    }
    int live = __builtin_popcount(place.live), waiting = __builtin_popcount(place.at_barrier);
    bw_text_add(text, "group (%u, %u, %u)", place.group[0], place.group[1], place.group[2]);
    if (place.wave == UINT32_MAX)
        return;
    view->pc = place.pc;
    bw_text_add(text, " wave %u at pc 0x%llx", place.wave, (unsigned long long)place.pc);
    print_instruction(queue, place.pc, text);
    if (waiting)
        bw_text_add(text, "; %d of %d waves at a barrier", waiting, live);
}

/* Nothing of what the doorbell announced is left, or the engine is between two packets. */
static void look_at_pointers(struct bw_mock_queue *queue, struct bw_text *text)
{
    struct bw_mock_violation violation;
    uint64_t written = 0, rung = atomic_load(&queue->doorbell->value) + (queue->type == BW_MOCK_QUEUE_AQL);
    if (bw_mock_space_read(&queue->context->space, queue->write_va, &written, sizeof written, &violation))
        return;
    if (written == rung)
        bw_text_add(text, "no work that its doorbell announced is left");
    else
        bw_text_add(text, "the write pointer in memory is 0x%llx, its doorbell said 0x%llx",
                    (unsigned long long)written, (unsigned long long)rung);
}

static void take_text(struct bw_mock_queue *queue, struct bw_queue_view *view, struct bw_text *text)
{
    pthread_mutex_lock(&queue->machine->error_lock);
    bw_text_add(text, "%s", queue->text);
    view->has_va = queue->faulted;
    view->va = queue->fault_va;
    view->pc = queue->fault_pc;
    view->entry_va = queue->fault_entry_va;
    pthread_mutex_unlock(&queue->machine->error_lock);
}

void bw_mock_queue_look(struct bw_mock_queue *queue, struct bw_queue_view *view)
{
    struct bw_text text = {0};
    uint32_t state = atomic_load(&queue->state);
    uint64_t entry_va = atomic_load(&queue->kernel.entry_va);
    bool runs = entry_va != 0, hung = atomic_load(&queue->hung);
    *view = (struct bw_queue_view){
        .progress = atomic_load(&queue->packets) + atomic_load(&queue->waves_retired) +
                    atomic_load(&queue->control.waves_retired),
        .entry_va = entry_va,
        .failed = state == BW_MOCK_QUEUE_FAILED,
        .waits = state == BW_MOCK_QUEUE_RUNS && !hung && !runs && atomic_load(&queue->waits),
    };
    bw_text_add(&text, "%s: ", queue->name);
    if (state == BW_MOCK_QUEUE_EVICTED)
        bw_text_add(&text, "stopped, since another queue of the process met a memory fault");
    else if (state == BW_MOCK_QUEUE_FAILED || hung || view->waits)
        take_text(queue, view, &text);
    else if (runs)
        look_at_kernel(queue, view, &text);
    else
        look_at_pointers(queue, &text);
    bw_text_fit(view->text, sizeof view->text, "%s", bw_text_string(&text));
    bw_text_free(&text);
}
