/* The mock machine: GPUs, physical memory, processes, and the OS seam in front of them.
 *
 *   sys.c      the seam: descriptors, files, mappings          kfd/, drm/   the kernel drivers' ioctls
 *   tree.c     files that exist on this machine only           engine/      queues: PM4, AQL, SDMA, dispatch
 *   memory.c   physical memory   space.c  address spaces       isa/         machine code
 *
 * Locks, in the order in which they may be taken: machine.lock (descriptors, processes, buffers, pools, queue
 * lists), then a process's event lock or DRM's lock, then a space's lock, then error_lock. Engines' threads
 * never take machine.lock. record_lock may be taken with none of them held, and a space's lock in it. */
#ifndef BW_MOCK_MACHINE_H
#define BW_MOCK_MACHINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bellwire/mock.h>
#include <bellwire/sys.h>

#include "base/rng.h"
#include "base/vec.h"
#include "mock/chip.h"
#include "mock/fault.h"
#include "mock/memory.h"
#include "mock/node.h"
#include "mock/space.h"
#include "mock/tree.h"

struct bw_isa;
struct bw_isa_pool;
struct bw_mock;
struct bw_mock_context;
struct bw_mock_process;
struct bw_mock_queue;
struct bw_mock_slice;
struct bw_mock_drm;
struct bw_mock_drm_client;
struct bw_mock_events;
struct bw_mock_recorder;

enum {
    BW_MOCK_GPUS_MAX = 64, /* render minors 128 to 191 */
    BW_MOCK_ERROR_BYTES = 512,
    BW_MOCK_DOORBELL_BYTES =
        0x2000, /* a process's slice of the doorbell BAR: two pages on SOC15 (kfd_doorbell.c) */
    BW_MOCK_DOORBELLS = BW_MOCK_DOORBELL_BYTES / 8,
    BW_MOCK_COMPUTE_QUEUES = 24,      /* that the KFD hands out: 4 pipes of 8 queues, less the kernel's own */
    BW_MOCK_GPU_CLOCK_HZ = 100000000, /* REFCLK of every model here */
};

/* Flat apertures of SOC15 parts (kfd_flat_memory.c, kfd_init_apertures_v9). */
#define BW_MOCK_LDS_APERTURE     0x1000000000000ull
#define BW_MOCK_SCRATCH_APERTURE 0x2000000000000ull
/* The graphics driver's, for what comes through DRM (gmc_v9_0.c and later, shared and private aperture). */
#define BW_MOCK_DRM_LDS_APERTURE     0x2000000000000000ull
#define BW_MOCK_DRM_SCRATCH_APERTURE 0x1000000000000000ull

/* What a step of a queue came to. */
enum bw_mock_queue_progress {
    BW_MOCK_QUEUE_IDLE,    /* nothing until the next doorbell */
    BW_MOCK_QUEUE_MOVED,   /* something was done */
    BW_MOCK_QUEUE_RUNNING, /* single-step: part of a kernel was done */
    BW_MOCK_QUEUE_BLOCKED, /* waits for memory to change */
    BW_MOCK_QUEUE_STOPPED, /* failed or evicted; only destroying it helps */
};

struct bw_mock_gpu {
    uint32_t index;
    uint32_t gpu_id;       /* as in the topology */
    uint32_t render_minor; /* 128 + index */
    uint32_t bus;          /* PCI 0000:bus:00.0 */
    uint32_t node;         /* whose socket it is plugged into */
    uint32_t cu_count;
    const struct bw_mock_chip *chip;
    struct bw_mock_pool vram;
    uint64_t visible_bytes; /* of VRAM, behind the BAR */
    struct bw_mock_save_sizes save;
    int render_fd; /* what render descriptors are duplicates of */

    _Atomic(struct bw_mock_queue *) kernel_of; /* whose kernel has the compute units, and what follows */
    const struct bw_isa *isa;
    struct bw_isa_pool *isa_pool; /* NULL until the first kernel */
    struct bw_mock_slice *slice;  /* single-step: where kernels run */
};

/* A buffer of ALLOC_MEMORY_OF_GPU. Guarded by machine.lock. */
struct bw_mock_buffer {
    struct bw_mock_process *process; /* NULL once freed while still mapped by the CPU */
    uint32_t gpu, index;             /* owner's GPU; place in the process's table */
    uint32_t flags;                  /* as given to ALLOC */
    uint64_t va, size;
    uint32_t node;             /* that its system memory lies on */
    uint64_t offset;           /* in the memfd; also the mmap offset */
    struct bw_mock_pool *pool; /* NULL: user memory or doorbells */
    uint8_t *host;
    uint64_t mapped;               /* bit i: mapped on GPU i */
    uint32_t cpu_maps;             /* and whoever else holds its memory: dma-bufs, buffers made of those */
    bool always_valid;             /* DRM: of one address space, and never exported */
    struct bw_mock_buffer *origin; /* DRM: made of another one's dma-buf, whose memory this is */
};

/* One doorbell. Outlives the queue behind it, so that a late write is harmless. */
struct bw_mock_doorbell {
    _Atomic uint64_t value;
    _Atomic uint64_t not_before_ns; /* a delayed doorbell: the engine looks at it from here on */
    _Atomic uint32_t sequence; /* futex word: counts writes and everything else that should wake the engine */
    _Atomic uint32_t asleep;   /* the engine waits on sequence */
    _Atomic uint32_t bound;    /* a queue listens */
};

/* The device and its front (the model of a kernel driver) talk in one message interface.
 * Front to device: DMA map and unmap (bw_mock_space_map, bw_mock_space_unmap), queues (bw_mock_queue_start,
 * bw_mock_queue_halt) and, from the client directly, the doorbell (bw_mock_doorbell_write).
 * Device to front: these, from any engine's thread, with no lock of the machine held. */
struct bw_mock_front_ops {
    /* An interrupt of a packet: its context id, of which valid_bits bits reach the interrupt handler. */
    void (*interrupt)(struct bw_mock_context *context, uint32_t context_id, uint32_t valid_bits);
    void (*memory_fault)(struct bw_mock_context *context, const struct bw_mock_violation *violation);
    /* A queue stopped on something else than a memory fault. */
    void (*exception)(struct bw_mock_context *context);
    /* Of queues that the front feeds. The last indirect buffer, if any, is done: begins with the next one
     * (MOVED), waits for its turn (BLOCKED), or there is none (IDLE). */
    enum bw_mock_queue_progress (*feed)(struct bw_mock_queue *queue);
    /* It stopped: what it was at, and what would have come after it, is lost. */
    void (*failed)(struct bw_mock_queue *queue);
};

/* What a process has on one GPU (kfd_process_device of the kernel). */
struct bw_mock_context {
    struct bw_mock_process *process;
    struct bw_mock_gpu *gpu;
    const struct bw_mock_front_ops *front;
    bool acquired; /* ACQUIRE_VM was done */
    int render_fd; /* with this descriptor */
    uint64_t scratch_va, trap_va, trap_memory_va;
    uint64_t shared_aperture, private_aperture; /* that the kernel driver gives LDS and scratch */
    struct bw_mock_space space;
    struct bw_mock_doorbell doorbells[BW_MOCK_DOORBELLS];
    _Atomic uint32_t dispatches; /* running now */
    _Atomic uint32_t evictions;  /* memory faults so far: each stops the queues that existed then */
    uint64_t vram_used;
};

/* What a kernel driver keeps for a client: the KFD for a process, DRM for an open render node. */
struct bw_mock_process {
    struct bw_mock *machine;
    struct bw_mock_drm_client *drm; /* NULL: of the KFD */
    int pid;
    uint32_t opens; /* of /dev/kfd */
    uint32_t refs;  /* opens and doorbell mappings */
    bool ended;
    bool runtime_enabled;
    uint32_t queue_count; /* numbers given so far */
    struct bw_mock_events *events;
    BW_VEC(struct bw_mock_buffer *) buffers; /* by index; NULL: free */
    BW_VEC(struct bw_mock_queue *) queues;   /* in order of creation */
    struct bw_mock_context *contexts;        /* one per GPU */
};

enum bw_mock_file_kind { BW_MOCK_FILE_KFD, BW_MOCK_FILE_RENDER, BW_MOCK_FILE_DMABUF, BW_MOCK_FILE_SYNCOBJ };

struct bw_mock_drm_syncobj;

struct bw_mock_file {
    int fd;
    enum bw_mock_file_kind kind;
    struct bw_mock_gpu *gpu;             /* RENDER */
    struct bw_mock_process *process;     /* KFD; RENDER once an ioctl needed it */
    struct bw_mock_buffer *buffer;       /* DMABUF */
    struct bw_mock_drm_syncobj *syncobj; /* SYNCOBJ */
};

/* A CPU mapping of a buffer or of doorbells made through the seam. */
struct bw_mock_cpu_map {
    const void *base; /* NULL: doorbells */
    uint64_t size;
    struct bw_mock_buffer *buffer;
    struct bw_mock_context *context; /* doorbells of this */
};

struct bw_mock {
    struct bw_sys sys; /* first, then host: see struct bw_mock_base */
    struct bw_sys *host;
    pthread_mutex_t lock;
    int pid; /* whose machine it is: a forked child has its memory, but not its threads */
    uint64_t seed, jitter;
    bool single_step;
    uint32_t node_count; /* of memory, with a socket each */
    bool node_unknown;   /* to which a GPU is near */
    struct bw_mock_policies policies;
    bool kfd_absent; /* a kernel without the KFD: render nodes only */
    uint32_t threads;
    struct bw_mock_chip chip; /* of its GPUs */
    int memory_fd;
    struct bw_mock_pool system; /* GTT */
    uint32_t gpu_count;
    struct bw_mock_gpu *gpus;
    struct bw_mock_tree tree;
    struct bw_mock_faults faults;
    BW_VEC(struct bw_mock_file) files;
    BW_VEC(struct bw_mock_process *) processes;
    uint64_t spaces; /* that there were: one per process and GPU. Guarded by lock */
    BW_VEC(struct bw_mock_cpu_map) cpu_maps;

    pthread_mutex_t step_lock; /* single-step: one step at a time; also guards rng */
    struct bw_rng rng;
    _Atomic uint64_t virtual_ns; /* single-step: the clock */

    _Atomic uint32_t
        progress; /* futex word: engines bump it when memory may have changed under a blocked queue */
    _Atomic uint32_t blocked; /* queues that wait on it */

    pthread_mutex_t record_lock;
    struct bw_mock_recorder *recorder; /* guarded by record_lock */
    _Atomic uint32_t records;          /* there is one */

    _Atomic int trace_fd;    /* of the host; -1: no trace */
    bool trace_shared;       /* standard output or error, which is not ours to close */
    struct bw_mock_drm *drm; /* rings that DRM clients share */

    pthread_mutex_t error_lock;
    char last_error[BW_MOCK_ERROR_BYTES];

    struct {
        _Atomic uint64_t wave_instructions, waves, dispatches, packets, sdma_packets, doorbells, interrupts,
            ioctls;
        _Atomic uint64_t executed[2][256]; /* by enum bw_mock_packets and opcode */
    } stats;
};

static inline struct bw_mock *bw_mock_of(struct bw_sys *sys)
{
    return (struct bw_mock *)sys;
}

/* machine.c */
void bw_mock_error_set(struct bw_mock *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Records why a call is refused, for bw_mock_last_error, and returns code. */
int bw_mock_refuse(struct bw_mock *machine, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
uint64_t bw_mock_clock_ns(struct bw_mock *machine);
uint64_t bw_mock_gpu_clock(struct bw_mock *machine);
/* A client's call sleeps; in single-step mode the engines go on meanwhile. */
void bw_mock_sleep_ns(struct bw_mock *machine, uint64_t duration_ns);
/* An engine stands still, inside a step. */
void bw_mock_engine_delay(struct bw_mock *machine, uint64_t duration_ns);
struct bw_mock_gpu *bw_mock_gpu_by_id(struct bw_mock *machine, uint32_t gpu_id);

/* sys.c */
extern const struct bw_sys_ops bw_mock_sys_ops;
/* The open file behind a descriptor, copied; the caller holds machine.lock. */
bool bw_mock_file_find(struct bw_mock *machine, int fd, struct bw_mock_file *file);

/* Ends what bw_mock_kfd_create made; every process has ended. */
void bw_mock_machine_free(struct bw_mock *machine);

/* topology.c: fills machine->tree. 0 or -ENOMEM. */
int bw_mock_topology_build(struct bw_mock *machine);

/* process.c. Opening and dropping a reference: machine.lock is held. One of DRM's is its file's: one open,
 * one reference, no events. NULL: out of memory. */
struct bw_mock_process *bw_mock_process_create(struct bw_mock *machine, bool drm);
int bw_mock_process_open(struct bw_mock *machine, struct bw_mock_process **process);
void bw_mock_process_unref(struct bw_mock_process *process);
/* Of one open; the last ends the process. Without machine.lock. */
void bw_mock_process_close(struct bw_mock_process *process);

#endif
