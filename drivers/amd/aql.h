/* AQL packets: decoder and printer of rings that other runtimes fill, and the fields of the dispatch packet
 * that kernels read. Layouts: aql_table.h. */
#ifndef BW_DRIVERS_AMD_AQL_H
#define BW_DRIVERS_AMD_AQL_H

#include <stdint.h>

#include "drivers/amd/aql_table.h"
#include "drivers/amd/packet.h"

/* Field constants: BW_AMD_AQL_KERNEL_DISPATCH_GRID_SIZE_X and so on. */
#define BW_AMD_AQL_FIELD(packet, field, word, low, high) \
    BW_AMD_AQL_##packet##_##field = BW_AMD_BITS(word, low, high),
#define BW_AMD_AQL_PACKET(symbol, name, type, format, words, tail) \
    BW_AMD_AQL_FIELDS_##symbol(BW_AMD_AQL_FIELD)
enum bw_amd_aql_field { BW_AMD_AQL_PACKETS(BW_AMD_AQL_PACKET) };
#undef BW_AMD_AQL_PACKET

/* First words BW_AMD_AQL_OP_x: type, and format of a vendor packet, in place. */
#define BW_AMD_AQL_PACKET(symbol, name, type, format, words, tail) \
    BW_AMD_AQL_OP_##symbol = (type) | (format) << 16,
enum bw_amd_aql_opcode { BW_AMD_AQL_PACKETS(BW_AMD_AQL_PACKET) };
#undef BW_AMD_AQL_PACKET

enum { BW_AMD_AQL_WORDS = 16 /* of every packet */ };

/* generation is not looked at: AQL is one for all. A packet's problem is what the specification does not
 * allow. */
void bw_amd_aql_decode(uint32_t generation, const uint32_t *words, uint64_t count,
                       struct bw_amd_decoded *decoded);
/* NULL: unknown. format counts for vendor packets only. */
const struct bw_amd_packet *bw_amd_aql_packet(uint32_t type, uint32_t format);
const struct bw_amd_packet *bw_amd_aql_packets(uint32_t *count);
/* As bw_amd_pm4_print. */
uint64_t bw_amd_aql_print(const uint32_t *words, uint64_t count, struct bw_text *text);

#endif
