/* Dispatches: a kernel runs, what hardware refuses is refused, faults and endless kernels are met. */
#include "tests/unit/mock/client.h"

/* Machine code of gfx1100, as llvm-mc 19 encodes it. */
static const uint32_t store_ids[] = {
    0x30020082,             /* v_lshlrev_b32 v1, 2, v0 */
    0x4a0400ff, 100,        /* v_add_nc_u32 v2, 100, v0 */
    0xdc6a0000, 0x00000201, /* global_store_b32 v1, v2, s[0:1] */
    0xbfb00000,             /* s_endpgm */
};
static const uint32_t endless[] = {0xbfa0ffff /* s_branch -1 */, 0xbfb00000};
static const uint32_t load_only[] = {
    0x7e020280,             /* v_mov_b32 v1, 0 */
    0xdc520000, 0x02000001, /* global_load_b32 v2, v1, s[0:1] */
    0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    0xbfb00000,
};
static const uint32_t illegal[] = {0xffffffff, 0xffffffff, 0xbfb00000};
static const uint32_t odd_atomic[] = {
    0x7e020280, /* v_mov_b32 v1, 0 */
    0xdcd60002,
    0x00000001, /* global_atomic_add_u32 v1, v0, s[0:1] offset:2 */
    0xbfb00000,
};
static const uint32_t to_scratch[] = {
    0xdc690010,
    0x007c0000, /* scratch_store_b32 off, v0, off offset:16 */
    0xbfb00000,
};

struct fixture {
    struct client c;
    struct queue q;
    struct memory data, code, signal;
};

static bool open_fixture_config(struct fixture *f, bool single_step, uint64_t seed)
{
    struct bw_mock_config config = {
        .size = sizeof config, .arch = "gfx1100", .threads = 1, .single_step = single_step, .seed = seed};
    if (!client_open_config(&f->c, &config) || !queue_create(&f->c, COMPUTE, &f->q) ||
        !BW_EQ(memory_create(&f->c, PAGE, GTT, &f->data), 0) ||
        !BW_EQ(memory_create(&f->c, PAGE, GTT, &f->code), 0) ||
        !BW_EQ(memory_create(&f->c, PAGE, GTT, &f->signal), 0))
        return false;
    return true;
}

static bool open_fixture(struct fixture *f)
{
    return open_fixture_config(f, false, 0);
}

static void close_fixture(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    BW_EQ(memory_destroy(&f->c, &f->data), 0);
    BW_EQ(memory_destroy(&f->c, &f->code), 0);
    BW_EQ(memory_destroy(&f->c, &f->signal), 0);
    client_close(&f->c);
}

static bool renew(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    return queue_create(&f->c, COMPUTE, &f->q);
}

/* Registers of a dispatch, so that a test changes one. */
struct launch {
    uint64_t scratch;
    uint32_t rsrc1, rsrc2, tmpring, threads[3], groups[3], initiator;
    uint64_t entry, argument;
};

static struct launch plain(const struct fixture *f)
{
    return (struct launch){
        .rsrc1 = 0xf0u << 12 | 1u << 21 | 1u << 23, /* denormals kept, DX10_CLAMP, IEEE: as LLVM's kernels */
        .rsrc2 = 2u << 1,                           /* two user SGPRs */
        .threads = {32, 1, 1},
        .groups = {1, 1, 1},
        .initiator = 1 | 1u << 2 | 1u << 15, /* COMPUTE_SHADER_EN, FORCE_START_AT_000, CS_W32_EN */
        .entry = f->code.va,
        .argument = f->data.va,
    };
}

static void submit(struct fixture *f, const uint32_t *code, size_t code_bytes, const struct launch *l,
                   uint32_t value)
{
    memcpy(f->code.cpu, code, code_bytes);
    const uint32_t words[] = {PM4(0x76, 3),
                              0x20c,
                              lo(l->entry >> 8),
                              hi(l->entry >> 8), /* PGM_LO, HI */
                              PM4(0x76, 3),
                              0x210,
                              lo(l->scratch >> 8),
                              hi(l->scratch >> 8), /* DISPATCH_SCRATCH_BASE */
                              PM4(0x76, 3),
                              0x212,
                              l->rsrc1,
                              l->rsrc2, /* PGM_RSRC1, 2 */
                              PM4(0x76, 2),
                              0x218,
                              l->tmpring, /* TMPRING_SIZE */
                              PM4(0x76, 4),
                              0x207,
                              l->threads[0],
                              l->threads[1],
                              l->threads[2],
                              PM4(0x76, 3),
                              0x240,
                              lo(l->argument),
                              hi(l->argument), /* USER_DATA_0, 1 */
                              PM4(0x15, 4),
                              l->groups[0],
                              l->groups[1],
                              l->groups[2],
                              l->initiator,
                              PM4(0x46, 1),
                              7 | 4u << 8, /* CS_PARTIAL_FLUSH */
                              RELEASE(f->signal.va, value)};
    queue_submit(&f->c, &f->q, words, sizeof words / 4);
}

static void a_kernel_stores(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    memset(f.data.cpu, 0, PAGE);
    struct launch l = plain(&f);
    submit(&f, store_ids, sizeof store_ids, &l, 1);
    if (!BW_TRUE(wait_word(&f.c, f.signal.cpu, 1)))
        return;
    for (uint32_t i = 0; i < 32; i++)
        BW_EQ(((uint32_t *)f.data.cpu)[i], 100 + i);
    BW_EQ(((uint32_t *)f.data.cpu)[32], 0);
    struct bw_mock_stats stats;
    bw_mock_stats(f.c.sys, &stats);
    BW_EQ(stats.dispatches, 1);
    BW_EQ(stats.waves, 1);
    BW_EQ(stats.wave_instructions, 4);
    close_fixture(&f);
}

static void what_hardware_refuses_is_named(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    struct launch l[13];
    const char *const errors[] = {
        "NUM_THREAD 32 x 33 x 1: more than 1024",
        "NUM_THREAD 32 x 0 x 1",
        "RSRC2.USER_SGPR is 17",
        "RSRC2.TIDIG_COMP_CNT is 3",
        "RSRC1.VGPRS asks for 264 registers",
        "a group of 32 waves with 104 VGPRs does not fit 2 SIMDs of 12 waves",
        "RSRC2.LDS_SIZE asks for 66048 bytes",
        "RSRC2.SCRATCH_EN, but DISPATCH_SCRATCH_BASE is 0",
        "RSRC2.SCRATCH_EN, but TMPRING_SIZE is 0x00000000",
        "restores saved waves",
        "COMPUTE_PGM_RSRC1: reserved bits",
        "a group of 3 waves, TMPRING_SIZE gives 2 of them scratch",
        "dimension 0 starts at",
    };
    for (size_t i = 0; i < sizeof l / sizeof l[0]; i++)
        l[i] = plain(&f);
    l[0].threads[1] = 33;
    l[1].threads[1] = 0;
    l[2].rsrc2 = 17u << 1;
    l[3].rsrc2 |= 3u << 11;
    l[4].rsrc1 |= 32;
    l[5].threads[0] = 1024;
    l[5].rsrc1 |= 12;
    l[6].rsrc2 |= 129u << 15;
    l[7].rsrc2 |= 1;
    l[7].tmpring = 1 | 1u << 12;
    l[8].rsrc2 |= 1;
    l[8].scratch = 256;
    l[9].initiator |= 1u << 14;
    l[10].rsrc1 |= 1u << 22;
    l[11].rsrc2 |= 1;
    l[11].scratch = 256;
    l[11].tmpring = 2 | 1u << 12; /* in each of six engines, but a group is on one */
    l[11].threads[0] = 65;
    l[12].initiator &= ~(1u << 2);
    for (size_t i = 0; i < sizeof l / sizeof l[0]; i++) {
        if (i == 12)
            queue_put(&f.q, (const uint32_t[]){PM4(0x76, 2), 0x204, 2}, 3);
        submit(&f, store_ids, sizeof store_ids, &l[i], 1);
        wait_error(&f.c, errors[i]);
        if (!renew(&f))
            return;
    }
    /* the same group fits when its waves may use all four SIMDs of a work-group processor */
    struct launch wide = plain(&f);
    wide.threads[0] = 1024;
    wide.rsrc1 |= 12 | 1u << 29;
    submit(&f, store_ids, sizeof store_ids, &wide, 2);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 2));
    close_fixture(&f);
}

static void faults_name_address_and_kernel(void)
{
    struct fixture f;
    struct create_event_args memory_event, hw_event;
    struct event_data data;
    uint32_t result;
    char text[80];
    if (!open_fixture(&f) || !BW_EQ(event_create(&f.c, 8, true, &memory_event), 0) ||
        !BW_EQ(event_create(&f.c, 3, true, &hw_event), 0))
        return;
    uint64_t page_after = f.data.va + PAGE;
    struct launch l = plain(&f);
    l.argument = f.data.va + PAGE - 64; /* lanes 0 to 15 inside, 16 one past the end */
    submit(&f, store_ids, sizeof store_ids, &l, 1);
    BW_EQ(event_wait(&f.c, memory_event.id, 20000, &data, &result), 0);
    BW_EQ(result, 0);
    BW_EQ(data.memory.va, page_after);
    BW_EQ(data.memory.gpu_id, f.c.gpu_id);
    BW_EQ(data.memory.not_present, 1);
    BW_EQ(data.memory.read_only, 1); /* it was a write */
    BW_EQ(data.memory.no_execute, 0);
    BW_EQ(data.memory.imprecise, 0);
    wait_error(&f.c, "mec queue 0: kernel 0x");
    wait_error(&f.c, "write of unmapped memory (0x0 bytes past the end of");
    BW_EQ(*(uint32_t *)f.signal.cpu, 0);
    if (!renew(&f))
        return;
    l = plain(&f);
    l.argument = f.data.va + PAGE - 2; /* lane 0 begins inside and ends outside: that page is not there */
    submit(&f, store_ids, sizeof store_ids, &l, 1);
    BW_EQ(event_wait(&f.c, memory_event.id, 20000, &data, &result), 0);
    BW_EQ(data.memory.va, page_after);
    BW_EQ(data.memory.not_present, 1);
    wait_error(&f.c, "write of unmapped memory (0x0 bytes past the end of");
    snprintf(text, sizeof text, "lane 0: of 4 bytes from 0x%llx on: global_store_b32",
             (unsigned long long)l.argument);
    wait_error(&f.c, text);
    if (!renew(&f))
        return;
    l = plain(&f);
    l.argument = 0; /* null */
    submit(&f, load_only, sizeof load_only, &l, 1);
    BW_EQ(event_wait(&f.c, memory_event.id, 20000, &data, &result), 0);
    BW_EQ(data.memory.va, 0);
    BW_EQ(data.memory.not_present, 1);
    BW_EQ(data.memory.read_only, 0);
    wait_error(&f.c, "memory fault at 0x0, read of unmapped memory");
    if (!renew(&f))
        return;
    l = plain(&f);
    l.entry += 1024;
    memcpy((char *)f.code.cpu + 1024, illegal, sizeof illegal);
    submit(&f, store_ids, sizeof store_ids, &l, 1);
    BW_EQ(event_wait(&f.c, hw_event.id, 20000, &data, &result), 0);
    BW_EQ(result, 0);
    BW_EQ(data.hw.gpu_id, f.c.gpu_id);
    wait_error(&f.c, "illegal instruction");
    if (!renew(&f))
        return;
    l = plain(&f);
    l.entry = f.data.va + PAGE; /* no code there */
    submit(&f, store_ids, sizeof store_ids, &l, 1);
    BW_EQ(event_wait(&f.c, memory_event.id, 20000, &data, &result), 0);
    wait_error(&f.c, "fetch of unmapped memory");
    if (!renew(&f))
        return;
    /* the process goes on */
    l = plain(&f);
    submit(&f, store_ids, sizeof store_ids, &l, 9);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 9));
    close_fixture(&f);
}

static void misalignment_and_scratch_are_named(void)
{
    struct fixture f;
    char text[64];
    enum { WAVE_BYTES = 256 };
    if (!open_fixture(&f))
        return;
    struct launch l = plain(&f);
    submit(&f, odd_atomic, sizeof odd_atomic, &l, 1);
    snprintf(text, sizeof text, "lane 0: misaligned access at 0x%llx", (unsigned long long)f.data.va + 2);
    wait_error(&f.c, text);
    wait_error(&f.c, "global_atomic_add_u32 v1, v0, s[0:1] offset:2");
    if (!renew(&f))
        return;
    l.rsrc2 |= 1;
    l.scratch = f.data.va;
    l.tmpring = 2 | (WAVE_BYTES / 256) << 12; /* 8 bytes for each lane, the kernel wants 20 */
    submit(&f, to_scratch, sizeof to_scratch, &l, 1);
    wait_error(&f.c, "beyond the wave's scratch of 8 bytes a lane: scratch_store_b32 off, v0, off offset:16");
    close_fixture(&f);
}

static void a_fault_stops_the_other_queues(void)
{
    struct fixture f;
    struct queue other;
    if (!open_fixture(&f) || !queue_create(&f.c, COMPUTE, &other))
        return;
    struct launch l = plain(&f);
    l.argument = 0;
    submit(&f, load_only, sizeof load_only, &l, 1);
    wait_error(&f.c, "memory fault");
    const uint32_t words[] = {RELEASE(f.signal.va, 3)};
    queue_submit(&f.c, &other, words, sizeof words / 4);
    f.c.sys->ops->sleep_ns(f.c.sys, 20000000);
    BW_EQ(*(uint32_t *)f.signal.cpu, 0);
    queue_destroy(&f.c, &other);
    close_fixture(&f);
}

static void scratch_is_per_wave(void)
{
    struct fixture f;
    struct memory scratch;
    enum { SLOTS = 12, WAVE_BYTES = 4096 };
    if (!open_fixture(&f) || !BW_EQ(memory_create(&f.c, SLOTS * WAVE_BYTES, GTT, &scratch), 0))
        return;
    struct launch l = plain(&f);
    memset(scratch.cpu, 0xff, scratch.size);
    l.rsrc2 |= 1;
    l.scratch = scratch.va;
    l.tmpring = SLOTS / 6 | (WAVE_BYTES / 256) << 12; /* per shader engine, of which there are 6 */
    submit(&f, to_scratch, sizeof to_scratch, &l, 1);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 1));
    /* lane i, byte offset 16: dwords of a wave's lanes lie next to each other */
    for (uint32_t i = 0; i < 32; i++)
        BW_EQ(((uint32_t *)scratch.cpu)[16 / 4 * 32 + i], i);
    BW_EQ(memory_destroy(&f.c, &scratch), 0);
    close_fixture(&f);
}

/* Until the kernel that runs has executed more, however busy the host is; ctest's deadline bounds it. */
static void wait_instructions(struct fixture *f)
{
    struct bw_mock_stats before, now;
    bw_mock_stats(f->c.sys, &before);
    do {
        f->c.sys->ops->sleep_ns(f->c.sys, 1000000);
        bw_mock_stats(f->c.sys, &now);
    } while (now.wave_instructions <= before.wave_instructions);
}

static void an_endless_kernel_ends_with_its_queue(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    struct launch l = plain(&f);
    submit(&f, endless, sizeof endless, &l, 1);
    wait_instructions(&f);
    wait_instructions(&f);
    BW_EQ(*(uint32_t *)f.signal.cpu, 0);
    if (!renew(&f))
        return;
    submit(&f, store_ids, sizeof store_ids, &l, 5);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 5));
    /* and with the process */
    submit(&f, endless, sizeof endless, &l, 6);
    wait_instructions(&f);
    client_close(&f.c);
}

static void user_memory_leaves_under_an_endless_kernel(void)
{
    struct fixture f;
    struct bw_region user;
    if (!open_fixture(&f))
        return;
    const struct bw_sys_ops *ops = f.c.sys->ops;
    struct bw_map_request request = {.fd = -1, .size_bytes = PAGE, .writable = true};
    if (!BW_EQ(ops->map(f.c.sys, &request, &user), 0))
        return;
    uint64_t va = (uintptr_t)user.base;
    struct alloc_args args = {
        .va = va, .size = PAGE, .mmap_offset = va, .gpu_id = f.c.gpu_id, .flags = USER | RWX};
    BW_EQ(client_ioctl(&f.c, 0x16, &args, sizeof args), 0);
    struct map_args map = {.handle = args.handle, .ids = (uintptr_t)&f.c.gpu_id, .count = 1};
    BW_EQ(client_ioctl(&f.c, 0x18, &map, sizeof map), 0);
    struct launch l = plain(&f);
    submit(&f, endless, sizeof endless, &l, 1);
    wait_instructions(&f);
    map.done = 0;
    BW_EQ(client_ioctl(&f.c, 0x19, &map, sizeof map), 0);
    wait_error(&f.c, "user memory was unmapped under a kernel that does not end");
    BW_EQ(client_ioctl(&f.c, 0x17, &args.handle, 8), 0);
    BW_EQ(ops->unmap(f.c.sys, &user), 0);
    if (!renew(&f))
        return;
    submit(&f, store_ids, sizeof store_ids, &l, 5);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 5));
    close_fixture(&f);
}

/* Stepped, a kernel that never ends takes its turns like anything else, its time is the machine's, and memory
 * may be taken away between two turns. */
static void single_step_gets_an_endless_kernel_back(void)
{
    static const uint32_t store_for_ever[] = {
        0xdc6a0000,
        0x00000000, /* global_store_b32 v0, v0, s[0:1] */
        0xbfa0fffd, /* s_branch -3 */
        0xbfb00000,
    };
    struct fixture f;
    struct queue other;
    struct memory gone;
    struct bw_queue_view view;
    if (!open_fixture_config(&f, true, 99) || !queue_create(&f.c, SDMA, &other) ||
        !BW_EQ(memory_create(&f.c, PAGE, GTT, &gone), 0))
        return;
    const struct bw_sys_ops *ops = f.c.sys->ops;
    memset(f.signal.cpu, 0, PAGE);
    struct launch l = plain(&f);
    l.argument = gone.va;
    submit(&f, store_for_ever, sizeof store_for_ever, &l, 1);
    uint64_t begin_ns = ops->clock_ns(f.c.sys);
    queue_submit(&f.c, &other, (const uint32_t[]){5, lo(f.signal.va + 4), hi(f.signal.va), 7}, 4);
    BW_TRUE(wait_word(&f.c, (char *)f.signal.cpu + 4, 7)); /* the copy engine has its turns, too */
    for (int i = 0; i < 200; i++)
        BW_EQ(bw_mock_step(f.c.sys), 1);
    BW_TRUE(ops->clock_ns(f.c.sys) - begin_ns > 100 * 4096 * 100ull); /* instructions take time */
    BW_EQ(ops->queue_look(f.c.sys, f.c.kfd, f.q.id, &view), 0);
    BW_TRUE(!view.failed && !view.waits && view.pc >= f.code.va && view.pc < f.code.va + 16);
    BW_TRUE(strstr(view.text, "mec queue 0: group (0, 0, 0) wave 0 at pc 0x") == view.text);
    uint64_t progress = view.progress;
    for (int i = 0; i < 10; i++)
        BW_EQ(bw_mock_step(f.c.sys), 1);
    BW_EQ(ops->queue_look(f.c.sys, f.c.kfd, f.q.id, &view), 0);
    BW_EQ(view.progress, progress); /* none: it only executes */
    BW_EQ(ops->queue_look(f.c.sys, f.c.kfd, 77, &view), -ENOENT);
    BW_EQ(memory_destroy(&f.c, &gone), 0);
    wait_error(&f.c, "write of unmapped memory");
    BW_EQ(ops->queue_look(f.c.sys, f.c.kfd, f.q.id, &view), 0);
    BW_TRUE(view.failed && view.has_va && view.va == l.argument);
    if (!renew(&f))
        return;
    l.argument = f.data.va;
    submit(&f, endless, sizeof endless, &l, 2);
    for (int i = 0; i < 50; i++)
        BW_EQ(bw_mock_step(f.c.sys), 1);
    if (!renew(&f)) /* and it ends with its queue */
        return;
    submit(&f, store_ids, sizeof store_ids, &l, 3);
    BW_TRUE(wait_word(&f.c, f.signal.cpu, 3));
    submit(&f, endless, sizeof endless, &l, 4); /* or with the process */
    for (int i = 0; i < 50; i++)
        BW_EQ(bw_mock_step(f.c.sys), 1);
    client_close(&f.c);
}

static void single_step_fixes_the_order(void)
{
    enum { QUEUES = 3, STEPS = 40, RUNS = 3 };
    static const uint64_t seeds[RUNS] = {1234, 1234, 1235};
    uint64_t traces[RUNS][STEPS] = {0};
    for (int run = 0; run < RUNS; run++) {
        struct fixture f;
        struct queue q[QUEUES];
        if (!open_fixture_config(&f, true, seeds[run]))
            return;
        memset(f.data.cpu, 0, PAGE);
        for (uint32_t i = 0; i < QUEUES; i++) {
            if (!queue_create(&f.c, COMPUTE, &q[i]))
                return;
            for (uint32_t n = 1; n <= 10; n++)
                queue_put(&q[i],
                          (const uint32_t[]){PM4(0x37, 4), 5u << 8, lo(f.data.va + i * 4), hi(f.data.va), n},
                          5);
            queue_ring(&f.c, &q[i]);
        }
        BW_EQ(((uint32_t *)f.data.cpu)[0], 0);
        for (int step = 0; step < STEPS; step++) {
            BW_EQ(bw_mock_step(f.c.sys), step < QUEUES * 10);
            const uint32_t *seen = f.data.cpu;
            traces[run][step] = seen[0] | seen[1] << 8 | seen[2] << 16;
        }
        BW_EQ(traces[run][STEPS - 1], 0x0a0a0a);
        struct launch l = plain(&f);
        submit(&f, store_ids, sizeof store_ids, &l, 1);
        BW_TRUE(wait_word(&f.c, f.signal.cpu, 1)); /* sleeping steps */
        for (uint32_t i = 0; i < QUEUES; i++)
            queue_destroy(&f.c, &q[i]);
        close_fixture(&f);
    }
    BW_BYTES(traces[1], traces[0], sizeof traces[0]);
    BW_TRUE(memcmp(traces[2], traces[0], sizeof traces[0]) != 0); /* it is the seed that fixes it */
    BW_TRUE(traces[0][9] != 10 && traces[0][9] != 10 << 8 && traces[0][9] != 10 << 16);
}

BW_TEST_MAIN("mock.dispatch", {"a kernel stores", a_kernel_stores},
             {"what hardware refuses is named", what_hardware_refuses_is_named},
             {"faults name address and kernel", faults_name_address_and_kernel},
             {"misalignment and scratch are named", misalignment_and_scratch_are_named},
             {"a fault stops the other queues of the process", a_fault_stops_the_other_queues},
             {"scratch is per wave", scratch_is_per_wave},
             {"an endless kernel ends with its queue", an_endless_kernel_ends_with_its_queue},
             {"user memory leaves under an endless kernel", user_memory_leaves_under_an_endless_kernel},
             {"single step gets an endless kernel back", single_step_gets_an_endless_kernel_back},
             {"single step fixes the order", single_step_fixes_the_order})
