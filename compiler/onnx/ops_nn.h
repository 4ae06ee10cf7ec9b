/* Sliding windows as ONNX describes them: shared by convolutions, pooling and their quantised kin. */
#ifndef BW_COMPILER_ONNX_OPS_NN_H
#define BW_COMPILER_ONNX_OPS_NN_H

#include "compiler/onnx/import.h"

enum { BW_ONNX_SPATIAL_MAX = 3 }; /* a window over four axes has no place in 16 dimensions */

struct bw_onnx_window {
    uint32_t spatial;
    int64_t kernel[BW_ONNX_SPATIAL_MAX], stride[BW_ONNX_SPATIAL_MAX], dilation[BW_ONNX_SPATIAL_MAX];
    int64_t low[BW_ONNX_SPATIAL_MAX], high[BW_ONNX_SPATIAL_MAX]; /* padding */
    bool same, same_upper;                                       /* auto_pad */
};

/* Reads kernel_shape (unless given), strides, dilations, pads and auto_pad for an input of these dims.
 * Returns c->rc. */
int bw_onnx_window_read(struct bw_onnx_call *c, const int64_t *dims, uint32_t rank, const int64_t *kernel,
                        struct bw_onnx_window *w);
/* The same for a convolution of x by weight, and its groups; bias may be 0. What does not fit together is
 * refused by name. Returns c->rc. */
int bw_onnx_conv_read(struct bw_onnx_call *c, bw_tensor x, bw_tensor weight, bw_tensor bias,
                      struct bw_onnx_window *w, int64_t *groups);
/* x [N, C, spatial..] padded. */
bw_tensor bw_onnx_window_pad(struct bw_onnx_call *c, bw_tensor x, const struct bw_onnx_window *w,
                             double value);

#endif
