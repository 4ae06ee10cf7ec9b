/* From a name to a device: which interface, which driver, which mock machine. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bellwire/mock.h>

#include "base/bits.h"
#include "base/text.h"
#include "hcq/hcq.h"
#include "iface/iface.h"
#include "iface/name.h"

enum { FAULT_TEXT_MAX = 256 }; /* of one specification: a site, an action, four options */

/* Devices of one mock machine that are open at once share it, so that `mockkfd+amd:0@gfx1100*8` and `:1` are
 * two GPUs of one board. */
struct bw_machine {
    struct bw_machine *next;
    struct bw_sys *sys;
    uint32_t references;
    char arch[24];
    uint32_t count, cu_count, xgmi_engines, nodes;
    uint64_t vram_bytes, bar_bytes, seed, jitter;
    bool drm; /* without the KFD */
};

static bool name_is_drm(const struct bw_device_name *name)
{
    return !strcmp(name->iface, name->mock ? "mockdrm" : "drm");
}

static bool machine_matches(const struct bw_machine *machine, const struct bw_device_name *name)
{
    return strcmp(machine->arch, name->arch) == 0 && machine->count == name->count &&
           machine->cu_count == name->cu_count && machine->vram_bytes == name->vram_bytes &&
           machine->bar_bytes == name->bar_bytes && machine->seed == name->seed &&
           machine->jitter == name->jitter && machine->nodes == name->nodes &&
           machine->xgmi_engines == name->xgmi_engines && machine->drm == name_is_drm(name);
}

static int machine_faults_add(const struct bw_machine *machine, const char *specifications,
                              struct bw_err *err)
{
    while (specifications && *specifications) {
        char one[FAULT_TEXT_MAX];
        size_t length = strcspn(specifications, ";");
        if (length >= sizeof one)
            return bw_fail(err, -EINVAL, "config", "fault specification '%.100s'", specifications);
        memcpy(one, specifications, length);
        one[length] = 0;
        int rc = length ? bw_mock_fault_add(machine->sys, one, err) : 0;
        if (rc)
            return rc;
        specifications += length + (specifications[length] == ';');
    }
    return 0;
}

static int machine_create(const struct bw_ctx *ctx, const struct bw_device_name *name,
                          struct bw_machine **out, struct bw_err *err)
{
    struct bw_machine *machine = calloc(1, sizeof *machine);
    if (!machine)
        return bw_fail(err, -ENOMEM, "hcq", "mock machine");
    snprintf(machine->arch, sizeof machine->arch, "%s", name->arch);
    machine->count = name->count;
    machine->cu_count = name->cu_count;
    machine->vram_bytes = name->vram_bytes;
    machine->bar_bytes = name->bar_bytes;
    machine->seed = name->seed;
    machine->jitter = name->jitter;
    machine->xgmi_engines = name->xgmi_engines;
    machine->nodes = name->nodes;
    machine->drm = name_is_drm(name);
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = machine->arch,
                                    .gpu_count = name->count,
                                    .cu_count = name->cu_count,
                                    .vram_bytes = name->vram_bytes,
                                    .bar_bytes = name->bar_bytes,
                                    .threads = ctx->config.mock_threads,
                                    .seed = name->seed,
                                    .jitter = name->jitter,
                                    .xgmi_engines = name->xgmi_engines,
                                    .nodes = name->nodes,
                                    .kfd_absent = machine->drm};
    int rc = bw_mock_kfd_create(&config, &machine->sys, err);
    if (rc ==
        -EINVAL) { /* more than such a GPU can have: like any other name of a device that there is not */
        rc = -ENODEV;
        if (err)
            err->code = rc;
    }
    if (!rc)
        machine->sys->wait_ns = ctx->config.wait_ns;
    if (!rc)
        rc = machine_faults_add(machine, ctx->config.mock_faults, err);
    if (!rc && ctx->config.mock_trace)
        rc = bw_mock_trace(machine->sys, ctx->config.mock_trace, err);
    if (rc) {
        if (machine->sys)
            bw_sys_destroy(machine->sys);
        free(machine);
        return rc;
    }
    *out = machine;
    return 0;
}

int bw_machine_acquire(struct bw_ctx *ctx, const struct bw_device_name *name, struct bw_machine **out,
                       struct bw_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&ctx->lock);
    struct bw_machine *machine = ctx->machines;
    while (machine && !machine_matches(machine, name))
        machine = machine->next;
    if (!machine) {
        rc = machine_create(ctx, name, &machine, err);
        if (!rc) {
            machine->next = ctx->machines;
            ctx->machines = machine;
        }
    }
    if (!rc) {
        machine->references++;
        *out = machine;
    }
    pthread_mutex_unlock(&ctx->lock);
    return rc;
}

struct bw_sys *bw_machine_sys(const struct bw_machine *machine)
{
    return machine->sys;
}

void bw_machine_release(struct bw_ctx *ctx, struct bw_machine *machine)
{
    if (!machine)
        return;
    pthread_mutex_lock(&ctx->lock);
    assert(machine->references > 0);
    bool last = --machine->references == 0;
    if (last) {
        struct bw_machine **link = &ctx->machines;
        while (*link != machine)
            link = &(*link)->next;
        *link = machine->next;
    }
    pthread_mutex_unlock(&ctx->lock);
    if (last) {
        bw_sys_destroy(machine->sys);
        free(machine);
    }
}

/* Appends each usable device's name to a struct bw_text. */
static int name_collect(void *user, const struct bw_device_listing *listing)
{
    struct bw_text *text = user;
    if (listing->usable)
        bw_text_add(text, "%s%s", text->length ? ", " : "", listing->info.name);
    return 0;
}

void bw_device_names_hint(struct bw_ctx *ctx, struct bw_err *err)
{
    struct bw_text text = {0};
    struct bw_err ignored;
    char first[sizeof err->hint];
    if (!err)
        return;
    memcpy(first, err->hint, sizeof first);
    if (bw_device_list(ctx, name_collect, &text, &ignored) == 0 && text.length)
        bw_err_hint(err, "%s%sthere are: %s", first, first[0] ? "; " : "", bw_text_string(&text));
    bw_text_free(&text);
}

int bw_mock_name_check(const char *arch, struct bw_err *err)
{
    struct bw_text text = {0};
    const char *known;
    for (uint32_t i = 0; (known = bw_mock_arch_at(i)); i++) {
        if (!strcmp(known, arch))
            return bw_text_free(&text), 0;
        bw_text_add(&text, "%s%s", i ? ", " : "", known);
    }
    bw_fail(err, -ENODEV, "hcq", "no mock executes the machine code of %s", arch);
    bw_err_hint(err, "mocks of %s do", bw_text_string(&text));
    bw_text_free(&text);
    return -ENODEV;
}

/* How this machine's AMD GPUs are reached where the name does not say: through the KFD if any of them can be,
 * else through render nodes. */
enum way { WAY_NONE, WAY_KFD, WAY_DRM };

static int count_usable(void *user, const struct bw_iface_listing *listing)
{
    *(uint32_t *)user += listing->why[0] == 0;
    return 0;
}

static int count_drivable(void *user, const struct bw_iface_listing *listing)
{
    *(uint32_t *)user += listing->why[0] == 0 && bw_amd_check(&listing->properties, NULL) == 0;
    return 0;
}

static enum way real_way(struct bw_ctx *ctx)
{
    uint32_t usable = 0;
    struct bw_err ignored;
    if (bw_kfd_list(ctx->sys, count_usable, &usable, &ignored) > 0 && usable)
        return WAY_KFD;
    if (bw_drm_list(ctx->sys, count_drivable, &usable, &ignored) > 0 && usable)
        return WAY_DRM;
    return WAY_NONE;
}

static int amd_open(struct bw_ctx *ctx, const struct bw_device_name *name, struct bw_device **device,
                    struct bw_sys **sys, struct bw_machine **machine, struct bw_err *err)
{
    struct bw_iface *iface;
    uint32_t index = name->where == BW_NAME_INDEX ? name->index : 0;
    struct bw_device_name wanted = *name;
    if (name->mock) {
        if (!wanted.arch[0])
            snprintf(wanted.arch, sizeof wanted.arch, "gfx1100");
        int rc = bw_mock_name_check(wanted.arch, err);
        if (!rc)
            rc = bw_machine_acquire(ctx, &wanted, machine, err);
        if (rc)
            return rc;
        *sys = (*machine)->sys;
    }
    bool drm = name_is_drm(name) || (!name->iface[0] && real_way(ctx) == WAY_DRM);
    int rc = drm ? bw_drm_open(*sys, index, &iface, err) : bw_kfd_open(*sys, index, &iface, err);
    if (!rc)
        rc = bw_amd_open(ctx, iface, device, err); /* takes iface over */
    if (rc)
        return rc;
    struct bw_device_info *info = &(*device)->info;
    info->mock = name->mock || info->mock;
    snprintf(info->iface, sizeof info->iface, "%s%s", name->mock ? "mock" : "", drm ? "drm" : "kfd");
    if (name->arch[0] && strcmp(name->arch, info->arch) != 0) {
        bw_fail(err, -ENODEV, "hcq", "device %u is not a %s", index, name->arch);
        bw_err_observed(err, "%s", info->arch);
        (*device)->ops->close(*device);
        return -ENODEV;
    }
    /* With the mock's options, so that the name opens the same machine again. */
    wanted.where = BW_NAME_INDEX;
    wanted.index = index;
    snprintf(wanted.iface, sizeof wanted.iface, "%s", info->iface);
    snprintf(wanted.arch, sizeof wanted.arch, "%s", info->arch);
    bw_device_name_format(&wanted, info->name, sizeof info->name);
    return 0;
}

int bw_device_mock_stats(const struct bw_device *device, struct bw_mock_stats *stats)
{
    const struct bw_machine *machine = bw_hcq_device_of(device)->machine;
    if (!machine)
        return -ENOTSUP;
    bw_mock_stats(machine->sys, stats);
    return 0;
}

struct bw_sys *bw_device_mock(const struct bw_device *device)
{
    const struct bw_machine *machine = bw_hcq_device_of(device)->machine;
    return machine ? machine->sys : NULL;
}

static bool iface_is(const struct bw_device_name *name, const char *iface)
{
    return !name->iface[0] || strcmp(name->iface, iface) == 0;
}

/* Opens the driver's half. *sys is the seam whose clock rules, *machine what it lives in. */
static int driver_open(struct bw_ctx *ctx, const struct bw_device_name *name, struct bw_device **device,
                       struct bw_sys **sys, struct bw_machine **machine, struct bw_err *err)
{
    if (strcmp(name->driver, "host") == 0)
        return bw_host_open(ctx, name->where == BW_NAME_INDEX ? name->index : 0, device, err);
    if (strcmp(name->driver, "null") == 0)
        return bw_null_open(ctx, device, err);
    char text[BW_NAME_TEXT_MAX];
    bw_device_name_format(name, text, sizeof text);
    if (strcmp(name->driver, "disk") == 0)
        return bw_disk_device_open(ctx, text, name->path, device, err);
    bool by_number = name->where != BW_NAME_PCI;
    if (strcmp(name->driver, "amd") == 0 && by_number &&
        (iface_is(name, "kfd") || name_is_drm(name) || strcmp(name->iface, "mockkfd") == 0))
        return amd_open(ctx, name, device, sys, machine, err);
    if (by_number)
        bw_fail(err, -ENODEV, "hcq", "device '%.100s': this version has no driver %s%s%s", text, name->driver,
                name->iface[0] ? " for interface " : "", name->iface);
    else
        bw_fail(err, -ENODEV, "hcq", "device '%.100s': this version drives no device by its PCI address",
                text);
    return -ENODEV;
}

/* The first real GPU, else the mock. */
const char *bw_device_default(struct bw_ctx *ctx)
{
    switch (real_way(ctx)) {
    case WAY_KFD:
        return "kfd+amd";
    case WAY_DRM:
        return "drm+amd";
    default:
        return BW_HCQ_DEFAULT_MOCK;
    }
}

int bw_device_open(struct bw_ctx *ctx, const char *text, struct bw_device **out, struct bw_err *err)
{
    struct bw_device_name name;
    struct bw_device *device = NULL;
    struct bw_sys *sys = ctx->sys;
    struct bw_machine *machine = NULL;
    if (bw_ctx_forked(ctx))
        return bw_fail(err, -ECHILD, "hcq", "context made before fork");
    if (!text)
        text = ctx->config.device ? ctx->config.device : bw_device_default(ctx);
    int rc = bw_device_name_parse(text, &name, err);
    if (rc) {
        bw_device_names_hint(ctx, err);
        return rc;
    }
    rc = driver_open(ctx, &name, &device, &sys, &machine, err);
    if (rc) {
        bw_machine_release(ctx, machine);
        if (rc == -ENODEV || rc == -ENOTSUP)
            bw_device_names_hint(ctx, err);
        return rc;
    }
    rc = bw_hcq_device_attach(ctx, device, sys, machine, err);
    if (!rc)
        *out = device;
    return rc;
}

int bw_device_open_unfed(struct bw_ctx *ctx, const char *arch, struct bw_device **out, struct bw_err *err)
{
    struct bw_device *device;
    int rc = bw_amd_open_unfed(ctx, ctx->sys, arch, &device, err);
    rc = rc ? rc : bw_hcq_device_attach(ctx, device, ctx->sys, NULL, err);
    if (!rc)
        *out = device;
    return rc;
}

int bw_device_open_list(struct bw_ctx *ctx, const char *names, struct bw_device **devices, uint32_t capacity,
                        uint32_t *count, struct bw_err *err)
{
    struct bw_device_name *parsed = calloc(BW_NAME_DEVICES_MAX, sizeof *parsed);
    char text[BW_NAME_TEXT_MAX];
    uint32_t wanted = 0;
    *count = 0;
    if (!parsed)
        return bw_fail(err, -ENOMEM, "hcq", "devices %.100s", names);
    uint32_t most = capacity < BW_NAME_DEVICES_MAX ? capacity : BW_NAME_DEVICES_MAX;
    int rc = bw_device_name_parse_list(names, parsed, most, &wanted, err);
    if (rc)
        bw_device_names_hint(ctx, err);
    for (uint32_t i = 0; i < wanted && !rc; i++) {
        bw_device_name_format(&parsed[i], text, sizeof text);
        rc = bw_device_open(ctx, text, &devices[i], err);
        *count += rc == 0;
    }
    free(parsed);
    while (rc && *count)
        bw_device_close(devices[--*count]);
    return rc;
}
