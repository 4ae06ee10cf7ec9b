/* Growing text: see text.h. */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int text_reserve(struct bw_text *text, size_t extra)
{
    if (text->failed)
        return text->failed;
    size_t needed = text->length + extra + 1;
    if (needed <= text->capacity)
        return 0;
    size_t capacity = text->capacity ? text->capacity * 2 : 256;
    if (capacity < needed)
        capacity = needed;
    char *grown = realloc(text->data, capacity);
    if (!grown)
        return text->failed = -ENOMEM;
    text->data = grown;
    text->capacity = capacity;
    return 0;
}

void bw_text_add_bytes(struct bw_text *text, const char *data, size_t length)
{
    if (text_reserve(text, length))
        return;
    memcpy(text->data + text->length, data, length);
    text->length += length;
    text->data[text->length] = 0;
}

void bw_text_add(struct bw_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || text_reserve(text, (size_t)length))
        return;
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

const char *bw_text_string(const struct bw_text *text)
{
    return text->data ? text->data : "";
}

void bw_text_free(struct bw_text *text)
{
    free(text->data);
    memset(text, 0, sizeof *text);
}

void bw_text_fit_v(char *to, size_t to_size, const char *format, va_list arguments)
{
    static const char cut[] = "...";
    int length = vsnprintf(to, to_size, format, arguments);
    if (length < 0 || (size_t)length < to_size)
        return;
    size_t end = to_size - sizeof cut;
    while (end && ((unsigned char)to[end] & 0xc0) == 0x80) /* not within a character of UTF-8 */
        end--;
    memcpy(to + end, cut, sizeof cut);
}

void bw_text_fit(char *to, size_t to_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bw_text_fit_v(to, to_size, format, arguments);
    va_end(arguments);
}
