/* The part of the KFD's user interface that is used here. Read from include/uapi/linux/kfd_ioctl.h of
 * Linux 6.12 (interface 1.17); a test compares it with the header that the system has. Own definitions,
 * because Debian's header (1.11) lacks the newer calls and needs drm.h. All structs are shared with the
 * kernel: the asserts below fix their layout. */
#ifndef BW_IFACE_KFD_UAPI_H
#define BW_IFACE_KFD_UAPI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

struct bw_kfd_version_args {
    uint32_t major, minor;
};

enum bw_kfd_queue_type {
    BW_KFD_QUEUE_COMPUTE = 0,
    BW_KFD_QUEUE_SDMA = 1,
    BW_KFD_QUEUE_COMPUTE_AQL = 2,
    BW_KFD_QUEUE_SDMA_XGMI = 3,
};

enum {
    BW_KFD_QUEUE_PERCENTAGE_MAX = 100,
    BW_KFD_QUEUE_PRIORITY_MAX = 15,
    BW_KFD_QUEUE_RING_BYTES_MIN = 1024,
};

struct bw_kfd_create_queue_args {
    uint64_t ring_base_address;
    uint64_t write_pointer_address, read_pointer_address;
    uint64_t doorbell_offset; /* from the kernel */
    uint32_t ring_size;
    uint32_t gpu_id;
    uint32_t queue_type;
    uint32_t queue_percentage; /* bits 0-7 percent, 8-15 target XCC of a PM4 queue */
    uint32_t queue_priority;
    uint32_t queue_id; /* from the kernel */
    uint64_t eop_buffer_address, eop_buffer_size;
    uint64_t ctx_save_restore_address;
    uint32_t ctx_save_restore_size;
    uint32_t ctl_stack_size;
    uint32_t sdma_engine_id, pad; /* from 1.16 on; the KFD goes by the call's number and takes any length */
};

struct bw_kfd_destroy_queue_args {
    uint32_t queue_id, pad;
};

enum bw_kfd_event_type {
    BW_KFD_EVENT_SIGNAL = 0,
    BW_KFD_EVENT_HW_EXCEPTION = 3,
    BW_KFD_EVENT_MEMORY = 8,
};

/* Events of one process, and 8-byte slots of its event page. */
enum { BW_KFD_SIGNAL_EVENTS_MAX = 4096 };

struct bw_kfd_create_event_args {
    uint64_t event_page_offset;  /* in: handle of the event page, at the first signal event only */
    uint32_t event_trigger_data; /* out: what the interrupt carries */
    uint32_t event_type;
    uint32_t auto_reset;
    uint32_t node_id;
    uint32_t event_id;         /* out */
    uint32_t event_slot_index; /* out */
};

struct bw_kfd_destroy_event_args {
    uint32_t event_id, pad;
};

struct bw_kfd_memory_exception {
    uint32_t not_present, read_only, no_execute, imprecise;
    uint64_t va;
    uint32_t gpu_id;
    uint32_t error_type; /* 0 none, 1 SRAM ECC, 2 poison consumed, 3 GPU hang */
};

struct bw_kfd_hw_exception {
    uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};

struct bw_kfd_event_data {
    union {
        struct bw_kfd_memory_exception memory;
        struct bw_kfd_hw_exception hw;
        uint64_t last_event_age; /* of signal events; 0: not used */
    };
    uint64_t extension;
    uint32_t event_id, pad;
};

enum bw_kfd_wait_result { BW_KFD_WAIT_COMPLETE = 0, BW_KFD_WAIT_TIMEOUT = 1, BW_KFD_WAIT_FAIL = 2 };

struct bw_kfd_wait_events_args {
    uint64_t events; /* struct bw_kfd_event_data array */
    uint32_t event_count;
    uint32_t wait_for_all;
    uint32_t timeout_ms; /* 0xffffffff: for ever */
    uint32_t result;
};

struct bw_kfd_process_apertures {
    uint64_t lds_base, lds_limit;
    uint64_t scratch_base, scratch_limit;
    uint64_t gpuvm_base, gpuvm_limit;
    uint32_t gpu_id, pad;
};

struct bw_kfd_apertures_args {
    uint64_t apertures; /* struct bw_kfd_process_apertures array */
    uint32_t count;     /* in: its size, 0 asks; out: entries */
    uint32_t pad;
};

struct bw_kfd_acquire_vm_args {
    uint32_t drm_fd, gpu_id;
};

#define BW_KFD_ALLOC_VRAM          (1u << 0)
#define BW_KFD_ALLOC_GTT           (1u << 1)
#define BW_KFD_ALLOC_USERPTR       (1u << 2)
#define BW_KFD_ALLOC_UNCACHED      (1u << 25)
#define BW_KFD_ALLOC_COHERENT      (1u << 26)
#define BW_KFD_ALLOC_NO_SUBSTITUTE (1u << 28)
#define BW_KFD_ALLOC_PUBLIC        (1u << 29)
#define BW_KFD_ALLOC_EXECUTABLE    (1u << 30)
#define BW_KFD_ALLOC_WRITABLE      (1u << 31)

struct bw_kfd_alloc_args {
    uint64_t va_addr, size;
    uint64_t handle;      /* from the kernel */
    uint64_t mmap_offset; /* in: CPU address of user memory; out: offset in the render node */
    uint32_t gpu_id;
    uint32_t flags;
};

struct bw_kfd_free_args {
    uint64_t handle;
};

/* MAP and UNMAP. The kernel counts up success_count, so that an interrupted call can be repeated as it is. */
struct bw_kfd_map_args {
    uint64_t handle;
    uint64_t gpu_ids; /* uint32_t array */
    uint32_t gpu_count, success_count;
};

struct bw_kfd_available_memory_args {
    uint64_t available;
    uint32_t gpu_id, pad;
};

enum { BW_KFD_RUNTIME_MODE_ENABLE = 1 };

struct bw_kfd_runtime_enable_args {
    uint64_t r_debug;
    uint32_t mode_mask, capabilities_mask;
};

#define BW_KFD_IOC_GET_VERSION      _IOR('K', 0x01, struct bw_kfd_version_args)
#define BW_KFD_IOC_CREATE_QUEUE     _IOWR('K', 0x02, struct bw_kfd_create_queue_args)
#define BW_KFD_IOC_DESTROY_QUEUE    _IOWR('K', 0x03, struct bw_kfd_destroy_queue_args)
#define BW_KFD_IOC_CREATE_EVENT     _IOWR('K', 0x08, struct bw_kfd_create_event_args)
#define BW_KFD_IOC_DESTROY_EVENT    _IOW('K', 0x09, struct bw_kfd_destroy_event_args)
#define BW_KFD_IOC_WAIT_EVENTS      _IOWR('K', 0x0c, struct bw_kfd_wait_events_args)
#define BW_KFD_IOC_GET_APERTURES    _IOWR('K', 0x14, struct bw_kfd_apertures_args)
#define BW_KFD_IOC_ACQUIRE_VM       _IOW('K', 0x15, struct bw_kfd_acquire_vm_args)
#define BW_KFD_IOC_ALLOC_MEMORY     _IOWR('K', 0x16, struct bw_kfd_alloc_args)
#define BW_KFD_IOC_FREE_MEMORY      _IOW('K', 0x17, struct bw_kfd_free_args)
#define BW_KFD_IOC_MAP_MEMORY       _IOWR('K', 0x18, struct bw_kfd_map_args)
#define BW_KFD_IOC_UNMAP_MEMORY     _IOWR('K', 0x19, struct bw_kfd_map_args)
#define BW_KFD_IOC_AVAILABLE_MEMORY _IOWR('K', 0x23, struct bw_kfd_available_memory_args)
#define BW_KFD_IOC_RUNTIME_ENABLE   _IOWR('K', 0x25, struct bw_kfd_runtime_enable_args)

/* Interface minor versions (major 1) from which a call exists. */
enum { BW_KFD_MAJOR = 1, BW_KFD_MINOR_AVAILABLE_MEMORY = 9, BW_KFD_MINOR_RUNTIME_ENABLE = 14 };

#define BW_KFD_LAYOUT(type, size, field, offset)                                              \
    _Static_assert(sizeof(struct type) == (size) && offsetof(struct type, field) == (offset), \
                   "shared with the kernel")

BW_KFD_LAYOUT(bw_kfd_version_args, 8, minor, 4);
BW_KFD_LAYOUT(bw_kfd_create_queue_args, 96, ctl_stack_size, 84);
BW_KFD_LAYOUT(bw_kfd_create_event_args, 32, event_slot_index, 28);
BW_KFD_LAYOUT(bw_kfd_memory_exception, 32, va, 16);
BW_KFD_LAYOUT(bw_kfd_hw_exception, 16, gpu_id, 12);
BW_KFD_LAYOUT(bw_kfd_event_data, 48, event_id, 40);
BW_KFD_LAYOUT(bw_kfd_wait_events_args, 24, result, 20);
BW_KFD_LAYOUT(bw_kfd_process_apertures, 56, gpu_id, 48);
BW_KFD_LAYOUT(bw_kfd_apertures_args, 16, count, 8);
BW_KFD_LAYOUT(bw_kfd_acquire_vm_args, 8, gpu_id, 4);
BW_KFD_LAYOUT(bw_kfd_alloc_args, 40, flags, 36);
BW_KFD_LAYOUT(bw_kfd_free_args, 8, handle, 0);
BW_KFD_LAYOUT(bw_kfd_map_args, 24, success_count, 20);
BW_KFD_LAYOUT(bw_kfd_available_memory_args, 16, gpu_id, 8);
BW_KFD_LAYOUT(bw_kfd_runtime_enable_args, 16, mode_mask, 8);

#endif
