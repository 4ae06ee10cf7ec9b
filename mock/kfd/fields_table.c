/* What a trace shows of each call's structure: all members but padding. Names: as in uapi.h, which has them
 * from the kernel's header. */
#include "base/bits.h"
#include "mock/kfd/uapi.h"
#include "mock/trace.h"

#define FIELD(type, member)                                       \
    {                                                             \
#member, offsetof(struct mock_kfd_##type##_args, member), \
            sizeof(((struct mock_kfd_##type##_args *)0)->member)  \
    }
#define CALL(number, ...)                           \
    [number] = (const struct bw_mock_trace_field[]) \
    {                                               \
        __VA_ARGS__,                                \
        {                                           \
            NULL, 0, 0                              \
        }                                           \
    }

static const struct bw_mock_trace_field *const calls[] = {
    CALL(0x01, FIELD(get_version, major_version), FIELD(get_version, minor_version)),
    CALL(0x02, FIELD(create_queue, ring_base_address), FIELD(create_queue, write_pointer_address),
         FIELD(create_queue, read_pointer_address), FIELD(create_queue, doorbell_offset),
         FIELD(create_queue, ring_size), FIELD(create_queue, gpu_id), FIELD(create_queue, queue_type),
         FIELD(create_queue, queue_percentage), FIELD(create_queue, queue_priority),
         FIELD(create_queue, queue_id), FIELD(create_queue, eop_buffer_address),
         FIELD(create_queue, eop_buffer_size), FIELD(create_queue, ctx_save_restore_address),
         FIELD(create_queue, ctx_save_restore_size), FIELD(create_queue, ctl_stack_size)),
    CALL(0x03, FIELD(destroy_queue, queue_id)),
    CALL(0x04, FIELD(set_memory_policy, alternate_aperture_base),
         FIELD(set_memory_policy, alternate_aperture_size), FIELD(set_memory_policy, gpu_id),
         FIELD(set_memory_policy, default_policy), FIELD(set_memory_policy, alternate_policy)),
    CALL(0x05, FIELD(get_clock_counters, gpu_clock_counter), FIELD(get_clock_counters, cpu_clock_counter),
         FIELD(get_clock_counters, system_clock_counter), FIELD(get_clock_counters, system_clock_freq),
         FIELD(get_clock_counters, gpu_id)),
    CALL(0x06, FIELD(get_process_apertures, num_of_nodes)),
    CALL(0x07, FIELD(update_queue, ring_base_address), FIELD(update_queue, queue_id),
         FIELD(update_queue, ring_size), FIELD(update_queue, queue_percentage),
         FIELD(update_queue, queue_priority)),
    CALL(0x08, FIELD(create_event, event_page_offset), FIELD(create_event, event_trigger_data),
         FIELD(create_event, event_type), FIELD(create_event, auto_reset), FIELD(create_event, node_id),
         FIELD(create_event, event_id), FIELD(create_event, event_slot_index)),
    CALL(0x09, FIELD(event_id, event_id)),
    CALL(0x0a, FIELD(event_id, event_id)),
    CALL(0x0b, FIELD(event_id, event_id)),
    CALL(0x0c, FIELD(wait_events, events_pointer), FIELD(wait_events, num_events),
         FIELD(wait_events, wait_for_all), FIELD(wait_events, timeout_ms), FIELD(wait_events, wait_result)),
    CALL(0x11, FIELD(set_scratch_backing_va, va_addr), FIELD(set_scratch_backing_va, gpu_id)),
    CALL(0x12, FIELD(get_tile_config, tile_config_pointer), FIELD(get_tile_config, macro_tile_config_pointer),
         FIELD(get_tile_config, num_tile_configs), FIELD(get_tile_config, num_macro_tile_configs),
         FIELD(get_tile_config, gpu_id), FIELD(get_tile_config, gb_addr_config),
         FIELD(get_tile_config, num_banks), FIELD(get_tile_config, num_ranks)),
    CALL(0x13, FIELD(set_trap_handler, tba_addr), FIELD(set_trap_handler, tma_addr),
         FIELD(set_trap_handler, gpu_id)),
    CALL(0x14, FIELD(get_process_apertures_new, apertures_pointer),
         FIELD(get_process_apertures_new, num_of_nodes)),
    CALL(0x15, FIELD(acquire_vm, drm_fd), FIELD(acquire_vm, gpu_id)),
    CALL(0x16, FIELD(alloc_memory, va_addr), FIELD(alloc_memory, size), FIELD(alloc_memory, handle),
         FIELD(alloc_memory, mmap_offset), FIELD(alloc_memory, gpu_id), FIELD(alloc_memory, flags)),
    CALL(0x17, FIELD(free_memory, handle)),
    CALL(0x18, FIELD(map_memory, handle), FIELD(map_memory, device_ids_pointer), FIELD(map_memory, n_devices),
         FIELD(map_memory, n_success)),
    CALL(0x19, FIELD(map_memory, handle), FIELD(map_memory, device_ids_pointer), FIELD(map_memory, n_devices),
         FIELD(map_memory, n_success)),
    CALL(0x21, FIELD(set_xnack_mode, xnack_enabled)),
    CALL(0x23, FIELD(get_available_memory, available), FIELD(get_available_memory, gpu_id)),
    CALL(0x25, FIELD(runtime_enable, r_debug), FIELD(runtime_enable, mode_mask),
         FIELD(runtime_enable, capabilities_mask)),
};

const struct bw_mock_trace_field *bw_mock_kfd_fields(uint32_t number)
{
    return number < BW_COUNT_OF(calls) ? calls[number] : NULL;
}
