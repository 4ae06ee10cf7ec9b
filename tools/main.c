/* bellwire: finds the subcommand, prints help. */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "tools/print.h"
#include "tools/tool.h"

enum {
    USAGE_COLUMNS = 100,
    USAGE_INDENT = 15,
    STACK_BYTES_MIN = 1 << 20, /* kernels are compiled on the main thread, too, and LLVM recurses over them */
};

struct command {
    const char *name, *summary, *usage;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
#define X(name, summary, usage) {#name, summary, usage, bw_tool_##name},
#include "tools/commands.def"
#undef X
};

static int print_help(FILE *out)
{
    bw_print(out, "usage: bellwire SUBCOMMAND [ARGS]...\n\n");
    for (size_t i = 0; i < BW_COUNT_OF(commands); i++)
        bw_print(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    bw_print(out, "\n");
    bw_print(out,
             "`bellwire SUBCOMMAND --help` shows its arguments, `man bellwire-SUBCOMMAND` explains them.\n");
    bw_print(out,
             "Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 no such device, 4 the device failed, "
             "77 skipped.\n");
    return BW_TOOL_DONE;
}

/* Up to the next option of a usage: a space before '[' or '-' outside of brackets. */
static size_t piece_length(const char *usage)
{
    int depth = 0;
    size_t length = 0;
    for (; usage[length]; length++) {
        depth += (usage[length] == '[') - (usage[length] == ']');
        if (depth == 0 && usage[length] == ' ' && (usage[length + 1] == '[' || usage[length + 1] == '-'))
            break;
    }
    return length;
}

static int print_command_help(const struct command *command)
{
    bw_print(stdout, "%s\n\n", command->summary);
    int column = bw_print(stdout, "usage: bellwire %s", command->name);
    for (const char *at = command->usage; *at;) {
        size_t length = piece_length(at);
        if (column + 1 + (int)length > USAGE_COLUMNS) {
            bw_print(stdout, "\n");
            column = bw_print(stdout, "%*s", USAGE_INDENT, "");
        }
        column += bw_print(stdout, " %.*s", (int)length, at);
        at += length + (at[length] == ' ');
    }
    bw_print(stdout, "\n\n");
    if (command->run == bw_tool_bench)
        bw_tool_bench_list();
    bw_print(stdout, "`man bellwire-%s` explains the arguments.\n", command->name);
    return BW_TOOL_DONE;
}

int bw_tool_dispatch(int argc, char **argv)
{
    for (size_t i = 0; i < BW_COUNT_OF(commands); i++) {
        if (strcmp(argv[0], commands[i].name))
            continue;
        for (int k = 1; k < argc && strcmp(argv[k], "--"); k++) {
            if (!strcmp(argv[k], "--help") || !strcmp(argv[k], "-h"))
                return print_command_help(&commands[i]);
        }
        return commands[i].run(argc, argv);
    }
    return -1;
}

static int program(int argc, char **argv)
{
    const char *name = argc < 2 ? "" : argv[1];
    if (argc < 2) {
        print_help(stderr);
        return BW_TOOL_USAGE;
    }
    bool help = !strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help");
    if (help && (argc == 2 || argv[2][0] == '-'))
        return print_help(stdout);
    if (help) { /* of that subcommand */
        char *asked[] = {argv[2], (char[]){"--help"}};
        int status = bw_tool_dispatch(2, asked);
        if (status >= 0)
            return status;
        name = argv[2];
    }
    if (!strcmp(name, "--version")) {
        bw_print(stdout, "bellwire %s\n", BW_VERSION);
        return BW_TOOL_DONE;
    }
    int status = help ? -1 : bw_tool_dispatch(argc - 1, argv + 1);
    if (status >= 0)
        return status;
    bw_print(stderr, "bellwire: no subcommand named '%s'; `bellwire --help` lists them\n", name);
    return BW_TOOL_USAGE;
}

/* Told at once: what has too little ends by a fault, somewhere, without a word. */
static bool stack_suffices(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= STACK_BYTES_MIN)
        return true;
    bw_print(stderr, "bellwire: a stack of %llu KiB is too small, at least %d are needed: raise ulimit -s\n",
             (unsigned long long)limit.rlim_cur >> 10, STACK_BYTES_MIN >> 10);
    return false;
}

int main(int argc, char **argv)
{
    struct bw_stdout output;
    struct bw_err err = {0};
    signal(SIGXFSZ,
           SIG_IGN); /* a file past the limit is EFBIG to whoever writes it, and no end of the program */
    if (!stack_suffices())
        return BW_TOOL_FAILED;
    bw_stdout_begin(&output);
    int status = program(argc, argv);
    if (bw_stdout_end(&output, &err) && !status)
        status = bw_tool_fail(&err);
    return status;
}
