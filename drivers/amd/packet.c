/* Packets by table: see packet.h. */
#include "drivers/amd/packet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    TAIL_PRINTED_MAX = 16, /* of a long inline payload only the start is shown */
    ADDRESS_BITS_MAX =
        8, /* that an alignment leaves out: 128 bytes have 7; GCR_CONTROL_LO begins at bit 16 */
};

void bw_amd_emit_begin(struct bw_amd_emit *emit, uint32_t header, uint32_t word_count)
{
    assert(word_count >= 1 && word_count <= BW_AMD_EMIT_WORDS_MAX);
    emit->word_count = word_count;
    emit->operand_count = 0;
    memset(emit->words, 0, word_count * sizeof emit->words[0]);
    emit->words[0] = header;
}

void bw_amd_emit_put(struct bw_amd_emit *emit, uint32_t bits, uint32_t value)
{
    unsigned word = bw_amd_bits_word(bits);
    assert(word < emit->word_count);
    assert(bw_amd_bits_unpack(bits, emit->words[word]) == 0);
    emit->words[word] |= bw_amd_bits_pack(bits, value);
}

static void emit_operand(struct bw_amd_emit *emit, uint32_t bits, struct bw_operand operand, unsigned shift,
                         bool wide)
{
    assert(emit->operand_count < BW_AMD_EMIT_OPERANDS_MAX);
    assert(bw_amd_bits_word(bits) + wide < emit->word_count);
    uint32_t index = emit->operand_count++;
    emit->operands[index].operand = operand;
    emit->operands[index].word = bw_amd_bits_word(bits);
    emit->operands[index].mask = wide ? UINT32_MAX : bw_amd_bits_max(bits) << bw_amd_bits_low(bits);
    emit->operands[index].shift = (uint8_t)shift;
    emit->operands[index].wide = wide;
}

void bw_amd_emit_operand32(struct bw_amd_emit *emit, uint32_t bits, struct bw_operand operand, unsigned shift)
{
    assert(bw_amd_bits_low(bits) == 0); /* patches shift right only */
    emit_operand(emit, bits, operand, shift, false);
}

void bw_amd_emit_operand64(struct bw_amd_emit *emit, uint32_t bits, struct bw_operand operand, unsigned shift)
{
    /* An address field that starts above bit 0 says what alignment the packet needs. */
    assert(operand.symbol != BW_SYMBOL_NONE ||
           ((operand.addend >> shift) & ((1u << bw_amd_bits_low(bits)) - 1)) == 0);
    emit_operand(emit, bits, operand, shift, true);
}

void bw_amd_emit_end(const struct bw_amd_emit *emit, struct bw_encoder *encoder)
{
    uint32_t first = encoder->count;
    for (uint32_t word = 0; word < emit->word_count; word++) {
        uint32_t index = 0;
        while (index < emit->operand_count && emit->operands[index].word != word)
            index++;
        if (index == emit->operand_count) {
            bw_encoder_word(encoder, emit->words[word]);
        } else if (emit->operands[index].wide) {
            assert(emit->words[word] == 0 && emit->words[word + 1] == 0);
            bw_encoder_operand64(encoder, emit->operands[index].operand, emit->operands[index].shift);
            word++;
        } else {
            bw_encoder_operand32(encoder, emit->operands[index].operand, emit->operands[index].shift,
                                 emit->operands[index].mask, emit->words[word]);
        }
    }
    assert(encoder->failed || encoder->count - first == emit->word_count);
    encoder->packets++;
}

void bw_amd_packet_pack(const struct bw_amd_packet *packet, uint32_t header, const uint32_t *values,
                        uint32_t *words)
{
    memset(words, 0, packet->word_count * sizeof *words);
    words[0] = header;
    for (uint32_t i = 0; i < packet->field_count; i++)
        words[bw_amd_bits_word(packet->fields[i].bits)] |=
            bw_amd_bits_pack(packet->fields[i].bits, values[i]);
}

static uint32_t reserved_bits(const struct bw_amd_packet *packet, uint32_t word)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < packet->field_count; i++) {
        uint32_t bits = packet->fields[i].bits;
        if (bw_amd_bits_word(bits) == word)
            used |= bw_amd_bits_max(bits) << bw_amd_bits_low(bits);
    }
    return ~used;
}

void bw_amd_packet_unpack(const struct bw_amd_packet *packet, const uint32_t *words, uint64_t available,
                          uint64_t word_count, struct bw_amd_decoded *decoded)
{
    assert(packet->field_count <= BW_AMD_FIELDS_MAX && available >= 1);
    memset(decoded, 0, sizeof *decoded);
    decoded->packet = packet;
    decoded->word_count = word_count;
    uint64_t present = word_count < available ? word_count : available;
    for (uint32_t i = 0; i < packet->field_count; i++) {
        uint32_t bits = packet->fields[i].bits;
        if (bw_amd_bits_word(bits) < present)
            decoded->values[i] = bw_amd_bits_unpack(bits, words[bw_amd_bits_word(bits)]);
    }
    if (packet->tail != BW_AMD_TAIL_NONE && present > packet->word_count) {
        decoded->tail = words + packet->word_count;
        decoded->tail_count = present - packet->word_count;
    }
    if (word_count > available) {
        snprintf(decoded->problem, sizeof decoded->problem, "cut off: %" PRIu64 " words, %" PRIu64 " present",
                 word_count, available);
    } else if (word_count < packet->word_count ||
               (packet->tail == BW_AMD_TAIL_NONE && word_count > packet->word_count)) {
        snprintf(decoded->problem, sizeof decoded->problem, "%" PRIu64 " words, expected %s%u", word_count,
                 packet->tail == BW_AMD_TAIL_NONE ? "" : "at least ", packet->word_count);
    }
    for (uint32_t word = 1; word < packet->word_count && word < present && !decoded->problem[0]; word++) {
        uint32_t reserved = words[word] & reserved_bits(packet, word);
        if (reserved)
            snprintf(decoded->problem, sizeof decoded->problem, "reserved bits 0x%08x set in word %u",
                     reserved, word);
    }
}

uint32_t bw_amd_field_shown(const struct bw_amd_field *field, uint32_t value)
{
    static const char low_word[] = "_LO";
    size_t length = strlen(field->name), end = sizeof low_word - 1;
    bool address = bw_amd_bits_high(field->bits) == 31 && bw_amd_bits_low(field->bits) < ADDRESS_BITS_MAX &&
                   length > end && strcmp(field->name + length - end, low_word) == 0;
    return address ? value << bw_amd_bits_low(field->bits) : value;
}

void bw_amd_packet_print(const struct bw_amd_decoded *decoded, const uint32_t *words, uint64_t offset_words,
                         struct bw_text *text)
{
    const struct bw_amd_packet *packet = decoded->packet;
    if (!packet) {
        bw_text_add(text, "0x%04" PRIx64 "  0x%08x\n", offset_words * 4, words[0]);
    } else {
        bw_text_add(text, "0x%04" PRIx64 "  %s (%" PRIu64 " words)\n", offset_words * 4, packet->name,
                    decoded->word_count);
        for (uint32_t i = 0; i < packet->field_count; i++) {
            uint32_t bits = packet->fields[i].bits;
            if (bw_amd_bits_word(bits) < decoded->word_count)
                bw_text_add(text, "        %s = 0x%x\n", packet->fields[i].name,
                            bw_amd_field_shown(&packet->fields[i], decoded->values[i]));
        }
    }
    if (packet && packet->tail == BW_AMD_TAIL_DATA && decoded->tail_count) {
        uint64_t shown = decoded->tail_count < TAIL_PRINTED_MAX ? decoded->tail_count : TAIL_PRINTED_MAX;
        bw_text_add(text, "        data =");
        for (uint64_t i = 0; i < shown; i++)
            bw_text_add(text, " 0x%08x", decoded->tail[i]);
        bw_text_add(text, shown < decoded->tail_count ? " ... (%" PRIu64 " words)\n" : "\n",
                    decoded->tail_count);
    }
    if (decoded->problem[0])
        bw_text_add(text, "      ! %s\n", decoded->problem);
}
