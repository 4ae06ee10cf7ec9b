/* Kernels of folds, by the compiler: a tensor graph of one expression, scheduled into one kernel, compiled
 * once and loaded on every rank. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/collective/collective.h"
#include "compiler/kernel.h"
#include "compiler/plan.h"
#include "compiler/tensor_graph.h"

static bw_tensor combine(struct bw_tensor_graph *g, enum bw_reduction reduction, bw_tensor a, bw_tensor b)
{
    switch (reduction) {
    case BW_REDUCE_PROD:
        return bw_tensor_mul(g, a, b);
    case BW_REDUCE_MIN:
        return bw_tensor_min(g, a, b);
    case BW_REDUCE_MAX:
        return bw_tensor_max(g, a, b);
    default:
        return bw_tensor_add(g, a, b);
    }
}

static bw_tensor expression(struct bw_tensor_graph *g, const struct bw_collective *collective,
                            const struct bw_fold *fold)
{
    enum bw_dtype dtype = collective->options.dtype;
    enum bw_dtype wide = dtype == BW_F16 || dtype == BW_BF16 ? BW_F32 : dtype;
    enum bw_reduction reduction = collective->options.reduction;
    int64_t dims[] = {(int64_t)fold->count};
    bw_tensor sum = {0};
    for (uint32_t i = 0; i < fold->input_count; i++) {
        bw_tensor input = bw_tensor_cast(g, wide, bw_tensor_input(g, fold->inputs[i], 1, dims));
        sum = i ? combine(g, reduction, sum, input) : input;
    }
    if (fold->last && reduction == BW_REDUCE_AVG)
        sum = bw_tensor_mul(g, sum, bw_tensor_scalar(g, wide, 1.0 / collective->rank_count));
    return bw_tensor_cast(g, fold->output, sum);
}

/* Which input each argument is. */
static int arguments_find(const struct bw_tensor_graph *g, const struct bw_schedule *schedule,
                          struct bw_fold_kernel *kernel, struct bw_err *err)
{
    const struct bw_schedule_kernel *scheduled = &schedule->kernels.data[0];
    if (schedule->kernels.count != 1 || scheduled->argument_count != 1 + kernel->fold.input_count ||
        scheduled->offsets)
        return bw_fail(err, -ENOTSUP, "collective", "a fold of %u inputs became %zu kernels",
                       kernel->fold.input_count, schedule->kernels.count);
    for (uint32_t i = 0; i < kernel->fold.input_count; i++) {
        const struct bw_schedule_buffer *buffer = &schedule->buffers.data[scheduled->arguments[1 + i]];
        kernel->order[i] = g->buffers.data[buffer->tensor_buffer].input_index;
    }
    return 0;
}

static int kernel_compile(const struct bw_collective *collective, struct bw_schedule *schedule,
                          struct bw_compiled *compiled, struct bw_err *err)
{
    struct bw_device *device = collective->devices[0];
    struct bw_target target;
    struct bw_cache *cache;
    bw_node sink = schedule->kernels.data[0].sink;
    int rc = bw_target_from_device(bw_device_info(device), &target, err);
    if (!rc)
        rc = bw_cache_create(bw_ctx_config(bw_device_ctx(device))->cache_dir, &cache, err);
    if (rc)
        return rc;
    rc = bw_compile(schedule->ir, sink, bw_compile_key(schedule->ir, sink, &target), &target, cache, NULL,
                    compiled, err);
    bw_cache_destroy(cache);
    return rc;
}

static int kernel_load(const struct bw_collective *collective, const struct bw_compiled *compiled,
                       struct bw_fold_kernel *kernel, struct bw_err *err)
{
    const struct bw_device_info *info = bw_device_info(collective->devices[0]);
    int rc = 0;
    memcpy(kernel->group_count, compiled->group_count, sizeof kernel->group_count);
    kernel->group_size = strcmp(info->driver, "host") ? compiled->item_count : 1;
    for (uint32_t rank = 0; rank < collective->rank_count && !rc; rank++) {
        rc = bw_program_load(collective->devices[rank], compiled->object.data, compiled->object.size_bytes,
                             &kernel->programs[rank], err);
        if (!rc)
            rc = bw_program_kernel(kernel->programs[rank], compiled->name, &kernel->kernels[rank], err);
    }
    return rc;
}

int bw_fold_kernel_make(struct bw_collective *collective, const struct bw_fold *fold,
                        struct bw_fold_kernel *kernel, struct bw_err *err)
{
    struct bw_compiled compiled = {0};
    struct bw_schedule *schedule = NULL;
    struct bw_tensor_graph *g;
    int rc = bw_tensor_graph_create(&g, err);
    if (rc)
        return rc;
    *kernel = (struct bw_fold_kernel){.fold = *fold};
    bw_tensor output = expression(g, collective, fold);
    rc = bw_plan_schedule(g, &output, 1, &schedule, err);
    if (!rc)
        rc = arguments_find(g, schedule, kernel, err);
    if (!rc)
        rc = kernel_compile(collective, schedule, &compiled, err);
    if (!rc)
        rc = kernel_load(collective, &compiled, kernel, err);
    if (!rc)
        kernel->flops = bw_kernel_flops(schedule->ir, schedule->kernels.data[0].sink);
    if (rc)
        bw_fold_kernel_free(kernel, collective->rank_count);
    bw_compiled_free(&compiled);
    if (schedule)
        bw_schedule_destroy(schedule);
    bw_tensor_graph_destroy(g);
    return rc;
}

void bw_fold_kernel_free(struct bw_fold_kernel *kernel, uint32_t rank_count)
{
    for (uint32_t rank = 0; rank < rank_count; rank++)
        if (kernel->programs[rank])
            bw_program_destroy(kernel->programs[rank]);
    *kernel = (struct bw_fold_kernel){0};
}
