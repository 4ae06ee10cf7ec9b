/* Goal (S7): the timelines of every queue of two and of eight GPUs start just below 2^32 and just below 2^64,
 * and pass while each GPU waits for another one's queues: the right bytes, with several replays in flight. */
#include "tests/scenario/gpu_ring.h"

enum { VRAM_BYTES = 64 << 20 };

static void roll_over(enum rig_machine kind, uint32_t gpus, uint64_t start)
{
    enum { ROUNDS = 4, TURNS = 15 };
    struct machine machine;
    struct gpu_ring ring = {0};
    struct bw_rng rng = {start};
    if (!machine_open(&machine, kind, gpus, VRAM_BYTES, start))
        return;
    bool ok = gpu_ring_open(&ring, &machine.rig);
    for (int round = 0; round < ROUNDS && ok; round++)
        ok = gpu_ring_works(&ring, &rng, TURNS);
    gpu_ring_close(&ring);
    machine_close(&machine);
}

/* The word passes somewhere in what comes: in the first turns of some queues, and in the last ones. */
static void values_pass(uint64_t end)
{
    static const uint64_t leads[] = {3, 40};
    for (size_t i = 0; i < BW_COUNT_OF(leads); i++) {
        roll_over(RIG_STEPPED, 2, end - leads[i]);
        roll_over(RIG_THREADED, 2, end - leads[i]);
        roll_over(RIG_THREADED, 8, end - leads[i]);
    }
}

static void the_low_word_passes(void)
{
    values_pass(1ull << 32);
}

static void the_whole_value_passes(void)
{
    values_pass(0);
}

BW_TEST_MAIN("scenario.hcq_rollover", {"the low word passes", the_low_word_passes},
             {"the whole value passes", the_whole_value_passes})
