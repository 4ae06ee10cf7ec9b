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
SCRATCH(1024)
