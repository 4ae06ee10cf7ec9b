/* Goal: the host device runs objects of every code model, every group exactly once, on every thread count,
 * and refuses what it cannot run. */
#include <bellwire/graph.h>

#include <math.h>

#include "tests/check.h"
#include "tests/objects.h"
#include "tests/seed.h"

#include "drivers/host/host.h"

static const char *const objects[] = {BW_HOST_KERNELS_PIC, BW_HOST_KERNELS_LARGE, BW_HOST_KERNELS_PLAIN};
enum { OBJECTS = sizeof objects / sizeof objects[0] };

struct rig {
    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_program *program;
    struct bw_err err;
};

static bool rig_open(struct rig *rig, const char *object, uint32_t threads)
{
    struct bw_ctx_config config = {.size = sizeof config, .host_threads = threads};
    uint64_t image_bytes;
    void *image = bw_test_file(object, &image_bytes);
    *rig = (struct rig){0};
    bool ok = BW_TRUE(image != NULL) && BW_OK(bw_ctx_create(&config, &rig->ctx, &rig->err), &rig->err) &&
              BW_OK(bw_device_open(rig->ctx, "host:0", &rig->device, &rig->err), &rig->err) &&
              BW_OK(bw_program_load(rig->device, image, image_bytes, &rig->program, &rig->err), &rig->err);
    free(image);
    return ok;
}

static void rig_close(struct rig *rig)
{
    bw_program_destroy(rig->program);
    bw_device_close(rig->device);
    bw_ctx_destroy(rig->ctx);
}

/* Runs one launch once and waits. */
static bool rig_run(struct rig *rig, const char *name, const uint32_t groups[3],
                    const struct bw_argument *arguments, uint32_t count)
{
    struct bw_kernel *kernel;
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    uint64_t ticket;
    struct bw_launch launch = {.group_count = {{groups[0], false}, {groups[1], false}, {groups[2], false}},
                               .group_size = {1, 1, 1},
                               .arguments = arguments,
                               .argument_count = count};
    bool ok = BW_OK(bw_program_kernel(rig->program, name, &kernel, &rig->err), &rig->err) &&
              BW_OK(bw_graph_create(rig->ctx, &graph, &rig->err), &rig->err) &&
              BW_OK(bw_graph_kernel(graph, kernel, &launch, &rig->err), &rig->err) &&
              BW_OK(bw_graph_link(graph, NULL, &linked, &rig->err), &rig->err) &&
              BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) &&
              BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err);
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    return ok;
}

static struct bw_argument range_of(struct bw_buffer *buffer, uint32_t access)
{
    return (struct bw_argument){
        .source = BW_ARG_RANGE, .access = access, .range = {buffer, 0, 0, bw_buffer_size(buffer)}};
}

static struct bw_argument value_of(uint64_t value)
{
    return (struct bw_argument){.source = BW_ARG_VALUE, .value = value};
}

static void every_code_model_computes(void)
{
    enum { COUNT = 1000 };
    for (int object = 0; object < OBJECTS; object++) {
        struct rig rig;
        struct bw_buffer *a, *b, *out;
        float data[COUNT], expected[COUNT], got[COUNT], k = 1.5f;
        uint32_t k_bits;
        memcpy(&k_bits, &k, sizeof k_bits);
        if (!rig_open(&rig, objects[object], 2))
            return;
        for (int i = 0; i < COUNT; i++) {
            data[i] = (float)i / 7;
            expected[i] = data[i] * k + data[i];
        }
        BW_OK(bw_buffer_create(rig.device, sizeof data, 0, &a, &rig.err), &rig.err);
        BW_OK(bw_buffer_create(rig.device, sizeof data, 0, &b, &rig.err), &rig.err);
        BW_OK(bw_buffer_create(rig.device, sizeof data, 0, &out, &rig.err), &rig.err);
        BW_OK(bw_buffer_write(a, 0, data, sizeof data, &rig.err), &rig.err);
        BW_OK(bw_buffer_write(b, 0, data, sizeof data, &rig.err), &rig.err);
        struct bw_argument arguments[] = {range_of(a, BW_ACCESS_READ), range_of(b, BW_ACCESS_READ),
                                          range_of(out, BW_ACCESS_WRITE), value_of(k_bits), value_of(COUNT)};
        if (rig_run(&rig, "axpy", (uint32_t[]){(COUNT + 63) / 64, 1, 1}, arguments, 5)) {
            BW_OK(bw_buffer_read(out, 0, got, sizeof got, &rig.err), &rig.err);
            BW_BYTES(got, expected, sizeof got);
        }
        bw_buffer_destroy(a);
        bw_buffer_destroy(b);
        bw_buffer_destroy(out);
        rig_close(&rig);
    }
}

static void far_functions_and_data_are_reached(void)
{
    enum { COUNT = 64 };
    for (int object = 0; object < OBJECTS; object++) {
        struct rig rig;
        struct bw_buffer *in, *out;
        float data[COUNT], got[COUNT];
        uint32_t words[2];
        if (!rig_open(&rig, objects[object], 1))
            return;
        for (int i = 0; i < COUNT; i++)
            data[i] = (float)i / 16;
        BW_OK(bw_buffer_create(rig.device, sizeof data, 0, &in, &rig.err), &rig.err);
        BW_OK(bw_buffer_create(rig.device, sizeof data, 0, &out, &rig.err), &rig.err);
        BW_OK(bw_buffer_write(in, 0, data, sizeof data, &rig.err), &rig.err);
        struct bw_argument arguments[] = {range_of(in, BW_ACCESS_READ), range_of(out, BW_ACCESS_WRITE),
                                          value_of(COUNT)};
        if (rig_run(&rig, "use_math", (uint32_t[]){1, 1, 1}, arguments, 3)) {
            float (*const functions[])(float) = {sinf, expf, tanhf};
            BW_OK(bw_buffer_read(out, 0, got, sizeof got, &rig.err), &rig.err);
            for (int i = 0; i < COUNT; i++)
                BW_NEAR(got[i], functions[i % 3](data[i]) + powf(data[i], 2), 1e-6 * (1 + fabsf(got[i])));
        }
        for (uint32_t run = 1; run <= 3; run++) {
            if (!rig_run(&rig, "use_data", (uint32_t[]){1, 1, 1}, &arguments[1], 1))
                break;
            BW_OK(bw_buffer_read(out, 0, words, sizeof words, &rig.err), &rig.err);
            BW_EQ(words[0], 100 + run);
        }
        BW_EQ(words[1], 13 + 17 + 19); /* primes[101 % 8], [102 % 8], [103 % 8] */
        bw_buffer_destroy(in);
        bw_buffer_destroy(out);
        rig_close(&rig);
    }
}

static void every_group_runs_once(void)
{
    static const uint32_t depths[] = {1, 2, 3, 100, 2000};
    static const uint32_t threads[] = {1, 2, 5};
    for (uint32_t t = 0; t < 3; t++) {
        struct rig rig;
        if (!rig_open(&rig, objects[0], threads[t]))
            return;
        for (uint32_t d = 0; d < 5; d++) {
            uint32_t count = 35 * depths[d];
            struct bw_buffer *counts;
            uint32_t *got = calloc(count, sizeof *got);
            BW_OK(bw_buffer_create(rig.device, count * 4ull, 0, &counts, &rig.err), &rig.err);
            BW_OK(bw_buffer_write(counts, 0, got, count * 4ull, &rig.err), &rig.err);
            struct bw_argument argument = range_of(counts, BW_ACCESS_READ | BW_ACCESS_WRITE);
            for (int repeat = 0; repeat < 3; repeat++)
                rig_run(&rig, "count_groups", (uint32_t[]){7, 5, depths[d]}, &argument, 1);
            BW_OK(bw_buffer_read(counts, 0, got, count * 4ull, &rig.err), &rig.err);
            uint32_t wrong = 0;
            for (uint32_t i = 0; i < count; i++)
                wrong += got[i] != 3;
            BW_EQ(wrong, 0);
            bw_buffer_destroy(counts);
            free(got);
        }
        rig_close(&rig);
    }
}

static void kernels_are_found_by_name(void)
{
    struct rig rig;
    struct bw_kernel *kernel;
    if (!rig_open(&rig, objects[0], 1))
        return;
    BW_EQ(bw_program_kernel(rig.program, "absent", &kernel, &rig.err), -ENOENT);
    BW_TRUE(strstr(rig.err.hint, "axpy") != NULL);
    BW_EQ(bw_program_kernel(rig.program, NULL, &kernel, &rig.err), -ENOENT); /* not the only one */
    if (BW_OK(bw_program_kernel(rig.program, "axpy", &kernel, &rig.err), &rig.err)) {
        const struct bw_kernel_info *info = bw_kernel_info(kernel);
        BW_STR(info->name, "axpy");
        BW_EQ(info->argument_count, 5);
        BW_EQ(info->argument_bytes, 32);
        BW_STR(info->arguments[3].name, "k");
        BW_EQ(info->arguments[3].offset, 24);
        BW_EQ(info->arguments[3].kind, BW_ARGUMENT_VALUE);
    }
    rig_run(&rig, "nothing", (uint32_t[]){3, 3, 3}, NULL, 0);
    rig_close(&rig);
}

static void damaged_objects_are_refused(void)
{
    struct rig rig;
    struct bw_rng rng = bw_test_rng("damaged objects");
    uint64_t image_bytes;
    unsigned char *image = bw_test_file(objects[0], &image_bytes), *copy = malloc(image_bytes);
    uint32_t refused = 0;
    if (!rig_open(&rig, objects[0], 1))
        return;
    for (uint64_t length = 0; length < image_bytes; length += 1 + length / 8) { /* truncated */
        struct bw_program *program = NULL;
        int rc = bw_program_load(rig.device, image, length, &program, &rig.err);
        BW_TRUE(rc == -ENOEXEC || rc == -EINVAL);
    }
    for (int round = 0; round < 3000; round++) { /* corrupted: refused, or loaded; never run */
        struct bw_program *program = NULL;
        memcpy(copy, image, image_bytes);
        uint64_t flips = 1 + bw_rng_below(&rng, 8);
        for (uint64_t i = 0; i < flips; i++)
            copy[bw_rng_below(&rng, image_bytes)] = (unsigned char)bw_rng_next(&rng);
        if (bw_program_load(rig.device, copy, image_bytes, &program, &rig.err) == 0)
            bw_program_destroy(program);
        else
            refused++;
    }
    BW_TRUE(refused > 100);
    free(image);
    free(copy);
    rig_close(&rig);
}

static void launches_that_do_not_fit_are_refused(void)
{
    struct rig rig;
    struct bw_kernel *kernel;
    struct bw_graph *graph;
    struct bw_buffer *buffer;
    if (!rig_open(&rig, objects[0], 1))
        return;
    BW_OK(bw_buffer_create(rig.device, 64, 0, &buffer, &rig.err), &rig.err);
    BW_OK(bw_program_kernel(rig.program, "count_groups", &kernel, &rig.err), &rig.err);
    BW_OK(bw_graph_create(rig.ctx, &graph, &rig.err), &rig.err);
    struct bw_argument argument = range_of(buffer, BW_ACCESS_WRITE);
    struct bw_launch launch = {.group_count = {{1, false}, {1, false}, {1, false}},
                               .group_size = {2, 1, 1},
                               .arguments = &argument,
                               .argument_count = 1};
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig.err), -EINVAL); /* a workgroup is one call */
    launch.group_size[0] = 0;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig.err), -EINVAL);
    launch.group_size[0] = 1;
    launch.argument_count = 0;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig.err), -EINVAL);
    launch.argument_count = 1;
    argument.range.size_bytes = 65;
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig.err), -ERANGE);
    argument = value_of(3);
    BW_EQ(bw_graph_kernel(graph, kernel, &launch, &rig.err), -EINVAL); /* a buffer is wanted */
    bw_graph_destroy(graph);
    bw_buffer_destroy(buffer);
    rig_close(&rig);
}

BW_TEST_MAIN("host", {"every_code_model_computes", every_code_model_computes},
             {"far_functions_and_data_are_reached", far_functions_and_data_are_reached},
             {"every_group_runs_once", every_group_runs_once},
             {"kernels_are_found_by_name", kernels_are_found_by_name},
             {"damaged_objects_are_refused", damaged_objects_are_refused},
             {"launches_that_do_not_fit_are_refused", launches_that_do_not_fit_are_refused})
