/* Goal: SDMA words are those of the public definitions, the decoder inverts the encoder, and no words upset
 * the printer. */
#include "base/bits.h"
#include "drivers/amd/sdma.h"

#include "tests/unit/drivers/amd/packet_check.h"

#define A bw_operand_constant(0x7f1122334450)
#define B bw_operand_constant(0x123456789a8)

static bool line_is_of(const struct bw_amd_packet *packet, const struct golden_line *line)
{
    struct bw_amd_decoded decoded;
    bw_amd_sdma_decode(packet->generations & -packet->generations, line->words, line->word_count, &decoded);
    return decoded.packet == packet && !decoded.problem[0];
}

static void words_are_golden(void)
{
    struct golden golden;
    struct bw_encoder e = {0};
    uint32_t packet_count;
    const struct bw_amd_packet *packets = bw_amd_sdma_packets(&packet_count);
    golden_load(&golden, "sdma.txt");
    const uint32_t data[] = {5, 6};
    uint32_t first = 0;
#define GOLDEN(name)                        \
    golden_check(&golden, name, &e, first); \
    first = e.count
    bw_amd_sdma_copy_linear(&e, BW_AMD_SDMA_5, B, A, 1000);
    GOLDEN("copy_linear");
    bw_amd_sdma_const_fill(&e, BW_AMD_SDMA_5, A, 0xabcd, 4096);
    GOLDEN("const_fill");
    bw_amd_sdma_write_linear(&e, A, data, 2);
    GOLDEN("write_linear");
    bw_amd_sdma_fence(&e, BW_AMD_SDMA_5, A, bw_operand_constant(0x77), 0);
    GOLDEN("fence");
    bw_amd_sdma_trap(&e, 42);
    GOLDEN("trap");
    bw_amd_sdma_poll_memory(&e, A, bw_operand_constant(0x77), UINT32_MAX);
    GOLDEN("poll_memory");
    bw_amd_sdma_timestamp(&e, B);
    GOLDEN("timestamp");
    bw_amd_sdma_nop(&e, 3);
    GOLDEN("nop");
    uint32_t ib[BW_AMD_SDMA_IB_PACKET_WORDS];
    bw_amd_sdma_indirect(ib, 0x7f1122334440, 0x1238);
    for (int i = 0; i < BW_AMD_SDMA_IB_PACKET_WORDS; i++)
        bw_encoder_word(&e, ib[i]);
    GOLDEN("indirect");
    bw_amd_sdma_copy_linear(&e, BW_AMD_SDMA_4, B, A, 1000);
    GOLDEN("copy_linear_v4");
    bw_amd_sdma_const_fill(&e, BW_AMD_SDMA_4, A, 0xabcd, 4096);
    GOLDEN("const_fill_v4");
    bw_amd_sdma_fence(&e, BW_AMD_SDMA_4, A, bw_operand_constant(0x77), 0);
    GOLDEN("fence_v4");
    const uint32_t condition[] = {3, 1, 0x22334450 >> 2, 0x7f11, 0x77, 12};
    golden_decodes(&golden, "cond_exe", bw_amd_sdma_decode, BW_AMD_SDMA_5, condition, 6);
    golden_decodes(&golden, "cond_exe_v4", bw_amd_sdma_decode, BW_AMD_SDMA_4, condition + 2, 4);
    const uint32_t atomic[] = {3, 1, 1, 0, 0x2f, 0x22334450 >> 2, 0x7f11, 0x456789a8, 0x123, 5, 6, 16};
    golden_decodes(&golden, "atomic", bw_amd_sdma_decode, BW_AMD_SDMA_5, atomic, 12);
    golden_decodes(&golden, "atomic_v4", bw_amd_sdma_decode, BW_AMD_SDMA_4, atomic + 2, 10);
    const uint32_t gcr[] = {0x22334480 >> 7, 0x7f11, 0x83a0, 1, 0x22335080 >> 7, 0x7f11, 5};
    golden_decodes(&golden, "gcr_req", bw_amd_sdma_decode, BW_AMD_SDMA_5, gcr, 7);
    golden_is_complete(&golden, packets, packet_count, line_is_of);
    bw_encoder_free(&e);
}

static void counts_hold_their_maximum(void)
{
    struct bw_encoder e = {0};
    struct bw_amd_decoded decoded;
    static const struct {
        uint32_t generation;
        uint64_t bytes_max;
    } rows[] = {{BW_AMD_SDMA_4, 4 << 20}, {BW_AMD_SDMA_5, 1 << 30}};
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++) {
        uint32_t generation = rows[i].generation;
        BW_EQ(bw_amd_sdma_copy_bytes_max(generation), rows[i].bytes_max);
        BW_EQ(bw_amd_sdma_fill_bytes_max(generation), rows[i].bytes_max);
        uint64_t first = e.count;
        bw_amd_sdma_copy_linear(&e, generation, B, A, rows[i].bytes_max);
        bw_amd_sdma_const_fill(&e, generation, B, 1, rows[i].bytes_max);
        bw_amd_sdma_decode(generation, e.words + first, e.count - first, &decoded);
        BW_STR(decoded.problem, "");
        bw_amd_sdma_decode(generation, e.words + first + 7, e.count - first - 7, &decoded);
        BW_STR(decoded.problem, "");
    }
    /* The field itself ends there. */
    e.words[BW_AMD_SDMA_WORDS_COPY_LINEAR + BW_AMD_SDMA_WORDS_CONST_FILL + 1] |= 1u << 30;
    bw_amd_sdma_decode(BW_AMD_SDMA_5, e.words + BW_AMD_SDMA_WORDS_COPY_LINEAR + BW_AMD_SDMA_WORDS_CONST_FILL,
                       7, &decoded);
    BW_STR(decoded.problem, "reserved bits 0x40000000 set in word 1");
    bw_encoder_free(&e);
}

static void decode_inverts_encode(void)
{
    struct bw_rng rng = {12};
    uint32_t count;
    const struct bw_amd_packet *packets = bw_amd_sdma_packets(&count);
    for (uint32_t i = 0; i < count; i++) {
        fields_are_disjoint(&packets[i], 0xffff);
        for (int round = 0; round < 200; round++) {
            uint32_t values[BW_AMD_FIELDS_MAX], words[64] = {0};
            random_values(&rng, &packets[i], values);
            uint32_t tail = 0;
            if (packets[i].tail != BW_AMD_TAIL_NONE) {
                tail = 1 + (uint32_t)bw_rng_below(&rng, 20);
                uint32_t bits =
                    packets[i].opcode == 0 ? BW_AMD_SDMA_NOP_COUNT : BW_AMD_SDMA_WRITE_LINEAR_COUNT;
                for (uint32_t k = 0; k < packets[i].field_count; k++)
                    if (packets[i].fields[k].bits == bits)
                        values[k] = packets[i].opcode == 0 ? tail : tail - 1;
            }
            bw_amd_packet_pack(&packets[i], packets[i].opcode | packets[i].sub_opcode << 8, values, words);
            struct bw_amd_decoded decoded;
            uint32_t generation = packets[i].generations & -packets[i].generations;
            bw_amd_sdma_decode(generation, words, 64, &decoded);
            if (!BW_TRUE(decoded.packet == &packets[i]) ||
                !BW_EQ(decoded.word_count, packets[i].word_count + tail) ||
                !BW_EQ(decoded.tail_count, tail) ||
                !BW_TRUE(values_equal(&packets[i], decoded.values, values))) {
                printf("      %s\n", packets[i].name);
                break;
            }
        }
    }
}

static void printing_says_what_is_wrong(void)
{
    struct bw_encoder e = {0};
    bw_amd_sdma_fence(&e, BW_AMD_SDMA_5, A, bw_operand_constant(0x77), 0);
    bw_encoder_word(&e, 0x0000003f);
    bw_amd_sdma_trap(&e, 42);
    e.words[6] |= 0x80000000;
    struct bw_text text = {0};
    BW_EQ(bw_amd_sdma_print(e.words, e.count, &text), 2);
    BW_TRUE(strstr(bw_text_string(&text), "0x0000  FENCE (4 words)\n        MTYPE = 0x3\n") != NULL);
    BW_TRUE(strstr(bw_text_string(&text), "0x0010  0x0000003f\n      ! unknown opcode 63, sub-opcode 0\n") !=
            NULL);
    BW_TRUE(strstr(bw_text_string(&text),
                   "INT_CONTEXT = 0x2a\n      ! reserved bits 0x80000000 set in word 1\n") != NULL);
    bw_text_free(&text);
    bw_encoder_free(&e);
}

static void garbage_prints_and_ends(void)
{
    struct bw_rng rng = {98};
    for (int round = 0; round < 300; round++) {
        uint32_t count = 1 + (uint32_t)bw_rng_below(&rng, 300);
        uint32_t *words = malloc(count * sizeof *words);
        for (uint32_t i = 0; i < count; i++) {
            words[i] = (uint32_t)bw_rng_next(&rng);
            if (bw_rng_below(&rng, 2))
                words[i] &= 0x000f;
        }
        struct bw_text text = {0};
        uint64_t problems =
            bw_amd_sdma_print_generation(round & 1 ? BW_AMD_SDMA_4 : BW_AMD_SDMA_5, words, count, &text);
        BW_TRUE(problems <= count && text.length > 0);
        bw_text_free(&text);
        free(words);
    }
}

BW_TEST_MAIN("amd sdma", {"words_are_golden", words_are_golden},
             {"counts_hold_their_maximum", counts_hold_their_maximum},
             {"decode_inverts_encode", decode_inverts_encode},
             {"printing_says_what_is_wrong", printing_says_what_is_wrong},
             {"garbage_prints_and_ends", garbage_prints_and_ends})
