/* Reads standard input and ends with 0 when it is one JSON document to the letter (RFC 8259); else says what
 * it is not. Parsers of programs are lenient: control characters, bytes that are no UTF-8 and "nan" pass
 * through many. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/text.h>

enum { DEPTH_MAX = 64, BYTES_MAX = 64 << 20 };

static const char *value_end(const char *at, int depth);

static const char *space_end(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static const char *string_end(const char *at)
{
    for (at++; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at != '\\')
            continue;
        at++;
        if (*at == 'u' && strspn(at + 1, "0123456789abcdefABCDEF") < 4)
            return NULL;
        if (!*at || !strchr("\"\\/bfnrtu", *at))
            return NULL;
    }
    return at + 1;
}

static const char *number_end(const char *at)
{
    static const char digits[] = "0123456789";
    at += *at == '-';
    size_t length = strspn(at, digits);
    if (!length || (length > 1 && *at == '0'))
        return NULL;
    at += length;
    if (*at == '.') {
        length = strspn(++at, digits);
        if (!length)
            return NULL;
        at += length;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        at += *at == '+' || *at == '-';
        length = strspn(at, digits);
        if (!length)
            return NULL;
        at += length;
    }
    return at;
}

/* at: behind the bracket. */
static const char *list_end(const char *at, char closing, int depth)
{
    at = space_end(at);
    if (*at == closing)
        return at + 1;
    for (;; at++) {
        if (closing == '}') {
            at = space_end(at);
            at = *at == '"' ? string_end(at) : NULL;
            at = at ? space_end(at) : NULL;
            if (!at || *at++ != ':')
                return NULL;
        }
        at = value_end(at, depth + 1);
        if (!at || *at == closing)
            return at ? at + 1 : NULL;
        if (*at != ',')
            return NULL;
    }
}

/* With the space behind it. */
static const char *value_end(const char *at, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    const char *end = NULL;
    at = space_end(at);
    if (depth > DEPTH_MAX)
        return NULL;
    if (*at == '{' || *at == '[')
        end = list_end(at + 1, *at == '{' ? '}' : ']', depth);
    else if (*at == '"')
        end = string_end(at);
    else if (*at == '-' || (*at >= '0' && *at <= '9'))
        end = number_end(at);
    else
        for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
            if (!strncmp(at, words[i], strlen(words[i])))
                end = at + strlen(words[i]);
    return end ? space_end(end) : NULL;
}

static int check(const char *text)
{
    const char *end = value_end(text, 0);
    if (end && !*end)
        return 0;
    fprintf(stderr, "not JSON: %.200s\n", text);
    return 1;
}

int main(void)
{
    char *text = calloc(1, BYTES_MAX + 1);
    size_t size_bytes = fread(text, 1, BYTES_MAX, stdin);
    int failed = size_bytes == 0 || memchr(text, 0, size_bytes) != NULL;
    /* Nothing is left to escape in what is valid UTF-8 without control characters. */
    failed |= bw_text_escape_json(text, size_bytes, NULL, 0) != size_bytes;
    if (failed)
        fprintf(stderr, "not JSON: empty, or bytes that may not stand in it\n");
    failed |= check(text);
    free(text);
    return failed;
}
