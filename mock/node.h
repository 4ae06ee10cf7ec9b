/* Memory policy of the mock machine's kernel: of threads, and of ranges of anonymous memory. Nothing is asked
 * of the host: where pages would lie is written down. machine.lock is held in all of these. */
#ifndef BW_MOCK_NODE_H
#define BW_MOCK_NODE_H

#include <stdint.h>

#include <bellwire/sys.h>

#include "base/vec.h"

struct bw_mock;

struct bw_mock_thread_policy {
    int thread;
    uint32_t node;
};

/* Pages that had not been touched when they got it. */
struct bw_mock_range_policy {
    uint64_t start, size;
    uint32_t node;
};

struct bw_mock_policies {
    BW_VEC(struct bw_mock_thread_policy) threads;
    BW_VEC(struct bw_mock_range_policy) ranges; /* in order of time: the last one counts */
};

/* What set_mempolicy, get_mempolicy and mbind come to. 0, 1 or -errno. */
int bw_mock_policy_call(struct bw_mock *machine, const struct bw_node_request *request);
/* Where pages that the calling thread allocates come from; 0, where it runs, without a policy. */
uint32_t bw_mock_policy_node(const struct bw_mock_policies *policies);
uint32_t bw_mock_policy_range_node(const struct bw_mock_policies *policies, uint64_t address);
/* Of memory that is no longer mapped. */
void bw_mock_policy_forget(struct bw_mock_policies *policies, uint64_t start, uint64_t size);
void bw_mock_policies_free(struct bw_mock_policies *policies);

#endif
