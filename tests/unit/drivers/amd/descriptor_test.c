/* Goal: of the 512 bits of a kernel descriptor, each that AMDGPUUsage reserves or leaves to the packet
 * processor is refused on every architecture, by the name of its field; each other bit is read. */
#include <errno.h>

#include "base/bits.h"
#include "drivers/amd/code_object.h"
#include "tests/check.h"

enum { RSRC3 = 44, RSRC1 = 48, RSRC2 = 52, PROPERTIES = 56, PRELOAD = 58, BYTES = 64 };

/* AMDGPUUsage, "Kernel Descriptor" and the tables of compute_pgm_rsrc1 to 3, in the words of its columns:
 * must be 0. */
struct reserved {
    const char *names; /* of architectures */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties, preload;
};
static const struct reserved generations[] = {
    /* PRIORITY, PRIV, DEBUG_MODE, BULKY, CDBG_USER and 27:28 everywhere; WGP_MODE, MEM_ORDERED and
     * FWD_PROGRESS on gfx9, SGPR counts from gfx10 on, DISABLE_PERF on gfx12. Trap handler, address watch,
     * memory violation, LDS and bit 31. Between ACCUM_OFFSET and TG_SPLIT, and above; traps, IMAGE_OP. */
    {"gfx90a", 0xfb500c00, 0x80ffe040, 0xfffeffc0, 0xf380, 0},
    {"gfx942 gfx950", 0xfb500c00, 0x80ffe040, 0xfffeffc0, 0xf380, 0},
    {"gfx1100 gfx1101 gfx1102", 0x1b500c00, 0x80ffe040, 0xfffffc00, 0xf380, 0xffff},
    {"gfx1200 gfx1201", 0x1bd00c00, 0x80ffe040, 0xffffd00f, 0xf380, 0xffff},
};

static void put32(uint8_t *bytes, uint32_t offset, uint32_t value)
{
    memcpy(bytes + offset, &value, sizeof value);
}

/* A kernel with 64 bytes of arguments at its argument pointer, in waves of 64. */
static void make_plain(uint8_t bytes[BYTES])
{
    memset(bytes, 0, BYTES);
    put32(bytes, 8, 64);
    put32(bytes, RSRC2, 2 << 1);
    put32(bytes, PROPERTIES, BW_AMD_KERNEL_KERNARG_SEGMENT_PTR);
}

static bool is_reserved(const struct reserved *row, uint32_t bit)
{
    uint32_t byte = bit / 8;
    if (byte < RSRC3)
        return (byte >= 12 && byte < 16) || byte >= 24;
    if (byte >= 60)
        return true;
    if (byte >= PROPERTIES)
        return (row->properties | (uint32_t)row->preload << 16) >> (bit - 8 * PROPERTIES) & 1;
    uint32_t mask = byte < RSRC1 ? row->rsrc3 : byte < RSRC2 ? row->rsrc1 : row->rsrc2;
    return mask >> bit % 32 & 1;
}

static const char *field_of(uint32_t bit)
{
    uint32_t byte = bit / 8;
    if (byte < RSRC3 || byte >= 60)
        return ", and reserved";
    if (byte >= PRELOAD)
        return "kernarg_preload";
    if (byte >= PROPERTIES)
        return "kernel_code_properties";
    return byte < RSRC1 ? "COMPUTE_PGM_RSRC3" : byte < RSRC2 ? "COMPUTE_PGM_RSRC1" : "COMPUTE_PGM_RSRC2";
}

static bool refused(const struct bw_amd_arch *arch, const uint8_t bytes[BYTES], const char *text)
{
    struct bw_amd_descriptor descriptor;
    struct bw_err err = {0};
    char message[512];
    int rc = bw_amd_descriptor_read(arch, "k", bytes, &descriptor, &err);
    bw_err_format(&err, message, sizeof message);
    return BW_EQ(rc, -EINVAL) && (strstr(message, text) ? true : BW_STR(message, text));
}

static bool taken(const struct bw_amd_arch *arch, const uint8_t bytes[BYTES])
{
    struct bw_amd_descriptor descriptor;
    struct bw_err err = {0};
    return BW_OK(bw_amd_descriptor_read(arch, "k", bytes, &descriptor, &err), &err);
}

static void every_reserved_bit_is_refused(void)
{
    uint32_t count, seen = 0;
    const struct bw_amd_arch *table = bw_amd_arch_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        for (size_t g = 0; g < BW_COUNT_OF(generations); g++) {
            if (!strstr(generations[g].names, table[i].name))
                continue;
            seen++;
            for (uint32_t bit = 0; bit < 8 * BYTES; bit++) {
                uint8_t bytes[BYTES];
                make_plain(bytes);
                bytes[bit / 8] |= (uint8_t)(1u << bit % 8);
                if (is_reserved(&generations[g], bit) && !refused(&table[i], bytes, field_of(bit)))
                    printf("      %s: bit %u\n", table[i].name, bit);
            }
        }
    }
    BW_EQ(seen, count);
}

/* What is not reserved is taken: modes, exceptions, work-group ids, prefetch. */
static void other_bits_are_taken(void)
{
    uint32_t count;
    const struct bw_amd_arch *table = bw_amd_arch_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        for (size_t g = 0; g < BW_COUNT_OF(generations); g++) {
            if (!strstr(generations[g].names, table[i].name))
                continue;
            uint8_t bytes[BYTES];
            make_plain(bytes);
            put32(bytes, RSRC1, ~generations[g].rsrc1);
            put32(bytes, RSRC2, (~generations[g].rsrc2 & ~(31u << 1 | 1u << 12)) | 16u << 1);
            put32(bytes, RSRC3,
                  ~generations[g].rsrc3 & ~(table[i].rsrc3_layout == BW_AMD_RSRC3_SHARED_VGPRS ? 15u : 0));
            taken(&table[i], bytes);
        }
    }
}

/* User SGPRs: as many as the properties ask for, or more (LLVM 19 declares 15 for gfx1100 where 2 are used),
 * up to 16. */
static void user_sgprs_are_counted(void)
{
    const struct bw_amd_arch *arch = bw_amd_arch_find("gfx1100");
    uint8_t bytes[BYTES];
    for (uint32_t declared = 0; declared < 32; declared++) {
        char text[64];
        make_plain(bytes);
        put32(bytes, RSRC2, declared << 1);
        snprintf(text, sizeof text, "%u user SGPRs: expected 2 to 16", declared);
        if (declared >= 2 && declared <= 16)
            taken(arch, bytes);
        else
            refused(arch, bytes, text);
    }
}

static void put_preload(uint8_t *bytes, uint32_t length, uint32_t offset, uint32_t sgprs)
{
    make_plain(bytes);
    put32(bytes, PROPERTIES, BW_AMD_KERNEL_KERNARG_SEGMENT_PTR | (length | offset << 7) << 16);
    put32(bytes, RSRC2, sgprs << 1);
}

static void preloads_are_arguments(void)
{
    const struct bw_amd_arch *arch = bw_amd_arch_find("gfx942");
    struct bw_amd_descriptor descriptor;
    uint8_t bytes[BYTES];
    put_preload(bytes, 14, 2, 16);
    taken(arch, bytes);
    BW_EQ(bw_amd_descriptor_read(arch, "k", bytes, &descriptor, NULL), 0);
    BW_EQ(descriptor.preload_words, 14);
    BW_EQ(descriptor.preload_offset_words, 2);
    put_preload(bytes, 14, 2, 15);
    refused(arch, bytes, "15 user SGPRs: expected 16 to 16");
    put_preload(bytes, 14, 3, 16); /* 64 bytes of arguments are 16 words */
    refused(arch, bytes, "kernarg_preload of 14 words at word 3: expected some of the 16 words of arguments");
    put_preload(bytes, 0, 3, 2);
    refused(arch, bytes, "kernarg_preload of 0 words at word 3");
    put_preload(bytes, 1, 511, 3);
    refused(arch, bytes, "kernarg_preload of 1 words at word 511");
}

static void registers_fit_together(void)
{
    const struct bw_amd_arch *gfx1100 = bw_amd_arch_find("gfx1100"), *gfx90a = bw_amd_arch_find("gfx90a");
    uint8_t bytes[BYTES];
    make_plain(bytes);
    put32(bytes, RSRC2, 2 << 1 | 3u << 11);
    refused(gfx1100, bytes, "COMPUTE_PGM_RSRC2.TIDIG_COMP_CNT = 3: expected 0 to 2");
    make_plain(bytes); /* (31 + 1) * 4 + 15 * 8 = 248 registers, (34 + 1) * 4 + 15 * 8 = 260 */
    put32(bytes, RSRC1, 31);
    put32(bytes, RSRC3, 15);
    taken(gfx1100, bytes);
    put32(bytes, RSRC1, 34);
    refused(gfx1100, bytes, "COMPUTE_PGM_RSRC3.SHARED_VGPR_CNT = 15");
    put32(bytes, RSRC1, 0);
    put32(bytes, RSRC3, 1);
    put32(bytes, PROPERTIES, BW_AMD_KERNEL_KERNARG_SEGMENT_PTR | BW_AMD_KERNEL_WAVEFRONT_SIZE32);
    refused(gfx1100, bytes, "COMPUTE_PGM_RSRC3.SHARED_VGPR_CNT = 1: expected 0 in waves of 32");
    refused(gfx90a, bytes, "waves of 32, which gfx90a does not have");
    make_plain(bytes); /* 16 registers, the first accumulation register at 16, at 20 */
    put32(bytes, RSRC1, 1);
    put32(bytes, RSRC3, 3);
    taken(gfx90a, bytes);
    put32(bytes, RSRC3, 4);
    refused(gfx90a, bytes, "COMPUTE_PGM_RSRC3.ACCUM_OFFSET = 4");
    put32(bytes, RSRC3, 1 << 16);
    taken(gfx90a, bytes);
    put32(bytes, 0, 4);
    refused(gfx90a, bytes, "COMPUTE_PGM_RSRC3.TG_SPLIT = 1: expected 0 in a kernel with LDS");
}

BW_TEST_MAIN("amd descriptor", {"every_reserved_bit_is_refused", every_reserved_bit_is_refused},
             {"other_bits_are_taken", other_bits_are_taken},
             {"user_sgprs_are_counted", user_sgprs_are_counted},
             {"preloads_are_arguments", preloads_are_arguments},
             {"registers_fit_together", registers_fit_together})
