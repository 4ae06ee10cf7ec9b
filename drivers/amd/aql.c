/* AQL decoder and printer: see aql.h. */
#include "drivers/amd/aql.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

enum {
    TYPE = BW_AMD_BITS(0, 0, 7),
    FORMAT = BW_AMD_BITS(0, 16, 23),
    TYPE_VENDOR = 0,
    SCOPE_RESERVED = 3,
    CONDITION_MAX = 3,            /* HSA_SIGNAL_CONDITION_EQ, NE, LT, GTE */
    KERNEL_OBJECT_ALIGNMENT = 64, /* LLVM AMDGPUUsage, "Kernel Descriptor" */
    IB_HEADER = (int)0xc0023f00,  /* PM4 INDIRECT_BUFFER of three more words */
    IB_WORDS_REMAINING = 10,      /* of the AQL packet, less its completion signal */
    ANY_GENERATION = BW_AMD_PM4_COHER | BW_AMD_PM4_GCR | BW_AMD_SDMA_4 | BW_AMD_SDMA_5,
};

#define FIELD(packet, field, word, low, high) {#field, BW_AMD_BITS(word, low, high)},
#define FIELDS(symbol, name, type, format, words, tail)                                                \
    static const struct bw_amd_field fields_##symbol[] = {BW_AMD_AQL_FIELDS_##symbol(FIELD){NULL, 0}}; \
    _Static_assert(BW_COUNT_OF(fields_##symbol) - 1 <= BW_AMD_FIELDS_MAX, "decoded values of " name);
BW_AMD_AQL_PACKETS(FIELDS)

#define PACKET(symbol, name, type, format, words, tail) \
    {name, type, format, ANY_GENERATION, words, tail, BW_COUNT_OF(fields_##symbol) - 1, fields_##symbol},
static const struct bw_amd_packet packets[] = {BW_AMD_AQL_PACKETS(PACKET)};

const struct bw_amd_packet *bw_amd_aql_packets(uint32_t *count)
{
    *count = BW_COUNT_OF(packets);
    return packets;
}

const struct bw_amd_packet *bw_amd_aql_packet(uint32_t type, uint32_t format)
{
    for (size_t i = 0; i < BW_COUNT_OF(packets); i++)
        if (packets[i].opcode == type && (type != TYPE_VENDOR || packets[i].sub_opcode == format))
            return &packets[i];
    return NULL;
}

static uint32_t field(const uint32_t *words, uint32_t bits)
{
    return bw_amd_bits_unpack(bits, words[bw_amd_bits_word(bits)]);
}

/* What is set in word 0 beside type, format and fields. */
static uint32_t header_reserved(const struct bw_amd_packet *packet, uint32_t header)
{
    uint32_t known = bw_amd_bits_max(TYPE);
    if (packet->opcode == TYPE_VENDOR)
        known |= bw_amd_bits_max(FORMAT) << bw_amd_bits_low(FORMAT);
    for (uint32_t i = 0; i < packet->field_count; i++)
        if (bw_amd_bits_word(packet->fields[i].bits) == 0)
            known |= bw_amd_bits_max(packet->fields[i].bits) << bw_amd_bits_low(packet->fields[i].bits);
    return header & ~known;
}

static void check_dispatch(const uint32_t *words, struct bw_amd_decoded *decoded)
{
    static const uint32_t groups[3] = {BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_X,
                                       BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_Y,
                                       BW_AMD_AQL_KERNEL_DISPATCH_WORKGROUP_SIZE_Z},
                          grids[3] = {BW_AMD_AQL_KERNEL_DISPATCH_GRID_SIZE_X,
                                      BW_AMD_AQL_KERNEL_DISPATCH_GRID_SIZE_Y,
                                      BW_AMD_AQL_KERNEL_DISPATCH_GRID_SIZE_Z};
    uint32_t dimensions = field(words, BW_AMD_AQL_KERNEL_DISPATCH_DIMENSIONS);
    uint64_t object = (uint64_t)field(words, BW_AMD_AQL_KERNEL_DISPATCH_KERNEL_OBJECT_HI) << 32 |
                      field(words, BW_AMD_AQL_KERNEL_DISPATCH_KERNEL_OBJECT_LO);
    if (!dimensions) {
        snprintf(decoded->problem, sizeof decoded->problem, "a grid of 0 dimensions");
        return;
    }
    for (uint32_t i = 0; i < 3 && !decoded->problem[0]; i++) {
        uint32_t group = field(words, groups[i]), grid = field(words, grids[i]);
        if (!group || !grid || (i >= dimensions && (group != 1 || grid != 1)))
            snprintf(decoded->problem, sizeof decoded->problem, "dimension %u of %u: grid %u, work-group %u",
                     i, dimensions, grid, group);
    }
    if (!decoded->problem[0] && (!object || object % KERNEL_OBJECT_ALIGNMENT))
        snprintf(decoded->problem, sizeof decoded->problem,
                 "kernel object 0x%" PRIx64 ": not at a multiple of %u", object, KERNEL_OBJECT_ALIGNMENT);
}

static void check_vendor(const uint32_t *words, struct bw_amd_decoded *decoded)
{
    if (decoded->packet->sub_opcode == BW_AMD_AQL_OP_PM4_IB >> 16) {
        uint32_t header = field(words, BW_AMD_AQL_PM4_IB_IB_HEADER),
                 remaining = field(words, BW_AMD_AQL_PM4_IB_WORDS_REMAINING);
        if (header != (uint32_t)IB_HEADER || remaining != IB_WORDS_REMAINING)
            snprintf(decoded->problem, sizeof decoded->problem,
                     "PM4 header 0x%08x with %u words remaining: expected INDIRECT_BUFFER, 0x%08x, with %u",
                     header, remaining, (uint32_t)IB_HEADER, IB_WORDS_REMAINING);
    } else if (field(words, BW_AMD_AQL_BARRIER_VALUE_CONDITION) > CONDITION_MAX) {
        snprintf(decoded->problem, sizeof decoded->problem, "condition %u: expected 0 to %u",
                 field(words, BW_AMD_AQL_BARRIER_VALUE_CONDITION), CONDITION_MAX);
    }
}

static void check_packet(const uint32_t *words, struct bw_amd_decoded *decoded)
{
    uint32_t reserved = header_reserved(decoded->packet, words[0]);
    if (reserved)
        snprintf(decoded->problem, sizeof decoded->problem, "reserved bits 0x%08x set in word 0", reserved);
    else if (field(words, BW_AMD_AQL_KERNEL_DISPATCH_ACQUIRE_SCOPE) == SCOPE_RESERVED ||
             field(words, BW_AMD_AQL_KERNEL_DISPATCH_RELEASE_SCOPE) == SCOPE_RESERVED)
        snprintf(decoded->problem, sizeof decoded->problem, "fence scope 3 in the header");
    else if (decoded->packet->opcode == TYPE_VENDOR)
        check_vendor(words, decoded);
    else if (decoded->packet->opcode == BW_AMD_AQL_OP_KERNEL_DISPATCH)
        check_dispatch(words, decoded);
}

void bw_amd_aql_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                       struct bw_amd_decoded *decoded)
{
    assert(count >= 1);
    uint32_t type = field(words, TYPE), format = field(words, FORMAT);
    const struct bw_amd_packet *packet = bw_amd_aql_packet(type, format);
    if (!packet) { /* its length is known all the same */
        memset(decoded, 0, sizeof *decoded);
        decoded->word_count = BW_AMD_AQL_WORDS;
        if (type == TYPE_VENDOR)
            snprintf(decoded->problem, sizeof decoded->problem, "unknown vendor format %u", format);
        else
            snprintf(decoded->problem, sizeof decoded->problem, "unknown type %u", type);
        return;
    }
    bw_amd_packet_unpack(packet, words, count, BW_AMD_AQL_WORDS, decoded);
    if (!decoded->problem[0] && packet->opcode != BW_AMD_AQL_OP_INVALID)
        check_packet(words, decoded);
}

uint64_t bw_amd_aql_print(const uint32_t *words, uint64_t count, struct bw_text *text)
{
    uint64_t problems = 0;
    struct bw_amd_decoded decoded;
    for (uint64_t at = 0; at < count; at += decoded.word_count) {
        bw_amd_aql_decode(0, words + at, count - at, &decoded);
        bw_amd_packet_print(&decoded, words + at, at, text);
        problems += decoded.problem[0] != 0;
    }
    return problems;
}
