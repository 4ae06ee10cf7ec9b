/* Page directory and page table entries of AMD's GPUs. Bits: the Linux kernel's amdgpu_vm.h (AMDGPU_PTE_*,
 * AMDGPU_PDE_*), the layout comments of gmc_v9_0.c, gmc_v10_0.c and gmc_v12_0.c, and what these three put
 * into directories in their get_vm_pde. */
#include <assert.h>
#include <stddef.h>

#include "mem/page_codec.h"

enum {
    PDB2, /* the root */
    PDB1,
    PDB0,
    PTB,
    LEVELS,
};

/* The same in every generation. */
#define VALID              ((uint64_t)1 << 0)
#define SYSTEM             ((uint64_t)1 << 1)
#define SNOOPED            ((uint64_t)1 << 2)
#define EXECUTE            ((uint64_t)1 << 4)
#define READ               ((uint64_t)1 << 5)
#define WRITE              ((uint64_t)1 << 6)
#define FRAGMENT_SHIFT     7
#define FRAGMENT_MASK      0x1full
#define PAGE_ADDRESS_MASK  0x0000fffffffff000ull
#define TABLE_ADDRESS_MASK 0x0000ffffffffffc0ull

/* MTYPE's values, by enum bw_page_memory (gfx9's and gfx10's enum MTYPE: NC, RW, CC, UC). */
static const uint8_t mtypes[] = {
    [BW_PAGE_CACHED] = 0, [BW_PAGE_CACHED_LOCAL] = 1, [BW_PAGE_COHERENT] = 2, [BW_PAGE_UNCACHED] = 3};

struct bw_page_format {
    uint8_t memory_shift, memory_mask;
    uint64_t page[LEVELS];  /* says of a level's entry that it is a page and not a table */
    uint64_t table[LEVELS]; /* goes with an entry that points to a table */
    uint64_t empty[LEVELS]; /* an entry that maps nothing: the kernel marks directories as pages, so that a
                               walk ends there, and sets EXECUTE in tables, else the fault that is reported
                               first is the wrong one (amdgpu_vm_pt_clear, "fault priority problem") */
};

/* PDE.P: the entry is a page. */
#define GFX9_PAGE  ((uint64_t)1 << 54)
#define GFX12_PAGE ((uint64_t)1 << 63)
/* gfx9.4.3 walks with "translate further": PDB0's entries are pages by nature, TF makes one a table; block
 * fragment size 9 in PDB1 says that PDB0's entries map 2^9 pages. */
#define GFX9_TRANSLATE_FURTHER ((uint64_t)1 << 56)
#define GFX9_BLOCK_FRAGMENT_9  ((uint64_t)9 << 59)

static const struct bw_page_format gfx9_4_format = {
    .memory_shift = 57,
    .memory_mask = 3,
    .page = {[PDB2] = GFX9_PAGE, [PDB1] = GFX9_PAGE},
    .table = {[PDB1] = GFX9_BLOCK_FRAGMENT_9, [PDB0] = GFX9_TRANSLATE_FURTHER},
    .empty = {[PDB2] = GFX9_PAGE, [PDB1] = GFX9_PAGE, [PTB] = EXECUTE},
};
static const struct bw_page_format gfx11_format = {
    .memory_shift = 48,
    .memory_mask = 7,
    .page = {[PDB2] = GFX9_PAGE, [PDB1] = GFX9_PAGE, [PDB0] = GFX9_PAGE},
    .empty = {[PDB2] = GFX9_PAGE, [PDB1] = GFX9_PAGE, [PDB0] = GFX9_PAGE, [PTB] = EXECUTE},
};
static const struct bw_page_format gfx12_format = {
    .memory_shift = 54,
    .memory_mask = 3,
    .page = {[PDB2] = GFX12_PAGE, [PDB1] = GFX12_PAGE, [PDB0] = GFX12_PAGE, [PTB] = GFX12_PAGE},
    .empty = {[PDB2] = GFX12_PAGE, [PDB1] = GFX12_PAGE, [PDB0] = GFX12_PAGE, [PTB] = EXECUTE},
};

static uint64_t encode_leaf(const struct bw_page_codec *codec, uint32_t level, uint64_t address,
                            const struct bw_page_attributes *attributes, uint32_t fragment)
{
    const struct bw_page_format *format = codec->format;
    assert((address & ~PAGE_ADDRESS_MASK) == 0 && fragment <= FRAGMENT_MASK);
    uint64_t word = VALID | address | (uint64_t)fragment << FRAGMENT_SHIFT | format->page[level] |
                    (uint64_t)mtypes[attributes->memory] << format->memory_shift;
    if (attributes->system)
        word |= SYSTEM;
    if (attributes->snooped)
        word |= SNOOPED;
    if (attributes->execute)
        word |= EXECUTE;
    if (attributes->read)
        word |= READ;
    if (attributes->write)
        word |= WRITE;
    return word;
}

static uint64_t encode_table(const struct bw_page_codec *codec, uint32_t level, uint64_t address)
{
    assert(level < PTB && (address & ~TABLE_ADDRESS_MASK) == 0);
    return VALID | address | codec->format->table[level];
}

static uint64_t encode_empty(const struct bw_page_codec *codec, uint32_t level)
{
    return codec->format->empty[level];
}

static bool is_leaf(const struct bw_page_format *format, uint32_t level, uint64_t word)
{
    if (level == PTB)
        return true;
    if (format->page[level])
        return word & format->page[level];
    return (word & format->table[level]) == 0; /* gfx9's PDB0 */
}

static void decode(const struct bw_page_codec *codec, uint32_t level, uint64_t word,
                   struct bw_page_entry *entry)
{
    const struct bw_page_format *format = codec->format;
    *entry = (struct bw_page_entry){.valid = word & VALID};
    if (!entry->valid)
        return;
    entry->leaf = is_leaf(format, level, word);
    entry->address = word & (entry->leaf ? PAGE_ADDRESS_MASK : TABLE_ADDRESS_MASK);
    if (!entry->leaf)
        return;
    entry->fragment = (uint32_t)(word >> FRAGMENT_SHIFT & FRAGMENT_MASK);
    entry->attributes = (struct bw_page_attributes){
        .system = word & SYSTEM,
        .snooped = word & SNOOPED,
        .read = word & READ,
        .write = word & WRITE,
        .execute = word & EXECUTE,
        .memory = (enum bw_page_memory)(word >> format->memory_shift & format->memory_mask),
    };
}

/* 512 entries a level, 48 bits of virtual address (the kernel's amdgpu_vm_adjust_size(adev, 256 * 1024, 9, 3,
 * 48)); physical ones as its dma_set_mask_and_coherent: 48 bits since 9.4.2, 44 on the others. The kernel
 * maps no page in the root, so neither does this. */
#define AMD_CODEC(label, codec_format, codec_physical_bits, codec_memories)                      \
    {                                                                                            \
        .name = label,                                                                           \
        .levels = {[PDB2] = {.shift = 39, .index_bits = 9},                                      \
                   [PDB1] = {.shift = 30, .index_bits = 9, .leaf = true},                        \
                   [PDB0] = {.shift = 21, .index_bits = 9, .leaf = true},                        \
                   [PTB] = {.shift = 12, .index_bits = 9, .leaf = true}},                        \
        .level_count = LEVELS, .memories = codec_memories, .physical_bits = codec_physical_bits, \
        .fragments = true, .format = &codec_format, .encode_leaf = encode_leaf,                  \
        .encode_table = encode_table, .encode_empty = encode_empty, .decode = decode,            \
    }

#define BIT(memory) ((uint32_t)1 << (memory))
const struct bw_page_codec bw_page_codec_gfx9_4 = AMD_CODEC(
    "gfx9.4", gfx9_4_format, 48,
    BIT(BW_PAGE_CACHED) | BIT(BW_PAGE_CACHED_LOCAL) | BIT(BW_PAGE_COHERENT) | BIT(BW_PAGE_UNCACHED));
/* gmc_v11_0.c and gmc_v12_0.c write NC and UC only into the tables of compute. */
const struct bw_page_codec bw_page_codec_gfx11 =
    AMD_CODEC("gfx11", gfx11_format, 44, BIT(BW_PAGE_CACHED) | BIT(BW_PAGE_UNCACHED));
const struct bw_page_codec bw_page_codec_gfx12 =
    AMD_CODEC("gfx12", gfx12_format, 44, BIT(BW_PAGE_CACHED) | BIT(BW_PAGE_UNCACHED));
