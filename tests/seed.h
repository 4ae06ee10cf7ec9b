/* The seed of a random test: $BW_SEED, else a fixed one so that CI repeats itself. Printed, so that a failure
 * can be replayed. */
#ifndef BW_TESTS_SEED_H
#define BW_TESTS_SEED_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"

static inline struct bw_rng bw_test_rng(const char *name)
{
    const char *text = getenv("BW_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20240607;
    printf(" [%s: BW_SEED=%" PRIu64 "] ", name, seed);
    return (struct bw_rng){seed};
}

#endif
