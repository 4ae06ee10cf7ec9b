/* Vector integer operations on 64-bit lanes, which are pairs of registers: RDNA3 Shader ISA document,
 * sections 16.9, 16.12. */
#include "mock/isa/exec_vec.h"

/* Plain loops over the lanes: the compiler turns them into vectors of its own. */
#define EACH_LANE for (int lane = 0; lane < BW_LANES; lane++)

static inline void read_wide(const struct bw_wave *wave, int32_t offset, uint64_t *value)
{
    const uint32_t *low = BW_AT(const uint32_t, wave, offset), *high = low + BW_LANES;
    EACH_LANE value[lane] = (uint64_t)high[lane] << 32 | low[lane];
}

static inline void write_wide(struct bw_wave *wave, int32_t offset, uint32_t exec, const uint64_t *value)
{
    uint32_t low[BW_LANES] __attribute__((aligned(64))), high[BW_LANES] __attribute__((aligned(64)));
    EACH_LANE low[lane] = (uint32_t)value[lane];
    EACH_LANE high[lane] = (uint32_t)(value[lane] >> 32);
    write_lanes(wave, offset, exec, (const vu *)(const void *)low);
    write_lanes(wave, offset + BW_VREG_BYTES, exec, (const vu *)(const void *)high);
}

/* Shift counts come from 32-bit lanes. */
#define SHIFT(op, expression)                                        \
    HANDLER(x_##op)                                                  \
    {                                                                \
        const uint32_t *count = BW_AT(const uint32_t, wave, uop->a); \
        uint64_t value[BW_LANES], r[BW_LANES];                       \
        read_wide(wave, uop->b, value);                              \
        EACH_LANE                                                    \
        {                                                            \
            uint64_t v = value[lane], n = count[lane] & 63;          \
            r[lane] = (expression);                                  \
        }                                                            \
        write_wide(wave, uop->d, exec_of(wave, uop), r);             \
        NEXT;                                                        \
    }
SHIFT(V_LSHLREV_B64, v << n)
SHIFT(V_LSHRREV_B64, v >> n)
SHIFT(V_ASHRREV_I64, (uint64_t)((int64_t)v >> n))

/* d = a * b + c; the 65th bit of the sum goes to the mask at e. */
HANDLER(x_V_MAD_U64_U32)
{
    const uint32_t *A = BW_AT(const uint32_t, wave, uop->a), *B = BW_AT(const uint32_t, wave, uop->b);
    uint64_t c[BW_LANES], r[BW_LANES];
    uint32_t exec = exec_of(wave, uop), carry[BW_LANES], mask = 0;
    read_wide(wave, uop->c, c);
    EACH_LANE r[lane] = (uint64_t)A[lane] * B[lane] + c[lane];
    EACH_LANE carry[lane] = r[lane] < c[lane] ? ~0u : 0;
    EACH_CHUNK mask |= bits_of(((const vi *)(const void *)carry)[i]) << (BW_CHUNK_LANES * i);
    write_wide(wave, uop->d, exec, r);
    write_scalar(wave, uop->e, mask & exec);
    NEXT;
}

HANDLER(x_V_MAD_I64_I32)
{
    const int32_t *A = BW_AT(const int32_t, wave, uop->a), *B = BW_AT(const int32_t, wave, uop->b);
    uint64_t c[BW_LANES], r[BW_LANES];
    uint32_t exec = exec_of(wave, uop), mask = 0;
    read_wide(wave, uop->c, c);
    EACH_LANE
    {
        __int128 sum = (__int128)((int64_t)A[lane] * B[lane]) + (int64_t)c[lane];
        r[lane] = (uint64_t)sum;
        mask |= (uint32_t)(sum >> 64 & 1) << lane;
    }
    write_wide(wave, uop->d, exec, r);
    write_scalar(wave, uop->e, mask & exec);
    NEXT;
}

#define CONDITIONS(_, type, c_type) \
    _(LT, type, c_type, a < b)      \
    _(EQ, type, c_type, a == b)     \
    _(LE, type, c_type, a <= b)     \
    _(GT, type, c_type, a > b) _(NE, type, c_type, a != b) _(GE, type, c_type, a >= b)

#define DEFINE(condition, type, c_type, ...)                                                     \
    HANDLER(x_V_CMP_##condition##_##type)                                                        \
    {                                                                                            \
        uint64_t left[BW_LANES], right[BW_LANES];                                                \
        uint32_t bits[BW_LANES] __attribute__((aligned(64))), mask = 0;                          \
        read_wide(wave, uop->a, left);                                                           \
        read_wide(wave, uop->b, right);                                                          \
        EACH_LANE                                                                                \
        {                                                                                        \
            c_type a = (c_type)left[lane], b = (c_type)right[lane];                              \
            bits[lane] = (__VA_ARGS__) ? ~0u : 0;                                                \
        }                                                                                        \
        EACH_CHUNK mask |= bits_of(((const vi *)(const void *)bits)[i]) << (BW_CHUNK_LANES * i); \
        write_scalar(wave, uop->d, mask &exec_of(wave, uop));                                    \
        NEXT;                                                                                    \
    }
CONDITIONS(DEFINE, I64, int64_t)
CONDITIONS(DEFINE, U64, uint64_t)

#define R(op)                   {BW_GFX11_##op, x_##op},
#define C(condition, type, ...) R(V_CMP_##condition##_##type)
/* clang-format off */
static const struct bw_uop_row rows[] = {
    R(V_LSHLREV_B64) R(V_LSHRREV_B64) R(V_ASHRREV_I64) R(V_MAD_U64_U32) R(V_MAD_I64_I32) CONDITIONS(C, I64,
    ) CONDITIONS(C, U64, )
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_wide) = {rows, sizeof rows / sizeof rows[0]};
