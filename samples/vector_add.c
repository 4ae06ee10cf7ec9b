/* Vector addition through the whole stack: a device by name, buffers, machine code, a graph, a replay, the
 * answer.
 *
 *     vector_add                      on the first GPU, else on the mock (or BW_DEV)
 *     vector_add mockkfd+amd@gfx1100  on a mock Radeon RX 7900
 *
 * The kernel is vector_add.s beside this file, already assembled for gfx1100. */
#include <stdio.h>

#include <bellwire/graph.h>

enum { COUNT = 1000, GROUP_SIZE = 64 };

static const unsigned kernel_image[] = {
#include "vector_add.inc"
};

static int failed(const struct bw_err *err)
{
    char text[600];
    bw_err_format(err, text, sizeof text);
    fprintf(stderr, "vector_add: %s\n", text);
    return 1;
}

static struct bw_argument buffer_argument(struct bw_buffer *buffer, unsigned access)
{
    return (struct bw_argument){
        .source = BW_ARG_RANGE, .access = access, .range = {buffer, 0, 0, bw_buffer_size(buffer)}};
}

/* c = a + b on the device. */
static int add(struct bw_device *device, const float *a, const float *b, float *c, struct bw_err *err)
{
    struct bw_buffer *buffers[3];
    struct bw_program *program;
    struct bw_kernel *kernel;
    struct bw_graph *graph;
    struct bw_linked_graph *linked;
    uint64_t size_bytes = COUNT * sizeof(float), ticket;
    int rc = 0;
    for (int i = 0; i < 3 && !rc; i++)
        rc = bw_buffer_create(device, size_bytes, BW_BUFFER_DEVICE, &buffers[i], err);
    if (rc || (rc = bw_buffer_write(buffers[0], 0, a, size_bytes, err)) ||
        (rc = bw_buffer_write(buffers[1], 0, b, size_bytes, err)) ||
        (rc = bw_program_load(device, kernel_image, sizeof kernel_image, &program, err)) ||
        (rc = bw_program_kernel(program, "vector_add", &kernel, err)))
        return rc;
    struct bw_argument arguments[] = {buffer_argument(buffers[0], BW_ACCESS_READ),
                                      buffer_argument(buffers[1], BW_ACCESS_READ),
                                      buffer_argument(buffers[2], BW_ACCESS_WRITE),
                                      {.source = BW_ARG_VALUE, .value = COUNT}};
    struct bw_launch launch = {
        .group_count = {{(COUNT + GROUP_SIZE - 1) / GROUP_SIZE, false}, {1, false}, {1, false}},
        .group_size = {GROUP_SIZE, 1, 1},
        .arguments = arguments,
        .argument_count = 4};
    if ((rc = bw_graph_create(bw_device_ctx(device), &graph, err)) ||
        (rc = bw_graph_kernel(graph, kernel, &launch, err)) ||
        (rc = bw_graph_link(graph, NULL, &linked, err)) ||
        (rc = bw_linked_graph_replay(linked, NULL, &ticket, err)) ||
        (rc = bw_linked_graph_wait(linked, ticket, err)) ||
        (rc = bw_buffer_read(buffers[2], 0, c, size_bytes, err)))
        return rc;
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    bw_program_destroy(program);
    for (int i = 0; i < 3; i++)
        bw_buffer_destroy(buffers[i]);
    return 0;
}

int main(int argc, char **argv)
{
    struct bw_ctx_config config;
    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_err err;
    float a[COUNT], b[COUNT], c[COUNT];
    if (bw_ctx_config_from_environment(&config, &err) || bw_ctx_create(&config, &ctx, &err) ||
        bw_device_open(ctx, argc > 1 ? argv[1] : NULL, &device, &err))
        return failed(&err);
    const struct bw_device_info *info = bw_device_info(device);
    if (argc < 2 && !config.device && info->mock) /* nobody asked for one */
        fprintf(stderr, "vector_add: no GPU in this machine: using the mock %s\n", info->name);
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 0.5f / (float)(i + 1);
    }
    if (add(device, a, b, c, &err))
        return failed(&err);
    int wrong = 0;
    for (int i = 0; i < COUNT; i++)
        wrong += c[i] != a[i] + b[i];
    printf("%s: %d sums, %d wrong\n", info->name, COUNT, wrong);
    bw_device_close(device);
    bw_ctx_destroy(ctx);
    return wrong != 0;
}
