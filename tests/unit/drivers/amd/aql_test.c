/* Goal: AQL words are those of the HSA specification, the decoder inverts the encoder, what the specification
 * does not allow is named, and no words upset the printer. */
#include "base/bits.h"
#include "drivers/amd/aql.h"

#include "tests/unit/drivers/amd/packet_check.h"

static bool line_is_of(const struct bw_amd_packet *packet, const struct golden_line *line)
{
    struct bw_amd_decoded decoded;
    bw_amd_aql_decode(0, line->words, line->word_count, &decoded);
    return decoded.packet == packet && !decoded.problem[0];
}

/* Low and high word of the addresses in the golden file, and its values. */
#define A 0x22334440, 0x7f11
#define K 0x22335000, 0x7f11
#define S 0x22336040, 0x7f11

static void words_are_golden(void)
{
    struct golden golden;
    uint32_t packet_count;
    const struct bw_amd_packet *packets = bw_amd_aql_packets(&packet_count);
    golden_load(&golden, "aql.txt");
#define DECODES(name, ...)                                                               \
    golden_decodes(&golden, name, bw_amd_aql_decode, 0, (const uint32_t[]){__VA_ARGS__}, \
                   sizeof((const uint32_t[]){__VA_ARGS__}) / 4)
    DECODES("kernel_dispatch", 1, 2, 1, 3, 64, 2, 1, 640, 8, 3, 48, 4096, A, K, 0x55667788, 0x11223344, S);
    DECODES("agent_dispatch", 0, 1, 2, 0x8001, A, 1, 0, 2, 0, 3, 0, 5, 0x40, S);
    DECODES("barrier_and", 1, 0, 2, A, K, 0, 0, 0, 0, S, S);
    DECODES("barrier_or", 0, 2, 0, 0, 0, A, 0, 0, 0, 0, 0, 0, 0, 0);
    DECODES("pm4_ib", 1, 2, 2, 0xc0023f00, 0x22334440 >> 2, 0x7f11, 5, 8, 10, S);
    DECODES("barrier_value", 1, 2, 2, A, 0xfffffffe, 0xffffffff, 0xffffffff, 0xffffffff, 3, S);
    DECODES("invalid", 0);
    golden_is_complete(&golden, packets, packet_count, line_is_of);
}

static void decode_inverts_encode(void)
{
    struct bw_rng rng = {16};
    uint32_t count;
    const struct bw_amd_packet *packets = bw_amd_aql_packets(&count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t header = packets[i].opcode | packets[i].sub_opcode << 16;
        fields_are_disjoint(&packets[i], packets[i].opcode ? 0xff : 0xff00ff);
        for (int round = 0; round < 200; round++) {
            uint32_t values[BW_AMD_FIELDS_MAX], words[BW_AMD_AQL_WORDS] = {0};
            struct bw_amd_decoded decoded;
            random_values(&rng, &packets[i], values);
            bw_amd_packet_pack(&packets[i], header, values, words);
            bw_amd_aql_decode(0, words, BW_AMD_AQL_WORDS, &decoded);
            if (!BW_TRUE(decoded.packet == &packets[i]) || !BW_EQ(decoded.word_count, BW_AMD_AQL_WORDS) ||
                !BW_TRUE(values_equal(&packets[i], decoded.values, values))) {
                printf("      %s\n", packets[i].name);
                return;
            }
        }
    }
}

static void what_is_wrong_is_named(void)
{
    static const struct {
        const char *problem;
        uint32_t count, words[BW_AMD_AQL_WORDS];
    } wrongs[] = {
        {"unknown type 6", 16, {6}},
        {"unknown vendor format 9", 16, {9 << 16}},
        {"cut off: 16 words, 15 present", 15, {3}},
        {"reserved bits 0x00002000 set in word 0", 16, {3 | 1 << 13}},
        {"reserved bits 0x00010000 set in word 0", 16, {3 | 1 << 16}},
        {"reserved bits 0x01000000 set in word 0", 16, {1 << 16 | 1 << 24, 0xc0023f00, 0, 0, 0, 10}},
        {"reserved bits 0x00000001 set in word 1", 16, {5, 1}},
        {"reserved bits 0x80000000 set in word 13", 16, {3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1u << 31}},
        {"reserved bits 0x00010000 set in word 2",
         16,
         {2 | 1 << 16, 1 | 1 << 16, 1 | 1 << 16, 1, 1, 1, 0, 0, 64}},
        {"reserved bits 0x00000001 set in word 6", 16, {1 << 16, 0xc0023f00, 0, 0, 0, 10, 1}},
        {"reserved bits 0x00000001 set in word 9", 16, {2 << 16, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
        {"fence scope 3 in the header", 16, {3 | 3 << 9}},
        {"fence scope 3 in the header", 16, {5 | 3 << 11}},
        {"a grid of 0 dimensions", 16, {2}},
        {"dimension 1 of 1: grid 2, work-group 1", 16, {2 | 1 << 16, 64 | 1 << 16, 1, 64, 2, 1, 0, 0, 64}},
        {"dimension 0 of 1: grid 0, work-group 64", 16, {2 | 1 << 16, 64 | 1 << 16, 1, 0, 1, 1, 0, 0, 64}},
        {"kernel object 0x0: not at a multiple of 64", 16, {2 | 1 << 16, 64 | 1 << 16, 1, 64, 1, 1}},
        {"kernel object 0x20: not at a multiple of 64",
         16,
         {2 | 1 << 16, 64 | 1 << 16, 1, 64, 1, 1, 0, 0, 32}},
        {"PM4 header 0xc0033f00 with 10 words remaining: expected INDIRECT_BUFFER, 0xc0023f00, with 10",
         16,
         {1 << 16, 0xc0033f00, 0, 0, 0, 10}},
        {"PM4 header 0xc0023f00 with 9 words remaining: expected INDIRECT_BUFFER, 0xc0023f00, with 10",
         16,
         {1 << 16, 0xc0023f00, 0, 0, 0, 9}},
        {"condition 4: expected 0 to 3", 16, {2 << 16, 0, 0, 0, 0, 0, 0, 0, 4}},
        {"", 16, {1, 1, 2, 3}}, /* an invalid slot may hold anything */
    };
    for (size_t i = 0; i < BW_COUNT_OF(wrongs); i++) {
        struct bw_amd_decoded decoded;
        bw_amd_aql_decode(0, wrongs[i].words, wrongs[i].count, &decoded);
        BW_STR(decoded.problem, wrongs[i].problem);
        BW_EQ(decoded.word_count, BW_AMD_AQL_WORDS);
    }
}

static void any_words_are_printed(void)
{
    struct bw_rng rng = {17};
    for (int round = 0; round < 3000; round++) {
        uint32_t words[50], count = (uint32_t)bw_rng_below(&rng, 51);
        struct bw_text text = {0};
        for (uint32_t i = 0; i < count; i++)
            words[i] = (uint32_t)bw_rng_next(&rng) & (i % 16 ? ~0u : 0xff0307ff);
        uint64_t problems = bw_amd_aql_print(words, count, &text);
        BW_TRUE(problems <= bw_div_up(count, 16) && (problems || count % 16 == 0));
        bw_text_free(&text);
    }
}

BW_TEST_MAIN("amd aql", {"words_are_golden", words_are_golden},
             {"decode_inverts_encode", decode_inverts_encode},
             {"what_is_wrong_is_named", what_is_wrong_is_named},
             {"any_words_are_printed", any_words_are_printed})
