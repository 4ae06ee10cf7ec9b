/* The floats of 4 and 8 bits. Sources: ONNX's Cast, float8 and float4 documents, and the OCP Microscaling
 * Formats specification 1.0 (E2M1, E8M0). */
#ifndef BW_COMPILER_SMALL_FLOAT_H
#define BW_COMPILER_SMALL_FLOAT_H

#include <bellwire/dtype.h>

/* Sign, exponent and mantissa, from the highest bit down; exponent 0 is 0 and the subnormals. */
struct bw_small_float {
    uint8_t mantissa_bits, bias;
    uint16_t sign;      /* its bit; with no sign, the first that is none of the element's */
    uint8_t finite_max; /* bits of the greatest finite number */
    uint8_t infinity;   /* 0: there is none, what follows finite_max is NaN */
    bool has_nan;
    bool unsigned_zero; /* and the bits of -0 are NaN, the only one */
};

/* NULL: dtype is no such float. */
const struct bw_small_float *bw_small_float(enum bw_dtype dtype);

#endif
