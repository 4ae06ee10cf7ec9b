/* Programs: the driver's, with the device's health in front. */
#include <assert.h>
#include <errno.h>

#include "base/bits.h"
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

static int describe_fail(const struct bw_kernel *kernel, uint32_t index,
                         const struct bw_argument_info *argument, struct bw_err *err)
{
    bw_fail(err, -EINVAL, "hcq", "kernel %s: argument %u of %u bytes at %u", kernel->info.name, index,
            argument->size_bytes, argument->offset);
    bw_err_expected(err, "behind the one before, aligned, within %u bytes", kernel->info.undescribed_bytes);
    return -EINVAL;
}

int bw_kernel_describe(struct bw_kernel *kernel, const struct bw_argument_info *arguments, uint32_t count,
                       struct bw_err *err)
{
    uint64_t end = 0;
    if (!kernel->info.undescribed_bytes)
        return bw_fail(err, -EINVAL, "hcq", "kernel %s: its code object describes the arguments that it has",
                       kernel->info.name);
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_argument_info *argument = &arguments[i];
        uint32_t size_bytes = argument->size_bytes;
        bool value = argument->kind == BW_ARGUMENT_VALUE && bw_is_pow2(size_bytes) && size_bytes <= 8;
        bool buffer = argument->kind == BW_ARGUMENT_BUFFER && size_bytes == 8;
        if ((!value && !buffer) || argument->offset % size_bytes || argument->offset < end ||
            (uint64_t)argument->offset + size_bytes > kernel->info.undescribed_bytes)
            return describe_fail(kernel, i, argument, err);
        end = (uint64_t)argument->offset + size_bytes;
    }
    kernel->info.arguments = arguments;
    kernel->info.argument_count = count;
    kernel->info.undescribed_bytes = 0;
    return 0;
}
