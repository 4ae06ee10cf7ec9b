/* Checks shared by the PM4 and SDMA tests: golden words from a file, and encode/decode over random values. */
#ifndef BW_TESTS_AMD_PACKET_CHECK_H
#define BW_TESTS_AMD_PACKET_CHECK_H

#include <bellwire/err.h>

#include "base/rng.h"
#include "base/text.h"
#include "drivers/amd/packet.h"
#include "tests/check.h"

/* Words of the line "name: ..." in tests/golden/amd/<file>; 0 when there is none. */
static inline uint32_t golden_read(const char *file, const char *name, uint32_t *words, uint32_t words_max)
{
    char path[512], line[1024];
    snprintf(path, sizeof path, "%s/tests/golden/amd/%s", BW_SOURCE_DIR, file);
    FILE *stream = fopen(path, "r");
    uint32_t count = 0;
    size_t name_length = strlen(name);
    while (stream && fgets(line, sizeof line, stream)) {
        if (strncmp(line, name, name_length) != 0 || line[name_length] != ':')
            continue;
        char *at = line + name_length + 1, *end;
        for (; count < words_max; at = end) {
            unsigned long word = strtoul(at, &end, 16);
            if (end == at)
                break;
            words[count++] = (uint32_t)word;
        }
    }
    if (stream)
        fclose(stream);
    return count;
}

/* What the builder appended since `first` equals the golden line. */
static inline void golden_check(const char *file, const char *name, const struct bw_encoder *encoder,
                                uint32_t first)
{
    uint32_t words[64], count = golden_read(file, name, words, 64);
    if (!BW_TRUE(count > 0) || !BW_EQ(encoder->count - first, count)) {
        printf("      golden line \"%s\"\n", name);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!BW_EQ(encoder->words[first + i], words[i]))
            printf("      golden line \"%s\", word %u\n", name, i);
}

/* Random values of every field of the packet that fit. */
static inline void random_values(struct bw_rng *rng, const struct bw_amd_packet *packet, uint32_t *values)
{
    for (uint32_t i = 0; i < packet->field_count; i++) {
        uint32_t max = bw_amd_bits_max(packet->fields[i].bits);
        values[i] = (uint32_t)bw_rng_next(rng) & max;
    }
}

/* No two fields of the packet share a bit, and all lie inside it. */
static inline void fields_are_disjoint(const struct bw_amd_packet *packet, uint32_t header_bits)
{
    uint32_t used[BW_AMD_EMIT_WORDS_MAX] = {header_bits};
    for (uint32_t i = 0; i < packet->field_count; i++) {
        uint32_t bits = packet->fields[i].bits;
        uint32_t mask = bw_amd_bits_max(bits) << bw_amd_bits_low(bits);
        BW_TRUE(bw_amd_bits_word(bits) < packet->word_count);
        if (!BW_EQ(used[bw_amd_bits_word(bits)] & mask, 0))
            printf("      %s.%s\n", packet->name, packet->fields[i].name);
        used[bw_amd_bits_word(bits)] |= mask;
    }
}

static inline bool values_equal(const struct bw_amd_packet *packet, const uint32_t *observed,
                                const uint32_t *expected)
{
    for (uint32_t i = 0; i < packet->field_count; i++)
        if (observed[i] != expected[i])
            return false;
    return true;
}

#endif
