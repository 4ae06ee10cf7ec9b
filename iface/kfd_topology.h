/* GPU nodes of the KFD topology in sysfs, their marketing names, and the sizes that the kernel demands of a
 * queue's buffers. */
#ifndef BW_IFACE_KFD_TOPOLOGY_H
#define BW_IFACE_KFD_TOPOLOGY_H

#include <stdint.h>

#include "iface/amdgpu.h"
#include "iface/iface.h"

enum {
    BW_KFD_NODES_MAX = 256
}; /* CPU and GPU nodes; the kernel numbers nodes in 8 bits of the gpu id's hash space */

/* A GPU node, as its properties file says. */
struct bw_kfd_node {
    uint32_t number; /* of the node's folder */
    uint32_t gpu_id;
    uint32_t gfx_version, vendor_id, device_id, location_id, domain, render_minor;
    uint32_t simd_count, simd_per_cu, array_count, arrays_per_engine, cu_per_array, waves_per_simd,
        scratch_slots_per_cu;
    uint32_t wave_size, lds_kib, xcc_count;
    uint32_t sdma_engines, sdma_xgmi_engines, sdma_queues_per_engine, cp_queues;
    uint32_t engine_clock_mhz;
    uint32_t save_bytes, control_stack_bytes; /* 0 where the kernel does not say (before 6.18) */
    uint64_t vram_bytes, visible_vram_bytes;  /* all; what is behind the BAR */
};

struct bw_kfd_nodes {
    struct bw_kfd_node *at;
    uint32_t count;
};

/* Reads all GPU nodes in order of their numbers; nodes that this process may not use (device cgroup) are left
 * out. -ENODEV: no topology at all; -EPROTO: a file that makes no sense; -ENOMEM. On success free nodes->at.
 */
int bw_kfd_topology_read(struct bw_sys *sys, struct bw_kfd_nodes *nodes, struct bw_err *err);

/* The link from node to node: io_links hold the direct ones, p2p_links those between GPUs over PCIe. 0 with
 * kind NONE when there is none; -EPROTO: a file that makes no sense. */
int bw_kfd_link_read(struct bw_sys *sys, uint32_t from, uint32_t to, struct bw_iface_link *link,
                     struct bw_err *err);

/* Value of `name` in the text of a properties file. -ENOENT: not there; -EPROTO: not a number. */
int bw_kfd_property(const char *text, const char *name, uint64_t *value);

void bw_kfd_node_properties(const struct bw_kfd_node *node, struct bw_iface_properties *properties);

/* What CREATE_QUEUE checks (kfd_queue_acquire_buffers and kfd_queue_ctx_save_restore_size of
 * amdkfd/kfd_queue.c). */
struct bw_kfd_queue_sizes {
    uint32_t eop_bytes;
    uint32_t control_stack_bytes; /* exactly, per XCC */
    uint32_t save_bytes;  /* ctx_save_restore_size: control stack and wave data of one XCC, at least */
    uint32_t debug_bytes; /* per XCC, behind it */
    uint64_t area_bytes;  /* of the buffer, exactly: (save + debug) of every XCC, in pages */
};

/* -ENOTSUP: the properties are not those of a gfx9 or later GPU. */
int bw_kfd_queue_sizes(const struct bw_kfd_node *node, struct bw_kfd_queue_sizes *sizes, struct bw_err *err);

#endif
