/* Runs the kernels of a schedule one by one, each through a function that the test gives, and compares with
 * the evaluator. */
#ifndef BW_TESTS_RUN_SCHEDULE_H
#define BW_TESTS_RUN_SCHEDULE_H

#include "compiler/interp.h"
#include "compiler/print.h"
#include "compiler/schedule.h"
#include "tests/unit/compiler/random_graph.h"

/* Runs one kernel on its buffers (by parameter number). */
typedef int (*run_kernel_fn)(struct bw_ir *ir, bw_node sink, const struct bw_interp_buffer *buffers,
                             uint32_t count, struct bw_err *err);

/* Runs all kernels of a schedule through the interpreter; memory[i] is buffer i's. */
static inline int run_schedule(const struct bw_schedule *s, void **memory, run_kernel_fn run,
                               struct bw_err *err)
{
    for (size_t i = 0; i < s->kernels.count; i++) {
        const struct bw_schedule_kernel *kernel = &s->kernels.data[i];
        struct bw_interp_buffer buffers[BW_LINEAR_PARAMS_MAX];
        for (uint32_t k = 0; k < kernel->argument_count; k++) {
            const struct bw_schedule_buffer *buffer = &s->buffers.data[kernel->arguments[k]];
            uint64_t skipped = kernel->offsets ? (uint64_t)kernel->offsets[k] : 0,
                     bytes = bw_dtype_bytes(buffer->dtype);
            buffers[k] = (struct bw_interp_buffer){(char *)memory[kernel->arguments[k]] + skipped * bytes,
                                                   ((uint64_t)buffer->elements - skipped) * bytes};
        }
        int rc = run(s->ir, kernel->sink, buffers, kernel->argument_count, err);
        if (rc) {
            struct bw_text text = {0};
            bw_print_graph(&text, s->ir, &kernel->sink, 1);
            printf("%s", bw_text_string(&text));
            bw_text_free(&text);
            return rc;
        }
    }
    return 0;
}

static inline int schedule_of(struct bw_tensor_graph *g, const bw_tensor *outputs, uint32_t count,
                              struct bw_schedule **s, struct bw_err *err)
{
    bool *is_input = calloc(g->buffers.count + 1, sizeof *is_input);
    bw_node nodes[RANDOM_OUTPUTS_MAX];
    for (size_t i = 0; i < g->buffers.count; i++)
        is_input[i] = g->buffers.data[i].kind == BW_TENSOR_INPUT;
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = bw_tensor_node(outputs[i]);
    int rc = bw_schedule_create(g->ir, is_input, (uint32_t)g->buffers.count, nodes, count, s, err);
    free(is_input);
    return rc;
}

static inline bool agrees(struct random_graph *r, run_kernel_fn run)
{
    struct bw_err err;
    struct bw_schedule *s;
    void *expected[RANDOM_OUTPUTS_MAX];
    bool ok = BW_OK(bw_tensor_evaluate_with(r->g, r->outputs, r->output_count, (const void *const *)r->inputs,
                                            RANDOM_INPUTS, expected, &err),
                    &err);
    if (!ok || !BW_OK(schedule_of(r->g, r->outputs, r->output_count, &s, &err), &err))
        return false;
    void **memory = calloc(s->buffers.count, sizeof *memory);
    for (size_t i = 0; i < s->buffers.count; i++) {
        const struct bw_schedule_buffer *buffer = &s->buffers.data[i];
        if (buffer->kind == BW_SCHEDULE_STORED)
            memory[i] = calloc((size_t)buffer->elements, 8);
        else {
            const struct bw_tensor_buffer *source = &r->g->buffers.data[buffer->tensor_buffer];
            memory[i] =
                source->kind == BW_TENSOR_INPUT ? r->inputs[source->input_index] : (void *)source->data;
        }
    }
    ok = BW_OK(run_schedule(s, memory, run, &err), &err);
    for (uint32_t i = 0; i < r->output_count && ok; i++)
        ok = random_same(bw_tensor_dtype(r->g, r->outputs[i]), bw_tensor_elements(r->g, r->outputs[i]),
                         memory[s->outputs[i]], expected[i], 2e-4);
    if (!ok) {
        struct bw_text text = {0};
        bw_node nodes[RANDOM_OUTPUTS_MAX];
        for (uint32_t i = 0; i < r->output_count; i++)
            nodes[i] = bw_tensor_node(r->outputs[i]);
        bw_print_graph(&text, r->g->ir, nodes, r->output_count);
        for (size_t i = 0; i < s->kernels.count; i++)
            bw_print_graph(&text, s->ir, &s->kernels.data[i].sink, 1);
        if (text.length < 20000)
            printf("%s", bw_text_string(&text));
        bw_text_free(&text);
    }
    for (size_t i = 0; i < s->buffers.count; i++)
        if (s->buffers.data[i].kind == BW_SCHEDULE_STORED)
            free(memory[i]);
    for (uint32_t i = 0; i < r->output_count; i++)
        free(expected[i]);
    free(memory);
    bw_schedule_destroy(s);
    return ok;
}

#endif
