#ifndef BW_MOCK_ENGINE_AQL_H
#define BW_MOCK_ENGINE_AQL_H

#include "mock/engine/queue.h"

struct bw_mock_aql {
    struct bw_mock_queue *queue;
    uint32_t words[16];
};

/* Runs a kernel dispatch packet. STOPPED with text in why: hardware would refuse the packet. */
enum bw_mock_queue_progress bw_mock_aql_dispatch(struct bw_mock_aql *packet, char *why, size_t why_size);

#endif
