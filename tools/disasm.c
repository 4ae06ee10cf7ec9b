/* bellwire disasm: machine code to text, with our own decoder: the executable sections of an ELF file, or (as
 * no bytes tell that they are code) with --raw all of a file. */
#include <cjson/cJSON.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "base/vec.h"
#include "compiler/io.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/elf.h"
#include "mock/isa/isa.h"
#include "tools/print.h"
#include "tools/tool.h"

enum {
    FILE_BYTES_MAX = 1 << 30,
    LABELS_MAX = 1 << 12, /* each is looked at for each instruction: larger objects are no hand's work */
};

/* Where a function begins: in the section for a relocatable object, else in memory. */
struct label {
    const char *name;
    uint64_t address;
    uint16_t section;
};
typedef BW_VEC(struct label) label_list;

struct listing {
    const struct bw_isa *isa;
    cJSON *rows; /* NULL: text */
    label_list labels;
    uint16_t section; /* the one being listed */
    uint64_t illegal, listed;
    uint64_t padding; /* s_code_end in a row, so far; of many the first and their number are printed */
};

/* One instruction, or what is none (text NULL). */
struct row {
    const uint8_t *code;
    unsigned length;
    uint64_t address;
    const char *label, *text;
    bool branches;
    uint64_t target; /* of a branch */
};

/* Where a branch goes: relative to what follows it, in words (RDNA3 ISA, "Program Flow Control"). */
static void branch_find(struct row *row)
{
    static const char *const mnemonics[] = {"s_branch ", "s_cbranch_", "s_call_b64 "};
    for (size_t i = 0; i < BW_COUNT_OF(mnemonics) && row->text; i++)
        row->branches |= !strncmp(row->text, mnemonics[i], strlen(mnemonics[i]));
    if (!row->branches)
        return;
    uint16_t offset_words; /* little endian, the low half of the word */
    memcpy(&offset_words, row->code, sizeof offset_words);
    row->target = row->address + row->length + (uint64_t)((int64_t)(int16_t)offset_words * 4);
}

/* The function that the address is in: the one that begins last before it. */
static const struct label *label_before(const struct listing *listing, uint64_t address)
{
    const struct label *found = NULL;
    for (size_t i = 0; i < listing->labels.count; i++) {
        const struct label *label = &listing->labels.data[i];
        if (label->section == listing->section && label->address <= address &&
            (!found || label->address > found->address))
            found = label;
    }
    return found;
}

static void print_target(const struct listing *listing, uint64_t target)
{
    const struct label *label = label_before(listing, target);
    bw_print(stdout, "  // %08llx", (unsigned long long)target);
    if (label && label->address == target)
        bw_print(stdout, " <%s>", label->name);
    else if (label)
        bw_print(stdout, " <%s+0x%llx>", label->name, (unsigned long long)(target - label->address));
}

/* Compilers pad code with s_code_end, for the instruction fetcher: a page of it says no more than its length.
 */
static void padding_end(struct listing *listing)
{
    if (listing->padding > 1)
        bw_print(stdout, "          ... %llu more s_code_end\n", (unsigned long long)listing->padding - 1);
    listing->padding = 0;
}

static void print_row(struct listing *listing, const struct row *row)
{
    bool padding = row->text && !row->label && !strcmp(row->text, "s_code_end");
    if (!padding)
        padding_end(listing);
    else if (listing->padding++)
        return;
    if (row->label)
        bw_print(stdout, "%s:\n", row->label);
    bw_print(stdout, "%08llx:", (unsigned long long)row->address);
    for (unsigned i = 0; i + 4 <= row->length; i += 4) {
        uint32_t word;
        memcpy(&word, row->code + i, sizeof word);
        bw_print(stdout, " %08x", word);
    }
    bw_print(stdout, "%*s %s", 28 - (int)(row->length / 4) * 9, "",
             row->text ? row->text : "<not an instruction>");
    if (row->branches)
        print_target(listing, row->target);
    bw_print(stdout, "\n");
}

static cJSON *row_json(const struct row *row)
{
    cJSON *object = cJSON_CreateObject(), *words = cJSON_AddArrayToObject(object, "words");
    cJSON_AddNumberToObject(object, "address", (double)row->address);
    for (unsigned i = 0; i + 4 <= row->length; i += 4) {
        uint32_t word;
        memcpy(&word, row->code + i, sizeof word);
        cJSON_AddItemToArray(words, cJSON_CreateNumber(word));
    }
    if (row->label)
        cJSON_AddStringToObject(object, "label", row->label);
    if (row->branches)
        cJSON_AddNumberToObject(object, "target", (double)row->target);
    cJSON_AddItemToObject(object, "text", row->text ? cJSON_CreateString(row->text) : cJSON_CreateNull());
    return object;
}

static const char *label_at(const struct listing *listing, uint64_t address)
{
    for (size_t i = 0; i < listing->labels.count; i++) {
        const struct label *label = &listing->labels.data[i];
        if (label->section == listing->section && label->address == address)
            return label->name;
    }
    return NULL;
}

/* Lists [code, code + size); the rest of an undecodable stretch goes on at the next word. */
static void list_code(struct listing *listing, const uint8_t *code, uint64_t code_bytes, uint64_t address)
{
    for (uint64_t at = 0; at < code_bytes;) {
        struct bw_text text = {0};
        unsigned length = bw_isa_disassemble(listing->isa, code + at, code_bytes - at, address + at, &text);
        struct row row = {code + at,
                          length,
                          address + at,
                          label_at(listing, address + at),
                          length ? bw_text_string(&text) : NULL,
                          false,
                          0};
        listing->illegal += length == 0;
        if (!length)
            row.length = code_bytes - at < 4 ? (unsigned)(code_bytes - at) : 4;
        branch_find(&row);
        listing->listed++;
        if (listing->rows)
            cJSON_AddItemToArray(listing->rows, row_json(&row));
        else
            print_row(listing, &row);
        bw_text_free(&text);
        at += row.length;
    }
    padding_end(listing);
}

/* Functions of every symbol table; a linked file has two, which say the same. */
static int labels_take(struct listing *listing, const struct bw_amd_elf *elf, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; i < elf->section_count && !rc; i++) {
        if (elf->sections[i].type != SHT_SYMTAB && elf->sections[i].type != SHT_DYNSYM)
            continue;
        for (uint64_t k = 0; k < bw_amd_elf_entry_count(&elf->sections[i]) && !rc; k++) {
            struct bw_amd_elf_symbol symbol;
            rc = bw_amd_elf_symbol(elf, i, k, &symbol, err);
            if (rc || symbol.type != STT_FUNC)
                continue;
            struct label label = {symbol.name, symbol.value, symbol.section};
            if (listing->labels.count == LABELS_MAX || bw_vec_push(&listing->labels, label))
                rc = bw_fail(err, -E2BIG, "disasm", "more than %d functions", LABELS_MAX);
        }
    }
    return rc;
}

static int list_elf(struct listing *listing, const char *arch, const uint8_t *file, uint64_t file_bytes,
                    struct bw_err *err)
{
    struct bw_arena arena = {0};
    struct bw_amd_elf elf;
    int rc = bw_amd_elf_open(&elf, &arena, file, file_bytes, err);
    const struct bw_amd_arch *built_for =
        rc ? NULL : bw_amd_arch_by_elf_machine(elf.flags & BW_AMD_ELF_FLAGS_MACHINE);
    bool other = built_for ? strcmp(built_for->name, arch) != 0 : bw_amd_arch_find(arch) != NULL;
    if (!rc && other) {
        rc = bw_fail(err, -EINVAL, "disasm", "this object is for another architecture (e_flags 0x%x)",
                     elf.flags);
        bw_err_expected(err, "%s", arch);
        bw_err_observed(err, "%s", built_for ? built_for->name : "an unknown machine");
    }
    if (!rc)
        rc = labels_take(listing, &elf, err);
    for (uint32_t i = 0; i < elf.section_count && !rc; i++) {
        const struct bw_amd_elf_section *section = &elf.sections[i];
        listing->section = (uint16_t)i;
        if (section->type == SHT_PROGBITS && section->flags & SHF_EXECINSTR)
            list_code(listing, bw_amd_elf_content(&elf, section), section->size_bytes, section->address);
    }
    bw_vec_free(&listing->labels);
    bw_arena_free(&arena);
    return rc;
}

static int list_file(struct listing *listing, const char *arch, const char *path, bool raw,
                     struct bw_err *err)
{
    void *file = NULL;
    uint64_t file_bytes = 0;
    int rc = bw_tool_read_file(path, FILE_BYTES_MAX, &file, &file_bytes, err);
    if (rc)
        return rc;
    if (raw) {
        list_code(listing, file, file_bytes, 0);
    } else if (file_bytes >= SELFMAG && !memcmp(file, ELFMAG, SELFMAG)) {
        rc = list_elf(listing, arch, file, file_bytes, err);
        if (rc)
            bw_file_err_name(bw_tool_file_name(path), err);
    } else if (file_bytes) {
        rc = bw_fail(err, -EINVAL, "disasm", "%s is no ELF file", bw_tool_file_name(path));
        bw_err_hint(err, "--raw takes all bytes of a file for machine code");
    }
    free(file);
    if (!rc && !listing->listed)
        rc = bw_fail(err, -EINVAL, "disasm", "%s holds no instructions", bw_tool_file_name(path));
    return rc;
}

static int arch_fail(const char *arch)
{
    struct bw_err err = {0};
    struct bw_text text = {0};
    const char *known;
    for (uint32_t i = 0; (known = bw_isa_decoder_at(i)); i++)
        bw_text_add(&text, "%s%s", i ? ", " : "", known);
    bw_fail(&err, -ENOTSUP, "disasm", "architecture '%s'", arch);
    bw_err_hint(&err, "decoders exist for: %s", bw_text_string(&text));
    bw_text_free(&text);
    return bw_tool_arch_fail(&err);
}

int bw_tool_disasm(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("disasm", argc, argv);
    const char *arch = NULL, *path = NULL;
    bool raw = false;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--arch"))
            arch = bw_args_value(&args);
        else if (bw_args_is(&args, "--raw"))
            raw = true;
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
    if (bw_isa_find_decoder(arch, &isa))
        return arch_fail(arch);
    cJSON *document = args.json ? cJSON_CreateObject() : NULL;
    struct listing listing = {.isa = isa};
    if (document) {
        cJSON_AddStringToObject(document, "arch", arch);
        listing.rows = cJSON_AddArrayToObject(document, "instructions");
    }
    int status = list_file(&listing, arch, path, raw, &err) ? bw_tool_fail(&err) : BW_TOOL_DONE;
    if (document && !status) {
        cJSON_AddNumberToObject(document, "not_instructions", (double)listing.illegal);
        bw_tool_print_json(document);
    } else {
        cJSON_Delete(document);
    }
    return status ? status : listing.illegal ? BW_TOOL_FAILED : BW_TOOL_DONE;
}
