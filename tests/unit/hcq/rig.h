/* What the tests of hcq share: devices with the `mix` kernel, and how a test says things briefly. */
#ifndef BW_TESTS_HCQ_RIG_H
#define BW_TESTS_HCQ_RIG_H

#include <bellwire/graph.h>

#include "tests/check.h"
#include "tests/objects.h"
#include "tests/seed.h"

enum { RIG_DEVICES_MAX = 9 /* eight GPUs and a host */ };

static const uint32_t rig_kernels_gfx1100[] = {
#include "tests/unit/hcq/kernels_gfx1100.inc"
};

struct rig {
    struct bw_ctx *ctx;
    struct bw_device *devices[RIG_DEVICES_MAX];
    struct bw_program *programs[RIG_DEVICES_MAX];
    uint32_t device_count;
    struct bw_err err;
};

/* The program with `mix` for the device's architecture. */
static inline bool rig_program(struct rig *rig, uint32_t device)
{
    uint64_t image_bytes;
    if (strcmp(bw_device_info(rig->devices[device])->driver, "amd") == 0)
        return BW_OK(bw_program_load(rig->devices[device], rig_kernels_gfx1100, sizeof rig_kernels_gfx1100,
                                     &rig->programs[device], &rig->err),
                     &rig->err);
    void *image = bw_test_file(BW_HOST_KERNELS_PIC, &image_bytes);
    bool ok = BW_TRUE(image != NULL) && BW_OK(bw_program_load(rig->devices[device], image, image_bytes,
                                                              &rig->programs[device], &rig->err),
                                              &rig->err);
    free(image);
    return ok;
}

/* names: NULL-terminated. */
static inline bool rig_open(struct rig *rig, const struct bw_ctx_config *config, const char *const *names)
{
    *rig = (struct rig){0};
    bool ok = BW_OK(bw_ctx_create(config, &rig->ctx, &rig->err), &rig->err);
    for (; *names && ok; names++) {
        uint32_t i = rig->device_count;
        ok = BW_OK(bw_device_open(rig->ctx, *names, &rig->devices[i], &rig->err), &rig->err);
        if (ok) {
            rig->device_count++;
            ok = rig_program(rig, i);
        }
    }
    return ok;
}

static inline void rig_close(struct rig *rig)
{
    for (uint32_t i = 0; i < rig->device_count; i++) {
        bw_program_destroy(rig->programs[i]);
        bw_device_close(rig->devices[i]);
    }
    bw_ctx_destroy(rig->ctx);
}

static inline struct bw_buffer *rig_buffer(struct rig *rig, uint32_t device, uint64_t size_bytes,
                                           uint32_t flags)
{
    struct bw_buffer *buffer = NULL;
    BW_OK(bw_buffer_create(rig->devices[device], size_bytes, flags, &buffer, &rig->err), &rig->err);
    return buffer;
}

static inline struct bw_kernel *rig_kernel(struct rig *rig, uint32_t device, const char *name)
{
    struct bw_kernel *kernel = NULL;
    BW_OK(bw_program_kernel(rig->programs[device], name, &kernel, &rig->err), &rig->err);
    return kernel;
}

static inline struct bw_graph *rig_graph(struct rig *rig)
{
    struct bw_graph *graph = NULL;
    BW_OK(bw_graph_create(rig->ctx, &graph, &rig->err), &rig->err);
    return graph;
}

/* Links with default options and destroys the graph. */
static inline struct bw_linked_graph *rig_link(struct rig *rig, struct bw_graph *graph)
{
    struct bw_linked_graph *linked = NULL;
    BW_OK(bw_graph_link(graph, NULL, &linked, &rig->err), &rig->err);
    bw_graph_destroy(graph);
    return linked;
}

static inline struct bw_range range_all(struct bw_buffer *buffer)
{
    return (struct bw_range){buffer, 0, 0, bw_buffer_size(buffer)};
}

static inline struct bw_range range_input(uint32_t input, uint64_t offset, uint64_t size_bytes)
{
    return (struct bw_range){NULL, input, offset, size_bytes};
}

static inline struct bw_argument argument_range(struct bw_range range, uint32_t access)
{
    return (struct bw_argument){.source = BW_ARG_RANGE, .access = access, .range = range};
}

static inline struct bw_argument argument_value(uint64_t value)
{
    return (struct bw_argument){.source = BW_ARG_VALUE, .value = value};
}

/* One group of `mix`: target[i] = target[i] * 31 + source[min(i, source count - 1)] + salt. salt_variable <
 * 0: the value salt. */
static inline int mix_add(struct rig *rig, struct bw_graph *graph, uint32_t device, struct bw_range target,
                          struct bw_range source, uint32_t salt, int salt_variable)
{
    struct bw_argument arguments[] = {
        argument_range(target, BW_ACCESS_READ | BW_ACCESS_WRITE), argument_range(source, BW_ACCESS_READ),
        argument_value(target.size_bytes), argument_value(source.size_bytes), argument_value(salt)};
    if (salt_variable >= 0)
        arguments[4] = (struct bw_argument){.source = BW_ARG_VARIABLE, .variable = (uint32_t)salt_variable};
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {bw_device_info(rig->devices[device])->wave_size, 1, 1},
                               .arguments = arguments,
                               .argument_count = 5};
    struct bw_kernel *kernel = rig_kernel(rig, device, "mix");
    return kernel ? bw_graph_kernel(graph, kernel, &launch, &rig->err) : -ENOENT;
}

static inline void mix_run(uint8_t *target, uint64_t target_bytes, const uint8_t *source,
                           uint64_t source_bytes, uint32_t salt)
{
    for (uint64_t i = 0; i < target_bytes; i++)
        target[i] = (uint8_t)(target[i] * 31u + source[i < source_bytes ? i : source_bytes - 1] + salt);
}

static inline bool error_says(const struct bw_err *err, const char *text)
{
    char line[600];
    bw_err_format(err, line, sizeof line);
    if (strstr(line, text))
        return true;
    printf("\n    not in the error: %s\n", line);
    return false;
}

#endif
