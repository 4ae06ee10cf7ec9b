/* Vector loads and stores of a chunk of lanes: a run of elements, one element for all, a gather, or lane by
 * lane inside one range of host memory. Included by the execution files for memory and LDS. */
#ifndef BW_MOCK_ISA_EXEC_ACCESS_H
#define BW_MOCK_ISA_EXEC_ACCESS_H

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

/* All lanes of the chunk by the host's gather, when they lie in the range within 2 GiB of each other. */
ALWAYS_INLINE bool gather_chunk(const struct bw_range *range, uint64_t base, vu offsets, uint32_t bits,
                                enum bw_element element, vu *r)
{
#if BW_VECTOR_BYTES == 64
    const unsigned bytes = bw_element_bytes(element), dwords = bytes / 4;
    if (bytes < 4)
        return false;
    __mmask16 mask = (__mmask16)bits;
    uint32_t low = _mm512_mask_reduce_min_epu32(mask, (__m512i)offsets);
    uint32_t high = _mm512_mask_reduce_max_epu32(mask, (__m512i)offsets);
    const uint8_t *memory = in_range(range, base + low, (uint64_t)(high - low) + bytes);
    if (!bits || !memory || high - low > 0x7fffffffu)
        return false;
    __m512i index = (__m512i)(offsets - low);
    UNROLL for (unsigned j = 0; j < dwords; j++) r[j * BW_CHUNKS] =
        (vu)_mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, memory + 4 * j, 1);
    return true;
#else
    return false;
#endif
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
    if (gather_chunk(range, base, o, bits, element, r))
        return true;
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

/* The same for stores: lanes in order, so that of several to one address the last one stays. */
ALWAYS_INLINE bool store_chunk(const struct bw_range *range, uint64_t base, const uint32_t *offsets,
                               uint32_t bits, enum bw_element element, const uint32_t *data)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    uint32_t first = offsets[0];
    vu o = *(const vu *)(const void *)offsets;
    if (bytes >= 4 && bits == (uint32_t)CHUNK_FULL && is_run(o, bits, first, bytes)) {
        uint8_t *memory = in_range(range, base + first, (uint64_t)bytes * BW_CHUNK_LANES);
        if (!memory || first > ALL_LANES - bytes * BW_CHUNK_LANES)
            return false;
        store_run(memory, dwords, (const vu *)(const void *)data);
        return true;
    }
    for (; bits; bits &= bits - 1) {
        unsigned lane = (unsigned)__builtin_ctz(bits);
        uint8_t *memory = in_range(range, base + offsets[lane], bytes);
        if (!memory)
            return false;
        UNROLL for (unsigned j = 0; j < dwords; j++)
            memcpy(memory + 4 * j, &data[j * BW_LANES + lane], bytes < 4 ? bytes : 4);
    }
    return true;
}

#endif
