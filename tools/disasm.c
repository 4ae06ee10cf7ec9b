/* bellwire disasm: machine code to text, with our own decoder: the executable sections of an ELF file, or a
 * raw file. */
#include <cjson/cJSON.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "mock/isa/isa.h"
#include "tools/print.h"
#include "tools/tool.h"

enum { FILE_BYTES_MAX = 1 << 30 };

struct listing {
    const struct bw_isa *isa;
    cJSON *rows; /* NULL: text */
    uint64_t illegal;
};

/* text NULL: no instruction. */
static void print_row(const struct listing *listing, const uint8_t *code, unsigned length, uint64_t address,
                      const char *text)
{
    bw_print(stdout, "%08llx:", (unsigned long long)address);
    for (unsigned i = 0; i + 4 <= length; i += 4) {
        uint32_t word;
        memcpy(&word, code + i, sizeof word);
        bw_print(stdout, " %08x", word);
    }
    bw_print(stdout, "%*s %s\n", 28 - (int)(length / 4) * 9, "", text ? text : "<not an instruction>");
}

static void add_row(const struct listing *listing, const uint8_t *code, unsigned length, uint64_t address,
                    const char *text)
{
    cJSON *row = cJSON_CreateObject(), *words = cJSON_AddArrayToObject(row, "words");
    cJSON_AddNumberToObject(row, "address", (double)address);
    for (unsigned i = 0; i + 4 <= length; i += 4) {
        uint32_t word;
        memcpy(&word, code + i, sizeof word);
        cJSON_AddItemToArray(words, cJSON_CreateNumber(word));
    }
    cJSON_AddItemToObject(row, "text", text ? cJSON_CreateString(text) : cJSON_CreateNull());
    cJSON_AddItemToArray(listing->rows, row);
}

/* Lists [code, code + size); the rest of an undecodable stretch goes on at the next word. */
static void list_code(struct listing *listing, const uint8_t *code, uint64_t code_bytes, uint64_t address)
{
    for (uint64_t at = 0; at < code_bytes;) {
        struct bw_text text = {0};
        unsigned length = bw_isa_disassemble(listing->isa, code + at, code_bytes - at, address + at, &text);
        listing->illegal += length == 0;
        const char *shown = length ? bw_text_string(&text) : NULL;
        if (!length)
            length = code_bytes - at < 4 ? (unsigned)(code_bytes - at) : 4;
        (listing->rows ? add_row : print_row)(listing, code + at, length, address + at, shown);
        bw_text_free(&text);
        at += length;
    }
}

static int list_elf(struct listing *listing, const uint8_t *file, uint64_t file_bytes)
{
    struct bw_err err = {0};
    Elf64_Ehdr header;
    if (file_bytes < sizeof header)
        return bw_fail(&err, -EINVAL, "disasm", "ELF header cut short"), bw_tool_fail(&err);
    memcpy(&header, file, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shoff > file_bytes || header.e_shnum > (file_bytes - header.e_shoff) / sizeof(Elf64_Shdr))
        return bw_fail(&err, -EINVAL, "disasm", "not a 64-bit ELF file with a section table inside it"),
               bw_tool_fail(&err);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, file + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR))
            continue;
        if (section.sh_offset > file_bytes || section.sh_size > file_bytes - section.sh_offset)
            return bw_fail(&err, -EINVAL, "disasm", "section %u lies outside the file", i),
                   bw_tool_fail(&err);
        list_code(listing, file + section.sh_offset, section.sh_size, section.sh_addr);
    }
    return BW_TOOL_DONE;
}

int bw_tool_disasm(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("disasm", argc, argv);
    const char *arch = NULL, *path = NULL;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--arch"))
            arch = bw_args_value(&args);
        else if (args.positional && !path)
            path = args.positional;
        else
            bw_args_unknown(&args);
    }
    if (args.failed)
        return BW_TOOL_USAGE;
    if (!arch || !path)
        return bw_tool_usage("disasm", "--arch and a file are needed");
    struct bw_err err = {0};
    const struct bw_isa *isa = NULL;
    if (bw_isa_find(arch, &isa)) {
        bw_fail(&err, -ENOTSUP, "disasm", "architecture '%s'", arch);
        bw_err_hint(&err, "decoders exist for: gfx1100");
        return bw_tool_fail(&err);
    }
    void *file = NULL;
    uint64_t file_bytes = 0;
    if (bw_tool_read_file(path, FILE_BYTES_MAX, &file, &file_bytes, &err))
        return bw_tool_fail(&err);
    cJSON *document = args.json ? cJSON_CreateObject() : NULL;
    struct listing listing = {.isa = isa};
    if (document) {
        cJSON_AddStringToObject(document, "arch", arch);
        listing.rows = cJSON_AddArrayToObject(document, "instructions");
    }
    int status = BW_TOOL_DONE;
    if (file_bytes >= SELFMAG && !memcmp(file, ELFMAG, SELFMAG))
        status = list_elf(&listing, file, file_bytes);
    else
        list_code(&listing, file, file_bytes, 0);
    free(file);
    if (document && !status) {
        cJSON_AddNumberToObject(document, "not_instructions", (double)listing.illegal);
        bw_tool_print_json(document);
    } else {
        cJSON_Delete(document);
    }
    return status ? status : listing.illegal ? BW_TOOL_FAILED : BW_TOOL_DONE;
}
