/* bellwire mock: a command on mock GPUs, with faults injected: BW_DEV and BW_MOCK_FAULTS for whatever uses
 * libbellwire. Its own subcommands run in this process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bellwire/mock.h>

#include "base/text.h"
#include "compiler/io.h"
#include "iface/name.h"
#include "tools/tool.h"

enum { STATUS_NOT_FOUND = 127, STATUS_NOT_EXECUTABLE = 126 }; /* as shells say it */

/* Makes the machine once, so that a mistake is told here and not by the command, if at all. */
static int check(const struct bw_device_name *gpu, char **faults, uint32_t fault_count)
{
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = gpu->arch,
                                    .gpu_count = gpu->count,
                                    .cu_count = gpu->cu_count,
                                    .vram_bytes = gpu->vram_bytes,
                                    .threads = 1};
    struct bw_sys *sys = NULL;
    struct bw_err err = {0};
    int rc = bw_mock_kfd_create(&config, &sys, &err);
    for (uint32_t i = 0; i < fault_count && !rc; i++)
        rc = strchr(faults[i], ';') ? bw_fail(&err, -EINVAL, "mock", "fault '%s': one per --fault", faults[i])
                                    : bw_mock_fault_add(sys, faults[i], &err);
    bw_sys_destroy(sys);
    if (!rc)
        return BW_TOOL_DONE;
    int status = bw_tool_fail(&err);
    return status == BW_TOOL_NO_DEVICE ? status : BW_TOOL_USAGE;
}

/* Begins the file: the machines append. */
static int trace_begin(const char *path)
{
    struct bw_err err = {0};
    int shared = bw_file_redirection(path);
    if (shared > STDERR_FILENO)
        return bw_tool_usage("mock",
                             "--trace: a file of its own is needed, %s is redirected to one that others "
                             "write",
                             path);
    int anew =
        shared < 0 ? O_TRUNC : 0; /* on standard output and error the trace stands among what is there */
    int fd = open(path, O_WRONLY | O_CREAT | anew | O_CLOEXEC, 0666);
    if (fd >= 0) {
        close(fd);
        return setenv("BW_MOCK_TRACE", path, 1) ? BW_TOOL_FAILED : BW_TOOL_DONE;
    }
    bw_fail(&err, -errno, "mock", "trace '%s' cannot be written", path);
    return bw_tool_fail(&err);
}

static int environment_set(const struct bw_device_name *gpu, char **faults, uint32_t fault_count)
{
    struct bw_text text = {0};
    char device[BW_NAME_TEXT_MAX];
    bw_device_name_format(gpu, device, sizeof device);
    for (uint32_t i = 0; i < fault_count; i++)
        bw_text_add(&text, "%s%s", i ? ";" : "", faults[i]);
    int failed =
        text.failed || setenv("BW_DEV", device, 1) || setenv("BW_MOCK_FAULTS", bw_text_string(&text), 1);
    bw_text_free(&text);
    return failed ? BW_TOOL_FAILED : BW_TOOL_DONE;
}

static int command_run(int argc, char **argv)
{
    bool own = argc > 1 && !strcmp(argv[0], "bellwire");
    int status = bw_tool_dispatch(argc - own, argv + own);
    if (status >= 0)
        return status;
    if (!own) {
        signal(SIGXFSZ, SIG_DFL); /* main.c ignores it for this program alone */
        execvp(argv[0], argv);
    }
    int code = own ? ENOENT : errno;
    struct bw_err err = {0};
    bw_fail(&err, -code, "mock", "command '%s'", argv[own]);
    bw_err_hint(&err, "a bellwire subcommand, or a program that uses libbellwire");
    bw_tool_fail(&err);
    return code == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
}

int bw_tool_mock(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("mock", argc, argv);
    args.several = "--fault";
    const char *gpu = "gfx1100", *trace = NULL;
    char **faults = calloc((size_t)argc, sizeof *faults);
    uint32_t fault_count = 0;
    struct bw_device_name name;
    struct bw_err err = {0};
    if (!faults)
        return BW_TOOL_FAILED;
    while (bw_args_next(&args) && !args.positional) {
        if (bw_args_is(&args, "--gpu"))
            gpu = bw_args_value(&args);
        else if (bw_args_is(&args, "--fault"))
            faults[fault_count++] = (char *)(uintptr_t)bw_args_value(&args);
        else if (bw_args_is(&args, "--trace"))
            trace = bw_args_output(&args);
        else
            bw_args_unknown(&args);
    }
    int status = args.failed ? BW_TOOL_USAGE : BW_TOOL_DONE;
    if (!status && !args.positional)
        status = bw_tool_usage("mock", "a command is needed");
    if (!status && args.json)
        status = bw_tool_usage("mock", "--json belongs to the command, after its name");
    if (!status && bw_device_name_parse_gpu(gpu, &name, &err)) {
        bw_tool_fail(&err);
        status = BW_TOOL_USAGE;
    }
    if (!status)
        status = check(&name, faults, fault_count);
    if (!status)
        status = environment_set(&name, faults, fault_count);
    if (!status && trace)
        status = trace_begin(trace);
    free(faults);
    return status ? status : command_run(argc - args.at, argv + args.at);
}
