/* Register names: see regs.h. */
#include "drivers/amd/regs.h"

#include <string.h>

#include "base/bits.h"
#include "base/text.h"

struct reg_row {
    const char *name;
    uint32_t generations, address;
};
#define ROW(name, generations, address) {#name, generations, address},
static const struct reg_row rows[] = {BW_AMD_REGS(ROW)};

struct field_row {
    uint32_t address;
    const char *name;
    uint32_t bits;
};
#define FIELD(reg, field, low, high) {BW_AMD_##reg, #field, BW_AMD_BITS(0, low, high)},
static const struct field_row fields[] = {BW_AMD_REG_FIELDS(FIELD)};

static const struct reg_row *reg_find(uint32_t generation, uint32_t address)
{
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++)
        if (rows[i].address == address && (rows[i].generations & generation))
            return &rows[i];
    return NULL;
}

static size_t name_length(const struct reg_row *row)
{
    static const char suffix[] = "_GFX9";
    size_t length = strlen(row->name), cut = sizeof suffix - 1;
    return length > cut && strcmp(row->name + length - cut, suffix) == 0 ? length - cut : length;
}

const char *bw_amd_reg_name(uint32_t generation, uint32_t address)
{
    const struct reg_row *row = reg_find(generation, address);
    return row ? row->name : NULL;
}

uint32_t bw_amd_reg_reserved(uint32_t generation, uint32_t address)
{
    uint32_t known = 0;
    if (generation != BW_AMD_PM4_GCR)
        return 0;
    for (size_t i = 0; i < BW_COUNT_OF(fields); i++)
        if (fields[i].address == address)
            known |= bw_amd_bits_max(fields[i].bits) << bw_amd_bits_low(fields[i].bits);
    return known ? ~known : 0;
}

void bw_amd_reg_print(uint32_t generation, uint32_t address, uint32_t value, struct bw_text *text)
{
    const struct reg_row *row = reg_find(generation, address);
    if (!row) {
        bw_text_add(text, "0x%04x = 0x%08x", address, value);
        return;
    }
    bw_text_add(text, "%.*s = 0x%08x", (int)name_length(row), row->name, value);
    /* RSRC3's fields differ where its place does; other registers share fields, so the address is enough. */
    for (size_t i = 0; i < BW_COUNT_OF(fields); i++) {
        uint32_t field = bw_amd_bits_unpack(fields[i].bits, value);
        if (fields[i].address == address && field)
            bw_text_add(text, " %s %u", fields[i].name, field);
    }
}
