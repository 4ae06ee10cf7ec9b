/* COMPUTE_* registers, the part of the shader register space that a dispatch sets. Expanded by regs.h and
 * regs.c.
 *
 * Source: Linux gc_11_0_0_offset.h and gc_11_0_0_sh_mask.h (segment 0 at 0x1260) and, where they differ,
 * gc_9_4_2_offset.h (segment 0 at 0x2000). Addresses are absolute dwords, as SET_SH_REG counts them from
 * 0x2c00.
 *
 * BW_AMD_REGS(R): R(name, generations, address); same names with the suffix _GFX9 where gfx9 has another
 * place. BW_AMD_REG_FIELDS(F): F(register, field, low, high). */
#ifndef BW_DRIVERS_AMD_REGS_TABLE_H
#define BW_DRIVERS_AMD_REGS_TABLE_H

#define BW_AMD_REGS_ANY (BW_AMD_PM4_COHER | BW_AMD_PM4_GCR)

#define BW_AMD_REGS(R)                                               \
    R(COMPUTE_DISPATCH_INITIATOR, BW_AMD_REGS_ANY, 0x2e00)           \
    R(COMPUTE_DIM_X, BW_AMD_REGS_ANY, 0x2e01)                        \
    R(COMPUTE_DIM_Y, BW_AMD_REGS_ANY, 0x2e02)                        \
    R(COMPUTE_DIM_Z, BW_AMD_REGS_ANY, 0x2e03)                        \
    R(COMPUTE_START_X, BW_AMD_REGS_ANY, 0x2e04)                      \
    R(COMPUTE_START_Y, BW_AMD_REGS_ANY, 0x2e05)                      \
    R(COMPUTE_START_Z, BW_AMD_REGS_ANY, 0x2e06)                      \
    R(COMPUTE_NUM_THREAD_X, BW_AMD_REGS_ANY, 0x2e07)                 \
    R(COMPUTE_NUM_THREAD_Y, BW_AMD_REGS_ANY, 0x2e08)                 \
    R(COMPUTE_NUM_THREAD_Z, BW_AMD_REGS_ANY, 0x2e09)                 \
    R(COMPUTE_PIPELINESTAT_ENABLE, BW_AMD_REGS_ANY, 0x2e0a)          \
    R(COMPUTE_PERFCOUNT_ENABLE, BW_AMD_REGS_ANY, 0x2e0b)             \
    R(COMPUTE_PGM_LO, BW_AMD_REGS_ANY, 0x2e0c)                       \
    R(COMPUTE_PGM_HI, BW_AMD_REGS_ANY, 0x2e0d)                       \
    R(COMPUTE_DISPATCH_PKT_ADDR_LO, BW_AMD_REGS_ANY, 0x2e0e)         \
    R(COMPUTE_DISPATCH_PKT_ADDR_HI, BW_AMD_REGS_ANY, 0x2e0f)         \
    R(COMPUTE_DISPATCH_SCRATCH_BASE_LO, BW_AMD_REGS_ANY, 0x2e10)     \
    R(COMPUTE_DISPATCH_SCRATCH_BASE_HI, BW_AMD_REGS_ANY, 0x2e11)     \
    R(COMPUTE_PGM_RSRC1, BW_AMD_REGS_ANY, 0x2e12)                    \
    R(COMPUTE_PGM_RSRC2, BW_AMD_REGS_ANY, 0x2e13)                    \
    R(COMPUTE_VMID, BW_AMD_REGS_ANY, 0x2e14)                         \
    R(COMPUTE_RESOURCE_LIMITS, BW_AMD_REGS_ANY, 0x2e15)              \
    R(COMPUTE_STATIC_THREAD_MGMT_SE0, BW_AMD_REGS_ANY, 0x2e16)       \
    R(COMPUTE_STATIC_THREAD_MGMT_SE1, BW_AMD_REGS_ANY, 0x2e17)       \
    R(COMPUTE_TMPRING_SIZE, BW_AMD_REGS_ANY, 0x2e18)                 \
    R(COMPUTE_STATIC_THREAD_MGMT_SE2, BW_AMD_REGS_ANY, 0x2e19)       \
    R(COMPUTE_STATIC_THREAD_MGMT_SE3, BW_AMD_REGS_ANY, 0x2e1a)       \
    R(COMPUTE_RESTART_X, BW_AMD_REGS_ANY, 0x2e1b)                    \
    R(COMPUTE_RESTART_Y, BW_AMD_REGS_ANY, 0x2e1c)                    \
    R(COMPUTE_RESTART_Z, BW_AMD_REGS_ANY, 0x2e1d)                    \
    R(COMPUTE_THREAD_TRACE_ENABLE, BW_AMD_REGS_ANY, 0x2e1e)          \
    R(COMPUTE_MISC_RESERVED, BW_AMD_REGS_ANY, 0x2e1f)                \
    R(COMPUTE_DISPATCH_ID, BW_AMD_REGS_ANY, 0x2e20)                  \
    R(COMPUTE_THREADGROUP_ID, BW_AMD_REGS_ANY, 0x2e21)               \
    R(COMPUTE_REQ_CTRL, BW_AMD_PM4_GCR, 0x2e22)                      \
    R(COMPUTE_USER_ACCUM_0, BW_AMD_PM4_GCR, 0x2e24)                  \
    R(COMPUTE_USER_ACCUM_1, BW_AMD_PM4_GCR, 0x2e25)                  \
    R(COMPUTE_USER_ACCUM_2, BW_AMD_PM4_GCR, 0x2e26)                  \
    R(COMPUTE_USER_ACCUM_3, BW_AMD_PM4_GCR, 0x2e27)                  \
    R(COMPUTE_PGM_RSRC3, BW_AMD_PM4_GCR, 0x2e28)                     \
    R(COMPUTE_DDID_INDEX, BW_AMD_PM4_GCR, 0x2e29)                    \
    R(COMPUTE_SHADER_CHKSUM, BW_AMD_PM4_GCR, 0x2e2a)                 \
    R(COMPUTE_STATIC_THREAD_MGMT_SE4, BW_AMD_PM4_GCR, 0x2e2b)        \
    R(COMPUTE_STATIC_THREAD_MGMT_SE5, BW_AMD_PM4_GCR, 0x2e2c)        \
    R(COMPUTE_STATIC_THREAD_MGMT_SE6, BW_AMD_PM4_GCR, 0x2e2d)        \
    R(COMPUTE_STATIC_THREAD_MGMT_SE7, BW_AMD_PM4_GCR, 0x2e2e)        \
    R(COMPUTE_DISPATCH_INTERLEAVE, BW_AMD_PM4_GCR, 0x2e2f)           \
    R(COMPUTE_RELAUNCH, BW_AMD_PM4_GCR, 0x2e30)                      \
    R(COMPUTE_RELAUNCH_GFX9, BW_AMD_PM4_COHER, 0x2e22)               \
    R(COMPUTE_STATIC_THREAD_MGMT_SE4_GFX9, BW_AMD_PM4_COHER, 0x2e25) \
    R(COMPUTE_STATIC_THREAD_MGMT_SE5_GFX9, BW_AMD_PM4_COHER, 0x2e26) \
    R(COMPUTE_STATIC_THREAD_MGMT_SE6_GFX9, BW_AMD_PM4_COHER, 0x2e27) \
    R(COMPUTE_STATIC_THREAD_MGMT_SE7_GFX9, BW_AMD_PM4_COHER, 0x2e28) \
    R(COMPUTE_SHADER_CHKSUM_GFX9, BW_AMD_PM4_COHER, 0x2e2c)          \
    R(COMPUTE_PGM_RSRC3_GFX9, BW_AMD_PM4_COHER, 0x2e2d)              \
    R(COMPUTE_USER_DATA_0, BW_AMD_REGS_ANY, 0x2e40)                  \
    R(COMPUTE_USER_DATA_1, BW_AMD_REGS_ANY, 0x2e41)                  \
    R(COMPUTE_USER_DATA_2, BW_AMD_REGS_ANY, 0x2e42)                  \
    R(COMPUTE_USER_DATA_3, BW_AMD_REGS_ANY, 0x2e43)                  \
    R(COMPUTE_USER_DATA_4, BW_AMD_REGS_ANY, 0x2e44)                  \
    R(COMPUTE_USER_DATA_5, BW_AMD_REGS_ANY, 0x2e45)                  \
    R(COMPUTE_USER_DATA_6, BW_AMD_REGS_ANY, 0x2e46)                  \
    R(COMPUTE_USER_DATA_7, BW_AMD_REGS_ANY, 0x2e47)                  \
    R(COMPUTE_USER_DATA_8, BW_AMD_REGS_ANY, 0x2e48)                  \
    R(COMPUTE_USER_DATA_9, BW_AMD_REGS_ANY, 0x2e49)                  \
    R(COMPUTE_USER_DATA_10, BW_AMD_REGS_ANY, 0x2e4a)                 \
    R(COMPUTE_USER_DATA_11, BW_AMD_REGS_ANY, 0x2e4b)                 \
    R(COMPUTE_USER_DATA_12, BW_AMD_REGS_ANY, 0x2e4c)                 \
    R(COMPUTE_USER_DATA_13, BW_AMD_REGS_ANY, 0x2e4d)                 \
    R(COMPUTE_USER_DATA_14, BW_AMD_REGS_ANY, 0x2e4e)                 \
    R(COMPUTE_USER_DATA_15, BW_AMD_REGS_ANY, 0x2e4f)                 \
    R(COMPUTE_DISPATCH_TUNNEL, BW_AMD_PM4_GCR, 0x2e7d)               \
    R(COMPUTE_DISPATCH_END, BW_AMD_REGS_ANY, 0x2e7e)                 \
    R(COMPUTE_NOWHERE, BW_AMD_REGS_ANY, 0x2e7f)

/* Registers without rows here are one value of 32 bits. */
#define BW_AMD_REG_FIELDS(F)                                      \
    F(COMPUTE_DISPATCH_INITIATOR, COMPUTE_SHADER_EN, 0, 0)        \
    F(COMPUTE_DISPATCH_INITIATOR, PARTIAL_TG_EN, 1, 1)            \
    F(COMPUTE_DISPATCH_INITIATOR, FORCE_START_AT_000, 2, 2)       \
    F(COMPUTE_DISPATCH_INITIATOR, ORDERED_APPEND_ENBL, 3, 3)      \
    F(COMPUTE_DISPATCH_INITIATOR, ORDERED_APPEND_MODE, 4, 4)      \
    F(COMPUTE_DISPATCH_INITIATOR, USE_THREAD_DIMENSIONS, 5, 5)    \
    F(COMPUTE_DISPATCH_INITIATOR, ORDER_MODE, 6, 6)               \
    F(COMPUTE_DISPATCH_INITIATOR, SCALAR_L1_INV_VOL, 10, 10)      \
    F(COMPUTE_DISPATCH_INITIATOR, VECTOR_L1_INV_VOL, 11, 11)      \
    F(COMPUTE_DISPATCH_INITIATOR, TUNNEL_ENABLE, 13, 13)          \
    F(COMPUTE_DISPATCH_INITIATOR, RESTORE, 14, 14)                \
    F(COMPUTE_DISPATCH_INITIATOR, CS_W32_EN, 15, 15)              \
    F(COMPUTE_DISPATCH_INITIATOR, AMP_SHADER_EN, 16, 16)          \
    F(COMPUTE_DISPATCH_INITIATOR, DISABLE_DISP_PREMPT_EN, 17, 17) \
    F(COMPUTE_NUM_THREAD_X, NUM_THREAD_FULL, 0, 15)               \
    F(COMPUTE_NUM_THREAD_X, NUM_THREAD_PARTIAL, 16, 31)           \
    F(COMPUTE_NUM_THREAD_Y, NUM_THREAD_FULL, 0, 15)               \
    F(COMPUTE_NUM_THREAD_Y, NUM_THREAD_PARTIAL, 16, 31)           \
    F(COMPUTE_NUM_THREAD_Z, NUM_THREAD_FULL, 0, 15)               \
    F(COMPUTE_NUM_THREAD_Z, NUM_THREAD_PARTIAL, 16, 31)           \
    F(COMPUTE_PGM_RSRC1, VGPRS, 0, 5)                             \
    F(COMPUTE_PGM_RSRC1, SGPRS, 6, 9)                             \
    F(COMPUTE_PGM_RSRC1, PRIORITY, 10, 11)                        \
    F(COMPUTE_PGM_RSRC1, FLOAT_MODE, 12, 19)                      \
    F(COMPUTE_PGM_RSRC1, PRIV, 20, 20)                            \
    F(COMPUTE_PGM_RSRC1, DX10_CLAMP, 21, 21)                      \
    F(COMPUTE_PGM_RSRC1, IEEE_MODE, 23, 23)                       \
    F(COMPUTE_PGM_RSRC1, BULKY, 24, 24)                           \
    F(COMPUTE_PGM_RSRC1, FP16_OVFL, 26, 26)                       \
    F(COMPUTE_PGM_RSRC1, WGP_MODE, 29, 29)                        \
    F(COMPUTE_PGM_RSRC1, MEM_ORDERED, 30, 30)                     \
    F(COMPUTE_PGM_RSRC1, FWD_PROGRESS, 31, 31)                    \
    F(COMPUTE_PGM_RSRC2, SCRATCH_EN, 0, 0)                        \
    F(COMPUTE_PGM_RSRC2, USER_SGPR, 1, 5)                         \
    F(COMPUTE_PGM_RSRC2, TRAP_PRESENT, 6, 6)                      \
    F(COMPUTE_PGM_RSRC2, TGID_X_EN, 7, 7)                         \
    F(COMPUTE_PGM_RSRC2, TGID_Y_EN, 8, 8)                         \
    F(COMPUTE_PGM_RSRC2, TGID_Z_EN, 9, 9)                         \
    F(COMPUTE_PGM_RSRC2, TG_SIZE_EN, 10, 10)                      \
    F(COMPUTE_PGM_RSRC2, TIDIG_COMP_CNT, 11, 12)                  \
    F(COMPUTE_PGM_RSRC2, EXCP_EN_MSB, 13, 14)                     \
    F(COMPUTE_PGM_RSRC2, LDS_SIZE, 15, 23)                        \
    F(COMPUTE_PGM_RSRC2, EXCP_EN, 24, 30)                         \
    F(COMPUTE_PGM_RSRC3, SHARED_VGPR_CNT, 0, 3)                   \
    F(COMPUTE_PGM_RSRC3, INST_PREF_SIZE, 4, 9)                    \
    F(COMPUTE_PGM_RSRC3, TRAP_ON_START, 10, 10)                   \
    F(COMPUTE_PGM_RSRC3, TRAP_ON_END, 11, 11)                     \
    F(COMPUTE_PGM_RSRC3, IMAGE_OP, 31, 31)                        \
    F(COMPUTE_PGM_RSRC3_GFX9, ACCUM_OFFSET, 0, 5)                 \
    F(COMPUTE_PGM_RSRC3_GFX9, TG_SPLIT, 16, 16)                   \
    F(COMPUTE_RESOURCE_LIMITS, WAVES_PER_SH, 0, 9)                \
    F(COMPUTE_RESOURCE_LIMITS, TG_PER_CU, 12, 15)                 \
    F(COMPUTE_RESOURCE_LIMITS, LOCK_THRESHOLD, 16, 21)            \
    F(COMPUTE_RESOURCE_LIMITS, SIMD_DEST_CNTL, 22, 22)            \
    F(COMPUTE_RESOURCE_LIMITS, FORCE_SIMD_DIST, 23, 23)           \
    F(COMPUTE_RESOURCE_LIMITS, CU_GROUP_COUNT, 24, 26)            \
    F(COMPUTE_TMPRING_SIZE, WAVES, 0, 11)                         \
    F(COMPUTE_TMPRING_SIZE, WAVESIZE, 12, 29)

#endif
