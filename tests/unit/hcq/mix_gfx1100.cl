// `mix` of tests/unit/drivers/host/kernels.c for gfx1100, one wave; mix_gfx1100.sh makes mix_gfx1100.inc of it (LLVM 19).
__attribute__((reqd_work_group_size(32, 1, 1))) kernel void mix(global uchar *target, global const uchar *source, uint target_count,
                                                                uint source_count, uint salt)
{
    for (uint i = __builtin_amdgcn_workitem_id_x(); i < target_count; i += 32) {
        uint k = i < source_count ? i : source_count - 1;
        target[i] = target[i] * 31 + source[k] + salt;
    }
}
