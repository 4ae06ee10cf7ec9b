/* Placing and relocating host objects: see host.h for what is accepted.
 *
 * Memory of a program is one reserved range, so that everything reaches everything with 32-bit displacements:
 *
 *     code   (becomes read-only, executable):  text | read-only data | stubs | GOT
 *     data   (stays writable, never executable): .data | .bss
 *
 * libm lies anywhere in 47 bits, so a PC-relative reference to it goes to a stub `jmp *got(%rip)`. Relocation
 * names and formulas: System V ABI, AMD64 supplement, table 4.10, whose letters A, B, G, GOT, L, P, S are
 * used below. */
#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/host/object.h"

enum {
    STUB_BYTES = 8, /* ff 25 disp32, then two bytes of int3 */
    PAGE_BYTES = 4096,
    PROGRAM_BYTES_MAX = 1 << 30, /* half of what a displacement reaches, from either side */
};

struct loader {
    struct bw_host_object *object;
    struct bw_err *err;
    uint64_t code_bytes, data_bytes;   /* of sections, then rounded to pages */
    uint64_t stubs_offset, got_offset; /* in code */
    uint32_t stub_count, got_count;
    uint8_t *code, *data;
};

static bool section_is_data(const struct bw_host_section *section)
{
    return section->flags & SHF_WRITE;
}

/* Unwind tables are not needed: nothing unwinds through a kernel. */
static bool section_is_wanted(const struct bw_host_section *section)
{
    return (section->flags & SHF_ALLOC) && section->type != SHT_NULL && section->type != SHT_NOTE &&
           section->type != SHT_X86_64_UNWIND && strcmp(section->name, ".eh_frame") != 0 &&
           strcmp(section->name, BW_HOST_KERNEL_SECTION) != 0;
}

static int section_refuse(struct loader *loader, uint32_t index, const char *why)
{
    bw_fail(loader->err, -ENOTSUP, "elf", "section %u %s", index, loader->object->sections[index].name);
    bw_err_observed(loader->err, "%s", why);
    return -ENOTSUP;
}

/* Gives each wanted section an offset in code or data, code sections that execute first. Offsets become
 * addresses later. */
static int sections_place(struct loader *loader)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 1; i < loader->object->section_count; i++) {
            struct bw_host_section *section = &loader->object->sections[i];
            bool executable = section->flags & SHF_EXECINSTR;
            if (!section_is_wanted(section) || executable == (pass == 1))
                continue;
            if (section->flags & SHF_TLS)
                return section_refuse(loader, i, "thread-local storage");
            if (section->type == SHT_INIT_ARRAY || section->type == SHT_FINI_ARRAY ||
                section->type == SHT_PREINIT_ARRAY)
                return section_refuse(loader, i, "constructors");
            if (section->type != SHT_PROGBITS && section->type != SHT_NOBITS)
                return section_refuse(loader, i, "a type that has no memory");
            if (executable && section_is_data(section))
                return section_refuse(loader, i, "writable and executable");
            uint64_t *end = section_is_data(section) ? &loader->data_bytes : &loader->code_bytes;
            if (section->size_bytes > PROGRAM_BYTES_MAX || section->alignment > PAGE_BYTES)
                return section_refuse(loader, i, "too large, or aligned to more than a page");
            section->address = bw_align_up(*end, section->alignment);
            section->placed = true;
            *end = section->address + section->size_bytes;
            if (*end > PROGRAM_BYTES_MAX)
                return section_refuse(loader, i, "program larger than 1 GiB");
        }
    }
    return 0;
}

static bool relocation_wants_got(uint32_t type)
{
    return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX ||
           type == R_X86_64_GOTPCREL64 || type == R_X86_64_GOT64;
}

static bool relocation_wants_stub(uint32_t type)
{
    return type == R_X86_64_PLT32 || type == R_X86_64_PC32 || type == R_X86_64_PC64 ||
           type == R_X86_64_PLTOFF64;
}

/* Calls visit for each relocation of sections that have memory. */
static int relocations_each(struct loader *loader, int (*visit)(struct loader *loader, uint32_t table,
                                                                uint32_t index, const Elf64_Rela *rela))
{
    struct bw_host_object *object = loader->object;
    for (uint32_t i = 1; i < object->section_count; i++) {
        const struct bw_host_section *table = &object->sections[i];
        if (table->type == SHT_REL)
            return section_refuse(loader, i, "relocations without addends");
        if (table->type != SHT_RELA || table->info >= object->section_count ||
            !object->sections[table->info].placed)
            continue;
        for (uint32_t k = 0; k < table->size_bytes / sizeof(Elf64_Rela); k++) {
            Elf64_Rela rela;
            memcpy(&rela, object->image + table->offset + k * sizeof rela, sizeof rela);
            int rc = visit(loader, i, k, &rela);
            if (rc)
                return rc;
        }
    }
    return 0;
}

static int relocation_refuse(struct loader *loader, uint32_t table, uint32_t index, const Elf64_Rela *rela,
                             const char *why)
{
    const struct bw_host_object *object = loader->object;
    uint64_t symbol = ELF64_R_SYM(rela->r_info);
    bw_fail(loader->err, -ENOTSUP, "elf", "relocation %u of section %u %s, at offset 0x%llx", index,
            object->sections[table].info, object->sections[object->sections[table].info].name,
            (unsigned long long)rela->r_offset);
    bw_err_observed(loader->err, "type %u, symbol %s: %s", (uint32_t)ELF64_R_TYPE(rela->r_info),
                    symbol < object->symbol_count ? object->symbols[symbol].name : "?", why);
    bw_err_hint(
        loader->err,
        "compile position-independent code, or the large code model; allowed names: drivers/host/host.h");
    return -ENOTSUP;
}

/* Pass 1: how many GOT entries and stubs. */
static int relocation_count(struct loader *loader, uint32_t table, uint32_t index, const Elf64_Rela *rela)
{
    uint64_t number = ELF64_R_SYM(rela->r_info);
    uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
    if (number >= loader->object->symbol_count)
        return relocation_refuse(loader, table, index, rela, "no such symbol");
    struct bw_host_symbol *symbol = &loader->object->symbols[number];
    bool stub = relocation_wants_stub(type) && symbol->section == SHN_UNDEF;
    if (stub && !symbol->stub_index)
        symbol->stub_index = ++loader->stub_count;
    if ((stub || relocation_wants_got(type)) && !symbol->got_index)
        symbol->got_index = ++loader->got_count;
    return 0;
}

/* S of the formulas; false when the symbol has no address. */
static bool symbol_address(const struct loader *loader, const struct bw_host_symbol *symbol,
                           uint64_t *address)
{
    if (symbol->type == STT_TLS || symbol->type == STT_GNU_IFUNC)
        return false;
    if (symbol->section == SHN_UNDEF) {
        bool got = strcmp(symbol->name, "_GLOBAL_OFFSET_TABLE_") == 0;
        *address = got ? (uintptr_t)loader->code + loader->got_offset : bw_host_symbol_lookup(symbol->name);
        return *address != 0;
    }
    if (symbol->section == SHN_ABS) {
        *address = symbol->value;
        return true;
    }
    if (symbol->section >= SHN_LORESERVE || !loader->object->sections[symbol->section].placed)
        return false;
    *address = loader->object->sections[symbol->section].address + symbol->value;
    return true;
}

/* What is stored, and in how many bytes. */
struct fixup {
    uint64_t value;
    uint32_t size_bytes;
    enum { FITS_ANY, FITS_SIGNED, FITS_UNSIGNED } range;
};

static bool relocation_compute(const struct loader *loader, uint32_t type,
                               const struct bw_host_symbol *symbol, uint64_t s, uint64_t a, uint64_t p,
                               struct fixup *fixup)
{
    uint64_t got = (uintptr_t)loader->code + loader->got_offset;
    uint64_t entry = got + (symbol->got_index - 1ull) * sizeof(uint64_t); /* GOT + G */
    uint64_t l = symbol->stub_index ? (uintptr_t)loader->code + loader->stubs_offset +
                                          (symbol->stub_index - 1ull) * STUB_BYTES
                                    : s;
    switch (type) {
    case R_X86_64_64:
        *fixup = (struct fixup){s + a, 8, FITS_ANY};
        return true;
    case R_X86_64_32:
        *fixup = (struct fixup){s + a, 4, FITS_UNSIGNED};
        return true;
    case R_X86_64_32S:
        *fixup = (struct fixup){s + a, 4, FITS_SIGNED};
        return true;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        *fixup = (struct fixup){l + a - p, 4, FITS_SIGNED};
        return true;
    case R_X86_64_PC64:
        *fixup = (struct fixup){l + a - p, 8, FITS_ANY};
        return true;
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        *fixup = (struct fixup){entry + a - p, 4, FITS_SIGNED};
        return true;
    case R_X86_64_GOTPCREL64:
        *fixup = (struct fixup){entry + a - p, 8, FITS_ANY};
        return true;
    case R_X86_64_GOT64:
        *fixup = (struct fixup){entry - got + a, 8, FITS_ANY};
        return true;
    case R_X86_64_GOTPC32:
        *fixup = (struct fixup){got + a - p, 4, FITS_SIGNED};
        return true;
    case R_X86_64_GOTPC64:
        *fixup = (struct fixup){got + a - p, 8, FITS_ANY};
        return true;
    case R_X86_64_GOTOFF64:
        *fixup = (struct fixup){s + a - got, 8, FITS_ANY};
        return true;
    case R_X86_64_PLTOFF64:
        *fixup = (struct fixup){l + a - got, 8, FITS_ANY};
        return true;
    default:
        return false;
    }
}

static bool fixup_fits(const struct fixup *fixup)
{
    if (fixup->range == FITS_SIGNED)
        return (int64_t)fixup->value == (int32_t)fixup->value;
    return fixup->range == FITS_ANY || fixup->value <= UINT32_MAX;
}

/* Pass 2: stores. */
static int relocation_apply(struct loader *loader, uint32_t table, uint32_t index, const Elf64_Rela *rela)
{
    struct bw_host_object *object = loader->object;
    struct bw_host_section *target = &object->sections[object->sections[table].info];
    struct bw_host_symbol *symbol = &object->symbols[ELF64_R_SYM(rela->r_info)];
    uint32_t type = (uint32_t)ELF64_R_TYPE(rela->r_info);
    struct fixup fixup;
    uint64_t s;
    if (type == R_X86_64_NONE)
        return 0;
    if (target->type == SHT_NOBITS)
        return relocation_refuse(loader, table, index, rela, "section has no contents");
    if (!symbol_address(loader, symbol, &s))
        return relocation_refuse(loader, table, index, rela, "no such function for kernels");
    if (!relocation_compute(loader, type, symbol, s, (uint64_t)rela->r_addend,
                            target->address + rela->r_offset, &fixup))
        return relocation_refuse(loader, table, index, rela, "type not supported");
    if (rela->r_offset > target->size_bytes || fixup.size_bytes > target->size_bytes - rela->r_offset)
        return relocation_refuse(loader, table, index, rela, "outside its section");
    if (!fixup_fits(&fixup))
        return relocation_refuse(loader, table, index, rela, "value does not fit");
    memcpy((void *)(uintptr_t)(target->address + rela->r_offset), &fixup.value, fixup.size_bytes);
    return 0;
}

static void sections_copy(struct loader *loader)
{
    for (uint32_t i = 1; i < loader->object->section_count; i++) {
        struct bw_host_section *section = &loader->object->sections[i];
        if (!section->placed)
            continue;
        section->address += (uintptr_t)(section_is_data(section) ? loader->data : loader->code);
        if (section->type != SHT_NOBITS)
            memcpy((void *)(uintptr_t)section->address, loader->object->image + section->offset,
                   section->size_bytes);
    }
}

/* jmp *disp32(%rip); the displacement counts from the end of the 6-byte instruction. */
static void stub_write(uint8_t *stub, const uint8_t *got_entry)
{
    int32_t displacement = (int32_t)(got_entry - (stub + 6));
    uint8_t code[STUB_BYTES] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
    memcpy(code + 2, &displacement, sizeof displacement);
    memcpy(stub, code, sizeof code);
}

static int tables_fill(struct loader *loader)
{
    for (uint32_t i = 0; i < loader->object->symbol_count; i++) {
        struct bw_host_symbol *symbol = &loader->object->symbols[i];
        uint64_t address;
        if (!symbol->got_index)
            continue;
        if (!symbol_address(loader, symbol, &address)) {
            bw_fail(loader->err, -ENOENT, "elf", "undefined symbol %s", symbol->name);
            bw_err_hint(loader->err, "kernels may call only the functions listed in drivers/host/host.h");
            return -ENOENT;
        }
        uint8_t *entry = loader->code + loader->got_offset + (symbol->got_index - 1ull) * sizeof(uint64_t);
        memcpy(entry, &address, sizeof address);
        if (symbol->stub_index)
            stub_write(loader->code + loader->stubs_offset + (symbol->stub_index - 1ull) * STUB_BYTES, entry);
    }
    return 0;
}

/* One reservation, replaced by the code and the data mapping. */
static int memory_map(struct bw_sys *sys, struct loader *loader, struct bw_host_program *program)
{
    struct bw_region reserved;
    uint64_t code_bytes = bw_align_up(loader->code_bytes, PAGE_BYTES),
             data_bytes = bw_align_up(loader->data_bytes, PAGE_BYTES);
    if (code_bytes == 0)
        return bw_fail(loader->err, -EINVAL, "elf", "object has no code");
    int rc = sys->ops->map(
        sys, &(struct bw_map_request){.fd = -1, .size_bytes = code_bytes + data_bytes, .reserve = true},
        &reserved);
    if (rc)
        return bw_fail(loader->err, rc, "host", "%llu bytes of address space for a program",
                       (unsigned long long)(code_bytes + data_bytes));
    uint64_t base = (uintptr_t)reserved.base;
    struct bw_map_request request = {
        .fd = -1, .size_bytes = code_bytes, .fixed_address = base, .writable = true};
    rc = sys->ops->map(sys, &request, &program->code);
    if (!rc && data_bytes) {
        request.size_bytes = data_bytes;
        request.fixed_address = base + code_bytes;
        rc = sys->ops->map(sys, &request, &program->data);
    }
    if (rc) {
        sys->ops->unmap(sys, &reserved);
        program->code = program->data = (struct bw_region){0};
        return bw_fail(loader->err, rc, "host", "memory for a program of %llu bytes",
                       (unsigned long long)(code_bytes + data_bytes));
    }
    loader->code = (uint8_t *)(uintptr_t)base;
    loader->data = loader->code + code_bytes;
    return 0;
}

static int functions_fill(struct loader *loader, struct bw_host_program *program)
{
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        struct bw_host_symbol *symbol = bw_host_object_symbol(loader->object, program->kernels[i].name);
        const struct bw_host_section *section =
            symbol && symbol->section < SHN_LORESERVE ? &loader->object->sections[symbol->section] : NULL;
        if (!section || !section->placed || !(section->flags & SHF_EXECINSTR) ||
            symbol->value >= section->size_bytes)
            return bw_fail(loader->err, -EINVAL, "elf", "kernel %s is not a function of its object",
                           program->kernels[i].name);
        program->kernels[i].function =
            (bw_host_kernel_function *)(uintptr_t)(section->address + symbol->value);
    }
    return 0;
}

int bw_host_object_load(struct bw_sys *sys, struct bw_host_object *object, struct bw_host_program *program,
                        struct bw_err *err)
{
    struct loader loader = {.object = object, .err = err};
    int rc = sections_place(&loader);
    if (!rc)
        rc = relocations_each(&loader, relocation_count);
    if (rc)
        return rc;
    loader.stubs_offset = bw_align_up(loader.code_bytes, 16);
    loader.got_offset = loader.stubs_offset + (uint64_t)loader.stub_count * STUB_BYTES;
    loader.code_bytes = loader.got_offset + (uint64_t)loader.got_count * sizeof(uint64_t);
    rc = memory_map(sys, &loader, program);
    if (rc)
        return rc;
    sections_copy(&loader);
    rc = tables_fill(&loader);
    if (!rc)
        rc = relocations_each(&loader, relocation_apply);
    if (!rc)
        rc = functions_fill(&loader, program);
    if (!rc) {
        rc = sys->ops->protect(sys, &program->code, false, true);
        if (rc)
            bw_fail(err, rc, "host", "making %llu bytes of code executable",
                    (unsigned long long)program->code.size_bytes);
    }
    if (rc)
        bw_host_object_unload(sys, program);
    return rc;
}

void bw_host_object_unload(struct bw_sys *sys, struct bw_host_program *program)
{
    if (program->code.size_bytes)
        sys->ops->unmap(sys, &program->code);
    if (program->data.size_bytes)
        sys->ops->unmap(sys, &program->data);
    program->code = program->data = (struct bw_region){0};
}
