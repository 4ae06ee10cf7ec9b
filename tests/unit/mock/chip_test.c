/* The chip table: context save sizes worked out by hand from kfd_queue.c, and that the figures of a row fit
 * together. */
#include "mock/chip.h"
#include "tests/check.h"

static void save_sizes_are_the_kernels(void)
{
    static const struct {
        const char *arch;
        uint32_t cus, stack, save, debug;
        uint64_t total;
    } golden[] = {
        /* 96 CUs, 3072 waves: 12 bytes each and 48 more, in pages; 0x75000 bytes a CU */
        {"gfx1100", 96, 0xa000, 0xa000 + 0x2be0000, 0x18000, 0x2c02000},
        {"gfx1100", 2, 0x1000, 0x1000 + 0xea000, 0x800, 0xec000},
        {"gfx1101", 60, 0x6000, 0x6000 + 0x1b6c000, 0xf000, 0x1b81000},
        /* 0x55000 bytes a CU */
        {"gfx1102", 32, 0x4000, 0x4000 + 0xaa0000, 0x8000, 0xaac000},
        {"gfx1200", 32, 0x4000, 0x4000 + 0xea0000, 0x8000, 0xeac000},
        {"gfx1201", 64, 0x7000, 0x7000 + 0x1d40000, 0x10000, 0x1d57000},
        /* 38 CUs an XCC, 1520 waves: 8 bytes each and 48 more; 0x95000 bytes a CU, eight XCCs */
        {"gfx942", 304, 0x3000, 0x3000 + 0x161e000, 0xbe00, 0xb167000},
        /* 32 CUs an XCC, 1280 waves; 160 KiB of LDS: 0xad000 bytes a CU */
        {"gfx950", 256, 0x3000, 0x3000 + 0x15a0000, 0xa000, 0xad68000},
        {"gfx90a", 104, 0x9000, 0x9000 + 0x3c88000, 0x20000, 0x3cb1000},
    };
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct bw_mock_chip *chip = bw_mock_chip_find(golden[i].arch);
        if (!BW_TRUE(chip != NULL))
            continue;
        struct bw_mock_save_sizes sizes = bw_mock_chip_save_sizes(chip, golden[i].cus);
        BW_EQ(sizes.ctl_stack_bytes, golden[i].stack);
        BW_EQ(sizes.save_bytes, golden[i].save);
        BW_EQ(sizes.debug_bytes, golden[i].debug);
        BW_EQ(sizes.total_bytes, golden[i].total);
    }
}

static void rows_fit_together(void)
{
    size_t count = 0;
    for (const struct bw_mock_chip *chip; (chip = bw_mock_chip_at(count)); count++) {
        uint32_t arrays = chip->shader_engines * chip->arrays_per_engine, xccs = chip->xcc_count;
        BW_TRUE(chip->cu_count <= arrays * chip->cu_per_array);
        BW_TRUE(chip->cu_count % xccs == 0 && chip->shader_engines % xccs == 0);
        char arch[16];
        uint32_t target = chip->target_version;
        snprintf(arch, sizeof arch, "gfx%u%x%x", target / 10000, target / 100 % 100, target % 100);
        BW_STR(chip->arch, arch);
        BW_EQ(chip->wave_size, target >= 100100 ? 32 : 64);
        BW_EQ(chip->simd_per_cu, target >= 100100 ? 2 : 4);
        /* The registers of a CU fill their part of the save area: the rest is LDS, 16 KiB for SGPRs and 4 KiB
         * for hardware registers (kfd_queue.c). */
        struct bw_mock_save_sizes save = bw_mock_chip_save_sizes(chip, chip->cu_count);
        uint32_t of_cu = (save.save_bytes - save.ctl_stack_bytes) / (chip->cu_count / xccs);
        BW_EQ(chip->wave64_vgprs * 64 * 4 * chip->simd_per_cu, of_cu - (chip->lds_kib << 10) - 0x5000);
        BW_EQ(chip->wave64_vgprs % chip->wave64_vgpr_granule, 0);
        BW_TRUE(chip->gc.major == target / 10000);
        BW_TRUE(bw_mock_chip_find(chip->arch) == chip);
    }
    BW_EQ(count, 8);
    BW_TRUE(bw_mock_chip_find("gfx9999") == NULL);
}

BW_TEST_MAIN("mock.chip", {"save sizes are the kernel's", save_sizes_are_the_kernels},
             {"rows fit together", rows_fit_together})
