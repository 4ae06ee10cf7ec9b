/* AMDGPU code objects: from an ELF file to an image of memory with kernels in it.
 *
 * Two steps, since addresses are known only between them: parse lays sections out and reads the metadata,
 * link fills the image for a base address, applies relocations and reads the kernel descriptors. Sources:
 * LLVM AMDGPUUsage ("Code Object", "Relocation Records", "Code Object V5 Metadata", "Kernel Descriptor"). */
#ifndef BW_DRIVERS_AMD_CODE_OBJECT_H
#define BW_DRIVERS_AMD_CODE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/program.h>

#include "base/arena.h"
#include "base/map.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/elf.h"

enum {
    BW_AMD_IMAGE_BYTES_MAX =
        256 << 20, /* far above any kernel library; keeps a hostile size from being allocated */
    BW_AMD_IMAGE_ALIGNMENT_MAX = 4096,    /* what a device allocation guarantees */
    BW_AMD_CODE_ALIGNMENT = 256,          /* COMPUTE_PGM holds address >> 8 */
    BW_AMD_ARGUMENT_BYTES_MAX = 64 << 10, /* hidden ones included; clang's own limit for OpenCL is 4 KiB */
    BW_AMD_ARGUMENT_ALIGNMENT = 64,       /* of argument blocks, as driver.h promises them */
    BW_AMD_ARGUMENTS_MAX = 4096,          /* 64 KiB of 8-byte arguments, halved */
    BW_AMD_KERNELS_MAX = 65536,
    BW_AMD_GOT_SLOTS_MAX = 1024, /* symbols of default visibility; slots are searched one by one */
};

/* The user SGPRs in the order that AMDGPUUsage's "Initial Kernel Execution State" gives; bit n of properties
 * enables entry n. The last three are system registers or preloads elsewhere. */
enum bw_amd_kernel_property {
    BW_AMD_KERNEL_PRIVATE_SEGMENT_BUFFER = 1 << 0,
    BW_AMD_KERNEL_DISPATCH_PTR = 1 << 1,
    BW_AMD_KERNEL_QUEUE_PTR = 1 << 2,
    BW_AMD_KERNEL_KERNARG_SEGMENT_PTR = 1 << 3,
    BW_AMD_KERNEL_DISPATCH_ID = 1 << 4,
    BW_AMD_KERNEL_FLAT_SCRATCH_INIT = 1 << 5,
    BW_AMD_KERNEL_PRIVATE_SEGMENT_SIZE = 1 << 6,
    BW_AMD_KERNEL_WAVEFRONT_SIZE32 = 1 << 10,
    BW_AMD_KERNEL_USES_DYNAMIC_STACK = 1 << 11,
    BW_AMD_KERNEL_PROPERTIES_KNOWN = 0xc7f,
};

struct bw_amd_descriptor {
    uint32_t group_bytes, private_bytes, argument_bytes;
    int64_t entry_offset; /* from the descriptor */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint32_t properties;                          /* enum bw_amd_kernel_property */
    uint32_t preload_words, preload_offset_words; /* of the arguments, into user SGPRs */
};

/* Hidden arguments, by what they hold. Order of hidden_names in metadata.c. */
enum bw_amd_hidden {
    BW_AMD_HIDDEN_ZERO, /* pointers and services that this runtime does not have */
    BW_AMD_HIDDEN_BLOCK_COUNT_X,
    BW_AMD_HIDDEN_BLOCK_COUNT_Y,
    BW_AMD_HIDDEN_BLOCK_COUNT_Z,
    BW_AMD_HIDDEN_GROUP_SIZE_X,
    BW_AMD_HIDDEN_GROUP_SIZE_Y,
    BW_AMD_HIDDEN_GROUP_SIZE_Z,
    BW_AMD_HIDDEN_REMAINDER, /* grids are whole groups, so all three are 0 */
    BW_AMD_HIDDEN_GLOBAL_OFFSET,
    BW_AMD_HIDDEN_GRID_DIMS,
    BW_AMD_HIDDEN_DYNAMIC_LDS_SIZE,
    BW_AMD_HIDDEN_PRIVATE_BASE,
    BW_AMD_HIDDEN_SHARED_BASE,
};

struct bw_amd_hidden_argument {
    enum bw_amd_hidden kind;
    uint32_t offset, size_bytes;
};

struct bw_amd_code_kernel {
    const char *name;   /* in the arena */
    const char *symbol; /* of its descriptor, "name.kd" */
    bool has_metadata;
    uint32_t argument_count;
    struct bw_argument_info *arguments;
    uint32_t hidden_count;
    struct bw_amd_hidden_argument *hidden;
    uint32_t metadata_argument_bytes;
    uint32_t argument_alignment;
    uint32_t group_size_max;         /* 0: not said */
    uint32_t group_size_required[3]; /* 0: any */
    uint32_t wave_size;
    /* After link: */
    uint64_t descriptor_offset, entry_offset; /* in the image */
    struct bw_amd_descriptor descriptor;
};

struct bw_amd_code_object {
    struct bw_arena arena;
    const struct bw_amd_arch *arch;
    struct bw_amd_elf elf;
    uint64_t *section_offsets; /* of each section in the image, UINT64_MAX: not in it */
    struct bw_map descriptors; /* hash of "name.kd" to symbol index */
    uint32_t symbol_table;     /* section index */
    uint64_t got_offset, got_count;
    uint32_t *got_symbols; /* symbol index of each slot */
    uint64_t image_bytes;
    uint8_t *image; /* filled by link */
    uint32_t kernel_count;
    struct bw_amd_code_kernel *kernels;
};

/* file is referred to until the object is freed. arch: what it must be for. Errors: -EINVAL malformed
 * (section, symbol or relocation and its offset), -ENOTSUP another architecture or a feature this loader
 * refuses by name, -E2BIG a limit, -ENOMEM. The object is valid for bw_amd_code_object_free also after a
 * failure. */
int bw_amd_code_object_parse(struct bw_amd_code_object *object, const struct bw_amd_arch *arch,
                             const void *file, uint64_t file_bytes, struct bw_err *err);
/* Fills object->image for a load at base (page aligned). May be called again for another base. */
int bw_amd_code_object_link(struct bw_amd_code_object *object, uint64_t base, struct bw_err *err);
void bw_amd_code_object_free(struct bw_amd_code_object *object);

/* For relocate.c: the value of a symbol (index unchecked) when loaded at base. */
int bw_amd_code_object_symbol_value(const struct bw_amd_code_object *object, uint64_t index, uint64_t base,
                                    uint64_t *value, struct bw_err *err);
/* relocate.c: checks types, makes room for the offset table at the image's end; applies to object->image. */
int bw_amd_relocations_prepare(struct bw_amd_code_object *object, struct bw_err *err);
int bw_amd_relocations_apply(struct bw_amd_code_object *object, uint64_t base, struct bw_err *err);

/* metadata.c: reads the note into object->kernels; leaves it empty when the file has none. */
int bw_amd_metadata_read(struct bw_amd_code_object *object, struct bw_err *err);

/* descriptor.c: takes the 64 bytes apart and refuses what the architecture or this driver does not know. */
int bw_amd_descriptor_read(const struct bw_amd_arch *arch, const char *kernel_name, const uint8_t bytes[64],
                           struct bw_amd_descriptor *descriptor, struct bw_err *err);
/* User SGPRs that the enabled properties take, preloads left out. */
uint32_t bw_amd_descriptor_user_sgprs(const struct bw_amd_descriptor *descriptor);

#endif
