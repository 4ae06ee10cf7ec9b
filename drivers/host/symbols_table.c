/* Names that objects for the host may use, and nothing else: see host.h. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/host/object.h"

/* Half and bfloat conversions that compilers call on CPUs without F16C. Half and bfloat travel in the low
 * bits of xmm0; _Float16 is passed so by the x86-64 psABI 1.0, and a bfloat result is returned through the
 * same type here. */
static float half_to_float(_Float16 value)
{
    return value;
}

static _Float16 half_from_float(float value)
{
    return (_Float16)value;
}

static _Float16 half_from_double(double value)
{
    return (_Float16)value;
}

static _Float16 bfloat_bits(uint16_t bits)
{
    _Float16 value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Round to nearest even on the upper 16 bits; a NaN stays one by its quiet bit. */
static _Float16 bfloat_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return bfloat_bits((uint16_t)(bits >> 16 | 0x40));
    return bfloat_bits((uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
}

/* Rounding double to float first must not round twice: round to odd, then to bfloat (Boldo, Melquiond 2008).
 */
static _Float16 bfloat_from_double(double value)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    if (!isnan(value) && (double)rounded != value && (bits & 1) == 0) {
        bool too_far = fabs((double)rounded) > fabs(value);
        bits += too_far ? UINT32_MAX : 1; /* the odd neighbour on the side of value */
        memcpy(&rounded, &bits, sizeof rounded);
    }
    return bfloat_from_float(rounded);
}

#define ENTRY(name)                    \
    {                                  \
#name, (uintptr_t)(void *)name \
    }
#define MATH(name)                            \
    {#name, (uintptr_t)(void *)name},         \
    {                                         \
#name "f", (uintptr_t)(void *)name##f \
    }

struct symbol_entry {
    const char *name;
    uintptr_t address;
};

/* roundeven of glibc is declared only with __STDC_WANT_IEC_60559_BFP_EXT__ in C17. */
double roundeven(double);
float roundevenf(float);

uint64_t bw_host_symbol_lookup(const char *name)
{
    /* Not static: addresses of functions are no constants for a position-independent table without
     * relocations at start-up, and the look-up runs once per undefined symbol of a program. */
    const struct symbol_entry entries[] = {
        ENTRY(memcpy),
        ENTRY(memmove),
        ENTRY(memset),
        ENTRY(memcmp),
        MATH(acos),
        MATH(acosh),
        MATH(asin),
        MATH(asinh),
        MATH(atan),
        MATH(atan2),
        MATH(atanh),
        MATH(cbrt),
        MATH(ceil),
        MATH(copysign),
        MATH(cos),
        MATH(cosh),
        MATH(erf),
        MATH(erfc),
        MATH(exp),
        MATH(exp2),
        MATH(expm1),
        MATH(fabs),
        MATH(floor),
        MATH(fma),
        MATH(fmax),
        MATH(fmin),
        MATH(fmod),
        MATH(hypot),
        MATH(ldexp),
        MATH(lgamma),
        MATH(log),
        MATH(log10),
        MATH(log1p),
        MATH(log2),
        MATH(nearbyint),
        MATH(pow),
        MATH(rint),
        MATH(round),
        MATH(roundeven),
        MATH(sin),
        MATH(sinh),
        MATH(sqrt),
        MATH(tan),
        MATH(tanh),
        MATH(tgamma),
        MATH(trunc),
        {"__extendhfsf2", (uintptr_t)(void *)half_to_float},
        {"__truncsfhf2", (uintptr_t)(void *)half_from_float},
        {"__truncdfhf2", (uintptr_t)(void *)half_from_double},
        {"__truncsfbf2", (uintptr_t)(void *)bfloat_from_float},
        {"__truncdfbf2", (uintptr_t)(void *)bfloat_from_double},
    };
    for (uint32_t i = 0; i < BW_COUNT_OF(entries); i++) {
        if (strcmp(entries[i].name, name) == 0)
            return entries[i].address;
    }
    return 0;
}
