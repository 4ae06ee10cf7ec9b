/* SDMA queues: every packet, copies of every size (S5), ring pressure (S6), and every named error. */
#include "tests/unit/mock/client.h"

enum { COPY_MAX = 1 << 30 };

struct fixture {
    struct client c;
    struct queue q;
    struct memory a, b, ib, signal;
    uint32_t fences;
};

static bool open_fixture(struct fixture *f, uint64_t bytes)
{
    f->fences = 0;
    return client_open(&f->c) && queue_create(&f->c, SDMA, &f->q) &&
           BW_EQ(memory_create(&f->c, bytes, GTT, &f->a), 0) &&
           BW_EQ(memory_create(&f->c, bytes, GTT, &f->b), 0) &&
           BW_EQ(memory_create(&f->c, PAGE, GTT, &f->ib), 0) &&
           BW_EQ(memory_create(&f->c, PAGE, GTT, &f->signal), 0);
}

static void close_fixture(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    BW_EQ(memory_destroy(&f->c, &f->a), 0);
    BW_EQ(memory_destroy(&f->c, &f->b), 0);
    BW_EQ(memory_destroy(&f->c, &f->ib), 0);
    BW_EQ(memory_destroy(&f->c, &f->signal), 0);
    client_close(&f->c);
}

static bool renew(struct fixture *f)
{
    queue_destroy(&f->c, &f->q);
    return queue_create(&f->c, SDMA, &f->q);
}

/* Packets do not wrap: NOPs up to the ring's end when the next does not fit. */
static void put(struct fixture *f, const uint32_t *words, uint32_t count)
{
    uint64_t left = (f->q.ring_bytes - f->q.put % f->q.ring_bytes) / 4;
    const uint32_t nop = 0;
    while (left < count && left--)
        queue_put(&f->q, &nop, 1);
    queue_put(&f->q, words, count);
}

#define PUT(f, ...) put(f, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)

static bool settle(struct fixture *f)
{
    PUT(f, 5 | 3u << 16, lo(f->signal.va), hi(f->signal.va), ++f->fences);
    queue_ring(&f->c, &f->q);
    return BW_TRUE(wait_word(&f->c, f->signal.cpu, f->fences));
}

static void put_copy(struct fixture *f, uint64_t dst, uint64_t src, uint64_t bytes)
{
    PUT(f, 1, (uint32_t)(bytes - 1), 0, lo(src), hi(src), lo(dst), hi(dst));
}

static void copies_of_every_size_and_alignment(void)
{
    struct fixture f;
    static const uint64_t sizes[] = {1,  2,   3,    4,    5,    7,     8,     63,     64,
                                     65, 255, 4095, 4096, 4097, 65535, 65537, 1048577};
    enum { ROOM = 2 << 20, GUARD = 64 };
    if (!open_fixture(&f, ROOM))
        return;
    uint8_t *a = f.a.cpu, *b = f.b.cpu, *expected = malloc(ROOM);
    for (uint64_t i = 0; i < ROOM; i++)
        a[i] = (uint8_t)(i * 7 + (i >> 8));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint64_t from = 0; from < 4; from += 3) {
            for (uint64_t to = GUARD; to < GUARD + 8; to += 5) {
                memset(b, 0xee, ROOM);
                memset(expected, 0xee, ROOM);
                memcpy(expected + to, a + from, sizes[i]);
                put_copy(&f, f.b.va + to, f.a.va + from, sizes[i]);
                if (!settle(&f) || !BW_BYTES(b, expected, sizes[i] + 2 * GUARD))
                    return;
            }
        }
    }
    free(expected);
    close_fixture(&f);
}

/* What of this process's memory is shared pages: the mock's, here. */
static uint64_t shared_bytes(void)
{
    unsigned long long size, resident, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    BW_TRUE(file && fscanf(file, "%llu %llu %llu", &size, &resident, &shared) == 3);
    if (file)
        fclose(file);
    return shared * PAGE;
}

/* Sparse VRAM of 6 GiB each way: packets of the largest size, of a byte less and of what is left, past 4 GiB.
 * Only ends were ever written, so that the copy is cheap; the rest is moved all the same: a mark that stands
 * in the target where the source is empty goes. */
static void copies_beyond_four_gib(void)
{
    struct fixture f;
    struct memory from, to;
    const uint64_t tail = 5, size = 5ull * COPY_MAX + tail, odd = 3;
    struct bw_mock_stats before, after;
    if (!open_fixture(&f, PAGE) || !BW_EQ(memory_create(&f.c, 6ull << 30, VRAM | PUBLIC, &from), 0) ||
        !BW_EQ(memory_create(&f.c, 6ull << 30, VRAM | PUBLIC, &to), 0))
        return;
    const uint64_t places[] = {0, COPY_MAX - 1, COPY_MAX, (1ull << 32) - 1, 1ull << 32, size - 1},
                   empty[] = {COPY_MAX / 2, COPY_MAX + 777, 5ull * COPY_MAX - 12345};
    uint8_t *source = from.cpu, *target = (uint8_t *)to.cpu + odd;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        source[places[i]] = (uint8_t)(0x11 * (i + 1));
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        target[empty[i]] = 0x77;
    target[-1] = target[size] = 0x99;
    bw_mock_stats(f.c.sys, &before);
    uint64_t shared = shared_bytes(), packets = 0;
    for (uint64_t at = 0, part; at < size; at += part, packets++) {
        part = at == COPY_MAX ? COPY_MAX - 1 : size - at < COPY_MAX ? size - at : COPY_MAX;
        put_copy(&f, to.va + odd + at, from.va + at, part);
    }
    if (!settle(&f))
        return;
    BW_TRUE(shared_bytes() - shared < 256 << 20);
    bw_mock_stats(f.c.sys, &after);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        BW_EQ(target[places[i]], 0x11 * (i + 1));
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        BW_EQ(target[empty[i]], 0);
    BW_EQ(target[-1], 0x99);
    BW_EQ(target[size], 0x99);
    BW_EQ(packets, 6);
    BW_EQ(after.sdma_packets - before.sdma_packets, packets + 1);
    BW_EQ(memory_destroy(&f.c, &from), 0);
    BW_EQ(memory_destroy(&f.c, &to), 0);
    close_fixture(&f);
}

static void packets_do_what_they_say(void)
{
    struct fixture f;
    if (!open_fixture(&f, PAGE))
        return;
    uint32_t *a = f.a.cpu;
    memset(a, 0, PAGE);
    PUT(&f, 0 | 2u << 16, 0xffffffff, 0xffffffff);                       /* NOP over two words */
    PUT(&f, 2, lo(f.a.va), hi(f.a.va), 2, 1, 2, 3);                      /* WRITE three words */
    PUT(&f, 11 | 2u << 30, lo(f.a.va + 64), hi(f.a.va), 0x12345678, 15); /* fill 16 bytes by words */
    PUT(&f, 11, lo(f.a.va + 96), hi(f.a.va), 0xab, 2);                   /* fill 3 bytes */
    PUT(&f, 13 | 2u << 8, lo(f.a.va + 128), hi(f.a.va));                 /* timestamp */
    PUT(&f, 10 | 47u << 25, lo(f.a.va + 136), hi(f.a.va), 0xffffffff, 1, 0, 0, 0); /* 64-bit add */
    PUT(&f, 10 | 47u << 25, lo(f.a.va + 136), hi(f.a.va), 1, 0, 0, 0, 0);
    PUT(&f, 9, lo(f.a.va), hi(f.a.va), 5, 4, 5, lo(f.a.va + 160), hi(f.a.va),
        1); /* COND_EXE: 1 != 5, skip the fence */
    PUT(&f, 9, lo(f.a.va), hi(f.a.va), 1, 4, 5, lo(f.a.va + 164), hi(f.a.va), 1);
    PUT(&f, 8 | 3u << 28 | 1u << 31, lo(f.a.va + 8), hi(f.a.va), 3, 0xff,
        10 | 0xfffu << 16); /* poll: holds */
    if (!settle(&f))
        return;
    BW_EQ(a[0], 1);
    BW_EQ(a[2], 3);
    BW_EQ(a[3], 0);
    BW_EQ(a[16], 0x12345678);
    BW_EQ(a[19], 0x12345678);
    BW_EQ(a[20], 0);
    BW_EQ(a[24], 0x00ababab);
    BW_TRUE(*(uint64_t *)&a[32] > 0);
    BW_EQ(*(uint64_t *)&a[34], 0x200000000ull);
    BW_EQ(a[40], 0);
    BW_EQ(a[41], 1);
    BW_EQ(a[42], 0);
    close_fixture(&f);
}

/* FENCE writes four bytes, not eight. */
static void a_fence_leaves_its_neighbour_alone(void)
{
    struct fixture f;
    if (!open_fixture(&f, PAGE))
        return;
    uint32_t *a = f.a.cpu;
    a[0] = a[1] = a[2] = 0x77777777;
    PUT(&f, 5 | 3u << 16, lo(f.a.va + 4), hi(f.a.va), 0);
    BW_TRUE(settle(&f));
    BW_EQ(a[0], 0x77777777);
    BW_EQ(a[1], 0);
    BW_EQ(a[2], 0x77777777);
    close_fixture(&f);
}

static void an_indirect_buffer_runs(void)
{
    struct fixture f;
    if (!open_fixture(&f, PAGE))
        return;
    uint32_t *a = f.a.cpu;
    const uint32_t buffer[] = {5 | 3u << 16, lo(f.a.va), hi(f.a.va), 8, 0, 0, 0, 0};
    memcpy(f.ib.cpu, buffer, sizeof buffer);
    a[0] = 0;
    PUT(&f, 0, 0); /* so that the packet ends on a multiple of 8 words */
    PUT(&f, 4, lo(f.ib.va), hi(f.ib.va), 8, 0, 0);
    BW_TRUE(settle(&f));
    BW_EQ(a[0], 8);
    close_fixture(&f);
}

static void a_ring_wraps_under_pressure(void)
{
    struct fixture f;
    enum { COPIES = 20000, RING_BYTES = 1024, PACKET_BYTES = 28, FENCE_BYTES = 16 };
    if (!open_fixture(&f, PAGE))
        return;
    queue_destroy(&f.c, &f.q);
    if (!queue_create_sized(&f.c, SDMA, RING_BYTES, &f.q))
        return;
    uint64_t *a = f.a.cpu, *b = f.b.cpu;
    for (uint32_t i = 0; i < PAGE / 8; i++)
        a[i] = 0x100 + i;
    for (uint32_t i = 0; i < COPIES; i++) {
        while (f.q.put - queue_read_pointer(&f.q) > RING_BYTES - 2 * (PACKET_BYTES + FENCE_BYTES))
            f.c.sys->ops->sleep_ns(f.c.sys, 1000);
        put_copy(&f, f.b.va + i % (PAGE / 8) * 8, f.a.va + (i + i / (PAGE / 8)) % (PAGE / 8) * 8, 8);
        queue_ring(&f.c, &f.q);
    }
    if (!settle(&f))
        return;
    for (uint32_t i = COPIES - PAGE / 8; i < COPIES; i++)
        BW_EQ(b[i % (PAGE / 8)], 0x100 + (i + i / (PAGE / 8)) % (PAGE / 8));
    BW_EQ(queue_read_pointer(&f.q), f.q.put);
    close_fixture(&f);
}

struct wrong {
    const char *error;
    uint32_t count, words[9];
};

enum { A_LO = 0x7f7f0001, A_HI = 0x7f7f0002, U_LO = 0x7f7f0003, U_HI = 0x7f7f0004, ODD_LO = 0x7f7f0005 };

static void wrong_packets_are_named(void)
{
    static const struct wrong wrongs[] = {
        {"sdma0 queue 0: packet at ring offset 0x0: unknown opcode 0x7f", 1, {0x7f}},
        {"unknown opcode 0x01, sub-opcode 0x09", 1, {1 | 9u << 8}},
        {"COPY_LINEAR at ring offset 0x0: 7 words, but 6 are left", 6, {1, 3, 0, A_LO, A_HI, A_LO}},
        {"COPY_LINEAR at ring offset 0x0: 1073741825 bytes, at most 1073741824",
         7,
         {1, COPY_MAX, 0, A_LO, A_HI, A_LO, A_HI}},
        {"COPY_LINEAR at ring offset 0x0: 4294967296 bytes, at most 1073741824",
         7,
         {1, UINT32_MAX, 0, A_LO, A_HI, A_LO, A_HI}},
        {"CONST_FILL at ring offset 0x0: 1073741828 bytes, at most 1073741824",
         5,
         {11 | 2u << 30, A_LO, A_HI, 0, COPY_MAX}},
        {"broadcast copies are not modelled", 7, {1 | 1u << 27, 3, 0, A_LO, A_HI, A_LO, A_HI}},
        {"byte swapping", 7, {1, 3, 1u << 16, A_LO, A_HI, A_LO, A_HI}},
        {"WRITE_LINEAR at ring offset 0x0: 7 words, but 5 are left", 5, {2, A_LO, A_HI, 2, 1}},
        {"WRITE_LINEAR at ring offset 0x0: reserved bits 0x00000001 in word 1", 5, {2, ODD_LO, A_HI, 0, 1}},
        {"FENCE at ring offset 0x0: reserved bits 0x00000001 in word 1", 4, {5, ODD_LO, A_HI, 1}},
        {"TRAP at ring offset 0x0: reserved bits 0x10000000 in word 1", 2, {6, 1u << 28}},
        {"INDIRECT at ring offset 0x0: the packet must end on a multiple of 8 words, and ends at 6",
         6,
         {4, A_LO, A_HI, 8, 0, 0}},
        {"POLL_REGMEM at ring offset 0x0: register 0x", 6, {8, A_LO, A_HI, 0, 0, 0}},
        {"POLL_REGMEM at ring offset 0x0: function 7", 6, {8 | 15u << 28, A_LO, A_HI, 0, 0, 0}},
        {"POLL_REGMEM at ring offset 0x0: poll timeout after 3 retries",
         6,
         {8 | 4u << 28 | 1u << 31, A_LO, A_HI, 0, 0, 3u << 16}},
        {"ATOMIC at ring offset 0x0: atomic operation 1", 8, {10 | 1u << 25, A_LO, A_HI, 0, 0, 0, 0, 0}},
        {"CONST_FILL at ring offset 0x0: fill size 3", 5, {11 | 3u << 30, A_LO, A_HI, 0, 3}},
        {"CONST_FILL at ring offset 0x0: address 0x", 5, {11 | 2u << 30, ODD_LO, A_HI, 0, 3}},
        {"TIMESTAMP_GET_GLOBAL at ring offset 0x0: reserved bits", 3, {13 | 2u << 8, ODD_LO, A_HI}},
        {"COPY_LINEAR at ring offset 0x0: memory fault at 0x", 7, {1, 3, 0, U_LO, U_HI, A_LO, A_HI}},
        {"write of unmapped memory (0x0 bytes past the end of", 7, {1, PAGE, 0, A_LO, A_HI, A_LO, A_HI}},
        {"FENCE at ring offset 0x0: memory fault", 4, {5, U_LO, U_HI, 1}},
    };
    struct fixture f;
    if (!open_fixture(&f, PAGE))
        return;
    memset(f.a.cpu, 0, PAGE);
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        uint32_t words[9];
        uint64_t unmapped = f.a.va + f.a.size;
        for (uint32_t w = 0; w < wrongs[i].count; w++) {
            uint32_t word = wrongs[i].words[w];
            words[w] = word == A_LO     ? lo(f.a.va)
                       : word == ODD_LO ? lo(f.a.va) + 1
                       : word == A_HI   ? hi(f.a.va)
                       : word == U_LO   ? lo(unmapped)
                       : word == U_HI   ? hi(unmapped)
                                        : word;
        }
        if (strncmp(wrongs[i].error, "write of unmapped", 17) == 0) {
            words[3] = lo(f.b.va);
            words[1] = 7;
            words[5] = lo(unmapped - 4);
        }
        queue_submit(&f.c, &f.q, words, wrongs[i].count);
        wait_error(&f.c, wrongs[i].error);
        if (!renew(&f))
            return;
    }
    /* a packet across the ring's end */
    for (uint32_t i = 0; i < RING / 4 - 3; i++)
        queue_put(&f.q, (const uint32_t[]){0}, 1);
    queue_ring(&f.c, &f.q);
    BW_TRUE(wait_word(&f.c, (uint64_t *)f.q.pointers.cpu + 8, RING - 12));
    queue_submit(&f.c, &f.q, (const uint32_t[]){5, lo(f.a.va), hi(f.a.va), 1}, 4);
    wait_error(&f.c, "4 words, but the ring ends after 3: packets do not wrap");
    close_fixture(&f);
}

static void memory_of_another_gpu_is_out_of_reach(void)
{
    struct client c;
    struct bw_mock_config config = {.size = sizeof config, .arch = "gfx1100", .gpu_count = 2, .threads = 1};
    struct queue q;
    struct memory mine, other;
    if (!client_open_config(&c, &config) || !queue_create(&c, SDMA, &q) ||
        !BW_EQ(memory_create(&c, PAGE, GTT, &mine), 0))
        return;
    uint32_t first = c.gpu_id;
    uint32_t second =
        (uint32_t)client_property(&c, "/sys/devices/virtual/kfd/kfd/topology/nodes/2/gpu_id", NULL);
    int render = c.sys->ops->open(c.sys, "/dev/dri/renderD129", O_RDWR);
    uint32_t acquire[2] = {(uint32_t)render, second};
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), 0);
    c.gpu_id = second;
    BW_EQ(memory_create(&c, PAGE, VRAM, &other), 0);
    c.gpu_id = first;
    const uint32_t copy[] = {1, 63, 0, lo(mine.va), hi(mine.va), lo(other.va), hi(other.va)};
    queue_submit(&c, &q, copy, 7);
    wait_error(&c, "COPY_LINEAR at ring offset 0x0: memory fault");
    queue_destroy(&c, &q);
    if (!queue_create(&c, SDMA, &q))
        return;
    /* mapped to both, it works */
    struct map_args map = {.handle = other.handle, .ids = (uintptr_t)&first, .count = 1};
    BW_EQ(client_ioctl(&c, 0x18, &map, sizeof map), 0);
    queue_put(&q, copy, 7);
    queue_submit(&c, &q, (const uint32_t[]){5, lo(mine.va), hi(mine.va), 0x55}, 4);
    BW_TRUE(wait_word(&c, mine.cpu, 0x55));
    c.sys->ops->close(c.sys, render);
    client_close(&c);
}

BW_TEST_MAIN("mock.sdma", {"copies of every size and alignment", copies_of_every_size_and_alignment},
             {"copies beyond four GiB", copies_beyond_four_gib},
             {"packets do what they say", packets_do_what_they_say},
             {"a fence leaves its neighbour alone", a_fence_leaves_its_neighbour_alone},
             {"an indirect buffer runs", an_indirect_buffer_runs},
             {"a ring wraps under pressure", a_ring_wraps_under_pressure},
             {"wrong packets are named", wrong_packets_are_named},
             {"memory of another GPU is out of reach", memory_of_another_gpu_is_out_of_reach})
