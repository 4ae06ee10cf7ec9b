/* Transcendental functions as arithmetic, so that they vectorise and give the same answer on every target. */
#ifndef BW_COMPILER_DECOMPOSE_H
#define BW_COMPILER_DECOMPOSE_H

#include "compiler/ir.h"

struct bw_decompose_options {
    bool keep_exp2_log2_f32; /* the target has them within 1 ulp (amdgcn: v_exp_f32, v_log_f32) */
    bool keep_sin_f64;       /* the target calls a library (host) */
};

/* Rewrites EXP2, LOG2 and SIN of a kernel graph; f16 and bf16 go through f32. Error bounds (checked in
 * tests/unit/compiler/decompose_test.c): f32 2 ulp, f64 2 ulp, SIN of f64 for |x| <= 2^30. 0 after an error.
 */
bw_node bw_decompose(struct bw_ir *ir, bw_node sink, const struct bw_decompose_options *options);

#endif
