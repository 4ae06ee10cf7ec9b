/* Goal (S1, S8, S9): random graphs over two to eight GPUs, while random faults strike and processes die in
 * the middle of their replays. What does not fail has the bytes of serial execution; what fails says why, and
 * once the fault is gone the same context goes on with the right bytes; whoever comes to a machine after a
 * process died on it finds nothing of it in the way.
 *
 * A round is made from one seed, printed when it fails: BW_SEED=that makes it the first. BW_SOAK_SECONDS goes
 * on with new rounds for so long in each test (scripts/soak.sh). */
#include <time.h>
#include <unistd.h>

#include <bellwire/mock.h>

#include "iface/sys_wrap.h"
#include "tests/unit/hcq/fuzz_world.h"
#include "tests/way.h"

enum { GPUS_MIN = 2, GPUS_MAX = 8, VRAM_BYTES = 64 << 20, MARK = EREMOTEIO /* nobody else returns this */ };

/* Of the virtual clock: only where a machine is stepped does anything hang. */
#define WAIT_NS 200000000ull

/* A machine and who is on it: one process after the other. */
struct stage {
    struct bw_sys *mock, *sys; /* sys: the process */
    bool stepped;
    uint32_t gpus;
    struct rig rig;
    struct world world;
    struct bw_rng rng;
    struct bw_err err;
};

static bool fault_add(struct stage *stage, const char *specification)
{
    return BW_OK(bw_mock_fault_add(stage->mock, specification, &stage->err), &stage->err);
}

/* One in four machines has no peer access at all but over XGMI, which one in four has; one in four an odd
 * link. */
static bool machine_make(struct stage *stage, uint64_t seed, bool stepped)
{
    static const char *const actions[] = {"drop", "fail=EINVAL", "delay=1"};
    struct bw_rng *rng = &stage->rng;
    *stage = (struct stage){.stepped = stepped, .rng = {seed}};
    stage->gpus = GPUS_MIN + (uint32_t)bw_rng_below(rng, GPUS_MAX - GPUS_MIN + 1);
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = stage->gpus,
                                  .cu_count = 2,
                                  .vram_bytes = VRAM_BYTES,
                                  .threads = 1,
                                  .seed = seed,
                                  .single_step = stepped,
                                  .kfd_absent = WAY_DRM,
                                  .nodes = 1 + seed % 2,
                                  .xgmi_engines = bw_rng_below(rng, 4) ? 0 : 2,
                                  .bar_bytes = bw_rng_below(rng, 4) ? 0 : VRAM_BYTES / 4,
                                  .jitter = seed ? seed : 1};
    uint32_t from = (uint32_t)bw_rng_below(rng, stage->gpus), to = (from + 1) % stage->gpus;
    char fault[64];
    snprintf(fault, sizeof fault, "link.%u-%u:%s", from, to, actions[bw_rng_below(rng, 3)]);
    return BW_OK(bw_mock_kfd_create(&mock, &stage->mock, &stage->err), &stage->err) &&
           (bw_rng_below(rng, 4) || fault_add(stage, fault));
}

/* A process comes: its own descriptors, context, buffers and graphs. */
static bool process_begin(struct stage *stage)
{
    char names[RIG_DEVICES_MAX][32];
    const char *opened[RIG_DEVICES_MAX + 1] = {NULL};
    struct bw_ctx_config config = {.size = sizeof config, .wait_ns = stage->stepped ? WAIT_NS : 0};
    for (uint32_t i = 0; i < stage->gpus; i++) {
        snprintf(names[i], sizeof names[i], WAY "+amd:%u", i);
        opened[i] = names[i];
    }
    if (!BW_EQ(bw_sys_wrap_create(stage->mock, &stage->sys), 0))
        return false;
    config.sys = stage->sys;
    return rig_open(&stage->rig, &config, opened) &&
           world_make(&stage->world, true, &stage->rig, bw_rng_next(&stage->rng));
}

static void process_end(struct stage *stage)
{
    world_end(&stage->world);
    rig_close(&stage->rig);
    bw_sys_wrap_settle(stage->sys);
    BW_EQ(bw_sys_wrap_open_descriptors(stage->sys), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(stage->sys), 0);
    bw_sys_destroy(stage->sys);
}

static bool process_works(struct stage *stage)
{
    world_run(&stage->world);
    return world_compare(&stage->world);
}

/* ---- faults ---- */

/* What is late, comes twice or does not come at all, when it does not come but is not needed. */
static const char *const harmless[] = {
#ifdef BW_TESTS_DRM
    "ioctl.CS:delay=1", "ioctl.WAIT_FENCES:delay=1",
#else
    "irq:drop",      "irq:dup",       "irq:delay=1", "doorbell:dup",  "doorbell:delay=1",
#endif
    "sdma0:delay=1",    "sdma1:delay=1",
    "mec:delay=1",      "kernel:delay=1"};

static const char *const harmful[] = {
#ifdef BW_TESTS_DRM
    "ioctl.CS:fail=EIO",
    "ioctl.CS:fail=ENOMEM",
    "ioctl.WAIT_FENCES:fail=EIO",
#else
    "doorbell:drop",  "ioctl.WAIT_EVENTS:fail=EIO",
#endif
    "sdma0:drop",
    "sdma1:drop",
    "sdma0:hang",
    "sdma1:hang",
    "sdma0:fail=EIO",
    "sdma1:fail=EIO",
    "mec:drop",
    "mec:hang",
    "mec:fail=EIO",
    "kernel:hang",
    "kernel:fail=EIO"};

static bool is_per_gpu(const char *fault)
{
    return WAY_DRM || strncmp(fault, "ioctl", 5) != 0;
}

/* One to three, each somewhere in what is to come. */
static bool faults_draw(struct stage *stage, const char *const *from, size_t count)
{
    struct bw_rng *rng = &stage->rng;
    bool ok = true;
    for (uint64_t left = 1 + bw_rng_below(rng, 3); left && ok; left--) {
        const char *drawn = from[bw_rng_below(rng, count)];
        char fault[128], gpu[24] = "";
        if (is_per_gpu(drawn))
            snprintf(gpu, sizeof gpu, ",gpu=%u", (unsigned)bw_rng_below(rng, stage->gpus));
        snprintf(fault, sizeof fault, "%s,nth=%u,count=%u%s", drawn, (unsigned)(1 + bw_rng_below(rng, 60)),
                 (unsigned)(1 + bw_rng_below(rng, 3)), gpu);
        ok = fault_add(stage, fault);
    }
    return ok;
}

static int world_write(struct world *world)
{
    int rc = 0;
    for (uint32_t i = 0; i < space_count(world) && !rc; i++)
        rc = space_write(world, i, &world->rng);
    return rc;
}

/* The faults are gone: every device that failed is recovered, memory is written anew, and all of it works. A
 * device that was struck, too, when nobody waited for it yet is found out and recovered then. */
static bool process_goes_on(struct stage *stage)
{
    struct world *world = &stage->world;
    bool ok = true;
    for (uint32_t tries = 0; tries <= stage->gpus && world->rc && ok; tries++) {
        char line[600];
        ok = BW_EQ(world->err.code, world->rc) && BW_TRUE(world->err.what[0] != 0);
        bw_err_format(&world->err, line, sizeof line);
        for (uint32_t i = 0; i < stage->rig.device_count && ok; i++)
            ok = BW_OK(bw_device_recover(stage->rig.devices[i], &stage->err), &stage->err);
        world->rc = world_write(world);
        if (!world->rc)
            world_run(world);
        if (!ok)
            printf("    after: %s\n", line);
    }
    return ok && world_compare(world);
}

/* *struck counts the runs that failed. */
static bool faults_round(uint64_t seed, bool stepped, uint32_t *struck)
{
    struct stage stage;
    if (!machine_make(&stage, seed, stepped) || !process_begin(&stage))
        return false;
    bool ok = true, may_fail = stepped;
    for (uint32_t turn = 0; turn < 3 && ok; turn++) {
        ok = may_fail ? faults_draw(&stage, harmful, BW_COUNT_OF(harmful))
                      : faults_draw(&stage, harmless, BW_COUNT_OF(harmless));
        world_run(&stage.world);
        bw_mock_fault_clear(stage.mock);
        *struck += stage.world.rc != 0;
        if (stage.world.rc && may_fail)
            ok = process_goes_on(&stage);
        else
            ok = ok && world_compare(&stage.world);
    }
    process_end(&stage);
    bw_sys_destroy(stage.mock);
    return ok;
}

/* ---- deaths ---- */

/* Dies with replays in flight; the next one on that machine works. *struck counts those that were told. */
static bool death_round(uint64_t seed, bool stepped, uint32_t *struck)
{
    struct stage stage;
    if (!machine_make(&stage, seed, stepped))
        return false;
    bool ok = true;
    for (uint32_t deaths = 0; deaths < 3 && ok; deaths++) {
        ok = process_begin(&stage);
        struct world *world = &stage.world;
        world->replays = (uint32_t)bw_rng_below(&stage.rng, REPLAYS);
        world->leaves = true;
        if (bw_rng_below(&stage.rng, 2)) /* or in the middle of it all */
            bw_sys_wrap_kill(stage.sys, 1 + bw_rng_below(&stage.rng, 100), MARK);
        world_run(world);
        *struck += world->rc != 0;
        if (world->rc)
            ok = ok && BW_TRUE(bw_sys_wrap_fired(stage.sys)) && BW_TRUE(world->err.what[0] != 0);
        bw_sys_wrap_kill(stage.sys, 1, MARK);
        process_end(&stage);
    }
    if (ok && process_begin(&stage)) {
        ok = process_works(&stage);
        process_end(&stage);
    }
    bw_sys_destroy(stage.mock);
    return ok;
}

/* ---- rounds ---- */

static void rounds_run(const char *name, bool (*round_run)(uint64_t seed, bool stepped, uint32_t *struck),
                       bool stepped, uint64_t rounds)
{
    uint64_t first = bw_test_rng(name).state, round = 0;
    const char *text = getenv("BW_SOAK_SECONDS");
    time_t end = text ? time(NULL) + strtol(text, NULL, 0) : 0;
    uint32_t struck = 0;
    for (bool ok = true; ok && (round < rounds || time(NULL) < end); round++) {
        uint32_t failures = CU_get_number_of_failures();
        ok = round_run(first + round, stepped, &struck) && CU_get_number_of_failures() == failures;
        if (!BW_TRUE(ok))
            printf("    %s: round %" PRIu64 ": BW_SEED=%" PRIu64 " begins with it\n", name, round,
                   first + round);
    }
    BW_TRUE(struck > 0 || !stepped); /* real time decides what strikes the others, if anything harms there */
    if (text)
        printf(" %" PRIu64 " rounds, %u failed runs ", round, struck);
}

static void faults_that_harm_are_told_and_survived(void)
{
    rounds_run("harm", faults_round, true, 8);
}

static void what_is_late_or_comes_twice_harms_nobody(void)
{
    rounds_run("late", faults_round, false, 4);
}

static void the_next_process_works_where_one_died(void)
{
    rounds_run("deaths, stepped", death_round, true, 4);
    rounds_run("deaths", death_round, false, 4);
}

BW_TEST_MAIN("scenario.hcq_soak",
             {"faults that harm are told and survived", faults_that_harm_are_told_and_survived},
             {"what is late or comes twice harms nobody", what_is_late_or_comes_twice_harms_nobody},
             {"the next process works where one died", the_next_process_works_where_one_died})
