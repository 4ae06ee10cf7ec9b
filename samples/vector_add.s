; c[i] = a[i] + b[i] for gfx1100, wave32. The words in vector_add.inc are this file, assembled:
;   llvm-mc-19 -triple amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj vector_add.s -o vector_add.o
;   od -An -v -t x4 -w32 vector_add.o | sed -E 's/ +([0-9a-f]{8})/0x\1,/g' > vector_add.inc
; s[0:1]: address of the arguments a, b, c, count. s15: number of the workgroup, the first SGPR after the 15 that
; .amdhsa_user_sgpr_count reserves. v0: number of the work-item in its group.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	vector_add
	.p2align	8
	.type	vector_add,@function
vector_add:
	s_load_b32 s8, s[0:1], 0x18               ; count
	s_load_b128 s[4:7], s[0:1], null          ; a, b
	s_load_b64 s[2:3], s[0:1], 0x10           ; c
	v_lshl_add_u32 v0, s15, 6, v0             ; groups have 64 work-items
	s_waitcnt lgkmcnt(0)
	v_cmp_gt_u32_e32 vcc_lo, s8, v0           ; only where i < count
	s_and_saveexec_b32 s8, vcc_lo
	s_cbranch_execz .Ldone
	v_lshlrev_b32_e32 v0, 2, v0               ; bytes
	global_load_b32 v1, v0, s[4:5]
	global_load_b32 v2, v0, s[6:7]
	s_waitcnt vmcnt(0)
	v_add_f32_e32 v1, v1, v2
	global_store_b32 v0, v1, s[2:3]
.Ldone:
	s_endpgm
.Lend:
	.size	vector_add, .Lend-vector_add

	.rodata
	.p2align	6
	.amdhsa_kernel vector_add
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 15
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_kernarg_size 28
		.amdhsa_next_free_vgpr 3
		.amdhsa_next_free_sgpr 16
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel

	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - .name: vector_add
    .symbol: vector_add.kd
    .kernarg_segment_size: 28
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 18
    .vgpr_count: 3
    .max_flat_workgroup_size: 1024
    .args:
      - { .name: a, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: b, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: c, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global }
      - { .name: count, .offset: 24, .size: 4, .value_kind: by_value }
...
	.end_amdgpu_metadata
