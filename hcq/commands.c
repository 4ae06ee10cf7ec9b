/* The command buffers of a linked graph, to be looked at. */
#include <assert.h>

#include "hcq/linked.h"

bool bw_linked_graph_command(const struct bw_linked_graph *linked, uint32_t index,
                             struct bw_linked_command *command)
{
    if (index >= linked->steps.count)
        return false;
    const struct bw_step *step = &linked->steps.data[index].step;
    const struct bw_linked_queue *queue = &linked->queues[step->queue];
    const struct bw_linked_device *device = &linked->devices[queue->device];
    assert(step->kind != BW_STEP_SUBMIT || device->words);
    *command = (struct bw_linked_command){.device = device->hcq->device,
                                          .queue_label = queue->hcq->label,
                                          .copy = queue->hcq->number >= device->hcq->compute_count,
                                          .kind = step->kind};
    if (step->kind == BW_STEP_AFTER) {
        const struct bw_hcq_queue *producer = linked->queues[step->producer].hcq;
        command->producer = producer->owner->device;
        command->producer_label = producer->label;
    }
    if (step->kind == BW_STEP_SUBMIT) {
        command->words = device->words + queue->word + step->word;
        command->word_count = step->word_count;
    }
    return true;
}
