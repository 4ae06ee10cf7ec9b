/* Goal: the buffer sizes that CREATE_QUEUE demands, worked out by hand from the formulas of the kernel's
 * kfd_queue.c for boards that exist. */
#include <bellwire/err.h>

#include <errno.h>

#include "base/bits.h"
#include "iface/kfd_topology.h"
#include "tests/check.h"

static void golden_sizes_per_chip(void)
{
    static const struct {
        const char *name;
        struct bw_kfd_node node;
        struct bw_kfd_queue_sizes sizes;
    } cases[] = {
        /* 96 CUs, 3072 waves; wave data 96 * 0x75000; stack 3072 * 12 + 48 -> 0xa000; debug 3072 * 32 */
        {"gfx1100, RX 7900 XTX",
         {.gfx_version = 110000,
          .simd_count = 192,
          .simd_per_cu = 2,
          .array_count = 12,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0xa000, 46047232, 98304, 46145536}},
        /* 60 CUs, 1920 waves; 60 * 0x75000; 1920 * 12 + 48 -> 0x6000 */
        {"gfx1101, RX 7800 XT",
         {.gfx_version = 110001,
          .simd_count = 120,
          .simd_per_cu = 2,
          .array_count = 6,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x6000, 28778496, 61440, 28839936}},
        /* 32 CUs with small register files: 32 * 0x55000; 1024 * 12 + 48 -> 0x4000 */
        {"gfx1102, RX 7600",
         {.gfx_version = 110002,
          .simd_count = 64,
          .simd_per_cu = 2,
          .array_count = 4,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x4000, 11157504, 32768, 11190272}},
        /* 32 CUs: 32 * 0x75000; 1024 * 12 + 48 -> 0x4000 */
        {"gfx1200, RX 9060 XT",
         {.gfx_version = 120000,
          .simd_count = 64,
          .simd_per_cu = 2,
          .array_count = 4,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x4000, 15351808, 32768, 15384576}},
        /* 64 CUs: 64 * 0x75000; 2048 * 12 + 48 -> 0x7000 */
        {"gfx1201, RX 9070 XT",
         {.gfx_version = 120001,
          .simd_count = 128,
          .simd_per_cu = 2,
          .array_count = 8,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x7000, 30699520, 65536, 30765056}},
        /* 8 XCCs of 38 CUs, 1520 waves each; 38 * 0x95000; 1520 * 8 + 48 -> 0x3000; 8 * (save + 48640) */
        {"gfx942, MI300X",
         {.gfx_version = 90402,
          .simd_count = 1216,
          .simd_per_cu = 4,
          .array_count = 32,
          .arrays_per_engine = 1,
          .lds_kib = 64,
          .xcc_count = 8},
         {4096, 0x3000, 23203840, 48640, 186019840}},
        /* 8 XCCs of 32 CUs with 160 KiB of LDS: 32 * 0xad000; 1280 * 8 + 48 -> 0x3000 */
        {"gfx950, MI355X",
         {.gfx_version = 90500,
          .simd_count = 1024,
          .simd_per_cu = 4,
          .array_count = 32,
          .arrays_per_engine = 1,
          .lds_kib = 160,
          .xcc_count = 8},
         {4096, 0x3000, 22687744, 40960, 181829632}},
        /* One die of 110 CUs; 8 engines * 512 waves bind, not 110 * 40; 110 * 0x95000; 4096 * 8 + 48 ->
           0x9000 */
        {"gfx90a, MI250X",
         {.gfx_version = 90010,
          .simd_count = 440,
          .simd_per_cu = 4,
          .array_count = 8,
          .arrays_per_engine = 1,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x9000, 67170304, 131072, 67301376}},
        /* gfx10: the control stack is cut at 0x7000 */
        {"gfx1030, RX 6900 XT",
         {.gfx_version = 100300,
          .simd_count = 160,
          .simd_per_cu = 2,
          .array_count = 8,
          .arrays_per_engine = 2,
          .lds_kib = 64,
          .xcc_count = 1},
         {4096, 0x7000, 0x7000 + 80 * 0x55000, 81920, 0x7000 + 80 * 0x55000 + 81920}},
        /* A kernel that says the sizes itself is believed. */
        {"unknown gfx11, sizes from sysfs",
         {.gfx_version = 110900,
          .simd_count = 4,
          .simd_per_cu = 2,
          .array_count = 1,
          .arrays_per_engine = 1,
          .lds_kib = 64,
          .xcc_count = 1,
          .save_bytes = 0x123000,
          .control_stack_bytes = 0x5000},
         {4096, 0x5000, 0x123000, 2048, 0x124000}},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_kfd_queue_sizes sizes = {0};
        struct bw_err err;
        const struct bw_kfd_queue_sizes *expected = &cases[i].sizes;
        bool ok = BW_OK(bw_kfd_queue_sizes(&cases[i].node, &sizes, &err), &err);
        ok &= BW_EQ(sizes.eop_bytes, expected->eop_bytes);
        ok &= BW_EQ(sizes.control_stack_bytes, expected->control_stack_bytes);
        ok &= BW_EQ(sizes.save_bytes, expected->save_bytes);
        ok &= BW_EQ(sizes.debug_bytes, expected->debug_bytes);
        ok &= BW_EQ(sizes.area_bytes, expected->area_bytes);
        if (!ok)
            printf("      %s\n", cases[i].name);
    }
}

static void what_cannot_be_sized_is_refused(void)
{
    struct bw_kfd_node node = {.gfx_version = 80003,
                               .simd_count = 144,
                               .simd_per_cu = 4,
                               .array_count = 4,
                               .arrays_per_engine = 1,
                               .lds_kib = 64,
                               .xcc_count = 1};
    struct bw_kfd_queue_sizes sizes;
    struct bw_err err;
    BW_EQ(bw_kfd_queue_sizes(&node, &sizes, &err), -ENOTSUP);
    node.gfx_version = 110000;
    node.simd_count = 3;
    BW_EQ(bw_kfd_queue_sizes(&node, &sizes, &err), -ENOTSUP);
    node.simd_count = UINT32_MAX;
    BW_EQ(bw_kfd_queue_sizes(&node, &sizes, &err), -ENOTSUP);
}

static void properties_files_are_parsed_strictly(void)
{
    static const char text[] =
        "cpu_cores_count 0\nsimd_count 192\nbig 18446744073709551615\nbad x\nneg -1\nlast 7";
    uint64_t value = 0;
    BW_EQ(bw_kfd_property(text, "simd_count", &value), 0);
    BW_EQ(value, 192);
    BW_EQ(bw_kfd_property(text, "big", &value), 0);
    BW_EQ(value, UINT64_MAX);
    BW_EQ(bw_kfd_property(text, "last", &value), 0);
    BW_EQ(value, 7);
    BW_EQ(bw_kfd_property(text, "simd", &value), -ENOENT);
    BW_EQ(bw_kfd_property(text, "count", &value), -ENOENT);
    BW_EQ(bw_kfd_property(text, "bad", &value), -EPROTO);
    BW_EQ(bw_kfd_property(text, "neg", &value), -EPROTO);
    BW_EQ(bw_kfd_property("", "x", &value), -ENOENT);
}

static void marketing_names(void)
{
    static const char ids[] =
        "# List\n# device_id,\trevision_id,\tproduct_name\n\n1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n"
        "744C,\tCC,\tAMD Radeon RX 7900 XT\n74A1,\t00,\tAMD Instinct MI300X OAM \nbroken,\n7480,\tC0,\n"
        "7480,\tCF,\tAMD Radeon RX 7600";
    char name[64] = "";
    BW_TRUE(bw_amdgpu_ids_find(ids, 0x744c, 0xcc, name, sizeof name));
    BW_STR(name, "AMD Radeon RX 7900 XT");
    BW_TRUE(bw_amdgpu_ids_find(ids, 0x74a1, 0, name, sizeof name));
    BW_STR(name, "AMD Instinct MI300X OAM");
    BW_TRUE(bw_amdgpu_ids_find(ids, 0x7480, 0xcf, name, sizeof name));
    BW_STR(name, "AMD Radeon RX 7600");
    BW_TRUE(bw_amdgpu_ids_find(ids, 0x7480, 0xcf, name, 8));
    BW_STR(name, "AMD Rad");
    BW_TRUE(!bw_amdgpu_ids_find(ids, 0x744c, 0xc9, name, sizeof name));
    BW_TRUE(!bw_amdgpu_ids_find(ids, 0x7480, 0xc0, name, sizeof name));
    BW_TRUE(!bw_amdgpu_ids_find("", 1, 0, name, sizeof name));
}

BW_TEST_MAIN("iface.kfd_sizes", {"golden sizes per chip", golden_sizes_per_chip},
             {"what cannot be sized is refused", what_cannot_be_sized_is_refused},
             {"properties files are parsed strictly", properties_files_are_parsed_strictly},
             {"marketing names", marketing_names})
