/* More of what only this GPU has: saturating packs, minima that clamp, atomics beyond OpenCL's, traps and modes. */
#include "corpus.h"

#define RELAXED __ATOMIC_RELAXED

KERNEL void med3_and_clamp(__global float *out, __global half *out_half, __global const float *a, __global const half *b)
{
    uint i = global_index();
    float x = a[i];
    out[4 * i] = __builtin_amdgcn_fmed3f(x, 0.0f, 1.0f);
    out[4 * i + 1] = __builtin_amdgcn_fmed3f(x * 2.0f + 1.0f, 0.0f, 1.0f);
    out[4 * i + 2] = __builtin_elementwise_max(__builtin_elementwise_min(x * a[i + 1], 1.0f), 0.0f);
    out[4 * i + 3] = (x + a[i + 1]) * 0.5f - (x * 4.0f);
    out_half[i] = __builtin_amdgcn_fmed3h(b[i] * (half)3, (half)0, (half)1);
}

KERNEL void wrapping_atomics(__global uint *out, __global uint *cells, __global ulong *wide_cells, __global const uint *a)
{
    __local uint cell[4];
    __local ulong wide[2];
    uint i = global_index();
    if (local_index() < 4)
        cell[local_index()] = 5;
    if (local_index() < 2)
        wide[local_index()] = 5;
    group_barrier();
    uint old = __builtin_amdgcn_atomic_inc32(&cells[0], 1000u, RELAXED, "agent");
    old += __builtin_amdgcn_atomic_dec32(&cells[1], a[i], RELAXED, "agent");
    __builtin_amdgcn_atomic_inc32(&cells[2], 77u, RELAXED, "agent");
    old += __builtin_amdgcn_atomic_inc32((__local uint *)&cell[0], 100u, RELAXED, "workgroup");
    __builtin_amdgcn_atomic_dec32((__local uint *)&cell[1], 9u, RELAXED, "workgroup");
    old += (uint)__builtin_amdgcn_atomic_inc64(&wide_cells[0], 1000ul, RELAXED, "agent");
    __builtin_amdgcn_atomic_dec64(&wide_cells[1], 50ul, RELAXED, "agent");
    old += (uint)__builtin_amdgcn_atomic_dec64((__local ulong *)&wide[0], 50ul, RELAXED, "workgroup");
    group_barrier();
    out[i] = old + cell[local_index() & 3] + (uint)wide[i & 1];
}

KERNEL void float_extremes(__global float *cells, __global const float *a, __global double *wide, __local float *shared)
{
    uint i = global_index();
    float f = __builtin_amdgcn_ds_fminf((__local float *)shared, a[i], RELAXED, 1, false);
    f += __builtin_amdgcn_ds_fmaxf((__local float *)&shared[1], a[i], RELAXED, 1, false);
    f += __builtin_amdgcn_ds_faddf((__local float *)&shared[2], a[i], RELAXED, 1, false);
    __builtin_amdgcn_ds_fminf((__local float *)&shared[3], a[i], RELAXED, 1, false);
    cells[i] = f;
    wide[i] = f;
}

KERNEL void append_and_consume(__global int *out, __local int *counter)
{
    out[2 * global_index()] = __builtin_amdgcn_ds_append(counter);
    out[2 * global_index() + 1] = __builtin_amdgcn_ds_consume(counter);
}

KERNEL void modes(__global float *out, __global const float *a)
{
    uint i = global_index();
    __builtin_amdgcn_s_setreg(1 | 0 << 6 | 3 << 11, 3); /* MODE, round toward 0 */
    float toward_zero = a[i] + 1e-7f;
    __builtin_amdgcn_s_setreg(1 | 0 << 6 | 3 << 11, 0);
    out[i] = toward_zero * a[i];
    if (a[i] > 1e30f)
        __builtin_trap();
}

/* s_movrel and v_movrel: a vector indexed by a uniform value. */
KERNEL void uniform_element(__global float *out, __global const float16 *a, uint which)
{
    uint i = global_index();
    float16 x = a[i];
    x[which & 15] = 3.0f;
    out[i] = x[(which + 5) & 15] + x.s3;
}

KERNEL void uniform_scalar_element(__global uint *out, __constant uint16 *a, uint which)
{
    uint16 x = a[0];
    x[which & 15] += 3;
    out[global_index()] = x[(which + 3) & 15];
}

KERNEL void odd_widths(__global uint *out, __global const uint *a)
{
    __local uint3 triples[GROUP] __attribute__((aligned(16)));
    __local double2 pairs[GROUP];
    uint l = local_index(), i = global_index();
    triples[l] = (uint3)(a[i], l, i);
    pairs[l] = (double2)(a[i], l);
    group_barrier();
    uint3 t = triples[GROUP - 1 - l];
    double2 p = pairs[GROUP - 1 - l];
    out[2 * i] = t.x + t.y + t.z;
    out[2 * i + 1] = (uint)(p.x + p.y);
}

KERNEL void inverse_ballot(__global uint *out, __global const uint *a, uint mask)
{
    uint i = global_index();
    bool odd = (a[i] ^ mask) & 1, high = a[i] > mask;
    out[3 * i] = odd && !high ? a[i] : mask;
    out[3 * i + 1] = odd != high ? a[i] : 7;
    out[3 * i + 2] = (odd || !high) ? 1 : 2;
    if (!(odd ^ high))
        out[3 * i + 2] = 9;
}

KERNEL void half_logs(__global half *out, __global const half *a)
{
    uint i = global_index();
    out[3 * i] = __builtin_log2f16(a[i]);
    out[3 * i + 1] = __builtin_exp2f16(a[i]);
    out[3 * i + 2] = __builtin_elementwise_rint(a[i] * (half)1.5f + (half)0.25f);
}
