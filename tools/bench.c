/* bellwire bench: finds the bench by name. */
#include "bench/bench.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "iface/name.h"
#include "tools/print.h"
#include "tools/tool.h"

static const struct {
    const char *name, *summary;
    int (*run)(const struct bw_bench_options *options, struct cJSON **document, struct bw_err *err);
} benches[] = {
#define X(name, summary) {#name, summary, bw_bench_##name},
#include "bench/benches.def"
#undef X
};

struct names {
    char text[BW_NAME_DEVICES_MAX][BW_NAME_TEXT_MAX];
    const char *at[BW_NAME_DEVICES_MAX];
    uint32_t count;
};

static int list_benches(void)
{
    for (size_t i = 0; i < BW_COUNT_OF(benches); i++)
        bw_print(stderr, "  %-9s %s\n", benches[i].name, benches[i].summary);
    return BW_TOOL_USAGE;
}

/* "host:0,mockkfd+amd@gfx1100,cu=2" */
static int devices_parse(const char *text, struct names *names)
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
    if (rc)
        bw_tool_fail(&err);
    return rc ? BW_TOOL_NO_DEVICE : BW_TOOL_DONE;
}

static int option_take(struct bw_args *args, struct bw_bench_options *options, const char **devices)
{
    if (bw_args_is(args, "--device") || bw_args_is(args, "--devices"))
        *devices = bw_args_value(args);
    else if (bw_args_is(args, "-b"))
        options->bytes_min = bw_args_number(args);
    else if (bw_args_is(args, "-e"))
        options->bytes_max = bw_args_number(args);
    else if (bw_args_is(args, "-f"))
        options->factor = (uint32_t)bw_args_number(args);
    else if (bw_args_is(args, "--nodes"))
        options->nodes = (uint32_t)bw_args_number(args);
    else if (bw_args_is(args, "--repeats"))
        options->repeats = (uint32_t)bw_args_number(args);
    else
        bw_args_unknown(args);
    return args->failed;
}

static int bench_run(size_t which, struct bw_bench_options *options, bool json)
{
    struct bw_err err = {0};
    cJSON *document = NULL;
    int status = bw_tool_context(&options->ctx);
    if (status)
        return status;
    options->text = json ? NULL : stdout;
    if (benches[which].run(options, &document, &err))
        status = bw_tool_fail(&err);
    else if (json)
        bw_tool_print_json(document);
    else
        cJSON_Delete(document);
    bw_ctx_destroy(options->ctx);
    return status;
}

int bw_tool_bench(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("bench", argc, argv);
    struct bw_bench_options options = {0};
    const char *devices = NULL, *name = NULL;
    while (bw_args_next(&args)) {
        if (args.positional && !name)
            name = args.positional;
        else
            option_take(&args, &options, &devices);
    }
    if (args.failed)
        return BW_TOOL_USAGE;
    size_t which = 0;
    while (name && which < BW_COUNT_OF(benches) && strcmp(name, benches[which].name))
        which++;
    if (!name || which == BW_COUNT_OF(benches)) {
        bw_print(stderr,
                 name ? "bellwire bench: no bench named '%s'; there are:\n"
                      : "bellwire bench: a name is needed; there are:\n",
                 name);
        return list_benches();
    }
    struct names *names = calloc(1, sizeof *names);
    int status = !names ? BW_TOOL_FAILED : devices ? devices_parse(devices, names) : BW_TOOL_DONE;
    if (!status) {
        options.devices = names->at;
        options.device_count = names->count;
        status = bench_run(which, &options, args.json);
    }
    free(names);
    return status;
}
