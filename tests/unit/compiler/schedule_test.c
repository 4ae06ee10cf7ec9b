/* Goal: what the scheduler makes of a tensor graph computes what the evaluator says, and fuses what should be
 * one kernel. */
#include <bellwire/err.h>

#include "compiler/decompose.h"
#include "compiler/interp.h"
#include "compiler/print.h"
#include "compiler/schedule.h"
#include "tests/unit/compiler/random_graph.h"

/* Runs all kernels of a schedule through the interpreter; memory[i] is buffer i's. */
static int interpret(const struct bw_schedule *s, void **memory, struct bw_err *err)
{
    for (size_t i = 0; i < s->kernels.count; i++) {
        const struct bw_schedule_kernel *kernel = &s->kernels.data[i];
        struct bw_interp_buffer buffers[BW_LINEAR_PARAMS_MAX];
        struct bw_linear linear;
        for (uint32_t k = 0; k < kernel->argument_count; k++) {
            const struct bw_schedule_buffer *buffer = &s->buffers.data[kernel->arguments[k]];
            buffers[k] = (struct bw_interp_buffer){
                memory[kernel->arguments[k]], (uint64_t)buffer->elements * bw_dtype_bytes(buffer->dtype)};
        }
        int rc = bw_linearize(s->ir, kernel->sink, &linear, err);
        if (rc)
            return rc;
        rc = bw_interp_run(&linear, buffers, kernel->argument_count, err);
        bw_linear_free(&linear);
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

static int schedule_of(struct bw_tensor_graph *g, const bw_tensor *outputs, uint32_t count,
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

static bool agrees(struct random_graph *r)
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
    ok = BW_OK(interpret(s, memory, &err), &err);
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

static void random_graphs_agree_with_the_evaluator(void)
{
    const char *fixed = getenv("BW_TEST_SEED");
    uint64_t first = fixed ? strtoull(fixed, NULL, 0) : 1, count = fixed ? 1 : 400;
    for (uint64_t seed = first; seed < first + count; seed++) {
        struct random_graph r;
        bool ok = random_graph_create(&r, seed, 8 + seed % 25) && agrees(&r);
        random_graph_destroy(&r);
        if (!BW_TRUE(ok)) {
            printf("      seed %llu (BW_TEST_SEED)\n", (unsigned long long)seed);
            return;
        }
    }
}

static uint32_t kernels_of(struct bw_tensor_graph *g, bw_tensor output)
{
    struct bw_err err;
    struct bw_schedule *s;
    uint32_t count = 0;
    if (!BW_OK(bw_tensor_graph_error(g, &err), &err) || !BW_OK(schedule_of(g, &output, 1, &s, &err), &err))
        return 0;
    for (size_t i = 0; i < s->kernels.count; i++)
        count += !s->kernels.data[i].once;
    bw_schedule_destroy(s);
    return count;
}

static void chains_become_few_kernels(void)
{
    struct bw_err err;
    struct bw_tensor_graph *g;
    if (!BW_OK(bw_tensor_graph_create(&g, &err), &err))
        return;
    int64_t image[] = {1, 8, 12, 20}, filter[] = {8, 8, 3, 3}, ones[] = {1, 1}, channels = 8;
    static const float weights[8 * 8 * 9], biases[8];
    bw_tensor x = bw_tensor_input(g, BW_F32, 4, image), residual = bw_tensor_input(g, BW_F32, 4, image);
    struct bw_conv conv = {
        .spatial = 2, .stride = ones, .dilation = ones, .pad_low = ones, .pad_high = ones, .groups = 1};
    bw_tensor w = bw_tensor_constant(g, BW_F32, 4, filter, weights),
              bias = bw_tensor_constant(g, BW_F32, 1, &channels, biases);
    bw_tensor y = bw_tensor_add(g, bw_tensor_relu(g, bw_tensor_conv(g, x, w, bias, &conv)), residual);
    BW_EQ(kernels_of(g, y), 1);
    BW_EQ(kernels_of(g, bw_tensor_conv(g, y, w, bias, &conv)), 2);
    BW_TRUE(kernels_of(g, bw_tensor_softmax(g, x, 8)) <= 3);
    bw_tensor silu = bw_tensor_mul(g, y, bw_tensor_sigmoid(g, y));
    BW_EQ(kernels_of(g, silu), 1);
    BW_EQ(kernels_of(g, bw_tensor_matmul(g, x, bw_tensor_permute(g, residual, (uint32_t[]){0, 1, 3, 2}))), 1);
    bw_tensor_graph_destroy(g);
}

BW_TEST_MAIN("schedule", {"chains_become_few_kernels", chains_become_few_kernels},
             {"random_graphs_agree_with_the_evaluator", random_graphs_agree_with_the_evaluator})
