/* Opening contexts and devices for the subcommands. */
#include <errno.h>
#include <string.h>

#include <bellwire/device.h>

#include "iface/name.h"
#include "tools/print.h"
#include "tools/tool.h"

int bw_tool_context(struct bw_ctx **ctx)
{
    struct bw_ctx_config config = {.size = sizeof config};
    struct bw_err err = {0};
    if (bw_ctx_config_from_environment(&config, &err)) {
        bw_tool_fail(&err);
        return BW_TOOL_USAGE;
    }
    return bw_ctx_create(&config, ctx, &err) ? bw_tool_fail(&err) : BW_TOOL_DONE;
}

/* "host:0,amd" is several names; "mockkfd+amd@gfx1100,cu=2" and "mockkfd+amd@gfx1100*2" are one. */
static bool is_list(const char *text)
{
    struct bw_device_name name, names[2];
    uint32_t count;
    if (bw_device_name_parse(text, &name, NULL) == 0)
        return false;
    int rc = bw_device_name_parse_list(text, names, 2, &count, NULL);
    return rc == -E2BIG || (rc == 0 && count > 1);
}

int bw_tool_device(struct bw_ctx *ctx, const char *option, struct bw_device **device)
{
    struct bw_err err = {0};
    const char *text = option ? option : bw_ctx_config(ctx)->device;
    if (text && is_list(text)) {
        bw_fail(&err, -EINVAL, "device", "'%s' names several devices", text);
        bw_err_hint(&err, "this subcommand runs on one; `bellwire bench` takes several");
        bw_tool_fail(&err);
        return BW_TOOL_USAGE;
    }
    if (bw_device_open(ctx, option, device, &err)) {
        int status = bw_tool_fail(&err);
        /* What is no name at all names no device either, nor does a GPU that no driver takes. */
        return !strcmp(err.subsystem, "name") || err.code == -ENOTSUP ? BW_TOOL_NO_DEVICE
               : err.code == -EINVAL                                  ? BW_TOOL_USAGE
                                                                      : status;
    }
    const struct bw_device_info *info = bw_device_info(*device);
    if (!info->arch[0]) { /* a disk */
        bw_fail(&err, -ENODEV, "device", "%s executes nothing", info->name);
        bw_err_hint(&err, "run on host:0, on a GPU or on a mock of one");
        bw_device_close(*device);
        *device = NULL;
        return bw_tool_fail(&err);
    }
    if (!option && !bw_ctx_config(ctx)->device && info->mock)
        bw_print(stderr, "bellwire: no GPU in this machine: using the mock %s\n", info->name);
    return BW_TOOL_DONE;
}
