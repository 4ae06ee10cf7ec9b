/* Programs: code objects in device memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "drivers/amd/device.h"

enum { DISPATCH_PACKET_BYTES = 64 }; /* hsa_kernel_dispatch_packet_t, and its alignment */

static const char subsystem[] = "amd";

static void kernel_init(struct bw_amd_program *program, struct bw_amd_kernel *kernel,
                        const struct bw_amd_code_kernel *code)
{
    const struct bw_amd_descriptor *descriptor = &code->descriptor;
    kernel->base.program = &program->base;
    kernel->code = code;
    kernel->entry_va = program->memory.gpu_va + code->entry_offset;
    kernel->descriptor_va = program->memory.gpu_va + code->descriptor_offset;
    uint32_t argument_bytes = descriptor->argument_bytes;
    if (descriptor->properties & BW_AMD_KERNEL_DISPATCH_PTR) {
        /* After the arguments, and never at 0, which stands for none. */
        kernel->packet_offset =
            (uint32_t)bw_align_up(argument_bytes ? argument_bytes : 1, DISPATCH_PACKET_BYTES);
        argument_bytes = kernel->packet_offset + DISPATCH_PACKET_BYTES;
    }
    /* A frame of nearly 4 GiB stays one with the stack on top: launches refuse it, with the limit. */
    uint64_t private_bytes = descriptor->private_bytes;
    if (descriptor->properties & BW_AMD_KERNEL_USES_DYNAMIC_STACK)
        private_bytes += BW_AMD_DYNAMIC_STACK_BYTES;
    kernel->base.info = (struct bw_kernel_info){
        .name = code->name,
        .argument_count = code->argument_count,
        .arguments = code->arguments,
        .argument_bytes = argument_bytes,
        .group_memory_bytes = descriptor->group_bytes,
        .private_bytes = private_bytes < UINT32_MAX ? (uint32_t)private_bytes : UINT32_MAX,
        .wave_size = code->wave_size,
        .group_size_max = code->group_size_max,
        .undescribed_bytes = code->has_metadata ? 0 : descriptor->argument_bytes,
    };
}

static int program_fill(struct bw_amd_program *program, const void *image, uint64_t image_bytes,
                        struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(program->base.device);
    struct bw_amd_code_object *object = &program->object;
    int rc = bw_amd_code_object_parse(object, device->arch, image, image_bytes, err);
    rc = rc ? rc
            : device->iface->ops->alloc(device->iface, object->image_bytes + BW_AMD_CODE_SLACK_BYTES,
                                        BW_IFACE_VRAM | BW_IFACE_EXECUTABLE, 0, &program->memory, err);
    rc = rc ? rc : bw_amd_code_object_link(object, program->memory.gpu_va, err);
    if (rc)
        return rc;
    program->kernel_count = object->kernel_count;
    program->kernels = calloc(object->kernel_count ? object->kernel_count : 1, sizeof *program->kernels);
    if (!program->kernels)
        return bw_fail(err, -ENOMEM, subsystem, "%u kernels", object->kernel_count);
    for (uint32_t i = 0; i < program->kernel_count; i++)
        kernel_init(program, &program->kernels[i], &object->kernels[i]);
    rc = bw_amd_upload(device, program->memory.gpu_va, object->image, object->image_bytes, err);
    /* Published after the code has arrived: whoever sees the new number invalidates caches before running it.
     */
    atomic_fetch_add_explicit(&device->code_generation, 1, memory_order_release);
    free(object->image);
    object->image = NULL;
    object->elf.file = NULL; /* read, not kept */
    return rc;
}

int bw_amd_program_load(struct bw_device *base, const void *image, uint64_t image_bytes,
                        struct bw_program **loaded, struct bw_err *err)
{
    struct bw_amd_device *device = bw_amd_device(base);
    struct bw_amd_program *program = calloc(1, sizeof *program);
    if (!program)
        return bw_fail(err, -ENOMEM, subsystem, "program");
    program->base.device = base;
    int rc = program_fill(program, image, image_bytes, err);
    if (rc) {
        bw_amd_program_destroy(&program->base);
        return rc;
    }
    pthread_mutex_lock(&device->lock);
    program->next = device->programs;
    device->programs = program;
    pthread_mutex_unlock(&device->lock);
    *loaded = &program->base;
    return 0;
}

void bw_amd_program_destroy(struct bw_program *base)
{
    struct bw_amd_program *program = (struct bw_amd_program *)base;
    struct bw_amd_device *device = bw_amd_device(base->device);
    pthread_mutex_lock(&device->lock);
    struct bw_amd_program **link = &device->programs;
    while (*link && *link != program)
        link = &(*link)->next;
    if (*link)
        *link = program->next;
    pthread_mutex_unlock(&device->lock);
    if (program->memory.size_bytes)
        device->iface->ops->free(device->iface, &program->memory, NULL);
    bw_amd_code_object_free(&program->object);
    free(program->kernels);
    free(program);
}

int bw_amd_program_kernel(struct bw_program *base, const char *name, struct bw_kernel **kernel,
                          struct bw_err *err)
{
    struct bw_amd_program *program = (struct bw_amd_program *)base;
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        if (name ? strcmp(program->kernels[i].base.info.name, name) == 0 : program->kernel_count == 1) {
            *kernel = &program->kernels[i].base;
            return 0;
        }
    }
    struct bw_text names = {0};
    for (uint32_t i = 0; i < program->kernel_count; i++)
        bw_text_add(&names, "%s%s", i ? ", " : "", program->kernels[i].base.info.name);
    bw_fail(err, -ENOENT, subsystem, name ? "no kernel %s in the program" : "%s",
            name ? name : "which kernel of several");
    bw_err_hint(err, "it has: %s", program->kernel_count ? bw_text_string(&names) : "none");
    bw_text_free(&names);
    return -ENOENT;
}
