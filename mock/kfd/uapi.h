/* The KFD's ioctl arguments as the mock understands them. Written from ROCm's user-space copy of the
 * interface (ROCT-Thunk-Interface, include/hsakmt/linux/kfd_ioctl.h, version 1.16), not from the kernel
 * header that iface/ follows: where both sides agree, two sources agree. */
#ifndef BW_MOCK_KFD_UAPI_H
#define BW_MOCK_KFD_UAPI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOCK_KFD_VERSION_MAJOR = 1,
    MOCK_KFD_VERSION_MINOR = 16,
    MOCK_KFD_QUEUE_PERCENTAGE_MAX = 100,
    MOCK_KFD_QUEUE_PRIORITY_MAX = 15,
    MOCK_KFD_APERTURES_OLD = 7, /* NUM_OF_SUPPORTED_GPUS of the old apertures call */
    MOCK_KFD_SIGNAL_EVENTS = 4096,
    MOCK_KFD_TIMEOUT_INFINITE = -1,
};

enum mock_kfd_queue_type {
    MOCK_KFD_QUEUE_COMPUTE = 0,
    MOCK_KFD_QUEUE_SDMA = 1,
    MOCK_KFD_QUEUE_COMPUTE_AQL = 2,
    MOCK_KFD_QUEUE_SDMA_XGMI = 3,
};

enum mock_kfd_event_type {
    MOCK_KFD_EVENT_SIGNAL = 0,
    MOCK_KFD_EVENT_HW_EXCEPTION = 3,
    MOCK_KFD_EVENT_DEBUG = 5,
    MOCK_KFD_EVENT_MEMORY = 8,
};

enum { MOCK_KFD_WAIT_COMPLETE = 0, MOCK_KFD_WAIT_TIMEOUT = 1, MOCK_KFD_WAIT_FAIL = 2 };
enum { MOCK_KFD_RESET_WHOLE_GPU = 0, MOCK_KFD_RESET_ENGINE = 1 };

#define MOCK_KFD_ALLOC_VRAM          (1u << 0)
#define MOCK_KFD_ALLOC_GTT           (1u << 1)
#define MOCK_KFD_ALLOC_USERPTR       (1u << 2)
#define MOCK_KFD_ALLOC_DOORBELL      (1u << 3)
#define MOCK_KFD_ALLOC_MMIO_REMAP    (1u << 4)
#define MOCK_KFD_ALLOC_CONTIGUOUS    (1u << 23)
#define MOCK_KFD_ALLOC_EXT_COHERENT  (1u << 24)
#define MOCK_KFD_ALLOC_UNCACHED      (1u << 25)
#define MOCK_KFD_ALLOC_COHERENT      (1u << 26)
#define MOCK_KFD_ALLOC_AQL_QUEUE_MEM (1u << 27)
#define MOCK_KFD_ALLOC_NO_SUBSTITUTE (1u << 28)
#define MOCK_KFD_ALLOC_PUBLIC        (1u << 29)
#define MOCK_KFD_ALLOC_EXECUTABLE    (1u << 30)
#define MOCK_KFD_ALLOC_WRITABLE      (1u << 31)

/* mmap offsets on /dev/kfd (kfd_priv.h): type in the top two bits, GPU id from bit 46 on. */
#define MOCK_KFD_MMAP_DOORBELL  (3ull << 62)
#define MOCK_KFD_MMAP_EVENTS    (2ull << 62)
#define MOCK_KFD_MMAP_TYPES     (3ull << 62)
#define MOCK_KFD_MMAP_GPU_SHIFT 46

struct mock_kfd_get_version_args {
    uint32_t major_version, minor_version;
};

struct mock_kfd_create_queue_args {
    uint64_t ring_base_address;
    uint64_t write_pointer_address, read_pointer_address;
    uint64_t doorbell_offset; /* out */
    uint32_t ring_size;
    uint32_t gpu_id;
    uint32_t queue_type;
    uint32_t queue_percentage;
    uint32_t queue_priority;
    uint32_t queue_id; /* out */
    uint64_t eop_buffer_address, eop_buffer_size;
    uint64_t ctx_save_restore_address;
    uint32_t ctx_save_restore_size;
    uint32_t ctl_stack_size;
};

struct mock_kfd_destroy_queue_args {
    uint32_t queue_id, pad;
};

struct mock_kfd_update_queue_args {
    uint64_t ring_base_address;
    uint32_t queue_id;
    uint32_t ring_size;
    uint32_t queue_percentage;
    uint32_t queue_priority;
};

struct mock_kfd_set_memory_policy_args {
    uint64_t alternate_aperture_base, alternate_aperture_size;
    uint32_t gpu_id;
    uint32_t default_policy, alternate_policy;
    uint32_t pad;
};

struct mock_kfd_get_clock_counters_args {
    uint64_t gpu_clock_counter, cpu_clock_counter, system_clock_counter, system_clock_freq;
    uint32_t gpu_id, pad;
};

struct mock_kfd_apertures {
    uint64_t lds_base, lds_limit;
    uint64_t scratch_base, scratch_limit;
    uint64_t gpuvm_base, gpuvm_limit;
    uint32_t gpu_id, pad;
};

struct mock_kfd_get_process_apertures_args {
    struct mock_kfd_apertures apertures[MOCK_KFD_APERTURES_OLD];
    uint32_t num_of_nodes, pad;
};

struct mock_kfd_get_process_apertures_new_args {
    uint64_t apertures_pointer;
    uint32_t num_of_nodes, pad;
};

struct mock_kfd_create_event_args {
    uint64_t event_page_offset;
    uint32_t event_trigger_data;
    uint32_t event_type;
    uint32_t auto_reset;
    uint32_t node_id;
    uint32_t event_id;
    uint32_t event_slot_index;
};

struct mock_kfd_event_id_args { /* destroy, set, reset */
    uint32_t event_id, pad;
};

struct mock_kfd_memory_exception {
    uint32_t not_present, read_only, no_execute, imprecise;
    uint64_t va;
    uint32_t gpu_id;
    uint32_t error_type;
};

struct mock_kfd_hw_exception {
    uint32_t reset_type, reset_cause, memory_lost, gpu_id;
};

struct mock_kfd_event_data {
    union {
        struct mock_kfd_memory_exception memory;
        struct mock_kfd_hw_exception hw;
        uint64_t last_event_age; /* signal events; in and out */
    };
    uint64_t extension;
    uint32_t event_id, pad;
};

struct mock_kfd_wait_events_args {
    uint64_t events_pointer;
    uint32_t num_events;
    uint32_t wait_for_all;
    uint32_t timeout_ms;
    uint32_t wait_result;
};

struct mock_kfd_set_scratch_backing_va_args {
    uint64_t va_addr;
    uint32_t gpu_id, pad;
};

struct mock_kfd_get_tile_config_args {
    uint64_t tile_config_pointer, macro_tile_config_pointer;
    uint32_t num_tile_configs, num_macro_tile_configs;
    uint32_t gpu_id;
    uint32_t gb_addr_config, num_banks, num_ranks;
};

struct mock_kfd_set_trap_handler_args {
    uint64_t tba_addr, tma_addr;
    uint32_t gpu_id, pad;
};

struct mock_kfd_acquire_vm_args {
    uint32_t drm_fd, gpu_id;
};

struct mock_kfd_alloc_memory_args {
    uint64_t va_addr;
    uint64_t size;
    uint64_t handle;      /* out */
    uint64_t mmap_offset; /* in: user pointer; out: mmap offset */
    uint32_t gpu_id;
    uint32_t flags;
};

struct mock_kfd_free_memory_args {
    uint64_t handle;
};

struct mock_kfd_map_memory_args { /* map and unmap */
    uint64_t handle;
    uint64_t device_ids_pointer;
    uint32_t n_devices;
    uint32_t n_success; /* in and out */
};

struct mock_kfd_set_xnack_mode_args {
    int32_t xnack_enabled;
};

struct mock_kfd_get_available_memory_args {
    uint64_t available;
    uint32_t gpu_id, pad;
};

struct mock_kfd_runtime_enable_args {
    uint64_t r_debug;
    uint32_t mode_mask;
    uint32_t capabilities_mask;
};

static_assert(sizeof(struct mock_kfd_create_queue_args) == 88, "create_queue");
static_assert(offsetof(struct mock_kfd_create_queue_args, eop_buffer_address) == 56, "create_queue");
static_assert(sizeof(struct mock_kfd_update_queue_args) == 24, "update_queue");
static_assert(sizeof(struct mock_kfd_set_memory_policy_args) == 32, "set_memory_policy");
static_assert(sizeof(struct mock_kfd_get_clock_counters_args) == 40, "get_clock_counters");
static_assert(sizeof(struct mock_kfd_apertures) == 56, "apertures");
static_assert(sizeof(struct mock_kfd_get_process_apertures_args) == 400, "get_process_apertures");
static_assert(sizeof(struct mock_kfd_create_event_args) == 32, "create_event");
static_assert(sizeof(struct mock_kfd_memory_exception) == 32, "memory exception");
static_assert(sizeof(struct mock_kfd_event_data) == 48, "event_data");
static_assert(offsetof(struct mock_kfd_event_data, event_id) == 40, "event_data");
static_assert(sizeof(struct mock_kfd_wait_events_args) == 24, "wait_events");
static_assert(sizeof(struct mock_kfd_get_tile_config_args) == 40, "get_tile_config");
static_assert(sizeof(struct mock_kfd_alloc_memory_args) == 40, "alloc_memory");
static_assert(sizeof(struct mock_kfd_map_memory_args) == 24, "map_memory");
static_assert(sizeof(struct mock_kfd_get_available_memory_args) == 16, "available_memory");
static_assert(sizeof(struct mock_kfd_runtime_enable_args) == 16, "runtime_enable");

#endif
