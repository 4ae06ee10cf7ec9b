/* A bounds-checked view of a 64-bit little-endian ELF file. Nothing of the file is trusted: every offset,
 * size and index is checked before use, with arithmetic that cannot wrap, and errors say where in the file
 * they are. */
#ifndef BW_DRIVERS_AMD_ELF_H
#define BW_DRIVERS_AMD_ELF_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/err.h>

#include "base/arena.h"

enum {
    /* An object of one section per function of a large library stays below; also keeps st_shndx out of its
       reserved range. */
    BW_AMD_ELF_SECTIONS_MAX = 0xff00 - 1,
    BW_AMD_ELF_SEGMENTS_MAX = 64, /* lld writes about ten */
};

struct bw_amd_elf_section {
    const char *name; /* "" when the file has no name for it */
    uint32_t type, link, info;
    uint64_t flags, address, offset, size_bytes, alignment, entry_bytes;
};

struct bw_amd_elf_segment {
    uint64_t offset, address, file_bytes, memory_bytes, alignment;
    bool executable;
};

struct bw_amd_elf_symbol {
    const char *name;
    uint8_t type, binding;
    uint16_t section; /* SHN_* or an index that is in range */
    uint64_t value, size_bytes;
};

struct bw_amd_elf_relocation {
    uint64_t file_offset; /* where the entry lies, for errors */
    uint64_t offset;
    uint32_t type, symbol;
    int64_t addend;
};

struct bw_amd_elf {
    const uint8_t *file;
    uint64_t file_bytes;
    uint16_t type; /* ET_REL or ET_DYN */
    uint32_t flags;
    uint8_t abi_version;
    uint32_t section_count, segment_count; /* segments: PT_LOAD only */
    struct bw_amd_elf_section *sections;
    struct bw_amd_elf_segment *segments;
};

/* Checks the headers and fills elf; memory comes from the arena, file is referred to. -EINVAL: malformed;
 * -ENOTSUP: an ELF file that is not an AMDGPU HSA code object; -ENOMEM. */
int bw_amd_elf_open(struct bw_amd_elf *elf, struct bw_arena *arena, const void *file, uint64_t file_bytes,
                    struct bw_err *err);

/* Section content; NULL for NOBITS. */
const uint8_t *bw_amd_elf_content(const struct bw_amd_elf *elf, const struct bw_amd_elf_section *section);

/* Number of entries of a symbol or relocation table; its entry size was checked. */
uint64_t bw_amd_elf_entry_count(const struct bw_amd_elf_section *table);
/* Entry `index` of the symbol table in section `table`. -EINVAL: out of range, or its name or section is. */
int bw_amd_elf_symbol(const struct bw_amd_elf *elf, uint32_t table, uint64_t index,
                      struct bw_amd_elf_symbol *symbol, struct bw_err *err);
/* Entry `index` (in range) of the SHT_RELA section. */
void bw_amd_elf_relocation(const struct bw_amd_elf *elf, const struct bw_amd_elf_section *table,
                           uint64_t index, struct bw_amd_elf_relocation *relocation);

#endif
