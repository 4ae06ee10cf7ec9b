/* f32, f64 and f16: arithmetic, fused operations, rounding, conversions, denormals, packed halves, bf16 by bits. */
#include "corpus.h"

#define ARITHMETIC(type, name, suffix)                                                                                 \
    KERNEL void arithmetic_##name(__global type *out, __global const type *a, __global const type *b,                  \
                                  __global const type *c)                                                              \
    {                                                                                                                  \
        uint i = global_index();                                                                                       \
        type x = a[i], y = b[i], z = c[i];                                                                             \
        __global type *o = out + 16 * i;                                                                               \
        o[0] = x + y;                                                                                                  \
        o[1] = x - y;                                                                                                  \
        o[2] = x * y;                                                                                                  \
        o[3] = x / y;                                                                                                  \
        o[4] = __builtin_elementwise_fma(x, y, z);                                                                     \
        o[5] = __builtin_elementwise_fma(-x, y, -z);                                                                   \
        o[6] = __builtin_elementwise_abs(x) - __builtin_elementwise_abs(y * z);                                        \
        o[7] = __builtin_elementwise_min(x, y);                                                                        \
        o[8] = __builtin_elementwise_max(x, z);                                                                        \
        o[9] = __builtin_elementwise_floor(x) + __builtin_elementwise_ceil(y);                                         \
        o[10] = __builtin_elementwise_trunc(x);                                                                        \
        o[11] = __builtin_elementwise_rint(y);                                                                         \
        o[12] = __builtin_elementwise_copysign(x, y);                                                                  \
        o[13] = __builtin_elementwise_sqrt(x);                                                                         \
        o[14] = x < y ? z : x == z ? y : x;                                                                            \
        o[15] = 2 * x + (type)0.5 * y - 4 * z;                                                                         \
    }

ARITHMETIC(float, f32, f)
ARITHMETIC(double, f64, )
ARITHMETIC(half, f16, h)

KERNEL void packed_halves(__global half2 *out, __global const half2 *a, __global const half2 *b, __global const half2 *c)
{
    uint i = global_index();
    half2 x = a[i], y = b[i], z = c[i], minus = -x, twice = z.xx;
    out[8 * i] = x + y;
    out[8 * i + 1] = x - y.yx;
    out[8 * i + 2] = x * y;
    out[8 * i + 3] = __builtin_elementwise_fma(x, y, z);
    out[8 * i + 4] = __builtin_elementwise_min(x, y);
    out[8 * i + 5] = __builtin_elementwise_max(minus, twice);
    out[8 * i + 6] = (half2)(x.x * y.y, x.y);
    out[8 * i + 7] = x * (half)2 + (half2)(1, -4);
}

KERNEL void packed_shorts(__global short2 *out, __global const short2 *a, __global const short2 *b)
{
    uint i = global_index();
    short2 x = a[i], y = b[i];
    out[8 * i] = x + y;
    out[8 * i + 1] = x - y;
    out[8 * i + 2] = x * y + x;
    out[8 * i + 3] = x << (y & (short2)15);
    out[8 * i + 4] = x >> (y & (short2)15);
    out[8 * i + 5] = __builtin_elementwise_min(x, y);
    out[8 * i + 6] = __builtin_elementwise_max(x.yx, y);
    out[8 * i + 7] = __builtin_elementwise_add_sat(x, y);
}

/* Sums of products in f32 of operands in f16: v_fma_mix. */
KERNEL void mixed_precision(__global float *out, __global half *out_half, __global const half *a, __global const half *b,
                            __global const float *c)
{
    uint i = global_index();
    out[2 * i] = __builtin_fmaf((float)a[2 * i], (float)b[2 * i + 1], c[i]);
    out[2 * i + 1] = __builtin_fmaf((float)a[2 * i + 1], c[i], -(float)b[2 * i]);
    out_half[2 * i] = (half)__builtin_fmaf((float)a[2 * i], c[i], (float)b[2 * i]);
    out_half[2 * i + 1] = (half)__builtin_fmaf(c[i], (float)a[2 * i + 1], 1.0f);
}

KERNEL void to_integers(__global long *out, __global const float *a, __global const double *b, __global const half *c)
{
    uint i = global_index();
    /* In range for every type: other values have no meaning in C. */
    float x = __builtin_elementwise_min(__builtin_elementwise_abs(a[i]), 100.0f);
    double y = __builtin_elementwise_min(__builtin_elementwise_abs(b[i]), 1e15);
    half z = __builtin_elementwise_min(__builtin_elementwise_abs(c[i]), (half)100);
    out[10 * i] = (int)x;
    out[10 * i + 1] = (uint)x;
    out[10 * i + 2] = (long)x;
    out[10 * i + 3] = (uchar)x;
    out[10 * i + 4] = (long)y;
    out[10 * i + 5] = (long)(ulong)y;
    out[10 * i + 6] = (int)(y * 1e-7);
    out[10 * i + 7] = (short)z;
    out[10 * i + 8] = (ushort)z;
    out[10 * i + 9] = (int)z;
}

KERNEL void from_integers(__global double *out, __global const long *a)
{
    uint i = global_index();
    long x = a[i];
    out[10 * i] = (double)x;
    out[10 * i + 1] = (double)(ulong)x;
    out[10 * i + 2] = (float)x;
    out[10 * i + 3] = (float)(ulong)x;
    out[10 * i + 4] = (float)(int)x;
    out[10 * i + 5] = (float)(uint)x;
    out[10 * i + 6] = (float)(uchar)x + (float)(uchar)(x >> 8) * (float)(uchar)(x >> 16) - (float)(uchar)(x >> 24);
    out[10 * i + 7] = (half)(short)x;
    out[10 * i + 8] = (half)(ushort)x;
    out[10 * i + 9] = (double)(int)x + (double)(uint)x;
}

KERNEL void between_floats(__global double *out, __global const double *a)
{
    uint i = global_index();
    float single = (float)a[i];
    half small = (half)single;
    out[4 * i] = single;
    out[4 * i + 1] = small;
    out[4 * i + 2] = (half)a[i];
    out[4 * i + 3] = (float)small * 3.0f;
}

/* Rounds f32 to bf16 and back, to nearest even, NaN kept: what bf16 tensors are on a GPU without bf16 arithmetic. */
static ushort bf16_round(float value)
{
    uint bits = __builtin_bit_cast(uint, value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (ushort)(bits >> 16 | 0x40);
    return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float bf16_value(ushort bits)
{
    return __builtin_bit_cast(float, (uint)bits << 16);
}

KERNEL void bf16_product(__global ushort *out, __global const ushort *a, __global const ushort *b)
{
    uint i = global_index();
    out[2 * i] = bf16_round(bf16_value(a[i]) * bf16_value(b[i]));
    out[2 * i + 1] = bf16_round(bf16_value(a[i]) + bf16_value(b[i]) * 0.5f);
}

#ifdef __AMDGCN__
KERNEL void bf16_type(__global __bf16 *out, __global const __bf16 *a, __global const float *b)
{
    uint i = global_index();
    out[i] = (__bf16)((float)a[i] * b[i]);
}
#endif

KERNEL void classes(__global uint *out, __global const float *a, __global const double *b)
{
    uint i = global_index();
    uint bits = 0;
    bits |= __builtin_isnan(a[i]) << 0;
    bits |= __builtin_isinf(a[i]) << 1;
    bits |= __builtin_isfinite(a[i]) << 2;
    bits |= __builtin_isnormal(a[i]) << 3;
    bits |= __builtin_isnan(b[i]) << 4;
    bits |= __builtin_isinf(b[i]) << 5;
    bits |= __builtin_isfinite(b[i]) << 6;
    bits |= __builtin_isnormal(b[i]) << 7;
    bits |= (a[i] != a[i]) << 8;
    bits |= !(a[i] < 1.0f) << 9;
    bits |= __builtin_isunordered(a[i], 1.0f) << 10;
    bits |= __builtin_islessgreater(b[i], 1.0) << 11;
    out[i] = bits;
}

KERNEL void polynomials(__global float *out, __global const float *a)
{
    uint i = global_index();
    float x = a[i], sum = 0.0f;
    sum = __builtin_fmaf(sum, x, 0.00833333377f);
    sum = __builtin_fmaf(sum, x, -0.166666672f);
    sum = __builtin_fmaf(sum, x, 0.0416666679f);
    sum = __builtin_fmaf(sum, x, 0.5f);
    float other = x * 3.14159274f + 1.0f;
    other = other * x - 2.71828175f;
    out[2 * i] = sum * other + x;
    out[2 * i + 1] = sum - other * 0.333333343f;
}
