#include "mock/engine/queue.h"

enum bw_mock_queue_progress bw_mock_sdma_step(struct bw_mock_queue *queue)
{
    return bw_mock_queue_fail(queue, "SDMA packets are not consumed yet");
}
