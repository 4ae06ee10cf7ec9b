/* Reading ELF relocatable objects: see object.h. Layouts: System V ABI, chapters 4 and "x86-64 supplement".
 */
#include "drivers/host/object.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* A kernel module has about 10 sections and 30 symbols; these bound what a hostile file makes us allocate. */
enum { SECTIONS_MAX = 4096, SYMBOLS_MAX = 1 << 20 };

static int object_broken(struct bw_err *err, const char *what, uint64_t index, uint64_t offset)
{
    bw_fail(err, -EINVAL, "elf", "%s %llu", what, (unsigned long long)index);
    bw_err_observed(err, "damaged, at offset 0x%llx", (unsigned long long)offset);
    return -EINVAL;
}

static int header_read(const void *image, uint64_t image_bytes, Elf64_Ehdr *header, struct bw_err *err)
{
    if (image_bytes < sizeof *header)
        return bw_fail(err, -ENOEXEC, "elf", "object of %llu bytes", (unsigned long long)image_bytes);
    memcpy(header, image, sizeof *header);
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return bw_fail(err, -ENOEXEC, "elf", "no ELF magic at offset 0");
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
        bw_fail(err, -ENOEXEC, "elf", "class and byte order at offset 4");
        bw_err_expected(err, "64-bit, little endian");
        return -ENOEXEC;
    }
    if (header->e_machine != EM_X86_64 || header->e_type != ET_REL) {
        bw_fail(err, -ENOEXEC, "elf", "no relocatable object for x86-64, which this device takes");
        bw_err_expected(err, "type %d (ET_REL), machine %d (x86-64)", ET_REL, EM_X86_64);
        bw_err_observed(err, "type %u, machine %u", header->e_type, header->e_machine);
        if (header->e_machine == EM_AMDGPU)
            bw_err_hint(err, "this one is for an AMD GPU: it runs on that, or on a mock of it");
        return -ENOEXEC;
    }
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shnum == 0 || header->e_shnum > SECTIONS_MAX ||
        header->e_shoff > image_bytes ||
        (uint64_t)header->e_shnum * sizeof(Elf64_Shdr) > image_bytes - header->e_shoff)
        return object_broken(err, "section table of entries:", header->e_shnum, header->e_shoff);
    return 0;
}

static int sections_read(struct bw_host_object *object, const Elf64_Ehdr *header, struct bw_err *err)
{
    object->sections = calloc(header->e_shnum, sizeof *object->sections);
    if (!object->sections)
        return bw_fail(err, -ENOMEM, "elf", "%u sections", header->e_shnum);
    object->section_count = header->e_shnum;
    for (uint32_t i = 0; i < object->section_count; i++) {
        Elf64_Shdr raw;
        uint64_t at = header->e_shoff + i * sizeof raw;
        memcpy(&raw, object->image + at, sizeof raw);
        bool in_file = raw.sh_type != SHT_NOBITS && raw.sh_type != SHT_NULL;
        if (in_file &&
            (raw.sh_offset > object->image_bytes || raw.sh_size > object->image_bytes - raw.sh_offset))
            return object_broken(err, "section", i, at);
        if (raw.sh_addralign > 1 && !bw_is_pow2(raw.sh_addralign))
            return object_broken(err, "alignment of section", i, at);
        object->sections[i] = (struct bw_host_section){.type = raw.sh_type,
                                                       .link = raw.sh_link,
                                                       .info = raw.sh_info,
                                                       .flags = raw.sh_flags,
                                                       .offset = raw.sh_offset,
                                                       .size_bytes = raw.sh_size,
                                                       .alignment = raw.sh_addralign ? raw.sh_addralign : 1,
                                                       .entry_bytes = raw.sh_entsize,
                                                       .name = ""};
    }
    return 0;
}

/* A string of a table section; NULL when index or table are not what they should be. */
static const char *string_at(const struct bw_host_object *object, uint32_t section, uint64_t offset)
{
    if (section >= object->section_count || object->sections[section].type != SHT_STRTAB)
        return NULL;
    const struct bw_host_section *table = &object->sections[section];
    if (offset >= table->size_bytes || object->image[table->offset + table->size_bytes - 1] != 0)
        return NULL;
    return (const char *)object->image + table->offset + offset;
}

static int names_read(struct bw_host_object *object, const Elf64_Ehdr *header, struct bw_err *err)
{
    for (uint32_t i = 1; i < object->section_count; i++) {
        Elf64_Shdr raw;
        uint64_t at = header->e_shoff + i * sizeof raw;
        memcpy(&raw, object->image + at, sizeof raw);
        object->sections[i].name = string_at(object, header->e_shstrndx, raw.sh_name);
        if (!object->sections[i].name)
            return object_broken(err, "name of section", i, at);
    }
    return 0;
}

static int symbols_read(struct bw_host_object *object, struct bw_err *err)
{
    const struct bw_host_section *table = NULL;
    for (uint32_t i = 0; i < object->section_count; i++) {
        if (object->sections[i].type != SHT_SYMTAB)
            continue;
        if (table)
            return object_broken(err, "second symbol table: section", i, object->sections[i].offset);
        table = &object->sections[i];
    }
    if (!table)
        return bw_fail(err, -EINVAL, "elf", "object has no symbol table");
    uint64_t count = table->size_bytes / sizeof(Elf64_Sym);
    if (table->entry_bytes != sizeof(Elf64_Sym) || count > SYMBOLS_MAX)
        return object_broken(err, "symbol table of entries:", count, table->offset);
    object->symbols = calloc(count ? count : 1, sizeof *object->symbols);
    if (!object->symbols)
        return bw_fail(err, -ENOMEM, "elf", "%llu symbols", (unsigned long long)count);
    object->symbol_count = (uint32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        Elf64_Sym raw;
        memcpy(&raw, object->image + table->offset + i * sizeof raw, sizeof raw);
        struct bw_host_symbol *symbol = &object->symbols[i];
        *symbol = (struct bw_host_symbol){.name = string_at(object, table->link, raw.st_name),
                                          .type = ELF64_ST_TYPE(raw.st_info),
                                          .section = raw.st_shndx,
                                          .value = raw.st_value,
                                          .size_bytes = raw.st_size};
        bool indexed = raw.st_shndx != SHN_UNDEF && raw.st_shndx < SHN_LORESERVE;
        if (!symbol->name || (indexed && raw.st_shndx >= object->section_count))
            return object_broken(err, "symbol", i, table->offset + i * sizeof raw);
        if (indexed && raw.st_value > object->sections[raw.st_shndx].size_bytes)
            return object_broken(err, "value of symbol", i, table->offset + i * sizeof raw);
    }
    return 0;
}

int bw_host_object_open(const void *image, uint64_t image_bytes, struct bw_host_object *object,
                        struct bw_err *err)
{
    Elf64_Ehdr header;
    *object = (struct bw_host_object){.image = image, .image_bytes = image_bytes};
    int rc = header_read(image, image_bytes, &header, err);
    if (!rc)
        rc = sections_read(object, &header, err);
    if (!rc)
        rc = names_read(object, &header, err);
    if (!rc)
        rc = symbols_read(object, err);
    if (rc)
        bw_host_object_close(object);
    return rc;
}

void bw_host_object_close(struct bw_host_object *object)
{
    free(object->sections);
    free(object->symbols);
    *object = (struct bw_host_object){0};
}

struct bw_host_symbol *bw_host_object_symbol(struct bw_host_object *object, const char *name)
{
    for (uint32_t i = 0; i < object->symbol_count; i++) {
        struct bw_host_symbol *symbol = &object->symbols[i];
        if (symbol->section != SHN_UNDEF && strcmp(symbol->name, name) == 0)
            return symbol;
    }
    return NULL;
}
