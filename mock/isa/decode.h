/* Between the parts of the gfx11 decoder; nobody else includes this. */
#ifndef BW_MOCK_ISA_DECODE_H
#define BW_MOCK_ISA_DECODE_H

#include "mock/isa/inst.h"

/* Where each format's opcodes start in the lookup table; the size of a section is the size of its opcode
 * field. */
enum {
    AT_SOP1 = 0,
    AT_SOP2 = AT_SOP1 + 256,
    AT_SOPC = AT_SOP2 + 128,
    AT_SOPK = AT_SOPC + 128,
    AT_SOPP = AT_SOPK + 32,
    AT_SMEM = AT_SOPP + 128,
    AT_VOP1 = AT_SMEM + 256,
    AT_VOP2 = AT_VOP1 + 256,
    AT_VOPC = AT_VOP2 + 64,
    AT_VOP3 = AT_VOPC + 256,
    AT_VOP3SD = AT_VOP3, /* one opcode space */
    AT_VOP3P = AT_VOP3 + 1024,
    AT_VOPD = AT_VOP3P + 128,
    AT_DS = AT_VOPD + 32,
    AT_FLAT = AT_DS + 256,
    AT_MUBUF = AT_FLAT + 256,
    AT_MTBUF = AT_MUBUF + 256,
    AT_LDSDIR = AT_MTBUF + 16,
    AT_END = AT_LDSDIR + 4
};

/* Of a generation's list of operations in VOPD, by opcode; the first VOPD_X_OPS may come first, the others
 * come second only. */
enum { BW_VOPD_OPS = 19, BW_VOPD_X_OPS = 13, BW_NO_OP = 0xffff };

/* Source codes with a meaning of their own, and the sizes of the register files. */
enum {
    SRC_DPP8 = 233,
    SRC_DPP8_FI = 234, /* fetch inactive lanes */
    SRC_DPP16 = 250,
    SRC_LITERAL = 255,
    SRC_VGPR0 = 256,
    SGPR_COUNT = 106,
    VGPR_COUNT = 256,
    TTMP_COUNT = 16,
};

/* Where decoding stands. A part that meets something illegal sets failed and goes on: the caller looks once.
 */
struct bw_decode_cursor {
    const uint8_t *code;
    uint64_t code_bytes;
    unsigned bytes;     /* consumed */
    bool literal_read;  /* an instruction has one literal, however many operands name it */
    bool allow_literal; /* false in MUBUF and MTBUF */
    bool failed;
};

uint32_t bw_decode_take_dword(struct bw_decode_cursor *c);
void bw_decode_take_literal(struct bw_decode_cursor *c, struct bw_inst *inst);
bool bw_decode_refuse(struct bw_decode_cursor *c);
struct bw_operand bw_decode_operand(enum bw_operand_kind kind, uint8_t type, unsigned index);
void bw_decode_vgpr(struct bw_decode_cursor *c, struct bw_operand *operand, uint8_t type, unsigned index);
void bw_decode_sreg(struct bw_decode_cursor *c, struct bw_operand *operand, uint8_t type, unsigned index);
void bw_decode_scalar_source(struct bw_decode_cursor *c, struct bw_inst *inst, struct bw_operand *operand,
                             uint8_t type, unsigned code);
void bw_decode_vector_source(struct bw_decode_cursor *c, struct bw_inst *inst, struct bw_operand *operand,
                             uint8_t type, unsigned code);
void bw_decode_imm(struct bw_operand *operand, uint8_t type, unsigned value);
const struct bw_gfx11_op_row *bw_decode_begin(struct bw_inst *inst, unsigned at, enum bw_gfx11_format format);
void bw_decode_expect_zero(struct bw_decode_cursor *c, uint32_t field);
void bw_decode_scalar_dst(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                          unsigned code);
void bw_decode_scalar_src(struct bw_decode_cursor *c, struct bw_inst *inst, const struct bw_gfx11_op_row *row,
                          unsigned source, unsigned code);
int32_t bw_decode_sign_extend(uint32_t value, unsigned bits);
bool bw_decode_smem(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vop1(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vopc(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vop2(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vop3(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vop3p(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vopd(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_ds(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_flat(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_mubuf(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_mtbuf(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_buffer_data(struct bw_decode_cursor *c, struct bw_inst *inst,
                           const struct bw_gfx11_op_row *row, unsigned vdata, bool returns);

/* Of gfx12. */
bool bw_decode_smem12(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vflat(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_vbuffer(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);
bool bw_decode_ldsdir(struct bw_decode_cursor *c, uint32_t word, struct bw_inst *inst);

#endif
