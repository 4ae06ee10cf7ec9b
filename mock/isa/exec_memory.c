/* Global memory, fast paths: a chunk of lanes whose addresses are a run or all the same is one host access.
 * RDNA3 Shader ISA document, section 11 "Flat memory instructions". Everything else goes lane by lane
 * (memory.c). */
#include "mock/isa/exec_access.h"

/* The common base of the active lanes' 64-bit addresses when their high dwords agree. */
ALWAYS_INLINE bool common_base(const struct bw_wave *wave, const struct bw_uop *uop, uint32_t exec,
                               uint64_t *base)
{
    const uint32_t *high = BW_AT(const uint32_t, wave, uop->a + BW_VREG_BYTES);
    const vu *vectors = (const vu *)(const void *)high;
    uint32_t first = high[exec ? __builtin_ctz(exec) : 0], wrong = 0;
    EACH_CHUNK wrong |= bits_of(vectors[i] != splat(first)) << (BW_CHUNK_LANES * i);
    *base = ((uint64_t)first << 32) + (uint64_t)(int64_t)uop->g;
    return (wrong & exec) == 0;
}

ALWAYS_INLINE const struct bw_uop *load(struct bw_wave *wave, const struct bw_uop *uop,
                                        enum bw_address_form form, enum bw_element element)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    const struct bw_range *range = &wave->worker->read[uop->e];
    const uint32_t *offsets = BW_AT(const uint32_t, wave, uop->a);
    uint32_t exec = exec_of(wave, uop);
    uint64_t base;
    vu r[4 * BW_CHUNKS];
    if (form == BW_ADDRESS_GLOBAL_SCALAR)
        base = bw_sgpr64(wave, uop->c) + (uint64_t)(int64_t)uop->g;
    else if (!common_base(wave, uop, exec, &base))
        return bw_load_lanes(wave, uop, form, element);
    EACH_CHUNK
    {
        if (!load_chunk(range, base, offsets + BW_CHUNK_LANES * i, chunk_bits(exec, i), element, r + i))
            return bw_load_lanes(wave, uop, form, element);
    }
    UNROLL for (unsigned j = 0; j < dwords; j++)
        write_lanes(wave, uop->d + (int32_t)j * BW_VREG_BYTES, exec, r + j * BW_CHUNKS);
    NEXT;
}

ALWAYS_INLINE const struct bw_uop *store(struct bw_wave *wave, const struct bw_uop *uop,
                                         enum bw_address_form form, enum bw_element element)
{
    const struct bw_range *range = &wave->worker->write[uop->e];
    const uint32_t *offsets = BW_AT(const uint32_t, wave, uop->a);
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->b);
    uint32_t exec = exec_of(wave, uop);
    uint64_t base;
    if (form == BW_ADDRESS_GLOBAL_SCALAR)
        base = bw_sgpr64(wave, uop->c) + (uint64_t)(int64_t)uop->g;
    else if (!common_base(wave, uop, exec, &base))
        return bw_store_lanes(wave, uop, form, element);
    EACH_CHUNK
    {
        if (!store_chunk(range, base, offsets + BW_CHUNK_LANES * i, chunk_bits(exec, i), element,
                         data + BW_CHUNK_LANES * i))
            return bw_store_lanes(wave, uop, form, element);
    }
    NEXT;
}

#define GLOBAL_LOADS(_)   \
    _(FLAT_LOAD_U8, U8)   \
    _(FLAT_LOAD_I8, I8)   \
    _(FLAT_LOAD_U16, U16) \
    _(FLAT_LOAD_I16, I16) \
    _(FLAT_LOAD_B32, B32) _(FLAT_LOAD_B64, B64) _(FLAT_LOAD_B96, B96) _(FLAT_LOAD_B128, B128)
#define GLOBAL_STORES(_)   \
    _(FLAT_STORE_B8, U8)   \
    _(FLAT_STORE_B16, U16) \
    _(FLAT_STORE_B32, B32) _(FLAT_STORE_B64, B64) _(FLAT_STORE_B96, B96) _(FLAT_STORE_B128, B128)
/* Not common enough for a path of their own. */
#define HALF_LOADS(_)             \
    _(FLAT_LOAD_D16_U8, D16_U8)   \
    _(FLAT_LOAD_D16_I8, D16_I8)   \
    _(FLAT_LOAD_D16_B16, D16_B16) \
    _(FLAT_LOAD_D16_HI_U8, D16_HI_U8) _(FLAT_LOAD_D16_HI_I8, D16_HI_I8) _(FLAT_LOAD_D16_HI_B16, D16_HI_B16)
#define HALF_STORES(_) _(FLAT_STORE_D16_HI_B8, D16_HI_U8) _(FLAT_STORE_D16_HI_B16, D16_HI_B16)

/* The row's own number is the scalar-base form; the vector form and the others are helpers beside it. */
#define FAST(op, function, element)                                                 \
    HANDLER(x_##op)                                                                 \
    {                                                                               \
        return function(wave, uop, BW_ADDRESS_GLOBAL_SCALAR, BW_ELEMENT_##element); \
    }                                                                               \
    HANDLER(x_##op##_VECTOR)                                                        \
    {                                                                               \
        return function(wave, uop, BW_ADDRESS_GLOBAL_VECTOR, BW_ELEMENT_##element); \
    }
#define SLOW(op, function, element)                                                 \
    HANDLER(x_##op)                                                                 \
    {                                                                               \
        return function(wave, uop, BW_ADDRESS_GLOBAL_SCALAR, BW_ELEMENT_##element); \
    }                                                                               \
    HANDLER(x_##op##_VECTOR)                                                        \
    {                                                                               \
        return function(wave, uop, BW_ADDRESS_GLOBAL_VECTOR, BW_ELEMENT_##element); \
    }
#define OTHER_FORMS(op, function, element)                                    \
    HANDLER(x_##op##_FLAT)                                                    \
    {                                                                         \
        return function(wave, uop, BW_ADDRESS_FLAT, BW_ELEMENT_##element);    \
    }                                                                         \
    HANDLER(x_##op##_SCRATCH)                                                 \
    {                                                                         \
        return function(wave, uop, BW_ADDRESS_SCRATCH, BW_ELEMENT_##element); \
    }
#define FAST_LOAD(op, element)  FAST(op, load, element) OTHER_FORMS(op, bw_load_lanes, element)
#define FAST_STORE(op, element) FAST(op, store, element) OTHER_FORMS(op, bw_store_lanes, element)
#define SLOW_LOAD(op, element)  SLOW(op, bw_load_lanes, element) OTHER_FORMS(op, bw_load_lanes, element)
#define SLOW_STORE(op, element) SLOW(op, bw_store_lanes, element) OTHER_FORMS(op, bw_store_lanes, element)

GLOBAL_LOADS(FAST_LOAD)
GLOBAL_STORES(FAST_STORE)
HALF_LOADS(SLOW_LOAD)
HALF_STORES(SLOW_STORE)

#define R(op, element)                                                                                     \
    {BW_GFX11_##op, x_##op}, {BW_UOP_##op##_VECTOR, x_##op##_VECTOR}, {BW_UOP_##op##_FLAT, x_##op##_FLAT}, \
        {BW_UOP_##op##_SCRATCH, x_##op##_SCRATCH},
/* clang-format off */
static const struct bw_uop_row rows[] = {GLOBAL_LOADS(R) GLOBAL_STORES(R) HALF_LOADS(R) HALF_STORES(R)};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_memory) = {rows, sizeof rows / sizeof rows[0]};
