/* The two code objects of tests/golden/amd/kernels.s, read into memory of exactly their size. */
#ifndef BW_TESTS_AMD_ELF_FILES_H
#define BW_TESTS_AMD_ELF_FILES_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct elf_file {
    uint8_t *data;
    uint64_t size_bytes;
};

static inline struct elf_file elf_file_read_path(const char *path)
{
    struct elf_file file = {0};
    FILE *stream = fopen(path, "rb");
    if (!stream)
        return file;
    fseek(stream, 0, SEEK_END);
    file.size_bytes = (uint64_t)ftell(stream);
    rewind(stream);
    file.data = malloc(file.size_bytes);
    if (fread(file.data, 1, file.size_bytes, stream) != file.size_bytes)
        file.size_bytes = 0;
    fclose(stream);
    return file;
}

/* name: "kernels.rel.elf" or "kernels.dyn.elf" */
static inline struct elf_file elf_file_read(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/amd/%s", BW_SOURCE_DIR, name);
    return elf_file_read_path(path);
}

static inline Elf64_Shdr *elf_section(const struct elf_file *file, const char *name)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)file->data;
    Elf64_Shdr *sections = (Elf64_Shdr *)(file->data + header->e_shoff);
    const char *names = (const char *)file->data + sections[header->e_shstrndx].sh_offset;
    for (unsigned i = 0; i < header->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, name) == 0)
            return &sections[i];
    return NULL;
}

static inline uint8_t *elf_content(const struct elf_file *file, const char *name)
{
    return file->data + elf_section(file, name)->sh_offset;
}

/* Index of the symbol in .symtab; 0 when there is none. */
static inline unsigned elf_symbol(const struct elf_file *file, const char *name)
{
    const Elf64_Sym *symbols = (const Elf64_Sym *)elf_content(file, ".symtab");
    const char *names = (const char *)elf_content(file, ".strtab");
    for (unsigned i = 0; i < elf_section(file, ".symtab")->sh_size / sizeof *symbols; i++)
        if (strcmp(names + symbols[i].st_name, name) == 0)
            return i;
    return 0;
}

#endif
