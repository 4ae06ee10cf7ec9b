#include "mock/isa/format.h"

#include <math.h>
#include <string.h>

/* In the document's names the last number is the lowest component. */
/* clang-format off */
#define ROW(name, kind, ...) {#name "_" #kind, BW_FORMAT_##kind, {__VA_ARGS__}}
#define INTEGERS(name, ...)                                              \
    ROW(name, UNORM, __VA_ARGS__), ROW(name, SNORM, __VA_ARGS__),        \
    ROW(name, USCALED, __VA_ARGS__), ROW(name, SSCALED, __VA_ARGS__),    \
    ROW(name, UINT, __VA_ARGS__), ROW(name, SINT, __VA_ARGS__)
#define WORDS(name, ...) \
    ROW(name, UINT, __VA_ARGS__), ROW(name, SINT, __VA_ARGS__), ROW(name, FLOAT, __VA_ARGS__)
const struct bw_format bw_formats[BW_FORMATS] = {
    {"INVALID", BW_FORMAT_UINT, {0}},
    INTEGERS(8, 8),
    INTEGERS(16, 16), ROW(16, FLOAT, 16),
    INTEGERS(8_8, 8, 8),
    WORDS(32, 32),
    INTEGERS(16_16, 16, 16), ROW(16_16, FLOAT, 16, 16),
    ROW(10_11_11, FLOAT, 11, 11, 10),
    ROW(11_11_10, FLOAT, 10, 11, 11),
    ROW(10_10_10_2, UNORM, 2, 10, 10, 10), ROW(10_10_10_2, SNORM, 2, 10, 10, 10),
    ROW(10_10_10_2, UINT, 2, 10, 10, 10), ROW(10_10_10_2, SINT, 2, 10, 10, 10),
    INTEGERS(2_10_10_10, 10, 10, 10, 2),
    INTEGERS(8_8_8_8, 8, 8, 8, 8),
    WORDS(32_32, 32, 32),
    INTEGERS(16_16_16_16, 16, 16, 16, 16), ROW(16_16_16_16, FLOAT, 16, 16, 16, 16),
    WORDS(32_32_32, 32, 32, 32),
    WORDS(32_32_32_32, 32, 32, 32, 32),
};
/* clang-format on */

unsigned bw_format_bytes(const struct bw_format *format)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < BW_FORMAT_COMPONENTS; i++)
        bits += format->bits[i];
    return bits / 8;
}

bool bw_format_is_float(const struct bw_format *format)
{
    return format->kind != BW_FORMAT_UINT && format->kind != BW_FORMAT_SINT;
}

static uint32_t of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

static float as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Floats of 5 exponent bits: 16-bit ones have 10 bits of mantissa and a sign, 11- and 10-bit ones 6 and 5 and
 * none. */
enum { SMALL_BIAS = 15, SMALL_EXPONENT_MAX = 31 };

static int mantissa_of(unsigned bits)
{
    return bits == 16 ? 10 : (int)bits - 5;
}

static float small_to_float(uint32_t small, unsigned bits)
{
    int mantissa_bits = mantissa_of(bits), exponent = (int)(small >> mantissa_bits & SMALL_EXPONENT_MAX);
    float mantissa = (float)(small & ((1u << mantissa_bits) - 1)), value;
    if (exponent == SMALL_EXPONENT_MAX)
        value = mantissa != 0 ? NAN : INFINITY;
    else if (exponent)
        value = ldexpf(mantissa + (float)(1 << mantissa_bits), exponent - SMALL_BIAS - mantissa_bits);
    else
        value = ldexpf(mantissa, 1 - SMALL_BIAS - mantissa_bits);
    return bits == 16 && small >> 15 ? -value : value;
}

/* To the nearest, or cut; an overflow that is cut stays finite. */
static uint32_t float_to_small(float value, unsigned bits, bool is_cut)
{
    int mantissa_bits = mantissa_of(bits), exponent;
    uint32_t infinity = (uint32_t)SMALL_EXPONENT_MAX << mantissa_bits;
    uint32_t sign = bits == 16 && signbit(value) ? 0x8000 : 0;
    float magnitude = fabsf(value);
    if (value != value)
        return infinity | 1u << (mantissa_bits - 1);
    if (bits != 16 && value < 0)
        return 0;
    if (magnitude == INFINITY || magnitude == 0)
        return sign | (magnitude == 0 ? 0 : infinity);
    (void)frexpf(magnitude, &exponent);
    exponent = exponent - 1 < 1 - SMALL_BIAS ? 1 - SMALL_BIAS : exponent - 1;
    float units = ldexpf(magnitude, mantissa_bits - exponent);
    uint32_t whole = (uint32_t)(is_cut ? truncf(units) : __builtin_roundevenf(units));
    /* a whole that has grown a bit carries into the exponent by itself */
    uint64_t small = whole + ((uint64_t)(uint32_t)(exponent + SMALL_BIAS - 1) << mantissa_bits);
    if (small >= infinity)
        return sign | (is_cut ? infinity - 1 : infinity);
    return sign | (uint32_t)small;
}

static int32_t sign_extended(uint32_t raw, unsigned bits)
{
    return (int32_t)(raw << (32 - bits)) >> (32 - bits);
}

static uint32_t component_loaded(const struct bw_format *format, uint32_t raw, unsigned bits)
{
    double unsigned_max = (double)((1ull << bits) - 1), signed_max = (double)((1ull << (bits - 1)) - 1),
           value;
    switch (format->kind) {
    case BW_FORMAT_UNORM:
        return of_float((float)(raw / unsigned_max));
    case BW_FORMAT_SNORM:
        value = sign_extended(raw, bits) / signed_max;
        return of_float((float)(value < -1 ? -1 : value));
    case BW_FORMAT_USCALED:
        return of_float((float)raw);
    case BW_FORMAT_SSCALED:
        return of_float((float)sign_extended(raw, bits));
    case BW_FORMAT_SINT:
        return (uint32_t)sign_extended(raw, bits);
    case BW_FORMAT_FLOAT:
        return bits == 32 ? raw : of_float(small_to_float(raw, bits));
    default:
        return raw;
    }
}

/* NaN becomes 0. */
static double clamped(double value, double low, double high)
{
    return !(value > low) ? (value <= low ? low : 0) : value > high ? high : value;
}

static uint32_t component_stored(const struct bw_format *format, uint32_t component, unsigned bits)
{
    uint32_t unsigned_max = (uint32_t)((1ull << bits) - 1);
    int32_t signed_max = (int32_t)(unsigned_max >> 1);
    double value = as_float(component);
    int64_t whole = (int32_t)component;
    switch (format->kind) {
    case BW_FORMAT_UNORM:
        return (uint32_t)__builtin_roundeven(clamped(value, 0, 1) * unsigned_max);
    case BW_FORMAT_SNORM:
        return (uint32_t)(int32_t)__builtin_roundeven(clamped(value, -1, 1) * signed_max);
    case BW_FORMAT_USCALED:
        return (uint32_t)__builtin_roundeven(clamped(value, 0, unsigned_max));
    case BW_FORMAT_SSCALED:
        return (uint32_t)(int32_t)__builtin_roundeven(clamped(value, -(double)signed_max - 1, signed_max));
    case BW_FORMAT_UINT:
        return component < unsigned_max ? component : unsigned_max;
    case BW_FORMAT_SINT:
        return (uint32_t)(whole > signed_max                 ? signed_max
                          : whole < -(int64_t)signed_max - 1 ? -signed_max - 1
                                                             : whole);
    default:
        return bits == 32 ? component : float_to_small(as_float(component), bits, false);
    }
}

void bw_format_load(const struct bw_format *format, const uint8_t *memory, uint32_t components[4])
{
    unsigned at = 0;
    memset(components, 0, BW_FORMAT_COMPONENTS * sizeof components[0]);
    for (unsigned i = 0; i < BW_FORMAT_COMPONENTS && format->bits[i]; i++) {
        unsigned bits = format->bits[i];
        uint32_t raw = 0;
        for (unsigned bit = 0; bit < bits; bit++, at++)
            raw |= (uint32_t)(memory[at / 8] >> at % 8 & 1) << bit;
        components[i] = component_loaded(format, raw, bits);
    }
}

void bw_format_store(const struct bw_format *format, const uint32_t components[4], uint8_t *memory)
{
    unsigned at = 0;
    memset(memory, 0, bw_format_bytes(format));
    for (unsigned i = 0; i < BW_FORMAT_COMPONENTS && format->bits[i]; i++) {
        uint32_t raw = component_stored(format, components[i], format->bits[i]);
        for (unsigned bit = 0; bit < format->bits[i]; bit++, at++)
            memory[at / 8] |= (uint8_t)((raw >> bit & 1) << at % 8);
    }
}

uint16_t bw_format_narrow(const struct bw_format *format, uint32_t component)
{
    bool is_single = format->kind == BW_FORMAT_FLOAT && format->bits[0] == 32;
    if (!bw_format_is_float(format))
        return (uint16_t)component;
    return (uint16_t)float_to_small(as_float(component), 16, is_single);
}

uint32_t bw_format_widen(const struct bw_format *format, uint16_t component)
{
    if (bw_format_is_float(format))
        return of_float(small_to_float(component, 16));
    return format->kind == BW_FORMAT_SINT ? (uint32_t)(int16_t)component : component;
}
