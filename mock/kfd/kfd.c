#include "mock/kfd/kfd.h"

#include <errno.h>
#include <linux/ioctl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "mock/kfd/event.h"
#include "mock/trace.h"

/* The address range that user space gets. */
#define GPUVM_BASE  0x4000ull
#define GPUVM_LIMIT 0x7fffffffffffull

enum {
    GB_ADDR_CONFIG = 0x00000545,
    XNACK_QUERY = -1,
    RUNTIME_ENABLE_MODE = 1,
    RUNTIME_MODES = 3,
};

struct bw_mock_context *bw_mock_kfd_context(struct bw_mock_process *process, uint32_t gpu_id,
                                            const char *call, int *error)
{
    struct bw_mock_gpu *gpu = bw_mock_gpu_by_id(process->machine, gpu_id);
    if (!gpu) {
        *error = bw_mock_refuse(process->machine, -EINVAL, "%s: no GPU 0x%x", call, gpu_id);
        return NULL;
    }
    struct bw_mock_context *context = &process->contexts[gpu->index];
    if (!context->acquired) {
        *error = bw_mock_refuse(process->machine, -ENODEV, "%s: no ACQUIRE_VM on GPU 0x%x", call, gpu_id);
        return NULL;
    }
    return context;
}

static int get_version(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_get_version_args *args = data;
    args->major_version = MOCK_KFD_VERSION_MAJOR;
    args->minor_version = MOCK_KFD_VERSION_MINOR;
    return 0;
}

static int set_memory_policy(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_set_memory_policy_args *args = data;
    int error = 0;
    if (args->default_policy > 1 || args->alternate_policy > 1)
        return bw_mock_refuse(process->machine, -EINVAL, "SET_MEMORY_POLICY: policy %u or %u",
                              args->default_policy, args->alternate_policy);
    bw_mock_kfd_context(process, args->gpu_id, "SET_MEMORY_POLICY", &error);
    return error;
}

static int get_clock_counters(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_get_clock_counters_args *args = data;
    struct bw_mock *machine = process->machine;
    uint64_t now = bw_mock_clock_ns(machine);
    args->gpu_clock_counter = bw_mock_gpu_by_id(machine, args->gpu_id) ? bw_mock_gpu_clock(machine) : 0;
    args->cpu_clock_counter = now;
    args->system_clock_counter = now;
    args->system_clock_freq = 1000000000;
    return 0;
}

static struct mock_kfd_apertures apertures(const struct bw_mock_gpu *gpu)
{
    return (struct mock_kfd_apertures){
        .lds_base = BW_MOCK_LDS_APERTURE,
        .lds_limit = BW_MOCK_LDS_APERTURE | 0xffffffff,
        .scratch_base = BW_MOCK_SCRATCH_APERTURE,
        .scratch_limit = BW_MOCK_SCRATCH_APERTURE | 0xffffffff,
        .gpuvm_base = GPUVM_BASE,
        .gpuvm_limit = GPUVM_LIMIT,
        .gpu_id = gpu->gpu_id,
    };
}

static int get_process_apertures(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_get_process_apertures_args *args = data;
    struct bw_mock *machine = process->machine;
    args->num_of_nodes =
        machine->gpu_count < MOCK_KFD_APERTURES_OLD ? machine->gpu_count : MOCK_KFD_APERTURES_OLD;
    for (uint32_t i = 0; i < args->num_of_nodes; i++)
        args->apertures[i] = apertures(&machine->gpus[i]);
    return 0;
}

static int get_process_apertures_new(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_get_process_apertures_new_args *args = data;
    struct bw_mock *machine = process->machine;
    if (!args->num_of_nodes) {
        args->num_of_nodes = machine->gpu_count;
        return 0;
    }
    struct mock_kfd_apertures *out = (void *)(uintptr_t)args->apertures_pointer;
    if (!out)
        return bw_mock_refuse(machine, -EFAULT, "GET_PROCESS_APERTURES_NEW: no array");
    if (args->num_of_nodes > machine->gpu_count)
        args->num_of_nodes = machine->gpu_count;
    for (uint32_t i = 0; i < args->num_of_nodes; i++)
        out[i] = apertures(&machine->gpus[i]);
    return 0;
}

static int create_event(struct bw_mock_process *process, void *data)
{
    return bw_mock_events_create_event(process, data);
}

static int destroy_event(struct bw_mock_process *process, void *data)
{
    return bw_mock_events_destroy_event(process->events, ((struct mock_kfd_event_id_args *)data)->event_id);
}

static int set_event(struct bw_mock_process *process, void *data)
{
    return bw_mock_events_set(process->events, ((struct mock_kfd_event_id_args *)data)->event_id);
}

static int reset_event(struct bw_mock_process *process, void *data)
{
    return bw_mock_events_reset(process->events, ((struct mock_kfd_event_id_args *)data)->event_id);
}

static int wait_events(struct bw_mock_process *process, void *data)
{
    return bw_mock_events_wait(process->events, data);
}

static int set_scratch_backing_va(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_set_scratch_backing_va_args *args = data;
    int error = 0;
    struct bw_mock_context *context =
        bw_mock_kfd_context(process, args->gpu_id, "SET_SCRATCH_BACKING_VA", &error);
    if (context)
        context->scratch_va = args->va_addr;
    return error;
}

static int get_tile_config(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_get_tile_config_args *args = data;
    if (!bw_mock_gpu_by_id(process->machine, args->gpu_id))
        return bw_mock_refuse(process->machine, -EINVAL, "GET_TILE_CONFIG: no GPU 0x%x", args->gpu_id);
    args->gb_addr_config = GB_ADDR_CONFIG;
    args->num_banks = 0;
    args->num_ranks = 0;
    args->num_tile_configs = 0; /* none since gfx9 */
    args->num_macro_tile_configs = 0;
    return 0;
}

static int set_trap_handler(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_set_trap_handler_args *args = data;
    int error = 0;
    struct bw_mock_context *context = bw_mock_kfd_context(process, args->gpu_id, "SET_TRAP_HANDLER", &error);
    if (context) {
        context->trap_va = args->tba_addr;
        context->trap_memory_va = args->tma_addr;
    }
    return error;
}

static int acquire_vm(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_acquire_vm(process, data);
}

static int alloc_memory(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_alloc(process, data);
}

static int free_memory(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_free(process, data);
}

static int map_memory(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_map(process, data);
}

static int unmap_memory(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_unmap(process, data);
}

static int available_memory(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_available(process, data);
}

static int create_queue(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_create_queue(process, data);
}

static int destroy_queue(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_destroy_queue(process, ((struct mock_kfd_destroy_queue_args *)data)->queue_id);
}

static int update_queue(struct bw_mock_process *process, void *data)
{
    return bw_mock_kfd_update_queue(process, data);
}

static int svm(struct bw_mock_process *process, void *data)
{
    return bw_mock_refuse(process->machine, -EINVAL, "SVM: not supported by this kernel");
}

static int set_xnack_mode(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_set_xnack_mode_args *args = data;
    if (args->xnack_enabled == XNACK_QUERY || args->xnack_enabled == 0)
        args->xnack_enabled = 0;
    else
        return bw_mock_refuse(process->machine, -EPERM, "SET_XNACK_MODE: no retry faults on this GPU");
    return 0;
}

static int runtime_enable(struct bw_mock_process *process, void *data)
{
    struct mock_kfd_runtime_enable_args *args = data;
    if (args->mode_mask & ~(uint32_t)RUNTIME_MODES)
        return bw_mock_refuse(process->machine, -EINVAL, "RUNTIME_ENABLE: mode 0x%x", args->mode_mask);
    bool enable = args->mode_mask & RUNTIME_ENABLE_MODE;
    if (enable && process->runtime_enabled)
        return bw_mock_refuse(process->machine, -EBUSY, "RUNTIME_ENABLE: already enabled");
    if (enable && process->queues.count)
        return bw_mock_refuse(process->machine, -EEXIST, "RUNTIME_ENABLE: queues exist already");
    process->runtime_enabled = enable;
    return 0;
}

/* Locked calls run under machine.lock. */
static const struct {
    const char *name;
    int (*call)(struct bw_mock_process *process, void *data);
    uint16_t size;
    bool unlocked;
} calls[] = {
    [0x01] = {"GET_VERSION", get_version, sizeof(struct mock_kfd_get_version_args), false},
    [0x02] = {"CREATE_QUEUE", create_queue, sizeof(struct mock_kfd_create_queue_args), false},
    [0x03] = {"DESTROY_QUEUE", destroy_queue, sizeof(struct mock_kfd_destroy_queue_args), true},
    [0x04] = {"SET_MEMORY_POLICY", set_memory_policy, sizeof(struct mock_kfd_set_memory_policy_args), false},
    [0x05] = {"GET_CLOCK_COUNTERS", get_clock_counters, sizeof(struct mock_kfd_get_clock_counters_args),
              false},
    [0x06] = {"GET_PROCESS_APERTURES", get_process_apertures,
              sizeof(struct mock_kfd_get_process_apertures_args), false},
    [0x07] = {"UPDATE_QUEUE", update_queue, sizeof(struct mock_kfd_update_queue_args), false},
    [0x08] = {"CREATE_EVENT", create_event, sizeof(struct mock_kfd_create_event_args), false},
    [0x09] = {"DESTROY_EVENT", destroy_event, sizeof(struct mock_kfd_event_id_args), true},
    [0x0a] = {"SET_EVENT", set_event, sizeof(struct mock_kfd_event_id_args), true},
    [0x0b] = {"RESET_EVENT", reset_event, sizeof(struct mock_kfd_event_id_args), true},
    [0x0c] = {"WAIT_EVENTS", wait_events, sizeof(struct mock_kfd_wait_events_args), true},
    [0x11] = {"SET_SCRATCH_BACKING_VA", set_scratch_backing_va,
              sizeof(struct mock_kfd_set_scratch_backing_va_args), false},
    [0x12] = {"GET_TILE_CONFIG", get_tile_config, sizeof(struct mock_kfd_get_tile_config_args), false},
    [0x13] = {"SET_TRAP_HANDLER", set_trap_handler, sizeof(struct mock_kfd_set_trap_handler_args), false},
    [0x14] = {"GET_PROCESS_APERTURES_NEW", get_process_apertures_new,
              sizeof(struct mock_kfd_get_process_apertures_new_args), false},
    [0x15] = {"ACQUIRE_VM", acquire_vm, sizeof(struct mock_kfd_acquire_vm_args), false},
    [0x16] = {"ALLOC_MEMORY_OF_GPU", alloc_memory, sizeof(struct mock_kfd_alloc_memory_args), false},
    [0x17] = {"FREE_MEMORY_OF_GPU", free_memory, sizeof(struct mock_kfd_free_memory_args), false},
    [0x18] = {"MAP_MEMORY_TO_GPU", map_memory, sizeof(struct mock_kfd_map_memory_args), false},
    [0x19] = {"UNMAP_MEMORY_FROM_GPU", unmap_memory, sizeof(struct mock_kfd_map_memory_args), false},
    [0x20] = {"SVM", svm, 24, false},
    [0x21] = {"SET_XNACK_MODE", set_xnack_mode, sizeof(struct mock_kfd_set_xnack_mode_args), false},
    [0x23] = {"AVAILABLE_MEMORY", available_memory, sizeof(struct mock_kfd_get_available_memory_args), false},
    [0x25] = {"RUNTIME_ENABLE", runtime_enable, sizeof(struct mock_kfd_runtime_enable_args), false},
};

enum { ARGUMENT_BYTES_MAX = 512 };

const char *bw_mock_kfd_ioctl_name(uint32_t index)
{
    for (size_t i = 0; i < BW_COUNT_OF(calls); i++) {
        if (calls[i].name && !index--)
            return calls[i].name;
    }
    return NULL;
}

static int inject(struct bw_mock *machine, const char *name)
{
    char site[48];
    struct bw_mock_fault fault;
    snprintf(site, sizeof site, "ioctl.%s", name);
    switch (bw_mock_faults_check(&machine->faults, site, -1, &fault)) {
    case BW_MOCK_FAULT_FAIL:
        return bw_mock_refuse(machine, -fault.error, "%s: injected failure", name);
    case BW_MOCK_FAULT_DELAY:
        bw_mock_sleep_ns(machine, fault.delay_ns);
        return 0;
    default:
        return 0;
    }
}

static int call_run(struct bw_mock_process *process, unsigned number, void *data)
{
    pthread_mutex_t *lock = calls[number].unlocked ? NULL : &process->machine->lock;
    if (lock)
        pthread_mutex_lock(lock);
    int rc = calls[number].call(process, data);
    if (lock)
        pthread_mutex_unlock(lock);
    return rc;
}

int bw_mock_kfd_ioctl(struct bw_mock *machine, struct bw_mock_process *process, unsigned long request,
                      void *argument)
{
    unsigned number = _IOC_NR(request);
    _Alignas(8) uint8_t data[ARGUMENT_BYTES_MAX] = {0};
    if (_IOC_TYPE(request) != 'K' || number >= BW_COUNT_OF(calls) || !calls[number].call)
        return bw_mock_refuse(machine, -ENOTTY, "KFD ioctl 0x%lx: unknown", request);
    static_assert(sizeof(struct mock_kfd_get_process_apertures_args) <= ARGUMENT_BYTES_MAX, "room");
    /* Releases of the interface differ in the size of their structures: what the caller leaves out is zero,
     * what the kernel does not know is left alone. */
    size_t bytes = _IOC_SIZE(request) < calls[number].size ? _IOC_SIZE(request) : calls[number].size;
    if (!argument)
        return bw_mock_refuse(machine, -EFAULT, "%s: no argument", calls[number].name);
    memcpy(data, argument, bytes);
    int rc = inject(machine, calls[number].name);
    if (!rc)
        rc = call_run(process, number, data);
    bw_mock_trace_ioctl(machine, "kfd", calls[number].name, bw_mock_kfd_fields(number), data, rc);
    memcpy(argument, data, bytes);
    return rc;
}
