; What hand-written kernels do wrong, for tests/cli/launch_test.sh: one that never ends, stores outside of everything, an illegal
; instruction, and one that is right.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"

	.macro	kernel name
	.text
	.globl	\name
	.p2align	8
	.type	\name,@function
\name:
	.endm

	.macro	endkernel name, lds=0, vgprs=4
	s_endpgm
.Lend_\name:
	.size	\name, .Lend_\name-\name
	.rodata
	.p2align	6
	.amdhsa_kernel \name
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_kernarg_size 8
		.amdhsa_next_free_vgpr \vgprs
		.amdhsa_group_segment_fixed_size \lds
		.amdhsa_next_free_sgpr 16
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.endm

	kernel endless
.Lagain:
	s_sleep 1
	s_branch .Lagain
	endkernel endless

	kernel wild                             ; far from every buffer
	v_mov_b32_e32 v0, 0x5678
	v_mov_b32_e32 v1, 0x1234
	global_store_b32 v[0:1], v0, off
	endkernel wild

	kernel null                             ; the null address
	v_mov_b32_e32 v0, 0
	v_mov_b32_e32 v1, 0
	global_store_b32 v[0:1], v0, off
	endkernel null

	kernel past_end                         ; 16 bytes past a buffer of 64 KiB
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32_e32 v0, 0x10010
	v_mov_b32_e32 v1, 7
	s_waitcnt lgkmcnt(0)
	global_store_b32 v0, v1, s[2:3]
	endkernel past_end

	kernel beyond_scratch                   ; has none
	scratch_store_b32 off, v0, off offset:4000
	endkernel beyond_scratch

	kernel illegal
	.long	0xffffffff
	endkernel illegal

	kernel odd_lds                          ; a misaligned atomic of LDS
	v_mov_b32_e32 v0, 6
	ds_add_u32 v0, v0
	endkernel odd_lds, 64

	kernel across_end                       ; begins in a buffer of 64 KiB, ends outside
	s_load_b64 s[2:3], s[0:1], null
	v_mov_b32_e32 v0, 0xfff8
	s_waitcnt lgkmcnt(0)
	global_store_b128 v0, v[0:3], s[2:3]
	endkernel across_end

	kernel into_buffer                      ; goes on where no code is
	s_load_b64 s[2:3], s[0:1], null
	s_waitcnt lgkmcnt(0)
	s_setpc_b64 s[2:3]
	endkernel into_buffer

	kernel trapped
	s_nop 0
	s_trap 2
	endkernel trapped

	kernel registers                        ; as many as there are
	v_mov_b32_e32 v255, 0
	endkernel registers, 0, 256

	kernel store_item                       ; p[item] = item
	s_load_b64 s[2:3], s[0:1], null
	v_lshlrev_b32_e32 v1, 2, v0
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v0, s[2:3]
	endkernel store_item

	.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1100
amdhsa.kernels:
  - { .name: endless, .symbol: endless.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: wild, .symbol: wild.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: null, .symbol: null.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: past_end, .symbol: past_end.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: beyond_scratch, .symbol: beyond_scratch.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: illegal, .symbol: illegal.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: odd_lds, .symbol: odd_lds.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 64, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: across_end, .symbol: across_end.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: into_buffer, .symbol: into_buffer.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: trapped, .symbol: trapped.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: registers, .symbol: registers.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 256, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
  - { .name: store_item, .symbol: store_item.kd, .kernarg_segment_size: 8, .kernarg_segment_align: 8, .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 32, .sgpr_count: 18, .vgpr_count: 4, .max_flat_workgroup_size: 1024, .args: [ { .name: p, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global } ] }
...
	.end_amdgpu_metadata
