; out[0] = in[0] by one wave. bench/kernels/build.sh makes tiny_gfx1100.inc of it (LLVM 19).
; Kernel arguments lie at s[0:1]; every lane reads and writes the same word, which is defined: they write one value.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	tiny
	.p2align	8
	.type	tiny,@function
tiny:
	s_load_b128 s[0:3], s[0:1], null
	v_mov_b32_e32 v0, 0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[0:1]
	s_waitcnt vmcnt(0)
	global_store_b32 v0, v1, s[2:3]
	s_endpgm
.Ltiny_end:
	.size	tiny, .Ltiny_end-tiny

	.rodata
	.p2align	6
	.amdhsa_kernel tiny
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 16
		.amdhsa_next_free_vgpr 2
		.amdhsa_next_free_sgpr 4
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_reserve_vcc 0
		.amdhsa_wavefront_size32 1
		.amdhsa_system_vgpr_workitem_id 0
	.end_amdhsa_kernel

	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - .name: tiny
    .symbol: tiny.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 4
    .vgpr_count: 2
    .max_flat_workgroup_size: 1024
    .args:
      - { .name: in, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: out, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
...
	.end_amdgpu_metadata
