/* The words in which the rows of *_ops.def are written, for the tables that include them, which define OP_ID
 * first; nobody else. */
#ifndef BW_MOCK_ISA_OP_ROWS_H
#define BW_MOCK_ISA_OP_ROWS_H

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

/* OP_ID(identifier): the table's own number of it. */
#define OP(identifier, mnemonic, format_name, opcode_value, dst_row, src0, src1, src2, flag_bits, label) \
    [OP_ID(identifier)] = {.name = mnemonic,                                                             \
                           .format = BW_GFX11_##format_name,                                             \
                           .opcode = opcode_value,                                                       \
                           .dst = dst_row,                                                               \
                           .src = {src0, src1, src2},                                                    \
                           .flags = flag_bits,                                                           \
                           .fidelity = label},

#endif
