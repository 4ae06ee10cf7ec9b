/* Local memory, barriers and atomics of every kind, order and scope. */
#include "corpus.h"

KERNEL void reverse_in_group(__global uint *out, __global const uint *a)
{
    __local uint tile[GROUP];
    uint i = global_index(), l = local_index();
    tile[l] = a[i];
    group_barrier();
    out[i] = tile[GROUP - 1 - l];
}

KERNEL void reduce(__global float *out, __global const float *a)
{
    __local float partial[GROUP];
    uint l = local_index();
    partial[l] = a[global_index()];
    for (uint stride = GROUP / 2; stride; stride >>= 1) {
        group_barrier();
        if (l < stride)
            partial[l] += partial[l + stride];
    }
    group_barrier();
    if (l == 0)
        out[group_index()] = partial[0];
}

KERNEL void transpose(__global float *out, __global const float *a)
{
    __local float tile[8][9];
    uint l = local_index(), g = group_index();
    tile[l / 8][l % 8] = a[g * GROUP + l];
    group_barrier();
    out[g * GROUP + l] = tile[l % 8][l / 8];
}

KERNEL void local_widths(__global ulong *out, __global const ulong *a)
{
    __local uchar bytes[GROUP];
    __local ushort shorts[GROUP];
    __local ulong longs[GROUP];
    __local uint4 quads[GROUP];
    __local float3 triples[GROUP];
    uint i = global_index(), l = local_index(), other = (l * 5 + 1) % GROUP;
    bytes[l] = (uchar)a[i];
    shorts[l] = (ushort)(a[i] >> 8);
    longs[l] = a[i] * 3;
    quads[l] = (uint4)((uint)a[i], l, 7, (uint)(a[i] >> 32));
    triples[l] = (float3)((float)l, 2.0f, (float)i);
    group_barrier();
    uint4 q = quads[other];
    float3 t = triples[other];
    out[i] = bytes[other] + (ulong)(short)shorts[other] + longs[other] + q.x + q.y * q.z + q.w + (ulong)(t.x + t.y * t.z) +
             (ulong)(char)bytes[l];
}

KERNEL void local_pairs(__global float *out, __global const float *a)
{
    __local float left[GROUP], right[GROUP];
    __local double wide[2 * GROUP];
    uint i = global_index(), l = local_index();
    left[l] = a[i];
    right[l] = a[i] * 2.0f;
    wide[l] = a[i];
    wide[l + GROUP] = a[i] * 3.0;
    group_barrier();
    uint o = GROUP - 1 - l;
    out[i] = left[o] + right[o] + (float)(wide[o] - wide[o + GROUP]);
}

#ifdef __AMDGCN__
#define DEVICE  __OPENCL_MEMORY_SCOPE_DEVICE
#define GROUPS  __OPENCL_MEMORY_SCOPE_WORK_GROUP
#define SYSTEM  __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES
#define RELAXED __ATOMIC_RELAXED

typedef atomic_int cell_i32;
typedef atomic_uint cell_u32;
typedef atomic_long cell_i64;
typedef atomic_ulong cell_u64;

#define ATOMICS(type, name, space)                                                                                     \
    KERNEL void atomics_##name##_##space(__global type *out, __global cell_##name *cells, __global const type *a)     \
    {                                                                                                                  \
        __local cell_##name locals[8];                                                                                \
        uint i = global_index(), l = local_index();                                                                    \
        if (l < 8)                                                                                                     \
            __opencl_atomic_init(&locals[l], (type)l);                                                                 \
        group_barrier();                                                                                               \
        space cell_##name *c = CELLS_##space;                                                                         \
        type x = a[i];                                                                                                 \
        __opencl_atomic_fetch_add(&c[0], x, RELAXED, DEVICE);                                                          \
        __opencl_atomic_fetch_sub(&c[1], x, __ATOMIC_ACQUIRE, GROUPS);                                                 \
        __opencl_atomic_fetch_and(&c[2], x, __ATOMIC_RELEASE, DEVICE);                                                 \
        __opencl_atomic_fetch_or(&c[3], x, __ATOMIC_ACQ_REL, SYSTEM);                                                  \
        __opencl_atomic_fetch_xor(&c[4], x, __ATOMIC_SEQ_CST, DEVICE);                                                 \
        __opencl_atomic_fetch_min(&c[5], x, RELAXED, GROUPS);                                                          \
        __opencl_atomic_fetch_max(&c[6], x, RELAXED, DEVICE);                                                          \
        type old = __opencl_atomic_fetch_add(&c[7], (type)1, __ATOMIC_SEQ_CST, DEVICE);                                \
        old += __opencl_atomic_fetch_max(&c[6], x, RELAXED, DEVICE);                                                   \
        old += __opencl_atomic_exchange(&c[0], x, __ATOMIC_ACQ_REL, DEVICE);                                           \
        type expected = old;                                                                                           \
        __opencl_atomic_compare_exchange_strong(&c[1], &expected, x, __ATOMIC_SEQ_CST, RELAXED, DEVICE);               \
        old += __opencl_atomic_load(&c[2], __ATOMIC_ACQUIRE, DEVICE);                                                  \
        __opencl_atomic_store(&c[3], expected, __ATOMIC_RELEASE, SYSTEM);                                              \
        out[i] = old;                                                                                                  \
    }
#define CELLS___global cells
#define CELLS___local  locals

ATOMICS(int, i32, __global)
ATOMICS(uint, u32, __global)
ATOMICS(long, i64, __global)
ATOMICS(ulong, u64, __global)
ATOMICS(int, i32, __local)
ATOMICS(uint, u32, __local)
ATOMICS(ulong, u64, __local)

/* Orders alone: what the cache controls become. */
KERNEL void fences(__global atomic_uint *flag, __global uint *data)
{
    data[global_index()] = 1;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    __opencl_atomic_store(flag, 1u, RELAXED, DEVICE);
    while (__opencl_atomic_load(flag, RELAXED, DEVICE) == 0)
        __builtin_amdgcn_s_sleep(1);
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    data[global_index() + 64] = data[0];
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
    data[global_index() + 128] = data[1];
}

/* Final values do not depend on the order: sums and extremes of integers, a float sum of small integers. */
KERNEL void histogram(__global atomic_uint *bins, __global const uint *a)
{
    __local atomic_uint mine[16];
    uint l = local_index();
    if (l < 16)
        __opencl_atomic_init(&mine[l], 0u);
    group_barrier();
    __opencl_atomic_fetch_add(&mine[a[global_index()] & 15], 1u, RELAXED, GROUPS);
    group_barrier();
    if (l < 16)
        __opencl_atomic_fetch_add(&bins[l], __opencl_atomic_load(&mine[l], RELAXED, GROUPS), RELAXED, DEVICE);
}

KERNEL void float_atomics(__global float *sum, __global float *extremes, __global const float *a)
{
    __local float part;
    uint i = global_index();
    if (local_index() == 0)
        part = 0.0f;
    group_barrier();
    __builtin_amdgcn_ds_faddf((__local float *)&part, a[i], RELAXED, GROUPS, false);
    __builtin_amdgcn_global_atomic_fadd_f32(sum, a[i]);
    group_barrier();
    if (local_index() == 0)
        extremes[group_index()] = part;
}
#endif
