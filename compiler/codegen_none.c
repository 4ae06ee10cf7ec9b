/* Without LLVM there is no code generator; everything above it says so. See codegen.h. */
#include "compiler/codegen.h"

#include <errno.h>

#if !BW_HAVE_LLVM

static int without(struct bw_err *err)
{
    bw_fail(err, -ENOTSUP, "compile", "machine code: built without LLVM");
    bw_err_hint(err, "build with LLVM 19, or let the tensor evaluator run the model");
    return -ENOTSUP;
}

int bw_target_from_device(const struct bw_device_info *info, struct bw_target *target, struct bw_err *err)
{
    return without(err);
}

int bw_target_amdgpu(const char *arch, struct bw_target *target, struct bw_err *err)
{
    return without(err);
}

int bw_target_host(struct bw_target *target, struct bw_err *err)
{
    return without(err);
}

int bw_codegen(const struct bw_linear *linear, const struct bw_target *target, const char *name,
               struct bw_object *object, struct bw_text *listing, struct bw_err *err)
{
    return without(err);
}

const char *bw_codegen_version(void)
{
    return "none";
}

#endif
