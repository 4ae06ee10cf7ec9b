/* AQL packets as one table; expanded by aql.h (field constants) and aql.c (decoder rows).
 *
 * Sources: HSA Platform System Architecture Specification 1.2, 2.9 "Requirement: Architected Queuing
 * Language" (header, kernel dispatch, agent dispatch, barrier-AND, barrier-OR); AMD's vendor packets:
 * aqlprofile's amd_aql_pm4_ib_packet_t and ROCm's documentation of hsa_amd_barrier_value_packet_t. "Reserved,
 * must be 0" is no field, but for RESERVED2 of a kernel dispatch, where ROCm's runtimes leave numbers for
 * profilers.
 *
 * BW_AMD_AQL_PACKETS(P): P(symbol, name, type, format, words, tail); format is of vendor packets.
 * BW_AMD_AQL_FIELDS_<symbol>(F): F(symbol, field, word, low, high); the type [7:0] of word 0, and a vendor
 * packet's format [23:16], are implied. */
#ifndef BW_DRIVERS_AMD_AQL_TABLE_H
#define BW_DRIVERS_AMD_AQL_TABLE_H

/* A slot of an invalid packet holds whatever was there before. */
#define BW_AMD_AQL_PACKETS(P)                                         \
    P(PM4_IB, "PM4_IB", 0, 1, 16, BW_AMD_TAIL_NONE)                   \
    P(BARRIER_VALUE, "BARRIER_VALUE", 0, 2, 16, BW_AMD_TAIL_NONE)     \
    P(INVALID, "INVALID", 1, 0, 1, BW_AMD_TAIL_DATA)                  \
    P(KERNEL_DISPATCH, "KERNEL_DISPATCH", 2, 0, 16, BW_AMD_TAIL_NONE) \
    P(BARRIER_AND, "BARRIER_AND", 3, 0, 16, BW_AMD_TAIL_NONE)         \
    P(AGENT_DISPATCH, "AGENT_DISPATCH", 4, 0, 16, BW_AMD_TAIL_NONE)   \
    P(BARRIER_OR, "BARRIER_OR", 5, 0, 16, BW_AMD_TAIL_NONE)

#define BW_AMD_AQL_FIELDS_HEADER(F, packet) \
    F(packet, BARRIER, 0, 8, 8)             \
    F(packet, ACQUIRE_SCOPE, 0, 9, 10)      \
    F(packet, RELEASE_SCOPE, 0, 11, 12)

#define BW_AMD_AQL_FIELDS_64(F, packet, name, word) \
    F(packet, name##_LO, word, 0, 31)               \
    F(packet, name##_HI, (word) + 1, 0, 31)

#define BW_AMD_AQL_FIELDS_PM4_IB(F)      \
    BW_AMD_AQL_FIELDS_HEADER(F, PM4_IB)  \
    F(PM4_IB, IB_HEADER, 1, 0, 31)       \
    F(PM4_IB, IB_BASE_LO, 2, 2, 31)      \
    F(PM4_IB, IB_BASE_HI, 3, 0, 31)      \
    F(PM4_IB, IB_SIZE, 4, 0, 19)         \
    F(PM4_IB, IB_CONTROL, 4, 20, 31)     \
    F(PM4_IB, WORDS_REMAINING, 5, 0, 31) \
    BW_AMD_AQL_FIELDS_64(F, PM4_IB, COMPLETION_SIGNAL, 14)

#define BW_AMD_AQL_FIELDS_BARRIER_VALUE(F)            \
    BW_AMD_AQL_FIELDS_HEADER(F, BARRIER_VALUE)        \
    BW_AMD_AQL_FIELDS_64(F, BARRIER_VALUE, SIGNAL, 2) \
    BW_AMD_AQL_FIELDS_64(F, BARRIER_VALUE, VALUE, 4)  \
    BW_AMD_AQL_FIELDS_64(F, BARRIER_VALUE, MASK, 6)   \
    F(BARRIER_VALUE, CONDITION, 8, 0, 31)             \
    BW_AMD_AQL_FIELDS_64(F, BARRIER_VALUE, COMPLETION_SIGNAL, 14)

#define BW_AMD_AQL_FIELDS_INVALID(F) F(INVALID, REST, 0, 8, 31)

#define BW_AMD_AQL_FIELDS_KERNEL_DISPATCH(F)                      \
    BW_AMD_AQL_FIELDS_HEADER(F, KERNEL_DISPATCH)                  \
    F(KERNEL_DISPATCH, DIMENSIONS, 0, 16, 17)                     \
    F(KERNEL_DISPATCH, WORKGROUP_SIZE_X, 1, 0, 15)                \
    F(KERNEL_DISPATCH, WORKGROUP_SIZE_Y, 1, 16, 31)               \
    F(KERNEL_DISPATCH, WORKGROUP_SIZE_Z, 2, 0, 15)                \
    F(KERNEL_DISPATCH, GRID_SIZE_X, 3, 0, 31)                     \
    F(KERNEL_DISPATCH, GRID_SIZE_Y, 4, 0, 31)                     \
    F(KERNEL_DISPATCH, GRID_SIZE_Z, 5, 0, 31)                     \
    F(KERNEL_DISPATCH, PRIVATE_SEGMENT_SIZE, 6, 0, 31)            \
    F(KERNEL_DISPATCH, GROUP_SEGMENT_SIZE, 7, 0, 31)              \
    BW_AMD_AQL_FIELDS_64(F, KERNEL_DISPATCH, KERNEL_OBJECT, 8)    \
    BW_AMD_AQL_FIELDS_64(F, KERNEL_DISPATCH, KERNARG_ADDRESS, 10) \
    BW_AMD_AQL_FIELDS_64(F, KERNEL_DISPATCH, RESERVED2, 12)       \
    BW_AMD_AQL_FIELDS_64(F, KERNEL_DISPATCH, COMPLETION_SIGNAL, 14)

#define BW_AMD_AQL_FIELDS_AGENT_DISPATCH(F)                    \
    BW_AMD_AQL_FIELDS_HEADER(F, AGENT_DISPATCH)                \
    F(AGENT_DISPATCH, FUNCTION, 0, 16, 31)                     \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, RETURN_ADDRESS, 2) \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, ARG0, 4)           \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, ARG1, 6)           \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, ARG2, 8)           \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, ARG3, 10)          \
    BW_AMD_AQL_FIELDS_64(F, AGENT_DISPATCH, COMPLETION_SIGNAL, 14)

#define BW_AMD_AQL_FIELDS_BARRIER(F, packet)         \
    BW_AMD_AQL_FIELDS_HEADER(F, packet)              \
    BW_AMD_AQL_FIELDS_64(F, packet, DEP_SIGNAL0, 2)  \
    BW_AMD_AQL_FIELDS_64(F, packet, DEP_SIGNAL1, 4)  \
    BW_AMD_AQL_FIELDS_64(F, packet, DEP_SIGNAL2, 6)  \
    BW_AMD_AQL_FIELDS_64(F, packet, DEP_SIGNAL3, 8)  \
    BW_AMD_AQL_FIELDS_64(F, packet, DEP_SIGNAL4, 10) \
    BW_AMD_AQL_FIELDS_64(F, packet, COMPLETION_SIGNAL, 14)

#define BW_AMD_AQL_FIELDS_BARRIER_AND(F) BW_AMD_AQL_FIELDS_BARRIER(F, BARRIER_AND)
#define BW_AMD_AQL_FIELDS_BARRIER_OR(F)  BW_AMD_AQL_FIELDS_BARRIER(F, BARRIER_OR)

#endif
