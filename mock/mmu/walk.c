#include "mock/mmu/walk.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "mock/mmu/layout_table.h"

enum {
    ENTRY_BYTES = 8,
    LEVEL_BITS = 9, /* of the index into a directory that is not the root */
    BLOCK_MAX = 31, /* a field of 5 bits */
    VA_BITS = 48,   /* AMD's notes on GPUVM: an access beyond is a violation of an aperture, not a fault */
    DEPTH_MAX = 3,  /* a field of 2 bits */
    BLOCK_SIZE_MAX = 15, /* a field of 4 bits */
};

struct walk {
    const struct bw_mock_mmu_context *context;
    const struct bw_mock_mmu_layout *layout;
    bw_mock_mmu_fetch *fetch;
    void *user;
    struct bw_mock_mmu_result *result;
    uint64_t offset;                /* of the address in the context: what the tables are indexed by */
    struct bw_mock_mmu_place table; /* the one to read next */
    uint32_t block;                 /* block fragment size of the entry that led there */
    bool relative;                  /* that entry had TFS */
};

static const char *const walker_errors[] = {
    "none", "range", "PDE0", "PDE1", "PDE2", "translate further", "NACK", "dummy page",
};

const char *bw_mock_mmu_walker_error_name(enum bw_mock_mmu_walker_error error)
{
    assert(error < BW_COUNT_OF(walker_errors));
    return walker_errors[error];
}

static const char *const violations[BW_MOCK_MMU_VIOLATION_COUNT] = {
    [BW_MOCK_MMU_NO_VIOLATION] = "none",
    [BW_MOCK_MMU_VA_HOLE] = "an address of more than 48 bits",
    [BW_MOCK_MMU_NO_APERTURE] = "an untranslated address in neither the FB nor the AGP window",
    [BW_MOCK_MMU_RESERVED_BITS] = "reserved bits in a valid entry",
    [BW_MOCK_MMU_RESERVED_MTYPE] = "a reserved memory type",
    [BW_MOCK_MMU_MISALIGNED_PAGE] = "a large page at a physical address that is not a multiple of its size",
    [BW_MOCK_MMU_LEAF_WITHOUT_MARK] = "a valid page-table entry without bit 63",
    [BW_MOCK_MMU_BLOCK_FRAGMENT] = "a block fragment size larger than the table's reach",
    [BW_MOCK_MMU_FURTHER_TWICE] = "translate-further twice",
    [BW_MOCK_MMU_ADDRESS_WIDTH] = "a physical address wider than the GPU's",
    [BW_MOCK_MMU_BELOW_FB] = "a VRAM address below FB_OFFSET",
    [BW_MOCK_MMU_PAST_VRAM] = "an address past the end of VRAM",
    [BW_MOCK_MMU_NO_REGION] = "an address past the last segment of the hive",
    [BW_MOCK_MMU_ENCRYPTED] = "an encrypted page (TMZ)",
};

const char *bw_mock_mmu_violation_name(enum bw_mock_mmu_violation violation)
{
    assert(violation < BW_MOCK_MMU_VIOLATION_COUNT);
    return violations[violation];
}

static uint32_t needs(enum bw_mock_mmu_op op)
{
    static const uint32_t needed[] = {
        [BW_MOCK_MMU_READ] = BW_MOCK_MMU_NOT_READABLE,
        [BW_MOCK_MMU_WRITE] = BW_MOCK_MMU_NOT_WRITABLE,
        [BW_MOCK_MMU_EXECUTE] = BW_MOCK_MMU_NOT_READABLE | BW_MOCK_MMU_NOT_EXECUTABLE,
        [BW_MOCK_MMU_ATOMIC] = BW_MOCK_MMU_NOT_READABLE | BW_MOCK_MMU_NOT_WRITABLE,
    };
    assert(op < BW_COUNT_OF(needed));
    return needed[op];
}

/* The walk ends without a page: nothing of what was asked for is granted. */
static int fail(struct bw_mock_mmu_result *result, enum bw_mock_mmu_walker_error error)
{
    struct bw_mock_mmu_fault *fault = &result->fault;
    fault->walker_error = error;
    fault->mapping_error = error != BW_MOCK_MMU_WALKED;
    fault->permission = BW_MOCK_MMU_NOT_VALID | needs(fault->op);
    return -EFAULT;
}

static int refuse(struct bw_mock_mmu_result *result, enum bw_mock_mmu_walker_error error,
                  enum bw_mock_mmu_violation violation)
{
    result->fault.violation = violation;
    return fail(result, error);
}

static enum bw_mock_mmu_walker_error level_error(uint32_t level)
{
    assert(level <= DEPTH_MAX);
    return level ? (enum bw_mock_mmu_walker_error)(BW_MOCK_MMU_ERROR_PDE0 + level - 1) : BW_MOCK_MMU_WALKED;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool strict(const struct walk *walk)
{
    return !walk->context->hub->lenient;
}

/* An offset from where the window of VRAM begins: of a hive, in the segment of one of its GPUs. */
static enum bw_mock_mmu_violation place_in_window(const struct bw_mock_mmu_hub *hub, uint64_t offset,
                                                  struct bw_mock_mmu_place *place)
{
    *place = (struct bw_mock_mmu_place){.aperture = BW_MOCK_MMU_VRAM, .address = offset};
    if (hub->segment_bytes) {
        uint64_t region = offset / hub->segment_bytes;
        if (region > hub->region_max)
            return BW_MOCK_MMU_NO_REGION;
        place->address = offset % hub->segment_bytes;
        if (region != hub->region) {
            place->aperture = BW_MOCK_MMU_PEER;
            place->region = (uint32_t)region;
            return BW_MOCK_MMU_NO_VIOLATION;
        }
    }
    bool past = hub->vram_bytes && place->address >= hub->vram_bytes;
    return past ? BW_MOCK_MMU_PAST_VRAM : BW_MOCK_MMU_NO_VIOLATION;
}

/* How far it goes on in a row from there. */
static uint64_t reach(const struct bw_mock_mmu_hub *hub, const struct bw_mock_mmu_place *place)
{
    bool own = place->aperture == BW_MOCK_MMU_VRAM, vram = own || place->aperture == BW_MOCK_MMU_PEER;
    uint64_t bytes = UINT64_MAX;
    if (vram && hub->segment_bytes)
        bytes = hub->segment_bytes - place->address;
    if (own && hub->vram_bytes > place->address)
        bytes = least(bytes, hub->vram_bytes - place->address);
    return bytes;
}

/* The address that an entry holds. */
static enum bw_mock_mmu_violation place_physical(const struct bw_mock_mmu_hub *hub, uint64_t address,
                                                 bool system, struct bw_mock_mmu_place *place)
{
    uint32_t width = bw_mock_mmu_layouts[hub->generation].address_bits;
    bool carved_out = hub->fb_top < hub->fb_base; /* umr: "zero frame buffer" */
    *place = (struct bw_mock_mmu_place){.aperture = BW_MOCK_MMU_SYSTEM, .address = address};
    if (address >> width)
        return BW_MOCK_MMU_ADDRESS_WIDTH;
    if (system)
        return BW_MOCK_MMU_NO_VIOLATION;
    if (carved_out && address >= hub->agp_bot && address <= hub->agp_top) {
        place->address = address - hub->agp_bot + hub->agp_base;
        return BW_MOCK_MMU_NO_VIOLATION;
    }
    if (address < hub->fb_offset)
        return BW_MOCK_MMU_BELOW_FB;
    return place_in_window(hub, address - hub->fb_offset, place);
}

static void begin(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                  struct bw_mock_mmu_result *result)
{
    memset(result, 0, sizeof *result);
    result->fault.va = va;
    result->fault.vmid = context->vmid;
    result->fault.op = op;
}

static bool in_hole(uint64_t va)
{
    return va >> VA_BITS && (uint64_t)((int64_t)va >> (VA_BITS - 1)) != ~0ull;
}

/* AMD's notes on GPUVM: in the system aperture addresses are linear, the FB window leads to VRAM and the AGP
 * window to the bus, each from where it begins. */
static int place_linear(const struct bw_mock_mmu_hub *hub, uint64_t va, struct bw_mock_mmu_result *result)
{
    enum bw_mock_mmu_violation violation = BW_MOCK_MMU_NO_VIOLATION;
    if (va >= hub->fb_base && va <= hub->fb_top) {
        violation = place_in_window(hub, va - hub->fb_base, &result->place);
        result->contiguous_bytes = least(hub->fb_top - va + 1, reach(hub, &result->place));
    } else if (va >= hub->agp_bot && va <= hub->agp_top) {
        result->place.aperture = BW_MOCK_MMU_SYSTEM;
        result->place.address = va - hub->agp_bot + hub->agp_base;
        result->contiguous_bytes = hub->agp_top - va + 1;
    } else {
        uint64_t in_page = va & (BIT(BW_MOCK_MMU_PAGE_SHIFT) - 1);
        violation = hub->lenient ? BW_MOCK_MMU_NO_VIOLATION : BW_MOCK_MMU_NO_APERTURE;
        result->place.aperture = BW_MOCK_MMU_DEFAULT;
        result->place.address = hub->default_address + in_page;
        result->contiguous_bytes = BIT(BW_MOCK_MMU_PAGE_SHIFT) - in_page;
    }
    return violation ? refuse(result, BW_MOCK_MMU_ERROR_RANGE, violation) : 0;
}

bool bw_mock_mmu_untranslated(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                              struct bw_mock_mmu_result *result, int *rc)
{
    const struct bw_mock_mmu_hub *hub = context->hub;
    assert(hub->access_mode <= BW_MOCK_MMU_INSIDE_UNMAPPED);
    bool inside = va >= hub->system_low && va <= hub->system_high;
    bool mapped[] = {
        [BW_MOCK_MMU_PHYSICAL] = false,
        [BW_MOCK_MMU_TRANSLATED] = true,
        [BW_MOCK_MMU_INSIDE_MAPPED] = inside,
        [BW_MOCK_MMU_INSIDE_UNMAPPED] = !inside,
    };
    if (context->vmid != 0 || mapped[hub->access_mode])
        return false;
    begin(context, va, op, result);
    result->mtype = hub->system_mtype;
    result->readable = result->writable = result->executable = true;
    *rc = place_linear(hub, va, result);
    return true;
}

/* Reads the entry at index of the table. */
static int read_entry(struct walk *walk, uint32_t level, uint64_t index, uint64_t *word)
{
    struct bw_mock_mmu_result *result = walk->result;
    struct bw_mock_mmu_place place = walk->table;
    place.address += index * ENTRY_BYTES;
    result->fault.entry = place;
    result->entries_read++;
    if (walk->fetch(walk->user, level, &place, word) != 0)
        return fail(result, BW_MOCK_MMU_ERROR_NACK);
    result->fault.word = *word;
    return 0;
}

/* word leads to a table: sets the next one. relative: it lies that far from the one before. */
static int follow(struct walk *walk, uint64_t word, uint64_t reserved, bool relative,
                  enum bw_mock_mmu_walker_error error)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    uint64_t address = word & BITS(47, 6);
    enum bw_mock_mmu_violation violation = BW_MOCK_MMU_NO_VIOLATION;
    if (strict(walk) && word & reserved)
        violation = BW_MOCK_MMU_RESERVED_BITS;
    else if (relative)
        walk->table.address += address;
    else
        violation = place_physical(walk->context->hub, address, word & BW_MOCK_MMU_S, &walk->table);
    if (violation)
        return refuse(walk->result, error, violation);
    walk->block = (word >> layout->block) & BLOCK_MAX;
    walk->relative = word & layout->offset;
    return 0;
}

static enum bw_mock_mmu_violation page_violation(const struct walk *walk, uint64_t word, uint32_t shift,
                                                 uint64_t reserved)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    uint64_t mtype = (word >> layout->mtype) & ((1u << layout->mtype_bits) - 1);
    if (word & reserved)
        return BW_MOCK_MMU_RESERVED_BITS;
    if (mtype > BW_MOCK_MMU_UC)
        return BW_MOCK_MMU_RESERVED_MTYPE;
    if (word & BW_MOCK_MMU_Z)
        return BW_MOCK_MMU_ENCRYPTED;
    if (word & BW_MOCK_MMU_V && word & BITS(47, 12) & (BIT(shift) - 1))
        return BW_MOCK_MMU_MISALIGNED_PAGE;
    return BW_MOCK_MMU_NO_VIOLATION;
}

/* Where the page is. Beyond the end of the context nothing is translated, however large the page. */
static enum bw_mock_mmu_violation place_page(const struct walk *walk, uint64_t word, uint32_t shift)
{
    const struct bw_mock_mmu_context *context = walk->context;
    struct bw_mock_mmu_result *result = walk->result;
    uint32_t fragment = BW_MOCK_MMU_PAGE_SHIFT + ((word >> 7) & 31);
    if (fragment < shift)
        fragment = shift;
    uint64_t below = BIT(fragment) - 1;
    result->page_bytes = BIT(shift);
    result->fragment_bytes = BIT(fragment);
    result->contiguous_bytes =
        least(BIT(fragment) - (walk->offset & below), context->end - context->start - walk->offset + 1);
    if (result->prt)
        return BW_MOCK_MMU_NO_VIOLATION;
    uint64_t address = (word & BITS(47, 12) & ~below) | (walk->offset & below);
    enum bw_mock_mmu_violation violation =
        place_physical(context->hub, address, word & BW_MOCK_MMU_S, &result->place);
    result->contiguous_bytes = least(result->contiguous_bytes, reach(context->hub, &result->place));
    return violation;
}

/* word is the entry of a page of 1 << shift bytes. */
static int take_page(struct walk *walk, uint64_t word, uint32_t shift, uint64_t reserved)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    struct bw_mock_mmu_result *result = walk->result;
    bool valid = word & BW_MOCK_MMU_V, prt = !valid && word & layout->prt;
    result->word = word;
    result->readable = word & BW_MOCK_MMU_R;
    result->writable = word & BW_MOCK_MMU_W;
    result->executable = word & BW_MOCK_MMU_X;
    result->page_bytes = result->fragment_bytes = BIT(shift);
    if (!valid && !prt) {
        fail(result, BW_MOCK_MMU_WALKED);
        uint32_t granted = (result->readable ? BW_MOCK_MMU_NOT_READABLE : 0) |
                           (result->writable ? BW_MOCK_MMU_NOT_WRITABLE : 0) |
                           (result->executable ? BW_MOCK_MMU_NOT_EXECUTABLE : 0);
        result->fault.permission &= ~granted;
        return -EFAULT;
    }
    result->prt = prt;
    result->snooped = word & BW_MOCK_MMU_C;
    result->mtype = (enum bw_mock_mmu_mtype)((word >> layout->mtype) & BW_MOCK_MMU_UC);
    enum bw_mock_mmu_violation violation =
        strict(walk) ? page_violation(walk, word, shift, reserved) : BW_MOCK_MMU_NO_VIOLATION;
    if (!violation)
        violation = place_page(walk, word, shift);
    return violation ? refuse(result, BW_MOCK_MMU_WALKED, violation) : 0;
}

/* The entry of a page table that leads to one more table, of pages within what the entry covers. */
static int walk_further(struct walk *walk, uint64_t word)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    uint32_t covered = walk->block;
    bool marked = !layout->further;
    if (marked && !covered)
        return refuse(walk->result, BW_MOCK_MMU_ERROR_FURTHER, BW_MOCK_MMU_LEAF_WITHOUT_MARK);
    int rc = follow(walk, word, layout->reserved_further, walk->relative, BW_MOCK_MMU_ERROR_FURTHER);
    if (rc != 0)
        return rc;
    if (walk->block >= covered)
        return refuse(walk->result, BW_MOCK_MMU_ERROR_FURTHER, BW_MOCK_MMU_BLOCK_FRAGMENT);
    uint32_t shift = BW_MOCK_MMU_PAGE_SHIFT + walk->block;
    uint64_t index = (walk->offset >> shift) & (BIT(covered - walk->block) - 1);
    rc = read_entry(walk, 0, index, &word);
    if (rc != 0)
        return rc;
    if (marked ? !(word & layout->page) : (word & layout->further) != 0) {
        bool valid = word & BW_MOCK_MMU_V;
        return refuse(walk->result, BW_MOCK_MMU_ERROR_FURTHER,
                      valid ? BW_MOCK_MMU_FURTHER_TWICE : BW_MOCK_MMU_NO_VIOLATION);
    }
    return take_page(walk, word, shift, layout->reserved_page | (marked ? 0 : layout->page));
}

static int walk_page_table(struct walk *walk)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    const struct bw_mock_mmu_context *context = walk->context;
    uint32_t shift = BW_MOCK_MMU_PAGE_SHIFT + walk->block;
    uint32_t covered = BW_MOCK_MMU_PAGE_SHIFT + LEVEL_BITS + context->block_size;
    uint64_t in_table = context->depth ? walk->offset & (BIT(covered) - 1) : walk->offset;
    uint64_t word;
    if (context->depth && shift > covered)
        return refuse(walk->result, BW_MOCK_MMU_ERROR_PDE0, BW_MOCK_MMU_BLOCK_FRAGMENT);
    int rc = read_entry(walk, 0, in_table >> shift, &word);
    if (rc != 0)
        return rc;
    if (layout->further)
        return word & BW_MOCK_MMU_V && word & layout->further
                   ? walk_further(walk, word)
                   : take_page(walk, word, shift, layout->reserved_page | layout->page);
    if (word & layout->page)
        return take_page(walk, word, shift, layout->reserved_page);
    /* gfx12: what is not marked as a page leads further, and what is not valid leads nowhere */
    return word & BW_MOCK_MMU_V ? walk_further(walk, word) : fail(walk->result, BW_MOCK_MMU_ERROR_FURTHER);
}

static int walk_directories(struct walk *walk)
{
    const struct bw_mock_mmu_layout *layout = walk->layout;
    const struct bw_mock_mmu_context *context = walk->context;
    for (uint32_t level = context->depth; level > 0; level--) {
        uint32_t shift = BW_MOCK_MMU_PAGE_SHIFT + LEVEL_BITS + context->block_size + LEVEL_BITS * (level - 1);
        uint64_t index = walk->offset >> shift, word;
        if (level != context->depth)
            index &= BIT(LEVEL_BITS) - 1;
        int rc = read_entry(walk, level, index, &word);
        if (rc != 0)
            return rc;
        if (word & layout->page)
            return take_page(walk, word, shift, layout->reserved_page | layout->further);
        if (!(word & BW_MOCK_MMU_V))
            return fail(walk->result, level_error(level));
        rc = follow(walk, word, layout->reserved_directory, false, level_error(level));
        if (rc != 0)
            return rc;
    }
    return walk_page_table(walk);
}

int bw_mock_mmu_check(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                      struct bw_mock_mmu_result *result)
{
    uint32_t missing = needs(op);
    if (result->readable)
        missing &= ~(uint32_t)BW_MOCK_MMU_NOT_READABLE;
    if (result->writable)
        missing &= ~(uint32_t)BW_MOCK_MMU_NOT_WRITABLE;
    if (result->executable)
        missing &= ~(uint32_t)BW_MOCK_MMU_NOT_EXECUTABLE;
    if (missing == 0)
        return 0;
    struct bw_mock_mmu_fault *fault = &result->fault;
    *fault = (struct bw_mock_mmu_fault){.va = va,
                                        .vmid = context->vmid,
                                        .op = op,
                                        .permission = missing,
                                        .entry = fault->entry,
                                        .word = result->word};
    return -EFAULT;
}

int bw_mock_mmu_walk_tables(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                            bw_mock_mmu_fetch *fetch, void *user, struct bw_mock_mmu_result *result)
{
    const struct bw_mock_mmu_hub *hub = context->hub;
    assert(hub->generation < BW_MOCK_MMU_GENERATION_COUNT && context->vmid < BW_MOCK_MMU_VMIDS);
    assert(context->depth <= DEPTH_MAX && context->block_size <= BLOCK_SIZE_MAX);
    begin(context, va, op, result);
    if (in_hole(va))
        return refuse(result, BW_MOCK_MMU_ERROR_RANGE, BW_MOCK_MMU_VA_HOLE);
    va &= BIT(VA_BITS) - 1;
    if (!context->enable || va < context->start || va > context->end)
        return fail(result, BW_MOCK_MMU_ERROR_RANGE);
    struct walk walk = {
        .context = context,
        .layout = &bw_mock_mmu_layouts[hub->generation],
        .fetch = fetch,
        .user = user,
        .result = result,
        .offset = va - context->start,
    };
    enum bw_mock_mmu_walker_error root_error =
        context->depth ? level_error(context->depth) : BW_MOCK_MMU_ERROR_PDE0;
    result->fault.word = context->base;
    if (!(context->base & BW_MOCK_MMU_V))
        return fail(result, root_error);
    int rc =
        follow(&walk, context->base, walk.layout->reserved_directory | walk.layout->page, false, root_error);
    if (rc == 0)
        rc = walk_directories(&walk);
    if (rc == 0 && !result->prt)
        rc = bw_mock_mmu_check(context, result->fault.va, op, result);
    return rc;
}

static int read_memory(void *user, uint32_t level, const struct bw_mock_mmu_place *place, uint64_t *word)
{
    const struct bw_mock_mmu_hub *hub = *(const struct bw_mock_mmu_hub **)user;
    (void)level;
    return hub->read(hub->user, place, word);
}

int bw_mock_mmu_walk(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                     struct bw_mock_mmu_result *result)
{
    const struct bw_mock_mmu_hub *hub = context->hub;
    int rc;
    if (bw_mock_mmu_untranslated(context, va, op, result, &rc))
        return rc;
    return bw_mock_mmu_walk_tables(context, va, op, read_memory, &hub, result);
}
