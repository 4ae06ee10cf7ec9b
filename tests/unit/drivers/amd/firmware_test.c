/* Goal: firmware files of every kind that we load are taken apart as the kernel does it, and a file that is
 * cut, damaged or of another kind is refused by name. */
#include "drivers/amd/firmware.h"

#include <glob.h>

#include <bellwire/err.h>

#include "base/bits.h"
#include "tests/check.h"
#include "tests/seed.h"

enum { FILE_BYTES = 4096, CODE_AT = 256, CODE_BYTES = 2048 };

struct file {
    uint8_t bytes[FILE_BYTES];
};

static void put(struct file *file, uint32_t at, uint32_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        file->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void word(struct file *file, uint32_t at, uint32_t value)
{
    put(file, at, value, 4);
}

/* CRC-32 by its definition: what is left of the message, as a polynomial, divided by the generator. */
static uint32_t crc_of(const uint8_t *bytes, uint32_t count)
{
    uint32_t rest = UINT32_MAX;
    for (uint32_t bit = 0; bit < count * 8; bit++) {
        uint32_t in = bytes[bit / 8] >> bit % 8 & 1, out = rest & 1;
        rest = rest >> 1 ^ (in != out ? 0xedb88320u : 0);
    }
    return ~rest;
}

static void file_make(struct file *file, uint32_t major, uint32_t minor, uint32_t header_bytes)
{
    memset(file, 0, sizeof *file);
    word(file, 0, FILE_BYTES);
    word(file, 4, header_bytes);
    put(file, 8, major, 2);
    put(file, 10, minor, 2);
    put(file, 12, 11, 2);
    put(file, 14, 5, 2);
    word(file, 16, 0xabc);
    word(file, 20, CODE_BYTES);
    word(file, 24, CODE_AT);
}

static void sum(struct file *file)
{
    word(file, 28, crc_of(file->bytes + 32, FILE_BYTES - 32));
}

static bool parse(const struct file *file, enum bw_amd_firmware_kind kind, struct bw_amd_firmware *firmware)
{
    struct bw_err err = {0};
    return BW_OK(bw_amd_firmware_parse(kind, file->bytes, FILE_BYTES, firmware, &err), &err);
}

static void part_is(const struct bw_amd_firmware *firmware, uint32_t index, uint32_t type, uint32_t offset,
                    uint32_t size_bytes, uint32_t version)
{
    if (!BW_TRUE(index < firmware->part_count))
        return;
    BW_EQ(firmware->parts[index].type, type);
    BW_EQ(firmware->parts[index].offset, offset);
    BW_EQ(firmware->parts[index].size_bytes, size_bytes);
    BW_EQ(firmware->parts[index].version, version);
}

static void one_part(void)
{
    static const struct {
        enum bw_amd_firmware_kind kind;
        uint32_t major, header_bytes, type;
    } cases[] = {{BW_AMD_FIRMWARE_SMU, 1, 36, 0x12}, {BW_AMD_FIRMWARE_SMU, 2, 44, 0x12},
                 {BW_AMD_FIRMWARE_SDMA, 1, 48, 9},   {BW_AMD_FIRMWARE_PFP, 1, 44, 2},
                 {BW_AMD_FIRMWARE_ME, 1, 44, 1},     {BW_AMD_FIRMWARE_RLC, 2, 104, 8}};
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct file file;
        struct bw_amd_firmware firmware;
        file_make(&file, cases[i].major, 0, cases[i].header_bytes);
        if (!parse(&file, cases[i].kind, &firmware))
            continue;
        BW_EQ(firmware.part_count, 1);
        part_is(&firmware, 0, cases[i].type, CODE_AT, CODE_BYTES, 0xabc);
        BW_EQ(firmware.ip_major, 11);
        BW_EQ(firmware.ip_minor, 5);
        BW_EQ(firmware.version, 0xabc);
        BW_TRUE(!firmware.crc_matches && !firmware.has_start);
        sum(&file);
        if (parse(&file, cases[i].kind, &firmware))
            BW_TRUE(firmware.crc_matches);
    }
}

static void engines_of_several_parts(void)
{
    struct file file;
    struct bw_amd_firmware firmware;
    file_make(&file, 1, 0, 44);
    word(&file, 36, 480); /* jump table: words 480 to 512, the last of the code */
    word(&file, 40, 32);
    if (parse(&file, BW_AMD_FIRMWARE_MEC, &firmware)) {
        part_is(&firmware, 0, BW_AMD_LOAD_MEC, CODE_AT, CODE_BYTES - 128, 0xabc);
        part_is(&firmware, 1, BW_AMD_LOAD_MEC_JUMPS, CODE_AT + 480 * 4, 128, 0xabc);
    }
    static const struct {
        enum bw_amd_firmware_kind kind;
        uint32_t code, stack;
    } rs64[] = {{BW_AMD_FIRMWARE_PFP, 0x57, 0x5a},
                {BW_AMD_FIRMWARE_ME, 0x58, 0x5c},
                {BW_AMD_FIRMWARE_MEC, 0x59, 0x5e}};
    for (size_t i = 0; i < BW_COUNT_OF(rs64); i++) {
        file_make(&file, 2, 0, 60);
        const uint32_t words[] = {7, 1024, 256, 512, 1280, 0x3000, 0x8000};
        for (uint32_t k = 0; k < BW_COUNT_OF(words); k++)
            word(&file, 32 + k * 4, words[k]);
        if (!parse(&file, rs64[i].kind, &firmware))
            continue;
        BW_EQ(firmware.part_count, 2);
        part_is(&firmware, 0, rs64[i].code, 256, 1024, 0xabc);
        part_is(&firmware, 1, rs64[i].stack, 1280, 512, 0xabc);
        BW_TRUE(firmware.has_start);
        BW_EQ(firmware.start_va, 0x800000003000);
    }
    file_make(&file, 2, 0, 64);
    word(&file, 36, 700); /* context's code; control's offset and size */
    word(&file, 48, 1000);
    word(&file, 52, 300);
    if (parse(&file, BW_AMD_FIRMWARE_SDMA, &firmware)) {
        part_is(&firmware, 0, BW_AMD_LOAD_SDMA_CONTROL, 1000, 300, 0xabc);
        part_is(&firmware, 1, BW_AMD_LOAD_SDMA_CONTEXT, CODE_AT, 700, 0xabc);
    }
    file_make(&file, 3, 0, 44);
    word(&file, 36, 256);
    word(&file, 40, 2000);
    if (parse(&file, BW_AMD_FIRMWARE_SDMA, &firmware))
        part_is(&firmware, 0, BW_AMD_LOAD_SDMA_CONTEXT, 256, 2000, 0xabc);
    file_make(&file, 1, 0, 48);
    word(&file, 32, 600);
    word(&file, 40, 500);
    if (parse(&file, BW_AMD_FIRMWARE_IMU, &firmware)) {
        part_is(&firmware, 0, BW_AMD_LOAD_IMU_IRAM, CODE_AT, 600, 0xabc);
        part_is(&firmware, 1, BW_AMD_LOAD_IMU_DRAM, CODE_AT + 600, 500, 0xabc);
    }
}

/* Lists that a version of RLC's header has, with those of the versions before; the empty ones are left out,
 * and the code itself comes last. */
static void rlc_of_every_version(void)
{
    static const struct {
        uint32_t type, version_at, size_at, offset_at, since;
    } lists[] = {{0x16, 108, 116, 120, 1}, {0x14, 124, 132, 136, 1}, {0x15, 140, 148, 152, 1},
                 {0x1a, 0, 156, 160, 2},   {0x30, 0, 164, 168, 2},   {0x19, 172, 180, 184, 3},
                 {7, 188, 196, 200, 3}};
    for (uint32_t minor = 0; minor <= 3; minor++) {
        struct file file;
        struct bw_amd_firmware firmware;
        uint32_t expected = 0;
        file_make(&file, 2, minor, 204);
        for (uint32_t i = 0; i < BW_COUNT_OF(lists); i++) {
            word(&file, lists[i].size_at, i == 1 ? 0 : 16 + i);
            word(&file, lists[i].offset_at, 3000 + i * 100);
            if (lists[i].version_at)
                word(&file, lists[i].version_at, 50 + i);
        }
        if (!parse(&file, BW_AMD_FIRMWARE_RLC, &firmware))
            continue;
        for (uint32_t i = 0; i < BW_COUNT_OF(lists); i++) {
            if (i != 1 && lists[i].since <= minor)
                part_is(&firmware, expected++, lists[i].type, 3000 + i * 100, 16 + i,
                        lists[i].version_at ? 50 + i : 0xabc);
        }
        part_is(&firmware, expected, BW_AMD_LOAD_RLC_G, CODE_AT, CODE_BYTES, 0xabc);
        BW_EQ(firmware.part_count, expected + 1);
    }
}

static void sos_has_parts_for_other_steppings(void)
{
    for (uint32_t minor = 0; minor <= 1; minor++) {
        struct file file;
        struct bw_amd_firmware firmware;
        uint32_t at = minor ? 40 : 36;
        file_make(&file, 2, minor, at);
        word(&file, 32, 4);
        if (minor)
            word(&file, 36, 2);
        for (uint32_t i = 0; i < 4; i++, at += 16) {
            word(&file, at, 1 + i % 2);
            word(&file, at + 4, 70 + i);
            word(&file, at + 8, i * 100);
            word(&file, at + 12, 90 + i);
        }
        if (!parse(&file, BW_AMD_FIRMWARE_SOS, &firmware))
            continue;
        BW_EQ(firmware.part_count, 4);
        part_is(&firmware, 3, 2, CODE_AT + 300, 93, 73);
        BW_EQ(firmware.parts[1].auxiliary, false);
        BW_EQ(firmware.parts[2].auxiliary, minor == 1);
        const struct bw_amd_firmware_part *found = bw_amd_firmware_find(&firmware, BW_AMD_SOS_SYS_DRV);
        BW_TRUE(found == &firmware.parts[1]);
        BW_TRUE(bw_amd_firmware_find(&firmware, BW_AMD_SOS_SPL) == NULL);
    }
}

static void smu_has_tables(void)
{
    struct file file;
    struct bw_amd_firmware firmware;
    const uint32_t tables[] = {0x50325341, 1000, 50, 0xe50, 1100, 60, 0x50325358, 1200, 70};
    file_make(&file, 2, 1, 44);
    word(&file, 20, 0); /* its code is in flash */
    word(&file, 36, 3);
    word(&file, 40, 256);
    for (uint32_t i = 0; i < BW_COUNT_OF(tables); i++)
        word(&file, 256 + i * 4, tables[i]);
    if (!parse(&file, BW_AMD_FIRMWARE_SMU, &firmware))
        return;
    BW_EQ(firmware.part_count, 2);
    part_is(&firmware, 0, BW_AMD_LOAD_P2S_TABLE, 1000, 50, 0xabc);
    part_is(&firmware, 1, BW_AMD_LOAD_P2S_TABLE, 1200, 70, 0xabc);
    BW_EQ(firmware.parts[1].id, 0x50325358);
    struct bw_err err = {0};
    word(&file, 40, 4090);
    BW_EQ(bw_amd_firmware_parse(BW_AMD_FIRMWARE_SMU, file.bytes, FILE_BYTES, &firmware, &err), -EPROTO);
    BW_STR(err.what, "3 tables at offset 4090 of 4096");
}

static void what_is_wrong_is_named(void)
{
    static const struct {
        enum bw_amd_firmware_kind kind;
        uint32_t major, at, value;
        int code;
        const char *what;
    } cases[] = {
        {BW_AMD_FIRMWARE_SMU, 1, 0, 5000, -EPROTO, "size of the file"},
        {BW_AMD_FIRMWARE_SMU, 1, 4, 8, -EPROTO, "header of 8 bytes"},
        {BW_AMD_FIRMWARE_SMU, 1, 4, 5000, -EPROTO, "header of 5000 bytes"},
        {BW_AMD_FIRMWARE_SMU, 1, 24, 3000, -EPROTO, "part 0x12: 2048 bytes at offset 3000 of 4096"},
        {BW_AMD_FIRMWARE_SMU, 1, 20, UINT32_MAX, -EPROTO,
         "part 0x12: 4294967295 bytes at offset 256 of 4096"},
        {BW_AMD_FIRMWARE_SMU, 7, 36, 0, -ENOTSUP, "header version 7.0 is not known for this kind of file"},
        {BW_AMD_FIRMWARE_PFP, 3, 36, 0, -ENOTSUP, "header version 3.0 is not known for this kind of file"},
        {BW_AMD_FIRMWARE_SOS, 1, 36, 0, -ENOTSUP, "header version 1.0 is not known for this kind of file"},
        {BW_AMD_FIRMWARE_SOS, 2, 32, 33, -EPROTO, "33 parts"},
        {BW_AMD_FIRMWARE_SOS, 2, 32, UINT32_MAX, -EPROTO, "4294967295 parts"},
        {BW_AMD_FIRMWARE_MEC, 1, 40, 600, -EPROTO, "jump table: 2400 bytes at 0 of 2048 of code"},
        {BW_AMD_FIRMWARE_MEC, 1, 36, UINT32_MAX, -EPROTO,
         "jump table: 0 bytes at 17179869180 of 2048 of code"},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct file file;
        struct bw_amd_firmware firmware;
        struct bw_err err = {0};
        file_make(&file, cases[i].major, 0, 60);
        word(&file, cases[i].at, cases[i].value);
        BW_EQ(bw_amd_firmware_parse(cases[i].kind, file.bytes, FILE_BYTES, &firmware, &err), cases[i].code);
        BW_STR(err.what, cases[i].what);
    }
    struct bw_amd_firmware firmware;
    BW_EQ(bw_amd_firmware_parse(BW_AMD_FIRMWARE_SMU, NULL, 0, &firmware, NULL), -EPROTO);
}

/* AMD's own files, where this machine has them: every byte behind the header belongs to a part. */
static void the_vendors_own_files(void)
{
    static const struct {
        const char *pattern;
        enum bw_amd_firmware_kind kind;
    } sets[] = {{"gc_1[12]_*_pfp.bin", BW_AMD_FIRMWARE_PFP}, {"gc_1[12]_*_me.bin", BW_AMD_FIRMWARE_ME},
                {"gc_*_mec.bin", BW_AMD_FIRMWARE_MEC},       {"gc_*_imu.bin", BW_AMD_FIRMWARE_IMU},
                {"gc_*_rlc.bin", BW_AMD_FIRMWARE_RLC},       {"sdma_[67]_*.bin", BW_AMD_FIRMWARE_SDMA},
                {"sdma_4_4_2.bin", BW_AMD_FIRMWARE_SDMA},    {"psp_1[34]_*_sos.bin", BW_AMD_FIRMWARE_SOS},
                {"smu_1[34]_*.bin", BW_AMD_FIRMWARE_SMU}};
    static uint8_t bytes[4 << 20];
    size_t seen = 0;
    for (size_t i = 0; i < BW_COUNT_OF(sets); i++) {
        char pattern[96];
        glob_t files;
        snprintf(pattern, sizeof pattern, "/usr/lib/firmware/amdgpu/%s", sets[i].pattern);
        if (glob(pattern, 0, NULL, &files))
            continue;
        for (size_t k = 0; k < files.gl_pathc; k++, seen++) {
            FILE *file = fopen(files.gl_pathv[k], "rb");
            struct bw_amd_firmware firmware;
            struct bw_err err = {0};
            if (!BW_TRUE(file != NULL))
                continue;
            size_t size_bytes = fread(bytes, 1, sizeof bytes, file);
            fclose(file);
            uint64_t covered = 0;
            if (!BW_OK(bw_amd_firmware_parse(sets[i].kind, bytes, size_bytes, &firmware, &err), &err))
                printf("      %s\n", files.gl_pathv[k]);
            for (uint32_t p = 0; p < firmware.part_count; p++)
                covered += firmware.parts[p].size_bytes;
            BW_TRUE(covered > size_bytes / 2 && covered < size_bytes);
        }
        globfree(&files);
    }
    printf(" [%zu here] ", seen);
}

static void damage_of_any_kind(void)
{
    struct bw_rng rng = bw_test_rng("firmware");
    for (int round = 0; round < 4000; round++) {
        struct file file;
        struct bw_amd_firmware firmware;
        uint32_t size_bytes = (uint32_t)bw_rng_below(&rng, 600);
        file_make(&file, 1 + (uint32_t)bw_rng_below(&rng, 3), (uint32_t)bw_rng_below(&rng, 4), 60);
        for (uint32_t i = 32; i < 256; i += 4)
            word(&file, i,
                 bw_rng_below(&rng, 3) ? (uint32_t)bw_rng_below(&rng, 700) : (uint32_t)bw_rng_next(&rng));
        word(&file, 0, size_bytes);
        word(&file, 20, (uint32_t)bw_rng_below(&rng, 700));
        uint8_t *copy = malloc(size_bytes + 1);
        if (!BW_TRUE(copy != NULL))
            return;
        memcpy(copy, file.bytes, size_bytes);
        enum bw_amd_firmware_kind kind = (enum bw_amd_firmware_kind)bw_rng_below(&rng, BW_AMD_FIRMWARE_KINDS);
        int rc = bw_amd_firmware_parse(kind, copy, size_bytes, &firmware, NULL);
        if (rc && rc != -EPROTO && rc != -ENOTSUP)
            BW_EQ(rc, -EPROTO);
        for (uint32_t i = 0; i < firmware.part_count; i++) {
            if ((uint64_t)firmware.parts[i].offset + firmware.parts[i].size_bytes > size_bytes)
                BW_EQ(firmware.parts[i].offset, 0);
        }
        free(copy);
    }
}

BW_TEST_MAIN("amd firmware", {"one part", one_part}, {"engines of several parts", engines_of_several_parts},
             {"RLC of every version", rlc_of_every_version},
             {"SOS has parts for other steppings", sos_has_parts_for_other_steppings},
             {"SMU has tables", smu_has_tables}, {"what is wrong is named", what_is_wrong_is_named},
             {"the vendor's own files", the_vendors_own_files}, {"damage of any kind", damage_of_any_kind})
