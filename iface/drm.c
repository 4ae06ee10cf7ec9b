/* Opening, listing and closing GPUs through their render nodes: see drm.h. */
#include "iface/drm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iface/amdgpu.h"
#include "iface/fork_mark.h"
#include "iface/sys_util.h"

#define NODES_PATH "/dev/dri"

enum {
    DRM_MAJOR = 3, /* the only one that amdgpu has had */
    UEVENT_BYTES_MAX = 4096,
    VENDOR_AMD = 0x1002,
};

int bw_drm_check_fork(const struct bw_drm_iface *drm, struct bw_err *err)
{
    return bw_fork_mark_forked(&drm->fork_mark) ? bw_fork_mark_refuse("drm", err) : 0;
}

int bw_drm_ioctl(struct bw_drm_iface *drm, unsigned long request, void *argument)
{
    return bw_sys_ioctl(drm->base.sys, drm->fd, request, argument, &drm->overdue);
}

int bw_drm_info(struct bw_drm_iface *drm, struct drm_amdgpu_info *request, void *data, uint32_t size_bytes)
{
    request->return_pointer = (uint64_t)(uintptr_t)data;
    request->return_size = size_bytes;
    memset(data, 0, size_bytes);
    return bw_drm_ioctl(drm, DRM_IOCTL_AMDGPU_INFO, request);
}

/* Takes back whatever opening made, in any state. In a forked child the mappings are not there. */
static void drop(struct bw_drm_iface *drm)
{
    struct bw_sys *sys = drm->base.sys;
    bool forked = drm->fork_mark.size_bytes && bw_fork_mark_forked(&drm->fork_mark);
    if (forked)
        bw_va_space_forget(&drm->va);
    bw_va_space_fini(&drm->va);
    if (drm->fork_mark.size_bytes && !forked)
        sys->ops->unmap(sys, &drm->fork_mark);
    if (drm->fd >= 0 && !forked)
        sys->ops->close(sys, drm->fd);
    while (drm->queues) { /* of a forked child, or such as could not be destroyed */
        struct bw_drm_queue *next = drm->queues->next;
        free(drm->queues);
        drm->queues = next;
    }
    bw_drm_buffers_forget(drm);
    bw_vec_free(&drm->listed);
    pthread_mutex_destroy(&drm->lock);
    pthread_mutex_destroy(&drm->share_lock);
    free(drm);
}

void bw_drm_unref(struct bw_drm_iface *drm)
{
    if (atomic_fetch_sub(&drm->references, 1) == 1)
        drop(drm);
}

static void close_drm(struct bw_iface *iface)
{
    bw_drm_unref(bw_drm_of(iface));
}

static const struct bw_iface_ops drm_ops = {
    .name = "drm",
    .alloc = bw_drm_alloc,
    .free = bw_drm_free,
    .link = bw_drm_link,
    .map_peer = bw_drm_map_peer,
    .queue_create = bw_drm_queue_create,
    .queue_destroy = bw_drm_queue_destroy,
    .queue_submit = bw_drm_queue_submit,
    .queue_follow = bw_drm_queue_follow,
    .queue_follows = bw_drm_queue_follows,
    .wait_interrupt = bw_drm_wait_interrupt,
    .interrupt_target = bw_drm_interrupt_target,
    .query_fault = bw_drm_query_fault,
    .queue_look = bw_drm_queue_look,
    .available_memory = bw_drm_available_memory,
    .close = close_drm,
};

/* A GPU of amdgpu's as sysfs tells of it, so that one that may not be opened is known, too. */
struct node {
    uint32_t minor, device_id;
};

struct nodes {
    struct bw_sys *sys;
    struct node at[BW_DRM_MINORS];
    uint32_t count;
};

/* 1 when it is amdgpu's, 0 not, -errno. */
static int read_node(struct bw_sys *sys, uint32_t minor, struct node *node)
{
    char path[96], *text;
    unsigned vendor = 0, device = 0;
    snprintf(path, sizeof path, "/sys/class/drm/renderD%u/device/uevent", minor);
    int rc = bw_sys_read_text(sys, path, UEVENT_BYTES_MAX, &text);
    if (rc)
        return rc == -ENOENT ? 0 : rc; /* of a device that is on no bus */
    const char *id = strstr(text, "PCI_ID=");
    bool ours = strstr(text, "DRIVER=amdgpu\n") != NULL;
    if (id && sscanf(id, "PCI_ID=%x:%x", &vendor, &device) == 2 && vendor != VENDOR_AMD)
        ours = false;
    free(text);
    *node = (struct node){.minor = minor, .device_id = device};
    return ours;
}

static int note_node(void *user, const char *name)
{
    struct nodes *nodes = user;
    unsigned minor;
    char rest;
    if (nodes->count == BW_DRM_MINORS || sscanf(name, "renderD%u%c", &minor, &rest) != 1)
        return 0;
    int rc = read_node(nodes->sys, minor, &nodes->at[nodes->count]);
    nodes->count += rc > 0;
    return rc < 0 ? rc : 0;
}

/* -ENODEV: no /dev/dri at all. */
static int find_nodes(struct bw_sys *sys, struct nodes *nodes, struct bw_err *err)
{
    *nodes = (struct nodes){.sys = sys};
    int rc = sys->ops->list(sys, NODES_PATH, note_node, nodes);
    if (!rc)
        return 0;
    rc = bw_fail(err, rc == -ENOENT ? -ENODEV : rc, "drm", "list the render nodes in " NODES_PATH);
    if (rc == -ENODEV)
        bw_err_hint(err, "load the module amdgpu (modprobe amdgpu); in a container pass --device /dev/dri");
    return rc;
}

static int check_version(struct bw_drm_iface *drm, struct bw_err *err)
{
    char name[16] = "";
    struct drm_version version = {.name = name, .name_len = sizeof name - 1};
    int rc = bw_drm_ioctl(drm, DRM_IOCTL_VERSION, &version);
    if (rc < 0)
        return bw_fail(err, rc, "drm", "VERSION of %s", drm->base.properties.node_name);
    if (strcmp(name, "amdgpu") || version.version_major != DRM_MAJOR) {
        rc = bw_fail(err, -ENOTSUP, "drm", "kernel driver of %s", drm->base.properties.node_name);
        bw_err_expected(err, "amdgpu %d.x", DRM_MAJOR);
        bw_err_observed(err, "%s %d.%d", name, version.version_major, version.version_minor);
        return rc;
    }
    drm->minor_version = (uint32_t)version.version_minor;
    return 0;
}

static int open_node(struct bw_sys *sys, const struct node *node, struct bw_drm_iface **opened,
                     struct bw_err *err)
{
    char path[32];
    struct bw_drm_iface *drm = calloc(1, sizeof *drm);
    if (!drm)
        return bw_fail(err, -ENOMEM, "drm", "interface");
    pthread_mutex_init(&drm->lock, NULL); /* neither fails on Linux */
    pthread_mutex_init(&drm->share_lock, NULL);
    atomic_init(&drm->references, 1);
    drm->base.ops = &drm_ops;
    drm->base.sys = sys;
    struct bw_iface_properties *properties = &drm->base.properties;
    properties->gpu_id = node->minor;
    snprintf(properties->node_name, sizeof properties->node_name, "render node %u", node->minor);
    snprintf(path, sizeof path, NODES_PATH "/renderD%u", node->minor);
    drm->fd = sys->ops->open(sys, path, O_RDWR);
    drm->serial = __atomic_add_fetch(&sys->serials, 1, __ATOMIC_RELAXED);
    int rc = drm->fd < 0 ? bw_amdgpu_fail_open(err, drm->fd, "drm", path) : 0;
    if (!rc)
        rc = check_version(drm, err);
    if (!rc)
        rc = bw_drm_device_read(drm, err);
    if (!rc) {
        bw_amdgpu_product(sys, node->minor, properties->device_id, properties->product,
                          sizeof properties->product);
        bw_numa_read(sys, node->minor, &drm->numa);
        bw_numa_properties(&drm->numa, properties);
        *opened = drm;
        return 0;
    }
    bw_drm_unref(drm);
    return rc;
}

static int start(struct bw_drm_iface *drm, struct bw_err *err)
{
    int rc = bw_fork_mark_map(drm->base.sys, &drm->fork_mark);
    if (rc)
        return bw_fail(err, rc, "drm", "map the page that tells a fork");
    rc = bw_va_space_init(&drm->va, drm->base.sys, drm->va_first, drm->va_last);
    return rc ? bw_fail(err, rc, "drm", "address space") : 0;
}

int bw_drm_open(struct bw_sys *sys, uint32_t index, struct bw_iface **iface, struct bw_err *err)
{
    struct nodes nodes;
    struct bw_drm_iface *drm;
    *iface = NULL;
    int rc = find_nodes(sys, &nodes, err);
    if (rc)
        return rc;
    if (index >= nodes.count) {
        rc = bw_fail(err, -ENODEV, "drm", "GPU index %u", index);
        bw_err_expected(err, nodes.count ? "0 to %u" : "a render node of amdgpu", nodes.count - 1);
        return rc;
    }
    rc = open_node(sys, &nodes.at[index], &drm, err);
    if (rc)
        return rc;
    rc = start(drm, err);
    if (rc)
        bw_drm_unref(drm);
    else
        *iface = &drm->base;
    return rc;
}

int bw_drm_list(struct bw_sys *sys, int (*entry)(void *user, const struct bw_iface_listing *listing),
                void *user, struct bw_err *err)
{
    struct nodes nodes;
    int rc = find_nodes(sys, &nodes, err);
    for (uint32_t i = 0; !rc && i < nodes.count; i++) {
        const struct node *node = &nodes.at[i];
        struct bw_iface_listing listing = {.properties = {.vendor_id = VENDOR_AMD}};
        struct bw_drm_iface *drm;
        struct bw_err why = {0};
        listing.properties.device_id = (uint16_t)node->device_id;
        snprintf(listing.properties.node_name, sizeof listing.properties.node_name, "render node %u",
                 node->minor);
        if (open_node(sys, node, &drm, &why)) {
            bw_err_format(&why, listing.why, sizeof listing.why);
            bw_amdgpu_product(sys, node->minor, node->device_id, listing.properties.product,
                              sizeof listing.properties.product);
        } else {
            listing.properties = drm->base.properties;
            bw_drm_unref(drm);
        }
        rc = entry(user, &listing);
    }
    return rc ? rc : (int)nodes.count;
}
