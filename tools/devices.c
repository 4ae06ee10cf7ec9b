/* bellwire devices: every device by every interface, and why not where one cannot be used. */
#include <cjson/cJSON.h>
#include <string.h>

#include <bellwire/device.h>

#include "tools/print.h"
#include "tools/tool.h"

enum { NAME_COLUMN_MIN = 24 };

static int measure_row(void *user, const struct bw_device_listing *listing)
{
    int *column = user, length = (int)strlen(listing->info.name);
    if (length > *column)
        *column = length;
    return 0;
}

static int print_row(void *user, const struct bw_device_listing *listing)
{
    const int *column = user;
    const struct bw_device_info *info = &listing->info;
    char memory[24] = "-";
    if (info->vram_bytes >= 1u << 30)
        snprintf(memory, sizeof memory, "%.1f GiB", (double)info->vram_bytes / 0x1p30);
    else if (info->vram_bytes)
        snprintf(memory, sizeof memory, "%.0f MiB", (double)info->vram_bytes / 0x1p20);
    bw_print(stdout, "%-*s %-8s %9s  ", *column, info->name, info->arch[0] ? info->arch : "-", memory);
    if (listing->usable)
        bw_print(stdout, "%s%s%s\n", info->product[0] ? info->product : "usable", info->mock ? " (mock)" : "",
                 listing->chosen ? ", default" : "");
    else
        bw_print(stdout, "%s%snot usable: %s\n", info->product, info->product[0] ? ", " : "", listing->why);
    return 0;
}

static int print_table(struct bw_ctx *ctx, struct bw_err *err)
{
    int column = NAME_COLUMN_MIN, rc = bw_device_list(ctx, measure_row, &column, err);
    if (rc < 0)
        return rc;
    bw_print(stdout, "%-*s %-8s %9s\n", column, "name", "arch", "memory");
    return bw_device_list(ctx, print_row, &column, err);
}

static int add_row(void *user, const struct bw_device_listing *listing)
{
    const struct bw_device_info *info = &listing->info;
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "name", info->name);
    cJSON_AddStringToObject(row, "driver", info->driver);
    cJSON_AddStringToObject(row, "iface", info->iface);
    cJSON_AddStringToObject(row, "arch", info->arch);
    cJSON_AddStringToObject(row, "product", info->product);
    cJSON_AddNumberToObject(row, "vram_bytes", (double)info->vram_bytes);
    cJSON_AddBoolToObject(row, "mock", info->mock);
    cJSON_AddBoolToObject(row, "usable", listing->usable);
    cJSON_AddStringToObject(row, "why", listing->why);
    cJSON_AddBoolToObject(row, "default", listing->chosen);
    cJSON_AddItemToArray(user, row);
    return 0;
}

int bw_tool_devices(int argc, char **argv)
{
    struct bw_args args = bw_args_begin("devices", argc, argv);
    while (bw_args_next(&args))
        bw_args_unknown(&args);
    if (args.failed)
        return BW_TOOL_USAGE;
    struct bw_ctx *ctx = NULL;
    int status = bw_tool_context(&ctx);
    if (status)
        return status;
    struct bw_err err = {0};
    cJSON *document = cJSON_CreateObject(), *rows = cJSON_AddArrayToObject(document, "devices");
    int code = args.json ? bw_device_list(ctx, add_row, rows, &err) : print_table(ctx, &err);
    if (code < 0)
        status = bw_tool_fail(&err);
    if (args.json && code >= 0)
        bw_tool_print_json(document);
    else
        cJSON_Delete(document);
    bw_ctx_destroy(ctx);
    return status;
}
