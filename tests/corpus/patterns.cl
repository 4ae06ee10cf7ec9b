/* Shapes that clang turns into the rarer operations: three-operand minima and maxima, uniform bit fields and comparisons,
 * 16-bit halves, wide loads from constant memory. Compiles for the host too. */
#include "corpus.h"

#define MIN __builtin_elementwise_min
#define MAX __builtin_elementwise_max

/* No partial result is used twice, or the pattern would not fuse. */
#define THREE(type, name)                                                                                              \
    KERNEL void three_##name(__global type *out, __global const type *a, __global const type *b, __global const type *c) \
    {                                                                                                                  \
        uint i = global_index();                                                                                       \
        type x = a[i], y = b[i], z = c[i], u = a[i + 1], v = b[i + 1], w = c[i + 1];                                   \
        __global type *o = out + 6 * i;                                                                                \
        o[0] = MIN(MIN(x, y), z);                                                                                      \
        o[1] = MAX(MAX(y, z), x);                                                                                      \
        o[2] = MAX(MIN(x, z), MIN(MAX(x, z), y));                                                                      \
        o[3] = MAX(MIN(u, v), w);                                                                                      \
        o[4] = MIN(MAX(v, w), u);                                                                                      \
        o[5] = MIN(MAX(w, (type)3), (type)17);                                                                         \
    }

THREE(int, i32)
THREE(uint, u32)
THREE(short, i16)
THREE(ushort, u16)
THREE(long, i64)
THREE(ulong, u64)
THREE(float, f32)
THREE(double, f64)
THREE(half, f16)

/* Sums, products and logic of three operands. */
KERNEL void fused_integers(__global uint *out, __global const uint *a, __global const uint *b, __global const uint *c)
{
    uint i = global_index();
    uint x = a[i], y = b[i], z = c[i];
    __global uint *o = out + 16 * i;
    o[0] = x + y + z;
    o[1] = (x << 3) + y;
    o[2] = (x + y) << 5;
    o[3] = (x ^ y) + z;
    o[4] = (x & y) | z;
    o[5] = (x << 9) | z;
    o[6] = x ^ y ^ z;
    o[7] = x | y | z;
    o[8] = (x & y) | (~x & z);
    o[9] = ~(x ^ y);
    o[10] = (uint)(ushort)x * (ushort)y + z;
    o[11] = (uint)((short)x * (short)y) + z;
    o[12] = (x & 0xffffff) * (y & 0xffffff) + z;
    o[13] = (uint)(((int)(x << 8) >> 8) * ((int)(y << 8) >> 8)) + z;
    o[14] = (x >= y ? x - y : y - x) + z;
    o[15] = (1u << (x & 31)) - 1;
}

KERNEL void wide_mads(__global long *out, __global const int *a, __global const int *b, __global const long *c)
{
    uint i = global_index();
    out[3 * i] = (long)a[i] * b[i] + c[i];
    out[3 * i + 1] = (long)((ulong)(uint)a[i] * (uint)b[i] + (ulong)c[i]);
    out[3 * i + 2] = c[i] * a[i] - (c[i] >> 40);
}

KERNEL void short_arithmetic(__global ushort *out, __global const ushort *a, __global const ushort *b,
                             __global const short *c)
{
    uint i = global_index();
    ushort x = a[i], y = b[i];
    short z = c[i];
    __global ushort *o = out + 10 * i;
    o[0] = (ushort)(x * y + z);
    o[1] = (ushort)~x;
    o[2] = x & (ushort)z;
    o[3] = x | y;
    o[4] = (ushort)(z >> (y & 15));
    o[5] = (ushort)(x << (y & 15));
    o[6] = (ushort)(x >> (y & 15));
    o[7] = (ushort)__builtin_elementwise_add_sat(x, y);
    o[8] = (ushort)__builtin_elementwise_sub_sat(z, (short)y);
    o[9] = x < y ? (ushort)z : x;
}

KERNEL void packed_more(__global ushort2 *out, __global const ushort2 *a, __global const ushort2 *b)
{
    uint i = global_index();
    ushort2 x = a[i], y = b[i], swapped = y.yx;
    out[6 * i] = x * y + swapped;
    out[6 * i + 1] = x >> (y & (ushort2)15);
    out[6 * i + 2] = MIN(x, swapped);
    out[6 * i + 3] = MAX(x, y);
    out[6 * i + 4] = __builtin_elementwise_sub_sat(x, y);
    out[6 * i + 5] = (ushort2)(x.y, y.x) - swapped;
}

/* Halves of a register written one by one. */
KERNEL void half_inserts(__global half2 *out, __global short2 *out_short, __global const half *a, __global const char *b,
                         __global const short *c)
{
    uint i = global_index();
    half2 pair = (half2)(a[3 * i], a[3 * i + 2]);
    out[2 * i] = pair;
    half2 mixed = (half2)((half)__builtin_fmaf((float)pair.x, (float)pair.y, 2.0f),
                          (half)__builtin_fmaf((float)pair.y, 0.25f, (float)pair.x));
    out[2 * i + 1] = mixed;
    out_short[3 * i] = (short2)(b[i], b[i + 64]);
    out_short[3 * i + 1] = (short2)(c[2 * i], c[2 * i + 64]);
    out_short[3 * i + 2] = (short2)(((__global const uchar *)b)[i + 7], c[i]);
}

/* A uniform value decides: everything here stays on the scalar unit. */
KERNEL void scalar_choices(__global long *out, __constant int *table, int x, int y, long wide, uint n)
{
    long r = 0;
    for (uint k = 0; k < n; k++) {
        int v = table[k];
        r += v == x ? 3 : 5;
        r ^= v > y ? wide : ~wide;
        if (v < x)
            r -= (char)v;
        if (v >= y && (v & 64))
            r += (short)v;
        if ((uint)v <= (uint)y)
            r <<= 1;
        if (wide == r)
            r = 7;
        r += v < 0 ? -(long)v : (long)v;
        r += (v >> 5 & 0x7f) + ((int)((uint)v << 7) >> 21);
        r ^= (wide >> 9 & 0x1ffff) + (long)((ulong)wide << 13 >> 44);
        r += ((uint)v << 1) + (uint)x + (((uint)v << 2) + (uint)y) * 3u + ((uint)v << 3) + (((uint)v << 4) ^ (uint)y);
        r ^= ~(v & x) + ~(v | y) + ~(v ^ 77);
        r += MIN(v, x) - MAX(v, y) + (long)MIN((uint)v, (uint)x) - (long)MAX((uint)v, (uint)y);
        r += (long)(((ulong)(uint)v * (uint)x) >> 32) + (((long)v * y) >> 32);
        r += __builtin_popcount(~(uint)v) + (v ? __builtin_clz((uint)v) : 7) + (v ? __builtin_ctz((uint)v) : 9);
        r -= __builtin_clrsb(v) + __builtin_clrsbl(wide + v);
        r ^= (long)(((ulong)1 << (v & 63)) | 1ul << (x & 63));
        r += (wide >> (v & 63)) ^ ((long)((ulong)wide >> (x & 63)));
        r += (long)__builtin_bitreverse64((ulong)r) & ~(1l << 33);
        if (r & 1l << (k & 63))
            r += (v > -17) + (v <= 300) + ((uint)v > 40000u) + ((uint)v < 70u) + (v >= 1234);
        r += (uint)v > (uint)x + 0xfffffff0u;
    }
    if (local_index() == 0)
        out[group_index()] = r;
}

/* Wide tables that never change: scalar loads of every width. */
struct wide {
    uint w[16];
};

KERNEL void constant_tables(__global uint *out, __constant struct wide *tables, uint which)
{
    struct wide t = tables[which];
    uint sum = 0, l = local_index();
    for (uint k = 0; k < 16; k++)
        sum += t.w[k] * (l + k);
    out[global_index()] = sum + tables[0].w[l & 15];
}

KERNEL void packed_table(__global int *out, __constant short2 *pairs, int x)
{
    short2 p = pairs[x], q = pairs[x + 1];
    int r = (p.x & 0xffff) | (q.x << 16);
    r ^= (p.y & 0xffff) | (q.y << 16);
    r += (p.x & 0xffff) | (q.y << 16);
    out[global_index()] = r + (int)local_index();
}
