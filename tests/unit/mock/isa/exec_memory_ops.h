/* What each element operation of memory and LDS does, from the pseudocode of section 16 and chapter 13 "Float
 * memory atomics" of the RDNA3 ISA document, and the rows of the operation table that do it. */
#ifndef BW_TESTS_EXEC_MEMORY_OPS_H
#define BW_TESTS_EXEC_MEMORY_OPS_H

#include "tests/unit/mock/isa/exec_memory.h"

enum mem_kind { MEM_LOAD, MEM_STORE, MEM_ATOMIC };

/* Which denormals a float atomic flushes. LDS takes both bits of MODE, memory only that of the inputs, and
 * for its addition flushes inputs whatever MODE says (section 13.2). */
struct mem_flush {
    bool input, output;
};

struct mem_op {
    const char *name;
    uint8_t kind, bytes;
    bool from_high;     /* stores from the high half of the register */
    const char *values; /* what operands of an atomic look like: "int", "f32", "f64" */
    void (*load)(const uint8_t *memory, uint32_t *d);
    uint64_t (*atomic)(uint64_t memory, uint64_t data, uint64_t data2, struct mem_flush flush);
    uint16_t ds, ds_return, flat, buffer; /* enum bw_gfx11_op; 0: there is none */
};

static inline uint16_t mem_16(const uint8_t *memory)
{
    return (uint16_t)(memory[0] | memory[1] << 8);
}

static inline uint32_t mem_32(const uint8_t *memory)
{
    return mem_16(memory) | (uint32_t)mem_16(memory + 2) << 16;
}

#define MEM_LOADS(_)                                                                 \
    _(U8, 1, d[0] = m[0])                                                            \
    _(I8, 1, d[0] = (uint32_t)(int8_t)m[0])                                          \
    _(U16, 2, d[0] = mem_16(m))                                                      \
    _(I16, 2, d[0] = (uint32_t)(int16_t)mem_16(m))                                   \
    _(B32, 4, d[0] = mem_32(m))                                                      \
    _(B64, 8, d[0] = mem_32(m); d[1] = mem_32(m + 4))                                \
    _(B96, 12, for (int i = 0; i < 3; i++) d[i] = mem_32(m + 4 * i))                 \
    _(B128, 16, for (int i = 0; i < 4; i++) d[i] = mem_32(m + 4 * i))                \
    _(D16_U8, 1, d[0] = (d[0] & 0xffff0000) | m[0])                                  \
    _(D16_I8, 1, d[0] = (d[0] & 0xffff0000) | (uint16_t)(int8_t)m[0])                \
    _(D16_B16, 2, d[0] = (d[0] & 0xffff0000) | mem_16(m))                            \
    _(D16_HI_U8, 1, d[0] = (d[0] & 0xffff) | (uint32_t)m[0] << 16)                   \
    _(D16_HI_I8, 1, d[0] = (d[0] & 0xffff) | (uint32_t)(uint16_t)(int8_t)m[0] << 16) \
    _(D16_HI_B16, 2, d[0] = (d[0] & 0xffff) | (uint32_t)mem_16(m) << 16)

#define MEM_DEFINE_LOAD(name, bytes, ...)                             \
    static inline void mem_load_##name(const uint8_t *m, uint32_t *d) \
    {                                                                 \
        __VA_ARGS__;                                                  \
    }
MEM_LOADS(MEM_DEFINE_LOAD)

static inline float mem_f32(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, 4);
    return value;
}

/* One format of floats by its bits. */
struct mem_format {
    uint64_t sign, exponent, quiet;
};
#define MEM_F32                            \
    (struct mem_format)                    \
    {                                      \
        0x80000000, 0x7f800000, 0x00400000 \
    }
#define MEM_F64                                                             \
    (struct mem_format)                                                     \
    {                                                                       \
        0x8000000000000000ull, 0x7ff0000000000000ull, 0x0008000000000000ull \
    }

static inline bool mem_is_nan(struct mem_format f, uint64_t x)
{
    return (x & ~f.sign) > f.exponent;
}

static inline bool mem_is_signaling(struct mem_format f, uint64_t x)
{
    return mem_is_nan(f, x) && !(x & f.quiet);
}

static inline uint64_t mem_flushed(struct mem_format f, uint64_t x, bool flush)
{
    return flush && !(x & f.exponent) ? x & f.sign : x;
}

/* Greater numbers have greater ranks, -0 comes before +0. */
static inline uint64_t mem_rank(struct mem_format f, uint64_t x)
{
    return x & f.sign ? ~x & (f.sign | (f.sign - 1)) : x | f.sign;
}

/* The selection rules of section 13.3; flushing is only for the comparison. */
static inline uint64_t mem_select(struct mem_format f, uint64_t m, uint64_t a, bool want_greater, bool flush)
{
    if (mem_is_signaling(f, m))
        return m | f.quiet;
    if (mem_is_signaling(f, a))
        return a | f.quiet;
    if (mem_is_nan(f, m) || mem_is_nan(f, a))
        return mem_is_nan(f, m) ? a : m;
    uint64_t rank_m = mem_rank(f, mem_flushed(f, m, flush)), rank_a = mem_rank(f, mem_flushed(f, a, flush));
    return (want_greater ? rank_a > rank_m : rank_a < rank_m) ? a : m;
}

static inline uint64_t mem_compare_swap(struct mem_format f, uint64_t m, uint64_t a, uint64_t b, bool flush)
{
    uint64_t x = mem_flushed(f, m, flush), y = mem_flushed(f, b, flush);
    bool equal = !mem_is_nan(f, x) && !mem_is_nan(f, y) && (x == y || ((x | y) & ~f.sign) == 0);
    return equal ? mem_flushed(f, a, flush) : m;
}

static inline uint64_t mem_add_f32(uint64_t m, uint64_t a, struct mem_flush flush)
{
    float sum = mem_f32(mem_flushed(MEM_F32, m, flush.input)) + mem_f32(mem_flushed(MEM_F32, a, flush.input));
    uint32_t bits;
    memcpy(&bits, &sum, 4);
    return mem_flushed(MEM_F32, bits, flush.output);
}

/* An expression of m (memory) and a, b (data), i_m and i_a with sign. */
#define MEM_INTEGER_ATOMICS(_)          \
    _(SWAP, a)                          \
    _(CMPSWAP, m == b ? a : m)          \
    _(ADD, m + a)                       \
    _(SUB, m - a)                       \
    _(RSUB, a - m)                      \
    _(CSUB, m < a ? 0 : m - a)          \
    _(MIN_I, i_a < i_m ? a : m)         \
    _(MIN_U, a < m ? a : m)             \
    _(MAX_I, i_a >= i_m ? a : m)        \
    _(MAX_U, a >= m ? a : m)            \
    _(AND, m &a)                        \
    _(OR, m | a)                        \
    _(XOR, m ^ a)                       \
    _(INC, m >= a ? 0 : m + 1)          \
    _(DEC, m == 0 || m > a ? a : m - 1) \
    _(MSKOR, (m & ~a) | b)              \
    _(WRAP, m >= a ? m - a : m + b)

#define MEM_DEFINE_ATOMIC(name, expression)                                                                  \
    static inline uint64_t mem_atomic_##name##_32(uint64_t m_, uint64_t a_, uint64_t b_, struct mem_flush f) \
    {                                                                                                        \
        uint32_t m = (uint32_t)m_, a = (uint32_t)a_, b = (uint32_t)b_;                                       \
        int32_t i_m = (int32_t)m, i_a = (int32_t)a;                                                          \
        (void)m, (void)a, (void)b, (void)i_m, (void)i_a, (void)f;                                            \
        return (uint32_t)(expression);                                                                       \
    }                                                                                                        \
    static inline uint64_t mem_atomic_##name##_64(uint64_t m, uint64_t a, uint64_t b, struct mem_flush f)    \
    {                                                                                                        \
        int64_t i_m = (int64_t)m, i_a = (int64_t)a;                                                          \
        (void)m, (void)a, (void)b, (void)i_m, (void)i_a, (void)f;                                            \
        return expression;                                                                                   \
    }
MEM_INTEGER_ATOMICS(MEM_DEFINE_ATOMIC)

#define MEM_DEFINE_FLOAT(name, expression)                                                               \
    static inline uint64_t mem_atomic_##name(uint64_t m, uint64_t a, uint64_t b, struct mem_flush flush) \
    {                                                                                                    \
        (void)b, (void)flush;                                                                            \
        return expression;                                                                               \
    }
MEM_DEFINE_FLOAT(CMPSWAP_F32, mem_compare_swap(MEM_F32, (uint32_t)m, (uint32_t)a, (uint32_t)b, flush.input))
MEM_DEFINE_FLOAT(MIN_F32, mem_select(MEM_F32, (uint32_t)m, (uint32_t)a, false, flush.input))
MEM_DEFINE_FLOAT(MAX_F32, mem_select(MEM_F32, (uint32_t)m, (uint32_t)a, true, flush.input))
MEM_DEFINE_FLOAT(ADD_F32, mem_add_f32((uint32_t)m, (uint32_t)a, flush))
MEM_DEFINE_FLOAT(CMPSWAP_F64, mem_compare_swap(MEM_F64, m, a, b, flush.input))
MEM_DEFINE_FLOAT(MIN_F64, mem_select(MEM_F64, m, a, false, flush.input))
MEM_DEFINE_FLOAT(MAX_F64, mem_select(MEM_F64, m, a, true, flush.input))

/* clang-format off */
#define OP(name) BW_GFX11_##name
#define LOAD(element, size, ds_row, flat_row) \
    {"load " #element, MEM_LOAD, size, false, "int", mem_load_##element, NULL, \
     OP(DS_LOAD_##ds_row), 0, OP(FLAT_LOAD_##flat_row), OP(BUFFER_LOAD_##flat_row)}
#define STORE(name, size, high, ds_row, flat_row) \
    {"store " #name, MEM_STORE, size, high, "int", NULL, NULL, \
     OP(DS_STORE_##ds_row), 0, OP(FLAT_STORE_##flat_row), OP(BUFFER_STORE_##flat_row)}
/* of memory and LDS; of one of them */
#define BOTH(name, size, kind, function, ds_row, ds_return_row, row) \
    {name, MEM_ATOMIC, size, false, kind, NULL, mem_atomic_##function, \
     OP(DS_##ds_row), OP(DS_##ds_return_row), OP(FLAT_ATOMIC_##row), OP(BUFFER_ATOMIC_##row)}
#define IN_LDS(name, size, kind, function, ds_row, ds_return_row) \
    {name, MEM_ATOMIC, size, false, kind, NULL, mem_atomic_##function, ds_row, OP(DS_##ds_return_row), 0, 0}
#define IN_MEMORY(name, size, kind, function, row) \
    {name, MEM_ATOMIC, size, false, kind, NULL, mem_atomic_##function, \
     0, 0, OP(FLAT_ATOMIC_##row), OP(BUFFER_ATOMIC_##row)}
static const struct mem_op mem_ops[] = {
    LOAD(U8, 1, U8, U8), LOAD(I8, 1, I8, I8), LOAD(U16, 2, U16, U16), LOAD(I16, 2, I16, I16),
    LOAD(B32, 4, B32, B32), LOAD(B64, 8, B64, B64), LOAD(B96, 12, B96, B96), LOAD(B128, 16, B128, B128),
    LOAD(D16_U8, 1, U8_D16, D16_U8), LOAD(D16_I8, 1, I8_D16, D16_I8), LOAD(D16_B16, 2, U16_D16, D16_B16),
    LOAD(D16_HI_U8, 1, U8_D16_HI, D16_HI_U8), LOAD(D16_HI_I8, 1, I8_D16_HI, D16_HI_I8),
    LOAD(D16_HI_B16, 2, U16_D16_HI, D16_HI_B16),
    STORE(B8, 1, false, B8, B8), STORE(B16, 2, false, B16, B16), STORE(B32, 4, false, B32, B32),
    STORE(B64, 8, false, B64, B64), STORE(B96, 12, false, B96, B96), STORE(B128, 16, false, B128, B128),
    STORE(D16_HI_B8, 1, true, B8_D16_HI, D16_HI_B8), STORE(D16_HI_B16, 2, true, B16_D16_HI, D16_HI_B16),
    IN_MEMORY("swap b32", 4, "int", SWAP_32, SWAP_B32),
    IN_MEMORY("swap b64", 8, "int", SWAP_64, SWAP_B64),
    IN_LDS("storexchg b32", 4, "int", SWAP_32, 0, STOREXCHG_RTN_B32),
    IN_LDS("storexchg b64", 8, "int", SWAP_64, 0, STOREXCHG_RTN_B64),
    BOTH("cmpswap b32", 4, "int", CMPSWAP_32, CMPSTORE_B32, CMPSTORE_RTN_B32, CMPSWAP_B32),
    BOTH("cmpswap b64", 8, "int", CMPSWAP_64, CMPSTORE_B64, CMPSTORE_RTN_B64, CMPSWAP_B64),
    BOTH("add u32", 4, "int", ADD_32, ADD_U32, ADD_RTN_U32, ADD_U32),
    BOTH("add u64", 8, "int", ADD_64, ADD_U64, ADD_RTN_U64, ADD_U64),
    BOTH("sub u32", 4, "int", SUB_32, SUB_U32, SUB_RTN_U32, SUB_U32),
    BOTH("sub u64", 8, "int", SUB_64, SUB_U64, SUB_RTN_U64, SUB_U64),
    IN_MEMORY("csub u32", 4, "int", CSUB_32, CSUB_U32),
    IN_LDS("rsub u32", 4, "int", RSUB_32, OP(DS_RSUB_U32), RSUB_RTN_U32),
    IN_LDS("rsub u64", 8, "int", RSUB_64, OP(DS_RSUB_U64), RSUB_RTN_U64),
    BOTH("min i32", 4, "int", MIN_I_32, MIN_I32, MIN_RTN_I32, MIN_I32),
    BOTH("min i64", 8, "int", MIN_I_64, MIN_I64, MIN_RTN_I64, MIN_I64),
    BOTH("min u32", 4, "int", MIN_U_32, MIN_U32, MIN_RTN_U32, MIN_U32),
    BOTH("min u64", 8, "int", MIN_U_64, MIN_U64, MIN_RTN_U64, MIN_U64),
    BOTH("max i32", 4, "int", MAX_I_32, MAX_I32, MAX_RTN_I32, MAX_I32),
    BOTH("max i64", 8, "int", MAX_I_64, MAX_I64, MAX_RTN_I64, MAX_I64),
    BOTH("max u32", 4, "int", MAX_U_32, MAX_U32, MAX_RTN_U32, MAX_U32),
    BOTH("max u64", 8, "int", MAX_U_64, MAX_U64, MAX_RTN_U64, MAX_U64),
    BOTH("and b32", 4, "int", AND_32, AND_B32, AND_RTN_B32, AND_B32),
    BOTH("and b64", 8, "int", AND_64, AND_B64, AND_RTN_B64, AND_B64),
    BOTH("or b32", 4, "int", OR_32, OR_B32, OR_RTN_B32, OR_B32),
    BOTH("or b64", 8, "int", OR_64, OR_B64, OR_RTN_B64, OR_B64),
    BOTH("xor b32", 4, "int", XOR_32, XOR_B32, XOR_RTN_B32, XOR_B32),
    BOTH("xor b64", 8, "int", XOR_64, XOR_B64, XOR_RTN_B64, XOR_B64),
    BOTH("inc u32", 4, "int", INC_32, INC_U32, INC_RTN_U32, INC_U32),
    BOTH("inc u64", 8, "int", INC_64, INC_U64, INC_RTN_U64, INC_U64),
    BOTH("dec u32", 4, "int", DEC_32, DEC_U32, DEC_RTN_U32, DEC_U32),
    BOTH("dec u64", 8, "int", DEC_64, DEC_U64, DEC_RTN_U64, DEC_U64),
    IN_LDS("mskor b32", 4, "int", MSKOR_32, OP(DS_MSKOR_B32), MSKOR_RTN_B32),
    IN_LDS("mskor b64", 8, "int", MSKOR_64, OP(DS_MSKOR_B64), MSKOR_RTN_B64),
    IN_LDS("wrap b32", 4, "int", WRAP_32, 0, WRAP_RTN_B32),
    BOTH("cmpswap f32", 4, "f32", CMPSWAP_F32, CMPSTORE_F32, CMPSTORE_RTN_F32, CMPSWAP_F32),
    BOTH("min f32", 4, "f32", MIN_F32, MIN_F32, MIN_RTN_F32, MIN_F32),
    BOTH("max f32", 4, "f32", MAX_F32, MAX_F32, MAX_RTN_F32, MAX_F32),
    BOTH("add f32", 4, "f32", ADD_F32, ADD_F32, ADD_RTN_F32, ADD_F32),
    IN_LDS("cmpstore f64", 8, "f64", CMPSWAP_F64, OP(DS_CMPSTORE_F64), CMPSTORE_RTN_F64),
    IN_LDS("min f64", 8, "f64", MIN_F64, OP(DS_MIN_F64), MIN_RTN_F64),
    IN_LDS("max f64", 8, "f64", MAX_F64, OP(DS_MAX_F64), MAX_RTN_F64),
};
#undef OP
#undef LOAD
#undef STORE
#undef BOTH
#undef IN_LDS
#undef IN_MEMORY
/* clang-format on */
enum { MEM_OPS = sizeof mem_ops / sizeof mem_ops[0] };

/* What the lane's element does to memory (NULL: out of range) and to the destination d; data2 is the second
 * operand of an atomic wherever the encoding has it. */
static inline void mem_perform(const struct mem_op *op, uint8_t *memory, const uint32_t *data,
                               const uint32_t *data2, struct mem_flush flush, uint32_t *d)
{
    static const uint8_t zeros[16];
    uint64_t before = 0, after;
    switch (op->kind) {
    case MEM_LOAD:
        op->load(memory ? memory : zeros, d);
        return;
    case MEM_STORE: {
        uint32_t half = data[0] >> 16;
        if (memory)
            memcpy(memory, op->from_high ? &half : data, op->bytes);
        return;
    }
    default:
        if (memory) {
            memcpy(&before, memory, op->bytes);
            after = op->atomic(before, mem_wide(data), mem_wide(data2), flush);
            memcpy(memory, &after, op->bytes);
        }
        memcpy(d, &before, op->bytes);
    }
}

/* Operands: small and corner integers, all kinds of floats, now and then what memory holds. */
static inline uint64_t mem_value(struct bw_rng *rng, const char *kind)
{
    uint64_t random = bw_rng_next(rng), low = bw_rng_below(rng, 4);
    static const uint32_t corners[] = {0, 1, 2, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff};
    static const uint32_t f32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                   1,          0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000,
                                   0x00800001, 0x7f7fffff, 0xff7fffff, 0x7fc00000, 0xffc12345, 0x7f800001,
                                   0xffa12345, 0x34000000, 0x4b800000};
    static const uint64_t f64[] = {0,
                                   0x8000000000000000ull,
                                   0x3ff0000000000000ull,
                                   0xbff0000000000000ull,
                                   0x7ff0000000000000ull,
                                   0xfff0000000000000ull,
                                   1,
                                   0x800fffffffffffffull,
                                   0x0010000000000000ull,
                                   0x7ff8000000000000ull,
                                   0xfff8123456789abcull,
                                   0x7ff0000000000001ull};
    if (low == 0)
        return random;
    if (strcmp(kind, "f32") == 0)
        return f32[random % (sizeof f32 / sizeof f32[0])] |
               (uint64_t)f32[(random >> 32) % (sizeof f32 / sizeof f32[0])] << 32;
    if (strcmp(kind, "f64") == 0)
        return f64[random % (sizeof f64 / sizeof f64[0])];
    if (low == 1)
        return corners[random % 8] | (uint64_t)corners[random >> 32 & 7] << 32;
    return (random & 7) | (low == 2 ? (random & 7) << 32 : 0);
}

/* Registers of every lane, and an image whose dwords look like the operation's operands. */
static inline void mem_fill(struct mem_rig *rig, const struct mem_op *op)
{
    for (unsigned i = 0; i < MEM_IMAGE_BYTES; i += 8) {
        uint64_t value = mem_value(&rig->rng, op->values);
        memcpy(rig->image + i, &value, 8);
    }
    for (unsigned lane = 0; lane < MEM_LANES; lane++) {
        uint32_t *words = rig->lanes[lane].address;
        for (unsigned i = 0; i < sizeof rig->lanes[0] / 4; i += 2) {
            uint64_t value = mem_value(&rig->rng, op->values);
            memcpy(words + i, &value, 8);
        }
    }
}

/* A float that is NaN may be any quiet one. */
static inline void mem_forgive_nans(const struct mem_op *op, uint8_t *expected, const uint8_t *observed)
{
    bool wide = op->bytes == 8;
    struct mem_format f = wide ? MEM_F64 : MEM_F32;
    uint64_t e = 0, o = 0;
    if (op->kind != MEM_ATOMIC || strcmp(op->values, "int") == 0 || op->atomic == mem_atomic_CMPSWAP_F32 ||
        op->atomic == mem_atomic_CMPSWAP_F64)
        return;
    memcpy(&e, expected, op->bytes);
    memcpy(&o, observed, op->bytes);
    if (mem_is_nan(f, e) && mem_is_nan(f, o) && !mem_is_signaling(f, o))
        memcpy(expected, observed, op->bytes);
}

#endif
