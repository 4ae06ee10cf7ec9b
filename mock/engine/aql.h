#ifndef BW_MOCK_ENGINE_AQL_H
#define BW_MOCK_ENGINE_AQL_H

#include "mock/engine/queue.h"

enum {
    BW_MOCK_AQL_WORDS = 16,
    /* packet types */
    BW_MOCK_AQL_VENDOR = 0,
    BW_MOCK_AQL_INVALID = 1,
    BW_MOCK_AQL_DISPATCH = 2,
    BW_MOCK_AQL_BARRIER_AND = 3,
    BW_MOCK_AQL_BARRIER_OR = 5,
    /* formats of vendor packets */
    BW_MOCK_AQL_FORMAT_PM4_IB = 1,
    BW_MOCK_AQL_FORMAT_BARRIER_VALUE = 2,
};

struct bw_mock_aql_kind {
    const char *name;
    uint8_t type, format;
    uint32_t reserved[BW_MOCK_AQL_WORDS];
};

/* format counts for vendor packets only. NULL: there is none. */
const struct bw_mock_aql_kind *bw_mock_aql_find(uint32_t type, uint32_t format);
/* The i-th kind, NULL past the end. */
const struct bw_mock_aql_kind *bw_mock_aql_at(size_t index);

struct bw_mock_aql {
    struct bw_mock_queue *queue;
    uint32_t words[BW_MOCK_AQL_WORDS];
};

/* Runs a kernel dispatch packet. STOPPED with text in why: hardware would refuse the packet. */
enum bw_mock_queue_progress bw_mock_aql_dispatch(struct bw_mock_aql *packet, char *why, size_t why_size);

#endif
