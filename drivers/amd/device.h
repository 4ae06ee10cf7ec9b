/* What the AMD driver keeps per device, queue, program and kernel. Only drivers/amd includes this (and its
 * tests). */
#ifndef BW_DRIVERS_AMD_DEVICE_H
#define BW_DRIVERS_AMD_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/code_object.h"
#include "drivers/amd/ring.h"
#include "drivers/driver.h"
#include "iface/iface.h"

enum {
    BW_AMD_PAGE_BYTES = 4096,      /* what a memory fault names */
    BW_AMD_COMPUTE_QUEUES_MAX = 4, /* as many as ROCm's runtime makes: each pins its save area */
    BW_AMD_COPY_QUEUES_MAX = 16,
    BW_AMD_COMPUTE_RING_BYTES = 64 << 10, /* 4096 submissions of 4 words */
    BW_AMD_COPY_RING_BYTES = 128 << 10,   /* 4096 submissions of 8 words */
    BW_AMD_RING_BYTES_MIN = 4096,         /* a page; KFD refuses less */
    BW_AMD_POINTER_READ = 0,
    BW_AMD_POINTER_WRITE = 64, /* a cache line each, so that the writers do not fight over one */
    BW_AMD_POINTER_PROGRESS = 128,
    /* Kernels in one command buffer after which it tells how far it is: the read pointer stands until its
     * end, and so many kernels, each of a few seconds, are within the default deadline. One packet of five
     * words among those of eight kernels is lost in what they cost. */
    BW_AMD_PROGRESS_KERNELS = 8,
    BW_AMD_RECENT_SUBMITS = 16, /* command buffers looked at when a fault is explained */
    /* ... and what they depend on: of a submission that depends on more, the last ones. */
    BW_AMD_RECENT_DEPENDENCES = 256,
    /* What a kernel with recursion or calls through pointers gets per work-item on top of its own frame;
     * HIP's default stack limit. */
    BW_AMD_DYNAMIC_STACK_BYTES = 1024,
    BW_AMD_CODE_SLACK_BYTES =
        256, /* instruction prefetch runs past the end of code (AMDGPUUsage, "s_code_end") */
};

/* One allocation, in a list of the device so that faults can be explained and leftovers freed. */
struct bw_amd_memory {
    struct bw_amd_memory *next, *previous;
    struct bw_iface_memory iface;
};

/* Scratch of one size. Old ones stay until the queue ends: linked graphs hold their addresses. Each is at
 * least twice as large per wave as the one before, so that all old ones together are smaller than the newest.
 */
struct bw_amd_scratch {
    struct bw_iface_memory memory;
    uint32_t wave_bytes;
    uint32_t tmpring_size; /* COMPUTE_TMPRING_SIZE */
};

struct bw_amd_submit {
    _Atomic uint64_t address;
    _Atomic uint32_t word_count;
};

/* What submission `consumer` of a queue waits for; 0: nobody does. */
struct bw_amd_dependence {
    _Atomic uint64_t consumer, submission;
    _Atomic(const struct bw_iface_queue *) producer;
};

struct bw_amd_queue {
    struct bw_queue base;
    struct bw_amd_queue *next;
    struct bw_iface_memory ring_memory, pointer_memory;
    struct bw_iface_queue hardware;
    bool live;               /* hardware holds a queue */
    struct bw_amd_ring ring; /* unused where the interface hands work to the kernel; then these two: */
    struct bw_iface_commands commands[BW_IFACE_COMMANDS_MAX]; /* of the next flush */
    uint32_t command_count;
    uint64_t submissions;                                               /* handed over */
    struct bw_iface_dependency dependencies[BW_IFACE_DEPENDENCIES_MAX]; /* of the next one */
    uint32_t dependency_count;
    struct bw_amd_dependence dependences[BW_AMD_RECENT_DEPENDENCES]; /* of the last ones */
    uint64_t dependence_count;
    uint32_t code_generation; /* of the device, when instruction caches were last invalidated on this queue */
    pthread_mutex_t scratch_lock;
    BW_VEC(struct bw_amd_scratch) scratch; /* newest last */
    struct bw_amd_submit recent[BW_AMD_RECENT_SUBMITS];
    _Atomic uint64_t submit_count;
};

struct bw_amd_program;
struct bw_amd_kernel {
    struct bw_kernel base;
    const struct bw_amd_code_kernel *code;
    uint64_t entry_va, descriptor_va;
    uint32_t
        packet_offset; /* of the dispatch packet in the argument block; 0: the kernel does not want one */
};

struct bw_amd_program {
    struct bw_program base;
    struct bw_amd_program *next;
    struct bw_amd_code_object object;
    struct bw_iface_memory memory;
    uint32_t kernel_count;
    struct bw_amd_kernel *kernels;
};

/* The CPU's view of host memory of another device that this one reaches: its signals, for who looks what is
 * waited for. */
struct bw_amd_peer_view {
    uint64_t gpu_va;
    struct bw_region cpu;
};

struct bw_amd_device {
    struct bw_device base;
    const struct bw_amd_arch *arch;
    struct bw_iface *iface;
    bool unfed;          /* there is no GPU: nothing is uploaded or submitted */
    uint32_t pm4, sdma;  /* enum bw_amd_packet_generation */
    uint64_t mailbox_va; /* of the interrupt event; 0: queues raise none */
    uint32_t event_id;
    uint32_t compute_ring_bytes, copy_ring_bytes; /* of queues made from now on */
    uint64_t wait_ns;                             /* the context's deadline */
    _Atomic uint32_t code_generation;             /* counts program uploads */
    pthread_mutex_t fault_lock; /* from the interface's report until it stands in fault; before lock */
    pthread_mutex_t lock;       /* lists below, upload, fault. Innermost: owners free memory under theirs, so
                                   nobody outside (the describer, say) is called under it. */
    struct bw_amd_memory *memories;
    BW_VEC(struct bw_amd_peer_view) peer_views;
    struct bw_amd_queue *queues;
    struct bw_amd_program *programs;
    pthread_mutex_t upload_lock; /* upload_* below, whose queue and memory change under both; taken before
                                    lock */
    struct bw_amd_queue *upload_queue;
    struct bw_iface_memory upload_memory;
    uint64_t upload_value, upload_va; /* of the last chunk */
    struct bw_err fault;              /* code != 0: broken, and every query says so until reset */
};

static inline struct bw_amd_device *bw_amd_device(struct bw_device *device)
{
    return (struct bw_amd_device *)device;
}

static inline struct bw_amd_queue *bw_amd_queue(struct bw_queue *queue)
{
    return (struct bw_amd_queue *)queue;
}

/* device.c: a device on iface, which is taken over, of that row. */
int bw_amd_open_arch(struct bw_ctx *ctx, struct bw_iface *iface, const struct bw_amd_arch *arch, bool unfed,
                     struct bw_device **device, struct bw_err *err);

/* queue.c. Without the list of the device: the upload queue is one too. */
int bw_amd_queue_open(struct bw_amd_device *device, enum bw_queue_kind kind, uint32_t index,
                      struct bw_amd_queue **queue, struct bw_err *err);
void bw_amd_queue_close(struct bw_amd_queue *queue);
int bw_amd_queue_rebuild(struct bw_amd_queue *queue, struct bw_err *err);
int bw_amd_queue_create(struct bw_device *device, enum bw_queue_kind kind, uint32_t index,
                        struct bw_queue **queue, struct bw_err *err);
void bw_amd_queue_destroy(struct bw_queue *queue);
int bw_amd_queue_submit(struct bw_queue *queue, uint64_t address, uint32_t word_count);
int bw_amd_queue_follow(struct bw_queue *queue, struct bw_device *device, struct bw_err *err);
int bw_amd_queue_after(struct bw_queue *queue, struct bw_queue *producer);
int bw_amd_queue_flush(struct bw_queue *queue);
/* Whether the submission that is to run next waits for other queues. Any thread. */
bool bw_amd_queue_depends(const struct bw_amd_queue *queue);
uint64_t bw_amd_queue_progress(struct bw_queue *queue);

/* scratch.c: the scratch of the queue that holds wave_bytes per wave, grown when needed. */
int bw_amd_scratch_get(struct bw_amd_queue *queue, const char *kernel_name, uint64_t private_bytes,
                       uint32_t wave_size, struct bw_amd_scratch *scratch, struct bw_err *err);
void bw_amd_scratch_free(struct bw_amd_queue *queue);

/* encode.c */
void bw_amd_encode_begin(struct bw_queue *queue, struct bw_encoder *encoder);
int bw_amd_encode_kernel(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_kernel *kernel,
                         const struct bw_dispatch *dispatch, struct bw_err *err);
int bw_amd_encode_copy(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand target,
                       struct bw_operand source, uint64_t size_bytes, uint64_t *done_bytes);
int bw_amd_encode_wait(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                       struct bw_operand value);
int bw_amd_encode_signal(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address,
                         struct bw_operand value, bool interrupt);
int bw_amd_encode_timestamp(struct bw_queue *queue, struct bw_encoder *encoder, struct bw_operand address);
int bw_amd_encode_barrier(struct bw_queue *queue, struct bw_encoder *encoder, uint32_t flags);
int bw_amd_encode_end(struct bw_queue *queue, struct bw_encoder *encoder);

/* kernel.c */
int bw_amd_dispatch_check(const struct bw_amd_kernel *kernel, const struct bw_dispatch *dispatch,
                          struct bw_err *err);
int bw_amd_argument_block(struct bw_kernel *kernel, const struct bw_dispatch *dispatch,
                          struct bw_encoder *block, struct bw_err *err);

/* program.c */
int bw_amd_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                        struct bw_program **program, struct bw_err *err);
void bw_amd_program_destroy(struct bw_program *program);
int bw_amd_program_kernel(struct bw_program *program, const char *name, struct bw_kernel **kernel,
                          struct bw_err *err);

/* upload.c: copies data to device memory and waits for its arrival. Any thread. */
int bw_amd_upload(struct bw_amd_device *device, uint64_t target_va, const void *data, uint64_t size_bytes,
                  struct bw_err *err);
void bw_amd_upload_close(struct bw_amd_device *device);

/* look.c: what a queue is at. */
struct bw_amd_look {
    char name[32];      /* "compute queue 0" */
    char work[160];     /* what may be running: "kernel add", "copy of 64 bytes to 0x...", or empty */
    uint64_t pc_offset; /* of view.pc in the kernel, where that is known */
    bool open;          /* something of its work is not proved done */
    bool told;          /* the interface said all of view; else only view.waits means something */
    struct bw_queue_view view;
};
/* device->lock is held. */
void bw_amd_queue_look_locked(struct bw_amd_queue *queue, struct bw_amd_look *look);
int bw_amd_queue_look(struct bw_queue *queue, struct bw_queue_view *view);

/* fault.c */
int bw_amd_query_fault(struct bw_device *device, struct bw_err *err);
/* The first failure since the last reset stays: keeps this one if there is none (code 0 keeps nothing), gives
 * back the one that stands. True if the device is broken. Takes device->lock. */
bool bw_amd_fault_keep(struct bw_amd_device *device, struct bw_err *failure);
int bw_amd_reset(struct bw_device *device, struct bw_err *err);

#endif
