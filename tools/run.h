/* `bellwire run`: what its parts share. */
#ifndef BW_TOOLS_RUN_H
#define BW_TOOLS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include <bellwire/model.h>

#include "base/vec.h"

struct bw_profile_report;

/* NAME=TEXT of the command line; NAME may be "@N". */
struct bw_run_binding {
    const char *name, *text;
    size_t name_bytes;
};
typedef BW_VEC(struct bw_run_binding) bw_run_bindings;

/* How pictures become tensors. */
struct bw_run_picture_options {
    double mean[3], std[3]; /* of the model's channels in their order; 0, 1 */
    bool bgr;
};

struct bw_run {
    const char *tool; /* the subcommand that messages name */
    const char *model_path, *device_name, *output, *profile;
    bw_run_bindings shapes, inputs, expects;
    struct bw_run_picture_options picture;
    double tolerance_rel, tolerance_abs;
    uint32_t top, repeat;
    uint64_t seed;
    bool json, evaluator;

    struct bw_ctx *ctx;
    struct bw_device *device; /* NULL: the evaluator */
    struct bw_model *model;
    struct bw_value *values;  /* inputs */
    bool *made_up;            /* by input: its values are */
    struct bw_value *outputs; /* of the last run */
    char **files;             /* where outputs were written; entries may be NULL */
    double load_seconds, run_seconds_min, run_seconds_last;

    uint32_t expected, failed; /* comparisons made, and those that failed */
    uint32_t compared;         /* outputs whose values were compared: type and shape are right */
    double max_abs_diff, max_rel_diff;
    struct bw_profile_report *profile_report; /* NULL: without --profile */
};

/* run.c: takes the option's value, NAME=TEXT; args fails when there is none or no '='. */
struct bw_args;
void bw_run_bind(struct bw_args *args, bw_run_bindings *bindings);
/* Whether the binding names value number `index` called `name`. */
bool bw_run_names(const struct bw_run_binding *binding, const char *name, uint32_t index);

/* run_inputs.c. Both print what is wrong and return a bw_tool_exit code. */
int bw_run_shapes_bind(struct bw_run *run);
/* Reads what is given, makes the rest up. */
int bw_run_inputs_make(struct bw_run *run);

/* What an option gives for a value: TYPE:V,V,... or a file. Prints what is wrong and returns a bw_tool_exit
 * code. */
int bw_run_value_read(const struct bw_run *run, const char *option, const struct bw_run_binding *binding,
                      const struct bw_model_value *declared, struct bw_value *value);
/* Whether it is typed. */
bool bw_run_is_typed(const struct bw_run_binding *binding);

/* run_made_up.c: inputs whose values were made up, and that decided what is computed. After bw_model_run or
 * bw_model_graph: a line on standard error that names them, if there are any; or, where that failed, the same
 * in the hint. */
void bw_run_made_up_notice(const struct bw_run *run);
void bw_run_made_up_hint(const struct bw_run *run, struct bw_err *err);

/* run_picture.c: a .png as the input `declared`; path stands in errors. -EINVAL: the input is no picture. */
int bw_run_picture_parse(const char *path, const uint8_t *data, uint64_t size_bytes,
                         const struct bw_model_value *declared, const struct bw_run_picture_options *options,
                         struct bw_value *value, struct bw_err *err);
/* Reads .npy, .pb or .png by what the file holds. */
int bw_run_file_read(const char *path, const struct bw_model_value *declared,
                     const struct bw_run_picture_options *options, struct bw_value *value,
                     struct bw_err *err);

/* run_expect.c: whether what --expect names is there, before anything runs; prints what is not. */
int bw_run_expect_check(const struct bw_run *run);
/* Compares outputs with what --expect names; prints what differs. */
int bw_run_expect(struct bw_run *run);

/* run_outputs.c */
int bw_run_outputs_write(struct bw_run *run, struct bw_err *err);
void bw_run_report(const struct bw_run *run);

#endif
