/* bellwire run: an ONNX model, its inputs from files or made up, its outputs shown, written, compared. */
#include "tools/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/device.h>

#include "base/number.h"
#include "tools/profile.h"
#include "tools/progress.h"
#include "tools/tool.h"

enum { REPEAT_MAX = 1 << 20, TOP_MAX = 1 << 20 };

void bw_run_bind(struct bw_args *args, bw_run_bindings *bindings)
{
    const char *text = bw_args_value(args), *equals = strchr(text, '=');
    if (args->failed)
        return;
    if (!equals || equals == text || !equals[1]) {
        bw_tool_usage(args->tool, "%s '%s': expected NAME=%s, or @0= for the first", args->option, text,
                      bw_args_is(args, "--shape") ? "1x3x48x48" : "FILE or NAME=f32:0.5,1");
        args->failed = true;
        return;
    }
    struct bw_run_binding binding = {text, equals + 1, (size_t)(equals - text)};
    for (size_t i = 0; i < bindings->count; i++)
        if (bindings->data[i].name_bytes == binding.name_bytes &&
            !memcmp(bindings->data[i].name, binding.name, binding.name_bytes)) {
            bw_tool_usage(args->tool, "%s %.*s: given twice", args->option, (int)binding.name_bytes, text);
            args->failed = true;
            return;
        }
    args->failed = bw_vec_push(bindings, binding) != 0;
}

bool bw_run_names(const struct bw_run_binding *binding, const char *name, uint32_t index)
{
    if (strlen(name) == binding->name_bytes && !memcmp(name, binding->name, binding->name_bytes))
        return true;
    const char *end = binding->name + 1;
    uint64_t number;
    return binding->name[0] == '@' && !bw_number_take(&end, &number) && number == index &&
           end == binding->name + binding->name_bytes;
}

static void parse_triple(struct bw_args *args, double values[3])
{
    const char *text = bw_args_value(args), *at = text;
    for (int i = 0; i < 3 && !args->failed; i++) {
        bool good = !bw_real_take(&at, &values[i]) && isfinite(values[i]);
        if (good && !*at && i == 0) { /* one for all */
            values[1] = values[2] = values[0];
            return;
        }
        if (!good || *at++ != (i < 2 ? ',' : 0)) {
            bw_tool_usage(args->tool, "%s: '%s' is not A,B,C", args->option, text);
            args->failed = true;
        }
    }
}

static void parse_tolerance(struct bw_args *args, struct bw_run *run)
{
    const char *text = bw_args_value(args), *at = text;
    if (args->failed)
        return;
    if (!bw_real_take(&at, &run->tolerance_rel) && *at++ == ',' && !bw_real_take(&at, &run->tolerance_abs) &&
        !*at && run->tolerance_rel >= 0 && run->tolerance_abs >= 0)
        return;
    bw_tool_usage(args->tool, "--tolerance: '%s' is not REL,ABS", text);
    args->failed = true;
}

static void parse_picture_option(struct bw_args *args, struct bw_run *run)
{
    if (bw_args_is(args, "--png-bgr"))
        run->picture.bgr = true;
    else if (bw_args_is(args, "--png-mean"))
        parse_triple(args, run->picture.mean);
    else
        parse_triple(args, run->picture.std);
    for (int i = 0; i < 3 && !args->failed; i++) {
        if (run->picture.std[i] == 0) {
            bw_tool_usage(args->tool, "--png-std: zero");
            args->failed = true;
        }
    }
}

static void parse_option(struct bw_args *args, struct bw_run *run)
{
    if (bw_args_is(args, "--device"))
        run->device_name = bw_args_value(args);
    else if (bw_args_is(args, "--shape"))
        bw_run_bind(args, &run->shapes);
    else if (bw_args_is(args, "--input"))
        bw_run_bind(args, &run->inputs);
    else if (bw_args_is(args, "--expect"))
        bw_run_bind(args, &run->expects);
    else if (bw_args_is(args, "--output"))
        run->output = bw_args_output(args);
    else if (bw_args_is(args, "--profile"))
        run->profile = bw_args_output(args);
    else if (bw_args_is(args, "--tolerance"))
        parse_tolerance(args, run);
    else if (bw_args_is(args, "--top"))
        run->top = bw_args_count(args, 1, TOP_MAX);
    else if (bw_args_is(args, "--repeat"))
        run->repeat = bw_args_count(args, 1, REPEAT_MAX);
    else if (bw_args_is(args, "--seed"))
        run->seed = bw_args_number(args);
    else if (bw_args_is(args, "--evaluator")) /* for debugging: the oracle instead of a device */
        run->evaluator = true;
    else if (bw_args_is(args, "--png-bgr") || bw_args_is(args, "--png-mean") || bw_args_is(args, "--png-std"))
        parse_picture_option(args, run);
    else if (args->positional && !run->model_path)
        run->model_path = args->positional;
    else
        bw_args_unknown(args);
}

static int parse_options(struct bw_run *run, int argc, char **argv)
{
    struct bw_args args = bw_args_begin("run", argc, argv);
    args.several = "--shape --input --expect";
    while (bw_args_next(&args))
        parse_option(&args, run);
    run->json = args.json;
    if (args.failed)
        return BW_TOOL_USAGE;
    if (!run->model_path)
        return bw_tool_usage("run", "a model is needed");
    if (run->evaluator && (run->device_name || run->profile))
        return bw_tool_usage("run", "--evaluator runs on no device: not with %s",
                             run->device_name ? "--device" : "--profile");
    return BW_TOOL_DONE;
}

static double seconds_since(struct bw_run *run, uint64_t begin_ns)
{
    struct bw_sys *sys = bw_ctx_sys(run->ctx);
    return (double)(sys->ops->clock_ns(sys) - begin_ns) * 1e-9;
}

static int load(struct bw_run *run)
{
    struct bw_err err = {0};
    struct bw_sys *sys = bw_ctx_sys(run->ctx);
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    if (bw_model_load(run->model_path, &run->model, &err))
        return bw_tool_fail(&err);
    run->load_seconds = seconds_since(run, begin_ns);
    run->values = calloc(bw_model_input_count(run->model) + 1, sizeof *run->values);
    run->made_up = calloc(bw_model_input_count(run->model) + 1, sizeof *run->made_up);
    run->outputs = calloc(bw_model_output_count(run->model) + 1, sizeof *run->outputs);
    run->files = calloc(bw_model_output_count(run->model) + 1, sizeof *run->files);
    if (run->values && run->made_up && run->outputs && run->files)
        return BW_TOOL_DONE;
    bw_fail(&err, -ENOMEM, "run", "values");
    return bw_tool_fail(&err);
}

static void outputs_free(struct bw_run *run)
{
    for (uint32_t i = 0; run->outputs && i < bw_model_output_count(run->model); i++)
        bw_value_free(&run->outputs[i]);
}

/* The files of a run that went well. What cannot be written does not cost the report. */
static int files_write(struct bw_run *run)
{
    struct bw_err err = {0};
    const struct bw_profile *const *profiles;
    int rc = bw_run_outputs_write(run, &err), status = rc ? bw_tool_fail(&err) : BW_TOOL_DONE;
    if (!run->profile)
        return status;
    uint32_t count = bw_model_profiles(run->model, &profiles);
    rc = bw_tool_profile_take(profiles, count, run->profile, &run->profile_report, &err);
    return rc ? bw_tool_fail(&err) : status;
}

static int execute(struct bw_run *run)
{
    struct bw_err err = {0};
    struct bw_sys *sys = bw_ctx_sys(run->ctx);
    struct bw_progress *progress = bw_progress_begin("running", run->device);
    int rc = 0;
    bw_model_profile(run->model, run->profile != NULL);
    for (uint32_t i = 0; i < run->repeat && !rc; i++) {
        outputs_free(run);
        uint64_t begin_ns = sys->ops->clock_ns(sys);
        rc = bw_model_run(run->model, run->device, run->values, run->outputs, &err);
        run->run_seconds_last = seconds_since(run, begin_ns);
        if (i == 0 || run->run_seconds_last < run->run_seconds_min)
            run->run_seconds_min = run->run_seconds_last;
    }
    bw_progress_end(progress);
    if (!rc) {
        bw_run_made_up_notice(run);
        return BW_TOOL_DONE;
    }
    bw_run_made_up_hint(run, &err);
    int status = bw_tool_fail(&err);
    /* No code is made for a device that executes nothing: none to run on. */
    return rc == -ENOTSUP && !strcmp(err.subsystem, "llvm") ? BW_TOOL_NO_DEVICE : status;
}

static void finish(struct bw_run *run)
{
    outputs_free(run);
    bw_profile_report_destroy(run->profile_report);
    for (uint32_t i = 0; run->values && i < bw_model_input_count(run->model); i++)
        bw_value_free(&run->values[i]);
    for (uint32_t i = 0; run->files && i < bw_model_output_count(run->model); i++)
        free(run->files[i]);
    free(run->values);
    free(run->made_up);
    free(run->outputs);
    free(run->files);
    bw_model_destroy(run->model);
    bw_device_close(run->device);
    bw_ctx_destroy(run->ctx);
    bw_vec_free(&run->shapes);
    bw_vec_free(&run->inputs);
    bw_vec_free(&run->expects);
}

int bw_tool_run(int argc, char **argv)
{
    struct bw_run run = {.tool = "run",
                         .picture = {.std = {1, 1, 1}},
                         .tolerance_rel = 1e-3,
                         .tolerance_abs = 1e-5,
                         .repeat = 1};
    struct bw_err err = {0};
    int status = parse_options(&run, argc, argv);
    if (!status)
        status = bw_tool_context(&run.ctx);
    if (!status)
        status = load(&run);
    if (!status)
        status = bw_run_shapes_bind(&run);
    if (!status)
        status = bw_run_expect_check(&run);
    if (!status)
        status = bw_run_inputs_make(&run);
    if (!status && run.output && bw_tool_make_directory(run.output, &err))
        status = bw_tool_fail(&err);
    if (!status && !run.evaluator)
        status = bw_tool_device(run.ctx, run.device_name, &run.device);
    if (!status)
        status = execute(&run);
    if (!status) {
        int written = files_write(&run);
        status = bw_run_expect(&run);
        bw_run_report(&run);
        status = status ? status : written;
    }
    finish(&run);
    return status;
}
