/* Operations that only this GPU has: special functions, lane exchange, dot products, byte tricks, matrices, buffers. */
#include "corpus.h"

KERNEL void special_f32(__global float *out, __global const float *a, __global const float *b)
{
    uint i = global_index();
    float x = a[i], y = b[i];
    __global float *o = out + 20 * i;
    o[0] = __builtin_amdgcn_rcpf(x);
    o[1] = __builtin_amdgcn_rsqf(x);
    o[2] = __builtin_amdgcn_sqrtf(x);
    o[3] = __builtin_amdgcn_exp2f(y);
    o[4] = __builtin_amdgcn_logf(x);
    o[5] = __builtin_amdgcn_sinf(y);
    o[6] = __builtin_amdgcn_cosf(y);
    o[7] = __builtin_amdgcn_fractf(y);
    o[8] = __builtin_amdgcn_ldexpf(x, (int)i - 32);
    o[9] = __builtin_amdgcn_frexp_mantf(x);
    o[10] = (float)__builtin_amdgcn_frexp_expf(x);
    o[11] = __builtin_amdgcn_fmed3f(x, y, 0.25f);
    o[12] = __builtin_amdgcn_cubeid(x, y, 1.0f);
    o[13] = __builtin_amdgcn_cubesc(x, y, 1.0f) + __builtin_amdgcn_cubetc(x, y, 1.0f) + __builtin_amdgcn_cubema(x, y, 1.0f);
    o[14] = __builtin_amdgcn_fmed3f(-x, __builtin_elementwise_abs(y), 3.0f);
    o[15] = __builtin_amdgcn_class(x, 0x1f8) ? 1.0f : 0.0f;
    o[16] = __builtin_amdgcn_div_fixupf(x, y, 2.0f);
    o[17] = __builtin_amdgcn_div_fmasf(x, y, 2.0f, i & 1);
    o[18] = __builtin_amdgcn_rcpf(__builtin_elementwise_abs(x)) * -y;
    bool flag;
    o[19] = __builtin_amdgcn_div_scalef(x, y, true, &flag) + (flag ? 1.0f : 0.0f);
}

KERNEL void special_f64(__global double *out, __global const double *a, __global const double *b)
{
    uint i = global_index();
    double x = a[i], y = b[i];
    __global double *o = out + 10 * i;
    o[0] = __builtin_amdgcn_rcp(x);
    o[1] = __builtin_amdgcn_rsq(x);
    o[2] = __builtin_amdgcn_sqrt(x);
    o[3] = __builtin_amdgcn_fract(y);
    o[4] = __builtin_amdgcn_ldexp(x, (int)i - 40);
    o[5] = __builtin_amdgcn_frexp_mant(x) * 3.0;
    o[6] = (double)__builtin_amdgcn_frexp_exp(x);
    o[7] = __builtin_amdgcn_trig_preop(x, (int)(i & 15));
    o[8] = __builtin_amdgcn_div_fixup(x, y, 2.0);
    bool flag;
    o[9] = __builtin_amdgcn_div_scale(x, y, false, &flag) + __builtin_amdgcn_div_fmas(x, y, 1.0, flag);
}

KERNEL void special_f16(__global half *out, __global const half *a, __global const half *b)
{
    uint i = global_index();
    half x = a[i], y = b[i];
    __global half *o = out + 10 * i;
    o[0] = __builtin_amdgcn_rcph(x);
    o[1] = __builtin_amdgcn_rsqh(x);
    o[2] = __builtin_amdgcn_sqrth(x);
    o[3] = __builtin_amdgcn_sinh(y);
    o[4] = __builtin_amdgcn_cosh(y);
    o[5] = __builtin_amdgcn_fracth(y);
    o[6] = __builtin_amdgcn_ldexph(x, (int)i - 32);
    o[7] = __builtin_amdgcn_frexp_manth(x) + (half)__builtin_amdgcn_frexp_exph(x);
    o[8] = __builtin_amdgcn_fmed3h(x, y, (half)0.25f);
    o[9] = __builtin_amdgcn_div_fixuph(x, y, (half)2) + (__builtin_amdgcn_classh(x, 0x60) ? (half)1 : (half)0);
}

/* What clang makes of the C functions that it lowers without a library. */
KERNEL void lowered_math(__global float *out, __global double *out_wide, __global const float *a)
{
    uint i = global_index();
    float x = a[i];
    __global float *o = out + 10 * i;
    o[0] = __builtin_sqrtf(x);
    o[1] = __builtin_exp2f(x);
    o[2] = __builtin_log2f(x);
    o[3] = __builtin_expf(x);
    o[4] = __builtin_logf(x);
    o[5] = __builtin_log10f(x);
    o[6] = __builtin_sinf(x) + __builtin_cosf(x);
    o[7] = __builtin_roundf(x) - __builtin_rintf(x);
    o[8] = 1.0f / __builtin_sqrtf(x);
    o[9] = __builtin_fmodf(x, 3.0f);
    out_wide[2 * i] = __builtin_sqrt((double)x);
    out_wide[2 * i + 1] = __builtin_round((double)x) + 1.0 / (double)x;
}

KERNEL void bytes_and_bits(__global uint *out, __global const uint *a, __global const uint *b)
{
    uint i = global_index();
    uint x = a[i], y = b[i];
    __global uint *o = out + 16 * i;
    o[0] = __builtin_amdgcn_perm(x, y, 0x07020c00);
    o[1] = __builtin_amdgcn_alignbit(x, y, i);
    o[2] = __builtin_amdgcn_alignbyte(x, y, i);
    o[3] = __builtin_amdgcn_sad_u8(x, y, 5);
    o[4] = __builtin_amdgcn_sad_hi_u8(x, y, 5);
    o[5] = __builtin_amdgcn_sad_u16(x, y, i);
    o[6] = __builtin_amdgcn_msad_u8(x, y, 9);
    o[7] = __builtin_amdgcn_lerp(x, y, 0x01000100);
    o[8] = __builtin_amdgcn_ubfe(x, y, 9);
    o[9] = (uint)__builtin_amdgcn_sbfe((int)x, y, 11);
    o[10] = __builtin_amdgcn_mbcnt_hi(x, __builtin_amdgcn_mbcnt_lo(y, 3));
    o[11] = __builtin_amdgcn_cvt_pk_u8_f32((float)(x & 255), y & 3, 0x11223344);
    ulong q = __builtin_amdgcn_qsad_pk_u16_u8((ulong)x << 20 | y, y, 77);
    ulong m = __builtin_amdgcn_mqsad_pk_u16_u8((ulong)x << 20 | y, y, 77);
    o[12] = (uint)q;
    o[13] = (uint)(q >> 32);
    o[14] = (uint)m;
    o[15] = (uint)(m >> 32);
}

KERNEL void packed_conversions(__global uint *out, __global const float *a, __global const int *b)
{
    uint i = global_index();
    float x = a[2 * i], y = a[2 * i + 1];
    out[6 * i] = __builtin_bit_cast(uint, __builtin_amdgcn_cvt_pkrtz(x, y));
    out[6 * i + 1] = __builtin_bit_cast(uint, __builtin_amdgcn_cvt_pknorm_i16(x, y));
    out[6 * i + 2] = __builtin_bit_cast(uint, __builtin_amdgcn_cvt_pknorm_u16(x, y));
    out[6 * i + 3] = __builtin_bit_cast(uint, __builtin_amdgcn_cvt_pk_i16(b[i], b[i] >> 8));
    out[6 * i + 4] = __builtin_bit_cast(uint, __builtin_amdgcn_cvt_pk_u16((uint)b[i], (uint)b[i] >> 12));
    out[6 * i + 5] = __builtin_bit_cast(uint, (half2)((half)x, (half)y));
}

KERNEL void lane_exchange(__global uint *out, __global const uint *a)
{
    uint i = global_index(), l = local_index();
    uint x = a[i];
    __global uint *o = out + 14 * i;
    o[0] = __builtin_amdgcn_readfirstlane(x);
    o[1] = __builtin_amdgcn_readlane(x, 5);
    o[2] = __builtin_amdgcn_ds_bpermute((int)((l * 7 & 31) << 2), (int)x);
    o[3] = __builtin_amdgcn_ds_permute((int)((l ^ 3) << 2), (int)x);
    o[4] = __builtin_amdgcn_ds_swizzle((int)x, 0x041f); /* SWAP,1 */
    o[5] = __builtin_amdgcn_ds_swizzle((int)x, 0x8000 | 0x1b);
    o[6] = __builtin_amdgcn_update_dpp(x, x, 0x1b, 0xf, 0xf, false);
    o[7] = __builtin_amdgcn_update_dpp(0, x, 0x111, 0xf, 0xf, true);
    o[8] = __builtin_amdgcn_update_dpp(9, x, 0x140, 0x5, 0x3, false);
    o[9] = __builtin_amdgcn_mov_dpp(x, 0x121, 0xf, 0xf, true);
    o[10] = __builtin_amdgcn_mov_dpp8(x, 0xfac688);
    o[11] = __builtin_amdgcn_permlane16(x, x, 0x76543210, 0xfedcba98, false, false);
    o[12] = __builtin_amdgcn_permlanex16(x, x, 0x01234567, 0x89abcdef, false, true);
    o[13] = (uint)__builtin_amdgcn_permlane64((int)x);
}

/* Reductions over a wave, with DPP folded into the additions. */
KERNEL void wave_scan(__global uint *out, __global float *out_float, __global const uint *a)
{
    uint i = global_index();
    uint x = a[i];
    float f = (float)(x & 255);
    x += __builtin_amdgcn_update_dpp(0u, x, 0x111, 0xf, 0xf, true);
    x += __builtin_amdgcn_update_dpp(0u, x, 0x112, 0xf, 0xf, true);
    x += __builtin_amdgcn_update_dpp(0u, x, 0x114, 0xf, 0xf, true);
    x += __builtin_amdgcn_update_dpp(0u, x, 0x118, 0xf, 0xf, true);
    uint bits = (uint)__builtin_amdgcn_update_dpp(0, (int)__builtin_bit_cast(uint, f), 0x141, 0xf, 0xf, true);
    f = __builtin_elementwise_max(f, __builtin_bit_cast(float, bits));
    bits = (uint)__builtin_amdgcn_mov_dpp8((int)__builtin_bit_cast(uint, f), 0x53977);
    f += __builtin_bit_cast(float, bits);
    out[i] = x;
    out_float[i] = f;
}

KERNEL void ballots(__global uint *out, __global const uint *a)
{
    uint i = global_index();
#if __AMDGCN_WAVEFRONT_SIZE == 32
    uint odd = __builtin_amdgcn_ballot_w32(a[i] & 1);
#else
    ulong both = __builtin_amdgcn_ballot_w64(a[i] & 1);
    uint odd = (uint)both ^ (uint)(both >> 32);
#endif
    out[3 * i] = odd;
    out[3 * i + 1] = a[i] > 7 ? __builtin_amdgcn_readfirstlane(a[i]) : 0;
    out[3 * i + 2] = __builtin_amdgcn_mbcnt_lo(odd, 0);
}

KERNEL void dot_products(__global int *out, __global float *out_float, __global const int *a, __global const int *b,
                         __global const half2 *c)
{
    uint i = global_index();
    int x = a[i], y = b[i];
    out[6 * i] = __builtin_amdgcn_sudot4(true, x, true, y, 3, false);
    out[6 * i + 1] = __builtin_amdgcn_sudot4(false, x, true, y, 3, true);
    out[6 * i + 2] = (int)__builtin_amdgcn_udot4((uint)x, (uint)y, 3u, false);
    out[6 * i + 3] = __builtin_amdgcn_sudot8(true, x, false, y, 5, false);
    out[6 * i + 4] = (int)__builtin_amdgcn_udot8((uint)x, (uint)y, 5u, true);
    out[6 * i + 5] = x;
    out_float[3 * i] = __builtin_amdgcn_fdot2(c[i], c[i].yx, 0.5f, false);
    out_float[3 * i + 1] = (float)__builtin_amdgcn_fdot2_f16_f16(c[i], c[i], (half)1);
    short2 p = __builtin_bit_cast(short2, x), q = __builtin_bit_cast(short2, y);
    out_float[3 * i + 2] = __builtin_amdgcn_fdot2_f32_bf16(p, q, 0.25f, false);
}

typedef half half16_t __attribute__((ext_vector_type(16)));
typedef short short16_t __attribute__((ext_vector_type(16)));

#if __AMDGCN_WAVEFRONT_SIZE == 32
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w32
typedef float8 acc_float;
typedef int8 acc_int;
typedef half16_t acc_half;
typedef short16_t acc_short;
#else
#define WMMA(name) __builtin_amdgcn_wmma_##name##_w64
typedef float4 acc_float;
typedef int4 acc_int;
typedef half8 acc_half;
typedef short8 acc_short;
#endif

KERNEL void matrices(__global acc_float *out, __global acc_half *out_half, __global acc_int *out_int,
                     __global const half16_t *a, __global const half16_t *b, __global const acc_float *c)
{
    uint i = global_index();
    acc_float sum = WMMA(f32_16x16x16_f16)(a[i], b[i], c[i]);
    short16_t x = __builtin_bit_cast(short16_t, a[i]), y = __builtin_bit_cast(short16_t, b[i]);
    sum = WMMA(f32_16x16x16_bf16)(x, y, sum);
    out[i] = sum;
    acc_half small = out_half[2 * i];
    out_half[2 * i] = WMMA(f16_16x16x16_f16)(a[i], b[i], small, true);
    acc_short bf = __builtin_bit_cast(acc_short, small);
    out_half[2 * i + 1] = __builtin_bit_cast(acc_half, WMMA(bf16_16x16x16_bf16)(x, y, bf, false));
    int4 bytes = __builtin_bit_cast(int8, a[i]).lo, more = __builtin_bit_cast(int8, b[i]).hi;
    acc_int whole = WMMA(i32_16x16x16_iu8)(true, bytes, false, more, out_int[2 * i], true);
    out_int[2 * i] = whole;
    out_int[2 * i + 1] = WMMA(i32_16x16x16_iu4)(false, bytes.xy, true, more.zw, whole, false);
}

KERNEL void buffers(__global uint *out, __global void *base, int bytes)
{
    uint i = global_index();
    __amdgpu_buffer_rsrc_t buffer = __builtin_amdgcn_make_buffer_rsrc(base, 0, bytes, 0x31014000);
    uint one = __builtin_amdgcn_raw_buffer_load_b32(buffer, (int)i * 4, 0, 0);
    uint2 two = __builtin_amdgcn_raw_buffer_load_b64(buffer, (int)i * 8, 16, 0);
    uint3 three = __builtin_amdgcn_raw_buffer_load_b96(buffer, (int)i * 12, 0, 1);
    uint4 four = __builtin_amdgcn_raw_buffer_load_b128(buffer, (int)i * 16, bytes / 2, 0);
    ushort small = __builtin_amdgcn_raw_buffer_load_b16(buffer, (int)i * 2, 0, 0);
    uchar tiny = __builtin_amdgcn_raw_buffer_load_b8(buffer, (int)i + 3, 0, 2);
    out[i] = one + two.y + three.z + four.w + small + tiny;
    __builtin_amdgcn_raw_buffer_store_b32(one + 1, buffer, (int)i * 4, 0, 0);
    __builtin_amdgcn_raw_buffer_store_b8(tiny, buffer, (int)i, 64, 0);
    __builtin_amdgcn_raw_buffer_store_b128(four, buffer, (int)i * 16 + 1024, 0, 0);
}

KERNEL void system_registers(__global ulong *out)
{
    uint i = global_index();
    out[8 * i] = __builtin_readcyclecounter();
    out[8 * i + 1] = __builtin_readsteadycounter();
    out[8 * i + 2] = __builtin_amdgcn_s_getreg(1 | 31 << 11);
    out[8 * i + 3] = __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_grid_size_x();
    out[8 * i + 4] = __builtin_amdgcn_workgroup_id_y() + __builtin_amdgcn_workitem_id_z();
    out[8 * i + 5] = (ulong)__builtin_amdgcn_groupstaticsize();
    out[8 * i + 6] = __builtin_amdgcn_read_exec();
    __builtin_amdgcn_s_setprio(1);
    __builtin_amdgcn_s_sleep(2);
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_s_waitcnt(0);
    out[8 * i + 7] = (ulong)__builtin_amdgcn_s_sendmsg_rtnl(0x83);
}
