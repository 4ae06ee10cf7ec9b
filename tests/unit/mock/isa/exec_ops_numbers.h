/* Bits and numbers, for the tests of floating-point operations. */
#ifndef BW_TESTS_EXEC_OPS_NUMBERS_H
#define BW_TESTS_EXEC_OPS_NUMBERS_H

#include <math.h>
#include <string.h>

#include "mock/isa/pool.h"
#include "tests/unit/mock/isa/exec_run.h"

static inline float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float f;
    memcpy(&f, &low, 4);
    return f;
}

static inline uint32_t bits_of_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static inline double f64_of(uint64_t bits)
{
    double d;
    memcpy(&d, &bits, 8);
    return d;
}

static inline uint64_t bits_of_f64(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

static inline long double f16_of(uint64_t bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    long double m = exponent == 31 ? (fraction ? NAN : INFINITY)
                    : exponent     ? ldexpl(1024 + fraction, (int)exponent - 25)
                                   : ldexpl(fraction, -24);
    return bits & 0x8000 ? -m : m;
}

static inline bool each_level(bool (*run)(struct exec_machine *machine))
{
    bool ok = true;
    for (int level = (int)bw_isa_host_level(); level >= BW_ISA_LEVEL_BASE; level--) {
        struct exec_machine machine;
        if (exec_machine_init(&machine, 1))
            return false;
        bw_isa_pool_destroy(machine.pool);
        ok = bw_isa_pool_create_level(1, (enum bw_isa_level)level, &machine.pool) == 0 && run(&machine) && ok;
        exec_machine_free(&machine);
    }
    return ok;
}

#endif
