/* SDMA packets as one table; expanded by sdma.h (field constants) and sdma_table.c (decoder rows).
 *
 * Sources: Linux drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h (SDMA 4) and sdma_v6_0_0_pkt_open.h (SDMA
 * 5 to 7). The counts of COPY_LINEAR and CONST_FILL have 22 bits in the former; SDMA 4.4, which every gfx9
 * row of the device table has, reads 30 (sdma_v4_0.c, sdma_v4_4_buffer_funcs). COND_EXE, ATOMIC and GCR_REQ,
 * which no builder makes, are there for the decoder.
 *
 * BW_AMD_SDMA_PACKETS(P): P(symbol, name, opcode, sub_opcode, generations, words, tail).
 * BW_AMD_SDMA_FIELDS_<symbol>(F): F(symbol, field, word, low, high); opcode [7:0] and sub-opcode [15:8] of
 * word 0 are implied. */
#ifndef BW_DRIVERS_AMD_SDMA_TABLE_H
#define BW_DRIVERS_AMD_SDMA_TABLE_H

#define BW_AMD_SDMA_ANY (BW_AMD_SDMA_4 | BW_AMD_SDMA_5)

#define BW_AMD_SDMA_PACKETS(P)                                                                   \
    P(NOP, "NOP", 0, 0, BW_AMD_SDMA_ANY, 1, BW_AMD_TAIL_DATA)                                    \
    P(COPY_LINEAR, "COPY_LINEAR", 1, 0, BW_AMD_SDMA_5, 7, BW_AMD_TAIL_NONE)                      \
    P(COPY_LINEAR_V4, "COPY_LINEAR", 1, 0, BW_AMD_SDMA_4, 7, BW_AMD_TAIL_NONE)                   \
    P(WRITE_LINEAR, "WRITE_LINEAR", 2, 0, BW_AMD_SDMA_ANY, 4, BW_AMD_TAIL_DATA)                  \
    P(INDIRECT, "INDIRECT", 4, 0, BW_AMD_SDMA_ANY, 6, BW_AMD_TAIL_NONE)                          \
    P(FENCE, "FENCE", 5, 0, BW_AMD_SDMA_5, 4, BW_AMD_TAIL_NONE)                                  \
    P(FENCE_V4, "FENCE", 5, 0, BW_AMD_SDMA_4, 4, BW_AMD_TAIL_NONE)                               \
    P(TRAP, "TRAP", 6, 0, BW_AMD_SDMA_ANY, 2, BW_AMD_TAIL_NONE)                                  \
    P(POLL_REGMEM, "POLL_REGMEM", 8, 0, BW_AMD_SDMA_ANY, 6, BW_AMD_TAIL_NONE)                    \
    P(COND_EXE, "COND_EXE", 9, 0, BW_AMD_SDMA_5, 5, BW_AMD_TAIL_NONE)                            \
    P(COND_EXE_V4, "COND_EXE", 9, 0, BW_AMD_SDMA_4, 5, BW_AMD_TAIL_NONE)                         \
    P(ATOMIC, "ATOMIC", 10, 0, BW_AMD_SDMA_5, 8, BW_AMD_TAIL_NONE)                               \
    P(ATOMIC_V4, "ATOMIC", 10, 0, BW_AMD_SDMA_4, 8, BW_AMD_TAIL_NONE)                            \
    P(CONST_FILL, "CONST_FILL", 11, 0, BW_AMD_SDMA_5, 5, BW_AMD_TAIL_NONE)                       \
    P(CONST_FILL_V4, "CONST_FILL", 11, 0, BW_AMD_SDMA_4, 5, BW_AMD_TAIL_NONE)                    \
    P(TIMESTAMP_GET_GLOBAL, "TIMESTAMP_GET_GLOBAL", 13, 2, BW_AMD_SDMA_ANY, 3, BW_AMD_TAIL_NONE) \
    P(GCR_REQ, "GCR_REQ", 17, 0, BW_AMD_SDMA_5, 5, BW_AMD_TAIL_NONE)

#define BW_AMD_SDMA_FIELDS_NOP(F) F(NOP, COUNT, 0, 16, 29)

#define BW_AMD_SDMA_FIELDS_COPY_ADDRESSES(F, packet) \
    F(packet, SRC_ADDR_LO, 3, 0, 31)                 \
    F(packet, SRC_ADDR_HI, 4, 0, 31)                 \
    F(packet, DST_ADDR_LO, 5, 0, 31)                 \
    F(packet, DST_ADDR_HI, 6, 0, 31)

#define BW_AMD_SDMA_FIELDS_COPY_LINEAR(F)       \
    F(COPY_LINEAR, ENCRYPT, 0, 16, 16)          \
    F(COPY_LINEAR, TMZ, 0, 18, 18)              \
    F(COPY_LINEAR, CPV, 0, 19, 19)              \
    F(COPY_LINEAR, BACKWARDS, 0, 25, 25)        \
    F(COPY_LINEAR, BROADCAST, 0, 27, 27)        \
    F(COPY_LINEAR, COUNT, 1, 0, 29)             \
    F(COPY_LINEAR, DST_SW, 2, 16, 17)           \
    F(COPY_LINEAR, DST_CACHE_POLICY, 2, 18, 20) \
    F(COPY_LINEAR, SRC_SW, 2, 24, 25)           \
    F(COPY_LINEAR, SRC_CACHE_POLICY, 2, 26, 28) \
    BW_AMD_SDMA_FIELDS_COPY_ADDRESSES(F, COPY_LINEAR)

#define BW_AMD_SDMA_FIELDS_COPY_LINEAR_V4(F) \
    F(COPY_LINEAR_V4, ENCRYPT, 0, 16, 16)    \
    F(COPY_LINEAR_V4, TMZ, 0, 18, 18)        \
    F(COPY_LINEAR_V4, BROADCAST, 0, 27, 27)  \
    F(COPY_LINEAR_V4, COUNT, 1, 0, 29)       \
    F(COPY_LINEAR_V4, DST_SW, 2, 16, 17)     \
    F(COPY_LINEAR_V4, SRC_SW, 2, 24, 25)     \
    BW_AMD_SDMA_FIELDS_COPY_ADDRESSES(F, COPY_LINEAR_V4)

#define BW_AMD_SDMA_FIELDS_WRITE_LINEAR(F) \
    F(WRITE_LINEAR, ENCRYPT, 0, 16, 16)    \
    F(WRITE_LINEAR, TMZ, 0, 18, 18)        \
    F(WRITE_LINEAR, DST_ADDR_LO, 1, 2, 31) \
    F(WRITE_LINEAR, DST_ADDR_HI, 2, 0, 31) \
    F(WRITE_LINEAR, COUNT, 3, 0, 19)       \
    F(WRITE_LINEAR, SW, 3, 24, 25)

#define BW_AMD_SDMA_FIELDS_INDIRECT(F) \
    F(INDIRECT, VMID, 0, 16, 19)       \
    F(INDIRECT, PRIV, 0, 31, 31)       \
    F(INDIRECT, IB_BASE_LO, 1, 5, 31)  \
    F(INDIRECT, IB_BASE_HI, 2, 0, 31)  \
    F(INDIRECT, IB_SIZE, 3, 0, 19)     \
    F(INDIRECT, CSA_ADDR_LO, 4, 0, 31) \
    F(INDIRECT, CSA_ADDR_HI, 5, 0, 31)

#define BW_AMD_SDMA_FIELDS_FENCE_SINK(F, packet) \
    F(packet, ADDR_LO, 1, 2, 31)                 \
    F(packet, ADDR_HI, 2, 0, 31)                 \
    F(packet, DATA, 3, 0, 31)

#define BW_AMD_SDMA_FIELDS_FENCE(F) \
    F(FENCE, MTYPE, 0, 16, 18)      \
    F(FENCE, GCC, 0, 19, 19)        \
    F(FENCE, SYS, 0, 20, 20)        \
    F(FENCE, SNP, 0, 22, 22)        \
    F(FENCE, GPA, 0, 23, 23)        \
    F(FENCE, L2_POLICY, 0, 24, 25)  \
    F(FENCE, LLC_POLICY, 0, 26, 26) \
    F(FENCE, CPV, 0, 28, 28)        \
    BW_AMD_SDMA_FIELDS_FENCE_SINK(F, FENCE)

#define BW_AMD_SDMA_FIELDS_FENCE_V4(F) BW_AMD_SDMA_FIELDS_FENCE_SINK(F, FENCE_V4)

#define BW_AMD_SDMA_FIELDS_TRAP(F) F(TRAP, INT_CONTEXT, 1, 0, 27)

#define BW_AMD_SDMA_FIELDS_POLL_REGMEM(F) \
    F(POLL_REGMEM, HDP_FLUSH, 0, 26, 26)  \
    F(POLL_REGMEM, FUNC, 0, 28, 30)       \
    F(POLL_REGMEM, MEM_POLL, 0, 31, 31)   \
    F(POLL_REGMEM, ADDR_LO, 1, 2, 31)     \
    F(POLL_REGMEM, ADDR_HI, 2, 0, 31)     \
    F(POLL_REGMEM, VALUE, 3, 0, 31)       \
    F(POLL_REGMEM, MASK, 4, 0, 31)        \
    F(POLL_REGMEM, INTERVAL, 5, 0, 15)    \
    F(POLL_REGMEM, RETRY_COUNT, 5, 16, 27)

#define BW_AMD_SDMA_FIELDS_COND_EXE_CONDITION(F, packet) \
    F(packet, ADDR_LO, 1, 2, 31)                         \
    F(packet, ADDR_HI, 2, 0, 31)                         \
    F(packet, REFERENCE, 3, 0, 31)                       \
    F(packet, EXEC_COUNT, 4, 0, 13)

#define BW_AMD_SDMA_FIELDS_COND_EXE(F)   \
    F(COND_EXE, CACHE_POLICY, 0, 24, 26) \
    F(COND_EXE, CPV, 0, 28, 28)          \
    BW_AMD_SDMA_FIELDS_COND_EXE_CONDITION(F, COND_EXE)

#define BW_AMD_SDMA_FIELDS_COND_EXE_V4(F) BW_AMD_SDMA_FIELDS_COND_EXE_CONDITION(F, COND_EXE_V4)

#define BW_AMD_SDMA_FIELDS_ATOMIC_OPERANDS(F, packet) \
    F(packet, LOOP, 0, 16, 16)                        \
    F(packet, TMZ, 0, 18, 18)                         \
    F(packet, ATOMIC_OP, 0, 25, 31)                   \
    F(packet, ADDR_LO, 1, 2, 31)                      \
    F(packet, ADDR_HI, 2, 0, 31)                      \
    F(packet, SRC_DATA_LO, 3, 0, 31)                  \
    F(packet, SRC_DATA_HI, 4, 0, 31)                  \
    F(packet, CMP_DATA_LO, 5, 0, 31)                  \
    F(packet, CMP_DATA_HI, 6, 0, 31)                  \
    F(packet, LOOP_INTERVAL, 7, 0, 12)

#define BW_AMD_SDMA_FIELDS_ATOMIC(F)   \
    F(ATOMIC, CACHE_POLICY, 0, 20, 22) \
    F(ATOMIC, CPV, 0, 24, 24)          \
    BW_AMD_SDMA_FIELDS_ATOMIC_OPERANDS(F, ATOMIC)

#define BW_AMD_SDMA_FIELDS_ATOMIC_V4(F) BW_AMD_SDMA_FIELDS_ATOMIC_OPERANDS(F, ATOMIC_V4)

#define BW_AMD_SDMA_FIELDS_GCR_REQ(F)     \
    F(GCR_REQ, BASE_VA_LO, 1, 7, 31)      \
    F(GCR_REQ, BASE_VA_HI, 2, 0, 15)      \
    F(GCR_REQ, GCR_CONTROL_LO, 2, 16, 31) \
    F(GCR_REQ, GCR_CONTROL_HI, 3, 0, 2)   \
    F(GCR_REQ, LIMIT_VA_LO, 3, 7, 31)     \
    F(GCR_REQ, LIMIT_VA_HI, 4, 0, 15)     \
    F(GCR_REQ, VMID, 4, 24, 27)

#define BW_AMD_SDMA_FIELDS_CONST_FILL_TARGET(F, packet) \
    F(packet, SW, 0, 16, 17)                            \
    F(packet, FILLSIZE, 0, 30, 31)                      \
    F(packet, DST_ADDR_LO, 1, 0, 31)                    \
    F(packet, DST_ADDR_HI, 2, 0, 31)                    \
    F(packet, SRC_DATA, 3, 0, 31)

#define BW_AMD_SDMA_FIELDS_CONST_FILL(F)                \
    F(CONST_FILL, CACHE_POLICY, 0, 24, 26)              \
    F(CONST_FILL, CPV, 0, 28, 28)                       \
    BW_AMD_SDMA_FIELDS_CONST_FILL_TARGET(F, CONST_FILL) \
    F(CONST_FILL, COUNT, 4, 0, 29)

#define BW_AMD_SDMA_FIELDS_CONST_FILL_V4(F)                \
    BW_AMD_SDMA_FIELDS_CONST_FILL_TARGET(F, CONST_FILL_V4) \
    F(CONST_FILL_V4, COUNT, 4, 0, 29)

#define BW_AMD_SDMA_FIELDS_TIMESTAMP_GET_GLOBAL(F)   \
    F(TIMESTAMP_GET_GLOBAL, L2_POLICY, 0, 24, 25)    \
    F(TIMESTAMP_GET_GLOBAL, LLC_POLICY, 0, 26, 26)   \
    F(TIMESTAMP_GET_GLOBAL, CPV, 0, 28, 28)          \
    F(TIMESTAMP_GET_GLOBAL, WRITE_ADDR_LO, 1, 3, 31) \
    F(TIMESTAMP_GET_GLOBAL, WRITE_ADDR_HI, 2, 0, 31)

#endif
