/* Integers of every width: arithmetic, shifts, division, comparison, conversion, bit counts. */
#include "corpus.h"

/* Eight results per item and width; the second operand is never 0 where it divides. */
#define ARITHMETIC(type, name)                                                                                         \
    KERNEL void arithmetic_##name(__global type *out, __global const type *a, __global const type *b)                  \
    {                                                                                                                  \
        uint i = global_index();                                                                                       \
        type x = a[i], y = b[i];                                                                                       \
        __global type *o = out + 12 * i;                                                                               \
        o[0] = x + y;                                                                                                  \
        o[1] = x - y;                                                                                                  \
        o[2] = x * y;                                                                                                  \
        o[3] = x / (type)(y | 1);                                                                                      \
        o[4] = x % (type)(y | 1);                                                                                      \
        o[5] = x & y;                                                                                                  \
        o[6] = x | (type)~y;                                                                                           \
        o[7] = x ^ y;                                                                                                  \
        o[8] = x << (y & (sizeof(type) * 8 - 1));                                                                      \
        o[9] = x >> (y & (sizeof(type) * 8 - 1));                                                                      \
        o[10] = x < y ? x : y;                                                                                         \
        o[11] = -x;                                                                                                    \
    }

ARITHMETIC(char, i8)
ARITHMETIC(uchar, u8)
ARITHMETIC(short, i16)
ARITHMETIC(ushort, u16)
ARITHMETIC(int, i32)
ARITHMETIC(uint, u32)
ARITHMETIC(long, i64)
ARITHMETIC(ulong, u64)

KERNEL void wide_multiply(__global ulong *out, __global const ulong *a, __global const ulong *b)
{
    uint i = global_index();
    unsigned __int128 product = (unsigned __int128)a[i] * b[i];
    __int128 with_sign = (__int128)(long)a[i] * (long)b[i] + (long)i;
    out[4 * i] = (ulong)product;
    out[4 * i + 1] = (ulong)(product >> 64);
    out[4 * i + 2] = (ulong)with_sign;
    out[4 * i + 3] = (ulong)(with_sign >> (b[i] & 127));
}

KERNEL void high_halves(__global uint *out, __global const uint *a, __global const uint *b)
{
    uint i = global_index();
    out[4 * i] = (uint)(((ulong)a[i] * b[i]) >> 32);
    out[4 * i + 1] = (uint)(((long)(int)a[i] * (int)b[i]) >> 32);
    out[4 * i + 2] = (a[i] & 0xffffff) * (b[i] & 0xffffff);
    out[4 * i + 3] = (uint)(((int)(a[i] << 8) >> 8) * ((int)(b[i] << 8) >> 8)) + a[i];
}

KERNEL void bit_counts(__global uint *out, __global const ulong *a)
{
    uint i = global_index();
    ulong x = a[i];
    uint low = (uint)x;
    out[10 * i] = __builtin_popcount(low);
    out[10 * i + 1] = __builtin_popcountl(x);
    out[10 * i + 2] = low ? __builtin_clz(low) : 32;
    out[10 * i + 3] = x ? __builtin_clzl(x) : 64;
    out[10 * i + 4] = low ? __builtin_ctz(low) : 32;
    out[10 * i + 5] = x ? __builtin_ctzl(x) : 64;
    out[10 * i + 6] = __builtin_bitreverse32(low);
    out[10 * i + 7] = __builtin_bswap32(low);
    out[10 * i + 8] = (uint)(__builtin_bitreverse64(x) >> 17);
    out[10 * i + 9] = (uint)(__builtin_bswap64(x) >> 5);
}

KERNEL void rotates_and_fields(__global uint *out, __global const uint *a, __global const uint *b)
{
    uint i = global_index();
    uint x = a[i], n = b[i] & 31;
    out[8 * i] = __builtin_rotateleft32(x, n);
    out[8 * i + 1] = __builtin_rotateright32(x, n);
    out[8 * i + 2] = (x >> 7) & 0x1ff;
    out[8 * i + 3] = (uint)((int)(x << 11) >> 20);
    out[8 * i + 4] = (x & 0xff00ff00) | (b[i] & 0x00ff00ff);
    out[8 * i + 5] = (x << 4) + n;
    out[8 * i + 6] = (x << 4 | n) ^ b[i] ^ 0x12345678;
    out[8 * i + 7] = (uint)((((ulong)x << 32) | b[i]) >> n);
}

KERNEL void saturating(__global int *out, __global const int *a, __global const int *b)
{
    uint i = global_index();
    out[8 * i] = __builtin_elementwise_add_sat(a[i], b[i]);
    out[8 * i + 1] = __builtin_elementwise_sub_sat(a[i], b[i]);
    out[8 * i + 2] = (int)__builtin_elementwise_add_sat((uint)a[i], (uint)b[i]);
    out[8 * i + 3] = (int)__builtin_elementwise_sub_sat((uint)a[i], (uint)b[i]);
    out[8 * i + 4] = __builtin_elementwise_add_sat((short)a[i], (short)b[i]);
    out[8 * i + 5] = __builtin_elementwise_sub_sat((ushort)a[i], (ushort)b[i]);
    out[8 * i + 6] = __builtin_elementwise_abs(a[i]);
    out[8 * i + 7] = __builtin_elementwise_max(__builtin_elementwise_min(a[i], b[i]), 17);
}

KERNEL void overflow_flags(__global ulong *out, __global const ulong *a, __global const ulong *b)
{
    uint i = global_index();
    ulong sum, difference, product;
    uint flags = __builtin_add_overflow(a[i], b[i], &sum);
    flags |= (uint)__builtin_sub_overflow(a[i], b[i], &difference) << 1;
    flags |= (uint)__builtin_mul_overflow(a[i], b[i], &product) << 2;
    out[4 * i] = sum;
    out[4 * i + 1] = difference;
    out[4 * i + 2] = product;
    out[4 * i + 3] = flags;
}

KERNEL void conversions(__global long *out, __global const long *a)
{
    uint i = global_index();
    long x = a[i];
    out[6 * i] = (char)x;
    out[6 * i + 1] = (uchar)x;
    out[6 * i + 2] = (short)x;
    out[6 * i + 3] = (ushort)x;
    out[6 * i + 4] = (int)x;
    out[6 * i + 5] = (uint)x;
}

/* Each predicate of each width, as a bit. */
#define COMPARE(type, name)                                                                                            \
    KERNEL void compare_##name(__global uint *out, __global const type *a, __global const type *b)                     \
    {                                                                                                                  \
        uint i = global_index();                                                                                       \
        type x = a[i], y = b[i];                                                                                       \
        out[i] = (x == y) | (x != y) << 1 | (x < y) << 2 | (x <= y) << 3 | (x > y) << 4 | (x >= y) << 5 | !x << 6;     \
    }

COMPARE(short, i16)
COMPARE(ushort, u16)
COMPARE(int, i32)
COMPARE(uint, u32)
COMPARE(long, i64)
COMPARE(ulong, u64)
COMPARE(float, f32)
COMPARE(double, f64)
COMPARE(half, f16)

/* Uniform arithmetic: the scalar unit's share. */
KERNEL void scalar_work(__global ulong *out, ulong x, ulong y, uint n)
{
    ulong a = x, b = y;
    for (uint i = 0; i < n; i++) {
        a = (a * 0x9e3779b97f4a7c15ul) ^ (b >> 7);
        b = (b << 3) + (ulong)__builtin_popcountl(a) - (a & 0xff);
        if (a < b)
            b = ~b;
        if ((long)a < 0)
            a = b - a;
        b ^= (ulong)(x ? __builtin_clzl(x) : 64) * (uint)n;
        a += (ulong)((int)(uint)b >> 3) + (((uint)b / (n | 1)) % 1000);
        b |= __builtin_bitreverse32((uint)a);
    }
    if (global_index() == 0) {
        out[0] = a;
        out[1] = b;
        out[2] = (ulong)((unsigned __int128)a * b >> 64);
        out[3] = a / (b | 1);
    }
}
