/* Goal: an architecture is either in the table, with each property marked verified or not, or refused. */
#include "drivers/amd/arch.h"

#include "drivers/amd/packet.h"
#include "tests/check.h"

static void rows_are_found_by_every_key(void)
{
    uint32_t count;
    const struct bw_amd_arch *table = bw_amd_arch_table(&count);
    BW_EQ(count, 8);
    for (uint32_t i = 0; i < count; i++) {
        BW_TRUE(bw_amd_arch_find(table[i].name) == &table[i]);
        BW_TRUE(bw_amd_arch_by_version(table[i].gfx_version) == &table[i]);
        BW_TRUE(bw_amd_arch_by_elf_machine(table[i].elf_machine) == &table[i]);
        BW_TRUE((table[i].wave_sizes & table[i].wave_size) != 0);
        uint32_t generations = table[i].packets;
        BW_EQ(!(generations & BW_AMD_PM4_GCR) + !(generations & BW_AMD_PM4_COHER), 1);
        BW_EQ(!(generations & BW_AMD_SDMA_4) + !(generations & BW_AMD_SDMA_5), 1);
    }
}

static void unknown_ones_are_not(void)
{
    BW_TRUE(bw_amd_arch_find("gfx1103") == NULL);
    BW_TRUE(bw_amd_arch_find("gfx110") == NULL);
    BW_TRUE(bw_amd_arch_find("") == NULL);
    BW_TRUE(bw_amd_arch_find(NULL) == NULL);
    BW_TRUE(bw_amd_arch_by_version(110003) == NULL);
    BW_TRUE(bw_amd_arch_by_elf_machine(0) == NULL);
    char names[100];
    bw_amd_arch_names(names, sizeof names);
    BW_STR(names, "gfx90a, gfx942, gfx950, gfx1100, gfx1101, gfx1102, gfx1200, gfx1201");
    bw_amd_arch_names(names, 9);
    BW_STR(names, "gfx90a, ");
}

static void what_is_not_verified_says_so(void)
{
    const struct bw_amd_arch *arch = bw_amd_arch_find("gfx1100");
    for (unsigned p = 0; p < BW_AMD_PROPERTY_COUNT; p++)
        BW_TRUE(bw_amd_arch_is_verified(arch, p));
    BW_TRUE(!bw_amd_arch_is_verified(bw_amd_arch_find("gfx950"), BW_AMD_PROPERTY_lds_granule_bytes));
    BW_STR(bw_amd_property_name(BW_AMD_PROPERTY_lds_granule_bytes), "lds_granule_bytes");
}

BW_TEST_MAIN("amd arch", {"rows_are_found_by_every_key", rows_are_found_by_every_key},
             {"unknown_ones_are_not", unknown_ones_are_not},
             {"what_is_not_verified_says_so", what_is_not_verified_says_so})
