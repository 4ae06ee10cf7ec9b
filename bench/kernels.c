/* Kernels that benches bring along, so that they run without a compiler. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "bench/bench.h"

static const uint32_t tiny_x86_64[] = {
#include "bench/kernels/tiny_x86_64.inc"
};

static const uint32_t tiny_gfx1100[] = {
#include "bench/kernels/tiny_gfx1100.inc"
};

static const struct {
    const char *arch;
    const uint32_t *image;
    uint64_t image_bytes;
    uint32_t group_size;
} kernels[] = {
    {"x86_64", tiny_x86_64, sizeof tiny_x86_64, 1},
    {"gfx1100", tiny_gfx1100, sizeof tiny_gfx1100, 32},
};

int bw_bench_kernel_load(struct bw_device *device, struct bw_bench_kernel *kernel, struct bw_err *err)
{
    const struct bw_device_info *info = bw_device_info(device);
    for (uint32_t i = 0; i < BW_COUNT_OF(kernels); i++) {
        if (strcmp(kernels[i].arch, info->arch) != 0)
            continue;
        kernel->group_size = kernels[i].group_size;
        int rc = bw_program_load(device, kernels[i].image, kernels[i].image_bytes, &kernel->program, err);
        if (rc)
            return rc;
        rc = bw_program_kernel(kernel->program, "tiny", &kernel->kernel, err);
        if (rc)
            bw_program_destroy(kernel->program);
        return rc;
    }
    return bw_fail(err, -ENOTSUP, "bench", "no built-in kernel for %s%s%s", info->name,
                   info->arch[0] ? ", " : "", info->arch);
}
