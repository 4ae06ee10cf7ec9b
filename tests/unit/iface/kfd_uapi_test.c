/* Goal: our reading of the KFD's interface agrees with the header of the system that this is built on. */
#include <linux/kfd_ioctl.h>

#include "iface/kfd_uapi.h"
#include "tests/check.h"

#define SAME_FIELD(ours, our_field, theirs, their_field)                            \
    (BW_EQ(offsetof(struct ours, our_field), offsetof(struct theirs, their_field)), \
     BW_EQ(sizeof(((struct ours *)0)->our_field), sizeof(((struct theirs *)0)->their_field)))

static void numbers(void)
{
    BW_EQ(BW_KFD_IOC_GET_VERSION, AMDKFD_IOC_GET_VERSION);
    /* Grew by sdma_engine_id after the header that Debian has. */
    BW_EQ(_IOC_NR(BW_KFD_IOC_CREATE_QUEUE), _IOC_NR(AMDKFD_IOC_CREATE_QUEUE));
    BW_EQ(_IOC_DIR(BW_KFD_IOC_CREATE_QUEUE), _IOC_DIR(AMDKFD_IOC_CREATE_QUEUE));
    BW_TRUE(_IOC_SIZE(BW_KFD_IOC_CREATE_QUEUE) >= _IOC_SIZE(AMDKFD_IOC_CREATE_QUEUE));
    BW_EQ(BW_KFD_IOC_DESTROY_QUEUE, AMDKFD_IOC_DESTROY_QUEUE);
    BW_EQ(BW_KFD_IOC_CREATE_EVENT, AMDKFD_IOC_CREATE_EVENT);
    BW_EQ(BW_KFD_IOC_DESTROY_EVENT, AMDKFD_IOC_DESTROY_EVENT);
    BW_EQ(BW_KFD_IOC_WAIT_EVENTS, AMDKFD_IOC_WAIT_EVENTS);
    BW_EQ(BW_KFD_IOC_GET_APERTURES, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW);
    BW_EQ(BW_KFD_IOC_ACQUIRE_VM, AMDKFD_IOC_ACQUIRE_VM);
    BW_EQ(BW_KFD_IOC_ALLOC_MEMORY, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU);
    BW_EQ(BW_KFD_IOC_FREE_MEMORY, AMDKFD_IOC_FREE_MEMORY_OF_GPU);
    BW_EQ(BW_KFD_IOC_MAP_MEMORY, AMDKFD_IOC_MAP_MEMORY_TO_GPU);
    BW_EQ(BW_KFD_IOC_UNMAP_MEMORY, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU);
    BW_EQ(BW_KFD_IOC_AVAILABLE_MEMORY, AMDKFD_IOC_AVAILABLE_MEMORY);
}

static void constants(void)
{
    BW_EQ(BW_KFD_QUEUE_COMPUTE, KFD_IOC_QUEUE_TYPE_COMPUTE);
    BW_EQ(BW_KFD_QUEUE_SDMA, KFD_IOC_QUEUE_TYPE_SDMA);
    BW_EQ(BW_KFD_QUEUE_COMPUTE_AQL, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
    BW_EQ(BW_KFD_QUEUE_PERCENTAGE_MAX, KFD_MAX_QUEUE_PERCENTAGE);
    BW_EQ(BW_KFD_QUEUE_PRIORITY_MAX, KFD_MAX_QUEUE_PRIORITY);
    BW_EQ(BW_KFD_QUEUE_RING_BYTES_MIN, KFD_MIN_QUEUE_RING_SIZE);
    BW_EQ(BW_KFD_EVENT_SIGNAL, KFD_IOC_EVENT_SIGNAL);
    BW_EQ(BW_KFD_EVENT_HW_EXCEPTION, KFD_IOC_EVENT_HW_EXCEPTION);
    BW_EQ(BW_KFD_EVENT_MEMORY, KFD_IOC_EVENT_MEMORY);
    BW_EQ(BW_KFD_SIGNAL_EVENTS_MAX, KFD_SIGNAL_EVENT_LIMIT);
    BW_EQ(BW_KFD_WAIT_COMPLETE, KFD_IOC_WAIT_RESULT_COMPLETE);
    BW_EQ(BW_KFD_WAIT_TIMEOUT, KFD_IOC_WAIT_RESULT_TIMEOUT);
    BW_EQ(BW_KFD_WAIT_FAIL, KFD_IOC_WAIT_RESULT_FAIL);
    BW_EQ(BW_KFD_ALLOC_VRAM, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
    BW_EQ(BW_KFD_ALLOC_GTT, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
    BW_EQ(BW_KFD_ALLOC_USERPTR, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR);
    BW_EQ(BW_KFD_ALLOC_UNCACHED, KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED);
    BW_EQ(BW_KFD_ALLOC_COHERENT, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT);
    BW_EQ(BW_KFD_ALLOC_NO_SUBSTITUTE, KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE);
    BW_EQ(BW_KFD_ALLOC_PUBLIC, KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
    BW_EQ(BW_KFD_ALLOC_EXECUTABLE, KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE);
    static const uint32_t writable = (uint32_t)KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE; /* 1 << 31 */
    BW_EQ(BW_KFD_ALLOC_WRITABLE, writable);
}

static void queue_fields(void)
{
    SAME_FIELD(bw_kfd_create_queue_args, ring_base_address, kfd_ioctl_create_queue_args, ring_base_address);
    SAME_FIELD(bw_kfd_create_queue_args, write_pointer_address, kfd_ioctl_create_queue_args,
               write_pointer_address);
    SAME_FIELD(bw_kfd_create_queue_args, read_pointer_address, kfd_ioctl_create_queue_args,
               read_pointer_address);
    SAME_FIELD(bw_kfd_create_queue_args, doorbell_offset, kfd_ioctl_create_queue_args, doorbell_offset);
    SAME_FIELD(bw_kfd_create_queue_args, ring_size, kfd_ioctl_create_queue_args, ring_size);
    SAME_FIELD(bw_kfd_create_queue_args, gpu_id, kfd_ioctl_create_queue_args, gpu_id);
    SAME_FIELD(bw_kfd_create_queue_args, queue_type, kfd_ioctl_create_queue_args, queue_type);
    SAME_FIELD(bw_kfd_create_queue_args, queue_percentage, kfd_ioctl_create_queue_args, queue_percentage);
    SAME_FIELD(bw_kfd_create_queue_args, queue_priority, kfd_ioctl_create_queue_args, queue_priority);
    SAME_FIELD(bw_kfd_create_queue_args, queue_id, kfd_ioctl_create_queue_args, queue_id);
    SAME_FIELD(bw_kfd_create_queue_args, eop_buffer_address, kfd_ioctl_create_queue_args, eop_buffer_address);
    SAME_FIELD(bw_kfd_create_queue_args, eop_buffer_size, kfd_ioctl_create_queue_args, eop_buffer_size);
    SAME_FIELD(bw_kfd_create_queue_args, ctx_save_restore_address, kfd_ioctl_create_queue_args,
               ctx_save_restore_address);
    SAME_FIELD(bw_kfd_create_queue_args, ctx_save_restore_size, kfd_ioctl_create_queue_args,
               ctx_save_restore_size);
    SAME_FIELD(bw_kfd_create_queue_args, ctl_stack_size, kfd_ioctl_create_queue_args, ctl_stack_size);
    SAME_FIELD(bw_kfd_destroy_queue_args, queue_id, kfd_ioctl_destroy_queue_args, queue_id);
}

static void memory_fields(void)
{
    SAME_FIELD(bw_kfd_alloc_args, va_addr, kfd_ioctl_alloc_memory_of_gpu_args, va_addr);
    SAME_FIELD(bw_kfd_alloc_args, size, kfd_ioctl_alloc_memory_of_gpu_args, size);
    SAME_FIELD(bw_kfd_alloc_args, handle, kfd_ioctl_alloc_memory_of_gpu_args, handle);
    SAME_FIELD(bw_kfd_alloc_args, mmap_offset, kfd_ioctl_alloc_memory_of_gpu_args, mmap_offset);
    SAME_FIELD(bw_kfd_alloc_args, gpu_id, kfd_ioctl_alloc_memory_of_gpu_args, gpu_id);
    SAME_FIELD(bw_kfd_alloc_args, flags, kfd_ioctl_alloc_memory_of_gpu_args, flags);
    SAME_FIELD(bw_kfd_free_args, handle, kfd_ioctl_free_memory_of_gpu_args, handle);
    SAME_FIELD(bw_kfd_map_args, handle, kfd_ioctl_map_memory_to_gpu_args, handle);
    SAME_FIELD(bw_kfd_map_args, gpu_ids, kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr);
    SAME_FIELD(bw_kfd_map_args, gpu_count, kfd_ioctl_map_memory_to_gpu_args, n_devices);
    SAME_FIELD(bw_kfd_map_args, success_count, kfd_ioctl_map_memory_to_gpu_args, n_success);
    SAME_FIELD(bw_kfd_available_memory_args, available, kfd_ioctl_get_available_memory_args, available);
    SAME_FIELD(bw_kfd_available_memory_args, gpu_id, kfd_ioctl_get_available_memory_args, gpu_id);
    SAME_FIELD(bw_kfd_acquire_vm_args, drm_fd, kfd_ioctl_acquire_vm_args, drm_fd);
    SAME_FIELD(bw_kfd_acquire_vm_args, gpu_id, kfd_ioctl_acquire_vm_args, gpu_id);
    SAME_FIELD(bw_kfd_process_apertures, lds_base, kfd_process_device_apertures, lds_base);
    SAME_FIELD(bw_kfd_process_apertures, scratch_base, kfd_process_device_apertures, scratch_base);
    SAME_FIELD(bw_kfd_process_apertures, gpuvm_base, kfd_process_device_apertures, gpuvm_base);
    SAME_FIELD(bw_kfd_process_apertures, gpuvm_limit, kfd_process_device_apertures, gpuvm_limit);
    SAME_FIELD(bw_kfd_process_apertures, gpu_id, kfd_process_device_apertures, gpu_id);
    SAME_FIELD(bw_kfd_apertures_args, apertures, kfd_ioctl_get_process_apertures_new_args,
               kfd_process_device_apertures_ptr);
    SAME_FIELD(bw_kfd_apertures_args, count, kfd_ioctl_get_process_apertures_new_args, num_of_nodes);
}

static void event_fields(void)
{
    SAME_FIELD(bw_kfd_create_event_args, event_page_offset, kfd_ioctl_create_event_args, event_page_offset);
    SAME_FIELD(bw_kfd_create_event_args, event_trigger_data, kfd_ioctl_create_event_args, event_trigger_data);
    SAME_FIELD(bw_kfd_create_event_args, event_type, kfd_ioctl_create_event_args, event_type);
    SAME_FIELD(bw_kfd_create_event_args, auto_reset, kfd_ioctl_create_event_args, auto_reset);
    SAME_FIELD(bw_kfd_create_event_args, event_id, kfd_ioctl_create_event_args, event_id);
    SAME_FIELD(bw_kfd_create_event_args, event_slot_index, kfd_ioctl_create_event_args, event_slot_index);
    SAME_FIELD(bw_kfd_event_data, memory, kfd_event_data, memory_exception_data);
    SAME_FIELD(bw_kfd_event_data, hw, kfd_event_data, hw_exception_data);
    SAME_FIELD(bw_kfd_event_data, event_id, kfd_event_data, event_id);
    SAME_FIELD(bw_kfd_memory_exception, not_present, kfd_hsa_memory_exception_data, failure.NotPresent);
    SAME_FIELD(bw_kfd_memory_exception, read_only, kfd_hsa_memory_exception_data, failure.ReadOnly);
    SAME_FIELD(bw_kfd_memory_exception, no_execute, kfd_hsa_memory_exception_data, failure.NoExecute);
    SAME_FIELD(bw_kfd_memory_exception, imprecise, kfd_hsa_memory_exception_data, failure.imprecise);
    SAME_FIELD(bw_kfd_memory_exception, va, kfd_hsa_memory_exception_data, va);
    SAME_FIELD(bw_kfd_memory_exception, gpu_id, kfd_hsa_memory_exception_data, gpu_id);
    SAME_FIELD(bw_kfd_hw_exception, reset_type, kfd_hsa_hw_exception_data, reset_type);
    SAME_FIELD(bw_kfd_hw_exception, reset_cause, kfd_hsa_hw_exception_data, reset_cause);
    SAME_FIELD(bw_kfd_hw_exception, gpu_id, kfd_hsa_hw_exception_data, gpu_id);
    SAME_FIELD(bw_kfd_wait_events_args, events, kfd_ioctl_wait_events_args, events_ptr);
    SAME_FIELD(bw_kfd_wait_events_args, event_count, kfd_ioctl_wait_events_args, num_events);
    SAME_FIELD(bw_kfd_wait_events_args, wait_for_all, kfd_ioctl_wait_events_args, wait_for_all);
    SAME_FIELD(bw_kfd_wait_events_args, timeout_ms, kfd_ioctl_wait_events_args, timeout);
    SAME_FIELD(bw_kfd_wait_events_args, result, kfd_ioctl_wait_events_args, wait_result);
}

BW_TEST_MAIN("iface.kfd_uapi", {"numbers", numbers}, {"constants", constants}, {"queue fields", queue_fields},
             {"memory fields", memory_fields}, {"event fields", event_fields})
