/* The operation table of gfx12 as data; the rows are in gfx12_ops.def. */
#include "mock/isa/decode.h"
#define OP_ID(identifier) BW_GFX12_##identifier
#include "mock/isa/op_rows.h"

const struct bw_gfx11_op_row bw_gfx12_ops[BW_GFX12_OP_COUNT] = {
#include "mock/isa/gfx12_ops.def"
};
#undef OP

/* Operation + 1 by format and opcode, 0 where there is none. */
#define OP(identifier, mnemonic, format, opcode, ...) [AT_##format + opcode] = BW_GFX12_##identifier + 1,
static const uint16_t lookup[AT_END] = {
#include "mock/isa/gfx12_ops.def"
};
#undef OP

/* VOPD has opcodes of its own for the ordinary operations (RDNA4 ISA document, table "VOPD opcodes"). */
static const uint16_t vopd[BW_VOPD_OPS] = {
    BW_GFX12_V_FMAC_F32,
    BW_GFX12_V_FMAAK_F32,
    BW_GFX12_V_FMAMK_F32,
    BW_GFX12_V_MUL_F32,
    BW_GFX12_V_ADD_F32,
    BW_GFX12_V_SUB_F32,
    BW_GFX12_V_SUBREV_F32,
    BW_GFX12_V_MUL_DX9_ZERO_F32,
    BW_GFX12_V_MOV_B32,
    BW_GFX12_V_CNDMASK_B32,
    BW_GFX12_V_MAX_NUM_F32,
    BW_GFX12_V_MIN_NUM_F32,
    BW_NO_OP,
    BW_NO_OP,
    BW_NO_OP,
    BW_NO_OP,
    BW_GFX12_V_ADD_NC_U32,
    BW_GFX12_V_LSHLREV_B32,
    BW_GFX12_V_AND_B32,
};

const struct bw_generation bw_gfx12 = {.ops = bw_gfx12_ops, .lookup = lookup, .vopd = vopd, .is_gfx12 = true};
