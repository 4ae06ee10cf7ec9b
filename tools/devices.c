/* bellwire devices: every device by every interface, and why not where one cannot be used. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/device.h>

#include "iface/name.h"
#include "tools/print.h"
#include "tools/tool.h"

enum { NAME_COLUMN_MIN = 24 };

struct list {
    int column;  /* of the names */
    bool chosen; /* the device that no name stands for is among the rows */
    cJSON *rows;
};

static int measure_row(void *user, const struct bw_device_listing *listing)
{
    struct list *list = user;
    int length = (int)strlen(listing->info.name);
    list->column = length > list->column ? length : list->column;
    return 0;
}

/* Where a machine's memory has several nodes: which is nearest, and whether host memory is placed there. */
static void node_text(const struct bw_device_info *info, char *text, size_t size)
{
    text[0] = 0;
    if (info->numa_placed)
        snprintf(text, size, ", memory node %u", info->numa_node);
    else if (info->numa_error)
        snprintf(text, size, ", memory node %u (the kernel refuses to place memory there: %s)",
                 info->numa_node, strerrorname_np(-info->numa_error));
}

static int print_row(void *user, const struct bw_device_listing *listing)
{
    struct list *list = user;
    const struct bw_device_info *info = &listing->info;
    list->chosen |= listing->chosen;
    char memory[24] = "-";
    if (info->vram_bytes >= 1u << 30)
        snprintf(memory, sizeof memory, "%.1f GiB", (double)info->vram_bytes / 0x1p30);
    else if (info->vram_bytes)
        snprintf(memory, sizeof memory, "%.0f MiB", (double)info->vram_bytes / 0x1p20);
    bw_print(stdout, "%-*s %-8s %9s  ", list->column, info->name, info->arch[0] ? info->arch : "-", memory);
    char node[96];
    node_text(info, node, sizeof node);
    if (listing->usable)
        bw_print(stdout, "%s%s%s%s\n", info->product[0] ? info->product : "usable",
                 info->mock ? " (mock)" : "", node, listing->chosen ? ", default" : "");
    else
        bw_print(stdout, "%s%snot usable: %s\n", info->product, info->product[0] ? ", " : "", listing->why);
    return 0;
}

static int print_table(struct bw_ctx *ctx, struct list *list, struct bw_err *err)
{
    list->column = NAME_COLUMN_MIN;
    int rc = bw_device_list(ctx, measure_row, list, err);
    if (rc < 0)
        return rc;
    bw_print(stdout, "%-*s %-8s %9s\n", list->column, "name", "arch", "memory");
    return bw_device_list(ctx, print_row, list, err);
}

static int add_row(void *user, const struct bw_device_listing *listing)
{
    const struct bw_device_info *info = &listing->info;
    struct list *list = user;
    cJSON *row = cJSON_CreateObject();
    list->chosen |= listing->chosen;
    cJSON_AddStringToObject(row, "name", info->name);
    cJSON_AddStringToObject(row, "driver", info->driver);
    cJSON_AddStringToObject(row, "iface", info->iface);
    cJSON_AddStringToObject(row, "arch", info->arch);
    cJSON_AddStringToObject(row, "product", info->product);
    cJSON_AddNumberToObject(row, "vram_bytes", (double)info->vram_bytes);
    if (info->has_numa_node)
        cJSON_AddNumberToObject(row, "numa_node", info->numa_node);
    else
        cJSON_AddNullToObject(row, "numa_node");
    cJSON_AddBoolToObject(row, "numa_placed", info->numa_placed);
    cJSON_AddBoolToObject(row, "mock", info->mock);
    cJSON_AddBoolToObject(row, "usable", listing->usable);
    cJSON_AddStringToObject(row, "why", listing->why);
    cJSON_AddBoolToObject(row, "default", listing->chosen);
    cJSON_AddItemToArray(list->rows, row);
    return 0;
}

/* A BW_DEV that names nothing: nothing else would show it here. Files, and the host's other queues, are not
 * listed. */
static int named_check(struct bw_ctx *ctx, bool chosen)
{
    struct bw_err err = {0};
    const char *text = bw_ctx_config(ctx)->device;
    struct bw_device_name *names = calloc(BW_NAME_DEVICES_MAX, sizeof *names);
    uint32_t count = 0;
    int rc = !names ? bw_fail(&err, -ENOMEM, "devices", "BW_DEV")
             : text ? bw_device_name_parse_list(text, names, BW_NAME_DEVICES_MAX, &count, &err)
                    : 0;
    bool listed = count == 1 && strcmp(names->driver, "host") != 0 && strcmp(names->driver, "disk") != 0;
    free(names);
    if (!rc && listed && !chosen)
        rc = bw_fail(&err, -ENODEV, "devices", "'%s' is none of these", text);
    if (!rc)
        return BW_TOOL_DONE;
    bw_err_prefix(&err, "BW_DEV: ");
    bw_tool_fail(&err);
    return BW_TOOL_NO_DEVICE;
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
    cJSON *document = cJSON_CreateObject();
    struct list list = {.rows = cJSON_AddArrayToObject(document, "devices")};
    int code = args.json ? bw_device_list(ctx, add_row, &list, &err) : print_table(ctx, &list, &err);
    status = code < 0 ? bw_tool_fail(&err) : named_check(ctx, list.chosen);
    if (args.json && code >= 0)
        bw_tool_print_json(document);
    else
        cJSON_Delete(document);
    bw_ctx_destroy(ctx);
    return status;
}
