/* Inside hcq/: contexts, devices, queues, memory blocks.
 *
 * Locks, in the order in which they may be taken together: ctx.peer_lock, device.transfer_lock, ctx.turn,
 * ctx.lock, device.lock; a driver's own come after them, and no driver calls the describer under one that it
 * takes to allocate or free. A replay takes only ctx.turn. */
#ifndef BW_HCQ_HCQ_H
#define BW_HCQ_HCQ_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <bellwire/graph.h>

#include "drivers/driver.h"
#include "hcq/timeline.h"
#include "mem/interval.h"
#include "mem/reuse.h"

enum {
    BW_HCQ_DEVICES_MAX = 64,  /* sets of devices are 64-bit masks */
    BW_HCQ_QUEUES_MAX = 32,   /* of one device: 4 for kernels, 16 copy engines of a gfx942, and room */
    BW_HCQ_SIGNAL_BYTES = 64, /* a slot: a cache line of its own, so that waiters do not disturb neighbours */
    BW_HCQ_SIGNAL_SLOTS = 2,  /* of a queue: the one in use and the next */
    BW_HCQ_RECENT_COUNT = 16, /* submissions remembered per queue, for error texts */
    BW_HCQ_FREED_COUNT = 64,  /* freed buffers remembered per device, for error texts */
};

/* Beside enum bw_buffer_flags: the bytes of a file, that only its device's queues reach. */
#define BW_HCQ_BLOCK_FILE (1u << 31)

#define BW_HCQ_WAIT_NS_DEFAULT  30000000000ull /* the slowest kernel that reports no progress in between */
#define BW_HCQ_CACHED_BYTES_MAX (256ull << 20) /* kept for reuse on a device without VRAM of its own */
#define BW_HCQ_STAGING_BYTES    (4ull << 20)   /* per slot; 1 ms of PCIe 3, well above the cost of a submit */

struct bw_machine;
struct bw_hcq_peer;

struct bw_ctx {
    struct bw_ctx_config config; /* strings are copies */
    struct bw_sys *host_sys;
    struct bw_sys *sys;                                /* config's, or host_sys */
    struct bw_region fork_page;                        /* wiped in a forked child */
    pthread_mutex_t lock;                              /* devices, machines */
    struct bw_hcq_device *devices[BW_HCQ_DEVICES_MAX]; /* entries change under lock, read atomically */
    struct bw_machine *machines;                       /* mock machines in use */
    struct bw_linked_graph *linked;                    /* all of them: loss.c; under lock */
    uint64_t failed;                                   /* atomic: devices */
    uint64_t block_serial;                             /* atomic: ids of blocks */
    uint64_t profile_serial;                           /* atomic: numbers of profiled graphs */
    uint64_t users_epoch;                              /* atomic: changes when a block gets one more user */
    uint64_t queues_epoch;                             /* atomic: changes when a driver's queue is made */
    uint64_t signal_epoch;     /* changes in a turn, with every signal that moves to another slot */
    uint32_t turn;             /* atomic: see bw_hcq_turn_take */
    pthread_mutex_t peer_lock; /* one proof at a time */
    /* [whose engine][whose memory]: set once under peer_lock, read atomically */
    struct bw_hcq_peer *peers[BW_HCQ_DEVICES_MAX][BW_HCQ_DEVICES_MAX];
};

/* What a command buffer is, in words, for errors: "kernel add_f32 and 3 more calls". */
struct bw_hcq_label {
    char text[96];
};

/* What a queue was given lately. */
struct bw_hcq_submission {
    struct bw_point last; /* its last signal */
    struct bw_hcq_label label;
};

/* A queue that a device can have. Its timeline exists from the start, the driver's queue from its first use.
 */
struct bw_hcq_queue {
    struct bw_hcq_device *owner;
    struct bw_queue *queue; /* NULL: not made yet; set once, read atomically */
    bool refused;           /* atomic: the driver has no more; others are used instead */
    enum bw_queue_kind kind;
    uint32_t index;            /* among those of its kind */
    uint32_t number;           /* among the device's queues */
    char label[32];            /* "compute queue 0" */
    volatile uint64_t *signal; /* current slot, in the CPU's view; changes in a turn, read atomically */
    uint64_t signal_offset;    /* of the slot in the device's signal block */
    uint32_t slot;
    struct bw_point submitted; /* last point given out; changes in a turn, read atomically */
    /* Until that point its work may wait for signals of these devices; both change in a turn, read
     * atomically. */
    uint64_t depends_on;
    struct bw_point depends_until;
    uint64_t code_epoch; /* programs loaded when its instruction caches were last invalidated */
    struct bw_hcq_submission recent[BW_HCQ_RECENT_COUNT];
    uint64_t recent_count;
};

/* Where every queue that might use a block stood when the block was freed. */
struct bw_hcq_retirement {
    uint32_t count;
    struct {
        struct bw_hcq_queue *queue;
        struct bw_point point;
    } entries[];
};

/* One allocation of a driver. Buffers are windows into blocks. What replays read of an input comes first, in
 * few cache lines. */
struct bw_block {
    struct bw_hcq_device *owner;
    uint64_t id;    /* unique in the context, never 0 */
    uint64_t users; /* atomic: devices (by index) that were told its address since it was handed out */
    uint64_t reach; /* atomic: devices that it is mapped to; their addresses are equal */
    struct bw_memory memory;
    uint64_t size_bytes;  /* asked for */
    uint32_t references;  /* atomic */
    uint32_t live_handle; /* in owner->live */
    struct bw_hcq_retirement *retirement;
    struct bw_block *next; /* in the owner's list of retiring blocks */
};

struct bw_buffer {
    struct bw_block *block;
    uint64_t offset, size_bytes;
};

struct bw_hcq_freed {
    uint64_t address, size_bytes;
};

/* What a queue was given and had not done: the points after `done` up to `given`. */
struct bw_hcq_undone {
    struct bw_point done, given;
};

/* Where a device's clock stood when the host's stood at host_ns, give or take error_ns. */
struct bw_clock_point {
    uint64_t ticks, host_ns, error_ns;
};

/* The two newest, which may be one. */
struct bw_hcq_clock {
    struct bw_clock_point previous, last;
    bool known;
};

struct bw_transfer;

struct bw_hcq_device {
    struct bw_device *device;
    struct bw_ctx *ctx;
    struct bw_sys *sys;         /* whose clock measures this device's deadlines */
    struct bw_machine *machine; /* mock machine that it lives in, or NULL */
    uint32_t index;             /* in ctx->devices */

    struct bw_hcq_queue queues[BW_HCQ_QUEUES_MAX]; /* compute queues, then copy queues */
    uint32_t queue_count, compute_count;
    struct bw_block *signals;
    uint64_t code_epoch; /* atomic: programs loaded */

    uint32_t failed;     /* atomic */
    struct bw_err error; /* valid and constant while failed */
    /* When it failed last: devices whose queues had to wait for it, itself included, and what all queues of
     * the context had not done. */
    uint64_t dependents;
    struct bw_hcq_undone undone[BW_HCQ_DEVICES_MAX][BW_HCQ_QUEUES_MAX];

    /* follow.c: devices, and the points of their queues that work of this one came after; changes in a turn,
     * read atomically. */
    uint64_t follows;
    struct bw_point followed[BW_HCQ_DEVICES_MAX][BW_HCQ_QUEUES_MAX];

    pthread_mutex_t lock; /* what follows */
    /* Destroyed while the device did not answer: their code may still run, so they stay until its queues are
     * gone. */
    struct bw_program *detained;

    struct bw_interval_map live; /* address ranges of live blocks; value is the block */
    struct bw_hcq_freed freed[BW_HCQ_FREED_COUNT];
    uint64_t freed_count;
    struct bw_block *retiring,
        **retiring_end;    /* freed, but not all queues have passed that point; oldest first */
    struct bw_reuse reuse; /* freed and passed: ready for the next bw_block_create */
    uint64_t live_bytes;

    struct bw_block *file; /* all of a disk's file; made at the first use, kept until the device is closed */

    pthread_mutex_t transfer_lock;
    struct bw_transfer *transfer; /* made at the first read or write that needs it */

    struct bw_hcq_clock clock; /* under lock */
};

/* ctx.c */
bool bw_ctx_forked(const struct bw_ctx *ctx);
/* Submissions of one context happen one after the other, so that the order on every queue is the same and no
 * two graphs wait for each other crosswise. One atomic exchange when nobody else submits; the other thread's
 * submission is a few microseconds. */
void bw_hcq_turn_take(struct bw_ctx *ctx);
void bw_hcq_turn_give(struct bw_ctx *ctx);

/* open.c */
#define BW_HCQ_DEFAULT_MOCK "mockkfd+amd@gfx1100"
/* What a name that is left out stands for, unless the configuration has one: the first real GPU, through the
 * KFD where that is, else through its render node; else the mock. */
const char *bw_device_default(struct bw_ctx *ctx);
struct bw_device_name;
/* The mock machine that the name describes, made when no open device has it. */
int bw_machine_acquire(struct bw_ctx *ctx, const struct bw_device_name *name, struct bw_machine **machine,
                       struct bw_err *err);
/* Says in the hint which devices there are, after the hint that may be there: the one list of every message
 * about a name that names no device. err may be NULL. */
void bw_device_names_hint(struct bw_ctx *ctx, struct bw_err *err);
/* Whether a mock of that architecture can be opened: 0, or -ENODEV and which can. */
int bw_mock_name_check(const char *arch, struct bw_err *err);
struct bw_sys *bw_machine_sys(const struct bw_machine *machine);
/* Drops a device's hold on the mock machine that it lives in; the last one ends it. */
void bw_machine_release(struct bw_ctx *ctx, struct bw_machine *machine);

/* device.c */
static inline struct bw_hcq_device *bw_hcq_device_of(const struct bw_device *device)
{
    return device->hcq;
}
/* Builds what hcq keeps per device: queues, signals. Takes the driver's device over (and its hold on
 * machine), also on failure. */
/* open.c: a device of an AMD architecture that encodes and never runs: see bw_amd_open_unfed. */
int bw_device_open_unfed(struct bw_ctx *ctx, const char *arch, struct bw_device **device, struct bw_err *err);
int bw_hcq_device_attach(struct bw_ctx *ctx, struct bw_device *device, struct bw_sys *sys,
                         struct bw_machine *machine, struct bw_err *err);
/* 0, or the error that broke the device (or -ECHILD in a forked child). */
int bw_hcq_device_check(struct bw_hcq_device *device, struct bw_err *err);
/* Marks it failed with *err (the first failure stays) and gives the stored error back. Returns its code.
 * Other devices that wait for it go on: what it was given is lost, and whoever waits for a replay that it
 * took part in is told (loss.c). */
int bw_hcq_device_fail(struct bw_hcq_device *device, struct bw_err *err);
static inline bool bw_hcq_device_failed(const struct bw_hcq_device *device)
{
    return __atomic_load_n(&device->failed, __ATOMIC_ACQUIRE);
}
/* Of a failed device: whatever waits for its signals goes on. Again whenever somebody still waits, since its
 * engines may run on and write what they were given. */
void bw_hcq_timelines_settle(struct bw_hcq_device *device);
/* Devices by mask. */
struct bw_hcq_device *bw_hcq_device_at(const struct bw_ctx *ctx, uint32_t index);

/* queue.c */
static inline struct bw_point bw_hcq_queue_now(const struct bw_hcq_queue *queue)
{
    /* Whoever still reads the slot that was left sees its last point, which everybody waited for. */
    return (struct bw_point){
        __atomic_load_n(__atomic_load_n(&queue->signal, __ATOMIC_ACQUIRE), __ATOMIC_ACQUIRE)};
}
static inline struct bw_point bw_hcq_queue_submitted(const struct bw_hcq_queue *queue)
{
    return (struct bw_point){__atomic_load_n(&queue->submitted.value, __ATOMIC_ACQUIRE)};
}
static inline bool bw_hcq_queue_idle(const struct bw_hcq_queue *queue)
{
    return bw_point_reached(bw_hcq_queue_now(queue), bw_hcq_queue_submitted(queue));
}
/* NULL: it was never used, so it is idle and stays so until a graph takes it. */
static inline struct bw_queue *bw_hcq_queue_made(const struct bw_hcq_queue *queue)
{
    return __atomic_load_n(&queue->queue, __ATOMIC_ACQUIRE);
}
/* Makes the driver's queue when there is none; false: the driver refuses, now and later. */
bool bw_hcq_queue_usable(struct bw_hcq_queue *queue);
/* Timelines of all queues; the first of each kind is made at once. */
int bw_hcq_queues_create(struct bw_hcq_device *device, struct bw_err *err);
/* Destroys the driver's queues: their engines stop. The timelines remain until nobody looks at them. */
void bw_hcq_queues_stop(struct bw_hcq_device *device);
void bw_hcq_queues_forget(struct bw_hcq_device *device);
/* In a turn: makes sure that `count` more points fit the signal slot's window; else drains the context and
 * moves to the other slot. */
int bw_hcq_queue_window(struct bw_hcq_queue *queue, uint64_t count, struct bw_err *err);
/* In the same turn: reserves them and returns the point before the first. */
struct bw_point bw_hcq_queue_reserve(struct bw_hcq_queue *queue, uint64_t count);
/* In a turn, before what ends with `last` is submitted: that waits for signals of these devices. */
void bw_hcq_queue_depend(struct bw_hcq_queue *queue, uint64_t devices, struct bw_point last);
/* In the same turn, nothing submitted since: takes the reservation back. */
void bw_hcq_queue_unreserve(struct bw_hcq_queue *queue, struct bw_point base);
/* In a turn: puts it into the ring; waits when that is full. The device is told by bw_hcq_queue_flush. */
int bw_hcq_queue_submit(struct bw_hcq_queue *queue, uint64_t address, uint32_t word_count,
                        struct bw_err *err);
int bw_hcq_queue_flush(struct bw_hcq_queue *queue, struct bw_err *err);
/* In a turn: remembers for error texts what the points up to `last` are. */
void bw_hcq_queue_remember(struct bw_hcq_queue *queue, struct bw_point last,
                           const struct bw_hcq_label *label);
/* What the queue is at, or was at last: never NULL. */
const char *bw_hcq_queue_doing(const struct bw_hcq_queue *queue);

/* follow.c */
/* In a turn: what `device` is given now comes after what `other` was given. */
void bw_hcq_follow_note(struct bw_hcq_device *device, const struct bw_hcq_device *other);
/* Waits for all that the device's work came after on other devices, those of the mask left out. The error is
 * of one of them that failed. */
int bw_hcq_followed_wait(const struct bw_hcq_device *device, uint64_t except, struct bw_err *err);

/* wait.c */
/* Waits until the queue has passed the point. Whichever device holds it up for the deadline, or is found
 * broken, fails; the wait does only when that is the queue's own, or one after whose work the kernel has put
 * the queue's. */
int bw_hcq_queue_wait(struct bw_hcq_queue *queue, struct bw_point point, struct bw_err *err);
/* The device did not take what was submitted to it, with that code: it has failed, on what it reports, or
 * else on this. Returns the failure's code. */
int bw_hcq_queue_refused(struct bw_hcq_queue *queue, int code, struct bw_err *failure);
/* Submits once the ring has room: its oldest command buffers have to end. Bounded as any wait is. */
int bw_hcq_queue_submit_slowly(struct bw_hcq_queue *queue, uint64_t address, uint32_t word_count,
                               struct bw_err *failure);
/* All devices that what the device has not done yet may wait for, through others, too; itself included. */
uint64_t bw_hcq_dependencies(const struct bw_hcq_device *device);
/* Waits for all that was submitted to the devices of the mask so far, and returns the first error of one that
 * failed meanwhile, or that they waited for. One that failed before is passed over: its error was told, and
 * nobody knows what it does. */
int bw_hcq_devices_wait(struct bw_ctx *ctx, uint64_t mask, struct bw_err *err);

/* memory.c */
/* A block with one reference. -ENOMEM names the size, what is live and what is free. */
int bw_block_create(struct bw_hcq_device *device, uint64_t size_bytes, uint32_t flags,
                    struct bw_block **block, struct bw_err *err);
/* The block of a disk's file, with one reference more. The file is not empty. */
int bw_block_file(struct bw_hcq_device *device, struct bw_block **block, struct bw_err *err);
static inline bool bw_block_is_file(const struct bw_block *block)
{
    return block->memory.flags & BW_HCQ_BLOCK_FILE;
}
void bw_block_hold(struct bw_block *block);
/* Drops a reference; the last one puts the block into the cache until the device is done with it. NULL is
 * fine. */
void bw_block_release(struct bw_block *block);
/* The address of the block for `device`, mapping it there when that was not done before. -EOPNOTSUPP: must be
 * bounced. */
int bw_block_reach(struct bw_block *block, struct bw_hcq_device *device, uint64_t *address,
                   struct bw_err *err);
/* CPU pointer, NULL when the CPU has no plain view. */
static inline void *bw_block_map(const struct bw_block *block)
{
    return block->memory.cpu.size_bytes ? (void *)(uintptr_t)block->memory.cpu.base : NULL;
}
/* peer.c: whether a device may touch device memory of another one, found out once. */
struct bw_hcq_peer {
    struct bw_link link; /* kind NONE: it may not, */
    struct bw_err why;   /* because */
};
int bw_hcq_peer_get(struct bw_hcq_device *from, struct bw_hcq_device *to, const struct bw_hcq_peer **peer,
                    struct bw_err *err);
/* 0 or -EOPNOTSUPP with the reason. No lock may be held. */
int bw_hcq_peer_check(struct bw_hcq_device *from, struct bw_hcq_device *to, struct bw_err *err);
void bw_hcq_peers_forget(struct bw_hcq_device *gone);
/* For struct bw_reuse. */
void bw_hcq_block_free(void *user, void *block);
/* Frees what the cache keeps (all: also what the device is not done with; the device must be idle or gone).
 */
void bw_hcq_cache_flush(struct bw_hcq_device *device, bool all);
/* `gone` is being closed, its work done: nobody waits for its queues any more, nothing is mapped there. */
void bw_hcq_memory_forget(struct bw_hcq_device *device, const struct bw_hcq_device *gone);

/* program.c: frees the programs whose code may have run on until now; the queues are gone, or empty after a
 * reset. */
void bw_hcq_programs_release(struct bw_hcq_device *device);

/* loss.c */
/* 0, or the error of one of these devices, failed now, by which that point was lost. */
int bw_hcq_loss_check(const struct bw_hcq_queue *queue, struct bw_point point, uint64_t failed,
                      struct bw_err *err);
/* The device is about to work again: graphs remember which of their replays were lost. */
void bw_hcq_losses_note(const struct bw_hcq_device *device);

/* clock.c */
/* Sees to it that something is known of the device's clock; waits for the device when that is the first. */
int bw_hcq_clock_align(struct bw_hcq_device *device, struct bw_err *err);
/* A new point where the last one is old and the device idle. */
void bw_hcq_clock_refresh(struct bw_hcq_device *device);
struct bw_hcq_clock bw_hcq_clock_get(struct bw_hcq_device *device);
/* A device time on the host's clock; hz: the nominal rate. */
uint64_t bw_hcq_clock_host_ns(const struct bw_hcq_clock *clock, uint64_t hz, uint64_t ticks);

/* describe.c */
void bw_hcq_describe(void *device, uint64_t address, char *text, uint32_t text_size);

/* transfer.c */
int bw_hcq_transfer(struct bw_block *block, uint64_t offset, void *data, uint64_t size_bytes, bool write,
                    struct bw_err *err);
void bw_hcq_transfer_destroy(struct bw_hcq_device *device);

#endif
