/* How vector memory instructions name their memory: shared by the fast paths (exec_memory.c, exec_lds.c) and
 * the lane by lane path (memory.c) that takes over where those do not apply.
 *
 * Operands of a memory uop: d destination, a address register, b data register, c scalar address or second
 * data, g the offset in bytes, e the worker's range entry, f the forms below. */
#ifndef BW_MOCK_ISA_MEMORY_H
#define BW_MOCK_ISA_MEMORY_H

#include "mock/isa/wave.h"

/* Where the address of a lane comes from (RDNA3 ISA document, section 11.1 "Memory addressing"). */
enum bw_address_form {
    BW_ADDRESS_GLOBAL_VECTOR, /* 64-bit register pair + offset */
    BW_ADDRESS_GLOBAL_SCALAR, /* scalar pair + unsigned 32-bit register + offset */
    BW_ADDRESS_FLAT,          /* 64-bit register pair + offset, then by aperture */
    BW_ADDRESS_SCRATCH,       /* FLAT_SCRATCH + (register + scalar + offset), swizzled by lane */
    BW_ADDRESS_LDS,           /* 32-bit register + offset */
    BW_ADDRESS_BUFFER,        /* through a descriptor: buffer.c */
};

enum bw_element {
    BW_ELEMENT_U8,
    BW_ELEMENT_I8,
    BW_ELEMENT_U16,
    BW_ELEMENT_I16,
    BW_ELEMENT_B32,
    BW_ELEMENT_B64,
    BW_ELEMENT_B96,
    BW_ELEMENT_B128,
    BW_ELEMENT_D16_U8, /* into the low half, the other stays */
    BW_ELEMENT_D16_I8,
    BW_ELEMENT_D16_B16,
    BW_ELEMENT_D16_HI_U8, /* into, or from, the high half */
    BW_ELEMENT_D16_HI_I8,
    BW_ELEMENT_D16_HI_B16,
};

static inline unsigned bw_element_bytes(enum bw_element element)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 8, 12, 16, 1, 1, 2, 1, 1, 2};
    return bytes[element];
}

/* Lane number in the wave: the second half of a wave64 is at the high EXEC word. */
static inline unsigned bw_wave_lane(const struct bw_uop *uop, unsigned lane)
{
    return lane + (uop->x == BW_OFFSET_SGPR(BW_SREG_EXEC_HI) ? BW_LANES : 0);
}

/* Host memory of one lane's whole element, as atomics need it; NULL after filling the fault (or, for LDS out
 * of range, NULL with *dropped set). */
uint8_t *bw_lane_memory(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                        unsigned lane, unsigned bytes, enum bw_isa_access access, bool *dropped);

/* Host memory of size bytes at va, whole; NULL after filling the fault. */
uint8_t *bw_mapped_memory(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                          unsigned bytes, enum bw_isa_access access);

/* Copies between data and the memory at va, which may lie in two mappings next to each other; false after
 * filling the fault. */
bool bw_move_mapped(struct bw_wave *wave, const struct bw_uop *uop, uint64_t va, unsigned lane,
                    unsigned bytes, enum bw_isa_access access, uint8_t *data);

/* What a load of that element makes of the bits read and those that the register held. */
uint32_t bw_extended(enum bw_element element, uint32_t raw, uint32_t old);
/* The bits that a lane stores as that element, out of its data registers. */
void bw_element_of(enum bw_element element, const uint32_t *data, unsigned lane, uint32_t raw[4]);

/* The address that a lane names, before apertures and swizzling: for fault reports. */
uint64_t bw_lane_address(const struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                         unsigned lane);

/* What a lane's address means: a flat one names either of the three. */
enum bw_memory_kind { BW_MEMORY_MAPPED, BW_MEMORY_LDS, BW_MEMORY_SCRATCH };
enum bw_memory_kind bw_lane_memory_kind(const struct bw_wave *wave, const struct bw_uop *uop,
                                        enum bw_address_form form, unsigned lane);

/* Lane by lane, in order of lanes; return the next uop or NULL on a fault. */
const struct bw_uop *bw_load_lanes(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                                   enum bw_element element);
const struct bw_uop *bw_store_lanes(struct bw_wave *wave, const struct bw_uop *uop, enum bw_address_form form,
                                    enum bw_element element);

#endif
