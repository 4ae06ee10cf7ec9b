/* Inside of the DRM interface: amdgpu's render node and its ioctl CS, for kernels, containers and users that
 * have no KFD. Shared by its files:
 *
 *   drm.c         open, list, close      drm_memory.c  buffers and their addresses
 *   drm_device.c  what the GPU is        drm_queue.c   contexts and submission
 *   drm_share.c  memory for other GPUs   drm_sync.c    timelines for other GPUs' queues
 *                                        drm_wait.c    waiting and faults
 *
 * A queue is a context of its own with one ring in it: in order by itself, and one that makes the GPU hang
 * takes no other with it. The kernel deals contexts out to its few hardware rings, on which one waits behind
 * another, so a command buffer must never wait for a later submission: there is no waiting inside of one. A
 * submission as a whole waits: the kernel gives it to a ring once what it depends on is done.
 *
 * Command buffers run unprivileged in this file's address space. They may set the state of compute and
 * whatever a user queue of the KFD may; writing other registers ends the job (gfx_v11_0_priv_reg_irq).
 * Registers are undefined when one begins. The kernel puts the address space's switch in front of each
 * submission, the cache invalidation that AMDGPU_IB_FLAG_EMIT_MEM_SYNC asks for in front of its command
 * buffer, and behind it a write back of L2 and its fence, with the interrupt; interrupts of the command
 * buffer's own go unnoticed.
 *
 * Device memory is "always valid" in its address space, so that a submission needs no list of it; the kernel
 * shares such buffers with no other GPU. Host memory is shared, and the kernel has a list of it that each
 * submission names. */
#ifndef BW_IFACE_DRM_H
#define BW_IFACE_DRM_H

#include <pthread.h>
#include <stdatomic.h>

#include <amdgpu_drm.h>

#include "base/vec.h"
#include "iface/iface.h"
#include "iface/numa.h"
#include "mem/va_space.h"

enum {
    BW_DRM_PAGE_BYTES = 4096,
    BW_DRM_MINORS = 64, /* render nodes of one driver: minors 128 to 191 */
    BW_DRM_MINOR_FIRST = 128,
    /* What libdrm's header of Debian 12 does not have yet. */
    BW_DRM_INFO_GPUVM_FAULT = 0x23,
    BW_DRM_MINOR_GPUVM_FAULT = 55, /* interface 3.x from which the kernel answers it */
};

/* struct drm_amdgpu_info_gpuvm_fault of newer headers. */
struct bw_drm_gpuvm_fault {
    uint64_t address;
    uint32_t status, hub;
};

/* A queue's timeline as another file sees it. */
struct bw_drm_reader {
    uint64_t serial; /* of the interface; 0: none */
    uint32_t handle;
};

struct bw_drm_queue {
    struct bw_drm_queue *next; /* of the interface */
    struct bw_drm_iface *drm;
    uint32_t context_id, ip_type;
    struct bw_iface_memory page; /* the kernel writes the number of the last finished submission there */
    _Atomic uint64_t submitted;  /* number of the last one */
    bool told;                   /* query_fault reported its end */
    /* Once queues of other GPUs are to wait for this one; by the thread that submits: */
    uint32_t timeline;                           /* a syncobj; 0: none */
    uint64_t timeline_from;                      /* submissions after this one signal it, by their number */
    struct bw_drm_reader readers[BW_DRM_MINORS]; /* by the other's render node */
};

struct bw_drm_buffer;

struct bw_drm_iface {
    struct bw_iface base;
    struct bw_numa numa;
    int fd;
    bool overdue;           /* the last ioctl was put off for too long: bw_sys_ioctl */
    uint32_t minor_version; /* of interface 3 */
    uint64_t serial;        /* of this opening: no other one of the bw_sys has it, now or later */
    uint64_t va_first, va_last;
    uint32_t compute_rings, dma_rings; /* that contexts have */
    struct bw_region fork_mark;
    _Atomic uint32_t references; /* the opener's, and one for each buffer of another GPU that it reaches */
    _Atomic uint32_t list;       /* the kernel's handle of what stands in listed; 0: none yet */
    pthread_mutex_t share_lock;  /* who else reaches this GPU's buffers; before lock, anybody's */
    pthread_mutex_t lock;        /* of the rest */
    struct bw_va_space va;
    BW_VEC(struct drm_amdgpu_bo_list_entry) listed; /* what is not always valid */
    struct bw_drm_queue *queues;
    struct bw_drm_buffer *buffers;
    struct bw_drm_gpuvm_fault fault; /* as last reported */
};

static inline struct bw_drm_iface *bw_drm_of(struct bw_iface *iface)
{
    return (struct bw_drm_iface *)iface;
}

/* drm.c */
/* -ESTALE in a child of fork, whose parent opened the device. No system call. */
int bw_drm_check_fork(const struct bw_drm_iface *drm, struct bw_err *err);
/* Value or -errno, no error record. */
int bw_drm_ioctl(struct bw_drm_iface *drm, unsigned long request, void *argument);
int bw_drm_info(struct bw_drm_iface *drm, struct drm_amdgpu_info *request, void *data, uint32_t size_bytes);

/* Ends it with the last reference. */
void bw_drm_unref(struct bw_drm_iface *drm);

/* drm_device.c: fills drm->base.properties, addresses and rings. 0, -ENOTSUP, -EPROTO or what the kernel
 * says. */
int bw_drm_device_read(struct bw_drm_iface *drm, struct bw_err *err);

/* drm_memory.c */
int bw_drm_alloc(struct bw_iface *iface, uint64_t size_bytes, uint32_t flags, uint64_t cpu_address,
                 struct bw_iface_memory *memory, struct bw_err *err);
int bw_drm_free(struct bw_iface *iface, struct bw_iface_memory *memory, struct bw_err *err);
int bw_drm_link(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_link *link,
                struct bw_err *err);
int bw_drm_map_peer(struct bw_iface *iface, struct bw_iface *owner, struct bw_iface_memory *memory,
                    struct bw_err *err);
int bw_drm_available_memory(struct bw_iface *iface, uint64_t *available_bytes, struct bw_err *err);
/* Frees the records of what was not, or could not be freed: the kernel ends it with the file. */
void bw_drm_buffers_forget(struct bw_drm_iface *drm);
/* GEM's handle of what alloc gave out. */
uint32_t bw_drm_handle(const struct bw_iface_memory *memory);

/* drm_share.c: the list, and what other GPUs reach. */
int bw_drm_list_add(struct bw_drm_iface *drm, uint32_t handle, struct bw_err *err);
int bw_drm_list_remove(struct bw_drm_iface *drm, uint32_t handle, struct bw_err *err);
/* A buffer of another interface, imported. */
struct bw_drm_import {
    struct bw_drm_iface *drm; /* who reaches it */
    uint32_t handle;
    bool listed, mapped;
};
/* After a failure import->mapped says whether the address is still taken there. */
int bw_drm_import_make(struct bw_drm_iface *owner, uint32_t handle, const struct drm_amdgpu_gem_va *place,
                       struct bw_drm_iface *drm, struct bw_drm_import *import, struct bw_err *err);
/* Whatever fails, the import is over; what the kernel still has of it goes with the file. import->mapped: the
 * address is still taken there, and must not be used again. */
int bw_drm_import_drop(struct bw_drm_import *import, const struct drm_amdgpu_gem_va *place,
                       struct bw_err *err);

/* drm_queue.c */
int bw_drm_queue_create(struct bw_iface *iface, const struct bw_iface_queue_request *request,
                        struct bw_iface_queue *queue, struct bw_err *err);
int bw_drm_queue_destroy(struct bw_iface *iface, struct bw_iface_queue *queue, struct bw_err *err);
int bw_drm_queue_submit(struct bw_iface *iface, struct bw_iface_queue *queue,
                        const struct bw_iface_commands *commands, uint32_t command_count,
                        const struct bw_iface_dependency *dependencies, uint32_t dependency_count,
                        struct bw_err *err);
int bw_drm_queue_look(struct bw_iface *iface, const struct bw_iface_queue *queue, struct bw_queue_view *view);

/* drm_sync.c */
int bw_drm_queue_follow(struct bw_iface *iface, struct bw_iface_queue *producer, struct bw_err *err);
bool bw_drm_queue_follows(struct bw_iface *iface, const struct bw_iface_queue *producer, uint64_t submission);
/* The handle of drm's file for the producer's timeline; 0: none. */
uint32_t bw_drm_timeline_of(const struct bw_drm_iface *drm, const struct bw_drm_queue *producer);
int bw_drm_timeline_end(struct bw_drm_queue *queue, struct bw_err *err);

/* drm_wait.c */
int bw_drm_wait_interrupt(struct bw_iface *iface, uint64_t timeout_ns, struct bw_err *err);
void bw_drm_interrupt_target(struct bw_iface *iface, uint64_t *mailbox_va, uint32_t *event_id);
int bw_drm_query_fault(struct bw_iface *iface, struct bw_fault *fault, struct bw_err *err);

#endif
