/* SDMA decoder and printer: see sdma.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/amd/sdma.h"

static uint64_t packet_length(const struct bw_amd_packet *packet, const uint32_t *words, uint64_t count)
{
    if (packet->opcode == BW_AMD_SDMA_OP_NOP)
        return 1 + (uint64_t)bw_amd_bits_unpack(BW_AMD_SDMA_NOP_COUNT, words[0]);
    if (packet->opcode == BW_AMD_SDMA_OP_WRITE_LINEAR && count >= BW_AMD_SDMA_WORDS_WRITE_LINEAR)
        return packet->word_count + 1 +
               (uint64_t)bw_amd_bits_unpack(BW_AMD_SDMA_WRITE_LINEAR_COUNT, words[3]);
    return packet->word_count;
}

void bw_amd_sdma_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                        struct bw_amd_decoded *decoded)
{
    assert(count >= 1);
    uint32_t opcode = bw_amd_bits_unpack(BW_AMD_SDMA_HEADER_OP, words[0]);
    uint32_t sub_opcode = bw_amd_bits_unpack(BW_AMD_SDMA_HEADER_SUB_OP, words[0]);
    const struct bw_amd_packet *packet = bw_amd_sdma_packet(generation, opcode, sub_opcode);
    if (!packet) {
        memset(decoded, 0, sizeof *decoded);
        decoded->word_count =
            1; /* no length in the header: the stream cannot be followed further with certainty */
        snprintf(decoded->problem, sizeof decoded->problem, "unknown opcode %u, sub-opcode %u", opcode,
                 sub_opcode);
        return;
    }
    bw_amd_packet_unpack(packet, words, count, packet_length(packet, words, count), decoded);
    if (decoded->problem[0])
        return;
    /* The header's other bits belong to the table's fields of word 0. */
    uint32_t known = 0xffff;
    for (uint32_t i = 0; i < packet->field_count; i++)
        if (bw_amd_bits_word(packet->fields[i].bits) == 0)
            known |= bw_amd_bits_max(packet->fields[i].bits) << bw_amd_bits_low(packet->fields[i].bits);
    if (words[0] & ~known)
        snprintf(decoded->problem, sizeof decoded->problem, "reserved bits 0x%08x set in the header",
                 words[0] & ~known);
    else if (opcode == BW_AMD_SDMA_OP_INDIRECT && words[3] % BW_AMD_SDMA_IB_ALIGNMENT_WORDS)
        snprintf(decoded->problem, sizeof decoded->problem, "%u words: not a multiple of 8", words[3]);
    else if (opcode == BW_AMD_SDMA_OP_INDIRECT && words[3] == 0)
        snprintf(decoded->problem, sizeof decoded->problem, "indirect buffer of 0 words");
}

uint64_t bw_amd_sdma_print_generation(uint32_t generation, const uint32_t *words, uint64_t count,
                                      struct bw_text *text)
{
    uint64_t problems = 0;
    struct bw_amd_decoded decoded;
    for (uint64_t at = 0; at < count; at += decoded.word_count) {
        bw_amd_sdma_decode(generation, words + at, count - at, &decoded);
        bw_amd_packet_print(&decoded, words + at, at, text);
        problems += decoded.problem[0] != 0;
        if (decoded.word_count > count - at)
            break;
    }
    return problems;
}

uint64_t bw_amd_sdma_print(const uint32_t *words, uint64_t count, struct bw_text *text)
{
    return bw_amd_sdma_print_generation(BW_AMD_SDMA_5, words, count, text);
}
