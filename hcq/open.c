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

static const char default_mock[] = "mockkfd+amd@gfx1100";

/* Devices of one mock machine that are open at once share it, so that `mockkfd+amd:0@gfx942*8` and `:1` are
 * two GPUs of one board. */
struct bw_machine {
    struct bw_machine *next;
    struct bw_sys *sys;
    uint32_t references;
    char arch[24];
    uint32_t count, cu_count;
    uint64_t vram_bytes, seed;
};

static bool machine_matches(const struct bw_machine *machine, const struct bw_device_name *name)
{
    return strcmp(machine->arch, name->arch) == 0 && machine->count == name->count &&
           machine->cu_count == name->cu_count && machine->vram_bytes == name->vram_bytes &&
           machine->seed == name->seed;
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
    machine->seed = name->seed;
    struct bw_mock_config config = {.size = sizeof config,
                                    .arch = machine->arch,
                                    .gpu_count = name->count,
                                    .cu_count = name->cu_count,
                                    .vram_bytes = name->vram_bytes,
                                    .threads = ctx->config.mock_threads,
                                    .seed = name->seed};
    int rc = bw_mock_kfd_create(&config, &machine->sys, err);
    if (rc) {
        free(machine);
        return rc;
    }
    *out = machine;
    return 0;
}

static int machine_acquire(struct bw_ctx *ctx, const struct bw_device_name *name, struct bw_machine **out,
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

static void existing_hint(struct bw_ctx *ctx, struct bw_err *err)
{
    struct bw_text text = {0};
    struct bw_err ignored;
    if (bw_device_list(ctx, name_collect, &text, &ignored) == 0 && text.length)
        bw_err_hint(err, "there are: %s", bw_text_string(&text));
    bw_text_free(&text);
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
        int rc = machine_acquire(ctx, &wanted, machine, err);
        if (rc)
            return rc;
        *sys = (*machine)->sys;
    }
    int rc = bw_kfd_open(*sys, index, &iface, err);
    if (!rc)
        rc = bw_amd_open(ctx, iface, device, err); /* takes iface over */
    if (rc)
        return rc;
    struct bw_device_info *info = &(*device)->info;
    info->mock = name->mock || info->mock;
    snprintf(info->iface, sizeof info->iface, "%s", name->mock ? "mockkfd" : "kfd");
    if (name->arch[0] && strcmp(name->arch, info->arch) != 0) {
        bw_fail(err, -ENODEV, "hcq", "device %u is not a %s", index, name->arch);
        bw_err_observed(err, "%s", info->arch);
        (*device)->ops->close(*device);
        return -ENODEV;
    }
    snprintf(info->name, sizeof info->name, "%s+amd:%u@%s", info->iface, index, info->arch);
    return 0;
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
    bool by_number = name->where != BW_NAME_PCI;
    if (strcmp(name->driver, "amd") == 0 && by_number &&
        (iface_is(name, "kfd") || strcmp(name->iface, "mockkfd") == 0))
        return amd_open(ctx, name, device, sys, machine, err);
    bw_fail(err, -ENODEV, "hcq", "driver %s%s%s%s", name->driver, name->iface[0] ? " through " : "",
            name->iface, by_number ? "" : " by PCI address");
    existing_hint(ctx, err);
    return -ENODEV;
}

static int count_usable(void *user, const struct bw_iface_listing *listing)
{
    *(uint32_t *)user += listing->why[0] == 0;
    return 0;
}

/* The first real GPU, else the mock. */
static const char *default_name(struct bw_ctx *ctx)
{
    uint32_t usable = 0;
    struct bw_err ignored;
    if (bw_kfd_list(ctx->sys, count_usable, &usable, &ignored) > 0 && usable)
        return "kfd+amd";
    return default_mock;
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
        text = ctx->config.device ? ctx->config.device : default_name(ctx);
    int rc = bw_device_name_parse(text, &name, err);
    if (rc) {
        if (err && !err->hint[0])
            existing_hint(ctx, err);
        return rc;
    }
    rc = driver_open(ctx, &name, &device, &sys, &machine, err);
    if (rc) {
        bw_machine_release(ctx, machine);
        if (rc == -ENODEV && err && !err->hint[0])
            existing_hint(ctx, err);
        return rc;
    }
    rc = bw_hcq_device_attach(ctx, device, sys, machine, err);
    if (!rc)
        *out = device;
    return rc;
}

struct list_state {
    int (*entry)(void *user, const struct bw_device_listing *listing);
    void *user;
    uint32_t index;
    int stopped; /* what entry returned */
};

static int list_add(struct list_state *state, const struct bw_device_listing *listing)
{
    if (!state->stopped)
        state->stopped = state->entry(state->user, listing);
    return state->stopped;
}

/* 110000 -> gfx1100, 90010 -> gfx90a: minor and stepping are single hexadecimal digits in LLVM's names. */
static void arch_name(uint32_t gfx_version, char *text, size_t text_size)
{
    snprintf(text, text_size, "gfx%u%x%x", gfx_version / 10000, gfx_version / 100 % 100, gfx_version % 100);
}

static int list_kfd(void *user, const struct bw_iface_listing *found)
{
    struct list_state *state = user;
    const struct bw_iface_properties *properties = &found->properties;
    struct bw_device_listing listing = {.usable = found->why[0] == 0};
    struct bw_device_info *info = &listing.info;
    arch_name(properties->gfx_version, info->arch, sizeof info->arch);
    snprintf(info->name, sizeof info->name, "kfd+amd:%u@%s", state->index++, info->arch);
    snprintf(info->product, sizeof info->product, "%s", properties->product);
    snprintf(info->driver, sizeof info->driver, "amd");
    snprintf(info->iface, sizeof info->iface, "kfd");
    snprintf(listing.why, sizeof listing.why, "%s", found->why);
    info->vram_bytes = properties->vram_bytes;
    info->wave_size = properties->wave_size;
    info->compute_units = properties->simd_per_cu ? properties->simd_count / properties->simd_per_cu : 0;
    info->lds_bytes = properties->lds_bytes;
    info->mock = properties->mock;
    return list_add(state, &listing);
}

static int list_fixed(struct list_state *state, const char *name, const char *driver, const char *iface,
                      const char *arch, bool mock)
{
    struct bw_device_listing listing = {.usable = true};
    snprintf(listing.info.name, sizeof listing.info.name, "%s", name);
    snprintf(listing.info.driver, sizeof listing.info.driver, "%s", driver);
    snprintf(listing.info.iface, sizeof listing.info.iface, "%s", iface);
    snprintf(listing.info.arch, sizeof listing.info.arch, "%s", arch);
    listing.info.mock = mock;
    return list_add(state, &listing);
}

int bw_device_list(struct bw_ctx *ctx, int (*entry)(void *user, const struct bw_device_listing *listing),
                   void *user, struct bw_err *err)
{
    struct list_state state = {.entry = entry, .user = user};
    struct bw_err why;
    int found = bw_kfd_list(ctx->sys, list_kfd, &state, &why);
    if (found < 0 && !state.stopped) {
        struct bw_device_listing listing = {.usable = false};
        snprintf(listing.info.name, sizeof listing.info.name, "kfd+amd");
        snprintf(listing.info.driver, sizeof listing.info.driver, "amd");
        snprintf(listing.info.iface, sizeof listing.info.iface, "kfd");
        bw_err_format(&why, listing.why, sizeof listing.why);
        list_add(&state, &listing);
    }
    list_fixed(&state, "host:0", "host", "", "x86_64", false);
    list_fixed(&state, "null", "null", "", "x86_64", false);
    list_fixed(&state, "mockkfd+amd:0@gfx1100", "amd", "mockkfd", "gfx1100", true);
    return state.stopped;
}
