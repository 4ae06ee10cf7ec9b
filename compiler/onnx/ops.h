/* One table per ops_*.c file. A new file adds its line here and in ops.c. */
#ifndef BW_COMPILER_ONNX_OPS_H
#define BW_COMPILER_ONNX_OPS_H

#include "compiler/onnx/import.h"

extern const struct bw_onnx_ops bw_onnx_ops_math;   /* elementwise */
extern const struct bw_onnx_ops bw_onnx_ops_shape;  /* shapes and movement */
extern const struct bw_onnx_ops bw_onnx_ops_reduce; /* reductions, softmax, normalisation */
extern const struct bw_onnx_ops bw_onnx_ops_nn;     /* matrix products, convolutions, pooling */

/* Elements of x along one axis: result[.., i, ..] = x[.., index[i], ..]. index: integers, of any rank (its
 * axes take the place of the axis). */
bw_tensor bw_onnx_take(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, bw_tensor index);

#endif
