/* bellwire: finds the subcommand, prints help. */
#include <string.h>

#include "base/bits.h"
#include "tools/tool.h"

struct command {
    const char *name, *summary, *usage;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
#define X(name, summary, usage) {#name, summary, usage, bw_tool_##name},
#include "tools/commands.def"
#undef X
};

static void print_help(FILE *out)
{
    fprintf(out, "usage: bellwire SUBCOMMAND [ARGS]...\n\n");
    for (size_t i = 0; i < BW_COUNT_OF(commands); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(out,
            "\n`bellwire SUBCOMMAND --help` shows its arguments, `man bellwire-SUBCOMMAND` explains them.\n"
            "Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 no such device, 4 the device failed, 77 "
            "skipped.\n");
}

int bw_tool_dispatch(int argc, char **argv)
{
    for (size_t i = 0; i < BW_COUNT_OF(commands); i++) {
        if (strcmp(argv[0], commands[i].name))
            continue;
        for (int k = 1; k < argc && strcmp(argv[k], "--"); k++) {
            if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h")) {
                printf("%s\n\nusage: bellwire %s %s\n", commands[i].summary, argv[0], commands[i].usage);
                return BW_TOOL_DONE;
            }
        }
        return commands[i].run(argc, argv);
    }
    return -1;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return BW_TOOL_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(stdout);
        return BW_TOOL_DONE;
    }
    if (!strcmp(name, "--version")) {
        printf("bellwire %s\n", BW_VERSION);
        return BW_TOOL_DONE;
    }
    int status = bw_tool_dispatch(argc - 1, argv + 1);
    if (status >= 0)
        return fflush(stdout) || ferror(stdout) ? BW_TOOL_FAILED : status;
    fprintf(stderr, "bellwire: no subcommand named '%s'; `bellwire --help` lists them\n", name);
    return BW_TOOL_USAGE;
}
