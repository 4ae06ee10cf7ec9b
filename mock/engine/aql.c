#include "mock/engine/queue.h"

enum bw_mock_queue_progress bw_mock_aql_step(struct bw_mock_queue *queue)
{
    return bw_mock_queue_fail(queue, "AQL packets are not consumed yet");
}
