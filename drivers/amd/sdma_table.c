/* SDMA rows for the decoder, expanded from sdma_table.h. */
#include "base/bits.h"
#include "drivers/amd/sdma.h"

#define FIELD(packet, field, word, low, high) {#field, BW_AMD_BITS(word, low, high)},
#define FIELDS(symbol, name, opcode, sub, generations, words, tail)                                     \
    static const struct bw_amd_field fields_##symbol[] = {BW_AMD_SDMA_FIELDS_##symbol(FIELD){NULL, 0}}; \
    _Static_assert(BW_COUNT_OF(fields_##symbol) - 1 <= BW_AMD_FIELDS_MAX, "decoded values of " name);
BW_AMD_SDMA_PACKETS(FIELDS)

#define PACKET(symbol, name, opcode, sub, generations, words, tail) \
    {name, opcode, sub, generations, words, tail, BW_COUNT_OF(fields_##symbol) - 1, fields_##symbol},
static const struct bw_amd_packet packets[] = {BW_AMD_SDMA_PACKETS(PACKET)};

const struct bw_amd_packet *bw_amd_sdma_packets(uint32_t *count)
{
    *count = BW_COUNT_OF(packets);
    return packets;
}

const struct bw_amd_packet *bw_amd_sdma_packet(uint32_t generation, uint32_t opcode, uint32_t sub_opcode)
{
    for (size_t i = 0; i < BW_COUNT_OF(packets); i++)
        if (packets[i].opcode == opcode && packets[i].sub_opcode == sub_opcode &&
            (packets[i].generations & generation))
            return &packets[i];
    return NULL;
}
