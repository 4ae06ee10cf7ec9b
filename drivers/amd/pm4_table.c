/* PM4 rows for the decoder, expanded from pm4_table.h. */
#include "base/bits.h"
#include "drivers/amd/pm4.h"

#define FIELD(packet, field, word, low, high) {#field, BW_AMD_BITS(word, low, high)},
#define FIELDS(symbol, name, opcode, generations, words, tail) \
    static const struct bw_amd_field fields_##symbol[] = {BW_AMD_PM4_FIELDS_##symbol(FIELD){NULL, 0}};
BW_AMD_PM4_PACKETS(FIELDS)

#define PACKET(symbol, name, opcode, generations, words, tail) \
    {name, opcode, 0, generations, words, tail, BW_COUNT_OF(fields_##symbol) - 1, fields_##symbol},
static const struct bw_amd_packet packets[] = {BW_AMD_PM4_PACKETS(PACKET)};

#define FIELDS_FIT(symbol, name, opcode, generations, words, tail) \
    _Static_assert(BW_COUNT_OF(fields_##symbol) - 1 <= BW_AMD_FIELDS_MAX, "decoded values of " name);
BW_AMD_PM4_PACKETS(FIELDS_FIT)

const struct bw_amd_packet *bw_amd_pm4_packets(uint32_t *count)
{
    *count = BW_COUNT_OF(packets);
    return packets;
}

const struct bw_amd_packet *bw_amd_pm4_packet(uint32_t generation, uint32_t opcode)
{
    for (size_t i = 0; i < BW_COUNT_OF(packets); i++)
        if (packets[i].opcode == opcode && (packets[i].generations & generation))
            return &packets[i];
    return NULL;
}
