#include "mock/mmu/tlb.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/map.h"
#include "base/rng.h"

enum {
    L1_DEFAULT = 32,
    L2_DEFAULT = 1024,
    PDE_DEFAULT = 256,
    WAYS = 4,     /* of the L2 and of the PDE cache */
    HINTS = 512,  /* of each L1: which entry held a page of 4 KiB last */
    VA_BITS = 48, /* walk.c */
    PDE_LEVELS = 3,
    SHIFTS = 64, /* page sizes, as powers of two */
};

/* size 0: free. Of the L2: a page; of an L1: a fragment. */
struct entry {
    uint64_t base, size; /* addresses that it answers for */
    uint32_t vmid;
    uint8_t allowed; /* bit n: enum bw_mock_mmu_op n; none of an invalid one */
    bool negative, snooped, readable, writable, executable, prt;
    enum bw_mock_mmu_mtype mtype;
    struct bw_mock_mmu_place place;        /* of base */
    uint64_t fragment_base, fragment_size; /* as far as memory and the context go */
    uint64_t page_bytes, fragment_bytes, word;
    struct bw_mock_mmu_fault fault; /* what the walk found; entry and word of a valid one */
};

struct pde {
    bool used;
    uint32_t vmid, level;
    struct bw_mock_mmu_place place;
    uint64_t word;
};

struct l1 {
    struct entry *entries;
    uint8_t hints[HINTS];
};

struct bw_mock_tlb {
    struct bw_mock_tlb_config config;
    struct bw_mock_tlb_counters counters;
    struct bw_rng rng;
    uint32_t until_evict;
    uint32_t sizes[BW_MOCK_MMU_VMIDS][SHIFTS]; /* L2 entries of each page size */
    struct l1 *l1;
    struct entry *l2;
    struct pde *pdes;
};

static uint32_t size_or(uint32_t asked, uint32_t otherwise)
{
    return asked ? 1u << (asked > 1 ? bw_log2(asked - 1) + 1 : 0) : otherwise;
}

static int allocate(struct bw_mock_tlb *tlb)
{
    const struct bw_mock_tlb_config *config = &tlb->config;
    tlb->l1 = calloc(config->client_count, sizeof *tlb->l1);
    tlb->l2 = calloc(config->l2_entries, sizeof *tlb->l2);
    tlb->pdes = calloc(config->pde_entries, sizeof *tlb->pdes);
    if (!tlb->l1 || !tlb->l2 || !tlb->pdes)
        return -ENOMEM;
    for (uint32_t i = 0; i < config->client_count; i++) {
        tlb->l1[i].entries = calloc(config->l1_entries, sizeof *tlb->l1[i].entries);
        if (!tlb->l1[i].entries)
            return -ENOMEM;
    }
    return 0;
}

int bw_mock_tlb_open(struct bw_mock_tlb **opened, const struct bw_mock_tlb_config *config)
{
    if (config->client_count > BW_MOCK_TLB_CLIENTS_MAX || config->l1_entries > BW_MOCK_TLB_L1_MAX ||
        config->l2_entries > BW_MOCK_TLB_L2_MAX || config->pde_entries > BW_MOCK_TLB_L2_MAX)
        return -EINVAL;
    struct bw_mock_tlb *tlb = calloc(1, sizeof *tlb);
    if (!tlb)
        return -ENOMEM;
    tlb->config = *config;
    tlb->config.client_count = config->client_count ? config->client_count : 1;
    tlb->config.l1_entries = size_or(config->l1_entries, L1_DEFAULT);
    tlb->config.l2_entries = size_or(config->l2_entries, L2_DEFAULT);
    tlb->config.pde_entries = size_or(config->pde_entries, PDE_DEFAULT);
    if (tlb->config.l2_entries < WAYS)
        tlb->config.l2_entries = WAYS;
    if (tlb->config.pde_entries < WAYS)
        tlb->config.pde_entries = WAYS;
    tlb->rng.state = config->seed;
    tlb->until_evict = config->evict_every;
    int rc = allocate(tlb);
    if (rc != 0) {
        bw_mock_tlb_close(tlb);
        return rc;
    }
    *opened = tlb;
    return 0;
}

void bw_mock_tlb_close(struct bw_mock_tlb *tlb)
{
    if (!tlb)
        return;
    for (uint32_t i = 0; tlb->l1 && i < tlb->config.client_count; i++)
        free(tlb->l1[i].entries);
    free(tlb->l1);
    free(tlb->l2);
    free(tlb->pdes);
    free(tlb);
}

void bw_mock_tlb_counters_read(const struct bw_mock_tlb *tlb, struct bw_mock_tlb_counters *counters)
{
    *counters = tlb->counters;
}

static uint64_t below_48(uint64_t va)
{
    return va & ((1ull << VA_BITS) - 1);
}

/* Neither in the lower half nor the sign of bit 47. */
static bool in_hole(uint64_t va)
{
    return va >> VA_BITS && va >> (VA_BITS - 1) != UINT64_MAX >> (VA_BITS - 1);
}

static bool holds(const struct entry *entry, uint32_t vmid, uint64_t at)
{
    return at - entry->base < entry->size && entry->vmid == vmid;
}

/* What the walk behind an entry says of another access to it. */
static void fault_of(const struct entry *entry, uint64_t va, enum bw_mock_mmu_op op,
                     struct bw_mock_mmu_fault *fault)
{
    const struct bw_mock_mmu_context context = {.vmid = entry->vmid};
    struct bw_mock_mmu_result asked = {
        .readable = entry->readable, .writable = entry->writable, .executable = entry->executable};
    bw_mock_mmu_check(&context, va, op, &asked);
    *fault = entry->fault;
    fault->va = va;
    fault->op = op;
    fault->permission = asked.fault.permission | (entry->negative ? BW_MOCK_MMU_NOT_VALID : 0);
}

/* at lies in entry. */
static int answer(struct bw_mock_tlb *tlb, const struct entry *entry, uint64_t va, uint64_t at,
                  enum bw_mock_mmu_op op, struct bw_mock_mmu_result *result)
{
    uint64_t into = at - entry->base;
    result->place = entry->place;
    if (!entry->prt)
        result->place.address += into;
    result->contiguous_bytes = entry->fragment_base + entry->fragment_size - at;
    result->page_bytes = entry->page_bytes;
    result->fragment_bytes = entry->fragment_bytes;
    result->mtype = entry->mtype;
    result->snooped = entry->snooped;
    result->readable = entry->readable;
    result->writable = entry->writable;
    result->executable = entry->executable;
    result->prt = entry->prt;
    result->entries_read = 0;
    result->word = entry->word;
    if (entry->allowed >> op & 1)
        return 0;
    tlb->counters.negative_hits += entry->negative;
    fault_of(entry, va, op, &result->fault);
    return -EFAULT;
}

static uint8_t allowed_ops(const struct bw_mock_mmu_context *context, const struct bw_mock_mmu_result *result)
{
    uint8_t allowed = 0;
    for (int op = BW_MOCK_MMU_READ; op <= BW_MOCK_MMU_ATOMIC; op++) {
        struct bw_mock_mmu_result asked = *result;
        if (result->prt || bw_mock_mmu_check(context, 0, (enum bw_mock_mmu_op)op, &asked) == 0)
            allowed |= (uint8_t)(1u << op);
    }
    return allowed;
}

/* What *result, of the address at, says of the page around it. */
static void fill(struct entry *entry, const struct bw_mock_mmu_context *context, uint64_t at, bool negative,
                 const struct bw_mock_mmu_result *result)
{
    uint64_t into_page = (at - context->start) & (result->page_bytes - 1);
    uint64_t into_fragment = (at - context->start) & (result->fragment_bytes - 1);
    uint64_t page_rest = result->page_bytes - into_page;
    uint64_t after = negative ? page_rest : result->contiguous_bytes;
    bool vram = result->place.aperture == BW_MOCK_MMU_VRAM || result->place.aperture == BW_MOCK_MMU_PEER;
    if (vram && into_fragment > result->place.address) /* the fragment begins before memory does */
        into_fragment = result->place.address;
    if (into_page > into_fragment)
        into_page = into_fragment;
    *entry = (struct entry){
        .base = at - into_page,
        .size = into_page + (after < page_rest ? after : page_rest),
        .vmid = context->vmid,
        .allowed = negative ? 0 : allowed_ops(context, result),
        .negative = negative,
        .snooped = result->snooped,
        .readable = result->readable,
        .writable = result->writable,
        .executable = result->executable,
        .prt = result->prt,
        .mtype = result->mtype,
        .place = result->place,
        .fragment_base = at - into_fragment,
        .fragment_size = into_fragment + after,
        .page_bytes = result->page_bytes,
        .fragment_bytes = result->fragment_bytes,
        .word = result->word,
        .fault = result->fault,
    };
    if (!result->prt)
        entry->place.address -= into_page;
}

static uint32_t draw(struct bw_mock_tlb *tlb, uint32_t count)
{
    return (uint32_t)bw_rng_below(&tlb->rng, count);
}

static uint8_t *hint(struct l1 *l1, uint32_t vmid, uint64_t at)
{
    uint64_t page = at >> BW_MOCK_MMU_PAGE_SHIFT;
    return &l1->hints[(page ^ page >> 9 ^ (uint64_t)vmid << 5) % HINTS];
}

/* The fragment of a page's entry. */
static void l1_fill(struct bw_mock_tlb *tlb, struct l1 *l1, uint64_t at, const struct entry *page)
{
    uint32_t slot = draw(tlb, tlb->config.l1_entries);
    for (uint32_t i = 0; i < tlb->config.l1_entries; i++) {
        if (l1->entries[i].size == 0) {
            slot = i;
            break;
        }
    }
    struct entry *entry = &l1->entries[slot];
    *entry = *page;
    if (!page->prt)
        entry->place.address -= page->base - page->fragment_base;
    entry->base = page->fragment_base;
    entry->size = page->fragment_size;
    *hint(l1, page->vmid, at) = (uint8_t)slot;
}

static struct entry *l1_find(const struct bw_mock_tlb *tlb, struct l1 *l1, uint32_t vmid, uint64_t at)
{
    for (uint32_t i = 0; i < tlb->config.l1_entries; i++) {
        if (holds(&l1->entries[i], vmid, at)) {
            *hint(l1, vmid, at) = (uint8_t)i;
            return &l1->entries[i];
        }
    }
    return NULL;
}

/* The ways in which a page can lie. */
static struct entry *l2_set(struct bw_mock_tlb *tlb, uint32_t vmid, uint32_t shift, uint64_t offset)
{
    uint64_t hash = bw_hash64((offset >> shift) ^ (uint64_t)vmid << 58 ^ (uint64_t)shift << 52);
    return tlb->l2 + hash % (tlb->config.l2_entries / WAYS) * WAYS;
}

static void l2_drop(struct bw_mock_tlb *tlb, struct entry *entry)
{
    if (entry->size)
        tlb->sizes[entry->vmid][bw_log2(entry->page_bytes)]--;
    entry->size = 0;
}

static struct entry *l2_find(struct bw_mock_tlb *tlb, const struct bw_mock_mmu_context *context, uint64_t at)
{
    for (uint32_t shift = BW_MOCK_MMU_PAGE_SHIFT; shift < SHIFTS; shift++) {
        if (tlb->sizes[context->vmid][shift] == 0)
            continue;
        struct entry *set = l2_set(tlb, context->vmid, shift, at - context->start);
        for (uint32_t way = 0; way < WAYS; way++)
            if (holds(&set[way], context->vmid, at) && set[way].page_bytes == 1ull << shift)
                return &set[way];
    }
    return NULL;
}

static const struct entry *l2_fill(struct bw_mock_tlb *tlb, const struct bw_mock_mmu_context *context,
                                   uint64_t at, bool negative, const struct bw_mock_mmu_result *result)
{
    uint32_t shift = bw_log2(result->page_bytes), way = draw(tlb, WAYS);
    struct entry *set = l2_set(tlb, context->vmid, shift, at - context->start);
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].size == 0) {
            way = i;
            break;
        }
    }
    l2_drop(tlb, &set[way]);
    fill(&set[way], context, at, negative, result);
    tlb->sizes[context->vmid][shift]++;
    return &set[way];
}

static struct pde *pde_set(struct bw_mock_tlb *tlb, uint32_t vmid, const struct bw_mock_mmu_place *place)
{
    uint64_t where = (uint64_t)place->aperture << 60 ^ (uint64_t)place->region << 50 ^ (uint64_t)vmid << 46;
    return tlb->pdes + bw_hash64(place->address ^ where) % (tlb->config.pde_entries / WAYS) * WAYS;
}

static bool same_place(const struct bw_mock_mmu_place *a, const struct bw_mock_mmu_place *b)
{
    return a->aperture == b->aperture && a->region == b->region && a->address == b->address;
}

struct walker {
    struct bw_mock_tlb *tlb;
    const struct bw_mock_mmu_context *context;
};

static void pde_keep(struct bw_mock_tlb *tlb, struct pde *set, const struct pde *pde)
{
    const uint64_t valid = 1;
    uint32_t way = draw(tlb, WAYS);
    if (!(pde->word & valid) && !tlb->config.negative)
        return;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (!set[i].used) {
            way = i;
            break;
        }
    }
    set[way] = *pde;
}

/* Directory entries come from the cache; entries of page tables are the L2's business. */
static int fetch(void *user, uint32_t level, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    struct walker *walker = user;
    struct bw_mock_tlb *tlb = walker->tlb;
    const struct bw_mock_mmu_hub *hub = walker->context->hub;
    uint32_t vmid = walker->context->vmid;
    struct pde *set = level ? pde_set(tlb, vmid, place) : NULL;
    for (uint32_t i = 0; set && i < WAYS; i++) {
        if (set[i].used && set[i].vmid == vmid && set[i].level == level && same_place(&set[i].place, place)) {
            tlb->counters.pde_hits++;
            *word = set[i].word;
            return 0;
        }
    }
    tlb->counters.words_read++;
    int rc = hub->read(hub->user, place, word);
    struct pde pde = {.used = true, .vmid = vmid, .level = level, .place = *place};
    if (rc == 0 && set) {
        pde.word = *word;
        pde_keep(tlb, set, &pde);
    }
    return rc;
}

static void evict(struct bw_mock_tlb *tlb, struct l1 *l1)
{
    tlb->until_evict = tlb->config.evict_every;
    tlb->counters.evictions++;
    l1->entries[draw(tlb, tlb->config.l1_entries)].size = 0;
    l2_drop(tlb, &tlb->l2[draw(tlb, tlb->config.l2_entries)]);
    tlb->pdes[draw(tlb, tlb->config.pde_entries)].used = false;
}

/* Whether the walk's end is one to keep: an entry was reached, or is known not to be there. What nobody
 * answers, addresses outside of the context and what the strict walker refuses are not. */
static bool is_negative(const struct bw_mock_mmu_fault *fault)
{
    bool outside =
        fault->walker_error == BW_MOCK_MMU_ERROR_RANGE || fault->walker_error == BW_MOCK_MMU_ERROR_NACK;
    return !outside && !fault->violation && fault->permission & BW_MOCK_MMU_NOT_VALID;
}

/* Right or not, what the tables say now is kept: rights are part of an entry, their lack is no reason to
 * forget it. */
static int walk(struct bw_mock_tlb *tlb, struct l1 *l1, const struct bw_mock_mmu_context *context,
                uint64_t va, enum bw_mock_mmu_op op, struct bw_mock_mmu_result *result)
{
    struct walker walker = {tlb, context};
    uint64_t at = below_48(va);
    tlb->counters.walks++;
    int rc = bw_mock_mmu_walk_tables(context, va, op, fetch, &walker, result);
    bool negative = rc != 0 && is_negative(&result->fault);
    bool lacks_right =
        rc != 0 && result->fault.permission && !(result->fault.permission & BW_MOCK_MMU_NOT_VALID);
    if (rc != 0 && !lacks_right && !(negative && tlb->config.negative))
        return rc;
    struct bw_mock_mmu_result kept = *result;
    if (kept.page_bytes == 0) /* a directory without a table: known of this page only */
        kept.page_bytes = kept.fragment_bytes = 1u << BW_MOCK_MMU_PAGE_SHIFT;
    l1_fill(tlb, l1, at, l2_fill(tlb, context, at, negative, &kept));
    return rc;
}

/* From the L2, or by a walk. */
static int look_further(struct bw_mock_tlb *tlb, struct l1 *l1, const struct bw_mock_mmu_context *context,
                        uint64_t va, enum bw_mock_mmu_op op, struct bw_mock_mmu_result *result)
{
    uint64_t at = below_48(va);
    const struct entry *entry = in_hole(va) ? NULL : l2_find(tlb, context, at);
    if (!entry)
        return walk(tlb, l1, context, va, op, result);
    tlb->counters.l2_hits++;
    l1_fill(tlb, l1, at, entry);
    return answer(tlb, entry, va, at, op, result);
}

int bw_mock_tlb_translate(struct bw_mock_tlb *tlb, uint32_t client, const struct bw_mock_mmu_context *context,
                          uint64_t va, enum bw_mock_mmu_op op, struct bw_mock_mmu_result *result)
{
    assert(client < tlb->config.client_count && context->vmid < BW_MOCK_MMU_VMIDS);
    int rc;
    if (context->vmid == 0 && bw_mock_mmu_untranslated(context, va, op, result, &rc))
        return rc;
    struct l1 *l1 = &tlb->l1[client];
    uint64_t at = below_48(va);
    if (tlb->config.evict_every && --tlb->until_evict == 0)
        evict(tlb, l1);
    if (in_hole(va))
        return walk(tlb, l1, context, va, op, result);
    const struct entry *entry = &l1->entries[*hint(l1, context->vmid, at)];
    if (!holds(entry, context->vmid, at))
        entry = l1_find(tlb, l1, context->vmid, at);
    if (!entry)
        return look_further(tlb, l1, context, va, op, result);
    tlb->counters.l1_hits++;
    return answer(tlb, entry, va, at, op, result);
}

static bool hit_by(const struct bw_mock_tlb_invalidation *invalidation, const struct entry *entry)
{
    return entry->size && invalidation->vmids >> entry->vmid & 1 && entry->base <= invalidation->last &&
           entry->base + entry->size - 1 >= invalidation->first;
}

void bw_mock_tlb_invalidate(struct bw_mock_tlb *tlb, const struct bw_mock_tlb_invalidation *invalidation)
{
    for (uint32_t client = 0; invalidation->l1_ptes && client < tlb->config.client_count; client++) {
        struct entry *entries = tlb->l1[client].entries;
        for (uint32_t i = 0; i < tlb->config.l1_entries; i++)
            if (hit_by(invalidation, &entries[i]))
                entries[i].size = 0;
    }
    for (uint32_t i = 0; invalidation->l2_ptes && i < tlb->config.l2_entries; i++)
        if (hit_by(invalidation, &tlb->l2[i]))
            l2_drop(tlb, &tlb->l2[i]);
    for (uint32_t i = 0; i < tlb->config.pde_entries; i++) {
        struct pde *pde = &tlb->pdes[i];
        assert(!pde->used || (pde->level >= 1 && pde->level <= PDE_LEVELS));
        if (pde->used && invalidation->vmids >> pde->vmid & 1 && invalidation->pde[pde->level - 1])
            pde->used = false;
    }
}
