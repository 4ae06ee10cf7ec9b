/* PM4 packets of the compute queue: builders, decoder, printer. Layouts: pm4_table.h. */
#ifndef BW_DRIVERS_AMD_PM4_H
#define BW_DRIVERS_AMD_PM4_H

#include <stdint.h>

#include "drivers/amd/packet.h"
#include "drivers/amd/pm4_table.h"

/* Field constants: BW_AMD_PM4_WAIT_REG_MEM_FUNCTION and so on. */
#define BW_AMD_PM4_FIELD(packet, field, word, low, high) \
    BW_AMD_PM4_##packet##_##field = BW_AMD_BITS(word, low, high),
#define BW_AMD_PM4_PACKET(symbol, name, opcode, generations, words, tail) \
    BW_AMD_PM4_FIELDS_##symbol(BW_AMD_PM4_FIELD)
enum bw_amd_pm4_field { BW_AMD_PM4_PACKETS(BW_AMD_PM4_PACKET) };
#undef BW_AMD_PM4_PACKET

/* Opcodes BW_AMD_PM4_OP_x and described lengths BW_AMD_PM4_WORDS_x. */
#define BW_AMD_PM4_PACKET(symbol, name, opcode, generations, words, tail) BW_AMD_PM4_OP_##symbol = opcode,
enum bw_amd_pm4_opcode { BW_AMD_PM4_PACKETS(BW_AMD_PM4_PACKET) };
#undef BW_AMD_PM4_PACKET
#define BW_AMD_PM4_PACKET(symbol, name, opcode, generations, words, tail) BW_AMD_PM4_WORDS_##symbol = words,
enum bw_amd_pm4_words { BW_AMD_PM4_PACKETS(BW_AMD_PM4_PACKET) };
#undef BW_AMD_PM4_PACKET

enum {
    BW_AMD_PM4_HEADER_TYPE = BW_AMD_BITS(0, 30, 31),
    BW_AMD_PM4_HEADER_COUNT = BW_AMD_BITS(0, 16, 29), /* words after the header, less one */
    BW_AMD_PM4_HEADER_OPCODE = BW_AMD_BITS(0, 8, 15),
    BW_AMD_PM4_TYPE_2 = 2, /* one word of padding */
    BW_AMD_PM4_TYPE_3 = 3,
    BW_AMD_PM4_COUNT_MAX = 0x3fff, /* in a NOP header: the packet is that one word */

    BW_AMD_PM4_SH_REG_FIRST = 0x2c00,
    BW_AMD_PM4_SH_REG_END = 0x3000, /* nvd.h PACKET3_SET_SH_REG_START, _END */
    BW_AMD_PM4_UCONFIG_REG_FIRST = 0xc000,
    BW_AMD_PM4_UCONFIG_REG_END = 0x10000, /* ... 16 bits of dword offset */

    BW_AMD_PM4_IB_WORDS_MAX = (1 << 20) - 1, /* INDIRECT_BUFFER.IB_SIZE is 20 bits */
    BW_AMD_PM4_IB_ALIGNMENT_WORDS = 8,       /* command buffers are fetched in 32-byte pieces */
    BW_AMD_PM4_IB_PACKET_WORDS = BW_AMD_PM4_WORDS_INDIRECT_BUFFER,

    /* VGT_EVENT_TYPE, soc21_enum.h */
    BW_AMD_EVENT_CS_PARTIAL_FLUSH = 7,
    BW_AMD_EVENT_CACHE_FLUSH_AND_INV_TS = 0x14,
    /* EVENT_INDEX, nvd.h */
    BW_AMD_EVENT_INDEX_PARTIAL_FLUSH = 4,
    BW_AMD_EVENT_INDEX_END_OF_PIPE = 5,
    /* WAIT_REG_MEM.FUNCTION, nvd.h */
    BW_AMD_WAIT_EQUAL = 3,
    BW_AMD_WAIT_NOT_EQUAL = 4,
    BW_AMD_WAIT_GREATER_OR_EQUAL = 5,
    BW_AMD_WAIT_SPACE_MEMORY = 1,
    /* Sources and destinations of COPY_DATA, destinations of WRITE_DATA that are memory: PAL's MEC packet
       definitions */
    BW_AMD_SELECT_MEMORY_GRBM = 1,
    BW_AMD_SELECT_L2 = 2,
    BW_AMD_SELECT_MEMORY = 5, /* destinations only */
    /* RELEASE_MEM.DATA_SEL and .INT_SEL, nvd.h */
    BW_AMD_RELEASE_DATA_NONE = 0,
    BW_AMD_RELEASE_DATA_32 = 1,
    BW_AMD_RELEASE_DATA_64 = 2,
    BW_AMD_RELEASE_DATA_CLOCK = 3,
    BW_AMD_RELEASE_INTERRUPT_NONE = 0,
    BW_AMD_RELEASE_INTERRUPT_AFTER_WRITE = 2,
};

/* Cache operations in words that both generations understand. */
enum bw_amd_cache {
    BW_AMD_CACHE_INVALIDATE = 1, /* scalar, vector and shared read caches, and unowned lines of the L2 */
    BW_AMD_CACHE_WRITE_BACK = 2, /* dirty lines of the L2 reach memory */
    BW_AMD_CACHE_LOCAL = 8, /* of the compute units and their arrays: scalar, vector, GL1; never the L2 */
    BW_AMD_CACHE_CODE = 4,  /* instruction caches */
};

struct bw_amd_release {
    uint32_t cache;            /* enum bw_amd_cache bits done before the write */
    uint32_t data_select;      /* BW_AMD_RELEASE_DATA_* */
    uint32_t interrupt_select; /* BW_AMD_RELEASE_INTERRUPT_* */
    struct bw_operand address; /* 8-byte aligned for 64-bit data and the clock, else 4 */
    struct bw_operand data;
    uint32_t interrupt_context;
};

/* Builders. generation is the architecture's BW_AMD_PM4_COHER or BW_AMD_PM4_GCR where the layout differs. */
void bw_amd_pm4_set_sh_reg(struct bw_encoder *encoder, uint32_t reg, const uint32_t *values, uint32_t count);
/* Each value either a constant or a symbol's low word; `wide` operands take two registers. */
struct bw_amd_register_value {
    struct bw_operand operand;
    uint8_t shift;
    bool wide;
};
void bw_amd_pm4_set_sh_reg_operands(struct bw_encoder *encoder, uint32_t reg,
                                    const struct bw_amd_register_value *values, uint32_t count);
void bw_amd_pm4_set_uconfig_reg(struct bw_encoder *encoder, uint32_t reg, const uint32_t *values,
                                uint32_t count);
void bw_amd_pm4_dispatch_direct(struct bw_encoder *encoder, const struct bw_operand group_count[3],
                                uint32_t initiator);
void bw_amd_pm4_event_write(struct bw_encoder *encoder, uint32_t event_type, uint32_t event_index);
void bw_amd_pm4_acquire_mem_emit(struct bw_amd_emit *emit, uint32_t generation, uint32_t cache);
void bw_amd_pm4_acquire_mem(struct bw_encoder *encoder, uint32_t generation, uint32_t cache);
void bw_amd_pm4_release_mem(struct bw_encoder *encoder, uint32_t generation,
                            const struct bw_amd_release *release);
/* Waits until (word at address & mask) compares to reference, unsigned. */
void bw_amd_pm4_wait_mem(struct bw_encoder *encoder, uint32_t function, struct bw_operand address,
                         struct bw_operand reference, uint32_t mask);
void bw_amd_pm4_wait_mem64(struct bw_encoder *encoder, uint32_t function, struct bw_operand address,
                           struct bw_operand reference, uint64_t mask);
/* Writes count <= 32 words to memory and waits for their arrival. */
void bw_amd_pm4_write_data(struct bw_encoder *encoder, struct bw_operand address, const uint32_t *values,
                           uint32_t count);
/* Copies 4 or 8 bytes from memory to memory. */
void bw_amd_pm4_copy_data(struct bw_encoder *encoder, struct bw_operand target, struct bw_operand source,
                          uint32_t size_bytes);
enum { BW_AMD_PM4_DMA_BYTES_MAX = (1 << 26) - 1 };
void bw_amd_pm4_dma_data(struct bw_encoder *encoder, struct bw_operand target, struct bw_operand source,
                         uint32_t size_bytes);
/* The next `words` words run only when the word at address is not 0. */
void bw_amd_pm4_cond_exec(struct bw_encoder *encoder, struct bw_operand address, uint32_t words);
/* The next `words` words run on the XCCs of the mask; honoured inside indirect buffers only. */
void bw_amd_pm4_pred_exec(struct bw_encoder *encoder, uint32_t xcc_mask, uint32_t words);
/* words != 1: padding of one word has no plain NOP, so pads are made longer instead (bw_amd_pm4_pad). */
void bw_amd_pm4_nop(struct bw_encoder *encoder, uint32_t words);
/* NOPs up to a multiple of alignment_words. */
void bw_amd_pm4_pad(struct bw_encoder *encoder, uint32_t alignment_words);
/* INDIRECT_BUFFER as ring words. address is 4-byte aligned, word_count at most BW_AMD_PM4_IB_WORDS_MAX. */
void bw_amd_pm4_indirect_buffer(uint32_t words[BW_AMD_PM4_IB_PACKET_WORDS], uint64_t address,
                                uint32_t word_count);

/* The packet at words (count >= 1 present). Unknown or malformed ones say so in decoded->problem. */
void bw_amd_pm4_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                       struct bw_amd_decoded *decoded);
/* Row for an opcode, NULL when unknown. */
const struct bw_amd_packet *bw_amd_pm4_packet(uint32_t generation, uint32_t opcode);
/* All rows, for tests and listings. */
const struct bw_amd_packet *bw_amd_pm4_packets(uint32_t *count);

/* Prints a ring or command buffer by packet and field, registers by name, and what is wrong; any words are
 * fine. Returns how many packets have a problem. The short form reads gfx10-and-later layouts. */
uint64_t bw_amd_pm4_print_generation(uint32_t generation, const uint32_t *words, uint64_t count,
                                     struct bw_text *text);
uint64_t bw_amd_pm4_print(const uint32_t *words, uint64_t count, struct bw_text *text);

#endif
