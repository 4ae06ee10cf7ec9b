/* Vector operations that compute kernels hardly use: plain loops over the lanes, one table for all levels of
 * the host. RDNA3 Shader ISA document, sections 16.7, 16.12. */
#include <math.h>
#include <string.h>

#include "mock/isa/uops.h"

#define HANDLER(name) static const struct bw_uop *name(struct bw_wave *wave, const struct bw_uop *uop)

static bool is_on(const struct bw_wave *wave, const struct bw_uop *uop, unsigned lane)
{
    return *BW_AT(const uint32_t, wave, uop->x) >> lane & 1;
}

static float float_at(const struct bw_wave *wave, int32_t offset, unsigned lane)
{
    return BW_AT(const float, wave, offset)[lane];
}

static uint32_t word_at(const struct bw_wave *wave, int32_t offset, unsigned lane)
{
    return BW_AT(const uint32_t, wave, offset)[lane];
}

static uint64_t wide_at(const struct bw_wave *wave, int32_t offset, unsigned lane)
{
    return word_at(wave, offset, lane) | (uint64_t)word_at(wave, offset, lane + BW_LANES) << 32;
}

/* Which axis of the cube map (x, y, z) points out. */
enum axis { AXIS_X, AXIS_Y, AXIS_Z };

static enum axis major_axis(float x, float y, float z)
{
    if (fabsf(z) >= fabsf(x) && fabsf(z) >= fabsf(y))
        return AXIS_Z;
    return fabsf(y) >= fabsf(x) ? AXIS_Y : AXIS_X;
}

static float cube_id(float x, float y, float z)
{
    switch (major_axis(x, y, z)) {
    case AXIS_Z:
        return z < 0 ? 5 : 4;
    case AXIS_Y:
        return y < 0 ? 3 : 2;
    default:
        return x < 0 ? 1 : 0;
    }
}

static float cube_s(float x, float y, float z)
{
    switch (major_axis(x, y, z)) {
    case AXIS_Z:
        return z < 0 ? -x : x;
    case AXIS_Y:
        return x;
    default:
        return x < 0 ? z : -z;
    }
}

static float cube_t(float x, float y, float z)
{
    if (major_axis(x, y, z) == AXIS_Y)
        return y < 0 ? -z : z;
    return -y;
}

static float cube_major(float x, float y, float z)
{
    enum axis axis = major_axis(x, y, z);
    return 2 * (axis == AXIS_Z ? z : axis == AXIS_Y ? y : x);
}

static float mullit(float a, float b, float c)
{
    const float most_negative = -0x1.fffffep127f;
    return b == most_negative || b == -INFINITY || b != b || !(c > 0) ? most_negative : a * b;
}

#define FLOAT_3(op, function)                                                              \
    HANDLER(x_##op)                                                                        \
    {                                                                                      \
        for (unsigned lane = 0; lane < BW_LANES; lane++) {                                 \
            float r = function(float_at(wave, uop->a, lane), float_at(wave, uop->b, lane), \
                               float_at(wave, uop->c, lane));                              \
            if (is_on(wave, uop, lane))                                                    \
                BW_AT(float, wave, uop->d)[lane] = r;                                      \
        }                                                                                  \
        return uop + 1;                                                                    \
    }
FLOAT_3(V_CUBEID_F32, cube_id)
FLOAT_3(V_CUBESC_F32, cube_s)
FLOAT_3(V_CUBETC_F32, cube_t)
FLOAT_3(V_CUBEMA_F32, cube_major)
FLOAT_3(V_MULLIT_F32, mullit)

/* One byte of c replaced by a as an integer of 0..255. */
HANDLER(x_V_CVT_PK_U8_F32)
{
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        float value = float_at(wave, uop->a, lane);
        unsigned shift = 8 * (word_at(wave, uop->b, lane) & 3);
        uint32_t byte = !(value > 0) ? 0 : value >= 255 ? 255 : (uint32_t)value;
        if (is_on(wave, uop, lane))
            BW_AT(uint32_t, wave, uop->d)
        [lane] = (word_at(wave, uop->c, lane) & ~(255u << shift)) | byte << shift;
    }
    return uop + 1;
}

/* Sum of absolute differences of four bytes; masked: a byte of b that is 0 does not count. */
static uint32_t sad_u8(uint32_t a, uint32_t b, uint32_t sum, bool masked)
{
    for (unsigned shift = 0; shift < 32; shift += 8) {
        uint32_t x = a >> shift & 255, y = b >> shift & 255;
        if (!masked || y)
            sum += x > y ? x - y : y - x;
    }
    return sum;
}

static void quad_sad(struct bw_wave *wave, const struct bw_uop *uop, bool masked)
{
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        uint64_t a = wide_at(wave, uop->a, lane), c = wide_at(wave, uop->c, lane), r = 0;
        uint32_t b = word_at(wave, uop->b, lane);
        for (unsigned i = 0; i < 4; i++)
            r |= (uint64_t)(uint16_t)sad_u8((uint32_t)(a >> (8 * i)), b, (uint32_t)(c >> (16 * i) & 0xffff),
                                            masked)
                 << (16 * i);
        if (is_on(wave, uop, lane)) {
            BW_AT(uint32_t, wave, uop->d)[lane] = (uint32_t)r;
            BW_AT(uint32_t, wave, uop->d)[lane + BW_LANES] = (uint32_t)(r >> 32);
        }
    }
}

HANDLER(x_V_QSAD_PK_U16_U8)
{
    quad_sad(wave, uop, false);
    return uop + 1;
}

HANDLER(x_V_MQSAD_PK_U16_U8)
{
    quad_sad(wave, uop, true);
    return uop + 1;
}

HANDLER(x_V_MQSAD_U32_U8)
{
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        uint64_t a = wide_at(wave, uop->a, lane);
        uint32_t b = word_at(wave, uop->b, lane), r[4];
        for (unsigned i = 0; i < 4; i++)
            r[i] = sad_u8((uint32_t)(a >> (8 * i)), b, word_at(wave, uop->c, lane + i * BW_LANES), true);
        for (unsigned i = 0; is_on(wave, uop, lane) && i < 4; i++)
            BW_AT(uint32_t, wave, uop->d)[lane + i * BW_LANES] = r[i];
    }
    return uop + 1;
}

/* The first 1216 bits of 2 / pi behind the point. */
static const uint64_t two_over_pi[19] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
    0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
    0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
};

/* 53 bits of it from bit `shift` on; zeros beyond the 1201 that the hardware keeps. */
static uint64_t bits_of_two_over_pi(unsigned shift)
{
    enum { KEPT_BITS = 1201, RESULT_BITS = 53 };
    uint64_t r = 0;
    for (unsigned i = 0; i < RESULT_BITS; i++) {
        unsigned bit = shift + i;
        r = r << 1 | (bit < KEPT_BITS ? two_over_pi[bit / 64] >> (63 - bit % 64) & 1 : 0);
    }
    return r;
}

static double trig_preop(uint64_t a, uint32_t segment)
{
    int exponent = (int)(a >> 52 & 2047);
    unsigned shift = (segment & 31) * 53;
    if (exponent > 1077)
        shift += (unsigned)exponent - 1077;
    int scale = -53 - (int)shift + (exponent >= 1968 ? 128 : 0);
    return ldexp((double)bits_of_two_over_pi(shift), scale);
}

HANDLER(x_V_TRIG_PREOP_F64)
{
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        double r = trig_preop(wide_at(wave, uop->a, lane), word_at(wave, uop->b, lane));
        uint64_t bits;
        memcpy(&bits, &r, 8);
        if (is_on(wave, uop, lane)) {
            BW_AT(uint32_t, wave, uop->d)[lane] = (uint32_t)bits;
            BW_AT(uint32_t, wave, uop->d)[lane + BW_LANES] = (uint32_t)(bits >> 32);
        }
    }
    return uop + 1;
}

#define R(op)                 \
    {                         \
        BW_GFX11_##op, x_##op \
    }
/* clang-format off */
static const struct bw_uop_row rows[] = {
    R(V_CUBEID_F32), R(V_CUBESC_F32), R(V_CUBETC_F32), R(V_CUBEMA_F32), R(V_MULLIT_F32), R(V_CVT_PK_U8_F32),
    R(V_QSAD_PK_U16_U8), R(V_MQSAD_PK_U16_U8), R(V_MQSAD_U32_U8), R(V_TRIG_PREOP_F64),
};
/* clang-format on */
const struct bw_uop_table bw_plain_odd = {rows, sizeof rows / sizeof rows[0]};
