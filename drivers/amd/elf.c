/* ELF view: see elf.h. Formats: System V ABI (elf.h of the C library), LLVM AMDGPUUsage "ELF Code Object". */
#include "drivers/amd/elf.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"

/* LLVM BinaryFormat/ELF.h */
enum { MACHINE_AMDGPU = 224, OSABI_AMDGPU_HSA = 64, ABI_VERSION_HSA_V4 = 2, ABI_VERSION_HSA_V5 = 3 };

static const char subsystem[] = "elf";

/* Whether [offset, offset + size_bytes) lies in the file. */
static bool in_file(const struct bw_amd_elf *elf, uint64_t offset, uint64_t size_bytes)
{
    return offset <= elf->file_bytes && size_bytes <= elf->file_bytes - offset;
}

static int check_ident(const struct bw_amd_elf *elf, const Elf64_Ehdr *header, struct bw_err *err)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        bw_fail(err, -EINVAL, subsystem, "magic at 0x0");
        bw_err_expected(err, "7f 45 4c 46");
        bw_err_observed(err, "%02x %02x %02x %02x", header->e_ident[0], header->e_ident[1],
                        header->e_ident[2], header->e_ident[3]);
        return -EINVAL;
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
        return bw_fail(err, -ENOTSUP, subsystem, "identification at 0x4: not 64-bit little-endian version 1");
    if (header->e_machine != MACHINE_AMDGPU) {
        bw_fail(err, -ENOTSUP, subsystem, "e_machine at 0x%zx", offsetof(Elf64_Ehdr, e_machine));
        bw_err_expected(err, "%u (AMDGPU)", MACHINE_AMDGPU);
        bw_err_observed(err, "%u", header->e_machine);
        return -ENOTSUP;
    }
    uint8_t abi = header->e_ident[EI_ABIVERSION];
    if (header->e_ident[EI_OSABI] != OSABI_AMDGPU_HSA || abi < ABI_VERSION_HSA_V4 ||
        abi > ABI_VERSION_HSA_V5) {
        bw_fail(err, -ENOTSUP, subsystem, "OS ABI at 0x7: not an HSA code object of version 4 or 5");
        bw_err_observed(err, "OS ABI %u, version %u", header->e_ident[EI_OSABI], abi);
        bw_err_hint(err, "compile for amdgcn-amd-amdhsa with -mcode-object-version=5");
        return -ENOTSUP;
    }
    if (header->e_type != ET_REL && header->e_type != ET_DYN)
        return bw_fail(err, -ENOTSUP, subsystem, "e_type %u at 0x%zx: neither relocatable nor shared",
                       header->e_type, offsetof(Elf64_Ehdr, e_type));
    return 0;
}

/* The NUL-terminated string at `offset` of a string table; NULL when it does not end inside. */
static const char *string_at(const struct bw_amd_elf *elf, const struct bw_amd_elf_section *strings,
                             uint64_t offset)
{
    if (strings->type != SHT_STRTAB || offset >= strings->size_bytes)
        return NULL;
    const char *start = (const char *)elf->file + strings->offset + offset;
    return memchr(start, 0, strings->size_bytes - offset) ? start : NULL;
}

static int check_table(const struct bw_amd_elf *elf, uint32_t index, uint64_t entry_bytes, struct bw_err *err)
{
    const struct bw_amd_elf_section *section = &elf->sections[index];
    if (section->entry_bytes != entry_bytes || section->size_bytes % entry_bytes)
        return bw_fail(err, -EINVAL, subsystem,
                       "section %u at 0x%" PRIx64 ": 0x%" PRIx64 " bytes in entries of %" PRIu64
                       ", expected %" PRIu64,
                       index, section->offset, section->size_bytes, section->entry_bytes, entry_bytes);
    if (section->link >= elf->section_count)
        return bw_fail(err, -EINVAL, subsystem, "section %u links to section %u of %u", index, section->link,
                       elf->section_count);
    return 0;
}

/* What must hold for a section whatever it is used for. */
static int check_section(const struct bw_amd_elf *elf, uint32_t index, struct bw_err *err)
{
    const struct bw_amd_elf_section *section = &elf->sections[index];
    if (section->type != SHT_NOBITS && section->type != SHT_NULL &&
        !in_file(elf, section->offset, section->size_bytes))
        return bw_fail(err, -EINVAL, subsystem,
                       "section %u: [0x%" PRIx64 ", +0x%" PRIx64 ") is outside the file of 0x%" PRIx64
                       " bytes",
                       index, section->offset, section->size_bytes, elf->file_bytes);
    if (section->alignment && !bw_is_pow2(section->alignment))
        return bw_fail(err, -EINVAL, subsystem, "section %u: alignment 0x%" PRIx64 " is no power of two",
                       index, section->alignment);
    switch (section->type) {
    case SHT_SYMTAB:
    case SHT_DYNSYM:
        return check_table(elf, index, sizeof(Elf64_Sym), err);
    case SHT_RELA:
        return check_table(elf, index, sizeof(Elf64_Rela), err);
    default:
        return 0;
    }
}

static int read_sections(struct bw_amd_elf *elf, struct bw_arena *arena, const Elf64_Ehdr *header,
                         struct bw_err *err)
{
    if (header->e_shnum == 0 || header->e_shentsize != sizeof(Elf64_Shdr))
        return bw_fail(err, -EINVAL, subsystem, "section headers at 0x%" PRIx64 ": %u entries of %u bytes",
                       header->e_shoff, header->e_shnum, header->e_shentsize);
    if (header->e_shnum > BW_AMD_ELF_SECTIONS_MAX)
        return bw_fail(err, -E2BIG, subsystem, "%u sections; at most %u are read", header->e_shnum,
                       BW_AMD_ELF_SECTIONS_MAX);
    uint64_t table_bytes = (uint64_t)header->e_shnum * sizeof(Elf64_Shdr);
    if (!in_file(elf, header->e_shoff, table_bytes))
        return bw_fail(err, -EINVAL, subsystem,
                       "section headers [0x%" PRIx64 ", +0x%" PRIx64 ") are outside the file of 0x%" PRIx64
                       " bytes",
                       header->e_shoff, table_bytes, elf->file_bytes);
    elf->section_count = header->e_shnum;
    elf->sections = bw_arena_alloc(arena, elf->section_count * sizeof *elf->sections);
    if (!elf->sections)
        return bw_fail(err, -ENOMEM, subsystem, "%u sections", elf->section_count);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr entry;
        memcpy(&entry, elf->file + header->e_shoff + i * sizeof entry, sizeof entry);
        elf->sections[i] = (struct bw_amd_elf_section){"",
                                                       entry.sh_type,
                                                       entry.sh_link,
                                                       entry.sh_info,
                                                       entry.sh_flags,
                                                       entry.sh_addr,
                                                       entry.sh_offset,
                                                       entry.sh_size,
                                                       entry.sh_addralign,
                                                       entry.sh_entsize};
    }
    for (uint32_t i = 0; i < elf->section_count; i++) {
        int rc = check_section(elf, i, err);
        if (rc)
            return rc;
    }
    if (header->e_shstrndx >= elf->section_count)
        return bw_fail(err, -EINVAL, subsystem, "section names in section %u of %u", header->e_shstrndx,
                       elf->section_count);
    for (uint32_t i = 0; i < elf->section_count; i++) {
        Elf64_Shdr entry;
        memcpy(&entry, elf->file + header->e_shoff + i * sizeof entry, sizeof entry);
        const char *name = string_at(elf, &elf->sections[header->e_shstrndx], entry.sh_name);
        elf->sections[i].name = name ? name : "";
    }
    return 0;
}

static int read_segments(struct bw_amd_elf *elf, struct bw_arena *arena, const Elf64_Ehdr *header,
                         struct bw_err *err)
{
    if (header->e_phnum == 0)
        return 0;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > BW_AMD_ELF_SEGMENTS_MAX)
        return bw_fail(err, -EINVAL, subsystem, "program headers: %u entries of %u bytes", header->e_phnum,
                       header->e_phentsize);
    if (!in_file(elf, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr)))
        return bw_fail(err, -EINVAL, subsystem,
                       "program headers at 0x%" PRIx64 " are outside the file of 0x%" PRIx64 " bytes",
                       header->e_phoff, elf->file_bytes);
    elf->segments = bw_arena_alloc(arena, header->e_phnum * sizeof *elf->segments);
    if (!elf->segments)
        return bw_fail(err, -ENOMEM, subsystem, "%u segments", header->e_phnum);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr entry;
        memcpy(&entry, elf->file + header->e_phoff + i * sizeof entry, sizeof entry);
        if (entry.p_type != PT_LOAD)
            continue;
        if (!in_file(elf, entry.p_offset, entry.p_filesz) || entry.p_filesz > entry.p_memsz)
            return bw_fail(err, -EINVAL, subsystem,
                           "segment %u: [0x%" PRIx64 ", +0x%" PRIx64 ") is outside the file of 0x%" PRIx64
                           " bytes",
                           i, entry.p_offset, entry.p_filesz, elf->file_bytes);
        if (entry.p_align && !bw_is_pow2(entry.p_align))
            return bw_fail(err, -EINVAL, subsystem, "segment %u: alignment 0x%" PRIx64 " is no power of two",
                           i, entry.p_align);
        elf->segments[elf->segment_count++] =
            (struct bw_amd_elf_segment){entry.p_offset, entry.p_vaddr, entry.p_filesz,
                                        entry.p_memsz,  entry.p_align, (entry.p_flags & PF_X) != 0};
    }
    return 0;
}

int bw_amd_elf_open(struct bw_amd_elf *elf, struct bw_arena *arena, const void *file, uint64_t file_bytes,
                    struct bw_err *err)
{
    memset(elf, 0, sizeof *elf);
    elf->file = file;
    elf->file_bytes = file_bytes;
    Elf64_Ehdr header;
    if (file_bytes < sizeof header)
        return bw_fail(err, -EINVAL, subsystem, "%" PRIu64 " bytes: no room for an ELF header of %zu",
                       file_bytes, sizeof header);
    memcpy(&header, file, sizeof header);
    int rc = check_ident(elf, &header, err);
    if (rc)
        return rc;
    elf->type = header.e_type;
    elf->flags = header.e_flags;
    elf->abi_version = header.e_ident[EI_ABIVERSION];
    rc = read_sections(elf, arena, &header, err);
    return rc ? rc : read_segments(elf, arena, &header, err);
}

const uint8_t *bw_amd_elf_content(const struct bw_amd_elf *elf, const struct bw_amd_elf_section *section)
{
    return section->type == SHT_NOBITS || section->type == SHT_NULL ? NULL : elf->file + section->offset;
}

uint64_t bw_amd_elf_entry_count(const struct bw_amd_elf_section *table)
{
    assert(table->entry_bytes);
    return table->size_bytes / table->entry_bytes;
}

int bw_amd_elf_symbol(const struct bw_amd_elf *elf, uint32_t table, uint64_t index,
                      struct bw_amd_elf_symbol *symbol, struct bw_err *err)
{
    assert(table < elf->section_count);
    const struct bw_amd_elf_section *section = &elf->sections[table];
    assert(section->type == SHT_SYMTAB || section->type == SHT_DYNSYM);
    if (index >= bw_amd_elf_entry_count(section))
        return bw_fail(err, -EINVAL, subsystem, "symbol %" PRIu64 " of %" PRIu64 " in section %u (%s)", index,
                       bw_amd_elf_entry_count(section), table, section->name);
    Elf64_Sym entry;
    uint64_t offset = section->offset + index * sizeof entry;
    memcpy(&entry, elf->file + offset, sizeof entry);
    const char *name = string_at(elf, &elf->sections[section->link], entry.st_name);
    if (!name)
        return bw_fail(err, -EINVAL, subsystem,
                       "symbol %" PRIu64 " at 0x%" PRIx64 ": its name is outside the string table", index,
                       offset);
    if (entry.st_shndx < SHN_LORESERVE && entry.st_shndx >= elf->section_count)
        return bw_fail(err, -EINVAL, subsystem, "symbol %s at 0x%" PRIx64 ": section %u of %u", name, offset,
                       entry.st_shndx, elf->section_count);
    *symbol = (struct bw_amd_elf_symbol){name,
                                         ELF64_ST_TYPE(entry.st_info),
                                         ELF64_ST_BIND(entry.st_info),
                                         entry.st_shndx,
                                         entry.st_value,
                                         entry.st_size};
    return 0;
}

void bw_amd_elf_relocation(const struct bw_amd_elf *elf, const struct bw_amd_elf_section *table,
                           uint64_t index, struct bw_amd_elf_relocation *relocation)
{
    assert(table->type == SHT_RELA && index < bw_amd_elf_entry_count(table));
    Elf64_Rela entry;
    uint64_t offset = table->offset + index * sizeof entry;
    memcpy(&entry, elf->file + offset, sizeof entry);
    *relocation = (struct bw_amd_elf_relocation){offset, entry.r_offset, (uint32_t)ELF64_R_TYPE(entry.r_info),
                                                 (uint32_t)ELF64_R_SYM(entry.r_info), entry.r_addend};
}
