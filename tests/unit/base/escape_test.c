/* Goal: foreign text is harmless on a terminal and readable in a log, whatever bytes it has; errors carry it
 * escaped. */
#include <bellwire/text.h>

#include <errno.h>

#include <bellwire/err.h>

#include "base/rng.h"
#include "tests/check.h"

enum style { LINE, LINES, JSON };

static const char *escaped(enum style style, const char *text, size_t bytes, char *to, size_t to_bytes)
{
    size_t length = style == LINE    ? bw_text_escape(text, bytes, to, to_bytes)
                    : style == LINES ? bw_text_escape_lines(text, bytes, to, to_bytes)
                                     : bw_text_escape_json(text, bytes, to, to_bytes);
    BW_EQ(length, strlen(to));
    return to;
}

static void what_acts_on_a_terminal_becomes_visible(void)
{
    static const struct {
        const char *text, *line, *lines, *json;
    } rows[] = {
        {"", "", "", ""},
        {"plain 'text' \\ %s", "plain 'text' \\ %s", "plain 'text' \\ %s", "plain 'text' \\ %s"},
        {"a\x1b[31mred", "a\\x1b[31mred", "a\\x1b[31mred",
         "a\x1b[31mred"}, /* no byte below 0x20 reaches the last */
        {"two\nlines\tand\rmore", "two\\nlines\\tand\\rmore", "two\nlines\tand\\rmore",
         "two\nlines\tand\rmore"},
        {"\x7f\a\b", "\\x7f\\x07\\x08", "\\x7f\\x07\\x08", "\\u007f\a\b"},
        {"\xc2\x9b"
         "31m",
         "\\u009b31m", "\\u009b31m", "\\u009b31m"}, /* CSI of the C1 set */
        {"a\xe2\x80\xae"
         "b",
         "a\\u202eb", "a\\u202eb", "a\\u202eb"}, /* right to left from here */
        {"\xef\xbb\xbfx\xe2\x80\xa8", "\\ufeffx\\u2028", "\\ufeffx\\u2028", "\\ufeffx\\u2028"},
        {"\xe4\xb8\xad \xc3\xa4 \xf0\x9f\x98\x80", "\xe4\xb8\xad \xc3\xa4 \xf0\x9f\x98\x80",
         "\xe4\xb8\xad \xc3\xa4 \xf0\x9f\x98\x80", "\xe4\xb8\xad \xc3\xa4 \xf0\x9f\x98\x80"},
        {"\xff\x80z", "\\xff\\x80z", "\\xff\\x80z", "\\ufffd\\ufffdz"},
        {"\xe4\xb8", "\\xe4\\xb8", "\\xe4\\xb8", "\\ufffd\\ufffd"}, /* cut short */
        {"\xc0\xaf", "\\xc0\\xaf", "\\xc0\\xaf", "\\ufffd\\ufffd"}, /* '/' in two bytes */
        {"\xe0\x80\x80", "\\xe0\\x80\\x80", "\\xe0\\x80\\x80", "\\ufffd\\ufffd\\ufffd"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80", "\\xed\\xa0\\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", "\\xf4\\x90\\x80\\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char to[100];
        size_t bytes = strlen(rows[i].text);
        BW_STR(escaped(LINE, rows[i].text, bytes, to, sizeof to), rows[i].line);
        BW_STR(escaped(LINES, rows[i].text, bytes, to, sizeof to), rows[i].lines);
        BW_STR(escaped(JSON, rows[i].text, bytes, to, sizeof to), rows[i].json);
    }
    char to[100];
    BW_STR(escaped(LINE, "a\0b", 3, to, sizeof to), "a\\x00b");
}

/* Of random bytes: what comes out has no control character, and at any size nothing is cut in two. */
static void random_bytes_at_every_size(void)
{
    struct bw_rng rng = {7};
    for (int round = 0; round < 2000; round++) {
        char text[24], whole[6 * sizeof text + 1], part[sizeof whole];
        size_t bytes = bw_rng_below(&rng, sizeof text);
        for (size_t i = 0; i < bytes; i++)
            text[i] =
                (char)(round % 2 ? bw_rng_below(&rng, 256) : 0xc0 + bw_rng_below(&rng, 64) - 0x80 * (i % 2));
        size_t needed = bw_text_escape(text, bytes, whole, sizeof whole);
        BW_TRUE(needed < sizeof whole && strlen(whole) == needed);
        for (size_t i = 0; i < needed; i++)
            BW_TRUE((unsigned char)whole[i] >= 0x20 && whole[i] != 0x7f);
        char again[sizeof whole];
        BW_EQ(bw_text_escape(whole, needed, again, sizeof again), needed); /* what is escaped stays */
        BW_STR(again, whole);
        for (size_t room = 1; room <= needed; room++) {
            memset(part, 'x', sizeof part);
            BW_EQ(bw_text_escape(text, bytes, part, room), needed);
            BW_TRUE(strlen(part) < room && !strncmp(part, whole, strlen(part)));
            BW_TRUE(room < 7 || strlen(part) + 6 >= room); /* no more is left out than one escape */
            BW_EQ(part[room], 'x');
            BW_EQ(bw_text_escape(part, strlen(part), again, sizeof again), strlen(part));
        }
        BW_EQ(bw_text_escape(text, bytes, NULL, 0), needed);
    }
}

static void errors_are_one_harmless_line(void)
{
    struct bw_err err = {0};
    char line[2048];
    bw_fail(&err, -ENOENT, "file", "%s", "a\x1b]0;title\a\nb.onnx");
    bw_err_observed(&err, "\xff");
    bw_err_format(&err, line, sizeof line);
    BW_STR(line, "file: a\\x1b]0;title\\x07\\nb.onnx: observed \\xff (ENOENT)");
}

/* A long name ends with "...", and not within a character. */
static void what_is_cut_says_so(void)
{
    for (size_t shift = 0; shift < 3; shift++) {
        struct bw_err err = {0};
        char name[400] = "", line[2048];
        memset(name, 'a', shift);
        for (size_t i = shift; i + 3 < sizeof name; i += 3)
            memcpy(name + i, "\xe4\xb8\xad", 4);
        bw_fail(&err, -EIO, "file", "%s", name);
        size_t length = strlen(err.what);
        BW_TRUE(length < sizeof err.what && length + 3 >= sizeof err.what);
        BW_STR(err.what + length - 3, "...");
        bw_err_format(&err, line, sizeof line);
        BW_TRUE(strstr(line, "\\x") == NULL);
    }
    struct bw_err err = {0};
    bw_fail(&err, -EIO, "file", "%0*d", (int)sizeof err.what - 1, 0); /* just fits */
    BW_EQ(strlen(err.what), sizeof err.what - 1);
    BW_TRUE(strstr(err.what, "...") == NULL);
}

BW_TEST_MAIN("base.escape",
             {"what_acts_on_a_terminal_becomes_visible", what_acts_on_a_terminal_becomes_visible},
             {"random_bytes_at_every_size", random_bytes_at_every_size},
             {"errors_are_one_harmless_line", errors_are_one_harmless_line},
             {"what_is_cut_says_so", what_is_cut_says_so})
