// Kernels of hcq's tests for gfx1100, one wave each; kernels_gfx1100.sh makes kernels_gfx1100.inc of them (LLVM 19).
#define ONE_WAVE __attribute__((reqd_work_group_size(32, 1, 1))) kernel void

// As in tests/unit/drivers/host/kernels.c.
ONE_WAVE mix(global uchar *target, global const uchar *source, uint target_count, uint source_count, uint salt)
{
    for (uint i = __builtin_amdgcn_workitem_id_x(); i < target_count; i += 32) {
        uint k = i < source_count ? i : source_count - 1;
        target[i] = target[i] * 31 + source[k] + salt;
    }
}

// Stores a word wherever it is told to.
ONE_WAVE store_at(ulong address, uint value)
{
    if (__builtin_amdgcn_workitem_id_x() == 0)
        *(global volatile uint *)address = value;
}

// Never ends, and moves nothing that could be seen.
ONE_WAVE endless(global uint *unused)
{
    __asm__ volatile("0: s_branch 0b");
}

// The first of two waves never ends, the second waits for it at the barrier.
__attribute__((reqd_work_group_size(64, 1, 1))) kernel void stuck_at_barrier(global uint *out)
{
    if (__builtin_amdgcn_workitem_id_x() < 32)
        __asm__ volatile("0: s_branch 0b");
    __builtin_amdgcn_s_barrier();
    out[0] = 1;
}

// Each wave executes some 2 * turns instructions, then says that it was there.
ONE_WAVE spin(global uint *out, uint turns)
{
    __asm__ volatile("0: s_sub_u32 %0, %0, 1\n\ts_cbranch_scc0 0b" : "+s"(turns) : : "scc");
    if (__builtin_amdgcn_workitem_id_x() == 0)
        out[__builtin_amdgcn_workgroup_id_x()] = turns;
}

// c = a * b, matrices of n * n; a group per row, a lane per column and its multiples.
ONE_WAVE matmul(global float *c, global const float *a, global const float *b, uint n)
{
    uint row = __builtin_amdgcn_workgroup_id_x();
    for (uint column = __builtin_amdgcn_workitem_id_x(); column < n; column += 32) {
        float sum = 0;
        for (uint k = 0; k < n; k++)
            sum += a[row * n + k] * b[k * n + column];
        c[row * n + column] = sum;
    }
}

ONE_WAVE load_at(ulong address, global uint *out)
{
    if (__builtin_amdgcn_workitem_id_x() == 0)
        out[0] = *(global volatile uint *)address;
}

ONE_WAVE atomic_at(ulong address, uint value)
{
    if (__builtin_amdgcn_workitem_id_x() == 0)
        __opencl_atomic_fetch_add((global atomic_uint *)address, value, __ATOMIC_RELAXED, __OPENCL_MEMORY_SCOPE_DEVICE);
}

// A function of its own, whose code stands behind that of another kernel than the one that calls it.
__attribute__((noinline)) void put(ulong address, uint value)
{
    *(global volatile uint *)address = value;
}

ONE_WAVE store_by_call(ulong address, uint value)
{
    if (__builtin_amdgcn_workitem_id_x() == 0)
        put(address, value);
}

// No arguments at all.
ONE_WAVE nothing(void)
{
}

// Not an instruction of gfx11.
ONE_WAVE illegal(global uint *unused)
{
    __asm__ volatile(".long 0xdeadbeef");
}

// Every lane keeps `words` words in scratch, and sums them in an order that the compiler cannot see through.
#define SCRATCH(words)                                                                                                           \
    ONE_WAVE scratch_##words(global uint *out, uint stride)                                                                      \
    {                                                                                                                            \
        uint lane = __builtin_amdgcn_workitem_id_x(), sum = 0;                                                                   \
        volatile uint memory[words];                                                                                            \
        for (uint i = 0; i < words; i++)                                                                                         \
            memory[(i * stride) & (words - 1)] = i + lane;                                                                             \
        for (uint i = 0; i < words; i++)                                                                                         \
            sum = sum * 3 + memory[i];                                                                                           \
        out[lane] = sum;                                                                                                         \
    }
SCRATCH(16)
SCRATCH(256)
SCRATCH(1024)
SCRATCH(4096)
SCRATCH(16384)
