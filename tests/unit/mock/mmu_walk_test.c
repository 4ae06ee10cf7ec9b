/* The walker of the GPU's memory hub: page tables laid out by hand, and page tables of boards, lead where the
 * public descriptions say; what they do not allow is refused by name. */
#include "tests/unit/mock/mmu_memory.h"

/* Pages of 4 KiB at 0x7000: read, write, execute, uncached. And 0x40001000 of the bus: snooped, read, write.
 */
static const uint64_t page_words[] = {
    [BW_MOCK_MMU_GFX9_4] = 0x0600000000007071,
    [BW_MOCK_MMU_GFX11] = 0x0003000000007071,
    [BW_MOCK_MMU_GFX12] = 0x80c0000000007071,
};
static const uint64_t system_words[] = {
    [BW_MOCK_MMU_GFX9_4] = 0x0000000040001067,
    [BW_MOCK_MMU_GFX11] = 0x0000000040001067,
    [BW_MOCK_MMU_GFX12] = 0x8000000040001067,
};
/* The same page as in page_words for partially resident textures, not there. */
static const uint64_t prt_words[] = {
    [BW_MOCK_MMU_GFX9_4] = 0x0008000000000060,
    [BW_MOCK_MMU_GFX11] = 0x0008000000000060,
    [BW_MOCK_MMU_GFX12] = 0x8100000000000060,
};
/* 2 MiB at 0x200000 in PDB0 and 1 GiB at 0x40000000 in PDB1: read, write, execute, not cached, whole
 * fragments. */
static const uint64_t large_words[] = {
    [BW_MOCK_MMU_GFX9_4] = 0x00400000002004f1,
    [BW_MOCK_MMU_GFX11] = 0x00400000002004f1,
    [BW_MOCK_MMU_GFX12] = 0x80000000002004f1,
};
static const uint64_t giant_words[] = {
    [BW_MOCK_MMU_GFX9_4] = 0x0040000040000971,
    [BW_MOCK_MMU_GFX11] = 0x0040000040000971,
    [BW_MOCK_MMU_GFX12] = 0x8000000040000971,
};

static void pages_of_every_size(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        put_directories(m);
        put(m, AT_PTE, page_words[g]);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_EXECUTE), 0);
        BW_EQ(m->result.place.aperture, BW_MOCK_MMU_VRAM);
        BW_EQ(m->result.place.address, 0x7abc);
        BW_EQ(m->result.contiguous_bytes, 0x1000 - 0xabc);
        BW_EQ(m->result.page_bytes, 0x1000);
        BW_EQ(m->result.mtype, BW_MOCK_MMU_UC);
        BW_EQ(m->result.entries_read, 4);
        BW_TRUE(m->result.readable && m->result.writable && m->result.executable && !m->result.snooped);
        put(m, AT_PTE, system_words[g]);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_ATOMIC), 0);
        BW_EQ(m->result.place.aperture, BW_MOCK_MMU_SYSTEM);
        BW_EQ(m->result.place.address, 0x40001abc);
        BW_EQ(m->result.mtype, BW_MOCK_MMU_NC);
        BW_TRUE(m->result.snooped && !m->result.executable);
        put(m, AT_PDE0, large_words[g]);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_WRITE), 0);
        BW_EQ(m->result.place.address, 0x200000 + 0x189abc);
        BW_EQ(m->result.page_bytes, 0x200000);
        BW_EQ(m->result.contiguous_bytes, 0x200000 - 0x189abc);
        BW_EQ(m->result.entries_read, 3);
        put(m, AT_PDE1, giant_words[g]);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
        BW_EQ(m->result.place.address, 0x40000000 + 0x16789abc);
        BW_EQ(m->result.page_bytes, 0x40000000);
        BW_EQ(m->result.entries_read, 2);
        free(m);
    }
}

/* As gfx942 has it: two levels of directories, page tables that cover 1 GiB in blocks of 2 MiB. */
static void translate_further(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX9_4);
    m->context.depth = 2;
    m->context.block_size = 9;
    put(m, AT_PDE2, 0x2001);
    put(m, AT_PDE1, 0x4800000000003001); /* block fragment size 9 */
    put(m, AT_PDE0, 0x0000000000200471); /* 2 MiB at 0x200000, without a mark */
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.address, 0x200000 + 0x189abc);
    BW_EQ(m->result.page_bytes, 0x200000);
    put(m, AT_PDE0, 0x0100000000004001); /* further */
    put(m, AT_PTE, 0x0000000000007071);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.address, 0x7abc);
    BW_EQ(m->result.page_bytes, 0x1000);
    BW_EQ(m->result.entries_read, 4);
    put(m, AT_PDE0,
        0x2100000000004001); /* further, in blocks of 64 KiB: bits 20:16 of the address are 0x18 */
    put(m, 0x4000 + 0x18 * 8, 0x0000000000080271);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.address, 0x89abc);
    BW_EQ(m->result.page_bytes, 0x10000);
    put(m, 0x4000 + 0x18 * 8, 0x0100000000005001);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_FURTHER_TWICE);
    BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_FURTHER);
    put(m, AT_PDE0, 0x4900000000004001); /* blocks as large as what the entry covers */
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_BLOCK_FRAGMENT);
    put(m, AT_PDE1, 0x9800000000003001); /* blocks of 2 GiB in a table of 1 GiB */
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_BLOCK_FRAGMENT);
    free(m);
}

/* The same on gfx12, where the absence of bit 63 says it, and with tables that lie relative to the first. */
static void translate_further_gfx12(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX12);
    m->context.depth = 2;
    m->context.block_size = 9;
    put(m, AT_PDE2, 0x2001);
    put(m, AT_PDE1, 0x2400000000003001); /* block fragment size 9 */
    put(m, AT_PDE0, 0x8000000000200471);
    BW_EQ(vram_of(m, VA), 0x200000 + 0x189abc);
    put(m, AT_PDE0, 0x0000000000004001);
    put(m, AT_PTE, 0x8000000000007071);
    BW_EQ(vram_of(m, VA), 0x7abc);
    put(m, AT_PDE1, 0x2500000000003001); /* bit 56: 0x1000 from 0x3000 on */
    put(m, AT_PDE0, 0x0000000000001001);
    BW_EQ(vram_of(m, VA), 0x7abc);
    put(m, AT_PTE, 0);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_FURTHER);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_NO_VIOLATION);
    free(m);
}

/* gfx11 has both: bit 56 leads further, bit 57 of PDE0 says from where. */
static void translate_further_gfx11(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX11);
    m->context.depth = 2;
    m->context.block_size = 9;
    put(m, AT_PDE2, 0x2001);
    put(m, AT_PDE1, 0x4800000000003001);
    put(m, AT_PDE0, 0x0100000000004001);
    put(m, AT_PTE, 0x7071);
    BW_EQ(vram_of(m, VA), 0x7abc);
    put(m, AT_PDE1, 0x4a00000000003001);
    put(m, AT_PDE0, 0x0100000000001001);
    BW_EQ(vram_of(m, VA), 0x7abc);
    free(m);
}

static void reserved_bits_of_what_leads_further(void)
{
    static const struct {
        uint64_t pde, entry, page, reserved;
    } rows[] = {
        [BW_MOCK_MMU_GFX9_4] = {0x4800000000003001, 0x0100000000004001, 0x7071, 0x06ff000000000038},
        [BW_MOCK_MMU_GFX11] = {0x4800000000003001, 0x0100000000004001, 0x7071, 0x00f8000000000038},
        [BW_MOCK_MMU_GFX12] = {0x2400000000003001, 0x4001, 0x8000000000007071, 0x023f000000000038},
    };
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        uint64_t seen = 0;
        m->context.depth = 2;
        m->context.block_size = 9;
        put(m, AT_PDE2, 0x2001);
        put(m, AT_PDE1, rows[g].pde);
        put(m, AT_PTE, rows[g].page);
        for (int bit = 0; bit < 64; bit++) {
            put(m, AT_PDE0, rows[g].entry | 1ull << bit);
            int rc = walk(m, VA, BW_MOCK_MMU_READ);
            seen |= rc != 0 && m->result.fault.violation == BW_MOCK_MMU_RESERVED_BITS ? 1ull << bit : 0;
        }
        BW_EQ(seen, rows[g].reserved);
        m->hub.lenient = true;
        put(m, AT_PDE0, rows[g].entry | rows[g].reserved);
        BW_EQ(vram_of(m, VA), 0x7abc);
        free(m);
    }
}

/* Depth 0: one table from the start of the context on, as the kernel's GART. */
static void flat_table(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        m->context.depth = 0;
        m->context.start = 0x7fff00000000;
        m->context.end = 0x7fff1fffffff;
        put(m, 0x1000 + 0x300 * 8, page_words[g]); /* beyond 512 entries too */
        BW_EQ(vram_of(m, 0x7fff00300abc), 0x7abc);
        BW_EQ(walk(m, 0x7fff00300abc - 0x400000, BW_MOCK_MMU_READ), -EFAULT);
        BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_RANGE);
        BW_TRUE(m->result.fault.mapping_error);
        BW_EQ(walk(m, 0x7fff20000000, BW_MOCK_MMU_WRITE), -EFAULT);
        BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_RANGE);
        BW_EQ(m->result.fault.permission, BW_MOCK_MMU_NOT_VALID | BW_MOCK_MMU_NOT_WRITABLE);
        BW_EQ(m->result.entries_read, 0);
        free(m);
    }
}

/* One word of a public dump. */
struct dumped {
    uint64_t address, word;
};

struct dump {
    const struct dumped *words;
    size_t count;
};

static int dump_read(void *user, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    const struct dump *dump = user;
    for (size_t i = 0; i < dump->count; i++) {
        if (place->aperture == BW_MOCK_MMU_VRAM && dump->words[i].address == place->address) {
            *word = dump->words[i].word;
            return 0;
        }
    }
    return -EIO;
}

/* What umr printed on boards: umr's doc/sphinx/source/vm_decoding.rst of 2019 (Raven, whose VRAM begins at
 * 0x40000000) and of 2025 (gfx12), and AMD's notes on GPUVM (Vega 20). */
static void tables_of_boards(void)
{
    static const struct dumped raven[] = {
        {0x7fb6a800, 0xbfb69001}, {0x7fb69000, 0xbfb65001}, {0x7fb65000, 0x00400001820004f3}};
    static const struct dumped vega[] = {{0x3febfe7f8, 0xcf1001},
                                         {0xcf1ff8, 0xcf2001},
                                         {0xcf2df8, 0xcf3001},
                                         {0xcf3bb0, 0x3febfc071},
                                         {0xcf2d28, 0x06400007ed2004f7}};
    static const struct dumped flat[] = {{0x905800, 0x0600001044400073}};
    static const struct dumped navi[] = {{0x3daae67b8, 0x3daadd001}, {0x3daaddb00, 0x3daadc001},
                                         {0x3daadcb30, 0x3daae2001}, {0x3daae2588, 0x80000003da7bd171},
                                         {0x3daadc810, 0x3da7b9001}, {0x3da7b9000, 0x80c00001929501f7}};
    static const struct {
        struct dump dump;
        enum bw_mock_mmu_generation generation;
        uint32_t depth;
        uint64_t fb_offset, base, va;
        struct bw_mock_mmu_place place;
        uint64_t page, fragment;
        enum bw_mock_mmu_mtype mtype;
        bool snooped;
    } rows[] = {
        {{raven, 3},
         BW_MOCK_MMU_GFX9_4,
         3,
         0x40000000,
         0xbfb6a001,
         0x800000040400,
         {BW_MOCK_MMU_SYSTEM, 0, 0x182040400},
         2 << 20,
         2 << 20,
         BW_MOCK_MMU_NC,
         false},
        {{vega, 5},
         BW_MOCK_MMU_GFX9_4,
         3,
         0,
         0x3febfe001,
         0x7ffff7f76000,
         {BW_MOCK_MMU_VRAM, 0, 0x3febfc000},
         4096,
         4096,
         BW_MOCK_MMU_NC,
         false},
        {{vega, 5},
         BW_MOCK_MMU_GFX9_4,
         3,
         0,
         0x3febfe001,
         0x7ffff4a00000,
         {BW_MOCK_MMU_SYSTEM, 0, 0x7ed200000},
         2 << 20,
         2 << 20,
         BW_MOCK_MMU_UC,
         true},
        {{flat, 1},
         BW_MOCK_MMU_GFX9_4,
         0,
         0,
         0x900001,
         0xb00000,
         {BW_MOCK_MMU_SYSTEM, 0, 0x1044400000},
         4096,
         4096,
         BW_MOCK_MMU_UC,
         false},
        {{navi, 6},
         BW_MOCK_MMU_GFX12,
         3,
         0,
         0x3daae6001,
         0x7bd82ccb1000,
         {BW_MOCK_MMU_VRAM, 0, 0x3da7bd000},
         4096,
         16384,
         BW_MOCK_MMU_NC,
         false},
        {{navi, 6},
         BW_MOCK_MMU_GFX12,
         3,
         0,
         0x3daae6001,
         0x7bd820400080,
         {BW_MOCK_MMU_SYSTEM, 0, 0x192950080},
         4096,
         32768,
         BW_MOCK_MMU_UC,
         true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dump dump = rows[i].dump;
        struct bw_mock_mmu_hub hub = {.generation = rows[i].generation,
                                      .fb_offset = rows[i].fb_offset,
                                      .read = dump_read,
                                      .user = &dump};
        struct bw_mock_mmu_context context = {.hub = &hub,
                                              .vmid = 8,
                                              .enable = true,
                                              .depth = rows[i].depth,
                                              .base = rows[i].base,
                                              .end = (1ull << 48) - 1};
        struct bw_mock_mmu_result result;
        BW_EQ(bw_mock_mmu_walk(&context, rows[i].va, BW_MOCK_MMU_READ, &result), 0);
        BW_EQ(result.place.aperture, rows[i].place.aperture);
        BW_EQ(result.place.address, rows[i].place.address);
        BW_EQ(result.page_bytes, rows[i].page);
        BW_EQ(result.fragment_bytes, rows[i].fragment);
        BW_EQ(result.mtype, rows[i].mtype);
        BW_EQ(result.snooped, rows[i].snooped);
    }
}

static void directories_in_system_memory_and_in_a_peer(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX9_4);
    uint64_t word = 0x4001;
    m->hub.segment_bytes = 1 << 24;
    m->hub.region = 2;
    m->hub.region_max = 7;
    m->context.base = 0x2001001;                           /* segment 2 is its own */
    put(m, AT_PDE2, 0x5002001);                            /* segment 5 */
    memcpy(m->peer + AT_PDE1, &(uint64_t){0x40003007}, 8); /* the bus, snooped */
    memcpy(m->system + AT_PDE0, &(uint64_t){0x2000000 | word}, 8);
    put(m, AT_PTE, 0x7008031); /* segment 7: read, execute */
    BW_EQ(walk(m, VA, BW_MOCK_MMU_EXECUTE), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_PEER);
    BW_EQ(m->result.place.region, 7);
    BW_EQ(m->result.place.address, 0x8abc);
    put(m, AT_PTE, 0x8008031);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_NO_REGION);
    put(m, AT_PDE2, 0x6002001); /* nothing answers there */
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_NACK);
    BW_EQ(m->result.fault.entry.region, 6);
    BW_EQ(m->result.fault.entry.address, AT_PDE1);
    free(m);
}

static void partially_resident(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        put_directories(m);
        put(m, AT_PTE, prt_words[g]);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_WRITE), 0);
        BW_TRUE(m->result.prt);
        BW_EQ(m->result.place.aperture, BW_MOCK_MMU_NOWHERE);
        BW_EQ(m->result.contiguous_bytes, 0x1000 - 0xabc);
        BW_EQ(walk(m, VA, BW_MOCK_MMU_EXECUTE), 0); /* whatever its rights */
        free(m);
    }
    struct memory *m = memory_create(BW_MOCK_MMU_GFX12); /* without bit 63 it is no page at all */
    put_directories(m);
    put(m, AT_PTE, 0x0100000000000060);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_WRITE), -EFAULT);
    BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_FURTHER);
    free(m);
}

static void invalid_at_every_level(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        static const uint64_t at[] = {AT_PDE2, AT_PDE1, AT_PDE0};
        static const enum bw_mock_mmu_walker_error errors[] = {BW_MOCK_MMU_ERROR_PDE2, BW_MOCK_MMU_ERROR_PDE1,
                                                               BW_MOCK_MMU_ERROR_PDE0};
        for (int i = 0; i < 3; i++) {
            put_directories(m);
            put(m, at[i], 0x4000);
            BW_EQ(walk(m, VA, BW_MOCK_MMU_EXECUTE), -EFAULT);
            BW_EQ(m->result.fault.walker_error, errors[i]);
            BW_TRUE(m->result.fault.mapping_error);
            BW_EQ(m->result.fault.permission,
                  BW_MOCK_MMU_NOT_VALID | BW_MOCK_MMU_NOT_READABLE | BW_MOCK_MMU_NOT_EXECUTABLE);
            BW_EQ(m->result.fault.entry.address, at[i]);
            BW_EQ(m->result.fault.word, 0x4000);
        }
        put_directories(m);
        m->context.base = 0x1000;
        BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
        BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_PDE2);
        m->context.base = 0x1001;
        m->context.enable = false;
        BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
        BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_RANGE);
        free(m);
    }
}

/* The kernel clears entries to execute alone; logs of boards show 3 for a read of such, and 5 for a write. */
static void rights(void)
{
    static const uint64_t flags[] = {
        [BW_MOCK_MMU_GFX9_4] = 0, [BW_MOCK_MMU_GFX11] = 0, [BW_MOCK_MMU_GFX12] = 1ull << 63};
    static const struct {
        uint64_t word;
        uint32_t permission[4]; /* by enum bw_mock_mmu_op */
    } rows[] = {
        {0x7001, {2, 4, 0xa, 6}}, {0x7021, {0, 4, 8, 4}}, {0x7041, {2, 0, 0xa, 2}}, {0x7011, {2, 4, 2, 6}},
        {0x7061, {0, 0, 8, 0}},   {0x7031, {0, 4, 0, 4}}, {0x7071, {0, 0, 0, 0}},   {0x7000, {3, 5, 0xb, 7}},
        {0x7010, {3, 5, 3, 7}},   {0x7070, {1, 1, 1, 1}},
    };
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        put_directories(m);
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            put(m, AT_PTE, rows[i].word | flags[g]);
            for (int op = 0; op < 4; op++) {
                int rc = walk(m, VA, (enum bw_mock_mmu_op)op);
                BW_EQ(rc, rows[i].permission[op] ? -EFAULT : 0);
                BW_EQ(m->result.fault.permission, rows[i].permission[op]);
                BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_WALKED);
                BW_TRUE(!m->result.fault.mapping_error);
                if (rc != 0)
                    BW_EQ(m->result.fault.entry.address, AT_PTE);
            }
        }
        free(m);
    }
}

/* Every bit of a valid entry that is neither a field nor software's. */
static void reserved_bits(void)
{
    static const uint64_t in_pages[] = {
        [BW_MOCK_MMU_GFX9_4] = 0xf847000000000000,
        [BW_MOCK_MMU_GFX11] = 0xf840000000000000,
        [BW_MOCK_MMU_GFX12] = 0x780f000000000000,
    };
    static const uint64_t in_directories[] = {
        [BW_MOCK_MMU_GFX9_4] = 0x07bf000000000038,
        [BW_MOCK_MMU_GFX11] = 0x01b8000000000038,
        [BW_MOCK_MMU_GFX12] = 0x023f000000000038,
    };
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        uint64_t seen_pages = 0, seen_directories = 0;
        put_directories(m);
        for (int bit = 0; bit < 64; bit++) {
            uint64_t mask = 1ull << bit;
            bool leads_on = bit == 56 && g != BW_MOCK_MMU_GFX12; /* to another table: no page any more */
            put(m, AT_PTE, page_words[g] | mask);
            int rc = walk(m, VA, BW_MOCK_MMU_READ);
            seen_pages |=
                !leads_on && rc != 0 && m->result.fault.violation == BW_MOCK_MMU_RESERVED_BITS ? mask : 0;
            put(m, AT_PTE, page_words[g]);
            put(m, AT_PDE1, 0x3001 | mask);
            rc = walk(m, VA, BW_MOCK_MMU_READ);
            if (rc != 0 && m->result.fault.violation == BW_MOCK_MMU_RESERVED_BITS) {
                seen_directories |= mask;
                BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_PDE1);
            }
            put(m, AT_PDE1, 0x3001);
        }
        BW_EQ(seen_pages, in_pages[g]);
        BW_EQ(seen_directories, in_directories[g]);
        m->hub.lenient = true;
        put(m, AT_PTE, page_words[g] | (in_pages[g] & ~(1ull << 54)));
        put(m, AT_PDE1, 0x3001 | (in_directories[g] & ~0xff00000000000000));
        BW_EQ(vram_of(m, VA), 0x7abc);
        free(m);
    }
}

static void expect_violation(struct memory *m, uint64_t at, uint64_t word,
                             enum bw_mock_mmu_violation violation)
{
    uint64_t before;
    memcpy(&before, m->vram + at, sizeof before);
    put(m, at, word);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
    BW_STR(bw_mock_mmu_violation_name(m->result.fault.violation), bw_mock_mmu_violation_name(violation));
    put(m, at, before);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
}

static void what_no_document_allows(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        m->hub.vram_bytes = VRAM_BYTES;
        m->hub.fb_offset = 0x1000;
        m->context.base = 0x2001;
        put(m, AT_PDE2, 0x3001);
        put(m, AT_PDE1, 0x4001);
        put(m, AT_PDE0, 0x5001);
        put(m, AT_PTE, page_words[g] + 0x1000);
        BW_EQ(vram_of(m, VA), 0x7abc);
        expect_violation(m, AT_PDE0, large_words[g] + 0x1000, BW_MOCK_MMU_MISALIGNED_PAGE);
        expect_violation(m, AT_PDE1, giant_words[g] + 0x200000, BW_MOCK_MMU_MISALIGNED_PAGE);
        expect_violation(m, AT_PTE, page_words[g] | 8, BW_MOCK_MMU_ENCRYPTED);
        expect_violation(m, AT_PTE, page_words[g] - 0x7000, BW_MOCK_MMU_BELOW_FB);
        expect_violation(m, AT_PTE, page_words[g] + VRAM_BYTES, BW_MOCK_MMU_PAST_VRAM);
        expect_violation(m, AT_PDE1, 0x101001, BW_MOCK_MMU_PAST_VRAM);
        BW_EQ(walk(m, VA | 1ull << 48, BW_MOCK_MMU_READ), -EFAULT);
        BW_EQ(m->result.fault.violation, BW_MOCK_MMU_VA_HOLE);
        BW_EQ(walk(m, 0xffff923456789abc, BW_MOCK_MMU_READ),
              -EFAULT); /* the sign of bit 47 is no more bits */
        BW_EQ(m->result.fault.violation, BW_MOCK_MMU_NO_VIOLATION);
        BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_PDE2);
        if (g != BW_MOCK_MMU_GFX9_4) { /* 44 bits of physical address */
            expect_violation(m, AT_PTE, page_words[g] | 1ull << 44, BW_MOCK_MMU_ADDRESS_WIDTH);
            expect_violation(m, AT_PDE2, 0x3001 | 1ull << 47, BW_MOCK_MMU_ADDRESS_WIDTH);
        }
        if (g == BW_MOCK_MMU_GFX11)
            expect_violation(m, AT_PTE, page_words[g] | 1ull << 50, BW_MOCK_MMU_RESERVED_MTYPE);
        if (g == BW_MOCK_MMU_GFX12) { /* a page as other generations write it */
            expect_violation(m, AT_PTE, 0x8071, BW_MOCK_MMU_LEAF_WITHOUT_MARK);
            put(m, AT_PTE, 0x8071);
            BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), -EFAULT);
            BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_FURTHER);
        }
        free(m);
    }
}

/* A fragment is believed: from it comes the address, and how far one translation goes. */
static void fragments(void)
{
    for (int g = 0; g < BW_MOCK_MMU_GENERATION_COUNT; g++) {
        struct memory *m = memory_create((enum bw_mock_mmu_generation)g);
        uint64_t of_64k = 4ull << 7;
        put_directories(m);
        put(m, AT_PTE, page_words[g] + 0x42000 + of_64k); /* 0x49000: bits 15:12 are those of VA */
        BW_EQ(vram_of(m, VA), 0x49abc);
        BW_EQ(m->result.fragment_bytes, 0x10000);
        BW_EQ(m->result.page_bytes, 0x1000);
        BW_EQ(m->result.contiguous_bytes, 0x10000 - 0x9abc);
        put(m, AT_PTE, page_words[g] + 0x43000 + of_64k); /* 0x4a000: they are not */
        BW_EQ(vram_of(m, VA), 0x49abc);
        put(m, AT_PTE, page_words[g] + 0x43000);
        BW_EQ(vram_of(m, VA), 0x4aabc);
        put(m, AT_PDE0, large_words[g] + 0x200); /* 32 MiB */
        BW_EQ(vram_of(m, VA), 0x789abc);
        BW_EQ(m->result.contiguous_bytes, 0x2000000 - 0x789abc);
        put(m, AT_PDE0, large_words[g] - 0x480); /* 4 KiB, less than the page */
        BW_EQ(vram_of(m, VA), 0x389abc);
        BW_EQ(m->result.contiguous_bytes, 0x200000 - 0x189abc);
        m->context.end = VA + 99;
        BW_EQ(vram_of(m, VA), 0x389abc);
        BW_EQ(m->result.contiguous_bytes, 100);
        free(m);
    }
}

/* The apertures of AMD's notes on GPUVM (Vega 20), and its two addresses. */
static void apertures_of_vmid_0(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX9_4);
    m->context.vmid = 0;
    m->hub.access_mode = BW_MOCK_MMU_INSIDE_UNMAPPED;
    m->hub.system_low = 0xf400000000;
    m->hub.system_high = 0xffffffffffff;
    m->hub.fb_base = 0xf400000000;
    m->hub.fb_top = 0xf7feffffff;
    m->hub.agp_bot = 0xf800000000;
    m->hub.agp_top = 0xffffffffffff;
    m->hub.system_mtype = BW_MOCK_MMU_UC;
    BW_EQ(walk(m, 0x1084544b000, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_SYSTEM);
    BW_EQ(m->result.place.address, 0x104544b000);
    BW_EQ(walk(m, 0xf400a0a000, BW_MOCK_MMU_WRITE), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_VRAM);
    BW_EQ(m->result.place.address, 0xa0a000);
    BW_EQ(m->result.contiguous_bytes, 0xf7ff000000 - 0xf400a0a000);
    BW_EQ(m->result.mtype, BW_MOCK_MMU_UC);
    BW_EQ(walk(m, 0xf7ff000000, BW_MOCK_MMU_READ), -EFAULT); /* between the windows */
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_NO_APERTURE);
    m->hub.lenient = true;
    m->hub.default_address = 0x5000;
    BW_EQ(walk(m, 0xf7ff000010, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_DEFAULT);
    BW_EQ(m->result.place.address, 0x5010);
    put_directories(m); /* below the system aperture: through the tables */
    put(m, AT_PDE2 - 0x120, 0x2001);
    put(m, 0x2000, 0x3001);
    put(m, 0x3000, 0x4001);
    put(m, 0x4000, 0x7071);
    BW_EQ(vram_of(m, 0x10), 0x7010);
    m->hub.access_mode = BW_MOCK_MMU_TRANSLATED;
    BW_EQ(walk(m, 0xf400a0a000, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.walker_error, BW_MOCK_MMU_ERROR_PDE2);
    m->hub.access_mode = BW_MOCK_MMU_INSIDE_MAPPED;
    BW_EQ(walk(m, 0xf400a0a000, BW_MOCK_MMU_READ), -EFAULT);
    m->hub.access_mode = BW_MOCK_MMU_PHYSICAL;
    BW_EQ(vram_of(m, 0xf400a0a000), 0xa0a000);
    m->context.vmid = 1; /* has no apertures */
    BW_EQ(walk(m, 0xf400a0a000, BW_MOCK_MMU_READ), -EFAULT);
    m->hub.agp_bot = 0x7000; /* nor have physical addresses */
    BW_EQ(vram_of(m, 0x10), 0x7010);
    free(m);
}

/* The window of a hive leads to each segment; VRAM that is carved out of system memory lies on the bus. */
static void windows_of_hives_and_of_carved_out_memory(void)
{
    struct memory *m = memory_create(BW_MOCK_MMU_GFX9_4);
    m->context.vmid = 0;
    m->hub.fb_base = 0x8000000000;
    m->hub.fb_top = 0x8007ffffff;
    m->hub.segment_bytes = 1 << 24;
    m->hub.vram_bytes = VRAM_BYTES;
    m->hub.region = 3;
    m->hub.region_max = 7;
    m->hub.agp_bot = ~0ull;
    BW_EQ(vram_of(m, 0x8003000100), 0x100);
    BW_EQ(m->result.contiguous_bytes, VRAM_BYTES - 0x100);
    BW_EQ(walk(m, 0x8004000100, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_PEER);
    BW_EQ(m->result.place.region, 4);
    BW_EQ(m->result.contiguous_bytes, (1 << 24) - 0x100);
    BW_EQ(walk(m, 0x8003100000, BW_MOCK_MMU_READ), -EFAULT);
    BW_EQ(m->result.fault.violation, BW_MOCK_MMU_PAST_VRAM);
    free(m);
    m = memory_create(BW_MOCK_MMU_GFX11);
    m->hub.fb_base = 1;
    m->hub.fb_top = 0;
    m->hub.agp_bot = 0;
    m->hub.agp_top = 0xffffff;
    m->hub.agp_base = SYSTEM_BASE;
    memcpy(m->system + AT_PDE2, &(uint64_t){0x2001}, 8);
    memcpy(m->system + AT_PDE1, &(uint64_t){0x3001}, 8);
    memcpy(m->system + AT_PDE0, &(uint64_t){0x4001}, 8);
    memcpy(m->system + AT_PTE, &page_words[BW_MOCK_MMU_GFX11], 8);
    BW_EQ(walk(m, VA, BW_MOCK_MMU_READ), 0);
    BW_EQ(m->result.place.aperture, BW_MOCK_MMU_SYSTEM);
    BW_EQ(m->result.place.address, SYSTEM_BASE + 0x7abc);
    free(m);
}

static void every_violation_and_error_has_a_name(void)
{
    for (int i = 0; i < BW_MOCK_MMU_VIOLATION_COUNT; i++)
        BW_TRUE(bw_mock_mmu_violation_name((enum bw_mock_mmu_violation)i) != NULL);
    BW_STR(bw_mock_mmu_walker_error_name(BW_MOCK_MMU_ERROR_PDE1), "PDE1");
    BW_STR(bw_mock_mmu_walker_error_name(BW_MOCK_MMU_ERROR_DUMMY), "dummy page");
}

BW_TEST_MAIN("mock.mmu_walk", {"pages of 4 KiB, 2 MiB and 1 GiB", pages_of_every_size},
             {"translate further and block fragments", translate_further},
             {"translate further on gfx12", translate_further_gfx12},
             {"translate further on gfx11", translate_further_gfx11},
             {"reserved bits of what leads further", reserved_bits_of_what_leads_further},
             {"a flat table", flat_table}, {"page tables of boards", tables_of_boards},
             {"directories in system memory and in a peer", directories_in_system_memory_and_in_a_peer},
             {"partially resident textures", partially_resident},
             {"invalid entries at every level", invalid_at_every_level}, {"rights", rights},
             {"reserved bits", reserved_bits}, {"what no document allows", what_no_document_allows},
             {"fragments are believed", fragments}, {"apertures of VMID 0", apertures_of_vmid_0},
             {"hives and carved-out memory", windows_of_hives_and_of_carved_out_memory},
             {"names", every_violation_and_error_has_a_name})
