/* Opening, listing and closing GPUs through the KFD: see kfd.h. */
#include "iface/kfd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void close_kfd(struct bw_iface *iface)
{
    struct bw_kfd_iface *kfd = bw_kfd_of(iface);
    /* A forked child only forgets: what is open belongs to its parent. */
    if (!bw_kfd_forked(kfd->process)) {
        bw_kfd_events_destroy(kfd);
        bw_kfd_gpu_put(kfd->process, kfd->gpu);
        bw_kfd_process_put(kfd->process);
    }
    pthread_mutex_destroy(&kfd->fault_lock);
    free(kfd);
}

static const struct bw_iface_ops kfd_ops = {
    .name = "kfd",
    .alloc = bw_kfd_alloc,
    .free = bw_kfd_free,
    .link = bw_kfd_link,
    .map_peer = bw_kfd_map_peer,
    .queue_create = bw_kfd_queue_create,
    .queue_destroy = bw_kfd_queue_destroy,
    .wait_interrupt = bw_kfd_wait_interrupt,
    .interrupt_target = bw_kfd_interrupt_target,
    .query_fault = bw_kfd_query_fault,
    .queue_look = bw_kfd_queue_look,
    .available_memory = bw_kfd_available_memory,
    .close = close_kfd,
};

static void fill_properties(struct bw_kfd_iface *kfd)
{
    struct bw_iface_properties *properties = &kfd->base.properties;
    bw_kfd_node_properties(&kfd->node, properties);
    bw_amdgpu_product(kfd->base.sys, kfd->node.render_minor, kfd->node.device_id, properties->product,
                      sizeof properties->product);
    bw_numa_properties(&kfd->gpu->numa, properties);
    for (size_t i = 0; i < kfd->process->apertures.count; i++) {
        const struct bw_kfd_process_apertures *apertures = &kfd->process->apertures.data[i];
        if (apertures->gpu_id != kfd->node.gpu_id)
            continue;
        properties->lds_aperture = apertures->lds_base;
        properties->scratch_aperture = apertures->scratch_base;
    }
}

static int fail_index(const struct bw_kfd_nodes *nodes, uint32_t index, struct bw_err *err)
{
    if (!nodes->count) {
        int rc = bw_fail(err, -ENODEV, "kfd", "no GPU in the KFD topology");
        bw_err_hint(err,
                    "the kernel driver found no supported GPU, or the device cgroup hides it: see dmesg");
        return rc;
    }
    int rc = bw_fail(err, -ENODEV, "kfd", "GPU index %u", index);
    bw_err_expected(err, "0 to %u", nodes->count - 1);
    return rc;
}

static int find_node(struct bw_sys *sys, uint32_t index, struct bw_kfd_node *node, struct bw_err *err)
{
    struct bw_kfd_nodes nodes;
    int rc = bw_kfd_topology_read(sys, &nodes, err);
    if (rc)
        return rc;
    if (index < nodes.count)
        *node = nodes.at[index];
    else
        rc = fail_index(&nodes, index, err);
    free(nodes.at);
    return rc;
}

/* Everything after the allocation of kfd. Takes back what it made when it fails. */
static int open_gpu(struct bw_kfd_iface *kfd, struct bw_err *err)
{
    int rc = bw_kfd_process_get(kfd->base.sys, &kfd->process, err);
    if (rc)
        return rc;
    /* The first opener makes the event page that the others share. */
    pthread_mutex_lock(&kfd->process->open_lock);
    rc = bw_kfd_gpu_get(kfd->process, &kfd->node, &kfd->gpu, err);
    if (!rc) {
        rc = bw_kfd_events_create(kfd, err);
        if (rc)
            bw_kfd_gpu_put(kfd->process, kfd->gpu);
    }
    pthread_mutex_unlock(&kfd->process->open_lock);
    if (rc) {
        bw_kfd_process_put(kfd->process);
        return rc;
    }
    kfd->sizes_rc = bw_kfd_queue_sizes(&kfd->node, &kfd->sizes, NULL);
    fill_properties(kfd);
    return 0;
}

int bw_kfd_open(struct bw_sys *sys, uint32_t index, struct bw_iface **iface, struct bw_err *err)
{
    *iface = NULL;
    struct bw_kfd_iface *kfd = calloc(1, sizeof *kfd);
    if (!kfd || pthread_mutex_init(&kfd->fault_lock, NULL)) {
        free(kfd);
        return bw_fail(err, -ENOMEM, "kfd", "interface");
    }
    kfd->base.ops = &kfd_ops;
    kfd->base.sys = sys;
    int rc = find_node(sys, index, &kfd->node, err);
    if (!rc)
        rc = open_gpu(kfd, err);
    if (rc) {
        pthread_mutex_destroy(&kfd->fault_lock);
        free(kfd);
        return rc;
    }
    *iface = &kfd->base;
    return 0;
}

/* Whether the file can be opened; the reason why not goes to `why`. */
static bool can_open(struct bw_sys *sys, const char *path, char *why, uint32_t why_size)
{
    int fd = sys->ops->open(sys, path, O_RDWR);
    if (fd >= 0) {
        sys->ops->close(sys, fd);
        return true;
    }
    struct bw_err reason = {0};
    bw_kfd_fail_open(&reason, fd, path);
    bw_err_format(&reason, why, why_size);
    return false;
}

int bw_kfd_list(struct bw_sys *sys, int (*entry)(void *user, const struct bw_iface_listing *listing),
                void *user, struct bw_err *err)
{
    struct bw_kfd_nodes nodes;
    char kfd_why[sizeof((struct bw_iface_listing *)0)->why] = "";
    int rc = bw_kfd_topology_read(sys, &nodes, err);
    if (rc)
        return rc;
    if (nodes.count)
        can_open(sys, BW_KFD_PATH, kfd_why, sizeof kfd_why);
    for (uint32_t i = 0; !rc && i < nodes.count; i++) {
        struct bw_iface_listing listing = {0};
        struct bw_numa numa;
        char path[64];
        bw_kfd_node_properties(&nodes.at[i], &listing.properties);
        bw_amdgpu_product(sys, nodes.at[i].render_minor, nodes.at[i].device_id, listing.properties.product,
                          sizeof listing.properties.product);
        bw_numa_read(sys, nodes.at[i].render_minor, &numa);
        bw_numa_properties(&numa, &listing.properties);
        bw_kfd_render_path(&nodes.at[i], path, sizeof path);
        memcpy(listing.why, kfd_why, sizeof listing.why);
        if (!listing.why[0])
            can_open(sys, path, listing.why, sizeof listing.why);
        rc = entry(user, &listing);
    }
    free(nodes.at);
    return rc ? rc : (int)nodes.count;
}
