/* Checks shared by the PM4 and SDMA tests: golden words from a file, and encode/decode over random values. */
#ifndef BW_TESTS_AMD_PACKET_CHECK_H
#define BW_TESTS_AMD_PACKET_CHECK_H

#include <bellwire/err.h>

#include "base/rng.h"
#include "base/text.h"
#include "drivers/amd/packet.h"
#include "tests/check.h"

enum { GOLDEN_LINES_MAX = 64, GOLDEN_WORDS_MAX = 16 };

/* tests/golden/amd/<file>: lines "name: words", each of which a test must use. */
struct golden {
    const char *file;
    struct golden_line {
        char name[40];
        uint32_t words[GOLDEN_WORDS_MAX], word_count;
        bool used;
    } lines[GOLDEN_LINES_MAX];
    uint32_t line_count;
};

static inline void golden_line_read(struct golden_line *line, const char *text)
{
    const char *colon = strchr(text, ':');
    char *end;
    if (!BW_TRUE(colon && (size_t)(colon - text) < sizeof line->name))
        return;
    snprintf(line->name, sizeof line->name, "%.*s", (int)(colon - text), text);
    for (const char *at = colon + 1; BW_TRUE(line->word_count <= GOLDEN_WORDS_MAX); at = end) {
        unsigned long word = strtoul(at, &end, 16);
        if (end == at)
            break;
        if (line->word_count < GOLDEN_WORDS_MAX)
            line->words[line->word_count] = (uint32_t)word;
        line->word_count++;
    }
}

static inline void golden_load(struct golden *golden, const char *file)
{
    char path[512], text[1024];
    *golden = (struct golden){.file = file};
    snprintf(path, sizeof path, "%s/tests/golden/amd/%s", BW_SOURCE_DIR, file);
    FILE *stream = fopen(path, "r");
    while (BW_TRUE(stream != NULL) && fgets(text, sizeof text, stream))
        if (text[0] != '#' && BW_TRUE(golden->line_count < GOLDEN_LINES_MAX))
            golden_line_read(&golden->lines[golden->line_count++], text);
    if (stream)
        fclose(stream);
}

/* The line's words, used now; NULL when there is none. */
static inline const struct golden_line *golden_use(struct golden *golden, const char *name)
{
    for (uint32_t i = 0; i < golden->line_count; i++)
        if (strcmp(golden->lines[i].name, name) == 0) {
            golden->lines[i].used = true;
            return &golden->lines[i];
        }
    BW_TRUE(!"golden line");
    printf("      %s has no line \"%s\"\n", golden->file, name);
    return NULL;
}

/* What the builder appended since `first` equals the golden line. */
static inline void golden_check(struct golden *golden, const char *name, const struct bw_encoder *encoder,
                                uint32_t first)
{
    const struct golden_line *line = golden_use(golden, name);
    if (!line || !BW_EQ(encoder->count - first, line->word_count)) {
        printf("      golden line \"%s\"\n", name);
        return;
    }
    for (uint32_t i = 0; i < line->word_count; i++)
        if (!BW_EQ(encoder->words[first + i], line->words[i]))
            printf("      golden line \"%s\", word %u\n", name, i);
}

/* A packet that no builder makes: the golden words taken apart are these fields, in the table's order. */
static inline void golden_decodes(struct golden *golden, const char *name,
                                  void (*decode)(uint32_t generation, const uint32_t *words, uint64_t count,
                                                 struct bw_amd_decoded *decoded),
                                  uint32_t generation, const uint32_t *fields, uint32_t field_count)
{
    const struct golden_line *line = golden_use(golden, name);
    struct bw_amd_decoded decoded;
    if (!line)
        return;
    decode(generation, line->words, line->word_count, &decoded);
    BW_STR(decoded.problem, "");
    BW_EQ(decoded.word_count, line->word_count);
    if (!BW_TRUE(decoded.packet != NULL) || !BW_EQ(decoded.packet->field_count, field_count))
        return;
    for (uint32_t i = 0; i < field_count; i++)
        if (!BW_EQ(decoded.values[i], fields[i]))
            printf("      golden line \"%s\", field %s\n", name, decoded.packet->fields[i].name);
}

/* Each line was used, and each packet of the table has one: `has` says whether a line is of a packet. */
static inline void
golden_is_complete(const struct golden *golden, const struct bw_amd_packet *packets, uint32_t packet_count,
                   bool (*has)(const struct bw_amd_packet *packet, const struct golden_line *line))
{
    for (uint32_t i = 0; i < golden->line_count; i++)
        if (!BW_TRUE(golden->lines[i].used))
            printf("      no test uses line \"%s\" of %s\n", golden->lines[i].name, golden->file);
    for (uint32_t p = 0; p < packet_count; p++) {
        bool found = false;
        for (uint32_t i = 0; i < golden->line_count && !found; i++)
            found = has(&packets[p], &golden->lines[i]);
        if (!BW_TRUE(found))
            printf("      %s has no line of %s, %u words\n", golden->file, packets[p].name,
                   packets[p].word_count);
    }
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
