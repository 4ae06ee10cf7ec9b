/* Which devices there are, and why not where one cannot be used. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hcq/hcq.h"
#include "iface/iface.h"
#include "iface/name.h"

#define DRM_MOCK "mockdrm+amd@gfx1100"

enum {
    VENDOR_AMD = 0x1002,
    VENDOR_NVIDIA = 0x10de,
    CLASS_DISPLAY = 0x03,
    CLASS_ACCELERATOR = 0x12, /* "processing accelerators": compute GPUs without a display engine */
};

struct list_state {
    int (*entry)(void *user, const struct bw_device_listing *listing);
    void *user;
    const struct bw_device_name *mock; /* whose GPUs are being listed; NULL: real ones */
    const char *iface;                 /* of real ones */
    struct bw_device_name chosen;      /* what no name stands for */
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

/* Why opening it would fail, empty when it would not. */
static void why_not(const struct list_state *state, const struct bw_iface_listing *found, const char *arch,
                    char *why, size_t why_size)
{
    struct bw_err err = {0};
    snprintf(why, why_size, "%s", found->why);
    int rc = why[0] ? 0 : bw_amd_check(&found->properties, &err);
    if (!why[0] && !rc && state->mock)
        rc = bw_mock_name_check(arch, &err);
    if (rc)
        bw_err_format(&err, why, why_size);
}

/* Whether what no name stands for is the device `index` of that driver and interface. */
static bool is_chosen(const struct list_state *state, const char *driver, const char *iface, uint32_t index)
{
    const struct bw_device_name *chosen = &state->chosen;
    const char *chosen_iface = chosen->iface[0] || strcmp(chosen->driver, "amd") ? chosen->iface : "kfd";
    uint32_t chosen_index = chosen->where == BW_NAME_INDEX ? chosen->index : 0;
    return !strcmp(chosen->driver, driver) && !strcmp(chosen_iface, iface) && chosen_index == index;
}

static int list_gpu(void *user, const struct bw_iface_listing *found)
{
    struct list_state *state = user;
    const struct bw_iface_properties *properties = &found->properties;
    struct bw_device_listing listing = {0};
    struct bw_device_info *info = &listing.info;
    struct bw_device_name name = {.driver = "amd", .count = 1};
    if (state->mock)
        name = *state->mock;
    else
        snprintf(name.iface, sizeof name.iface, "%s", state->iface);
    name.where = BW_NAME_INDEX;
    name.index = state->index++;
    arch_name(properties->gfx_version, info->arch, sizeof info->arch);
    memcpy(name.arch, info->arch, sizeof info->arch);
    bw_device_name_format(&name, info->name, sizeof info->name);
    snprintf(info->product, sizeof info->product, "%s", properties->product);
    snprintf(info->driver, sizeof info->driver, "amd");
    snprintf(info->iface, sizeof info->iface, "%s", name.iface);
    why_not(state, found, info->arch, listing.why, sizeof listing.why);
    listing.usable = !listing.why[0];
    listing.chosen = is_chosen(state, name.driver, name.iface, name.index) &&
                     (!state->chosen.mock || !strcmp(state->chosen.arch, name.arch));
    info->vram_bytes = properties->vram_bytes;
    info->wave_size = properties->wave_size;
    info->compute_units = properties->simd_per_cu ? properties->simd_count / properties->simd_per_cu : 0;
    info->has_numa_node = properties->has_numa_node;
    info->numa_node = properties->numa_node;
    info->numa_placed = properties->numa_choice;
    info->numa_error = properties->numa_error;
    info->lds_bytes = properties->lds_bytes;
    info->mock = state->mock != NULL;
    return list_add(state, &listing);
}

static int list_unusable(struct list_state *state, const char *name, const char *driver, const char *iface,
                         const char *why)
{
    struct bw_device_listing listing = {.chosen = is_chosen(state, driver, iface, 0)};
    snprintf(listing.info.name, sizeof listing.info.name, "%s", name);
    snprintf(listing.info.driver, sizeof listing.info.driver, "%s", driver);
    snprintf(listing.info.iface, sizeof listing.info.iface, "%s", iface);
    snprintf(listing.why, sizeof listing.why, "%s", why);
    return list_add(state, &listing);
}

/* Real GPUs, by one way. */
static void list_real(struct bw_ctx *ctx, struct list_state *state, bool drm)
{
    struct bw_err err = {0};
    state->iface = drm ? "drm" : "kfd";
    state->index = 0;
    int found =
        drm ? bw_drm_list(ctx->sys, list_gpu, state, &err) : bw_kfd_list(ctx->sys, list_gpu, state, &err);
    if (found > 0 || state->stopped)
        return;
    if (found == 0)
        bw_fail(&err, -ENODEV, state->iface,
                drm ? "no render node is amdgpu's" : "amdgpu is loaded but has no GPU with compute");
    char why[sizeof((struct bw_device_listing *)0)->why];
    bw_err_format(&err, why, sizeof why);
    list_unusable(state, drm ? "drm+amd" : "kfd+amd", "amd", state->iface, why);
}

/* GPUs on the bus, whether or not a kernel driver has them. */
static int list_pci(void *user, const struct bw_pci_id *id)
{
    struct list_state *state = user;
    uint32_t class = id->class_code >> 16;
    const char *driver = id->vendor_id == VENDOR_AMD ? "amd" : id->vendor_id == VENDOR_NVIDIA ? "nv" : NULL;
    if (!driver || (class != CLASS_DISPLAY && class != CLASS_ACCELERATOR))
        return 0;
    struct bw_device_name name = {.iface = "pci",
                                  .count = 1,
                                  .where = BW_NAME_PCI,
                                  .pci_domain = id->domain,
                                  .pci_bus = id->bus,
                                  .pci_device = id->device,
                                  .pci_function = id->function};
    char text[sizeof((struct bw_device_info *)0)->name];
    snprintf(name.driver, sizeof name.driver, "%s", driver);
    bw_device_name_format(&name, text, sizeof text);
    return list_unusable(state, text, driver, "pci",
                         id->vendor_id == VENDOR_AMD
                             ? "taking a GPU over by PCI is not built yet: use kfd+amd, with amdgpu loaded"
                             : "no driver for this vendor is built yet");
}

static void list_host(struct list_state *state, const char *name, const char *driver)
{
    struct bw_device_listing listing = {.usable = true, .chosen = is_chosen(state, driver, "", 0)};
    snprintf(listing.info.name, sizeof listing.info.name, "%s", name);
    snprintf(listing.info.driver, sizeof listing.info.driver, "%s", driver);
    snprintf(listing.info.arch, sizeof listing.info.arch, "x86_64");
    list_add(state, &listing);
}

static void list_mock(struct bw_ctx *ctx, struct list_state *state, const char *text)
{
    struct bw_device_name name;
    struct bw_machine *machine = NULL;
    struct bw_err err = {0};
    int rc = bw_device_name_parse(text, &name, &err);
    if (!rc && !name.mock)
        return;
    if (!rc)
        rc = bw_machine_acquire(ctx, &name, &machine, &err);
    if (!rc) {
        struct list_state mocks = {
            .entry = state->entry, .user = state->user, .mock = &name, .chosen = state->chosen};
        bool drm = !strcmp(name.iface, "mockdrm");
        struct bw_sys *sys = bw_machine_sys(machine);
        rc = drm ? bw_drm_list(sys, list_gpu, &mocks, &err) : bw_kfd_list(sys, list_gpu, &mocks, &err);
        state->stopped = mocks.stopped;
        bw_machine_release(ctx, machine);
    }
    if (rc < 0 && !state->stopped) {
        char why[sizeof((struct bw_device_listing *)0)->why];
        bw_err_format(&err, why, sizeof why);
        list_unusable(state, text, "amd", name.iface, why);
    }
}

int bw_device_list(struct bw_ctx *ctx, int (*entry)(void *user, const struct bw_device_listing *listing),
                   void *user, struct bw_err *err)
{
    struct list_state state = {.entry = entry, .user = user};
    const char *device = ctx->config.device;
    (void)bw_device_name_parse(device ? device : bw_device_default(ctx), &state.chosen, NULL);
    list_real(ctx, &state, false);
    if (!state.stopped)
        list_real(ctx, &state, true);
    if (!state.stopped)
        ctx->sys->ops->pci_scan(ctx->sys, list_pci, &state);
    list_host(&state, "host:0", "host");
    list_host(&state, "null", "null");
    /* The mock that the configuration names, else the one that stands in for a missing GPU, by both ways. */
    bool other = device && state.chosen.mock;
    if (!state.stopped)
        list_mock(ctx, &state, other ? device : BW_HCQ_DEFAULT_MOCK);
    if (!state.stopped && !other)
        list_mock(ctx, &state, DRM_MOCK);
    return state.stopped;
}
