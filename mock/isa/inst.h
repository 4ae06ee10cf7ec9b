/* Decoded instructions of gfx11 (RDNA3) and gfx12 (RDNA4): what the decoder gives to the executor and to the
 * disassembler. Formats, types and flags have gfx11's names and serve both; what is executed is gfx11 only.
 *
 * One `struct bw_inst` is everything that one instruction says, with encodings resolved: operands are kind,
 * index and type, modifiers are bit masks by source number, implied operands (VCC of v_add_co_ci_u32_e32,
 * EXEC of v_cmpx) are filled in. Decoding is pure: no memory beyond `code` is read, no state is kept.
 *
 * Sources: RDNA3 Shader ISA document (AMD, 2023), section 15 "Microcode formats"; RDNA4 (2025), same chapter. */
#ifndef BW_MOCK_ISA_INST_H
#define BW_MOCK_ISA_INST_H

#include <stdbool.h>
#include <stdint.h>

#include "mock/isa/isa.h"

struct bw_text;

enum bw_gfx11_format {
    BW_GFX11_SOP1,
    BW_GFX11_SOP2,
    BW_GFX11_SOPC,
    BW_GFX11_SOPK,
    BW_GFX11_SOPP,
    BW_GFX11_SMEM,
    BW_GFX11_VOP1,
    BW_GFX11_VOP2,
    BW_GFX11_VOPC,
    BW_GFX11_VOP3, /* also the 64-bit form of VOP1, VOP2 and VOPC operations: struct bw_inst.format says which
                      was used */
    BW_GFX11_VOP3SD, /* VOP3 with a scalar destination beside the vector one */
    BW_GFX11_VOP3P,
    BW_GFX11_VOPD, /* no operations of its own: pairs of VOP1 and VOP2 ones */
    BW_GFX11_DS,
    BW_GFX11_FLAT, /* flat, global and scratch: struct bw_inst.segment */
    BW_GFX11_MUBUF,
    BW_GFX11_MTBUF,
    BW_GFX11_LDSDIR,
    BW_GFX11_FORMAT_COUNT
};

enum bw_gfx11_op {
#define OP(identifier, ...) BW_GFX11_##identifier,
#include "mock/isa/gfx11_ops.def"
#undef OP
    BW_GFX11_OP_COUNT
};

enum bw_gfx12_op {
#define OP(identifier, ...) BW_GFX12_##identifier,
#include "mock/isa/gfx12_ops.def"
#undef OP
    BW_GFX12_OP_COUNT
};

/* Type of an operand: its width, and how an inline constant or a literal becomes a value of it. */
enum bw_gfx11_type {
    BW_T_NONE,
    BW_T_B16, /* 16-bit integer, in the low half of its register unless op_sel says otherwise */
    BW_T_B32,
    BW_T_B64, /* a literal is zero-extended */
    BW_T_I64, /* a literal is sign-extended */
    BW_T_B96,
    BW_T_B128,
    BW_T_B256,
    BW_T_B512,
    BW_T_B1024,
    BW_T_F16,
    BW_T_BF16,
    BW_T_F32,
    BW_T_F64, /* a literal is the high 32 bits */
    BW_T_V2B16,
    BW_T_V2F16,
    BW_T_V2BF16,
    BW_T_MIX,  /* v_fma_mix: F32, or F16 where op_sel_hi says so */
    BW_T_MASK, /* one bit per lane: one scalar register in wave32, two in wave64; dwords is 1, the executor
                  knows the wave */
    /* Immediate fields: how LLVM prints them. */
    BW_T_DEC,
    BW_T_HEX,
    BW_T_BRANCH, /* signed count of dwords from the next instruction */
    BW_T_WAITCNT,
    BW_T_DEPCTR,
    BW_T_DELAY,
    BW_T_SENDMSG,
    BW_T_MSGRTN,
    BW_T_HWREG,
    BW_T_ENDPGM,
    BW_T_VERSION,
    BW_T_ATTRIBUTE, /* of a pixel: number << 2 | channel */
};

enum bw_operand_kind {
    BW_OPERAND_NONE,
    BW_OPERAND_SREG,  /* index 0..127 of the scalar register space: 0..105 SGPR, then as enum bw_gfx11_sreg */
    BW_OPERAND_VGPR,  /* index 0..255 */
    BW_OPERAND_INT,   /* inline integer: index is the value as int16_t, -16..64 */
    BW_OPERAND_FLOAT, /* inline float: index is the encoding, 240..248 */
    BW_OPERAND_LITERAL, /* the 32 bits in struct bw_inst.literal */
    BW_OPERAND_SPECIAL, /* index is the encoding, enum bw_gfx11_special */
    BW_OPERAND_IMM,     /* index is the 16-bit immediate field */
};

/* Scalar registers beside the SGPRs. */
enum bw_gfx11_sreg {
    BW_SREG_VCC_LO = 106,
    BW_SREG_VCC_HI = 107,
    BW_SREG_TTMP0 = 108, /* ..123 */
    BW_SREG_NULL = 124,  /* reads 0, writes are dropped */
    BW_SREG_M0 = 125,
    BW_SREG_EXEC_LO = 126,
    BW_SREG_EXEC_HI = 127,
};

enum bw_gfx11_special {
    BW_SPECIAL_SHARED_BASE = 235,
    BW_SPECIAL_SHARED_LIMIT = 236,
    BW_SPECIAL_PRIVATE_BASE = 237,
    BW_SPECIAL_PRIVATE_LIMIT = 238,
    BW_SPECIAL_POPS_EXITING_WAVE_ID = 239,
    BW_SPECIAL_SCC = 253, /* gfx11 has no vccz, execz and lds_direct sources: refused */
};

/* Flags of an operation. MODn: the first n sources take neg and abs in VOP3 (and in DPP16). */
enum {
    BW_GFX11_F_E64 = 1 << 0, /* a VOP1, VOP2 or VOPC operation that has a VOP3 form */
    BW_GFX11_F_MOD1 = 1 << 1,
    BW_GFX11_F_MOD2 = 1 << 2,
    BW_GFX11_F_MOD3 = 1 << 3,
    BW_GFX11_F_CLAMP = 1 << 4,
    BW_GFX11_F_OMOD = 1 << 5,
    BW_GFX11_F_OPSEL = 1 << 6,
    BW_GFX11_F_DPP = 1 << 7,    /* DPP8 and DPP16 forms of the 32-bit encoding */
    BW_GFX11_F_DPP64 = 1 << 8,  /* DPP8 and DPP16 forms of the 64-bit encoding */
    BW_GFX11_F_SDST = 1 << 9,   /* second, scalar destination */
    BW_GFX11_F_RMW = 1 << 10,   /* dst is also read: accumulators, d16 loads, bit sets */
    BW_GFX11_F_BARE = 1 << 11,  /* LLVM prints no _e32 or _e64 */
    BW_GFX11_F_LO128 = 1 << 12, /* VGPRs of the 32-bit encoding are v0..v127, bit 7 selects the high half */
    BW_GFX11_F_GDS = 1 << 13,   /* gds bit must be set */
    BW_GFX11_F_TWO_OFFSETS = 1 << 14,
    BW_GFX11_F_ATOMIC = 1 << 15, /* returns the old value in dst when glc is set */
    BW_GFX11_F_SEG_FLAT = 1 << 16,
    BW_GFX11_F_SEG_SCRATCH = 1 << 17,
    BW_GFX11_F_SEG_GLOBAL = 1 << 18,
    BW_GFX11_F_CMPX = 1 << 19, /* a comparison that writes EXEC */
    BW_GFX11_F_NO_GDS = 1 << 20,
    BW_GFX11_F_SWIZZLE = 1 << 21, /* the offset says which lanes */
    BW_GFX11_F_LANES = 1 << 22,   /* V_PERMLANE*: op_sel is fetch inactive and bound control */
    BW_GFX11_F_BYTESEL = 1 << 23, /* op_sel picks a byte */
    BW_GFX11_F_PREFETCH = 1 << 24,
    BW_GFX11_F_FIXED_SEL = 1 << 25, /* VOP3P of gfx12: op_sel 0, op_sel_hi all ones, neg as the next say */
    BW_GFX11_F_KEY = 1 << 26,       /* but op_sel bit 0 is an index key */
    BW_GFX11_F_NEG01 = 1 << 27,
    BW_GFX11_F_NEG2 = 1 << 28,
    BW_GFX11_F_SIGNED01 = 1 << 29, /* neg_lo says which factors are signed */
};

/* Class of an operand in an operation row (see gfx11_ops.def). */
enum bw_gfx11_class {
    BW_CLASS_NONE,
    BW_CLASS_ANY,
    BW_CLASS_VGPR,
    BW_CLASS_SCALAR,
    BW_CLASS_VGPR_OR_INLINE,
    BW_CLASS_REGISTER, /* scalar register, no constant */
    BW_CLASS_K,
    BW_CLASS_IMM,
};

struct bw_gfx11_operand_row {
    uint8_t operand_class; /* enum bw_gfx11_class */
    uint8_t type;          /* enum bw_gfx11_type */
};

struct bw_gfx11_op_row {
    const char *name; /* mnemonic without _e32, _e64, _dpp; FLAT without its segment's prefix */
    uint8_t format;
    uint16_t opcode;
    struct bw_gfx11_operand_row dst, src[3];
    uint32_t flags;
    uint8_t fidelity; /* enum bw_isa_fidelity */
};

extern const struct bw_gfx11_op_row bw_gfx11_ops[BW_GFX11_OP_COUNT];
extern const struct bw_gfx11_op_row bw_gfx12_ops[BW_GFX12_OP_COUNT];

/* What the decoder and the disassembler have to know of a generation. */
struct bw_generation {
    const struct bw_gfx11_op_row *ops;
    const uint16_t *lookup, *vopd; /* decode.h */
    bool is_gfx12;
};
extern const struct bw_generation bw_gfx11, bw_gfx12;

struct bw_operand {
    uint8_t kind;   /* enum bw_operand_kind */
    uint8_t type;   /* enum bw_gfx11_type */
    uint8_t dwords; /* registers that it spans; 1 for constants of up to 32 bits */
    uint16_t index;
};

enum bw_gfx11_dpp { BW_DPP_NONE, BW_DPP_8, BW_DPP_16 };

enum bw_gfx11_segment { BW_SEGMENT_FLAT, BW_SEGMENT_SCRATCH, BW_SEGMENT_GLOBAL };

/* dpp_ctrl ranges of DPP16 (RDNA3 ISA document, table "DPP_CTRL enumeration"). */
enum {
    BW_DPP_QUAD_PERM = 0x000, /* ..0x0ff: four 2-bit selects */
    BW_DPP_ROW_SHL = 0x100,   /* +1..15 */
    BW_DPP_ROW_SHR = 0x110,   /* +1..15 */
    BW_DPP_ROW_ROR = 0x120,   /* +1..15 */
    BW_DPP_ROW_MIRROR = 0x140,
    BW_DPP_ROW_HALF_MIRROR = 0x141,
    BW_DPP_ROW_SHARE = 0x150, /* +0..15 */
    BW_DPP_ROW_XMASK = 0x160, /* +0..15 */
};

/* The second operation of a VOPD pair; it reads and writes at the same time as the first. */
struct bw_inst_half {
    uint16_t op; /* enum bw_gfx11_op: the ordinary VOP1 or VOP2 operation, V_DOT2ACC_F32_BF16 for the one that
                    has none */
    struct bw_operand dst, src[3];
};

struct bw_inst {
    const struct bw_generation *generation;
    uint16_t op;    /* of the generation: enum bw_gfx11_op, enum bw_gfx12_op; of VOPD the first half's */
    uint8_t format; /* enum bw_gfx11_format, as encoded */
    uint8_t bytes;  /* 4, 8 or 12, literal and DPP dword included */
    struct bw_operand dst;
    struct bw_operand sdst; /* VOP3SD and the carry-out of VOP2: which register takes the lane mask */
    /* VALU, SALU: sources in order. SMEM: base, soffset. DS: address, data0, data1. FLAT: address (NONE when
     * scratch has none), data, saddr (NONE when off). MUBUF, MTBUF: vaddr, data, descriptor, soffset.
     * Atomics: dst is NONE without return. */
    struct bw_operand src[4];
    uint32_t literal;

    /* VALU modifiers; bit i belongs to source i, op_sel bit 3 to the destination. */
    uint8_t neg; /* VOP3P: neg_lo */
    uint8_t abs; /* VOP3P: neg_hi; v_fma_mix: abs */
    uint8_t op_sel;
    uint8_t op_sel_hi; /* VOP3P */
    uint8_t omod;      /* 0 none, 1 times 2, 2 times 4, 3 divided by 2 */
    bool clamp;

    uint8_t dpp; /* enum bw_gfx11_dpp: lanes of source 0 are permuted */
    uint8_t row_mask, bank_mask;
    bool bound_ctrl, fetch_inactive;
    uint16_t dpp_ctrl; /* DPP16 */
    uint32_t dpp8_sel; /* DPP8: eight 3-bit selects, lane 0 lowest */

    /* Memory. */
    uint8_t segment; /* enum bw_gfx11_segment */
    bool glc, slc, dlc;
    uint8_t th, scope; /* gfx12 has these instead: temporal hint, 0 to 7; scope, 0 to 3 */
    bool gds, tfe, offen, idxen;
    uint8_t data_format; /* MTBUF: 0..127, format.h has those below 64 */
    uint8_t wait_vdst;   /* LDSDIR */
    int32_t offset; /* bytes, sign-extended where the format is signed; DS with two offsets: offset0 | offset1
                       << 8 */

    struct bw_inst_half y; /* VOPD only */
};

/* Decodes the instruction at code (up to code_bytes readable). Returns its length in bytes, or 0 when it is
 * no legal instruction of the generation that its table knows; *inst is then unspecified. Thread safe. */
unsigned bw_inst_decode(const struct bw_generation *generation, const void *code, uint64_t code_bytes,
                        struct bw_inst *inst);
unsigned bw_gfx11_decode(const void *code, uint64_t code_bytes, struct bw_inst *inst);

/* Appends the instruction as LLVM 19's disassembler prints it for gfx1100 or gfx1201, without a newline; pc
 * is its address. */
void bw_inst_print(const struct bw_inst *inst, uint64_t pc, struct bw_text *text);

/* Dwords that a value of this type fills (1 for 16-bit and immediate ones, 0 for none). */
unsigned bw_gfx11_type_dwords(enum bw_gfx11_type type);

/* 16 for the half types, else 32 times its dwords. */
unsigned bw_gfx11_type_bits(enum bw_gfx11_type type);

/* The bits of a constant operand (INT, FLOAT, LITERAL, IMM) as a value of its type, in the low bits; for V2*
 * types the 32 bits that the instruction sees before op_sel and op_sel_hi. */
uint64_t bw_gfx11_constant(const struct bw_inst *inst, const struct bw_operand *operand);

#endif
