/* Machine code: code objects loaded onto a device, kernels found by name. */
#ifndef BW_PROGRAM_H
#define BW_PROGRAM_H

#include <stdint.h>

#include <bellwire/device.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_program;
struct bw_kernel;

/* How one argument lies in the argument block (from the code object's metadata). */
enum bw_argument_kind { BW_ARGUMENT_BUFFER, BW_ARGUMENT_VALUE, BW_ARGUMENT_HIDDEN };
struct bw_argument_info {
    char name[32];
    enum bw_argument_kind kind;
    uint32_t offset, size_bytes;
};

struct bw_kernel_info {
    const char *name;
    uint32_t argument_count; /* visible arguments, in order */
    const struct bw_argument_info *arguments;
    uint32_t argument_bytes;     /* of the whole block, hidden ones included */
    uint32_t group_memory_bytes; /* static LDS */
    uint32_t private_bytes;      /* scratch per work-item */
    uint32_t wave_size;
    uint32_t group_size_max;    /* 0 when not said */
    uint32_t undescribed_bytes; /* of arguments that the code object does not describe: bw_kernel_describe */
};

/* image: an ELF code object (relocatable or linked) for the device's architecture; read, not kept. Errors
 * name section, symbol or relocation and its offset. */
int bw_program_load(struct bw_device *device, const void *image, uint64_t image_bytes,
                    struct bw_program **program, struct bw_err *err);
/* Waits for the device's work (bounded), then frees; kernels of it are gone. Not while a linked graph has
 * them. NULL is fine. */
void bw_program_destroy(struct bw_program *program);
/* -ENOENT: no such kernel (the hint lists those that exist). name NULL: the only kernel. Owned by the
 * program. */
int bw_program_kernel(struct bw_program *program, const char *name, struct bw_kernel **kernel,
                      struct bw_err *err);
/* Lives as long as the program. */
const struct bw_kernel_info *bw_kernel_info(const struct bw_kernel *kernel);
/* Says how the arguments of a kernel lie whose code object does not: hand-made ones without .amdgpu_metadata.
 * In order, not overlapping, each at a multiple of its size (1, 2, 4 or 8 bytes; a buffer: 8) and within
 * info.undescribed_bytes, all of them visible ones. `arguments` is the caller's and stays until the program
 * is destroyed. Before the kernel is first put into a graph, which refuses it (-EINVAL) until then. -EINVAL:
 * one does not fit, or the code object did say. Example: {{"out", BW_ARGUMENT_BUFFER, 0, 8}, {"n",
 * BW_ARGUMENT_VALUE, 8, 4}}. */
int bw_kernel_describe(struct bw_kernel *kernel, const struct bw_argument_info *arguments, uint32_t count,
                       struct bw_err *err);

#ifdef __cplusplus
}
#endif
#endif
