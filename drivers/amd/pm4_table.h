/* PM4 type-3 packets of the compute micro engine (MEC), as one table. Expanded several times with different
 * macros; see pm4.h (field constants) and pm4_table.c (decoder rows).
 *
 * Sources: Linux drivers/gpu/drm/amd/amdgpu/nvd.h (gfx10 and later) and soc15d.h (gfx9),
 * amdkfd/kfd_pm4_headers_ai.h (RELEASE_MEM of gfx9); GPUOpen PAL's MEC packet definitions for the fields that
 * the kernel does not use; for the width of ACQUIRE_MEM.COHER_SIZE_HI what Mesa's RADV writes (PAL says 8
 * bits). DISPATCH_INDIRECT and ATOMIC_MEM, which no builder makes (PAL's MEC packet
 * definitions, nvd.h), are there for the decoder.
 *
 * BW_AMD_PM4_PACKETS(P): P(symbol, name, opcode, generations, words, tail); `words` counts the header.
 * BW_AMD_PM4_FIELDS_<symbol>(F): F(symbol, field, word, low, high). */
#ifndef BW_DRIVERS_AMD_PM4_TABLE_H
#define BW_DRIVERS_AMD_PM4_TABLE_H

#define BW_AMD_PM4_ANY (BW_AMD_PM4_COHER | BW_AMD_PM4_GCR)

#define BW_AMD_PM4_PACKETS(P)                                                             \
    P(NOP, "NOP", 0x10, BW_AMD_PM4_ANY, 1, BW_AMD_TAIL_DATA)                              \
    P(DISPATCH_DIRECT, "DISPATCH_DIRECT", 0x15, BW_AMD_PM4_ANY, 5, BW_AMD_TAIL_NONE)      \
    P(DISPATCH_INDIRECT, "DISPATCH_INDIRECT", 0x16, BW_AMD_PM4_ANY, 4, BW_AMD_TAIL_NONE)  \
    P(ATOMIC_MEM, "ATOMIC_MEM", 0x1e, BW_AMD_PM4_ANY, 9, BW_AMD_TAIL_NONE)                \
    P(COND_EXEC, "COND_EXEC", 0x22, BW_AMD_PM4_ANY, 5, BW_AMD_TAIL_NONE)                  \
    P(PRED_EXEC, "PRED_EXEC", 0x23, BW_AMD_PM4_ANY, 2, BW_AMD_TAIL_NONE)                  \
    P(WRITE_DATA, "WRITE_DATA", 0x37, BW_AMD_PM4_ANY, 4, BW_AMD_TAIL_DATA)                \
    P(WAIT_REG_MEM, "WAIT_REG_MEM", 0x3c, BW_AMD_PM4_ANY, 7, BW_AMD_TAIL_NONE)            \
    P(INDIRECT_BUFFER, "INDIRECT_BUFFER", 0x3f, BW_AMD_PM4_ANY, 4, BW_AMD_TAIL_NONE)      \
    P(COPY_DATA, "COPY_DATA", 0x40, BW_AMD_PM4_ANY, 6, BW_AMD_TAIL_NONE)                  \
    P(EVENT_WRITE, "EVENT_WRITE", 0x46, BW_AMD_PM4_ANY, 2, BW_AMD_TAIL_NONE)              \
    P(RELEASE_MEM, "RELEASE_MEM", 0x49, BW_AMD_PM4_GCR, 8, BW_AMD_TAIL_NONE)              \
    P(RELEASE_MEM_GFX9, "RELEASE_MEM", 0x49, BW_AMD_PM4_COHER, 8, BW_AMD_TAIL_NONE)       \
    P(DMA_DATA, "DMA_DATA", 0x50, BW_AMD_PM4_ANY, 7, BW_AMD_TAIL_NONE)                    \
    P(ACQUIRE_MEM, "ACQUIRE_MEM", 0x58, BW_AMD_PM4_GCR, 8, BW_AMD_TAIL_NONE)              \
    P(ACQUIRE_MEM_GFX9, "ACQUIRE_MEM", 0x58, BW_AMD_PM4_COHER, 7, BW_AMD_TAIL_NONE)       \
    P(SET_SH_REG, "SET_SH_REG", 0x76, BW_AMD_PM4_ANY, 2, BW_AMD_TAIL_REGISTERS)           \
    P(SET_UCONFIG_REG, "SET_UCONFIG_REG", 0x79, BW_AMD_PM4_ANY, 2, BW_AMD_TAIL_REGISTERS) \
    P(WAIT_REG_MEM64, "WAIT_REG_MEM64", 0x93, BW_AMD_PM4_ANY, 9, BW_AMD_TAIL_NONE)

#define BW_AMD_PM4_FIELDS_NOP(F)

#define BW_AMD_PM4_FIELDS_DISPATCH_DIRECT(F) \
    F(DISPATCH_DIRECT, DIM_X, 1, 0, 31)      \
    F(DISPATCH_DIRECT, DIM_Y, 2, 0, 31)      \
    F(DISPATCH_DIRECT, DIM_Z, 3, 0, 31)      \
    F(DISPATCH_DIRECT, DISPATCH_INITIATOR, 4, 0, 31)

#define BW_AMD_PM4_FIELDS_DISPATCH_INDIRECT(F) \
    F(DISPATCH_INDIRECT, ADDR_LO, 1, 2, 31)    \
    F(DISPATCH_INDIRECT, ADDR_HI, 2, 0, 31)    \
    F(DISPATCH_INDIRECT, DISPATCH_INITIATOR, 3, 0, 31)

#define BW_AMD_PM4_FIELDS_ATOMIC_MEM(F)    \
    F(ATOMIC_MEM, ATOMIC, 1, 0, 6)         \
    F(ATOMIC_MEM, COMMAND, 1, 8, 11)       \
    F(ATOMIC_MEM, CACHE_POLICY, 1, 25, 26) \
    F(ATOMIC_MEM, ADDR_LO, 2, 2, 31)       \
    F(ATOMIC_MEM, ADDR_HI, 3, 0, 31)       \
    F(ATOMIC_MEM, SRC_DATA_LO, 4, 0, 31)   \
    F(ATOMIC_MEM, SRC_DATA_HI, 5, 0, 31)   \
    F(ATOMIC_MEM, CMP_DATA_LO, 6, 0, 31)   \
    F(ATOMIC_MEM, CMP_DATA_HI, 7, 0, 31)   \
    F(ATOMIC_MEM, LOOP_INTERVAL, 8, 0, 12)

#define BW_AMD_PM4_FIELDS_COND_EXEC(F)    \
    F(COND_EXEC, ADDR_LO, 1, 2, 31)       \
    F(COND_EXEC, ADDR_HI, 2, 0, 31)       \
    F(COND_EXEC, CACHE_POLICY, 3, 25, 26) \
    F(COND_EXEC, EXEC_COUNT, 4, 0, 13)

#define BW_AMD_PM4_FIELDS_PRED_EXEC(F) \
    F(PRED_EXEC, EXEC_COUNT, 1, 0, 13) \
    F(PRED_EXEC, VIRTUAL_XCC_ID_SELECT, 1, 24, 31)

#define BW_AMD_PM4_FIELDS_WRITE_DATA(F)    \
    F(WRITE_DATA, DST_SEL, 1, 8, 11)       \
    F(WRITE_DATA, ADDR_INCR, 1, 16, 16)    \
    F(WRITE_DATA, WR_CONFIRM, 1, 20, 20)   \
    F(WRITE_DATA, CACHE_POLICY, 1, 25, 26) \
    F(WRITE_DATA, ENGINE_SEL, 1, 30, 31)   \
    F(WRITE_DATA, DST_ADDR_LO, 2, 0, 31)   \
    F(WRITE_DATA, DST_ADDR_HI, 3, 0, 31)

/* A poll address in memory is dword aligned (2 low bits zero); a register number uses all low bits. */
#define BW_AMD_PM4_FIELDS_WAIT_REG_MEM(F)    \
    F(WAIT_REG_MEM, FUNCTION, 1, 0, 2)       \
    F(WAIT_REG_MEM, MEM_SPACE, 1, 4, 5)      \
    F(WAIT_REG_MEM, OPERATION, 1, 6, 7)      \
    F(WAIT_REG_MEM, ENGINE_SEL, 1, 8, 9)     \
    F(WAIT_REG_MEM, CACHE_POLICY, 1, 25, 26) \
    F(WAIT_REG_MEM, POLL_ADDR_LO, 2, 0, 31)  \
    F(WAIT_REG_MEM, POLL_ADDR_HI, 3, 0, 31)  \
    F(WAIT_REG_MEM, REFERENCE, 4, 0, 31)     \
    F(WAIT_REG_MEM, MASK, 5, 0, 31)          \
    F(WAIT_REG_MEM, POLL_INTERVAL, 6, 0, 15) \
    F(WAIT_REG_MEM, OPTIMIZE_ACE_OFFLOAD, 6, 31, 31)

#define BW_AMD_PM4_FIELDS_WAIT_REG_MEM64(F)    \
    F(WAIT_REG_MEM64, FUNCTION, 1, 0, 2)       \
    F(WAIT_REG_MEM64, MEM_SPACE, 1, 4, 5)      \
    F(WAIT_REG_MEM64, OPERATION, 1, 6, 7)      \
    F(WAIT_REG_MEM64, ENGINE_SEL, 1, 8, 9)     \
    F(WAIT_REG_MEM64, CACHE_POLICY, 1, 25, 26) \
    F(WAIT_REG_MEM64, POLL_ADDR_LO, 2, 0, 31)  \
    F(WAIT_REG_MEM64, POLL_ADDR_HI, 3, 0, 31)  \
    F(WAIT_REG_MEM64, REFERENCE_LO, 4, 0, 31)  \
    F(WAIT_REG_MEM64, REFERENCE_HI, 5, 0, 31)  \
    F(WAIT_REG_MEM64, MASK_LO, 6, 0, 31)       \
    F(WAIT_REG_MEM64, MASK_HI, 7, 0, 31)       \
    F(WAIT_REG_MEM64, POLL_INTERVAL, 8, 0, 15) \
    F(WAIT_REG_MEM64, OPTIMIZE_ACE_OFFLOAD, 8, 31, 31)

#define BW_AMD_PM4_FIELDS_INDIRECT_BUFFER(F)       \
    F(INDIRECT_BUFFER, IB_BASE_LO, 1, 2, 31)       \
    F(INDIRECT_BUFFER, IB_BASE_HI, 2, 0, 31)       \
    F(INDIRECT_BUFFER, IB_SIZE, 3, 0, 19)          \
    F(INDIRECT_BUFFER, CHAIN, 3, 20, 20)           \
    F(INDIRECT_BUFFER, OFFLOAD_POLLING, 3, 21, 21) \
    F(INDIRECT_BUFFER, VALID, 3, 23, 23)           \
    F(INDIRECT_BUFFER, VMID, 3, 24, 27)            \
    F(INDIRECT_BUFFER, CACHE_POLICY, 3, 28, 29)

#define BW_AMD_PM4_FIELDS_COPY_DATA(F)        \
    F(COPY_DATA, SRC_SEL, 1, 0, 3)            \
    F(COPY_DATA, DST_SEL, 1, 8, 11)           \
    F(COPY_DATA, SRC_CACHE_POLICY, 1, 13, 14) \
    F(COPY_DATA, COUNT_SEL, 1, 16, 16)        \
    F(COPY_DATA, WR_CONFIRM, 1, 20, 20)       \
    F(COPY_DATA, DST_CACHE_POLICY, 1, 25, 26) \
    F(COPY_DATA, PQ_EXE_STATUS, 1, 29, 29)    \
    F(COPY_DATA, SRC_LO, 2, 0, 31)            \
    F(COPY_DATA, SRC_HI, 3, 0, 31)            \
    F(COPY_DATA, DST_LO, 4, 0, 31)            \
    F(COPY_DATA, DST_HI, 5, 0, 31)

#define BW_AMD_PM4_FIELDS_EVENT_WRITE(F)  \
    F(EVENT_WRITE, EVENT_TYPE, 1, 0, 5)   \
    F(EVENT_WRITE, EVENT_INDEX, 1, 8, 11) \
    F(EVENT_WRITE, OFFLOAD_ENABLE, 1, 31, 31)

#define BW_AMD_PM4_FIELDS_RELEASE_MEM_SINK(F, packet) \
    F(packet, DST_SEL, 2, 16, 17)                     \
    F(packet, INT_SEL, 2, 24, 26)                     \
    F(packet, DATA_SEL, 2, 29, 31)                    \
    F(packet, ADDRESS_LO, 3, 2, 31)                   \
    F(packet, ADDRESS_HI, 4, 0, 31)                   \
    F(packet, DATA_LO, 5, 0, 31)                      \
    F(packet, DATA_HI, 6, 0, 31)                      \
    F(packet, INT_CTXID, 7, 0, 31)

#define BW_AMD_PM4_FIELDS_RELEASE_MEM(F)     \
    F(RELEASE_MEM, EVENT_TYPE, 1, 0, 5)      \
    F(RELEASE_MEM, WAIT_SYNC, 1, 7, 7)       \
    F(RELEASE_MEM, EVENT_INDEX, 1, 8, 11)    \
    F(RELEASE_MEM, GLM_WB, 1, 12, 12)        \
    F(RELEASE_MEM, GLM_INV, 1, 13, 13)       \
    F(RELEASE_MEM, GLV_INV, 1, 14, 14)       \
    F(RELEASE_MEM, GL1_INV, 1, 15, 15)       \
    F(RELEASE_MEM, GL2_US, 1, 16, 16)        \
    F(RELEASE_MEM, GL2_RANGE, 1, 17, 18)     \
    F(RELEASE_MEM, GL2_DISCARD, 1, 19, 19)   \
    F(RELEASE_MEM, GL2_INV, 1, 20, 20)       \
    F(RELEASE_MEM, GL2_WB, 1, 21, 21)        \
    F(RELEASE_MEM, SEQ, 1, 22, 23)           \
    F(RELEASE_MEM, GLK_WB, 1, 24, 24)        \
    F(RELEASE_MEM, CACHE_POLICY, 1, 25, 26)  \
    F(RELEASE_MEM, PQ_EXE_STATUS, 1, 28, 28) \
    F(RELEASE_MEM, GLK_INV, 1, 30, 30)       \
    BW_AMD_PM4_FIELDS_RELEASE_MEM_SINK(F, RELEASE_MEM)

#define BW_AMD_PM4_FIELDS_RELEASE_MEM_GFX9(F)       \
    F(RELEASE_MEM_GFX9, EVENT_TYPE, 1, 0, 5)        \
    F(RELEASE_MEM_GFX9, EVENT_INDEX, 1, 8, 11)      \
    F(RELEASE_MEM_GFX9, TCL1_VOL_ACTION, 1, 12, 12) \
    F(RELEASE_MEM_GFX9, TC_VOL_ACTION, 1, 13, 13)   \
    F(RELEASE_MEM_GFX9, TC_WB_ACTION, 1, 15, 15)    \
    F(RELEASE_MEM_GFX9, TCL1_ACTION, 1, 16, 16)     \
    F(RELEASE_MEM_GFX9, TC_ACTION, 1, 17, 17)       \
    F(RELEASE_MEM_GFX9, TC_NC_ACTION, 1, 19, 19)    \
    F(RELEASE_MEM_GFX9, TC_WC_ACTION, 1, 20, 20)    \
    F(RELEASE_MEM_GFX9, TC_MD_ACTION, 1, 21, 21)    \
    F(RELEASE_MEM_GFX9, CACHE_POLICY, 1, 25, 26)    \
    F(RELEASE_MEM_GFX9, PQ_EXE_STATUS, 1, 29, 29)   \
    BW_AMD_PM4_FIELDS_RELEASE_MEM_SINK(F, RELEASE_MEM_GFX9)

#define BW_AMD_PM4_FIELDS_DMA_DATA(F)        \
    F(DMA_DATA, ENGINE_SEL, 1, 0, 0)         \
    F(DMA_DATA, SRC_CACHE_POLICY, 1, 13, 14) \
    F(DMA_DATA, DST_SEL, 1, 20, 21)          \
    F(DMA_DATA, DST_CACHE_POLICY, 1, 25, 26) \
    F(DMA_DATA, SRC_SEL, 1, 29, 30)          \
    F(DMA_DATA, CP_SYNC, 1, 31, 31)          \
    F(DMA_DATA, SRC_LO_OR_DATA, 2, 0, 31)    \
    F(DMA_DATA, SRC_HI, 3, 0, 31)            \
    F(DMA_DATA, DST_LO, 4, 0, 31)            \
    F(DMA_DATA, DST_HI, 5, 0, 31)            \
    F(DMA_DATA, BYTE_COUNT, 6, 0, 25)        \
    F(DMA_DATA, SAS, 6, 26, 26)              \
    F(DMA_DATA, DAS, 6, 27, 27)              \
    F(DMA_DATA, SAIC, 6, 28, 28)             \
    F(DMA_DATA, DAIC, 6, 29, 29)             \
    F(DMA_DATA, RAW_WAIT, 6, 30, 30)         \
    F(DMA_DATA, DIS_WC, 6, 31, 31)

#define BW_AMD_PM4_FIELDS_ACQUIRE_MEM_RANGE(F, packet) \
    F(packet, COHER_SIZE, 2, 0, 31)                    \
    F(packet, COHER_SIZE_HI, 3, 0, 23)                 \
    F(packet, COHER_BASE_LO, 4, 0, 31)                 \
    F(packet, COHER_BASE_HI, 5, 0, 23)                 \
    F(packet, POLL_INTERVAL, 6, 0, 15)

#define BW_AMD_PM4_FIELDS_ACQUIRE_MEM(F)                \
    BW_AMD_PM4_FIELDS_ACQUIRE_MEM_RANGE(F, ACQUIRE_MEM) \
    F(ACQUIRE_MEM, GLI_INV, 7, 0, 1)                    \
    F(ACQUIRE_MEM, GL1_RANGE, 7, 2, 3)                  \
    F(ACQUIRE_MEM, GLM_WB, 7, 4, 4)                     \
    F(ACQUIRE_MEM, GLM_INV, 7, 5, 5)                    \
    F(ACQUIRE_MEM, GLK_WB, 7, 6, 6)                     \
    F(ACQUIRE_MEM, GLK_INV, 7, 7, 7)                    \
    F(ACQUIRE_MEM, GLV_INV, 7, 8, 8)                    \
    F(ACQUIRE_MEM, GL1_INV, 7, 9, 9)                    \
    F(ACQUIRE_MEM, GL2_US, 7, 10, 10)                   \
    F(ACQUIRE_MEM, GL2_RANGE, 7, 11, 12)                \
    F(ACQUIRE_MEM, GL2_DISCARD, 7, 13, 13)              \
    F(ACQUIRE_MEM, GL2_INV, 7, 14, 14)                  \
    F(ACQUIRE_MEM, GL2_WB, 7, 15, 15)                   \
    F(ACQUIRE_MEM, SEQ, 7, 16, 17)                      \
    F(ACQUIRE_MEM, RANGE_IS_PA, 7, 18, 18)

#define BW_AMD_PM4_FIELDS_ACQUIRE_MEM_GFX9(F)            \
    F(ACQUIRE_MEM_GFX9, TC_NC_ACTION, 1, 3, 3)           \
    F(ACQUIRE_MEM_GFX9, TC_WC_ACTION, 1, 4, 4)           \
    F(ACQUIRE_MEM_GFX9, TC_INV_METADATA_ACTION, 1, 5, 5) \
    F(ACQUIRE_MEM_GFX9, TCL1_VOL_ACTION, 1, 15, 15)      \
    F(ACQUIRE_MEM_GFX9, TC_WB_ACTION, 1, 18, 18)         \
    F(ACQUIRE_MEM_GFX9, TCL1_ACTION, 1, 22, 22)          \
    F(ACQUIRE_MEM_GFX9, TC_ACTION, 1, 23, 23)            \
    F(ACQUIRE_MEM_GFX9, CB_ACTION, 1, 25, 25)            \
    F(ACQUIRE_MEM_GFX9, DB_ACTION, 1, 26, 26)            \
    F(ACQUIRE_MEM_GFX9, SH_KCACHE_ACTION, 1, 27, 27)     \
    F(ACQUIRE_MEM_GFX9, SH_KCACHE_VOL_ACTION, 1, 28, 28) \
    F(ACQUIRE_MEM_GFX9, SH_ICACHE_ACTION, 1, 29, 29)     \
    F(ACQUIRE_MEM_GFX9, SH_KCACHE_WB_ACTION, 1, 30, 30)  \
    BW_AMD_PM4_FIELDS_ACQUIRE_MEM_RANGE(F, ACQUIRE_MEM_GFX9)

#define BW_AMD_PM4_FIELDS_SET_SH_REG(F)  \
    F(SET_SH_REG, REG_OFFSET, 1, 0, 15)  \
    F(SET_SH_REG, VMID_SHIFT, 1, 23, 27) \
    F(SET_SH_REG, INDEX, 1, 28, 31)

#define BW_AMD_PM4_FIELDS_SET_UCONFIG_REG(F) F(SET_UCONFIG_REG, REG_OFFSET, 1, 0, 15)

#endif
