/* bellwire asm: text to a code object. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/llvm/assemble.h"
#include "tools/tool.h"

enum { SOURCE_BYTES_MAX = 64 << 20 }; /* a hand-written file; more is a mistake */

#if BW_HAVE_LLVM
static int write_object(const char *path, const void *object, uint64_t object_bytes)
{
    struct bw_err err = {0};
    FILE *file = fopen(path, "wb");
    int failed = !file || fwrite(object, 1, object_bytes, file) != object_bytes;
    if (file && fclose(file))
        failed = 1;
    if (!failed)
        return BW_TOOL_DONE;
    bw_fail(&err, -errno, "asm", "%s", path);
    return bw_tool_fail(&err);
}

static int assemble(const char *arch, const char *source, const char *output)
{
    struct bw_err err = {0};
    void *text = NULL, *object = NULL;
    uint64_t text_bytes, object_bytes;
    if (bw_tool_read_file(source, SOURCE_BYTES_MAX, &text, &text_bytes, &err))
        return bw_tool_fail(&err);
    int status = bw_llvm_assemble(arch, text, text_bytes, &object, &object_bytes, &err)
                     ? bw_tool_fail(&err)
                     : write_object(output, object, object_bytes);
    free(text);
    free(object);
    return status;
}
#else
static int assemble(const char *arch, const char *source, const char *output)
{
    struct bw_err err = {0};
    bw_fail(&err, -ENOTSUP, "asm", "this build has no LLVM");
    bw_err_hint(&err, "install llvm-19-dev and build again");
    return bw_tool_fail(&err);
}
#endif

int bw_tool_asm(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("asm", argc, argv);
    const char *arch = NULL, *source = NULL, *output = NULL;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--arch"))
            arch = bw_args_value(&args);
        else if (bw_args_is(&args, "--output") || bw_args_is(&args, "-o"))
            output = bw_args_value(&args);
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
        if (length > 2 && !strcmp(source + length - 2, ".s"))
            length -= 2;
        snprintf(default_output, sizeof default_output, "%.*s.o", (int)length, source);
        output = default_output;
    }
    return assemble(arch, source, output);
}
