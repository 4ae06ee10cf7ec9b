/* Goal (S4): on a machine with no GPU driver, no /dev/kfd or no /sys, opening a GPU says which of them is
 * missing and what to do, and changes nothing. */
#include <bellwire/err.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include "iface/iface.h"
#include "iface/kfd.h"
#include "iface/sys_wrap.h"
#include "tests/check.h"

/* A machine that consists of the files listed here; a file with an error instead of text cannot be opened. */
struct bare_file {
    const char *path, *text;
    int error;
};
struct bare_sys {
    struct bw_sys base;
    const struct bare_file *files;
    const char *position[16]; /* of descriptor 100 + index */
    int ioctl_error;
};

static int bare_open(struct bw_sys *sys, const char *path, int flags)
{
    struct bare_sys *bare = (struct bare_sys *)sys;
    for (const struct bare_file *file = bare->files; file->path; file++) {
        if (strcmp(file->path, path))
            continue;
        if (file->error)
            return -file->error;
        for (int i = 0; i < 16; i++) {
            if (bare->position[i])
                continue;
            bare->position[i] = file->text;
            return 100 + i;
        }
        return -EMFILE;
    }
    return -ENOENT;
}

static int bare_close(struct bw_sys *sys, int fd)
{
    ((struct bare_sys *)sys)->position[fd - 100] = NULL;
    return 0;
}

static int64_t bare_read(struct bw_sys *sys, int fd, void *data, uint64_t size_bytes)
{
    const char **at = &((struct bare_sys *)sys)->position[fd - 100];
    size_t length = strlen(*at);
    length = length < size_bytes ? length : size_bytes;
    memcpy(data, *at, length);
    *at += length;
    return (int64_t)length;
}

/* Folders are what the paths of the files imply; each name is given once, since files of one folder lie
 * together. */
static int bare_list(struct bw_sys *sys, const char *path, int (*entry)(void *user, const char *name),
                     void *user)
{
    size_t length = strlen(path);
    char last[64] = "";
    bool found = false;
    for (const struct bare_file *file = ((struct bare_sys *)sys)->files; file->path; file++) {
        if (strncmp(file->path, path, length) || file->path[length] != '/')
            continue;
        char name[64];
        const char *rest = file->path + length + 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(rest, "/"), rest);
        found = true;
        int rc = strcmp(name, last) ? entry(user, name) : 0;
        if (rc)
            return rc;
        strcpy(last, name);
    }
    return found ? 0 : -ENOENT;
}

static int bare_ioctl(struct bw_sys *sys, int fd, unsigned long request, void *argument)
{
    return -((struct bare_sys *)sys)->ioctl_error;
}

static uint64_t bare_clock_ns(struct bw_sys *sys)
{
    return 1;
}

static void bare_destroy(struct bw_sys *sys)
{
}

static const struct bw_sys_ops bare_ops = {
    .open = bare_open,
    .close = bare_close,
    .read = bare_read,
    .list = bare_list,
    .ioctl = bare_ioctl,
    .clock_ns = bare_clock_ns,
    .destroy = bare_destroy,
};

#define NODES "/sys/devices/virtual/kfd/kfd/topology/nodes"
#define GPU_PROPERTIES                                                                               \
    "simd_count 192\nsimd_per_cu 2\narray_count 12\nsimd_arrays_per_engine 2\ncu_per_simd_array 8\n" \
    "max_waves_per_simd 16\nmax_slots_scratch_cu 32\nwave_front_size 32\nlds_size_in_kb 64\n"        \
    "gfx_target_version 110000\nvendor_id 4098\ndevice_id 29772\ndrm_render_minor 128\n"
#define GPU_NODE                                                                         \
    {NODES "/0/gpu_id", "0\n", 0}, {NODES "/1/gpu_id", "41234\n", 0},                    \
        {NODES "/1/properties", GPU_PROPERTIES, 0},                                      \
    {                                                                                    \
        NODES "/1/mem_banks/0/properties", "heap_type 1\nsize_in_bytes 25753026560\n", 0 \
    }

struct expectation {
    const char *what;
    const struct bare_file *files;
    int ioctl_error, code;
    const char *line, *hint; /* parts of the error's line and of its hint */
};

static void expect_failure(const struct expectation *e)
{
    struct bare_sys bare = {.base.ops = &bare_ops, .files = e->files, .ioctl_error = e->ioctl_error};
    struct bw_sys *sys = NULL;
    struct bw_iface *iface;
    struct bw_err err = {0};
    char line[600];
    BW_EQ(bw_sys_wrap_create(&bare.base, &sys), 0);
    bool ok = BW_EQ(bw_kfd_open(sys, 0, &iface, &err), e->code);
    bw_err_format(&err, line, sizeof line);
    ok &= BW_TRUE(strstr(line, e->line) != NULL);
    ok &= BW_TRUE(strstr(err.hint, e->hint) != NULL);
    if (!ok)
        printf("      %s: %s\n", e->what, line);
    BW_EQ(bw_sys_wrap_open_descriptors(sys), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 0);
    bw_sys_destroy(sys);
}

static void each_lack_has_its_own_text_and_hint(void)
{
    static const struct bare_file nothing[] = {{NULL, NULL, 0}};
    static const struct bare_file cpu_only[] = {{NODES "/0/gpu_id", "0\n", 0}, {NULL, NULL, 0}};
    static const struct bare_file hidden[] = {{NODES "/1/gpu_id", NULL, EPERM}, {NULL, NULL, 0}};
    static const struct bare_file no_kfd[] = {GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file no_group[] = {{BW_KFD_PATH, NULL, EACCES}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file no_cgroup[] = {{BW_KFD_PATH, NULL, EPERM}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file in_reset[] = {{BW_KFD_PATH, NULL, EAGAIN}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file old_kernel[] = {{BW_KFD_PATH, "", 0}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file garbage[] = {
        {NODES "/1/gpu_id", "41234\n", 0}, {NODES "/1/properties", "simd_count many\n", 0}, {NULL, NULL, 0}};
    static const struct bare_file unreadable[] = {{NODES "/1/gpu_id", NULL, EIO}, {NULL, NULL, 0}};
    static const struct expectation cases[] = {
        {"no /sys, or no module", nothing, 0, -ENODEV, "no KFD topology", "modprobe amdgpu"},
        {"no GPU", cpu_only, 0, -ENODEV, "no GPU in the KFD topology", "dmesg"},
        {"hidden by the cgroup", hidden, 0, -ENODEV, "no GPU in the KFD topology", "cgroup"},
        {"no /dev/kfd", no_kfd, 0, -ENODEV, "open /dev/kfd", "--device /dev/kfd"},
        {"not in the group", no_group, 0, -EACCES, "open /dev/kfd", "group render"},
        {"forbidden by the cgroup", no_cgroup, 0, -EPERM, "open /dev/kfd", "cgroup forbids"},
        {"GPU in reset", in_reset, 0, -EAGAIN, "open /dev/kfd", "reset"},
        {"no such ioctl", old_kernel, ENOTTY, -ENOTTY, "GET_VERSION", ""},
        {"another interface", old_kernel, 0, -ENOTSUP, "interface version: expected 1.x, observed 0.0", ""},
        {"properties make no sense", garbage, 0, -EPROTO, "gfx_target_version", ""},
        {"unreadable node", unreadable, 0, -EIO, "nodes/1/gpu_id", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        expect_failure(&cases[i]);
}

struct listed {
    int count;
    struct bw_iface_listing last;
};

static int note_listing(void *user, const struct bw_iface_listing *listing)
{
    struct listed *listed = user;
    listed->count++;
    listed->last = *listing;
    return 0;
}

static void a_listing_says_why_a_gpu_cannot_be_used(void)
{
    static const struct bare_file no_kfd[] = {GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file no_render[] = {{BW_KFD_PATH, "", 0}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file no_group[] = {
        {BW_KFD_PATH, "", 0}, {"/dev/dri/renderD128", NULL, EACCES}, GPU_NODE, {NULL, NULL, 0}};
    static const struct bare_file usable[] = {
        {BW_KFD_PATH, "", 0}, {"/dev/dri/renderD128", "", 0}, GPU_NODE, {NULL, NULL, 0}};
    const struct {
        const struct bare_file *files;
        const char *why;
    } cases[] = {
        {no_kfd, "/dev/kfd"}, {no_render, "/dev/dri/renderD128"}, {no_group, "group render"}, {usable, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bare_sys bare = {.base.ops = &bare_ops, .files = cases[i].files};
        struct listed listed = {0};
        struct bw_err err;
        BW_EQ(bw_kfd_list(&bare.base, note_listing, &listed, &err), 1);
        BW_EQ(listed.count, 1);
        BW_EQ(listed.last.properties.gfx_version, 110000);
        BW_EQ(listed.last.properties.vram_bytes, 25753026560);
        BW_EQ(listed.last.properties.shader_engines, 6);
        BW_EQ(listed.last.properties.lds_bytes, 65536);
        BW_STR(listed.last.properties.node_name, "kfd node 1");
        BW_TRUE(strstr(listed.last.why, cases[i].why) != NULL);
        BW_EQ(listed.last.why[0] == 0, cases[i].why[0] == 0);
        for (int k = 0; k < 16; k++)
            BW_TRUE(bare.position[k] == NULL);
        bw_sys_destroy(&bare.base);
    }
}

BW_TEST_MAIN("scenario.bare_environment",
             {"each lack has its own text and hint", each_lack_has_its_own_text_and_hint},
             {"a listing says why a GPU cannot be used", a_listing_says_why_a_gpu_cannot_be_used})
