/* Goal: entries have the bits that the kernel's headers give them, leaves are as large as both addresses
 * allow, what cannot be done is refused with nothing changed, and memory is given back after the flush. */
#include "mem/page_table.h"

#include <bellwire/err.h>

#include "base/bits.h"
#include "tests/check.h"

enum { TABLES_MAX = 64 };
#define TABLES_ADDRESS 0x40000000ull

/* VRAM for tables, and what was done to it, in order. */
struct world {
    uint64_t words[TABLES_MAX][BW_PAGE_TABLE_ENTRIES_MAX];
    bool used[TABLES_MAX];
    int allocs_left; /* then -ENOMEM */
    int writes_left; /* then -EIO */
    int flush_rc;
    uint32_t tables, flushes, orders, writes;
    uint64_t flush_va, flush_bytes;
    uint32_t freed_before_flush;
    bool unflushed; /* something was written since the last flush */
};

static int table_alloc(void *user, uint64_t *address, struct bw_err *err)
{
    struct world *world = user;
    for (uint32_t i = 0; i < TABLES_MAX && world->allocs_left; i++)
        if (!world->used[i]) {
            world->used[i] = true;
            world->allocs_left--;
            world->tables++;
            memset(world->words[i], 0xdb, sizeof world->words[i]);
            *address = TABLES_ADDRESS + i * BW_PAGE_BYTES;
            return 0;
        }
    return bw_fail(err, -ENOMEM, "world", "a table");
}

static void table_free(void *user, uint64_t address)
{
    struct world *world = user;
    world->used[(address - TABLES_ADDRESS) / BW_PAGE_BYTES] = false;
    world->tables--;
    world->freed_before_flush += world->unflushed;
}

static int write_words(void *user, uint64_t address, const uint64_t *words, uint32_t count,
                       struct bw_err *err)
{
    struct world *world = user;
    if (world->writes_left-- <= 0)
        return bw_fail(err, -EIO, "world", "write");
    uint64_t offset = address - TABLES_ADDRESS;
    memcpy((char *)world->words + offset, words, count * sizeof *words);
    world->writes++;
    world->unflushed = true;
    return 0;
}

static int order(void *user, struct bw_err *err)
{
    (void)err;
    ((struct world *)user)->orders++;
    return 0;
}

static int flush(void *user, uint64_t va, uint64_t size_bytes, struct bw_err *err)
{
    struct world *world = user;
    world->flushes++;
    world->flush_va = va;
    world->flush_bytes = size_bytes;
    if (world->flush_rc)
        return bw_fail(err, world->flush_rc, "world", "flush");
    world->unflushed = false;
    return 0;
}

static const struct bw_page_table_ops ops = {table_alloc, table_free, write_words, order, flush};
static const struct bw_page_attributes all = {.read = true, .write = true, .execute = true};

struct rig {
    struct world world;
    struct bw_page_table *table;
    struct bw_err err;
};

static bool rig_open(struct rig *rig, const struct bw_page_codec *codec)
{
    *rig = (struct rig){.world = {.allocs_left = 1000, .writes_left = 1000}};
    return BW_OK(bw_page_table_create(codec, &ops, &rig->world, &rig->table, &rig->err), &rig->err);
}

static void rig_close(struct rig *rig)
{
    bw_page_table_destroy(rig->table);
    BW_EQ(rig->world.tables, 0);
    BW_EQ(rig->world.freed_before_flush, 0);
}

static int map(struct rig *rig, uint64_t va, uint64_t address, uint64_t size_bytes,
               const struct bw_page_attributes *attributes)
{
    struct bw_page_extent extent = {address, size_bytes};
    int rc = bw_page_table_map(rig->table, va, &extent, 1, attributes, &rig->err);
    bw_page_table_check(rig->table);
    return rc;
}

static int unmap(struct rig *rig, uint64_t va, uint64_t size_bytes)
{
    int rc = bw_page_table_unmap(rig->table, va, size_bytes, &rig->err);
    bw_page_table_check(rig->table);
    return rc;
}

/* The word that the GPU would find at this level, by the addresses of the words above. */
static uint64_t word(struct rig *rig, uint32_t level, uint64_t va)
{
    uint64_t at = bw_page_table_root(rig->table), found = 0;
    for (uint32_t i = 0; i <= level; i++) {
        uint64_t slot = (at - TABLES_ADDRESS) / BW_PAGE_BYTES;
        if (!BW_TRUE(slot < TABLES_MAX && rig->world.used[slot]))
            return 0;
        found = rig->world.words[slot][va >> (39 - 9 * i) & 511];
        at = found & 0xfffffffff000;
    }
    return found;
}

#define BIT(n) ((uint64_t)1 << (n))

/* amdgpu_vm.h: V 0, S 1, C 2, X 4, R 5, W 6, fragment 7; gfx9 MTYPE 57, P 54, TF 56, BFS 59. */
static void words_of_gfx9_4(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx9_4))
        return;
    struct bw_page_attributes cached = {.read = true, .write = true, .memory = BW_PAGE_CACHED_LOCAL};
    struct bw_page_attributes host = {
        .system = true, .snooped = true, .read = true, .memory = BW_PAGE_UNCACHED};
    BW_EQ(map(&rig, 0x1000, 0x12345000, 0x1000, &cached), 0);
    BW_EQ(word(&rig, 3, 0x1000), 0x12345000 | 0x61 | BIT(57));
    BW_EQ(word(&rig, 3, 0), BIT(4));
    BW_EQ(word(&rig, 2, 0) & ~0xfffffffff000, BIT(0) | BIT(56));
    BW_EQ(word(&rig, 1, 0) & ~0xfffffffff000, BIT(0) | (uint64_t)9 << 59);
    BW_EQ(word(&rig, 0, 0) & ~0xfffffffff000, BIT(0));
    BW_EQ(word(&rig, 2, 0x200000), 0);
    BW_EQ(word(&rig, 1, 0x40000000), BIT(54));
    BW_EQ(map(&rig, 0x200000, 0xff00001000, 0x1000, &host), 0);
    BW_EQ(word(&rig, 3, 0x200000), 0xff00001000 | 0x27 | (uint64_t)3 << 57);
    BW_EQ(map(&rig, 0x400000, 0x7fe0200000, 0x200000, &all), 0);
    BW_EQ(word(&rig, 2, 0x400000), 0x7fe0200000 | 0x71 | 9 << 7); /* neither P nor TF */
    BW_EQ(map(&rig, 0x80000000, 0x40000000, 0x40000000, &all), 0);
    BW_EQ(word(&rig, 1, 0x80000000), 0x40000000 | 0x71 | 18 << 7 | BIT(54));
    rig_close(&rig);
}

/* gfx10's MTYPE 48, P 54. */
static void words_of_gfx11(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx11))
        return;
    struct bw_page_attributes uncached = {.read = true, .memory = BW_PAGE_UNCACHED};
    BW_EQ(map(&rig, 0x7ffff0000000, 0x12345000, 0x1000, &uncached), 0);
    BW_EQ(word(&rig, 3, 0x7ffff0000000), 0x12345000 | 0x21 | (uint64_t)3 << 48);
    BW_EQ(word(&rig, 3, 0x7ffff0001000), BIT(4));
    for (uint32_t level = 0; level < 3; level++)
        BW_EQ(word(&rig, level, 0x7ffff0000000) & ~0xfffffffff000, BIT(0));
    BW_EQ(word(&rig, 0, 0), BIT(54));
    BW_EQ(map(&rig, 0x7ffff0200000, 0x200000, 0x200000, &all), 0);
    BW_EQ(word(&rig, 2, 0x7ffff0200000), 0x200000 | 0x71 | 9 << 7 | BIT(54));
    BW_EQ(map(&rig, 0x40000000, 0x80000000, 0x40000000, &all), 0);
    BW_EQ(word(&rig, 1, 0x40000000), 0x80000000 | 0x71 | 18 << 7 | BIT(54));
    rig_close(&rig);
}

/* gmc_v12_0.c: P 63 in pages of every level, M 55:54. */
static void words_of_gfx12(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx12))
        return;
    struct bw_page_attributes uncached = {.read = true, .write = true, .memory = BW_PAGE_UNCACHED};
    BW_EQ(map(&rig, 0x1000, 0x12345000, 0x1000, &uncached), 0);
    BW_EQ(word(&rig, 3, 0x1000), 0x12345000 | 0x61 | (uint64_t)3 << 54 | BIT(63));
    for (uint32_t level = 0; level < 3; level++)
        BW_EQ(word(&rig, level, 0x1000) & ~0xfffffffff000, BIT(0));
    BW_EQ(map(&rig, 0x200000, 0x200000, 0x200000, &all), 0);
    BW_EQ(word(&rig, 2, 0x200000), 0x200000 | 0x71 | 9 << 7 | BIT(63));
    BW_EQ(word(&rig, 2, 0x400000), BIT(63));
    rig_close(&rig);
}

static void leaf_is(struct rig *rig, uint64_t va, uint64_t size_bytes, uint64_t address, uint32_t fragment)
{
    struct bw_page_mapping mapping;
    if (!BW_TRUE(bw_page_table_find(rig->table, va, &mapping)))
        return;
    BW_EQ(mapping.va, bw_align_down(va, size_bytes));
    BW_EQ(mapping.size_bytes, size_bytes);
    BW_EQ(mapping.address, address);
    BW_EQ(mapping.fragment, fragment);
}

/* A block that is aligned virtually only, or physically only, must not become a large page. */
static void leaves_need_both_alignments(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx11))
        return;
    BW_EQ(map(&rig, 0x40000000, 0x1000, 0x400000, &all), 0);
    leaf_is(&rig, 0x40000000, 0x1000, 0x1000, 0);
    leaf_is(&rig, 0x40200000, 0x1000, 0x201000, 0);
    BW_EQ(map(&rig, 0x50001000, 0x10000000, 0x200000, &all), 0);
    leaf_is(&rig, 0x50001000, 0x1000, 0x10000000, 0);
    BW_EQ(map(&rig, 0x60000000, 0x20200000, 0x600000, &all), 0);
    leaf_is(&rig, 0x60000000, 0x200000, 0x20200000, 9);
    leaf_is(&rig, 0x60200000, 0x200000, 0x20400000, 9);
    BW_EQ(map(&rig, 0x80000000, 0x200000, 0x40000000, &all), 0); /* not a gigabyte's page */
    leaf_is(&rig, 0x80000000, 0x200000, 0x200000, 9);
    BW_EQ(map(&rig, 0x70004000, 0x30004000, 0x10000, &all), 0); /* 16 + 32 + 16 KiB */
    leaf_is(&rig, 0x70004000, 0x1000, 0x30004000, 2);
    leaf_is(&rig, 0x70008000, 0x1000, 0x30008000, 3);
    leaf_is(&rig, 0x70010000, 0x1000, 0x30010000, 2);
    rig_close(&rig);
}

/* Host pages come as a list of small pieces: neighbours make a large page, strangers do not. */
static void extents_in_a_row_make_one_leaf(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx12))
        return;
    struct bw_page_extent extents[1024];
    for (uint32_t i = 0; i < 1024; i++)
        extents[i] = (struct bw_page_extent){0x10000000 + i * BW_PAGE_BYTES, BW_PAGE_BYTES};
    extents[700].address = 0x77000;
    BW_OK(bw_page_table_map(rig.table, 0x200000, extents, 1024, &all, &rig.err), &rig.err);
    leaf_is(&rig, 0x200000, 0x200000, 0x10000000, 9);
    leaf_is(&rig, 0x200000 + 700 * BW_PAGE_BYTES, 0x1000, 0x77000, 0);
    leaf_is(&rig, 0x200000 + 699 * BW_PAGE_BYTES, 0x1000, 0x10000000 + 699 * BW_PAGE_BYTES, 2);
    leaf_is(&rig, 0x400000, 0x1000, 0x10200000, 7);
    bw_page_table_check(rig.table);
    rig_close(&rig);
}

/* What is left of a large page, or of a fragment, says no more than is left. */
static void parts_may_go(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx9_4))
        return;
    BW_EQ(map(&rig, 0x40000000, 0x80000000, 0x40000000, &all), 0);
    struct bw_page_table_stats stats;
    bw_page_table_stats(rig.table, &stats);
    BW_EQ(stats.leaves, 1);
    BW_EQ(stats.tables, 2);
    BW_EQ(unmap(&rig, 0x40003000, 0x1000), 0);
    leaf_is(&rig, 0x40000000, 0x1000, 0x80000000, 1);
    leaf_is(&rig, 0x40002000, 0x1000, 0x80002000, 0);
    leaf_is(&rig, 0x40004000, 0x1000, 0x80004000, 2);
    leaf_is(&rig, 0x40100000, 0x1000, 0x80100000, 8);
    leaf_is(&rig, 0x40200000, 0x200000, 0x80200000, 9);
    leaf_is(&rig, 0x60000000, 0x200000, 0xa0000000, 17);
    bw_page_table_stats(rig.table, &stats);
    BW_EQ(stats.leaves, 511 + 511);
    BW_EQ(stats.mapped_bytes, 0x40000000 - 0x1000);
    struct bw_page_attributes readable = {.read = true};
    BW_EQ(bw_page_table_protect(rig.table, 0x60000000, 0x201000, &readable, &rig.err), 0);
    bw_page_table_check(rig.table);
    leaf_is(&rig, 0x60000000, 0x200000, 0xa0000000, 9);
    leaf_is(&rig, 0x60200000, 0x1000, 0xa0200000, 0);
    leaf_is(&rig, 0x60201000, 0x1000, 0xa0201000, 0);
    BW_EQ(unmap(&rig, 0x40000000, 0x3000), 0);
    BW_EQ(unmap(&rig, 0x40004000, 0x40000000 - 0x4000), 0);
    BW_EQ(rig.world.flush_va, 0x40004000);
    BW_EQ(rig.world.flush_bytes, 0x40000000 - 0x4000);
    bw_page_table_stats(rig.table, &stats);
    BW_EQ(stats.tables, 1);
    BW_EQ(stats.mapped_bytes, 0);
    BW_EQ(map(&rig, 0x40000000, 0x80000000, 0x40000000, &all), 0); /* tables were in its way */
    leaf_is(&rig, 0x40000000, 0x40000000, 0x80000000, 18);
    rig_close(&rig);
}

static void bad_calls_are_refused(void)
{
    struct rig rig;
    if (!rig_open(&rig, &bw_page_codec_gfx11))
        return;
    struct bw_page_attributes coherent = {.read = true, .memory = BW_PAGE_COHERENT};
    BW_EQ(map(&rig, 0x1001, 0, 0x1000, &all), -EINVAL);
    BW_EQ(map(&rig, 0x1000, 0x800, 0x1000, &all), -EINVAL);
    BW_EQ(map(&rig, 0x1000, 0, 0x1800, &all), -EINVAL);
    BW_EQ(map(&rig, 0x1000, 0, 0, &all), -EINVAL);
    BW_EQ(bw_page_table_map(rig.table, 0x1000, NULL, 0, &all, &rig.err), -EINVAL);
    BW_EQ(map(&rig, 0x1000, BIT(44), 0x1000, &all), -ERANGE);
    BW_EQ(map(&rig, 0x1000, BIT(44) - 0x1000, 0x2000, &all), -ERANGE);
    BW_EQ(map(&rig, BIT(48), 0, 0x1000, &all), -ERANGE);
    BW_EQ(map(&rig, BIT(48) - 0x1000, 0, 0x2000, &all), -ERANGE);
    BW_EQ(map(&rig, 0x1000, 0, 0x1000, &coherent), -EINVAL);
    BW_STR(rig.err.what, "memory type 2: gfx11 has none such");
    BW_EQ(map(&rig, BIT(48) - 0x1000, BIT(44) - 0x1000, 0x1000, &all), 0);
    BW_EQ(map(&rig, 0x200000, 0, 0x3000, &all), 0);
    static const struct {
        uint64_t va, size_bytes;
    } taken[] = {{0x200000, 0x1000}, {0x1ff000, 0x2000}, {0x202000, 0x200000}, {0, 0x40000000}};
    for (uint32_t i = 0; i < BW_COUNT_OF(taken); i++)
        BW_EQ(map(&rig, taken[i].va, 0, taken[i].size_bytes, &all), -EEXIST);
    BW_STR(rig.err.what, "map 0x0, 0x40000000 bytes: 0x200000 is mapped");
    BW_EQ(unmap(&rig, 0x1ff000, 0x2000), -ENOENT);
    BW_EQ(unmap(&rig, 0x200000, 0x4000), -ENOENT);
    BW_STR(rig.err.what, "unmap 0x200000, 0x4000 bytes: 0x203000 is not mapped");
    BW_EQ(bw_page_table_protect(rig.table, 0x202000, 0x2000, &all, &rig.err), -ENOENT);
    BW_EQ(unmap(&rig, 0x200000, 0x3000), 0);
    BW_EQ(unmap(&rig, 0x200000, 0x1000), -ENOENT);
    BW_EQ(unmap(&rig, BIT(48) - 0x1000, 0x1000), 0);
    struct bw_page_mapping mapping;
    BW_TRUE(!bw_page_table_find(rig.table, BIT(48), &mapping));
    BW_TRUE(!bw_page_table_find(rig.table, 0x200000, &mapping));
    rig_close(&rig);
}

/* Each table that cannot be had: the call fails, and nothing has changed for anyone. */
static void no_table(void)
{
    for (int allocs = 0; allocs < 3; allocs++) {
        struct rig rig;
        if (!rig_open(&rig, &bw_page_codec_gfx12))
            return;
        BW_EQ(map(&rig, 0x8000000000, 0x40000000, 0x40000000, &all), 0);
        uint32_t tables = rig.world.tables, flushes = rig.world.flushes, writes = rig.world.writes;
        rig.world.allocs_left = allocs;
        BW_EQ(map(&rig, 0x7fffa00000, 0x1000, 0x600000, &all), -ENOMEM); /* needs five */
        BW_STR(rig.err.what, "a table");
        BW_EQ(rig.world.tables, tables);
        BW_EQ(rig.world.writes, writes);
        BW_EQ(rig.world.flushes, flushes);
        if (allocs < 2) {
            BW_EQ(unmap(&rig, 0x8000003000, 0x1000), -ENOMEM); /* needs two */
            struct bw_page_mapping mapping;
            BW_TRUE(bw_page_table_find(rig.table, 0x8000003000, &mapping));
            BW_EQ(mapping.address + (0x8000003000 - mapping.va), 0x40003000);
        }
        rig.world.allocs_left = 100;
        BW_EQ(unmap(&rig, 0x8000003000, 0x1000), 0);
        rig_close(&rig);
    }
}

/* What did not reach the GPU is not known to be there: nothing goes on as if, and no memory is reused. */
static void a_lost_gpu(void)
{
    for (int flush_fails = 0; flush_fails < 2; flush_fails++) {
        struct rig rig;
        if (!rig_open(&rig, &bw_page_codec_gfx12))
            return;
        BW_EQ(map(&rig, 0x200000, 0x1000, 0x1000, &all), 0);
        uint32_t tables = rig.world.tables;
        if (flush_fails)
            rig.world.flush_rc = -ETIMEDOUT;
        else
            rig.world.writes_left = 0;
        BW_EQ(bw_page_table_unmap(rig.table, 0x200000, 0x1000, &rig.err), flush_fails ? -ETIMEDOUT : -EIO);
        BW_EQ(rig.world.tables, tables);
        BW_EQ(bw_page_table_unmap(rig.table, 0x200000, 0x1000, &rig.err), -EIO);
        BW_STR(rig.err.what, "an earlier change did not reach the GPU");
        struct bw_page_extent extent = {0, 0x1000};
        BW_EQ(bw_page_table_map(rig.table, 0, &extent, 1, &all, &rig.err), -EIO);
        rig.world.unflushed = false;
        rig_close(&rig);
    }
}

static void no_root(void)
{
    struct world world = {.allocs_left = 0, .writes_left = 9};
    struct bw_page_table *table = NULL;
    struct bw_err err = {0};
    BW_EQ(bw_page_table_create(&bw_page_codec_gfx11, &ops, &world, &table, &err), -ENOMEM);
    world.allocs_left = 1;
    world.writes_left = 0;
    BW_EQ(bw_page_table_create(&bw_page_codec_gfx11, &ops, &world, &table, &err), -EIO);
    BW_EQ(world.tables, 0);
    BW_TRUE(table == NULL);
    bw_page_table_destroy(NULL);
}

BW_TEST_MAIN("mem.page_table", {"words of gfx9.4", words_of_gfx9_4}, {"words of gfx11", words_of_gfx11},
             {"words of gfx12", words_of_gfx12}, {"leaves need both alignments", leaves_need_both_alignments},
             {"extents in a row make one leaf", extents_in_a_row_make_one_leaf},
             {"parts may go", parts_may_go}, {"bad calls are refused", bad_calls_are_refused},
             {"no table", no_table}, {"a lost gpu", a_lost_gpu}, {"no root", no_root})
