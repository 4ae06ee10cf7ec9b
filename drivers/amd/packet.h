/* What PM4 and SDMA packets have in common: fields at (word, bits), described once in a table (pm4_table.h,
 * sdma_table.h) that the builders, the decoder and the printer share.
 *
 * A field is named by a constant that packs its place, BW_AMD_BITS(word, low, high); word 0 is the header.
 * Bits that no field covers are reserved: builders leave them zero, the decoder reports them when set. */
#ifndef BW_DRIVERS_AMD_PACKET_H
#define BW_DRIVERS_AMD_PACKET_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "drivers/driver.h"

struct bw_text;

#define BW_AMD_BITS(word, low, high) ((uint32_t)(word) << 16 | (uint32_t)(low) << 8 | (uint32_t)(high))

enum {
    BW_AMD_FIELDS_MAX = 32, /* of one packet; PM4 RELEASE_MEM of gfx10 has the most, 25 */
    BW_AMD_EMIT_WORDS_MAX =
        40, /* longest packet that a builder makes: SET_SH_REG of 32 user SGPRs, and header */
    BW_AMD_EMIT_OPERANDS_MAX = 8,
};

struct bw_amd_field {
    const char *name;
    uint32_t bits; /* BW_AMD_BITS */
};

/* How words after the described ones are to be read. */
enum bw_amd_tail {
    BW_AMD_TAIL_NONE,
    BW_AMD_TAIL_DATA,      /* values to write, or padding */
    BW_AMD_TAIL_REGISTERS, /* values of consecutive registers */
};

/* The two ways a compute command processor names cache operations, and the two ages of SDMA: bit sets in
 * tables, one bit in an architecture's row. */
enum bw_amd_packet_generation {
    BW_AMD_PM4_COHER = 1, /* gfx9: CP_COHER_CNTL, TC_* actions */
    BW_AMD_PM4_GCR = 2,   /* gfx10 and later: GCR_CNTL */
    BW_AMD_SDMA_4 = 4,    /* gfx9 */
    BW_AMD_SDMA_5 = 8,    /* SDMA 5, 6, 7: cache policies */
};

struct bw_amd_packet {
    const char *name;
    uint32_t opcode, sub_opcode;
    uint32_t generations; /* enum bw_amd_packet_generation bits */
    uint32_t word_count;  /* described words, header included */
    enum bw_amd_tail tail;
    uint32_t field_count;
    const struct bw_amd_field *fields;
};

/* One packet taken apart. values[i] belongs to packet->fields[i]. */
struct bw_amd_decoded {
    const struct bw_amd_packet *packet; /* NULL: unknown */
    uint64_t word_count;                /* how far to the next packet; at least 1 */
    uint32_t values[BW_AMD_FIELDS_MAX];
    const uint32_t *tail;
    uint64_t tail_count;
    char problem[120]; /* empty: nothing is wrong with its form */
};

static inline unsigned bw_amd_bits_word(uint32_t bits)
{
    return bits >> 16;
}

static inline unsigned bw_amd_bits_low(uint32_t bits)
{
    return (bits >> 8) & 0xff;
}

static inline unsigned bw_amd_bits_high(uint32_t bits)
{
    return bits & 0xff;
}

/* The largest value of the field. */
static inline uint32_t bw_amd_bits_max(uint32_t bits)
{
    return (uint32_t)(((uint64_t)1 << (bw_amd_bits_high(bits) - bw_amd_bits_low(bits) + 1)) - 1);
}

/* value placed at the field's bits of its word; asserts that it fits. */
static inline uint32_t bw_amd_bits_pack(uint32_t bits, uint32_t value)
{
    assert(value <= bw_amd_bits_max(bits));
    return value << bw_amd_bits_low(bits);
}

static inline uint32_t bw_amd_bits_unpack(uint32_t bits, uint32_t word)
{
    return (word >> bw_amd_bits_low(bits)) & bw_amd_bits_max(bits);
}

/* The field's value as it is printed. The low word of an address, where the packet leaves out the bits that
 * are zero by its alignment, is printed with them: the address is what people look for. */
uint32_t bw_amd_field_shown(const struct bw_amd_field *field, uint32_t value);

/* A packet in the making. Begin, put fields in any order, end: then exactly word_count words are in the
 * encoder. */
struct bw_amd_emit {
    uint32_t word_count;
    uint32_t words[BW_AMD_EMIT_WORDS_MAX];
    uint32_t operand_count;
    struct {
        struct bw_operand operand;
        uint32_t word, mask;
        uint8_t shift;
        bool wide;
    } operands[BW_AMD_EMIT_OPERANDS_MAX];
};

void bw_amd_emit_begin(struct bw_amd_emit *emit, uint32_t header, uint32_t word_count);
/* Sets a field; asserts that it fits and was not set before. */
void bw_amd_emit_put(struct bw_amd_emit *emit, uint32_t bits, uint32_t value);
/* Sets a field to (operand >> shift), low bits. */
void bw_amd_emit_operand32(struct bw_amd_emit *emit, uint32_t bits, struct bw_operand operand,
                           unsigned shift);
/* Sets the word of `bits` and the next to (operand >> shift). */
void bw_amd_emit_operand64(struct bw_amd_emit *emit, uint32_t bits, struct bw_operand operand,
                           unsigned shift);
void bw_amd_emit_end(const struct bw_amd_emit *emit, struct bw_encoder *encoder);

/* Packs values[] of the packet's fields into words[packet->word_count], the header given. */
void bw_amd_packet_pack(const struct bw_amd_packet *packet, uint32_t header, const uint32_t *values,
                        uint32_t *words);
/* Takes `available` words at words apart as that packet of length word_count; fills values, tail and problem.
 */
void bw_amd_packet_unpack(const struct bw_amd_packet *packet, const uint32_t *words, uint64_t available,
                          uint64_t word_count, struct bw_amd_decoded *decoded);
/* "0x0040  WAIT_REG_MEM (7 words)" and its fields, one per line, then the problem when there is one. */
void bw_amd_packet_print(const struct bw_amd_decoded *decoded, const uint32_t *words, uint64_t offset_words,
                         struct bw_text *text);

#endif
