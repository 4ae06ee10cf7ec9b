/* bellwire asm: text to a code object. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compiler/io.h"
#include "compiler/llvm/assemble.h"
#include "tools/tool.h"

enum {
    SOURCE_BYTES_MAX = 64 << 20, /* a hand-written file; more is a mistake */
    LINE_SHOWN_MAX = 80,
};

#if BW_HAVE_LLVM
static int write_object(const char *path, const void *object, uint64_t object_bytes)
{
    struct bw_err err = {0};
    const struct bw_file_piece piece = {object, object_bytes};
    return bw_file_write(path, &piece, 1, &err) ? bw_tool_fail(&err) : BW_TOOL_DONE;
}

/* LLVM prints some of what it refuses to standard error: while it runs, a file in memory takes that place. */
struct stderr_capture {
    int saved, file;
};

static struct stderr_capture stderr_capture_begin(void)
{
    struct stderr_capture capture = {.saved = dup(STDERR_FILENO),
                                     .file = memfd_create("stderr", MFD_CLOEXEC)};
    if (capture.saved >= 0 && capture.file >= 0)
        dup2(capture.file, STDERR_FILENO);
    return capture;
}

/* The first line that was printed: empty when none was. */
static void stderr_capture_end(const struct stderr_capture *capture, char *line, size_t line_bytes)
{
    ssize_t got = pread(capture->file, line, line_bytes - 1, 0);
    line[got > 0 ? got : 0] = 0;
    line[strcspn(line, "\n")] = 0;
    if (capture->saved >= 0)
        dup2(capture->saved, STDERR_FILENO);
    close(capture->saved);
    close(capture->file);
}

/* The line that "FILE:LINE:COLUMN: why" is about, as what was observed. */
static void show_line(struct bw_err *err, const char *source, const char *text, uint64_t text_bytes)
{
    size_t prefix = strlen(source);
    if (strncmp(err->what, source, prefix) != 0 || err->what[prefix] != ':')
        return;
    unsigned long line = strtoul(err->what + prefix + 1, NULL, 10);
    const char *at = text, *end = text + text_bytes;
    for (; line > 1 && at < end; line--) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    size_t length = (size_t)((stop ? stop : end) - at);
    if (line == 1 && length)
        bw_err_observed(err, "'%.*s'", length < LINE_SHOWN_MAX ? (int)length : LINE_SHOWN_MAX, at);
}

/* "<inline asm>:3:1: why" is about the file. */
static void name_file(struct bw_err *err, const char *source)
{
    static const char llvm_name[] = "<inline asm>";
    char why[sizeof err->what];
    if (strncmp(err->what, llvm_name, strlen(llvm_name)) != 0)
        return;
    snprintf(why, sizeof why, "%s", err->what + strlen(llvm_name));
    bw_fail(err, err->code, "asm", "%s%s", source, why);
}

static void report_json(const char *arch, const char *output, uint64_t object_bytes)
{
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "arch", arch);
    cJSON_AddStringToObject(document, "file", output);
    cJSON_AddNumberToObject(document, "size_bytes", (double)object_bytes);
    bw_tool_print_json(document);
}

static int assemble(const char *arch, const char *source, const char *output, bool json)
{
    struct bw_err err = {0};
    void *text = NULL, *object = NULL;
    uint64_t text_bytes, object_bytes;
    char printed[160];
    if (bw_tool_read_file(source, SOURCE_BYTES_MAX, &text, &text_bytes, &err))
        return bw_tool_fail(&err);
    struct stderr_capture capture = stderr_capture_begin();
    int rc = bw_llvm_assemble(arch, text, text_bytes, &object, &object_bytes, &err);
    stderr_capture_end(&capture, printed, sizeof printed);
    if (rc) {
        name_file(&err, source);
        show_line(&err, source, text, text_bytes);
    }
    if (rc && printed[0] && !err.hint[0])
        bw_err_hint(&err, "%s", printed);
    int status = rc ? bw_tool_arch_fail(&err) : write_object(output, object, object_bytes);
    if (!status && json)
        report_json(arch, output, object_bytes);
    free(text);
    free(object);
    return status;
}
#else
static int assemble(const char *arch, const char *source, const char *output, bool json)
{
    struct bw_err err = {0};
    bw_fail(&err, -ENOTSUP, "asm", "this build has no LLVM");
    bw_err_hint(&err, "install llvm-19-dev and build again");
    return bw_tool_fail(&err);
}
#endif

/* One option with two names. */
static const char *output_take(struct bw_args *args, const char *before)
{
    const char *output = bw_args_output(args);
    if (before && !args->failed) {
        bw_tool_usage("asm", "--output is given twice");
        args->failed = true;
    }
    return output;
}

int bw_tool_asm(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("asm", argc, argv);
    const char *arch = NULL, *source = NULL, *output = NULL;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--arch"))
            arch = bw_args_value(&args);
        else if (bw_args_is(&args, "--output") || bw_args_is(&args, "-o"))
            output = output_take(&args, output);
        else if (args.positional && !source)
            source = args.positional;
        else
            bw_args_unknown(&args);
    }
    if (args.failed)
        return BW_TOOL_USAGE;
    if (!arch || !source)
        return bw_tool_usage("asm", "--arch and a file are needed");
    char default_output[4096];
    if (!output) {
        size_t length = strlen(source);
        if (length <= 2 || strcmp(source + length - 2, ".s") != 0)
            return bw_tool_usage("asm", "name the output with --output: '%s' does not end in .s", source);
        snprintf(default_output, sizeof default_output, "%.*s.o", (int)length - 2, source);
        output = default_output;
    }
    return assemble(arch, source, output, args.json);
}
