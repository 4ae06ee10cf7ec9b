/* A file as a queue device: its one copy queue reads ranges of it into memory of this process, so that a
 * graph loads from it like from any other device. Packets are the host's (drivers/host/packet.h); in the
 * device's address space the file lies at BW_DISK_FILE_ADDRESS, everything else is at the CPU's addresses.
 *
 * The queue runs ahead: a copy is begun as soon as what it waits for is there, whether or not earlier ones
 * are done, up to the next barrier. Signals are written in order, once all copies before them are done. */
#ifndef BW_DRIVERS_DISK_DISK_H
#define BW_DRIVERS_DISK_DISK_H

#include <pthread.h>

#include "drivers/driver.h"
#include "drivers/host/interrupt.h"
#include "mem/disk.h"

enum {
    BW_DISK_RING_ENTRIES = 256, /* command buffers in flight, as on the host */
    BW_DISK_PENDING_MAX = 64,   /* packets begun and not retired: copies as many as the disk takes, and the
                                   signals between them */
};

/* Above every address of a process (47 or 56 bits), below where a file's size would wrap. */
#define BW_DISK_FILE_ADDRESS (1ull << 62)

struct bw_disk_entry {
    const uint32_t *words;
    uint32_t word_count;
};

/* A packet that was begun. */
struct bw_disk_pending {
    uint32_t opcode;  /* enum bw_host_opcode: COPY, SIGNAL or TIMESTAMP */
    uint32_t request; /* COPY */
    uint64_t address; /* SIGNAL, TIMESTAMP: where to; COPY: offset in the file */
    uint64_t value;   /* SIGNAL; COPY: size in bytes */
    bool interrupt;   /* SIGNAL */
};

struct bw_disk_queue {
    struct bw_queue base;
    struct bw_disk_device *device;
    pthread_t thread;
    struct bw_disk_entry ring[BW_DISK_RING_ENTRIES];
    uint64_t put; /* written by the submitter, atomic */
    uint64_t get; /* written by the thread when all of an entry is begun, atomic */
    uint32_t at;  /* word of that entry where it goes on */
    struct bw_disk_pending pending[BW_DISK_PENDING_MAX]; /* a ring, oldest first */
    uint64_t begun, retired;
    uint64_t progress;                /* atomic: packets begun and retired, arrivals of bytes */
    uint64_t copy_offset, copy_bytes; /* atomic: the oldest copy that is not done; 0 bytes: none */
    bool waits;                       /* atomic: at a packet, for memory that somebody else is to write */
    bool asleep, stop, drop, clean;   /* atomic; drop: forget all, said to be done by clean */
    uint32_t ended;                   /* of bw_host_left_end: set as the thread is about to return */
    pthread_mutex_t lock;             /* of sleeping only */
    pthread_cond_t wake;
};

struct bw_disk_device {
    struct bw_device base;
    struct bw_sys *sys;
    struct bw_disk *disk;
    uint64_t give_up_ns; /* a read that has not come back by then is left behind */
    struct bw_disk_queue *queue;
    struct bw_host_interrupt interrupt;
    pthread_mutex_t lock; /* of failure */
    struct bw_err failure;
    bool broken; /* atomic: failure holds */
    struct bw_host_left left;
};

/* Records the first failure and wakes whoever waits. */
void bw_disk_device_break(struct bw_disk_device *device, const struct bw_err *failure);

int bw_disk_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                         struct bw_queue **queue, struct bw_err *err);
/* One user less; the last one frees the device. */
void bw_disk_device_release(struct bw_disk_device *device);
/* Bounded: a thread that does not come back is left behind with the memory that it uses, and frees it when it
 * ends after all. */
void bw_disk_queue_destroy(struct bw_queue *queue);
int bw_disk_queue_submit(struct bw_queue *queue, uint64_t address, uint32_t word_count);
uint64_t bw_disk_queue_progress(struct bw_queue *queue);
int bw_disk_queue_look(struct bw_queue *queue, struct bw_queue_view *view);
/* Drops what is queued: 0, or -EBUSY when a read does not end within timeout_ns. */
int bw_disk_queue_reset(struct bw_disk_queue *queue, uint64_t timeout_ns);

#endif
