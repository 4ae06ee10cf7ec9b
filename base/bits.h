/* Bit and rounding helpers. */
#ifndef BW_BASE_BITS_H
#define BW_BASE_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define BW_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline uint64_t bw_align_up(uint64_t value, uint64_t alignment)
{
    assert(alignment && (alignment & (alignment - 1)) == 0);
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t bw_align_down(uint64_t value, uint64_t alignment)
{
    assert(alignment && (alignment & (alignment - 1)) == 0);
    return value & ~(alignment - 1);
}

static inline uint64_t bw_div_up(uint64_t value, uint64_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

static inline bool bw_is_pow2(uint64_t value)
{
    return value && (value & (value - 1)) == 0;
}

/* floor(log2(value)); value must not be 0. */
static inline unsigned bw_log2(uint64_t value)
{
    assert(value);
    return 63u - (unsigned)__builtin_clzll(value);
}

/* Bits [high:low] of value, inclusive. */
static inline uint32_t bw_field(uint32_t value, unsigned low, unsigned high)
{
    assert(low <= high && high < 32);
    return (value >> low) & (uint32_t)(((uint64_t)1 << (high - low + 1)) - 1);
}

static inline uint32_t bw_lo32(uint64_t value)
{
    return (uint32_t)value;
}

static inline uint32_t bw_hi32(uint64_t value)
{
    return (uint32_t)(value >> 32);
}

#endif
