/* What devices of this machine's threads share: waking who sleeps in wait_interrupt, and plain memory. */
#ifndef BW_DRIVERS_HOST_INTERRUPT_H
#define BW_DRIVERS_HOST_INTERRUPT_H

#include <pthread.h>

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

/* Zeroed pages of the process; the address is the CPU's. */
int bw_host_memory_alloc(struct bw_sys *sys, const char *subsystem, uint64_t size_bytes, uint32_t flags,
                         struct bw_memory *memory, struct bw_err *err);
/* A driver's map_peer: whatever the CPU can see at the address that its owner uses. */
int bw_host_memory_map_peer(struct bw_device *device, struct bw_device *owner, struct bw_memory *memory,
                            struct bw_err *err);

#endif
