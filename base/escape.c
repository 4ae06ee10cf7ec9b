/* Foreign text made visible: see include/bellwire/text.h. */
#include <bellwire/text.h>

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

enum style { STYLE_LINE, STYLE_LINES, STYLE_JSON };

enum { ESCAPE_BYTES = 8 }; /* "\uXXXX" with its NUL is the longest */

/* The length of the UTF-8 sequence at text, 0 when there is none. RFC 3629: no overlong forms, no surrogates,
 * nothing beyond U+10FFFF. */
static size_t utf8_take(const unsigned char *text, size_t bytes, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] < 0x80 ? 1 : text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (length > bytes || text[0] > 0xf4)
        return 0;
    *point = length <= 1 ? text[0] : text[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        *point = *point << 6 | (text[i] & 63);
    }
    bool surrogate = *point >= 0xd800 && *point < 0xe000;
    return length && *point >= least[length] && *point <= 0x10ffff && !surrogate ? length : 0;
}

/* Controls, line separators, marks of direction (Unicode's Bidi_Control) and of no width; joiners stay, words
 * need them. */
static bool hidden(uint32_t point)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},   {0x200b, 0x200b},
        {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2069}, {0xfeff, 0xfeff},
    };
    for (size_t i = 0; i < BW_COUNT_OF(ranges); i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

/* Fills `escape` for a character that must not stay; false: it stays. */
static bool escape_make(enum style style, uint32_t point, bool valid, unsigned char byte, char *escape)
{
    static const char *const short_names[] = {['\t'] = "\\t", ['\n'] = "\\n", ['\r'] = "\\r"};
    bool layout = point == '\n' || point == '\t';
    if (valid && (!hidden(point) || (layout && style != STYLE_LINE) || (style == STYLE_JSON && point < 0x20)))
        return false;
    if (!valid && style == STYLE_JSON)
        snprintf(escape, ESCAPE_BYTES, "\\ufffd");
    else if (valid && point < BW_COUNT_OF(short_names) && short_names[point])
        snprintf(escape, ESCAPE_BYTES, "%s", short_names[point]);
    else if (style != STYLE_JSON && (!valid || point < 0x80))
        snprintf(escape, ESCAPE_BYTES, "\\x%02x", byte);
    else
        snprintf(escape, ESCAPE_BYTES, "\\u%04x", (unsigned)point & 0xffff);
    return true;
}

static size_t escape(enum style style, const char *text, size_t text_bytes, char *to, size_t to_bytes)
{
    size_t length = 0, written = 0;
    bool cut = false;
    for (size_t at = 0; at < text_bytes;) {
        const unsigned char *from = (const unsigned char *)text + at;
        char escaped[ESCAPE_BYTES];
        uint32_t point = 0;
        size_t taken = utf8_take(from, text_bytes - at, &point);
        bool changed = escape_make(style, point, taken != 0, *from, escaped);
        size_t put = changed ? strlen(escaped) : taken;
        cut |= length + put + 1 > to_bytes;
        if (!cut) {
            memcpy(to + length, changed ? escaped : text + at, put);
            written = length + put;
        }
        length += put;
        at += taken ? taken : 1;
    }
    if (to_bytes)
        to[written] = 0;
    assert(written <= length);
    return length;
}

size_t bw_text_escape(const char *text, size_t text_bytes, char *to, size_t to_bytes)
{
    return escape(STYLE_LINE, text, text_bytes, to, to_bytes);
}

size_t bw_text_escape_lines(const char *text, size_t text_bytes, char *to, size_t to_bytes)
{
    return escape(STYLE_LINES, text, text_bytes, to, to_bytes);
}

size_t bw_text_escape_json(const char *text, size_t text_bytes, char *to, size_t to_bytes)
{
    return escape(STYLE_JSON, text, text_bytes, to, to_bytes);
}
