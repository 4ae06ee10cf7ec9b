/* Goal: S_BARRIER holds every wave of a group until all that have not ended are there, round after round, in
 * both wave sizes, for any number of waves and whatever each of them does before. RDNA3 Shader ISA document,
 * section 16.5 "S_BARRIER". */
#include "tests/check.h"

#include "base/rng.h"
#include "tests/unit/mock/isa/exec_proof.h"
#include "tests/unit/mock/isa/exec_run.h"

enum { ROUNDS = 4, ITEMS_MAX = 1024, SHIFT_WORD = 1, FIRST_BARRIER_WORD = 21, SECOND_BARRIER_WORD = 29 };
enum { DELAYS_AT = 0, LAST_BYTE_AT = 0x100, LEAVER_AT = 0x104, RESULTS_AT = 0x200, NOBODY = -1 };

/* Each round a wave spins, stores a number per item, waits, reads that of the item at the mirrored place, and
 * waits again before it stores the next. The wave whose delay is s11 leaves at once. */
static const uint32_t kernel[] = {
    0x7e100500,             /* v_readfirstlane_b32 s8, v0 */
    0x85080008,             /* s_lshr_b32 s8, s8, 5 or 6 (put in): the wave's number */
    0x84088208,             /* s_lshl_b32 s8, s8, 2 */
    0xf4000240, 0x10000000, /* s_load_b32 s9, s[0:1], s8: its delay */
    0xf4040280, 0xf8000100, /* s_load_b64 s[10:11], s[0:1], 0x100: last byte, leaver */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0x30020082,             /* v_lshlrev_b32_e32 v1, 2, v0 */
    0x4c04020a,             /* v_sub_nc_u32_e32 v2, s10, v1 */
    0x7e060300,             /* v_mov_b32_e32 v3, v0 */
    0x7e080280,             /* v_mov_b32_e32 v4, 0 */
    0xbe870084,             /* s_mov_b32 s7, 4 */
    0xbe880009,             /* again: s_mov_b32 s8, s9 */
    0x80888108,             /* delay: s_sub_u32 s8, s8, 1 */
    0xbfa1fffe,             /* s_cbranch_scc0 delay */
    0xbf060b09,             /* s_cmp_eq_u32 s9, s11 */
    0xbfa20011,             /* s_cbranch_scc1 leave */
    0xd8340000, 0x00000301, /* ds_store_b32 v1, v3 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xbfbd0000,             /* s_barrier */
    0xd8d80000, 0x05000002, /* ds_load_b32 v5, v2 */
    0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
    0xd6460004, 0x04150304, /* v_lshl_add_u32 v4, v4, 1, v5 */
    0xd60b0003, 0x001d0703, /* v_mad_u32_u24 v3, v3, 3, s7 */
    0xbfbd0000,             /* s_barrier */
    0x80878107,             /* s_sub_u32 s7, s7, 1 */
    0xbf078007,             /* s_cmp_lg_u32 s7, 0 */
    0xbfa2ffec,             /* s_cbranch_scc1 again */
    0xdc6a0200, 0x00000401, /* global_store_b32 v1, v4, s[0:1] offset:512 */
    0xbfb00000,             /* leave: s_endpgm */
};

struct group {
    unsigned wave_size, waves;
    bool last_leaves;
    uint32_t delays[ITEMS_MAX / 32];
};

static unsigned items_of(const struct group *g)
{
    return (g->waves - g->last_leaves) * g->wave_size;
}

static uint32_t expected_of(uint32_t mirrored)
{
    uint32_t sum = 0, number = mirrored;
    for (uint32_t round = ROUNDS; round > 0; round--) {
        sum = 2 * sum + number;
        number = 3 * number + round;
    }
    return sum;
}

static unsigned count_wrong(const struct exec_machine *machine, const struct group *g)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < items_of(g); i++) {
        uint32_t observed;
        memcpy(&observed, machine->memory + EXEC_ARGS + RESULTS_AT + 4 * i, 4);
        wrong += observed != expected_of(items_of(g) - 1 - i);
    }
    return wrong;
}

static bool run(struct exec_machine *machine, const struct group *g, const uint32_t *words)
{
    uint8_t *arguments = machine->memory + EXEC_ARGS;
    uint32_t last_byte = 4 * (items_of(g) - 1),
             leaver = g->last_leaves ? g->delays[g->waves - 1] : (uint32_t)NOBODY;
    memset(arguments, 0, RESULTS_AT + 4 * ITEMS_MAX);
    memcpy(arguments + DELAYS_AT, g->delays, sizeof g->delays);
    memcpy(arguments + LAST_BYTE_AT, &last_byte, 4);
    memcpy(arguments + LEAVER_AT, &leaver, 4);
    exec_put_code(machine, words, sizeof kernel);
    machine->generation++;
    machine->dispatch.wave_size = g->wave_size;
    machine->dispatch.group_size[0] = g->waves * g->wave_size;
    machine->dispatch.lds_bytes = 4 * ITEMS_MAX;
    return BW_EQ(exec_run(machine), BW_ISA_DONE);
}

static struct group drawn(struct bw_rng *rng, unsigned round)
{
    struct group g = {.wave_size = round & 1 ? 64 : 32};
    unsigned most = ITEMS_MAX / g.wave_size;
    g.waves = round < 4 ? most : 1 + (unsigned)bw_rng_below(rng, most);
    g.last_leaves = g.waves > 1 && bw_rng_below(rng, 2);
    for (unsigned i = 0; i < g.waves; i++)
        g.delays[i] = (uint32_t)bw_rng_below(rng, 300);
    if (g.last_leaves)
        g.delays[g.waves - 1] = 300 + (uint32_t)bw_rng_below(rng, 300); /* no other wave's */
    return g;
}

static void with_shift(const struct group *g, uint32_t words[])
{
    enum { INLINE_0 = 128 };
    memcpy(words, kernel, sizeof kernel);
    words[SHIFT_WORD] |= (INLINE_0 + (g->wave_size == 64 ? 6u : 5u)) << 8;
}

static void check(struct exec_machine *machine)
{
    enum { GROUPS = 40 };
    struct bw_rng rng = {.state = BW_GFX11_S_BARRIER};
    bool ok = true;
    for (unsigned round = 0; round < GROUPS; round++) {
        uint32_t words[sizeof kernel / 4];
        struct group g = drawn(&rng, round);
        with_shift(&g, words);
        ok = run(machine, &g, words) && BW_EQ(count_wrong(machine, &g), 0) && ok;
    }
    if (ok)
        ops_prove(BW_GFX11_S_BARRIER);
}

static void test_barrier(void)
{
    struct exec_machine machine;
    for (unsigned threads = 1; threads <= 2; threads++) {
        if (!BW_EQ(exec_machine_init(&machine, threads), 0))
            return;
        check(&machine);
        exec_machine_free(&machine);
    }
}

/* Without either of the two the numbers are wrong: the kernel does see a barrier that does not hold. */
static void test_without(void)
{
    static const unsigned barriers[] = {FIRST_BARRIER_WORD, SECOND_BARRIER_WORD};
    struct exec_machine machine;
    struct bw_rng rng = {.state = 1};
    struct group g = drawn(&rng, 0);
    if (!BW_EQ(exec_machine_init(&machine, 1), 0))
        return;
    for (unsigned i = 0; i < 2; i++) {
        uint32_t words[sizeof kernel / 4];
        with_shift(&g, words);
        BW_EQ(words[barriers[i]], 0xbfbd0000u);
        words[barriers[i]] = 0xbf800000; /* s_nop 0 */
        if (run(&machine, &g, words))
            BW_TRUE(count_wrong(&machine, &g) > 0);
    }
    exec_machine_free(&machine);
}

OPS_TEST_MAIN("isa exec barrier", {"waves wait for each other", test_barrier},
              {"without a barrier they do not", test_without})
