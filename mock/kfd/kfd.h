/* The KFD front of the mock machine: /dev/kfd's ioctls over the device model. */
#ifndef BW_MOCK_KFD_KFD_H
#define BW_MOCK_KFD_KFD_H

#include "mock/kfd/uapi.h"
#include "mock/machine.h"

/* An ioctl on a KFD descriptor: checked, dispatched on its number, arguments copied in and out as
 * kfd_chardev.c does. */
int bw_mock_kfd_ioctl(struct bw_mock *machine, struct bw_mock_process *process, unsigned long request,
                      void *argument);

/* The name of the i-th ioctl that there is, NULL past the end: the sites of fault injection. */
const char *bw_mock_kfd_ioctl_name(uint32_t index);

/* The context of a GPU, or NULL with *error set: -EINVAL for an unknown id, -ENODEV before ACQUIRE_VM. */
struct bw_mock_context *bw_mock_kfd_context(struct bw_mock_process *process, uint32_t gpu_id,
                                            const char *call, int *error);

/* kfd_memory.c; machine.lock is held. */
int bw_mock_kfd_acquire_vm(struct bw_mock_process *process, struct mock_kfd_acquire_vm_args *args);
int bw_mock_kfd_alloc(struct bw_mock_process *process, struct mock_kfd_alloc_memory_args *args);
int bw_mock_kfd_free(struct bw_mock_process *process, struct mock_kfd_free_memory_args *args);
int bw_mock_kfd_map(struct bw_mock_process *process, struct mock_kfd_map_memory_args *args);
int bw_mock_kfd_unmap(struct bw_mock_process *process, struct mock_kfd_map_memory_args *args);
int bw_mock_kfd_available(struct bw_mock_process *process, struct mock_kfd_get_available_memory_args *args);
/* Unmaps and frees everything: the process ends, no queue runs. */
void bw_mock_kfd_free_all(struct bw_mock_process *process);
struct bw_mock_buffer *bw_mock_kfd_buffer(struct bw_mock_process *process, uint64_t handle);
/* What every front does with a buffer: memory behind it out of the pool that its flags name (MOCK_KFD_ALLOC_
 * VRAM or not), a place in the process's table, and waiting until no kernel touches user memory that was just
 * unmapped. machine.lock is held. */
int bw_mock_buffer_back(struct bw_mock_context *context, struct bw_mock_buffer *buffer, const char *call);
int bw_mock_buffer_add(struct bw_mock_process *process, struct bw_mock_buffer *buffer);
void bw_mock_buffer_drain_user(struct bw_mock_context *context);
/* The last CPU mapping of a buffer that was freed is gone. */
void bw_mock_buffer_release(struct bw_mock_buffer *buffer);
/* One who holds its memory (cpu_maps) goes. */
void bw_mock_buffer_let_go(struct bw_mock_buffer *buffer);
/* User memory went away (munmap): takes it from the GPUs, as the kernel's MMU notifier does. */
void bw_mock_kfd_invalidate_user(struct bw_mock *machine, const void *base, uint64_t size);

/* kfd_queue.c */
int bw_mock_kfd_create_queue(struct bw_mock_process *process, struct mock_kfd_create_queue_args *args);
/* Without machine.lock. */
int bw_mock_kfd_destroy_queue(struct bw_mock_process *process, uint32_t queue_id);
void bw_mock_kfd_destroy_all_queues(struct bw_mock_process *process);
int bw_mock_kfd_update_queue(struct bw_mock_process *process, struct mock_kfd_update_queue_args *args);
/* machine.lock is held. -ENOENT: no such queue. */
int bw_mock_kfd_queue_look(struct bw_mock_process *process, uint32_t queue_id, struct bw_queue_view *view);

/* user_memory.c: whether the host can read and write all of [base, base + size). */
bool bw_mock_user_memory_ok(const void *base, uint64_t size);
/* copy_from_user: false where not all of it can be read. */
bool bw_mock_user_copy(void *target, uint64_t source, uint64_t size);

#endif
