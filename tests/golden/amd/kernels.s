// Two kernels for gfx1100 and a few things that a linker has to place: data, zeroed data, absolute and relative
// references. kernels.rel.elf and kernels.dyn.elf beside this file are made from it with LLVM 19:
//   llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj -defsym=RELOCATABLE=1 kernels.s -o kernels.rel.elf
//   llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj kernels.s -o pic.o; ld.lld-19 -shared pic.o -o kernels.dyn.elf
.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
.amdhsa_code_object_version 5

.text
.p2align 8
.globl vector_add
.type vector_add,@function
// c[i] = a[i] + b[i] for i < count: arguments a, b, c, count at 0, 8, 16, 24
vector_add:
  s_load_b256 s[4:11], s[0:1], 0x0
  s_load_b32 s12, s[0:1], 0x2c
  s_waitcnt lgkmcnt(0)
  s_and_b32 s12, s12, 0xffff
  v_mad_u64_u32 v[1:2], null, s2, s12, v[0:1]
  s_mov_b32 s13, exec_lo
  v_cmpx_gt_u32_e64 s10, v1
  s_cbranch_execz .Lend
  v_mov_b32_e32 v2, 0
  v_lshlrev_b64 v[1:2], 2, v[1:2]
  v_add_co_u32 v3, vcc_lo, s4, v1
  v_add_co_ci_u32_e32 v4, vcc_lo, s5, v2, vcc_lo
  v_add_co_u32 v5, vcc_lo, s6, v1
  v_add_co_ci_u32_e32 v6, vcc_lo, s7, v2, vcc_lo
  global_load_b32 v3, v[3:4], off
  global_load_b32 v4, v[5:6], off
  v_add_co_u32 v1, vcc_lo, s8, v1
  v_add_co_ci_u32_e32 v2, vcc_lo, s9, v2, vcc_lo
  s_waitcnt vmcnt(0)
  v_add_f32_e32 v3, v3, v4
  global_store_b32 v[1:2], v3, off
.Lend:
  s_endpgm

.p2align 8
.globl empty
.type empty,@function
empty:
  s_getpc_b64 s[2:3]
  s_add_u32 s2, s2, counter@rel32@lo+4
  s_addc_u32 s3, s3, counter@rel32@hi+12
  s_endpgm
.fill 16, 4, 0xbf9f0000

.rodata
.p2align 6
.amdhsa_kernel vector_add
  .amdhsa_kernarg_size 56
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 1
  .amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
.amdhsa_kernel empty
  .amdhsa_kernarg_size 0
  .amdhsa_group_segment_fixed_size 1024
  .amdhsa_private_segment_fixed_size 48
  .amdhsa_enable_private_segment 1
  .amdhsa_user_sgpr_dispatch_ptr 1
  .amdhsa_user_sgpr_queue_ptr 1
  .amdhsa_user_sgpr_dispatch_id 1
  .amdhsa_user_sgpr_private_segment_size 1
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_wavefront_size32 0
  .amdhsa_uses_dynamic_stack 1
.end_amdhsa_kernel

.data
.p2align 3
pointer:
  .quad counter
  .quad vector_add
  .long counter - .
.ifdef RELOCATABLE
  .long pointer@abs32@lo
  .long pointer@abs32@hi
.endif
.bss
.p2align 2
.globl counter
.hidden counter
counter:
  .zero 4

.amdgpu_metadata
amdhsa.version:
  - 1
  - 2
amdhsa.kernels:
  - .name: vector_add
    .symbol: vector_add.kd
    .kernarg_segment_size: 56
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - .name: a
        .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .name: b
        .offset: 8
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .name: c
        .offset: 16
        .size: 8
        .value_kind: global_buffer
        .address_space: global
      - .name: count
        .offset: 24
        .size: 4
        .value_kind: by_value
      - .offset: 32
        .size: 4
        .value_kind: hidden_block_count_x
      - .offset: 36
        .size: 4
        .value_kind: hidden_block_count_y
      - .offset: 40
        .size: 4
        .value_kind: hidden_block_count_z
      - .offset: 44
        .size: 2
        .value_kind: hidden_group_size_x
      - .offset: 46
        .size: 2
        .value_kind: hidden_group_size_y
      - .offset: 48
        .size: 2
        .value_kind: hidden_group_size_z
      - .offset: 50
        .size: 2
        .value_kind: hidden_grid_dims
      - .offset: 52
        .size: 4
        .value_kind: hidden_dynamic_lds_size
  - .name: empty
    .symbol: empty.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 48
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 1024
    .reqd_workgroup_size:
      - 64
      - 1
      - 1
.end_amdgpu_metadata
