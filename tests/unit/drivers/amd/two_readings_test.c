/* Goal: the driver's tables and the mock's, written from different public sources, say the same about
 * registers and packets. What they do not agree on is listed here, with the reason. */
#include "base/bits.h"
#include "drivers/amd/aql.h"
#include "drivers/amd/arch.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"
#include "drivers/amd/sdma.h"
#include "mock/chip.h"
#include "mock/engine/aql.h"
#include "mock/engine/pm4.h"
#include "mock/engine/registers.h"
#include "mock/engine/sdma.h"
#include "tests/check.h"

struct register_row {
    const char *name;
    uint32_t generations, address;
};
#define ROW(name, generations, address) {#name, generations, address},
static const struct register_row registers[] = {BW_AMD_REGS(ROW)};

struct field_row {
    uint32_t address;
    const char *name;
    uint32_t bits;
};
#define FIELD(reg, field, low, high) {BW_AMD_##reg, #reg "." #field, BW_AMD_BITS(0, low, high)},
static const struct field_row fields[] = {BW_AMD_REG_FIELDS(FIELD)};

/* Registers that exist, and that a mock queue refuses: the context switcher's and the packet processor's own.
 */
static const char *const not_for_queues[] = {"COMPUTE_RELAUNCH",
                                             "COMPUTE_DISPATCH_END",
                                             "COMPUTE_NOWHERE",
                                             "COMPUTE_RELAUNCH_GFX9",
                                             "COMPUTE_STATIC_THREAD_MGMT_SE4_GFX9",
                                             "COMPUTE_STATIC_THREAD_MGMT_SE5_GFX9",
                                             "COMPUTE_STATIC_THREAD_MGMT_SE6_GFX9",
                                             "COMPUTE_STATIC_THREAD_MGMT_SE7_GFX9",
                                             "COMPUTE_SHADER_CHKSUM_GFX9"};

/* Fields of registers that only one source has. */
static const char *const disputed_fields[] = {
    "COMPUTE_TMPRING_SIZE.WAVESIZE", /* 13, 15 or 18 bits by architecture: scratch_units_max limits what is
                                        written */
};

static bool listed(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static const struct bw_mock_chip *chip_of(uint32_t generation)
{
    return bw_mock_chip_find(generation == BW_AMD_PM4_GCR ? "gfx1100" : "gfx942");
}

static void registers_lie_at_the_same_places(void)
{
    static const uint32_t generations[] = {BW_AMD_PM4_GCR, BW_AMD_PM4_COHER};
    BW_TRUE(chip_of(BW_AMD_PM4_GCR) != NULL);
    for (size_t g = 0; g < 2; g++) {
        const struct bw_mock_chip *chip = chip_of(generations[g]);
        if (!chip) /* the mock has no chip of that age */
            continue;
        for (size_t i = 0; i < BW_COUNT_OF(registers); i++) {
            if (!(registers[i].generations & generations[g]))
                continue;
            const struct bw_mock_register *row = bw_mock_register_find(chip, registers[i].address);
            if (!row) {
                if (!BW_TRUE(listed(not_for_queues, BW_COUNT_OF(not_for_queues), registers[i].name)))
                    printf("      %s on %s\n", registers[i].name, chip->arch);
                continue;
            }
            if (!BW_TRUE(strncmp(row->name, registers[i].name,
                                 row->count > 1 ? strlen(row->name) - 1 : strlen(row->name)) == 0))
                printf("      0x%04x: driver %s, mock %s\n", registers[i].address, registers[i].name,
                       row->name);
        }
    }
}

static void register_fields_exist_on_both_sides(void)
{
    const struct bw_mock_chip *chip = chip_of(BW_AMD_PM4_GCR);
    for (size_t i = 0; i < BW_COUNT_OF(fields); i++) {
        const struct bw_mock_register *row = bw_mock_register_find(chip, fields[i].address);
        if (fields[i].address == BW_AMD_COMPUTE_PGM_RSRC3_GFX9 || !row ||
            listed(disputed_fields, BW_COUNT_OF(disputed_fields), fields[i].name))
            continue;
        uint32_t mask = bw_amd_bits_max(fields[i].bits) << bw_amd_bits_low(fields[i].bits);
        if (!BW_EQ(mask & ~row->mask, 0))
            printf("      %s\n", fields[i].name);
    }
}

/* Fields of packets that the mock refuses, and why the driver's table still has them. */
static const char *const disputed_packet_fields[] = {
    /* Register numbers use the low bits that memory addresses leave zero. */
    "WRITE_DATA.DST_ADDR_LO",
    "WAIT_REG_MEM64.POLL_ADDR_LO",
    /* Of the graphics queue's packet processors. */
    "WRITE_DATA.ENGINE_SEL",
    "WAIT_REG_MEM.ENGINE_SEL",
    "WAIT_REG_MEM64.ENGINE_SEL",
    "DMA_DATA.ENGINE_SEL",
    /* In PAL's definitions only. */
    "WAIT_REG_MEM.OPTIMIZE_ACE_OFFLOAD",
    "WAIT_REG_MEM64.OPTIMIZE_ACE_OFFLOAD",
    "INDIRECT_BUFFER.OFFLOAD_POLLING",
    "EVENT_WRITE.OFFLOAD_ENABLE",
    "COND_EXEC.CACHE_POLICY",
    "DMA_DATA.DIS_WC",
    "SET_SH_REG.VMID_SHIFT",
    "SET_SH_REG.INDEX",
    "RELEASE_MEM.WAIT_SYNC",
    "RELEASE_MEM.GLK_WB",
    "RELEASE_MEM.GLK_INV",
    /* The mock checks that addresses have 48 bits. */
    "INDIRECT_BUFFER.IB_BASE_HI",
    "COND_EXEC.ADDR_HI",
    "DISPATCH_INDIRECT.ADDR_HI",
    /* 4 bits in PAL and nvd.h; commands beyond 2 bits are defined nowhere. */
    "ATOMIC_MEM.COMMAND",
    /* In Linux's sdma_v6_0_0_pkt_open.h only: cache policies and their valid bit. This driver leaves them 0.
     */
    "COPY_LINEAR.CPV",
    "CONST_FILL.CPV",
    "CONST_FILL.CACHE_POLICY",
    "ATOMIC.CPV",
    "ATOMIC.CACHE_POLICY",
    "TIMESTAMP_GET_GLOBAL.CPV",
    "TIMESTAMP_GET_GLOBAL.L2_POLICY",
    "TIMESTAMP_GET_GLOBAL.LLC_POLICY",
};

static void compare_packet(const struct bw_amd_packet *packet, const uint32_t *reserved,
                           uint32_t reserved_count, uint32_t first_word)
{
    for (uint32_t i = 0; i < packet->field_count; i++) {
        uint32_t bits = packet->fields[i].bits, word = bw_amd_bits_word(bits);
        uint32_t mask = bw_amd_bits_max(bits) << bw_amd_bits_low(bits);
        char name[96];
        snprintf(name, sizeof name, "%s.%s", packet->name, packet->fields[i].name);
        if (word < first_word || word - first_word >= reserved_count ||
            listed(disputed_packet_fields, BW_COUNT_OF(disputed_packet_fields), name))
            continue;
        if (!BW_EQ(mask & reserved[word - first_word], 0))
            printf("      %s\n", name);
    }
}

static void pm4_packets_have_the_same_shape(void)
{
    uint32_t count;
    const struct bw_amd_packet *packets = bw_amd_pm4_packets(&count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t family = packets[i].generations & BW_AMD_PM4_GCR ? BW_MOCK_GFX11 : BW_MOCK_GFX9;
        const struct bw_mock_pm4 *mock = bw_mock_pm4_find(packets[i].opcode, family);
        if (!BW_TRUE(mock != NULL))
            continue;
        BW_STR(packets[i].name, mock->name);
        uint32_t first = packets[i].word_count - 1;
        if (packets[i].tail == BW_AMD_TAIL_NONE)
            BW_EQ(first, mock->count_min);
        else if (packets[i].opcode != BW_AMD_PM4_OP_NOP)
            BW_EQ(first + 1, mock->count_min);
        compare_packet(&packets[i], mock->reserved, BW_MOCK_PM4_CHECKED_WORDS, 1);
    }
}

static void sdma_packets_have_the_same_shape(void)
{
    uint32_t count;
    const struct bw_amd_packet *packets = bw_amd_sdma_packets(&count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t family = packets[i].generations & BW_AMD_SDMA_5 ? BW_MOCK_GFX11 : BW_MOCK_GFX9;
        const struct bw_mock_sdma *mock = bw_mock_sdma_find(packets[i].opcode, packets[i].sub_opcode, family);
        if (!BW_TRUE(mock != NULL))
            continue;
        BW_STR(packets[i].name, mock->name);
        BW_EQ(packets[i].word_count, mock->count);
        compare_packet(&packets[i], mock->reserved, BW_COUNT_OF(mock->reserved), 0);
    }
}

static void aql_packets_have_the_same_shape(void)
{
    uint32_t count, both = 0, mocks = 0;
    const struct bw_amd_packet *packets = bw_amd_aql_packets(&count);
    while (bw_mock_aql_at(mocks))
        mocks++;
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_mock_aql_kind *mock = bw_mock_aql_find(packets[i].opcode, packets[i].sub_opcode);
        /* Invalid slots are no packets, and queues of a GPU take no agent dispatches. */
        if (packets[i].opcode == BW_AMD_AQL_OP_INVALID || packets[i].opcode == BW_AMD_AQL_OP_AGENT_DISPATCH) {
            BW_TRUE(mock == NULL);
            continue;
        }
        if (!BW_TRUE(mock != NULL))
            continue;
        both++;
        BW_STR(packets[i].name, mock->name);
        uint32_t used[BW_MOCK_AQL_WORDS] = {packets[i].opcode ? 0xff : 0xff00ff};
        for (uint32_t k = 0; k < packets[i].field_count; k++) {
            uint32_t bits = packets[i].fields[k].bits;
            used[bw_amd_bits_word(bits)] |= bw_amd_bits_max(bits) << bw_amd_bits_low(bits);
        }
        for (uint32_t word = 0; word < BW_MOCK_AQL_WORDS; word++) {
            uint32_t alignment =
                packets[i].opcode || word != 2 ? 0 : 3; /* of PM4_IB: see mock/engine/pm4.c */
            if (packets[i].sub_opcode != BW_AMD_AQL_OP_PM4_IB >> 16)
                alignment = 0;
            if (!BW_EQ(used[word] | alignment, ~mock->reserved[word]))
                printf("      %s, word %u\n", packets[i].name, word);
        }
    }
    BW_EQ(both, mocks);
}

/* The driver's packets are never larger than what the mock takes for the engine's limit. SDMA 4's are
 * smaller: see BW_AMD_SDMA_4_COPY_BYTES_MAX. */
static void sdma_limits_are_the_same(void)
{
    static const struct {
        uint32_t generation, family, ratio;
    } rows[] = {{BW_AMD_SDMA_5, BW_MOCK_GFX11, 1},
                {BW_AMD_SDMA_5, BW_MOCK_GFX12, 1},
                {BW_AMD_SDMA_4, BW_MOCK_GFX9, 256}};
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++) {
        const struct bw_mock_sdma *copy = bw_mock_sdma_find(BW_AMD_SDMA_OP_COPY_LINEAR, 0, rows[i].family);
        const struct bw_mock_sdma *fill = bw_mock_sdma_find(BW_AMD_SDMA_OP_CONST_FILL, 0, rows[i].family);
        BW_EQ(bw_amd_sdma_copy_bytes_max(rows[i].generation) * rows[i].ratio, copy->bytes_max);
        BW_EQ(bw_amd_sdma_fill_bytes_max(rows[i].generation) * rows[i].ratio, fill->bytes_max);
    }
}

/* What the mock executes the decoder prints. */
static void the_mock_knows_no_packet_more(void)
{
    for (uint32_t opcode = 0; opcode < 0x100; opcode++) {
        bool known = bw_amd_pm4_packet(BW_AMD_PM4_GCR, opcode) && bw_amd_pm4_packet(BW_AMD_PM4_COHER, opcode);
        if (!BW_TRUE(known || !bw_mock_pm4_find(opcode, BW_MOCK_GFX_ALL)))
            printf("      PM4 opcode 0x%02x\n", opcode);
        for (uint32_t sub_opcode = 0; sub_opcode < 0x100; sub_opcode++) {
            bool rdna = bw_mock_sdma_find(opcode, sub_opcode, BW_MOCK_GFX11) != NULL;
            bool gfx9 = bw_mock_sdma_find(opcode, sub_opcode, BW_MOCK_GFX9) != NULL;
            if (!BW_TRUE((!rdna || bw_amd_sdma_packet(BW_AMD_SDMA_5, opcode, sub_opcode)) &&
                         (!gfx9 || bw_amd_sdma_packet(BW_AMD_SDMA_4, opcode, sub_opcode))))
                printf("      SDMA opcode %u, sub-opcode %u\n", opcode, sub_opcode);
        }
    }
}

static void chips_have_the_same_registers_and_slots(void)
{
    uint32_t count, both = 0;
    const struct bw_amd_arch *arch = bw_amd_arch_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        const struct bw_mock_chip *chip = bw_mock_chip_find(arch[i].name);
        if (!BW_TRUE(chip != NULL)) {
            printf("      %s has no mock\n", arch[i].name);
            continue;
        }
        both++;
        BW_EQ(arch[i].simds_per_cu, chip->simd_per_cu);
        BW_EQ(arch[i].waves_per_simd, chip->waves_per_simd);
        BW_EQ(arch[i].vgprs_per_simd, chip->wave64_vgprs);
        BW_EQ(arch[i].vgpr_granule, chip->wave64_vgpr_granule);
        BW_EQ(arch[i].lds_bytes, chip->lds_kib << 10);
    }
    BW_EQ(both, count);
    BW_TRUE(bw_mock_chip_at(count) == NULL); /* nor the mock a chip that the driver does not know */
}

BW_TEST_MAIN("amd two readings",
             {"chips_have_the_same_registers_and_slots", chips_have_the_same_registers_and_slots},
             {"registers_lie_at_the_same_places", registers_lie_at_the_same_places},
             {"register_fields_exist_on_both_sides", register_fields_exist_on_both_sides},
             {"pm4_packets_have_the_same_shape", pm4_packets_have_the_same_shape},
             {"sdma_packets_have_the_same_shape", sdma_packets_have_the_same_shape},
             {"aql_packets_have_the_same_shape", aql_packets_have_the_same_shape},
             {"sdma_limits_are_the_same", sdma_limits_are_the_same},
             {"the_mock_knows_no_packet_more", the_mock_knows_no_packet_more})
