/* Control flow: divergence, loops with breaks, switches, early returns, private arrays, function calls. */
#include "corpus.h"

KERNEL void divergent_if(__global int *out, __global const int *a)
{
    uint i = global_index();
    int x = a[i];
    if (x & 1) {
        if (x & 2)
            x = x * 3 + 1;
        else
            x = x - 7;
    } else if (x & 4) {
        x = ~x;
    }
    out[i] = x;
}

KERNEL void collatz(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    uint x = a[i] % 10000 + 1, steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        if (++steps == 500)
            break;
    }
    out[i] = steps;
}

KERNEL void nested_loops(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    uint limit = a[i] & 15, sum = 0;
    for (uint x = 0; x < limit; x++) {
        for (uint y = x; y < 20; y++) {
            if ((x * y + i) % 7 == 3)
                continue;
            if (sum > 3000)
                goto out_of_both;
            sum += x ^ y;
        }
    }
out_of_both:
    out[i] = sum;
}

KERNEL void many_cases(__global int *out, __global const int *a)
{
    uint i = global_index();
    int x = a[i], r;
    switch (x & 15) {
    case 0: r = x; break;
    case 1: r = -x; break;
    case 2: r = x * x; break;
    case 3: r = x / 3; break;
    case 5: r = x << 5; break;
    case 6: r = x >> 2; // falls through
    case 7: r = x ^ 0x77; break;
    case 11: r = x % 11; break;
    case 12: r = 12; break;
    default: r = x + 1000;
    }
    out[i] = r;
}

KERNEL void early_return(__global int *out, __global const int *a)
{
    uint i = global_index();
    if (a[i] < 0)
        return;
    out[i] = a[i] * 2;
    if (a[i] > 100)
        return;
    out[i] += 5;
}

KERNEL void short_circuit(__global uint *out, __global const float *a, __global const float *b)
{
    uint i = global_index();
    uint r = 0;
    if (a[i] > 0.0f && b[i] > 0.0f)
        r |= 1;
    if (a[i] > 1.0f || (b[i] < -1.0f && a[i] != b[i]))
        r |= 2;
    r |= (a[i] < b[i] ? a[i] > -5.0f : b[i] > -5.0f) ? 4 : 0;
    out[i] = r;
}

/* Arrays that do not fit in registers and are indexed by data: scratch memory. */
KERNEL void private_array(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    uint table[64];
    for (uint k = 0; k < 64; k++)
        table[k] = k * k + i;
    for (uint k = 0; k < 32; k++) {
        uint j = a[(i + k) & 63] & 63;
        uint t = table[j];
        table[j] = table[63 - j] + k;
        table[63 - j] = t;
    }
    uint sum = 0;
    for (uint k = 0; k < 64; k++)
        sum = sum * 31 + table[k];
    out[i] = sum;
}

KERNEL void private_bytes(__global uchar *out, __global const uchar *a)
{
    uint i = global_index();
    uchar bytes[100];
    ushort shorts[20];
    ulong longs[10];
    for (uint k = 0; k < 100; k++)
        bytes[k] = a[(i * 7 + k) & 255];
    for (uint k = 0; k < 20; k++)
        shorts[k] = (ushort)(bytes[bytes[k] % 100] * 257u);
    for (uint k = 0; k < 10; k++)
        longs[k] = shorts[shorts[k] % 20] * 0x100010001ul;
    out[i] = (uchar)(longs[a[i] % 10] >> 13) + bytes[a[i] % 100];
}

NOINLINE uint helper_leaf(uint x, uint y)
{
    return x * y + (x ^ y);
}

NOINLINE uint helper_middle(uint x, __private uint *count)
{
    (*count)++;
    return helper_leaf(x, *count) + helper_leaf(x + 1, 3);
}

struct many {
    uint values[24];
    float scale;
};

NOINLINE struct many helper_struct(struct many in, uint k)
{
    for (uint j = 0; j < 24; j++)
        in.values[j] += j * k;
    in.scale *= 1.5f;
    return in;
}

NOINLINE ulong helper_many_arguments(uint a, ulong b, float c, double d, uint4 e, short f, uint8 g, uint8 h, uint8 i, ulong j)
{
    return a + b + (ulong)c + (ulong)d + e.x + e.w + (ulong)f + g.s3 + h.s4 + i.s7 + j;
}

KERNEL void calls(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    uint count = a[i] & 7, sum = 0;
    struct many m;
    for (uint k = 0; k < 24; k++)
        m.values[k] = a[i] + k;
    m.scale = 2.0f;
    sum += helper_middle(a[i], &count);
    if (a[i] & 1)
        sum += helper_middle(sum, &count);
    m = helper_struct(m, count);
    sum += m.values[a[i] % 24] + (uint)m.scale;
    sum += (uint)helper_many_arguments(i, a[i], 3.0f, 4.0, (uint4)(1, 2, 3, i), (short)i, (uint8)a[i], (uint8)7, (uint8)i,
                                       0x100000001ul);
    out[i] = sum;
}

#ifdef __AMDGCN__
NOINLINE uint fibonacci(uint n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

KERNEL void recursion(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    out[i] = fibonacci(a[i] % 8);
}

#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef uint (*binary)(uint, uint);

NOINLINE uint pointed_add(uint x, uint y)
{
    return x + y;
}

NOINLINE uint pointed_multiply(uint x, uint y)
{
    return x * y;
}

/* A call target that differs between lanes: a loop over the distinct ones. */
KERNEL void indirect_calls(__global uint *out, __global const uint *a)
{
    uint i = global_index();
    binary f = a[i] & 1 ? pointed_add : a[i] & 2 ? pointed_multiply : helper_leaf;
    out[i] = f(a[i], i);
}
#endif

/* Loads through a pointer that may be global, local or private: flat instructions. */
KERNEL void generic_pointers(__global uint *out, __global uint *a)
{
    __local uint shared[GROUP];
    uint i = global_index(), l = local_index();
    uint mine[4] = {i, i + 1, i + 2, i + 3};
    shared[l] = l * 3;
    group_barrier();
    uint *p = (a[i] & 3) == 0 ? (uint *)&a[i] : (a[i] & 3) == 1 ? (uint *)&shared[(l + 1) % GROUP] : &mine[a[i] >> 2 & 3];
    *p += 1;
    group_barrier();
    out[i] = *p + mine[2] + shared[l];
}
