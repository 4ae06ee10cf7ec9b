/* Entries of a GPU's page tables: what the walker in mem/page_table.h writes, and how one generation of MMU
 * lays it out in a 64-bit word. A codec is constant data and pure functions: any thread. */
#ifndef BW_MEM_PAGE_CODEC_H
#define BW_MEM_PAGE_CODEC_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BW_PAGE_SHIFT = 12, /* the unit of mapping, and the size of a table */
    BW_PAGE_LEVELS_MAX = 4,
    BW_PAGE_TABLE_ENTRIES_MAX = 512,
};
#define BW_PAGE_BYTES ((uint64_t)1 << BW_PAGE_SHIFT)

/* How the GPU's caches treat a page. Not every generation has each: see bw_page_codec.memories. */
enum bw_page_memory {
    BW_PAGE_CACHED,       /* cached, coherent within the GPU by explicit flushes ("NC") */
    BW_PAGE_CACHED_LOCAL, /* cached for reads and writes of the GPU that owns the memory ("RW") */
    BW_PAGE_COHERENT,     /* cached, kept coherent with the host by probes ("CC") */
    BW_PAGE_UNCACHED,     /* every access reaches memory ("UC") */
};

struct bw_page_attributes {
    bool system;  /* not in the VRAM of this GPU or of its XGMI hive, but behind the bus */
    bool snooped; /* accesses probe the host's caches; for system pages */
    bool read, write, execute;
    enum bw_page_memory memory;
};

/* What an entry says. A leaf maps 2^shift bytes of its level; address is physical as the GPU counts. */
struct bw_page_entry {
    bool valid, leaf;
    uint64_t address;
    struct bw_page_attributes attributes; /* leaves only */
    uint32_t fragment; /* leaves only: the TLB may keep one entry for 2^(12 + fragment) bytes */
};

struct bw_page_level {
    uint8_t shift;      /* an entry covers 2^shift bytes */
    uint8_t index_bits; /* a table has 2^index_bits entries of 8 bytes */
    bool leaf;          /* an entry may map memory; true at the last level */
};

struct bw_page_format;

struct bw_page_codec {
    const char *name;
    struct bw_page_level levels[BW_PAGE_LEVELS_MAX]; /* the root first */
    uint32_t level_count;
    uint32_t memories;                   /* bit 1 << enum bw_page_memory: what there is */
    uint8_t physical_bits;               /* addresses are below 2^physical_bits */
    bool fragments;                      /* leaves carry a fragment */
    const struct bw_page_format *format; /* the codec's own */

    uint64_t (*encode_leaf)(const struct bw_page_codec *codec, uint32_t level, uint64_t address,
                            const struct bw_page_attributes *attributes, uint32_t fragment);
    /* An entry that points to the next level's table, which lies in VRAM. */
    uint64_t (*encode_table)(const struct bw_page_codec *codec, uint32_t level, uint64_t address);
    /* An entry that maps nothing. */
    uint64_t (*encode_empty)(const struct bw_page_codec *codec, uint32_t level);
    void (*decode)(const struct bw_page_codec *codec, uint32_t level, uint64_t word,
                   struct bw_page_entry *entry);
};

/* AMD's, by generation of the graphics core: gfx9.4.3 and gfx9.5, gfx11, gfx12. */
extern const struct bw_page_codec bw_page_codec_gfx9_4, bw_page_codec_gfx11, bw_page_codec_gfx12;

#endif
