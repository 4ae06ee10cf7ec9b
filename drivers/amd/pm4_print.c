/* PM4 decoder and printer: see pm4.h. Any words are fine; nothing here trusts a length. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"

static void decode_unknown(struct bw_amd_decoded *decoded, uint64_t word_count, const char *format,
                           uint32_t value)
{
    memset(decoded, 0, sizeof *decoded);
    decoded->word_count = word_count;
    snprintf(decoded->problem, sizeof decoded->problem, format, value);
}

/* A register's value that the packet carries. */
static void check_register(struct bw_amd_decoded *decoded, uint32_t generation, uint32_t address,
                           uint32_t value)
{
    uint32_t reserved = value & bw_amd_reg_reserved(generation, address);
    if (reserved && !decoded->problem[0])
        snprintf(decoded->problem, sizeof decoded->problem, "reserved bits 0x%08x set in %s", reserved,
                 bw_amd_reg_name(generation, address));
}

/* Selects that mean memory; as a source, 5 is an immediate value. */
enum {
    MEMORY_SOURCES = 1 << BW_AMD_SELECT_MEMORY_GRBM | 1 << BW_AMD_SELECT_L2,
    MEMORY_DESTINATIONS = MEMORY_SOURCES | 1 << BW_AMD_SELECT_MEMORY,
};

static void check_alignment(struct bw_amd_decoded *decoded, const char *what, bool memory, uint32_t address,
                            uint32_t alignment)
{
    if (memory && address % alignment && !decoded->problem[0])
        snprintf(decoded->problem, sizeof decoded->problem, "%s address is not aligned to %u bytes", what,
                 alignment);
}

/* What the table cannot say. */
static void check_packet(struct bw_amd_decoded *decoded, uint32_t generation, const uint32_t *words)
{
    if (decoded->problem[0])
        return;
    char *problem = decoded->problem;
    size_t size = sizeof decoded->problem;
    switch (decoded->packet->opcode) {
    case BW_AMD_PM4_OP_DISPATCH_DIRECT:
        check_register(decoded, generation, BW_AMD_COMPUTE_DISPATCH_INITIATOR, words[4]);
        break;
    case BW_AMD_PM4_OP_DISPATCH_INDIRECT:
        check_register(decoded, generation, BW_AMD_COMPUTE_DISPATCH_INITIATOR, words[3]);
        break;
    case BW_AMD_PM4_OP_SET_SH_REG:
        if (decoded->tail_count == 0)
            snprintf(problem, size, "sets no register");
        else if (decoded->values[0] + decoded->tail_count > BW_AMD_PM4_SH_REG_END - BW_AMD_PM4_SH_REG_FIRST)
            snprintf(problem, size, "registers past the shader range");
        for (uint32_t i = 0; i < decoded->tail_count; i++)
            check_register(decoded, generation, BW_AMD_PM4_SH_REG_FIRST + decoded->values[0] + i,
                           decoded->tail[i]);
        break;
    case BW_AMD_PM4_OP_SET_UCONFIG_REG:
        if (decoded->tail_count == 0)
            snprintf(problem, size, "sets no register");
        break;
    case BW_AMD_PM4_OP_WRITE_DATA:
        check_alignment(decoded, "destination",
                        MEMORY_DESTINATIONS >> bw_amd_bits_unpack(BW_AMD_PM4_WRITE_DATA_DST_SEL, words[1]) &
                            1,
                        words[2], 4);
        break;
    case BW_AMD_PM4_OP_COPY_DATA: {
        uint32_t alignment = bw_amd_bits_unpack(BW_AMD_PM4_COPY_DATA_COUNT_SEL, words[1]) ? 8 : 4;
        check_alignment(decoded, "source",
                        MEMORY_SOURCES >> bw_amd_bits_unpack(BW_AMD_PM4_COPY_DATA_SRC_SEL, words[1]) & 1,
                        words[2], alignment);
        check_alignment(decoded, "destination",
                        MEMORY_DESTINATIONS >> bw_amd_bits_unpack(BW_AMD_PM4_COPY_DATA_DST_SEL, words[1]) & 1,
                        words[4], alignment);
        break;
    }
    case BW_AMD_PM4_OP_WAIT_REG_MEM:
    case BW_AMD_PM4_OP_WAIT_REG_MEM64: {
        uint32_t alignment = decoded->packet->opcode == BW_AMD_PM4_OP_WAIT_REG_MEM ? 4 : 8;
        bool memory =
            bw_amd_bits_unpack(BW_AMD_PM4_WAIT_REG_MEM_MEM_SPACE, words[1]) == BW_AMD_WAIT_SPACE_MEMORY;
        if (memory && words[2] % alignment)
            snprintf(problem, size, "poll address is not aligned to %u bytes", alignment);
        break;
    }
    case BW_AMD_PM4_OP_INDIRECT_BUFFER:
        if (bw_amd_bits_unpack(BW_AMD_PM4_INDIRECT_BUFFER_IB_SIZE, words[3]) == 0)
            snprintf(problem, size, "indirect buffer of 0 words");
        else if (!bw_amd_bits_unpack(BW_AMD_PM4_INDIRECT_BUFFER_VALID, words[3]))
            snprintf(problem, size, "VALID is not set");
        break;
    case BW_AMD_PM4_OP_RELEASE_MEM: {
        uint32_t data = bw_amd_bits_unpack(BW_AMD_PM4_RELEASE_MEM_DATA_SEL, words[2]);
        if (data >= BW_AMD_RELEASE_DATA_64 && words[3] % 8)
            snprintf(problem, size, "64-bit write to an address that is not 8-byte aligned");
        break;
    }
    default:
        break;
    }
}

void bw_amd_pm4_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                       struct bw_amd_decoded *decoded)
{
    assert(count >= 1);
    uint32_t type = bw_amd_bits_unpack(BW_AMD_PM4_HEADER_TYPE, words[0]);
    if (type == BW_AMD_PM4_TYPE_2) {
        bw_amd_packet_unpack(bw_amd_pm4_packet(generation, BW_AMD_PM4_OP_NOP), words, count, 1, decoded);
        return;
    }
    if (type != BW_AMD_PM4_TYPE_3) {
        decode_unknown(decoded, 1, "packet type %u: not a PM4 command of the compute queue", type);
        return;
    }
    uint32_t opcode = bw_amd_bits_unpack(BW_AMD_PM4_HEADER_OPCODE, words[0]);
    uint32_t after = bw_amd_bits_unpack(BW_AMD_PM4_HEADER_COUNT, words[0]);
    const struct bw_amd_packet *packet = bw_amd_pm4_packet(generation, opcode);
    uint64_t word_count = (uint64_t)after + 2;
    if (!packet) {
        decode_unknown(decoded, word_count, "unknown opcode 0x%02x", opcode);
        return;
    }
    if (opcode == BW_AMD_PM4_OP_NOP && after == BW_AMD_PM4_COUNT_MAX)
        word_count = 1;
    bw_amd_packet_unpack(packet, words, count, word_count, decoded);
    check_packet(decoded, generation, words);
    uint32_t reserved = words[0] & 0xfc; /* [0] predicate, [1] shader type */
    if (reserved && !decoded->problem[0])
        snprintf(decoded->problem, sizeof decoded->problem, "reserved bits 0x%02x set in the header",
                 reserved);
}

static void print_registers(uint32_t generation, const struct bw_amd_decoded *decoded, struct bw_text *text)
{
    uint32_t first = decoded->packet->opcode == BW_AMD_PM4_OP_SET_SH_REG ? BW_AMD_PM4_SH_REG_FIRST
                                                                         : BW_AMD_PM4_UCONFIG_REG_FIRST;
    for (uint64_t i = 0; i < decoded->tail_count; i++) {
        bw_text_add(text, "        ");
        bw_amd_reg_print(generation, first + decoded->values[0] + (uint32_t)i, decoded->tail[i], text);
        bw_text_add(text, "\n");
    }
}

uint64_t bw_amd_pm4_print_generation(uint32_t generation, const uint32_t *words, uint64_t count,
                                     struct bw_text *text)
{
    uint64_t problems = 0;
    struct bw_amd_decoded decoded;
    for (uint64_t at = 0; at < count; at += decoded.word_count) {
        bw_amd_pm4_decode(generation, words + at, count - at, &decoded);
        bw_amd_packet_print(&decoded, words + at, at, text);
        if (decoded.packet && decoded.packet->tail == BW_AMD_TAIL_REGISTERS)
            print_registers(generation, &decoded, text);
        problems += decoded.problem[0] != 0;
        if (decoded.word_count > count - at)
            break;
    }
    return problems;
}

uint64_t bw_amd_pm4_print(const uint32_t *words, uint64_t count, struct bw_text *text)
{
    return bw_amd_pm4_print_generation(BW_AMD_PM4_GCR, words, count, text);
}
