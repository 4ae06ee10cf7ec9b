/* What the subcommands share: arguments, errors, context, files. */
#include "tools/tool.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <bellwire/text.h>

#include "base/bits.h"
#include "base/number.h"
#include "compiler/io.h"
#include "tools/print.h"

enum { LINE_BYTES = 8192 }; /* every text of a struct bw_err, each byte escaped */

struct bw_args bw_args_begin(const char *tool, int argc, char **argv)
{
    return (struct bw_args){.tool = tool, .argc = argc, .argv = argv};
}

bool bw_words_have(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words ? strstr(words, word) : NULL; at; at = strstr(at + 1, word))
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

static void alias_resolve(struct bw_args *args)
{
    for (const struct bw_args_alias *row = args->aliases; row && row->alias; row++)
        if (!strcmp(args->name, row->alias)) {
            snprintf(args->name, sizeof args->name, "%s", row->option);
            return;
        }
}

static void option_note(struct bw_args *args)
{
    for (uint32_t i = 0; i < args->seen_count && !args->failed; i++)
        if (!strcmp(args->seen[i], args->name) && !bw_words_have(args->several, args->name)) {
            bw_tool_usage(args->tool, "%s is given twice", args->name);
            args->failed = true;
        }
    if (args->seen_count < BW_ARGS_SEEN_MAX)
        memcpy(args->seen[args->seen_count++], args->name, sizeof args->name);
}

bool bw_args_next(struct bw_args *args)
{
    while (!args->failed && ++args->at < args->argc) {
        const char *text = args->argv[args->at];
        args->positional = args->option = args->inline_value = NULL;
        if (args->options_ended || text[0] != '-' || !text[1]) {
            args->positional = text;
            return true;
        }
        if (!strcmp(text, "--")) {
            args->options_ended = true;
            continue;
        }
        if (!strcmp(text, "--json")) {
            args->json = true;
            continue;
        }
        const char *equals = text[1] == '-' ? strchr(text, '=') : NULL;
        size_t length = equals ? (size_t)(equals - text) : strlen(text);
        if (length >= sizeof args->name)
            length = sizeof args->name - 1;
        memcpy(args->name, text, length);
        args->name[length] = 0;
        args->option = args->name;
        args->inline_value = equals ? equals + 1 : NULL;
        alias_resolve(args);
        option_note(args);
        return !args->failed;
    }
    return false;
}

bool bw_args_is(const struct bw_args *args, const char *option)
{
    return args->option && !strcmp(args->option, option);
}

const char *bw_args_value(struct bw_args *args)
{
    if (args->inline_value)
        return args->inline_value;
    if (args->at + 1 < args->argc)
        return args->argv[++args->at];
    bw_tool_usage(args->tool, "%s needs a value", args->option);
    args->failed = true;
    return "";
}

const char *bw_args_output(struct bw_args *args)
{
    const char *path = bw_args_value(args);
    if (!args->failed && (!*path || !strcmp(path, "-"))) {
        bw_tool_usage(args->tool, "%s: '%s' names no file; standard output is /dev/stdout", args->option,
                      path);
        args->failed = true;
    }
    return path;
}

uint64_t bw_args_number(struct bw_args *args)
{
    const char *text = bw_args_value(args);
    if (args->failed)
        return 0;
    uint64_t value;
    if (bw_number_parse(text, &value) && (bw_size_parse(text, &value) || strpbrk(text, "Tt"))) {
        bw_tool_usage(args->tool, "%s: '%s' is not a number", args->option, text);
        args->failed = true;
        return 0;
    }
    return value;
}

uint32_t bw_args_count(struct bw_args *args, uint32_t least, uint32_t most)
{
    uint64_t value = bw_args_number(args);
    if (!args->failed && (value < least || value > most)) {
        bw_tool_usage(args->tool, "%s: a number from %u to %u", args->option, least, most);
        args->failed = true;
    }
    return (uint32_t)value;
}

void bw_args_triple(struct bw_args *args, uint32_t triple[3])
{
    const char *text = bw_args_value(args), *at = text;
    for (int i = 0; i < 3 && !args->failed; i++) {
        uint64_t value;
        triple[i] = 1;
        if (i && !*at)
            continue;
        if (bw_number_take(&at, &value) || !value || value > UINT32_MAX ||
            (*at && (*at != ',' || i == 2 || !at[1]))) {
            bw_tool_usage(args->tool, "%s: '%s' is not X,Y,Z, each from 1 to 4294967295", args->option, text);
            args->failed = true;
            return;
        }
        triple[i] = (uint32_t)value;
        at += *at == ',';
    }
}

void bw_args_unknown(struct bw_args *args)
{
    if (args->option)
        bw_tool_usage(args->tool, "unknown option %s", args->option);
    else
        bw_tool_usage(args->tool, "unexpected argument '%s'", args->positional);
    args->failed = true;
}

int bw_args_exit(const struct bw_args *args)
{
    return args->failed ? BW_TOOL_USAGE : BW_TOOL_DONE;
}

int bw_tool_usage(const char *tool, const char *format, ...)
{
    bw_print(stderr, "bellwire: %s: ", tool);
    va_list arguments;
    va_start(arguments, format);
    bw_print_args(stderr, format, arguments);
    va_end(arguments);
    bw_print(stderr, "; `bellwire %s --help` shows the arguments\n", tool);
    return BW_TOOL_USAGE;
}

/* Which limit of this process it may have met, where nothing better is known. */
static void memory_hint(struct bw_err *err)
{
    static const struct {
        int resource;
        const char *what;
    } limits[] = {{RLIMIT_AS, "address space (ulimit -v)"}, {RLIMIT_DATA, "data (ulimit -d)"}};
    struct rlimit limit;
    if (err->code != -ENOMEM || err->hint[0])
        return;
    for (size_t i = 0; i < BW_COUNT_OF(limits) && !err->hint[0]; i++)
        if (!getrlimit(limits[i].resource, &limit) && limit.rlim_cur != RLIM_INFINITY)
            bw_err_hint(err, "this process may have %llu MiB of %s", (unsigned long long)limit.rlim_cur >> 20,
                        limits[i].what);
}

int bw_tool_fail(const struct bw_err *failure)
{
    char line[LINE_BYTES];
    struct bw_err hinted = *failure, *err = &hinted;
    memory_hint(err);
    bw_err_format(err, line, sizeof line);
    bw_print(stderr, "bellwire: %s\n", line);
    if (!strcmp(err->subsystem, "file")) /* ENXIO, ETIMEDOUT and the like of a pipe */
        return BW_TOOL_FAILED;
    switch (-err->code) {
    case ENODEV:
    case ENXIO:
        return BW_TOOL_NO_DEVICE;
    case ETIMEDOUT:
    case EHWPOISON:
        return BW_TOOL_DEVICE_FAILED;
    case ENOENT: /* of a disk: its name names no file */
    case ENOTDIR:
    case EISDIR:
    case ESPIPE:
        return err->device[0] && !strcmp(err->subsystem, "disk") ? BW_TOOL_NO_DEVICE : BW_TOOL_FAILED;
    case EIO: /* a file's EIO is the job's failure, a device's is the device's */
        return err->device[0] ? BW_TOOL_DEVICE_FAILED : BW_TOOL_FAILED;
    default:
        return BW_TOOL_FAILED;
    }
}

int bw_tool_arch_fail(const struct bw_err *err)
{
    int status = bw_tool_fail(err);
    return err->code == -ENOTSUP ? BW_TOOL_USAGE : status;
}

char *bw_tool_json_text(struct cJSON *document, bool pretty)
{
    char *text = pretty ? cJSON_Print(document) : cJSON_PrintUnformatted(document);
    size_t bytes = text ? bw_text_escape_json(text, strlen(text), NULL, 0) : 0;
    char *escaped = text ? malloc(bytes + 1) : NULL;
    if (escaped)
        bw_text_escape_json(text, strlen(text), escaped, bytes + 1);
    cJSON_free(text);
    cJSON_Delete(document);
    return escaped;
}

void bw_tool_print_json(struct cJSON *document)
{
    char *text = bw_tool_json_text(document, true);
    if (text)
        bw_print_lines(stdout, text);
    bw_print(stdout, "\n");
    free(text);
}

const char *bw_tool_file_name(const char *path)
{
    return strcmp(path, "-") ? path : "standard input";
}

int bw_tool_read_file(const char *path, uint64_t bytes_max, void **data, uint64_t *size_bytes,
                      struct bw_err *err)
{
    static const struct bw_pipe_waits waits = {BW_WAIT_FOREVER_MS,
                                               BW_WAIT_FOREVER_MS}; /* whoever runs us may end it */
    uint8_t *bytes = NULL;
    int rc = strcmp(path, "-") ? bw_file_read(path, bytes_max, &bytes, size_bytes, err)
                               : bw_fd_read(STDIN_FILENO, bw_tool_file_name(path), bytes_max, waits, &bytes,
                                            size_bytes, err);
    *data = bytes;
    return rc;
}
