/* bellwire compile: what a model becomes, with no device. */
#include "tools/compile.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/plan.h"
#include "hcq/hcq.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/run.h"
#include "tools/tool.h"

enum { DUMPS = 5 };

static const struct {
    const char *name;
    uint32_t what; /* enum bw_plan_dump; 0: queues */
} dumps[DUMPS] = {
    {"graph", BW_DUMP_GRAPH},
    {"kernels", BW_DUMP_KERNELS},
    {"ir", BW_DUMP_LINEAR},
    {"asm", BW_DUMP_ASSEMBLY},
    {"queues", 0}, /* the last */
};

struct compile {
    struct bw_run run; /* the model, its shapes and inputs */
    const char *arch;
    bool dumps[DUMPS];
    struct bw_target target;
    struct bw_tensor_graph *graph;
    bw_tensor *outputs;
    uint32_t output_count;
};

static void parse_dump(struct bw_args *args, struct compile *compile)
{
    const char *text = bw_args_value(args);
    for (bool more = !args->failed; more; text += strcspn(text, ","), more = *text++ != 0) {
        size_t length = strcspn(text, ","), i = 0;
        while (i < DUMPS && (strlen(dumps[i].name) != length || memcmp(dumps[i].name, text, length) != 0))
            i++;
        if (i == DUMPS) {
            bw_tool_usage("compile", "--dump: '%.*s' is not one of graph, kernels, ir, asm, queues",
                          (int)length, text);
            args->failed = true;
            return;
        }
        compile->dumps[i] = true;
    }
}

static int find_target(struct compile *compile, struct bw_err *err)
{
    return !strcmp(compile->arch, "host") ? bw_target_host(&compile->target, err)
                                          : bw_target_amdgpu(compile->arch, &compile->target, err);
}

static int parse_options(struct compile *compile, int argc, char **argv)
{
    struct bw_args args = bw_args_begin("compile", argc, argv);
    args.several = "--shape --input --dump";
    struct bw_run *run = &compile->run;
    while (bw_args_next(&args)) {
        if (bw_args_is(&args, "--arch"))
            compile->arch = bw_args_value(&args);
        else if (bw_args_is(&args, "--dump"))
            parse_dump(&args, compile);
        else if (bw_args_is(&args, "--shape"))
            bw_run_bind(&args, &run->shapes);
        else if (bw_args_is(&args, "--input"))
            bw_run_bind(&args, &run->inputs);
        else if (args.positional && !run->model_path)
            run->model_path = args.positional;
        else
            bw_args_unknown(&args);
    }
    run->json = args.json;
    if (args.failed)
        return BW_TOOL_USAGE;
    if (!run->model_path || !compile->arch)
        return bw_tool_usage("compile", "a model and --arch are needed");
    struct bw_err err = {0};
    return find_target(compile, &err) ? bw_tool_arch_fail(&err) : BW_TOOL_DONE;
}

static int import(struct compile *compile)
{
    struct bw_err err = {0};
    struct bw_run *run = &compile->run;
    if (bw_model_load(run->model_path, &run->model, &err))
        return bw_tool_fail(&err);
    run->values = calloc(bw_model_input_count(run->model) + 1, sizeof *run->values);
    run->made_up = calloc(bw_model_input_count(run->model) + 1, sizeof *run->made_up);
    if (!run->values || !run->made_up) {
        bw_fail(&err, -ENOMEM, "compile", "values");
        return bw_tool_fail(&err);
    }
    int status = bw_run_shapes_bind(run);
    if (!status)
        status = bw_run_inputs_make(run);
    if (status)
        return status;
    if (bw_model_graph(run->model, run->values, &compile->graph, &compile->outputs, &compile->output_count,
                       &err)) {
        bw_run_made_up_hint(run, &err);
        return bw_tool_fail(&err);
    }
    bw_run_made_up_notice(run);
    return BW_TOOL_DONE;
}

/* ---- the summary ---- */

struct summary {
    struct bw_schedule *schedule;
    struct bw_compile_job *jobs;
    uint32_t job_count;
    uint32_t *job_of;
};

static void summary_free(struct summary *summary)
{
    for (uint32_t i = 0; i < summary->job_count; i++)
        bw_compiled_free(&summary->jobs[i].compiled);
    free(summary->jobs);
    free(summary->job_of);
    if (summary->schedule)
        bw_schedule_destroy(summary->schedule);
}

static int summary_make(struct compile *compile, struct summary *summary, struct bw_err *err)
{
    struct bw_cache *cache = NULL;
    int rc =
        bw_plan_schedule(compile->graph, compile->outputs, compile->output_count, &summary->schedule, err);
    if (!rc)
        rc = bw_plan_jobs(summary->schedule, &compile->target, &summary->jobs, &summary->job_count,
                          &summary->job_of, err);
    if (!rc)
        rc = bw_cache_create(bw_ctx_config(compile->run.ctx)->cache_dir, &cache, err);
    if (!rc)
        rc = bw_compile_all(summary->schedule->ir, summary->jobs, summary->job_count, &compile->target, cache,
                            err);
    bw_cache_destroy(cache);
    return rc;
}

/* Launches of kernel `job`, or of all (UINT32_MAX): in each run, or once, when the plan is made. */
static uint32_t launches_of(const struct summary *summary, uint32_t job, bool once)
{
    uint32_t launches = 0;
    for (size_t k = 0; k < summary->schedule->kernels.count; k++)
        launches += summary->schedule->kernels.data[k].once == once &&
                    (job == UINT32_MAX || summary->job_of[k] == job);
    return launches;
}

static void summary_report(const struct compile *compile, const struct summary *summary)
{
    uint32_t launches = launches_of(summary, UINT32_MAX, false),
             once = launches_of(summary, UINT32_MAX, true);
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "model", compile->run.model_path);
    cJSON_AddStringToObject(document, "arch", compile->arch);
    cJSON_AddNumberToObject(document, "launches", launches);
    cJSON_AddNumberToObject(document, "once", once);
    cJSON *rows = cJSON_AddArrayToObject(document, "kernels");
    if (!compile->run.json)
        bw_print(stdout, "%-36s %8s %5s %7s %20s %6s\n", "kernel", "launches", "once", "bytes", "groups",
                 "items");
    for (uint32_t i = 0; i < summary->job_count; i++) {
        const struct bw_compiled *compiled = &summary->jobs[i].compiled;
        char groups[40];
        snprintf(groups, sizeof groups, "%u,%u,%u", compiled->group_count[0], compiled->group_count[1],
                 compiled->group_count[2]);
        if (!compile->run.json)
            bw_print(stdout, "%-36s %8u %5u %7llu %20s %6u\n", compiled->name, launches_of(summary, i, false),
                     launches_of(summary, i, true), (unsigned long long)compiled->object.size_bytes, groups,
                     compiled->item_count);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", compiled->name);
        cJSON_AddNumberToObject(row, "launches", launches_of(summary, i, false));
        cJSON_AddNumberToObject(row, "once", launches_of(summary, i, true));
        cJSON_AddNumberToObject(row, "object_bytes", (double)compiled->object.size_bytes);
        cJSON_AddItemToArray(rows, row);
    }
    if (compile->run.json) {
        bw_tool_print_json(document);
        return;
    }
    cJSON_Delete(document);
    bw_print(stdout, "%u kernels, %u launches", summary->job_count, launches);
    if (once)
        bw_print(stdout, " and %u once", once);
    bw_print(stdout, ", for %s%s\n", compile->arch, summary->job_count ? "" : ": nothing is left to compute");
}

/* ---- what was asked for ---- */

/* Command buffers need queues: the host's, or such that are only encoded for. */
static int queues_dump(struct compile *compile, struct bw_text *text, struct bw_err *err)
{
    struct bw_device *device = NULL;
    int rc = strcmp(compile->arch, "host")
                 ? bw_device_open_unfed(compile->run.ctx, compile->arch, &device, err)
                 : bw_device_open(compile->run.ctx, "host:0", &device, err);
    if (!rc)
        rc = bw_compile_queues_print(compile->graph, device, compile->outputs, compile->output_count, text,
                                     err);
    bw_device_close(device);
    return rc;
}

static int summary_execute(struct compile *compile, struct bw_err *err)
{
    struct summary summary = {0};
    struct bw_progress *progress = bw_progress_begin("compiling", NULL);
    int rc = summary_make(compile, &summary, err);
    bw_progress_end(progress);
    if (!rc)
        summary_report(compile, &summary);
    summary_free(&summary);
    return rc;
}

/* One stage, or for people several at once, kernel by kernel. */
static int stages_dump(struct compile *compile, uint32_t what, bool queues, struct bw_text *text,
                       struct bw_err *err)
{
    int rc = what ? bw_plan_dump(compile->graph, &compile->target, compile->outputs, compile->output_count,
                                 what, text, err)
                  : 0;
    return rc || !queues ? rc : queues_dump(compile, text, err);
}

static int dumps_print(struct compile *compile, struct bw_err *err)
{
    struct bw_text text = {0};
    uint32_t what = 0;
    for (size_t i = 0; i < DUMPS; i++)
        what |= compile->dumps[i] ? dumps[i].what : 0;
    struct bw_progress *progress = bw_progress_begin("compiling", NULL);
    int rc = stages_dump(compile, what, compile->dumps[DUMPS - 1], &text, err);
    bw_progress_end(progress);
    if (!rc)
        bw_print_lines(stdout, bw_text_string(&text));
    bw_text_free(&text);
    return rc;
}

static int dumps_print_json(struct compile *compile, struct bw_err *err)
{
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "model", compile->run.model_path);
    cJSON_AddStringToObject(document, "arch", compile->arch);
    cJSON *list = cJSON_AddObjectToObject(document, "dumps");
    int rc = 0;
    for (size_t i = 0; i < DUMPS && !rc; i++) {
        struct bw_text text = {0};
        if (!compile->dumps[i])
            continue;
        rc = stages_dump(compile, dumps[i].what, !dumps[i].what, &text, err);
        cJSON_AddStringToObject(list, dumps[i].name, bw_text_string(&text));
        bw_text_free(&text);
    }
    if (rc)
        cJSON_Delete(document);
    else
        bw_tool_print_json(document);
    return rc;
}

static int execute(struct compile *compile)
{
    struct bw_err err = {0};
    bool any = false;
    for (size_t i = 0; i < DUMPS; i++)
        any |= compile->dumps[i];
    int rc = !any                ? summary_execute(compile, &err)
             : compile->run.json ? dumps_print_json(compile, &err)
                                 : dumps_print(compile, &err);
    return rc ? bw_tool_fail(&err) : BW_TOOL_DONE;
}

int bw_tool_compile(int argc, char **argv)
{
    struct compile compile = {.run = {.tool = "compile", .picture = {.std = {1, 1, 1}}}};
    struct bw_run *run = &compile.run;
    int status = parse_options(&compile, argc, argv);
    if (!status)
        status = bw_tool_context(&run->ctx);
    if (!status)
        status = import(&compile);
    if (!status)
        status = execute(&compile);
    bw_tensor_graph_destroy(compile.graph);
    free(compile.outputs);
    for (uint32_t i = 0; run->values && i < bw_model_input_count(run->model); i++)
        bw_value_free(&run->values[i]);
    free(run->values);
    free(run->made_up);
    bw_model_destroy(run->model);
    bw_ctx_destroy(run->ctx);
    bw_vec_free(&run->shapes);
    bw_vec_free(&run->inputs);
    return status;
}
