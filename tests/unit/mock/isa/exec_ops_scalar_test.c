/* Goal: each scalar operation agrees with what the RDNA3 ISA document says of it, written here once more in
 * plain C: result and SCC, on corner cases and random operands. */
#include "tests/check.h"

#include "tests/unit/mock/isa/exec_ops.h"

enum { A_SGPR = 16, B_SGPR = 18, D_SGPR = 20, RESULT_AT = 128, ROUNDS = 200, K_IMMEDIATE = 0x8123 };

struct scalar_values {
    uint64_t a, b, d; /* d: what the destination held */
    bool scc;
};

typedef uint64_t (*scalar_reference)(struct scalar_values *v);

#define OP(name, ...)                                                        \
    static uint64_t ref_##name(struct scalar_values *v)                      \
    {                                                                        \
        uint32_t a = (uint32_t)v->a, b = (uint32_t)v->b, r = (uint32_t)v->d; \
        int32_t ia = (int32_t)a, ib = (int32_t)b;                            \
        (void)a, (void)b, (void)ia, (void)ib;                                \
        __VA_ARGS__;                                                         \
        return (v->d & ~0xffffffffull) | r;                                  \
    }
#define OP64(name, ...)                                 \
    static uint64_t ref_##name(struct scalar_values *v) \
    {                                                   \
        uint64_t a = v->a, b = v->b, r = v->d;          \
        (void)a, (void)b;                               \
        __VA_ARGS__;                                    \
        return r;                                       \
    }
/* 64-bit source, 32-bit result. */
#define OP32_64(name, ...)                              \
    static uint64_t ref_##name(struct scalar_values *v) \
    {                                                   \
        uint64_t a = v->a;                              \
        uint32_t r = 0;                                 \
        __VA_ARGS__;                                    \
        return (v->d & ~0xffffffffull) | r;             \
    }
#define COMPARE(name, condition) OP(name, v->scc = (condition))

static uint64_t field(uint64_t value, unsigned low, unsigned count)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < count && low + i < 64; i++)
        r |= (value >> (low + i) & 1) << i;
    return r;
}

static uint64_t extended(uint64_t value, unsigned bits)
{
    if (bits == 0)
        return 0;
    return bits < 64 && (value >> (bits - 1) & 1) ? value | ~0ull << bits : value;
}

static unsigned bits_set(uint64_t value, unsigned width, bool wanted)
{
    unsigned n = 0;
    for (unsigned i = 0; i < width; i++)
        n += (value >> i & 1) == wanted;
    return n;
}

static uint32_t first_bit(uint64_t value, unsigned width, bool from_top)
{
    for (unsigned i = 0; i < width; i++) {
        if (value >> (from_top ? width - 1 - i : i) & 1)
            return i;
    }
    return ~0u;
}

static uint32_t sign_bits(uint64_t value, unsigned width)
{
    for (unsigned i = 1; i < width; i++) {
        if ((value >> (width - 1 - i) & 1) != (value >> (width - 1) & 1))
            return i;
    }
    return ~0u;
}

static uint64_t reversed(uint64_t value, unsigned width)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < width; i++)
        r |= (value >> i & 1) << (width - 1 - i);
    return r;
}

static uint64_t quads(uint64_t value, unsigned width, bool whole)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < width; i += 4) {
        bool any = value >> i & 15;
        r |= whole ? (uint64_t)(any ? 15 : 0) << i : (uint64_t)any << (i / 4);
    }
    return r;
}

OP(S_MOV_B32, r = a)
OP64(S_MOV_B64, r = a)
OP(S_CMOV_B32, r = v->scc ? a : r)
OP64(S_CMOV_B64, r = v->scc ? a : r)
OP(S_BREV_B32, r = (uint32_t)reversed(a, 32))
OP64(S_BREV_B64, r = reversed(a, 64))
OP(S_CTZ_I32_B32, r = first_bit(a, 32, false))
OP32_64(S_CTZ_I32_B64, r = first_bit(a, 64, false))
OP(S_CLZ_I32_U32, r = first_bit(a, 32, true))
OP32_64(S_CLZ_I32_U64, r = first_bit(a, 64, true))
OP(S_CLS_I32, r = sign_bits(a, 32))
OP32_64(S_CLS_I32_I64, r = sign_bits(a, 64))
OP(S_SEXT_I32_I8, r = (uint32_t)(int8_t)a)
OP(S_SEXT_I32_I16, r = (uint32_t)(int16_t)a)
OP(S_BITSET0_B32, r &= ~(1u << (a % 32)))
OP64(S_BITSET0_B64, r &= ~(1ull << (a % 64)))
OP(S_BITSET1_B32, r |= 1u << (a % 32))
OP64(S_BITSET1_B64, r |= 1ull << (a % 64))
OP64(S_BITREPLICATE_B64_B32, r = 0; for (unsigned i = 0; i < 32; i++) r |= (a >> i & 1) * 3 << (2 * i))
OP(S_ABS_I32, r = ia < 0 ? 0 - a : a; v->scc = r != 0)
OP(S_BCNT0_I32_B32, r = bits_set(a, 32, false); v->scc = r != 0)
OP32_64(S_BCNT0_I32_B64, r = bits_set(a, 64, false); v->scc = r != 0)
OP(S_BCNT1_I32_B32, r = bits_set(a, 32, true); v->scc = r != 0)
OP32_64(S_BCNT1_I32_B64, r = bits_set(a, 64, true); v->scc = r != 0)
OP(S_QUADMASK_B32, r = (uint32_t)quads(a, 32, false); v->scc = r != 0)
OP64(S_QUADMASK_B64, r = quads(a, 64, false); v->scc = r != 0)
OP(S_WQM_B32, r = (uint32_t)quads(a, 32, true); v->scc = r != 0)
OP64(S_WQM_B64, r = quads(a, 64, true); v->scc = r != 0)
OP(S_NOT_B32, r = ~a; v->scc = r != 0)
OP64(S_NOT_B64, r = ~a; v->scc = r != 0)
OP(S_ADD_U32, r = a + b; v->scc = (uint64_t)a + b > 0xffffffffu)
OP(S_SUB_U32, r = a - b; v->scc = b > a)
OP(S_ADD_I32, r = a + b; v->scc = (int64_t)ia + ib != (int32_t)r)
OP(S_SUB_I32, r = a - b; v->scc = (int64_t)ia - ib != (int32_t)r)
OP(S_ADDC_U32, uint64_t s = (uint64_t)a + b + v->scc; r = (uint32_t)s; v->scc = s > 0xffffffffu)
OP(S_SUBB_U32, r = a - b - v->scc; v->scc = (uint64_t)b + v->scc > a)
OP(S_ABSDIFF_I32, r = a - b; r = (int32_t)r < 0 ? 0 - r : r; v->scc = r != 0)
OP(S_LSHL_B32, r = a << (b % 32); v->scc = r != 0)
OP64(S_LSHL_B64, r = a << (b % 64); v->scc = r != 0)
OP(S_LSHR_B32, r = a >> (b % 32); v->scc = r != 0)
OP64(S_LSHR_B64, r = a >> (b % 64); v->scc = r != 0)
OP(S_ASHR_I32, r = (uint32_t)(ia >> (b % 32)); v->scc = r != 0)
OP64(S_ASHR_I64, r = (uint64_t)((int64_t)a >> (b % 64)); v->scc = r != 0)
#define SHIFT_ADD(n) \
    OP(S_LSHL##n##_ADD_U32, uint64_t s = ((uint64_t)a << n) + b; r = (uint32_t)s; v->scc = s > 0xffffffffu)
SHIFT_ADD(1)
SHIFT_ADD(2)
SHIFT_ADD(3)
SHIFT_ADD(4)
OP(S_MIN_I32, v->scc = ia < ib; r = ia < ib ? a : b)
OP(S_MIN_U32, v->scc = a < b; r = a < b ? a : b)
OP(S_MAX_I32, v->scc = ia >= ib; r = ia >= ib ? a : b)
OP(S_MAX_U32, v->scc = a >= b; r = a >= b ? a : b)
#define LOGIC(name, expression)                           \
    OP(S_##name##_B32, r = (expression); v->scc = r != 0) \
    OP64(S_##name##_B64, r = (expression); v->scc = r != 0)
LOGIC(AND, a &b)
LOGIC(OR, a | b)
LOGIC(XOR, a ^ b)
LOGIC(NAND, ~(a &b))
LOGIC(NOR, ~(a | b))
LOGIC(XNOR, ~(a ^ b))
LOGIC(AND_NOT1, a & ~b)
LOGIC(OR_NOT1, a | ~b)
OP(S_BFE_U32, r = (uint32_t)field(a, b % 32, b >> 16 & 127); v->scc = r != 0)
OP(S_BFE_I32, unsigned n = b >> 16 & 127;
   r = (uint32_t)extended(field((uint32_t)(ia >> (b % 32)), 0, n < 32 ? n : 32), n < 32 ? n : 32);
   v->scc = r != 0)
OP64(S_BFE_U64, r = field(a, b % 64, b >> 16 & 127); v->scc = r != 0)
OP64(S_BFE_I64, unsigned n = b >> 16 & 127;
     r = extended(field((uint64_t)((int64_t)a >> (b % 64)), 0, n), n < 64 ? n : 64); v->scc = r != 0)
OP(S_BFM_B32, r = (uint32_t)(((1ull << (a % 32)) - 1) << (b % 32)))
OP64(S_BFM_B64, r = (a % 64 ? ~0ull >> (64 - a % 64) : 0) << (b % 64))
OP(S_MUL_I32, r = (uint32_t)((uint64_t)a * b))
OP(S_MUL_HI_U32, r = (uint32_t)((uint64_t)a * b >> 32))
OP(S_MUL_HI_I32, r = (uint32_t)((int64_t)ia * ib >> 32))
OP(S_CSELECT_B32, r = v->scc ? a : b)
OP64(S_CSELECT_B64, r = v->scc ? a : b)
OP(S_PACK_LL_B32_B16, r = (a & 0xffff) | b << 16)
OP(S_PACK_LH_B32_B16, r = (a & 0xffff) | (b >> 16) << 16)
OP(S_PACK_HH_B32_B16, r = a >> 16 | (b >> 16) << 16)
OP(S_PACK_HL_B32_B16, r = a >> 16 | b << 16)
COMPARE(S_CMP_EQ_I32, a == b)
COMPARE(S_CMP_LG_I32, a != b)
COMPARE(S_CMP_GT_I32, ia > ib)
COMPARE(S_CMP_GE_I32, ia >= ib)
COMPARE(S_CMP_LT_I32, ia < ib)
COMPARE(S_CMP_LE_I32, ia <= ib)
COMPARE(S_CMP_EQ_U32, a == b)
COMPARE(S_CMP_LG_U32, a != b)
COMPARE(S_CMP_GT_U32, a > b)
COMPARE(S_CMP_GE_U32, a >= b)
COMPARE(S_CMP_LT_U32, a < b)
COMPARE(S_CMP_LE_U32, a <= b)
COMPARE(S_BITCMP0_B32, !(a >> (b % 32) & 1))
COMPARE(S_BITCMP1_B32, a >> (b % 32) & 1)
OP64(S_BITCMP0_B64, v->scc = !(a >> (b % 64) & 1))
OP64(S_BITCMP1_B64, v->scc = a >> (b % 64) & 1)
OP64(S_CMP_EQ_U64, v->scc = a == b)
OP64(S_CMP_LG_U64, v->scc = a != b)
/* SOPK: the destination register and a 16-bit constant, sign-extended unless the comparison is unsigned. */
#define K_SIGNED   ((int32_t)(int16_t)K_IMMEDIATE)
#define K_UNSIGNED ((uint32_t)K_IMMEDIATE)
OP(S_MOVK_I32, r = (uint32_t)K_SIGNED)
OP(S_CMOVK_I32, r = v->scc ? (uint32_t)K_SIGNED : r)
OP(S_CMPK_EQ_I32, v->scc = (int32_t)r == K_SIGNED)
OP(S_CMPK_LG_I32, v->scc = (int32_t)r != K_SIGNED)
OP(S_CMPK_GT_I32, v->scc = (int32_t)r > K_SIGNED)
OP(S_CMPK_GE_I32, v->scc = (int32_t)r >= K_SIGNED)
OP(S_CMPK_LT_I32, v->scc = (int32_t)r < K_SIGNED)
OP(S_CMPK_LE_I32, v->scc = (int32_t)r <= K_SIGNED)
OP(S_CMPK_EQ_U32, v->scc = r == K_UNSIGNED)
OP(S_CMPK_LG_U32, v->scc = r != K_UNSIGNED)
OP(S_CMPK_GT_U32, v->scc = r > K_UNSIGNED)
OP(S_CMPK_GE_U32, v->scc = r >= K_UNSIGNED)
OP(S_CMPK_LT_U32, v->scc = r < K_UNSIGNED)
OP(S_CMPK_LE_U32, v->scc = r <= K_UNSIGNED)
OP(S_ADDK_I32, int64_t s = (int64_t)(int32_t)r + K_SIGNED; r = (uint32_t)s; v->scc = s != (int32_t)r)
OP(S_MULK_I32, r = (uint32_t)((int64_t)(int32_t)r * K_SIGNED))

static const struct {
    uint16_t op;
    scalar_reference reference;
} cases[] = {
#define C(name) {BW_GFX11_##name, ref_##name},
    /* clang-format off */
    C(S_MOV_B32) C(S_MOV_B64) C(S_CMOV_B32) C(S_CMOV_B64) C(S_BREV_B32) C(S_BREV_B64) C(S_CTZ_I32_B32) C(S_CTZ_I32_B64)
    C(S_CLZ_I32_U32) C(S_CLZ_I32_U64) C(S_CLS_I32) C(S_CLS_I32_I64) C(S_SEXT_I32_I8) C(S_SEXT_I32_I16) C(S_BITSET0_B32)
    C(S_BITSET0_B64) C(S_BITSET1_B32) C(S_BITSET1_B64) C(S_BITREPLICATE_B64_B32) C(S_ABS_I32) C(S_BCNT0_I32_B32)
    C(S_BCNT0_I32_B64) C(S_BCNT1_I32_B32) C(S_BCNT1_I32_B64) C(S_QUADMASK_B32) C(S_QUADMASK_B64) C(S_WQM_B32)
    C(S_WQM_B64) C(S_NOT_B32) C(S_NOT_B64) C(S_ADD_U32) C(S_SUB_U32) C(S_ADD_I32) C(S_SUB_I32) C(S_ADDC_U32)
    C(S_SUBB_U32) C(S_ABSDIFF_I32) C(S_LSHL_B32) C(S_LSHL_B64) C(S_LSHR_B32) C(S_LSHR_B64) C(S_ASHR_I32) C(S_ASHR_I64)
    C(S_LSHL1_ADD_U32) C(S_LSHL2_ADD_U32) C(S_LSHL3_ADD_U32) C(S_LSHL4_ADD_U32) C(S_MIN_I32) C(S_MIN_U32) C(S_MAX_I32)
    C(S_MAX_U32) C(S_AND_B32) C(S_AND_B64) C(S_OR_B32) C(S_OR_B64) C(S_XOR_B32) C(S_XOR_B64) C(S_NAND_B32)
    C(S_NAND_B64) C(S_NOR_B32) C(S_NOR_B64) C(S_XNOR_B32) C(S_XNOR_B64) C(S_AND_NOT1_B32) C(S_AND_NOT1_B64)
    C(S_OR_NOT1_B32) C(S_OR_NOT1_B64) C(S_BFE_U32) C(S_BFE_I32) C(S_BFE_U64) C(S_BFE_I64) C(S_BFM_B32) C(S_BFM_B64)
    C(S_MUL_I32) C(S_MUL_HI_U32) C(S_MUL_HI_I32) C(S_CSELECT_B32) C(S_CSELECT_B64) C(S_PACK_LL_B32_B16)
    C(S_PACK_LH_B32_B16) C(S_PACK_HH_B32_B16) C(S_PACK_HL_B32_B16) C(S_CMP_EQ_I32) C(S_CMP_LG_I32) C(S_CMP_GT_I32)
    C(S_CMP_GE_I32) C(S_CMP_LT_I32) C(S_CMP_LE_I32) C(S_CMP_EQ_U32) C(S_CMP_LG_U32) C(S_CMP_GT_U32) C(S_CMP_GE_U32)
    C(S_CMP_LT_U32) C(S_CMP_LE_U32) C(S_BITCMP0_B32) C(S_BITCMP1_B32) C(S_BITCMP0_B64) C(S_BITCMP1_B64) C(S_CMP_EQ_U64)
    C(S_CMP_LG_U64) C(S_MOVK_I32) C(S_CMOVK_I32) C(S_CMPK_EQ_I32) C(S_CMPK_LG_I32) C(S_CMPK_GT_I32) C(S_CMPK_GE_I32)
    C(S_CMPK_LT_I32) C(S_CMPK_LE_I32) C(S_CMPK_EQ_U32) C(S_CMPK_LG_U32) C(S_CMPK_GT_U32) C(S_CMPK_GE_U32)
    C(S_CMPK_LT_U32) C(S_CMPK_LE_U32) C(S_ADDK_I32) C(S_MULK_I32)
    /* clang-format on */
};

static uint32_t encode(const struct bw_gfx11_op_row *row)
{
    switch (row->format) {
    case BW_GFX11_SOP1:
        return 0xbe800000u | D_SGPR << 16 | (uint32_t)row->opcode << 8 | A_SGPR;
    case BW_GFX11_SOP2:
        return 0x80000000u | (uint32_t)row->opcode << 23 | D_SGPR << 16 | B_SGPR << 8 | A_SGPR;
    case BW_GFX11_SOPC:
        return 0xbf000000u | (uint32_t)row->opcode << 16 | B_SGPR << 8 | A_SGPR;
    default:
        return 0xb0000000u | (uint32_t)row->opcode << 23 | D_SGPR << 16 | K_IMMEDIATE;
    }
}

static void put_code(struct exec_machine *machine, uint32_t word)
{
    const uint32_t code[] = {
        0xf4100400, 0xf8000000, /* s_load_b512 s[16:31], s[0:1], null */
        0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
        0xbf078016,             /* s_cmp_lg_u32 s22, 0 */
        word,       0x98178081, /* s_cselect_b32 s23, 1, 0 */
        0x7e000280,             /* v_mov_b32_e32 v0, 0 */
        0x7e020214,             /* v_mov_b32_e32 v1, s20 */
        0x7e040215,             /* v_mov_b32_e32 v2, s21 */
        0x7e060217,             /* v_mov_b32_e32 v3, s23 */
        0xdc720080, 0x00000100, /* global_store_b96 v0, v[1:3], s[0:1] offset:128 */
        0xbfb00000,             /* s_endpgm */
    };
    exec_put_code(machine, code, sizeof code);
}

static bool check_case(struct exec_machine *machine, size_t index)
{
    const struct bw_gfx11_op_row *row = &bw_gfx11_ops[cases[index].op];
    struct bw_rng rng = {.state = index};
    put_code(machine, encode(row));
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct scalar_values v = {ops_value(&rng, "int"), ops_value(&rng, "int"), ops_value(&rng, "int"),
                                  round & 1},
                             was = v;
        uint64_t arguments[4] = {v.a, v.b, v.d, v.scc}, observed = 0;
        uint32_t scc = 0;
        memcpy(machine->memory + EXEC_ARGS, arguments, sizeof arguments);
        bool done = exec_run(machine) == BW_ISA_DONE;
        uint64_t expected = cases[index].reference(&v);
        memcpy(&observed, machine->memory + EXEC_ARGS + RESULT_AT, 8);
        memcpy(&scc, machine->memory + EXEC_ARGS + RESULT_AT + 8, 4);
        if (done && observed == expected && scc == v.scc)
            continue;
        printf("\n    %s: a %llx, b %llx, d %llx, scc %d: expected %llx %d, observed %llx %u, %s", row->name,
               (unsigned long long)was.a, (unsigned long long)was.b, (unsigned long long)was.d, was.scc,
               (unsigned long long)expected, v.scc, (unsigned long long)observed, scc, machine->result.text);
        return false;
    }
    return true;
}

static void test_scalar(void)
{
    struct exec_machine machine;
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (BW_TRUE(check_case(&machine, i)))
            ops_prove(cases[i].op);
    }
    exec_machine_free(&machine);
}

OPS_TEST_MAIN("isa exec scalar", {"scalar operations agree with the ISA document", test_scalar})
