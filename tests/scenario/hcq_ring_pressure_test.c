/* Goal (S6): more replays over two and over eight GPUs than their rings hold, behind a consumer that stalls
 * and is released: the submission waits for room, nothing is overwritten, nothing is lost. */
#include <pthread.h>
#include <time.h>

#include "tests/scenario/gpu_ring.h"

/* A ring of a page holds 256 submissions of 4 words, or 128 of 8 (drivers/amd/device.h): fewer than the turns
 * that may be in flight. */
enum {
    RING_BYTES = 4096,
    GRAPHS = 5,
    INSTANCES = 64,
    TURNS = (GRAPHS + 1) * INSTANCES,
    SUBMISSIONS_MAX = 256,
    VRAM_BYTES = 64 << 20,
};

struct pressure {
    struct gpu_ring ring;
    struct bw_linked_graph *graphs[GRAPHS];
    _Atomic uint32_t submitted;
};

static bool pressure_open(struct pressure *pressure, struct rig *rig, uint32_t gpus)
{
    struct bw_rng rng = {3};
    *pressure = (struct pressure){.ring = {.rig = rig, .count = gpus, .instances = INSTANCES}};
    bool ok = BW_OK(gpu_ring_buffers(&pressure->ring), &rig->err);
    for (uint32_t i = 0; i < GRAPHS && ok; i++) {
        ok = BW_OK(gpu_ring_link(&pressure->ring), &rig->err);
        pressure->graphs[i] = pressure->ring.linked;
        pressure->ring.linked = NULL;
    }
    return ok && BW_OK(gpu_ring_write(&pressure->ring, &rng), &rig->err);
}

static void pressure_close(struct pressure *pressure)
{
    for (uint32_t i = 0; i < GRAPHS; i++)
        bw_linked_graph_destroy(pressure->graphs[i]);
    gpu_ring_close(&pressure->ring);
}

/* `gpus` GPUs with small rings, and a host. */
static bool machine_begin(struct machine *machine, enum rig_machine kind, uint32_t gpus)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = gpus,
                                  .cu_count = 2,
                                  .vram_bytes = VRAM_BYTES,
                                  .threads = 1,
                                  .single_step = kind == RIG_STEPPED,
                                  .seed = 7,
                                  .kfd_absent = WAY_DRM};
    char names[RIG_DEVICES_MAX][32];
    const char *opened[RIG_DEVICES_MAX + 1] = {NULL};
    struct bw_err err;
    *machine = (struct machine){0};
    if (!BW_OK(bw_mock_kfd_create(&mock, &machine->sys, &err), &err))
        return false;
    for (uint32_t i = 0; i < gpus; i++) {
        snprintf(names[i], sizeof names[i], WAY "+amd:%u", i);
        opened[i] = names[i];
    }
    opened[gpus] = "host:0";
    struct bw_ctx_config config = {.size = sizeof config,
                                   .sys = machine->sys,
                                   .wait_ns = kind == RIG_STEPPED ? RIG_WAIT_NS : 0,
                                   .ring_bytes = RING_BYTES};
    return rig_open(&machine->rig, &config, opened);
}

/* One turn, by the graph whose turn it is; what it ought to do. */
static int turn(struct pressure *pressure, uint64_t *ticket)
{
    uint32_t number = pressure->submitted;
    int rc =
        bw_linked_graph_replay(pressure->graphs[number % GRAPHS], NULL, ticket, &pressure->ring.rig->err);
    gpu_ring_model(&pressure->ring);
    pressure->submitted = number + 1;
    return rc;
}

static void finish(struct pressure *pressure, int rc, uint64_t ticket)
{
    struct bw_err *err = &pressure->ring.rig->err;
    if (BW_OK(rc, err) &&
        BW_OK(bw_linked_graph_wait(pressure->graphs[(TURNS - 1) % GRAPHS], ticket, err), err))
        BW_OK(gpu_ring_check(&pressure->ring), err);
    BW_EQ(pressure->submitted, TURNS);
}

/* Stepped engines stand still until somebody waits: the first who does is a submission that finds no room. */
static void engines_that_stand_still(uint32_t gpus)
{
    struct machine machine;
    struct pressure pressure;
    struct bw_mock_stats before, now;
    uint64_t ticket = 0;
    uint32_t full_at = 0;
    int rc = 0;
    if (!machine_begin(&machine, RIG_STEPPED, gpus))
        return;
    if (pressure_open(&pressure, &machine.rig, gpus)) {
        bw_mock_stats(machine.sys, &before);
        for (uint32_t i = 0; i < TURNS && !rc; i++) {
            rc = turn(&pressure, &ticket);
            bw_mock_stats(machine.sys, &now);
            if (!full_at && now.packets != before.packets)
                full_at = i;
        }
        BW_TRUE(full_at > WAY_EITHER(SUBMISSIONS_MAX / 4, 0) && full_at < SUBMISSIONS_MAX);
        finish(&pressure, rc, ticket);
    }
    pressure_close(&pressure);
    machine_close(&machine);
}

static void full_rings_wait_for_room(void)
{
    engines_that_stand_still(2);
    engines_that_stand_still(8);
}

/* ---- a consumer that stalls ---- */

/* A host kernel waits for the flag's first word; then the second one goes to every GPU, and whatever they do
 * comes after. */
enum { FLAG, VALUE, WORDS };
struct stall {
    struct pressure *pressure;
    struct bw_buffer *flag;
    struct bw_linked_graph *linked;
    uint64_t ticket;
    int rc;
};

static struct bw_linked_graph *stall_link(struct stall *stall, uint32_t host)
{
    struct gpu_ring *ring = &stall->pressure->ring;
    struct rig *rig = ring->rig;
    struct bw_argument argument = argument_range(range_all(stall->flag), BW_ACCESS_READ | BW_ACCESS_WRITE);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {1, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    struct bw_graph *graph = rig_graph(rig);
    BW_OK(bw_graph_kernel(graph, rig_kernel(rig, host, "wait_for_flag"), &launch, &rig->err), &rig->err);
    for (uint32_t i = 0; i < ring->count; i++)
        BW_OK(bw_graph_copy(graph, rig->devices[i], (struct bw_range){ring->inbox[i], 0, 0, sizeof(uint32_t)},
                            (struct bw_range){stall->flag, 0, VALUE * sizeof(uint32_t), sizeof(uint32_t)},
                            &rig->err),
              &rig->err);
    return rig_link(rig, graph);
}

static void word_set(struct bw_buffer *flag, uint32_t index, uint32_t value)
{
    __atomic_store_n((uint32_t *)bw_buffer_map(flag) + index, value, __ATOMIC_RELEASE);
}

/* No checks of CUnit in here: a thread does this. */
static void *stall_run(void *argument)
{
    struct stall *stall = argument;
    struct pressure *pressure = stall->pressure;
    stall->rc = bw_linked_graph_replay(stall->linked, NULL, &stall->ticket, &pressure->ring.rig->err);
    for (uint32_t i = 0; i < TURNS && !stall->rc; i++)
        stall->rc = turn(pressure, &stall->ticket);
    return NULL;
}

/* Returns when no submission has come through for a while: whoever submits waits for room. */
static void wait_until_full(struct pressure *pressure)
{
    const struct timespec pause = {0, 10000000};
    uint32_t before;
    do {
        before = pressure->submitted;
        for (int i = 0; i < 10; i++)
            nanosleep(&pause, NULL);
    } while (pressure->submitted != before);
}

static void consumer_that_stalls(uint32_t gpus)
{
    struct machine machine;
    struct pressure pressure = {0};
    const uint32_t value = 7;
    pthread_t thread;
    if (!machine_begin(&machine, RIG_THREADED, gpus))
        return;
    struct rig *rig = &machine.rig;
    if (pressure_open(&pressure, rig, gpus)) {
        struct stall stall = {&pressure, rig_buffer(rig, gpus, WORDS * sizeof value, BW_BUFFER_HOST), NULL, 0,
                              0};
        word_set(stall.flag, FLAG, 0);
        word_set(stall.flag, VALUE, value);
        stall.linked = stall_link(&stall, gpus);
        for (uint32_t i = 0; i < gpus; i++)
            memcpy(pressure.ring.inbox_model[i], &value, sizeof value);
        if (BW_EQ(pthread_create(&thread, NULL, stall_run, &stall), 0)) {
            wait_until_full(&pressure);
            BW_TRUE(pressure.submitted < TURNS);
            word_set(stall.flag, FLAG, 1);
            pthread_join(thread, NULL);
            finish(&pressure, stall.rc, stall.ticket);
        }
        bw_linked_graph_destroy(stall.linked);
        bw_buffer_destroy(stall.flag);
    }
    pressure_close(&pressure);
    machine_close(&machine);
}

static void a_consumer_stalls_and_is_released(void)
{
    consumer_that_stalls(2);
    consumer_that_stalls(8);
}

static void rings_that_nobody_takes_are_refused(void)
{
    static const uint64_t sizes[] = {1, 64, 2048, 4095, 6144, 65535, 2 << 20, 1ull << 32, UINT64_MAX};
    for (size_t i = 0; i < BW_COUNT_OF(sizes); i++) {
        struct bw_ctx_config config = {.size = sizeof config, .device = "null", .ring_bytes = sizes[i]};
        struct bw_ctx *ctx = NULL;
        struct bw_err err;
        BW_EQ(bw_ctx_create(&config, &ctx, &err), -EINVAL);
        BW_TRUE(error_says(&err, "ring_bytes"));
        BW_TRUE(error_says(&err, "a power of two from 4096 to 1048576"));
        BW_TRUE(ctx == NULL);
    }
}

BW_TEST_MAIN("scenario.hcq_ring_pressure",
             {"rings that nobody takes are refused", rings_that_nobody_takes_are_refused},
             {"full rings wait for room", full_rings_wait_for_room},
             {"a consumer stalls and is released", a_consumer_stalls_and_is_released})
