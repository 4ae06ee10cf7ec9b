/* What devices of this machine's threads share: waking who sleeps in wait_interrupt, plain memory, and what
 * becomes of it when a thread does not come back. */
#ifndef BW_DRIVERS_HOST_INTERRUPT_H
#define BW_DRIVERS_HOST_INTERRUPT_H

#include <pthread.h>

#include "base/vec.h"
#include "drivers/driver.h"

struct bw_host_interrupt {
    pthread_mutex_t lock;
    pthread_cond_t raised;
    uint32_t pending, waiters; /* atomic */
};

void bw_host_interrupt_init(struct bw_host_interrupt *interrupt);
void bw_host_interrupt_fini(struct bw_host_interrupt *interrupt);
void bw_host_interrupt_raise(struct bw_host_interrupt *interrupt);
/* Sleeps until one is raised, or was since the last wait. */
void bw_host_interrupt_wait(struct bw_host_interrupt *interrupt, uint64_t timeout_ns);

/* A thread in an endless kernel or read cannot be stopped: it keeps what it uses, and the last one frees it.
 */
struct bw_host_left {
    struct bw_sys *sys;
    uint32_t users; /* atomic: whoever opened the device, and each thread left behind */
    bool any;       /* a thread was: nothing is freed before the last of them ends */
    BW_VEC(struct bw_region) memory;
};

void bw_host_left_init(struct bw_host_left *left, struct bw_sys *sys);
/* Waits so long for the end of a thread (bw_host_left_end); false: it is left behind, a user of the device.
 * By whoever opened that and has not closed it yet. */
bool bw_host_left_wait(struct bw_host_left *left, uint32_t *ended, uint64_t step_ns, uint64_t timeout_ns);
/* By a thread as its last word: whether it was left behind, and has to free its queue. */
bool bw_host_left_end(uint32_t *ended);
/* A user less; true: the last one, who frees the device after bw_host_left_fini. */
bool bw_host_left_release(struct bw_host_left *left);
void bw_host_left_fini(struct bw_host_left *left);

/* Zeroed pages of the process; the address is the CPU's. On a node of memory if flags name one. */
int bw_host_memory_alloc(struct bw_sys *sys, const char *subsystem, uint64_t size_bytes, uint32_t flags,
                         struct bw_memory *memory, struct bw_err *err);
void bw_host_memory_free(struct bw_host_left *left, struct bw_memory *memory);
/* A driver's map_peer: whatever the CPU can see at the address that its owner uses. */
int bw_host_memory_map_peer(struct bw_device *device, struct bw_device *owner, struct bw_memory *memory,
                            struct bw_err *err);

#endif
