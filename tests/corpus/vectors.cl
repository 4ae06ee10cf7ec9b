/* Vector types: elements, shuffles, conversions, comparisons, loads and stores of every width. */
#include "corpus.h"

KERNEL void float4_math(__global float4 *out, __global const float4 *a, __global const float4 *b)
{
    uint i = global_index();
    float4 x = a[i], y = b[i];
    out[4 * i] = x * y + (float4)1.0f;
    out[4 * i + 1] = x.wzyx - y.yxwz;
    out[4 * i + 2] = __builtin_elementwise_max(x, y) * x.x;
    out[4 * i + 3] = (float4)(x.xy, y.zw) / (float4)3.0f;
}

KERNEL void uchar16_math(__global uchar16 *out, __global const uchar16 *a, __global const uchar16 *b)
{
    uint i = global_index();
    out[3 * i] = a[i] + b[i];
    out[3 * i + 1] = a[i] * b[i] >> (uchar16)3;
    out[3 * i + 2] = __builtin_shufflevector(a[i], b[i], 0, 16, 2, 18, 4, 20, 6, 22, 9, 25, 11, 27, 13, 29, 15, 31);
}

KERNEL void int8_math(__global int8 *out, __global const int8 *a, __global const int8 *b)
{
    uint i = global_index();
    int8 less = a[i] < b[i];
    out[2 * i] = (a[i] & less) | (b[i] & ~less);
    out[2 * i + 1] = a[i] * b[i] + (int8)i;
}

KERNEL void double3_math(__global double *out, __global const double *a)
{
    uint i = global_index();
    double3 x = (double3)(a[3 * i], a[3 * i + 1], a[3 * i + 2]);
    double3 y = x * x.yzx - x.zxy;
    out[3 * i] = y.x;
    out[3 * i + 1] = y.y;
    out[3 * i + 2] = y.z;
}

KERNEL void half8_math(__global half8 *out, __global const half8 *a, __global const half8 *b)
{
    uint i = global_index();
    out[i] = __builtin_elementwise_fma(a[i], b[i], a[i] - (half8)1);
}

KERNEL void convert_vectors(__global float4 *out, __global const uchar4 *a, __global const short4 *b,
                            __global const half4 *c)
{
    uint i = global_index();
    out[3 * i] = __builtin_convertvector(a[i], float4) * (1.0f / 255.0f);
    out[3 * i + 1] = __builtin_convertvector(b[i], float4);
    out[3 * i + 2] = __builtin_convertvector(c[i], float4);
}

/* An element whose number is not known before the kernel runs. */
KERNEL void dynamic_element(__global float *out, __global const float16 *a, __global const uint *which)
{
    uint i = global_index();
    float16 x = a[i];
    out[2 * i] = x[which[i] & 15];
    x[which[i] & 15] = 7.0f;
    out[2 * i + 1] = x.s0 + x.s5 * x.sf;
}

KERNEL void widths(__global uchar *out, __global const uchar *in)
{
    uint i = global_index();
    __global uchar *o = out + 64 * i;
    __global const uchar *a = in + 64 * i;
    o[0] = a[3];
    *(__global ushort *)(o + 2) = *(__global const ushort *)(a + 4);
    *(__global uint *)(o + 4) = *(__global const uint *)(a + 8);
    *(__global uint2 *)(o + 8) = *(__global const uint2 *)(a + 16);
    *(__global uint4 *)(o + 16) = *(__global const uint4 *)(a + 32);
    __builtin_memcpy(o + 33, a + 17, 12);
    *(__global short *)(o + 48) = (char)a[1] + (short)*(__global const char *)(a + 2);
    *(__global int *)(o + 52) = *(__global const short *)(a + 6) - *(__global const char *)(a + 7);
}

struct __attribute__((packed)) unaligned {
    uchar tag;
    uint word;
    ulong wide;
    float value;
};

KERNEL void unaligned_fields(__global struct unaligned *out, __global const struct unaligned *in)
{
    uint i = global_index();
    struct unaligned x = in[i];
    x.tag += 1;
    x.word ^= 0x5555;
    x.wide += x.word;
    x.value *= 2.0f;
    out[i] = x;
}
