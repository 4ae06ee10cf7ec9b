#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "mock/drm/client.h"
#include "mock/kfd/event.h"
#include "mock/kfd/kfd.h"
#include "mock/machine.h"

struct bw_mock_process *bw_mock_process_create(struct bw_mock *machine, bool drm)
{
    struct bw_mock_process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->machine = machine;
    process->pid = getpid();
    process->opens = process->refs = drm;
    process->contexts = calloc(machine->gpu_count, sizeof *process->contexts);
    process->events = drm ? NULL : bw_mock_events_create(machine);
    if (!process->contexts || (!drm && !process->events) || bw_vec_push(&machine->processes, process)) {
        if (process->events)
            bw_mock_events_destroy(process->events);
        free(process->contexts);
        free(process);
        return NULL;
    }
    for (uint32_t i = 0; i < machine->gpu_count; i++) {
        process->contexts[i].process = process;
        process->contexts[i].gpu = &machine->gpus[i];
        process->contexts[i].front = drm ? &bw_mock_drm_front : &bw_mock_kfd_front;
        process->contexts[i].shared_aperture = drm ? BW_MOCK_DRM_LDS_APERTURE : BW_MOCK_LDS_APERTURE;
        process->contexts[i].private_aperture = drm ? BW_MOCK_DRM_SCRATCH_APERTURE : BW_MOCK_SCRATCH_APERTURE;
        process->contexts[i].render_fd = -1;
        bw_mock_space_init(&process->contexts[i].space, ++machine->spaces);
    }
    return process;
}

int bw_mock_process_open(struct bw_mock *machine, struct bw_mock_process **process)
{
    *process = NULL;
    for (size_t i = 0; i < machine->processes.count && !*process; i++) {
        struct bw_mock_process *known = machine->processes.data[i];
        if (known->pid == getpid() && !known->ended && !known->drm)
            *process = known;
    }
    if (!*process)
        *process = bw_mock_process_create(machine, false);
    if (!*process)
        return -ENOMEM;
    (*process)->opens++;
    (*process)->refs++;
    return 0;
}

void bw_mock_process_unref(struct bw_mock_process *process)
{
    struct bw_mock *machine = process->machine;
    if (--process->refs)
        return;
    for (size_t i = 0; i < machine->processes.count; i++) {
        if (machine->processes.data[i] == process) {
            machine->processes.data[i] = machine->processes.data[--machine->processes.count];
            break;
        }
    }
    if (process->events)
        bw_mock_events_destroy(process->events);
    for (uint32_t i = 0; i < machine->gpu_count; i++)
        bw_mock_space_fini(&process->contexts[i].space);
    bw_vec_free(&process->buffers);
    bw_vec_free(&process->queues);
    free(process->contexts);
    free(process);
}

void bw_mock_process_close(struct bw_mock_process *process)
{
    struct bw_mock *machine = process->machine;
    pthread_mutex_lock(&machine->lock);
    bool last = !--process->opens;
    process->ended = last;
    pthread_mutex_unlock(&machine->lock);
    if (last && process->drm) {
        bw_mock_drm_client_end(process->drm);
    } else if (last) {
        bw_mock_events_shutdown(process->events);
        bw_mock_kfd_destroy_all_queues(process);
    }
    pthread_mutex_lock(&machine->lock);
    if (last)
        bw_mock_kfd_free_all(process);
    bw_mock_process_unref(process);
    pthread_mutex_unlock(&machine->lock);
}
