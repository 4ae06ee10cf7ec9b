/* Schedules as jobs, and texts of every stage: see plan.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "compiler/plan.h"
#include "compiler/print.h"
#include "compiler/tensor_graph.h"

int bw_plan_schedule(struct bw_tensor_graph *g, const bw_tensor *outputs, uint32_t output_count,
                     struct bw_schedule **schedule, struct bw_err *err)
{
    int rc = bw_tensor_graph_error(g, err);
    if (rc)
        return rc;
    bool *is_input = calloc(g->buffers.count + 1, sizeof *is_input);
    bw_node *nodes = calloc(output_count + 1, sizeof *nodes);
    if (!is_input || !nodes)
        rc = bw_fail(err, -ENOMEM, "plan", "%u outputs", output_count);
    for (size_t i = 0; !rc && i < g->buffers.count; i++)
        is_input[i] = g->buffers.data[i].kind == BW_TENSOR_INPUT;
    for (uint32_t i = 0; !rc && i < output_count; i++) {
        nodes[i] = bw_tensor_node(outputs[i]);
        if (!nodes[i])
            rc = bw_fail(err, -EINVAL, "plan", "output %u is no tensor", i);
    }
    if (!rc)
        rc = bw_schedule_create(g->ir, is_input, (uint32_t)g->buffers.count, nodes, output_count, schedule,
                                err);
    free(is_input);
    free(nodes);
    return rc;
}

int bw_plan_jobs(struct bw_schedule *schedule, const struct bw_target *target,
                 struct bw_compile_job **jobs_out, uint32_t *job_count, uint32_t **job_of_out,
                 struct bw_err *err)
{
    struct bw_map known = {0};
    size_t count = schedule->kernels.count;
    struct bw_compile_job *jobs = calloc(count + 1, sizeof *jobs);
    uint32_t *job_of = calloc(count + 1, sizeof *job_of);
    int rc = jobs && job_of ? 0 : -ENOMEM;
    *job_count = 0;
    for (size_t i = 0; i < count && !rc; i++) {
        uint64_t number = *job_count;
        bw_node sink = schedule->kernels.data[i].sink;
        if (!bw_map_get(&known, sink, &number)) { /* equal kernels are one node */
            rc = bw_map_set(&known, sink, number);
            jobs[number].sink = sink;
            jobs[number].key = bw_compile_key(schedule->ir, sink, target);
            (*job_count)++;
        }
        job_of[i] = (uint32_t)number;
    }
    bw_map_free(&known);
    if (rc) {
        free(jobs);
        free(job_of);
        return bw_fail(err, rc, "plan", "%zu kernels", count);
    }
    *jobs_out = jobs;
    *job_of_out = job_of;
    return 0;
}

static void dump_graph(const struct bw_tensor_graph *g, const bw_tensor *outputs, uint32_t output_count,
                       struct bw_text *text)
{
    bw_node *nodes = calloc(output_count + 1, sizeof *nodes);
    for (uint32_t i = 0; nodes && i < output_count; i++) {
        nodes[i] = bw_tensor_node(outputs[i]);
        bw_text_add(text, "output %u: %%%u\n", i, nodes[i]);
    }
    if (nodes)
        bw_print_graph(text, g->ir, nodes, output_count);
    free(nodes);
}

static void dump_launches(const struct bw_schedule *schedule, const uint32_t *job_of, struct bw_text *text)
{
    for (size_t i = 0; i < schedule->kernels.count; i++) {
        const struct bw_schedule_kernel *kernel = &schedule->kernels.data[i];
        bw_text_add(text, "launch %zu: kernel %u%s, buffers", i, job_of[i], kernel->once ? " (once)" : "");
        for (uint32_t k = 0; k < kernel->argument_count; k++) {
            const struct bw_schedule_buffer *buffer = &schedule->buffers.data[kernel->arguments[k]];
            bw_text_add(text, " %u (%s x %lld)", kernel->arguments[k], bw_dtype_name(buffer->dtype),
                        (long long)buffer->elements);
            if (kernel->offsets && kernel->offsets[k])
                bw_text_add(text, " from %lld", (long long)kernel->offsets[k]);
        }
        bw_text_add(text, "\n");
    }
}

static int dump_job(const struct bw_schedule *schedule, const struct bw_compile_job *job, uint32_t number,
                    const struct bw_target *target, uint32_t what, struct bw_text *text, struct bw_err *err)
{
    struct bw_text kernel = {0}, linear = {0}, assembly = {0};
    struct bw_compile_texts texts = {what & BW_DUMP_KERNELS ? &kernel : NULL,
                                     what & BW_DUMP_LINEAR ? &linear : NULL,
                                     what & BW_DUMP_ASSEMBLY ? &assembly : NULL};
    struct bw_compiled compiled;
    int rc = bw_compile(schedule->ir, job->sink, job->key, target, NULL, &texts, &compiled, err);
    if (!rc)
        bw_text_add(text, "\nkernel %u: %s\n%s%s%s", number, compiled.name, bw_text_string(&kernel),
                    bw_text_string(&linear), bw_text_string(&assembly));
    bw_compiled_free(&compiled);
    bw_text_free(&kernel);
    bw_text_free(&linear);
    bw_text_free(&assembly);
    return rc;
}

int bw_plan_dump(struct bw_tensor_graph *g, const struct bw_target *target, const bw_tensor *outputs,
                 uint32_t output_count, uint32_t what, struct bw_text *text, struct bw_err *err)
{
    struct bw_schedule *schedule;
    struct bw_compile_job *jobs;
    uint32_t job_count, *job_of;
    int rc = bw_plan_schedule(g, outputs, output_count, &schedule, err);
    if (rc)
        return rc;
    rc = bw_plan_jobs(schedule, target, &jobs, &job_count, &job_of, err);
    if (rc) {
        bw_schedule_destroy(schedule);
        return rc;
    }
    if (what & BW_DUMP_GRAPH)
        dump_graph(g, outputs, output_count, text);
    if (what & BW_DUMP_KERNELS)
        dump_launches(schedule, job_of, text);
    for (uint32_t i = 0; i < job_count && !rc && what & ~(uint32_t)BW_DUMP_GRAPH; i++)
        rc = dump_job(schedule, &jobs[i], i, target, what, text, err);
    free(jobs);
    free(job_of);
    bw_schedule_destroy(schedule);
    return rc;
}
