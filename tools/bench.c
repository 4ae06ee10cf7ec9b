/* bellwire bench: finds the bench by name. */
#include "bench/bench.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/number.h"
#include "base/text.h"
#include "hcq/hcq.h"
#include "iface/name.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/tool.h"

static const struct {
    const char *name, *summary, *options;
    int (*run)(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
} benches[] = {
#define X(name, summary, options) {#name, summary, options, bw_bench_##name},
#include "bench/benches.def"
#undef X
};

enum {
    OPTIONS_MAX = 32,
    FACTOR_MAX = 1 << 20,
    NODES_MAX = 1 << 20,   /* ten times the largest graph that is measured anywhere */
    REPEATS_MAX = 1 << 20, /* beyond patience */
    WARM_UP_DEFAULT = 1,   /* as nccl-tests */
    ITERATIONS_DEFAULT = 20,
};

/* Options of nccl-tests that have one value here. */
static const struct {
    const char *option, *values, *reason;
} fixed[] = {
#define FIXED(option, values, reason) {option, values, reason},
#include "tools/nccl.def"
#undef FIXED
};

static const struct bw_args_alias aliases[] = {
#define ALIAS(alias, option) {alias, option},
#include "tools/nccl.def"
#undef ALIAS
    {NULL, NULL},
};

struct names {
    char text[BW_NAME_DEVICES_MAX][BW_NAME_TEXT_MAX];
    const char *at[BW_NAME_DEVICES_MAX];
    uint32_t count;
};

void bw_tool_bench_list(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(benches); i++)
        bw_print(stdout, "  %-9s %s\n", benches[i].name, benches[i].summary);
    bw_print(stdout, "\n");
}

static int bench_unknown(const char *name)
{
    struct bw_text names = {0};
    for (size_t i = 0; i < BW_COUNT_OF(benches); i++)
        bw_text_add(&names, "%s%s", i ? ", " : "", benches[i].name);
    int status =
        name ? bw_tool_usage("bench", "no bench named '%s'; there are: %s", name, bw_text_string(&names))
             : bw_tool_usage("bench", "a name is needed; there are: %s", bw_text_string(&names));
    bw_text_free(&names);
    return status;
}

/* "host:0,mockkfd+amd@gfx1100,cu=2" */
static int devices_parse(struct bw_ctx *ctx, const char *text, struct names *names)
{
    struct bw_err err = {0};
    struct bw_device_name *parsed = calloc(BW_NAME_DEVICES_MAX, sizeof *parsed);
    int rc = parsed ? bw_device_name_parse_list(text, parsed, BW_NAME_DEVICES_MAX, &names->count, &err)
                    : bw_fail(&err, -ENOMEM, "bench", "%s", text);
    for (uint32_t i = 0; i < names->count && !rc; i++) {
        bw_device_name_format(&parsed[i], names->text[i], sizeof names->text[i]);
        names->at[i] = names->text[i];
    }
    free(parsed);
    if (!rc)
        return BW_TOOL_DONE;
    bw_device_names_hint(ctx, &err);
    bw_tool_fail(&err);
    return BW_TOOL_NO_DEVICE;
}

/* The command line: what is measured and how. */
struct request {
    const char *name, *devices;
    const char *options[OPTIONS_MAX]; /* those given, for the benches that read others */
    uint32_t option_count;
    const char *fixed_option; /* the last one of nccl-tests that changes nothing; NULL: none */
    struct bw_bench_options how;
};

/* "64K", "1MB" and "1MiB": powers of 1024, all three. */
static bool size_parse(const char *text, uint64_t *size)
{
    char number[32];
    size_t length = strlen(text), unit = strcspn(text, "KkMmGg");
    bool has_unit = unit < length;
    if (has_unit && (!strcasecmp(text + unit + 1, "B") || !strcasecmp(text + unit + 1, "iB")))
        length = unit + 1;
    if (length >= sizeof number)
        return false;
    memcpy(number, text, length);
    number[length] = 0;
    return has_unit ? !bw_size_parse(number, size) : !bw_number_parse(number, size);
}

/* Nothing is no size: in struct bw_bench_options 0 stands for the default. */
static uint64_t size_take(struct bw_args *args)
{
    uint64_t size = 0;
    const char *text = bw_args_value(args);
    if (args->failed)
        return 0;
    if (!size_parse(text, &size))
        bw_tool_usage(args->tool, "%s: '%s' is not a number", args->option, text);
    else if (!size)
        bw_tool_usage(args->tool, "%s: at least 1", args->option);
    args->failed = !size;
    return size;
}

/* An option of nccl-tests that has no choice here; false: it is none. */
static bool fixed_take(struct bw_args *args, struct request *request)
{
    for (size_t i = 0; i < BW_COUNT_OF(fixed); i++) {
        if (!bw_args_is(args, fixed[i].option))
            continue;
        const char *value = bw_args_value(args);
        if (!args->failed && (!*value || strchr(value, ' ') || !bw_words_have(fixed[i].values, value))) {
            bw_tool_usage(args->tool, "%s %s: %s", fixed[i].option, value, fixed[i].reason);
            args->failed = true;
        }
        request->fixed_option = fixed[i].option;
        return true;
    }
    return false;
}

static void option_take(struct bw_args *args, struct request *request)
{
    static const char *const known[] = {"--devices",  "-g",          "-b",      "-e",     "-f",
                                        "-i",         "-w",          "-n",      "-d",     "-o",
                                        "--strategy", "--transport", "--model", "--plot", "--profile",
                                        "--nodes",    "--repeats"};
    struct bw_bench_options *how = &request->how;
    if (bw_args_is(args, "--devices"))
        request->devices = bw_args_value(args);
    else if (bw_args_is(args, "-g"))
        how->ranks = bw_args_count(args, 1, BW_NAME_DEVICES_MAX);
    else if (bw_args_is(args, "-b"))
        how->bytes_min = size_take(args);
    else if (bw_args_is(args, "-e"))
        how->bytes_max = size_take(args);
    else if (bw_args_is(args, "-f"))
        how->factor = bw_args_count(args, 2, FACTOR_MAX);
    else if (bw_args_is(args, "-i"))
        how->step_bytes = size_take(args);
    else if (bw_args_is(args, "-w"))
        how->warm_up = bw_args_count(args, 0, REPEATS_MAX);
    else if (bw_args_is(args, "-n"))
        how->iterations = bw_args_count(args, 1, REPEATS_MAX);
    else if (bw_args_is(args, "-d"))
        how->type = bw_args_value(args);
    else if (bw_args_is(args, "-o"))
        how->reduction = bw_args_value(args);
    else if (bw_args_is(args, "--strategy"))
        how->strategy = bw_args_value(args);
    else if (bw_args_is(args, "--transport"))
        how->transport = bw_args_value(args);
    else if (bw_args_is(args, "--model"))
        how->model = bw_args_value(args);
    else if (bw_args_is(args, "--plot"))
        how->plot = bw_args_output(args);
    else if (bw_args_is(args, "--profile"))
        how->profile = bw_args_output(args);
    else if (bw_args_is(args, "--nodes"))
        how->nodes = bw_args_count(args, 1, NODES_MAX);
    else if (bw_args_is(args, "--repeats"))
        how->repeats = bw_args_count(args, 1, REPEATS_MAX);
    else if (!fixed_take(args, request))
        bw_args_unknown(args);
    for (size_t i = 0; i < BW_COUNT_OF(known); i++)
        if (bw_args_is(args, known[i]) && request->option_count < OPTIONS_MAX)
            request->options[request->option_count++] = known[i];
}

/* What this bench would not look at is a mistake of whoever typed it. */
static int request_check(const struct request *request, const char *options)
{
    for (uint32_t i = 0; i < request->option_count; i++)
        if (!bw_words_have(options, request->options[i]))
            return bw_tool_usage("bench", "%s has no %s; its options: %s", request->name, request->options[i],
                                 *options ? options : "none");
    if (request->fixed_option && !bw_words_have(options, "-w")) /* no collective */
        return bw_tool_usage("bench", "%s has no %s; its options: %s", request->name, request->fixed_option,
                             *options ? options : "none");
    const struct bw_bench_options *how = &request->how;
    if (how->bytes_max && how->bytes_min > how->bytes_max)
        return bw_tool_usage("bench", "-b is more than -e");
    return BW_TOOL_DONE;
}

/* A table with no rows says nothing, and means that nothing ran. */
static int bench_measure(size_t which, const struct bw_bench_options *options, bool json, struct bw_err *err)
{
    cJSON *document = NULL;
    int rc = benches[which].run(options, &document, err);
    bool measured = cJSON_GetArraySize(cJSON_GetObjectItem(document, "results")) > 0;
    if (!rc && !measured)
        rc = bw_fail(err, -EINVAL, "bench", "%s: nothing was measured", benches[which].name);
    if (measured && json) /* also what was measured before a failure */
        bw_tool_print_json(document);
    else
        cJSON_Delete(document);
    return rc;
}

static int bench_run(size_t which, struct bw_bench_options *options, bool json)
{
    struct bw_err err = {0};
    struct bw_progress *progress = bw_progress_begin(benches[which].name, NULL);
    FILE *table = json ? NULL : bw_progress_table(progress);
    options->text = table;
    int rc = !json && !table ? bw_fail(&err, -ENOMEM, "bench", "table")
                             : bench_measure(which, options, json, &err);
    if (table)
        fclose(table);
    bw_progress_end(progress);
    if (!rc)
        return BW_TOOL_DONE;
    int status = bw_tool_fail(&err);
    if (rc == -EINVAL && err.what[0] == '-') /* begins with the option it is about */
        return BW_TOOL_USAGE;
    /* A device that cannot do what is measured; what a collective does not do, no device would. */
    return rc == -ENOTSUP && strcmp(err.subsystem, "collective") != 0 ? BW_TOOL_NO_DEVICE : status;
}

/* --devices, or BW_DEV; a bench that takes neither, or is given neither, has its own default. */
static int request_run(size_t which, struct request *request, bool json)
{
    struct names *names = calloc(1, sizeof *names);
    int status = names ? bw_tool_context(&request->how.ctx) : BW_TOOL_FAILED;
    const char *devices = request->devices;
    if (!status && !devices && bw_words_have(benches[which].options, "--devices"))
        devices = bw_ctx_config(request->how.ctx)->device;
    if (!status && devices)
        status = devices_parse(request->how.ctx, devices, names);
    if (!status) {
        request->how.devices = names->at;
        request->how.device_count = names->count;
        status = bench_run(which, &request->how, json);
    }
    bw_ctx_destroy(request->how.ctx);
    free(names);
    return status;
}

int bw_tool_bench(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("bench", argc, argv);
    args.aliases = aliases;
    struct request request = {.how = {.warm_up = WARM_UP_DEFAULT, .iterations = ITERATIONS_DEFAULT}};
    while (bw_args_next(&args)) {
        if (args.positional && !request.name)
            request.name = args.positional;
        else
            option_take(&args, &request);
    }
    if (args.failed)
        return BW_TOOL_USAGE;
    size_t which = 0;
    while (request.name && which < BW_COUNT_OF(benches) && strcmp(request.name, benches[which].name))
        which++;
    if (!request.name || which == BW_COUNT_OF(benches))
        return bench_unknown(request.name);
    int status = request_check(&request, benches[which].options);
    return status ? status : request_run(which, &request, args.json);
}
