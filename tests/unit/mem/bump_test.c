/* Goal: the bump allocator refuses exactly what does not fit, at every alignment and at the top of the
 * address space. */
#include "mem/bump.h"
#include "tests/check.h"
#include "tests/seed.h"

static void agrees_with_wide_arithmetic(void)
{
    struct bw_rng rng = bw_test_rng("bump");
    for (int round = 0; round < 3000; round++) {
        uint64_t size = bw_rng_below(&rng, 10000), room = round % 3 ? 1 << 20 : UINT64_MAX - size;
        struct bw_bump bump = {.base = round % 3 ? bw_rng_below(&rng, room) : room, .size_bytes = size};
        unsigned __int128 end = (unsigned __int128)bump.base + size, at = bump.base;
        for (int step = 0; step < 40; step++) {
            uint64_t bytes = bw_rng_below(&rng, 20) ? bw_rng_below(&rng, 900) : bw_rng_next(&rng);
            uint64_t alignment = (uint64_t)1 << bw_rng_below(&rng, bw_rng_below(&rng, 10) ? 9 : 64);
            unsigned __int128 aligned = (at + alignment - 1) / alignment * alignment;
            uint64_t address = 1, used = bump.used_bytes;
            int expected = aligned + bytes <= end ? 0 : -ENOMEM;
            if (!BW_EQ(bw_bump_alloc(&bump, bytes, alignment, &address), expected))
                return;
            if (expected) {
                BW_EQ(bump.used_bytes, used);
                continue;
            }
            BW_EQ(address, (uint64_t)aligned);
            at = aligned + bytes;
        }
        bw_bump_reset(&bump);
        BW_EQ(bump.used_bytes, 0);
    }
}

static void limits(void)
{
    struct bw_bump bump = {.base = 0x1001, .size_bytes = 100};
    uint64_t address = 0;
    BW_EQ(bw_bump_alloc(&bump, 101, 1, &address), -ENOMEM);
    BW_EQ(bw_bump_alloc(&bump, 100, 1, &address), 0);
    BW_EQ(address, 0x1001);
    BW_EQ(bw_bump_alloc(&bump, 1, 1, &address), -ENOMEM);
    BW_EQ(bw_bump_alloc(&bump, 0, 1, &address), 0);
    bw_bump_reset(&bump);
    BW_EQ(bw_bump_alloc(&bump, 99, 2, &address), 0);
    BW_EQ(address, 0x1002);
    bw_bump_reset(&bump);
    BW_EQ(bw_bump_alloc(&bump, 1, 256, &address), -ENOMEM); /* the padding alone is too much */
    BW_EQ(bw_bump_alloc(&bump, UINT64_MAX, 2, &address), -ENOMEM);
}

BW_TEST_MAIN("mem.bump", {"agrees with wide arithmetic", agrees_with_wide_arithmetic}, {"limits", limits})
