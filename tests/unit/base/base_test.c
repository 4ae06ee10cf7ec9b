/* Goal: the containers that everything stands on behave, also at their edges, checked against plain models.
 */
#include <bellwire/err.h>

#include <errno.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/map.h"
#include "base/number.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/vec.h"
#include "tests/check.h"

static void err_line_names_everything(void)
{
    struct bw_err err = {0};
    BW_EQ(bw_fail(&err, -EINVAL, "elf", "section %u", 7u), -EINVAL);
    bw_err_expected(&err, "64-bit");
    bw_err_observed(&err, "32-bit");
    bw_err_device(&err, "amd:0");
    bw_err_hint(&err, "rebuild it");
    char line[256];
    int length = bw_err_format(&err, line, sizeof line);
    BW_STR(line, "elf amd:0: section 7: expected 64-bit, observed 32-bit (EINVAL). rebuild it");
    BW_EQ(length, strlen(line));
    BW_EQ(bw_fail(NULL, -EIO, "x", "y"), -EIO);
    bw_err_hint(NULL, "nothing to add to");
    bw_err_format(NULL, line, sizeof line);
    BW_STR(line, "no error");
}

static void err_text_is_cut_not_overrun(void)
{
    struct bw_err err;
    char longest[2 * sizeof err];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    bw_fail(&err, -EIO, longest, "%s", longest);
    bw_err_hint(&err, "%s", longest);
    BW_EQ(strlen(err.what), sizeof err.what - 1);
    BW_EQ(strlen(err.subsystem), sizeof err.subsystem - 1);
    BW_EQ(strlen(err.hint), sizeof err.hint - 1);
}

static void arena_memory_is_zero_aligned_and_disjoint(void)
{
    struct bw_arena arena = {0};
    struct bw_rng rng = {1};
    unsigned char *last = NULL;
    size_t last_size = 0;
    for (int i = 0; i < 2000; i++) {
        size_t size = bw_rng_below(&rng, i % 100 == 0 ? 200000 : 300);
        unsigned char *memory = bw_arena_alloc(&arena, size);
        BW_EQ((uintptr_t)memory % 16, 0);
        for (size_t k = 0; k < size; k++)
            if (memory[k] != 0) {
                BW_EQ(memory[k], 0);
                break;
            }
        memset(memory, 0xa5, size);
        if (last && last_size)
            BW_EQ(last[last_size - 1], 0xa5);
        last = memory;
        last_size = size;
    }
    BW_TRUE(bw_arena_alloc(&arena, SIZE_MAX - 8) == NULL);
    BW_STR(bw_arena_string(&arena, "bell"), "bell");
    bw_arena_free(&arena);
    BW_EQ(arena.used_bytes, 0);
}

static void map_agrees_with_a_plain_table(void)
{
    enum { KEYS = 512, STEPS = 50000 };
    static uint64_t model[KEYS];
    static bool present[KEYS];
    struct bw_map map = {0};
    struct bw_rng rng = {42};
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        uint64_t key = bw_rng_below(&rng, KEYS), value = bw_rng_next(&rng), got = 0;
        switch (bw_rng_below(&rng, 3)) {
        case 0:
            BW_EQ(bw_map_set(&map, key * 0x100000000ull, value), 0);
            count += !present[key];
            present[key] = true;
            model[key] = value;
            break;
        case 1: {
            bool removed = bw_map_remove(&map, key * 0x100000000ull);
            if (removed != present[key])
                BW_EQ(removed, present[key]);
            count -= present[key];
            present[key] = false;
            break;
        }
        default: {
            bool found = bw_map_get(&map, key * 0x100000000ull, &got);
            if (found != present[key] || (found && got != model[key]))
                BW_EQ(got, model[key]);
            break;
        }
        }
    }
    BW_EQ(map.count, count);
    size_t cursor = 0, seen = 0;
    uint64_t key, value;
    while (bw_map_next(&map, &cursor, &key, &value)) {
        seen++;
        BW_EQ(value, model[key / 0x100000000ull]);
    }
    BW_EQ(seen, count);
    bw_map_free(&map);
}

static void vec_and_text_grow(void)
{
    BW_VEC(uint32_t) words = {0};
    for (uint32_t i = 0; i < 1000; i++)
        BW_EQ(bw_vec_push(&words, i * 3), 0);
    BW_EQ(words.count, 1000);
    BW_EQ(words.data[999], 2997);
    bw_vec_free(&words);
    struct bw_text text = {0};
    BW_STR(bw_text_string(&text), "");
    for (int i = 0; i < 500; i++)
        bw_text_add(&text, "%d,", i % 10);
    BW_EQ(text.length, 1000);
    BW_EQ(strlen(bw_text_string(&text)), 1000);
    bw_text_free(&text);
}

static void bits_at_their_edges(void)
{
    BW_EQ(bw_align_up(0, 4096), 0);
    BW_EQ(bw_align_up(1, 4096), 4096);
    BW_EQ(bw_align_down(4097, 4096), 4096);
    BW_EQ(bw_div_up(0, 7), 0);
    BW_EQ(bw_div_up(UINT64_MAX, 2), 1ull << 63);
    BW_EQ(bw_log2(1), 0);
    BW_EQ(bw_log2(UINT64_MAX), 63);
    BW_EQ(bw_field(0xdeadbeef, 0, 31), 0xdeadbeef);
    BW_EQ(bw_field(0xdeadbeef, 28, 31), 0xd);
    BW_EQ(bw_is_pow2(0), 0);
    BW_EQ(bw_is_pow2(1ull << 63), 1);
}

static void text_that_does_not_fit_says_so(void)
{
    char text[8];
    bw_text_fit(text, sizeof text, "%u", 1234567);
    BW_STR(text, "1234567");
    bw_text_fit(text, sizeof text, "%u", 12345678);
    BW_STR(text, "1234...");
    bw_text_fit(text, sizeof text, "123\xc3\xa4%s", "more"); /* within the two bytes of a letter */
    BW_STR(text, "123...");
    bw_text_fit(text, 4, "%s", "12345");
    BW_STR(text, "...");
}

static void numbers_are_read_strictly(void)
{
    static const struct {
        const char *text;
        int code, size_code, integer_code;
        uint64_t value;
    } rows[] = {
        {"0", 0, 0, 0, 0},
        {"5", 0, 0, 0, 5},
        {"010", 0, 0, 0, 10}, /* never octal */
        {"0x1f", 0, -EINVAL, 0, 31},
        {"9223372036854775807", 0, 0, 0, INT64_MAX},
        {"18446744073709551615", 0, 0, -ERANGE, UINT64_MAX},
        {"18446744073709551616", -ERANGE, -ERANGE, -ERANGE, 0},
        {"0x10000000000000000", -ERANGE, -EINVAL, -ERANGE, 0},
        {"2k", -EINVAL, 0, -EINVAL, 2048},
        {"3T", -EINVAL, 0, -EINVAL, 3ull << 40},
        {"16777216T", -EINVAL, -ERANGE, -EINVAL, 0},
        {"2KB", -EINVAL, -EINVAL, -EINVAL, 0},
        {"", -EINVAL, -EINVAL, -EINVAL, 0},
        {"K", -EINVAL, -EINVAL, -EINVAL, 0},
        {" 5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"\t5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"5 ", -EINVAL, -EINVAL, -EINVAL, 0},
        {"+5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"--5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"- 5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"-+5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"0x", -EINVAL, -EINVAL, -EINVAL, 0},
        {"0x+5", -EINVAL, -EINVAL, -EINVAL, 0},
        {"5e3", -EINVAL, -EINVAL, -EINVAL, 0},
    };
    for (size_t i = 0; i < BW_COUNT_OF(rows); i++) {
        uint64_t value = 77, size = 77;
        int64_t integer = 77;
        BW_EQ(bw_number_parse(rows[i].text, &value), rows[i].code);
        BW_EQ(value, rows[i].code ? 77 : rows[i].value);
        BW_EQ(bw_size_parse(rows[i].text, &size), rows[i].size_code);
        BW_EQ(size, rows[i].size_code ? 77 : rows[i].value);
        BW_EQ(bw_integer_parse(rows[i].text, &integer), rows[i].integer_code);
        BW_EQ(integer, rows[i].integer_code ? 77 : (int64_t)rows[i].value);
    }
    int64_t integer = 0;
    BW_EQ(bw_integer_parse("-9223372036854775808", &integer), 0);
    BW_EQ(integer, INT64_MIN);
    BW_EQ(bw_integer_parse("-9223372036854775809", &integer), -ERANGE);
    const char *at = "3x0x4"; /* a shape: no hexadecimal in it */
    uint64_t size;
    BW_EQ(bw_number_take(&at, &size), 0);
    BW_STR(at, "x0x4");
    at++;
    BW_EQ(bw_number_take(&at, &size), 0);
    BW_STR(at, "x4");
    static const char *const not_real[] = {"", " 1", "+1", "x", "1e999"};
    for (size_t i = 0; i < BW_COUNT_OF(not_real); i++) {
        double real;
        at = not_real[i];
        BW_TRUE(bw_real_take(&at, &real) < 0);
        BW_TRUE(at == not_real[i]);
    }
    double real = 0;
    at = "-1.5e-3,";
    BW_EQ(bw_real_take(&at, &real), 0);
    BW_TRUE(real == -1.5e-3);
    BW_STR(at, ",");
}

BW_TEST_MAIN("base", {"numbers_are_read_strictly", numbers_are_read_strictly},
             {"err_line_names_everything", err_line_names_everything},
             {"err_text_is_cut_not_overrun", err_text_is_cut_not_overrun},
             {"arena_memory_is_zero_aligned_and_disjoint", arena_memory_is_zero_aligned_and_disjoint},
             {"map_agrees_with_a_plain_table", map_agrees_with_a_plain_table},
             {"vec_and_text_grow", vec_and_text_grow},
             {"text_that_does_not_fit_says_so", text_that_does_not_fit_says_so},
             {"bits_at_their_edges", bits_at_their_edges})
