/* A queue of the host device: a ring of command buffers and the thread that runs them. */
#ifndef BW_DRIVERS_HOST_QUEUE_H
#define BW_DRIVERS_HOST_QUEUE_H

#include <pthread.h>

#include "drivers/driver.h"
#include "drivers/host/interrupt.h"
#include "drivers/host/pool.h"

/* Command buffers in flight. A linked graph has three instances and one command buffer per queue each, so 256
 * hold 85 graphs. */
enum { BW_HOST_RING_ENTRIES = 256 };

struct bw_host_device;
struct bw_host_program;

struct bw_host_entry {
    const uint32_t *words;
    uint32_t word_count;
};

struct bw_host_queue {
    struct bw_queue base;
    struct bw_host_device *host;
    struct bw_host_pool *pool; /* of compute queues, else NULL */
    pthread_t thread;
    struct bw_host_entry ring[BW_HOST_RING_ENTRIES];
    uint64_t put;                /* written by the submitter, atomic */
    uint64_t get;                /* written by the thread when an entry is done, atomic */
    uint64_t progress;           /* atomic: packets, groups */
    uint32_t ended;              /* of bw_host_left_end: set as the thread is about to return */
    uint32_t asleep, stop, drop; /* atomic; drop: discard what is queued, leave waits */
    pthread_mutex_t lock;        /* of sleeping only */
    pthread_cond_t wake;
};

struct bw_host_device {
    struct bw_device base;
    struct bw_sys *sys;
    uint32_t thread_count;
    uint64_t give_up_ns;             /* a kernel that has not come back by then never will */
    struct bw_host_queue *queues[2]; /* by enum bw_queue_kind */
    struct bw_host_interrupt interrupt;
    uint32_t broken; /* atomic: a packet was not one of ours */
    struct bw_host_left left;
    struct bw_host_program *left_programs; /* destroyed while a thread may be inside */
};

int bw_host_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                         struct bw_queue **queue, struct bw_err *err);
/* Bounded: a thread that does not come back is left behind with the memory that it uses, and frees it when it
 * ends after all. */
void bw_host_queue_destroy(struct bw_queue *queue);
/* One user less; the last one frees the device. */
void bw_host_device_release(struct bw_host_device *host);
int bw_host_queue_submit(struct bw_queue *queue, uint64_t address, uint32_t word_count);
uint64_t bw_host_queue_progress(struct bw_queue *queue);
/* Drops what is queued: 0, or -EBUSY when a kernel does not end within timeout_ns. */
int bw_host_queue_reset(struct bw_host_queue *queue, uint64_t timeout_ns);

#endif
