/* PM4 queues: every packet, ring wrap, waits, indirect buffers, and every named error. */
#include "tests/unit/mock/client.h"

struct fixture {
    struct client c;
    struct queue q;
    struct memory m;  /* data */
    struct memory ib; /* indirect buffers */
    uint32_t *words;  /* m seen by the CPU */
};

static bool open_fixture(struct fixture *f)
{
    if (!client_open(&f->c) || !queue_create(&f->c, COMPUTE, &f->q) ||
        !BW_EQ(memory_create(&f->c, 4 * PAGE, GTT, &f->m), 0) ||
        !BW_EQ(memory_create(&f->c, PAGE, GTT, &f->ib), 0))
        return false;
    f->words = f->m.cpu;
    memset(f->m.cpu, 0, f->m.size);
    return true;
}

/* Replaces a queue that failed. */
static bool renew(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    return queue_create(&f->c, COMPUTE, &f->q);
}

static void close_fixture(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    BW_EQ(memory_destroy(&f->c, &f->m), 0);
    BW_EQ(memory_destroy(&f->c, &f->ib), 0);
    client_close(&f->c);
}

#define SUBMIT(f, ...)                                              \
    queue_submit(&(f)->c, &(f)->q, (const uint32_t[]){__VA_ARGS__}, \
                 sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static uint64_t at(const struct fixture *f, uint32_t word)
{
    return f->m.va + word * 4;
}

/* Signals word 0 with a new value and waits for it. */
static bool settle(struct fixture *f)
{
    uint32_t value = f->words[0] + 1;
    SUBMIT(f, RELEASE(f->m.va, value));
    return BW_TRUE(wait_word(&f->c, f->words, value));
}

static void packets_do_what_they_say(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    /* NOPs of all shapes, then WRITE_DATA to one address, COPY_DATA of an immediate, of memory and of the
     * clock */
    SUBMIT(&f, PM4(0x10, 1), 0xdeadbeef, 3u << 30 | 0x3fffu << 16 | 0x1000, PM4(0x10, 3), 1, 2, 3);
    SUBMIT(&f, PM4(0x37, 6), 5u << 8 | 1u << 16, lo(at(&f, 4)), hi(at(&f, 4)), 1, 2, 3);
    SUBMIT(&f, PM4(0x40, 5), 5 | 2u << 8 | 1u << 16, 0x11, 0x22, lo(at(&f, 6)), hi(at(&f, 6)));
    SUBMIT(&f, PM4(0x40, 5), 1 | 5u << 8, lo(at(&f, 6)), hi(at(&f, 6)), lo(at(&f, 8)), hi(at(&f, 8)));
    SUBMIT(&f, PM4(0x40, 5), 9 | 5u << 8 | 1u << 16, 0, 0, lo(at(&f, 10)), hi(at(&f, 10)));
    /* registers hold what SET_SH_REG gives them */
    SUBMIT(&f, PM4(0x76, 3), 0x240, 0xabc, 0xdef, PM4(0x40, 5), 0 | 5u << 8 | 1u << 16, 0x2e40, 0,
           lo(at(&f, 12)), hi(at(&f, 12)));
    /* DMA_DATA: fill 64 bytes, copy 10 of them to an odd place */
    SUBMIT(&f, PM4(0x50, 6), 2u << 29, 0x55555555, 0, lo(at(&f, 16)), hi(at(&f, 16)), 64);
    SUBMIT(&f, PM4(0x50, 6), 0, lo(at(&f, 16)), hi(at(&f, 16)), lo(at(&f, 32) + 3), hi(at(&f, 32)), 10);
    /* ATOMIC_MEM: add 5 to a 32-bit word */
    SUBMIT(&f, PM4(0x1e, 8), 15, lo(at(&f, 40)), hi(at(&f, 40)), 5, 0, 0, 0, 0);
    if (!settle(&f))
        return;
    BW_EQ(f.words[4], 3);
    BW_EQ(f.words[5], 0);
    BW_EQ(f.words[6], 0x11);
    BW_EQ(f.words[7], 0x22);
    BW_EQ(f.words[8], 0x11);
    BW_TRUE(*(uint64_t *)&f.words[10] > 0);
    BW_EQ(f.words[12], 0xabc);
    BW_EQ(f.words[13], 0xdef);
    BW_EQ(f.words[31], 0x55555555);
    BW_EQ(f.words[32], 0x55000000);
    BW_EQ(f.words[34], 0x55555555);
    BW_EQ(f.words[35], 0x00000055);
    BW_EQ(f.words[40], 5);
    close_fixture(&f);
}

static void waits_hold_until_memory_says_so(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    const struct bw_sys_ops *ops = f.c.sys->ops;
    SUBMIT(&f, PM4(0x3c, 6), 5 | 1u << 4, lo(at(&f, 8)), hi(at(&f, 8)), 10, 0xffffffff, 4,
           RELEASE(f.m.va, 1));
    ops->sleep_ns(f.c.sys, 5000000);
    BW_EQ(f.words[0], 0);
    __atomic_store_n(&f.words[8], 9, __ATOMIC_RELEASE);
    ops->sleep_ns(f.c.sys, 5000000);
    BW_EQ(f.words[0], 0);
    __atomic_store_n(&f.words[8], 12, __ATOMIC_RELEASE);
    BW_TRUE(wait_word(&f.c, f.words, 1));
    /* 64 bits: the low word alone would pass */
    *(uint64_t *)&f.words[8] = 0x0000000100000005;
    SUBMIT(&f, PM4(0x93, 8), 5 | 1u << 4, lo(at(&f, 8)), hi(at(&f, 8)), 3, 2, 0xffffffff, 0xffffffff, 4,
           RELEASE(f.m.va, 2));
    ops->sleep_ns(f.c.sys, 5000000);
    BW_EQ(f.words[0], 1);
    __atomic_store_n(&f.words[9], 2, __ATOMIC_RELEASE);
    BW_TRUE(wait_word(&f.c, f.words, 2));
    /* the HDP flush: write a register, wait for another */
    SUBMIT(&f, PM4(0x3c, 6), 3 | 1u << 6, 0xe26, 0xe27, 0xffffffff, 0xffffffff, 4);
    BW_TRUE(settle(&f));
    close_fixture(&f);
}

static void two_queues_wait_for_each_other(void)
{
    struct fixture f;
    struct queue other;
    enum { ROUNDS = 200 };
    if (!open_fixture(&f) || !queue_create(&f.c, COMPUTE, &other))
        return;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        SUBMIT(&f, PM4(0x3c, 6), 3 | 1u << 4, lo(at(&f, 8)), hi(at(&f, 8)), i - 1, 0xffffffff, 4,
               RELEASE(at(&f, 10), i));
        const uint32_t words[] = {PM4(0x3c, 6), 3 | 1u << 4, lo(at(&f, 10)),       hi(at(&f, 10)), i,
                                  0xffffffff,   4,           RELEASE(at(&f, 8), i)};
        queue_submit(&f.c, &other, words, sizeof words / 4);
    }
    BW_TRUE(wait_word(&f.c, &f.words[8], ROUNDS));
    queue_destroy(&f.c, &other);
    close_fixture(&f);
}

static void a_ring_wraps_under_pressure(void)
{
    struct fixture f;
    struct queue tiny;
    enum { SUBMITS = 20000, RING_WORDS = 256, PACKET_WORDS = 5 };
    if (!open_fixture(&f) || !queue_create_sized(&f.c, COMPUTE, RING_WORDS * 4, &tiny))
        return;
    /* packets of 5 words do not divide the ring: each end of it cuts one in two */
    for (uint32_t i = 1; i <= SUBMITS; i++) {
        while ((tiny.put - queue_read_pointer(&tiny)) % RING_WORDS > RING_WORDS - PACKET_WORDS - 1)
            f.c.sys->ops->sleep_ns(f.c.sys, 1000);
        const uint32_t words[PACKET_WORDS] = {PM4(0x37, 4), 5u << 8, lo(f.m.va), hi(f.m.va), i};
        queue_submit(&f.c, &tiny, words, PACKET_WORDS);
    }
    BW_TRUE(wait_word(&f.c, f.words, SUBMITS));
    struct bw_mock_stats stats;
    bw_mock_stats(f.c.sys, &stats);
    BW_EQ(stats.packets, SUBMITS);
    BW_EQ(stats.doorbells, SUBMITS);
    queue_destroy(&f.c, &tiny);
    close_fixture(&f);
}

static void indirect_buffers_return_chain_and_skip(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    uint32_t *ib = f.ib.cpu;
    /* first part: PRED_EXEC for another XCC skips a write; then a chain to the second part */
    const uint32_t first[] = {PM4(0x23, 1),
                              2u << 24 | 5,
                              PM4(0x37, 4),
                              5u << 8,
                              lo(at(&f, 4)),
                              hi(at(&f, 4)),
                              1,
                              PM4(0x23, 1),
                              1u << 24 | 5,
                              PM4(0x37, 4),
                              5u << 8,
                              lo(at(&f, 5)),
                              hi(at(&f, 5)),
                              2,
                              PM4(0x3f, 3),
                              lo(f.ib.va + 256),
                              hi(f.ib.va + 256),
                              15 | 1u << 20 | 1u << 23};
    /* COND_EXEC on a zero word skips; the next does not */
    const uint32_t second[] = {PM4(0x22, 4),
                               lo(at(&f, 20)),
                               hi(at(&f, 20)),
                               0,
                               5,
                               PM4(0x37, 4),
                               5u << 8,
                               lo(at(&f, 6)),
                               hi(at(&f, 6)),
                               3,
                               PM4(0x37, 4),
                               5u << 8,
                               lo(at(&f, 7)),
                               hi(at(&f, 7)),
                               4};
    memcpy(ib, first, sizeof first);
    memcpy(ib + 64, second, sizeof second);
    SUBMIT(&f, PM4(0x3f, 3), lo(f.ib.va), hi(f.ib.va), sizeof first / 4 | 1u << 23);
    if (!settle(&f))
        return;
    BW_EQ(f.words[4], 0);
    BW_EQ(f.words[5], 2);
    BW_EQ(f.words[6], 0);
    BW_EQ(f.words[7], 4);
    close_fixture(&f);
}

struct wrong {
    const char *error;
    uint32_t count, words[12];
};

/* A stands for the address of the data buffer, U for one that is not mapped. */
enum { A_LO = 0x7f7f0001, A_HI = 0x7f7f0002, U_LO = 0x7f7f0003, U_HI = 0x7f7f0004 };

static void submit_wrong(struct fixture *f, const struct wrong *wrong)
{
    uint32_t words[12];
    uint64_t unmapped = f->m.va + f->m.size;
    for (uint32_t i = 0; i < wrong->count; i++) {
        uint32_t word = wrong->words[i];
        words[i] = word == A_LO   ? lo(f->m.va)
                   : word == A_HI ? hi(f->m.va)
                   : word == U_LO ? lo(unmapped)
                   : word == U_HI ? hi(unmapped)
                                  : word;
    }
    queue_submit(&f->c, &f->q, words, wrong->count);
}

static void wrong_packets_are_named(void)
{
    static const struct wrong wrongs[] = {
        {"packet at ring offset 0x0: header 0x80000000 is of type 2", 1, {0x80000000}},
        {"unknown opcode 0x7f", 2, {PM4(0x7f, 1), 0}},
        {"reserved or predicate bits in header", 2, {PM4(0x10, 1) | 1, 0}},
        {"WRITE_DATA at ring offset 0x0: 3 payload words, expected 4", 4, {PM4(0x37, 3), 0, 0, 0}},
        {"WRITE_DATA at ring offset 0x0: 5 words, but 4 are left", 4, {PM4(0x37, 4), 0, 0, 0}},
        {"WRITE_DATA at ring offset 0x0: reserved bits 0x40000000 in word 1",
         5,
         {PM4(0x37, 4), 1u << 30, A_LO, A_HI, 0}},
        {"WRITE_DATA at ring offset 0x0: destination select 3", 5, {PM4(0x37, 4), 3u << 8, A_LO, A_HI, 0}},
        {"WRITE_DATA at ring offset 0x0: write to register 0x1234", 5, {PM4(0x37, 4), 0, 0x1234, 0, 0}},
        {"SET_SH_REG at ring offset 0x0: no register at offset 0x10", 3, {PM4(0x76, 2), 0x10, 0}},
        {"SET_SH_REG at ring offset 0x0: offset 0x3ff, 2 registers", 4, {PM4(0x76, 3), 0x3ff, 0, 0}},
        {"SET_SH_REG at ring offset 0x0: COMPUTE_PGM_HI: reserved bits 0x00000100",
         3,
         {PM4(0x76, 2), 0x20d, 0x100}},
        {"SET_UCONFIG_REG at ring offset 0x0: no register at offset 0x0", 3, {PM4(0x79, 2), 0, 0}},
        {"EVENT_WRITE at ring offset 0x0: unknown event 0x3f", 2, {PM4(0x46, 1), 0x3f}},
        {"EVENT_WRITE at ring offset 0x0: event 0x07 needs index 4, not 0", 2, {PM4(0x46, 1), 7}},
        {"RELEASE_MEM at ring offset 0x0: event 0x14 with index 0",
         8,
         {PM4(0x49, 7), 0x14, 2u << 29, A_LO, A_HI, 0, 0, 0}},
        {"RELEASE_MEM at ring offset 0x0: destination 0, interrupt 0, data 5",
         8,
         {PM4(0x49, 7), 0x14 | 5u << 8, 5u << 29, A_LO, A_HI, 0, 0, 0}},
        {"WAIT_REG_MEM at ring offset 0x0: function 7", 7, {PM4(0x3c, 6), 7 | 1u << 4, A_LO, A_HI, 0, 0, 4}},
        {"WAIT_REG_MEM at ring offset 0x0: operation 2",
         7,
         {PM4(0x3c, 6), 3 | 1u << 4 | 2u << 6, A_LO, A_HI, 0, 0, 4}},
        {"WAIT_REG_MEM at ring offset 0x0: read of register 0x99", 7, {PM4(0x3c, 6), 3, 0x99, 0, 0, 0, 4}},
        {"COPY_DATA at ring offset 0x0: source select 7",
         6,
         {PM4(0x40, 5), 7 | 5u << 8, A_LO, A_HI, A_LO, A_HI}},
        {"DMA_DATA at ring offset 0x0: source select 1",
         7,
         {PM4(0x50, 6), 1u << 29, A_LO, A_HI, A_LO, A_HI, 4}},
        {"ATOMIC_MEM at ring offset 0x0: atomic operation 3",
         9,
         {PM4(0x1e, 8), 3, A_LO, A_HI, 0, 0, 0, 0, 0}},
        {"PRED_EXEC at ring offset 0x0: outside of an indirect buffer", 2, {PM4(0x23, 1), 1u << 24}},
        {"COND_EXEC at ring offset 0x0: skips 9 words, but 0 are left", 5, {PM4(0x22, 4), A_LO, A_HI, 0, 9}},
        {"INDIRECT_BUFFER at ring offset 0x0: the VALID bit", 4, {PM4(0x3f, 3), A_LO, A_HI, 4}},
        {"INDIRECT_BUFFER at ring offset 0x0: VMID 3",
         4,
         {PM4(0x3f, 3), A_LO, A_HI, 4 | 1u << 23 | 3u << 24}},
        {"INDIRECT_BUFFER at ring offset 0x0: size 0", 4, {PM4(0x3f, 3), A_LO, A_HI, 1u << 23}},
        {"INDIRECT_BUFFER at ring offset 0x0: CHAIN in the ring",
         4,
         {PM4(0x3f, 3), A_LO, A_HI, 4 | 9u << 20}},
        {"DISPATCH_DIRECT at ring offset 0x0: reserved bits in initiator",
         5,
         {PM4(0x15, 4), 1, 1, 1, 1u << 31}},
        {"DISPATCH_DIRECT at ring offset 0x0: initiator 0x00008000 without COMPUTE_SHADER_EN",
         5,
         {PM4(0x15, 4), 1, 1, 1, 1u << 15}},
        {"DISPATCH_DIRECT at ring offset 0x0: NUM_THREAD 0 x 0 x 0",
         5,
         {PM4(0x15, 4), 1, 1, 1, 1 | 1u << 15}},
        {"WRITE_DATA at ring offset 0x0: memory fault at 0x", 5, {PM4(0x37, 4), 5u << 8, U_LO, U_HI, 0}},
        {"RELEASE_MEM at ring offset 0x0: memory fault at 0x",
         8,
         {PM4(0x49, 7), 0x14 | 5u << 8, 2u << 29, U_LO, U_HI, 0, 0, 0}},
        {"WAIT_REG_MEM at ring offset 0x0: memory fault",
         7,
         {PM4(0x3c, 6), 3 | 1u << 4, U_LO, U_HI, 0, 0, 4}},
        {"INDIRECT_BUFFER at ring offset 0x0: memory fault", 4, {PM4(0x3f, 3), U_LO, U_HI, 4 | 1u << 23}},
        {"DISPATCH_INDIRECT at ring offset 0x0: memory fault", 4, {PM4(0x16, 3), U_LO, U_HI, 1}},
    };
    struct fixture f;
    if (!open_fixture(&f))
        return;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        submit_wrong(&f, &wrongs[i]);
        wait_error(&f.c, wrongs[i].error);
        if (!renew(&f))
            return;
    }
    BW_TRUE(settle(&f));
    close_fixture(&f);
}

static void wrong_indirect_buffers_are_named(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    uint32_t *ib = f.ib.cpu;
    /* nested */
    memcpy(ib, (uint32_t[]){PM4(0x3f, 3), lo(f.ib.va + 256), hi(f.ib.va), 1 | 1u << 23}, 16);
    SUBMIT(&f, PM4(0x3f, 3), lo(f.ib.va), hi(f.ib.va), 4 | 1u << 23);
    wait_error(&f.c, "INDIRECT_BUFFER at indirect buffer 0x");
    wait_error(&f.c, "inside an indirect buffer, without the CHAIN bit");
    if (!renew(&f))
        return;
    /* a packet that runs past the end of its buffer */
    memcpy(ib, (uint32_t[]){PM4(0x37, 4), 5u << 8, 0, 0}, 16);
    SUBMIT(&f, PM4(0x3f, 3), lo(f.ib.va), hi(f.ib.va), 4 | 1u << 23);
    wait_error(&f.c, "5 words, but 4 are left in the indirect buffer");
    if (!renew(&f))
        return;
    /* a chain that is not last */
    memcpy(
        ib,
        (uint32_t[]){PM4(0x3f, 3), lo(f.ib.va + 256), hi(f.ib.va), 1 | 1u << 20 | 1u << 23, PM4(0x10, 1), 0},
        24);
    SUBMIT(&f, PM4(0x3f, 3), lo(f.ib.va), hi(f.ib.va), 6 | 1u << 23);
    wait_error(&f.c, "CHAIN is not the last packet");
    if (!renew(&f))
        return;
    /* the buffer ends past what is mapped */
    for (uint32_t i = PAGE / 4 - 8; i < PAGE / 4; i++)
        ib[i] = 3u << 30 | 0x3fffu << 16 | 0x1000;
    SUBMIT(&f, PM4(0x3f, 3), lo(f.ib.va + PAGE - 32), hi(f.ib.va), 9 | 1u << 23);
    wait_error(&f.c, "memory fault at 0x");
    if (!renew(&f))
        return;
    close_fixture(&f);
}

static void wrong_doorbells_are_named(void)
{
    struct fixture f;
    if (!open_fixture(&f))
        return;
    /* the doorbell rings before the write pointer is in memory */
    queue_put(&f.q, (const uint32_t[]){PM4(0x10, 1), 0}, 2);
    bw_wr64(&f.c.doorbells, f.q.doorbell, f.q.put);
    wait_error(&f.c, "the doorbell says 0x2, the write pointer in memory 0x0");
    if (!renew(&f))
        return;
    /* more than the ring holds */
    f.q.put = RING / 4 + 2;
    queue_ring(&f.c, &f.q);
    wait_error(&f.c, "more than a ring ahead");
    if (!renew(&f) || !settle(&f))
        return;
    f.q.put -= 2;
    queue_ring(&f.c, &f.q);
    wait_error(&f.c, "is behind the ring");
    if (!renew(&f))
        return;
    bw_wr64(&f.c.doorbells, 0x1000, 1);
    wait_error(&f.c, "doorbell at offset 0x1000: no queue listens there");
    bw_wr32(&f.c.doorbells, f.q.doorbell, 1);
    wait_error(&f.c, "written with 32 bits");
    close_fixture(&f);
}

BW_TEST_MAIN("mock.pm4", {"packets do what they say", packets_do_what_they_say},
             {"waits hold until memory says so", waits_hold_until_memory_says_so},
             {"two queues wait for each other", two_queues_wait_for_each_other},
             {"a ring wraps under pressure", a_ring_wraps_under_pressure},
             {"indirect buffers return, chain and skip", indirect_buffers_return_chain_and_skip},
             {"wrong packets are named", wrong_packets_are_named},
             {"wrong indirect buffers are named", wrong_indirect_buffers_are_named},
             {"wrong doorbells are named", wrong_doorbells_are_named})
