/* Rounding to an integer in single precision, by direction; shared by the float, half and transcendental
 * operations. */
#ifndef BW_MOCK_ISA_EXEC_ROUND_H
#define BW_MOCK_ISA_EXEC_ROUND_H

#include "mock/isa/exec_vec.h"

static inline vf truncated(vf a)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = truncf(a[lane]);
    return r;
#endif
}

static inline vf rounded_even(vf a)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = __builtin_roundevenf(a[lane]);
    return r;
#endif
}

static inline vf floored(vf a)
{
#if BW_VECTOR_BYTES == 64
    return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#elif BW_VECTOR_BYTES == 32
    return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#else
    vf r;
    for (int lane = 0; lane < BW_CHUNK_LANES; lane++)
        r[lane] = copysignf(floorf(a[lane]), a[lane]); /* what the compiler makes of it may lose a sign */
    return r;
#endif
}

static inline vf ceiled(vf a)
{
    return (vf)((vu)floored((vf)((vu)a ^ 0x80000000u)) ^ 0x80000000u);
}

#endif
