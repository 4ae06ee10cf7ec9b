/* Between the parts of the disassembler; nobody else includes this. */
#ifndef BW_MOCK_ISA_DISASM_H
#define BW_MOCK_ISA_DISASM_H

#include "base/text.h"
#include "mock/isa/inst.h"

/* One operand; NONE prints as "off". */
void bw_gfx11_print_operand(const struct bw_inst *inst, const struct bw_operand *operand, uint64_t pc,
                            struct bw_text *text);

/* An immediate field, as its type wants it. */
void bw_gfx11_print_imm(const struct bw_generation *generation, const struct bw_operand *operand,
                        struct bw_text *text);

/* The offset of ds_swizzle_b32, with its leading blank; nothing when it is 0. */
void bw_gfx11_print_swizzle(unsigned offset, struct bw_text *text);

#endif
