/* Programs: the driver's, with the device's health in front. */
#include <assert.h>

#include "hcq/hcq.h"

int bw_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                    struct bw_program **program, struct bw_err *err)
{
    struct bw_hcq_device *hcq = bw_hcq_device_of(device);
    int rc = bw_hcq_device_check(hcq, err);
    if (rc)
        return rc;
    rc = device->ops->program_load(device, image, image_bytes, program, err);
    struct bw_err failure;
    if (rc && device->ops->query_fault(device, &failure)) { /* it was no fault of the program */
        rc = bw_hcq_device_fail(hcq, &failure);
        if (err)
            *err = failure;
    }
    if (rc)
        return rc;
    assert((*program)->device == device);
    __atomic_add_fetch(&hcq->code_epoch, 1,
                       __ATOMIC_RELEASE); /* instruction caches may hold what lay there before */
    return 0;
}

void bw_program_destroy(struct bw_program *program)
{
    if (!program)
        return;
    struct bw_hcq_device *hcq = bw_hcq_device_of(program->device);
    if (bw_ctx_forked(hcq->ctx))
        return; /* the program is the parent's */
    if (!bw_device_synchronize(program->device, NULL)) {
        program->device->ops->program_destroy(program);
        return;
    }
    pthread_mutex_lock(&hcq->lock);
    program->detained_next = hcq->detained;
    hcq->detained = program;
    pthread_mutex_unlock(&hcq->lock);
}

void bw_hcq_programs_release(struct bw_hcq_device *device)
{
    pthread_mutex_lock(&device->lock);
    struct bw_program *program = device->detained;
    device->detained = NULL;
    pthread_mutex_unlock(&device->lock);
    while (program) {
        struct bw_program *next = program->detained_next;
        device->device->ops->program_destroy(program);
        program = next;
    }
}

int bw_program_kernel(struct bw_program *program, const char *name, struct bw_kernel **kernel,
                      struct bw_err *err)
{
    return program->device->ops->program_kernel(program, name, kernel, err);
}

const struct bw_kernel_info *bw_kernel_info(const struct bw_kernel *kernel)
{
    return &kernel->info;
}
