/* Goal: discovery tables of every version are read as they are written, what was fused off is not found, and
 * a table that is cut, damaged or none is refused by the field that is wrong. */
#include "drivers/amd/discovery.h"

#include <glob.h>

#include <bellwire/err.h>

#include "tests/check.h"
#include "tests/seed.h"

enum { TABLE_BYTES = 4096, IP_AT = 64, GC_AT = 3000, HARVEST_AT = 3200, DIE_AT = 200, DIE_BYTES_MAX = 1000 };

/* A table in the making. */
struct draft {
    uint8_t bytes[TABLE_BYTES];
    uint32_t binary_version, ip_version, die_count;
    bool wide;
};

static void put(struct draft *draft, uint32_t at, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        draft->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static uint16_t sum(const struct draft *draft, uint32_t at, uint32_t bytes)
{
    uint32_t total = 0;
    while (bytes--)
        total += draft->bytes[at++];
    return (uint16_t)total;
}

/* One block: {hw id, instance, versions}, base i is 0x1000 * hw id + i, with a high word where they are wide.
 */
static uint32_t put_ip(struct draft *draft, uint32_t at, uint32_t hw_id, uint32_t instance, uint32_t bases,
                       uint32_t last_byte)
{
    put(draft, at, hw_id, 2);
    put(draft, at + 2, instance, 1);
    put(draft, at + 3, bases, 1);
    put(draft, at + 4, 11, 1);
    put(draft, at + 5, hw_id % 7, 1);
    put(draft, at + 6, 3, 1);
    put(draft, at + 7, last_byte, 1);
    at += 8;
    for (uint32_t i = 0; i < bases; i++, at += draft->wide ? 8 : 4)
        put(draft, at, 0x1000 * hw_id + i + (draft->wide ? (uint64_t)0xab << 32 : 0), draft->wide ? 8 : 4);
    return at;
}

static void put_die(struct draft *draft, uint32_t die)
{
    uint32_t start = DIE_AT + die * DIE_BYTES_MAX, at = start + 4;
    put(draft, IP_AT + 14 + die * 4, die, 2);
    put(draft, IP_AT + 16 + die * 4, start, 2);
    put(draft, start, die, 2);
    put(draft, start + 2, 5, 2);
    at = put_ip(draft, at, BW_AMD_HW_GC, die, 5, 0);
    at = put_ip(draft, at, BW_AMD_HW_MMHUB, die, 2, 0);
    at = put_ip(draft, at, BW_AMD_HW_SDMA0, die * 2, 1, 0);
    at = put_ip(draft, at, BW_AMD_HW_SDMA0, die * 2 + 1, 1, draft->ip_version <= 2 ? 1 : 0x21);
    (void)put_ip(draft, at, 0x99, die, 12, 0); /* more bases than anybody keeps */
}

static void put_row(struct draft *draft, uint32_t table, uint32_t at, uint32_t bytes)
{
    uint32_t row = (draft->binary_version >= 2 ? 16 : 12) + table * 8;
    put(draft, row, at, 2);
    put(draft, row + 2, sum(draft, at, bytes), 2);
    put(draft, row + 4, bytes, 2);
}

static void put_sum(struct draft *draft)
{
    put(draft, 8, sum(draft, 10, TABLE_BYTES - 10), 2);
}

static void put_core(struct draft *draft, uint32_t major)
{
    put(draft, GC_AT, 0x4347, 4);
    put(draft, GC_AT + 4, major, 2);
    put(draft, GC_AT + 8, 88, 4);
    put(draft, GC_AT + 12, 6, 4);
    put(draft, GC_AT + 16, major == 1 ? 3 : 10, 4);
    put(draft, GC_AT + 20, major == 1 ? 1 : 2, 4);
    put(draft, GC_AT + 56, 32, 4);
    put(draft, GC_AT + 60, 16, 4);
    put(draft, GC_AT + 64, 32, 4);
    put(draft, GC_AT + 68, 64, 4);
    put(draft, GC_AT + 76, major == 1 ? 2 : 99, 4);
    put_row(draft, 1, GC_AT, 88);
}

static void put_harvest(struct draft *draft, uint32_t hw_id, uint32_t instance)
{
    put(draft, HARVEST_AT, 0x56524148, 4);
    put(draft, HARVEST_AT + 8, hw_id, 2);
    put(draft, HARVEST_AT + 10, instance, 1);
    put_row(draft, 2, HARVEST_AT, 136);
}

static void draft_make(struct draft *draft, uint32_t binary_version, uint32_t ip_version, uint32_t dies)
{
    *draft = (struct draft){.binary_version = binary_version, .ip_version = ip_version, .die_count = dies};
    draft->wide = ip_version == 4;
    put(draft, 0, 0x28211407, 4);
    put(draft, 4, binary_version, 2);
    put(draft, 10, TABLE_BYTES, 2);
    if (binary_version >= 2)
        put(draft, 12, 3, 2);
    put(draft, IP_AT, 0x53445049, 4);
    put(draft, IP_AT + 4, ip_version, 2);
    put(draft, IP_AT + 6, 2900 - IP_AT, 2);
    put(draft, IP_AT + 12, dies, 2);
    put(draft, IP_AT + 78, draft->wide, 1);
    for (uint32_t i = 0; i < dies; i++)
        put_die(draft, i);
    put_row(draft, 0, IP_AT, 2900 - IP_AT);
    put_core(draft, 1);
    put_sum(draft);
}

static int parse(const struct draft *draft, struct bw_amd_discovery *discovery, struct bw_err *err)
{
    return bw_amd_discovery_parse(draft->bytes, TABLE_BYTES, discovery, err);
}

static void tables_of_every_version(void)
{
    for (uint32_t version = 1; version <= 4; version++) {
        struct draft draft;
        struct bw_amd_discovery found;
        struct bw_err err = {0};
        draft_make(&draft, version == 4 ? 2 : 1, version, 2);
        BW_OK(parse(&draft, &found, &err), &err);
        BW_EQ(found.die_count, 2);
        BW_EQ(found.ips.count, 10);
        const struct bw_amd_ip *core = bw_amd_discovery_find(&found, BW_AMD_HW_GC, 1);
        if (BW_TRUE(core != NULL)) {
            BW_EQ(core->die, 1);
            BW_EQ(core->instance, 1);
            BW_EQ(core->major, 11);
            BW_EQ(core->minor, BW_AMD_HW_GC % 7);
            BW_EQ(core->revision, 3);
            BW_EQ(core->base_count, 5);
            BW_EQ(core->bases[4], 0xb004 + (version == 4 ? (uint64_t)0xab << 32 : 0));
        }
        /* Old versions say in the block itself that it is fused off; later that byte means something else. */
        BW_TRUE((bw_amd_discovery_find(&found, BW_AMD_HW_SDMA0, 2) != NULL) == (version >= 3));
        BW_TRUE(bw_amd_discovery_find(&found, BW_AMD_HW_XGMI, 0) == NULL);
        BW_EQ(bw_amd_discovery_find(&found, 0x99, 1)->base_count, BW_AMD_IP_BASES_MAX);
        BW_TRUE(found.has_shape);
        BW_EQ(found.shape.shader_engines, 6);
        BW_EQ(found.shape.arrays_per_engine, 2);
        BW_EQ(found.shape.units_per_array, 8);
        BW_EQ(found.shape.wave_size, 32);
        BW_EQ(found.shape.waves_per_simd, 16);
        BW_EQ(found.shape.scratch_slots_per_unit, 32);
        BW_EQ(found.shape.lds_kib, 64);
        bw_amd_discovery_free(&found);
    }
}

static void a_board_may_not_say_its_shape(void)
{
    struct draft draft;
    struct bw_amd_discovery found;
    struct bw_err err = {0};
    draft_make(&draft, 1, 3, 1);
    put(&draft, 20, 0, 2);
    put_sum(&draft);
    BW_OK(parse(&draft, &found, &err), &err);
    BW_TRUE(!found.has_shape);
    bw_amd_discovery_free(&found);
}

/* AMD gives tables of boards without one away with firmware (linux-firmware, amdgpu/NAME_ip_discovery.bin):
 * where this machine has them, they are read, sums and all. */
static void the_vendors_own_tables(void)
{
    glob_t files;
    static uint8_t bytes[BW_AMD_DISCOVERY_BYTES_MAX];
    if (glob("/usr/lib/firmware/amdgpu/*_ip_discovery.bin", 0, NULL, &files)) {
        printf(" [none here] ");
        return;
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "rb");
        struct bw_amd_discovery found;
        struct bw_err err = {0};
        if (!BW_TRUE(file != NULL))
            continue;
        size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        BW_OK(bw_amd_discovery_parse(bytes, size_bytes, &found, &err), &err);
        const struct bw_amd_ip *core = bw_amd_discovery_find(&found, BW_AMD_HW_GC, 0);
        BW_TRUE(core && core->major == 9 && core->bases[0] == 0x2000 && core->bases[1] == 0xa000);
        BW_TRUE(bw_amd_discovery_find(&found, BW_AMD_HW_SDMA0, 0) != NULL);
        bw_amd_discovery_free(&found);
    }
    printf(" [%zu] ", files.gl_pathc);
    globfree(&files);
}

static void what_is_fused_off_is_not_found(void)
{
    struct draft draft;
    struct bw_amd_discovery found;
    struct bw_err err = {0};
    draft_make(&draft, 1, 3, 2);
    put_core(&draft, 2);
    put_harvest(&draft, BW_AMD_HW_GC, 0);
    put_sum(&draft);
    BW_OK(parse(&draft, &found, &err), &err);
    const struct bw_amd_ip *core = bw_amd_discovery_find(&found, BW_AMD_HW_GC, 0);
    BW_TRUE(core && core->instance == 1);
    BW_TRUE(bw_amd_discovery_find(&found, BW_AMD_HW_GC, 1) == NULL);
    BW_TRUE(bw_amd_discovery_find(&found, BW_AMD_HW_MMHUB, 1) != NULL);
    BW_EQ(found.shape.units_per_array, 10);
    BW_EQ(found.shape.arrays_per_engine, 2);
    bw_amd_discovery_free(&found);
}

/* One field each, with sums that are right but for those that are to be wrong. */
static void what_is_wrong_is_named(void)
{
    static const struct {
        uint32_t at, bytes;
        uint64_t value;
        bool sums;
        const char *what;
    } cases[] = {
        {0, 4, 0x12345678, true, "signature"},
        {100, 1, 0x55, false, "checksum"},
        {10, 2, 5000, true, "all of it: 5000 bytes at offset 0 are not in the table"},
        {10, 2, 9, true, "all of it: 9 bytes at offset 0 are not in the table"},
        {IP_AT, 4, 1, true, "IP blocks"},
        {IP_AT + 4, 2, 9, true, "version 9 of the table of IP blocks, known are 1 to 4"},
        {IP_AT + 6, 2, 9000, true, "IP blocks: 9000 bytes at offset 64 are not in the table"},
        {IP_AT + 12, 2, 17, true, "17 dies, at most 16"},
        {IP_AT + 12, 2, 0, true, "0 dies, at most 16"},
        {IP_AT + 16, 2, 0xfff0, true, "die: 4 bytes at offset 65520 are not in the table"},
        {DIE_AT, 2, 7, true, "number of a die"},
        {DIE_AT + 2, 2, 60000, true, NULL}, /* runs out of the table, wherever that is */
        {12, 2, 0, true, "no table of IP blocks"},
        {GC_AT + 4, 2, 3, true, "version 3 of the table of the graphics core, known are 1 and 2"},
        {GC_AT + 12, 4, 0, true, "graphics core of 0 engines, 2 arrays each, 8 units each"},
        {GC_AT + 8, 4, 0xffffffff, true,
         "graphics core: 4294967295 bytes at offset 3000 are not in the table"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct draft draft;
        struct bw_amd_discovery found;
        struct bw_err err = {0};
        draft_make(&draft, 1, 3, 2);
        put(&draft, cases[i].at, cases[i].value, cases[i].bytes);
        if (cases[i].sums && cases[i].at >= IP_AT) {
            put_row(&draft, 0, IP_AT, 2900 - IP_AT);
            put_row(&draft, 1, GC_AT, 88);
        }
        if (cases[i].sums)
            put_sum(&draft);
        if (!BW_EQ(parse(&draft, &found, &err), -EPROTO) ||
            (cases[i].what && !BW_STR(err.what, cases[i].what)))
            printf("      case %zu\n", i);
        bw_amd_discovery_free(&found);
    }
}

static void no_memory_behind_it(void)
{
    struct draft draft;
    struct bw_amd_discovery found;
    struct bw_err err = {0};
    memset(draft.bytes, 0xff, sizeof draft.bytes);
    BW_EQ(parse(&draft, &found, &err), -ENXIO);
    BW_STR(err.what, "the end of VRAM reads all ones");
    memset(draft.bytes, 0, sizeof draft.bytes);
    BW_EQ(parse(&draft, &found, &err), -EPROTO);
    BW_EQ(bw_amd_discovery_parse(draft.bytes, 3, &found, &err), -EPROTO);
    BW_EQ(bw_amd_discovery_parse(NULL, 0, &found, &err), -EPROTO);
}

/* Cut anywhere, and with any byte changed: an error or a table, and nothing beyond the bytes is looked at
 * (the address sanitizer sees to that). */
static void damage_of_any_kind(void)
{
    struct bw_rng rng = bw_test_rng("discovery");
    struct draft draft;
    draft_make(&draft, 2, 4, 2);
    for (int round = 0; round < 3000; round++) {
        uint64_t size_bytes = round < 1000 ? bw_rng_below(&rng, TABLE_BYTES) : TABLE_BYTES;
        struct draft damaged = draft;
        for (uint64_t flips = round < 1000 ? 0 : 1 + bw_rng_below(&rng, 4); flips; flips--)
            damaged.bytes[bw_rng_below(&rng, 400)] = (uint8_t)bw_rng_next(&rng);
        put_row(&damaged, 0, IP_AT, 2900 - IP_AT);
        put_sum(&damaged);
        uint8_t *copy = malloc(size_bytes + 1);
        struct bw_amd_discovery found;
        if (!BW_TRUE(copy != NULL))
            return;
        memcpy(copy, damaged.bytes, size_bytes);
        int rc = bw_amd_discovery_parse(copy, size_bytes, &found, NULL);
        if (rc != 0 && rc != -EPROTO)
            BW_EQ(rc, -EPROTO);
        bw_amd_discovery_free(&found);
        free(copy);
    }
}

BW_TEST_MAIN("amd discovery", {"tables of every version", tables_of_every_version},
             {"a board may not say its shape", a_board_may_not_say_its_shape},
             {"the vendor's own tables", the_vendors_own_tables},
             {"what is fused off is not found", what_is_fused_off_is_not_found},
             {"what is wrong is named", what_is_wrong_is_named}, {"no memory behind it", no_memory_behind_it},
             {"damage of any kind", damage_of_any_kind})
