/* Types and constants of operands. */
#include "mock/isa/inst.h"

#include <assert.h>

static bool is_half_type(uint8_t type)
{
    return type == BW_T_B16 || type == BW_T_F16 || type == BW_T_BF16;
}

unsigned bw_gfx11_type_dwords(enum bw_gfx11_type type)
{
    switch (type) {
    case BW_T_NONE:
        return 0;
    case BW_T_B64:
    case BW_T_I64:
    case BW_T_F64:
        return 2;
    case BW_T_B96:
        return 3;
    case BW_T_B128:
        return 4;
    case BW_T_B256:
        return 8;
    case BW_T_B512:
        return 16;
    case BW_T_B1024:
        return 32;
    default:
        return 1;
    }
}

unsigned bw_gfx11_type_bits(enum bw_gfx11_type type)
{
    return is_half_type((uint8_t)type) ? 16 : 32 * bw_gfx11_type_dwords(type);
}

/* Inline floats 240..248: 0.5, -0.5, 1, -1, 2, -2, 4, -4, 1/(2 pi). RDNA3 ISA document, table "Scalar
 * operands". */
static uint64_t inline_float(uint8_t type, unsigned code)
{
    static const uint16_t f16[] = {0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118};
    static const uint16_t bf16[] = {0x3f00, 0xbf00, 0x3f80, 0xbf80, 0x4000, 0xc000, 0x4080, 0xc080, 0x3e22};
    static const uint32_t f32[] = {0x3f000000, 0xbf000000, 0x3f800000, 0xbf800000, 0x40000000,
                                   0xc0000000, 0x40800000, 0xc0800000, 0x3e22f983};
    static const uint64_t f64[] = {0x3fe0000000000000, 0xbfe0000000000000, 0x3ff0000000000000,
                                   0xbff0000000000000, 0x4000000000000000, 0xc000000000000000,
                                   0x4010000000000000, 0xc010000000000000, 0x3fc45f306dc9c882};
    assert(code >= 240 && code <= 248);
    switch (type) {
    case BW_T_F16:
    case BW_T_B16:
    case BW_T_V2F16:
        return f16[code - 240];
    case BW_T_BF16:
    case BW_T_V2BF16:
        return bf16[code - 240];
    case BW_T_F64:
    case BW_T_B64:
    case BW_T_I64:
        return f64[code - 240];
    default:
        return f32[code - 240];
    }
}

uint64_t bw_gfx11_constant(const struct bw_inst *inst, const struct bw_operand *operand)
{
    uint64_t wide = 0;
    switch (operand->kind) {
    case BW_OPERAND_INT:
        wide = (uint64_t)(int64_t)(int16_t)operand->index;
        break;
    case BW_OPERAND_FLOAT:
        return inline_float(operand->type, operand->index);
    case BW_OPERAND_LITERAL:
        wide = operand->type == BW_T_F64   ? (uint64_t)inst->literal << 32
               : operand->type == BW_T_I64 ? (uint64_t)(int64_t)(int32_t)inst->literal
                                           : inst->literal;
        break;
    case BW_OPERAND_IMM:
        return operand->index;
    default:
        assert(!"not a constant");
    }
    if (is_half_type(operand->type))
        return wide & 0xffff;
    return operand->dwords == 2 ? wide : wide & 0xffffffff;
}
