// Kernels that need what vector_add of kernels.s does not: hidden arguments, the dispatch packet, LDS, barriers, scratch,
// calls, faults. Compiled by the scenario tests with
//   clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O{0,2} -c
// without any header, so the builtins stand for OpenCL's functions.
typedef unsigned int u32;

static u32 global_id(void)
{
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

kernel void add(global float *c, global const float *a, global const float *b, u32 count)
{
    u32 i = global_id();
    if (i < count)
        c[i] = a[i] + b[i];
}

kernel void geometry(global u32 *out)
{
    if (__builtin_amdgcn_workitem_id_x() || __builtin_amdgcn_workitem_id_y() || __builtin_amdgcn_workitem_id_z())
        return;
    u32 group = __builtin_amdgcn_workgroup_id_x() + 3 * (__builtin_amdgcn_workgroup_id_y() + 2 * __builtin_amdgcn_workgroup_id_z());
    global u32 *row = out + 8 * group;
    row[0] = __builtin_amdgcn_workgroup_id_x();
    row[1] = __builtin_amdgcn_workgroup_id_y();
    row[2] = __builtin_amdgcn_workgroup_id_z();
    row[3] = __builtin_amdgcn_workgroup_size_x();
    row[4] = __builtin_amdgcn_workgroup_size_y();
    row[5] = __builtin_amdgcn_grid_size_x(); // from the dispatch packet
    row[6] = __builtin_amdgcn_grid_size_y();
    row[7] = __builtin_amdgcn_grid_size_z();
}

kernel void reverse(global u32 *out, global const u32 *in)
{
    local u32 tile[256];
    u32 lane = __builtin_amdgcn_workitem_id_x(), base = __builtin_amdgcn_workgroup_id_x() * 256;
    tile[lane] = in[base + lane];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    out[base + lane] = tile[255 - lane];
}

// Dynamic indexing keeps the array in scratch.
kernel void scratch_small(global u32 *out, global const u32 *in, u32 shift)
{
    volatile u32 values[16];
    u32 i = global_id();
    for (u32 k = 0; k < 16; k++)
        values[k] = in[(i + k) & 1023];
    out[i] = values[(i + shift) & 15];
}

kernel void scratch_large(global u32 *out, global const u32 *in, u32 shift)
{
    volatile u32 values[1024];
    u32 i = global_id();
    for (u32 k = 0; k < 1024; k += 64)
        values[k] = in[(i + k) & 1023];
    out[i] = values[(shift & 15) * 64];
}

// A call that is not inlined: return addresses, callee frames, arguments in registers.
__attribute__((noinline)) static u32 weigh(u32 n, global const u32 *in)
{
    volatile u32 here = in[n & 1023];
    return here * n + 1;
}

kernel void calls(global u32 *out, global const u32 *in)
{
    u32 i = global_id();
    out[i] = weigh(i, in) + weigh(i + 1, in);
}

kernel void store_at(global u32 *target, u32 value)
{
    target[__builtin_amdgcn_workitem_id_x()] = value;
}

kernel void endless(global u32 *flag)
{
    while (__atomic_load_n(flag, __ATOMIC_RELAXED) == 0) {
    }
}

kernel void illegal(global u32 *out)
{
    *out = 1;
    __asm__ volatile(".long 0xbfffffff"); // no instruction has this encoding
}
