/* Goal (S3, S10): whichever call to the system fails while several GPUs are opened, linked and at work, that
 * error comes out with a text, or nobody needs to know of it; the context can go on where it stopped, with
 * the right bytes; nothing is left open or mapped at the end. */
#include "iface/sys_wrap.h"
#include "tests/scenario/gpu_ring.h"

enum { MARK = EREMOTEIO, /* nobody else returns this */ VRAM_BYTES = 64 << 20, CALLS_MAX = 5000 };

/* Several GPUs from nothing to the last byte read, step by step: each step is done once. */
struct life {
    struct bw_sys *mock, *sys; /* sys: the wrapper, what everything goes through */
    struct rig rig;
    struct gpu_ring ring;
};

static bool life_begin(struct life *life)
{
    uint32_t gpus = life->ring.count;
    life->rig = (struct rig){0};
    life->ring = (struct gpu_ring){.rig = &life->rig, .count = gpus};
    return BW_EQ(bw_sys_wrap_create(life->mock, &life->sys), 0);
}

static bool life_machine(struct life *life, uint32_t gpus, const char *const *faults)
{
    struct bw_mock_config mock = {.size = sizeof mock,
                                  .arch = "gfx1100",
                                  .gpu_count = gpus,
                                  .cu_count = 1,
                                  .vram_bytes = VRAM_BYTES,
                                  .nodes = 2, /* so that memory policies are asked for, too */
                                  .threads = 1,
                                  .kfd_absent = WAY_DRM,
                                  .single_step = true,
                                  .seed = 7};
    struct bw_err err;
    *life = (struct life){.ring = {.rig = &life->rig, .count = gpus}};
    bool ok = BW_OK(bw_mock_kfd_create(&mock, &life->mock, &err), &err);
    for (; ok && *faults; faults++)
        ok = BW_OK(bw_mock_fault_add(life->mock, *faults, &err), &err);
    return ok && life_begin(life);
}

static int life_open(struct life *life)
{
    struct rig *rig = &life->rig;
    struct bw_ctx_config config = {.size = sizeof config, .sys = life->sys, .wait_ns = RIG_WAIT_NS};
    int rc = rig->ctx ? 0 : bw_ctx_create(&config, &rig->ctx, &rig->err);
    for (uint32_t i = 0; i < life->ring.count && !rc; i++) {
        char name[32];
        snprintf(name, sizeof name, WAY "+amd:%u", i);
        if (i == rig->device_count) {
            rc = bw_device_open(rig->ctx, name, &rig->devices[i], &rig->err);
            rig->device_count += rc == 0;
        }
        if (!rc && !rig->programs[i])
            rc = bw_program_load(rig->devices[i], rig_kernels_gfx1100, sizeof rig_kernels_gfx1100,
                                 &rig->programs[i], &rig->err);
    }
    return rc;
}

static int life_go_on(struct life *life)
{
    struct bw_rng rng = {7};
    int rc = life_open(life);
    rc = rc ? rc : gpu_ring_buffers(&life->ring);
    rc = rc ? rc : gpu_ring_link(&life->ring);
    rc = rc ? rc : gpu_ring_write(&life->ring, &rng);
    rc = rc ? rc : gpu_ring_turn(&life->ring, 2);
    return rc ? rc : gpu_ring_check(&life->ring);
}

/* The machine stays. Whether the rule fired at all, also in closing. */
static bool life_leave(struct life *life)
{
    gpu_ring_close(&life->ring);
    rig_close(&life->rig);
    bool fired = bw_sys_wrap_fired(life->sys);
    bw_sys_wrap_settle(life->sys);
    BW_EQ(bw_sys_wrap_open_descriptors(life->sys), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(life->sys), 0);
    bw_sys_destroy(life->sys);
    return fired;
}

static bool life_end(struct life *life)
{
    bool fired = life_leave(life);
    bw_sys_destroy(life->mock);
    return fired;
}

struct failing {
    uint32_t gpus;
    const char *const *faults;
    enum bw_sys_call call;
    uint32_t noticed; /* failures that came out */
};

/* Fails the nth call. Whether there was one. */
static bool fail_nth(struct failing *failing, uint64_t nth)
{
    struct life life;
    char line[600] = "";
    if (!life_machine(&life, failing->gpus, failing->faults))
        return false;
    struct rig *rig = &life.rig;
    uint32_t failures = CU_get_number_of_failures();
    bw_sys_wrap_fail(life.sys, failing->call, nth, MARK);
    int rc = life_go_on(&life);
    if (rc) {
        bw_err_format(&rig->err, line, sizeof line);
        failing->noticed++;
        BW_EQ(rc, -MARK);
        BW_EQ(rig->err.code, rc);
        BW_TRUE(rig->err.what[0] != 0);
        for (uint32_t i = 0; i < rig->device_count; i++)
            BW_OK(bw_device_recover(rig->devices[i], &rig->err), &rig->err);
        BW_OK(life_go_on(&life), &rig->err);
    }
    bool fired = life_end(&life);
    if (CU_get_number_of_failures() != failures)
        printf("      %u GPUs, call %" PRIu64 " of kind %s: %s\n", failing->gpus, nth,
               bw_sys_call_name(failing->call), line);
    return fired;
}

/* All the bytes between GPUs go directly, or through the host between the first two. */
static const char *const direct[] = {NULL}, *const bounced[] = {"link.0-1:fail=EINVAL",
                                                                "link.1-0:fail=EINVAL", NULL};

static void every_call_fails(enum bw_sys_call call, const char *const *faults)
{
    struct failing failing = {2, faults, call, 0};
    uint64_t count = 0;
    while (count < CALLS_MAX && fail_nth(&failing, count + 1))
        count++;
    printf(" [%" PRIu64 " calls of kind %s, %u noticed] ", count, bw_sys_call_name(call), failing.noticed);
    BW_TRUE(count > 2 && count < CALLS_MAX);
    BW_TRUE(failing.noticed > 0);
}

static void every_call_of_two_gpus(void)
{
    every_call_fails(BW_SYS_CALL_ANY, direct); /* ioctls and maps among them */
}

/* Memory that lies farther away than it could is nobody's failure. */
static void no_refusal_of_the_memory_policy_is_noticed(void)
{
    struct failing failing = {2, bounced, BW_SYS_CALL_NODE, 0};
    uint64_t count = 0;
    while (count < CALLS_MAX && fail_nth(&failing, count + 1))
        count++;
    printf(" [%" PRIu64 " calls] ", count);
    BW_TRUE(count > 2 && count < CALLS_MAX);
    BW_EQ(failing.noticed, 0);
}

static void every_ioctl_and_map_of_two_gpus_without_a_link(void)
{
    every_call_fails(BW_SYS_CALL_IOCTL, bounced);
    every_call_fails(BW_SYS_CALL_MAP, bounced);
}

static void calls_of_eight_gpus(void)
{
    enum { GPUS = 8, DRAWS = 12 };
    static const enum bw_sys_call calls[] = {BW_SYS_CALL_IOCTL, BW_SYS_CALL_MAP};
    struct bw_rng rng = bw_test_rng("calls of eight GPUs");
    struct life life;
    if (!life_machine(&life, GPUS, bounced))
        return;
    BW_OK(life_go_on(&life), &life.rig.err);
    uint64_t counts[BW_COUNT_OF(calls)];
    for (size_t i = 0; i < BW_COUNT_OF(calls); i++)
        counts[i] = bw_sys_wrap_calls(life.sys, calls[i]);
    life_end(&life);
    for (size_t i = 0; i < BW_COUNT_OF(calls); i++) {
        struct failing failing = {GPUS, bounced, calls[i], 0};
        for (int draw = 0; draw < DRAWS; draw++)
            BW_TRUE(fail_nth(&failing, 1 + bw_rng_below(&rng, counts[i])));
    }
}

/* ---- deaths ---- */

/* A process is killed in the middle of one of its calls, and so is the next one, on the same machine. Whoever
 * lives finds the right bytes. */
static void deaths(uint32_t gpus, uint32_t draws)
{
    struct bw_rng rng = bw_test_rng("deaths");
    struct life life;
    uint32_t noticed = 0;
    if (!life_machine(&life, gpus, bounced))
        return;
    BW_OK(life_go_on(&life), &life.rig.err);
    uint64_t count = bw_sys_wrap_calls(life.sys, BW_SYS_CALL_ANY);
    life_leave(&life);
    for (uint32_t draw = 0; draw < draws && life_begin(&life); draw++) {
        uint32_t failures = CU_get_number_of_failures();
        uint64_t nth = 1 + bw_rng_below(&rng, count);
        bw_sys_wrap_kill(life.sys, nth, MARK);
        int rc = life_go_on(&life);
        if (rc) /* else its work was done, and it died of the last wait, or in closing */
            BW_EQ(life.rig.err.code, rc);
        noticed += rc != 0;
        BW_TRUE(life_leave(&life));
        if (draw % 4 == 3 && life_begin(&life)) {
            BW_OK(life_go_on(&life), &life.rig.err);
            life_leave(&life);
        }
        if (CU_get_number_of_failures() != failures) {
            printf("      %u GPUs, death %u, at call %" PRIu64 "\n", gpus, draw, nth);
            break;
        }
    }
    BW_TRUE(noticed > draws / 2);
    bw_sys_destroy(life.mock);
}

static void the_next_process_lives_where_others_were_killed(void)
{
    deaths(2, 80);
    deaths(8, 16);
}

BW_TEST_MAIN("scenario.hcq_every_call_fails", {"every call of two GPUs", every_call_of_two_gpus},
             {"no refusal of the memory policy is noticed", no_refusal_of_the_memory_policy_is_noticed},
             {"every ioctl and map of two GPUs without a link",
              every_ioctl_and_map_of_two_gpus_without_a_link},
             {"calls of eight GPUs", calls_of_eight_gpus},
             {"the next process lives where others were killed",
              the_next_process_lives_where_others_were_killed})
