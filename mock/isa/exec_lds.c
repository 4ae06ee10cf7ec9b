/* LDS: loads, stores, and the lane exchanges that go through its crossbar. RDNA3 Shader ISA document, section
 * 12 "Data share operations" and section 16.13 (DS instructions). */
#include "mock/isa/exec_access.h"

/* The group's LDS as a range of memory that starts at 0. */
#define LDS_RANGE                     \
    {                                 \
        0, wave->lds_bytes, wave->lds \
    }

/* Two elements at offsets g and e, when not all of them lie inside: a lane whose pair is not whole there
 * reads 0 (RDNA3 ISA document, section 3.3.4.1 "LDS/GDS alignment and out-of-range"). */
static __attribute__((noinline)) const struct bw_uop *
load_pair_lanes(struct bw_wave *wave, const struct bw_uop *uop, unsigned bytes)
{
    const uint32_t *address = BW_AT(const uint32_t, wave, uop->a);
    uint32_t exec = exec_of(wave, uop), r[4][BW_LANES] __attribute__((aligned(64))) = {{0}};
    for (uint32_t rest = exec; rest; rest &= rest - 1) {
        unsigned lane = (unsigned)__builtin_ctz(rest);
        uint64_t at[2] = {address[lane] + (uint32_t)uop->g, address[lane] + (uint32_t)uop->e};
        uint32_t words[4];
        if (at[0] + bytes > wave->lds_bytes || at[1] + bytes > wave->lds_bytes)
            continue;
        memcpy(words, wave->lds + at[0], bytes);
        memcpy(words + bytes / 4, wave->lds + at[1], bytes);
        for (unsigned i = 0; i < bytes / 2; i++)
            r[i][lane] = words[i];
    }
    for (unsigned i = 0; i < bytes / 2; i++)
        write_lanes(wave, uop->d + (int32_t)i * BW_VREG_BYTES, exec, (const vu *)(const void *)r[i]);
    NEXT;
}

/* is_pair: the element is a pair of half its size. */
ALWAYS_INLINE const struct bw_uop *lds_load(struct bw_wave *wave, const struct bw_uop *uop,
                                            enum bw_element element, bool is_pair)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes < 4 ? 1 : bytes / 4;
    const struct bw_range range = LDS_RANGE;
    const uint32_t *offsets = BW_AT(const uint32_t, wave, uop->a);
    uint32_t exec = exec_of(wave, uop);
    vu r[4 * BW_CHUNKS];
    EACH_CHUNK
    {
        if (!load_chunk(&range, (uint64_t)(uint32_t)uop->g, offsets + BW_CHUNK_LANES * i, chunk_bits(exec, i),
                        element, r + i))
            return is_pair ? load_pair_lanes(wave, uop, bytes / 2)
                           : bw_load_lanes(wave, uop, BW_ADDRESS_LDS, element);
    }
    UNROLL for (unsigned j = 0; j < dwords; j++)
        write_lanes(wave, uop->d + (int32_t)j * BW_VREG_BYTES, exec, r + j * BW_CHUNKS);
    NEXT;
}

ALWAYS_INLINE const struct bw_uop *lds_load_2addr(struct bw_wave *wave, const struct bw_uop *uop,
                                                  enum bw_element element)
{
    const unsigned bytes = bw_element_bytes(element), dwords = bytes / 4;
    const struct bw_range range = LDS_RANGE;
    const uint32_t *offsets = BW_AT(const uint32_t, wave, uop->a);
    uint32_t exec = exec_of(wave, uop);
    vu r[4 * BW_CHUNKS];
    EACH_CHUNK
    {
        uint32_t bits = chunk_bits(exec, i);
        const uint32_t *chunk = offsets + BW_CHUNK_LANES * i;
        if (!load_chunk(&range, (uint32_t)uop->g, chunk, bits, element, r + i) ||
            !load_chunk(&range, (uint32_t)uop->e, chunk, bits, element, r + dwords * BW_CHUNKS + i))
            return load_pair_lanes(wave, uop, bytes);
    }
    UNROLL for (unsigned j = 0; j < 2 * dwords; j++)
        write_lanes(wave, uop->d + (int32_t)j * BW_VREG_BYTES, exec, r + j * BW_CHUNKS);
    NEXT;
}

ALWAYS_INLINE const struct bw_uop *lds_store(struct bw_wave *wave, const struct bw_uop *uop,
                                             enum bw_element element)
{
    const struct bw_range range = LDS_RANGE;
    const uint32_t *offsets = BW_AT(const uint32_t, wave, uop->a),
                   *data = BW_AT(const uint32_t, wave, uop->b);
    uint32_t exec = exec_of(wave, uop);
    EACH_CHUNK
    {
        if (!store_chunk(&range, (uint64_t)(uint32_t)uop->g, offsets + BW_CHUNK_LANES * i,
                         chunk_bits(exec, i), element, data + BW_CHUNK_LANES * i))
            return bw_store_lanes(wave, uop, BW_ADDRESS_LDS, element);
    }
    NEXT;
}

#define LOADS(_)        \
    _(DS_LOAD_B32, B32) \
    _(DS_LOAD_B64, B64) \
    _(DS_LOAD_B96, B96) \
    _(DS_LOAD_B128, B128) _(DS_LOAD_I8, I8) _(DS_LOAD_U8, U8) _(DS_LOAD_I16, I16) _(DS_LOAD_U16, U16)
#define HALF_LOADS(_)               \
    _(DS_LOAD_U8_D16, D16_U8)       \
    _(DS_LOAD_U8_D16_HI, D16_HI_U8) \
    _(DS_LOAD_I8_D16, D16_I8)       \
    _(DS_LOAD_I8_D16_HI, D16_HI_I8) _(DS_LOAD_U16_D16, D16_B16) _(DS_LOAD_U16_D16_HI, D16_HI_B16)
#define STORES(_)        \
    _(DS_STORE_B32, B32) \
    _(DS_STORE_B64, B64) _(DS_STORE_B96, B96) _(DS_STORE_B128, B128) _(DS_STORE_B8, U8) _(DS_STORE_B16, U16)
#define HALF_STORES(_) _(DS_STORE_B8_D16_HI, D16_HI_U8) _(DS_STORE_B16_D16_HI, D16_HI_B16)

#define FORWARD(op, call) \
    HANDLER(x_##op)       \
    {                     \
        return call;      \
    }
#define LOAD(op, element)       FORWARD(op, lds_load(wave, uop, BW_ELEMENT_##element, false))
#define STORE(op, element)      FORWARD(op, lds_store(wave, uop, BW_ELEMENT_##element))
#define HALF_LOAD(op, element)  FORWARD(op, bw_load_lanes(wave, uop, BW_ADDRESS_LDS, BW_ELEMENT_##element))
#define HALF_STORE(op, element) FORWARD(op, bw_store_lanes(wave, uop, BW_ADDRESS_LDS, BW_ELEMENT_##element))
LOADS(LOAD)
FORWARD(LDS_LOAD_PAIR_B32, lds_load(wave, uop, BW_ELEMENT_B64, true))
FORWARD(LDS_LOAD_PAIR_B64, lds_load(wave, uop, BW_ELEMENT_B128, true))
FORWARD(LDS_LOAD_2ADDR_B32, lds_load_2addr(wave, uop, BW_ELEMENT_B32))
FORWARD(LDS_LOAD_2ADDR_B64, lds_load_2addr(wave, uop, BW_ELEMENT_B64))
HALF_LOADS(HALF_LOAD)
STORES(STORE)
HALF_STORES(HALF_STORE)

/* One dword for each lane of the wave at M0[15:0] + offset + 4 * lane; uop->c is the first lane of this half.
 */
HANDLER(x_DS_LOAD_ADDTID_B32)
{
    vu lanes = VU_IOTA * 4 + (uint32_t)uop->c * 4 + (wave->sgpr[BW_SREG_M0] & 0xffff);
    vu *address = BW_AT(vu, wave, uop->a);
    EACH_CHUNK address[i] = lanes + (uint32_t)(4 * BW_CHUNK_LANES * i);
    return bw_load_lanes(wave, uop, BW_ADDRESS_LDS, BW_ELEMENT_B32);
}

HANDLER(x_DS_STORE_ADDTID_B32)
{
    vu lanes = VU_IOTA * 4 + (uint32_t)uop->c * 4 + (wave->sgpr[BW_SREG_M0] & 0xffff);
    vu *address = BW_AT(vu, wave, uop->a);
    EACH_CHUNK address[i] = lanes + (uint32_t)(4 * BW_CHUNK_LANES * i);
    return bw_store_lanes(wave, uop, BW_ADDRESS_LDS, BW_ELEMENT_B32);
}

/* Lane i gets what lane (address / 4) mod 32 of its half holds; 0 from lanes that are off. */
HANDLER(x_DS_BPERMUTE_B32)
{
    const uint32_t *address = BW_AT(const uint32_t, wave, uop->a),
                   *data = BW_AT(const uint32_t, wave, uop->b);
    uint32_t exec = exec_of(wave, uop), r[BW_LANES] __attribute__((aligned(64)));
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        unsigned source = (address[lane] + (uint32_t)uop->g) / 4 % 32;
        r[lane] = exec >> source & 1 ? data[source] : 0;
    }
    write_lanes(wave, uop->d, exec, (const vu *)(const void *)r);
    NEXT;
}

/* The other way round: each lane sends; the highest wins. */
HANDLER(x_DS_PERMUTE_B32)
{
    const uint32_t *address = BW_AT(const uint32_t, wave, uop->a),
                   *data = BW_AT(const uint32_t, wave, uop->b);
    uint32_t exec = exec_of(wave, uop), r[BW_LANES] __attribute__((aligned(64))) = {0};
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        if (exec >> lane & 1)
            r[(address[lane] + (uint32_t)uop->g) / 4 % 32] = data[lane];
    }
    write_lanes(wave, uop->d, exec, (const vu *)(const void *)r);
    NEXT;
}

static inline unsigned reverse5(unsigned v)
{
    return (v & 1) << 4 | (v & 2) << 2 | (v & 4) | (v & 8) >> 2 | (v & 16) >> 4;
}

/* The lane that DS_SWIZZLE_B32 reads, by its offset field: FFT, rotate, quad permutation, or a bit mask. */
static inline unsigned swizzle_source(uint32_t pattern, unsigned lane)
{
    unsigned mask = pattern & 31;
    if (pattern >= 0xe000)
        return (reverse5(lane) >> __builtin_popcount(mask)) | (lane & mask);
    if (pattern >= 0xc000) {
        unsigned count = pattern >> 5 & 31;
        unsigned to = pattern >> 10 & 1 ? lane - count : lane + count;
        return ((lane & mask) | (to & ~mask)) & 31;
    }
    if (pattern & 0x8000)
        return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
    return ((lane & mask) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
}

HANDLER(x_DS_SWIZZLE_B32)
{
    const uint32_t *data = BW_AT(const uint32_t, wave, uop->a);
    uint32_t exec = exec_of(wave, uop), r[BW_LANES] __attribute__((aligned(64)));
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        unsigned source = swizzle_source((uint32_t)uop->g & 0xffff, lane);
        r[lane] = exec >> source & 1 ? data[source] : 0;
    }
    write_lanes(wave, uop->d, exec, (const vu *)(const void *)r);
    NEXT;
}

#define R(op, ...) {BW_GFX11_##op, x_##op},
/* clang-format off */
static const struct bw_uop_row rows[] = {
    LOADS(R) HALF_LOADS(R) STORES(R) HALF_STORES(R)
    R(DS_LOAD_ADDTID_B32) R(DS_STORE_ADDTID_B32) R(DS_BPERMUTE_B32) R(DS_PERMUTE_B32) R(DS_SWIZZLE_B32)
    {BW_UOP_LDS_LOAD_PAIR_B32, x_LDS_LOAD_PAIR_B32}, {BW_UOP_LDS_LOAD_PAIR_B64, x_LDS_LOAD_PAIR_B64},
    {BW_UOP_LDS_LOAD_2ADDR_B32, x_LDS_LOAD_2ADDR_B32}, {BW_UOP_LDS_LOAD_2ADDR_B64, x_LDS_LOAD_2ADDR_B64},
};
/* clang-format on */
const struct bw_uop_table BW_LEVEL(bw_exec_lds) = {rows, sizeof rows / sizeof rows[0]};
