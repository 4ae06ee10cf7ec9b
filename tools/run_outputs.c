/* What `bellwire run` gives back: files, a report for people or as JSON. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/mock.h>

#include "compiler/io_npy.h"
#include "tools/print.h"
#include "tools/profile.h"
#include "tools/run.h"
#include "tools/tool.h"

static const char *device_text(const struct bw_run *run)
{
    return run->device ? bw_device_info(run->device)->name : "evaluator";
}

/* ---- files ---- */

/* "a/b" and "a_b" would be one file: what comes later gets its position into the name. */
static bool path_taken(const struct bw_run *run, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (run->files[i] && !strcmp(run->files[i], run->files[index]))
            return true;
    return false;
}

static int output_write(struct bw_run *run, uint32_t index, struct bw_err *err)
{
    struct bw_model_value declared;
    bw_model_output(run->model, index, &declared);
    int rc = bw_tool_npy_path(run->output, declared.name, "", &run->files[index], err);
    if (!rc && path_taken(run, index)) {
        char suffix[16];
        snprintf(suffix, sizeof suffix, "@%u", index);
        free(run->files[index]);
        rc = bw_tool_npy_path(run->output, declared.name, suffix, &run->files[index], err);
    }
    if (!rc)
        rc = bw_npy_write(run->files[index], &run->outputs[index], err);
    if (rc) { /* there is no such file */
        free(run->files[index]);
        run->files[index] = NULL;
    }
    return rc;
}

int bw_run_outputs_write(struct bw_run *run, struct bw_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; run->output && i < bw_model_output_count(run->model) && !rc; i++)
        if (run->outputs[i].kind == BW_VALUE_ARRAY || run->outputs[i].kind == BW_VALUE_STRINGS)
            rc = output_write(run, i, err);
    return rc;
}

/* ---- --top ---- */

struct top {
    int64_t *indexes; /* largest first */
    uint32_t count;
};

static struct top top_find(const struct bw_array *array, uint32_t most)
{
    int64_t elements = bw_array_elements(array);
    struct top top = {.count = elements < most ? (uint32_t)elements : most};
    uint32_t kept = 0;
    top.indexes = calloc((size_t)top.count + 1, sizeof *top.indexes);
    for (int64_t i = 0; top.indexes && i < elements; i++) {
        double value = bw_tool_element(array, i);
        uint32_t at = kept;
        while (at > 0 && value > bw_tool_element(array, top.indexes[at - 1]))
            at--;
        if (at == top.count || isnan(value))
            continue;
        kept += kept < top.count;
        memmove(&top.indexes[at + 1], &top.indexes[at], (kept - at - 1) * sizeof *top.indexes);
        top.indexes[at] = i;
    }
    top.count = kept;
    return top;
}

static void top_print(const struct bw_array *array, uint32_t most)
{
    struct top top = top_find(array, most);
    for (uint32_t i = 0; i < top.count; i++) {
        int64_t element = top.indexes[i];
        int64_t column = array->rank ? element % array->dims[array->rank - 1] : 0;
        bw_print(stdout, "  %s at %" PRId64, bw_tool_element_text(array, element).text, column);
        if (array->rank > 1 && bw_array_elements(array) > array->dims[array->rank - 1])
            bw_print(stdout, " of row %" PRId64, element / array->dims[array->rank - 1]);
        bw_print(stdout, "\n");
    }
    free(top.indexes);
}

static void top_json(cJSON *row, const struct bw_array *array, uint32_t most)
{
    struct top top = top_find(array, most);
    cJSON *list = cJSON_AddArrayToObject(row, "top");
    for (uint32_t i = 0; i < top.count; i++) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddNumberToObject(entry, "index", (double)top.indexes[i]);
        cJSON_AddNumberToObject(entry, "value", bw_tool_element(array, top.indexes[i]));
        cJSON_AddItemToArray(list, entry);
    }
    free(top.indexes);
}

static bool has_top(const struct bw_run *run, uint32_t i)
{
    return run->top && run->outputs[i].kind == BW_VALUE_ARRAY;
}

/* ---- JSON ---- */

static void outputs_json(const struct bw_run *run, cJSON *rows)
{
    for (uint32_t i = 0; i < bw_model_output_count(run->model); i++) {
        struct bw_model_value declared;
        bw_model_output(run->model, i, &declared);
        cJSON *row = cJSON_AddObjectToObject(rows, declared.name);
        bw_tool_json_type(row, &run->outputs[i]);
        if (run->files[i])
            cJSON_AddStringToObject(row, "file", run->files[i]);
        else
            cJSON_AddNullToObject(row, "file");
        if (has_top(run, i))
            top_json(row, &run->outputs[i].array, run->top);
    }
}

static void inputs_json(const struct bw_run *run, cJSON *rows)
{
    for (uint32_t i = 0; i < bw_model_input_count(run->model); i++) {
        struct bw_model_value declared;
        bw_model_input(run->model, i, &declared);
        bw_tool_json_type(cJSON_AddObjectToObject(rows, declared.name), &run->values[i]);
    }
}

static void seconds_json(const struct bw_run *run, const struct bw_model_stats *stats, cJSON *seconds)
{
    cJSON_AddNumberToObject(seconds, "load", run->load_seconds);
    cJSON_AddNumberToObject(seconds, "import", stats->import_seconds);
    cJSON_AddNumberToObject(seconds, "schedule", stats->plan.schedule_seconds);
    cJSON_AddNumberToObject(seconds, "compile", stats->plan.compile_seconds);
    cJSON_AddNumberToObject(seconds, "link", stats->plan.link_seconds);
    cJSON_AddNumberToObject(seconds, "run", run->device ? stats->plan.run_seconds : stats->run_seconds);
    cJSON_AddNumberToObject(seconds, "whole_run_least", run->run_seconds_min);
}

static void report_json(const struct bw_run *run, const struct bw_model_stats *stats)
{
    cJSON *document = cJSON_CreateObject();
    struct bw_mock_stats mock;
    cJSON_AddStringToObject(document, "model", run->model_path);
    cJSON_AddStringToObject(document, "device", device_text(run));
    inputs_json(run, cJSON_AddObjectToObject(document, "inputs"));
    outputs_json(run, cJSON_AddObjectToObject(document, "outputs"));
    if (run->compared) {
        cJSON_AddNumberToObject(document, "max_abs_diff", run->max_abs_diff);
        cJSON_AddNumberToObject(document, "max_rel_diff", run->max_rel_diff);
    } else {
        cJSON_AddNullToObject(document, "max_abs_diff");
        cJSON_AddNullToObject(document, "max_rel_diff");
    }
    cJSON_AddNumberToObject(document, "expected", run->expected);
    cJSON_AddNumberToObject(document, "different", run->failed);
    cJSON_AddNumberToObject(document, "kernels", stats->plan.kernels);
    if (run->device && bw_device_mock_stats(run->device, &mock) == 0)
        cJSON_AddNumberToObject(document, "wave_instructions", (double)mock.wave_instructions);
    seconds_json(run, stats, cJSON_AddObjectToObject(document, "seconds"));
    if (run->profile_report)
        bw_tool_profile_json(run->profile_report, document);
    bw_tool_print_json(document);
}

/* ---- for people ---- */

static void report_text(const struct bw_run *run, const struct bw_model_stats *stats)
{
    struct bw_model_value declared;
    struct bw_mock_stats mock;
    bw_print(stdout, "%s on %s\n", run->model_path, device_text(run));
    for (uint32_t i = 0; i < bw_model_input_count(run->model); i++) {
        bw_model_input(run->model, i, &declared);
        bw_print(stdout, "input %s %s\n", declared.name, bw_tool_type(&run->values[i]).text);
    }
    for (uint32_t i = 0; i < bw_model_output_count(run->model); i++) {
        const struct bw_value *value = &run->outputs[i];
        bw_model_output(run->model, i, &declared);
        bw_print(stdout, "output %s %s", declared.name, bw_tool_type(value).text);
        if (value->kind == BW_VALUE_ARRAY || value->kind == BW_VALUE_STRINGS) {
            bw_print(stdout, ": ");
            bw_tool_print_elements(stdout, &value->array);
        } else {
            bw_print(stdout, "\n");
        }
        if (run->files[i])
            bw_print(stdout, "  written to %s\n", run->files[i]);
        if (has_top(run, i))
            top_print(&value->array, run->top);
    }
    if (run->expected)
        bw_print(stdout, "%u of %u outputs as expected", run->expected - run->failed, run->expected);
    if (run->compared)
        bw_print(stdout, ", largest difference %.3g absolute, %.3g relative", run->max_abs_diff,
                 run->max_rel_diff);
    if (run->expected)
        bw_print(stdout, "\n");
    if (run->device) {
        const struct bw_plan_stats *plan = &stats->plan;
        bw_print(stdout, "%u kernels, %u compiled now, %u from the cache\n", plan->kernels, plan->compiled,
                 plan->cache_hits);
        if (bw_device_mock_stats(run->device, &mock) == 0)
            bw_print(stdout, "%" PRIu64 " wave-instructions\n", mock.wave_instructions);
        bw_print(stdout, "seconds: load %.3f, import %.3f, schedule %.3f, compile %.3f, link %.3f, run %.3f",
                 run->load_seconds, stats->import_seconds, plan->schedule_seconds, plan->compile_seconds,
                 plan->link_seconds, plan->run_seconds);
    } else {
        bw_print(stdout, "seconds: load %.3f, import %.3f, run %.3f", run->load_seconds,
                 stats->import_seconds, stats->run_seconds);
    }
    if (run->repeat > 1)
        bw_print(stdout, ", fastest of %u runs %.3f", run->repeat, run->run_seconds_min);
    bw_print(stdout, "\n");
    if (run->profile_report)
        bw_tool_profile_print(run->profile_report, stdout, "");
}

void bw_run_report(const struct bw_run *run)
{
    struct bw_model_stats stats;
    bw_model_stats(run->model, &stats);
    if (run->json)
        report_json(run, &stats);
    else
        report_text(run, &stats);
}
