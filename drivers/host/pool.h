/* Threads that share the workgroups of one launch. One launch at a time per pool. */
#ifndef BW_DRIVERS_HOST_POOL_H
#define BW_DRIVERS_HOST_POOL_H

#include <stdint.h>

#include "drivers/host/object.h"

struct bw_host_pool;

struct bw_host_launch {
    const struct bw_host_kernel *kernel;
    const void *argument_block;
    uint32_t group_count[3];
};

/* helper_count threads beside the caller of run; 0 is fine. progress is counted up as groups retire. */
int bw_host_pool_create(struct bw_sys *sys, uint32_t helper_count, uint64_t *progress,
                        struct bw_host_pool **pool, struct bw_err *err);
/* Ends the threads; they are idle, since nobody runs. */
void bw_host_pool_destroy(struct bw_host_pool *pool);
/* Runs every group once and returns when all have. */
void bw_host_pool_run(struct bw_host_pool *pool, const struct bw_host_launch *launch);

#endif
