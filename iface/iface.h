/* How a GPU is reached. One struct bw_iface is one opened GPU; the KFD and amdgpu's DRM node today, PCI and
 * VFIO later behind the same ops. Drivers see only this header of iface/. */
#ifndef BW_IFACE_IFACE_H
#define BW_IFACE_IFACE_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/region.h>
#include <bellwire/sys.h>

struct bw_iface;

/* What the interface knows about the GPU (KFD: topology properties). */
struct bw_iface_properties {
    char node_name[64];   /* path or address for messages, "kfd node 1", "render node 128" */
    char product[64];     /* marketing name, or empty */
    uint32_t gfx_version; /* major*10000 + minor*100 + stepping, as KFD's gfx_target_version: 110000 */
    uint16_t vendor_id, device_id;
    uint64_t vram_bytes;
    uint64_t visible_vram_bytes; /* of those, behind the BAR */
    uint32_t gpu_id;
    uint32_t simd_count, simd_per_cu, array_count, cu_per_array, waves_per_simd_max, scratch_slots_per_cu;
    uint32_t xcc_count, shader_engines, lds_bytes, wave_size;
    uint32_t sdma_engines, sdma_xgmi_engines, sdma_queues_per_engine, cp_queues;
    uint32_t engine_clock_mhz_max;
    uint64_t timestamp_hz;                   /* of the clock that queues write as timestamps */
    uint64_t lds_aperture, scratch_aperture; /* flat-address apertures (process apertures) */
    bool has_numa_node;                      /* else not known */
    uint32_t numa_node;                      /* of the machine's memory nodes the nearest one */
    bool numa_choice; /* host memory is placed there: the machine has several, and the kernel lets us */
    int numa_error;   /* -errno where the kernel does not */
    bool mock;        /* set by the opener's bw_sys, for display only */
};

/* How a GPU reaches another one's memory. */
enum bw_iface_link_kind { BW_IFACE_LINK_NONE, BW_IFACE_LINK_PCIE, BW_IFACE_LINK_XGMI };
struct bw_iface_link {
    enum bw_iface_link_kind kind;
    uint32_t weight;             /* distance; 0: not said */
    uint32_t bandwidth_mb_per_s; /* the most, one direction; 0: not said */
};

enum bw_iface_memory_flags {
    BW_IFACE_VRAM = 1,
    BW_IFACE_HOST = 2,         /* kernel-allocated host memory that the GPU can reach (GTT) */
    BW_IFACE_USER_POINTER = 4, /* the caller's own pages at cpu_address */
    BW_IFACE_UNCACHED = 8,
    BW_IFACE_EXECUTABLE = 16,
    BW_IFACE_CPU_VISIBLE = 32, /* VRAM mapped through the BAR */
    /* Ring memory of an AQL queue. Nothing special from gfx9 on: only gfx7 and gfx8 map it twice, and the KFD
     * refuses a ring whose mapping is not exactly as large as the ring. */
    BW_IFACE_AQL_QUEUE = 64,
};

struct bw_iface_memory {
    uint64_t gpu_va, size_bytes; /* size rounded up to pages */
    struct bw_region cpu;        /* size 0 when not CPU visible */
    uint64_t handle;
    uint32_t flags;
};

enum bw_iface_queue_kind {
    BW_IFACE_QUEUE_COMPUTE_PM4,
    BW_IFACE_QUEUE_COMPUTE_AQL,
    BW_IFACE_QUEUE_SDMA,
    BW_IFACE_QUEUE_SDMA_XGMI, /* on an engine for links between GPUs */
};

/* An interface with queue_submit ignores the ring and the pointers: the kernel has its own. */
struct bw_iface_queue_request {
    enum bw_iface_queue_kind kind;
    const struct bw_iface_memory *ring;
    /* 8-byte words, each in BW_IFACE_HOST memory that was allocated with exactly one page (both may share
     * it): the KFD checks that. The ring is one whole allocation, a power of two. */
    uint64_t read_pointer_va, write_pointer_va;
    uint32_t priority; /* 0..15, 7 normal */
};

struct bw_iface_queue {
    uint32_t id;
    struct bw_region doorbell; /* 8 bytes: this queue's doorbell; size 0 where the kernel is told instead */
    struct bw_region done;     /* else: 8 bytes, how many submissions are done */
    void *private_data;        /* EOP and save-area memory, owned by the interface */
};

/* One command buffer of a submission. */
struct bw_iface_commands {
    uint64_t va;
    uint32_t word_count;
    bool invalidate_code; /* instruction caches may hold what was there before */
};

/* The first `submission` submissions of a queue, counted from 1 by queue_submits that succeeded. */
struct bw_iface_dependency {
    const struct bw_iface_queue *queue;
    uint64_t submission;
};

enum {
    /* Under way on one queue before queue_submit sleeps (amdgpu_sched_jobs). */
    BW_IFACE_SUBMISSIONS_MAX = 32,
    /* Of one submission: amdgpu takes 49 for a copy engine's ring and more for others (amdgpu_ring_max_ibs),
     * and these are kept on the stack. */
    BW_IFACE_COMMANDS_MAX = 32,
    /* Of one submission, one for each queue: all of 8 GPUs with 16 copy engines and 8 compute queues each.
     * Kept on the stack, too. */
    BW_IFACE_DEPENDENCIES_MAX = 256,
};

enum bw_fault_kind { BW_FAULT_NONE, BW_FAULT_MEMORY, BW_FAULT_HARDWARE, BW_FAULT_LOST };

/* What the interface reports about a broken device. */
struct bw_fault {
    enum bw_fault_kind kind;
    uint64_t va; /* page address of a memory fault */
    bool not_present, read_only, no_execute, imprecise;
    uint32_t reset_type, reset_cause; /* hardware exceptions */
    char text[160];
};

struct bw_iface_ops {
    const char *name; /* "kfd" */
    int (*alloc)(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                 struct bw_iface_memory *memory, struct bw_err *err);
    int (*free)(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err);
    /* How iface's GPU reaches the memory of owner's. 0 or -errno. */
    int (*link)(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                struct bw_err *err);
    /* Makes memory of `owner` reachable for `iface`'s GPU at the same VA. -EOPNOTSUPP: there is no way, and
     * the error says which was looked for. */
    int (*map_peer)(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                    struct bw_err *err);
    int (*queue_create)(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                        struct bw_iface_queue *queue, struct bw_err *err);
    int (*queue_destroy)(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err);
    /* NULL: queues have rings and doorbells. Else they have neither, and the kernel is handed command
     * buffers, which it executes in order; what is in them stays as it is until their last signal. It begins
     * with them when the dependencies are done, however they ended: on queues of this interface, or of
     * another one as queue_follows says. One thread at a time per queue. Sleeps while the kernel has as much
     * work of this queue as it takes. -ECANCELED: the queue's work made the GPU hang or fault, see
     * query_fault; only destroying it helps. */
    int (*queue_submit)(struct bw_iface *iface, struct bw_iface_queue *queue,
                        const struct bw_iface_commands *commands, uint32_t command_count,
                        const struct bw_iface_dependency *dependencies, uint32_t dependency_count,
                        struct bw_err *err);
    /* With queue_submit: queues of this interface will depend on submissions of `producer`, a queue of
     * another interface of the same kind and bw_sys, from its next one on. Once for each pair will do, and
     * more do no harm. One thread at a time per context. */
    int (*queue_follow)(struct bw_iface *iface, struct bw_iface_queue *producer, struct bw_err *err);
    /* Whether they may depend on that one. */
    bool (*queue_follows)(struct bw_iface *iface, const struct bw_iface_queue *producer, uint64_t submission);
    /* Sleeps until an interrupt or fault of this GPU or the timeout: 1 something may have happened, 0
     * timeout, -errno. An interrupt that comes while nobody waits is kept for the next call; one that comes
     * while several threads wait wakes those and is gone: with more than one waiter look at the condition
     * again at times. */
    int (*wait_interrupt)(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err);
    /* The word and event number that a queue writes and raises to wake wait_interrupt. mailbox_va 0: queues
     * cannot (another context of this process holds the KFD's event page); wait_interrupt then returns 1
     * every millisecond. */
    void (*interrupt_target)(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id);
    /* Non-blocking: what broke, kind NONE when nothing did. Clears what it reports. Of several faults the
     * first is told. */
    int (*query_fault)(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err);
    /* What the queue is at. NULL, or -ENOTSUP: the interface cannot tell, as the KFD cannot; a mock can. */
    int (*queue_look)(struct bw_iface *iface, const struct bw_iface_queue *queue, struct bw_queue_view *view);
    /* -ENOTSUP: the kernel cannot tell. */
    int (*available_memory)(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err);
    /* Queues and memory must be gone. In a child of fork every call gives -ESTALE and close only forgets. */
    void (*close)(struct bw_iface *iface);
};

/* Implementations embed this first. All ops may be called from any thread. */
struct bw_iface {
    const struct bw_iface_ops *ops;
    struct bw_sys *sys;
    struct bw_iface_properties properties;
};

/* One entry per GPU that the interface can see; `why` is empty when it can be opened. */
struct bw_iface_listing {
    struct bw_iface_properties properties;
    char why[256];
};

/* KFD: index counts GPU nodes from 0. -ENODEV: no such node or no /dev/kfd (the error says which, and what to
 * do); -EACCES, -EPERM: no permission; -ENOTSUP: interface version; -EBUSY: another bw_sys of this process
 * has had the GPU; -ESTALE: forked child; -EPROTO: the kernel's files or answers make no sense; others as the
 * kernel gives them. Opening a GPU twice through one bw_sys shares its address space. What the kernel keeps
 * per process stays open until bw_sys_destroy. */
int bw_kfd_open(struct bw_sys *sys, uint32_t index, struct bw_iface **iface, struct bw_err *err);
/* Returns the number of GPU nodes (entry called for each) or -errno. */
int bw_kfd_list(struct bw_sys *sys, int (*entry)(void *user, const struct bw_iface_listing *listing),
                void *user, struct bw_err *err);

/* amdgpu's render nodes, without the KFD: the same, in order of their minor numbers. Every opening has an
 * address space of its own. -ENOTSUP also: the kernel does not tell which architecture it is (before Linux
 * 6.2), or bellwire does not know it. */
int bw_drm_open(struct bw_sys *sys, uint32_t index, struct bw_iface **iface, struct bw_err *err);
int bw_drm_list(struct bw_sys *sys, int (*entry)(void *user, const struct bw_iface_listing *listing),
                void *user, struct bw_err *err);

#endif
