/* A plain instruction of any operation: registers number 0 and 4, zero fields. */
#ifndef BW_TESTS_FIDELITY_PLAIN_H
#define BW_TESTS_FIDELITY_PLAIN_H

#include <string.h>

#include "mock/isa/inst.h"

enum { PLAIN_WORDS = 3 };

static inline void plain_scalar(const struct bw_gfx11_op_row *row, uint32_t words[PLAIN_WORDS])
{
    uint32_t op = row->opcode, destination = row->dst.type ? 4u << 16 : 0;
    switch (row->format) {
    case BW_GFX11_SOP1:
        words[0] = 0xbe800000 | destination | op << 8;
        break;
    case BW_GFX11_SOP2:
        words[0] = 0x80000000 | op << 23 | destination;
        break;
    case BW_GFX11_SOPC:
        words[0] = 0xbf000000 | op << 16;
        break;
    case BW_GFX11_SOPK:
        words[0] = 0xb0000000 | op << 23 | destination;
        break;
    case BW_GFX11_SOPP:
        words[0] = 0xbf800000 | op << 16;
        break;
    default: /* SMEM; no offset register */
        words[0] = 0xf4000000 | op << 18 | (row->dst.type ? 4u << 6 : 0);
        words[1] = 0xf8000000;
    }
}

static inline void plain_vector(const struct bw_gfx11_op_row *row, uint32_t words[PLAIN_WORDS])
{
    enum { V0 = 256 };
    uint32_t op = row->opcode, sources = 0;
    for (unsigned i = 0; i < 3; i++) {
        unsigned taken = row->src[i].operand_class;
        if (taken == BW_CLASS_ANY || taken == BW_CLASS_VGPR || taken == BW_CLASS_VGPR_OR_INLINE)
            sources |= (uint32_t)V0 << (9 * i);
    }
    switch (row->format) {
    case BW_GFX11_VOP1:
        words[0] = 0x7e000000 | op << 9 | sources;
        break;
    case BW_GFX11_VOP2:
        words[0] = op << 25 | V0;
        break;
    case BW_GFX11_VOPC:
        words[0] = 0x7c000000 | op << 17 | V0;
        break;
    case BW_GFX11_VOP3P: /* op_sel_hi: all */
        words[0] = 0xcc004000 | op << 16;
        words[1] = 0x18000000 | sources;
        break;
    default:
        words[0] = 0xd4000000 | op << 16;
        words[1] = sources;
    }
}

static inline void plain_memory(const struct bw_gfx11_op_row *row, uint32_t words[PLAIN_WORDS])
{
    uint32_t op = row->opcode << 18, segment = row->flags & BW_GFX11_F_SEG_GLOBAL ? BW_SEGMENT_GLOBAL : 0;
    switch (row->format) {
    case BW_GFX11_DS:
        words[0] = 0xd8000000 | op | (row->flags & BW_GFX11_F_GDS ? 1u << 17 : 0);
        break;
    case BW_GFX11_FLAT: /* no scalar address */
        words[0] = 0xdc000000 | op | segment << 16;
        words[1] = 124u << 16;
        break;
    case BW_GFX11_MTBUF: /* soffset 0 */
        words[0] = 0xe8000000 | (uint32_t)row->opcode << 15;
        words[1] = 0x80000000;
        break;
    case BW_GFX11_LDSDIR:
        words[0] = 0xce000000 | (uint32_t)row->opcode << 20;
        break;
    default: /* MUBUF; soffset 0 */
        words[0] = 0xe0000000 | op;
        words[1] = row->src[0].type || row->src[1].type || row->dst.type ? 0x80000000 : 0;
    }
}

/* How many words; 0: the decoder makes something else of them. */
static inline unsigned plain_instruction(unsigned op, uint32_t words[PLAIN_WORDS])
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[op];
    struct bw_inst inst;
    memset(words, 0, PLAIN_WORDS * sizeof *words);
    if (row->format <= BW_GFX11_SMEM)
        plain_scalar(row, words);
    else if (row->format < BW_GFX11_DS)
        plain_vector(row, words);
    else
        plain_memory(row, words);
    unsigned bytes = bw_gfx11_decode(words, PLAIN_WORDS * sizeof *words, &inst);
    return inst.op == op ? bytes / 4 : 0;
}

#endif
