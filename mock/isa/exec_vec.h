/* Vector code that is compiled once per instruction-set level of the host (mock/sources.cmake): a register
 * half of 32 lanes is CHUNKS host vectors. Included by execution files only. Never depend on MXCSR:
 * bw_isa_run sets it. */
#ifndef BW_MOCK_ISA_EXEC_VEC_H
#define BW_MOCK_ISA_EXEC_VEC_H

#include <assert.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "mock/isa/uops.h"
#include "mock/isa/wave.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define BW_VECTOR_BYTES 64
#define BW_LEVEL(name)  name##_avx512
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define BW_VECTOR_BYTES 32
#define BW_LEVEL(name)  name##_avx2
#else
#define BW_VECTOR_BYTES 16
#define BW_LEVEL(name)  name##_base
#endif

enum { BW_CHUNK_LANES = BW_VECTOR_BYTES / 4, BW_CHUNKS = BW_LANES / BW_CHUNK_LANES };

typedef uint32_t vu __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef int32_t vi __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef float vf __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef uint64_t vq __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef int64_t vqi __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef double vd __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef uint16_t vh __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef int16_t vhi __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));
typedef uint8_t vb __attribute__((vector_size(BW_VECTOR_BYTES), may_alias));

/* Going on with the next uop. NEXT is a tail call: only where no address of a local variable has escaped, for
 * then the compiler keeps the frame and the stack grows with every instruction. STEP goes through the driver
 * loop, always safe. */
#define STEP return uop + 1
#if defined(__OPTIMIZE__) && !defined(BW_SANITIZED)
#define NEXT return uop[1].run(wave, uop + 1)
#define GO(target_uop)                           \
    do {                                         \
        const struct bw_uop *go_ = (target_uop); \
        return go_->run(wave, go_);              \
    } while (0)
#else
#define NEXT           STEP
#define GO(target_uop) return (target_uop)
#endif

#define UNROLL        _Pragma("GCC unroll 32")
#define EACH_CHUNK    UNROLL for (int i = 0; i < BW_CHUNKS; i++)
#define HANDLER(name) static const struct bw_uop *name(struct bw_wave *wave, const struct bw_uop *uop)

#define ALL_LANES 0xffffffffu

static inline uint32_t exec_of(const struct bw_wave *wave, const struct bw_uop *uop)
{
    return *BW_AT(const uint32_t, wave, uop->x);
}

static inline vu splat(uint32_t value)
{
    return (vu){0} + value;
}

static inline vf splat_f(float value)
{
    return (vf){0} + value;
}

#if BW_VECTOR_BYTES == 64
#define VU_IOTA ((vu){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#elif BW_VECTOR_BYTES == 32
#define VU_IOTA ((vu){0, 1, 2, 3, 4, 5, 6, 7})
#else
#define VU_IOTA ((vu){0, 1, 2, 3})
#endif

/* The bits of mask for chunk i, lowest lane first. */
static inline uint32_t chunk_bits(uint32_t mask, int i)
{
    return BW_CHUNK_LANES == 32 ? mask : (mask >> (BW_CHUNK_LANES * i)) & ((1u << BW_CHUNK_LANES) - 1);
}

/* All ones in the lanes whose bit is set. */
static inline vu lanes_of(uint32_t mask, int i)
{
#if BW_VECTOR_BYTES == 64
    return (vu)_mm512_movm_epi32((__mmask16)(mask >> (16 * i)));
#else
    const vu bits = splat(1) << VU_IOTA;
    return (vu)((splat(mask >> (BW_CHUNK_LANES * i)) & bits) != 0);
#endif
}

static inline vu blend(uint32_t mask, int i, vu when_set, vu when_clear)
{
#if BW_VECTOR_BYTES == 64
    return (vu)_mm512_mask_blend_epi32((__mmask16)(mask >> (16 * i)), (__m512i)when_clear, (__m512i)when_set);
#else
    vu lanes = lanes_of(mask, i);
    return (when_set & lanes) | (when_clear & ~lanes);
#endif
}

static inline vu select_u(vi condition, vu yes, vu no)
{
    return ((vu)condition & yes) | (~(vu)condition & no);
}

static inline vf select_f(vi condition, vf yes, vf no)
{
    return (vf)select_u(condition, (vu)yes, (vu)no);
}

/* One bit per lane from the sign bits of a comparison's result. */
static inline uint32_t bits_of(vi condition)
{
#if BW_VECTOR_BYTES == 64
    return _mm512_movepi32_mask((__m512i)condition);
#elif BW_VECTOR_BYTES == 32
    return (uint32_t)_mm256_movemask_ps((__m256)condition);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps((__m128)condition);
#else
    uint32_t bits = 0;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        bits |= (uint32_t)(condition[lane] < 0) << lane;
    return bits;
#endif
}

/* Comparisons straight to bits: the compiler makes a detour over vectors where the host has masks. */
static inline uint32_t below_bits(vu a, vu b)
{
#if BW_VECTOR_BYTES == 64
    return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b);
#else
    return bits_of((vi)(a < b));
#endif
}

static inline uint32_t equal_bits(vu a, vu b)
{
#if BW_VECTOR_BYTES == 64
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
#else
    return bits_of((vi)(a == b));
#endif
}

static inline uint32_t unordered_bits(vf a, vf b)
{
#if BW_VECTOR_BYTES == 64
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
#else
    return bits_of((a != a) | (b != b));
#endif
}

/* a + 1 in the lanes of chunk i whose bit is set. */
static inline vu add_bits(vu a, uint32_t mask, int i)
{
#if BW_VECTOR_BYTES == 64
    return (vu)_mm512_mask_add_epi32((__m512i)a, (__mmask16)(mask >> (16 * i)), (__m512i)a,
                                     _mm512_set1_epi32(1));
#else
    return a - lanes_of(mask, i);
#endif
}

/* Fused multiply-add, one rounding. */
static inline vf fma_f(vf a, vf b, vf c)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = fmaf(a[lane], b[lane], c[lane]);
    return r;
#endif
}

/* Writes a result register: under EXEC, with the common case of all lanes first. */
static inline void write_lanes(struct bw_wave *wave, int32_t offset, uint32_t exec, const vu *result)
{
    vu *d = BW_AT(vu, wave, offset);
    if (__builtin_expect(exec == ALL_LANES, 1)) {
        EACH_CHUNK d[i] = result[i];
    } else {
        EACH_CHUNK d[i] = blend(exec, i, result[i], d[i]);
    }
}

/* A scalar register and its shadow. */
static inline void write_scalar(struct bw_wave *wave, int32_t offset, uint32_t value)
{
    *BW_AT(uint32_t, wave, offset) = value;
    vu *shadow = BW_AT(vu, wave, BW_OFFSET_SHADOW(0) + (offset - BW_OFFSET_SGPR(0)) * BW_LANES);
    EACH_CHUNK shadow[i] = splat(value);
}

static inline void write_scalar64(struct bw_wave *wave, int32_t offset, uint64_t value)
{
    write_scalar(wave, offset, (uint32_t)value);
    write_scalar(wave, offset + 4, (uint32_t)(value >> 32));
}

static inline uint32_t scalar(const struct bw_wave *wave, int32_t offset)
{
    return *BW_AT(const uint32_t, wave, offset);
}

#endif
