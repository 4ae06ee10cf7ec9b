/* CREATE_QUEUE and its kin: what the kernel refuses, and AQL queues. */
#include "mock/engine/aql.h"
#include "tests/unit/mock/client.h"

static bool error_is(struct client *c, const char *text)
{
    char error[512];
    bw_mock_last_error(c->sys, error, sizeof error);
    return strstr(error, text) ? true : bw_check_str(error, text, "last error", __FILE__, __LINE__);
}

static void bad_queues_are_refused(void)
{
    struct client c;
    struct queue q;
    struct create_queue_args good;
    struct memory two;
    if (!client_open(&c) || !queue_prepare(&c, COMPUTE, RING, &q, &good) ||
        !BW_EQ(memory_create(&c, 2 * PAGE, GTT, &two), 0))
        return;
    struct create_queue_args bad[16];
    const char *const errors[16] = {
        "ring size 0x3000 is no power of two",
        "ring size 0x200",
        "percentage 101",
        "priority 16",
        "type 9",
        "no GPU 0x1",
        "ring at 0x",
        "CREATE_QUEUE: pointers at 0x",
        "ring at 0x",
        "read pointer at",
        "EOP buffer of 0x2000 bytes",
        "control stack of 0x9000 bytes, this GPU needs 0xa000",
        "save area of 0x2be9000 bytes, this GPU needs 0x2bea000",
        "save area at 0x",
        "ring at 0x",
        "EOP buffer at 0x",
    };
    const int codes[16] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EFAULT,
                           -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL};
    BW_EQ(SAVE_1100, 0x2bea000);
    for (int i = 0; i < 16; i++)
        bad[i] = good;
    bad[0].ring_size = 0x3000;
    bad[1].ring_size = 0x200;
    bad[2].percentage = 101;
    bad[3].priority = 16;
    bad[4].type = 9;
    bad[5].gpu_id = 1;
    bad[6].ring += 8; /* alignment */
    bad[7].write_pointer = 0;
    bad[8].ring_size = RING / 2;  /* not the whole buffer */
    bad[9].read_pointer = two.va; /* in a buffer of two pages */
    bad[10].eop_size = 0x2000;
    bad[11].stack_size = 0x9000;
    bad[12].save_size -= PAGE;
    bad[13].save_size += PAGE;   /* the buffer would have to be larger */
    bad[14].ring += RING + PAGE; /* unmapped or another buffer */
    bad[15].eop = good.save;
    for (int i = 0; i < 16; i++) {
        BW_EQ(client_ioctl(&c, 0x02, &bad[i], sizeof bad[i]), codes[i]);
        error_is(&c, errors[i]);
    }
    BW_EQ(client_ioctl(&c, 0x02, &good, sizeof good), 0);
    BW_EQ(good.doorbell_offset >> 62, 3);
    BW_EQ((uint32_t)good.doorbell_offset & ~0x1fffu, 0); /* a mmap cookie that survives the thunk's masking */
    uint32_t unknown[2] = {77, 0};
    BW_EQ(client_ioctl(&c, 0x03, unknown, sizeof unknown), -EINVAL);
    client_close(&c);
}

static void acquire_vm_comes_first(void)
{
    struct bw_sys *sys;
    struct bw_err err = {0};
    struct bw_mock_config config = {.size = sizeof config, .arch = "gfx1100", .gpu_count = 2};
    if (!BW_OK(bw_mock_kfd_create(&config, &sys, &err), &err))
        return;
    struct client c = {.sys = sys, .next_va = 0x100000000ull};
    struct memory m;
    c.kfd = sys->ops->open(sys, "/dev/kfd", O_RDWR);
    c.render = sys->ops->open(sys, "/dev/dri/renderD128", O_RDWR);
    int other = sys->ops->open(sys, "/dev/dri/renderD129", O_RDWR);
    c.gpu_id = (uint32_t)client_property(&c, "/sys/devices/virtual/kfd/kfd/topology/nodes/1/gpu_id", NULL);
    BW_EQ(memory_create(&c, PAGE, GTT, &m), -ENODEV);
    uint32_t acquire[2] = {(uint32_t)other, c.gpu_id};
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), -EINVAL);
    acquire[0] = 12345;
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), -EINVAL);
    acquire[0] = (uint32_t)c.render;
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), 0);
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), 0);
    acquire[0] = (uint32_t)sys->ops->open(sys, "/dev/dri/renderD128", O_RDWR);
    BW_EQ(client_ioctl(&c, 0x15, acquire, sizeof acquire), -EBUSY);
    BW_EQ(memory_create(&c, PAGE, GTT, &m), 0);
    sys->ops->close(sys, other);
    client_close(&c);
}

static void sdma_engines_share_out_and_run_out(void)
{
    struct client c;
    struct queue q[13];
    struct create_queue_args args;
    if (!client_open(&c))
        return;
    for (int i = 0; i < 12; i++) {
        if (!queue_create(&c, SDMA, &q[i]))
            return;
        BW_EQ(q[i].doorbell >= 0x800, true);
        for (int j = 0; j < i; j++)
            BW_TRUE(q[i].doorbell != q[j].doorbell);
    }
    BW_TRUE(queue_prepare(&c, SDMA, RING, &q[12], &args));
    BW_EQ(client_ioctl(&c, 0x02, &args, sizeof args), -ENOMEM);
    error_is(&c, "no SDMA queue is free (2 engines of 6 queues)");
    queue_destroy(&c, &q[3]);
    BW_EQ(client_ioctl(&c, 0x02, &args, sizeof args), 0);
    client_close(&c);
}

static void a_switched_off_queue_waits(void)
{
    struct client c;
    struct queue q;
    struct memory m;
    struct {
        uint64_t ring;
        uint32_t id, size, percentage, priority;
    } update;
    if (!client_open(&c) || !queue_create(&c, COMPUTE, &q) || !BW_EQ(memory_create(&c, PAGE, GTT, &m), 0))
        return;
    update.ring = 0;
    update.id = q.id;
    update.size = 0;
    update.percentage = 0;
    update.priority = 7;
    BW_EQ(client_ioctl(&c, 0x07, &update, sizeof update), 0);
    *(uint32_t *)m.cpu = 0;
    queue_submit(&c, &q, (const uint32_t[]){RELEASE(m.va, 1)}, 8);
    c.sys->ops->sleep_ns(c.sys, 10000000);
    BW_EQ(*(uint32_t *)m.cpu, 0);
    update.ring = q.ring.va;
    update.size = RING;
    update.percentage = 100;
    BW_EQ(client_ioctl(&c, 0x07, &update, sizeof update), 0);
    BW_TRUE(wait_word(&c, m.cpu, 1));
    update.percentage = 101;
    BW_EQ(client_ioctl(&c, 0x07, &update, sizeof update), -EINVAL);
    client_close(&c);
}

/* An AQL queue: the pointers live inside amd_queue_t, write index at 56, read index at 128. */
struct aql {
    struct client c;
    struct queue q;
    struct memory data, code;
};

static bool open_aql(struct aql *a)
{
    struct create_queue_args args;
    if (!client_open(&a->c) || !queue_prepare(&a->c, AQL, RING, &a->q, &args) ||
        !BW_EQ(memory_create(&a->c, PAGE, GTT, &a->data), 0) ||
        !BW_EQ(memory_create(&a->c, PAGE, GTT, &a->code), 0))
        return false;
    args.write_pointer = a->q.pointers.va + 56;
    args.read_pointer = a->q.pointers.va + 128;
    memset(a->q.pointers.cpu, 0, PAGE);
    memset(a->data.cpu, 0, PAGE);
    ((uint32_t *)a->q.pointers.cpu)[136 / 4] = 128;
    for (uint32_t i = 0; i < RING / 64; i++)
        ((uint32_t *)a->q.ring.cpu)[i * 16] = 1; /* invalid */
    if (!BW_EQ(client_ioctl(&a->c, 0x02, &args, sizeof args), 0))
        return false;
    a->q.id = args.id;
    a->q.doorbell = args.doorbell_offset % DOORBELL_BYTES;
    struct bw_map_request request = {.fd = a->c.kfd,
                                     .offset = args.doorbell_offset - a->q.doorbell,
                                     .size_bytes = DOORBELL_BYTES,
                                     .writable = true};
    return BW_EQ(a->c.sys->ops->map(a->c.sys, &request, &a->c.doorbells), 0);
}

/* Body first, header last, as the architecture asks. */
static void put_aql(struct aql *a, const uint32_t packet[16])
{
    uint32_t *slot = (uint32_t *)a->q.ring.cpu + a->q.put % (RING / 64) * 16;
    memcpy(slot + 1, packet + 1, 60);
    __atomic_store_n((uint64_t *)a->q.pointers.cpu + 7, a->q.put + 1, __ATOMIC_RELEASE);
    __atomic_store_n(slot, packet[0], __ATOMIC_RELEASE);
    bw_wr64(&a->c.doorbells, a->q.doorbell, a->q.put++);
}

/* A signal in the data buffer: kind, value, mailbox, event id, start and end. */
static uint64_t make_signal(struct aql *a, uint32_t offset, int64_t value)
{
    int64_t *signal = (void *)((char *)a->data.cpu + offset);
    signal[0] = 1;
    signal[1] = value;
    return a->data.va + offset;
}

static int64_t *signal_value(struct aql *a, uint32_t offset)
{
    return (int64_t *)(void *)((char *)a->data.cpu + offset) + 1;
}

enum { HEADER_SYSTEM = 1 << 8 | 2 << 9 | 2 << 11 };

static void aql_runs_kernels_barriers_and_pm4(void)
{
    struct aql a;
    if (!open_aql(&a))
        return;
    /* descriptor at 0, code at 256: store work-item id + 100 at the kernel argument pointer */
    static const uint32_t code[] = {0x30020082, 0x4a0400ff, 100, 0xdc6a0000, 0x00000201, 0xbfb00000};
    uint32_t *descriptor = a.code.cpu;
    memset(descriptor, 0, 64);
    descriptor[4] = 256;                                /* entry offset */
    descriptor[12] = 0xf0u << 12 | 1u << 21 | 1u << 23; /* rsrc1 */
    descriptor[13] = 2u << 1;                           /* rsrc2: two user SGPRs */
    descriptor[14] = 0x8 | 0x400;                       /* kernarg pointer, wave32 */
    memcpy((char *)a.code.cpu + 256, code, sizeof code);
    uint64_t results = a.data.va + 1024;
    uint64_t first = make_signal(&a, 0, 1), second = make_signal(&a, 64, 1), third = make_signal(&a, 128, 1);
    /* a barrier that waits for a signal which the kernel behind another barrier decrements: order by index */
    put_aql(&a, (const uint32_t[16]){2 | HEADER_SYSTEM | 1u << 16, 32 | 1u << 16, 1, 48, 1, 1, 0, 0,
                                     lo(a.code.va), hi(a.code.va), lo(results), hi(results), 0, 0, lo(first),
                                     hi(first)});
    put_aql(&a, (const uint32_t[16]){3 | HEADER_SYSTEM, 0, lo(first), hi(first), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     lo(second), hi(second)});
    if (!BW_TRUE(wait_word(&a.c, signal_value(&a, 64), 0)))
        return;
    for (uint32_t i = 0; i < 48; i++) /* a partial second group of 16 starts at id 0 again */
        BW_EQ(((uint32_t *)a.data.cpu)[256 + i], i < 32 ? 100 + i : 0);
    BW_EQ(*signal_value(&a, 0), 0);
    BW_TRUE(signal_value(&a, 0)[3] >=
            signal_value(&a, 0)[2]); /* ends after it starts, in units of 8 bytes past value */
    BW_EQ(((uint32_t *)a.q.ring.cpu)[0] & 0xff, 1);
    /* PM4 in a vendor packet */
    uint32_t *ib = (uint32_t *)a.code.cpu + 512;
    memcpy(ib, (const uint32_t[]){PM4(0x37, 4), 5u << 8, lo(results + 512), hi(results), 0xcafe}, 20);
    uint64_t ib_va = a.code.va + 2048;
    put_aql(&a, (const uint32_t[16]){0 | HEADER_SYSTEM | 1u << 16, 0xc0023f00, lo(ib_va), hi(ib_va),
                                     5 | 1u << 23, 10, 0, 0, 0, 0, 0, 0, 0, 0, lo(third), hi(third)});
    BW_TRUE(wait_word(&a.c, signal_value(&a, 128), 0));
    BW_EQ(((uint32_t *)a.data.cpu)[256 + 128], 0xcafe);
    /* barrier-or opens by either */
    make_signal(&a, 192, 1);
    uint64_t fourth = make_signal(&a, 256, 1);
    put_aql(&a, (const uint32_t[16]){5 | HEADER_SYSTEM, 0, lo(a.data.va + 192), hi(a.data.va), lo(first),
                                     hi(first), 0, 0, 0, 0, 0, 0, 0, 0, lo(fourth), hi(fourth)});
    BW_TRUE(wait_word(&a.c, signal_value(&a, 256), 0));
    BW_TRUE(wait_word(&a.c, (uint32_t *)a.q.pointers.cpu + 2 * 16, 4)); /* moves on after the signal */
    client_close(&a.c);
}

static void aql_errors_are_named(void)
{
    static const struct {
        const char *error;
        uint32_t words[16];
    } wrongs[] = {
        {"AQL packet 0: unknown type 4", {4 | HEADER_SYSTEM}},
        {"AQL packet 0: BARRIER_AND: fence scope 3 in header", {3 | 3 << 9}},
        {"AQL packet 0: BARRIER_OR: fence scope 3 in header", {5 | 3 << 11}},
        {"AQL packet 0: BARRIER_VALUE: condition 4", {0 | HEADER_SYSTEM | 2u << 16, 0, 1, 0, 0, 0, 0, 0, 4}},
        {"AQL packet 0: KERNEL_DISPATCH: a grid of 0 dimensions",
         {2 | HEADER_SYSTEM, 1 | 1u << 16, 1, 1, 1, 1, 0, 0, 0x1000}},
        {"AQL packet 0: unknown vendor format 9", {0 | HEADER_SYSTEM | 9u << 16}},
        {"AQL packet 0: kernel object 0x0", {2 | HEADER_SYSTEM | 1u << 16, 1 | 1u << 16, 1, 1, 1, 1}},
        {"are no INDIRECT_BUFFER of this format", {0 | HEADER_SYSTEM | 1u << 16, 0xc0033f00}},
        {"AQL packet 0: memory fault at 0x", {3 | HEADER_SYSTEM, 0, 0x1000, 0x7000}},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct aql a;
        if (!open_aql(&a))
            return;
        put_aql(&a, wrongs[i].words);
        wait_error(&a.c, wrongs[i].error);
        client_close(&a.c);
    }
    struct aql a;
    if (!open_aql(&a))
        return;
    bw_wr64(&a.c.doorbells, a.q.doorbell, 0);
    wait_error(&a.c, "the doorbell says 0, but only 0 packets were reserved");
    client_close(&a.c);
}

/* HSA's "reserved, must be 0", by the bits of its structures (hsa.h, hsa_ext_amd.h): every one is in the
 * table, and one of each word is seen to be refused. */
static void reserved_bits_of_aql_are_refused(void)
{
    enum { RANGES_MAX = 4 };
    static const struct {
        const char *name;
        uint32_t type, format;
        struct {
            uint32_t first_bit, count;
        } ranges[RANGES_MAX];
    } kinds[] = {
        {"KERNEL_DISPATCH", 2, 1, {{13, 3}, {18, 14}, {10 * 8, 16}}},
        {"BARRIER_AND", 3, 0, {{13, 3}, {16, 16}, {4 * 8, 32}, {48 * 8, 64}}},
        {"BARRIER_OR", 5, 0, {{13, 3}, {16, 16}, {4 * 8, 32}, {48 * 8, 64}}},
        {"PM4_IB", 0, 1, {{13, 3}, {24, 8}, {24 * 8, 256}}},
        {"BARRIER_VALUE", 0, 2, {{13, 3}, {24, 8}, {4 * 8, 32}, {36 * 8, 160}}},
    };
    size_t count = sizeof kinds / sizeof kinds[0];
    BW_TRUE(bw_mock_aql_at(count - 1) && !bw_mock_aql_at(count));
    for (size_t k = 0; k < count; k++) {
        const struct bw_mock_aql_kind *kind = bw_mock_aql_find(kinds[k].type, kinds[k].format);
        uint32_t reserved[16] = {0}, header = kinds[k].type | kinds[k].format << 16;
        for (size_t r = 0; r < RANGES_MAX; r++)
            for (uint32_t i = 0; i < kinds[k].ranges[r].count; i++)
                reserved[(kinds[k].ranges[r].first_bit + i) / 32] |=
                    1u << (kinds[k].ranges[r].first_bit + i) % 32;
        BW_STR(kind->name, kinds[k].name);
        BW_BYTES(kind->reserved, reserved, sizeof reserved);
        for (uint32_t word = 0; word < 16; word++) {
            uint32_t packet[16] = {header}, bit = 1u << 31;
            char error[96];
            struct aql a;
            while (bit && !(reserved[word] & bit))
                bit >>= 1;
            if (!bit || !open_aql(&a))
                continue;
            packet[word] |= bit;
            snprintf(error, sizeof error, "AQL packet 0: %s: reserved bits 0x%08x in word %u", kind->name,
                     bit, word);
            put_aql(&a, packet);
            wait_error(&a.c, error);
            client_close(&a.c);
        }
    }
}

/* What ROCm's runtimes do with reserved2 of a dispatch, user SGPRs to spare, and a barrier-value packet that
 * names no signal. */
static void what_hardware_takes_is_taken(void)
{
    struct aql a;
    if (!open_aql(&a))
        return;
    uint32_t *descriptor = a.code.cpu;
    memset(descriptor, 0, 64);
    descriptor[4] = 256;              /* entry offset */
    descriptor[12] = 0xf0u << 12;     /* rsrc1 */
    descriptor[13] = 13u << 1;        /* user SGPRs that nothing fills, as LLVM pads gfx1100 */
    descriptor[14] = 0x400;           /* wave32 */
    descriptor[256 / 4] = 0xbfb00000; /* s_endpgm */
    uint64_t first = make_signal(&a, 0, 1), second = make_signal(&a, 64, 1);
    put_aql(&a, (const uint32_t[16]){2 | HEADER_SYSTEM | 1u << 16, 32 | 1u << 16, 1, 32, 1, 1, 0, 0,
                                     lo(a.code.va), hi(a.code.va), 0, 0, 0x89abcdef, 0x1234567, lo(first),
                                     hi(first)});
    BW_TRUE(wait_word(&a.c, signal_value(&a, 0), 0));
    put_aql(&a, (const uint32_t[16]){0 | HEADER_SYSTEM | 2u << 16, 0, 0, 0, 5, 0, 0xff, 0, 0, 0, 0, 0, 0, 0,
                                     lo(second), hi(second)});
    BW_TRUE(wait_word(&a.c, signal_value(&a, 64), 0));
    client_close(&a.c);
}

BW_TEST_MAIN("mock.queue", {"bad queues are refused", bad_queues_are_refused},
             {"ACQUIRE_VM comes first", acquire_vm_comes_first},
             {"SDMA engines share out and run out", sdma_engines_share_out_and_run_out},
             {"a switched-off queue waits", a_switched_off_queue_waits},
             {"AQL runs kernels, barriers and PM4", aql_runs_kernels_barriers_and_pm4},
             {"AQL errors are named", aql_errors_are_named},
             {"reserved bits of AQL are refused", reserved_bits_of_aql_are_refused},
             {"what hardware takes is taken", what_hardware_takes_is_taken})
