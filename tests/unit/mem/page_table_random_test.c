/* Goal: whatever is mapped, unmapped and protected in whatever order, the GPU finds in the bytes of the
 * tables exactly what a model of pages says: at every moment, since writes arrive late and in any order until
 * they are ordered, the walker keeps directory entries until they are flushed, and tables that were given
 * back are full of rubbish. The GPU is the mock's walker, which was written from other sources than the
 * tables' writer, refuses reserved bits, and believes fragments. */
#include "mem/page_table.h"

#include <bellwire/err.h>

#include "base/bits.h"
#include "base/map.h"
#include "base/vec.h"
#include "mock/mmu/walk.h"
#include "tests/check.h"
#include "tests/seed.h"

enum {
    WINDOW_PAGES = 1 << 19, /* 2 GiB of virtual address space, across a border of the root's entries */
    TABLES_MAX = 4096,
    CACHED_MAX = 64,
    ROUNDS = 60,
};
#define WINDOW_VA (0x4000000000ull * 2 - ((uint64_t)WINDOW_PAGES / 2 << BW_PAGE_SHIFT))
#define RUBBISH   0xdbdbdbdbdbdbdbdbull

/* What the model says of one page. 0: nothing; else address | attributes as bits below. */
typedef uint64_t page_word;

struct pending {
    uint32_t slot, index;
    uint64_t word;
};

/* A directory entry that the walker remembers. */
struct cached {
    uint64_t va; /* for which it was read */
    uint32_t level;
    uint64_t address, word;
    bool set;
};

struct gpu {
    const struct bw_page_codec *codec;
    struct bw_mock_mmu_hub hub;
    struct bw_mock_mmu_context context;
    uint64_t va; /* of the walk under way */
    bool met_rubbish;
    uint64_t fragment_bytes; /* that the TLB would keep for it */
    struct bw_rng *rng;
    uint64_t (*words)[BW_PAGE_TABLE_ENTRIES_MAX];
    bool used[TABLES_MAX];
    BW_VEC(struct pending) pending;
    struct cached cached[CACHED_MAX];
    uint64_t root;
    uint64_t base;             /* of the tables */
    page_word *before, *after; /* WINDOW_PAGES each: outside [first, end) they are the same */
    uint64_t first, end;
    uint64_t looks;
    bool wrong;
};

static uint64_t slot_of(const struct gpu *gpu, uint64_t address)
{
    return (address - gpu->base) / BW_PAGE_BYTES;
}

static int table_alloc(void *user, uint64_t *address, struct bw_err *err)
{
    struct gpu *gpu = user;
    uint32_t start = (uint32_t)bw_rng_below(gpu->rng, TABLES_MAX);
    for (uint32_t i = 0; i < TABLES_MAX; i++) {
        uint32_t slot = (start + i) % TABLES_MAX;
        if (gpu->used[slot])
            continue;
        gpu->used[slot] = true;
        *address = gpu->base + slot * BW_PAGE_BYTES;
        return 0;
    }
    return bw_fail(err, -ENOMEM, "gpu", "tables");
}

static void rubbish(struct gpu *gpu, uint32_t slot)
{
    for (uint32_t i = 0; i < BW_PAGE_TABLE_ENTRIES_MAX; i++)
        gpu->words[slot][i] = RUBBISH;
}

static void table_free(void *user, uint64_t address)
{
    struct gpu *gpu = user;
    gpu->used[slot_of(gpu, address)] = false;
    rubbish(gpu, (uint32_t)slot_of(gpu, address));
}

static int fetch(void *user, uint32_t level, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    struct gpu *gpu = user;
    uint64_t slot = slot_of(gpu, place->address);
    struct cached *cached = &gpu->cached[bw_hash64(place->address) % CACHED_MAX];
    if (slot >= TABLES_MAX || place->aperture != BW_MOCK_MMU_VRAM)
        return -EFAULT;
    *word = gpu->words[slot][place->address % BW_PAGE_BYTES / 8];
    if (level && cached->set && cached->address == place->address && bw_rng_below(gpu->rng, 2))
        *word = cached->word;
    else if (level && bw_rng_below(gpu->rng, 4) == 0)
        *cached = (struct cached){gpu->va, level, place->address, *word, true};
    gpu->met_rubbish |= *word == RUBBISH;
    return 0;
}

/* What the GPU finds; 0: nothing. False: it found rubbish. */
static bool walk(struct gpu *gpu, uint64_t va, page_word *found)
{
    struct bw_mock_mmu_result is;
    gpu->va = va;
    gpu->met_rubbish = false;
    *found = 0;
    int rc = bw_mock_mmu_walk_tables(&gpu->context, va, BW_MOCK_MMU_READ, fetch, gpu, &is);
    if (gpu->met_rubbish || (rc && is.fault.violation))
        return false;
    if (rc && !(is.word & 1)) /* of a page that is mapped and must not be read: valid */
        return true;
    gpu->fragment_bytes = is.fragment_bytes;
    *found = is.place.address | 1 | (uint64_t)(is.place.aperture == BW_MOCK_MMU_SYSTEM) << 1 |
             (uint64_t)is.readable << 2 | (uint64_t)is.writable << 3 | (uint64_t)is.executable << 4 |
             (uint64_t)is.snooped << 5 | (uint64_t)is.mtype << 6;
    return true;
}

/* One access of the GPU in the midst of everything. */
static void look(struct gpu *gpu)
{
    const struct cached *near = &gpu->cached[bw_rng_below(gpu->rng, CACHED_MAX)];
    uint64_t page = bw_rng_below(gpu->rng, WINDOW_PAGES);
    page_word found;
    if (near->set && bw_rng_below(gpu->rng, 2))
        page = (near->va - WINDOW_VA) >> BW_PAGE_SHIFT;
    else if (gpu->end > gpu->first && bw_rng_below(gpu->rng, 2))
        page = gpu->first + bw_rng_below(gpu->rng, gpu->end - gpu->first);
    gpu->looks++;
    bool sane = walk(gpu, WINDOW_VA + (page << BW_PAGE_SHIFT), &found);
    bool old = page >= gpu->first && page < gpu->end && found == gpu->before[page];
    if (sane && (old || found == gpu->after[page]))
        return;
    gpu->wrong = true;
    BW_TRUE(sane);
    BW_EQ(found, gpu->after[page]);
}

static void arrive(struct gpu *gpu, size_t i)
{
    struct pending write = gpu->pending.data[i];
    gpu->pending.data[i] = gpu->pending.data[--gpu->pending.count];
    gpu->words[write.slot][write.index] = write.word;
}

static void arrive_all(struct gpu *gpu)
{
    while (gpu->pending.count) {
        arrive(gpu, bw_rng_below(gpu->rng, gpu->pending.count));
        if (gpu->pending.count % 64 == 0)
            look(gpu);
    }
}

static int write_words(void *user, uint64_t address, const uint64_t *words, uint32_t count,
                       struct bw_err *err)
{
    struct gpu *gpu = user;
    uint32_t slot = (uint32_t)slot_of(gpu, address), index = (uint32_t)(address % BW_PAGE_BYTES / 8);
    if (!gpu->used[slot] || index + count > BW_PAGE_TABLE_ENTRIES_MAX)
        return bw_fail(err, -EFAULT, "gpu", "write");
    for (uint32_t i = 0; i < count; i++)
        if (bw_vec_push(&gpu->pending, (struct pending){slot, index + i, words[i]}))
            return bw_fail(err, -ENOMEM, "gpu", "write");
    for (uint64_t some = bw_rng_below(gpu->rng, 8); some && gpu->pending.count; some--)
        arrive(gpu, bw_rng_below(gpu->rng, gpu->pending.count));
    look(gpu);
    return 0;
}

static int order(void *user, struct bw_err *err)
{
    (void)err;
    arrive_all(user);
    return 0;
}

static int flush(void *user, uint64_t va, uint64_t size_bytes, struct bw_err *err)
{
    struct gpu *gpu = user;
    (void)err;
    arrive_all(gpu);
    uint64_t last = va + size_bytes - 1;
    for (uint32_t i = 0; i < CACHED_MAX; i++) {
        /* The whole of what the remembered entry covers counts: level 1 is the last directory. */
        unsigned shift = BW_PAGE_SHIFT + 9 * gpu->cached[i].level;
        uint64_t start = bw_align_down(gpu->cached[i].va, (uint64_t)1 << shift);
        if (start <= last && va < start + ((uint64_t)1 << shift))
            gpu->cached[i].set = false;
    }
    return 0;
}

static const struct bw_page_table_ops ops = {table_alloc, table_free, write_words, order, flush};

struct test {
    struct gpu gpu;
    struct bw_rng rng;
    struct bw_page_table *table;
    struct bw_err err;
    uint64_t mapped_pages;
};

static page_word attribute_bits(const struct bw_page_attributes *is)
{
    return 1 | (uint64_t)is->system << 1 | (uint64_t)is->read << 2 | (uint64_t)is->write << 3 |
           (uint64_t)is->execute << 4 | (uint64_t)is->snooped << 5 | (uint64_t)is->memory << 6;
}

static struct bw_page_attributes random_attributes(struct test *test)
{
    struct bw_page_attributes out = {0};
    uint64_t bits = bw_rng_next(&test->rng);
    out.system = bits & 1;
    out.snooped = out.system && bits & 2;
    out.read = bits & 4;
    out.write = bits & 8;
    out.execute = bits & 16;
    do
        out.memory = (enum bw_page_memory)bw_rng_below(&test->rng, 4);
    while (!(test->gpu.codec->memories >> out.memory & 1));
    return out;
}

/* Pages of a range: from one to two thirds of the window, every order of magnitude as likely. */
static uint64_t random_pages(struct test *test, uint64_t limit)
{
    uint64_t order = bw_rng_below(&test->rng, 20), pages = 1 + bw_rng_below(&test->rng, (uint64_t)1 << order);
    if (bw_rng_below(&test->rng, 2))
        pages = (uint64_t)1 << order;
    return pages < limit ? pages : limit;
}

static uint64_t aligned_below(struct test *test, uint64_t limit)
{
    static const uint64_t alignments[] = {1, 1, 16, 512, 512, 1 << 18};
    uint64_t alignment = alignments[bw_rng_below(&test->rng, BW_COUNT_OF(alignments))];
    return bw_align_down(bw_rng_below(&test->rng, limit), alignment);
}

static bool any_mapped(const struct test *test, uint64_t first, uint64_t end, bool mapped)
{
    for (uint64_t i = first; i < end; i++)
        if ((test->gpu.after[i] != 0) == mapped)
            return true;
    return false;
}

static void change_begin(struct test *test, uint64_t first, uint64_t end)
{
    test->gpu.first = first;
    test->gpu.end = end;
}

static void change_end(struct test *test, int rc, int expected)
{
    struct gpu *gpu = &test->gpu;
    if (!BW_EQ(rc, expected))
        gpu->wrong = true;
    memcpy(rc ? gpu->after + gpu->first : gpu->before + gpu->first,
           rc ? gpu->before + gpu->first : gpu->after + gpu->first,
           (gpu->end - gpu->first) * sizeof *gpu->after);
    gpu->first = gpu->end = 0;
}

enum { EXTENTS_MAX = 6 };

static void map_some(struct test *test)
{
    struct gpu *gpu = &test->gpu;
    uint64_t first = aligned_below(test, WINDOW_PAGES), at = first;
    struct bw_page_extent extents[EXTENTS_MAX];
    uint32_t count = 0, wanted = 1 + (uint32_t)bw_rng_below(&test->rng, EXTENTS_MAX);
    struct bw_page_attributes attributes = random_attributes(test);
    uint64_t reach_pages = ((uint64_t)1 << gpu->codec->physical_bits) >> BW_PAGE_SHIFT;
    while (count < wanted && at < WINDOW_PAGES) {
        uint64_t pages = random_pages(test, WINDOW_PAGES - at);
        uint64_t page = aligned_below(test, reach_pages - pages);
        if (count && bw_rng_below(&test->rng, 3) == 0 &&
            (extents[count - 1].address + extents[count - 1].size_bytes) / BW_PAGE_BYTES + pages <
                reach_pages)
            page = (extents[count - 1].address + extents[count - 1].size_bytes) / BW_PAGE_BYTES;
        extents[count++] = (struct bw_page_extent){page << BW_PAGE_SHIFT, pages << BW_PAGE_SHIFT};
        at += pages;
    }
    bool taken = any_mapped(test, first, at, true);
    change_begin(test, first, at);
    uint64_t page = first;
    for (uint32_t i = 0; i < count && !taken; i++)
        for (uint64_t j = 0; j < extents[i].size_bytes; j += BW_PAGE_BYTES)
            gpu->after[page++] = (extents[i].address + j) | attribute_bits(&attributes);
    int rc = bw_page_table_map(test->table, WINDOW_VA + (first << BW_PAGE_SHIFT), extents, count, &attributes,
                               &test->err);
    change_end(test, rc, taken ? -EEXIST : 0);
}

/* A range of which all is mapped, mostly: around a page that is. */
static bool range_pick(struct test *test, uint64_t *first, uint64_t *end)
{
    const page_word *pages = test->gpu.after;
    uint64_t page = bw_rng_below(&test->rng, WINDOW_PAGES), step = 0;
    while (step < WINDOW_PAGES && !pages[page]) {
        page = (page + 1) % WINDOW_PAGES;
        step++;
    }
    if (!pages[page])
        return false;
    uint64_t below = random_pages(test, page + 1), above = random_pages(test, WINDOW_PAGES - page);
    *first = page;
    *end = page + 1;
    bool careless = bw_rng_below(&test->rng, 16) == 0;
    while (below-- && *first && (careless || pages[*first - 1]))
        --*first;
    while (above-- && *end < WINDOW_PAGES && (careless || pages[*end]))
        ++*end;
    return true;
}

static void unmap_some(struct test *test)
{
    uint64_t first, end;
    if (!range_pick(test, &first, &end))
        return;
    bool hole = any_mapped(test, first, end, false);
    change_begin(test, first, end);
    if (!hole)
        memset(test->gpu.after + first, 0, (end - first) * sizeof *test->gpu.after);
    int rc = bw_page_table_unmap(test->table, WINDOW_VA + (first << BW_PAGE_SHIFT),
                                 (end - first) << BW_PAGE_SHIFT, &test->err);
    change_end(test, rc, hole ? -ENOENT : 0);
}

static void protect_some(struct test *test)
{
    uint64_t first, end;
    if (!range_pick(test, &first, &end))
        return;
    bool hole = any_mapped(test, first, end, false);
    struct bw_page_attributes attributes = random_attributes(test);
    change_begin(test, first, end);
    for (uint64_t i = first; i < end && !hole; i++)
        test->gpu.after[i] = bw_align_down(test->gpu.after[i], BW_PAGE_BYTES) | attribute_bits(&attributes);
    int rc = bw_page_table_protect(test->table, WINDOW_VA + (first << BW_PAGE_SHIFT),
                                   (end - first) << BW_PAGE_SHIFT, &attributes, &test->err);
    change_end(test, rc, hole ? -ENOENT : 0);
}

/* The TLB keeps one translation for a whole fragment: any other page of it has to be the one that follows. */
static void fragment_agrees(struct test *test, uint64_t page, page_word found)
{
    struct gpu *gpu = &test->gpu;
    uint64_t pages = gpu->fragment_bytes >> BW_PAGE_SHIFT;
    uint64_t first = bw_align_down((WINDOW_VA >> BW_PAGE_SHIFT) + page, pages) - (WINDOW_VA >> BW_PAGE_SHIFT);
    uint64_t other = first + bw_rng_below(&test->rng, pages);
    page_word expected = found + ((other - page) << BW_PAGE_SHIFT);
    if (other >= WINDOW_PAGES || gpu->after[other] != expected)
        gpu->wrong = !BW_EQ(other < WINDOW_PAGES ? gpu->after[other] : 0, expected);
}

static void all_pages_agree(struct test *test)
{
    struct gpu *gpu = &test->gpu;
    for (uint64_t page = 0; page < WINDOW_PAGES && !gpu->wrong; page += 1 + bw_rng_below(&test->rng, 8)) {
        page_word found = RUBBISH;
        if (!walk(gpu, WINDOW_VA + (page << BW_PAGE_SHIFT), &found) || found != gpu->after[page])
            gpu->wrong = !BW_EQ(found, gpu->after[page]);
        else if (found)
            fragment_agrees(test, page, found);
    }
}

static bool test_open(struct test *test, const struct bw_page_codec *codec)
{
    *test = (struct test){.rng = bw_test_rng(codec->name)};
    struct gpu *gpu = &test->gpu;
    gpu->codec = codec;
    gpu->rng = &test->rng;
    gpu->base = ((uint64_t)1 << codec->physical_bits) - TABLES_MAX * BW_PAGE_BYTES;
    gpu->words = calloc(TABLES_MAX, sizeof *gpu->words);
    gpu->before = calloc(WINDOW_PAGES, sizeof *gpu->before);
    gpu->after = calloc(WINDOW_PAGES, sizeof *gpu->after);
    if (!BW_TRUE(gpu->words && gpu->before && gpu->after))
        return false;
    for (uint32_t i = 0; i < TABLES_MAX; i++)
        rubbish(gpu, i);
    bool further = codec == &bw_page_codec_gfx9_4;
    gpu->hub.generation = further                         ? BW_MOCK_MMU_GFX9_4
                          : codec == &bw_page_codec_gfx11 ? BW_MOCK_MMU_GFX11
                                                          : BW_MOCK_MMU_GFX12;
    gpu->context = (struct bw_mock_mmu_context){.hub = &gpu->hub,
                                                .vmid = 1,
                                                .depth = further ? 2 : 3,
                                                .block_size = further ? 9 : 0,
                                                .end = ((uint64_t)1 << 48) - 1};
    return true;
}

static void run(const struct bw_page_codec *codec)
{
    struct test test;
    if (!test_open(&test, codec))
        return;
    struct gpu *gpu = &test.gpu;
    if (!BW_OK(bw_page_table_create(codec, &ops, gpu, &test.table, &test.err), &test.err))
        return;
    arrive_all(gpu);
    gpu->context.base = bw_page_table_root(test.table) | 1;
    gpu->context.enable = true;
    for (int round = 0; round < ROUNDS && !gpu->wrong; round++) {
        uint64_t what = bw_rng_below(&test.rng, 8);
        if (what < 3)
            map_some(&test);
        else if (what < 6)
            unmap_some(&test);
        else
            protect_some(&test);
        bw_page_table_check(test.table);
        if (round % 20 == 19)
            all_pages_agree(&test);
    }
    all_pages_agree(&test);
    BW_TRUE(gpu->looks > ROUNDS);
    bw_page_table_destroy(test.table);
    for (uint32_t i = 0; i < TABLES_MAX; i++)
        BW_TRUE(!gpu->used[i]);
    free(gpu->words);
    free(gpu->before);
    free(gpu->after);
    bw_vec_free(&gpu->pending);
}

static void gfx9_4(void)
{
    run(&bw_page_codec_gfx9_4);
}

static void gfx11(void)
{
    run(&bw_page_codec_gfx11);
}

static void gfx12(void)
{
    run(&bw_page_codec_gfx12);
}

BW_TEST_MAIN("mem.page_table_random", {"gfx9.4", gfx9_4}, {"gfx11", gfx11}, {"gfx12", gfx12})
