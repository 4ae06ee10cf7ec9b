/* The `bellwire` program: one file per subcommand, one row in tools/commands.def each. */
#ifndef BW_TOOLS_TOOL_H
#define BW_TOOLS_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <bellwire/ctx.h>
#include <bellwire/dtype.h>
#include <bellwire/err.h>

struct cJSON;

/* Exit codes of the contract (man page bellwire(1)). */
enum bw_tool_exit {
    BW_TOOL_DONE = 0,
    BW_TOOL_FAILED = 1,
    BW_TOOL_USAGE = 2,
    BW_TOOL_NO_DEVICE = 3,
    BW_TOOL_DEVICE_FAILED = 4,
    BW_TOOL_SKIPPED = 77,
};

#define X(name, summary, usage) int bw_tool_##name(int argc, char **argv);
#include "tools/commands.def"
#undef X

/* Options are walked one by one:
 *
 *   struct bw_args args = bw_args_begin("decode", argc, argv);
 *   while (bw_args_next(&args)) {
 *       if (bw_args_is(&args, "--kind")) kind = bw_args_value(&args);
 *       else if (args.positional) file = args.positional;
 *       else bw_args_unknown(&args);
 *   }
 *   if (args.failed) return BW_TOOL_USAGE;
 *
 * "--name=value" and "--name value" are the same; "--" ends the options. `--json` and `--help` are handled
 * inside. An option that is given twice is refused, except those that `several` lists. */
enum {
    BW_ARGS_NAME_BYTES = 32, /* what is longer is no option */
    BW_ARGS_SEEN_MAX = 32,   /* twice as many as any subcommand has */
};

/* Another word for an option. */
struct bw_args_alias {
    const char *alias, *option;
};

struct bw_args {
    const char *tool;
    int argc, at;
    char **argv;
    const char *positional; /* the current argument when it is not an option */
    const char *option;     /* "--kind" */
    const char *inline_value;
    const struct bw_args_alias *aliases; /* taken for the option itself; the last row is empty; NULL: none */
    const char *several;                 /* "--shape --input": what may stand more than once; NULL: nothing */
    bool json, options_ended, failed, help;
    char name[BW_ARGS_NAME_BYTES];
    char seen[BW_ARGS_SEEN_MAX][BW_ARGS_NAME_BYTES];
    uint32_t seen_count;
};

struct bw_args bw_args_begin(const char *tool, int argc, char **argv);
bool bw_args_next(struct bw_args *args);
bool bw_args_is(const struct bw_args *args, const char *option);
/* The option's value; prints what is missing and sets failed when there is none. Never NULL. */
const char *bw_args_value(struct bw_args *args);
/* The same as the name of a file or folder to write: "-" is none. */
const char *bw_args_output(struct bw_args *args);
/* The same as a non-negative number with optional K, M, G suffix (powers of 1024, also in lower case). */
uint64_t bw_args_number(struct bw_args *args);
/* The same, from `least` to `most`. */
uint32_t bw_args_count(struct bw_args *args, uint32_t least, uint32_t most);
/* "X,Y,Z" or "X" or "X,Y": what is missing is 1; numbers from 1 to 2^32 - 1. */
void bw_args_triple(struct bw_args *args, uint32_t triple[3]);
void bw_args_unknown(struct bw_args *args);
/* Whether the word is among those, with spaces between them; NULL has none. */
bool bw_words_have(const char *words, const char *word);
/* What a tool returns when args.failed or args.help. */
int bw_args_exit(const struct bw_args *args);

/* Prints the error's line to standard error and gives the exit code that fits it. */
int bw_tool_fail(const struct bw_err *err);
/* The same where --arch is looked up: a name that is none (-ENOTSUP) is wrong usage. */
int bw_tool_arch_fail(const struct bw_err *err);
/* Prints a usage mistake. Returns BW_TOOL_USAGE. */
int bw_tool_usage(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A context configured from the environment; the device to use: option, BW_DEV, or the default with its
 * one-line note. */
int bw_tool_context(struct bw_ctx **ctx);
struct bw_device;
int bw_tool_device(struct bw_ctx *ctx, const char *option, struct bw_device **device);
/* Prints the benches, one per line. */
void bw_tool_bench_list(void);
/* One subcommand of commands.def with its own arguments, argv[0] being its name; -1: no such subcommand. */
int bw_tool_dispatch(int argc, char **argv);
/* The document as text (free), of several lines or of one; NULL: no memory. Frees the document. */
char *bw_tool_json_text(struct cJSON *document, bool pretty);
/* Prints the document and frees it. */
void bw_tool_print_json(struct cJSON *document);
/* Reads a whole file or pipe ("-": standard input) of at most bytes_max. The caller frees *data. */
int bw_tool_read_file(const char *path, uint64_t bytes_max, void **data, uint64_t *size_bytes,
                      struct bw_err *err);
/* What a file that was read is called in errors: "-" is standard input. */
const char *bw_tool_file_name(const char *path);

/* typed.c: numbers typed by hand, the same wherever they are taken. The type of that name, which is
 * text[0, length), of those that tensors are computed in; else BW_VOID. */
enum bw_dtype bw_tool_dtype_named(const char *text, size_t length);
/* A number as the bits of that type; false: it is none, or not within the type. */
bool bw_tool_element_parse(enum bw_dtype dtype, const char *text, uint64_t *bits);
/* "1,2,3" as an array of rank 1 (bw_value_free). -EINVAL, with the one that is no such number; -ENOMEM. */
enum { BW_TOOL_NUMBER_BYTES = 64 };
struct bw_value;
int bw_tool_elements_parse(enum bw_dtype dtype, const char *text, struct bw_value *value,
                           char wrong[BW_TOOL_NUMBER_BYTES]);

/* value.c: "f32[1,3,48,192]", "strings[2]", "sequence of 3", "none". */
struct bw_tool_type {
    char text[160];
};
struct bw_array;
struct bw_tool_type bw_tool_type(const struct bw_value *value);
/* Element number i as a double; of 64-bit integers what a double keeps. */
double bw_tool_element(const struct bw_array *array, int64_t i);
/* Element number i in text, exactly. */
struct bw_tool_type bw_tool_element_text(const struct bw_array *array, int64_t i);
/* The first elements on one line, "..." after them when there are more. */
void bw_tool_print_elements(FILE *out, const struct bw_array *array);
/* mkdir -p of the last part. */
int bw_tool_make_directory(const char *path, struct bw_err *err);
/* DIRECTORY/NAMESUFFIX.npy, '/' in the name as '_'; *path is the caller's (free). */
int bw_tool_npy_path(const char *directory, const char *name, const char *suffix, char **path,
                     struct bw_err *err);
/* Adds "dtype" and "shape" to the object. */
void bw_tool_json_type(struct cJSON *object, const struct bw_value *value);

#endif
