/* Code objects: see code_object.h. */
#include "drivers/amd/code_object.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bits.h"

/* LLVM BinaryFormat/ELF.h, EF_AMDGPU_*_V4 */
enum { DESCRIPTOR_BYTES = 64, FLAG_XNACK = 0x300, FLAG_XNACK_ON = 0x300 };
static const char subsystem[] = "elf";
static const char descriptor_suffix[] = ".kd";
static const uint64_t not_placed = UINT64_MAX;

static int check_architecture(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint32_t flags = object->elf.flags;
    const struct bw_amd_arch *built_for = bw_amd_arch_by_elf_machine(flags & BW_AMD_ELF_FLAGS_MACHINE);
    if (built_for != object->arch) {
        bw_fail(err, -ENOTSUP, subsystem, "code object is for another architecture (e_flags 0x%x)", flags);
        bw_err_expected(err, "%s", object->arch->name);
        bw_err_observed(err, "%s", built_for ? built_for->name : "an unknown machine");
        return -ENOTSUP;
    }
    if ((flags & FLAG_XNACK) == FLAG_XNACK_ON)
        return bw_fail(err, -ENOTSUP, subsystem,
                       "code object needs XNACK (retry on page faults), which queues do not enable");
    return 0;
}

static int check_image_size(uint64_t end, const char *what, struct bw_err *err)
{
    if (end <= BW_AMD_IMAGE_BYTES_MAX)
        return 0;
    bw_fail(err, -E2BIG, subsystem, "image ends at 0x%" PRIx64 " with %s", end, what);
    bw_err_expected(err, "at most 0x%x bytes (BW_AMD_IMAGE_BYTES_MAX)", BW_AMD_IMAGE_BYTES_MAX);
    return -E2BIG;
}

static int check_placeable(const struct bw_amd_elf_section *section, uint32_t index, struct bw_err *err)
{
    if (section->flags & (SHF_TLS | SHF_COMPRESSED))
        return bw_fail(err, -ENOTSUP, subsystem, "section %u (%s): %s", index, section->name,
                       section->flags & SHF_TLS ? "thread-local data" : "compressed");
    switch (section->type) {
    case SHT_PROGBITS:
    case SHT_NOBITS:
    case SHT_NOTE:
    case SHT_INIT_ARRAY:
    case SHT_FINI_ARRAY:
    case SHT_PREINIT_ARRAY:
        break;
    default:
        return bw_fail(err, -ENOTSUP, subsystem, "section %u (%s): loaded section of type 0x%x", index,
                       section->name, section->type);
    }
    if (section->alignment > BW_AMD_IMAGE_ALIGNMENT_MAX)
        return bw_fail(err, -E2BIG, subsystem, "section %u (%s): alignment 0x%" PRIx64 ", at most %u is kept",
                       index, section->name, section->alignment, BW_AMD_IMAGE_ALIGNMENT_MAX);
    return 0;
}

/* Relocatable: loaded sections one after the other, in file order, each at its alignment. */
static int place_sections(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        const struct bw_amd_elf_section *section = &object->elf.sections[i];
        if (!(section->flags & SHF_ALLOC))
            continue;
        int rc = check_placeable(section, i, err);
        if (rc)
            return rc;
        uint64_t alignment = section->alignment ? section->alignment : 1;
        if (section->flags & SHF_EXECINSTR && alignment < BW_AMD_CODE_ALIGNMENT)
            alignment = BW_AMD_CODE_ALIGNMENT;
        end = bw_align_up(end, alignment);
        /* end <= IMAGE_BYTES_MAX + alignment, so the sum wraps only for sizes that are refused here. */
        rc = check_image_size(section->size_bytes > BW_AMD_IMAGE_BYTES_MAX ? section->size_bytes
                                                                           : end + section->size_bytes,
                              section->name, err);
        if (rc)
            return rc;
        object->section_offsets[i] = end;
        end += section->size_bytes;
    }
    object->image_bytes = end;
    return 0;
}

/* Linked: segments at their addresses, which start at 0 for a shared object. */
static int place_segments(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < object->elf.segment_count; i++) {
        const struct bw_amd_elf_segment *segment = &object->elf.segments[i];
        if (segment->alignment > BW_AMD_IMAGE_ALIGNMENT_MAX)
            return bw_fail(err, -E2BIG, subsystem, "segment %u: alignment 0x%" PRIx64 ", at most %u is kept",
                           i, segment->alignment, BW_AMD_IMAGE_ALIGNMENT_MAX);
        bool wraps =
            segment->address > BW_AMD_IMAGE_BYTES_MAX || segment->memory_bytes > BW_AMD_IMAGE_BYTES_MAX;
        int rc =
            check_image_size(wraps ? UINT64_MAX : segment->address + segment->memory_bytes, "a segment", err);
        if (rc)
            return rc;
        if (segment->address + segment->memory_bytes > end)
            end = segment->address + segment->memory_bytes;
    }
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        const struct bw_amd_elf_section *section = &object->elf.sections[i];
        if (section->flags & SHF_ALLOC && section->address <= end &&
            section->size_bytes <= end - section->address)
            object->section_offsets[i] = section->address;
    }
    object->image_bytes = end;
    return 0;
}

static int find_symbol_table(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint32_t wanted = object->elf.type == ET_REL ? SHT_SYMTAB : SHT_DYNSYM;
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        if (object->elf.sections[i].type == wanted) {
            object->symbol_table = i;
            return 0;
        }
    }
    return bw_fail(err, -EINVAL, subsystem, "no symbol table");
}

/* Where the symbol lies in the image. *absolute: it is a number instead. */
static int symbol_offset(const struct bw_amd_code_object *object, const struct bw_amd_elf_symbol *symbol,
                         uint64_t *offset, bool *absolute, struct bw_err *err)
{
    *absolute = false;
    *offset = symbol->value;
    switch (symbol->section) {
    case SHN_UNDEF:
        if (symbol->binding != STB_WEAK) {
            bw_fail(err, -EINVAL, subsystem, "undefined symbol %s", symbol->name);
            bw_err_hint(err, "link the object with what defines it; a language's own functions (OpenCL's "
                             "get_global_id) are in its device library");
            return -EINVAL;
        }
        *absolute = true;
        *offset = 0;
        return 0;
    case SHN_ABS:
        *absolute = true;
        return 0;
    default:
        break;
    }
    if (symbol->section >= SHN_LORESERVE)
        return bw_fail(err, -ENOTSUP, subsystem, "symbol %s lies in special section 0x%x (common or LDS)",
                       symbol->name, symbol->section);
    uint64_t base = object->section_offsets[symbol->section];
    const struct bw_amd_elf_section *section = &object->elf.sections[symbol->section];
    if (base == not_placed)
        return bw_fail(err, -EINVAL, subsystem, "symbol %s lies in section %s, which is not loaded",
                       symbol->name, section->name);
    uint64_t inside = object->elf.type == ET_REL ? symbol->value : symbol->value - section->address;
    if (inside > section->size_bytes)
        return bw_fail(err, -EINVAL, subsystem, "symbol %s at 0x%" PRIx64 " is outside section %s",
                       symbol->name, symbol->value, section->name);
    *offset = base + inside;
    return 0;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t length = strlen(text), cut = strlen(suffix);
    return length > cut && strcmp(text + length - cut, suffix) == 0;
}

/* Without metadata (hand-written assembly) every NAME.kd is a kernel whose arguments are not known. */
static int kernels_from_symbols(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint64_t count = bw_amd_elf_entry_count(&object->elf.sections[object->symbol_table]), kernels = 0;
    struct bw_amd_elf_symbol symbol;
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 1; i < count; i++) {
            int rc = bw_amd_elf_symbol(&object->elf, object->symbol_table, i, &symbol, err);
            if (rc)
                return rc;
            if (!has_suffix(symbol.name, descriptor_suffix))
                continue;
            if (pass == 0) {
                kernels++;
                continue;
            }
            struct bw_amd_code_kernel *kernel = &object->kernels[object->kernel_count++];
            char *name = bw_arena_string(&object->arena, symbol.name);
            char *descriptor = bw_arena_string(&object->arena, symbol.name);
            if (!name || !descriptor)
                return bw_fail(err, -ENOMEM, subsystem, "kernel names");
            name[strlen(name) - strlen(descriptor_suffix)] = 0;
            *kernel =
                (struct bw_amd_code_kernel){.name = name, .symbol = descriptor, .argument_alignment = 8};
        }
        if (pass == 0 && kernels > BW_AMD_KERNELS_MAX)
            return bw_fail(err, -E2BIG, subsystem, "%" PRIu64 " kernels, at most %u", kernels,
                           BW_AMD_KERNELS_MAX);
        if (pass == 0 &&
            !(object->kernels = bw_arena_alloc(&object->arena, kernels * sizeof *object->kernels)))
            return bw_fail(err, -ENOMEM, subsystem, "%" PRIu64 " kernels", kernels);
    }
    return 0;
}

static uint64_t name_key(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

/* Name to index of every descriptor symbol, so that many kernels do not search many symbols. */
static int index_descriptors(struct bw_amd_code_object *object, struct bw_err *err)
{
    uint64_t count = bw_amd_elf_entry_count(&object->elf.sections[object->symbol_table]);
    for (uint64_t i = 1; i < count; i++) {
        struct bw_amd_elf_symbol symbol;
        int rc = bw_amd_elf_symbol(&object->elf, object->symbol_table, i, &symbol, err);
        if (rc)
            return rc;
        if (has_suffix(symbol.name, descriptor_suffix) &&
            bw_map_set(&object->descriptors, name_key(symbol.name), i))
            return bw_fail(err, -ENOMEM, subsystem, "descriptor index");
    }
    return 0;
}

static int check_relocation_sections(const struct bw_amd_code_object *object, struct bw_err *err)
{
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        const struct bw_amd_elf_section *section = &object->elf.sections[i];
        if (section->type == SHT_REL && section->size_bytes)
            return bw_fail(err, -ENOTSUP, subsystem,
                           "section %u (%s): relocations without addends, which amdhsa does not use", i,
                           section->name);
        if (section->type == SHT_SYMTAB_SHNDX)
            return bw_fail(err, -ENOTSUP, subsystem, "section %u (%s): extended section numbers", i,
                           section->name);
    }
    return 0;
}

int bw_amd_code_object_parse(struct bw_amd_code_object *object, const struct bw_amd_arch *arch,
                             const void *file, uint64_t file_bytes, struct bw_err *err)
{
    memset(object, 0, sizeof *object);
    object->arch = arch;
    int rc = bw_amd_elf_open(&object->elf, &object->arena, file, file_bytes, err);
    rc = rc ? rc : check_architecture(object, err);
    rc = rc ? rc : check_relocation_sections(object, err);
    if (rc)
        return rc;
    object->section_offsets = bw_arena_alloc(&object->arena, object->elf.section_count * sizeof(uint64_t));
    if (!object->section_offsets)
        return bw_fail(err, -ENOMEM, subsystem, "%u sections", object->elf.section_count);
    for (uint32_t i = 0; i < object->elf.section_count; i++)
        object->section_offsets[i] = not_placed;
    rc = object->elf.type == ET_REL ? place_sections(object, err) : place_segments(object, err);
    rc = rc ? rc : find_symbol_table(object, err);
    rc = rc ? rc : bw_amd_relocations_prepare(object, err);
    rc = rc ? rc : bw_amd_metadata_read(object, err);
    if (!rc && !object->kernel_count)
        rc = kernels_from_symbols(object, err);
    rc = rc ? rc : index_descriptors(object, err);
    if (!rc && object->image_bytes == 0)
        rc = bw_fail(err, -EINVAL, subsystem, "nothing to load");
    return rc;
}

/* Copies what the file has; the rest of the image stays zero. */
static void fill_image(struct bw_amd_code_object *object)
{
    memset(object->image, 0, object->image_bytes);
    for (uint32_t i = 0; object->elf.type == ET_REL && i < object->elf.section_count; i++) {
        const uint8_t *content = bw_amd_elf_content(&object->elf, &object->elf.sections[i]);
        if (object->section_offsets[i] != not_placed && content)
            memcpy(object->image + object->section_offsets[i], content, object->elf.sections[i].size_bytes);
    }
    for (uint32_t i = 0; object->elf.type == ET_DYN && i < object->elf.segment_count; i++) {
        const struct bw_amd_elf_segment *segment = &object->elf.segments[i];
        memcpy(object->image + segment->address, object->elf.file + segment->offset, segment->file_bytes);
    }
}

/* Whether machine code may start there. */
static bool is_code(const struct bw_amd_code_object *object, uint64_t offset)
{
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        const struct bw_amd_elf_section *section = &object->elf.sections[i];
        uint64_t start = object->section_offsets[i];
        if (section->flags & SHF_EXECINSTR && start != not_placed && offset >= start &&
            offset - start < section->size_bytes)
            return true;
    }
    return false;
}

static int find_descriptor(struct bw_amd_code_object *object, struct bw_amd_code_kernel *kernel,
                           struct bw_err *err)
{
    uint64_t index;
    struct bw_amd_elf_symbol symbol;
    bool absolute;
    if (!bw_map_get(&object->descriptors, name_key(kernel->symbol), &index))
        return bw_fail(err, -EINVAL, subsystem, "kernel %s: no symbol %s", kernel->name, kernel->symbol);
    int rc = bw_amd_elf_symbol(&object->elf, object->symbol_table, index, &symbol, err);
    if (rc)
        return rc;
    if (strcmp(symbol.name, kernel->symbol) != 0) /* two names of one hash: only a forged file has them */
        return bw_fail(err, -EINVAL, subsystem, "kernel %s: no symbol %s", kernel->name, kernel->symbol);
    rc = symbol_offset(object, &symbol, &kernel->descriptor_offset, &absolute, err);
    if (rc)
        return rc;
    if (absolute || kernel->descriptor_offset % DESCRIPTOR_BYTES || object->image_bytes < DESCRIPTOR_BYTES ||
        kernel->descriptor_offset > object->image_bytes - DESCRIPTOR_BYTES)
        return bw_fail(err, -EINVAL, subsystem,
                       "descriptor %s at image offset 0x%" PRIx64 ": not 64 aligned bytes in the image",
                       kernel->symbol, kernel->descriptor_offset);
    return 0;
}

static int check_against_metadata(struct bw_amd_code_kernel *kernel, struct bw_err *err)
{
    uint32_t wave_size = kernel->descriptor.properties & BW_AMD_KERNEL_WAVEFRONT_SIZE32 ? 32 : 64;
    if (!kernel->has_metadata) {
        kernel->wave_size = wave_size;
        kernel->metadata_argument_bytes = kernel->descriptor.argument_bytes;
        return 0;
    }
    if (kernel->wave_size != wave_size)
        return bw_fail(err, -EINVAL, subsystem, "kernel %s: metadata says waves of %u, the descriptor %u",
                       kernel->name, kernel->wave_size, wave_size);
    if (kernel->metadata_argument_bytes > kernel->descriptor.argument_bytes)
        return bw_fail(err, -EINVAL, subsystem,
                       "kernel %s: metadata says %u bytes of arguments, the descriptor %u", kernel->name,
                       kernel->metadata_argument_bytes, kernel->descriptor.argument_bytes);
    return 0;
}

static int link_kernel(struct bw_amd_code_object *object, struct bw_amd_code_kernel *kernel,
                       struct bw_err *err)
{
    int rc = find_descriptor(object, kernel, err);
    rc = rc ? rc
            : bw_amd_descriptor_read(object->arch, kernel->name, object->image + kernel->descriptor_offset,
                                     &kernel->descriptor, err);
    if (rc)
        return rc;
    /* Both terms are below 2^63, so unsigned arithmetic gives the right entry or one outside of all code. */
    kernel->entry_offset = kernel->descriptor_offset + (uint64_t)kernel->descriptor.entry_offset;
    if (kernel->entry_offset % BW_AMD_CODE_ALIGNMENT || !is_code(object, kernel->entry_offset))
        return bw_fail(err, -EINVAL, subsystem,
                       "kernel %s: entry at image offset 0x%" PRIx64 " is not aligned code", kernel->name,
                       kernel->entry_offset);
    return check_against_metadata(kernel, err);
}

int bw_amd_code_object_link(struct bw_amd_code_object *object, uint64_t base, struct bw_err *err)
{
    assert(base % BW_AMD_IMAGE_ALIGNMENT_MAX == 0);
    if (!object->image && !(object->image = malloc(object->image_bytes)))
        return bw_fail(err, -ENOMEM, subsystem, "image of %" PRIu64 " bytes", object->image_bytes);
    fill_image(object);
    int rc = bw_amd_relocations_apply(object, base, err);
    for (uint32_t i = 0; !rc && i < object->kernel_count; i++)
        rc = link_kernel(object, &object->kernels[i], err);
    return rc;
}

int bw_amd_code_object_symbol_value(const struct bw_amd_code_object *object, uint64_t index, uint64_t base,
                                    uint64_t *value, struct bw_err *err)
{
    struct bw_amd_elf_symbol symbol;
    bool absolute;
    int rc = bw_amd_elf_symbol(&object->elf, object->symbol_table, index, &symbol, err);
    rc = rc ? rc : symbol_offset(object, &symbol, value, &absolute, err);
    if (!rc && !absolute)
        *value += base;
    return rc;
}

void bw_amd_code_object_free(struct bw_amd_code_object *object)
{
    free(object->image);
    bw_map_free(&object->descriptors);
    bw_arena_free(&object->arena);
    memset(object, 0, sizeof *object);
}
