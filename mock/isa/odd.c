/* Vector operations that compute kernels hardly use: plain loops over the lanes, one table for all levels of
 * the host. RDNA3 Shader ISA document, sections 16.7, 16.12. */
#include <math.h>
#include <string.h>

#include "mock/isa/division.h"
#include "mock/isa/program.h"
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

/* 0..255, rounded as MODE says: what rocjitsu (rocm-systems, shared/conversion.h) reports of gfx1201; of
 * gfx11 nobody says. */
static uint32_t byte_of(float a, unsigned rounding)
{
    float whole = rounding == 0 ? __builtin_roundevenf(a) : rounding == 1 ? ceilf(a) : floorf(a);
    return !(a > 0) ? 0 : whole >= 255 ? 255 : (uint32_t)whole;
}

/* One byte of c replaced by a. */
HANDLER(x_V_CVT_PK_U8_F32)
{
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        float value = float_at(wave, uop->a, lane);
        unsigned shift = 8 * (word_at(wave, uop->b, lane) & 3);
        uint32_t byte = byte_of(value, wave->mode & 3);
        uint32_t rest = word_at(wave, uop->c, lane) & ~(255u << shift);
        if (is_on(wave, uop, lane))
            BW_AT(uint32_t, wave, uop->d)[lane] = rest | byte << shift;
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

/* V_TRIG_PREOP_F64. The ISA document has 1201 bits of 2 / pi; what the hardware keeps of them, and that
 * results are cut, rocjitsu (rocm-systems, shared/trig_preop.h) reports of gfx1100. */
enum { KEPT_BITS = 1184 };
static const uint64_t two_over_pi[19] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
    0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
    0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
    0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull,
};

/* 53 bits of it from bit `shift` on. */
static uint64_t bits_of_two_over_pi(unsigned shift)
{
    enum { RESULT_BITS = 53 };
    uint64_t r = 0;
    for (unsigned i = 0; i < RESULT_BITS; i++) {
        unsigned bit = shift + i;
        r = r << 1 | (bit < KEPT_BITS ? two_over_pi[bit / 64] >> (63 - bit % 64) & 1 : 0);
    }
    return r;
}

static double trig_preop(uint64_t a, uint32_t segment)
{
    enum { LEAST = -1074 };
    int exponent = (int)(a >> 52 & 2047);
    unsigned shift = (segment & 31) * 53;
    if (exponent > 1077)
        shift += (unsigned)exponent - 1077;
    int scale = -53 - (int)shift + (exponent >= 1968 ? 128 : 0), lost = LEAST - scale;
    uint64_t bits = bits_of_two_over_pi(shift);
    if (lost > 0)
        bits = lost > 63 ? 0 : bits >> lost << lost;
    return ldexp((double)bits, scale);
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

/* The output modifier omod: a step of the exponent. Section 7.2.3.1; what becomes of denormals and of
 * overflow is what rocjitsu (rocm-systems, shared/output_modifier.h) reports of four generations, for a part
 * of it gfx1100: zero and denormals become +0, halving the smallest gives zero of its sign, overflow follows
 * MODE. */
static uint64_t scaled(const struct bw_division_format *f, uint64_t bits, unsigned omod, unsigned rounding,
                       bool keep_finite)
{
    enum { HALVES = 3 };
    int field = bw_division_field(f, bits), last = 2 * f->bias + 1;
    uint64_t unit = 1ull << f->fraction_bits, sign = bits & f->sign;
    if (field == 0 || field == last)
        return field ? bits : 0;
    if (omod == HALVES)
        return field == 1 ? sign : bits - unit;
    if (field + (int)omod >= last)
        return keep_finite ? sign | (bw_division_infinity(f) - 1) : bw_division_overflow(f, sign, rounding);
    return bits + omod * unit;
}

/* a to d; e: omod, f: type, g: rounding. */
HANDLER(x_SCALE_RESULT)
{
    static const struct bw_division_format half = {.fraction_bits = 10, .bias = 15, .sign = 0x8000};
    bool is_wide = uop->f == BW_T_F64, is_half = uop->f == BW_T_F16;
    const struct bw_division_format *f = is_wide   ? &bw_division_double
                                         : is_half ? &half
                                                   : &bw_division_single;
    bool keep_finite = is_half && (wave->mode & BW_MODE_FP16_OVFL);
    for (unsigned lane = 0; lane < BW_LANES; lane++) {
        uint64_t bits = is_wide ? wide_at(wave, uop->a, lane) : word_at(wave, uop->a, lane);
        bits = scaled(f, is_half ? bits & 0xffff : bits, (unsigned)uop->e, (unsigned)uop->g, keep_finite);
        BW_AT(uint32_t, wave, uop->d)[lane] = (uint32_t)bits;
        if (is_wide)
            BW_AT(uint32_t, wave, uop->d)[lane + BW_LANES] = (uint32_t)(bits >> 32);
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
    {BW_UOP_SCALE_RESULT, x_SCALE_RESULT},
};
/* clang-format on */
const struct bw_uop_table bw_plain_odd = {rows, sizeof rows / sizeof rows[0]};
