/* The fault registers say what those of boards say: walks that fail as logs tell give the words in the logs.
 */
#include "mock/mmu/faults.h"
#include "tests/unit/mock/mmu_memory.h"

static const struct bw_mock_mmu_fault_control latched = {0};

/* Words that drivers printed. In the kernel's Documentation/gpu/amdgpu/debugging.rst, AMD's notes on GPUVM,
 * ROCm/amdgpu issue 172, and in public logs of gfx1100 (0x008012b1), gfx1151 (0x00800932), gfx1200
 * (0x00000b3a) and gfx1201 (0x0084115b of ROCm/rocm-libraries issue 459, 0x00040b5d). */
static void words_of_boards(void)
{
    enum { NO_TABLE = 1, OUTSIDE = 2, NO_ANSWER = 4, TWICE = 8 };
    static const struct {
        enum bw_mock_mmu_generation generation;
        uint64_t status, pte;
        uint32_t how;
        enum bw_mock_mmu_op op;
        uint32_t cid, vmid;
    } rows[] = {
        {BW_MOCK_MMU_GFX9_4, 0x00301030, 0, 0, BW_MOCK_MMU_READ, 8, 3},
        {BW_MOCK_MMU_GFX9_4, 0x00301031, 0, TWICE, BW_MOCK_MMU_READ, 8, 3},
        {BW_MOCK_MMU_GFX9_4, 0x00841050, 0, 0, BW_MOCK_MMU_WRITE, 8, 8},
        {BW_MOCK_MMU_GFX11, 0x008012b1, 0, TWICE, BW_MOCK_MMU_EXECUTE, 9, 8},
        {BW_MOCK_MMU_GFX11, 0x00800932, 0, OUTSIDE, BW_MOCK_MMU_READ, 4, 8},
        {BW_MOCK_MMU_GFX12, 0x00000b3a, 0, 0, BW_MOCK_MMU_READ, 5, 0},
        {BW_MOCK_MMU_GFX12, 0x0084115b, 0, TWICE, BW_MOCK_MMU_WRITE, 8, 8},
        {BW_MOCK_MMU_GFX12, 0x00040b5d, 0, NO_ANSWER | TWICE, BW_MOCK_MMU_WRITE, 5, 0},
        /* what no log shows follows from the fields: a page that is not for writing, and an atomic */
        {BW_MOCK_MMU_GFX11, 0x00941040, 0x7021, 0, BW_MOCK_MMU_WRITE, 8, 9},
        {BW_MOCK_MMU_GFX11, 0x009c1040, 0x7021, 0, BW_MOCK_MMU_ATOMIC, 8, 9},
        {BW_MOCK_MMU_GFX11, 0x00101080, 0x7021, 0, BW_MOCK_MMU_EXECUTE, 8, 1},
        {BW_MOCK_MMU_GFX11, 0x00101138, 0, NO_TABLE, BW_MOCK_MMU_READ, 8, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct memory *m = memory_create(rows[i].generation);
        struct bw_mock_mmu_faults faults = {.generation = rows[i].generation};
        struct bw_mock_mmu_client client = {.cid = rows[i].cid};
        put_directories(m);
        put(m, AT_PTE, rows[i].pte);
        if (rows[i].how & NO_TABLE)
            put(m, AT_PDE2, 0);
        if (rows[i].how & OUTSIDE)
            m->context.start = VA + 0x1000;
        if (rows[i].how & NO_ANSWER)
            put(m, AT_PDE0, 0x40000001);
        m->hub.access_mode = BW_MOCK_MMU_TRANSLATED;
        m->context.vmid = rows[i].vmid;
        BW_EQ(walk(m, VA, rows[i].op), -EFAULT);
        BW_TRUE(bw_mock_mmu_faults_record(&faults, &latched, &m->result.fault, &client));
        if (rows[i].how & TWICE)
            BW_TRUE(!bw_mock_mmu_faults_record(&faults, &latched, &m->result.fault, &client));
        BW_EQ(faults.status, rows[i].status);
        BW_EQ(faults.page, VA >> 12);
        free(m);
    }
}

static void the_first_fault_stays_until_it_is_cleared(void)
{
    struct bw_mock_mmu_faults faults = {.generation = BW_MOCK_MMU_GFX12};
    struct bw_mock_mmu_client first = {.cid = 8}, second = {.cid = 0x1ff, .vf = true, .vfid = 31};
    struct bw_mock_mmu_fault fault = {
        .va = 0xffff800012345678, .vmid = 1, .op = BW_MOCK_MMU_WRITE, .permission = BW_MOCK_MMU_NOT_WRITABLE};
    struct bw_mock_mmu_fault later = {
        .va = 0x5000, .vmid = 15, .op = BW_MOCK_MMU_READ, .permission = BW_MOCK_MMU_NOT_READABLE};
    BW_TRUE(bw_mock_mmu_faults_record(&faults, &latched, &fault, &first));
    BW_EQ(faults.status, 0x00141040);
    BW_EQ(faults.page, 0x800012345); /* 36 bits */
    BW_TRUE(!bw_mock_mmu_faults_record(&faults, &latched, &later, &second));
    BW_EQ(faults.status, 0x00141041);
    BW_EQ(faults.page, 0x800012345);
    struct bw_mock_mmu_fault_control updates = {.allow_updates = true};
    BW_TRUE(bw_mock_mmu_faults_record(&faults, &updates, &later, &second));
    BW_EQ(faults.status, 0x3ff3fe21);
    BW_EQ(faults.page, 5);
    bw_mock_mmu_faults_clear(&faults);
    BW_EQ(faults.status, 0);
    BW_TRUE(bw_mock_mmu_faults_record(&faults, &latched, &later, &second));
    BW_EQ(faults.status, 0x3ff3fe20);
    bw_mock_mmu_faults_clear(&faults);
    later.violation = BW_MOCK_MMU_VA_HOLE;
    BW_TRUE(!bw_mock_mmu_faults_record(&faults, &latched, &later, &second));
    BW_EQ(faults.status, 0);
}

static void kinds(void)
{
    struct bw_mock_mmu_fault fault = {.permission = BW_MOCK_MMU_NOT_VALID | BW_MOCK_MMU_NOT_EXECUTABLE};
    BW_EQ(bw_mock_mmu_fault_kinds(&fault), 1 << BW_MOCK_MMU_KIND_VALID | 1 << BW_MOCK_MMU_KIND_EXECUTE);
    fault.permission = BW_MOCK_MMU_NOT_READABLE | BW_MOCK_MMU_NOT_WRITABLE;
    BW_EQ(bw_mock_mmu_fault_kinds(&fault), 1 << BW_MOCK_MMU_KIND_READ | 1 << BW_MOCK_MMU_KIND_WRITE);
    fault.walker_error = BW_MOCK_MMU_ERROR_RANGE;
    BW_EQ(bw_mock_mmu_fault_kinds(&fault), 1 << BW_MOCK_MMU_KIND_RANGE);
    fault.walker_error = BW_MOCK_MMU_ERROR_NACK;
    BW_EQ(bw_mock_mmu_fault_kinds(&fault), 1 << BW_MOCK_MMU_KIND_NACK);
    fault.walker_error = BW_MOCK_MMU_ERROR_DUMMY;
    BW_EQ(bw_mock_mmu_fault_kinds(&fault), 1 << BW_MOCK_MMU_KIND_DUMMY);
}

static void what_follows_from_a_fault(void)
{
    const uint32_t all = 0x7ff;
    struct bw_mock_mmu_client tcp = {.cid = 8}, ge = {.cid = 20};
    struct bw_mock_mmu_fault denied = {.op = BW_MOCK_MMU_WRITE, .permission = BW_MOCK_MMU_NOT_WRITABLE};
    struct bw_mock_mmu_fault no_table = {.walker_error = BW_MOCK_MMU_ERROR_PDE2, .mapping_error = true};
    struct bw_mock_mmu_fault_control control = {
        .default_kinds = all, .interrupt_clients = 0xffff, .interrupt_others = true};
    struct bw_mock_mmu_context_control context = {.interrupt_kinds = all, .default_kinds = all};
    struct bw_mock_mmu_fault_response response;
#define RESPOND(fault, client) bw_mock_mmu_fault_respond(&control, &context, fault, client, &response)
    RESPOND(&denied, &tcp);
    BW_TRUE(response.interrupt && response.default_page && !response.retry && !response.crash);
    control.interrupt_clients = (uint32_t) ~(1u << 8);
    RESPOND(&denied, &tcp);
    BW_TRUE(!response.interrupt && response.default_page);
    RESPOND(&denied, &ge);
    BW_TRUE(response.interrupt);
    control.interrupt_others = false;
    RESPOND(&denied, &ge);
    BW_TRUE(!response.interrupt);
    control.interrupt_clients = 1u << 8;
    context.interrupt_kinds = all & ~(1u << BW_MOCK_MMU_KIND_WRITE);
    RESPOND(&denied, &tcp);
    BW_TRUE(!response.interrupt);
    RESPOND(&no_table, &tcp); /* by the switch of PDE0 */
    BW_TRUE(response.interrupt && response.default_page);
    control.default_kinds = all & ~(1u << BW_MOCK_MMU_KIND_PDE2);
    RESPOND(&no_table, &tcp);
    BW_TRUE(!response.default_page);
    context.interrupt_kinds = context.default_kinds = all & ~(1u << BW_MOCK_MMU_KIND_PDE0);
    control.default_kinds = all;
    RESPOND(&no_table, &tcp);
    BW_TRUE(!response.interrupt && !response.default_page);
    context.interrupt_kinds = context.default_kinds = all;
    context.retry_permission = true;
    RESPOND(&no_table, &tcp);
    BW_TRUE(!response.retry);
    RESPOND(&denied, &tcp);
    BW_TRUE(response.retry && !response.interrupt && !response.default_page);
    control.retry_interrupt = control.crash_on_no_retry = true;
    RESPOND(&denied, &tcp);
    BW_TRUE(response.retry && response.interrupt && !response.crash);
    RESPOND(&no_table, &tcp);
    BW_TRUE(response.crash);
    context.retry_other = control.crash_on_retry = true;
    RESPOND(&no_table, &tcp);
    BW_TRUE(response.retry && response.crash);
    no_table.violation = BW_MOCK_MMU_VA_HOLE; /* the hub never sees it */
    RESPOND(&no_table, &tcp);
    BW_TRUE(!response.retry && !response.crash && !response.interrupt && !response.default_page);
#undef RESPOND
}

BW_TEST_MAIN("mock.mmu_faults", {"words of boards", words_of_boards},
             {"the first fault stays until it is cleared", the_first_fault_stays_until_it_is_cleared},
             {"kinds", kinds}, {"what follows from a fault", what_follows_from_a_fault})
