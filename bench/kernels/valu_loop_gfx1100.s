// 64 VALU operations, half of them single precision and half integer, and a loop around them: s_load_b32 s0 = how often.
.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
.text
.globl valu_loop
.p2align 8
.type valu_loop,@function
valu_loop:
  s_load_b32 s4, s[0:1], 0x18
  v_cvt_f32_u32_e32 v1, v0
  v_mov_b32_e32 v2, 1.0
  v_mov_b32_e32 v3, 0.5
  v_mov_b32_e32 v4, 2.0
  v_mov_b32_e32 v5, 0
  v_mov_b32_e32 v6, 3
  v_mov_b32_e32 v7, 7
  v_mov_b32_e32 v8, v0
  s_waitcnt lgkmcnt(0)
.Lloop:
.rept 4
  v_fmac_f32_e32 v2, v1, v3
  v_add_nc_u32_e32 v5, v5, v6
  v_mul_f32_e32 v3, v3, v4
  v_xor_b32_e32 v6, v5, v7
  v_add_f32_e32 v1, v2, v3
  v_lshlrev_b32_e32 v7, 1, v6
  v_sub_f32_e32 v4, v4, v2
  v_and_b32_e32 v8, v7, v5
  v_max_f32_e32 v2, v1, v4
  v_or_b32_e32 v5, v8, v6
  v_fma_f32 v3, v1, v2, v4
  v_lshl_add_u32 v6, v5, 2, v8
  v_min_f32_e32 v4, v3, v2
  v_sub_nc_u32_e32 v7, v7, v6
  v_mul_f32_e32 v1, 0.5, v1
  v_add3_u32 v8, v6, v7, v5
.endr
  s_sub_u32 s4, s4, 1
  s_cmp_lg_u32 s4, 0
  s_cbranch_scc1 .Lloop
  s_endpgm

.globl wave_start
.p2align 8
.type wave_start,@function
wave_start:
  s_endpgm

.section .rodata
.p2align 6
.amdhsa_kernel valu_loop
  .amdhsa_next_free_vgpr 9
  .amdhsa_next_free_sgpr 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
.amdhsa_kernel wave_start
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
