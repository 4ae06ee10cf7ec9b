/* The operation table of gfx11 as data; the rows are in gfx11_ops.def. */
#include "mock/isa/decode.h"
#define OP_ID(identifier) BW_GFX11_##identifier
#include "mock/isa/op_rows.h"

const struct bw_gfx11_op_row bw_gfx11_ops[BW_GFX11_OP_COUNT] = {
#include "mock/isa/gfx11_ops.def"
};
#undef OP

/* Operation + 1 by format and opcode, 0 where there is none. */
#define OP(identifier, mnemonic, format, opcode, ...) [AT_##format + opcode] = BW_GFX11_##identifier + 1,
static const uint16_t lookup[AT_END] = {
#include "mock/isa/gfx11_ops.def"
};
#undef OP

/* VOPD has opcodes of its own for the ordinary operations (RDNA3 ISA document, table "VOPD opcodes"). */
static const uint16_t vopd[BW_VOPD_OPS] = {
    BW_GFX11_V_FMAC_F32,
    BW_GFX11_V_FMAAK_F32,
    BW_GFX11_V_FMAMK_F32,
    BW_GFX11_V_MUL_F32,
    BW_GFX11_V_ADD_F32,
    BW_GFX11_V_SUB_F32,
    BW_GFX11_V_SUBREV_F32,
    BW_GFX11_V_MUL_DX9_ZERO_F32,
    BW_GFX11_V_MOV_B32,
    BW_GFX11_V_CNDMASK_B32,
    BW_GFX11_V_MAX_F32,
    BW_GFX11_V_MIN_F32,
    BW_GFX11_V_DOT2ACC_F32_F16,
    BW_NO_OP,
    BW_NO_OP,
    BW_NO_OP,
    BW_GFX11_V_ADD_NC_U32,
    BW_GFX11_V_LSHLREV_B32,
    BW_GFX11_V_AND_B32,
};

const struct bw_generation bw_gfx11 = {
    .ops = bw_gfx11_ops, .lookup = lookup, .vopd = vopd, .is_gfx12 = false};
