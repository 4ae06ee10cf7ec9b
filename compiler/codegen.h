/* Machine code from linear programs. */
#ifndef BW_COMPILER_CODEGEN_H
#define BW_COMPILER_CODEGEN_H

#include <bellwire/device.h>

#include "base/text.h"
#include "compiler/decompose.h"
#include "compiler/linear.h"

enum bw_target_family { BW_TARGET_HOST, BW_TARGET_AMDGPU };

/* What to generate code for. Plain data: part of a compiled kernel's key. */
struct bw_target {
    enum bw_target_family family;
    char cpu[64];          /* LLVM's name: "gfx1100", "sapphirerapids" */
    char features[2048];   /* LLVM's feature string */
    uint32_t vector_bytes; /* of one register: what the optimiser tiles for (host) */
    uint32_t vector_registers;
    uint32_t wave_size; /* 1 on the host */
    uint32_t group_size_max, lds_bytes;
    uint32_t workers; /* host: groups that can run at once */
    struct bw_decompose_options decompose;
};

struct bw_object {
    void *data; /* malloc'd ELF relocatable object */
    uint64_t size_bytes;
};

/* For the device's driver and arch. -ENOTSUP: no code generator (built without LLVM, or an arch that is not
 * in our table: LLVM itself accepts unknown names). */
int bw_target_from_device(const struct bw_device_info *info, struct bw_target *target, struct bw_err *err);
/* An AMD arch by name, with no device. */
int bw_target_amdgpu(const char *arch, struct bw_target *target, struct bw_err *err);
/* The CPU this runs on. */
int bw_target_host(struct bw_target *target, struct bw_err *err);

/* One kernel named `name` with one pointer argument per parameter of the program. listing (may be NULL)
 * receives assembly text. Thread safe: everything is made in a context of its own. */
int bw_codegen(const struct bw_linear *linear, const struct bw_target *target, const char *name,
               struct bw_object *object, struct bw_text *listing, struct bw_err *err);

/* Which compiler this is, for the cache: changes whenever emitted code may. */
const char *bw_codegen_version(void);

#endif
