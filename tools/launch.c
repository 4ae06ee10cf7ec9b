/* bellwire launch: one code object, by hand. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <bellwire/graph.h>
#include <bellwire/mock.h>
#include <bellwire/model.h>

#include "base/bits.h"
#include "compiler/io.h"
#include "compiler/io_npy.h"
#include "tools/launch.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/tool.h"

enum { OBJECT_BYTES_MAX = 1 << 30 };

struct launch {
    const char *object, *kernel_name, *device_name, *output;
    uint32_t grid[3], block[3];
    struct bw_launch_arguments arguments;
    bool json, wrong_usage;

    struct bw_ctx *ctx;
    struct bw_device *device;
    struct bw_program *program;
    struct bw_kernel *kernel;
    double seconds;
};

static int parse_argument(struct bw_args *args, struct launch *launch)
{
    const char *text = bw_args_value(args);
    return args->failed ? BW_TOOL_USAGE : bw_launch_argument_parse(&launch->arguments, text);
}

static int parse_options(struct launch *launch, int argc, char **argv)
{
    struct bw_args args = bw_args_begin("launch", argc, argv);
    args.several = "--arg";
    int status = BW_TOOL_DONE;
    while (!status && bw_args_next(&args)) {
        if (bw_args_is(&args, "--kernel"))
            launch->kernel_name = bw_args_value(&args);
        else if (bw_args_is(&args, "--grid"))
            bw_args_triple(&args, launch->grid);
        else if (bw_args_is(&args, "--block"))
            bw_args_triple(&args, launch->block);
        else if (bw_args_is(&args, "--device"))
            launch->device_name = bw_args_value(&args);
        else if (bw_args_is(&args, "--output"))
            launch->output = bw_args_output(&args);
        else if (bw_args_is(&args, "--arg"))
            status = parse_argument(&args, launch);
        else if (args.positional && !launch->object)
            launch->object = args.positional;
        else
            bw_args_unknown(&args);
    }
    launch->json = args.json;
    if (args.failed || status)
        return status ? status : BW_TOOL_USAGE;
    if (!launch->object || !launch->grid[0] || !launch->block[0])
        return bw_tool_usage("launch", "a file, --grid and --block are needed");
    return BW_TOOL_DONE;
}

/* A code object that the device does not take: which file it is, and what a source would need. */
static void object_refused(const struct launch *launch, const uint8_t *image, uint64_t image_bytes,
                           struct bw_err *err)
{
    static const char magic[] = {0x7f, 'E', 'L', 'F'};
    const char *dot = strrchr(launch->object, '.');
    const struct bw_device_info *info = bw_device_info(launch->device);
    if (err->device[0]) /* the device's own failure */
        return;
    bw_file_err_name(bw_tool_file_name(launch->object), err);
    if (err->hint[0] || (image_bytes >= sizeof magic && !memcmp(image, magic, sizeof magic)))
        return;
    if (dot && !strcasecmp(dot, ".s") && info->vram_bytes)
        bw_err_hint(err, "assemble it first: bellwire asm --arch %s %s --output FILE.o", info->arch,
                    launch->object);
    else
        bw_err_hint(err, "a code object is an ELF file for %s, as an assembler or a compiler writes it",
                    info->arch);
}

static int load(struct launch *launch, struct bw_err *err)
{
    void *image = NULL;
    uint64_t image_bytes = 0;
    int rc = bw_tool_read_file(launch->object, OBJECT_BYTES_MAX, &image, &image_bytes, err);
    if (!rc) {
        rc = bw_program_load(launch->device, image, image_bytes, &launch->program, err);
        if (rc)
            object_refused(launch, image, image_bytes, err);
    }
    free(image);
    if (!rc)
        rc = bw_program_kernel(launch->program, launch->kernel_name, &launch->kernel, err);
    if (rc == -ENOENT && launch->program && !launch->kernel_name && strchr(err->hint, ',')) {
        char names[sizeof err->hint];
        memcpy(names, err->hint, sizeof names);
        rc = bw_fail(err, -EINVAL, "launch", "%s holds several kernels: --kernel says which", launch->object);
        bw_err_hint(err, "%s", names);
        launch->wrong_usage = true;
    }
    return rc;
}

static int run(struct launch *launch, struct bw_err *err)
{
    struct bw_argument arguments[BW_LAUNCH_ARGUMENTS_MAX];
    struct bw_launch call = {0};
    const struct bw_kernel_info *info = bw_kernel_info(launch->kernel);
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    struct bw_sys *sys = bw_ctx_sys(launch->ctx);
    uint64_t ticket = 0;
    for (int i = 0; i < 3; i++) {
        call.group_count[i].value = launch->grid[i];
        call.group_size[i] = launch->block[i];
    }
    int rc = bw_launch_arguments_describe(&launch->arguments, launch->kernel, err);
    if (!rc)
        rc = bw_launch_arguments_check(&launch->arguments, info, err);
    if (!rc)
        rc = bw_launch_arguments_upload(&launch->arguments, launch->device, info, &call, arguments, err);
    if (!rc)
        rc = bw_graph_create(launch->ctx, &graph, err);
    if (!rc)
        rc = bw_graph_kernel(graph, launch->kernel, &call, err);
    if (!rc)
        rc = bw_graph_link(graph, NULL, &linked, err);
    struct bw_progress *progress = bw_progress_begin("running", launch->device);
    uint64_t begin_ns = sys->ops->clock_ns(sys);
    if (!rc)
        rc = bw_linked_graph_replay(linked, NULL, &ticket, err);
    if (!rc)
        rc = bw_linked_graph_wait(linked, ticket, err);
    launch->seconds = (double)(sys->ops->clock_ns(sys) - begin_ns) * 1e-9;
    bw_progress_end(progress);
    if (!rc)
        rc = bw_launch_arguments_download(&launch->arguments, err);
    bw_linked_graph_destroy(linked);
    bw_graph_destroy(graph);
    return rc;
}

/* The buffers after the run: written where --output says, and listed. */
static int report_buffers(struct launch *launch, cJSON *rows, struct bw_err *err)
{
    int rc = launch->output ? bw_tool_make_directory(launch->output, err) : 0;
    for (uint32_t i = 0; i < launch->arguments.count && !rc; i++) {
        const struct bw_launch_argument *argument = &launch->arguments.at[i];
        if (argument->kind != BW_LAUNCH_BUFFER)
            continue;
        char name[16], *path = NULL;
        snprintf(name, sizeof name, "arg%u", i);
        if (launch->output)
            rc = bw_tool_npy_path(launch->output, name, "", &path, err);
        if (path)
            rc = bw_npy_write(path, &argument->value, err);
        if (rc) {
            free(path);
            return rc;
        }
        cJSON *row = cJSON_AddObjectToObject(rows, name);
        bw_tool_json_type(row, &argument->value);
        cJSON_AddItemToObject(row, "file", path ? cJSON_CreateString(path) : cJSON_CreateNull());
        if (!launch->json) {
            bw_print(stdout, "%s %s: ", name, bw_tool_type(&argument->value).text);
            bw_tool_print_elements(stdout, &argument->value.array);
        }
        free(path);
    }
    return rc;
}

static int report(struct launch *launch, struct bw_err *err)
{
    const char *kernel = bw_kernel_info(launch->kernel)->name, *device = bw_device_info(launch->device)->name;
    cJSON *document = cJSON_CreateObject();
    cJSON_AddStringToObject(document, "kernel", kernel);
    cJSON_AddStringToObject(document, "device", device);
    cJSON_AddNumberToObject(document, "seconds", launch->seconds);
    struct bw_mock_stats stats = {0};
    bool mock = bw_device_mock_stats(launch->device, &stats) == 0;
    if (mock)
        cJSON_AddNumberToObject(document, "wave_instructions", (double)stats.wave_instructions);
    int rc = report_buffers(launch, cJSON_AddObjectToObject(document, "outputs"), err);
    if (launch->json && !rc) {
        bw_tool_print_json(document);
        return 0;
    }
    cJSON_Delete(document);
    if (!rc)
        bw_print(stdout, "%s on %s: %.6f s", kernel, device, launch->seconds);
    if (!rc && mock)
        bw_print(stdout, ", %llu wave-instructions in %llu waves",
                 (unsigned long long)stats.wave_instructions, (unsigned long long)stats.waves);
    if (!rc)
        bw_print(stdout, "\n");
    return rc;
}

int bw_tool_launch(int argc, char **argv)
{
    struct launch launch = {0};
    struct bw_err err = {0};
    int status = parse_options(&launch, argc, argv);
    if (!status)
        status = bw_tool_context(&launch.ctx);
    if (!status)
        status = bw_tool_device(launch.ctx, launch.device_name, &launch.device);
    if (!status && (load(&launch, &err) || run(&launch, &err) || report(&launch, &err)))
        status = launch.wrong_usage ? (bw_tool_fail(&err), BW_TOOL_USAGE) : bw_tool_fail(&err);
    bw_launch_arguments_free(&launch.arguments);
    bw_program_destroy(launch.program);
    bw_device_close(launch.device);
    bw_ctx_destroy(launch.ctx);
    return status;
}
