/* Relocations of code objects: LLVM AMDGPUUsage, "Relocation Records". S symbol, A addend, P place, B base, G
 * slot of the global offset table. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/amd/code_object.h"

static const char subsystem[] = "elf";

enum { R_AMDGPU_NONE = 0 };

/* How the value is made, then how much of it is stored where. */
enum form { ABSOLUTE, RELATIVE, BASE, SLOT };
enum part { LOW_32, HIGH_32, ALL_64, UNSIGNED_32, SIGNED_32, WORDS_16 };

struct relocation_type {
    const char *name;
    enum form form;
    enum part part;
};

static const struct relocation_type types[] = {
    [1] = {"R_AMDGPU_ABS32_LO", ABSOLUTE, LOW_32},   [2] = {"R_AMDGPU_ABS32_HI", ABSOLUTE, HIGH_32},
    [3] = {"R_AMDGPU_ABS64", ABSOLUTE, ALL_64},      [4] = {"R_AMDGPU_REL32", RELATIVE, SIGNED_32},
    [5] = {"R_AMDGPU_REL64", RELATIVE, ALL_64},      [6] = {"R_AMDGPU_ABS32", ABSOLUTE, UNSIGNED_32},
    [7] = {"R_AMDGPU_GOTPCREL", SLOT, SIGNED_32},    [8] = {"R_AMDGPU_GOTPCREL32_LO", SLOT, LOW_32},
    [9] = {"R_AMDGPU_GOTPCREL32_HI", SLOT, HIGH_32}, [10] = {"R_AMDGPU_REL32_LO", RELATIVE, LOW_32},
    [11] = {"R_AMDGPU_REL32_HI", RELATIVE, HIGH_32}, [13] = {"R_AMDGPU_RELATIVE64", BASE, ALL_64},
    [14] = {"R_AMDGPU_REL16", RELATIVE, WORDS_16},
};

static const uint8_t part_bytes[] = {
    [LOW_32] = 4, [HIGH_32] = 4, [ALL_64] = 8, [UNSIGNED_32] = 4, [SIGNED_32] = 4, [WORDS_16] = 2};

/* Whether section i holds relocations of loaded memory. */
static bool is_applied(const struct bw_amd_code_object *object, uint32_t i)
{
    const struct bw_amd_elf_section *section = &object->elf.sections[i];
    if (section->type != SHT_RELA)
        return false;
    if (object->elf.type == ET_DYN)
        return section->flags & SHF_ALLOC;
    return section->info < object->elf.section_count && object->section_offsets[section->info] != UINT64_MAX;
}

static int check_type(const struct bw_amd_elf_relocation *relocation, struct bw_err *err)
{
    if (relocation->type == R_AMDGPU_NONE ||
        (relocation->type < BW_COUNT_OF(types) && types[relocation->type].name))
        return 0;
    return bw_fail(err, -ENOTSUP, subsystem, "relocation at 0x%" PRIx64 ": type %u", relocation->file_offset,
                   relocation->type);
}

static int got_slot(struct bw_amd_code_object *object, uint32_t symbol, uint64_t *slot)
{
    for (*slot = 0; *slot < object->got_count; (*slot)++)
        if (object->got_symbols[*slot] == symbol)
            return 0;
    return -ENOENT;
}

static int count_slots(struct bw_amd_code_object *object, uint32_t index, struct bw_err *err)
{
    const struct bw_amd_elf_section *section = &object->elf.sections[index];
    if (section->link != object->symbol_table)
        return bw_fail(err, -EINVAL, subsystem, "section %u (%s) uses symbols of section %u, expected %u",
                       index, section->name, section->link, object->symbol_table);
    for (uint64_t i = 0; i < bw_amd_elf_entry_count(section); i++) {
        struct bw_amd_elf_relocation relocation;
        uint64_t slot;
        bw_amd_elf_relocation(&object->elf, section, i, &relocation);
        int rc = check_type(&relocation, err);
        if (rc)
            return rc;
        if (relocation.type == R_AMDGPU_NONE || types[relocation.type].form != SLOT ||
            got_slot(object, relocation.symbol, &slot) == 0)
            continue;
        if (object->got_count == BW_AMD_GOT_SLOTS_MAX)
            return bw_fail(err, -E2BIG, subsystem,
                           "relocation at 0x%" PRIx64 ": more than %u symbols through the offset table",
                           relocation.file_offset, BW_AMD_GOT_SLOTS_MAX);
        object->got_symbols[object->got_count++] = relocation.symbol;
    }
    return 0;
}

int bw_amd_relocations_prepare(struct bw_amd_code_object *object, struct bw_err *err)
{
    object->got_symbols = bw_arena_alloc(&object->arena, BW_AMD_GOT_SLOTS_MAX * sizeof *object->got_symbols);
    if (!object->got_symbols)
        return bw_fail(err, -ENOMEM, subsystem, "offset table");
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        int rc = is_applied(object, i) ? count_slots(object, i, err) : 0;
        if (rc)
            return rc;
    }
    object->got_offset = bw_align_up(object->image_bytes, sizeof(uint64_t));
    if (object->got_count)
        object->image_bytes = object->got_offset + object->got_count * sizeof(uint64_t);
    return 0;
}

static int store(uint8_t *place, const struct relocation_type *type, uint64_t value,
                 const struct bw_amd_elf_relocation *relocation, struct bw_err *err)
{
    int64_t value_signed = (int64_t)value;
    bool fits = true;
    switch (type->part) {
    case HIGH_32:
        value >>= 32;
        break;
    case UNSIGNED_32:
        fits = value <= UINT32_MAX;
        break;
    case SIGNED_32:
        fits = value_signed >= INT32_MIN && value_signed <= INT32_MAX;
        break;
    case WORDS_16: /* s_branch counts words after itself */
        fits = (value_signed - 4) % 4 == 0 && (value_signed - 4) / 4 >= INT16_MIN &&
               (value_signed - 4) / 4 <= INT16_MAX;
        value = (uint64_t)((value_signed - 4) / 4);
        break;
    default:
        break;
    }
    if (!fits)
        return bw_fail(err, -ERANGE, subsystem,
                       "relocation at 0x%" PRIx64 ": %s of 0x%" PRIx64 " does not fit",
                       relocation->file_offset, type->name, value);
    memcpy(place, &value, part_bytes[type->part]); /* little-endian host, as everywhere in this driver */
    return 0;
}

static int relocation_value(struct bw_amd_code_object *object, const struct bw_amd_elf_relocation *relocation,
                            uint64_t base, uint64_t place, uint64_t *value, struct bw_err *err)
{
    uint64_t addend = (uint64_t)relocation->addend, symbol = 0, slot;
    enum form form = types[relocation->type].form;
    if (form == ABSOLUTE || form == RELATIVE) {
        int rc = bw_amd_code_object_symbol_value(object, relocation->symbol, base, &symbol, err);
        if (rc)
            return rc;
    }
    switch (form) {
    case ABSOLUTE:
        *value = symbol + addend;
        return 0;
    case RELATIVE:
        *value = symbol + addend - place;
        return 0;
    case BASE:
        *value = base + addend;
        return 0;
    case SLOT:
        if (got_slot(object, relocation->symbol, &slot))
            break;
        *value = base + object->got_offset + slot * sizeof(uint64_t) + addend - place;
        return 0;
    }
    return bw_fail(err, -EINVAL, subsystem, "relocation at 0x%" PRIx64 ": no slot", relocation->file_offset);
}

static int apply_one(struct bw_amd_code_object *object, const struct bw_amd_elf_section *table,
                     const struct bw_amd_elf_relocation *relocation, uint64_t base, struct bw_err *err)
{
    const struct relocation_type *type = &types[relocation->type];
    bool relocatable = object->elf.type == ET_REL;
    uint64_t limit = relocatable ? object->elf.sections[table->info].size_bytes : object->image_bytes;
    uint64_t start = relocatable ? object->section_offsets[table->info] : 0;
    uint64_t bytes = part_bytes[type->part];
    if (bytes > limit || relocation->offset > limit - bytes)
        return bw_fail(err, -EINVAL, subsystem,
                       "relocation at 0x%" PRIx64 ": place 0x%" PRIx64 " is outside its 0x%" PRIx64 " bytes",
                       relocation->file_offset, relocation->offset, limit);
    uint64_t offset = start + relocation->offset, value = 0;
    int rc = relocation_value(object, relocation, base, base + offset, &value, err);
    return rc ? rc : store(object->image + offset, type, value, relocation, err);
}

int bw_amd_relocations_apply(struct bw_amd_code_object *object, uint64_t base, struct bw_err *err)
{
    for (uint64_t slot = 0; slot < object->got_count; slot++) {
        uint64_t value = 0;
        int rc = bw_amd_code_object_symbol_value(object, object->got_symbols[slot], base, &value, err);
        if (rc)
            return rc;
        memcpy(object->image + object->got_offset + slot * sizeof value, &value, sizeof value);
    }
    for (uint32_t i = 0; i < object->elf.section_count; i++) {
        const struct bw_amd_elf_section *table = &object->elf.sections[i];
        for (uint64_t k = 0; is_applied(object, i) && k < bw_amd_elf_entry_count(table); k++) {
            struct bw_amd_elf_relocation relocation;
            bw_amd_elf_relocation(&object->elf, table, k, &relocation);
            int rc = relocation.type == R_AMDGPU_NONE ? 0 : apply_one(object, table, &relocation, base, err);
            if (rc)
                return rc;
        }
    }
    return 0;
}
