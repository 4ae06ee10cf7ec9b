/* The operation table of gfx11 as data; the rows are in gfx11_ops.def. */
#include "mock/isa/inst.h"

#define F(flag) BW_GFX11_F_##flag
#define A(type)                   \
    {                             \
        BW_CLASS_ANY, BW_T_##type \
    }
#define V(type)                    \
    {                              \
        BW_CLASS_VGPR, BW_T_##type \
    }
#define S(type)                      \
    {                                \
        BW_CLASS_SCALAR, BW_T_##type \
    }
#define C(type)                              \
    {                                        \
        BW_CLASS_VGPR_OR_INLINE, BW_T_##type \
    }
#define R(type)                        \
    {                                  \
        BW_CLASS_REGISTER, BW_T_##type \
    }
#define K(type)                 \
    {                           \
        BW_CLASS_K, BW_T_##type \
    }
#define I(kind)                   \
    {                             \
        BW_CLASS_IMM, BW_T_##kind \
    }
#define O                        \
    {                            \
        BW_CLASS_NONE, BW_T_NONE \
    }
#define OP(identifier, mnemonic, format_name, opcode_value, dst_row, src0, src1, src2, flag_bits, label) \
    [BW_GFX11_##identifier] = {.name = mnemonic,                                                         \
                               .format = BW_GFX11_##format_name,                                         \
                               .opcode = opcode_value,                                                   \
                               .dst = dst_row,                                                           \
                               .src = {src0, src1, src2},                                                \
                               .flags = flag_bits,                                                       \
                               .fidelity = label},

const struct bw_gfx11_op_row bw_gfx11_ops[BW_GFX11_OP_COUNT] = {
#include "mock/isa/gfx11_ops.def"
};
