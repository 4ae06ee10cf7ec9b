/* What the subcommands share: arguments, errors, context, files. */
#include "tools/tool.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct bw_args bw_args_begin(const char *tool, int argc, char **argv)
{
    return (struct bw_args){.tool = tool, .argc = argc, .argv = argv};
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
        return true;
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

uint64_t bw_args_number(struct bw_args *args)
{
    const char *text = bw_args_value(args);
    if (args->failed)
        return 0;
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 0);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += shift != 0;
    if (errno || end == text || *end || text[0] == '-' || (shift && value >> (64 - shift))) {
        bw_tool_usage(args->tool, "%s: '%s' is not a number", args->option, text);
        args->failed = true;
        return 0;
    }
    return value << shift;
}

void bw_args_triple(struct bw_args *args, uint32_t triple[3])
{
    const char *text = bw_args_value(args), *at = text;
    for (int i = 0; i < 3 && !args->failed; i++) {
        char *end;
        triple[i] = 1;
        if (i && !*at)
            continue;
        errno = 0;
        unsigned long long value = strtoull(at, &end, 0);
        if (*at < '0' || *at > '9' || errno || !value || value > UINT32_MAX ||
            (*end && (*end != ',' || i == 2 || !end[1]))) {
            bw_tool_usage(args->tool, "%s: '%s' is not X,Y,Z, each from 1 to 4294967295", args->option, text);
            args->failed = true;
            return;
        }
        triple[i] = (uint32_t)value;
        at = end + (*end == ',');
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
    fprintf(stderr, "bellwire %s: ", tool);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "; `bellwire %s --help` shows the arguments\n", tool);
    return BW_TOOL_USAGE;
}

int bw_tool_fail(const struct bw_err *err)
{
    char line[2 * sizeof *err]; /* all of it and what stands between */
    bw_err_format(err, line, sizeof line);
    fprintf(stderr, "bellwire: %s\n", line);
    switch (-err->code) {
    case ENODEV:
    case ENXIO:
        return BW_TOOL_NO_DEVICE;
    case ETIMEDOUT:
    case EHWPOISON:
        return BW_TOOL_DEVICE_FAILED;
    case EIO: /* a file's EIO is the job's failure, a device's is the device's */
        return err->device[0] ? BW_TOOL_DEVICE_FAILED : BW_TOOL_FAILED;
    default:
        return BW_TOOL_FAILED;
    }
}

void bw_tool_print_json(struct cJSON *document)
{
    char *text = cJSON_Print(document);
    if (text)
        puts(text);
    cJSON_free(text);
    cJSON_Delete(document);
}

int bw_tool_read_file(const char *path, uint64_t bytes_max, void **data, uint64_t *size_bytes,
                      struct bw_err *err)
{
    FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!file)
        return bw_fail(err, -errno, "file", "%s", path);
    char *bytes = NULL;
    uint64_t size = 0, capacity = 0;
    int status = 0;
    for (;;) {
        if (size == capacity) {
            capacity = capacity ? capacity * 2 : 1 << 16;
            char *grown = capacity <= bytes_max * 2 ? realloc(bytes, capacity) : NULL;
            if (!grown) {
                status = bw_fail(err, -EFBIG, "file", "%s: more than %llu bytes", path,
                                 (unsigned long long)bytes_max);
                break;
            }
            bytes = grown;
        }
        size_t got = fread(bytes + size, 1, capacity - size, file);
        size += got;
        if (got == 0)
            break;
    }
    if (!status && ferror(file))
        status = bw_fail(err, -EIO, "file", "%s", path);
    if (file != stdin)
        fclose(file);
    if (status) {
        free(bytes);
        return status;
    }
    *data = bytes;
    *size_bytes = size;
    return 0;
}
