/* Global memory, fast paths: a chunk of lanes whose addresses are a run or all the same is one host access.
 * RDNA3 Shader ISA document, section 11 "Flat memory instructions". Everything else goes lane by lane
 * (memory.c). */
#include "mock/isa/exec_vec.h"
#include "mock/isa/memory.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The host memory of [va, va + bytes) if the range holds it whole, else NULL. */
ALWAYS_INLINE uint8_t *in_range(const struct bw_range *range, uint64_t va, uint64_t bytes)
{
    uint64_t offset = va - range->start_va;
    return offset < range->size_bytes && range->size_bytes - offset >= bytes ? range->host + offset : NULL;
}

/* Whether the active lanes of a chunk of offsets follow first + stride * lane. */
ALWAYS_INLINE bool is_run(vu offsets, uint32_t bits, uint32_t first, uint32_t stride)
{
    vi wrong = offsets != first + VU_IOTA * stride;
#if BW_VECTOR_BYTES == 64
    return (_mm512_movepi32_mask((__m512i)wrong) & bits) == 0;
#else
    return (bits_of(wrong) & bits) == 0;
#endif
}

enum { CHUNK_FULL = BW_CHUNK_LANES == 32 ? -1 : (1 << (BW_CHUNK_LANES & 31)) - 1 };

/* Dwords count x lanes from consecutive elements, one vector per dword. */
ALWAYS_INLINE void load_run(const uint8_t *memory, unsigned dwords, vu *r)
{
    if (dwords == 1) {
        memcpy(r, memory, sizeof *r);
        return;
    }
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++) {
        for (unsigned j = 0; j < dwords; j++) {
            uint32_t value;
            memcpy(&value, memory + 4 * (lane * dwords + j), 4);
            r[j * BW_CHUNKS][lane] = value;
        }
    }
}

ALWAYS_INLINE void store_run(uint8_t *memory, unsigned dwords, const vu *data)
{
    if (dwords == 1) {
        memcpy(memory, data, sizeof *data);
        return;
    }
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++) {
        for (unsigned j = 0; j < dwords; j++) {
            uint32_t value = data[j * BW_CHUNKS][lane];
            memcpy(memory + 4 * (lane * dwords + j), &value, 4);
        }
    }
}

/* Narrow elements of a run, extended to dwords. */
ALWAYS_INLINE vu load_run_narrow(const uint8_t *memory, enum bw_element element)
{
    vu r;
    if (element == BW_ELEMENT_U8) {
        typedef uint8_t narrow __attribute__((vector_size(BW_CHUNK_LANES)));
        narrow n;
        memcpy(&n, memory, sizeof n);
        r = __builtin_convertvector(n, vu);
    } else if (element == BW_ELEMENT_I8) {
        typedef int8_t narrow __attribute__((vector_size(BW_CHUNK_LANES)));
        narrow n;
        memcpy(&n, memory, sizeof n);
        r = (vu) __builtin_convertvector(n, vi);
    } else if (element == BW_ELEMENT_U16) {
        typedef uint16_t narrow __attribute__((vector_size(2 * BW_CHUNK_LANES)));
        narrow n;
        memcpy(&n, memory, sizeof n);
        r = __builtin_convertvector(n, vu);
    } else {
        typedef int16_t narrow __attribute__((vector_size(2 * BW_CHUNK_LANES)));
        narrow n;
        memcpy(&n, memory, sizeof n);
        r = (vu) __builtin_convertvector(n, vi);
    }
    return r;
}

ALWAYS_INLINE uint32_t load_narrow(const uint8_t *memory, enum bw_element element)
{
    switch (element) {
    case BW_ELEMENT_U8:
        return *memory;
    case BW_ELEMENT_I8:
        return (uint32_t)(int8_t)*memory;
    default: {
        uint16_t half;
        memcpy(&half, memory, 2);
        return element == BW_ELEMENT_U16 ? half : (uint32_t)(int16_t)half;
    }
    }
}

/* One chunk of lanes from base + offsets; false when some lane needs the slow path. */
ALWAYS_INLINE bool load_chunk(const struct bw_range *range, uint64_t base, const uint32_t *offsets,
                              uint32_t bits, enum bw_element element, vu *r)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    vu o = *(const vu *)(const void *)offsets;
    if (bits == (uint32_t)CHUNK_FULL) {
        uint32_t first = offsets[0];
        if (is_run(o, bits, first, bytes)) {
            const uint8_t *memory = in_range(range, base + first, (uint64_t)bytes * BW_CHUNK_LANES);
            if (!memory || first > ALL_LANES - bytes * BW_CHUNK_LANES)
                return false;
            if (bytes < 4)
                *r = load_run_narrow(memory, element);
            else
                load_run(memory, dwords, r);
            return true;
        }
        if (is_run(o, bits, first, 0)) {
            const uint8_t *memory = in_range(range, base + first, bytes);
            if (!memory)
                return false;
            for (unsigned j = 0; j < dwords; j++) {
                uint32_t value;
                if (bytes < 4)
                    value = load_narrow(memory, element);
                else
                    memcpy(&value, memory + 4 * j, 4);
                r[j * BW_CHUNKS] = splat(value);
            }
            return true;
        }
    }
    for (; bits; bits &= bits - 1) {
        unsigned lane = (unsigned)__builtin_ctz(bits);
        const uint8_t *memory = in_range(range, base + offsets[lane], bytes);
        if (!memory)
            return false;
        for (unsigned j = 0; j < dwords; j++) {
            uint32_t value;
            if (bytes < 4)
                value = load_narrow(memory, element);
            else
                memcpy(&value, memory + 4 * j, 4);
            ((uint32_t *)(void *)&r[j * BW_CHUNKS])[lane] = value;
        }
    }
    return true;
}

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
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
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
        uint32_t bits = chunk_bits(exec, i), first = offsets[BW_CHUNK_LANES * i];
        vu o = ((const vu *)(const void *)offsets)[i];
        if (bytes >= 4 && bits == (uint32_t)CHUNK_FULL && is_run(o, bits, first, bytes) &&
            first <= ALL_LANES - bytes * BW_CHUNK_LANES) {
            uint8_t *memory = in_range(range, base + first, (uint64_t)bytes * BW_CHUNK_LANES);
            if (!memory)
                return bw_store_lanes(wave, uop, form, element);
            store_run(memory, dwords, (const vu *)(const void *)data + i);
            continue;
        }
        for (; bits; bits &= bits - 1) {
            unsigned lane = (unsigned)__builtin_ctz(bits) + BW_CHUNK_LANES * (unsigned)i;
            uint8_t *memory = in_range(range, base + offsets[lane], bytes);
            if (!memory)
                return bw_store_lanes(wave, uop, form, element);
            UNROLL for (unsigned j = 0; j < dwords; j++)
                memcpy(memory + 4 * j, &data[j * BW_LANES + lane], bytes < 4 ? bytes : 4);
        }
    }
    NEXT;
}

#define GLOBAL_LOADS(_)                                                                   \
    _(FLAT_LOAD_U8, U8)                                                                   \
    _(FLAT_LOAD_I8, I8) _(FLAT_LOAD_U16, U16) _(FLAT_LOAD_I16, I16) _(FLAT_LOAD_B32, B32) \
        _(FLAT_LOAD_B64, B64) _(FLAT_LOAD_B96, B96) _(FLAT_LOAD_B128, B128)
#define GLOBAL_STORES(_)                                                                        \
    _(FLAT_STORE_B8, U8)                                                                        \
    _(FLAT_STORE_B16, U16) _(FLAT_STORE_B32, B32) _(FLAT_STORE_B64, B64) _(FLAT_STORE_B96, B96) \
        _(FLAT_STORE_B128, B128)
/* Not common enough for a path of their own. */
#define HALF_LOADS(_)                                                                           \
    _(FLAT_LOAD_D16_U8, D16_U8)                                                                 \
    _(FLAT_LOAD_D16_I8, D16_I8) _(FLAT_LOAD_D16_B16, D16_B16) _(FLAT_LOAD_D16_HI_U8, D16_HI_U8) \
        _(FLAT_LOAD_D16_HI_I8, D16_HI_I8) _(FLAT_LOAD_D16_HI_B16, D16_HI_B16)
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
static const struct bw_uop_row rows[] = {GLOBAL_LOADS(R) GLOBAL_STORES(R) HALF_LOADS(R) HALF_STORES(R)};
const struct bw_uop_table BW_LEVEL(bw_exec_memory) = {rows, sizeof rows / sizeof rows[0]};
