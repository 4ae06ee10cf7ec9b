/* Random maps, unmaps and changes of rights of pages of every size, against a list of what each page of 4 KiB
 * should be: the walker always agrees, the TLB after an invalidation, and without one it says what was true
 * at some time since the last. */
#include "base/rng.h"
#include "mock/mmu/tlb.h"
#include "tests/unit/mock/mmu_memory.h"

/* Four regions of 1 GiB in two of 512 GiB, of each four blocks of 2 MiB, of each sixteen pages. */
enum {
    REGIONS = 4,
    BLOCKS = 4,
    PAGES = 16,
    PAGE_COUNT = REGIONS * BLOCKS * PAGES,
    PAST_MAX = 64, /* states of a page that are remembered; the test invalidates before there are more */
};

/* Where the tables lie: root, two directories, then one of each region, then a table of each block. */
enum { ROOT = 0x1000, DIRECTORIES = 0x2000, REGION_TABLES = 0x10000, PAGE_TABLES = 0x20000 };

/* An independent reading of the layouts: what makes a word a page, what of a directory's word leads on. */
static const struct {
    enum bw_mock_mmu_generation generation;
    bool further; /* two levels and page tables of 1 GiB, as gfx942 */
    uint64_t page, large, region_pointer, block_pointer;
} variants[] = {
    {BW_MOCK_MMU_GFX9_4, false, 0, 1ull << 54, 0, 0},
    {BW_MOCK_MMU_GFX9_4, true, 0, 1ull << 54, 9ull << 59, 1ull << 56},
    {BW_MOCK_MMU_GFX11, false, 0, 1ull << 54, 0, 0},
    {BW_MOCK_MMU_GFX12, false, 1ull << 63, 1ull << 63, 0, 0},
    {BW_MOCK_MMU_GFX12, true, 1ull << 63, 1ull << 63, 9ull << 58, 0},
};

struct state {
    bool mapped;
    uint64_t address;
    uint32_t flags; /* bits 2:1 and 6:4 of entries */
};

struct model {
    struct memory *m;
    unsigned variant;
    struct bw_rng rng;
    struct state now[PAGE_COUNT], past[PAGE_COUNT][PAST_MAX];
    unsigned past_count[PAGE_COUNT], past_most;
    uint64_t leaf_bytes[REGIONS * BLOCKS]; /* of what maps a block: 4 KiB, 2 MiB, 1 GiB */
};

static uint64_t va_of(unsigned page)
{
    uint64_t region = page / (BLOCKS * PAGES), block = page / PAGES % BLOCKS, small = page % PAGES;
    return (region / 2 * 0x91 << 39) + (region % 2 * 0x133 << 30) + (block * 0x55 << 21) +
           (small * 0x1d << 12);
}

static uint64_t block_entry(unsigned block)
{
    return REGION_TABLES + block / BLOCKS * 0x1000 + (va_of(block * PAGES) >> 21 & 511) * 8;
}

static uint64_t region_entry(unsigned region)
{
    return DIRECTORIES + region / 2 * 0x1000 + (va_of(region * BLOCKS * PAGES) >> 30 & 511) * 8;
}

static void point_at_blocks(struct model *model, unsigned region)
{
    put(model->m, region_entry(region),
        (REGION_TABLES + region * 0x1000) | 1 | variants[model->variant].region_pointer);
    for (unsigned block = region * BLOCKS; block < (region + 1) * BLOCKS; block++)
        model->leaf_bytes[block] = 0;
}

static void point_at_pages(struct model *model, unsigned block)
{
    uint64_t table = PAGE_TABLES + block * 0x1000;
    if (model->leaf_bytes[block] == 4096)
        return;
    memset(model->m->vram + table, 0, 0x1000);
    put(model->m, block_entry(block), table | 1 | variants[model->variant].block_pointer);
    model->leaf_bytes[block] = 4096;
}

static void set_state(struct model *model, unsigned page, const struct state *state)
{
    model->now[page] = *state;
    model->past[page][model->past_count[page]++] = *state;
    if (model->past_count[page] > model->past_most)
        model->past_most = model->past_count[page];
}

static void set_states(struct model *model, unsigned first, unsigned count, const struct state *state)
{
    for (unsigned page = first; page < first + count; page++) {
        struct state one = *state;
        one.address += va_of(page) - va_of(first);
        set_state(model, page, &one);
    }
}

static uint64_t word_of(const struct state *state, uint64_t mark, unsigned fragment)
{
    return state->mapped ? state->address | state->flags | mark | (uint64_t)fragment << 7 | 1
                         : mark & 1ull << 63;
}

static struct state draw_state(struct model *model, uint64_t bytes)
{
    struct state state = {.mapped = bw_rng_below(&model->rng, 4) != 0};
    uint64_t slots = (1ull << 40) / bytes;
    if (state.mapped) {
        state.address = bw_rng_below(&model->rng, slots) * bytes;
        state.flags = (uint32_t)bw_rng_next(&model->rng) & 0x76;
        if (bw_rng_below(&model->rng, 2))
            state.flags |= 0x70;
    }
    return state;
}

static const struct state nothing;

/* A block loses what a page of 1 GiB or of 2 MiB gave it. */
static void split_region(struct model *model, unsigned region)
{
    if (model->leaf_bytes[region * BLOCKS] != 1 << 30)
        return;
    point_at_blocks(model, region);
    for (unsigned block = region * BLOCKS; block < (region + 1) * BLOCKS; block++)
        put(model->m, block_entry(block), variants[model->variant].page);
    set_states(model, region * BLOCKS * PAGES, BLOCKS * PAGES, &nothing);
}

static void change_page(struct model *model)
{
    unsigned page = (unsigned)bw_rng_below(&model->rng, PAGE_COUNT), block = page / PAGES;
    struct state state = draw_state(model, 4096);
    split_region(model, block / BLOCKS);
    if (model->leaf_bytes[block] != 4096) {
        point_at_pages(model, block);
        for (uint64_t at = 0; at < 512; at++) /* gfx12: a page that is not there is marked as one */
            put(model->m, PAGE_TABLES + block * 0x1000 + at * 8, variants[model->variant].page);
        set_states(model, block * PAGES, PAGES, &nothing);
    }
    if (bw_rng_below(&model->rng, 4) == 0 && model->now[page].mapped) { /* the same page, other rights */
        state = model->now[page];
        state.flags ^= 1u << (4 + bw_rng_below(&model->rng, 3));
    }
    put(model->m, PAGE_TABLES + block * 0x1000 + (va_of(page) >> 12 & 511) * 8,
        word_of(&state, variants[model->variant].page, 0));
    set_state(model, page, &state);
}

static void change_block(struct model *model)
{
    unsigned block = (unsigned)bw_rng_below(&model->rng, REGIONS * BLOCKS);
    struct state state = draw_state(model, 1 << 21);
    uint64_t mark =
        variants[model->variant].further ? variants[model->variant].page : variants[model->variant].large;
    split_region(model, block / BLOCKS);
    put(model->m, block_entry(block), word_of(&state, mark, 9));
    model->leaf_bytes[block] = 1 << 21;
    set_states(model, block * PAGES, PAGES, &state);
}

static void change_region(struct model *model)
{
    unsigned region = (unsigned)bw_rng_below(&model->rng, REGIONS);
    struct state state = draw_state(model, 1 << 30);
    put(model->m, region_entry(region), word_of(&state, variants[model->variant].large, 18));
    for (unsigned block = region * BLOCKS; block < (region + 1) * BLOCKS; block++)
        model->leaf_bytes[block] = 1 << 30;
    set_states(model, region * BLOCKS * PAGES, BLOCKS * PAGES, &state);
}

static void change(struct model *model)
{
    uint64_t die = bw_rng_below(&model->rng, 64);
    if (die == 0)
        change_region(model);
    else if (die < 8)
        change_block(model);
    else
        change_page(model);
}

static struct model *model_create(unsigned variant, uint64_t seed)
{
    struct model *model = calloc(1, sizeof *model);
    if (!BW_TRUE(model != NULL))
        exit(1);
    model->m = memory_create(variants[variant].generation);
    model->variant = variant;
    model->rng.state = seed;
    if (variants[variant].further) {
        model->m->context.depth = 2;
        model->m->context.block_size = 9;
    }
    put(model->m, ROOT, DIRECTORIES | 1);
    put(model->m, ROOT + 0x91 * 8, (DIRECTORIES + 0x1000) | 1);
    for (unsigned region = 0; region < REGIONS; region++) {
        point_at_blocks(model, region);
        set_states(model, region * BLOCKS * PAGES, BLOCKS * PAGES, &nothing);
    }
    return model;
}

static void model_free(struct model *model)
{
    free(model->m);
    free(model);
}

static bool agrees(const struct state *state, uint64_t in_page, enum bw_mock_mmu_op op, int rc,
                   const struct bw_mock_mmu_result *result)
{
    enum { SYSTEM = 2, SNOOPED = 4, X = 16, R = 32, W = 64 };
    static const uint32_t needed[] = {R, W, R | X, R | W};
    bool granted = state->mapped && (state->flags & needed[op]) == needed[op];
    if (!granted)
        return rc == -EFAULT && state->mapped == !(result->fault.permission & BW_MOCK_MMU_NOT_VALID) &&
               !result->fault.violation;
    return rc == 0 && result->place.address == state->address + in_page &&
           result->place.aperture == (state->flags & SYSTEM ? BW_MOCK_MMU_SYSTEM : BW_MOCK_MMU_VRAM) &&
           result->snooped == !!(state->flags & SNOOPED);
}

static bool was_so(const struct model *model, unsigned page, uint64_t in_page, enum bw_mock_mmu_op op, int rc,
                   const struct bw_mock_mmu_result *result)
{
    for (unsigned i = 0; i < model->past_count[page]; i++)
        if (agrees(&model->past[page][i], in_page, op, rc, result))
            return true;
    return false;
}

static void forget_past(struct model *model)
{
    for (unsigned page = 0; page < PAGE_COUNT; page++) {
        model->past[page][0] = model->now[page];
        model->past_count[page] = 1;
    }
    model->past_most = 1;
}

struct question {
    unsigned page;
    uint64_t in_page, va;
    enum bw_mock_mmu_op op;
};

static struct question draw_question(struct model *model)
{
    struct question q = {.page = (unsigned)bw_rng_below(&model->rng, PAGE_COUNT),
                         .in_page = bw_rng_below(&model->rng, 4096),
                         .op = (enum bw_mock_mmu_op)bw_rng_below(&model->rng, 4)};
    q.va = va_of(q.page) + q.in_page;
    return q;
}

enum { ROUNDS = 3000, QUESTIONS = 8 };

static void the_walker_agrees_at_once(void)
{
    for (unsigned variant = 0; variant < sizeof variants / sizeof variants[0]; variant++) {
        struct model *model = model_create(variant, 100 + variant);
        unsigned wrong = 0, granted = 0;
        for (unsigned round = 0; round < ROUNDS && !wrong; round++) {
            change(model);
            forget_past(model);
            for (unsigned i = 0; i < QUESTIONS; i++) {
                struct question q = draw_question(model);
                int rc = walk(model->m, q.va, q.op);
                wrong += !agrees(&model->now[q.page], q.in_page, q.op, rc, &model->m->result);
                granted += rc == 0;
            }
        }
        BW_EQ(wrong, 0);
        BW_TRUE(granted > ROUNDS * QUESTIONS / 10);
        model_free(model);
    }
}

static const struct bw_mock_tlb_invalidation everything = {
    .vmids = 2, .l1_ptes = true, .l2_ptes = true, .pde = {true, true, true}, .last = ~0ull};

/* invalidate_every: changes until the caches are told. */
static void through_the_tlb(unsigned invalidate_every, bool negative, bool must_be_stale_at_times)
{
    for (unsigned variant = 0; variant < sizeof variants / sizeof variants[0]; variant++) {
        struct model *model = model_create(variant, 200 + variant);
        struct bw_mock_tlb *tlb;
        struct bw_mock_tlb_config config = {.client_count = 2,
                                            .l1_entries = 8,
                                            .l2_entries = 64,
                                            .pde_entries = 16,
                                            .negative = negative,
                                            .evict_every = 50,
                                            .seed = variant};
        unsigned never_so = 0, stale = 0;
        BW_EQ(bw_mock_tlb_open(&tlb, &config), 0);
        for (unsigned round = 1; round <= ROUNDS && !never_so; round++) {
            change(model);
            if (round % invalidate_every == 0 || model->past_most > PAST_MAX - 8) {
                bw_mock_tlb_invalidate(tlb, &everything);
                forget_past(model);
            }
            for (unsigned i = 0; i < QUESTIONS; i++) {
                struct question q = draw_question(model);
                struct bw_mock_mmu_result result;
                int rc = bw_mock_tlb_translate(tlb, i % 2, &model->m->context, q.va, q.op, &result);
                never_so += !was_so(model, q.page, q.in_page, q.op, rc, &result);
                stale += !agrees(&model->now[q.page], q.in_page, q.op, rc, &result);
            }
        }
        BW_EQ(never_so, 0);
        BW_EQ(stale > 0, must_be_stale_at_times);
        bw_mock_tlb_close(tlb);
        model_free(model);
    }
}

static void the_tlb_agrees_after_an_invalidation(void)
{
    through_the_tlb(1, false, false);
    through_the_tlb(1, true, false);
}

static void the_tlb_is_stale_without_one(void)
{
    through_the_tlb(40, false, true);
    through_the_tlb(40, true, true);
}

BW_TEST_MAIN("mock.mmu_random", {"the walker agrees at once", the_walker_agrees_at_once},
             {"the TLB agrees after an invalidation", the_tlb_agrees_after_an_invalidation},
             {"the TLB is stale without one, but never wrong about the past", the_tlb_is_stale_without_one})
