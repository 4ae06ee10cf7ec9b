/* Shared by compiler/llvm/emit*.c: one linear program being written as LLVM IR.
 *
 * The program is the same for every work-item. On a GPU a work-item is a thread and every value a scalar. On
 * the host the work-items of a group are the lanes of vectors: a value that differs between them is a vector
 * of item_count elements, any other a scalar. */
#ifndef BW_COMPILER_LLVM_EMIT_H
#define BW_COMPILER_LLVM_EMIT_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "compiler/codegen.h"

struct emitter {
    const struct bw_linear *linear;
    const struct bw_ir *ir;
    const struct bw_target *target;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMValueRef function;
    LLVMValueRef *values;   /* by node: the value computed last; of an ACCUMULATOR its alloca */
    bool *varies;           /* by node: differs between the work-items of a group */
    uint32_t lanes;         /* item_count on the host, 1 on a GPU */
    unsigned address_space; /* of buffers */
    LLVMValueRef *params;   /* by number */
    LLVMValueRef specials[BW_SPECIAL_COUNT];
    struct bw_err *err;
    int rc;
};

/* emit.c */
LLVMTypeRef emit_scalar_type(struct emitter *e,
                             enum bw_dtype dtype); /* of a value; bool is i1, bf16 its bits */
LLVMTypeRef emit_type(struct emitter *e, enum bw_dtype dtype, bool vector);
bool emit_is_vector(const struct emitter *e, bw_node node);
LLVMValueRef emit_splat(struct emitter *e, LLVMValueRef scalar);
/* The value of a node; as a vector when `vector`, whatever it is. */
LLVMValueRef emit_value(struct emitter *e, bw_node node, bool vector);
LLVMValueRef emit_intrinsic(struct emitter *e, const char *name, LLVMTypeRef type, LLVMValueRef *arguments,
                            unsigned count);
LLVMValueRef emit_int(struct emitter *e, LLVMTypeRef type, int64_t value); /* splat for vector types */
LLVMValueRef emit_real(struct emitter *e, LLVMTypeRef type, double value);
LLVMTypeRef emit_retype(struct emitter *e, LLVMTypeRef like,
                        LLVMTypeRef element); /* element, with like's lanes */
void emit_body(struct emitter *e);

/* emit_op.c */
LLVMValueRef emit_elementwise(struct emitter *e, bw_node node);
LLVMValueRef emit_cast(struct emitter *e, LLVMValueRef value, enum bw_dtype from, enum bw_dtype to);

/* a op b for the ops that reductions use. */
LLVMValueRef emit_combine(struct emitter *e, enum bw_op op, enum bw_dtype dtype, LLVMValueRef a,
                          LLVMValueRef b);

/* emit_fold.c: the fold of a value over the work-items of the group. */
LLVMValueRef emit_group_fold(struct emitter *e, bw_node node);

/* emit_memory.c */
LLVMValueRef emit_load(struct emitter *e, bw_node node);
void emit_store(struct emitter *e, bw_node node);

/* host.c, amdgpu.c: the function around the body, and what the loader needs. */
void emit_host_function(struct emitter *e, const char *name);
void emit_amdgpu_function(struct emitter *e, const char *name);

#endif
