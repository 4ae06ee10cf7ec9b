/* A hub's caches serve what they have, true or not, until what it stands in is invalidated: each level by its
 * own bit, each VMID and range for itself. */
#include "mock/mmu/tlb.h"
#include "tests/unit/mock/mmu_memory.h"

enum { UNMAPPED = -1, NO_RIGHT = -2 };

struct cached {
    struct memory *m;
    struct bw_mock_tlb *tlb;
    struct bw_mock_mmu_result result;
};

static void begin(struct cached *c, const struct bw_mock_tlb_config *config)
{
    c->m = memory_create(BW_MOCK_MMU_GFX11);
    put_directories(c->m);
    put(c->m, AT_PTE, 0x7071);
    BW_EQ(bw_mock_tlb_open(&c->tlb, config), 0);
}

static void end(struct cached *c)
{
    bw_mock_tlb_close(c->tlb);
    free(c->m);
}

/* Where client's access leads in VRAM, or what it is refused for. */
static int64_t ask(struct cached *c, uint32_t client, uint64_t va, enum bw_mock_mmu_op op)
{
    int rc = bw_mock_tlb_translate(c->tlb, client, &c->m->context, va, op, &c->result);
    if (rc == 0)
        return (int64_t)c->result.place.address;
    BW_EQ(rc, -EFAULT);
    BW_EQ(c->result.fault.va, va);
    BW_EQ(c->result.fault.op, op);
    BW_EQ(c->result.fault.vmid, c->m->context.vmid);
    return c->result.fault.permission & BW_MOCK_MMU_NOT_VALID ? UNMAPPED : NO_RIGHT;
}

static int64_t ask_read(struct cached *c, uint64_t va)
{
    return ask(c, 0, va, BW_MOCK_MMU_READ);
}

static const struct bw_mock_tlb_invalidation everything = {
    .vmids = 0xffff, .l1_ptes = true, .l2_ptes = true, .pde = {true, true, true}, .last = ~0ull};

static struct bw_mock_tlb_counters counters(const struct cached *c)
{
    struct bw_mock_tlb_counters counters;
    bw_mock_tlb_counters_read(c->tlb, &counters);
    return counters;
}

static void stale_until_each_level_is_invalidated(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    BW_EQ(ask_read(&c, VA), 0x7abc);
    put(c.m, AT_PTE, 0x8071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    struct bw_mock_tlb_invalidation l1 = {.vmids = 2, .l1_ptes = true, .last = ~0ull};
    bw_mock_tlb_invalidate(c.tlb, &l1);
    BW_EQ(ask_read(&c, VA), 0x7abc); /* from the L2, into the L1 */
    struct bw_mock_tlb_invalidation l2 = {.vmids = 2, .l2_ptes = true, .last = ~0ull};
    bw_mock_tlb_invalidate(c.tlb, &l2);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    struct bw_mock_tlb_invalidation both = {.vmids = 2, .l1_ptes = true, .l2_ptes = true, .last = ~0ull};
    bw_mock_tlb_invalidate(c.tlb, &both);
    BW_EQ(ask_read(&c, VA), 0x8abc);
    /* another page table, behind the directories that the walker has */
    put(c.m, AT_PDE0, 0x9001);
    put(c.m, 0x9c48, 0xa071);
    bw_mock_tlb_invalidate(c.tlb, &both);
    BW_EQ(ask_read(&c, VA), 0x8abc);
    both.pde[1] = both.pde[2] = true;
    bw_mock_tlb_invalidate(c.tlb, &both);
    BW_EQ(ask_read(&c, VA), 0x8abc);
    both.pde[0] = true;
    bw_mock_tlb_invalidate(c.tlb, &both);
    BW_EQ(ask_read(&c, VA), 0xaabc);
    end(&c);
}

static void what_is_counted(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){.client_count = 2});
    ask_read(&c, VA);
    struct bw_mock_tlb_counters seen = counters(&c);
    BW_EQ(seen.walks, 1);
    BW_EQ(seen.words_read, 4);
    BW_EQ(seen.pde_hits, 0);
    ask_read(&c, VA + 8);
    ask_read(&c, VA);
    ask(&c, 1, VA, BW_MOCK_MMU_READ); /* another L1, the same L2 */
    seen = counters(&c);
    BW_EQ(seen.l1_hits, 2);
    BW_EQ(seen.l2_hits, 1);
    BW_EQ(seen.walks, 1);
    put(c.m, AT_PTE + 8, 0x9071);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x9abc);
    seen = counters(&c);
    BW_EQ(seen.walks, 2);
    BW_EQ(seen.pde_hits, 3);
    BW_EQ(seen.words_read, 5);
    BW_EQ(c.m->reads, 5);
    end(&c);
}

static void vmids_do_not_see_each_other(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    struct bw_mock_mmu_context first = c.m->context, second = first;
    second.vmid = 2;
    second.base = 0x11001;
    put(c.m, AT_PDE2 + 0x10000, 0x12001);
    put(c.m, AT_PDE1 + 0x10000, 0x13001);
    put(c.m, AT_PDE0 + 0x10000, 0x14001);
    put(c.m, AT_PTE + 0x10000, 0x17071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    c.m->context = second;
    BW_EQ(ask_read(&c, VA), 0x17abc);
    put(c.m, AT_PTE, 0x8071);
    put(c.m, AT_PTE + 0x10000, 0x18071);
    struct bw_mock_tlb_invalidation of_second = everything;
    of_second.vmids = 1 << 2;
    bw_mock_tlb_invalidate(c.tlb, &of_second);
    BW_EQ(ask_read(&c, VA), 0x18abc);
    c.m->context = first;
    BW_EQ(ask_read(&c, VA), 0x7abc);
    /* what one has not mapped, it has not, whatever the other has cached */
    put(c.m, AT_PTE + 8, 0x9071);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x9abc);
    c.m->context = second;
    BW_EQ(ask_read(&c, VA + 0x1000), UNMAPPED);
    end(&c);
}

/* Two VMIDs with the same tables have directory entries of their own, in a cache of one set. */
static void directories_are_kept_by_vmid(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){.pde_entries = 4});
    put(c.m, 0x9c48, 0xa071);
    put(c.m, 0x9c50, 0xb071);
    put(c.m, AT_PTE + 8, 0x8071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    put(c.m, AT_PDE0, 0x9001);
    c.m->context.vmid = 2;
    BW_EQ(ask_read(&c, VA), 0xaabc);
    BW_EQ(counters(&c).pde_hits, 0);
    end(&c);
    begin(&c, &(struct bw_mock_tlb_config){.pde_entries = 64});
    put(c.m, AT_PTE + 8, 0x8071);
    put(c.m, 0x9c50, 0xb071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    put(c.m, AT_PDE0, 0x9001);
    struct bw_mock_tlb_invalidation of_other = everything;
    of_other.vmids = 1 << 2;
    bw_mock_tlb_invalidate(c.tlb, &of_other);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x8abc);
    BW_EQ(counters(&c).pde_hits, 3);
    end(&c);
}

static void only_what_overlaps_the_range_goes(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    uint64_t page = VA & ~0xfffull;
    put(c.m, AT_PTE + 8, 0x9071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x9abc);
    put(c.m, AT_PTE, 0xa071);
    put(c.m, AT_PTE + 8, 0xb071);
    struct bw_mock_tlb_invalidation some = everything;
    some.first = page + 0x2000;
    bw_mock_tlb_invalidate(c.tlb, &some);
    some.first = 0;
    some.last = page - 1;
    bw_mock_tlb_invalidate(c.tlb, &some);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x9abc);
    some.first = some.last = page + 0xfff;
    bw_mock_tlb_invalidate(c.tlb, &some);
    BW_EQ(ask_read(&c, VA), 0xaabc);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x9abc);
    end(&c);
}

static void invalid_entries_are_kept_if_asked_for(void)
{
    for (int negative = 0; negative < 2; negative++) {
        struct cached c;
        begin(&c, &(struct bw_mock_tlb_config){.negative = negative});
        put(c.m, AT_PTE, 0x10);
        BW_EQ(ask_read(&c, VA), UNMAPPED);
        BW_EQ(c.result.fault.permission, BW_MOCK_MMU_NOT_VALID | BW_MOCK_MMU_NOT_READABLE);
        put(c.m, AT_PTE, 0x7071);
        BW_EQ(ask_read(&c, VA), negative ? UNMAPPED : 0x7abc);
        if (negative) { /* the same entry, asked for other things */
            BW_EQ(ask(&c, 0, VA + 4, BW_MOCK_MMU_EXECUTE), UNMAPPED);
            BW_EQ(c.result.fault.permission, BW_MOCK_MMU_NOT_VALID | BW_MOCK_MMU_NOT_READABLE);
            BW_EQ(c.result.fault.entry.address, AT_PTE);
            BW_EQ(c.result.fault.word, 0x10);
            BW_EQ(counters(&c).negative_hits, 2);
        }
        /* a directory that has no table */
        uint64_t other = VA ^ 1ull << 30;
        BW_EQ(ask_read(&c, other), UNMAPPED);
        put(c.m, AT_PDE1 ^ 8, 0x3001);
        BW_EQ(ask_read(&c, other), negative ? UNMAPPED : 0x7abc);
        BW_EQ(c.result.fault.walker_error, negative ? BW_MOCK_MMU_ERROR_PDE1 : c.result.fault.walker_error);
        struct bw_mock_tlb_invalidation ptes = {.vmids = 2, .l1_ptes = true, .l2_ptes = true, .last = ~0ull};
        bw_mock_tlb_invalidate(c.tlb, &ptes);
        BW_EQ(ask_read(&c, VA), 0x7abc);
        BW_EQ(ask_read(&c, other), negative ? UNMAPPED : 0x7abc); /* the walker has it too */
        bw_mock_tlb_invalidate(c.tlb, &everything);
        BW_EQ(ask_read(&c, other), 0x7abc);
        end(&c);
    }
}

/* What is not an entry is not kept: addresses outside, tables that nobody answers for, what is refused by
 * name. */
static void what_is_never_kept(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){.negative = true});
    c.m->context.end = VA - 1;
    BW_EQ(ask_read(&c, VA), UNMAPPED);
    BW_EQ(c.result.fault.walker_error, BW_MOCK_MMU_ERROR_RANGE);
    c.m->context.end = (1ull << 48) - 1;
    put(c.m, AT_PTE, 0x7071 | 1ull << 60);
    BW_EQ(ask_read(&c, VA), UNMAPPED);
    BW_EQ(c.result.fault.violation, BW_MOCK_MMU_RESERVED_BITS);
    put(c.m, AT_PTE, 0x7071);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    BW_EQ(ask_read(&c, VA | 1ull << 60), UNMAPPED);
    BW_EQ(c.result.fault.violation, BW_MOCK_MMU_VA_HOLE);
    put(c.m, AT_PDE0 + 8, 0x101001);
    BW_EQ(ask_read(&c, VA + (2 << 20)), UNMAPPED);
    BW_EQ(c.result.fault.walker_error, BW_MOCK_MMU_ERROR_NACK);
    end(&c);
}

static void rights_are_stale_too(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    BW_EQ(ask(&c, 0, VA, BW_MOCK_MMU_WRITE), 0x7abc);
    put(c.m, AT_PTE, 0x7021);
    BW_EQ(ask(&c, 0, VA, BW_MOCK_MMU_ATOMIC), 0x7abc);
    bw_mock_tlb_invalidate(c.tlb, &everything);
    BW_EQ(ask(&c, 0, VA, BW_MOCK_MMU_ATOMIC), NO_RIGHT);
    BW_EQ(c.result.fault.permission, BW_MOCK_MMU_NOT_WRITABLE);
    BW_EQ(c.result.fault.walker_error, BW_MOCK_MMU_WALKED);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    put(c.m, AT_PTE, 0x7071);
    BW_EQ(ask(&c, 0, VA, BW_MOCK_MMU_EXECUTE), NO_RIGHT);
    BW_EQ(c.result.fault.permission, BW_MOCK_MMU_NOT_EXECUTABLE);
    BW_EQ(c.result.fault.word, 0x7021);
    bw_mock_tlb_invalidate(c.tlb, &everything);
    BW_EQ(ask(&c, 0, VA, BW_MOCK_MMU_EXECUTE), 0x7abc);
    end(&c);
}

/* Two entries say that they are of one fragment of 64 KiB, and only the first is where the fragment is. */
static void fragments_that_lie_are_believed(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    uint64_t of_64k = 4 << 7;
    put(c.m, AT_PTE, 0x49071 | of_64k);     /* page 9 of the fragment */
    put(c.m, AT_PTE + 8, 0x8a071 | of_64k); /* page 10 of another one */
    BW_EQ(ask_read(&c, VA), 0x49abc);
    BW_EQ(c.result.contiguous_bytes, 0x10000 - 0x9abc);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x4aabc);
    BW_EQ(ask_read(&c, VA - 0x9000), 0x40abc); /* nothing is mapped there */
    BW_EQ(ask_read(&c, VA + 0x7000), UNMAPPED);
    bw_mock_tlb_invalidate(c.tlb, &everything);
    BW_EQ(ask_read(&c, VA + 0x1000), 0x8aabc);
    BW_EQ(ask_read(&c, VA), 0x89abc);
    /* The L2 has pages only: an L1 that has forgotten the fragment finds its own page's entry. */
    struct bw_mock_tlb_invalidation l1 = {.vmids = 2, .l1_ptes = true, .last = ~0ull};
    bw_mock_tlb_invalidate(c.tlb, &l1);
    BW_EQ(ask_read(&c, VA), 0x49abc);
    /* An invalidation of one page takes the fragment that holds it. */
    struct bw_mock_tlb_invalidation page = everything;
    page.first = page.last = (VA & ~0xfffull) + 0x1000;
    put(c.m, AT_PTE, 0x59071);
    bw_mock_tlb_invalidate(c.tlb, &page);
    BW_EQ(ask_read(&c, VA), 0x49abc); /* the L2 still has the page of VA */
    page.first = page.last = VA;
    bw_mock_tlb_invalidate(c.tlb, &page);
    BW_EQ(ask_read(&c, VA), 0x59abc);
    end(&c);
}

static void a_fragment_ends_with_memory_and_with_the_context(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    uint64_t of_1m = 8 << 7;
    c.m->hub.vram_bytes = 0x8f000;
    put(c.m, AT_PTE, 0x89071 | of_1m); /* VA is 0x89abc into a fragment of 1 MiB */
    BW_EQ(ask_read(&c, VA), 0x89abc);
    BW_EQ(c.result.contiguous_bytes, 0x8f000 - 0x89abc);
    BW_EQ(ask_read(&c, VA - 0x89000), 0xabc);
    BW_EQ(ask_read(&c, VA + 0x5000), 0x8eabc);
    BW_EQ(c.result.contiguous_bytes, 0x544);
    BW_EQ(ask_read(&c, VA + 0x6000), UNMAPPED); /* past memory the fragment says nothing */
    bw_mock_tlb_invalidate(c.tlb, &everything);
    c.m->context.end = VA + 0xfff;
    BW_EQ(ask_read(&c, VA), 0x89abc);
    BW_EQ(c.result.contiguous_bytes, 0x1000);
    BW_EQ(ask_read(&c, VA + 0x1000), UNMAPPED);
    BW_EQ(c.result.fault.walker_error, BW_MOCK_MMU_ERROR_RANGE);
    end(&c);
    begin(&c, &(struct bw_mock_tlb_config){0}); /* and begins with it: VRAM is 0x8000 into the fragment */
    c.m->hub.fb_offset = 0x8000;
    c.m->context.base = 0x9001;
    put(c.m, AT_PDE2, 0xa001);
    put(c.m, AT_PDE1, 0xb001);
    put(c.m, AT_PDE0, 0xc001);
    put(c.m, AT_PTE, 0x9071 | 4 << 7);
    BW_EQ(ask_read(&c, VA), 0x1abc);
    BW_EQ(ask_read(&c, VA - 0x1abc), 0);
    BW_EQ(ask_read(&c, VA - 0x1b00), UNMAPPED);
    end(&c);
}

/* Victims are drawn: with a small TLB and with evictions a stale entry goes some time, at the same time for
 * the same seed. */
static void evictions_are_seeded(void)
{
    unsigned gone_after[2];
    for (int run = 0; run < 2; run++) {
        struct cached c;
        begin(&c, &(struct bw_mock_tlb_config){
                      .l1_entries = 4, .l2_entries = 8, .pde_entries = 4, .evict_every = 3, .seed = 7});
        BW_EQ(ask_read(&c, VA), 0x7abc);
        put(c.m, AT_PTE, 0x8071);
        unsigned lookups = 0;
        while (ask_read(&c, VA) == 0x7abc && lookups < 10000)
            lookups++;
        BW_EQ(ask_read(&c, VA), 0x8abc);
        BW_TRUE(lookups > 0 && lookups < 10000);
        BW_EQ(counters(&c).evictions, (lookups + 3) / 3);
        gone_after[run] = lookups;
        end(&c);
    }
    BW_EQ(gone_after[0], gone_after[1]);
}

static void vmid_0_reaches_apertures_past_the_caches(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    c.m->context.vmid = 0;
    c.m->hub.access_mode = BW_MOCK_MMU_INSIDE_UNMAPPED;
    c.m->hub.fb_base = c.m->hub.system_low = 0x8000000000;
    c.m->hub.fb_top = c.m->hub.system_high = 0x80000fffff;
    BW_EQ(ask_read(&c, 0x8000001234), 0x1234);
    BW_EQ(ask_read(&c, VA), 0x7abc);
    c.m->hub.fb_base = c.m->hub.system_low = 0;
    c.m->hub.fb_top = c.m->hub.system_high = 0xffff;
    BW_EQ(ask_read(&c, 0x1234), 0x1234);
    BW_EQ(counters(&c).walks, 1);
    BW_EQ(counters(&c).l1_hits, 0);
    end(&c);
}

static void partially_resident_pages_are_kept(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){0});
    put(c.m, AT_PTE, 0x0008000000000060);
    for (int i = 0; i < 2; i++) {
        BW_EQ(bw_mock_tlb_translate(c.tlb, 0, &c.m->context, VA, BW_MOCK_MMU_WRITE, &c.result), 0);
        BW_TRUE(c.result.prt);
        BW_EQ(c.result.place.aperture, BW_MOCK_MMU_NOWHERE);
        BW_EQ(c.result.place.address, 0);
    }
    BW_EQ(counters(&c).l1_hits, 1);
    end(&c);
}

static void many_pages_through_few_entries(void)
{
    struct cached c;
    begin(&c, &(struct bw_mock_tlb_config){.l1_entries = 3, .l2_entries = 5, .pde_entries = 1, .seed = 1});
    for (uint64_t i = 0; i < 64; i++)
        put(c.m, 0x4000 + i * 8, (0x10000 + i * 0x1000) | 0x71);
    for (uint64_t i = 0; i < 64 * 20; i++) {
        uint64_t page = i * 29 % 64;
        BW_EQ(ask_read(&c, (VA & ~0x1fffffull) + page * 0x1000 + 5), 0x10005 + page * 0x1000);
    }
    BW_TRUE(counters(&c).walks > 64);
    end(&c);
}

static void limits(void)
{
    struct bw_mock_tlb *tlb = NULL;
    struct bw_mock_tlb_config config = {.client_count = BW_MOCK_TLB_CLIENTS_MAX + 1};
    BW_EQ(bw_mock_tlb_open(&tlb, &config), -EINVAL);
    config = (struct bw_mock_tlb_config){.l1_entries = BW_MOCK_TLB_L1_MAX + 1};
    BW_EQ(bw_mock_tlb_open(&tlb, &config), -EINVAL);
    config = (struct bw_mock_tlb_config){.l2_entries = BW_MOCK_TLB_L2_MAX + 1};
    BW_EQ(bw_mock_tlb_open(&tlb, &config), -EINVAL);
    config = (struct bw_mock_tlb_config){.client_count = BW_MOCK_TLB_CLIENTS_MAX,
                                         .l1_entries = BW_MOCK_TLB_L1_MAX};
    BW_EQ(bw_mock_tlb_open(&tlb, &config), 0);
    bw_mock_tlb_close(tlb);
}

BW_TEST_MAIN("mock.mmu_tlb", {"stale until each level is invalidated", stale_until_each_level_is_invalidated},
             {"what is counted", what_is_counted},
             {"VMIDs do not see each other", vmids_do_not_see_each_other},
             {"directories are kept by VMID", directories_are_kept_by_vmid},
             {"only what overlaps the range goes", only_what_overlaps_the_range_goes},
             {"invalid entries are kept if asked for", invalid_entries_are_kept_if_asked_for},
             {"what is never kept", what_is_never_kept}, {"rights are stale too", rights_are_stale_too},
             {"fragments that lie are believed", fragments_that_lie_are_believed},
             {"a fragment ends with memory and with the context",
              a_fragment_ends_with_memory_and_with_the_context},
             {"evictions are seeded", evictions_are_seeded},
             {"VMID 0 reaches apertures past the caches", vmid_0_reaches_apertures_past_the_caches},
             {"partially resident pages are kept", partially_resident_pages_are_kept},
             {"many pages through few entries", many_pages_through_few_entries}, {"limits", limits})
