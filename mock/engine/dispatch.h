/* Running a kernel: checks that hardware's launcher makes, then the emulator, then what its end means for the
 * queue. */
#ifndef BW_MOCK_ENGINE_DISPATCH_H
#define BW_MOCK_ENGINE_DISPATCH_H

#include "mock/engine/queue.h"

/* What PM4 registers or an AQL packet say about a launch. */
struct bw_mock_launch {
    struct bw_isa_dispatch dispatch;
    uint32_t lds_blocks; /* COMPUTE_PGM_RSRC2.LDS_SIZE */
    uint32_t tmpring;    /* COMPUTE_TMPRING_SIZE */
};

/* Why hardware would not launch this, into text; false when it would. Completes the dispatch (LDS, scratch).
 */
bool bw_mock_launch_refused(const struct bw_mock_gpu *gpu, struct bw_mock_launch *launch, char *text,
                            size_t text_size);

/* Runs it to its end. MOVED: done. RUNNING: single-step mode, it goes on at the next call. BLOCKED: another
 * queue's kernel has the GPU; call again. STOPPED: it failed, or the queue is being destroyed. */
enum bw_mock_queue_progress bw_mock_launch_run(struct bw_mock_queue *queue, struct bw_mock_launch *launch);
/* Single-step mode: ends the kernel that the queue is at, if any. The caller holds step_lock. */
void bw_mock_launch_abandon(struct bw_mock_queue *queue);

#endif
