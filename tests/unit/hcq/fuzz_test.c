/* Goal: random graphs, calls on tuples of devices among them, several in flight and replayed many times
 * without waiting, with inputs and variables that change, submitted by one thread or several, on devices
 * whose queues run concurrently and at random speeds, give the bytes of serial execution.
 *
 * A round is made from one seed, printed when it fails: BW_SEED=that makes it the first. BW_FUZZ_SECONDS goes
 * on with new rounds for so long in each test (scripts/soak.sh). */
#include <pthread.h>
#include <time.h>

#include <bellwire/mock.h>

#include "tests/unit/hcq/fuzz_world.h"
#include "tests/way.h"

enum { WORLDS_MAX = 3, NAME_BYTES = 96 };

/* What a test runs on. */
struct field {
    const char *name;
    const char *devices[RIG_DEVICES_MAX + 1]; /* "%s" of a mock stands for a jitter seed */
    struct bw_ctx_config config;
    uint32_t worlds; /* threads that submit */
    uint32_t rounds;
    bool kernels;
    bool stepped; /* GPUs of a machine that one thread steps: the same every time */
};

static bool worlds_run(const struct field *field, struct rig *rig, uint64_t seed)
{
    struct world *worlds = calloc(field->worlds, sizeof *worlds);
    pthread_t threads[WORLDS_MAX];
    bool ok = BW_TRUE(worlds != NULL), started[WORLDS_MAX] = {false};
    uint32_t made = 0;
    for (; made < field->worlds && ok; made++)
        ok = world_make(&worlds[made], field->kernels, rig, seed + made * 0x100000000ull);
    for (uint32_t i = 1; i < field->worlds && ok; i++)
        started[i] = BW_EQ(pthread_create(&threads[i], NULL, world_run, &worlds[i]), 0);
    if (ok)
        world_run(&worlds[0]);
    for (uint32_t i = 1; i < field->worlds; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < field->worlds && ok; i++)
        ok = world_compare(&worlds[i]);
    for (uint32_t i = 0; i < made; i++)
        world_end(&worlds[i]);
    free(worlds);
    return ok;
}

/* ---- devices ---- */

static bool devices_open(const struct field *field, uint64_t seed, struct rig *rig)
{
    char names[RIG_DEVICES_MAX][NAME_BYTES];
    const char *opened[RIG_DEVICES_MAX + 1] = {NULL};
    char jitter[24];
    snprintf(jitter, sizeof jitter, "%" PRIu64, seed ? seed : 1);
    for (uint32_t i = 0; i < RIG_DEVICES_MAX && field->devices[i]; i++) {
        const char *mark = strstr(field->devices[i], "%s");
        snprintf(names[i], NAME_BYTES, "%.*s%s%s",
                 mark ? (int)(mark - field->devices[i]) : (int)strlen(field->devices[i]), field->devices[i],
                 mark ? jitter : "", mark ? mark + 2 : "");
        opened[i] = names[i];
    }
    struct bw_ctx_config config = field->config;
    config.size = sizeof config;
    return rig_open(rig, &config, opened);
}

static bool round_run(const struct field *field, uint64_t seed)
{
    struct field on = *field;
    struct rig rig = {0};
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = 2,
                                  .cu_count = 2,
                                  .vram_bytes = 64 << 20,
                                  .threads = 1,
                                  .seed = seed,
                                  .single_step = true,
                                  .kfd_absent = WAY_DRM,
                                  .jitter = seed ? seed : 1};
    if (field->stepped && !BW_OK(bw_mock_kfd_create(&mock, &on.config.sys, &rig.err), &rig.err))
        return false;
    bool ok = devices_open(&on, seed, &rig) && worlds_run(field, &rig, seed);
    rig_close(&rig);
    if (field->stepped)
        bw_sys_destroy(on.config.sys);
    return ok;
}

static void fuzz(const struct field *field)
{
    uint64_t first = bw_test_rng(field->name).state;
    const char *text = getenv("BW_FUZZ_SECONDS");
    time_t end = text ? time(NULL) + strtol(text, NULL, 0) : 0;
    bool ok = true;
    uint64_t round = 0;
    for (; ok && (round < field->rounds || time(NULL) < end); round++) {
        ok = round_run(field, first + round);
        if (!ok)
            printf("    %s: round %" PRIu64 ": BW_SEED=%" PRIu64 " begins with it\n", field->name, round,
                   first + round);
    }
    if (text)
        printf(" %" PRIu64 " rounds ", round);
}

static void one_host(void)
{
    fuzz(&(struct field){.name = "host", .devices = {"host:0"}, .worlds = 1, .rounds = 40, .kernels = true});
}

static void three_hosts(void)
{
    fuzz(&(struct field){.name = "three hosts",
                         .devices = {"host:0", "host:1", "host:2"},
                         .config = {.host_threads = 2},
                         .worlds = 1,
                         .rounds = 40,
                         .kernels = true});
}

static void null_copies(void)
{
    fuzz(&(struct field){.name = "null", .devices = {"null", "null"}, .worlds = 1, .rounds = 80});
}

static void mock_copies(void)
{
    fuzz(&(struct field){.name = "mock, copies",
                         .devices = {"mock" WAY "+amd@gfx1100,vram=64M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 10});
}

static void mock_kernels_and_host(void)
{
    fuzz(&(struct field){.name = "mock and host",
                         .devices = {"mock" WAY "+amd@gfx1100,cu=2,vram=64M,jitter=%s", "host:0"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

static void two_gpus(void)
{
    fuzz(&(struct field){.name = "two GPUs",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

/* Neither reaches the other's memory: through the host. */
static void two_gpus_apart(void)
{
    fuzz(&(struct field){.name = "two GPUs apart",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,bar=1M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,bar=1M,jitter=%s"},
                         .config = {.mock_threads = 1},
                         .worlds = 1,
                         .rounds = 12,
                         .kernels = true});
}

/* Nothing but the seed decides what runs when. */
static void two_gpus_stepped(void)
{
    fuzz(&(struct field){.name = "two GPUs, stepped",
                         .devices = {WAY "+amd:0", WAY "+amd:1"},
                         .worlds = 1,
                         .rounds = 24,
                         .kernels = true,
                         .stepped = true});
}

static void threads_submit(void)
{
    fuzz(&(struct field){.name = "threads, hosts",
                         .devices = {"host:0", "host:1"},
                         .config = {.host_threads = 2},
                         .worlds = 3,
                         .rounds = 30,
                         .kernels = true});
    fuzz(&(struct field){.name = "threads, GPUs and host",
                         .devices = {"mock" WAY "+amd:0@gfx1100*2,cu=2,vram=64M,jitter=%s",
                                     "mock" WAY "+amd:1@gfx1100*2,cu=2,vram=64M,jitter=%s", "host:0"},
                         .config = {.mock_threads = 1},
                         .worlds = 3,
                         .rounds = 6,
                         .kernels = true});
}

static void timelines_roll_over_meanwhile(void)
{
    fuzz(&(struct field){.name = "host from 2^32 - 41",
                         .devices = {"host:0", "host:1"},
                         .config = {.timeline_start = UINT32_MAX - 40},
                         .worlds = 2,
                         .rounds = 16,
                         .kernels = true});
    fuzz(&(struct field){.name = "host from 2^64 - 41",
                         .devices = {"host:0", "null"},
                         .config = {.timeline_start = UINT64_MAX - 40},
                         .worlds = 1,
                         .rounds = 16});
    fuzz(&(struct field){.name = "GPUs from 2^32 - 41",
                         .devices = {WAY "+amd:0", WAY "+amd:1"},
                         .config = {.timeline_start = UINT32_MAX - 40},
                         .worlds = 1,
                         .rounds = 8,
                         .kernels = true,
                         .stepped = true});
}

BW_TEST_MAIN("hcq fuzz", {"one_host", one_host}, {"three_hosts", three_hosts}, {"null_copies", null_copies},
             {"mock_copies", mock_copies}, {"mock_kernels_and_host", mock_kernels_and_host},
             {"two_gpus", two_gpus}, {"two_gpus_apart", two_gpus_apart},
             {"two_gpus_stepped", two_gpus_stepped}, {"threads_submit", threads_submit},
             {"timelines_roll_over_meanwhile", timelines_roll_over_meanwhile})
