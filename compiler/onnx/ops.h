/* One table per ops_*.c file. A new file adds its line here and in ops.c. */
#ifndef BW_COMPILER_ONNX_OPS_H
#define BW_COMPILER_ONNX_OPS_H

#include "compiler/onnx/import.h"

extern const struct bw_onnx_ops bw_onnx_ops_math;     /* elementwise */
extern const struct bw_onnx_ops bw_onnx_ops_shape;    /* shapes and movement */
extern const struct bw_onnx_ops bw_onnx_ops_reduce;   /* reductions, softmax, normalisation, losses */
extern const struct bw_onnx_ops bw_onnx_ops_nn;       /* matrix products, convolutions, pooling */
extern const struct bw_onnx_ops bw_onnx_ops_index;    /* gather, scatter, TopK */
extern const struct bw_onnx_ops bw_onnx_ops_quant;    /* quantised arithmetic */
extern const struct bw_onnx_ops bw_onnx_ops_cast;     /* element types */
extern const struct bw_onnx_ops bw_onnx_ops_control;  /* If, Loop, Scan */
extern const struct bw_onnx_ops bw_onnx_ops_sequence; /* sequences and optionals */
extern const struct bw_onnx_ops bw_onnx_ops_host;     /* NonZero, Unique, NMS and the like */
extern const struct bw_onnx_ops bw_onnx_ops_rnn;      /* RNN, GRU, LSTM */
extern const struct bw_onnx_ops bw_onnx_ops_resize;   /* Resize, Upsample */
extern const struct bw_onnx_ops bw_onnx_ops_sample;   /* GridSample, RoiAlign */
extern const struct bw_onnx_ops bw_onnx_ops_einsum;   /* Einsum */
extern const struct bw_onnx_ops bw_onnx_ops_string;   /* text */
extern const struct bw_onnx_ops bw_onnx_ops_signal;   /* DFT, STFT, windows */
extern const struct bw_onnx_ops bw_onnx_ops_training; /* optimiser steps */
extern const struct bw_onnx_ops bw_onnx_ops_random;   /* random numbers, Dropout */

/* Elements of x along one axis: result[.., i, ..] = x[.., index[i], ..]. index: integers, of any rank (its
 * axes take the place of the axis). */
bw_tensor bw_onnx_take(struct bw_onnx_call *c, bw_tensor x, uint32_t axis, bw_tensor index);

#endif
