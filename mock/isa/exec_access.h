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
    vu expected = first + VU_IOTA * stride;
#if BW_VECTOR_BYTES == 64
    return _mm512_mask_cmpneq_epi32_mask((__mmask16)bits, (__m512i)offsets, (__m512i)expected) == 0;
#else
    return (bits_of(offsets != expected) & bits) == 0;
#endif
}

/* Lane l of the result is element index[l] of the two vectors laid end to end. */
ALWAYS_INLINE vu two_source_lanes(vu low, vu high, vu index)
{
#if defined(__clang__) /* no shuffle by a vector of indices; only sanitized builds, whose speed does not matter */
    vu r;
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = index[lane] < BW_CHUNK_LANES ? low[index[lane]] : high[index[lane] - BW_CHUNK_LANES];
    return r;
#else
    return __builtin_shuffle(low, high, index);
#endif
}

/* Whole vectors, one access each: a single larger memcpy may become a string instruction. */
ALWAYS_INLINE void read_vectors(const uint8_t *memory, unsigned count, vu *m)
{
    UNROLL for (unsigned k = 0; k < count; k++) memcpy(&m[k], memory + k * sizeof *m, sizeof *m);
}

ALWAYS_INLINE void write_vectors(uint8_t *memory, unsigned count, const vu *m)
{
    UNROLL for (unsigned k = 0; k < count; k++) memcpy(memory + k * sizeof *m, &m[k], sizeof *m);
}

enum { CHUNK_FULL = BW_CHUNK_LANES == 32 ? -1 : (1 << (BW_CHUNK_LANES & 31)) - 1 };

/* Picks for each lane l of a chunk: element (l * step + first) of the two vectors laid end to end; lanes
 * whose element lies beyond pick anything. The indices are constants once this is inlined. */
ALWAYS_INLINE vu picked(vu low, vu high, unsigned step, unsigned first)
{
    vu index;
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++)
        index[lane] = (lane * step + first) % (2 * BW_CHUNK_LANES);
    return two_source_lanes(low, high, index);
}

/* The lower half of each. */
ALWAYS_INLINE vu joined(vu low, vu high)
{
    vu index;
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++)
        index[lane] = lane < BW_CHUNK_LANES / 2 ? lane : lane + BW_CHUNK_LANES / 2;
    return two_source_lanes(low, high, index);
}

/* The same for the upper lanes of a chunk: those from `from` on; the others stay. */
ALWAYS_INLINE vu picked_from(vu kept, vu other, unsigned step, unsigned first, unsigned from)
{
    vu index;
    for (unsigned lane = 0; lane < BW_CHUNK_LANES; lane++)
        index[lane] = lane < from ? lane : BW_CHUNK_LANES + (lane * step + first) % BW_CHUNK_LANES;
    return two_source_lanes(kept, other, index);
}

/* Consecutive elements of some dwords each become one vector per dword (r, with BW_CHUNKS between). */
ALWAYS_INLINE void load_run(const uint8_t *memory, unsigned dwords, vu *r)
{
    enum { W = BW_CHUNK_LANES };
    vu m[4];
    read_vectors(memory, dwords, m);
    switch (dwords) {
    case 1:
        r[0] = m[0];
        break;
    case 2:
        UNROLL for (unsigned j = 0; j < 2; j++) r[j * BW_CHUNKS] = picked(m[0], m[1], 2, j);
        break;
    case 3:
        UNROLL for (unsigned j = 0; j < 3; j++)
        {
            /* lanes whose element lies in the third vector: 3 * lane + j >= 2 W */
            unsigned from = (2 * W - j + 2) / 3;
            r[j * BW_CHUNKS] = picked_from(picked(m[0], m[1], 3, j), m[2], 3, j, from);
        }
        break;
    default:
        UNROLL for (unsigned j = 0; j < 4; j++)
        {
            vu low = picked(m[0], m[1], 4, j), high = picked(m[2], m[3], 4, j);
            r[j * BW_CHUNKS] = joined(low, high);
        }
    }
}

/* And back: lane l's dwords go to element l. */
ALWAYS_INLINE void store_run(uint8_t *memory, unsigned dwords, const vu *data)
{
    enum { W = BW_CHUNK_LANES };
    vu m[4];
    if (dwords == 1) {
        memcpy(memory, data, sizeof *data);
        return;
    }
    UNROLL for (unsigned part = 0; part < dwords; part++)
    {
        vu first, second, third;
        for (unsigned k = 0; k < W; k++) {
            unsigned at = part * W + k, lane = at / dwords, j = at % dwords;
            first[k] = j == 1 ? W + lane : lane;  /* dwords 0 and 1 */
            second[k] = j == 3 ? W + lane : lane; /* dwords 2 and 3 */
            third[k] = j >= 2 ? W + k : k;
        }
        vu low = two_source_lanes(data[0], data[BW_CHUNKS], first);
        if (dwords == 2) {
            m[part] = low;
        } else {
            vu high = two_source_lanes(data[2 * BW_CHUNKS], data[(dwords - 1) * BW_CHUNKS], second);
            m[part] = two_source_lanes(low, high, third);
        }
    }
    write_vectors(memory, dwords, m);
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

/* Dwords of each lane by the host's gather, index counted in bytes from memory; only on levels that have a
 * good one. */
ALWAYS_INLINE void gather(const uint8_t *memory, vu index, uint32_t bits, unsigned dwords, vu *r)
{
#if BW_VECTOR_BYTES == 64
    UNROLL for (unsigned j = 0; j < dwords; j++) r[j * BW_CHUNKS] = (vu)_mm512_mask_i32gather_epi32(
        _mm512_setzero_si512(), (__mmask16)bits, (__m512i)index, memory + 4 * j, 1);
#else
    for (; bits; bits &= bits - 1) {
        unsigned lane = (unsigned)__builtin_ctz(bits);
        for (unsigned j = 0; j < dwords; j++) {
            uint32_t value;
            memcpy(&value, memory + (int32_t)index[lane] + (int32_t)(4 * j), 4);
            r[j * BW_CHUNKS][lane] = value;
        }
    }
#endif
}

/* Small strides need no gather: whole vectors are read and picked from. Up to 16 bytes between lanes, all of
 * that memory in the range (elements overlap when the stride is smaller than they are). */
ALWAYS_INLINE bool load_close(const struct bw_range *range, uint64_t va, uint32_t stride, unsigned dwords,
                              vu *r)
{
    vu m[4];
    if (stride == 4) {
        const uint8_t *memory = in_range(range, va, 4 * (BW_CHUNK_LANES + dwords - 1));
        if (memory)
            UNROLL for (unsigned j = 0; j < dwords; j++) memcpy(&r[j * BW_CHUNKS], memory + 4 * j, sizeof *r);
        return memory != NULL;
    }
    const uint8_t *memory = in_range(range, va, (uint64_t)stride * BW_CHUNK_LANES);
    if (!memory || 4 * dwords > stride)
        return false;
    if (stride == 8) {
        read_vectors(memory, 2, m);
        UNROLL for (unsigned j = 0; j < dwords; j++) r[j * BW_CHUNKS] = picked(m[0], m[1], 2, j);
        return true;
    }
    if (stride == 16) {
        read_vectors(memory, 4, m);
        UNROLL for (unsigned j = 0; j < dwords; j++)
        {
            vu low = picked(m[0], m[1], 4, j), high = picked(m[2], m[3], 4, j);
            r[j * BW_CHUNKS] = joined(low, high);
        }
        return true;
    }
    return false;
}

/* All lanes of a full chunk whose offsets go up or down by stride, in one range. */
ALWAYS_INLINE bool load_strided(const struct bw_range *range, uint64_t base, uint32_t first, int32_t stride,
                                unsigned dwords, vu *r)
{
    int64_t span = (int64_t)stride * (BW_CHUNK_LANES - 1), last = (int64_t)first + span;
    uint64_t low = span < 0 ? (uint64_t)last : first, reach = (uint64_t)(span < 0 ? -span : span);
    if (last < 0 || last > (int64_t)ALL_LANES || reach > 0x7fffffffu)
        return false;
    if (stride > 0 && stride <= 16 && load_close(range, base + first, (uint32_t)stride, dwords, r))
        return true;
    const uint8_t *memory = in_range(range, base + low, reach + 4 * dwords);
    if (!memory)
        return false;
    gather(memory + (first - low), VU_IOTA * (uint32_t)stride, (uint32_t)CHUNK_FULL, dwords, r);
    return true;
}

/* Any lanes of the chunk, when they lie in the range within 2 GiB of each other. */
ALWAYS_INLINE bool load_scattered(const struct bw_range *range, uint64_t base, vu offsets, uint32_t bits,
                                  unsigned dwords, vu *r)
{
#if BW_VECTOR_BYTES == 64
    __mmask16 mask = (__mmask16)bits;
    uint32_t low = _mm512_mask_reduce_min_epu32(mask, (__m512i)offsets);
    uint32_t high = _mm512_mask_reduce_max_epu32(mask, (__m512i)offsets);
    const uint8_t *memory = in_range(range, base + low, (uint64_t)(high - low) + 4 * dwords);
    if (!bits || !memory || high - low > 0x7fffffffu)
        return false;
    gather(memory, offsets - low, bits, dwords, r);
    return true;
#else
    return false;
#endif
}

/* One element for all lanes. */
ALWAYS_INLINE void load_broadcast(const uint8_t *memory, enum bw_element element, unsigned dwords, vu *r)
{
    UNROLL for (unsigned j = 0; j < dwords; j++)
    {
        uint32_t value;
        if (bw_element_bytes(element) < 4)
            value = load_narrow(memory, element);
        else
            memcpy(&value, memory + 4 * j, 4);
        r[j * BW_CHUNKS] = splat(value);
    }
}

/* A full chunk whose lanes follow each other at one distance: 1 done, 0 not so, -1 a lane needs the slow
 * path. */
ALWAYS_INLINE int load_regular(const struct bw_range *range, uint64_t base, const uint32_t *offsets,
                               enum bw_element element, vu *r)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    uint32_t first = offsets[0], stride = offsets[1] - first;
    const uint8_t *memory;
    if (!is_run(*(const vu *)(const void *)offsets, (uint32_t)CHUNK_FULL, first, stride))
        return 0;
    if (stride == bytes) {
        memory = in_range(range, base + first, (uint64_t)bytes * BW_CHUNK_LANES);
        if (!memory || first > ALL_LANES - bytes * BW_CHUNK_LANES)
            return -1;
        if (bytes < 4)
            *r = load_run_narrow(memory, element);
        else
            load_run(memory, dwords, r);
        return 1;
    }
    if (stride == 0) {
        memory = in_range(range, base + first, bytes);
        if (!memory)
            return -1;
        load_broadcast(memory, element, dwords, r);
        return 1;
    }
    return bytes >= 4 && load_strided(range, base, first, (int32_t)stride, dwords, r) ? 1 : 0;
}

/* One chunk of lanes from base + offsets; false when some lane needs the slow path. */
ALWAYS_INLINE bool load_chunk(const struct bw_range *range, uint64_t base, const uint32_t *offsets,
                              uint32_t bits, enum bw_element element, vu *r)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    if (bits == (uint32_t)CHUNK_FULL) {
        int done = load_regular(range, base, offsets, element, r);
        if (done)
            return done > 0;
    }
    if (bytes >= 4 && load_scattered(range, base, *(const vu *)(const void *)offsets, bits, dwords, r))
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
