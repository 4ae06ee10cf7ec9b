/* bellwire decode: a ring or a command buffer, by packet and field, with what is wrong in it. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "base/vec.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/sdma.h"
#include "tools/print.h"
#include "tools/tool.h"

enum { FILE_BYTES_MAX = 64 << 20 }; /* the largest ring is 16 MiB, as hexadecimal text 40 MiB */

typedef BW_VEC(uint32_t) word_list;

static const struct {
    const char *kind;
    uint64_t (*print)(const uint32_t *words, uint64_t count, struct bw_text *text);
} printers[] = {
    {"pm4", bw_amd_pm4_print},
    {"sdma", bw_amd_sdma_print},
};

static bool is_text(const char *data, uint64_t size_bytes)
{
    for (uint64_t i = 0; i < size_bytes; i++)
        if (!isxdigit((unsigned char)data[i]) && !strchr("xX,#:\r\n\t ", data[i] ? data[i] : '!'))
            return false;
    return true;
}

/* Hexadecimal words in text; '#' and what follows it on the line, and "offset:" labels, are skipped. */
static int parse_words(const char *data, uint64_t size_bytes, word_list *words, struct bw_err *err)
{
    for (uint64_t at = 0; at < size_bytes;) {
        if (data[at] == '#') {
            while (at < size_bytes && data[at] != '\n')
                at++;
            continue;
        }
        if (!isxdigit((unsigned char)data[at])) {
            at++;
            continue;
        }
        uint64_t start = at, value = 0;
        if (data[at] == '0' && at + 1 < size_bytes && (data[at + 1] == 'x' || data[at + 1] == 'X'))
            at += 2;
        for (; at < size_bytes && isxdigit((unsigned char)data[at]) && value >> 32 == 0; at++)
            value = value << 4 | (uint64_t)(isdigit((unsigned char)data[at]) ? data[at] - '0'
                                                                             : (data[at] | 32) - 'a' + 10);
        if (at < size_bytes && data[at] == ':')
            continue;
        if (value >> 32)
            return bw_fail(err, -EINVAL, "decode", "text at byte %llu: more than 32 bits",
                           (unsigned long long)start);
        if (bw_vec_push(words, (uint32_t)value))
            return bw_fail(err, -ENOMEM, "decode", "%zu words", words->count);
    }
    return 0;
}

static int load_words(const char *path, word_list *words, struct bw_err *err)
{
    void *data = NULL;
    uint64_t size_bytes = 0;
    int code = bw_tool_read_file(path, FILE_BYTES_MAX, &data, &size_bytes, err);
    if (code)
        return code;
    if (is_text(data, size_bytes))
        code = parse_words(data, size_bytes, words, err);
    else if (size_bytes % 4)
        code = bw_fail(err, -EINVAL, "decode", "%s: %llu bytes are not whole 32-bit words", path,
                       (unsigned long long)size_bytes);
    else if (bw_vec_reserve(words, size_bytes / 4))
        code = bw_fail(err, -ENOMEM, "decode", "%s", path);
    else {
        memcpy(words->data, data, size_bytes);
        words->count = size_bytes / 4;
    }
    free(data);
    return code;
}

int bw_tool_decode(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("decode", argc, argv);
    const char *kind = "pm4", *path = NULL;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--kind"))
            kind = bw_args_value(&args);
        else if (args.positional && !path)
            path = args.positional;
        else
            bw_args_unknown(&args);
    }
    if (args.failed)
        return BW_TOOL_USAGE;
    size_t which = 0;
    while (which < BW_COUNT_OF(printers) && strcmp(kind, printers[which].kind))
        which++;
    if (which == BW_COUNT_OF(printers))
        return bw_tool_usage("decode", "kind '%s' is not one of pm4, sdma", kind);
    struct bw_err err = {0};
    word_list words = {0};
    if (load_words(path ? path : "-", &words, &err)) {
        bw_vec_free(&words);
        return bw_tool_fail(&err);
    }
    struct bw_text text = {0};
    uint64_t problems = printers[which].print(words.data, words.count, &text);
    bw_print_lines(stdout, bw_text_string(&text));
    bw_text_free(&text);
    bw_vec_free(&words);
    return problems ? BW_TOOL_FAILED : BW_TOOL_DONE;
}
