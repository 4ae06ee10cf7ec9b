/* Inside of the KFD interface, shared by its files:
 *
 *   kfd.c          open, list, close    kfd_process.c  what the kernel keeps once per process, and ioctls
 *   kfd_memory.c   buffers              kfd_event.c    interrupts and faults
 *   kfd_queue.c    queues               kfd_topology.c, kfd_sizes.c: see kfd_topology.h
 *
 * The KFD knows one process, however often /dev/kfd is opened: a GPU's address space belongs to the first
 * render node descriptor that acquired it, and there is one event page, until the process ends
 * (kfd_process.c, kfd_events.c of the kernel). So these hang off the struct bw_sys and live until
 * bw_sys_destroy; closing a GPU frees only what that opening made.
 *
 * Not called: SET_MEMORY_POLICY (apertures of gfx7 and gfx8), SET_SCRATCH_BACKING_VA (schedulers without
 * firmware; scratch comes with the dispatch), SET_TRAP_HANDLER (there is none). */
#ifndef BW_IFACE_KFD_H
#define BW_IFACE_KFD_H

#include <pthread.h>

#include "base/vec.h"
#include "iface/iface.h"
#include "iface/kfd_topology.h"
#include "iface/kfd_uapi.h"
#include "iface/numa.h"
#include "mem/interval.h"
#include "mem/va_space.h"

#define BW_KFD_PATH "/dev/kfd"

enum {
    BW_KFD_PAGE_BYTES = 4096,
    /* A process's doorbells of one GPU: 1024 of 8 bytes (kfd_doorbell_process_slice of the kernel). */
    BW_KFD_DOORBELL_BYTES = 0x2000,
    BW_KFD_EVENT_PAGE_BYTES = BW_KFD_SIGNAL_EVENTS_MAX * 8,
};

/* One GPU of this process. Guarded by bw_kfd_process.lock. */
struct bw_kfd_gpu {
    uint32_t gpu_id;
    uint32_t users;
    struct bw_numa numa;
    int render_fd;              /* -1 until acquired; then kept: the address space belongs to it */
    struct bw_region doorbells; /* size 0 until the first queue */
};

/* A buffer as the kernel knows it. */
struct bw_kfd_buffer {
    uint64_t va, size_bytes, handle;
    uint32_t flags;  /* enum bw_iface_memory_flags */
    uint32_t gpu_id; /* whose memory; the first of mapped */
    bool own_va;     /* out of process.va, not the caller's address */
    bool cpu_mapped;
    bool queue_in_use;       /* ring of a living queue */
    BW_VEC(uint32_t) mapped; /* gpu ids */
};

/* What a queue holds besides the caller's ring. */
struct bw_kfd_queue {
    struct bw_kfd_queue *next;                     /* of the process */
    struct bw_kfd_buffer *end_of_pipe, *save_area; /* NULL for SDMA */
    struct bw_kfd_buffer *ring, *read_page, *write_page;
    struct bw_region page; /* the doorbells of the GPU */
    uint64_t doorbell_offset;
};

struct bw_kfd_process {
    struct bw_sys *sys;
    pthread_mutex_t open_lock; /* one opener at a time; taken before lock */
    pthread_mutex_t lock; /* of everything below but fd and the version, which are constant once started */
    uint32_t users;       /* opened interfaces */
    bool started;         /* atomic: looked at without the lock */
    bool overdue;         /* atomic: the last repeated call was given up */
    int fd;
    uint32_t minor_version;
    struct bw_region fork_mark; /* reads as zero in a forked child */
    struct bw_va_space va;
    struct bw_interval_map buffers; /* address range -> struct bw_kfd_buffer */
    BW_VEC(struct bw_kfd_process_apertures) apertures;
    BW_VEC(struct bw_kfd_gpu *) gpus;
    struct bw_kfd_queue *queues;      /* those that could not be destroyed stay until the end */
    struct bw_kfd_buffer *event_page; /* NULL: none yet, or another context of this process set one */
};

struct bw_kfd_iface {
    struct bw_iface base;
    struct bw_kfd_process *process;
    struct bw_kfd_gpu *gpu;
    struct bw_kfd_node node;
    struct bw_kfd_queue_sizes sizes;
    int sizes_rc; /* of computing them: reported when a compute queue is wanted */

    uint32_t signal_event, memory_event, hw_event; /* ids, 0: not made */
    uint64_t hw_renewals;                          /* how often hw_event was made anew; fault_lock */
    uint32_t signal_data;                          /* what the interrupt carries */
    uint64_t mailbox_va;                           /* 0: no event page */

    pthread_mutex_t fault_lock; /* of the rest */
    struct bw_fault fault;      /* not yet reported */
    struct bw_fault reported;   /* the last one that was */
    uint64_t fault_epoch;       /* reports so far */
};

/* kfd_process.c */
int bw_kfd_process_get(struct bw_sys *sys, struct bw_kfd_process **process, struct bw_err *err);
void bw_kfd_process_put(struct bw_kfd_process *process);
/* Really closes and unmaps everything; no interface may be open. For bw_sys_destroy and tests. */
void bw_kfd_process_end(struct bw_sys *sys);
int bw_kfd_gpu_get(struct bw_kfd_process *process, const struct bw_kfd_node *node, struct bw_kfd_gpu **gpu,
                   struct bw_err *err);
void bw_kfd_gpu_put(struct bw_kfd_process *process, struct bw_kfd_gpu *gpu);
/* -ESTALE in a child of fork, whose parent opened the device. No system call. */
int bw_kfd_check_fork(const struct bw_kfd_process *process, struct bw_err *err);
bool bw_kfd_forked(const struct bw_kfd_process *process);
/* Repeats what signals interrupt or the KFD puts off, up to a deadline. Value or -errno, no error record. */
int bw_kfd_ioctl(struct bw_kfd_process *process, unsigned long request, void *argument);
/* Fills err for opening `path`: names the missing module, group or container option. */
int bw_kfd_fail_open(struct bw_err *err, int rc, const char *path);
void bw_kfd_render_path(const struct bw_kfd_node *node, char *path, uint32_t path_size);

/* kfd_memory.c */
int bw_kfd_buffer_create(struct bw_kfd_process *process, struct bw_kfd_gpu *gpu, uint64_t size_bytes,
                         uint32_t flags, uint64_t cpu_address, struct bw_kfd_buffer **buffer,
                         struct bw_region *cpu, struct bw_err *err);
int bw_kfd_buffer_free(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, struct bw_err *err);
int bw_kfd_buffer_map_gpu(struct bw_kfd_process *process, struct bw_kfd_buffer *buffer, uint32_t gpu_id,
                          struct bw_err *err);
/* The buffer that holds the address, NULL none. The caller holds process.lock. */
struct bw_kfd_buffer *bw_kfd_buffer_find(struct bw_kfd_process *process, uint64_t address);
int bw_kfd_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                 struct bw_iface_memory *memory, struct bw_err *err);
int bw_kfd_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err);
int bw_kfd_link(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                struct bw_err *err);
int bw_kfd_map_peer(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                    struct bw_err *err);
int bw_kfd_available_memory(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err);

/* kfd_event.c */
int bw_kfd_events_create(struct bw_kfd_iface *kfd, struct bw_err *err);
void bw_kfd_events_destroy(struct bw_kfd_iface *kfd);
int bw_kfd_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err);
void bw_kfd_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id);
int bw_kfd_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err);

/* kfd_queue.c */
int bw_kfd_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                        struct bw_iface_queue *queue, struct bw_err *err);
int bw_kfd_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err);

int bw_kfd_queue_look(struct bw_iface *iface, const struct bw_iface_queue *queue, struct bw_queue_view *view);

static inline struct bw_kfd_iface *bw_kfd_of(struct bw_iface *iface)
{
    return (struct bw_kfd_iface *)iface;
}

#endif
