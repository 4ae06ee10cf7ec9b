/* From a linear program to an object: LLVM contexts, machines and passes. Contract in compiler/codegen.h. */
#include "compiler/codegen.h"

#include <errno.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/llvm/emit.h"
#include "compiler/llvm/machine.h"

const char *bw_codegen_version(void)
{
    /* The second number is ours: raise it whenever code for the same program changes. */
    return "llvm-19/2";
}

static const char *triple_of(const struct bw_target *target)
{
    return target->family == BW_TARGET_HOST ? BW_LLVM_TRIPLE_HOST : BW_LLVM_TRIPLE_AMDGPU;
}

/* What default<O2> does for these programs in a third of its time (PP-OCRv4: 1.1 s to 0.33 s, the same count
 * of instructions): loops come tiled, values come shared, so that registers for the accumulators, folding and
 * one round of loop cleaning remain. */
#define PASSES                                                                                             \
    "always-inline,globaldce,function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg," \
    "loop-mssa(loop-rotate,licm),instcombine<no-verify-fixpoint>,loop(indvars),early-cse<memssa>,adce)"
static const char passes_common[] = PASSES;
/* The attributor finds which hidden arguments and hardware registers a kernel needs: none of most. */
static const char passes_amdgpu[] = PASSES ",amdgpu-attributor";

static int run_passes(LLVMModuleRef module, enum bw_target_family family, LLVMTargetMachineRef machine,
                      struct bw_err *err)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    /* Vectors and tiles are made before; what is left for LLVM is scalar optimisation. */
    LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
    LLVMPassBuilderOptionsSetLoopUnrolling(options, 0);
    LLVMErrorRef error =
        LLVMRunPasses(module, family == BW_TARGET_HOST ? passes_common : passes_amdgpu, machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return 0;
    char *message = LLVMGetErrorMessage(error);
    int rc = bw_fail(err, -EINVAL, "llvm", "%s", message);
    LLVMDisposeErrorMessage(message);
    return rc;
}

static int emit_object(LLVMModuleRef module, LLVMTargetMachineRef machine, struct bw_object *object,
                       struct bw_text *listing, struct bw_err *err)
{
    if (listing) { /* of a copy: emission changes the module */
        LLVMMemoryBufferRef buffer = NULL;
        LLVMModuleRef copy = LLVMCloneModule(module);
        int rc = bw_llvm_emit(machine, copy, LLVMAssemblyFile, &buffer, err);
        if (!rc) {
            bw_text_add_bytes(listing, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
            LLVMDisposeMemoryBuffer(buffer);
        }
        LLVMDisposeModule(copy);
        if (rc)
            return rc;
    }
    return bw_llvm_emit_object(machine, module, &object->data, &object->size_bytes, err);
}

static int emit_module(struct emitter *e, LLVMTargetMachineRef machine, const char *name)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(e->module, triple_of(e->target));
    LLVMSetModuleDataLayout(e->module, layout);
    LLVMDisposeTargetData(layout);
    e->values = calloc(bw_ir_count(e->ir), sizeof *e->values);
    e->varies = calloc(bw_ir_count(e->ir), sizeof *e->varies);
    e->params = calloc(e->linear->params.count + 1, sizeof *e->params);
    if (!e->values || !e->varies || !e->params)
        return bw_fail(e->err, -ENOMEM, "llvm", "%u nodes", bw_ir_count(e->ir));
    if (e->target->family == BW_TARGET_HOST)
        emit_host_function(e, name);
    else
        emit_amdgpu_function(e, name);
    return e->rc;
}

static int verify(LLVMModuleRef module, struct bw_err *err)
{
    char *message = NULL;
    if (!LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
        LLVMDisposeMessage(message);
        return 0;
    }
    int rc = bw_fail(err, -EINVAL, "llvm", "module: %s", message);
    LLVMDisposeMessage(message);
    return rc;
}

int bw_codegen(const struct bw_linear *linear, const struct bw_target *target, const char *name,
               struct bw_object *object, struct bw_text *listing, struct bw_err *err)
{
    LLVMTargetMachineRef machine = NULL;
    struct bw_llvm_diagnostics diagnostics;
    *object = (struct bw_object){0};
    int rc = bw_llvm_machine_create(triple_of(target), target->cpu, target->features, &machine, err);
    if (rc)
        return rc;
    LLVMContextRef context = LLVMContextCreate();
    bw_llvm_diagnostics_watch(context, &diagnostics);
    struct emitter e = {.linear = linear,
                        .ir = linear->ir,
                        .target = target,
                        .context = context,
                        .err = err,
                        .lanes = target->family == BW_TARGET_HOST ? linear->item_count : 1};
    e.module = LLVMModuleCreateWithNameInContext("bellwire", context);
    e.builder = LLVMCreateBuilderInContext(context);
    rc = emit_module(&e, machine, name);
    LLVMDisposeBuilder(e.builder);
    if (!rc)
        rc = verify(e.module, err);
    if (!rc)
        rc = run_passes(e.module, target->family, machine, err);
    if (!rc)
        rc = emit_object(e.module, machine, object, listing, err);
    if (!rc && diagnostics.first[0])
        rc = bw_fail(err, -EINVAL, "llvm", "%s", diagnostics.first);
    LLVMDisposeModule(e.module);
    LLVMContextDispose(context);
    LLVMDisposeTargetMachine(machine);
    free(e.values);
    free(e.varies);
    free(e.params);
    if (rc) {
        free(object->data);
        *object = (struct bw_object){0};
    }
    return rc;
}
