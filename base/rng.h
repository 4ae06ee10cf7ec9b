/* Seeded random numbers for tests, fuzzing and the mock's scheduler (splitmix64; never for secrets). */
#ifndef BW_BASE_RNG_H
#define BW_BASE_RNG_H

#include <assert.h>
#include <stdint.h>

#include "base/map.h"

struct bw_rng {
    uint64_t state;
};

static inline uint64_t bw_rng_next(struct bw_rng *rng)
{
    return bw_hash64(rng->state += 0x9e3779b97f4a7c15ull);
}

/* Uniform enough in [0, bound); bound > 0. */
static inline uint64_t bw_rng_below(struct bw_rng *rng, uint64_t bound)
{
    assert(bound);
    return (uint64_t)(((unsigned __int128)bw_rng_next(rng) * bound) >> 64);
}

/* Uniform in [0, 1). */
static inline double bw_rng_unit(struct bw_rng *rng)
{
    return (double)(bw_rng_next(rng) >> 11) * 0x1p-53;
}

#endif
