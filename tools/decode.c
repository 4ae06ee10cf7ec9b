/* bellwire decode: a ring or a command buffer, by packet and field, with what is wrong in it. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "base/vec.h"
#include "compiler/io.h"
#include "drivers/amd/aql.h"
#include "drivers/amd/pm4.h"
#include "drivers/amd/regs.h"
#include "drivers/amd/sdma.h"
#include "tools/print.h"
#include "tools/tool.h"

enum {
    FILE_BYTES_MAX = 64 << 20, /* the largest ring is 16 MiB, as hexadecimal text 40 MiB */
    TOKEN_SHOWN_MAX = 40,
};

#define BLANKS " \t\r\n\f\v," /* between words */

typedef BW_VEC(uint32_t) word_list;

struct kind {
    const char *name;
    uint64_t (*print)(const uint32_t *words, uint64_t count, struct bw_text *text);
    void (*decode)(uint32_t generation, const uint32_t *words, uint64_t count,
                   struct bw_amd_decoded *decoded);
    uint32_t generation; /* that print reads too */
};

static const struct kind kinds[] = {
    {"pm4", bw_amd_pm4_print, bw_amd_pm4_decode, BW_AMD_PM4_GCR},
    {"sdma", bw_amd_sdma_print, bw_amd_sdma_decode, BW_AMD_SDMA_5},
    {"aql", bw_amd_aql_print, bw_amd_aql_decode, 0},
};

/* What is no text is raw: of packets some byte is a control character or, outside of comments, beyond ASCII
 * (a PM4 header is at least 0x80000000). */
static bool is_text(const char *data, uint64_t size_bytes)
{
    bool comment = false;
    for (uint64_t i = 0; i < size_bytes; i++) {
        unsigned char c = (unsigned char)data[i];
        comment = c != '\n' && (comment || c == '#');
        if (iscntrl(c) ? !strchr(BLANKS, c ? c : '!') : c >= 0x80 && !comment)
            return false;
    }
    return true;
}

/* [0x]HHHHHHHH */
static int parse_word(const char *token, size_t length, uint32_t *word)
{
    uint64_t value = 0;
    size_t at = length > 2 && token[0] == '0' && (token[1] | 32) == 'x' ? 2 : 0;
    for (; at < length && value >> 32 == 0; at++) {
        unsigned char c = (unsigned char)token[at];
        if (!isxdigit(c))
            return -EINVAL;
        value = value << 4 | (uint64_t)(isdigit(c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    *word = (uint32_t)value;
    return value >> 32 ? -ERANGE : 0;
}

static int token_fail(uint64_t line, const char *token, size_t length, int code, struct bw_err *err)
{
    int shown = length < TOKEN_SHOWN_MAX ? (int)length : TOKEN_SHOWN_MAX;
    bw_fail(err, code == -ERANGE ? -EINVAL : code, "decode", "line %llu: '%.*s' is %s",
            (unsigned long long)line, shown, token,
            code == -ERANGE ? "a number of more than 32 bits" : "no word");
    bw_err_hint(err, "hexadecimal words of 32 bits, NUMBER: is a label, # begins a comment; what decode and "
                     "compile print of packets is not read back");
    return err->code;
}

/* Hexadecimal words in text; '#' and what follows it on the line, and "offset:" labels, are skipped. */
static int parse_words(const char *data, uint64_t size_bytes, word_list *words, struct bw_err *err)
{
    uint64_t line = 1;
    for (uint64_t at = 0; at < size_bytes;) {
        if (data[at] == '#') {
            while (at < size_bytes && data[at] != '\n')
                at++;
            continue;
        }
        if (strchr(BLANKS, data[at])) {
            line += data[at++] == '\n';
            continue;
        }
        uint64_t start = at;
        while (at < size_bytes && !strchr(BLANKS ":#", data[at]))
            at++;
        uint32_t word = 0;
        int rc = parse_word(data + start, at - start, &word);
        bool label = !rc && at > start && at < size_bytes && data[at] == ':';
        at += label;
        if (rc || at == start)
            return token_fail(line, data + start, at - start + (at == start), rc ? rc : -EINVAL, err);
        if (!label && bw_vec_push(words, word))
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
        code = bw_fail(err, -EINVAL, "decode", "%llu bytes are not whole 32-bit words",
                       (unsigned long long)size_bytes);
    else if (bw_vec_reserve(words, size_bytes / 4))
        code = bw_fail(err, -ENOMEM, "decode", "%llu bytes", (unsigned long long)size_bytes);
    else {
        memcpy(words->data, data, size_bytes);
        words->count = size_bytes / 4;
    }
    free(data);
    if (code)
        bw_file_err_name(bw_tool_file_name(path), err);
    else if (!words->count)
        code = bw_fail(err, -EINVAL, "decode", "%s holds no words", bw_tool_file_name(path));
    return code;
}

static void registers_json(cJSON *row, const struct kind *kind, const struct bw_amd_decoded *decoded)
{
    uint32_t first = decoded->packet->opcode == BW_AMD_PM4_OP_SET_SH_REG ? BW_AMD_PM4_SH_REG_FIRST
                                                                         : BW_AMD_PM4_UCONFIG_REG_FIRST;
    cJSON *list = cJSON_AddArrayToObject(row, "registers");
    for (uint64_t i = 0; i < decoded->tail_count; i++) {
        uint32_t address = first + decoded->values[0] + (uint32_t)i;
        const char *name = bw_amd_reg_name(kind->generation, address);
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddItemToObject(entry, "name", name ? cJSON_CreateString(name) : cJSON_CreateNull());
        cJSON_AddNumberToObject(entry, "address", address);
        cJSON_AddNumberToObject(entry, "value", decoded->tail[i]);
        cJSON_AddItemToArray(list, entry);
    }
}

static cJSON *packet_json(const struct kind *kind, const struct bw_amd_decoded *decoded, uint64_t at)
{
    const struct bw_amd_packet *packet = decoded->packet;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddNumberToObject(row, "offset_bytes", (double)at * 4);
    cJSON_AddItemToObject(row, "name", packet ? cJSON_CreateString(packet->name) : cJSON_CreateNull());
    cJSON_AddNumberToObject(row, "word_count", (double)decoded->word_count);
    cJSON *fields = cJSON_AddObjectToObject(row, "fields");
    for (uint32_t i = 0; packet && i < packet->field_count; i++)
        cJSON_AddNumberToObject(fields, packet->fields[i].name,
                                bw_amd_field_shown(&packet->fields[i], decoded->values[i]));
    if (packet && packet->tail == BW_AMD_TAIL_REGISTERS) {
        registers_json(row, kind, decoded);
    } else {
        cJSON *data = cJSON_AddArrayToObject(row, "data");
        for (uint64_t i = 0; i < decoded->tail_count; i++)
            cJSON_AddItemToArray(data, cJSON_CreateNumber(decoded->tail[i]));
    }
    cJSON_AddItemToObject(row, "problem",
                          decoded->problem[0] ? cJSON_CreateString(decoded->problem) : cJSON_CreateNull());
    return row;
}

/* Prints the document; returns the number of problems. */
static uint64_t print_json(const struct kind *kind, const word_list *words)
{
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "kind", kind->name);
    cJSON *packets = cJSON_AddArrayToObject(document, "packets");
    struct bw_amd_decoded decoded;
    uint64_t problems = 0;
    for (uint64_t at = 0; at < words->count; at += decoded.word_count) {
        kind->decode(kind->generation, words->data + at, words->count - at, &decoded);
        cJSON_AddItemToArray(packets, packet_json(kind, &decoded, at));
        problems += decoded.problem[0] != 0;
    }
    cJSON_AddNumberToObject(document, "problems", (double)problems);
    bw_tool_print_json(document);
    return problems;
}

static uint64_t print_text(const struct kind *kind, const word_list *words)
{
    struct bw_text text = {0};
    uint64_t problems = kind->print(words->data, words->count, &text);
    bw_print_lines(stdout, bw_text_string(&text));
    bw_text_free(&text);
    return problems;
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
    while (which < BW_COUNT_OF(kinds) && strcmp(kind, kinds[which].name))
        which++;
    if (which == BW_COUNT_OF(kinds))
        return bw_tool_usage("decode", "kind '%s' is not one of pm4, sdma, aql", kind);
    struct bw_err err = {0};
    word_list words = {0};
    if (load_words(path ? path : "-", &words, &err)) {
        bw_vec_free(&words);
        return bw_tool_fail(&err);
    }
    uint64_t problems = args.json ? print_json(&kinds[which], &words) : print_text(&kinds[which], &words);
    bw_vec_free(&words);
    return problems ? BW_TOOL_FAILED : BW_TOOL_DONE;
}
