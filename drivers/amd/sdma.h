/* SDMA packets: builders, decoder, printer. Layouts: sdma_table.h. */
#ifndef BW_DRIVERS_AMD_SDMA_H
#define BW_DRIVERS_AMD_SDMA_H

#include <stdint.h>

#include "drivers/amd/packet.h"
#include "drivers/amd/sdma_table.h"

/* Field constants: BW_AMD_SDMA_COPY_LINEAR_COUNT and so on. */
#define BW_AMD_SDMA_FIELD(packet, field, word, low, high) \
    BW_AMD_SDMA_##packet##_##field = BW_AMD_BITS(word, low, high),
#define BW_AMD_SDMA_PACKET(symbol, name, opcode, sub, generations, words, tail) \
    BW_AMD_SDMA_FIELDS_##symbol(BW_AMD_SDMA_FIELD)
enum bw_amd_sdma_field { BW_AMD_SDMA_PACKETS(BW_AMD_SDMA_PACKET) };
#undef BW_AMD_SDMA_PACKET

/* Headers BW_AMD_SDMA_OP_x (opcode and sub-opcode in place) and lengths BW_AMD_SDMA_WORDS_x. */
#define BW_AMD_SDMA_PACKET(symbol, name, opcode, sub, generations, words, tail) \
    BW_AMD_SDMA_OP_##symbol = (opcode) | (sub) << 8,
enum bw_amd_sdma_opcode { BW_AMD_SDMA_PACKETS(BW_AMD_SDMA_PACKET) };
#undef BW_AMD_SDMA_PACKET
#define BW_AMD_SDMA_PACKET(symbol, name, opcode, sub, generations, words, tail) \
    BW_AMD_SDMA_WORDS_##symbol = words,
enum bw_amd_sdma_words { BW_AMD_SDMA_PACKETS(BW_AMD_SDMA_PACKET) };
#undef BW_AMD_SDMA_PACKET

enum {
    BW_AMD_SDMA_HEADER_OP = BW_AMD_BITS(0, 0, 7),
    BW_AMD_SDMA_HEADER_SUB_OP = BW_AMD_BITS(0, 8, 15),

    BW_AMD_SDMA_IB_WORDS_MAX = (1 << 20) - 1, /* INDIRECT.IB_SIZE is 20 bits */
    BW_AMD_SDMA_IB_ALIGNMENT_WORDS =
        8, /* base 32-byte aligned, length a multiple (sdma_v6_0_ring_emit_ib, pad_ib) */
    BW_AMD_SDMA_IB_PACKET_WORDS = BW_AMD_SDMA_WORDS_INDIRECT,
    /* INDIRECT must end on an 8-word boundary of the ring, so it starts here. */
    BW_AMD_SDMA_IB_RING_OFFSET_WORDS = BW_AMD_SDMA_IB_ALIGNMENT_WORDS - BW_AMD_SDMA_IB_PACKET_WORDS,

    BW_AMD_SDMA_FUNC_GREATER_OR_EQUAL = 5, /* POLL_REGMEM.FUNC counts as PM4's WAIT_REG_MEM */
    /* Linux amdgpu, copy_max_bytes and fill_max_bytes of sdma_v6_0.c and sdma_v7_0.c: 1 << 30, what the 30
     * bits of bytes - 1 can say. SDMA 4: 1 << 22 (sdma_v4_0.c and, until 6.17, sdma_v4_4_2.c). Later kernels
     * let 4.4 copy 1 << 30 as well; what every one of them has always sent is the safer figure for engines
     * that nobody here has seen. */
    BW_AMD_SDMA_4_COPY_BYTES_MAX = 1 << 22,
    BW_AMD_SDMA_5_COPY_BYTES_MAX = 1 << 30,
    BW_AMD_SDMA_4_FILL_BYTES_MAX = 1 << 22,
    BW_AMD_SDMA_5_FILL_BYTES_MAX = 1 << 30,
    BW_AMD_SDMA_WRITE_WORDS_MAX = 1 << 20, /* WRITE_LINEAR.COUNT is 20 bits, less one */
};

/* The most bytes of one COPY_LINEAR, of one CONST_FILL. */
uint64_t bw_amd_sdma_copy_bytes_max(uint32_t generation);
uint64_t bw_amd_sdma_fill_bytes_max(uint32_t generation);

/* Builders; generation is BW_AMD_SDMA_4 or BW_AMD_SDMA_5. Sizes in 1..copy_bytes_max, fill_bytes_max. */
void bw_amd_sdma_copy_linear(struct bw_encoder *encoder, uint32_t generation, struct bw_operand target,
                             struct bw_operand source, uint64_t size_bytes);
/* Fills with the repeated word; address and size are multiples of 4. */
void bw_amd_sdma_const_fill(struct bw_encoder *encoder, uint32_t generation, struct bw_operand target,
                            uint32_t word, uint64_t size_bytes);
/* Writes count <= 32 words. */
void bw_amd_sdma_write_linear(struct bw_encoder *encoder, struct bw_operand target, const uint32_t *values,
                              uint32_t count);
/* Writes (data >> shift), 32 bits, once everything before it has reached memory. */
void bw_amd_sdma_fence(struct bw_encoder *encoder, uint32_t generation, struct bw_operand address,
                       struct bw_operand data, unsigned shift);
void bw_amd_sdma_trap(struct bw_encoder *encoder, uint32_t context);
/* Waits until (word at address & mask) >= value, unsigned, for as long as it takes. */
void bw_amd_sdma_poll_memory(struct bw_encoder *encoder, struct bw_operand address, struct bw_operand value,
                             uint32_t mask);
/* Writes the 64-bit clock; address is 8-byte aligned. */
void bw_amd_sdma_timestamp(struct bw_encoder *encoder, struct bw_operand address);
void bw_amd_sdma_nop(struct bw_encoder *encoder, uint32_t words);
void bw_amd_sdma_pad(struct bw_encoder *encoder, uint32_t alignment_words);
/* A NOP of `words` words as ring words. */
void bw_amd_sdma_nop_words(uint32_t *words, uint32_t count);
/* INDIRECT as ring words; address 32-byte aligned, word_count a multiple of 8. */
void bw_amd_sdma_indirect(uint32_t words[BW_AMD_SDMA_IB_PACKET_WORDS], uint64_t address, uint32_t word_count);

void bw_amd_sdma_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                        struct bw_amd_decoded *decoded);
const struct bw_amd_packet *bw_amd_sdma_packet(uint32_t generation, uint32_t opcode, uint32_t sub_opcode);
const struct bw_amd_packet *bw_amd_sdma_packets(uint32_t *count);
/* As bw_amd_pm4_print; the short form reads SDMA 5 and later. */
uint64_t bw_amd_sdma_print_generation(uint32_t generation, const uint32_t *words, uint64_t count,
                                      struct bw_text *text);
uint64_t bw_amd_sdma_print(const uint32_t *words, uint64_t count, struct bw_text *text);

#endif
